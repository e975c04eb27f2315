//! The message format of reliable transports (RFC 8323, 3.2).

use core::fmt;

use super::message::{split_body, split_token};
use super::{Code, OptionsView, ParseError, Token};

/// Largest number of octets before the token: length and token length, extended length, code.
pub const HEADER_OCTETS_MAX: usize = 6;

/// Reasons for which a stream cannot be read further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// The message is longer than permitted: its octets.
    TooLong(u64),
    /// The message is malformed.
    Malformed(ParseError),
}

impl fmt::Display for FrameError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(octets) => write!(formatter, "a message of {octets} octets is longer than permitted"),
            Self::Malformed(error) => error.fmt(formatter),
        }
    }
}

impl core::error::Error for FrameError {}

/// A message on a reliable transport. It has no type and no message ID.
///
/// ```text
///  0 1 2 3 4 5 6 7
/// +-------+-------+
/// |  Len  |  TKL  |  1 octet. Len 0 to 12: octets of options, marker and payload
/// +-------+-------+
/// | Len (extended)|  Len 13: 1 octet, minus 13; 14: 2 octets, minus 269; 15: 4 octets, minus 65805
/// |     Code      |  1 octet
/// |     Token     |  TKL octets
/// |    Options, 0xFF, Payload
/// +---------------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Code.
    pub code: Code,
    /// Token.
    pub token: Token,
    options: OptionsView<'a>,
    /// Payload. It can be empty.
    pub payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Returns the number of octets of the message at the start of `octets`, or `None` if its header is incomplete.
    ///
    /// # Errors
    /// The message is longer than `octets_max`, or its token length is reserved.
    pub fn length(octets: &[u8], octets_max: usize) -> Result<Option<usize>, FrameError> {
        let Some((first, rest)) = octets.split_first() else { return Ok(None) };
        let token_length = first & 0xF;
        if usize::from(token_length) > Token::OCTETS_MAX {
            return Err(FrameError::Malformed(ParseError::TokenLength));
        }
        let Some((body, extension)) = body_length(first >> 4, rest) else { return Ok(None) };
        let total = 2 + extension as u64 + u64::from(token_length) + body;
        match usize::try_from(total) {
            Ok(total) if total <= octets_max => Ok(Some(total)),
            _ => Err(FrameError::TooLong(total)),
        }
    }

    /// Parses one whole message, of the length that [`Frame::length`] returned.
    ///
    /// # Errors
    /// The reason for which the message is malformed.
    pub fn parse(octets: &'a [u8]) -> Result<Self, ParseError> {
        let (first, rest) = octets.split_first().ok_or(ParseError::Truncated)?;
        let (_, extension) = body_length(first >> 4, rest).ok_or(ParseError::Truncated)?;
        let (code, rest) = rest.get(extension..).and_then(<[u8]>::split_first).ok_or(ParseError::Truncated)?;
        let (token, body) = split_token(first & 0xF, rest)?;
        let code = Code::new(*code);
        if !(code.is_empty() || code.is_request() || code.is_response() || code.is_signal()) {
            return Err(ParseError::Code);
        }
        let (options, payload) = split_body(body)?;
        Ok(Self { code, token, options, payload })
    }

    /// Returns the options in the order of their numbers.
    #[must_use]
    pub fn options(&self) -> OptionsView<'a> {
        self.options
    }
}

/// Returns the octets of options, marker and payload, and the octets of the extended length.
fn body_length(nibble: u8, rest: &[u8]) -> Option<(u64, usize)> {
    Some(match nibble {
        0..=12 => (u64::from(nibble), 0),
        13 => (13 + u64::from(*rest.first()?), 1),
        14 => (269 + u64::from(u16::from_be_bytes(*rest.first_chunk()?)), 2),
        _ => (65_805 + u64::from(u32::from_be_bytes(*rest.first_chunk()?)), 4),
    })
}

/// Returns the octets before the code, and how many they are.
pub(super) fn header(token_length: u8, body_octets: u32) -> ([u8; 5], usize) {
    let mut octets = [token_length, 0, 0, 0, 0];
    let (nibble, extension, length) = match body_octets {
        0..=12 => (body_octets as u8, [0; 4], 0),
        13..=268 => (13, [(body_octets - 13) as u8, 0, 0, 0], 1),
        269..=65_804 => {
            let [high, low] = ((body_octets - 269) as u16).to_be_bytes();
            (14, [high, low, 0, 0], 2)
        }
        _ => (15, (body_octets - 65_805).to_be_bytes(), 4),
    };
    octets[0] |= nibble << 4;
    octets[1..].copy_from_slice(&extension);
    (octets, 1 + length)
}
