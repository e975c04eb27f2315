//! A mutex with priority inheritance (futex(2), FUTEX_LOCK_PI), which the standard library lacks.

#![expect(unsafe_code, reason = "the value behind a lock of our own, and the futex calls")]

use std::cell::{Cell, UnsafeCell};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering, fence};

/// The lock is free.
const FREE: u32 = 0;

/// Maximum number of attempts to take the lock before waiting in the kernel: an owner on another core soon releases it.
const SPINS_MAX: usize = 32;

/// A mutex. While a thread waits, the kernel raises the owner to the priority of that thread.
pub(crate) struct PriorityMutex<T> {
    /// [`FREE`], or the thread id of the owner with the kernel's flags.
    owner: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: only the owner of the lock accesses `value`, one thread at a time, so it needs to be `Send` only.
unsafe impl<T: Send> Sync for PriorityMutex<T> {}

impl<T> PriorityMutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { owner: AtomicU32::new(FREE), value: UnsafeCell::new(value) }
    }

    /// Takes the lock until the guard is dropped. The lock is not recursive.
    #[inline]
    pub(crate) fn lock(&self) -> PriorityGuard<'_, T> {
        let thread = thread_number();
        if !take(&self.owner, thread) {
            self.wait(thread);
        }
        PriorityGuard { mutex: self, thread, not_send: PhantomData }
    }

    /// Waits until the owner releases the lock.
    #[cold]
    fn wait(&self, thread: u32) {
        loop {
            for _ in 0..SPINS_MAX {
                std::hint::spin_loop();
                if self.owner.load(Ordering::Relaxed) == FREE && take(&self.owner, thread) {
                    return;
                }
            }
            if lock_in_kernel(&self.owner) {
                // The kernel wrote the owner; the writes of the last owner must be visible.
                fence(Ordering::Acquire);
                return;
            }
            // The owner was just exiting, or a signal arrived, or the kernel does not support the lock.
            std::thread::yield_now();
        }
    }
}

impl<T> std::fmt::Debug for PriorityMutex<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PriorityMutex")
    }
}

impl<T: Default> Default for PriorityMutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

/// Tries to take the lock. Returns `true` if it was free.
#[inline]
fn take(owner: &AtomicU32, thread: u32) -> bool {
    owner.compare_exchange(FREE, thread, Ordering::Acquire, Ordering::Relaxed).is_ok()
}

/// Access to the value of a locked mutex. It stays on its thread, whose id the lock holds.
pub(crate) struct PriorityGuard<'a, T> {
    mutex: &'a PriorityMutex<T>,
    thread: u32,
    not_send: PhantomData<*const ()>,
}

impl<T> Deref for PriorityGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this thread holds the lock while the guard lives.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T> DerefMut for PriorityGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this thread holds the lock while the guard lives, and the guard is borrowed exclusively.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T> Drop for PriorityGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let owner = &self.mutex.owner;
        if owner.compare_exchange(self.thread, FREE, Ordering::Release, Ordering::Relaxed).is_err() {
            fence(Ordering::Release);
            unlock_in_kernel(owner);
        }
    }
}

/// Waits for the lock in the kernel. Returns `true` if this thread holds the lock.
#[cold]
fn lock_in_kernel(owner: &AtomicU32) -> bool {
    let no_timeout = std::ptr::null::<libc::timespec>();
    let operation = libc::FUTEX_LOCK_PI | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word lives across the call, and only this protocol writes it.
    unsafe { libc::syscall(libc::SYS_futex, owner.as_ptr(), operation, 0, no_timeout) == 0 }
}

/// Passes the lock to the waiting thread of the highest priority.
#[cold]
fn unlock_in_kernel(owner: &AtomicU32) {
    let operation = libc::FUTEX_UNLOCK_PI | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word lives across the call, and this thread owns the lock.
    unsafe { libc::syscall(libc::SYS_futex, owner.as_ptr(), operation) };
}

/// Returns the kernel's id of this thread (gettid(2)).
#[inline]
fn thread_number() -> u32 {
    thread_local!(static NUMBER: Cell<u32> = const { Cell::new(FREE) });
    NUMBER.with(|number| {
        match number.get() {
            FREE => {
                // SAFETY: the call takes nothing and cannot fail.
                number.set(unsafe { libc::gettid() }.unsigned_abs());
                number.get()
            }
            known => known,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduling::{Priority, Scheduling, SchedulingPolicy};
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::time::{Duration, Instant};

    #[test]
    fn one_thread_at_a_time() {
        let sum = PriorityMutex::new(0_u64);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..50_000).for_each(|_| *sum.lock() += 1));
            }
        });
        assert_eq!(*sum.lock(), 200_000);
    }

    #[derive(Default)]
    struct Steps {
        taken: AtomicBool,
        waited_for: AtomicBool,
        done: AtomicBool,
        starved: AtomicBool,
    }

    fn until(flag: &AtomicBool) {
        while !flag.load(Ordering::SeqCst) {
            std::hint::spin_loop();
        }
    }

    /// All on one core: the lowest priority owns the lock, the highest waits for it, and the middle one would keep the
    /// lowest from running forever. With inheritance the lowest continues.
    #[test]
    fn an_owner_runs_with_the_priority_of_the_waiting_thread() {
        let (lock, steps) = (Arc::new(PriorityMutex::new(())), Arc::new(Steps::default()));
        let start = |priority, body: fn(&PriorityMutex<()>, &Steps)| {
            let policy = SchedulingPolicy::Fifo(Priority::new(priority).unwrap());
            let (lock, steps) = (Arc::clone(&lock), Arc::clone(&steps));
            Scheduling { policy, cpus: vec![0], ..Scheduling::default() }
                .spawn("pi", move || body(&lock, &steps))
                .unwrap()
        };
        let low = start(10, |lock, steps| {
            let _taken = lock.lock();
            steps.taken.store(true, Ordering::SeqCst);
            until(&steps.waited_for);
        });
        if low.refused.is_some() {
            println!("skipped: no right to real-time priorities");
            steps.waited_for.store(true, Ordering::SeqCst);
            return;
        }
        until(&steps.taken);
        let middle = start(20, |_, steps| {
            let patience = Instant::now() + Duration::from_secs(3);
            while !steps.done.load(Ordering::SeqCst) && !steps.starved.load(Ordering::SeqCst) {
                steps.starved.store(Instant::now() > patience, Ordering::SeqCst);
            }
        });
        let high = start(30, |lock, steps| {
            // Set just before waiting; the owner runs again, and releases the lock, only after that.
            steps.waited_for.store(true, Ordering::SeqCst);
            let _taken = lock.lock();
            steps.done.store(true, Ordering::SeqCst);
        });
        for thread in [low, high, middle] {
            thread.thread.join().unwrap();
        }
        assert!(!steps.starved.load(Ordering::SeqCst));
    }
}
