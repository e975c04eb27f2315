//! The difference between a short overload and a lasting one.

use std::time::Duration;

use viaduct_units::Mono;

/// Longest interval between the frames of a stream for which an overload is remembered.
const INTERVAL_MAX: Duration = Duration::from_secs(1);

/// The overload of the link, as seen at the frames.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Overload {
    /// First and latest time at which there was an overload, or `None` if there was none lately.
    seen: Option<(Mono, Mono)>,
}

impl Overload {
    /// Records the overload at a frame. Returns `true` if it has lasted for a quarter of the shortest lifespan.
    ///
    /// The overload has ended if none was seen for a lifespan, or for the interval between the frames of a stream if that is longer.
    pub(super) fn is_lasting(
        &mut self,
        is_overloaded: bool,
        now: Mono,
        lifespan: Duration,
        interval: Duration,
    ) -> bool {
        let memory = lifespan.max(interval.min(INTERVAL_MAX) * 3 / 2);
        self.seen = self.seen.filter(|(_, latest)| now.since(*latest) <= memory);
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
        let mut lasting = |ms, now_overloaded| {
            overload.is_lasting(now_overloaded, at(ms), Duration::from_millis(400), Duration::from_millis(100))
        };
        assert!(!lasting(1000, true));
        assert!(!lasting(1050, true));
        assert!(lasting(1100, true));
        // A frame between sees none.
        assert!(!lasting(1150, false));
        assert!(lasting(1200, true));
        // It has ended for longer than a lifespan.
        assert!(!lasting(1601, true));
    }

    #[test]
    fn an_overload_lasts_although_the_frames_come_less_often_than_their_lifespan() {
        let at = |ms| Mono(Duration::from_millis(ms));
        let mut overload = Overload::default();
        let (lifespan, interval) = (Duration::from_millis(80), Duration::from_millis(100));
        for (ms, is_overloaded, expected) in
            [(1000, false, false), (1005, true, false), (1100, false, false), (1105, true, true)]
        {
            assert_eq!(overload.is_lasting(is_overloaded, at(ms), lifespan, interval), expected, "{ms}");
        }
        assert!(!overload.is_lasting(true, at(1300), lifespan, interval));
    }
}
