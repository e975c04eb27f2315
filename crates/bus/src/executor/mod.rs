//! Executors run callbacks: a shared pool, a dedicated thread, or the publisher's thread.
//!
//! A [`CallbackGroup`] owns a state and passes it to one callback at a time. It is idle, queued at its executor, or
//! running. A sample that arrives while it runs makes it run again, so no wake-up is lost, and two callbacks of one
//! group never run at the same time.
//!
//! A sample reaches its callback in three steps. The group's [`phase`](phase::Phase) becomes queued. Its bit is set in
//! the executor's [`ready`](ready::Ready) set. A [parked thread](parking) is woken if one is needed. All steps are
//! lock-free and never wait for a thread of lower priority.

mod group;
mod parking;
mod phase;
mod ready;
mod timers;
mod work;
mod workers;

use std::sync::Arc;

use crate::scheduling::{Scheduling, SchedulingError};
pub use group::{CallbackGroup, CallbackPanic, GroupBuilder};
pub use timers::Timers;
pub use workers::TooManyGroups;
use workers::{GroupHandle, WorkerPool};

/// Runs callback groups; clones are the same executor.
///
/// ```
/// use viaduct_bus::{Executor, Priority, Scheduling, SchedulingPolicy};
///
/// let shared = Executor::pool("workers", 2)?;
/// let policy = Priority::new(10).map_or(SchedulingPolicy::Other, SchedulingPolicy::Fifo);
/// let dedicated = Executor::thread("lidar", &Scheduling { policy, ..Scheduling::default() })?;
/// if let Some(error) = dedicated.refused() {
///     println!("running without real-time priority: {error}");
/// }
/// assert!(shared.refused().is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Executor {
    kind: ExecutorKind,
}

#[derive(Clone)]
enum ExecutorKind {
    Threads(Arc<WorkerPool>),
    Inline,
}

impl Executor {
    /// Starts a pool of `threads` threads (1 to 64) that groups share.
    ///
    /// # Errors
    /// Returns an error if the system cannot start a thread.
    pub fn pool(name: &str, threads: usize) -> Result<Self, SchedulingError> {
        Ok(Self { kind: ExecutorKind::Threads(Arc::new(WorkerPool::start(name, threads, &Scheduling::default())?)) })
    }

    /// Starts one thread with its own policy, priority and cores. Without the right to the policy it runs with the
    /// ordinary one, and [`Self::refused`] returns the reason.
    ///
    /// # Errors
    /// Returns an error if the system cannot start a thread, or does not have the cores.
    pub fn thread(name: &str, scheduling: &Scheduling) -> Result<Self, SchedulingError> {
        Ok(Self { kind: ExecutorKind::Threads(Arc::new(WorkerPool::start(name, 1, scheduling)?)) })
    }

    /// Returns an executor that runs callbacks on the publishing thread, before `publish` returns. Use it for short
    /// callbacks only, and never in a cycle of topics. If another thread is running a callback of the group, that
    /// thread also runs this one, and `publish` returns at once. Timers run on the timers' thread, events on the
    /// thread on which they occur.
    #[must_use]
    pub const fn inline() -> Self {
        Self { kind: ExecutorKind::Inline }
    }

    /// Returns the reason for which the threads run with the ordinary policy instead of the requested one, or `None` if
    /// they do not.
    #[must_use]
    pub fn refused(&self) -> Option<&SchedulingError> {
        match &self.kind {
            ExecutorKind::Threads(workers) => workers.refused(),
            ExecutorKind::Inline => None,
        }
    }

    /// Takes a slot for the group of that name; `None` for an inline executor.
    fn handle(&self, group: &str) -> Result<Option<GroupHandle>, TooManyGroups> {
        match &self.kind {
            ExecutorKind::Threads(workers) => GroupHandle::take(workers, group).map(Some),
            ExecutorKind::Inline => Ok(None),
        }
    }
}
