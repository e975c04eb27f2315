//! The roads, marks, trees, houses and posts around a place, in metres.

use viaduct_units::{Metres, Position, Rng};

use super::view::Point;
use crate::motion::road::RoadNetwork;

/// Distance up to which roads are drawn, in metres.
pub(super) const RANGE: f64 = 260.0;
/// Distance from the centre after which the surroundings are made again, in metres.
const RENEW_AFTER: f64 = 80.0;
/// Half of the width of a road, in metres.
pub(super) const ROAD_HALF_WIDTH: f64 = 3.7;
/// Distance of the edge line from the middle of the road, in metres.
const EDGE_LINE: f64 = 3.4;
/// Length of a dash and of a gap of the centre line, in metres.
const DASH: (f64, f64) = (3.0, 6.0);
/// Length at each end of a road without marks, in metres.
const JUNCTION: f64 = 8.0;
/// Largest number of objects.
const OBJECTS_MAX: usize = 600;

/// A straight piece of a line on the ground, in metres east and north of the origin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) from: (f64, f64),
    pub(super) to: (f64, f64),
}

/// An object that stands beside a road.
#[derive(Clone, Copy, Debug)]
pub(super) struct Object {
    pub(super) at: (f64, f64),
    pub(super) kind: ObjectKind,
    /// Direction of the road in radians, clockwise from north.
    pub(super) heading_rad: f64,
    /// Number that varies size and colour.
    pub(super) variant: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectKind {
    Tree,
    House,
    Post,
}

/// Everything around a place.
#[derive(Debug)]
pub(super) struct Surroundings {
    centre: (f64, f64),
    pub(super) roads: Vec<Piece>,
    /// Ends of roads: junctions.
    pub(super) junctions: Vec<(f64, f64)>,
    pub(super) marks: Vec<Piece>,
    pub(super) objects: Vec<Object>,
}

impl Surroundings {
    /// Returns the surroundings of a place. Coordinates are metres east and north of `origin`.
    pub(super) fn new(network: &RoadNetwork, origin: Position, centre: (f64, f64)) -> Self {
        let mut all = Self { centre, roads: vec![], junctions: vec![], marks: vec![], objects: vec![] };
        for (index, line) in network.lines().enumerate() {
            let points: Vec<(f64, f64)> = line.iter().map(|point| offset(origin, *point)).collect();
            let within = |pair: &[(f64, f64)]| distance_to_piece(centre, pair[0], pair[1]) < RANGE + RENEW_AFTER;
            if points.windows(2).any(within) {
                all.add_road(index as u64, &points);
            }
        }
        all.objects.sort_by(|a, b| length(centre, a.at).total_cmp(&length(centre, b.at)));
        all.objects.truncate(OBJECTS_MAX);
        let Self { roads, objects, .. } = &mut all;
        objects.retain(|object| {
            let distances = roads.iter().map(|road| distance_to_piece(object.at, road.from, road.to));
            distances.fold(f64::INFINITY, f64::min) > object.kind.clearance()
        });
        all
    }

    /// Returns `true` if the place is so far from the centre that new surroundings are needed.
    pub(super) fn is_left(&self, place: (f64, f64)) -> bool {
        length(self.centre, place) >= RENEW_AFTER
    }

    fn add_road(&mut self, seed: u64, points: &[(f64, f64)]) {
        let mut rng = Rng::new(seed);
        let total: f64 = points.windows(2).map(|pair| length(pair[0], pair[1])).sum();
        self.junctions.extend(points.first());
        self.junctions.extend(points.last());
        let mut along = 0.0;
        for pair in points.windows(2) {
            let piece = Piece { from: pair[0], to: pair[1] };
            let own = length(piece.from, piece.to);
            if own > 0.0 {
                self.roads.push(piece);
                self.add_marks(piece, along, total);
                self.add_objects(piece, along, &mut rng);
            }
            along += own;
        }
    }

    /// Adds the marks of a piece of a road that begins at `along`.
    fn add_marks(&mut self, piece: Piece, along: f64, total: f64) {
        let own = length(piece.from, piece.to);
        let (start, end) = (along.max(JUNCTION), (along + own).min(total - JUNCTION));
        if start >= end {
            return;
        }
        for side in [-EDGE_LINE, EDGE_LINE] {
            self.marks.push(Piece { from: beside(piece, start - along, side), to: beside(piece, end - along, side) });
        }
        let period = DASH.0 + DASH.1;
        let mut dash = (start / period).floor() * period;
        while dash < end {
            let (from, to) = (dash.max(start), (dash + DASH.0).min(end));
            if from < to {
                self.marks.push(Piece { from: beside(piece, from - along, 0.0), to: beside(piece, to - along, 0.0) });
            }
            dash += period;
        }
    }

    /// Adds objects on both sides of a piece of a road.
    fn add_objects(&mut self, piece: Piece, along: f64, rng: &mut Rng) {
        let own = length(piece.from, piece.to);
        let heading_rad = (piece.to.0 - piece.from.0).atan2(piece.to.1 - piece.from.1);
        for (every, distance, kind) in
            [(17.0, 8.5, ObjectKind::Tree), (38.0, 17.0, ObjectKind::House), (25.0, 4.4, ObjectKind::Post)]
        {
            let mut next = (along / every).ceil() * every;
            while next < along + own {
                for side in [-1.0, 1.0] {
                    let (jitter, variant) = (rng.between(-2.0, 2.0), rng.below(256) as u8);
                    let jitter = if kind == ObjectKind::Post { 0.0 } else { jitter };
                    let at = beside(piece, next - along, side * (distance + jitter.abs()));
                    if length(self.centre, at) < RANGE + RENEW_AFTER {
                        self.objects.push(Object { at, kind, heading_rad, variant });
                    }
                }
                next += every;
            }
        }
    }
}

impl ObjectKind {
    /// Returns the smallest distance from the middle of a road, in metres.
    const fn clearance(self) -> f64 {
        match self {
            Self::Tree => 6.0,
            Self::House => 12.0,
            Self::Post => 4.0,
        }
    }
}

impl Piece {
    /// Returns the distance of a point from the piece.
    pub(super) fn distance(&self, point: (f64, f64)) -> f64 {
        distance_to_piece(point, self.from, self.to)
    }

    /// Returns the corners of a strip around the piece.
    pub(super) fn strip(&self, half_width: f64, overlap: f64) -> [Point; 4] {
        let own = length(self.from, self.to);
        let corner = |along: f64, side: f64| {
            let (east, north) = beside(*self, along, side);
            Point { east, north, up: 0.0 }
        };
        let (start, end) = (-overlap, own + overlap);
        [corner(start, -half_width), corner(start, half_width), corner(end, half_width), corner(end, -half_width)]
    }
}

/// Returns the offset of a position in metres east and north.
pub(super) fn offset(origin: Position, position: Position) -> (f64, f64) {
    let (Metres(east), Metres(north)) = origin.offset_to(position);
    (east, north)
}

/// Returns the point at a distance along a piece, and to the right of it.
fn beside(piece: Piece, along: f64, right: f64) -> (f64, f64) {
    let own = length(piece.from, piece.to).max(1e-6);
    let (east, north) = ((piece.to.0 - piece.from.0) / own, (piece.to.1 - piece.from.1) / own);
    (piece.from.0 + along * east + right * north, piece.from.1 + along * north - right * east)
}

pub(super) fn length(a: (f64, f64), b: (f64, f64)) -> f64 {
    (b.0 - a.0).hypot(b.1 - a.1)
}

fn distance_to_piece(point: (f64, f64), from: (f64, f64), to: (f64, f64)) -> f64 {
    let (east, north) = (to.0 - from.0, to.1 - from.1);
    let along = (point.0 - from.0) * east + (point.1 - from.1) * north;
    let part = (along / (east * east + north * north).max(1e-9)).clamp(0.0, 1.0);
    length(point, (from.0 + part * east, from.1 + part * north))
}
