//! Whether a group is idle, queued or running. Model-tested: `tests/model_executor.rs`.

use crate::sync::{AtomicU8, Ordering};

const IDLE: u8 = 0;
const QUEUED: u8 = 1;
const RUNNING: u8 = 2;
/// Running, and notified since the run began.
const RUNNING_AGAIN: u8 = RUNNING | QUEUED;

/// The phase of one group. Every change reads the latest value and writes on top of it (none is a plain store), so that a
/// notifier that changes nothing still hands over what it did before to the run that follows.
pub(crate) struct Phase(AtomicU8);

impl Phase {
    pub(crate) fn new() -> Self {
        Self(AtomicU8::new(IDLE))
    }

    /// Notes that there is something to do. Whether the caller must queue the group: it was idle.
    #[must_use]
    #[inline]
    pub(crate) fn notify(&self) -> bool {
        // One instruction that never repeats, whoever else notifies: idle becomes queued, running becomes running again.
        self.0.fetch_or(QUEUED, Ordering::AcqRel) == IDLE
    }

    /// Begins a run. Whether the caller may: the group was queued.
    #[must_use]
    #[inline]
    pub(crate) fn begin(&self) -> bool {
        self.0.compare_exchange(QUEUED, RUNNING, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Ends a run, `again` where it left something to do. Whether the caller must queue the group once more.
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

    /// Whether nothing is queued and nothing runs.
    pub(crate) fn is_idle(&self) -> bool {
        self.0.load(Ordering::Acquire) == IDLE
    }
}
