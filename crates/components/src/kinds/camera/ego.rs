//! The vehicle of a synthetic camera: its newest state, moved on to the time of the picture.

use std::time::Duration;

use viaduct_messages::viaduct::vehicle::VehicleState;
use viaduct_units::{Degrees, Metres, Mono, Position};

use super::scene::VehiclePose;

/// Longest time for which the movement of the newest state is continued.
const CONTINUED_MAX: Duration = Duration::from_millis(300);
/// Latitude up to which positions are drawn, in degrees.
const LATITUDE_MAX: f64 = 85.0;

/// The newest state of a vehicle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ego {
    pose: VehiclePose,
    speed_mps: f64,
    /// Rate of turn in degrees per second, positive to the left.
    yaw_rate_dps: f64,
    at: Mono,
}

impl Ego {
    /// Returns the vehicle of a state that arrived at `now`, or `None` if it has no valid position. A missing heading is that of
    /// the state before.
    pub(super) fn from_state(state: &VehicleState, now: Mono, before: Option<&Self>) -> Option<Self> {
        let position = state.position.as_ref()?;
        let heading = state.heading_deg.or_else(|| before.map(|before| before.pose.heading.value())).unwrap_or(0.0);
        let (speed_mps, yaw_rate_dps) = (state.speed_mps.unwrap_or(0.0), state.yaw_rate_dps.unwrap_or(0.0));
        let numbers = [position.latitude_deg, position.longitude_deg, heading, speed_mps, yaw_rate_dps];
        let valid = numbers.iter().all(|number| number.is_finite())
            && position.latitude_deg.abs() <= LATITUDE_MAX
            && position.longitude_deg.abs() <= 180.0;
        let position = Position::new(position.latitude_deg, position.longitude_deg);
        let pose = VehiclePose { position, heading: Degrees(heading).normalised() };
        valid.then_some(Self { pose, speed_mps, yaw_rate_dps, at: now })
    }

    /// Returns the pose at a later time.
    pub(super) fn pose_at(&self, now: Mono) -> VehiclePose {
        let seconds = now.since(self.at).min(CONTINUED_MAX).as_secs_f64();
        // A heading counts clockwise, a yaw rate counter-clockwise.
        let turned = Degrees(-self.yaw_rate_dps.clamp(-180.0, 180.0) * seconds);
        let middle = (self.pose.heading + turned * 0.5).radians();
        let distance = self.speed_mps.clamp(-100.0, 100.0) * seconds;
        VehiclePose {
            position: self.pose.position.displaced(Metres(distance * middle.sin()), Metres(distance * middle.cos())),
            heading: (self.pose.heading + turned).normalised(),
        }
    }
}

#[cfg(test)]
mod tests {
    use viaduct_messages::viaduct::its::Position as PositionMessage;

    use super::*;

    const NOW: Mono = Mono(Duration::from_secs(5));

    fn state(latitude_deg: f64, heading_deg: Option<f64>) -> VehicleState {
        let position = Some(PositionMessage { latitude_deg, longitude_deg: 7.5, altitude_m: None });
        VehicleState { position, heading_deg, speed_mps: Some(10.0), ..VehicleState::default() }
    }

    #[test]
    fn a_vehicle_moves_on_for_a_short_time() {
        let ego = Ego::from_state(&state(45.0, Some(90.0)), NOW, None).unwrap();
        let start = ego.pose_at(NOW);
        let moved =
            |millis| start.position.distance(ego.pose_at(NOW.plus(Duration::from_millis(millis))).position).value();
        assert!((moved(100) - 1.0).abs() < 0.01 && (moved(5000) - 3.0).abs() < 0.01);
        let turning = VehicleState { yaw_rate_dps: Some(20.0), ..state(45.0, Some(90.0)) };
        let ego = Ego::from_state(&turning, NOW, None).unwrap();
        assert!((ego.pose_at(NOW.plus(Duration::from_millis(100))).heading.value() - 88.0).abs() < 1e-6);
    }

    #[test]
    fn states_without_a_valid_position_are_refused() {
        assert!(Ego::from_state(&VehicleState::default(), NOW, None).is_none());
        for wrong in [f64::NAN, 86.0, f64::INFINITY] {
            assert!(Ego::from_state(&state(wrong, None), NOW, None).is_none());
        }
        assert!(Ego::from_state(&state(45.0, Some(f64::NAN)), NOW, None).is_none());
    }

    #[test]
    fn a_missing_heading_is_kept() {
        let first = Ego::from_state(&state(45.0, Some(30.0)), NOW, None).unwrap();
        let second = Ego::from_state(&state(45.0, None), NOW, Some(&first)).unwrap();
        assert_eq!(second.pose_at(NOW).heading, Degrees(30.0));
    }
}
