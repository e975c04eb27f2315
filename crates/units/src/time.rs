//! Time: monotonic time for deadlines, and atomic time (TAI) for messages.

use std::time::Duration;

/// Nanoseconds of one second.
const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// The ITS epoch, 2004-01-01T00:00:00Z, as [`Tai`] (TAI was then 32 s ahead of UTC).
pub const ITS_EPOCH_TAI: Tai = Tai((1_072_915_200 + 32) * NANOS_PER_SECOND);

/// Leap seconds since the ITS epoch: from this Unix time on, TAI minus UTC has this value (IERS Bulletin C).
const LEAP_SECONDS: [(i64, i64); 6] = [
    (1_483_228_800, 37), // 2017-01-01
    (1_435_708_800, 36), // 2015-07-01
    (1_341_100_800, 35), // 2012-07-01
    (1_230_768_000, 34), // 2009-01-01
    (1_136_073_600, 33), // 2006-01-01
    (i64::MIN, 32),      // before: 32 since 1999, which is early enough for ITS
];

/// One moment on both clocks, read once and passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now {
    /// Monotonic time, for deadlines and intervals. It never steps.
    pub mono: Mono,
    /// Atomic time, for messages. It may be adjusted, and has no leap seconds.
    pub tai: Tai,
}

impl Now {
    /// Returns the moment `interval` later on both clocks.
    #[must_use]
    pub fn plus(self, interval: Duration) -> Self {
        Self { mono: self.mono.plus(interval), tai: self.tai.plus(interval) }
    }
}

/// A monotonic time: CLOCK_MONOTONIC of the system, which has no meaning on other machines, or the time since the
/// creation of a manual clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mono(pub Duration);

impl Mono {
    /// Returns the time from `earlier` to this one, or zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// Returns the time `interval` later.
    #[must_use]
    pub fn plus(self, interval: Duration) -> Self {
        Self(self.0.saturating_add(interval))
    }
}

/// International atomic time: nanoseconds since 1970-01-01T00:00:00 TAI.
///
/// The range is the years 1677 to 2262. Conversion from and to UTC uses the leap seconds published up to 2026.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tai(i64);

impl Tai {
    /// Returns the time of a number of nanoseconds since 1970-01-01T00:00:00 TAI.
    #[must_use]
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// Returns the nanoseconds since 1970-01-01T00:00:00 TAI.
    #[must_use]
    pub const fn nanos(self) -> i64 {
        self.0
    }

    /// Returns the time of a Unix time (UTC without leap seconds) in nanoseconds.
    #[must_use]
    pub fn from_unix_nanos(nanos: i64) -> Self {
        Self(nanos.saturating_add(tai_minus_utc(nanos.div_euclid(NANOS_PER_SECOND)) * NANOS_PER_SECOND))
    }

    /// Returns the Unix time (UTC without leap seconds) in nanoseconds.
    #[must_use]
    pub fn unix_nanos(self) -> i64 {
        let seconds = self.0.div_euclid(NANOS_PER_SECOND);
        let offset = LEAP_SECONDS
            .iter()
            .find(|(since, offset)| seconds.saturating_sub(*offset) >= *since)
            .map_or(32, |(_, offset)| *offset);
        self.0.saturating_sub(offset * NANOS_PER_SECOND)
    }

    /// Returns the time `interval` later.
    #[must_use]
    pub fn plus(self, interval: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(interval.as_nanos()).unwrap_or(i64::MAX)))
    }

    /// Returns the time from `earlier` to this one, or zero if `earlier` is later (clocks of two machines may differ).
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Returns the `TimestampIts` of TS 102 894-2: milliseconds since the ITS epoch, leap seconds included.
    #[must_use]
    pub fn timestamp_its(self) -> TimestampIts {
        TimestampIts(u64::try_from(self.0.saturating_sub(ITS_EPOCH_TAI.0) / 1_000_000).unwrap_or(0))
    }
}

/// Returns TAI minus UTC in seconds, at a Unix time in seconds.
fn tai_minus_utc(unix_seconds: i64) -> i64 {
    LEAP_SECONDS.iter().find(|(since, _)| unix_seconds >= *since).map_or(32, |(_, offset)| *offset)
}

/// Milliseconds of TAI since 2004-01-01T00:00:00Z (`TimestampIts`, TS 102 894-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimestampIts(pub u64);

impl TimestampIts {
    /// Returns the same time as [`Tai`].
    #[must_use]
    pub fn tai(self) -> Tai {
        let millis = i64::try_from(self.0).unwrap_or(i64::MAX);
        Tai(millis.saturating_mul(1_000_000).saturating_add(ITS_EPOCH_TAI.0))
    }

    /// Returns the `GenerationDeltaTime` of a CAM: the lowest 16 bits (EN 302 637-2, B.3).
    #[must_use]
    pub const fn generation_delta_time(self) -> u16 {
        (self.0 & 0xFFFF) as u16
    }

    /// Returns the timestamp of a GeoNetworking position vector: the lowest 32 bits (EN 302 636-4-1, 9.5.2).
    #[must_use]
    pub const fn geonet(self) -> u32 {
        (self.0 & 0xFFFF_FFFF) as u32
    }

    /// Returns the time nearest to this one whose lowest `bits` bits are `wrapped`.
    ///
    /// Used with the time of reception as `self`: messages carry timestamps that wrap (after 65.5 s with 16 bits, 49.7
    /// days with 32).
    #[must_use]
    pub const fn widen(self, wrapped: u64, bits: u32) -> Self {
        let period = 1_u64 << bits;
        let base = self.0 & !(period - 1);
        let candidate = base | (wrapped & (period - 1));
        if candidate > self.0 && candidate - self.0 > period / 2 && candidate >= period {
            Self(candidate - period)
        } else if self.0 > candidate && self.0 - candidate > period / 2 {
            Self(candidate + period)
        } else {
            Self(candidate)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TS 102 894-2, `TimestampIts`: 2007-01-01T00:00:00.000Z is 94 694 401 000.
    #[test]
    fn timestamp_its_agrees_with_the_example_of_the_data_dictionary() {
        let moment = Tai::from_unix_nanos(1_167_609_600 * NANOS_PER_SECOND);
        assert_eq!(moment.timestamp_its(), TimestampIts(94_694_401_000));
        assert_eq!(TimestampIts(94_694_401_000).tai(), moment);
    }

    #[test]
    fn a_moment_at_either_end_of_the_scale_is_still_a_moment() {
        for nanos in [i64::MIN, i64::MAX] {
            let moment = Tai::from_nanos(nanos);
            assert!(moment.timestamp_its().0 == 0 || nanos > 0);
            assert_eq!(Tai::from_unix_nanos(moment.unix_nanos()).timestamp_its(), moment.timestamp_its());
        }
    }

    #[test]
    fn utc_round_trips_across_each_leap_second() {
        for (since, _) in LEAP_SECONDS.iter().filter(|(since, _)| *since > 0) {
            for seconds in [since - 1, *since, since + 1] {
                let nanos = seconds * NANOS_PER_SECOND + 5;
                assert_eq!(Tai::from_unix_nanos(nanos).unix_nanos(), nanos, "{seconds}");
            }
        }
        assert_eq!(Tai::from_unix_nanos(1_700_000_000 * NANOS_PER_SECOND).nanos() / NANOS_PER_SECOND, 1_700_000_037);
    }

    #[test]
    fn a_wrapped_counter_widens_to_the_nearest_moment() {
        let reception = TimestampIts(0x1_0000_0010);
        assert_eq!(reception.widen(0x0008, 16), TimestampIts(0x1_0000_0008));
        assert_eq!(reception.widen(0xFFF0, 16), TimestampIts(0x0_FFFF_FFF0));
        let before_wrap = TimestampIts(0x1_0000_FFF0);
        assert_eq!(before_wrap.widen(0x0005, 16), TimestampIts(0x1_0001_0005));
        assert_eq!(TimestampIts(3).widen(0xFFFF, 16), TimestampIts(0xFFFF), "nothing lies before the epoch");
    }
}
