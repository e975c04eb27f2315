//! Retransmission of one message.

use std::time::Duration;

use viaduct_units::{
    Mono, Rng,
    retransmission::{Profile, RoundTrip},
};

/// Waits of MQTT-SN 1.2 (7.2): T_retry is 10 to 15 s, N_retry 4.
pub const STANDARD: Profile =
    Profile { first: Duration::from_secs(10), spread: 1.5, growth: 1.0, retransmissions: 4, measured: None };

/// A message that waits for its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retry {
    /// Time of the first transmission.
    first: Mono,
    last: Mono,
    /// Wait after the last transmission.
    wait: Duration,
    /// Time of the next transmission.
    pub(crate) due: Mono,
    transmissions: u32,
}

impl Retry {
    /// Starts with the first transmission.
    pub(crate) fn start(now: Mono, round_trip: &RoundTrip, profile: &Profile, random: &mut Rng) -> Self {
        let wait = round_trip.wait(profile, now, random.fraction());
        Self { first: now, last: now, wait, due: now.plus(wait), transmissions: 1 }
    }

    /// Counts the next transmission. Returns `false` if the message has been sent often enough.
    pub(crate) fn again(&mut self, now: Mono, profile: &Profile) -> bool {
        let Some(wait) = profile.next(self.transmissions, self.wait) else { return false };
        *self = Self { last: now, wait, due: now.plus(wait), transmissions: self.transmissions + 1, ..*self };
        true
    }

    /// Measures the round trip at the arrival of the answer.
    pub(crate) fn answered(&self, now: Mono, round_trip: &mut RoundTrip) {
        round_trip.measure(now, self.first, self.last, self.transmissions);
    }
}
