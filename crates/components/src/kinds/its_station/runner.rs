//! The I/O task of a station: it owns the station machine, passes inputs to it and performs its outputs.
//!
//! **Each input of the machine is followed by [`Runner::transmit`]**: the machine has room for the frames of one input.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use viaduct_bus::{Meta, Publisher, Sample, Subscriber, clock};
use viaduct_its::facilities::{Message, MessageKind};
use viaduct_its::geonet::Mib;
use viaduct_its::{Ego, Event, SendRequest, Station, StationSettings};
use viaduct_messages::viaduct::its::{AccessLayer, Direction, V2xMessage, V2xSendRequest};
use viaduct_node::{Context, StartError, Stop};
use viaduct_units::{MetresPerSecond, Mono, Now, Position, StationId, StationType, Tai};

use super::channel::Channel;
use super::counters::StationCounters;
use super::errors::{Errors, Refusal};
use super::filter::Filter;
use super::link::{FrameTime, Link, LinkError, LinkFrame, access_layer};
use super::services::{self, Input, Services};
use super::settings::{CaptureSettings, ItsStationSettings, mac_of_station};
use super::{ItsStation, OFFERED};
use crate::capture::writer::{CaptureCounts, CaptureWriter};
use crate::v2x::{message, request};

/// Maximum number of frames handled in a row before other inputs are polled.
const FRAMES_PER_TURN_MAX: usize = 64;

/// Interval of the position update of a fixed station, and of reading the kernel's drop counter.
const UPKEEP_PERIOD: Duration = Duration::from_millis(500);

/// Time limit for draining each of: send requests, inputs of the services, and frames in the kernel, when the station stops.
const DRAIN_TIME_MAX: Duration = Duration::from_millis(50);

/// Time limit for all draining, including the frames that wait at the DCC gate. A packet of 1000 octets closes the gate
/// for less than this time at a channel busy ratio of 0.58. If eight components share a node's stop time, each has more
/// than this time.
const STOP_TIME_MAX: Duration = Duration::from_millis(200);

/// A station machine with its topics and counters.
pub(crate) struct Runner {
    machine: Station,
    /// Arguments for a new machine, which each pass of a capture starts with.
    machine_arguments: MachineArguments,
    receiver: String,
    access: AccessLayer,
    filter: Filter,
    /// Capture file for received and sent frames, if configured.
    capture: Option<CaptureWriter>,
    /// The shared radio channel, if DCC is configured.
    channel: Option<Channel>,
    /// Position from the settings.
    fixed_position: Option<Position>,
    /// Last position passed to the machine.
    ego: Option<Ego>,
    received: Publishers,
    sent: Option<Publishers>,
    requests: Option<Subscriber<V2xSendRequest>>,
    /// The facilities services, if configured.
    services: Option<Services>,
    counters: StationCounters,
    errors: Errors,
    station_id: StationId,
    station_type: StationType,
    /// Time of the next [`Runner::upkeep`].
    upkeep_due: Mono,
    stop: Stop,
}

/// Arguments of a new machine.
#[derive(Clone, Copy)]
struct MachineArguments {
    settings: StationSettings,
    mib: Mib,
    seed: u64,
}

impl MachineArguments {
    fn start(self, now: Tai) -> Station {
        Station::with_mib(self.settings, self.mib, self.seed).with_sequence_of(now)
    }
}

/// One publisher for each message type.
type Publishers = BTreeMap<MessageKind, Publisher<V2xMessage>>;

impl Runner {
    pub(super) fn new(
        settings: &ItsStationSettings,
        link: &Link,
        context: &Context<ItsStation>,
    ) -> Result<Self, StartError> {
        let link_address = settings
            .configured_address()?
            .or_else(|| link.hardware_address())
            .unwrap_or_else(|| mac_of_station(StationId(settings.station_id)));
        let station = StationSettings {
            link_address,
            station_type: StationType(settings.station_type),
            mobile: !StationType(settings.station_type).is_roadside_unit(),
            beacons: settings.beacons,
        };
        // The start time is part of the seed, so that random numbers differ from one start to the next.
        let start = clock::now();
        let seed = context.seed() ^ start.tai.nanos().unsigned_abs();
        let machine_arguments = MachineArguments { settings: station, mib: settings.mib(), seed };
        let publishers = |below: &str| -> Result<Publishers, StartError> {
            let open = |kind: MessageKind| {
                Ok((kind, context.publisher::<V2xMessage>(&format!("{below}/{}", kind.label()), OFFERED)?))
            };
            MessageKind::ALL.into_iter().map(open).collect()
        };
        let topics = &settings.topics;
        let services = settings.services.as_ref();
        let requests =
            topics.send.as_ref().map(|topic| context.subscribe::<V2xSendRequest>(topic, OFFERED)).transpose()?;
        Ok(Self {
            machine: machine_arguments.start(start.tai),
            machine_arguments,
            receiver: format!("{}/{}", context.node(), context.name()),
            access: access_layer(&settings.access),
            filter: Filter::new(&settings.filter)?,
            capture: settings.capture.as_ref().map(|capture| open_capture(capture, context)).transpose()?,
            channel: settings.dcc.map(|dcc| Channel::new(dcc, link_address, start.mono)),
            fixed_position: settings.position.map(|place| place.position()),
            ego: None,
            received: publishers(&topics.rx)?,
            sent: settings.sends().then(|| publishers(&topics.tx)).transpose()?,
            requests,
            services: services.map(|it| Services::new(it, settings, start, seed, context)).transpose()?,
            counters: StationCounters::new(context),
            errors: Errors::new(&topics.errors, access_layer(&settings.access), context)?,
            station_id: StationId(settings.station_id),
            station_type: StationType(settings.station_type),
            upkeep_due: clock::mono(),
            stop: context.stop(),
        })
    }

    /// Runs until the stop of the station is requested or the link fails. The end of a capture does not end the
    /// station.
    pub(super) async fn run(mut self, mut link: Link) -> Result<(), LinkError> {
        let ended = self.run_until_stopped(&mut link).await;
        self.sync_counters();
        if let Some(channel) = &self.channel {
            self.counters.dcc.count_stopped(&channel.counters());
        }
        ended
    }

    async fn run_until_stopped(&mut self, link: &mut Link) -> Result<(), LinkError> {
        let mut stop = self.stop.clone();
        while !stop.is_asked() {
            self.upkeep(link).await?;
            let deadline = self.sleep_until_timeout();
            tokio::select! {
                frame = link.receive() => self.take_frames(&frame?, link).await?,
                () = deadline => self.handle_timeout(clock::now(), link).await,
                request = next_request(self.requests.as_ref()) => self.handle_request(&request, link).await,
                input = services::next_input(self.services.as_ref()) => self.handle_input(&input, link).await,
                () = stop.asked() => {}
            }
        }
        let deadline = clock::mono().plus(STOP_TIME_MAX);
        self.drain_requests(link).await;
        self.drain_inputs(link).await;
        self.drain_link(link).await?;
        self.drain_channel(link, deadline).await;
        Ok(())
    }

    /// Sends the messages that were requested before the stop, for at most [`DRAIN_TIME_MAX`] because requests may keep arriving.
    async fn drain_requests(&mut self, link: &mut Link) {
        let deadline = clock::mono().plus(DRAIN_TIME_MAX);
        while clock::mono() < deadline
            && let Some(request) = self.requests.as_ref().and_then(Subscriber::try_recv)
        {
            self.handle_request(&request, link).await;
        }
    }

    /// Handles inputs published before the stop, such as the termination of an event, for at most [`DRAIN_TIME_MAX`].
    async fn drain_inputs(&mut self, link: &mut Link) {
        let deadline = clock::mono().plus(DRAIN_TIME_MAX);
        while clock::mono() < deadline
            && let Some(input) = self.services.as_ref().and_then(Services::try_next_input)
        {
            self.handle_input(&input, link).await;
        }
    }

    /// Handles frames that the kernel received before the stop, for at most [`DRAIN_TIME_MAX`] because more may arrive.
    async fn drain_link(&mut self, link: &mut Link) -> Result<(), LinkError> {
        let deadline = clock::mono().plus(DRAIN_TIME_MAX);
        while clock::mono() < deadline
            && let Some(frame) = link.try_receive()?
        {
            self.take_frame(&frame, link).await;
        }
        self.counters.count_kernel_drops(link.kernel_drops()?);
        Ok(())
    }

    /// Sends frames that wait at the DCC gate, the most urgent first, as far as the gate opens before the deadline.
    async fn drain_channel(&mut self, link: &mut Link, deadline: Mono) {
        let opens_at = |channel: &Channel| channel.gate_opens_at().filter(|time| *time <= deadline);
        while let Some(opens_at) = self.channel.as_ref().and_then(opens_at) {
            sleep_until(Some(opens_at)).await;
            self.transmit(link).await;
        }
    }

    async fn take_frames(&mut self, first: &LinkFrame, link: &mut Link) -> Result<(), LinkError> {
        self.take_frame(first, link).await;
        for _ in 1..FRAMES_PER_TURN_MAX {
            let Some(frame) = link.try_receive()? else { break };
            self.take_frame(&frame, link).await;
        }
        Ok(())
    }

    async fn take_frame(&mut self, frame: &LinkFrame, link: &mut Link) {
        if let FrameTime::Captured { again: true, .. } = frame.time {
            self.restart();
            self.transmit(link).await;
        }
        let octets = match &frame.octets {
            Ok(octets) => octets,
            Err(reason) => {
                self.counters.count_skipped(*reason);
                return;
            }
        };
        if let Some(channel) = &mut self.channel {
            channel.observe(octets);
        }
        if let Some(reason) = self.filter.check(octets) {
            self.counters.count_filtered(reason);
            return;
        }
        let now = clock::now();
        let cause = match frame.time {
            FrameTime::Now => self.handle_received(now, now.tai, octets),
            FrameTime::Received(reception) => self.handle_received(now, reception, octets),
            FrameTime::Captured { at: captured, .. } => self.handle_replayed(now, captured, octets),
        };
        self.transmit(link).await;
        self.send_service_messages(clock::now(), &cause, link).await;
    }

    fn handle_received(&mut self, now: Now, reception: Tai, octets: &Bytes) -> Meta {
        self.handle_frame(Now { tai: reception, ..now }, octets, Meta::from_origin(reception), 0)
    }

    /// Handles a frame of a capture: it is decoded with its capture time, which its wrapping time fields refer to, and the
    /// resulting times are shifted to now.
    fn handle_replayed(&mut self, now: Now, captured: Tai, octets: &Bytes) -> Meta {
        let shift_ns = now.tai.nanos().saturating_sub(captured.nanos());
        self.handle_frame(Now { tai: captured, ..now }, octets, Meta::from_origin(now.tai), shift_ns)
    }

    /// Starts a new pass of a capture with a new machine, so that its packets are not duplicates of the previous pass.
    fn restart(&mut self) {
        let now = clock::now();
        self.sync_counters();
        self.counters.router.restart();
        self.counters.capture_repeated.add(self.machine.held_packets().try_into().unwrap_or(u64::MAX));
        self.machine = self.machine_arguments.start(now.tai);
        if let Some(services) = &mut self.services {
            services.restart(&Meta::from_origin(now.tai));
        }
        // The own position does not come from the capture.
        if let Some(ego) = self.ego {
            self.machine.set_ego(now, ego);
        }
    }

    /// Passes a frame to the machine and publishes the received messages. Returns the frame's metadata, which the messages
    /// that the station sends in response inherit.
    fn handle_frame(&mut self, now: Now, octets: &Bytes, meta: Meta, shift_ns: i64) -> Meta {
        self.counters.received.increment();
        self.record(now.tai, octets);
        self.machine.handle_frame(now, octets);
        while let Some(event) = self.machine.poll_event() {
            match event {
                Event::Received(packet) => {
                    let message = message::received_message(&packet, &self.receiver, self.access, shift_ns);
                    let message = self.with_receiver(message, octets.len());
                    self.counters.delivered.increment();
                    publish(&self.received, packet.kind, &meta, message);
                    if let Some(services) = &mut self.services {
                        let clock = services.handle_received(now, &packet, &meta, shift_ns);
                        if let Some(report) = clock {
                            let reported = Now { tai: message::shifted(now.tai, shift_ns), ..now };
                            self.errors.clock_offset(reported, &report, &meta);
                        }
                    }
                }
                Event::Relayed => self.counters.relayed.increment(),
                Event::LocationService => self.counters.location_service.increment(),
                Event::Beacon(_) => self.counters.beacons.increment(),
                Event::Dropped(reason) => {
                    self.counters.count_dropped(reason);
                    let shifted = Now { tai: message::shifted(now.tai, shift_ns), ..now };
                    self.errors.dropped(shifted, reason, octets, &meta);
                }
            }
        }
        meta
    }

    /// Does periodic work, regardless of the load of the channel.
    async fn upkeep(&mut self, link: &mut Link) -> Result<(), LinkError> {
        let now = clock::now();
        if now.mono < self.upkeep_due {
            return Ok(());
        }
        self.upkeep_due = now.mono.plus(UPKEEP_PERIOD);
        self.update_position(now);
        self.transmit(link).await;
        link.check()?;
        self.counters.count_kernel_drops(link.kernel_drops()?);
        if let Some(capture) = &mut self.capture {
            capture.flush();
        }
        self.sync_counters();
        // Traffic must not delay a timeout that is due.
        if self.poll_timeout().is_some_and(|due| due <= now.mono) {
            self.handle_timeout(now, link).await;
        }
        Ok(())
    }

    /// Updates the counters that mirror those of the router, the services and the DCC gate, and reports losses.
    fn sync_counters(&mut self) {
        let now = clock::now();
        let mut losses = self.counters.router.sync(&self.machine);
        if let Some(services) = &mut self.services {
            losses.extend(services.sync_counters());
        }
        if let Some(channel) = &self.channel {
            losses.extend(self.counters.dcc.sync(&channel.counters()));
        }
        losses.extend(self.counters.take_send_failures());
        for loss in losses {
            self.errors.lost(now, &loss);
        }
    }

    /// Handles the timeouts of the channel, the machine and the services.
    async fn handle_timeout(&mut self, now: Now, link: &mut Link) {
        if let Some(channel) = &mut self.channel
            && let Some(t_gen) = channel.handle_timeout(now.mono)
            && let Some(services) = &mut self.services
        {
            services.set_t_gen_dcc(t_gen);
        }
        if self.machine.poll_timeout().is_some_and(|due| due <= now.mono) {
            self.machine.handle_timeout(now);
        }
        self.transmit(link).await;
        // Sending may have taken a while.
        let now = clock::now();
        if let Some(services) = &mut self.services {
            services.handle_timeout(now);
        }
        self.send_service_messages(now, &Meta::from_origin(now.tai), link).await;
    }

    async fn handle_input(&mut self, input: &Input, link: &mut Link) {
        let now = clock::now();
        let Some(services) = &mut self.services else { return };
        match services.handle_input(now, input) {
            Ok(Some(ego)) => self.set_ego(now, ego),
            Ok(None) => {}
            Err(error) => self.errors.input_refused(now, &error, input),
        }
        self.transmit(link).await;
        self.send_service_messages(now, &input.meta(), link).await;
    }

    /// Publishes the events of the services and sends the messages that they have generated.
    async fn send_service_messages(&mut self, now: Now, cause: &Meta, link: &mut Link) {
        let Some(services) = &mut self.services else { return };
        services.publish_events(cause);
        while let Some(request) = self.services.as_mut().and_then(Services::poll_transmit) {
            self.send_own(now, &request, cause);
            self.transmit(link).await;
        }
    }

    fn send_own(&mut self, now: Now, request: &SendRequest, cause: &Meta) {
        match self.send_to_machine(now, request) {
            Ok(message) => {
                if let Some(publishers) = &self.sent {
                    publish(publishers, request.kind, cause, message);
                }
            }
            Err(refusal) => {
                self.counters.unsent.increment();
                let (r#type, payload) = (message::message_type(request.kind).into(), request.payload.clone());
                let request = V2xSendRequest { r#type, payload, ..V2xSendRequest::default() };
                self.errors.refused(now, &refusal, &request, cause);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Mono> {
        let services = self.services.as_ref().and_then(Services::poll_timeout);
        let channel = self.channel.as_ref().map(Channel::poll_timeout);
        self.machine.poll_timeout().into_iter().chain(services).chain(channel).min()
    }

    async fn handle_request(&mut self, request: &Sample<V2xSendRequest>, link: &mut Link) {
        self.counters.requests.increment();
        let now = clock::now();
        self.update_position(now);
        self.transmit(link).await;
        match self.send(now, request) {
            Ok((kind, message)) => {
                if let Some(sent) = &self.sent {
                    publish(sent, kind, &request.meta(), message);
                }
            }
            Err(refusal) => {
                self.counters.refused.increment();
                self.errors.refused(now, &refusal, request, &request.meta());
            }
        }
        self.transmit(link).await;
    }

    /// Passes a request to the machine. Returns the message that was sent.
    fn send(&mut self, now: Now, request: &V2xSendRequest) -> Result<(MessageKind, V2xMessage), Refusal> {
        let request = request::from_bus(request, self.station_id)?;
        Ok((request.kind, self.send_to_machine(now, &request)?))
    }

    fn send_to_machine(&mut self, now: Now, request: &SendRequest) -> Result<V2xMessage, Refusal> {
        let kind = request.kind;
        let payload = request.payload.clone();
        let summary = Message::decode(kind, &payload)?.summary(now.tai);
        self.machine.send(now, request)?;
        let message = message::sent_or_received(Direction::Sent, kind, &summary, payload, (now.tai, 0));
        let message = V2xMessage { receiver: self.receiver.clone(), access: self.access.into(), ..message };
        Ok(self.with_receiver(message, 0))
    }

    /// Adds the receiving station and the length of the frame to a message.
    fn with_receiver(&self, message: V2xMessage, frame_octets: usize) -> V2xMessage {
        V2xMessage {
            receiver_station_id: self.station_id.into(),
            receiver_station_type: self.station_type.into(),
            frame_octets: frame_octets.try_into().unwrap_or(0),
            ..message
        }
    }

    fn set_ego(&mut self, now: Now, ego: Ego) {
        self.ego = Some(ego);
        self.machine.set_ego(now, ego);
    }

    /// Updates the position of a fixed station. The position of a moving one comes from a topic.
    fn update_position(&mut self, now: Now) {
        if self.services.as_ref().is_some_and(Services::has_vehicle_topic) {
            return;
        }
        if let Some(position) = self.fixed_position {
            let speed = MetresPerSecond(0.0);
            self.set_ego(now, Ego { time: now.tai, position, position_accurate: true, speed, heading: None });
            if let Some(services) = &mut self.services {
                services.set_fixed_position(now, position);
            }
        }
    }

    /// Sends the frames of the machine: through the DCC gate if there is one, directly otherwise.
    async fn transmit(&mut self, link: &mut Link) {
        while let Some(frame) = self.machine.poll_transmit() {
            match &mut self.channel {
                Some(channel) => channel.push(clock::mono(), frame),
                None => self.send_frame(link, &frame).await,
            }
        }
        while let Some(frame) = self.channel.as_mut().and_then(|channel| channel.poll_transmit(clock::mono())) {
            self.send_frame(link, &frame).await;
        }
    }

    async fn send_frame(&mut self, link: &mut Link, frame: &[u8]) {
        match link.send(frame).await {
            Ok(()) => {
                self.counters.sent.increment();
                self.record(clock::tai(), frame);
            }
            Err(cause) => self.counters.count_send_failure(&cause),
        }
    }

    /// Writes a frame to the capture file, if there is one.
    fn record(&mut self, time: Tai, frame: &[u8]) {
        if let Some(capture) = &mut self.capture {
            capture.write(time, frame);
        }
    }

    /// Sleeps until the next timeout or upkeep.
    fn sleep_until_timeout(&self) -> impl Future<Output = ()> + use<> {
        sleep_until(self.poll_timeout().into_iter().chain([self.upkeep_due]).min())
    }
}

fn open_capture(settings: &CaptureSettings, context: &Context<ItsStation>) -> Result<CaptureWriter, StartError> {
    let lost = |reason: &str| context.counter_for("capture_lost", reason);
    let counts = CaptureCounts {
        written: context.counter("capture_written"),
        full: lost("file_full"),
        behind: lost("disk_too_slow"),
        failed: lost("write_failed"),
    };
    CaptureWriter::create(&settings.file, settings.max_octets, counts)
        .map_err(|cause| StartError::io(format!("cannot write the capture {}", settings.file.display()), cause))
}

fn publish(publishers: &Publishers, kind: MessageKind, cause: &Meta, message: V2xMessage) {
    if let Some(publisher) = publishers.get(&kind) {
        // A subscriber whose queue is full counts the drop.
        let _ = publisher.try_publish_from(cause, message);
    }
}

async fn next_request(requests: Option<&Subscriber<V2xSendRequest>>) -> Sample<V2xSendRequest> {
    if let Some(requests) = requests
        && let Some(request) = requests.recv().await
    {
        return request;
    }
    std::future::pending().await
}

async fn sleep_until(deadline: Option<Mono>) {
    match deadline {
        Some(deadline) => tokio::time::sleep(deadline.since(clock::mono())).await,
        None => std::future::pending().await,
    }
}
