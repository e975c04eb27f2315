//! Threads that park while there is nothing to do, and are woken for new work. Model-tested: `tests/model_executor.rs`.
//!
//! One rule prevents lost wake-ups: a thread that parks marks itself parked and then checks for work once more; a
//! thread that adds work adds it and then checks for parked threads. A fence separates the two steps on both sides, so
//! at least one of the two sees the other.

use viaduct_units::Mono;

use crate::sync::{AtomicU64, Futex, Ordering, fence};

const AWAKE: u32 = 0;
const PARKED: u32 = 1;

/// Maximum number of threads of a [`ParkingLot`].
pub(crate) const THREADS_MAX: usize = u64::BITS as usize;

/// Parks one thread on a futex.
pub(crate) struct Parker {
    futex: Futex,
}

impl Parker {
    pub(crate) fn new() -> Self {
        Self { futex: Futex::new(AWAKE) }
    }

    /// Checks for work with `find`; if there is none, sleeps until [`Self::unpark`] or until `deadline`. May wake
    /// spuriously.
    pub(crate) fn park<T>(&self, deadline: Option<Mono>, find: impl FnOnce() -> Option<T>) -> Option<T> {
        // Both sides swap, so that a wake-up for an earlier sleep does not count for this sleep.
        self.futex.swap(PARKED, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let found = find();
        if found.is_none() {
            self.futex.wait(PARKED, deadline);
        }
        // A thread that woke this one has already written `AWAKE`.
        if self.futex.load(Ordering::Relaxed) != AWAKE {
            self.futex.swap(AWAKE, Ordering::Relaxed);
        }
        found
    }

    /// Wakes the thread for work that was added before. Makes no system call if the thread is awake.
    #[inline]
    pub(crate) fn unpark(&self) {
        fence(Ordering::SeqCst);
        if self.futex.load(Ordering::Relaxed) == PARKED && self.futex.swap(AWAKE, Ordering::Relaxed) == PARKED {
            self.futex.wake();
        }
    }
}

/// Parks up to [`THREADS_MAX`] threads that share their work.
pub(crate) struct ParkingLot {
    /// A bit for each thread that sleeps, or is about to and checks once more. Another thread that clears the bit has
    /// claimed that thread for one item of work.
    parked: AtomicU64,
    futexes: Box<[Futex]>,
}

impl ParkingLot {
    pub(crate) fn new(threads: usize) -> Self {
        Self { parked: AtomicU64::new(0), futexes: (0..threads.min(THREADS_MAX)).map(|_| Futex::new(AWAKE)).collect() }
    }

    /// Parks the thread of that number as [`Parker::park`] does.
    pub(crate) fn park<T>(&self, thread: usize, find: impl FnOnce() -> Option<T>) -> Option<T> {
        let bit = 1 << thread;
        self.futexes[thread].store(PARKED, Ordering::Relaxed);
        // A thread that claims this one reads the bit first, so it writes the futex after the store above.
        self.parked.fetch_or(bit, Ordering::Release);
        fence(Ordering::SeqCst);
        let found = find();
        if found.is_none() {
            self.futexes[thread].wait(PARKED, None);
        }
        let claimed = self.parked.fetch_and(!bit, Ordering::Relaxed) & bit == 0;
        if claimed && found.is_some() {
            // This thread may have been claimed for other work than it found. Another thread must run that work now.
            self.unpark_one();
        }
        found
    }

    /// Wakes one of the parked threads for work that was added before. Makes no system call if none is parked.
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

    /// Wakes every thread, after the end was announced.
    pub(crate) fn unpark_all(&self) {
        for _ in &self.futexes {
            self.unpark_one();
        }
    }
}
