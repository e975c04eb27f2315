//! Buffers that are filled in place and reused.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

/// Loans of one topic that may be out at a time, in the hands of publishers, queues and readers together.
pub(crate) const LOANS_MAX: usize = 256;

/// Longest buffer that is lent, 1 GiB: longer than any frame of a sensor, so a longer one is a mistake of whoever asks.
pub(crate) const LOAN_OCTETS_MAX: usize = 1 << 30;

/// Why a buffer is not lent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoanError {
    /// Every buffer of the topic's pool is still in use: a reader holds samples for too long.
    #[error("all {LOANS_MAX} buffers of topic `{topic}` are in use: a subscriber holds its samples")]
    Exhausted {
        /// The topic.
        topic: String,
    },
    /// The length is more than a message can have.
    #[error("a buffer of {length} octets for topic `{topic}` is longer than {LOAN_OCTETS_MAX}")]
    TooLong {
        /// The topic.
        topic: String,
        /// The length that was asked for, in octets.
        length: usize,
    },
}

/// The buffers of one topic. A buffer comes back when the last reader lets go. The smallest that fits goes out first, so
/// that small loans do not use up the large buffers; of equal ones the last one back, whose memory is still in the cache.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    free: Mutex<Free>,
}

#[derive(Debug, Default)]
struct Free {
    buffers: Vec<Box<[u8]>>,
    lent: usize,
}

impl Pool {
    /// Lends a buffer of `length` octets, at most [`LOAN_OCTETS_MAX`]; `None` when all are out. Its content is whatever was
    /// there before.
    pub(crate) fn lend(self: &Arc<Self>, length: usize) -> Option<Loan> {
        let memory = {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            if free.lent >= LOANS_MAX {
                return None;
            }
            free.lent += 1;
            let fitting = free.buffers.iter().enumerate().rev().filter(|(_, buffer)| buffer.len() >= length);
            let smallest = fitting.min_by_key(|(_, buffer)| buffer.len()).map(|(index, _)| index);
            smallest.map(|index| free.buffers.remove(index))
        };
        let memory = memory.unwrap_or_else(|| fresh(length));
        Some(Loan { buffer: Buffer { memory, length, pool: Arc::clone(self) } })
    }

    fn take_back(&self, memory: Box<[u8]>) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.lent -= 1;
        if free.buffers.len() < LOANS_MAX {
            free.buffers.push(memory);
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

/// A buffer to be filled in place and then [frozen](Loan::freeze) into a field of a message.
#[derive(Debug)]
pub struct Loan {
    buffer: Buffer,
}

impl Loan {
    /// Ends the filling. The octets can be shared from here on; the buffer returns to its pool with the last of them.
    #[must_use]
    pub fn freeze(self) -> Bytes {
        Bytes::from_owner(self.buffer)
    }
}

impl Deref for Loan {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.buffer.as_ref()
    }
}

impl DerefMut for Loan {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.buffer.memory[..self.buffer.length]
    }
}

#[derive(Debug)]
struct Buffer {
    memory: Box<[u8]>,
    length: usize,
    pool: Arc<Pool>,
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.memory[..self.length]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.pool.take_back(std::mem::take(&mut self.memory));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_buffer_back_is_the_first_one_out() {
        let pool = Arc::new(Pool::default());
        let (first, second) = (pool.lend(100).unwrap(), pool.lend(100).unwrap());
        let at = first.as_ptr();
        drop(second);
        let shared = first.freeze();
        let also = shared.clone();
        drop(shared);
        assert_eq!(also.len(), 100);
        drop(also);
        assert_eq!(pool.lend(90).unwrap().as_ptr(), at);
    }

    #[test]
    fn a_small_loan_leaves_the_large_buffer_to_a_large_one() {
        let pool = Arc::new(Pool::default());
        let (small, large) = (pool.lend(64).unwrap(), pool.lend(4096).unwrap());
        let (small_at, large_at) = (small.as_ptr(), large.as_ptr());
        drop(small);
        drop(large);
        let (small, large) = (pool.lend(60).unwrap(), pool.lend(4000).unwrap());
        assert_eq!((small.as_ptr(), large.as_ptr()), (small_at, large_at));
    }

    #[test]
    fn the_pool_has_an_end() {
        let pool = Arc::new(Pool::default());
        let mut lent: Vec<Loan> = (0..LOANS_MAX).map(|_| pool.lend(8).unwrap()).collect();
        assert!(pool.lend(8).is_none());
        lent.pop();
        assert!(pool.lend(8).is_some());
    }
}
