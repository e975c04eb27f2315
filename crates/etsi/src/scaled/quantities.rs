//! Steps of INTEGERs: one constant for each type of the data dictionary (TS 102 894-2), with the units of vanetza-nap
//! (metres, degrees, seconds and derived units).
//!
//! Types that are not listed stay integers, as in vanetza-nap: `Wgs84AngleValue` in tenths of a degree, `CurvatureValue`,
//! the confidences that are enumerations.

use viaduct_asn1::json::scaled::Quantity;

pub(super) const ACCELERATION_CONFIDENCE: Quantity = Quantity::new(10.0, Some(102), &[101]);
/// Also `LongitudinalAccelerationValue`, `LateralAccelerationValue` and `VerticalAccelerationValue`.
pub(super) const ACCELERATION_VALUE: Quantity = Quantity::new(10.0, Some(161), &[]);
pub(super) const ALTITUDE_VALUE: Quantity = Quantity::new(100.0, Some(800_001), &[]);
pub(super) const ANGLE_CONFIDENCE: Quantity = Quantity::new(10.0, Some(127), &[126]);
pub(super) const CARTESIAN_ANGLE_VALUE: Quantity = Quantity::new(10.0, Some(3601), &[]);
/// Also `CartesianCoordinateLarge`.
pub(super) const CARTESIAN_COORDINATE: Quantity = Quantity::new(100.0, None, &[]);
pub(super) const COORDINATE_CONFIDENCE: Quantity = Quantity::new(100.0, Some(4096), &[4095]);
pub(super) const DELTA_ALTITUDE: Quantity = Quantity::new(100.0, Some(12_800), &[-12_700, 12_799]);
/// Also `DeltaLongitude`.
pub(super) const DELTA_LATITUDE: Quantity = Quantity::new(1e7, Some(131_072), &[]);
pub(super) const HEADING_CONFIDENCE: Quantity = Quantity::new(10.0, Some(127), &[126]);
pub(super) const HEADING_VALUE: Quantity = Quantity::new(10.0, Some(3601), &[]);
pub(super) const LATITUDE: Quantity = Quantity::new(1e7, Some(900_000_001), &[]);
pub(super) const LONGITUDE: Quantity = Quantity::new(1e7, Some(1_800_000_001), &[]);
pub(super) const OBJECT_DIMENSION_VALUE: Quantity = Quantity::new(10.0, Some(256), &[255]);
pub(super) const SEMI_AXIS_LENGTH: Quantity = Quantity::new(100.0, Some(4095), &[4094]);
pub(super) const SPEED_CONFIDENCE: Quantity = Quantity::new(100.0, Some(127), &[126]);
pub(super) const SPEED_VALUE: Quantity = Quantity::new(100.0, Some(16_383), &[16_382]);
pub(super) const STANDARD_LENGTH_12B: Quantity = Quantity::new(10.0, None, &[]);
/// 1.5 degrees a step; vanetza-nap takes 0.667 steps a degree.
pub(super) const STEERING_WHEEL_ANGLE_VALUE: Quantity =
    Quantity { steps: 2.0, units: 3.0, unavailable: Some(512), codes: &[] };
pub(super) const TIMESTAMP_ITS: Quantity = Quantity::new(1000.0, None, &[]);
pub(super) const VEHICLE_LENGTH_VALUE: Quantity = Quantity::new(10.0, Some(1023), &[1022]);
pub(super) const VEHICLE_WIDTH: Quantity = Quantity::new(10.0, Some(62), &[61]);
pub(super) const VELOCITY_COMPONENT_VALUE: Quantity = Quantity::new(100.0, Some(16_383), &[-16_383, 16_382]);
pub(super) const YAW_RATE_VALUE: Quantity = Quantity::new(100.0, Some(32_767), &[-32_766, 32_766]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_is_shown_and_read_to_the_nearest_step() {
        assert_eq!(LATITUDE.show(406_283_493), Some(40.628_349_3));
        assert_eq!(LATITUDE.read(40.628_349_304_199_22), Some(406_283_493));
        assert_eq!(STEERING_WHEEL_ANGLE_VALUE.show(-3), Some(-4.5));
        assert_eq!(STEERING_WHEEL_ANGLE_VALUE.read(-4.4), Some(-3));
        assert_eq!(TIMESTAMP_ITS.read(1_626_453_837.658), Some(1_626_453_837_658));
    }

    #[test]
    fn the_code_for_not_available_is_written_as_no_number_and_read() {
        assert_eq!(LATITUDE.show(900_000_001), None);
        assert_eq!(LATITUDE.read(900_000_001.0), Some(900_000_001));
        assert_eq!(
            (VEHICLE_WIDTH.show(61), VEHICLE_WIDTH.read(61.0), VEHICLE_WIDTH.read(6.1)),
            (Some(6.1), Some(61), Some(61))
        );
    }

    #[test]
    fn a_number_beyond_the_exact_integers_is_rejected() {
        assert_eq!((LATITUDE.read(f64::NAN), LATITUDE.read(1e300)), (None, None));
    }
}
