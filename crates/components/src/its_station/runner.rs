//! The I/O task of a station: owns the machine, feeds it, and carries out what it says.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use viaduct_bus::{Counter, Meta, Publisher, Sample, Subscriber, clock};
use viaduct_its::facilities::{Message, MessageKind};
use viaduct_its::{DropReason, Ego, Event, Station, StationSettings};
use viaduct_messages::viaduct::its::{AccessLayer, Direction, V2xMessage, V2xSendRequest};
use viaduct_node::{Context, StartError, Stop};
use viaduct_units::{MetresPerSecond, Mono, Now, Position, Tai};

use super::errors::{Errors, Refusal};
use super::message;
use super::replay::Replay;
use super::request;
use super::settings::{Access, ItsStationSettings};
use super::udp::{Datagram, MulticastSocket};
use super::{ItsStation, OFFERED};
use crate::capture::CaptureError;

/// Datagrams that are taken from the socket before others get their turn.
const DATAGRAMS_PER_TURN_MAX: usize = 64;

/// How often a station that stands still says where, and the kernel is asked what it dropped.
const UPKEEP_PERIOD: Duration = Duration::from_millis(500);

/// Time for what the kernel still holds when the station is asked to stop.
const DRAIN_TIME_MAX: Duration = Duration::from_millis(100);

/// A station with its topics and counters.
pub(crate) struct Runner {
    machine: Station,
    receiver: String,
    access: AccessLayer,
    place: Option<Position>,
    received: Publishers,
    sent: Option<Publishers>,
    requests: Option<Subscriber<V2xSendRequest>>,
    counts: Counts,
    errors: Errors,
    station_id: u32,
    station_type: u8,
    /// When the station next says where it is and asks the kernel what it dropped.
    upkeep_due: Mono,
    stop: Stop,
}

/// One publisher a message type.
type Publishers = BTreeMap<MessageKind, Publisher<V2xMessage>>;

/// What the station counts. Frames received = delivered + beacons + dropped by reason.
struct Counts {
    received: Counter,
    delivered: Counter,
    beacons: Counter,
    dropped: BTreeMap<DropReason, Counter>,
    /// Dropped before the station saw them.
    kernel_drops: Counter,
    kernel_drops_seen: u32,
    sent: Counter,
    send_failed: Counter,
    requests: Counter,
    refused: Counter,
}

impl Runner {
    pub(crate) fn new(settings: &ItsStationSettings, context: &Context<ItsStation>) -> Result<Self, StartError> {
        let machine = Station::new(
            StationSettings {
                link_address: settings.mac_address()?,
                station_type: settings.station_type,
                mobile: settings.station_type != 15,
                beacons: settings.beacons && settings.position.is_some(),
            },
            context.seed(),
        );
        let publishers = |below: &str| -> Result<Publishers, StartError> {
            let open = |kind: MessageKind| {
                Ok((kind, context.publisher::<V2xMessage>(&format!("{below}/{}", kind.label()), OFFERED)?))
            };
            MessageKind::ALL.into_iter().map(open).collect()
        };
        let topics = &settings.topics;
        let requests =
            topics.send.as_ref().map(|topic| context.subscribe::<V2xSendRequest>(topic, OFFERED)).transpose()?;
        Ok(Self {
            machine,
            receiver: format!("{}/{}", context.node(), context.name()),
            access: match settings.access {
                Access::UdpMulticast(_) => AccessLayer::UdpMulticast,
                Access::Replay(_) => AccessLayer::Replay,
            },
            place: settings.position.map(|place| place.position()),
            received: publishers(&topics.rx)?,
            sent: requests.is_some().then(|| publishers(&topics.tx)).transpose()?,
            requests,
            counts: Counts::new(context),
            errors: Errors::new(&topics.errors, context)?,
            station_id: settings.station_id,
            station_type: settings.station_type,
            upkeep_due: clock::mono(),
            stop: context.stop(),
        })
    }

    /// Runs until the station is asked to stop or the socket fails.
    pub(crate) async fn run_on_socket(mut self, mut socket: MulticastSocket) -> Result<(), std::io::Error> {
        let mut stop = self.stop.clone();
        while !stop.is_asked() {
            self.upkeep(&socket)?;
            let deadline = self.sleep_until_timeout();
            tokio::select! {
                datagram = socket.receive() => self.take_datagrams(&datagram?, &mut socket)?,
                () = deadline => self.machine.handle_timeout(clock::now()),
                request = next_request(self.requests.as_ref()) => self.handle_request(&request),
                () = stop.asked() => {}
            }
            self.transmit(&socket).await;
        }
        self.drain_requests();
        self.transmit(&socket).await;
        self.drain_socket(&mut socket)
    }

    /// Runs until the station is asked to stop or the file fails. The end of the capture is not the end of the station.
    pub(crate) async fn run_on_replay(mut self, mut replay: Replay) -> Result<(), CaptureError> {
        let mut stop = self.stop.clone();
        let mut next = replay.next(clock::mono())?;
        while !stop.is_asked() {
            self.say_where(clock::now());
            let due = next.as_ref().map(|frame| frame.due);
            tokio::select! {
                () = sleep_until(due) => {
                    if let Some(frame) = next.take() {
                        self.handle_replayed(frame.captured, &frame.octets);
                        next = replay.next(clock::mono())?;
                    }
                }
                request = next_request(self.requests.as_ref()) => self.handle_request(&request),
                () = stop.asked() => {}
            }
            self.refuse_transmits();
        }
        self.drain_requests();
        self.refuse_transmits();
        Ok(())
    }

    /// A capture takes no frames.
    fn refuse_transmits(&mut self) {
        while self.machine.poll_transmit().is_some() {
            self.counts.send_failed.increment();
        }
    }

    /// What was asked for before the stop is still sent.
    fn drain_requests(&mut self) {
        while let Some(request) = self.requests.as_ref().and_then(Subscriber::try_recv) {
            self.handle_request(&request);
        }
    }

    /// What the kernel received before the stop is part of what was received, within a time: others may go on sending.
    fn drain_socket(&mut self, socket: &mut MulticastSocket) -> Result<(), std::io::Error> {
        let deadline = clock::mono().plus(DRAIN_TIME_MAX);
        while clock::mono() < deadline
            && let Some(datagram) = socket.try_receive()?
        {
            self.handle_datagram(&datagram);
        }
        self.counts.count_kernel_drops(socket.kernel_drops()?);
        Ok(())
    }

    fn take_datagrams(&mut self, first: &Datagram, socket: &mut MulticastSocket) -> Result<(), std::io::Error> {
        self.handle_datagram(first);
        for _ in 1..DATAGRAMS_PER_TURN_MAX {
            match socket.try_receive()? {
                Some(datagram) => self.handle_datagram(&datagram),
                None => break,
            }
        }
        Ok(())
    }

    fn handle_datagram(&mut self, datagram: &Datagram) {
        let now = clock::now();
        let reception = datagram.received.unwrap_or(now.tai);
        self.handle_frame(Now { tai: reception, ..now }, &datagram.octets, Meta::from_origin(reception), 0);
    }

    /// A frame of a capture is decoded at its own time, which its wrapped counters refer to, and then moved to now.
    fn handle_replayed(&mut self, captured: Tai, octets: &Bytes) {
        let now = clock::now();
        let shift_ns = now.tai.nanos().saturating_sub(captured.nanos());
        self.handle_frame(Now { tai: captured, ..now }, octets, Meta::from_origin(now.tai), shift_ns);
    }

    fn handle_frame(&mut self, now: Now, octets: &Bytes, meta: Meta, shift_ns: i64) {
        self.counts.received.increment();
        self.machine.handle_frame(now, octets);
        while let Some(event) = self.machine.poll_event() {
            match event {
                Event::Received(packet) => {
                    let message = message::received_message(&packet, &self.receiver, self.access, shift_ns);
                    let message = self.with_receiver(message, octets.len());
                    self.counts.delivered.increment();
                    publish(&self.received, packet.kind, &meta, message);
                }
                Event::Beacon(_) => self.counts.beacons.increment(),
                Event::Dropped(reason) => {
                    self.counts.drop(reason);
                    self.errors.dropped(now, reason, octets, &meta);
                }
            }
        }
    }

    /// What is due at times of its own, however busy the channel is.
    fn upkeep(&mut self, socket: &MulticastSocket) -> Result<(), std::io::Error> {
        let now = clock::now();
        if now.mono < self.upkeep_due {
            return Ok(());
        }
        self.upkeep_due = now.mono.plus(UPKEEP_PERIOD);
        self.say_where(now);
        self.counts.count_kernel_drops(socket.kernel_drops()?);
        // A timeout that is due is not put off by traffic either.
        if self.machine.poll_timeout().is_some_and(|due| due <= now.mono) {
            self.machine.handle_timeout(now);
        }
        Ok(())
    }

    fn handle_request(&mut self, request: &Sample<V2xSendRequest>) {
        self.counts.requests.increment();
        let now = clock::now();
        self.say_where(now);
        match self.send(now, request) {
            Ok((kind, message)) => {
                if let Some(sent) = &self.sent {
                    publish(sent, kind, request.meta(), message);
                }
            }
            Err(refusal) => {
                self.counts.refused.increment();
                self.errors.refused(now, &refusal, request, request.meta());
            }
        }
    }

    /// Hands a request to the machine; what was sent.
    fn send(&mut self, now: Now, request: &V2xSendRequest) -> Result<(MessageKind, V2xMessage), Refusal> {
        let request = request::from_bus(request, self.station_id)?;
        let (kind, payload) = (request.kind, request.payload.clone());
        let summary = Message::decode(kind, &payload)?.summary(now.tai);
        self.machine.send(now, &request)?;
        let message = message::sent_or_received(Direction::Sent, kind, &summary, payload, (now.tai, 0));
        let message = V2xMessage { receiver: self.receiver.clone(), access: self.access.into(), ..message };
        Ok((kind, self.with_receiver(message, 0)))
    }

    /// The message with what the station says about itself, and the length of its frame.
    fn with_receiver(&self, message: V2xMessage, frame_octets: usize) -> V2xMessage {
        V2xMessage {
            receiver_station_id: self.station_id,
            receiver_station_type: self.station_type.into(),
            frame_octets: frame_octets.try_into().unwrap_or(0),
            ..message
        }
    }

    fn say_where(&mut self, now: Now) {
        if let Some(position) = self.place {
            let speed = MetresPerSecond(0.0);
            self.machine.set_ego(now, Ego { time: now.tai, position, position_accurate: true, speed, heading: None });
        }
    }

    async fn transmit(&mut self, socket: &MulticastSocket) {
        while let Some(frame) = self.machine.poll_transmit() {
            match socket.send(&frame).await {
                Ok(()) => self.counts.sent.increment(),
                Err(_) => self.counts.send_failed.increment(),
            }
        }
    }

    /// Sleeps until the machine wants to be called or the upkeep is due.
    fn sleep_until_timeout(&self) -> impl Future<Output = ()> + use<> {
        sleep_until(self.machine.poll_timeout().into_iter().chain([self.upkeep_due]).min())
    }
}

impl Counts {
    fn new(context: &Context<ItsStation>) -> Self {
        let dropped = |reason: DropReason| (reason, context.counter_for("dropped", reason.label()));
        Self {
            received: context.counter("received"),
            delivered: context.counter("delivered"),
            beacons: context.counter("beacons"),
            dropped: DropReason::ALL.into_iter().map(dropped).collect(),
            kernel_drops: context.counter_for("missed", "kernel_queue_full"),
            kernel_drops_seen: 0,
            sent: context.counter("sent"),
            send_failed: context.counter("send_failed"),
            requests: context.counter("requests"),
            refused: context.counter("requests_refused"),
        }
    }

    /// Takes the socket's total over.
    fn count_kernel_drops(&mut self, total: u32) {
        self.kernel_drops.add(u64::from(total.wrapping_sub(self.kernel_drops_seen)));
        self.kernel_drops_seen = total;
    }

    fn drop(&self, reason: DropReason) {
        if let Some(counter) = self.dropped.get(&reason) {
            counter.increment();
        }
    }
}

fn publish(publishers: &Publishers, kind: MessageKind, cause: &Meta, message: V2xMessage) {
    if let Some(publisher) = publishers.get(&kind) {
        // A subscriber without room has counted the drop.
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
