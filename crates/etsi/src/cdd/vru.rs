//! Vulnerable road users.

use super::bits::small_bit_string;
use rasn::prelude::*;

use super::{
    header::{CardinalNumber1B, Identifier1B, StationId},
    shape::Shape,
    time::{DeltaTimeQuarterSecond, DeltaTimeTenthOfSecond},
    vehicle::ExteriorLights,
};
/// Kind of a pedestrian.
///
/// 0 to 15.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=15"))]
pub struct VruSubProfilePedestrian(pub u8);

impl VruSubProfilePedestrian {
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(0);
    /// `ordinary-pedestrian`.
    pub const ORDINARY_PEDESTRIAN: Self = Self(1);
    /// `road-worker`.
    pub const ROAD_WORKER: Self = Self(2);
    /// `first-responder`.
    pub const FIRST_RESPONDER: Self = Self(3);
}

/// Kind of a cyclist or light vehicle.
///
/// 0 to 15.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=15"))]
pub struct VruSubProfileBicyclist(pub u8);

impl VruSubProfileBicyclist {
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(0);
    /// `bicyclist`.
    pub const BICYCLIST: Self = Self(1);
    /// `wheelchair-user`.
    pub const WHEELCHAIR_USER: Self = Self(2);
    /// `horse-and-rider`.
    pub const HORSE_AND_RIDER: Self = Self(3);
    /// `rollerskater`.
    pub const ROLLERSKATER: Self = Self(4);
    /// `e-scooter`.
    pub const E_SCOOTER: Self = Self(5);
    /// `personal-transporter`.
    pub const PERSONAL_TRANSPORTER: Self = Self(6);
    /// `pedelec`.
    pub const PEDELEC: Self = Self(7);
    /// `speed-pedelec`.
    pub const SPEED_PEDELEC: Self = Self(8);
    /// `roadbike`.
    pub const ROADBIKE: Self = Self(9);
    /// `childrensbike`.
    pub const CHILDRENSBIKE: Self = Self(10);
    /// `racebike`.
    pub const RACEBIKE: Self = Self(11);
}

/// Kind of a motorcyclist.
///
/// 0 to 15.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=15"))]
pub struct VruSubProfileMotorcyclist(pub u8);

impl VruSubProfileMotorcyclist {
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(0);
    /// `moped`.
    pub const MOPED: Self = Self(1);
    /// `motorcycle`.
    pub const MOTORCYCLE: Self = Self(2);
    /// `motorcycle-and-sidecar-right`.
    pub const MOTORCYCLE_AND_SIDECAR_RIGHT: Self = Self(3);
    /// `motorcycle-and-sidecar-left`.
    pub const MOTORCYCLE_AND_SIDECAR_LEFT: Self = Self(4);
}

/// Kind of an animal.
///
/// 0 to 15.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=15"))]
pub struct VruSubProfileAnimal(pub u8);

impl VruSubProfileAnimal {
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(0);
    /// `wild-animal`.
    pub const WILD_ANIMAL: Self = Self(1);
    /// `farm-animal`.
    pub const FARM_ANIMAL: Self = Self(2);
    /// `service-animal`.
    pub const SERVICE_ANIMAL: Self = Self(3);
}

/// Profile and sub-profile of a vulnerable road user.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(choice, automatic_tags)]
#[non_exhaustive]
pub enum VruProfileAndSubprofile {
    /// A pedestrian or a road user of similar speed.
    #[rasn(identifier = "pedestrian")]
    Pedestrian(VruSubProfilePedestrian),
    /// A cyclist or light vehicle.
    #[rasn(identifier = "bicyclistAndLightVruVehicle")]
    BicyclistAndLightVruVehicle(VruSubProfileBicyclist),
    /// A motorcyclist.
    #[rasn(identifier = "motorcyclist")]
    Motorcyclist(VruSubProfileMotorcyclist),
    /// An animal.
    #[rasn(identifier = "animal")]
    Animal(VruSubProfileAnimal),
}

/// Size class of a road user.
///
/// 0 to 15.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=15"))]
pub struct VruSizeClass(pub u8);

impl VruSizeClass {
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(0);
    /// `low`.
    pub const LOW: Self = Self(1);
    /// `medium`.
    pub const MEDIUM: Self = Self(2);
    /// `high`.
    pub const HIGH: Self = Self(3);
}

/// Environment of a road user.
///
/// 0 to 15.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=15"))]
pub struct VruEnvironment(pub u8);

impl VruEnvironment {
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(0);
    /// `intersectionCrossing`.
    pub const INTERSECTION_CROSSING: Self = Self(1);
    /// `zebraCrossing`.
    pub const ZEBRA_CROSSING: Self = Self(2);
    /// `sidewalk`.
    pub const SIDEWALK: Self = Self(3);
    /// `onVehicleRoad`.
    pub const ON_VEHICLE_ROAD: Self = Self(4);
    /// `protectedGeographicArea`.
    pub const PROTECTED_GEOGRAPHIC_AREA: Self = Self(5);
}

/// Control action of a road user that changes the movement.
///
/// 0 to 15.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=15"))]
pub struct VruMovementControl(pub u8);

impl VruMovementControl {
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(0);
    /// `braking`.
    pub const BRAKING: Self = Self(1);
    /// `hardBraking`.
    pub const HARD_BRAKING: Self = Self(2);
    /// `stopPedaling`.
    pub const STOP_PEDALING: Self = Self(3);
    /// `brakingAndStopPedaling`.
    pub const BRAKING_AND_STOP_PEDALING: Self = Self(4);
    /// `hardBrakingAndStopPedaling`.
    pub const HARD_BRAKING_AND_STOP_PEDALING: Self = Self(5);
    /// `noReaction`.
    pub const NO_REACTION: Self = Self(6);
}

/// Use of a personal device.
///
/// 0 to 15.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=15"))]
pub struct VruDeviceUsage(pub u8);

impl VruDeviceUsage {
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(0);
    /// `other`.
    pub const OTHER: Self = Self(1);
    /// `idle`.
    pub const IDLE: Self = Self(2);
    /// `listeningToAudio`.
    pub const LISTENING_TO_AUDIO: Self = Self(3);
    /// `typing`.
    pub const TYPING: Self = Self(4);
    /// `calling`.
    pub const CALLING: Self = Self(5);
    /// `playingGames`.
    pub const PLAYING_GAMES: Self = Self(6);
    /// `reading`.
    pub const READING: Self = Self(7);
    /// `viewing`.
    pub const VIEWING: Self = Self(8);
}

/// Lights that only vulnerable road users have.
///
/// 8 bits, the first one first: `unavailable`, `backFlashLight`, `helmetLight`, `armLight`, `legLight`, `wheelLight`.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(delegate)]
pub struct VruSpecificExteriorLights(pub FixedBitString<8>);

small_bit_string!(VruSpecificExteriorLights, 8);

/// Lights that are switched on.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct VruExteriorLights {
    /// Lights that vehicles have.
    pub vehicular: ExteriorLights,
    /// Other lights.
    #[rasn(identifier = "vruSpecific")]
    pub vru_specific: VruSpecificExteriorLights,
}

impl VruExteriorLights {
    /// Creates a value with these members.
    #[must_use]
    pub const fn new(vehicular: ExteriorLights, vru_specific: VruSpecificExteriorLights) -> Self {
        Self { vehicular, vru_specific }
    }
}

/// Profiles of the road users in a cluster.
///
/// 4 bits, the first one first: `pedestrian`, `bicyclist`, `motorcyclist`, `animal`.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(delegate)]
pub struct VruClusterProfiles(pub FixedBitString<4>);

small_bit_string!(VruClusterProfiles, 4);

/// A group of road users that moves together.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct VruClusterInformation {
    /// Number of the cluster.
    #[rasn(identifier = "clusterId")]
    pub cluster_id: Option<Identifier1B>,
    /// Area that holds the cluster.
    #[rasn(identifier = "clusterBoundingBoxShape")]
    pub cluster_bounding_box_shape: Option<Box<Shape>>,
    /// Number of road users in the cluster; 0 if it is unknown.
    #[rasn(identifier = "clusterCardinalitySize")]
    pub cluster_cardinality_size: CardinalNumber1B,
    /// Profiles of the road users in the cluster.
    #[rasn(identifier = "clusterProfiles")]
    pub cluster_profiles: Option<VruClusterProfiles>,
}

impl VruClusterInformation {
    /// Creates a value with the mandatory members only.
    #[must_use]
    pub const fn new(cluster_cardinality_size: CardinalNumber1B) -> Self {
        Self { cluster_id: None, cluster_bounding_box_shape: None, cluster_cardinality_size, cluster_profiles: None }
    }
}

/// Planned joining of a cluster.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct ClusterJoinInfo {
    /// Number of the cluster.
    #[rasn(identifier = "clusterId")]
    pub cluster_id: Identifier1B,
    /// Time until joining.
    #[rasn(identifier = "joinTime")]
    pub join_time: DeltaTimeQuarterSecond,
}

impl ClusterJoinInfo {
    /// Creates a value with these members.
    #[must_use]
    pub const fn new(cluster_id: Identifier1B, join_time: DeltaTimeQuarterSecond) -> Self {
        Self { cluster_id, join_time }
    }
}

/// Reason for which a road user leaves a cluster.
///
/// 0 to 15.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=15"))]
pub struct ClusterLeaveReason(pub u8);

impl ClusterLeaveReason {
    /// `notProvided`.
    pub const NOT_PROVIDED: Self = Self(0);
    /// `clusterLeaderLost`.
    pub const CLUSTER_LEADER_LOST: Self = Self(1);
    /// `clusterDisbandedByLeader`.
    pub const CLUSTER_DISBANDED_BY_LEADER: Self = Self(2);
    /// `outOfClusterBoundingBox`.
    pub const OUT_OF_CLUSTER_BOUNDING_BOX: Self = Self(3);
    /// `outOfClusterSpeedRange`.
    pub const OUT_OF_CLUSTER_SPEED_RANGE: Self = Self(4);
    /// `joiningAnotherCluster`.
    pub const JOINING_ANOTHER_CLUSTER: Self = Self(5);
    /// `cancelledJoin`.
    pub const CANCELLED_JOIN: Self = Self(6);
    /// `failedJoin`.
    pub const FAILED_JOIN: Self = Self(7);
    /// `safetyCondition`.
    pub const SAFETY_CONDITION: Self = Self(8);
}

/// Leaving of a cluster.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct ClusterLeaveInfo {
    /// Number of the cluster.
    #[rasn(identifier = "clusterId")]
    pub cluster_id: Identifier1B,
    /// Reason for which a road user leaves a cluster.
    #[rasn(identifier = "clusterLeaveReason")]
    pub cluster_leave_reason: ClusterLeaveReason,
}

impl ClusterLeaveInfo {
    /// Creates a value with these members.
    #[must_use]
    pub const fn new(cluster_id: Identifier1B, cluster_leave_reason: ClusterLeaveReason) -> Self {
        Self { cluster_id, cluster_leave_reason }
    }
}

/// Reason for which a cluster is broken up.
///
/// 0 to 15.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=15"))]
pub struct ClusterBreakupReason(pub u8);

impl ClusterBreakupReason {
    /// `notProvided`.
    pub const NOT_PROVIDED: Self = Self(0);
    /// `clusteringPurposeCompleted`.
    pub const CLUSTERING_PURPOSE_COMPLETED: Self = Self(1);
    /// `leaderMovedOutOfClusterBoundingBox`.
    pub const LEADER_MOVED_OUT_OF_CLUSTER_BOUNDING_BOX: Self = Self(2);
    /// `joiningAnotherCluster`.
    pub const JOINING_ANOTHER_CLUSTER: Self = Self(3);
    /// `enteringLowRiskAreaBasedOnMaps`.
    pub const ENTERING_LOW_RISK_AREA_BASED_ON_MAPS: Self = Self(4);
    /// `receptionOfCpmContainingCluster`.
    pub const RECEPTION_OF_CPM_CONTAINING_CLUSTER: Self = Self(5);
}

/// Planned breakup of a cluster.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct ClusterBreakupInfo {
    /// Reason for which a cluster is broken up.
    #[rasn(identifier = "clusterBreakupReason")]
    pub cluster_breakup_reason: ClusterBreakupReason,
    /// Time until the end.
    #[rasn(identifier = "breakupTime")]
    pub breakup_time: DeltaTimeQuarterSecond,
}

impl ClusterBreakupInfo {
    /// Creates a value with these members.
    #[must_use]
    pub const fn new(cluster_breakup_reason: ClusterBreakupReason, breakup_time: DeltaTimeQuarterSecond) -> Self {
        Self { cluster_breakup_reason, breakup_time }
    }
}

/// `true` if the distance is safe.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(delegate)]
pub struct SafeDistanceIndicator(pub bool);

/// Safety of the distance to another road user.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct SafeDistanceIndication {
    /// The other station.
    #[rasn(identifier = "subjectStation")]
    pub subject_station: Option<StationId>,
    /// `true` if the distance is safe.
    #[rasn(identifier = "safeDistanceIndicator")]
    pub safe_distance_indicator: SafeDistanceIndicator,
    /// Time until the collision.
    #[rasn(identifier = "timeToCollision")]
    pub time_to_collision: Option<DeltaTimeTenthOfSecond>,
}

impl SafeDistanceIndication {
    /// Creates a value with the mandatory members only.
    #[must_use]
    pub const fn new(safe_distance_indicator: SafeDistanceIndicator) -> Self {
        Self { subject_station: None, safe_distance_indicator, time_to_collision: None }
    }
}

/// Distances to other stations.
///
/// 1 to 8 elements; other sizes are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=8", extensible))]
pub struct SequenceOfSafeDistanceIndication(pub Vec<SafeDistanceIndication>);

/// Probability that two trajectories cross at the same time, in 2 %.
///
/// 0 to 63.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=63"))]
pub struct TrajectoryInterceptionProbability(pub u8);

impl TrajectoryInterceptionProbability {
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(63);
}

/// Confidence in the probability of interception.
///
/// 0 to 3.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=3"))]
pub struct TrajectoryInterceptionConfidence(pub u8);

impl TrajectoryInterceptionConfidence {
    /// `lessthan50percent`.
    pub const LESSTHAN50PERCENT: Self = Self(0);
    /// `between50and70Percent`.
    pub const BETWEEN50AND70_PERCENT: Self = Self(1);
    /// `between70and90Percent`.
    pub const BETWEEN70AND90_PERCENT: Self = Self(2);
    /// `above90Percent`.
    pub const ABOVE90_PERCENT: Self = Self(3);
}

/// A possible interception of trajectories.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct TrajectoryInterceptionIndication {
    /// The other station.
    #[rasn(identifier = "subjectStation")]
    pub subject_station: Option<StationId>,
    /// Probability that two trajectories cross at the same time, in 2 %.
    #[rasn(identifier = "trajectoryInterceptionProbability")]
    pub trajectory_interception_probability: TrajectoryInterceptionProbability,
    /// Confidence in the probability of interception.
    #[rasn(identifier = "trajectoryInterceptionConfidence")]
    pub trajectory_interception_confidence: Option<TrajectoryInterceptionConfidence>,
}

impl TrajectoryInterceptionIndication {
    /// Creates a value with the mandatory members only.
    #[must_use]
    pub const fn new(trajectory_interception_probability: TrajectoryInterceptionProbability) -> Self {
        Self { subject_station: None, trajectory_interception_probability, trajectory_interception_confidence: None }
    }
}

/// Possible interceptions with the trajectories of other stations.
///
/// 1 to 8 elements; other sizes are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=8", extensible))]
pub struct SequenceOfTrajectoryInterceptionIndication(pub Vec<TrajectoryInterceptionIndication>);
