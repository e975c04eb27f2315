//! Routes of `mqtt_bridge`: queues, rates and lists of topics.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "in a test a panic is the failure")]

#[path = "mqtt/support.rs"]
mod support;

use std::process::{Command, Stdio};
use std::time::Duration;

use bytes::Bytes;
use support::*;
use viaduct_bus::{MessageFormat, Qos, Recv, TypeInfo, UntypedSample, UntypedSubscriber};
use viaduct_messages::foxglove::Log;

/// Starts a node with a bridge and its routes.
fn car(port: u16, routes: &str) -> TestNode {
    TestNode::start(&format!(
        "node: car\ncomponents:\n  feed: {{ kind: feed }}\n  uplink:\n    kind: mqtt_bridge\n    settings:\n      \
         broker: mqtt://127.0.0.1:{port}\n      reconnect: {{ min_ms: 1, max_ms: 20 }}\n      routes: [ {routes} ]\n"
    ))
}

/// Returns the number at the beginning of each received log.
fn received(broker: &StalledBroker) -> Vec<usize> {
    let seen = broker.seen();
    let json = |payload: &[u8]| serde_json::from_slice::<serde_json::Value>(payload).unwrap();
    seen.iter().map(|packet| json(&packet.payload)["message"].as_str().unwrap().trim().parse().unwrap()).collect()
}

/// Publishes logs of 200 kB on a stalled connection. Returns the numbers that arrive when it is released, and the number of samples that
/// were overwritten.
fn through_a_stalled_connection(route: &str) -> (Vec<usize>, u64) {
    const LOGS: usize = 40;
    let broker = StalledBroker::start();
    let node = car(broker.port, &format!("{{ from: log/n, to: v, {route} }}"));
    let bus = node.bus();
    eventually("the bridge is connected", || count(&bus, "uplink", "connected") == 1);
    for number in 0..LOGS {
        node.log("log/n", &format!("{number}{}", " ".repeat(200_000)));
        std::thread::sleep(Duration::from_millis(2));
    }
    broker.release();
    eventually("the newest log arrives", || received(&broker).last() == Some(&(LOGS - 1)));
    let topic = bus.snapshot().topics.into_iter().find(|topic| topic.topic == "log/n").unwrap();
    let uplink = topic.subscriptions.into_iter().find(|one| one.subscriber == "uplink").unwrap();
    assert!(node.stop());
    let account = Account::of(&bus, "uplink");
    assert_eq!(account.published, received(&broker).len() as u64);
    (received(&broker), uplink.dropped.get("overwritten").copied().unwrap_or(0))
}

#[test]
fn the_latest_sample_overtakes_those_that_wait_for_the_connection() {
    for qos in ["qos: 0", "qos: 1"] {
        let (numbers, overwritten) = through_a_stalled_connection(&format!("queue: latest, {qos}"));
        // The first one is in the buffers of the sockets, the second one may be as well.
        assert!(numbers.len() <= 4 && numbers.is_sorted(), "{qos} {numbers:?}");
        assert_eq!(numbers.len() as u64 + overwritten, 40, "{qos}");
    }
}

#[test]
fn the_newest_samples_wait_for_the_connection() {
    let (numbers, overwritten) = through_a_stalled_connection("queue: { keep: 5 }");
    let newest: Vec<usize> = (35..40).collect();
    assert!(numbers.ends_with(&newest) && numbers.len() <= 5 + 5 + 3, "{numbers:?}");
    assert_eq!(numbers.len() as u64 + overwritten, 40);
}

#[test]
fn a_route_without_a_queue_keeps_all() {
    let (numbers, overwritten) = through_a_stalled_connection("");
    assert_eq!((numbers, overwritten), ((0..40).collect(), 0));
}

#[test]
fn a_route_that_blocks_slows_a_reliable_publisher() {
    let port = free_port();
    let config = |qos: &str| {
        format!(
            "node: car\ncomponents:\n  lidar: {{ kind: generator, settings: {{ topic: lidar, octets: 160000, rate_hz: 500, {qos} }} }}\n  \
             broker: {{ kind: mqtt_broker, settings: {{ listen: 127.0.0.1:{port}, \
             routes: [ {{ from: lidar, to: v, encoding: protobuf, queue: {{ block: 4 }} }} ] }} }}\n"
        )
    };
    let error = TestNode::refused(&config("qos: { preset: sensor_data }"));
    assert!(error.contains("offered is best effort, requested is reliable"), "{error}");
    let node = TestNode::start(&config("qos: { preset: default }"));
    let bus = node.bus();
    eventually("clouds are published", || count(&bus, "broker", "published") > 50);
    assert!(node.stop());
    let topic = bus.snapshot().topics.into_iter().find(|topic| topic.topic == "lidar").unwrap();
    assert!(topic.subscriptions.iter().all(|one| one.dropped.is_empty()), "{topic:?}");
}

/// Returns the number of buffers of the pool of `lidar`.
fn buffers(octets: usize, route: &str) -> usize {
    let node = TestNode::start(&format!(
        "node: car\ncomponents:\n  lidar: {{ kind: generator, settings: {{ topic: lidar, octets: {octets} }} }}\n  \
         uplink: {{ kind: mqtt_bridge, settings: {{ broker: \"mqtt://127.0.0.1:1\", \
         routes: [ {{ from: \"*\", encoding: native, {route} }} ] }} }}\n"
    ));
    let topic = node.bus().snapshot().topics.into_iter().find(|topic| topic.topic == "lidar").unwrap();
    assert!(node.stop());
    topic.pool.unwrap().buffers
}

#[test]
fn the_queue_of_a_route_counts_in_the_pool() {
    let others = 1 + 8;
    assert_eq!(buffers(4 << 20, "queue: latest"), 1 + 2 + others);
    assert_eq!(buffers(4 << 20, "queue: { keep: 3 }"), 3 + 4 + others);
    // At most 32 MiB without a setting, and one that is being encoded.
    assert_eq!(buffers(4 << 20, ""), 8 + 1 + others);
    assert_eq!(buffers(1 << 10, ""), 1024 + 1 + others);
}

#[test]
fn topics_and_rates_of_a_route_are_limited() {
    let port = free_port();
    let node = TestNode::start(&format!(
        "node: car\ncomponents:\n  feed: {{ kind: feed }}\n  broker:\n    kind: mqtt_broker\n    settings:\n      \
         listen: 127.0.0.1:{port}\n      \
         routes: [ {{ from: \"log/*\", to: \"v/{{leaf}}\", allow: [ log/a, log/b ], deny: [ log/b ] }}, \
         {{ from: log/slow, to: slow, rate_hz: 0.1 }} ]\n"
    ));
    let subscriber = Subscriber::start(port, "#");
    let bus = node.bus();
    for topic in ["log/b", "log/c", "log/a", "log/slow", "log/slow", "log/slow", "log/a"] {
        node.log(topic, topic);
    }
    eventually("all are taken", || count(&bus, "broker", "taken") == 5);
    let seen = subscriber.wait_for(3);
    assert!(node.stop());
    let mut topics: Vec<&str> = seen.iter().map(|packet| packet.topic_name.as_str()).collect();
    topics.sort_unstable();
    assert_eq!(topics, ["slow", "v/a", "v/a"]);
    assert_eq!(Account::of(&bus, "broker").reason("rate_limited"), 2);
}

fn next(samples: &UntypedSubscriber) -> UntypedSample {
    match samples.recv_timeout(PATIENCE) {
        Recv::Sample(sample) => sample,
        _ => panic!("no sample arrives"),
    }
}

/// Publishes a text.
fn publish(port: u16, topic: &str, text: &str) {
    let mut command = Command::new("mosquitto_pub");
    command.args(["-p", &port.to_string(), "-q", "1", "-t", topic, "-s"]);
    let mut process = command.stdin(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut process.stdin.take().unwrap(), text.as_bytes()).unwrap();
    assert!(process.wait().unwrap().success(), "{topic}");
}

#[test]
fn texts_become_messages_of_any_type() {
    if !has("mosquitto_pub") {
        return;
    }
    let port = free_port();
    let folder = tempfile::tempdir().unwrap();
    let definition = folder.path().join("Wheel.msg");
    std::fs::write(&definition, "float32 speed\nuint8[] raw\n").unwrap();
    let node = TestNode::start(&format!(
        "node: edge\ncomponents:\n  feed: {{ kind: feed }}\n  broker:\n    kind: mqtt_broker\n    settings:\n      \
         listen: 127.0.0.1:{port}\n      inbound:\n      \
         - {{ from: log, to: in/log, type: {{ protobuf: foxglove.Log }} }}\n      \
         - {{ from: twist, to: in/twist, type: {{ ros1: geometry_msgs/Twist }} }}\n      \
         - {{ from: wheel, to: in/wheel, type: {{ ros2: car_msgs/Wheel }}, definition_file: {} }}\n      \
         - {{ from: number, to: in/number, encoding: primitive, type: {{ ros1: std_msgs/Int32 }} }}\n      \
         - {{ from: any, to: in/any, encoding: primitive, type: {{ ros2: \"*\" }} }}\n      \
         routes: [ {{ from: in/number, to: number/back, encoding: primitive }}, \
         {{ from: in/any, to: any/back, encoding: primitive }} ]\n",
        definition.display()
    ));
    let bus = node.bus();
    let samples = bus.subscribe_untyped("in/*", Qos::keep_last(16), "test").unwrap();
    let back = Subscriber::start(port, "+/back");
    publish(port, "log", r#"{"level":"error","message":"hi"}"#);
    assert_eq!(next(&samples).typed::<Log>().unwrap().message, "hi");
    publish(port, "twist", r#"{"linear":{"x":1.5}}"#);
    let twist = next(&samples);
    assert_eq!((twist.type_info().schema_id(), twist.encoded().len()), ("9f195f881246fdfa2798d1d3eebca84a", 48));
    assert_eq!(twist.encoded().to_bytes()[..8], 1.5_f64.to_le_bytes());
    publish(port, "wheel", r#"{"speed":2,"raw":[1,2]}"#);
    assert_eq!(next(&samples).encoded().to_bytes()[..], *b"\0\x01\0\0\0\0\0\x40\x02\0\0\0\x01\x02");
    publish(port, "number", "-7");
    assert_eq!(next(&samples).encoded().to_bytes()[..], *b"\xF9\xFF\xFF\xFF");
    for (text, name) in [("true", "Bool"), ("12", "Int32"), ("1.5", "Float32"), ("hello", "String")] {
        publish(port, "any", text);
        assert_eq!(next(&samples).type_info().full_name(), format!("std_msgs/{name}"), "{text}");
    }
    let seen = back.wait_for(5);
    let texts: Vec<&[u8]> = seen.iter().map(|packet| &packet.payload[..]).collect();
    assert_eq!(texts, [&b"-7"[..], b"true", b"12", b"1.500000", b"hello"]);
    for (topic, text) in [("log", "{"), ("log", r#"{"lever":1}"#), ("twist", r#"{"linear":7}"#), ("number", "seven")] {
        let before = count(&bus, "broker", "refused");
        publish(port, topic, text);
        eventually("the text is refused", || count(&bus, "broker", "refused") == before + 1);
    }
    assert!(node.stop());
    assert_eq!(
        count(&bus, "broker", "received"),
        count(&bus, "broker", "requested") + count(&bus, "broker", "refused")
    );
}

#[test]
fn settings_of_types_are_checked() {
    for (route, expected) in [
        ("type: { protobuf: foxglove.Nothing }", "there is no type `foxglove.Nothing`"),
        ("type: { ros1: car_msgs/Wheel }", "`car_msgs/Wheel` is not a common type: set `definition_file`"),
        ("encoding: primitive", "expected `ros1: NAME` or `ros2: NAME`"),
        ("encoding: primitive, type: { ros1: geometry_msgs/Twist }", "has no plain text"),
        ("type: event_request, definition_file: a.msg", "allowed only with a type of ROS"),
        ("encoding: native, allow: [ \"a/#/b\" ]", "`a/#/b` is not an MQTT topic filter"),
    ] {
        let error = TestNode::refused(&format!(
            "node: n\ncomponents:\n  feed: {{ kind: feed }}\n  uplink:\n    kind: mqtt_bridge\n    settings:\n      \
             broker: mqtt://127.0.0.1:1\n      inbound: [ {{ from: a/+, to: in/a, {route} }} ]\n"
        ));
        assert!(error.contains(expected), "{route}: {error}");
    }
}

#[test]
fn stamps_and_properties_survive_the_inbound_path_of_the_embedded_broker() {
    let port = free_port();
    let edge = TestNode::start(&format!(
        "node: edge\ncomponents:\n  feed: {{ kind: feed }}\n  broker:\n    kind: mqtt_broker\n    settings:\n      \
         listen: 127.0.0.1:{port}\n      inbound: [ {{ from: \"car/#\", to: \"{{topic}}\", encoding: native }} ]\n"
    ));
    let samples = edge.bus().subscribe_untyped("car/**", Qos::keep_last(2000), "test").unwrap();
    for qos in 0..=2 {
        let node = car(
            port,
            &format!("{{ from: any/*, to: \"car/{{topic}}\", encoding: native, compression: zstd, qos: {qos} }}"),
        );
        let bus = node.bus();
        eventually("the bridge is connected", || count(&bus, "uplink", "connected") == 1);
        let info = TypeInfo::foreign(MessageFormat::Opaque, "blob", Bytes::new());
        let sent = Bytes::from(b"0123456789".repeat(1000));
        for _ in 0..500 {
            node.any("any/blob", &info, sent.clone());
            std::thread::sleep(Duration::from_micros(200));
        }
        eventually("all are sent", || count(&bus, "uplink", "published") >= 501);
        for _ in 0..500 {
            let sample = next(&samples);
            assert!(sample.encoded().to_bytes() == sent, "QoS {qos}");
            assert!(sample.meta().stamps().iter().any(|stamp| stamp.hop.as_str() == "uplink"), "QoS {qos}");
            assert_eq!(sample.topic(), "car/any/blob");
        }
        assert!(node.stop());
    }
    let bus = edge.bus();
    assert!(edge.stop());
    assert_eq!((count(&bus, "broker", "refused"), count(&bus, "broker", "samples_lost")), (0, 0));
}
