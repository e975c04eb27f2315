//! What the services count, and what of it the machines count for themselves.

use std::collections::BTreeMap;

use viaduct_bus::Counter;
use viaduct_its::facilities::Facilities;
use viaduct_its::facilities::den_service::DenDrop;
use viaduct_node::Context;

use super::inputs::InputError;
use crate::kinds::its_station::ItsStation;
use crate::kinds::its_station::counts::Loss;

/// What a machine has counted since it began.
type Read = fn(&mut Facilities) -> u64;

/// Messages that services made or wanted to make.
const SERVICES_LOST: &str = "services_lost";

/// Name and reason of a counter, and where its machine has it.
const TOTALS: &[(&str, &str, Read)] = &[
    (SERVICES_LOST, "unencodable", |layer| layer.counters().unencodable),
    (SERVICES_LOST, "transmits_lost", |layer| layer.counters().transmits_lost),
    (SERVICES_LOST, "events_lost", |layer| layer.counters().events_lost),
    (SERVICES_LOST, "denm_transmits_lost", |layer| layer.den().map_or(0, |den| den.counters().transmits_lost)),
    (SERVICES_LOST, "cam_state_too_old", |layer| layer.ca_mut().map_or(0, |ca| ca.counters().state_too_old)),
    (SERVICES_LOST, "cpm_state_too_old", |layer| layer.cp_mut().map_or(0, |cp| cp.counters().state_too_old)),
    (SERVICES_LOST, "vam_state_too_old", |layer| layer.va_mut().map_or(0, |va| va.counters().state_too_old)),
    ("objects_lost", "beyond_limit", |layer| layer.cp_mut().map_or(0, |cp| cp.counters().objects_beyond_limit)),
    ("objects_lost", "too_old", |layer| layer.cp_mut().map_or(0, |cp| cp.counters().objects_too_old)),
    ("objects_lost", "left_out", |layer| layer.cp_mut().map_or(0, |cp| cp.counters().objects_left_out)),
    ("objects_lost", "untellable", |layer| layer.cp_mut().map_or(0, |cp| cp.counters().objects_untellable)),
    ("objects_lost", "below_quality", |layer| layer.cp_mut().map_or(0, |cp| cp.counters().objects_below_quality)),
    (SERVICES_LOST, "sensing_left_out", |layer| layer.cp_mut().map_or(0, |cp| cp.counters().sensing_left_out)),
    (SERVICES_LOST, "denm_evicted", |layer| layer.den().map_or(0, |den| den.counters().evicted)),
    (SERVICES_LOST, "denm_forwards_refused", |layer| layer.den().map_or(0, |den| den.counters().forwards_refused)),
    (SERVICES_LOST, "denm_ends_cut", |layer| layer.den().map_or(0, |den| den.counters().ends_cut)),
    ("ldm_dropped", "own_claimed", |layer| layer.ldm().counters().own_claimed),
    ("ldm_dropped", "evicted", |layer| layer.ldm().counters().evicted),
    ("ldm_dropped", "capture_repeated", |layer| layer.ldm().counters().forgotten),
    ("ldm_dropped", "outside_area", |layer| layer.ldm().counters().outside_area),
    ("ldm_dropped", "outdated", |layer| layer.ldm().counters().outdated),
    ("ldm_dropped", "too_late", |layer| layer.ldm().counters().too_late),
];

/// What a reason of [`SERVICES_LOST`] means.
fn explain(reason: &str) -> Option<&'static str> {
    Some(match reason {
        "unencodable" => "a message that no packet can carry",
        "transmits_lost" | "denm_transmits_lost" => "messages for which there was no room",
        "events_lost" => "news for which there was no room",
        "cam_state_too_old" | "cpm_state_too_old" | "vam_state_too_old" => {
            "messages that were due while nobody said how the station moves"
        }
        "sensing_left_out" => "sensors for which a CPM had no room",
        "denm_evicted" => "events of others, which made room for newer ones",
        "denm_forwards_refused" => "DENMs of others that were due to be sent on, and too many",
        "denm_ends_cut" => "ends of events, which made room before they were repeated as often as was asked",
        _ => return None,
    })
}

/// The counters of the services.
pub(super) struct Counts {
    /// Messages on input topics that were not taken, by reason.
    refused: BTreeMap<&'static str, Counter>,
    /// DENMs that told nothing, by reason.
    denms: BTreeMap<&'static str, Counter>,
    /// What the machines count, in the order of [`TOTALS`].
    totals: Vec<Total>,
}

/// A counter that follows one of a machine.
struct Total {
    name: &'static str,
    reason: &'static str,
    counter: Counter,
    read: Read,
    /// What was there when the counter last followed.
    seen: u64,
}

impl Counts {
    pub(super) fn new(context: &Context<ItsStation>) -> Self {
        let refused = |label| (label, context.counter_for("inputs_refused", label));
        let denm = |reason: DenDrop| (reason.label(), context.counter_for("denms_ignored", reason.label()));
        let total = |(name, reason, read): &(&'static str, &'static str, Read)| Total {
            name,
            reason,
            counter: context.counter_for(name, reason),
            read: *read,
            seen: 0,
        };
        Self {
            refused: InputError::LABELS.into_iter().map(refused).collect(),
            denms: DenDrop::ALL.into_iter().map(denm).collect(),
            totals: TOTALS.iter().map(total).collect(),
        }
    }

    pub(super) fn refuse(&self, error: &InputError) {
        if let Some(counter) = self.refused.get(error.label()) {
            counter.increment();
        }
    }

    pub(super) fn denm(&self, reason: DenDrop) {
        if let Some(counter) = self.denms.get(reason.label()) {
            counter.increment();
        }
    }

    /// Takes over what the machines have counted; which messages they have lost since.
    pub(super) fn follow(&mut self, layer: &mut Facilities) -> Vec<Loss> {
        let mut losses = Vec::new();
        for total in &mut self.totals {
            let now = (total.read)(layer);
            let count = now.saturating_sub(total.seen);
            total.counter.add(count);
            total.seen = now;
            if count > 0 && total.name == SERVICES_LOST {
                let explanation = explain(total.reason);
                losses.push(Loss {
                    what: "a service lost what it had to tell",
                    reason: total.reason,
                    explanation,
                    count,
                });
            }
        }
        losses
    }
}
