//! `viaduct bench bridge`: the smallest cells from end to end.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "in a test a panic is the failure")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_viaduct")).args(["bench", "bridge"]).args(arguments).output().unwrap()
}

/// Returns the reason why messages of a version of ROS cannot be measured here, or `None` if they can.
fn obstacle(ros: &str) -> Option<String> {
    if ros == "ros2" && !cfg!(feature = "ros2") {
        return Some("this binary was built without the feature ros2".to_owned());
    }
    let ends = format!("rivals/bin/{ros}_bridge");
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(&ends).is_file();
    (!built).then(|| format!("`{ends}` is not built"))
}

/// Runs the cells over a link with few messages. Returns the table and the rows.
fn run(link: &str, rivals: &str) -> (String, Vec<Value>) {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("bridge.json");
    let arguments = ["--link", link, "--messages", "2", "--rival", "none", "--rivals", rivals, "--json"];
    let output = bench(&[&arguments[..], &[json.to_str().unwrap()]].concat());
    let (table, progress) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{progress}");
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(report["bench"], "bridge");
    (table.into_owned(), report["rows"].as_array().unwrap().clone())
}

#[test]
fn without_the_programs_the_floors_and_the_bus_are_measured() {
    let (table, rows) = run("host", "missing");
    assert!(table.contains("not measured: the program `missing/bin/ros1_bridge` does not exist"), "{table}");
    assert!(table.contains("viaduct ros2, host: not measured: "), "{table}");
    if !cfg!(feature = "ros2") {
        assert!(table.contains("built without the feature ros2: make build-ros2"), "{table}");
    }
    for name in ["floor.tcp", "floor.mqtt", "viaduct.total", "paper.interface", "paper.one_way"] {
        assert!(rows.iter().any(|row| row["name"] == name && row["unit"] == "ms"), "{name}: {table}");
    }
    let bus = rows.iter().find(|row| row["name"] == "viaduct.total").unwrap();
    assert_eq!((&bus["params"]["from"], &bus["params"]["link"]), (&Value::from("bus"), &Value::from("host")));
    assert_eq!(bus["n"], 2);
    assert_has_stages(&rows, "vehicle", &["interface_to_detection", "detection", "interface_to_benchmark"]);
    assert!(rows.iter().any(|row| row["name"] == "viaduct.detector" && row["n"] == 2), "{table}");
    assert!(table.contains("Table I: stages of the use case") && table.contains("points to boxes"), "{table}");
}

/// Asserts that the stages of two messages of the use case add up to their total.
fn assert_has_stages(rows: &[Value], place: &str, stages: &[&str]) {
    let ours = |row: &&Value| row["params"]["detection_in"] == place && row["params"]["kind"] == "scan";
    let mean = |row: &Value| row["mean"].as_f64().unwrap();
    let total = rows.iter().filter(ours).find(|row| row["name"] == "viaduct.usecase").unwrap();
    assert!(total["n"].as_u64().unwrap() >= 2 && mean(total) > 0.0, "{total}");
    let found: Vec<&Value> = rows.iter().filter(ours).filter(|row| row["name"] == "viaduct.stage").collect();
    let names: Vec<&str> = found.iter().map(|row| row["params"]["stage"].as_str().unwrap()).collect();
    assert_eq!(names, stages);
    let sum: f64 = found.iter().map(|row| mean(row)).sum();
    assert!((sum - mean(total)).abs() < 0.01, "{sum} {total}");
}

#[test]
fn the_use_case_has_the_stages_of_the_paper() {
    let allowed = Command::new("unshare").args(["--net", "true"]).output();
    if !allowed.is_ok_and(|output| output.status.success()) {
        assert!(std::env::var_os("VIADUCT_REQUIRE_PEERS").is_none(), "network namespaces need root");
        eprintln!("skipped: network namespaces need root");
        return;
    }
    let (_, rows) = run("ethernet", "missing");
    let stages = [
        "vehicle_to_interface",
        "vehicle_interface_out",
        "vehicle_to_cloud",
        "cloud_interface_in",
        "interface_to_detection",
        "detection",
        "detection_to_interface",
        "cloud_interface_out",
        "cloud_to_vehicle",
        "vehicle_interface_in",
        "interface_to_benchmark",
    ];
    assert_has_stages(&rows, "cloud", &stages);
}

#[test]
fn scans_of_a_ros_node_cross_two_nodes_and_a_broker() {
    let built: Vec<&str> = ["ros1", "ros2"].into_iter().filter(|ros| obstacle(ros).is_none()).collect();
    for reason in ["ros1", "ros2"].into_iter().filter_map(obstacle) {
        eprintln!("skipped: {reason}");
    }
    if built.is_empty() {
        return;
    }
    let rivals = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rivals");
    let (table, rows) = run("host", rivals.to_str().unwrap());
    for ros in &built {
        let has = |name: &str, key: &str, value: &str| {
            rows.iter().any(|row| row["name"] == name && row["params"][key] == value && row["params"]["from"] == *ros)
        };
        assert!(has("viaduct.total", "measure", "one_way") && has("viaduct.total", "measure", "rtt"), "{table}");
        assert!(has("viaduct.interface", "by", "outside") && has("viaduct.interface", "by", "stamps"), "{table}");
        assert!(has("viaduct.stage", "stage", "vehicle_interface_out"), "{table}");
        assert!(has("viaduct.stage", "stage", "cloud_interface_in"), "{table}");
    }
    let is_bounded = table.contains("ROS to MQTT to ROS on one host, median");
    assert_eq!(is_bounded, built.contains(&"ros1"), "{table}");
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
