//! Writes messages.

use core::fmt;

use super::message::FIXED_OCTETS;
use super::{Code, MessageType, OptionNumber, PAYLOAD_MARKER, Token, encode_uint, frame};

/// Reasons for which a message cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// The buffer is too small.
    Full,
    /// The number of the option is smaller than that of the option before.
    Order,
    /// The option is longer than 65804 octets.
    Length,
}

impl fmt::Display for WriteError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Full => "the buffer is too small for the message",
            Self::Order => "options must be written in the order of their numbers",
            Self::Length => "an option must not be longer than 65804 octets",
        })
    }
}

impl core::error::Error for WriteError {}

/// A message that is written into a buffer: header, options in the order of their numbers, payload.
#[derive(Debug)]
pub struct Writer<'a> {
    buffer: &'a mut [u8],
    written: usize,
    /// Number of the last option.
    last: u16,
}

impl<'a> Writer<'a> {
    /// Begins a datagram.
    ///
    /// # Errors
    /// [`WriteError::Full`].
    pub fn datagram(
        buffer: &'a mut [u8],
        kind: MessageType,
        code: Code,
        id: u16,
        token: &Token,
    ) -> Result<Self, WriteError> {
        let mut writer = Self { buffer, written: 0, last: 0 };
        let [high, low] = id.to_be_bytes();
        let header: [u8; FIXED_OCTETS] = [1 << 6 | kind.bits() << 4 | token.length(), code.octet(), high, low];
        writer.put(&header)?;
        writer.put(token.as_slice())?;
        Ok(writer)
    }

    /// Begins a message on a reliable transport (RFC 8323, 3.2). `body_octets` is the number of octets of options, payload
    /// marker and payload, which the caller must then write.
    ///
    /// # Errors
    /// [`WriteError::Full`].
    pub fn frame(buffer: &'a mut [u8], code: Code, token: &Token, body_octets: u32) -> Result<Self, WriteError> {
        let mut writer = Self { buffer, written: 0, last: 0 };
        let (header, length) = frame::header(token.length(), body_octets);
        writer.put(header.get(..length).unwrap_or_default())?;
        writer.put(&[code.octet()])?;
        writer.put(token.as_slice())?;
        Ok(writer)
    }

    /// Writes an option.
    ///
    /// # Errors
    /// See [`WriteError`]. The buffer then holds an incomplete message.
    pub fn option(&mut self, number: OptionNumber, value: &[u8]) -> Result<(), WriteError> {
        let delta = number.0.checked_sub(self.last).ok_or(WriteError::Order)?;
        let length = u32::try_from(value.len()).unwrap_or(u32::MAX);
        if length > 269 + u32::from(u16::MAX) {
            return Err(WriteError::Length);
        }
        let (delta, length) = (Extended::of(u32::from(delta)), Extended::of(length));
        self.put(&[delta.nibble << 4 | length.nibble])?;
        self.put(delta.as_slice())?;
        self.put(length.as_slice())?;
        self.put(value)?;
        self.last = number.0;
        Ok(())
    }

    /// Writes an option with a value of format uint.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn uint(&mut self, number: OptionNumber, value: u32) -> Result<(), WriteError> {
        let (octets, length) = encode_uint(value);
        self.option(number, octets.get(octets.len() - length..).unwrap_or_default())
    }

    /// Writes the payload, with the marker before it. Does nothing if the payload is empty.
    ///
    /// # Errors
    /// [`WriteError::Full`].
    pub fn payload(&mut self, payload: &[u8]) -> Result<(), WriteError> {
        if payload.is_empty() {
            return Ok(());
        }
        self.put(&[PAYLOAD_MARKER])?;
        self.put(payload)
    }

    /// Returns the number of octets written.
    #[must_use]
    pub fn finish(self) -> usize {
        self.written
    }

    fn put(&mut self, octets: &[u8]) -> Result<(), WriteError> {
        let end = self.written + octets.len();
        self.buffer.get_mut(self.written..end).ok_or(WriteError::Full)?.copy_from_slice(octets);
        self.written = end;
        Ok(())
    }
}

/// Returns the number of octets of an option with a value of `length` octets, given the number of the option before.
#[must_use]
pub fn option_octets(before: OptionNumber, number: OptionNumber, length: usize) -> usize {
    let extension = |value: usize| match value {
        0..=12 => 0,
        13..=268 => 1,
        _ => 2,
    };
    1 + extension(usize::from(number.0.saturating_sub(before.0))) + extension(length) + length
}

/// A delta or length of an option.
struct Extended {
    nibble: u8,
    octets: [u8; 2],
    length: usize,
}

impl Extended {
    fn of(value: u32) -> Self {
        let small = |value: u32| u8::try_from(value).unwrap_or(u8::MAX);
        match value {
            0..=12 => Self { nibble: small(value), octets: [0; 2], length: 0 },
            13..=268 => Self { nibble: 13, octets: [small(value - 13), 0], length: 1 },
            _ => {
                let octets = u16::try_from(value - 269).unwrap_or(u16::MAX).to_be_bytes();
                Self { nibble: 14, octets, length: 2 }
            }
        }
    }

    fn as_slice(&self) -> &[u8] {
        self.octets.get(..self.length).unwrap_or_default()
    }
}
