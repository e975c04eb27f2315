//! Conversion of quantities to structures of the data dictionary (TS 102 894-2).
//!
//! An unknown value becomes "unavailable", a value beyond its field the end of the field's range. A confidence is half
//! of the interval that contains the true value in 95 % of all cases.

use viaduct_etsi::cdd::{
    self, AccelerationComponent, AccelerationConfidence, AccelerationValue, Altitude, AltitudeConfidence,
    AltitudeValue, AngleConfidence, CartesianAngle, CartesianAngleValue, Curvature, CurvatureConfidence,
    CurvatureValue, Heading, HeadingConfidence, HeadingValue, ItsPduHeader, Latitude, Longitude, MessageId,
    OrdinalNumber1B, PosConfidenceEllipse, PositionConfidenceEllipse, ReferencePosition,
    ReferencePositionWithConfidence, SemiAxisLength, Speed, SpeedConfidence, SpeedValue, TimestampIts, Wgs84Angle,
    Wgs84AngleConfidence, Wgs84AngleValue, YawRate, YawRateConfidence, YawRateValue,
};
use viaduct_units::{
    Degrees, DegreesPerSecond, Metres, MetresPerSecond, MetresPerSecondSquared, Position, StationId, Tai,
};

use super::scale;

/// The ellipse around a position that contains the true position in 95 % of all cases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConfidenceEllipse {
    /// Half of the longer axis, up to 40.93 m.
    pub semi_major: Metres,
    /// Half of the shorter axis, up to 40.93 m.
    pub semi_minor: Metres,
    /// Direction of the longer axis, clockwise from north.
    pub orientation: Degrees,
}

impl ConfidenceEllipse {
    /// Returns a circle: the same accuracy in every direction.
    #[must_use]
    pub const fn circle(radius: Metres) -> Self {
        // The axes of a circle have no direction; north is as good as any.
        Self { semi_major: radius, semi_minor: radius, orientation: Degrees(0.0) }
    }
}

/// A reference position with altitude and accuracies.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Place {
    pub(super) position: Option<Position>,
    pub(super) confidence: Option<ConfidenceEllipse>,
    pub(super) altitude: Option<Metres>,
    pub(super) altitude_confidence: Option<Metres>,
}

/// Returns the [`Place`] of a message's input. The inputs have the same four fields.
macro_rules! place_of {
    ($input:expr) => {
        $crate::facilities::messages::dictionary::Place {
            position: $input.position,
            confidence: $input.position_confidence,
            altitude: $input.altitude,
            altitude_confidence: $input.altitude_confidence,
        }
    };
}
pub(super) use place_of;

impl Place {
    /// Returns the position with release 2's names of the ellipse.
    pub(super) fn with_confidence(self) -> ReferencePositionWithConfidence {
        let (latitude, longitude) = scale::coordinates(self.position);
        let (major, minor, orientation) = self.ellipse();
        ReferencePositionWithConfidence {
            latitude: Latitude(latitude),
            longitude: Longitude(longitude),
            position_confidence_ellipse: PositionConfidenceEllipse {
                semi_major_axis_length: major,
                semi_minor_axis_length: minor,
                semi_major_axis_orientation: Wgs84AngleValue(orientation),
            },
            altitude: self.altitude(),
        }
    }

    /// Returns the position with release 1's names of the ellipse.
    pub(super) fn reference_position(self) -> ReferencePosition {
        let (latitude, longitude) = scale::coordinates(self.position);
        let (major, minor, orientation) = self.ellipse();
        ReferencePosition {
            latitude: Latitude(latitude),
            longitude: Longitude(longitude),
            position_confidence_ellipse: PosConfidenceEllipse {
                semi_major_confidence: major,
                semi_minor_confidence: minor,
                semi_major_orientation: HeadingValue(orientation),
            },
            altitude: self.altitude(),
        }
    }

    fn ellipse(self) -> (SemiAxisLength, SemiAxisLength, u16) {
        let axis = |length: Metres| SemiAxisLength(scale::scaled_u16(length.value(), 100.0, 1, 4094));
        let major = self.confidence.map_or(SemiAxisLength::UNAVAILABLE, |ellipse| axis(ellipse.semi_major));
        let minor = self.confidence.map_or(SemiAxisLength::UNAVAILABLE, |ellipse| axis(ellipse.semi_minor));
        (major, minor, scale::heading_value(self.confidence.map(|ellipse| ellipse.orientation)))
    }

    fn altitude(self) -> Altitude {
        Altitude {
            altitude_value: AltitudeValue(scale::altitude_value(self.altitude)),
            altitude_confidence: altitude_confidence(self.altitude_confidence),
        }
    }
}

pub(super) const fn header(message_id: u8, protocol_version: u8, station_id: StationId) -> ItsPduHeader {
    ItsPduHeader {
        protocol_version: OrdinalNumber1B(protocol_version),
        message_id: MessageId(message_id),
        station_id: cdd::StationId(station_id.0),
    }
}

/// Returns the time with all 42 bits.
pub(super) fn timestamp(moment: Tai) -> TimestampIts {
    TimestampIts(moment.timestamp_its().0.min(TIMESTAMP_ITS_MAX))
}

const TIMESTAMP_ITS_MAX: u64 = 4_398_046_511_103;

pub(super) fn speed(speed: Option<MetresPerSecond>, confidence: Option<MetresPerSecond>) -> Speed {
    Speed { speed_value: SpeedValue(scale::speed_value(speed)), speed_confidence: speed_confidence(confidence) }
}

pub(super) fn speed_confidence(confidence: Option<MetresPerSecond>) -> SpeedConfidence {
    confidence.map_or(SpeedConfidence::UNAVAILABLE, |speed| SpeedConfidence(scale::confidence(speed.value(), 100.0)))
}

pub(super) fn heading(heading: Option<Degrees>, confidence: Option<Degrees>) -> Heading {
    Heading {
        heading_value: HeadingValue(scale::heading_value(heading)),
        heading_confidence: confidence
            .map_or(HeadingConfidence::UNAVAILABLE, |angle| HeadingConfidence(scale::confidence(angle.value(), 10.0))),
    }
}

pub(super) fn wgs84_angle(angle: Option<Degrees>, confidence: Option<Degrees>) -> Wgs84Angle {
    Wgs84Angle {
        value: Wgs84AngleValue(scale::heading_value(angle)),
        confidence: confidence.map_or(Wgs84AngleConfidence::UNAVAILABLE, |angle| {
            Wgs84AngleConfidence(scale::confidence(angle.value(), 10.0))
        }),
    }
}

pub(super) fn cartesian_angle(angle: Degrees, confidence: Option<Degrees>) -> CartesianAngle {
    CartesianAngle {
        value: CartesianAngleValue(scale::heading_value(Some(angle))),
        confidence: confidence
            .map_or(AngleConfidence::UNAVAILABLE, |angle| AngleConfidence(scale::confidence(angle.value(), 10.0))),
    }
}

pub(super) fn acceleration(
    acceleration: Option<MetresPerSecondSquared>,
    confidence: Option<MetresPerSecondSquared>,
) -> AccelerationComponent {
    AccelerationComponent {
        value: acceleration.map_or(AccelerationValue::UNAVAILABLE, |acceleration| {
            AccelerationValue(scale::scaled_i16(acceleration.value(), 10.0, -160, 160))
        }),
        confidence: confidence.map_or(AccelerationConfidence::UNAVAILABLE, |acceleration| {
            AccelerationConfidence(scale::scaled_u8(acceleration.value(), 10.0, 0, 101))
        }),
    }
}

pub(super) fn yaw_rate(rate: Option<DegreesPerSecond>, confidence: Option<DegreesPerSecond>) -> YawRate {
    YawRate {
        yaw_rate_value: rate.map_or(YawRateValue::UNAVAILABLE, |rate| {
            YawRateValue(scale::scaled_i16(rate.value(), 100.0, -32_766, 32_766))
        }),
        yaw_rate_confidence: yaw_rate_confidence(confidence),
    }
}

/// Returns `Curvature`. The unit of both arguments is 1/m.
pub(super) fn curvature(curvature: Option<f64>, confidence: Option<f64>) -> Curvature {
    Curvature {
        curvature_value: curvature.map_or(CurvatureValue::UNAVAILABLE, |curvature| {
            CurvatureValue(scale::scaled_i16(curvature, 10_000.0, -1023, 1022))
        }),
        curvature_confidence: curvature_confidence(confidence),
    }
}

fn altitude_confidence(confidence: Option<Metres>) -> AltitudeConfidence {
    use AltitudeConfidence as A;
    const CLASSES: [(f64, AltitudeConfidence); 14] = [
        (0.01, A::Alt000_01),
        (0.02, A::Alt000_02),
        (0.05, A::Alt000_05),
        (0.1, A::Alt000_10),
        (0.2, A::Alt000_20),
        (0.5, A::Alt000_50),
        (1.0, A::Alt001_00),
        (2.0, A::Alt002_00),
        (5.0, A::Alt005_00),
        (10.0, A::Alt010_00),
        (20.0, A::Alt020_00),
        (50.0, A::Alt050_00),
        (100.0, A::Alt100_00),
        (200.0, A::Alt200_00),
    ];
    confidence.map_or(A::Unavailable, |value| scale::class(value.value(), &CLASSES, A::OutOfRange))
}

fn yaw_rate_confidence(confidence: Option<DegreesPerSecond>) -> YawRateConfidence {
    use YawRateConfidence as Y;
    const CLASSES: [(f64, YawRateConfidence); 7] = [
        (0.01, Y::DegSec000_01),
        (0.05, Y::DegSec000_05),
        (0.1, Y::DegSec000_10),
        (1.0, Y::DegSec001_00),
        (5.0, Y::DegSec005_00),
        (10.0, Y::DegSec010_00),
        (100.0, Y::DegSec100_00),
    ];
    confidence.map_or(Y::Unavailable, |value| scale::class(value.value(), &CLASSES, Y::OutOfRange))
}

fn curvature_confidence(confidence: Option<f64>) -> CurvatureConfidence {
    use CurvatureConfidence as C;
    const CLASSES: [(f64, CurvatureConfidence); 6] = [
        (0.00002, C::OnePerMeter0_00002),
        (0.0001, C::OnePerMeter0_0001),
        (0.0005, C::OnePerMeter0_0005),
        (0.002, C::OnePerMeter0_002),
        (0.01, C::OnePerMeter0_01),
        (0.1, C::OnePerMeter0_1),
    ];
    confidence.map_or(C::Unavailable, |value| scale::class(value, &CLASSES, C::OutOfRange))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confidence_takes_the_smallest_class_that_holds_it() {
        assert_eq!(altitude_confidence(None), AltitudeConfidence::Unavailable);
        assert_eq!(altitude_confidence(Some(Metres(0.01))), AltitudeConfidence::Alt000_01);
        assert_eq!(altitude_confidence(Some(Metres(0.011))), AltitudeConfidence::Alt000_02);
        assert_eq!(altitude_confidence(Some(Metres(201.0))), AltitudeConfidence::OutOfRange);
        assert_eq!(altitude_confidence(Some(Metres(f64::NAN))), AltitudeConfidence::OutOfRange);
        assert_eq!(yaw_rate_confidence(Some(DegreesPerSecond(0.5))), YawRateConfidence::DegSec001_00);
        assert_eq!(curvature_confidence(Some(0.002)), CurvatureConfidence::OnePerMeter0_002);
    }

    #[test]
    fn a_confidence_beyond_its_field_is_out_of_range() {
        let speed = speed(Some(MetresPerSecond(1.0)), Some(MetresPerSecond(10.0)));
        assert_eq!(speed.speed_confidence, SpeedConfidence::OUT_OF_RANGE);
        let acceleration = acceleration(None, Some(MetresPerSecondSquared(50.0)));
        assert_eq!(acceleration.confidence, AccelerationConfidence::OUT_OF_RANGE);
        assert_eq!(acceleration.value, AccelerationValue::UNAVAILABLE);
        assert_eq!(curvature(Some(1.0), None).curvature_value, CurvatureValue::OUT_OF_RANGE_POSITIVE);
        assert_eq!(curvature(Some(-1.0), None).curvature_value, CurvatureValue::OUT_OF_RANGE_NEGATIVE);
    }

    #[test]
    fn an_ellipse_has_its_axes() {
        let confidence =
            ConfidenceEllipse { semi_major: Metres(2.0), semi_minor: Metres(100.0), orientation: Degrees(45.0) };
        let place = Place { confidence: Some(confidence), ..Place::default() };
        let ellipse = place.with_confidence().position_confidence_ellipse;
        assert_eq!(ellipse.semi_major_axis_length, SemiAxisLength(200));
        assert_eq!(ellipse.semi_minor_axis_length, SemiAxisLength::OUT_OF_RANGE);
        assert_eq!(ellipse.semi_major_axis_orientation, Wgs84AngleValue(450));
        let unknown = Place::default().reference_position().position_confidence_ellipse;
        assert_eq!(unknown.semi_major_confidence, SemiAxisLength::UNAVAILABLE);
        assert_eq!(unknown.semi_major_orientation, HeadingValue::UNAVAILABLE);
    }
}
