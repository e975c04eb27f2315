//! `mqttsn_gateway` with the client of the package mqtt-sn-12, Mosquitto and the embedded broker.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "in a test a panic is the failure")]

#[path = "mqttsn/peers.rs"]
mod peers;
#[path = "mqtt/support.rs"]
mod support;

use peers::{Client, free_udp_port, has_client};
use support::{Mosquitto, Subscriber, TestNode, count, eventually, free_port, has};

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
