//! The movement of the own station: the common input of the services.

use std::time::Duration;

use viaduct_units::{Degrees, DegreesPerSecond, Metres, MetresPerSecond, MetresPerSecondSquared, Now, Position, Tai};

use crate::facilities::ConfidenceEllipse;

/// Maximum age of a state from which a message is made. The value is not from the standards, which only require current
/// data.
pub const STATE_AGE_MAX: Duration = Duration::from_secs(2);

/// The movement of the own station at one time, in SI units. Unknown values are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct VehicleState {
    /// Time of the values.
    pub time: Tai,
    /// Reference position: the middle of the front bumper of a vehicle, on the ground.
    pub position: Option<Position>,
    /// Accuracy of the position.
    pub position_confidence: Option<ConfidenceEllipse>,
    /// Altitude above the WGS 84 ellipsoid.
    pub altitude: Option<Metres>,
    /// Accuracy of the altitude.
    pub altitude_confidence: Option<Metres>,
    /// Speed along the vehicle's axis, negative backwards.
    pub speed: Option<MetresPerSecond>,
    /// Accuracy of the speed.
    pub speed_confidence: Option<MetresPerSecond>,
    /// Heading of the movement, clockwise from north.
    pub heading: Option<Degrees>,
    /// Accuracy of the heading.
    pub heading_confidence: Option<Degrees>,
    /// Acceleration along the vehicle's axis.
    pub longitudinal_acceleration: Option<MetresPerSecondSquared>,
    /// Acceleration across the vehicle's axis, positive to the left.
    pub lateral_acceleration: Option<MetresPerSecondSquared>,
    /// Rate of turn, positive to the left.
    pub yaw_rate: Option<DegreesPerSecond>,
    /// `ExteriorLights`: eight bits, the most significant one is the low beam.
    pub exterior_lights: u8,
}

impl VehicleState {
    /// Returns `true` if the state is recent enough for a message.
    #[must_use]
    pub fn is_current(&self, now: Now) -> bool {
        now.tai.since(self.time) <= STATE_AGE_MAX
    }
}
