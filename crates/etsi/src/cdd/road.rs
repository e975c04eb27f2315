//! Roads, lanes and maps.

use super::bits::large_bit_string;
use super::extensible::extensible_integer;
use rasn::prelude::*;

use super::{
    header::{Identifier1B, Identifier2B},
    path::PathReferences,
    perception::MetaInformation,
    position::{GeoPosition, StandardLength2B, StandardLength9b},
};
/// Kind of a road.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[rasn(enumerated)]
pub enum RoadType {
    /// `urban-NoStructuralSeparationToOppositeLanes`.
    #[rasn(identifier = "urban-NoStructuralSeparationToOppositeLanes")]
    UrbanNoStructuralSeparationToOppositeLanes,
    /// `urban-WithStructuralSeparationToOppositeLanes`.
    #[rasn(identifier = "urban-WithStructuralSeparationToOppositeLanes")]
    UrbanWithStructuralSeparationToOppositeLanes,
    /// `nonUrban-NoStructuralSeparationToOppositeLanes`.
    #[rasn(identifier = "nonUrban-NoStructuralSeparationToOppositeLanes")]
    NonUrbanNoStructuralSeparationToOppositeLanes,
    /// `nonUrban-WithStructuralSeparationToOppositeLanes`.
    #[rasn(identifier = "nonUrban-WithStructuralSeparationToOppositeLanes")]
    NonUrbanWithStructuralSeparationToOppositeLanes,
}

/// Number of a lane, counted from the outside.
///
/// -1 to 14.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("-1..=14"))]
pub struct LanePosition(pub i8);

impl LanePosition {
    /// `offTheRoad`.
    pub const OFF_THE_ROAD: Self = Self(-1);
    /// `innerHardShoulder`.
    pub const INNER_HARD_SHOULDER: Self = Self(0);
    /// `outerHardShoulder`.
    pub const OUTER_HARD_SHOULDER: Self = Self(14);
}

/// Purpose of a lane.
///
/// 0 to 31.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=31"))]
pub struct LaneType(pub u8);

impl LaneType {
    /// `traffic`.
    pub const TRAFFIC: Self = Self(0);
    /// `through`.
    pub const THROUGH: Self = Self(1);
    /// `reversible`.
    pub const REVERSIBLE: Self = Self(2);
    /// `acceleration`.
    pub const ACCELERATION: Self = Self(3);
    /// `deceleration`.
    pub const DECELERATION: Self = Self(4);
    /// `leftHandTurning`.
    pub const LEFT_HAND_TURNING: Self = Self(5);
    /// `rightHandTurning`.
    pub const RIGHT_HAND_TURNING: Self = Self(6);
    /// `dedicatedVehicle`.
    pub const DEDICATED_VEHICLE: Self = Self(7);
    /// `bus`.
    pub const BUS: Self = Self(8);
    /// `taxi`.
    pub const TAXI: Self = Self(9);
    /// `hov`.
    pub const HOV: Self = Self(10);
    /// `hot`.
    pub const HOT: Self = Self(11);
    /// `pedestrian`.
    pub const PEDESTRIAN: Self = Self(12);
    /// `cycleLane`.
    pub const CYCLE_LANE: Self = Self(13);
    /// `median`.
    pub const MEDIAN: Self = Self(14);
    /// `striping`.
    pub const STRIPING: Self = Self(15);
    /// `trackedVehicle`.
    pub const TRACKED_VEHICLE: Self = Self(16);
    /// `parking`.
    pub const PARKING: Self = Self(17);
    /// `emergency`.
    pub const EMERGENCY: Self = Self(18);
    /// `verge`.
    pub const VERGE: Self = Self(19);
    /// `minimumRiskManoeuvre`.
    pub const MINIMUM_RISK_MANOEUVRE: Self = Self(20);
    /// `exclusiveCycleLane`.
    pub const EXCLUSIVE_CYCLE_LANE: Self = Self(21);
    /// `unknown`.
    pub const UNKNOWN: Self = Self(31);
}

/// Width of a lane in 0.01 m.
///
/// 0 to 1023.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=1023"))]
pub struct LaneWidth(pub u16);

/// A direction relative to another direction.
///
/// 0 to 3.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=3"))]
pub struct Direction(pub u8);

impl Direction {
    /// `sameDirection`.
    pub const SAME_DIRECTION: Self = Self(0);
    /// `oppositeDirection`.
    pub const OPPOSITE_DIRECTION: Self = Self(1);
    /// `bothDirections`.
    pub const BOTH_DIRECTIONS: Self = Self(2);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(3);
}

/// A lane by number, type and direction.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct LanePositionAndType {
    /// Number of the lane.
    #[rasn(identifier = "transversalPosition")]
    pub transversal_position: LanePosition,
    /// Purpose of a lane.
    #[rasn(default = "traffic_lane", identifier = "laneType")]
    pub lane_type: LaneType,
    /// Direction of travel relative to the reference direction.
    #[rasn(default = "same_direction")]
    pub direction: Direction,
}

impl LanePositionAndType {
    /// Creates a value with these members.
    #[must_use]
    pub const fn new(transversal_position: LanePosition) -> Self {
        Self { transversal_position, lane_type: traffic_lane(), direction: same_direction() }
    }
}

/// A position across a lane.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct LanePositionWithLateralDetails {
    /// Number of the lane.
    #[rasn(identifier = "transversalPosition")]
    pub transversal_position: LanePosition,
    /// Purpose of a lane.
    #[rasn(default = "traffic_lane", identifier = "laneType")]
    pub lane_type: LaneType,
    /// Direction of travel relative to the reference direction.
    #[rasn(default = "same_direction")]
    pub direction: Direction,
    /// Distance to the left border of the lane.
    #[rasn(identifier = "distanceToLeftBorder")]
    pub distance_to_left_border: StandardLength9b,
    /// Distance to the right border of the lane.
    #[rasn(identifier = "distanceToRightBorder")]
    pub distance_to_right_border: StandardLength9b,
}

impl LanePositionWithLateralDetails {
    /// Creates a value with these members.
    #[must_use]
    pub const fn new(
        transversal_position: LanePosition,
        distance_to_left_border: StandardLength9b,
        distance_to_right_border: StandardLength9b,
    ) -> Self {
        Self {
            transversal_position,
            lane_type: traffic_lane(),
            direction: same_direction(),
            distance_to_left_border,
            distance_to_right_border,
        }
    }
}

/// A traffic island between two lanes.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct TrafficIslandPosition {
    /// The lane on one side.
    #[rasn(identifier = "oneSide")]
    pub one_side: LanePositionAndType,
    /// The lane on the other side.
    #[rasn(identifier = "otherSide")]
    pub other_side: LanePositionAndType,
}

impl TrafficIslandPosition {
    /// Creates a value with these members.
    #[must_use]
    pub const fn new(one_side: LanePositionAndType, other_side: LanePositionAndType) -> Self {
        Self { one_side, other_side }
    }
}

/// A position across the road, in one of several forms.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(choice, automatic_tags)]
#[non_exhaustive]
pub enum LanePositionOptions {
    /// The lane by number.
    #[rasn(identifier = "simplelanePosition")]
    SimplelanePosition(LanePosition),
    /// The lane by type.
    #[rasn(identifier = "simpleLaneType")]
    SimpleLaneType(LaneType),
    /// The lane by number, type and direction.
    #[rasn(identifier = "detailedlanePosition")]
    DetailedlanePosition(LanePositionAndType),
    /// Position across the lane.
    #[rasn(identifier = "lanePositionWithLateralDetails")]
    LanePositionWithLateralDetails(LanePositionWithLateralDetails),
    /// Position on a traffic island.
    #[rasn(identifier = "trafficIslandPosition")]
    TrafficIslandPosition(TrafficIslandPosition),
}

/// Distance along a lane in 0.1 m.
///
/// 0 to 32 767.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=32767"))]
pub struct LongitudinalLanePositionValue(pub u16);

impl LongitudinalLanePositionValue {
    /// `outOfRange`.
    pub const OUT_OF_RANGE: Self = Self(32_766);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(32_767);
}

/// Half of the 95 % interval of a distance along a lane in 0.1 m.
///
/// 0 to 1023.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=1023"))]
pub struct LongitudinalLanePositionConfidence(pub u16);

impl LongitudinalLanePositionConfidence {
    /// `outOfRange`.
    pub const OUT_OF_RANGE: Self = Self(1022);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(1023);
}

/// Distance along a lane and its accuracy.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct LongitudinalLanePosition {
    /// Distance along a lane in 0.1 m.
    #[rasn(identifier = "longitudinalLanePositionValue")]
    pub longitudinal_lane_position_value: LongitudinalLanePositionValue,
    /// Half of the 95 % interval of a distance along a lane in 0.1 m.
    #[rasn(identifier = "longitudinalLanePositionConfidence")]
    pub longitudinal_lane_position_confidence: LongitudinalLanePositionConfidence,
}

/// A position on the map of a MAPEM.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct MapPosition {
    /// The map element.
    #[rasn(identifier = "mapReference")]
    pub map_reference: Option<MapReference>,
    /// The lane.
    #[rasn(identifier = "laneId")]
    pub lane_id: Option<Identifier1B>,
    /// The connection between lanes.
    #[rasn(identifier = "connectionId")]
    pub connection_id: Option<Identifier1B>,
    /// Distance along a lane and its accuracy.
    #[rasn(identifier = "longitudinalLanePosition")]
    pub longitudinal_lane_position: Option<LongitudinalLanePosition>,
}

impl MapPosition {
    /// Creates a value with the mandatory members only.
    #[must_use]
    pub const fn new() -> Self {
        Self { map_reference: None, lane_id: None, connection_id: None, longitudinal_lane_position: None }
    }
}

impl Default for MapPosition {
    fn default() -> Self {
        Self::new()
    }
}

/// A map element of a MAPEM.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(choice, automatic_tags)]
pub enum MapReference {
    /// A road segment.
    #[rasn(identifier = "roadsegment")]
    Roadsegment(RoadSegmentReferenceId),
    /// An intersection.
    #[rasn(identifier = "intersection")]
    Intersection(IntersectionReferenceId),
}

/// A list of references to map elements.
///
/// 1 to 8 elements; other sizes are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=8", extensible))]
pub struct MapReferences(pub Vec<MapReference>);

/// Identifier of an intersection.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct IntersectionReferenceId {
    /// Region of the identifier.
    pub region: Option<Identifier2B>,
    /// Number of the intersection.
    pub id: Identifier2B,
}

/// Identifier of a road segment.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct RoadSegmentReferenceId {
    /// Region of the identifier.
    pub region: Option<Identifier2B>,
    /// Number of the segment.
    pub id: Identifier2B,
}

/// Lanes and connections of MAPEMs.
///
/// 1 to 16 elements; other sizes are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=16", extensible))]
pub struct MapemConfiguration(pub Vec<MapemElementReference>);

/// Lanes or connections of a map element.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct MapemElementReference {
    /// The map element.
    #[rasn(identifier = "mapReference")]
    pub map_reference: Option<MapReference>,
    /// The lanes.
    #[rasn(identifier = "laneIds")]
    pub lane_ids: Option<MapemLaneList>,
    /// The connections.
    #[rasn(identifier = "connectionIds")]
    pub connection_ids: Option<MapemConnectionList>,
}

impl MapemElementReference {
    /// Creates a value with the mandatory members only.
    #[must_use]
    pub const fn new() -> Self {
        Self { map_reference: None, lane_ids: None, connection_ids: None }
    }
}

impl Default for MapemElementReference {
    fn default() -> Self {
        Self::new()
    }
}

/// Lanes of a MAPEM.
///
/// 1 to 8 elements; other sizes are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=8", extensible))]
pub struct MapemLaneList(pub Vec<Identifier1B>);

/// Connections of a MAPEM.
///
/// 1 to 8 elements; other sizes are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=8", extensible))]
pub struct MapemConnectionList(pub Vec<Identifier1B>);

/// A position across the road, by lane and on the map.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct GeneralizedLanePosition {
    /// Position by lanes.
    #[rasn(identifier = "lanePositionBased")]
    pub lane_position_based: LanePositionOptions,
    /// Position on a map.
    #[rasn(identifier = "mapBased")]
    pub map_based: Option<MapPosition>,
    /// Source and confidence of the information.
    pub confidence: MetaInformation,
}

impl GeneralizedLanePosition {
    /// Creates a value with the mandatory members only.
    #[must_use]
    pub const fn new(lane_position_based: LanePositionOptions, confidence: MetaInformation) -> Self {
        Self { lane_position_based, map_based: None, confidence }
    }
}

/// Positions across the road.
///
/// 1 to 4 elements.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=4"))]
pub struct GeneralizedLanePositions(pub Vec<GeneralizedLanePosition>);

/// Lanes that an object occupies.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct OccupiedLanesWithConfidence {
    /// Position by lanes, 1 to 4 elements.
    #[rasn(size("1..=4"), identifier = "lanePositionBased")]
    pub lane_position_based: Vec<LanePositionOptions>,
    /// Position on a map, 1 to 4 elements.
    #[rasn(size("1..=4"), identifier = "mapBased")]
    pub map_based: Option<Vec<MapPosition>>,
    /// Source and confidence of the information.
    pub confidence: MetaInformation,
}

impl OccupiedLanesWithConfidence {
    /// Creates a value with the mandatory members only.
    #[must_use]
    pub const fn new(lane_position_based: Vec<LanePositionOptions>, confidence: MetaInformation) -> Self {
        Self { lane_position_based, map_based: None, confidence }
    }
}

/// A lane of a road section.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct BasicLaneInformation {
    /// Number of the lane.
    #[rasn(identifier = "laneNumber")]
    pub lane_number: LanePosition,
    /// Direction of travel relative to the reference direction.
    pub direction: Direction,
    /// Width of a lane in 0.01 m.
    #[rasn(identifier = "laneWidth")]
    pub lane_width: Option<LaneWidth>,
    /// Lane to which this lane leads.
    #[rasn(identifier = "connectingLane")]
    pub connecting_lane: Option<LanePosition>,
    /// Road section to which this lane leads.
    #[rasn(identifier = "connectingRoadSection")]
    pub connecting_road_section: Option<RoadSectionId>,
}

impl BasicLaneInformation {
    /// Creates a value with the mandatory members only.
    #[must_use]
    pub const fn new(lane_number: LanePosition, direction: Direction) -> Self {
        Self { lane_number, direction, lane_width: None, connecting_lane: None, connecting_road_section: None }
    }
}

/// Lanes of a road section.
///
/// 1 to 16 elements; other sizes are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=16", extensible))]
pub struct BasicLaneConfiguration(pub Vec<BasicLaneInformation>);

/// Number of a road section in the message.
///
/// 0 to 8; other values are extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RoadSectionId(pub i64);

extensible_integer!(RoadSectionId, 0, 8);

/// Position and extent of a road section.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct RoadSectionDefinition {
    /// Start of the section.
    #[rasn(identifier = "startingPointSection")]
    pub starting_point_section: GeoPosition,
    /// Length of the section in m.
    #[rasn(identifier = "lengthOfSection")]
    pub length_of_section: Option<StandardLength2B>,
    /// End of the section.
    #[rasn(identifier = "endingPointSection")]
    pub ending_point_section: Option<GeoPosition>,
    /// Paths that lead to the section.
    #[rasn(identifier = "connectedPaths")]
    pub connected_paths: PathReferences,
    /// Paths in the section.
    #[rasn(identifier = "includedPaths")]
    pub included_paths: PathReferences,
    /// `true` if the section contains the event zone.
    #[rasn(identifier = "isEventZoneIncluded")]
    pub is_event_zone_included: bool,
    /// `true` if the event zone touches the section.
    #[rasn(identifier = "isEventZoneConnected")]
    pub is_event_zone_connected: bool,
}

impl RoadSectionDefinition {
    /// Creates a value with the mandatory members only.
    #[must_use]
    pub const fn new(
        starting_point_section: GeoPosition,
        connected_paths: PathReferences,
        included_paths: PathReferences,
        is_event_zone_included: bool,
        is_event_zone_connected: bool,
    ) -> Self {
        Self {
            starting_point_section,
            length_of_section: None,
            ending_point_section: None,
            connected_paths,
            included_paths,
            is_event_zone_included,
            is_event_zone_connected,
        }
    }
}

/// A road section and its lanes.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct RoadConfigurationSection {
    /// Position and extent of a road section.
    #[rasn(identifier = "roadSectionDefinition")]
    pub road_section_definition: RoadSectionDefinition,
    /// Kind of a road.
    #[rasn(identifier = "roadType")]
    pub road_type: Option<RoadType>,
    /// Lanes of the section.
    #[rasn(identifier = "laneConfiguration")]
    pub lane_configuration: Option<BasicLaneConfiguration>,
    /// Lanes and connections of MAPEMs.
    #[rasn(identifier = "mapemConfiguration")]
    pub mapem_configuration: Option<MapemConfiguration>,
}

impl RoadConfigurationSection {
    /// Creates a value with the mandatory members only.
    #[must_use]
    pub const fn new(road_section_definition: RoadSectionDefinition) -> Self {
        Self { road_section_definition, road_type: None, lane_configuration: None, mapem_configuration: None }
    }
}

/// A list of road sections.
///
/// 1 to 8 elements; other sizes are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=8", extensible))]
pub struct RoadConfigurationSectionList(pub Vec<RoadConfigurationSection>);

/// Number of an IVI structure.
///
/// 1 to 32 767; other values are extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IviIdentificationNumber(pub i64);

extensible_integer!(IviIdentificationNumber, 1, 32_767);

/// A country by ten bits (EN ISO 14816).
///
/// 10 bits.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(delegate)]
pub struct CountryCode(pub FixedBitString<10>);

large_bit_string!(CountryCode, 10);

/// An issuer inside its country (EN ISO 14816).
///
/// 0 to 16 383.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=16383"))]
pub struct IssuerIdentifier(pub u16);

/// Provider of a service.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct Provider {
    /// A country by ten bits (EN ISO 14816).
    #[rasn(identifier = "countryCode")]
    pub country_code: CountryCode,
    /// The issuer.
    #[rasn(identifier = "providerIdentifier")]
    pub provider_identifier: IssuerIdentifier,
}

/// Identifier of an IVIM.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct IvimReference {
    /// Provider of the service.
    #[rasn(identifier = "serviceProviderId")]
    pub service_provider_id: Provider,
    /// Number of an IVI structure.
    #[rasn(identifier = "iviIdentificationNumber")]
    pub ivi_identification_number: IviIdentificationNumber,
}

/// A list of references to IVIMs.
///
/// 1 to 8 elements; other sizes are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=8", extensible))]
pub struct IvimReferences(pub Vec<IvimReference>);

const fn same_direction() -> Direction {
    Direction::SAME_DIRECTION
}

const fn traffic_lane() -> LaneType {
    LaneType::TRAFFIC
}
