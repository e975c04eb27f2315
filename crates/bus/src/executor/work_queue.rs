//! Threads that take work from one queue.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::scheduling::{Scheduling, SchedulingError};
use super::{Next, Work};

/// Holds each group at most once (a group is idle, queued or running), so it is bounded by the number of groups.
pub(crate) struct WorkQueue {
    waiting: Arc<Waiting>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Default)]
struct Waiting {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    work: VecDeque<Arc<dyn Work>>,
    ended: bool,
}

impl WorkQueue {
    pub(crate) fn start(name: &str, count: usize, scheduling: &Scheduling) -> Result<Arc<Self>, SchedulingError> {
        let queue = Self { waiting: Arc::default(), threads: Mutex::default() };
        for index in 0..count {
            let name = if count == 1 { name.to_owned() } else { format!("{name}-{index}") };
            let waiting = Arc::clone(&queue.waiting);
            let thread = scheduling.spawn(&name, move || waiting.work_until_ended())?;
            queue.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        }
        Ok(Arc::new(queue))
    }

    pub(crate) fn push(&self, work: Arc<dyn Work>) {
        self.waiting.push(work);
    }
}

impl Waiting {
    fn push(&self, work: Arc<dyn Work>) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).work.push_back(work);
        self.changed.notify_one();
    }

    fn work_until_ended(&self) {
        while let Some(work) = self.take() {
            if work.run() == Next::Again {
                self.push(work);
            }
        }
    }

    /// The next work; `None` when the queue has ended.
    fn take(&self) -> Option<Arc<dyn Work>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(work) = state.work.pop_front() {
                return Some(work);
            }
            if state.ended {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for WorkQueue {
    fn drop(&mut self) {
        self.waiting.state.lock().unwrap_or_else(PoisonError::into_inner).ended = true;
        self.waiting.changed.notify_all();
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        let own = std::thread::current().id();
        for thread in threads.into_iter().filter(|thread| thread.thread().id() != own) {
            // A callback's panic is caught in its group; a thread has nothing else that panics.
            let _ = thread.join();
        }
    }
}
