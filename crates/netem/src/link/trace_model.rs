//! Synthetic traces with the statistics of a radio link.

use std::time::Duration;

use viaduct_units::Rng;

use super::{DeliveryTrace, OPPORTUNITY_OCTETS};
use crate::limits::{SYNTHETIC_TRACE_MAX, TRACE_OPPORTUNITIES_MAX};

/// A model of a radio link whose rate varies.
///
/// The logarithm of the rate is the sum of a slow and a fast variation: normal autoregressive processes in steps of a
/// millisecond. During an outage the rate is zero. Opportunities are a Poisson process of that rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TraceModel {
    /// Mean rate in bits per second, outages included.
    pub mean_bits_per_second: f64,
    /// Mean length of an outage, exponentially distributed.
    pub outage: Duration,
    /// Mean time from the end of an outage to the start of the next, exponentially distributed.
    pub between: Duration,
    /// Variation by distance and shadowing.
    pub slow: Variation,
    /// Variation by fading and scheduling.
    pub fast: Variation,
}

/// A variation of the logarithm of the rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variation {
    /// Standard deviation of the natural logarithm.
    pub deviation: f64,
    /// Time after which the correlation has decreased to 1/e.
    pub time_constant: Duration,
}

impl TraceModel {
    /// Returns a trace of the given duration, 1 ms to [`SYNTHETIC_TRACE_MAX`]; other durations are limited to that range.
    /// The seed determines it.
    #[must_use]
    pub fn trace(&self, duration: Duration, seed: u64) -> DeliveryTrace {
        let period_ms = u32::try_from(duration.min(SYNTHETIC_TRACE_MAX).as_millis()).unwrap_or(u32::MAX).max(1);
        let mut random = Rng::new(seed);
        let rates = self.relative_rates(period_ms, &mut random);
        let opportunities = self.mean_bits_per_second / 8.0 / OPPORTUNITY_OCTETS as f64 * f64::from(period_ms) / 1e3;
        let scale = opportunities.min(TRACE_OPPORTUNITIES_MAX as f64) / rates.iter().sum::<f64>();
        DeliveryTrace::from_opportunities(draw_opportunities(&rates, scale, &mut random), period_ms)
    }

    /// Returns the rate in each millisecond, in relation to that without variation.
    fn relative_rates(&self, milliseconds: u32, random: &mut Rng) -> Vec<f64> {
        let mut slow = Process::new(self.slow, random);
        let mut fast = Process::new(self.fast, random);
        let mut outages = OnOff::new(self.between, random);
        let rate = |_| {
            let variation = slow.next(random) + fast.next(random);
            if outages.is_out(self, random) { 0.0 } else { variation.exp() }
        };
        (0..milliseconds).map(rate).collect()
    }
}

/// Returns the milliseconds at which the integral of the rate passes the next exponentially distributed value.
fn draw_opportunities(rates: &[f64], scale: f64, random: &mut Rng) -> Vec<u32> {
    let mut left = exponential(random);
    let mut opportunities = Vec::new();
    for (ms, rate) in (0..).zip(rates) {
        left -= rate * scale;
        while left <= 0.0 && opportunities.len() < TRACE_OPPORTUNITIES_MAX {
            opportunities.push(ms);
            left += exponential(random);
        }
    }
    opportunities
}

/// Returns a number of the exponential distribution with mean 1.
fn exponential(random: &mut Rng) -> f64 {
    -(1.0 - random.fraction()).ln()
}

/// A normal autoregressive process.
struct Process {
    deviation: f64,
    /// Weight of the last value.
    memory: f64,
    value: f64,
}

impl Process {
    fn new(variation: Variation, random: &mut Rng) -> Self {
        let memory = (-1.0 / milliseconds(variation.time_constant)).exp();
        Self { deviation: variation.deviation, memory, value: random.normal() }
    }

    /// Returns the value of the next millisecond.
    fn next(&mut self, random: &mut Rng) -> f64 {
        self.value = self.memory * self.value + (1.0 - self.memory * self.memory).sqrt() * random.normal();
        self.deviation * self.value
    }
}

/// Outages and the times between them.
struct OnOff {
    out: bool,
    /// Time to the next change in milliseconds.
    left_ms: f64,
}

impl OnOff {
    fn new(between: Duration, random: &mut Rng) -> Self {
        Self { out: false, left_ms: exponential(random) * milliseconds(between) }
    }

    /// Returns `true` if the next millisecond is part of an outage.
    fn is_out(&mut self, model: &TraceModel, random: &mut Rng) -> bool {
        self.left_ms -= 1.0;
        while self.left_ms <= 0.0 {
            self.out = !self.out;
            let mean = if self.out { model.outage } else { model.between };
            self.left_ms += exponential(random) * milliseconds(mean);
        }
        self.out
    }
}

/// Returns the number of milliseconds, at least a thousandth.
fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e3).max(1e-3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(deviation: f64, outage: Duration) -> TraceModel {
        TraceModel {
            mean_bits_per_second: 6e6,
            outage,
            between: Duration::from_secs(1),
            slow: Variation { deviation, time_constant: Duration::from_secs(1) },
            fast: Variation { deviation, time_constant: Duration::from_millis(20) },
        }
    }

    #[test]
    fn the_mean_rate_is_that_of_the_model() {
        for (deviation, outage_ms) in [(0.0, 1), (0.5, 100), (1.0, 1000)] {
            let trace = model(deviation, Duration::from_millis(outage_ms)).trace(Duration::from_secs(100), 3);
            // 50 000 opportunities with a standard deviation of 224.
            assert!((trace.mean_bits_per_second() / 6e6 - 1.0).abs() < 0.02, "{}", trace.mean_bits_per_second());
            assert_eq!(trace.period(), Duration::from_secs(100));
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_trace() {
        let trace = |seed| model(0.5, Duration::from_millis(10)).trace(Duration::from_secs(1), seed);
        assert_eq!(trace(1), trace(1));
        assert_ne!(trace(1), trace(2));
    }

    #[test]
    fn extreme_models_yield_bounded_traces() {
        let extremes = [f64::INFINITY, f64::NAN, -1.0, 0.0, 1e300];
        for value in extremes {
            let strange = TraceModel { mean_bits_per_second: value, ..model(value, Duration::ZERO) };
            let trace = strange.trace(Duration::from_millis(100), 1);
            assert!(trace.opportunities_ms().is_sorted() && !trace.opportunities_ms().is_empty());
        }
        let short = model(0.5, Duration::MAX).trace(Duration::ZERO, 1);
        assert_eq!(short.period(), Duration::from_millis(1));
    }
}
