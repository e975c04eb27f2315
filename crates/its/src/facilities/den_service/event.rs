//! What is said about an event.

use std::time::Duration;

use viaduct_units::{Degrees, Metres, MetresPerSecond, Position, Tai};

use crate::{
    Repetition,
    facilities::cam::PathPoint,
    geonet::{Area, Shape},
};

/// `defaultValidity`: how long an event is valid where nobody says (EN 302 637-3, 8.2.1.5).
pub const DEFAULT_VALIDITY: Duration = Duration::from_secs(600);
/// Radius of the destination area where no awareness distance is given. Ours: the standard leaves it to the application.
pub const DEFAULT_DESTINATION_RADIUS: Metres = Metres(1000.0);

/// Which event it is: who detected it first, and its number there (`ActionId`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ActionId {
    /// Station that detected the event.
    pub station_id: u32,
    /// Its number at that station.
    pub sequence_number: u16,
}

/// How an event ended (`Termination`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Termination {
    /// Who said it says that it has ended.
    Cancellation,
    /// Somebody else says that it is not there.
    Negation,
}

/// What an application says about an event (`AppDENM_trigger`, `AppDENM_update`).
#[derive(Clone, Debug, PartialEq)]
pub struct EventReport {
    /// When the event, or its change, was detected.
    pub detection_time: Tai,
    /// Where it is.
    pub position: Position,
    /// Altitude of it above the WGS 84 ellipsoid.
    pub altitude: Option<Metres>,
    /// `CauseCode` (TS 102 894-2): 94 is a stationary vehicle.
    pub cause: u8,
    /// Sub cause of that cause; 0 is none.
    pub sub_cause: u8,
    /// How probable the event is, 0 (unknown) to 7.
    pub information_quality: u8,
    /// Up to which distance somebody should be aware of it.
    pub awareness_distance: Option<Metres>,
    /// How long it is valid from its detection on, up to a day.
    pub validity: Duration,
    /// Time between two messages, which a forwarder needs (keep-alive forwarding).
    pub transmission_interval: Option<Duration>,
    /// Speed of a moving event.
    pub speed: Option<MetresPerSecond>,
    /// Heading of a moving event.
    pub heading: Option<Degrees>,
    /// Ways that lead to the event, each the nearest place first; at least one, which may be empty.
    pub traces: Vec<Vec<PathPoint>>,
    /// How often to say it again; never without.
    pub repetition: Option<Repetition>,
    /// Who should receive it; by default a circle around the position.
    pub destination: Option<Area>,
}

impl EventReport {
    /// An event of which nothing but the cause, time and place is known.
    #[must_use]
    pub const fn new(cause: u8, detection_time: Tai, position: Position) -> Self {
        Self {
            detection_time,
            position,
            altitude: None,
            cause,
            sub_cause: 0,
            information_quality: 0,
            awareness_distance: None,
            validity: DEFAULT_VALIDITY,
            transmission_interval: None,
            speed: None,
            heading: None,
            traces: Vec::new(),
            repetition: None,
            destination: None,
        }
    }
}

/// Which event a DENM is about, since when and how long: its management container.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DenmHead {
    /// Which event it is.
    pub action_id: ActionId,
    /// When the event, or its end, was detected.
    pub detection_time: Tai,
    /// When the information was generated.
    pub reference_time: Tai,
    /// That it has ended, and who says so; `None` while it lasts.
    pub termination: Option<Termination>,
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
        self.detection_time.plus(self.validity)
    }

    /// The circle in which somebody should be aware of the event.
    #[must_use]
    pub fn awareness_area(&self) -> Option<Area> {
        let radius = self.awareness_distance.unwrap_or(DEFAULT_DESTINATION_RADIUS);
        self.position.map(|centre| Area { centre, shape: Shape::Circle { radius } })
    }
}

/// A DENM to be built and sent.
#[derive(Clone, Debug, PartialEq)]
pub struct DenmContent {
    /// Its management container.
    pub head: DenmHead,
    /// What it says about the event; of a termination only place and time count, and no situation is sent.
    pub report: EventReport,
    /// Who should receive it.
    pub destination: Area,
}
