//! Identity and type of an ITS station.

use std::fmt;

/// The identifier of an ITS station (`StationId`, TS 102 894-2), 0 to 4 294 967 295.
///
/// A station may change its identifier to protect the privacy of its user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StationId(pub u32);

impl StationId {
    /// Returns the number that messages carry.
    #[must_use]
    pub const fn value(self) -> u32 {
        self.0
    }
}

impl From<u32> for StationId {
    fn from(number: u32) -> Self {
        Self(number)
    }
}

impl From<StationId> for u32 {
    fn from(id: StationId) -> Self {
        id.0
    }
}

impl fmt::Display for StationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The type of an ITS station (`StationType`, which release 2 calls `TrafficParticipantType`; TS 102 894-2), 0 to 255.
///
/// A GeoNetworking address has room for 0 to 31 only (EN 302 636-4-1, 6.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StationType(pub u8);

impl StationType {
    /// A station of unknown type.
    pub const UNKNOWN: Self = Self(0);
    /// A pedestrian.
    pub const PEDESTRIAN: Self = Self(1);
    /// A cyclist.
    pub const CYCLIST: Self = Self(2);
    /// A moped.
    pub const MOPED: Self = Self(3);
    /// A motorcycle.
    pub const MOTORCYCLE: Self = Self(4);
    /// A passenger car.
    pub const PASSENGER_CAR: Self = Self(5);
    /// A bus.
    pub const BUS: Self = Self(6);
    /// A truck of at most 3.5 t.
    pub const LIGHT_TRUCK: Self = Self(7);
    /// A truck of more than 3.5 t.
    pub const HEAVY_TRUCK: Self = Self(8);
    /// A trailer.
    pub const TRAILER: Self = Self(9);
    /// A vehicle with a special purpose, for example a road works vehicle.
    pub const SPECIAL_VEHICLE: Self = Self(10);
    /// A tram.
    pub const TRAM: Self = Self(11);
    /// A light vehicle of a vulnerable road user, for example inline skates.
    pub const LIGHT_VRU_VEHICLE: Self = Self(12);
    /// An animal.
    pub const ANIMAL: Self = Self(13);
    /// An agricultural or forestry vehicle.
    pub const AGRICULTURAL: Self = Self(14);
    /// A roadside unit.
    pub const ROADSIDE_UNIT: Self = Self(15);

    /// Returns the number that messages carry.
    #[must_use]
    pub const fn value(self) -> u8 {
        self.0
    }

    /// Returns `true` if this is a roadside unit, which does not move.
    #[must_use]
    pub const fn is_roadside_unit(self) -> bool {
        self.0 == Self::ROADSIDE_UNIT.0
    }
}

impl From<u8> for StationType {
    fn from(number: u8) -> Self {
        Self(number)
    }
}

impl From<StationType> for u8 {
    fn from(station_type: StationType) -> Self {
        station_type.0
    }
}

impl From<StationType> for u32 {
    fn from(station_type: StationType) -> Self {
        station_type.0.into()
    }
}

impl fmt::Display for StationType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
