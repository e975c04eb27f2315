//! The prediction of points, of basic operations only, so that every machine computes the same bits.

use std::f64::consts::{FRAC_2_PI, FRAC_PI_2};
use std::sync::OnceLock;

/// Steps of the azimuth in a turn: 0.01 degrees.
pub(super) const TURN: i32 = 36_000;
/// Steps of the azimuth in a degree.
const DEGREE: f32 = 100.0;
/// Radians of a degree.
const RADIANS: f32 = std::f32::consts::PI / 180.0;
/// Most beams of a lidar.
pub(super) const BEAMS_MAX: usize = 255;
/// Numbers of beams, with one more than there are.
pub(super) const BEAM_IDS: usize = BEAMS_MAX + 1;
/// Largest distance in steps.
pub(super) const DISTANCE_MAX: i32 = 1 << 22;
/// Steps that a column turns further than usual, at most. A gap of several columns does not count.
const FURTHER_MAX: i32 = 4;

/// The part of a quarter turn that remains after [`FRAC_PI_2`].
const QUARTER_REST: f64 = 6.123_233_995_736_766e-17;
/// Coefficients of the series of the sine, without the first term, from the last one.
const SINE: [f64; 7] = [
    -1.0 / 1_307_674_368_000.0,
    1.0 / 6_227_020_800.0,
    -1.0 / 39_916_800.0,
    1.0 / 362_880.0,
    -1.0 / 5040.0,
    1.0 / 120.0,
    -1.0 / 6.0,
];
/// Coefficients of the series of the cosine, without the first term, from the last one.
const COSINE: [f64; 8] = [
    1.0 / 20_922_789_888_000.0,
    -1.0 / 87_178_291_200.0,
    1.0 / 479_001_600.0,
    -1.0 / 3_628_800.0,
    1.0 / 40_320.0,
    -1.0 / 720.0,
    1.0 / 24.0,
    -0.5,
];

/// A beam of the lidar.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Beam {
    /// Number of the beam in the points.
    pub(super) ring: u16,
    /// Metres along the ground per step of the distance.
    pub(super) along: f32,
    /// Metres upwards per step of the distance.
    pub(super) up: f32,
    /// Steps from the azimuth of the column.
    pub(super) offset: f32,
    /// Growth of the offset for each step that the column turns further than usual.
    pub(super) rate: f32,
    /// Time from that of the column.
    pub(super) time: f32,
}

impl Beam {
    /// Returns the azimuth that is expected in a column.
    #[inline]
    pub(super) fn azimuth(&self, column: i32, further: i32) -> i32 {
        let offset = f64::from(self.offset) + f64::from(further) * f64::from(self.rate) + 0.5;
        // The conversion rounds towards zero, which is down for positive numbers.
        wrapped(column + (offset + f64::from(2 * TURN)) as i32)
    }

    /// Returns the expected time of a point, in the order of float32.
    #[inline]
    pub(super) fn time_place(&self, column: f32) -> i32 {
        nearest_place(f64::from(column) + f64::from(self.time))
    }

    /// Returns the expected coordinates in the order of float32. The azimuth is clockwise, below a turn.
    #[inline]
    pub(super) fn places(&self, distance: i32, azimuth: i32, directions: &[[f32; 2]]) -> [i32; 3] {
        let [cosine, sine] = directions.get(azimuth as usize).copied().unwrap_or_default();
        let along = distance as f32 * self.along;
        [along * cosine, -(along * sine), distance as f32 * self.up].map(place)
    }
}

/// Returns cosine and sine of each azimuth, as drivers compute them: from an angle in float32.
pub(super) fn directions() -> &'static [[f32; 2]] {
    static DIRECTIONS: OnceLock<Vec<[f32; 2]>> = OnceLock::new();
    DIRECTIONS.get_or_init(|| {
        let angle = |azimuth: i32| f64::from(azimuth as f32 / DEGREE * RADIANS);
        (0..TURN).map(|azimuth| direction(angle(azimuth)).map(|length| length as f32)).collect()
    })
}

/// Returns cosine and sine of an angle of 0 to one turn in radians. Errors are below 1e-15.
fn direction(angle: f64) -> [f64; 2] {
    let quarters = (angle * FRAC_2_PI + 0.5) as i32;
    let turned = f64::from(quarters);
    let rest = (angle - turned * FRAC_PI_2) - turned * QUARTER_REST;
    let square = rest * rest;
    let sine = rest + rest * square * series(&SINE, square);
    let cosine = 1.0 + square * series(&COSINE, square);
    let (one, other) = if quarters & 1 == 0 { (cosine, sine) } else { (sine, cosine) };
    [if (quarters + 1) & 2 == 0 { one } else { -one }, if quarters & 2 == 0 { other } else { -other }]
}

/// Returns the value of a polynomial without the constant term of 1.
#[inline]
pub(super) fn series<const N: usize>(coefficients: &[f64; N], square: f64) -> f64 {
    coefficients.iter().fold(0.0, |sum, coefficient| sum * square + coefficient)
}

/// Returns the place of a number in the order of float32, so that neighbours differ by one. NaN has the place of 0, because machines
/// differ in its bits.
#[inline]
pub(super) const fn place(value: f32) -> i32 {
    if value.is_nan() { 0 } else { order(value.to_bits()) }
}

/// Returns the place of the nearest float32.
#[inline]
pub(super) const fn nearest_place(value: f64) -> i32 {
    place(value as f32)
}

/// Returns the place of a float32 with these bits.
#[inline]
pub(super) const fn order(bits: u32) -> i32 {
    (bits ^ (((bits as i32) >> 31) as u32) >> 1) as i32
}

/// Returns the bits of the float32 at a place.
#[inline]
pub(super) const fn bits_at(place: i32) -> u32 {
    (place as u32) ^ (((place >> 31) as u32) >> 1)
}

/// Returns how many steps a column turns further than usual.
#[inline]
pub(super) const fn further(column: i32, next: i32, advance: i32) -> i32 {
    let further = difference(next, column) - advance;
    if further.abs() <= FURTHER_MAX { further } else { 0 }
}

/// Returns an azimuth within 0 up to a turn.
#[inline]
pub(super) const fn wrapped(azimuth: i32) -> i32 {
    azimuth.rem_euclid(TURN)
}

/// Returns the shorter way from one azimuth to another.
#[inline]
pub(super) const fn difference(to: i32, from: i32) -> i32 {
    wrapped(to - from + TURN / 2) - TURN / 2
}

/// Returns `true` for each point that begins a column: its beam does not follow the one of the point before.
pub(super) fn starts(beams: &[u8]) -> impl Iterator<Item = bool> {
    let before = std::iter::once(u8::MAX).chain(beams.iter().copied());
    beams.iter().zip(before).map(|(beam, before)| *beam <= before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_are_those_of_the_library() {
        for step in 0..100_000 {
            let turn = f64::from(step) * std::f64::consts::TAU / 100_000.0;
            let [cosine, sine] = direction(turn);
            assert!((cosine - turn.cos()).abs() < 1e-15 && (sine - turn.sin()).abs() < 1e-15, "{turn}");
        }
    }

    #[test]
    fn neighbours_differ_by_one_and_bits_are_restored() {
        for value in [-1e30_f32, -1.5, -f32::MIN_POSITIVE, 0.0, 1.0, 3e38] {
            assert_eq!(order(value.next_up().to_bits()).wrapping_sub(order(value.to_bits())), 1, "{value}");
        }
        for bits in [0, 1, 0x8000_0000, 0x7F80_0001, 0xFFC0_0000, u32::MAX] {
            assert_eq!(bits_at(order(bits)), bits);
        }
    }
}
