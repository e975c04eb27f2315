//! Commands of the driver.

use bytes::{BufMut, Bytes};

use super::{COMMANDS, HEADER_OCTETS, ParseError, Reader, begin};
use crate::{
    commands::{Command, Gear},
    limits::COMMANDS_PER_DATAGRAM,
};

/// Octets before the list of commands.
const FIXED_OCTETS: usize = HEADER_OCTETS + 9;
/// Octets of a command.
const COMMAND_OCTETS: usize = 15;
/// Number on the wire of a share of 1.
const SHARE_ONE: f64 = 10_000.0;
const FLAG_DEAD_MAN: u8 = 0b100;
const FLAG_EMERGENCY_STOP: u8 = 0b1000;

/// The latest commands of the driver, newest first.
///
/// | octets | field |
/// |---|---|
/// | 5 | common header |
/// | 4 | epoch of the vehicle that has granted control |
/// | 4 | number of the grant |
/// | 1 | number of commands, 1 to 3; then for each command, newest first |
/// | 4 | - sequence number |
/// | 4 | - time of the driver's input by the desk's clock, in microseconds |
/// | 2 | - steering in 0.0001 of the largest angle, -10 000 to 10 000, positive to the left |
/// | 2 | - accelerator in 0.0001, 0 to 10 000 |
/// | 2 | - brake in 0.0001, 0 to 10 000 |
/// | 1 | - bits 0 and 1: gear (P, R, N, D); bit 2: dead-man control held; bit 3: emergency stop; other bits 0 |
#[derive(Clone, Debug, PartialEq)]
pub struct Commands {
    /// Epoch of the vehicle that has granted control.
    pub vehicle_epoch: u32,
    /// Number of the grant.
    pub grant: u32,
    /// Commands, newest first, 1 to [`COMMANDS_PER_DATAGRAM`].
    pub commands: Vec<NumberedCommand>,
}

/// A command with its number and time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NumberedCommand {
    /// Sequence number.
    pub sequence: u32,
    /// Time of the driver's input by the desk's clock, in microseconds.
    pub sampled_us: u32,
    /// The command. Its shares can be outside their ranges.
    pub command: Command,
}

impl Commands {
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let (vehicle_epoch, grant) = (reader.u32()?, reader.u32()?);
        let count = usize::from(reader.u8()?);
        if !(1..=COMMANDS_PER_DATAGRAM).contains(&count) {
            return Err(ParseError::Field("number of commands"));
        }
        let commands = (0..count).map(|_| NumberedCommand::read(reader)).collect::<Result<_, _>>()?;
        Ok(Self { vehicle_epoch, grant, commands })
    }

    pub(crate) fn write(&self, epoch: u32) -> Bytes {
        let commands = self.commands.get(..COMMANDS_PER_DATAGRAM).unwrap_or(&self.commands);
        let mut octets = begin(COMMANDS, epoch, FIXED_OCTETS + COMMAND_OCTETS * commands.len());
        octets.put_u32(self.vehicle_epoch);
        octets.put_u32(self.grant);
        octets.put_u8(commands.len() as u8);
        commands.iter().for_each(|command| command.write(&mut octets));
        octets.freeze()
    }
}

impl NumberedCommand {
    fn read(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let (sequence, sampled_us) = (reader.u32()?, reader.u32()?);
        let steering = reader.u16()?.cast_signed();
        let (accelerator, brake, flags) = (reader.u16()?, reader.u16()?, reader.u8()?);
        if flags & !(FLAG_DEAD_MAN | FLAG_EMERGENCY_STOP | 0b11) != 0 {
            return Err(ParseError::Field("flags of the command"));
        }
        let gear = match flags & 0b11 {
            0 => Gear::Park,
            1 => Gear::Reverse,
            2 => Gear::Neutral,
            _ => Gear::Drive,
        };
        let command = Command {
            steering: f64::from(steering) / SHARE_ONE,
            accelerator: f64::from(accelerator) / SHARE_ONE,
            brake: f64::from(brake) / SHARE_ONE,
            gear,
            dead_man: flags & FLAG_DEAD_MAN != 0,
            emergency_stop: flags & FLAG_EMERGENCY_STOP != 0,
        };
        Ok(Self { sequence, sampled_us, command })
    }

    fn write(&self, octets: &mut impl BufMut) {
        let command = &self.command;
        octets.put_u32(self.sequence);
        octets.put_u32(self.sampled_us);
        // A conversion from a float saturates, and yields 0 for NaN.
        octets.put_i16((command.steering * SHARE_ONE).round() as i16);
        octets.put_u16((command.accelerator * SHARE_ONE).round() as u16);
        octets.put_u16((command.brake * SHARE_ONE).round() as u16);
        let gear = match command.gear {
            Gear::Park => 0,
            Gear::Reverse => 1,
            Gear::Neutral => 2,
            Gear::Drive => 3,
        };
        let dead_man = if command.dead_man { FLAG_DEAD_MAN } else { 0 };
        let emergency_stop = if command.emergency_stop { FLAG_EMERGENCY_STOP } else { 0 };
        octets.put_u8(gear | dead_man | emergency_stop);
    }
}
