//! Unfinished frames at the sender.

use std::time::Duration;

use bytes::Bytes;
use viaduct_units::Mono;

use super::{Outcome, SentFrame, Shape, StreamSettings, code::Encoder, flight::FrameKey};

/// A frame that the receiver may not have restored yet.
#[derive(Debug)]
pub(super) struct OutgoingFrame {
    pub(super) key: FrameKey,
    pub(super) shape: Shape,
    pub(super) pushed: Mono,
    pub(super) deadline: Mono,
    /// Rank of the stream, 0 first.
    pub(super) priority: u8,
    pub(super) lifespan_ms: u16,
    data: Bytes,
    /// All recovery symbols, encoded when the first one is needed.
    recovery: Option<Bytes>,
    /// Symbols sent so far. Their indices count up and begin again after the last recovery symbol.
    sent: u32,
    sent_octets: u64,
    /// Symbols in flight.
    in_flight: u32,
    /// Symbols to send now.
    pending: u32,
    /// `true` if no symbol can arrive before the deadline any more.
    closed: bool,
}

impl OutgoingFrame {
    pub(super) fn new(now: Mono, key: FrameKey, data: Bytes, shape: Shape, settings: &StreamSettings) -> Self {
        Self {
            key,
            shape,
            pushed: now,
            deadline: now.plus(settings.lifespan),
            priority: settings.priority,
            lifespan_ms: u16::try_from(settings.lifespan.as_millis()).unwrap_or(u16::MAX),
            data,
            recovery: None,
            sent: 0,
            sent_octets: 0,
            in_flight: 0,
            pending: 0,
            closed: false,
        }
    }

    /// Sets how many symbols must be in flight or pending.
    pub(super) fn require(&mut self, outstanding: u32) {
        self.pending = if self.closed { 0 } else { outstanding.saturating_sub(self.in_flight) };
    }

    /// Returns the time from which on no symbol can arrive before the deadline.
    pub(super) fn last_chance(&self, transit: Duration) -> Mono {
        Mono(self.deadline.0.saturating_sub(transit))
    }

    /// Ends the sending of symbols.
    pub(super) const fn close(&mut self) {
        (self.closed, self.pending) = (true, 0);
    }

    pub(super) const fn is_closed(&self) -> bool {
        self.closed
    }

    /// Returns the number of symbols to send now.
    pub(super) const fn pending(&self) -> u32 {
        self.pending
    }

    /// Returns the octets of the symbols to send now.
    pub(super) fn pending_octets(&self) -> u64 {
        u64::from(self.pending) * self.shape.symbol_octets() as u64
    }

    /// Returns the index and octets of the next symbol to send, or `None` if none is pending.
    pub(super) fn next_symbol(&mut self, encoder: &mut Encoder) -> Option<(u16, Bytes)> {
        self.pending = self.pending.checked_sub(1)?;
        let index = u16::try_from(self.sent % u32::from(self.shape.symbols())).ok()?;
        let payload = self.symbol(index, encoder)?;
        self.sent += 1;
        self.in_flight += 1;
        Some((index, payload))
    }

    /// Counts the octets of the datagram of a symbol.
    pub(super) fn count_octets(&mut self, octets: usize) {
        self.sent_octets += octets as u64;
    }

    /// Processes that the fate of one symbol in flight is settled.
    pub(super) fn settle(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Returns the statistics of the finished frame.
    pub(super) fn report(&self, now: Mono, outcome: Outcome) -> SentFrame {
        SentFrame {
            stream: self.key.stream,
            number: self.key.number,
            octets: self.shape.frame_octets(),
            outcome,
            symbols_needed: self.shape.sources(),
            symbols_sent: self.sent,
            octets_sent: self.sent_octets,
            duration: now.since(self.pushed),
        }
    }

    fn symbol(&mut self, index: u16, encoder: &mut Encoder) -> Option<Bytes> {
        if let Some(range) = self.shape.source_range(index) {
            return (range.end <= self.data.len()).then(|| self.data.slice(range));
        }
        if self.recovery.is_none() {
            self.recovery = encoder.recovery_symbols(&self.data, self.shape);
        }
        let start = usize::from(index.checked_sub(self.shape.sources())?) * self.shape.symbol_octets();
        let end = start + self.shape.symbol_octets();
        self.recovery.as_ref().filter(|symbols| end <= symbols.len()).map(|symbols| symbols.slice(start..end))
    }
}
