//! Round trip of datagrams and feedback.

use std::time::Duration;

use viaduct_units::Mono;

/// Time without feedback that is regarded as overdue before the first measurement.
const OVERDUE_INITIAL: Duration = Duration::from_millis(100);
/// Longest queueing delay that is waited for.
const OVERDUE_QUEUE_MAX: Duration = Duration::from_millis(150);
/// Time after which the shortest round trip is forgotten.
const WINDOW: Duration = Duration::from_secs(10);

/// The smoothed round trip, its variation (RFC 6298, 2) and its minimum of the last seconds.
#[derive(Debug, Default)]
pub(crate) struct RoundTrip {
    smoothed: Option<Duration>,
    variation: Duration,
    current: Option<Duration>,
    previous: Option<Duration>,
    since: Mono,
}

impl RoundTrip {
    /// Processes one measurement.
    pub(crate) fn measure(&mut self, now: Mono, sample: Duration) {
        let Some(smoothed) = self.smoothed else {
            (self.smoothed, self.variation) = (Some(sample), sample / 2);
            (self.current, self.since) = (Some(sample), now);
            return;
        };
        self.variation = (3 * self.variation + smoothed.abs_diff(sample)) / 4;
        self.smoothed = Some((7 * smoothed + sample) / 8);
        if now.since(self.since) >= WINDOW / 2 {
            (self.previous, self.current, self.since) = (self.current, None, now);
        }
        self.current = Some(self.current.map_or(sample, |shortest| shortest.min(sample)));
    }

    /// Forgets the shortest round trip, because the path has become longer.
    pub(crate) fn forget_shortest(&mut self) {
        (self.current, self.previous) = (self.smoothed, None);
    }

    pub(crate) const fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    pub(crate) fn shortest(&self) -> Option<Duration> {
        self.current.into_iter().chain(self.previous).min()
    }

    /// Returns the time after which an answer is overdue.
    pub(crate) fn overdue(&self) -> Duration {
        let Some((smoothed, shortest)) = self.smoothed.zip(self.shortest()) else { return OVERDUE_INITIAL };
        (smoothed + 4 * self.variation).min(shortest + OVERDUE_QUEUE_MAX)
    }
}
