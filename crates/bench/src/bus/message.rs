//! Content of a measured message, and the record that a subscriber keeps.
//!
//! ```text
//! octet 0        8         16
//!       | tick   | number  | filling ...
//! ```
//! The tick is the scheduled time of sending, in nanoseconds of the monotonic clock. Numbers begin at 1; messages of
//! the warm-up have 0. The publisher's stamp is in the message's own timestamp.

use std::hint::black_box;
use std::thread::ThreadId;
use std::time::Duration;

use prost_types::Timestamp;
use viaduct_messages::foxglove::PointCloud;

use crate::floor::nanos;
use crate::sys::{self, ThreadUsage};

/// Length of the header in bytes, the minimum size of a message.
pub(super) const HEADER_OCTETS: usize = 16;

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) tick_ns: u64,
    /// Number of the message; 0 in the warm-up.
    pub(super) number: u64,
}

impl Header {
    /// Writes the header to the start of a message of at least [`HEADER_OCTETS`].
    pub(super) fn write(self, message: &mut [u8]) {
        let fields = [self.tick_ns, self.number];
        message.chunks_exact_mut(8).zip(fields).for_each(|(place, field)| place.copy_from_slice(&field.to_le_bytes()));
    }

    pub(super) fn read(message: &[u8]) -> Option<Self> {
        let field = |at: usize| message.get(at..)?.first_chunk().copied().map(u64::from_le_bytes);
        Some(Self { tick_ns: field(0)?, number: field(8)? })
    }
}

/// Record of a subscriber. Its memory is allocated before the first message, so that recording allocates nothing.
#[derive(Debug)]
pub(super) struct Log {
    /// Latency from the stamp, in nanoseconds.
    pub(super) latencies: Vec<u64>,
    /// Latency from the tick, in nanoseconds.
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

    /// Touches both ends of a message, reads the clock, and records the latencies.
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

/// Stamps a message with a time of the monotonic clock.
pub(super) fn stamp(cloud: &mut PointCloud, moment: Duration) {
    let (seconds, nanos) = (moment.as_secs().cast_signed(), moment.subsec_nanos().cast_signed());
    cloud.timestamp = Some(Timestamp { seconds, nanos });
}

/// Returns the message's stamp in nanoseconds.
pub(super) fn stamp_of(cloud: &PointCloud) -> Option<u64> {
    let Timestamp { seconds, nanos } = cloud.timestamp?;
    Some(u64::try_from(seconds).ok()? * 1_000_000_000 + u64::try_from(nanos).ok()?)
}

/// Returns an empty vector whose memory was written once.
pub(super) fn room<T: Clone>(length: usize, filling: T) -> Vec<T> {
    let mut room = black_box(vec![filling; length]);
    room.clear();
    room
}

/// Messages at which a thread's cost is recorded. Recording takes about as long as a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Note {
    /// Every message.
    Each,
    /// The first and this message only, because another thread is queued on this core.
    FirstAnd(u64),
}

/// Cost of the subscribers' threads at their first and last message.
#[derive(Debug)]
pub(super) struct ThreadCosts {
    when: Note,
    threads: Vec<(ThreadId, ThreadUsage, ThreadUsage)>,
}

impl ThreadCosts {
    pub(super) fn new(when: Note) -> Self {
        // A pool has two threads; more are possible and allocate.
        Self { when, threads: Vec::with_capacity(8) }
    }

    /// Records the calling thread's cost if `number` is one of the chosen messages.
    pub(super) fn note(&mut self, number: u64) {
        match self.when {
            Note::FirstAnd(last) if number != 1 && number != last => return,
            Note::FirstAnd(_) | Note::Each => {}
        }
        let thread = std::thread::current().id();
        let now = ThreadUsage::now();
        match self.threads.iter_mut().find(|(known, ..)| *known == thread) {
            Some((_, _, last)) => *last = now,
            None => self.threads.push((thread, now, now)),
        }
    }

    /// Returns the cost of each thread except `other`, whose cost is recorded elsewhere.
    pub(super) fn without(&self, other: ThreadId) -> impl Iterator<Item = ThreadUsage> {
        self.threads.iter().filter(move |(thread, ..)| *thread != other).map(|(_, first, last)| last.since(*first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_header_and_rejects_a_truncated_one() {
        let header = Header { tick_ns: 1 << 40, number: 3 };
        let mut message = [0x5A; HEADER_OCTETS + 3];
        header.write(&mut message);
        assert_eq!(Header::read(&message), Some(header));
        assert_eq!(message[HEADER_OCTETS..], [0x5A; 3]);
        assert_eq!(Header::read(&message[..HEADER_OCTETS - 1]), None);
    }

    #[test]
    fn does_not_record_the_warm_up() {
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
    fn records_the_cost_after_the_warm_up() {
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
