//! The client of `mqtt_bridge` against Mosquitto: transports, versions, and sessions.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "in a test a panic is the failure")]

#[path = "mqtt/certificates.rs"]
mod certificates;
#[path = "mqtt/support.rs"]
mod support;

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use support::*;
use viaduct_bus::{Qos, UntypedSubscriber};
use viaduct_messages::foxglove::Log;

/// Interruptions of the traffic in a test.
const INTERRUPTIONS: usize = 50;
/// Number of times that the process of a bridge is killed.
const KILLS: usize = 20;
/// Largest number of logs of a process.
const LOGS_MAX: usize = 1_000_000;

/// Starts a node with a bridge that publishes the logs of `log/n`.
fn bridge(broker: &str, qos: u8, more: &str) -> TestNode {
    TestNode::start(&format!(
        "node: car\ncomponents:\n  feed: {{ kind: feed }}\n  uplink:\n    kind: mqtt_bridge\n    settings:\n      \
         broker: {broker}\n      reconnect: {{ min_ms: 1, max_ms: 20 }}\n      {more}\n      \
         routes: [ {{ from: log/n, to: v, qos: {qos} }} ]\n"
    ))
}

#[test]
fn a_bridge_reaches_mosquitto_over_each_transport_and_version() {
    if !has("mosquitto") || !has("openssl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    certificates::write(folder.path());
    let [plain, tls, web, web_tls] = [free_port(), free_port(), free_port(), free_port()];
    let (ca, certificate, key) = (at("ca.pem"), at("broker.pem"), at("broker.key"));
    let files = format!("cafile {ca}\ncertfile {certificate}\nkeyfile {key}\n");
    let config = format!(
        "user root\nallow_anonymous true\nmax_queued_messages 0\nmax_inflight_messages 0\nlistener {plain} 127.0.0.1\nlistener {tls} 127.0.0.1\n{files}require_certificate true\n\
         listener {web} 127.0.0.1\nprotocol websockets\nlistener {web_tls} 127.0.0.1\nprotocol websockets\n{files}"
    );
    std::fs::write(folder.path().join("mosquitto.conf"), config).unwrap();
    let _mosquitto = Mosquitto::configured(&folder.path().join("mosquitto.conf"), plain);
    let own = format!("certificate_file: {}, key_file: {}", at("client.pem"), at("client.key"));
    for (broker, more) in [
        (format!("mqtt://127.0.0.1:{plain}"), "version: mqttv311".to_owned()),
        (format!("mqtts://127.0.0.1:{tls}"), format!("tls: {{ ca_file: {ca}, {own} }}")),
        (format!("mqtts://127.0.0.1:{tls}"), format!("version: mqttv311\n      tls: {{ ca_file: {ca}, {own} }}")),
        (format!("ws://127.0.0.1:{web}"), String::new()),
        (format!("wss://127.0.0.1:{web_tls}/mqtt"), format!("tls: {{ ca_file: {ca} }}")),
    ] {
        for qos in 0..=2 {
            println!("{broker} with {more}, QoS {qos}");
            let subscriber = Subscriber::start(plain, "v");
            let node = bridge(&broker, qos, &more);
            let bus = node.bus();
            eventually("the bridge is connected", || count(&bus, "uplink", "connected") == 1);
            // Longer than the buffers of TLS, WebSocket and socket together.
            node.log("log/n", &"x".repeat(12_000_000));
            node.logs(2..300);
            let seen = subscriber.wait_for(299);
            assert_eq!((seen[0].payload.len() > 12_000_000, seen.len()), (true, 299), "{broker} {qos}");
            assert!(node.stop(), "{broker} {qos}");
            assert_eq!(Account::of(&bus, "uplink").published, 299, "{broker} {qos}");
        }
    }
    for (more, expected) in [
        (format!("tls: {{ ca_file: {} }}", at("other.pem")), "invalid peer certificate"),
        (format!("tls: {{ ca_file: {ca} }}"), "no certificate of this client"),
        (format!("tls: {{ ca_file: {ca}, {own}, server_name: edge }}"), "invalid peer certificate"),
    ] {
        let node = bridge(&format!("mqtts://127.0.0.1:{tls}"), 1, &more);
        let bus = node.bus();
        std::thread::sleep(Duration::from_millis(200));
        let account = (count(&bus, "uplink", "subscribed"), count(&bus, "uplink", "published"));
        node.logs(0..3);
        assert_eq!(account, (0, 0), "{expected}");
        assert!(node.stop_without_hurry());
        assert_eq!(Account::of(&bus, "uplink").reason("stopped"), 3, "{expected}");
    }
}

#[test]
fn the_embedded_broker_serves_tls_and_web_socket() {
    if !has("openssl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    certificates::write(folder.path());
    let at = |name: &str| folder.path().join(name).display().to_string();
    let [plain, tls, web, web_tls] = [(); 4].map(|()| free_port());
    let edge = TestNode::start(&format!(
        "node: edge\ncomponents:\n  feed: {{ kind: feed }}\n  broker:\n    kind: mqtt_broker\n    settings:\n      \
         listen: 127.0.0.1:{plain}\n      web_socket: {{ listen: 127.0.0.1:{web} }}\n      \
         web_socket_tls: {{ listen: 127.0.0.1:{web_tls}, path: /v }}\n      \
         tls: {{ listen: 127.0.0.1:{tls}, certificate_file: {}, key_file: {}, client_ca_file: {} }}\n",
        at("broker.pem"),
        at("broker.key"),
        at("ca.pem")
    ));
    let ca = at("ca.pem");
    let own =
        format!("tls: {{ ca_file: {ca}, certificate_file: {}, key_file: {} }}", at("client.pem"), at("client.key"));
    for (broker, more) in [
        (format!("mqtt://127.0.0.1:{plain}"), ""),
        (format!("mqtts://127.0.0.1:{tls}"), own.as_str()),
        (format!("ws://127.0.0.1:{web}"), ""),
        (format!("wss://127.0.0.1:{web_tls}/v"), own.as_str()),
    ] {
        for qos in 0..=2 {
            println!("{broker}, QoS {qos}");
            let subscriber = Subscriber::start(plain, "v");
            let node = bridge(&broker, qos, more);
            let bus = node.bus();
            eventually("the bridge is connected", || count(&bus, "uplink", "connected") == 1);
            node.log("log/n", &"x".repeat(2_000_000));
            node.logs(2..300);
            assert_eq!(subscriber.wait_for(299).len(), 299, "{broker} {qos}");
            assert!(node.stop(), "{broker} {qos}");
            assert_eq!(Account::of(&bus, "uplink").published, 299, "{broker} {qos}");
        }
    }
    let node = bridge(&format!("mqtts://127.0.0.1:{tls}"), 1, &format!("tls: {{ ca_file: {ca} }}"));
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(count(&node.bus(), "uplink", "connected"), 0, "without a certificate");
    assert!(node.stop());
    assert!(edge.stop());
}

/// Starts a node whose bridge publishes the logs on `samples` with QoS 2.
fn car(broker: &str) -> TestNode {
    TestNode::start(&format!(
        "node: car\ncomponents:\n  feed: {{ kind: feed }}\n  uplink:\n    kind: mqtt_bridge\n    settings:\n      \
         broker: {broker}\n      reconnect: {{ min_ms: 1, max_ms: 20 }}\n      outbox: {{ messages_max: 100000 }}\n      \
         routes: [ {{ from: log/n, to: samples, qos: 2, encoding: native }} ]\n"
    ))
}

/// Starts a node whose bridge receives `samples` with QoS 2. Returns it with the samples on its bus.
fn desk(broker: &str) -> (TestNode, UntypedSubscriber) {
    let desk = TestNode::start(&format!(
        "node: desk\ncomponents:\n  feed: {{ kind: feed }}\n  downlink:\n    kind: mqtt_bridge\n    settings:\n      \
         broker: {broker}\n      reconnect: {{ min_ms: 1, max_ms: 20 }}\n      \
         inbound: [ {{ from: samples, to: in, qos: 2, encoding: native }} ]\n"
    ));
    let samples = desk.bus().subscribe_untyped("in", Qos::keep_last(1 << 15), "test").unwrap();
    eventually("the desk has subscribed", || count(&desk.bus(), "downlink", "subscribed") == 1);
    (desk, samples)
}

/// Publishes logs while another thread interrupts the bridge [`INTERRUPTIONS`] times. Returns their number when all are published.
fn publish_during(node: &TestNode, mut interrupt: impl FnMut() + Send) -> usize {
    let bus = &node.bus();
    let mut sent = 0;
    std::thread::scope(|scope| {
        let interruptions = scope.spawn(move || {
            for _ in 0..INTERRUPTIONS {
                let before = count(bus, "uplink", "published");
                eventually("messages flow", || count(bus, "uplink", "published") >= before + 50);
                interrupt();
            }
        });
        while !interruptions.is_finished() {
            node.logs(sent..sent + 20);
            sent += 20;
            std::thread::sleep(Duration::from_millis(2));
        }
    });
    // One of them announces the type.
    eventually("all are published", || count(bus, "uplink", "published") > sent as u64);
    let (connected, resumed) = (count(bus, "uplink", "connected"), count(bus, "uplink", "resumed"));
    // An interruption may hit a connection that is just being opened.
    assert!(connected > INTERRUPTIONS as u64 / 2 && resumed == connected - 1, "{resumed} of {connected} resumed");
    sent
}

/// The publisher's connection is cut at any point of an exchange, the subscriber's when it has received a message: if a resumed connection
/// is lost before Mosquitto 2.0.11 has repeated its PUBREL packets, it publishes their messages again.
#[test]
fn qos_2_arrives_exactly_once_although_connections_are_cut() {
    if !has("mosquitto") {
        return;
    }
    let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
    let file = folder.path().join("mosquitto.conf");
    std::fs::write(&file, format!("allow_anonymous true\nlistener {port} 127.0.0.1\nmax_queued_messages 0\n")).unwrap();
    let _mosquitto = Mosquitto::configured(&file, port);
    let [up, down] = [(); 2].map(|()| Gate::start(port));
    up.open();
    down.open();
    let (desk, samples) = desk(&format!("mqtt://127.0.0.1:{}", down.port));
    let node = car(&format!("mqtt://127.0.0.1:{}", up.port));
    let desk_bus = desk.bus();
    let downlink = |name| count(&desk_bus, "downlink", name);
    let sent = publish_during(&node, || {
        up.cut();
        let before = (downlink("connected"), downlink("received"));
        eventually("the desk receives", || downlink("received") > before.1);
        down.cut();
        eventually("the desk is connected", || downlink("connected") > before.0);
    });
    let bus = node.bus();
    assert!(node.stop());
    assert_eq!(Account::of(&bus, "uplink").dropped(), 0);
    let mut received = Vec::new();
    eventually("all samples arrive", || {
        received.extend(std::iter::from_fn(|| samples.try_recv()));
        received.len() >= sent
    });
    assert!(desk.stop());
    received.extend(std::iter::from_fn(|| samples.try_recv()));
    let texts = received.iter().map(|one| one.typed::<Log>().unwrap().message.clone());
    assert_eq!(deviation(texts, sent), None);
}

/// Mosquitto is restarted; it saves its sessions when it stops. Its log shows how often it got each message. Subscribers cannot show it:
/// after a restart, Mosquitto 2.0.11 sends messages to them again that it has released before.
#[test]
fn mosquitto_takes_each_message_of_qos_2_exactly_once_although_it_is_restarted() {
    if !has("mosquitto") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (port, place, log) = (free_port(), folder.path().display(), folder.path().join("log"));
    let config = format!(
        "user root\nallow_anonymous true\nlistener {port} 127.0.0.1\npersistence true\npersistence_location {place}/\n\
         max_queued_messages 0\nlog_type all\nlog_dest file {place}/log\n"
    );
    let file = folder.path().join("mosquitto.conf");
    std::fs::write(&file, config).unwrap();
    let mut mosquitto = Some(Mosquitto::configured(&file, port));
    let broker = format!("mqtt://127.0.0.1:{port}");
    let (desk, samples) = desk(&broker);
    let node = car(&broker);
    let sent = publish_during(&node, || {
        mosquitto.take().unwrap().terminate();
        mosquitto = Some(Mosquitto::configured(&file, port));
    });
    let mut received = HashSet::new();
    eventually("all samples arrive", || {
        let arrived = std::iter::from_fn(|| samples.try_recv());
        received.extend(arrived.map(|one| one.typed::<Log>().unwrap().message.clone()));
        received.len() >= sent
    });
    assert!(node.stop() && desk.stop());
    let log = std::fs::read_to_string(log).unwrap();
    let first = |line: &&str| line.contains("Sending PUBLISH to desk-downlink (d0") && line.contains("'samples'");
    assert_eq!((received.len(), log.lines().filter(first).count()), (sent, sent));
}

/// Environment variable with the settings of the process that [`run_car`] runs: folder of the outbox, port of the broker, number.
const CAR: &str = "VIADUCT_TEST_CAR";

/// Publishes logs until it is killed, and writes how many are certainly accepted. Without a number, it sends what is left and ends.
#[test]
fn run_car() {
    let Ok(settings) = std::env::var(CAR) else { return };
    let [folder, port, number] = settings.split(' ').collect::<Vec<_>>()[..] else { panic!("{settings}") };
    let node = TestNode::start(&format!(
        "node: car\ncomponents:\n  feed: {{ kind: feed }}\n  uplink:\n    kind: mqtt_bridge\n    settings:\n      \
         broker: mqtt://127.0.0.1:{port}\n      reconnect: {{ min_ms: 1, max_ms: 20 }}\n      \
         outbox: {{ messages_max: 100000, folder: {folder} }}\n      \
         routes: [ {{ from: log/n, to: samples, qos: 2, encoding: native }} ]\n"
    ));
    let bus = node.bus();
    if number == "none" {
        eventually("nothing is left", || {
            count(&bus, "uplink", "outbox_added") == count(&bus, "uplink", "outbox_removed")
        });
        assert!(node.stop());
        return;
    }
    let first = number.parse::<usize>().unwrap() * LOGS_MAX;
    for log in (0..LOGS_MAX).step_by(20) {
        node.logs(first + log..first + log + 20);
        eventually("the bridge takes them", || count(&bus, "uplink", "taken") >= log as u64 + 20);
        // Two of them may announce the type, one before and one after the connection.
        let accepted = (count(&bus, "uplink", "outbox_added") - count(&bus, "uplink", "restored")).saturating_sub(2);
        std::thread::sleep(Duration::from_millis(10));
        eprintln!("accepted {accepted}");
    }
}

/// Starts this test program as a car. The number is that of the car, or `none`.
fn car_process(folder: &Path, port: u16, number: &str) -> Child {
    let settings = format!("{} {port} {number}", folder.display());
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["run_car", "--exact", "--nocapture"]).env(CAR, settings);
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn accepted_messages_survive_kills_of_the_process_with_an_outbox_on_disk() {
    if !has("mosquitto") {
        return;
    }
    let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
    let file = folder.path().join("mosquitto.conf");
    std::fs::write(&file, format!("allow_anonymous true\nlistener {port} 127.0.0.1\nmax_queued_messages 0\n")).unwrap();
    let _mosquitto = Mosquitto::configured(&file, port);
    let (desk, samples) = desk(&format!("mqtt://127.0.0.1:{port}"));
    let outbox = folder.path().join("outbox");
    let mut accepted = Vec::new();
    for kill in 0..KILLS {
        let mut process = car_process(&outbox, port, &kill.to_string());
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        // Each is killed at another point of its work.
        let count =
            lines.by_ref().map_while(Result::ok).filter_map(|line| line.strip_prefix("accepted ")?.parse().ok());
        let count: usize = count.take(3 + kill % 7).last().unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
        accepted.push(count);
    }
    let mut last = car_process(&outbox, port, "none");
    assert!(last.wait().unwrap().success());
    let mut received = vec![Vec::new(); KILLS];
    eventually("messages arrive", || {
        while let Some(sample) = samples.try_recv() {
            let log: usize = sample.typed::<Log>().unwrap().message.parse().unwrap();
            received[log / LOGS_MAX].push(log % LOGS_MAX);
        }
        received.iter().zip(&accepted).all(|(received, accepted)| received.len() >= *accepted)
    });
    assert!(desk.stop());
    for (received, accepted) in received.iter().zip(&accepted) {
        let expected: Vec<usize> = (0..received.len()).collect();
        assert!(*received == expected && received.len() >= *accepted, "{accepted} accepted, received {received:?}");
    }
    assert!(accepted.iter().sum::<usize>() > 500, "{accepted:?}");
}

/// MQTT 3.1.1 has no option against retained messages and no limit of the packet size.
#[test]
fn with_mqtt_3_1_1_retained_requests_and_long_messages_are_refused_and_acknowledged() {
    if !has("mosquitto") || !has("mosquitto_pub") {
        return;
    }
    let port = free_port();
    let _mosquitto = Mosquitto::start(port);
    let publish = |arguments: &[&str], text: &str| {
        let mut command = Command::new("mosquitto_pub");
        command.args(["-p", &port.to_string(), "-q", "1", "-t", "v/in/denm", "-s"]).args(arguments);
        let mut process = command.stdin(Stdio::piped()).spawn().unwrap();
        process.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        assert!(process.wait().unwrap().success());
    };
    publish(&["-r"], "an old request");
    let node = TestNode::start(&format!(
        "node: car\ncomponents:\n  feed: {{ kind: feed }}\n  uplink:\n    kind: mqtt_bridge\n    settings:\n      \
         broker: mqtt://127.0.0.1:{port}\n      version: mqttv311\n      session_expiry_s: 60\n      \
         inbound: [ {{ from: v/in/+, to: its/send }} ]\n"
    ));
    let bus = node.bus();
    let refused = |reason: &str| {
        let counters = bus.snapshot().counters;
        counters.iter().find(|one| one.reason.as_deref() == Some(reason)).map_or(0, |one| one.value)
    };
    eventually("the retained request is refused", || refused("outdated") == 1);
    publish(&[], &"x".repeat(70_000));
    eventually("the long message is refused", || refused("too_long") == 1);
    publish(&[], "no JSON");
    eventually("the next message is read", || refused("syntax") == 1);
    assert_eq!((count(&bus, "uplink", "connected"), count(&bus, "uplink", "received")), (1, 3));
    assert!(node.stop());
}

/// Returns the first difference between received texts and the numbers from 0 to `sent`.
fn deviation(texts: impl Iterator<Item = String>, sent: usize) -> Option<String> {
    let texts: Vec<String> = texts.collect();
    let wrong = texts.iter().enumerate().find(|(number, text)| number.to_string() != **text);
    let order = wrong.map(|(number, text)| format!("number {number} is `{text}`; {} of {sent} received", texts.len()));
    order.or_else(|| (texts.len() != sent).then(|| format!("{} of {sent} received", texts.len())))
}
