//! The numbers of the buffers that are free: a stack without a lock (R. K. Treiber, "Systems Programming: Coping with
//! Parallelism", IBM RJ 5118, 1986).
//!
//! A thread that is interrupted between two steps holds up nobody, so a publisher of a high real-time priority never
//! waits for a reader of a low one. `tests/free_list_model.rs` includes this file and runs it with every order of steps.

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// In place of a number: nothing is below.
const NONE: u32 = u32::MAX;

/// Last in, first out: the buffer that came back last is the one whose bytes are still in the cache.
#[derive(Debug)]
pub(crate) struct FreeList {
    /// ```text
    ///  63            32 31             0
    /// |   changes      |   top          |
    /// ```
    /// The count of changes keeps a thread that read `top` and then slept from taking it for the same stack when others
    /// have popped it, popped what was below, and pushed it again.
    head: AtomicU64,
    /// By number: the number below. Means something only while the number is in the list.
    below: Box<[AtomicU32]>,
}

impl FreeList {
    /// The numbers 0 to `count` - 1, 0 on top.
    pub(crate) fn full(count: u32) -> Self {
        let below = |number: u32| AtomicU32::new(if number + 1 < count { number + 1 } else { NONE });
        let top = if count == 0 { NONE } else { 0 };
        Self { head: AtomicU64::new(u64::from(top)), below: (0..count).map(below).collect() }
    }

    /// Takes the top number; what its last owner wrote is seen by the new one. `None` where the list is empty.
    pub(crate) fn pop(&self) -> Option<u32> {
        let mut head = self.head.load(Ordering::Acquire);
        loop {
            let top = top_of(head);
            // `below` of a number that somebody else has popped by now may be stale; then the exchange fails.
            let below = self.below.get(top as usize)?.load(Ordering::Relaxed);
            let popped = changed(head, below);
            match self.head.compare_exchange_weak(head, popped, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some(top),
                Err(other) => head = other,
            }
        }
    }

    /// Puts a number on top. It must have been popped, and by nobody be pushed since.
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

/// The head after one more change, with another number on top.
const fn changed(head: u64, top: u32) -> u64 {
    ((head >> 32).wrapping_add(1) << 32) | top as u64
}
