//! Threads that sleep while there is nothing to do, and are woken for what has come. Model-tested:
//! `tests/model_executor.rs`.
//!
//! One rule keeps wake-ups from being lost: who sleeps says so and then looks once more; who brings work puts it down and
//! then looks for a sleeper. A fence stands between the two steps on both sides, so at least one of them sees the other.

use viaduct_units::Mono;

use crate::sync::{AtomicU64, Ordering, Word, fence};

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

/// Threads that a [`Dormitory`] has beds for at most.
pub(crate) const BEDS_MAX: usize = u64::BITS as usize;

/// Where one thread sleeps: a word that the kernel waits on.
pub(crate) struct Bed {
    word: Word,
}

impl Bed {
    pub(crate) fn new() -> Self {
        Self { word: Word::new(AWAKE) }
    }

    /// Looks for work; where there is none, sleeps until somebody wakes this thread, or until `deadline`. It may wake for
    /// no reason.
    pub(crate) fn sleep<T>(&self, deadline: Option<Mono>, find: impl FnOnce() -> Option<T>) -> Option<T> {
        // Both sides swap, so that a wake-up for an earlier sleep cannot be taken for one for this.
        self.word.swap(ASLEEP, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let found = find();
        if found.is_none() {
            self.word.wait(ASLEEP, deadline);
        }
        // Who woke this thread has written it already.
        if self.word.load(Ordering::Relaxed) != AWAKE {
            self.word.swap(AWAKE, Ordering::Relaxed);
        }
        found
    }

    /// Wakes the thread for work that was put down before. No system call where it is awake.
    #[inline]
    pub(crate) fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.word.load(Ordering::Relaxed) == ASLEEP && self.word.swap(AWAKE, Ordering::Relaxed) == ASLEEP {
            self.word.wake();
        }
    }
}

/// Where up to [`BEDS_MAX`] threads sleep that take from the same work.
pub(crate) struct Dormitory {
    /// A bit for each thread that sleeps, or is about to and looks once more. Who clears it for another has claimed that
    /// thread for one piece of work.
    asleep: AtomicU64,
    words: Box<[Word]>,
}

impl Dormitory {
    pub(crate) fn new(beds: usize) -> Self {
        Self { asleep: AtomicU64::new(0), words: (0..beds.min(BEDS_MAX)).map(|_| Word::new(AWAKE)).collect() }
    }

    /// As [`Bed::sleep`], for the thread of that number.
    pub(crate) fn sleep<T>(&self, thread: usize, find: impl FnOnce() -> Option<T>) -> Option<T> {
        let bit = 1 << thread;
        self.words[thread].store(ASLEEP, Ordering::Relaxed);
        // Who claims this thread writes its word after this.
        self.asleep.fetch_or(bit, Ordering::Release);
        fence(Ordering::SeqCst);
        let found = find();
        if found.is_none() {
            self.words[thread].wait(ASLEEP, None);
        }
        let claimed = self.asleep.fetch_and(!bit, Ordering::Relaxed) & bit == 0;
        if claimed && found.is_some() {
            // What this thread was claimed for may be other work than what it found: that would wait for this to end.
            self.wake_one();
        }
        found
    }

    /// Wakes one of the threads that sleep for work that was put down before. No system call where none does.
    pub(crate) fn wake_one(&self) {
        fence(Ordering::SeqCst);
        loop {
            let asleep = self.asleep.load(Ordering::Relaxed);
            if asleep == 0 {
                return;
            }
            let bit = asleep & asleep.wrapping_neg();
            if self.asleep.fetch_and(!bit, Ordering::Acquire) & bit != 0 {
                let word = &self.words[bit.trailing_zeros() as usize];
                word.store(AWAKE, Ordering::Relaxed);
                return word.wake();
            }
        }
    }

    /// Wakes every thread, for an end that was announced before.
    pub(crate) fn wake_all(&self) {
        self.words.iter().for_each(|_| self.wake_one());
    }
}
