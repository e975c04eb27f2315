//! Collective perception message, TS 103 324 V2.1.1.

use std::time::Duration;

use viaduct_etsi::cpm_ts103324_v211::{self as etsi, Cpm, CpmContainer, types};
use viaduct_units::{
    Degrees, DegreesPerSecond, Metres, MetresPerSecond, MetresPerSecondSquared, Position, StationId, Tai, TimestampIts,
};

use super::{
    ConfidenceEllipse, Offset, Shape, Summary,
    dictionary::{self, place_of},
    scale,
};

/// Enumerations and identifiers of the standard. Their numbers are not scaled.
pub use viaduct_etsi::cpm_ts103324_v211::types::{
    IntersectionReferenceId, MapReference, ObjectClass, OtherSubClass, RoadSegmentReferenceId, SensorType,
    VehicleSubClass, VruProfileAndSubprofile,
};

/// Maximum number of objects of a message (`PerceivedObjects`).
pub const OBJECTS_MAX: usize = 255;
/// Maximum number of sensors of a message (`SensorInformationContainer`).
pub const SENSORS_MAX: usize = 128;
/// Maximum number of regions of a message (`PerceptionRegionContainer`).
pub const REGIONS_MAX: usize = 256;
/// Maximum number of sensors of an object or a region (`SequenceOfIdentifier1B`).
pub const SENSOR_IDS_MAX: usize = 128;
/// Maximum number of classes of an object (`ObjectClassDescription`).
pub const CLASSES_MAX: usize = 8;
/// Maximum number of segments of a CPM (`MessageSegmentationInfo`).
pub const SEGMENTS_MAX: u8 = 8;

/// Maximum difference between reference time and reception. A reference time with a larger difference is treated as
/// missing, because some stations in the field send a wrapped 16-bit counter.
const REFERENCE_TIME_OFFSET_MAX: Duration = Duration::from_secs(24 * 3600);

/// Returns the values of a CPM that most applications need. A CPM has no station type and speed of its station.
#[must_use]
pub fn summary(cpm: &Cpm, reception: Tai) -> Summary {
    let at = &cpm.management_container.reference_position;
    Summary {
        station_id: StationId(cpm.header.station_id.0),
        station_type: None,
        generation: generation(cpm.management_container.reference_time.0, reception),
        position: scale::position(at.latitude.0, at.longitude.0),
        altitude: scale::altitude(at.altitude.altitude_value.0),
        speed: None,
        heading: cpm.containers.iter().find_map(orientation),
    }
}

/// Returns the number of objects in the message. The station may have perceived more.
#[must_use]
pub fn object_count(cpm: &Cpm) -> usize {
    cpm.containers
        .iter()
        .map(|container| match container {
            CpmContainer::PerceivedObject(objects) => objects.perceived_objects.0.len(),
            _ => 0,
        })
        .sum()
}

/// Returns the reference time. `referenceTime` has all bits of `TimestampIts`, so it is not widened.
fn generation(reference_time: u64, reception: Tai) -> Option<Tai> {
    let moment = TimestampIts(reference_time).tai();
    let offset = moment.since(reception).max(reception.since(moment));
    (offset <= REFERENCE_TIME_OFFSET_MAX).then_some(moment)
}

fn orientation(container: &CpmContainer) -> Option<Degrees> {
    match container {
        CpmContainer::OriginatingVehicle(vehicle) => scale::heading(vehicle.orientation_angle.value.0),
        _ => None,
    }
}

/// Input for a CPM. A `None` is omitted, or sent as "unavailable" if the message requires a value. A value beyond the
/// range of its field is sent as the end of that range.
#[derive(Clone, Debug, PartialEq)]
pub struct CpmInput {
    /// Identifier of the station.
    pub station_id: StationId,
    /// Reference time of the message's times.
    pub reference: Tai,
    /// Reference position of the message's positions.
    pub position: Option<Position>,
    /// Accuracy of the position.
    pub position_confidence: Option<ConfidenceEllipse>,
    /// Altitude above the WGS 84 ellipsoid.
    pub altitude: Option<Metres>,
    /// Accuracy of the altitude, up to 200 m.
    pub altitude_confidence: Option<Metres>,
    /// Number of this segment and number of all segments, both 1 to 8; `None` if the message is not segmented.
    pub segment: Option<(u8, u8)>,
    /// Lowest and highest planned rate of messages, in Hz.
    pub rate_range_hz: Option<(f64, f64)>,
    /// Type of the station.
    pub origin: Origin,
    /// Sensors; empty in messages without them. The first 128 are sent.
    pub sensors: Vec<Sensor>,
    /// Regions in which objects would be perceived at present; the first 256 are sent.
    pub regions: Vec<PerceptionRegion>,
    /// Objects of this message; the first 255 are sent.
    pub objects: Vec<Object>,
    /// Number of objects that the station perceives; `None` is the number in the message.
    pub objects_perceived: Option<u8>,
}

/// Type of the station that perceives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Origin {
    /// A vehicle.
    Vehicle {
        /// Orientation of the vehicle, clockwise from north.
        orientation: Option<Degrees>,
        /// Accuracy of the orientation, up to 12.5 degrees.
        orientation_confidence: Option<Degrees>,
    },
    /// A roadside unit.
    RoadsideUnit {
        /// Map element that the CPM refers to.
        map: Option<MapReference>,
    },
}

/// A sensor and its area of detection (`SensorInformation`).
#[derive(Clone, Debug, PartialEq)]
pub struct Sensor {
    /// Identifier at this station.
    pub id: u8,
    /// Type of the sensor.
    pub kind: SensorType,
    /// Area of detection: relative to the reference position, x east, y north.
    pub area: Option<Shape>,
    /// Probability that an object in the area is perceived, 0 to 1.
    pub confidence: Option<f64>,
    /// `true` if objects hide others behind them.
    pub shadowing: bool,
}

/// A region in which objects would be perceived at present (`PerceptionRegion`).
#[derive(Clone, Debug, PartialEq)]
pub struct PerceptionRegion {
    /// Time of validity, up to 2 s from the reference time.
    pub measurement: Tai,
    /// Probability that an object in the region is perceived, 0 to 1.
    pub confidence: Option<f64>,
    /// The region: relative to the reference position, x east, y north.
    pub area: Shape,
    /// `true` if objects hide others behind them.
    pub shadowing: bool,
    /// Sensors that cover the region; the first 128 are sent.
    pub sensors: Vec<u8>,
    /// Objects of the message in the region; the first 255 are sent.
    pub objects: Vec<u16>,
}

/// A perceived object (`PerceivedObject`). Vectors are relative to the earth, x east, y north, z up.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// Identifier at this station.
    pub id: u16,
    /// Time of measurement, up to 2 s from the reference time.
    pub measurement: Tai,
    /// Position relative to the reference position, up to 1310 m.
    pub offset: Offset,
    /// Accuracy of the position along x and y, up to 40.94 m.
    pub offset_confidence: Option<Metres>,
    /// Velocity along x and y.
    pub velocity: Option<[MetresPerSecond; 2]>,
    /// Accuracy of the velocity, up to 1.25 m/s.
    pub velocity_confidence: Option<MetresPerSecond>,
    /// Acceleration along x and y.
    pub acceleration: Option<[MetresPerSecondSquared; 2]>,
    /// Orientation, counter-clockwise from x.
    pub yaw: Option<Degrees>,
    /// Accuracy of the orientation, up to 12.5 degrees.
    pub yaw_confidence: Option<Degrees>,
    /// Rate of turn, positive to the left, up to 255 degrees per second.
    pub yaw_rate: Option<DegreesPerSecond>,
    /// Length, up to 25.5 m.
    pub length: Option<Metres>,
    /// Width, up to 25.5 m.
    pub width: Option<Metres>,
    /// Height, up to 25.5 m.
    pub height: Option<Metres>,
    /// Time for which it has been perceived, up to 2.047 s; a longer time is sent as 2.047 s.
    pub age: Option<Duration>,
    /// Quality of the perception, 0 to 15.
    pub quality: Option<u8>,
    /// Sensors that perceive it; the first 128 are sent.
    pub sensors: Vec<u8>,
    /// Possible classes, each with a probability, 0 to 1; the first 8 are sent.
    pub classes: Vec<(ObjectClass, Option<f64>)>,
}

impl Object {
    /// Creates an object with a position only.
    #[must_use]
    pub const fn new(id: u16, measurement: Tai, offset: Offset) -> Self {
        Self {
            id,
            measurement,
            offset,
            offset_confidence: None,
            velocity: None,
            velocity_confidence: None,
            acceleration: None,
            yaw: None,
            yaw_confidence: None,
            yaw_rate: None,
            length: None,
            width: None,
            height: None,
            age: None,
            quality: None,
            sensors: Vec::new(),
            classes: Vec::new(),
        }
    }
}

impl CpmInput {
    /// Creates the input of a station that perceives nothing.
    #[must_use]
    pub const fn new(station_id: StationId, reference: Tai, origin: Origin) -> Self {
        Self {
            station_id,
            reference,
            position: None,
            position_confidence: None,
            altitude: None,
            altitude_confidence: None,
            segment: None,
            rate_range_hz: None,
            origin,
            sensors: Vec::new(),
            regions: Vec::new(),
            objects: Vec::new(),
            objects_perceived: None,
        }
    }
}

/// Builds a CPM. It can be encoded unless a class is invalid. The caller checks that it fits a packet.
#[must_use]
pub fn build(input: &CpmInput) -> Cpm {
    Cpm {
        header: dictionary::header(etsi::MESSAGE_ID, etsi::PROTOCOL_VERSION, input.station_id),
        management_container: management(input),
        containers: containers(input),
    }
}

fn management(input: &CpmInput) -> types::ManagementContainer {
    let mut management =
        types::ManagementContainer::new(dictionary::timestamp(input.reference), place_of!(input).reference_position());
    management.segmentation_info = input.segment.map(|(this, total)| types::MessageSegmentationInfo {
        total_msg_no: types::CardinalNumber3b(total.clamp(1, SEGMENTS_MAX)),
        this_msg_no: types::OrdinalNumber3b(this.clamp(1, SEGMENTS_MAX)),
    });
    management.message_rate_range = input.rate_range_hz.map(|(low, high)| types::MessageRateRange {
        message_rate_min: message_rate(low),
        message_rate_max: message_rate(high),
    });
    management
}

/// Returns the rate with the highest precision: the smallest exponent with which the mantissa is at most 100.
fn message_rate(rate_hz: f64) -> types::MessageRateHz {
    let fits = |exponent: &i8| rate_hz <= 100.0 * 10_f64.powi((*exponent).into());
    let exponent = (-5..=2).find(fits).unwrap_or(2);
    types::MessageRateHz { mantissa: scale::scaled_u8(rate_hz, 10_f64.powi((-exponent).into()), 1, 100), exponent }
}

/// Returns the containers in the order of their numbers. The first one is mandatory.
fn containers(input: &CpmInput) -> Vec<CpmContainer> {
    let mut containers = vec![origin(input.origin)];
    let sensors: Vec<_> = input.sensors.iter().take(SENSORS_MAX).map(sensor).collect();
    if !sensors.is_empty() {
        containers.push(CpmContainer::SensorInformation(types::SensorInformationContainer(sensors)));
    }
    let regions: Vec<_> = input.regions.iter().take(REGIONS_MAX).map(|it| region(it, input.reference)).collect();
    if !regions.is_empty() {
        containers.push(CpmContainer::PerceptionRegion(types::PerceptionRegionContainer(regions)));
    }
    let objects: Vec<_> = input.objects.iter().take(OBJECTS_MAX).map(|it| object(it, input.reference)).collect();
    if !objects.is_empty() {
        let sent = u8::try_from(objects.len()).unwrap_or(u8::MAX);
        let perceived = types::CardinalNumber1B(input.objects_perceived.unwrap_or(sent));
        let container = types::PerceivedObjectContainer::new(perceived, types::PerceivedObjects(objects));
        containers.push(CpmContainer::PerceivedObject(container));
    }
    containers
}

fn origin(origin: Origin) -> CpmContainer {
    match origin {
        Origin::Vehicle { orientation, orientation_confidence } => CpmContainer::OriginatingVehicle(
            types::OriginatingVehicleContainer::new(dictionary::wgs84_angle(orientation, orientation_confidence)),
        ),
        Origin::RoadsideUnit { map } => {
            let mut container = types::OriginatingRsuContainer::new();
            container.map_reference = map;
            CpmContainer::OriginatingRsu(container)
        }
    }
}

fn sensor(it: &Sensor) -> types::SensorInformation {
    let mut sensor = types::SensorInformation::new(types::Identifier1B(it.id), it.kind, it.shadowing);
    sensor.perception_region_shape = it.area.as_ref().map(Shape::to_etsi);
    sensor.perception_region_confidence = it.confidence.map(|confidence| confidence_level(Some(confidence)));
    sensor
}

fn region(it: &PerceptionRegion, reference: Tai) -> types::PerceptionRegion {
    let mut region = types::PerceptionRegion::new(
        delta_time(it.measurement, reference),
        confidence_level(it.confidence),
        it.area.to_etsi(),
        it.shadowing,
    );
    region.sensor_id_list = sensor_ids(&it.sensors);
    let ids: Vec<_> = it.objects.iter().take(OBJECTS_MAX).map(|id| types::Identifier2B(*id)).collect();
    region.perceived_object_ids = (!ids.is_empty()).then_some(types::PerceivedObjectIds(ids));
    region
}

fn object(it: &Object, reference: Tai) -> types::PerceivedObject {
    let mut object = types::PerceivedObject::new(delta_time(it.measurement, reference), object_position(it));
    object.object_id = Some(types::Identifier2B(it.id));
    object.velocity = it.velocity.map(|velocity| object_velocity(velocity, it.velocity_confidence));
    object.acceleration = it.acceleration.map(object_acceleration);
    object.angles = it.yaw.map(|yaw| types::EulerAnglesWithConfidence {
        z_angle: dictionary::cartesian_angle(yaw, it.yaw_confidence),
        y_angle: None,
        x_angle: None,
    });
    object.z_angular_velocity = it.yaw_rate.map(angular_velocity);
    object.object_dimension_x = it.length.map(dimension);
    object.object_dimension_y = it.width.map(dimension);
    object.object_dimension_z = it.height.map(dimension);
    object.object_age = it.age.map(|age| types::ObjectAge(scale::scaled_u16(age.as_secs_f64(), 1000.0, 0, 2047)));
    object.object_perception_quality = it.quality.map(|quality| types::ObjectPerceptionQuality(quality.min(15)));
    object.sensor_id_list = sensor_ids(&it.sensors);
    object.classification = classification(&it.classes);
    object
}

/// Returns the milliseconds from the reference time to the measurement.
fn delta_time(measurement: Tai, reference: Tai) -> types::DeltaTimeMilliSecondSigned {
    let after = measurement.since(reference).as_secs_f64();
    let before = reference.since(measurement).as_secs_f64();
    types::DeltaTimeMilliSecondSigned(scale::scaled_i16(after - before, 1000.0, -2048, 2047))
}

/// Returns a position in centimetres. The ends of the range mean "out of range".
fn object_position(it: &Object) -> types::CartesianPosition3dWithConfidence {
    let confidence = it.offset_confidence.map_or(types::CoordinateConfidence::UNAVAILABLE, |confidence| {
        types::CoordinateConfidence(scale::scaled_u16(confidence.value(), 100.0, 1, 4095))
    });
    let coordinate = |length: Metres, confidence| types::CartesianCoordinateWithConfidence {
        value: types::CartesianCoordinateLarge(scale::scaled(length.value(), 100.0, -131_072, 131_071)),
        confidence,
    };
    types::CartesianPosition3dWithConfidence {
        x_coordinate: coordinate(it.offset.x, confidence),
        y_coordinate: coordinate(it.offset.y, confidence),
        z_coordinate: it.offset.z.map(|z| coordinate(z, types::CoordinateConfidence::UNAVAILABLE)),
    }
}

/// Returns a velocity in centimetres per second.
fn object_velocity(
    [x, y]: [MetresPerSecond; 2],
    confidence: Option<MetresPerSecond>,
) -> types::Velocity3dWithConfidence {
    let component = |speed: MetresPerSecond| types::VelocityComponent {
        value: types::VelocityComponentValue(scale::scaled_i16(speed.value(), 100.0, -16_383, 16_382)),
        confidence: dictionary::speed_confidence(confidence),
    };
    types::Velocity3dWithConfidence::CartesianVelocity(types::VelocityCartesian {
        x_velocity: component(x),
        y_velocity: component(y),
        z_velocity: None,
    })
}

fn object_acceleration([x, y]: [MetresPerSecondSquared; 2]) -> types::Acceleration3dWithConfidence {
    types::Acceleration3dWithConfidence::CartesianAcceleration(types::AccelerationCartesian {
        x_acceleration: dictionary::acceleration(Some(x), None),
        y_acceleration: dictionary::acceleration(Some(y), None),
        z_acceleration: None,
    })
}

/// Returns an angular velocity in whole degrees per second.
fn angular_velocity(rate: DegreesPerSecond) -> types::CartesianAngularVelocityComponent {
    types::CartesianAngularVelocityComponent {
        value: types::CartesianAngularVelocityComponentValue(scale::scaled_i16(rate.value(), 1.0, -255, 255)),
        confidence: types::AngularSpeedConfidence::Unavailable,
    }
}

/// Returns a dimension in tenths of a metre.
fn dimension(length: Metres) -> types::ObjectDimension {
    types::ObjectDimension {
        value: types::ObjectDimensionValue(scale::scaled_u16(length.value(), 10.0, 1, 255)),
        confidence: types::ObjectDimensionConfidence::UNAVAILABLE,
    }
}

/// Returns a confidence in per cent. The value 0 has no code and is sent as 1.
fn confidence_level(probability: Option<f64>) -> types::ConfidenceLevel {
    probability.map_or(types::ConfidenceLevel::UNAVAILABLE, |probability| {
        types::ConfidenceLevel(scale::scaled_u8(probability, 100.0, 1, 100))
    })
}

/// Omits the list if it is empty, since the message must not have an empty one.
fn sensor_ids(ids: &[u8]) -> Option<types::SequenceOfIdentifier1B> {
    let sent: Vec<_> = ids.iter().take(SENSOR_IDS_MAX).map(|id| types::Identifier1B(*id)).collect();
    (!sent.is_empty()).then_some(types::SequenceOfIdentifier1B(sent))
}

/// Omits the list if it is empty, since the message must not have an empty one.
fn classification(classes: &[(ObjectClass, Option<f64>)]) -> Option<types::ObjectClassDescription> {
    let sent = classes.iter().take(CLASSES_MAX).map(|(class, probability)| types::ObjectClassWithConfidence {
        object_class: class.clone(),
        confidence: confidence_level(*probability),
    });
    let sent: Vec<_> = sent.collect();
    (!sent.is_empty()).then_some(types::ObjectClassDescription(sent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_time_far_from_the_reception_is_none() {
        let reception = TimestampIts(650_000_000_000).tai();
        assert_eq!(generation(649_999_999_900, reception), Some(TimestampIts(649_999_999_900).tai()));
        assert_eq!(generation(650_000_000_100, reception), Some(TimestampIts(650_000_000_100).tai()));
        assert_eq!(generation(40_172, reception), None);
        assert_eq!(generation((1 << 42) - 1, reception), None);
    }

    fn full() -> CpmInput {
        let reference = TimestampIts(650_000_012_345).tai();
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
            ..Object::new(800, reference.plus(Duration::from_millis(19)), offset())
        };
        let area = Shape::circle(Metres(80.0));
        CpmInput {
            position: Some(Position::new(45.014_765_3, 7.568_490_8)),
            altitude: Some(Metres(269.8)),
            segment: Some((1, 2)),
            rate_range_hz: Some((1.0, 10.0)),
            sensors: vec![Sensor {
                id: 1,
                kind: SensorType::LIDAR,
                area: Some(area.clone()),
                confidence: Some(0.9),
                shadowing: true,
            }],
            regions: vec![PerceptionRegion {
                measurement: reference,
                confidence: Some(0.8),
                area,
                shadowing: true,
                sensors: vec![1],
                objects: vec![800],
            }],
            objects: vec![object],
            ..CpmInput::new(
                StationId(1001),
                reference,
                Origin::Vehicle { orientation: Some(Degrees(271.2)), orientation_confidence: Some(Degrees(1.0)) },
            )
        }
    }

    fn offset() -> Offset {
        Offset { x: Metres(-35.04), y: Metres(8.09), z: None }
    }

    fn encoded(input: &CpmInput) -> Cpm {
        etsi::decode(&etsi::encode(&build(input)).unwrap()).unwrap()
    }

    #[test]
    fn a_built_message_round_trips() {
        let input = full();
        let cpm = encoded(&input);
        assert_eq!(cpm, build(&input));
        assert_eq!(cpm.containers.iter().map(CpmContainer::id).collect::<Vec<_>>(), [1, 3, 4, 5]);
        assert_eq!(object_count(&cpm), 1);
        let expected = Summary {
            station_id: StationId(1001),
            station_type: None,
            generation: Some(input.reference),
            position: input.position,
            altitude: input.altitude,
            speed: None,
            heading: Some(Degrees(271.2)),
        };
        assert_eq!(summary(&cpm, input.reference), expected);
        let CpmContainer::PerceivedObject(objects) = &cpm.containers[3] else { panic!("no objects") };
        let object = &objects.perceived_objects.0[0];
        assert_eq!(object.measurement_delta_time, types::DeltaTimeMilliSecondSigned(19));
        assert_eq!(object.position.x_coordinate.value, types::CartesianCoordinateLarge(-3504));
        assert_eq!(object.position.y_coordinate.confidence, types::CoordinateConfidence(50));
    }

    #[test]
    fn a_roadside_unit_without_objects_has_its_container() {
        let reference = TimestampIts(650_000_012_345).tai();
        let intersection = IntersectionReferenceId { region: None, id: types::Identifier2B(7) };
        let map = Some(MapReference::Intersection(intersection));
        let cpm = encoded(&CpmInput::new(StationId(1), reference, Origin::RoadsideUnit { map }));
        assert_eq!(cpm.containers.iter().map(CpmContainer::id).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn a_rate_has_the_most_exact_mantissa() {
        for (rate_hz, mantissa, exponent) in
            [(10.0, 100, -1), (1.0, 100, -2), (0.0, 1, -5), (2500.0, 25, 2), (1e9, 100, 2), (f64::NAN, 1, 2)]
        {
            assert_eq!(message_rate(rate_hz), types::MessageRateHz { mantissa, exponent }, "{rate_hz}");
        }
    }

    #[test]
    fn any_quantity_can_be_encoded() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, -1e300, 0.0, 5.0] {
            let mut input = full();
            let object = Object {
                offset: Offset { x: Metres(value), y: Metres(value), z: Some(Metres(value)) },
                offset_confidence: Some(Metres(value)),
                velocity: Some([MetresPerSecond(value); 2]),
                velocity_confidence: Some(MetresPerSecond(value)),
                acceleration: Some([MetresPerSecondSquared(value); 2]),
                yaw: Some(Degrees(value)),
                yaw_confidence: Some(Degrees(value)),
                yaw_rate: Some(DegreesPerSecond(value)),
                length: Some(Metres(value)),
                age: Some(Duration::MAX),
                quality: Some(255),
                sensors: vec![1; 300],
                classes: vec![(ObjectClass::OtherSubClass(OtherSubClass(1)), Some(value)); 20],
                ..Object::new(1, TimestampIts(0).tai(), offset())
            };
            input.objects = vec![object; 300];
            input.sensors = vec![input.sensors[0].clone(); 200];
            input.regions = vec![input.regions[0].clone(); 300];
            input.segment = Some((0, 255));
            input.rate_range_hz = Some((value, value));
            assert_eq!(build(&input), encoded(&input), "{value}");
        }
    }
}
