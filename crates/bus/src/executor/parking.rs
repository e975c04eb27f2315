//! Threads that sleep while there is nothing to do, and are woken for what has come. Model-tested:
//! `tests/model_executor.rs`.
//!
//! One rule keeps wake-ups from being lost: who sleeps says so and then looks once more; who brings work puts it down and
//! then looks for a sleeper. A fence stands between the two steps on both sides, so at least one of them sees the other.

use viaduct_units::Mono;

use crate::sync::{AtomicU64, Futex, Ordering, fence};

const AWAKE: u32 = 0;
const PARKED: u32 = 1;

/// Threads that a [`ParkingLot`] has lot for at most.
pub(crate) const THREADS_MAX: usize = u64::BITS as usize;

/// Where one thread sleeps: a futex that the kernel waits on.
pub(crate) struct Parker {
    futex: Futex,
}

impl Parker {
    pub(crate) fn new() -> Self {
        Self { futex: Futex::new(AWAKE) }
    }

    /// Looks for work; where there is none, sleeps until somebody wakes this thread, or until `deadline`. It may wake for
    /// no reason.
    pub(crate) fn park<T>(&self, deadline: Option<Mono>, find: impl FnOnce() -> Option<T>) -> Option<T> {
        // Both sides swap, so that a wake-up for an earlier sleep cannot be taken for one for this.
        self.futex.swap(PARKED, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let found = find();
        if found.is_none() {
            self.futex.wait(PARKED, deadline);
        }
        // Who woke this thread has written it already.
        if self.futex.load(Ordering::Relaxed) != AWAKE {
            self.futex.swap(AWAKE, Ordering::Relaxed);
        }
        found
    }

    /// Wakes the thread for work that was put down before. No system call where it is awake.
    #[inline]
    pub(crate) fn unpark(&self) {
        fence(Ordering::SeqCst);
        if self.futex.load(Ordering::Relaxed) == PARKED && self.futex.swap(AWAKE, Ordering::Relaxed) == PARKED {
            self.futex.wake();
        }
    }
}

/// Where up to [`THREADS_MAX`] threads sleep that take from the same work.
pub(crate) struct ParkingLot {
    /// A bit for each thread that sleeps, or is about to and looks once more. Who clears it for another has claimed that
    /// thread for one piece of work.
    parked: AtomicU64,
    futexes: Box<[Futex]>,
}

impl ParkingLot {
    pub(crate) fn new(threads: usize) -> Self {
        Self { parked: AtomicU64::new(0), futexes: (0..threads.min(THREADS_MAX)).map(|_| Futex::new(AWAKE)).collect() }
    }

    /// As [`Parker::park`], for the thread of that number.
    pub(crate) fn park<T>(&self, thread: usize, find: impl FnOnce() -> Option<T>) -> Option<T> {
        let bit = 1 << thread;
        self.futexes[thread].store(PARKED, Ordering::Relaxed);
        // Who claims this thread writes its futex after this.
        self.parked.fetch_or(bit, Ordering::Release);
        fence(Ordering::SeqCst);
        let found = find();
        if found.is_none() {
            self.futexes[thread].wait(PARKED, None);
        }
        let claimed = self.parked.fetch_and(!bit, Ordering::Relaxed) & bit == 0;
        if claimed && found.is_some() {
            // What this thread was claimed for may be other work than what it found: that would wait for this to end.
            self.unpark_one();
        }
        found
    }

    /// Wakes one of the threads that sleep for work that was put down before. No system call where none does.
    pub(crate) fn unpark_one(&self) {
        fence(Ordering::SeqCst);
        loop {
            let parked = self.parked.load(Ordering::Relaxed);
            if parked == 0 {
                return;
            }
            let bit = parked & parked.wrapping_neg();
            if self.parked.fetch_and(!bit, Ordering::Acquire) & bit != 0 {
                let futex = &self.futexes[bit.trailing_zeros() as usize];
                futex.store(AWAKE, Ordering::Relaxed);
                return futex.wake();
            }
        }
    }

    /// Wakes every thread, for an end that was announced before.
    pub(crate) fn unpark_all(&self) {
        self.futexes.iter().for_each(|_| self.unpark_one());
    }
}
