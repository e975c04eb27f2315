//! Properties and position of a station.

use viaduct_units::{Degrees, MetresPerSecond, Position, StationType, Tai};

use crate::{access::MacAddress, security::SecurityPolicy};

/// Properties of a station that stay constant while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StationSettings {
    /// Link address; the GeoNetworking address is made from it.
    pub link_address: MacAddress,
    /// ITS-S type of the GeoNetworking address, 0 to 31: 5 is a passenger car, 15 a roadside unit.
    pub station_type: StationType,
    /// `true` if the station can move (`itsGnIsMobile`).
    pub mobile: bool,
    /// `true` to send beacons while nothing else is sent (EN 302 636-4-1, 10.3.6).
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

/// Position and movement of the station.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ego {
    /// Time at which the values below were true.
    pub time: Tai,
    /// Position at that time.
    pub position: Position,
    /// `true` if the 95 % confidence ellipse is within `itsGnPaiInterval` (80 m).
    pub position_accurate: bool,
    /// Speed along the heading, negative if the station moves backwards.
    pub speed: MetresPerSecond,
    /// Heading of the movement, or `None` if unknown.
    pub heading: Option<Degrees>,
}
