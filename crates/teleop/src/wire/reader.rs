//! A bounds-checked reader of fields.

use bytes::Bytes;

use super::ParseError;

/// The unread part of a datagram.
pub(super) struct Reader<'a> {
    datagram: &'a Bytes,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(datagram: &'a Bytes) -> Self {
        Self { datagram, rest: datagram }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ParseError> {
        let (field, rest) = self.rest.split_first_chunk().ok_or(ParseError::TooShort)?;
        self.rest = rest;
        Ok(*field)
    }

    pub(super) fn u8(&mut self) -> Result<u8, ParseError> {
        self.array().map(u8::from_be_bytes)
    }

    pub(super) fn u16(&mut self) -> Result<u16, ParseError> {
        self.array().map(u16::from_be_bytes)
    }

    /// Reads a number of three octets.
    pub(super) fn u24(&mut self) -> Result<u32, ParseError> {
        let [high, middle, low] = self.array()?;
        Ok(u32::from_be_bytes([0, high, middle, low]))
    }

    pub(super) fn u32(&mut self) -> Result<u32, ParseError> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, ParseError> {
        self.array().map(u64::from_be_bytes)
    }

    /// Returns the rest of the datagram, which shares its memory.
    pub(super) fn take_rest(&mut self) -> Bytes {
        let rest = std::mem::take(&mut self.rest);
        self.datagram.slice(self.datagram.len() - rest.len()..)
    }

    /// Checks that all octets were read.
    pub(super) fn end(&self) -> Result<(), ParseError> {
        if self.rest.is_empty() { Ok(()) } else { Err(ParseError::TooLong) }
    }
}
