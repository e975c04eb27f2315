//! The I/O task of the vehicle's end: it owns the machine and the socket.
//!
//! **Each input of the machine is followed by [`Runner::flush`]**, which sends its datagrams and handles its events.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;
use viaduct_bus::{Counter, Hop, Meta, Publisher, Sample, Subscriber, clock};
use viaduct_messages::foxglove::CompressedImage;
use viaduct_messages::its::timestamp;
use viaduct_messages::viaduct::teleop::{DrivingState, RequestAnswer, Telemetry};
use viaduct_messages::viaduct::vehicle::drive_command::Movement;
use viaduct_messages::viaduct::vehicle::{DriveCommand, Gear as VehicleGear, VehicleState};
use viaduct_node::{Context, StartError, Stop};
use viaduct_teleop::commands::Gear;
use viaduct_teleop::driving::{Actuation, DrivingEvent, Reason};
use viaduct_teleop::frames::SenderEvent;
use viaduct_teleop::wire::StreamId;
use viaduct_teleop::{Vehicle, VehicleEvent};
use viaduct_units::{MetresPerSecond, Mono, Now, Tai};

use super::cameras::{Camera, budgets};
use super::counters::Counters;
use super::records::{Records, Situation};
use super::settings::TeleopVehicleSettings;
use super::{EVENTS, LATEST, TeleopVehicle};
use crate::net::secure::Role;
use crate::net::timer::PreciseTimer;
use crate::teleop::event_log::EventLog;
use crate::teleop::link::{Arrival, DatagramLink};
use crate::teleop::milliseconds;
use crate::teleop::periodic::Periodic;

/// Time between two states of driving and two budgets of the cameras.
const STATE_PERIOD: Duration = Duration::from_millis(100);
/// Time between two updates of counters and faults.
const UPKEEP_PERIOD: Duration = Duration::from_millis(500);

/// The fault of a vehicle whose state is unknown.
const STATE_UNKNOWN: &str = "no state of the vehicle";
/// The fault of a vehicle whose state has no speed.
const SPEED_UNKNOWN: &str = "the speed of the vehicle is unknown";

/// The machine with its topics and counters.
pub(super) struct Runner {
    machine: Vehicle,
    link: DatagramLink,
    timer: PreciseTimer,
    cameras: Vec<Camera>,
    /// `true` after the first heartbeat of a desk. Pictures before that have no receiver.
    has_met_desk: bool,
    input: VehicleInput,
    answers: Option<Subscriber<RequestAnswer>>,
    drive: Option<Publisher<DriveCommand>>,
    drive_sequence: u32,
    /// `true` if the state of driving has changed since the last command to the vehicle.
    changed: bool,
    state: Publisher<DrivingState>,
    records: Records,
    counters: Counters,
    unsent_telemetry: Counter,
    outdated_answers: Counter,
    /// Measures the latency of pictures until they are given to the machine.
    hop: Hop,
    /// Payloads received and payloads to send; empty between two inputs.
    incoming: Vec<Arrival>,
    outgoing: Vec<Bytes>,
    schedule: Schedule,
    stop: Stop,
}

/// The state of the vehicle on the bus.
struct VehicleInput {
    states: Option<Subscriber<VehicleState>>,
    timeout: Duration,
    /// `false` if the desk has no permission to drive. Then the machine gets no speed, and grants no control.
    may_be_driven: bool,
    /// Latest state, and its arrival.
    latest: Option<(Mono, VehicleState)>,
    /// `true` if the machine has the speed of `latest`.
    known: bool,
}

struct Schedule {
    drive: Periodic,
    telemetry: Periodic,
    state: Periodic,
    upkeep: Periodic,
}

/// An input of the machine.
enum Input {
    Datagrams(io::Result<()>),
    Timeout(io::Result<()>),
    Picture(usize, Sample<CompressedImage>),
    Vehicle(Sample<VehicleState>),
    Answer(Sample<RequestAnswer>),
    Stop,
}

impl Runner {
    pub(super) fn new(
        settings: &TeleopVehicleSettings,
        link: DatagramLink,
        log: Option<EventLog>,
        context: &Context<TeleopVehicle>,
    ) -> Result<Self, StartError> {
        let now = clock::now();
        // An epoch differs from that of an earlier start.
        let epoch = (now.tai.nanos() / 1_000_000) as u32;
        let machine = Vehicle::new(settings.machine()?, epoch).map_err(|error| StartError::Other(error.to_string()))?;
        let cameras = settings.cameras.iter().zip(0..);
        let cameras = cameras.map(|(camera, index)| Camera::new(index, camera, now.mono, context));
        let vehicle = settings.vehicle.as_deref();
        let cannot_time = |cause| StartError::io("cannot create a timer", cause);
        let may_be_driven = link.role() == Role::Driver;
        if !may_be_driven {
            tracing::warn!(
                "the desk has the role observer, so its operators cannot drive; list it as a driver in the file of roles"
            );
        }
        let mut runner = Self {
            machine,
            link,
            timer: PreciseTimer::new().map_err(cannot_time)?,
            cameras: cameras.collect::<Result<_, _>>()?,
            has_met_desk: false,
            input: VehicleInput {
                states: vehicle.map(|topic| context.subscribe(topic, LATEST)).transpose()?,
                timeout: Duration::from_millis(settings.vehicle_timeout_ms),
                may_be_driven,
                latest: None,
                known: false,
            },
            answers: settings.answers.as_ref().map(|topic| context.subscribe(topic, EVENTS)).transpose()?,
            drive: vehicle.map(|_| context.publisher(&settings.drive, LATEST)).transpose()?,
            drive_sequence: 0,
            changed: false,
            state: context.publisher(&settings.state, LATEST)?,
            records: Records::new(settings, log, context)?,
            counters: Counters::new(context),
            unsent_telemetry: context.counter("telemetry_too_long"),
            outdated_answers: context.counter("answers_outdated"),
            hop: context.hop(),
            incoming: Vec::new(),
            outgoing: Vec::new(),
            schedule: Schedule {
                drive: Periodic::new(now.mono, Duration::from_secs_f64(1.0 / settings.drive_hz)),
                telemetry: Periodic::new(now.mono, Duration::from_secs_f64(1.0 / settings.telemetry_hz)),
                state: Periodic::new(now.mono, STATE_PERIOD),
                upkeep: Periodic::new(now.mono, UPKEEP_PERIOD),
            },
            stop: context.stop(),
        };
        // The speed is unknown.
        runner.machine.set_speed(now.mono, MetresPerSecond(f64::NAN));
        Ok(runner)
    }

    /// Runs until the component is asked to stop or the socket fails.
    pub(super) async fn run(mut self) -> io::Result<()> {
        self.record("started");
        let ended = self.run_until_stopped().await;
        let now = clock::now();
        if self.drive.is_some() {
            self.machine.stop(now.mono, Reason::VehicleFault);
        }
        self.flush();
        self.send_drive_command(now);
        self.record("ended");
        self.sync_counters();
        ended
    }

    async fn run_until_stopped(&mut self) -> io::Result<()> {
        loop {
            self.flush();
            let due = self.due();
            self.timer.set(due)?;
            match self.next_input().await {
                Input::Datagrams(received) => {
                    received?;
                    self.handle_datagrams();
                }
                Input::Timeout(expired) => {
                    expired?;
                    self.receive_if_late(due)?;
                    self.handle_timeout(clock::now());
                }
                Input::Picture(camera, picture) => {
                    self.receive_if_late(due)?;
                    self.handle_picture(clock::now(), camera, &picture);
                }
                Input::Vehicle(state) => {
                    self.receive_if_late(due)?;
                    self.handle_vehicle_state(clock::mono(), &state);
                }
                Input::Answer(answer) => {
                    self.receive_if_late(due)?;
                    self.handle_answer(clock::mono(), &answer);
                }
                Input::Stop => return Ok(()),
            }
        }
    }

    /// Processes the datagrams that wait if the timeout is overdue: otherwise the machine would take a delay of this process for
    /// a silence of the desk.
    fn receive_if_late(&mut self, due: Option<Mono>) -> io::Result<()> {
        self.link.receive_if_late(due, &mut self.incoming)?;
        self.handle_datagrams();
        Ok(())
    }

    async fn next_input(&mut self) -> Input {
        tokio::select! {
            received = self.link.receive(&mut self.incoming) => Input::Datagrams(received),
            expired = self.timer.expired() => Input::Timeout(expired),
            (camera, picture) = next_picture(&self.cameras) => Input::Picture(camera, picture),
            state = next(self.input.states.as_ref()) => Input::Vehicle(state),
            answer = next(self.answers.as_ref()) => Input::Answer(answer),
            () = self.stop.asked() => Input::Stop,
        }
    }

    /// Returns the time of the next timeout or periodic work.
    fn due(&self) -> Option<Mono> {
        let Schedule { drive, telemetry, state, upkeep } = &self.schedule;
        let periodic = [drive, telemetry, state, upkeep].map(Periodic::due);
        let machines = [self.machine.poll_timeout(), self.link.poll_timeout()];
        machines.into_iter().flatten().chain(periodic).min()
    }

    /// Processes the payloads, each at the time of its arrival in the kernel.
    fn handle_datagrams(&mut self) {
        let mut incoming = std::mem::take(&mut self.incoming);
        for Arrival { at, payload } in incoming.drain(..) {
            self.machine.handle_datagram(at, &payload);
            self.flush();
        }
        self.incoming = incoming;
    }

    fn handle_picture(&mut self, now: Now, index: usize, picture: &Sample<CompressedImage>) {
        let Some(camera) = self.cameras.get_mut(index) else { return };
        let Some(frame) = camera.frame(now, picture) else { return };
        if !self.has_met_desk {
            return camera.count_unmet();
        }
        if !camera.admit(&frame, self.machine.frame_budget(now.mono)) {
            return;
        }
        let pushed = self.machine.push_frame(now.mono, StreamId(index as u8), frame);
        camera.count_pushed(pushed.is_ok());
        self.hop.mark(picture.meta(), now.tai);
    }

    fn handle_vehicle_state(&mut self, now: Mono, state: &Sample<VehicleState>) {
        self.input.latest = Some((now, VehicleState::clone(state)));
        let speed = state.speed_mps.filter(|speed| self.input.may_be_driven && speed.is_finite());
        match speed {
            Some(speed) => {
                self.machine.set_speed(now, MetresPerSecond(speed));
                self.input.known = true;
            }
            None => self.lose_speed(now),
        }
    }

    /// Stops the vehicle, because its speed is unknown.
    fn lose_speed(&mut self, now: Mono) {
        self.input.known = false;
        self.machine.set_speed(now, MetresPerSecond(f64::NAN));
        if self.machine.driving().holder().is_some() {
            self.machine.stop(now, Reason::VehicleFault);
        }
    }

    fn handle_answer(&mut self, now: Mono, answer: &RequestAnswer) {
        let requester = self.machine.driving().requester().map(|operator| operator.to_string());
        if !answer.operator.is_empty() && requester.as_ref() != Some(&answer.operator) {
            self.outdated_answers.increment();
        } else if answer.approve {
            self.machine.approve(now);
        } else {
            self.machine.refuse(now);
        }
    }

    fn handle_timeout(&mut self, now: Now) {
        self.link.handle_timeout(now.mono);
        self.machine.handle_timeout(now.mono);
        self.flush();
        if self.schedule.drive.is_due(now.mono) {
            self.supervise_input(now.mono);
            self.send_drive_command(now);
        }
        if self.schedule.telemetry.is_due(now.mono) {
            self.send_telemetry(now);
            self.flush();
        }
        if self.schedule.state.is_due(now.mono) {
            self.publish_state(now);
            self.publish_budgets(now);
        }
        if self.schedule.upkeep.is_due(now.mono) {
            self.update_faults(now);
            self.sync_counters();
        }
    }

    /// Stops the vehicle if its state is too old.
    fn supervise_input(&mut self, now: Mono) {
        if self.input.known && self.input.current(now).is_none() {
            self.lose_speed(now);
        }
    }

    fn send_drive_command(&mut self, now: Now) {
        let Some(publisher) = &self.drive else { return };
        self.changed = false;
        self.drive_sequence = self.drive_sequence.wrapping_add(1);
        let command = drive_command(&self.machine.actuation(now.mono), now, self.drive_sequence);
        // A subscriber whose queue is full counts the drop.
        let _ = publisher.try_publish_from(Meta::from_origin(now.tai), command);
    }

    fn send_telemetry(&mut self, now: Now) {
        let telemetry = Telemetry {
            clock_us: now.mono.0.as_micros() as u32,
            tai_us: now.tai.nanos().div_euclid(1000),
            vehicle: self.input.current(now.mono).cloned(),
        };
        if self.machine.send_telemetry(now.mono, telemetry.encode_to_vec().into()).is_err() {
            self.unsent_telemetry.increment();
        }
    }

    fn publish_state(&mut self, now: Now) {
        let (speed_limit, limit_reason) = self.machine.speed_limit(now.mono);
        let (driving, link) = (self.machine.driving(), self.machine.link());
        let state = DrivingState {
            time: Some(timestamp(now.tai)),
            state: driving.state().name().to_owned(),
            reason: driving.reason().map_or_else(String::new, |reason| reason.name().to_owned()),
            holder: driving.holder().map_or_else(String::new, |operator| operator.to_string()),
            requester: driving.requester().map_or_else(String::new, |operator| operator.to_string()),
            grant: driving.grant_number(),
            trip: self.records.trip(),
            speed_limit_mps: speed_limit.value(),
            speed_limit_reason: limit_reason.name().to_owned(),
            link_up: link.up,
            round_trip_ms: link.round_trip.map(milliseconds),
            loss_to_vehicle: link.loss_in,
            loss_to_desk: link.loss_out,
            command_age_ms: driving.command().map(|command| milliseconds(command.age.estimate)),
            faults: self.records.faults(),
        };
        let _ = self.state.try_publish_from(Meta::from_origin(now.tai), state);
    }

    fn publish_budgets(&mut self, now: Now) {
        if self.cameras.is_empty() {
            return;
        }
        let frames = self.machine.frames();
        let bytes_per_second = if frames.is_stalled() { 0.0 } else { frames.target_bits_per_second() as f64 / 8.0 };
        let budgets = budgets(self.cameras.iter().map(Camera::settings), bytes_per_second);
        for (camera, budget) in self.cameras.iter().zip(budgets) {
            camera.publish_budget(now.tai, budget);
        }
    }

    fn update_faults(&mut self, now: Now) {
        let mut faults: BTreeSet<String> = self.cameras.iter().filter_map(|camera| camera.fault(now.mono)).collect();
        if self.input.states.is_some() {
            let state = self.input.current(now.mono);
            let fault = match state {
                None => Some(STATE_UNKNOWN),
                Some(state) => (!state.speed_mps.is_some_and(f64::is_finite)).then_some(SPEED_UNKNOWN),
            };
            faults.extend(fault.map(str::to_owned));
        }
        let situation = situation(&self.input, &self.machine, now);
        self.records.set_faults(situation, faults);
    }

    fn sync_counters(&mut self) {
        self.link.sync_counters();
        let speed = self.input.current(clock::mono()).and_then(|vehicle| vehicle.speed_mps);
        self.counters.sync(&self.machine, speed);
    }

    /// Sends the datagrams of the machine and handles its events.
    fn flush(&mut self) {
        while let Some(datagram) = self.machine.poll_transmit() {
            self.outgoing.push(datagram);
        }
        self.link.send(&mut self.outgoing);
        while let Some(event) = self.machine.poll_event() {
            self.handle_event(&event);
        }
        if self.changed {
            self.send_drive_command(clock::now());
        }
    }

    fn handle_event(&mut self, event: &VehicleEvent) {
        match *event {
            VehicleEvent::Frames(SenderEvent::Frame(frame)) => {
                if let Some(camera) = self.cameras.get(usize::from(frame.stream.0)) {
                    camera.count_finished(&frame);
                }
            }
            VehicleEvent::Frames(SenderEvent::Stopped | SenderEvent::Resumed) => {}
            VehicleEvent::Driving(time, event) => {
                self.changed |= matches!(event, DrivingEvent::State { .. });
                let now = clock::now();
                let situation =
                    Situation { time: tai_of_mono(now, time), ..situation(&self.input, &self.machine, now) };
                self.records.driving(situation, &event);
            }
            VehicleEvent::LinkUp => {
                self.has_met_desk = true;
                self.record("link_up");
            }
            VehicleEvent::LinkDown => self.record("link_down"),
            VehicleEvent::DeskRestarted => self.record("desk_restarted"),
        }
    }

    fn record(&mut self, event: &'static str) {
        self.records.other(situation(&self.input, &self.machine, clock::now()), event);
    }
}

/// Returns the present state of the vehicle for a record.
fn situation<'a>(input: &'a VehicleInput, machine: &Vehicle, now: Now) -> Situation<'a> {
    Situation { mono: now.mono, time: now.tai, vehicle: input.current(now.mono), operator: machine.driving().holder() }
}

/// Returns the time of a monotonic time that is not in the future.
fn tai_of_mono(now: Now, time: Mono) -> Tai {
    let ago = i64::try_from(now.mono.since(time).as_nanos()).unwrap_or(i64::MAX);
    Tai::from_nanos(now.tai.nanos().saturating_sub(ago))
}

impl VehicleInput {
    /// Returns the latest state if it is not too old.
    fn current(&self, now: Mono) -> Option<&VehicleState> {
        let (arrival, state) = self.latest.as_ref()?;
        (now.since(*arrival) <= self.timeout).then_some(state)
    }
}

fn drive_command(actuation: &Actuation, now: Now, sequence: u32) -> DriveCommand {
    let gear = match actuation.gear {
        Gear::Park => VehicleGear::Park,
        Gear::Reverse => VehicleGear::Reverse,
        Gear::Neutral => VehicleGear::Neutral,
        Gear::Drive => VehicleGear::Drive,
    };
    DriveCommand {
        time: Some(timestamp(now.tai)),
        sequence,
        steering_angle_rad: actuation.steering.radians(),
        movement: Some(Movement::AccelerationMps2(actuation.acceleration.value())),
        gear: gear.into(),
        hazard_lights: actuation.hazard_lights,
        source: "teleop".to_owned(),
    }
}

/// Waits for the next sample. Cancelling the wait loses nothing.
async fn next<M: viaduct_messages::Message>(samples: Option<&Subscriber<M>>) -> Sample<M> {
    if let Some(samples) = samples
        && let Some(sample) = samples.recv().await
    {
        return sample;
    }
    std::future::pending().await
}

/// Waits for the next picture of any camera, and returns it with the camera's index.
async fn next_picture(cameras: &[Camera]) -> (usize, Sample<CompressedImage>) {
    let of = async |index: usize| match cameras.get(index) {
        Some(camera) => (index, camera.next().await),
        None => std::future::pending().await,
    };
    tokio::select! {
        picture = of(0) => picture,
        picture = of(1) => picture,
        picture = of(2) => picture,
        picture = of(3) => picture,
    }
}
