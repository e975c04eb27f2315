//! Parts that gateway, client and forwarder of MQTT-SN share.

use std::io;
use std::net::{SocketAddr, SocketAddrV4};

use bytes::Bytes;
use socket2::Socket;
use viaduct_mqtt::QoS;
use viaduct_mqttsn::codec::Qos;
use viaduct_mqttsn::{Destination, Message, Transmit};
use viaduct_node::StartError;

use crate::net::port::{Arrival, Port};
use crate::net::udp::{interface_address, sending_socket};
use crate::net::udp_socket::{DATAGRAM_OCTETS_MAX, Received, UdpSettings, UdpSocket};

/// Multicast datagrams that wait until the kernel takes them.
const QUEUE_MAX: usize = 64;
/// Size of the kernel's receive buffer for multicast datagrams in bytes.
const RECEIVE_BUFFER_OCTETS: usize = 64 << 10;

/// A multicast group in which clients find gateways.
pub(crate) struct Group {
    address: SocketAddr,
    socket: UdpSocket,
    received: Vec<Received>,
}

impl Group {
    /// Joins a group on an interface, given by address or name. The port sends to the group: its address is the one that answers go
    /// to. Must be called inside the runtime.
    pub(crate) fn open(group: SocketAddrV4, interface: &str, port: &Port) -> Result<Self, StartError> {
        let interface = interface_address(interface)?;
        let open = || -> io::Result<Socket> {
            port.set_multicast_interface(interface)?;
            let socket = sending_socket(interface)?;
            socket.set_reuse_address(true)?;
            socket.bind(&SocketAddr::from(group).into())?;
            socket.join_multicast_v4(group.ip(), &interface)?;
            Ok(socket)
        };
        let settings = UdpSettings {
            receive_buffer_octets: RECEIVE_BUFFER_OCTETS,
            datagram_octets_max: DATAGRAM_OCTETS_MAX,
            queue_max: QUEUE_MAX,
        };
        let failed = |cause| StartError::io(format!("cannot join the multicast group {group} on {interface}"), cause);
        let socket = open().and_then(|socket| UdpSocket::new(socket, &settings)).map_err(failed)?;
        Ok(Self { address: group.into(), socket, received: Vec::new() })
    }
}

/// Receives from a group, or waits forever if there is none. Cancelling the wait loses nothing.
pub(crate) async fn receive(group: Option<&mut Group>) -> io::Result<Vec<Arrival>> {
    let Some(group) = group else { return std::future::pending().await };
    group.socket.receive(&mut group.received).await?;
    Ok(group.received.drain(..).map(|Received { from, octets, .. }| (from, octets)).collect())
}

/// Sends a datagram with the next flush of the port. A broadcast goes to the group, or without one only to the node that it answers.
pub(crate) fn send(Transmit { to, datagram }: Transmit, port: &mut Port, group: Option<&Group>) {
    match (to, group) {
        (Destination::Unicast(address), _) => port.push(address, datagram),
        (Destination::Broadcast { .. }, Some(group)) => port.push(group.address, datagram),
        (Destination::Broadcast { reply_to: Some(address), .. }, None) => port.push(address, datagram),
        (Destination::Broadcast { reply_to: None, .. }, None) => {}
    }
}

/// Returns a message of the broker.
pub(crate) fn message(topic: &str, payload: Bytes, quality: QoS, retain: bool) -> Message {
    let qos = match quality {
        QoS::AtMostOnce => Qos::AtMostOnce,
        QoS::AtLeastOnce => Qos::AtLeastOnce,
        QoS::ExactlyOnce => Qos::ExactlyOnce,
    };
    Message { topic: topic.into(), payload, qos, retain }
}

pub(crate) const fn qos(qos: Qos) -> QoS {
    match qos {
        Qos::AtMostOnce => QoS::AtMostOnce,
        Qos::AtLeastOnce => QoS::AtLeastOnce,
        Qos::ExactlyOnce => QoS::ExactlyOnce,
    }
}
