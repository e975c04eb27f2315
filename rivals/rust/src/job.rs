//! The line protocol of `rivals/README.md`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// First line of a program.
#[derive(Debug, Serialize)]
pub struct Hello {
    /// Name of the rival.
    pub rival: &'static str,
    /// Version of the rival.
    pub version: &'static str,
    /// Documented mode, in words.
    pub mode: &'static str,
    /// Supported values of a job's `cores`.
    pub placements: &'static [&'static str],
}

/// A measurement.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Job {
    /// Size of a message in bytes, at least 8.
    pub size: usize,
    /// Number of measured messages.
    pub samples: usize,
    /// Number of messages of the warm-up.
    pub warm_up: usize,
    /// Period in nanoseconds.
    pub period_ns: u64,
    /// Position of the filling relative to the stamp.
    pub fill: Fill,
    /// Time at which a loan is filled.
    #[serde(default)]
    pub filled: Filled,
    /// Cores of publisher and subscriber.
    pub cores: Cores,
    /// Scheduling policy of the threads.
    pub policy: Policy,
    /// One-way latency or round trip.
    pub measure: Measure,
    /// Number of subscribers.
    #[serde(default = "one")]
    pub subscribers: usize,
}

impl Job {
    /// Returns `true` if a message is filled while the publisher sleeps until its deadline.
    pub fn is_filled_ahead(&self) -> bool {
        self.fill == Fill::Loan && self.filled == Filled::Ahead
    }
}

const fn one() -> usize {
    1
}

/// Position of the filling relative to the stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fill {
    /// Filled before the stamp.
    Loan,
    /// Filled after the stamp.
    Copy,
}

/// Time at which a loan is filled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Filled {
    /// While the publisher sleeps until the message's deadline.
    #[default]
    Ahead,
    /// After the wake-up, immediately before the stamp.
    JustBefore,
}

/// Cores of publisher and subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cores {
    /// Both on the last core.
    Same,
    /// The publisher on the last core, the subscriber on the one before.
    Cross,
    /// Chosen by the kernel.
    Free,
}

/// Scheduling policy of the threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// The kernel's default.
    Other,
    /// SCHED_FIFO: the publisher has priority 50, subscriber and transport threads 60.
    Fifo,
}

/// Start and end of a latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// From the stamp until the subscriber has touched the message.
    OneWay,
    /// From the stamp until the publisher has touched the answer.
    Rtt,
}

/// Result of a job.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Answer {
    /// All latencies.
    Samples(Samples),
    /// Percentiles of a tool that does not print its samples.
    Summary(Summary),
    /// The rival does not support the job.
    Unsupported {
        /// Reason.
        unsupported: String,
    },
    /// The job failed.
    Error {
        /// Cause.
        error: String,
    },
}

/// Latencies of a job.
#[derive(Debug, Default, Serialize)]
pub struct Samples {
    /// Latency of each received message in nanoseconds.
    pub latencies_ns: Vec<u64>,
    /// Lateness of the publisher's wake-up for each message, in nanoseconds.
    pub lateness_ns: Vec<u64>,
    /// Number of sent messages that did not arrive within one second after the last.
    pub lost: u64,
    /// Page faults of all the rival's processes from the first to the last measured message.
    pub page_faults: u64,
    /// Note for the reader of the figures; may be empty.
    pub note: String,
}

/// Percentiles printed by a tool.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// `min`, `p50`, `p99` and `max` in microseconds.
    pub summary_us: Value,
    /// Number of round trips.
    pub n: u64,
    /// Number of lost messages that the tool reports.
    pub lost: u64,
    /// Note for the reader of the figures; may be empty.
    pub note: String,
}

impl Answer {
    /// Returns the answer to a job that the rival cannot run.
    pub fn unsupported(why: &str) -> Self {
        Self::Unsupported { unsupported: why.to_owned() }
    }
}
