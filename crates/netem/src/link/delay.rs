//! Delay of packets.

use std::time::Duration;

use viaduct_units::Rng;

use super::LinkSettingsError;

/// Longest delay and longest jitter.
const DELAY_MAX: Duration = Duration::from_secs(3600);

/// Delay of a packet after the bottleneck.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delay {
    /// Mean delay, as long as the jitter does not reach below zero.
    pub base: Duration,
    /// Variation of the delay from packet to packet.
    pub jitter: Jitter,
    /// Order of arrival.
    pub order: Order,
}

/// Difference of a packet's delay from the mean, drawn independently per packet. No delay is below zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Jitter {
    /// No variation.
    #[default]
    None,
    /// Uniform, within plus or minus this duration.
    Uniform(Duration),
    /// Normal, with this standard deviation.
    Normal(Duration),
    /// Exponential with this mean, added to the base: the mean delay is the sum of both.
    Exponential(Duration),
}

/// Order of arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// In the order of sending: a packet waits for a delayed one before it, as behind a queue or on one radio bearer.
    #[default]
    Kept,
    /// By delay: packets overtake each other, as over several paths.
    Free,
}

impl Delay {
    pub(super) fn check(&self) -> Result<(), LinkSettingsError> {
        let (Jitter::Uniform(jitter) | Jitter::Normal(jitter) | Jitter::Exponential(jitter)) = self.jitter else {
            return check_one(self.base);
        };
        check_one(self.base)?;
        check_one(jitter)
    }

    /// Returns the delay of one packet.
    pub(super) fn draw(&self, random: &mut Rng) -> Duration {
        match self.jitter {
            Jitter::None => self.base,
            Jitter::Uniform(most) => self.shifted(most, 2.0 * random.fraction() - 1.0),
            Jitter::Normal(deviation) => self.shifted(deviation, random.normal()),
            Jitter::Exponential(mean) => self.base + random.exponential(mean),
        }
    }

    /// Returns the base plus `times` the unit, at least zero.
    fn shifted(&self, unit: Duration, times: f64) -> Duration {
        let seconds = self.base.as_secs_f64() + times * unit.as_secs_f64();
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO)
    }
}

fn check_one(delay: Duration) -> Result<(), LinkSettingsError> {
    if delay < DELAY_MAX { Ok(()) } else { Err(LinkSettingsError::DelayTooLong) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Mean and standard deviation of many delays, in milliseconds.
    fn moments(jitter: Jitter) -> (f64, f64) {
        let delay = Delay { base: 50 * MS, jitter, order: Order::Free };
        let mut random = Rng::new(11);
        let drawn: Vec<f64> = (0..100_000).map(|_| delay.draw(&mut random).as_secs_f64() * 1e3).collect();
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let variance = drawn.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / drawn.len() as f64;
        (mean, variance.sqrt())
    }

    #[test]
    fn the_delays_have_the_moments_of_their_distribution() {
        let cases = [
            (Jitter::None, 50.0, 0.0),
            (Jitter::Uniform(6 * MS), 50.0, 6.0 / 3.0_f64.sqrt()),
            (Jitter::Normal(5 * MS), 50.0, 5.0),
            (Jitter::Exponential(10 * MS), 60.0, 10.0),
        ];
        for (jitter, mean, deviation) in cases {
            let found = moments(jitter);
            assert!((found.0 - mean).abs() < 0.16, "{jitter:?}: {found:?}");
            assert!((found.1 - deviation).abs() < 0.16, "{jitter:?}: {found:?}");
        }
    }

    #[test]
    fn no_delay_is_below_zero() {
        let delay = Delay { base: MS, jitter: Jitter::Normal(10 * MS), order: Order::Free };
        let mut random = Rng::new(2);
        let zeros = (0..1000).filter(|_| delay.draw(&mut random).is_zero()).count();
        assert!((300..600).contains(&zeros), "{zeros}");
    }

    #[test]
    fn an_hour_is_too_long() {
        assert!(Delay { base: DELAY_MAX, ..Delay::default() }.check().is_err());
        assert!(Delay { jitter: Jitter::Normal(Duration::MAX), ..Delay::default() }.check().is_err());
        assert!(Delay { base: MS, ..Delay::default() }.check().is_ok());
    }
}
