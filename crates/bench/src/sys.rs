//! Calls that the standard library lacks: the futex itself, sleeping until a moment, the slack of timers, and the cores
//! of a thread.

#![expect(unsafe_code, reason = "system calls without a safe wrapper")]

use std::io;
use std::ptr;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Sleeps while the word has that value, until somebody wakes it. May return for no reason.
pub(crate) fn futex_wait(word: &AtomicU32, while_value: u32) {
    let no_timeout: *const libc::timespec = ptr::null();
    // SAFETY: the word is a valid, aligned 32-bit integer for as long as it is borrowed, which is longer than the call;
    // the kernel only compares it. A null timeout means none.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            while_value,
            no_timeout,
        );
    }
}

/// Wakes one thread that waits for the word.
pub(crate) fn futex_wake(word: &AtomicU32) {
    // SAFETY: the word is a valid, aligned 32-bit integer for longer than the call; the kernel uses its address only.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1_u32);
    }
}

/// The monotonic clock, as [`sleep_until`] reads it.
pub(crate) fn monotonic() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid exclusive reference, and the clock always exists on Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

/// Sleeps until that moment of the monotonic clock; returns at once where it has passed.
pub(crate) fn sleep_until(moment: Duration) {
    let time = libc::timespec {
        tv_sec: moment.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: moment.subsec_nanos().into(),
    };
    loop {
        // SAFETY: `time` lives across the call, which only reads it; with an absolute time no remainder is written.
        let returned = unsafe {
            libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &raw const time, ptr::null_mut())
        };
        if returned != libc::EINTR {
            return;
        }
    }
}

/// Asks the kernel not to gather this thread's timers: its sleeps end when they should, not up to 50 us later.
pub(crate) fn exact_timers() {
    // SAFETY: the call takes integers only. Where it fails the slack stays, and the lateness that is measured shows it.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0) };
}

/// Keeps this thread, and those that it starts from now on, on so many of the cores that it may use: the last ones, for
/// the first has the most to do for the system.
///
/// # Errors
/// It may use fewer, or the kernel refuses.
pub(crate) fn pin(cores: usize) -> io::Result<()> {
    // SAFETY: a set of cores is an array of integers, and all zeros is the empty one.
    let (mut allowed, mut chosen): (libc::cpu_set_t, libc::cpu_set_t) = unsafe { std::mem::zeroed() };
    let octets = size_of::<libc::cpu_set_t>();
    // SAFETY: `allowed` is a valid exclusive reference of that many octets; 0 is the calling thread.
    if unsafe { libc::sched_getaffinity(0, octets, &raw mut allowed) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut left = cores;
    for core in (0..8 * octets).rev() {
        // SAFETY: the number is below the set's number of bits.
        if left > 0 && unsafe { libc::CPU_ISSET(core, &allowed) } {
            // SAFETY: as above.
            unsafe { libc::CPU_SET(core, &mut chosen) };
            left -= 1;
        }
    }
    if left > 0 {
        return Err(io::Error::other(format!("{left} of {cores} cores are missing")));
    }
    // SAFETY: `chosen` lives across the call, which only reads that many octets of it.
    if unsafe { libc::sched_setaffinity(0, octets, &raw const chosen) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_has_its_cores_and_so_has_one_that_it_starts() {
        let cores = || std::thread::available_parallelism().unwrap().get();
        let pinned = std::thread::spawn(move || {
            pin(1).unwrap();
            (cores(), std::thread::spawn(cores).join().unwrap(), pin(2).is_err())
        });
        assert_eq!(pinned.join().unwrap(), (1, 1, true));
    }

    #[test]
    fn a_sleep_ends_after_its_moment_and_a_past_one_at_once() {
        let moment = monotonic() + Duration::from_millis(2);
        sleep_until(moment);
        assert!(monotonic() >= moment);
        sleep_until(Duration::ZERO);
    }

    #[test]
    fn a_wait_for_another_value_returns_at_once() {
        let word = AtomicU32::new(1);
        futex_wait(&word, 0);
        futex_wake(&word);
    }
}
