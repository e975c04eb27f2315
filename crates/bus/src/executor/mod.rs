//! Who runs callbacks: a small shared pool, a thread of one's own, or the publisher's thread.
//!
//! A [`CallbackGroup`] owns a state and lends it to one callback at a time. It is idle, queued at its executor, or
//! running; a sample that comes while it runs makes it run again, so no wake-up is lost and no callback of one group
//! ever meets another.

mod group;
mod scheduling;
mod timers;
mod work_queue;

use std::sync::Arc;

pub use group::{CallbackGroup, CallbackPanic, GroupBuilder};
pub use scheduling::{Priority, Scheduling, SchedulingError, SchedulingPolicy};
pub use timers::Timers;
use work_queue::WorkQueue;

/// Runs callback groups; clones are the same executor.
#[derive(Clone)]
pub struct Executor {
    how: How,
}

#[derive(Clone)]
enum How {
    Threads(Arc<WorkQueue>),
    Inline,
}

impl Executor {
    /// A pool of `threads` threads that groups share.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn pool(name: &str, threads: usize) -> Result<Self, SchedulingError> {
        let queue = WorkQueue::start(name, threads.max(1), &Scheduling::default())?;
        Ok(Self { how: How::Threads(queue) })
    }

    /// One thread with its own policy, priority and cores.
    ///
    /// # Errors
    /// The system gives no thread, or refuses the policy or the cores.
    pub fn thread(name: &str, scheduling: &Scheduling) -> Result<Self, SchedulingError> {
        Ok(Self { how: How::Threads(WorkQueue::start(name, 1, scheduling)?) })
    }

    /// Callbacks run on the thread that publishes, before `publish` returns. Only for short ones, and never in a cycle.
    #[must_use]
    pub const fn inline() -> Self {
        Self { how: How::Inline }
    }

    fn submit(&self, work: Arc<dyn Work>) {
        match &self.how {
            How::Threads(queue) => queue.push(work),
            How::Inline => while work.run() == Next::Again {},
        }
    }
}

/// Something that an executor runs.
trait Work: Send + Sync {
    /// Does a bounded amount of work.
    fn run(&self) -> Next;
}

/// Whether there is more to do at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Done,
    Again,
}
