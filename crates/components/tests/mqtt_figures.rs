//! Latency and throughput of the MQTT kinds on this machine, to be run alone:
//!
//! ```text
//! cargo test --release -p viaduct-components --test mqtt_figures -- --ignored --nocapture
//! ```

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "it measures and prints")]

#[path = "mqtt/support.rs"]
mod support;

use std::time::{Duration, Instant};

use support::*;

const RATE_HZ: u32 = 500;
const OCTETS: usize = 1000;

/// Starts a node with a bridge of the given QoS or a route of the broker, and with the broker if `broker` is `true`.
fn node(port: u16, broker: bool, way: &str) -> TestNode {
    let route = "routes: [ { from: log/*, to: \"v/{topic}\"";
    let listen = if broker {
        format!("  broker:\n    kind: mqtt_broker\n    settings:\n      listen: 127.0.0.1:{port}\n")
    } else {
        String::new()
    };
    let ways = match way {
        "route" => format!("      {route} }} ]\n"),
        qos => format!(
            "  uplink:\n    kind: mqtt_bridge\n    settings:\n      broker: mqtt://127.0.0.1:{port}\n      \
             outbox: {{ messages_max: 200000, octets_max: 1000000000, in_flight_max: 1000 }}\n      {route}, qos: {qos} }} ]\n"
        ),
    };
    TestNode::start(&format!("node: n\ncomponents:\n  feed: {{ kind: feed }}\n{listen}{ways}"))
}

fn microseconds(sorted: &[Duration], part: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e6
}

#[test]
#[ignore = "measures"]
fn latency() {
    for way in ["route", "0", "1", "route", "0", "1"] {
        let port = free_port();
        let node = node(port, true, way);
        let arrivals = Arrivals::start(port, "v/#");
        let bus = node.bus();
        let component = if way == "route" { "broker" } else { "uplink" };
        eventually("there is a way", || way == "route" || count(&bus, component, "connected") == 1);
        let (total, warm) = (3000, 500);
        let mut sent = Vec::new();
        let start = Instant::now();
        for number in 0..total {
            let at = start + Duration::from_secs(1) / RATE_HZ * number;
            std::thread::sleep(at.saturating_duration_since(Instant::now()));
            sent.push(Instant::now());
            node.padded(number as usize, OCTETS);
        }
        let arrived = arrivals.wait_for(total as usize);
        let mut latencies: Vec<Duration> =
            sent.iter().zip(&arrived).skip(warm).map(|(sent, arrived)| *arrived - *sent).collect();
        latencies.sort_unstable();
        println!(
            "latency {way:>5}: n {} p50 {:.0} p99 {:.0} p99.9 {:.0} max {:.0} us",
            latencies.len(),
            microseconds(&latencies, 0.5),
            microseconds(&latencies, 0.99),
            microseconds(&latencies, 0.999),
            microseconds(&latencies, 1.0)
        );
        node.stop();
    }
}

#[test]
#[ignore = "measures"]
fn throughput() {
    let total = 200_000;
    for (engine, way, subscribed) in [
        ("mqtt5", "0", false),
        ("mqtt5", "1", false),
        ("mqtt5", "0", true),
        ("mqtt5", "1", true),
        ("mqtt5", "route", true),
        ("mosquitto", "0", false),
        ("mosquitto", "1", false),
        ("mosquitto", "0", true),
        ("mosquitto", "1", true),
    ] {
        if engine == "mosquitto" && !has("mosquitto") {
            continue;
        }
        let port = free_port();
        let _mosquitto = (engine == "mosquitto").then(|| Mosquitto::start(port));
        let node = node(port, engine == "mqtt5", way);
        let arrivals = subscribed.then(|| Arrivals::start(port, "v/#"));
        let bus = node.bus();
        let component = if way == "route" { "broker" } else { "uplink" };
        eventually("there is a way", || way == "route" || count(&bus, component, "connected") == 1);
        let start = Instant::now();
        let taken = bus.counter(component, "taken", None);
        for number in 0..total {
            node.padded(number, OCTETS);
            while number as u64 - taken.value().min(number as u64) > 800 {
                std::thread::yield_now();
            }
        }
        let given = start.elapsed();
        let published = bus.counter(component, "published", None);
        let dropped = || count(&bus, component, "dropped");
        eventually("all are done", || published.value() + dropped() == total as u64);
        let elapsed = start.elapsed();
        let seen = arrivals.map(|arrivals| {
            let mut last = usize::MAX;
            while last != arrivals.count() {
                last = arrivals.count();
                std::thread::sleep(Duration::from_millis(300));
            }
            last
        });
        println!(
            "throughput {engine} {way:>5}: {:.0} messages/s published, bus took {:.0}/s, dropped {}, connections lost {}, subscriber saw {seen:?}",
            total as f64 / elapsed.as_secs_f64(),
            total as f64 / given.as_secs_f64(),
            dropped(),
            count(&bus, component, "lost"),
        );
        node.stop();
    }
}
