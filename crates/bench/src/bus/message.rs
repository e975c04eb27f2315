//! What a measured message carries, and what is noted when it is taken.
//!
//! ```text
//! octet 0        8         16
//!       | tick   | number  | filling ...
//! ```
//! The tick is when the message should be sent, in nanoseconds of the monotonic clock. Numbers begin at 1; messages of the
//! warm-up have 0. When the publisher really stamped it stands in the message's own time stamp.

use std::hint::black_box;
use std::thread::ThreadId;
use std::time::Duration;

use prost_types::Timestamp;
use viaduct_messages::foxglove::PointCloud;

use crate::floor::nanos;
use crate::sys::{self, ThreadUsage};

/// Octets of the header; no message is shorter.
pub(super) const HEADER_OCTETS: usize = 16;

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) tick_ns: u64,
    /// 0 in the warm-up.
    pub(super) number: u64,
}

impl Header {
    /// Writes it to the front of a message, which has room for it.
    pub(super) fn write(self, message: &mut [u8]) {
        let fields = [self.tick_ns, self.number];
        message.chunks_exact_mut(8).zip(fields).for_each(|(place, field)| place.copy_from_slice(&field.to_le_bytes()));
    }

    pub(super) fn read(message: &[u8]) -> Option<Self> {
        let field = |at: usize| message.get(at..)?.first_chunk().copied().map(u64::from_le_bytes);
        Some(Self { tick_ns: field(0)?, number: field(8)? })
    }
}

/// What a reader noted. It has its memory before the first message, so that noting costs none.
#[derive(Debug)]
pub(super) struct Log {
    /// From the stamp, in nanoseconds.
    pub(super) latencies: Vec<u64>,
    /// From the tick, in nanoseconds.
    pub(super) from_tick: Vec<u64>,
    /// Number and address of each message.
    pub(super) places: Vec<(u64, usize)>,
    pub(super) threads: ThreadCosts,
}

impl Log {
    pub(super) fn with_room_for(samples: usize, when: Note) -> Self {
        Self {
            latencies: room(samples, 1),
            from_tick: room(samples, 1),
            places: room(samples, (1, 1)),
            threads: ThreadCosts::new(when),
        }
    }

    /// Touches both ends of a message, reads the clock, and notes what came of it.
    pub(super) fn take(&mut self, cloud: &PointCloud) {
        let message = black_box(&cloud.data[..]);
        black_box(message.last().copied());
        let (Some(header), Some(stamp)) = (Header::read(message), stamp_of(cloud)) else {
            return;
        };
        let now = nanos(sys::monotonic());
        if header.number > 0 {
            self.latencies.push(now.saturating_sub(stamp));
            self.from_tick.push(now.saturating_sub(header.tick_ns));
            self.places.push((header.number, message.as_ptr().addr()));
            self.threads.note(header.number);
        }
    }
}

/// Stamps a message with a moment of the monotonic clock.
pub(super) fn stamp(cloud: &mut PointCloud, moment: Duration) {
    let (seconds, nanos) = (moment.as_secs().cast_signed(), moment.subsec_nanos().cast_signed());
    cloud.timestamp = Some(Timestamp { seconds, nanos });
}

/// When a message was stamped, in nanoseconds.
pub(super) fn stamp_of(cloud: &PointCloud) -> Option<u64> {
    let Timestamp { seconds, nanos } = cloud.timestamp?;
    Some(u64::try_from(seconds).ok()? * 1_000_000_000 + u64::try_from(nanos).ok()?)
}

/// An empty vector whose memory was written once.
pub(super) fn room<T: Clone>(length: usize, filling: T) -> Vec<T> {
    let mut room = black_box(vec![filling; length]);
    room.clear();
    room
}

/// When a thread's cost is noted, which takes about as long as a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Note {
    /// With every message, so that none needs to be the last.
    Each,
    /// With the first and with that one, where somebody waits behind this thread for the core.
    FirstAnd(u64),
}

/// What the threads that took messages had cost at their first and at their last one.
#[derive(Debug)]
pub(super) struct ThreadCosts {
    when: Note,
    threads: Vec<(ThreadId, ThreadUsage, ThreadUsage)>,
}

impl ThreadCosts {
    pub(super) fn new(when: Note) -> Self {
        // Two threads in a pool; more is allowed and allocates.
        Self { when, threads: Vec::with_capacity(8) }
    }

    /// Notes it with a message of that number, where it is to be noted.
    pub(super) fn note(&mut self, number: u64) {
        match self.when {
            Note::FirstAnd(last) if number != 1 && number != last => return,
            Note::FirstAnd(_) | Note::Each => {}
        }
        let (thread, now) = (std::thread::current().id(), ThreadUsage::now());
        match self.threads.iter_mut().find(|(known, ..)| *known == thread) {
            Some((_, _, last)) => *last = now,
            None => self.threads.push((thread, now, now)),
        }
    }

    /// Of each thread but that one, whose cost is known otherwise.
    pub(super) fn without(&self, other: ThreadId) -> impl Iterator<Item = ThreadUsage> {
        self.threads.iter().filter(move |(thread, ..)| *thread != other).map(|(_, first, last)| last.since(*first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_comes_back_and_one_that_is_cut_off_does_not() {
        let header = Header { tick_ns: 1 << 40, number: 3 };
        let mut message = [0x5A; HEADER_OCTETS + 3];
        header.write(&mut message);
        assert_eq!(Header::read(&message), Some(header));
        assert_eq!(message[HEADER_OCTETS..], [0x5A; 3]);
        assert_eq!(Header::read(&message[..HEADER_OCTETS - 1]), None);
    }

    #[test]
    fn the_warm_up_is_not_noted() {
        let mut log = Log::with_room_for(2, Note::Each);
        let mut place = 0;
        for number in [0, 0, 1] {
            let mut message = vec![0; HEADER_OCTETS];
            Header { tick_ns: 1, number }.write(&mut message);
            let mut cloud = PointCloud { data: message.into(), ..PointCloud::default() };
            stamp(&mut cloud, Duration::from_nanos(5));
            place = cloud.data.as_ptr().addr();
            log.take(&cloud);
        }
        assert_eq!((log.latencies.len(), log.from_tick.len()), (1, 1));
        assert_eq!(log.from_tick[0], log.latencies[0] + 4);
        assert_eq!(log.places, [(1, place)]);
        assert_eq!(log.threads.without(std::thread::current().id()).count(), 0);
    }

    #[test]
    fn a_cost_is_noted_when_it_is_meant_to_be() {
        let cost_of = |when: Note| {
            let mut costs = ThreadCosts::new(when);
            for number in 1..=3 {
                costs.note(number);
                drop(black_box(vec![0_u8; 100]));
            }
            let elsewhere = std::thread::spawn(|| std::thread::current().id()).join().unwrap();
            costs.without(elsewhere).map(|cost| cost.allocations).sum::<u64>()
        };
        assert_eq!([cost_of(Note::Each), cost_of(Note::FirstAnd(3)), cost_of(Note::FirstAnd(2))], [2, 2, 1]);
    }
}
