//! The deadline of a publisher or subscriber at one topic: the number of periods without a sample.
//!
//! Publishers record samples and must not wait; the QoS monitor checks for misses. Both use atomics only.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use viaduct_units::Mono;

/// Counts periods without a sample, starting at the first sample.
#[derive(Debug)]
pub(crate) struct Deadline {
    period_nanos: u64,
    /// Time of the last sample; 0 before the first.
    last: AtomicU64,
    /// Periods missed between samples that were recorded.
    missed_in_gaps: AtomicU64,
    /// Misses that the QoS monitor has reported.
    reported: AtomicU64,
    /// Highest count that was returned: the count never decreases.
    returned: AtomicU64,
}

impl Deadline {
    pub(crate) fn new(period: Duration) -> Self {
        Self {
            period_nanos: nanos(period).max(1),
            last: AtomicU64::new(0),
            missed_in_gaps: AtomicU64::new(0),
            reported: AtomicU64::new(0),
            returned: AtomicU64::new(0),
        }
    }

    /// Records a sample. Returns `true` if it is the first, after which the QoS monitor must check.
    pub(crate) fn record_sample(&self, now: Mono) -> bool {
        let now = stamp(now);
        // A delayed publisher may record an earlier time than another one has recorded.
        let before = self.last.fetch_max(now, Ordering::AcqRel);
        if before == 0 {
            return true;
        }
        let missed = self.missed_within(now.saturating_sub(before));
        if missed > 0 {
            self.missed_in_gaps.fetch_add(missed, Ordering::AcqRel);
        }
        false
    }

    /// Returns the number of missed periods that were not reported yet, and marks them reported.
    pub(crate) fn take_missed(&self, now: Mono) -> u64 {
        let missed = self.missed(now);
        missed.saturating_sub(self.reported.fetch_max(missed, Ordering::Relaxed))
    }

    /// Returns the number of periods missed until now.
    pub(crate) fn missed(&self, now: Mono) -> u64 {
        let missed = self.count(now);
        // A sample that is being recorded has closed its gap but not counted it yet.
        missed.max(self.returned.fetch_max(missed, Ordering::Relaxed))
    }

    fn count(&self, now: Mono) -> u64 {
        loop {
            let last = self.last.load(Ordering::Acquire);
            let in_gaps = self.missed_in_gaps.load(Ordering::Acquire);
            // A sample recorded in between has closed the gap that would be counted as open.
            if self.last.load(Ordering::Acquire) == last {
                let open = if last == 0 { 0 } else { self.missed_within(stamp(now).saturating_sub(last)) };
                return in_gaps + open;
            }
        }
    }

    /// Returns the time at which the next period is missed without a sample, or `None` before the first sample.
    pub(crate) fn next_miss(&self, now: Mono) -> Option<Mono> {
        let last = self.last.load(Ordering::Acquire);
        if last == 0 {
            return None;
        }
        let missed = self.missed_within(stamp(now).saturating_sub(last));
        let after = self.period_nanos.saturating_mul(missed + 1).saturating_add(1);
        Some(from_stamp(last.saturating_add(after)))
    }

    /// Returns the number of complete periods in `elapsed`. A sample exactly at the end of a period is in time.
    fn missed_within(&self, elapsed: u64) -> u64 {
        elapsed.saturating_sub(1) / self.period_nanos
    }
}

/// Converts a time to a number that is never 0.
pub(crate) fn stamp(moment: Mono) -> u64 {
    nanos(moment.0).saturating_add(1)
}

/// Converts a [`stamp`] back to a time.
pub(crate) fn from_stamp(stamp: u64) -> Mono {
    Mono(Duration::from_nanos(stamp.saturating_sub(1)))
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Mono {
        Mono(Duration::from_millis(millis))
    }

    #[test]
    fn nothing_is_missed_before_the_first_sample() {
        let deadline = Deadline::new(Duration::from_millis(10));
        assert_eq!((deadline.take_missed(at(1000)), deadline.next_miss(at(1000))), (0, None));
        assert!(deadline.record_sample(at(1000)));
        assert!(!deadline.record_sample(at(1010)));
        assert_eq!(deadline.take_missed(at(1020)), 0, "the end of the period is in time");
    }

    #[test]
    fn each_missed_period_counts_once() {
        let deadline = Deadline::new(Duration::from_millis(10));
        deadline.record_sample(at(100));
        assert_eq!(deadline.take_missed(at(111)), 1);
        assert_eq!(deadline.next_miss(at(111)), Some(Mono(Duration::from_nanos(120_000_001))));
        deadline.record_sample(at(145));
        assert_eq!(deadline.take_missed(at(146)), 3, "110, 120, 130 and 140 passed, one was reported");
        deadline.record_sample(at(190));
        deadline.record_sample(at(191));
        assert_eq!((deadline.take_missed(at(192)), deadline.missed(at(192))), (4, 8));
    }

    #[test]
    fn a_sample_recorded_late_does_not_move_the_deadline_back() {
        let deadline = Deadline::new(Duration::from_millis(10));
        deadline.record_sample(at(100));
        deadline.record_sample(at(110));
        deadline.record_sample(at(101));
        assert_eq!(deadline.missed(at(115)), 0, "a sample came at 110");
    }

    #[test]
    fn time_zero_is_a_valid_time() {
        let deadline = Deadline::new(Duration::from_millis(10));
        assert!(deadline.record_sample(at(0)));
        assert_eq!(deadline.next_miss(at(0)), Some(Mono(Duration::from_nanos(10_000_001))));
        assert_eq!(deadline.missed(at(10)), 0);
        assert_eq!(deadline.missed(Mono(Duration::from_nanos(10_000_001))), 1);
    }
}
