//! The newest key figures of messages that come back to the node, by topic.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use viaduct_bus::Bus;
use viaduct_messages::viaduct::figures::{KeyFigures, Statistics};

use crate::api::{ClockOffsetKpi, FiguresKpi, KpiSnapshot, KpiSource, LatencyKpi, LossKpi, StageKpi};

/// Maximum number of topics with figures; those of further ones are ignored.
const TOPICS_MAX: usize = 16;

/// The newest figures of each topic; clones are the same figures.
#[derive(Clone, Debug, Default)]
pub(crate) struct NewestFigures(Arc<RwLock<BTreeMap<String, FiguresKpi>>>);

impl NewestFigures {
    /// Replaces the figures of a topic.
    pub(crate) fn set(&self, topic: &str, figures: &KeyFigures) {
        let mut newest = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if newest.len() < TOPICS_MAX || newest.contains_key(topic) {
            newest.insert(topic.to_owned(), of(topic, figures));
        }
    }

    fn all(&self) -> Vec<FiguresKpi> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

/// The figures of a bus, and the key figures of messages that come back.
pub(crate) struct NodeKpis {
    pub(crate) bus: Bus,
    pub(crate) figures: NewestFigures,
}

impl KpiSource for NodeKpis {
    fn kpis(&self) -> KpiSnapshot {
        KpiSnapshot { figures: self.figures.all(), ..self.bus.kpis() }
    }
}

fn of(topic: &str, figures: &KeyFigures) -> FiguresKpi {
    let stages = figures.stages.iter().filter_map(|stage| {
        Some(StageKpi {
            name: stage.name.clone(),
            is_communication: stage.is_communication,
            recent_ms: stage.recent_ms,
            latency: latency(stage.latency.as_ref()?),
            one_way: stage.one_way.as_ref().map(latency),
            clock_error_ms: stage.clock_error_ms,
        })
    });
    FiguresKpi {
        topic: topic.to_owned(),
        of: figures.topic.clone(),
        count: figures.count,
        window: figures.window,
        stages: stages.collect(),
        total: figures.total.as_ref().map(latency),
        total_recent_ms: figures.total_recent_ms,
        total_quantiles_ms: figures.total_quantiles_ms.clone(),
        communication_ms: figures.communication_ms,
        clock_offset: figures
            .clock_offset
            .map(|offset| ClockOffsetKpi { offset_ms: offset.offset_ms, error_ms: offset.error_ms }),
        loss: figures.loss.map(|loss| LossKpi { sent: loss.sent, missing: loss.missing, late: loss.late }),
    }
}

fn latency(of: &Statistics) -> LatencyKpi {
    let Statistics { mean_ms, median_ms, min_ms, max_ms, sd_ms, p95_ms, p99_ms } = *of;
    LatencyKpi { mean_ms, median_ms, min_ms, max_ms, sd_ms, p95_ms, p99_ms }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_figures_of_a_bounded_number_of_topics_are_kept() {
        let newest = NewestFigures::default();
        for number in 0..20 {
            newest.set(&format!("figures{number:02}/window"), &KeyFigures { count: 1, ..KeyFigures::default() });
        }
        newest.set("figures00/window", &KeyFigures { count: 2, ..KeyFigures::default() });
        let all = newest.all();
        assert_eq!((all.len(), all[0].count, all[1].count), (TOPICS_MAX, 2, 1));
    }
}
