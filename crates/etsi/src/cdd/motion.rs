//! Speed, direction, acceleration and turning.

use rasn::prelude::*;

use super::time::DeltaTimeTenthOfSecond;
/// Speed in 0.01 m/s.
///
/// 0 to 16 383.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=16383"))]
pub struct SpeedValue(pub u16);

impl SpeedValue {
    /// `standstill`.
    pub const STANDSTILL: Self = Self(0);
    /// `outOfRange`.
    pub const OUT_OF_RANGE: Self = Self(16_382);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(16_383);
}

/// Half of the 95 % interval of a speed in 0.01 m/s.
///
/// 1 to 127.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("1..=127"))]
pub struct SpeedConfidence(pub u8);

impl SpeedConfidence {
    /// `outOfRange`.
    pub const OUT_OF_RANGE: Self = Self(126);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(127);
}

/// Speed and its accuracy.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct Speed {
    /// Speed in 0.01 m/s.
    #[rasn(identifier = "speedValue")]
    pub speed_value: SpeedValue,
    /// Half of the 95 % interval of a speed in 0.01 m/s.
    #[rasn(identifier = "speedConfidence")]
    pub speed_confidence: SpeedConfidence,
}

/// Speed limit in km/h.
///
/// 1 to 255.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("1..=255"))]
pub struct SpeedLimit(pub u8);

/// Direction of movement in 0.1 degree, clockwise from north.
///
/// 0 to 3601.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=3601"))]
pub struct HeadingValue(pub u16);

impl HeadingValue {
    /// `wgs84North`.
    pub const WGS84_NORTH: Self = Self(0);
    /// `wgs84East`.
    pub const WGS84_EAST: Self = Self(900);
    /// `wgs84South`.
    pub const WGS84_SOUTH: Self = Self(1800);
    /// `wgs84West`.
    pub const WGS84_WEST: Self = Self(2700);
    /// `doNotUse`.
    pub const DO_NOT_USE: Self = Self(3600);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(3601);
}

/// Half of the 95 % interval of a direction in 0.1 degree.
///
/// 1 to 127.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("1..=127"))]
pub struct HeadingConfidence(pub u8);

impl HeadingConfidence {
    /// `outOfRange`.
    pub const OUT_OF_RANGE: Self = Self(126);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(127);
}

/// Direction of movement and its accuracy.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct Heading {
    /// Direction of movement in 0.1 degree, clockwise from north.
    #[rasn(identifier = "headingValue")]
    pub heading_value: HeadingValue,
    /// Half of the 95 % interval of a direction in 0.1 degree.
    #[rasn(identifier = "headingConfidence")]
    pub heading_confidence: HeadingConfidence,
}

/// Direction in 0.1 degree, clockwise from north.
///
/// 0 to 3601.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=3601"))]
pub struct Wgs84AngleValue(pub u16);

impl Wgs84AngleValue {
    /// `wgs84North`.
    pub const WGS84_NORTH: Self = Self(0);
    /// `wgs84East`.
    pub const WGS84_EAST: Self = Self(900);
    /// `wgs84South`.
    pub const WGS84_SOUTH: Self = Self(1800);
    /// `wgs84West`.
    pub const WGS84_WEST: Self = Self(2700);
    /// `doNotUse`.
    pub const DO_NOT_USE: Self = Self(3600);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(3601);
}

/// Half of the 95 % interval of a direction in 0.1 degree.
///
/// 1 to 127.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("1..=127"))]
pub struct Wgs84AngleConfidence(pub u8);

impl Wgs84AngleConfidence {
    /// `outOfRange`.
    pub const OUT_OF_RANGE: Self = Self(126);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(127);
}

/// Direction and its accuracy.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct Wgs84Angle {
    /// The value.
    pub value: Wgs84AngleValue,
    /// Accuracy of the value.
    pub confidence: Wgs84AngleConfidence,
}

/// Angle in a cartesian system in 0.1 degree, counter-clockwise from the x axis.
///
/// 0 to 3601.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=3601"))]
pub struct CartesianAngleValue(pub u16);

impl CartesianAngleValue {
    /// `valueNotUsed`.
    pub const VALUE_NOT_USED: Self = Self(3600);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(3601);
}

/// Half of the 95 % interval of an angle in 0.1 degree.
///
/// 1 to 127.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("1..=127"))]
pub struct AngleConfidence(pub u8);

impl AngleConfidence {
    /// `outOfRange`.
    pub const OUT_OF_RANGE: Self = Self(126);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(127);
}

/// Angle in a cartesian system and its accuracy.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct CartesianAngle {
    /// The value.
    pub value: CartesianAngleValue,
    /// Accuracy of the value.
    pub confidence: AngleConfidence,
}

/// Acceleration in 0.1 m/s².
///
/// -160 to 161.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("-160..=161"))]
pub struct AccelerationValue(pub i16);

impl AccelerationValue {
    /// `negativeOutOfRange`.
    pub const NEGATIVE_OUT_OF_RANGE: Self = Self(-160);
    /// `positiveOutOfRange`.
    pub const POSITIVE_OUT_OF_RANGE: Self = Self(160);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(161);
}

/// Magnitude of an acceleration in 0.1 m/s².
///
/// 0 to 161.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=161"))]
pub struct AccelerationMagnitudeValue(pub u8);

impl AccelerationMagnitudeValue {
    /// `positiveOutOfRange`.
    pub const POSITIVE_OUT_OF_RANGE: Self = Self(160);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(161);
}

/// Half of the 95 % interval of an acceleration in 0.1 m/s².
///
/// 0 to 102.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=102"))]
pub struct AccelerationConfidence(pub u8);

impl AccelerationConfidence {
    /// `outOfRange`.
    pub const OUT_OF_RANGE: Self = Self(101);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(102);
}

/// One component of an acceleration and its accuracy.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct AccelerationComponent {
    /// The value.
    pub value: AccelerationValue,
    /// Accuracy of the value.
    pub confidence: AccelerationConfidence,
}

/// Magnitude of an acceleration and its accuracy.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct AccelerationMagnitude {
    /// Magnitude of an acceleration in 0.1 m/s².
    #[rasn(identifier = "accelerationMagnitudeValue")]
    pub acceleration_magnitude_value: AccelerationMagnitudeValue,
    /// Half of the 95 % interval of an acceleration in 0.1 m/s².
    #[rasn(identifier = "accelerationConfidence")]
    pub acceleration_confidence: AccelerationConfidence,
}

/// Acceleration along the vehicle's axis in 0.1 m/s², forwards positive.
///
/// -160 to 161.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("-160..=161"))]
pub struct LongitudinalAccelerationValue(pub i16);

impl LongitudinalAccelerationValue {
    /// `negativeOutOfRange`.
    pub const NEGATIVE_OUT_OF_RANGE: Self = Self(-160);
    /// `positiveOutOfRange`.
    pub const POSITIVE_OUT_OF_RANGE: Self = Self(160);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(161);
}

/// Acceleration along the vehicle's axis and its accuracy; names of release 1.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct LongitudinalAcceleration {
    /// Acceleration along the vehicle's axis in 0.1 m/s², forwards positive.
    #[rasn(identifier = "longitudinalAccelerationValue")]
    pub longitudinal_acceleration_value: LongitudinalAccelerationValue,
    /// Accuracy of the value.
    #[rasn(identifier = "longitudinalAccelerationConfidence")]
    pub longitudinal_acceleration_confidence: AccelerationConfidence,
}

/// Acceleration across the vehicle's axis in 0.1 m/s², to the left positive.
///
/// -160 to 161.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("-160..=161"))]
pub struct LateralAccelerationValue(pub i16);

impl LateralAccelerationValue {
    /// `negativeOutOfRange`.
    pub const NEGATIVE_OUT_OF_RANGE: Self = Self(-160);
    /// `positiveOutOfRange`.
    pub const POSITIVE_OUT_OF_RANGE: Self = Self(160);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(161);
}

/// Acceleration across the vehicle's axis and its accuracy; names of release 1.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct LateralAcceleration {
    /// Acceleration across the vehicle's axis in 0.1 m/s², to the left positive.
    #[rasn(identifier = "lateralAccelerationValue")]
    pub lateral_acceleration_value: LateralAccelerationValue,
    /// Accuracy of the value.
    #[rasn(identifier = "lateralAccelerationConfidence")]
    pub lateral_acceleration_confidence: AccelerationConfidence,
}

/// Acceleration upwards in 0.1 m/s².
///
/// -160 to 161.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("-160..=161"))]
pub struct VerticalAccelerationValue(pub i16);

impl VerticalAccelerationValue {
    /// `negativeOutOfRange`.
    pub const NEGATIVE_OUT_OF_RANGE: Self = Self(-160);
    /// `positiveOutOfRange`.
    pub const POSITIVE_OUT_OF_RANGE: Self = Self(160);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(161);
}

/// Acceleration upwards and its accuracy; names of release 1.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct VerticalAcceleration {
    /// Acceleration upwards in 0.1 m/s².
    #[rasn(identifier = "verticalAccelerationValue")]
    pub vertical_acceleration_value: VerticalAccelerationValue,
    /// Accuracy of the value.
    #[rasn(identifier = "verticalAccelerationConfidence")]
    pub vertical_acceleration_confidence: AccelerationConfidence,
}

/// Rate of turn in 0.01 degree per second, to the left positive.
///
/// -32 766 to 32 767.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("-32766..=32767"))]
pub struct YawRateValue(pub i16);

impl YawRateValue {
    /// `negativeOutOfRange`.
    pub const NEGATIVE_OUT_OF_RANGE: Self = Self(-32_766);
    /// `positiveOutOfRange`.
    pub const POSITIVE_OUT_OF_RANGE: Self = Self(32_766);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(32_767);
}

/// Half of the 95 % interval of a rate of turn.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[rasn(enumerated)]
pub enum YawRateConfidence {
    /// Within 0.01 degrees per second.
    #[rasn(identifier = "degSec-000-01")]
    DegSec000_01,
    /// Within 0.05 degrees per second.
    #[rasn(identifier = "degSec-000-05")]
    DegSec000_05,
    /// Within 0.10 degrees per second.
    #[rasn(identifier = "degSec-000-10")]
    DegSec000_10,
    /// Within 1 degrees per second.
    #[rasn(identifier = "degSec-001-00")]
    DegSec001_00,
    /// Within 5 degrees per second.
    #[rasn(identifier = "degSec-005-00")]
    DegSec005_00,
    /// Within 10 degrees per second.
    #[rasn(identifier = "degSec-010-00")]
    DegSec010_00,
    /// Within 100 degrees per second.
    #[rasn(identifier = "degSec-100-00")]
    DegSec100_00,
    /// `outOfRange`.
    #[rasn(identifier = "outOfRange")]
    OutOfRange,
    /// `unavailable`.
    #[rasn(identifier = "unavailable")]
    Unavailable,
}

/// Rate of turn and its accuracy.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct YawRate {
    /// Rate of turn in 0.01 degree per second, to the left positive.
    #[rasn(identifier = "yawRateValue")]
    pub yaw_rate_value: YawRateValue,
    /// Half of the 95 % interval of a rate of turn.
    #[rasn(identifier = "yawRateConfidence")]
    pub yaw_rate_confidence: YawRateConfidence,
}

/// Curvature of the vehicle's path in 1/10 000 m, to the left positive.
///
/// -1023 to 1023.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("-1023..=1023"))]
pub struct CurvatureValue(pub i16);

impl CurvatureValue {
    /// `outOfRangeNegative`.
    pub const OUT_OF_RANGE_NEGATIVE: Self = Self(-1023);
    /// `straight`.
    pub const STRAIGHT: Self = Self(0);
    /// `outOfRangePositive`.
    pub const OUT_OF_RANGE_POSITIVE: Self = Self(1022);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(1023);
}

/// Half of the 95 % interval of a curvature.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[rasn(enumerated)]
pub enum CurvatureConfidence {
    /// Within 0.00002 1/m.
    #[rasn(identifier = "onePerMeter-0-00002")]
    OnePerMeter0_00002,
    /// Within 0.0001 1/m.
    #[rasn(identifier = "onePerMeter-0-0001")]
    OnePerMeter0_0001,
    /// Within 0.0005 1/m.
    #[rasn(identifier = "onePerMeter-0-0005")]
    OnePerMeter0_0005,
    /// Within 0.002 1/m.
    #[rasn(identifier = "onePerMeter-0-002")]
    OnePerMeter0_002,
    /// Within 0.01 1/m.
    #[rasn(identifier = "onePerMeter-0-01")]
    OnePerMeter0_01,
    /// Within 0.1 1/m.
    #[rasn(identifier = "onePerMeter-0-1")]
    OnePerMeter0_1,
    /// `outOfRange`.
    #[rasn(identifier = "outOfRange")]
    OutOfRange,
    /// `unavailable`.
    #[rasn(identifier = "unavailable")]
    Unavailable,
}

/// Curvature of the vehicle's path and its accuracy.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct Curvature {
    /// Curvature of the vehicle's path in 1/10 000 m, to the left positive.
    #[rasn(identifier = "curvatureValue")]
    pub curvature_value: CurvatureValue,
    /// Half of the 95 % interval of a curvature.
    #[rasn(identifier = "curvatureConfidence")]
    pub curvature_confidence: CurvatureConfidence,
}

/// Use of the rate of turn in the calculation of the curvature.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[rasn(enumerated)]
#[non_exhaustive]
pub enum CurvatureCalculationMode {
    /// `yawRateUsed`.
    #[rasn(identifier = "yawRateUsed")]
    YawRateUsed,
    /// `yawRateNotUsed`.
    #[rasn(identifier = "yawRateNotUsed")]
    YawRateNotUsed,
    /// `unavailable`.
    #[rasn(identifier = "unavailable")]
    Unavailable,
}

/// Angle of the steering wheel in 1.5 degrees, to the left positive.
///
/// -511 to 512.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("-511..=512"))]
pub struct SteeringWheelAngleValue(pub i16);

impl SteeringWheelAngleValue {
    /// `negativeOutOfRange`.
    pub const NEGATIVE_OUT_OF_RANGE: Self = Self(-511);
    /// `positiveOutOfRange`.
    pub const POSITIVE_OUT_OF_RANGE: Self = Self(511);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(512);
}

/// Half of the 95 % interval of the steering wheel's angle in 1.5 degrees.
///
/// 1 to 127.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("1..=127"))]
pub struct SteeringWheelAngleConfidence(pub u8);

impl SteeringWheelAngleConfidence {
    /// `outOfRange`.
    pub const OUT_OF_RANGE: Self = Self(126);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(127);
}

/// Angle of the steering wheel and its accuracy.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct SteeringWheelAngle {
    /// Angle of the steering wheel in 1.5 degrees, to the left positive.
    #[rasn(identifier = "steeringWheelAngleValue")]
    pub steering_wheel_angle_value: SteeringWheelAngleValue,
    /// Half of the 95 % interval of the steering wheel's angle in 1.5 degrees.
    #[rasn(identifier = "steeringWheelAngleConfidence")]
    pub steering_wheel_angle_confidence: SteeringWheelAngleConfidence,
}

/// Driving direction of a vehicle.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[rasn(enumerated)]
pub enum DriveDirection {
    /// `forward`.
    #[rasn(identifier = "forward")]
    Forward,
    /// `backward`.
    #[rasn(identifier = "backward")]
    Backward,
    /// `unavailable`.
    #[rasn(identifier = "unavailable")]
    Unavailable,
}

/// Side of a turn.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[rasn(enumerated)]
pub enum TurningDirection {
    /// `left`.
    #[rasn(identifier = "left")]
    Left,
    /// `right`.
    #[rasn(identifier = "right")]
    Right,
}

/// Half of the 95 % interval of a rate of turn.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[rasn(enumerated)]
pub enum AngularSpeedConfidence {
    /// Within 1 degrees per second.
    #[rasn(identifier = "degSec-01")]
    DegSec01,
    /// Within 2 degrees per second.
    #[rasn(identifier = "degSec-02")]
    DegSec02,
    /// Within 5 degrees per second.
    #[rasn(identifier = "degSec-05")]
    DegSec05,
    /// Within 10 degrees per second.
    #[rasn(identifier = "degSec-10")]
    DegSec10,
    /// Within 20 degrees per second.
    #[rasn(identifier = "degSec-20")]
    DegSec20,
    /// Within 50 degrees per second.
    #[rasn(identifier = "degSec-50")]
    DegSec50,
    /// `outOfRange`.
    #[rasn(identifier = "outOfRange")]
    OutOfRange,
    /// `unavailable`.
    #[rasn(identifier = "unavailable")]
    Unavailable,
}

/// Rate of turn about an axis in degrees per second, counter-clockwise positive.
///
/// -255 to 256.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("-255..=256"))]
pub struct CartesianAngularVelocityComponentValue(pub i16);

impl CartesianAngularVelocityComponentValue {
    /// `negativeOutofRange`.
    pub const NEGATIVE_OUTOF_RANGE: Self = Self(-255);
    /// `positiveOutOfRange`.
    pub const POSITIVE_OUT_OF_RANGE: Self = Self(255);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(256);
}

/// Rate of turn about an axis and its accuracy.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct CartesianAngularVelocityComponent {
    /// The value.
    pub value: CartesianAngularVelocityComponentValue,
    /// Accuracy of the value.
    pub confidence: AngularSpeedConfidence,
}

/// Component of a velocity in 0.01 m/s.
///
/// -16 383 to 16 383.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("-16383..=16383"))]
pub struct VelocityComponentValue(pub i16);

impl VelocityComponentValue {
    /// `negativeOutOfRange`.
    pub const NEGATIVE_OUT_OF_RANGE: Self = Self(-16_383);
    /// `positiveOutOfRange`.
    pub const POSITIVE_OUT_OF_RANGE: Self = Self(16_382);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(16_383);
}

/// Component of a velocity and its accuracy.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct VelocityComponent {
    /// The value.
    pub value: VelocityComponentValue,
    /// Accuracy of the value.
    pub confidence: SpeedConfidence,
}

/// A velocity by its components.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct VelocityCartesian {
    /// Component along x.
    #[rasn(identifier = "xVelocity")]
    pub x_velocity: VelocityComponent,
    /// Component along y.
    #[rasn(identifier = "yVelocity")]
    pub y_velocity: VelocityComponent,
    /// Component upwards.
    #[rasn(identifier = "zVelocity")]
    pub z_velocity: Option<VelocityComponent>,
}

/// A velocity by magnitude and direction.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct VelocityPolarWithZ {
    /// Magnitude in the horizontal plane.
    #[rasn(identifier = "velocityMagnitude")]
    pub velocity_magnitude: Speed,
    /// Direction in the horizontal plane.
    #[rasn(identifier = "velocityDirection")]
    pub velocity_direction: CartesianAngle,
    /// Component upwards.
    #[rasn(identifier = "zVelocity")]
    pub z_velocity: Option<VelocityComponent>,
}

/// A velocity in polar or cartesian form.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(choice, automatic_tags)]
pub enum Velocity3dWithConfidence {
    /// Magnitude and direction.
    #[rasn(identifier = "polarVelocity")]
    PolarVelocity(VelocityPolarWithZ),
    /// Cartesian components.
    #[rasn(identifier = "cartesianVelocity")]
    CartesianVelocity(VelocityCartesian),
}

/// An acceleration by its components.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct AccelerationCartesian {
    /// Component along x.
    #[rasn(identifier = "xAcceleration")]
    pub x_acceleration: AccelerationComponent,
    /// Component along y.
    #[rasn(identifier = "yAcceleration")]
    pub y_acceleration: AccelerationComponent,
    /// Component upwards.
    #[rasn(identifier = "zAcceleration")]
    pub z_acceleration: Option<AccelerationComponent>,
}

/// An acceleration by magnitude and direction.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct AccelerationPolarWithZ {
    /// Magnitude in the horizontal plane.
    #[rasn(identifier = "accelerationMagnitude")]
    pub acceleration_magnitude: AccelerationMagnitude,
    /// Direction in the horizontal plane.
    #[rasn(identifier = "accelerationDirection")]
    pub acceleration_direction: CartesianAngle,
    /// Component upwards.
    #[rasn(identifier = "zAcceleration")]
    pub z_acceleration: Option<AccelerationComponent>,
}

/// An acceleration in polar or cartesian form.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(choice, automatic_tags)]
pub enum Acceleration3dWithConfidence {
    /// Magnitude and direction.
    #[rasn(identifier = "polarAcceleration")]
    PolarAcceleration(AccelerationPolarWithZ),
    /// Cartesian components.
    #[rasn(identifier = "cartesianAcceleration")]
    CartesianAcceleration(AccelerationCartesian),
}

/// Orientation of a body: turned about z first, then y, then x.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct EulerAnglesWithConfidence {
    /// Angle about z.
    #[rasn(identifier = "zAngle")]
    pub z_angle: CartesianAngle,
    /// Angle about y.
    #[rasn(identifier = "yAngle")]
    pub y_angle: Option<CartesianAngle>,
    /// Angle about x.
    #[rasn(identifier = "xAngle")]
    pub x_angle: Option<CartesianAngle>,
}

/// Kind of a change of speed.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[rasn(enumerated)]
pub enum AccelerationChange {
    /// `accelerate`.
    #[rasn(identifier = "accelerate")]
    Accelerate,
    /// `decelerate`.
    #[rasn(identifier = "decelerate")]
    Decelerate,
}

/// An expected change of acceleration.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct AccelerationChangeIndication {
    /// Kind of the change.
    #[rasn(identifier = "accelOrDecel")]
    pub accel_or_decel: AccelerationChange,
    /// Time until the change, in 0.1 s.
    #[rasn(identifier = "actionDeltaTime")]
    pub action_delta_time: DeltaTimeTenthOfSecond,
}

impl AccelerationChangeIndication {
    /// Creates a value with these members.
    #[must_use]
    pub const fn new(accel_or_decel: AccelerationChange, action_delta_time: DeltaTimeTenthOfSecond) -> Self {
        Self { accel_or_decel, action_delta_time }
    }
}

/// An expected turn.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct HeadingChangeIndication {
    /// Side of the turn.
    pub direction: TurningDirection,
    /// Time until the change, in 0.1 s.
    #[rasn(identifier = "actionDeltaTime")]
    pub action_delta_time: DeltaTimeTenthOfSecond,
}

impl HeadingChangeIndication {
    /// Creates a value with these members.
    #[must_use]
    pub const fn new(direction: TurningDirection, action_delta_time: DeltaTimeTenthOfSecond) -> Self {
        Self { direction, action_delta_time }
    }
}

/// Probability of a fall in 2 %.
///
/// 0 to 63.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=63"))]
pub struct StabilityLossProbability(pub u8);

impl StabilityLossProbability {
    /// `stable`.
    pub const STABLE: Self = Self(0);
    /// `totalLossOfStability`.
    pub const TOTAL_LOSS_OF_STABILITY: Self = Self(50);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(63);
}

/// An expected loss of stability.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct StabilityChangeIndication {
    /// Probability of the loss, in 2 %.
    #[rasn(identifier = "lossProbability")]
    pub loss_probability: StabilityLossProbability,
    /// Time until the change, in 0.1 s.
    #[rasn(identifier = "actionDeltaTime")]
    pub action_delta_time: DeltaTimeTenthOfSecond,
}

impl StabilityChangeIndication {
    /// Creates a value with these members.
    #[must_use]
    pub const fn new(loss_probability: StabilityLossProbability, action_delta_time: DeltaTimeTenthOfSecond) -> Self {
        Self { loss_probability, action_delta_time }
    }
}
