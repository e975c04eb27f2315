//! Types of the CAM, under their ASN.1 names; those of the data dictionary stand beside them.

use rasn::prelude::*;

pub use super::extension::ExtensionContainer;
use crate::cdd::extensible_integer;
pub use crate::cdd::*;

/// Cooperative awareness message; ASN.1 name `CAM`.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct Cam {
    /// Which message it is and who sends it.
    pub header: ItsPduHeader,
    /// What the CAM says.
    pub cam: CamPayload,
}

/// When a CAM was generated, and what it says.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct CamPayload {
    /// When it was generated.
    #[rasn(identifier = "generationDeltaTime")]
    pub generation_delta_time: GenerationDeltaTime,
    /// Its containers.
    #[rasn(identifier = "camParameters")]
    pub cam_parameters: CamParameters,
}

/// The containers of a CAM.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct CamParameters {
    /// Type and place of the station.
    #[rasn(identifier = "basicContainer")]
    pub basic_container: BasicContainer,
    /// What each message has.
    #[rasn(identifier = "highFrequencyContainer")]
    pub high_frequency_container: HighFrequencyContainer,
    /// What changes seldom.
    #[rasn(identifier = "lowFrequencyContainer")]
    pub low_frequency_container: Option<LowFrequencyContainer>,
    /// What only a vehicle of a special role says.
    #[rasn(identifier = "specialVehicleContainer")]
    pub special_vehicle_container: Option<SpecialVehicleContainer>,

    /// Containers that later editions added.
    // rasn 0.28.15 decodes an extension addition without the constraint of its type: it has to stand here.
    #[rasn(extension_addition, size("1..=8", extensible), identifier = "extensionContainers")]
    pub extension_containers: Option<WrappedExtensionContainers>,
}

impl CamParameters {
    /// With the mandatory members only.
    #[must_use]
    pub const fn new(basic_container: BasicContainer, high_frequency_container: HighFrequencyContainer) -> Self {
        Self {
            basic_container,
            high_frequency_container,
            low_frequency_container: None,
            special_vehicle_container: None,
            extension_containers: None,
        }
    }
}

/// What each CAM has.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(choice, automatic_tags)]
#[non_exhaustive]
pub enum HighFrequencyContainer {
    /// A vehicle.
    #[rasn(identifier = "basicVehicleContainerHighFrequency")]
    BasicVehicleContainerHighFrequency(BasicVehicleContainerHighFrequency),
    /// A roadside unit.
    #[rasn(identifier = "rsuContainerHighFrequency")]
    RsuContainerHighFrequency(RsuContainerHighFrequency),
}

/// What a vehicle's CAM has at most every 500 ms.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(choice, automatic_tags)]
#[non_exhaustive]
pub enum LowFrequencyContainer {
    /// A vehicle.
    #[rasn(identifier = "basicVehicleContainerLowFrequency")]
    BasicVehicleContainerLowFrequency(BasicVehicleContainerLowFrequency),
}

/// What only a vehicle of a special role says.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(choice, automatic_tags)]
#[non_exhaustive]
pub enum SpecialVehicleContainer {
    /// Public transport.
    #[rasn(identifier = "publicTransportContainer")]
    PublicTransportContainer(PublicTransportContainer),
    /// A special transport.
    #[rasn(identifier = "specialTransportContainer")]
    SpecialTransportContainer(SpecialTransportContainer),
    /// Dangerous goods.
    #[rasn(identifier = "dangerousGoodsContainer")]
    DangerousGoodsContainer(DangerousGoodsContainer),
    /// Road works.
    #[rasn(identifier = "roadWorksContainerBasic")]
    RoadWorksContainerBasic(RoadWorksContainerBasic),
    /// Rescue.
    #[rasn(identifier = "rescueContainer")]
    RescueContainer(RescueContainer),
    /// Emergency.
    #[rasn(identifier = "emergencyContainer")]
    EmergencyContainer(EmergencyContainer),
    /// A safety car.
    #[rasn(identifier = "safetyCarContainer")]
    SafetyCarContainer(SafetyCarContainer),
}

/// How a vehicle moves.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct BasicVehicleContainerHighFrequency {
    /// Direction of movement and its accuracy.
    pub heading: Heading,
    /// Speed and its accuracy.
    pub speed: Speed,
    /// Whether a vehicle drives forwards.
    #[rasn(identifier = "driveDirection")]
    pub drive_direction: DriveDirection,
    /// Length of a vehicle, and whether a trailer is in it.
    #[rasn(identifier = "vehicleLength")]
    pub vehicle_length: VehicleLength,
    /// Width of a vehicle with its mirrors in 0.1 m.
    #[rasn(identifier = "vehicleWidth")]
    pub vehicle_width: VehicleWidth,
    /// Acceleration along the axis, forwards positive.
    #[rasn(identifier = "longitudinalAcceleration")]
    pub longitudinal_acceleration: AccelerationComponent,
    /// Curvature of the way and its accuracy.
    pub curvature: Curvature,
    /// Whether the rate of turn went into the curvature.
    #[rasn(identifier = "curvatureCalculationMode")]
    pub curvature_calculation_mode: CurvatureCalculationMode,
    /// Rate of turn and its accuracy.
    #[rasn(identifier = "yawRate")]
    pub yaw_rate: YawRate,
    /// Which controls of the longitudinal movement are active.
    #[rasn(identifier = "accelerationControl")]
    pub acceleration_control: Option<AccelerationControl>,
    /// Number of a lane, counted from the outside.
    #[rasn(identifier = "lanePosition")]
    pub lane_position: Option<LanePosition>,
    /// Angle of the steering wheel and its accuracy.
    #[rasn(identifier = "steeringWheelAngle")]
    pub steering_wheel_angle: Option<SteeringWheelAngle>,
    /// Acceleration across the axis, to the left positive.
    #[rasn(identifier = "lateralAcceleration")]
    pub lateral_acceleration: Option<AccelerationComponent>,
    /// Acceleration upwards.
    #[rasn(identifier = "verticalAcceleration")]
    pub vertical_acceleration: Option<AccelerationComponent>,
    /// How accurate the station's values are over time.
    #[rasn(identifier = "performanceClass")]
    pub performance_class: Option<PerformanceClass>,
    /// A zone of a tolling station at 5.8 GHz.
    #[rasn(identifier = "cenDsrcTollingZone")]
    pub cen_dsrc_tolling_zone: Option<CenDsrcTollingZone>,
}

/// What changes seldom.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct BasicVehicleContainerLowFrequency {
    /// What a vehicle is used for.
    #[rasn(identifier = "vehicleRole")]
    pub vehicle_role: VehicleRole,
    /// Which lights are on.
    #[rasn(identifier = "exteriorLights")]
    pub exterior_lights: ExteriorLights,
    /// Where the station was.
    #[rasn(identifier = "pathHistory")]
    pub path_history: Path,
}

/// Says a vehicle of public transport.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct PublicTransportContainer {
    /// Whether passengers get on or off.
    #[rasn(identifier = "embarkationStatus")]
    pub embarkation_status: EmbarkationStatus,
    /// Control of signals by public transport.
    #[rasn(identifier = "ptActivation")]
    pub pt_activation: Option<PtActivation>,
}

/// Says a special transport.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct SpecialTransportContainer {
    /// What is special about a transport.
    #[rasn(identifier = "specialTransportType")]
    pub special_transport_type: SpecialTransportType,
    /// Whether light bar and siren are on.
    #[rasn(identifier = "lightBarSirenInUse")]
    pub light_bar_siren_in_use: LightBarSirenInUse,
}

/// Says a vehicle with dangerous goods.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct DangerousGoodsContainer {
    /// Class of dangerous goods.
    #[rasn(identifier = "dangerousGoodsBasic")]
    pub dangerous_goods_basic: DangerousGoodsBasic,
}

/// Says a vehicle of road works.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct RoadWorksContainerBasic {
    /// What kind of road works.
    #[rasn(identifier = "roadworksSubCauseCode")]
    pub roadworks_sub_cause_code: Option<RoadworksSubCauseCode>,
    /// Whether light bar and siren are on.
    #[rasn(identifier = "lightBarSirenInUse")]
    pub light_bar_siren_in_use: LightBarSirenInUse,
    /// Which lanes are closed.
    #[rasn(identifier = "closedLanes")]
    pub closed_lanes: Option<ClosedLanes>,
}

/// Says a rescue vehicle.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct RescueContainer {
    /// Whether light bar and siren are on.
    #[rasn(identifier = "lightBarSirenInUse")]
    pub light_bar_siren_in_use: LightBarSirenInUse,
}

/// Says an emergency vehicle on duty.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct EmergencyContainer {
    /// Whether light bar and siren are on.
    #[rasn(identifier = "lightBarSirenInUse")]
    pub light_bar_siren_in_use: LightBarSirenInUse,
    /// What happened.
    #[rasn(identifier = "incidentIndication")]
    pub incident_indication: Option<CauseCodeV2>,
    /// Which right of way an emergency vehicle asks for.
    #[rasn(identifier = "emergencyPriority")]
    pub emergency_priority: Option<EmergencyPriority>,
}

/// Says a safety car.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct SafetyCarContainer {
    /// Whether light bar and siren are on.
    #[rasn(identifier = "lightBarSirenInUse")]
    pub light_bar_siren_in_use: LightBarSirenInUse,
    /// What happened.
    #[rasn(identifier = "incidentIndication")]
    pub incident_indication: Option<CauseCodeV2>,
    /// How to pass.
    #[rasn(identifier = "trafficRule")]
    pub traffic_rule: Option<TrafficRule>,
    /// Speed limit in km/h.
    #[rasn(identifier = "speedLimit")]
    pub speed_limit: Option<SpeedLimit>,
}

/// Says a roadside unit; ASN.1 name `RSUContainerHighFrequency`.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct RsuContainerHighFrequency {
    /// Protected zones that a roadside unit tells of; ASN.1 name `ProtectedCommunicationZonesRSU`.
    #[rasn(identifier = "protectedCommunicationZonesRSU")]
    pub protected_communication_zones_rsu: Option<ProtectedCommunicationZonesRsu>,
}

impl RsuContainerHighFrequency {
    /// With the mandatory members only.
    #[must_use]
    pub const fn new() -> Self {
        Self { protected_communication_zones_rsu: None }
    }
}

impl Default for RsuContainerHighFrequency {
    fn default() -> Self {
        Self::new()
    }
}

/// Which extension container it is.
///
/// 1 to 16; other values are extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExtensionContainerId(pub i64);

extensible_integer!(ExtensionContainerId, 1, 16);

/// Extension containers.
///
/// 1 to 8 elements; other sizes are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=8", extensible))]
pub struct WrappedExtensionContainers(pub Vec<ExtensionContainer>);

/// Extension container 1: a two-wheeler.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct TwoWheelerContainer {
    /// What only one kind of two-wheeler says.
    #[rasn(identifier = "typeSpecificInformation")]
    pub type_specific_information: Option<TwoWheelerTypeSpecificInformation>,
    /// Roll angle.
    #[rasn(identifier = "rollAngle")]
    pub roll_angle: Option<CartesianAngle>,
    /// Orientation of the vehicle.
    pub orientation: Option<Wgs84Angle>,
    /// A loss of stability that is expected.
    #[rasn(identifier = "stabilityChangeIndication")]
    pub stability_change_indication: Option<StabilityChangeIndication>,
}

impl TwoWheelerContainer {
    /// With the mandatory members only.
    #[must_use]
    pub const fn new() -> Self {
        Self { type_specific_information: None, roll_angle: None, orientation: None, stability_change_indication: None }
    }
}

impl Default for TwoWheelerContainer {
    fn default() -> Self {
        Self::new()
    }
}

/// What only one kind of two-wheeler says.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(choice, automatic_tags)]
#[non_exhaustive]
pub enum TwoWheelerTypeSpecificInformation {
    /// A cyclist.
    #[rasn(identifier = "cyclist")]
    Cyclist(CyclistTypeSpecificInformation),
}

/// What only a cyclist says.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct CyclistTypeSpecificInformation {
    /// Kind of a cyclist or light vehicle.
    #[rasn(identifier = "vruSubProfileBicyclist")]
    pub vru_sub_profile_bicyclist: Option<VruSubProfileBicyclist>,
    /// What a road user does to the vehicle's movement.
    #[rasn(identifier = "vruMovementControl")]
    pub vru_movement_control: Option<VruMovementControl>,
}

impl CyclistTypeSpecificInformation {
    /// With the mandatory members only.
    #[must_use]
    pub const fn new() -> Self {
        Self { vru_sub_profile_bicyclist: None, vru_movement_control: None }
    }
}

impl Default for CyclistTypeSpecificInformation {
    fn default() -> Self {
        Self::new()
    }
}

/// Extension container 2: the road ahead and behind as the vehicle knows it.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct EHorizonLocationSharingContainer {
    /// The road ahead.
    #[rasn(identifier = "segmentAhead")]
    pub segment_ahead: PolygonalLine,
    /// How sure each point ahead is.
    #[rasn(identifier = "nodeProbabilities")]
    pub node_probabilities: Option<ConfidenceLevels>,
    /// The road behind.
    #[rasn(identifier = "segmentBehind")]
    pub segment_behind: PolygonalLine,
    /// Lanes of the road ahead.
    #[rasn(identifier = "laneLevelDetails")]
    pub lane_level_details: Option<BasicLaneConfiguration>,
    /// Where that comes from.
    #[rasn(identifier = "segmentSource")]
    pub segment_source: Option<MetaInformation>,
}

impl EHorizonLocationSharingContainer {
    /// With the mandatory members only.
    #[must_use]
    pub const fn new(segment_ahead: PolygonalLine, segment_behind: PolygonalLine) -> Self {
        Self { segment_ahead, node_probabilities: None, segment_behind, lane_level_details: None, segment_source: None }
    }
}

/// Extension container 3: what changes very seldom.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct VeryLowFrequencyContainer {
    /// Height of the vehicle.
    #[rasn(identifier = "vehicleHeight")]
    pub vehicle_height: Option<VehicleHeight2>,
    /// State of the front wiper.
    #[rasn(identifier = "wiperStatus")]
    pub wiper_status: Option<WiperStatus>,
    /// Which brake controls are active.
    #[rasn(identifier = "brakeControl")]
    pub brake_control: Option<BrakeControl>,
}

impl VeryLowFrequencyContainer {
    /// With the mandatory members only.
    #[must_use]
    pub const fn new() -> Self {
        Self { vehicle_height: None, wiper_status: None, brake_control: None }
    }
}

impl Default for VeryLowFrequencyContainer {
    fn default() -> Self {
        Self::new()
    }
}

/// Extension container 4: where the vehicle is expected.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct PathPredictionContainer {
    /// Some predicted paths.
    #[rasn(identifier = "pathPredictedList")]
    pub path_predicted_list: PathPredictedList,
}

impl PathPredictionContainer {
    /// With these members.
    #[must_use]
    pub const fn new(path_predicted_list: PathPredictedList) -> Self {
        Self { path_predicted_list }
    }
}

/// Extension container 5: on which lane the vehicle is.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct GeneralizedLanePositionsContainer {
    /// Places across the road.
    #[rasn(identifier = "generalizedLanePositions")]
    pub generalized_lane_positions: GeneralizedLanePositions,
}

impl GeneralizedLanePositionsContainer {
    /// With these members.
    #[must_use]
    pub const fn new(generalized_lane_positions: GeneralizedLanePositions) -> Self {
        Self { generalized_lane_positions }
    }
}

/// Extension container 6: who and what controls the vehicle's movement.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct VehicleMovementControlContainer {
    /// Who and what controls a vehicle's movement.
    #[rasn(identifier = "vehicleMovementControl")]
    pub vehicle_movement_control: VehicleMovementControl,
}

impl VehicleMovementControlContainer {
    /// With these members.
    #[must_use]
    pub const fn new(vehicle_movement_control: VehicleMovementControl) -> Self {
        Self { vehicle_movement_control }
    }
}
