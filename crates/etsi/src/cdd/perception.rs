//! Perceived objects and the sensors that detected them.

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

/// A list of confidences.
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

/// Kinds of sensors that the information is based on.
///
/// 16 bits, the first one first: `undefined`, `radar`, `lidar`, `monovideo`, `stereovision`, `nightvision`,
/// `ultrasonic`, `pmd`, `inductionLoop`, `sphericalCamera`, `uwb`, `acoustic`, `localAggregation`, `itsAggregation`,
/// `rfid`; longer ones are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(delegate, size("16", extensible))]
pub struct SensorTypes(pub BitString);

variable_bit_string!(SensorTypes);

/// Kinds of stored data that the information is based on.
///
/// 8 bits, the first one first: `undefined`, `staticDb`, `dynamicDb`, `realTimeDb`, `map`; longer ones are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(delegate, size("8", extensible))]
pub struct StoredInformationType(pub BitString);

variable_bit_string!(StoredInformationType);

/// Source and confidence of information.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
#[non_exhaustive]
pub struct MetaInformation {
    /// Kinds of sensors that were used.
    #[rasn(identifier = "usedDetectionInformation")]
    pub used_detection_information: SensorTypes,
    /// Kinds of stored data that were used.
    #[rasn(identifier = "usedStoredInformation")]
    pub used_stored_information: StoredInformationType,
    /// Confidence in the information.
    #[rasn(identifier = "confidenceValue")]
    pub confidence_value: Option<ConfidenceLevel>,
}

impl MetaInformation {
    /// Creates a value with the mandatory members only.
    #[must_use]
    pub const fn new(used_detection_information: SensorTypes, used_stored_information: StoredInformationType) -> Self {
        Self { used_detection_information, used_stored_information, confidence_value: None }
    }
}

/// A list of identifiers.
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
    /// Accuracy of the value.
    pub confidence: ObjectDimensionConfidence,
}

/// Perception quality of an object, from no confidence (0) to full confidence (15).
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

/// A vehicle's kind: values of `TrafficParticipantType` up to agricultural.
///
/// 0 to 14.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("0..=14"))]
pub struct VehicleSubClass(pub u8);

/// Class of an object.
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

/// Class of an object and its confidence.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct ObjectClassWithConfidence {
    /// Class of the object.
    #[rasn(identifier = "objectClass")]
    pub object_class: ObjectClass,
    /// Confidence in the class.
    pub confidence: ConfidenceLevel,
}

/// Possible classes of an object.
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

/// Components that a correlation matrix contains.
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
    /// Components that the matrix contains.
    #[rasn(identifier = "componentsIncludedIntheMatrix")]
    pub components_included_in_the_matrix: MatrixIncludedComponents,
    /// Columns of the matrix.
    pub matrix: LowerTriangularPositiveSemidefiniteMatrixColumns,
}

/// A list of correlation matrices.
///
/// 1 to 4 elements.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=4"))]
pub struct LowerTriangularPositiveSemidefiniteMatrices(pub Vec<LowerTriangularPositiveSemidefiniteMatrix>);

/// State of an object that a station perceives.
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
    /// Position of the object relative to the reference position.
    pub position: CartesianPosition3dWithConfidence,
    /// Velocity of the object.
    pub velocity: Option<Velocity3dWithConfidence>,
    /// Acceleration of the object.
    pub acceleration: Option<Acceleration3dWithConfidence>,
    /// Orientation of the object.
    pub angles: Option<EulerAnglesWithConfidence>,
    /// Rate of turn of the object about its vertical axis.
    #[rasn(identifier = "zAngularVelocity")]
    pub z_angular_velocity: Option<CartesianAngularVelocityComponent>,
    /// Correlations between the components of the object's state.
    #[rasn(identifier = "lowerTriangularCorrelationMatrices")]
    pub lower_triangular_correlation_matrices: Option<LowerTriangularPositiveSemidefiniteMatrices>,
    /// Height of the object.
    #[rasn(identifier = "objectDimensionZ")]
    pub object_dimension_z: Option<ObjectDimension>,
    /// Width of the object.
    #[rasn(identifier = "objectDimensionY")]
    pub object_dimension_y: Option<ObjectDimension>,
    /// Length of the object.
    #[rasn(identifier = "objectDimensionX")]
    pub object_dimension_x: Option<ObjectDimension>,
    /// Time since the object was first detected, in ms, 0 to 2047.
    #[rasn(identifier = "objectAge")]
    pub object_age: Option<ObjectAge>,
    /// Perception quality of an object, from no confidence (0) to full confidence (15).
    #[rasn(identifier = "objectPerceptionQuality")]
    pub object_perception_quality: Option<ObjectPerceptionQuality>,
    /// Identifiers of the sensors that detected the object.
    #[rasn(identifier = "sensorIdList")]
    pub sensor_id_list: Option<SequenceOfIdentifier1B>,
    /// Possible classes of the object.
    pub classification: Option<ObjectClassDescription>,
    /// Position of the object on the map.
    #[rasn(identifier = "mapPosition")]
    pub map_position: Option<MapPosition>,
}

impl PerceivedObject {
    /// Creates a value with the mandatory members only.
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
