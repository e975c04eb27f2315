//! Types of the CPM, under their ASN.1 names, with the types of the data dictionary that it uses.

use rasn::prelude::*;

pub use crate::cdd::*;

/// Container 1: orientation and trailers of the sending vehicle.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct OriginatingVehicleContainer {
    /// Orientation of the vehicle.
    #[rasn(identifier = "orientationAngle")]
    pub orientation_angle: Wgs84Angle,
    /// Pitch angle.
    #[rasn(identifier = "pitchAngle")]
    pub pitch_angle: Option<CartesianAngle>,
    /// Roll angle.
    #[rasn(identifier = "rollAngle")]
    pub roll_angle: Option<CartesianAngle>,
    /// Trailers of the vehicle.
    #[rasn(identifier = "trailerDataSet")]
    pub trailer_data_set: Option<TrailerDataSet>,
}

impl OriginatingVehicleContainer {
    /// Creates a value with the mandatory members only.
    #[must_use]
    pub const fn new(orientation_angle: Wgs84Angle) -> Self {
        Self { orientation_angle, pitch_angle: None, roll_angle: None, trailer_data_set: None }
    }
}

/// Container 2: the map that a roadside unit refers to.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct OriginatingRsuContainer {
    /// The map element.
    #[rasn(identifier = "mapReference")]
    pub map_reference: Option<MapReference>,
}

impl OriginatingRsuContainer {
    /// Creates a value with the mandatory members only.
    #[must_use]
    pub const fn new() -> Self {
        Self { map_reference: None }
    }
}

impl Default for OriginatingRsuContainer {
    fn default() -> Self {
        Self::new()
    }
}

/// Trailers of a vehicle.
///
/// 1 to 8 elements; other sizes are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=8", extensible))]
pub struct TrailerDataSet(pub Vec<TrailerData>);

/// Collective perception message as it is on the wire, its containers not yet decoded.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct CollectivePerceptionMessage {
    /// Protocol version, message type and sender.
    pub header: ItsPduHeader,
    /// Content of the CPM.
    pub payload: CpmPayload,
}

/// The containers of a CPM.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct CpmPayload {
    /// Reference time and position of the message.
    #[rasn(identifier = "managementContainer")]
    pub management_container: ManagementContainer,
    /// The containers.
    #[rasn(identifier = "cpmContainers")]
    pub cpm_containers: WrappedCpmContainers,
}

impl CpmPayload {
    /// Creates a value with these members.
    #[must_use]
    pub const fn new(management_container: ManagementContainer, cpm_containers: WrappedCpmContainers) -> Self {
        Self { management_container, cpm_containers }
    }
}

/// Reference time and position of a message.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct ManagementContainer {
    /// Generation time of the information, or origin of the times in the message.
    #[rasn(identifier = "referenceTime")]
    pub reference_time: TimestampIts,
    /// Position of the station.
    #[rasn(identifier = "referencePosition")]
    pub reference_position: ReferencePosition,
    /// Number of this segment and count of all segments of the message.
    #[rasn(identifier = "segmentationInfo")]
    pub segmentation_info: Option<MessageSegmentationInfo>,
    /// Range of the rate of messages.
    #[rasn(identifier = "messageRateRange")]
    pub message_rate_range: Option<MessageRateRange>,
}

impl ManagementContainer {
    /// Creates a value with the mandatory members only.
    #[must_use]
    pub const fn new(reference_time: TimestampIts, reference_position: ReferencePosition) -> Self {
        Self { reference_time, reference_position, segmentation_info: None, message_rate_range: None }
    }
}

/// Identifier of the container.
///
/// 1 to 16.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("1..=16"))]
pub struct CpmContainerId(pub u8);

/// Containers of one message.
///
/// 1 to 8 elements; other sizes are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=8", extensible))]
pub struct WrappedCpmContainers(pub Vec<WrappedCpmContainer>);

/// Range of the rate of messages that the sender plans.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct MessageRateRange {
    /// Lowest rate.
    #[rasn(identifier = "messageRateMin")]
    pub message_rate_min: MessageRateHz,
    /// Highest rate.
    #[rasn(identifier = "messageRateMax")]
    pub message_rate_max: MessageRateHz,
}

/// Container 5: the objects.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct PerceivedObjectContainer {
    /// Number of perceived objects; it may be larger than the number of objects in the message.
    #[rasn(identifier = "numberOfPerceivedObjects")]
    pub number_of_perceived_objects: CardinalNumber1B,
    /// The objects.
    #[rasn(identifier = "perceivedObjects")]
    pub perceived_objects: PerceivedObjects,
}

impl PerceivedObjectContainer {
    /// Creates a value with these members.
    #[must_use]
    pub const fn new(number_of_perceived_objects: CardinalNumber1B, perceived_objects: PerceivedObjects) -> Self {
        Self { number_of_perceived_objects, perceived_objects }
    }
}

/// Objects that a station perceives.
///
/// 0 to 255 elements; other sizes are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("0..=255", extensible))]
pub struct PerceivedObjects(pub Vec<PerceivedObject>);

/// Container 4: regions in which the station can currently perceive objects.
///
/// 1 to 256 elements; other sizes are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=256", extensible))]
pub struct PerceptionRegionContainer(pub Vec<PerceptionRegion>);

/// A region in which objects would be perceived.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct PerceptionRegion {
    /// Time of the measurement relative to the reference time.
    #[rasn(identifier = "measurementDeltaTime")]
    pub measurement_delta_time: DeltaTimeMilliSecondSigned,
    /// Confidence that an object in the region is detected.
    #[rasn(identifier = "perceptionRegionConfidence")]
    pub perception_region_confidence: ConfidenceLevel,
    /// Shape and position of the region.
    #[rasn(identifier = "perceptionRegionShape")]
    pub perception_region_shape: Shape,
    /// `true` if objects hide the area behind them.
    #[rasn(identifier = "shadowingApplies")]
    pub shadowing_applies: bool,
    /// Identifiers of the sensors that cover the region.
    #[rasn(identifier = "sensorIdList")]
    pub sensor_id_list: Option<SequenceOfIdentifier1B>,
    /// Number of perceived objects; it may be larger than the number of objects in the message.
    #[rasn(identifier = "numberOfPerceivedObjects")]
    pub number_of_perceived_objects: Option<CardinalNumber1B>,
    /// The objects in the region.
    #[rasn(identifier = "perceivedObjectIds")]
    pub perceived_object_ids: Option<PerceivedObjectIds>,
}

impl PerceptionRegion {
    /// Creates a value with the mandatory members only.
    #[must_use]
    pub const fn new(
        measurement_delta_time: DeltaTimeMilliSecondSigned,
        perception_region_confidence: ConfidenceLevel,
        perception_region_shape: Shape,
        shadowing_applies: bool,
    ) -> Self {
        Self {
            measurement_delta_time,
            perception_region_confidence,
            perception_region_shape,
            shadowing_applies,
            sensor_id_list: None,
            number_of_perceived_objects: None,
            perceived_object_ids: None,
        }
    }
}

/// Objects of the message that are in a region.
///
/// 0 to 255 elements; other sizes are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("0..=255", extensible))]
pub struct PerceivedObjectIds(pub Vec<Identifier2B>);

/// Container 3: sensors and their fields of view.
///
/// 1 to 128 elements; other sizes are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=128", extensible))]
pub struct SensorInformationContainer(pub Vec<SensorInformation>);

/// A sensor and its field of view.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct SensorInformation {
    /// Number of the sensor at this sender.
    #[rasn(identifier = "sensorId")]
    pub sensor_id: Identifier1B,
    /// Kind of a sensor or of the information.
    #[rasn(identifier = "sensorType")]
    pub sensor_type: SensorType,
    /// Shape and position of the region.
    #[rasn(identifier = "perceptionRegionShape")]
    pub perception_region_shape: Option<Shape>,
    /// Confidence that an object in the region is detected.
    #[rasn(identifier = "perceptionRegionConfidence")]
    pub perception_region_confidence: Option<ConfidenceLevel>,
    /// `true` if objects hide the area behind them.
    #[rasn(identifier = "shadowingApplies")]
    pub shadowing_applies: bool,
}

impl SensorInformation {
    /// Creates a value with the mandatory members only.
    #[must_use]
    pub const fn new(sensor_id: Identifier1B, sensor_type: SensorType, shadowing_applies: bool) -> Self {
        Self {
            sensor_id,
            sensor_type,
            perception_region_shape: None,
            perception_region_confidence: None,
            shadowing_applies,
        }
    }
}

/// A container as it is on the wire: its identifier and an open type.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct WrappedCpmContainer {
    /// Identifier of the container.
    #[rasn(identifier = "containerId")]
    pub container_id: CpmContainerId,
    /// The container's octets.
    #[rasn(identifier = "containerData")]
    pub container_data: Any,
}
