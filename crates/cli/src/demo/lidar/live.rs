//! The state of the demo: once a second while it runs, and the totals at its end.

use std::fmt::Write as _;

use comfy_table::Cell;
use viaduct_bus::BusSnapshot;
use viaduct_node::Node;

use super::super::snapshot::{counter, gauge, reasons};
use crate::table::{number, table};

/// Most scans that are on their way at a time: one at each of the queues that keep the newest scan, and one at each processing step.
const UNDER_WAY_MAX: i64 = 8;

/// Latencies of a stage of the path in milliseconds, over the window of the figures.
struct Stage {
    name: String,
    mean_ms: f64,
    median_ms: f64,
    p99_ms: f64,
}

/// The state at one time.
#[derive(Default)]
pub(super) struct Status {
    totals: Totals,
    /// The stages in the order of flow, and `total` as the last one; empty before the first scan came back.
    stages: Vec<Stage>,
    /// Original size of the compressed scans divided by their size; absent if none was compressed.
    compression_ratio: Option<f64>,
}

/// The scans since the start.
#[derive(Default)]
pub(super) struct Totals {
    published: u64,
    returned: u64,
    /// Vehicles that the cloud has found.
    vehicles: u64,
    /// Scans that were lost, with place and reason.
    lost: Vec<(String, u64)>,
}

impl Status {
    /// Reads the state of the nodes: cloud, link, vehicle.
    pub(super) fn read(nodes: &[Node]) -> Self {
        let [cloud, _, vehicle] = nodes else { return Self::default() };
        Self::of(&cloud.bus().snapshot(), &vehicle.bus().snapshot())
    }

    fn of(cloud: &BusSnapshot, vehicle: &BusSnapshot) -> Self {
        Self {
            totals: Totals::of(cloud, vehicle),
            stages: stages(vehicle),
            compression_ratio: gauge(vehicle, "uplink", "compression_ratio", None),
        }
    }

    /// Returns the state in one line.
    pub(super) fn line(&self) -> String {
        let Totals { published, returned, vehicles, .. } = self.totals;
        let mut text = format!("{published} scans sent, {returned} lists of vehicles came back, {vehicles} vehicles");
        if let Some(total) = self.stages.last() {
            let Stage { mean_ms, p99_ms, .. } = total;
            // Writing into a String cannot fail.
            let _ = write!(text, "; round trip mean {mean_ms:.1} ms p99 {p99_ms:.1} ms");
        }
        text
    }

    /// Returns the state as a table of at most 80 columns.
    pub(super) fn table(&self) -> String {
        let mut stages = table(["stage", "mean ms", "median ms", "p99 ms"]);
        for Stage { name, mean_ms, median_ms, p99_ms } in &self.stages {
            let latencies = [mean_ms, median_ms, p99_ms].map(|ms| number(format!("{ms:.2}")));
            stages.add_row([Cell::new(name)].into_iter().chain(latencies));
        }
        let Totals { published, returned, vehicles, .. } = self.totals;
        let ratio = self.compression_ratio.map_or_else(|| "none".to_owned(), |ratio| format!("{ratio:.2}"));
        format!(
            "{}\n\n{published} scans sent, {returned} lists of vehicles came back, {vehicles} vehicles\n\
             compression ratio: {ratio}",
            stages.trim_fmt(),
        )
    }
}

impl Totals {
    /// Reads the totals of the nodes: cloud, link, vehicle.
    pub(super) fn read(nodes: &[Node]) -> Self {
        Status::read(nodes).totals
    }

    fn of(cloud: &BusSnapshot, vehicle: &BusSnapshot) -> Self {
        let returned = counter(vehicle, "figures", "received", None) - counter(vehicle, "figures", "repeated", None);
        let mut lost = Vec::new();
        for (node, topic, reader) in [
            (vehicle, "lidar/packets", "uplink"),
            (vehicle, "lidar/points", "uplink"),
            (cloud, "lidar/packets", "points"),
            (cloud, "lidar/points", "detector"),
            (cloud, "lidar/objects", "bridge"),
            (vehicle, "lidar/objects", "figures"),
        ] {
            add_queue(&mut lost, node, topic, reader);
        }
        for (node, component, name) in [
            (vehicle, "uplink", "dropped"),
            (cloud, "bridge", "refused"),
            (cloud, "points", "dropped"),
            (cloud, "detector", "dropped"),
            (cloud, "bridge", "dropped"),
            (vehicle, "uplink", "refused"),
        ] {
            let reasons = reasons(node, component, name).into_iter();
            lost.extend(reasons.map(|(reason, count)| (format!("{component} of {}: {reason}", node.node), count)));
        }
        Self {
            published: counter(vehicle, "velodyne", "published", None),
            returned,
            vehicles: counter(cloud, "detector", "vehicles", None),
            lost,
        }
    }

    /// Returns the number of scans that have neither come back nor been lost. Negative if messages other than scans were lost too.
    pub(super) fn under_way(&self) -> i64 {
        let lost: u64 = self.lost.iter().map(|(_, count)| count).sum();
        self.published.cast_signed() - self.returned.cast_signed() - lost.cast_signed()
    }

    /// Returns `true` if each scan has come back, was counted as lost, or can still be on its way.
    pub(super) fn is_settled(&self) -> bool {
        (0..=UNDER_WAY_MAX).contains(&self.under_way())
    }

    pub(super) fn table(&self) -> String {
        let mut rows = table(["scans", "count"]);
        rows.add_row([Cell::new("sent"), number(self.published)]);
        rows.add_row([Cell::new("came back"), number(self.returned)]);
        for (place, count) in &self.lost {
            rows.add_row([Cell::new(format!("lost, {place}")), number(count)]);
        }
        rows.add_row([Cell::new("on their way at the end"), number(self.under_way().max(0))]);
        rows.trim_fmt()
    }
}

/// Adds the samples of a topic that the queue of a reader has lost.
fn add_queue(lost: &mut Vec<(String, u64)>, node: &BusSnapshot, topic: &str, reader: &str) {
    let topics = node.topics.iter().filter(|snapshot| snapshot.topic == topic);
    let queues = topics.flat_map(|snapshot| &snapshot.subscriptions).filter(|queue| queue.subscriber == reader);
    for (reason, count) in queues.flat_map(|queue| &queue.dropped) {
        lost.push((format!("queue of {reader} of {}: {reason}", node.node), *count));
    }
}

/// Returns the stages that `figures` has measured, in the order in which it declares them.
fn stages(vehicle: &BusSnapshot) -> Vec<Stage> {
    let means = vehicle.gauges.iter().filter(|row| row.component == "figures" && row.name == "latency_mean_ms");
    let mut stages: Vec<Stage> = means
        .filter_map(|row| {
            let name = row.part.clone()?;
            let of = |figure: &str| gauge(vehicle, "figures", figure, Some(&name));
            let (median_ms, p99_ms) = (of("latency_median_ms")?, of("latency_p99_ms")?);
            Some(Stage { mean_ms: row.value, median_ms, p99_ms, name })
        })
        .collect();
    stages.sort_by_key(|stage| STAGES.iter().position(|name| *name == stage.name));
    stages
}

/// The stages of the path in the order of flow.
const STAGES: [&str; 12] = [
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
    "total",
];
