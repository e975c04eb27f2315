//! The demo as a user runs it: at each stage, received = delivered + dropped; the endpoints respond; `mosquitto_sub`
//! prints JSON; a browser shows vehicles that move.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "tests may panic and print")]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(60);

/// A running demo on its own ports. Dropping it stops the demo.
struct Demo {
    child: Option<Child>,
    port: u16,
    mqtt_port: u16,
    node_port: u16,
}

impl Demo {
    fn start(more: &[&str]) -> Self {
        let (port, mqtt_port, group_port) = (free_port(), free_port(), free_port());
        let (node_port, vehicles_node_port) = (free_port(), free_port());
        let child = Command::new(env!("CARGO_BIN_EXE_viaduct"))
            .args(["demo", "--headless", "--port", &port.to_string(), "--mqtt-port", &mqtt_port.to_string()])
            .args(["--group-port", &group_port.to_string(), "--node-port", &node_port.to_string()])
            .args(["--vehicles-node-port", &vehicles_node_port.to_string()])
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self { child: Some(child), port, mqtt_port, node_port }
    }

    /// Returns the body of a GET, which is retried until the API listens.
    fn get(&self, path: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) {
                write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
                let mut text = String::new();
                stream.read_to_string(&mut text).unwrap();
                return text.split_once("\r\n\r\n").unwrap().1.to_owned();
            }
            assert!(Instant::now() < deadline, "the API does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn json(&self, path: &str) -> Value {
        let body = self.get(path);
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("{path}: {error}: {body}"))
    }

    /// Sends SIGTERM.
    fn ask_to_end(&self) {
        let pid = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    }

    /// Waits until the demo ends, and returns exit code, stdout and stderr.
    fn end(mut self) -> (Option<i32>, String, String) {
        let output = self.child.take().unwrap().wait_with_output().unwrap();
        let text = |octets| String::from_utf8(octets).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn every_stage_is_balanced_and_every_endpoint_responds() {
    let demo = Demo::start(&["--vehicles", "20"]);
    while demo.json("/v1/latest")["numberReturned"] != 20 {
        std::thread::sleep(Duration::from_millis(20));
    }
    let messages = demo.json("/v1/messages?type=cam&limit=3");
    assert_eq!(messages["features"].as_array().unwrap().len(), 3);
    assert!(messages["features"][0]["properties"]["message"]["cam"]["generationDeltaTime"].is_u64());
    assert_eq!(demo.json("/v1/stations/1001")["properties"]["station_type"], 5);
    let hops = demo.json("/v1/kpis")["hops"].clone();
    assert!(hops.as_array().unwrap().iter().any(|hop| hop["to"] == "api" && hop["from"] == "origin"), "{hops}");
    assert_eq!(demo.json("/openapi.json")["openapi"].as_str().map(|version| &version[..2]), Some("3."));
    assert!(demo.json("/v1/map")["features"].as_array().unwrap().len() > 10);
    assert_eq!(demo.json("/v1/messages?bbox=1,2")["parameter"], "bbox");
    demo.ask_to_end();
    let (code, table, log) = demo.end();
    assert_eq!(code, Some(0), "{table}\n{log}");
    assert_eq!(table.lines().filter(|line| line.ends_with(" ok")).count(), 8, "{table}");
    assert!(
        table.lines().filter(|line| line.contains('─') || line.ends_with(" ok")).all(|line| line.chars().count() <= 80)
    );
    assert!(table.ends_with("\nAt each stage, received = delivered + dropped.\n"), "{table}");
    assert!(!log.contains("ERROR") && !log.contains("WARN"), "{log}");
}

#[test]
fn mosquitto_sub_prints_json() {
    let demo = Demo::start(&["--vehicles", "5", "--seconds", "30"]);
    demo.get("/openapi.json");
    let port = demo.mqtt_port.to_string();
    let subscriber =
        Command::new("mosquitto_sub").args(["-p", &port, "-v", "-t", "its/#", "-C", "5", "-W", "30"]).output();
    let Ok(printed) = subscriber else {
        skipped("mosquitto_sub is not installed (Debian's mosquitto-clients)");
        return;
    };
    let printed = String::from_utf8(printed.stdout).unwrap();
    assert_eq!(printed.lines().count(), 5, "{printed}");
    for line in printed.lines() {
        let (topic, payload) = line.split_once(' ').unwrap();
        let message: Value = serde_json::from_str(payload).unwrap();
        assert_eq!(
            (topic, &message["type"], &message["access"]),
            ("its/rx/cam", &"cam".into(), &"udp_multicast".into())
        );
        assert!(message["message"]["cam"]["camParameters"].is_object());
    }
}

#[test]
fn topics_of_the_demo_are_listed() {
    let demo = Demo::start(&["--vehicles", "2"]);
    demo.get("/openapi.json");
    let listed = Command::new(env!("CARGO_BIN_EXE_viaduct"))
        .args(["topic", "list", "--node", &format!("127.0.0.1:{}", demo.node_port)])
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&listed.stdout).contains("its/rx/cam"), "{listed:?}");
    // Without options, the demo and `viaduct topic` use the same port.
    let config = Command::new(env!("CARGO_BIN_EXE_viaduct")).args(["demo", "--print-config"]).output().unwrap();
    assert!(String::from_utf8(config.stdout).unwrap().contains("\nhttp: 127.0.0.1:9470\n"));
    let help = Command::new(env!("CARGO_BIN_EXE_viaduct")).args(["topic", "list", "--help"]).output().unwrap();
    assert!(String::from_utf8(help.stdout).unwrap().contains("[default: http://127.0.0.1:9470]"));
}

#[test]
fn a_signal_ends_the_demo_cleanly() {
    let demo = Demo::start(&["--vehicles", "3"]);
    while demo.json("/v1/latest")["numberReturned"] != 3 {
        std::thread::sleep(Duration::from_millis(20));
    }
    demo.ask_to_end();
    let (code, table, log) = demo.end();
    assert_eq!(code, Some(0), "{table}\n{log}");
    assert_eq!(table.lines().filter(|line| line.ends_with(" ok")).count(), 8, "{table}");
    assert!(table.ends_with("\nAt each stage, received = delivered + dropped.\n"), "{table}");
}

#[test]
fn a_browser_sees_vehicles_move_and_latencies_appear() {
    let dashboard = root().join("dashboard");
    let demo = Demo::start(&["--vehicles", "30"]);
    if demo.get("/").contains("make dashboard") || !dashboard.join("node_modules/playwright-core").exists() {
        skipped("the dashboard was not built; `make dashboard` builds it");
        return;
    }
    let url = format!("http://127.0.0.1:{}", demo.port);
    let browser = Command::new("node").args(["test/browser.mjs", "--url", &url]).current_dir(&dashboard).output();
    let Ok(browser) = browser else {
        skipped("Node.js is not installed");
        return;
    };
    let output = String::from_utf8_lossy(&browser.stdout).into_owned() + &String::from_utf8_lossy(&browser.stderr);
    println!("{output}");
    assert!(browser.status.success(), "{output}");
}

/// Reports a skipped test on the standard error, which the test runner does not capture. Fails if peers are required
/// (in CI).
fn skipped(reason: &str) {
    use std::io::Write as _;
    assert!(
        std::env::var_os("VIADUCT_REQUIRE_PEERS").is_none(),
        "skipped although VIADUCT_REQUIRE_PEERS is set: {reason}"
    );
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}
