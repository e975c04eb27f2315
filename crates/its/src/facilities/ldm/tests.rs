//! The map in virtual time.

use std::time::Duration;

use bytes::Bytes;
use viaduct_units::{Metres, Position, StationId, StationType, TimestampIts};

use super::*;
use crate::{facilities::MessageKind, geonet::Shape, security::Security};

fn start() -> Now {
    Now { mono: Mono(Duration::from_secs(100)), tai: TimestampIts(650_000_000_000).tai() }
}

fn after(millis: u64) -> Now {
    start().plus(Duration::from_millis(millis))
}

fn key(station: u32) -> LdmKey {
    LdmKey { kind: MessageKind::Cam, station_id: StationId(station), subject: LdmSubject::Station }
}

/// Returns a station at `north_m` north of the middle, received at `millis`, valid for 1 s.
fn object(station: u32, millis: u64, north_m: f64) -> LdmObject {
    LdmObject {
        key: key(station),
        own: false,
        security: Security::Unsecured,
        time: after(millis).tai,
        clock: ClockOffset::default(),
        expires: after(millis + 1000).mono,
        position: Some(middle().displaced(Metres(0.0), Metres(north_m))),
        speed: None,
        heading: None,
        station_type: Some(StationType::PASSENGER_CAR),
        payload: Bytes::new(),
    }
}

fn middle() -> Position {
    Position::new(45.0, 7.6)
}

fn circle(radius: f64) -> Area {
    Area { centre: middle(), shape: Shape::Circle { radius: Metres(radius) } }
}

fn found(ldm: &LocalDynamicMap, query: &Query) -> Vec<u32> {
    ldm.query(query).map(|object| object.key.station_id.0).collect()
}

fn removals(ldm: &mut LocalDynamicMap) -> Vec<(u32, LdmRemoval)> {
    std::iter::from_fn(|| ldm.poll_event())
        .filter_map(|event| match event {
            LdmEvent::Removed(key, reason) => Some((key.station_id.0, reason)),
            _ => None,
        })
        .collect()
}

/// EN 302 895, 5.3.2: newer data replaces older data, but not the reverse.
#[test]
fn a_newer_object_replaces_an_older_one() {
    let mut ldm = LocalDynamicMap::new();
    ldm.insert(after(0), object(1, 0, 0.0));
    ldm.insert(after(100), object(1, 100, 5.0));
    ldm.insert(after(110), object(1, 50, 2.0));
    assert_eq!(ldm.get(&key(1)).map(|known| known.time), Some(after(100).tai));
    assert_eq!(ldm.counters(), LdmCounters { added: 1, updated: 1, outdated: 1, ..LdmCounters::default() });
    assert!(matches!(ldm.poll_event(), Some(LdmEvent::Added(_))));
    assert!(matches!(ldm.poll_event(), Some(LdmEvent::Updated(_))));
    assert_eq!(ldm.poll_event(), None);
}

/// EN 302 895, 5.3.2: data whose validity has ended is deleted.
#[test]
fn an_object_is_removed_when_its_validity_ends() {
    let mut ldm = LocalDynamicMap::new();
    ldm.insert(after(0), object(1, 0, 0.0));
    ldm.insert(after(400), object(2, 400, 0.0));
    assert_eq!(ldm.poll_timeout(), Some(after(1000).mono));
    ldm.handle_timeout(after(999));
    assert_eq!(ldm.len(), 2);
    ldm.handle_timeout(after(1000));
    assert_eq!(found(&ldm, &Query::default()), [2]);
    assert_eq!(removals(&mut ldm), [(1, LdmRemoval::Expired)]);
    ldm.insert(after(9000), object(3, 0, 0.0));
    assert_eq!((ldm.len(), ldm.counters().too_late), (1, 1));
}

/// An update extends the validity.
#[test]
fn an_update_extends_the_validity() {
    let mut ldm = LocalDynamicMap::new();
    (0..50).for_each(|i| ldm.insert(after(i * 100), object(1, i * 100, 0.0)));
    ldm.handle_timeout(after(5000));
    assert_eq!((ldm.len(), ldm.poll_timeout()), (1, Some(after(5900).mono)));
    ldm.handle_timeout(after(5900));
    assert!(ldm.is_empty() && ldm.poll_timeout().is_none());
}

/// EN 302 895, 5.3.2: the map contains the objects in its area of maintenance, also if the area moves.
#[test]
fn the_map_keeps_to_its_area() {
    let mut ldm = LocalDynamicMap::new();
    for (station_id, north_m) in [(1, 0.0), (2, 400.0), (3, 900.0)] {
        ldm.insert(after(0), object(station_id, 0, north_m));
    }
    ldm.insert(after(0), LdmObject { position: None, ..object(4, 0, 0.0) });
    ldm.set_area(circle(500.0));
    assert_eq!(found(&ldm, &Query::default()), [1, 2, 4]);
    assert_eq!(removals(&mut ldm), [(3, LdmRemoval::OutsideArea)]);
    ldm.insert(after(0), object(5, 0, 501.0));
    assert_eq!((ldm.len(), ldm.counters().outside_area), (3, 2));
}

/// EN 302 895, 5.4.4: queries by kind, sender, area and time.
#[test]
fn a_query_filters_by_kind_station_area_and_time() {
    let mut ldm = LocalDynamicMap::new();
    for (station_id, north_m) in [(1, 0.0), (2, 50.0), (3, 200.0)] {
        ldm.insert(after(0), object(station_id, u64::from(station_id) * 10, north_m));
    }
    let perceived = LdmKey { kind: MessageKind::Cpm, station_id: StationId(9), subject: LdmSubject::Object(4) };
    ldm.insert(after(0), LdmObject { key: perceived, own: true, ..object(9, 0, 10.0) });
    ldm.insert(after(0), LdmObject { position: None, ..object(5, 0, 0.0) });

    let all = Query::default();
    assert_eq!(found(&ldm, &all), [1, 2, 3, 5, 9]);
    assert_eq!(found(&ldm, &Query { kinds: vec![MessageKind::Cpm], ..all.clone() }), [9]);
    assert_eq!(found(&ldm, &Query { station_id: Some(StationId(2)), ..all.clone() }), [2]);
    assert_eq!(found(&ldm, &Query { area: Some(circle(100.0)), ..all.clone() }), [1, 2, 9]);
    assert_eq!(found(&ldm, &Query { since: Some(after(20).tai), ..all.clone() }), [2, 3]);
    assert_eq!(found(&ldm, &Query { only_others: true, ..all }), [1, 2, 3, 5]);
}

/// EN 302 895, 5.3.2: objects that their sender withdraws are removed.
#[test]
fn a_withdrawn_object_is_removed() {
    let mut ldm = LocalDynamicMap::new();
    ldm.insert(after(0), object(1, 0, 0.0));
    ldm.withdraw(key(1));
    ldm.withdraw(key(1));
    assert_eq!((ldm.len(), ldm.counters().withdrawn, ldm.poll_timeout()), (0, 1, None));
    assert_eq!(removals(&mut ldm), [(1, LdmRemoval::Withdrawn)]);
}

#[test]
fn received_objects_can_be_removed_and_received_again() {
    let mut ldm = LocalDynamicMap::new();
    ldm.insert(after(0), LdmObject { own: true, ..object(1, 0, 0.0) });
    ldm.insert(after(0), object(2, 500, 0.0));
    ldm.forget_received();
    assert_eq!(found(&ldm, &Query::default()), [1]);
    assert_eq!((ldm.counters().forgotten, ldm.poll_timeout()), (1, Some(after(1000).mono)));
    ldm.insert(after(0), object(2, 0, 0.0));
    assert_eq!(found(&ldm, &Query::default()), [1, 2]);
}

/// The map and its events are bounded. The object with the oldest reception is evicted, whatever its validity.
#[test]
fn a_full_map_evicts_the_object_with_the_oldest_reception() {
    let mut ldm = LocalDynamicMap::new();
    let count = u32::try_from(LDM_OBJECTS_MAX).unwrap();
    for station_id in 0..count + 10 {
        // A smaller number has a later end of validity.
        let expires = after(1_000_000 - u64::from(station_id)).mono;
        ldm.insert(after(0), LdmObject { expires, ..object(station_id, 0, 0.0) });
        // This station is received all the time.
        ldm.insert(after(0), object(0, 0, 0.0));
    }
    assert_eq!((ldm.len(), ldm.counters().evicted), (LDM_OBJECTS_MAX, 10));
    assert!(ldm.get(&key(0)).is_some() && ldm.get(&key(count + 9)).is_some());
    assert!((1..=10).all(|station_id| ldm.get(&key(station_id)).is_none()) && ldm.get(&key(11)).is_some());
    let taken = std::iter::from_fn(|| ldm.poll_event()).count();
    assert_eq!(taken, LDM_EVENTS_MAX);
    assert!(ldm.counters().events_lost > 0);
}

/// Returns an event with a validity of a day.
fn event(station: u32, number: u16) -> LdmObject {
    let key = LdmKey { kind: MessageKind::Denm, station_id: StationId(station), subject: LdmSubject::Event(number) };
    LdmObject { key, expires: after(86_400_000).mono, ..object(station, 0, 0.0) }
}

/// A station with too many objects loses only its own.
#[test]
fn a_station_has_a_quota() {
    let mut ldm = LocalDynamicMap::new();
    ldm.insert(after(0), object(1, 0, 0.0));
    ldm.insert(after(0), object(2, 0, 0.0));
    let share = u16::try_from(LDM_OBJECTS_OF_STATION_MAX).unwrap();
    (0..share + 7).for_each(|number| ldm.insert(after(0), event(2, number)));
    assert_eq!((ldm.len(), ldm.counters().evicted), (usize::from(share) + 2, 7));
    assert!((0..7).all(|number| ldm.get(&event(2, number).key).is_none()));
    assert!(ldm.get(&key(1)).is_some() && ldm.get(&key(2)).is_some());
}

/// Events with a validity of a day, of many stations that do not exist, evict neither repeated objects nor own ones.
#[test]
fn forged_events_do_not_evict_repeated_objects() {
    let mut ldm = LocalDynamicMap::new();
    let own = LdmObject { own: true, ..event(7, 1) };
    ldm.insert(after(0), own.clone());
    for second in 0..10 {
        ldm.insert(after(second * 100), object(1, second * 100, 0.0));
        let first = 1000 + u32::try_from(second).unwrap() * 4000;
        (first..first + 4000).for_each(|station_id| ldm.insert(after(0), event(station_id, 0)));
        assert_eq!(found(&ldm, &Query { kinds: vec![MessageKind::Cam], ..Query::default() }), [1]);
    }
    assert_eq!((ldm.len(), ldm.get(&own.key)), (LDM_OBJECTS_MAX, Some(&own)));
}

/// EN 302 895, 5.3.2: other stations neither change nor evict objects of the own station.
#[test]
fn another_station_cannot_replace_own_objects() {
    let mut ldm = LocalDynamicMap::new();
    let own = LdmObject { own: true, ..object(7, 0, 0.0) };
    ldm.insert(after(0), own.clone());
    ldm.insert(after(100), object(7, 100, 50.0));
    assert_eq!((ldm.get(&own.key), ldm.counters().own_claimed), (Some(&own), 1));
    let anew = LdmObject { own: true, ..object(7, 200, 1.0) };
    ldm.insert(after(200), anew.clone());
    assert_eq!(ldm.get(&own.key), Some(&anew));
    let mut claimed = LocalDynamicMap::new();
    claimed.insert(after(100), object(7, 100, 50.0));
    claimed.insert(after(100), own.clone());
    assert_eq!(claimed.get(&own.key), Some(&own), "however late it describes itself to be");
}

/// Objects that others send in the name of the own station have a quota that does not count own objects.
#[test]
fn objects_in_the_name_of_the_own_station_do_not_evict_own_objects() {
    let mut ldm = LocalDynamicMap::new();
    let own: Vec<LdmObject> = (0..300).map(|number| LdmObject { own: true, ..event(7, number) }).collect();
    own.iter().for_each(|object| ldm.insert(after(0), object.clone()));
    (1000..2000).for_each(|number| ldm.insert(after(0), event(7, number)));
    assert!(own.iter().all(|object| ldm.get(&object.key) == Some(object)));
    assert_eq!(ldm.len(), own.len() + LDM_OBJECTS_OF_STATION_MAX);
}

fn message(kind: MessageKind, json: &str) -> Vec<LdmObject> {
    let message = crate::facilities::Message::from_json(kind, json.as_bytes()).unwrap();
    let clocks = StationClocks::new(ClockTolerance::Off);
    let sender = Sender::Other { clocks: &clocks, security: Security::Unsecured };
    objects_of(start(), &message, &Bytes::new(), sender)
}

fn ivim(number: u16, times: &str, status: u8) -> String {
    format!(
        r#"{{"header":{{"protocolVersion":2,"messageId":6,"stationId":77}},"ivi":{{"mandatory":{{
        "serviceProviderId":{{"countryCode":"B480","providerIdentifier":5}},
        "iviIdentificationNumber":{number},{times}"iviStatus":{status}}}}}}}"#
    )
}

/// Information of a road operator has its number as key, until it is withdrawn or its validity ends.
#[test]
fn information_has_its_number_as_key() {
    let found: Vec<LdmObject> = [
        ivim(4, "", 0),
        ivim(5, r#""timeStamp":649990000000,"validTo":650000030000,"#, 0),
        ivim(6, r#""validTo":649999999000,"#, 0),
    ]
    .iter()
    .flat_map(|json| message(MessageKind::Ivim, json))
    .collect();
    let subjects: Vec<LdmSubject> = found.iter().map(|object| object.key.subject).collect();
    assert_eq!(subjects, [4, 5, 6].map(LdmSubject::Information));
    let valid: Vec<Duration> = found.iter().map(|object| object.expires.since(start().mono)).collect();
    assert_eq!(valid, [INFRASTRUCTURE_VALIDITY, Duration::from_secs(30), Duration::ZERO]);
}

/// Information with the status cancellation or negation is withdrawn.
#[test]
fn information_can_be_withdrawn() {
    for (status, taken_back) in [(0, false), (1, false), (2, true), (3, true)] {
        let json = ivim(4, "", status);
        let message = crate::facilities::Message::from_json(MessageKind::Ivim, json.as_bytes()).unwrap();
        assert_eq!(is_withdrawal(&message), taken_back, "{status}");
    }
}

/// Each intersection of a MAPEM is an object with its position. The same intersection has the same number in a SPATEM.
#[test]
fn an_intersection_has_its_number_as_key() {
    let intersection = |id: u16, lat: i32| {
        format!(
            r#"{{"id":{{"id":{id}}},"revision":1,"refPoint":{{"lat":{lat},"long":75000000}},
            "laneSet":[{{"laneID":1,"laneAttributes":{{"directionalUse":"80","sharedWith":"0000",
            "laneType":{{"vehicle":{{"value":"00","length":8}}}}}},"nodeList":{{"nodes":[
            {{"delta":{{"node-XY1":{{"x":1,"y":-1}}}}}},{{"delta":{{"node-XY1":{{"x":0,"y":5}}}}}}]}}}}]}}"#
        )
    };
    let mapem = format!(
        r#"{{"header":{{"protocolVersion":2,"messageId":5,"stationId":78}},"map":{{"msgIssueRevision":0,
        "intersections":[{},{}]}}}}"#,
        intersection(3, 450_000_000),
        intersection(9, 451_000_000)
    );
    let found = message(MessageKind::Mapem, &mapem);
    let known: Vec<_> = found.iter().map(|object| (object.key.subject, object.position)).collect();
    let at = |number, latitude| (LdmSubject::Intersection(number), Some(Position::new(latitude, 7.5)));
    assert_eq!(known, [at(3, 45.0), at(9, 45.1)]);
    assert!(found.iter().all(|object| object.expires == start().mono.plus(INFRASTRUCTURE_VALIDITY)));
    let spatem = r#"{"header":{"protocolVersion":2,"messageId":4,"stationId":79},"spat":{"intersections":[
        {"id":{"id":3},"revision":1,"status":"0000","states":[{"signalGroup":1,"state-time-speed":[
        {"eventState":"stop-And-Remain","timing":{"minEndTime":10}}]}]}]}}"#;
    let found = message(MessageKind::Spatem, spatem);
    assert_eq!(found.iter().map(|object| object.key.subject).collect::<Vec<_>>(), [LdmSubject::Intersection(3)]);
    assert_eq!(found[0].expires, start().mono.plus(AWARENESS_VALIDITY), "lights change");
}
