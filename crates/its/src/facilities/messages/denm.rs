//! Decentralized environmental notification message, TS 103 831 V2.3.1.

use std::time::Duration;

use viaduct_etsi::denm_ts103831_v231::{self as etsi, Denm, types};
use viaduct_units::{Degrees, Metres, MetresPerSecond, Position, StationId, StationType, Tai, TimestampIts};

use super::{
    ConfidenceEllipse, Summary,
    dictionary::{self, place_of},
    path::{self, PATH_POINTS_MAX, PathPoint},
    scale,
};

/// Types of the containers for special events, and enumerations of the standard. Their numbers are scaled only if
/// documented.
pub use viaduct_etsi::denm_ts103831_v231::types::{
    AlacarteContainer, CauseCodeV2, RoadType, Termination, TrafficDirection,
};

/// Maximum number of points of an event's zone (`EventHistory`).
pub const EVENT_POINTS_MAX: usize = 23;
/// Maximum number of paths that lead to an event (`Traces`).
pub const TRACES_MAX: usize = 7;
/// Maximum number of linked events of an event (`ActionIdList` without its extension).
pub const LINKED_DENMS_MAX: usize = 8;
/// `validityDuration` of a message without this element (TS 103 831, annex A).
pub const DEFAULT_VALIDITY: Duration = Duration::from_secs(600);
/// Longest `validityDuration`.
pub const VALIDITY_MAX: Duration = Duration::from_secs(86_400);
/// Longest `transmissionInterval`.
const TRANSMISSION_INTERVAL_MAX: Duration = Duration::from_secs(10);

/// Returns the values of a DENM that most applications need: its position, speed and heading are those of the event.
#[must_use]
pub fn summary(denm: &Denm, _reception: Tai) -> Summary {
    let management = &denm.denm.management;
    let at = &management.event_position;
    let location = denm.denm.location.as_deref();
    let speed = location.and_then(|location| location.event_speed);
    let heading = location.and_then(|location| location.event_position_heading);
    Summary {
        station_id: StationId(denm.header.station_id.0),
        station_type: Some(StationType(management.station_type.0)),
        generation: Some(TimestampIts(management.reference_time.0).tai()),
        position: scale::position(at.latitude.0, at.longitude.0),
        altitude: scale::altitude(at.altitude.altitude_value.0),
        speed: speed.and_then(|speed| scale::speed(speed.speed_value.0)),
        heading: heading.and_then(|heading| scale::heading(heading.value.0)),
    }
}

/// `ActionId`: identity of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActionId {
    /// Station that detected the event first.
    pub originating_station: StationId,
    /// Sequence number of the event at that station.
    pub sequence_number: u16,
}

/// A cause and its sub-cause (TS 102 894-2; constants are in `viaduct_etsi::cdd::{cause_code, sub_cause_code}`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Cause code, 0 to 128; a larger one is sent as 0, which is reserved.
    pub code: u8,
    /// Sub-cause code; 0 is "unavailable".
    pub sub_code: u8,
}

/// Input for a DENM. A `None` is omitted; a value beyond the range of its field is sent as the end of that range.
#[derive(Clone, Debug, PartialEq)]
pub struct DenmInput {
    /// Identifier of the sending station.
    pub station_id: StationId,
    /// `StationType` of the station that detected the event.
    pub station_type: StationType,
    /// Identity of the event.
    pub action_id: ActionId,
    /// Time at which the event, or its end, was detected.
    pub detection: Tai,
    /// Time at which this version of the message was generated; it orders the versions.
    pub reference: Tai,
    /// Type of the event's end; `None` while the event is active.
    pub termination: Option<Termination>,
    /// Position of the event.
    pub position: Option<Position>,
    /// Accuracy of the position.
    pub position_confidence: Option<ConfidenceEllipse>,
    /// Altitude of the event above the WGS 84 ellipsoid.
    pub altitude: Option<Metres>,
    /// Accuracy of the altitude, up to 200 m.
    pub altitude_confidence: Option<Metres>,
    /// Distance up to which road users should be aware of the event; sent as a class.
    pub awareness_distance: Option<Metres>,
    /// Direction of the traffic that is concerned.
    pub traffic_direction: Option<TrafficDirection>,
    /// Validity from the detection, rounded up to whole seconds, at most a day; `None` is [`DEFAULT_VALIDITY`].
    pub validity: Option<Duration>,
    /// Time between two messages of the originator, 1 ms to 10 s; a longer one is omitted.
    pub transmission_interval: Option<Duration>,
    /// Type and quality of the event. `None` in a termination (TS 103 831, annex A).
    pub situation: Option<Situation>,
    /// Movement of the event, and the paths that lead to it. `None` in a termination.
    pub location: Option<Location>,
    /// Data of special events. `None` in a termination.
    pub alacarte: Option<Box<AlacarteContainer>>,
}

/// Type and quality of an event.
#[derive(Clone, Debug, PartialEq)]
pub struct Situation {
    /// `InformationQuality`, 0 (lowest) to 7.
    pub quality: u8,
    /// Cause of the event.
    pub cause: Cause,
    /// Cause of a linked event.
    pub linked_cause: Option<Cause>,
    /// Zone of the event, the newest point first; the first 23 are sent. Like the points of a path, each one is sent
    /// relative to the one before.
    pub event_zone: Vec<EventPoint>,
    /// Linked events; the first 8 are sent.
    pub linked_events: Vec<ActionId>,
    /// End of the event along the road, up to 8190 m. It is omitted if there is a zone.
    pub event_end: Option<Metres>,
    /// `true` if the sender perceived the event itself.
    pub perceived: Option<bool>,
}

impl Situation {
    /// Creates an event with a cause only.
    #[must_use]
    pub const fn new(quality: u8, cause: Cause) -> Self {
        Self {
            quality,
            cause,
            linked_cause: None,
            event_zone: Vec::new(),
            linked_events: Vec::new(),
            event_end: None,
            perceived: None,
        }
    }
}

/// A point of an event's zone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventPoint {
    /// Position, and the time to the next newer point (for the first one: to the detection). Either all points of a
    /// zone have a time, or none.
    pub point: PathPoint,
    /// `InformationQuality`, 0 (lowest) to 7.
    pub quality: u8,
}

/// Movement of an event, and the paths that lead to it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Location {
    /// Speed of the event, up to 163.82 m/s.
    pub speed: Option<MetresPerSecond>,
    /// Accuracy of the speed, up to 1.25 m/s.
    pub speed_confidence: Option<MetresPerSecond>,
    /// Direction of the event's movement.
    pub heading: Option<Degrees>,
    /// Accuracy of the direction, up to 12.5 degrees.
    pub heading_confidence: Option<Degrees>,
    /// Paths that lead to the event, each from the event backwards, up to 40 points; the first 7 are sent. If there is
    /// none, an empty one is sent, since the message must have one.
    pub traces: Vec<Vec<PathPoint>>,
    /// Type of the road.
    pub road_type: Option<RoadType>,
}

impl DenmInput {
    /// Creates the input of an event that is detected at `detection`, without further values.
    #[must_use]
    pub const fn new(station_id: StationId, action_id: ActionId, detection: Tai) -> Self {
        Self {
            station_id,
            station_type: StationType::UNKNOWN,
            action_id,
            detection,
            reference: detection,
            termination: None,
            position: None,
            position_confidence: None,
            altitude: None,
            altitude_confidence: None,
            awareness_distance: None,
            traffic_direction: None,
            validity: None,
            transmission_interval: None,
            situation: None,
            location: None,
            alacarte: None,
        }
    }
}

/// Builds a DENM. It can be encoded unless the à-la-carte container is invalid.
#[must_use]
pub fn build(input: &DenmInput) -> Denm {
    Denm {
        header: dictionary::header(etsi::MESSAGE_ID, etsi::PROTOCOL_VERSION, input.station_id),
        denm: types::DenmPayload {
            management: management(input),
            situation: input.situation.as_ref().map(|it| Box::new(situation(it, input))),
            location: input.location.as_ref().map(|it| Box::new(location(it, input))),
            alacarte: input.alacarte.clone(),
        },
    }
}

fn management(input: &DenmInput) -> types::ManagementContainer {
    let mut management = types::ManagementContainer::new(
        action_id(&input.action_id),
        dictionary::timestamp(input.detection),
        dictionary::timestamp(input.reference),
        place_of!(input).reference_position(),
        types::StationType(input.station_type.0),
    );
    management.termination = input.termination;
    management.awareness_distance = input.awareness_distance.map(awareness_distance);
    management.traffic_direction = input.traffic_direction;
    management.validity_duration = validity_duration(input.validity.unwrap_or(DEFAULT_VALIDITY));
    management.transmission_interval = input.transmission_interval.and_then(transmission_interval);
    management
}

const fn action_id(action: &ActionId) -> types::ActionId {
    types::ActionId {
        originating_station_id: types::StationId(action.originating_station.0),
        sequence_number: types::SequenceNumber(action.sequence_number),
    }
}

/// Returns the smallest class that contains the distance.
fn awareness_distance(distance: Metres) -> types::StandardLength3b {
    use types::StandardLength3b as L;
    const CLASSES: [(f64, types::StandardLength3b); 7] = [
        (50.0, L::LessThan50m),
        (100.0, L::LessThan100m),
        (200.0, L::LessThan200m),
        (500.0, L::LessThan500m),
        (1000.0, L::LessThan1000m),
        (5000.0, L::LessThan5km),
        (10_000.0, L::LessThan10km),
    ];
    scale::class(distance.value(), &CLASSES, L::Over10km)
}

/// Returns the validity as a DENM contains it: whole seconds, rounded up, at most a day.
#[must_use]
pub fn whole_seconds(validity: Duration) -> Duration {
    let begun = u64::from(validity.subsec_nanos() > 0);
    Duration::from_secs(validity.as_secs().saturating_add(begun)).min(VALIDITY_MAX)
}

fn validity_duration(validity: Duration) -> types::DeltaTimeSecond {
    types::DeltaTimeSecond(u32::try_from(whole_seconds(validity).as_secs()).unwrap_or_default())
}

/// Returns an interval in milliseconds, or `None` if it exceeds the type: a shorter interval would be wrong.
fn transmission_interval(interval: Duration) -> Option<types::DeltaTimeMilliSecondPositive> {
    let encoded = || types::DeltaTimeMilliSecondPositive(scale::scaled_u16(interval.as_secs_f64(), 1000.0, 1, 10_000));
    (interval <= TRANSMISSION_INTERVAL_MAX).then(encoded)
}

fn situation(it: &Situation, input: &DenmInput) -> types::SituationContainer {
    let mut container = types::SituationContainer::new(types::InformationQuality(it.quality.min(7)), cause(it.cause));
    container.linked_cause = it.linked_cause.map(cause);
    container.event_zone = event_zone(&it.event_zone, input);
    container.additions1 = additions1(it);
    container.additions2 = it.perceived.map(|perceived| types::SituationAdditions2 {
        event_end_factor: None,
        perceived_event: Some(types::PerceivedEvent(perceived)),
    });
    container
}

fn cause(cause: Cause) -> CauseCodeV2 {
    CauseCodeV2::from_codes(cause.code, cause.sub_code).unwrap_or(CauseCodeV2::RESERVED)
}

/// Omits the zone if it is empty, since the message must not have an empty one.
fn event_zone(points: &[EventPoint], input: &DenmInput) -> Option<types::EventZone> {
    let path: Vec<PathPoint> = points.iter().map(|point| point.point).collect();
    let relative = path::history(&path, input.position, input.altitude, EVENT_POINTS_MAX);
    let zone = relative.into_iter().zip(points).map(|(relative, point)| types::EventPoint {
        event_position: relative.path_position,
        event_delta_time: relative.path_delta_time,
        information_quality: types::InformationQuality(point.quality.min(7)),
    });
    let zone: Vec<_> = zone.collect();
    (!zone.is_empty()).then_some(types::EventZone(zone))
}

/// Omits the group if all its members are unknown.
fn additions1(it: &Situation) -> Option<types::SituationAdditions1> {
    let linked: Vec<_> = it.linked_events.iter().take(LINKED_DENMS_MAX).map(action_id).collect();
    let linked_denms = (!linked.is_empty()).then_some(types::ActionIdList(linked));
    let event_end = it
        .event_end
        .filter(|_| it.event_zone.is_empty())
        .map(|end| types::Position1d(scale::scaled_i16(end.value(), 1.0, -8190, 8190)));
    let known = linked_denms.is_some() || event_end.is_some();
    known.then_some(types::SituationAdditions1 { linked_denms, event_end })
}

fn location(it: &Location, input: &DenmInput) -> types::LocationContainer {
    let trace =
        |trace: &Vec<PathPoint>| types::Path(path::history(trace, input.position, input.altitude, PATH_POINTS_MAX));
    let mut traces: Vec<_> = it.traces.iter().take(TRACES_MAX).map(trace).collect();
    if traces.is_empty() {
        traces.push(types::Path::default());
    }
    let mut container = types::LocationContainer::new(types::Traces(traces));
    container.event_speed = it.speed.map(|speed| dictionary::speed(Some(speed), it.speed_confidence));
    container.event_position_heading =
        it.heading.map(|heading| dictionary::wgs84_angle(Some(heading), it.heading_confidence));
    container.road_type = it.road_type;
    container
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> DenmInput {
        let at = |latitude: f64, travel_time| PathPoint {
            position: Position::new(latitude, 7.568_490_8),
            altitude: Some(Metres(269.8)),
            travel_time,
        };
        let action = |sequence_number| ActionId { originating_station: StationId(1001), sequence_number };
        let point = |latitude: f64| EventPoint { point: at(latitude, None), quality: 3 };
        DenmInput {
            station_type: StationType::PASSENGER_CAR,
            position: Some(Position::new(45.014_765_3, 7.568_490_8)),
            position_confidence: Some(ConfidenceEllipse::circle(Metres(1.5))),
            altitude: Some(Metres(269.8)),
            awareness_distance: Some(Metres(1000.0)),
            traffic_direction: Some(TrafficDirection::AllTrafficDirections),
            validity: Some(Duration::from_secs(60)),
            transmission_interval: Some(Duration::from_millis(500)),
            situation: Some(Situation {
                linked_cause: Some(Cause { code: 2, sub_code: 1 }),
                event_zone: vec![point(45.014_665_3), point(45.014_465_3)],
                linked_events: vec![action(8), action(9)],
                perceived: Some(true),
                ..Situation::new(7, Cause { code: 94, sub_code: 2 })
            }),
            location: Some(Location {
                speed: Some(MetresPerSecond(3.25)),
                heading: Some(Degrees(90.0)),
                traces: vec![vec![at(45.014_665_3, Some(Duration::from_millis(500)))]],
                ..Location::default()
            }),
            ..DenmInput::new(StationId(1001), action(7), TimestampIts(650_000_012_345).tai())
        }
    }

    fn encoded(input: &DenmInput) -> Denm {
        etsi::decode(&etsi::encode(&build(input)).unwrap()).unwrap()
    }

    #[test]
    fn a_built_message_round_trips() {
        let input = full();
        let denm = encoded(&input);
        assert_eq!(denm, build(&input));
        let expected = Summary {
            station_id: StationId(1001),
            station_type: Some(StationType::PASSENGER_CAR),
            generation: Some(input.reference),
            position: input.position,
            altitude: input.altitude,
            speed: Some(MetresPerSecond(3.25)),
            heading: Some(Degrees(90.0)),
        };
        assert_eq!(summary(&denm, input.reference), expected);
        let situation = denm.denm.situation.unwrap();
        let cause = situation.event_type.cc_and_scc;
        assert_eq!((cause.cause(), cause.sub_cause()), (94, 2));
        let deltas: Vec<i32> =
            situation.event_zone.unwrap().0.iter().map(|point| point.event_position.delta_latitude.0).collect();
        assert_eq!(deltas, [-1000, -2000]);
        assert_eq!(denm.denm.management.awareness_distance, Some(types::StandardLength3b::LessThan1000m));
    }

    #[test]
    fn the_json_form_round_trips_with_its_groups_flat() {
        let denm = build(&full());
        let mut json = Vec::new();
        etsi::write_json(&denm, &mut json);
        let text = String::from_utf8(json).unwrap();
        assert!(text.contains(r#""linkedDenms":["#) && text.contains(r#""perceivedEvent":true"#), "{text}");
        assert!(!text.contains("additions"), "{text}");
        assert_eq!(etsi::from_json(text.as_bytes()), Ok(denm));
        let wrong = text.replace("perceivedEvent", "perceivedEvents");
        let refusal = etsi::from_json(wrong.as_bytes()).unwrap_err().to_string();
        assert_eq!(refusal, "denm.situation.perceivedEvents: there is no member of this name");
    }

    #[test]
    fn a_termination_has_the_management_container_only() {
        let input =
            DenmInput { termination: Some(Termination::IsCancellation), situation: None, location: None, ..full() };
        let denm = encoded(&input);
        assert_eq!(denm, build(&input));
        assert_eq!(denm.denm.management.termination, Some(Termination::IsCancellation));
        assert_eq!((denm.denm.situation, denm.denm.location), (None, None));
    }

    #[test]
    fn the_default_validity_is_not_on_the_wire_and_comes_back() {
        let input = DenmInput { validity: None, ..full() };
        let same = DenmInput { validity: Some(DEFAULT_VALIDITY), ..full() };
        let other = DenmInput { validity: Some(Duration::from_secs(601)), ..full() };
        assert_eq!(etsi::encode(&build(&input)), etsi::encode(&build(&same)));
        assert!(etsi::encode(&build(&other)).unwrap().len() > etsi::encode(&build(&same)).unwrap().len());
        assert_eq!(encoded(&input).denm.management.validity_duration, types::DeltaTimeSecond(600));
    }

    #[test]
    fn any_quantity_can_be_encoded() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, 0.0, 5.0] {
            let point = PathPoint {
                position: Position::new(value, value),
                altitude: Some(Metres(value)),
                travel_time: Some(Duration::MAX),
            };
            let situation = Situation {
                event_zone: vec![EventPoint { point, quality: 255 }; 30],
                linked_events: vec![ActionId { originating_station: StationId(1), sequence_number: 2 }; 20],
                event_end: Some(Metres(value)),
                linked_cause: Some(Cause { code: 129, sub_code: 255 }),
                ..Situation::new(255, Cause { code: 255, sub_code: 255 })
            };
            let location = Location {
                speed: Some(MetresPerSecond(value)),
                speed_confidence: Some(MetresPerSecond(value)),
                heading: Some(Degrees(value)),
                heading_confidence: Some(Degrees(value)),
                traces: vec![vec![point; 50]; 9],
                road_type: None,
            };
            let input = DenmInput {
                awareness_distance: Some(Metres(value)),
                validity: Some(Duration::MAX),
                transmission_interval: Some(Duration::MAX),
                situation: Some(situation),
                location: Some(location),
                ..full()
            };
            assert_eq!(build(&input), encoded(&input), "{value}");
        }
    }

    #[test]
    fn an_end_excludes_a_zone() {
        let mut input = full();
        input.situation.as_mut().unwrap().event_end = Some(Metres(100.0));
        let of = |input: &DenmInput| encoded(input).denm.situation.unwrap().additions1.unwrap().event_end;
        assert_eq!(of(&input), None);
        input.situation.as_mut().unwrap().event_zone.clear();
        assert_eq!(of(&input), Some(types::Position1d(100)));
    }
}
