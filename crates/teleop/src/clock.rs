//! The clock of the peer.

use std::time::Duration;

use viaduct_units::Mono;

use crate::micros;

/// Time after which a measurement is replaced by a worse one.
const WINDOW: Duration = Duration::from_secs(10);
/// Largest drift between two clocks: 100 ppm each.
const DRIFT: f64 = 200e-6;

/// The difference between the clock of the peer and the own clock, from the heartbeat with the shortest round trip of the
/// last seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PeerClock {
    best: Option<Measurement>,
}

/// One measurement of the difference.
#[derive(Clone, Copy, Debug)]
struct Measurement {
    at: Mono,
    /// Peer's clock minus own clock in microseconds, modulo 2^32.
    offset_us: u32,
    round_trip: Duration,
}

/// The age of an event, from its time by the clock of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Age {
    /// Best estimate.
    pub estimate: Duration,
    /// Largest error of the estimate.
    pub uncertainty: Duration,
}

impl Age {
    /// Returns the largest age that the event can have.
    #[must_use]
    pub fn at_most(self) -> Duration {
        self.estimate + self.uncertainty
    }
}

/// An event of the peer that is later than the present, by more than the error of the clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InFuture;

impl PeerClock {
    /// Processes a heartbeat that the peer sent at `sent_us` by its clock, and which echoes one of this end.
    pub(crate) fn measure(&mut self, now: Mono, sent_us: u32, round_trip: Duration) {
        let peer_now = sent_us.wrapping_add(micros::of_duration(round_trip / 2));
        let measured = Measurement { at: now, offset_us: peer_now.wrapping_sub(micros::of_clock(now)), round_trip };
        let better = |best: &Measurement| measured.uncertainty(now) <= best.uncertainty(now);
        if self.best.as_ref().is_none_or(|best| better(best) || now.since(best.at) > WINDOW) {
            self.best = Some(measured);
        }
    }

    /// Returns the age of an event at the given time of the peer, or `None` before the first measurement.
    ///
    /// # Errors
    /// The event is in the future.
    pub(crate) fn age(&self, now: Mono, peer_us: u32) -> Option<Result<Age, InFuture>> {
        let best = self.best?;
        let uncertainty = best.uncertainty(now);
        let peer_now = micros::of_clock(now).wrapping_add(best.offset_us);
        let age_us = i64::from(peer_now.wrapping_sub(peer_us).cast_signed());
        let age = match u64::try_from(age_us) {
            Ok(age_us) => Ok(Age { estimate: Duration::from_micros(age_us), uncertainty }),
            // The error of the clocks makes a recent event appear as one of the near future.
            Err(_) if Duration::from_micros(age_us.unsigned_abs()) <= uncertainty => {
                Ok(Age { estimate: Duration::ZERO, uncertainty })
            }
            Err(_) => Err(InFuture),
        };
        Some(age)
    }

    /// Returns the difference of the clocks in microseconds, peer minus own, modulo 2^32, and its largest error.
    pub(crate) fn offset(&self, now: Mono) -> Option<(u32, Duration)> {
        self.best.map(|best| (best.offset_us, best.uncertainty(now)))
    }
}

impl Measurement {
    /// Returns the largest error: half of the round trip, and the drift since.
    fn uncertainty(&self, now: Mono) -> Duration {
        self.round_trip / 2 + now.since(self.at).mul_f64(DRIFT) + Duration::from_micros(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Mono {
        Mono(Duration::from_millis(ms))
    }

    #[test]
    fn the_true_age_is_within_the_uncertainty_for_any_asymmetry() {
        // The clock of the peer is 5 s ahead. The way there takes 30 ms, the way back 10 ms.
        let mut clock = PeerClock::default();
        clock.measure(at(1040), 6_030_000, Duration::from_millis(40));
        let age = clock.age(at(1100), 6_000_000).unwrap().unwrap();
        let truth = Duration::from_millis(100);
        assert!(age.estimate.abs_diff(truth) <= age.uncertainty, "{age:?}");
        assert!(age.at_most() >= truth);
    }

    #[test]
    fn a_worse_measurement_replaces_a_better_one_only_when_that_is_old() {
        let mut clock = PeerClock::default();
        clock.measure(at(1000), 1_000_000, Duration::from_millis(2));
        clock.measure(at(2000), 2_000_000, Duration::from_millis(20));
        assert!(clock.offset(at(2000)).unwrap().1 < Duration::from_millis(2));
        clock.measure(at(12_000), 12_000_000, Duration::from_millis(20));
        assert!(clock.offset(at(12_000)).unwrap().1 > Duration::from_millis(9));
    }

    #[test]
    fn an_event_of_the_future_has_no_age() {
        let mut clock = PeerClock::default();
        assert_eq!(clock.age(at(0), 0), None);
        clock.measure(at(1000), 999_000, Duration::from_millis(2));
        assert_eq!(clock.age(at(1000), 1_000_500).unwrap().map(|age| age.estimate), Ok(Duration::ZERO));
        assert_eq!(clock.age(at(1000), 1_002_000), Some(Err(InFuture)));
    }
}
