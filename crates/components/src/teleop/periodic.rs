//! Periodic work of an I/O task.

use std::time::Duration;

use viaduct_units::Mono;

/// Periodic work: the time of the next run, and the time between two runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Periodic {
    due: Mono,
    period: Duration,
}

impl Periodic {
    pub(crate) const fn new(due: Mono, period: Duration) -> Self {
        Self { due, period }
    }

    /// Returns the time of the next run.
    pub(crate) const fn due(&self) -> Mono {
        self.due
    }

    /// Returns `true` if the work is due, and schedules the next run.
    pub(crate) fn is_due(&mut self, now: Mono) -> bool {
        if now < self.due {
            return false;
        }
        // The schedule does not drift, and does not catch up after a pause.
        self.due = self.due.plus(self.period);
        if self.due <= now {
            self.due = now.plus(self.period);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schedule_neither_drifts_nor_catches_up() {
        let at = |ms| Mono(Duration::from_millis(ms));
        let mut work = Periodic::new(at(100), Duration::from_millis(10));
        let done: Vec<bool> = [99, 100, 109, 113, 120, 155, 160, 165].map(|ms| work.is_due(at(ms))).to_vec();
        assert_eq!(done, [false, true, false, true, true, true, false, true]);
    }
}
