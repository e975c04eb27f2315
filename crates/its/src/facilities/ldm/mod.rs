//! Local dynamic map: what is known about the surroundings, for as long as it is true (EN 302 895 V1.1.1, TR 102 863).
//!
//! Messages and the objects that they describe are kept under who said them and about what; a newer one takes the place of an
//! older one. Everything ends: by its validity, by leaving the area of maintenance, or by making room. Each change is an event.
//!
//! Others cannot fill the map: each has a share of it, and a full map forgets what was said longest ago, however long that calls
//! itself valid. So what is said again and again stays, and what the own station says stays in any case: nobody else can say it in
//! its name, nor does what others say in that name take its place.
//!
//! What is not here: registration and authorisation of data providers and consumers (EN 302 895, 5.4.3 and 5.4.4), which a node's config
//! decides; several maps.

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

/// How the map changed: a consumer that is told all of them has the map's content.
#[derive(Clone, Debug, PartialEq)]
pub enum LdmEvent {
    /// Something new is known.
    Added(LdmObject),
    /// Something known has been said anew.
    Updated(LdmObject),
    /// Something is no longer known.
    Removed(LdmKey, LdmRemoval),
    /// All that others said is no longer known.
    HeardForgotten,
}

/// Why something is no longer known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LdmRemoval {
    /// Its validity has ended.
    Expired,
    /// It made room: of all that others said, or of all that its station said, it was said longest ago.
    Evicted,
    /// Its source has withdrawn it.
    Withdrawn,
    /// It lies outside the area of maintenance, which has moved.
    OutsideArea,
}

/// What the map has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LdmCounters {
    /// Objects that were new.
    pub added: u64,
    /// Objects that took the place of an older one.
    pub updated: u64,
    /// Objects whose validity ended.
    pub expired: u64,
    /// Objects that made room.
    pub evicted: u64,
    /// Objects that their source withdrew.
    pub withdrawn: u64,
    /// Objects that others had said, when all of that was forgotten.
    pub forgotten: u64,
    /// Objects outside the area of maintenance, on arrival or when it moved.
    pub outside_area: u64,
    /// Objects that said nothing newer than the map had.
    pub outdated: u64,
    /// Objects that somebody else said in the name of the own station, of which the map has what that said itself.
    pub own_claimed: u64,
    /// Objects that were no longer valid on arrival.
    pub too_late: u64,
    /// Events that nobody took in time.
    pub events_lost: u64,
}

/// One thing that the map knows, and when it was said among all others.
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
    /// The same keys, by the end of their validity.
    by_expiry: BTreeSet<(Mono, LdmKey)>,
    /// Keys of what others said, in the order in which they said it last.
    by_turn: BTreeMap<u64, LdmKey>,
    /// Number of the next thing that is said.
    turn: u64,
    /// Area of maintenance; `None` is everywhere.
    area: Option<Area>,
    /// At most [`LDM_EVENTS_MAX`]; the oldest is lost first.
    events: VecDeque<LdmEvent>,
    counters: LdmCounters,
}

impl LocalDynamicMap {
    /// An empty map without area of maintenance.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What the map has counted.
    #[must_use]
    pub const fn counters(&self) -> LdmCounters {
        self.counters
    }

    /// How many objects are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Moves the area of maintenance (EN 302 895, 5.3.2); what lies outside is forgotten. An object without position stays.
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

    /// Takes in what somebody said. What is not newer than the known, no longer valid, outside the area, or said by another station
    /// of what the own one says itself is dropped and counted.
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

    /// What is known under the key has been said again: nothing has changed, but others were said longer ago. Returns whether
    /// something is known under it.
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

    /// Forgets what its source has withdrawn (a cancelled event).
    pub fn withdraw(&mut self, key: LdmKey) {
        if self.objects.contains_key(&key) {
            self.counters.withdrawn += 1;
            self.remove(key, LdmRemoval::Withdrawn);
        }
    }

    /// Forgets what others said.
    pub fn forget_heard(&mut self) {
        self.tell(LdmEvent::HeardForgotten);
        for key in std::mem::take(&mut self.by_turn).into_values() {
            if let Some(known) = self.objects.remove(&key) {
                self.unindex(&known, None);
                self.counters.forgotten += 1;
            }
        }
    }

    /// What is known under the key.
    #[must_use]
    pub fn get(&self, key: &LdmKey) -> Option<&LdmObject> {
        self.objects.get(key).map(|known| &known.object)
    }

    /// What is known and fits the query, in the order of the keys. Looks at each of at most [`LDM_OBJECTS_MAX`] objects.
    pub fn query<'a>(&'a self, query: &'a Query) -> impl Iterator<Item = &'a LdmObject> {
        self.values().filter(|object| query.accepts(object))
    }

    /// Forgets what is no longer valid.
    pub fn handle_timeout(&mut self, now: Now) {
        while let Some((expires, key)) = self.by_expiry.first().copied() {
            if expires > now.mono {
                break;
            }
            self.counters.expired += 1;
            self.remove(key, LdmRemoval::Expired);
        }
    }

    /// When the next validity ends.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Mono> {
        self.by_expiry.first().map(|(expires, _)| *expires)
    }

    /// The next change.
    pub fn poll_event(&mut self) -> Option<LdmEvent> {
        self.events.pop_front()
    }

    fn values(&self) -> impl Iterator<Item = &LdmObject> {
        self.objects.values().map(|known| &known.object)
    }

    fn put(&mut self, object: LdmObject) {
        if !self.objects.contains_key(&object.key) {
            self.keep_share(&object);
        }
        let known = Known { object: object.clone(), turn: self.turn };
        self.turn += 1;
        self.index(&known);
        if let Some(before) = self.objects.insert(object.key, known) {
            self.unindex(&before, Some(object.expires));
            self.counters.updated += 1;
            self.tell(LdmEvent::Updated(object));
        } else {
            self.counters.added += 1;
            self.tell(LdmEvent::Added(object));
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

    /// Takes out what was known; the key stays under the expiry of what took its place.
    fn unindex(&mut self, known: &Known, replaced_until: Option<Mono>) {
        let object = &known.object;
        if replaced_until != Some(object.expires) {
            self.by_expiry.remove(&(object.expires, object.key));
        }
        self.by_turn.remove(&known.turn);
    }

    /// Somebody who says more than its share loses of it what it said longest ago. What the own station said counts for nobody.
    fn keep_share(&mut self, new: &LdmObject) {
        let LdmKey { kind, station_id, .. } = new.key;
        let first = LdmKey { kind, station_id, subject: LdmSubject::Station };
        let is_its = |key: &LdmKey| (key.kind, key.station_id) == (kind, station_id);
        let said = || self.objects.range(first..).take_while(|(key, _)| is_its(key));
        let its = || said().filter(|(_, known)| !known.object.own);
        if new.own || its().count() < LDM_OBJECTS_OF_STATION_MAX {
            return;
        }
        if let Some(oldest) = its().min_by_key(|(_, known)| known.turn).map(|(key, _)| *key) {
            self.evict(oldest);
        }
    }

    /// What others said longest ago goes; where there is nothing but the own, what would end first.
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
            self.tell(LdmEvent::Removed(key, reason));
        }
    }

    fn tell(&mut self, event: LdmEvent) {
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
