//! Contract tests of every kind of the binary, and the comparison of the committed reference.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use viaduct_node::{Graph, Kind, Node};

fn kinds() -> Vec<Kind> {
    [viaduct_components::KINDS, viaduct_backend::KINDS].concat()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn viaduct(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_viaduct")).args(arguments).output().unwrap()
}

/// Returns a file with a component of the kind in its smallest settings, and a station and a node of ROS that feed its inputs.
fn node_with(kind: &Kind) -> String {
    let feeder = "  feeder: { kind: its_station, settings: { station_id: 7, access: { udp_multicast: { group: \"239.118.122.97:18947\" } } } }\n  \
        ros_feeder:\n    kind: ros1_node\n    settings:\n      \
        subscriptions: [ { from: /points, to: ros1/points }, { from: /packets, to: ros1/packets } ]\n";
    let settings = if kind.example.is_empty() {
        String::new()
    } else {
        format!("    settings:\n{}", kind.example.lines().map(|line| format!("      {line}\n")).collect::<String>())
    };
    format!("node: contract\ncomponents:\n{feeder}  it:\n    kind: {}\n{settings}", kind.name)
}

/// Returns the kinds that need no feature that this binary lacks.
fn startable_kinds() -> impl Iterator<Item = Kind> {
    kinds().into_iter().filter(|kind| kind.name != "ros2_node" || cfg!(feature = "ros2"))
}

#[test]
fn every_kind_starts_idles_and_stops_in_time_with_its_queues_drained() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for kind in startable_kinds() {
        let text = node_with(&kind);
        let graph = Graph::resolve(kind.name, &text, &kinds()).unwrap_or_else(|error| panic!("{}: {error}", kind.name));
        let mut node = Node::start(graph, runtime.handle()).unwrap_or_else(|error| panic!("{}: {error}", kind.name));
        std::thread::sleep(std::time::Duration::from_millis(300));
        if let Some(failure) = node.try_failed() {
            panic!("{}: {failure}", kind.name);
        }
        assert!(node.stop(), "kind {} did not stop in time", kind.name);
    }
}

#[test]
fn every_kind_can_be_started_again_after_it_stopped() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for kind in startable_kinds() {
        for _ in 0..2 {
            let graph = Graph::resolve(kind.name, &node_with(&kind), &kinds()).unwrap();
            assert!(Node::start(graph, runtime.handle()).unwrap().stop(), "{}", kind.name);
        }
    }
}

#[cfg(not(feature = "ros2"))]
#[test]
fn a_kind_that_this_binary_lacks_names_the_feature_and_the_build() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let kind = kinds().into_iter().find(|kind| kind.name == "ros2_node").unwrap();
    let graph = Graph::resolve(kind.name, &node_with(&kind), &kinds()).unwrap();
    let error = Node::start(graph, runtime.handle()).err().unwrap().to_string();
    assert!(error.contains("make build-ros2") && error.contains("--features ros2"), "{error}");
}

#[test]
fn every_kind_rejects_an_unknown_setting_by_name() {
    for kind in kinds() {
        let text = format!(
            "node: contract\ncomponents:\n  it: {{ kind: {}, settings: {{ no_such_setting: 1 }} }}\n",
            kind.name
        );
        let error = Graph::resolve("x.yaml", &text, &kinds()).err().unwrap().to_string();
        assert!(error.contains("components.it.settings.no_such_setting: unknown field `no_such_setting`"), "{error}");
    }
}

#[test]
fn every_kind_documents_every_setting() {
    for kind in kinds() {
        let schema = kind.schema().to_value();
        let parts = schema["$defs"].as_object().into_iter().flatten().map(|(name, part)| (name.as_str(), part));
        for (part, schema) in parts.chain([(kind.name, &schema)]) {
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                let documented = property["description"].as_str().or_else(|| schema["description"].as_str());
                assert!(documented.is_some_and(|text| text.len() > 8), "{}: {part}.{name} has no doc", kind.name);
            }
        }
    }
}

#[test]
fn the_committed_reference_matches_the_settings_types() {
    let printed = String::from_utf8(viaduct(&["kinds", "--markdown"]).stdout).unwrap();
    let path = root().join("docs/reference/kinds.md");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &printed).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(committed == printed, "docs/reference/kinds.md is outdated; UPDATE_GOLDEN=1 rewrites it");
}

#[test]
fn kinds_are_printed_as_list_text_and_json() {
    let listed = String::from_utf8(viaduct(&["kinds"]).stdout).unwrap();
    for kind in kinds() {
        assert!(listed.contains(kind.name) && listed.contains(kind.summary), "{}", kind.name);
        let shown = String::from_utf8(viaduct(&["kinds", kind.name]).stdout).unwrap();
        assert!(shown.starts_with(&format!("{}: {}", kind.name, kind.summary)), "{shown}");
        let json = viaduct(&["kinds", kind.name, "--json"]).stdout;
        assert!(serde_json::from_slice::<serde_json::Value>(&json).unwrap().is_object());
    }
    let unknown = viaduct(&["kinds", "mqt_bridge"]);
    assert!(String::from_utf8(unknown.stderr).unwrap().contains("did you mean `mqtt_bridge`"));
}

#[test]
fn every_config_of_the_project_is_valid() {
    // The configs name captures relative to the root of the repository.
    std::env::set_current_dir(root()).unwrap();
    let mut checked = 0;
    for entry in std::fs::read_dir(root().join("configs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let text = std::fs::read_to_string(&path).unwrap();
            if let Err(error) = Graph::resolve(&path.display().to_string(), &text, &kinds()) {
                panic!("{error}");
            }
            checked += 1;
        }
    }
    assert!(checked >= 2);
}
