//! Places on the plane.

use viaduct_units::{Metres, Position};

/// A place on the plane of a world, in metres from its origin.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Place {
    /// Distance to the east of the origin.
    pub east: Metres,
    /// Distance to the north of the origin.
    pub north: Metres,
}

impl Place {
    /// Returns the place at the given metres east and north of the origin.
    #[must_use]
    pub const fn new(east_m: f64, north_m: f64) -> Self {
        Self { east: Metres(east_m), north: Metres(north_m) }
    }

    /// Returns the distance between two places.
    #[must_use]
    pub fn distance(self, other: Self) -> Metres {
        Metres((self.east - other.east).value().hypot((self.north - other.north).value()))
    }

    /// Returns the position on the earth, with the world's origin at `origin`. Accurate for some ten kilometres, away
    /// from the poles.
    #[must_use]
    pub fn position(self, origin: Position) -> Position {
        origin.displaced(self.east, self.north)
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
