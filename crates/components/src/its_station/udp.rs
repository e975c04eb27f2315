//! UDP multicast as an access layer: each datagram is one Ethernet frame.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use nix::sys::socket::{SockaddrIn, setsockopt, sockopt};
use socket2::{Domain, Protocol, Socket, Type};
use viaduct_node::StartError;

use super::frame_socket::FrameSocket;
use super::settings::UdpMulticastSettings;

/// Opens a socket that receives from and sends to the group. Call it inside the runtime.
pub(super) fn open(settings: &UdpMulticastSettings) -> Result<FrameSocket, StartError> {
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
    let stamped = setsockopt(&socket, sockopt::ReceiveTimestampns, &true).map_err(io::Error::from);
    stamped.map_err(failed("cannot get time stamps"))?;
    FrameSocket::new(socket, Some(settings.group.into()), None)
}

/// A socket that sends to multicast groups by one interface; its packets reach this machine too.
pub(crate) fn sending_socket(interface: Ipv4Addr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM.nonblocking().cloexec(), Some(Protocol::UDP))?;
    socket.set_multicast_if_v4(&interface)?;
    socket.set_multicast_loop_v4(true)?;
    Ok(socket)
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
