//! Where a station is.

use viaduct_units::{Degrees, Metres, Position};

/// Metres of a degree of latitude, on the sphere that `Position::distance` measures on.
const METRES_PER_DEGREE: f64 = 6_371_008.8 * std::f64::consts::PI / 180.0;

/// A place on the plane of a world, in metres from its origin.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Place {
    /// To the east.
    pub east: Metres,
    /// To the north.
    pub north: Metres,
}

impl Place {
    /// The place so many metres to the east and to the north of the origin.
    #[must_use]
    pub const fn new(east_m: f64, north_m: f64) -> Self {
        Self { east: Metres(east_m), north: Metres(north_m) }
    }

    /// Distance between two places.
    #[must_use]
    pub fn distance(self, other: Self) -> Metres {
        Metres((self.east - other.east).value().hypot((self.north - other.north).value()))
    }

    /// The place on the earth, where the world's origin is at `origin`; good for some ten kilometres away from the poles.
    #[must_use]
    pub fn position(self, origin: Position) -> Position {
        let east_degrees = self.east.value() / (METRES_PER_DEGREE * origin.latitude.radians().cos());
        Position {
            latitude: origin.latitude + Degrees(self.north.value() / METRES_PER_DEGREE),
            longitude: origin.longitude + Degrees(east_degrees),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plane_has_the_distances_of_the_earth() {
        let origin = Position::new(48.0, 11.0);
        let (a, b) = (Place::new(-1500.0, 700.0), Place::new(2000.0, -900.0));
        let on_earth = a.position(origin).distance(b.position(origin)).value();
        assert!((on_earth - a.distance(b).value()).abs() < 2.0, "{on_earth}");
    }
}
