//! File descriptors of the process.

use std::os::fd::{AsFd, AsRawFd as _};

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Part of the descriptors that new connections may not use: files, and what established clients need.
const RESERVED_SHARE: u64 = 8;

/// Smallest number of descriptors that new connections may not use.
const RESERVED_MIN: u64 = 64;

/// Raises the limit of open files of the process to the one that the system permits. Many systems start processes with 1024, because
/// of programs that use select(2).
pub fn raise_limit() {
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // A failure leaves the limit as it is.
        _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

/// Returns the number of descriptors that all connections may use.
pub(super) fn available() -> usize {
    let (limit, _) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or((1024, 1024));
    usize::try_from(limit - reserved(limit)).unwrap_or(usize::MAX)
}

/// Returns `true` if a new descriptor is one of those that connections may not use. The system assigns the lowest free number, so all
/// lower ones are in use.
pub(super) fn is_reserved(descriptor: &impl AsFd) -> bool {
    usize::try_from(descriptor.as_fd().as_raw_fd()).is_ok_and(|number| number >= available())
}

fn reserved(limit: u64) -> u64 {
    (limit / RESERVED_SHARE).max(RESERVED_MIN).min(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_reserved_whatever_the_limit_is() {
        assert_eq!([0, 32, 256, 1024, 1 << 20].map(reserved), [0, 32, 64, 128, 1 << 17]);
    }
}
