//! What a station knows of its own movement: the common input of the services.

use std::time::Duration;

use viaduct_units::{Degrees, DegreesPerSecond, Metres, MetresPerSecond, MetresPerSecondSquared, Now, Position, Tai};

use crate::facilities::ConfidenceEllipse;

/// A state older than this describes a place where the station no longer is, so no message is made from it. Our own bound:
/// the standards only say that the data shall be current.
pub const STATE_AGE_MAX: Duration = Duration::from_secs(2);

/// The movement of the own station at one moment, in SI units. What is not known is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct VehicleState {
    /// When the values were true.
    pub time: Tai,
    /// Reference position: the middle of the front bumper of a vehicle, on the ground.
    pub position: Option<Position>,
    /// How accurate the position is.
    pub position_confidence: Option<ConfidenceEllipse>,
    /// Altitude above the WGS 84 ellipsoid.
    pub altitude: Option<Metres>,
    /// How accurate the altitude is.
    pub altitude_confidence: Option<Metres>,
    /// Speed along the vehicle's axis, negative backwards.
    pub speed: Option<MetresPerSecond>,
    /// How accurate the speed is.
    pub speed_confidence: Option<MetresPerSecond>,
    /// Heading of the movement, clockwise from north.
    pub heading: Option<Degrees>,
    /// How accurate the heading is.
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
    /// Whether a message may still be made from the state.
    #[must_use]
    pub fn is_current(&self, now: Now) -> bool {
        now.tai.since(self.time) <= STATE_AGE_MAX
    }
}
