//! Figures of an emulated link.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use viaduct_netem::{
    Link, LinkConfig,
    link::{LinkCounters, LinkDropReason},
};

/// Figures of both directions of an emulated link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkReport {
    /// Packets from `a` to `b`.
    pub a_to_b: DirectionReport,
    /// Packets from `b` to `a`.
    pub b_to_a: DirectionReport,
}

/// Figures of one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DirectionReport {
    /// The present settings.
    pub settings: LinkConfig,
    /// Packets that the sending end passed to the emulator.
    pub received: u64,
    /// Packets that the emulator duplicated.
    pub duplicated: u64,
    /// Packets that were passed to the receiving end.
    pub delivered: u64,
    /// Packets in the queue and in transit.
    pub held: u64,
    /// Dropped packets by reason. Reasons without a packet are included.
    ///
    /// Always: received + duplicated = delivered + held + the sum of these, except for `interface_queue`: the kernel has dropped
    /// such a packet before the emulator received it.
    pub dropped: BTreeMap<String, u64>,
    /// Lateness of the delivered packets.
    pub lateness: Lateness,
}

/// Distribution of the time between the arrival of a packet in the model and its write to the receiving end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lateness {
    /// Number of packets.
    pub packets: u64,
    /// Median in microseconds.
    pub p50_us: f64,
    /// 99th percentile in microseconds.
    pub p99_us: f64,
    /// Maximum in microseconds.
    pub max_us: f64,
}

/// Drops outside of the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outside {
    /// Packets longer than the MTU.
    pub(super) longer_than_mtu: u64,
    /// Packets that the receiving end's interface has refused.
    pub(super) not_written: u64,
    /// Packets that the kernel has dropped because the emulator did not read them in time.
    pub(super) interface_queue: u64,
}

impl DirectionReport {
    /// Returns the figures of a direction.
    pub(super) fn of(settings: LinkConfig, link: &Link, outside: Outside, lateness: Lateness) -> Self {
        let counters = link.counters();
        Self {
            settings,
            received: counters.received + outside.longer_than_mtu,
            duplicated: counters.duplicated,
            delivered: counters.delivered - outside.not_written,
            held: link.packets() as u64,
            dropped: dropped(counters, outside),
            lateness,
        }
    }

    /// Returns the number of packets dropped for the given reason, or 0 if there is no such reason.
    #[must_use]
    pub fn dropped(&self, reason: &str) -> u64 {
        self.dropped.get(reason).copied().unwrap_or(0)
    }
}

fn dropped(counters: &LinkCounters, outside: Outside) -> BTreeMap<String, u64> {
    let model = LinkDropReason::ALL.map(|reason| (reason.label(), counters.dropped(reason)));
    let outside = [
        ("longer_than_mtu", outside.longer_than_mtu),
        ("not_written", outside.not_written),
        ("interface_queue", outside.interface_queue),
    ];
    model.into_iter().chain(outside).map(|(reason, count)| (reason.to_owned(), count)).collect()
}
