//! Threads that keep the cores from sleeping during a measurement.

use std::sync::atomic::Ordering;
use std::sync::mpsc;

use crate::error::BenchError;
use crate::sys::{self, Placement};
use crate::threads::Threads;

/// A guard that keeps the cores awake until it is dropped: one thread per core runs whenever no other thread needs the
/// core. A core that halts between two messages is given to other guests by the hypervisor, or sleeps deeply; its
/// wake-up would dominate the result. `cyclictest` uses `/dev/cpu_dma_latency` for the same purpose, which a virtual
/// machine does not have.
pub(crate) struct KeepAwake {
    _threads: Threads,
}

impl KeepAwake {
    pub(crate) fn start(cores: &[usize]) -> Result<Self, BenchError> {
        let mut threads = Threads::default();
        let (ready, is_ready) = mpsc::channel();
        for core in cores {
            let placement = Placement { cores: vec![*core], fifo: None };
            let ready = ready.clone();
            threads.add("bench-awake", move |stop| {
                // With another policy it would compete with the measured threads.
                let placed = placement.apply().and_then(|()| sys::run_when_idle());
                let runs = placed.is_ok();
                // The constructor waits for one report per core.
                let _ = ready.send(placed);
                while runs && !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })?;
        }
        drop(ready);
        let unplaced = BenchError::system("cannot keep a core awake");
        for _ in cores {
            // A thread that ends without a report is not waited for; its core is not kept awake.
            is_ready.recv().unwrap_or_else(|_| Err(std::io::Error::other("a thread ended"))).map_err(&unplaced)?;
        }
        Ok(Self { _threads: threads })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_one_thread_per_core_until_dropped() {
        let _lock = crate::measurement_lock();
        let cores = sys::cores();
        let awake = KeepAwake::start(&cores).unwrap();
        assert_eq!(awake._threads.running(), cores.len());
        let stop = awake._threads.sign();
        drop(awake);
        assert!(stop.upgrade().is_none());
    }
}
