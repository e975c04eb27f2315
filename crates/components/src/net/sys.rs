//! System calls that the standard library, nix and socket2 do not offer in the form needed here.

#![expect(
    unsafe_code,
    reason = "recvmmsg and sendmmsg with own memory, addresses and options of packet(7), and a socket registered with the runtime"
)]

use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::ptr;

use bytes::Bytes;
use nix::sys::timerfd::TimerFd;
use socket2::{SockAddr, SockAddrStorage, Socket};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use viaduct_its::access::MacAddress;
use viaduct_units::Tai;

/// Maximum number of frames or datagrams received by one call.
pub(super) const BATCH_FRAMES_MAX: usize = 32;
/// Maximum number of datagrams sent by one call.
pub(super) const BATCH_SENT_MAX: usize = 64;

/// Number of words of `SO_MEMINFO`, and the index of the drop counter (linux/sock_diag.h, `SK_MEMINFO_VARS` and `SK_MEMINFO_DROPS`).
const WORDS: usize = 9;
const DROPS: usize = 8;

/// Returns the number of packets that the kernel has dropped on a socket since it was opened.
pub(crate) fn socket_drops(socket: &impl AsFd) -> io::Result<u32> {
    let mut words = [0_u32; WORDS];
    let mut length = libc::socklen_t::try_from(size_of_val(&words)).unwrap_or(0);
    // SAFETY: the descriptor is open while `socket` is borrowed. `words` is valid for writes of `length` bytes, and
    // `length` is valid for writes. The kernel writes at most `length` bytes.
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

/// Registers a socket with the runtime. Must be called inside the runtime.
pub(super) fn watch(socket: Socket) -> io::Result<AsyncFd<Socket>> {
    // SAFETY: a `Socket` owns its descriptor, which stays open and unchanged until the socket is dropped.
    let watched = unsafe { AsyncFd::register_with_interest(socket, Interest::READABLE | Interest::WRITABLE) };
    watched.map_err(io::Error::from)
}

/// A timer that can be registered with the runtime.
pub(super) struct Timer(pub(super) TimerFd);

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

/// Registers a timer with the runtime. Must be called inside the runtime.
pub(super) fn watch_timer(timer: TimerFd) -> io::Result<AsyncFd<Timer>> {
    // SAFETY: a `Timer` owns its descriptor, which stays open and unchanged until the timer is dropped.
    let watched = unsafe { AsyncFd::register_with_interest(Timer(timer), Interest::READABLE) };
    watched.map_err(io::Error::from)
}

/// Reception of frames that are not addressed to the interface (packet(7), `PACKET_ADD_MEMBERSHIP`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Membership {
    /// Every frame on the link.
    Promiscuous,
    /// Frames to one additional address.
    Unicast(MacAddress),
}

/// Enables the reception of frames that are not addressed to the interface, while the socket is open.
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
    // SAFETY: the descriptor is open while `socket` is borrowed; `request` is valid for reads of the given length, and the kernel
    // only reads it.
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
    // SAFETY: the descriptor is open while `socket` is borrowed; `address` is valid for reads of the given length, and the kernel
    // only reads it.
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

/// Buffer for control messages, aligned for them.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; 64]);

/// A frame or datagram in its slot.
pub(super) struct Arrival<'a> {
    pub(super) octets: &'a [u8],
    /// Time of reception in the kernel, or `None` if timestamps are not enabled.
    pub(super) stamp: Option<Tai>,
    /// The sender, or `None` if its address is neither IPv4 nor IPv6.
    pub(super) from: Option<SocketAddr>,
}

/// Receives the frames that wait on a socket without blocking, at most one for each slot of `memory` and at most
/// [`BATCH_FRAMES_MAX`]. Calls `take` with each one. A frame longer than its slot is truncated. Returns the number of frames, or an
/// error of kind `WouldBlock` if there was none.
pub(super) fn receive_batch(
    socket: &impl AsFd,
    memory: &mut [u8],
    slot_bytes: usize,
    mut take: impl FnMut(Arrival<'_>),
) -> io::Result<usize> {
    let mut controls = [Control([0; 64]); BATCH_FRAMES_MAX];
    let mut addresses = [const { MaybeUninit::<libc::sockaddr_storage>::zeroed() }; BATCH_FRAMES_MAX];
    let mut parts = [const { MaybeUninit::<libc::iovec>::zeroed() }; BATCH_FRAMES_MAX];
    let mut headers = [const { MaybeUninit::<libc::mmsghdr>::zeroed() }; BATCH_FRAMES_MAX];
    let mut slots: u32 = 0;
    let rows = headers.iter_mut().zip(&mut parts).zip(&mut controls).zip(&mut addresses);
    for ((((header, part), control), address), slot) in rows.zip(memory.chunks_exact_mut(slot_bytes)) {
        part.write(libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: slot.len() });
        // SAFETY: all-zero bytes are a valid `mmsghdr`: null pointers and lengths of 0.
        let message = unsafe { &mut header.assume_init_mut().msg_hdr };
        (message.msg_iov, message.msg_iovlen) = (part.as_mut_ptr(), 1);
        (message.msg_control, message.msg_controllen) = (control.0.as_mut_ptr().cast(), size_of::<Control>() as _);
        message.msg_name = address.as_mut_ptr().cast();
        message.msg_namelen = socket_length::<libc::sockaddr_storage>();
        slots += 1;
    }
    // SAFETY: each of the first `slots` headers points to one part, one control buffer and one address, which no other header
    // uses. They are alive and not accessed until the call returns; each part has the length of its slot.
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
    let rows = headers.iter().zip(&addresses).zip(memory.chunks_exact(slot_bytes));
    for ((header, address), slot) in rows.take(received) {
        // SAFETY: all headers are initialised, with zeros or by the kernel.
        let header = unsafe { header.assume_init_ref() };
        // SAFETY: all addresses are initialised, with zeros or by the kernel.
        let address = unsafe { address.assume_init_ref() };
        let octets = slot.get(..header.msg_len as usize).unwrap_or(slot);
        take(Arrival {
            octets,
            stamp: time_stamp(&header.msg_hdr),
            from: ip_address(address, header.msg_hdr.msg_namelen),
        });
    }
    Ok(received)
}

/// Returns the IP address and port that the kernel has written.
fn ip_address(address: &libc::sockaddr_storage, length: libc::socklen_t) -> Option<SocketAddr> {
    let mut storage = SockAddrStorage::zeroed();
    // SAFETY: `sockaddr_storage` is plain data, and a view of the storage as this type is valid for writes.
    unsafe { *storage.view_as::<libc::sockaddr_storage>() = *address };
    // SAFETY: the storage is initialised, and the kernel writes at most the length of a `sockaddr_storage` with a matching family.
    unsafe { SockAddr::new(storage, length.min(socket_length::<libc::sockaddr_storage>())) }.as_socket()
}

/// Returns the kernel's timestamp (`SCM_TIMESTAMPNS`) from the control messages, or `None` if there is none.
fn time_stamp(message: &libc::msghdr) -> Option<Tai> {
    // SAFETY: `message` was filled in by the kernel and its control buffer is still alive; the macros of cmsg(3) stay
    // within `msg_controllen`.
    let mut entry = unsafe { libc::CMSG_FIRSTHDR(message) };
    // SAFETY: a pointer that is not null is a header within the control buffer.
    while let Some(header) = unsafe { entry.as_ref() } {
        if header.cmsg_level == libc::SOL_SOCKET && header.cmsg_type == libc::SCM_TIMESTAMPNS {
            // SAFETY: a message of this type contains one `timespec`; the read does not require alignment.
            let time = unsafe { ptr::read_unaligned(libc::CMSG_DATA(entry).cast::<libc::timespec>()) };
            return Some(Tai::from_unix_nanos(time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec)));
        }
        // SAFETY: as above.
        entry = unsafe { libc::CMSG_NXTHDR(message, entry) };
    }
    None
}

/// Datagrams to one address. If there is more than one, the kernel gets them in one piece and segments it (udp(7), `UDP_SEGMENT`);
/// then all but the last have the same length.
pub(super) struct Run<'a> {
    pub(super) to: SockAddr,
    pub(super) datagrams: &'a [(SocketAddr, Bytes)],
}

/// Sends runs without blocking, with at most [`BATCH_SENT_MAX`] datagrams. Returns the number of runs sent, at least 1, or the error
/// of the first run.
pub(super) fn send_batch(socket: &impl AsFd, runs: &[Run<'_>]) -> io::Result<usize> {
    let mut controls = [Control([0; 64]); BATCH_SENT_MAX];
    let mut parts = [const { MaybeUninit::<libc::iovec>::zeroed() }; BATCH_SENT_MAX];
    let mut headers = [const { MaybeUninit::<libc::mmsghdr>::zeroed() }; BATCH_SENT_MAX];
    let (mut free, mut used) = (parts.as_mut_slice(), 0_u32);
    for ((header, control), run) in headers.iter_mut().zip(&mut controls).zip(runs) {
        let Some((own, rest)) = std::mem::take(&mut free).split_at_mut_checked(run.datagrams.len()) else { break };
        free = rest;
        for (part, (_, datagram)) in own.iter_mut().zip(run.datagrams) {
            // The kernel only reads the octets.
            part.write(libc::iovec { iov_base: datagram.as_ptr().cast_mut().cast(), iov_len: datagram.len() });
        }
        // SAFETY: all-zero bytes are a valid `mmsghdr`: null pointers and lengths of 0.
        let message = unsafe { &mut header.assume_init_mut().msg_hdr };
        (message.msg_iov, message.msg_iovlen) = (own.as_mut_ptr().cast(), own.len() as _);
        (message.msg_name, message.msg_namelen) = (run.to.as_ptr().cast_mut().cast(), run.to.len());
        if let [(_, first), _, ..] = run.datagrams {
            write_segment_size(message, control, u16::try_from(first.len()).unwrap_or(u16::MAX));
        }
        used += 1;
    }
    // SAFETY: each of the first `used` headers points to an address, to parts and possibly to a control buffer, which are alive until
    // the call returns. Each part is valid for reads of its length. The kernel writes only the headers' lengths.
    let sent = unsafe {
        libc::sendmmsg(
            socket.as_fd().as_raw_fd(),
            headers.as_mut_ptr().cast(),
            used,
            libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
        )
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Adds the control message with the length of the segments.
fn write_segment_size(message: &mut libc::msghdr, control: &mut Control, octets: u16) {
    // SAFETY: the macro computes a length only.
    let (space, length) = unsafe { (libc::CMSG_SPACE(2), libc::CMSG_LEN(2)) };
    (message.msg_control, message.msg_controllen) = (control.0.as_mut_ptr().cast(), space as _);
    // SAFETY: the control buffer is aligned and longer than `space`, so that the first header and its data are within it.
    unsafe {
        let entry = libc::CMSG_FIRSTHDR(message);
        (*entry).cmsg_level = libc::SOL_UDP;
        (*entry).cmsg_type = libc::UDP_SEGMENT;
        (*entry).cmsg_len = length as _;
        ptr::write_unaligned(libc::CMSG_DATA(entry).cast::<u16>(), octets);
    }
}
