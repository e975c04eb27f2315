//! Pools of topics: sized by the holders of buffers, checked against the file, and created before the components start.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_bus::{PoolSnapshot, Qos};
use viaduct_messages::foxglove::PointCloud;
use viaduct_node::{Component, Context, Edges, Graph, Kind, Loans, Node, StartError};

/// Publishes clouds of up to `octets`.
struct Lidar;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LidarSettings {
    /// Bytes of its longest message. `None` if it declares no pool usage.
    octets: Option<usize>,
    /// Number of buffers that it fills at the same time.
    #[serde(default = "one")]
    filling: usize,
    /// Number of clouds that it keeps for late joiners.
    keep: Option<usize>,
}

const fn one() -> usize {
    1
}

impl Component for Lidar {
    type Settings = LidarSettings;

    fn edges(settings: &LidarSettings) -> Edges {
        let qos = settings.keep.map_or(Qos::sensor_data(), |depth| Qos::keep_last(depth).transient_local());
        let edges = Edges::default().publishes::<PointCloud>("octets", "lidar/points", qos);
        match settings.octets {
            Some(octets) => edges.loans(Loans { filling: settings.filling, bytes: octets }),
            None => edges,
        }
    }

    fn start(settings: LidarSettings, context: &mut Context<Self>) -> Result<Self, StartError> {
        let points = context.publisher::<PointCloud>("lidar/points", Qos::sensor_data())?;
        drop(points.loan(settings.octets.unwrap_or(1))?);
        Ok(Self)
    }
}

/// Reads clouds and keeps `holds` of them.
struct Perception;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PerceptionSettings {
    /// Topic to read.
    from: String,
    /// Depth of its queue.
    depth: usize,
    /// Number of clouds that it holds.
    holds: Option<usize>,
}

impl Component for Perception {
    type Settings = PerceptionSettings;

    fn edges(settings: &PerceptionSettings) -> Edges {
        let edges = Edges::default().reads::<PointCloud>("from", &settings.from, Qos::keep_last(settings.depth));
        settings.holds.into_iter().fold(edges, Edges::holds)
    }

    fn start(_: PerceptionSettings, _: &mut Context<Self>) -> Result<Self, StartError> {
        Ok(Self)
    }
}

const KINDS: [Kind; 2] = [
    Kind::of::<Lidar>("lidar", "Fills clouds.", "{}"),
    Kind::of::<Perception>("perception", "Reads clouds.", "{ from: lidar/points, depth: 5 }"),
];

/// Returns the file of a node with both components. `more` are further lines.
fn file(more: &str, lidar: &str, perception: &str) -> String {
    format!(
        "node: test\n{more}components:\n  lidar: {{ kind: lidar, settings: {{ {lidar} }} }}\n  \
         perception: {{ kind: perception, settings: {{ from: lidar/points, {perception} }} }}\n"
    )
}

fn pool(text: &str) -> Option<PoolSnapshot> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let node = Node::start(Graph::resolve("test.yaml", text, &KINDS).unwrap(), runtime.handle()).unwrap();
    let snapshot = node.bus().snapshot();
    node.stop();
    snapshot.topics.into_iter().find(|topic| topic.topic == "lidar/points")?.pool
}

fn size(text: &str) -> (usize, usize) {
    let pool = pool(text).unwrap();
    assert!(pool.region.is_some(), "{pool:?} was made by the first loan");
    (pool.buffers, pool.bytes)
}

fn refused(text: &str) -> String {
    Graph::resolve("test.yaml", text, &KINDS).err().expect("is accepted").to_string()
}

fn topics(pool: &str) -> String {
    format!("topics:\n  lidar/points:\n    pool: {{ {pool} }}\n")
}

#[test]
fn a_pool_has_a_buffer_for_each_sample_that_can_be_held() {
    let held = "depth: 5, holds: 3";
    assert_eq!(size(&file("", "octets: 1000", "depth: 5")), (5 + 1 + 1 + 8, 1000));
    assert_eq!(size(&file("", "octets: 1000, filling: 2, keep: 4", held)), (5 + 3 + 2 + 4 + 8, 1000));
    assert_eq!(size(&file(&topics("bytes: 2000"), "octets: 1000", "depth: 1")), (11, 2000));
    assert_eq!(size(&file(&topics("buffers: 30"), "octets: 1000", "depth: 1")), (30, 1000));
    assert_eq!(size(&file(&topics("bytes: 2000"), "", "depth: 1")), (11, 2000));
    assert_eq!(size(&file(&topics("octets: 2000"), "", "depth: 1")), (11, 2000), "the old name of the setting");
}

#[test]
fn a_pattern_holds_buffers_too() {
    let text =
        file("", "octets: 10", "depth: 1") + "  all: { kind: perception, settings: { from: lidar/**, depth: 7 } }\n";
    assert_eq!(size(&text).0, 7 + 1 + 1 + 1 + 1 + 8);
}

#[test]
fn a_topic_without_declared_pool_usage_has_a_pool_that_grows() {
    let pool = pool(&file("topics: { lidar/points: {} }\n", "", "depth: 1")).unwrap();
    assert_eq!((pool.region, pool.buffers), (None, 256));
}

#[test]
fn invalid_pools_are_rejected_with_the_sum() {
    let one = file(&topics("buffers: 1"), "octets: 9", "depth: 2");
    for (text, expected) in [
        (
            file(&topics("buffers: 6, bytes: 4194304"), "octets: 1000", "depth: 5"),
            "test.yaml:4:13: topics.lidar/points.pool.buffers: 6 buffers are too few: 5 queued and 1 held by \
             `perception`, 1 filling in `lidar`, 8 for observers: 15",
        ),
        (
            one,
            "test.yaml:4:13: topics.lidar/points.pool.buffers: 1 buffer is too few: 2 queued and 1 held by \
             `perception`, 1 filling in `lidar`, 8 for observers: 12",
        ),
        (
            file(&topics("buffers: 16"), "octets: 1000, keep: 3", "depth: 5, holds: 0"),
            "test.yaml:4:13: topics.lidar/points.pool.buffers: 16 buffers are too few: 5 queued and 0 held by \
             `perception`, 1 filling and 3 kept in `lidar`, 8 for observers: 17",
        ),
        (
            file(&topics("buffers: 20, bytes: 999"), "octets: 1000", "depth: 5"),
            "test.yaml:4:26: topics.lidar/points.pool.bytes: 999 bytes are too few: `lidar` fills 1000",
        ),
        (
            file(&topics("bytes: 2000000000"), "octets: 1000", "depth: 5"),
            "test.yaml:4:13: topics.lidar/points.pool.bytes: 2000000000 bytes are more than 1073741824",
        ),
        (
            file(&topics("buffers: 20"), "", "depth: 5"),
            "test.yaml:4:5: topics.lidar/points.pool.bytes: no publisher declares the length of its messages; set 1 or more",
        ),
        (
            file("topics: { radar/points: {} }\n", "", "depth: 5"),
            "test.yaml:2:11: topics.radar/points: no component of the node publishes `radar/points`; it publishes \
             `lidar/points`",
        ),
        (
            file("", "octets: 1000000000", "depth: 5"),
            "test.yaml:3:37: components.lidar.settings.octets: 15 buffers of 1000000000 bytes are more than a pool can have, \
             which is 65536 buffers and 4294967296 bytes; needed are 5 queued and 1 held by `perception`, 1 filling in \
             `lidar`, 8 for observers: 15",
        ),
        (
            file(&topics("size: 3"), "", "depth: 5"),
            "test.yaml:4:13: topics.lidar/points.pool.size: unknown field `size`, expected one of buffers, bytes, octets",
        ),
        (
            file("memory: { locked: true }\n", "", "depth: 5"),
            "test.yaml:2:11: memory.locked: unknown field `locked`, expected one of lock, keep_freed, \
             huge_pages",
        ),
    ] {
        assert_eq!(refused(&text), expected);
    }
}

#[test]
fn a_topic_that_is_a_pattern_is_rejected() {
    let problem = refused(&file("topics: { lidar/*: {} }\n", "", "depth: 5"));
    assert!(problem.starts_with("test.yaml:2:11: topics.lidar/*: "), "{problem}");
}
