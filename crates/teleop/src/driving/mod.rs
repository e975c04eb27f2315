//! Supervision of a remote driver, in the vehicle.
//!
//! | from | event | to |
//! |---|---|---|
//! | `Idle`, `Stopped` at standstill | request (with `approval`: `Requested` until the vehicle approves) | `Ready` |
//! | `Ready`, `Hold`, `Ramp` | command with the dead-man control held | `Driving` |
//! | `Driving` | 100 ms without a command | `Hold` |
//! | `Driving`, `Hold` | 150 ms without a command, or the dead-man control is released while the vehicle moves | `Ramp` |
//! | `Driving`, `Hold`, `Ramp` | 300 ms without a command, or 300 ms after the release while the vehicle moves | `Stopped` |
//! | `Driving`, `Hold`, `Ramp` | the dead-man control is released at standstill | `Ready` |
//! | `Ready` | 5 s without a command | `Idle` |
//! | any with a grant | the operator releases control at standstill | `Idle` |
//! | any with a grant | the operator releases control while the vehicle moves; lost link; restart of the desk | `Stopped` |
//! | any | emergency stop | `Stopped` |
//!
//! 100, 150 and 300 ms are the defaults of the settings `hold_after`, `ramp_after` and `stop_after`. A request that is refused,
//! withdrawn or interrupted by a lost link leads from `Requested` to `Idle`.
//!
//! A new driver of a moving vehicle begins in `Hold` and has one second for the first command. Until that driver holds the
//! dead-man control, the vehicle brakes at least as hard as before, and after 150 ms as in `Ramp`. No stage of a stop brakes less
//! than the driver did.
//!
//! `Stopped` ends the grant: whatever commands arrive afterwards, the vehicle does not move until an operator requests control
//! again.
//!
//! Only one operator has control. Another one requests it and waits for the consent of the first, or takes it over.

mod claim;
mod record;
mod settings;
mod speed_limit;

use std::{collections::VecDeque, time::Duration};

use viaduct_units::{Degrees, MetresPerSecond, MetresPerSecondSquared, Mono};

use crate::{
    clock::PeerClock,
    commands::{AcceptedCommand, Command, CommandDropReason, Gear, Receiver, ReceiverCounters},
    limits::EVENTS_MAX,
    wire::Commands,
};

pub use claim::{Claim, ClaimKind, ClaimOutcome, OperatorId};
pub use record::{DrivingEvent, NotAVin, Vin};
pub use settings::{DrivingSettings, DrivingSettingsError};
pub use speed_limit::LimitReason;

use speed_limit::{LargestLatency, speed_limit};

/// Speed below which the vehicle stands.
const STANDSTILL: MetresPerSecond = MetresPerSecond(0.05);
/// Time without any command after which a grant ends at standstill.
const READY_SILENCE_MAX: Duration = Duration::from_secs(5);
/// Time for the first command of a driver who has taken over a moving vehicle, if `stop_after` is shorter.
const FIRST_COMMAND_MAX: Duration = Duration::from_secs(1);
/// Time in which the speed approaches the speed limit from below.
const LIMIT_APPROACH_S: f64 = 0.5;

reasons! {
    /// The state of driving.
    DrivingState {
        /// The vehicle stands; no operator has control.
        Idle => "idle",
        /// The vehicle stands; a request waits for its approval.
        Requested => "requested",
        /// The vehicle stands; an operator has control and does not hold the dead-man control.
        Ready => "ready",
        /// The vehicle obeys.
        Driving => "driving",
        /// No current command: the vehicle keeps its steering and does not accelerate.
        Hold => "hold",
        /// No current command, or the dead-man control was released: the vehicle brakes gently.
        Ramp => "ramp",
        /// The vehicle brakes to a standstill with hazard lights; the grant has ended.
        Stopped => "stopped",
    }
}

reasons! {
    /// The reason for a state of driving.
    Reason {
        /// No operator has requested control.
        NoDriver => "no_driver",
        /// The request waits for the vehicle.
        WaitingVehicle => "waiting_vehicle",
        /// The dead-man control is not held.
        DeadMan => "dead_man",
        /// Nothing arrives from the desk, or nothing arrives there.
        LinkLost => "link_lost",
        /// The desk sends no commands.
        DriverLost => "driver_lost",
        /// The commands are too old.
        CommandAge => "command_age",
        /// The commands are not plausible.
        Plausibility => "plausibility",
        /// An operator has stopped the vehicle at once.
        EmergencyStop => "emergency_stop",
        /// The operator has released control.
        Released => "released",
        /// Another operator has taken control over.
        TakenOver => "taken_over",
        /// The vehicle has refused the request.
        Refused => "refused",
        /// The vehicle has a fault.
        VehicleFault => "vehicle_fault",
    }
}

/// The values for the actuators of the vehicle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Actuation {
    /// State of driving.
    pub state: DrivingState,
    /// Angle of the front wheels, positive to the left.
    pub steering: Degrees,
    /// Change of the speed in the direction of travel. A negative value brakes to a standstill and never reverses.
    pub acceleration: MetresPerSecondSquared,
    /// Gear.
    pub gear: Gear,
    /// `true` if the hazard lights are on.
    pub hazard_lights: bool,
}

/// The state of the link to the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkView {
    /// `true` if heartbeats arrive from the desk.
    pub up: bool,
    /// Time of arrival of the latest datagram of the desk.
    pub received: Option<Mono>,
    /// Time of sending of the latest own heartbeat that the desk has confirmed.
    pub confirmed: Option<Mono>,
    /// `true` if the clocks are synchronised.
    pub synchronised: bool,
    /// Latency of the pictures at the driver's screen, or `None` if the driver has no current picture.
    pub picture_latency: Option<Duration>,
}

/// An operator's control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Grant {
    operator: OperatorId,
    since: Mono,
}

/// The supervision of a remote driver.
///
/// **After each input, take every event from [`Driving::poll_event`], then read [`Driving::poll_timeout`].**
#[derive(Debug)]
pub struct Driving {
    settings: DrivingSettings,
    /// Epoch of the vehicle.
    epoch: u32,
    now: Mono,
    state: DrivingState,
    reason: Option<Reason>,
    since: Mono,
    grant: Option<Grant>,
    grant_number: u32,
    requester: Option<OperatorId>,
    /// Number of the latest claim and its answer.
    answered: Option<(u32, ClaimOutcome)>,
    receiver: Receiver,
    /// Time of the latest accepted command with the dead-man control held.
    driven: Option<Mono>,
    /// Deceleration of the stage in which a moving vehicle was taken over, until the driver holds the dead-man control.
    inherited: Option<MetresPerSecondSquared>,
    /// Time of the first accepted command with the dead-man control released.
    dead_man_released: Option<Mono>,
    /// Latest refused command: its time and reason.
    refused: Option<(Mono, CommandDropReason)>,
    /// Steering share that is kept without commands.
    steering: f64,
    /// Brake share of the latest accepted command of the driver. No stage of a stop brakes less.
    brake: f64,
    gear: Gear,
    speed: MetresPerSecond,
    link: LinkView,
    command_age: LargestLatency,
    picture_latency: LargestLatency,
    events: VecDeque<(Mono, DrivingEvent)>,
    events_dropped: u64,
}

impl Driving {
    /// Returns the supervision of a vehicle that stands.
    ///
    /// # Errors
    /// The invalid setting.
    pub fn new(settings: DrivingSettings, epoch: u32) -> Result<Self, DrivingSettingsError> {
        settings.check()?;
        Ok(Self {
            epoch,
            now: Mono::default(),
            state: DrivingState::Idle,
            reason: Some(Reason::NoDriver),
            since: Mono::default(),
            grant: None,
            grant_number: 0,
            requester: None,
            answered: None,
            receiver: Receiver::new(settings.commands),
            driven: None,
            inherited: None,
            dead_man_released: None,
            refused: None,
            steering: 0.0,
            brake: 0.0,
            gear: Gear::Park,
            speed: MetresPerSecond(0.0),
            link: LinkView::default(),
            command_age: LargestLatency::default(),
            picture_latency: LargestLatency::default(),
            events: VecDeque::new(),
            events_dropped: 0,
            settings,
        })
    }

    /// Returns the state.
    #[must_use]
    pub const fn state(&self) -> DrivingState {
        self.state
    }

    /// Returns the reason for the state.
    #[must_use]
    pub const fn reason(&self) -> Option<Reason> {
        self.reason
    }

    /// Returns the time at which the state began.
    #[must_use]
    pub const fn since(&self) -> Mono {
        self.since
    }

    /// Returns the operator who has control.
    #[must_use]
    pub fn holder(&self) -> Option<OperatorId> {
        self.grant.map(|grant| grant.operator)
    }

    /// Returns the operator whose request waits.
    #[must_use]
    pub const fn requester(&self) -> Option<OperatorId> {
        self.requester
    }

    /// Returns the number of the latest grant.
    #[must_use]
    pub const fn grant_number(&self) -> u32 {
        self.grant_number
    }

    /// Returns the number of the latest claim and its answer.
    #[must_use]
    pub const fn answered(&self) -> Option<(u32, ClaimOutcome)> {
        self.answered
    }

    /// Returns the latest accepted command of the present grant.
    #[must_use]
    pub const fn command(&self) -> Option<&AcceptedCommand> {
        self.receiver.accepted()
    }

    /// Returns the counters of commands.
    #[must_use]
    pub const fn counters(&self) -> &ReceiverCounters {
        self.receiver.counters()
    }

    /// Returns the number of events that were dropped because the caller did not take them.
    #[must_use]
    pub const fn events_dropped(&self) -> u64 {
        self.events_dropped
    }

    /// Returns the speed that the owner has set.
    #[must_use]
    pub const fn speed(&self) -> MetresPerSecond {
        self.speed
    }

    /// Sets the measured speed, negative in reverse. A number that is not finite counts as a high speed.
    pub fn set_speed(&mut self, now: Mono, speed: MetresPerSecond) {
        self.speed = if speed.value().is_finite() { speed } else { self.settings.speed_max };
        self.handle_timeout(now);
    }

    /// Sets the state of the link to the driver.
    pub fn set_link(&mut self, now: Mono, link: LinkView) {
        self.link = link;
        self.handle_timeout(now);
        if let Some(latency) = link.picture_latency {
            self.picture_latency.add(self.now, latency);
        }
    }

    /// Processes a datagram with commands. A refusal is counted.
    pub(crate) fn handle_commands(&mut self, now: Mono, commands: &Commands, clock: &PeerClock) {
        self.handle_timeout(now);
        let grant = self.grant.map(|_| (self.epoch, self.grant_number));
        let of_grant = grant == Some((commands.vehicle_epoch, commands.grant));
        let result = self.receiver.handle(self.now, commands, grant, |time| clock.age(self.now, time));
        // An emergency stop of the driver counts however old it is.
        let emergency = of_grant && commands.commands.iter().any(|command| command.command.emergency_stop);
        if let Ok(accepted) = &result {
            self.adopt(&accepted.command, emergency);
        }
        if emergency {
            self.emergency_stop(self.holder());
        }
        match result {
            Ok(accepted) => self.apply(&accepted),
            Err(reason) => self.note_refusal(reason),
        }
    }

    /// Adopts brake and steering of a command. With an emergency stop, the brake is not released.
    fn adopt(&mut self, command: &Command, emergency: bool) {
        // Nor can a new driver of a moving vehicle release it before holding the dead-man control.
        let keeps_brake = emergency || (self.driven.is_none() && !command.dead_man);
        self.brake = if keeps_brake { self.brake.max(command.brake) } else { command.brake };
        if command.dead_man {
            self.steering = command.steering;
        }
    }

    fn apply(&mut self, accepted: &AcceptedCommand) {
        self.command_age.add(self.now, accepted.age.at_most());
        self.refused = None;
        if self.grant.is_none() {
            return;
        }
        if accepted.command.dead_man {
            self.driven = Some(self.now);
            self.inherited = None;
            self.dead_man_released = None;
            if self.stands() {
                self.gear = accepted.command.gear;
            }
            self.enter(DrivingState::Driving, None);
        } else {
            self.dead_man_released.get_or_insert(self.now);
        }
        self.supervise();
    }

    /// Notes a refusal that explains why no commands are accepted.
    fn note_refusal(&mut self, reason: CommandDropReason) {
        if matches!(reason, CommandDropReason::Stale | CommandDropReason::Range | CommandDropReason::Future) {
            self.refused = Some((self.now, reason));
        }
    }

    /// Processes a claim of an operator. A claim that was answered before is ignored.
    pub fn handle_claim(&mut self, now: Mono, claim: &Claim) {
        self.handle_timeout(now);
        let repeated = self.answered.is_some_and(|(number, _)| claim.number.wrapping_sub(number).cast_signed() <= 0);
        if repeated {
            return;
        }
        let outcome = match claim.kind {
            ClaimKind::Request => self.request(claim.operator),
            ClaimKind::Release => self.release(claim.operator),
            ClaimKind::Accept => self.accept(claim.operator),
            ClaimKind::Refuse => self.refuse_by_holder(claim.operator),
            ClaimKind::TakeOver => self.take_over(claim.operator),
            ClaimKind::EmergencyStop => {
                self.emergency_stop(Some(claim.operator));
                ClaimOutcome::Done
            }
        };
        self.answered = Some((claim.number, outcome));
        let refused = [ClaimOutcome::Moving, ClaimOutcome::Link, ClaimOutcome::NotHolder, ClaimOutcome::NoRequest];
        if refused.contains(&outcome) || outcome == ClaimOutcome::Busy {
            self.emit(DrivingEvent::ClaimRefused { operator: claim.operator, outcome });
        }
    }

    fn request(&mut self, operator: OperatorId) -> ClaimOutcome {
        match self.holder() {
            Some(holder) if holder == operator => return ClaimOutcome::Granted,
            Some(_) if self.requester.is_some_and(|requester| requester != operator) => return ClaimOutcome::Busy,
            Some(_) => {
                self.await_consent(operator);
                return ClaimOutcome::WaitingHolder;
            }
            None => {}
        }
        if let Some(refusal) = self.refuses_grant() {
            return refusal;
        }
        if !self.settings.approval {
            self.give(operator, false);
            return ClaimOutcome::Granted;
        }
        if self.requester.is_some_and(|requester| requester != operator) {
            return ClaimOutcome::Busy;
        }
        self.await_consent(operator);
        self.enter(DrivingState::Requested, Some(Reason::WaitingVehicle));
        ClaimOutcome::WaitingVehicle
    }

    /// Returns the reason why no operator can get control now.
    fn refuses_grant(&self) -> Option<ClaimOutcome> {
        if !self.link.up || !self.link.synchronised {
            return Some(ClaimOutcome::Link);
        }
        (!self.stands()).then_some(ClaimOutcome::Moving)
    }

    fn await_consent(&mut self, operator: OperatorId) {
        if self.requester != Some(operator) {
            self.requester = Some(operator);
            self.emit(DrivingEvent::Requested { operator });
        }
    }

    fn release(&mut self, operator: OperatorId) -> ClaimOutcome {
        if self.requester == Some(operator) {
            self.end_request(Reason::NoDriver);
            return ClaimOutcome::Done;
        }
        if self.holder() != Some(operator) {
            return ClaimOutcome::NotHolder;
        }
        if self.stands() {
            self.end_grant_in(DrivingState::Idle, Reason::Released);
        } else {
            self.stop_for(Reason::Released);
        }
        ClaimOutcome::Done
    }

    fn accept(&mut self, operator: OperatorId) -> ClaimOutcome {
        if self.holder() != Some(operator) {
            return ClaimOutcome::NotHolder;
        }
        let Some(requester) = self.requester else { return ClaimOutcome::NoRequest };
        self.give(requester, false);
        ClaimOutcome::Done
    }

    fn refuse_by_holder(&mut self, operator: OperatorId) -> ClaimOutcome {
        if self.holder() != Some(operator) {
            return ClaimOutcome::NotHolder;
        }
        if self.requester.is_none() {
            return ClaimOutcome::NoRequest;
        }
        self.drop_request();
        ClaimOutcome::Done
    }

    fn take_over(&mut self, operator: OperatorId) -> ClaimOutcome {
        match self.holder() {
            None => self.request(operator),
            Some(holder) if holder == operator => ClaimOutcome::Granted,
            Some(_) if !self.link.up || !self.link.synchronised => ClaimOutcome::Link,
            Some(_) => {
                self.give(operator, true);
                ClaimOutcome::Granted
            }
        }
    }

    /// Approves the request that waits for the vehicle. Returns `false` if none waits, or if the vehicle cannot be driven
    /// now.
    pub fn approve(&mut self, now: Mono) -> bool {
        self.handle_timeout(now);
        let waiting = self.requester.filter(|_| self.state == DrivingState::Requested);
        match waiting {
            Some(operator) if self.refuses_grant().is_none() => {
                self.give(operator, false);
                true
            }
            _ => false,
        }
    }

    /// Refuses the request that waits for the vehicle.
    pub fn refuse(&mut self, now: Mono) {
        self.handle_timeout(now);
        if self.state == DrivingState::Requested {
            self.end_request(Reason::Refused);
        }
    }

    /// Stops the vehicle and ends the grant, for example because of a fault of the vehicle.
    pub fn stop(&mut self, now: Mono, reason: Reason) {
        self.handle_timeout(now);
        self.stop_for(reason);
    }

    /// Processes a restart of the desk: the operator who had control has lost it.
    pub fn handle_desk_restart(&mut self, now: Mono) {
        self.handle_timeout(now);
        self.answered = None;
        self.drop_request();
        if self.grant.is_some() {
            self.stop_for(Reason::LinkLost);
        } else if self.state == DrivingState::Requested {
            self.enter(DrivingState::Idle, Some(Reason::LinkLost));
        }
    }

    /// Gives control to an operator.
    fn give(&mut self, operator: OperatorId, forced: bool) {
        let before = self.holder();
        self.inherited = if self.stands() { None } else { self.stage_deceleration().or(self.inherited) };
        self.grant_number = self.grant_number.wrapping_add(1);
        self.grant = Some(Grant { operator, since: self.now });
        self.receiver.restart();
        (self.driven, self.dead_man_released, self.refused) = (None, None, None);
        if self.stands() {
            self.brake = 0.0;
        }
        if self.requester == Some(operator) {
            self.requester = None;
        }
        self.drop_request();
        self.emit(DrivingEvent::Granted { operator, before, grant: self.grant_number, forced });
        if self.stands() {
            self.enter(DrivingState::Ready, Some(Reason::DeadMan));
        } else {
            // The new driver takes the wheel of a moving vehicle, and has the same time as after a lost command.
            self.enter(DrivingState::Hold, Some(Reason::TakenOver));
        }
    }

    /// Ends a request that waits, if there is one.
    fn drop_request(&mut self) {
        if let Some(operator) = self.requester.take() {
            self.emit(DrivingEvent::RequestEnded { operator });
        }
    }

    /// Ends a request that waits. If it waited for the vehicle, the state becomes `Idle` for the given reason.
    fn end_request(&mut self, reason: Reason) {
        self.drop_request();
        if self.state == DrivingState::Requested {
            self.enter(DrivingState::Idle, Some(reason));
        }
    }

    /// Ends the grant, if there is one, and enters a state.
    fn end_grant_in(&mut self, state: DrivingState, reason: Reason) {
        let operator = self.holder();
        self.grant = None;
        self.receiver.restart();
        (self.driven, self.inherited, self.dead_man_released) = (None, None, None);
        self.drop_request();
        self.enter_of(operator, state, Some(reason));
    }

    fn stop_for(&mut self, reason: Reason) {
        // An emergency stop brakes harder than any other stop.
        if (self.state, self.reason) == (DrivingState::Stopped, Some(Reason::EmergencyStop)) {
            return;
        }
        self.end_grant_in(DrivingState::Stopped, reason);
    }

    fn emergency_stop(&mut self, operator: Option<OperatorId>) {
        if self.state == DrivingState::Stopped && self.reason == Some(Reason::EmergencyStop) {
            return;
        }
        self.emit(DrivingEvent::EmergencyStop { operator, holder: self.holder() });
        self.stop_for(Reason::EmergencyStop);
    }

    fn stands(&self) -> bool {
        self.speed.value().abs() <= STANDSTILL.value()
    }

    fn enter(&mut self, state: DrivingState, reason: Option<Reason>) {
        self.enter_of(self.holder(), state, reason);
    }

    /// Enters a state. The operator has control, or had it until now.
    fn enter_of(&mut self, operator: Option<OperatorId>, state: DrivingState, reason: Option<Reason>) {
        if (self.state, self.reason) == (state, reason) {
            return;
        }
        let from = self.state;
        if from != state {
            self.since = self.now;
            if state != DrivingState::Driving {
                self.receiver.release_accelerator();
            }
        }
        (self.state, self.reason) = (state, reason);
        self.emit(DrivingEvent::State { from, to: state, reason, operator });
    }

    fn emit(&mut self, event: DrivingEvent) {
        if self.events.len() >= EVENTS_MAX {
            self.events.pop_front();
            self.events_dropped += 1;
        }
        self.events.push_back((self.now, event));
    }

    /// Returns the next event and its time, or `None`.
    pub fn poll_event(&mut self) -> Option<(Mono, DrivingEvent)> {
        self.events.pop_front()
    }

    /// Processes the time: the stages of a stop.
    pub fn handle_timeout(&mut self, now: Mono) {
        self.now = self.now.max(now);
        self.supervise();
    }

    fn supervise(&mut self) {
        match self.state {
            DrivingState::Idle | DrivingState::Stopped => {}
            DrivingState::Requested => {
                if !self.link.up {
                    self.end_request(Reason::LinkLost);
                }
            }
            DrivingState::Ready => self.supervise_at_standstill(),
            DrivingState::Driving | DrivingState::Hold | DrivingState::Ramp => self.supervise_drive(),
        }
    }

    fn supervise_at_standstill(&mut self) {
        let commanded = self.receiver.accepted().map(|accepted| accepted.arrival);
        let latest = commanded.max(self.grant.map(|grant| grant.since)).unwrap_or_default();
        if !self.link.up {
            self.stop_for(Reason::LinkLost);
        } else if self.now.since(latest) > READY_SILENCE_MAX {
            self.end_grant_in(DrivingState::Idle, Reason::DriverLost);
        }
    }

    fn supervise_drive(&mut self) {
        if self.link.confirmed.is_none_or(|sent| self.now.since(sent) > self.settings.blind_after) {
            return self.stop_for(Reason::LinkLost);
        }
        if self.driven.is_none() {
            return self.supervise_takeover();
        }
        let silence = self.silence();
        let released = self.dead_man_released.map(|since| self.now.since(since));
        if silence >= self.settings.stop_after || released.is_some_and(|elapsed| elapsed >= self.settings.stop_after) {
            let reason = self.cause();
            if reason == Reason::DeadMan && self.stands() {
                return self.enter(DrivingState::Ready, Some(reason));
            }
            return self.stop_for(reason);
        }
        if released.is_some() && self.stands() {
            self.enter(DrivingState::Ready, Some(Reason::DeadMan));
        } else if released.is_some() || silence >= self.settings.ramp_after {
            self.enter(DrivingState::Ramp, Some(self.cause()));
        } else if silence >= self.settings.hold_after {
            self.enter(DrivingState::Hold, Some(self.cause()));
        }
    }

    /// Supervises a new driver of a moving vehicle, who has not held the dead-man control yet. The vehicle brakes, and the
    /// driver keeps control as long as commands arrive.
    fn supervise_takeover(&mut self) {
        let commanded = self.receiver.accepted().map(|accepted| self.now.since(accepted.arrival));
        let (silence, most) = match commanded {
            Some(silence) => (silence, self.settings.stop_after),
            None => (self.silence(), self.settings.stop_after.max(FIRST_COMMAND_MAX)),
        };
        if silence >= most {
            self.stop_for(self.cause());
        } else if self.stands() {
            self.enter(DrivingState::Ready, Some(Reason::DeadMan));
        } else if self.silence() >= self.settings.ramp_after {
            self.enter(DrivingState::Ramp, Some(Reason::TakenOver));
        }
    }

    /// Returns the time since the latest command with the dead-man control held.
    fn silence(&self) -> Duration {
        let granted = self.grant.map(|grant| grant.since).unwrap_or_default();
        self.now.since(self.driven.unwrap_or(granted))
    }

    /// Returns the reason why the vehicle is not driven.
    fn cause(&self) -> Reason {
        if self.dead_man_released.is_some() {
            return Reason::DeadMan;
        }
        if self.link.received.is_none_or(|time| self.now.since(time) >= self.settings.hold_after / 2) {
            return Reason::LinkLost;
        }
        let recent = self.refused.filter(|(time, _)| self.now.since(*time) <= self.settings.stop_after);
        match recent.map(|(_, reason)| reason) {
            Some(CommandDropReason::Range) => Reason::Plausibility,
            Some(_) => Reason::CommandAge,
            None => Reason::DriverLost,
        }
    }

    /// Returns the time at which [`Self::handle_timeout`] must be called, or `None`.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Mono> {
        let after = |start: Mono, wait: Duration| Some(start.plus(wait)).filter(|time| *time > self.now);
        let settings = &self.settings;
        match self.state {
            DrivingState::Idle | DrivingState::Requested | DrivingState::Stopped => None,
            DrivingState::Ready => {
                let commanded = self.receiver.accepted().map(|accepted| accepted.arrival);
                let latest = commanded.max(self.grant.map(|grant| grant.since))?;
                after(latest, READY_SILENCE_MAX + Duration::from_nanos(1))
            }
            DrivingState::Driving | DrivingState::Hold | DrivingState::Ramp => {
                let start = Mono(self.now.0.saturating_sub(self.silence()));
                let stages = [settings.hold_after, settings.ramp_after, settings.stop_after];
                let released = self.dead_man_released.and_then(|since| after(since, settings.stop_after));
                let blind =
                    self.link.confirmed.and_then(|sent| after(sent, settings.blind_after + Duration::from_nanos(1)));
                let new_driver = self.driven.is_none();
                let first = new_driver.then(|| after(start, FIRST_COMMAND_MAX)).flatten();
                let commanded = self.receiver.accepted().filter(|_| new_driver);
                let next = commanded.and_then(|accepted| after(accepted.arrival, settings.stop_after));
                let supervised = stages.into_iter().filter_map(|stage| after(start, stage));
                supervised.chain(released).chain(blind).chain(first).chain(next).min()
            }
        }
    }

    /// Returns the speed limit and its reason.
    pub fn speed_limit(&mut self) -> (MetresPerSecond, LimitReason) {
        if self.grant.is_none() {
            return (MetresPerSecond(0.0), LimitReason::NotDriving);
        }
        if !self.link.synchronised {
            return (MetresPerSecond(0.0), LimitReason::Clock);
        }
        if self.link.picture_latency.is_none() {
            return (MetresPerSecond(0.0), LimitReason::Camera);
        }
        let latency = self.picture_latency.get(self.now) + self.command_age.get(self.now);
        speed_limit(&self.settings, latency)
    }

    /// Returns the values for the actuators. The owner calls this function for each step of its control.
    pub fn actuation(&mut self, now: Mono) -> Actuation {
        self.handle_timeout(now);
        let braking = self.brake * self.settings.braking_max.value();
        let of_stage = |stage: MetresPerSecondSquared| MetresPerSecondSquared(-stage.value().max(braking));
        let acceleration = self.stage_deceleration().map_or_else(|| self.commanded_acceleration(), of_stage);
        let without_grant = self.grant.is_none();
        Actuation {
            state: self.state,
            steering: self.settings.steering_max * self.steering,
            acceleration,
            gear: if without_grant && self.stands() { Gear::Park } else { self.gear },
            hazard_lights: self.state == DrivingState::Stopped,
        }
    }

    /// Returns the deceleration of the present stage, or `None` if the vehicle follows the driver.
    fn stage_deceleration(&self) -> Option<MetresPerSecondSquared> {
        match self.state {
            DrivingState::Driving | DrivingState::Hold => None,
            DrivingState::Ramp => Some(self.settings.ramp_deceleration),
            DrivingState::Stopped if self.reason == Some(Reason::EmergencyStop) => {
                Some(self.settings.emergency_deceleration)
            }
            _ => Some(self.settings.stop_deceleration),
        }
    }

    /// Returns the acceleration of the latest command, within the speed limit.
    fn commanded_acceleration(&mut self) -> MetresPerSecondSquared {
        let (limit, _) = self.speed_limit();
        let command = self.receiver.accepted().map(|accepted| accepted.command).unwrap_or_default();
        let traction = if self.state == DrivingState::Driving { self.gear.direction().abs() } else { 0.0 };
        let wanted = command.accelerator * traction * self.settings.acceleration_max.value()
            - self.brake * self.settings.braking_max.value();
        let to_limit = (limit.value() - self.speed.value().abs()) / LIMIT_APPROACH_S;
        let slowest = -self.settings.ramp_deceleration.value();
        let inherited = self.inherited.map_or(f64::INFINITY, |deceleration| -deceleration.value());
        MetresPerSecondSquared(wanted.min(to_limit.max(slowest)).min(inherited))
    }
}

#[cfg(test)]
mod tests;
