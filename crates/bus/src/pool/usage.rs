//! Usage of a pool.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Counts of one pool since its creation.
#[derive(Debug, Default)]
pub(super) struct Usage {
    loaned: AtomicUsize,
    most_loaned: AtomicUsize,
    exhausted: AtomicU64,
}

impl Usage {
    pub(super) fn count_loan(&self) {
        let loaned = self.loaned.fetch_add(1, Ordering::Relaxed) + 1;
        // A new maximum is rare, and a load is cheaper than an exchange.
        if loaned > self.most_loaned.load(Ordering::Relaxed) {
            self.most_loaned.fetch_max(loaned, Ordering::Relaxed);
        }
    }

    pub(super) fn count_return(&self) {
        self.loaned.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn count_exhausted(&self) {
        self.exhausted.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn loaned(&self) -> usize {
        self.loaned.load(Ordering::Relaxed)
    }

    pub(super) fn most_loaned(&self) -> usize {
        self.most_loaned.load(Ordering::Relaxed)
    }

    pub(super) fn exhausted(&self) -> u64 {
        self.exhausted.load(Ordering::Relaxed)
    }
}
