//! Changes of movement that trigger a message: the thresholds that the CAM, CPM and VAM rules share.

use viaduct_units::{Degrees, Metres, MetresPerSecond, Position};

use super::VehicleState;

/// Change of position that triggers a message: more than 4 m (EN 302 637-2, 6.1.3; TS 103 324, table F.1; TS 103 300-3,
/// table 17).
pub(crate) const POSITION_CHANGE: Metres = Metres(4.0);
/// Change of speed that triggers a message: more than 0.5 m/s (the same tables).
pub(crate) const SPEED_CHANGE: MetresPerSecond = MetresPerSecond(0.5);
/// Change of direction that triggers a message: more than 4 degrees (the same tables).
pub(crate) const DIRECTION_CHANGE: Degrees = Degrees(4.0);

/// The values that are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Motion {
    pub(crate) position: Option<Position>,
    pub(crate) speed: Option<MetresPerSecond>,
    /// Direction of the movement.
    pub(crate) heading: Option<Degrees>,
}

/// The value that has changed: the first one in the order of EN 302 637-2, 6.1.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Heading,
    Position,
    Speed,
}

impl Motion {
    /// Returns the first value that has changed since `before`. A value that is missing in one of both has not changed.
    pub(crate) fn change_since(&self, before: &Self) -> Option<Change> {
        if differs(self.heading, before.heading, |a, b| angle_between(a, b) > DIRECTION_CHANGE) {
            Some(Change::Heading)
        } else if differs(self.position, before.position, |a, b| a.distance(b) > POSITION_CHANGE) {
            Some(Change::Position)
        } else if differs(self.speed, before.speed, |a, b| (a - b).value().abs() > SPEED_CHANGE.value()) {
            Some(Change::Speed)
        } else {
            None
        }
    }
}

impl From<&VehicleState> for Motion {
    fn from(state: &VehicleState) -> Self {
        Self { position: state.position, speed: state.speed, heading: state.heading }
    }
}

fn differs<T>(now: Option<T>, before: Option<T>, enough: impl Fn(T, T) -> bool) -> bool {
    now.zip(before).is_some_and(|(now, before)| enough(now, before))
}

/// Returns the smaller angle between two directions, 0 to 180 degrees.
pub(crate) fn angle_between(a: Degrees, b: Degrees) -> Degrees {
    let turn = (a - b).normalised().value();
    Degrees(turn.min(360.0 - turn))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(north_m: f64, speed: f64, heading: f64) -> Motion {
        Motion {
            position: Some(Position::new(45.0, 7.6).displaced(Metres(0.0), Metres(north_m))),
            speed: Some(MetresPerSecond(speed)),
            heading: Some(Degrees(heading)),
        }
    }

    #[test]
    fn each_value_has_its_threshold() {
        let before = at(0.0, 10.0, 1.0);
        for (now, expected) in [
            (at(3.99, 10.5, 357.0), None),
            (at(4.01, 10.5, 357.0), Some(Change::Position)),
            (at(3.99, 10.51, 357.0), Some(Change::Speed)),
            (at(3.99, 9.49, 357.0), Some(Change::Speed)),
            (at(3.99, 10.5, 356.9), Some(Change::Heading)),
            (at(9.0, 20.0, 90.0), Some(Change::Heading)),
        ] {
            assert_eq!(now.change_since(&before), expected, "{now:?}");
        }
    }

    #[test]
    fn an_unknown_value_has_not_changed() {
        assert_eq!(at(9.0, 20.0, 90.0).change_since(&Motion::default()), None);
        assert_eq!(Motion::default().change_since(&at(9.0, 20.0, 90.0)), None);
    }

    #[test]
    fn the_angle_between_directions_takes_the_short_way() {
        for (a, b, expected) in [(359.0, 1.0, 2.0), (10.0, 350.0, 20.0), (0.0, 180.0, 180.0), (90.0, 90.0, 0.0)] {
            assert_eq!(angle_between(Degrees(a), Degrees(b)), Degrees(expected));
        }
    }
}
