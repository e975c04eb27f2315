//! The futex calls, which the standard library lacks.

#![expect(unsafe_code, reason = "system calls")]

use std::sync::atomic::AtomicU32;

use viaduct_units::Mono;

/// Sleeps while `word` is `expected`, until it is woken or until `deadline`; may return spuriously.
pub(super) fn futex_wait(word: &AtomicU32, expected: u32, deadline: Option<Mono>) {
    let until = deadline.map(timespec);
    let until = until.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // FUTEX_WAIT_BITSET takes an absolute time of CLOCK_MONOTONIC, FUTEX_WAIT a relative one (futex(2)).
    let operation = libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG;
    let unused = std::ptr::null::<u32>();
    let any = libc::FUTEX_BITSET_MATCH_ANY;
    // SAFETY: `word` and the time behind `until` live across the call, which only reads them. Every error (the
    // value had changed, a signal, the time is over) is a reason to return, which the caller expects at any time.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, expected, until, unused, any) };
}

/// Wakes one thread that sleeps on `word`.
pub(super) fn futex_wake_one(word: &AtomicU32) {
    futex_wake(word, 1);
}

/// Wakes all threads that sleep on `word`.
pub(super) fn futex_wake_all(word: &AtomicU32) {
    futex_wake(word, i32::MAX);
}

fn futex_wake(word: &AtomicU32, threads: i32) {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the kernel uses the address of `word` only as a key and does not access its value.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, threads) };
}

/// Converts a time of the monotonic clock, which the kernel uses too.
fn timespec(moment: Mono) -> libc::timespec {
    libc::timespec {
        tv_sec: libc::time_t::try_from(moment.0.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: moment.0.subsec_nanos().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use std::time::Duration;

    #[test]
    fn a_wait_ends_at_its_deadline_and_not_before() {
        let word = AtomicU32::new(0);
        for milliseconds in [0, 1, 5] {
            let deadline = clock::mono().plus(Duration::from_millis(milliseconds));
            while clock::mono() < deadline {
                futex_wait(&word, 0, Some(deadline));
            }
            // Returns at once, because the value is not the expected one.
            futex_wait(&word, 1, None);
        }
    }
}
