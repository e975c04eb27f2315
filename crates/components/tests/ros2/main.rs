//! `ros2_node` against programs on Cyclone DDS and Fast DDS, with the names of topics and types of ROS 2.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "in a test a panic is the failure")]

mod peers;
#[path = "../mqtt/support.rs"]
mod support;

use std::time::Duration;

use peers::{Dds, Domain, Peer};
use support::{Mosquitto, TestNode, count, eventually, free_port, has};
use viaduct_bus::{Bus, MessageFormat, Qos, UntypedSample, UntypedSubscriber};

/// Octets of a point cloud.
const CLOUD: &str = "1000000";
const RELIABLE: &str = "reliable volatile";

/// Hash of `std_msgs/msg/String`, as nodes of ROS 2 Jazzy publish it.
const STRING_HASH: &str = "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18";

/// Returns a node with a ROS node and more components.
fn node(name: &str, domain: &Domain, settings: &str, more: &str) -> TestNode {
    TestNode::start(&text(name, domain, settings, more))
}

fn text(name: &str, domain: &Domain, settings: &str, more: &str) -> String {
    format!(
        "node: {name}\ncomponents:\n  feed: {{ kind: feed }}\n  ros:\n    kind: ros2_node\n    settings:\n      \
         domain: {}\n      interface: lo\n      multicast: false\n      {settings}\n{more}",
        domain.number
    )
}

fn next(samples: &UntypedSubscriber) -> UntypedSample {
    match samples.recv_timeout(support::PATIENCE) {
        viaduct_bus::Recv::Sample(sample) => sample,
        _ => panic!("no sample arrives"),
    }
}

fn subscribe(node: &TestNode, topic: &str) -> UntypedSubscriber {
    node.bus().subscribe_untyped(topic, Qos::keep_last(16), "test").unwrap()
}

/// Returns the counter of the ROS node for a reason.
fn reason(bus: &Bus, name: &str, reason: &str) -> u64 {
    let counters = bus.snapshot().counters;
    let found =
        counters.iter().find(|one| one.component == "ros" && one.name == name && one.reason.as_deref() == Some(reason));
    found.map_or(0, |one| one.value)
}

/// Checks that each message is counted once.
fn check_account(bus: &Bus) {
    let of = |name| count(bus, "ros", name);
    assert_eq!(of("received"), of("published") + of("received_dropped"));
    assert_eq!(of("taken"), of("sent") + of("taken_dropped"));
}

#[test]
fn texts_and_clouds_reach_the_bus_and_return() {
    for dds in [Dds::Cyclone, Dds::Fast].into_iter().filter(|dds| dds.is_installed()) {
        let domain = Domain::claim();
        let settings = "subscriptions: [ { from: /chatter, to: ros/chatter }, { from: /points, to: ros/points } ]\n      \
                        publications: [ { from: ros/chatter, to: /chatter_back }, { from: ros/points, to: /points_back } ]";
        // The node starts without a peer.
        let node = node("car", &domain, settings, "");
        let (texts, clouds) = (subscribe(&node, "ros/chatter"), subscribe(&node, "ros/points"));
        let listener = |topic, kind| Peer::start(dds, &domain, &["listener", kind, topic, "10", "0", RELIABLE]);
        let mut listeners = [listener("rt/chatter_back", "string"), listener("rt/points_back", "cloud")];
        let _talkers = [
            Peer::start(dds, &domain, &["talker", "string", "rt/chatter", "0", "50", RELIABLE]),
            Peer::start(dds, &domain, &["talker", "cloud", "rt/points", CLOUD, "100", RELIABLE]),
        ];
        let text = next(&texts);
        let info = text.type_info();
        assert_eq!((info.format(), info.full_name()), (MessageFormat::Ros2, "std_msgs/msg/String"), "{dds:?}");
        assert_eq!(text.encoded().to_bytes()[..2], [0, 1], "CDR in little-endian order");
        assert_eq!(&info.schema()[..], b"string data\n", "the definition of a common type is known");
        assert_eq!(next(&clouds).type_info().full_name(), "sensor_msgs/msg/PointCloud2");
        let numbers: Vec<u64> = listeners[0].lines(10).iter().map(|line| line.parse().unwrap()).collect();
        assert!(numbers.is_sorted(), "{dds:?} {numbers:?}");
        if dds == Dds::Cyclone {
            assert_eq!(listeners[0].lines(1), [format!("user data: typehash={STRING_HASH};")]);
        }
        let clouds = listeners[1].lines(10);
        assert!(clouds.iter().all(|line| line.contains(" 1000000 intact")), "{dds:?} {clouds:?}");
        let bus = node.bus();
        assert!(node.stop(), "{dds:?}");
        check_account(&bus);
    }
}

#[test]
fn a_type_that_only_peers_have_passes_with_its_hash() {
    if !Dds::Cyclone.is_installed() {
        return;
    }
    let domain = Domain::claim();
    let settings = "subscriptions: [ { from: /reading, to: ros/reading } ]\n      \
                    publications: [ { from: ros/reading, to: /reading_back } ]";
    let node = node("car", &domain, settings, "");
    let samples = subscribe(&node, "ros/reading");
    let mut listener =
        Peer::start(Dds::Cyclone, &domain, &["listener", "reading", "rt/reading_back", "3", "0", RELIABLE]);
    let hash = format!("RIHS01_{}", "0123456789abcdef".repeat(4));
    let user_data = format!("typehash={hash};");
    let talker = ["talker", "reading", "rt/reading", "0", "50", RELIABLE, &user_data];
    let _talker = Peer::start(Dds::Cyclone, &domain, &talker);
    let info = next(&samples).type_info().clone();
    assert_eq!((info.full_name(), info.schema_id()), ("acme_msgs/msg/Reading", &hash[..]));
    let lines = listener.lines(4);
    let (number, rest) = lines[0].split_once(' ').unwrap();
    assert_eq!(rest, format!("{:.1} m/s", number.parse::<f64>().unwrap() * 0.5));
    assert_eq!(lines[3], format!("user data: {user_data}"));
    assert!(node.stop());
}

#[test]
fn a_kept_message_reaches_the_bus_and_late_subscribers() {
    let kinds = [("string", "0", "0"), ("cloud", CLOUD, "0 1000000 intact")];
    let peers = [Dds::Cyclone, Dds::Fast].into_iter().filter(|dds| dds.is_installed());
    for (dds, (kind, size, expected)) in peers.flat_map(|dds| kinds.map(|kind| (dds, kind))) {
        let domain = Domain::claim();
        let kept = "reliable transient_local";
        // The talker sends one message before the node exists.
        let _talker = Peer::start(dds, &domain, &["talker", kind, "rt/map", size, "0", kept]);
        let settings = "subscriptions: [ { from: /map, to: ros/map } ]\n      \
                        publications: [ { from: ros/map, to: /map_copy, qos: { durability: transient_local } } ]";
        let node = node("car", &domain, settings, "");
        eventually("the message is sent", || count(&node.bus(), "ros", "sent") == 1);
        let mut late = Peer::start(dds, &domain, &["listener", kind, "rt/map_copy", "1", "0", kept]);
        let line = late.lines(1).concat();
        assert!(line.starts_with(expected), "{dds:?} {line}");
        assert!(node.stop());
    }
}

#[test]
fn a_stop_does_not_wait_for_a_subscriber_that_is_stuck() {
    if !Dds::Cyclone.is_installed() {
        return;
    }
    let domain = Domain::claim();
    let settings = "subscriptions: [ { from: /a, to: ros/a } ]\n      \
                    publications: [ { from: ros/a, to: /b, qos: { history: keep_all, depth: 4, block_ms: 60000 } } ]";
    let node = node("car", &domain, settings, "");
    let bus = node.bus();
    let mut listener = Peer::start(Dds::Cyclone, &domain, &["listener", "cloud", "rt/b", "100000", "0", RELIABLE]);
    let _talker = Peer::start(Dds::Cyclone, &domain, &["talker", "cloud", "rt/a", CLOUD, "20", RELIABLE]);
    listener.lines(3);
    listener.pause();
    let messages = || ["published", "sent"].map(|name| count(&bus, "ros", name));
    eventually("the writer waits", || {
        let [published, sent] = messages();
        eventually("more messages arrive", || messages()[0] > published + 10);
        messages()[1] == sent
    });
    assert!(node.stop());
    check_account(&bus);
}

#[test]
fn peers_with_another_quality_of_service_are_counted() {
    if !Dds::Cyclone.is_installed() {
        return;
    }
    let domain = Domain::claim();
    let settings = "subscriptions: [ { from: /a, to: ros/a, qos: { preset: default } }, { from: /b, to: ros/b } ]\n      \
                    publications: [ { from: ros/b, to: /c, type: std_msgs/msg/String, qos: { preset: sensor_data } } ]";
    let node = node("car", &domain, settings, "");
    let bus = node.bus();
    let start = |arguments: &[&str]| Peer::start(Dds::Cyclone, &domain, arguments);
    let _weak = start(&["talker", "string", "rt/a", "0", "50", "best_effort volatile"]);
    eventually("the publisher is refused", || reason(&bus, "publishers_refused", "qos") == 1);
    let _strict = start(&["listener", "string", "rt/c", "1", "0", RELIABLE]);
    eventually("the subscriber is refused", || reason(&bus, "subscribers_refused", "qos") == 1);
    assert_eq!(count(&bus, "ros", "received"), 0);
    // Without settings, the quality of service is that of the peer.
    let _other = start(&["talker", "string", "rt/b", "0", "50", "best_effort volatile"]);
    let mut tolerant = start(&["listener", "string", "rt/c", "1", "0", "best_effort volatile"]);
    tolerant.lines(1);
    assert!(node.stop());
}

#[test]
fn a_publisher_may_return_with_another_type() {
    if !Dds::Cyclone.is_installed() {
        return;
    }
    let domain = Domain::claim();
    let node = node("car", &domain, "subscriptions: [ { from: /any, to: ros/any } ]", "");
    let samples = subscribe(&node, "ros/any");
    let talker = |kind| Peer::start(Dds::Cyclone, &domain, &["talker", kind, "rt/any", "10", "50", RELIABLE]);
    let first = talker("string");
    assert_eq!(next(&samples).type_info().full_name(), "std_msgs/msg/String");
    let _other = talker("reading");
    eventually("the other type is refused", || reason(&node.bus(), "publishers_refused", "other_type") == 1);
    // The peer is killed, so that its participant expires.
    drop(first);
    eventually("the type changes", || next(&samples).type_info().full_name() == "acme_msgs/msg/Reading");
    assert!(node.stop());
}

#[test]
fn a_node_that_waits_for_messages_sleeps() {
    if !Dds::Cyclone.is_installed() {
        return;
    }
    let domain = Domain::claim();
    let settings = "subscriptions: [ { from: /slow, to: ros/slow } ]";
    let node = TestNode::start(&text("car", &domain, settings, "").replace("  ros:\n", "  slow_ros:\n"));
    let samples = subscribe(&node, "ros/slow");
    let _talker = Peer::start(Dds::Cyclone, &domain, &["talker", "string", "rt/slow", "0", "50", RELIABLE]);
    next(&samples);
    let before = ticks_of("slow_ros");
    std::thread::sleep(Duration::from_secs(1));
    let used = ticks_of("slow_ros") - before;
    assert!(used < 20, "{used} of 100 ticks for 20 messages");
    assert!(node.stop());
}

/// Returns the CPU time of the threads of a component, in ticks of 10 ms.
fn ticks_of(component: &str) -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    // A thread of another test may end meanwhile.
    let stats = tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("stat")).ok());
    let ticks = |stat: String| -> u64 {
        let (_, fields) = stat.rsplit_once(')').unwrap();
        fields.split_whitespace().skip(11).take(2).map(|field| field.parse::<u64>().unwrap()).sum()
    };
    stats.filter(|stat| stat.contains(&format!("({component})"))).map(ticks).sum()
}

#[test]
fn messages_continue_when_a_peer_is_restarted() {
    for dds in [Dds::Cyclone, Dds::Fast].into_iter().filter(|dds| dds.is_installed()) {
        let domain = Domain::claim();
        let settings = "subscriptions: [ { from: /chatter, to: ros/chatter } ]\n      \
                        publications: [ { from: ros/chatter, to: /back } ]";
        let node = node("car", &domain, settings, "");
        for _ in 0..2 {
            let mut listener = Peer::start(dds, &domain, &["listener", "string", "rt/back", "3", "0", RELIABLE]);
            let _talker = Peer::start(dds, &domain, &["talker", "string", "rt/chatter", "0", "50", RELIABLE]);
            listener.lines(3);
        }
        assert!(node.stop(), "{dds:?}");
    }
}

#[test]
fn clouds_pass_two_nodes_and_mosquitto() {
    if !Dds::Cyclone.is_installed() || !has("mosquitto") {
        return;
    }
    for encoding in ["native", "mqtt_client"] {
        let (vehicle, remote) = (Domain::claim(), Domain::claim());
        let port = free_port();
        let _mosquitto = Mosquitto::start(port);
        let uplink = format!(
            "  uplink: {{ kind: mqtt_bridge, settings: {{ broker: \"mqtt://127.0.0.1:{port}\", \
             routes: [ {{ from: ros/points, to: \"{{node}}/points\", encoding: {encoding}, qos: 1 }} ] }} }}\n"
        );
        let car = node("car", &vehicle, "subscriptions: [ { from: /points, to: ros/points } ]", &uplink);
        let downlink = format!(
            "  downlink: {{ kind: mqtt_bridge, settings: {{ broker: \"mqtt://127.0.0.1:{port}\", \
             inbound: [ {{ from: car/points, to: ros/points, encoding: {encoding}, qos: 1 }} ] }} }}\n"
        );
        let cloud = node("cloud", &remote, "publications: [ { from: ros/points, to: /remote } ]", &downlink);
        eventually("the subscription is accepted", || count(&cloud.bus(), "downlink", "subscribed") > 0);
        let mut listener = Peer::start(Dds::Cyclone, &remote, &["listener", "cloud", "rt/remote", "10", "0", RELIABLE]);
        let _talker = Peer::start(Dds::Cyclone, &vehicle, &["talker", "cloud", "rt/points", CLOUD, "100", RELIABLE]);
        let lines = listener.lines(10);
        assert!(lines.iter().all(|line| line.contains(" 1000000 intact")), "{encoding}: {lines:?}");
        assert_eq!(count(&cloud.bus(), "downlink", "refused"), 0, "{encoding}");
        assert!(car.stop());
        assert!(cloud.stop());
    }
}

#[test]
fn tools_of_ros_find_the_node_with_its_topics() {
    for (dds, announced) in [(Dds::Cyclone, None), (Dds::CycloneHumble, Some("talker"))] {
        if !dds.is_installed() {
            return;
        }
        let domain = Domain::claim();
        let settings = "namespace: /car\n      name: bridge\n      \
                        subscriptions: [ { from: /a, to: ros/a, type: std_msgs/msg/String } ]\n      \
                        publications: [ { from: ros/a, to: /b, type: std_msgs/msg/String } ]";
        let node = node("car", &domain, settings, "");
        // With a node of Humble in the domain, the identifiers have its length.
        let arguments: Vec<&str> = ["nodes"].into_iter().chain(announced).collect();
        let mut tool = Peer::start(dds, &domain, &arguments);
        tool.wait_for("/car bridge 1 1");
        assert!(node.stop(), "{dds:?}");
    }
}

#[test]
fn two_components_of_a_process_share_the_network_of_a_domain() {
    let domain = Domain::claim();
    let settings = "subscriptions: [ { from: /a, to: ros/a } ]";
    let other = |multicast: bool| {
        format!(
            "  other: {{ kind: ros2_node, settings: {{ domain: {}, interface: lo, multicast: {multicast}, \
             subscriptions: [ {{ from: /b, to: ros/b }} ] }} }}\n",
            domain.number
        )
    };
    let error = TestNode::refused(&text("car", &domain, settings, &other(true)));
    assert!(error.contains("`domain`: another component of this process"), "{error}");
    assert!(node("car", &domain, settings, &other(false)).stop());
}
