//! Events of DENMs (TS 103 831), with their life cycle.

use serde::Serialize;
use utoipa::ToSchema;
use viaduct_etsi::cdd::cause_code;
use viaduct_etsi::denm_ts103831_v231::Denm;
use viaduct_its::facilities::den_service::DenmHead;
use viaduct_its::facilities::denm::{ActionId, Termination, TrafficDirection};
use viaduct_messages::viaduct::its::{SecurityState, V2xMessage};
use viaduct_units::{Position, Tai};
use viaduct_v2x_json::timestamp_text;

use super::geometry::{self, Geometry};
use super::{Received, Reception, SILENCE_MAX, shifted, weaker};

/// `InformationQuality` and `SubCauseCodeType`: unavailable.
const UNAVAILABLE: u8 = 0;

/// An event as the messages received so far describe it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    /// The newest version: identity, times as sent, position, validity.
    head: DenmHead,
    /// Content of the newest version that is not a termination.
    details: Details,
    /// Station that sent the newest message: the originator, a forwarder or the negating station.
    station_id: u32,
    /// Security of the packets that contained the shown content.
    security: SecurityState,
    speed_mps: Option<f64>,
    heading_deg: Option<f64>,
    altitude_m: Option<f64>,
    first_received: Tai,
    last: Reception,
    /// Reception of the first message that ended the event.
    ended: Option<Tai>,
    messages: u64,
    updates: u64,
}

/// Content that a termination does not repeat.
#[derive(Clone, Debug, Default, PartialEq)]
struct Details {
    information_quality: Option<u8>,
    traffic_direction: Option<TrafficDirection>,
    zone: Vec<Position>,
    approaches: Vec<Vec<Position>>,
}

/// The state of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EventState {
    /// The event is valid.
    Active,
    /// The originator ended the event.
    Cancelled,
    /// Another station reported that the event does not exist.
    Negated,
    /// The validity has passed.
    Expired,
}

/// Properties of an event.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct EventProperties {
    state: EventState,
    /// Station that detected the event first (`ActionId`).
    originating_station_id: u32,
    /// Number of the event at that station (`ActionId`).
    sequence_number: u16,
    /// Station that sent the newest message about the event.
    station_id: u32,
    /// Security of the packet: `unsecured`, or `unverified` if it was signed and nothing was verified. An event whose end was
    /// received has the weaker value of its content and its end.
    security: &'static str,
    /// Cause code (`CauseCodeV2`, TS 102 894-2): 94 is a stationary vehicle. Absent if only the end of the event was received.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    cause: Option<u8>,
    /// Sub-cause code, 1 to 255.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    sub_cause: Option<u8>,
    /// Name of the cause code in English.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "stationary vehicle")]
    cause_text: Option<&'static str>,
    /// `InformationQuality`, 1 (lowest) to 7 (highest).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    information_quality: Option<u8>,
    /// Radius around the event within which stations should be aware of it, in metres. It is the upper end of the class that the
    /// message names (`awarenessDistance`); 20000 for "over 10 km".
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    awareness_distance_m: Option<f64>,
    /// Traffic that is concerned: `all`, `upstream`, `downstream` or `opposite`, seen from the event in its direction of travel.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    traffic_direction: Option<&'static str>,
    /// Speed of the event in metres per second, if it moves.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    speed_mps: Option<f64>,
    /// Heading of the event in degrees clockwise from north, 0 up to 360.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    heading_deg: Option<f64>,
    /// Detection of the event or of its end.
    #[schema(format = DateTime)]
    detection_time: String,
    /// Generation of the newest version.
    #[schema(format = DateTime)]
    reference_time: String,
    /// End of the validity.
    #[schema(format = DateTime)]
    valid_until: String,
    /// Reception of the cancellation or negation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    ended_time: Option<String>,
    /// Reception of the first message about the event.
    #[schema(format = DateTime)]
    first_received: String,
    /// Reception of the newest message about the event.
    #[schema(format = DateTime)]
    last_received: String,
    /// Messages about the event, repetitions included.
    messages: u64,
    /// Versions after the first, without repetitions and without the end of the event.
    updates: u64,
    /// The event zone: a line from the event through its points.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    zone: Option<Geometry>,
    /// Paths that lead to the event (`detectionZonesToEventPosition`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    approaches: Option<Geometry>,
}

/// Reads the event of a DENM.
pub(super) fn read(denm: &Denm, message: &V2xMessage, reception: Reception) -> (ActionId, Event) {
    let head = DenmHead::from(denm);
    let event = Event {
        details: details(denm, head.position),
        station_id: message.station_id,
        security: reception.security,
        speed_mps: message.speed_mps.filter(|speed| speed.is_finite()),
        heading_deg: message.heading_deg.filter(|heading| heading.is_finite()),
        altitude_m: message.position.and_then(|at| at.altitude_m).filter(|metres| metres.is_finite()),
        first_received: reception.time,
        last: reception,
        ended: head.termination.map(|_| reception.time),
        messages: 1,
        updates: 0,
        head,
    };
    (head.action_id, event)
}

fn details(denm: &Denm, position: Option<Position>) -> Details {
    let situation = denm.denm.situation.as_deref();
    let location = denm.denm.location.as_deref();
    let zone = situation.and_then(|situation| situation.event_zone.as_ref());
    let zone = zone.map_or(&[][..], |zone| &zone.0);
    let traces = location.map_or(&[][..], |location| &location.detection_zones_to_event_position.0);
    let mut details = Details {
        information_quality: situation
            .map(|situation| situation.information_quality.0)
            .filter(|&quality| quality != UNAVAILABLE),
        traffic_direction: denm.denm.management.traffic_direction,
        ..Details::default()
    };
    let Some(origin) = position else { return details };
    if !zone.is_empty() {
        details.zone = geometry::path(origin, zone.iter().map(|point| geometry::delta(&point.event_position)));
    }
    for trace in traces {
        let deltas = trace.0.iter().map(|point| geometry::delta(&point.path_position));
        details.approaches.push(geometry::path(origin, deltas));
    }
    details
}

impl Event {
    /// Takes in a further message about the same event. A message with an older reference time is counted only.
    pub(super) fn merge(&mut self, newer: Self) {
        self.messages += 1;
        self.last.time = self.last.time.max(newer.last.time);
        self.first_received = self.first_received.min(newer.first_received);
        let ends = newer.head.termination.is_some() && self.head.termination.is_none();
        // A negation has the reference time of the message that it answers (TS 103 831, clause 6.1).
        let is_newer =
            newer.head.reference > self.head.reference || (ends && newer.head.reference == self.head.reference);
        if !is_newer {
            return;
        }
        let known = self.clone();
        let updates = known.updates + u64::from(newer.head.termination.is_none());
        *self = Self { first_received: known.first_received, messages: known.messages, updates, ..newer };
        if self.head.termination.is_some() {
            self.ended = known.ended.or(self.ended);
            self.security = weaker(known.security, self.security);
            self.details = known.details;
            self.head.cause = known.head.cause;
            self.head.position = self.head.position.or(known.head.position);
            self.head.awareness_distance = self.head.awareness_distance.or(known.head.awareness_distance);
        }
    }

    /// Returns the time until which the event is kept.
    pub(super) fn kept_until(&self) -> Tai {
        let silent = self.last.time.plus(SILENCE_MAX);
        if self.ended.is_some() { silent } else { silent.max(self.valid_until().plus(SILENCE_MAX)) }
    }

    /// Returns longitude, latitude and, if it is known, altitude; `None` if no message had a position.
    pub(crate) fn point(&self) -> Option<Vec<f64>> {
        let position = self.head.position?;
        let mut coordinates = vec![position.longitude.value(), position.latitude.value()];
        coordinates.extend(self.altitude_m);
        Some(coordinates)
    }

    /// Returns the state at `now`.
    pub(crate) fn state(&self, now: Tai) -> EventState {
        match self.head.termination {
            Some(Termination::IsCancellation) => EventState::Cancelled,
            Some(Termination::IsNegation) => EventState::Negated,
            None if now > self.valid_until() => EventState::Expired,
            None => EventState::Active,
        }
    }

    /// Returns the properties that the API shows at `now`.
    pub(crate) fn properties(&self, now: Tai) -> EventProperties {
        let Self { head, details, .. } = self;
        EventProperties {
            state: self.state(now),
            originating_station_id: head.action_id.originating_station.into(),
            sequence_number: head.action_id.sequence_number,
            station_id: self.station_id,
            security: self.security.label(),
            cause: head.cause.map(|cause| cause.code),
            sub_cause: head.cause.map(|cause| cause.sub_code).filter(|&code| code != UNAVAILABLE),
            cause_text: head.cause.and_then(|cause| cause_text(cause.code)),
            information_quality: details.information_quality,
            awareness_distance_m: head.awareness_distance.map(viaduct_units::Metres::value),
            traffic_direction: details.traffic_direction.map(direction_label),
            speed_mps: self.speed_mps,
            heading_deg: self.heading_deg,
            detection_time: timestamp_text(shifted(head.detection, self.last.shift_ns)),
            reference_time: timestamp_text(shifted(head.reference, self.last.shift_ns)),
            valid_until: timestamp_text(self.valid_until()),
            ended_time: self.ended.map(timestamp_text),
            first_received: timestamp_text(self.first_received),
            last_received: timestamp_text(self.last.time),
            messages: self.messages,
            updates: self.updates,
            zone: Geometry::line(&details.zone),
            approaches: Geometry::lines(&details.approaches),
        }
    }

    fn valid_until(&self) -> Tai {
        shifted(self.head.valid_until(), self.last.shift_ns)
    }
}

impl Received for Event {
    fn received(&self) -> Tai {
        self.last.time
    }
}

const fn direction_label(direction: TrafficDirection) -> &'static str {
    match direction {
        TrafficDirection::AllTrafficDirections => "all",
        TrafficDirection::SameAsReferenceDirectionUpstreamOfReferencePosition => "upstream",
        TrafficDirection::SameAsReferenceDirectionDownstreamOfReferencePosition => "downstream",
        TrafficDirection::OppositeToReferenceDirection => "opposite",
    }
}

/// Returns the name of a cause code (`CauseCodeChoice`, TS 102 894-2), or `None` if the code is reserved.
const fn cause_text(code: u8) -> Option<&'static str> {
    Some(match code {
        cause_code::TRAFFIC_CONDITION => "traffic condition",
        cause_code::ACCIDENT => "accident",
        cause_code::ROADWORKS => "roadworks",
        cause_code::DETECTED_ROADWORKS => "detected roadworks",
        cause_code::IMPASSABILITY => "impassability",
        cause_code::ADHESION => "adhesion",
        cause_code::AQUAPLANING => "aquaplaning",
        cause_code::HAZARDOUS_LOCATION_SURFACE_CONDITION => "surface condition",
        cause_code::HAZARDOUS_LOCATION_OBSTACLE_ON_THE_ROAD => "obstacle on the road",
        cause_code::HAZARDOUS_LOCATION_ANIMAL_ON_THE_ROAD => "animal on the road",
        cause_code::HUMAN_PRESENCE_ON_THE_ROAD => "human presence on the road",
        cause_code::WRONG_WAY_DRIVING => "wrong-way driving",
        cause_code::RESCUE_RECOVERY_AND_MAINTENANCE_WORK_IN_PROGRESS => "rescue, recovery or maintenance work",
        cause_code::ADVERSE_WEATHER_CONDITION_WIND => "wind",
        cause_code::ADVERSE_WEATHER_CONDITION_VISIBILITY => "low visibility",
        cause_code::ADVERSE_WEATHER_CONDITION_PRECIPITATION => "precipitation",
        cause_code::VIOLENCE => "violence",
        cause_code::SLOW_VEHICLE => "slow vehicle",
        cause_code::DANGEROUS_END_OF_QUEUE => "dangerous end of queue",
        cause_code::PUBLIC_TRANSPORT_VEHICLE_APPROACHING => "public transport vehicle approaching",
        cause_code::DONT_PANIC => "do not panic",
        cause_code::VEHICLE_BREAKDOWN => "vehicle breakdown",
        cause_code::POST_CRASH => "post-crash",
        cause_code::HUMAN_PROBLEM => "human problem",
        cause_code::STATIONARY_VEHICLE => "stationary vehicle",
        cause_code::EMERGENCY_VEHICLE_APPROACHING => "emergency vehicle approaching",
        cause_code::HAZARDOUS_LOCATION_DANGEROUS_CURVE => "dangerous curve",
        cause_code::COLLISION_RISK => "collision risk",
        cause_code::SIGNAL_VIOLATION => "signal violation",
        cause_code::DANGEROUS_SITUATION => "dangerous situation",
        cause_code::RAILWAY_LEVEL_CROSSING => "railway level crossing",
        _ => return None,
    })
}
