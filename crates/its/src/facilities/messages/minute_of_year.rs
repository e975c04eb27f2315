//! `MinuteOfTheYear` and `DSecond` (TS 103 301, module ETSI-ITS-DSRC): a time in UTC without the year.

use viaduct_units::Tai;

/// `MinuteOfTheYear`: the first invalid value.
const MINUTE_INVALID: u32 = 527_040;
/// `DSecond`: first value that is no millisecond of a minute. 60 000 to 60 999 are those of a leap second, 65 535 is
/// unavailable.
const MILLIS_END: u16 = 61_000;
const NANOS_PER_MILLI: i64 = 1_000_000;
const NANOS_PER_MINUTE: i64 = 60_000 * NANOS_PER_MILLI;
const NANOS_PER_DAY: i64 = 24 * 60 * NANOS_PER_MINUTE;
/// Days of 400 years, after which the calendar repeats.
const DAYS_PER_CYCLE: i64 = 146_097;

/// Returns the time with that minute and millisecond that is nearest to the reception, or `None` if either is
/// unavailable.
pub(super) fn moment(minute: u32, millis: u16, reception: Tai) -> Option<Tai> {
    if minute >= MINUTE_INVALID || millis >= MILLIS_END {
        return None;
    }
    let into_year = i64::from(minute) * NANOS_PER_MINUTE + i64::from(millis) * NANOS_PER_MILLI;
    let now = reception.unix_nanos();
    // Near New Year this year is wrong by at most one, so the nearest time is in it or in a year next to it.
    let year = 1970 + (now.div_euclid(NANOS_PER_DAY) * 400).div_euclid(DAYS_PER_CYCLE);
    let candidates = (year - 1..=year + 1).map(|year| year_start(year).saturating_add(into_year));
    candidates.min_by_key(|moment| moment.abs_diff(now)).map(Tai::from_unix_nanos)
}

/// Returns the nanoseconds from 1970 to the beginning of a year; saturates beyond the range of [`Tai`].
fn year_start(year: i64) -> i64 {
    let leap_days = |years: i64| years.div_euclid(4) - years.div_euclid(100) + years.div_euclid(400);
    let days = 365 * (year - 1970) + leap_days(year - 1) - leap_days(1969);
    days.saturating_mul(NANOS_PER_DAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-22 07:00:00 UTC, minute 468 420 of its year.
    const NOW_S: i64 = 1_795_330_800;

    fn unix_s(minute: u32, millis: u16, reception_s: i64) -> Option<i64> {
        let reception = Tai::from_unix_nanos(reception_s * 1_000_000_000);
        moment(minute, millis, reception).map(|moment| moment.unix_nanos() / 1_000_000_000)
    }

    #[test]
    fn a_minute_is_one_of_the_receptions_year() {
        let minute = 325 * 24 * 60 + 7 * 60;
        assert_eq!(unix_s(minute, 0, NOW_S), Some(NOW_S));
        assert_eq!(unix_s(minute - 1, 59_999, NOW_S), Some(NOW_S - 1));
        assert_eq!(unix_s(minute + 1, 1000, NOW_S), Some(NOW_S + 61));
    }

    #[test]
    fn the_nearest_year_is_taken_at_new_year() {
        // 2027-01-01 00:00:10 UTC, and 2026 has 365 days.
        let new_year = 1_798_761_600;
        assert_eq!(unix_s(365 * 24 * 60 - 1, 58_000, new_year + 10), Some(new_year - 2));
        assert_eq!(unix_s(0, 2000, new_year - 10), Some(new_year + 2));
        // 2028 is a leap year: its last minute has number 527 039.
        assert_eq!(unix_s(527_039, 0, 1_861_920_000), Some(1_861_920_000 - 60));
    }

    #[test]
    fn an_unavailable_value_is_none() {
        assert_eq!(unix_s(527_040, 0, NOW_S), None);
        assert_eq!(unix_s(0, 65_535, NOW_S), None);
        assert_eq!(unix_s(0, 61_000, NOW_S), None);
        assert!(unix_s(0, 60_999, NOW_S).is_some());
    }

    #[test]
    fn any_reception_has_a_nearest_year() {
        for nanos in [i64::MIN, -1, 0, i64::MAX] {
            assert!(moment(527_039, 60_999, Tai::from_unix_nanos(nanos)).is_some());
        }
    }
}
