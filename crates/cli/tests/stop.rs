//! Accepted messages at the stop of a node.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]

use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Runs a node whose broker is not there, and stops it. Returns the exit code and the log.
fn run_and_stop(outbox: &str, folder: &std::path::Path) -> (i32, String) {
    let broker = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (config, log) = (folder.join("node.yaml"), folder.join("log"));
    let text = format!(
        "node: edge\ncomponents:\n  it: {{ kind: generator, settings: {{ topic: data, octets: 160, rate_hz: 200 }} }}\n  \
         uplink: {{ kind: mqtt_bridge, settings: {{ broker: \"mqtt://{broker}\", outbox: {outbox}, \
         routes: [ {{ from: data, to: data, qos: 1, encoding: native }} ] }} }}\n"
    );
    std::fs::write(&config, text).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_viaduct"))
        .arg("run")
        .arg(&config)
        .stdin(Stdio::null())
        .stderr(std::fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_secs(2));
    let stopped = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(stopped.success());
    let code = child.wait().unwrap().code().unwrap();
    (code, std::fs::read_to_string(&log).unwrap())
}

#[test]
fn messages_that_a_stop_loses_are_reported_by_a_message_and_the_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let (code, log) = run_and_stop("{}", folder.path());
    assert_eq!(code, 3, "{log}");
    let line = log.lines().find(|line| line.contains("accepted messages are lost with the stop; ")).unwrap();
    let messages: u64 = line.split_whitespace().find_map(|word| word.parse().ok()).unwrap();
    assert!(messages > 100, "{line}");
}

#[test]
fn messages_on_the_disk_are_kept_by_a_stop() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = folder.path().join("outbox");
    let (code, log) = run_and_stop(&format!("{{ folder: {} }}", outbox.display()), folder.path());
    assert_eq!(code, 0, "{log}");
    let octets: u64 = std::fs::read_dir(&outbox).unwrap().flat_map(|entry| walk(&entry.unwrap().path())).sum();
    assert!(octets > 10_000, "{octets}");
}

/// Returns the lengths of the files below a path.
fn walk(path: &std::path::Path) -> Vec<u64> {
    let data = path.metadata().unwrap();
    if data.is_dir() {
        std::fs::read_dir(path).unwrap().flat_map(|entry| walk(&entry.unwrap().path())).collect()
    } else {
        vec![data.len()]
    }
}
