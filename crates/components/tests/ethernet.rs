//! A station on raw Ethernet with a veth pair: receiving, sending, filtering, writing a capture, and errors at the start.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]

mod network;

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use network::{in_own_network, ip, sample_capture, skipped};
use tokio::runtime::Runtime;
use viaduct_bus::{Qos, Recv, Subscriber};
use viaduct_components::KINDS;
use viaduct_components::capture::{Capture, CapturedFrame};
use viaduct_components::net::{EthernetSettings, FrameSocket, open_ethernet};
use viaduct_messages::viaduct::its::{AccessLayer, V2xMessage};
use viaduct_node::{Graph, Node};

const PATIENCE: Duration = Duration::from_secs(30);
const RELIABLE: Qos = Qos::reliable(4096, Duration::ZERO);
const GROUP: &str = "239.118.122.97:8947";

/// Number of messages in the sample capture.
const SAMPLE_MESSAGES: usize = 929;

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn node_text(settings: &str) -> String {
    format!(
        "node: edge\ncomponents:\n  station:\n    kind: its_station\n    settings: {{ station_id: 901, {settings} }}\n"
    )
}

fn start(runtime: &Runtime, settings: &str) -> Node {
    let graph = Graph::resolve("edge", &node_text(settings), KINDS).unwrap_or_else(|error| panic!("{error}"));
    Node::start(graph, runtime.handle()).unwrap_or_else(|error| panic!("{error}"))
}

fn count(node: &Node, name: &str) -> u64 {
    let snapshot = node.bus().snapshot();
    snapshot.counters.iter().filter(|row| row.name == name).map(|row| row.value).sum()
}

fn count_for(node: &Node, name: &str, reason: &str) -> u64 {
    let snapshot = node.bus().snapshot();
    let rows = snapshot.counters.iter().filter(|row| row.name == name && row.reason.as_deref() == Some(reason));
    rows.map(|row| row.value).sum()
}

fn wait_until(what: &str, mut reached: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !reached() {
        assert!(Instant::now() < deadline, "not reached: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn next(messages: &Subscriber<V2xMessage>) -> V2xMessage {
    match messages.recv_timeout(PATIENCE) {
        Recv::Sample(sample) => (*sample).clone(),
        other => panic!("{other:?}"),
    }
}

fn all(messages: &Subscriber<V2xMessage>) -> Vec<V2xMessage> {
    (0..SAMPLE_MESSAGES).map(|_| next(messages)).collect()
}

fn frames_of(capture: &Path) -> Vec<CapturedFrame> {
    Capture::open(capture).unwrap().map(Result::unwrap).collect()
}

/// Returns the first CAM of the committed vectors.
fn cam() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/its/cam.hex");
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let digits: String = lines.flat_map(str::chars).filter(char::is_ascii_hexdigit).collect();
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

/// Returns a frame with the CAM and the given addresses.
fn cam_frame(destination: [u8; 6], source: [u8; 6]) -> Vec<u8> {
    let mut frame = cam();
    frame[..6].copy_from_slice(&destination);
    frame[6..12].copy_from_slice(&source);
    frame
}

/// Sends frames at a pace at which no queue overflows, also on a slow machine.
fn send_gently(node: &Node, frames: &[CapturedFrame], mut send: impl FnMut(&[u8])) {
    for (number, frame) in (1_u64..).zip(frames) {
        send(frame.octets.as_ref().unwrap());
        if number % 16 == 0 {
            wait_until("what was sent is received", || count(node, "received") + 32 >= number);
        }
    }
}

/// Opens a socket at the other end of the cable.
fn peer(runtime: &Runtime) -> FrameSocket {
    let _inside = runtime.enter();
    open_ethernet(&EthernetSettings::on("veth1")).unwrap()
}

/// Returns the members of a message that do not depend on the time of reception.
fn essence(message: &V2xMessage) -> impl PartialEq + std::fmt::Debug + use<> {
    (
        message.r#type(),
        message.station_id,
        message.link_address.clone(),
        message.geonet_address.clone(),
        message.btp_port,
        message.position,
        message.payload.clone(),
    )
}

/// Returns one line per frame: the link, network and transport fields according to tshark.
fn tshark(capture: &Path) -> Vec<String> {
    let fields = ["eth.src", "eth.dst", "eth.type", "frame.len", "geonw.src_pos.addr", "btpb.dstport"];
    let fields = fields.iter().flat_map(|field| ["-e", field]);
    let output = Command::new("tshark").arg("-r").arg(capture).args(["-T", "fields"]).args(fields).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn the_sample_capture_gives_the_same_messages_by_replay_udp_and_ethernet() {
    let Some(sample) = sample_capture() else { return };
    in_own_network("the_sample_capture_gives_the_same_messages_by_replay_udp_and_ethernet", || {
        let (runtime, frames) = (runtime(), frames_of(&sample));
        assert_eq!(frames.len(), SAMPLE_MESSAGES);
        let replayed = replayed(&runtime, &sample, &frames[0]);
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None).unwrap();
        socket.set_multicast_if_v4(&Ipv4Addr::LOCALHOST).unwrap();
        let (socket, group): (UdpSocket, SocketAddr) = (socket.into(), GROUP.parse().unwrap());
        let by_udp = received(&runtime, &format!("access: {{ udp_multicast: {{ group: \"{GROUP}\" }} }}"), |node| {
            send_gently(node, &frames, |frame| assert!(socket.send_to(frame, group).is_ok()));
        });
        let peer = peer(&runtime);
        let by_ethernet = received(&runtime, "access: { ethernet: { interface: veth0 } }", |node| {
            send_gently(node, &frames, |frame| runtime.block_on(peer.send(frame)).unwrap());
        });
        let essences = |messages: &[V2xMessage]| messages.iter().map(essence).collect::<Vec<_>>();
        assert_eq!(essences(&by_udp), essences(&replayed));
        assert_eq!(essences(&by_ethernet), essences(&replayed));
        assert!(by_ethernet.iter().all(|message| message.access() == AccessLayer::Ethernet));
    });
}

/// Returns the messages of one complete pass of a replayed capture. A subscriber of a running node may miss part of the first pass.
fn replayed(runtime: &Runtime, capture: &Path, first: &CapturedFrame) -> Vec<V2xMessage> {
    let replay = format!("{{ file: {}, pace: {{ rate_hz: 500 }}, repeat: true }}", capture.display());
    let node = start(runtime, &format!("access: {{ replay: {replay} }}"));
    let messages = node.bus().subscribe::<V2xMessage>("its/rx/*", RELIABLE, "test").unwrap();
    let begins = |message: &V2xMessage| first.octets.as_ref().unwrap().ends_with(&message.payload);
    let replayed = std::iter::repeat_with(|| next(&messages)).skip_while(|message| !begins(message));
    let replayed = replayed.take(SAMPLE_MESSAGES).collect();
    node.stop();
    replayed
}

/// Returns the messages that a station publishes while `send` runs: all messages of the sample capture, in order.
fn received(runtime: &Runtime, settings: &str, send: impl FnOnce(&Node)) -> Vec<V2xMessage> {
    let node = start(runtime, settings);
    let messages = node.bus().subscribe::<V2xMessage>("its/rx/*", RELIABLE, "test").unwrap();
    send(&node);
    let received = all(&messages);
    assert_eq!((count(&node, "received"), count(&node, "delivered")), (929, 929));
    node.stop();
    received
}

#[test]
fn tshark_reads_a_written_capture_like_the_original() {
    let Some(sample) = sample_capture() else { return };
    in_own_network("tshark_reads_a_written_capture_like_the_original", || {
        let (runtime, frames) = (runtime(), frames_of(&sample));
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("out.pcap");
        let settings =
            format!("access: {{ ethernet: {{ interface: veth0 }} }}, capture: {{ file: {} }}", file.display());
        let node = start(&runtime, &settings);
        let peer = peer(&runtime);
        send_gently(&node, &frames, |frame| runtime.block_on(peer.send(frame)).unwrap());
        wait_until("all are received", || count(&node, "received") == 929);
        // Recent frames are in the file before the station stops.
        wait_until("all are written", || count(&node, "capture_written") == 929);
        node.stop();
        let written = frames_of(&file);
        let octets = |frames: &[CapturedFrame]| frames.iter().map(|frame| frame.octets.clone()).collect::<Vec<_>>();
        assert_eq!(octets(&written), octets(&frames));
        assert!(written.windows(2).all(|pair| pair[0].time <= pair[1].time), "the kernel's times, in their order");
        match Command::new("tshark").arg("--version").output() {
            Ok(_) => assert_eq!(tshark(&file), tshark(&sample)),
            Err(_) => skipped("tshark is not installed"),
        }
    });
}

#[test]
fn a_station_sends_with_the_address_of_its_interface_and_captures_sent_frames() {
    in_own_network("a_station_sends_with_the_address_of_its_interface_and_captures_sent_frames", || {
        let runtime = runtime();
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("out.pcap");
        let mut peer = peer(&runtime);
        let node = start(
            &runtime,
            &format!(
                "access: {{ ethernet: {{ interface: veth0 }} }}, capture: {{ file: {} }}, beacons: true, \
                 position: {{ latitude_deg: 45.5, longitude_deg: 7.25 }}",
                file.display()
            ),
        );
        let beacon = runtime.block_on(async { tokio::time::timeout(PATIENCE, peer.receive()).await }).unwrap().unwrap();
        assert_eq!(beacon.octets[..14], [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 2, 0, 0, 0, 0, 0x10, 0x89, 0x47]);
        assert!(beacon.received.is_some(), "the kernel gives a timestamp");
        wait_until("the beacon is counted", || count(&node, "sent") >= 1);
        node.stop();
        assert_eq!(frames_of(&file)[0].octets, Ok(beacon.octets));
    });
}

#[test]
fn frames_of_ignored_senders_are_counted_and_not_decoded() {
    in_own_network("frames_of_ignored_senders_are_counted_and_not_decoded", || {
        let runtime = runtime();
        let peer = peer(&runtime);
        let filter = "filter: { ignore_from: [ \"02:00:00:00:00:66\" ] }";
        let node = start(&runtime, &format!("access: {{ ethernet: {{ interface: veth0 }} }}, {filter}"));
        let send = |destination, source| runtime.block_on(peer.send(&cam_frame(destination, source))).unwrap();
        send([0xFF; 6], [2, 0, 0, 0, 0, 0x66]);
        send([2, 0, 0, 0, 0, 0x10], [2, 0, 0, 0, 0, 0x11]);
        send([0xFF; 6], [2, 0, 0, 0, 0, 0x11]);
        wait_until("both others are received", || count(&node, "received") == 2);
        assert_eq!(count_for(&node, "filtered", "ignored_sender"), 1);
        node.stop();
    });
}

#[test]
fn an_interface_is_promiscuous_while_a_station_requires_it() {
    in_own_network("an_interface_is_promiscuous_while_a_station_requires_it", || {
        let is_promiscuous = || {
            let shown = Command::new("ip").args(["-details", "link", "show", "veth0"]).output().unwrap();
            String::from_utf8(shown.stdout).unwrap().contains("promiscuity 1")
        };
        let runtime = runtime();
        assert!(!is_promiscuous());
        let node = start(&runtime, "access: { ethernet: { interface: veth0, promiscuous: true } }");
        assert!(is_promiscuous());
        node.stop();
        drop(runtime);
        assert!(!is_promiscuous());
    });
}

#[test]
fn kernel_drops_are_counted() {
    in_own_network("kernel_drops_are_counted", || {
        let runtime = runtime();
        let sender = peer(&runtime);
        let small = EthernetSettings { receive_buffer_octets: 4096, ..EthernetSettings::on("veth0") };
        let mut receiver = {
            let _inside = runtime.enter();
            open_ethernet(&small).unwrap()
        };
        let frame = cam_frame([0xFF; 6], [2, 0, 0, 0, 0, 0x11]);
        let sent = 500;
        for _ in 0..sent {
            runtime.block_on(sender.send(&frame)).unwrap();
        }
        let received = runtime.block_on(async {
            let mut received = 0;
            while tokio::time::timeout(Duration::from_millis(200), receiver.receive()).await.is_ok() {
                received += 1;
            }
            received
        });
        let dropped = receiver.kernel_drops().unwrap();
        assert!(dropped > 0 && received > 0, "{received} received, {dropped} dropped");
        assert_eq!(received + dropped, sent);
    });
}

#[test]
fn a_station_survives_an_interface_that_goes_down_but_not_its_removal() {
    in_own_network("a_station_survives_an_interface_that_goes_down_but_not_its_removal", || {
        let runtime = runtime();
        let mut node = start(&runtime, "access: { ethernet: { interface: veth0 } }");
        ip("link set veth0 down");
        std::thread::sleep(Duration::from_millis(100));
        assert!(node.try_failed().is_none());
        ip("link set veth0 up");
        let peer = peer(&runtime);
        let frame = cam_frame([0xFF; 6], [2, 0, 0, 0, 0, 0x11]);
        wait_until("a frame comes again", || {
            // It takes a moment until both ends of the cable are up.
            let _ = runtime.block_on(peer.send(&frame));
            count(&node, "delivered") > 0
        });
        ip("link del veth0");
        let mut failure = None;
        wait_until("the station ends", || {
            failure = node.try_failed();
            failure.is_some()
        });
        assert!(failure.unwrap().to_string().contains("network interface veth0 is gone"));
        node.stop();
    });
}

#[test]
fn an_interface_that_is_down_is_reported_with_the_remedy() {
    in_own_network("an_interface_that_is_down_is_reported_with_the_remedy", || {
        ip("link set veth0 down");
        let graph = Graph::resolve("edge", &node_text("access: { ethernet: { interface: veth0 } }"), KINDS).unwrap();
        let error = Node::start(graph, runtime().handle()).err().unwrap().to_string();
        assert!(error.contains("network interface veth0 is down; `sudo ip link set veth0 up` brings it up"), "{error}");
    });
}

#[test]
fn a_missing_interface_is_reported_with_the_existing_ones() {
    let refused = Graph::resolve("edge.yaml", &node_text("access: { ethernet: { interface: no_such0 } }"), KINDS);
    let error = refused.err().unwrap().to_string();
    assert!(
        error.contains("access.ethernet.interface: there is no network interface `no_such0`; there is "),
        "{error}"
    );
    assert!(error.contains("lo"), "{error}");
}

#[test]
fn a_missing_capability_is_reported_with_the_remedy() {
    const WITHOUT: &str = "VIADUCT_TEST_WITHOUT_RIGHTS";
    if std::env::var_os(WITHOUT).is_none() {
        let mut again = Command::new("setpriv");
        // Root without CAP_NET_RAW; other users do not have it anyway.
        if std::fs::metadata("/proc/self").unwrap().uid() == 0 {
            again.args(["--inh-caps=-net_raw", "--bounding-set=-net_raw"]);
        }
        again.arg(std::env::current_exe().unwrap());
        again.args(["a_missing_capability_is_reported_with_the_remedy", "--exact", "--nocapture"]);
        match again.env(WITHOUT, "1").status() {
            Ok(status) => assert!(status.success()),
            Err(_) => skipped("setpriv (util-linux) is not installed"),
        }
        return;
    }
    let runtime = runtime();
    let _inside = runtime.enter();
    let error = open_ethernet(&EthernetSettings::on("lo")).err().unwrap().to_string();
    assert!(error.contains("without CAP_NET_RAW") && error.contains("setcap cap_net_raw+ep"), "{error}");
    assert!(error.ends_with("Operation not permitted (os error 1)"), "{error}");
}
