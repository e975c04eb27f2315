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
mod lanes;
mod parking;
mod phase;
mod ready;
mod timers;
mod work;

use std::sync::Arc;

use crate::scheduling::{Scheduling, SchedulingError};
pub use group::{CallbackGroup, CallbackPanic, GroupBuilder};
pub use lanes::TooManyGroups;
use lanes::{Lanes, Seat};
pub use timers::Timers;

/// Runs callback groups; clones are the same executor.
#[derive(Clone)]
pub struct Executor {
    how: How,
}

#[derive(Clone)]
enum How {
    Threads(Arc<Lanes>),
    Inline,
}

impl Executor {
    /// A pool of `threads` threads (1 to 64) that groups share.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn pool(name: &str, threads: usize) -> Result<Self, SchedulingError> {
        Ok(Self { how: How::Threads(Arc::new(Lanes::start(name, threads, &Scheduling::default())?)) })
    }

    /// One thread with its own policy, priority and cores. Where the right to the policy is missing, it runs with the
    /// ordinary one and [`Self::refused`] says so.
    ///
    /// # Errors
    /// The system gives no thread, or does not have the cores.
    pub fn thread(name: &str, scheduling: &Scheduling) -> Result<Self, SchedulingError> {
        Ok(Self { how: How::Threads(Arc::new(Lanes::start(name, 1, scheduling)?)) })
    }

    /// Callbacks run on the thread that publishes, before `publish` returns: only for short ones, and never in a cycle. Where
    /// another thread is in a callback of the group just then, that one runs this callback, too, and `publish` returns at
    /// once. Timers run on the timers' thread, events where they happen.
    #[must_use]
    pub const fn inline() -> Self {
        Self { how: How::Inline }
    }

    /// Why the threads run with the ordinary policy instead of the one that was asked for, where they do.
    #[must_use]
    pub fn refused(&self) -> Option<&SchedulingError> {
        match &self.how {
            How::Threads(lanes) => lanes.refused(),
            How::Inline => None,
        }
    }

    /// A place for the group of that name; none is needed inline.
    fn seat(&self, group: &str) -> Result<Option<Seat>, TooManyGroups> {
        match &self.how {
            How::Threads(lanes) => Seat::take(lanes, group).map(Some),
            How::Inline => Ok(None),
        }
    }
}
