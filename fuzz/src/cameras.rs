//! Files of cameras, marks in pictures, and commands of a vehicle.

use std::time::Duration;

use prost::Message as _;
use viaduct_components::kinds::{
    camera::{FrameSegment, Mark, fuzzing as camera},
    vehicle_model::fuzzing::FuzzedVehicle,
};
use viaduct_messages::viaduct::vehicle::{DriveCommand, Gear, drive_command::Movement};
use viaduct_units::{Mono, Now, Tai};

/// Height of the pictures with marks among the seeds, in pixels.
const HEIGHT: usize = 16;

/// Checks a file of a camera; see [`viaduct_components::kinds::camera::fuzzing::jpeg_file`].
pub fn jpeg_file(octets: &[u8]) {
    camera::jpeg_file(octets);
}

/// Checks a picture with a mark; see [`viaduct_components::kinds::camera::fuzzing::mark`].
pub fn mark(octets: &[u8]) {
    camera::mark(octets);
}

/// Checks a sequence of commands: the vehicle stays within its limits. Each command follows an octet with its length and an octet
/// with the time since the previous one in units of 8 ms.
pub fn drive_command(octets: &[u8]) {
    let mut vehicle = FuzzedVehicle::default();
    let mut now = Now { mono: Mono(Duration::from_secs(100)), tai: Tai::from_nanos(1_800_000_000_000_000_000) };
    let mut rest = octets;
    while let Some((&[length, time], after)) = rest.split_first_chunk::<2>() {
        let (command, after) = after.split_at(usize::from(length).min(after.len()));
        rest = after;
        let elapsed = Duration::from_millis(8 * u64::from(time));
        now = now.plus(elapsed);
        let command = DriveCommand::decode(command).unwrap_or_default();
        let _ = vehicle.apply(&command, now, elapsed);
    }
}

pub(crate) fn files() -> Vec<Vec<u8>> {
    let file = camera::file();
    assert!(FrameSegment::read(&file).is_some());
    vec![file]
}

/// Returns the samples of pictures with a mark.
pub(crate) fn marks() -> Vec<Vec<u8>> {
    let marks = [Mark { camera: 0, frame: 1, time_us: 0 }, Mark { camera: 3, frame: u32::MAX, time_us: (1 << 48) - 1 }];
    marks.map(|mark| camera::marked(mark, HEIGHT)).into()
}

/// Returns sequences of commands.
pub(crate) fn commands() -> Vec<Vec<u8>> {
    let command = |sequence: u32, movement: Movement, gear: Gear| DriveCommand {
        sequence,
        steering_angle_rad: f64::from(sequence) * 0.05,
        movement: Some(movement),
        gear: gear.into(),
        ..DriveCommand::default()
    };
    let faster = |sequence| command(sequence, Movement::AccelerationMps2(2.0), Gear::Drive);
    let back = |sequence| command(sequence, Movement::SpeedMps(3.0), Gear::Reverse);
    let record = |command: DriveCommand| {
        let octets = command.encode_to_vec();
        [&[octets.len() as u8, 5], &octets[..]].concat()
    };
    vec![(1..20).map(faster).flat_map(record).collect(), (1..20).map(back).flat_map(record).collect()]
}
