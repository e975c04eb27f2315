//! Geographic positions and their accuracy.

use rasn::prelude::*;

use super::motion::{HeadingValue, Wgs84AngleValue};
/// Geographic latitude in 0.1 microdegree, north positive.
///
/// -900 000 000 to 900 000 001.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("-900000000..=900000001"))]
pub struct Latitude(pub i32);

impl Latitude {
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(900_000_001);
}

/// Geographic longitude in 0.1 microdegree, east positive.
///
/// -1 800 000 000 to 1 800 000 001.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("-1800000000..=1800000001"))]
pub struct Longitude(pub i32);

impl Longitude {
    /// `valueNotUsed`.
    pub const VALUE_NOT_USED: Self = Self(-1_800_000_000);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(1_800_000_001);
}

/// Altitude above the WGS 84 ellipsoid in 0.01 m.
///
/// -100 000 to 800 001.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("-100000..=800001"))]
pub struct AltitudeValue(pub i32);

impl AltitudeValue {
    /// `negativeOutOfRange`.
    pub const NEGATIVE_OUT_OF_RANGE: Self = Self(-100_000);
    /// `postiveOutOfRange`.
    pub const POSTIVE_OUT_OF_RANGE: Self = Self(800_000);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(800_001);
}

/// Half of the 95 % interval of an altitude.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[rasn(enumerated)]
pub enum AltitudeConfidence {
    /// Within 0.01 m.
    #[rasn(identifier = "alt-000-01")]
    Alt000_01,
    /// Within 0.02 m.
    #[rasn(identifier = "alt-000-02")]
    Alt000_02,
    /// Within 0.05 m.
    #[rasn(identifier = "alt-000-05")]
    Alt000_05,
    /// Within 0.10 m.
    #[rasn(identifier = "alt-000-10")]
    Alt000_10,
    /// Within 0.20 m.
    #[rasn(identifier = "alt-000-20")]
    Alt000_20,
    /// Within 0.50 m.
    #[rasn(identifier = "alt-000-50")]
    Alt000_50,
    /// Within 1 m.
    #[rasn(identifier = "alt-001-00")]
    Alt001_00,
    /// Within 2 m.
    #[rasn(identifier = "alt-002-00")]
    Alt002_00,
    /// Within 5 m.
    #[rasn(identifier = "alt-005-00")]
    Alt005_00,
    /// Within 10 m.
    #[rasn(identifier = "alt-010-00")]
    Alt010_00,
    /// Within 20 m.
    #[rasn(identifier = "alt-020-00")]
    Alt020_00,
    /// Within 50 m.
    #[rasn(identifier = "alt-050-00")]
    Alt050_00,
    /// Within 100 m.
    #[rasn(identifier = "alt-100-00")]
    Alt100_00,
    /// Within 200 m.
    #[rasn(identifier = "alt-200-00")]
    Alt200_00,
    /// `outOfRange`.
    #[rasn(identifier = "outOfRange")]
    OutOfRange,
    /// `unavailable`.
    #[rasn(identifier = "unavailable")]
    Unavailable,
}

/// Altitude and its accuracy.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct Altitude {
    /// Altitude above the WGS 84 ellipsoid in 0.01 m.
    #[rasn(identifier = "altitudeValue")]
    pub altitude_value: AltitudeValue,
    /// Half of the 95 % interval of an altitude.
    #[rasn(identifier = "altitudeConfidence")]
    pub altitude_confidence: AltitudeConfidence,
}

/// Semi-axis of a confidence ellipse in 0.01 m.
///
/// 0 to 4095.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=4095"))]
pub struct SemiAxisLength(pub u16);

impl SemiAxisLength {
    /// `doNotUse`.
    pub const DO_NOT_USE: Self = Self(0);
    /// `outOfRange`.
    pub const OUT_OF_RANGE: Self = Self(4094);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(4095);
}

/// 95 % confidence ellipse of a position; names of release 1.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct PosConfidenceEllipse {
    /// Length of the semi-major axis.
    #[rasn(identifier = "semiMajorConfidence")]
    pub semi_major_confidence: SemiAxisLength,
    /// Length of the semi-minor axis.
    #[rasn(identifier = "semiMinorConfidence")]
    pub semi_minor_confidence: SemiAxisLength,
    /// Direction of the major axis.
    #[rasn(identifier = "semiMajorOrientation")]
    pub semi_major_orientation: HeadingValue,
}

/// 95 % confidence ellipse of a position.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct PositionConfidenceEllipse {
    /// Length of the semi-major axis.
    #[rasn(identifier = "semiMajorAxisLength")]
    pub semi_major_axis_length: SemiAxisLength,
    /// Length of the semi-minor axis.
    #[rasn(identifier = "semiMinorAxisLength")]
    pub semi_minor_axis_length: SemiAxisLength,
    /// Direction of the major axis.
    #[rasn(identifier = "semiMajorAxisOrientation")]
    pub semi_major_axis_orientation: Wgs84AngleValue,
}

/// A position and its accuracy; names of release 1 in the ellipse.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct ReferencePosition {
    /// Latitude.
    pub latitude: Latitude,
    /// Longitude.
    pub longitude: Longitude,
    /// Accuracy of the position.
    #[rasn(identifier = "positionConfidenceEllipse")]
    pub position_confidence_ellipse: PosConfidenceEllipse,
    /// Altitude.
    pub altitude: Altitude,
}

/// A position and its accuracy.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct ReferencePositionWithConfidence {
    /// Latitude.
    pub latitude: Latitude,
    /// Longitude.
    pub longitude: Longitude,
    /// Accuracy of the position.
    #[rasn(identifier = "positionConfidenceEllipse")]
    pub position_confidence_ellipse: PositionConfidenceEllipse,
    /// Altitude.
    pub altitude: Altitude,
}

/// Difference of latitude in 0.1 microdegree.
///
/// -131 071 to 131 072.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("-131071..=131072"))]
pub struct DeltaLatitude(pub i32);

impl DeltaLatitude {
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(131_072);
}

/// Difference of longitude in 0.1 microdegree.
///
/// -131 071 to 131 072.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("-131071..=131072"))]
pub struct DeltaLongitude(pub i32);

impl DeltaLongitude {
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(131_072);
}

/// Difference of altitude in 0.01 m.
///
/// -12 700 to 12 800.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("-12700..=12800"))]
pub struct DeltaAltitude(pub i16);

impl DeltaAltitude {
    /// `negativeOutOfRange`.
    pub const NEGATIVE_OUT_OF_RANGE: Self = Self(-12_700);
    /// `positiveOutOfRange`.
    pub const POSITIVE_OUT_OF_RANGE: Self = Self(12_799);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(12_800);
}

/// A position relative to another position.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct DeltaPosition {
    /// Difference of latitude.
    #[rasn(identifier = "deltaLatitude")]
    pub delta_latitude: DeltaLatitude,
    /// Difference of longitude.
    #[rasn(identifier = "deltaLongitude")]
    pub delta_longitude: DeltaLongitude,
}

/// Positions, each relative to the previous position.
///
/// 1 to 32 elements; other sizes are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=32", extensible))]
pub struct DeltaPositions(pub Vec<DeltaPosition>);

/// A position with altitude, relative to another position.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct DeltaReferencePosition {
    /// Difference of latitude.
    #[rasn(identifier = "deltaLatitude")]
    pub delta_latitude: DeltaLatitude,
    /// Difference of longitude.
    #[rasn(identifier = "deltaLongitude")]
    pub delta_longitude: DeltaLongitude,
    /// Difference of altitude.
    #[rasn(identifier = "deltaAltitude")]
    pub delta_altitude: DeltaAltitude,
}

/// Positions with altitude, each relative to the previous position.
///
/// 1 to 32 elements; other sizes are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=32", extensible))]
pub struct DeltaReferencePositions(pub Vec<DeltaReferencePosition>);

/// A position with an optional altitude.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct GeoPosition {
    /// Latitude.
    pub latitude: Latitude,
    /// Longitude.
    pub longitude: Longitude,
    /// Altitude.
    #[rasn(default = "altitude_unavailable")]
    pub altitude: AltitudeValue,
}

/// A position with altitude and the accuracy of the altitude.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct GeoPositionWAltitude {
    /// Latitude.
    pub latitude: Latitude,
    /// Longitude.
    pub longitude: Longitude,
    /// Altitude.
    pub altitude: Altitude,
}

/// Positions with altitude.
///
/// 1 to 8 elements; other sizes are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=8", extensible))]
pub struct GeoPositionsWAltitude(pub Vec<GeoPositionWAltitude>);

/// A position without altitude.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct GeoPositionWoAltitude {
    /// Latitude.
    pub latitude: Latitude,
    /// Longitude.
    pub longitude: Longitude,
}

/// Positions without altitude.
///
/// 1 to 8 elements; other sizes are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=8", extensible))]
pub struct GeoPositionsWoAltitude(pub Vec<GeoPositionWoAltitude>);

/// A line through points, in one of four forms.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(choice, automatic_tags)]
#[non_exhaustive]
pub enum PolygonalLine {
    /// Relative, without altitude.
    #[rasn(identifier = "deltaPositions")]
    DeltaPositions(DeltaPositions),
    /// Relative, with altitude.
    #[rasn(identifier = "deltaPositionsWithAltitude")]
    DeltaPositionsWithAltitude(DeltaReferencePositions),
    /// Absolute, without altitude.
    #[rasn(identifier = "absolutePositions")]
    AbsolutePositions(GeoPositionsWoAltitude),
    /// Absolute, with altitude.
    #[rasn(identifier = "absolutePositionsWithAltitude")]
    AbsolutePositionsWithAltitude(GeoPositionsWAltitude),
}

/// Positioning method of a station.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[rasn(enumerated)]
#[non_exhaustive]
pub enum PositioningSolutionType {
    /// `noPositioningSolution`.
    #[rasn(identifier = "noPositioningSolution")]
    NoPositioningSolution,
    /// `sGNSS`.
    #[rasn(identifier = "sGNSS")]
    Sgnss,
    /// `dGNSS`.
    #[rasn(identifier = "dGNSS")]
    Dgnss,
    /// `sGNSSplusDR`.
    #[rasn(identifier = "sGNSSplusDR")]
    SgnsSplusDr,
    /// `dGNSSplusDR`.
    #[rasn(identifier = "dGNSSplusDR")]
    DgnsSplusDr,
    /// `dR`.
    #[rasn(identifier = "dR")]
    Dr,
    /// `manuallyByOperator`.
    #[rasn(extension_addition, identifier = "manuallyByOperator")]
    ManuallyByOperator,
}

/// A length. The unit depends on the member that uses it, mostly 0.1 m.
///
/// 0 to 4095.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=4095"))]
pub struct StandardLength12b(pub u16);

/// A distance as a class.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[rasn(enumerated)]
pub enum StandardLength3b {
    /// `lessThan50m`.
    #[rasn(identifier = "lessThan50m")]
    LessThan50m,
    /// `lessThan100m`.
    #[rasn(identifier = "lessThan100m")]
    LessThan100m,
    /// `lessThan200m`.
    #[rasn(identifier = "lessThan200m")]
    LessThan200m,
    /// `lessThan500m`.
    #[rasn(identifier = "lessThan500m")]
    LessThan500m,
    /// `lessThan1000m`.
    #[rasn(identifier = "lessThan1000m")]
    LessThan1000m,
    /// `lessThan5km`.
    #[rasn(identifier = "lessThan5km")]
    LessThan5km,
    /// `lessThan10km`.
    #[rasn(identifier = "lessThan10km")]
    LessThan10km,
    /// `over10km`.
    #[rasn(identifier = "over10km")]
    Over10km,
}

/// A length in 0.1 m.
///
/// 0 to 511.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=511"))]
pub struct StandardLength9b(pub u16);

/// A length in 0.1 m.
///
/// 0 to 255.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=255"))]
pub struct StandardLength1B(pub u8);

/// A length in 0.1 m.
///
/// 0 to 65 535.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=65535"))]
pub struct StandardLength2B(pub u16);

/// Distance along a road in m, against the direction of travel negative.
///
/// -8190 to 8191.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("-8190..=8191"))]
pub struct Position1d(pub i16);

impl Position1d {
    /// `outOfRange`.
    pub const OUT_OF_RANGE: Self = Self(8190);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(8191);
}

/// A recommended route as a list of positions.
///
/// 1 to 40 elements.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=40"))]
pub struct ItineraryPath(pub Vec<ReferencePosition>);

const fn altitude_unavailable() -> AltitudeValue {
    AltitudeValue::UNAVAILABLE
}
