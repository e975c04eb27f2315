//! Driven paths (`Path`, `PathHistory` of TS 102 894-2) and expected paths (`PathPredicted`).

use std::time::Duration;

use viaduct_etsi::cdd::{
    self, DeltaAltitude, DeltaLatitude, DeltaLongitude, DeltaReferencePosition, DeltaTimeTenthOfSecond, PathDeltaTime,
    PathDeltaTimeChoice, PathPointPredicted,
};
use viaduct_units::{Degrees, Metres, Position};

use super::scale;

/// Maximum number of points of a `Path` or a `PathHistory`.
pub(super) const PATH_POINTS_MAX: usize = 40;
/// Maximum number of points of a `PathPredicted` without its extension.
pub(super) const PREDICTED_POINTS_MAX: usize = 16;

/// A point of a driven path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathPoint {
    /// Position.
    pub position: Position,
    /// Altitude; sent if it and the altitude of the point before are known.
    pub altitude: Option<Metres>,
    /// Time from this point to the one before (for the first one: to the generation), up to 655.35 s.
    pub travel_time: Option<Duration>,
}

/// A point of an expected path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredictedPoint {
    /// Position.
    pub position: Position,
    /// Time from the generation to this point, up to 12.7 s.
    pub time: Option<Duration>,
}

/// Returns each point relative to the one before, the first one relative to the reference position (TS 102 894-2,
/// `Path`). Without a reference position there are no points.
pub(super) fn history(
    points: &[PathPoint],
    reference: Option<Position>,
    altitude: Option<Metres>,
    limit: usize,
) -> Vec<cdd::PathPoint> {
    let Some(reference) = reference else {
        return Vec::new();
    };
    let before = std::iter::once((reference, altitude)).chain(points.iter().map(|p| (p.position, p.altitude)));
    points.iter().zip(before).take(limit).map(|(point, before)| path_point(point, before)).collect()
}

fn path_point(point: &PathPoint, before: (Position, Option<Metres>)) -> cdd::PathPoint {
    cdd::PathPoint {
        path_position: delta_position((point.position, point.altitude), before),
        path_delta_time: point.travel_time.map(path_delta_time),
    }
}

/// Converts a time to units of 10 ms.
pub(super) fn path_delta_time(time: Duration) -> PathDeltaTime {
    PathDeltaTime(scale::scaled_u16(time.as_secs_f64(), 100.0, 1, u16::MAX).into())
}

/// Returns the first position relative to the second.
pub(super) fn delta_position(
    (here, altitude): (Position, Option<Metres>),
    (before, altitude_before): (Position, Option<Metres>),
) -> DeltaReferencePosition {
    let climb = altitude.zip(altitude_before).map(|(here, before)| here - before);
    DeltaReferencePosition {
        delta_latitude: DeltaLatitude(delta(here.latitude, before.latitude)),
        delta_longitude: DeltaLongitude(delta(here.longitude, before.longitude)),
        delta_altitude: climb.map_or(DeltaAltitude::UNAVAILABLE, |climb| {
            DeltaAltitude(scale::scaled_i16(climb.value(), 100.0, -12_700, 12_799))
        }),
    }
}

/// Returns the difference of two angles in tenths of a microdegree.
fn delta(here: Degrees, before: Degrees) -> i32 {
    scale::scaled((here - before).value(), 1e7, -131_071, 131_071)
}

/// Returns each point relative to the point before, the first one relative to the reference position (TS 102 894-2,
/// `PathPredicted`). Returns `None` if there is no point or no reference position.
pub(super) fn predicted(points: &[PredictedPoint], reference: Option<Position>) -> Option<cdd::PathPredicted> {
    let before = std::iter::once(reference?).chain(points.iter().map(|point| point.position));
    let relative = points.iter().zip(before).take(PREDICTED_POINTS_MAX).map(|(point, before)| {
        let mut relative = PathPointPredicted::new(
            DeltaLatitude(delta(point.position.latitude, before.latitude)),
            DeltaLongitude(delta(point.position.longitude, before.longitude)),
        );
        relative.path_delta_time = point.time.map(|time| {
            let tenths = scale::scaled_u8(time.as_secs_f64(), 10.0, 0, 126);
            PathDeltaTimeChoice::DeltaTimeHighPrecision(DeltaTimeTenthOfSecond(tenths))
        });
        relative
    });
    let relative: Vec<_> = relative.collect();
    (!relative.is_empty()).then_some(cdd::PathPredicted(relative))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_without_a_reference_is_empty() {
        let point =
            PathPoint { position: Position::new(45.0, 7.0), altitude: None, travel_time: Some(Duration::from_secs(1)) };
        assert!(history(&[point], None, None, 40).is_empty());
        assert_eq!(history(&[point; 50], Some(Position::new(45.0, 7.0)), None, 23).len(), 23);
        assert_eq!(predicted(&[], Some(Position::new(45.0, 7.0))), None);
    }

    #[test]
    fn predicted_points_follow_each_other() {
        let at = |latitude: f64, tenths: u64| PredictedPoint {
            position: Position::new(latitude, 7.0),
            time: Some(Duration::from_millis(tenths * 100)),
        };
        let path = predicted(&[at(45.000_1, 5), at(45.000_3, 2000)], Some(Position::new(45.0, 7.0))).unwrap();
        let deltas: Vec<i32> = path.0.iter().map(|point| point.delta_latitude.0).collect();
        assert_eq!(deltas, [1000, 2000]);
        let times: Vec<_> = path.0.iter().map(|point| point.path_delta_time).collect();
        let tenths = |value| Some(PathDeltaTimeChoice::DeltaTimeHighPrecision(DeltaTimeTenthOfSecond(value)));
        assert_eq!(times, [tenths(5), tenths(126)]);
    }
}
