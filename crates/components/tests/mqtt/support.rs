//! Tools shared by the MQTT tests: a node with a feed, a scripted broker, a subscriber, Mosquitto, and a gate.

#![allow(dead_code, reason = "each test uses a part of this module")]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_bus::{Bus, Publisher, Qos, TypeInfo};
use viaduct_components::KINDS;
use viaduct_messages::foxglove::Log;
use viaduct_messages::viaduct::its::{Direction, Edition, MessageType, V2xMessage};
use viaduct_mqtt::packet::connack::ConnAckPacket;
use viaduct_mqtt::packet::connect::ConnectPacket;
use viaduct_mqtt::packet::puback::PubAckPacket;
use viaduct_mqtt::packet::publish::PublishPacket;
use viaduct_mqtt::packet::suback::{SubAckPacket, SubAckReasonCode};
use viaduct_mqtt::packet::subscribe::{SubscribePacket, SubscriptionOptions, TopicFilter};
use viaduct_mqtt::types::ReasonCode;
use viaduct_mqtt::{ConnectOptions, Packet, QoS};
use viaduct_mqtt::{decode_buffered_packet, encode_packet_to_buffer};
use viaduct_node::{Component, Context, Edge, Edges, Graph, Kind, Node, StartError};

/// Time limit for other processes, generous for a slow machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "it does not happen that {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Returns `true` if a program is installed, and reports it otherwise.
pub(crate) fn has(program: &str) -> bool {
    let places = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/usr/local/sbin";
    let found = places.split(':').any(|place| std::path::Path::new(place).join(program).is_file());
    if !found {
        skipped(&format!("`{program}` is not installed"));
    }
    found
}

/// A component that declares the topics on which the tests publish.
struct Feed;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FeedSettings {}

/// Quality of service of the feed.
const FEED: Qos = Qos::keep_last(1);

impl Component for Feed {
    type Settings = FeedSettings;

    fn edges(_: &FeedSettings) -> Edges {
        let output = |pattern: &str, type_info| Edge::new("", pattern, Some(type_info), FEED);
        let any = Edge::new("", "any/*", None, FEED);
        let outputs =
            vec![output("log/*", TypeInfo::of::<Log>()), output("its/rx/*", TypeInfo::of::<V2xMessage>()), any];
        Edges { outputs, ..Edges::default() }
    }

    fn start(_: FeedSettings, _: &mut Context<Self>) -> Result<Self, StartError> {
        Ok(Self)
    }
}

pub(crate) struct TestNode {
    node: Node,
    logs: Publisher<Log>,
    _runtime: tokio::runtime::Runtime,
}

fn kinds() -> Vec<Kind> {
    let feed = Kind::of::<Feed>("feed", "Declares what a test publishes.", "");
    KINDS.iter().copied().chain([feed]).collect()
}

impl TestNode {
    pub(crate) fn start(text: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let graph = Graph::resolve("test.yaml", text, &kinds()).unwrap_or_else(|error| panic!("{error}"));
        let node = Node::start(graph, runtime.handle()).unwrap_or_else(|error| panic!("{error}"));
        let logs = node.bus().publisher("log/n", FEED, "feed").unwrap();
        Self { node, logs, _runtime: runtime }
    }

    /// Returns the reason why a node does not start.
    pub(crate) fn refused(text: &str) -> String {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        match Graph::resolve("test.yaml", text, &kinds()) {
            Err(error) => error.to_string(),
            Ok(graph) => Node::start(graph, runtime.handle()).err().expect("is accepted").to_string(),
        }
    }

    pub(crate) fn bus(&self) -> Bus {
        self.node.bus().clone()
    }

    pub(crate) fn log(&self, topic: &str, message: &str) {
        let publisher = self.node.bus().publisher::<Log>(topic, FEED, "feed").unwrap();
        publisher.publish(Log { message: message.to_owned(), ..Log::default() }).unwrap();
    }

    /// Publishes logs with these numbers at the pace of the bridge, so that the bus loses none.
    pub(crate) fn logs(&self, numbers: Range<usize>) {
        let bus = self.bus();
        let (before, first) = (count(&bus, "uplink", "taken"), numbers.start);
        let taken = |number: usize| (number - first) as u64;
        for number in numbers.clone() {
            self.logs.publish(Log { message: number.to_string(), ..Log::default() }).unwrap();
            if number % 256 == 255 {
                eventually("the bridge takes", || count(&bus, "uplink", "taken") - before > taken(number));
            }
        }
        eventually("the bridge takes all", || count(&bus, "uplink", "taken") - before >= taken(numbers.end));
    }

    /// Publishes `count` logs without waiting for the bridge. A subscription holds 1024.
    pub(crate) fn burst(&self, count: usize) {
        for number in 0..count {
            self.logs.publish(Log { message: number.to_string(), ..Log::default() }).unwrap();
        }
    }

    /// Publishes a log with a number, padded to a length.
    pub(crate) fn padded(&self, number: usize, octets: usize) {
        let message = format!("{number:0octets$}");
        self.logs.publish(Log { message, ..Log::default() }).unwrap();
    }

    /// Publishes octets of a type on a topic of `any/*`.
    pub(crate) fn any(&self, topic: &str, info: &TypeInfo, octets: bytes::Bytes) {
        let publisher = self.node.bus().publisher_untyped(topic, info.clone(), FEED, "feed").unwrap();
        publisher.publish(octets.into()).unwrap();
    }

    pub(crate) fn v2x(&self, topic: &str, message: V2xMessage) {
        self.node.bus().publisher::<V2xMessage>(topic, FEED, "feed").unwrap().publish(message).unwrap();
    }

    /// Stops the node. Returns `true` if it stopped within its time limit.
    pub(crate) fn stop(self) -> bool {
        self.node.stop()
    }

    /// Stops the node with a longer time limit, for tests of the drained messages on a busy machine.
    pub(crate) fn stop_without_hurry(self) -> bool {
        self.node.stop_by(Instant::now() + PATIENCE).is_clean
    }
}

/// Returns the CAM of the test vectors.
pub(crate) fn cam() -> V2xMessage {
    let text = include_str!("../../../../testdata/its/cam.hex");
    let digits: String = text.lines().filter(|line| !line.starts_with('#')).collect();
    let octets = (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap());
    let frame = bytes::Bytes::from(octets.collect::<Vec<u8>>());
    let reception = viaduct_units::Tai::from_nanos(0);
    let viaduct_its::Frame::Message(received) = viaduct_its::decode_frame(reception, &frame).unwrap() else { panic!() };
    V2xMessage {
        direction: Direction::Received.into(),
        r#type: MessageType::Cam.into(),
        edition: Edition::CamTs103900V231.into(),
        station_id: received.summary.station_id.into(),
        station_type: received.summary.station_type.unwrap().into(),
        receiver: "edge/station".to_owned(),
        payload: received.payload.clone(),
        ..V2xMessage::default()
    }
}

/// Returns the counter of a component, summed over all reasons.
pub(crate) fn count(bus: &Bus, component: &str, name: &str) -> u64 {
    let counters = bus.snapshot().counters;
    counters.iter().filter(|one| one.component == component && one.name == name).map(|one| one.value).sum()
}

/// The counters of a bridge's messages.
pub(crate) struct Account {
    pub(crate) taken: u64,
    pub(crate) published: u64,
    dropped: Vec<(String, u64)>,
}

impl Account {
    pub(crate) fn of(bus: &Bus, component: &str) -> Self {
        let counters = bus.snapshot().counters.into_iter();
        let dropped = counters.filter(|one| one.component == component && one.name == "dropped");
        let account = Self {
            taken: count(bus, component, "taken"),
            published: count(bus, component, "published"),
            dropped: dropped.map(|one| (one.reason.unwrap(), one.value)).collect(),
        };
        // The outbox is empty after the stop.
        assert_eq!(account.taken, account.published + account.dropped(), "{:?}", account.dropped);
        account
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.iter().map(|(_, value)| value).sum()
    }

    pub(crate) fn reason(&self, reason: &str) -> u64 {
        self.dropped.iter().filter(|(name, _)| name == reason).map(|(_, value)| value).sum()
    }
}

/// Returns the logs in the order in which each was first received.
pub(crate) fn first_seen(seen: &[PublishPacket]) -> Vec<String> {
    let mut known = std::collections::HashSet::new();
    let text = |packet: &PublishPacket| {
        let json: serde_json::Value = serde_json::from_slice(&packet.payload).unwrap();
        json["message"].as_str().unwrap().to_owned()
    };
    seen.iter().map(text).filter(|text| known.insert(text.clone())).collect()
}

/// A blocking socket for MQTT packets.
struct Wire {
    stream: TcpStream,
    incoming: BytesMut,
}

impl Wire {
    fn new(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        Self { stream, incoming: BytesMut::new() }
    }

    fn write(&mut self, packet: &Packet) -> Option<()> {
        let mut octets = BytesMut::new();
        encode_packet_to_buffer(packet, &mut octets).unwrap();
        self.stream.write_all(&octets).ok()
    }

    /// Reads the next packet, or returns `None` if the connection is closed.
    fn read(&mut self) -> Option<Packet> {
        loop {
            if let Some(packet) = decode_buffered_packet(&mut self.incoming, 5, usize::MAX).unwrap() {
                return Some(packet);
            }
            let mut chunk = [0; 65_536];
            match self.stream.read(&mut chunk) {
                Ok(0) | Err(_) => return None,
                Ok(count) => self.incoming.extend_from_slice(&chunk[..count]),
            }
        }
    }
}

/// The behaviour of a scripted broker.
#[derive(Clone, Copy)]
pub(crate) struct Script {
    /// Number of messages acknowledged on each connection.
    pub(crate) acknowledge: usize,
    /// `true` if the broker then closes the connection, with more messages in flight.
    pub(crate) closes: bool,
    /// Properties of its CONNACK.
    pub(crate) receive_maximum: Option<u16>,
    pub(crate) packet_octets_max: Option<u32>,
    /// Reason code of its PUBACKs.
    pub(crate) answer: ReasonCode,
    /// Reason codes of its SUBACK. Empty: it sends none.
    pub(crate) subscriptions: &'static [SubAckReasonCode],
}

impl Default for Script {
    fn default() -> Self {
        Self {
            acknowledge: usize::MAX,
            closes: false,
            receive_maximum: None,
            packet_octets_max: None,
            answer: ReasonCode::Success,
            subscriptions: &[],
        }
    }
}

/// A broker for publishers that follows a script and records the messages.
pub(crate) struct ScriptedBroker {
    pub(crate) port: u16,
    seen: Seen,
    unacknowledged_max: Arc<AtomicUsize>,
}

type Seen = Arc<Mutex<Vec<PublishPacket>>>;

impl ScriptedBroker {
    pub(crate) fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (seen, unacknowledged_max) = (Seen::default(), Arc::<AtomicUsize>::default());
        let (kept, most) = (Arc::clone(&seen), Arc::clone(&unacknowledged_max));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                serve(script, Wire::new(stream.unwrap()), &kept, &most);
            }
        });
        Self { port, seen, unacknowledged_max }
    }

    pub(crate) fn seen(&self) -> Vec<PublishPacket> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn eventually(&self, what: &str, condition: impl Fn(&[PublishPacket]) -> bool) {
        eventually(what, || condition(&self.seen.lock().unwrap()));
    }

    /// Returns the maximum number of messages that were unacknowledged at a time.
    pub(crate) fn unacknowledged_max(&self) -> usize {
        self.unacknowledged_max.load(Ordering::SeqCst)
    }
}

/// Serves one connection. Acknowledgements are delayed while more packets arrive, so that the window becomes visible.
fn serve(script: Script, mut wire: Wire, seen: &Seen, unacknowledged_max: &AtomicUsize) -> Option<()> {
    let Packet::Connect(_) = wire.read()? else { panic!("no CONNECT") };
    let mut answer = ConnAckPacket::new(false, ReasonCode::Success);
    if let Some(receive_maximum) = script.receive_maximum {
        answer = answer.with_receive_maximum(receive_maximum);
    }
    if let Some(octets) = script.packet_octets_max {
        answer = answer.with_maximum_packet_size(octets);
    }
    wire.write(&Packet::ConnAck(answer))?;
    let (mut count, mut ignored, mut waiting) = (0, 0, Vec::new());
    loop {
        let packet = match wire.read()? {
            Packet::Publish(packet) => packet,
            Packet::Subscribe(packet) if !script.subscriptions.is_empty() => {
                let mut answer = SubAckPacket::new(packet.packet_id);
                answer.reason_codes = script.subscriptions.to_vec();
                wire.write(&Packet::SubAck(answer))?;
                continue;
            }
            // DISCONNECT, or a ping, which is not answered.
            _ => continue,
        };
        count += 1;
        match packet.packet_id {
            Some(id) if count <= script.acknowledge => waiting.push(id),
            Some(_) => ignored += 1,
            None => {}
        }
        unacknowledged_max.fetch_max(waiting.len() + ignored, Ordering::SeqCst);
        if count <= script.acknowledge {
            seen.lock().unwrap().push(packet);
        }
        if script.closes && ignored > 0 && (ignored == 20 || wire.incoming.is_empty()) {
            return None;
        }
        if wire.incoming.is_empty() {
            for id in waiting.drain(..) {
                wire.write(&Packet::PubAck(PubAckPacket::new_with_reason(id, script.answer)))?;
            }
        }
    }
}

/// A broker that does not read until it is released, with small buffers.
pub(crate) struct StalledBroker {
    pub(crate) port: u16,
    seen: Seen,
    is_released: Arc<AtomicBool>,
}

impl StalledBroker {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        // Accepted connections inherit it.
        socket2::SockRef::from(&listener).set_recv_buffer_size(32 * 1024).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (seen, is_released) = (Seen::default(), Arc::<AtomicBool>::default());
        let (kept, released) = (Arc::clone(&seen), Arc::clone(&is_released));
        std::thread::spawn(move || {
            let mut wire = Wire::new(listener.accept().unwrap().0);
            let Some(Packet::Connect(_)) = wire.read() else { panic!("no CONNECT") };
            wire.write(&Packet::ConnAck(ConnAckPacket::new(false, ReasonCode::Success))).unwrap();
            eventually("the broker is released", || released.load(Ordering::SeqCst));
            while let Some(packet) = wire.read() {
                if let Packet::Publish(packet) = packet {
                    if let Some(id) = packet.packet_id {
                        wire.write(&Packet::PubAck(PubAckPacket::new(id))).unwrap();
                    }
                    kept.lock().unwrap().push(packet);
                }
            }
        });
        Self { port, seen, is_released }
    }

    /// Lets the broker read.
    pub(crate) fn release(&self) {
        self.is_released.store(true, Ordering::SeqCst);
    }

    pub(crate) fn seen(&self) -> Vec<PublishPacket> {
        self.seen.lock().unwrap().clone()
    }
}

/// A subscriber with QoS 0 that reconnects to its broker and records the messages.
pub(crate) struct Subscriber {
    seen: Seen,
    sessions: Arc<AtomicUsize>,
}

impl Subscriber {
    /// Starts the subscriber and waits until it has subscribed.
    pub(crate) fn start(port: u16, filter: &str) -> Self {
        let (seen, sessions) = (Seen::default(), Arc::<AtomicUsize>::default());
        let (kept, counted, filter) = (Arc::clone(&seen), Arc::clone(&sessions), filter.to_owned());
        std::thread::spawn(move || {
            loop {
                subscribe(port, &filter, &kept, &counted);
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        eventually("the subscriber is there", || sessions.load(Ordering::SeqCst) == 1);
        Self { seen, sessions }
    }

    /// Returns `true` if the broker rejects an anonymous client.
    pub(crate) fn is_refused(port: u16) -> bool {
        let mut wire = Wire::new(TcpStream::connect(("127.0.0.1", port)).unwrap());
        let options = ConnectOptions::new("nobody");
        wire.write(&Packet::Connect(Box::new(ConnectPacket::new(options.protocol_options)))).unwrap();
        matches!(wire.read(), Some(Packet::ConnAck(answer)) if answer.reason_code.is_error())
    }

    /// Returns the number of its subscriptions so far.
    pub(crate) fn sessions(&self) -> usize {
        self.sessions.load(Ordering::SeqCst)
    }

    pub(crate) fn seen(&self) -> Vec<PublishPacket> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn eventually(&self, what: &str, condition: impl Fn(&[PublishPacket]) -> bool) {
        eventually(what, || condition(&self.seen.lock().unwrap()));
    }

    pub(crate) fn wait_for(&self, count: usize) -> Vec<PublishPacket> {
        self.eventually("messages arrive", |seen| seen.len() >= count);
        self.seen()
    }
}

/// A subscriber that records only the times of reception.
pub(crate) struct Arrivals {
    arrived: Arc<Mutex<Vec<Instant>>>,
}

impl Arrivals {
    /// Starts the subscriber and waits until it has subscribed.
    pub(crate) fn start(port: u16, filter: &str) -> Self {
        let arrived = Arc::<Mutex<Vec<Instant>>>::default();
        let kept = Arc::clone(&arrived);
        let mut wire = subscribed(port, filter).unwrap();
        std::thread::spawn(move || {
            while let Some(packet) = wire.read() {
                if let Packet::Publish(_) = packet {
                    kept.lock().unwrap().push(Instant::now());
                }
            }
        });
        Self { arrived }
    }

    pub(crate) fn count(&self) -> usize {
        self.arrived.lock().unwrap().len()
    }

    pub(crate) fn wait_for(&self, count: usize) -> Vec<Instant> {
        eventually("messages arrive", || self.count() >= count);
        self.arrived.lock().unwrap().clone()
    }
}

fn subscribe(port: u16, filter: &str, seen: &Seen, sessions: &AtomicUsize) -> Option<()> {
    let mut wire = subscribed(port, filter)?;
    sessions.fetch_add(1, Ordering::SeqCst);
    loop {
        if let Packet::Publish(packet) = wire.read()? {
            seen.lock().unwrap().push(packet);
        }
    }
}

/// Returns a connection with a subscription.
fn subscribed(port: u16, filter: &str) -> Option<Wire> {
    let mut wire = Wire::new(TcpStream::connect(("127.0.0.1", port)).ok()?);
    // Two clients with the same identifier would disconnect each other.
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let name = format!("subscriber-{}", NUMBER.fetch_add(1, Ordering::SeqCst));
    let options = ConnectOptions::new(name).with_keep_alive(Duration::ZERO);
    wire.write(&Packet::Connect(Box::new(ConnectPacket::new(options.protocol_options))))?;
    let Packet::ConnAck(_) = wire.read()? else { panic!("no CONNACK") };
    let options = SubscriptionOptions { qos: QoS::AtMostOnce, ..SubscriptionOptions::default() };
    let packet = SubscribePacket {
        packet_id: 1,
        filters: vec![TopicFilter { filter: filter.to_owned(), options }],
        properties: viaduct_mqtt::Properties::default(),
        protocol_version: 5,
    };
    wire.write(&Packet::Subscribe(packet))?;
    let Packet::SubAck(_) = wire.read()? else { panic!("no SUBACK") };
    Some(wire)
}

/// A Mosquitto that is killed when dropped.
pub(crate) struct Mosquitto {
    process: Child,
}

impl Mosquitto {
    pub(crate) fn start(port: u16) -> Self {
        Self::start_with(&["-p", &port.to_string()], port)
    }

    /// Starts with a config file. `port` is one of its listeners.
    pub(crate) fn configured(file: &std::path::Path, port: u16) -> Self {
        Self::start_with(&["-c", file.to_str().unwrap()], port)
    }

    fn start_with(arguments: &[&str], port: u16) -> Self {
        let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/usr/local/sbin";
        let mut command = Command::new("mosquitto");
        command.env("PATH", path).args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().unwrap();
        eventually("Mosquitto listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self { process }
    }

    /// Stops the broker with SIGTERM, so that it saves its sessions.
    pub(crate) fn terminate(mut self) {
        let process = nix::unistd::Pid::from_raw(self.process.id().try_into().unwrap());
        nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGTERM).unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Mosquitto {
    fn drop(&mut self) {
        // SIGKILL: it can neither write nor send anything. It may have ended before.
        let _ = self.process.kill();
        self.process.wait().unwrap();
    }
}

/// A proxy that forwards connections to a port while it is open, and rejects them while it is closed.
pub(crate) struct Gate {
    pub(crate) port: u16,
    is_open: Arc<AtomicBool>,
    /// The connections of clients, which may have ended.
    clients: Arc<Mutex<Vec<TcpStream>>>,
}

impl Gate {
    pub(crate) fn start(to: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let is_open = Arc::<AtomicBool>::default();
        let open = Arc::clone(&is_open);
        let clients = Arc::<Mutex<Vec<TcpStream>>>::default();
        let known = Arc::clone(&clients);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let client = client.unwrap();
                if open.load(Ordering::SeqCst)
                    && let Ok(server) = TcpStream::connect(("127.0.0.1", to))
                {
                    known.lock().unwrap().push(client.try_clone().unwrap());
                    forward(client.try_clone().unwrap(), server.try_clone().unwrap());
                    forward(server, client);
                }
            }
        });
        Self { port, is_open, clients }
    }

    pub(crate) fn open(&self) {
        self.is_open.store(true, Ordering::SeqCst);
    }

    /// Cuts all connections. What was not forwarded is lost.
    pub(crate) fn cut(&self) {
        for client in self.clients.lock().unwrap().drain(..) {
            let _ = client.shutdown(std::net::Shutdown::Both);
        }
    }

    /// Rejects new connections. Existing ones stay.
    pub(crate) fn close(&self) {
        self.is_open.store(false, Ordering::SeqCst);
    }
}

fn forward(mut from: TcpStream, mut to: TcpStream) {
    from.set_nodelay(true).unwrap();
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = (from.shutdown(std::net::Shutdown::Both), to.shutdown(std::net::Shutdown::Both));
    });
}

/// Prints that a test is skipped and the reason, bypassing the test runner, which hides the output of passing tests. Fails if peers
/// are required (in CI).
pub(crate) fn skipped(reason: &str) {
    use std::io::Write as _;
    assert!(std::env::var_os("VIADUCT_REQUIRE_PEERS").is_none(), "skipped where nothing may be skipped: {reason}");
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}
