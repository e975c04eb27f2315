//! The phase of a group: idle, queued or running. Model-tested: `tests/model_executor.rs`.

use crate::sync::{AtomicU8, Ordering};

const IDLE: u8 = 0;
const QUEUED: u8 = 1;
const RUNNING: u8 = 2;
/// Running, and notified since the run began.
const RUNNING_AGAIN: u8 = RUNNING | QUEUED;

/// The phase of one group. Every change is a read-modify-write, so a notifier that changes nothing still synchronizes
/// with the run that follows.
pub(crate) struct Phase(AtomicU8);

impl Phase {
    pub(crate) fn new() -> Self {
        Self(AtomicU8::new(IDLE))
    }

    /// Marks the group as having work. Returns `true` if it was idle, so that the caller must queue it.
    #[must_use]
    #[inline]
    pub(crate) fn notify(&self) -> bool {
        // One instruction without a retry: idle becomes queued, running becomes running again.
        self.0.fetch_or(QUEUED, Ordering::AcqRel) == IDLE
    }

    /// Begins a run. Returns `true` if the group was queued, so that the caller may run it.
    #[must_use]
    #[inline]
    pub(crate) fn begin(&self) -> bool {
        self.0.compare_exchange(QUEUED, RUNNING, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Ends a run; `again` if work is left. Returns `true` if the caller must queue the group again.
    #[must_use]
    #[inline]
    pub(crate) fn end(&self, again: bool) -> bool {
        if !again && self.0.compare_exchange(RUNNING, IDLE, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            return false;
        }
        let before = self.0.swap(QUEUED, Ordering::AcqRel);
        debug_assert!(before == RUNNING || before == RUNNING_AGAIN, "a run ends that did not begin");
        true
    }

    /// Returns `true` if the group is neither queued nor running.
    pub(crate) fn is_idle(&self) -> bool {
        self.0.load(Ordering::Acquire) == IDLE
    }
}
