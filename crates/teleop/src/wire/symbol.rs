//! Symbols of frames, and probes.

use bytes::{BufMut, Bytes};

use super::{HEADER_OCTETS, PROBE, ParseError, Reader, SYMBOL, StreamId, begin};
use crate::frames::Shape;

/// Octets before the payload of a symbol.
pub const SYMBOL_HEADER_OCTETS: usize = HEADER_OCTETS + 26;

/// One symbol of a frame.
///
/// | octets | field |
/// |---|---|
/// | 5 | common header |
/// | 4 | transmission number, one more than that of the symbol or probe before |
/// | 4 | time of sending by the sender's clock, in microseconds |
/// | 2 | shortest recent round trip, in 0.1 ms, rounded up |
/// | 1 | stream |
/// | 4 | frame number, one more than that of the frame before in this stream |
/// | 2 | index of the symbol: the source symbols come first, then the recovery symbols |
/// | 2 | number of source symbols |
/// | 3 | octets of the frame |
/// | 2 | age of the frame at the time of sending, in 0.1 ms, rounded up |
/// | 2 | lifespan of the frame, in milliseconds |
/// | rest | the symbol; the last source symbol ends with the frame |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Transmission number.
    pub transmission: u32,
    /// Time of sending by the sender's clock, in microseconds.
    pub sent_us: u32,
    /// Shortest recent round trip in 0.1 ms.
    pub round_trip_100us: u16,
    /// Stream of the frame.
    pub stream: StreamId,
    /// Number of the frame in its stream.
    pub frame: u32,
    /// Index of the symbol.
    pub index: u16,
    /// Division of the frame into symbols.
    pub shape: Shape,
    /// Age of the frame at the time of sending, in 0.1 ms.
    pub age_100us: u16,
    /// Lifespan of the frame in milliseconds.
    pub lifespan_ms: u16,
    /// Octets of the symbol.
    pub payload: Bytes,
}

impl Symbol {
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let transmission = reader.u32()?;
        let sent_us = reader.u32()?;
        let round_trip_100us = reader.u16()?;
        let stream = StreamId(reader.u8()?);
        let frame = reader.u32()?;
        let index = reader.u16()?;
        let sources = reader.u16()?;
        let octets = reader.u24()?;
        let shape = Shape::from_wire(octets, sources).ok_or(ParseError::Field("number of source symbols"))?;
        let age_100us = reader.u16()?;
        let lifespan_ms = reader.u16()?;
        let payload = reader.take_rest();
        if shape.symbol_octets_at(index) != Some(payload.len()) {
            return Err(ParseError::Field("index of the symbol"));
        }
        Ok(Self {
            transmission,
            sent_us,
            round_trip_100us,
            stream,
            frame,
            index,
            shape,
            age_100us,
            lifespan_ms,
            payload,
        })
    }

    pub(super) fn write(&self, epoch: u32) -> Bytes {
        write_symbol(epoch, &self.header(), &self.payload)
    }

    fn header(&self) -> SymbolHeader {
        SymbolHeader {
            transmission: self.transmission,
            sent_us: self.sent_us,
            round_trip_100us: self.round_trip_100us,
            stream: self.stream,
            frame: self.frame,
            index: self.index,
            shape: self.shape,
            age_100us: self.age_100us,
            lifespan_ms: self.lifespan_ms,
        }
    }
}

/// The fields of a symbol before its payload.
pub(crate) struct SymbolHeader {
    pub(crate) transmission: u32,
    pub(crate) sent_us: u32,
    pub(crate) round_trip_100us: u16,
    pub(crate) stream: StreamId,
    pub(crate) frame: u32,
    pub(crate) index: u16,
    pub(crate) shape: Shape,
    pub(crate) age_100us: u16,
    pub(crate) lifespan_ms: u16,
}

/// Returns the datagram of a symbol. The payload is copied once, from the frame into the datagram.
pub(crate) fn write_symbol(epoch: u32, header: &SymbolHeader, payload: &[u8]) -> Bytes {
    let mut octets = begin(SYMBOL, epoch, SYMBOL_HEADER_OCTETS + payload.len());
    octets.put_u32(header.transmission);
    octets.put_u32(header.sent_us);
    octets.put_u16(header.round_trip_100us);
    octets.put_u8(header.stream.0);
    octets.put_u32(header.frame);
    octets.put_u16(header.index);
    octets.put_u16(header.shape.sources());
    octets.put_uint(u64::from(header.shape.frame_octets()), 3);
    octets.put_u16(header.age_100us);
    octets.put_u16(header.lifespan_ms);
    octets.put_slice(payload);
    octets.freeze()
}

/// A request for feedback, sent if feedback is overdue.
///
/// | octets | field |
/// |---|---|
/// | 5 | common header |
/// | 4 | transmission number, one more than that of the symbol or probe before |
/// | 4 | time of sending by the sender's clock, in microseconds |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Transmission number.
    pub transmission: u32,
    /// Time of sending by the sender's clock, in microseconds.
    pub sent_us: u32,
}

impl Probe {
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        Ok(Self { transmission: reader.u32()?, sent_us: reader.u32()? })
    }

    pub(crate) fn write(self, epoch: u32) -> Bytes {
        let mut octets = begin(PROBE, epoch, HEADER_OCTETS + 8);
        octets.put_u32(self.transmission);
        octets.put_u32(self.sent_us);
        octets.freeze()
    }
}
