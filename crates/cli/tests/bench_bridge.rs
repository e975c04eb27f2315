//! `viaduct bench bridge`: the smallest cells from end to end.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "in a test a panic is the failure")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_viaduct")).args(["bench", "bridge"]).args(arguments).output().unwrap()
}

/// Returns the reason why ROS messages cannot be measured here, or `None` if they can.
fn obstacle() -> Option<&'static str> {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rivals/bin/ros1_bridge").is_file();
    (!built).then_some("`rivals/bin/ros1_bridge` is not built")
}

/// Runs the cells on one host with few messages. Returns the table and the rows.
fn run(rivals: &str) -> (String, Vec<Value>) {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("bridge.json");
    let arguments = ["--link", "host", "--messages", "2", "--rival", "none", "--rivals", rivals, "--json"];
    let output = bench(&[&arguments[..], &[json.to_str().unwrap()]].concat());
    let (table, progress) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{progress}");
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(report["bench"], "bridge");
    (table.into_owned(), report["rows"].as_array().unwrap().clone())
}

#[test]
fn without_the_programs_the_floors_and_the_bus_are_measured() {
    let (table, rows) = run("missing");
    assert!(table.contains("not measured: the program `missing/bin/ros1_bridge` does not exist"), "{table}");
    for name in ["floor.tcp", "floor.mqtt", "viaduct.total", "paper.interface", "paper.one_way"] {
        assert!(rows.iter().any(|row| row["name"] == name && row["unit"] == "ms"), "{name}: {table}");
    }
    let bus = rows.iter().find(|row| row["name"] == "viaduct.total").unwrap();
    assert_eq!((&bus["params"]["from"], &bus["params"]["link"]), (&Value::from("bus"), &Value::from("host")));
    assert_eq!(bus["n"], 2);
}

#[test]
fn scans_of_a_ros_node_cross_two_nodes_and_a_broker() {
    if let Some(reason) = obstacle() {
        eprintln!("skipped: {reason}");
        return;
    }
    let rivals = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rivals");
    let (table, rows) = run(rivals.to_str().unwrap());
    let has = |name: &str, key: &str, value: &str| {
        rows.iter().any(|row| row["name"] == name && row["params"][key] == value && row["params"]["from"] == "ros1")
    };
    assert!(has("viaduct.total", "measure", "one_way") && has("viaduct.total", "measure", "rtt"), "{table}");
    assert!(has("viaduct.interface", "by", "outside") && has("viaduct.interface", "by", "stamps"), "{table}");
    assert!(has("viaduct.stage", "stage", "vehicle_interface_out"), "{table}");
    assert!(has("viaduct.stage", "stage", "cloud_interface_in"), "{table}");
    assert!(table.contains("ROS to MQTT to ROS on one host, median"), "{table}");
}

#[test]
fn options_of_another_bench_and_unknown_names_are_refused() {
    for (arguments, problem) in [
        (&["--link", "outage"][..], "the links of this bench are host, ethernet, 5g, 5g-84"),
        (&["--cameras", "1"], "are for `bench drive`"),
        (&["--rival", "cyclonedds"], "the rivals of this bench are mqtt_client, mqtt_bridge, ros1.overlay, none"),
        (&["--messages", "0"], "0 is not in 1..=100000"),
    ] {
        let output = bench(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains(problem), "{arguments:?}: {error}");
    }
}
