//! When the kernel handed a frame to the interface: its software stamp of sent packets
//! (`SOF_TIMESTAMPING_TX_SOFTWARE`, Documentation/networking/timestamping.rst).

use std::io;
use std::os::fd::{AsFd, AsRawFd as _};

use nix::sys::socket::{ControlMessageOwned, MsgFlags, TimestampingFlag, recv, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeValLike as _;
use viaduct_units::Tai;

/// Room for the stamp, and for what the kernel says beside it about whose it is.
const CONTROL_OCTETS: usize = 512;

/// Has the kernel stamp each packet that leaves by the socket.
pub(super) fn stamp(socket: &impl AsFd) -> io::Result<()> {
    // Without the packet itself, which we know.
    let flags = TimestampingFlag::SOF_TIMESTAMPING_TX_SOFTWARE
        | TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE
        | TimestampingFlag::SOF_TIMESTAMPING_OPT_TSONLY;
    setsockopt(socket, sockopt::Timestamping, &flags).map_err(io::Error::from)
}

/// Takes all stamps that wait on the socket: the last one, where there is one.
pub(super) fn take(socket: &impl AsFd) -> Option<Tai> {
    let mut last = None;
    while let Some(stamp) = next(socket) {
        last = stamp.or(last);
    }
    last
}

/// What the next message of the error queue says; `None` outside where there is none.
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

/// Throws away what waits on the socket: its own packets, which a multicast group gives back.
pub(super) fn drain(socket: &impl AsFd) {
    let mut octet = [0; 1];
    // The rest of a packet goes with its first octet.
    while recv(socket.as_fd().as_raw_fd(), &mut octet, MsgFlags::MSG_DONTWAIT).is_ok() {}
}
