//! What the whole process does so that no page is missing when it is needed: each is asked for once, at the start.

mod sys;

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
