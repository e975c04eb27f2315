//! A system call that neither the standard library nor nix has.

#![expect(unsafe_code, reason = "getsockopt with SO_MEMINFO")]

use std::io;
use std::os::fd::{AsFd, AsRawFd as _};

/// Words of `SO_MEMINFO`, and which of them counts the drops (linux/sock_diag.h, `SK_MEMINFO_VARS` and `SK_MEMINFO_DROPS`).
const WORDS: usize = 9;
const DROPS: usize = 8;

/// Packets that the kernel dropped on a socket since it was opened.
pub(super) fn socket_drops(socket: &impl AsFd) -> io::Result<u32> {
    let mut words = [0_u32; WORDS];
    let mut length = libc::socklen_t::try_from(size_of_val(&words)).unwrap_or(0);
    // SAFETY: the descriptor is open for as long as `socket` is borrowed; `words` is valid for `length` octets and `length`
    // for being written, and the kernel writes no more octets than `length` says.
    let returned = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            words.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if returned == 0 { Ok(words[DROPS]) } else { Err(io::Error::last_os_error()) }
}
