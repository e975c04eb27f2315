//! The bottleneck of a link: its rate, and its queue.

use std::{collections::VecDeque, num::NonZeroU64, sync::Arc, time::Duration};

use viaduct_units::Mono;

use super::{DeliveryTrace, trace::Cursor};
use crate::limits::{LINK_OCTETS_MAX, PACKET_WEIGHT_MIN};

/// Nanoseconds of one second.
const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// The rate limit of a link.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Bottleneck {
    /// No limit: a packet leaves at once.
    #[default]
    None,
    /// A line of a constant rate: a packet leaves when its last bit has been sent.
    Rate {
        /// Rate in bits per second, of packets only: a packet must contain the headers that a real link would add.
        bits_per_second: NonZeroU64,
        /// Capacity of the queue in octets, the packet in transmission included. One packet always has room.
        queue_octets: usize,
    },
    /// Delivery opportunities recorded on a real link, repeated after the last.
    Trace {
        /// The recorded opportunities.
        trace: Arc<DeliveryTrace>,
        /// Capacity of the queue in octets. One packet always has room.
        queue_octets: usize,
    },
}

/// The queue, as departure time and length of each packet. That suffices, since no packet overtakes another.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: VecDeque<(Mono, usize)>,
    /// Octets of `waiting`, each packet counted as at least [`PACKET_WEIGHT_MIN`].
    waiting_octets: usize,
    /// Time at which the last packet will have left.
    busy_until: Mono,
    /// Rounding error of the departure time in nanoseconds times the rate, carried over so that the rate is exact over
    /// many packets.
    remainder: u128,
    /// Position in the trace.
    cursor: Cursor,
}

impl Queue {
    /// Returns the octets in the queue at the given time.
    pub(super) fn octets(&self, now: Mono) -> usize {
        self.waiting.iter().filter(|(leaves, _)| *leaves > now).map(|(_, octets)| *octets).sum()
    }

    /// Enqueues a packet. Returns its departure time, or `None` if there is no room.
    pub(super) fn admit(&mut self, bottleneck: &Bottleneck, now: Mono, octets: usize) -> Option<Mono> {
        self.remove_departed(now);
        let leaves = match bottleneck {
            Bottleneck::None => return Some(now),
            Bottleneck::Rate { queue_octets, .. } | Bottleneck::Trace { queue_octets, .. }
                if !self.has_room(octets, *queue_octets) =>
            {
                return None;
            }
            Bottleneck::Rate { bits_per_second, .. } => self.serialise(now, octets, *bits_per_second),
            Bottleneck::Trace { trace, .. } => self.cursor.take(trace, now, octets),
        };
        self.waiting.push_back((leaves, weight(octets)));
        self.waiting_octets += weight(octets);
        Some(leaves)
    }

    fn has_room(&self, octets: usize, queue_octets: usize) -> bool {
        let most = queue_octets.min(LINK_OCTETS_MAX);
        self.waiting.is_empty() || self.waiting_octets.saturating_add(weight(octets)) <= most
    }

    fn remove_departed(&mut self, now: Mono) {
        while let Some((_, octets)) = self.waiting.pop_front_if(|(leaves, _)| *leaves <= now) {
            self.waiting_octets = self.waiting_octets.saturating_sub(octets);
        }
    }

    /// Returns the time at which the last bit has left.
    fn serialise(&mut self, now: Mono, octets: usize, bits_per_second: NonZeroU64) -> Mono {
        if self.busy_until < now {
            (self.busy_until, self.remainder) = (now, 0);
        }
        let rate = u128::from(bits_per_second.get());
        let scaled = octets as u128 * 8 * NANOS_PER_SECOND + self.remainder;
        self.remainder = scaled % rate;
        let nanos = u64::try_from(scaled / rate).unwrap_or(u64::MAX);
        self.busy_until = self.busy_until.plus(Duration::from_nanos(nanos));
        self.busy_until
    }
}

/// Returns the octets that a packet counts for in the queue.
fn weight(octets: usize) -> usize {
    octets.max(PACKET_WEIGHT_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(bits_per_second: u64, queue_octets: usize) -> Bottleneck {
        Bottleneck::Rate { bits_per_second: NonZeroU64::new(bits_per_second).unwrap(), queue_octets }
    }

    #[test]
    fn the_rate_is_exact_over_many_packets() {
        // A third of a nanosecond a bit: each packet by itself is rounded.
        let line = rate(3_000_000_000, usize::MAX);
        let mut queue = Queue::default();
        let last = (0..30_000).filter_map(|_| queue.admit(&line, Mono::default(), 1250)).last();
        // 30 000 packets of 10 000 bits are 0.1 s.
        assert_eq!(last, Some(Mono(Duration::from_millis(100))));
    }

    #[test]
    fn a_packet_leaves_when_its_last_bit_has_been_sent_and_an_idle_line_saves_nothing_up() {
        let line = rate(8000, 10_000);
        let mut queue = Queue::default();
        assert_eq!(queue.admit(&line, Mono::default(), 100), Some(Mono(Duration::from_millis(100))));
        assert_eq!(queue.admit(&line, Mono::default(), 100), Some(Mono(Duration::from_millis(200))));
        let later = Mono(Duration::from_secs(5));
        assert_eq!(queue.admit(&line, later, 100), Some(later.plus(Duration::from_millis(100))));
    }

    #[test]
    fn the_queue_is_full_at_its_octets() {
        let line = rate(8000, 250);
        let mut queue = Queue::default();
        let admitted: Vec<bool> = (0..3).map(|_| queue.admit(&line, Mono::default(), 100).is_some()).collect();
        assert_eq!(admitted, [true, true, false]);
        assert_eq!(queue.octets(Mono::default()), 200);
        // The first has left: there is room again.
        assert!(queue.admit(&line, Mono(Duration::from_millis(100)), 100).is_some());
        assert_eq!(queue.octets(Mono(Duration::from_millis(100))), 200);
    }

    #[test]
    fn one_packet_always_finds_room_and_empty_ones_are_bounded() {
        let mut queue = Queue::default();
        assert!(queue.admit(&rate(8000, 0), Mono::default(), 1500).is_some());
        let mut queue = Queue::default();
        let line = rate(1, 640);
        queue.admit(&line, Mono::default(), 1);
        assert_eq!((0..100).filter(|_| queue.admit(&line, Mono::default(), 0).is_some()).count(), 9);
    }
}
