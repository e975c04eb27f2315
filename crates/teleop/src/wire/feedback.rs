//! Feedback of the receiver of frames.

use bytes::{BufMut, Bytes};

use super::{FEEDBACK, HEADER_OCTETS, ParseError, Reader, StreamId, begin};
use crate::limits::{FRAMES_PER_STREAM_MAX, FRAMES_REPORTED, MISSING_NAMED_MAX, STREAMS_MAX};

/// Octets without the streams and the missing symbols.
const FIXED_OCTETS: usize = HEADER_OCTETS + 54;
/// Octets of a stream before its list of frames.
const STREAM_OCTETS: usize = 14;
/// Octets of an open frame.
const FRAME_OCTETS: usize = 3;
/// Octets of a missing symbol.
const MISSING_OCTETS: usize = 4;

/// The state of all frames at the receiver. It replaces all feedback with a lower sequence number.
///
/// | octets | field |
/// |---|---|
/// | 5 | common header |
/// | 4 | epoch of the sender of the frames |
/// | 4 | sequence number of the feedback |
/// | 4 | largest transmission number received |
/// | 4 | settled transmission number: datagrams up to this number that have not arrived are lost |
/// | 4 | time from the arrival of the largest transmission number to the feedback, in microseconds |
/// | 4 | time of the arrival of the largest transmission number by the receiver's clock, in microseconds |
/// | 4 | shortest queueing delay since the last feedback, in microseconds |
/// | 4 | queueing delay of the last datagram, in microseconds |
/// | 4 | jitter: mean difference of the queueing delays of consecutive datagrams, in microseconds |
/// | 4 | datagrams received |
/// | 4 | octets of these datagrams |
/// | 4 | datagrams lost one by one or a few in a row |
/// | 4 | datagrams lost in outages |
/// | 1 | number of streams, at most 16; then for each stream |
/// | 1 | - stream |
/// | 4 | - number of the latest frame |
/// | 4 | - delivered frames: bit n is the frame n before the latest |
/// | 4 | - abandoned frames, in the same form |
/// | 1 | - number of open frames, at most 16; then for each open frame |
/// | 1 | -- distance from the latest frame, 0 to 31 |
/// | 2 | -- number of further symbols that the frame needs |
/// | 1 | number of missing source symbols that are named, at most 32; then for each of them |
/// | 1 | - stream |
/// | 1 | - distance of the frame from the latest one of the stream, 0 to 31 |
/// | 2 | - index of the symbol |
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Feedback {
    /// Epoch of the sender of the frames.
    pub peer_epoch: u32,
    /// Sequence number.
    pub sequence: u32,
    /// Largest transmission number received.
    pub largest: u32,
    /// Datagrams up to this transmission number that have not arrived are lost.
    pub settled: u32,
    /// Time from the arrival of `largest` to the feedback, in microseconds.
    pub hold_us: u32,
    /// Time of the arrival of `largest` by the receiver's clock, in microseconds.
    pub arrived_us: u32,
    /// Shortest queueing delay since the last feedback, in microseconds.
    pub queue_min_us: u32,
    /// Queueing delay of the last datagram, in microseconds.
    pub queue_last_us: u32,
    /// Mean difference of the queueing delays of consecutive datagrams, in microseconds.
    pub jitter_us: u32,
    /// Datagrams received, modulo 2^32.
    pub received: u32,
    /// Octets of these datagrams, modulo 2^32.
    pub received_octets: u32,
    /// Datagrams lost one by one or a few in a row, modulo 2^32.
    pub lost_random: u32,
    /// Datagrams lost in outages, modulo 2^32.
    pub lost_outage: u32,
    /// Streams, at most [`STREAMS_MAX`].
    pub streams: Vec<StreamReport>,
    /// Missing source symbols, at most [`MISSING_NAMED_MAX`].
    pub missing: Vec<MissingSymbol>,
}

/// The state of one stream at the receiver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamReport {
    /// Stream.
    pub stream: StreamId,
    /// Number of the latest frame of which a symbol has arrived.
    pub latest: u32,
    /// Delivered frames: bit n is the frame n before the latest.
    pub delivered: u32,
    /// Abandoned frames, in the same form.
    pub abandoned: u32,
    /// Frames that need further symbols, at most [`FRAMES_PER_STREAM_MAX`].
    pub open: Vec<OpenFrame>,
}

/// A frame that needs further symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFrame {
    /// Distance from the latest frame of the stream, 0 to 31.
    pub before_latest: u8,
    /// Number of further symbols that the frame needs.
    pub needed: u16,
}

/// A source symbol of an open frame that has not arrived, although a later one has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingSymbol {
    /// Stream of the frame.
    pub stream: StreamId,
    /// Distance of the frame from the latest one of the stream, 0 to 31.
    pub before_latest: u8,
    /// Index of the symbol.
    pub index: u16,
}

impl Feedback {
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let mut feedback = Self {
            peer_epoch: reader.u32()?,
            sequence: reader.u32()?,
            largest: reader.u32()?,
            settled: reader.u32()?,
            hold_us: reader.u32()?,
            arrived_us: reader.u32()?,
            queue_min_us: reader.u32()?,
            queue_last_us: reader.u32()?,
            jitter_us: reader.u32()?,
            received: reader.u32()?,
            received_octets: reader.u32()?,
            lost_random: reader.u32()?,
            lost_outage: reader.u32()?,
            streams: Vec::new(),
            missing: Vec::new(),
        };
        let streams = usize::from(reader.u8()?);
        if streams > STREAMS_MAX {
            return Err(ParseError::Field("number of streams"));
        }
        for _ in 0..streams {
            feedback.streams.push(StreamReport::read(reader)?);
        }
        let missing = usize::from(reader.u8()?);
        if missing > MISSING_NAMED_MAX {
            return Err(ParseError::Field("number of missing symbols"));
        }
        for _ in 0..missing {
            feedback.missing.push(MissingSymbol::read(reader)?);
        }
        Ok(feedback)
    }

    pub(crate) fn write(&self, epoch: u32) -> Bytes {
        let frames: usize = self.streams.iter().map(|stream| stream.open.len()).sum();
        let lists = STREAM_OCTETS * self.streams.len() + FRAME_OCTETS * frames + MISSING_OCTETS * self.missing.len();
        let mut octets = begin(FEEDBACK, epoch, FIXED_OCTETS + lists);
        for field in self.fixed_fields() {
            octets.put_u32(field);
        }
        let streams = self.streams.get(..STREAMS_MAX).unwrap_or(&self.streams);
        octets.put_u8(streams.len() as u8);
        for stream in streams {
            stream.write(&mut octets);
        }
        let missing = self.missing.get(..MISSING_NAMED_MAX).unwrap_or(&self.missing);
        octets.put_u8(missing.len() as u8);
        for symbol in missing {
            symbol.write(&mut octets);
        }
        octets.freeze()
    }

    fn fixed_fields(&self) -> [u32; 13] {
        [
            self.peer_epoch,
            self.sequence,
            self.largest,
            self.settled,
            self.hold_us,
            self.arrived_us,
            self.queue_min_us,
            self.queue_last_us,
            self.jitter_us,
            self.received,
            self.received_octets,
            self.lost_random,
            self.lost_outage,
        ]
    }
}

impl StreamReport {
    fn read(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let mut report = Self {
            stream: StreamId(reader.u8()?),
            latest: reader.u32()?,
            delivered: reader.u32()?,
            abandoned: reader.u32()?,
            open: Vec::new(),
        };
        let frames = usize::from(reader.u8()?);
        if frames > FRAMES_PER_STREAM_MAX {
            return Err(ParseError::Field("number of open frames"));
        }
        for _ in 0..frames {
            report.open.push(OpenFrame { before_latest: read_distance(reader)?, needed: reader.u16()? });
        }
        Ok(report)
    }

    fn write(&self, octets: &mut impl BufMut) {
        octets.put_u8(self.stream.0);
        octets.put_u32(self.latest);
        octets.put_u32(self.delivered);
        octets.put_u32(self.abandoned);
        let open = self.open.get(..FRAMES_PER_STREAM_MAX).unwrap_or(&self.open);
        octets.put_u8(open.len() as u8);
        for frame in open {
            octets.put_u8(frame.before_latest);
            octets.put_u16(frame.needed);
        }
    }
}

impl MissingSymbol {
    fn read(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        Ok(Self { stream: StreamId(reader.u8()?), before_latest: read_distance(reader)?, index: reader.u16()? })
    }

    fn write(self, octets: &mut impl BufMut) {
        octets.put_u8(self.stream.0);
        octets.put_u8(self.before_latest);
        octets.put_u16(self.index);
    }
}

/// Reads the distance of a frame from the latest one of its stream.
fn read_distance(reader: &mut Reader<'_>) -> Result<u8, ParseError> {
    let distance = reader.u8()?;
    if u32::from(distance) >= FRAMES_REPORTED {
        return Err(ParseError::Field("distance from the latest frame"));
    }
    Ok(distance)
}
