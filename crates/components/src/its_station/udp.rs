//! UDP multicast as an access layer: each datagram is one Ethernet frame.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsRawFd as _;

use bytes::{Bytes, BytesMut};
use nix::cmsg_space;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrIn, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::Interest;
use viaduct_its::limits::FRAME_OCTETS_MAX;
use viaduct_node::StartError;
use viaduct_units::Tai;

use super::settings::UdpMulticastSettings;
use super::sys;

/// A socket that receives from and sends to a multicast group.
pub(crate) struct MulticastSocket {
    socket: tokio::net::UdpSocket,
    group: SocketAddr,
    buffer: BytesMut,
}

/// A datagram with what the kernel says about it.
pub(crate) struct Datagram {
    pub(crate) octets: Bytes,
    /// When the kernel received it; `None` where it does not say.
    pub(crate) received: Option<Tai>,
}

/// Octets set aside at a time for incoming datagrams; frames are slices of it.
const RECEIVE_CHUNK_OCTETS: usize = 64 * DATAGRAM_OCTETS_MAX;

/// One octet more than a frame may have: a longer datagram is cut to this, and the station drops it for its length.
const DATAGRAM_OCTETS_MAX: usize = FRAME_OCTETS_MAX + 1;

impl MulticastSocket {
    /// Opens a socket that receives. Call it inside the runtime.
    pub(crate) fn open(settings: &UdpMulticastSettings) -> Result<Self, StartError> {
        let interface = interface_address(&settings.interface)?;
        let failed = |what: &str| {
            let what = format!("{what} for {} on interface {interface}", settings.group);
            move |cause: io::Error| StartError::io(what, cause)
        };
        let socket = sending_socket(interface).map_err(failed("cannot open a UDP socket"))?;
        socket.set_reuse_address(true).map_err(failed("cannot share the port"))?;
        socket.set_recv_buffer_size(settings.receive_buffer_octets).map_err(failed("cannot set the receive buffer"))?;
        socket.bind(&SocketAddr::from(settings.group).into()).map_err(failed("cannot bind the multicast group"))?;
        socket.join_multicast_v4(settings.group.ip(), &interface).map_err(failed("cannot join the multicast group"))?;
        let option = |outcome: nix::Result<()>| outcome.map_err(io::Error::from);
        option(setsockopt(&socket, sockopt::ReceiveTimestampns, &true)).map_err(failed("cannot get time stamps"))?;
        let socket = tokio::net::UdpSocket::from_std(socket.into()).map_err(failed("cannot poll the UDP socket"))?;
        Ok(Self { socket, group: settings.group.into(), buffer: BytesMut::new() })
    }

    /// Waits for the next datagram. Cancelling the wait loses nothing.
    pub(crate) async fn receive(&mut self) -> io::Result<Datagram> {
        loop {
            self.socket.readable().await?;
            if let Some(datagram) = self.try_receive()? {
                return Ok(datagram);
            }
        }
    }

    /// The next datagram, where one is there.
    pub(crate) fn try_receive(&mut self) -> io::Result<Option<Datagram>> {
        if self.buffer.len() < DATAGRAM_OCTETS_MAX {
            self.buffer = BytesMut::zeroed(RECEIVE_CHUNK_OCTETS);
        }
        let (descriptor, buffer) = (self.socket.as_raw_fd(), &mut self.buffer[..DATAGRAM_OCTETS_MAX]);
        match self.socket.try_io(Interest::READABLE, || receive_message(descriptor, buffer)) {
            Ok((length, received)) => {
                let octets = self.buffer.split_to(length).freeze();
                Ok(Some(Datagram { octets, received }))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Datagrams that the kernel had to drop on this socket so far, because its queue was full.
    pub(crate) fn kernel_drops(&self) -> io::Result<u32> {
        sys::socket_drops(&self.socket)
    }

    /// Sends a frame to the group.
    pub(crate) async fn send(&self, frame: &[u8]) -> io::Result<()> {
        self.socket.send_to(frame, self.group).await.map(drop)
    }
}

/// A socket that sends to multicast groups by one interface; its packets reach this machine too.
pub(crate) fn sending_socket(interface: Ipv4Addr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM.nonblocking().cloexec(), Some(Protocol::UDP))?;
    socket.set_multicast_if_v4(&interface)?;
    socket.set_multicast_loop_v4(true)?;
    Ok(socket)
}

/// One `recvmsg`: length and the kernel's time stamp.
fn receive_message(descriptor: i32, buffer: &mut [u8]) -> io::Result<(usize, Option<Tai>)> {
    let mut control = cmsg_space!(TimeSpec);
    let mut parts = [io::IoSliceMut::new(buffer)];
    let message = recvmsg::<SockaddrIn>(descriptor, &mut parts, Some(&mut control), MsgFlags::MSG_DONTWAIT)?;
    let mut received = None;
    for entry in message.cmsgs()? {
        if let ControlMessageOwned::ScmTimestampns(time) = entry {
            received = Some(Tai::from_unix_nanos(time.tv_sec() * 1_000_000_000 + time.tv_nsec()));
        }
    }
    Ok((message.bytes, received))
}

/// The IPv4 address of an interface that is given by address or by name.
pub(crate) fn interface_address(interface: &str) -> Result<Ipv4Addr, StartError> {
    if let Ok(address) = interface.parse() {
        return Ok(address);
    }
    let all = nix::ifaddrs::getifaddrs()
        .map_err(|cause| StartError::io("cannot list the network interfaces", io::Error::from(cause)))?;
    let mut names = Vec::new();
    for entry in all {
        let address = entry.address.as_ref().and_then(|address| address.as_sockaddr_in()).map(SockaddrIn::ip);
        if let Some(address) = address {
            if entry.interface_name == interface {
                return Ok(address);
            }
            names.push(entry.interface_name);
        }
    }
    names.dedup();
    Err(StartError::Other(format!(
        "there is no network interface `{interface}` with an IPv4 address; there is {}",
        names.join(", ")
    )))
}
