//! Packets in transit.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

use bytes::Bytes;
use viaduct_units::Mono;

use super::Delivery;

/// Packets in transit, in the order of arrival.
///
/// A packet that arrives after all others is appended to a queue, which takes constant time. Only packets that overtake
/// are sorted.
#[derive(Debug, Default)]
pub(super) struct Transit {
    /// Packets that arrive in the order of sending.
    in_order: VecDeque<Travelling>,
    /// Packets that arrive before the last of `in_order`.
    overtaking: BinaryHeap<Reverse<Travelling>>,
    /// Number of packets that entered transit; it orders packets with equal arrival times.
    sequence: u64,
}

/// A packet in transit, ordered by arrival, then by the order of sending.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Travelling {
    arrival: Mono,
    sequence: u64,
    packet: Bytes,
}

impl Transit {
    /// Returns the number of packets.
    pub(super) fn len(&self) -> usize {
        self.in_order.len() + self.overtaking.len()
    }

    pub(super) fn push(&mut self, arrival: Mono, packet: Bytes) {
        self.sequence += 1;
        let travelling = Travelling { arrival, sequence: self.sequence, packet };
        if self.in_order.back().is_none_or(|last| last.arrival <= arrival) {
            self.in_order.push_back(travelling);
        } else {
            self.overtaking.push(Reverse(travelling));
        }
    }

    /// Removes and returns the next packet that has arrived by the given time, or `None`.
    pub(super) fn pop_until(&mut self, now: Mono) -> Option<Delivery> {
        self.next_arrival().filter(|arrival| *arrival <= now)?;
        let next =
            if self.overtakes() { self.overtaking.pop().map(|Reverse(next)| next) } else { self.in_order.pop_front() }?;
        Some(Delivery { due: next.arrival, packet: next.packet })
    }

    /// Returns the arrival time of the next packet, or `None` if there is none.
    pub(super) fn next_arrival(&self) -> Option<Mono> {
        let in_order = self.in_order.front().map(|next| next.arrival);
        let overtaking = self.overtaking.peek().map(|Reverse(next)| next.arrival);
        in_order.into_iter().chain(overtaking).min()
    }

    /// Returns `true` if the next packet to arrive is one of `overtaking`.
    fn overtakes(&self) -> bool {
        match (self.overtaking.peek(), self.in_order.front()) {
            (Some(Reverse(overtaking)), Some(in_order)) => overtaking < in_order,
            (overtaking, _) => overtaking.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use viaduct_units::Rng;

    #[test]
    fn packets_arrive_by_time_and_then_in_the_order_of_sending() {
        let (mut transit, mut random) = (Transit::default(), Rng::new(1));
        let mut expected = Vec::new();
        for number in 0..200_u32 {
            let arrival = Mono(Duration::from_millis(random.below(50) as u64));
            transit.push(arrival, Bytes::from(number.to_be_bytes().to_vec()));
            expected.push((arrival, number));
        }
        expected.sort_unstable();
        for (arrival, number) in expected {
            assert_eq!(transit.next_arrival(), Some(arrival));
            let packet = Bytes::from(number.to_be_bytes().to_vec());
            assert_eq!(transit.pop_until(arrival), Some(Delivery { due: arrival, packet }));
        }
        assert_eq!((transit.next_arrival(), transit.len()), (None, 0));
    }
}
