//! `ros1_node` against Debian's ROS 1: a real master, and publishers and subscribers in C++ and Python.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "in a test a panic is the failure")]

#[path = "ros1/peers.rs"]
mod peers;
#[path = "mqtt/support.rs"]
mod support;

use std::time::Duration;

use peers::{Master, Peer, has_ros, has_rospy};
use support::{Mosquitto, TestNode, count, eventually, free_port, has};
use viaduct_bus::{MessageFormat, Qos, UntypedSample};

/// Points of a cloud of 1.08 MB, as that of a VLP-32C.
const POINTS: usize = 49_016;
const POINT_BYTES: usize = 22;

/// Returns a node with a ROS node and more components.
fn node(name: &str, master: &Master, settings: &str, more: &str) -> TestNode {
    TestNode::start(&format!(
        "node: {name}\ncomponents:\n  feed: {{ kind: feed }}\n  ros:\n    kind: ros1_node\n    settings:\n      \
         master: {}\n      {settings}\n{more}",
        master.address()
    ))
}

/// Returns the next sample of a topic.
fn next(samples: &viaduct_bus::UntypedSubscriber) -> UntypedSample {
    match samples.recv_timeout(support::PATIENCE) {
        viaduct_bus::Recv::Sample(sample) => sample,
        _ => panic!("no sample arrives"),
    }
}

#[test]
fn clouds_of_a_roscpp_node_reach_the_bus_and_return() {
    if !has_ros() {
        return;
    }
    let master = Master::start();
    let settings = "subscriptions: [ { from: /points, to: ros/points } ]\n      \
                    publications: [ { from: ros/points, to: /back } ]";
    let node = node("car", &master, settings, "");
    let samples = node.bus().subscribe_untyped("ros/points", Qos::keep_last(8), "test").unwrap();
    let talker = Peer::start(&master, &["talker", "/points", &POINTS.to_string(), "1000000", "0"]);
    let sample = next(&samples);
    let info = sample.type_info();
    assert_eq!((info.format(), info.full_name()), (MessageFormat::Ros1, "sensor_msgs/PointCloud2"));
    // The sum of `rosmsg md5 sensor_msgs/PointCloud2`.
    assert_eq!(info.schema_id(), "1158d486dd51d683ce2f1be655c3c181");
    assert!(std::str::from_utf8(info.schema()).unwrap().contains("MSG: sensor_msgs/PointField"));
    assert!(sample.encoded().len() > POINTS * POINT_BYTES);

    let mut listener = Peer::start(&master, &["listener", "/back", "20"]);
    let lines = listener.lines(21);
    assert_eq!(lines[0], "ready");
    let expected = format!(" {} intact", POINTS * POINT_BYTES);
    assert!(lines[1..].iter().all(|line| line.ends_with(&expected)), "{lines:?}");
    drop(talker);
    let bus = node.bus();
    assert!(node.stop());
    assert_eq!(
        count(&bus, "ros", "received"),
        count(&bus, "ros", "published") + count(&bus, "ros", "received_dropped")
    );
    assert_eq!(count(&bus, "ros", "queued"), count(&bus, "ros", "sent") + count(&bus, "ros", "sent_dropped"));
}

#[test]
fn texts_and_clouds_of_a_rospy_node_reach_the_bus_and_return() {
    if !has_rospy() {
        return;
    }
    let master = Master::start();
    let settings = "subscriptions: [ { from: /points, to: ros/points }, { from: /say, to: ros/say } ]\n      \
                    publications: [ { from: ros/points, to: /back }, { from: ros/say, to: /hear } ]";
    let node = node("car", &master, settings, "");
    let mut ears = Peer::python(&master, &["hear", "/hear", "5"]);
    let mut listener = Peer::python(&master, &["listener", "/back", "5"]);
    let _talkers = (
        Peer::python(&master, &["talker", "/points", &POINTS.to_string()]),
        Peer::python(&master, &["say", "/say", "grüß dich"]),
    );
    assert_eq!(ears.lines(6), ["ready", "grüß dich", "grüß dich", "grüß dich", "grüß dich", "grüß dich"]);
    let lines = listener.lines(6);
    let expected = format!(" {} intact", POINTS * POINT_BYTES);
    assert!(lines[1..].iter().all(|line| line.ends_with(&expected)), "{lines:?}");
    assert_eq!(count(&node.bus(), "ros", "malformed"), 0);
    assert!(node.stop());
}

#[test]
fn clouds_are_intact_after_a_detour_through_ros_2() {
    if !has_rospy() {
        return;
    }
    let master = Master::start();
    let settings =
        "subscriptions: [ { from: /points, to: ros1/points } ]\n      publications: [ { from: ros1/back, to: /back } ]";
    let converters = "  there: { kind: ros_converter, settings: { routes: [ { from: ros1/points, to: ros2/points, format: ros2 } ] } }\n  \
                      back: { kind: ros_converter, settings: { routes: [ { from: ros2/points, to: ros1/back, format: ros1 } ] } }\n";
    let node = node("car", &master, settings, converters);
    let mut listener = Peer::python(&master, &["listener", "/back", "5"]);
    let _talker = Peer::python(&master, &["talker", "/points", &POINTS.to_string()]);
    let lines = listener.lines(6);
    let expected = format!(" {} intact", POINTS * POINT_BYTES);
    assert!(lines[1..].iter().all(|line| line.ends_with(&expected)), "{lines:?}");
    let bus = node.bus();
    assert!(node.stop());
    for converter in ["there", "back"] {
        assert_eq!(count(&bus, converter, "taken"), count(&bus, converter, "converted"), "{converter}");
    }
}

#[test]
fn clouds_pass_two_bridges_and_mosquitto() {
    if !has_ros() || !has("mosquitto") {
        return;
    }
    for encoding in ["native", "mqtt_client"] {
        let master = Master::start();
        let port = free_port();
        let _mosquitto = Mosquitto::start(port);
        let uplink = format!(
            "  uplink: {{ kind: mqtt_bridge, settings: {{ broker: \"mqtt://127.0.0.1:{port}\", \
             routes: [ {{ from: ros/points, to: \"{{node}}/points\", encoding: {encoding}, qos: 1 }} ] }} }}\n"
        );
        let car = node("car", &master, "subscriptions: [ { from: /points, to: ros/points } ]", &uplink);
        let downlink = format!(
            "  downlink: {{ kind: mqtt_bridge, settings: {{ broker: \"mqtt://127.0.0.1:{port}\", \
             inbound: [ {{ from: car/points, to: ros/points, encoding: {encoding}, qos: 1 }} ] }} }}\n"
        );
        let cloud = node("cloud", &master, "publications: [ { from: ros/points, to: /remote } ]", &downlink);
        eventually("the subscription is accepted", || count(&cloud.bus(), "downlink", "subscribed") > 0);

        let mut listener = Peer::start(&master, &["listener", "/remote", "20"]);
        let _talker = Peer::start(&master, &["talker", "/points", &POINTS.to_string(), "1000000", "0"]);
        let lines = listener.lines(21);
        let expected = format!(" {} intact", POINTS * POINT_BYTES);
        assert!(lines[1..].iter().all(|line| line.ends_with(&expected)), "{encoding}: {lines:?}");
        assert_eq!(count(&cloud.bus(), "downlink", "refused"), 0, "{encoding}");
        assert!(car.stop());
        assert!(cloud.stop());
    }
}

#[test]
fn a_node_starts_without_a_master_and_survives_its_restart() {
    if !has_ros() {
        return;
    }
    let mut master = Master::reserve();
    let node = node("car", &master, "subscriptions: [ { from: /points, to: ros/points } ]", "");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(count(&node.bus(), "ros", "registered"), 0);
    master.run();
    eventually("the node is registered", || count(&node.bus(), "ros", "registered") == 1);
    master.kill();
    master.run();
    eventually("the node is registered again", || count(&node.bus(), "ros", "registered") == 2);
    let samples = node.bus().subscribe_untyped("ros/points", Qos::keep_last(8), "test").unwrap();
    let _talker = Peer::start(&master, &["talker", "/points", "10", "1000000", "0"]);
    next(&samples);
    assert!(node.stop());
}

#[test]
fn a_topic_may_change_its_type_when_its_publisher_has_gone() {
    if !has_ros() {
        return;
    }
    let master = Master::start();
    let node = node("car", &master, "subscriptions: [ { from: /any, to: ros/any } ]", "");
    let samples = node.bus().subscribe_untyped("ros/any", Qos::keep_last(8), "test").unwrap();
    let clouds = Peer::start(&master, &["talker", "/any", "10", "1000000", "0"]);
    assert_eq!(next(&samples).type_info().full_name(), "sensor_msgs/PointCloud2");
    // A publisher of another type is refused as long as the first one is there.
    let _texts = Peer::start(&master, &["string", "/any"]);
    eventually("the other type is refused", || count(&node.bus(), "ros", "publishers_refused") > 0);
    drop(clouds);
    eventually("the type changes", || next(&samples).type_info().full_name() == "std_msgs/String");
    assert!(node.stop());
}

#[test]
fn a_latched_message_reaches_a_late_subscriber() {
    if !has_ros() {
        return;
    }
    let master = Master::start();
    let settings = "subscriptions: [ { from: /map, to: ros/map } ]\n      \
                    publications: [ { from: ros/map, to: /map_copy, latched: true } ]";
    let node = node("car", &master, settings, "");
    let _talker = Peer::start(&master, &["talker", "/map", "10", "1", "1"]);
    eventually("the message is taken", || count(&node.bus(), "ros", "offered") == 1);
    let mut listener = Peer::start(&master, &["listener", "/map_copy", "1"]);
    assert_eq!(listener.lines(2)[1], "0 220 intact");
    assert!(node.stop());
}
