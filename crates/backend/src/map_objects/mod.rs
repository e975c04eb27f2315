//! Events and infrastructure that messages describe, by identity.
//!
//! The position of a CAM or VAM is that of its sender. Other messages describe something else, which this module keeps
//! for the resources `/v1/events` and `/v1/infrastructure`:
//!
//! | message | describes | identity | kept until |
//! |---|---|---|---|
//! | DENM | an event | action id | 60 s after its last message, and after its validity unless it was ended |
//! | MAPEM | lanes of an intersection or road segment | region, number | 60 s after its last message |
//! | SPATEM | signals of an intersection | region, number | 2 s after its last message |
//! | IVIM | road signs and their zones | station, number | its `validTo`, else 60 s after its last message |
//!
//! Each table has a limit ([`OBJECTS_MAX`]); when it is full, the object with the oldest message is evicted.

mod event;
mod geometry;
mod intersection;
mod road_information;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use viaduct_its::facilities::Message;
use viaduct_its::facilities::denm::ActionId;
use viaduct_messages::viaduct::its::{MessageType, SecurityState, V2xMessage};
use viaduct_units::Tai;

use crate::decoded;

pub(crate) use event::{Event, EventProperties};
pub(crate) use geometry::Geometry;
pub(crate) use intersection::InfrastructureProperties;

use intersection::{LaneSet, LaneSetId, Signals};
use road_information::{InformationId, RoadInformation};

/// Maximum number of objects of one table.
const OBJECTS_MAX: usize = 512;

/// Maximum size of a message that is read, in bytes. A packet holds at most 1.5 KiB; the limit bounds the memory of the
/// message's geometry.
const PAYLOAD_BYTES_MAX: usize = 8 * 1024;

/// Longest time for which an object is kept without a message about it.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Time for which a signal state is valid: SPATEMs are sent at least once a second.
const SIGNALS_MAX: Duration = Duration::from_secs(2);

/// The events and infrastructure known at present.
#[derive(Debug, Default)]
pub(crate) struct MapObjects {
    events: Table<ActionId, Event>,
    lane_sets: Table<LaneSetId, LaneSet>,
    signals: Table<LaneSetId, Signals>,
    information: Table<InformationId, RoadInformation>,
    skipped: u64,
}

/// Counts of [`MapObjects`] since the start of the node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MapObjectCounts {
    /// Events known at present.
    pub(crate) events: usize,
    /// Intersections, road segments and road information known at present.
    pub(crate) infrastructure: usize,
    /// Objects evicted because a table was full.
    pub(crate) evicted: u64,
    /// Messages whose object was not read: larger than [`PAYLOAD_BYTES_MAX`], or undecodable.
    pub(crate) skipped: u64,
}

/// An object of the infrastructure, which the API shows as a GeoJSON feature.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Infrastructure {
    pub(crate) id: String,
    pub(crate) geometry: Geometry,
    pub(crate) properties: InfrastructureProperties,
}

/// The reception of a message, the shift of its times, and the security of its packet. A replay shifts the times of a capture to
/// the present.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Reception {
    time: Tai,
    shift_ns: i64,
    security: SecurityState,
}

impl MapObjects {
    /// Returns `true` if messages of this type describe an object other than their sender.
    pub(crate) fn describes_object(message: &V2xMessage) -> bool {
        matches!(message.r#type(), MessageType::Denm | MessageType::Ivim | MessageType::Mapem | MessageType::Spatem)
    }

    /// Updates the object that the message describes. A message without a reception time changes nothing.
    pub(crate) fn update(&mut self, message: &V2xMessage) {
        let Some(time) = message.reception() else { return };
        if message.payload.len() > PAYLOAD_BYTES_MAX {
            self.skipped += 1;
            return;
        }
        let Ok(decoded) = decoded::decode(message.edition(), &message.payload) else {
            self.skipped += 1;
            return;
        };
        let sent = decoded.summary(time).generation;
        let shift_ns = match (message.generation(), sent) {
            (Some(shifted), Some(sent)) => shifted.nanos().saturating_sub(sent.nanos()),
            _ => 0,
        };
        self.note(message, &decoded, Reception { time, shift_ns, security: message.security() });
    }

    /// Removes the objects that are no longer valid at `now`.
    pub(crate) fn expire(&mut self, now: Tai) {
        self.events.retain(|event| now < event.kept_until());
        self.lane_sets.retain(|lanes| now < lanes.received().plus(SILENCE_MAX));
        self.signals.retain(|signals| now < signals.received().plus(SIGNALS_MAX));
        self.information.retain(|information| now < information.kept_until());
    }

    /// Returns the events, sorted by identity.
    pub(crate) fn events(&self) -> Vec<(ActionId, Event)> {
        let mut events: Vec<_> = self.events.by_id.iter().map(|(id, event)| (*id, event.clone())).collect();
        events.sort_unstable_by_key(|(id, _)| *id);
        events
    }

    /// Returns the lanes with the signals of `now`, and the road signs, sorted by identity.
    pub(crate) fn infrastructure(&self, now: Tai) -> Vec<Infrastructure> {
        let mut lane_sets: Vec<_> = self.lane_sets.by_id.iter().collect();
        lane_sets.sort_unstable_by_key(|(id, _)| **id);
        let mut objects = Vec::new();
        for (id, lanes) in lane_sets {
            let signals = self.signals.by_id.get(id).filter(|signals| now < signals.received().plus(SIGNALS_MAX));
            lanes.write(*id, signals, &mut objects);
        }
        let mut information: Vec<_> = self.information.by_id.iter().collect();
        information.sort_unstable_by_key(|(id, _)| **id);
        for (id, signs) in information {
            signs.write(*id, &mut objects);
        }
        objects
    }

    /// Returns the present counts.
    pub(crate) fn counts(&self) -> MapObjectCounts {
        MapObjectCounts {
            events: self.events.by_id.len(),
            infrastructure: self.lane_sets.by_id.len() + self.information.by_id.len(),
            evicted: self.events.evicted + self.lane_sets.evicted + self.signals.evicted + self.information.evicted,
            skipped: self.skipped,
        }
    }

    fn note(&mut self, message: &V2xMessage, decoded: &Message, reception: Reception) {
        match decoded {
            Message::Denm(denm) => {
                let (id, event) = event::read(denm, message, reception);
                match self.events.by_id.get_mut(&id) {
                    Some(known) => known.merge(event),
                    None => self.events.insert(id, event),
                }
            }
            Message::Mapem(mapem) => {
                for (id, lanes) in intersection::lane_sets(mapem, message.station_id, reception) {
                    self.lane_sets.insert(id, lanes);
                }
            }
            Message::Spatem(spatem) => {
                for (id, signals) in intersection::signals(spatem, reception) {
                    self.signals.insert(id, signals);
                }
            }
            Message::Ivim(ivim) => {
                let id = road_information::id(ivim, message.station_id);
                if road_information::is_withdrawal(ivim) {
                    self.information.by_id.remove(&id);
                } else {
                    self.information.insert(id, road_information::read(ivim, reception));
                }
            }
            _ => {}
        }
    }
}

/// An object with the time of its newest message.
trait Received {
    fn received(&self) -> Tai;
}

/// Objects by identity, at most [`OBJECTS_MAX`].
#[derive(Debug)]
struct Table<K, V> {
    by_id: HashMap<K, V>,
    evicted: u64,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self { by_id: HashMap::new(), evicted: 0 }
    }
}

impl<K: Copy + Eq + Hash, V: Received> Table<K, V> {
    /// Adds or replaces an object; a full table evicts the one with the oldest message.
    fn insert(&mut self, id: K, object: V) {
        if self.by_id.len() >= OBJECTS_MAX && !self.by_id.contains_key(&id) {
            let oldest = self.by_id.iter().min_by_key(|(_, object)| object.received()).map(|(id, _)| *id);
            if let Some(oldest) = oldest {
                self.by_id.remove(&oldest);
                self.evicted += 1;
            }
        }
        self.by_id.insert(id, object);
    }

    fn retain(&mut self, keep: impl Fn(&V) -> bool) {
        self.by_id.retain(|_, object| keep(object));
    }
}

/// Returns the security of an object that two messages describe: it is unverified if one of them is.
const fn weaker(one: SecurityState, other: SecurityState) -> SecurityState {
    match (one, other) {
        (SecurityState::Unverified, _) | (_, SecurityState::Unverified) => SecurityState::Unverified,
        _ => one,
    }
}

/// Returns the time moved by `shift_ns`.
fn shifted(time: Tai, shift_ns: i64) -> Tai {
    Tai::from_nanos(time.nanos().saturating_add(shift_ns))
}
