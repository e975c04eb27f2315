//! What keeps the machine from falling asleep while something is measured.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use crate::error::BenchError;
use crate::floor;
use crate::sys::{self, Placement};

/// Keeps the cores awake until this is dropped: a thread on each that runs only where nothing else does. A core that halts
/// between two messages is given to others by a hypervisor, or sleeps deeply; waking it would be most of what is measured.
/// `cyclictest` asks the kernel for the same through `/dev/cpu_dma_latency`, which a virtual machine does not have.
pub(crate) struct Awake {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Awake {
    pub(crate) fn start(cores: &[usize]) -> Result<Self, BenchError> {
        let mut awake = Self { stop: Arc::default(), threads: Vec::new() };
        let (ready, is_ready) = mpsc::channel();
        for core in cores {
            let (placement, stop) = (Placement { cores: vec![*core], fifo: None }, Arc::clone(&awake.stop));
            let ready = ready.clone();
            let wake = move || {
                // With another policy it would be in the way.
                let placed = placement.apply().and_then(|()| sys::run_when_idle());
                let runs = placed.is_ok();
                // Who waits for it takes as many as there are cores.
                let _ = ready.send(placed);
                while runs && !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            };
            awake.threads.push(floor::spawn("bench-awake", wake)?);
        }
        for placed in is_ready.iter().take(cores.len()) {
            placed.map_err(BenchError::system("cannot keep a core awake"))?;
        }
        Ok(awake)
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It has nothing that panics.
            let _ = thread.join();
        }
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
        assert_eq!(awake.threads.len(), cores.len());
        assert!(awake.threads.iter().all(|thread| !thread.is_finished()));
        let stop = Arc::downgrade(&awake.stop);
        drop(awake);
        assert!(stop.upgrade().is_none());
    }
}
