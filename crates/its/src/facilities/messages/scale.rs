//! Conversion between quantities and the scaled integers and "unavailable" codes of the data dictionary (TS 102 894-2).
//!
//! Release 1 and release 2 have the same scales and codes for these types.

use viaduct_units::{Degrees, Metres, MetresPerSecond, Position};

/// Tenths of a microdegree in a degree (`Latitude`, `Longitude`).
const PER_DEGREE: f64 = 1e7;
/// Centimetres in a metre.
const CM_PER_M: f64 = 100.0;
/// Tenths in a unit.
const TENTHS: f64 = 10.0;

/// `Latitude`: unavailable.
pub(crate) const LATITUDE_UNAVAILABLE: i32 = 900_000_001;
/// `Longitude`: unavailable.
pub(crate) const LONGITUDE_UNAVAILABLE: i32 = 1_800_000_001;
/// `AltitudeValue`: unavailable.
pub(crate) const ALTITUDE_UNAVAILABLE: i32 = 800_001;
/// `SpeedValue`: unavailable.
pub(crate) const SPEED_UNAVAILABLE: u16 = 16_383;
/// `HeadingValue`, `Wgs84AngleValue`: unavailable.
pub(crate) const HEADING_UNAVAILABLE: u16 = 3601;

/// Returns the scaled number, rounded and limited to the range; NaN becomes the lower end.
pub(crate) fn scaled(value: f64, factor: f64, low: i32, high: i32) -> i32 {
    #[expect(clippy::cast_possible_truncation, reason = "clamped; a cast of NaN gives 0, which `clamp` then moves")]
    let rounded = (value * factor).round().clamp(f64::from(low), f64::from(high)) as i32;
    rounded.clamp(low, high)
}

/// Returns the scaled number for a field of 16 bits.
pub(crate) fn scaled_u16(value: f64, factor: f64, low: u16, high: u16) -> u16 {
    u16::try_from(scaled(value, factor, low.into(), high.into())).unwrap_or(low)
}

/// Returns the scaled number for a signed field of 16 bits.
pub(crate) fn scaled_i16(value: f64, factor: f64, low: i16, high: i16) -> i16 {
    i16::try_from(scaled(value, factor, low.into(), high.into())).unwrap_or(low)
}

/// Returns the scaled number for a field of 8 bits.
pub(crate) fn scaled_u8(value: f64, factor: f64, low: u8, high: u8) -> u8 {
    u8::try_from(scaled(value, factor, low.into(), high.into())).unwrap_or(low)
}

/// Returns a confidence of seven bits: 1 to 125, or 126 for out of range. The caller handles 127, unavailable.
pub(crate) fn confidence(value: f64, factor: f64) -> u8 {
    scaled_u8(value, factor, 1, 126)
}

/// Returns the first class whose bound is not below the value, or `beyond` if there is none.
pub(crate) fn class<T: Copy>(value: f64, classes: &[(f64, T)], beyond: T) -> T {
    classes.iter().find(|(bound, _)| value <= *bound).map_or(beyond, |(_, class)| *class)
}

pub(crate) fn position(latitude: i32, longitude: i32) -> Option<Position> {
    let known = latitude != LATITUDE_UNAVAILABLE && longitude != LONGITUDE_UNAVAILABLE;
    known.then(|| Position::new(f64::from(latitude) / PER_DEGREE, f64::from(longitude) / PER_DEGREE))
}

/// Returns `Latitude` and `Longitude`.
pub(crate) fn coordinates(position: Option<Position>) -> (i32, i32) {
    position.map_or((LATITUDE_UNAVAILABLE, LONGITUDE_UNAVAILABLE), |at| {
        (
            scaled(at.latitude.value(), PER_DEGREE, -900_000_000, 900_000_000),
            scaled(at.longitude.value(), PER_DEGREE, -1_800_000_000, 1_800_000_000),
        )
    })
}

pub(crate) fn altitude(value: i32) -> Option<Metres> {
    (value != ALTITUDE_UNAVAILABLE).then(|| Metres(f64::from(value) / CM_PER_M))
}

/// Returns `AltitudeValue`.
pub(crate) fn altitude_value(altitude: Option<Metres>) -> i32 {
    altitude.map_or(ALTITUDE_UNAVAILABLE, |altitude| scaled(altitude.value(), CM_PER_M, -100_000, 800_000))
}

pub(crate) fn speed(value: u16) -> Option<MetresPerSecond> {
    (value != SPEED_UNAVAILABLE).then(|| MetresPerSecond(f64::from(value) / CM_PER_M))
}

/// Returns `SpeedValue`: the magnitude of the speed. `DriveDirection` has its direction.
pub(crate) fn speed_value(speed: Option<MetresPerSecond>) -> u16 {
    speed.map_or(SPEED_UNAVAILABLE, |speed| scaled_u16(speed.value().abs(), CM_PER_M, 0, SPEED_UNAVAILABLE - 1))
}

pub(crate) fn heading(value: u16) -> Option<Degrees> {
    // 3600 should not be used; it is read as north.
    (value != HEADING_UNAVAILABLE).then(|| Degrees(f64::from(value) / TENTHS).normalised())
}

/// Returns `HeadingValue`.
pub(crate) fn heading_value(heading: Option<Degrees>) -> u16 {
    heading.map_or(HEADING_UNAVAILABLE, |heading| scaled_u16(heading.normalised().value(), TENTHS, 0, 3600) % 3600)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unavailable_codes_are_none_and_their_neighbours_are_not() {
        assert_eq!(position(LATITUDE_UNAVAILABLE, 0), None);
        assert_eq!(position(0, LONGITUDE_UNAVAILABLE), None);
        assert_eq!(position(900_000_000, 1_800_000_000), Some(Position::new(90.0, 180.0)));
        assert_eq!(position(-900_000_000, -1_800_000_000), Some(Position::new(-90.0, -180.0)));
        assert_eq!((altitude(800_001), altitude(800_000)), (None, Some(Metres(8000.0))));
        assert_eq!(altitude(-100_000), Some(Metres(-1000.0)));
        assert_eq!((speed(16_383), speed(16_382)), (None, Some(MetresPerSecond(163.82))));
        assert_eq!(speed(0), Some(MetresPerSecond(0.0)));
        assert_eq!((heading(3601), heading(3600)), (None, Some(Degrees(0.0))));
        assert_eq!(heading(3599), Some(Degrees(359.9)));
    }

    #[test]
    fn quantities_beyond_a_field_take_its_last_value() {
        assert_eq!(coordinates(Some(Position::new(91.0, -181.0))), (900_000_000, -1_800_000_000));
        assert_eq!(coordinates(None), (LATITUDE_UNAVAILABLE, LONGITUDE_UNAVAILABLE));
        assert_eq!(altitude_value(Some(Metres(9000.0))), 800_000);
        assert_eq!(altitude_value(Some(Metres(-2000.0))), -100_000);
        assert_eq!(speed_value(Some(MetresPerSecond(1000.0))), 16_382);
        assert_eq!(speed_value(Some(MetresPerSecond(-2.5))), 250);
        for (degrees, expected) in [(359.94, 3599), (359.96, 0), (-0.1, 3599), (360.0, 0), (90.0, 900)] {
            assert_eq!(heading_value(Some(Degrees(degrees))), expected, "{degrees}");
        }
        assert_eq!(scaled(f64::NAN, 1.0, 1, 5), 1, "not a number is no reason to leave the range");
        assert_eq!(scaled(f64::INFINITY, 1.0, 1, 5), 5);
    }

    #[test]
    fn every_value_of_a_field_round_trips() {
        assert!((0..=16_383).all(|value| speed_value(speed(value)) == value));
        assert!((0..3600).chain([3601]).all(|value| heading_value(heading(value)) == value));
        assert!((-100_000..=800_001).all(|value| altitude_value(altitude(value)) == value));
        for value in (-900_000_000..=900_000_000).step_by(99_991) {
            assert_eq!(coordinates(position(value, value * 2)), (value, value * 2));
        }
    }
}
