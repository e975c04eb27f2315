//! Times as text.

use std::fmt::Write as _;

use viaduct_units::Tai;

/// Returns the time in UTC in the format of RFC 3339, with microseconds: `2024-09-11T13:30:34.092870Z`.
#[must_use]
pub fn timestamp_text(moment: Tai) -> String {
    let nanos = moment.unix_nanos();
    let (days, of_day) = (nanos.div_euclid(86_400_000_000_000), nanos.rem_euclid(86_400_000_000_000));
    let (year, month, day) = civil_from_days(days);
    let (seconds, micros) = (of_day / 1_000_000_000, of_day / 1_000 % 1_000_000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let mut text = String::with_capacity(27);
    // Writing into a String cannot fail.
    let _ = write!(text, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z");
    text
}

/// Returns year, month and day for a number of days since 1970-01-01, in the proleptic Gregorian calendar.
///
/// Years are counted from 1 March, so that the leap day is the last of its year, in eras of 400 years (146 097 days).
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_written_in_utc() {
        for (nanos, expected) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_400_000_000_000, "2000-02-29T00:00:00.000000Z"),
            (1_726_061_434_092_870_999, "2024-09-11T13:30:34.092870Z"),
            (1_709_251_199_999_999_999, "2024-02-29T23:59:59.999999Z"),
        ] {
            assert_eq!(timestamp_text(Tai::from_unix_nanos(nanos)), expected);
        }
    }
}
