//! Unfinished frames at the receiver.

use bytes::Bytes;
use viaduct_units::Mono;

use super::Shape;
use crate::{
    limits::FRAMES_REPORTED,
    wire::{MissingSymbol, OpenFrame, StreamId, StreamReport},
};

/// Memory that a symbol takes beside its octets.
const SYMBOL_OVERHEAD: usize = 64;

/// A frame of which symbols have arrived.
#[derive(Debug)]
pub(super) struct IncomingFrame {
    pub(super) number: u32,
    pub(super) shape: Shape,
    pub(super) deadline: Mono,
    /// Symbols that have arrived, with their index. Their memory is that of the datagrams.
    pub(super) symbols: Vec<(u16, Bytes)>,
    /// Bit of each symbol: `true` if it has arrived. As long as the highest index requires.
    seen: Vec<u64>,
    /// Number of source symbols up to the highest one that has arrived.
    reached: u16,
    /// Number of source symbols that have arrived after a later one.
    late: u16,
}

impl IncomingFrame {
    pub(super) fn new(number: u32, shape: Shape, deadline: Mono) -> Self {
        Self { number, shape, deadline, symbols: Vec::new(), seen: Vec::new(), reached: 0, late: 0 }
    }

    /// Adds a symbol. Returns the memory that it takes, or `None` if the symbol has arrived before.
    pub(super) fn add(&mut self, index: u16, payload: Bytes) -> Option<usize> {
        let (word, bit) = (usize::from(index / 64), 1_u64 << (index % 64));
        if self.seen.len() <= word {
            self.seen.resize(word + 1, 0);
        }
        let seen = self.seen.get_mut(word).filter(|seen| **seen & bit == 0)?;
        *seen |= bit;
        if index < self.reached {
            self.late += 1;
        } else if index < self.shape.sources() {
            self.reached = index + 1;
        }
        let octets = payload.len() + SYMBOL_OVERHEAD;
        self.symbols.push((index, payload));
        Some(octets)
    }

    /// Returns the number of further symbols that the frame needs.
    pub(super) fn needed(&self) -> u16 {
        self.shape.sources().saturating_sub(self.arrived())
    }

    /// Returns the number of symbols that have arrived.
    pub(super) fn arrived(&self) -> u16 {
        u16::try_from(self.symbols.len()).unwrap_or(u16::MAX)
    }

    /// Returns the number of source symbols that did not arrive in their turn: those that arrived later, and those that
    /// have not arrived.
    pub(super) fn repaired_sources(&self) -> u16 {
        self.late + self.shape.sources().saturating_sub(self.arrived_sources())
    }

    /// Returns `true` if a source symbol has not arrived.
    pub(super) fn is_missing_sources(&self) -> bool {
        self.arrived_sources() < self.shape.sources()
    }

    fn arrived_sources(&self) -> u16 {
        let sources = self.symbols.iter().filter(|(index, _)| *index < self.shape.sources()).count();
        u16::try_from(sources).unwrap_or(u16::MAX)
    }

    /// Returns the source symbols that have not arrived, although a later one has.
    fn missing_sources(&self) -> impl Iterator<Item = u16> {
        let has_arrived =
            |index: u16| self.seen.get(usize::from(index / 64)).is_some_and(|word| word & (1_u64 << (index % 64)) != 0);
        (0..self.reached).filter(move |index| !has_arrived(*index))
    }

    /// Returns the memory that the symbols take.
    pub(super) fn memory(&self) -> usize {
        self.symbols.iter().map(|(_, payload)| payload.len() + SYMBOL_OVERHEAD).sum()
    }
}

/// The latest frames of one stream.
#[derive(Debug)]
pub(super) struct IncomingStream {
    pub(super) id: StreamId,
    latest: u32,
    /// Delivered frames: bit n is the frame n before the latest.
    delivered: u32,
    /// Abandoned frames, in the same form.
    abandoned: u32,
    /// Open frames, in the order in which their first symbol arrived.
    pub(super) open: Vec<IncomingFrame>,
}

/// The state of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameState {
    /// No symbol has arrived yet.
    Unknown,
    /// Symbols have arrived; the index is that in the list of open frames.
    Open(usize),
    Delivered,
    /// Abandoned, or so old that it is forgotten.
    Abandoned,
}

impl IncomingStream {
    pub(super) const fn new(id: StreamId, first: u32) -> Self {
        // Frames before the first one are unknown: their symbols may still arrive, later than those of the first one.
        Self { id, latest: first, delivered: 0, abandoned: 0, open: Vec::new() }
    }

    /// Makes `number` the latest frame if it is later than the latest one. Returns the open frames that are too old now.
    pub(super) fn advance(&mut self, number: u32) -> Vec<IncomingFrame> {
        let ahead = number.wrapping_sub(self.latest).cast_signed();
        let Ok(ahead @ 1..) = u32::try_from(ahead) else { return Vec::new() };
        self.latest = number;
        self.delivered = self.delivered.checked_shl(ahead).unwrap_or(0);
        self.abandoned = self.abandoned.checked_shl(ahead).unwrap_or(0);
        self.open.extract_if(.., |frame| number.wrapping_sub(frame.number) >= FRAMES_REPORTED).collect()
    }

    /// Returns the state of a frame that is not later than the latest one.
    pub(super) fn state(&self, number: u32) -> FrameState {
        let before = self.latest.wrapping_sub(number);
        let Some(bit) = 1_u32.checked_shl(before) else { return FrameState::Abandoned };
        if self.delivered & bit != 0 {
            return FrameState::Delivered;
        }
        if self.abandoned & bit != 0 {
            return FrameState::Abandoned;
        }
        self.open.iter().position(|frame| frame.number == number).map_or(FrameState::Unknown, FrameState::Open)
    }

    /// Marks a frame as finished.
    pub(super) fn close(&mut self, number: u32, delivered: bool) {
        let bit = 1_u32.checked_shl(self.latest.wrapping_sub(number)).unwrap_or(0);
        let frames = if delivered { &mut self.delivered } else { &mut self.abandoned };
        *frames |= bit;
    }

    fn before_latest(&self, frame: &IncomingFrame) -> u8 {
        u8::try_from(self.latest.wrapping_sub(frame.number)).unwrap_or(u8::MAX)
    }

    /// Returns the missing source symbols of all open frames.
    pub(super) fn missing(&self) -> impl Iterator<Item = MissingSymbol> {
        self.open.iter().flat_map(|frame| {
            let (stream, before_latest) = (self.id, self.before_latest(frame));
            frame.missing_sources().map(move |index| MissingSymbol { stream, before_latest, index })
        })
    }

    pub(super) fn report(&self) -> StreamReport {
        let open =
            |frame: &IncomingFrame| OpenFrame { before_latest: self.before_latest(frame), needed: frame.needed() };
        StreamReport {
            stream: self.id,
            latest: self.latest,
            delivered: self.delivered,
            abandoned: self.abandoned,
            open: self.open.iter().map(open).collect(),
        }
    }
}
