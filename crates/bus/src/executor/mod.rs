//! Who runs callbacks: a small shared pool, a thread of one's own, or the publisher's thread.
//!
//! A [`CallbackGroup`] owns a state and lends it to one callback at a time. It is idle, queued at its executor, or
//! running; a sample that comes while it runs makes it run again, so no wake-up is lost and no callback of one group
//! ever meets another.
//!
//! The way from a sample to its callback: the group's [`phase`](phase::Phase) becomes queued, its bit is set in the
//! executor's [`ready`](ready::Ready) set, and a [sleeping thread](parking) is woken where one must run. All of it is
//! lock-free, and none of it waits for a thread of lower priority.

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
    /// A pool of `threads` threads (1 to 64) that groups share.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn pool(name: &str, threads: usize) -> Result<Self, SchedulingError> {
        Ok(Self { kind: ExecutorKind::Threads(Arc::new(WorkerPool::start(name, threads, &Scheduling::default())?)) })
    }

    /// One thread with its own policy, priority and cores. Where the right to the policy is missing, it runs with the
    /// ordinary one and [`Self::refused`] says so.
    ///
    /// # Errors
    /// The system gives no thread, or does not have the cores.
    pub fn thread(name: &str, scheduling: &Scheduling) -> Result<Self, SchedulingError> {
        Ok(Self { kind: ExecutorKind::Threads(Arc::new(WorkerPool::start(name, 1, scheduling)?)) })
    }

    /// Callbacks run on the thread that publishes, before `publish` returns: only for short ones, and never in a cycle. Where
    /// another thread is in a callback of the group just then, that one runs this callback, too, and `publish` returns at
    /// once. Timers run on the timers' thread, events where they happen.
    #[must_use]
    pub const fn inline() -> Self {
        Self { kind: ExecutorKind::Inline }
    }

    /// Why the threads run with the ordinary policy instead of the one that was asked for, where they do.
    #[must_use]
    pub fn refused(&self) -> Option<&SchedulingError> {
        match &self.kind {
            ExecutorKind::Threads(workers) => workers.refused(),
            ExecutorKind::Inline => None,
        }
    }

    /// A place for the group of that name; none is needed inline.
    fn handle(&self, group: &str) -> Result<Option<GroupHandle>, TooManyGroups> {
        match &self.kind {
            ExecutorKind::Threads(workers) => GroupHandle::take(workers, group).map(Some),
            ExecutorKind::Inline => Ok(None),
        }
    }
}
