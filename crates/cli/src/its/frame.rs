//! Frames as hexadecimal text and as the text that a receiver decodes.

use std::io::Write as _;

use bytes::Bytes;
use viaduct_bus::clock;
use viaduct_its::{Acceptance, Frame, decode_frame_with, explain_drop};

use super::line::json_line;
use crate::output::stdout_failed;

/// Length of an Ethernet header in octets, the shortest frame.
const OCTETS_MIN: usize = 14;

/// Returns the error for hexadecimal digits that are not a frame.
pub(super) fn too_short() -> String {
    format!("a frame in hexadecimal has at least {OCTETS_MIN} octets of two digits")
}

/// Parses a frame in hexadecimal digits. Returns `None` for any other text, such as a mistyped file name (`dead`). Spaces
/// and colons are allowed between octets.
pub(super) fn frame_from_hex(text: &str) -> Option<Vec<u8>> {
    from_hex(text).filter(|octets| octets.len() >= OCTETS_MIN)
}

/// Returns `true` if a text consists of hexadecimal digits, spaces and colons.
pub(super) fn is_hexadecimal(text: &str) -> bool {
    digits(text).next().is_some() && digits(text).all(|letter| letter.is_ascii_hexdigit())
}

fn digits(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|letter| !letter.is_whitespace() && *letter != ':')
}

/// Parses octets in hexadecimal digits. Spaces and colons are allowed between octets. Returns `None` for any other text.
fn from_hex(text: &str) -> Option<Vec<u8>> {
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

/// Prints a frame in hexadecimal and, on the next line, its message or the reason for the drop.
pub(super) fn print(frame: &[u8]) -> anyhow::Result<()> {
    let digits: String = frame.iter().map(|octet| format!("{octet:02x}")).collect();
    let mut lines = format!("{digits}\n").into_bytes();
    lines.append(&mut decode(frame, Acceptance::default())?.line);
    std::io::stdout().lock().write_all(&lines).or_else(stdout_failed)
}

/// A decoded frame as text.
pub(super) struct Decoded {
    /// One line.
    pub(super) line: Vec<u8>,
    /// `true` if a receiver drops the frame.
    pub(super) is_dropped: bool,
}

/// Decodes a frame as if it were received now.
pub(super) fn decode(frame: &[u8], acceptance: Acceptance) -> anyhow::Result<Decoded> {
    let frame = Bytes::copy_from_slice(frame);
    let read = decode_frame_with(clock::tai(), &frame, acceptance);
    let is_dropped = read.is_err();
    let line = match read {
        Ok(Frame::Message(packet)) => json_line(&packet, None)?,
        Ok(Frame::Beacon(beacon)) => format!("{beacon}\n").into_bytes(),
        Ok(Frame::LocationService(packet)) => format!("{packet}\n").into_bytes(),
        Err(reason) => format!("dropped: {reason}. {}\n", explain_drop(reason, &frame)).into_bytes(),
    };
    Ok(Decoded { line, is_dropped })
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
