//! Inputs of the builders with nearly all their fields, for tests against other implementations.

#![allow(dead_code, reason = "each test takes what it needs")]

use std::time::Duration;

use viaduct_its::facilities::{
    ConfidenceEllipse, Offset, PathPoint, PredictedPoint, Shape,
    cam::{
        CamInput, CauseCodeV2, EmergencyContainer, LightBarSirenInUse, LowFrequency, SpecialVehicleContainer,
        TollingZone, VehicleRole,
    },
    cpm::{CpmInput, Object, ObjectClass, Origin, PerceptionRegion, Sensor, SensorType, VehicleSubClass},
    denm::{ActionId, Cause, DenmInput, EventPoint, Location, RoadType, Situation, TrafficDirection},
    vam::{
        Cluster, ClusterLeaveReason, ClusterOperation, MotionPrediction, SafeDistance, TrajectoryInterception,
        VamInput, VruDeviceUsage, VruEnvironment, VruLowFrequency, VruMovementControl, VruProfileAndSubprofile,
        VruSizeClass, VruSubProfileBicyclist,
    },
};
use viaduct_units::{
    Degrees, DegreesPerSecond, Metres, MetresPerSecond, MetresPerSecondSquared, Position, StationId, StationType, Tai,
    TimestampIts,
};

pub(crate) fn now() -> Tai {
    TimestampIts(650_000_012_345).tai()
}

fn here() -> Position {
    Position::new(45.014_765_3, -7.568_490_8)
}

fn ellipse() -> ConfidenceEllipse {
    ConfidenceEllipse { semi_major: Metres(1.5), semi_minor: Metres(0.75), orientation: Degrees(30.0) }
}

fn past(latitude: f64, travel_time: Option<Duration>) -> PathPoint {
    PathPoint { position: Position::new(latitude, -7.568_490_8), altitude: Some(Metres(269.0)), travel_time }
}

fn path() -> Vec<PathPoint> {
    vec![past(45.014_665_3, Some(Duration::from_millis(500))), past(45.014_465_3, None)]
}

pub(crate) fn cam() -> CamInput {
    let special = EmergencyContainer {
        light_bar_siren_in_use: LightBarSirenInUse::from_octet(0xC0),
        incident_indication: CauseCodeV2::from_codes(94, 2),
        emergency_priority: None,
    };
    CamInput {
        position: Some(here()),
        position_confidence: Some(ellipse()),
        altitude: Some(Metres(269.8)),
        altitude_confidence: Some(Metres(1.2)),
        speed: Some(MetresPerSecond(13.89)),
        speed_confidence: Some(MetresPerSecond(0.25)),
        heading: Some(Degrees(270.5)),
        heading_confidence: Some(Degrees(1.0)),
        longitudinal_acceleration: Some(MetresPerSecondSquared(-0.3)),
        longitudinal_acceleration_confidence: Some(MetresPerSecondSquared(0.2)),
        lateral_acceleration: Some(MetresPerSecondSquared(0.5)),
        vertical_acceleration: Some(MetresPerSecondSquared(-0.1)),
        yaw_rate: Some(DegreesPerSecond(-1.25)),
        yaw_rate_confidence: Some(DegreesPerSecond(0.04)),
        curvature_per_m: Some(-0.0123),
        curvature_confidence_per_m: Some(0.0004),
        curvature_from_yaw_rate: Some(true),
        steering_wheel_angle: Some(Degrees(-30.0)),
        acceleration_control: Some(0xA2),
        lane_position: Some(2),
        performance_class: Some(1),
        tolling_zone: Some(TollingZone { position: here(), id: Some(7) }),
        length: Some(Metres(4.5)),
        width: Some(Metres(1.8)),
        role: VehicleRole::Emergency,
        low_frequency: Some(LowFrequency { exterior_lights: 0xA0, path_history: path() }),
        special_vehicle: Some(SpecialVehicleContainer::EmergencyContainer(special)),
        ..CamInput::new(StationId(0xFFFF_FFFE), now())
    }
}

pub(crate) fn denm() -> DenmInput {
    let action = |sequence_number| ActionId { originating_station: StationId(1001), sequence_number };
    let point = |latitude| EventPoint { point: past(latitude, None), quality: 3 };
    DenmInput {
        station_type: StationType::PASSENGER_CAR,
        position: Some(here()),
        position_confidence: Some(ellipse()),
        altitude: Some(Metres(269.8)),
        altitude_confidence: Some(Metres(1.2)),
        awareness_distance: Some(Metres(1000.0)),
        traffic_direction: Some(TrafficDirection::AllTrafficDirections),
        validity: Some(Duration::from_secs(60)),
        transmission_interval: Some(Duration::from_millis(500)),
        situation: Some(Situation {
            linked_cause: Some(Cause { code: 2, sub_code: 1 }),
            event_zone: vec![point(45.014_665_3), point(45.014_465_3)],
            linked_events: vec![action(8), action(9)],
            perceived: Some(true),
            ..Situation::new(7, Cause { code: 94, sub_code: 2 })
        }),
        location: Some(Location {
            speed: Some(MetresPerSecond(3.25)),
            speed_confidence: Some(MetresPerSecond(0.25)),
            heading: Some(Degrees(90.0)),
            heading_confidence: Some(Degrees(1.0)),
            traces: vec![path(), path()],
            road_type: Some(RoadType::UrbanNoStructuralSeparationToOppositeLanes),
        }),
        ..DenmInput::new(StationId(1001), action(7), now())
    }
}

pub(crate) fn cpm() -> CpmInput {
    let area = Shape::circle(Metres(80.0));
    let vehicle = ObjectClass::VehicleSubClass(VehicleSubClass(5));
    let object = Object {
        offset_confidence: Some(Metres(0.5)),
        velocity: Some([MetresPerSecond(-3.25), MetresPerSecond(0.5)]),
        velocity_confidence: Some(MetresPerSecond(0.2)),
        acceleration: Some([MetresPerSecondSquared(0.5), MetresPerSecondSquared(-0.5)]),
        yaw: Some(Degrees(171.3)),
        yaw_rate: Some(DegreesPerSecond(-4.0)),
        length: Some(Metres(4.2)),
        width: Some(Metres(1.8)),
        height: Some(Metres(1.5)),
        age: Some(Duration::from_millis(1500)),
        quality: Some(12),
        sensors: vec![1],
        classes: vec![(vehicle, Some(0.87))],
        ..Object::new(800, now(), Offset { x: Metres(-35.04), y: Metres(8.09), z: Some(Metres(0.5)) })
    };
    let region = PerceptionRegion {
        measurement: now(),
        confidence: Some(0.8),
        area: area.clone(),
        shadowing: true,
        sensors: vec![1],
        objects: vec![800],
    };
    let sensor = Sensor { id: 1, kind: SensorType::LIDAR, area: Some(area), confidence: Some(0.9), shadowing: true };
    let origin = Origin::Vehicle { orientation: Some(Degrees(271.2)), orientation_confidence: Some(Degrees(1.0)) };
    CpmInput {
        position: Some(here()),
        position_confidence: Some(ellipse()),
        altitude: Some(Metres(269.8)),
        segment: Some((1, 2)),
        rate_range_hz: Some((1.0, 10.0)),
        sensors: vec![sensor],
        regions: vec![region],
        objects: vec![object],
        objects_perceived: Some(3),
        ..CpmInput::new(StationId(1001), now(), origin)
    }
}

pub(crate) fn vam() -> VamInput {
    let tenth = Duration::from_millis(100);
    let prediction = PredictedPoint { position: Position::new(45.014_865_3, -7.568_490_8), time: Some(tenth) };
    VamInput {
        station_type: StationType::CYCLIST,
        position: Some(here()),
        position_confidence: Some(ellipse()),
        altitude: Some(Metres(269.8)),
        heading: Some(Degrees(270.5)),
        heading_confidence: Some(Degrees(1.0)),
        speed: Some(MetresPerSecond(4.5)),
        speed_confidence: Some(MetresPerSecond(0.25)),
        longitudinal_acceleration: Some(MetresPerSecondSquared(-0.3)),
        lateral_acceleration: Some(MetresPerSecondSquared(0.5)),
        vertical_acceleration: Some(MetresPerSecondSquared(-0.1)),
        yaw_rate: Some(DegreesPerSecond(-1.25)),
        curvature_per_m: Some(-0.0123),
        curvature_from_yaw_rate: Some(false),
        orientation: Some(Degrees(10.0)),
        roll_angle: Some(Degrees(5.0)),
        environment: Some(VruEnvironment::ZEBRA_CROSSING),
        movement_control: Some(VruMovementControl::BRAKING),
        device_usage: Some(VruDeviceUsage::IDLE),
        low_frequency: Some(VruLowFrequency {
            profile: VruProfileAndSubprofile::BicyclistAndLightVruVehicle(VruSubProfileBicyclist::PEDELEC),
            size_class: Some(VruSizeClass::MEDIUM),
            exterior_lights: Some((0x80, 0x40)),
        }),
        cluster: Some(Cluster {
            id: 7,
            area: Shape::circle(Metres(2.5)),
            size: 12,
            profiles: Some([true, true, false, false]),
        }),
        cluster_operation: Some(ClusterOperation {
            leave: Some((3, ClusterLeaveReason::SAFETY_CONDITION)),
            id_change: Some(Duration::from_secs(2)),
            ..ClusterOperation::default()
        }),
        motion_prediction: Some(MotionPrediction {
            path_history: path(),
            path_prediction: vec![prediction],
            safe_distances: vec![SafeDistance {
                station: Some(StationId(1001)),
                safe: true,
                time_to_collision: Some(tenth),
            }],
            interceptions: vec![TrajectoryInterception { station: Some(StationId(1001)), probability: Some(0.5) }],
            acceleration_change: Some((true, tenth)),
            heading_change: Some((false, tenth)),
            stability_change: Some((0.25, tenth)),
        }),
        ..VamInput::new(StationId(2001), now())
    }
}
