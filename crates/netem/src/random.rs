//! Numbers that a seed decides.

use std::time::Duration;

use crate::Probability;

/// A generator of numbers that look random: SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
///
/// Any seed is good. It is not for secrets.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

/// Of SplitMix64: what the state grows by.
const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;
/// 2 to the power of -53: the distance of two fractions.
const FRACTION_STEP: f64 = 1.0 / 9_007_199_254_740_992.0;

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A generator of its own, for one of several things that shall not disturb each other.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    /// Uniform from 0 up to but not including 1, in steps of 2 to the power of -53.
    pub(crate) fn fraction(&mut self) -> f64 {
        // 53 bits are exact in an f64.
        (self.next() >> 11) as f64 * FRACTION_STEP
    }

    /// Whether something of this probability happens now.
    pub(crate) fn happens(&mut self, probability: Probability) -> bool {
        self.fraction() < probability.value()
    }

    /// Uniform from 0 to `most`, both included.
    pub(crate) fn up_to(&mut self, most: u32) -> u32 {
        // The upper half times the number of values, of which the upper half is below that number.
        let scaled = (self.next() >> 32) * (u64::from(most) + 1);
        u32::try_from(scaled >> 32).unwrap_or(most)
    }

    /// Normally distributed around 0 with standard deviation 1 (Box and Muller's transform), between -8.6 and 8.6.
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.fraction()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.fraction()).cos()
    }

    /// Exponentially distributed around `mean`.
    pub(crate) fn exponential(&mut self, mean: Duration) -> Duration {
        // At most 36.7 times the mean, which saturates where that is no duration.
        let times = -(1.0 - self.fraction()).ln();
        Duration::try_from_secs_f64(mean.as_secs_f64() * times).unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_moments_are_those_of_the_distributions() {
        let mut random = Random::new(7);
        let n = 100_000;
        let mean = |value: &mut dyn FnMut() -> f64| (0..n).map(|_| value()).sum::<f64>() / f64::from(n);
        // Five standard errors: 0.29, 1, 1 and sqrt(2) over the root of n.
        assert!((mean(&mut || random.fraction()) - 0.5).abs() < 0.005);
        assert!(mean(&mut || random.normal()).abs() < 0.016);
        assert!((mean(&mut || random.exponential(Duration::from_secs(1)).as_secs_f64()) - 1.0).abs() < 0.016);
        assert!((mean(&mut || random.normal().powi(2)) - 1.0).abs() < 0.023);
    }

    #[test]
    fn every_value_up_to_the_most_is_drawn() {
        let mut random = Random::new(1);
        let mut counts = [0_u32; 16];
        for _ in 0..16_000 {
            counts[random.up_to(15) as usize] += 1;
        }
        // The count of each is binomial: 1000 with a standard deviation of 31.
        assert!(counts.iter().all(|count| (845..1155).contains(count)), "{counts:?}");
    }
}
