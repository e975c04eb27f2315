//! Deadlines in the order of their time.

use std::collections::BTreeSet;

use viaduct_units::Mono;

/// A set of deadlines.
#[derive(Debug)]
pub(crate) struct Timers<T>(BTreeSet<(Mono, T)>);

impl<T: Ord> Default for Timers<T> {
    fn default() -> Self {
        Self(BTreeSet::new())
    }
}

impl<T: Ord + Copy> Timers<T> {
    pub(crate) fn set(&mut self, at: Mono, timer: T) {
        self.0.insert((at, timer));
    }

    pub(crate) fn clear(&mut self, at: Mono, timer: T) {
        self.0.remove(&(at, timer));
    }

    pub(crate) fn next(&self) -> Option<Mono> {
        self.0.first().map(|(at, _)| *at)
    }

    /// Removes and returns the first timer that is due.
    pub(crate) fn take_due(&mut self, now: Mono) -> Option<T> {
        self.0.first().filter(|(at, _)| *at <= now)?;
        self.0.pop_first().map(|(_, timer)| timer)
    }
}
