//! What services have learnt, as messages that travel on the bus.

use viaduct_its::facilities::den_service::{DenIndication, DenmHead};
use viaduct_its::facilities::ldm::{LdmObject, LdmSubject, LocalDynamicMap, Query};
use viaduct_messages::its::timestamp;
use viaduct_messages::viaduct::its::{self, EventNotice, MapObject, event_notice::Change, map_object::Subject};
use viaduct_units::{Degrees, MetresPerSecond, Now, Position};

use crate::its_station::message::message_type;

/// What has become of an event.
pub(super) fn notice(indication: DenIndication, head: &DenmHead) -> EventNotice {
    let change = match indication {
        DenIndication::New => Change::New,
        DenIndication::Updated => Change::Updated,
        DenIndication::Cancelled => Change::Cancelled,
        DenIndication::Negated => Change::Negated,
    };
    EventNotice {
        change: change.into(),
        originating_station_id: head.action_id.originating_station,
        sequence_number: head.action_id.sequence_number.into(),
        cause: head.cause.map(|cause| cause.code.into()),
        sub_cause: head.cause.map(|cause| cause.sub_code.into()),
        position: head.position.map(place),
        detection_time: Some(timestamp(head.detection)),
        valid_until: Some(timestamp(head.valid_until())),
    }
}

/// All that the map knows.
pub(super) fn map(map: &LocalDynamicMap, now: Now) -> its::LocalDynamicMap {
    let everything = Query::default();
    let objects = map.query(&everything).map(|object| map_object(object, now)).collect();
    its::LocalDynamicMap { time: Some(timestamp(now.tai)), objects }
}

fn map_object(object: &LdmObject, now: Now) -> MapObject {
    MapObject {
        r#type: message_type(object.key.kind).into(),
        station_id: object.key.station_id,
        subject: match object.key.subject {
            LdmSubject::Station => None,
            LdmSubject::Event(number) => Some(Subject::Event(number.into())),
            LdmSubject::Object(id) => Some(Subject::Object(id.into())),
            LdmSubject::Intersection(number) => Some(Subject::Intersection(number.into())),
            LdmSubject::Information(number) => Some(Subject::Information(number.into())),
        },
        own: object.own,
        time: Some(timestamp(object.time)),
        valid_for_s: object.expires.since(now.mono).as_secs_f64(),
        position: object.position.map(place),
        speed_mps: object.speed.map(MetresPerSecond::value),
        heading_deg: object.heading.map(Degrees::value),
        station_type: object.station_type.map(u32::from),
    }
}

fn place(position: Position) -> its::Position {
    its::Position {
        latitude_deg: position.latitude.value(),
        longitude_deg: position.longitude.value(),
        altitude_m: None,
    }
}
