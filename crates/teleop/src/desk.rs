//! The desk's end of a flow of datagrams.

use std::{collections::VecDeque, time::Duration};

use bytes::Bytes;
use viaduct_units::{MetresPerSecond, Mono};

use crate::{
    commands::{self, Command},
    driving::{Claim, ClaimKind, ClaimOutcome, DrivingState, LimitReason, OperatorId, Reason},
    epoch::{Observed, PeerEpoch},
    frames::{Receiver, ReceiverCounters, ReceiverEvent, ReceiverSettings},
    heartbeat::{Heartbeats, LinkQuality},
    limits::{CLAIM_LIFETIME, CLAIMS_MAX, EVENTS_MAX},
    micros,
    reason::count,
    vehicle::{FlowCounters, FlowDropReason, heartbeat_times_are_valid},
    wire::{Body, Datagram, DeskHeartbeat, StreamId, Telemetry, VehicleHeartbeat},
};

/// Settings of the desk's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeskSettings {
    /// Settings of the frames.
    pub frames: ReceiverSettings,
    /// Settings of the commands.
    pub commands: commands::SenderSettings,
    /// Stream that the driver needs, usually that of the front camera. The default is 0.
    pub main_stream: StreamId,
    /// Age of the latest frame of that stream beyond which the driver has no current picture, 10 ms to 10 s. The default
    /// is 500 ms.
    pub picture_timeout: Duration,
    /// Time from the arrival of a frame to its display, at most 1 s. It counts for the speed limit of the vehicle. The
    /// default is 20 ms.
    pub display_delay: Duration,
    /// Time between two heartbeats, 5 to 100 ms. The default is 20 ms.
    pub heartbeat_interval: Duration,
    /// Time without a heartbeat of the vehicle after which the link counts as lost, at least two intervals and at most
    /// 10 s. The default is 300 ms.
    pub link_timeout: Duration,
}

impl Default for DeskSettings {
    fn default() -> Self {
        Self {
            frames: ReceiverSettings::default(),
            commands: commands::SenderSettings::default(),
            main_stream: StreamId(0),
            picture_timeout: Duration::from_millis(500),
            display_delay: Duration::from_millis(20),
            heartbeat_interval: Duration::from_millis(20),
            link_timeout: Duration::from_millis(300),
        }
    }
}

/// An invalid setting of the desk's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeskSettingsError {
    /// A setting of the commands is invalid.
    #[error(transparent)]
    Commands(#[from] commands::SenderSettingsError),
    /// A time of the heartbeats is outside the limits.
    #[error("heartbeats are sent every 5 to 100 ms, and the link is lost after two intervals to 10 s")]
    Heartbeat,
    /// A time of the pictures is outside the limits.
    #[error("`picture_timeout` must be 10 ms to 10 s, and `display_delay` at most 1 s")]
    Picture,
}

/// The state of the vehicle, as its latest heartbeat reports it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VehicleState {
    /// Time of arrival of the heartbeat.
    pub arrival: Mono,
    /// State of driving.
    pub state: DrivingState,
    /// Reason for the state.
    pub reason: Option<Reason>,
    /// Operator who has control.
    pub holder: Option<OperatorId>,
    /// Operator whose request waits.
    pub requester: Option<OperatorId>,
    /// Number of the latest grant.
    pub grant: u32,
    /// Speed, negative in reverse.
    pub speed: MetresPerSecond,
    /// Speed limit.
    pub speed_limit: MetresPerSecond,
    /// Reason for the speed limit.
    pub limit_reason: LimitReason,
    /// Sequence number of the latest command that the vehicle accepted, and its age at that time.
    pub command: Option<(u32, Duration)>,
    /// Commands refused by the vehicle, modulo 2^32.
    pub commands_refused: u32,
}

/// An event at the desk's end.
#[derive(Clone, Debug, PartialEq)]
pub enum DeskEvent {
    /// A frame has arrived or is lost, or the sender has restarted.
    Frames(ReceiverEvent),
    /// Values of the vehicle have arrived.
    Telemetry(Bytes),
    /// The state of driving, its reason, or an operator has changed.
    State(VehicleState),
    /// The vehicle has answered a claim.
    Answered(Claim, ClaimOutcome),
    /// The vehicle has not answered a claim within [`CLAIM_LIFETIME`], or has restarted. The claim is no longer sent.
    Unanswered(Claim),
    /// Heartbeats of the vehicle arrive.
    LinkUp,
    /// No heartbeats of the vehicle arrive.
    LinkDown,
    /// The vehicle has restarted. No operator has control.
    VehicleRestarted,
}

/// Time for which a measured latency from camera to screen counts.
pub const DISPLAYED_LATENCY_LIFETIME: Duration = Duration::from_secs(3);

/// A claim that waits for an answer.
#[derive(Clone, Copy, Debug)]
struct PendingClaim {
    claim: Claim,
    expiry: Mono,
}

/// Too many claims wait for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{CLAIMS_MAX} claims wait for an answer of the vehicle")]
pub struct TooManyClaims;

/// The desk's end: it receives frames and telemetry, and sends commands and claims.
///
/// **After each input, take every datagram from [`Desk::poll_transmit`] and every event from [`Desk::poll_event`], then
/// read [`Desk::poll_timeout`], before the next input.**
///
/// Commands are sent before heartbeats, and both before feedback.
#[derive(Debug)]
pub struct Desk {
    settings: DeskSettings,
    epoch: u32,
    now: Mono,
    peer: PeerEpoch,
    frames: Receiver,
    commands: commands::Sender,
    heartbeats: Heartbeats,
    up: bool,
    state: Option<VehicleState>,
    telemetry_sequence: Option<u32>,
    /// Claims without an answer, oldest first. Heartbeats carry the oldest one.
    claims: VecDeque<PendingClaim>,
    claim_number: u32,
    /// Latest frame of the main stream: its number, its arrival, and its latency at arrival.
    picture: Option<(u32, Mono, Duration)>,
    /// Smoothed time between two pictures of the main stream, or `None` before the second one.
    picture_interval: Option<Duration>,
    /// Latency from camera to screen that the operator's screen has measured, and the time of the measurement.
    displayed: Option<(Mono, Duration)>,
    events: VecDeque<DeskEvent>,
    counters: FlowCounters,
}

impl Desk {
    /// Returns an end without a vehicle. The epoch must differ from that of an earlier start.
    ///
    /// # Errors
    /// The invalid setting.
    pub fn new(settings: DeskSettings, epoch: u32) -> Result<Self, DeskSettingsError> {
        if !heartbeat_times_are_valid(settings.heartbeat_interval, settings.link_timeout) {
            return Err(DeskSettingsError::Heartbeat);
        }
        let timeouts = Duration::from_millis(10)..=Duration::from_secs(10);
        if !timeouts.contains(&settings.picture_timeout) || settings.display_delay > Duration::from_secs(1) {
            return Err(DeskSettingsError::Picture);
        }
        Ok(Self {
            epoch,
            now: Mono::default(),
            peer: PeerEpoch::default(),
            frames: Receiver::new(settings.frames, epoch),
            commands: commands::Sender::new(settings.commands)?,
            heartbeats: Heartbeats::new(settings.heartbeat_interval, settings.link_timeout),
            up: false,
            state: None,
            telemetry_sequence: None,
            claims: VecDeque::new(),
            claim_number: 0,
            picture: None,
            picture_interval: None,
            displayed: None,
            events: VecDeque::new(),
            counters: FlowCounters::default(),
            settings,
        })
    }

    /// Returns the counters of the flow.
    #[must_use]
    pub const fn counters(&self) -> &FlowCounters {
        &self.counters
    }

    /// Returns the counters of frames.
    #[must_use]
    pub const fn frame_counters(&self) -> &ReceiverCounters {
        self.frames.counters()
    }

    /// Returns the counters of commands.
    #[must_use]
    pub const fn command_counters(&self) -> &commands::SenderCounters {
        self.commands.counters()
    }

    /// Returns the receiver of frames: its memory and the queueing delay of the link.
    #[must_use]
    pub const fn frames(&self) -> &Receiver {
        &self.frames
    }

    /// Returns the sequence number of the latest command.
    #[must_use]
    pub const fn command_sequence(&self) -> u32 {
        self.commands.sequence()
    }

    /// Returns the state of the vehicle, or `None` before its first heartbeat.
    #[must_use]
    pub const fn vehicle(&self) -> Option<&VehicleState> {
        self.state.as_ref()
    }

    /// Returns the quality of the link.
    #[must_use]
    pub fn link(&self) -> LinkQuality {
        self.heartbeats.quality(self.now)
    }

    /// Returns the time of this clock for a time of the vehicle's clock in microseconds modulo 2^32, and its largest
    /// error, or `None` if the clocks are not synchronised or the time is in the future.
    #[must_use]
    pub fn time_of_vehicle(&self, vehicle_us: u32) -> Option<(Mono, Duration)> {
        let age = self.heartbeats.clock.age(self.now, vehicle_us)?.ok()?;
        Some((Mono(self.now.0.saturating_sub(age.estimate)), age.uncertainty))
    }

    /// Makes a claim of an operator, and returns its number. Claims are sent until the vehicle answers, one after the
    /// other; an emergency stop is sent before all others.
    ///
    /// # Errors
    /// Too many claims wait. An emergency stop is always accepted.
    pub fn claim(&mut self, now: Mono, kind: ClaimKind, operator: OperatorId) -> Result<u32, TooManyClaims> {
        self.handle_timeout(now);
        if kind == ClaimKind::EmergencyStop {
            // Claims made before an emergency stop must not have an effect after it.
            self.drop_claims(|_| true);
        } else if self.claims.len() >= CLAIMS_MAX {
            return Err(TooManyClaims);
        }
        self.claim_number = self.claim_number.wrapping_add(1);
        let claim = Claim { number: self.claim_number, kind, operator };
        self.claims.push_back(PendingClaim { claim, expiry: self.now.plus(CLAIM_LIFETIME) });
        self.heartbeats.hurry(self.now);
        Ok(self.claim_number)
    }

    /// Sets the input that the operator made at the given time. It is sent only while the operator has control.
    pub fn set_input(&mut self, now: Mono, operator: OperatorId, sampled: Mono, command: Command) {
        self.handle_timeout(now);
        if self.state.is_some_and(|state| state.holder == Some(operator)) {
            self.commands.set_input(self.now, sampled, command);
        }
    }

    /// Sets the latency from camera to screen that the operator's screen has measured. For
    /// [`DISPLAYED_LATENCY_LIFETIME`] it counts for the speed limit if it is longer than the latency at the desk.
    pub fn set_displayed_latency(&mut self, now: Mono, latency: Duration) {
        self.handle_timeout(now);
        self.displayed = Some((self.now, latency));
    }

    /// Processes a received datagram. Symbols of open frames keep the memory of their datagrams, so a datagram should not be
    /// a part of a much larger buffer.
    pub fn handle_datagram(&mut self, now: Mono, datagram: &Bytes) {
        self.handle_timeout(now);
        self.counters.received += 1;
        let result = Datagram::parse(datagram)
            .map_err(|_| FlowDropReason::Malformed)
            .and_then(|parsed| self.handle_parsed(&parsed, datagram.len()));
        if let Err(reason) = result {
            count(&mut self.counters.dropped, reason as usize);
        }
        self.collect_frames();
    }

    fn handle_parsed(&mut self, datagram: &Datagram, octets: usize) -> Result<(), FlowDropReason> {
        if matches!(datagram.body, Body::Feedback(_) | Body::DeskHeartbeat(_) | Body::Commands(_)) {
            return Err(FlowDropReason::Unexpected);
        }
        match self.peer.observe(self.now, datagram.epoch) {
            Observed::Current => {}
            Observed::Started => self.begin_epoch(),
            Observed::Refused => return Err(FlowDropReason::Epoch),
        }
        match &datagram.body {
            Body::VehicleHeartbeat(heartbeat) => self.handle_heartbeat(datagram.epoch, heartbeat),
            Body::Telemetry(telemetry) => self.handle_telemetry(telemetry),
            body => {
                self.frames.handle_parsed(self.now, datagram.epoch, body, octets);
                Ok(())
            }
        }
    }

    fn begin_epoch(&mut self) {
        if self.state.take().is_some() {
            self.emit(DeskEvent::VehicleRestarted);
        }
        self.heartbeats.restart();
        self.commands.set_grant(None);
        self.drop_claims(|pending| pending.claim.kind != ClaimKind::EmergencyStop);
        (self.picture, self.picture_interval, self.telemetry_sequence) = (None, None, None);
    }

    fn handle_telemetry(&mut self, telemetry: &Telemetry) -> Result<(), FlowDropReason> {
        let newest = self.telemetry_sequence;
        if newest.is_some_and(|newest| telemetry.sequence.wrapping_sub(newest).cast_signed() <= 0) {
            return Err(FlowDropReason::Outdated);
        }
        self.telemetry_sequence = Some(telemetry.sequence);
        self.emit(DeskEvent::Telemetry(telemetry.payload.clone()));
        Ok(())
    }

    fn handle_heartbeat(&mut self, epoch: u32, heartbeat: &VehicleHeartbeat) -> Result<(), FlowDropReason> {
        if !self.heartbeats.handle(self.now, self.epoch, epoch, &heartbeat.timing) {
            return Err(FlowDropReason::Outdated);
        }
        self.counters.heartbeats += 1;
        self.update_link();
        self.update_state(heartbeat);
        let grant = heartbeat.holder.map(|_| (epoch, heartbeat.grant));
        self.commands.set_grant(grant);
        self.take_answer(heartbeat.claim, heartbeat.outcome);
        Ok(())
    }

    fn update_state(&mut self, heartbeat: &VehicleHeartbeat) {
        let age = heartbeat.command_age_100us.map(micros::from_tenths_of_ms);
        let state = VehicleState {
            arrival: self.now,
            state: heartbeat.state,
            reason: heartbeat.reason,
            holder: heartbeat.holder,
            requester: heartbeat.requester,
            grant: heartbeat.grant,
            speed: MetresPerSecond(f64::from(heartbeat.speed_cmps) / 100.0),
            speed_limit: MetresPerSecond(f64::from(heartbeat.speed_limit_cmps) / 100.0),
            limit_reason: heartbeat.limit_reason,
            command: age.map(|age| (heartbeat.command, age)),
            commands_refused: heartbeat.commands_refused,
        };
        let control = |state: &VehicleState| (state.state, state.reason, state.holder, state.requester, state.grant);
        let changed = self.state.as_ref().is_none_or(|before| control(before) != control(&state));
        self.state = Some(state);
        if changed {
            self.emit(DeskEvent::State(state));
        }
    }

    /// Removes the claim that the vehicle has answered, and sends the next one.
    fn take_answer(&mut self, number: u32, outcome: ClaimOutcome) {
        let Some(answered) = self.claims.pop_front_if(|pending| pending.claim.number == number) else { return };
        self.emit(DeskEvent::Answered(answered.claim, outcome));
        if !self.claims.is_empty() {
            self.heartbeats.hurry(self.now);
        }
    }

    /// Drops claims without an answer.
    fn drop_claims(&mut self, which: impl Fn(&PendingClaim) -> bool) {
        for _ in 0..self.claims.len() {
            let Some(pending) = self.claims.pop_front() else { return };
            if which(&pending) {
                self.emit(DeskEvent::Unanswered(pending.claim));
            } else {
                self.claims.push_back(pending);
            }
        }
    }

    fn update_link(&mut self) {
        let up = self.heartbeats.is_up(self.now);
        if up != self.up {
            self.up = up;
            self.emit(if up { DeskEvent::LinkUp } else { DeskEvent::LinkDown });
        }
    }

    /// Notes the latest picture of the main stream.
    fn note_picture(&mut self, number: u32, latency: Duration) {
        let before = self.picture.replace((number, self.now, latency));
        let Some((_, arrival, _)) = before.filter(|(before, ..)| number.wrapping_sub(*before) == 1) else { return };
        let interval = self.now.since(arrival);
        self.picture_interval = Some(self.picture_interval.map_or(interval, |mean| (7 * mean + interval) / 8));
    }

    fn collect_frames(&mut self) {
        while let Some(event) = self.frames.poll_event() {
            if let ReceiverEvent::Arrived(frame) = &event
                && frame.stream == self.settings.main_stream
                && self.picture.is_none_or(|(number, ..)| frame.number.wrapping_sub(number).cast_signed() > 0)
            {
                self.note_picture(frame.number, frame.latency);
            }
            self.emit(DeskEvent::Frames(event));
        }
    }

    fn emit(&mut self, event: DeskEvent) {
        if self.events.len() >= EVENTS_MAX {
            self.events.pop_front();
            self.counters.events_dropped += 1;
        }
        self.events.push_back(event);
    }

    /// Processes the time.
    pub fn handle_timeout(&mut self, now: Mono) {
        self.now = self.now.max(now);
        self.frames.handle_timeout(self.now);
        self.collect_frames();
        self.update_link();
        let now = self.now;
        self.drop_claims(|pending| pending.expiry <= now);
    }

    /// Returns the time at which [`Self::handle_timeout`] must be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Mono> {
        let lost = self.heartbeats.lost_at(self.now);
        let claim = self.claims.iter().map(|pending| pending.expiry).min();
        let times =
            [self.frames.poll_timeout(), self.commands.poll_timeout(), Some(self.heartbeats.due()), lost, claim];
        times.into_iter().flatten().min()
    }

    /// Returns the next datagram to send, or `None`.
    pub fn poll_transmit(&mut self) -> Option<Bytes> {
        let datagram = self.next_datagram()?;
        self.counters.sent += 1;
        self.counters.sent_octets += datagram.len() as u64;
        Some(datagram)
    }

    fn next_datagram(&mut self) -> Option<Bytes> {
        if let Some(commands) = self.commands.poll_transmit(self.now, self.epoch) {
            return Some(commands);
        }
        if self.heartbeats.is_due(self.now) {
            return Some(self.heartbeat());
        }
        self.frames.poll_transmit()
    }

    fn heartbeat(&mut self) -> Bytes {
        let timing = self.heartbeats.next(self.now);
        let latency = self.picture_latency().map(|latency| micros::tenths_of_ms(latency).min(u16::MAX - 1));
        let claim = self.claims.front().map(|pending| pending.claim);
        DeskHeartbeat { timing, picture_latency_100us: latency, claim }.write(self.epoch)
    }

    /// Returns the latency of the latest picture of the main stream at the screen, or `None` if there is no current one. If the next
    /// picture is overdue, the time since then is added.
    #[must_use]
    pub fn picture_latency(&self) -> Option<Duration> {
        let (_, arrival, at_arrival) = self.picture?;
        let shown_for = self.now.since(arrival);
        let age = shown_for + at_arrival;
        let overdue =
            self.picture_interval.map_or(Duration::ZERO, |interval| shown_for.saturating_sub(interval * 3 / 2));
        let latency = at_arrival + overdue;
        let displayed = self.displayed.filter(|(at, _)| self.now.since(*at) <= DISPLAYED_LATENCY_LIFETIME);
        let displayed = displayed.map_or(Duration::ZERO, |(_, latency)| latency);
        (age <= self.settings.picture_timeout).then_some((latency + self.settings.display_delay).max(displayed))
    }

    /// Returns the next event, or `None`.
    pub fn poll_event(&mut self) -> Option<DeskEvent> {
        self.events.pop_front()
    }
}
