//! System calls that neither the standard library, nix nor socket2 has in a form that is used here.

#![expect(
    unsafe_code,
    reason = "recvmmsg into memory of ours, packet(7)'s addresses and options, and a socket that the runtime watches"
)]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd as _};
use std::ptr;

use socket2::Socket;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use viaduct_its::access::MacAddress;
use viaduct_units::Tai;

/// Frames that one call receives at most.
pub(super) const BATCH_FRAMES_MAX: usize = 32;

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

/// A socket that the runtime watches. Call it inside the runtime.
pub(super) fn watch(socket: Socket) -> io::Result<AsyncFd<Socket>> {
    // SAFETY: a `Socket` owns its descriptor: it is open and the same until the socket is dropped.
    let watched = unsafe { AsyncFd::register_with_interest(socket, Interest::READABLE | Interest::WRITABLE) };
    watched.map_err(io::Error::from)
}

/// How a packet socket wants frames that are not for the interface's own address (packet(7), `PACKET_ADD_MEMBERSHIP`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Membership {
    /// Every frame on the link.
    Promiscuous,
    /// Frames to one more address.
    Unicast(MacAddress),
}

/// Lets the interface pass on more frames than those to its own address, for as long as the socket is open.
pub(super) fn add_membership(socket: &impl AsFd, interface: u32, membership: Membership) -> io::Result<()> {
    let mut request = libc::packet_mreq {
        mr_ifindex: index_of(interface)?,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    if let Membership::Unicast(address) = membership {
        request.mr_type = libc::PACKET_MR_UNICAST as u16;
        request.mr_alen = 6;
        request.mr_address[..6].copy_from_slice(&address.0);
    }
    // SAFETY: the descriptor is open for as long as `socket` is borrowed; `request` is valid for the octets that are said,
    // and the kernel only reads it.
    let returned = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_ADD_MEMBERSHIP,
            (&raw const request).cast(),
            socket_length::<libc::packet_mreq>(),
        )
    };
    if returned == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Binds a packet socket to the frames of one ethertype on one interface.
pub(super) fn bind_to_interface(socket: &impl AsFd, interface: u32, ethertype: u16) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: ethertype.to_be(),
        sll_ifindex: index_of(interface)?,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    // SAFETY: the descriptor is open for as long as `socket` is borrowed; `address` is valid for the octets that are said,
    // and the kernel only reads it.
    let returned = unsafe {
        libc::bind(socket.as_fd().as_raw_fd(), (&raw const address).cast(), socket_length::<libc::sockaddr_ll>())
    };
    if returned == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn index_of(interface: u32) -> io::Result<i32> {
    i32::try_from(interface).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
}

fn socket_length<T>() -> libc::socklen_t {
    libc::socklen_t::try_from(size_of::<T>()).unwrap_or(0)
}

/// Room for the kernel's time stamp beside a frame, aligned as control messages are.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; 64]);

/// Receives the frames that wait on a socket, at most one for each slot of `memory` and at most [`BATCH_FRAMES_MAX`],
/// without waiting. Gives `take` each frame with the kernel's time stamp; a longer frame is cut to its slot.
/// How many there were; an error of kind `WouldBlock` where there was none.
pub(super) fn receive_batch(
    socket: &impl AsFd,
    memory: &mut [u8],
    slot_octets: usize,
    mut take: impl FnMut(&[u8], Option<Tai>),
) -> io::Result<usize> {
    let mut controls = [Control([0; 64]); BATCH_FRAMES_MAX];
    let mut parts = [const { MaybeUninit::<libc::iovec>::zeroed() }; BATCH_FRAMES_MAX];
    let mut headers = [const { MaybeUninit::<libc::mmsghdr>::zeroed() }; BATCH_FRAMES_MAX];
    let mut slots: u32 = 0;
    let rows = headers.iter_mut().zip(&mut parts).zip(&mut controls);
    for (((header, part), control), slot) in rows.zip(memory.chunks_exact_mut(slot_octets)) {
        part.write(libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: slot.len() });
        // SAFETY: all-zero octets are a valid `mmsghdr`: null pointers and lengths of 0.
        let message = unsafe { &mut header.assume_init_mut().msg_hdr };
        (message.msg_iov, message.msg_iovlen) = (part.as_mut_ptr(), 1);
        (message.msg_control, message.msg_controllen) = (control.0.as_mut_ptr().cast(), size_of::<Control>() as _);
        slots += 1;
    }
    // SAFETY: the first `slots` headers point to a part and a control buffer of their own, which live and are not looked at
    // until the call returns; each part says the octets of its own slot.
    let received = unsafe {
        libc::recvmmsg(
            socket.as_fd().as_raw_fd(),
            headers.as_mut_ptr().cast(),
            slots,
            libc::MSG_DONTWAIT,
            ptr::null_mut(),
        )
    };
    let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    for (header, slot) in headers.iter().zip(memory.chunks_exact(slot_octets)).take(received) {
        // SAFETY: all of them are initialised, with zeros or by the kernel.
        let header = unsafe { header.assume_init_ref() };
        let octets = slot.get(..header.msg_len as usize).unwrap_or(slot);
        take(octets, time_stamp(&header.msg_hdr));
    }
    Ok(received)
}

/// The kernel's time stamp (`SCM_TIMESTAMPNS`) among a message's control messages.
fn time_stamp(message: &libc::msghdr) -> Option<Tai> {
    // SAFETY: `message` was filled in by the kernel and its control buffer is still alive; the macros of cmsg(3) stay
    // within `msg_controllen`.
    let mut entry = unsafe { libc::CMSG_FIRSTHDR(message) };
    // SAFETY: a pointer that is not null is a header within the control buffer.
    while let Some(header) = unsafe { entry.as_ref() } {
        if header.cmsg_level == libc::SOL_SOCKET && header.cmsg_type == libc::SCM_TIMESTAMPNS {
            // SAFETY: a message of this type carries one `timespec`, of whose alignment nothing is said.
            let time = unsafe { ptr::read_unaligned(libc::CMSG_DATA(entry).cast::<libc::timespec>()) };
            return Some(Tai::from_unix_nanos(time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec)));
        }
        // SAFETY: as above.
        entry = unsafe { libc::CMSG_NXTHDR(message, entry) };
    }
    None
}
