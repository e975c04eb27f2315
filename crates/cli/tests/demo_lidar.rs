//! The lidar demo as a user runs it: lists of vehicles come back, the page has the figures, and each scan is accounted for.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests may panic")]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(60);

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Returns the first of `count` free ports in a row.
fn free_ports(count: u16) -> u16 {
    let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    loop {
        let first = free_port();
        if first < u16::MAX - count && (first..first + count).all(is_free) {
            return first;
        }
    }
}

fn start(port: u16, more: &[&str]) -> Child {
    let [mqtt_port, node_port, group_port] = [free_ports(2), free_ports(3), free_port()].map(|port| port.to_string());
    Command::new(env!("CARGO_BIN_EXE_viaduct"))
        .args(["demo", "lidar", "--headless", "--rate", "4", "--profile", "ethernet", "--port", &port.to_string()])
        .args(["--mqtt-port", &mqtt_port, "--node-port", &node_port, "--group-port", &group_port])
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Returns the JSON of a GET, or `None` as long as the API does not listen.
fn get(port: u16, path: &str) -> Option<Value> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    serde_json::from_str(text.split_once("\r\n\r\n")?.1).ok()
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

#[test]
fn lists_of_vehicles_come_back_and_each_scan_is_accounted_for() {
    let port = free_port();
    let demo = start(port, &[]);
    let figures = || get(port, "/v1/kpis").map_or(Value::Null, |kpis| kpis["figures"][0].clone());
    eventually("ten lists of vehicles come back", || figures()["count"].as_u64().is_some_and(|count| count >= 10));
    let figures = figures();
    let stages: Vec<&str> =
        figures["stages"].as_array().unwrap().iter().map(|stage| stage["name"].as_str().unwrap()).collect();
    assert_eq!(stages.len(), 11, "{figures}");
    assert_eq!([stages[0], stages[5], stages[10]], ["vehicle_to_interface", "detection", "interface_to_benchmark"]);
    eventually("the vehicles are on the map", || {
        let objects = get(port, "/v1/latest?type=cpm").unwrap_or_default();
        objects["features"].as_array().is_some_and(|features| !features.is_empty())
    });
    let printed = end(demo);
    let row = |name: &str| {
        let line = printed.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {printed}"));
        line.split_whitespace().last().unwrap().parse::<u64>().unwrap()
    };
    assert!(row("sent") >= row("came back") && row("came back") >= 10, "{printed}");
    assert!(row("on their way") <= 2, "{printed}");
    // Before the first state of the vehicle has arrived, objects have no position.
    let is_unexpected = |line: &&str| line.starts_with("lost, ") && !line.contains("no_position");
    assert_eq!(printed.lines().find(is_unexpected), None, "{printed}");
}

#[test]
fn a_rate_out_of_range_is_refused() {
    let output = Command::new(env!("CARGO_BIN_EXE_viaduct")).args(["demo", "lidar", "--rate", "0"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--rate 0 is not within 0.1 to 20"));
}
