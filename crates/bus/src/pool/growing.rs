//! The pool of a topic that nobody sized: it grows as buffers are asked for.

use std::sync::Arc;

use super::usage::Usage;
use crate::queue::PriorityMutex;

/// Loans of one topic that may be out at a time, in the hands of publishers, queues and readers together.
pub(super) const LOANS_MAX: usize = 256;

/// Buffers of many sizes. The smallest that fits goes out first, so that small loans do not use up the large buffers; of
/// equal ones the last one back, whose memory is still in the cache.
#[derive(Debug, Default)]
pub(super) struct Growing {
    free: PriorityMutex<Vec<Box<[u8]>>>,
    pub(super) usage: Usage,
}

impl Growing {
    /// Lends a buffer of at least `length` bytes; `None` when all are out.
    pub(super) fn lend(self: &Arc<Self>, length: usize) -> Option<Grown> {
        let memory = self.reserve(length)?.unwrap_or_else(|| fresh(length));
        Some(Grown { memory, pool: Arc::clone(self) })
    }

    /// Counts a loan and takes a buffer for it where one fits. One step under the lock, so that the limit holds.
    fn reserve(&self, length: usize) -> Option<Option<Box<[u8]>>> {
        let mut free = self.free.lock();
        if self.usage.lent() >= LOANS_MAX {
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

/// Memory that was written once, so that no page of it is missing when a publisher fills it.
fn fresh(length: usize) -> Box<[u8]> {
    let mut memory = vec![0_u8; length.next_power_of_two()];
    // Zeroed memory may be a promise of the kernel; writing something else makes it real.
    memory.fill(1);
    memory.into_boxed_slice()
}

/// One buffer in one hand; it returns to its pool when it is dropped.
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
