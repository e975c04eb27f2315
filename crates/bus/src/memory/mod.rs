//! What the whole process does so that no page is missing when it is needed: each is asked for once, at the start.

mod sys;

use std::sync::atomic::{AtomicUsize, Ordering};

/// Octets of its stack that a thread of the bus touches when it starts.
static PREFAULT: AtomicUsize = AtomicUsize::new(0);

/// Why memory is not locked.
#[derive(Debug, thiserror::Error)]
#[error(
    "memory cannot be locked: {cause} (allow it with `ulimit -l unlimited`, CAP_IPC_LOCK, or LimitMEMLOCK=infinity in \
     the systemd unit)"
)]
pub struct LockError {
    cause: std::io::Error,
}

/// Keeps every page of the process in memory, those that it has and those that it will get, mlockall(2). A page is then
/// there from when its memory is mapped, stacks of new threads included.
///
/// # Errors
/// The system refuses; nothing is locked then.
pub fn lock_all() -> Result<(), LockError> {
    sys::lock_all().map_err(|cause| LockError { cause })
}

/// Has the allocator keep what is freed instead of giving it back to the kernel, so that the next large allocation finds
/// its pages there, mallopt(3). The process then never gets smaller. Whether the allocator took it: only glibc's has
/// these settings.
pub fn keep_freed_memory() -> bool {
    sys::keep_freed_memory()
}

/// Has each thread that the bus starts from now on touch that much of its stack first, in octets; 0 ends it.
pub fn prefault_new_stacks(octets: usize) {
    PREFAULT.store(octets, Ordering::Relaxed);
}

/// What [`prefault_new_stacks`] asked for, on a thread that starts.
pub(crate) fn prefault_own_stack() {
    prefault_stack(PREFAULT.load(Ordering::Relaxed));
}

/// Touches the next `octets` of this thread's stack, or as many as it has less a reserve, so that no page of them is
/// missing later.
pub fn prefault_stack(octets: usize) {
    let here = std::ptr::from_ref(&octets).addr();
    let lowest = here.saturating_sub(octets).max(sys::stack_end().saturating_add(STACK_RESERVE));
    if lowest < here {
        touch_down_to(lowest);
    }
}

/// Octets at a stack's end that stay untouched: this function's own frames have to fit.
const STACK_RESERVE: usize = 64 * 1024;

/// Octets of a frame that touch each page on the way: less than a page, with what else is in the frame.
const STEP: usize = 2048;

/// Calls itself until its frame is at that address.
#[inline(never)]
fn touch_down_to(lowest: usize) {
    let mut frame = [0_u8; STEP];
    let at = std::hint::black_box(&mut frame).as_ptr().addr();
    if at > lowest {
        touch_down_to(lowest);
    }
    // A use after the call keeps it from becoming a loop in one frame.
    std::hint::black_box(&mut frame);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_lock_names_the_remedies() {
        let refused = LockError { cause: std::io::Error::from_raw_os_error(libc::EPERM) }.to_string();
        for remedy in ["not permitted", "ulimit -l unlimited", "CAP_IPC_LOCK", "LimitMEMLOCK="] {
            assert!(refused.contains(remedy), "{refused}");
        }
    }
}
