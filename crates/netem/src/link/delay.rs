//! Delay of packets.

use std::{f64::consts::PI, time::Duration};

use viaduct_units::{Mono, Rng};

use super::LinkSettingsError;
use crate::Probability;

/// Longest delay and longest jitter.
pub(super) const DELAY_MAX: Duration = Duration::from_secs(3600);

/// Delay of a packet after the bottleneck.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct Delay {
    /// Mean delay, as long as the jitter does not reach below zero; below one hour.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "base_ms", with = "crate::millis"),
        schemars(with = "f64", range(min = 0.0, max = 3_600_000.0))
    )]
    pub base: Duration,
    /// Variation of the delay from packet to packet.
    pub jitter: Jitter,
    /// Similarity of the jitter of successive packets.
    pub correlation: Correlation,
    /// Order of arrival.
    pub order: Order,
}

/// Difference of a packet's delay from the base. No delay is below zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum Jitter {
    /// No variation.
    #[default]
    None,
    /// Uniform, within plus or minus this duration, below one hour.
    #[cfg_attr(feature = "serde", serde(rename = "uniform_ms", with = "crate::millis"), schemars(with = "f64"))]
    Uniform(Duration),
    /// Normal, with this standard deviation, below one hour.
    #[cfg_attr(feature = "serde", serde(rename = "normal_ms", with = "crate::millis"), schemars(with = "f64"))]
    Normal(Duration),
    /// Exponential with this mean, which is the standard deviation too, below one hour. It is added to the base: the mean
    /// delay is the sum of both.
    #[cfg_attr(feature = "serde", serde(rename = "exponential_ms", with = "crate::millis"), schemars(with = "f64"))]
    Exponential(Duration),
}

/// Similarity of the jitter of successive packets. It does not change the distribution of the delay.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum Correlation {
    /// Each packet's jitter is drawn independently.
    #[default]
    None,
    /// Correlation coefficient between a packet and the next, whatever the time between them, as in tc-netem(8).
    Packets(Probability),
    /// Time constant, above 0 and below one hour: for two packets sent at a distance of `t`, the coefficient is
    /// `exp(-t / constant)`. Packets of one burst have nearly the same delay.
    #[cfg_attr(feature = "serde", serde(rename = "time_ms", with = "crate::millis"), schemars(with = "f64"))]
    Time(Duration),
}

/// Order of arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Order {
    /// In the order of sending: a packet waits for a delayed one before it, as behind a queue or on one radio bearer.
    #[default]
    Kept,
    /// By delay: packets overtake each other, as over several paths.
    Free,
}

impl Delay {
    pub(super) fn check(&self) -> Result<(), LinkSettingsError> {
        if let Correlation::Time(constant) = self.correlation
            && (constant.is_zero() || constant >= DELAY_MAX)
        {
            return Err(LinkSettingsError::CorrelationTime);
        }
        check_one(self.base)?;
        check_one(self.jitter.extent())
    }

    /// Returns the shortest delay that is possible.
    pub(super) fn least(&self) -> Duration {
        match self.jitter {
            Jitter::None | Jitter::Exponential(_) => self.base,
            Jitter::Uniform(most) => self.base.saturating_sub(most),
            Jitter::Normal(_) => Duration::ZERO,
        }
    }

    /// Returns the base plus `times` the extent of the jitter, at least zero.
    fn shifted(&self, times: f64) -> Duration {
        let seconds = self.base.as_secs_f64() + times * self.jitter.extent().as_secs_f64();
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO)
    }
}

impl Jitter {
    const fn extent(self) -> Duration {
        match self {
            Self::None => Duration::ZERO,
            Self::Uniform(extent) | Self::Normal(extent) | Self::Exponential(extent) => extent,
        }
    }
}

fn check_one(delay: Duration) -> Result<(), LinkSettingsError> {
    if delay < DELAY_MAX { Ok(()) } else { Err(LinkSettingsError::DelayTooLong) }
}

/// State of the jitter.
#[derive(Clone, Debug, Default)]
pub(super) struct DelayState {
    /// Jitter of the last packet and the time of its departure, or `None` before the first. The jitter is a value of the
    /// standard normal distribution for normal and uniform jitter, else of the exponential distribution with mean 1.
    last: Option<(f64, Mono)>,
}

impl DelayState {
    /// Returns the delay of a packet sent at the given time.
    pub(super) fn draw(&mut self, delay: &Delay, sent: Mono, random: &mut Rng) -> Duration {
        match delay.jitter {
            Jitter::None => delay.base,
            Jitter::Uniform(_) if delay.correlation == Correlation::None => delay.shifted(random.between(-1.0, 1.0)),
            Jitter::Uniform(_) => {
                let normal = self.normal(2.0 * (PI / 6.0 * self.correlation(delay, sent)).sin(), sent, random);
                delay.shifted(2.0 * normal_distribution(normal) - 1.0)
            }
            Jitter::Normal(_) => delay.shifted(self.normal(self.correlation(delay, sent), sent, random)),
            Jitter::Exponential(_) => delay.shifted(self.exponential(self.correlation(delay, sent), sent, random)),
        }
    }

    /// Returns the correlation coefficient between the last packet and one sent at the given time.
    fn correlation(&self, delay: &Delay, sent: Mono) -> f64 {
        match (delay.correlation, self.last) {
            (Correlation::None, _) | (_, None) => 0.0,
            (Correlation::Packets(coefficient), Some(_)) => coefficient.value(),
            (Correlation::Time(constant), Some((_, before))) => {
                (-sent.since(before).as_secs_f64() / constant.as_secs_f64()).exp()
            }
        }
    }

    fn normal(&mut self, correlation: f64, sent: Mono, random: &mut Rng) -> f64 {
        let before = self.last.map_or(0.0, |(value, _)| value);
        let value = correlation * before + (1.0 - correlation * correlation).max(0.0).sqrt() * random.normal();
        self.last = Some((value, sent));
        value
    }

    fn exponential(&mut self, correlation: f64, sent: Mono, random: &mut Rng) -> f64 {
        let before = self.last.map_or(0.0, |(value, _)| value);
        let new_part = if random.fraction() < correlation { 0.0 } else { -(1.0 - random.fraction()).ln() };
        let value = correlation * before + new_part;
        self.last = Some((value, sent));
        value
    }
}

/// Returns the distribution function of the standard normal distribution, with an error of at most 1e-7 (Abramowitz and
/// Stegun, "Handbook of Mathematical Functions", 7.1.26).
fn normal_distribution(value: f64) -> f64 {
    let x = value.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let polynomial =
        t * (0.254_829_592 + t * (-0.284_496_736 + t * (1.421_413_741 + t * (-1.453_152_027 + t * 1.061_405_429))));
    let upper_tail = 0.5 * polynomial * (-x * x).exp();
    if value < 0.0 { upper_tail } else { 1.0 - upper_tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const JITTERS: [Jitter; 3] = [
        Jitter::Uniform(Duration::from_millis(6)),
        Jitter::Normal(Duration::from_millis(5)),
        Jitter::Exponential(Duration::from_millis(10)),
    ];

    /// Returns many delays in milliseconds, of packets sent one per millisecond.
    fn delays(jitter: Jitter, correlation: Correlation, n: u32) -> Vec<f64> {
        let delay = Delay { base: 50 * MS, jitter, correlation, order: Order::Free };
        assert_eq!(delay.check(), Ok(()));
        let (mut state, mut random) = (DelayState::default(), Rng::new(11));
        (0..n).map(|number| state.draw(&delay, Mono(MS * number), &mut random).as_secs_f64() * 1e3).collect()
    }

    /// Returns mean, standard deviation, and the correlation of values at a distance.
    fn moments(drawn: &[f64], distance: usize) -> (f64, f64, f64) {
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let variance = drawn.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / drawn.len() as f64;
        let products = drawn.iter().zip(&drawn[distance..]).map(|(one, next)| (one - mean) * (next - mean));
        let covariance = products.sum::<f64>() / (drawn.len() - distance) as f64;
        (mean, variance.sqrt(), covariance / variance)
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
            let found = moments(&delays(jitter, Correlation::None, 100_000), 1);
            assert!((found.0 - mean).abs() < 0.16, "{jitter:?}: {found:?}");
            assert!((found.1 - deviation).abs() < 0.16, "{jitter:?}: {found:?}");
        }
    }

    #[test]
    fn a_correlation_changes_neither_mean_nor_deviation() {
        for jitter in JITTERS {
            let free = moments(&delays(jitter, Correlation::None, 400_000), 1);
            let tied = moments(&delays(jitter, Correlation::Packets(Probability::clamped(0.7)), 400_000), 1);
            assert!((free.0 / tied.0 - 1.0).abs() < 0.01, "{jitter:?}: {free:?}, {tied:?}");
            assert!((free.1 / tied.1 - 1.0).abs() < 0.02, "{jitter:?}: {free:?}, {tied:?}");
            assert!((tied.2 / 0.7 - 1.0).abs() < 0.02 && free.2.abs() < 0.01, "{jitter:?}: {free:?}, {tied:?}");
        }
    }

    #[test]
    fn a_correlation_in_time_decreases_exponentially() {
        for jitter in JITTERS {
            let drawn = delays(jitter, Correlation::Time(5 * MS), 400_000);
            for distance in [1, 5, 10] {
                let (expected, found) = ((-(distance as f64) / 5.0).exp(), moments(&drawn, distance).2);
                assert!((found - expected).abs() < 0.02, "{jitter:?}: {found} at {distance} ms, not {expected}");
            }
        }
    }

    #[test]
    fn a_complete_correlation_keeps_the_first_delay() {
        for jitter in JITTERS {
            let drawn = delays(jitter, Correlation::Packets(Probability::ONE), 100);
            assert!(drawn.iter().all(|one| (one - drawn[0]).abs() < 1e-5), "{jitter:?}");
        }
    }

    #[test]
    fn no_delay_is_below_zero_or_the_least() {
        for jitter in [Jitter::Uniform(7 * MS), Jitter::Normal(10 * MS), Jitter::Exponential(10 * MS)] {
            let delay = Delay { base: 5 * MS, jitter, ..Delay::default() };
            let (mut state, mut random) = (DelayState::default(), Rng::new(2));
            let drawn: Vec<Duration> = (0..1000).map(|_| state.draw(&delay, Mono::default(), &mut random)).collect();
            assert!(drawn.iter().all(|one| *one >= delay.least()), "{jitter:?}");
            let zeros = drawn.iter().filter(|one| one.is_zero()).count();
            assert_eq!((50..450).contains(&zeros), !matches!(jitter, Jitter::Exponential(_)), "{jitter:?}: {zeros}");
        }
    }

    #[test]
    fn an_hour_is_too_long() {
        assert!(Delay { base: DELAY_MAX, ..Delay::default() }.check().is_err());
        assert!(Delay { jitter: Jitter::Normal(Duration::MAX), ..Delay::default() }.check().is_err());
        assert!(Delay { base: MS, ..Delay::default() }.check().is_ok());
        for constant in [Duration::ZERO, DELAY_MAX] {
            let correlation = Correlation::Time(constant);
            assert_eq!(Delay { correlation, ..Delay::default() }.check(), Err(LinkSettingsError::CorrelationTime));
        }
    }

    #[test]
    fn the_distribution_function_has_the_values_of_tables() {
        for (value, expected) in
            [(0.0, 0.5), (1.0, 0.841_344_75), (-1.96, 0.024_997_9), (4.0, 0.999_968_33), (-40.0, 0.0)]
        {
            assert!((normal_distribution(value) - expected).abs() < 2e-7, "{value}");
        }
    }
}
