//! A timer that comes again and again.

use std::time::Duration;

use viaduct_units::Mono;

/// A check that is later than this begins the grid anew. Ours: a machine that is not overloaded wakes sooner.
pub(crate) const LATE_MAX: Duration = Duration::from_millis(10);

/// Checks at a fixed interval, on a grid that wake-ups which are a little late do not move, and a distance between the checks that
/// bring something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    interval: Duration,
    /// From what one check brought to the next check.
    least: Duration,
    /// The next check's moment on the grid; `None` while it is stopped.
    due: Option<Mono>,
    /// The last check that brought something: its moment on the grid, and when it woke.
    brought: Option<(Mono, Mono)>,
}

impl Schedule {
    /// A stopped one. An interval below a millisecond counts as one, so that time goes on. `least` is as [`Self::set_least`]
    /// has it.
    pub(crate) fn new(interval: Duration, least: Duration) -> Self {
        Self { interval: interval.max(Duration::from_millis(1)), least, due: None, brought: None }
    }

    /// From the next check on.
    pub(crate) fn set_interval(&mut self, interval: Duration) {
        self.interval = interval.max(Duration::from_millis(1));
    }

    /// No check comes sooner after one that brought something, however late that one woke.
    pub(crate) const fn set_least(&mut self, least: Duration) {
        self.least = least;
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

    /// When the next check is due: at its moment on the grid, or when it is far enough from what the last one brought.
    pub(crate) fn due(&self) -> Option<Mono> {
        let not_before = self.brought.map(|(_, woken)| woken.plus(self.least));
        self.due.map(|due| not_before.map_or(due, |not_before| due.max(not_before)))
    }

    /// The moment on the grid of the check that is due, if one is; the next one is set. Missed ones are not made up for.
    ///
    /// Intervals are counted between these moments, not between wake-ups: of two wake-ups the second is as often less late than
    /// the first as more, and an interval of a whole number of checks would have to wait for one more.
    pub(crate) fn take_due(&mut self, now: Mono) -> Option<Mono> {
        self.due().filter(|due| *due <= now)?;
        let (due, after) = (self.due?, self.brought.map(|(at, _)| at.plus(self.least)));
        // One that was held back stands on the grid as far from the other as it woke.
        let due = after.map_or(due, |after| due.max(after));
        let at = if now.since(due) <= LATE_MAX && now < due.plus(self.interval) { due } else { now };
        self.due = Some(at.plus(self.interval));
        Some(at)
    }

    /// The check of that moment, which woke now, brought something.
    pub(crate) const fn brought(&mut self, at: Mono, now: Mono) {
        self.brought = Some((at, now));
    }
}

/// How much later than asked a real timer wakes, in turn: each second wake-up is less late than the one before.
#[cfg(test)]
pub(crate) const LATENESS: [Duration; 6] = [
    Duration::from_micros(300),
    Duration::from_micros(100),
    Duration::from_millis(9),
    Duration::ZERO,
    Duration::from_micros(1_200),
    Duration::from_micros(1_100),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Mono {
        Mono(Duration::from_millis(millis))
    }

    #[test]
    fn a_late_call_stays_on_the_grid_and_a_missed_one_is_gone() {
        let mut schedule = Schedule::new(Duration::from_millis(100), Duration::ZERO);
        assert_eq!(schedule.take_due(at(0)), None, "not started");
        schedule.start(at(0));
        schedule.start(at(50));
        assert_eq!(schedule.take_due(at(0)), Some(at(0)));
        assert_eq!(schedule.take_due(at(99)), None);
        assert_eq!(schedule.take_due(at(110)), Some(at(100)));
        assert_eq!(schedule.due(), Some(at(200)));
        assert_eq!(schedule.take_due(at(730)), Some(at(730)));
        assert_eq!(schedule.due(), Some(at(830)));
        schedule.stop();
        assert_eq!(schedule.due(), None);
    }

    /// What is due each tenth check is due each second, as late as each wake-up is.
    #[test]
    fn lateness_does_not_add_up() {
        let mut schedule = Schedule::new(Duration::from_millis(100), Duration::ZERO);
        schedule.start(at(0));
        let due: Vec<Mono> = (0..30)
            .zip(LATENESS.into_iter().cycle())
            .filter_map(|(_, late)| schedule.take_due(schedule.due()?.plus(late)))
            .collect();
        assert_eq!(due, (0..30).map(|check| at(check * 100)).collect::<Vec<Mono>>());
    }

    /// What checks bring is never closer together than asked, and no later than a wake-up, though wake-ups are late now more and
    /// now less; nor are their moments, by which intervals are counted.
    #[test]
    fn what_was_brought_late_keeps_the_next_check_away() {
        for (interval, least) in [(100, 100), (95, 100), (100, 250), (20, 100), (100, 1000)] {
            let (interval, least) = (Duration::from_millis(interval), Duration::from_millis(least));
            let mut schedule = Schedule::new(interval, least);
            schedule.start(at(0));
            let mut brought = Vec::new();
            for late in LATENESS.into_iter().cycle().take(60) {
                let now = schedule.due().unwrap().plus(late);
                let at = schedule.take_due(now).unwrap();
                schedule.brought(at, now);
                brought.push((at, now));
            }
            for pair in brought.windows(2) {
                let [moments, wake_ups] = [pair[1].0.since(pair[0].0), pair[1].1.since(pair[0].1)];
                assert!(moments >= least && wake_ups >= least, "{interval:?} {least:?}: {moments:?} {wake_ups:?}");
                assert!(wake_ups <= least + LATENESS[2], "{interval:?} {least:?}: {wake_ups:?}");
            }
        }
    }

    /// A distance that becomes shorter holds at once.
    #[test]
    fn a_shorter_distance_is_not_waited_out() {
        let mut schedule = Schedule::new(Duration::from_millis(100), Duration::from_millis(1000));
        schedule.start(at(0));
        let moment = schedule.take_due(at(0)).unwrap();
        schedule.brought(moment, at(0));
        assert_eq!(schedule.due(), Some(at(1000)));
        schedule.set_least(Duration::from_millis(100));
        assert_eq!(schedule.due(), Some(at(100)));
    }

    /// No two checks are closer together than the interval less [`LATE_MAX`], however late the first one is.
    #[test]
    fn a_check_that_is_very_late_moves_the_grid() {
        let mut schedule = Schedule::new(Duration::from_millis(100), Duration::ZERO);
        schedule.start(at(0));
        assert_eq!(schedule.take_due(at(11)), Some(at(11)));
        assert_eq!(schedule.take_due(at(110)), None);
        assert_eq!(schedule.take_due(at(111)), Some(at(111)));
        let mut quick = Schedule::new(Duration::from_millis(2), Duration::ZERO);
        quick.start(at(0));
        assert_eq!(quick.take_due(at(2)), Some(at(2)), "late by an interval");
    }
}
