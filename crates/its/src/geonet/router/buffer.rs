//! Packet buffers, EN 302 636-4-1, clause 8.5 and annexes E.3 and F.3: first in, first out, with a limit in octets.

use std::collections::{BTreeMap, BTreeSet};

use viaduct_units::Mono;

use super::pdu::{PacketId, Pdu, Route};

/// A stored packet.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) pdu: Pdu,
    pub(super) route: Route,
    /// Time at which the packet expires or is to be sent.
    due: Mono,
}

/// Packets in the order of arrival and in the order of their due times.
#[derive(Debug)]
pub(super) struct PacketBuffer {
    /// Capacity in octets.
    capacity: usize,
    octets: usize,
    /// Number of the next packet.
    next: u64,
    held: BTreeMap<u64, Held>,
    due: BTreeSet<(Mono, u64)>,
    /// Position at which the last call of [`Self::round`] ended.
    round_from: u64,
}

impl PacketBuffer {
    pub(super) const fn new(capacity: usize) -> Self {
        Self { capacity, octets: 0, next: 0, held: BTreeMap::new(), due: BTreeSet::new(), round_from: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// Returns `true` if the packet is larger than the whole buffer.
    pub(super) const fn is_too_small_for(&self, pdu: &Pdu) -> bool {
        pdu.len() > self.capacity
    }

    /// Returns `true` if the buffer has room for the packet.
    pub(super) const fn has_room_for(&self, pdu: &Pdu) -> bool {
        self.octets.saturating_add(pdu.len()) <= self.capacity
    }

    /// Adds a packet, for which there must be room. Returns its number.
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

    /// Removes the oldest packet.
    pub(super) fn pop_oldest(&mut self) -> Option<Held> {
        let number = *self.held.first_key_value()?.0;
        self.remove(number)
    }

    /// Removes a packet that is due.
    pub(super) fn pop_due(&mut self, now: Mono) -> Option<Held> {
        let (due, number) = *self.due.first()?;
        if due <= now { self.remove(number) } else { None }
    }

    /// Returns the earliest due time.
    pub(super) fn next_due(&self) -> Option<Mono> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Returns the numbers of at most `most` packets. Successive calls visit all packets in turn.
    pub(super) fn round(&mut self, most: usize) -> Vec<u64> {
        let later = self.held.range(self.round_from..);
        let earlier = self.held.range(..self.round_from);
        let numbers: Vec<u64> = later.chain(earlier).map(|(number, _)| *number).take(most).collect();
        self.round_from = numbers.last().map_or(0, |last| last + 1);
        numbers
    }
}

/// Packets in contention with the same packets at other stations.
#[derive(Debug)]
pub(super) struct ContentionBuffer {
    packets: PacketBuffer,
    /// Number of each packet in the buffer.
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

    /// Removes a packet that another station has sent.
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
