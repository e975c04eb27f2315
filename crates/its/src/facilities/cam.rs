//! Cooperative awareness message, TS 103 900 V2.3.1.

use std::time::Duration;

use viaduct_etsi::cam_ts103900_v231::{self as etsi, Cam, types};
use viaduct_units::{Degrees, DegreesPerSecond, Metres, MetresPerSecond, MetresPerSecondSquared, Position, Tai};

use super::{Summary, scale};

/// Bits of `generationDeltaTime`.
const GENERATION_DELTA_TIME_BITS: u32 = 16;
/// Points of a path history (`PathHistory`).
pub const PATH_POINTS_MAX: usize = 40;

/// What nearly everybody asks a CAM for.
#[must_use]
pub fn summary(cam: &Cam, reception: Tai) -> Summary {
    let parameters = &cam.cam.cam_parameters;
    let at = &parameters.basic_container.reference_position;
    let (speed, heading) = match &parameters.high_frequency_container {
        types::HighFrequencyContainer::BasicVehicleContainerHighFrequency(vehicle) => {
            (scale::speed(vehicle.speed.speed_value.0), scale::heading(vehicle.heading.heading_value.0))
        }
        // A roadside unit says neither.
        _ => (None, None),
    };
    let wrapped = cam.cam.generation_delta_time.0.into();
    let generation = reception.timestamp_its().widen(wrapped, GENERATION_DELTA_TIME_BITS).tai();
    Summary {
        station_id: cam.header.station_id.0,
        station_type: Some(parameters.basic_container.station_type.0),
        generation: Some(generation),
        position: scale::position(at.latitude.0, at.longitude.0),
        altitude: scale::altitude(at.altitude.altitude_value.0),
        speed,
        heading,
    }
}

/// What a vehicle says about itself. What is `None` is sent as "unavailable"; what exceeds its field as the field's end.
#[derive(Clone, Debug, PartialEq)]
pub struct CamInput {
    /// Identifier of the station.
    pub station_id: u32,
    /// `StationType` (TS 102 894-2): 5 is a passenger car.
    pub station_type: u8,
    /// When the values below were true; it becomes `generationDeltaTime`.
    pub generation: Tai,
    /// Reference position: the middle of the front bumper, on the ground.
    pub position: Option<Position>,
    /// Radius of 95 % confidence around the position, up to 40.93 m.
    pub position_confidence: Option<Metres>,
    /// Altitude above the WGS 84 ellipsoid.
    pub altitude: Option<Metres>,
    /// Speed along the vehicle's axis, negative backwards, up to 163.82 m/s.
    pub speed: Option<MetresPerSecond>,
    /// Heading of the movement.
    pub heading: Option<Degrees>,
    /// Acceleration along the vehicle's axis, up to 16 m/s².
    pub longitudinal_acceleration: Option<MetresPerSecondSquared>,
    /// Rate of turn, positive to the left, up to 327.66 degrees per second.
    pub yaw_rate: Option<DegreesPerSecond>,
    /// Length of the vehicle, up to 102.2 m.
    pub length: Option<Metres>,
    /// Width of the vehicle, up to 6.1 m.
    pub width: Option<Metres>,
    /// The low frequency container, in the messages that carry it (6.1.3: at most every 500 ms).
    pub low_frequency: Option<LowFrequency>,
}

/// What changes seldom.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LowFrequency {
    /// `ExteriorLights`: eight bits, the most significant one is the low beam.
    pub exterior_lights: u8,
    /// Where the vehicle was, the newest place first; the first 40 are sent.
    pub path_history: Vec<PathPoint>,
}

/// A place where the vehicle was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathPoint {
    /// The place.
    pub position: Position,
    /// Altitude of the place, where it and that of the point before are known.
    pub altitude: Option<Metres>,
    /// Time from this point to the one before (of the first one: to the generation), up to 655.35 s.
    pub travel_time: Option<Duration>,
}

impl CamInput {
    /// A passenger car about which nothing but its identifier is known.
    #[must_use]
    pub const fn new(station_id: u32, generation: Tai) -> Self {
        Self {
            station_id,
            station_type: 5,
            generation,
            position: None,
            position_confidence: None,
            altitude: None,
            speed: None,
            heading: None,
            longitudinal_acceleration: None,
            yaw_rate: None,
            length: None,
            width: None,
            low_frequency: None,
        }
    }
}

/// Makes the CAM of a vehicle. It can always be encoded.
#[must_use]
pub fn build(input: &CamInput) -> Cam {
    let header = types::ItsPduHeader {
        protocol_version: types::OrdinalNumber1B(etsi::PROTOCOL_VERSION),
        message_id: types::MessageId(etsi::MESSAGE_ID),
        station_id: types::StationId(input.station_id),
    };
    let high_frequency = types::HighFrequencyContainer::BasicVehicleContainerHighFrequency(high_frequency(input));
    let low_frequency = input
        .low_frequency
        .as_ref()
        .map(|low| types::LowFrequencyContainer::BasicVehicleContainerLowFrequency(low_frequency(low, input)));
    let basic =
        types::BasicContainer::new(types::TrafficParticipantType(input.station_type), reference_position(input));
    let mut parameters = types::CamParameters::new(basic, high_frequency);
    parameters.low_frequency_container = low_frequency;
    let generation = types::GenerationDeltaTime(input.generation.timestamp_its().generation_delta_time());
    Cam { header, cam: types::CamPayload { generation_delta_time: generation, cam_parameters: parameters } }
}

fn reference_position(input: &CamInput) -> types::ReferencePositionWithConfidence {
    let (latitude, longitude) = scale::coordinates(input.position);
    // SemiAxisLength: centimetres, 4094 out of range, 4095 unavailable.
    let axis = input.position_confidence.map_or(4095, |radius| scale::scaled_u16(radius.value(), 100.0, 1, 4094));
    // A circle's axes point anywhere, so north.
    let orientation = if input.position_confidence.is_some() { 0 } else { scale::HEADING_UNAVAILABLE };
    types::ReferencePositionWithConfidence {
        latitude: types::Latitude(latitude),
        longitude: types::Longitude(longitude),
        position_confidence_ellipse: types::PositionConfidenceEllipse {
            semi_major_axis_length: types::SemiAxisLength(axis),
            semi_minor_axis_length: types::SemiAxisLength(axis),
            semi_major_axis_orientation: types::Wgs84AngleValue(orientation),
        },
        altitude: types::Altitude {
            altitude_value: types::AltitudeValue(scale::altitude_value(input.altitude)),
            altitude_confidence: types::AltitudeConfidence::Unavailable,
        },
    }
}

fn high_frequency(input: &CamInput) -> types::BasicVehicleContainerHighFrequency {
    types::BasicVehicleContainerHighFrequency {
        heading: types::Heading {
            heading_value: types::HeadingValue(scale::heading_value(input.heading)),
            // 127 is unavailable.
            heading_confidence: types::HeadingConfidence(127),
        },
        speed: types::Speed {
            speed_value: types::SpeedValue(scale::speed_value(input.speed)),
            // 127 is unavailable.
            speed_confidence: types::SpeedConfidence(127),
        },
        drive_direction: drive_direction(input.speed),
        vehicle_length: vehicle_length(input.length),
        vehicle_width: vehicle_width(input.width),
        longitudinal_acceleration: longitudinal_acceleration(input.longitudinal_acceleration),
        curvature: types::Curvature {
            // 1023 is unavailable.
            curvature_value: types::CurvatureValue(1023),
            curvature_confidence: types::CurvatureConfidence::Unavailable,
        },
        curvature_calculation_mode: types::CurvatureCalculationMode::Unavailable,
        yaw_rate: yaw_rate(input.yaw_rate),
        acceleration_control: None,
        lane_position: None,
        steering_wheel_angle: None,
        lateral_acceleration: None,
        vertical_acceleration: None,
        performance_class: None,
        cen_dsrc_tolling_zone: None,
    }
}

fn drive_direction(speed: Option<MetresPerSecond>) -> types::DriveDirection {
    match speed.map(MetresPerSecond::value) {
        Some(speed) if speed < 0.0 => types::DriveDirection::Backward,
        Some(_) => types::DriveDirection::Forward,
        None => types::DriveDirection::Unavailable,
    }
}

/// Tenths of a metre; 1022 is out of range, 1023 unavailable.
fn vehicle_length(length: Option<Metres>) -> types::VehicleLength {
    let value = length.map_or(1023, |length| scale::scaled_u16(length.value(), 10.0, 1, 1022));
    types::VehicleLength {
        vehicle_length_value: types::VehicleLengthValue(value),
        vehicle_length_confidence_indication: types::VehicleLengthConfidenceIndication::Unavailable,
    }
}

/// Tenths of a metre; 61 is out of range, 62 unavailable.
fn vehicle_width(width: Option<Metres>) -> types::VehicleWidth {
    let value = width.map_or(62, |width| scale::scaled_u16(width.value(), 10.0, 1, 61));
    types::VehicleWidth(u8::try_from(value).unwrap_or(62))
}

/// Tenths of a metre per second squared; 161 is unavailable, and 102 is an unavailable confidence.
fn longitudinal_acceleration(acceleration: Option<MetresPerSecondSquared>) -> types::AccelerationComponent {
    let value = acceleration.map_or(161, |acceleration| scale::scaled_i16(acceleration.value(), 10.0, -160, 160));
    types::AccelerationComponent {
        value: types::AccelerationValue(value),
        confidence: types::AccelerationConfidence(102),
    }
}

/// Hundredths of a degree per second; 32 767 is unavailable.
fn yaw_rate(rate: Option<DegreesPerSecond>) -> types::YawRate {
    let value = rate.map_or(32_767, |rate| scale::scaled_i16(rate.value(), 100.0, -32_766, 32_766));
    types::YawRate {
        yaw_rate_value: types::YawRateValue(value),
        yaw_rate_confidence: types::YawRateConfidence::Unavailable,
    }
}

fn low_frequency(low: &LowFrequency, input: &CamInput) -> types::BasicVehicleContainerLowFrequency {
    types::BasicVehicleContainerLowFrequency {
        vehicle_role: types::VehicleRole::Default,
        exterior_lights: types::ExteriorLights::from_octet(low.exterior_lights),
        path_history: types::Path(path_history(&low.path_history, input)),
    }
}

/// Each point relative to the one before, the first one to the reference position (TS 102 894-2, `PathHistory`). Without a
/// reference position there is nothing to be relative to.
fn path_history(points: &[PathPoint], input: &CamInput) -> Vec<types::PathPoint> {
    let Some(reference) = input.position else {
        return Vec::new();
    };
    let before = std::iter::once((reference, input.altitude)).chain(points.iter().map(|p| (p.position, p.altitude)));
    points.iter().zip(before).take(PATH_POINTS_MAX).map(|(point, before)| path_point(point, before)).collect()
}

fn path_point(point: &PathPoint, (position, altitude): (Position, Option<Metres>)) -> types::PathPoint {
    // Tenths of a microdegree; 131 072 is unavailable.
    let delta = |here: Degrees, before: Degrees| scale::scaled((here - before).value(), 1e7, -131_071, 131_071);
    // Centimetres; 12 800 is unavailable.
    let climb = point
        .altitude
        .zip(altitude)
        .map_or(12_800, |(here, before)| scale::scaled_i16((here - before).value(), 100.0, -12_700, 12_799));
    types::PathPoint {
        path_position: types::DeltaReferencePosition {
            delta_latitude: types::DeltaLatitude(delta(point.position.latitude, position.latitude)),
            delta_longitude: types::DeltaLongitude(delta(point.position.longitude, position.longitude)),
            delta_altitude: types::DeltaAltitude(climb),
        },
        // Units of 10 ms.
        path_delta_time: point
            .travel_time
            .map(|time| types::PathDeltaTime(scale::scaled_u16(time.as_secs_f64(), 100.0, 1, u16::MAX).into())),
    }
}

#[cfg(test)]
mod tests {
    use viaduct_units::TimestampIts;

    use super::*;

    fn full() -> CamInput {
        CamInput {
            position: Some(Position::new(45.014_765_3, 7.568_490_8)),
            position_confidence: Some(Metres(1.5)),
            altitude: Some(Metres(269.8)),
            speed: Some(MetresPerSecond(13.89)),
            heading: Some(Degrees(270.5)),
            longitudinal_acceleration: Some(MetresPerSecondSquared(-0.3)),
            yaw_rate: Some(DegreesPerSecond(1.25)),
            length: Some(Metres(4.5)),
            width: Some(Metres(1.8)),
            ..CamInput::new(1001, TimestampIts(650_000_012_345).tai())
        }
    }

    fn encoded(input: &CamInput) -> Cam {
        etsi::decode(&etsi::encode(&build(input)).unwrap()).unwrap()
    }

    #[test]
    fn what_is_put_in_comes_out() {
        let input = full();
        let reception = input.generation.plus(Duration::from_millis(7));
        let summary = summary(&encoded(&input), reception);
        let expected = Summary {
            station_id: 1001,
            station_type: Some(5),
            generation: Some(input.generation),
            position: input.position,
            altitude: input.altitude,
            speed: input.speed,
            heading: input.heading,
        };
        assert_eq!(summary, expected);
    }

    #[test]
    fn what_is_not_known_is_unavailable() {
        let input = CamInput::new(1, TimestampIts(650_000_000_000).tai());
        let summary = summary(&encoded(&input), input.generation);
        assert_eq!((summary.position, summary.altitude, summary.speed, summary.heading), (None, None, None, None));
    }

    #[test]
    fn any_quantity_can_be_encoded() {
        let values = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, -1e300, 0.0, -0.0, 5.0];
        for value in values {
            let point = PathPoint {
                position: Position::new(value, value),
                altitude: Some(Metres(value)),
                travel_time: Some(Duration::MAX),
            };
            let input = CamInput {
                position: Some(Position::new(value, value)),
                position_confidence: Some(Metres(value)),
                altitude: Some(Metres(value)),
                speed: Some(MetresPerSecond(value)),
                heading: Some(Degrees(value)),
                longitudinal_acceleration: Some(MetresPerSecondSquared(value)),
                yaw_rate: Some(DegreesPerSecond(value)),
                length: Some(Metres(value)),
                width: Some(Metres(value)),
                low_frequency: Some(LowFrequency { exterior_lights: 0xFF, path_history: vec![point; 100] }),
                ..full()
            };
            assert_eq!(build(&input), encoded(&input), "{value}");
        }
    }

    #[test]
    fn a_path_is_relative_from_point_to_point() {
        let at = |latitude: f64| PathPoint {
            position: Position::new(latitude, 7.568_490_8),
            altitude: Some(Metres(269.8)),
            travel_time: Some(Duration::from_millis(500)),
        };
        let path_history = vec![at(45.014_665_3), at(45.014_465_3)];
        let input = CamInput { low_frequency: Some(LowFrequency { exterior_lights: 0x80, path_history }), ..full() };
        let cam = encoded(&input);
        let Some(types::LowFrequencyContainer::BasicVehicleContainerLowFrequency(low)) =
            cam.cam.cam_parameters.low_frequency_container
        else {
            panic!("no low frequency container")
        };
        let deltas: Vec<i32> = low.path_history.0.iter().map(|p| p.path_position.delta_latitude.0).collect();
        assert_eq!(deltas, [-1000, -2000]);
        assert_eq!(low.path_history.0[0].path_delta_time, Some(types::PathDeltaTime(50)));
        assert_eq!(low.exterior_lights, types::ExteriorLights::from_octet(0x80));
    }
}
