//! What happens when.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use viaduct_units::Mono;

use super::NodeId;
use crate::limits::{EVENTS_MAX, NODES_MAX};

/// The shortest time that passes between two looks at the same deadline.
pub(super) const TICK: Duration = Duration::from_micros(1);

/// Receptions that may be ahead; the rest of [`EVENTS_MAX`] is for one deadline and one turn of each station.
const RECEPTIONS_MAX: usize = EVENTS_MAX - 2 * NODES_MAX;

/// What happens.
#[derive(Debug)]
pub(super) enum Event {
    /// A machine's deadline.
    Deadline(NodeId),
    /// A radio has waited for its turn.
    Access(NodeId),
    /// A transmission is over.
    Sent(NodeId),
    /// A signal has ended at a station.
    Received(Reception),
}

/// A signal that ends at a station.
#[derive(Debug)]
pub(super) struct Reception {
    pub(super) from: NodeId,
    pub(super) to: NodeId,
    /// Its number in the air of `to`.
    pub(super) signal: u64,
    /// Whether `to` acknowledges the frame.
    pub(super) acknowledges: bool,
    pub(super) frame: Bytes,
}

/// Place of an event in the order: by time, then as they were put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) time: Mono,
    sequence: u64,
}

/// Events in the order in which they happen.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    events: BTreeMap<Key, Event>,
    sequence: u64,
}

impl Schedule {
    /// Puts in an event of which a station has at most one at a time.
    pub(super) fn push(&mut self, time: Mono, event: Event) -> Key {
        self.sequence += 1;
        let key = Key { time, sequence: self.sequence };
        self.events.insert(key, event);
        key
    }

    /// Puts in an event of which there may be many; whether there was room for it.
    pub(super) fn push_if_room(&mut self, time: Mono, event: Event) -> bool {
        let has_room = self.events.len() < RECEPTIONS_MAX;
        if has_room {
            self.push(time, event);
        }
        has_room
    }

    pub(super) fn remove(&mut self, key: Key) {
        self.events.remove(&key);
    }

    /// The next event, if it is due at that time.
    pub(super) fn pop_until(&mut self, end: Mono) -> Option<(Mono, Event)> {
        let next = self.events.first_entry().filter(|next| next.key().time <= end)?;
        let (key, event) = next.remove_entry();
        Some((key.time, event))
    }
}
