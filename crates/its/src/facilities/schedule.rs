//! A timer that comes again and again.

use std::time::Duration;

use viaduct_units::Mono;

/// Checks at a fixed interval, on a grid that late calls do not move.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    interval: Duration,
    /// When the next check is due; `None` while it is stopped.
    due: Option<Mono>,
}

impl Schedule {
    /// A stopped one. An interval below a millisecond counts as one, so that time goes on.
    pub(crate) fn new(interval: Duration) -> Self {
        Self { interval: interval.max(Duration::from_millis(1)), due: None }
    }

    /// From the next check on.
    pub(crate) fn set_interval(&mut self, interval: Duration) {
        self.interval = interval.max(Duration::from_millis(1));
    }

    /// Starts with a check at once, where it is stopped.
    pub(crate) const fn start(&mut self, now: Mono) {
        if self.due.is_none() {
            self.due = Some(now);
        }
    }

    pub(crate) const fn stop(&mut self) {
        self.due = None;
    }

    pub(crate) const fn due(&self) -> Option<Mono> {
        self.due
    }

    /// Whether the check is due; if it is, the next one is set. Missed ones are not made up for.
    pub(crate) fn is_due(&mut self, now: Mono) -> bool {
        let Some(due) = self.due.filter(|due| *due <= now) else {
            return false;
        };
        let next = due.plus(self.interval);
        self.due = Some(if next > now { next } else { now.plus(self.interval) });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Mono {
        Mono(Duration::from_millis(millis))
    }

    #[test]
    fn a_late_call_stays_on_the_grid_and_a_missed_one_is_gone() {
        let mut schedule = Schedule::new(Duration::from_millis(100));
        assert!(!schedule.is_due(at(0)), "not started");
        schedule.start(at(0));
        schedule.start(at(50));
        assert!(schedule.is_due(at(0)));
        assert!(!schedule.is_due(at(99)));
        assert!(schedule.is_due(at(130)));
        assert_eq!(schedule.due(), Some(at(200)));
        assert!(schedule.is_due(at(730)));
        assert_eq!(schedule.due(), Some(at(830)));
        schedule.stop();
        assert_eq!(schedule.due(), None);
    }
}
