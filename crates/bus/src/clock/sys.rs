//! The kernel's monotonic clock as a number, so that the kernel can wait for a deadline (the standard library's `Instant`
//! hides the number), and the kernel's knowledge about the system's clock.

#![expect(unsafe_code, reason = "clock_gettime, adjtimex")]

use std::time::Duration;

/// Returns the time since the machine was started, without the time that it slept (CLOCK_MONOTONIC, clock_gettime(2)).
#[inline]
pub(super) fn monotonic() -> Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid exclusive reference across the call, which writes only to it. Every Linux has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    // The clock is never negative, and its nanoseconds are below a second.
    Duration::new(now.tv_sec.cast_unsigned(), now.tv_nsec.cast_unsigned() as u32)
}

/// Returns the largest error of the system's clock, `Some(None)` if the clock is not synchronised, and `None` if the kernel
/// does not tell (adjtimex(2)).
pub(super) fn clock_error() -> Option<Option<Duration>> {
    // SAFETY: all members of the structure are numbers, for which zero is a valid value.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: `state` is a valid exclusive reference across the call, which writes only to it. With no mode set it changes no
    // clock.
    let status = unsafe { libc::adjtimex(&raw mut state) };
    match status {
        -1 => None,
        libc::TIME_ERROR => Some(None),
        _ => Some(u64::try_from(state.maxerror).ok().map(Duration::from_micros)),
    }
}
