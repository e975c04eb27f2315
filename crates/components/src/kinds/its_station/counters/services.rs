//! Counters of the bus that mirror those of the facilities services.

use std::collections::BTreeMap;

use viaduct_bus::Counter;
use viaduct_its::facilities::Facilities;
use viaduct_its::facilities::den_service::DenDrop;
use viaduct_node::Context;

use super::Loss;
use crate::counter_mirror::CounterMirror;
use crate::kinds::its_station::ItsStation;
use crate::kinds::its_station::services::InputError;

/// Counter of messages that a service generated or was due to generate, and that were not sent.
const SERVICES_LOST: &str = "services_lost";

/// Name and reason of a counter and its total.
type Total = (&'static str, &'static str, fn(&mut Facilities) -> u64);

const TOTALS: &[Total] = &[
    (SERVICES_LOST, "unencodable", |layer| layer.counters().unencodable),
    (SERVICES_LOST, "transmits_lost", |layer| layer.counters().transmits_lost),
    (SERVICES_LOST, "events_lost", |layer| layer.counters().events_lost),
    (SERVICES_LOST, "denm_transmits_lost", |layer| layer.den().map_or(0, |den| den.counters().transmits_lost)),
    (SERVICES_LOST, "cam_state_too_old", |layer| layer.ca_mut().map_or(0, |ca| ca.counters().state_too_old)),
    (SERVICES_LOST, "cpm_state_too_old", |layer| layer.cp_mut().map_or(0, |cp| cp.counters().state_too_old)),
    (SERVICES_LOST, "vam_state_too_old", |layer| layer.va_mut().map_or(0, |va| va.counters().state_too_old)),
    ("objects_lost", "beyond_limit", |layer| layer.cp_mut().map_or(0, |cp| cp.counters().objects_beyond_limit)),
    ("objects_lost", "too_old", |layer| layer.cp_mut().map_or(0, |cp| cp.counters().objects_too_old)),
    ("objects_lost", "left_out", |layer| layer.cp_mut().map_or(0, |cp| cp.counters().objects_postponed)),
    ("objects_lost", "unsendable", |layer| layer.cp_mut().map_or(0, |cp| cp.counters().objects_unsendable)),
    ("objects_lost", "below_quality", |layer| layer.cp_mut().map_or(0, |cp| cp.counters().objects_below_quality)),
    (SERVICES_LOST, "sensing_left_out", |layer| layer.cp_mut().map_or(0, |cp| cp.counters().sensing_omitted)),
    (SERVICES_LOST, "denm_evicted", |layer| layer.den().map_or(0, |den| den.counters().evicted)),
    (SERVICES_LOST, "denm_forwards_refused", |layer| layer.den().map_or(0, |den| den.counters().forwards_limited)),
    (SERVICES_LOST, "denm_ends_cut", |layer| layer.den().map_or(0, |den| den.counters().ends_evicted)),
    ("ldm_dropped", "own_claimed", |layer| layer.ldm().counters().own_claimed),
    ("ldm_dropped", "evicted", |layer| layer.ldm().counters().evicted),
    ("ldm_dropped", "capture_repeated", |layer| layer.ldm().counters().forgotten),
    ("ldm_dropped", "outside_area", |layer| layer.ldm().counters().outside_area),
    ("ldm_dropped", "outdated", |layer| layer.ldm().counters().outdated),
    ("ldm_dropped", "too_late", |layer| layer.ldm().counters().too_late),
];

/// Returns the meaning of a reason of [`SERVICES_LOST`].
fn explain(reason: &str) -> Option<&'static str> {
    Some(match reason {
        "unencodable" => "a message exceeds what a packet can carry",
        "transmits_lost" | "denm_transmits_lost" => "the transmit queue was full",
        "events_lost" => "the event queue was full",
        "cam_state_too_old" | "cpm_state_too_old" | "vam_state_too_old" => {
            "messages were due, but the station's movement was unknown or too old"
        }
        "sensing_left_out" => "a CPM had no room for all sensors",
        "denm_evicted" => "received events were evicted by newer ones",
        "denm_forwards_refused" => "too many received DENMs were due for keep-alive forwarding",
        "denm_ends_cut" => "terminations of events were evicted before all repetitions were sent",
        _ => return None,
    })
}

/// The counters of the services.
pub(in super::super) struct ServiceCounters {
    /// Messages on input topics that were rejected, by reason.
    refused: BTreeMap<&'static str, Counter>,
    /// DENMs without news, by reason.
    denms: BTreeMap<&'static str, Counter>,
    totals: CounterMirror<&'static Total>,
}

impl ServiceCounters {
    pub(in super::super) fn new(context: &Context<ItsStation>) -> Self {
        let refused = |label| (label, context.counter_for("inputs_refused", label));
        let denm = |reason: DenDrop| (reason.label(), context.counter_for("denms_ignored", reason.label()));
        Self {
            refused: InputError::LABELS.into_iter().map(refused).collect(),
            denms: DenDrop::ALL.into_iter().map(denm).collect(),
            totals: CounterMirror::new(TOTALS, |(name, reason, _)| context.counter_for(name, reason)),
        }
    }

    /// Counts an input that was rejected.
    pub(in super::super) fn count_rejected(&self, error: &InputError) {
        if let Some(counter) = self.refused.get(error.label()) {
            counter.increment();
        }
    }

    /// Counts a received DENM that was ignored.
    pub(in super::super) fn count_ignored_denm(&self, reason: DenDrop) {
        if let Some(counter) = self.denms.get(reason.label()) {
            counter.increment();
        }
    }

    /// Adds the services' increases to the bus counters. Returns the messages lost since the last call.
    pub(in super::super) fn sync(&mut self, facilities: &mut Facilities) -> Vec<Loss> {
        let mut losses = Vec::new();
        for ((name, reason, _), count) in self.totals.sync(|(_, _, read)| read(facilities)) {
            if *name == SERVICES_LOST {
                losses.push(Loss {
                    description: "a service lost messages or events",
                    reason,
                    explanation: explain(reason),
                    count,
                });
            }
        }
        losses
    }
}
