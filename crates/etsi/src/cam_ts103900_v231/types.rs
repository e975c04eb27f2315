//! Types of the CAM, under their ASN.1 names, with the types of the data dictionary that it uses.

use rasn::prelude::*;

pub use super::extension::ExtensionContainer;
use crate::cdd::extensible_integer;
pub use crate::cdd::*;

/// Cooperative awareness message; ASN.1 name `CAM`.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct Cam {
    /// Protocol version, message type and sender.
    pub header: ItsPduHeader,
    /// Content of the CAM.
    pub cam: CamPayload,
}

/// Generation time and content of a CAM.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct CamPayload {
    /// Generation time of the message.
    #[rasn(identifier = "generationDeltaTime")]
    pub generation_delta_time: GenerationDeltaTime,
    /// Containers of the message.
    #[rasn(identifier = "camParameters")]
    pub cam_parameters: CamParameters,
}

/// The containers of a CAM.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct CamParameters {
    /// Type and position of the station.
    #[rasn(identifier = "basicContainer")]
    pub basic_container: BasicContainer,
    /// Values that every message contains.
    #[rasn(identifier = "highFrequencyContainer")]
    pub high_frequency_container: HighFrequencyContainer,
    /// Values that change rarely.
    #[rasn(identifier = "lowFrequencyContainer")]
    pub low_frequency_container: Option<LowFrequencyContainer>,
    /// Values of a vehicle with a special role.
    #[rasn(identifier = "specialVehicleContainer")]
    pub special_vehicle_container: Option<SpecialVehicleContainer>,

    /// Extension containers, which later editions added.
    // rasn 0.28.15 decodes an extension addition without the constraint of its type, so the member repeats it.
    #[rasn(extension_addition, size("1..=8", extensible), identifier = "extensionContainers")]
    pub extension_containers: Option<WrappedExtensionContainers>,
}

impl CamParameters {
    /// Creates a value with the mandatory members only.
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

/// Values that every CAM contains.
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

/// Values that a vehicle's CAM contains at most every 500 ms.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(choice, automatic_tags)]
#[non_exhaustive]
pub enum LowFrequencyContainer {
    /// A vehicle.
    #[rasn(identifier = "basicVehicleContainerLowFrequency")]
    BasicVehicleContainerLowFrequency(BasicVehicleContainerLowFrequency),
}

/// Values of a vehicle with a special role.
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

/// Movement of a vehicle.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct BasicVehicleContainerHighFrequency {
    /// Direction of movement and its accuracy.
    pub heading: Heading,
    /// Speed and its accuracy.
    pub speed: Speed,
    /// Driving direction of a vehicle.
    #[rasn(identifier = "driveDirection")]
    pub drive_direction: DriveDirection,
    /// Length of a vehicle, with an indication if it includes a trailer.
    #[rasn(identifier = "vehicleLength")]
    pub vehicle_length: VehicleLength,
    /// Width of a vehicle with its mirrors in 0.1 m.
    #[rasn(identifier = "vehicleWidth")]
    pub vehicle_width: VehicleWidth,
    /// Acceleration along the axis, forwards positive.
    #[rasn(identifier = "longitudinalAcceleration")]
    pub longitudinal_acceleration: AccelerationComponent,
    /// Curvature of the vehicle's path and its accuracy.
    pub curvature: Curvature,
    /// Use of the rate of turn in the calculation of the curvature.
    #[rasn(identifier = "curvatureCalculationMode")]
    pub curvature_calculation_mode: CurvatureCalculationMode,
    /// Rate of turn and its accuracy.
    #[rasn(identifier = "yawRate")]
    pub yaw_rate: YawRate,
    /// Active controls of the longitudinal movement.
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
    /// Class of the station's accuracy over time.
    #[rasn(identifier = "performanceClass")]
    pub performance_class: Option<PerformanceClass>,
    /// A zone of a tolling station at 5.8 GHz.
    #[rasn(identifier = "cenDsrcTollingZone")]
    pub cen_dsrc_tolling_zone: Option<CenDsrcTollingZone>,
}

/// Values that change rarely.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct BasicVehicleContainerLowFrequency {
    /// Role of a vehicle.
    #[rasn(identifier = "vehicleRole")]
    pub vehicle_role: VehicleRole,
    /// Lights that are switched on.
    #[rasn(identifier = "exteriorLights")]
    pub exterior_lights: ExteriorLights,
    /// Past positions of the station.
    #[rasn(identifier = "pathHistory")]
    pub path_history: Path,
}

/// Values of a public transport vehicle.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct PublicTransportContainer {
    /// `true` if passengers are getting on or off.
    #[rasn(identifier = "embarkationStatus")]
    pub embarkation_status: EmbarkationStatus,
    /// Control of signals by public transport.
    #[rasn(identifier = "ptActivation")]
    pub pt_activation: Option<PtActivation>,
}

/// Values of a special transport.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct SpecialTransportContainer {
    /// Special properties of a transport.
    #[rasn(identifier = "specialTransportType")]
    pub special_transport_type: SpecialTransportType,
    /// State of light bar and siren.
    #[rasn(identifier = "lightBarSirenInUse")]
    pub light_bar_siren_in_use: LightBarSirenInUse,
}

/// Values of a vehicle that carries dangerous goods.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct DangerousGoodsContainer {
    /// Class of dangerous goods.
    #[rasn(identifier = "dangerousGoodsBasic")]
    pub dangerous_goods_basic: DangerousGoodsBasic,
}

/// Values of a road works vehicle.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct RoadWorksContainerBasic {
    /// Kind of the road works.
    #[rasn(identifier = "roadworksSubCauseCode")]
    pub roadworks_sub_cause_code: Option<RoadworksSubCauseCode>,
    /// State of light bar and siren.
    #[rasn(identifier = "lightBarSirenInUse")]
    pub light_bar_siren_in_use: LightBarSirenInUse,
    /// Closed lanes of a road.
    #[rasn(identifier = "closedLanes")]
    pub closed_lanes: Option<ClosedLanes>,
}

/// Values of a rescue vehicle.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct RescueContainer {
    /// State of light bar and siren.
    #[rasn(identifier = "lightBarSirenInUse")]
    pub light_bar_siren_in_use: LightBarSirenInUse,
}

/// Values of an emergency vehicle on duty.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct EmergencyContainer {
    /// State of light bar and siren.
    #[rasn(identifier = "lightBarSirenInUse")]
    pub light_bar_siren_in_use: LightBarSirenInUse,
    /// Cause of the event.
    #[rasn(identifier = "incidentIndication")]
    pub incident_indication: Option<CauseCodeV2>,
    /// Right of way that an emergency vehicle requests.
    #[rasn(identifier = "emergencyPriority")]
    pub emergency_priority: Option<EmergencyPriority>,
}

/// Values of a safety car.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct SafetyCarContainer {
    /// State of light bar and siren.
    #[rasn(identifier = "lightBarSirenInUse")]
    pub light_bar_siren_in_use: LightBarSirenInUse,
    /// Cause of the event.
    #[rasn(identifier = "incidentIndication")]
    pub incident_indication: Option<CauseCodeV2>,
    /// Overtaking rule.
    #[rasn(identifier = "trafficRule")]
    pub traffic_rule: Option<TrafficRule>,
    /// Speed limit in km/h.
    #[rasn(identifier = "speedLimit")]
    pub speed_limit: Option<SpeedLimit>,
}

/// Values of a roadside unit; ASN.1 name `RSUContainerHighFrequency`.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct RsuContainerHighFrequency {
    /// Protected zones that a roadside unit announces; ASN.1 name `ProtectedCommunicationZonesRSU`.
    #[rasn(identifier = "protectedCommunicationZonesRSU")]
    pub protected_communication_zones_rsu: Option<ProtectedCommunicationZonesRsu>,
}

impl RsuContainerHighFrequency {
    /// Creates a value with the mandatory members only.
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

/// Identifier of an extension container.
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
    /// Values of one kind of two-wheeler.
    #[rasn(identifier = "typeSpecificInformation")]
    pub type_specific_information: Option<TwoWheelerTypeSpecificInformation>,
    /// Roll angle.
    #[rasn(identifier = "rollAngle")]
    pub roll_angle: Option<CartesianAngle>,
    /// Orientation of the vehicle.
    pub orientation: Option<Wgs84Angle>,
    /// An expected loss of stability.
    #[rasn(identifier = "stabilityChangeIndication")]
    pub stability_change_indication: Option<StabilityChangeIndication>,
}

impl TwoWheelerContainer {
    /// Creates a value with the mandatory members only.
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

/// Values of one kind of two-wheeler.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(choice, automatic_tags)]
#[non_exhaustive]
pub enum TwoWheelerTypeSpecificInformation {
    /// A cyclist.
    #[rasn(identifier = "cyclist")]
    Cyclist(CyclistTypeSpecificInformation),
}

/// Values of a cyclist.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct CyclistTypeSpecificInformation {
    /// Kind of a cyclist or light vehicle.
    #[rasn(identifier = "vruSubProfileBicyclist")]
    pub vru_sub_profile_bicyclist: Option<VruSubProfileBicyclist>,
    /// Control action of a road user that changes the movement.
    #[rasn(identifier = "vruMovementControl")]
    pub vru_movement_control: Option<VruMovementControl>,
}

impl CyclistTypeSpecificInformation {
    /// Creates a value with the mandatory members only.
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

/// Extension container 2: the road ahead and behind according to the vehicle.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct EHorizonLocationSharingContainer {
    /// The road ahead.
    #[rasn(identifier = "segmentAhead")]
    pub segment_ahead: PolygonalLine,
    /// Confidence of each point of the road ahead.
    #[rasn(identifier = "nodeProbabilities")]
    pub node_probabilities: Option<ConfidenceLevels>,
    /// The road behind.
    #[rasn(identifier = "segmentBehind")]
    pub segment_behind: PolygonalLine,
    /// Lanes of the road ahead.
    #[rasn(identifier = "laneLevelDetails")]
    pub lane_level_details: Option<BasicLaneConfiguration>,
    /// Source and confidence of the road data.
    #[rasn(identifier = "segmentSource")]
    pub segment_source: Option<MetaInformation>,
}

impl EHorizonLocationSharingContainer {
    /// Creates a value with the mandatory members only.
    #[must_use]
    pub const fn new(segment_ahead: PolygonalLine, segment_behind: PolygonalLine) -> Self {
        Self { segment_ahead, node_probabilities: None, segment_behind, lane_level_details: None, segment_source: None }
    }
}

/// Extension container 3: values that change very rarely.
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
    /// Active brake controls.
    #[rasn(identifier = "brakeControl")]
    pub brake_control: Option<BrakeControl>,
}

impl VeryLowFrequencyContainer {
    /// Creates a value with the mandatory members only.
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

/// Extension container 4: predicted paths of the vehicle.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct PathPredictionContainer {
    /// A list of predicted paths.
    #[rasn(identifier = "pathPredictedList")]
    pub path_predicted_list: PathPredictedList,
}

impl PathPredictionContainer {
    /// Creates a value with these members.
    #[must_use]
    pub const fn new(path_predicted_list: PathPredictedList) -> Self {
        Self { path_predicted_list }
    }
}

/// Extension container 5: lane positions of the vehicle.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct GeneralizedLanePositionsContainer {
    /// Positions across the road.
    #[rasn(identifier = "generalizedLanePositions")]
    pub generalized_lane_positions: GeneralizedLanePositions,
}

impl GeneralizedLanePositionsContainer {
    /// Creates a value with these members.
    #[must_use]
    pub const fn new(generalized_lane_positions: GeneralizedLanePositions) -> Self {
        Self { generalized_lane_positions }
    }
}

/// Extension container 6: controls of the vehicle's movement.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct VehicleMovementControlContainer {
    /// Controls of a vehicle's movement: pedals and automated functions.
    #[rasn(identifier = "vehicleMovementControl")]
    pub vehicle_movement_control: VehicleMovementControl,
}

impl VehicleMovementControlContainer {
    /// Creates a value with these members.
    #[must_use]
    pub const fn new(vehicle_movement_control: VehicleMovementControl) -> Self {
        Self { vehicle_movement_control }
    }
}
