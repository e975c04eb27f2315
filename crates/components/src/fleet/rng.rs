//! A small generator, so that a seed gives the same drive on every machine and in every version.

/// SplitMix64 (Steele, Lea, Flood 2014).
pub(super) struct Rng(u64);

impl Rng {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Even between `low` and `high`.
    pub(super) fn between(&mut self, low: f64, high: f64) -> f64 {
        let part = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        low + (high - low) * part
    }

    /// One of `count` things; 0 where there is none.
    pub(super) fn pick(&mut self, count: usize) -> usize {
        // The bias of a remainder is far below anything that a drive shows.
        (self.next() % count.max(1) as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::Rng;

    /// First outputs for seed 0, as the algorithm's reference implementation gives them.
    #[test]
    fn it_is_split_mix_64() {
        let mut rng = Rng::new(0);
        assert_eq!([rng.next(), rng.next()], [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4]);
    }
}
