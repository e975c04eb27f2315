//! The sender of frames.

mod budget;
mod counters;
mod overload;
mod probes;

use std::{cmp::Reverse, collections::VecDeque, time::Duration};

use bytes::Bytes;
use viaduct_units::Mono;

use super::{
    FrameLoss, Outcome, SenderSettings, SentFrame, SettingsError, Shape, StreamSettings,
    code::{Encoder, build_code_tables},
    delivery::{Arrival, DeliveryMeter},
    flight::{Flight, FrameKey, Record, widen},
    outgoing::OutgoingFrame,
    redundancy::symbols_to_send,
};
use budget::EncoderBudget;
use overload::Overload;
use probes::ProbeTimer;

pub use counters::{SenderCounters, SenderDropReason};

use crate::{
    limits::{EVENTS_MAX, FRAMES_PER_STREAM_MAX, FRAMES_REPORTED, MISSING_NAMED_MAX},
    micros,
    pacing::{Bucket, RateController},
    reason::count,
    round_trip::RoundTrip,
    wire::{
        Body, Datagram, Feedback, MissingSymbol, Probe, SYMBOL_HEADER_OCTETS, StreamId, StreamReport, SymbolHeader,
        write_symbol,
    },
};

/// Longest interval of feedback that the receiver uses.
const FEEDBACK_INTERVAL_MAX: Duration = Duration::from_millis(5);
/// Shortest interval of feedback that the receiver uses.
const FEEDBACK_INTERVAL_MIN: Duration = Duration::from_millis(1);
/// Time beyond the expected one after which the arrival of a datagram is overdue.
const STALL_MARGIN: Duration = Duration::from_millis(20);
/// Time by which feedback may be later than expected without a pause.
const FLIGHT_MARGIN: Duration = Duration::from_millis(1);
/// Largest jitter that is taken into account.
const JITTER_MAX: Duration = Duration::from_millis(50);
/// Octets that may always be in flight.
const FLIGHT_OCTETS_MIN: u64 = 8 * 1400;

/// The reason why a frame is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// The stream is not in the settings.
    #[error("stream {0} is not in the settings")]
    Stream(StreamId),
    /// The frame is empty or too long.
    #[error("a frame has 1 to 8388608 octets, not {0}")]
    Octets(usize),
}

/// An event of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SenderEvent {
    /// A frame is finished.
    Frame(SentFrame),
    /// The queue of the link is too long. No frames are sent until it is shorter.
    Stopped,
    /// Frames are sent again.
    Resumed,
}

/// A sender of frames.
///
/// **After each input, take every datagram from [`Sender::poll_transmit`] and every event from [`Sender::poll_event`],
/// then read [`Sender::poll_timeout`], before the next input.**
#[derive(Debug)]
pub struct Sender {
    settings: SenderSettings,
    /// Epoch of this sender.
    epoch: u32,
    now: Mono,
    /// Number of the next frame of each stream, in the order of the settings.
    next_frames: Vec<u32>,
    /// Time of the latest frame of each stream.
    pushed: Vec<Option<Mono>>,
    /// Unfinished frames, oldest first.
    frames: Vec<OutgoingFrame>,
    flight: Flight,
    encoder: Encoder,
    round_trip: RoundTrip,
    delivery: DeliveryMeter,
    rate: RateController,
    bucket: Bucket,
    /// Epoch of the receiver and sequence number of its latest feedback.
    feedback: Option<(u32, u32)>,
    /// Jitter of the latest feedback.
    jitter: Duration,
    overload: Overload,
    budget: EncoderBudget,
    probes: ProbeTimer,
    events: VecDeque<SenderEvent>,
    counters: SenderCounters,
}

impl Sender {
    /// Returns a sender. The epoch must differ from that of an earlier start.
    ///
    /// # Errors
    /// The invalid setting.
    pub fn new(settings: SenderSettings, epoch: u32) -> Result<Self, SettingsError> {
        settings.check()?;
        build_code_tables();
        Ok(Self {
            epoch,
            now: Mono::default(),
            next_frames: vec![0; settings.streams.len()],
            pushed: vec![None; settings.streams.len()],
            frames: Vec::new(),
            flight: Flight::default(),
            encoder: Encoder::default(),
            round_trip: RoundTrip::default(),
            delivery: DeliveryMeter::default(),
            rate: RateController::new(settings.pacing),
            bucket: Bucket::default(),
            feedback: None,
            jitter: Duration::ZERO,
            overload: Overload::default(),
            budget: EncoderBudget::default(),
            probes: ProbeTimer::default(),
            events: VecDeque::new(),
            counters: SenderCounters::default(),
            settings,
        })
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> &SenderCounters {
        &self.counters
    }

    /// Returns the current rate in bits per second, with the overhead of lower layers.
    #[must_use]
    pub fn rate_bits_per_second(&self) -> u64 {
        (8.0 * self.rate.rate()) as u64
    }

    /// Returns the rate that the encoders of all streams may use together, in bits per second: 0 while a queue has stopped
    /// the sender, or the link does not respond.
    #[must_use]
    pub fn target_bits_per_second(&self) -> u64 {
        if self.rate.is_stopped() || self.is_stalled() {
            return 0;
        }
        let whole = (self.settings.datagram_octets + self.settings.pacing.overhead_octets) as f64;
        let payload = (self.settings.datagram_octets - SYMBOL_HEADER_OCTETS) as f64 / whole;
        let share = self.settings.pacing.encoder_share * (1.0 - self.delivery.loss());
        (8.0 * self.rate.rate() * payload * share) as u64
    }

    /// Returns the octets of frames that encoders may push now, all streams together: those that
    /// [`Self::target_bits_per_second`] allowed since the last frames, at most those of 0.1 s, or 0 if the link does not
    /// respond.
    #[must_use]
    pub fn budget_octets(&self) -> usize {
        if self.is_stalled() || self.rate.is_stopped() {
            return 0;
        }
        let backlog = self.pending_octets() + self.flight.octets().saturating_sub(self.flight_octets_max() / 2);
        self.budget.remaining(backlog)
    }

    /// Returns `true` if the arrival of a datagram is overdue: the link is interrupted or has a queue.
    #[must_use]
    pub fn is_stalled(&self) -> bool {
        let Some(sent) = self.flight.first_awaited() else { return false };
        let expected = self.round_trip.shortest().unwrap_or(probes::INTERVAL_MAX) + 2 * self.feedback_interval();
        self.now.since(sent) > expected + STALL_MARGIN.max(4 * self.jitter)
    }

    fn pending_octets(&self) -> u64 {
        self.frames.iter().map(OutgoingFrame::pending_octets).sum()
    }

    /// Returns the queueing delay of the link.
    #[must_use]
    pub const fn queueing_delay(&self) -> Duration {
        self.rate.queue()
    }

    /// Returns the smoothed round trip, or `None` before the first feedback.
    #[must_use]
    pub const fn round_trip(&self) -> Option<Duration> {
        self.round_trip.smoothed()
    }

    /// Returns the estimated probability that a datagram is lost at random, outages excluded.
    #[must_use]
    pub const fn random_loss(&self) -> f64 {
        self.delivery.loss()
    }

    /// Returns the number of frames that are neither confirmed nor lost.
    #[must_use]
    pub fn unfinished_frames(&self) -> usize {
        self.frames.len()
    }

    /// Accepts a frame and returns its number in the stream.
    ///
    /// # Errors
    /// The frame is not accepted.
    pub fn push(&mut self, now: Mono, stream: StreamId, data: Bytes) -> Result<u32, PushError> {
        self.handle_timeout(now);
        let position = self.settings.streams.iter().position(|settings| settings.id == stream);
        let settings = position.and_then(|position| self.settings.streams.get(position)).copied();
        let (Some(position), Some(settings)) = (position, settings) else { return Err(PushError::Stream(stream)) };
        let longest = self.settings.datagram_octets - SYMBOL_HEADER_OCTETS;
        let shape = Shape::new(data.len(), longest).ok_or(PushError::Octets(data.len()))?;
        self.make_room(&settings);
        let number = self.take_number(position);
        if self.is_idle() {
            self.delivery.note_idle();
        }
        self.counters.frames += 1;
        self.counters.frame_octets += data.len() as u64;
        self.budget.take(data.len());
        let mut frame = OutgoingFrame::new(self.now, FrameKey { stream, number }, data, shape, &settings);
        frame.require(self.to_send(u32::from(shape.sources())));
        self.frames.push(frame);
        let before = self.pushed.get_mut(position).and_then(|pushed| pushed.replace(self.now));
        self.shed(before.map_or(Duration::ZERO, |before| self.now.since(before)));
        if self.round_trip.smoothed().is_none() && self.flight.is_empty() {
            self.probes.repeat(None, true);
        }
        Ok(number)
    }

    /// Drops frames of lower ranks if the link is too slow for all frames, so that those of the first rank arrive before their
    /// deadlines. A short overload, for example after a stall of the sender's machine, drops nothing. The interval is that between
    /// the latest two frames of the stream.
    fn shed(&mut self, interval: Duration) {
        let (is_overloaded, lifespan) = (self.is_overloaded(), self.shortest_lifespan());
        if !self.overload.is_lasting(is_overloaded, self.now, lifespan, interval) {
            return;
        }
        let first = self.settings.streams.iter().map(|stream| stream.priority).min().unwrap_or(0);
        while self.is_overloaded() {
            let lower =
                self.frames.iter().enumerate().filter(|(_, frame)| frame.priority > first && frame.pending() > 0);
            let victim = lower.max_by_key(|(_, frame)| (frame.priority, Reverse(frame.deadline)));
            let Some((index, _)) = victim else { return };
            self.finish(index, Outcome::Lost(FrameLoss::Capacity));
        }
    }

    fn shortest_lifespan(&self) -> Duration {
        self.settings.streams.iter().map(|stream| stream.lifespan).min().unwrap_or_default()
    }

    /// Returns `true` if the link needs longer than half of a frame's lifespan for that frame and those before it, at the
    /// measured rate.
    fn is_overloaded(&self) -> bool {
        if !self.rate.is_settled() {
            return false;
        }
        let mut pending: Vec<&OutgoingFrame> = self.frames.iter().filter(|frame| frame.pending() > 0).collect();
        pending.sort_unstable_by_key(|frame| (frame.deadline, frame.priority));
        let mut octets = 0;
        pending.into_iter().any(|frame| {
            octets += frame.pending_octets();
            let wait = Duration::try_from_secs_f64(octets as f64 / self.rate.rate()).unwrap_or(Duration::MAX);
            wait > frame.deadline.since(frame.pushed) / 2
        })
    }

    fn take_number(&mut self, position: usize) -> u32 {
        let Some(next) = self.next_frames.get_mut(position) else { return 0 };
        let number = *next;
        *next = next.wrapping_add(1);
        number
    }

    /// Removes the oldest frames of a stream so that one more has room.
    fn make_room(&mut self, settings: &StreamSettings) {
        let of_stream = |frame: &OutgoingFrame| frame.key.stream == settings.id;
        let is_open = |frame: &OutgoingFrame| of_stream(frame) && !frame.is_closed();
        while self.frames.iter().filter(|frame| is_open(frame)).count() >= settings.keep_last {
            let Some(oldest) = self.frames.iter().position(is_open) else { return };
            self.finish(oldest, Outcome::Lost(FrameLoss::Superseded));
        }
        while self.frames.iter().filter(|frame| of_stream(frame)).count() >= FRAMES_PER_STREAM_MAX {
            let Some(oldest) = self.frames.iter().position(of_stream) else { return };
            self.finish(oldest, Outcome::Lost(FrameLoss::Deadline));
        }
    }

    /// Returns the number of symbols to send so that `needed` of them are likely to arrive.
    fn to_send(&self, needed: u32) -> u32 {
        symbols_to_send(needed, self.delivery.loss(), self.round_trip.smoothed().unwrap_or_default())
    }

    /// Processes a received datagram.
    pub fn handle_datagram(&mut self, now: Mono, datagram: &Bytes) {
        match Datagram::parse(datagram) {
            Ok(Datagram { epoch, body: Body::Feedback(feedback) }) => self.handle_parsed(now, epoch, &feedback),
            Ok(_) => self.drop_datagram(SenderDropReason::Unexpected),
            Err(_) => self.drop_datagram(SenderDropReason::Malformed),
        }
    }

    fn drop_datagram(&mut self, reason: SenderDropReason) {
        self.counters.received += 1;
        count(&mut self.counters.dropped, reason as usize);
    }

    /// Processes feedback of the receiver with the given epoch.
    pub(crate) fn handle_parsed(&mut self, now: Mono, epoch: u32, feedback: &Feedback) {
        match self.handle_feedback(now, epoch, feedback) {
            Ok(()) => self.counters.received += 1,
            Err(reason) => self.drop_datagram(reason),
        }
    }

    fn handle_feedback(&mut self, now: Mono, epoch: u32, feedback: &Feedback) -> Result<(), SenderDropReason> {
        self.handle_timeout(now);
        if feedback.peer_epoch != self.epoch {
            return Err(SenderDropReason::Epoch);
        }
        let Some(last) = self.flight.next().checked_sub(1) else { return Err(SenderDropReason::Implausible) };
        let (largest, settled) = (widen(last, feedback.largest), widen(last, feedback.settled));
        if largest > last || settled > largest {
            return Err(SenderDropReason::Implausible);
        }
        self.accept_sequence(epoch, feedback.sequence)?;
        let awaited = self.flight.first_awaited();
        let arrival = self.flight.arrive(largest, feedback.arrived_us);
        if let Some(arrival) = arrival {
            let held = micros::duration(feedback.hold_us);
            self.round_trip.measure(self.now, self.now.since(arrival.sent).saturating_sub(held));
        }
        self.settle(settled);
        self.control_rate(feedback, arrival);
        for stream in &feedback.streams {
            self.handle_report(stream);
            self.note_missing(feedback, stream, settled);
        }
        self.require_unreported(&feedback.streams);
        // Feedback without progress must not delay a probe: the last datagrams may be lost.
        if awaited != self.flight.first_awaited() || self.probes.due().is_none() {
            self.arm_probe();
        }
        Ok(())
    }

    /// Checks that the feedback is later than the latest one.
    fn accept_sequence(&mut self, epoch: u32, sequence: u32) -> Result<(), SenderDropReason> {
        match self.feedback {
            Some((latest_epoch, latest)) if latest_epoch == epoch => {
                if sequence.wrapping_sub(latest).cast_signed() <= 0 {
                    return Err(SenderDropReason::Outdated);
                }
            }
            // A receiver that has restarted counts from the beginning.
            _ => self.delivery.restart(),
        }
        self.feedback = Some((epoch, sequence));
        Ok(())
    }

    fn settle(&mut self, settled: u64) {
        while let Some(record) = self.flight.settle_next(settled) {
            self.settle_record(&record);
        }
    }

    fn settle_record(&mut self, record: &Record) {
        let Some(key) = record.frame else { return };
        if let Some(frame) = self.frames.iter_mut().find(|frame| frame.key == key) {
            frame.settle();
        }
    }

    fn control_rate(&mut self, feedback: &Feedback, arrival: Option<Arrival>) {
        let was_stopped = self.rate.is_stopped();
        let round_trip = self.round_trip.shortest().unwrap_or_default();
        self.jitter = micros::duration(feedback.jitter_us).min(JITTER_MAX);
        let queue = micros::duration(feedback.queue_min_us);
        if self.rate.handle_queue(self.now, queue, round_trip, self.jitter) {
            self.round_trip.forget_shortest();
        }
        if let Some(delivery) = self.delivery.handle(feedback, arrival) {
            self.rate.handle_delivery(self.now, &delivery, round_trip);
        }
        self.counters.stops = self.rate.stops();
        match (was_stopped, self.rate.is_stopped()) {
            (false, true) => self.emit(SenderEvent::Stopped),
            (true, false) => self.emit(SenderEvent::Resumed),
            _ => {}
        }
    }

    fn handle_report(&mut self, report: &StreamReport) {
        let mut index = 0;
        while let Some(frame) = self.frames.get(index) {
            let finished = if frame.key.stream == report.stream { self.apply_report(index, report) } else { None };
            match finished {
                Some(outcome) => self.finish(index, outcome),
                None => index += 1,
            }
        }
    }

    /// Applies a report to one frame of its stream. Returns the outcome of the frame if it is finished.
    fn apply_report(&mut self, index: usize, report: &StreamReport) -> Option<Outcome> {
        let number = self.frames.get(index)?.key.number;
        let before = report.latest.wrapping_sub(number);
        if before.cast_signed() < 0 {
            // The receiver has no symbol of the frame yet.
            self.require(index, None);
            return None;
        }
        let bit = if before < FRAMES_REPORTED { 1_u32 << before } else { 0 };
        if report.delivered & bit != 0 {
            return Some(Outcome::Arrived);
        }
        if report.abandoned & bit != 0 || bit == 0 {
            return Some(Outcome::Lost(FrameLoss::Abandoned));
        }
        let open = report.open.iter().find(|open| u32::from(open.before_latest) == before);
        self.require(index, open.map(|open| open.needed));
        None
    }

    /// Notes which source symbols of the frames of a stream are lost.
    fn note_missing(&mut self, feedback: &Feedback, report: &StreamReport, settled: u64) {
        let all_named = feedback.missing.len() < MISSING_NAMED_MAX;
        for frame in self.frames.iter_mut().filter(|frame| frame.key.stream == report.stream) {
            let before = report.latest.wrapping_sub(frame.key.number);
            let of_frame =
                |symbol: &&MissingSymbol| symbol.stream == report.stream && u32::from(symbol.before_latest) == before;
            let named: Vec<u16> = feedback.missing.iter().filter(of_frame).map(|symbol| symbol.index).collect();
            let open = report.open.iter().find(|open| u32::from(open.before_latest) == before);
            frame.note_missing(&named, open.filter(|_| all_named).map(|open| open.needed), settled);
        }
    }

    /// Requires the symbols of frames whose stream the receiver does not know.
    fn require_unreported(&mut self, reports: &[StreamReport]) {
        for index in 0..self.frames.len() {
            let stream = self.frames.get(index).map(|frame| frame.key.stream);
            if !reports.iter().any(|report| Some(report.stream) == stream) {
                self.require(index, None);
            }
        }
    }

    /// Requires a number of further symbols of a frame, or all of them if `None`.
    fn require(&mut self, index: usize, needed: Option<u16>) {
        let Some(frame) = self.frames.get(index) else { return };
        let sources = frame.shape.sources();
        let outstanding = self.to_send(u32::from(needed.unwrap_or(sources).min(sources)));
        if let Some(frame) = self.frames.get_mut(index) {
            frame.require(outstanding);
        }
    }

    fn finish(&mut self, index: usize, outcome: Outcome) {
        if index >= self.frames.len() {
            return;
        }
        let frame = self.frames.remove(index);
        match outcome {
            Outcome::Arrived => self.counters.frames_arrived += 1,
            Outcome::Lost(reason) => {
                count(&mut self.counters.lost, reason as usize);
            }
        }
        self.emit(SenderEvent::Frame(frame.report(self.now, outcome)));
    }

    fn emit(&mut self, event: SenderEvent) {
        if self.events.len() >= EVENTS_MAX {
            self.events.pop_front();
            self.counters.events_dropped += 1;
        }
        self.events.push_back(event);
    }

    /// Processes the time: frames that can no longer arrive in time are no longer sent, and probes are due.
    pub fn handle_timeout(&mut self, now: Mono) {
        self.budget.refill(now.since(self.now), self.target_bits_per_second() as f64 / 8.0);
        self.now = self.now.max(now);
        self.close_frames();
        // A late timer must not lower the rate.
        let bursts = if self.may_send() { 2.0 } else { 1.0 };
        self.bucket.refill(self.now, self.rate.rate(), bursts * self.burst_octets());
        if self.probes.take_due(self.now) && self.awaits_feedback() {
            self.probes.repeat(self.round_trip.smoothed(), !self.frames.is_empty());
        }
    }

    /// Ends the sending of frames of which no symbol can arrive before the deadline. Feedback about a frame is awaited for
    /// a while longer, since its last symbols may have been sufficient.
    fn close_frames(&mut self) {
        let transit = self.transit();
        for frame in &mut self.frames {
            if frame.last_chance(transit) <= self.now {
                frame.close();
            }
        }
        let grace = self.overdue();
        while let Some(index) = self.frames.iter().position(|frame| frame.deadline.plus(grace) <= self.now) {
            self.finish(index, Outcome::Lost(FrameLoss::Deadline));
        }
    }

    /// Returns the shortest transit time.
    fn transit(&self) -> Duration {
        self.round_trip.shortest().unwrap_or_default() / 2
    }

    /// Returns the time at which [`Self::handle_timeout`] must be called, or `None`.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Mono> {
        let (transit, grace) = (self.transit(), self.overdue());
        let expiry = self.frames.iter().map(|frame| match frame.is_closed() {
            true => frame.deadline.plus(grace),
            false => frame.last_chance(transit),
        });
        let burst = self.may_send().then(|| {
            let octets = self.burst_octets().min(self.pending_octets() as f64 + 1.0);
            self.bucket.holds_at(self.rate.rate(), octets)
        });
        expiry.chain(burst).chain(self.probes.due()).min()
    }

    /// Returns the next datagram to send, or `None`.
    pub fn poll_transmit(&mut self) -> Option<Bytes> {
        if self.probes.take_pending(self.now) {
            return Some(self.probe());
        }
        if !self.may_send() || !self.bucket.has_tokens() {
            return None;
        }
        let index = self.most_urgent()?;
        self.transmit_symbol(index)
    }

    /// Returns the next event, or `None`.
    pub fn poll_event(&mut self) -> Option<SenderEvent> {
        self.events.pop_front()
    }

    /// Returns `true` if a symbol is pending and neither a queue nor the octets in flight forbid to send it. Before the
    /// first feedback the receiver could not tell whether a frame is late.
    fn may_send(&self) -> bool {
        self.round_trip.smoothed().is_some()
            && !self.rate.is_stopped()
            && self.flight.octets() < self.flight_octets_max()
            && self.frames.iter().any(|frame| frame.pending() > 0)
    }

    /// Returns the frame with pending symbols and the earliest deadline, and the first rank among those.
    fn most_urgent(&self) -> Option<usize> {
        let pending = self.frames.iter().enumerate().filter(|(_, frame)| frame.pending() > 0);
        pending.min_by_key(|(_, frame)| (frame.deadline, frame.priority, frame.key)).map(|(index, _)| index)
    }

    fn transmit_symbol(&mut self, index: usize) -> Option<Bytes> {
        let transmission = self.flight.next();
        let frame = self.frames.get_mut(index)?;
        let (symbol, payload) = frame.next_symbol(transmission, &mut self.encoder)?;
        let octets = SYMBOL_HEADER_OCTETS + payload.len();
        frame.count_octets(octets);
        let header = SymbolHeader {
            transmission: transmission as u32,
            sent_us: micros::of_clock(self.now),
            round_trip_100us: micros::tenths_of_ms(self.round_trip.shortest().unwrap_or_default()),
            stream: frame.key.stream,
            frame: frame.key.number,
            index: symbol,
            shape: frame.shape,
            age_100us: micros::tenths_of_ms(self.now.since(frame.pushed)),
            lifespan_ms: frame.lifespan_ms,
        };
        let key = frame.key;
        self.record(octets, Some(key));
        self.bucket.take(octets + self.settings.pacing.overhead_octets);
        self.counters.symbols += 1;
        self.counters.symbol_octets += octets as u64;
        self.end_train();
        Some(write_symbol(self.epoch, &header, &payload))
    }

    /// Returns `true` if no symbol is pending.
    fn is_idle(&self) -> bool {
        self.frames.iter().all(|frame| frame.pending() == 0)
    }

    /// Sends a probe after the last pending symbol, so that the loss of the last symbols is noticed after a round trip.
    fn end_train(&mut self) {
        if self.is_idle() {
            self.delivery.note_idle();
            self.probes.send_now(self.overdue());
        }
    }

    fn probe(&mut self) -> Bytes {
        let probe = Probe { transmission: self.flight.next() as u32, sent_us: micros::of_clock(self.now) };
        let datagram = probe.write(self.epoch);
        self.record(datagram.len(), None);
        self.counters.probes += 1;
        datagram
    }

    fn record(&mut self, octets: usize, frame: Option<FrameKey>) {
        let was_empty = self.flight.is_empty();
        let displaced = self.flight.send(self.now, octets + self.settings.pacing.overhead_octets, frame);
        if let Some(displaced) = displaced {
            self.settle_record(&displaced);
        }
        if was_empty {
            self.arm_probe();
        }
    }

    /// Schedules a probe for the time at which feedback is overdue, if a frame depends on it.
    fn arm_probe(&mut self) {
        self.probes.arm(self.awaits_feedback().then(|| self.now.plus(self.overdue())));
    }

    /// Returns `true` if a datagram is in flight, or if feedback must end a stop.
    fn awaits_feedback(&self) -> bool {
        self.rate.is_stopped() || !self.flight.is_empty()
    }

    /// Returns the time after which feedback is overdue.
    fn overdue(&self) -> Duration {
        (self.round_trip.overdue() + 2 * self.feedback_interval()).max(probes::INTERVAL_MIN)
    }

    /// Returns the interval of feedback that the receiver uses.
    fn feedback_interval(&self) -> Duration {
        (self.round_trip.shortest().unwrap_or_default() / 4).clamp(FEEDBACK_INTERVAL_MIN, FEEDBACK_INTERVAL_MAX)
    }

    /// Returns the octets that may be in flight: those of a round trip and two intervals of feedback, and a margin.
    fn flight_octets_max(&self) -> u64 {
        let round_trip = self.round_trip.shortest().unwrap_or_default();
        let window = round_trip * 5 / 4 + 2 * self.feedback_interval() + FLIGHT_MARGIN + 4 * self.jitter;
        ((self.rate.rate() * window.as_secs_f64()) as u64).max(FLIGHT_OCTETS_MIN)
    }

    fn burst_octets(&self) -> f64 {
        let two_datagrams = 2 * (self.settings.datagram_octets + self.settings.pacing.overhead_octets);
        (self.rate.rate() * self.settings.pacing.burst.as_secs_f64()).max(two_datagrams as f64)
    }
}
