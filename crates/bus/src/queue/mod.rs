//! A queue between threads of different priority, with a fixed number of slots.
//!
//! A publisher may be preempted by its own reader in the middle of a push. In a lock-free ring the reader then finds a
//! place that is taken and not filled, and spins for it; under SCHED_FIFO on one core it spins for ever, because it keeps
//! the publisher from running. This queue is behind a lock that lends its owner the priority of whoever waits for it, so
//! the publisher runs on and the reader waits for some ten instructions (`docs/decisions/0004`).

mod sys;

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::prefetch::PrefetchSet;
pub(crate) use sys::{PriorityGuard, PriorityMutex};

/// Places of a queue that are asked for before they are used.
const SLOTS_PREFETCHED: usize = 2;

pub(crate) struct Queue<T> {
    ring: PriorityMutex<Ring<T>>,
    /// What a quick look from outside finds; changed under the lock.
    length: AtomicUsize,
}

impl<T> std::fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Queue({} of {})", self.len(), self.ring.lock().slots.len())
    }
}

impl<T> Queue<T> {
    /// A queue of that many slots, and one at least.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { ring: PriorityMutex::new(Ring::new(capacity.max(1))), length: AtomicUsize::new(0) }
    }

    /// Puts an item at the end; gives it back where there is no room.
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

    /// Puts an item at the end; where there is no room the oldest makes it, and is given back.
    #[inline]
    pub(crate) fn push_overwriting(&self, item: T) -> Option<T> {
        let mut ring = self.ring.lock();
        let oldest = if ring.is_full() { ring.pop() } else { None };
        ring.push(item);
        self.length.store(ring.length, Ordering::Relaxed);
        oldest
    }

    /// The oldest item.
    #[inline]
    pub(crate) fn pop(&self) -> Option<T> {
        let mut ring = self.ring.lock();
        let oldest = ring.pop();
        self.length.store(ring.length, Ordering::Relaxed);
        oldest
    }

    /// Adds the first slots, and what `of_item` says of the items.
    pub(crate) fn collect_lines(&self, lines: &mut PrefetchSet, of_item: impl Fn(&T, &mut PrefetchSet)) {
        let ring = self.ring.lock();
        lines.add(&ring.slots[..ring.slots.len().min(SLOTS_PREFETCHED)]);
        ring.slots.iter().flatten().for_each(|item| of_item(item, lines));
    }

    /// Items at a quick look: one that another thread puts in just now may not be seen yet.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.length.load(Ordering::Relaxed)
    }

    /// Whether there is none, in one order with every push and pop.
    pub(crate) fn is_empty(&self) -> bool {
        self.ring.lock().length == 0
    }
}

/// Places that go around. Each is written when it is made, so that no page of them is missing later.
struct Ring<T> {
    slots: Box<[Option<T>]>,
    oldest: usize,
    length: usize,
}

impl<T> Ring<T> {
    /// A place that is written touches its page where it is no longer than one.
    const SHORT: () = assert!(size_of::<Option<T>>() <= 4096);

    fn new(capacity: usize) -> Self {
        let () = Self::SHORT;
        // Where `None` is all zeros, the memory could come unwritten: the compiler must not see that it is.
        Self { slots: (0..capacity).map(|_| black_box(None)).collect(), oldest: 0, length: 0 }
    }

    fn is_full(&self) -> bool {
        self.length == self.slots.len()
    }

    /// The place so many after that of the oldest item.
    fn after_oldest(&self, count: usize) -> usize {
        let slot = self.oldest + count;
        if slot < self.slots.len() { slot } else { slot - self.slots.len() }
    }

    /// Puts an item behind the last one. There must be room.
    fn push(&mut self, item: T) {
        let slot = self.after_oldest(self.length);
        self.slots[slot] = Some(item);
        self.length += 1;
    }

    fn pop(&mut self) -> Option<T> {
        let item = self.slots[self.oldest].take()?;
        self.length -= 1;
        // An empty ring begins at the front again: where the reader keeps up, each item has the same place.
        self.oldest = if self.length == 0 { 0 } else { self.after_oldest(1) };
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_makes_room_or_the_new_one_is_refused() {
        let queue = Queue::new(2);
        assert_eq!((queue.push(1), queue.push(2), queue.push(3)), (Ok(()), Ok(()), Err(3)));
        assert_eq!((queue.push_overwriting(4), queue.len()), (Some(1), 2));
        assert_eq!((queue.pop(), queue.pop(), queue.pop(), queue.len()), (Some(2), Some(4), None, 0));
    }

    #[test]
    fn each_item_of_many_threads_comes_out_once_and_in_its_publishers_order() {
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
