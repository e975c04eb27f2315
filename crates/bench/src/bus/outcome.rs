//! Result of one round of one case. State files contain it.

use serde::{Deserialize, Serialize};

/// Samples and counts of one round. Times are in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Outcome {
    /// Latencies from the publisher's stamp, all subscribers one after the other.
    pub(super) latencies: Vec<u64>,
    /// Latencies from the scheduled time of sending.
    pub(super) from_tick: Vec<u64>,
    /// Lateness of the publisher's wake-up.
    pub(super) lateness: Vec<u64>,
    /// Messages that a subscriber did not receive.
    pub(super) lost: u64,
    /// Cost of the path's threads, or `None` if unknown.
    pub(super) cost: Option<Counts>,
    /// Percentiles of a competitor that reports no samples.
    pub(super) summary: Option<SummaryUs>,
    /// Reason for a missing result; the case is not measured again.
    pub(super) refused: Option<String>,
    /// Note for the reader.
    pub(super) note: Option<String>,
}

/// Cost of the threads of the publisher and all subscribers after the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counts {
    /// Number of sent messages.
    pub(super) messages: u64,
    pub(super) page_faults: u64,
    pub(super) switches_voluntary: u64,
    pub(super) switches_involuntary: u64,
    /// Allocations, or `None` if they are not counted.
    pub(super) allocations: Option<u64>,
    pub(super) allocated_octets: Option<u64>,
    /// Deliveries of a message in other memory than the publisher's.
    pub(super) copied: Option<u64>,
}

/// Percentiles that a competitor computed itself, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct SummaryUs {
    #[serde(default)]
    pub(super) n: u64,
    pub(super) min: f64,
    pub(super) p50: f64,
    pub(super) p99: f64,
    pub(super) max: f64,
}

impl Outcome {
    pub(super) fn refused(why: &str) -> Self {
        Self { refused: Some(why.to_owned()), ..Self::default() }
    }

    pub(super) fn has_samples(&self) -> bool {
        !self.latencies.is_empty() || self.summary.is_some()
    }
}

impl Counts {
    /// Returns the sum.
    pub(super) fn and(self, other: Self) -> Self {
        let sum = |one: Option<u64>, two: Option<u64>| Some(one? + two?);
        Self {
            messages: self.messages + other.messages,
            page_faults: self.page_faults + other.page_faults,
            switches_voluntary: self.switches_voluntary + other.switches_voluntary,
            switches_involuntary: self.switches_involuntary + other.switches_involuntary,
            allocations: sum(self.allocations, other.allocations),
            allocated_octets: sum(self.allocated_octets, other.allocated_octets),
            copied: sum(self.copied, other.copied),
        }
    }
}
