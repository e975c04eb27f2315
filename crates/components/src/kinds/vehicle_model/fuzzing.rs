//! Entry point for the fuzz target: commands, applied to a vehicle without a node.

use std::time::Duration;

use viaduct_messages::viaduct::vehicle::DriveCommand;
use viaduct_units::{Degrees, Now, Position};

use super::AbilitySettings;
use super::command::{Commands, Refusal};
use crate::motion::bicycle::Bicycle;

/// A vehicle and its commands.
pub struct FuzzedVehicle {
    model: Bicycle,
    commands: Commands,
}

impl Default for FuzzedVehicle {
    fn default() -> Self {
        let settings = AbilitySettings::default().bicycle();
        Self {
            model: Bicycle::new(settings, Position::new(45.0, 7.5), Degrees(10.0)),
            commands: Commands::new(Duration::from_millis(300), 4.0),
        }
    }
}

impl FuzzedVehicle {
    /// Applies a command and moves the vehicle. Returns the name of the reason if the command is refused.
    ///
    /// # Panics
    /// Panics if the vehicle leaves its limits.
    pub fn apply(&mut self, command: &DriveCommand, now: Now, elapsed: Duration) -> Option<&'static str> {
        let refused = self.commands.accept(command, now).err().map(Refusal::name);
        self.model.step(elapsed, &self.commands.control(now.mono));
        let (speed, position) = (self.model.speed().value(), self.model.front());
        assert!((-5.0..=25.0).contains(&speed), "{speed}");
        assert!(self.model.steering_rad().abs() <= 0.55);
        assert!(position.latitude.value().is_finite() && position.longitude.value().is_finite());
        assert!((0.0..360.0).contains(&self.model.heading().value()));
        refused
    }
}
