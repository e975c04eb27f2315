//! Areas and volumes around a reference point (`Shape` of TS 102 894-2).
//!
//! The coordinates are Cartesian. In a CPM and a VAM, x is east, y is north and z is up. For a sensor on a vehicle, x
//! is forwards and y is to the left.

use viaduct_etsi::cdd;
use viaduct_units::{Degrees, Metres, Position};

use super::scale;

/// Maximum number of corners of a polygon without its extension.
pub(super) const CORNERS_MAX: usize = 16;
/// Minimum number of corners of a polygon.
pub(super) const CORNERS_MIN: usize = 3;

/// A position relative to a reference point.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Offset {
    /// Along x: east, or forwards.
    pub x: Metres,
    /// Along y: north, or to the left.
    pub y: Metres,
    /// Upwards.
    pub z: Option<Metres>,
}

impl Offset {
    /// Returns the offset of a position from a reference position, in a plane that is tangential to the earth there. It
    /// is accurate within the range of a radio.
    #[must_use]
    pub fn between(reference: Position, there: Position) -> Self {
        let distance = reference.distance(there).value();
        let (east, north) = reference.bearing(there).radians().sin_cos();
        Self { x: Metres(distance * east), y: Metres(distance * north), z: None }
    }
}

/// An area, or a volume if it has a height.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Centre, or origin of a sector; `None` is the reference point itself.
    pub centre: Option<Offset>,
    /// Outline of the area.
    pub outline: Outline,
    /// Extent upwards, up to 409.5 m. A sector has none.
    pub height: Option<Metres>,
}

/// The outline of a shape from above. Lengths are up to 409.5 m.
#[derive(Clone, Debug, PartialEq)]
pub enum Outline {
    /// A circle.
    Circle {
        /// Radius.
        radius: Metres,
    },
    /// A rectangle.
    Rectangle {
        /// Half of the length.
        semi_length: Metres,
        /// Half of the breadth.
        semi_breadth: Metres,
        /// Direction of the length, counter-clockwise from x.
        orientation: Option<Degrees>,
    },
    /// An ellipse.
    Ellipse {
        /// Half of the longer axis.
        semi_major: Metres,
        /// Half of the shorter axis.
        semi_minor: Metres,
        /// Direction of the longer axis, counter-clockwise from x.
        orientation: Option<Degrees>,
    },
    /// A polygon of 3 to 16 corners. Of more corners the first 16 are sent; of fewer the last one is repeated.
    Polygon {
        /// Corners relative to the centre.
        corners: Vec<Offset>,
    },
    /// A sector, counter-clockwise from its start to its end.
    Sector {
        /// Radius of the sector.
        range: Metres,
        /// Direction of its start, counter-clockwise from x.
        start: Degrees,
        /// Direction of its end, counter-clockwise from x.
        end: Degrees,
    },
}

impl Shape {
    /// Returns a circle around the reference point.
    #[must_use]
    pub const fn circle(radius: Metres) -> Self {
        Self { centre: None, outline: Outline::Circle { radius }, height: None }
    }

    /// Returns the shape as a structure of the data dictionary.
    #[must_use]
    pub fn to_etsi(&self) -> cdd::Shape {
        let centre = self.centre.map(point);
        let height = self.height.map(length);
        match &self.outline {
            Outline::Circle { radius } => cdd::Shape::Circular(cdd::CircularShape {
                shape_reference_point: centre,
                radius: length(*radius),
                height,
            }),
            Outline::Rectangle { semi_length, semi_breadth, orientation } => {
                cdd::Shape::Rectangular(cdd::RectangularShape {
                    shape_reference_point: centre,
                    semi_length: length(*semi_length),
                    semi_breadth: length(*semi_breadth),
                    orientation: orientation.map(angle),
                    height,
                })
            }
            Outline::Ellipse { semi_major, semi_minor, orientation } => cdd::Shape::Elliptical(cdd::EllipticalShape {
                shape_reference_point: centre,
                semi_major_axis_length: length(*semi_major),
                semi_minor_axis_length: length(*semi_minor),
                orientation: orientation.map(angle),
                height,
            }),
            Outline::Polygon { corners } => cdd::Shape::Polygonal(cdd::PolygonalShape {
                shape_reference_point: centre,
                polygon: polygon(corners),
                height,
            }),
            Outline::Sector { range, start, end } => cdd::Shape::Radial(cdd::RadialShape {
                shape_reference_point: centre,
                range: length(*range),
                horizontal_opening_angle_start: angle(*start),
                horizontal_opening_angle_end: angle(*end),
                vertical_opening_angle_start: None,
                vertical_opening_angle_end: None,
            }),
        }
    }
}

fn polygon(corners: &[Offset]) -> cdd::Polygon {
    let mut points: Vec<_> = corners.iter().take(CORNERS_MAX).copied().map(point).collect();
    let last = points.last().copied().unwrap_or_else(|| point(Offset::default()));
    points.resize(points.len().max(CORNERS_MIN), last);
    cdd::Polygon(points)
}

/// Returns a point in centimetres. The ends of the range mean "out of range".
pub(super) fn point(offset: Offset) -> cdd::CartesianPosition3d {
    let coordinate =
        |length: Metres| cdd::CartesianCoordinate(scale::scaled_i16(length.value(), 100.0, i16::MIN, i16::MAX));
    cdd::CartesianPosition3d {
        x_coordinate: coordinate(offset.x),
        y_coordinate: coordinate(offset.y),
        z_coordinate: offset.z.map(coordinate),
    }
}

/// Converts a length to tenths of a metre.
fn length(length: Metres) -> cdd::StandardLength12b {
    cdd::StandardLength12b(scale::scaled_u16(length.value(), 10.0, 0, 4095))
}

/// Converts an angle to tenths of a degree.
fn angle(angle: Degrees) -> cdd::CartesianAngleValue {
    cdd::CartesianAngleValue(scale::heading_value(Some(angle)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_points_east_and_north() {
        let here = Position::new(45.0, 7.0);
        let offset = Offset::between(here, Position::new(45.001, 7.0));
        assert!((offset.y.value() - 111.2).abs() < 0.1 && offset.x.value().abs() < 1e-6, "{offset:?}");
        let offset = Offset::between(here, Position::new(45.0, 7.001));
        assert!((offset.x.value() - 78.6).abs() < 0.1 && offset.y.value().abs() < 0.01, "{offset:?}");
    }

    #[test]
    fn a_polygon_has_at_least_three_corners_and_at_most_sixteen() {
        let corner = Offset { x: Metres(1.0), y: Metres(-2.0), z: None };
        for (count, expected) in [(0, 3), (1, 3), (3, 3), (16, 16), (40, 16)] {
            assert_eq!(polygon(&vec![corner; count]).0.len(), expected);
        }
        assert_eq!(polygon(&[corner]).0[2], point(corner));
    }

    #[test]
    fn lengths_and_angles_are_scaled() {
        let shape = Shape {
            centre: Some(Offset { x: Metres(-1.5), y: Metres(1e9), z: Some(Metres(0.25)) }),
            outline: Outline::Sector { range: Metres(80.0), start: Degrees(-60.0), end: Degrees(60.0) },
            height: None,
        };
        let cdd::Shape::Radial(radial) = shape.to_etsi() else { panic!("not a sector") };
        assert_eq!(radial.range, cdd::StandardLength12b(800));
        assert_eq!(radial.horizontal_opening_angle_start, cdd::CartesianAngleValue(3000));
        let centre = radial.shape_reference_point.unwrap();
        assert_eq!(centre.x_coordinate, cdd::CartesianCoordinate(-150));
        assert_eq!(centre.y_coordinate, cdd::CartesianCoordinate::POSITIVE_OUT_OF_RANGE);
        assert_eq!(centre.z_coordinate, Some(cdd::CartesianCoordinate(25)));
    }
}
