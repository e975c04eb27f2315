//! Content of an event.

use std::time::Duration;

use viaduct_etsi::denm_ts103831_v231::{Denm, types::StandardLength3b};
use viaduct_units::{Metres, Position, StationId, StationType, Tai, TimestampIts};

use super::OwnDenm;
use crate::{
    Repetition,
    facilities::{
        ConfidenceEllipse,
        denm::{
            self, ActionId, AlacarteContainer, Cause, DEFAULT_VALIDITY, DenmInput, Location, Situation, Termination,
            TrafficDirection,
        },
        messages::scale,
    },
    geonet::{self, Area},
};

/// Radius of the destination area of an event without awareness distance. The standard leaves it to the application.
pub const DEFAULT_DESTINATION_RADIUS: Metres = Metres(1000.0);

/// An application's report of an event (`AppDENM_trigger`, `AppDENM_update`).
#[derive(Clone, Debug, PartialEq)]
pub struct EventReport {
    /// Time at which the event, or its change or end, was detected.
    pub detection: Tai,
    /// Position of the event.
    pub position: Position,
    /// Accuracy of the position.
    pub position_confidence: Option<ConfidenceEllipse>,
    /// Altitude of the event above the WGS 84 ellipsoid.
    pub altitude: Option<Metres>,
    /// Distance up to which road users should be aware of the event.
    pub awareness_distance: Option<Metres>,
    /// Direction of the traffic that is concerned.
    pub traffic_direction: Option<TrafficDirection>,
    /// Validity from the detection: rounded up to whole seconds, at most a day.
    pub validity: Duration,
    /// Time between two DENMs if the application repeats the event itself, for keep-alive forwarding. With
    /// `repetition`, the DENM contains the interval of that.
    pub transmission_interval: Option<Duration>,
    /// Type and quality of the event.
    pub situation: Situation,
    /// Movement of the event, and the paths that lead to it.
    pub location: Option<Location>,
    /// Data of special events.
    pub alacarte: Option<Box<AlacarteContainer>>,
    /// Repetition of the DENM; `None` sends it once.
    pub repetition: Option<Repetition>,
    /// Destination area; by default a circle around the position.
    pub destination: Option<Area>,
}

impl EventReport {
    /// Creates a report with a cause, time and position only.
    #[must_use]
    pub const fn new(cause: Cause, detection: Tai, position: Position) -> Self {
        Self {
            detection,
            position,
            position_confidence: None,
            altitude: None,
            awareness_distance: None,
            traffic_direction: None,
            validity: DEFAULT_VALIDITY,
            transmission_interval: None,
            situation: Situation::new(0, cause),
            location: None,
            alacarte: None,
            repetition: None,
            destination: None,
        }
    }

    /// Returns the destination area.
    pub(super) fn destination(&self) -> Area {
        self.destination.unwrap_or_else(|| circle(self.position, self.awareness_distance))
    }

    /// Returns the report for the end of an event of this station: at its position, with its remaining validity.
    pub(super) fn ending_own(self, event: &OwnDenm) -> Self {
        let last = &event.input;
        Self {
            position: last.position.unwrap_or(self.position),
            position_confidence: last.position_confidence,
            altitude: last.altitude,
            awareness_distance: last.awareness_distance,
            traffic_direction: last.traffic_direction,
            validity: event.valid_until().since(self.detection),
            ..self
        }
    }

    /// Returns the report for the end of another station's event: at its position, with its remaining validity.
    pub(super) fn ending_received(self, head: &DenmHead, destination: Option<Area>) -> Self {
        let known = head.position.is_some();
        Self {
            position: head.position.unwrap_or(self.position),
            position_confidence: self.position_confidence.filter(|_| !known),
            altitude: self.altitude.filter(|_| !known),
            awareness_distance: head.awareness_distance,
            traffic_direction: None,
            validity: head.valid_until().since(self.detection),
            destination: destination.or_else(|| head.awareness_area()),
            ..self
        }
    }

    /// Returns the DENM of the report. The end of an event contains only the management container.
    pub(super) fn denm(
        self,
        from: (StationId, StationType),
        action_id: ActionId,
        end: Option<Termination>,
        reference: Tai,
    ) -> DenmInput {
        let (station_id, station_type) = from;
        let lasts = end.is_none();
        DenmInput {
            station_type,
            reference,
            termination: end,
            position: Some(self.position),
            position_confidence: self.position_confidence,
            altitude: self.altitude,
            awareness_distance: self.awareness_distance,
            traffic_direction: self.traffic_direction,
            validity: Some(denm::whole_seconds(self.validity)),
            transmission_interval: self.transmission_interval,
            situation: lasts.then_some(self.situation),
            location: self.location.filter(|_| lasts).or_else(|| lasts.then(Location::default)),
            alacarte: self.alacarte.filter(|_| lasts),
            ..DenmInput::new(station_id, action_id, self.detection)
        }
    }
}

/// The management container of a DENM in SI units: identity, times and position of the event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DenmHead {
    /// Identity of the event.
    pub action_id: ActionId,
    /// Time at which the event, or its end, was detected.
    pub detection: Tai,
    /// Time at which the information was generated.
    pub reference: Tai,
    /// Type of the event's end; `None` while it is active.
    pub termination: Option<Termination>,
    /// Cause; `None` if the DENM ends the event.
    pub cause: Option<Cause>,
    /// Position; `None` if it is unavailable.
    pub position: Option<Position>,
    /// Distance up to which road users should be aware of the event.
    pub awareness_distance: Option<Metres>,
    /// Validity from the detection.
    pub validity: Duration,
    /// Time between two DENMs of the originator.
    pub transmission_interval: Option<Duration>,
}

impl DenmHead {
    /// Returns the end of the validity.
    #[must_use]
    pub fn valid_until(&self) -> Tai {
        self.detection.plus(self.validity)
    }

    /// Returns the circle in which road users should be aware of the event.
    #[must_use]
    pub fn awareness_area(&self) -> Option<Area> {
        self.position.map(|centre| circle(centre, self.awareness_distance))
    }
}

impl From<&Denm> for DenmHead {
    fn from(denm: &Denm) -> Self {
        let management = &denm.denm.management;
        let action_id = ActionId {
            originating_station: StationId(management.action_id.originating_station_id.0),
            sequence_number: management.action_id.sequence_number.0,
        };
        let at = &management.event_position;
        Self {
            action_id,
            detection: TimestampIts(management.detection_time.0).tai(),
            reference: TimestampIts(management.reference_time.0).tai(),
            termination: management.termination,
            cause: denm.denm.situation.as_ref().map(|situation| {
                let cause = situation.event_type.cc_and_scc;
                Cause { code: cause.cause(), sub_code: cause.sub_cause() }
            }),
            position: scale::position(at.latitude.0, at.longitude.0),
            awareness_distance: management.awareness_distance.map(metres),
            validity: Duration::from_secs(management.validity_duration.0.into()),
            transmission_interval: management.transmission_interval.map(|it| Duration::from_millis(it.0.into())),
        }
    }
}

fn circle(centre: Position, radius: Option<Metres>) -> Area {
    let radius = radius.unwrap_or(DEFAULT_DESTINATION_RADIUS);
    Area { centre, shape: geonet::Shape::Circle { radius } }
}

/// Returns the upper end of a class; for the last class, which has none, twice its lower end.
const fn metres(class: StandardLength3b) -> Metres {
    Metres(match class {
        StandardLength3b::LessThan50m => 50.0,
        StandardLength3b::LessThan100m => 100.0,
        StandardLength3b::LessThan200m => 200.0,
        StandardLength3b::LessThan500m => 500.0,
        StandardLength3b::LessThan1000m => 1000.0,
        StandardLength3b::LessThan5km => 5000.0,
        StandardLength3b::LessThan10km => 10_000.0,
        StandardLength3b::Over10km => 20_000.0,
    })
}
