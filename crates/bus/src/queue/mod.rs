//! A bounded queue between threads of different priority.
//!
//! A publisher may be preempted by its own reader in the middle of a push. In a lock-free ring the reader then finds a
//! slot that is taken but not filled, and spins for it. Under SCHED_FIFO on one core it spins forever, because it keeps
//! the publisher from running. This queue has a lock with priority inheritance, so the publisher continues and the
//! reader waits for about ten instructions (`docs/decisions/0004`).

mod sys;

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::prefetch::PrefetchSet;
pub(crate) use sys::{PriorityGuard, PriorityMutex};

/// Number of slots that are prefetched.
const SLOTS_PREFETCHED: usize = 2;

pub(crate) struct Queue<T> {
    ring: PriorityMutex<Ring<T>>,
    /// The length, readable without the lock; changed under the lock.
    length: AtomicUsize,
}

impl<T> std::fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Queue({} of {})", self.len(), self.ring.lock().slots.len())
    }
}

impl<T> Queue<T> {
    /// Creates a queue of `capacity` slots, at least one.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { ring: PriorityMutex::new(Ring::new(capacity.max(1))), length: AtomicUsize::new(0) }
    }

    /// Adds an item at the end. Returns the item as an error if the queue is full.
    #[inline]
    pub(crate) fn push(&self, item: T) -> Result<(), T> {
        let mut ring = self.ring.lock();
        if ring.is_full() {
            return Err(item);
        }
        ring.push(item);
        self.length.store(ring.length, Ordering::Relaxed);
        Ok(())
    }

    /// Adds an item at the end. If the queue is full, removes and returns the oldest item.
    #[inline]
    pub(crate) fn push_overwriting(&self, item: T) -> Option<T> {
        let mut ring = self.ring.lock();
        let oldest = if ring.is_full() { ring.pop() } else { None };
        ring.push(item);
        self.length.store(ring.length, Ordering::Relaxed);
        oldest
    }

    /// Removes and returns the oldest item.
    #[inline]
    pub(crate) fn pop(&self) -> Option<T> {
        let mut ring = self.ring.lock();
        let oldest = ring.pop();
        self.length.store(ring.length, Ordering::Relaxed);
        oldest
    }

    /// Collects the first slots, and the cache lines that `of_item` adds for each item.
    pub(crate) fn collect_lines(&self, lines: &mut PrefetchSet, of_item: impl Fn(&T, &mut PrefetchSet)) {
        let ring = self.ring.lock();
        lines.add(&ring.slots[..ring.slots.len().min(SLOTS_PREFETCHED)]);
        for item in ring.slots.iter().flatten() {
            of_item(item, lines);
        }
    }

    /// Returns the length without taking the lock: an item that another thread is adding may be missing.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.length.load(Ordering::Relaxed)
    }

    /// Returns `true` if the queue is empty. Takes the lock, so the result is ordered with every push and pop.
    pub(crate) fn is_empty(&self) -> bool {
        self.ring.lock().length == 0
    }
}

/// A ring of slots. Each is written at the start, so that no page of them faults later.
struct Ring<T> {
    slots: Box<[Option<T>]>,
    oldest: usize,
    length: usize,
}

impl<T> Ring<T> {
    /// Writing a slot touches its page, because no slot is longer than a page.
    const SHORT: () = assert!(size_of::<Option<T>>() <= 4096);

    fn new(capacity: usize) -> Self {
        let () = Self::SHORT;
        // If `None` is all zeros, the memory might be allocated without being written: the compiler must not see the
        // value.
        Self { slots: (0..capacity).map(|_| black_box(None)).collect(), oldest: 0, length: 0 }
    }

    fn is_full(&self) -> bool {
        self.length == self.slots.len()
    }

    /// Returns the index of the slot `count` after the oldest item's.
    fn after_oldest(&self, count: usize) -> usize {
        let slot = self.oldest + count;
        if slot < self.slots.len() { slot } else { slot - self.slots.len() }
    }

    /// Adds an item at the end. The ring must not be full.
    fn push(&mut self, item: T) {
        let slot = self.after_oldest(self.length);
        self.slots[slot] = Some(item);
        self.length += 1;
    }

    fn pop(&mut self) -> Option<T> {
        let item = self.slots[self.oldest].take()?;
        self.length -= 1;
        // An empty ring restarts at the front: if the reader keeps up, every item uses the same slot.
        self.oldest = if self.length == 0 { 0 } else { self.after_oldest(1) };
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_overwrites_the_oldest_or_refuses_the_newest() {
        let queue = Queue::new(2);
        assert_eq!((queue.push(1), queue.push(2), queue.push(3)), (Ok(()), Ok(()), Err(3)));
        assert_eq!((queue.push_overwriting(4), queue.len()), (Some(1), 2));
        assert_eq!((queue.pop(), queue.pop(), queue.pop(), queue.len()), (Some(2), Some(4), None, 0));
    }

    #[test]
    fn each_item_of_many_threads_is_popped_once_in_its_threads_order() {
        const EACH: u32 = 20_000;
        let queue = Queue::new(64);
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let queue = &queue;
                scope.spawn(move || {
                    for number in 0..EACH {
                        let mut item = (thread, number);
                        while let Err(refused) = queue.push(item) {
                            item = refused;
                            std::thread::yield_now();
                        }
                    }
                });
            }
            let mut next = [0; 3];
            while next != [EACH; 3] {
                match queue.pop() {
                    Some((thread, number)) => {
                        let thread: usize = thread;
                        assert_eq!(number, next[thread]);
                        next[thread] += 1;
                    }
                    None => std::thread::yield_now(),
                }
            }
        });
    }
}
