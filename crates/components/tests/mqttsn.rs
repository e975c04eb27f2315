//! `mqttsn_gateway` with the client of the package mqtt-sn-12, Mosquitto and the embedded broker.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "in a test a panic is the failure")]

#[path = "mqttsn/peers.rs"]
#[allow(dead_code, reason = "each test uses a part of this module")]
mod peers;
#[path = "mqtt/support.rs"]
mod support;

use peers::{Client, free_udp_port, has_client};
use support::{Account, Mosquitto, PATIENCE, Subscriber, TestNode, count, eventually, free_port, has};
use viaduct_bus::{Qos, Recv};
use viaduct_messages::foxglove::Log;

/// Returns a node with a gateway, and its port.
fn gateway(settings: &str, more: &str) -> (TestNode, u16) {
    let port = free_udp_port();
    let node = TestNode::start(&format!(
        "node: edge\ncomponents:\n  feed: {{ kind: feed }}\n{more}  gateway:\n    kind: mqttsn_gateway\n    settings:\n      \
         listen: 127.0.0.1:{port}\n{settings}"
    ));
    (node, port)
}

/// The brokers that a gateway can have: lines of its settings, and a name.
fn brokers(port: u16) -> [(&'static str, String, String); 3] {
    let embedded = format!("  broker:\n    kind: mqtt_broker\n    settings: {{ listen: 127.0.0.1:{port} }}\n");
    let external = |mode: &str| format!("      broker: mqtt://127.0.0.1:{port}\n      mode: {mode}\n");
    [
        ("embedded", format!("      embedded_broker: 127.0.0.1:{port}\n"), embedded),
        ("aggregating", external("aggregating"), String::new()),
        ("transparent", external("transparent"), String::new()),
    ]
}

fn payloads(packets: &[viaduct_mqtt::packet::publish::PublishPacket]) -> Vec<(String, String)> {
    let text = |packet: &viaduct_mqtt::packet::publish::PublishPacket| {
        (packet.topic_name.to_string(), String::from_utf8_lossy(&packet.payload).into_owned())
    };
    packets.iter().map(text).collect()
}

#[test]
fn messages_of_each_quality_of_service_reach_each_broker_and_return() {
    if !has_client() || !has("mosquitto") {
        return;
    }
    for index in 0..3 {
        let port = free_port();
        let (name, settings, more) = brokers(port)[index].clone();
        let _mosquitto = (name != "embedded").then(|| Mosquitto::start(port));
        let (node, sn) = gateway(&settings, &more);
        let subscriber = Subscriber::start(port, "robot/#");
        // It does not acknowledge messages of QoS 1.
        let mut listener = Client::start(sn, "robot-2", &["clean", "subscribe=robot/+=0", "wait", "receive=3"]);
        listener.wait_for("done subscribe=robot/+=0");
        let steps = ["clean", "publish=robot/a=0=zero", "publish=robot/a=1=one", "publish=robot/b=2=two"];
        let lines = Client::start(sn, "robot-1", &steps).finish();
        assert_eq!(lines.last().unwrap(), "disconnected", "{name}");
        listener.go_on();
        let lines = listener.finish();
        let received: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("message ")).collect();
        assert_eq!(received, ["robot/a zero", "robot/a one", "robot/b two"], "{name}: {lines:?}");
        let seen = payloads(&subscriber.wait_for(3));
        let expected = [("robot/a", "zero"), ("robot/a", "one"), ("robot/b", "two")];
        assert_eq!(seen, expected.map(|(topic, text)| (topic.to_owned(), text.to_owned())), "{name}");
        eventually("the messages are counted", || count(&node.bus(), "gateway", "published") == 3);
        assert!(node.stop(), "{name}");
    }
}

#[test]
fn short_and_predefined_topics_are_published() {
    if !has_client() {
        return;
    }
    let port = free_port();
    let (_, settings, more) = brokers(port)[0].clone();
    let predefined =
        "      predefined: [ { id: 7, topic: robot/battery }, { id: 7, topic: robot/own, client: own } ]\n";
    let (node, sn) = gateway(&(settings + predefined), &more);
    let subscriber = Subscriber::start(port, "#");
    Client::start(sn, "any", &["clean", "publish=ab=1=short", "predefined=7=1=for all"]).finish();
    Client::start(sn, "own", &["clean", "predefined=7=1=for one"]).finish();
    let seen = payloads(&subscriber.wait_for(3));
    let expected = [("ab", "short"), ("robot/battery", "for all"), ("robot/own", "for one")];
    assert_eq!(seen, expected.map(|(topic, text)| (topic.to_owned(), text.to_owned())));
    assert!(node.stop());
}

#[test]
fn the_will_of_a_client_that_disappears_is_published() {
    if !has_client() || !has("mosquitto") {
        return;
    }
    for index in 0..3 {
        let port = free_port();
        let (name, settings, more) = brokers(port)[index].clone();
        let _mosquitto = (name != "embedded").then(|| Mosquitto::start(port));
        let (node, sn) = gateway(&settings, &more);
        let subscriber = Subscriber::start(port, "wills/#");
        let vanished = ["will=wills/a=first", "clean", "update=second", "vanish"];
        Client::with_keep_alive(sn, "robot-1", 2, &vanished).finish();
        // One and a half times the keep alive later.
        assert_eq!(payloads(&subscriber.wait_for(1)), [("wills/a".to_owned(), "second".to_owned())], "{name}");
        eventually("the client is lost", || count(&node.bus(), "gateway", "clients_lost") == 1);
        assert!(node.stop(), "{name}");
    }
}

#[test]
fn messages_for_a_sleeping_client_wait_until_it_wakes_up() {
    if !has_client() {
        return;
    }
    for index in [0, 2] {
        let port = free_port();
        let (name, settings, more) = brokers(port)[index].clone();
        if name != "embedded" && !has("mosquitto") {
            return;
        }
        let _mosquitto = (name != "embedded").then(|| Mosquitto::start(port));
        let (node, sn) = gateway(&settings, &more);
        let steps = ["keep", "subscribe=to/robot=0", "sleep=60", "wait", "ping", "receive=3"];
        let mut sleeper = Client::start(sn, "sleeper", &steps);
        sleeper.wait_for("done sleep=60");
        Client::start(sn, "talker", &["clean", "publish=to/robot=1=1", "publish=to/robot=1=2", "publish=to/robot=1=3"])
            .finish();
        eventually("the messages wait", || count(&node.bus(), "gateway", "buffered") == 3);
        sleeper.go_on();
        let lines = sleeper.finish();
        let received: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("message ")).collect();
        assert_eq!(received, ["to/robot 1", "to/robot 2", "to/robot 3"], "{name}: {lines:?}");
        assert!(node.stop(), "{name}");
    }
}

#[test]
fn settings_that_do_not_fit_together_are_refused() {
    let refused = |settings: &str| {
        TestNode::refused(&format!(
            "node: edge\ncomponents:\n  feed: {{ kind: feed }}\n  gateway:\n    kind: mqttsn_gateway\n    settings:\n      \
             listen: 127.0.0.1:0\n{settings}"
        ))
    };
    for (settings, expected) in [
        ("", "required: `broker` or `embedded_broker`"),
        ("      broker: mqtt://a:1\n      embedded_broker: 127.0.0.1:1\n", "messages go to one broker"),
        ("      embedded_broker: 127.0.0.1:1\n      mode: transparent\n", "only with an external `broker`"),
        ("      broker: mqtt://a:1\n      acknowledge: storage\n", "required with `acknowledge: storage`"),
        ("      broker: mqtt://a:1\n      predefined: [ { id: 0, topic: a } ]\n", "0 is not within 1 to 65534"),
        ("      broker: mqtt://a:1\n      predefined: [ { id: 1, topic: a/+ } ]\n", "not a topic to publish on"),
    ] {
        let error = refused(settings);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_gateway_whose_folder_cannot_be_used_does_not_start() {
    let port = free_port();
    let (edge, edges) = ("edge-gateway", "656467652d67617465776179");
    for blocked in ["connections", &format!("connections/{edges}")] {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("gateway");
        // A file is in the place of a folder.
        let file = folder.join(blocked);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, b"a file").unwrap();
        let error = TestNode::refused(&format!(
            "node: edge\ncomponents:\n  feed: {{ kind: feed }}\n  gateway:\n    kind: mqttsn_gateway\n    settings:\n      \
             listen: 127.0.0.1:0\n      broker: mqtt://127.0.0.1:{port}\n      client_id: {edge}\n      folder: {}\n",
            folder.display()
        ));
        let expected = format!("component `gateway` does not start: `folder`: {}", file.display());
        assert!(error.starts_with(&format!("test.yaml: {expected}")), "{error}");
    }
}

#[test]
fn outboxes_of_clients_without_a_session_are_deleted_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let stale = folder.path().join("connections").join("676f6e65");
    std::fs::create_dir_all(&stale).unwrap();
    std::fs::write(stale.join("000000000001.outbox"), b"messages").unwrap();
    let settings = format!(
        "      broker: mqtt://127.0.0.1:{}\n      mode: transparent\n      folder: {}\n",
        free_port(),
        folder.path().display()
    );
    let (node, _) = gateway(&settings, "");
    assert!(!stale.exists() && stale.parent().unwrap().exists());
    assert!(node.stop());
}

#[test]
fn a_client_with_the_identifier_of_the_gateway_is_rejected() {
    let settings = format!("      broker: mqtt://127.0.0.1:{}\n      mode: transparent\n", free_port());
    let (node, sn) = gateway(&settings, "");
    let client = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let connect = [&[18, 0x04, 0x04, 0x01, 0, 60][..], b"edge-gateway"].concat();
    client.send_to(&connect, ("127.0.0.1", sn)).unwrap();
    let mut answer = [0; 16];
    let octets = client.recv(&mut answer).unwrap();
    assert_eq!(answer[..octets], [3, 0x05, 0x03], "CONNACK, rejected: not supported");
    assert!(node.stop());
}

/// Returns a node with a robot's client of a gateway.
fn robot(name: &str, settings: &str) -> TestNode {
    TestNode::start(&format!(
        "node: {name}\ncomponents:\n  feed: {{ kind: feed }}\n  uplink:\n    kind: mqttsn_client\n    settings:\n{settings}      \
         routes: [ {{ from: log/n, to: robot/log, qos: 1 }} ]\n      \
         inbound: [ {{ from: robot/command, to: command, type: {{ protobuf: foxglove.Log }}, qos: 1 }} ]\n"
    ))
}

/// Returns the components of a node with an embedded broker whose routes exchange messages with robots.
fn desk(port: u16) -> String {
    format!(
        "  broker:\n    kind: mqtt_broker\n    settings:\n      listen: 127.0.0.1:{port}\n      \
         inbound: [ {{ from: robot/log, to: logs, type: {{ protobuf: foxglove.Log }} }} ]\n      \
         routes: [ {{ from: log/n, to: robot/command, qos: 1 }} ]\n"
    )
}

fn exchange(robot: &TestNode, edge: &TestNode, what: &str) {
    let logs = edge.bus().subscribe::<Log>("logs", Qos::keep_last(64), "test").unwrap();
    let commands = robot.bus().subscribe::<Log>("command", Qos::keep_last(64), "test").unwrap();
    eventually("the robot is connected", || count(&robot.bus(), "uplink", "connections") >= 1);
    for number in 0..20 {
        robot.log("log/n", &number.to_string());
        let Recv::Sample(sample) = logs.recv_timeout(PATIENCE) else { panic!("{what}: no log") };
        assert_eq!(sample.message, number.to_string(), "{what}");
        edge.log("log/n", &number.to_string());
        let Recv::Sample(sample) = commands.recv_timeout(PATIENCE) else { panic!("{what}: no command") };
        assert_eq!(sample.message, number.to_string(), "{what}");
    }
}

#[test]
fn a_robot_exchanges_samples_with_an_edge_node() {
    let port = free_port();
    let (edge, sn) = gateway(&format!("      embedded_broker: 127.0.0.1:{port}\n"), &desk(port));
    let direct = robot("robot", &format!("      gateway: 127.0.0.1:{sn}\n"));
    exchange(&direct, &edge, "direct");
    assert!(direct.stop());
    // Through a forwarder.
    let forwarder = free_udp_port();
    let relay = TestNode::start(&format!(
        "node: relay\ncomponents:\n  feed: {{ kind: feed }}\n  forwarder:\n    kind: mqttsn_forwarder\n    settings: \
         {{ listen: 127.0.0.1:{forwarder}, gateway: 127.0.0.1:{sn} }}\n"
    ));
    let behind = robot("behind", &format!("      gateway: 127.0.0.1:{forwarder}\n      sleep_s: 1\n"));
    exchange(&behind, &edge, "through a forwarder, asleep between messages");
    eventually("the forwarder counts", || count(&relay.bus(), "forwarder", "to_gateway") > 40);
    assert!(behind.stop() && relay.stop() && edge.stop());
}

#[test]
fn a_message_that_is_not_acknowledged_before_the_stop_is_counted_once() {
    // A gateway that accepts the client and nothing else.
    let gateway = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let robot = robot("robot", &format!("      gateway: {}\n", gateway.local_addr().unwrap()));
    let mut datagram = [0; 256];
    let (_, client) = gateway.recv_from(&mut datagram).unwrap();
    assert_eq!(datagram[1], 0x04, "CONNECT");
    gateway.send_to(&[3, 5, 0], client).unwrap();
    for number in 0..3 {
        robot.log("log/n", &number.to_string());
    }
    let bus = robot.bus();
    eventually("the messages are taken", || count(&bus, "uplink", "taken") == 3);
    robot.stop();
    assert_eq!(Account::of(&bus, "uplink").reason("stopped"), 3);
}

#[test]
fn a_robot_finds_the_gateway_in_a_multicast_group() {
    let port = free_port();
    let group = format!("discovery: {{ group: \"225.18.83.1:{}\", interface: 127.0.0.1 }}", free_udp_port());
    let (edge, _) = gateway(&format!("      embedded_broker: 127.0.0.1:{port}\n      {group}\n"), &desk(port));
    let robot = robot("robot", &format!("      {group}\n"));
    exchange(&robot, &edge, "discovered");
    assert!(robot.stop() && edge.stop());
}

#[test]
fn a_robot_with_a_key_is_admitted_and_others_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let key = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        format!("      dtls: {{ psk_file: {} }}\n", path.display())
    };
    let port = free_port();
    let keys = key("gateway", "robot-1:00112233445566778899aabbccddeeff\n");
    let (edge, sn) = gateway(&format!("      embedded_broker: 127.0.0.1:{port}\n{keys}"), &desk(port));
    let to = format!("      gateway: 127.0.0.1:{sn}\n");
    let wrong = robot("wrong", &(to.clone() + &key("wrong", "robot-1:00112233445566778899aabbccddee00\n")));
    let none = robot("none", &to);
    let right = robot("right", &(to + &key("right", "robot-1:00112233445566778899aabbccddeeff\n")));
    exchange(&right, &edge, "with the key");
    assert_eq!(count(&wrong.bus(), "uplink", "connections") + count(&none.bus(), "uplink", "connections"), 0);
    assert!(right.stop() && wrong.stop() && none.stop() && edge.stop());
}
