//! The connection header: fields `key=value`, each with its length before it.

use std::fmt::Display;

use bytes::{BufMut as _, Bytes, BytesMut};

use crate::limits::{HEADER_FIELDS_MAX, HEADER_OCTETS_MAX};

/// The fields of a connection header, in the order of the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header(Vec<(String, String)>);

/// The reason why octets are not a connection header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The header is too long.
    #[error("a connection header has at most {HEADER_OCTETS_MAX} octets, not {0}")]
    TooLong(usize),
    /// The header has too many fields.
    #[error("a connection header has at most {HEADER_FIELDS_MAX} fields")]
    TooManyFields,
    /// The header ends within a field.
    #[error("the connection header ends within field {0}")]
    TooShort(usize),
    /// A field has no equals sign, or is not UTF-8.
    #[error("field {0} of the connection header is not `key=value`")]
    Field(usize),
}

impl Header {
    /// Parses the content of a header's frame.
    ///
    /// # Errors
    /// The first mistake.
    pub fn parse(octets: &[u8]) -> Result<Self, HeaderError> {
        if octets.len() > HEADER_OCTETS_MAX {
            return Err(HeaderError::TooLong(octets.len()));
        }
        let mut fields = Vec::new();
        let mut rest = octets;
        while !rest.is_empty() {
            let number = fields.len() + 1;
            if number > HEADER_FIELDS_MAX {
                return Err(HeaderError::TooManyFields);
            }
            let (field, after) = split_field(rest).ok_or(HeaderError::TooShort(number))?;
            let pair = std::str::from_utf8(field).ok().and_then(|text| text.split_once('='));
            let (key, value) = pair.ok_or(HeaderError::Field(number))?;
            fields.push((key.to_owned(), value.to_owned()));
            rest = after;
        }
        Ok(Self(fields))
    }

    /// Returns the header with which a publisher refuses a subscriber.
    #[must_use]
    pub fn refusal(reason: &impl Display) -> Self {
        Self::default().with("error", &reason.to_string())
    }

    /// Returns the header with one more field.
    #[must_use]
    pub fn with(mut self, key: &str, value: &str) -> Self {
        self.0.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Returns the value of a field, or `None`. If a field occurs twice, the first one counts.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// Returns the frame of the header, with its length.
    #[must_use]
    pub fn write(&self) -> Bytes {
        let octets: usize = self.0.iter().map(|(key, value)| 4 + key.len() + 1 + value.len()).sum();
        let mut frame = BytesMut::with_capacity(4 + octets);
        frame.put_u32_le(octets as u32);
        for (key, value) in &self.0 {
            frame.put_u32_le((key.len() + 1 + value.len()) as u32);
            frame.put_slice(key.as_bytes());
            frame.put_u8(b'=');
            frame.put_slice(value.as_bytes());
        }
        frame.freeze()
    }
}

/// Returns the first field and the octets after it.
fn split_field(octets: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = octets.split_first_chunk()?;
    rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)
}
