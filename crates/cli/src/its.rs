//! `viaduct its decode CAPTURE`: what is in a capture, message by message.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use serde_json::value::RawValue;
use viaduct_components::capture::{Capture, CapturedFrame};
use viaduct_components::its_station::received_message;
use viaduct_its::{DropReason, Frame, decode_frame};
use viaduct_messages::viaduct::its::AccessLayer;

/// What to do with ETSI ITS packets.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Decode the packets of a capture (pcap or pcapng).
    Decode(Arguments),
}

/// Which capture, and how much of it to print.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The capture: Ethernet frames with GeoNetworking packets.
    capture: PathBuf,
    /// Print each message as one line of JSON on stdout.
    #[arg(long)]
    json_lines: bool,
}

/// What was found. Frames = messages + beacons + location service + dropped.
#[derive(Default)]
struct Summary {
    frames: u64,
    messages: BTreeMap<&'static str, u64>,
    beacons: u64,
    location_service: u64,
    dropped: BTreeMap<&'static str, u64>,
}

pub(crate) fn decode(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut summary = Summary::default();
    let mut damage = None;
    for frame in Capture::open(&arguments.capture)? {
        match frame {
            Ok(frame) => decode_one(&frame, &mut summary, arguments.json_lines.then_some(&mut out))?,
            Err(error) => damage = Some(error),
        }
    }
    if let Err(error) = out.flush() {
        stdout_gone(error)?;
    }
    summary.print();
    // What could be read was printed; the damage is told last, where it is seen.
    damage.map_or(Ok(ExitCode::SUCCESS), |damage| Err(damage.into()))
}

fn decode_one(frame: &CapturedFrame, summary: &mut Summary, out: Option<&mut impl Write>) -> anyhow::Result<()> {
    summary.frames += 1;
    match decode_frame(frame.time, &frame.octets) {
        Ok(Frame::Message(packet)) => {
            *summary.messages.entry(packet.kind.label()).or_default() += 1;
            let Some(out) = out else { return Ok(()) };
            let mut decoded = Vec::new();
            packet.message.write_json(&mut decoded);
            let decoded: &RawValue = serde_json::from_slice(&decoded).context("a decoded message is not JSON")?;
            let mut line = Vec::new();
            received_message(&packet, "", AccessLayer::Replay, 0).write_json(Some(decoded), &mut line)?;
            line.push(b'\n');
            out.write_all(&line).or_else(stdout_gone)
        }
        Ok(Frame::Beacon(_)) => {
            summary.beacons += 1;
            Ok(())
        }
        Ok(Frame::LocationService(_)) => {
            summary.location_service += 1;
            Ok(())
        }
        Err(reason) => {
            *summary.dropped.entry(DropReason::label(reason)).or_default() += 1;
            Ok(())
        }
    }
}

/// A reader that has seen enough (`| head`) ends the program without a complaint.
pub(crate) fn stdout_gone(error: std::io::Error) -> anyhow::Result<()> {
    if error.kind() == std::io::ErrorKind::BrokenPipe {
        std::process::exit(0);
    }
    Err(error).context("cannot write to stdout")
}

impl Summary {
    #[expect(clippy::print_stderr, reason = "the summary goes beside the messages")]
    fn print(&self) {
        let messages: u64 = self.messages.values().sum();
        let dropped: u64 = self.dropped.values().sum();
        eprintln!("{} frames: {messages} messages, {} beacons, {dropped} dropped", self.frames, self.beacons);
        if self.location_service > 0 {
            eprintln!("  {:<24} {:>8}", "location service", self.location_service);
        }
        for (kind, count) in &self.messages {
            eprintln!("  {kind:<24} {count:>8}");
        }
        for (reason, count) in &self.dropped {
            eprintln!("  dropped: {reason:<15} {count:>8}");
        }
    }
}
