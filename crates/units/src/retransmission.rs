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
/// Wait by the time to the answer of a message that was sent more often, as long as nothing else was measured. As in FASOR
/// (draft-ietf-core-fasor-02).
const SLOW: f64 = 1.5;

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
    /// Waits from measured round trips, for 17 retransmissions within 40 s.
    ///
    /// Four retransmissions follow after a wait each, because most losses are random. Then the waits double, as in a
    /// congestion.
    pub const ADAPTIVE: Self = Self {
        first: Duration::from_secs(1),
        spread: 1.25,
        growth: 2.0,
        retransmissions: 17,
        measured: Some(Measured { shortest: Duration::from_millis(30), longest: Duration::from_secs(2), quick: 4 }),
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
    /// Processes the answer to a message that was first and last sent at these times.
    ///
    /// Before the first measurement a wait is long, and so is the time to the answer of a message that was sent again. If the
    /// link loses packets, that time has little to do with the round trip. Until a message is answered the first time, an
    /// answer is therefore taken for that of the last transmission. If this is wrong, messages are sent more often than
    /// `TRANSMISSIONS_MAX`, and the time since their first transmission counts again.
    pub fn measure(&mut self, now: Mono, first_sent: Mono, last_sent: Mono, transmissions: u32) {
        let elapsed = now.since(first_sent);
        let wait = match (transmissions, self.strong) {
            (1, None) => self.strong.insert(Estimate::of(elapsed)).wait(4),
            (1, Some(strong)) => {
                let measured = self.strong.insert(strong.with(elapsed)).wait(4);
                self.mixed(measured, 0.5)
            }
            (2..=TRANSMISSIONS_MAX, None) => self.at_least(Estimate::of(now.since(last_sent)).wait(4)),
            (2..=TRANSMISSIONS_MAX, Some(_)) => {
                let weak = self.weak.map_or_else(|| Estimate::of(elapsed), |weak| weak.with(elapsed));
                let measured = self.weak.insert(weak).wait(1);
                self.mixed(measured, 0.25)
            }
            (_, None) => self.at_least(elapsed.mul_f64(SLOW)),
            (_, Some(_)) => return,
        };
        self.wait = Some((wait, now));
    }

    /// Returns the mean of the wait and a measured one, which has this weight.
    fn mixed(&self, measured: Duration, weight: f64) -> Duration {
        self.wait.map_or(measured, |(before, _)| before.mul_f64(1.0 - weight) + measured.mul_f64(weight))
    }

    fn at_least(&self, measured: Duration) -> Duration {
        self.wait.map_or(measured, |(before, _)| before.max(measured))
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

    fn wait(&self, variations: u32) -> Duration {
        self.smoothed + variations * self.variation
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

    /// Processes the answer to a message that was sent so many times at once.
    fn answer(round_trip: &mut RoundTrip, elapsed: Duration, transmissions: u32) {
        round_trip.measure(Mono::default().plus(elapsed), Mono::default(), Mono::default(), transmissions);
    }

    #[test]
    fn fixed_waits_are_those_of_the_profile_whatever_was_measured() {
        let mut round_trip = RoundTrip::default();
        answer(&mut round_trip, ms(1), 1);
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
            answer(&mut round_trip, ms(100), 1);
        }
        let wait = round_trip.wait(&profile, Mono::default(), 0.0);
        assert!((ms(100)..ms(105)).contains(&wait), "{wait:?}");
        for _ in 0..50 {
            answer(&mut round_trip, ms(1), 1);
        }
        assert_eq!(round_trip.wait(&profile, Mono::default(), 0.0), ms(30));
        for _ in 0..50 {
            answer(&mut round_trip, ms(60_000), 1);
        }
        assert_eq!(round_trip.wait(&profile, Mono::default(), 0.0), ms(2000));
    }

    #[test]
    fn answers_to_messages_sent_often_are_not_measured() {
        let mut round_trip = RoundTrip::default();
        answer(&mut round_trip, ms(40), 1);
        round_trip.measure(Mono::default().plus(ms(500)), Mono::default(), Mono::default(), 4);
        assert_eq!(round_trip.wait(&Profile::ADAPTIVE, Mono::default(), 0.0), ms(120));
    }

    #[test]
    fn until_a_message_is_answered_the_first_time_an_answer_is_taken_for_that_of_the_last_transmission() {
        let mut round_trip = RoundTrip::default();
        let wait = |round_trip: &RoundTrip| round_trip.wait(&Profile::ADAPTIVE, Mono::default(), 0.0);
        let at = |time| Mono::default().plus(ms(time));
        round_trip.measure(at(1040), at(0), at(1000), 2);
        assert_eq!((wait(&round_trip), round_trip.smoothed()), (ms(120), None));
        // The round trip is 1040 ms: the next message is sent five times before its answer.
        round_trip.measure(at(1040), at(0), at(960), 5);
        assert_eq!(wait(&round_trip), ms(1560));
        round_trip.measure(at(40), at(0), at(0), 1);
        assert_eq!((wait(&round_trip), round_trip.smoothed()), (ms(120), Some(ms(40))));
    }

    #[test]
    fn an_old_measurement_loses_its_effect() {
        let mut round_trip = RoundTrip::default();
        answer(&mut round_trip, ms(40), 1);
        let wait = |at| round_trip.wait(&Profile::ADAPTIVE, Mono(ms(40) + Duration::from_secs(at)), 0.0);
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
        assert!(transmissions == 18 && total < Duration::from_secs(45), "{transmissions} {total:?}");
    }

    /// Messages over a link that loses a share of the packets in each direction and has a round trip of 20 ms plus an
    /// exponential part of 10 ms on average.
    #[derive(Default)]
    struct Run {
        delays: Duration,
        delivered: u32,
        undelivered: u32,
        transmissions: u32,
    }

    impl Run {
        /// Sends messages one after the other.
        fn send(&mut self, profile: &Profile, loss: f64, messages: u32, random: &mut Rng) {
            let (mut round_trip, mut now) = (RoundTrip::default(), Duration::ZERO);
            for _ in 0..messages {
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
                self.transmissions += transmissions;
                if let Some(answer) = answer {
                    round_trip.measure(Mono(now + answer), Mono(now), Mono(now + sent.min(answer)), transmissions);
                    (self.delays, self.delivered, now) = (self.delays + answer, self.delivered + 1, now + answer);
                } else {
                    (self.undelivered, now) = (self.undelivered + 1, now + sent + wait);
                }
            }
        }

        /// Sends 20,000 messages of a number of clients.
        fn of(profile: &Profile, loss: f64, clients: u32) -> Self {
            let (mut run, mut random) = (Self::default(), Rng::new(1));
            (0..clients).for_each(|_| run.send(profile, loss, 20_000 / clients, &mut random));
            run
        }

        fn mean_ms(&self) -> f64 {
            self.delays.as_secs_f64() * 1000.0 / f64::from(self.delivered)
        }
    }

    #[test]
    fn loss_delays_messages_less_with_measured_waits() {
        // Clients that send 100 messages spend much of their time on the first ones.
        for clients in [1, 200] {
            for (loss, mean_max_ms, transmissions_max) in [(0.0, 31.0, 1.05), (0.1, 60.0, 1.3), (0.25, 150.0, 1.85)] {
                let run = Run::of(&Profile::ADAPTIVE, loss, clients);
                let (mean, each) = (run.mean_ms(), f64::from(run.transmissions) / 20_000.0);
                assert!(mean <= mean_max_ms && run.undelivered == 0, "loss {loss}: {mean} ms, {}", run.undelivered);
                assert!(each <= transmissions_max, "loss {loss}: {each} transmissions");
                let fixed = Run::of(&FIXED, loss, clients).mean_ms();
                assert!(loss == 0.0 || fixed > 10.0 * mean, "loss {loss}: {mean} against {fixed}");
            }
        }
    }
}
