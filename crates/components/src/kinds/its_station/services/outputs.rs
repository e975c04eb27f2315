//! Outputs of the services as messages of the bus.

use std::collections::BTreeMap;
use std::time::Duration;

use viaduct_its::Security;
use viaduct_its::facilities::den_service::{DenIndication, DenmHead};
use viaduct_its::facilities::ldm::{ClockOffset, LdmKey, LdmObject, LdmSubject};
use viaduct_messages::its::{tai_of, timestamp};
use viaduct_messages::viaduct::its::{self, EventNotice, MapObject, event_notice::Change, map_object::Subject};
use viaduct_units::{Degrees, MetresPerSecond, Now, Position};

use crate::v2x::message::{message_type, security_state, shifted};

/// Returns the notice about a change of an event. `shift_ns` shifts the times of a replayed capture to now; it is 0 otherwise.
pub(super) fn notice(indication: DenIndication, head: &DenmHead, security: Security, shift_ns: i64) -> EventNotice {
    let change = match indication {
        DenIndication::New => Change::New,
        DenIndication::Updated => Change::Updated,
        DenIndication::Cancelled => Change::Cancelled,
        DenIndication::Negated => Change::Negated,
    };
    EventNotice {
        change: change.into(),
        originating_station_id: head.action_id.originating_station.into(),
        sequence_number: head.action_id.sequence_number.into(),
        cause: head.cause.map(|cause| cause.code.into()),
        // 0 is "unavailable".
        sub_cause: head.cause.map(|cause| cause.sub_code.into()).filter(|&code| code != 0),
        position: head.position.map(place),
        detection_time: Some(timestamp(shifted(head.detection, shift_ns))),
        valid_until: Some(timestamp(shifted(head.valid_until(), shift_ns))),
        security: security_state(security).into(),
    }
}

/// Returns the result of a query of the map. `shifts` shift the times of objects from a replayed capture to now.
pub(super) fn map<'a>(
    found: impl Iterator<Item = &'a LdmObject>,
    now: Now,
    shifts: &BTreeMap<LdmKey, i64>,
) -> its::LocalDynamicMap {
    let shift_ns = |object: &LdmObject| shifts.get(&object.key).copied().unwrap_or(0);
    let objects = found.map(|object| map_object(object, now, shift_ns(object))).collect();
    its::LocalDynamicMap { time: Some(timestamp(now.tai)), objects }
}

/// Removes the objects whose time is longer ago than `age`.
pub(super) fn keep_newer(map: &mut its::LocalDynamicMap, now: Now, age: Duration) {
    map.objects.retain(|object| object.time.as_ref().is_none_or(|time| now.tai.since(tai_of(time)) <= age));
}

fn map_object(object: &LdmObject, now: Now, shift_ns: i64) -> MapObject {
    MapObject {
        r#type: message_type(object.key.kind).into(),
        station_id: object.key.station_id.into(),
        subject: match object.key.subject {
            LdmSubject::Station => None,
            LdmSubject::Event(number) => Some(Subject::Event(number.into())),
            LdmSubject::Object(id) => Some(Subject::Object(id.into())),
            LdmSubject::Intersection(number) => Some(Subject::Intersection(number.into())),
            LdmSubject::Information(number) => Some(Subject::Information(number.into())),
        },
        own: object.own,
        time: Some(timestamp(shifted(object.time, shift_ns))),
        valid_for_s: object.expires.since(now.mono).as_secs_f64(),
        position: object.position.map(place),
        speed_mps: object.speed.map(MetresPerSecond::value),
        heading_deg: object.heading.map(Degrees::value),
        station_type: object.station_type.map(u32::from),
        sent_time: (object.clock != ClockOffset::default()).then(|| timestamp(shifted(object.sent_time(), shift_ns))),
        clock_late_s: object.clock.late_s,
        security: security_state(object.security).into(),
    }
}

fn place(position: Position) -> its::Position {
    its::Position {
        latitude_deg: position.latitude.value(),
        longitude_deg: position.longitude.value(),
        altitude_m: None,
    }
}
