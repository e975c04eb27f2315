//! What one round of one case gave. It is what a state file keeps, so it is plain.

use serde::{Deserialize, Serialize};

/// Samples and counts of one round. Times are in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Outcome {
    /// From the publisher's stamp to the subscriber, of every subscriber one after the other.
    pub(super) latencies: Vec<u64>,
    /// From the moment at which the message should have been sent to the subscriber.
    pub(super) from_tick: Vec<u64>,
    /// How late the publisher woke.
    pub(super) lateness: Vec<u64>,
    /// Messages that a subscriber should have got and did not.
    pub(super) lost: u64,
    /// What the threads of the path cost; none where it is not known.
    pub(super) cost: Option<Counts>,
    /// What a rival tells where it gives no samples.
    pub(super) summary: Option<SummaryUs>,
    /// Why there is nothing; the case is not measured again then.
    pub(super) refused: Option<String>,
    /// Something that a reader must know of it.
    pub(super) note: Option<String>,
}

/// What the threads of the path cost in the part that counts: the publisher's and all subscribers'.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counts {
    /// Messages that were sent.
    pub(super) messages: u64,
    pub(super) page_faults: u64,
    pub(super) switches_voluntary: u64,
    pub(super) switches_involuntary: u64,
    /// Allocations and their octets; none where nobody counts them.
    pub(super) allocations: Option<u64>,
    pub(super) allocated_octets: Option<u64>,
    /// Deliveries of a message in memory other than the publisher's.
    pub(super) copied: Option<u64>,
}

/// Percentiles that a rival has made itself, in microseconds.
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
    /// Both together.
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
