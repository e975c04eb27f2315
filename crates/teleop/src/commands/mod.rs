//! Commands of the driver, from the desk to the vehicle.
//!
//! [`Sender`] sends the newest input at a fixed rate; each datagram repeats the two commands before it. [`Receiver`]
//! accepts the newest command only: it refuses what is replayed, reordered, stale, or outside the ranges.

mod receiver;
mod sender;

pub use receiver::{AcceptedCommand, CommandDropReason, CommandLimits, Receiver, ReceiverCounters};
pub use sender::{Sender, SenderCounters, SenderSettings, SenderSettingsError};

/// The driver's input.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Command {
    /// Share of the largest steering angle, -1 to 1, positive to the left.
    pub steering: f64,
    /// Share of the largest acceleration, 0 to 1.
    pub accelerator: f64,
    /// Share of the largest deceleration, 0 to 1.
    pub brake: f64,
    /// Wanted gear.
    pub gear: Gear,
    /// `true` while the driver holds the dead-man control.
    pub dead_man: bool,
    /// `true` if the driver wants an emergency stop.
    pub emergency_stop: bool,
}

impl Command {
    /// Returns `true` if all shares are within their ranges.
    #[must_use]
    pub fn is_within_ranges(&self) -> bool {
        let share = 0.0..=1.0;
        (-1.0..=1.0).contains(&self.steering) && share.contains(&self.accelerator) && share.contains(&self.brake)
    }
}

/// A gear.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gear {
    /// Park: the vehicle cannot roll.
    #[default]
    Park,
    /// Reverse.
    Reverse,
    /// Neutral.
    Neutral,
    /// Drive: forward.
    Drive,
}

impl Gear {
    /// Returns 1 for forward, -1 for reverse, and 0 for gears without traction.
    #[must_use]
    pub const fn direction(self) -> f64 {
        match self {
            Self::Drive => 1.0,
            Self::Reverse => -1.0,
            Self::Park | Self::Neutral => 0.0,
        }
    }
}
