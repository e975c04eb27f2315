//! What is said about an event.

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

/// Radius of the destination area where no awareness distance is given. Ours: the standard leaves it to the application.
pub const DEFAULT_DESTINATION_RADIUS: Metres = Metres(1000.0);

/// What an application says about an event (`AppDENM_trigger`, `AppDENM_update`).
#[derive(Clone, Debug, PartialEq)]
pub struct EventReport {
    /// When the event, or its change or end, was detected.
    pub detection: Tai,
    /// Where it is.
    pub position: Position,
    /// How accurate the position is.
    pub position_confidence: Option<ConfidenceEllipse>,
    /// Altitude of it above the WGS 84 ellipsoid.
    pub altitude: Option<Metres>,
    /// Up to which distance somebody should be aware of it.
    pub awareness_distance: Option<Metres>,
    /// Traffic of which direction is concerned.
    pub traffic_direction: Option<TrafficDirection>,
    /// How long it is valid from its detection on: rounded up to whole seconds, up to a day.
    pub validity: Duration,
    /// Time between two messages, which a forwarder needs (keep-alive forwarding), where the application says the event again
    /// itself. Where it asks for repetition, the interval of that is said.
    pub transmission_interval: Option<Duration>,
    /// What it is.
    pub situation: Situation,
    /// How it moves, and on which ways it is reached.
    pub location: Option<Location>,
    /// What only some kinds of events have.
    pub alacarte: Option<Box<AlacarteContainer>>,
    /// How often to say it again; `None` says it once.
    pub repetition: Option<Repetition>,
    /// Who should receive it; by default a circle around the position.
    pub destination: Option<Area>,
}

impl EventReport {
    /// An event of which nothing but the cause, time and place is known.
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

    /// Who should receive it.
    pub(super) fn destination(&self) -> Area {
        self.destination.unwrap_or_else(|| circle(self.position, self.awareness_distance))
    }

    /// The end of an event of this station: where it is, as long as it was valid.
    pub(super) fn ending_own(self, event: &OwnDenm) -> Self {
        let said = &event.input;
        Self {
            position: said.position.unwrap_or(self.position),
            position_confidence: said.position_confidence,
            altitude: said.altitude,
            awareness_distance: said.awareness_distance,
            traffic_direction: said.traffic_direction,
            validity: event.valid_until().since(self.detection),
            ..self
        }
    }

    /// The end of an event that somebody else said, likewise.
    pub(super) fn ending_heard(self, head: &DenmHead, destination: Option<Area>) -> Self {
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

    /// The DENM that says it. One that ends the event says nothing more of it.
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

/// Which event a DENM is about, since when and how long: its management container in quantities.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DenmHead {
    /// Which event it is.
    pub action_id: ActionId,
    /// When the event, or its end, was detected.
    pub detection: Tai,
    /// When the information was generated.
    pub reference: Tai,
    /// That it has ended, and who says so; `None` while it lasts.
    pub termination: Option<Termination>,
    /// What it is; a DENM that ends the event does not say.
    pub cause: Option<Cause>,
    /// Where it is; `None` where the message does not say.
    pub position: Option<Position>,
    /// Up to which distance somebody should be aware of it.
    pub awareness_distance: Option<Metres>,
    /// How long it is valid from its detection on.
    pub validity: Duration,
    /// Time between two messages of the originator.
    pub transmission_interval: Option<Duration>,
}

impl DenmHead {
    /// When its validity ends.
    #[must_use]
    pub fn valid_until(&self) -> Tai {
        self.detection.plus(self.validity)
    }

    /// The circle in which somebody should be aware of the event.
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

/// The upper end of a class; of the last one, which has none, twice its lower end.
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
