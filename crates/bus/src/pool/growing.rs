//! The pool of a topic that was not sized: it grows on demand.

use std::sync::Arc;

use super::usage::Usage;
use crate::queue::PriorityMutex;

/// Maximum number of buffers of one topic in use at a time, by publishers, queues and readers together.
pub(super) const LOANS_MAX: usize = 256;

/// Buffers of many sizes. A loan takes the smallest buffer that fits, so that small loans do not use up large buffers.
/// Among equal buffers it takes the last returned one, whose memory is still in the cache.
#[derive(Debug, Default)]
pub(super) struct Growing {
    free: PriorityMutex<Vec<Box<[u8]>>>,
    pub(super) usage: Usage,
}

impl Growing {
    /// Returns a buffer of at least `length` bytes, or `None` if [`LOANS_MAX`] are in use.
    pub(super) fn loan(self: &Arc<Self>, length: usize) -> Option<Grown> {
        let memory = self.reserve(length)?.unwrap_or_else(|| fresh(length));
        Some(Grown { memory, pool: Arc::clone(self) })
    }

    /// Counts a loan and takes a fitting free buffer, if there is one. Both are one step under the lock, so that the
    /// limit holds.
    fn reserve(&self, length: usize) -> Option<Option<Box<[u8]>>> {
        let mut free = self.free.lock();
        if self.usage.loaned() >= LOANS_MAX {
            self.usage.count_exhausted();
            return None;
        }
        self.usage.count_loan();
        let fitting = free.iter().enumerate().rev().filter(|(_, buffer)| buffer.len() >= length);
        let smallest = fitting.min_by_key(|(_, buffer)| buffer.len()).map(|(index, _)| index);
        Some(smallest.map(|index| free.remove(index)))
    }

    fn take_back(&self, memory: Box<[u8]>) {
        let mut free = self.free.lock();
        self.usage.count_return();
        if free.len() < LOANS_MAX {
            free.push(memory);
        }
    }
}

/// Allocates memory and writes every page, so that no page faults when a publisher fills it.
fn fresh(length: usize) -> Box<[u8]> {
    let mut memory = vec![0_u8; length.next_power_of_two()];
    // Zeroed memory may not be mapped yet; writing another value maps it.
    memory.fill(1);
    memory.into_boxed_slice()
}

/// A buffer in use; it returns to its pool when it is dropped.
#[derive(Debug)]
pub(super) struct Grown {
    pub(super) memory: Box<[u8]>,
    pool: Arc<Growing>,
}

impl Drop for Grown {
    fn drop(&mut self) {
        self.pool.take_back(std::mem::take(&mut self.memory));
    }
}
