//! The difference between a short overload and a lasting one.

use std::time::Duration;

use viaduct_units::Mono;

/// The overload of the link, as seen at the frames.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Overload {
    /// First and latest time at which there was an overload, or `None` if there was none for a lifespan.
    seen: Option<(Mono, Mono)>,
}

impl Overload {
    /// Records the overload at a frame. Returns `true` if it has lasted for a quarter of the lifespan of the frames.
    pub(super) fn is_lasting(&mut self, is_overloaded: bool, now: Mono, lifespan: Duration) -> bool {
        self.seen = self.seen.filter(|(_, latest)| now.since(*latest) <= lifespan);
        if !is_overloaded {
            return false;
        }
        let since = self.seen.map_or(now, |(since, _)| since);
        self.seen = Some((since, now));
        now.since(since) >= lifespan / 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_lasting_overload_counts() {
        let at = |ms| Mono(Duration::from_millis(ms));
        let mut overload = Overload::default();
        let mut lasting = |ms, now_overloaded| overload.is_lasting(now_overloaded, at(ms), Duration::from_millis(400));
        assert!(!lasting(1000, true));
        assert!(!lasting(1050, true));
        assert!(lasting(1100, true));
        // A frame between sees none.
        assert!(!lasting(1150, false));
        assert!(lasting(1200, true));
        // It has ended for longer than a lifespan.
        assert!(!lasting(1601, true));
    }
}
