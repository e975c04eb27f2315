//! What a message adds to the map (EN 302 895, 5.3.2).

use std::time::Duration;

use bytes::Bytes;
use viaduct_etsi::{
    cdd::{PerceivedObject, Velocity3dWithConfidence, VelocityComponentValue},
    cpm_ts103324_v211::{Cpm, CpmContainer},
};
use viaduct_units::{Degrees, Metres, MetresPerSecond, Now, Tai};

use super::{LdmKey, LdmObject, LdmSubject};
use crate::facilities::{Message, MessageKind, den_service::DenmHead, denm::VALIDITY_MAX, scale};

/// How long what a CAM or a CPM said is kept: two of the longest intervals, so that one lost message does no harm. Ours.
pub const AWARENESS_VALIDITY: Duration = Duration::from_secs(2);
/// How long what a VAM said is kept, likewise.
pub const VAM_VALIDITY: Duration = Duration::from_secs(10);
/// Centimetres in a metre, for places and speeds of a CPM.
const CM_PER_M: f64 = 100.0;

/// What a message says: itself, and each object that it describes.
pub(crate) fn objects_of(now: Now, message: &Message, payload: &Bytes, own: bool) -> Vec<LdmObject> {
    let whole = whole(now, message, payload, own);
    match message {
        Message::Cpm(cpm) => {
            let mut objects = perceived(cpm, &whole);
            objects.push(whole);
            objects
        }
        _ => vec![whole],
    }
}

/// The message as one object of the map.
fn whole(now: Now, message: &Message, payload: &Bytes, own: bool) -> LdmObject {
    let summary = message.summary(now.tai);
    // A time ahead of the own clock would keep out what is said next.
    let time = summary.generation.map_or(now.tai, |generation| generation.min(now.tai));
    LdmObject {
        key: key(message, summary.station_id),
        own,
        time,
        expires: now.mono.plus(valid_until(message, time).since(now.tai).min(VALIDITY_MAX)),
        position: summary.position,
        speed: summary.speed,
        heading: summary.heading,
        station_type: summary.station_type,
        payload: payload.clone(),
    }
}

/// An event is known under its action id, whoever says it.
fn key(message: &Message, station_id: u32) -> LdmKey {
    let kind = message.kind();
    match message {
        Message::Denm(denm) => {
            let action_id = DenmHead::from(&**denm).action_id;
            let subject = LdmSubject::Event(action_id.sequence_number);
            LdmKey { kind, station_id: action_id.originating_station, subject }
        }
        _ => LdmKey { kind, station_id, subject: LdmSubject::Station },
    }
}

fn valid_until(message: &Message, time: Tai) -> Tai {
    match message {
        Message::Denm(denm) => DenmHead::from(&**denm).valid_until(),
        Message::Vam(_) => time.plus(VAM_VALIDITY),
        _ => time.plus(AWARENESS_VALIDITY),
    }
}

/// The objects of a CPM that have a number, where the message says where its station is.
fn perceived(cpm: &Cpm, whole: &LdmObject) -> Vec<LdmObject> {
    let objects = cpm.containers.iter().filter_map(|container| match container {
        CpmContainer::PerceivedObject(objects) => Some(&objects.perceived_objects.0),
        _ => None,
    });
    objects.flatten().filter_map(|object| perceived_object(object, whole)).collect()
}

fn perceived_object(object: &PerceivedObject, whole: &LdmObject) -> Option<LdmObject> {
    let metres = |centimetres: i32| Metres(f64::from(centimetres) / CM_PER_M);
    let at = &object.position;
    let position = whole.position?.displaced(metres(at.x_coordinate.value.0), metres(at.y_coordinate.value.0));
    let (speed, heading) = object.velocity.as_ref().and_then(velocity).unzip();
    let subject = LdmSubject::Object(object.object_id?.0);
    Some(LdmObject {
        key: LdmKey { kind: MessageKind::Cpm, station_id: whole.key.station_id, subject },
        time: moved(whole.time, object.measurement_delta_time.0),
        position: Some(position),
        speed,
        heading,
        station_type: None,
        ..whole.clone()
    })
}

/// Ground speed and its direction, clockwise from north.
fn velocity(velocity: &Velocity3dWithConfidence) -> Option<(MetresPerSecond, Degrees)> {
    match velocity {
        Velocity3dWithConfidence::PolarVelocity(polar) => {
            let speed = scale::speed(polar.velocity_magnitude.speed_value.0)?;
            // Counter-clockwise from east; its codes are those of other angles.
            let direction = scale::heading(polar.velocity_direction.value.0)?;
            Some((speed, (Degrees(90.0) - direction).normalised()))
        }
        Velocity3dWithConfidence::CartesianVelocity(cartesian) => {
            let known =
                |value: VelocityComponentValue| (value != VelocityComponentValue::UNAVAILABLE).then_some(value.0);
            let east = f64::from(known(cartesian.x_velocity.value)?) / CM_PER_M;
            let north = f64::from(known(cartesian.y_velocity.value)?) / CM_PER_M;
            let direction = Degrees(east.atan2(north).to_degrees()).normalised();
            Some((MetresPerSecond(east.hypot(north)), direction))
        }
    }
}

/// A moment some milliseconds later, or earlier where they are negative.
fn moved(moment: Tai, millis: i16) -> Tai {
    Tai::from_nanos(moment.nanos().saturating_add(i64::from(millis) * 1_000_000))
}
