//! Shares of a limit that end when their holder is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::settings::Limits;

/// Octets of bodies in blocks and number of observations. Machines that share them have the limits together.
#[derive(Clone, Debug)]
pub struct Totals {
    /// Octets of all bodies in blocks.
    pub(crate) bodies: Budget,
    /// Observations of all peers.
    pub(crate) observations: Budget,
}

impl Totals {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { bodies: Budget::new(limits.bodies_octets), observations: Budget::new(limits.observations) }
    }
}

/// A limit that all peers share.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    used: Arc<AtomicUsize>,
    limit: usize,
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Self {
        Self { used: Arc::default(), limit }
    }

    /// Takes a share, or returns `None` if the limit is reached.
    pub(crate) fn take(&self, amount: usize) -> Option<Share> {
        let mut share = self.share();
        share.grow(amount).then_some(share)
    }

    /// Returns the empty share.
    pub(crate) fn share(&self) -> Share {
        Share { budget: self.clone(), amount: 0 }
    }

    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

/// A share of a [`Budget`].
#[derive(Debug)]
pub(crate) struct Share {
    budget: Budget,
    amount: usize,
}

impl Share {
    /// Enlarges the share. Returns `false` if the limit is reached.
    pub(crate) fn grow(&mut self, amount: usize) -> bool {
        let fits = self.budget.used().saturating_add(amount) <= self.budget.limit;
        if fits {
            self.budget.used.fetch_add(amount, Ordering::Relaxed);
            self.amount += amount;
        }
        fits
    }

    /// Reduces the share.
    pub(crate) fn shrink(&mut self, amount: usize) {
        let amount = amount.min(self.amount);
        self.budget.used.fetch_sub(amount, Ordering::Relaxed);
        self.amount -= amount;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.amount, Ordering::Relaxed);
    }
}
