//! Cooperative awareness message, TS 103 900 V2.3.1.

use viaduct_etsi::cam_ts103900_v231::{self as etsi, Cam, types};
use viaduct_units::{
    Degrees, DegreesPerSecond, Metres, MetresPerSecond, MetresPerSecondSquared, Position, StationId, StationType, Tai,
};

use super::{
    ConfidenceEllipse, Summary,
    dictionary::{self, place_of},
    path, scale,
};

pub use super::path::PathPoint;
/// Types of the containers for special roles of a vehicle. Their numbers are not scaled.
pub use viaduct_etsi::cam_ts103900_v231::types::{
    CauseCodeV2, ClosedLanes, DangerousGoodsContainer, EmergencyContainer, ExtensionContainer, LightBarSirenInUse,
    PublicTransportContainer, RescueContainer, RoadWorksContainerBasic, SafetyCarContainer, SpecialTransportContainer,
    SpecialVehicleContainer, VehicleRole,
};

/// Bits of `generationDeltaTime`.
const GENERATION_DELTA_TIME_BITS: u32 = 16;
/// Maximum number of points of a CAM's path history (TS 103 900, annex B; 40 in release 1).
pub const PATH_POINTS_MAX: usize = 23;
/// Maximum number of zones in a roadside unit's CAM (`ProtectedCommunicationZonesRSU`).
pub const PROTECTED_ZONES_MAX: usize = 16;

/// Returns the values of a CAM that most applications need.
#[must_use]
pub fn summary(cam: &Cam, reception: Tai) -> Summary {
    let parameters = &cam.cam.cam_parameters;
    let at = &parameters.basic_container.reference_position;
    let (speed, heading) = match &parameters.high_frequency_container {
        types::HighFrequencyContainer::BasicVehicleContainerHighFrequency(vehicle) => {
            (scale::speed(vehicle.speed.speed_value.0), scale::heading(vehicle.heading.heading_value.0))
        }
        // A roadside unit's CAM has neither.
        _ => (None, None),
    };
    Summary {
        station_id: StationId(cam.header.station_id.0),
        station_type: Some(StationType(parameters.basic_container.station_type.0)),
        generation: Some(generation(cam.cam.generation_delta_time, reception)),
        position: scale::position(at.latitude.0, at.longitude.0),
        altitude: scale::altitude(at.altitude.altitude_value.0),
        speed,
        heading,
    }
}

/// Returns the time nearest to the reception that has these lower bits.
pub(super) fn generation(wrapped: types::GenerationDeltaTime, reception: Tai) -> Tai {
    reception.timestamp_its().widen(wrapped.0.into(), GENERATION_DELTA_TIME_BITS).tai()
}

/// Input for a CAM. A `None` is sent as "unavailable", or omitted if the message permits it. A value beyond the range
/// of its field is sent as the end of that range.
#[derive(Clone, Debug, PartialEq)]
pub struct CamInput {
    /// Identifier of the station.
    pub station_id: StationId,
    /// `StationType` (TS 102 894-2): 5 is a passenger car.
    pub station_type: StationType,
    /// Time of the values below; sent as `generationDeltaTime`.
    pub generation: Tai,
    /// Reference position: the middle of the front bumper, on the ground.
    pub position: Option<Position>,
    /// Accuracy of the position.
    pub position_confidence: Option<ConfidenceEllipse>,
    /// Altitude above the WGS 84 ellipsoid.
    pub altitude: Option<Metres>,
    /// Accuracy of the altitude, up to 200 m.
    pub altitude_confidence: Option<Metres>,
    /// Speed along the vehicle's axis, negative backwards, up to 163.82 m/s.
    pub speed: Option<MetresPerSecond>,
    /// Accuracy of the speed, up to 1.25 m/s.
    pub speed_confidence: Option<MetresPerSecond>,
    /// Heading of the movement.
    pub heading: Option<Degrees>,
    /// Accuracy of the heading, up to 12.5 degrees.
    pub heading_confidence: Option<Degrees>,
    /// Acceleration along the vehicle's axis, up to 16 m/s².
    pub longitudinal_acceleration: Option<MetresPerSecondSquared>,
    /// Accuracy of that acceleration, up to 10 m/s².
    pub longitudinal_acceleration_confidence: Option<MetresPerSecondSquared>,
    /// Acceleration across the vehicle's axis, positive to the left, up to 16 m/s².
    pub lateral_acceleration: Option<MetresPerSecondSquared>,
    /// Acceleration upwards, up to 16 m/s².
    pub vertical_acceleration: Option<MetresPerSecondSquared>,
    /// Rate of turn, positive to the left, up to 327.66 degrees per second.
    pub yaw_rate: Option<DegreesPerSecond>,
    /// Accuracy of the rate of turn, up to 100 degrees per second.
    pub yaw_rate_confidence: Option<DegreesPerSecond>,
    /// Curvature of the vehicle's path in 1/m, positive to the left, up to 0.1022.
    pub curvature_per_m: Option<f64>,
    /// Accuracy of the curvature, in 1/m, up to 0.1.
    pub curvature_confidence_per_m: Option<f64>,
    /// `true` if the curvature is calculated with the rate of turn.
    pub curvature_from_yaw_rate: Option<bool>,
    /// Angle of the steering wheel, positive to the left, up to 766.5 degrees.
    pub steering_wheel_angle: Option<Degrees>,
    /// `AccelerationControl`: seven bits from the most significant one on, which is "brake pedal pressed".
    pub acceleration_control: Option<u8>,
    /// Lane, counted from the outside: -1 is off the road, 0 the inner hard shoulder, 14 the outer one.
    pub lane_position: Option<i8>,
    /// `PerformanceClass`, 0 to 7.
    pub performance_class: Option<u8>,
    /// Nearby tolling station at 5.8 GHz.
    pub tolling_zone: Option<TollingZone>,
    /// Length of the vehicle, up to 102.2 m.
    pub length: Option<Metres>,
    /// Width of the vehicle, up to 6.1 m.
    pub width: Option<Metres>,
    /// Role of the vehicle; sent in the low frequency container.
    pub role: VehicleRole,
    /// The low frequency container; `None` in messages without it (6.1.3: at most every 500 ms).
    pub low_frequency: Option<LowFrequency>,
    /// The special vehicle container; `None` in messages without it (6.1.3: at most every 500 ms).
    pub special_vehicle: Option<SpecialVehicleContainer>,
    /// Protected zones of a roadside unit; the first 16 are sent. `Some` makes it the CAM of a roadside unit, without
    /// the data of a vehicle.
    pub roadside_unit: Option<Vec<ProtectedZone>>,
    /// Extension containers of release 2; the first 8 are sent.
    pub extensions: Vec<ExtensionContainer>,
}

/// Data of the low frequency container.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LowFrequency {
    /// `ExteriorLights`: eight bits, the most significant one is the low beam.
    pub exterior_lights: u8,
    /// Path behind the vehicle, the newest point first; the first 23 are sent.
    pub path_history: Vec<PathPoint>,
}

/// A tolling station at 5.8 GHz (`CenDsrcTollingZone`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TollingZone {
    /// Position.
    pub position: Position,
    /// Identifier, up to 134 217 727.
    pub id: Option<u32>,
}

/// A zone in which transmissions are restricted (`ProtectedCommunicationZone`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProtectedZone {
    /// Centre.
    pub position: Position,
    /// Radius, 1 to 255 m.
    pub radius: Option<Metres>,
    /// Identifier, up to 134 217 727.
    pub id: Option<u32>,
    /// End of the protection.
    pub expiry: Option<Tai>,
    /// `true` if the tolling station is temporary.
    pub temporary: bool,
}

impl CamInput {
    /// Creates the input of a passenger car without any values.
    #[must_use]
    pub const fn new(station_id: StationId, generation: Tai) -> Self {
        Self {
            station_id,
            station_type: StationType::PASSENGER_CAR,
            generation,
            position: None,
            position_confidence: None,
            altitude: None,
            altitude_confidence: None,
            speed: None,
            speed_confidence: None,
            heading: None,
            heading_confidence: None,
            longitudinal_acceleration: None,
            longitudinal_acceleration_confidence: None,
            lateral_acceleration: None,
            vertical_acceleration: None,
            yaw_rate: None,
            yaw_rate_confidence: None,
            curvature_per_m: None,
            curvature_confidence_per_m: None,
            curvature_from_yaw_rate: None,
            steering_wheel_angle: None,
            acceleration_control: None,
            lane_position: None,
            performance_class: None,
            tolling_zone: None,
            length: None,
            width: None,
            role: VehicleRole::Default,
            low_frequency: None,
            special_vehicle: None,
            roadside_unit: None,
            extensions: Vec::new(),
        }
    }
}

/// Builds a CAM. It can be encoded unless a special vehicle or extension container is invalid.
#[must_use]
pub fn build(input: &CamInput) -> Cam {
    let basic = types::BasicContainer::new(
        types::TrafficParticipantType(input.station_type.0),
        place_of!(input).with_confidence(),
    );
    let mut parameters = types::CamParameters::new(basic, high_frequency(input));
    if input.roadside_unit.is_none() {
        parameters.low_frequency_container = input.low_frequency.as_ref().map(|low| low_frequency(low, input));
        parameters.special_vehicle_container.clone_from(&input.special_vehicle);
    }
    parameters.extension_containers = extensions(&input.extensions);
    let generation_delta_time = types::GenerationDeltaTime(input.generation.timestamp_its().generation_delta_time());
    Cam {
        header: dictionary::header(etsi::MESSAGE_ID, etsi::PROTOCOL_VERSION, input.station_id),
        cam: types::CamPayload { generation_delta_time, cam_parameters: parameters },
    }
}

fn high_frequency(input: &CamInput) -> types::HighFrequencyContainer {
    match &input.roadside_unit {
        Some(zones) => types::HighFrequencyContainer::RsuContainerHighFrequency(roadside_unit(zones)),
        None => types::HighFrequencyContainer::BasicVehicleContainerHighFrequency(vehicle(input)),
    }
}

fn vehicle(input: &CamInput) -> types::BasicVehicleContainerHighFrequency {
    let optional =
        |value: Option<MetresPerSecondSquared>| value.map(|value| dictionary::acceleration(Some(value), None));
    types::BasicVehicleContainerHighFrequency {
        heading: dictionary::heading(input.heading, input.heading_confidence),
        speed: dictionary::speed(input.speed, input.speed_confidence),
        drive_direction: drive_direction(input.speed),
        vehicle_length: vehicle_length(input.length),
        vehicle_width: vehicle_width(input.width),
        longitudinal_acceleration: dictionary::acceleration(
            input.longitudinal_acceleration,
            input.longitudinal_acceleration_confidence,
        ),
        curvature: dictionary::curvature(input.curvature_per_m, input.curvature_confidence_per_m),
        curvature_calculation_mode: curvature_calculation_mode(input.curvature_from_yaw_rate),
        yaw_rate: dictionary::yaw_rate(input.yaw_rate, input.yaw_rate_confidence),
        acceleration_control: input.acceleration_control.map(types::AccelerationControl::from_octet),
        lane_position: input.lane_position.map(|lane| types::LanePosition(lane.clamp(-1, 14))),
        steering_wheel_angle: input.steering_wheel_angle.map(steering_wheel_angle),
        lateral_acceleration: optional(input.lateral_acceleration),
        vertical_acceleration: optional(input.vertical_acceleration),
        performance_class: input.performance_class.map(|class| types::PerformanceClass(class.min(7))),
        cen_dsrc_tolling_zone: input.tolling_zone.map(tolling_zone),
    }
}

fn drive_direction(speed: Option<MetresPerSecond>) -> types::DriveDirection {
    match speed.map(MetresPerSecond::value) {
        Some(speed) if speed < 0.0 => types::DriveDirection::Backward,
        Some(_) => types::DriveDirection::Forward,
        None => types::DriveDirection::Unavailable,
    }
}

/// Converts a length to tenths of a metre.
fn vehicle_length(length: Option<Metres>) -> types::VehicleLength {
    types::VehicleLength {
        vehicle_length_value: length.map_or(types::VehicleLengthValue::UNAVAILABLE, |length| {
            types::VehicleLengthValue(scale::scaled_u16(length.value(), 10.0, 1, 1022))
        }),
        vehicle_length_confidence_indication: types::VehicleLengthConfidenceIndication::Unavailable,
    }
}

/// Converts a length to tenths of a metre.
fn vehicle_width(width: Option<Metres>) -> types::VehicleWidth {
    width.map_or(types::VehicleWidth::UNAVAILABLE, |width| {
        types::VehicleWidth(scale::scaled_u8(width.value(), 10.0, 1, 61))
    })
}

/// Returns the curvature calculation mode, also for a VAM.
pub(super) const fn curvature_calculation_mode(from_yaw_rate: Option<bool>) -> types::CurvatureCalculationMode {
    match from_yaw_rate {
        Some(true) => types::CurvatureCalculationMode::YawRateUsed,
        Some(false) => types::CurvatureCalculationMode::YawRateNotUsed,
        None => types::CurvatureCalculationMode::Unavailable,
    }
}

/// Converts an angle to units of 1.5 degrees.
fn steering_wheel_angle(angle: Degrees) -> types::SteeringWheelAngle {
    types::SteeringWheelAngle {
        steering_wheel_angle_value: types::SteeringWheelAngleValue(scale::scaled_i16(
            angle.value(),
            1.0 / 1.5,
            -511,
            511,
        )),
        steering_wheel_angle_confidence: types::SteeringWheelAngleConfidence::UNAVAILABLE,
    }
}

fn tolling_zone(zone: TollingZone) -> types::CenDsrcTollingZone {
    let (latitude, longitude) = scale::coordinates(Some(zone.position));
    let mut tolling = types::CenDsrcTollingZone::new(types::Latitude(latitude), types::Longitude(longitude));
    tolling.cen_dsrc_tolling_zone_id = zone.id.map(zone_id);
    tolling
}

fn zone_id(id: u32) -> types::ProtectedZoneId {
    types::ProtectedZoneId(id.min(134_217_727))
}

/// Omits the list if it is empty, since the message must not have an empty one.
fn roadside_unit(zones: &[ProtectedZone]) -> types::RsuContainerHighFrequency {
    let zones: Vec<_> = zones.iter().take(PROTECTED_ZONES_MAX).map(protected_zone).collect();
    let mut container = types::RsuContainerHighFrequency::new();
    container.protected_communication_zones_rsu =
        (!zones.is_empty()).then_some(types::ProtectedCommunicationZonesRsu(zones));
    container
}

fn protected_zone(zone: &ProtectedZone) -> types::ProtectedCommunicationZone {
    let kind = if zone.temporary {
        types::ProtectedZoneType::TemporaryCenDsrcTolling
    } else {
        types::ProtectedZoneType::PermanentCenDsrcTolling
    };
    let (latitude, longitude) = scale::coordinates(Some(zone.position));
    let mut protected =
        types::ProtectedCommunicationZone::new(kind, types::Latitude(latitude), types::Longitude(longitude));
    protected.expiry_time = zone.expiry.map(dictionary::timestamp);
    protected.protected_zone_radius =
        zone.radius.map(|radius| types::ProtectedZoneRadius(scale::scaled_u16(radius.value(), 1.0, 1, 255).into()));
    protected.protected_zone_id = zone.id.map(zone_id);
    protected
}

fn low_frequency(low: &LowFrequency, input: &CamInput) -> types::LowFrequencyContainer {
    let history = path::history(&low.path_history, input.position, input.altitude, PATH_POINTS_MAX);
    types::LowFrequencyContainer::BasicVehicleContainerLowFrequency(types::BasicVehicleContainerLowFrequency {
        vehicle_role: input.role,
        exterior_lights: types::ExteriorLights::from_octet(low.exterior_lights),
        path_history: types::Path(history),
    })
}

/// Omits the list if it is empty, since the message must not have an empty one.
fn extensions(containers: &[ExtensionContainer]) -> Option<types::WrappedExtensionContainers> {
    let sent: Vec<_> = containers.iter().take(EXTENSION_CONTAINERS_MAX).cloned().collect();
    (!sent.is_empty()).then_some(types::WrappedExtensionContainers(sent))
}

/// Maximum number of elements of `WrappedExtensionContainers` without its extension.
const EXTENSION_CONTAINERS_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use viaduct_units::TimestampIts;

    use super::*;

    fn full() -> CamInput {
        CamInput {
            position: Some(Position::new(45.014_765_3, 7.568_490_8)),
            position_confidence: Some(ConfidenceEllipse::circle(Metres(1.5))),
            altitude: Some(Metres(269.8)),
            speed: Some(MetresPerSecond(13.89)),
            heading: Some(Degrees(270.5)),
            longitudinal_acceleration: Some(MetresPerSecondSquared(-0.3)),
            yaw_rate: Some(DegreesPerSecond(1.25)),
            length: Some(Metres(4.5)),
            width: Some(Metres(1.8)),
            ..CamInput::new(StationId(1001), TimestampIts(650_000_012_345).tai())
        }
    }

    fn encoded(input: &CamInput) -> Cam {
        etsi::decode(&etsi::encode(&build(input)).unwrap()).unwrap()
    }

    #[test]
    fn a_built_message_round_trips() {
        let input = full();
        let reception = input.generation.plus(Duration::from_millis(7));
        let summary = summary(&encoded(&input), reception);
        let expected = Summary {
            station_id: StationId(1001),
            station_type: Some(StationType::PASSENGER_CAR),
            generation: Some(input.generation),
            position: input.position,
            altitude: input.altitude,
            speed: input.speed,
            heading: input.heading,
        };
        assert_eq!(summary, expected);
    }

    #[test]
    fn an_unknown_value_is_unavailable() {
        let input = CamInput::new(StationId(1), TimestampIts(650_000_000_000).tai());
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
                position_confidence: Some(ConfidenceEllipse {
                    semi_major: Metres(value),
                    semi_minor: Metres(value),
                    orientation: Degrees(value),
                }),
                altitude_confidence: Some(Metres(value)),
                speed_confidence: Some(MetresPerSecond(value)),
                heading_confidence: Some(Degrees(value)),
                longitudinal_acceleration_confidence: Some(MetresPerSecondSquared(value)),
                lateral_acceleration: Some(MetresPerSecondSquared(value)),
                vertical_acceleration: Some(MetresPerSecondSquared(value)),
                yaw_rate_confidence: Some(DegreesPerSecond(value)),
                curvature_per_m: Some(value),
                curvature_confidence_per_m: Some(value),
                curvature_from_yaw_rate: Some(true),
                steering_wheel_angle: Some(Degrees(value)),
                acceleration_control: Some(0xFF),
                lane_position: Some(127),
                performance_class: Some(255),
                tolling_zone: Some(TollingZone { position: Position::new(value, value), id: Some(u32::MAX) }),
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

    #[test]
    fn a_roadside_unit_sends_no_vehicle_containers() {
        let zone = ProtectedZone {
            position: Position::new(45.0, 7.0),
            radius: Some(Metres(1e9)),
            id: Some(u32::MAX),
            expiry: Some(TimestampIts(u64::MAX >> 1).tai()),
            temporary: true,
        };
        let input =
            CamInput { station_type: StationType::ROADSIDE_UNIT, roadside_unit: Some(vec![zone; 20]), ..full() };
        let input = CamInput { low_frequency: Some(LowFrequency::default()), ..input };
        let cam = encoded(&input);
        assert_eq!(cam, build(&input));
        let parameters = &cam.cam.cam_parameters;
        let types::HighFrequencyContainer::RsuContainerHighFrequency(unit) = &parameters.high_frequency_container
        else {
            panic!("not a roadside unit's")
        };
        assert_eq!(unit.protected_communication_zones_rsu.as_ref().unwrap().0.len(), PROTECTED_ZONES_MAX);
        assert_eq!(parameters.low_frequency_container, None);
        let summary = summary(&cam, input.generation);
        assert_eq!((summary.station_type, summary.speed), (Some(StationType::ROADSIDE_UNIT), None));
        let none = CamInput { roadside_unit: Some(Vec::new()), ..full() };
        assert_eq!(encoded(&none), build(&none));
    }

    #[test]
    fn a_special_vehicle_has_its_container_and_its_role() {
        let light_bar_siren_in_use = LightBarSirenInUse::from_octet(0xC0);
        let special = SpecialVehicleContainer::EmergencyContainer(EmergencyContainer {
            light_bar_siren_in_use,
            incident_indication: CauseCodeV2::from_codes(95, 1),
            emergency_priority: Some(types::EmergencyPriority::from_octet(0x80)),
        });
        let input = CamInput {
            role: VehicleRole::Emergency,
            special_vehicle: Some(special.clone()),
            low_frequency: Some(LowFrequency::default()),
            extensions: vec![ExtensionContainer::Unknown { id: 99, octets: vec![1, 2] }],
            ..full()
        };
        let cam = encoded(&input);
        assert_eq!(cam.cam.cam_parameters.special_vehicle_container, Some(special));
        assert_eq!(cam, build(&input));
    }
}
