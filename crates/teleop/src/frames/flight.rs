//! Datagrams that were sent and whose fate is unknown.

use std::collections::VecDeque;

use viaduct_units::Mono;

use super::delivery::Arrival;
use crate::{limits::FLIGHT_DATAGRAMS_MAX, wire::StreamId};

/// A frame of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FrameKey {
    pub(super) stream: StreamId,
    pub(super) number: u32,
}

/// A datagram in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub(super) sent: Mono,
    /// Frame of the symbol, or `None` for a probe.
    pub(super) frame: Option<FrameKey>,
    /// Octets of this datagram and all before it.
    total: u64,
}

/// The datagrams in flight, in the order of their transmission numbers.
#[derive(Debug, Default)]
pub(super) struct Flight {
    records: VecDeque<Record>,
    /// Transmission number of the first record.
    first: u64,
    /// Octets of all datagrams sent.
    sent: u64,
    /// Octets of all datagrams up to the largest transmission number that has arrived.
    passed: u64,
}

impl Flight {
    /// Adds a datagram with the next transmission number. Returns a record that no longer fits; its datagram counts as
    /// lost.
    pub(super) fn send(&mut self, now: Mono, octets: usize, frame: Option<FrameKey>) -> Option<Record> {
        let displaced = if self.records.len() >= FLIGHT_DATAGRAMS_MAX { self.pop() } else { None };
        self.sent += octets as u64;
        self.records.push_back(Record { sent: now, frame, total: self.sent });
        displaced
    }

    /// Returns the next transmission number.
    pub(super) fn next(&self) -> u64 {
        self.first + self.records.len() as u64
    }

    /// Returns the octets sent after the datagram with the largest transmission number that has arrived.
    pub(super) const fn octets(&self) -> u64 {
        self.sent.saturating_sub(self.passed)
    }

    /// Processes the arrival of a datagram at the given time of the receiver's clock. Returns `None` if its fate was
    /// settled before.
    pub(super) fn arrive(&mut self, transmission: u64, arrived_us: u32) -> Option<Arrival> {
        let index = usize::try_from(transmission.checked_sub(self.first)?).ok()?;
        let record = self.records.get(index)?;
        self.passed = self.passed.max(record.total);
        Some(Arrival { transmission, sent: record.sent, total: record.total, arrived_us })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Returns the time of sending of the first datagram after the largest transmission number that has arrived.
    pub(super) fn first_awaited(&self) -> Option<Mono> {
        let index = self.records.partition_point(|record| record.total <= self.passed);
        self.records.get(index).map(|record| record.sent)
    }

    /// Removes the next datagram whose number is at most `settled`.
    pub(super) fn settle_next(&mut self, settled: u64) -> Option<Record> {
        if self.first <= settled { self.pop() } else { None }
    }

    fn pop(&mut self) -> Option<Record> {
        let record = self.records.pop_front()?;
        self.first += 1;
        // The fate of the datagram is settled, so it is not in a queue.
        self.passed = self.passed.max(record.total);
        Some(record)
    }
}

/// Returns the number nearest to `reference` whose lowest 32 bits are `low`.
pub(crate) fn widen(reference: u64, low: u32) -> u64 {
    let ahead = low.wrapping_sub(reference as u32).cast_signed();
    reference.saturating_add_signed(i64::from(ahead))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrapped_number_widens_to_the_nearest() {
        assert_eq!(widen(10, 12), 12);
        assert_eq!(widen(0x1_0000_0001, u32::MAX), 0xFFFF_FFFF);
        assert_eq!(widen(0xFFFF_FFFF, 3), 0x1_0000_0003);
        assert_eq!(widen(3, u32::MAX), 0, "nothing lies before zero");
    }
}
