//! `mqttsn_gateway` under floods, garbage and limits: bounded memory, counted drops, and service for the other clients.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "in a test a panic is the failure")]

#[path = "mqttsn/robot.rs"]
#[allow(dead_code, reason = "each test uses a part of this module")]
mod robot;
#[path = "mqtt/support.rs"]
mod support;

use std::net::UdpSocket;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use robot::Robot;
use support::{PATIENCE, Subscriber, TestNode, eventually, free_port};
use viaduct_mqttsn::client::{ClientState, Failure};
use viaduct_mqttsn::codec::{Qos, ReturnCode};
use viaduct_units::Rng;

/// Memory that a flood may use in bytes, also that of the test itself.
const FLOOD_BYTES_MAX: usize = 48 << 20;
/// Largest factor between the octets that an address that does not answer receives and those that it has sent.
const AMPLIFICATION_MAX: usize = 3;

/// Runs the tests one after the other, because they measure memory and load.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the resident memory of the process in bytes.
fn memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

/// A gateway with an embedded broker.
struct Edge {
    node: TestNode,
    gateway: u16,
    broker: u16,
}

impl Edge {
    fn start(settings: &str) -> Self {
        let broker = free_port();
        let gateway = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let node = TestNode::start(&format!(
            "node: edge\ncomponents:\n  feed: {{ kind: feed }}\n  broker:\n    kind: mqtt_broker\n    settings: \
             {{ listen: 127.0.0.1:{broker} }}\n  gateway:\n    kind: mqttsn_gateway\n    settings:\n      \
             listen: 127.0.0.1:{gateway}\n      embedded_broker: 127.0.0.1:{broker}\n{settings}"
        ));
        Self { node, gateway, broker }
    }

    fn count(&self, name: &str, reason: Option<&str>) -> u64 {
        let counters = self.node.bus().snapshot().counters;
        let own = counters.iter().filter(|one| one.component == "gateway" && one.name == name);
        own.filter(|one| reason.is_none() || one.reason.as_deref() == reason).map(|one| one.value).sum()
    }

    /// Returns a socket that sends to the gateway.
    fn socket(&self) -> UdpSocket {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(("127.0.0.1", self.gateway)).unwrap();
        socket.set_nonblocking(true).unwrap();
        socket
    }

    /// Publishes with a robot, and checks that the message arrives.
    fn check_service(&self, robot: &mut Robot, text: &str) {
        let subscriber = Subscriber::start(self.broker, "service");
        robot.publish("service", Qos::AtLeastOnce, text.to_owned());
        robot.until("the message is acknowledged", |robot| robot.pending() == 0);
        assert_eq!(robot.acknowledged.last().map(String::as_str), Some(text), "{:?}", robot.failed);
        assert_eq!(&subscriber.wait_for(1)[0].payload[..], text.as_bytes());
    }
}

/// Returns a CONNECT with a clean session and a keep alive of an hour.
fn connect(client_id: &str) -> Vec<u8> {
    let mut packet = vec![6 + client_id.len() as u8, 0x04, 0x04, 0x01, 0x0e, 0x10];
    packet.extend_from_slice(client_id.as_bytes());
    packet
}

/// Returns the number of octets that wait in a socket.
fn drain(socket: &UdpSocket) -> usize {
    let mut buffer = [0; 2048];
    std::iter::from_fn(|| socket.recv(&mut buffer).ok()).sum()
}

#[test]
fn a_flood_of_connects_does_not_keep_the_clients_from_service() {
    let _turn = alone();
    let edge = Edge::start("      limits: { clients_max: 100 }\n");
    let mut robot = Robot::connected("robot", true, edge.gateway);
    edge.check_service(&mut robot, "before");
    let before = memory();
    let (mut sent, mut received) = (0, 0);
    for round in 0..20 {
        // 10,000 addresses, each with a client identifier of its own.
        let sockets: Vec<UdpSocket> = (0..500).map(|_| edge.socket()).collect();
        for (number, socket) in sockets.iter().enumerate() {
            let packet = connect(&format!("flood-{round}-{number}"));
            sent += packet.len();
            // What the kernel drops is not a failure of the gateway.
            let _ = socket.send(&packet);
        }
        robot.work(Duration::from_millis(20));
        received += sockets.iter().map(drain).sum::<usize>();
    }
    eventually("the flood is refused", || edge.count("refused", Some("too_many_clients_of_address")) > 1000);
    assert!(edge.count("sessions_created", None) <= 101 + edge.count("sessions_evicted", None));
    assert!(received <= sent, "{received} octets for {sent}");
    edge.check_service(&mut robot, "after");
    // A client whose address never answered makes way for another one after two seconds.
    std::thread::sleep(Duration::from_millis(2100));
    let mut other = Robot::connected("other", true, edge.gateway);
    edge.check_service(&mut other, "other");
    eventually("the eviction is counted", || edge.count("sessions_evicted", None) > 0);
    let growth = memory().saturating_sub(before);
    assert!(growth < FLOOD_BYTES_MAX, "{growth} bytes");
    assert!(edge.node.stop());
}

#[test]
fn datagrams_of_random_octets_are_refused_and_counted() {
    let _turn = alone();
    let edge = Edge::start("      qos_minus_one: true\n");
    let mut robot = Robot::connected("robot", true, edge.gateway);
    let (socket, mut random, before) = (edge.socket(), Rng::new(5), memory());
    let mut sent = 0;
    for number in 0..50_000 {
        let mut octets = vec![0; 1 + random.below(100)];
        octets.iter_mut().for_each(|octet| *octet = random.below(256) as u8);
        if number % 2 == 0 {
            // A length and a type that are valid, so that more of them are decoded.
            (octets[0], sent) = (octets.len() as u8, sent + 1);
            if let Some(kind) = octets.get_mut(1) {
                *kind %= 0x20;
            }
        }
        let _ = socket.send(&octets);
        if number % 100 == 0 {
            robot.work(Duration::from_millis(1));
            drain(&socket);
        }
    }
    eventually("they are counted", || edge.count("refused", Some("malformed")) > 10_000);
    edge.check_service(&mut robot, "after");
    let growth = memory().saturating_sub(before);
    assert!(growth < FLOOD_BYTES_MAX, "{growth} bytes");
    assert!(edge.node.stop());
}

#[test]
fn clients_that_never_wake_up_have_bounded_buffers() {
    let _turn = alone();
    let edge = Edge::start("      limits: { queued_messages_max: 10, queued_octets_max: 65536 }\n");
    let mut talker = Robot::connected("talker", true, edge.gateway);
    let mut sleepers: Vec<Robot> = (0..50)
        .map(|number| {
            let mut sleeper = Robot::connected(&format!("sleeper-{number}"), true, edge.gateway);
            sleeper.subscribe("news", Qos::AtLeastOnce);
            sleeper.sleep(Duration::from_secs(3600));
            sleeper
        })
        .collect();
    let before = memory();
    // Each takes 1,000 octets, so 50 times 10 of them exceed the limit of all buffers.
    for number in 0..200 {
        talker.publish("news", Qos::AtLeastOnce, format!("{number:01000}"));
        talker.until("it is acknowledged", |talker| talker.pending() == 0);
    }
    assert_eq!(talker.acknowledged.len(), 200, "{:?}", talker.failed);
    let (deliveries, bus) = (200 * 50, edge.node.bus());
    eventually("the drops are counted", || {
        let waiting = bus.snapshot().gauges.iter().find(|one| one.name == "buffered_octets").map(|one| one.value);
        let dropped = edge.count("messages_dropped", None);
        edge.count("deliveries", None) == deliveries
            && waiting.is_some_and(|octets| octets > 0.0 && octets <= 65_536.0)
            && dropped >= deliveries - 65
            && dropped < deliveries
    });
    assert!(edge.count("messages_dropped", Some("buffer_full_oldest")) > 0);
    // One that wakes up receives what fits.
    sleepers[0].wake();
    sleepers[0].until("it sleeps again", |sleeper| sleeper.state() == ClientState::Asleep);
    assert!(sleepers[0].received.len() <= 10, "{}", sleepers[0].received.len());
    let growth = memory().saturating_sub(before);
    assert!(growth < FLOOD_BYTES_MAX, "{growth} bytes");
    edge.check_service(&mut talker, "after");
    assert!(edge.node.stop());
}

#[test]
fn the_answers_to_forged_addresses_are_short_and_limited() {
    let _turn = alone();
    let edge = Edge::start("      predefined: [ { id: 1, topic: big } ]\n");
    // A stranger: PINGREQ, PUBLISH, SUBSCRIBE, DISCONNECT, SEARCHGW, and a CONNECT with a wrong protocol identifier.
    let victim = edge.socket();
    let packets: [&[u8]; 6] = [
        &[2, 0x16],
        &[8, 0x0c, 0x20, 0, 1, 0, 7, b'x'],
        &[8, 0x12, 0x20, 0, 1, b'b', b'i', b'g'],
        &[2, 0x18],
        &[3, 0x01, 0],
        &[7, 0x04, 0x04, 0x09, 0, 60, b'v'],
    ];
    let (mut sent, mut received) = (0, 0);
    for round in 0..500 {
        for packet in packets {
            sent += packet.len();
            let _ = victim.send(packet);
        }
        if round % 10 == 0 {
            std::thread::sleep(Duration::from_millis(1));
            received += drain(&victim);
        }
    }
    std::thread::sleep(Duration::from_millis(300));
    received += drain(&victim);
    assert!(received > 0 && received < sent / 4, "{received} octets for {sent}: the answers to strangers are limited");
    eventually("they are counted", || edge.count("answers_suppressed", None) > 500);
    // A forged CONNECT and a forged subscription.
    let victim = edge.socket();
    let mut forged = vec![connect("victim")];
    forged.push(vec![8, 0x12, 0x20, 0, 1, b'b', b'i', b'g']);
    let sent: usize = forged.iter().map(Vec::len).sum();
    for packet in &forged {
        victim.send(packet).unwrap();
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_millis(500));
    let received = drain(&victim);
    assert!(received <= AMPLIFICATION_MAX * sent, "{received} octets for {sent}");
    assert!(edge.node.stop());
}

#[test]
fn messages_and_topics_beyond_the_limits_are_refused() {
    let _turn = alone();
    let edge = Edge::start("      limits: { topics_max: 4, subscriptions_max: 3, datagram_octets_max: 256 }\n");
    let mut robot = Robot::connected("robot", true, edge.gateway);
    robot.subscribe("long", Qos::AtLeastOnce);
    // A message of the broker that is longer than a datagram may be.
    let mut talker = Robot::connected("talker", true, edge.gateway);
    talker.publish("long", Qos::AtLeastOnce, "y".repeat(300));
    talker.publish("long", Qos::AtLeastOnce, "short".to_owned());
    talker.until("they are acknowledged", |talker| talker.pending() == 0);
    robot.until("the short one arrives", |robot| !robot.received.is_empty());
    assert_eq!(robot.received[0].1, "short");
    eventually("the drop is counted", || edge.count("messages_dropped", Some("too_large")) == 1);
    // `long` has one of the topic identifiers.
    for number in 0..5 {
        robot.publish(&format!("topic/{number}"), Qos::AtLeastOnce, number.to_string());
        let work = Instant::now();
        while robot.pending() > 0 && work.elapsed() < Duration::from_secs(2) {
            robot.work(Duration::from_millis(5));
        }
    }
    assert_eq!(robot.acknowledged, ["0", "1", "2"], "{:?}", robot.failed);
    let is_congested = |(_, failure): &(String, Failure)| *failure == Failure::Rejected(ReturnCode::Congestion);
    assert!(robot.failed.iter().all(is_congested), "{:?}", robot.failed);
    eventually("the refusals are counted", || edge.count("refused", Some("too_many_topics")) >= 1);
    edge.check_service(&mut talker, "after");
    assert!(edge.node.stop());
}

/// 1,000 clients with 10 messages per second each. Ten threads run the clients.
#[test]
fn a_thousand_clients_deliver_all_their_messages() {
    const THREADS: usize = 10;
    const CLIENTS: usize = 100;
    const MESSAGES: usize = 100;
    const PERIOD: Duration = Duration::from_millis(100);
    let _turn = alone();
    let edge = Edge::start("      receive_buffer_octets: 4194304\n");
    let subscriber = Subscriber::start(edge.broker, "load/#");
    let port = edge.gateway;
    let threads = (0..THREADS).map(|thread| {
        std::thread::spawn(move || {
            let mut robots: Vec<Robot> =
                (0..CLIENTS).map(|number| Robot::connected(&format!("load-{thread}-{number}"), true, port)).collect();
            let start = Instant::now();
            for message in 0..MESSAGES {
                for (number, robot) in robots.iter_mut().enumerate() {
                    robot.publish(&format!("load/{thread}"), Qos::AtLeastOnce, format!("{number} {message}"));
                }
                let next = start + PERIOD * (message as u32 + 1);
                while Instant::now() < next || robots.iter().any(|robot| robot.pending() > 50) {
                    robots.iter_mut().for_each(|robot| robot.work(Duration::from_micros(100)));
                }
            }
            let start = Instant::now();
            while robots.iter().any(|robot| robot.pending() > 0) {
                assert!(start.elapsed() < PATIENCE, "not all messages are acknowledged");
                robots.iter_mut().for_each(|robot| robot.work(Duration::from_micros(100)));
            }
            robots.iter().map(|robot| robot.acknowledged.len()).sum::<usize>()
        })
    });
    let threads: Vec<_> = threads.collect();
    let acknowledged: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert_eq!(acknowledged, THREADS * CLIENTS * MESSAGES);
    let distinct = |seen: &[viaduct_mqtt::packet::publish::PublishPacket]| {
        let distinct: std::collections::HashSet<_> = seen.iter().map(|one| (&one.topic_name, &one.payload)).collect();
        distinct.len()
    };
    subscriber.eventually("all messages arrive", |seen| distinct(seen) == THREADS * CLIENTS * MESSAGES);
    assert!(edge.node.stop());
}
