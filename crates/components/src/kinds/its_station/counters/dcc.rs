//! Counters of the bus that mirror those of the DCC gate.

use viaduct_bus::Counter;
use viaduct_its::dcc::DccCounters as GateCounters;
use viaduct_node::Context;

use super::Loss;
use crate::counter_mirror::CounterMirror;
use crate::kinds::its_station::ItsStation;

/// Drop reason of the gate and its total.
type Total = (&'static str, fn(&GateCounters) -> u64);

const TOTALS: &[Total] =
    &[("expired", |gate| gate.expired), ("overflowed", |gate| gate.overflowed), ("too_long", |gate| gate.too_long)];

/// Frames that the gate dropped, by reason.
pub(in super::super) struct DccCounters {
    dropped: CounterMirror<&'static Total>,
    /// Frames that were still waiting when the station stopped.
    stopped: Counter,
}

impl DccCounters {
    pub(super) fn new(context: &Context<ItsStation>) -> Self {
        Self {
            dropped: CounterMirror::new(TOTALS, |(reason, _)| context.counter_for("dcc_dropped", reason)),
            stopped: context.counter_for("dcc_dropped", "stopped"),
        }
    }

    /// Adds the gate's increases to the bus counters. Returns the losses since the last call.
    pub(in super::super) fn sync(&mut self, gate: &GateCounters) -> Vec<Loss> {
        let increases = self.dropped.sync(|(_, read)| read(gate));
        let loss = |((reason, _), count): (&&'static Total, u64)| Loss {
            description: "frames were dropped by congestion control",
            reason,
            explanation: None,
            count,
        };
        increases.into_iter().map(loss).collect()
    }

    /// Counts the frames that are still waiting when the station stops.
    pub(in super::super) fn count_stopped(&self, gate: &GateCounters) {
        let gone = gate.sent + gate.expired + gate.overflowed + gate.too_long;
        self.stopped.add(gate.pushed.saturating_sub(gone));
    }
}
