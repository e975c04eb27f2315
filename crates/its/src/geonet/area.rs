//! Geographical areas and the function that distinguishes inside and outside, EN 302 931 V1.1.1.

use std::f64::consts::PI;

use viaduct_units::{Degrees, Metres, Position};

use super::{coordinates, mib::ITS_GN_MAX_GEO_AREA_SIZE_M2};

/// Length of an area in a packet, in octets: centre, distances, angle.
#[cfg(test)]
const OCTETS: usize = 14;
/// Largest distance that the field can carry.
const DISTANCE_M_MAX: f64 = 65_535.0;
/// Radius in whole metres of the largest circle within `itsGnMaxGeoAreaSize` (10 km2).
const CIRCLE_RADIUS_M_MAX: f64 = 1784.0;
/// Largest angle that the field can carry (clause 9.8.5.2).
const ANGLE_DEG_MAX: u16 = 360;

/// The destination area of a packet (EN 302 636-4-1, clause 9.8.5).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Area {
    /// Centre of the area, with a resolution of a tenth of a microdegree.
    pub centre: Position,
    /// Shape and size.
    pub shape: Shape,
}

/// Shape and size of an area. Distances are whole metres on the wire, 0 to 65 535.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// A circle around the centre.
    Circle {
        /// Radius (distance a).
        radius: Metres,
    },
    /// A rectangle around the centre.
    Rectangle {
        /// Distance a: half of the long side.
        a: Metres,
        /// Distance b: half of the short side.
        b: Metres,
        /// Direction of the long side, clockwise from north.
        azimuth: Degrees,
    },
    /// An ellipse around the centre.
    Ellipse {
        /// Distance a: half of the long axis.
        a: Metres,
        /// Distance b: half of the short axis.
        b: Metres,
        /// Direction of the long axis, clockwise from north.
        azimuth: Degrees,
    },
}

/// Shape of an area, as in the header subtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapeKind {
    /// HST 0.
    Circle,
    /// HST 1.
    Rectangle,
    /// HST 2.
    Ellipse,
}

impl ShapeKind {
    pub(super) const fn from_subtype(subtype: u8) -> Option<Self> {
        match subtype {
            0 => Some(Self::Circle),
            1 => Some(Self::Rectangle),
            2 => Some(Self::Ellipse),
            _ => None,
        }
    }

    pub(super) const fn subtype(self) -> u8 {
        match self {
            Self::Circle => 0,
            Self::Rectangle => 1,
            Self::Ellipse => 2,
        }
    }
}

impl Shape {
    /// Returns the shape without its size.
    #[must_use]
    pub const fn kind(self) -> ShapeKind {
        match self {
            Self::Circle { .. } => ShapeKind::Circle,
            Self::Rectangle { .. } => ShapeKind::Rectangle,
            Self::Ellipse { .. } => ShapeKind::Ellipse,
        }
    }

    /// Returns distances a and b and the angle. For a circle, both distances are the radius.
    const fn parts(self) -> (Metres, Metres, Degrees) {
        match self {
            Self::Circle { radius } => (radius, radius, Degrees(0.0)),
            Self::Rectangle { a, b, azimuth } | Self::Ellipse { a, b, azimuth } => (a, b, azimuth),
        }
    }

    /// Returns the distance from the centre to the farthest point, in metres.
    fn reach(self) -> f64 {
        match self {
            Self::Circle { radius } => radius.value(),
            Self::Rectangle { a, b, .. } => a.value().hypot(b.value()),
            Self::Ellipse { a, b, .. } => a.value().max(b.value()),
        }
    }
}

impl Area {
    /// Returns the geometric function F (EN 302 931, clause 5): 1 at the centre, above 0 inside, 0 on the border, below
    /// 0 outside.
    ///
    /// Distances are along great circles, which at the scale of an area (at most some kilometres) equals the local
    /// plane.
    #[must_use]
    pub fn function_f(&self, position: Position) -> f64 {
        let (a, b, azimuth) = self.shape.parts();
        let distance_m = self.centre.distance(position).value();
        let angle = (self.centre.bearing(position) - azimuth).radians();
        let x = square_of_part(distance_m * angle.cos(), a);
        let y = square_of_part(distance_m * angle.sin(), b);
        match self.shape {
            Shape::Rectangle { .. } => (1.0 - x).min(1.0 - y),
            Shape::Circle { .. } | Shape::Ellipse { .. } => 1.0 - x - y,
        }
    }

    /// Returns `true` if the position is inside or on the border.
    #[must_use]
    pub fn contains(&self, position: Position) -> bool {
        self.function_f(position) >= 0.0
    }

    /// Returns the size in square metres, as `itsGnMaxGeoAreaSize` limits it (EN 302 636-4-1, annex B.3).
    #[must_use]
    pub fn size_m2(&self) -> f64 {
        let (a, b, _) = self.shape.parts();
        let factor = if matches!(self.shape, Shape::Rectangle { .. }) { 4.0 } else { PI };
        factor * a.value() * b.value()
    }

    /// Returns this area if it is a circle that contains `other`, else the smallest circle that contains the circles
    /// around both.
    pub(crate) fn enclosing(self, other: Self) -> Self {
        let (own, others) = (self.shape.reach(), other.shape.reach());
        let distance = self.centre.distance(other.centre).value();
        let is_circle = |area: Self| matches!(area.shape, Shape::Circle { .. });
        if self == other || is_circle(self) && distance + others <= own {
            return self;
        }
        if is_circle(other) && distance + own <= others {
            return other;
        }
        let radius = (distance + own + others).max(2.0 * own.max(others)) / 2.0;
        let (from, away) = if own < others { (other, radius - others) } else { (self, radius - own) };
        let towards = if own < others { self.centre } else { other.centre };
        let bearing = from.centre.bearing(towards).radians();
        let Position { latitude, longitude } =
            from.centre.displaced(Metres(away * bearing.sin()), Metres(away * bearing.cos()));
        let longitude = (longitude + Degrees(180.0)).normalised() - Degrees(180.0);
        Self { centre: Position { latitude, longitude }, shape: Shape::Circle { radius: Metres(radius) } }
    }

    /// Returns this area if it is within `itsGnMaxGeoAreaSize`, else `part`, else the largest permitted circle around
    /// `part`'s centre.
    pub(crate) fn permitted_or(self, part: Self) -> Self {
        if self.is_allowed() {
            self
        } else if part.is_allowed() && part.shape.reach() > CIRCLE_RADIUS_M_MAX {
            part
        } else {
            Self { shape: Shape::Circle { radius: Metres(CIRCLE_RADIUS_M_MAX) }, ..part }
        }
    }

    /// Returns `true` if a packet can carry the area and it is within `itsGnMaxGeoAreaSize`.
    fn is_allowed(&self) -> bool {
        self.is_expressible() && self.size_m2() <= ITS_GN_MAX_GEO_AREA_SIZE_M2
    }

    /// Returns an area that contains this one and, as far as `itsGnMaxGeoAreaSize` permits, `other`. Returns this area
    /// unchanged if it is not permitted itself, so that sending reports the error.
    pub(crate) fn extended_to(self, other: Self) -> Self {
        if self.is_allowed() { self.enclosing(other).permitted_or(self) } else { self }
    }

    /// Returns `true` if a packet can carry the area: the centre is on earth, and distances are 0 to 65 535 m.
    #[must_use]
    pub fn is_expressible(&self) -> bool {
        let (a, b, azimuth) = self.shape.parts();
        let (latitude, longitude) = (self.centre.latitude.value(), self.centre.longitude.value());
        let distances = [a, b].into_iter().all(|distance| (0.0..=DISTANCE_M_MAX).contains(&distance.value()));
        distances && azimuth.value().is_finite() && latitude.abs() <= 90.0 && longitude.abs() <= 180.0
    }

    /// Parses an area of the shape given by the header subtype. Returns the area with the remaining octets.
    pub(super) fn parse(kind: ShapeKind, octets: &[u8]) -> Option<(Result<Self, InvalidArea>, &[u8])> {
        let (centre, rest) = coordinates::parse(octets)?;
        let (&[a_high, a_low, b_high, b_low, angle_high, angle_low], rest) = rest.split_first_chunk::<6>()?;
        let distance = |high, low| Metres(u16::from_be_bytes([high, low]).into());
        let angle = u16::from_be_bytes([angle_high, angle_low]);
        let (a, b, azimuth) = (distance(a_high, a_low), distance(b_high, b_low), Degrees(angle.into()));
        let shape = match kind {
            ShapeKind::Circle => Shape::Circle { radius: a },
            ShapeKind::Rectangle => Shape::Rectangle { a, b, azimuth },
            ShapeKind::Ellipse => Shape::Ellipse { a, b, azimuth },
        };
        let area = centre.filter(|_| angle <= ANGLE_DEG_MAX).map(|centre| Self { centre, shape });
        Some((area.ok_or(InvalidArea), rest))
    }

    /// Appends the area. The fields for distance b and the angle are 0 for a circle.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the field before")]
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let whole = |distance: Metres| (distance.value().round().clamp(0.0, DISTANCE_M_MAX) as u16).to_be_bytes();
        let (a, b, azimuth) = self.shape.parts();
        let b = if self.shape.kind() == ShapeKind::Circle { Metres(0.0) } else { b };
        coordinates::write(Some(self.centre), out);
        out.extend_from_slice(&whole(a));
        out.extend_from_slice(&whole(b));
        out.extend_from_slice(&(azimuth.normalised().value().round() as u16).to_be_bytes());
    }
}

impl std::fmt::Display for Area {
    /// Formats the area as a phrase for people: shape, size in whole metres, and centre.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (a, b, azimuth) = self.shape.parts();
        let (long, wide, towards) = (2.0 * a.value(), 2.0 * b.value(), azimuth.value());
        match self.shape {
            Shape::Circle { radius } => write!(f, "a circle of radius {} m", radius.value())?,
            Shape::Rectangle { .. } => write!(f, "a rectangle of {long} m by {wide} m towards {towards} degrees")?,
            Shape::Ellipse { .. } => write!(f, "an ellipse of {long} m by {wide} m towards {towards} degrees")?,
        }
        write!(f, " around {}, {}", self.centre.latitude.value(), self.centre.longitude.value())
    }
}

/// The fields are not an area: the centre is not on earth, or the angle is above 360 degrees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InvalidArea;

/// Returns the square of `distance_m / full`. If `full` is 0, the result is 0 for distance 0, else infinite.
fn square_of_part(distance_m: f64, full: Metres) -> f64 {
    if distance_m == 0.0 { 0.0 } else { (distance_m / full.value()).powi(2) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CENTRE: Position = Position::new(48.262_5, 11.667_5);

    /// Returns the point at these distances north and east of the centre.
    fn at(north_m: f64, east_m: f64) -> Position {
        const METRES_PER_DEGREE: f64 = 6_371_008.8 * PI / 180.0;
        let latitude = CENTRE.latitude.value() + north_m / METRES_PER_DEGREE;
        let metres_per_degree_east = METRES_PER_DEGREE * CENTRE.latitude.radians().cos();
        Position::new(latitude, CENTRE.longitude.value() + east_m / metres_per_degree_east)
    }

    fn area(shape: Shape) -> Area {
        Area { centre: CENTRE, shape }
    }

    #[test]
    fn enclosing_circle_contains_both_areas() {
        let place = Position::new(48.0, 11.0);
        let east = |metres| place.displaced(Metres(metres), Metres(0.0));
        let rectangle =
            Area { centre: place, shape: Shape::Rectangle { a: Metres(30.0), b: Metres(40.0), azimuth: Degrees(7.0) } };
        let circle = |metres, radius| Area { centre: east(metres), shape: Shape::Circle { radius: Metres(radius) } };
        assert_eq!(rectangle.enclosing(rectangle), rectangle);
        assert_eq!(circle(0.0, 50.0).enclosing(rectangle), circle(0.0, 50.0));
        assert_eq!(rectangle.enclosing(circle(3.0, 60.0)), circle(3.0, 60.0));
        for (one, other, centre, radius) in [
            (circle(0.0, 20.0), rectangle, 0.0, 50.0),
            (circle(0.0, 100.0), circle(50.0, 100.0), 25.0, 125.0),
            (circle(0.0, 100.0), circle(300.0, 40.0), 120.0, 220.0),
            (circle(300.0, 40.0), circle(0.0, 100.0), 120.0, 220.0),
        ] {
            let both = one.enclosing(other);
            let Shape::Circle { radius: found } = both.shape else { panic!() };
            assert!((found.value() - radius).abs() < 0.01, "{found:?} and {radius}");
            assert!(both.centre.distance(east(centre)).value() < 0.1, "{both} and {centre}");
        }
    }

    /// The position of a standing vehicle varies by a metre, which must not enlarge its area again and again.
    #[test]
    fn repeated_enclosing_does_not_grow() {
        let circle = |east: f64| {
            let centre = Position::new(48.0, 11.0).displaced(Metres(east), Metres(0.0));
            Area { centre, shape: Shape::Circle { radius: Metres(1000.0) } }
        };
        let all = (0..1000).fold(circle(0.0), |all, turn| circle(f64::from(turn % 2)).enclosing(all));
        let Shape::Circle { radius } = all.shape else { panic!() };
        assert!(radius.value() < 1002.0, "{radius:?}");
    }

    #[test]
    fn extended_area_is_limited_to_the_maximum_radius() {
        let circle = |longitude, radius| Area {
            centre: Position::new(48.0, longitude),
            shape: Shape::Circle { radius: Metres(radius) },
        };
        let far = circle(12.0, 100.0);
        assert_eq!(circle(11.0, 100.0).extended_to(far), circle(11.0, CIRCLE_RADIUS_M_MAX));
        assert_eq!(circle(11.0, 100.0).extended_to(circle(11.0, 2000.0)), circle(11.0, CIRCLE_RADIUS_M_MAX));
        assert_eq!(circle(11.0, 2000.0).extended_to(far), circle(11.0, 2000.0), "the router rejects it as too large");
        let (a, b, azimuth) = (Metres(5000.0), Metres(100.0), Degrees(0.0));
        let long = Area { shape: Shape::Rectangle { a, b, azimuth }, ..far };
        assert_eq!(long.extended_to(circle(11.0, 1.0)), long);
        assert!(circle(11.0, CIRCLE_RADIUS_M_MAX).size_m2() <= ITS_GN_MAX_GEO_AREA_SIZE_M2);
        assert_eq!(circle(11.0, 9000.0).permitted_or(circle(11.0, 2000.0)), circle(11.0, CIRCLE_RADIUS_M_MAX));
    }

    #[test]
    fn area_crosses_the_antimeridian_and_works_near_a_pole() {
        let circle = |latitude, longitude, radius| Area {
            centre: Position::new(latitude, longitude),
            shape: Shape::Circle { radius: Metres(radius) },
        };
        let (west, east) = (circle(48.0, 179.9999, 100.0), circle(48.0, -179.9999, 110.0));
        let both = west.extended_to(east);
        let distance = west.centre.distance(east.centre).value();
        let Shape::Circle { radius } = both.shape else { panic!() };
        assert!((radius.value() - (distance + 210.0) / 2.0).abs() < 0.01 && radius.value() < 120.0, "{both}");
        assert!(both.is_expressible() && both.centre.distance(east.centre).value() < distance, "{both}");
        // At the pole no direction is east: the largest circle contains both too.
        let (pole, near) = (circle(90.0, 0.0, 100.0), circle(89.999, 170.0, 100.0));
        let both = pole.extended_to(near);
        assert!(both.is_expressible() && both.contains(near.centre) && both.contains(pole.centre), "{both}");
    }

    #[test]
    fn circle_ends_at_its_radius() {
        let circle = area(Shape::Circle { radius: Metres(500.0) });
        assert_eq!(circle.function_f(CENTRE), 1.0);
        assert!(
            circle.contains(at(499.0, 0.0)) && circle.contains(at(0.0, -499.0)) && circle.contains(at(353.0, 353.0))
        );
        assert!(!circle.contains(at(501.0, 0.0)) && !circle.contains(at(354.5, 354.5)));
        assert!(circle.function_f(at(500.0, 0.0)).abs() < 1e-3, "the border is 0");
    }

    #[test]
    fn rectangle_contains_its_corners() {
        let (a, b) = (Metres(400.0), Metres(100.0));
        let north = area(Shape::Rectangle { a, b, azimuth: Degrees(0.0) });
        assert!(north.contains(at(399.0, 99.0)) && north.contains(at(-399.0, -99.0)));
        assert!(!north.contains(at(401.0, 0.0)) && !north.contains(at(0.0, 101.0)));
        let east = area(Shape::Rectangle { a, b, azimuth: Degrees(90.0) });
        assert!(east.contains(at(99.0, 399.0)) && !east.contains(at(399.0, 99.0)));
    }

    #[test]
    fn ellipse_does_not_contain_the_corners() {
        let (a, b) = (Metres(400.0), Metres(100.0));
        let ellipse = area(Shape::Ellipse { a, b, azimuth: Degrees(45.0) });
        assert!(ellipse.contains(at(282.0, 282.0)) && !ellipse.contains(at(284.0, 284.0)));
        assert!(ellipse.contains(at(70.0, -70.0)) && !ellipse.contains(at(72.0, -72.0)));
        let upright = area(Shape::Ellipse { a, b, azimuth: Degrees(0.0) });
        assert!(!upright.contains(at(399.0, 99.0)));
    }

    #[test]
    fn area_without_extent_contains_only_its_centre() {
        for shape in [
            Shape::Circle { radius: Metres(0.0) },
            Shape::Rectangle { a: Metres(0.0), b: Metres(0.0), azimuth: Degrees(30.0) },
        ] {
            assert!(area(shape).contains(CENTRE));
            assert!(!area(shape).contains(at(1.0, 1.0)));
        }
    }

    #[test]
    fn sizes_match_the_shapes() {
        let (a, b, azimuth) = (Metres(200.0), Metres(100.0), Degrees(10.0));
        assert_eq!(area(Shape::Rectangle { a, b, azimuth }).size_m2(), 80_000.0);
        assert!((area(Shape::Ellipse { a, b, azimuth }).size_m2() - PI * 20_000.0).abs() < 1e-6);
        assert!((area(Shape::Circle { radius: a }).size_m2() - PI * 40_000.0).abs() < 1e-6);
    }

    #[test]
    fn each_shape_round_trips() {
        let (a, b, azimuth) = (Metres(65_535.0), Metres(1.0), Degrees(359.0));
        for shape in [
            Shape::Circle { radius: Metres(300.0) },
            Shape::Rectangle { a, b, azimuth },
            Shape::Ellipse { a, b, azimuth },
        ] {
            let mut octets = Vec::new();
            area(shape).write(&mut octets);
            assert_eq!(octets.len(), OCTETS);
            assert_eq!(Area::parse(shape.kind(), &octets), Some((Ok(area(shape)), &[][..])));
            assert_eq!(Area::parse(shape.kind(), &octets[..OCTETS - 1]), None);
        }
    }

    #[test]
    fn display_shows_sizes_and_centre() {
        let (a, b, azimuth) = (Metres(400.0), Metres(100.5), Degrees(77.0));
        let circle = area(Shape::Circle { radius: a }).to_string();
        assert_eq!(circle, "a circle of radius 400 m around 48.2625, 11.6675");
        let rectangle = area(Shape::Rectangle { a, b, azimuth }).to_string();
        assert_eq!(rectangle, "a rectangle of 800 m by 201 m towards 77 degrees around 48.2625, 11.6675");
        assert!(area(Shape::Ellipse { a, b, azimuth }).to_string().starts_with("an ellipse of 800 m by 201 m"));
    }

    #[test]
    fn invalid_area_is_rejected() {
        let mut octets = Vec::new();
        area(Shape::Rectangle { a: Metres(2.0), b: Metres(1.0), azimuth: Degrees(0.0) }).write(&mut octets);
        octets[12..].copy_from_slice(&361_u16.to_be_bytes());
        assert_eq!(Area::parse(ShapeKind::Rectangle, &octets), Some((Err(InvalidArea), &[][..])));
        octets[0] = 0x7F;
        octets[12] = 0;
        assert_eq!(Area::parse(ShapeKind::Circle, &octets), Some((Err(InvalidArea), &[][..])));
        assert!(!area(Shape::Circle { radius: Metres(65_536.0) }).is_expressible());
        assert!(!area(Shape::Circle { radius: Metres(f64::NAN) }).is_expressible());
    }
}
