//! The receiver of frames.

use std::{collections::VecDeque, time::Duration};

use bytes::Bytes;
use viaduct_units::Mono;

use super::{
    ArrivedFrame, FrameLoss, LostFrame,
    arrivals::Arrivals,
    code::{Decoder, build_code_tables},
    incoming::{FrameState, IncomingFrame, IncomingStream},
};
use crate::{
    epoch::{Observed, PeerEpoch},
    limits::{EVENTS_MAX, FRAMES_PER_STREAM_MAX, MISSING_NAMED_MAX, RECEIVER_OCTETS_MAX, STREAMS_MAX},
    micros,
    reason::{count, counted},
    wire::{Body, Datagram, Feedback, Symbol},
};

/// Shortest and longest time between two feedbacks while datagrams arrive.
const INTERVALS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(5));
/// Longest time between two feedbacks while no datagram arrives but frames are open.
const INTERVAL_IDLE_MAX: Duration = Duration::from_millis(10);
/// Shortest time between two feedbacks, if a probe or the end of a frame asks for one at once.
const INTERVAL_MIN: Duration = Duration::from_micros(250);

/// Increase of the shortest round trip, beyond twice its value, that is a longer path.
const DETOUR_MARGIN: Duration = Duration::from_millis(5);

/// Settings of a receiver of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverSettings {
    /// Memory for the symbols of all open frames in octets, at least 1 MiB. The default and maximum is 64 MiB.
    pub octets_max: usize,
}

impl Default for ReceiverSettings {
    fn default() -> Self {
        Self { octets_max: RECEIVER_OCTETS_MAX }
    }
}

/// The outcome of a frame at the receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceiverEvent {
    /// A frame is complete.
    Arrived(ArrivedFrame),
    /// A frame is lost.
    Lost(LostFrame),
    /// The sender has restarted. All open frames are lost.
    SenderRestarted,
}

reasons! {
    /// The reason why a received datagram is dropped.
    ReceiverDropReason {
        /// The octets are not a datagram.
        Malformed => "malformed",
        /// The datagram is not one for a receiver of frames.
        Unexpected => "unexpected",
        /// The datagram is from another epoch of the sender.
        Epoch => "epoch",
        /// The transmission number has arrived before.
        DuplicateDatagram => "duplicate_datagram",
        /// The transmission number is too far behind the largest one.
        TooLate => "too_late",
        /// The symbol has arrived before, with another transmission number.
        DuplicateSymbol => "duplicate_symbol",
        /// The frame is complete without the symbol.
        Unneeded => "unneeded",
        /// The frame of the symbol was abandoned or has passed its deadline.
        FrameClosed => "frame_closed",
        /// Another symbol of the frame has a different number of symbols or octets.
        Inconsistent => "inconsistent",
        /// The flow has too many streams.
        Streams => "streams",
    }
}

/// Counters of a receiver of frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverCounters {
    /// Datagrams received.
    pub received: u64,
    /// Symbols stored.
    pub stored: u64,
    /// Probes answered.
    pub probes: u64,
    /// Datagrams dropped, by [`ReceiverDropReason`].
    dropped: [u64; ReceiverDropReason::ALL.len()],
    /// Frames delivered.
    pub frames_arrived: u64,
    /// Frames delivered that were decoded, because source symbols were missing.
    pub frames_decoded: u64,
    /// Frames lost, by [`FrameLoss`].
    lost: [u64; FrameLoss::ALL.len()],
    /// Feedbacks sent.
    pub feedbacks: u64,
    /// Events dropped because the caller did not take them.
    pub events_dropped: u64,
}

impl ReceiverCounters {
    /// Returns the number of datagrams dropped for a reason.
    #[must_use]
    pub fn dropped(&self, reason: ReceiverDropReason) -> u64 {
        counted(&self.dropped, reason as usize)
    }

    /// Returns the number of all datagrams dropped.
    #[must_use]
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().sum()
    }

    /// Returns the number of frames lost for a reason.
    #[must_use]
    pub fn lost(&self, reason: FrameLoss) -> u64 {
        counted(&self.lost, reason as usize)
    }

    /// Returns the number of all frames lost of which at least one symbol arrived.
    #[must_use]
    pub fn lost_total(&self) -> u64 {
        self.lost.iter().sum()
    }
}

/// A receiver of frames.
///
/// **After each input, take every datagram from [`Receiver::poll_transmit`] and every event from
/// [`Receiver::poll_event`], then read [`Receiver::poll_timeout`], before the next input.**
#[derive(Debug)]
pub struct Receiver {
    settings: ReceiverSettings,
    /// Epoch of this receiver.
    epoch: u32,
    peer: PeerEpoch,
    now: Mono,
    arrivals: Arrivals,
    streams: Vec<IncomingStream>,
    /// Memory of the symbols of all open frames.
    octets: usize,
    decoder: Decoder,
    /// Shortest recent round trip that the sender has measured.
    round_trip: Duration,
    /// Largest transmission number of a symbol.
    newest_symbol: Option<u32>,
    feedback_due: Option<Mono>,
    feedback_sent: Option<Mono>,
    /// Time between two feedbacks, which grows while nothing arrives.
    feedback_interval: Duration,
    feedback_sequence: u32,
    events: VecDeque<ReceiverEvent>,
    counters: ReceiverCounters,
}

impl Receiver {
    /// Returns a receiver. The epoch must differ from that of an earlier start.
    #[must_use]
    pub fn new(settings: ReceiverSettings, epoch: u32) -> Self {
        build_code_tables();
        let octets_max = settings.octets_max.clamp(1 << 20, RECEIVER_OCTETS_MAX);
        Self {
            settings: ReceiverSettings { octets_max },
            epoch,
            peer: PeerEpoch::default(),
            now: Mono::default(),
            arrivals: Arrivals::default(),
            streams: Vec::new(),
            octets: 0,
            decoder: Decoder::default(),
            round_trip: Duration::ZERO,
            newest_symbol: None,
            feedback_due: None,
            feedback_sent: None,
            feedback_interval: INTERVALS.0,
            feedback_sequence: 0,
            events: VecDeque::new(),
            counters: ReceiverCounters::default(),
        }
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> &ReceiverCounters {
        &self.counters
    }

    /// Returns the memory of the symbols of all open frames, in octets.
    #[must_use]
    pub const fn buffered_octets(&self) -> usize {
        self.octets
    }

    /// Returns the queueing delay of the last datagram.
    #[must_use]
    pub const fn queueing_delay(&self) -> Duration {
        self.arrivals.queue_last
    }

    /// Processes a received datagram. Symbols of open frames keep the memory of their datagrams, so a datagram should not be
    /// a part of a much larger buffer.
    pub fn handle_datagram(&mut self, now: Mono, datagram: &Bytes) {
        let Ok(parsed) = Datagram::parse(datagram) else {
            self.counters.received += 1;
            return self.drop_datagram(ReceiverDropReason::Malformed);
        };
        match self.peer.observe(now, parsed.epoch) {
            Observed::Current => {}
            Observed::Started => self.restart(),
            Observed::Refused => {
                self.counters.received += 1;
                return self.drop_datagram(ReceiverDropReason::Epoch);
            }
        }
        self.handle_body(now, &parsed.body, datagram.len());
    }

    /// Processes a datagram of the given epoch, which the caller has checked.
    pub(crate) fn handle_parsed(&mut self, now: Mono, epoch: u32, body: &Body, octets: usize) {
        if self.peer.adopt(now, epoch) == Observed::Started {
            self.restart();
        }
        self.handle_body(now, body, octets);
    }

    /// Processes a datagram of the current epoch of the sender.
    fn handle_body(&mut self, now: Mono, body: &Body, octets: usize) {
        self.counters.received += 1;
        self.handle_timeout(now);
        let result = match body {
            Body::Symbol(symbol) => self.handle_symbol(symbol, octets),
            Body::Probe(probe) => {
                self.arrivals.accept(now, probe.transmission, probe.sent_us, octets).map(|_| self.counters.probes += 1)
            }
            _ => Err(ReceiverDropReason::Unexpected),
        };
        match (body, result) {
            (Body::Probe(_), Ok(())) => {
                self.feedback_interval = self.interval();
                self.request_feedback(Duration::ZERO);
            }
            // A symbol that is not needed means that the sender lacks feedback.
            (_, Ok(()) | Err(ReceiverDropReason::Unneeded | ReceiverDropReason::FrameClosed)) => {
                self.feedback_interval = self.interval();
                self.request_feedback(self.feedback_interval);
            }
            (_, Err(_)) => {}
        }
        if let Err(reason) = result {
            self.drop_datagram(reason);
        }
    }

    fn drop_datagram(&mut self, reason: ReceiverDropReason) {
        count(&mut self.counters.dropped, reason as usize);
    }

    fn handle_symbol(&mut self, symbol: &Symbol, octets: usize) -> Result<(), ReceiverDropReason> {
        let round_trip = micros::from_tenths_of_ms(symbol.round_trip_100us);
        // An older symbol has an older round trip. Probes, which may overtake symbols, have none.
        let ahead = self.newest_symbol.map(|newest| symbol.transmission.wrapping_sub(newest).cast_signed());
        let is_newest = ahead.is_none_or(|ahead| ahead > 0);
        if is_newest && !self.round_trip.is_zero() && round_trip > 2 * self.round_trip + DETOUR_MARGIN {
            // The path has become longer. The additional delay is part of the round trip, and not a queue.
            self.arrivals.forget_base();
        }
        let queued = self.arrivals.accept(self.now, symbol.transmission, symbol.sent_us, octets)?;
        if is_newest {
            self.round_trip = round_trip;
            self.newest_symbol = Some(symbol.transmission);
        }
        let stream = self.stream(symbol)?;
        let deadline = self.deadline(symbol, queued).ok_or(ReceiverDropReason::FrameClosed);
        let frame = self.open_frame(stream, symbol, deadline)?;
        self.store(stream, frame, symbol, queued)
    }

    /// Returns the index of the stream of a symbol, and makes its frame the latest one if it is.
    fn stream(&mut self, symbol: &Symbol) -> Result<usize, ReceiverDropReason> {
        if let Some(index) = self.streams.iter().position(|stream| stream.id == symbol.stream) {
            let overtaken = self.streams.get_mut(index).map(|stream| stream.advance(symbol.frame));
            for frame in overtaken.unwrap_or_default() {
                self.lose(index, &frame, FrameLoss::Superseded);
            }
            return Ok(index);
        }
        if self.streams.len() >= STREAMS_MAX {
            return Err(ReceiverDropReason::Streams);
        }
        self.streams.push(IncomingStream::new(symbol.stream, symbol.frame));
        Ok(self.streams.len() - 1)
    }

    /// Returns the deadline of a frame by this clock, or `None` if it has passed.
    ///
    /// The transit of the symbol took at most the shortest round trip and its queueing delay, so the deadline is never
    /// later than that of the sender.
    fn deadline(&self, symbol: &Symbol, queued: Duration) -> Option<Mono> {
        let age = micros::from_tenths_of_ms(symbol.age_100us) + queued + self.round_trip;
        let left = Duration::from_millis(u64::from(symbol.lifespan_ms)).checked_sub(age)?;
        Some(self.now.plus(left))
    }

    /// Returns the index of the open frame of a symbol, which is opened if necessary.
    fn open_frame(
        &mut self,
        stream: usize,
        symbol: &Symbol,
        deadline: Result<Mono, ReceiverDropReason>,
    ) -> Result<usize, ReceiverDropReason> {
        let entry = self.streams.get_mut(stream).ok_or(ReceiverDropReason::Streams)?;
        match entry.state(symbol.frame) {
            FrameState::Open(index) => {
                let frame = entry.open.get_mut(index).ok_or(ReceiverDropReason::FrameClosed)?;
                if frame.shape != symbol.shape {
                    return Err(ReceiverDropReason::Inconsistent);
                }
                frame.deadline = frame.deadline.min(deadline?);
                return Ok(index);
            }
            FrameState::Delivered => return Err(ReceiverDropReason::Unneeded),
            FrameState::Abandoned => return Err(ReceiverDropReason::FrameClosed),
            FrameState::Unknown => {}
        }
        let frame = IncomingFrame::new(symbol.frame, symbol.shape, deadline?);
        let displaced = (entry.open.len() >= FRAMES_PER_STREAM_MAX).then(|| entry.open.remove(0));
        entry.open.push(frame);
        if let Some(displaced) = displaced {
            self.lose(stream, &displaced, FrameLoss::Superseded);
        }
        Ok(self.streams.get(stream).map_or(0, |entry| entry.open.len() - 1))
    }

    fn store(
        &mut self,
        stream: usize,
        frame: usize,
        symbol: &Symbol,
        queued: Duration,
    ) -> Result<(), ReceiverDropReason> {
        let entry = self.streams.get_mut(stream).ok_or(ReceiverDropReason::Streams)?;
        let open = entry.open.get_mut(frame).ok_or(ReceiverDropReason::FrameClosed)?;
        let octets = open.add(symbol.index, symbol.payload.clone()).ok_or(ReceiverDropReason::DuplicateSymbol)?;
        self.octets += octets;
        self.counters.stored += 1;
        if open.needed() == 0 {
            let complete = entry.open.remove(frame);
            self.finish(stream, &complete, symbol, queued);
        } else {
            self.free_memory();
        }
        Ok(())
    }

    /// Decodes and delivers a frame with enough symbols.
    fn finish(&mut self, stream: usize, frame: &IncomingFrame, last: &Symbol, queued: Duration) {
        let decoded = self.decoder.frame(frame.shape, &frame.symbols);
        self.octets = self.octets.saturating_sub(frame.memory());
        if let Some(entry) = self.streams.get_mut(stream) {
            entry.close(frame.number, decoded.is_some());
        }
        self.request_feedback(Duration::ZERO);
        let Some(data) = decoded else { return self.count_lost(last.stream, frame, FrameLoss::Undecodable) };
        self.counters.frames_arrived += 1;
        self.counters.frames_decoded += u64::from(frame.is_missing_sources());
        let transit = self.round_trip / 2 + queued;
        let age = micros::from_tenths_of_ms(last.age_100us);
        self.emit(ReceiverEvent::Arrived(ArrivedFrame {
            stream: last.stream,
            number: frame.number,
            data,
            latency: age + transit,
            pushed_us: last.sent_us.wrapping_sub(micros::of_duration(age)),
            deadline: frame.deadline,
            symbols_needed: frame.shape.sources(),
            symbols_repaired: frame.repaired_sources(),
        }));
    }

    /// Abandons the frames with the earliest deadlines until the symbols fit into the memory.
    fn free_memory(&mut self) {
        while self.octets > self.settings.octets_max {
            let open = self.streams.iter().enumerate().flat_map(|(index, stream)| {
                stream.open.iter().enumerate().map(move |(frame, open)| (open.deadline, index, frame))
            });
            let Some((_, stream, frame)) = open.min() else { return };
            self.abandon(stream, frame, FrameLoss::Memory);
        }
    }

    fn abandon(&mut self, stream: usize, frame: usize, reason: FrameLoss) {
        let Some(entry) = self.streams.get_mut(stream) else { return };
        if frame < entry.open.len() {
            let frame = entry.open.remove(frame);
            self.lose(stream, &frame, reason);
        }
    }

    /// Closes a frame that was removed from the list of open frames.
    fn lose(&mut self, stream: usize, frame: &IncomingFrame, reason: FrameLoss) {
        self.octets = self.octets.saturating_sub(frame.memory());
        let Some(entry) = self.streams.get_mut(stream) else { return };
        entry.close(frame.number, false);
        let id = entry.id;
        self.count_lost(id, frame, reason);
    }

    fn count_lost(&mut self, stream: crate::wire::StreamId, frame: &IncomingFrame, reason: FrameLoss) {
        count(&mut self.counters.lost, reason as usize);
        self.emit(ReceiverEvent::Lost(LostFrame {
            stream,
            number: frame.number,
            reason,
            symbols_needed: frame.shape.sources(),
            symbols_arrived: frame.arrived(),
        }));
    }

    /// Forgets everything about the sender.
    fn restart(&mut self) {
        let had_peer = self.arrivals.largest().is_some();
        for stream in 0..self.streams.len() {
            while self.streams.get(stream).is_some_and(|entry| !entry.open.is_empty()) {
                self.abandon(stream, 0, FrameLoss::Restart);
            }
        }
        self.streams.clear();
        self.arrivals = Arrivals::default();
        if had_peer {
            self.emit(ReceiverEvent::SenderRestarted);
        }
    }

    fn emit(&mut self, event: ReceiverEvent) {
        if self.events.len() >= EVENTS_MAX {
            self.events.pop_front();
            self.counters.events_dropped += 1;
        }
        self.events.push_back(event);
    }

    /// Processes the time: frames whose deadline has passed are lost.
    pub fn handle_timeout(&mut self, now: Mono) {
        self.now = self.now.max(now);
        for stream in 0..self.streams.len() {
            while let Some(frame) = self.expired_frame(stream) {
                self.abandon(stream, frame, FrameLoss::Deadline);
            }
        }
    }

    fn expired_frame(&self, stream: usize) -> Option<usize> {
        self.streams.get(stream)?.open.iter().position(|frame| frame.deadline < self.now)
    }

    /// Returns the time at which [`Self::handle_timeout`] must be called, or `None`.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Mono> {
        let frames = self.streams.iter().flat_map(|stream| &stream.open);
        let expiry = frames.map(|frame| frame.deadline.plus(Duration::from_nanos(1)));
        expiry.chain(self.feedback_due).min()
    }

    /// Returns the next datagram to send, or `None`.
    pub fn poll_transmit(&mut self) -> Option<Bytes> {
        self.feedback_due.filter(|due| *due <= self.now)?;
        self.feedback_due = None;
        let feedback = self.feedback()?;
        self.feedback_sent = Some(self.now);
        self.counters.feedbacks += 1;
        let open = self.streams.iter().any(|stream| !stream.open.is_empty());
        if open || feedback.settled != feedback.largest {
            self.feedback_due = Some(self.now.plus(self.feedback_interval));
            self.feedback_interval = (self.feedback_interval * 3 / 2).min(INTERVAL_IDLE_MAX);
        }
        Some(feedback.write(self.epoch))
    }

    /// Returns the next event, or `None`.
    pub fn poll_event(&mut self) -> Option<ReceiverEvent> {
        self.events.pop_front()
    }

    /// Returns the time between two feedbacks while datagrams arrive: a quarter of the round trip, within limits.
    fn interval(&self) -> Duration {
        (self.round_trip / 4).clamp(INTERVALS.0, INTERVALS.1)
    }

    /// Schedules a feedback after the given time at the latest.
    fn request_feedback(&mut self, after: Duration) {
        let earliest = self.feedback_sent.map_or(self.now, |sent| sent.plus(INTERVAL_MIN));
        let due = self.now.plus(after).max(earliest);
        self.feedback_due = Some(self.feedback_due.map_or(due, |scheduled| scheduled.min(due)));
    }

    fn feedback(&mut self) -> Option<Feedback> {
        let (largest, largest_at) = self.arrivals.largest()?;
        self.feedback_sequence = self.feedback_sequence.wrapping_add(1);
        Some(Feedback {
            peer_epoch: self.peer.current()?,
            sequence: self.feedback_sequence,
            largest: largest as u32,
            settled: self.arrivals.settle(self.now) as u32,
            hold_us: micros::of_duration(self.now.since(largest_at)),
            arrived_us: micros::of_clock(largest_at),
            queue_min_us: micros::of_duration(self.arrivals.take_queue_min()),
            queue_last_us: micros::of_duration(self.arrivals.queue_last),
            jitter_us: micros::of_duration(self.arrivals.jitter),
            received: self.arrivals.received as u32,
            received_octets: self.arrivals.received_octets as u32,
            lost_random: self.arrivals.lost_random as u32,
            lost_outage: self.arrivals.lost_outage as u32,
            streams: self.streams.iter().map(IncomingStream::report).collect(),
            missing: self.streams.iter().flat_map(IncomingStream::missing).take(MISSING_NAMED_MAX).collect(),
        })
    }
}
