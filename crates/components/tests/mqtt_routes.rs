//! Routes of `mqtt_bridge`: queues, rates and lists of topics.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "in a test a panic is the failure")]

#[path = "mqtt/support.rs"]
mod support;

use std::time::Duration;

use support::*;

/// Starts a node with a bridge and its routes.
fn car(port: u16, routes: &str) -> TestNode {
    TestNode::start(&format!(
        "node: car\ncomponents:\n  feed: {{ kind: feed }}\n  uplink:\n    kind: mqtt_bridge\n    settings:\n      \
         broker: mqtt://127.0.0.1:{port}\n      reconnect: {{ min_ms: 1, max_ms: 20 }}\n      routes: [ {routes} ]\n"
    ))
}

/// Returns the number at the beginning of each received log.
fn received(broker: &StalledBroker) -> Vec<usize> {
    let seen = broker.seen();
    let json = |payload: &[u8]| serde_json::from_slice::<serde_json::Value>(payload).unwrap();
    seen.iter().map(|packet| json(&packet.payload)["message"].as_str().unwrap().trim().parse().unwrap()).collect()
}

/// Publishes logs of 200 kB on a stalled connection. Returns the numbers that arrive when it is released, and the number of samples that
/// were overwritten.
fn through_a_stalled_connection(route: &str) -> (Vec<usize>, u64) {
    const LOGS: usize = 40;
    let broker = StalledBroker::start();
    let node = car(broker.port, &format!("{{ from: log/n, to: v, {route} }}"));
    let bus = node.bus();
    eventually("the bridge is connected", || count(&bus, "uplink", "connected") == 1);
    for number in 0..LOGS {
        node.log("log/n", &format!("{number}{}", " ".repeat(200_000)));
        std::thread::sleep(Duration::from_millis(2));
    }
    broker.release();
    eventually("the newest log arrives", || received(&broker).last() == Some(&(LOGS - 1)));
    let topic = bus.snapshot().topics.into_iter().find(|topic| topic.topic == "log/n").unwrap();
    let uplink = topic.subscriptions.into_iter().find(|one| one.subscriber == "uplink").unwrap();
    assert!(node.stop());
    let account = Account::of(&bus, "uplink");
    assert_eq!(account.published, received(&broker).len() as u64);
    (received(&broker), uplink.dropped.get("overwritten").copied().unwrap_or(0))
}

#[test]
fn the_latest_sample_overtakes_those_that_wait_for_the_connection() {
    for qos in ["qos: 0", "qos: 1"] {
        let (numbers, overwritten) = through_a_stalled_connection(&format!("queue: latest, {qos}"));
        // The first one is in the buffers of the sockets, the second one may be as well.
        assert!(numbers.len() <= 4 && numbers.is_sorted(), "{qos} {numbers:?}");
        assert_eq!(numbers.len() as u64 + overwritten, 40, "{qos}");
    }
}

#[test]
fn the_newest_samples_wait_for_the_connection() {
    let (numbers, overwritten) = through_a_stalled_connection("queue: { keep: 5 }");
    let newest: Vec<usize> = (35..40).collect();
    assert!(numbers.ends_with(&newest) && numbers.len() <= 5 + 5 + 3, "{numbers:?}");
    assert_eq!(numbers.len() as u64 + overwritten, 40);
}

#[test]
fn a_route_without_a_queue_keeps_all() {
    let (numbers, overwritten) = through_a_stalled_connection("");
    assert_eq!((numbers, overwritten), ((0..40).collect(), 0));
}

#[test]
fn a_route_that_blocks_slows_a_reliable_publisher() {
    let port = free_port();
    let config = |qos: &str| {
        format!(
            "node: car\ncomponents:\n  lidar: {{ kind: generator, settings: {{ topic: lidar, octets: 160000, rate_hz: 500, {qos} }} }}\n  \
             broker: {{ kind: mqtt_broker, settings: {{ listen: 127.0.0.1:{port}, \
             routes: [ {{ from: lidar, to: v, encoding: protobuf, queue: {{ block: 4 }} }} ] }} }}\n"
        )
    };
    let error = TestNode::refused(&config("qos: { preset: sensor_data }"));
    assert!(error.contains("offered is best effort, requested is reliable"), "{error}");
    let node = TestNode::start(&config("qos: { preset: default }"));
    let bus = node.bus();
    eventually("clouds are published", || count(&bus, "broker", "published") > 50);
    assert!(node.stop());
    let topic = bus.snapshot().topics.into_iter().find(|topic| topic.topic == "lidar").unwrap();
    assert!(topic.subscriptions.iter().all(|one| one.dropped.is_empty()), "{topic:?}");
}

/// Returns the number of buffers of the pool of `lidar`.
fn buffers(octets: usize, route: &str) -> usize {
    let node = TestNode::start(&format!(
        "node: car\ncomponents:\n  lidar: {{ kind: generator, settings: {{ topic: lidar, octets: {octets} }} }}\n  \
         uplink: {{ kind: mqtt_bridge, settings: {{ broker: \"mqtt://127.0.0.1:1\", \
         routes: [ {{ from: \"*\", encoding: native, {route} }} ] }} }}\n"
    ));
    let topic = node.bus().snapshot().topics.into_iter().find(|topic| topic.topic == "lidar").unwrap();
    assert!(node.stop());
    topic.pool.unwrap().buffers
}

#[test]
fn the_queue_of_a_route_counts_in_the_pool() {
    let others = 1 + 8;
    assert_eq!(buffers(4 << 20, "queue: latest"), 1 + 2 + others);
    assert_eq!(buffers(4 << 20, "queue: { keep: 3 }"), 3 + 4 + others);
    // At most 32 MiB without a setting, and one that is being encoded.
    assert_eq!(buffers(4 << 20, ""), 8 + 1 + others);
    assert_eq!(buffers(1 << 10, ""), 1024 + 1 + others);
}

#[test]
fn topics_and_rates_of_a_route_are_limited() {
    let port = free_port();
    let node = TestNode::start(&format!(
        "node: car\ncomponents:\n  feed: {{ kind: feed }}\n  broker:\n    kind: mqtt_broker\n    settings:\n      \
         listen: 127.0.0.1:{port}\n      \
         routes: [ {{ from: \"log/*\", to: \"v/{{leaf}}\", allow: [ log/a, log/b ], deny: [ log/b ] }}, \
         {{ from: log/slow, to: slow, rate_hz: 0.1 }} ]\n"
    ));
    let subscriber = Subscriber::start(port, "#");
    let bus = node.bus();
    for topic in ["log/b", "log/c", "log/a", "log/slow", "log/slow", "log/slow", "log/a"] {
        node.log(topic, topic);
    }
    eventually("all are taken", || count(&bus, "broker", "taken") == 5);
    let seen = subscriber.wait_for(3);
    assert!(node.stop());
    let mut topics: Vec<&str> = seen.iter().map(|packet| packet.topic_name.as_str()).collect();
    topics.sort_unstable();
    assert_eq!(topics, ["slow", "v/a", "v/a"]);
    assert_eq!(Account::of(&bus, "broker").reason("rate_limited"), 2);
}
