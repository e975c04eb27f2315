//! The figures as gauges: `viaduct_component_latency_mean_ms{component,part}` and others, where `part` is a stage or `total`.

use viaduct_bus::Gauge;
use viaduct_node::Context;

use super::KeyFigures;
use crate::figures::loss::Loss;
use crate::figures::path::Path;
use crate::figures::window::{Figures, Statistics};

/// Gauges of a component.
pub(super) struct Gauges {
    stages: Vec<Latency>,
    total: Latency,
    communication_ms: Gauge,
    clock_offset_ms: Gauge,
    clock_offset_error_ms: Gauge,
    missing_ratio: Gauge,
    late_ratio: Gauge,
}

/// Gauges of one latency.
struct Latency([Gauge; 7]);

impl Latency {
    fn new(part: &str, context: &Context<KeyFigures>) -> Self {
        let names = ["mean", "median", "min", "max", "sd", "p95", "p99"];
        Self(names.map(|name| context.gauge_for(&format!("latency_{name}_ms"), part)))
    }

    fn set(&self, of: &Statistics) {
        let Statistics { mean_ms, median_ms, min_ms, max_ms, sd_ms, p95_ms, p99_ms } = *of;
        for (gauge, value) in self.0.iter().zip([mean_ms, median_ms, min_ms, max_ms, sd_ms, p95_ms, p99_ms]) {
            gauge.set(value);
        }
    }
}

impl Gauges {
    pub(super) fn new(path: &Path, context: &Context<KeyFigures>) -> Self {
        Self {
            stages: path.stages().iter().map(|stage| Latency::new(&stage.name, context)).collect(),
            total: Latency::new("total", context),
            communication_ms: context.gauge("communication_ms"),
            clock_offset_ms: context.gauge("clock_offset_ms"),
            clock_offset_error_ms: context.gauge("clock_offset_error_ms"),
            missing_ratio: context.gauge("missing_ratio"),
            late_ratio: context.gauge("late_ratio"),
        }
    }

    pub(super) fn set(&self, figures: Option<&Figures>, loss: Option<Loss>) {
        if let Some(loss) = loss.filter(|loss| loss.sent > 0) {
            self.missing_ratio.set(f64::from(loss.missing) / f64::from(loss.sent));
            self.late_ratio.set(f64::from(loss.late) / f64::from(loss.sent));
        }
        let Some(figures) = figures else { return };
        for (gauges, stage) in self.stages.iter().zip(&figures.stages) {
            gauges.set(&stage.latency);
        }
        self.total.set(&figures.total);
        // A gauge without a finite number is unknown.
        self.communication_ms.set(figures.communication_ms.unwrap_or(f64::NAN));
        self.clock_offset_ms.set(figures.clock_offset.map_or(f64::NAN, |offset| offset.offset_ms));
        self.clock_offset_error_ms.set(figures.clock_offset.map_or(f64::NAN, |offset| offset.error_ms));
    }
}
