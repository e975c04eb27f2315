//! Road events that a DENM reports.

use super::bits::variable_bit_string;
use rasn::prelude::*;

use super::{header::StationType, position::DeltaReferencePosition, time::PathDeltaTime};
/// Quality of the information, from lowest (0) to highest (7).
///
/// 0 to 7.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=7"))]
pub struct InformationQuality(pub u8);

/// A point of an event's zone, relative to the previous point.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct EventPoint {
    /// Position of the point relative to the previous point.
    #[rasn(identifier = "eventPosition")]
    pub event_position: DeltaReferencePosition,
    /// Time to the next newer point, or to the detection.
    #[rasn(identifier = "eventDeltaTime")]
    pub event_delta_time: Option<PathDeltaTime>,
    /// Quality of the information, 0 (lowest) to 7.
    #[rasn(identifier = "informationQuality")]
    pub information_quality: InformationQuality,
}

/// Points at which an event was detected, the newest first.
///
/// 1 to 23 elements.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=23"))]
pub struct EventHistory(pub Vec<EventPoint>);

/// Points of the zone of an event. Either all points have a time or none has.
///
/// 1 to 23 elements.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=23"))]
pub struct EventZone(pub Vec<EventPoint>);

/// Traffic direction that an event affects.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[rasn(enumerated)]
pub enum TrafficDirection {
    /// `allTrafficDirections`.
    #[rasn(identifier = "allTrafficDirections")]
    AllTrafficDirections,
    /// `sameAsReferenceDirection-upstreamOfReferencePosition`.
    #[rasn(identifier = "sameAsReferenceDirection-upstreamOfReferencePosition")]
    SameAsReferenceDirectionUpstreamOfReferencePosition,
    /// `sameAsReferenceDirection-downstreamOfReferencePosition`.
    #[rasn(identifier = "sameAsReferenceDirection-downstreamOfReferencePosition")]
    SameAsReferenceDirectionDownstreamOfReferencePosition,
    /// `oppositeToReferenceDirection`.
    #[rasn(identifier = "oppositeToReferenceDirection")]
    OppositeToReferenceDirection,
}

/// A factor.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[rasn(enumerated)]
#[non_exhaustive]
pub enum MultiplicativeFactor {
    /// `tenth`.
    #[rasn(identifier = "tenth")]
    Tenth,
    /// `half`.
    #[rasn(identifier = "half")]
    Half,
    /// `two`.
    #[rasn(identifier = "two")]
    Two,
    /// `three`.
    #[rasn(identifier = "three")]
    Three,
    /// `five`.
    #[rasn(identifier = "five")]
    Five,
    /// `ten`.
    #[rasn(identifier = "ten")]
    Ten,
    /// `fifty`.
    #[rasn(identifier = "fifty")]
    Fifty,
    /// `hundred`.
    #[rasn(identifier = "hundred")]
    Hundred,
}

/// Overtaking rule.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[rasn(enumerated)]
#[non_exhaustive]
pub enum TrafficRule {
    /// `noPassing`.
    #[rasn(identifier = "noPassing")]
    NoPassing,
    /// `noPassingForTrucks`.
    #[rasn(identifier = "noPassingForTrucks")]
    NoPassingForTrucks,
    /// `passToRight`.
    #[rasn(identifier = "passToRight")]
    PassToRight,
    /// `passToLeft`.
    #[rasn(identifier = "passToLeft")]
    PassToLeft,
    /// `passToLeftOrRight`.
    #[rasn(extension_addition, identifier = "passToLeftOrRight")]
    PassToLeftOrRight,
}

/// Types of vehicles that may enter.
///
/// 1 to 3 elements; other sizes are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=3", extensible))]
pub struct RestrictedTypes(pub Vec<StationType>);

/// Closed lanes of a road.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct ClosedLanes {
    /// The inner hard shoulder.
    #[rasn(identifier = "innerhardShoulderStatus")]
    pub innerhard_shoulder_status: Option<HardShoulderStatus>,
    /// The outer hard shoulder.
    #[rasn(identifier = "outerhardShoulderStatus")]
    pub outerhard_shoulder_status: Option<HardShoulderStatus>,
    /// Closed driving lanes.
    #[rasn(identifier = "drivingLaneStatus")]
    pub driving_lane_status: Option<DrivingLaneStatus>,
}

impl ClosedLanes {
    /// Creates a value with the mandatory members only.
    #[must_use]
    pub const fn new() -> Self {
        Self { innerhard_shoulder_status: None, outerhard_shoulder_status: None, driving_lane_status: None }
    }
}

impl Default for ClosedLanes {
    fn default() -> Self {
        Self::new()
    }
}

/// Permitted use of a hard shoulder.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[rasn(enumerated)]
pub enum HardShoulderStatus {
    /// `availableForStopping`.
    #[rasn(identifier = "availableForStopping")]
    AvailableForStopping,
    /// `closed`.
    #[rasn(identifier = "closed")]
    Closed,
    /// `availableForDriving`.
    #[rasn(identifier = "availableForDriving")]
    AvailableForDriving,
}

/// One bit for each lane, the outermost first. A set bit is a closed lane.
///
/// 1 to 13 bits.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(delegate, size("1..=13"))]
pub struct DrivingLaneStatus(pub BitString);

variable_bit_string!(DrivingLaneStatus);
