//! The lines between the bench, the ends in ROS, the bridges and the nodes.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use viaduct_bus::Percentiles;

use super::case::{Answer, Kind, Load};
use crate::process::Process;

/// A job of both ends in ROS (`rivals/README.md`).
#[derive(Clone, Debug, Serialize)]
pub(super) struct EndJob {
    #[serde(rename = "type")]
    pub(super) kind: Kind,
    pub(super) content: PathBuf,
    pub(super) octets: usize,
    pub(super) answer: Answer,
    pub(super) list_octets: usize,
    pub(super) direct: bool,
    pub(super) warm_up: u32,
    pub(super) messages: u32,
    pub(super) period_ns: u64,
    pub(super) silence_ns: u64,
}

impl EndJob {
    /// Returns the time from the first message to the last.
    pub(super) fn duration(&self) -> Duration {
        Duration::from_nanos(self.period_ns) * (self.warm_up + self.messages)
    }
}

/// Octets of a list of objects.
const LIST_OCTETS: usize = 2000;
/// Messages of each cell before the first one that counts.
pub(super) const WARM_UP: u32 = 5;

impl Load {
    /// Returns the job of the ends.
    pub(super) fn job(&self, content: PathBuf, messages: u32, silence: Duration, direct: bool) -> EndJob {
        EndJob {
            kind: self.kind,
            content,
            octets: self.octets(),
            answer: self.answer,
            list_octets: LIST_OCTETS,
            direct,
            warm_up: WARM_UP,
            messages,
            period_ns: self.period().as_nanos() as u64,
            silence_ns: silence.as_nanos() as u64,
        }
    }
}

/// A node that the bench starts as a process, and what it reports.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct NodeJob {
    /// The config of the node.
    pub(super) config: String,
    /// Messages that the bench receives in this node, if it is the end of the path.
    pub(super) watch: Option<Watch>,
}

/// Messages of a topic of a node.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Watch {
    pub(super) topic: String,
    /// Number of messages.
    pub(super) count: usize,
    pub(super) content: Watched,
}

/// The part of a message that the bench needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Watched {
    /// Its age.
    Age,
    /// The key figures that it has.
    Trip,
}

/// Key figures of a message that has come back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Trip {
    /// Number of the message at its source; 0: not known.
    pub(super) sequence: u64,
    pub(super) stages_ms: Vec<f64>,
    pub(super) total_ms: f64,
}

/// Times of a stage of all messages, in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct StageTimes {
    pub(super) name: String,
    pub(super) ms: Vec<f64>,
}

/// What the bench has received in a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Received {
    /// Ages of the messages in nanoseconds.
    pub(super) ages: Vec<u64>,
    pub(super) trips: Vec<Trip>,
}

/// A hop of a node since its start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct HopFigures {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) n: u64,
    pub(super) min_us: f64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    pub(super) p999_us: f64,
    pub(super) max_us: f64,
    pub(super) mean_us: f64,
    pub(super) sd_us: f64,
}

impl HopFigures {
    pub(super) fn new(from: String, to: String, total: &Percentiles) -> Self {
        let Percentiles { count, min_us, p50_us, p99_us, p999_us, max_us, mean_us, sd_us, .. } = *total;
        Self { from, to, n: count, min_us, p50_us, p99_us, p999_us, max_us, mean_us, sd_us }
    }
}

/// Version and configuration of a program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Ready {
    pub(super) version: String,
    pub(super) mode: String,
}

/// An answer of a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reply {
    Ready(Ready),
    /// Times of the vehicle's messages in nanoseconds, and of their answers; 0: none.
    Sent {
        times: Vec<u64>,
        answered: Vec<u64>,
    },
    /// Times at which the messages arrived at the cloud's end; 0: none.
    Arrived(Vec<u64>),
    /// Report of a node.
    Node {
        hops: Vec<HopFigures>,
        received: Received,
    },
    Error(String),
}

/// Waits for the answer of a program. An error of the program is an error.
pub(super) fn reply(process: &mut Process, timeout: Duration) -> Result<Reply, String> {
    let line = process.next_line(timeout)?;
    match serde_json::from_str(&line).map_err(|problem| format!("invalid answer: {problem}"))? {
        Reply::Error(why) => Err(why),
        reply => Ok(reply),
    }
}

/// Waits until a program is ready.
pub(super) fn ready(process: &mut Process, timeout: Duration) -> Result<Ready, String> {
    match reply(process, timeout)? {
        Reply::Ready(ready) => Ok(ready),
        other => Err(unexpected(&other)),
    }
}

pub(super) fn unexpected(reply: &Reply) -> String {
    format!("unexpected answer: {reply:?}").chars().take(200).collect()
}
