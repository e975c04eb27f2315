//! A network of roads, from a GeoJSON file or the built-in town.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use viaduct_node::{SettingError, files};
use viaduct_units::{Degrees, Metres, MetresPerSecond, Position};

/// Distance of the middle of a lane from the middle of its road.
pub(crate) const LANE_OFFSET: Metres = Metres(1.8);

/// The built-in town.
const TOWN: &str = include_str!("../../../../configs/roads/town.geojson");

/// Largest size of the file.
const FILE_OCTETS_MAX: u64 = 64 << 20;

/// Maximum number of roads of a network.
const ROADS_MAX: usize = 100_000;

/// Roads that meet at junctions.
#[derive(Debug)]
pub(crate) struct RoadNetwork {
    roads: Vec<Road>,
    /// For each junction, the roads that end there: index, and `true` if the first point of the road is there.
    junctions: Vec<Vec<(usize, bool)>>,
}

/// One road between two junctions, driven in both directions.
#[derive(Debug)]
struct Road {
    points: Vec<Position>,
    /// Distance of each point from the first one, in metres.
    distances: Vec<f64>,
    speed_limit: MetresPerSecond,
    /// Junctions at the first and the last point.
    ends: [usize; 2],
}

/// A road and the direction in which it is driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lane {
    road: usize,
    forward: bool,
}

#[derive(Deserialize)]
struct Collection {
    features: Vec<Feature>,
}

#[derive(Deserialize)]
struct Feature {
    #[serde(default)]
    properties: Properties,
    geometry: Geometry,
}

#[derive(Default, Deserialize)]
struct Properties {
    speed_limit_mps: Option<f64>,
}

#[derive(Deserialize)]
struct Geometry {
    r#type: String,
    coordinates: Vec<(f64, f64)>,
}

impl RoadNetwork {
    /// Loads a network from a GeoJSON file, or the built-in town if there is no file.
    pub(crate) fn load(file: Option<&Path>) -> Result<Self, SettingError> {
        let text = match file {
            None => TOWN.to_owned(),
            Some(path) => files::read_text(path, FILE_OCTETS_MAX)
                .map_err(|cause| SettingError::new("roads", format!("cannot read {}: {cause}", path.display())))?,
        };
        Self::parse(&text).map_err(|problem| SettingError::new("roads", problem))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let collection: Collection = serde_json::from_str(text).map_err(|error| format!("not GeoJSON: {error}"))?;
        if collection.features.is_empty() || collection.features.len() > ROADS_MAX {
            return Err(format!("{} roads; expected 1 to {ROADS_MAX}", collection.features.len()));
        }
        let mut network = Self { roads: Vec::new(), junctions: Vec::new() };
        let mut known = BTreeMap::new();
        for (index, feature) in collection.features.into_iter().enumerate() {
            network.add(index, feature, &mut known)?;
        }
        Ok(network)
    }

    fn add(&mut self, index: usize, feature: Feature, known: &mut BTreeMap<(i64, i64), usize>) -> Result<(), String> {
        let Geometry { r#type, coordinates } = feature.geometry;
        let (Some(&first), Some(&last)) = (coordinates.first(), coordinates.last()) else {
            return Err(format!("road {index} has no points"));
        };
        if r#type != "LineString" || coordinates.len() < 2 {
            return Err(format!("road {index} is not a LineString of two or more points"));
        }
        let points: Vec<Position> = coordinates.iter().map(|&(lon, lat)| Position::new(lat, lon)).collect();
        let mut distances = vec![0.0];
        for pair in points.windows(2) {
            distances.push(distances.last().copied().unwrap_or(0.0) + pair[0].distance(pair[1]).value());
        }
        if distances.last().is_none_or(|length| length.is_nan() || *length <= 1.0) {
            return Err(format!("road {index} is not longer than a metre"));
        }
        let speed_limit = feature.properties.speed_limit_mps.unwrap_or(13.9);
        if !(1.0..=70.0).contains(&speed_limit) {
            return Err(format!("road {index}: speed_limit_mps {speed_limit} is not within 1 to 70"));
        }
        let ends = [first, last].map(|point| self.junction(point, known));
        self.junctions[ends[0]].push((index, true));
        self.junctions[ends[1]].push((index, false));
        self.roads.push(Road { points, distances, speed_limit: MetresPerSecond(speed_limit), ends });
        Ok(())
    }

    /// Returns the junction at a point. Ends within about 0.1 m are the same junction.
    fn junction(&mut self, (longitude, latitude): (f64, f64), known: &mut BTreeMap<(i64, i64), usize>) -> usize {
        let key = ((longitude * 1e6).round() as i64, (latitude * 1e6).round() as i64);
        *known.entry(key).or_insert_with(|| {
            self.junctions.push(Vec::new());
            self.junctions.len() - 1
        })
    }

    /// Returns the lane that continues most nearly straight from the end of this one.
    pub(crate) fn straight_on(&self, lane: Lane) -> Lane {
        let turns = self.onward(lane).into_iter().map(|next| (self.turn_angle(lane, next).value(), next));
        turns.min_by(|a, b| a.0.total_cmp(&b.0)).map_or(lane, |(_, next)| next)
    }

    /// Returns the angle between the end of a lane and the start of the next one, 0 to 180 degrees.
    pub(crate) fn turn_angle(&self, from: Lane, to: Lane) -> Degrees {
        Degrees(signed(self.bearing_at_start(to) - self.bearing_at_end(from)).value().abs())
    }

    /// Returns the number of lanes: two for each road.
    pub(crate) fn lane_count(&self) -> usize {
        2 * self.roads.len()
    }

    /// Returns one of the [`Self::lane_count`] lanes.
    pub(crate) fn lane(&self, index: usize) -> Lane {
        Lane { road: index / 2 % self.roads.len(), forward: index.is_multiple_of(2) }
    }

    pub(crate) fn length(&self, lane: Lane) -> Metres {
        Metres(self.roads[lane.road].distances.last().copied().unwrap_or(0.0))
    }

    pub(crate) fn speed_limit(&self, lane: Lane) -> MetresPerSecond {
        self.roads[lane.road].speed_limit
    }

    /// Returns the lanes that continue from the end of this one. Turning back is possible only in a dead end.
    pub(crate) fn onward(&self, lane: Lane) -> Vec<Lane> {
        let road = &self.roads[lane.road];
        let junction = road.ends[usize::from(lane.forward)];
        let all = self.junctions[junction].iter().map(|&(road, starts)| Lane { road, forward: starts });
        let back = Lane { road: lane.road, forward: !lane.forward };
        let onward: Vec<Lane> = all.filter(|next| *next != back).collect();
        if onward.is_empty() { vec![back] } else { onward }
    }

    /// Returns the point in the middle of the road at a distance from the start of the lane.
    pub(crate) fn point(&self, lane: Lane, along: Metres) -> Position {
        let road = &self.roads[lane.road];
        let length = self.length(lane).value();
        let from_first = if lane.forward { along.value() } else { length - along.value() }.clamp(0.0, length);
        let after = road.distances.partition_point(|distance| *distance < from_first).clamp(1, road.points.len() - 1);
        let (start, end) = (road.distances[after - 1], road.distances[after]);
        let part = if end > start { (from_first - start) / (end - start) } else { 0.0 };
        road.points[after - 1].towards(road.points[after], part)
    }

    /// Returns the points of each road, in the middle of the road.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &[Position]> {
        self.roads.iter().map(|road| road.points.as_slice())
    }

    /// Returns the direction of travel at a distance from the start of the lane.
    pub(crate) fn bearing(&self, lane: Lane, along: Metres) -> Degrees {
        let start = along.value().clamp(0.0, (self.length(lane).value() - 1.0).max(0.0));
        self.point(lane, Metres(start)).bearing(self.point(lane, Metres(start + 1.0)))
    }

    /// Returns the direction of travel at the start of the lane.
    pub(crate) fn bearing_at_start(&self, lane: Lane) -> Degrees {
        self.point(lane, Metres(0.0)).bearing(self.point(lane, Metres(5.0)))
    }

    /// Returns the direction of travel at the end of the lane.
    pub(crate) fn bearing_at_end(&self, lane: Lane) -> Degrees {
        let length = self.length(lane);
        self.point(lane, length - Metres(5.0)).bearing(self.point(lane, length))
    }
}

/// Normalises an angle to -180 (exclusive) to 180 degrees.
pub(crate) fn signed(angle: Degrees) -> Degrees {
    let turned = angle.normalised().value();
    Degrees(if turned > 180.0 { turned - 360.0 } else { turned })
}

/// Returns the middle of the right lane, next to a point in the middle of the road.
pub(crate) fn beside(middle: Position, heading: Degrees) -> Position {
    let right = (heading + Degrees(90.0)).radians();
    middle.displaced(LANE_OFFSET * right.sin(), LANE_OFFSET * right.cos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_town_is_one_network_without_dead_ends() {
        let town = RoadNetwork::load(None).unwrap();
        let mut reached = vec![town.lane(0)];
        let mut next = 0;
        while let Some(&lane) = reached.get(next) {
            next += 1;
            for onward in town.onward(lane) {
                assert!(onward.road != lane.road, "a dead end");
                if !reached.contains(&onward) {
                    reached.push(onward);
                }
            }
        }
        assert_eq!(reached.len(), town.lane_count());
    }

    #[test]
    fn a_lane_is_driven_in_both_directions() {
        let text = r#"{"features":[{"geometry":{"type":"LineString","coordinates":[[7.0,45.0],[7.0,45.001],[7.001,45.001]]}}]}"#;
        let network = RoadNetwork::parse(text).unwrap();
        let (there, back) = (network.lane(0), network.lane(1));
        let length = network.length(there);
        assert!((length.value() - 111.2 - 78.6).abs() < 0.5, "{length:?}");
        assert!((network.point(there, Metres(55.6)).latitude.value() - 45.0005).abs() < 1e-6);
        assert_eq!(network.point(back, Metres(0.0)), Position::new(45.001, 7.001));
        assert!((network.bearing_at_start(back).value() - 270.0).abs() < 0.1);
        assert_eq!(network.onward(there), [back]);
    }

    #[test]
    fn invalid_networks_are_rejected() {
        for (text, problem) in [
            ("", "not GeoJSON"),
            (r#"{"features":[]}"#, "0 roads; expected 1 to"),
            (
                r#"{"features":[{"geometry":{"type":"LineString","coordinates":[[7,45]]}}]}"#,
                "road 0 is not a LineString",
            ),
            (
                r#"{"features":[{"geometry":{"type":"LineString","coordinates":[[7,45],[7,45]]}}]}"#,
                "not longer than a metre",
            ),
            (
                r#"{"features":[{"properties":{"speed_limit_mps":-3},"geometry":{"type":"LineString","coordinates":[[7,45],[7,46]]}}]}"#,
                "speed_limit_mps -3",
            ),
        ] {
            let refused = RoadNetwork::parse(text).unwrap_err();
            assert!(refused.contains(problem), "{refused}");
        }
    }
}
