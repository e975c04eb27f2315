//! Packets that wait, EN 302 636-4-1, clause 8.5 and annexes E.3 and F.3: first in, first out, with a limit in octets.

use std::collections::{BTreeMap, BTreeSet};

use viaduct_units::Mono;

use super::pdu::{PacketId, Pdu, Route};

/// A packet that waits.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) pdu: Pdu,
    pub(super) route: Route,
    /// When its waiting is over: its lifetime's end, or its turn to be sent.
    due: Mono,
}

/// Packets by the order in which they came and by the time at which they are due.
#[derive(Debug)]
pub(super) struct PacketBuffer {
    /// Octets of packets that it takes.
    capacity: usize,
    octets: usize,
    /// Number of the next packet.
    next: u64,
    held: BTreeMap<u64, Held>,
    due: BTreeSet<(Mono, u64)>,
    /// Where the last round of [`Self::round`] ended.
    round_from: u64,
}

impl PacketBuffer {
    pub(super) const fn new(capacity: usize) -> Self {
        Self { capacity, octets: 0, next: 0, held: BTreeMap::new(), due: BTreeSet::new(), round_from: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether a packet is larger than the whole buffer.
    pub(super) const fn is_too_small_for(&self, pdu: &Pdu) -> bool {
        pdu.len() > self.capacity
    }

    /// Whether a packet has room beside those that are there.
    pub(super) const fn has_room_for(&self, pdu: &Pdu) -> bool {
        self.octets.saturating_add(pdu.len()) <= self.capacity
    }

    /// Adds a packet that has room; returns its number.
    pub(super) fn push(&mut self, due: Mono, pdu: Pdu, route: Route) -> u64 {
        let number = self.next;
        self.next += 1;
        self.octets += pdu.len();
        self.due.insert((due, number));
        self.held.insert(number, Held { pdu, route, due });
        number
    }

    pub(super) fn get(&self, number: u64) -> Option<&Held> {
        self.held.get(&number)
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<Held> {
        let held = self.held.remove(&number)?;
        self.due.remove(&(held.due, number));
        self.octets = self.octets.saturating_sub(held.pdu.len());
        Some(held)
    }

    /// Takes out the packet that came first.
    pub(super) fn pop_oldest(&mut self) -> Option<Held> {
        let number = *self.held.first_key_value()?.0;
        self.remove(number)
    }

    /// Takes out a packet that is due.
    pub(super) fn pop_due(&mut self, now: Mono) -> Option<Held> {
        let (due, number) = *self.due.first()?;
        if due <= now { self.remove(number) } else { None }
    }

    /// When the first packet is due.
    pub(super) fn next_due(&self) -> Option<Mono> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Numbers of the next packets to look at, at most that many: the following call goes on where this one ended.
    pub(super) fn round(&mut self, most: usize) -> Vec<u64> {
        let later = self.held.range(self.round_from..);
        let earlier = self.held.range(..self.round_from);
        let numbers: Vec<u64> = later.chain(earlier).map(|(number, _)| *number).take(most).collect();
        self.round_from = numbers.last().map_or(0, |last| last + 1);
        numbers
    }
}

/// Packets that contend with the same packets at other stations.
#[derive(Debug)]
pub(super) struct ContentionBuffer {
    packets: PacketBuffer,
    /// Where a packet is in the buffer.
    numbers: BTreeMap<PacketId, u64>,
}

impl ContentionBuffer {
    pub(super) const fn new(capacity: usize) -> Self {
        Self { packets: PacketBuffer::new(capacity), numbers: BTreeMap::new() }
    }

    pub(super) const fn packets(&self) -> &PacketBuffer {
        &self.packets
    }

    pub(super) fn push(&mut self, due: Mono, pdu: Pdu, route: Route, id: PacketId) {
        let number = self.packets.push(due, pdu, route);
        self.numbers.insert(id, number);
    }

    pub(super) fn pop_oldest(&mut self) -> Option<Held> {
        let held = self.packets.pop_oldest();
        self.forget(held)
    }

    pub(super) fn pop_due(&mut self, now: Mono) -> Option<Held> {
        let held = self.packets.pop_due(now);
        self.forget(held)
    }

    /// Takes out a packet that another station has sent.
    pub(super) fn take(&mut self, id: PacketId) -> Option<Held> {
        let number = self.numbers.remove(&id)?;
        self.packets.remove(number)
    }

    fn forget(&mut self, held: Option<Held>) -> Option<Held> {
        if let Some(id) = held.as_ref().and_then(|held| held.pdu.id) {
            self.numbers.remove(&id);
        }
        held
    }
}
