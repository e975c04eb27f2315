//! `mqttsn_gateway` with the client of the package mqttsn, which is derived from that of RSMB.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "in a test a panic is the failure")]

#[path = "mqttsn/peers.rs"]
#[allow(dead_code, reason = "each test uses a part of this module")]
mod peers;
#[path = "mqtt/support.rs"]
mod support;

use peers::{Client, free_udp_port, has_client, has_rsmb_client};
use support::{Mosquitto, Subscriber, TestNode, count, eventually, free_port, has};

/// A gateway with its broker.
struct Setup {
    node: TestNode,
    /// UDP port of the gateway.
    sn: u16,
    /// TCP port of the broker.
    port: u16,
    _mosquitto: Option<Mosquitto>,
}

impl Setup {
    fn embedded() -> Self {
        let port = free_port();
        let broker = format!("  broker:\n    kind: mqtt_broker\n    settings: {{ listen: 127.0.0.1:{port} }}\n");
        Self::new(port, &format!("embedded_broker: 127.0.0.1:{port}"), &broker, None)
    }

    /// Returns a gateway to Mosquitto, or `None` if that is not installed.
    fn mosquitto(mode: &str) -> Option<Self> {
        if !has("mosquitto") {
            return None;
        }
        let port = free_port();
        let mosquitto = Some(Mosquitto::start(port));
        Some(Self::new(port, &format!("broker: mqtt://127.0.0.1:{port}\n      mode: {mode}"), "", mosquitto))
    }

    fn new(port: u16, settings: &str, broker: &str, mosquitto: Option<Mosquitto>) -> Self {
        let sn = free_udp_port();
        let node = TestNode::start(&format!(
            "node: edge\ncomponents:\n  feed: {{ kind: feed }}\n{broker}  gateway:\n    kind: mqttsn_gateway\n    settings:\n      \
             listen: 127.0.0.1:{sn}\n      qos_minus_one: true\n      predefined: [ {{ id: 7, topic: robot/battery }} ]\n      {settings}\n"
        ));
        Self { node, sn, port, _mosquitto: mosquitto }
    }

    /// Returns the gateways to each broker that is installed.
    fn all() -> impl Iterator<Item = (&'static str, Self)> {
        let names = ["embedded", "aggregating", "transparent"].into_iter();
        names.filter_map(|name| {
            if name == "embedded" { Some(Self::embedded()) } else { Self::mosquitto(name) }.map(|setup| (name, setup))
        })
    }
}

fn payloads(packets: &[viaduct_mqtt::packet::publish::PublishPacket]) -> Vec<(String, String)> {
    let text = |packet: &viaduct_mqtt::packet::publish::PublishPacket| {
        (packet.topic_name.to_string(), String::from_utf8_lossy(&packet.payload).into_owned())
    };
    packets.iter().map(text).collect()
}

/// Returns the messages that a client has printed.
fn messages(lines: &[String]) -> Vec<&str> {
    lines.iter().filter_map(|line| line.strip_prefix("message ")).collect()
}

#[test]
fn messages_of_each_quality_of_service_and_kind_of_topic_reach_each_broker() {
    if !has_rsmb_client() {
        return;
    }
    let long = "x".repeat(300);
    for (name, setup) in Setup::all() {
        let subscriber = Subscriber::start(setup.port, "#");
        let last = format!("publish=robot/b=1={long}");
        let steps = [
            "connect",
            "register=robot/a",
            "publish=robot/a=0=zero",
            "publish=robot/a=1=one",
            "publish=robot/a=2=two",
            "publish=ab=1=short",
            "predefined=7=2=predefined",
            "minus-one=cd=minus one",
            "ping",
            "register=robot/b",
            &last,
        ];
        let lines = Client::rsmb(setup.sn, "robot-1", &steps).finish();
        assert_eq!(lines.last().unwrap(), "disconnected", "{name}");
        let mut seen = payloads(&subscriber.wait_for(7));
        // The message with QoS -1 comes from another socket.
        seen.sort();
        let expected = [
            ("ab", "short"),
            ("cd", "minus one"),
            ("robot/a", "one"),
            ("robot/a", "two"),
            ("robot/a", "zero"),
            ("robot/b", &long),
            ("robot/battery", "predefined"),
        ];
        assert_eq!(seen, expected.map(|(topic, text)| (topic.to_owned(), text.to_owned())), "{name}");
        eventually("the messages are counted", || count(&setup.node.bus(), "gateway", "published") >= 7);
        assert!(setup.node.stop(), "{name}");
    }
}

#[test]
fn messages_of_each_quality_of_service_are_received_until_the_topic_is_unsubscribed() {
    if !has_rsmb_client() {
        return;
    }
    let long = "y".repeat(300);
    for (name, setup) in Setup::all() {
        let kept = ["connect", "register=robot/state", "publish=robot/state=1=kept=retain"];
        Client::rsmb(setup.sn, "robot-1", &kept).finish();
        let steps = [
            "connect",
            "subscribe=robot/state=1",
            "receive=1",
            "subscribe=robot/order=2",
            "subscribe=ab=0",
            "subscribe=cd=2",
            "subscribe=7=1",
            "wait",
            "receive=6",
            "unsubscribe=robot/order",
            "unsubscribe=ab",
            "wait",
            "receive=7",
        ];
        let mut listener = Client::rsmb(setup.sn, "robot-2", &steps);
        listener.wait_for("done subscribe=7=1");
        let talk = |steps: &[&str]| {
            let lines =
                Client::rsmb(setup.sn, "robot-1", &[&["connect", "register=robot/order"], steps].concat()).finish();
            assert_eq!(lines.last().unwrap(), "disconnected", "{name}: {lines:?}");
        };
        let last = format!("publish=cd=2={long}");
        talk(&[
            "publish=robot/order=1=one",
            "publish=robot/order=2=two",
            "publish=ab=0=zero",
            "predefined=7=1=known",
            &last,
        ]);
        listener.go_on();
        listener.wait_for("done unsubscribe=ab");
        talk(&["publish=robot/order=1=unwanted", "publish=ab=1=unwanted", "publish=cd=1=end"]);
        listener.go_on();
        let lines = listener.finish();
        assert_eq!(lines.last().unwrap(), "disconnected", "{name}: {lines:?}");
        let codes: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("subscribed ")).collect();
        assert_eq!(codes, ["robot/state 0", "robot/order 0", "ab 0", "cd 0", "7 0"], "{name}");
        let long = format!("cd 2 {long}");
        let mut expected = ["- 1 kept retained", "- 1 one", "- 2 two", "ab 0 zero", "- 1 known", &long, "cd 1 end"];
        let mut seen = messages(&lines);
        // MQTT orders only the messages of one topic and QoS.
        expected.sort_unstable();
        seen.sort_unstable();
        assert_eq!(seen, expected, "{name}: {lines:?}");
        assert!(setup.node.stop(), "{name}");
    }
}

#[test]
fn two_independent_clients_exchange_messages() {
    if !has_rsmb_client() || !has_client() {
        return;
    }
    for (name, setup) in Setup::all() {
        let steps = ["clean", "subscribe=robot/+=0", "wait", "receive=3", "publish=desk/a=2=order"];
        // The package mqtt-sn-12 does not acknowledge messages of QoS 1.
        let mut desk = Client::start(setup.sn, "desk", &steps);
        desk.wait_for("done subscribe=robot/+=0");
        let steps = [
            "connect",
            "subscribe=desk/a=2",
            "register=robot/a",
            "publish=robot/a=0=zero",
            "publish=robot/a=1=one",
            "publish=robot/a=2=two",
            "receive=1",
        ];
        let robot = Client::rsmb(setup.sn, "robot", &steps);
        desk.go_on();
        let lines = desk.finish();
        assert_eq!(messages(&lines), ["robot/a zero", "robot/a one", "robot/a two"], "{name}: {lines:?}");
        let lines = robot.finish();
        assert_eq!(messages(&lines), ["- 2 order"], "{name}: {lines:?}");
        assert!(setup.node.stop(), "{name}");
    }
}

#[test]
fn messages_for_a_sleeping_client_wait_until_it_wakes_up() {
    if !has_rsmb_client() {
        return;
    }
    let setup = Setup::embedded();
    let steps = ["connect", "subscribe=robot/order=1", "sleep=60", "wait", "wake", "receive=2"];
    let mut sleeper = Client::rsmb(setup.sn, "sleeper", &steps);
    sleeper.wait_for("done sleep=60");
    let talk = ["connect", "register=robot/order", "publish=robot/order=1=1", "publish=robot/order=2=2"];
    Client::rsmb(setup.sn, "talker", &talk).finish();
    eventually("the messages wait", || count(&setup.node.bus(), "gateway", "buffered") == 2);
    sleeper.go_on();
    let lines = sleeper.finish();
    assert_eq!(messages(&lines), ["- 1 1", "- 1 2"], "{lines:?}");
    assert!(setup.node.stop());
}
