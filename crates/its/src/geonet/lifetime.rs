//! Lifetime of a packet, EN 302 636-4-1, clause 9.6.4.

use std::time::Duration;

/// Largest multiplier, 6 bits.
const MULTIPLIER_MAX: u8 = 63;

/// `LT`: a multiplier (6 bits) and a base (2 bits).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime(pub u8);

impl Lifetime {
    /// From the multiplier, 0 to 63, and the base: 0 is 50 ms, 1 is 1 s, 2 is 10 s, 3 is 100 s.
    #[must_use]
    pub const fn from_parts(multiplier: u8, base: u8) -> Self {
        Self(multiplier << 2 | base & 3)
    }

    /// The lifetime nearest to a duration that the field can say, at most 6300 s. The smallest base that reaches is the most
    /// exact one.
    #[must_use]
    pub fn from_duration(duration: Duration) -> Self {
        let bases = [(50, 0), (1000, 1), (10_000, 2), (100_000, 3)];
        let millis = duration.as_millis();
        let nearest = |(base_ms, base): (u128, u8)| {
            let multiplier = u8::try_from((millis + base_ms / 2) / base_ms)
                .ok()
                .filter(|multiplier| *multiplier <= MULTIPLIER_MAX)?;
            Some(Self::from_parts(multiplier, base))
        };
        bases.into_iter().find_map(nearest).unwrap_or(Self::from_parts(MULTIPLIER_MAX, 3))
    }

    /// How long the packet may travel.
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
    fn a_duration_becomes_the_nearest_lifetime() {
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
    fn each_lifetime_keeps_its_duration() {
        for octet in 0..=255 {
            let duration = Lifetime(octet).duration();
            assert_eq!(Lifetime::from_duration(duration).duration(), duration, "{octet}");
        }
    }
}
