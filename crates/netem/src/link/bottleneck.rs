//! The bottleneck of a link: its rate, and its queue.

use std::{collections::VecDeque, num::NonZeroU64, sync::Arc, time::Duration};

use bytes::Bytes;
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
        /// Rate in bits per second, of packets with their headers and the link's overhead.
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

impl Bottleneck {
    /// Returns `true` if packets leave at the same times, although the capacity of the queue may differ.
    fn has_pace_of(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Rate { bits_per_second: one, .. }, Self::Rate { bits_per_second: other, .. }) => one == other,
            (Self::Trace { trace: one, .. }, Self::Trace { trace: other, .. }) => one == other,
            (one, other) => one == other,
        }
    }
}

/// The packets that wait for their departure, and the times at which they leave.
///
/// Departure times are calculated when a packet enters, since no packet overtakes another in the queue.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: VecDeque<Waiting>,
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

/// A packet in the queue.
#[derive(Debug)]
struct Waiting {
    departure: Mono,
    /// Octets with headers and overhead.
    octets: usize,
    packet: Bytes,
}

impl Queue {
    /// Returns an empty queue. A trace begins at the given time.
    pub(super) fn starting_at(now: Mono) -> Self {
        Self { cursor: Cursor::starting_at(now), ..Self::default() }
    }

    /// Returns the octets in the queue at the given time.
    pub(super) fn octets(&self, now: Mono) -> usize {
        self.waiting.iter().filter(|waiting| waiting.departure > now).map(|waiting| weight(waiting.octets)).sum()
    }

    /// Returns the number of packets in the queue.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the departure time of the next packet, or `None` if the queue is empty.
    pub(super) fn next_departure(&self) -> Option<Mono> {
        self.waiting.front().map(|waiting| waiting.departure)
    }

    /// Enqueues a packet of `octets` octets with headers and overhead. Returns `false` if there is no room.
    pub(super) fn admit(&mut self, bottleneck: &Bottleneck, now: Mono, octets: usize, packet: Bytes) -> bool {
        if !self.has_room(bottleneck, octets) {
            return false;
        }
        let departure = self.depart(bottleneck, now, octets);
        self.waiting.push_back(Waiting { departure, octets, packet });
        self.waiting_octets += weight(octets);
        true
    }

    /// Removes and returns the next packet that has left by the given time, with its departure time.
    pub(super) fn pop_departed(&mut self, now: Mono) -> Option<(Mono, Bytes)> {
        let departed = self.waiting.pop_front_if(|waiting| waiting.departure <= now)?;
        self.waiting_octets = self.waiting_octets.saturating_sub(weight(departed.octets));
        Some((departed.departure, departed.packet))
    }

    /// Changes the departure times of all packets to those of another bottleneck, from the given time on.
    ///
    /// All packets stay, even if the new capacity is smaller. From one rate to another, the bits of the first packet that
    /// have been sent stay sent. In every other case its transmission begins again.
    pub(super) fn reschedule(&mut self, before: &Bottleneck, after: &Bottleneck, now: Mono) {
        if before.has_pace_of(after) {
            return;
        }
        let left_of_first = self.left_of_first(before, after, now);
        (self.busy_until, self.remainder, self.cursor) = (now, 0, Cursor::starting_at(now));
        let mut waiting = std::mem::take(&mut self.waiting);
        for (index, packet) in waiting.iter_mut().enumerate() {
            packet.departure = match left_of_first {
                Some(left) if index == 0 => now.plus(left),
                _ => self.depart(after, now, packet.octets),
            };
            self.busy_until = self.busy_until.max(packet.departure);
        }
        self.waiting = waiting;
    }

    /// Returns the time that the rest of the first packet takes at another rate.
    fn left_of_first(&self, before: &Bottleneck, after: &Bottleneck, now: Mono) -> Option<Duration> {
        let Bottleneck::Rate { bits_per_second: before, .. } = before else { return None };
        let Bottleneck::Rate { bits_per_second: after, .. } = after else { return None };
        let left = self.next_departure()?.since(now);
        let nanos = left.as_nanos().saturating_mul(before.get().into()) / u128::from(after.get());
        Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }

    fn has_room(&self, bottleneck: &Bottleneck, octets: usize) -> bool {
        let most = match bottleneck {
            Bottleneck::None => LINK_OCTETS_MAX,
            Bottleneck::Rate { queue_octets, .. } | Bottleneck::Trace { queue_octets, .. } => *queue_octets,
        };
        self.waiting.is_empty() || self.waiting_octets.saturating_add(weight(octets)) <= most
    }

    /// Returns the departure time of a packet that enters now.
    fn depart(&mut self, bottleneck: &Bottleneck, now: Mono, octets: usize) -> Mono {
        match bottleneck {
            Bottleneck::None => now,
            Bottleneck::Rate { bits_per_second, .. } => self.serialise(now, octets, *bits_per_second),
            Bottleneck::Trace { trace, .. } => self.cursor.take(trace, now, octets),
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

    const MS: Duration = Duration::from_millis(1);

    fn rate(bits_per_second: u64, queue_octets: usize) -> Bottleneck {
        Bottleneck::Rate { bits_per_second: NonZeroU64::new(bits_per_second).unwrap(), queue_octets }
    }

    /// Enters a packet of the given size. Returns `true` if there was room.
    fn enter(queue: &mut Queue, line: &Bottleneck, now: Mono, octets: usize) -> bool {
        while queue.pop_departed(now).is_some() {}
        queue.admit(line, now, octets, Bytes::new())
    }

    /// Returns the departure times of all packets.
    fn departures(queue: &Queue) -> Vec<Mono> {
        queue.waiting.iter().map(|waiting| waiting.departure).collect()
    }

    #[test]
    fn the_rate_is_exact_over_many_packets() {
        // A third of a nanosecond a bit: each packet by itself is rounded.
        let line = rate(3_000_000_000, usize::MAX);
        let mut queue = Queue::default();
        assert!((0..30_000).all(|_| enter(&mut queue, &line, Mono::default(), 1250)));
        // 30 000 packets of 10 000 bits are 0.1 s.
        assert_eq!(departures(&queue).last(), Some(&Mono(100 * MS)));
    }

    #[test]
    fn a_packet_leaves_when_its_last_bit_has_been_sent_and_an_idle_line_saves_nothing_up() {
        let line = rate(8000, 10_000);
        let mut queue = Queue::default();
        enter(&mut queue, &line, Mono::default(), 100);
        enter(&mut queue, &line, Mono::default(), 100);
        assert_eq!(departures(&queue), [Mono(100 * MS), Mono(200 * MS)]);
        enter(&mut queue, &line, Mono(5000 * MS), 100);
        assert_eq!(departures(&queue), [Mono(5100 * MS)]);
    }

    #[test]
    fn the_queue_is_full_at_its_octets() {
        let line = rate(8000, 250);
        let mut queue = Queue::default();
        let admitted: Vec<bool> = (0..3).map(|_| enter(&mut queue, &line, Mono::default(), 100)).collect();
        assert_eq!(admitted, [true, true, false]);
        assert_eq!(queue.octets(Mono::default()), 200);
        // The first has left: there is room again.
        assert!(enter(&mut queue, &line, Mono(100 * MS), 100));
        assert_eq!(queue.octets(Mono(100 * MS)), 200);
    }

    #[test]
    fn one_packet_always_finds_room_and_empty_ones_are_bounded() {
        let mut queue = Queue::default();
        assert!(enter(&mut queue, &rate(8000, 0), Mono::default(), 1500));
        let mut queue = Queue::default();
        let line = rate(1, 640);
        enter(&mut queue, &line, Mono::default(), 1);
        assert_eq!((0..100).filter(|_| enter(&mut queue, &line, Mono::default(), 0)).count(), 9);
    }

    #[test]
    fn a_change_of_the_rate_keeps_the_bits_that_have_been_sent() {
        let (slow, fast) = (rate(8000, 10_000), rate(80_000, 0));
        let mut queue = Queue::default();
        (0..3).for_each(|_| assert!(enter(&mut queue, &slow, Mono::default(), 100)));
        // A quarter of the first packet has left: the rest takes 7.5 ms.
        queue.reschedule(&slow, &fast, Mono(25 * MS));
        assert_eq!(departures(&queue), [325, 425, 525].map(|tenths| Mono(MS * tenths / 10)));
        // Of that, 2.5 ms have passed: the other 5 ms are 50 ms.
        queue.reschedule(&fast, &slow, Mono(Duration::from_micros(27_500)));
        assert_eq!(departures(&queue)[0], Mono(Duration::from_micros(77_500)));
        assert_eq!(departures(&queue)[2], Mono(Duration::from_micros(277_500)));
    }

    #[test]
    fn a_change_of_the_capacity_alone_changes_no_departure() {
        let mut queue = Queue::default();
        enter(&mut queue, &rate(8000, 10_000), Mono::default(), 100);
        queue.reschedule(&rate(8000, 10_000), &rate(8000, 0), Mono(25 * MS));
        assert_eq!(departures(&queue), [Mono(100 * MS)]);
    }

    #[test]
    fn a_new_trace_begins_at_the_time_of_the_change() {
        let trace = Arc::new(DeliveryTrace::parse("10\n30\n").unwrap());
        let (line, trace) = (rate(8, 10_000), Bottleneck::Trace { trace, queue_octets: 10_000 });
        let mut queue = Queue::default();
        (0..3).for_each(|_| assert!(enter(&mut queue, &line, Mono::default(), 1500)));
        queue.reschedule(&line, &trace, Mono(1003 * MS));
        assert_eq!(departures(&queue), [1013, 1033, 1043].map(|ms| Mono(MS * ms)));
        queue.reschedule(&trace, &Bottleneck::None, Mono(1020 * MS));
        assert_eq!(departures(&queue), [Mono(1020 * MS); 3]);
    }
}
