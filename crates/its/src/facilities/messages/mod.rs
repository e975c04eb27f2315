//! Messages of the facilities layer and their content in SI units.
//!
//! Scaled integers and "unavailable" codes end here: [`Summary`] contains the known values as quantities, and the `build`
//! function of each message makes a message from them.

pub mod cam;
pub mod cpm;
pub mod denm;
mod dictionary;
mod infrastructure;
mod minute_of_year;
mod path;
pub(super) mod scale;
mod shape;
pub mod vam;

pub use dictionary::ConfidenceEllipse;
pub use path::{PathPoint, PredictedPoint};
pub use shape::{Offset, Outline, Shape};

use viaduct_etsi::{
    UperError, cam_ts103900_v231, cpm_ts103324_v211, denm_ts103831_v231, ivim_ts103301_v221, mapem_ts103301_v221,
    pdu_header, spatem_ts103301_v221, srem_ts103301_v221, ssem_ts103301_v221, vam_ts103300_3_v231,
};
use viaduct_units::{Degrees, Metres, MetresPerSecond, Position, Tai};

use crate::{
    DropReason,
    btp::ports,
    geonet::{Lifetime, TrafficClass, mib},
};

/// A message that is decoded and sent, in the one edition of it that there is a decoder for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MessageKind {
    /// Cooperative awareness, TS 103 900 V2.3.1; one of release 1 (EN 302 637-2) too.
    Cam,
    /// Environmental notification, TS 103 831 V2.3.1; one of release 1 (EN 302 637-3) too.
    Denm,
    /// Collective perception, TS 103 324 V2.1.1.
    Cpm,
    /// Vulnerable road user awareness, TS 103 300-3 V2.3.1.
    Vam,
    /// Infrastructure to vehicle information, TS 103 301 V2.2.1.
    Ivim,
    /// Road and lane topology, TS 103 301 V2.2.1.
    Mapem,
    /// Traffic light manoeuvre, TS 103 301 V2.2.1.
    Spatem,
    /// Request for priority at traffic lights, TS 103 301 V2.2.1.
    Srem,
    /// Status of requests for priority, TS 103 301 V2.2.1.
    Ssem,
}

impl MessageKind {
    /// Every kind.
    pub const ALL: [Self; 9] =
        [Self::Cam, Self::Denm, Self::Cpm, Self::Vam, Self::Ivim, Self::Mapem, Self::Spatem, Self::Srem, Self::Ssem];

    /// The name as topics and JSON have it.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Cam => "cam",
            Self::Denm => "denm",
            Self::Cpm => "cpm",
            Self::Vam => "vam",
            Self::Ivim => "ivim",
            Self::Mapem => "mapem",
            Self::Spatem => "spatem",
            Self::Srem => "srem",
            Self::Ssem => "ssem",
        }
    }

    /// The kind of that name, where there is one.
    #[must_use]
    pub fn from_label(label: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.label() == label)
    }

    /// The standard's name and version.
    #[must_use]
    pub const fn edition(self) -> &'static str {
        match self {
            Self::Cam => cam_ts103900_v231::EDITION,
            Self::Denm => denm_ts103831_v231::EDITION,
            Self::Cpm => cpm_ts103324_v211::EDITION,
            Self::Vam => vam_ts103300_3_v231::EDITION,
            Self::Ivim => ivim_ts103301_v221::EDITION,
            Self::Mapem => mapem_ts103301_v221::EDITION,
            Self::Spatem => spatem_ts103301_v221::EDITION,
            Self::Srem => srem_ts103301_v221::EDITION,
            Self::Ssem => ssem_ts103301_v221::EDITION,
        }
    }

    /// `messageId` of the ITS PDU header.
    #[must_use]
    pub const fn message_id(self) -> u8 {
        match self {
            Self::Cam => cam_ts103900_v231::MESSAGE_ID,
            Self::Denm => denm_ts103831_v231::MESSAGE_ID,
            Self::Cpm => cpm_ts103324_v211::MESSAGE_ID,
            Self::Vam => vam_ts103300_3_v231::MESSAGE_ID,
            Self::Ivim => ivim_ts103301_v221::MESSAGE_ID,
            Self::Mapem => mapem_ts103301_v221::MESSAGE_ID,
            Self::Spatem => spatem_ts103301_v221::MESSAGE_ID,
            Self::Srem => srem_ts103301_v221::MESSAGE_ID,
            Self::Ssem => ssem_ts103301_v221::MESSAGE_ID,
        }
    }

    /// `protocolVersion` of the ITS PDU header.
    #[must_use]
    pub const fn protocol_version(self) -> u8 {
        match self {
            Self::Cam => cam_ts103900_v231::PROTOCOL_VERSION,
            Self::Denm => denm_ts103831_v231::PROTOCOL_VERSION,
            Self::Cpm => cpm_ts103324_v211::PROTOCOL_VERSION,
            Self::Vam => vam_ts103300_3_v231::PROTOCOL_VERSION,
            Self::Ivim => ivim_ts103301_v221::PROTOCOL_VERSION,
            Self::Mapem => mapem_ts103301_v221::PROTOCOL_VERSION,
            Self::Spatem => spatem_ts103301_v221::PROTOCOL_VERSION,
            Self::Srem => srem_ts103301_v221::PROTOCOL_VERSION,
            Self::Ssem => ssem_ts103301_v221::PROTOCOL_VERSION,
        }
    }

    /// BTP destination port.
    #[must_use]
    pub const fn btp_port(self) -> u16 {
        match self {
            Self::Cam => ports::CAM,
            Self::Denm => ports::DENM,
            Self::Cpm => ports::CPM,
            Self::Vam => ports::VAM,
            Self::Ivim => ports::IVIM,
            Self::Mapem => ports::MAPEM,
            Self::Spatem => ports::SPATEM,
            Self::Srem => ports::SREM,
            Self::Ssem => ports::SSEM,
        }
    }

    /// Traffic class that a station sends it with (TS 103 175; a DENM's first packet has [`TrafficClass::DP0`]).
    #[must_use]
    pub const fn traffic_class(self) -> TrafficClass {
        match self {
            Self::Denm => TrafficClass::DP1,
            Self::Cam | Self::Vam => TrafficClass::DP2,
            Self::Cpm => TrafficClass::DP3,
            Self::Ivim | Self::Mapem | Self::Spatem | Self::Srem | Self::Ssem => TrafficClass::DP3,
        }
    }

    /// How long its packet may travel: at most one second (TS 103 900, 5.3.4.1; TS 103 324 and TS 103 300-3 alike), since an
    /// older one says where somebody was. A DENM's is its validity, at most `itsGnMaxPacketLifetime` (600 s), which is here.
    #[must_use]
    pub const fn lifetime(self) -> Lifetime {
        match self {
            Self::Cam | Self::Cpm | Self::Vam => Lifetime::from_parts(1, 1),
            Self::Denm => Lifetime::from_parts(60, 2),
            // What they say of lights and requests changes as quickly.
            Self::Spatem | Self::Srem | Self::Ssem => Lifetime::from_parts(1, 1),
            // Signs and lanes stay.
            Self::Ivim | Self::Mapem => mib::ITS_GN_DEFAULT_PACKET_LIFETIME,
        }
    }
}

/// The kind of a message by its BTP port, if the message's own header agrees.
///
/// # Errors
/// Why a station drops it.
pub(crate) fn kind_of(btp_port: u16, payload: &[u8]) -> Result<MessageKind, DropReason> {
    let Some(kind) = MessageKind::ALL.into_iter().find(|kind| kind.btp_port() == btp_port) else {
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

/// A message decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Cooperative awareness.
    Cam(Box<cam_ts103900_v231::Cam>),
    /// Environmental notification.
    Denm(Box<denm_ts103831_v231::Denm>),
    /// Collective perception.
    Cpm(Box<cpm_ts103324_v211::Cpm>),
    /// Vulnerable road user awareness.
    Vam(Box<vam_ts103300_3_v231::Vam>),
    /// Infrastructure to vehicle information.
    Ivim(Box<ivim_ts103301_v221::Ivim>),
    /// Road and lane topology.
    Mapem(Box<mapem_ts103301_v221::Mapem>),
    /// Traffic light manoeuvre.
    Spatem(Box<spatem_ts103301_v221::Spatem>),
    /// Request for priority at traffic lights.
    Srem(Box<srem_ts103301_v221::Srem>),
    /// Status of requests for priority.
    Ssem(Box<ssem_ts103301_v221::Ssem>),
}

impl Message {
    /// Decodes a message from UPER.
    ///
    /// # Errors
    /// Octets that are not just one message of that kind.
    pub fn decode(kind: MessageKind, octets: &[u8]) -> Result<Self, UperError> {
        Ok(match kind {
            MessageKind::Cam => Self::Cam(Box::new(cam_ts103900_v231::decode(octets)?)),
            MessageKind::Denm => Self::Denm(Box::new(denm_ts103831_v231::decode(octets)?)),
            MessageKind::Cpm => Self::Cpm(Box::new(cpm_ts103324_v211::decode(octets)?)),
            MessageKind::Vam => Self::Vam(Box::new(vam_ts103300_3_v231::decode(octets)?)),
            MessageKind::Ivim => Self::Ivim(Box::new(ivim_ts103301_v221::decode(octets)?)),
            MessageKind::Mapem => Self::Mapem(Box::new(mapem_ts103301_v221::decode(octets)?)),
            MessageKind::Spatem => Self::Spatem(Box::new(spatem_ts103301_v221::decode(octets)?)),
            MessageKind::Srem => Self::Srem(Box::new(srem_ts103301_v221::decode(octets)?)),
            MessageKind::Ssem => Self::Ssem(Box::new(ssem_ts103301_v221::decode(octets)?)),
        })
    }

    /// Reads a message from its JSON form.
    ///
    /// # Errors
    /// What is wrong with the text, and where.
    pub fn from_json(kind: MessageKind, text: &[u8]) -> Result<Self, viaduct_etsi::JsonError> {
        Ok(match kind {
            MessageKind::Cam => Self::Cam(Box::new(cam_ts103900_v231::from_json(text)?)),
            MessageKind::Denm => Self::Denm(Box::new(denm_ts103831_v231::from_json(text)?)),
            MessageKind::Cpm => Self::Cpm(Box::new(cpm_ts103324_v211::from_json(text)?)),
            MessageKind::Vam => Self::Vam(Box::new(vam_ts103300_3_v231::from_json(text)?)),
            MessageKind::Ivim => Self::Ivim(Box::new(ivim_ts103301_v221::from_json(text)?)),
            MessageKind::Mapem => Self::Mapem(Box::new(mapem_ts103301_v221::from_json(text)?)),
            MessageKind::Spatem => Self::Spatem(Box::new(spatem_ts103301_v221::from_json(text)?)),
            MessageKind::Srem => Self::Srem(Box::new(srem_ts103301_v221::from_json(text)?)),
            MessageKind::Ssem => Self::Ssem(Box::new(ssem_ts103301_v221::from_json(text)?)),
        })
    }

    /// Encodes the message in UPER.
    ///
    /// # Errors
    /// A value outside its range.
    pub fn encode(&self) -> Result<Vec<u8>, UperError> {
        match self {
            Self::Cam(cam) => cam_ts103900_v231::encode(cam),
            Self::Denm(denm) => denm_ts103831_v231::encode(denm),
            Self::Cpm(cpm) => cpm_ts103324_v211::encode(cpm),
            Self::Vam(vam) => vam_ts103300_3_v231::encode(vam),
            Self::Ivim(ivim) => ivim_ts103301_v221::encode(ivim),
            Self::Mapem(mapem) => mapem_ts103301_v221::encode(mapem),
            Self::Spatem(spatem) => spatem_ts103301_v221::encode(spatem),
            Self::Srem(srem) => srem_ts103301_v221::encode(srem),
            Self::Ssem(ssem) => ssem_ts103301_v221::encode(ssem),
        }
    }

    /// Appends the JSON form (ASN.1 names, raw ETSI integers) to `out`.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            Self::Cam(cam) => cam_ts103900_v231::write_json(cam, out),
            Self::Denm(denm) => denm_ts103831_v231::write_json(denm, out),
            Self::Cpm(cpm) => cpm_ts103324_v211::write_json(cpm, out),
            Self::Vam(vam) => vam_ts103300_3_v231::write_json(vam, out),
            Self::Ivim(ivim) => ivim_ts103301_v221::write_json(ivim, out),
            Self::Mapem(mapem) => mapem_ts103301_v221::write_json(mapem, out),
            Self::Spatem(spatem) => spatem_ts103301_v221::write_json(spatem, out),
            Self::Srem(srem) => srem_ts103301_v221::write_json(srem, out),
            Self::Ssem(ssem) => ssem_ts103301_v221::write_json(ssem, out),
        }
    }

    /// Which message it is.
    #[must_use]
    pub const fn kind(&self) -> MessageKind {
        match self {
            Self::Cam(_) => MessageKind::Cam,
            Self::Denm(_) => MessageKind::Denm,
            Self::Cpm(_) => MessageKind::Cpm,
            Self::Vam(_) => MessageKind::Vam,
            Self::Ivim(_) => MessageKind::Ivim,
            Self::Mapem(_) => MessageKind::Mapem,
            Self::Spatem(_) => MessageKind::Spatem,
            Self::Srem(_) => MessageKind::Srem,
            Self::Ssem(_) => MessageKind::Ssem,
        }
    }

    /// What nearly everybody asks for; times that the message has wrapped are widened to the moment nearest to `reception`.
    #[must_use]
    pub fn summary(&self, reception: Tai) -> Summary {
        match self {
            Self::Cam(cam) => cam::summary(cam, reception),
            Self::Denm(denm) => denm::summary(denm),
            Self::Cpm(cpm) => cpm::summary(cpm, reception),
            Self::Vam(vam) => vam::summary(vam, reception),
            Self::Ivim(ivim) => infrastructure::ivim(ivim),
            Self::Mapem(mapem) => infrastructure::mapem(mapem),
            Self::Spatem(spatem) => infrastructure::spatem(spatem, reception),
            Self::Srem(srem) => infrastructure::srem(srem, reception),
            Self::Ssem(ssem) => infrastructure::ssem(ssem, reception),
        }
    }
}

/// What nearly everybody asks a message for. What it does not say is `None`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Identifier of the station that generated the message.
    pub station_id: u32,
    /// Type of that station (`StationType`, TS 102 894-2: 5 is a passenger car, 15 a roadside unit). A CPM does not say.
    pub station_type: Option<u8>,
    /// When the message was generated.
    pub generation: Option<Tai>,
    /// Reference position; of a DENM that of the event.
    pub position: Option<Position>,
    /// Altitude above the WGS 84 ellipsoid.
    pub altitude: Option<Metres>,
    /// Speed over ground.
    pub speed: Option<MetresPerSecond>,
    /// Heading of a CAM or VAM, of a DENM's event, orientation of a CPM's vehicle, 0 up to 360.
    pub heading: Option<Degrees>,
}
