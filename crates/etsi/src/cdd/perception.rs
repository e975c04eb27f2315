//! Perceived objects and how they were perceived.

use super::bits::variable_bit_string;
use rasn::prelude::*;

use super::{
    header::{Identifier1B, Identifier2B},
    motion::{
        Acceleration3dWithConfidence, CartesianAngularVelocityComponent, EulerAnglesWithConfidence,
        Velocity3dWithConfidence,
    },
    road::MapPosition,
    shape::CartesianPosition3dWithConfidence,
    time::{DeltaTimeMilliSecondSigned, ObjectAge},
    vru::{VruClusterInformation, VruProfileAndSubprofile},
};
/// Confidence in per cent.
///
/// 1 to 101.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("1..=101"))]
pub struct ConfidenceLevel(pub u8);

impl ConfidenceLevel {
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(101);
}

/// Some confidences.
///
/// 1 to 32 elements; other sizes are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=32", extensible))]
pub struct ConfidenceLevels(pub Vec<ConfidenceLevel>);

/// Kind of a sensor or of the information.
///
/// 0 to 31.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=31"))]
pub struct SensorType(pub u8);

impl SensorType {
    /// `undefined`.
    pub const UNDEFINED: Self = Self(0);
    /// `radar`.
    pub const RADAR: Self = Self(1);
    /// `lidar`.
    pub const LIDAR: Self = Self(2);
    /// `monovideo`.
    pub const MONOVIDEO: Self = Self(3);
    /// `stereovision`.
    pub const STEREOVISION: Self = Self(4);
    /// `nightvision`.
    pub const NIGHTVISION: Self = Self(5);
    /// `ultrasonic`.
    pub const ULTRASONIC: Self = Self(6);
    /// `pmd`.
    pub const PMD: Self = Self(7);
    /// `inductionLoop`.
    pub const INDUCTION_LOOP: Self = Self(8);
    /// `sphericalCamera`.
    pub const SPHERICAL_CAMERA: Self = Self(9);
    /// `uwb`.
    pub const UWB: Self = Self(10);
    /// `acoustic`.
    pub const ACOUSTIC: Self = Self(11);
    /// `localAggregation`.
    pub const LOCAL_AGGREGATION: Self = Self(12);
    /// `itsAggregation`.
    pub const ITS_AGGREGATION: Self = Self(13);
    /// `rfid`.
    pub const RFID: Self = Self(14);
}

/// Which kinds of sensors information comes from.
///
/// 16 bits, the first one first: `undefined`, `radar`, `lidar`, `monovideo`, `stereovision`, `nightvision`,
/// `ultrasonic`, `pmd`, `inductionLoop`, `sphericalCamera`, `uwb`, `acoustic`, `localAggregation`, `itsAggregation`,
/// `rfid`; longer ones are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(delegate, size("16", extensible))]
pub struct SensorTypes(pub BitString);

variable_bit_string!(SensorTypes);

/// Which stored data information comes from.
///
/// 8 bits, the first one first: `undefined`, `staticDb`, `dynamicDb`, `realTimeDb`, `map`; longer ones are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(delegate, size("8", extensible))]
pub struct StoredInformationType(pub BitString);

variable_bit_string!(StoredInformationType);

/// Where information comes from and how sure it is.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct MetaInformation {
    /// Which sensors.
    #[rasn(identifier = "usedDetectionInformation")]
    pub used_detection_information: SensorTypes,
    /// Which stored data.
    #[rasn(identifier = "usedStoredInformation")]
    pub used_stored_information: StoredInformationType,
    /// How sure it is.
    #[rasn(identifier = "confidenceValue")]
    pub confidence_value: Option<ConfidenceLevel>,
}

impl MetaInformation {
    /// With the mandatory members only.
    #[must_use]
    pub const fn new(used_detection_information: SensorTypes, used_stored_information: StoredInformationType) -> Self {
        Self { used_detection_information, used_stored_information, confidence_value: None }
    }
}

/// Some identifiers.
///
/// 1 to 128 elements; other sizes are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=128", extensible))]
pub struct SequenceOfIdentifier1B(pub Vec<Identifier1B>);

/// Extent of an object in 0.1 m.
///
/// 1 to 256.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("1..=256"))]
pub struct ObjectDimensionValue(pub u16);

impl ObjectDimensionValue {
    /// `outOfRange`.
    pub const OUT_OF_RANGE: Self = Self(255);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(256);
}

/// Half of the 95 % interval of an extent in 0.1 m.
///
/// 1 to 32.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("1..=32"))]
pub struct ObjectDimensionConfidence(pub u8);

impl ObjectDimensionConfidence {
    /// `outOfRange`.
    pub const OUT_OF_RANGE: Self = Self(31);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(32);
}

/// Extent of an object and its accuracy.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct ObjectDimension {
    /// The value.
    pub value: ObjectDimensionValue,
    /// Its accuracy.
    pub confidence: ObjectDimensionConfidence,
}

/// How well an object is perceived, from 0 to 15 for full confidence.
///
/// 0 to 15.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=15"))]
pub struct ObjectPerceptionQuality(pub u8);

impl ObjectPerceptionQuality {
    /// `noConfidence`.
    pub const NO_CONFIDENCE: Self = Self(0);
    /// `fullConfidence`.
    pub const FULL_CONFIDENCE: Self = Self(15);
}

/// Kind of an object that is neither vehicle nor person.
///
/// 0 to 255.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=255"))]
pub struct OtherSubClass(pub u8);

impl OtherSubClass {
    /// `unknown`.
    pub const UNKNOWN: Self = Self(0);
    /// `singleObject`.
    pub const SINGLE_OBJECT: Self = Self(1);
    /// `multipleObjects`.
    pub const MULTIPLE_OBJECTS: Self = Self(2);
    /// `bulkMaterial`.
    pub const BULK_MATERIAL: Self = Self(3);
}

/// A vehicle's kind: values of [`TrafficParticipantType`] up to agricultural.
///
/// 0 to 14.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=14"))]
pub struct VehicleSubClass(pub u8);

/// What an object is.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(choice, automatic_tags)]
#[non_exhaustive]
pub enum ObjectClass {
    /// A vehicle.
    #[rasn(identifier = "vehicleSubClass")]
    VehicleSubClass(VehicleSubClass),
    /// A vulnerable road user.
    #[rasn(identifier = "vruSubClass")]
    VruSubClass(VruProfileAndSubprofile),
    /// A group of road users.
    #[rasn(identifier = "groupSubClass")]
    GroupSubClass(Box<VruClusterInformation>),
    /// Something else.
    #[rasn(identifier = "otherSubClass")]
    OtherSubClass(OtherSubClass),
}

/// What an object is, and how sure that is.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct ObjectClassWithConfidence {
    /// What it is.
    #[rasn(identifier = "objectClass")]
    pub object_class: ObjectClass,
    /// How sure that is.
    pub confidence: ConfidenceLevel,
}

/// What an object may be.
///
/// 1 to 8 elements.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=8"))]
pub struct ObjectClassDescription(pub Vec<ObjectClassWithConfidence>);

/// Correlation of two components in per cent.
///
/// -100 to 101.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("-100..=101"))]
pub struct CorrelationCellValue(pub i8);

impl CorrelationCellValue {
    /// `full-negative-correlation`.
    pub const FULL_NEGATIVE_CORRELATION: Self = Self(-100);
    /// `no-correlation`.
    pub const NO_CORRELATION: Self = Self(0);
    /// `full-positive-correlation`.
    pub const FULL_POSITIVE_CORRELATION: Self = Self(100);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(101);
}

/// A column of a correlation matrix below the diagonal.
///
/// 1 to 13 elements; other sizes are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=13", extensible))]
pub struct CorrelationColumn(pub Vec<CorrelationCellValue>);

/// Which components a correlation matrix has.
///
/// 13 bits, the first one first: `xPosition`, `yPosition`, `zPosition`, `xVelocityOrVelocityMagnitude`,
/// `yVelocityOrVelocityDirection`, `zSpeed`, `xAccelOrAccelMagnitude`, `yAccelOrAccelDirection`, `zAcceleration`,
/// `zAngle`, `yAngle`, `xAngle`, `zAngularVelocity`; longer ones are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(delegate, size("13", extensible))]
pub struct MatrixIncludedComponents(pub BitString);

variable_bit_string!(MatrixIncludedComponents);

/// Columns of a correlation matrix.
///
/// 1 to 13 elements; other sizes are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=13", extensible))]
pub struct LowerTriangularPositiveSemidefiniteMatrixColumns(pub Vec<CorrelationColumn>);

/// Correlations between components of an object's state.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct LowerTriangularPositiveSemidefiniteMatrix {
    /// Which components it has.
    #[rasn(identifier = "componentsIncludedIntheMatrix")]
    pub components_included_in_the_matrix: MatrixIncludedComponents,
    /// Its columns.
    pub matrix: LowerTriangularPositiveSemidefiniteMatrixColumns,
}

/// Some correlation matrices.
///
/// 1 to 4 elements.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=4"))]
pub struct LowerTriangularPositiveSemidefiniteMatrices(pub Vec<LowerTriangularPositiveSemidefiniteMatrix>);

/// An object that a station perceives, at a moment.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct PerceivedObject {
    /// Number of the object at this sender.
    #[rasn(identifier = "objectId")]
    pub object_id: Option<Identifier2B>,
    /// Time of the measurement relative to the reference time.
    #[rasn(identifier = "measurementDeltaTime")]
    pub measurement_delta_time: DeltaTimeMilliSecondSigned,
    /// Where it is, relative to the reference position.
    pub position: CartesianPosition3dWithConfidence,
    /// How fast it moves.
    pub velocity: Option<Velocity3dWithConfidence>,
    /// Its acceleration.
    pub acceleration: Option<Acceleration3dWithConfidence>,
    /// Its orientation.
    pub angles: Option<EulerAnglesWithConfidence>,
    /// Its rate of turn.
    #[rasn(identifier = "zAngularVelocity")]
    pub z_angular_velocity: Option<CartesianAngularVelocityComponent>,
    /// How its values depend on each other.
    #[rasn(identifier = "lowerTriangularCorrelationMatrices")]
    pub lower_triangular_correlation_matrices: Option<LowerTriangularPositiveSemidefiniteMatrices>,
    /// Its height.
    #[rasn(identifier = "objectDimensionZ")]
    pub object_dimension_z: Option<ObjectDimension>,
    /// Its width.
    #[rasn(identifier = "objectDimensionY")]
    pub object_dimension_y: Option<ObjectDimension>,
    /// Its length.
    #[rasn(identifier = "objectDimensionX")]
    pub object_dimension_x: Option<ObjectDimension>,
    /// How long it has been seen.
    #[rasn(identifier = "objectAge")]
    pub object_age: Option<ObjectAge>,
    /// How well an object is perceived, from 0 to 15 for full confidence.
    #[rasn(identifier = "objectPerceptionQuality")]
    pub object_perception_quality: Option<ObjectPerceptionQuality>,
    /// The sensors that saw it.
    #[rasn(identifier = "sensorIdList")]
    pub sensor_id_list: Option<SequenceOfIdentifier1B>,
    /// What it may be.
    pub classification: Option<ObjectClassDescription>,
    /// Where it is on the map.
    #[rasn(identifier = "mapPosition")]
    pub map_position: Option<MapPosition>,
}

impl PerceivedObject {
    /// With the mandatory members only.
    #[must_use]
    pub const fn new(
        measurement_delta_time: DeltaTimeMilliSecondSigned,
        position: CartesianPosition3dWithConfidence,
    ) -> Self {
        Self {
            object_id: None,
            measurement_delta_time,
            position,
            velocity: None,
            acceleration: None,
            angles: None,
            z_angular_velocity: None,
            lower_triangular_correlation_matrices: None,
            object_dimension_z: None,
            object_dimension_y: None,
            object_dimension_x: None,
            object_age: None,
            object_perception_quality: None,
            sensor_id_list: None,
            classification: None,
            map_position: None,
        }
    }
}
