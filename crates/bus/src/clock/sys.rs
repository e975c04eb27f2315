//! The kernel's monotonic clock as a number, so that the kernel can wait for a deadline. The standard library's
//! `Instant` hides the number.

#![expect(unsafe_code, reason = "clock_gettime")]

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
