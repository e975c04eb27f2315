//! Usage of a pool.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Counts of one pool since its creation.
#[derive(Debug, Default)]
pub(super) struct Usage {
    lent: AtomicUsize,
    most_lent: AtomicUsize,
    exhausted: AtomicU64,
}

impl Usage {
    pub(super) fn count_loan(&self) {
        let lent = self.lent.fetch_add(1, Ordering::Relaxed) + 1;
        // A new maximum is rare, and a load is cheaper than an exchange.
        if lent > self.most_lent.load(Ordering::Relaxed) {
            self.most_lent.fetch_max(lent, Ordering::Relaxed);
        }
    }

    pub(super) fn count_return(&self) {
        self.lent.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn count_exhausted(&self) {
        self.exhausted.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn lent(&self) -> usize {
        self.lent.load(Ordering::Relaxed)
    }

    pub(super) fn most_lent(&self) -> usize {
        self.most_lent.load(Ordering::Relaxed)
    }

    pub(super) fn exhausted(&self) -> u64 {
        self.exhausted.load(Ordering::Relaxed)
    }
}
