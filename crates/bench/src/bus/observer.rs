//! Somebody who looks on: reads messages without knowing its type, as `viaduct topic echo` does, and the counters ten
//! times a second, as a page that shows them does.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use viaduct_bus::Bus;

use crate::error::BenchError;
use crate::threads::Threads;

/// Time from one look for a message to the next, as a node's HTTP endpoint has it.
const POLL_EVERY: Duration = Duration::from_millis(20);
/// Time from one look at the counters to the next.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Threads with the ordinary policy that look on until this is dropped.
pub(super) struct Observer {
    _threads: Threads,
}

impl Observer {
    pub(super) fn attach(bus: &Bus, topic: &str) -> Result<Self, BenchError> {
        let refused = BenchError::part("cannot observe the topic");
        let observed = bus.observe(topic).map_err(refused)?;
        let (mut threads, bus) = (Threads::default(), bus.clone());
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
