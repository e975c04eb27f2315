//! A private futex (futex(2)).

mod sys;

use std::sync::atomic::{AtomicU32, Ordering};

use viaduct_units::Mono;

/// A number that threads can wait on until it changes.
pub(crate) struct Futex(AtomicU32);

impl Futex {
    pub(crate) fn new(value: u32) -> Self {
        Self(AtomicU32::new(value))
    }

    pub(crate) fn load(&self, order: Ordering) -> u32 {
        self.0.load(order)
    }

    pub(crate) fn store(&self, value: u32, order: Ordering) {
        self.0.store(value, order);
    }

    pub(crate) fn swap(&self, value: u32, order: Ordering) -> u32 {
        self.0.swap(value, order)
    }

    /// Sleeps while the value is `expected`, until [`Self::wake`] or until `deadline`; may return spuriously.
    pub(crate) fn wait(&self, expected: u32, deadline: Option<Mono>) {
        sys::futex_wait(&self.0, expected, deadline);
    }

    /// Changes the value and wakes all waiting threads.
    pub(crate) fn change(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        sys::futex_wake_all(&self.0);
    }

    /// Wakes one waiting thread.
    pub(crate) fn wake(&self) {
        sys::futex_wake_one(&self.0);
    }
}
