//! When a message without an answer is sent again: fixed waits, or waits from measured round trips.
//!
//! The estimate follows RFC 6298 with Karn's rule. As in CoCoA (draft-ietf-core-cocoa-03), answers to a message that was
//! sent two or three times count too, with less weight: at high loss, few messages are answered the first time.

use std::time::Duration;

use crate::Mono;

/// Time without a measurement after which the wait doubles, up to the wait before the first measurement.
const AGE: Duration = Duration::from_secs(30);
/// Transmissions of a message up to which its answer is a measurement.
const TRANSMISSIONS_MAX: u32 = 3;

/// When and how often a message without an answer is sent again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    /// Wait before the first retransmission, as long as nothing was measured.
    pub first: Duration,
    /// Largest factor between a wait and its random value, at least 1.
    pub spread: f64,
    /// Factor between a wait and the next one of the same message, at least 1.
    pub growth: f64,
    /// Number of retransmissions of a message.
    pub retransmissions: u32,
    /// Use of measured round trips, or `None` for fixed waits.
    pub measured: Option<Measured>,
}

/// Use of measured round trips.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Shortest wait.
    pub shortest: Duration,
    /// Longest wait.
    pub longest: Duration,
    /// Number of retransmissions of a message before its waits grow.
    pub quick: u32,
}

impl Profile {
    /// Waits from measured round trips, for 16 retransmissions within 30 s.
    ///
    /// Two retransmissions follow after a wait each, because most losses are random. Then the waits double, as in a
    /// congestion.
    pub const ADAPTIVE: Self = Self {
        first: Duration::from_secs(1),
        spread: 1.25,
        growth: 2.0,
        retransmissions: 16,
        measured: Some(Measured { shortest: Duration::from_millis(30), longest: Duration::from_secs(2), quick: 2 }),
    };

    /// Returns the wait after the next transmission of a message, given the wait before it, or `None` if the message has
    /// been sent often enough.
    ///
    /// `transmissions` counts those so far.
    #[must_use]
    pub fn next(&self, transmissions: u32, wait: Duration) -> Option<Duration> {
        if transmissions > self.retransmissions {
            return None;
        }
        let grown = wait.mul_f64(self.growth.max(1.0));
        Some(match self.measured {
            Some(measured) if transmissions <= measured.quick => wait,
            Some(measured) => grown.min(measured.longest.max(wait)),
            None => grown,
        })
    }

    fn spread(&self, wait: Duration, random: f64) -> Duration {
        wait.mul_f64(1.0 + (self.spread - 1.0).max(0.0) * random.clamp(0.0, 1.0))
    }
}

/// The round trip to one peer.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundTrip {
    /// From answers to messages that were sent once.
    strong: Option<Estimate>,
    /// From the first transmission to the answer, for messages that were sent again.
    weak: Option<Estimate>,
    /// The wait that the estimates give, and when it was last measured.
    wait: Option<(Duration, Mono)>,
}

impl RoundTrip {
    /// Processes the answer to a message: the time since its first transmission and the number of transmissions.
    pub fn measure(&mut self, now: Mono, elapsed: Duration, transmissions: u32) {
        let (estimate, variations, weight) = match transmissions {
            1 => (&mut self.strong, 4, 0.5),
            2..=TRANSMISSIONS_MAX => (&mut self.weak, 1, 0.25),
            _ => return,
        };
        let estimate = estimate.insert(estimate.map_or_else(|| Estimate::of(elapsed), |before| before.with(elapsed)));
        let measured = estimate.smoothed + variations * estimate.variation;
        let wait = match self.wait {
            Some((before, _)) => before.mul_f64(1.0 - weight) + measured.mul_f64(weight),
            None => measured,
        };
        self.wait = Some((wait, now));
    }

    /// Returns the wait after the first transmission of a message. `random` is a number of 0 to 1.
    #[must_use]
    pub fn wait(&self, profile: &Profile, now: Mono, random: f64) -> Duration {
        let wait = match (profile.measured, self.wait) {
            (Some(measured), Some((wait, since))) => {
                let wait = wait.clamp(measured.shortest, measured.longest.max(measured.shortest));
                aged(wait, now.since(since), profile.first)
            }
            _ => profile.first,
        };
        profile.spread(wait, random)
    }

    /// Returns the smoothed round trip, or `None` if no message was answered the first time.
    #[must_use]
    pub fn smoothed(&self) -> Option<Duration> {
        self.strong.map(|estimate| estimate.smoothed)
    }
}

/// Doubles a wait for each period without a measurement, up to the first wait.
fn aged(wait: Duration, age: Duration, first: Duration) -> Duration {
    let doublings = (age.as_secs() / AGE.as_secs()).min(16);
    wait.saturating_mul(1 << doublings).min(first.max(wait))
}

/// Smoothed round trip and its variation (RFC 6298, 2).
#[derive(Clone, Copy, Debug)]
struct Estimate {
    smoothed: Duration,
    variation: Duration,
}

impl Estimate {
    fn of(sample: Duration) -> Self {
        Self { smoothed: sample, variation: sample / 2 }
    }

    fn with(self, sample: Duration) -> Self {
        Self {
            variation: (3 * self.variation + self.smoothed.abs_diff(sample)) / 4,
            smoothed: (7 * self.smoothed + sample) / 8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    const FIXED: Profile =
        Profile { first: Duration::from_secs(2), spread: 1.5, growth: 2.0, retransmissions: 4, measured: None };

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn fixed_waits_are_those_of_the_profile_whatever_was_measured() {
        let mut round_trip = RoundTrip::default();
        round_trip.measure(Mono(ms(1)), ms(1), 1);
        assert_eq!(round_trip.wait(&FIXED, Mono(ms(2)), 0.0), ms(2000));
        assert_eq!(round_trip.wait(&FIXED, Mono(ms(2)), 1.0), ms(3000));
        let mut waits = vec![ms(2000)];
        while let Some(wait) = FIXED.next(waits.len() as u32, waits[waits.len() - 1]) {
            waits.push(wait);
        }
        assert_eq!(waits, [2000, 4000, 8000, 16_000, 32_000].map(ms));
    }

    #[test]
    fn measured_waits_follow_the_round_trip_within_their_limits() {
        let (mut round_trip, profile) = (RoundTrip::default(), Profile::ADAPTIVE);
        assert_eq!(round_trip.wait(&profile, Mono::default(), 0.0), ms(1000));
        for _ in 0..50 {
            round_trip.measure(Mono::default(), ms(100), 1);
        }
        let wait = round_trip.wait(&profile, Mono::default(), 0.0);
        assert!((ms(100)..ms(105)).contains(&wait), "{wait:?}");
        for _ in 0..50 {
            round_trip.measure(Mono::default(), ms(1), 1);
        }
        assert_eq!(round_trip.wait(&profile, Mono::default(), 0.0), ms(30));
        for _ in 0..50 {
            round_trip.measure(Mono::default(), ms(60_000), 1);
        }
        assert_eq!(round_trip.wait(&profile, Mono::default(), 0.0), ms(2000));
    }

    #[test]
    fn answers_to_messages_sent_often_are_not_measured() {
        let mut round_trip = RoundTrip::default();
        round_trip.measure(Mono::default(), ms(500), 4);
        assert_eq!(round_trip.wait(&Profile::ADAPTIVE, Mono::default(), 0.0), ms(1000));
        round_trip.measure(Mono::default(), ms(40), 2);
        assert_eq!((round_trip.wait(&Profile::ADAPTIVE, Mono::default(), 0.0), round_trip.smoothed()), (ms(60), None));
    }

    #[test]
    fn an_old_measurement_loses_its_effect() {
        let mut round_trip = RoundTrip::default();
        round_trip.measure(Mono::default(), ms(40), 1);
        let wait = |at| round_trip.wait(&Profile::ADAPTIVE, Mono(Duration::from_secs(at)), 0.0);
        assert_eq!([0, 29, 30, 60, 3600].map(wait), [120, 120, 240, 480, 1000].map(ms));
    }

    #[test]
    fn the_longest_exchange_ends_within_the_transmission_time_of_coap() {
        let profile = Profile::ADAPTIVE;
        let mut wait = profile.spread(profile.first, 1.0);
        let (mut total, mut transmissions) = (wait, 1);
        while let Some(next) = profile.next(transmissions, wait) {
            (wait, transmissions) = (next, transmissions + 1);
            total += wait;
        }
        // RFC 7252, 4.8.2: MAX_TRANSMIT_SPAN.
        assert!(transmissions == 17 && total < Duration::from_secs(45), "{transmissions} {total:?}");
    }

    /// Returns mean delay in ms and number of undelivered messages over a link that loses a share of the packets in each
    /// direction and has a round trip of 20 ms plus an exponential part of 10 ms on average.
    fn over_a_lossy_link(profile: &Profile, loss: f64) -> (f64, u32) {
        const MESSAGES: u32 = 20_000;
        let (mut random, mut round_trip, mut now) = (Rng::new(1), RoundTrip::default(), Duration::ZERO);
        let (mut total, mut undelivered) = (Duration::ZERO, 0);
        for _ in 0..MESSAGES {
            let mut wait = round_trip.wait(profile, Mono(now), random.fraction());
            let (mut sent, mut transmissions, mut answer) = (Duration::ZERO, 1, None::<Duration>);
            loop {
                if random.fraction() >= loss && random.fraction() >= loss {
                    let arrival = sent + ms(20) + random.exponential(ms(10));
                    answer = Some(answer.map_or(arrival, |before| before.min(arrival)));
                }
                if answer.is_some_and(|answer| answer <= sent + wait) {
                    break;
                }
                let Some(next) = profile.next(transmissions, wait) else { break };
                (sent, wait, transmissions) = (sent + wait, next, transmissions + 1);
            }
            match answer {
                Some(answer) => {
                    round_trip.measure(Mono(now + answer), answer, transmissions);
                    (total, now) = (total + answer, now + answer);
                }
                None => (undelivered, now) = (undelivered + 1, now + sent + wait),
            }
        }
        (total.as_secs_f64() * 1000.0 / f64::from(MESSAGES - undelivered), undelivered)
    }

    #[test]
    fn loss_delays_messages_less_with_measured_waits() {
        for (loss, mean_max_ms) in [(0.0, 31.0), (0.1, 60.0), (0.25, 150.0)] {
            let (mean, undelivered) = over_a_lossy_link(&Profile::ADAPTIVE, loss);
            assert!(mean <= mean_max_ms && undelivered == 0, "loss {loss}: {mean} ms, {undelivered} undelivered");
            let (fixed, _) = over_a_lossy_link(&FIXED, loss);
            assert!(loss == 0.0 || fixed > 10.0 * mean, "loss {loss}: {mean} against {fixed}");
        }
    }
}
