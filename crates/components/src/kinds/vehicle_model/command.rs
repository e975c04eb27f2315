//! Acceptance of drive commands, and their supervision: without a command, the vehicle stops.

use std::time::Duration;

use viaduct_messages::its::tai_of;
use viaduct_messages::viaduct::vehicle::drive_command::Movement as WantedMovement;
use viaduct_messages::viaduct::vehicle::{DriveCommand, Gear as WantedGear};
use viaduct_units::{Mono, Now};

use crate::motion::bicycle::{Control, Gear, Movement};

/// Largest time by which a command may be ahead of the node's clock.
const AHEAD_MAX: Duration = Duration::from_millis(100);

/// The reason for which a command is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A number is not finite, or a wanted speed is negative.
    Range,
    /// The gear is unknown.
    Gear,
    /// Neither an acceleration nor a speed is given.
    NoMovement,
    /// A later command was accepted before.
    Outdated,
    /// The command is older than the timeout.
    Stale,
    /// The time of the command lies in the future.
    Future,
}

impl Refusal {
    /// All reasons.
    pub(crate) const ALL: [Self; 6] =
        [Self::Range, Self::Gear, Self::NoMovement, Self::Outdated, Self::Stale, Self::Future];

    /// Returns the name in counters.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Range => "range",
            Self::Gear => "gear",
            Self::NoMovement => "no_movement",
            Self::Outdated => "outdated",
            Self::Stale => "stale",
            Self::Future => "in_future",
        }
    }
}

/// An accepted command.
#[derive(Clone, Copy, Debug)]
struct Accepted {
    control: Control,
    hazard_lights: bool,
    sequence: u32,
    /// Time at which the command was decided.
    decided: Mono,
}

/// The commands of a vehicle.
#[derive(Debug)]
pub(crate) struct Commands {
    timeout: Duration,
    /// Deceleration without a command in m/s2.
    braking_mps2: f64,
    latest: Option<Accepted>,
}

impl Commands {
    /// Returns the input of a vehicle that brakes if the newest command is older than `timeout`.
    pub(crate) const fn new(timeout: Duration, braking_mps2: f64) -> Self {
        Self { timeout, braking_mps2, latest: None }
    }

    /// Accepts a command, or returns the reason why it has no effect.
    pub(crate) fn accept(&mut self, command: &DriveCommand, now: Now) -> Result<(), Refusal> {
        let control = control_of(command)?;
        let decided = self.decided(command, now)?;
        if let Some(latest) = self.current(now.mono)
            && command.sequence.wrapping_sub(latest.sequence).cast_signed() <= 0
        {
            return Err(Refusal::Outdated);
        }
        let hazard_lights = command.hazard_lights;
        self.latest = Some(Accepted { control, hazard_lights, sequence: command.sequence, decided });
        Ok(())
    }

    /// Returns the time of a command on the monotonic clock.
    fn decided(&self, command: &DriveCommand, now: Now) -> Result<Mono, Refusal> {
        let time = command.time.as_ref().map_or(now.tai, tai_of);
        let age = now.tai.since(time);
        if time.since(now.tai) > AHEAD_MAX {
            return Err(Refusal::Future);
        }
        if age > self.timeout {
            return Err(Refusal::Stale);
        }
        Ok(Mono(now.mono.0.saturating_sub(age)))
    }

    /// Returns the newest command if it is not older than the timeout.
    fn current(&self, now: Mono) -> Option<&Accepted> {
        self.latest.as_ref().filter(|latest| now.since(latest.decided) <= self.timeout)
    }

    /// Returns the input of the model: the newest command, or braking with the steering angle of the last one.
    pub(crate) fn control(&self, now: Mono) -> Control {
        if let Some(latest) = self.current(now) {
            return latest.control;
        }
        let movement = Movement::Acceleration(-self.braking_mps2);
        let last = self.latest.map(|latest| latest.control);
        last.map_or(Control { steering_rad: 0.0, movement, gear: Gear::Park }, |last| Control { movement, ..last })
    }

    /// Returns `true` if the hazard lights are on: by command, or because the vehicle stops without one.
    pub(crate) fn hazard_lights(&self, now: Mono) -> bool {
        match self.current(now) {
            Some(latest) => latest.hazard_lights,
            None => self.latest.is_some(),
        }
    }

    /// Returns `true` if a command was accepted before and none is current.
    pub(crate) fn timed_out(&self, now: Mono) -> bool {
        self.latest.is_some() && self.current(now).is_none()
    }
}

fn control_of(command: &DriveCommand) -> Result<Control, Refusal> {
    let movement = match command.movement.ok_or(Refusal::NoMovement)? {
        WantedMovement::AccelerationMps2(acceleration) if acceleration.is_finite() => {
            Movement::Acceleration(acceleration)
        }
        WantedMovement::SpeedMps(speed) if speed.is_finite() && speed >= 0.0 => Movement::Speed(speed),
        _ => return Err(Refusal::Range),
    };
    if !command.steering_angle_rad.is_finite() {
        return Err(Refusal::Range);
    }
    let gear = match command.gear() {
        WantedGear::Unknown => return Err(Refusal::Gear),
        WantedGear::Park => Gear::Park,
        WantedGear::Reverse => Gear::Reverse,
        WantedGear::Neutral => Gear::Neutral,
        WantedGear::Drive => Gear::Drive,
    };
    Ok(Control { steering_rad: command.steering_angle_rad, movement, gear })
}

#[cfg(test)]
mod tests {
    use viaduct_messages::its::timestamp;
    use viaduct_units::Tai;

    use super::*;

    const TIMEOUT: Duration = Duration::from_millis(300);

    fn start() -> Now {
        Now { mono: Mono(Duration::from_secs(50)), tai: Tai::from_nanos(1_800_000_000_000_000_000) }
    }

    fn command(sequence: u32, acceleration: f64) -> DriveCommand {
        DriveCommand {
            sequence,
            movement: Some(WantedMovement::AccelerationMps2(acceleration)),
            gear: WantedGear::Drive.into(),
            ..DriveCommand::default()
        }
    }

    fn commands() -> Commands {
        Commands::new(TIMEOUT, 4.0)
    }

    #[test]
    fn the_newest_command_holds_until_the_timeout() {
        let mut commands = commands();
        assert_eq!(commands.control(start().mono).gear, Gear::Park);
        assert!(!commands.hazard_lights(start().mono), "a parked vehicle has no hazard lights");
        commands.accept(&DriveCommand { steering_angle_rad: 0.2, ..command(7, 1.5) }, start()).unwrap();
        let last = start().mono.plus(TIMEOUT);
        assert_eq!(commands.control(last).movement, Movement::Acceleration(1.5));
        assert!(!commands.timed_out(last) && !commands.hazard_lights(last));
        let later = last.plus(Duration::from_millis(1));
        let stopping = Control { steering_rad: 0.2, movement: Movement::Acceleration(-4.0), gear: Gear::Drive };
        assert_eq!(commands.control(later), stopping);
        assert!(commands.timed_out(later) && commands.hazard_lights(later));
    }

    #[test]
    fn a_command_that_waited_holds_shorter() {
        let mut commands = commands();
        let waited = Duration::from_millis(250);
        let late = DriveCommand { time: Some(timestamp(start().tai)), ..command(1, 1.0) };
        commands.accept(&late, start().plus(waited)).unwrap();
        assert!(!commands.timed_out(start().mono.plus(TIMEOUT)));
        assert!(commands.timed_out(start().mono.plus(TIMEOUT + Duration::from_millis(1))));
    }

    #[test]
    fn wrong_commands_are_refused_with_a_reason() {
        let mut commands = commands();
        let good = command(1, 1.0);
        let at = |offset: i64| Some(timestamp(Tai::from_nanos(start().tai.nanos() + offset * 1_000_000)));
        let speed = |speed| Some(WantedMovement::SpeedMps(speed));
        for (wrong, reason) in [
            (DriveCommand { steering_angle_rad: f64::NAN, ..good.clone() }, Refusal::Range),
            (DriveCommand { movement: speed(f64::INFINITY), ..good.clone() }, Refusal::Range),
            (DriveCommand { movement: speed(-1.0), ..good.clone() }, Refusal::Range),
            (command(1, f64::NAN), Refusal::Range),
            (DriveCommand { movement: None, ..good.clone() }, Refusal::NoMovement),
            (DriveCommand { gear: 0, ..good.clone() }, Refusal::Gear),
            (DriveCommand { gear: 77, ..good.clone() }, Refusal::Gear),
            (DriveCommand { time: at(-301), ..good.clone() }, Refusal::Stale),
            (DriveCommand { time: at(101), ..good.clone() }, Refusal::Future),
        ] {
            assert_eq!(commands.accept(&wrong, start()), Err(reason), "{wrong:?}");
        }
        assert_eq!(commands.accept(&DriveCommand { time: at(-300), ..good }, start()), Ok(()));
    }

    #[test]
    fn an_older_command_never_replaces_a_newer_one() {
        let mut commands = commands();
        assert_eq!(commands.accept(&command(u32::MAX, 1.0), start()), Ok(()));
        assert_eq!(commands.accept(&command(u32::MAX, 2.0), start()), Err(Refusal::Outdated));
        assert_eq!(commands.accept(&command(u32::MAX - 1, 2.0), start()), Err(Refusal::Outdated));
        assert_eq!(commands.accept(&command(0, 3.0), start()), Ok(()), "0 follows the largest number");
        assert_eq!(commands.control(start().mono).movement, Movement::Acceleration(3.0));
        let later = start().plus(TIMEOUT + Duration::from_millis(1));
        assert_eq!(commands.accept(&command(u32::MAX, 1.0), later), Ok(()), "the source has restarted");
    }
}
