//! Whether every stage of the demo adds up.

use std::collections::BTreeMap;

use comfy_table::{Cell, CellAlignment, Table, presets};
use viaduct_bus::BusSnapshot;

/// One stage: what went in is what came out, what was dropped, and what waits.
struct Stage {
    name: &'static str,
    unit: &'static str,
    went_in: u64,
    came_out: u64,
    /// Reason and count; reasons that did not happen are absent.
    dropped: Vec<(String, u64)>,
    waiting: u64,
}

/// All stages, in the order of flow.
pub(super) struct Accounts {
    stages: Vec<Stage>,
}

impl Accounts {
    /// Reads the counters of the vehicles' nodes and of the edge.
    pub(super) fn read(vehicles: &[BusSnapshot], edge: &BusSnapshot, with_capture: bool) -> Self {
        let sent: u64 = vehicles.iter().map(|node| count(node, "fleet", "sent")).sum();
        let generated: u64 = vehicles.iter().map(|node| count(node, "fleet", "generated")).sum();
        let refused = vehicles.iter().flat_map(|node| reasons(node, "fleet", "dropped")).collect();
        let mut stages = vec![
            Stage {
                name: "vehicles: encode, send",
                unit: "CAM",
                went_in: generated,
                came_out: sent,
                dropped: refused,
                waiting: 0,
            },
            Stage {
                name: "air: UDP multicast",
                unit: "packet",
                went_in: sent,
                came_out: count(edge, "station", "received"),
                dropped: reasons(edge, "station", "missed"),
                waiting: 0,
            },
            station("edge: station", "station", edge),
        ];
        if with_capture {
            stages.push(station("edge: recorded station", "recorded", edge));
        }
        let delivered = count(edge, "station", "delivered") + count(edge, "recorded", "delivered");
        stages.extend([subscription("bus: to the uplink", "uplink", delivered, edge), uplink(edge)]);
        stages.push(Stage {
            name: "MQTT: broker to subscriber",
            unit: "message",
            went_in: count(edge, "uplink", "published"),
            came_out: count(edge, "probe", "received"),
            dropped: Vec::new(),
            waiting: 0,
        });
        stages.extend([subscription("bus: to the API", "api", delivered, edge), api(edge)]);
        Self { stages }
    }

    /// Whether each stage's input is accounted for.
    pub(super) fn add_up(&self) -> bool {
        self.stages.iter().all(Stage::adds_up)
    }

    /// Whether nothing waits or is on its way.
    pub(super) fn settled(&self) -> bool {
        self.add_up() && self.stages.iter().all(|stage| stage.waiting == 0)
    }

    /// The stages as a table for the terminal.
    pub(super) fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_header([
            "stage",
            "",
            "in",
            "out",
            "dropped",
            "waiting",
            "why dropped",
            "",
        ]);
        for stage in &self.stages {
            let why: Vec<String> = stage.dropped.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
            let number = |value: u64| Cell::new(value).set_alignment(CellAlignment::Right);
            table.add_row([
                Cell::new(stage.name),
                Cell::new(stage.unit),
                number(stage.went_in),
                number(stage.came_out),
                number(stage.dropped()),
                number(stage.waiting),
                Cell::new(why.join(", ")),
                Cell::new(if stage.adds_up() { "adds up" } else { "DOES NOT ADD UP" }),
            ]);
        }
        table
    }
}

impl Stage {
    fn dropped(&self) -> u64 {
        self.dropped.iter().map(|(_, count)| count).sum()
    }

    fn adds_up(&self) -> bool {
        self.went_in == self.came_out + self.dropped() + self.waiting
    }
}

/// A station: frames in; messages and beacons out.
fn station(name: &'static str, component: &str, edge: &BusSnapshot) -> Stage {
    Stage {
        name,
        unit: "packet",
        went_in: count(edge, component, "received"),
        came_out: count(edge, component, "delivered") + count(edge, component, "beacons"),
        dropped: reasons(edge, component, "dropped"),
        waiting: 0,
    }
}

/// A queue of the bus: what the stations published, as one subscriber got it.
fn subscription(name: &'static str, subscriber: &str, published: u64, edge: &BusSnapshot) -> Stage {
    // A subscription to a pattern has an end at each of its topics.
    let ends = || edge.topics.iter().flat_map(|topic| &topic.subscriptions).filter(|end| end.subscriber == subscriber);
    let mut dropped = BTreeMap::<String, u64>::new();
    for (reason, count) in ends().flat_map(|end| &end.dropped) {
        *dropped.entry((*reason).to_owned()).or_default() += count;
    }
    Stage {
        name,
        unit: "message",
        went_in: published,
        came_out: ends().map(|end| end.delivered).sum(),
        dropped: dropped.into_iter().collect(),
        waiting: ends().map(|end| end.queued as u64).sum(),
    }
}

fn uplink(edge: &BusSnapshot) -> Stage {
    Stage {
        name: "edge: uplink to the broker",
        unit: "message",
        went_in: count(edge, "uplink", "taken"),
        came_out: count(edge, "uplink", "published"),
        dropped: reasons(edge, "uplink", "dropped"),
        // The outbox counts what enters and leaves it, apart from what becomes of it.
        waiting: count(edge, "uplink", "outbox_added") - count(edge, "uplink", "outbox_removed"),
    }
}

fn api(edge: &BusSnapshot) -> Stage {
    Stage {
        name: "edge: cache of the API",
        unit: "message",
        went_in: count(edge, "api", "received"),
        came_out: count(edge, "api", "inserted"),
        dropped: reasons(edge, "api", "dropped"),
        waiting: 0,
    }
}

/// A counter of a component, all reasons together.
pub(super) fn count(node: &BusSnapshot, component: &str, name: &str) -> u64 {
    let own = |row: &&viaduct_bus::CounterSnapshot| row.component == component && row.name == name;
    node.counters.iter().filter(own).map(|row| row.value).sum()
}

fn reasons(node: &BusSnapshot, component: &str, name: &str) -> Vec<(String, u64)> {
    let own = |row: &&viaduct_bus::CounterSnapshot| row.component == component && row.name == name && row.value > 0;
    node.counters.iter().filter(own).map(|row| (row.reason.clone().unwrap_or_default(), row.value)).collect()
}
