//! Compressed messages of `mqtt_bridge`, over Mosquitto and over an emulated link.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "in a test a panic is the failure")]

#[path = "mqtt/support.rs"]
mod support;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use support::*;
use viaduct_bus::{Bus, MessageFormat, Qos, Recv, TypeInfo, UntypedSubscriber};
use viaduct_components::link::{End, LinkError, Tunnel, TunnelSettings};
use viaduct_netem::config::{BottleneckConfig, RateConfig};
use viaduct_netem::{LinksConfig, Profile};

/// Points of a turn of a VLP-32C, and octets of each.
const POINTS: u32 = 49_016;
const POINT_STEP: u32 = 22;

/// Returns a cloud in the serialisation of ROS 1: a street with walls, ranges in steps of 4 mm with noise of 1 cm.
fn cloud(turn: u32) -> Bytes {
    let mut state = u64::from(turn) + 1;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 24) as f32
    };
    let mut out = Vec::new();
    for number in [turn, 1_700_000_000, 0, 5] {
        out.extend(number.to_le_bytes());
    }
    out.extend(b"lidar");
    for number in [1, POINTS, 6] {
        out.extend(number.to_le_bytes());
    }
    let fields = [("x", 0, 7), ("y", 4, 7), ("z", 8, 7), ("intensity", 12, 7), ("ring", 16, 4), ("time", 18, 7)];
    for (name, offset, datatype) in fields {
        out.extend((name.len() as u32).to_le_bytes());
        out.extend(name.as_bytes());
        out.extend(u32::to_le_bytes(offset));
        out.push(datatype);
        out.extend(1_u32.to_le_bytes());
    }
    out.push(0);
    for number in [POINT_STEP, POINTS * POINT_STEP, POINTS * POINT_STEP] {
        out.extend(number.to_le_bytes());
    }
    for point in 0..POINTS {
        let (column, ring) = (point / 32, point % 32);
        let (azimuth, elevation) =
            (column as f32 * 0.0041 + turn as f32 * 0.01, (ring as f32 * 1.25 - 25.0).to_radians());
        let wall = 15.0 + 8.0 * (azimuth * 3.0).sin() + 6.0 * (azimuth * 11.0).sin().signum();
        let ground = if elevation < -0.02 { 1.8 / -elevation.sin() } else { 200.0 };
        let noise = 0.01 * (random() + random() + random() - 1.5);
        let range = ((wall.min(ground) + noise) / 0.004).round() * 0.004;
        let (x, y) = (range * elevation.cos() * azimuth.cos(), range * elevation.cos() * azimuth.sin());
        let intensity = (random() * 40.0 + ring as f32).floor();
        for value in [x, y, range * elevation.sin(), intensity] {
            out.extend(value.to_le_bytes());
        }
        out.extend((ring as u16).to_le_bytes());
        out.extend((column as f32 * 55.296e-6).to_le_bytes());
    }
    out.push(1);
    out.into()
}

fn cloud_type() -> TypeInfo {
    let schema = Bytes::from_static(b"Header header\nuint32 height\nuint32 width\n");
    TypeInfo::foreign(MessageFormat::Ros1, "sensor_msgs/PointCloud2", schema)
        .with_schema_id("1158d486dd51d683ce2f1be655c3c181")
}

/// Starts a node that sends `any/up` and receives `down` on `in/down`.
fn car(broker: &str, route: &str) -> TestNode {
    TestNode::start(&format!(
        "node: car\ncomponents:\n  feed: {{ kind: feed }}\n  uplink:\n    kind: mqtt_bridge\n    settings:\n      \
         broker: {broker}\n      reconnect: {{ min_ms: 1, max_ms: 20 }}\n      \
         routes: [ {{ from: any/up, to: up, encoding: native, {route} }} ]\n      \
         inbound: [ {{ from: down, to: \"in/{{leaf}}\", encoding: native }} ]\n"
    ))
}

/// Starts a node that receives `up` and `any` on topics below `in`.
fn desk(broker: &str) -> (TestNode, UntypedSubscriber) {
    let node = TestNode::start(&format!(
        "node: desk\ncomponents:\n  feed: {{ kind: feed }}\n  downlink:\n    kind: mqtt_bridge\n    settings:\n      \
         broker: {broker}\n      reconnect: {{ min_ms: 1, max_ms: 20 }}\n      packet_bytes_max: 4000000\n      \
         inbound: [ {{ from: \"+\", to: \"in/{{leaf}}\", encoding: native, deny: [ secret ] }} ]\n"
    ));
    let samples = node.bus().subscribe_untyped("in/*", Qos::keep_last(64), "test").unwrap();
    eventually("the desk has subscribed", || count(&node.bus(), "downlink", "subscribed") == 1);
    (node, samples)
}

fn next(samples: &UntypedSubscriber) -> Bytes {
    match samples.recv_timeout(PATIENCE) {
        Recv::Sample(sample) => sample.encoded().to_bytes(),
        _ => panic!("no sample arrives"),
    }
}

#[test]
fn compressed_messages_arrive_bit_by_bit_and_in_order() {
    if !has("mosquitto") {
        return;
    }
    let port = free_port();
    let _mosquitto = Mosquitto::start(port);
    let broker = format!("mqtt://127.0.0.1:{port}");
    let (desk, samples) = desk(&broker);
    for (route, smallest_ratio) in [
        ("compression: none", 0.0),
        ("compression: zstd", 1.2),
        ("compression: planes, qos: 1", 2.0),
        ("compression: auto, qos: 2", 0.0),
    ] {
        let car = car(&broker, route);
        let bus = car.bus();
        eventually("the car is connected", || count(&bus, "uplink", "connected") == 1);
        for turn in 0..6 {
            let cloud = cloud(turn);
            car.any("any/up", &cloud_type(), cloud.clone());
            assert!(next(&samples) == cloud, "{route}, turn {turn}");
        }
        let gauge = |name: &str| bus.snapshot().gauges.iter().find(|one| one.name == name).map(|one| one.value);
        assert!(gauge("compression_ratio").unwrap_or(0.0) >= smallest_ratio, "{route}");
        if route.contains("auto") {
            // The first one is sent as it is, one is a probe.
            assert!(gauge("goodput_bytes_per_second").unwrap() > 1e6);
            assert!(count(&bus, "uplink", "compressed") >= 1 && count(&bus, "uplink", "not_compressed") >= 1);
        }
        assert!(car.stop());
    }
    let bus = desk.bus();
    assert!(desk.stop());
    assert_eq!((count(&bus, "downlink", "refused"), count(&bus, "downlink", "samples_lost")), (0, 0));
}

#[test]
fn rounded_coordinates_are_within_half_the_resolution() {
    if !has("mosquitto") {
        return;
    }
    let port = free_port();
    let _mosquitto = Mosquitto::start(port);
    let broker = format!("mqtt://127.0.0.1:{port}");
    let (desk, samples) = desk(&broker);
    let car = car(&broker, "compression: planes, resolution_m: 0.01");
    eventually("the car is connected", || count(&car.bus(), "uplink", "connected") == 1);
    let sent = cloud(1);
    car.any("any/up", &cloud_type(), sent.clone());
    let received = next(&samples);
    assert_eq!(received.len(), sent.len());
    let start = sent.len() - 1 - (POINTS * POINT_STEP) as usize;
    assert_eq!(received[..start], sent[..start]);
    let points = |message: &Bytes| message.slice(start..message.len() - 1);
    let coordinate = |point: &[u8], at: usize| f32::from_le_bytes(point[at..at + 4].try_into().unwrap());
    for (one, other) in points(&received).chunks(22).zip(points(&sent).chunks(22)) {
        assert!((0..3).all(|axis| (coordinate(one, 4 * axis) - coordinate(other, 4 * axis)).abs() < 0.005_01));
        assert_eq!(one[12..], other[12..]);
    }
    assert!(car.stop() && desk.stop());
}

/// Reason of the refusal, topic, user properties and payload of a message.
type Case<'a> = (&'a str, &'a str, Vec<(&'a str, &'a str)>, &'a [u8]);

#[test]
fn malformed_messages_are_counted_and_the_next_one_arrives() {
    if !has("mosquitto") || !has("mosquitto_pub") {
        return;
    }
    let port = free_port();
    let _mosquitto = Mosquitto::start(port);
    let broker = format!("mqtt://127.0.0.1:{port}");
    let (desk, samples) = desk(&broker);
    let bus = desk.bus();
    let publish = |topic: &str, properties: &[(&str, &str)], payload: &[u8]| {
        let mut command = Command::new("mosquitto_pub");
        command.args(["-V", "mqttv5", "-p", &port.to_string(), "-q", "1", "-t", topic, "-s"]);
        for (name, value) in properties {
            command.args(["-D", "publish", "user-property", name, value]);
        }
        let mut process = command.stdin(Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut process.stdin.take().unwrap(), payload).unwrap();
        assert!(process.wait().unwrap().success(), "{topic}");
    };
    let string = br#"{"message_encoding":"ros1","name":"std_msgs/String","schema_id":"992ce8a1687cec8c8bd883ec73ca41d1","schema":"string data\n"}"#;
    publish("viaduct/types/up", &[], string);
    publish("up", &[], b"\x02\0\0\0hi");
    assert_eq!(next(&samples), b"\x02\0\0\0hi"[..]);
    // A frame of 64 MiB of zeros has a few kilobytes.
    let bomb = {
        let mut bomb = Vec::new();
        let mut zstd = zstd::bulk::Compressor::new(1).unwrap();
        (0..64).for_each(|_| bomb.extend(zstd.compress(&vec![0; 1 << 20]).unwrap()));
        bomb
    };
    let zstd = ("viaduct-codec", "zstd");
    let cases: [Case<'_>; 12] = [
        ("malformed_message", "up", vec![], b"\xFF\0\0\0hi"),
        ("unknown_type", "other", vec![], b"x"),
        ("malformed_type", "viaduct/types/up", vec![], b"no JSON"),
        ("unknown_codec", "up", vec![("viaduct-codec", "lzma"), ("viaduct-length", "9")], b"x"),
        ("malformed_property", "up", vec![zstd], b"x"),
        ("malformed_property", "up", vec![("viaduct-sequence", "first")], b"x"),
        ("malformed_compression", "up", vec![zstd, ("viaduct-length", "9")], b"x"),
        ("malformed_compression", "up", vec![zstd, ("viaduct-length", "1000")], &bomb),
        ("too_long", "up", vec![zstd, ("viaduct-length", "67108864")], &bomb),
        ("too_long", "up", vec![("viaduct-codec", "planes"), ("viaduct-length", "268435456")], &bomb),
        ("other_type", "up", vec![("viaduct-schema", "sha256:0000000000000000")], b"\x02\0\0\0hi"),
        ("denied", "secret", vec![], b"x"),
    ];
    for (reason, topic, properties, payload) in &cases {
        let before = refused(&bus, reason);
        publish(topic, properties, payload);
        eventually(&format!("`{reason}` is counted"), || refused(&bus, reason) == before + 1);
    }
    // The topic has no name on the bus.
    publish("viaduct/types/a b", &[], string);
    publish("a b", &[], b"\x02\0\0\0hi");
    eventually("the topic is refused", || refused(&bus, "invalid_topic") == 1);
    publish("up", &[("viaduct-sequence", "00000001.5")], b"\x02\0\0\0ho");
    assert_eq!(next(&samples), b"\x02\0\0\0ho"[..]);
    // Two are missing, then a new run begins.
    publish("up", &[("viaduct-sequence", "00000001.8")], b"\x02\0\0\0ha");
    publish("up", &[("viaduct-sequence", "00000002.0")], b"\x02\0\0\0ha");
    next(&samples);
    next(&samples);
    assert_eq!(count(&bus, "downlink", "samples_lost"), 2);
    // Longer than a packet may be.
    publish("up", &[], &vec![0; 5_000_000]);
    assert_eq!(count(&bus, "downlink", "connected"), 1);
    // The type changes while the topic is in use.
    publish("viaduct/types/up", &[], br#"{"message_encoding":"json","name":"a"}"#);
    publish("up", &[], b"{}");
    assert_eq!(next(&samples), b"{}"[..]);
    assert!(desk.stop());
}

fn refused(bus: &Bus, reason: &str) -> u64 {
    let counters = bus.snapshot().counters;
    let of = counters.iter().filter(|one| one.name == "refused" && one.reason.as_deref() == Some(reason));
    of.map(|one| one.value).sum()
}

/// Measures the round trip of a cloud over the emulated 5G link: up, and back as it is or as a short message.
#[test]
#[ignore = "measures"]
fn round_trip() {
    for (rate_mbit_s, answer) in [(None, "cloud"), (Some(80.0), "cloud"), (None, "short"), (Some(80.0), "short")] {
        for route in [
            "compression: none",
            "compression: planes",
            "compression: auto",
            "compression: auto, resolution_m: 0.001",
            "compression: auto, resolution_m: 0.004",
        ] {
            let links = LinksConfig { profile: Some(Profile::FiveG), ..LinksConfig::default() };
            let mut settings = TunnelSettings { links, ..TunnelSettings::default() };
            if let Some(rate) = rate_mbit_s {
                let rate = RateConfig { mbps: rate, queue_octets: 1_000_000 };
                settings.links.both.bottleneck = Some(BottleneckConfig::Rate(rate));
            }
            let link = match Tunnel::up(&settings) {
                Err(error @ (LinkError::NotPermitted | LinkError::NoTun)) => return skipped(&error.to_string()),
                up => up.unwrap(),
            };
            let broker = format!("mqtt://{}:1883", link.address(End::B));
            let back = if answer == "cloud" { route.replace("auto", "planes") } else { "compression: none".to_owned() };
            let edge = link.within(End::B, || {
                TestNode::start(&format!(
                    "node: edge\ncomponents:\n  feed: {{ kind: feed }}\n  broker:\n    kind: mqtt_broker\n    settings:\n      \
                     listen: 0.0.0.0:1883\n      anonymous: true\n  downlink:\n    kind: mqtt_bridge\n    settings:\n      \
                     broker: {broker}\n      inbound: [ {{ from: up, to: in/up, encoding: native }} ]\n      \
                     routes: [ {{ from: {}, to: down, encoding: native, queue: latest, {back} }} ]\n",
                    if answer == "cloud" { "in/up" } else { "any/list" }
                ))
            });
            let edge = edge.unwrap();
            eventually("the edge is connected", || count(&edge.bus(), "downlink", "subscribed") == 1);
            let car = link.within(End::A, || car(&broker, &format!("queue: latest, {route}"))).unwrap();
            eventually("the car is connected", || count(&car.bus(), "uplink", "subscribed") == 1);
            let arrived = car.bus().subscribe_untyped("in/down", Qos::keep_last(1), "test").unwrap();
            let at_edge = edge.bus().subscribe_untyped("in/up", Qos::keep_last(1), "test").unwrap();
            let list = TypeInfo::foreign(MessageFormat::Opaque, "list", Bytes::new());
            let mut times = Vec::new();
            for turn in 0..60 {
                let cloud = cloud(turn);
                let start = Instant::now();
                car.any("any/up", &cloud_type(), cloud);
                if answer == "short" {
                    next(&at_edge);
                    edge.any("any/list", &list, Bytes::from_static(&[1; 2000]));
                }
                next(&arrived);
                times.push(start.elapsed());
                std::thread::sleep(Duration::from_millis(100).saturating_sub(start.elapsed()));
            }
            let mut settled = times.split_off(20);
            settled.sort_unstable();
            let snapshot = car.bus().snapshot();
            let gauge = |name: &str| snapshot.gauges.iter().find(|one| one.name == name).map(|one| one.value);
            println!(
                "{rate_mbit_s:?} Mbit/s, {answer} back, {route}: p50 {:.1} ms, p90 {:.1} ms, ratio {:.2}, goodput {:.1} MB/s, compressed {}",
                settled[settled.len() / 2].as_secs_f64() * 1e3,
                settled[settled.len() * 9 / 10].as_secs_f64() * 1e3,
                gauge("compression_ratio").unwrap_or(1.0),
                gauge("goodput_bytes_per_second").unwrap_or(0.0) / 1e6,
                count(&car.bus(), "uplink", "compressed"),
            );
            car.stop();
            edge.stop();
        }
    }
}
