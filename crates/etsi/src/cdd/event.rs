//! Events of the road that a DENM tells of.

use super::bits::variable_bit_string;
use rasn::prelude::*;

use super::{header::StationType, position::DeltaReferencePosition, time::PathDeltaTime};
/// How good the information is, from lowest (0) to highest.
///
/// 0 to 7.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=7"))]
pub struct InformationQuality(pub u8);

/// A point of an event's zone, relative to the one before.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct EventPoint {
    /// Where the point is.
    #[rasn(identifier = "eventPosition")]
    pub event_position: DeltaReferencePosition,
    /// Time to the next newer point, or to the detection.
    #[rasn(identifier = "eventDeltaTime")]
    pub event_delta_time: Option<PathDeltaTime>,
    /// How good the information is.
    #[rasn(identifier = "informationQuality")]
    pub information_quality: InformationQuality,
}

/// Where an event was detected, the newest point first.
///
/// 1 to 23 elements.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=23"))]
pub struct EventHistory(pub Vec<EventPoint>);

/// Where an event is: all points with times, or all without.
///
/// 1 to 23 elements.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=23"))]
pub struct EventZone(pub Vec<EventPoint>);

/// Traffic of which direction an event concerns.
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

/// How to pass.
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

/// Types of vehicles that are let in.
///
/// 1 to 3 elements; other sizes are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=3", extensible))]
pub struct RestrictedTypes(pub Vec<StationType>);

/// Which lanes are closed.
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
    /// Which lanes are closed.
    #[rasn(identifier = "drivingLaneStatus")]
    pub driving_lane_status: Option<DrivingLaneStatus>,
}

impl ClosedLanes {
    /// With the mandatory members only.
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

/// What a hard shoulder may be used for.
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

/// One bit a lane, outermost first; set is closed.
///
/// 1 to 13 bits.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(delegate, size("1..=13"))]
pub struct DrivingLaneStatus(pub BitString);

variable_bit_string!(DrivingLaneStatus);
