//! Somebody who looks on: reads messages without knowing its type, as `viaduct topic echo` does, and the counters ten
//! times a second, as a page that shows them does.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use viaduct_bus::Bus;

use crate::error::BenchError;
use crate::floor;

/// Time from one look for a message to the next, as a node's HTTP endpoint has it.
const POLL_EVERY: Duration = Duration::from_millis(20);
/// Time from one look at the counters to the next.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Threads with the ordinary policy that look on until this is dropped.
pub(super) struct Observer {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Observer {
    pub(super) fn attach(bus: &Bus, topic: &str) -> Result<Self, BenchError> {
        let refused = BenchError::part("cannot observe the topic");
        let observed = bus.observe(topic).map_err(refused)?;
        let mut observer = Self { stop: Arc::default(), threads: Vec::new() };
        let stop = Arc::clone(&observer.stop);
        observer.threads.push(floor::spawn("bench-observer", move || read(&observed, &stop))?);
        let (bus, stop) = (bus.clone(), Arc::clone(&observer.stop));
        observer.threads.push(floor::spawn("bench-snapshots", move || look(&bus, &stop))?);
        Ok(observer)
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It has nothing that panics.
            let _ = thread.join();
        }
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
