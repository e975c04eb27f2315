//! Lanes of MAPEMs and signals of SPATEMs (TS 103 301, on ISO TS 19091).
//!
//! ```text
//!            reference point
//!                   o
//!    egress lane    |     ingress lane       Nodes are metres east and north of the reference point.
//!        0          |         0 ===          The first node of a lane is the one next to the intersection: there is
//!        |          |         |              the stop line of an ingress lane, as wide as the lane.
//!        1                    1
//! ```

use std::collections::HashMap;

use serde::Serialize;
use utoipa::ToSchema;
use viaduct_etsi::mapem_ts103301_v221::{Mapem, types as dsrc};
use viaduct_etsi::spatem_ts103301_v221::{Spatem, types as spat};
use viaduct_messages::viaduct::its::SecurityState;
use viaduct_units::{Metres, Position, Tai};
use viaduct_v2x_json::timestamp_text;

use super::geometry::{self, Geometry};
use super::road_information::RoadSign;
use super::{Infrastructure, Received, Reception, weaker};

/// Centimetres in a metre.
const CM_PER_M: f64 = 100.0;
/// Length of a stop line if the message has no lane width, in metres.
const STOP_LINE_M: f64 = 3.0;

/// Identity of a set of lanes. Region 0 means that there is no region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LaneSetId {
    is_segment: bool,
    region: u16,
    number: u16,
}

/// The lanes of an intersection or of a road segment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LaneSet {
    station_id: u32,
    security: SecurityState,
    received: Tai,
    reference: Position,
    name: Option<String>,
    lanes: Vec<Lane>,
}

#[derive(Clone, Debug, PartialEq)]
struct Lane {
    id: u8,
    kind: LaneKind,
    direction: LaneDirection,
    width_m: Option<f64>,
    nodes: Vec<Offset>,
    connections: Vec<Connection>,
}

/// A connection from one lane to another within the intersection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Connection {
    to: u8,
    is_remote: bool,
    signal_group: Option<u8>,
}

/// Metres east and north of the reference point.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Offset {
    east: f64,
    north: f64,
}

/// The states of the signal groups of an intersection.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Signals {
    received: Tai,
    security: SecurityState,
    by_group: HashMap<u8, SignalState>,
}

/// Kind of a feature of the infrastructure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum InfrastructureKind {
    /// The reference point of an intersection or road segment (MAPEM).
    Intersection,
    /// The centre line of a lane, from the intersection outwards (MAPEM).
    Lane,
    /// The part of a stop line that one signal group controls (MAPEM, with the state of the SPATEM).
    StopLine,
    /// A connection from an ingress lane to an egress lane (MAPEM, with the state of the SPATEM).
    Connection,
    /// Road signs, at the reference position of the message (IVIM).
    Sign,
    /// A zone in which road signs are relevant, detected or announced (IVIM).
    Zone,
}

/// `LaneTypeAttributes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LaneKind {
    Vehicle,
    Crosswalk,
    BikeLane,
    Sidewalk,
    Median,
    Striping,
    TrackedVehicle,
    Parking,
}

/// `LaneDirection`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LaneDirection {
    /// Towards the intersection.
    Ingress,
    /// Away from the intersection.
    Egress,
    /// Both.
    Both,
    /// None, as a median.
    None,
}

/// `MovementPhaseState`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SignalState {
    Unavailable,
    Dark,
    StopThenProceed,
    StopAndRemain,
    PreMovement,
    PermissiveMovementAllowed,
    ProtectedMovementAllowed,
    PermissiveClearance,
    ProtectedClearance,
    CautionConflictingTraffic,
}

/// Properties of a feature of the infrastructure; a property that does not apply to the kind is absent.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct InfrastructureProperties {
    pub(super) kind: InfrastructureKind,
    /// Type of the message: `mapem` or `ivim`.
    pub(super) r#type: &'static str,
    /// Station that sent the newest message.
    pub(super) station_id: u32,
    /// Security of the packet: `unsecured`, or `unverified` if it was signed and nothing was verified. A feature with a
    /// `signal_state` is `unverified` if the packet of the MAPEM or that of the SPATEM was.
    pub(super) security: &'static str,
    /// Reception of the newest message.
    #[schema(format = DateTime)]
    pub(super) last_received: String,
    /// Region of the intersection's or road segment's number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(super) region: Option<u16>,
    /// Number of the intersection (`IntersectionID`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(super) intersection: Option<u16>,
    /// Number of the road segment (`RoadSegmentID`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(super) road_segment: Option<u16>,
    /// Name of the intersection or road segment.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(super) name: Option<String>,
    /// Number of the lane; of a connection the ingress lane.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(super) lane: Option<u8>,
    /// Number of the egress lane of a connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(super) to_lane: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(super) lane_type: Option<LaneKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(super) direction: Option<LaneDirection>,
    /// Width of the lane in metres.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(super) width_m: Option<f64>,
    /// Number of the signal group.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(super) signal_group: Option<u8>,
    /// State of the signal group; absent if no SPATEM of the last 2 s has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(super) signal_state: Option<SignalState>,
    /// Identification number of the road information (`IviIdentificationNumber`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(super) information: Option<u16>,
    /// Number of the zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(super) zone: Option<u16>,
    /// Purposes of the zone: `relevance`, `detection`, `awareness`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(super) roles: Vec<&'static str>,
    /// The road signs, those of a zone that refer to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(super) signs: Vec<RoadSign>,
    /// Texts below the signs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(super) texts: Vec<String>,
    /// Start of the validity.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    pub(super) valid_from: Option<String>,
    /// End of the validity.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    pub(super) valid_until: Option<String>,
}

impl InfrastructureProperties {
    /// Returns the properties that every feature has.
    pub(super) fn new(
        kind: InfrastructureKind,
        r#type: &'static str,
        station_id: u32,
        security: SecurityState,
        received: Tai,
    ) -> Self {
        Self {
            kind,
            r#type,
            station_id,
            security: security.label(),
            last_received: timestamp_text(received),
            region: None,
            intersection: None,
            road_segment: None,
            name: None,
            lane: None,
            to_lane: None,
            lane_type: None,
            direction: None,
            width_m: None,
            signal_group: None,
            signal_state: None,
            information: None,
            zone: None,
            roles: Vec::new(),
            signs: Vec::new(),
            texts: Vec::new(),
            valid_from: None,
            valid_until: None,
        }
    }
}

/// Reads the lanes of each intersection and road segment; one whose reference point is invalid is left out.
pub(super) fn lane_sets(mapem: &Mapem, station_id: u32, reception: Reception) -> Vec<(LaneSetId, LaneSet)> {
    let mut sets = Vec::new();
    let security = reception.security;
    let intersections = mapem.map.intersections.as_ref().map_or(&[][..], |list| &list.0);
    for it in intersections {
        let Some(reference) = geometry::absolute(it.ref_point.lat.0, it.ref_point.long.0) else { continue };
        let lanes = lanes(&it.lane_set.0, it.lane_width.as_ref(), reference);
        let name = it.name.as_ref().map(text);
        let set = LaneSet { station_id, security, received: reception.time, reference, name, lanes };
        sets.push((intersection_id(&it.id), set));
    }
    let segments = mapem.map.road_segments.as_ref().map_or(&[][..], |list| &list.0);
    for it in segments {
        let Some(reference) = geometry::absolute(it.ref_point.lat.0, it.ref_point.long.0) else { continue };
        let lanes = lanes(&it.road_lane_set.0, it.lane_width.as_ref(), reference);
        let region = it.id.region.as_ref().map_or(0, |region| region.0);
        let id = LaneSetId { is_segment: true, region, number: it.id.id.0 };
        let name = it.name.as_ref().map(text);
        sets.push((id, LaneSet { station_id, security, received: reception.time, reference, name, lanes }));
    }
    sets
}

/// Reads the present state of each signal group, for each intersection.
pub(super) fn signals(spatem: &Spatem, reception: Reception) -> Vec<(LaneSetId, Signals)> {
    let mut signals = Vec::new();
    for it in &spatem.spat.intersections.0 {
        let mut by_group = HashMap::new();
        for movement in &it.states.0 {
            if let Some(event) = movement.state_time_speed.0.first() {
                by_group.insert(movement.signal_group.0, signal_state(&event.event_state));
            }
        }
        let region = it.id.region.as_ref().map_or(0, |region| region.0);
        let id = LaneSetId { is_segment: false, region, number: it.id.id.0 };
        signals.push((id, Signals { received: reception.time, security: reception.security, by_group }));
    }
    signals
}

impl LaneSet {
    /// Appends the reference point, the lanes, the stop lines and the connections.
    pub(super) fn write(&self, id: LaneSetId, signals: Option<&Signals>, out: &mut Vec<Infrastructure>) {
        let name = id.name();
        let point = Geometry::point(self.reference);
        out.push(Infrastructure {
            id: name.clone(),
            geometry: point,
            properties: InfrastructureProperties {
                name: self.name.clone(),
                ..self.properties(id, InfrastructureKind::Intersection)
            },
        });
        for lane in &self.lanes {
            self.write_lane(id, lane, &name, out);
            self.write_stop_lines(id, lane, signals, &name, out);
            self.write_connections(id, lane, signals, &name, out);
        }
    }

    fn write_lane(&self, id: LaneSetId, lane: &Lane, name: &str, out: &mut Vec<Infrastructure>) {
        let points: Vec<Position> = lane.nodes.iter().map(|node| self.place(*node)).collect();
        let Some(geometry) = Geometry::line(&points) else { return };
        let properties = InfrastructureProperties {
            lane: Some(lane.id),
            lane_type: Some(lane.kind),
            direction: Some(lane.direction),
            width_m: lane.width_m,
            ..self.properties(id, InfrastructureKind::Lane)
        };
        out.push(Infrastructure { id: format!("{name}-lane-{}", lane.id), geometry, properties });
    }

    /// Appends the stop line of an ingress lane, in equal parts for the signal groups of its connections.
    fn write_stop_lines(
        &self,
        id: LaneSetId,
        lane: &Lane,
        signals: Option<&Signals>,
        name: &str,
        out: &mut Vec<Infrastructure>,
    ) {
        if lane.kind != LaneKind::Vehicle || !matches!(lane.direction, LaneDirection::Ingress | LaneDirection::Both) {
            return;
        }
        let &[start, next, ..] = lane.nodes.as_slice() else { return };
        let (east, north) = (start.east - next.east, start.north - next.north);
        let length = east.hypot(north);
        if length == 0.0 {
            return;
        }
        // From the left edge of the lane to its right edge, in the direction of travel.
        let right = Offset { east: north / length, north: -east / length };
        let width_m = lane.width_m.unwrap_or(STOP_LINE_M);
        let mut groups: Vec<Option<u8>> = lane.connections.iter().map(|it| it.signal_group).collect();
        groups.sort_unstable();
        groups.dedup();
        groups.retain(Option::is_some);
        if groups.is_empty() {
            groups.push(None);
        }
        let part_m = width_m / groups.len() as f64;
        for (index, group) in groups.iter().enumerate() {
            let from = -width_m / 2.0 + part_m * index as f64;
            let ends = [from, from + part_m].map(|along| {
                self.place(Offset { east: start.east + right.east * along, north: start.north + right.north * along })
            });
            let Some(geometry) = Geometry::line(&ends) else { continue };
            let properties = InfrastructureProperties {
                lane: Some(lane.id),
                ..self.signal_properties(id, InfrastructureKind::StopLine, *group, signals)
            };
            out.push(Infrastructure { id: format!("{name}-stop-{}-{index}", lane.id), geometry, properties });
        }
    }

    fn write_connections(
        &self,
        id: LaneSetId,
        lane: &Lane,
        signals: Option<&Signals>,
        name: &str,
        out: &mut Vec<Infrastructure>,
    ) {
        for connection in lane.connections.iter().filter(|it| !it.is_remote) {
            let to = self.lanes.iter().find(|other| other.id == connection.to).and_then(|other| other.nodes.first());
            let (Some(from), Some(to)) = (lane.nodes.first(), to) else { continue };
            let Some(geometry) = Geometry::line(&[self.place(*from), self.place(*to)]) else { continue };
            let properties = InfrastructureProperties {
                lane: Some(lane.id),
                to_lane: Some(connection.to),
                ..self.signal_properties(id, InfrastructureKind::Connection, connection.signal_group, signals)
            };
            let id = format!("{name}-connection-{}-{}", lane.id, connection.to);
            out.push(Infrastructure { id, geometry, properties });
        }
    }

    fn properties(&self, id: LaneSetId, kind: InfrastructureKind) -> InfrastructureProperties {
        InfrastructureProperties {
            region: Some(id.region).filter(|&region| region != 0),
            intersection: Some(id.number).filter(|_| !id.is_segment),
            road_segment: Some(id.number).filter(|_| id.is_segment),
            ..InfrastructureProperties::new(kind, "mapem", self.station_id, self.security, self.received)
        }
    }

    /// Returns the properties of a feature that a signal group controls.
    fn signal_properties(
        &self,
        id: LaneSetId,
        kind: InfrastructureKind,
        signal_group: Option<u8>,
        signals: Option<&Signals>,
    ) -> InfrastructureProperties {
        let properties = InfrastructureProperties { signal_group, ..self.properties(id, kind) };
        let Some((state, security)) = signal_of(signal_group, signals) else { return properties };
        let security = weaker(self.security, security).label();
        InfrastructureProperties { signal_state: Some(state), security, ..properties }
    }

    fn place(&self, offset: Offset) -> Position {
        self.reference.displaced(Metres(offset.east), Metres(offset.north))
    }
}

impl LaneSetId {
    /// Returns the beginning of the features' ids.
    fn name(self) -> String {
        let kind = if self.is_segment { "road-segment" } else { "intersection" };
        format!("{kind}-{}-{}", self.region, self.number)
    }
}

impl Received for LaneSet {
    fn received(&self) -> Tai {
        self.received
    }
}

impl Received for Signals {
    fn received(&self) -> Tai {
        self.received
    }
}

/// Returns the state of a signal group and the security of its SPATEM.
fn signal_of(group: Option<u8>, signals: Option<&Signals>) -> Option<(SignalState, SecurityState)> {
    let signals = signals?;
    let state = *signals.by_group.get(&group?)?;
    Some((state, signals.security))
}

fn intersection_id(id: &dsrc::IntersectionReferenceID) -> LaneSetId {
    LaneSetId { is_segment: false, region: id.region.as_ref().map_or(0, |region| region.0), number: id.id.0 }
}

fn text(name: &dsrc::DescriptiveName) -> String {
    String::from_utf8_lossy(name.0.as_iso646_bytes()).into_owned()
}

/// Reads the lanes: first those with nodes, then those computed from another lane.
fn lanes(list: &[dsrc::GenericLane], width: Option<&dsrc::LaneWidth>, reference: Position) -> Vec<Lane> {
    let width_m = width.map(|width| f64::from(width.0) / CM_PER_M).filter(|&metres| metres > 0.0);
    let mut lanes: Vec<Lane> = list.iter().map(|it| lane(it, width_m, reference)).collect();
    for (index, it) in list.iter().enumerate() {
        if let dsrc::NodeListXY::computed(computed) = &it.node_list {
            let source = lanes.iter().find(|other| other.id == computed.reference_lane_id.0);
            lanes[index].nodes = source.map(|source| computed_nodes(computed, &source.nodes)).unwrap_or_default();
        }
    }
    lanes
}

fn lane(it: &dsrc::GenericLane, width_m: Option<f64>, reference: Position) -> Lane {
    let usage = &it.lane_attributes.directional_use.0;
    let direction = match (usage[0], usage[1]) {
        (true, true) => LaneDirection::Both,
        (true, false) => LaneDirection::Ingress,
        (false, true) => LaneDirection::Egress,
        (false, false) => LaneDirection::None,
    };
    let connections = it.connects_to.as_ref().map_or(&[][..], |list| &list.0);
    Lane {
        id: it.lane_id.0,
        kind: lane_kind(&it.lane_attributes.lane_type),
        direction,
        width_m,
        nodes: match &it.node_list {
            dsrc::NodeListXY::nodes(nodes) => self::nodes(&nodes.0, reference),
            _ => Vec::new(),
        },
        connections: connections.iter().map(connection).collect(),
    }
}

fn connection(it: &dsrc::Connection) -> Connection {
    Connection {
        to: it.connecting_lane.lane.0,
        is_remote: it.remote_intersection.is_some(),
        signal_group: it.signal_group.as_ref().map(|group| group.0),
    }
}

/// Returns the nodes; the list ends before the first node of a form that only a region defines.
fn nodes(list: &[dsrc::NodeXY], reference: Position) -> Vec<Offset> {
    use dsrc::NodeOffsetPointXY as Node;
    let mut nodes = Vec::with_capacity(list.len());
    let mut last = Offset::default();
    for node in list {
        let (x, y) = match &node.delta {
            Node::node_XY1(at) => (at.x.0, at.y.0),
            Node::node_XY2(at) => (at.x.0, at.y.0),
            Node::node_XY3(at) => (at.x.0, at.y.0),
            Node::node_XY4(at) => (at.x.0, at.y.0),
            Node::node_XY5(at) => (at.x.0, at.y.0),
            Node::node_XY6(at) => (at.x.0, at.y.0),
            Node::node_LatLon(at) => {
                let Some(position) = geometry::absolute(at.lat.0, at.lon.0) else { break };
                let (east, north) = reference.offset_to(position);
                last = Offset { east: east.value(), north: north.value() };
                nodes.push(last);
                continue;
            }
            _ => break,
        };
        last.east += f64::from(x) / CM_PER_M;
        last.north += f64::from(y) / CM_PER_M;
        nodes.push(last);
    }
    nodes
}

/// Returns the nodes of another lane, displaced. A lane that is rotated or scaled has none here.
fn computed_nodes(computed: &dsrc::ComputedLane, source: &[Offset]) -> Vec<Offset> {
    if computed.rotate_xy.is_some() || computed.scale_xaxis.is_some() || computed.scale_yaxis.is_some() {
        return Vec::new();
    }
    let east = match &computed.offset_xaxis {
        dsrc::ComputedLaneOffsetXaxis::small(offset) => offset.0,
        dsrc::ComputedLaneOffsetXaxis::large(offset) => offset.0,
    };
    let north = match &computed.offset_yaxis {
        dsrc::ComputedLaneOffsetYaxis::small(offset) => offset.0,
        dsrc::ComputedLaneOffsetYaxis::large(offset) => offset.0,
    };
    let (east, north) = (f64::from(east) / CM_PER_M, f64::from(north) / CM_PER_M);
    source.iter().map(|node| Offset { east: node.east + east, north: node.north + north }).collect()
}

const fn lane_kind(kind: &dsrc::LaneTypeAttributes) -> LaneKind {
    use dsrc::LaneTypeAttributes as Type;
    match kind {
        Type::crosswalk(_) => LaneKind::Crosswalk,
        Type::bikeLane(_) => LaneKind::BikeLane,
        Type::sidewalk(_) => LaneKind::Sidewalk,
        Type::median(_) => LaneKind::Median,
        Type::striping(_) => LaneKind::Striping,
        Type::trackedVehicle(_) => LaneKind::TrackedVehicle,
        Type::parking(_) => LaneKind::Parking,
        _ => LaneKind::Vehicle,
    }
}

const fn signal_state(state: &spat::MovementPhaseState) -> SignalState {
    use spat::MovementPhaseState as Phase;
    match state {
        Phase::dark => SignalState::Dark,
        Phase::stop_Then_Proceed => SignalState::StopThenProceed,
        Phase::stop_And_Remain => SignalState::StopAndRemain,
        Phase::pre_Movement => SignalState::PreMovement,
        Phase::permissive_Movement_Allowed => SignalState::PermissiveMovementAllowed,
        Phase::protected_Movement_Allowed => SignalState::ProtectedMovementAllowed,
        Phase::permissive_clearance => SignalState::PermissiveClearance,
        Phase::protected_clearance => SignalState::ProtectedClearance,
        Phase::caution_Conflicting_Traffic => SignalState::CautionConflictingTraffic,
        _ => SignalState::Unavailable,
    }
}
