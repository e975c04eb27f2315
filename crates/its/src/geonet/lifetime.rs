//! Lifetime of a packet, EN 302 636-4-1, clause 9.6.4.

use std::time::Duration;

/// `LT`: a multiplier (6 bits) and a base (2 bits).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime(pub u8);

impl Lifetime {
    /// From the multiplier, 0 to 63, and the base: 0 is 50 ms, 1 is 1 s, 2 is 10 s, 3 is 100 s.
    #[must_use]
    pub const fn from_parts(multiplier: u8, base: u8) -> Self {
        Self(multiplier << 2 | base & 3)
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
}
