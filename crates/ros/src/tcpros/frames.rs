//! Frames of a connection: the length of each as 32 bits in little-endian order, then its octets.

use bytes::{Buf as _, Bytes, BytesMut};

/// Octets of the length.
const LENGTH_OCTETS: usize = 4;
/// Room for octets of the connection if nothing is known about the next frame.
const ROOM: usize = 16 << 10;
/// Memory that the length of a frame reserves before its octets arrive. More is reserved as they arrive.
const RESERVED_MAX: usize = 2 << 20;

/// A frame is longer than permitted. The connection cannot be read any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a frame has at most {most} octets, not {octets}")]
pub struct FrameTooLong {
    /// Octets of the frame.
    pub octets: usize,
    /// Largest permitted number.
    pub most: usize,
}

/// Divides the octets of a connection into frames, without a copy.
///
/// The owner writes what it receives to the end of [`Frames::room`], and then takes frames until there is none.
#[derive(Debug)]
pub struct Frames {
    received: BytesMut,
    octets_max: usize,
}

impl Frames {
    /// Returns an empty buffer for frames of at most the given length.
    #[must_use]
    pub fn new(octets_max: usize) -> Self {
        Self { received: BytesMut::new(), octets_max }
    }

    /// Returns the received octets. Their buffer has room for the rest of the current frame, or for a part of a long one.
    pub fn room(&mut self) -> &mut BytesMut {
        let missing = self.missing();
        self.received.reserve(missing);
        &mut self.received
    }

    /// Sets the largest permitted length of the next frames.
    pub const fn set_octets_max(&mut self, octets_max: usize) {
        self.octets_max = octets_max;
    }

    /// Returns the next complete frame, or `None`.
    ///
    /// # Errors
    /// The frame is too long.
    pub fn next_frame(&mut self) -> Result<Option<Bytes>, FrameTooLong> {
        let Some(octets) = self.length() else { return Ok(None) };
        if octets > self.octets_max {
            return Err(FrameTooLong { octets, most: self.octets_max });
        }
        if self.received.len() - LENGTH_OCTETS < octets {
            return Ok(None);
        }
        self.received.advance(LENGTH_OCTETS);
        Ok(Some(self.received.split_to(octets).freeze()))
    }

    /// Returns the length of the current frame, or `None` if it has not been received yet.
    fn length(&self) -> Option<usize> {
        let length = self.received.first_chunk()?;
        usize::try_from(u32::from_le_bytes(*length)).ok()
    }

    /// Returns the octets that are missing of the current frame, or a small number if nothing is known about it.
    fn missing(&self) -> usize {
        let octets = self.length().filter(|octets| *octets <= self.octets_max);
        let missing = octets.map_or(ROOM, |octets| (LENGTH_OCTETS + octets).saturating_sub(self.received.len()));
        missing.clamp(ROOM, RESERVED_MAX.max(self.received.len()))
    }
}

/// Returns the octets before a frame of the given length, or `None` if it is too long for the format.
#[must_use]
pub fn write_length(octets: usize) -> Option<[u8; LENGTH_OCTETS]> {
    u32::try_from(octets).ok().map(u32::to_le_bytes)
}
