//! Conversion of messages on the input topics to inputs of the services.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use viaduct_etsi::JsonError;
use viaduct_etsi::cdd::{
    ObjectClass as ClassChoice, OtherSubClass, VehicleSubClass, VruProfileAndSubprofile, VruSubProfileAnimal,
    VruSubProfileBicyclist, VruSubProfileMotorcyclist, VruSubProfilePedestrian,
};
use viaduct_its::facilities::cp_service::PerceivedObject;
use viaduct_its::facilities::cpm::Object;
use viaduct_its::facilities::den_service::EventReport;
use viaduct_its::facilities::denm::{Cause, Location, Situation};
use viaduct_its::facilities::{self, ConfidenceEllipse, EventError, Offset};
use viaduct_its::geonet::mib::ITS_GN_PAI_INTERVAL;
use viaduct_its::geonet::{Area, Shape};
use viaduct_its::{Ego, Repetition};
use viaduct_messages::its::tai_of;
use viaduct_messages::viaduct::its::Event;
use viaduct_messages::viaduct::perception::{self, ObjectClass, PerceivedObjects};
use viaduct_messages::viaduct::{its, vehicle};
use viaduct_units::{
    Degrees, DegreesPerSecond, Metres, MetresPerSecond, MetresPerSecondSquared, Position, StationType, Tai,
};

use super::alacarte;

/// Maximum lead of the time of an input over the clock of this node.
const AHEAD_MAX: Duration = Duration::from_secs(2);
/// Maximum age of an input that is derived from its hop metadata, in nanoseconds. Older inputs are too old for every message.
const PUBLISHED_AGE_NS_MAX: i64 = 60_000_000_000;
/// Maximum validity of an event: a day (`ValidityDuration`).
const VALIDITY_S_MAX: u32 = 86_400;
/// Range of `EventRequest.relevance_distance_m`. A larger circle exceeds `itsGnMaxGeoAreaSize`.
const RELEVANCE_DISTANCE_M: (u32, u32) = (1, 1784);

/// A member of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::kinds::its_station) struct Member {
    parent: Parent,
    name: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parent {
    Message,
    /// An object of the list, from 0.
    Object(usize),
    /// The event of a request.
    Report,
}

impl From<&'static str> for Member {
    fn from(name: &'static str) -> Self {
        Self { parent: Parent::Message, name }
    }
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parent {
            Parent::Message => f.write_str(self.name),
            Parent::Object(index) => write!(f, "objects[{index}].{}", self.name),
            Parent::Report => write!(f, "report.{}", self.name),
        }
    }
}

/// Reason why a message on an input topic is rejected. The publisher is at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::kinds::its_station) enum InputError {
    /// A vehicle state or an object has no position.
    #[error("{0}: missing")]
    NoPosition(Member),
    /// An event has no position, and the position of the station is unknown.
    #[error("report.position: missing, and the position of the station is unknown")]
    NoOwnPosition,
    /// The time is more than [`AHEAD_MAX`] ahead of this node's clock. Such an input would never become too old.
    #[error("time: more than two seconds ahead of the clock")]
    InFuture,
    /// A number is NaN, or outside the range that its message documents.
    #[error("{member}: expected {expected}, got {got}")]
    OutOfRange {
        /// The member of the message.
        member: Member,
        /// The range.
        expected: String,
        /// The number.
        got: String,
    },
    /// Two objects of the list have the same id.
    #[error("{0}: an earlier object of the list has the same id")]
    DuplicateId(Member),
    /// An event has no name, or one of more than 64 octets.
    #[error("name: expected 1 to 64 octets")]
    EventName,
    /// The request contains neither a report nor an end.
    #[error("expected `report` or `end`")]
    NoAction,
    /// The alacarte container is invalid.
    #[error("report.{0}")]
    Alacarte(#[from] JsonError),
    /// There is no active event with the name that is to be terminated.
    #[error("name: no active event has this name")]
    UnknownEvent,
    /// The DEN service rejects the event.
    #[error("{0}")]
    Refused(#[from] EventError),
}

impl InputError {
    /// All values of [`Self::label`].
    pub(in crate::kinds::its_station) const LABELS: [&str; 9] = [
        "no_position",
        "in_future",
        "out_of_range",
        "duplicate_id",
        "event_name",
        "no_action",
        "alacarte",
        "unknown_event",
        "refused",
    ];

    fn out_of_range(name: &'static str, expected: String, got: impl fmt::Display) -> Self {
        Self::OutOfRange { member: name.into(), expected, got: got.to_string() }
    }

    fn no_position() -> Self {
        Self::NoPosition("position".into())
    }

    /// Returns the same error for a member of an object of the list or of a report.
    fn inside(self, parent: Parent) -> Self {
        let inside = |member: Member| Member { parent, ..member };
        match self {
            Self::NoPosition(member) => Self::NoPosition(inside(member)),
            Self::OutOfRange { member, expected, got } => Self::OutOfRange { member: inside(member), expected, got },
            Self::DuplicateId(member) => Self::DuplicateId(inside(member)),
            other => other,
        }
    }

    /// Returns the reason as it appears in counters.
    pub(in crate::kinds::its_station) const fn label(&self) -> &'static str {
        match self {
            Self::NoPosition(_) | Self::NoOwnPosition => "no_position",
            Self::InFuture => "in_future",
            Self::OutOfRange { .. } => "out_of_range",
            Self::DuplicateId(_) => "duplicate_id",
            Self::EventName => "event_name",
            Self::NoAction => "no_action",
            Self::Alacarte(_) => "alacarte",
            Self::UnknownEvent => "unknown_event",
            Self::Refused(_) => "refused",
        }
    }
}

/// The current time, and the time at which an input was published.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    now: Tai,
    published: Tai,
}

impl Clock {
    /// Creates a clock for an input. `origin` comes from the publisher, so it is limited to the last 60 s.
    pub(super) fn new(now: Tai, origin: Tai) -> Self {
        let oldest = Tai::from_nanos(now.nanos().saturating_sub(PUBLISHED_AGE_NS_MAX));
        Self { now, published: origin.clamp(oldest, now) }
    }

    /// Returns the time of an input: `given`, or the time of publication if it is absent.
    fn moment(self, given: Option<Tai>) -> Result<Tai, InputError> {
        let moment = given.unwrap_or(self.published);
        if moment.since(self.now) > AHEAD_MAX { Err(InputError::InFuture) } else { Ok(moment) }
    }
}

/// Converts the movement of the station.
pub(super) fn vehicle_state(
    message: &vehicle::VehicleState,
    clock: Clock,
) -> Result<facilities::VehicleState, InputError> {
    let place = message.position.as_ref().ok_or_else(InputError::no_position)?;
    let confidence = optional("position_confidence_m", message.position_confidence_m, 0.0, f64::MAX)?;
    Ok(facilities::VehicleState {
        time: clock.moment(message.time.as_ref().map(tai_of))?,
        position: Some(position(place)?),
        position_confidence: confidence.map(|radius| ConfidenceEllipse::circle(Metres(radius))),
        altitude: finite("position.altitude_m", place.altitude_m)?.map(Metres),
        speed: finite("speed_mps", message.speed_mps)?.map(MetresPerSecond),
        heading: optional("heading_deg", message.heading_deg, 0.0, 360.0)?.map(Degrees),
        longitudinal_acceleration: finite("longitudinal_acceleration_mps2", message.longitudinal_acceleration_mps2)?
            .map(MetresPerSecondSquared),
        lateral_acceleration: finite("lateral_acceleration_mps2", message.lateral_acceleration_mps2)?
            .map(MetresPerSecondSquared),
        yaw_rate: finite("yaw_rate_dps", message.yaw_rate_dps)?.map(DegreesPerSecond),
        exterior_lights: message.lights.as_ref().map_or(0, lights),
        ..facilities::VehicleState::default()
    })
}

/// Returns the movement for GeoNetworking, or `None` if there is no position.
pub(super) fn ego(state: &facilities::VehicleState) -> Option<Ego> {
    Some(Ego {
        time: state.time,
        position: state.position?,
        // Without a confidence, a receiver with open sky is assumed.
        position_accurate: state.position_confidence.is_none_or(|it| it.semi_major <= ITS_GN_PAI_INTERVAL),
        speed: state.speed.unwrap_or(MetresPerSecond(0.0)),
        heading: state.heading,
    })
}

/// Returns the bits of `ExteriorLights` (TS 102 894-2), the most significant bit first.
fn lights(lights: &vehicle::ExteriorLights) -> u8 {
    let bits = [
        lights.low_beam,
        lights.high_beam,
        lights.left_turn_signal,
        lights.right_turn_signal,
        lights.daytime_running,
        lights.reverse,
        lights.fog,
        lights.parking,
    ];
    bits.into_iter().fold(0, |octet, bit| octet << 1 | u8::from(bit))
}

/// Converts all perceived objects. If one object is invalid, the whole list is rejected: dropping only that object would
/// indicate to receivers that it has disappeared.
pub(super) fn objects(message: &PerceivedObjects, clock: Clock) -> Result<Vec<PerceivedObject>, InputError> {
    let measured = clock.moment(message.time.as_ref().map(tai_of))?;
    let mut ids = BTreeSet::new();
    let known = |(index, object): (usize, &perception::PerceivedObject)| {
        let is_new = ids.insert(object.id);
        let known = if is_new { perceived_object(object, measured) } else { Err(InputError::DuplicateId("id".into())) };
        known.map_err(|error| error.inside(Parent::Object(index)))
    };
    message.objects.iter().enumerate().map(known).collect()
}

fn perceived_object(message: &perception::PerceivedObject, measured: Tai) -> Result<PerceivedObject, InputError> {
    let place = position(message.position.as_ref().ok_or_else(InputError::no_position)?)?;
    let id = u16::try_from(message.id)
        .map_err(|_| InputError::out_of_range("id", "an integer from 0 to 65535".to_owned(), message.id))?;
    let length = |name, value| optional(name, value, 0.0, f64::MAX).map(|length| length.map(Metres));
    let heading = optional("heading_deg", message.heading_deg, 0.0, 360.0)?;
    let speed = optional("speed_mps", message.speed_mps, 0.0, f64::MAX)?;
    let existence = optional("existence_confidence", message.existence_confidence, 0.0, 1.0)?;
    let class_confidence = optional("class_confidence", message.class_confidence, 0.0, 1.0)?;
    let object = Object {
        offset_confidence: length("position_confidence_m", message.position_confidence_m)?,
        velocity: speed.zip(heading).map(|(speed, heading)| velocity(speed, heading)),
        yaw: heading.map(yaw),
        length: length("length_m", message.length_m)?,
        width: length("width_m", message.width_m)?,
        height: length("height_m", message.height_m)?,
        age: optional("age_s", message.age_s, 0.0, 1e9)?.map(Duration::from_secs_f64),
        quality: existence.map(quality),
        classes: class(message.class()).map(|class| (class, class_confidence)).into_iter().collect(),
        ..Object::new(id, measured, Offset::default())
    };
    Ok(PerceivedObject { position: place, object })
}

/// Returns the velocity to the east and to the north.
fn velocity(speed: f64, heading: f64) -> [MetresPerSecond; 2] {
    let (east, north) = heading.to_radians().sin_cos();
    [MetresPerSecond(speed * east), MetresPerSecond(speed * north)]
}

/// Converts degrees clockwise from north to degrees counter-clockwise from east.
fn yaw(heading: f64) -> Degrees {
    Degrees((90.0 - heading).rem_euclid(360.0))
}

/// Converts an existence probability (0 to 1) to `ObjectPerceptionQuality` (0 to 15).
fn quality(existence: f64) -> u8 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 15")]
    let quality = (existence * 15.0).round() as u8;
    quality.min(15)
}

/// Returns the class as defined in TS 102 894-2, or `None` if it is unknown.
fn class(class: ObjectClass) -> Option<ClassChoice> {
    let vru = |profile| Some(ClassChoice::VruSubClass(profile));
    match class {
        ObjectClass::Unknown => None,
        ObjectClass::Pedestrian => vru(VruProfileAndSubprofile::Pedestrian(VruSubProfilePedestrian::UNAVAILABLE)),
        ObjectClass::Cyclist => {
            vru(VruProfileAndSubprofile::BicyclistAndLightVruVehicle(VruSubProfileBicyclist::BICYCLIST))
        }
        ObjectClass::Moped => vru(VruProfileAndSubprofile::Motorcyclist(VruSubProfileMotorcyclist::MOPED)),
        ObjectClass::Motorcycle => vru(VruProfileAndSubprofile::Motorcyclist(VruSubProfileMotorcyclist::MOTORCYCLE)),
        ObjectClass::Animal => vru(VruProfileAndSubprofile::Animal(VruSubProfileAnimal::UNAVAILABLE)),
        ObjectClass::Other => Some(ClassChoice::OtherSubClass(OtherSubClass::SINGLE_OBJECT)),
        // The numbers of vehicle classes are those of TrafficParticipantType.
        ObjectClass::PassengerCar => vehicle_class(StationType::PASSENGER_CAR),
        ObjectClass::Bus => vehicle_class(StationType::BUS),
        ObjectClass::LightTruck => vehicle_class(StationType::LIGHT_TRUCK),
        ObjectClass::HeavyTruck => vehicle_class(StationType::HEAVY_TRUCK),
        ObjectClass::Trailer => vehicle_class(StationType::TRAILER),
        ObjectClass::SpecialVehicle => vehicle_class(StationType::SPECIAL_VEHICLE),
        ObjectClass::Tram => vehicle_class(StationType::TRAM),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "an arm of a match of options")]
const fn vehicle_class(participant: StationType) -> Option<ClassChoice> {
    Some(ClassChoice::VehicleSubClass(VehicleSubClass(participant.value())))
}

/// Converts an event. The default time is now, and the default position is the station's position.
pub(super) fn event(message: &Event, now: Tai, here: Option<Position>) -> Result<EventReport, InputError> {
    report(message, now, here).map_err(|error| error.inside(Parent::Report))
}

fn report(message: &Event, now: Tai, here: Option<Position>) -> Result<EventReport, InputError> {
    let place = message.position.as_ref().map(position).transpose()?.or(here).ok_or(InputError::NoOwnPosition)?;
    let cause =
        Cause { code: code("cause", message.cause, 1, 127)?, sub_code: code("sub_cause", message.sub_cause, 0, 255)? };
    let detection = Clock::new(now, now).moment(message.detection_time.as_ref().map(tai_of))?;
    let standard = EventReport::new(cause, detection, place);
    Ok(EventReport {
        altitude: message
            .position
            .as_ref()
            .map_or(Ok(None), |place| finite("position.altitude_m", place.altitude_m))?
            .map(Metres),
        validity: message.validity_s.map_or(Ok(standard.validity), validity)?,
        situation: Situation {
            quality: code("information_quality", message.information_quality, 0, 7)?,
            ..standard.situation
        },
        location: location(message)?,
        alacarte: message.alacarte.as_ref().map(alacarte::read).transpose()?,
        awareness_distance: message.relevance_distance_m.map(|distance| Metres(distance.into())),
        destination: message.relevance_distance_m.map(|distance| circle(place, distance)).transpose()?,
        repetition: repetition(message)?,
        ..standard
    })
}

fn code(name: &'static str, value: u32, min: u8, max: u8) -> Result<u8, InputError> {
    let code = u8::try_from(value).ok().filter(|code| (min..=max).contains(code));
    code.ok_or_else(|| InputError::out_of_range(name, format!("an integer from {min} to {max}"), value))
}

fn validity(seconds: u32) -> Result<Duration, InputError> {
    if seconds > VALIDITY_S_MAX {
        let expected = format!("an integer from 0 to {VALIDITY_S_MAX}");
        Err(InputError::out_of_range("validity_s", expected, seconds))
    } else {
        Ok(Duration::from_secs(seconds.into()))
    }
}

fn circle(centre: Position, distance: u32) -> Result<Area, InputError> {
    let (min, max) = RELEVANCE_DISTANCE_M;
    if !(min..=max).contains(&distance) {
        let expected = format!("an integer from {min} to {max}");
        return Err(InputError::out_of_range("relevance_distance_m", expected, distance));
    }
    Ok(Area { centre, shape: Shape::Circle { radius: Metres(distance.into()) } })
}

fn location(message: &Event) -> Result<Option<Location>, InputError> {
    let speed = optional("speed_mps", message.speed_mps, 0.0, f64::MAX)?.map(MetresPerSecond);
    let heading = optional("heading_deg", message.heading_deg, 0.0, 360.0)?.map(Degrees);
    let moves = speed.is_some() || heading.is_some();
    Ok(moves.then(|| Location { speed, heading, ..Location::default() }))
}

fn repetition(message: &Event) -> Result<Option<Repetition>, InputError> {
    let millis = |value: u32| Duration::from_millis(value.into());
    match (message.repetition_interval_ms, message.repetition_duration_ms) {
        (None, None) => Ok(None),
        (Some(interval), Some(duration)) if interval > 0 => {
            Ok(Some(Repetition { interval: millis(interval), duration: millis(duration) }))
        }
        (Some(1..), None) => {
            let expected = "an integer beside `repetition_interval_ms`".to_owned();
            Err(InputError::out_of_range("repetition_duration_ms", expected, "nothing"))
        }
        (interval, _) => {
            let got = interval.map_or_else(|| "nothing".to_owned(), |interval| interval.to_string());
            Err(InputError::out_of_range("repetition_interval_ms", "an integer of at least 1".to_owned(), got))
        }
    }
}

fn position(place: &its::Position) -> Result<Position, InputError> {
    let (latitude, longitude) = (place.latitude_deg, place.longitude_deg);
    if !(-90.0..=90.0).contains(&latitude) {
        Err(InputError::out_of_range("position.latitude_deg", number_range(-90.0, 90.0), latitude))
    } else if !(-180.0..=180.0).contains(&longitude) {
        Err(InputError::out_of_range("position.longitude_deg", number_range(-180.0, 180.0), longitude))
    } else {
        Ok(Position::new(latitude, longitude))
    }
}

fn finite(name: &'static str, value: Option<f64>) -> Result<Option<f64>, InputError> {
    optional(name, value, f64::MIN, f64::MAX)
}

fn optional(name: &'static str, value: Option<f64>, min: f64, max: f64) -> Result<Option<f64>, InputError> {
    match value {
        Some(value) if !(min..=max).contains(&value) => {
            Err(InputError::out_of_range(name, number_range(min, max), value))
        }
        value => Ok(value),
    }
}

fn number_range(min: f64, max: f64) -> String {
    match (min, max) {
        (f64::MIN, _) => "a finite number".to_owned(),
        (min, f64::MAX) => format!("a finite number of at least {min}"),
        (min, max) => format!("a number from {min} to {max}"),
    }
}

#[cfg(test)]
mod tests {
    use viaduct_etsi::JsonProblem;
    use viaduct_messages::its::timestamp;

    use super::*;

    const PUBLISHED: Tai = Tai::from_nanos(1_800_000_000_000_000_000);

    /// Returns a clock one second after the publication.
    fn clock() -> Clock {
        Clock::new(PUBLISHED.plus(Duration::from_secs(1)), PUBLISHED)
    }

    fn here() -> its::Position {
        its::Position { latitude_deg: 45.5, longitude_deg: 7.25, altitude_m: Some(300.0) }
    }

    fn state() -> vehicle::VehicleState {
        vehicle::VehicleState {
            position: Some(here()),
            position_confidence_m: Some(1.5),
            speed_mps: Some(-2.0),
            heading_deg: Some(90.0),
            ..vehicle::VehicleState::default()
        }
    }

    #[test]
    fn absent_members_of_a_vehicle_state_are_unknown() {
        let known = vehicle_state(&state(), clock()).unwrap();
        assert_eq!((known.time, known.position), (PUBLISHED, Some(Position::new(45.5, 7.25))));
        assert_eq!((known.altitude, known.speed), (Some(Metres(300.0)), Some(MetresPerSecond(-2.0))));
        assert_eq!((known.yaw_rate, known.lateral_acceleration, known.exterior_lights), (None, None, 0));
    }

    #[test]
    fn an_invalid_state_is_rejected() {
        let refused = |state: &vehicle::VehicleState| vehicle_state(state, clock()).unwrap_err();
        let beyond = its::Position { latitude_deg: 90.1, ..here() };
        let nowhere = its::Position { longitude_deg: f64::NAN, ..here() };
        for (position, error) in [
            (None, "position: missing"),
            (Some(beyond), "position.latitude_deg: expected a number from -90 to 90, got 90.1"),
            (Some(nowhere), "position.longitude_deg: expected a number from -180 to 180, got NaN"),
        ] {
            assert_eq!(refused(&vehicle::VehicleState { position, ..state() }).to_string(), error);
        }
        let ahead = Some(timestamp(PUBLISHED.plus(Duration::from_millis(3001))));
        assert_eq!(refused(&vehicle::VehicleState { time: ahead, ..state() }), InputError::InFuture);
        for wrong in [
            vehicle::VehicleState { speed_mps: Some(f64::NAN), ..state() },
            vehicle::VehicleState { yaw_rate_dps: Some(f64::INFINITY), ..state() },
            vehicle::VehicleState { heading_deg: Some(-0.1), ..state() },
            vehicle::VehicleState { heading_deg: Some(360.1), ..state() },
            vehicle::VehicleState { position_confidence_m: Some(-1.0), ..state() },
        ] {
            assert_eq!(refused(&wrong).label(), "out_of_range", "{wrong:?}");
        }
    }

    #[test]
    fn the_origin_of_the_publisher_is_limited_to_the_last_minute() {
        let now = PUBLISHED;
        let second_ago = Tai::from_nanos(now.nanos() - 1_000_000_000);
        let minute_ago = Tai::from_nanos(now.nanos() - 60_000_000_000);
        for (origin, time) in [
            (second_ago, second_ago),
            (Tai::from_nanos(now.nanos() + 1), now),
            (Tai::from_nanos(i64::MAX), now),
            (Tai::from_nanos(0), minute_ago),
            (Tai::from_nanos(i64::MIN), minute_ago),
        ] {
            assert_eq!(vehicle_state(&state(), Clock::new(now, origin)).unwrap().time, time, "{origin:?}");
            assert_eq!(objects(&list(object()), Clock::new(now, origin)).unwrap()[0].object.measurement, time);
        }
        let ahead = vehicle::VehicleState { time: Some(timestamp(now.plus(Duration::from_secs(60)))), ..state() };
        let origin = Tai::from_nanos(i64::MAX);
        assert_eq!(vehicle_state(&ahead, Clock::new(now, origin)), Err(InputError::InFuture));
    }

    #[test]
    fn a_position_is_accurate_up_to_the_interval_of_geonetworking() {
        for (radius, accurate) in [(None, true), (Some(80.0), true), (Some(80.1), false)] {
            let message = vehicle::VehicleState { position_confidence_m: radius, ..state() };
            let ego = ego(&vehicle_state(&message, clock()).unwrap()).unwrap();
            assert_eq!(ego.position_accurate, accurate, "{radius:?}");
        }
    }

    /// `ExteriorLights` begins with the low beam.
    #[test]
    fn lights_are_bits_from_the_most_significant_one() {
        let off = vehicle::ExteriorLights::default();
        assert_eq!(lights(&off), 0);
        assert_eq!(lights(&vehicle::ExteriorLights { low_beam: true, ..off }), 0b1000_0000);
        assert_eq!(lights(&vehicle::ExteriorLights { right_turn_signal: true, ..off }), 0b0001_0000);
        assert_eq!(lights(&vehicle::ExteriorLights { parking: true, ..off }), 1);
    }

    fn object() -> perception::PerceivedObject {
        perception::PerceivedObject {
            id: 7,
            position: Some(here()),
            speed_mps: Some(10.0),
            heading_deg: Some(180.0),
            length_m: Some(4.5),
            existence_confidence: Some(1.0),
            ..perception::PerceivedObject::default()
        }
    }

    fn list(object: perception::PerceivedObject) -> PerceivedObjects {
        PerceivedObjects { objects: vec![object], ..PerceivedObjects::default() }
    }

    /// South is -90 degrees from east, counter-clockwise, which is 270.
    #[test]
    fn headings_are_converted_to_mathematical_angles() {
        let known = objects(&list(object()), clock()).unwrap().remove(0);
        assert_eq!((known.position, known.object.measurement), (Position::new(45.5, 7.25), PUBLISHED));
        assert_eq!((known.object.yaw, known.object.quality), (Some(Degrees(270.0)), Some(15)));
        let [east, north] = known.object.velocity.unwrap();
        assert!(east.value().abs() < 1e-9 && (north.value() + 10.0).abs() < 1e-9, "{east:?} {north:?}");
    }

    #[test]
    fn one_invalid_object_makes_the_list_invalid() {
        for (wrong, error) in [
            (perception::PerceivedObject { position: None, ..object() }, "position: missing"),
            (
                perception::PerceivedObject { id: 65_536, ..object() },
                "id: expected an integer from 0 to 65535, got 65536",
            ),
            (
                perception::PerceivedObject { speed_mps: Some(-0.1), ..object() },
                "speed_mps: expected a finite number of at least 0, got -0.1",
            ),
            (
                perception::PerceivedObject { class_confidence: Some(1.1), ..object() },
                "class_confidence: expected a number from 0 to 1, got 1.1",
            ),
            (
                perception::PerceivedObject { existence_confidence: Some(-0.1), ..object() },
                "existence_confidence: expected a number from 0 to 1, got -0.1",
            ),
            (
                perception::PerceivedObject { age_s: Some(f64::NAN), ..object() },
                "age_s: expected a number from 0 to 1000000000, got NaN",
            ),
        ] {
            assert_eq!(objects(&list(wrong), clock()).unwrap_err().to_string(), format!("objects[0].{error}"));
        }
    }

    #[test]
    fn an_id_is_unique_within_the_list() {
        let with_id = |id| perception::PerceivedObject { id, ..object() };
        let list = PerceivedObjects { objects: [3, 4, 3].map(with_id).to_vec(), ..PerceivedObjects::default() };
        let error = objects(&list, clock()).unwrap_err();
        assert_eq!(
            (error.label(), error.to_string().as_str()),
            ("duplicate_id", "objects[2].id: an earlier object of the list has the same id")
        );
    }

    #[test]
    fn each_class_has_a_class_of_the_standard() {
        assert_eq!(class(ObjectClass::Unknown), None);
        assert_eq!(class(ObjectClass::PassengerCar), Some(ClassChoice::VehicleSubClass(VehicleSubClass(5))));
        assert_eq!(class(ObjectClass::Tram), Some(ClassChoice::VehicleSubClass(VehicleSubClass(11))));
        assert_eq!(class(ObjectClass::Other), Some(ClassChoice::OtherSubClass(OtherSubClass::SINGLE_OBJECT)));
        let pedestrian = VruProfileAndSubprofile::Pedestrian(VruSubProfilePedestrian::UNAVAILABLE);
        assert_eq!(class(ObjectClass::Pedestrian), Some(ClassChoice::VruSubClass(pedestrian)));
    }

    fn accident() -> Event {
        Event { cause: 2, sub_cause: 1, information_quality: 3, ..Event::default() }
    }

    #[test]
    fn an_event_defaults_to_here_and_now() {
        let report = event(&accident(), PUBLISHED, Some(Position::new(45.5, 7.25))).unwrap();
        assert_eq!((report.detection, report.position), (PUBLISHED, Position::new(45.5, 7.25)));
        assert_eq!((report.validity, report.repetition, report.destination), (Duration::from_secs(600), None, None));
        assert_eq!(event(&accident(), PUBLISHED, None).unwrap_err(), InputError::NoOwnPosition);
        let beyond = Event { position: Some(its::Position { latitude_deg: 91.0, ..here() }), ..accident() };
        let error = event(&beyond, PUBLISHED, Some(Position::new(45.5, 7.25))).unwrap_err();
        assert_eq!(error.to_string(), "report.position.latitude_deg: expected a number from -90 to 90, got 91");
    }

    /// The relevance distance is the radius of the destination area, and is part of the message.
    #[test]
    fn the_relevance_distance_is_in_the_report() {
        let near = Event { relevance_distance_m: Some(500), ..accident() };
        let report = event(&near, PUBLISHED, Some(Position::new(45.5, 7.25))).unwrap();
        let circle = Area { centre: report.position, shape: Shape::Circle { radius: Metres(500.0) } };
        assert_eq!((report.awareness_distance, report.destination), (Some(Metres(500.0)), Some(circle)));
        let anywhere = event(&accident(), PUBLISHED, Some(Position::new(45.5, 7.25))).unwrap();
        assert_eq!(anywhere.awareness_distance, None);
    }

    #[test]
    fn an_event_is_accepted_if_all_members_are_in_range() {
        let most = Event {
            cause: 127,
            sub_cause: 255,
            information_quality: 7,
            validity_s: Some(86_400),
            relevance_distance_m: Some(1784),
            repetition_interval_ms: Some(1),
            repetition_duration_ms: Some(0),
            ..accident()
        };
        let result = |request: &Event| event(request, PUBLISHED, Some(Position::new(45.5, 7.25)));
        assert!(result(&most).is_ok());
        for (wrong, expected) in [
            (Event { cause: 0, ..accident() }, "cause: expected an integer from 1 to 127, got 0"),
            (Event { cause: 128, ..accident() }, "cause: expected an integer from 1 to 127, got 128"),
            (Event { sub_cause: 256, ..accident() }, "sub_cause: expected an integer from 0 to 255, got 256"),
            (
                Event { information_quality: 8, ..accident() },
                "information_quality: expected an integer from 0 to 7, got 8",
            ),
            (
                Event { validity_s: Some(86_401), ..accident() },
                "validity_s: expected an integer from 0 to 86400, got 86401",
            ),
            (
                Event { relevance_distance_m: Some(0), ..accident() },
                "relevance_distance_m: expected an integer from 1 to 1784, got 0",
            ),
            (
                Event { relevance_distance_m: Some(1785), ..accident() },
                "relevance_distance_m: expected an integer from 1 to 1784, got 1785",
            ),
            (
                Event { repetition_interval_ms: Some(100), ..accident() },
                "repetition_duration_ms: expected an integer beside `repetition_interval_ms`, got nothing",
            ),
            (
                Event { repetition_duration_ms: Some(100), ..accident() },
                "repetition_interval_ms: expected an integer of at least 1, got nothing",
            ),
            (
                Event { repetition_interval_ms: Some(0), repetition_duration_ms: Some(100), ..accident() },
                "repetition_interval_ms: expected an integer of at least 1, got 0",
            ),
            (
                Event { speed_mps: Some(-1.0), ..accident() },
                "speed_mps: expected a finite number of at least 0, got -1",
            ),
        ] {
            let error = result(&wrong).unwrap_err();
            assert_eq!((error.label(), error.to_string()), ("out_of_range", format!("report.{expected}")));
        }
    }

    /// Each label has a counter.
    #[test]
    fn the_labels_are_those_of_the_errors() {
        let errors = [
            InputError::no_position(),
            InputError::InFuture,
            InputError::out_of_range("id", String::new(), 0),
            InputError::DuplicateId("id".into()),
            InputError::EventName,
            InputError::NoAction,
            JsonError { path: String::new(), problem: JsonProblem::Missing }.into(),
            InputError::UnknownEvent,
            InputError::Refused(EventError::ServiceOff),
        ];
        assert_eq!(errors.each_ref().map(InputError::label), InputError::LABELS);
        assert_eq!(InputError::NoOwnPosition.label(), InputError::no_position().label());
    }
}
