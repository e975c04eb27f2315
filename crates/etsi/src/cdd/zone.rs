//! Zones that are protected from interference.

use super::extensible::extensible_integer;
use rasn::prelude::*;

use super::{
    position::{Latitude, Longitude},
    time::TimestampIts,
};
/// Kind of a protected zone.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[rasn(enumerated)]
#[non_exhaustive]
pub enum ProtectedZoneType {
    /// `permanentCenDsrcTolling`.
    #[rasn(identifier = "permanentCenDsrcTolling")]
    PermanentCenDsrcTolling,
    /// `temporaryCenDsrcTolling`.
    #[rasn(extension_addition, identifier = "temporaryCenDsrcTolling")]
    TemporaryCenDsrcTolling,
}

/// Number of a protected zone.
///
/// 0 to 134 217 727.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=134217727"))]
pub struct ProtectedZoneId(pub u32);

/// Radius of a protected zone in m.
///
/// 1 to 255; other values are extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProtectedZoneRadius(pub i64);

extensible_integer!(ProtectedZoneRadius, 1, 255);

/// A zone in which transmissions are restricted.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct ProtectedCommunicationZone {
    /// Kind of a protected zone.
    #[rasn(identifier = "protectedZoneType")]
    pub protected_zone_type: ProtectedZoneType,
    /// Time until which the zone is protected.
    #[rasn(identifier = "expiryTime")]
    pub expiry_time: Option<TimestampIts>,
    /// Latitude of the centre.
    #[rasn(identifier = "protectedZoneLatitude")]
    pub protected_zone_latitude: Latitude,
    /// Longitude of the centre.
    #[rasn(identifier = "protectedZoneLongitude")]
    pub protected_zone_longitude: Longitude,
    /// Radius of a protected zone in m.
    #[rasn(identifier = "protectedZoneRadius")]
    pub protected_zone_radius: Option<ProtectedZoneRadius>,
    /// Number of a protected zone.
    #[rasn(identifier = "protectedZoneId")]
    pub protected_zone_id: Option<ProtectedZoneId>,
}

impl ProtectedCommunicationZone {
    /// Creates a value with the mandatory members only.
    #[must_use]
    pub const fn new(
        protected_zone_type: ProtectedZoneType,
        protected_zone_latitude: Latitude,
        protected_zone_longitude: Longitude,
    ) -> Self {
        Self {
            protected_zone_type,
            expiry_time: None,
            protected_zone_latitude,
            protected_zone_longitude,
            protected_zone_radius: None,
            protected_zone_id: None,
        }
    }
}

/// Protected zones that a roadside unit announces; ASN.1 name `ProtectedCommunicationZonesRSU`.
///
/// 1 to 16 elements.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=16"))]
pub struct ProtectedCommunicationZonesRsu(pub Vec<ProtectedCommunicationZone>);

/// A zone of a tolling station at 5.8 GHz.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct CenDsrcTollingZone {
    /// Latitude of the centre.
    #[rasn(identifier = "protectedZoneLatitude")]
    pub protected_zone_latitude: Latitude,
    /// Longitude of the centre.
    #[rasn(identifier = "protectedZoneLongitude")]
    pub protected_zone_longitude: Longitude,
    /// Number of the protected zone.
    #[rasn(identifier = "cenDsrcTollingZoneId")]
    pub cen_dsrc_tolling_zone_id: Option<ProtectedZoneId>,
}

impl CenDsrcTollingZone {
    /// Creates a value with the mandatory members only.
    #[must_use]
    pub const fn new(protected_zone_latitude: Latitude, protected_zone_longitude: Longitude) -> Self {
        Self { protected_zone_latitude, protected_zone_longitude, cen_dsrc_tolling_zone_id: None }
    }
}
