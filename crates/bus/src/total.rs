//! A counter and its rate.

use std::sync::atomic::{AtomicU64, Ordering};

/// A count that only grows, with its growth in the last window.
#[derive(Debug, Default)]
pub(crate) struct Total {
    value: AtomicU64,
    at_last_tick: AtomicU64,
    last_second: AtomicU64,
}

impl Total {
    #[inline]
    pub(crate) fn add(&self, count: u64) {
        self.value.fetch_add(count, Ordering::Relaxed);
    }

    /// Counts one more and returns the new count.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.value.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn value(&self) -> u64 {
        self.value.load(Ordering::Relaxed)
    }

    /// Returns the growth per second in the last closed window.
    pub(crate) fn rate_hz(&self) -> f64 {
        f64::from_bits(self.last_second.load(Ordering::Relaxed))
    }

    pub(crate) fn tick(&self, seconds: f64) {
        let value = self.value();
        let grown = value - self.at_last_tick.swap(value, Ordering::Relaxed).min(value);
        self.last_second.store((grown as f64 / seconds).to_bits(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_the_growth_of_the_last_window() {
        let total = Total::default();
        total.add(7);
        total.tick(1.0);
        total.add(10);
        total.tick(2.0);
        assert_eq!(total.rate_hz(), 5.0);
        assert_eq!(total.value(), 17);
    }
}
