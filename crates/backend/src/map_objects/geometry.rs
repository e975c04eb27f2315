//! GeoJSON geometries (RFC 7946), and positions as messages encode them.

use serde::Serialize;
use utoipa::ToSchema;
use viaduct_etsi::cdd::DeltaReferencePosition;
use viaduct_units::Position;

/// Tenths of a microdegree in a degree (`Latitude`, `DeltaLatitude`).
const PER_DEGREE: f64 = 1e7;
/// `DeltaLatitude`, `DeltaLongitude`: unavailable.
const DELTA_UNAVAILABLE: i32 = 131_072;

/// Longitude and latitude in degrees, as GeoJSON orders them.
pub(crate) type Coordinates = [f64; 2];

/// A GeoJSON geometry.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(tag = "type")]
pub(crate) enum Geometry {
    /// One position.
    Point {
        #[schema(value_type = Vec<f64>)]
        coordinates: Coordinates,
    },
    /// Positions along a line, at least two.
    LineString {
        #[schema(value_type = Vec<Vec<f64>>)]
        coordinates: Vec<Coordinates>,
    },
    /// Several lines.
    MultiLineString {
        #[schema(value_type = Vec<Vec<Vec<f64>>>)]
        coordinates: Vec<Vec<Coordinates>>,
    },
    /// Rings of an area: each starts and ends at the same position.
    Polygon {
        #[schema(value_type = Vec<Vec<Vec<f64>>>)]
        coordinates: Vec<Vec<Coordinates>>,
    },
}

impl Geometry {
    /// Returns the point at `position`.
    pub(super) fn point(position: Position) -> Self {
        Self::Point { coordinates: coordinates(position) }
    }

    /// Returns a line, or `None` if there are fewer than two positions.
    pub(super) fn line(positions: &[Position]) -> Option<Self> {
        (positions.len() >= 2).then(|| Self::LineString { coordinates: all_coordinates(positions) })
    }

    /// Returns the lines that have at least two positions, or `None` if there are none.
    pub(super) fn lines(lines: &[Vec<Position>]) -> Option<Self> {
        let drawn = lines.iter().filter(|line| line.len() >= 2);
        let coordinates: Vec<_> = drawn.map(|line| all_coordinates(line)).collect();
        (!coordinates.is_empty()).then_some(Self::MultiLineString { coordinates })
    }

    /// Returns the area within the corners, or `None` if there are fewer than three.
    pub(super) fn area(corners: &[Position]) -> Option<Self> {
        if corners.len() < 3 {
            return None;
        }
        let mut ring = all_coordinates(corners);
        if ring.first() != ring.last() {
            ring.extend(ring.first().copied());
        }
        Some(Self::Polygon { coordinates: vec![ring] })
    }
}

fn all_coordinates(positions: &[Position]) -> Vec<Coordinates> {
    positions.iter().copied().map(coordinates).collect()
}

/// Rounds to 1e-8 degrees (1 mm), which the text of an answer then shows.
fn coordinates(position: Position) -> Coordinates {
    let rounded = |degrees: f64| (degrees * 1e8).round() / 1e8;
    [rounded(position.longitude.value()), rounded(position.latitude.value())]
}

/// Returns the position of two ETSI integers, or `None` if they are outside the ranges of latitude and longitude
/// ("unavailable" is).
pub(super) fn absolute(latitude: i32, longitude: i32) -> Option<Position> {
    let valid =
        (-900_000_000..=900_000_000).contains(&latitude) && (-1_800_000_000..=1_800_000_000).contains(&longitude);
    valid.then(|| Position::new(f64::from(latitude) / PER_DEGREE, f64::from(longitude) / PER_DEGREE))
}

/// Returns the position at an offset in tenths of a microdegree, or `None` if the offset is "unavailable".
pub(super) fn relative(to: Position, latitude: i32, longitude: i32) -> Option<Position> {
    if latitude == DELTA_UNAVAILABLE || longitude == DELTA_UNAVAILABLE {
        return None;
    }
    Some(Position::new(
        to.latitude.value() + f64::from(latitude) / PER_DEGREE,
        to.longitude.value() + f64::from(longitude) / PER_DEGREE,
    ))
}

/// Returns a path that starts at `origin`: each point is relative to the point before. It ends before the first point that
/// is "unavailable".
pub(super) fn path(origin: Position, deltas: impl Iterator<Item = (i32, i32)>) -> Vec<Position> {
    let mut points = vec![origin];
    let mut last = origin;
    for (latitude, longitude) in deltas {
        let Some(next) = relative(last, latitude, longitude) else { break };
        points.push(next);
        last = next;
    }
    points
}

/// Returns the two horizontal components of a relative position.
pub(super) fn delta(position: &DeltaReferencePosition) -> (i32, i32) {
    (position.delta_latitude.0, position.delta_longitude.0)
}
