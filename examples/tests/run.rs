//! Runs each example as a user does and compares its output.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the failure")]

use std::process::Command;

/// Runs a program in the repository's root. Returns the lines of its standard output.
fn output(program: &str, arguments: &[&str]) -> Vec<String> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let ended = Command::new(program).args(arguments).current_dir(root).output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8(ended.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn component_prints_a_warning_for_each_state_above_the_limit() {
    let lines = output(env!("CARGO_BIN_EXE_example-component"), &[]);
    assert_eq!(lines.len(), 3);
    for line in lines {
        assert!(line.ends_with("m/s is above the limit of 13.9 m/s"), "{line}");
    }
}

#[test]
fn machine_gives_the_same_result_each_time() {
    let lines = output(env!("CARGO_BIN_EXE_example-machine"), &[]);
    assert_eq!(lines, output(env!("CARGO_BIN_EXE_example-machine"), &[]));
    assert_eq!(lines, ["600 CAMs sent, 552 received, 48 lost on the link"]);
}

#[test]
fn untyped_relay_keeps_type_and_path() {
    let lines = output(env!("CARGO_BIN_EXE_example-untyped-relay"), &[]);
    assert_eq!(lines, ["forwarded 2 samples", "speed 13.9 m/s, passed driver -> relay"]);
}

#[test]
fn custom_kind_runs_beside_the_kinds_of_viaduct() {
    let lines = output(env!("CARGO_BIN_EXE_example-custom-kind"), &["examples/custom_kind/node.yaml"]);
    assert_eq!(lines, ["40960 points in 10 clouds", "81920 points in 20 clouds"]);
}
