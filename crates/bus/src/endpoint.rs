//! The part of a bus that its publishers and subscribers share with it.

use std::sync::Arc;

use crate::clock::Clock;
use crate::monitor::QosMonitor;
use crate::registry::Registry;
use crate::stats::Stats;

/// Statistics, clock, topics and QoS monitor of a bus. The monitor's thread ends when the last reference is dropped.
pub(crate) struct Endpoint {
    pub(crate) stats: Arc<Stats>,
    pub(crate) clock: Clock,
    pub(crate) topics: Arc<Registry>,
    pub(crate) monitor: Arc<QosMonitor>,
}

impl Endpoint {
    pub(crate) fn new(clock: Clock) -> Arc<Self> {
        let topics = Arc::new(Registry::new(clock.clone()));
        // In virtual time only `Bus::check_deadlines` checks.
        let watched = match clock {
            Clock::System => Some(Arc::downgrade(&topics)),
            Clock::Manual(_) => None,
        };
        Arc::new(Self { stats: Arc::default(), clock, topics, monitor: QosMonitor::new(watched) })
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.monitor.end();
    }
}
