//! `mqtt_bridge` and `mqtt_broker` against each other, against a scripted broker, and against Mosquitto.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "in a test a panic is the failure")]

#[path = "mqtt/support.rs"]
mod support;

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use support::*;
use viaduct_components::mqtt::hops;
use viaduct_its::facilities::{Message, MessageKind};
use viaduct_mqtt::packet::suback::SubAckReasonCode;
use viaduct_mqtt::types::ReasonCode;
use viaduct_mqtt::{PropertyId, PropertyValue, QoS};

/// Starts a node with a bridge to `port`, with a route from `log/*` and further settings.
fn bridge(port: u16, route: &str, more: &str) -> TestNode {
    bridge_with_waits(port, route, more, "min_ms: 1, max_ms: 20")
}

fn bridge_with_waits(port: u16, route: &str, more: &str, waits: &str) -> TestNode {
    TestNode::start(&format!(
        "node: car\ncomponents:\n  feed: {{ kind: feed }}\n  uplink:\n    kind: mqtt_bridge\n    settings:\n      \
         broker: mqtt://127.0.0.1:{port}\n      reconnect: {{ {waits} }}\n      {more}\n      \
         routes: [ {{ from: log/*, to: \"v/{{node}}/{{topic}}\", {route} }} ]\n"
    ))
}

/// Returns the JSON of a log with this message, after a prefix.
fn log_json(message: &str, prefix: &str) -> String {
    format!(r#"{prefix}{{"level":"unknown","message":"{message}","name":"","file":"","line":0}}"#)
}

fn numbers(count: usize) -> Vec<String> {
    (0..count).map(|number| number.to_string()).collect()
}

#[test]
fn broker_and_bridge_of_one_node_reach_mosquitto_sub_in_both_protocol_versions() {
    if !has("mosquitto_sub") {
        return;
    }
    let port = free_port();
    let node = TestNode::start(&format!(
        "node: car\ncomponents:\n  feed: {{ kind: feed }}\n  broker: {{ kind: mqtt_broker, settings: {{ listen: 127.0.0.1:{port} }} }}\n  \
         uplink:\n    kind: mqtt_bridge\n    settings:\n      broker: mqtt://127.0.0.1:{port}\n      \
         routes: [ {{ from: log/*, to: \"v/{{node}}/{{component}}/{{topic}}\", qos: 1 }} ]\n"
    ));
    for version in ["mqttv5", "mqttv311"] {
        let port = port.to_string();
        let arguments = ["-h", "127.0.0.1", "-p", &port, "-V", version, "-q", "1", "-C", "1", "-v", "-t", "v/#"];
        let mut sub = Command::new("mosquitto_sub").args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(sub.stdout.take().unwrap());
        let reader = std::thread::spawn(move || {
            let mut line = String::new();
            lines.read_line(&mut line).unwrap();
            line
        });
        // It does not report its subscription, so messages are published until it receives one.
        while !reader.is_finished() {
            node.log("log/a", "hello");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(reader.join().unwrap(), log_json("hello", "v/car/uplink/log/a ") + "\n");
        sub.wait().unwrap();
    }
    assert!(node.stop());
}

#[test]
fn a_route_of_the_broker_publishes_a_cam_as_json_with_its_hops_without_a_socket() {
    let port = free_port();
    let node = TestNode::start(&format!(
        "node: edge\ncomponents:\n  feed: {{ kind: feed }}\n  broker:\n    kind: mqtt_broker\n    settings:\n      \
         listen: 127.0.0.1:{port}\n      routes: [ {{ from: its/rx/*, qos: 1 }}, {{ from: log/*, encoding: protobuf }} ]\n"
    ));
    let subscriber = Subscriber::start(port, "edge/#");
    let cam = cam();
    node.v2x("its/rx/cam", cam.clone());
    let message = &subscriber.wait_for(1)[0];

    let mut etsi = Vec::new();
    Message::decode(MessageKind::Cam, &cam.payload).unwrap().write_json(&mut etsi);
    let expected = format!(
        "{{\"direction\":\"received\",\"type\":\"cam\",\"edition\":\"TS 103 900 V2.3.1\",\"station_id\":100,\
         \"station_type\":5,\"receiver\":\"edge/station\",\"access\":\"unknown\",\"security\":\"unknown\",\"message\":{}}}",
        String::from_utf8(etsi).unwrap()
    );
    assert_eq!(String::from_utf8(message.payload.to_vec()).unwrap(), expected);
    let json: serde_json::Value = serde_json::from_slice(&message.payload).unwrap();
    assert_eq!(json["message"]["header"], serde_json::json!({"protocolVersion": 2, "messageId": 2, "stationId": 100}));

    assert_eq!(message.topic_name, "edge/its/rx/cam");
    assert_eq!(message.properties.get_content_type().as_deref(), Some("application/json"));
    assert_eq!(message.properties.get(PropertyId::PayloadFormatIndicator), Some(&PropertyValue::Byte(1)));
    let hops = hops::of(|name| message.properties.get_user_property_value(name)).unwrap().unwrap().meta;
    let names: Vec<String> =
        hops.stamps().iter().map(|stamp| format!("{} {}", stamp.hop, stamp.kind().label())).collect();
    assert_eq!(names, ["feed published", "broker taken", "broker sent"]);
    assert!(hops.origin <= hops.stamps()[0].at && hops.stamps().is_sorted_by_key(|stamp| stamp.at));

    node.log("log/a", "x");
    let message = &subscriber.wait_for(2)[1];
    assert_eq!((&message.topic_name[..], &message.payload[..]), ("edge/log/a", &b"\x1a\x01x"[..]));
    assert_eq!(message.properties.get_content_type().as_deref(), Some("application/protobuf; type=foxglove.Log"));
    let bus = node.bus();
    assert!(node.stop());
    assert_eq!((count(&bus, "broker", "taken"), count(&bus, "broker", "published")), (2, 2));
    assert_eq!((count(&bus, "broker", "clients_connected"), count(&bus, "broker", "messages_out")), (1, 2));
}

#[test]
fn unencodable_messages_are_counted() {
    let broker = ScriptedBroker::start(Script::default());
    let node = TestNode::start(&format!(
        "node: car\ncomponents:\n  feed: {{ kind: feed }}\n  uplink:\n    kind: mqtt_bridge\n    settings:\n      \
         broker: mqtt://127.0.0.1:{}\n      routes: [ {{ from: its/rx/*, qos: 1 }} ]\n",
        broker.port
    ));
    let mut broken = cam();
    broken.payload.truncate(5);
    node.v2x("its/rx/cam", broken);
    node.v2x("its/rx/cam", cam());
    broker.eventually("the valid message arrives", |seen| seen.len() == 1);
    let bus = node.bus();
    assert!(node.stop());
    let account = Account::of(&bus, "uplink");
    assert_eq!((account.taken, account.published, account.reason("unencodable")), (2, 1, 1));
}

#[test]
fn a_broker_that_loses_connections_gets_every_message_in_order() {
    // The broker acknowledges 37 messages of each connection, and closes it with up to 20 more in flight.
    let broker = ScriptedBroker::start(Script { acknowledge: 37, closes: true, ..Script::default() });
    let node =
        bridge(broker.port, "qos: 1", "outbox: { messages_max: 5000, when_full: drop_newest, in_flight_max: 30 }");
    node.logs(0..2000);
    broker.eventually("the last message arrives", |seen| first_seen(seen).len() == 2000);
    let bus = node.bus();
    assert!(node.stop());
    assert_eq!(first_seen(&broker.seen()), numbers(2000));
    let account = Account::of(&bus, "uplink");
    assert_eq!((account.taken, account.published, account.dropped()), (2000, 2000, 0));
    assert!(count(&bus, "uplink", "resent") > 0 && count(&bus, "uplink", "lost") > 0);
    assert!(broker.unacknowledged_max() <= 30, "the window is kept");
}

#[test]
fn receive_maximum_and_packet_size_of_the_broker_are_respected() {
    let script = Script { receive_maximum: Some(3), packet_octets_max: Some(400), ..Script::default() };
    let broker = ScriptedBroker::start(script);
    let node = bridge(broker.port, "qos: 1", "");
    node.log("log/a", &"x".repeat(1000));
    node.logs(0..100);
    broker.eventually("all arrive", |seen| seen.len() == 100);
    let bus = node.bus();
    assert!(node.stop());
    let account = Account::of(&bus, "uplink");
    assert_eq!((account.published, account.reason("too_large")), (100, 1));
    assert!(broker.unacknowledged_max() <= 3);
}

#[test]
fn a_silent_broker_causes_a_reconnection() {
    // The broker accepts messages and answers neither them nor pings.
    let broker = ScriptedBroker::start(Script { acknowledge: 0, ..Script::default() });
    let node = bridge(broker.port, "qos: 1", "keep_alive_s: 1");
    let bus = node.bus();
    node.logs(0..3);
    eventually("the messages are sent again", || count(&bus, "uplink", "resent") >= 3);
    assert!(count(&bus, "uplink", "lost") >= 1);
    assert!(node.stop());
    assert_eq!(Account::of(&bus, "uplink").reason("stopped"), 3);
}

#[test]
fn the_wait_grows_if_the_broker_closes_at_each_first_message() {
    // The broker closes each connection at its first message without an answer.
    let broker = ScriptedBroker::start(Script { acknowledge: 0, closes: true, ..Script::default() });
    let start = Instant::now();
    let node = bridge_with_waits(broker.port, "qos: 1", "", "min_ms: 1, max_ms: 60000");
    let bus = node.bus();
    node.log("log/a", "poison");
    eventually("ten connections are lost", || count(&bus, "uplink", "lost") == 10);
    // Nine waits of 1, 2, 4 ms and so on, each shortened by at most half.
    assert!(start.elapsed() >= Duration::from_millis(255), "{:?}", start.elapsed());
    assert!(node.stop());
}

#[test]
fn a_late_subscriber_receives_the_retained_message() {
    let port = free_port();
    let node = TestNode::start(&format!(
        "node: car\ncomponents:\n  feed: {{ kind: feed }}\n  broker: {{ kind: mqtt_broker, settings: {{ listen: 127.0.0.1:{port} }} }}\n  \
         uplink:\n    kind: mqtt_bridge\n    settings:\n      broker: mqtt://127.0.0.1:{port}\n      \
         routes: [ {{ from: log/a, qos: 1, retain: true }} ]\n"
    ));
    let bus = node.bus();
    node.log("log/a", "first");
    node.log("log/a", "last");
    eventually("both are published", || count(&bus, "uplink", "published") == 2);
    let seen = Subscriber::start(port, "#").wait_for(1);
    assert!(seen[0].retain);
    assert_eq!((&*seen[0].topic_name, &*seen[0].payload), ("car/log/a", log_json("last", "").as_bytes()));
    assert!(node.stop());
}

#[test]
fn a_broker_with_a_password_file_accepts_its_users_only() {
    let folder = tempfile::tempdir().unwrap();
    let (users, password) = (folder.path().join("users"), folder.path().join("password"));
    let hash = viaduct_mqtt::broker::PasswordAuthProvider::hash_password("secret").unwrap();
    std::fs::write(&users, format!("car:{hash}\n")).unwrap();
    std::fs::write(&password, "secret\n").unwrap();
    let port = free_port();
    let node = TestNode::start(&format!(
        "node: car\ncomponents:\n  feed: {{ kind: feed }}\n  broker:\n    kind: mqtt_broker\n    settings: {{ listen: 127.0.0.1:{port}, password_file: {} }}\n  \
         uplink:\n    kind: mqtt_bridge\n    settings:\n      broker: mqtt://127.0.0.1:{port}\n      username: car\n      \
         password_file: {}\n      routes: [ {{ from: log/*, qos: 1 }} ]\n",
        users.display(),
        password.display()
    ));
    let bus = node.bus();
    node.log("log/a", "x");
    eventually("the message is published", || count(&bus, "uplink", "published") == 1);
    assert!(Subscriber::is_refused(port), "anonymous clients are rejected");
    assert!(node.stop());
}

#[test]
fn a_message_that_the_broker_rejects_is_counted() {
    let broker = ScriptedBroker::start(Script { answer: ReasonCode::NotAuthorized, ..Script::default() });
    let node = bridge(broker.port, "qos: 1", "");
    node.logs(0..10);
    broker.eventually("all arrive", |seen| seen.len() == 10);
    let bus = node.bus();
    assert!(node.stop());
    assert_eq!(Account::of(&bus, "uplink").reason("refused"), 10);
}

#[test]
fn without_a_broker_the_outbox_fills_and_every_message_is_accounted_for() {
    for when_full in ["drop_oldest", "drop_newest"] {
        let node = bridge(free_port(), "qos: 1", &format!("outbox: {{ messages_max: 10, when_full: {when_full} }}"));
        node.logs(0..100);
        let bus = node.bus();
        assert!(node.stop());
        let account = Account::of(&bus, "uplink");
        assert_eq!((account.taken, account.published), (100, 0));
        assert_eq!((account.reason("outbox_full"), account.reason("stopped")), (90, 10), "{when_full}");
    }
    let node = bridge(free_port(), "qos: 0", "");
    node.logs(0..100);
    let bus = node.bus();
    assert!(node.stop());
    let account = Account::of(&bus, "uplink");
    assert_eq!((account.taken, account.reason("disconnected")), (100, 100));
}

#[test]
fn a_full_outbox_keeps_accepted_messages_unless_configured_otherwise() {
    for (outbox, kept) in [("messages_max: 10", 0..10), ("messages_max: 10, when_full: drop_oldest", 90..100)] {
        let broker = ScriptedBroker::start(Script::default());
        let gate = Gate::start(broker.port);
        let node = bridge(gate.port, "qos: 1", &format!("outbox: {{ {outbox} }}"));
        let bus = node.bus();
        node.logs(0..100);
        eventually("the outbox is full", || count(&bus, "uplink", "dropped") == 90);
        let waiting = || count(&bus, "uplink", "outbox_added") - count(&bus, "uplink", "outbox_removed");
        eventually("ten messages wait", || waiting() == 10);
        gate.open();
        broker.eventually("what was kept arrives", |seen| seen.len() == 10);
        assert!(node.stop());
        assert_eq!((waiting(), count(&bus, "uplink", "published")), (0, 10));
        assert_eq!(first_seen(&broker.seen()), numbers(100)[kept]);
    }
}

#[test]
fn a_stop_sends_the_queued_messages() {
    for qos in [0, 1] {
        let broker = ScriptedBroker::start(Script::default());
        let node = bridge(broker.port, &format!("qos: {qos}"), "");
        let bus = node.bus();
        eventually("the bridge is connected", || count(&bus, "uplink", "connected") == 1);
        node.burst(1000);
        assert!(node.stop());
        let account = Account::of(&bus, "uplink");
        assert_eq!((account.taken, account.published, account.dropped()), (1000, 1000, 0));
        broker.eventually("all arrive", |seen| seen.len() == 1000);
    }
}

#[test]
fn a_probe_counts_and_measures_the_messages_of_a_route_of_the_broker() {
    let port = free_port();
    let node = TestNode::start(&format!(
        "node: edge\ncomponents:\n  feed: {{ kind: feed }}\n  broker:\n    kind: mqtt_broker\n    settings:\n      \
         listen: 127.0.0.1:{port}\n      routes: [ {{ from: log/*, qos: 1, retain: true }} ]\n  \
         probe: {{ kind: mqtt_probe, settings: {{ broker: \"mqtt://127.0.0.1:{port}\", filter: edge/#, qos: 1 }} }}\n"
    ));
    let bus = node.bus();
    eventually("the probe has subscribed", || count(&bus, "probe", "subscribed") == 1);
    for number in 0..200 {
        node.log("log/a", &number.to_string());
    }
    eventually("all arrive", || count(&bus, "probe", "received") == 200);
    let hop = |from: &str| {
        let hops = bus.snapshot().hops;
        hops.iter().find(|hop| hop.from == from && hop.to == "probe").map_or(0, |hop| hop.total.count)
    };
    assert_eq!((hop("broker"), hop("origin")), (200, 200));
    assert!(node.stop());
    assert_eq!((count(&bus, "broker", "published"), count(&bus, "probe", "received")), (200, 200));
    assert_eq!((count(&bus, "probe", "without_hops"), count(&bus, "probe", "malformed_hops")), (0, 0));
}

#[test]
fn a_probe_that_waits_for_a_silent_broker_stops_at_once() {
    // The kernel accepts connections, and no process reads them.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let broker = silent.local_addr().unwrap();
    let node = TestNode::start(&format!(
        "node: edge\ncomponents:\n  probe: {{ kind: mqtt_probe, settings: {{ broker: \"mqtt://{broker}\" }} }}\n  \
         feed: {{ kind: feed }}\n"
    ));
    let _connection = silent.accept().unwrap();
    assert!(node.stop(), "it ends by itself in the node's time");
}

#[test]
fn the_embedded_broker_stops_in_time_with_connected_clients() {
    let port = free_port();
    let node = TestNode::start(&format!(
        "node: edge\ncomponents:\n  feed: {{ kind: feed }}\n  broker: {{ kind: mqtt_broker, settings: {{ listen: 127.0.0.1:{port} }} }}\n"
    ));
    let subscriber = Subscriber::start(port, "#");
    assert!(node.stop());
    assert_eq!(subscriber.sessions(), 1);
    assert!(std::net::TcpListener::bind(("127.0.0.1", port)).is_ok(), "the port is free again");
}

/// Mosquitto is not running at the start, is killed in the middle, and restarts on its port.
///
/// Losses of the broker itself are excluded. It writes the copy for a QoS 0 subscriber to the socket before it
/// acknowledges, and data in the kernel arrives even if the broker is killed. A gate between bridge and broker opens
/// only when the subscriber is connected. So every acknowledged message is received.
#[test]
fn mosquitto_receives_every_message_although_it_is_killed() {
    if !has("mosquitto") {
        return;
    }
    let port = free_port();
    let gate = Gate::start(port);
    let node = bridge(gate.port, "qos: 1", "outbox: { messages_max: 100000, when_full: drop_newest }");
    node.logs(0..500);

    let mosquitto = Mosquitto::start(port);
    let subscriber = Subscriber::start(port, "v/#");
    gate.open();
    subscriber.eventually("the first messages arrive", |seen| seen.len() >= 500);

    // Mosquitto is killed while messages flow.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            subscriber.eventually("messages flow", |seen| seen.len() >= 2_000);
            gate.close();
            drop(mosquitto);
        });
        node.logs(500..20_500);
    });
    let sessions = subscriber.sessions();
    let _mosquitto = Mosquitto::start(port);
    eventually("the subscriber is back", || subscriber.sessions() > sessions);
    gate.open();
    subscriber.eventually("the last messages arrive", |seen| seen.len() >= 20_500 && first_seen(seen).len() == 20_500);
    let bus = node.bus();
    assert!(node.stop());
    assert_eq!(first_seen(&subscriber.seen()), numbers(20_500));
    let account = Account::of(&bus, "uplink");
    assert_eq!((account.taken, account.published, account.dropped()), (20_500, 20_500, 0));
}

#[test]
fn qos_0_reaches_mosquitto_and_is_published_when_written() {
    if !has("mosquitto") {
        return;
    }
    let port = free_port();
    let _mosquitto = Mosquitto::start(port);
    let subscriber = Subscriber::start(port, "v/#");
    let node = bridge(port, "qos: 0", "");
    let bus = node.bus();
    eventually("the bridge is connected", || count(&bus, "uplink", "connected") == 1);
    node.logs(0..500);
    subscriber.eventually("all arrive", |seen| seen.len() == 500);
    assert_eq!(subscriber.seen()[0].qos, QoS::AtMostOnce);
    assert!(node.stop());
    assert_eq!(Account::of(&bus, "uplink").published, 500);
}

#[test]
fn a_port_in_use_is_reported() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap();
    let error = TestNode::refused(&format!(
        "node: edge\ncomponents:\n  broker: {{ kind: mqtt_broker, settings: {{ listen: \"{listen}\" }} }}\n"
    ));
    let expected = format!("component `broker` does not start: cannot listen on {listen}: Address already in use");
    assert!(error.starts_with(&format!("test.yaml: {expected}")), "{error}");
}

#[test]
fn invalid_settings_are_rejected_with_the_key() {
    let bridge = |settings: &str| {
        let feed = "feed: { kind: feed }";
        format!("node: n\ncomponents:\n  {feed}\n  x: {{ kind: mqtt_bridge, settings: {{ {settings} }} }}\n")
    };
    let to_edge = |settings: &str| bridge(&format!("broker: mqtt://edge, {settings}"));
    let at = |broker: &str| bridge(&format!("broker: \"{broker}\", routes: [ {{ from: log/* }} ]"));
    let logs = |settings: &str| to_edge(&format!("routes: [ {{ from: log/* }} ], {settings}"));
    let broker =
        |settings: &str| format!("node: n\ncomponents:\n  x: {{ kind: mqtt_broker, settings: {{ {settings} }} }}\n");
    for (text, expected) in [
        (at("http://edge"), "broker: `http://` is not supported; expected `mqtt://HOST:PORT`"),
        (logs("tls: { ca_file: ca.pem }"), "tls: the broker's address has no TLS; expected `mqtts://` or `wss://`"),
        (logs("will: { topic: \"a/#\" }"), "will.topic: `a/#` is not a topic to publish on"),
        (logs("version: mqttv3"), "version: unknown variant `mqttv3`, expected one of mqttv311, mqttv5"),
        (at("edge:1883"), "broker: expected `mqtt://HOST:PORT`"),
        (at("mqtt://edge:x"), "broker: `x` is not a port"),
        (at("mqtt://a b"), "broker: `a b` is not `HOST:PORT`"),
        (to_edge("routes: []"), "routes: required: at least one route"),
        (to_edge("routes: [ { from: log/*, qos: 3 } ]"), "routes.0.qos: 3 is not 0, 1 or 2"),
        (to_edge("routes: [ { from: log/*, to: \"{vin}\" } ]"), "routes.0.to: unknown placeholder `{vin}`"),
        (to_edge("routes: [ { from: nothing/x, to: a } ]"), "routes.0.from: no component of the node publishes"),
        (logs("outbox: { messages_max: 0 }"), "outbox.messages_max: 0 is not within 1 to 1000000"),
        (logs("reconnect: { min_ms: 9, max_ms: 3 }"), "reconnect.max_ms: 3 is below `min_ms`, which is 9"),
        (logs("password_file: x"), "password_file: a password needs a `username`"),
        (logs("username: u, password_file: /no/file"), "password_file: cannot read /no/file: No such file"),
        (broker("password_file: /no/file"), "password_file: cannot read /no/file: No such file"),
        (broker("password_file: /"), "password_file: cannot read /: it is a folder"),
        (broker("listen: 0.0.0.0:1883"), "listen: 0.0.0.0:1883 is not a loopback address"),
        (broker("anonymous: false"), "anonymous: `false` needs a `password_file`"),
        (broker("limits: { clients_max: 0 }"), "limits.clients_max: 0 is not within 1 to 100000"),
        (broker("port: 3"), "port: unknown field `port`"),
    ] {
        let error = TestNode::refused(&text);
        assert!(error.contains(&format!("components.x.settings.{expected}")), "{error}\n{expected}");
    }
}

/// A rejected subscription does not affect the routes to the broker.
#[test]
fn a_rejected_subscription_keeps_the_connection() {
    let subscriptions = &[SubAckReasonCode::NotAuthorized, SubAckReasonCode::GrantedQoS1];
    let broker = ScriptedBroker::start(Script { subscriptions, ..Script::default() });
    let inbound = "inbound: [ { from: a/in, to: a/send }, { from: b/in, to: b/send, qos: 1 } ]";
    let node = bridge(broker.port, "qos: 1", inbound);
    let bus = node.bus();
    eventually("the refusal is counted", || count(&bus, "uplink", "subscriptions_refused") == 1);
    node.log("log/a", "hello");
    broker.eventually("a message arrives", |seen| seen.len() == 1);
    assert_eq!((count(&bus, "uplink", "connected"), count(&bus, "uplink", "subscribed")), (1, 0));
    assert!(node.stop());
}
