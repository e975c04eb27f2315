//! The objects that a message adds to the map (EN 302 895, 5.3.2).

use std::time::Duration;

use bytes::Bytes;
use viaduct_etsi::{
    cdd::{PerceivedObject, Velocity3dWithConfidence, VelocityComponentValue},
    cpm_ts103324_v211::{Cpm, CpmContainer},
    mapem_ts103301_v221::{Mapem, types as dsrc},
    spatem_ts103301_v221::Spatem,
};
use viaduct_units::{Degrees, Metres, MetresPerSecond, Now, Position, StationId, Tai, TimestampIts};

use super::{ClockOffset, LdmKey, LdmObject, LdmSubject, StationClocks};
use crate::{
    facilities::{Message, MessageKind, den_service::DenmHead, denm::VALIDITY_MAX, messages::scale},
    security::Security,
};

/// Validity of a CAM or a CPM: two of the longest intervals, so that one lost message has no effect. The value is not
/// from the standard.
pub const AWARENESS_VALIDITY: Duration = Duration::from_secs(2);
/// Validity of a VAM: two of the longest intervals.
pub const VAM_VALIDITY: Duration = Duration::from_secs(10);
/// Validity of a MAPEM, and of an IVIM without end of validity: roads and signs change seldom, and their messages are
/// repeated. The value is not from the standard.
pub const INFRASTRUCTURE_VALIDITY: Duration = Duration::from_secs(60);
/// `IviStatus`: cancellation and negation.
const IVI_TAKEN_BACK: [u8; 2] = [2, 3];
/// Centimetres in a metre, for distances and speeds in a CPM.
const CM_PER_M: f64 = 100.0;

/// The station that sent a message.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sender<'a> {
    /// The own station.
    Own,
    /// Another station.
    Other {
        /// Clocks of the stations, which may be offset.
        clocks: &'a StationClocks,
        /// Security of the packet.
        security: Security,
    },
}

/// Returns the message itself and each object that it describes.
pub(crate) fn objects_of(now: Now, message: &Message, payload: &Bytes, sender: Sender<'_>) -> Vec<LdmObject> {
    let whole = whole(now, message, payload, sender);
    match message {
        Message::Cpm(cpm) => {
            let mut objects = perceived(cpm, &whole);
            objects.push(whole);
            objects
        }
        Message::Mapem(mapem) => each_of(intersections(mapem), whole),
        Message::Spatem(spatem) => each_of(lights(spatem), whole),
        _ => vec![whole],
    }
}

/// Returns `true` if the message withdraws an earlier one of its station.
pub(crate) fn is_withdrawal(message: &Message) -> bool {
    matches!(message, Message::Ivim(ivim) if IVI_TAKEN_BACK.contains(&ivim.ivi.mandatory.ivi_status.0))
}

/// Returns one object for each intersection, or the whole message if it has none.
fn each_of(intersections: Vec<(u16, Option<Position>)>, whole: LdmObject) -> Vec<LdmObject> {
    if intersections.is_empty() {
        return vec![whole];
    }
    let one = |(number, position)| {
        let key = LdmKey { subject: LdmSubject::Intersection(number), ..whole.key };
        LdmObject { key, position, ..whole.clone() }
    };
    intersections.into_iter().map(one).collect()
}

/// Returns number and reference point of each intersection.
fn intersections(mapem: &Mapem) -> Vec<(u16, Option<Position>)> {
    let list = mapem.map.intersections.as_ref().map_or(&[][..], |list| &list.0);
    let one = |it: &dsrc::IntersectionGeometry| (it.id.id.0, scale::position(it.ref_point.lat.0, it.ref_point.long.0));
    list.iter().map(one).collect()
}

/// Returns the number of each intersection. Only a MAPEM contains the position.
fn lights(spatem: &Spatem) -> Vec<(u16, Option<Position>)> {
    spatem.spat.intersections.0.iter().map(|state| (state.id.id.0, None)).collect()
}

/// Returns the message as one object of the map.
fn whole(now: Now, message: &Message, payload: &Bytes, sender: Sender<'_>) -> LdmObject {
    let summary = message.summary(now.tai);
    let key = key(message, summary.station_id);
    let sent = summary.generation.unwrap_or(now.tai);
    let clock = match sender {
        Sender::Other { clocks, .. } if has_timestamp_its(message.kind()) => {
            clocks.correction(now.tai, key.station_id, sent)
        }
        _ => ClockOffset::default(),
    };
    let security = match sender {
        Sender::Own => Security::Unsecured,
        Sender::Other { security, .. } => security,
    };
    // A time in the future would exclude the next messages as outdated.
    let time = clock.correct(sent).min(now.tai);
    LdmObject {
        key,
        own: matches!(sender, Sender::Own),
        security,
        time,
        clock,
        expires: now.mono.plus(valid_until(now, message, time, clock).since(now.tai).min(VALIDITY_MAX)),
        position: summary.position,
        speed: summary.speed,
        heading: summary.heading,
        station_type: summary.station_type,
        payload: payload.clone(),
    }
}

/// Returns `true` if the times in such a message are `TimestampIts` or its lower bits, which count leap seconds. The
/// times in other messages are UTC.
const fn has_timestamp_its(kind: MessageKind) -> bool {
    matches!(kind, MessageKind::Cam | MessageKind::Denm | MessageKind::Cpm | MessageKind::Vam | MessageKind::Ivim)
}

/// Returns the key of the message: for a DENM its action id, for an IVIM its identification number.
fn key(message: &Message, station_id: StationId) -> LdmKey {
    let kind = message.kind();
    match message {
        Message::Denm(denm) => {
            let action_id = DenmHead::from(&**denm).action_id;
            let subject = LdmSubject::Event(action_id.sequence_number);
            LdmKey { kind, station_id: action_id.originating_station, subject }
        }
        Message::Ivim(ivim) => {
            let number = u16::try_from(&ivim.ivi.mandatory.ivi_identification_number.0);
            // A number beyond the range of the standard's first version cannot be a key.
            let subject = number.map_or(LdmSubject::Station, LdmSubject::Information);
            LdmKey { kind, station_id, subject }
        }
        _ => LdmKey { kind, station_id, subject: LdmSubject::Station },
    }
}

fn valid_until(now: Now, message: &Message, time: Tai, clock: ClockOffset) -> Tai {
    match message {
        Message::Denm(denm) => clock.correct(DenmHead::from(&**denm).valid_until()),
        Message::Vam(_) => time.plus(VAM_VALIDITY),
        // The time stamp of an IVIM is its time of creation, which may be long ago.
        Message::Ivim(ivim) => ivim
            .ivi
            .mandatory
            .valid_to
            .as_ref()
            .map_or(now.tai.plus(INFRASTRUCTURE_VALIDITY), |end| clock.correct(TimestampIts(end.0).tai())),
        Message::Mapem(_) => now.tai.plus(INFRASTRUCTURE_VALIDITY),
        _ => time.plus(AWARENESS_VALIDITY),
    }
}

/// Returns the objects of a CPM that have a number, if the CPM contains the position of its station.
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

/// Returns the ground speed and its direction, clockwise from north.
fn velocity(velocity: &Velocity3dWithConfidence) -> Option<(MetresPerSecond, Degrees)> {
    match velocity {
        Velocity3dWithConfidence::PolarVelocity(polar) => {
            let speed = scale::speed(polar.velocity_magnitude.speed_value.0)?;
            // The direction is counter-clockwise from east; its codes are those of a heading.
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

/// Returns the time `millis` later, or earlier if `millis` is negative.
fn moved(moment: Tai, millis: i16) -> Tai {
    Tai::from_nanos(moment.nanos().saturating_add(i64::from(millis) * 1_000_000))
}
