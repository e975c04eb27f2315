//! The dependencies between crates match the table in ARCHITECTURE.md.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cargo_metadata::{DependencyKind, MetadataCommand};

const ARCHITECTURE: &str = include_str!("../../../ARCHITECTURE.md");

/// Crates that read no clock, socket, file, environment or random source.
const PURE: [&str; 12] = [
    "its",
    "asn1",
    "coap",
    "etsi",
    "etsi-infrastructure",
    "lidar",
    "mqttsn",
    "netem",
    "ros",
    "teleop",
    "units",
    "v2x-json",
];

/// Returns the crates that each crate may use, from the table under "Code map".
fn documented() -> BTreeMap<String, BTreeSet<String>> {
    let table = ARCHITECTURE.split("## Code map").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let uses = cells[2].split(", ").filter(|name| *name != "-").map(str::to_owned).collect();
        (cells[0].trim_matches('`').to_owned(), uses)
    })
    .collect()
}

/// Returns the workspace crates that each crate depends on, without dev-dependencies.
fn actual() -> BTreeMap<String, BTreeSet<String>> {
    let metadata = MetadataCommand::new().no_deps().exec().unwrap();
    let short = |name: &str| name.strip_prefix("viaduct-").map(str::to_owned);
    let packages = metadata.packages.iter();
    packages
        .map(|package| {
            let built_with = package.dependencies.iter().filter(|used| used.kind != DependencyKind::Development);
            (short(&package.name).unwrap(), built_with.filter_map(|used| short(&used.name)).collect())
        })
        .collect()
}

#[test]
fn crates_depend_only_on_the_crates_that_the_architecture_allows() {
    let (documented, actual) = (documented(), actual());
    assert_eq!(
        documented.keys().collect::<Vec<_>>(),
        actual.keys().collect::<Vec<_>>(),
        "the table needs one row for each crate"
    );
    for (name, uses) in &actual {
        let forbidden: Vec<_> = uses.difference(&documented[name]).collect();
        assert!(forbidden.is_empty(), "crate `{name}` must not use {forbidden:?}");
    }
}

#[test]
fn each_external_engine_is_named_by_its_crates_only() {
    let metadata = MetadataCommand::new().no_deps().exec().unwrap();
    let users = |external: &str| -> Vec<String> {
        let uses = |package: &&cargo_metadata::Package| {
            package.dependencies.iter().any(|used| used.name == external && used.kind != DependencyKind::Development)
        };
        metadata.packages.iter().filter(uses).map(|package| package.name.to_string()).collect()
    };
    assert_eq!(users("rasn"), ["viaduct-asn1", "viaduct-etsi-infrastructure", "viaduct-etsi"]);
    assert_eq!(users("c-its-parser"), ["viaduct-etsi-infrastructure"]);
    assert_eq!(users("mqtt5"), ["viaduct-mqtt"]);
    for pure in PURE {
        for banned in ["tokio", "socket2", "rand", "nix", "axum", "mqtt5", "tracing"] {
            assert!(!users(banned).contains(&format!("viaduct-{pure}")), "{pure} uses {banned}");
        }
    }
}

#[test]
fn pure_crates_share_one_clippy_configuration() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let rules = workspace.join("clippy-pure.toml").canonicalize().unwrap();
    for pure in PURE {
        let link = workspace.join("crates").join(pure).join("clippy.toml");
        let target = link.canonicalize().unwrap_or_else(|error| panic!("{}: {error}", link.display()));
        assert_eq!(target, rules, "{} is not a link to clippy-pure.toml", link.display());
    }
}
