//! Types of the VAM, under their ASN.1 names, with the types of the data dictionary that it uses.

use rasn::prelude::*;

pub use crate::cdd::*;

/// Vulnerable road user awareness message; ASN.1 name `VAM`.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct Vam {
    /// Protocol version, message type and sender.
    pub header: ItsPduHeader,
    /// Content of the VAM.
    pub vam: VruAwareness,
}

/// Generation time and content of a VAM.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct VruAwareness {
    /// Generation time of the message.
    #[rasn(identifier = "generationDeltaTime")]
    pub generation_delta_time: GenerationDeltaTime,
    /// Containers of the message.
    #[rasn(identifier = "vamParameters")]
    pub vam_parameters: VamParameters,
}

/// The containers of a VAM.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct VamParameters {
    /// Type and position of the station.
    #[rasn(identifier = "basicContainer")]
    pub basic_container: BasicContainer,
    /// Movement of the road user.
    #[rasn(identifier = "vruHighFrequencyContainer")]
    pub vru_high_frequency_container: VruHighFrequencyContainer,
    /// Values that change rarely.
    #[rasn(identifier = "vruLowFrequencyContainer")]
    pub vru_low_frequency_container: Option<VruLowFrequencyContainer>,
    /// Cluster of which the sender is the leader.
    #[rasn(identifier = "vruClusterInformationContainer")]
    pub vru_cluster_information_container: Option<Box<VruClusterInformationContainer>>,
    /// Joining, leaving and ending a cluster.
    #[rasn(identifier = "vruClusterOperationContainer")]
    pub vru_cluster_operation_container: Option<VruClusterOperationContainer>,
    /// Predicted behaviour of the road user.
    #[rasn(identifier = "vruMotionPredictionContainer")]
    pub vru_motion_prediction_container: Option<Box<VruMotionPredictionContainer>>,
}

impl VamParameters {
    /// Creates a value with the mandatory members only.
    #[must_use]
    pub const fn new(basic_container: BasicContainer, vru_high_frequency_container: VruHighFrequencyContainer) -> Self {
        Self {
            basic_container,
            vru_high_frequency_container,
            vru_low_frequency_container: None,
            vru_cluster_information_container: None,
            vru_cluster_operation_container: None,
            vru_motion_prediction_container: None,
        }
    }
}

/// Movement of a road user or cluster.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct VruHighFrequencyContainer {
    /// Direction of movement.
    pub heading: Wgs84Angle,
    /// Speed and its accuracy.
    pub speed: Speed,
    /// Acceleration along the axis, forwards positive.
    #[rasn(identifier = "longitudinalAcceleration")]
    pub longitudinal_acceleration: LongitudinalAcceleration,
    /// Curvature of the vehicle's path and its accuracy.
    pub curvature: Option<Curvature>,
    /// Use of the rate of turn in the calculation of the curvature.
    #[rasn(identifier = "curvatureCalculationMode")]
    pub curvature_calculation_mode: Option<CurvatureCalculationMode>,
    /// Rate of turn and its accuracy.
    #[rasn(identifier = "yawRate")]
    pub yaw_rate: Option<YawRate>,
    /// Acceleration across the axis, to the left positive.
    #[rasn(identifier = "lateralAcceleration")]
    pub lateral_acceleration: Option<LateralAcceleration>,
    /// Acceleration upwards.
    #[rasn(identifier = "verticalAcceleration")]
    pub vertical_acceleration: Option<VerticalAcceleration>,
    /// Position across the road.
    #[rasn(identifier = "vruLanePosition")]
    pub vru_lane_position: Option<GeneralizedLanePosition>,
    /// Environment of the road user.
    pub environment: Option<VruEnvironment>,
    /// Control action of the road user that changes the movement.
    #[rasn(identifier = "movementControl")]
    pub movement_control: Option<VruMovementControl>,
    /// Orientation of the body, if it differs from the heading.
    pub orientation: Option<Wgs84Angle>,
    /// Roll angle.
    #[rasn(identifier = "rollAngle")]
    pub roll_angle: Option<CartesianAngle>,
    /// Use of a personal device by the road user.
    #[rasn(identifier = "deviceUsage")]
    pub device_usage: Option<VruDeviceUsage>,
}

impl VruHighFrequencyContainer {
    /// Creates a value with the mandatory members only.
    #[must_use]
    pub const fn new(heading: Wgs84Angle, speed: Speed, longitudinal_acceleration: LongitudinalAcceleration) -> Self {
        Self {
            heading,
            speed,
            longitudinal_acceleration,
            curvature: None,
            curvature_calculation_mode: None,
            yaw_rate: None,
            lateral_acceleration: None,
            vertical_acceleration: None,
            vru_lane_position: None,
            environment: None,
            movement_control: None,
            orientation: None,
            roll_angle: None,
            device_usage: None,
        }
    }
}

/// Values that change rarely.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct VruLowFrequencyContainer {
    /// Profile and sub-profile of the road user.
    #[rasn(identifier = "profileAndSubprofile")]
    pub profile_and_subprofile: VruProfileAndSubprofile,
    /// Size class of the road user.
    #[rasn(identifier = "sizeClass")]
    pub size_class: Option<VruSizeClass>,
    /// Lights that are switched on.
    #[rasn(identifier = "exteriorLights")]
    pub exterior_lights: Option<VruExteriorLights>,
}

impl VruLowFrequencyContainer {
    /// Creates a value with the mandatory members only.
    #[must_use]
    pub const fn new(profile_and_subprofile: VruProfileAndSubprofile) -> Self {
        Self { profile_and_subprofile, size_class: None, exterior_lights: None }
    }
}

/// Cluster of which the sender is the leader.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct VruClusterInformationContainer {
    /// A group of road users that moves together.
    #[rasn(identifier = "vruClusterInformation")]
    pub vru_cluster_information: VruClusterInformation,
}

impl VruClusterInformationContainer {
    /// Creates a value with these members.
    #[must_use]
    pub const fn new(vru_cluster_information: VruClusterInformation) -> Self {
        Self { vru_cluster_information }
    }
}

/// Joining, leaving and ending a cluster.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct VruClusterOperationContainer {
    /// Planned joining of a cluster.
    #[rasn(identifier = "clusterJoinInfo")]
    pub cluster_join_info: Option<ClusterJoinInfo>,
    /// Leaving of a cluster.
    #[rasn(identifier = "clusterLeaveInfo")]
    pub cluster_leave_info: Option<ClusterLeaveInfo>,
    /// Planned breakup of a cluster.
    #[rasn(identifier = "clusterBreakupInfo")]
    pub cluster_breakup_info: Option<ClusterBreakupInfo>,
    /// Time until the cluster gets another number.
    #[rasn(identifier = "clusterIdChangeTimeInfo")]
    pub cluster_id_change_time_info: Option<DeltaTimeQuarterSecond>,
}

impl VruClusterOperationContainer {
    /// Creates a value with the mandatory members only.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            cluster_join_info: None,
            cluster_leave_info: None,
            cluster_breakup_info: None,
            cluster_id_change_time_info: None,
        }
    }
}

impl Default for VruClusterOperationContainer {
    fn default() -> Self {
        Self::new()
    }
}

/// Predicted behaviour of a road user.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct VruMotionPredictionContainer {
    /// Past positions of the station.
    #[rasn(identifier = "pathHistory")]
    pub path_history: Option<PathHistory>,
    /// Predicted path of the road user.
    #[rasn(identifier = "pathPrediction")]
    pub path_prediction: Option<PathPredicted>,
    /// Distances to other stations.
    #[rasn(identifier = "safeDistance")]
    pub safe_distance: Option<SequenceOfSafeDistanceIndication>,
    /// Trajectories of other road users that may cross the road user's own.
    #[rasn(identifier = "trajectoryInterceptionIndication")]
    pub trajectory_interception_indication: Option<SequenceOfTrajectoryInterceptionIndication>,
    /// An expected change of acceleration.
    #[rasn(identifier = "accelerationChangeIndication")]
    pub acceleration_change_indication: Option<AccelerationChangeIndication>,
    /// An expected turn.
    #[rasn(identifier = "headingChangeIndication")]
    pub heading_change_indication: Option<HeadingChangeIndication>,
    /// An expected loss of stability.
    #[rasn(identifier = "stabilityChangeIndication")]
    pub stability_change_indication: Option<StabilityChangeIndication>,
}

impl VruMotionPredictionContainer {
    /// Creates a value with the mandatory members only.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            path_history: None,
            path_prediction: None,
            safe_distance: None,
            trajectory_interception_indication: None,
            acceleration_change_indication: None,
            heading_change_indication: None,
            stability_change_indication: None,
        }
    }
}

impl Default for VruMotionPredictionContainer {
    fn default() -> Self {
        Self::new()
    }
}

/// Values of a motorcycle that its CAM does not contain; ASN.1 name `MotorcylistSpecialContainer`.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct MotorcyclistSpecialContainer {
    /// Kind of the motorcyclist.
    pub motorcyclist: VruSubProfileMotorcyclist,
    /// Size class of the road user.
    #[rasn(identifier = "sizeClass")]
    pub size_class: VruSizeClass,
    /// Roll angle.
    #[rasn(identifier = "rollAngle")]
    pub roll_angle: Option<CartesianAngle>,
    /// Orientation of the vehicle.
    pub orientation: Option<Wgs84Angle>,
    /// Distances to other stations.
    #[rasn(identifier = "safeDistance")]
    pub safe_distance: Option<SequenceOfSafeDistanceIndication>,
    /// Predicted path of the road user.
    #[rasn(identifier = "pathPrediction")]
    pub path_prediction: Option<PathPredicted>,
    /// An expected loss of stability.
    #[rasn(identifier = "stabilityChangeIndication")]
    pub stability_change_indication: Option<StabilityChangeIndication>,
}

impl MotorcyclistSpecialContainer {
    /// Creates a value with the mandatory members only.
    #[must_use]
    pub const fn new(motorcyclist: VruSubProfileMotorcyclist, size_class: VruSizeClass) -> Self {
        Self {
            motorcyclist,
            size_class,
            roll_angle: None,
            orientation: None,
            safe_distance: None,
            path_prediction: None,
            stability_change_indication: None,
        }
    }
}
