//! Behaviour of the cache, compared with a plain list.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use viaduct_messages::its::timestamp;
use viaduct_messages::viaduct::its::{self, MessageType, V2xMessage};
use viaduct_units::{BoundingBox, Tai};

use super::{CacheLimits, Filter, MemoryCache, Query, Rejected, TypeSet};

/// Returns an empty cache that holds all messages of a test.
fn cache() -> MemoryCache {
    MemoryCache::new(CacheLimits::default())
}

/// Returns the time `ms` milliseconds after the start of the tests.
pub(crate) fn time(ms: i64) -> Tai {
    Tai::from_unix_nanos(1_700_000_000_000_000_000 + ms * 1_000_000)
}

/// Returns a received message; `place` is latitude and longitude.
pub(crate) fn message(station: u32, kind: MessageType, time_ms: i64, place: Option<(f64, f64)>) -> V2xMessage {
    V2xMessage {
        r#type: kind.into(),
        station_id: station,
        reception_time: Some(timestamp(time(time_ms))),
        position: place.map(|(latitude_deg, longitude_deg)| its::Position {
            latitude_deg,
            longitude_deg,
            altitude_m: None,
        }),
        payload: vec![0xA5; 200].into(),
        ..Default::default()
    }
}

#[test]
fn rejects_a_message_without_time() {
    let cache = cache();
    let timeless = V2xMessage { reception_time: None, ..message(1, MessageType::Cam, 0, None) };
    assert_eq!(cache.insert(&timeless).unwrap_err(), Rejected::NoReceptionTime);
    assert!(cache.query(&Query { limit: 10, ..everything() }).entries.is_empty());
}

#[test]
fn sorts_messages_that_arrive_out_of_order() {
    let cache = cache();
    for time_ms in [20_000, 1000, 20_000, 7000, 6000] {
        cache.insert(&message(1, MessageType::Cam, time_ms, None)).unwrap();
    }
    let page = cache.query(&Query { limit: 4, ..everything() });
    let found: Vec<_> = page.entries.iter().map(|entry| (entry.reception(), entry.seq())).collect();
    assert_eq!(found, [(time(1000), 2), (time(6000), 5), (time(7000), 4), (time(20_000), 1)]);
    assert!(page.more);
    let rest = cache.query(&Query { after: Some(page.entries[3].cursor()), limit: 1, ..everything() });
    assert_eq!(rest.entries[0].seq(), 3, "equal times keep the order of arrival");
    assert!(!rest.more);
}

#[test]
fn pages_hold_each_message_once_while_others_arrive() {
    let cache = cache();
    for number in 0..500 {
        cache.insert(&message(number % 9, MessageType::Cam, i64::from(number) * 40, None)).unwrap();
    }
    let mut seen = Vec::new();
    let mut query = Query { limit: 7, ..everything() };
    loop {
        let page = cache.query(&query);
        seen.extend(page.entries.iter().map(|entry| entry.seq()));
        let Some(last) = page.entries.last().filter(|_| page.more && seen.len() < 2000) else { break };
        query.after = Some(last.cursor());
        // One message is far behind the listing, and one is ahead of it.
        cache.insert(&message(50, MessageType::Cam, 0, None)).unwrap();
        cache.insert(&message(51, MessageType::Cam, 100_000 - last.seq().cast_signed(), None)).unwrap();
    }
    let unique: BTreeSet<u64> = seen.iter().copied().collect();
    assert_eq!(unique.len(), seen.len(), "none twice");
    assert!((1..=500).all(|seq| unique.contains(&seq)), "none missing");
}

#[test]
fn a_box_across_the_antimeridian_finds_both_sides() {
    let cache = cache();
    for (station, longitude) in [(1, 179.9999), (2, -179.9999), (3, 0.0), (4, 179.9), (5, 180.0), (6, -180.0)] {
        // Enough messages of each station that the search uses an index.
        for time_ms in 0..20 {
            cache.insert(&message(station, MessageType::Cam, time_ms, Some((-17.0, longitude)))).unwrap();
        }
    }
    let bbox = BoundingBox::new(179.9995, -17.0001, -179.9995, -16.9999).unwrap();
    let query = Query { filter: Filter { bbox: Some(bbox), ..Filter::ALL }, limit: 1000, ..everything() };
    let found: BTreeSet<u32> = cache.query(&query).entries.iter().map(|entry| entry.station_id()).collect();
    assert_eq!(found, BTreeSet::from([1, 2, 5, 6]));
    assert_eq!(cache.query(&query).entries.len(), 80);
    assert_eq!(cache.latest(Some(&bbox), TypeSet::ALL).len(), 4);
}

#[test]
fn latest_is_the_newest_with_a_position_of_each_station() {
    let cache = cache();
    let (here, there) = (Some((45.0, 7.0)), Some((46.0, 8.0)));
    for (station, kind, time_ms, place) in [
        (1, MessageType::Cam, 2000, here),
        (1, MessageType::Cam, 1000, there),
        (1, MessageType::Cpm, 3000, there),
        (1, MessageType::Denm, 4000, None),
        (2, MessageType::Cam, 1000, here),
        (3, MessageType::Cam, 1000, None),
    ] {
        cache.insert(&message(station, kind, time_ms, place)).unwrap();
    }
    let latest = |bbox: Option<&BoundingBox>, types| -> Vec<u64> {
        cache.latest(bbox, types).iter().map(|entry| entry.seq()).collect()
    };
    assert_eq!(latest(None, TypeSet::ALL), [3, 5]);
    assert_eq!(latest(None, TypeSet::NONE.with(MessageType::Cam)), [1, 5]);
    let around_here = BoundingBox::new(6.9, 44.9, 7.1, 45.1).unwrap();
    assert_eq!(latest(Some(&around_here), TypeSet::ALL), [5], "station 1 has moved on");
}

#[test]
fn drops_old_messages_and_nothing_else() {
    let cache = cache();
    for second in 0..100 {
        cache.insert(&message(second, MessageType::Cam, i64::from(second) * 1000, Some((45.0, 7.0)))).unwrap();
    }
    let dropped = cache.drop_before(time(50_000));
    assert!((40..=50).contains(&dropped), "{dropped}");
    let page = cache.query(&Query { limit: 1000, ..everything() });
    assert_eq!(page.entries.len() as u64, 100 - dropped);
    assert_eq!(page.entries[0].seq(), dropped + 1);
    assert_eq!(cache.latest(None, TypeSet::ALL).len() as u64, 100 - dropped);
    assert_eq!(cache.drop_before(time(0)), 0);
}

/// Compares random messages and queries with a list that is searched from end to end.
#[test]
fn agrees_with_a_plain_list() {
    let script = (prop::collection::vec(any_message(), 1..250), prop::collection::vec(any_query(), 1..20));
    let mut runner = TestRunner::new(Config { cases: 128, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&script, |(messages, queries)| {
        let cache = cache();
        let mut list = Vec::new();
        for message in &messages {
            list.push(cache.insert(message).unwrap());
        }
        list.sort_by_key(|entry| entry.cursor());
        for query in &queries {
            let expected: Vec<u64> = naive(query, &list).collect();
            let page = cache.query(query);
            let found: Vec<u64> = page.entries.iter().map(|entry| entry.seq()).collect();
            let within = expected.len().min(query.limit);
            prop_assert_eq!(&found, &expected[..within], "{:?}", query);
            prop_assert_eq!(page.more, expected.len() > query.limit);
        }
        Ok(())
    });
    outcome.unwrap();
}

fn naive<'a>(query: &'a Query, list: &'a [std::sync::Arc<super::Entry>]) -> impl Iterator<Item = u64> + 'a {
    let wanted = list.iter().filter(|entry| {
        query.filter.admits(entry)
            && query.from.is_none_or(|from| entry.reception() >= from)
            && query.to.is_none_or(|to| entry.reception() <= to)
            && query.after.is_none_or(|after| entry.cursor() > after)
    });
    wanted.map(|entry| entry.seq())
}

fn any_message() -> impl Strategy<Value = V2xMessage> {
    (0..4_u32, any_kind(), 0..40_000_i64, prop::option::weighted(0.9, any_place()))
        .prop_map(|(station, kind, time_ms, place)| message(station, kind, time_ms / 100 * 100, place))
}

fn any_kind() -> impl Strategy<Value = MessageType> {
    prop::sample::select(vec![MessageType::Cam, MessageType::Cpm, MessageType::Unknown])
}

/// Generates places close enough that boxes of some cells contain some of them, at 7 degrees east and at the antimeridian.
fn any_place() -> impl Strategy<Value = (f64, f64)> {
    let longitude = prop_oneof![7.0..7.02_f64, 179.99..=180.0_f64, -180.0..-179.99_f64];
    (45.0..45.02_f64, longitude)
}

fn any_query() -> impl Strategy<Value = Query> {
    let bbox = (any_place(), any_place()).prop_map(|((south, west), (north, east))| {
        BoundingBox::new(west, south.min(north), east, south.max(north)).unwrap()
    });
    let moment = || prop::option::of((0..40_000_i64).prop_map(time));
    let types = prop::collection::vec(any_kind(), 0..3).prop_map(|kinds| {
        if kinds.is_empty() { TypeSet::ALL } else { kinds.into_iter().fold(TypeSet::NONE, TypeSet::with) }
    });
    let after = prop::option::of((0..400_i64, 0..250_u64))
        .prop_map(|after| after.map(|(tenths, seq)| super::Cursor { reception: time(tenths * 100), seq }));
    (prop::option::of(bbox), prop::option::of(0..5_u32), types, moment(), moment(), after, 1..40_usize).prop_map(
        |(bbox, station, types, from, to, after, limit)| Query {
            filter: Filter { bbox, station, types },
            from,
            to,
            after,
            limit,
        },
    )
}

fn everything() -> Query {
    Query { filter: Filter::ALL, from: None, to: None, after: None, limit: usize::MAX }
}
