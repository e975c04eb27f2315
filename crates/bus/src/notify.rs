//! Waking the reader of a queue.

use std::sync::Arc;

use crate::prefetch::PrefetchSet;

/// A task of an executor that runs after a sample, an event or a deadline.
pub(crate) trait Notify: Send + Sync {
    fn notify(self: Arc<Self>);
    /// Collects the cache lines that it touches to run.
    fn collect_lines(&self, _lines: &mut PrefetchSet) {}
}
