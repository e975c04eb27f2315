//! Memory settings of the whole process that avoid page faults after the start.

mod sys;

/// The memory of the process could not be locked.
#[derive(Debug, thiserror::Error)]
#[error(
    "memory cannot be locked: {cause} (allow it with `ulimit -l unlimited`, CAP_IPC_LOCK, or LimitMEMLOCK=infinity in \
     the systemd unit)"
)]
pub struct LockError {
    cause: std::io::Error,
}

/// Locks every present and future page of the process in memory, mlockall(2). Pages then exist from the time they are
/// mapped, including the stacks of new threads.
///
/// # Errors
/// Returns an error if the system rejects the call; no memory is locked then.
pub fn lock_all() -> Result<(), LockError> {
    sys::lock_all().map_err(|cause| LockError { cause })
}

/// Makes the allocator keep freed memory instead of returning it to the kernel, so that the next large allocation finds
/// its pages, mallopt(3). The process then never shrinks. Returns `true` if the allocator supports it; only glibc's
/// does.
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
