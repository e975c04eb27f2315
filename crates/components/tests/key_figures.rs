//! The kind `key_figures` with a vehicle and a cloud of which each is a node, over Mosquitto. The clock of the cloud is ahead: a program
//! between the cloud and the vehicle adds the offset to its stamps.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "in a test a panic is the failure")]

#[path = "mqtt/support.rs"]
mod support;

use std::io::Write as _;
use std::net::TcpStream;
use std::path::Path;

use bytes::BytesMut;
use support::*;
use viaduct_bus::{HopStamp, Meta, Qos, Recv};
use viaduct_components::mqtt::hops;
use viaduct_messages::viaduct::figures::{KeyFigures, RoundTrip, Statistics};
use viaduct_mqtt::packet::connect::ConnectPacket;
use viaduct_mqtt::packet::publish::PublishPacket;
use viaduct_mqtt::{ConnectOptions, Packet, QoS, encode_packet_to_buffer};
use viaduct_units::Tai;

/// Time of the cloud's clock minus that of the vehicle.
const AHEAD_NS: i64 = 1_500_000_000;

const STAGES: [(&str, &str); 7] = [
    ("vehicle_to_interface", "uplink taken"),
    ("vehicle_interface_out", "uplink sent"),
    ("vehicle_to_cloud", "bridge received"),
    ("cloud", "bridge sent"),
    ("cloud_to_vehicle", "uplink received"),
    ("vehicle_interface_in", "uplink published"),
    ("interface_to_benchmark", "kpis taken"),
];

/// Returns the properties of a message of the cloud as if the cloud's clock were ahead.
fn shifted(packet: &PublishPacket) -> Vec<(String, String)> {
    let meta = hops::of(|name| packet.properties.get_user_property_value(name)).unwrap().unwrap().meta;
    let mut ahead = Meta::from_origin(meta.origin);
    for stamp in meta.stamps() {
        let shift = if stamp.hop.as_str() == "bridge" { AHEAD_NS } else { 0 };
        let at = Tai::from_nanos(stamp.at.nanos() + shift);
        ahead.push(HopStamp::new(stamp.hop, stamp.kind(), at).with_clock(stamp.clock()));
    }
    let marks = hops::write_marks(&ahead, None);
    vec![(hops::PROPERTY.to_owned(), hops::write(&ahead)), (hops::MARKS_PROPERTY.to_owned(), marks)]
}

/// A client that publishes with QoS 0.
struct Sender(TcpStream);

impl Sender {
    fn connect(port: u16) -> Self {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let connect = ConnectPacket::new(ConnectOptions::new("clock").protocol_options);
        write(&mut stream, &Packet::Connect(Box::new(connect)));
        // Mosquitto accepts packets that arrive before its CONNACK was read.
        Self(stream)
    }

    fn publish(&mut self, topic: &str, from: &PublishPacket, properties: Vec<(String, String)>) {
        let mut packet = PublishPacket::new(topic, from.payload.clone(), QoS::AtMostOnce);
        for (name, value) in properties {
            packet = packet.with_user_property(name, value);
        }
        write(&mut self.0, &Packet::Publish(packet));
    }
}

fn write(stream: &mut TcpStream, packet: &Packet) {
    let mut octets = BytesMut::new();
    encode_packet_to_buffer(packet, &mut octets).unwrap();
    stream.write_all(&octets).unwrap();
}

/// Starts the vehicle with the key figures, whose files are in `folder`.
fn vehicle(port: u16, folder: &Path) -> TestNode {
    let stages: Vec<String> = STAGES.iter().map(|(name, to)| format!("{{ name: {name}, to: {to} }}")).collect();
    TestNode::start(&format!(
        "node: vehicle\ncomponents:\n  feed: {{ kind: feed }}\n  uplink:\n    kind: mqtt_bridge\n    settings:\n      \
         broker: mqtt://127.0.0.1:{port}\n      inbound: [ {{ from: down, to: result, encoding: native }} ]\n      \
         routes: [ {{ from: log/n, to: up, encoding: native }} ]\n  kpis:\n    kind: key_figures\n    settings:\n      \
         topic: result\n      source: log/n\n      start: feed published\n      stages: [ {} ]\n      deadline_ms: 2000\n      \
         files: {{ folder: {}, name: test }}\n",
        stages.join(", "),
        folder.display()
    ))
}

fn cloud(port: u16) -> TestNode {
    TestNode::start(&format!(
        "node: cloud\ncomponents:\n  feed: {{ kind: feed }}\n  bridge:\n    kind: mqtt_bridge\n    settings:\n      \
         broker: mqtt://127.0.0.1:{port}\n      inbound: [ {{ from: up, to: work, encoding: native }} ]\n      \
         routes: [ {{ from: work, to: from_cloud, encoding: native }} ]\n"
    ))
}

#[test]
fn the_stages_add_up_to_the_total_and_the_offset_of_the_clock_is_found() {
    if !has("mosquitto") {
        return;
    }
    let (port, folder) = (free_port(), tempfile::tempdir().unwrap());
    let _mosquitto = Mosquitto::start(port);
    let from_cloud = Subscriber::start(port, "#");
    let (cloud, vehicle) = (cloud(port), vehicle(port, folder.path()));
    let bus = vehicle.bus();
    let figures = bus.subscribe::<KeyFigures>("figures/window", Qos::keep_last(1), "test").unwrap();
    let messages = bus.subscribe::<RoundTrip>("figures/message", Qos::keep_last(64), "test").unwrap();
    eventually("the cloud has subscribed", || count(&cloud.bus(), "bridge", "subscribed") == 1);
    eventually("the vehicle has subscribed", || count(&bus, "uplink", "subscribed") == 1);

    let (mut clock, mut seen) = (Sender::connect(port), 0);
    for number in 0..20 {
        vehicle.log("log/n", &number.to_string());
        // The type of the topic, once, and the message.
        let mut is_passed_on = false;
        eventually("the message comes from the cloud", || {
            let packets = from_cloud.seen();
            for packet in &packets[seen..] {
                match packet.topic_name.as_str() {
                    "viaduct/types/from_cloud" => clock.publish("viaduct/types/down", packet, Vec::new()),
                    "from_cloud" => {
                        clock.publish("down", packet, shifted(packet));
                        is_passed_on = true;
                    }
                    _ => {}
                }
            }
            seen = packets.len();
            is_passed_on
        });
        let Recv::Sample(message) = messages.recv_timeout(PATIENCE) else { panic!("no figures of message {number}") };
        assert!((message.stages_ms.iter().sum::<f64>() - message.total_ms).abs() < 1e-6, "{message:?}");
        assert!(message.differences_ms[2] > 1_500.0 && message.differences_ms[4] < 0.0, "{message:?}");
        assert!(message.total_ms > 0.0 && message.stages_ms.iter().all(|stage_ms| *stage_ms >= 0.0), "{message:?}");
    }
    // These are not passed on.
    for number in 0..3 {
        vehicle.log("log/n", &number.to_string());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let latest = loop {
        let Recv::Sample(latest) = figures.recv_timeout(PATIENCE) else { panic!("no figures") };
        if latest.count == 20 && latest.loss.is_some_and(|loss| loss.missing == 3) {
            break latest;
        }
    };
    let mean = |of: Option<Statistics>| of.unwrap().mean_ms;
    let sum: f64 = latest.stages.iter().map(|stage| mean(stage.latency)).sum();
    assert!((sum - mean(latest.total)).abs() < 1e-6);
    let offset = latest.clock_offset.unwrap();
    assert!((offset.offset_ms - 1_500.0).abs() <= offset.error_ms && offset.error_ms < 1_500.0, "{offset:?}");
    let ways: Vec<&str> =
        latest.stages.iter().filter(|stage| stage.is_communication).map(|stage| stage.name.as_str()).collect();
    assert_eq!(ways, ["vehicle_to_cloud", "cloud_to_vehicle"]);
    assert_eq!(latest.loss.map(|loss| (loss.sent, loss.late)), Some((23, 0)));
    assert_eq!((latest.window, latest.total_quantiles_ms.len()), (600, 101));

    let gauge = |name: &str, part: Option<&str>| {
        let gauges = bus.snapshot().gauges;
        gauges.into_iter().find(|gauge| gauge.name == name && gauge.part.as_deref() == part).map(|gauge| gauge.value)
    };
    assert_eq!(gauge("clock_offset_ms", None), Some(offset.offset_ms));
    assert_eq!(gauge("latency_mean_ms", Some("total")), Some(mean(latest.total)));
    assert!((gauge("missing_ratio", None).unwrap() - 3.0 / 23.0).abs() < 1e-9);
    assert!(vehicle.stop() && cloud.stop());
    assert_eq!((count(&bus, "kpis", "received"), count(&bus, "kpis", "measured")), (20, 20));

    let rows = std::fs::read_to_string(folder.path().join("test_timestamps.csv")).unwrap();
    assert_eq!(rows.lines().count(), 21);
    assert!(rows.starts_with("feed/published,uplink/taken,"), "{rows}");
    let metrics = std::fs::read(folder.path().join("test_metrics.json")).unwrap();
    let metrics: serde_json::Value = serde_json::from_slice(&metrics).unwrap();
    assert_eq!(metrics["metrics_window"], 20);
    assert!(metrics["latency_means"][2].as_f64().unwrap() > 1.5);
}
