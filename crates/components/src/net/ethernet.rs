//! Raw Ethernet as an access layer: frames of ethertype 0x8947 on one interface, through a packet socket (packet(7)).

use std::io;

use nix::ifaddrs::InterfaceAddress;
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::{setsockopt, sockopt};
use schemars::JsonSchema;
use serde::Deserialize;
use socket2::{Domain, Socket, Type};
use viaduct_its::access::{ETHERTYPE_GEONETWORKING, MacAddress};
use viaduct_node::{SettingError, StartError};

use super::frame_socket::{FrameSocket, Interface};
use super::sys::{self, Membership};
use super::{check_receive_buffer, default_receive_buffer};

/// A network interface as an access layer.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EthernetSettings {
    /// Name of the network interface: `eth0`, `wlan0`, `veth1`.
    pub interface: String,
    /// Size of the kernel's receive buffer in bytes, 4096 to 268 435 456. The kernel limits it to
    /// `net.core.rmem_max`, or to twice that if the process has CAP_NET_ADMIN.
    #[serde(default = "default_receive_buffer")]
    #[schemars(range(min = 4096, max = 268_435_456))]
    pub receive_buffer_octets: usize,
    /// Puts the interface into promiscuous mode, so that the capture also contains unicast frames to other stations. The station
    /// itself drops them.
    #[serde(default)]
    pub promiscuous: bool,
}

impl EthernetSettings {
    /// Returns the default settings for an interface.
    #[must_use]
    pub fn on(interface: impl Into<String>) -> Self {
        let receive_buffer_octets = default_receive_buffer();
        Self { interface: interface.into(), receive_buffer_octets, promiscuous: false }
    }

    pub(crate) fn check(&self, key: &str) -> Result<(), SettingError> {
        check_receive_buffer(key, self.receive_buffer_octets)
    }

    /// Checks that this machine has the interface.
    pub(crate) fn check_machine(&self, key: &str) -> Result<(), SettingError> {
        check_interface(&self.interface).map_err(|problem| SettingError::new(format!("{key}.interface"), problem))
    }
}

/// Opens a socket for GeoNetworking frames on a network interface. Must be called inside the runtime.
///
/// Frames that the machine itself sends are not received, because the kernel shows outgoing frames only to sockets of all
/// ethertypes. On the loopback interface they are received, and the station drops its own.
///
/// # Errors
/// Returns an error if the interface does not exist or is down, or the process does not have CAP_NET_RAW.
pub fn open(settings: &EthernetSettings) -> Result<FrameSocket, StartError> {
    let found = find(&settings.interface)?;
    let name = &settings.interface;
    if !found.up {
        let problem = format!("network interface {name} is down; `sudo ip link set {name} up` brings it up");
        return Err(StartError::Other(problem));
    }
    let failed = |what: &str| {
        let what = format!("{what} on interface {name}");
        move |cause: io::Error| StartError::io(what, cause)
    };
    // Protocol 0 receives nothing: otherwise the socket would receive frames of every interface until it is bound.
    let kind = Type::RAW.nonblocking().cloexec();
    let socket = Socket::new(Domain::PACKET, kind, None).map_err(|cause| open_error(name, cause))?;
    socket.set_recv_buffer_size(settings.receive_buffer_octets).map_err(failed("cannot set the receive buffer"))?;
    let stamped = setsockopt(&socket, sockopt::ReceiveTimestampns, &true).map_err(io::Error::from);
    stamped.map_err(failed("cannot enable timestamps"))?;
    sys::bind_to_interface(&socket, found.interface.index, ETHERTYPE_GEONETWORKING)
        .map_err(failed("cannot bind to ethertype 0x8947"))?;
    let socket = FrameSocket::new(socket, None, Some(found.interface))?;
    if settings.promiscuous {
        socket.add_membership(Membership::Promiscuous).map_err(failed("cannot enable promiscuous mode"))?;
    }
    Ok(socket)
}

/// Enables the reception of frames to `address` if it is not the address of the interface.
pub(crate) fn receive_for(socket: &FrameSocket, address: MacAddress) -> Result<(), StartError> {
    if socket.hardware_address().is_none_or(|own| own == address) {
        return Ok(());
    }
    let joined = socket.add_membership(Membership::Unicast(address));
    joined.map_err(|cause| StartError::io(format!("cannot receive frames to {address}"), cause))
}

/// Returns the error with a remedy if the process lacks the permission.
fn open_error(interface: &str, cause: io::Error) -> StartError {
    let mut what = format!("cannot open a raw Ethernet socket on interface {interface}");
    if cause.kind() == io::ErrorKind::PermissionDenied {
        what += " without CAP_NET_RAW (`sudo setcap cap_net_raw+ep \"$(command -v viaduct)\"` grants it to the program, \
                 or run it as root)";
    }
    StartError::io(what, cause)
}

/// An interface as listed by the system.
struct Found {
    interface: Interface,
    up: bool,
}

fn find(name: &str) -> Result<Found, StartError> {
    let all = list().map_err(|cause| StartError::io("cannot list the network interfaces", cause))?;
    let found = all.into_iter().find(|entry| entry.interface_name == name);
    found.as_ref().and_then(read).ok_or_else(|| StartError::Other(unknown(name)))
}

fn read(entry: &InterfaceAddress) -> Option<Found> {
    let link = entry.address.as_ref()?.as_link_addr()?;
    let address = link.addr().map(MacAddress).filter(|address| *address != MacAddress::default());
    let index = u32::try_from(link.ifindex()).ok()?;
    let interface = Interface { name: entry.interface_name.clone(), index, address };
    Some(Found { interface, up: entry.flags.contains(InterfaceFlags::IFF_UP) })
}

/// Returns the link-layer entries, one for each interface.
fn list() -> io::Result<Vec<InterfaceAddress>> {
    let entries = nix::ifaddrs::getifaddrs().map_err(io::Error::from)?;
    let is_link = |entry: &InterfaceAddress| entry.address.is_some_and(|address| address.as_link_addr().is_some());
    Ok(entries.filter(is_link).collect())
}

/// Checks that there is an interface of that name. The error lists the existing ones.
fn check_interface(name: &str) -> Result<(), String> {
    match nix::net::if_::if_nametoindex(name) {
        Ok(_) => Ok(()),
        Err(_) => Err(unknown(name)),
    }
}

fn unknown(name: &str) -> String {
    let names: Vec<String> = list().unwrap_or_default().into_iter().map(|entry| entry.interface_name).collect();
    format!("there is no network interface `{name}`; there is {}", names.join(", "))
}
