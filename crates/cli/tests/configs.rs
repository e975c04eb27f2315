//! The config files of the project: they can run at the same time, and they match the schema.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns path and text of each file in `configs/`.
fn configs() -> Vec<(PathBuf, String)> {
    let entries = std::fs::read_dir(root().join("configs")).unwrap().map(|entry| entry.unwrap().path());
    let paths = entries.filter(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    let files: Vec<_> = paths.map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect();
    assert!(files.len() >= 8);
    files
}

/// Returns the number after each occurrence of a text.
fn numbers_after(text: &str, before: &str) -> Vec<u32> {
    let digits = |rest: &str| rest.chars().take_while(char::is_ascii_digit).collect::<String>();
    text.split(before).skip(1).filter_map(|rest| digits(rest).parse().ok()).collect()
}

/// Asserts that no two files have the same number.
fn assert_distinct(what: &str, numbers: impl Fn(&str) -> Vec<u32>) {
    let mut owners = BTreeMap::<u32, PathBuf>::new();
    for (path, text) in configs() {
        for number in numbers(&text) {
            if let Some(other) = owners.insert(number, path.clone()) {
                assert_eq!(other, path, "{what} {number} is used twice");
            }
        }
    }
}

#[test]
fn ports_and_station_ids_of_the_configs_do_not_collide() {
    // A broker that is started in a comment takes its port too.
    assert_distinct("port", |text| {
        let prefixes = ["\nhttp: 127.0.0.1:", "listen: 127.0.0.1:", "#   mosquitto -p "];
        prefixes.iter().flat_map(|before| numbers_after(text, before)).collect()
    });
    assert_distinct("station ID", |text| numbers_after(text, "station_id: "));
}

#[test]
fn every_config_has_an_endpoint_in_the_projects_port_range() {
    for (path, text) in configs() {
        let ports = numbers_after(&text, "\nhttp: 127.0.0.1:");
        assert!(matches!(ports.as_slice(), [9470..=9489 | 9500..=9509]), "{}: {ports:?}", path.display());
    }
}

#[test]
fn every_config_matches_the_schema_and_a_mistake_does_not() {
    let python =
        std::env::var_os("VIADUCT_PYTHON").map_or_else(|| root().join(".cache/venv/bin/python"), PathBuf::from);
    let has = |python: &Path| {
        Command::new(python)
            .args(["-c", "import jsonschema, yaml"])
            .output()
            .is_ok_and(|output| output.status.success())
    };
    let Some(python) = [python, PathBuf::from("python3")].into_iter().find(|python| has(python)) else {
        skipped("no Python with jsonschema and PyYAML (VIADUCT_PYTHON, or .cache/venv/bin/python)");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let schema = Command::new(env!("CARGO_BIN_EXE_viaduct")).arg("schema").output().unwrap().stdout;
    std::fs::write(folder.path().join("schema.json"), schema).unwrap();
    let wrong = [
        "node: a\ncomponents: { it: { kind: fleet, settings: { vehicles: many } } }\n",
        "node: a\ncomponents: { it: { kind: fleet, settings: { wheels: 4 } } }\n",
        "node: a\ncomponents: { it: { kind: feet } }\n",
        "node: a\ncolour: blue\n",
        "components: { it: { kind: fleet } }\n",
    ];
    let fine = "node: ${NAME}\npool_threads: ${N:-2}\ncomponents:\n  it:\n    kind: fleet\n    settings: { vehicles: \"${COUNT}\" }\n";
    std::fs::write(folder.path().join("fine.yaml"), fine).unwrap();
    for (index, text) in wrong.iter().enumerate() {
        std::fs::write(folder.path().join(format!("wrong{index}.yaml")), text).unwrap();
    }
    let script = "import json, sys, yaml, jsonschema, pathlib\n\
                  folder = pathlib.Path(sys.argv[1])\n\
                  schema = json.load(open(folder / 'schema.json'))\n\
                  jsonschema.Draft202012Validator.check_schema(schema)\n\
                  validator = jsonschema.Draft202012Validator(schema)\n\
                  for name in sorted(sys.argv[2:]) + sorted(map(str, folder.glob('*.yaml'))):\n\
                  \x20   errors = [e.json_path + ': ' + e.message for e in validator.iter_errors(yaml.safe_load(open(name)))]\n\
                  \x20   assert bool(errors) == ('wrong' in name), (name, errors)\n";
    let files: Vec<PathBuf> = configs().into_iter().map(|(path, _)| path).collect();
    let output = Command::new(python).args(["-c", script]).arg(folder.path()).args(files).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Reports a skipped test on the standard error, which the test runner does not capture. Fails if peers are required.
fn skipped(reason: &str) {
    assert!(
        std::env::var_os("VIADUCT_REQUIRE_PEERS").is_none(),
        "skipped although VIADUCT_REQUIRE_PEERS is set: {reason}"
    );
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}
