//! Unfinished frames at the sender.

use std::{collections::VecDeque, time::Duration};

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
    /// Symbols sent so far.
    sent: u32,
    /// Number of symbols sent in turn. Their indices count up and begin again after the last recovery symbol.
    turns: u32,
    /// Transmission number of each source symbol that was sent, the latest one if it was sent again.
    transmissions: Vec<u64>,
    /// Source symbols that are lost and are sent again before others.
    lost: VecDeque<u16>,
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
            turns: 0,
            transmissions: Vec::new(),
            lost: VecDeque::new(),
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

    /// Notes the source symbols that the receiver lacks. `named` are those before the last one that has arrived, all of them
    /// if `needed`, the number of symbols that the frame needs, is given. Datagrams up to the transmission number `settled`
    /// have arrived or are lost.
    pub(super) fn note_missing(&mut self, named: &[u16], needed: Option<u16>, settled: u64) {
        let sources = self.shape.sources();
        // The receiver lacks all symbols after the last one that has arrived.
        let after_last = needed.map_or(0, |needed| usize::from(needed).saturating_sub(named.len()));
        let after_last = sources.saturating_sub(u16::try_from(after_last).unwrap_or(sources))..sources;
        let is_lost = |index: &u16| self.transmissions.get(usize::from(*index)).is_some_and(|sent| *sent <= settled);
        self.lost = named.iter().copied().chain(after_last).filter(is_lost).collect();
    }

    /// Returns the index and octets of the next symbol to send, or `None` if none is pending.
    pub(super) fn next_symbol(&mut self, transmission: u64, encoder: &mut Encoder) -> Option<(u16, Bytes)> {
        self.pending = self.pending.checked_sub(1)?;
        let index = match self.lost.pop_front() {
            Some(index) => index,
            None => self.take_turn()?,
        };
        let payload = self.symbol(index, encoder)?;
        self.note_transmission(index, transmission);
        self.sent += 1;
        self.in_flight += 1;
        Some((index, payload))
    }

    /// Returns the index whose turn it is.
    fn take_turn(&mut self) -> Option<u16> {
        let index = u16::try_from(self.turns % u32::from(self.shape.symbols())).ok()?;
        self.turns += 1;
        Some(index)
    }

    fn note_transmission(&mut self, index: u16, transmission: u64) {
        match self.transmissions.get_mut(usize::from(index)) {
            Some(latest) => *latest = transmission,
            None if index < self.shape.sources() => self.transmissions.push(transmission),
            None => {}
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::StreamId;

    const KEY: FrameKey = FrameKey { stream: StreamId(0), number: 0 };

    /// Returns a frame of ten source symbols, whose first `sent` symbols were sent with the transmission numbers from 100.
    fn frame(sent: u64, encoder: &mut Encoder) -> OutgoingFrame {
        let data = Bytes::from(vec![7; 1000]);
        let shape = Shape::new(1000, 100).unwrap();
        let mut frame = OutgoingFrame::new(Mono::default(), KEY, data, shape, &StreamSettings::default());
        frame.require(10);
        for transmission in 0..sent {
            frame.next_symbol(100 + transmission, encoder).unwrap();
        }
        frame
    }

    fn next_indices(frame: &mut OutgoingFrame, first: u64, encoder: &mut Encoder) -> Vec<u16> {
        (first..).map_while(|transmission| Some(frame.next_symbol(transmission, encoder)?.0)).collect()
    }

    /// The datagrams up to this number have arrived or are lost.
    fn settle(frame: &mut OutgoingFrame, datagrams: u32) {
        (0..datagrams).for_each(|_| frame.settle());
    }

    #[test]
    fn lost_source_symbols_are_sent_again_instead_of_recovery_symbols() {
        let mut encoder = Encoder::default();
        let mut frame = frame(10, &mut encoder);
        settle(&mut frame, 10);
        // 2 and 5 are missing, and all after 7.
        frame.note_missing(&[2, 5], Some(4), 109);
        frame.require(4);
        assert_eq!(next_indices(&mut frame, 110, &mut encoder), [2, 5, 8, 9]);
        // Of 2 and 5, which are settled now, 2 is lost again. The others are still in flight.
        settle(&mut frame, 2);
        frame.note_missing(&[2], Some(3), 111);
        frame.require(3);
        assert_eq!(next_indices(&mut frame, 114, &mut encoder), [2]);
    }

    #[test]
    fn symbols_in_flight_are_not_sent_again() {
        let mut encoder = Encoder::default();
        let mut frame = frame(6, &mut encoder);
        settle(&mut frame, 3);
        // 1 is lost. 3 to 5 are in flight, and the others have not been sent.
        frame.note_missing(&[1], Some(8), 102);
        frame.require(8);
        assert_eq!(next_indices(&mut frame, 106, &mut encoder), [1, 6, 7, 8, 9]);
    }

    #[test]
    fn recovery_symbols_replace_lost_symbols_that_are_not_named() {
        let mut encoder = Encoder::default();
        let mut frame = frame(10, &mut encoder);
        settle(&mut frame, 10);
        frame.note_missing(&[4], None, 109);
        frame.require(3);
        assert_eq!(next_indices(&mut frame, 110, &mut encoder), [4, 10, 11]);
    }
}
