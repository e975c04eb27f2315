//! System calls that nix does not offer in the form needed here.

#![expect(
    unsafe_code,
    reason = "ioctls of netdevice(7), scheduling of the calling thread, and a namespace before exec"
)]

use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::Arc;

use nix::sched::{CloneFlags, setns};
use socket2::{Domain, Socket, Type};

/// Enables the loopback interface of the calling thread's network namespace.
pub(super) fn enable_loopback() -> io::Result<()> {
    let socket = control_socket()?;
    let mut request = interface_request(b"lo");
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the descriptor is open; `request` is a valid `ifreq` that the kernel only reads.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) })
}

/// Routes everything that is not on the link to an interface of the calling thread's network namespace.
pub(super) fn add_default_route(interface: &[u8]) -> io::Result<()> {
    let socket = control_socket()?;
    let mut device = name_of(interface);
    // SAFETY: all-zero bytes are a valid `rtentry`: null pointers, and addresses and numbers of 0.
    let mut route: libc::rtentry = unsafe { std::mem::zeroed() };
    (route.rt_dst, route.rt_genmask) = (socket_address(Ipv4Addr::UNSPECIFIED), socket_address(Ipv4Addr::UNSPECIFIED));
    route.rt_flags = libc::RTF_UP;
    route.rt_dev = device.as_mut_ptr();
    // SAFETY: the descriptor is open; `route` and the name to which it points are valid during the call, which only reads them.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCADDRT, &raw const route) })
}

fn control_socket() -> io::Result<Socket> {
    Socket::new(Domain::IPV4, Type::DGRAM.cloexec(), None)
}

fn interface_request(interface: &[u8]) -> libc::ifreq {
    // SAFETY: all-zero bytes are a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name = name_of(interface);
    request
}

/// Returns the name of an interface as the kernel expects it, with a zero at its end.
fn name_of(interface: &[u8]) -> [libc::c_char; libc::IFNAMSIZ] {
    let mut name = [0; libc::IFNAMSIZ];
    for (slot, octet) in name.iter_mut().take(libc::IFNAMSIZ - 1).zip(interface) {
        *slot = octet.cast_signed() as libc::c_char;
    }
    name
}

fn socket_address(address: Ipv4Addr) -> libc::sockaddr {
    let mut data = [0; 14];
    for (slot, octet) in data.iter_mut().skip(2).zip(address.octets()) {
        *slot = octet.cast_signed() as libc::c_char;
    }
    libc::sockaddr { sa_family: libc::AF_INET as libc::sa_family_t, sa_data: data }
}

fn check(returned: libc::c_int) -> io::Result<()> {
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sets the timer slack of the calling thread to the minimum of 1 ns; the kernel's default is 50 us. The kernel refuses no value.
pub(super) fn set_finest_timer_slack() {
    // SAFETY: this option of prctl(2) has one number as its argument and concerns the calling thread only.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
}

/// Gives the calling thread the lowest real-time priority, so that programs do not delay its timers.
pub(super) fn set_real_time() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: 0 is the calling thread; `parameters` is valid during the call, which only reads it.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) })
}

/// Makes a command run in a network namespace.
pub(super) fn enter_before_exec(command: &mut Command, namespace: Arc<File>) {
    let enter = move || setns(namespace.as_fd(), CloneFlags::CLONE_NEWNET).map_err(io::Error::from);
    // SAFETY: between fork and exec, the closure only makes one system call: it neither allocates nor takes a lock.
    unsafe { command.pre_exec(enter) };
}
