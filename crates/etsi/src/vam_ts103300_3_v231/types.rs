//! Types of the VAM, under their ASN.1 names; those of the data dictionary stand beside them.

use rasn::prelude::*;

pub use crate::cdd::*;

/// Vulnerable road user awareness message; ASN.1 name `VAM`.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct Vam {
    /// Which message it is and who sends it.
    pub header: ItsPduHeader,
    /// What the VAM says.
    pub vam: VruAwareness,
}

/// When a VAM was generated, and what it says.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct VruAwareness {
    /// When it was generated.
    #[rasn(identifier = "generationDeltaTime")]
    pub generation_delta_time: GenerationDeltaTime,
    /// Its containers.
    #[rasn(identifier = "vamParameters")]
    pub vam_parameters: VamParameters,
}

/// The containers of a VAM.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct VamParameters {
    /// Type and place of the station.
    #[rasn(identifier = "basicContainer")]
    pub basic_container: BasicContainer,
    /// How it moves.
    #[rasn(identifier = "vruHighFrequencyContainer")]
    pub vru_high_frequency_container: VruHighFrequencyContainer,
    /// What changes seldom.
    #[rasn(identifier = "vruLowFrequencyContainer")]
    pub vru_low_frequency_container: Option<VruLowFrequencyContainer>,
    /// The cluster whose leader sends.
    #[rasn(identifier = "vruClusterInformationContainer")]
    pub vru_cluster_information_container: Option<Box<VruClusterInformationContainer>>,
    /// Joining, leaving and ending a cluster.
    #[rasn(identifier = "vruClusterOperationContainer")]
    pub vru_cluster_operation_container: Option<VruClusterOperationContainer>,
    /// What it is expected to do.
    #[rasn(identifier = "vruMotionPredictionContainer")]
    pub vru_motion_prediction_container: Option<Box<VruMotionPredictionContainer>>,
}

impl VamParameters {
    /// With the mandatory members only.
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

/// How a road user or cluster moves.
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
    /// Curvature of the way and its accuracy.
    pub curvature: Option<Curvature>,
    /// Whether the rate of turn went into the curvature.
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
    /// Across the road.
    #[rasn(identifier = "vruLanePosition")]
    pub vru_lane_position: Option<GeneralizedLanePosition>,
    /// Where the road user is.
    pub environment: Option<VruEnvironment>,
    /// What the road user does to the movement.
    #[rasn(identifier = "movementControl")]
    pub movement_control: Option<VruMovementControl>,
    /// Orientation of the body, where it differs from the heading.
    pub orientation: Option<Wgs84Angle>,
    /// Roll angle.
    #[rasn(identifier = "rollAngle")]
    pub roll_angle: Option<CartesianAngle>,
    /// What the road user does with a device.
    #[rasn(identifier = "deviceUsage")]
    pub device_usage: Option<VruDeviceUsage>,
}

impl VruHighFrequencyContainer {
    /// With the mandatory members only.
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

/// What changes seldom.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct VruLowFrequencyContainer {
    /// What kind of road user it is.
    #[rasn(identifier = "profileAndSubprofile")]
    pub profile_and_subprofile: VruProfileAndSubprofile,
    /// How big it is.
    #[rasn(identifier = "sizeClass")]
    pub size_class: Option<VruSizeClass>,
    /// Which lights are on.
    #[rasn(identifier = "exteriorLights")]
    pub exterior_lights: Option<VruExteriorLights>,
}

impl VruLowFrequencyContainer {
    /// With the mandatory members only.
    #[must_use]
    pub const fn new(profile_and_subprofile: VruProfileAndSubprofile) -> Self {
        Self { profile_and_subprofile, size_class: None, exterior_lights: None }
    }
}

/// The cluster whose leader sends.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct VruClusterInformationContainer {
    /// A group of road users that moves together.
    #[rasn(identifier = "vruClusterInformation")]
    pub vru_cluster_information: VruClusterInformation,
}

impl VruClusterInformationContainer {
    /// With these members.
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
    /// A road user is going to join a cluster.
    #[rasn(identifier = "clusterJoinInfo")]
    pub cluster_join_info: Option<ClusterJoinInfo>,
    /// A road user leaves a cluster.
    #[rasn(identifier = "clusterLeaveInfo")]
    pub cluster_leave_info: Option<ClusterLeaveInfo>,
    /// A cluster is going to be given up.
    #[rasn(identifier = "clusterBreakupInfo")]
    pub cluster_breakup_info: Option<ClusterBreakupInfo>,
    /// Time until the cluster gets another number.
    #[rasn(identifier = "clusterIdChangeTimeInfo")]
    pub cluster_id_change_time_info: Option<DeltaTimeQuarterSecond>,
}

impl VruClusterOperationContainer {
    /// With the mandatory members only.
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

/// What the road user is expected to do.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct VruMotionPredictionContainer {
    /// Where the station was.
    #[rasn(identifier = "pathHistory")]
    pub path_history: Option<PathHistory>,
    /// Where the road user is expected.
    #[rasn(identifier = "pathPrediction")]
    pub path_prediction: Option<PathPredicted>,
    /// Distances to other stations.
    #[rasn(identifier = "safeDistance")]
    pub safe_distance: Option<SequenceOfSafeDistanceIndication>,
    /// Ways that may cross its own.
    #[rasn(identifier = "trajectoryInterceptionIndication")]
    pub trajectory_interception_indication: Option<SequenceOfTrajectoryInterceptionIndication>,
    /// A change of acceleration that is expected.
    #[rasn(identifier = "accelerationChangeIndication")]
    pub acceleration_change_indication: Option<AccelerationChangeIndication>,
    /// A turn that is expected.
    #[rasn(identifier = "headingChangeIndication")]
    pub heading_change_indication: Option<HeadingChangeIndication>,
    /// A loss of stability that is expected.
    #[rasn(identifier = "stabilityChangeIndication")]
    pub stability_change_indication: Option<StabilityChangeIndication>,
}

impl VruMotionPredictionContainer {
    /// With the mandatory members only.
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

/// What a motorcyclist's vehicle says besides its CAM; ASN.1 name `MotorcylistSpecialContainer`.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct MotorcyclistSpecialContainer {
    /// Which kind of motorcyclist.
    pub motorcyclist: VruSubProfileMotorcyclist,
    /// How big it is.
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
    /// Where the road user is expected.
    #[rasn(identifier = "pathPrediction")]
    pub path_prediction: Option<PathPredicted>,
    /// A loss of stability that is expected.
    #[rasn(identifier = "stabilityChangeIndication")]
    pub stability_change_indication: Option<StabilityChangeIndication>,
}

impl MotorcyclistSpecialContainer {
    /// With the mandatory members only.
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
