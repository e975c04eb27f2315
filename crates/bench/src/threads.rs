//! Threads that run during a measurement without being measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::error::BenchError;
use crate::floor;

/// A group of threads that are stopped and joined when this is dropped.
#[derive(Default)]
pub(crate) struct Threads {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Threads {
    /// Starts a thread. It ends soon after its stop flag is set.
    pub(crate) fn add(
        &mut self,
        name: &str,
        work: impl FnOnce(&AtomicBool) + Send + 'static,
    ) -> Result<(), BenchError> {
        let stop = Arc::clone(&self.stop);
        self.threads.push(floor::spawn(name, move || work(&stop))?);
        Ok(())
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // The thread does not panic.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
impl Threads {
    pub(crate) fn running(&self) -> usize {
        self.threads.iter().filter(|thread| !thread.is_finished()).count()
    }

    /// Returns a weak reference whose upgrade succeeds until the last thread has ended.
    pub(crate) fn sign(&self) -> std::sync::Weak<AtomicBool> {
        Arc::downgrade(&self.stop)
    }
}
