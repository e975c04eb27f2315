//! The free list of a pool, with every order of steps that the memory model allows.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the failure")]

use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::sync::Arc;
use loom::thread;

/// Replaces the standard library's atomics below the included file.
mod sync {
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
}

#[path = "../src/pool/free_list.rs"]
mod free_list;

use free_list::FreeList;

/// A list and the memory that its numbers stand for. The model reports an access that does not happen after the one
/// before it. So it finds a number with two owners, and one that is passed on without its bytes.
struct Pool {
    free: FreeList,
    buffers: Vec<UnsafeCell<u32>>,
}

impl Pool {
    fn new(count: u32) -> Arc<Self> {
        let buffers = (0..count).map(|_| UnsafeCell::new(0)).collect();
        Arc::new(Self { free: FreeList::full(count), buffers })
    }

    fn take(&self) -> Option<u32> {
        let number = self.free.pop()?;
        self.touch(number);
        Some(number)
    }

    fn put_back(&self, number: u32) {
        self.touch(number);
        self.free.push(number);
    }

    fn touch(&self, number: u32) {
        self.buffers[number as usize].with_mut(|_| ());
    }

    /// Checks that every number is in the list exactly once.
    fn assert_whole(&self) {
        let mut all: Vec<u32> = std::iter::from_fn(|| self.take()).collect();
        all.sort_unstable();
        assert_eq!(all, (0..self.buffers.len() as u32).collect::<Vec<_>>());
    }
}

/// Runs each function on a thread, with at most `preemptions` preemptions; then the list must be whole.
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

fn take_and_return(pool: &Pool) {
    if let Some(number) = pool.take() {
        pool.put_back(number);
    }
}

fn take_two_and_return_in_order(pool: &Pool) {
    let (first, second) = (pool.take(), pool.take());
    first.into_iter().chain(second).for_each(|number| pool.put_back(number));
}

#[test]
fn two_threads_that_take_and_return() {
    check(2, 4, &[take_and_return, take_and_return]);
}

#[test]
fn three_threads_and_one_buffer() {
    check(1, 2, &[take_and_return, take_and_return, take_and_return]);
}

/// The ABA case: the top and the number below are popped and the top is pushed again, while another thread is in the
/// middle of a pop.
#[test]
fn the_aba_case() {
    check(3, 4, &[take_two_and_return_in_order, take_and_return]);
    check(2, 4, &[take_two_and_return_in_order, take_and_return]);
}
