//! A limit on the rate of reports of an event.

use std::time::Duration;

use crate::Mono;

/// A limiter that admits a fixed number of events per second and counts the rest.
#[derive(Debug)]
pub struct RateLimiter {
    per_second: u32,
    /// Start of the current second; `None` before the first event.
    since: Option<Mono>,
    /// Events admitted in the current second.
    emitted: u32,
    /// Events that were not admitted since the last one that was.
    suppressed: u64,
}

impl RateLimiter {
    /// Returns a limiter that admits so many events per second.
    #[must_use]
    pub const fn new(per_second: u32) -> Self {
        Self { per_second, since: None, emitted: 0, suppressed: 0 }
    }

    /// Admits one event. Returns the number of events that it represents (itself plus those suppressed since the last),
    /// or `None` if the limit is reached.
    #[must_use]
    pub fn admit(&mut self, now: Mono) -> Option<u64> {
        if self.since.is_none_or(|since| now.since(since) >= Duration::from_secs(1)) {
            self.since = Some(now);
            self.emitted = 0;
        }
        if self.emitted >= self.per_second {
            self.suppressed += 1;
            return None;
        }
        self.emitted += 1;
        Some(std::mem::take(&mut self.suppressed) + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_second_admits_some_events_and_counts_the_rest() {
        let mut limiter = RateLimiter::new(2);
        let at = |millis| Mono::default().plus(Duration::from_millis(millis));
        let admitted = [0, 1, 2, 3, 999, 1000].map(|millis| limiter.admit(at(millis)));
        assert_eq!(admitted, [Some(1), Some(1), None, None, None, Some(4)]);
    }
}
