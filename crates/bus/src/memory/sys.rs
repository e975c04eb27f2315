//! Memory calls that the standard library lacks.

#![expect(unsafe_code, reason = "mlockall and mallopt")]

use std::io;

pub(super) fn lock_all() -> io::Result<()> {
    // SAFETY: no memory is passed.
    match unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(target_env = "gnu")]
pub(super) fn keep_freed_memory() -> bool {
    // Larger allocations are mapped anew each time. Some versions of glibc refuse more than 32 MiB.
    let thresholds = [1 << 30, 32 << 20];
    // SAFETY: no memory is passed; the calls may run while other threads allocate.
    let mapped = thresholds.into_iter().any(|bytes| unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, bytes) } == 1);
    // SAFETY: no memory is passed; the call may run while other threads allocate. -1 disables trimming, mallopt(3).
    let kept = unsafe { libc::mallopt(libc::M_TRIM_THRESHOLD, -1) } == 1;
    mapped && kept
}

#[cfg(not(target_env = "gnu"))]
pub(super) fn keep_freed_memory() -> bool {
    false
}
