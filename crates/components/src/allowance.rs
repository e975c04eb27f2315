//! How often something may be told.

use std::time::Duration;

use viaduct_units::Mono;

/// A number of times each second, and how many there were that were not told.
#[derive(Debug)]
pub(crate) struct Allowance {
    per_second: u32,
    /// When the present second began.
    since: Option<Mono>,
    told: u32,
    untold: u64,
}

impl Allowance {
    pub(crate) const fn new(per_second: u32) -> Self {
        Self { per_second, since: None, told: 0, untold: 0 }
    }

    /// One more: where it may be told, for how many it stands, itself and those before it that were not told.
    pub(crate) fn one(&mut self, now: Mono) -> Option<u64> {
        if self.since.is_none_or(|since| now.since(since) >= Duration::from_secs(1)) {
            (self.since, self.told) = (Some(now), 0);
        }
        self.untold += 1;
        if self.told >= self.per_second {
            return None;
        }
        self.told += 1;
        Some(std::mem::take(&mut self.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_second_tells_some_and_counts_the_others() {
        let mut allowance = Allowance::new(2);
        let start = viaduct_bus::clock::mono();
        let at = |millis| start.plus(Duration::from_millis(millis));
        let told = [0, 1, 2, 3, 999, 1000].map(|millis| allowance.one(at(millis)));
        assert_eq!(told, [Some(1), Some(1), None, None, None, Some(4)]);
    }
}
