//! The balance of the demo: at each stage, received = delivered + dropped.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use comfy_table::Cell;
use viaduct_bus::BusSnapshot;

use crate::table::{number, table};

/// The counters of one stage. It is balanced if `received == delivered + dropped + waiting`.
struct Stage {
    name: &'static str,
    unit: &'static str,
    received: u64,
    delivered: u64,
    /// Reason and count. Reasons that did not occur are absent.
    dropped: Vec<(String, u64)>,
    waiting: u64,
}

/// The stages in the order in which messages pass them.
pub(super) struct Balance {
    stages: Vec<Stage>,
}

impl Balance {
    /// Reads the counters of the vehicles' nodes and of the edge.
    pub(super) fn read(vehicles: &[BusSnapshot], edge: &BusSnapshot, with_capture: bool) -> Self {
        let sent: u64 = vehicles.iter().map(|node| count(node, "fleet", "sent")).sum();
        let generated: u64 = vehicles.iter().map(|node| count(node, "fleet", "generated")).sum();
        let dropped = vehicles.iter().flat_map(|node| reasons(node, "fleet", "dropped")).collect();
        let mut stages = vec![
            Stage {
                name: "vehicles: encode, send",
                unit: "CAM",
                received: generated,
                delivered: sent,
                dropped,
                waiting: 0,
            },
            Stage {
                name: "air: UDP multicast",
                unit: "packet",
                received: sent,
                delivered: count(edge, "station", "received"),
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
            name: "MQTT: to subscriber",
            unit: "message",
            received: count(edge, "uplink", "published"),
            delivered: count(edge, "probe", "received"),
            dropped: Vec::new(),
            waiting: 0,
        });
        stages.extend([subscription("bus: to the API", "api", delivered, edge), api(edge)]);
        Self { stages }
    }

    /// Returns `true` if each stage is balanced.
    fn is_balanced(&self) -> bool {
        self.stages.iter().all(Stage::is_balanced)
    }

    /// Returns `true` if each stage is balanced and no message waits or is in flight.
    pub(super) fn is_settled(&self) -> bool {
        self.is_balanced() && self.stages.iter().all(|stage| stage.waiting == 0)
    }

    /// Returns the stages as a table for the terminal, with the reasons of drops below it.
    pub(super) fn table(&self) -> String {
        let mut table = table(["stage", "unit", "received", "delivered", "dropped", "waiting", "balance"]);
        for stage in &self.stages {
            table.add_row([
                Cell::new(stage.name),
                Cell::new(stage.unit),
                number(stage.received),
                number(stage.delivered),
                number(stage.dropped()),
                number(stage.waiting),
                Cell::new(if stage.is_balanced() { "ok" } else { "MISMATCH" }),
            ]);
        }
        let mut text = table.trim_fmt();
        for stage in self.stages.iter().filter(|stage| !stage.dropped.is_empty()) {
            let reasons: Vec<String> =
                stage.dropped.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
            // Writing into a String cannot fail.
            let _ = write!(text, "\n{}: dropped: {}", stage.name, reasons.join(", "));
        }
        text
    }
}

impl Stage {
    fn dropped(&self) -> u64 {
        self.dropped.iter().map(|(_, count)| count).sum()
    }

    fn is_balanced(&self) -> bool {
        self.received == self.delivered + self.dropped() + self.waiting
    }
}

/// Returns the stage of a station: it receives frames and delivers messages and beacons.
fn station(name: &'static str, component: &str, edge: &BusSnapshot) -> Stage {
    Stage {
        name,
        unit: "packet",
        received: count(edge, component, "received"),
        delivered: count(edge, component, "delivered") + count(edge, component, "beacons"),
        dropped: reasons(edge, component, "dropped"),
        waiting: 0,
    }
}

/// Returns the stage of a subscriber's queues on the bus. `published` is the number of messages of all stations.
fn subscription(name: &'static str, subscriber: &str, published: u64, edge: &BusSnapshot) -> Stage {
    // A subscription to a pattern has one entry at each topic that matches.
    let entries =
        || edge.topics.iter().flat_map(|topic| &topic.subscriptions).filter(|entry| entry.subscriber == subscriber);
    let mut dropped = BTreeMap::<String, u64>::new();
    for (reason, count) in entries().flat_map(|entry| &entry.dropped) {
        *dropped.entry((*reason).to_owned()).or_default() += count;
    }
    Stage {
        name,
        unit: "message",
        received: published,
        delivered: entries().map(|entry| entry.delivered).sum(),
        dropped: dropped.into_iter().collect(),
        waiting: entries().map(|entry| entry.queued as u64).sum(),
    }
}

fn uplink(edge: &BusSnapshot) -> Stage {
    Stage {
        name: "edge: uplink to broker",
        unit: "message",
        received: count(edge, "uplink", "taken"),
        delivered: count(edge, "uplink", "published"),
        dropped: reasons(edge, "uplink", "dropped"),
        // The outbox counts messages as they enter and leave it, independent of `published` and `dropped`.
        waiting: count(edge, "uplink", "outbox_added") - count(edge, "uplink", "outbox_removed"),
    }
}

fn api(edge: &BusSnapshot) -> Stage {
    Stage {
        name: "edge: cache of the API",
        unit: "message",
        received: count(edge, "api", "received"),
        delivered: count(edge, "api", "inserted"),
        dropped: reasons(edge, "api", "dropped"),
        waiting: 0,
    }
}

/// Returns a counter of a component, summed over its reasons.
pub(super) fn count(node: &BusSnapshot, component: &str, name: &str) -> u64 {
    let own = |row: &&viaduct_bus::CounterSnapshot| row.component == component && row.name == name;
    node.counters.iter().filter(own).map(|row| row.value).sum()
}

/// Returns the non-zero values of a counter of a component, by reason.
fn reasons(node: &BusSnapshot, component: &str, name: &str) -> Vec<(String, u64)> {
    let own = |row: &&viaduct_bus::CounterSnapshot| row.component == component && row.name == name && row.value > 0;
    node.counters.iter().filter(own).map(|row| (row.reason.clone().unwrap_or_default(), row.value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_fits_80_columns_and_names_the_reasons_below() {
        let stage = |name| Stage {
            name,
            unit: "message",
            received: 10_000_000,
            delivered: 9_999_990,
            dropped: vec![("overwritten".to_owned(), 7), ("outbox_full".to_owned(), 3)],
            waiting: 0,
        };
        let names = ["vehicles: encode, send", "edge: recorded station", "edge: cache of the API"];
        let text = Balance { stages: names.map(stage).into() }.table();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.ends_with("\nedge: cache of the API: dropped: overwritten 7, outbox_full 3"), "{text}");
    }
}
