//! The map in virtual time.

use std::time::Duration;

use bytes::Bytes;
use viaduct_units::{Metres, Position, TimestampIts};

use super::*;
use crate::{facilities::MessageKind, geonet::Shape};

fn start() -> Now {
    Now { mono: Mono(Duration::from_secs(100)), tai: TimestampIts(650_000_000_000).tai() }
}

fn after(millis: u64) -> Now {
    start().plus(Duration::from_millis(millis))
}

fn key(station_id: u32) -> LdmKey {
    LdmKey { kind: MessageKind::Cam, station_id, subject: LdmSubject::Station }
}

/// A station that is `north_m` north of the middle; said at `millis`, valid for a second.
fn object(station_id: u32, millis: u64, north_m: f64) -> LdmObject {
    LdmObject {
        key: key(station_id),
        own: false,
        time: after(millis).tai,
        expires: after(millis + 1000).mono,
        position: Some(middle().displaced(Metres(0.0), Metres(north_m))),
        speed: None,
        heading: None,
        station_type: Some(5),
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
    ldm.query(query).map(|object| object.key.station_id).collect()
}

fn removals(ldm: &mut LocalDynamicMap) -> Vec<(u32, LdmRemoval)> {
    std::iter::from_fn(|| ldm.poll_event())
        .filter_map(|event| match event {
            LdmEvent::Removed(key, reason) => Some((key.station_id, reason)),
            _ => None,
        })
        .collect()
}

/// EN 302 895, 5.3.2: what is said anew takes the place of what was known; what is older does not.
#[test]
fn the_newest_is_known() {
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
fn what_is_no_longer_valid_is_forgotten() {
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

/// An update puts the end of the validity off.
#[test]
fn what_is_said_again_stays() {
    let mut ldm = LocalDynamicMap::new();
    (0..50).for_each(|i| ldm.insert(after(i * 100), object(1, i * 100, 0.0)));
    ldm.handle_timeout(after(5000));
    assert_eq!((ldm.len(), ldm.poll_timeout()), (1, Some(after(5900).mono)));
    ldm.handle_timeout(after(5900));
    assert!(ldm.is_empty() && ldm.poll_timeout().is_none());
}

/// EN 302 895, 5.3.2: the map holds what is in its area of maintenance, also when the area moves.
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

/// EN 302 895, 5.4.4: a consumer asks by kind, source, place and time.
#[test]
fn a_query_asks_by_kind_station_area_and_time() {
    let mut ldm = LocalDynamicMap::new();
    for (station_id, north_m) in [(1, 0.0), (2, 50.0), (3, 200.0)] {
        ldm.insert(after(0), object(station_id, u64::from(station_id) * 10, north_m));
    }
    let perceived = LdmKey { kind: MessageKind::Cpm, station_id: 9, subject: LdmSubject::Object(4) };
    ldm.insert(after(0), LdmObject { key: perceived, own: true, ..object(9, 0, 10.0) });
    ldm.insert(after(0), LdmObject { position: None, ..object(5, 0, 0.0) });

    let all = Query::default();
    assert_eq!(found(&ldm, &all), [1, 2, 3, 5, 9]);
    assert_eq!(found(&ldm, &Query { kinds: vec![MessageKind::Cpm], ..all.clone() }), [9]);
    assert_eq!(found(&ldm, &Query { station_id: Some(2), ..all.clone() }), [2]);
    assert_eq!(found(&ldm, &Query { area: Some(circle(100.0)), ..all.clone() }), [1, 2, 9]);
    assert_eq!(found(&ldm, &Query { since: Some(after(20).tai), ..all.clone() }), [2, 3]);
    assert_eq!(found(&ldm, &Query { only_others: true, ..all }), [1, 2, 3, 5]);
}

/// EN 302 895, 5.3.2: what its source withdraws is no longer known.
#[test]
fn what_is_withdrawn_is_forgotten() {
    let mut ldm = LocalDynamicMap::new();
    ldm.insert(after(0), object(1, 0, 0.0));
    ldm.withdraw(key(1));
    ldm.withdraw(key(1));
    assert_eq!((ldm.len(), ldm.counters().withdrawn, ldm.poll_timeout()), (0, 1, None));
    assert_eq!(removals(&mut ldm), [(1, LdmRemoval::Withdrawn)]);
}

/// The map and its events are bounded; who would end first makes room.
#[test]
fn a_full_map_forgets_what_would_end_first() {
    let mut ldm = LocalDynamicMap::new();
    let count = u32::try_from(LDM_OBJECTS_MAX).unwrap();
    for station_id in 0..count + 10 {
        // The later the number, the sooner the end.
        ldm.insert(
            after(0),
            LdmObject { expires: after(1_000_000 - u64::from(station_id)).mono, ..object(station_id, 0, 0.0) },
        );
    }
    assert_eq!((ldm.len(), ldm.counters().evicted), (LDM_OBJECTS_MAX, 10));
    assert!(ldm.get(&key(count - 2)).is_some() && ldm.get(&key(count + 9)).is_none());
    let taken = std::iter::from_fn(|| ldm.poll_event()).count();
    assert_eq!(taken, LDM_EVENTS_MAX);
    assert!(ldm.counters().events_lost > 0);
}
