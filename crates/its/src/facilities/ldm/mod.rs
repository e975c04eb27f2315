//! Local dynamic map: the currently valid information about the surroundings (EN 302 895 V1.1.1, TR 102 863).
//!
//! An entry is a message or an object that it describes, with sender and subject as its key; a newer entry replaces an
//! older one. An entry is removed when its validity ends, when it is outside the area of maintenance, or when it is
//! evicted. Each change is an event.
//!
//! The map is bounded, and each station has a quota. A full map evicts the entry with the oldest last reception,
//! whatever its validity, so entries that are repeated stay. Own entries are not evicted in favour of others, and
//! another station cannot replace them or use their quota.
//!
//! Not included: registration and authorisation of data providers and consumers (EN 302 895, 5.4.3 and 5.4.4), which
//! the config of a node decides; several maps.

mod clocks;
mod from_message;
mod object;
mod query;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use viaduct_units::{Mono, Now};

pub(super) use self::{
    clocks::StationClocks,
    from_message::{Sender, is_withdrawal, objects_of},
};
pub use self::{
    clocks::{ClockOffset, ClockReport, ClockTolerance},
    from_message::{AWARENESS_VALIDITY, INFRASTRUCTURE_VALIDITY, VAM_VALIDITY},
    object::{LdmKey, LdmObject, LdmSubject},
    query::Query,
};
use crate::{
    geonet::Area,
    limits::{LDM_EVENTS_MAX, LDM_OBJECTS_MAX, LDM_OBJECTS_OF_STATION_MAX},
};

/// A change of the map. A consumer of all changes has the content of the map.
#[derive(Clone, Debug, PartialEq)]
pub enum LdmEvent {
    /// A new object.
    Added(LdmObject),
    /// A newer state of a known object.
    Updated(LdmObject),
    /// An object was removed.
    Removed(LdmKey, LdmRemoval),
    /// All objects from other stations were removed.
    ReceivedForgotten,
}

/// Reason why an object was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LdmRemoval {
    /// The validity of the object has ended.
    Expired,
    /// The object was evicted: it had the oldest last reception of all objects from other stations, or of those of its
    /// station.
    Evicted,
    /// The sender has withdrawn the object.
    Withdrawn,
    /// The object is outside the area of maintenance, which has moved.
    OutsideArea,
}

/// Counters of the map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LdmCounters {
    /// New objects.
    pub added: u64,
    /// Objects that replaced an older state.
    pub updated: u64,
    /// Objects whose validity ended.
    pub expired: u64,
    /// Evicted objects.
    pub evicted: u64,
    /// Objects that their sender withdrew.
    pub withdrawn: u64,
    /// Objects from other stations that were removed because a capture began again.
    pub forgotten: u64,
    /// Objects outside the area of maintenance, on reception or when the area moved.
    pub outside_area: u64,
    /// Objects that were dropped because the map had a newer state.
    pub outdated: u64,
    /// Objects that were dropped because another station sent them under the key of an own object.
    pub own_claimed: u64,
    /// Objects that were dropped because their validity had ended before their reception.
    pub too_late: u64,
    /// Events that were dropped because the queue of events was full.
    pub events_lost: u64,
}

/// An object, and the order of its last reception.
#[derive(Debug)]
struct Known {
    object: LdmObject,
    turn: u64,
}

/// The map of one station.
#[derive(Debug, Default)]
pub struct LocalDynamicMap {
    /// At most [`LDM_OBJECTS_MAX`].
    objects: BTreeMap<LdmKey, Known>,
    /// The same keys, in the order of the ends of their validities.
    by_expiry: BTreeSet<(Mono, LdmKey)>,
    /// Keys of the objects from other stations, in the order of their last reception.
    by_turn: BTreeMap<u64, LdmKey>,
    /// Order of the next reception.
    turn: u64,
    /// Area of maintenance; `None` if it is unlimited.
    area: Option<Area>,
    /// At most [`LDM_EVENTS_MAX`]; the oldest is dropped first.
    events: VecDeque<LdmEvent>,
    counters: LdmCounters,
}

impl LocalDynamicMap {
    /// Creates an empty map without area of maintenance.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> LdmCounters {
        self.counters
    }

    /// Returns the number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Returns `true` if the map has no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Moves the area of maintenance (EN 302 895, 5.3.2) and removes the objects outside of it. Objects without
    /// position stay.
    pub fn set_area(&mut self, area: Area) {
        if self.area.replace(area) == Some(area) {
            return;
        }
        let outside: Vec<LdmKey> =
            self.values().filter(|object| self.is_outside(object)).map(|object| object.key).collect();
        for key in outside {
            self.counters.outside_area += 1;
            self.remove(key, LdmRemoval::OutsideArea);
        }
    }

    /// Inserts an object. It is dropped and counted if its validity has ended, if it is outside the area, if the map
    /// has a newer state, or if another station sent it under the key of an own object.
    pub fn insert(&mut self, now: Now, object: LdmObject) {
        if object.expires <= now.mono {
            self.counters.too_late += 1;
        } else if self.is_outside(&object) {
            self.counters.outside_area += 1;
        } else if self.get(&object.key).is_some_and(|known| known.own && !object.own) {
            self.counters.own_claimed += 1;
        } else if self.get(&object.key).is_some_and(|known| known.own == object.own && known.time > object.time) {
            self.counters.outdated += 1;
        } else {
            self.put(object);
        }
    }

    /// Marks an object as received again without a change. Returns `false` if there is no object with this key.
    pub fn touch(&mut self, key: LdmKey) -> bool {
        let Some(known) = self.objects.get_mut(&key) else {
            return false;
        };
        if self.by_turn.remove(&known.turn).is_some() {
            known.turn = self.turn;
            self.by_turn.insert(known.turn, key);
            self.turn += 1;
        }
        true
    }

    /// Removes an object that its sender has withdrawn (a cancelled event).
    pub fn withdraw(&mut self, key: LdmKey) {
        if self.objects.contains_key(&key) {
            self.counters.withdrawn += 1;
            self.remove(key, LdmRemoval::Withdrawn);
        }
    }

    /// Removes all objects from other stations.
    pub fn forget_received(&mut self) {
        self.queue_event(LdmEvent::ReceivedForgotten);
        for key in std::mem::take(&mut self.by_turn).into_values() {
            if let Some(known) = self.objects.remove(&key) {
                self.unindex(&known, None);
                self.counters.forgotten += 1;
            }
        }
    }

    /// Returns the object with that key, or `None` if there is none.
    #[must_use]
    pub fn get(&self, key: &LdmKey) -> Option<&LdmObject> {
        self.objects.get(key).map(|known| &known.object)
    }

    /// Returns the objects that match the query, in the order of their keys. Visits all objects, at most
    /// [`LDM_OBJECTS_MAX`].
    pub fn query<'a>(&'a self, query: &'a Query) -> impl Iterator<Item = &'a LdmObject> {
        self.values().filter(|object| query.accepts(object))
    }

    /// Removes the objects whose validity has ended.
    pub fn handle_timeout(&mut self, now: Now) {
        while let Some((expires, key)) = self.by_expiry.first().copied() {
            if expires > now.mono {
                break;
            }
            self.counters.expired += 1;
            self.remove(key, LdmRemoval::Expired);
        }
    }

    /// Returns the next end of a validity, or `None` if the map is empty.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Mono> {
        self.by_expiry.first().map(|(expires, _)| *expires)
    }

    /// Returns the next change, or `None` if there is none.
    pub fn poll_event(&mut self) -> Option<LdmEvent> {
        self.events.pop_front()
    }

    fn values(&self) -> impl Iterator<Item = &LdmObject> {
        self.objects.values().map(|known| &known.object)
    }

    fn put(&mut self, object: LdmObject) {
        if !self.objects.contains_key(&object.key) {
            self.enforce_quota(&object);
        }
        let known = Known { object: object.clone(), turn: self.turn };
        self.turn += 1;
        self.index(&known);
        if let Some(before) = self.objects.insert(object.key, known) {
            self.unindex(&before, Some(object.expires));
            self.counters.updated += 1;
            self.queue_event(LdmEvent::Updated(object));
        } else {
            self.counters.added += 1;
            self.queue_event(LdmEvent::Added(object));
            self.make_room();
        }
    }

    fn index(&mut self, known: &Known) {
        let object = &known.object;
        self.by_expiry.insert((object.expires, object.key));
        if !object.own {
            self.by_turn.insert(known.turn, object.key);
        }
    }

    /// Removes an object from the indexes. If its successor has the same end of validity, the key stays in `by_expiry`.
    fn unindex(&mut self, known: &Known, replaced_until: Option<Mono>) {
        let object = &known.object;
        if replaced_until != Some(object.expires) {
            self.by_expiry.remove(&(object.expires, object.key));
        }
        self.by_turn.remove(&known.turn);
    }

    /// Enforces the per-station quota by evicting that station's oldest object. Own objects do not count.
    fn enforce_quota(&mut self, new: &LdmObject) {
        let LdmKey { kind, station_id, .. } = new.key;
        let first = LdmKey { kind, station_id, subject: LdmSubject::Station };
        let is_its = |key: &LdmKey| (key.kind, key.station_id) == (kind, station_id);
        let of_station = || self.objects.range(first..).take_while(|(key, _)| is_its(key));
        let received = || of_station().filter(|(_, known)| !known.object.own);
        if new.own || received().count() < LDM_OBJECTS_OF_STATION_MAX {
            return;
        }
        if let Some(oldest) = received().min_by_key(|(_, known)| known.turn).map(|(key, _)| *key) {
            self.evict(oldest);
        }
    }

    /// Evicts the object with the oldest last reception; if all objects are own ones, the one whose validity ends
    /// first.
    fn make_room(&mut self) {
        while self.objects.len() > LDM_OBJECTS_MAX {
            let of_others = self.by_turn.first_key_value().map(|(_, key)| *key);
            let Some(key) = of_others.or_else(|| self.by_expiry.first().map(|(_, key)| *key)) else {
                return;
            };
            self.evict(key);
        }
    }

    fn evict(&mut self, key: LdmKey) {
        self.counters.evicted += 1;
        self.remove(key, LdmRemoval::Evicted);
    }

    fn remove(&mut self, key: LdmKey, reason: LdmRemoval) {
        if let Some(known) = self.objects.remove(&key) {
            self.unindex(&known, None);
            self.queue_event(LdmEvent::Removed(key, reason));
        }
    }

    fn queue_event(&mut self, event: LdmEvent) {
        if self.events.len() >= LDM_EVENTS_MAX {
            self.events.pop_front();
            self.counters.events_lost += 1;
        }
        self.events.push_back(event);
    }

    fn is_outside(&self, object: &LdmObject) -> bool {
        let Some((area, position)) = self.area.zip(object.position) else {
            return false;
        };
        !area.contains(position)
    }
}
