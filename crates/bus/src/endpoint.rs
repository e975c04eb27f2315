//! The part of a bus that its publishers and subscribers share with it.

use std::sync::Arc;

use crate::clock::Clock;
use crate::monitor::QosMonitor;
use crate::registry::Registry;
use crate::stats::Stats;

/// The bus as its publishers and subscribers need it. The monitor's thread ends with the last of them.
pub(crate) struct Endpoint {
    pub(crate) stats: Arc<Stats>,
    pub(crate) clock: Clock,
    pub(crate) topics: Arc<Registry>,
    pub(crate) monitor: Arc<QosMonitor>,
}

impl Endpoint {
    pub(crate) fn new(clock: Clock) -> Arc<Self> {
        let topics = Arc::new(Registry::new(clock.clone()));
        // In virtual time nobody watches but the caller of `Bus::check_deadlines`.
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
