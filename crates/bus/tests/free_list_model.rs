//! The free list of a pool with every order of steps that the memory model allows.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the failure")]

use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::sync::Arc;
use loom::thread;

/// What the list finds in place of the standard library's atomics.
mod sync {
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
}

#[path = "../src/pool/free_list.rs"]
mod free_list;

use free_list::FreeList;

/// A list with the memory that its numbers stand for. The model reports an access that does not happen after the one
/// before it, so a number in two hands, or one that is passed on without its bytes, is found.
struct Pool {
    free: FreeList,
    buffers: Vec<UnsafeCell<u32>>,
}

impl Pool {
    fn new(count: u32) -> Arc<Self> {
        let buffers = (0..count).map(|_| UnsafeCell::new(0)).collect();
        Arc::new(Self { free: FreeList::full(count), buffers })
    }

    fn lend(&self) -> Option<u32> {
        let number = self.free.pop()?;
        self.touch(number);
        Some(number)
    }

    fn give_back(&self, number: u32) {
        self.touch(number);
        self.free.push(number);
    }

    fn touch(&self, number: u32) {
        self.buffers[number as usize].with_mut(|_| ());
    }

    /// Every number is back, once.
    fn assert_whole(&self) {
        let mut all: Vec<u32> = std::iter::from_fn(|| self.lend()).collect();
        all.sort_unstable();
        assert_eq!(all, (0..self.buffers.len() as u32).collect::<Vec<_>>());
    }
}

/// Each function is a thread, interrupted up to that often; after all of them the list is whole.
fn check(count: u32, preemptions: usize, threads: &'static [fn(&Pool)]) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(move || {
        let pool = Pool::new(count);
        let run = |body: &'static fn(&Pool)| {
            let pool = Arc::clone(&pool);
            thread::spawn(move || body(&pool))
        };
        let running: Vec<_> = threads.iter().map(run).collect();
        running.into_iter().for_each(|thread| thread.join().unwrap());
        pool.assert_whole();
    });
}

fn lend_and_return(pool: &Pool) {
    if let Some(number) = pool.lend() {
        pool.give_back(number);
    }
}

fn lend_two_and_return_the_first_first(pool: &Pool) {
    let (first, second) = (pool.lend(), pool.lend());
    first.into_iter().chain(second).for_each(|number| pool.give_back(number));
}

#[test]
fn two_threads_that_lend_and_return() {
    check(2, 4, &[lend_and_return, lend_and_return]);
}

#[test]
fn three_threads_and_one_buffer() {
    check(1, 2, &[lend_and_return, lend_and_return, lend_and_return]);
}

/// The top is popped, what is below it too, and the top is pushed again, while another thread is in the middle of a pop.
#[test]
fn a_stack_that_looks_the_same_and_is_another() {
    check(3, 4, &[lend_two_and_return_the_first_first, lend_and_return]);
    check(2, 4, &[lend_two_and_return_the_first_first, lend_and_return]);
}
