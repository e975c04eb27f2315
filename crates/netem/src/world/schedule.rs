//! The event queue.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use viaduct_units::Mono;

use super::NodeId;
use crate::limits::{EVENTS_MAX, NODES_MAX};

/// Shortest time between two calls for the same deadline.
pub(super) const TICK: Duration = Duration::from_micros(1);

/// Maximum number of scheduled receptions. The rest of [`EVENTS_MAX`] is for one deadline and one channel access per
/// station.
const RECEPTIONS_MAX: usize = EVENTS_MAX - 2 * NODES_MAX;

/// A scheduled event.
#[derive(Debug)]
pub(super) enum Event {
    /// The deadline of a machine.
    Deadline(NodeId),
    /// The end of a radio's wait for the channel.
    Access(NodeId),
    /// The end of a transmission.
    Sent(NodeId),
    /// The end of a signal at a station.
    Received(Reception),
}

/// A signal that ends at a station.
#[derive(Debug)]
pub(super) struct Reception {
    pub(super) from: NodeId,
    pub(super) to: NodeId,
    /// Number of the signal in the air of `to`.
    pub(super) signal: u64,
    /// `true` if `to` acknowledges the frame.
    pub(super) acknowledges: bool,
    pub(super) frame: Bytes,
}

/// Sort key of an event: time, then order of insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) time: Mono,
    sequence: u64,
}

/// Events in the order of their occurrence.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    events: BTreeMap<Key, Event>,
    sequence: u64,
}

impl Schedule {
    /// Schedules an event of which each station has at most one.
    pub(super) fn push(&mut self, time: Mono, event: Event) -> Key {
        self.sequence += 1;
        let key = Key { time, sequence: self.sequence };
        self.events.insert(key, event);
        key
    }

    /// Schedules an event of which there may be many. Returns `true` if there was room.
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

    /// Returns the next event that is due by the given time, or `None`.
    pub(super) fn pop_until(&mut self, end: Mono) -> Option<(Mono, Event)> {
        let next = self.events.first_entry().filter(|next| next.key().time <= end)?;
        let (key, event) = next.remove_entry();
        Some((key.time, event))
    }
}
