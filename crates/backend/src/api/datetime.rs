//! Times and intervals in queries: RFC 3339, and `a/b`, `../b`, `a/..` by OGC API Features.

use viaduct_units::Tai;

use super::problem::shown;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Answers show times to the microsecond, so a time in a query covers the whole microsecond.
const BELOW_MICROSECOND_NANOS: i64 = 999;

/// First and last time of an interval; `None` if that end is open.
pub(super) type Interval = (Option<Tai>, Option<Tai>);

/// Parses a time or an interval.
///
/// # Errors
/// Returns a text that explains the problem.
pub(super) fn interval(text: &str) -> Result<Interval, String> {
    let (from, to) = match text.split_once('/') {
        Some((from, to)) => (bound(from)?, bound(to)?),
        None => (Some(moment(text)?), Some(moment(text)?)),
    };
    if let (Some(from), Some(to)) = (from, to)
        && from > to
    {
        return Err(format!("the interval `{}` ends before it starts", shown(text)));
    }
    Ok((from, to.map(|to| Tai::from_nanos(to.nanos().saturating_add(BELOW_MICROSECOND_NANOS)))))
}

fn bound(text: &str) -> Result<Option<Tai>, String> {
    match text {
        "" | ".." => Ok(None),
        _ => moment(text).map(Some),
    }
}

fn moment(text: &str) -> Result<Tai, String> {
    rfc3339(text)
        .ok_or_else(|| format!("`{}` is not a time like 2026-01-31T12:00:00Z, in the years 1678 to 2261", shown(text)))
}

/// Parses `2024-09-11T13:30:34.09287Z`, or with an offset like `+02:00` instead of `Z`; up to nine digits of a second.
///
/// A plus sign that the client did not escape arrives as a space, and is accepted.
fn rfc3339(text: &str) -> Option<Tai> {
    let (date, time) = (text.get(..10)?, text.get(11..)?);
    if !matches!(text.as_bytes().get(10)?, b'T' | b't' | b' ') {
        return None;
    }
    let days = days(date)?;
    let (clock, rest) = time.split_at_checked(8)?;
    let seconds = second_of_day(clock)?;
    let (nanos, zone) = fraction(rest)?;
    let unix = days.checked_mul(86_400)?.checked_add(seconds)?.checked_sub(offset_seconds(zone)?)?;
    (1678..=2261).contains(&number(date.get(..4)?)?).then_some(())?;
    Some(Tai::from_unix_nanos(unix.checked_mul(NANOS_PER_SECOND)?.checked_add(nanos)?))
}

/// Returns the days since 1970-01-01 of `2024-09-11`.
fn days(date: &str) -> Option<i64> {
    let (year, month, day) = (number(date.get(..4)?)?, number(date.get(5..7)?)?, number(date.get(8..)?)?);
    separated(date, 4, b'-')?;
    separated(date, 7, b'-')?;
    (1..=12).contains(&month).then_some(())?;
    (1..=days_of_month(year, month)).contains(&day).then_some(())?;
    // Years start on 1 March, so that the leap day is the last of its year.
    let (year, month_from_march) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    Some(year * 365 + leap_days + (153 * month_from_march + 2) / 5 + day - 1 - 719_468)
}

fn days_of_month(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => 31,
    }
}

/// Returns the seconds since midnight of `13:30:34`; a leap second counts as the first second of the next minute.
fn second_of_day(clock: &str) -> Option<i64> {
    let (hour, minute, second) = (number(clock.get(..2)?)?, number(clock.get(3..5)?)?, number(clock.get(6..)?)?);
    separated(clock, 2, b':')?;
    separated(clock, 5, b':')?;
    (hour < 24 && minute < 60 && second <= 60).then_some(hour * 3600 + minute * 60 + second)
}

/// Returns the nanoseconds of `.09287Z`, and the rest `Z`.
fn fraction(text: &str) -> Option<(i64, &str)> {
    let Some(digits) = text.strip_prefix('.') else { return Some((0, text)) };
    let length = digits.bytes().take_while(u8::is_ascii_digit).count();
    let scale = 10_i64.checked_pow(u32::try_from(9_usize.checked_sub(length)?).ok()?)?;
    let (digits, zone) = digits.split_at(length);
    Some((number(digits)? * scale, zone))
}

fn offset_seconds(zone: &str) -> Option<i64> {
    let sign = match zone.as_bytes().first()? {
        b'Z' | b'z' if zone.len() == 1 => return Some(0),
        b'+' | b' ' => 1,
        b'-' => -1,
        _ => return None,
    };
    let offset = zone.get(1..)?;
    separated(offset, 2, b':')?;
    let (hours, minutes) = (number(offset.get(..2)?)?, number(offset.get(3..)?)?);
    (offset.len() == 5 && hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// Parses a number that consists of digits only; `parse` would accept a sign.
fn number(digits: &str) -> Option<i64> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

fn separated(text: &str, at: usize, separator: u8) -> Option<()> {
    (*text.as_bytes().get(at)? == separator).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_are_parsed_with_zone_and_fraction() {
        for (text, unix_nanos) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T00:00:00z", 951_782_400_000_000_000),
            ("2024-09-11T13:30:34.092870999Z", 1_726_061_434_092_870_999),
            ("2024-09-11T15:30:34.09287+02:00", 1_726_061_434_092_870_000),
            ("2024-09-11T15:30:34.09287 02:00", 1_726_061_434_092_870_000),
            ("2024-09-11T11:00:34.09287-02:30", 1_726_061_434_092_870_000),
            ("1969-12-31T23:59:59.5Z", -500_000_000),
        ] {
            assert_eq!(rfc3339(text).map(Tai::unix_nanos), Some(unix_nanos), "{text}");
        }
    }

    #[test]
    fn an_invalid_time_is_rejected() {
        for text in [
            "",
            "now",
            "2024-09-11",
            "2024-09-11T13:30:34",
            "2024-13-01T00:00:00Z",
            "2023-02-29T00:00:00Z",
            "2024-09-11T24:00:00Z",
            "2024-09-11T13:30:34.Z",
            "2024-09-11T13:30:34.1234567890Z",
            "2024-09-11T13:30:34+2:00",
            "2024-09-11T13:30:34+02:0",
            "2024/09/11T13:30:34Z",
            "+024-09-11T13:30:34Z",
            "0001-01-01T00:00:00Z",
            "9999-01-01T00:00:00Z",
            "2024-09-11Tä3:30:34Z",
        ] {
            assert_eq!(rfc3339(text), None, "{text}");
        }
    }

    #[test]
    fn intervals_may_be_open_and_include_their_last_microsecond() {
        let at = "2024-09-11T13:30:34.092870Z";
        let moment = rfc3339(at).unwrap();
        let last = Tai::from_nanos(moment.nanos() + 999);
        assert_eq!(interval(at), Ok((Some(moment), Some(last))));
        assert_eq!(interval(&format!("../{at}")), Ok((None, Some(last))));
        assert_eq!(interval(&format!("{at}/")), Ok((Some(moment), None)));
        assert_eq!(interval("../.."), Ok((None, None)));
        assert!(interval("2024-01-02T00:00:00Z/2024-01-01T00:00:00Z").unwrap_err().contains("ends before"));
        assert!(interval("yesterday").unwrap_err().contains("yesterday"));
    }

    proptest! {
        #[test]
        fn a_written_time_is_parsed(micros in -9_000_000_000_000_000_i64..9_000_000_000_000_000) {
            let moment = Tai::from_unix_nanos(micros * 1000);
            let text = viaduct_v2x_json::timestamp_text(moment);
            prop_assert_eq!(rfc3339(&text), Some(moment), "{}", text);
        }

        #[test]
        fn no_text_causes_a_panic(text in "[0-9TZ:.+ä/ -]{0,40}") {
            let _ = interval(&text);
        }
    }
}
