//! What keeps the machine from falling asleep while something is measured.

use std::sync::atomic::Ordering;
use std::sync::mpsc;

use crate::error::BenchError;
use crate::sys::{self, Placement};
use crate::threads::Threads;

/// Keeps the cores awake until this is dropped: a thread on each that runs only where nothing else does. A core that halts
/// between two messages is given to others by a hypervisor, or sleeps deeply; waking it would be most of what is measured.
/// `cyclictest` asks the kernel for the same through `/dev/cpu_dma_latency`, which a virtual machine does not have.
pub(crate) struct Awake {
    _threads: Threads,
}

impl Awake {
    pub(crate) fn start(cores: &[usize]) -> Result<Self, BenchError> {
        let mut threads = Threads::default();
        let (ready, is_ready) = mpsc::channel();
        for core in cores {
            let (placement, ready) = (Placement { cores: vec![*core], fifo: None }, ready.clone());
            threads.add("bench-awake", move |stop| {
                // With another policy it would be in the way.
                let placed = placement.apply().and_then(|()| sys::run_when_idle());
                let runs = placed.is_ok();
                // Who waits for it takes as many as there are cores.
                let _ = ready.send(placed);
                while runs && !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })?;
        }
        drop(ready);
        let unplaced = BenchError::system("cannot keep a core awake");
        for _ in cores {
            // A thread that ends without a word is not waited for, and its core is not awake.
            is_ready.recv().unwrap_or_else(|_| Err(std::io::Error::other("a thread ended"))).map_err(&unplaced)?;
        }
        Ok(Self { _threads: threads })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_core_has_a_thread_until_this_is_dropped() {
        let _alone = crate::measuring_alone();
        let cores = sys::cores();
        let awake = Awake::start(&cores).unwrap();
        assert_eq!(awake._threads.running(), cores.len());
        let stop = awake._threads.sign();
        drop(awake);
        assert!(stop.upgrade().is_none());
    }
}
