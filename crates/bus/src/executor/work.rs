//! The work of an executor.

use viaduct_units::Mono;

use crate::notify::Notify;

/// Something that an executor runs.
pub(super) trait Work: Notify {
    /// Does a bounded amount of work; `None` where it was not this one's turn.
    fn run(&self) -> Option<Outcome>;
}

/// What a run left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// Whether there is more to do at once.
    pub(super) again: bool,
    /// When to notify next, for an executor that keeps time.
    pub(super) deadline: Option<Mono>,
}
