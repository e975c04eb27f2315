//! Path histories and predicted paths.

use rasn::prelude::*;

use super::{
    perception::ConfidenceLevel,
    position::{
        AltitudeConfidence, DeltaAltitude, DeltaLatitude, DeltaLongitude, DeltaReferencePosition, PosConfidenceEllipse,
        StandardLength9b,
    },
    time::{PathDeltaTime, PathDeltaTimeChoice},
};
/// A point of a path, relative to the previous point.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct PathPoint {
    /// Position of the point relative to the previous point.
    #[rasn(identifier = "pathPosition")]
    pub path_position: DeltaReferencePosition,
    /// Time to the next newer point, or to the reference time.
    #[rasn(identifier = "pathDeltaTime")]
    pub path_delta_time: Option<PathDeltaTime>,
}

/// Path history: past positions, the newest first.
///
/// 0 to 40 elements.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("0..=40"))]
pub struct Path(pub Vec<PathPoint>);

/// Path history: past positions, the newest first; name of release 1.
///
/// 0 to 40 elements.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("0..=40"))]
pub struct PathHistory(pub Vec<PathPoint>);

/// A path to a point of an event zone.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct PathExtended {
    /// Index of the point in the zone, 1 to 23.
    #[rasn(value("1..=23"), identifier = "pointOfEventZone")]
    pub point_of_event_zone: u8,
    /// Path history: past positions, the newest first.
    pub path: Path,
}

/// Paths that lead to an event.
///
/// 1 to 7 elements.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=7"))]
pub struct Traces(pub Vec<Path>);

/// Paths that lead to points of an event zone.
///
/// 1 to 7 elements.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=7"))]
pub struct TracesExtended(pub Vec<PathExtended>);

/// A point of a predicted path.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct PathPointPredicted {
    /// Difference of latitude.
    #[rasn(identifier = "deltaLatitude")]
    pub delta_latitude: DeltaLatitude,
    /// Difference of longitude.
    #[rasn(identifier = "deltaLongitude")]
    pub delta_longitude: DeltaLongitude,
    /// Accuracy of the position.
    #[rasn(identifier = "horizontalPositionConfidence")]
    pub horizontal_position_confidence: Option<PosConfidenceEllipse>,
    /// Difference of altitude.
    #[rasn(default = "delta_altitude_unavailable", identifier = "deltaAltitude")]
    pub delta_altitude: DeltaAltitude,
    /// Half of the 95 % interval of an altitude.
    #[rasn(default = "altitude_confidence_unavailable", identifier = "altitudeConfidence")]
    pub altitude_confidence: AltitudeConfidence,
    /// Time from now until the point is reached.
    #[rasn(identifier = "pathDeltaTime")]
    pub path_delta_time: Option<PathDeltaTimeChoice>,
    /// Half of the width of the area around the path; with the other offset, that of its left part.
    #[rasn(identifier = "symmetricAreaOffset")]
    pub symmetric_area_offset: Option<StandardLength9b>,
    /// Width of the right part of the area.
    #[rasn(identifier = "asymmetricAreaOffset")]
    pub asymmetric_area_offset: Option<StandardLength9b>,
}

impl PathPointPredicted {
    /// Creates a value with the mandatory members only.
    #[must_use]
    pub const fn new(delta_latitude: DeltaLatitude, delta_longitude: DeltaLongitude) -> Self {
        Self {
            delta_latitude,
            delta_longitude,
            horizontal_position_confidence: None,
            delta_altitude: delta_altitude_unavailable(),
            altitude_confidence: altitude_confidence_unavailable(),
            path_delta_time: None,
            symmetric_area_offset: None,
            asymmetric_area_offset: None,
        }
    }
}

/// Predicted path.
///
/// 1 to 16 elements; other sizes are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=16", extensible))]
pub struct PathPredicted(pub Vec<PathPointPredicted>);

/// A predicted path with its probability.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct PathPredicted2 {
    /// Predicted path.
    #[rasn(identifier = "pathPredicted")]
    pub path_predicted: PathPredicted,
    /// Purpose of a predicted path.
    #[rasn(identifier = "usageIndication")]
    pub usage_indication: UsageIndication,
    /// Confidence in per cent.
    #[rasn(identifier = "confidenceLevel")]
    pub confidence_level: ConfidenceLevel,
}

impl PathPredicted2 {
    /// Creates a value with these members.
    #[must_use]
    pub const fn new(
        path_predicted: PathPredicted,
        usage_indication: UsageIndication,
        confidence_level: ConfidenceLevel,
    ) -> Self {
        Self { path_predicted, usage_indication, confidence_level }
    }
}

/// A list of predicted paths.
///
/// 1 to 16 elements; other sizes are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=16", extensible))]
pub struct PathPredictedList(pub Vec<PathPredicted2>);

/// Number of a path in the message.
///
/// 0 to 14.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=14"))]
pub struct PathId(pub u8);

impl PathId {
    /// `noPath`.
    pub const NO_PATH: Self = Self(0);
    /// `path1`.
    pub const PATH1: Self = Self(1);
    /// `path2`.
    pub const PATH2: Self = Self(2);
    /// `path3`.
    pub const PATH3: Self = Self(3);
    /// `path4`.
    pub const PATH4: Self = Self(4);
    /// `path5`.
    pub const PATH5: Self = Self(5);
    /// `path6`.
    pub const PATH6: Self = Self(6);
    /// `path7`.
    pub const PATH7: Self = Self(7);
    /// `pathExtended1`.
    pub const PATH_EXTENDED1: Self = Self(8);
    /// `pathExtended2`.
    pub const PATH_EXTENDED2: Self = Self(9);
    /// `pathExtended3`.
    pub const PATH_EXTENDED3: Self = Self(10);
    /// `pathExtended4`.
    pub const PATH_EXTENDED4: Self = Self(11);
    /// `pathExtended5`.
    pub const PATH_EXTENDED5: Self = Self(12);
    /// `pathExtended6`.
    pub const PATH_EXTENDED6: Self = Self(13);
    /// `pathExtended7`.
    pub const PATH_EXTENDED7: Self = Self(14);
}

/// Numbers of paths in the message.
///
/// 1 to 14 elements.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=14"))]
pub struct PathReferences(pub Vec<PathId>);

/// Purpose of a predicted path.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[rasn(enumerated)]
#[non_exhaustive]
pub enum UsageIndication {
    /// `noIndication`.
    #[rasn(identifier = "noIndication")]
    NoIndication,
    /// `specialUse`.
    #[rasn(identifier = "specialUse")]
    SpecialUse,
    /// `rescueOperation`.
    #[rasn(identifier = "rescueOperation")]
    RescueOperation,
    /// `railroad`.
    #[rasn(extension_addition, identifier = "railroad")]
    Railroad,
    /// `fixedRoute`.
    #[rasn(extension_addition, identifier = "fixedRoute")]
    FixedRoute,
    /// `restrictedRoute`.
    #[rasn(extension_addition, identifier = "restrictedRoute")]
    RestrictedRoute,
    /// `adasAd`.
    #[rasn(extension_addition, identifier = "adasAd")]
    AdasAd,
    /// `navigation`.
    #[rasn(extension_addition, identifier = "navigation")]
    Navigation,
}

const fn altitude_confidence_unavailable() -> AltitudeConfidence {
    AltitudeConfidence::Unavailable
}

const fn delta_altitude_unavailable() -> DeltaAltitude {
    DeltaAltitude::UNAVAILABLE
}
