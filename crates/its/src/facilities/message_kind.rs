//! The table of messages: one row for each message of the facilities layer.
//!
//! A new message needs its codec in [`viaduct_etsi`], a function in `messages/` that makes its [`Summary`], and one row in
//! the table below. [`MessageKind`], [`Message`] and every match over them are generated from the rows.

use viaduct_etsi::{
    JsonError, JsonForm, JsonStyle, UperError, cam_ts103900_v231, cpm_ts103324_v211, denm_ts103831_v231,
    ivim_ts103301_v221, mapem_ts103301_v221, pdu_header, spatem_ts103301_v221, srem_ts103301_v221, ssem_ts103301_v221,
    vam_ts103300_3_v231,
};
use viaduct_units::Tai;

use super::messages::{Summary, cam, cpm, denm, infrastructure, vam};
use crate::{
    DropReason,
    btp::ports,
    geonet::{Lifetime, TrafficClass, mib},
};

/// The properties of one kind of message.
#[derive(Debug)]
struct MessageRow {
    label: &'static str,
    edition: &'static str,
    message_id: u8,
    protocol_version: u8,
    body: &'static str,
    btp_port: u16,
    traffic_class: TrafficClass,
    lifetime: Lifetime,
}

/// Generates [`MessageKind`] and [`Message`] from one row for each message:
///
/// - `codec`: module of [`viaduct_etsi`] with a type that is named like the kind;
/// - `summary`: function that makes the [`Summary`] of that type;
/// - `label`: name in topics and JSON;
/// - `btp_port`: BTP destination port (TS 103 248);
/// - `traffic_class`: traffic class that a station sends the message with (TS 103 175);
/// - `lifetime`: longest time for which the packet is forwarded.
macro_rules! messages {
    ($(
        $(#[$doc:meta])*
        $kind:ident {
            codec: $codec:ident,
            summary: $summary:path,
            label: $label:literal,
            btp_port: $btp_port:expr,
            traffic_class: $traffic_class:expr,
            lifetime: $lifetime:expr,
        }
    )*) => {
        /// A kind of message that a station decodes and sends.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum MessageKind {
            $($(#[$doc])* $kind,)*
        }

        impl MessageKind {
            /// Every kind.
            pub const ALL: [Self; [$($label),*].len()] = [$(Self::$kind),*];

            const fn row(self) -> &'static MessageRow {
                match self {
                    $(Self::$kind => const {
                        &MessageRow {
                            label: $label,
                            edition: $codec::EDITION,
                            message_id: $codec::MESSAGE_ID,
                            protocol_version: $codec::PROTOCOL_VERSION,
                            body: $codec::BODY,
                            btp_port: $btp_port,
                            traffic_class: $traffic_class,
                            lifetime: $lifetime,
                        }
                    },)*
                }
            }
        }

        /// A decoded message.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Message {
            $($(#[$doc])* $kind(Box<$codec::$kind>),)*
        }

        impl Message {
            /// Decodes a message from UPER.
            ///
            /// # Errors
            /// Returns an error if the octets are not exactly one message of that kind.
            pub fn decode(kind: MessageKind, octets: &[u8]) -> Result<Self, UperError> {
                match kind {
                    $(MessageKind::$kind => Ok(Self::$kind(Box::new($codec::decode(octets)?))),)*
                }
            }

            /// Returns the element and the bit at which the octets stop being a message of that kind, or `None` if they
            /// are one. It takes about 14 times as long as [`Self::decode`].
            #[must_use]
            pub fn explain(kind: MessageKind, octets: &[u8]) -> Option<UperError> {
                match kind {
                    $(MessageKind::$kind => $codec::explain(octets),)*
                }
            }

            /// Encodes the message in UPER.
            ///
            /// # Errors
            /// Returns an error if a value is outside its range.
            pub fn encode(&self) -> Result<Vec<u8>, UperError> {
                match self {
                    $(Self::$kind(message) => $codec::encode(message),)*
                }
            }

            /// Reads a message from its JSON form (ASN.1 names, raw ETSI integers).
            ///
            /// # Errors
            /// Returns the path of the wrong member, and the problem.
            pub fn from_json(kind: MessageKind, text: &[u8]) -> Result<Self, JsonError> {
                match kind {
                    $(MessageKind::$kind => Ok(Self::$kind(Box::new($codec::from_json(text)?))),)*
                }
            }

            /// Reads a message from JSON of the given form.
            ///
            /// # Errors
            /// Returns the path of the wrong member, and the problem.
            pub fn from_json_in(kind: MessageKind, form: JsonForm, text: &[u8]) -> Result<Self, JsonError> {
                match kind {
                    $(MessageKind::$kind => Ok(Self::$kind(Box::new($codec::from_json_in(form, text)?))),)*
                }
            }

            /// Appends the JSON form (ASN.1 names, raw ETSI integers) to `out`.
            pub fn write_json(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$kind(message) => $codec::write_json(message, out),)*
                }
            }

            /// Appends the JSON form of the given style to `out`.
            pub fn write_json_in(&self, style: JsonStyle, out: &mut Vec<u8>) {
                match self {
                    $(Self::$kind(message) => $codec::write_json_in(style, message, out),)*
                }
            }

            /// Returns the kind of the message.
            #[must_use]
            pub const fn kind(&self) -> MessageKind {
                match self {
                    $(Self::$kind(_) => MessageKind::$kind,)*
                }
            }

            /// Returns the values that most applications need, in SI units. A time of which the message contains only the
            /// lower bits becomes the time with these bits that is nearest to `reception`.
            #[must_use]
            pub fn summary(&self, reception: Tai) -> Summary {
                match self {
                    $(Self::$kind(message) => $summary(message, reception),)*
                }
            }
        }
    };
}

/// Lifetime of awareness messages: one second (TS 103 900, 5.3.4.1; the same in TS 103 324 and TS 103 300-3), because an
/// older position is of no use.
const AWARENESS_LIFETIME: Lifetime = Lifetime::from_parts(1, 1);

messages! {
    /// Cooperative awareness, TS 103 900 V2.3.1. The decoder reads release 1 (EN 302 637-2) too.
    Cam {
        codec: cam_ts103900_v231,
        summary: cam::summary,
        label: "cam",
        btp_port: ports::CAM,
        traffic_class: TrafficClass::DP2,
        lifetime: AWARENESS_LIFETIME,
    }
    /// Environmental notification, TS 103 831 V2.3.1. The decoder reads release 1 (EN 302 637-3) too.
    ///
    /// The first packet of an event has the traffic class [`TrafficClass::DP0`]. The lifetime of a DENM is its validity,
    /// at most `itsGnMaxPacketLifetime` (600 s), which is the value here.
    Denm {
        codec: denm_ts103831_v231,
        summary: denm::summary,
        label: "denm",
        btp_port: ports::DENM,
        traffic_class: TrafficClass::DP1,
        lifetime: Lifetime::from_parts(60, 2),
    }
    /// Collective perception, TS 103 324 V2.1.1.
    Cpm {
        codec: cpm_ts103324_v211,
        summary: cpm::summary,
        label: "cpm",
        btp_port: ports::CPM,
        traffic_class: TrafficClass::DP3,
        lifetime: AWARENESS_LIFETIME,
    }
    /// Vulnerable road user awareness, TS 103 300-3 V2.3.1.
    Vam {
        codec: vam_ts103300_3_v231,
        summary: vam::summary,
        label: "vam",
        btp_port: ports::VAM,
        traffic_class: TrafficClass::DP2,
        lifetime: AWARENESS_LIFETIME,
    }
    /// Infrastructure to vehicle information, TS 103 301 V2.2.1. Signs change seldom, so a packet has the default lifetime.
    Ivim {
        codec: ivim_ts103301_v221,
        summary: infrastructure::ivim,
        label: "ivim",
        btp_port: ports::IVIM,
        traffic_class: TrafficClass::DP3,
        lifetime: mib::ITS_GN_DEFAULT_PACKET_LIFETIME,
    }
    /// Road and lane topology, TS 103 301 V2.2.1. Lanes change seldom, so a packet has the default lifetime.
    Mapem {
        codec: mapem_ts103301_v221,
        summary: infrastructure::mapem,
        label: "mapem",
        btp_port: ports::MAPEM,
        traffic_class: TrafficClass::DP3,
        lifetime: mib::ITS_GN_DEFAULT_PACKET_LIFETIME,
    }
    /// Traffic light manoeuvre, TS 103 301 V2.2.1.
    Spatem {
        codec: spatem_ts103301_v221,
        summary: infrastructure::spatem,
        label: "spatem",
        btp_port: ports::SPATEM,
        traffic_class: TrafficClass::DP3,
        lifetime: AWARENESS_LIFETIME,
    }
    /// Request for priority at traffic lights, TS 103 301 V2.2.1.
    Srem {
        codec: srem_ts103301_v221,
        summary: infrastructure::srem,
        label: "srem",
        btp_port: ports::SREM,
        traffic_class: TrafficClass::DP3,
        lifetime: AWARENESS_LIFETIME,
    }
    /// Status of requests for priority, TS 103 301 V2.2.1.
    Ssem {
        codec: ssem_ts103301_v221,
        summary: infrastructure::ssem,
        label: "ssem",
        btp_port: ports::SSEM,
        traffic_class: TrafficClass::DP3,
        lifetime: AWARENESS_LIFETIME,
    }
}

impl MessageKind {
    /// Returns the kind with that label, or `None` if there is none.
    #[must_use]
    pub fn from_label(label: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.label() == label)
    }

    /// Returns the kind with that `messageId` in its ITS PDU header, or `None` if there is none.
    #[must_use]
    pub fn from_message_id(message_id: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.message_id() == message_id)
    }

    /// Returns the kind with that BTP destination port, or `None` if there is none.
    #[must_use]
    pub fn from_btp_port(btp_port: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.btp_port() == btp_port)
    }

    /// Returns the name in topics and JSON: `cam`.
    #[must_use]
    pub const fn label(self) -> &'static str {
        self.row().label
    }

    /// Returns the name and version of the standard.
    #[must_use]
    pub const fn edition(self) -> &'static str {
        self.row().edition
    }

    /// Returns the `messageId` of the ITS PDU header.
    #[must_use]
    pub const fn message_id(self) -> u8 {
        self.row().message_id
    }

    /// Returns the `protocolVersion` of the ITS PDU header.
    #[must_use]
    pub const fn protocol_version(self) -> u8 {
        self.row().protocol_version
    }

    /// Returns the name of the message's body in JSON.
    #[must_use]
    pub const fn body(self) -> &'static str {
        self.row().body
    }

    /// Returns the BTP destination port.
    #[must_use]
    pub const fn btp_port(self) -> u16 {
        self.row().btp_port
    }

    /// Returns the traffic class that a station sends the message with (TS 103 175).
    #[must_use]
    pub const fn traffic_class(self) -> TrafficClass {
        self.row().traffic_class
    }

    /// Returns the default lifetime of a packet with this message.
    #[must_use]
    pub const fn lifetime(self) -> Lifetime {
        self.row().lifetime
    }
}

/// Returns the kind of a message by its BTP port if the message's own header agrees.
///
/// # Errors
/// Returns the reason for which a station drops the message.
pub(crate) fn kind_of(btp_port: u16, payload: &[u8]) -> Result<MessageKind, DropReason> {
    let Some(kind) = MessageKind::from_btp_port(btp_port) else {
        let known = ports::is_well_known(btp_port);
        return Err(if known { DropReason::MessageUnsupported } else { DropReason::UnknownPort });
    };
    let header = pdu_header(payload).ok_or(DropReason::MessageTruncated)?;
    if header.message_id != kind.message_id() {
        return Err(DropReason::MessageIdMismatch);
    }
    if header.protocol_version != kind.protocol_version() {
        return Err(DropReason::MessageVersion);
    }
    Ok(kind)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_kind_is_found_by_label_message_id_and_port() {
        for kind in MessageKind::ALL {
            assert_eq!(MessageKind::from_label(kind.label()), Some(kind));
            assert_eq!(MessageKind::from_message_id(kind.message_id()), Some(kind));
            assert_eq!(MessageKind::from_btp_port(kind.btp_port()), Some(kind));
        }
        assert_eq!(MessageKind::from_label("evcsn"), None);
        assert_eq!(MessageKind::from_message_id(3), None);
        assert_eq!(MessageKind::from_btp_port(ports::SAEM), None);
    }

    #[test]
    fn bodies_are_distinct() {
        let bodies: BTreeSet<_> = MessageKind::ALL.map(MessageKind::body).into();
        assert_eq!(bodies.len(), MessageKind::ALL.len());
    }
}
