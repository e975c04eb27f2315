//! Messages per second by type.

use viaduct_units::Mono;

use crate::cache::TYPES;

/// Growth of the counts over the last tick.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    /// Time and counts of the last tick.
    last: Option<(Mono, [u64; TYPES])>,
    hz: [f64; TYPES],
}

impl Rates {
    /// Ends the window that began with the last tick. A second tick at the same time changes nothing.
    pub(crate) fn tick(&mut self, now: Mono, counts: [u64; TYPES]) {
        if let Some((before, old)) = self.last {
            let seconds = now.since(before).as_secs_f64();
            if seconds <= 0.0 {
                return;
            }
            self.hz = std::array::from_fn(|index| counts[index].saturating_sub(old[index]) as f64 / seconds);
        }
        self.last = Some((now, counts));
    }

    /// Returns messages per second, by type.
    pub(crate) fn hz(&self) -> [f64; TYPES] {
        self.hz
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_rate_is_the_growth_of_the_last_window() {
        let at = |ms| Mono(Duration::from_millis(ms));
        let counts = |count| [count; TYPES];
        let mut rates = Rates::default();
        rates.tick(at(0), counts(5));
        assert_eq!(rates.hz(), [0.0; TYPES], "no window has ended");
        rates.tick(at(2000), counts(25));
        rates.tick(at(2000), counts(26));
        assert_eq!(rates.hz(), [10.0; TYPES]);
    }
}
