//! The sender of commands.

use std::{collections::VecDeque, time::Duration};

use bytes::Bytes;
use viaduct_units::Mono;

use super::Command;
use crate::{
    limits::COMMANDS_PER_DATAGRAM,
    micros,
    wire::{Commands, NumberedCommand},
};

/// Settings of a sender of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderSettings {
    /// Commands per second, 50 to 100. The default is 50.
    pub rate_hz: u32,
    /// Age of the driver's input beyond which no commands are sent, 20 ms to 1 s. The default is 100 ms.
    pub input_timeout: Duration,
}

impl Default for SenderSettings {
    fn default() -> Self {
        Self { rate_hz: 50, input_timeout: Duration::from_millis(100) }
    }
}

/// An invalid setting of a sender of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SenderSettingsError {
    /// The rate is outside the limits.
    #[error("commands are sent 50 to 100 times a second, not {0}")]
    Rate(u32),
    /// The time-out is outside the limits.
    #[error("the time-out of the input must be 20 ms to 1 s, not {0:?}")]
    InputTimeout(Duration),
}

impl SenderSettings {
    fn check(&self) -> Result<(), SenderSettingsError> {
        if !(50..=100).contains(&self.rate_hz) {
            return Err(SenderSettingsError::Rate(self.rate_hz));
        }
        if !(Duration::from_millis(20)..=Duration::from_secs(1)).contains(&self.input_timeout) {
            return Err(SenderSettingsError::InputTimeout(self.input_timeout));
        }
        Ok(())
    }
}

/// Counters of a sender of commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounters {
    /// Datagrams sent.
    pub sent: u64,
    /// Times at which a command was due but the input was too old, or the driver had no grant.
    pub withheld: u64,
}

/// A sender of commands.
///
/// It sends only while the driver has a grant and the input is recent: the vehicle treats missing commands as a lost
/// driver.
#[derive(Debug)]
pub struct Sender {
    settings: SenderSettings,
    /// Epoch of the vehicle and number of the grant.
    grant: Option<(u32, u32)>,
    /// Newest input, and its time.
    input: Option<(Mono, Command)>,
    /// Latest commands, newest first.
    history: VecDeque<NumberedCommand>,
    sequence: u32,
    due: Mono,
    counters: SenderCounters,
}

impl Sender {
    /// Returns a sender without a grant.
    ///
    /// # Errors
    /// The invalid setting.
    pub fn new(settings: SenderSettings) -> Result<Self, SenderSettingsError> {
        settings.check()?;
        Ok(Self {
            settings,
            grant: None,
            input: None,
            history: VecDeque::with_capacity(COMMANDS_PER_DATAGRAM),
            sequence: 0,
            due: Mono::default(),
            counters: SenderCounters::default(),
        })
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> &SenderCounters {
        &self.counters
    }

    /// Returns the sequence number of the latest command.
    #[must_use]
    pub const fn sequence(&self) -> u32 {
        self.sequence
    }

    /// Sets the epoch of the vehicle and the number of the grant, or `None` if the driver has no grant. Commands of an
    /// earlier grant are not repeated, and its input is not used.
    pub fn set_grant(&mut self, grant: Option<(u32, u32)>) {
        if self.grant != grant {
            self.grant = grant;
            self.input = None;
            self.history.clear();
        }
    }

    /// Sets the driver's input of the given time. An input older than the present one is ignored. A change of the
    /// dead-man control or an emergency stop is sent at once.
    pub fn set_input(&mut self, now: Mono, sampled: Mono, command: Command) {
        let newest = self.input.as_ref();
        if newest.is_some_and(|(time, _)| *time > sampled) {
            return;
        }
        let urgent = newest.is_none_or(|(_, before)| {
            before.dead_man != command.dead_man || (command.emergency_stop && !before.emergency_stop)
        });
        if urgent {
            self.due = self.due.min(now);
        }
        self.input = Some((sampled.min(now), command));
    }

    /// Returns the next datagram, or `None` if none is due.
    pub fn poll_transmit(&mut self, now: Mono, epoch: u32) -> Option<Bytes> {
        if self.due > now {
            return None;
        }
        let interval = Duration::from_secs(1) / self.settings.rate_hz.max(1);
        // The schedule does not drift, and does not catch up after a pause.
        self.due = self.due.plus(interval);
        if self.due <= now {
            self.due = now.plus(interval);
        }
        let recent = self.input.filter(|(sampled, _)| now.since(*sampled) <= self.settings.input_timeout);
        let (Some((vehicle_epoch, grant)), Some((sampled, command))) = (self.grant, recent) else {
            self.counters.withheld += u64::from(self.grant.is_some());
            return None;
        };
        self.sequence = self.sequence.wrapping_add(1);
        let sampled_us = micros::of_clock(sampled);
        self.history.truncate(COMMANDS_PER_DATAGRAM - 1);
        self.history.push_front(NumberedCommand { sequence: self.sequence, sampled_us, command });
        self.counters.sent += 1;
        Some(Commands { vehicle_epoch, grant, commands: self.history.iter().copied().collect() }.write(epoch))
    }

    /// Returns the time of the next command, or `None` without a grant.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Mono> {
        self.grant.map(|_| self.due)
    }
}
