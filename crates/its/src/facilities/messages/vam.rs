//! Vulnerable road user awareness message, TS 103 300-3 V2.3.1.

use std::time::Duration;

use viaduct_etsi::vam_ts103300_3_v231::{self as etsi, Vam, types};
use viaduct_units::{
    Degrees, DegreesPerSecond, Metres, MetresPerSecond, MetresPerSecondSquared, Position, StationId, StationType, Tai,
};

use super::{
    ConfidenceEllipse, Summary, cam,
    dictionary::{self, place_of},
    path::{self, PATH_POINTS_MAX, PathPoint, PredictedPoint},
    scale,
    shape::Shape,
};

/// Enumerations of the standard. Their numbers are not scaled.
pub use viaduct_etsi::vam_ts103300_3_v231::types::{
    ClusterBreakupReason, ClusterLeaveReason, VruDeviceUsage, VruEnvironment, VruMovementControl,
    VruProfileAndSubprofile, VruSizeClass, VruSubProfileAnimal, VruSubProfileBicyclist, VruSubProfileMotorcyclist,
    VruSubProfilePedestrian,
};

/// Maximum number of stations in a motion prediction (`SequenceOfSafeDistanceIndication` without its extension).
pub const INDICATIONS_MAX: usize = 8;

/// Returns the values of a VAM that most applications need.
#[must_use]
pub fn summary(vam: &Vam, reception: Tai) -> Summary {
    let parameters = &vam.vam.vam_parameters;
    let at = &parameters.basic_container.reference_position;
    let movement = &parameters.vru_high_frequency_container;
    Summary {
        station_id: StationId(vam.header.station_id.0),
        station_type: Some(StationType(parameters.basic_container.station_type.0)),
        generation: Some(cam::generation(vam.vam.generation_delta_time, reception)),
        position: scale::position(at.latitude.0, at.longitude.0),
        altitude: scale::altitude(at.altitude.altitude_value.0),
        speed: scale::speed(movement.speed.speed_value.0),
        heading: scale::heading(movement.heading.value.0),
    }
}

/// Input for a VAM of a vulnerable road user or of the leader of a cluster. A `None` is sent as "unavailable", or
/// omitted if the message permits it. A value beyond the range of its field is sent as the end of that range.
#[derive(Clone, Debug, PartialEq)]
pub struct VamInput {
    /// Identifier of the station.
    pub station_id: StationId,
    /// `StationType` (TS 102 894-2): 1 is a pedestrian, 2 a cyclist.
    pub station_type: StationType,
    /// Time of the values below; sent as `generationDeltaTime`.
    pub generation: Tai,
    /// Reference position: the middle of the road user on the ground, or of the cluster.
    pub position: Option<Position>,
    /// Accuracy of the position.
    pub position_confidence: Option<ConfidenceEllipse>,
    /// Altitude above the WGS 84 ellipsoid.
    pub altitude: Option<Metres>,
    /// Accuracy of the altitude, up to 200 m.
    pub altitude_confidence: Option<Metres>,
    /// Heading of the movement.
    pub heading: Option<Degrees>,
    /// Accuracy of the heading, up to 12.5 degrees.
    pub heading_confidence: Option<Degrees>,
    /// Speed, up to 163.82 m/s.
    pub speed: Option<MetresPerSecond>,
    /// Accuracy of the speed, up to 1.25 m/s.
    pub speed_confidence: Option<MetresPerSecond>,
    /// Acceleration in the direction of movement, up to 16 m/s².
    pub longitudinal_acceleration: Option<MetresPerSecondSquared>,
    /// Acceleration across the direction of movement, positive to the left, up to 16 m/s².
    pub lateral_acceleration: Option<MetresPerSecondSquared>,
    /// Acceleration upwards, up to 16 m/s².
    pub vertical_acceleration: Option<MetresPerSecondSquared>,
    /// Rate of turn, positive to the left, up to 327.66 degrees per second.
    pub yaw_rate: Option<DegreesPerSecond>,
    /// Curvature of the path in 1/m, positive to the left, up to 0.1022.
    pub curvature_per_m: Option<f64>,
    /// `true` if the curvature is calculated with the rate of turn.
    pub curvature_from_yaw_rate: Option<bool>,
    /// Orientation of the body, if it differs from the heading.
    pub orientation: Option<Degrees>,
    /// Roll angle, counter-clockwise.
    pub roll_angle: Option<Degrees>,
    /// Environment of the road user.
    pub environment: Option<VruEnvironment>,
    /// Control of the road user over the vehicle's movement.
    pub movement_control: Option<VruMovementControl>,
    /// Use of a device by the person.
    pub device_usage: Option<VruDeviceUsage>,
    /// The low frequency container; `None` in messages without it.
    pub low_frequency: Option<VruLowFrequency>,
    /// The cluster, if the sender is its leader.
    pub cluster: Option<Cluster>,
    /// Operation of the sender on a cluster.
    pub cluster_operation: Option<ClusterOperation>,
    /// Expected movement of the road user.
    pub motion_prediction: Option<MotionPrediction>,
}

/// Data of the low frequency container.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VruLowFrequency {
    /// Profile of the road user.
    pub profile: VruProfileAndSubprofile,
    /// Size class of the road user.
    pub size_class: Option<VruSizeClass>,
    /// Lights: `ExteriorLights`, and the eight bits of `VruSpecificExteriorLights`, the first bit the most significant one.
    pub exterior_lights: Option<(u8, u8)>,
}

/// A group of road users that moves together (`VruClusterInformation`).
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    /// Number of the cluster.
    pub id: u8,
    /// Area that contains the cluster, relative to the reference position: a circle, a rectangle or a polygon.
    pub area: Shape,
    /// Number of road users in it; 0 is unknown.
    pub size: u8,
    /// Profiles of its members: pedestrian, bicyclist, motorcyclist, animal.
    pub profiles: Option<[bool; 4]>,
}

/// Operation of a road user on a cluster (`VruClusterOperationContainer`). Times are up to 63.5 s.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClusterOperation {
    /// Number of the cluster that it joins, and the time until then.
    pub join: Option<(u8, Duration)>,
    /// Number of the cluster that it leaves, and the reason.
    pub leave: Option<(u8, ClusterLeaveReason)>,
    /// Reason for dissolving its cluster, and the time until then.
    pub breakup: Option<(ClusterBreakupReason, Duration)>,
    /// Time until its cluster has another number.
    pub id_change: Option<Duration>,
}

/// Expected movement of a road user (`VruMotionPredictionContainer`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MotionPrediction {
    /// Path behind the road user, the newest point first; the first 40 are sent.
    pub path_history: Vec<PathPoint>,
    /// Expected path, the next point first; the first 16 are sent.
    pub path_prediction: Vec<PredictedPoint>,
    /// Distances to other stations; the first 8 are sent.
    pub safe_distances: Vec<SafeDistance>,
    /// Possible crossings with the paths of others; the first 8 are sent.
    pub interceptions: Vec<TrajectoryInterception>,
    /// `true` for a higher and `false` for a lower speed, and the time until then, up to 12.6 s.
    pub acceleration_change: Option<(bool, Duration)>,
    /// `true` for a turn to the left and `false` to the right, and the time until then, up to 12.6 s.
    pub heading_change: Option<(bool, Duration)>,
    /// Probability of a fall, 0 to 1, and the time until then, up to 12.6 s.
    pub stability_change: Option<(f64, Duration)>,
}

/// Safety of the distance to a station.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SafeDistance {
    /// Identifier of the other station, if it is known.
    pub station: Option<StationId>,
    /// `true` if the distance is safe.
    pub safe: bool,
    /// Time until a collision, up to 12.6 s.
    pub time_to_collision: Option<Duration>,
}

/// A possible crossing with the path of another station at the same time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrajectoryInterception {
    /// Identifier of the other station, if it is known.
    pub station: Option<StationId>,
    /// Probability of the crossing, 0 to 1.
    pub probability: Option<f64>,
}

impl VamInput {
    /// Creates the input of a pedestrian without any values.
    #[must_use]
    pub const fn new(station_id: StationId, generation: Tai) -> Self {
        Self {
            station_id,
            station_type: StationType::PEDESTRIAN,
            generation,
            position: None,
            position_confidence: None,
            altitude: None,
            altitude_confidence: None,
            heading: None,
            heading_confidence: None,
            speed: None,
            speed_confidence: None,
            longitudinal_acceleration: None,
            lateral_acceleration: None,
            vertical_acceleration: None,
            yaw_rate: None,
            curvature_per_m: None,
            curvature_from_yaw_rate: None,
            orientation: None,
            roll_angle: None,
            environment: None,
            movement_control: None,
            device_usage: None,
            low_frequency: None,
            cluster: None,
            cluster_operation: None,
            motion_prediction: None,
        }
    }
}

/// Builds a VAM. It can always be encoded.
#[must_use]
pub fn build(input: &VamInput) -> Vam {
    let basic = types::BasicContainer::new(
        types::TrafficParticipantType(input.station_type.0),
        place_of!(input).with_confidence(),
    );
    let mut parameters = types::VamParameters::new(basic, high_frequency(input));
    parameters.vru_low_frequency_container = input.low_frequency.map(low_frequency);
    parameters.vru_cluster_information_container = input.cluster.as_ref().map(|it| Box::new(cluster(it)));
    parameters.vru_cluster_operation_container = input.cluster_operation.map(cluster_operation);
    parameters.vru_motion_prediction_container =
        input.motion_prediction.as_ref().map(|it| Box::new(motion_prediction(it, input)));
    let generation_delta_time = types::GenerationDeltaTime(input.generation.timestamp_its().generation_delta_time());
    Vam {
        header: dictionary::header(etsi::MESSAGE_ID, etsi::PROTOCOL_VERSION, input.station_id),
        vam: types::VruAwareness { generation_delta_time, vam_parameters: parameters },
    }
}

fn high_frequency(input: &VamInput) -> types::VruHighFrequencyContainer {
    let mut container = types::VruHighFrequencyContainer::new(
        dictionary::wgs84_angle(input.heading, input.heading_confidence),
        dictionary::speed(input.speed, input.speed_confidence),
        longitudinal_acceleration(input.longitudinal_acceleration),
    );
    container.curvature = input.curvature_per_m.map(|curvature| dictionary::curvature(Some(curvature), None));
    container.curvature_calculation_mode =
        input.curvature_from_yaw_rate.map(|from| cam::curvature_calculation_mode(Some(from)));
    container.yaw_rate = input.yaw_rate.map(|rate| dictionary::yaw_rate(Some(rate), None));
    container.lateral_acceleration = input.lateral_acceleration.map(lateral_acceleration);
    container.vertical_acceleration = input.vertical_acceleration.map(vertical_acceleration);
    container.environment = input.environment;
    container.movement_control = input.movement_control;
    container.orientation = input.orientation.map(|angle| dictionary::wgs84_angle(Some(angle), None));
    container.roll_angle = input.roll_angle.map(|angle| dictionary::cartesian_angle(angle, None));
    container.device_usage = input.device_usage;
    container
}

fn longitudinal_acceleration(acceleration: Option<MetresPerSecondSquared>) -> types::LongitudinalAcceleration {
    let component = dictionary::acceleration(acceleration, None);
    types::LongitudinalAcceleration {
        longitudinal_acceleration_value: types::LongitudinalAccelerationValue(component.value.0),
        longitudinal_acceleration_confidence: component.confidence,
    }
}

fn lateral_acceleration(acceleration: MetresPerSecondSquared) -> types::LateralAcceleration {
    let component = dictionary::acceleration(Some(acceleration), None);
    types::LateralAcceleration {
        lateral_acceleration_value: types::LateralAccelerationValue(component.value.0),
        lateral_acceleration_confidence: component.confidence,
    }
}

fn vertical_acceleration(acceleration: MetresPerSecondSquared) -> types::VerticalAcceleration {
    let component = dictionary::acceleration(Some(acceleration), None);
    types::VerticalAcceleration {
        vertical_acceleration_value: types::VerticalAccelerationValue(component.value.0),
        vertical_acceleration_confidence: component.confidence,
    }
}

fn low_frequency(it: VruLowFrequency) -> types::VruLowFrequencyContainer {
    let mut container = types::VruLowFrequencyContainer::new(it.profile);
    container.size_class = it.size_class;
    container.exterior_lights = it.exterior_lights.map(|(vehicular, specific)| {
        types::VruExteriorLights::new(
            types::ExteriorLights::from_octet(vehicular),
            types::VruSpecificExteriorLights::from_octet(specific),
        )
    });
    container
}

fn cluster(it: &Cluster) -> types::VruClusterInformationContainer {
    let mut information = types::VruClusterInformation::new(types::CardinalNumber1B(it.size));
    information.cluster_id = Some(types::Identifier1B(it.id));
    information.cluster_bounding_box_shape = Some(Box::new(it.area.to_etsi()));
    information.cluster_profiles = it.profiles.map(|profiles| {
        let bits = profiles.into_iter().fold(0_u8, |bits, profile| bits << 1 | u8::from(profile));
        types::VruClusterProfiles::from_octet(bits << 4)
    });
    types::VruClusterInformationContainer::new(information)
}

fn cluster_operation(it: ClusterOperation) -> types::VruClusterOperationContainer {
    let mut container = types::VruClusterOperationContainer::new();
    container.cluster_join_info =
        it.join.map(|(id, time)| types::ClusterJoinInfo::new(types::Identifier1B(id), quarter_seconds(time)));
    container.cluster_leave_info =
        it.leave.map(|(id, reason)| types::ClusterLeaveInfo::new(types::Identifier1B(id), reason));
    container.cluster_breakup_info =
        it.breakup.map(|(reason, time)| types::ClusterBreakupInfo::new(reason, quarter_seconds(time)));
    container.cluster_id_change_time_info = it.id_change.map(quarter_seconds);
    container
}

/// Returns quarters of a second, at most 254. The value 255 means unavailable.
fn quarter_seconds(time: Duration) -> types::DeltaTimeQuarterSecond {
    types::DeltaTimeQuarterSecond(scale::scaled_u8(time.as_secs_f64(), 4.0, 1, 254))
}

/// Returns tenths of a second, at most 126. The value 127 means unavailable.
fn tenths_of_second(time: Duration) -> types::DeltaTimeTenthOfSecond {
    types::DeltaTimeTenthOfSecond(scale::scaled_u8(time.as_secs_f64(), 10.0, 0, 126))
}

fn motion_prediction(it: &MotionPrediction, input: &VamInput) -> types::VruMotionPredictionContainer {
    let mut container = types::VruMotionPredictionContainer::new();
    let history = path::history(&it.path_history, input.position, input.altitude, PATH_POINTS_MAX);
    container.path_history = (!history.is_empty()).then_some(types::PathHistory(history));
    container.path_prediction = path::predicted(&it.path_prediction, input.position);
    container.safe_distance = safe_distances(&it.safe_distances);
    container.trajectory_interception_indication = interceptions(&it.interceptions);
    container.acceleration_change_indication = it.acceleration_change.map(|(faster, time)| {
        let change = if faster { types::AccelerationChange::Accelerate } else { types::AccelerationChange::Decelerate };
        types::AccelerationChangeIndication::new(change, tenths_of_second(time))
    });
    container.heading_change_indication = it.heading_change.map(|(left, time)| {
        let direction = if left { types::TurningDirection::Left } else { types::TurningDirection::Right };
        types::HeadingChangeIndication::new(direction, tenths_of_second(time))
    });
    container.stability_change_indication = it.stability_change.map(|(probability, time)| {
        // Steps of 2 %; 63 is unavailable.
        let loss = types::StabilityLossProbability(scale::scaled_u8(probability, 50.0, 0, 50));
        types::StabilityChangeIndication::new(loss, tenths_of_second(time))
    });
    container
}

/// Omits the list if it is empty, since the message must not have an empty one.
fn safe_distances(distances: &[SafeDistance]) -> Option<types::SequenceOfSafeDistanceIndication> {
    let sent = distances.iter().take(INDICATIONS_MAX).map(|distance| {
        let mut indication = types::SafeDistanceIndication::new(types::SafeDistanceIndicator(distance.safe));
        indication.subject_station = distance.station.map(|id| types::StationId(id.0));
        indication.time_to_collision = distance.time_to_collision.map(tenths_of_second);
        indication
    });
    let sent: Vec<_> = sent.collect();
    (!sent.is_empty()).then_some(types::SequenceOfSafeDistanceIndication(sent))
}

/// Omits the list if it is empty, since the message must not have an empty one.
fn interceptions(ways: &[TrajectoryInterception]) -> Option<types::SequenceOfTrajectoryInterceptionIndication> {
    let sent = ways.iter().take(INDICATIONS_MAX).map(|way| {
        // Steps of 2 %.
        let probability =
            way.probability.map_or(types::TrajectoryInterceptionProbability::UNAVAILABLE, |probability| {
                types::TrajectoryInterceptionProbability(scale::scaled_u8(probability, 50.0, 0, 50))
            });
        let mut indication = types::TrajectoryInterceptionIndication::new(probability);
        indication.subject_station = way.station.map(|id| types::StationId(id.0));
        indication
    });
    let sent: Vec<_> = sent.collect();
    (!sent.is_empty()).then_some(types::SequenceOfTrajectoryInterceptionIndication(sent))
}

#[cfg(test)]
mod tests {
    use viaduct_units::TimestampIts;

    use super::*;

    fn full() -> VamInput {
        VamInput {
            station_type: StationType::CYCLIST,
            position: Some(Position::new(45.014_765_3, 7.568_490_8)),
            position_confidence: Some(ConfidenceEllipse::circle(Metres(1.5))),
            altitude: Some(Metres(269.8)),
            heading: Some(Degrees(270.5)),
            speed: Some(MetresPerSecond(4.5)),
            longitudinal_acceleration: Some(MetresPerSecondSquared(-0.3)),
            low_frequency: Some(VruLowFrequency {
                profile: VruProfileAndSubprofile::BicyclistAndLightVruVehicle(VruSubProfileBicyclist::PEDELEC),
                size_class: Some(VruSizeClass::MEDIUM),
                exterior_lights: Some((0x80, 0x40)),
            }),
            ..VamInput::new(StationId(2001), TimestampIts(650_000_012_345).tai())
        }
    }

    fn encoded(input: &VamInput) -> Vam {
        etsi::decode(&etsi::encode(&build(input)).unwrap()).unwrap()
    }

    #[test]
    fn a_built_message_round_trips() {
        let input = full();
        let reception = input.generation.plus(Duration::from_millis(7));
        let expected = Summary {
            station_id: StationId(2001),
            station_type: Some(StationType::CYCLIST),
            generation: Some(input.generation),
            position: input.position,
            altitude: input.altitude,
            speed: input.speed,
            heading: input.heading,
        };
        assert_eq!(summary(&encoded(&input), reception), expected);
    }

    #[test]
    fn an_unknown_value_is_unavailable() {
        let input = VamInput::new(StationId(1), TimestampIts(650_000_000_000).tai());
        let summary = summary(&encoded(&input), input.generation);
        assert_eq!((summary.position, summary.altitude, summary.speed, summary.heading), (None, None, None, None));
    }

    #[test]
    fn a_cluster_has_its_area_and_profiles() {
        let cluster =
            Cluster { id: 7, area: Shape::circle(Metres(2.5)), size: 12, profiles: Some([true, false, false, true]) };
        let vam = encoded(&VamInput { cluster: Some(cluster), ..full() });
        let held = vam.vam.vam_parameters.vru_cluster_information_container.unwrap().vru_cluster_information;
        assert_eq!(held.cluster_id, Some(types::Identifier1B(7)));
        assert_eq!(held.cluster_profiles.unwrap().octet(), 0b1001_0000);
    }

    #[test]
    fn any_quantity_can_be_encoded() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, -1e300, 0.0, 5.0] {
            let position = Position::new(value, value);
            let point = PathPoint { position, altitude: Some(Metres(value)), travel_time: Some(Duration::MAX) };
            let motion_prediction = MotionPrediction {
                path_history: vec![point; 50],
                path_prediction: vec![PredictedPoint { position, time: Some(Duration::MAX) }; 50],
                safe_distances: vec![
                    SafeDistance {
                        station: Some(StationId(1)),
                        safe: false,
                        time_to_collision: Some(Duration::MAX)
                    };
                    20
                ],
                interceptions: vec![TrajectoryInterception { station: None, probability: Some(value) }; 20],
                acceleration_change: Some((true, Duration::MAX)),
                heading_change: Some((false, Duration::MAX)),
                stability_change: Some((value, Duration::MAX)),
            };
            let input = VamInput {
                position: Some(position),
                speed: Some(MetresPerSecond(value)),
                heading: Some(Degrees(value)),
                lateral_acceleration: Some(MetresPerSecondSquared(value)),
                vertical_acceleration: Some(MetresPerSecondSquared(value)),
                yaw_rate: Some(DegreesPerSecond(value)),
                curvature_per_m: Some(value),
                curvature_from_yaw_rate: Some(false),
                orientation: Some(Degrees(value)),
                roll_angle: Some(Degrees(value)),
                cluster_operation: Some(ClusterOperation {
                    join: Some((1, Duration::MAX)),
                    leave: Some((2, ClusterLeaveReason::JOINING_ANOTHER_CLUSTER)),
                    breakup: Some((ClusterBreakupReason::NOT_PROVIDED, Duration::ZERO)),
                    id_change: Some(Duration::MAX),
                }),
                motion_prediction: Some(motion_prediction),
                ..full()
            };
            assert_eq!(build(&input), encoded(&input), "{value}");
        }
    }
}
