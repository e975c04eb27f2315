//! Arrival of datagrams at the receiver: losses, order, queueing delay.

use std::{collections::VecDeque, ops::RangeInclusive, time::Duration};

use viaduct_units::Mono;

use super::{flight::widen, receiver::ReceiverDropReason};
use crate::{
    limits::{REORDER_TIME_MAX, REORDER_TRANSMISSIONS_MAX},
    micros,
};

/// Longest run of lost datagrams that counts as random loss. A longer run is an outage.
const RANDOM_RUN_MAX: u64 = 8;
/// Time between two marks.
const MARK_INTERVAL: Duration = Duration::from_micros(250);
/// Time for which a late datagram makes the receiver wait for others.
const REORDER_MEMORY: Duration = Duration::from_secs(10);
/// Time after which the shortest transit time is forgotten, so that it follows changes of the path and of the clocks. It is
/// longer than the time for which the sender remembers its shortest round trip: together they bound the transit time.
const BASE_WINDOW: Duration = Duration::from_secs(10);
/// Number of outages that are remembered.
const OUTAGES_REMEMBERED: usize = 32;
/// Number of words of the window of received transmission numbers.
const SEEN_WORDS: usize = (REORDER_TRANSMISSIONS_MAX / 64) as usize;

/// The arrivals of the sender's datagrams.
#[derive(Debug)]
pub(super) struct Arrivals {
    /// Largest transmission number, and its time of arrival.
    largest: Option<(u64, Mono)>,
    /// Bit of each of the last transmission numbers: `true` if the datagram has arrived.
    seen: Box<[u64; SEEN_WORDS]>,
    pub(super) received: u64,
    pub(super) received_octets: u64,
    pub(super) lost_random: u64,
    pub(super) lost_outage: u64,
    /// Transmission numbers of the latest gaps that were counted as outages, oldest first.
    outages: VecDeque<RangeInclusive<u64>>,
    pub(super) queue_last: Duration,
    /// Shortest queueing delay since the last feedback.
    queue_min: Option<Duration>,
    /// Mean difference of the queueing delays of consecutive datagrams (RFC 3550, 6.4.1).
    pub(super) jitter: Duration,
    base: ShortestTransit,
    reorder: Duration,
    reorder_until: Mono,
    /// Largest transmission number at certain times, oldest first.
    marks: VecDeque<(Mono, u64)>,
    settled: u64,
}

impl Default for Arrivals {
    fn default() -> Self {
        Self {
            largest: None,
            seen: Box::new([0; SEEN_WORDS]),
            received: 0,
            received_octets: 0,
            lost_random: 0,
            lost_outage: 0,
            outages: VecDeque::new(),
            queue_last: Duration::ZERO,
            queue_min: None,
            jitter: Duration::ZERO,
            base: ShortestTransit::default(),
            reorder: Duration::ZERO,
            reorder_until: Mono::default(),
            marks: VecDeque::new(),
            settled: 0,
        }
    }
}

impl Arrivals {
    /// Processes the numbers of a datagram. Returns its queueing delay.
    ///
    /// # Errors
    /// The datagram is a duplicate, or too late to tell.
    pub(super) fn accept(
        &mut self,
        now: Mono,
        transmission: u32,
        sent_us: u32,
        octets: usize,
    ) -> Result<Duration, ReceiverDropReason> {
        let Some((largest, _)) = self.largest else {
            // Not near zero, so that earlier numbers of the same flow exist.
            return Ok(self.enter(now, (1 << 32) | u64::from(transmission), sent_us, octets));
        };
        let transmission = widen(largest, transmission);
        if transmission > largest {
            self.count_gap(largest + 1..=transmission - 1);
            self.clear_between(largest, transmission);
        } else if largest - transmission >= REORDER_TRANSMISSIONS_MAX {
            return Err(ReceiverDropReason::TooLate);
        } else if self.has_seen(transmission) {
            return Err(ReceiverDropReason::DuplicateDatagram);
        } else {
            self.learn_reordering(now, transmission);
        }
        Ok(self.enter(now, transmission, sent_us, octets))
    }

    /// Returns the largest transmission number and its time of arrival, or `None` before the first datagram.
    pub(super) const fn largest(&self) -> Option<(u64, Mono)> {
        self.largest
    }

    /// Returns the transmission number up to which datagrams that have not arrived are lost.
    pub(super) fn settle(&mut self, now: Mono) -> u64 {
        let (largest, at) = self.largest.unwrap_or_default();
        if self.reorder_until < now {
            self.reorder = Duration::ZERO;
        }
        let settled = if now.since(at) >= self.reorder {
            largest
        } else {
            let old = |mark: &&(Mono, u64)| now.since(mark.0) >= self.reorder;
            self.marks.iter().rev().find(old).map_or(0, |(_, largest)| *largest)
        };
        self.settled = self.settled.max(settled);
        self.settled
    }

    /// Returns the shortest queueing delay since the last call, or that of the last datagram.
    pub(super) fn take_queue_min(&mut self) -> Duration {
        self.queue_min.take().unwrap_or(self.queue_last)
    }

    /// Forgets the shortest transit time.
    pub(super) fn forget_base(&mut self) {
        self.base = ShortestTransit::default();
    }

    fn enter(&mut self, now: Mono, transmission: u64, sent_us: u32, octets: usize) -> Duration {
        if self.largest.is_none_or(|(largest, _)| transmission > largest) {
            self.largest = Some((transmission, now));
        }
        self.mark(now);
        if let Some(word) = self.seen.get_mut(word_of(transmission)) {
            *word |= bit_of(transmission);
        }
        self.received += 1;
        self.received_octets += octets as u64;
        let queue = self.base.excess(now, sent_us);
        self.jitter = (15 * self.jitter + queue.abs_diff(self.queue_last)) / 16;
        self.queue_last = queue;
        self.queue_min = Some(self.queue_min.map_or(self.queue_last, |least| least.min(self.queue_last)));
        self.queue_last
    }

    /// Counts a gap of transmission numbers, which may be empty.
    fn count_gap(&mut self, gap: RangeInclusive<u64>) {
        let lost = gap.end() + 1 - gap.start();
        if lost <= RANDOM_RUN_MAX {
            self.lost_random += lost;
            return;
        }
        self.lost_outage += lost;
        if self.outages.len() == OUTAGES_REMEMBERED {
            self.outages.pop_front();
        }
        self.outages.push_back(gap);
    }

    fn has_seen(&self, transmission: u64) -> bool {
        self.seen.get(word_of(transmission)).is_some_and(|word| word & bit_of(transmission) != 0)
    }

    /// Forgets the numbers whose bits are now those of the numbers after `largest`, up to and including `next`.
    fn clear_between(&mut self, largest: u64, next: u64) {
        if next - largest >= REORDER_TRANSMISSIONS_MAX {
            self.seen.fill(0);
            return;
        }
        for number in largest + 1..=next {
            if let Some(word) = self.seen.get_mut(word_of(number)) {
                *word &= !bit_of(number);
            }
        }
    }

    fn mark(&mut self, now: Mono) {
        let Some((largest, _)) = self.largest else { return };
        if self.marks.back().is_none_or(|(time, _)| now.since(*time) >= MARK_INTERVAL) {
            self.marks.push_back((now, largest));
        }
        // Keeps one mark beyond the longest wait.
        while self.marks.get(1).is_some_and(|(time, _)| now.since(*time) > REORDER_TIME_MAX) {
            self.marks.pop_front();
        }
    }

    /// Takes back the loss of a datagram that arrives late, and waits that long for others from now on.
    fn learn_reordering(&mut self, now: Mono, transmission: u64) {
        let of_outage = self.outages.iter().any(|gap| gap.contains(&transmission));
        let counter = if of_outage { &mut self.lost_outage } else { &mut self.lost_random };
        *counter = counter.saturating_sub(1);
        let overtaken = self.marks.iter().find(|(_, largest)| *largest > transmission);
        let late = overtaken.map_or(Duration::ZERO, |(time, _)| now.since(*time));
        self.reorder = self.reorder.max(late + MARK_INTERVAL).min(REORDER_TIME_MAX);
        self.reorder_until = now.plus(REORDER_MEMORY);
    }
}

fn word_of(transmission: u64) -> usize {
    (transmission % REORDER_TRANSMISSIONS_MAX / 64) as usize
}

const fn bit_of(transmission: u64) -> u64 {
    1 << (transmission % 64)
}

/// The shortest transit time within a window. The clocks of sender and receiver differ, so only differences count.
#[derive(Debug, Default)]
struct ShortestTransit {
    /// First transit time, to which all others relate.
    origin: Option<u32>,
    current: i64,
    previous: i64,
    since: Mono,
}

impl ShortestTransit {
    /// Returns how much longer than the shortest one the transit of a datagram is.
    fn excess(&mut self, now: Mono, sent_us: u32) -> Duration {
        let transit = micros::of_clock(now).wrapping_sub(sent_us);
        let origin = *self.origin.get_or_insert_with(|| {
            self.since = now;
            transit
        });
        let relative = i64::from(transit.wrapping_sub(origin).cast_signed());
        if now.since(self.since) >= BASE_WINDOW {
            (self.previous, self.current, self.since) = (self.current, relative, now);
        }
        self.current = self.current.min(relative);
        let excess = relative - self.current.min(self.previous);
        Duration::from_micros(u64::try_from(excess).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Mono {
        Mono(Duration::from_micros(us))
    }

    #[test]
    fn random_losses_and_outages_are_counted_apart() {
        let mut arrivals = Arrivals::default();
        for transmission in [0, 1, 3, 4, 14, 15, 24] {
            arrivals.accept(at(0), transmission, 0, 100).unwrap();
        }
        assert_eq!((arrivals.received, arrivals.received_octets), (7, 700));
        assert_eq!((arrivals.lost_random, arrivals.lost_outage), (1 + 8, 9));
    }

    #[test]
    fn a_duplicate_is_recognised_and_an_overtaken_datagram_is_not_lost() {
        let mut arrivals = Arrivals::default();
        arrivals.accept(at(0), u32::MAX, 0, 1).unwrap();
        arrivals.accept(at(1000), 2, 0, 1).unwrap();
        assert_eq!(arrivals.settle(at(1000)), (2 << 32) + 2);
        arrivals.accept(at(3000), 1, 0, 1).unwrap();
        assert_eq!(arrivals.lost_random, 1);
        assert_eq!(arrivals.accept(at(3000), 1, 0, 1), Err(ReceiverDropReason::DuplicateDatagram));
        assert_eq!(arrivals.accept(at(3000), u32::MAX - 9000, 0, 1), Err(ReceiverDropReason::TooLate));
        // The next datagram may be overtaken by as much.
        arrivals.accept(at(4000), 5, 0, 1).unwrap();
        assert_eq!(arrivals.settle(at(4000)), (2 << 32) + 2);
        assert_eq!(arrivals.settle(at(6250)), (2 << 32) + 5);
        // A datagram shortly after that one has no mark of its own.
        arrivals.accept(at(4100), 6, 0, 1).unwrap();
        assert_eq!(arrivals.settle(at(6350)), (2 << 32) + 6);
    }

    #[test]
    fn the_loss_of_an_overtaken_datagram_is_taken_back_where_it_was_counted() {
        let mut arrivals = Arrivals::default();
        for transmission in [0, 2, 13] {
            arrivals.accept(at(0), transmission, 0, 1).unwrap();
        }
        assert_eq!((arrivals.lost_random, arrivals.lost_outage), (1, 10));
        arrivals.accept(at(100), 5, 0, 1).unwrap();
        assert_eq!((arrivals.lost_random, arrivals.lost_outage), (1, 9));
        arrivals.accept(at(100), 1, 0, 1).unwrap();
        assert_eq!((arrivals.lost_random, arrivals.lost_outage), (0, 9));
    }

    #[test]
    fn the_queueing_delay_is_the_excess_over_the_shortest_transit() {
        let mut arrivals = Arrivals::default();
        // The clocks differ by half their range.
        let sent = |us: u32| us.wrapping_add(1 << 31);
        assert_eq!(arrivals.accept(at(900), 0, sent(0), 1), Ok(Duration::ZERO));
        assert_eq!(arrivals.accept(at(1700), 1, sent(500), 1), Ok(Duration::from_micros(300)));
        assert_eq!(arrivals.accept(at(1800), 2, sent(1000), 1), Ok(Duration::ZERO));
        assert_eq!(arrivals.accept(at(2800), 3, sent(1900), 1), Ok(Duration::from_micros(100)));
        assert_eq!(arrivals.take_queue_min(), Duration::ZERO);
        assert_eq!(arrivals.take_queue_min(), Duration::from_micros(100));
    }
}
