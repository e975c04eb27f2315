//! One frame as hexadecimal text, and what a receiver reads in it.

use std::io::Write as _;

use anyhow::Context as _;
use bytes::Bytes;
use serde_json::value::RawValue;
use viaduct_bus::clock;
use viaduct_components::v2x::received_message;
use viaduct_its::{Frame, Received, decode_frame};
use viaduct_messages::viaduct::its::AccessLayer;

use crate::output::stdout_failed;

/// Octets of an Ethernet header: what is shorter is no frame.
pub(super) const OCTETS_MIN: usize = 14;

/// The octets of a frame that a text says in hexadecimal digits; `None` where it says anything else, such as the
/// mistyped name of a file (`dead`). Spaces and colons may stand between octets.
pub(super) fn frame_from_hex(text: &str) -> Option<Vec<u8>> {
    from_hex(text).filter(|octets| octets.len() >= OCTETS_MIN)
}

/// Whether a text has nothing but hexadecimal digits, and what may stand between octets.
pub(super) fn is_hexadecimal(text: &str) -> bool {
    digits(text).next().is_some() && digits(text).all(|letter| letter.is_ascii_hexdigit())
}

fn digits(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|letter| !letter.is_whitespace() && *letter != ':')
}

/// The octets that a text says in hexadecimal digits, with spaces and colons between octets or without.
pub(super) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<char> = digits(text).collect();
    if digits.is_empty() || !digits.len().is_multiple_of(2) {
        return None;
    }
    let octet = |pair: &[char]| match pair {
        [high, low] => u8::try_from(high.to_digit(16)? << 4 | low.to_digit(16)?).ok(),
        _ => None,
    };
    digits.chunks(2).map(octet).collect()
}

/// Prints a frame in hexadecimal, and below it what it says or why a receiver drops it.
pub(super) fn print(frame: &[u8]) -> anyhow::Result<()> {
    let digits: String = frame.iter().map(|octet| format!("{octet:02x}")).collect();
    let mut lines = format!("{digits}\n").into_bytes();
    lines.append(&mut reading(frame)?.line);
    std::io::stdout().lock().write_all(&lines).or_else(stdout_failed)
}

/// What a receiver reads, in one line.
pub(super) struct Reading {
    pub(super) line: Vec<u8>,
    /// Whether the receiver drops the frame.
    pub(super) is_dropped: bool,
}

/// Reads a frame as a receiver does.
pub(super) fn reading(frame: &[u8]) -> anyhow::Result<Reading> {
    let read = decode_frame(clock::tai(), &Bytes::copy_from_slice(frame));
    let is_dropped = read.is_err();
    let line = match read {
        Ok(Frame::Message(packet)) => json_line(&packet)?,
        Ok(Frame::Beacon(beacon)) => format!("{beacon}\n").into_bytes(),
        Ok(Frame::LocationService(packet)) => format!("{packet}\n").into_bytes(),
        Err(reason) => format!("dropped: {reason}. {}\n", reason.explain()).into_bytes(),
    };
    Ok(Reading { line, is_dropped })
}

/// A message as one line of JSON.
pub(super) fn json_line(packet: &Received) -> anyhow::Result<Vec<u8>> {
    let mut decoded = Vec::new();
    packet.message.write_json(&mut decoded);
    let decoded: &RawValue = serde_json::from_slice(&decoded).context("a decoded message is not JSON")?;
    let mut line = Vec::new();
    received_message(packet, "", AccessLayer::Replay, 0).write_json(Some(decoded), &mut line)?;
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_text_is_pairs_of_digits() {
        let octets = [&[0xFF, 0xFF, 0x0A, 0x1B][..], &[0; 10]].concat();
        assert_eq!(frame_from_hex("ffFF 0a:1b 00000000000000000000"), Some(octets));
        let (odd, short) = ("f".repeat(29), "dead".repeat(6));
        for other in ["", "dead", "out.pcap", "0x1200000000000000000000000000", &odd, &short] {
            assert_eq!(frame_from_hex(other), None, "{other}");
        }
    }
}
