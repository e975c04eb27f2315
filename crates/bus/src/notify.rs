//! Waking the reader of a queue.

use std::sync::Arc;

use crate::prefetch::PrefetchSet;

/// Somebody who must run when a sample has come.
pub(crate) trait Notify: Send + Sync {
    fn notify(self: Arc<Self>);
    /// Adds what it needs to run.
    fn collect_lines(&self, _lines: &mut PrefetchSet) {}
}
