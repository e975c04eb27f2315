//! A station in a node with real sockets: each received frame is a message or a counted drop, and a station receives the
//! messages of another one.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

use tokio::runtime::Runtime;
use viaduct_bus::{Publisher, Qos, Recv, Subscriber, clock};
use viaduct_etsi::cam_ts103900_v231;
use viaduct_its::access::MacAddress;
use viaduct_its::facilities::cam::{CamInput, build};
use viaduct_its::facilities::{Message, MessageKind};
use viaduct_its::{Destination, Ego, SendRequest, Station, StationSettings};
use viaduct_messages::viaduct::its::{Direction, MessageType, V2xError, V2xMessage, V2xSendRequest};
use viaduct_node::{CallbackContext, Component, Context, Edges, Graph, Kind, Node, StartError};
use viaduct_units::{MetresPerSecond, Position, StationId, StationType};

const PATIENCE: Duration = Duration::from_secs(30);
const RELIABLE: Qos = Qos::reliable(4096, Duration::ZERO);

fn kinds() -> Vec<Kind> {
    [viaduct_components::KINDS, &[Kind::of::<Asker>("asker", "Asks a station to send.", "{}")]].concat()
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Returns a multicast group that no other test uses.
fn group() -> SocketAddr {
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    SocketAddr::from((Ipv4Addr::new(239, 118, 122, 97), port))
}

fn start(runtime: &Runtime, name: &str, group: SocketAddr, more: &str) -> Node {
    let text = format!(
        "node: {name}\ncomponents:\n  station:\n    kind: its_station\n    settings:\n      station_id: {id}\n      \
         access: {{ udp_multicast: {{ group: \"{group}\" }} }}\n{more}",
        id = name.len() + 100,
    );
    Node::start(Graph::resolve(name, &text, &kinds()).unwrap(), runtime.handle()).unwrap()
}

fn socket() -> UdpSocket {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None).unwrap();
    socket.set_multicast_if_v4(&Ipv4Addr::LOCALHOST).unwrap();
    socket.into()
}

/// Returns a committed test vector.
fn vector(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/its").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    let digits: Vec<u8> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(str::bytes)
        .filter_map(|digit| char::from(digit).to_digit(16).map(|digit| digit as u8))
        .collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn count(node: &Node, name: &str) -> u64 {
    let snapshot = node.bus().snapshot();
    snapshot.counters.iter().filter(|row| row.name == name).map(|row| row.value).sum()
}

fn wait_for(node: &Node, name: &str, value: u64) {
    let deadline = std::time::Instant::now() + PATIENCE;
    while count(node, name) < value {
        assert!(std::time::Instant::now() < deadline, "{name} is {} and not {value}", count(node, name));
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn next(messages: &Subscriber<V2xMessage>) -> V2xMessage {
    match messages.recv_timeout(PATIENCE) {
        Recv::Sample(sample) => (*sample).clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_packet_becomes_a_message_with_the_members_of_the_packet() {
    let (runtime, group) = (runtime(), group());
    let node = start(&runtime, "edge", group, "");
    let cams = node.bus().subscribe::<V2xMessage>("its/rx/cam", RELIABLE, "test").unwrap();
    let before = clock::tai();
    socket().send_to(&vector("cam.hex"), group).unwrap();
    let cam = next(&cams);
    assert_eq!((cam.r#type(), cam.direction(), cam.station_id), (MessageType::Cam, Direction::Received, 100));
    assert_eq!((&*cam.receiver, cam.access().label(), cam.btp_port), ("edge/station", "udp_multicast", 2001));
    assert_eq!((cam.link_address.len(), cam.geonet_address.len()), (6, 8));
    let reception = cam.reception().unwrap();
    // The timestamp of the kernel, not of the station; both use the same clock.
    assert!(reception >= before && reception <= clock::tai(), "{before:?} {reception:?}");
    assert!(cam.position.is_some() && cam.speed_mps.is_some());
    node.stop();
}

#[test]
fn each_received_frame_is_a_message_or_a_counted_drop() {
    let (runtime, group) = (runtime(), group());
    let node = start(&runtime, "edge", group, "");
    let socket = socket();
    let whole = vector("cam.hex");
    let mut sent = 0;
    let mut send = |octets: &[u8]| {
        socket.send_to(octets, group).unwrap();
        sent += 1;
    };
    for length in 0..whole.len() {
        send(&whole[..length]);
    }
    for bit in 0..whole.len() * 8 {
        let mut flipped = whole.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        send(&flipped);
    }
    let mut state = 7_u64;
    for length in (0..2000).step_by(7) {
        let random: Vec<u8> = (0..length)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) as u8
            })
            .collect();
        send(&random);
    }
    send(&vector("secured_cam.hex"));
    wait_for(&node, "received", sent - count(&node, "missed"));
    let (delivered, dropped) = (count(&node, "delivered"), count(&node, "dropped"));
    assert_eq!(count(&node, "received"), delivered + dropped + count(&node, "beacons"));
    assert!(delivered > 0 && dropped > whole.len() as u64);
    let snapshot = node.bus().snapshot();
    let reasons: Vec<_> = snapshot
        .counters
        .iter()
        .filter(|row| row.name == "dropped" && row.value > 0)
        .filter_map(|row| row.reason.clone())
        .collect();
    assert!(reasons.len() >= 6, "{reasons:?}");
    assert!(reasons.iter().any(|reason| reason == "secured_not_verified"), "{reasons:?}");
    node.stop();
}

fn dropped(node: &Node, reason: &str) -> u64 {
    let snapshot = node.bus().snapshot();
    let rows = snapshot.counters.iter().filter(|row| row.name == "dropped" && row.reason.as_deref() == Some(reason));
    rows.map(|row| row.value).sum()
}

/// Returns a frame with a packet of another station that is forwarded over up to three hops.
fn multi_hop_packet() -> Vec<u8> {
    let settings = StationSettings {
        link_address: MacAddress([2, 0, 0, 0, 0, 5]),
        station_type: StationType::PASSENGER_CAR,
        mobile: true,
        beacons: false,
    };
    let (mut station, now) = (Station::new(settings, 1), clock::now());
    let position = Position::new(45.5, 7.25);
    station.set_ego(
        now,
        Ego { time: now.tai, position, position_accurate: true, speed: MetresPerSecond(0.0), heading: None },
    );
    let cam = Message::Cam(Box::new(build(&CamInput::new(StationId(5), now.tai))));
    let request = SendRequest::single_hop(MessageKind::Cam, cam.encode().unwrap().into());
    station.send(now, &SendRequest { destination: Destination::Hops(3), ..request }).unwrap();
    station.poll_transmit().unwrap()
}

/// On UDP multicast a station receives its own packets, and each packet that forwarders repeat.
#[test]
fn echoes_and_repetitions_on_udp_multicast_are_counted_and_not_reported() {
    let (runtime, group) = (runtime(), group());
    let more = "      position: { latitude_deg: 45.5, longitude_deg: 7.25 }\n      beacons: true\n";
    let node = start(&runtime, "edge", group, more);
    let errors = node.bus().subscribe::<V2xError>("its/errors", Qos::keep_last(64), "test").unwrap();
    let (socket, packet) = (socket(), multi_hop_packet());
    let deadline = std::time::Instant::now() + PATIENCE;
    while dropped(&node, "own_packet") == 0 || dropped(&node, "duplicate") == 0 {
        assert!(std::time::Instant::now() < deadline, "no echo and no repetition");
        socket.send_to(&packet, group).unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    socket.send_to(&packet[..20], group).unwrap();
    let Recv::Sample(error) = errors.recv_timeout(PATIENCE) else { panic!("no report") };
    assert_eq!(error.reason, "truncated", "the first report");
    node.stop();
}

#[test]
fn a_busy_channel_does_not_suppress_beacons() {
    let (runtime, group) = (runtime(), group());
    let more = "      position: { latitude_deg: 45.5, longitude_deg: 7.25 }\n      beacons: true\n";
    let node = start(&runtime, "edge", group, more);
    let (socket, cam) = (socket(), vector("cam.hex"));
    let deadline = std::time::Instant::now() + PATIENCE;
    while count(&node, "sent") < 2 {
        assert!(std::time::Instant::now() < deadline, "no beacons while others send");
        socket.send_to(&cam, group).unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(count(&node, "delivered") > 2);
    node.stop();
}

/// A component that requests a CAM, an invalid CPM, and a type that stations do not support.
struct Asker(Publisher<V2xSendRequest>);

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct AskerSettings {}

impl Component for Asker {
    type Settings = AskerSettings;

    fn edges(_: &AskerSettings) -> Edges {
        Edges::default().publishes::<V2xSendRequest>("", "its/send", RELIABLE)
    }

    fn start(_: AskerSettings, context: &mut Context<Self>) -> Result<Self, StartError> {
        context.every(Duration::from_millis(20), Self::ask);
        Ok(Self(context.publisher("its/send", RELIABLE)?))
    }
}

impl Asker {
    fn ask(&mut self, out: &mut CallbackContext) {
        let cam = build(&CamInput {
            position: Some(Position::new(45.5, 7.25)),
            ..CamInput::new(StationId(4711), out.now.tai)
        });
        let payload = bytes::Bytes::from(cam_ts103900_v231::encode(&cam).unwrap());
        for kind in [MessageType::Cam, MessageType::Cpm, MessageType::Vam] {
            let request = V2xSendRequest { r#type: kind.into(), payload: payload.clone(), ..Default::default() };
            self.0.publish(request).unwrap();
        }
    }
}

#[test]
fn one_station_receives_from_another_and_invalid_requests_are_counted() {
    let (runtime, group) = (runtime(), group());
    let receiver = start(&runtime, "receiver", group, "");
    let received = receiver.bus().subscribe::<V2xMessage>("its/rx/cam", RELIABLE, "test").unwrap();
    let sender = start(
        &runtime,
        "sender",
        group,
        "      position: { latitude_deg: 45.5, longitude_deg: 7.25 }\n      topics: { send: its/send }\n  asker: { kind: asker, settings: {} }\n",
    );
    let sent = sender.bus().subscribe::<V2xMessage>("its/tx/cam", RELIABLE, "test").unwrap();
    let (there, here) = (next(&sent), next(&received));
    assert_eq!((there.direction(), here.direction()), (Direction::Sent, Direction::Received));
    assert_eq!((there.station_id, here.station_id), (4711, 4711));
    let place = here.place().unwrap();
    assert_eq!((place.latitude.value(), place.longitude.value()), (45.5, 7.25));
    wait_for(&sender, "requests_refused", 2);
    // Its own frames come back from the group and are recognised.
    wait_for(&sender, "dropped", 1);
    sender.stop();
    receiver.stop();
}
