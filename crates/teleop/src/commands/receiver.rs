//! The receiver of commands.

use std::time::Duration;

use viaduct_units::Mono;

use super::Command;
use crate::{
    clock::{Age, InFuture},
    reason::{count, counted},
    wire::{Commands, NumberedCommand},
};

reasons! {
    /// The reason why a command is refused.
    CommandDropReason {
        /// The command is for another grant, or no operator has a grant.
        Grant => "grant",
        /// The command has arrived before.
        Replayed => "replayed",
        /// A later command has arrived before.
        Reordered => "reordered",
        /// The command is too old.
        Stale => "stale",
        /// The time of the command is in the future.
        Future => "future",
        /// The age is unknown, because the clocks are not synchronised yet.
        Clock => "clock",
        /// A share is outside its range.
        Range => "range",
    }
}

/// Limits of commands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CommandLimits {
    /// Largest age of a command, 50 ms to 2 s. The default is 300 ms.
    pub age_max: Duration,
    /// Largest change of the steering share in a second, 0.1 to 100. The default is 4: from the middle to the end in
    /// 0.25 s. A faster change is slowed down.
    pub steering_per_second: f64,
    /// Largest increase of the accelerator share in a second, 0.1 to 100. The default is 4.
    pub accelerator_per_second: f64,
}

impl Default for CommandLimits {
    fn default() -> Self {
        Self { age_max: Duration::from_millis(300), steering_per_second: 4.0, accelerator_per_second: 4.0 }
    }
}

/// Time for which the first command of a grant may change steering and accelerator, in microseconds: that between two
/// commands at 50 Hz.
const FIRST_INTERVAL_US: i32 = 20_000;
/// Longest time between two commands that counts for the permitted change. After a gap, the change is as small as after this time.
const INTERVAL_US_MAX: i32 = 100_000;

/// A command that was accepted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AcceptedCommand {
    /// Time of arrival.
    pub arrival: Mono,
    /// Sequence number.
    pub sequence: u32,
    /// Age at the time of arrival.
    pub age: Age,
    /// The command, with changes slowed down to the limits.
    pub command: Command,
    /// Time of the input by the desk's clock, in microseconds.
    sampled_us: u32,
}

/// Counters of a receiver of commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverCounters {
    /// Datagrams with commands.
    pub received: u64,
    /// Datagrams whose newest command was accepted.
    pub accepted: u64,
    /// Commands whose own datagram was late or lost, and that arrived as a repetition.
    pub repeated: u64,
    /// Commands of which a share changed too fast and was slowed down.
    pub slowed: u64,
    /// Datagrams dropped, by [`CommandDropReason`].
    dropped: [u64; CommandDropReason::ALL.len()],
}

impl ReceiverCounters {
    /// Returns the number of datagrams dropped for a reason.
    #[must_use]
    pub fn dropped(&self, reason: CommandDropReason) -> u64 {
        counted(&self.dropped, reason as usize)
    }

    /// Returns the number of all datagrams dropped.
    #[must_use]
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().sum()
    }
}

/// A receiver of commands.
#[derive(Debug)]
pub struct Receiver {
    limits: CommandLimits,
    /// Largest sequence number since the grant.
    newest: Option<u32>,
    /// Latest accepted command since the grant.
    accepted: Option<AcceptedCommand>,
    /// Steering and accelerator of the latest command with the dead-man control held, of any grant.
    applied: Applied,
    counters: ReceiverCounters,
}

/// Shares that reach the actuators.
#[derive(Clone, Copy, Debug, Default)]
struct Applied {
    steering: f64,
    accelerator: f64,
}

impl Receiver {
    /// Returns a receiver without commands.
    pub(crate) fn new(limits: CommandLimits) -> Self {
        Self {
            limits,
            newest: None,
            accepted: None,
            applied: Applied::default(),
            counters: ReceiverCounters::default(),
        }
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> &ReceiverCounters {
        &self.counters
    }

    /// Returns the latest accepted command of the present grant.
    #[must_use]
    pub const fn accepted(&self) -> Option<&AcceptedCommand> {
        self.accepted.as_ref()
    }

    /// Begins with a new grant. Commands of an earlier one have no effect, but the steering begins at its last value.
    pub(crate) fn restart(&mut self) {
        (self.newest, self.accepted) = (None, None);
        self.release_accelerator();
    }

    /// Notes that the actuators no longer follow the accelerator, so that it begins at zero.
    pub(crate) const fn release_accelerator(&mut self) {
        self.applied.accelerator = 0.0;
    }

    /// Processes a datagram with commands. `grant` is the epoch of the vehicle and the number of the present grant;
    /// `age` returns the age of a time by the desk's clock.
    ///
    /// # Errors
    /// The reason why the newest command is refused.
    pub(crate) fn handle(
        &mut self,
        now: Mono,
        datagram: &Commands,
        grant: Option<(u32, u32)>,
        age: impl Fn(u32) -> Option<Result<Age, InFuture>>,
    ) -> Result<AcceptedCommand, CommandDropReason> {
        self.counters.received += 1;
        let result = self.check(now, datagram, grant, age);
        match result {
            Ok(_) => self.counters.accepted += 1,
            Err(reason) => count(&mut self.counters.dropped, reason as usize),
        }
        result
    }

    fn check(
        &mut self,
        now: Mono,
        datagram: &Commands,
        grant: Option<(u32, u32)>,
        age: impl Fn(u32) -> Option<Result<Age, InFuture>>,
    ) -> Result<AcceptedCommand, CommandDropReason> {
        let newest = datagram.commands.first().ok_or(CommandDropReason::Range)?;
        if grant != Some((datagram.vehicle_epoch, datagram.grant)) {
            return Err(CommandDropReason::Grant);
        }
        self.advance(newest.sequence)?;
        if !newest.command.is_within_ranges() {
            return Err(CommandDropReason::Range);
        }
        let age = age(newest.sampled_us).ok_or(CommandDropReason::Clock)?.map_err(|_| CommandDropReason::Future)?;
        if age.at_most() > self.limits.age_max {
            return Err(CommandDropReason::Stale);
        }
        let command = self.slowed(newest);
        let accepted =
            AcceptedCommand { arrival: now, sequence: newest.sequence, age, command, sampled_us: newest.sampled_us };
        self.accepted = Some(accepted);
        Ok(accepted)
    }

    /// Makes a sequence number the newest one.
    fn advance(&mut self, sequence: u32) -> Result<(), CommandDropReason> {
        if let Some(newest) = self.newest {
            let ahead = sequence.wrapping_sub(newest).cast_signed();
            if ahead <= 0 {
                return Err(if ahead == 0 { CommandDropReason::Replayed } else { CommandDropReason::Reordered });
            }
            self.counters.repeated += u64::from(ahead.unsigned_abs() - 1).min(2);
        }
        self.newest = Some(sequence);
        Ok(())
    }

    /// Returns the command with changes slowed down to the limits, relative to what the actuators have. The brake is never
    /// slowed down. A command without the dead-man control has no steering and no accelerator, so it is not slowed down.
    fn slowed(&mut self, newest: &NumberedCommand) -> Command {
        let mut command = newest.command;
        if !command.dead_man {
            self.release_accelerator();
            return command;
        }
        let elapsed_us = self.accepted.map_or(FIRST_INTERVAL_US, |before| {
            newest.sampled_us.wrapping_sub(before.sampled_us).cast_signed().clamp(0, INTERVAL_US_MAX)
        });
        let elapsed = f64::from(elapsed_us) / 1e6;
        let turn = self.limits.steering_per_second * elapsed;
        let Applied { steering, accelerator } = self.applied;
        command.steering = command.steering.clamp(steering - turn, steering + turn);
        command.accelerator = command.accelerator.min(accelerator + self.limits.accelerator_per_second * elapsed);
        self.applied = Applied { steering: command.steering, accelerator: command.accelerator };
        self.counters.slowed += u64::from(command != newest.command);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::Gear;

    const GRANT: Option<(u32, u32)> = Some((7, 1));

    fn datagram(sequence: u32, sampled_ms: u32, command: Command) -> Commands {
        let commands = vec![NumberedCommand { sequence, sampled_us: sampled_ms * 1000, command }];
        Commands { vehicle_epoch: 7, grant: 1, commands }
    }

    /// Processes a command at a time; the clocks are equal.
    fn handle(receiver: &mut Receiver, now_ms: u32, datagram: &Commands) -> Result<f64, CommandDropReason> {
        let now = Mono(Duration::from_millis(now_ms.into()));
        let age = |sampled_us: u32| {
            let age_us = (now_ms * 1000).checked_sub(sampled_us).ok_or(InFuture);
            Some(age_us.map(|us| Age { estimate: Duration::from_micros(us.into()), uncertainty: Duration::ZERO }))
        };
        receiver.handle(now, datagram, GRANT, age).map(|accepted| accepted.command.steering)
    }

    fn steering(steering: f64) -> Command {
        Command { steering, gear: Gear::Drive, dead_man: true, ..Command::default() }
    }

    #[test]
    fn only_the_newest_command_is_accepted() {
        let mut receiver = Receiver::new(CommandLimits::default());
        assert_eq!(handle(&mut receiver, 20, &datagram(5, 10, steering(0.05))), Ok(0.05));
        assert_eq!(handle(&mut receiver, 30, &datagram(5, 10, steering(0.05))), Err(CommandDropReason::Replayed));
        assert_eq!(handle(&mut receiver, 40, &datagram(4, 5, steering(0.05))), Err(CommandDropReason::Reordered));
        assert_eq!(handle(&mut receiver, 90, &datagram(8, 80, steering(0.2))), Ok(0.2));
        assert_eq!((receiver.counters().repeated, receiver.counters().dropped_total()), (2, 2));
    }

    #[test]
    fn stale_future_foreign_and_implausible_commands_are_refused() {
        let mut receiver = Receiver::new(CommandLimits::default());
        assert_eq!(handle(&mut receiver, 400, &datagram(1, 99, steering(0.0))), Err(CommandDropReason::Stale));
        assert_eq!(handle(&mut receiver, 400, &datagram(2, 401, steering(0.0))), Err(CommandDropReason::Future));
        assert_eq!(handle(&mut receiver, 400, &datagram(3, 400, steering(1.1))), Err(CommandDropReason::Range));
        assert_eq!(handle(&mut receiver, 400, &datagram(4, 400, steering(f64::NAN))), Err(CommandDropReason::Range));
        let foreign = Commands { grant: 2, ..datagram(5, 400, steering(0.0)) };
        assert_eq!(handle(&mut receiver, 400, &foreign), Err(CommandDropReason::Grant));
        assert_eq!(receiver.accepted(), None);
    }

    #[test]
    fn fast_changes_are_slowed_down_and_the_brake_is_not() {
        let mut receiver = Receiver::new(CommandLimits::default());
        handle(&mut receiver, 100, &datagram(1, 100, steering(0.0))).unwrap();
        let full = Command { brake: 1.0, accelerator: 1.0, ..steering(-1.0) };
        assert_eq!(handle(&mut receiver, 150, &datagram(2, 150, full)), Ok(-0.2));
        let accepted = receiver.accepted().unwrap().command;
        assert_eq!((accepted.accelerator, accepted.brake, receiver.counters().slowed), (0.2, 1.0, 1));
        // 4 per second for at most 100 ms, after a gap of 250 ms.
        let right = handle(&mut receiver, 400, &datagram(3, 400, steering(1.0))).unwrap();
        assert!((right - 0.2).abs() < 1e-9, "{right}");
    }
}
