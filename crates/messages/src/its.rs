//! Names and accessors of the V2X message that the generated code does not have.

use viaduct_units::Tai;

use crate::viaduct::its::v2x_error::Subject;
use crate::viaduct::its::{AccessLayer, Direction, Edition, MessageType, SecurityState, V2xMessage};

/// Every message type and its name in topics, URLs and JSON, in the order of `messageId`. The values of [`MessageType`] are
/// the `messageId`s of the ITS PDU header.
const MESSAGE_TYPES: [(MessageType, &str); 9] = [
    (MessageType::Denm, "denm"),
    (MessageType::Cam, "cam"),
    (MessageType::Spatem, "spatem"),
    (MessageType::Mapem, "mapem"),
    (MessageType::Ivim, "ivim"),
    (MessageType::Srem, "srem"),
    (MessageType::Ssem, "ssem"),
    (MessageType::Cpm, "cpm"),
    (MessageType::Vam, "vam"),
];

impl MessageType {
    /// Every type that has a name, in the order of `messageId`.
    pub const ALL: [Self; MESSAGE_TYPES.len()] = {
        let mut all = [Self::Unknown; MESSAGE_TYPES.len()];
        let mut index = 0;
        while index < all.len() {
            all[index] = MESSAGE_TYPES[index].0;
            index += 1;
        }
        all
    };

    /// Returns the type with that `messageId`, or [`Self::Unknown`] if there is none.
    #[must_use]
    pub fn from_message_id(message_id: u8) -> Self {
        Self::try_from(i32::from(message_id)).unwrap_or(Self::Unknown)
    }

    /// Returns the `messageId` of the ITS PDU header, or 0 for [`Self::Unknown`].
    #[must_use]
    pub const fn message_id(self) -> u8 {
        self as u8
    }

    /// Returns the name in topics, URLs and JSON: `cam`.
    #[must_use]
    pub fn topic_level(self) -> &'static str {
        MESSAGE_TYPES.iter().find(|(kind, _)| *kind == self).map_or("unknown", |(_, name)| name)
    }

    /// Returns the type with that name, or `None` if there is none.
    #[must_use]
    pub fn from_topic_level(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.topic_level() == name)
    }
}

impl Direction {
    /// Returns the name in JSON.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Unspecified => "unspecified",
            Self::Received => "received",
            Self::Sent => "sent",
        }
    }
}

impl Subject {
    /// Returns the name in JSON.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Request => "request",
            Self::Frame => "frame",
            Self::Loss => "loss",
            Self::Clock => "clock",
        }
    }
}

/// Every edition with its message type and the name and version of the standard.
const EDITIONS: [(Edition, MessageType, &str); 10] = [
    (Edition::CamEn3026372V141, MessageType::Cam, "EN 302 637-2 V1.4.1"),
    (Edition::CamTs103900V231, MessageType::Cam, "TS 103 900 V2.3.1"),
    (Edition::DenmTs103831V231, MessageType::Denm, "TS 103 831 V2.3.1"),
    (Edition::CpmTs103324V211, MessageType::Cpm, "TS 103 324 V2.1.1"),
    (Edition::VamTs1033003V231, MessageType::Vam, "TS 103 300-3 V2.3.1"),
    (Edition::IvimTs103301V221, MessageType::Ivim, "TS 103 301 V2.2.1"),
    (Edition::MapemTs103301V221, MessageType::Mapem, "TS 103 301 V2.2.1"),
    (Edition::SpatemTs103301V221, MessageType::Spatem, "TS 103 301 V2.2.1"),
    (Edition::SremTs103301V221, MessageType::Srem, "TS 103 301 V2.2.1"),
    (Edition::SsemTs103301V221, MessageType::Ssem, "TS 103 301 V2.2.1"),
];

impl Edition {
    /// Returns the edition of that message type with that label, or [`Self::Unknown`] if there is none.
    #[must_use]
    pub fn of(message_type: MessageType, label: &str) -> Self {
        let same = |row: &&(Self, MessageType, &str)| row.1 == message_type && row.2 == label;
        EDITIONS.iter().find(same).map_or(Self::Unknown, |row| row.0)
    }

    /// Returns the message type that the edition encodes.
    #[must_use]
    pub fn message_type(self) -> MessageType {
        EDITIONS.iter().find(|row| row.0 == self).map_or(MessageType::Unknown, |row| row.1)
    }

    /// Returns the name and version of the standard.
    #[must_use]
    pub fn label(self) -> &'static str {
        EDITIONS.iter().find(|row| row.0 == self).map_or("unknown", |row| row.2)
    }
}

impl AccessLayer {
    /// Returns the name in JSON.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::UdpMulticast => "udp_multicast",
            Self::Replay => "replay",
            Self::Loopback => "loopback",
            Self::Ethernet => "ethernet",
        }
    }
}

impl SecurityState {
    /// Returns the name in JSON.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Unsecured => "unsecured",
            Self::Unverified => "unverified",
        }
    }
}

impl V2xMessage {
    /// Returns the time at which the packet was received or sent.
    #[must_use]
    pub fn reception(&self) -> Option<Tai> {
        self.reception_time.as_ref().map(tai_of)
    }

    /// Returns the generation time of the message.
    #[must_use]
    pub fn generation(&self) -> Option<Tai> {
        self.generation_time.as_ref().map(tai_of)
    }

    /// Returns the reference position.
    #[must_use]
    pub fn place(&self) -> Option<viaduct_units::Position> {
        self.position.as_ref().map(|at| viaduct_units::Position::new(at.latitude_deg, at.longitude_deg))
    }
}

/// Converts a time to protobuf's form (UTC).
#[must_use]
pub fn timestamp(moment: Tai) -> prost_types::Timestamp {
    let nanos = moment.unix_nanos();
    prost_types::Timestamp {
        seconds: nanos.div_euclid(1_000_000_000),
        nanos: i32::try_from(nanos.rem_euclid(1_000_000_000)).unwrap_or(0),
    }
}

/// Converts a protobuf timestamp. A value outside the range of [`Tai`] saturates.
#[must_use]
pub fn tai_of(timestamp: &prost_types::Timestamp) -> Tai {
    let nanos = timestamp.seconds.saturating_mul(1_000_000_000).saturating_add(i64::from(timestamp.nanos));
    Tai::from_unix_nanos(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_found_by_its_name() {
        for kind in MessageType::ALL {
            assert_eq!(MessageType::from_topic_level(kind.topic_level()), Some(kind));
        }
        assert_eq!(MessageType::from_topic_level("unknown"), None);
    }

    #[test]
    fn every_value_of_an_enumeration_has_a_row() {
        for message_id in 1..=u8::MAX {
            let kind = MessageType::from_message_id(message_id);
            if kind != MessageType::Unknown {
                assert_eq!((kind.message_id(), kind.topic_level()), (message_id, &*kind.as_str_name().to_lowercase()));
            }
        }
        for edition in (1..100).filter_map(|value| Edition::try_from(value).ok()) {
            assert_eq!(Edition::of(edition.message_type(), edition.label()), edition);
            assert!(edition.as_str_name().starts_with(edition.message_type().as_str_name()));
        }
    }

    #[test]
    fn a_timestamp_round_trips() {
        for nanos in [0, 1_726_061_434_092_870_123, -1] {
            let moment = Tai::from_unix_nanos(nanos);
            assert_eq!(tai_of(&timestamp(moment)), moment);
        }
    }
}
