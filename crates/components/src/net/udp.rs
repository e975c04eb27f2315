//! UDP multicast as an access layer: each datagram contains one Ethernet frame.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use nix::sys::socket::{SockaddrIn, setsockopt, sockopt};
use schemars::JsonSchema;
use serde::Deserialize;
use socket2::{Domain, Protocol, Socket, Type};
use viaduct_its::access::{UDP_MULTICAST_GROUP, UDP_PORT};
use viaduct_node::{SettingError, StartError};

use super::frame_socket::FrameSocket;
use super::{check_receive_buffer, default_receive_buffer};

/// UDP multicast as an access layer.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UdpMulticastSettings {
    /// Multicast group and port.
    #[serde(default = "default_group")]
    pub group: SocketAddrV4,
    /// Network interface, by IPv4 address or name. `127.0.0.1` keeps the packets on this machine.
    #[serde(default = "default_interface")]
    pub interface: String,
    /// Size of the kernel's receive buffer in bytes, 4096 to 268 435 456. The kernel limits it to
    /// `net.core.rmem_max`, or to twice that if the process has CAP_NET_ADMIN.
    #[serde(default = "default_receive_buffer")]
    #[schemars(range(min = 4096, max = 268_435_456))]
    pub receive_buffer_octets: usize,
}

fn default_group() -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::from(UDP_MULTICAST_GROUP), UDP_PORT)
}

fn default_interface() -> String {
    "127.0.0.1".to_owned()
}

impl Default for UdpMulticastSettings {
    fn default() -> Self {
        Self { group: default_group(), interface: default_interface(), receive_buffer_octets: default_receive_buffer() }
    }
}

impl UdpMulticastSettings {
    pub(crate) fn check(&self, key: &str) -> Result<(), SettingError> {
        if !self.group.ip().is_multicast() {
            let problem = format!("{} is not a multicast address (224.0.0.0 to 239.255.255.255)", self.group.ip());
            return Err(SettingError::new(format!("{key}.group"), problem));
        }
        check_receive_buffer(key, self.receive_buffer_octets)
    }
}

/// Opens a socket that exchanges frames with other stations by UDP multicast. Must be called inside the runtime.
///
/// # Errors
/// Returns an error if the interface does not exist, or a system call fails.
pub fn open(settings: &UdpMulticastSettings) -> Result<FrameSocket, StartError> {
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
    stamped.map_err(failed("cannot enable timestamps"))?;
    FrameSocket::new(socket, Some(settings.group.into()), None)
}

/// Opens a socket that sends to multicast groups through one interface. This machine receives its packets as well.
pub(crate) fn sending_socket(interface: Ipv4Addr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM.nonblocking().cloexec(), Some(Protocol::UDP))?;
    socket.set_multicast_if_v4(&interface)?;
    socket.set_multicast_loop_v4(true)?;
    Ok(socket)
}

/// Returns the IPv4 address of an interface that is given by address or by name.
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
