//! The calls about memory that the standard library lacks.

#![expect(unsafe_code, reason = "mlockall, mallopt, and where a thread's stack ends")]

use std::io;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

pub(super) fn lock_all() -> io::Result<()> {
    // SAFETY: no memory is passed.
    match unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(target_env = "gnu")]
pub(super) fn keep_freed_memory() -> bool {
    // Allocations from this length on are mapped anew each time. Some versions of glibc refuse more than 32 MiB.
    let thresholds = [1 << 30, 32 << 20];
    // SAFETY: no memory is passed; the calls are safe beside allocations of other threads.
    let mapped = thresholds.into_iter().any(|octets| unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, octets) } == 1);
    // SAFETY: as above. -1 ends trimming, mallopt(3).
    let kept = unsafe { libc::mallopt(libc::M_TRIM_THRESHOLD, -1) } == 1;
    mapped && kept
}

#[cfg(not(target_env = "gnu"))]
pub(super) fn keep_freed_memory() -> bool {
    false
}

/// Lowest address of this thread's stack; the highest there is where the system does not say, so that nothing is touched.
pub(super) fn stack_end() -> usize {
    stack_of_this_thread().unwrap_or(usize::MAX)
}

fn stack_of_this_thread() -> Option<usize> {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: the call initialises the attributes where it returns 0.
    if unsafe { libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) } != 0 {
        return None;
    }
    let (mut lowest, mut octets) = (null_mut(), 0);
    // SAFETY: the attributes are initialised, and both results are valid for writing.
    let returned = unsafe { libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut lowest, &raw mut octets) };
    // SAFETY: the attributes are initialised and not used again.
    unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
    (returned == 0).then_some(lowest.addr())
}
