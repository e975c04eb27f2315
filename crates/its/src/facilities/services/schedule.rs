//! A periodic timer.

use std::time::Duration;

use viaduct_units::Mono;

/// Longest delay of a check that keeps the grid; a later check starts a new grid. The value is not from a standard:
/// without overload, wake-ups are less late.
pub(crate) const LATE_MAX: Duration = Duration::from_millis(10);

/// Checks at a fixed interval. Late wake-ups do not move the grid of the checks, and checks that produced a message
/// have a minimum distance to the next one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    interval: Duration,
    /// Minimum distance from a check that produced a message to the next check.
    least: Duration,
    /// Time of the next check on the grid; `None` while the timer is stopped.
    due: Option<Mono>,
    /// Last check that produced a message: its time on the grid, and the time of its wake-up.
    note_message: Option<(Mono, Mono)>,
}

impl Schedule {
    /// Creates a stopped timer. An interval below 1 ms is raised to 1 ms. [`Self::set_least`] describes `least`.
    pub(crate) fn new(interval: Duration, least: Duration) -> Self {
        Self { interval: interval.max(Duration::from_millis(1)), least, due: None, note_message: None }
    }

    /// Sets the interval after the next check.
    pub(crate) fn set_interval(&mut self, interval: Duration) {
        self.interval = interval.max(Duration::from_millis(1));
    }

    /// Sets the minimum distance from the wake-up of a check that produced a message to the next check.
    pub(crate) const fn set_least(&mut self, least: Duration) {
        self.least = least;
    }

    /// Starts the timer with an immediate check, if it is stopped.
    pub(crate) const fn start(&mut self, now: Mono) {
        if self.due.is_none() {
            self.due = Some(now);
        }
    }

    pub(crate) const fn stop(&mut self) {
        self.due = None;
    }

    /// Returns the time of the next check: its time on the grid, or the end of the minimum distance if that is later.
    pub(crate) fn due(&self) -> Option<Mono> {
        let not_before = self.note_message.map(|(_, woken)| woken.plus(self.least));
        self.due.map(|due| not_before.map_or(due, |not_before| due.max(not_before)))
    }

    /// Returns the time on the grid of the check that is due, or `None` if none is due. Sets the next check; missed
    /// ones are skipped.
    ///
    /// Intervals between messages are counted between these times, not between wake-ups. Otherwise an interval of a
    /// whole number of checks would often take one check more, because wake-ups are late by different amounts.
    pub(crate) fn take_due(&mut self, now: Mono) -> Option<Mono> {
        self.due().filter(|due| *due <= now)?;
        let due = self.due?;
        let after = self.note_message.map(|(at, _)| at.plus(self.least));
        // A check that was delayed by the minimum distance keeps its distance on the grid.
        let due = after.map_or(due, |after| due.max(after));
        let at = if now.since(due) <= LATE_MAX && now < due.plus(self.interval) { due } else { now };
        self.due = Some(at.plus(self.interval));
        Some(at)
    }

    /// Records that the check at `at`, with a wake-up at `now`, has produced a message.
    pub(crate) const fn note_message(&mut self, at: Mono, now: Mono) {
        self.note_message = Some((at, now));
    }
}

/// Lateness of real wake-ups: every second one is less late than the one before.
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
    fn a_late_call_stays_on_the_grid_and_a_missed_one_is_skipped() {
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

    /// An event that is due every tenth check is due every second, although each wake-up is late.
    #[test]
    fn lateness_does_not_accumulate() {
        let mut schedule = Schedule::new(Duration::from_millis(100), Duration::ZERO);
        schedule.start(at(0));
        let due: Vec<Mono> = (0..30)
            .zip(LATENESS.into_iter().cycle())
            .filter_map(|(_, late)| schedule.take_due(schedule.due()?.plus(late)))
            .collect();
        assert_eq!(due, (0..30).map(|check| at(check * 100)).collect::<Vec<Mono>>());
    }

    /// Messages keep their minimum distance and are late by at most one wake-up, although the lateness of wake-ups
    /// varies. The same is true of their times on the grid.
    #[test]
    fn a_late_message_keeps_its_distance_from_the_next_check() {
        for (interval, least) in [(100, 100), (95, 100), (100, 250), (20, 100), (100, 1000)] {
            let (interval, least) = (Duration::from_millis(interval), Duration::from_millis(least));
            let mut schedule = Schedule::new(interval, least);
            schedule.start(at(0));
            let mut note_message = Vec::new();
            for late in LATENESS.into_iter().cycle().take(60) {
                let now = schedule.due().unwrap().plus(late);
                let at = schedule.take_due(now).unwrap();
                schedule.note_message(at, now);
                note_message.push((at, now));
            }
            for pair in note_message.windows(2) {
                let [moments, wake_ups] = [pair[1].0.since(pair[0].0), pair[1].1.since(pair[0].1)];
                assert!(moments >= least && wake_ups >= least, "{interval:?} {least:?}: {moments:?} {wake_ups:?}");
                assert!(wake_ups <= least + LATENESS[2], "{interval:?} {least:?}: {wake_ups:?}");
            }
        }
    }

    /// A shorter minimum distance takes effect at once.
    #[test]
    fn a_shorter_distance_takes_effect_at_once() {
        let mut schedule = Schedule::new(Duration::from_millis(100), Duration::from_millis(1000));
        schedule.start(at(0));
        let moment = schedule.take_due(at(0)).unwrap();
        schedule.note_message(moment, at(0));
        assert_eq!(schedule.due(), Some(at(1000)));
        schedule.set_least(Duration::from_millis(100));
        assert_eq!(schedule.due(), Some(at(100)));
    }

    /// No two checks are closer together than the interval minus [`LATE_MAX`], however late the first one is.
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
