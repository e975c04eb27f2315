//! Latitude and longitude in position vectors and areas: 32 bits each, in 1/10 microdegree.

use viaduct_units::{Degrees, Position};

/// Units per degree (1/10 microdegree).
const PER_DEGREE: f64 = 1e7;

/// Parses a position. The inner `None` is a position that is not on earth, which other stations use as "unavailable".
/// The outer `None` means fewer than eight octets.
pub(super) fn parse(octets: &[u8]) -> Option<(Option<Position>, &[u8])> {
    let (&latitude, rest) = octets.split_first_chunk::<4>()?;
    let (&longitude, rest) = rest.split_first_chunk::<4>()?;
    Some((position(i32::from_be_bytes(latitude), i32::from_be_bytes(longitude)), rest))
}

/// Appends a position. An unknown position is written as a value that is not on earth.
#[expect(clippy::cast_possible_truncation, reason = "a coordinate of the earth fits")]
pub(super) fn write(position: Option<Position>, out: &mut Vec<u8>) {
    let tenths = |degrees: Degrees| (degrees.value() * PER_DEGREE).round() as i32;
    let (latitude, longitude) = position.map_or((i32::MAX, i32::MAX), |at| (tenths(at.latitude), tenths(at.longitude)));
    out.extend_from_slice(&latitude.to_be_bytes());
    out.extend_from_slice(&longitude.to_be_bytes());
}

fn position(latitude: i32, longitude: i32) -> Option<Position> {
    let (latitude, longitude) = (f64::from(latitude) / PER_DEGREE, f64::from(longitude) / PER_DEGREE);
    let on_earth = latitude.abs() <= 90.0 && longitude.abs() <= 180.0;
    on_earth.then(|| Position::new(latitude, longitude))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn position_outside_the_valid_range_is_none() {
        assert_eq!(position(900_000_001, 0), None, "unavailable in the facilities' code");
        assert_eq!(position(0, -1_800_000_001), None);
        assert!(position(900_000_000, 1_800_000_000).is_some());
    }

    #[test]
    fn position_round_trips() {
        for expected in [Some(Position::new(45.014_765_3, -7.568_490_8)), None] {
            let mut octets = Vec::new();
            write(expected, &mut octets);
            assert_eq!(parse(&octets), Some((expected, &[][..])));
            assert_eq!(parse(&octets[..7]), None);
        }
    }
}
