//! What a station is, and where it is.

use viaduct_units::{Degrees, MetresPerSecond, Position, StationType, Tai};

use crate::{access::MacAddress, security::SecurityPolicy};

/// What a station is, for as long as it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StationSettings {
    /// Address on the link; the GeoNetworking address is made from it.
    pub link_address: MacAddress,
    /// ITS-S type of the GeoNetworking address, 0 to 31: 5 is a passenger car, 15 a roadside unit.
    pub station_type: StationType,
    /// Whether the station can move (`itsGnIsMobile`).
    pub mobile: bool,
    /// Whether to send beacons while nothing else is sent (EN 302 636-4-1, 10.3.6).
    pub beacons: bool,
}

/// Packets that are accepted besides unsecured ones of GeoNetworking version 1. The default is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acceptance {
    /// Treatment of signed packets.
    pub security: SecurityPolicy,
    /// `true` if packets of GeoNetworking version 0 (EN 302 636-4-1 V1.2.1) are accepted. Their headers have the same layout.
    pub version_0: bool,
}

/// Where the station is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ego {
    /// When it was there.
    pub time: Tai,
    /// Where it was.
    pub position: Position,
    /// Whether the 95 % confidence ellipse is within `itsGnPaiInterval` (80 m).
    pub position_accurate: bool,
    /// Speed along the heading, negative backwards.
    pub speed: MetresPerSecond,
    /// Heading of the movement.
    pub heading: Option<Degrees>,
}
