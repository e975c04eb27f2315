//! Counters of the bus that mirror those of the GeoNetworking router.

use viaduct_its::{Counters, DropReason, Station};
use viaduct_node::Context;

use super::Loss;
use crate::counter_mirror::CounterMirror;
use crate::kinds::its_station::ItsStation;

/// Name of a counter and its total. Packets taken = transmitted + suppressed + lost by reason + held.
type Total = (&'static str, fn(&Station) -> u64);

const TOTALS: &[Total] = &[
    ("packets_taken", |station| station.counters().taken),
    ("packets_transmitted", |station| station.counters().transmitted),
    ("packets_forwarded", |station| station.counters().forwarded),
    ("packets_suppressed", |station| station.counters().suppressed),
    ("repetitions", |station| station.counters().repetitions),
    ("beacons_sent", |station| station.counters().beacons_sent),
    ("beacons_skipped", |station| station.counters().beacons_skipped),
    ("location_requests_sent", |station| station.counters().location_requests_sent),
    ("location_replies_sent", |station| station.counters().location_replies_sent),
    ("stations_evicted", Station::evicted_stations),
];

/// A counter of packets by reason.
struct TotalByReason {
    name: &'static str,
    read: fn(&Counters, DropReason) -> u64,
    /// Text of the error report.
    description: &'static str,
    /// Returns `true` if packets counted under the reason are reported as lost.
    is_loss: fn(DropReason) -> bool,
}

const TOTALS_BY_REASON: [TotalByReason; 3] = [
    TotalByReason {
        name: "packets_lost",
        read: Counters::lost,
        description: "packets that were accepted for sending were dropped",
        is_loss: |_| true,
    },
    TotalByReason {
        name: "packets_not_forwarded",
        read: Counters::not_forwarded,
        description: "packets that were delivered could not be forwarded",
        // For any other reason, a delivered packet has reached its last hop as intended.
        is_loss: |reason| {
            matches!(reason, DropReason::BufferOverflow | DropReason::TransmitQueueFull | DropReason::SourceTooFast)
        },
    },
    TotalByReason {
        name: "packets_not_repeated",
        read: Counters::not_repeated,
        description: "repetitions of messages were not sent",
        is_loss: |_| true,
    },
];

/// The router's counters.
pub(in super::super) struct RouterCounters {
    totals: CounterMirror<&'static Total>,
    by_reason: CounterMirror<(&'static TotalByReason, DropReason)>,
}

impl RouterCounters {
    pub(super) fn new(context: &Context<ItsStation>) -> Self {
        let reasons = |total: &'static TotalByReason| DropReason::ALL.into_iter().map(move |reason| (total, reason));
        Self {
            totals: CounterMirror::new(TOTALS, |(name, _)| context.counter(name)),
            by_reason: CounterMirror::new(TOTALS_BY_REASON.iter().flat_map(reasons), |(total, reason)| {
                context.counter_for(total.name, reason.label())
            }),
        }
    }

    /// Prepares for a new router, which counts from 0.
    pub(in super::super) fn restart(&mut self) {
        self.totals.restart();
        self.by_reason.restart();
    }

    /// Adds the router's increases to the bus counters. Returns the losses since the last call.
    pub(in super::super) fn sync(&mut self, station: &Station) -> Vec<Loss> {
        self.totals.sync(|(_, read)| read(station));
        let mut losses = Vec::new();
        for ((total, reason), count) in self.by_reason.sync(|(total, reason)| (total.read)(station.counters(), *reason))
        {
            if (total.is_loss)(*reason) {
                losses.push(Loss {
                    description: total.description,
                    reason: reason.label(),
                    explanation: Some(reason.explain()),
                    count,
                });
            }
        }
        losses
    }
}
