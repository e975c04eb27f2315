//! The I/O task of the desk: it owns the machine, the socket and the list of pages.
//!
//! **Each input of the machine is followed by [`Runner::flush`]**, which sends its datagrams and handles its events.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;
use tokio::sync::mpsc::Receiver;
use viaduct_bus::{Meta, Publisher, clock};
use viaduct_messages::foxglove::CompressedImage;
use viaduct_messages::its::timestamp;
use viaduct_messages::viaduct::teleop::Telemetry;
use viaduct_messages::viaduct::vehicle::VehicleState as VehicleMessage;
use viaduct_node::{Context, StartError, Stop};
use viaduct_teleop::commands::Command as DriverInput;
use viaduct_teleop::desk::VehicleState;
use viaduct_teleop::driving::{Claim, ClaimKind, ClaimOutcome, DrivingState, OperatorId};
use viaduct_teleop::frames::{ArrivedFrame, ReceiverEvent};
use viaduct_teleop::{Desk, DeskEvent};
use viaduct_units::{Mono, Now, Tai};

use super::claims::{Claims, refusal};
use super::counters::{Counters, PageCounters};
use super::desk_clock::VehicleClock;
use super::events::Events;
use super::frame::FrameHeader;
use super::mailbox::Frame;
use super::messages::{
    CameraFacts, CameraReport, Control, DeskMessage, Level, Report, Timing, VehicleFacts, Welcome, error,
};
use super::missed::Missed;
use super::pages::{FromPage, Page, PageId, Pages};
use super::people::{People, Permission, Role};
use super::session::{Close, CommandRefusal};
use super::settings::{CameraDescription, TeleopDeskSettings};
use super::state::{Snapshot, Sources, driving_state, holder};
use super::time::{tai_us, us_of_mono};
use super::{LATEST, TeleopDesk};
use crate::net::timer::PreciseTimer;
use crate::teleop::event_log::EventLog;
use crate::teleop::link::{Arrival, DatagramLink};
use crate::teleop::periodic::Periodic;
use crate::teleop::picture::Picture;

/// Time between two updates of counters.
const UPKEEP_PERIOD: Duration = Duration::from_millis(500);
/// Time between two measurements of the rate of the link.
const RATE_PERIOD: Duration = Duration::from_secs(1);
/// Number of commands of which the page's number is remembered.
const COMMANDS_REMEMBERED: usize = 256;

/// The machine with its pages, topics and counters.
pub(super) struct Runner {
    settings: TeleopDeskSettings,
    machine: Desk,
    link: DatagramLink,
    timer: PreciseTimer,
    from_pages: Receiver<FromPage>,
    people: Arc<People>,
    pages: Pages,
    claims: Claims,
    /// Lines of the map, as a message.
    map: Option<String>,
    clock: VehicleClock,
    vehicle: Option<(Mono, VehicleMessage)>,
    /// State of the vehicle before the latest change.
    before: Option<VehicleState>,
    /// The shown state of driving, and its start.
    shown: (&'static str, Mono),
    /// Request that waits, with its number.
    request: Option<(u32, OperatorId)>,
    requests: u32,
    /// Page that has made the request.
    waiting: Option<(PageId, OperatorId)>,
    commands: CommandNumbers,
    missed: Vec<Missed>,
    rate: RateMeter,
    events: Events,
    pictures: Vec<Option<Publisher<CompressedImage>>>,
    vehicle_topic: Option<Publisher<VehicleMessage>>,
    counters: Counters,
    page_counters: PageCounters,
    incoming: Vec<Arrival>,
    outgoing: Vec<Bytes>,
    schedule: Schedule,
    /// `true` if the state of driving has changed since the last message `state`.
    changed: bool,
    stop: Stop,
}

struct Schedule {
    state: Periodic,
    upkeep: Periodic,
    rate: Periodic,
}

/// An input of the machine.
enum Input {
    Datagrams(io::Result<()>),
    Timeout(io::Result<()>),
    Page(FromPage),
    Stop,
}

/// The resources that the component opens before the task starts.
pub(super) struct Parts {
    pub(super) link: DatagramLink,
    pub(super) log: Option<EventLog>,
    pub(super) map: Option<String>,
    pub(super) people: Arc<People>,
    pub(super) from_pages: Receiver<FromPage>,
    pub(super) page_counters: PageCounters,
}

impl Runner {
    pub(super) fn new(
        settings: TeleopDeskSettings,
        parts: Parts,
        context: &Context<TeleopDesk>,
    ) -> Result<Self, StartError> {
        let now = clock::now();
        // An epoch differs from that of an earlier start.
        let epoch = (now.tai.nanos() / 1_000_000) as u32;
        let machine = Desk::new(settings.machine(), epoch).map_err(|error| StartError::Other(error.to_string()))?;
        let topic = |topic: &Option<String>| topic.as_ref().map(|topic| context.publisher(topic, LATEST)).transpose();
        let pictures = settings.cameras.iter().map(|camera| topic(&camera.topic));
        let vehicle_topic =
            settings.vehicle_topic.as_ref().map(|topic| context.publisher(topic, LATEST)).transpose()?;
        let cannot_time = |cause| StartError::io("cannot create a timer", cause);
        Ok(Self {
            machine,
            link: parts.link,
            timer: PreciseTimer::new().map_err(cannot_time)?,
            from_pages: parts.from_pages,
            people: parts.people,
            pages: Pages::default(),
            claims: Claims::default(),
            map: parts.map,
            clock: VehicleClock::default(),
            vehicle: None,
            before: None,
            shown: ("idle", now.mono),
            request: None,
            requests: 0,
            waiting: None,
            commands: CommandNumbers::default(),
            missed: settings.cameras.iter().map(|_| Missed::default()).collect(),
            rate: RateMeter::default(),
            events: Events::new(&settings.events, parts.log, context)?,
            pictures: pictures.collect::<Result<_, _>>()?,
            vehicle_topic,
            counters: Counters::new(&settings.cameras, context),
            page_counters: parts.page_counters,
            incoming: Vec::new(),
            outgoing: Vec::new(),
            schedule: Schedule {
                state: Periodic::new(now.mono, Duration::from_secs_f64(1.0 / settings.page.state_hz)),
                upkeep: Periodic::new(now.mono, UPKEEP_PERIOD),
                rate: Periodic::new(now.mono, RATE_PERIOD),
            },
            changed: false,
            stop: context.stop(),
            settings,
        })
    }

    /// Runs until the component is asked to stop or the socket fails.
    pub(super) async fn run(mut self) -> io::Result<()> {
        let ended = self.run_until_stopped().await;
        for (_, page) in self.pages.iter() {
            page.mailbox.close(Close::Stops);
        }
        self.sync_counters();
        ended
    }

    async fn run_until_stopped(&mut self) -> io::Result<()> {
        loop {
            self.flush();
            let due = self.due();
            self.timer.set(due)?;
            let input = self.next_input().await;
            if !matches!(input, Input::Datagrams(_) | Input::Stop) {
                // After a stall of this machine, the input would otherwise act on a silence of the vehicle that did not happen.
                self.link.receive_if_late(due, &mut self.incoming)?;
                self.handle_datagrams();
            }
            match input {
                Input::Datagrams(received) => {
                    received?;
                    self.handle_datagrams();
                }
                Input::Timeout(expired) => {
                    expired?;
                    self.handle_timeout(clock::now());
                }
                Input::Page(input) => self.handle_page(clock::now(), input),
                Input::Stop => return Ok(()),
            }
        }
    }

    async fn next_input(&mut self) -> Input {
        tokio::select! {
            received = self.link.receive(&mut self.incoming) => Input::Datagrams(received),
            expired = self.timer.expired() => Input::Timeout(expired),
            Some(input) = self.from_pages.recv() => Input::Page(input),
            () = self.stop.asked() => Input::Stop,
        }
    }

    /// Returns the time of the next timeout or periodic work.
    fn due(&self) -> Option<Mono> {
        let Schedule { state, upkeep, rate } = &self.schedule;
        let machines = [self.machine.poll_timeout(), self.link.poll_timeout()];
        machines.into_iter().flatten().chain([state, upkeep, rate].map(Periodic::due)).min()
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

    fn handle_timeout(&mut self, now: Now) {
        self.link.handle_timeout(now.mono);
        self.machine.handle_timeout(now.mono);
        if self.schedule.rate.is_due(now.mono) {
            self.rate.measure(now.mono, self.link.received_octets());
        }
        if self.schedule.state.is_due(now.mono) {
            self.send_state(now);
        }
        if self.schedule.upkeep.is_due(now.mono) {
            self.sync_counters();
        }
    }

    fn sync_counters(&mut self) {
        self.link.sync_counters();
        self.counters.sync(&self.machine);
        for (missed, counters) in self.missed.iter().zip(&self.counters.pictures) {
            counters.missed.set(missed.count() as f64);
        }
    }

    /// Sends the datagrams of the machine and handles its events.
    fn flush(&mut self) {
        while let Some(datagram) = self.machine.poll_transmit() {
            self.outgoing.push(datagram);
        }
        self.commands.note_sent(self.machine.command_sequence());
        self.link.send(&mut self.outgoing);
        while let Some(event) = self.machine.poll_event() {
            self.handle_event(clock::now(), event);
        }
        if self.changed {
            self.send_state(clock::now());
        }
    }

    fn handle_event(&mut self, now: Now, event: DeskEvent) {
        match event {
            DeskEvent::Frames(ReceiverEvent::Arrived(frame)) => self.handle_frame(now, &frame),
            DeskEvent::Frames(ReceiverEvent::Lost(frame)) => {
                if let Some(missed) = self.missed.get_mut(usize::from(frame.stream.0)) {
                    missed.lose(frame.number);
                }
            }
            DeskEvent::Frames(ReceiverEvent::SenderRestarted) => self.missed.iter_mut().for_each(Missed::restart),
            DeskEvent::Telemetry(payload) => self.handle_telemetry(now, payload),
            DeskEvent::State(state) => self.handle_state(now, state),
            DeskEvent::Answered(claim, outcome) => self.handle_answer(now, &claim, outcome),
            DeskEvent::Unanswered(claim) => self.handle_unanswered(now, &claim),
            DeskEvent::LinkUp => self.handle_link(now, Level::Info, "link_up", "Link to the vehicle established"),
            DeskEvent::LinkDown => self.handle_link(now, Level::Warning, "link_lost", "Link to the vehicle lost"),
            DeskEvent::VehicleRestarted => {
                self.clock.forget();
                (self.vehicle, self.before) = (None, None);
                self.handle_link(now, Level::Warning, "vehicle_restarted", "The vehicle's end has restarted");
            }
        }
    }

    fn handle_link(&mut self, now: Now, level: Level, code: &'static str, text: &str) {
        self.changed = true;
        self.emit(now, level, code, text);
    }

    fn handle_frame(&mut self, now: Now, frame: &ArrivedFrame) {
        let camera = usize::from(frame.stream.0);
        let (Some(missed), Some(counters)) = (self.missed.get_mut(camera), self.counters.pictures.get(camera)) else {
            return self.counters.unknown_camera.increment();
        };
        missed.arrive(frame.number);
        counters.arrived.increment();
        counters.repaired.add(u64::from(frame.symbols_repaired > 0));
        counters.missed.set(missed.count() as f64);
        counters.latency_ms.set(frame.latency.as_secs_f64() * 1e3);
        let Ok(picture) = Picture::parse(&frame.data) else { return self.counters.not_jpeg.increment() };
        let capture = self.capture_time(now, frame, &picture);
        counters.hop.mark(Meta::from_origin(capture), now.tai);
        self.publish_picture(camera, capture, frame);
        let (width, height) = picture.size.unwrap_or((1, 1));
        let uncertainty = self.clock.offset(now.mono).map(|offset| offset.uncertainty.as_micros());
        let header = FrameHeader {
            camera: frame.stream.0,
            mark: picture.info.is_some_and(|info| info.mark),
            reduced: picture.info.is_some_and(|info| info.reduced),
            repaired: frame.symbols_repaired > 0,
            number: picture.info.map_or(frame.number, |info| info.number),
            missed: self.missed.get(camera).map_or(0, Missed::count) as u32,
            capture_us: tai_us(capture),
            arrival_us: tai_us(now.tai),
            deadline_us: us_of_mono(now, frame.deadline),
            width,
            height,
            uncertainty_us: uncertainty.map(|micros| u32::try_from(micros).unwrap_or(u32::MAX - 1)),
        };
        let Some(message) = header.message(&frame.data) else { return self.counters.too_long.increment() };
        for (_, page) in self.pages.iter() {
            page.mailbox.set_frame(Frame { camera, message: message.clone(), deadline: frame.deadline });
        }
    }

    /// Returns the time at which the camera took the picture, by the desk's clock.
    fn capture_time(&self, now: Now, frame: &ArrivedFrame, picture: &Picture) -> Tai {
        let offset = self.clock.offset(now.mono);
        let known = picture.info.zip(offset).map(|(info, offset)| offset.desk_time(info.capture));
        let estimated = || {
            let ago = i64::try_from(frame.latency.as_nanos()).unwrap_or(i64::MAX);
            Tai::from_nanos(now.tai.nanos().saturating_sub(ago))
        };
        known.unwrap_or_else(estimated)
    }

    fn publish_picture(&self, camera: usize, capture: Tai, frame: &ArrivedFrame) {
        let Some(Some(publisher)) = self.pictures.get(camera) else { return };
        let image = CompressedImage {
            timestamp: Some(timestamp(capture)),
            data: frame.data.clone(),
            format: "jpeg".to_owned(),
            frame_id: self.settings.cameras.get(camera).map_or_else(String::new, |camera| camera.name.clone()),
        };
        // A subscriber whose queue is full counts the drop.
        let _ = publisher.try_publish_from(Meta::from_origin(capture), image);
    }

    fn handle_telemetry(&mut self, now: Now, payload: Bytes) {
        let Ok(telemetry) = Telemetry::decode(payload) else { return self.counters.telemetry_malformed.increment() };
        let one_way = self.machine.link().round_trip.unwrap_or_default() / 2;
        if let Some((moment, uncertainty)) = self.machine.time_of_vehicle(telemetry.clock_us) {
            self.clock.measure(now, telemetry.tai_us, moment, uncertainty);
        }
        let Some(vehicle) = telemetry.vehicle else { return self.vehicle = None };
        if let Some(publisher) = &self.vehicle_topic {
            let ago = i64::try_from(one_way.as_nanos()).unwrap_or(0);
            let origin = Tai::from_nanos(now.tai.nanos().saturating_sub(ago));
            let _ = publisher.try_publish_from(Meta::from_origin(origin), vehicle.clone());
        }
        self.vehicle = Some((now.mono, vehicle));
    }

    /// Handles a change of the state of driving.
    fn handle_state(&mut self, now: Now, state: VehicleState) {
        let before = self.before.replace(state);
        self.changed = true;
        let requester = state.requester;
        if requester != before.and_then(|before| before.requester) {
            self.requests = self.requests.wrapping_add(1);
            self.request = requester.map(|operator| (self.requests, operator));
            if let Some(operator) = requester {
                let text = format!("{} requests control", self.people.name_of(operator));
                self.emit(now, Level::Info, "requested", &text);
            }
        }
        if state.holder != before.and_then(|before| before.holder)
            && let Some(operator) = state.holder
        {
            if let Some((page, _)) = self.waiting.take_if(|(_, waiting)| *waiting == operator) {
                self.pages.set_driver(page);
            }
            self.emit(now, Level::Info, "granted", &format!("{} has control", self.people.name_of(operator)));
        }
        let (was, is) = (before.map(|before| before.state), state.state);
        let reason = state.reason.map_or("", |reason| reason.name());
        if is == DrivingState::Stopped && was != Some(is) {
            self.emit(now, Level::Alarm, "stopped", &format!("The vehicle stops: {}", reason.replace('_', " ")));
        } else if is == DrivingState::Idle && was.is_some_and(|was| was != is) {
            self.emit(now, Level::Info, "idle", &format!("No operator has control: {}", reason.replace('_', " ")));
        }
    }

    fn handle_answer(&mut self, now: Now, claim: &Claim, outcome: ClaimOutcome) {
        let Some(made) = self.claims.take(claim) else { return };
        match outcome {
            ClaimOutcome::Granted => self.pages.set_driver(made.page),
            ClaimOutcome::WaitingHolder | ClaimOutcome::WaitingVehicle => {
                self.waiting = Some((made.page, made.operator));
            }
            _ => {}
        }
        self.changed = true;
        if let Some(text) = refusal(outcome) {
            self.counters.claims_refused.increment();
            self.reply(made.page, outcome.name(), text, made.reply_to);
            tracing::debug!(operator = %made.operator, outcome = outcome.name(), now = ?now.mono, "claim refused");
        }
    }

    fn handle_unanswered(&mut self, now: Now, claim: &Claim) {
        let Some(made) = self.claims.take(claim) else { return };
        self.counters.claims_refused.increment();
        self.reply(made.page, "link", "The vehicle has not answered. The link may be down.", made.reply_to);
        if made.kind == ClaimKind::EmergencyStop {
            self.emit(now, Level::Alarm, "unanswered", "The vehicle has not confirmed the emergency stop");
        }
    }

    /// Passes on the median latency of the main camera at the driver's screen. It counts for the speed limit.
    fn handle_displayed_latency(&mut self, now: Now, report: &Report) {
        let main = report.cameras.iter().find(|camera| usize::from(camera.camera) == self.settings.main_camera);
        if let Some(latency_us) = main.and_then(CameraReport::glass_median_us) {
            self.machine.set_displayed_latency(now.mono, Duration::from_micros(latency_us.into()));
        }
    }

    fn handle_page(&mut self, now: Now, input: FromPage) {
        match input {
            FromPage::Opened { page, person, mailbox } => self.open_page(now, page, Page { person, mailbox, seq: 0 }),
            FromPage::Input { page, seq, sampled, input } => self.handle_input(now, page, seq, sampled, input),
            FromPage::Control { page, control } => self.handle_control(now, page, &control),
            FromPage::Report { page, report } => {
                if self.pages.is_driver(page, holder(&self.machine)) {
                    self.counters.show_report(&report);
                    self.handle_displayed_latency(now, &report);
                }
            }
            FromPage::Left { page } => self.close_page(now, page),
        }
    }

    fn open_page(&mut self, now: Now, id: PageId, page: Page) {
        page.mailbox.answer(self.welcome(id, &page));
        if let Some(map) = &self.map {
            page.mailbox.answer(map.clone());
        }
        let role = if page.person.role == Role::Driver { "driver" } else { "observer" };
        let text = format!("{} logged in as {role}", page.person.name);
        self.pages.add(id, page, holder(&self.machine));
        self.counters.pages.set(self.pages.len() as f64);
        self.emit(now, Level::Info, "login", &text);
        self.changed = true;
    }

    fn close_page(&mut self, now: Now, id: PageId) {
        let Some(person) = self.pages.remove(id) else { return };
        self.counters.pages.set(self.pages.len() as f64);
        self.emit(now, Level::Info, "logout", &format!("{} logged out", person.name));
        self.changed = true;
        let requests = self.request.is_some_and(|(_, operator)| operator == person.operator);
        if requests && !self.pages.has(person.operator) {
            // The result is a new state of the vehicle.
            let _ = self.machine.claim(now.mono, ClaimKind::Release, person.operator);
        }
    }

    fn welcome(&self, id: PageId, page: &Page) -> String {
        let TeleopDeskSettings { vehicle, cameras, page: timing, .. } = &self.settings;
        let session = format!("page-{id}");
        DeskMessage::Welcome(Welcome {
            session: &session,
            name: &page.person.name,
            role: page.person.role,
            may: &page.person.may,
            vehicle: VehicleFacts {
                name: &vehicle.name,
                steering_max_rad: vehicle.steering_max_deg.to_radians(),
                speed_max_mps: vehicle.speed_max_mps,
            },
            cameras: cameras.iter().enumerate().map(camera_facts).collect(),
            timing: Timing {
                command_hz: timing.command_hz,
                state_hz: timing.state_hz,
                late_ms: timing.late_ms,
                freeze_ms: timing.freeze_ms,
                latency_limit_ms: timing.latency_limit_ms,
                hold_ms: vehicle.hold_ms,
                ramp_ms: vehicle.ramp_ms,
                stop_ms: vehicle.stop_ms,
            },
        })
        .to_text()
    }

    fn handle_input(&mut self, now: Now, id: PageId, seq: u32, sampled: Mono, input: DriverInput) {
        let person = self.pages.get(id).map(|page| page.person.clone());
        let drives = self.pages.is_driver(id, holder(&self.machine));
        let Some(person) = person.filter(|_| drives) else {
            return self.page_counters.count_refused(CommandRefusal::NotHolder);
        };
        self.counters.commands.increment();
        self.commands.note_input(seq);
        self.machine.set_input(now.mono, person.operator, sampled, input);
        if input.emergency_stop {
            self.stop_at_once(now, id, person.operator, &person.name);
        }
    }

    fn handle_control(&mut self, now: Now, id: PageId, control: &Control) {
        let Some(page) = self.pages.get(id) else { return };
        let (person, reply_to) = (page.person.clone(), control.name());
        let needed = match control {
            Control::Request => Some(Permission::Drive),
            Control::TakeOver { .. } => Some(Permission::TakeOver),
            Control::EmergencyStop => Some(Permission::EmergencyStop),
            Control::Release | Control::Answer { .. } => None,
        };
        if needed.is_some_and(|permission| !person.may(permission)) {
            return self.reply(id, "not_permitted", "You may not do this.", reply_to);
        }
        if self.machine.vehicle().is_none() {
            self.reply(id, "no_vehicle", "No vehicle has connected to this desk yet.", reply_to);
            if *control != Control::EmergencyStop {
                return;
            }
        }
        match control {
            Control::Request if self.pages.drives_elsewhere(id, person.operator) && self.holds(person.operator) => {
                self.reply(id, "busy", "You have control on another page. Take over to move it to this one.", reply_to);
            }
            Control::Request => self.claim(now, id, ClaimKind::Request, person.operator, reply_to),
            Control::Release => self.claim(now, id, ClaimKind::Release, person.operator, reply_to),
            Control::TakeOver { reason } => {
                let text = format!("{} takes over: {reason}", person.name);
                self.emit(now, Level::Warning, "take_over", &text);
                self.claim(now, id, ClaimKind::TakeOver, person.operator, reply_to);
            }
            Control::Answer { id: request, grant } => self.answer_request(now, id, *request, *grant),
            Control::EmergencyStop => self.stop_at_once(now, id, person.operator, &person.name),
        }
    }

    /// Returns `true` if the operator has control.
    fn holds(&self, operator: OperatorId) -> bool {
        holder(&self.machine) == Some(operator)
    }

    fn answer_request(&mut self, now: Now, id: PageId, request: u32, grant: bool) {
        let Some(page) = self.pages.get(id) else { return };
        let (operator, reply_to) = (page.person.operator, "answer_request");
        if !self.pages.is_driver(id, holder(&self.machine)) {
            return self.reply(id, "not_holder", "You do not have control.", reply_to);
        }
        if self.request.is_none_or(|(number, _)| number != request) {
            return self.reply(id, "no_request", "This request does not wait any more.", reply_to);
        }
        let kind = if grant { ClaimKind::Accept } else { ClaimKind::Refuse };
        self.claim(now, id, kind, operator, reply_to);
    }

    /// Stops the vehicle at once, if this was not asked for already.
    fn stop_at_once(&mut self, now: Now, id: PageId, operator: OperatorId, name: &str) {
        if self.claims.stops() {
            return;
        }
        self.emit(now, Level::Alarm, "emergency_stop", &format!("Emergency stop by {name}"));
        self.claim(now, id, ClaimKind::EmergencyStop, operator, "emergency_stop");
    }

    fn claim(&mut self, now: Now, id: PageId, kind: ClaimKind, operator: OperatorId, reply_to: &'static str) {
        match self.machine.claim(now.mono, kind, operator) {
            Ok(number) => self.claims.add(number, id, kind, operator, reply_to),
            Err(refused) => self.reply(id, "rate_limit", &refused.to_string(), reply_to),
        }
    }

    fn reply(&self, id: PageId, code: &str, text: &str, reply_to: &str) {
        if let Some(page) = self.pages.get(id) {
            page.mailbox.answer(error(code, text, false, Some(reply_to)));
        }
    }

    fn emit(&mut self, now: Now, level: Level, code: &'static str, text: &str) {
        self.events.emit(now, &self.pages, level, code, text);
    }

    /// Sends the present state to all pages.
    fn send_state(&mut self, now: Now) {
        self.changed = false;
        let (state, _) = driving_state(&self.machine);
        if self.shown.0 != state {
            self.shown = (state, now.mono);
        }
        let holder = holder(&self.machine);
        let request = self.request.filter(|_| self.machine.link().up);
        let vehicle_command = self.machine.vehicle().and_then(|vehicle| vehicle.command);
        let snapshot = Snapshot::new(
            now,
            &Sources {
                machine: &self.machine,
                people: &self.people,
                clock: &self.clock,
                vehicle: self.vehicle.as_ref(),
                since: self.shown.1,
                request,
                rate_mbps: self.rate.mbps,
                missed: self.missed.iter().map(Missed::count).sum(),
                command_seq: vehicle_command.and_then(|(number, _)| self.commands.of_page(number)),
                commands_refused: self.page_counters.commands_refused(),
            },
        );
        let drivers: Vec<PageId> =
            self.pages.iter().map(|(id, _)| id).filter(|id| self.pages.is_driver(*id, holder)).collect();
        for (id, page) in self.pages.iter_mut() {
            page.seq = page.seq.wrapping_add(1);
            let requests = request.is_some_and(|(_, operator)| operator == page.person.operator);
            page.mailbox.set_state(snapshot.message(page.seq, drivers.contains(&id), requests));
        }
    }
}

fn camera_facts((index, camera): (usize, &CameraDescription)) -> CameraFacts<'_> {
    CameraFacts {
        camera: index,
        name: &camera.name,
        place: camera.place,
        // A conversion from a float saturates.
        period_us: (camera.period_ms * 1e3) as u64,
    }
}

/// The numbers that the page gave to the commands of the machine.
#[derive(Debug, Default)]
struct CommandNumbers {
    /// Number of the latest input of the page.
    input: Option<u32>,
    /// Number of the latest command of the machine.
    sent: u32,
    /// Numbers of the machine with those of the page, oldest first.
    sent_with: VecDeque<(u32, u32)>,
}

impl CommandNumbers {
    fn note_input(&mut self, seq: u32) {
        self.input = Some(seq);
    }

    fn note_sent(&mut self, number: u32) {
        if number == self.sent {
            return;
        }
        self.sent = number;
        if let Some(seq) = self.input {
            if self.sent_with.len() == COMMANDS_REMEMBERED {
                self.sent_with.pop_front();
            }
            self.sent_with.push_back((number, seq));
        }
    }

    /// Returns the page's number of a command of the machine, or `None` if it is forgotten.
    fn of_page(&self, number: u32) -> Option<u32> {
        self.sent_with.iter().rev().find(|(sent, _)| *sent == number).map(|(_, seq)| *seq)
    }
}

/// The rate at which the link delivers.
#[derive(Debug, Default)]
struct RateMeter {
    before: Option<(Mono, u64)>,
    mbps: f64,
}

impl RateMeter {
    fn measure(&mut self, now: Mono, octets: u64) {
        if let Some((at, before)) = self.before {
            let seconds = now.since(at).as_secs_f64().max(1e-3);
            self.mbps = octets.saturating_sub(before) as f64 * 8e-6 / seconds;
        }
        self.before = Some((now, octets));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_of_the_machine_has_the_number_of_the_pages_latest_input() {
        let mut numbers = CommandNumbers::default();
        numbers.note_sent(1);
        assert_eq!(numbers.of_page(1), None);
        for number in 2..1000 {
            numbers.note_input(10 * number);
            numbers.note_input(10 * number + 1);
            numbers.note_sent(number);
            numbers.note_sent(number);
        }
        assert_eq!((numbers.of_page(999), numbers.of_page(2)), (Some(9991), None));
        assert_eq!(numbers.sent_with.len(), COMMANDS_REMEMBERED);
    }

    #[test]
    fn the_rate_is_that_of_the_last_second() {
        let mut rate = RateMeter::default();
        for (second, octets, expected) in [(1, 1000, 0.0), (2, 1_251_000, 10.0), (4, 1_251_000, 0.0)] {
            rate.measure(Mono(Duration::from_secs(second)), octets);
            assert_eq!(rate.mbps, expected);
        }
    }
}
