//! `viaduct its decode CAPTURE`: what is in a capture, message by message, and why the rest is dropped.
//! `viaduct its send MESSAGE` is in [`send`].

mod frame;
mod send;

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use viaduct_components::capture::{Capture, CapturedFrame};
use viaduct_its::{DropReason, Frame, decode_frame};

pub(crate) use send::run as send;

use crate::output::{print_note, stdout_failed};

/// What to do with ETSI ITS packets.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Decode the packets of a capture (pcap or pcapng), or one frame given in hexadecimal.
    Decode(Arguments),
    /// Send one message from JSON, for trying things.
    Send(Box<send::Arguments>),
}

/// Which capture, and how much of it to print.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The capture: Ethernet frames with GeoNetworking packets. Or one such frame as hexadecimal digits, of 14 octets or
    /// more; the exit code is 1 where it is dropped.
    #[arg(value_name = "CAPTURE|HEX")]
    capture: PathBuf,
    /// Print each message as one line of JSON on stdout.
    #[arg(long)]
    json_lines: bool,
    /// Print a line on stderr for each frame that is dropped: its number in the capture, and why.
    #[arg(long)]
    drops: bool,
}

/// What was found. Frames = messages + beacons + location service + dropped.
#[derive(Default)]
struct Summary {
    frames: u64,
    messages: BTreeMap<&'static str, u64>,
    beacons: u64,
    location_service: u64,
    dropped: BTreeMap<DropReason, Drops>,
}

/// Frames that were dropped for one reason.
struct Drops {
    count: u64,
    /// Number of the first of them, counted from 1 as Wireshark does.
    first: u64,
}

pub(crate) fn decode(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let no_file = arguments.capture.to_str().filter(|_| !arguments.capture.exists());
    if let Some(octets) = no_file.and_then(frame::frame_from_hex) {
        let reading = frame::reading(&octets)?;
        std::io::stdout().write_all(&reading.line).or_else(stdout_failed)?;
        return Ok(if reading.is_dropped { ExitCode::FAILURE } else { ExitCode::SUCCESS });
    }
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut summary = Summary::default();
    let mut damage = None;
    let capture = match Capture::open(&arguments.capture) {
        Err(error) if no_file.is_some_and(frame::is_hexadecimal) => {
            bail!("{error}; nor is it a frame, which has {} octets or more, two digits each", frame::OCTETS_MIN)
        }
        capture => capture?,
    };
    for frame in capture {
        match frame {
            Ok(frame) => {
                let dropped = decode_one(&frame, &mut summary, arguments.json_lines.then_some(&mut out))?;
                if let Some(reason) = dropped.filter(|_| arguments.drops) {
                    say_dropped(summary.frames, reason);
                }
            }
            Err(error) => damage = Some(error),
        }
    }
    if let Err(error) = out.flush() {
        stdout_failed(error)?;
    }
    summary.print();
    // What could be read was printed; the damage is told last, where it is seen.
    damage.map_or(Ok(ExitCode::SUCCESS), |damage| Err(damage.into()))
}

/// Decodes a frame and counts it; why it is dropped, where it is.
fn decode_one(
    frame: &CapturedFrame,
    summary: &mut Summary,
    out: Option<&mut impl Write>,
) -> anyhow::Result<Option<DropReason>> {
    summary.frames += 1;
    match decode_frame(frame.time, &frame.octets) {
        Ok(Frame::Message(packet)) => {
            *summary.messages.entry(packet.kind.label()).or_default() += 1;
            let Some(out) = out else { return Ok(None) };
            out.write_all(&frame::json_line(&packet)?).or_else(stdout_failed)?;
        }
        Ok(Frame::Beacon(_)) => summary.beacons += 1,
        Ok(Frame::LocationService(_)) => summary.location_service += 1,
        Err(reason) => {
            summary.count_drop(reason);
            return Ok(Some(reason));
        }
    }
    Ok(None)
}

fn say_dropped(number: u64, reason: DropReason) {
    print_note(format_args!("frame {number}: dropped: {reason}"));
}

impl Summary {
    fn count_drop(&mut self, reason: DropReason) {
        let first = self.frames;
        self.dropped.entry(reason).or_insert(Drops { count: 0, first }).count += 1;
    }

    fn print(&self) {
        let messages: u64 = self.messages.values().sum();
        let dropped: u64 = self.dropped.values().map(|drops| drops.count).sum();
        let Self { frames, beacons, location_service, .. } = self;
        print_note(format_args!(
            "{frames} frames: {messages} messages, {beacons} beacons, {location_service} location service, \
             {dropped} dropped"
        ));
        for (kind, count) in &self.messages {
            print_note(format_args!("  {kind:<24} {count:>8}"));
        }
        for (reason, drops) in &self.dropped {
            print_note(format_args!("  dropped: {:<15} {:>8}", reason.label(), drops.count));
            print_note(format_args!("    first is frame {}. {}", drops.first, reason.explain()));
        }
    }
}
