//! Options of every command: version, completions, and the log.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]

use std::process::{Command, Output, Stdio};
use std::time::Duration;

fn viaduct(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_viaduct"));
    command.args(arguments).env_remove("RUST_LOG").env_remove("NO_COLOR");
    command
}

fn stdout(arguments: &[&str]) -> String {
    let output = viaduct(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a small node for a short time. Returns its log.
fn log_of_a_node(options: &[&str], environment: &[(&str, &str)]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("node.yaml");
    let text =
        "node: bus\ncomponents:\n  radar: { kind: generator, settings: { topic: radar, octets: 64, rate_hz: 10 } }\n";
    std::fs::write(&file, text).unwrap();
    let mut command = viaduct(&[&["run", file.to_str().unwrap()], options].concat());
    let node = command.envs(environment.iter().copied()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    assert!(Command::new("kill").args(["-TERM", &node.id().to_string()]).status().unwrap().success());
    let Output { status, stderr, .. } = node.wait_with_output().unwrap();
    assert!(status.success());
    String::from_utf8(stderr).unwrap()
}

#[test]
fn the_version_has_the_commit() {
    let version = stdout(&["--version"]);
    let commit = version.strip_prefix(concat!("viaduct ", env!("CARGO_PKG_VERSION"), " (")).unwrap();
    let commit = commit.strip_suffix(")\n").unwrap();
    assert!(commit == "unknown" || commit.chars().all(|c| c.is_ascii_hexdigit()) && commit.len() >= 9, "{version}");
}

#[test]
fn each_shell_has_a_completion_script() {
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout(&["completions", shell]);
        assert!(script.contains("viaduct") && script.contains("its"), "{shell}: {script}");
    }
}

#[test]
fn the_log_options_are_in_the_help_of_every_command() {
    for arguments in [&["--help"][..], &["run", "--help"], &["its", "decode", "--help"], &["topic", "list", "--help"]] {
        let help = stdout(arguments);
        assert!(help.contains("--log <LEVEL>") && help.contains("--log-format <FORMAT>"), "{arguments:?}: {help}");
    }
}

#[test]
fn a_log_without_a_terminal_has_no_escape_sequences() {
    let log = log_of_a_node(&[], &[]);
    assert!(log.contains(" INFO node started node=\"bus\"") && !log.contains('\u{1b}'), "{log}");
}

#[test]
fn a_json_log_has_one_object_for_each_event() {
    let log = log_of_a_node(&["--log-format", "json"], &[]);
    let started: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let event = started.iter().find(|event| event["message"] == "node started").unwrap();
    assert_eq!((&event["level"], &event["node"], &event["components"]), (&"INFO".into(), &"bus".into(), &1.into()));
    assert!(event["timestamp"].is_string());
}

#[test]
fn the_level_is_taken_from_the_option_before_the_environment() {
    assert_eq!(log_of_a_node(&["--log", "off"], &[("RUST_LOG", "info")]), "");
    assert_eq!(log_of_a_node(&[], &[("RUST_LOG", "warn")]), "");
    assert!(log_of_a_node(&["--log", "warn,viaduct_node=info"], &[]).contains("node started"));
    let refused = viaduct(&["kinds", "--log", "debgu"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8(refused.stderr).unwrap().contains("`debgu` is not off, error, warn"));
}
