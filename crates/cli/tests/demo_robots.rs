//! The robots demo as a user runs it: both robots are on the map and obey, and each acknowledged message has arrived.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests may panic")]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(60);

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Returns the first of four ports in a row that are free for TCP and UDP.
fn free_ports() -> u16 {
    let is_free =
        |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok() && UdpSocket::bind(("127.0.0.1", port)).is_ok();
    loop {
        let first = free_port();
        if first < u16::MAX - 4 && (first..first + 4).all(is_free) {
            return first;
        }
    }
}

/// Starts the demo. Returns it with the port of the map.
fn start(more: &[&str]) -> (Child, u16) {
    let [port, mqtt_port, group_port] = [free_port(), free_port(), free_port()];
    let [udp_port, node_port] = [free_ports(), free_ports()];
    let child = Command::new(env!("CARGO_BIN_EXE_viaduct"))
        .args(["demo", "robots", "--headless", "--port", &port.to_string(), "--mqtt-port", &mqtt_port.to_string()])
        .args(["--udp-port", &udp_port.to_string(), "--node-port", &node_port.to_string()])
        .args(["--group-port", &group_port.to_string()])
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    (child, port)
}

/// Returns the body of a GET, or `None` as long as nothing listens.
fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    Some(text.split_once("\r\n\r\n")?.1.to_owned())
}

fn eventually(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Stops the demo as Ctrl-C does. Returns what it printed.
fn end(child: Child) -> String {
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{printed}\n{}", String::from_utf8_lossy(&output.stderr));
    printed
}

/// Returns the speeds of the stations on the map, by station.
fn speeds(port: u16) -> Vec<(u64, f64)> {
    let latest = get(port, "/v1/latest?type=cam").and_then(|text| serde_json::from_str::<Value>(&text).ok());
    let features = latest.map_or(Value::Null, |latest| latest["features"].clone());
    let of = |feature: &Value| {
        let properties = &feature["properties"];
        Some((properties["station_id"].as_u64()?, properties["speed_mps"].as_f64()?))
    };
    features.as_array().map_or_else(Vec::new, |features| features.iter().filter_map(of).collect())
}

#[test]
fn both_robots_obey_over_a_link_that_loses_packets() {
    let (demo, port) = start(&[]);
    let both = |is_expected: fn(f64) -> bool| {
        let mut seen: Vec<u64> =
            speeds(port).into_iter().filter(|(_, speed)| is_expected(*speed)).map(|(id, _)| id).collect();
        seen.sort_unstable();
        seen == [913, 914]
    };
    eventually("both robots drive on the map", || both(|speed| speed > 1.0));
    eventually("both robots stand after the first command", || both(|speed| speed == 0.0));
    let printed = end(demo);
    let row = |name: &str| {
        let line = printed.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {printed}"));
        let values = line.split_whitespace().rev().take(2).map(|value| value.parse::<u64>().unwrap());
        values.collect::<Vec<_>>()
    };
    let [accepted, acknowledged, arrived, again] =
        ["accepted by", "acknowledged by", "arrived on", "sent again"].map(row);
    for robot in 0..2 {
        assert!(acknowledged[robot] >= 5 && again[robot] > 0, "{printed}");
        assert!((acknowledged[robot]..=accepted[robot]).contains(&arrived[robot]), "{printed}");
    }
}

#[test]
fn options_out_of_range_are_refused() {
    for (option, value, expected) in [
        ("--loss", "60", "--loss 60 is not within 0 to 50"),
        ("--rtt-ms", "-1", "--rtt-ms -1 is not within 0 to 10000"),
        ("--udp-port", "65533", "leave no room"),
    ] {
        let option = format!("{option}={value}");
        let output = Command::new(env!("CARGO_BIN_EXE_viaduct")).args(["demo", "robots", &option]).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains(expected), "{error}");
    }
}
