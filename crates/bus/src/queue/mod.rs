//! A queue between threads of different priority, with a fixed number of places.
//!
//! A publisher may be preempted by its own reader in the middle of a push. In a lock-free ring the reader then finds a
//! place that is taken and not filled, and spins for it; under SCHED_FIFO on one core it spins for ever, because it keeps
//! the publisher from running. This queue is behind a lock that lends its owner the priority of whoever waits for it, so
//! the publisher runs on and the reader waits for some ten instructions (`docs/decisions/0004`).

mod sys;

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::prefetch::Lines;
pub(crate) use sys::{PriorityGuard, PriorityMutex};

/// Places of a queue that are asked for before they are used.
const PLACES_FETCHED: usize = 2;

pub(crate) struct Queue<T> {
    /// Has room for `capacity` items and never grows.
    items: PriorityMutex<VecDeque<T>>,
    capacity: usize,
    /// What a quick look from outside finds; changed under the lock.
    length: AtomicUsize,
}

impl<T> std::fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Queue({} of {})", self.len(), self.capacity)
    }
}

impl<T> Queue<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        let items = PriorityMutex::new(VecDeque::from(touched(capacity)));
        Self { items, capacity, length: AtomicUsize::new(0) }
    }

    /// Puts an item at the end; gives it back where there is no room.
    pub(crate) fn push(&self, item: T) -> Result<(), T> {
        let mut items = self.items.lock();
        if items.len() >= self.capacity {
            return Err(item);
        }
        items.push_back(item);
        self.note_length(&items);
        Ok(())
    }

    /// Puts an item at the end; where there is no room the oldest makes it, and is given back.
    pub(crate) fn force_push(&self, item: T) -> Option<T> {
        let mut items = self.items.lock();
        let oldest = if items.len() >= self.capacity { items.pop_front() } else { None };
        items.push_back(item);
        self.note_length(&items);
        oldest
    }

    /// The oldest item.
    pub(crate) fn pop(&self) -> Option<T> {
        let mut items = self.items.lock();
        let oldest = items.pop_front();
        if items.is_empty() {
            // The next item gets the first place again: where the reader keeps up, it is the same one each time.
            items.clear();
        }
        self.note_length(&items);
        oldest
    }

    /// Adds the begin of the places, and what `of_item` says of the items.
    pub(crate) fn add_lines(&self, lines: &mut Lines, of_item: impl Fn(&T, &mut Lines)) {
        let items = self.items.lock();
        // The place of the next item is there even where no item is.
        let (front, _) = items.as_slices();
        lines.add_octets(front.as_ptr().addr(), PLACES_FETCHED * size_of::<T>());
        items.iter().for_each(|item| of_item(item, lines));
    }

    /// Items at a quick look: one that another thread puts in just now may not be seen yet.
    pub(crate) fn len(&self) -> usize {
        self.length.load(Ordering::Relaxed)
    }

    /// Whether there is none, in one order with every push and pop.
    pub(crate) fn is_empty(&self) -> bool {
        self.items.lock().is_empty()
    }

    fn note_length(&self, items: &VecDeque<T>) {
        self.length.store(items.len(), Ordering::Relaxed);
    }
}

/// An empty list whose memory was written once, so that no page of it is missing when the queue first goes around.
fn touched<T>(capacity: usize) -> Vec<T> {
    let mut items = Vec::with_capacity(capacity);
    items.spare_capacity_mut().fill_with(MaybeUninit::zeroed);
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_makes_room_or_the_new_one_is_refused() {
        let queue = Queue::new(2);
        assert_eq!((queue.push(1), queue.push(2), queue.push(3)), (Ok(()), Ok(()), Err(3)));
        assert_eq!((queue.force_push(4), queue.len()), (Some(1), 2));
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
