//! Names and readings of the V2X message that generated code does not have.

use viaduct_units::Tai;

use crate::viaduct::its::v2x_error::Subject;
use crate::viaduct::its::{AccessLayer, Direction, Edition, MessageType, SecurityState, V2xMessage};

impl MessageType {
    /// Every type that has a name, in the order of the standard's numbers.
    pub const ALL: [Self; 9] =
        [Self::Denm, Self::Cam, Self::Spatem, Self::Mapem, Self::Ivim, Self::Srem, Self::Ssem, Self::Cpm, Self::Vam];

    /// The name as topics, URLs and JSON have it: `cam`.
    #[must_use]
    pub const fn topic_level(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Denm => "denm",
            Self::Cam => "cam",
            Self::Spatem => "spatem",
            Self::Mapem => "mapem",
            Self::Ivim => "ivim",
            Self::Srem => "srem",
            Self::Ssem => "ssem",
            Self::Cpm => "cpm",
            Self::Vam => "vam",
        }
    }

    /// The type of that name, where there is one.
    #[must_use]
    pub fn from_topic_level(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.topic_level() == name)
    }
}

impl Direction {
    /// The name as JSON has it.
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
    /// The name as JSON has it.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Request => "request",
            Self::Frame => "frame",
            Self::Loss => "loss",
        }
    }
}

impl Edition {
    /// The standard's name and version.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::CamEn3026372V141 => "EN 302 637-2 V1.4.1",
            Self::CpmTs103324V211 => "TS 103 324 V2.1.1",
            Self::CamTs103900V231 => "TS 103 900 V2.3.1",
            Self::DenmTs103831V231 => "TS 103 831 V2.3.1",
            Self::VamTs1033003V231 => "TS 103 300-3 V2.3.1",
            Self::IvimTs103301V221
            | Self::MapemTs103301V221
            | Self::SpatemTs103301V221
            | Self::SremTs103301V221
            | Self::SsemTs103301V221 => "TS 103 301 V2.2.1",
        }
    }
}

impl AccessLayer {
    /// The name as JSON has it.
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
    /// The name as JSON has it.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Unsecured => "unsecured",
            Self::SecuredNotVerified => "secured_not_verified",
        }
    }
}

impl V2xMessage {
    /// When the packet was received or sent.
    #[must_use]
    pub fn reception(&self) -> Option<Tai> {
        self.reception_time.as_ref().map(tai_of)
    }

    /// When the message was generated.
    #[must_use]
    pub fn generation(&self) -> Option<Tai> {
        self.generation_time.as_ref().map(tai_of)
    }

    /// The reference position.
    #[must_use]
    pub fn place(&self) -> Option<viaduct_units::Position> {
        self.position.as_ref().map(|at| viaduct_units::Position::new(at.latitude_deg, at.longitude_deg))
    }
}

/// The protobuf form (UTC) of a moment.
#[must_use]
pub fn timestamp(moment: Tai) -> prost_types::Timestamp {
    let nanos = moment.unix_nanos();
    prost_types::Timestamp {
        seconds: nanos.div_euclid(1_000_000_000),
        nanos: i32::try_from(nanos.rem_euclid(1_000_000_000)).unwrap_or(0),
    }
}

/// The moment of a protobuf timestamp; one outside the range of [`Tai`] saturates.
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
    fn a_timestamp_round_trips() {
        for nanos in [0, 1_726_061_434_092_870_123, -1] {
            let moment = Tai::from_unix_nanos(nanos);
            assert_eq!(tai_of(&timestamp(moment)), moment);
        }
    }
}
