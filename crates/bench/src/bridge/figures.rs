//! The results of a run: cells with all their rounds, their floors, and figures that are computed from both.

use super::case::{Answer, Cell, Compression, Encryption, Kind, Link, Load, Method, Setup};
use super::job::HopFigures;
use super::outcome::{Outcome, milliseconds};
use crate::state::Measured;
use crate::statistics::{Summary, percentile};

/// The results of a run.
pub(super) struct Figures {
    all: Vec<(Cell, Outcome)>,
}

/// A stage of the path, as Viaduct's nodes report it: one hop, or several that follow each other.
pub(super) struct Stage<'a> {
    pub(super) name: &'static str,
    pub(super) hops: Vec<&'a HopFigures>,
}

/// Stages by the names of the paper: the node that reports it (0: the vehicle's, 1: the cloud's), and its hops. A crossing out of ROS
/// begins with the complete message of ROS and ends with its last octet in the broker's socket; a crossing into ROS begins with the
/// complete message of MQTT and ends with its last octet in the socket of ROS. The way between begins before the first octet is
/// written.
type Hop = (&'static str, &'static str);
const STAGES: [(&str, usize, &[Hop]); 6] = [
    ("vehicle_interface_out", 0, &[("origin", "v_up")]),
    ("vehicle_to_cloud", 1, &[("v_up", "c_down")]),
    ("cloud_interface_in", 1, &[("c_down", "c_down"), ("c_down", "c_ros"), ("c_ros", "c_ros")]),
    ("cloud_interface_out", 1, &[("origin", "c_up")]),
    ("cloud_to_vehicle", 0, &[("c_up", "v_down")]),
    ("vehicle_interface_in", 0, &[("v_down", "v_down"), ("v_down", "v_ros"), ("v_ros", "v_ros")]),
];
/// The crossings that carry the cloud.
pub(super) const CROSSINGS: [&str; 2] = ["vehicle_interface_out", "cloud_interface_in"];

impl Stage<'_> {
    /// Returns the sum of a figure of all hops in milliseconds.
    pub(super) fn sum_ms(&self, figure: fn(&HopFigures) -> f64) -> f64 {
        self.hops.iter().map(|hop| figure(hop)).sum::<f64>() / 1e3
    }
}

impl Figures {
    pub(super) fn of(cells: &[Cell], measured: &Measured<Outcome>) -> Self {
        let mut all: Vec<(Cell, Outcome)> = Vec::new();
        for cell in cells {
            let Some(outcome) = measured.get(&cell.key(), cell.round.into()) else { continue };
            let key = Cell { round: 0, ..*cell };
            match all.iter_mut().find(|(known, _)| *known == key) {
                Some((_, known)) => known.join(outcome),
                None => all.push((key, outcome.clone())),
            }
        }
        Self { all }
    }

    /// Returns the measured cells.
    pub(super) fn measured(&self) -> impl Iterator<Item = &(Cell, Outcome)> {
        self.all.iter().filter(|(_, outcome)| outcome.refused.is_none())
    }

    /// Returns the cell of a setup and a message that the cloud answers with a list.
    pub(super) fn find(&self, setup: &Setup, kind: Kind, percent: u8) -> Option<&(Cell, Outcome)> {
        self.find_answered(setup, kind, percent, Answer::List)
    }

    /// Returns the cell of a setup, a message and its answer.
    pub(super) fn find_answered(
        &self,
        setup: &Setup,
        kind: Kind,
        percent: u8,
        answer: Answer,
    ) -> Option<&(Cell, Outcome)> {
        let is_it = |(cell, _): &&(Cell, Outcome)| {
            cell.setup == *setup && cell.load.kind == kind && cell.load.percent == percent && cell.load.answer == answer
        };
        self.measured().find(is_it)
    }

    /// Returns the median of a floor for a message.
    fn floor_ms(&self, setup: &Setup, load: &Load) -> Option<f64> {
        let (_, outcome) = self.find(setup, load.kind, load.percent)?;
        percentile(&mut milliseconds(&outcome.one_way), 500)
    }

    /// Returns the median of the path of a cell without a bridge, one way.
    pub(super) fn path_floor_ms(&self, cell: &Cell) -> Option<f64> {
        let Cell { setup, load, .. } = cell;
        let host = |method| plain(method, Link::Host);
        let mqtt = Setup { qos: setup.qos, ..plain(Method::Mqtt, setup.link) };
        let ros = host(if setup.method.has_ros2() { Method::DirectRos2 } else { Method::Direct });
        let tcp = host(Method::Tcp);
        match setup.method {
            Method::Ros1 | Method::Ros2 | Method::MqttClient | Method::MqttBridge => {
                Some(self.floor_ms(&ros, load)? + self.floor_ms(&tcp, load)? + self.floor_ms(&mqtt, load)?)
            }
            Method::InVehicle => Some(self.floor_ms(&ros, load)? + self.floor_ms(&tcp, load)?),
            Method::Bus => self.floor_ms(&mqtt, load),
            _ => None,
        }
    }

    /// Returns the means of the floors of a stage of the use case, or of all stages together. The way between vehicle and cloud is a message
    /// of plain MQTT, once with the scan or cloud and once empty, each half of the time: both ways count as one figure.
    pub(super) fn use_case_floor_ms(&self, link: Link, kind: Kind, stage: &str) -> Option<f64> {
        let mean = |method, link, kind, percent| {
            let (_, outcome) = self.find(&plain(method, link), kind, percent)?;
            summary(&outcome.one_way).map(|summary| summary.mean)
        };
        let ways = || {
            let (there, back) = (mean(Method::Mqtt, link, kind, 100)?, mean(Method::Mqtt, link, Kind::Scan, 0)?);
            Some(there + back)
        };
        let detection = || mean(Method::Detector, Link::Host, Kind::Cloud, 100);
        match stage {
            "vehicle_to_cloud" | "cloud_to_vehicle" => ways().map(|both| both / 2.0),
            "detection" => detection(),
            "total" => Some(ways()? + detection()?),
            _ => None,
        }
    }

    /// Returns what the bridges add to the path, for each message. Negative samples are kept: they are as short as the floor's median.
    /// Over the emulated link, the jitter of the link hides the difference.
    pub(super) fn interface_ms(&self, cell: &Cell, outcome: &Outcome) -> Option<Vec<f64>> {
        if cell.setup.link.is_emulated() || cell.load.answer != Answer::List {
            return None;
        }
        let floor = self.path_floor_ms(cell)?;
        Some(milliseconds(&outcome.one_way).into_iter().map(|sample| sample - floor).collect())
    }

    /// Returns notes about what was not measured, versions, and losses.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = Vec::new();
        let mut add = |note: String| {
            if !notes.contains(&note) {
                notes.push(note);
            }
        };
        for (cell, outcome) in &self.all {
            let name = cell.setup.method.label();
            if let Some(why) = &outcome.refused {
                add(format!("{name}, {}: not measured: {why}", cell.setup.link.name()));
            }
            if !outcome.version.version.is_empty() {
                add(format!("{name} {}: {}", outcome.version.version, outcome.version.mode));
            }
            if let Some(broker) = &outcome.broker {
                add(format!("broker: {broker}"));
            }
            let lost = outcome.lost();
            if lost > 0 && outcome.refused.is_none() {
                add(format!("{}: {lost} of {} messages have not arrived", cell.key(), outcome.sent));
            }
            if let Some(drops) = outcome.queue_drops.filter(|drops| *drops > 0) {
                add(format!("{}: a full queue of the emulated link dropped {drops} packets", cell.key()));
            }
        }
        notes
    }
}

/// Returns the stages of a cell, if the nodes were started for this cell alone.
pub(super) fn stages<'a>(cell: &Cell, outcome: &'a Outcome) -> Vec<Stage<'a>> {
    let stage = |(name, node, hops): &(&'static str, usize, &[Hop])| {
        let hops: Option<Vec<_>> = hops.iter().map(|(from, to)| outcome.hop(*node, from, to)).collect();
        hops.map(|hops| Stage { name, hops })
    };
    if cell.has_hops() { STAGES.iter().filter_map(stage).collect() } else { Vec::new() }
}

/// Returns the sum of a figure of both crossings that carry the cloud, in milliseconds.
pub(super) fn crossings_ms(cell: &Cell, outcome: &Outcome, figure: fn(&HopFigures) -> f64) -> Option<f64> {
    let stages = stages(cell, outcome);
    let one = |name: &&str| stages.iter().find(|stage| stage.name == *name).map(|stage| stage.sum_ms(figure));
    CROSSINGS.iter().map(one).sum()
}

/// Returns a setup without encryption, with quality of service 0.
pub(super) const fn plain(method: Method, link: Link) -> Setup {
    Setup { method, link, encryption: Encryption::None, qos: 0, compression: Compression::None }
}

/// Returns the summary of times in milliseconds.
pub(super) fn summary(nanos: &[u64]) -> Option<Summary> {
    Summary::of(&milliseconds(nanos))
}
