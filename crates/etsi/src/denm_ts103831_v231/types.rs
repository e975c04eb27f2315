//! Types of the DENM, under their ASN.1 names, with the types of the data dictionary that it uses.

use rasn::prelude::*;

pub use crate::cdd::*;

/// Decentralized environmental notification message; ASN.1 name `DENM`.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct Denm {
    /// Protocol version, message type and sender.
    pub header: ItsPduHeader,
    /// Content of the DENM.
    pub denm: DenmPayload,
}

/// The containers of a DENM. A termination has the management container only.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct DenmPayload {
    /// Identifier, time, position and validity of the event.
    pub management: ManagementContainer,
    /// Cause of the event and quality of the information.
    pub situation: Option<Box<SituationContainer>>,
    /// Movement of the event and the paths that lead to it.
    pub location: Option<Box<LocationContainer>>,
    /// Values that only some kinds of events have.
    pub alacarte: Option<Box<AlacarteContainer>>,
}

/// Identifier, time, position and validity of the event.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct ManagementContainer {
    /// Identifier of the event.
    #[rasn(identifier = "actionId")]
    pub action_id: ActionId,
    /// Time at which the event, or its end, was detected.
    #[rasn(identifier = "detectionTime")]
    pub detection_time: TimestampIts,
    /// Generation time of the information, or origin of the times in the message.
    #[rasn(identifier = "referenceTime")]
    pub reference_time: TimestampIts,
    /// Kind of the termination; absent while the event lasts.
    pub termination: Option<Termination>,
    /// Position of the event.
    #[rasn(identifier = "eventPosition")]
    pub event_position: ReferencePosition,
    /// Distance from the event up to which the information is relevant.
    #[rasn(identifier = "awarenessDistance")]
    pub awareness_distance: Option<StandardLength3b>,
    /// Traffic direction that is affected.
    #[rasn(identifier = "trafficDirection")]
    pub traffic_direction: Option<TrafficDirection>,
    /// Time for which the event is valid after its detection, in s; 600 s if it is absent on the wire.
    #[rasn(default = "default_validity", identifier = "validityDuration")]
    pub validity_duration: DeltaTimeSecond,
    /// Time between two messages of the originator in ms.
    #[rasn(identifier = "transmissionInterval")]
    pub transmission_interval: Option<DeltaTimeMilliSecondPositive>,
    /// Type of the station.
    #[rasn(identifier = "stationType")]
    pub station_type: StationType,
}

impl ManagementContainer {
    /// Creates a value with the mandatory members only.
    #[must_use]
    pub const fn new(
        action_id: ActionId,
        detection_time: TimestampIts,
        reference_time: TimestampIts,
        event_position: ReferencePosition,
        station_type: StationType,
    ) -> Self {
        Self {
            action_id,
            detection_time,
            reference_time,
            termination: None,
            event_position,
            awareness_distance: None,
            traffic_direction: None,
            validity_duration: default_validity(),
            transmission_interval: None,
            station_type,
        }
    }
}

/// Cause of the event and quality of the information.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct SituationContainer {
    /// Quality of the information, 0 (lowest) to 7.
    #[rasn(identifier = "informationQuality")]
    pub information_quality: InformationQuality,
    /// Cause of the event.
    #[rasn(identifier = "eventType")]
    pub event_type: CauseCodeV2,
    /// Cause of a linked event.
    #[rasn(identifier = "linkedCause")]
    pub linked_cause: Option<CauseCodeV2>,
    /// The zone of the event.
    #[rasn(identifier = "eventZone")]
    pub event_zone: Option<EventZone>,
    /// Members that version 2.1.1 added.
    #[rasn(extension_addition_group, identifier = "additions1")]
    pub additions1: Option<SituationAdditions1>,
    /// Members that version 2.3.1 added.
    #[rasn(extension_addition_group, identifier = "additions2")]
    pub additions2: Option<SituationAdditions2>,
}

impl SituationContainer {
    /// Creates a value with the mandatory members only.
    #[must_use]
    pub const fn new(information_quality: InformationQuality, event_type: CauseCodeV2) -> Self {
        Self {
            information_quality,
            event_type,
            linked_cause: None,
            event_zone: None,
            additions1: None,
            additions2: None,
        }
    }
}

/// Additions to [`SituationContainer`], first group.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(automatic_tags)]
pub struct SituationAdditions1 {
    /// Other events that are linked to the event.
    #[rasn(identifier = "linkedDenms")]
    pub linked_denms: Option<ActionIdList>,
    /// End of the event, as a distance along the road in m.
    #[rasn(identifier = "eventEnd")]
    pub event_end: Option<Position1d>,
}

/// Additions to [`SituationContainer`], second group.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(automatic_tags)]
pub struct SituationAdditions2 {
    /// Factor by which the end of the event is multiplied.
    #[rasn(identifier = "eventEndFactor")]
    pub event_end_factor: Option<MultiplicativeFactor>,
    /// `true` if the sender itself perceived the event.
    #[rasn(identifier = "perceivedEvent")]
    pub perceived_event: Option<PerceivedEvent>,
}

/// Movement of the event and the paths that lead to it.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct LocationContainer {
    /// Speed of the event.
    #[rasn(identifier = "eventSpeed")]
    pub event_speed: Option<Speed>,
    /// Direction in which the event moves.
    #[rasn(identifier = "eventPositionHeading")]
    pub event_position_heading: Option<Wgs84Angle>,
    /// Paths that lead to the event.
    #[rasn(identifier = "detectionZonesToEventPosition")]
    pub detection_zones_to_event_position: Traces,
    /// Kind of a road.
    #[rasn(identifier = "roadType")]
    pub road_type: Option<RoadType>,
    /// Members that version 2.1.1 and later added.
    #[rasn(extension_addition_group, identifier = "additions")]
    pub additions: Option<LocationAdditions>,
}

impl LocationContainer {
    /// Creates a value with the mandatory members only.
    #[must_use]
    pub const fn new(detection_zones_to_event_position: Traces) -> Self {
        Self {
            event_speed: None,
            event_position_heading: None,
            detection_zones_to_event_position,
            road_type: None,
            additions: None,
        }
    }
}

/// Additions to [`LocationContainer`].
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(automatic_tags)]
pub struct LocationAdditions {
    /// Lanes of the event.
    #[rasn(identifier = "lanePositions")]
    pub lane_positions: Option<GeneralizedLanePositions>,
    /// Lanes that the event occupies.
    #[rasn(identifier = "occupiedLanes")]
    pub occupied_lanes: Option<OccupiedLanesWithConfidence>,
    /// IVIMs that are linked to the event.
    #[rasn(identifier = "linkedIvims")]
    pub linked_ivims: Option<IvimReferences>,
    /// Maps that are linked to the event.
    #[rasn(identifier = "linkedMapems")]
    pub linked_mapems: Option<MapReferences>,
    /// Paths that lead to points of the zone.
    #[rasn(identifier = "detectionZonesToSpecifiedEventPoint")]
    pub detection_zones_to_specified_event_point: Option<TracesExtended>,
    /// Predicted paths of the event.
    #[rasn(identifier = "predictedPaths")]
    pub predicted_paths: Option<PathPredictedList>,
}

/// Dimensions of a vehicle, for a collision that cannot be avoided.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct ImpactReductionContainer {
    /// Height of the left longitudinal carrier.
    #[rasn(identifier = "heightLonCarrLeft")]
    pub height_lon_carr_left: HeightLonCarr,
    /// Height of the right longitudinal carrier.
    #[rasn(identifier = "heightLonCarrRight")]
    pub height_lon_carr_right: HeightLonCarr,
    /// Position of the left longitudinal carrier.
    #[rasn(identifier = "posLonCarrLeft")]
    pub pos_lon_carr_left: PosLonCarr,
    /// Position of the right longitudinal carrier.
    #[rasn(identifier = "posLonCarrRight")]
    pub pos_lon_carr_right: PosLonCarr,
    /// Positions of the pillars, from front to back.
    #[rasn(identifier = "positionOfPillars")]
    pub position_of_pillars: PositionOfPillars,
    /// Distance of the centre of mass from the front in 0.1 m.
    #[rasn(identifier = "posCentMass")]
    pub pos_cent_mass: PosCentMass,
    /// Distance between the axles in 0.1 m.
    #[rasn(identifier = "wheelBaseVehicle")]
    pub wheel_base_vehicle: WheelBaseVehicle,
    /// Smallest turning circle in 0.4 m.
    #[rasn(identifier = "turningRadius")]
    pub turning_radius: TurningRadius,
    /// Distance of the front axle from the front in 0.1 m.
    #[rasn(identifier = "posFrontAx")]
    pub pos_front_ax: PosFrontAx,
    /// Occupied seats.
    #[rasn(identifier = "positionOfOccupants")]
    pub position_of_occupants: PositionOfOccupants,
    /// Mass of an empty vehicle in 100 kg.
    #[rasn(identifier = "vehicleMass")]
    pub vehicle_mass: VehicleMass,
    /// Kind of a message exchange: request or response.
    #[rasn(identifier = "requestResponseIndication")]
    pub request_response_indication: RequestResponseIndication,
}

/// An object with which a collision is expected.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct PreCrashContainer {
    /// The object.
    #[rasn(identifier = "perceivedPreCrashObject")]
    pub perceived_pre_crash_object: Box<PerceivedObject>,
    /// Station of the object.
    #[rasn(identifier = "objectStationId")]
    pub object_station_id: Option<StationId>,
    /// Time until the collision.
    #[rasn(identifier = "timeToCollision")]
    pub time_to_collision: Option<DeltaTimeMilliSecondPositive>,
    /// Face of the vehicle that is hit.
    #[rasn(identifier = "impactSection")]
    pub impact_section: Option<ObjectFace>,
    /// Braking distance to a standstill in 0.1 m.
    #[rasn(identifier = "estimatedBrakingDistance")]
    pub estimated_braking_distance: Option<StandardLength12b>,
}

impl PreCrashContainer {
    /// Creates a value with the mandatory members only.
    #[must_use]
    pub const fn new(perceived_pre_crash_object: Box<PerceivedObject>) -> Self {
        Self {
            perceived_pre_crash_object,
            object_station_id: None,
            time_to_collision: None,
            impact_section: None,
            estimated_braking_distance: None,
        }
    }
}

/// The road around the event.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct RoadConfigurationContainer {
    /// Source and confidence of the information.
    #[rasn(identifier = "roadConfigurationConfidence")]
    pub road_configuration_confidence: MetaInformation,
    /// A list of road sections.
    #[rasn(identifier = "roadConfigurationSectionList")]
    pub road_configuration_section_list: RoadConfigurationSectionList,
}

impl RoadConfigurationContainer {
    /// Creates a value with these members.
    #[must_use]
    pub const fn new(
        road_configuration_confidence: MetaInformation,
        road_configuration_section_list: RoadConfigurationSectionList,
    ) -> Self {
        Self { road_configuration_confidence, road_configuration_section_list }
    }
}

/// Details of road works.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct RoadWorksContainerExtended {
    /// State of light bar and siren.
    #[rasn(identifier = "lightBarSirenInUse")]
    pub light_bar_siren_in_use: Option<LightBarSirenInUse>,
    /// Closed lanes of a road.
    #[rasn(identifier = "closedLanes")]
    pub closed_lanes: Option<ClosedLanes>,
    /// Types of vehicles that may enter.
    pub restriction: Option<RestrictedTypes>,
    /// Speed limit in km/h.
    #[rasn(identifier = "speedLimit")]
    pub speed_limit: Option<SpeedLimit>,
    /// Cause of the event.
    #[rasn(identifier = "incidentIndication")]
    pub incident_indication: Option<CauseCodeV2>,
    /// Recommended detour.
    #[rasn(identifier = "recommendedPath")]
    pub recommended_path: Option<ItineraryPath>,
    /// Start of the speed limit, relative to the event.
    #[rasn(identifier = "startingPointSpeedLimit")]
    pub starting_point_speed_limit: Option<DeltaReferencePosition>,
    /// Overtaking rule.
    #[rasn(identifier = "trafficFlowRule")]
    pub traffic_flow_rule: Option<TrafficRule>,
    /// Events that belong to the road works.
    #[rasn(identifier = "referenceDenms")]
    pub reference_denms: Option<ActionIdList>,
}

/// Details of a stationary vehicle.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct StationaryVehicleContainer {
    /// Time for which a vehicle has been stationary.
    #[rasn(identifier = "stationarySince")]
    pub stationary_since: Option<StationarySince>,
    /// Cause of the standstill.
    #[rasn(identifier = "stationaryCause")]
    pub stationary_cause: Option<CauseCodeV2>,
    /// Dangerous goods that the vehicle carries.
    #[rasn(identifier = "carryingDangerousGoods")]
    pub carrying_dangerous_goods: Option<DangerousGoodsExtended>,
    /// Number of occupants.
    #[rasn(identifier = "numberOfOccupants")]
    pub number_of_occupants: Option<NumberOfOccupants>,
    /// Parts of a vehicle's identification number.
    #[rasn(identifier = "vehicleIdentification")]
    pub vehicle_identification: Option<VehicleIdentification>,
    /// Energy storage of a vehicle.
    #[rasn(identifier = "energyStorageType")]
    pub energy_storage_type: Option<EnergyStorageType>,
}

/// Values that only some kinds of events have.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct AlacarteContainer {
    /// Number of a lane, counted from the outside.
    #[rasn(identifier = "lanePosition")]
    pub lane_position: Option<LanePosition>,
    /// Dimensions of the vehicle, for a collision that cannot be avoided.
    #[rasn(identifier = "impactReduction")]
    pub impact_reduction: Option<Box<ImpactReductionContainer>>,
    /// Outside temperature.
    #[rasn(identifier = "externalTemperature")]
    pub external_temperature: Option<Temperature>,
    /// Details of road works.
    #[rasn(identifier = "roadWorks")]
    pub road_works: Option<Box<RoadWorksContainerExtended>>,
    /// Positioning method of the vehicle.
    #[rasn(identifier = "positioningSolution")]
    pub positioning_solution: Option<PositioningSolutionType>,
    /// Details of the stationary vehicle.
    #[rasn(identifier = "stationaryVehicle")]
    pub stationary_vehicle: Option<Box<StationaryVehicleContainer>>,
    /// Members that version 2.1.1 and later added.
    #[rasn(extension_addition_group, identifier = "additions")]
    pub additions: Option<AlacarteAdditions>,
}

impl AlacarteContainer {
    /// Creates a value with the mandatory members only.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            lane_position: None,
            impact_reduction: None,
            external_temperature: None,
            road_works: None,
            positioning_solution: None,
            stationary_vehicle: None,
            additions: None,
        }
    }
}

impl Default for AlacarteContainer {
    fn default() -> Self {
        Self::new()
    }
}

/// Additions to [`AlacarteContainer`].
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(automatic_tags)]
pub struct AlacarteAdditions {
    /// The road around the event.
    #[rasn(identifier = "roadConfiguration")]
    pub road_configuration: Option<RoadConfigurationContainer>,
    /// Object with which a collision is expected.
    #[rasn(identifier = "preCrash")]
    pub pre_crash: Option<PreCrashContainer>,
}

/// `true` if the sender itself perceived the event.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(delegate)]
pub struct PerceivedEvent(pub bool);

/// Kind of the termination of an event.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[rasn(enumerated)]
pub enum Termination {
    /// `isCancellation`.
    #[rasn(identifier = "isCancellation")]
    IsCancellation,
    /// `isNegation`.
    #[rasn(identifier = "isNegation")]
    IsNegation,
}

const fn default_validity() -> DeltaTimeSecond {
    DeltaTimeSecond(600)
}
