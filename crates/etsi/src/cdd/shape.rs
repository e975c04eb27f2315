//! Areas and volumes in a local cartesian system.

use rasn::prelude::*;

use super::{header::Identifier1B, motion::CartesianAngleValue, position::StandardLength12b};
/// Coordinate in 0.01 m.
///
/// -32 768 to 32 767.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("-32768..=32767"))]
pub struct CartesianCoordinate(pub i16);

impl CartesianCoordinate {
    /// `negativeOutOfRange`.
    pub const NEGATIVE_OUT_OF_RANGE: Self = Self(-32_768);
    /// `positiveOutOfRange`.
    pub const POSITIVE_OUT_OF_RANGE: Self = Self(32_767);
}

/// Coordinate in 0.01 m, of the own vehicle's size.
///
/// -3094 to 1001.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("-3094..=1001"))]
pub struct CartesianCoordinateSmall(pub i16);

impl CartesianCoordinateSmall {
    /// `negativeOutOfRange`.
    pub const NEGATIVE_OUT_OF_RANGE: Self = Self(-3094);
    /// `positiveOutOfRange`.
    pub const POSITIVE_OUT_OF_RANGE: Self = Self(1001);
}

/// Coordinate in 0.01 m.
///
/// -131 072 to 131 071.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("-131072..=131071"))]
pub struct CartesianCoordinateLarge(pub i32);

impl CartesianCoordinateLarge {
    /// `negativeOutOfRange`.
    pub const NEGATIVE_OUT_OF_RANGE: Self = Self(-131_072);
    /// `positiveOutOfRange`.
    pub const POSITIVE_OUT_OF_RANGE: Self = Self(131_071);
}

/// Half of the 95 % interval of a coordinate in 0.01 m.
///
/// 1 to 4096.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[rasn(delegate, value("1..=4096"))]
pub struct CoordinateConfidence(pub u16);

impl CoordinateConfidence {
    /// `outOfRange`.
    pub const OUT_OF_RANGE: Self = Self(4095);
    /// `unavailable`.
    pub const UNAVAILABLE: Self = Self(4096);
}

/// Coordinate and its accuracy.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct CartesianCoordinateWithConfidence {
    /// The value.
    pub value: CartesianCoordinateLarge,
    /// Accuracy of the value.
    pub confidence: CoordinateConfidence,
}

/// A point.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct CartesianPosition3d {
    /// Component along x.
    #[rasn(identifier = "xCoordinate")]
    pub x_coordinate: CartesianCoordinate,
    /// Component along y.
    #[rasn(identifier = "yCoordinate")]
    pub y_coordinate: CartesianCoordinate,
    /// Component along z.
    #[rasn(identifier = "zCoordinate")]
    pub z_coordinate: Option<CartesianCoordinate>,
}

/// A point and its accuracy.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct CartesianPosition3dWithConfidence {
    /// Component along x.
    #[rasn(identifier = "xCoordinate")]
    pub x_coordinate: CartesianCoordinateWithConfidence,
    /// Component along y.
    #[rasn(identifier = "yCoordinate")]
    pub y_coordinate: CartesianCoordinateWithConfidence,
    /// Component along z.
    #[rasn(identifier = "zCoordinate")]
    pub z_coordinate: Option<CartesianCoordinateWithConfidence>,
}

/// Corners of a polygon.
///
/// 3 to 16 elements; other sizes are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("3..=16", extensible))]
pub struct Polygon(pub Vec<CartesianPosition3d>);

/// A circle or a cylinder; lengths in 0.1 m.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct CircularShape {
    /// Centre or origin, relative to the reference position; absent if it is the reference position.
    #[rasn(identifier = "shapeReferencePoint")]
    pub shape_reference_point: Option<CartesianPosition3d>,
    /// Radius.
    pub radius: StandardLength12b,
    /// Height. If it is absent, the shape is a plane.
    pub height: Option<StandardLength12b>,
}

/// An ellipse; lengths in 0.1 m.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct EllipticalShape {
    /// Centre or origin, relative to the reference position; absent if it is the reference position.
    #[rasn(identifier = "shapeReferencePoint")]
    pub shape_reference_point: Option<CartesianPosition3d>,
    /// Length of the semi-major axis.
    #[rasn(identifier = "semiMajorAxisLength")]
    pub semi_major_axis_length: StandardLength12b,
    /// Length of the semi-minor axis.
    #[rasn(identifier = "semiMinorAxisLength")]
    pub semi_minor_axis_length: StandardLength12b,
    /// Orientation of the longer axis. If it is absent, the axis is parallel to x.
    pub orientation: Option<CartesianAngleValue>,
    /// Height. If it is absent, the shape is a plane.
    pub height: Option<StandardLength12b>,
}

/// A rectangle or a cuboid; lengths in 0.1 m.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct RectangularShape {
    /// Centre or origin, relative to the reference position; absent if it is the reference position.
    #[rasn(identifier = "shapeReferencePoint")]
    pub shape_reference_point: Option<CartesianPosition3d>,
    /// Half of the length.
    #[rasn(identifier = "semiLength")]
    pub semi_length: StandardLength12b,
    /// Half of the breadth.
    #[rasn(identifier = "semiBreadth")]
    pub semi_breadth: StandardLength12b,
    /// Orientation of the longer axis. If it is absent, the axis is parallel to x.
    pub orientation: Option<CartesianAngleValue>,
    /// Height. If it is absent, the shape is a plane.
    pub height: Option<StandardLength12b>,
}

/// A polygon or a prism; height in 0.1 m.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct PolygonalShape {
    /// Centre or origin, relative to the reference position; absent if it is the reference position.
    #[rasn(identifier = "shapeReferencePoint")]
    pub shape_reference_point: Option<CartesianPosition3d>,
    /// Corners of the polygon.
    pub polygon: Polygon,
    /// Height. If it is absent, the shape is a plane.
    pub height: Option<StandardLength12b>,
}

/// A sector of a circle or a ball; range in 0.1 m.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct RadialShape {
    /// Centre or origin, relative to the reference position; absent if it is the reference position.
    #[rasn(identifier = "shapeReferencePoint")]
    pub shape_reference_point: Option<CartesianPosition3d>,
    /// Range in 0.1 m.
    pub range: StandardLength12b,
    /// Angle at which the shape begins in the horizontal plane.
    #[rasn(identifier = "horizontalOpeningAngleStart")]
    pub horizontal_opening_angle_start: CartesianAngleValue,
    /// Angle at which the shape ends in the horizontal plane.
    #[rasn(identifier = "horizontalOpeningAngleEnd")]
    pub horizontal_opening_angle_end: CartesianAngleValue,
    /// Angle at which the shape begins in the vertical plane.
    #[rasn(identifier = "verticalOpeningAngleStart")]
    pub vertical_opening_angle_start: Option<CartesianAngleValue>,
    /// Angle at which the shape ends in the vertical plane.
    #[rasn(identifier = "verticalOpeningAngleEnd")]
    pub vertical_opening_angle_end: Option<CartesianAngleValue>,
}

/// A sector of [`RadialShapes`]; range in 0.1 m.
#[derive(AsnType, Encode, Decode, Clone, Copy, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct RadialShapeDetails {
    /// Range in 0.1 m.
    pub range: StandardLength12b,
    /// Angle at which the shape begins in the horizontal plane.
    #[rasn(identifier = "horizontalOpeningAngleStart")]
    pub horizontal_opening_angle_start: CartesianAngleValue,
    /// Angle at which the shape ends in the horizontal plane.
    #[rasn(identifier = "horizontalOpeningAngleEnd")]
    pub horizontal_opening_angle_end: CartesianAngleValue,
    /// Angle at which the shape begins in the vertical plane.
    #[rasn(identifier = "verticalOpeningAngleStart")]
    pub vertical_opening_angle_start: Option<CartesianAngleValue>,
    /// Angle at which the shape ends in the vertical plane.
    #[rasn(identifier = "verticalOpeningAngleEnd")]
    pub vertical_opening_angle_end: Option<CartesianAngleValue>,
}

/// Sectors of [`RadialShapes`].
///
/// 1 to 16 elements; other sizes are extensions.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq, Default)]
#[rasn(delegate, size("1..=16", extensible))]
pub struct RadialShapesList(pub Vec<RadialShapeDetails>);

/// Sectors with one origin on a vehicle.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(automatic_tags)]
pub struct RadialShapes {
    /// Number of the reference point on the vehicle.
    #[rasn(identifier = "refPointId")]
    pub ref_point_id: Identifier1B,
    /// Component along x.
    #[rasn(identifier = "xCoordinate")]
    pub x_coordinate: CartesianCoordinateSmall,
    /// Component along y.
    #[rasn(identifier = "yCoordinate")]
    pub y_coordinate: CartesianCoordinateSmall,
    /// Component along z.
    #[rasn(identifier = "zCoordinate")]
    pub z_coordinate: Option<CartesianCoordinateSmall>,
    /// Sectors of [`RadialShapes`].
    #[rasn(identifier = "radialShapesList")]
    pub radial_shapes_list: RadialShapesList,
}

/// An area or a volume.
#[derive(AsnType, Encode, Decode, Clone, Debug, PartialEq, Eq)]
#[rasn(choice, automatic_tags)]
#[non_exhaustive]
pub enum Shape {
    /// A rectangle.
    #[rasn(identifier = "rectangular")]
    Rectangular(RectangularShape),
    /// A circle.
    #[rasn(identifier = "circular")]
    Circular(CircularShape),
    /// A polygon.
    #[rasn(identifier = "polygonal")]
    Polygonal(PolygonalShape),
    /// An ellipse.
    #[rasn(identifier = "elliptical")]
    Elliptical(EllipticalShape),
    /// A sector.
    #[rasn(identifier = "radial")]
    Radial(RadialShape),
    /// Several sectors.
    #[rasn(identifier = "radialShapes")]
    RadialShapes(RadialShapes),
}
