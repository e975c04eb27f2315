//! An observer. It reads messages without their type, as `viaduct topic echo` does, and the counters ten times per
//! second, as the dashboard does.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use viaduct_bus::Bus;

use crate::error::BenchError;
use crate::threads::Threads;

/// Polling interval for messages, as in a node's HTTP endpoint.
const POLL_EVERY: Duration = Duration::from_millis(20);
/// Polling interval for the counters.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Threads with the ordinary policy that observe until this is dropped.
pub(super) struct Observer {
    _threads: Threads,
}

impl Observer {
    pub(super) fn attach(bus: &Bus, topic: &str) -> Result<Self, BenchError> {
        let refused = BenchError::part("cannot observe the topic");
        let observed = bus.observe(topic).map_err(refused)?;
        let mut threads = Threads::default();
        let bus = bus.clone();
        threads.add("bench-observer", move |stop| read(&observed, stop))?;
        threads.add("bench-snapshots", move |stop| look(&bus, stop))?;
        Ok(Self { _threads: threads })
    }
}

fn read(observed: &viaduct_bus::Observer, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(POLL_EVERY);
        if let Some(sample) = observed.try_recv() {
            drop(black_box(sample.encoded().clone()));
        }
    }
}

fn look(bus: &Bus, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        black_box(bus.snapshot());
        std::thread::sleep(LOOK_EVERY);
    }
}
