//! Times and durations.

use super::extensible::extensible_integer;
use rasn::prelude::*;
/// Milliseconds since 2004-01-01T00:00:00Z, leap seconds counted (TAI).
///
/// 0 to 4 398 046 511 103.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=4398046511103"))]
pub struct TimestampIts(pub u64);

/// The lower 16 bits of [`TimestampIts`]: milliseconds that wrap each 65.536 s.
///
/// 0 to 65 535.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=65535"))]
pub struct GenerationDeltaTime(pub u16);

impl GenerationDeltaTime {
    /// `oneMilliSec`.
    pub const ONE_MILLI_SEC: Self = Self(1);
}

/// Duration in ms.
///
/// 1 to 10 000.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("1..=10000"))]
pub struct DeltaTimeMilliSecondPositive(pub u16);

/// Difference of time in ms.
///
/// -2048 to 2047.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("-2048..=2047"))]
pub struct DeltaTimeMilliSecondSigned(pub i16);

/// Duration in units of 0.25 s.
///
/// 1 to 255.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("1..=255"))]
pub struct DeltaTimeQuarterSecond(pub u8);

impl DeltaTimeQuarterSecond {
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(255);
}

/// Duration in units of 0.1 s.
///
/// 0 to 127.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=127"))]
pub struct DeltaTimeTenthOfSecond(pub u8);

impl DeltaTimeTenthOfSecond {
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(127);
}

/// Duration in s.
///
/// 0 to 86 400.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=86400"))]
pub struct DeltaTimeSecond(pub u32);

/// Duration in units of 10 s.
///
/// 0 to 127.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=127"))]
pub struct DeltaTimeTenSeconds(pub u8);

/// Travel time between two points in units of 10 ms. Longer times than 655.35 s are outside the root and allowed.
///
/// 1 to 65 535; other values are extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathDeltaTime(pub i64);

extensible_integer!(PathDeltaTime, 1, 65_535);

/// Time until a predicted point is reached, in the unit that fits it.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(choice, automatic_tags)]
#[non_exhaustive]
pub enum PathDeltaTimeChoice {
    /// Time in 0.1 s.
    #[rasn(identifier = "deltaTimeHighPrecision")]
    DeltaTimeHighPrecision(DeltaTimeTenthOfSecond),
    /// Time in 10 s.
    #[rasn(identifier = "deltaTimeBigRange")]
    DeltaTimeBigRange(DeltaTimeTenSeconds),
    /// Time in 1 s.
    #[rasn(extension_addition, identifier = "deltaTimeMidRange")]
    DeltaTimeMidRange(DeltaTimeSecond),
}

/// Time since an object was first seen, in ms.
///
/// 0 to 2047.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=2047"))]
pub struct ObjectAge(pub u16);
