//! The line protocol, as `rivals/README.md` describes it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The first line that a program prints.
#[derive(Debug, Serialize)]
pub struct Hello {
    /// Who is measured.
    pub rival: &'static str,
    /// The rival's own version.
    pub version: &'static str,
    /// Which of its documented modes this is, in words.
    pub mode: &'static str,
    /// Which values of a job's `cores` it can run with.
    pub placements: &'static [&'static str],
}

/// One measurement to make.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Job {
    /// Octets of a message, at least 8.
    pub size: usize,
    /// Messages that count.
    pub samples: usize,
    /// Messages before the first that counts.
    pub warm_up: usize,
    /// Nanoseconds from one message to the next.
    pub period_ns: u64,
    /// Whether filling the buffer is part of what is measured.
    pub fill: Fill,
    /// When a loan is filled.
    #[serde(default)]
    pub filled: Filled,
    /// Where the two sides run.
    pub cores: Cores,
    /// Which scheduling policy they run under.
    pub policy: Policy,
    /// Whether the way back counts as well.
    pub measure: Measure,
    /// Readers of the topic.
    #[serde(default = "one")]
    pub subscribers: usize,
}

impl Job {
    /// Whether a message is filled while the publisher sleeps until its deadline.
    pub fn is_filled_ahead(&self) -> bool {
        self.fill == Fill::Loan && self.filled == Filled::Ahead
    }
}

const fn one() -> usize {
    1
}

/// Whether filling the buffer is part of what is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fill {
    /// The message is filled before its stamp.
    Loan,
    /// The message is filled after its stamp.
    Copy,
}

/// When a loan is filled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Filled {
    /// While the publisher sleeps until the message's deadline.
    #[default]
    Ahead,
    /// Once it woke, right before the stamp.
    JustBefore,
}

/// Where the two sides run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cores {
    /// Both on the last core.
    Same,
    /// The publisher on the last core, the subscriber on the one before.
    Cross,
    /// Where the kernel puts them.
    Free,
}

/// Which scheduling policy the threads run under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// The kernel's default.
    Other,
    /// Real time: the publisher at 50, whoever delivers at 60.
    Fifo,
}

/// What a latency spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// From the stamp until the subscriber has touched the message.
    OneWay,
    /// From the stamp until the publisher has touched the answer.
    Rtt,
}

/// What a job gave.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Answer {
    /// Each latency on its own.
    Samples(Samples),
    /// What a tool printed that keeps its samples to itself.
    Summary(Summary),
    /// The rival cannot run such a job.
    Unsupported {
        /// Why not.
        unsupported: String,
    },
    /// The job failed.
    Error {
        /// The cause.
        error: String,
    },
}

/// Each message's latency.
#[derive(Debug, Default, Serialize)]
pub struct Samples {
    /// Of each message that arrived, in nanoseconds.
    pub latencies_ns: Vec<u64>,
    /// How late the publisher woke for each message, in nanoseconds.
    pub lateness_ns: Vec<u64>,
    /// Messages that were sent and did not arrive within a second after the last.
    pub lost: u64,
    /// Page faults of all of the rival's processes from the first message that counts to the last.
    pub page_faults: u64,
    /// What a reader of the figures must know.
    pub note: String,
}

/// What a tool printed.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// `min`, `p50`, `p99` and `max` in microseconds.
    pub summary_us: Value,
    /// Round trips behind it.
    pub n: u64,
    /// Messages that were lost, as far as the tool tells.
    pub lost: u64,
    /// What a reader of the figures must know.
    pub note: String,
}

impl Answer {
    /// A job that the rival cannot run.
    pub fn unsupported(why: &str) -> Self {
        Self::Unsupported { unsupported: why.to_owned() }
    }
}
