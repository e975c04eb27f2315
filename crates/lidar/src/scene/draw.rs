//! Draws from distributions, on top of the uniform random source.

use viaduct_units::Rng;

/// Draws in the types of the scene.
pub(crate) trait Draw {
    /// Returns a number from `low` up to `high`, uniform.
    fn uniform(&mut self, low: f32, high: f32) -> f32;
    /// Returns a number of a normal distribution.
    fn gauss(&mut self, mean: f32, deviation: f32) -> f32;
    /// Returns a number of the exponential distribution.
    fn exponential_with(&mut self, mean: f32) -> f32;
    /// Returns `true` with a probability.
    fn chance(&mut self, probability: f32) -> bool;
    /// Returns one of the items, each equally often.
    fn pick<T: Copy>(&mut self, items: &[T]) -> T;
    /// Returns an integer from `low` up to but not including `high`.
    fn integer(&mut self, low: usize, high: usize) -> usize;
    /// Returns the index of a weight, as often as its share of the sum.
    fn weighted(&mut self, weights: &[f32]) -> usize;
    /// Returns a number of the Poisson distribution with a small mean (Knuth's product of uniform numbers).
    fn poisson(&mut self, mean: f32) -> usize;
}

impl Draw for Rng {
    fn uniform(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * self.fraction() as f32
    }

    fn gauss(&mut self, mean: f32, deviation: f32) -> f32 {
        mean + deviation * self.normal() as f32
    }

    fn exponential_with(&mut self, mean: f32) -> f32 {
        -mean * (1.0 - self.fraction() as f32).max(f32::MIN_POSITIVE).ln()
    }

    fn chance(&mut self, probability: f32) -> bool {
        (self.fraction() as f32) < probability
    }

    #[expect(clippy::indexing_slicing, reason = "the lists are constants and not empty")]
    fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    fn integer(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low)
    }

    fn weighted(&mut self, weights: &[f32]) -> usize {
        let mut rest = self.fraction() as f32 * weights.iter().sum::<f32>();
        for (index, weight) in weights.iter().enumerate() {
            if rest < *weight {
                return index;
            }
            rest -= weight;
        }
        weights.len().saturating_sub(1)
    }

    fn poisson(&mut self, mean: f32) -> usize {
        let limit = (-mean).exp();
        let mut product = self.fraction() as f32;
        let mut count = 0;
        while product > limit {
            product *= self.fraction() as f32;
            count += 1;
        }
        count
    }
}
