//! The numbers of the free buffers: a lock-free stack (R. K. Treiber, "Systems Programming: Coping with Parallelism",
//! IBM RJ 5118, 1986).
//!
//! A thread that is interrupted between two steps blocks no other thread. So a publisher of a high real-time priority
//! never waits for a reader of a low one. `tests/free_list_model.rs` includes this file and runs it with every order of
//! steps.

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Value that marks the end of the stack.
const NONE: u32 = u32::MAX;

/// A stack of free numbers. Last in, first out: the bytes of the buffer that was returned last are still in the cache.
#[derive(Debug)]
pub(crate) struct FreeList {
    /// ```text
    ///  63            32 31             0
    /// |   changes      |   top          |
    /// ```
    /// The count of changes solves the ABA problem. While a thread is delayed after it has loaded `top`, other threads
    /// may pop `top`, pop the number below, and push `top` again. The count then differs, so the exchange of the
    /// delayed thread fails.
    head: AtomicU64,
    /// For each number, the number below it. Valid only while the number is in the list.
    below: Box<[AtomicU32]>,
}

impl FreeList {
    /// Creates a list of the numbers 0 to `count` - 1, 0 on top.
    pub(crate) fn full(count: u32) -> Self {
        let below = |number: u32| AtomicU32::new(if number + 1 < count { number + 1 } else { NONE });
        let top = if count == 0 { NONE } else { 0 };
        Self { head: AtomicU64::new(u64::from(top)), below: (0..count).map(below).collect() }
    }

    /// Removes and returns the top number, or `None` if the list is empty. The new owner sees the writes of the last
    /// one.
    pub(crate) fn pop(&self) -> Option<u32> {
        let mut head = self.head.load(Ordering::Acquire);
        loop {
            let top = top_of(head);
            // Stale if another thread has popped the number meanwhile; then the exchange fails.
            let below = self.below.get(top as usize)?.load(Ordering::Relaxed);
            let popped = changed(head, below);
            match self.head.compare_exchange_weak(head, popped, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some(top),
                Err(other) => head = other,
            }
        }
    }

    /// Pushes a number that was popped and not pushed since.
    pub(crate) fn push(&self, number: u32) {
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            self.below[number as usize].store(top_of(head), Ordering::Relaxed);
            let pushed = changed(head, number);
            match self.head.compare_exchange_weak(head, pushed, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => head = other,
            }
        }
    }
}

const fn top_of(head: u64) -> u32 {
    head as u32
}

/// Returns the head after one more change, with another number on top.
const fn changed(head: u64, top: u32) -> u64 {
    ((head >> 32).wrapping_add(1) << 32) | top as u64
}
