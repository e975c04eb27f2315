//! The set of an executor's groups that are queued. Model-tested: `tests/model_executor.rs`.
//!
//! It is a set of bits, not a queue. Adding is one instruction that never waits, so a preempted notifier delays no
//! other thread. In a queue with slots a reader of higher priority would spin for the slot of a writer that it keeps
//! from running.

use crate::sync::{AtomicU64, Ordering};

/// Groups in one word.
const BITS: usize = u64::BITS as usize;

/// A set of up to `64 * WORDS` groups, by number.
pub(crate) struct Ready<const WORDS: usize> {
    words: [AtomicU64; WORDS],
}

impl<const WORDS: usize> Ready<WORDS> {
    pub(crate) fn new() -> Self {
        Self { words: std::array::from_fn(|_| AtomicU64::new(0)) }
    }

    /// Adds a group.
    #[inline]
    pub(crate) fn add(&self, group: usize) {
        self.words[group / BITS].fetch_or(1 << (group % BITS), Ordering::Release);
    }

    /// Removes and returns the next group, from `from` upwards and around, so that all groups take turns.
    pub(crate) fn take(&self, from: usize) -> Option<usize> {
        let first = from / BITS % WORDS;
        let offset = from % BITS;
        let late = !0 << offset;
        let rest = (first + 1..WORDS).chain(0..first).map(|word| (word, !0));
        let around = std::iter::once((first, late)).chain(rest).chain(std::iter::once((first, !late)));
        around.into_iter().find_map(|(word, mask)| self.take_of(word, mask))
    }

    fn take_of(&self, word: usize, mask: u64) -> Option<usize> {
        loop {
            let queued = self.words[word].load(Ordering::Relaxed) & mask;
            if queued == 0 {
                return None;
            }
            let bit = queued & queued.wrapping_neg();
            // Another thread of the executor may have been faster.
            if self.words[word].fetch_and(!bit, Ordering::Acquire) & bit != 0 {
                return Some(word * BITS + bit.trailing_zeros() as usize);
            }
        }
    }
}
