//! Octets that encoders may push.

use std::time::Duration;

/// Time for which the budget accumulates.
const TIME_MAX: Duration = Duration::from_millis(100);
/// Octets that the budget can always reach, so that a low rate allows a small picture now and then.
const OCTETS_MIN: f64 = 8192.0;
/// Octets by which a frame may exceed the budget with an effect on later ones.
const DEBT_MAX: f64 = 65_536.0;

/// The octets that encoders may push now.
#[derive(Debug, Default)]
pub(super) struct EncoderBudget {
    octets: f64,
}

impl EncoderBudget {
    /// Adds the octets of the given time at a rate.
    pub(super) fn refill(&mut self, elapsed: Duration, octets_per_second: f64) {
        let most = (octets_per_second * TIME_MAX.as_secs_f64()).max(OCTETS_MIN);
        self.octets = (self.octets + octets_per_second * elapsed.as_secs_f64()).min(most);
    }

    /// Takes the octets of a frame.
    pub(super) fn take(&mut self, octets: usize) {
        self.octets = (self.octets - octets as f64).max(-DEBT_MAX);
    }

    /// Returns the octets that remain if the given ones wait already.
    pub(super) fn remaining(&self, backlog: u64) -> usize {
        (self.octets as usize).saturating_sub(usize::try_from(backlog).unwrap_or(usize::MAX))
    }
}
