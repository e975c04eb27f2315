//! Lifetime of a packet, EN 302 636-4-1, clause 9.6.4.

use std::time::Duration;

/// Largest multiplier, 6 bits.
const MULTIPLIER_MAX: u8 = 63;

/// `LT`: a multiplier (6 bits) and a base (2 bits).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime(pub u8);

impl Lifetime {
    /// Returns the lifetime of a multiplier, 0 to 63, and a base: 0 is 50 ms, 1 is 1 s, 2 is 10 s, 3 is 100 s.
    #[must_use]
    pub const fn from_parts(multiplier: u8, base: u8) -> Self {
        Self(multiplier << 2 | base & 3)
    }

    /// Returns the lifetime nearest to a duration, at most 6300 s. Uses the smallest base that suffices, which has the
    /// finest resolution.
    #[must_use]
    pub fn from_duration(duration: Duration) -> Self {
        let millis = duration.as_millis();
        Self::with_smallest_base(|base_ms| (millis + base_ms / 2) / base_ms)
    }

    /// Returns the shortest lifetime that is not below a duration, at most 6300 s.
    #[must_use]
    pub fn at_least(duration: Duration) -> Self {
        let millis = duration.as_nanos().div_ceil(1_000_000);
        Self::with_smallest_base(|base_ms| millis.div_ceil(base_ms))
    }

    fn with_smallest_base(multiplier: impl Fn(u128) -> u128) -> Self {
        let bases = [(50, 0), (1000, 1), (10_000, 2), (100_000, 3)];
        let fits = |(base_ms, base): (u128, u8)| {
            let multiplier = u8::try_from(multiplier(base_ms)).ok().filter(|value| *value <= MULTIPLIER_MAX)?;
            Some(Self::from_parts(multiplier, base))
        };
        bases.into_iter().find_map(fits).unwrap_or(Self::from_parts(MULTIPLIER_MAX, 3))
    }

    /// Returns the lifetime as a duration.
    #[must_use]
    pub fn duration(self) -> Duration {
        let base = match self.0 & 3 {
            0 => Duration::from_millis(50),
            1 => Duration::from_secs(1),
            2 => Duration::from_secs(10),
            _ => Duration::from_secs(100),
        };
        base * u32::from(self.0 >> 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_base_has_its_unit() {
        for (lifetime, millis) in [
            (Lifetime::from_parts(1, 0), 50),
            (Lifetime::from_parts(63, 1), 63_000),
            (Lifetime::from_parts(6, 2), 60_000),
            (Lifetime::from_parts(63, 3), 6_300_000),
            (Lifetime(0), 0),
        ] {
            assert_eq!(lifetime.duration(), Duration::from_millis(millis));
        }
    }

    #[test]
    fn duration_is_rounded_to_the_nearest_lifetime() {
        for (millis, expected_ms) in [
            (0, 0),
            (24, 0),
            (26, 50),
            (995, 1000),
            (3150, 3150),
            (3200, 3000),
            (59_995, 60_000),
            (6_400_000, 6_300_000),
        ] {
            let lifetime = Lifetime::from_duration(Duration::from_millis(millis));
            assert_eq!(lifetime.duration(), Duration::from_millis(expected_ms), "{millis}");
        }
    }

    #[test]
    fn lifetime_is_at_least_the_requested_one() {
        for (millis, expected_ms) in
            [(0, 0), (1, 50), (50, 50), (3151, 4000), (63_001, 70_000), (630_001, 700_000), (9_000_000, 6_300_000)]
        {
            let lifetime = Lifetime::at_least(Duration::from_millis(millis));
            assert_eq!(lifetime.duration(), Duration::from_millis(expected_ms), "{millis}");
        }
        assert_eq!(Lifetime::at_least(Duration::from_nanos(50_000_001)).duration(), Duration::from_millis(100));
    }

    #[test]
    fn lifetimes_keep_their_duration() {
        for octet in 0..=255 {
            let duration = Lifetime(octet).duration();
            assert_eq!(Lifetime::from_duration(duration).duration(), duration, "{octet}");
        }
    }
}
