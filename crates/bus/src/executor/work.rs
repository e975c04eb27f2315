//! The interface between executors and groups.

use viaduct_units::Mono;

use crate::notify::Notify;

/// A task that an executor runs.
pub(super) trait Work: Notify {
    /// Does a bounded amount of work. Returns `None` if the task was not queued.
    fn run(&self) -> Option<Outcome>;
}

/// Result of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// `true` if there is more to do at once.
    pub(super) again: bool,
    /// Time of the next notification, for an executor that keeps deadlines itself.
    pub(super) deadline: Option<Mono>,
}
