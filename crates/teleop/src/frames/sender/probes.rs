//! Times of probes.

use std::time::Duration;

use viaduct_units::Mono;

/// Shortest time without feedback after which a probe is sent, and shortest time between two probes.
pub(super) const INTERVAL_MIN: Duration = Duration::from_millis(3);
/// Time between two probes before the first feedback.
const INTERVAL_INITIAL: Duration = Duration::from_millis(10);
/// Longest time between two probes while frames depend on them.
pub(super) const INTERVAL_MAX: Duration = Duration::from_millis(50);
/// Longest time between two probes otherwise.
const INTERVAL_IDLE_MAX: Duration = Duration::from_millis(200);

/// Number of probes that are sent at once if feedback is overdue.
const PROBES: u8 = 2;

/// The schedule of probes.
#[derive(Debug, Default)]
pub(super) struct ProbeTimer {
    /// Time of the next probe.
    due: Option<Mono>,
    /// Number of probes to send now.
    pending: u8,
    /// Time from these probes to the next one.
    next_after: Duration,
    /// Latest time between two probes.
    interval: Duration,
}

impl ProbeTimer {
    /// Schedules the next probe, or none.
    pub(super) const fn arm(&mut self, due: Option<Mono>) {
        self.due = due;
    }

    pub(super) const fn due(&self) -> Option<Mono> {
        self.due
    }

    /// Sends a probe now, and the next one after the given time.
    pub(super) const fn send_now(&mut self, next_after: Duration) {
        (self.pending, self.next_after) = (1, next_after);
    }

    /// Returns `true` once for each probe that is to be sent now.
    pub(super) fn take_pending(&mut self, now: Mono) -> bool {
        let Some(left) = self.pending.checked_sub(1) else { return false };
        self.pending = left;
        self.due = Some(now.plus(self.next_after));
        true
    }

    /// Returns `true` once if a scheduled probe is due.
    pub(super) fn take_due(&mut self, now: Mono) -> bool {
        let is_due = self.due.is_some_and(|due| due <= now);
        if is_due {
            self.due = None;
        }
        is_due
    }

    /// Sends two probes now, since a single one may be lost too. The next ones follow after a round trip while frames depend
    /// on them, and otherwise after twice the time between the last ones.
    pub(super) fn repeat(&mut self, round_trip: Option<Duration>, frames_depend: bool) {
        let interval = round_trip.unwrap_or(INTERVAL_INITIAL).clamp(INTERVAL_MIN, INTERVAL_MAX);
        self.interval = if frames_depend { interval } else { (2 * self.interval).clamp(interval, INTERVAL_IDLE_MAX) };
        (self.pending, self.next_after) = (PROBES, self.interval);
    }
}
