//! A closed tour through a network of roads.

use viaduct_units::{Degrees, Metres, Position};

use super::road::{Lane, RoadNetwork, beside};

/// Distance by which the heading looks ahead, in metres: a vehicle turns gradually.
const LOOK_AHEAD: f64 = 8.0;

/// Lanes that are driven in a circle. Position and heading are functions of the distance, so that several components that know
/// the distance agree without a message.
#[derive(Clone, Debug)]
pub(crate) struct Tour {
    lanes: Vec<Lane>,
    /// Distance of the end of each lane from the start of the tour, in metres.
    ends: Vec<f64>,
}

impl Tour {
    /// Returns the tour that goes straight on from the lane of that index.
    pub(crate) fn new(roads: &RoadNetwork, first: usize) -> Self {
        let mut lanes = vec![roads.lane(first)];
        // In a network without dead ends, the same lane is reached again. In others the tour jumps at most once a round.
        while let Some(next) = lanes.last().map(|last| roads.straight_on(*last)) {
            if let Some(known) = lanes.iter().position(|lane| *lane == next) {
                lanes.drain(..known);
                break;
            }
            lanes.push(next);
        }
        let mut total = 0.0;
        let mut end = |lane: &Lane| {
            total += roads.length(*lane).value();
            total
        };
        let ends = lanes.iter().map(&mut end).collect();
        Self { lanes, ends }
    }

    /// Returns the length of one round.
    pub(crate) fn length(&self) -> Metres {
        Metres(self.ends.last().copied().unwrap_or(1.0))
    }

    /// Returns the position in the middle of the lane, and the heading, at a distance from the start.
    pub(crate) fn at(&self, roads: &RoadNetwork, distance: Metres) -> (Position, Degrees) {
        let here = self.middle(roads, distance);
        let ahead = self.middle(roads, distance + Metres(LOOK_AHEAD));
        let heading = here.bearing(ahead);
        (beside(here, heading), heading)
    }

    /// Returns the point in the middle of the road at a distance from the start.
    fn middle(&self, roads: &RoadNetwork, distance: Metres) -> Position {
        let round = distance.value().rem_euclid(self.length().value());
        let index = self.ends.partition_point(|end| *end <= round).min(self.lanes.len() - 1);
        let start = if index == 0 { 0.0 } else { self.ends[index - 1] };
        roads.point(self.lanes[index], Metres(round - start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tour_moves_steadily_and_ends_where_it_began() {
        let roads = RoadNetwork::load(None).unwrap();
        for first in 0..roads.lane_count() {
            let tour = Tour::new(&roads, first);
            let length = tour.length().value();
            assert!(length > 200.0, "{length}");
            let (mut last, _) = tour.at(&roads, Metres(0.0));
            for metre in 1..=length as usize {
                let (here, _) = tour.at(&roads, Metres(metre as f64));
                assert!(last.distance(here).value() < 2.5, "lane {first}: {metre} m");
                last = here;
            }
            let (round, _) = tour.at(&roads, tour.length());
            assert!(tour.at(&roads, Metres(0.0)).0.distance(round).value() < 0.01);
        }
    }
}
