//! The local dynamic map, with arbitrary objects of any station at any time.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use viaduct_its::{
    Security,
    facilities::{
        MessageKind,
        ldm::{ClockOffset, LdmEvent, LdmKey, LdmObject, LdmSubject, LocalDynamicMap, Query},
    },
    geonet::{Area, Shape},
    limits::LDM_OBJECTS_MAX,
};
use viaduct_units::{Degrees, Metres, Now, Position, StationId};

use crate::station::start;

/// Octets of a step: its kind, its station, and two values.
const STEP: usize = 5;
/// Time after which every object of an input has expired.
const ALL_EXPIRED: Duration = Duration::from_secs(600);

/// Number of seeds other than the flood, which takes a hundred times as long.
const SHORT_SEEDS: usize = 999;

/// Checks that the map is consistent with its events, never exceeds its limits, and is empty after all objects have
/// expired.
pub fn ldm(octets: &[u8]) {
    let mut world = World { now: start(), map: LocalDynamicMap::new(), state: BTreeMap::new(), lost: 0 };
    for step in octets.chunks_exact(STEP) {
        let &[which, subject, station, a, b] = step else { return };
        world.apply(which, key(subject, station), a, b);
        world.take_events();
    }
    world.map.handle_timeout(world.now.plus(ALL_EXPIRED));
    world.take_events();
    assert!(world.map.is_empty() && world.state.is_empty());
    assert_eq!(world.map.poll_timeout(), None);
}

struct World {
    now: Now,
    map: LocalDynamicMap,
    /// State of the map according to its events.
    state: BTreeMap<LdmKey, LdmObject>,
    /// Number of lost events when the map was last read.
    lost: u64,
}

impl World {
    fn apply(&mut self, which: u8, key: LdmKey, a: u8, b: u8) {
        match which % 9 {
            0..3 => self.map.insert(self.now, object(self.now, key, a, b)),
            3 => self.map.withdraw(key),
            4 => self.map.set_area(area(a, b)),
            5 => self.wait(a),
            6 => self.ask(key, a, b),
            7 => self.burst(key, a, b),
            _ => self.map.forget_received(),
        }
    }

    fn wait(&mut self, after: u8) {
        let end = self.now.plus(Duration::from_millis(20 * u64::from(after)));
        while let Some(due) = self.map.poll_timeout().filter(|due| *due <= end.mono) {
            assert!(due > self.now.mono, "an expired object is still in the map");
            self.now = self.now.plus(due.since(self.now.mono));
            self.map.handle_timeout(self.now);
        }
        self.now = end;
    }

    fn ask(&self, key: LdmKey, a: u8, b: u8) {
        let query = Query {
            kinds: vec![key.kind],
            station_id: (a & 1 == 0).then_some(key.station_id),
            area: (a & 2 == 0).then(|| area(a, b)),
            since: (a & 4 == 0).then_some(self.now.tai),
            only_others: a & 8 == 0,
        };
        let found: Vec<&LdmObject> = self.map.query(&query).collect();
        assert!(found.iter().all(|object| object.key.kind == key.kind && self.map.get(&object.key) == Some(*object)));
    }

    /// Adds as many objects of one station as the last octet. A full map evicts objects.
    fn burst(&mut self, key: LdmKey, a: u8, b: u8) {
        for number in 0..=u16::from(b) {
            let subject = LdmSubject::Object(number);
            self.map.insert(self.now, object(self.now, LdmKey { subject, ..key }, a.max(30), b));
            self.take_events();
        }
    }

    /// Takes the events. A consumer that has missed events reads the map again.
    fn take_events(&mut self) {
        if self.map.counters().events_lost != self.lost {
            self.lost = self.map.counters().events_lost;
            while self.map.poll_event().is_some() {}
            self.state = self.map.query(&Query::default()).map(|object| (object.key, object.clone())).collect();
        }
        while let Some(event) = self.map.poll_event() {
            match event {
                LdmEvent::Added(object) => assert_eq!(self.state.insert(object.key, object), None),
                LdmEvent::Updated(object) => assert!(self.state.insert(object.key, object).is_some()),
                LdmEvent::Removed(key, _) => assert!(self.state.remove(&key).is_some()),
                LdmEvent::ReceivedForgotten => self.state.retain(|_, object| object.own),
            }
        }
        assert_eq!(self.map.len(), self.state.len());
        assert!(self.map.len() <= LDM_OBJECTS_MAX);
    }
}

fn key(subject: u8, station: u8) -> LdmKey {
    let number = u16::from(subject / 3);
    let (kind, subject) = match subject % 3 {
        0 => (MessageKind::Cam, LdmSubject::Station),
        1 => (MessageKind::Denm, LdmSubject::Event(number)),
        _ => (MessageKind::Cpm, LdmSubject::Object(number)),
    };
    LdmKey { kind, station_id: StationId(station.into()), subject }
}

fn object(now: Now, key: LdmKey, validity: u8, b: u8) -> LdmObject {
    LdmObject {
        key,
        own: b & 1 == 0,
        security: Security::Unsecured,
        time: now.tai,
        clock: ClockOffset::default(),
        expires: now.mono.plus(Duration::from_millis(20 * u64::from(validity))),
        position: (b & 2 == 0).then(|| Position::new(45.0 + f64::from(b) / 100.0, 7.5)),
        speed: None,
        heading: None,
        station_type: None,
        payload: Bytes::from_static(&[0; 64]),
    }
}

fn area(a: u8, b: u8) -> Area {
    let centre = Position::new(45.0 + f64::from(a) / 100.0, 7.5);
    let size = Metres(f64::from(b) * 1000.0);
    let shape = match b % 3 {
        0 => Shape::Circle { radius: size },
        1 => Shape::Rectangle { a: size, b: size, azimuth: Degrees(f64::from(a)) },
        _ => Shape::Ellipse { a: size, b: Metres(f64::from(a) * 1000.0), azimuth: Degrees(f64::from(a)) },
    };
    Area { centre, shape }
}

/// Returns the seeds: stations that appear and disappear, a moving area, and a flood of objects.
pub(crate) fn sequences() -> Vec<Vec<u8>> {
    let some: Vec<u8> = (0..24).flat_map(|number| [number, number, number % 7, 40 + number, 3 * number]).collect();
    let short = some.get(..8 * STEP).map(<[u8]>::to_vec).unwrap_or_default();
    let moved: Vec<u8> = (0..10).flat_map(|number| [number % 3, number, 1, 90, number, 4, 0, 0, number, 9]).collect();
    let flood: Vec<u8> = (0..20).flat_map(|station| [7, 2, station, 250, 255]).collect();
    // The flood fills the map.
    let mut sequences: Vec<Vec<u8>> = [some, short, moved].into_iter().cycle().take(SHORT_SEEDS).collect();
    sequences.push(flood);
    sequences
}
