//! The vehicle's end of a flow of datagrams.

use std::{collections::VecDeque, time::Duration};

use bytes::Bytes;
use viaduct_units::{MetresPerSecond, Mono};

use crate::{
    commands::ReceiverCounters,
    driving::{
        Actuation, ClaimOutcome, Driving, DrivingEvent, DrivingSettings, DrivingSettingsError, DrivingState,
        LimitReason, LinkView, Reason,
    },
    epoch::{Observed, PeerEpoch},
    frames::{PushError, Sender, SenderCounters, SenderEvent, SenderSettings, SettingsError},
    heartbeat::{Heartbeats, LinkQuality},
    limits::{EVENTS_MAX, HEARTBEAT_INTERVALS},
    micros,
    reason::{count, counted},
    wire::{Body, Datagram, DeskHeartbeat, StreamId, TELEMETRY_HEADER_OCTETS, Telemetry, VehicleHeartbeat},
};

/// Settings of the vehicle's end.
#[derive(Clone, Debug, PartialEq)]
pub struct VehicleSettings {
    /// Settings of the frames.
    pub frames: SenderSettings,
    /// Settings of the supervision of the driver.
    pub driving: DrivingSettings,
    /// Time between two heartbeats, 5 to 100 ms. The default is 20 ms.
    pub heartbeat_interval: Duration,
    /// Time without a heartbeat of the desk after which the link counts as lost, at least two intervals and at most
    /// 10 s. The default is 300 ms.
    pub link_timeout: Duration,
}

impl Default for VehicleSettings {
    fn default() -> Self {
        Self {
            frames: SenderSettings::default(),
            driving: DrivingSettings::default(),
            heartbeat_interval: Duration::from_millis(20),
            link_timeout: Duration::from_millis(300),
        }
    }
}

/// An invalid setting of the vehicle's end.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum VehicleSettingsError {
    /// A setting of the frames is invalid.
    #[error(transparent)]
    Frames(#[from] SettingsError),
    /// A setting of the supervision is invalid.
    #[error(transparent)]
    Driving(#[from] DrivingSettingsError),
    /// A time of the heartbeats is outside the limits.
    #[error("heartbeats are sent every 5 to 100 ms, and the link is lost after two intervals to 10 s")]
    Heartbeat,
}

/// The telemetry is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("telemetry has at most {most} octets, not {octets}")]
pub struct TelemetryTooLong {
    /// Octets of the telemetry.
    pub octets: usize,
    /// Largest number of octets.
    pub most: usize,
}

/// An event at the vehicle's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VehicleEvent {
    /// A frame is finished, or the queue of the link has stopped the frames.
    Frames(SenderEvent),
    /// An event of driving, and its time.
    Driving(Mono, DrivingEvent),
    /// Heartbeats of the desk arrive.
    LinkUp,
    /// No heartbeats of the desk arrive.
    LinkDown,
    /// The desk has restarted.
    DeskRestarted,
}

reasons! {
    /// The reason why a received datagram is dropped before it reaches frames, commands or heartbeats.
    FlowDropReason {
        /// The octets are not a datagram.
        Malformed => "malformed",
        /// The datagram is for the other end.
        Unexpected => "unexpected",
        /// The datagram is from another epoch of the peer.
        Epoch => "epoch",
        /// A later heartbeat or telemetry has arrived before.
        Outdated => "outdated",
    }
}

/// Counters of one end of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounters {
    /// Datagrams received.
    pub received: u64,
    /// Heartbeats received.
    pub heartbeats: u64,
    /// Datagrams sent.
    pub sent: u64,
    /// Octets of these datagrams.
    pub sent_octets: u64,
    /// Datagrams dropped, by [`FlowDropReason`].
    pub(crate) dropped: [u64; FlowDropReason::ALL.len()],
    /// Events dropped because the caller did not take them.
    pub events_dropped: u64,
}

impl FlowCounters {
    /// Returns the number of datagrams dropped for a reason.
    #[must_use]
    pub fn dropped(&self, reason: FlowDropReason) -> u64 {
        counted(&self.dropped, reason as usize)
    }

    /// Returns the number of all datagrams dropped.
    #[must_use]
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().sum()
    }
}

/// The vehicle's end: it sends frames, telemetry and heartbeats, and obeys commands.
///
/// **After each input, take every datagram from [`Vehicle::poll_transmit`] and every event from
/// [`Vehicle::poll_event`], then read [`Vehicle::poll_timeout`], before the next input.**
///
/// Heartbeats are sent before telemetry, and both before frames.
#[derive(Debug)]
pub struct Vehicle {
    epoch: u32,
    now: Mono,
    peer: PeerEpoch,
    frames: Sender,
    driving: Driving,
    heartbeats: Heartbeats,
    /// Time of arrival of the latest datagram of the desk.
    received: Option<Mono>,
    /// Latest latency of the pictures at the driver's screen.
    picture_latency: Option<Duration>,
    up: bool,
    telemetry: Option<Bytes>,
    telemetry_sequence: u32,
    telemetry_octets_max: usize,
    events: VecDeque<VehicleEvent>,
    counters: FlowCounters,
}

/// Checks the times of heartbeats.
pub(crate) fn heartbeat_times_are_valid(interval: Duration, timeout: Duration) -> bool {
    let (shortest, longest) = HEARTBEAT_INTERVALS;
    (shortest..=longest).contains(&interval) && (2 * interval..=Duration::from_secs(10)).contains(&timeout)
}

impl Vehicle {
    /// Returns the end of a vehicle that stands. The epoch must differ from that of an earlier start.
    ///
    /// # Errors
    /// The invalid setting.
    pub fn new(settings: VehicleSettings, epoch: u32) -> Result<Self, VehicleSettingsError> {
        if !heartbeat_times_are_valid(settings.heartbeat_interval, settings.link_timeout) {
            return Err(VehicleSettingsError::Heartbeat);
        }
        Ok(Self {
            epoch,
            now: Mono::default(),
            peer: PeerEpoch::default(),
            telemetry_octets_max: settings.frames.datagram_octets.saturating_sub(TELEMETRY_HEADER_OCTETS),
            frames: Sender::new(settings.frames, epoch)?,
            driving: Driving::new(settings.driving, epoch)?,
            heartbeats: Heartbeats::new(settings.heartbeat_interval, settings.link_timeout),
            received: None,
            picture_latency: None,
            up: false,
            telemetry: None,
            telemetry_sequence: 0,
            events: VecDeque::new(),
            counters: FlowCounters::default(),
        })
    }

    /// Returns the counters of the flow.
    #[must_use]
    pub const fn counters(&self) -> &FlowCounters {
        &self.counters
    }

    /// Returns the counters of frames.
    #[must_use]
    pub const fn frame_counters(&self) -> &SenderCounters {
        self.frames.counters()
    }

    /// Returns the counters of commands.
    #[must_use]
    pub const fn command_counters(&self) -> &ReceiverCounters {
        self.driving.counters()
    }

    /// Returns the sender of frames: its rate, queue and loss.
    #[must_use]
    pub const fn frames(&self) -> &Sender {
        &self.frames
    }

    /// Returns the supervision of the driver.
    #[must_use]
    pub const fn driving(&self) -> &Driving {
        &self.driving
    }

    /// Returns the quality of the link.
    #[must_use]
    pub fn link(&self) -> LinkQuality {
        self.heartbeats.quality(self.now)
    }

    /// Accepts a frame and returns its number in the stream.
    ///
    /// # Errors
    /// The frame is not accepted.
    pub fn push_frame(&mut self, now: Mono, stream: StreamId, frame: Bytes) -> Result<u32, PushError> {
        self.handle_timeout(now);
        let result = self.frames.push(now, stream, frame);
        self.collect_events();
        result
    }

    /// Returns the octets of frames that encoders may push now, all streams together.
    pub fn frame_budget(&mut self, now: Mono) -> usize {
        self.handle_timeout(now);
        self.frames.budget_octets()
    }

    /// Sends values of the vehicle at once, before frames. Values that are not sent yet are replaced.
    ///
    /// # Errors
    /// The values do not fit into a datagram.
    pub fn send_telemetry(&mut self, now: Mono, payload: Bytes) -> Result<(), TelemetryTooLong> {
        self.handle_timeout(now);
        if payload.len() > self.telemetry_octets_max {
            return Err(TelemetryTooLong { octets: payload.len(), most: self.telemetry_octets_max });
        }
        self.telemetry = Some(payload);
        Ok(())
    }

    /// Sets the measured speed, negative in reverse.
    pub fn set_speed(&mut self, now: Mono, speed: MetresPerSecond) {
        self.handle_timeout(now);
        self.act(|driving, now| driving.set_speed(now, speed));
    }

    /// Returns the values for the actuators. The owner calls this function for each step of its control.
    pub fn actuation(&mut self, now: Mono) -> Actuation {
        self.handle_timeout(now);
        self.act(Driving::actuation)
    }

    /// Returns the speed limit and its reason.
    pub fn speed_limit(&mut self, now: Mono) -> (MetresPerSecond, LimitReason) {
        self.handle_timeout(now);
        self.driving.speed_limit()
    }

    /// Approves the request that waits for the vehicle. Returns `false` if none waits, or if the vehicle cannot be driven
    /// now.
    pub fn approve(&mut self, now: Mono) -> bool {
        self.handle_timeout(now);
        self.act(Driving::approve)
    }

    /// Refuses the request that waits for the vehicle.
    pub fn refuse(&mut self, now: Mono) {
        self.handle_timeout(now);
        self.act(Driving::refuse);
    }

    /// Stops the vehicle and ends the grant, for example because of a fault of the vehicle.
    pub fn stop(&mut self, now: Mono, reason: Reason) {
        self.handle_timeout(now);
        self.act(|driving, now| driving.stop(now, reason));
    }

    /// Acts on the supervision. If its state changes, the next heartbeat is sent at once.
    fn act<R>(&mut self, action: impl FnOnce(&mut Driving, Mono) -> R) -> R {
        let before = (self.driving.state(), self.driving.reason(), self.driving.answered());
        let result = action(&mut self.driving, self.now);
        if before != (self.driving.state(), self.driving.reason(), self.driving.answered()) {
            self.heartbeats.hurry(self.now);
        }
        self.collect_events();
        result
    }

    /// Processes a received datagram.
    pub fn handle_datagram(&mut self, now: Mono, datagram: &Bytes) {
        self.handle_timeout(now);
        self.counters.received += 1;
        let result = Datagram::parse(datagram)
            .map_err(|_| FlowDropReason::Malformed)
            .and_then(|parsed| self.handle_parsed(&parsed));
        if let Err(reason) = result {
            count(&mut self.counters.dropped, reason as usize);
        }
        self.collect_events();
    }

    fn handle_parsed(&mut self, datagram: &Datagram) -> Result<(), FlowDropReason> {
        if !matches!(datagram.body, Body::Feedback(_) | Body::DeskHeartbeat(_) | Body::Commands(_)) {
            return Err(FlowDropReason::Unexpected);
        }
        match self.peer.observe(self.now, datagram.epoch) {
            Observed::Current => {}
            Observed::Started => self.begin_epoch(),
            Observed::Refused => return Err(FlowDropReason::Epoch),
        }
        self.received = Some(self.now);
        match &datagram.body {
            Body::Feedback(feedback) => self.frames.handle_parsed(self.now, datagram.epoch, feedback),
            Body::DeskHeartbeat(heartbeat) => return self.handle_heartbeat(datagram.epoch, heartbeat),
            Body::Commands(commands) => {
                self.update_link();
                let clock = self.heartbeats.clock;
                self.act(|driving, now| driving.handle_commands(now, commands, &clock));
            }
            _ => {}
        }
        Ok(())
    }

    fn begin_epoch(&mut self) {
        if self.received.is_some() {
            self.emit(VehicleEvent::DeskRestarted);
        }
        self.heartbeats.restart();
        self.picture_latency = None;
        self.act(Driving::handle_desk_restart);
    }

    fn handle_heartbeat(&mut self, epoch: u32, heartbeat: &DeskHeartbeat) -> Result<(), FlowDropReason> {
        if !self.heartbeats.handle(self.now, self.epoch, epoch, &heartbeat.timing) {
            return Err(FlowDropReason::Outdated);
        }
        self.counters.heartbeats += 1;
        self.picture_latency = heartbeat.picture_latency_100us.map(micros::from_tenths_of_ms);
        self.update_link();
        if let Some(claim) = heartbeat.claim {
            self.act(|driving, now| driving.handle_claim(now, &claim));
        }
        Ok(())
    }

    /// Passes the state of the link on to the supervision, and reports its changes.
    fn update_link(&mut self) {
        let up = self.heartbeats.is_up(self.now);
        if up != self.up {
            self.up = up;
            self.emit(if up { VehicleEvent::LinkUp } else { VehicleEvent::LinkDown });
        }
        let view = LinkView {
            up,
            received: self.received,
            confirmed: self.heartbeats.echoed(),
            synchronised: self.heartbeats.clock.offset(self.now).is_some(),
            picture_latency: self.picture_latency.filter(|_| up),
        };
        self.act(|driving, now| driving.set_link(now, view));
    }

    fn collect_events(&mut self) {
        while let Some(event) = self.frames.poll_event() {
            self.emit(VehicleEvent::Frames(event));
        }
        while let Some((time, event)) = self.driving.poll_event() {
            self.emit(VehicleEvent::Driving(time, event));
        }
    }

    fn emit(&mut self, event: VehicleEvent) {
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
        self.update_link();
        self.collect_events();
    }

    /// Returns the time at which [`Self::handle_timeout`] must be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Mono> {
        let telemetry = self.telemetry.as_ref().map(|_| self.now);
        let lost = self.heartbeats.lost_at(self.now);
        let times =
            [self.frames.poll_timeout(), self.driving.poll_timeout(), Some(self.heartbeats.due()), lost, telemetry];
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
        if self.heartbeats.is_due(self.now) {
            return Some(self.heartbeat());
        }
        if let Some(payload) = self.telemetry.take() {
            self.telemetry_sequence = self.telemetry_sequence.wrapping_add(1);
            let (sequence, sent_us) = (self.telemetry_sequence, micros::of_clock(self.now));
            return Some(Telemetry { sequence, sent_us, payload }.write(self.epoch));
        }
        self.frames.poll_transmit()
    }

    fn heartbeat(&mut self) -> Bytes {
        let timing = self.heartbeats.next(self.now);
        let (limit, limit_reason) = self.driving.speed_limit();
        let command = self.driving.command();
        let (claim, outcome) = self.driving.answered().unwrap_or((0, ClaimOutcome::Nothing));
        VehicleHeartbeat {
            timing,
            state: self.driving.state(),
            reason: self.driving.reason(),
            holder: self.driving.holder(),
            grant: self.driving.grant_number(),
            requester: self.driving.requester(),
            claim,
            outcome,
            // A conversion from a float saturates.
            speed_cmps: (self.driving.speed().value() * 100.0).round() as i16,
            speed_limit_cmps: (limit.value() * 100.0).round() as u16,
            limit_reason,
            command: command.map_or(0, |accepted| accepted.sequence),
            command_age_100us: command.map(|accepted| micros::tenths_of_ms(accepted.age.estimate).min(u16::MAX - 1)),
            commands_refused: self.driving.counters().dropped_total() as u32,
        }
        .write(self.epoch)
    }

    /// Returns the next event, or `None`.
    pub fn poll_event(&mut self) -> Option<VehicleEvent> {
        self.events.pop_front()
    }

    /// Returns the state of driving.
    #[must_use]
    pub const fn state(&self) -> DrivingState {
        self.driving.state()
    }
}
