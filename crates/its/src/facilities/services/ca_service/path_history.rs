//! Path history: the driven path as a small number of points.
//!
//! A point is kept if a straight line from the point before would leave the driven path by more than [`DEVIATION_MAX`].
//! This is the "concise" representation of SAE J2945/1; the CAM standards leave the choice to the implementation. The
//! limits are not from a standard.

use std::{collections::VecDeque, time::Duration};

use viaduct_units::{Metres, Position, Tai};

use crate::facilities::cam::PathPoint;

/// Maximum number of points of a CAM's path history (TS 103 900, annex A: 0 to 23).
pub const PATH_POINTS_MAX: usize = 23;
/// Maximum length of the path history; older points are removed.
const LENGTH_MAX: Metres = Metres(300.0);
/// Maximum distance between the driven path and the path history.
const DEVIATION_MAX: Metres = Metres(0.5);
/// Maximum distance between two kept points; far below the 1.4 km that fit `DeltaLatitude`.
const CHORD_MAX: Metres = Metres(100.0);
/// Minimum distance of a sample from the one before; a nearer sample is ignored.
const STEP_MIN: Metres = Metres(1.0);
/// Maximum distance of a sample from the one before; a longer step is a jump of the positioning receiver, not part of
/// the path.
const STEP_MAX: Metres = Metres(200.0);
/// Maximum number of samples between two kept points; at most `CHORD_MAX` / `STEP_MIN`.
const SAMPLES_MAX: usize = 100;
/// Longest time that fits `PathDeltaTime`.
const TRAVEL_TIME_MAX: Duration = Duration::from_millis(655_350);

/// Position of the vehicle at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) position: Position,
    pub(super) altitude: Option<Metres>,
    pub(super) time: Tai,
}

/// Path of the own vehicle.
#[derive(Debug, Default)]
pub(super) struct PathHistory {
    /// Kept points, the newest first, at most [`PATH_POINTS_MAX`].
    kept: VecDeque<Sample>,
    /// Samples since the newest kept point, the oldest first, at most [`SAMPLES_MAX`].
    samples: Vec<Sample>,
}

impl PathHistory {
    /// Adds a sample.
    pub(super) fn push(&mut self, sample: Sample) {
        let Some(last) = self.samples.last().or(self.kept.front()).copied() else {
            self.keep(sample);
            return;
        };
        let step = last.position.distance(sample.position);
        if step > STEP_MAX || step.value().is_nan() {
            self.clear();
            self.keep(sample);
        } else if step >= STEP_MIN {
            if self.needs_point_before(sample) {
                self.keep(last);
            }
            self.samples.push(sample);
        }
    }

    /// Returns the path behind the vehicle, the newest point first. Each travel time leads to the point before, the
    /// first one to `to`.
    pub(super) fn points(&self, to: Tai) -> Vec<PathPoint> {
        let mut later = to;
        self.kept
            .iter()
            .map(|sample| {
                let travelled = later.since(sample.time);
                later = sample.time;
                PathPoint {
                    position: sample.position,
                    altitude: sample.altitude,
                    travel_time: (travelled <= TRAVEL_TIME_MAX).then_some(travelled),
                }
            })
            .collect()
    }

    fn clear(&mut self) {
        self.kept.clear();
        self.samples.clear();
    }

    /// Returns `true` if the straight line from the newest kept point to the sample deviates too much from the driven
    /// path.
    fn needs_point_before(&self, sample: Sample) -> bool {
        let Some(start) = self.kept.front() else {
            return false;
        };
        let too_long = start.position.distance(sample.position) > CHORD_MAX;
        let leaves = |between: &Sample| deviation(start.position, sample.position, between.position) > DEVIATION_MAX;
        too_long || self.samples.len() >= SAMPLES_MAX || self.samples.iter().any(leaves)
    }

    fn keep(&mut self, sample: Sample) {
        self.kept.push_front(sample);
        self.samples.clear();
        self.kept.truncate(PATH_POINTS_MAX);
        while self.length() > LENGTH_MAX {
            self.kept.pop_back();
        }
    }

    fn length(&self) -> Metres {
        let pairs = self.kept.iter().zip(self.kept.iter().skip(1));
        pairs.fold(Metres(0.0), |sum, (a, b)| sum + a.position.distance(b.position))
    }
}

/// Returns the distance of a point from the straight line between two others.
fn deviation(start: Position, end: Position, point: Position) -> Metres {
    let (east, north) = start.offset_to(end);
    let (point_east, point_north) = start.offset_to(point);
    let length = east.value().hypot(north.value());
    if length <= f64::EPSILON {
        return start.distance(point);
    }
    Metres((east.value() * point_north.value() - north.value() * point_east.value()).abs() / length)
}

#[cfg(test)]
mod tests {
    use viaduct_units::TimestampIts;

    use super::*;

    fn sample(east: f64, north: f64, second: u64) -> Sample {
        let position = Position::new(45.0, 7.6).displaced(Metres(east), Metres(north));
        Sample { position, altitude: None, time: TimestampIts(650_000_000_000 + second * 1000).tai() }
    }

    #[test]
    fn a_straight_road_needs_few_points_and_a_bend_more() {
        let mut straight = PathHistory::default();
        (0..20_u32).for_each(|i| straight.push(sample(0.0, 10.0 * f64::from(i), i.into())));
        assert_eq!(straight.kept.len(), 2, "one each 100 m, and the start");

        let mut bend = PathHistory::default();
        for i in 0..20_u32 {
            let angle = f64::from(i) * 0.1;
            bend.push(sample(50.0 * angle.cos(), 50.0 * angle.sin(), i.into()));
        }
        assert!(bend.kept.len() > 6, "{}", bend.kept.len());
        assert!(bend.kept.len() <= PATH_POINTS_MAX);
    }

    #[test]
    fn the_driven_path_stays_near_the_path_history() {
        let mut history = PathHistory::default();
        let samples: Vec<Sample> =
            (0..25_u32).map(|i| sample(8.0 * f64::from(i), 12.0 * (f64::from(i) * 0.3).sin(), i.into())).collect();
        samples.iter().for_each(|sample| history.push(*sample));
        let points: Vec<Position> = history.kept.iter().map(|kept| kept.position).collect();
        let oldest = history.kept.back().unwrap().time;
        let newest = history.kept.front().unwrap().time;
        for driven in samples.iter().filter(|driven| driven.time >= oldest && driven.time <= newest) {
            let nearest = points
                .windows(2)
                .map(|pair| deviation(pair[0], pair[1], driven.position).value())
                .fold(f64::INFINITY, f64::min);
            assert!(nearest <= DEVIATION_MAX.value() + 1e-6, "{nearest}");
        }
    }

    #[test]
    fn the_path_history_has_at_most_300_m_and_23_points() {
        let mut history = PathHistory::default();
        (0..400_u32).for_each(|i| {
            let zigzag = if i % 2 == 0 { 0.0 } else { 6.0 };
            history.push(sample(zigzag, 3.0 * f64::from(i), i.into()));
        });
        assert!(history.length() <= LENGTH_MAX);
        assert_eq!(history.points(sample(0.0, 0.0, 400).time).len(), PATH_POINTS_MAX);
    }

    #[test]
    fn a_standing_vehicle_adds_nothing_and_a_jump_starts_anew() {
        let mut history = PathHistory::default();
        (0..50_u32).for_each(|i| history.push(sample(0.0, 0.01 * f64::from(i), i.into())));
        assert_eq!((history.kept.len(), history.samples.len()), (1, 0));
        history.push(sample(0.0, 5000.0, 60));
        assert_eq!(history.kept.len(), 1);
        assert_eq!(history.kept.front().map(|kept| kept.time), Some(sample(0.0, 0.0, 60).time));
    }

    #[test]
    fn an_invalid_position_is_not_kept() {
        let mut history = PathHistory::default();
        history.push(sample(f64::NAN, 0.0, 0));
        (1..40_u32).for_each(|i| history.push(sample(0.0, 10.0 * f64::from(i), i.into())));
        assert!(history.kept.len() > 1);
        assert!(history.kept.iter().all(|kept| !kept.position.longitude.value().is_nan()));
    }

    #[test]
    fn times_lead_from_point_to_point_and_none_is_longer_than_its_field() {
        let mut history = PathHistory::default();
        for (north, second) in [(0.0, 0), (90.0, 9), (180.0, 1000), (200.0, 1002)] {
            history.push(sample(0.0, north, second));
        }
        let times: Vec<_> = history.points(sample(0.0, 0.0, 1003).time).iter().map(|point| point.travel_time).collect();
        assert_eq!(times, [Some(Duration::from_secs(3)), None, Some(Duration::from_secs(9))]);
    }
}
