//! Statistics of callbacks: run time and lateness.

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use serde::Serialize;

use crate::latency::{Latency, Percentiles};
use crate::lock::lock;
use crate::total::Total;

/// A callback at one time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallbackSnapshot {
    /// The component to which it belongs.
    pub component: String,
    /// The trigger: a topic or pattern, `events`, or `every 100ms`.
    pub callback: String,
    /// Run time, last window.
    pub recent: Percentiles,
    /// Run time since the start.
    pub total: Percentiles,
    /// Longest permitted run, in microseconds; absent without a budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_us: Option<f64>,
    /// Runs that took longer than the budget.
    pub overruns: u64,
    /// Statistics of a timer; absent for other callbacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer: Option<TimerSnapshot>,
}

/// Statistics that only timers have.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimerSnapshot {
    /// Time from the deadline to the start of the callback, last window.
    pub lateness_recent: Percentiles,
    /// Time from the deadline to the start of the callback, since the start.
    pub lateness_total: Percentiles,
    /// Deadlines that were skipped because the group was busy.
    pub skipped: u64,
}

/// Statistics of one callback.
#[derive(Debug)]
pub(crate) struct CallbackStats {
    component: String,
    callback: String,
    budget: Option<Duration>,
    run_time: Latency,
    overruns: Total,
    timer: Option<TimerStats>,
}

#[derive(Debug, Default)]
struct TimerStats {
    lateness: Latency,
    skipped: Total,
}

impl CallbackStats {
    pub(crate) fn of_topic(component: &str, callback: String, budget: Option<Duration>) -> Self {
        Self {
            component: component.to_owned(),
            callback,
            budget,
            run_time: Latency::default(),
            overruns: Total::default(),
            timer: None,
        }
    }

    pub(crate) fn of_timer(component: &str, callback: String, budget: Option<Duration>) -> Self {
        Self { timer: Some(TimerStats::default()), ..Self::of_topic(component, callback, budget) }
    }

    pub(crate) fn record_run(&self, run_time: Duration) {
        self.run_time.record(run_time);
        if self.budget.is_some_and(|budget| run_time > budget) {
            self.overruns.add(1);
        }
    }

    pub(crate) fn record_lateness(&self, lateness: Duration, skipped: u32) {
        if let Some(timer) = &self.timer {
            timer.lateness.record(lateness);
            timer.skipped.add(skipped.into());
        }
    }

    fn tick(&self, seconds: f64) {
        self.run_time.tick();
        self.overruns.tick(seconds);
        if let Some(timer) = &self.timer {
            timer.lateness.tick();
            timer.skipped.tick(seconds);
        }
    }

    fn snapshot(&self) -> CallbackSnapshot {
        let of_timer = |timer: &TimerStats| TimerSnapshot {
            lateness_recent: timer.lateness.recent(),
            lateness_total: timer.lateness.total(),
            skipped: timer.skipped.value(),
        };
        CallbackSnapshot {
            component: self.component.clone(),
            callback: self.callback.clone(),
            recent: self.run_time.recent(),
            total: self.run_time.total(),
            budget_us: self.budget.map(|budget| budget.as_secs_f64() * 1e6),
            overruns: self.overruns.value(),
            timer: self.timer.as_ref().map(of_timer),
        }
    }
}

/// The callbacks of a bus, in the order in which their groups were built. Those of ended groups are removed.
#[derive(Debug, Default)]
pub(crate) struct Callbacks(Mutex<Vec<Weak<CallbackStats>>>);

impl Callbacks {
    pub(crate) fn add(&self, stats: &Arc<CallbackStats>) {
        let mut all = lock(&self.0);
        all.retain(|known| known.strong_count() > 0);
        all.push(Arc::downgrade(stats));
    }

    pub(crate) fn tick(&self, seconds: f64) {
        for callback in self.all() {
            callback.tick(seconds);
        }
    }

    pub(crate) fn snapshots(&self) -> Vec<CallbackSnapshot> {
        self.all().iter().map(|callback| callback.snapshot()).collect()
    }

    fn all(&self) -> Vec<Arc<CallbackStats>> {
        lock(&self.0).iter().filter_map(Weak::upgrade).collect()
    }
}
