//! `viaduct bench drive`: the smallest cells from end to end, over an emulated link with real packets.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the failure")]

use std::process::{Command, Output};

use serde_json::Value;

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_viaduct")).args(["bench", "drive"]).args(arguments).output().unwrap()
}

/// Returns the reason why a link cannot be emulated here, or `None` if it can.
fn obstacle() -> Option<&'static str> {
    let allowed = Command::new("unshare").args(["--net", "true"]).output();
    if !allowed.is_ok_and(|output| output.status.success()) {
        return Some("network namespaces need root");
    }
    (!std::path::Path::new("/dev/net/tun").exists()).then_some("there is no /dev/net/tun")
}

#[test]
fn frames_cross_the_link_with_the_product_and_a_baseline() {
    if let Some(reason) = obstacle() {
        assert!(std::env::var_os("VIADUCT_REQUIRE_PEERS").is_none(), "{reason}");
        eprintln!("skipped: {reason}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("drive.json");
    let output = bench(&[
        "--link",
        "ethernet",
        "--cameras",
        "1",
        "--frames",
        "3",
        "--rival",
        "best_effort",
        "--json",
        json.to_str().unwrap(),
    ]);
    let (table, progress) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{progress}");
    assert!(progress.contains("drive: 1 of 3: viaduct.frame, ethernet, 1 cameras"), "{progress}");
    for part in ["1 camera, ethernet", "Table 4 of the paper", "paper case 1", "floor.frame", "viaduct.glass_to_glass"]
    {
        assert!(table.contains(part), "{part} is missing:\n{table}");
    }
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(report["bench"], "drive");
    let rows = report["rows"].as_array().unwrap();
    let row = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name}: {table}"));
    for name in ["viaduct.frame", "best_effort"] {
        let row = row(name);
        assert_eq!((&row["unit"], &row["n"]), (&Value::from("ms"), &Value::from(3)), "{name}");
        assert_eq!(row["params"]["link"], "ethernet");
        // The link loses nothing, and a frame that a busy machine delivers late has not been lost.
        assert!(row["lost"].as_u64().unwrap() < 3, "{table}");
        assert!(row["min"].as_f64().unwrap() > 3.0, "no frame is faster than the link: {table}");
    }
    assert_eq!(row("viaduct.glass_to_glass")["unit"], "ms");
    assert_eq!(rows.iter().filter(|row| row["name"] == "paper.lossy").count(), 40);
    assert_eq!(row("floor.frame")["params"]["link"], "ethernet");
}

#[test]
fn options_of_another_bench_and_unknown_names_are_refused() {
    for (arguments, problem) in [
        (&["--link", "5g"][..], "the links of this bench are ethernet, lossy-0.3, lossy-5, bursty-5, outage"),
        (&["--cameras", "5"], "5 is not in 1..=4"),
        (&["--rival", "carrier_pigeon"], "the rivals of this bench are best_effort, tcp, mqtt, cyclonedds, none"),
        (&["--frames", "0"], "0 is not in 1..=100000"),
    ] {
        let output = bench(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains(problem), "{arguments:?}: {error}");
    }
    let output = Command::new(env!("CARGO_BIN_EXE_viaduct")).args(["bench", "bus", "--frames", "3"]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("are for `bench drive`"));
}
