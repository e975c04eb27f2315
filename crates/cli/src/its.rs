//! `viaduct its decode CAPTURE` prints the messages of a capture and the reasons of drops.
//! `viaduct its send MESSAGE` is in [`mod@send`].

mod frame;
mod line;
mod send;

use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead as _, BufReader, BufWriter, Read as _, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use viaduct_components::capture::{Capture, CapturedFrame, SkipReason};
use viaduct_its::{Acceptance, DropReason, Frame, SecurityPolicy, decode_frame_with, explain_drop};

pub(crate) use send::run as send;

use crate::output::{print_note, stdout_failed};

/// Path of stdin.
const STDIN: &str = "-";

/// Longest text of a frame in hexadecimal, in bytes.
const HEX_BYTES_MAX: u64 = 1 << 20;

/// Commands for ETSI ITS packets.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Decode the packets of a capture (pcap or pcapng), or one frame in hexadecimal, from a file, the command line or stdin.
    Decode(Arguments),
    /// Send one message from JSON.
    Send(Box<send::Arguments>),
}

/// Arguments of `its decode`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The capture: pcap or pcapng, also compressed with gzip, with Ethernet, IEEE 802.11, radiotap or Linux cooked frames.
    /// Or one Ethernet frame as hexadecimal digits, 14 octets or more; the exit code is 1 if it is dropped. `-` reads either of
    /// them from stdin.
    #[arg(value_name = "CAPTURE|HEX|-")]
    capture: PathBuf,
    /// Print each message as one line of JSON on stdout.
    #[arg(long)]
    json_lines: bool,
    /// Read signed packets too, without verifying their signatures. Their messages are marked as `unverified` and name the digest
    /// of the signer's certificate. Otherwise signed packets are dropped.
    #[arg(long)]
    unverified: bool,
    /// Read packets of GeoNetworking version 0 too, which some roadside units still send.
    #[arg(long)]
    any_version: bool,
    /// Print a line on stderr for each dropped frame: its number in the capture and the reason.
    #[arg(long)]
    drops: bool,
}

impl Arguments {
    const fn acceptance(&self) -> Acceptance {
        let security = if self.unverified { SecurityPolicy::Unverified } else { SecurityPolicy::None };
        Acceptance { security, version_0: self.any_version }
    }
}

/// Counts of a capture. Frames = messages + beacons + location service + dropped.
#[derive(Default)]
struct Summary {
    frames: u64,
    messages: BTreeMap<&'static str, u64>,
    beacons: u64,
    location_service: u64,
    dropped: BTreeMap<Dropped, Drops>,
}

/// Reason of a drop.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Dropped {
    /// The record of the capture has no Ethernet frame.
    Record(SkipReason),
    /// A station drops the frame.
    Frame(DropReason),
}

/// Frames that were dropped for one reason.
struct Drops {
    count: u64,
    /// Number of the first of them in the capture, from 1 as Wireshark counts.
    first: u64,
    /// The explanation of the first of them.
    explanation: String,
}

pub(crate) fn decode(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if arguments.capture == Path::new(STDIN) {
        return decode_stdin(arguments);
    }
    let no_file = arguments.capture.to_str().filter(|_| !arguments.capture.exists());
    if let Some(octets) = no_file.and_then(frame::frame_from_hex) {
        return decode_frame(&octets, arguments);
    }
    let capture = match Capture::open(&arguments.capture) {
        Err(error) if no_file.is_some_and(frame::is_hexadecimal) => {
            bail!("{error}; {}", frame::too_short())
        }
        capture => capture?,
    };
    decode_capture(capture, arguments)
}

/// Decodes a capture or a frame in hexadecimal from stdin.
fn decode_stdin(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut stdin = BufReader::new(std::io::stdin());
    // A capture starts with octets that are not text. It is decoded while it arrives.
    let start = stdin.fill_buf().context("stdin cannot be read")?;
    if !str::from_utf8(start).is_ok_and(frame::is_hexadecimal) {
        return decode_capture(Capture::from_reader(Path::new("stdin"), stdin)?, arguments);
    }
    let mut text = String::new();
    stdin.take(HEX_BYTES_MAX).read_to_string(&mut text).context("stdin cannot be read")?;
    match frame::frame_from_hex(&text) {
        Some(octets) => decode_frame(&octets, arguments),
        None => bail!("stdin: {}", frame::too_short()),
    }
}

fn decode_frame(octets: &[u8], arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let decoded = frame::decode(octets, arguments.acceptance())?;
    std::io::stdout().write_all(&decoded.line).or_else(stdout_failed)?;
    Ok(if decoded.is_dropped { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn decode_capture(capture: Capture, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut summary = Summary::default();
    let mut damage = None;
    for frame in capture {
        match frame {
            Ok(frame) => {
                let dropped =
                    decode_one(&frame, arguments.acceptance(), &mut summary, arguments.json_lines.then_some(&mut out))?;
                if let Some(reason) = dropped.filter(|_| arguments.drops) {
                    print_drop(&frame, reason);
                }
            }
            // Nothing was read: the error is the only output.
            Err(error) if summary.frames == 0 => return Err(error.into()),
            Err(error) => damage = Some(error),
        }
    }
    if let Err(error) = out.flush() {
        stdout_failed(error)?;
    }
    summary.print();
    // The error is printed last, below the counts of the frames before it.
    damage.map_or(Ok(ExitCode::SUCCESS), |damage| Err(damage.into()))
}

/// Decodes and counts a frame. Returns the reason if it is dropped.
fn decode_one(
    captured: &CapturedFrame,
    acceptance: Acceptance,
    summary: &mut Summary,
    out: Option<&mut impl Write>,
) -> anyhow::Result<Option<Dropped>> {
    summary.frames += 1;
    let read = match &captured.octets {
        Ok(octets) => decode_frame_with(captured.time, octets, acceptance).map_err(Dropped::Frame),
        Err(reason) => Err(Dropped::Record(*reason)),
    };
    match read {
        Ok(Frame::Message(packet)) => {
            *summary.messages.entry(packet.kind.label()).or_default() += 1;
            if let Some(out) = out {
                out.write_all(&line::json_line(&packet, Some(captured.number))?).or_else(stdout_failed)?;
            }
        }
        Ok(Frame::Beacon(_)) => summary.beacons += 1,
        Ok(Frame::LocationService(_)) => summary.location_service += 1,
        Err(reason) => {
            let first = || Drops { count: 0, first: captured.number, explanation: reason.explain(captured) };
            summary.dropped.entry(reason).or_insert_with(first).count += 1;
            return Ok(Some(reason));
        }
    }
    Ok(None)
}

fn print_drop(frame: &CapturedFrame, reason: Dropped) {
    let number = frame.number;
    match reason {
        // The reason alone does not name the wrong element.
        Dropped::Frame(DropReason::UperInvalid) => {
            print_note(format_args!("frame {number}: dropped: {reason}. {}", reason.explain(frame)));
        }
        _ => print_note(format_args!("frame {number}: dropped: {reason}")),
    }
}

impl Dropped {
    /// Returns the explanation of the reason for this frame.
    fn explain(self, frame: &CapturedFrame) -> String {
        match (self, &frame.octets) {
            (Self::Record(reason), _) => reason.explain().to_owned(),
            (Self::Frame(reason), Ok(octets)) => explain_drop(reason, octets),
            (Self::Frame(reason), Err(_)) => reason.explain().to_owned(),
        }
    }
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Record(reason) => reason.label(),
            Self::Frame(reason) => reason.label(),
        })
    }
}

impl Summary {
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
            print_note(format_args!("  dropped: {:<15} {:>8}", reason.to_string(), drops.count));
            print_note(format_args!("    the first is frame {}. {}", drops.first, drops.explanation));
        }
    }
}
