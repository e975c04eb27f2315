//! Time at which the kernel passes a frame to the interface: its software timestamp of sent packets
//! (`SOF_TIMESTAMPING_TX_SOFTWARE`, Documentation/networking/timestamping.rst).

use std::io;
use std::os::fd::{AsFd, AsRawFd as _};

use nix::sys::socket::{ControlMessageOwned, MsgFlags, TimestampingFlag, recv, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeValLike as _;
use viaduct_units::Tai;

/// Size of the buffer for the timestamp and the other control messages of the kernel, in bytes.
const CONTROL_OCTETS: usize = 512;

/// Enables timestamps for each packet that the socket sends.
pub(super) fn stamp(socket: &impl AsFd) -> io::Result<()> {
    // The packet itself is not returned with its timestamp.
    let flags = TimestampingFlag::SOF_TIMESTAMPING_TX_SOFTWARE
        | TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE
        | TimestampingFlag::SOF_TIMESTAMPING_OPT_TSONLY;
    setsockopt(socket, sockopt::Timestamping, &flags).map_err(io::Error::from)
}

/// Takes all timestamps from the socket's error queue. Returns the last one, if any.
pub(super) fn take(socket: &impl AsFd) -> Option<Tai> {
    let mut last = None;
    while let Some(stamp) = next(socket) {
        last = stamp.or(last);
    }
    last
}

/// Takes the next message of the error queue and returns its timestamp, if any. The outer value is `None` if the
/// queue is empty.
fn next(socket: &impl AsFd) -> Option<Option<Tai>> {
    let mut control = vec![0_u8; CONTROL_OCTETS];
    let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
    let message = recvmsg::<()>(socket.as_fd().as_raw_fd(), &mut [], Some(&mut control), flags).ok()?;
    let stamps = message.cmsgs().into_iter().flatten().filter_map(|control| match control {
        ControlMessageOwned::ScmTimestampsns(stamps) => Some(Tai::from_unix_nanos(stamps.system.num_nanoseconds())),
        _ => None,
    });
    Some(stamps.last())
}

/// Discards received packets: the socket's own packets, which multicast loops back.
pub(super) fn drain(socket: &impl AsFd) {
    let mut octet = [0; 1];
    // Reading the first octet of a packet discards the rest.
    while recv(socket.as_fd().as_raw_fd(), &mut octet, MsgFlags::MSG_DONTWAIT).is_ok() {}
}
