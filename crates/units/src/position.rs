//! Positions on the WGS 84 ellipsoid, and boxes of them.

use crate::{Degrees, Metres};

/// Mean radius of the earth; accurate enough for distances of one radio range.
const EARTH_RADIUS_M: f64 = 6_371_008.8;

/// A point on WGS 84.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Position {
    /// Degrees north of the equator, -90 to 90.
    pub latitude: Degrees,
    /// Degrees east of Greenwich, -180 to 180.
    pub longitude: Degrees,
}

impl Position {
    /// Returns the point at `latitude_deg` north and `longitude_deg` east.
    #[must_use]
    pub const fn new(latitude_deg: f64, longitude_deg: f64) -> Self {
        Self { latitude: Degrees(latitude_deg), longitude: Degrees(longitude_deg) }
    }

    /// Returns the great-circle distance (haversine on a sphere; the error to the ellipsoid is below 0.6 %).
    #[must_use]
    pub fn distance(self, other: Self) -> Metres {
        let (lat_a, lat_b) = (self.latitude.radians(), other.latitude.radians());
        let half_lat = ((lat_b - lat_a) / 2.0).sin();
        let half_lon = ((other.longitude - self.longitude).radians() / 2.0).sin();
        let haversine = half_lat * half_lat + lat_a.cos() * lat_b.cos() * half_lon * half_lon;
        Metres(2.0 * EARTH_RADIUS_M * haversine.sqrt().min(1.0).asin())
    }

    /// Returns the direction of `other`, clockwise from north, 0 up to but not including 360.
    #[must_use]
    pub fn bearing(self, other: Self) -> Degrees {
        let (lat_a, lat_b) = (self.latitude.radians(), other.latitude.radians());
        let d_lon = (other.longitude - self.longitude).radians();
        let east = d_lon.sin() * lat_b.cos();
        let north = lat_a.cos() * lat_b.sin() - lat_a.sin() * lat_b.cos() * d_lon.cos();
        Degrees(east.atan2(north).to_degrees()).normalised()
    }

    /// Returns the point at the given distances east and north of this one. For distances of one radio range, away from
    /// the poles.
    #[must_use]
    pub fn displaced(self, east: Metres, north: Metres) -> Self {
        let latitude = self.latitude + Degrees((north.value() / EARTH_RADIUS_M).to_degrees());
        let parallel_m = EARTH_RADIUS_M * self.latitude.radians().cos();
        Self { latitude, longitude: self.longitude + Degrees((east.value() / parallel_m).to_degrees()) }
    }

    /// Returns the distances by which `other` lies east and north of this point: the inverse of [`Self::displaced`].
    #[must_use]
    pub fn offset_to(self, other: Self) -> (Metres, Metres) {
        let parallel_m = EARTH_RADIUS_M * self.latitude.radians().cos();
        // The shorter way round, which may cross the antimeridian.
        let turn = (other.longitude - self.longitude + Degrees(180.0)).normalised() - Degrees(180.0);
        let north = (other.latitude - self.latitude).radians() * EARTH_RADIUS_M;
        (Metres(turn.radians() * parallel_m), Metres(north))
    }

    /// Returns the point between this one (`part` 0) and `other` (`part` 1). For distances of a road segment.
    #[must_use]
    pub fn towards(self, other: Self, part: f64) -> Self {
        Self {
            latitude: self.latitude + (other.latitude - self.latitude) * part,
            longitude: self.longitude + (other.longitude - self.longitude) * part,
        }
    }
}

/// A bounding box between two meridians and two parallels. If it crosses the antimeridian, `west > east`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoundingBox {
    west: f64,
    south: f64,
    east: f64,
    north: f64,
}

/// The reason why four numbers are not a bounding box.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BoundingBoxError {
    /// A longitude outside -180 to 180.
    Longitude(f64),
    /// A latitude outside -90 to 90.
    Latitude(f64),
    /// The southern edge lies north of the northern one.
    Flipped {
        /// Southern edge as given.
        south: f64,
        /// Northern edge as given.
        north: f64,
    },
}

impl std::fmt::Display for BoundingBoxError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Longitude(value) => write!(f, "longitude {value} is not within -180 to 180"),
            Self::Latitude(value) => write!(f, "latitude {value} is not within -90 to 90"),
            Self::Flipped { south, north } => {
                write!(f, "the southern edge {south} lies north of the northern edge {north}")
            }
        }
    }
}

impl std::error::Error for BoundingBoxError {}

impl BoundingBox {
    /// The whole earth.
    pub const WORLD: Self = Self { west: -180.0, south: -90.0, east: 180.0, north: 90.0 };

    /// Returns a box from its edges in the order of GeoJSON and OGC API Features: west, south, east, north, in degrees.
    ///
    /// # Errors
    /// Returns an error if an edge is not a coordinate (for example NaN), or south lies above north.
    pub fn new(west: f64, south: f64, east: f64, north: f64) -> Result<Self, BoundingBoxError> {
        if let Some(bad) = [west, east].into_iter().find(|edge| !(-180.0..=180.0).contains(edge)) {
            return Err(BoundingBoxError::Longitude(bad));
        }
        if let Some(bad) = [south, north].into_iter().find(|edge| !(-90.0..=90.0).contains(edge)) {
            return Err(BoundingBoxError::Latitude(bad));
        }
        if south > north {
            return Err(BoundingBoxError::Flipped { south, north });
        }
        Ok(Self { west, south, east, north })
    }

    /// Returns `true` if the point lies inside or on the edge.
    #[must_use]
    pub fn contains(&self, position: Position) -> bool {
        let (latitude, longitude) = (position.latitude.value(), position.longitude.value());
        let between_meridians = if self.west <= self.east {
            (self.west..=self.east).contains(&longitude)
        } else {
            longitude >= self.west || longitude <= self.east
        };
        between_meridians && (self.south..=self.north).contains(&latitude)
    }

    /// Returns the edges in the order west, south, east, north, in degrees.
    #[must_use]
    pub const fn edges(&self) -> [f64; 4] {
        [self.west, self.south, self.east, self.north]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_and_bearing_agree_with_known_points() {
        // One minute of arc along a meridian is close to a nautical mile.
        let start = Position::new(45.0, 7.0);
        let north = Position::new(45.0 + 1.0 / 60.0, 7.0);
        assert!((start.distance(north).value() - 1853.2).abs() < 1.0);
        assert!(start.bearing(north).value().abs() < 1e-9);
        let west = Position::new(45.0, 6.99);
        assert!((start.bearing(west).value() - 270.0).abs() < 0.01);
    }

    #[test]
    fn a_displaced_point_has_the_requested_offset() {
        let start = Position::new(45.0, 179.999);
        let moved = start.displaced(Metres(300.0), Metres(-40.0));
        assert!((start.distance(moved).value() - 302.655).abs() < 0.05);
        let (east, north) = start.offset_to(Position::new(moved.latitude.value(), moved.longitude.value() - 360.0));
        assert!((east.value() - 300.0).abs() < 1e-6 && (north.value() + 40.0).abs() < 1e-6, "{east:?} {north:?}");
    }

    #[test]
    fn a_box_across_the_antimeridian_holds_both_sides() {
        let fiji = BoundingBox::new(177.0, -20.0, -178.0, -15.0).unwrap();
        assert!(fiji.contains(Position::new(-17.0, 179.5)));
        assert!(fiji.contains(Position::new(-17.0, -179.5)));
        assert!(!fiji.contains(Position::new(-17.0, 0.0)));
    }

    #[test]
    fn invalid_boxes_are_rejected() {
        assert_eq!(BoundingBox::new(-181.0, 0.0, 0.0, 1.0), Err(BoundingBoxError::Longitude(-181.0)));
        assert_eq!(BoundingBox::new(0.0, 2.0, 1.0, 1.0), Err(BoundingBoxError::Flipped { south: 2.0, north: 1.0 }));
        assert!(BoundingBox::new(f64::NAN, 0.0, 1.0, 1.0).is_err());
        assert!(BoundingBox::new(0.0, 0.0, 1.0, 91.0).is_err());
    }
}
