//! Peers that send what they must not: packets that are no packets, payloads of 256 MB, texts and octets that are no messages, types that
//! change. Each is refused and counted, or ends its connection; the process lives on, with bounded memory.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "in a test a panic is the failure")]

#[path = "mqtt/support.rs"]
mod support;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use prost::Message as _;
use support::*;
use viaduct_bus::{Bus, MessageFormat, Qos, Recv, TypeInfo, UntypedSample, UntypedSubscriber};
use viaduct_messages::foxglove::{LocationFix, Log};
use viaduct_mqtt::packet::connect::ConnectPacket;
use viaduct_mqtt::packet::publish::PublishPacket;
use viaduct_mqtt::{ConnectOptions, Packet, PropertyId, PropertyValue, QoS};
use viaduct_mqtt::{decode_buffered_packet, encode_packet_to_buffer};
use viaduct_ros::mqtt_client::TypeMessage;
use viaduct_ros::msg::Dialect;

/// A payload of 256 MB. The longest packet of MQTT has 268,435,455 octets.
const HUGE: usize = 256_000_000;
/// Memory that a process may use for octets that it refuses.
const REFUSED_BYTES_MAX: usize = 48 << 20;
const STRING_MD5: &str = "992ce8a1687cec8c8bd883ec73ca41d1";

/// Runs the tests one after the other, because they measure the memory of the process.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The memory of the process since a point in time.
struct Memory {
    before: usize,
}

impl Memory {
    /// Resets the peak.
    fn measure() -> Self {
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
        Self { before: Self::status("VmRSS:") }
    }

    /// Returns how much the peak is above the beginning, in bytes.
    fn growth(&self) -> usize {
        Self::status("VmHWM:").saturating_sub(self.before)
    }

    fn status(key: &str) -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
    }
}

/// Returns the octets of a PUBLISH before its payload. A quality of service of 3 is written too.
fn publish(version: u8, topic: &[u8], qos: u8, payload_octets: usize) -> Vec<u8> {
    let mut variable = (topic.len() as u16).to_be_bytes().to_vec();
    variable.extend(topic);
    if qos > 0 {
        variable.extend([0, 7]);
    }
    if version == 5 {
        variable.push(0);
    }
    let mut packet = vec![0x30 | qos << 1];
    let mut rest = variable.len() + payload_octets;
    while rest >= 0x80 {
        packet.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    packet.push(rest as u8);
    packet.extend(variable);
    packet
}

/// The length of a packet with a payload.
fn packet_octets(version: u8, topic: &str, payload_octets: usize) -> usize {
    publish(version, topic.as_bytes(), 0, payload_octets).len() + payload_octets
}

/// A connection to a bridge or a broker, of which the test writes each octet.
struct Raw {
    stream: TcpStream,
    incoming: BytesMut,
    version: u8,
}

impl Raw {
    /// Accepts a bridge, and answers its CONNECT and SUBSCRIBE.
    fn accept(listener: &TcpListener, version: u8) -> Self {
        let mut raw = Self { stream: listener.accept().unwrap().0, incoming: BytesMut::new(), version };
        raw.stream.set_nodelay(true).unwrap();
        assert!(matches!(raw.read(), Some(Packet::Connect(_))));
        raw.write(if version == 5 { &[0x20, 3, 0, 0, 0] } else { &[0x20, 2, 0, 0] });
        let Some(Packet::Subscribe(subscribe)) = raw.read() else { panic!("no SUBSCRIBE") };
        let mut answer = subscribe.packet_id.to_be_bytes().to_vec();
        if version == 5 {
            answer.push(0);
        }
        answer.extend(vec![0; subscribe.filters.len()]);
        raw.write(&[&[0x90, answer.len() as u8][..], &answer].concat());
        raw
    }

    /// Connects to a broker.
    fn connect(port: u16, name: &str) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut raw = Self { stream, incoming: BytesMut::new(), version: 5 };
        let options = ConnectOptions::new(name).with_keep_alive(std::time::Duration::ZERO);
        raw.write_packet(&Packet::Connect(Box::new(ConnectPacket::new(options.protocol_options))));
        assert!(matches!(raw.read(), Some(Packet::ConnAck(answer)) if !answer.reason_code.is_error()));
        raw
    }

    /// Writes octets. The peer may have closed the connection.
    fn write(&mut self, octets: &[u8]) {
        _ = self.stream.write_all(octets);
    }

    fn write_packet(&mut self, packet: &Packet) {
        let mut octets = BytesMut::new();
        encode_packet_to_buffer(packet, &mut octets).unwrap();
        self.write(&octets);
    }

    /// Writes a PUBLISH whose payload has the given beginning and is then filled with zeros.
    fn publish_filled(&mut self, topic: &str, qos: u8, beginning: &[u8], payload_octets: usize) {
        let header = publish(self.version, topic.as_bytes(), qos, payload_octets);
        self.write(&[&header[..], beginning].concat());
        let (mut left, zeros) = (payload_octets - beginning.len(), vec![0; 1 << 20]);
        while left > 0 {
            let part = left.min(zeros.len());
            if self.stream.write_all(&zeros[..part]).is_err() {
                return;
            }
            left -= part;
        }
    }

    /// Publishes with QoS 1 and waits for the acknowledgement.
    fn publish(&mut self, topic: &str, properties: &[(&str, &str)], payload: &[u8]) {
        let mut packet = PublishPacket::new(topic, payload.to_vec(), QoS::AtLeastOnce);
        packet.packet_id = Some(9);
        for (name, value) in properties {
            packet = packet.with_user_property((*name).to_owned(), (*value).to_owned());
        }
        self.write_packet(&Packet::Publish(packet));
        self.wait_for_puback();
    }

    fn wait_for_puback(&mut self) {
        let answer = self.read();
        assert!(matches!(answer, Some(Packet::PubAck(_))), "{answer:?}");
    }

    /// Reads the next packet, or returns `None` if the connection is closed.
    fn read(&mut self) -> Option<Packet> {
        loop {
            if let Some(packet) = decode_buffered_packet(&mut self.incoming, self.version, usize::MAX).unwrap() {
                return Some(packet);
            }
            let mut chunk = [0; 65_536];
            match self.stream.read(&mut chunk) {
                Ok(0) | Err(_) => return None,
                Ok(count) => self.incoming.extend_from_slice(&chunk[..count]),
            }
        }
    }

    /// Waits until the peer closes the connection.
    fn wait_for_close(&mut self) {
        while self.read().is_some() {}
    }
}

/// The type of `std_msgs/String` in the native format.
const STRING: &[u8] = br#"{"message_encoding":"ros1","name":"std_msgs/String","schema_id":"992ce8a1687cec8c8bd883ec73ca41d1","schema":"string data\n"}"#;
const OPAQUE: &[u8] = br#"{"message_encoding":"","name":"blob"}"#;

/// Returns the type message of mqtt_client.
fn string_type(stamped: bool) -> Bytes {
    TypeMessage {
        dialect: Dialect::Ros1,
        md5: STRING_MD5.to_owned(),
        name: "std_msgs/String".to_owned(),
        definition: "string data\n".to_owned(),
        stamped,
    }
    .write()
}

/// Starts a node with a bridge that receives `n/+` in the native format, `c/+` in that of mqtt_client, and `j/+` in JSON.
fn desk(port: u16, more: &str) -> (TestNode, UntypedSubscriber) {
    let node = TestNode::start(&format!(
        "node: desk\ncomponents:\n  feed: {{ kind: feed }}\n  downlink:\n    kind: mqtt_bridge\n    settings:\n      \
         broker: mqtt://127.0.0.1:{port}\n      client_id: desk-{port}-{}\n      reconnect: {{ min_ms: 1, max_ms: 20 }}\n{more}      inbound:\n      \
         - {{ from: \"n/+\", to: \"n/{{leaf}}\", encoding: native }}\n      \
         - {{ from: \"c/+\", to: \"c/{{leaf}}\", encoding: mqtt_client }}\n      \
         - {{ from: \"j/+\", to: its/send }}\n",
        more.len()
    ));
    let samples = node.bus().subscribe_untyped("*/x", Qos::keep_last(64), "test").unwrap();
    (node, samples)
}

fn next(samples: &UntypedSubscriber) -> UntypedSample {
    match samples.recv_timeout(PATIENCE) {
        Recv::Sample(sample) => sample,
        _ => panic!("no sample arrives"),
    }
}

fn of(bus: &Bus, name: &str) -> u64 {
    count(bus, "downlink", name)
}

fn refused(bus: &Bus, reason: &str) -> u64 {
    let counters = bus.snapshot().counters;
    let of = counters.iter().filter(|one| one.name == "refused" && one.reason.as_deref() == Some(reason));
    of.map(|one| one.value).sum()
}

/// Checks that a bridge still receives messages of each format on a connection.
fn check_alive(raw: &mut Raw, samples: &UntypedSubscriber) {
    let octets = b"\x02\0\0\0hi";
    for (topic, octets) in [
        ("viaduct/types/n/x", STRING),
        ("n/x", octets),
        ("mqtt_client/ros_msg_type/c/x", &string_type(false)),
        ("c/x", octets),
    ] {
        raw.publish_filled(topic, 0, octets, octets.len());
    }
    for topic in ["n/x", "c/x"] {
        let sample = next(samples);
        assert_eq!((sample.topic(), &sample.encoded().to_bytes()[..]), (topic, &octets[..]));
    }
}

#[test]
fn octets_that_are_no_packet_end_the_connection_and_the_next_one_works() {
    let _alone = alone();
    for (version, name) in [(5, "mqttv5"), (4, "mqttv311")] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (node, samples) = desk(listener.local_addr().unwrap().port(), &format!("      version: {name}\n"));
        let (bus, memory) = (node.bus(), Memory::measure());
        let with_nul = |qos| [publish(version, b"n/\0", qos, 2), b"hi".to_vec()].concat();
        let cases = [
            ("a topic with NUL", with_nul(0)),
            ("a topic with NUL, QoS 1", with_nul(1)),
            ("a topic with NUL, QoS 2", with_nul(2)),
            ("a topic that is not UTF-8", publish(version, b"n/\xFF", 1, 0)),
            ("a quality of service of 3", publish(version, b"n/x", 3, 0)),
            ("a topic longer than the packet", vec![0x30, 4, 0xFF, 0xFF, b'n', b'/']),
            ("a packet without a topic", vec![0x30, 0]),
            ("a length of five octets", vec![0x30, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]),
            ("an acknowledgement of 256 MiB", vec![0x40, 0xFF, 0xFF, 0xFF, 0x7F, 0, 1]),
            ("a packet of type 0", vec![0, 0]),
            ("a second CONNACK", if version == 5 { vec![0x20, 3, 0, 0, 0] } else { vec![0x20, 2, 0, 0] }),
        ];
        for (index, (what, octets)) in cases.iter().enumerate() {
            let mut raw = Raw::accept(&listener, version);
            raw.write(octets);
            raw.wait_for_close();
            eventually(&format!("{name}: the connection is lost after {what}"), || {
                of(&bus, "lost") == index as u64 + 1
            });
        }
        let mut raw = Raw::accept(&listener, version);
        // Topics that no broker may send, but which can be read.
        for (topic, counter) in
            [("n/+", "invalid_topic"), ("n/a b", "invalid_topic"), ("", "unrouted"), ("#", "unrouted")]
        {
            let counted = || if counter == "unrouted" { of(&bus, counter) } else { refused(&bus, counter) };
            let before = counted();
            raw.publish_filled(&format!("viaduct/types/{topic}"), 0, STRING, STRING.len());
            raw.publish_filled(topic, 0, b"\0\0\0\0", 4);
            eventually(&format!("{name}: `{topic}` is counted"), || counted() > before);
        }
        check_alive(&mut raw, &samples);
        assert_eq!((of(&bus, "lost"), of(&bus, "connected")), (cases.len() as u64, cases.len() as u64 + 1));
        assert!(memory.growth() < REFUSED_BYTES_MAX, "{} bytes", memory.growth());
        drop(raw);
        assert!(node.stop());
        assert_eq!(of(&bus, "received"), of(&bus, "requested") + of(&bus, "refused") + of(&bus, "unrouted"));
    }
}

#[test]
fn a_packet_above_the_limit_is_refused_and_acknowledged_whatever_its_length() {
    let _alone = alone();
    for (version, name) in [(5, "mqttv5"), (4, "mqttv311")] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (node, samples) = desk(listener.local_addr().unwrap().port(), &format!("      version: {name}\n"));
        let (bus, memory) = (node.bus(), Memory::measure());
        let mut raw = Raw::accept(&listener, version);
        check_alive(&mut raw, &samples);
        let mut too_long = 0;
        for (topic, qos) in [("n/x", 0), ("c/x", 1), ("n/x", 2), ("j/denm", 1), ("viaduct/types/n/x", 1)] {
            raw.publish_filled(topic, qos, b"\xFC\x3D\x42\x0F", HUGE);
            too_long += 1;
            eventually(&format!("{name}: {topic} is refused"), || refused(&bus, "too_long") == too_long);
            let id = match (qos, (qos > 0).then(|| raw.read())) {
                (0, None) => continue,
                (1, Some(Some(Packet::PubAck(ack)))) => ack.packet_id,
                (2, Some(Some(Packet::PubRec(ack)))) => ack.packet_id,
                (_, other) => panic!("{name}: {topic}: {other:?}"),
            };
            assert_eq!(id, 7);
        }
        check_alive(&mut raw, &samples);
        assert_eq!((of(&bus, "lost"), of(&bus, "received")), (0, 8 + too_long));
        assert!(memory.growth() < REFUSED_BYTES_MAX, "{} bytes", memory.growth());
        drop(raw);
        assert!(node.stop());
    }
}

#[test]
fn the_limit_of_a_packet_is_exact() {
    let _alone = alone();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (node, samples) = desk(listener.local_addr().unwrap().port(), "      packet_bytes_max: 100000\n");
    let bus = node.bus();
    let mut raw = Raw::accept(&listener, 5);
    check_alive(&mut raw, &samples);
    let fits = (0..100_000).rev().find(|octets| packet_octets(5, "n/x", *octets) <= 100_000).unwrap();
    let text = |octets: usize| (octets as u32 - 4).to_le_bytes();
    raw.publish_filled("n/x", 0, &text(fits), fits);
    assert_eq!(next(&samples).encoded().len(), fits);
    raw.publish_filled("n/x", 0, &text(fits + 1), fits + 1);
    eventually("the longer one is refused", || refused(&bus, "too_long") == 1);
    check_alive(&mut raw, &samples);
    drop(raw);
    assert!(node.stop());
}

#[test]
fn a_payload_of_256_mb_through_mosquitto_arrives_or_is_refused() {
    if !has("mosquitto") {
        return;
    }
    let _alone = alone();
    let port = free_port();
    let _mosquitto = Mosquitto::start(port);
    let mut sender = Raw::connect(port, "sender");
    let string = ((HUGE - 4) as u32).to_le_bytes();
    let publish_huge = |sender: &mut Raw| {
        for (topic, beginning) in [("n/x", &[][..]), ("c/x", &string)] {
            sender.publish_filled(topic, 1, beginning, HUGE);
            sender.wait_for_puback();
        }
    };
    let announce = |sender: &mut Raw| {
        sender.publish("viaduct/types/n/x", &[], OPAQUE);
        sender.publish("mqtt_client/ros_msg_type/c/x", &[], &string_type(false));
    };
    // Mosquitto does not send it to a client of MQTT 5 whose limit is lower, and cannot know the limit of one of MQTT 3.1.1.
    for (more, too_long) in [("", 0), ("      version: mqttv311\n", 2)] {
        let (node, samples) = desk(port, more);
        let bus = node.bus();
        eventually("the desk has subscribed", || of(&bus, "subscribed") == 1);
        let memory = Memory::measure();
        publish_huge(&mut sender);
        announce(&mut sender);
        sender.publish("n/x", &[], b"after");
        assert_eq!(next(&samples).encoded().to_bytes(), b"after"[..]);
        assert_eq!((refused(&bus, "too_long"), of(&bus, "lost")), (too_long, 0));
        assert!(memory.growth() < REFUSED_BYTES_MAX, "{} bytes", memory.growth());
        assert!(node.stop());
    }
    let (node, samples) = desk(port, "      packet_bytes_max: 268435455\n");
    let bus = node.bus();
    eventually("the desk has subscribed", || of(&bus, "subscribed") == 1);
    announce(&mut sender);
    let memory = Memory::measure();
    publish_huge(&mut sender);
    for topic in ["n/x", "c/x"] {
        let sample = next(&samples);
        assert_eq!((sample.topic(), sample.encoded().len()), (topic, HUGE));
    }
    // The message, and the buffer that grew with it.
    assert!(memory.growth() < 4 * HUGE, "{} bytes", memory.growth());
    // One that claims another length.
    sender.publish_filled("c/x", 1, &7_u32.to_le_bytes(), HUGE);
    sender.wait_for_puback();
    eventually("it is refused", || refused(&bus, "malformed_message") == 1);
    assert_eq!(of(&bus, "lost"), 0);
    assert!(node.stop());
}

#[test]
fn the_embedded_broker_closes_connections_with_invalid_packets() {
    let _alone = alone();
    let port = free_port();
    let node = TestNode::start(&format!(
        "node: edge\ncomponents:\n  feed: {{ kind: feed }}\n  downlink:\n    kind: mqtt_broker\n    settings:\n      \
         listen: 127.0.0.1:{port}\n      inbound:\n      - {{ from: \"n/+\", to: \"n/{{leaf}}\", encoding: native }}\n      \
         - {{ from: \"c/+\", to: \"c/{{leaf}}\", encoding: mqtt_client }}\n"
    ));
    let samples = node.bus().subscribe_untyped("*/x", Qos::keep_last(64), "test").unwrap();
    let memory = Memory::measure();
    for (index, octets) in [
        [publish(5, b"n/\0", 0, 2), b"hi".to_vec()].concat(),
        [publish(5, b"n/\0", 1, 2), b"hi".to_vec()].concat(),
        publish(5, b"n/+", 1, 0),
        publish(5, b"n/\xFF", 0, 0),
        publish(5, b"n/x", 3, 0),
        vec![0x30, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F],
        // It claims 256 MB, which follow below.
        publish(5, b"n/x", 0, HUGE),
    ]
    .iter()
    .enumerate()
    {
        let mut raw = Raw::connect(port, &format!("hostile-{index}"));
        raw.write(octets);
        raw.wait_for_close();
    }
    let mut raw = Raw::connect(port, "long");
    raw.publish_filled("n/x", 1, &[], HUGE);
    raw.wait_for_close();
    let mut raw = Raw::connect(port, "good");
    check_alive(&mut raw, &samples);
    assert!(memory.growth() < REFUSED_BYTES_MAX, "{} bytes", memory.growth());
    let bus = node.bus();
    assert!(node.stop());
    assert_eq!((of(&bus, "received"), of(&bus, "requested")), (4, 4));
}

#[test]
fn a_broker_stops_while_clients_send_more_than_it_can_read() {
    let _alone = alone();
    let port = free_port();
    let node = TestNode::start(&format!(
        "node: edge\ncomponents:\n  feed: {{ kind: feed }}\n  downlink:\n    kind: mqtt_broker\n    settings:\n      \
         listen: 127.0.0.1:{port}\n      inbound: [ {{ from: log, to: in/log, type: {{ protobuf: foxglove.Log }} }} ]\n"
    ));
    let bus = node.bus();
    let text = format!(r#"{{"message":"{}"}}"#, "\\u00e4".repeat(10_000));
    let packet = [publish(5, b"log", 0, text.len()), text.into_bytes()].concat();
    let clients: Vec<_> = (0..4)
        .map(|number| {
            let (mut raw, packet) = (Raw::connect(port, &format!("flood-{number}")), packet.clone());
            std::thread::spawn(move || while raw.stream.write_all(&packet).is_ok() {})
        })
        .collect();
    eventually("messages arrive", || of(&bus, "received") > 200);
    assert!(node.stop());
    for client in clients {
        client.join().unwrap();
    }
    assert_eq!(of(&bus, "received"), of(&bus, "requested") + of(&bus, "refused"));
}

#[test]
fn wrong_payloads_of_each_encoding_are_refused() {
    if !has("mosquitto") {
        return;
    }
    let _alone = alone();
    let port = free_port();
    let _mosquitto = Mosquitto::start(port);
    let node = TestNode::start(&format!(
        "node: desk\ncomponents:\n  feed: {{ kind: feed }}\n  downlink:\n    kind: mqtt_bridge\n    settings:\n      \
         broker: mqtt://127.0.0.1:{port}\n      inbound:\n      \
         - {{ from: \"v2x/+\", to: its/send }}\n      \
         - {{ from: \"nap/+\", to: its/nap, dialect: vanetza_nap }}\n      \
         - {{ from: state, to: in/state, type: vehicle_state }}\n      \
         - {{ from: objects, to: in/objects, type: perceived_objects }}\n      \
         - {{ from: event, to: in/event, type: event_request }}\n      \
         - {{ from: log, to: in/log, type: {{ protobuf: foxglove.Log }} }}\n      \
         - {{ from: ros1, to: in/ros1, type: {{ ros1: geometry_msgs/Twist }} }}\n      \
         - {{ from: ros2, to: in/ros2, type: {{ ros2: geometry_msgs/Twist }} }}\n      \
         - {{ from: bool, to: in/bool, encoding: primitive, type: {{ ros1: std_msgs/Bool }} }}\n      \
         - {{ from: int8, to: in/int8, encoding: primitive, type: {{ ros2: std_msgs/Int8 }} }}\n      \
         - {{ from: uint64, to: in/uint64, encoding: primitive, type: {{ ros1: std_msgs/UInt64 }} }}\n      \
         - {{ from: float32, to: in/float32, encoding: primitive, type: {{ ros2: std_msgs/Float32 }} }}\n      \
         - {{ from: string, to: in/string, encoding: primitive, type: {{ ros1: std_msgs/String }} }}\n      \
         - {{ from: \"n/+\", to: \"n/{{leaf}}\", encoding: native }}\n      \
         - {{ from: \"c/+\", to: \"c/{{leaf}}\", encoding: mqtt_client }}\n"
    ));
    let bus = node.bus();
    eventually("the desk has subscribed", || of(&bus, "subscribed") == 1);
    let mut sender = Raw::connect(port, "sender");
    let mut expect_refused = |what: &str, topic: &str, properties: &[(&str, &str)], payload: &[u8]| {
        let (before, requested) = (of(&bus, "refused"), of(&bus, "requested"));
        sender.publish(topic, properties, payload);
        eventually(&format!("`{what}` on {topic} is counted"), || {
            of(&bus, "refused") + of(&bus, "requested") > before + requested
        });
        assert_eq!((of(&bus, "refused"), of(&bus, "requested")), (before + 1, requested), "`{what}` on {topic}");
    };
    let deep_list = "[".repeat(60_000);
    let deep_map = r#"{"linear":"#.repeat(6_000);
    let long = "x".repeat(66_000);
    let texts: [(&str, &[u8]); 11] = [
        ("nothing", b""),
        ("half an object", b"{"),
        ("no UTF-8", b"{\"message\":\"\xFF\"}"),
        ("a NUL", b"\0"),
        ("a number", b"7"),
        ("a list", b"[]"),
        ("an unknown member", b"{\"nonsense\":1}"),
        ("two texts", b"{}{}"),
        ("a deep list", deep_list.as_bytes()),
        ("deep objects", deep_map.as_bytes()),
        ("a lone surrogate", b"{\"\\ud800\":1}"),
    ];
    for topic in ["v2x/denm", "nap/denm", "state", "objects", "event", "log", "ros1", "ros2"] {
        for (what, text) in texts {
            expect_refused(what, topic, &[], text);
        }
    }
    for (topic, text) in [
        ("v2x/nothing", r#"{"a":1}"#),
        ("log", r#"{"message":7}"#),
        ("log", r#"{"line":-1}"#),
        ("log", r#"{"line":1e999}"#),
        ("log", r#"{"message":"a","message":"b"}"#),
        ("ros1", r#"{"linear":{"x":"fast"}}"#),
        ("ros2", r#"{"linear":[1,2,3]}"#),
        ("state", r#"{"latitude_deg":"north"}"#),
        ("bool", "maybe"),
        ("bool", ""),
        ("int8", "128"),
        ("int8", "-129"),
        ("int8", "1.5"),
        ("int8", "0x10"),
        ("uint64", "-1"),
        ("uint64", "18446744073709551616"),
        ("float32", "1.2.3"),
        ("float32", ""),
        ("string", &long),
    ] {
        expect_refused(&text[..text.len().min(40)], topic, &[], text.as_bytes());
    }
    let hi = b"\x02\0\0\0hi";
    expect_refused("before its type", "n/x", &[], hi);
    expect_refused("before its type", "c/x", &[], hi);
    for octets in
        [&b"{"[..], b"\0\xFF", b"{\"message_encoding\":\"ros1\"}", b"{\"message_encoding\":\"ros1\",\"name\":\"\"}"]
    {
        expect_refused("no type", "viaduct/types/n/x", &[], octets);
        expect_refused("no type", "mqtt_client/ros_msg_type/c/x", &[], octets);
    }
    let mut kind = string_type(true);
    for length in [1, 4, 10, kind.len() - 1] {
        expect_refused("a cut type", "mqtt_client/ros_msg_type/c/x", &[], &kind[..length]);
    }
    let publish_type = |topic: &str, octets: &[u8]| {
        let before = of(&bus, "requested");
        Raw::connect(port, "types").publish(topic, &[], octets);
        eventually("the type is taken", || of(&bus, "requested") == before + 1);
    };
    publish_type("viaduct/types/n/x", STRING);
    publish_type("mqtt_client/ros_msg_type/c/x", &kind.split_off(0));
    for (what, octets) in [
        ("nothing", &b""[..]),
        ("a cut length", b"\x02\0"),
        ("a cut text", b"\x03\0\0\0hi"),
        ("a rest", b"\x02\0\0\0hi!"),
    ] {
        expect_refused(what, "n/x", &[], octets);
        expect_refused(what, "c/x", &[], octets);
        expect_refused(what, "c/x", &[], &[&[0; 8], octets].concat());
    }
    for properties in [
        [("viaduct-type", "std_msgs/Bool"), ("viaduct-encoding", "ros1")],
        [("viaduct-type", "std_msgs/String"), ("viaduct-encoding", "cdr")],
        [("viaduct-schema", "0"), ("viaduct-sequence", "00000001.0")],
        [("viaduct-sequence", "00000001.99999999999999999999"), ("a", "b")],
    ] {
        expect_refused("another type", "n/x", &properties, hi);
    }
    assert_eq!((of(&bus, "lost"), of(&bus, "connected")), (0, 1));
    // The highest number, and the same again.
    let samples = bus.subscribe_untyped("n/x", Qos::keep_last(4), "test").unwrap();
    for _ in 0..2 {
        sender.publish("n/x", &[("viaduct-sequence", "00000001.18446744073709551615")], hi);
        assert_eq!(next(&samples).encoded().to_bytes(), hi[..]);
    }
    assert!(node.stop());
}

/// Returns a message of each format.
fn each_format() -> [(TypeInfo, Bytes); 7] {
    let string = Bytes::from_static(b"string data\n");
    let ros1 = TypeInfo::foreign(MessageFormat::Ros1, "std_msgs/String", string.clone()).with_schema_id(STRING_MD5);
    let number = TypeInfo::foreign(MessageFormat::Ros1, "std_msgs/Int32", Bytes::from_static(b"int32 data\n"))
        .with_schema_id("da5909fbe378aeaf85e547e830cc1bb7");
    let log = Log { message: "hi".to_owned(), ..Log::default() };
    let fix = LocationFix { latitude: 48.0, ..LocationFix::default() };
    [
        (ros1, Bytes::from_static(b"\x02\0\0\0hi")),
        (number, Bytes::from_static(b"\x07\0\0\0")),
        (
            TypeInfo::foreign(MessageFormat::Ros2, "std_msgs/msg/String", string),
            Bytes::from_static(b"\0\x01\0\0\x03\0\0\0hi\0"),
        ),
        (TypeInfo::foreign(MessageFormat::Json, "text", Bytes::new()), Bytes::from_static(b"{}")),
        (TypeInfo::of::<Log>(), log.encode_to_vec().into()),
        (TypeInfo::foreign(MessageFormat::Opaque, "blob", Bytes::new()), Bytes::from_static(b"\xFF")),
        (TypeInfo::of::<LocationFix>(), fix.encode_to_vec().into()),
    ]
}

#[test]
fn the_type_of_a_topic_changes_at_run_time() {
    if !has("mosquitto") {
        return;
    }
    let _alone = alone();
    const ROUNDS: usize = 3;
    let port = free_port();
    let _mosquitto = Mosquitto::start(port);
    let (desk, samples) = desk(port, "");
    let protobuf = Subscriber::start(port, "protobuf");
    let car = TestNode::start(&format!(
        "node: car\ncomponents:\n  feed: {{ kind: feed }}\n  uplink:\n    kind: mqtt_bridge\n    settings:\n      \
         broker: mqtt://127.0.0.1:{port}\n      routes:\n      \
         - {{ from: any/x, to: n/x, encoding: native, qos: 1 }}\n      \
         - {{ from: any/x, to: c/x, encoding: mqtt_client, inject_timestamp: true, qos: 1 }}\n      \
         - {{ from: any/x, to: protobuf, encoding: protobuf, qos: 1 }}\n      \
         - {{ from: any/x, to: json, encoding: json, qos: 1 }}\n      \
         - {{ from: any/x, to: text, encoding: primitive, qos: 1 }}\n"
    ));
    let (bus, at_desk) = (car.bus(), desk.bus());
    eventually("the car is connected", || count(&bus, "uplink", "connected") == 1);
    eventually("the desk has subscribed", || of(&at_desk, "subscribed") == 1);
    let messages = each_format();
    for round in 0..ROUNDS {
        for (info, octets) in &messages {
            car.any("any/x", info, octets.clone());
            let is_ros = matches!(info.format(), MessageFormat::Ros1 | MessageFormat::Ros2);
            let mut topics = vec!["n/x"];
            topics.extend(is_ros.then_some("c/x"));
            let mut seen: Vec<String> = Vec::new();
            for _ in &topics {
                let sample = next(&samples);
                assert_eq!(sample.encoded().to_bytes(), octets, "round {round}: {info}");
                let received = sample.type_info();
                assert_eq!(
                    (received.format(), received.full_name()),
                    (info.format(), info.full_name()),
                    "round {round}"
                );
                seen.push(sample.topic().to_owned());
            }
            seen.sort_unstable_by(|one, other| other.cmp(one));
            assert_eq!(seen, topics, "round {round}: {info}");
        }
    }
    let packets = protobuf.wait_for(2 * ROUNDS);
    let content_types: Vec<String> = packets
        .iter()
        .map(|packet| match packet.properties.get(PropertyId::ContentType) {
            Some(PropertyValue::Utf8String(text)) => text.to_string(),
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = ["application/protobuf; type=foxglove.Log", "application/protobuf; type=foxglove.LocationFix"];
    assert_eq!(content_types, expected.repeat(ROUNDS));
    assert!(car.stop() && desk.stop());
    // mqtt_client and text: JSON, protobuf (2), opaque; protobuf: all but two; JSON: opaque.
    let unencodable = ROUNDS as u64 * (4 + 4 + 5 + 1);
    let account = Account::of(&bus, "uplink");
    assert_eq!((account.dropped(), account.reason("unencodable")), (unencodable, unencodable));
    assert_eq!((of(&at_desk, "refused"), of(&at_desk, "samples_lost")), (0, 0));
}
