//! Pseudo-random numbers from a seed.

use std::time::Duration;

/// Increment of the state at each step of SplitMix64.
const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;
/// 2 to the power of -53: the distance between two values of [`Rng::fraction`].
const FRACTION_STEP: f64 = 1.0 / 9_007_199_254_740_992.0;

/// A pseudo-random number generator: SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
///
/// The same seed yields the same sequence on every machine and in every version, so a run can be repeated. Every seed is
/// good. The generator is not for secrets.
///
/// ```
/// use viaduct_units::Rng;
///
/// let mut dice = Rng::new(7);
/// let throws: Vec<usize> = (0..3).map(|_| 1 + dice.below(6)).collect();
/// let mut same_dice = Rng::new(7);
/// assert!(throws.iter().all(|throw| *throw == 1 + same_dice.below(6)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng(u64);

impl Rng {
    /// Returns the generator of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns an independent generator, seeded by the next number of this one.
    #[must_use]
    pub const fn fork(&mut self) -> Self {
        Self(self.next_u64())
    }

    /// Returns the next number, uniform over 0 to 2^64 - 1.
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `limit`, each equally often, or 0 if `limit` is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        // The high half of the product; the bias is at most one part in 2^64 / limit.
        let product = u128::from(self.next_u64()) * limit as u128;
        usize::try_from(product >> 64).unwrap_or(0)
    }

    /// Returns a number from 0 up to but not including 1, uniform in steps of 2^-53.
    pub fn fraction(&mut self) -> f64 {
        // 53 bits are exact in an f64.
        (self.next_u64() >> 11) as f64 * FRACTION_STEP
    }

    /// Returns a number from `low` up to but not including `high`, uniform.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.fraction()
    }

    /// Returns a duration from zero to `longest`, both included, uniform in 2^32 steps.
    pub fn duration_up_to(&mut self, longest: Duration) -> Duration {
        let upper_half = u32::try_from(self.next_u64() >> 32).unwrap_or(0);
        longest.mul_f64(f64::from(upper_half) / f64::from(u32::MAX))
    }

    /// Returns a number of the standard normal distribution (Box and Muller's transform), between -8.6 and 8.6.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.fraction()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.fraction()).cos()
    }

    /// Returns a duration of the exponential distribution, at most 36.7 times its mean.
    pub fn exponential(&mut self, mean: Duration) -> Duration {
        let times = -(1.0 - self.fraction()).ln();
        // A product that is too large for a duration saturates.
        Duration::try_from_secs_f64(mean.as_secs_f64() * times).unwrap_or(Duration::MAX)
    }

    /// Puts the items into a random order, each order equally often.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            items.swap(end, self.below(end + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First outputs of the reference implementation for seed 0.
    #[test]
    fn the_sequence_is_that_of_the_reference_implementation() {
        let mut rng = Rng::new(0);
        assert_eq!([rng.next_u64(), rng.next_u64()], [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4]);
    }

    #[test]
    fn the_moments_are_those_of_the_distributions() {
        let mut rng = Rng::new(7);
        let n = 100_000;
        let mean = |value: &mut dyn FnMut() -> f64| (0..n).map(|_| value()).sum::<f64>() / f64::from(n);
        // Five standard errors: 0.29, 1, 1 and sqrt(2) over the root of n.
        assert!((mean(&mut || rng.fraction()) - 0.5).abs() < 0.005);
        assert!(mean(&mut || rng.normal()).abs() < 0.016);
        assert!((mean(&mut || rng.exponential(Duration::from_secs(1)).as_secs_f64()) - 1.0).abs() < 0.016);
        assert!((mean(&mut || rng.normal().powi(2)) - 1.0).abs() < 0.023);
    }

    #[test]
    fn every_number_below_the_limit_is_equally_likely() {
        let mut rng = Rng::new(1);
        for limit in [5, 16] {
            let mut counts = vec![0_u32; limit];
            for _ in 0..1000 * limit {
                counts[rng.below(limit)] += 1;
            }
            // Each count is binomial: 1000 with a standard deviation of at most 31.
            assert!(counts.iter().all(|count| (845..1155).contains(count)), "{counts:?}");
        }
        assert_eq!(rng.below(0), 0);
    }

    #[test]
    fn a_duration_is_within_its_bounds() {
        let mut rng = Rng::new(3);
        let longest = Duration::from_millis(100);
        let drawn: Vec<Duration> = (0..1000).map(|_| rng.duration_up_to(longest)).collect();
        assert!(drawn.iter().all(|duration| *duration <= longest));
        assert!(drawn.iter().any(|duration| *duration < longest / 10));
        assert!(drawn.iter().any(|duration| *duration > longest * 9 / 10));
    }

    #[test]
    fn a_seed_determines_the_order_of_a_shuffle() {
        let order = |seed| {
            let mut items: Vec<usize> = (0..20).collect();
            Rng::new(seed).shuffle(&mut items);
            items
        };
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
        let mut sorted = order(1);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..20).collect::<Vec<_>>());
    }
}
