//! A forwarder: it encapsulates the messages between its nodes and a gateway (5.5).
//!
//! The wireless node id is the address of the node: its IP address and port, 6 octets for IPv4 and 18 for IPv6. So the
//! forwarder keeps no table.

use std::{
    collections::VecDeque,
    net::{IpAddr, SocketAddr},
};

use bytes::Bytes;

use crate::{
    Destination, Transmit,
    codec::{DecodeError, Encapsulated, Packet},
    peer::DatagramWriter,
    reason::{count, counted},
};

reasons! {
    /// Reason for which the forwarder refused a datagram.
    ForwarderRefusal {
        /// The datagram of a node is not a message of MQTT-SN 1.2.
        Malformed => "malformed",
        /// A node has sent an encapsulated message.
        Nested => "nested_encapsulation",
        /// The gateway has sent a message without encapsulation, or an encapsulated one that is not a message.
        NotEncapsulated => "not_encapsulated",
        /// The wireless node id is not that of a node.
        NodeId => "unknown_node_id",
        /// The encapsulated message does not fit into a datagram.
        TooLarge => "too_large",
    }
}

/// Counters of a forwarder, since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForwarderCounters {
    /// Messages forwarded to the gateway.
    pub to_gateway: u64,
    /// Messages forwarded to nodes.
    pub to_nodes: u64,
    refused: [u64; ForwarderRefusal::ALL.len()],
}

impl ForwarderCounters {
    /// Returns the number of refused datagrams.
    #[must_use]
    pub fn refused(&self, reason: ForwarderRefusal) -> u64 {
        counted(&self.refused, reason.index())
    }
}

/// A forwarder with one gateway. It has no deadlines.
#[derive(Debug)]
pub struct Forwarder {
    gateway: SocketAddr,
    transmits: VecDeque<Transmit>,
    writer: DatagramWriter,
    counters: ForwarderCounters,
}

impl Forwarder {
    /// Returns a forwarder to a gateway.
    #[must_use]
    pub fn new(gateway: SocketAddr) -> Self {
        let (transmits, writer) = (VecDeque::new(), DatagramWriter::default());
        Self { gateway, transmits, writer, counters: ForwarderCounters::default() }
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> &ForwarderCounters {
        &self.counters
    }

    /// Returns the next datagram to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    /// Processes a datagram of a node or of the gateway.
    pub fn handle_datagram(&mut self, from: SocketAddr, datagram: &Bytes) {
        let result = if from == self.gateway { self.forward_down(datagram) } else { self.forward_up(from, datagram) };
        if let Err(reason) = result {
            count(&mut self.counters.refused, reason.index());
        }
    }

    /// Encapsulates a message of a node.
    fn forward_up(&mut self, from: SocketAddr, datagram: &Bytes) -> Result<(), ForwarderRefusal> {
        let radius = match Packet::decode(datagram).map_err(|_: DecodeError| ForwarderRefusal::Malformed)? {
            Packet::Encapsulated(_) => return Err(ForwarderRefusal::Nested),
            Packet::SearchGw { radius } => radius.min(3),
            _ => 0,
        };
        let node = octets_of(from);
        let packet = Packet::Encapsulated(Encapsulated { radius, node: node.as_slice(), message: datagram });
        let datagram = self.writer.write(&packet).ok_or(ForwarderRefusal::TooLarge)?;
        self.counters.to_gateway += 1;
        self.transmits.push_back(Transmit { to: Destination::Unicast(self.gateway), datagram });
        Ok(())
    }

    /// Sends the message of the gateway to its node, or to all nodes.
    fn forward_down(&mut self, datagram: &Bytes) -> Result<(), ForwarderRefusal> {
        let (to, message) = match Packet::decode(datagram) {
            Ok(Packet::Encapsulated(within)) => {
                let node = address_of(within.node).filter(|node| *node != self.gateway);
                let node = node.ok_or(ForwarderRefusal::NodeId)?;
                Packet::decode(within.message).map_err(|_: DecodeError| ForwarderRefusal::NotEncapsulated)?;
                (Destination::Unicast(node), datagram.slice_ref(within.message))
            }
            // Announcements are for all nodes, so they are not encapsulated.
            Ok(Packet::Advertise { .. } | Packet::GwInfo { .. }) => {
                (Destination::Broadcast { radius: 0, reply_to: None }, datagram.clone())
            }
            _ => return Err(ForwarderRefusal::NotEncapsulated),
        };
        self.counters.to_nodes += 1;
        self.transmits.push_back(Transmit { to, datagram: message });
        Ok(())
    }
}

/// Returns an address as octets: IP address and port.
pub(crate) fn octets_of(address: SocketAddr) -> Vec<u8> {
    let mut octets = match address.ip() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    octets.extend(address.port().to_be_bytes());
    octets
}

/// Returns the address of octets: IP address and port.
pub(crate) fn address_of(octets: &[u8]) -> Option<SocketAddr> {
    let (ip, port) = octets.split_last_chunk()?;
    let ip = match (<[u8; 4]>::try_from(ip), <[u8; 16]>::try_from(ip)) {
        (Ok(ip), _) => IpAddr::from(ip),
        (_, Ok(ip)) => IpAddr::from(ip),
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_be_bytes(*port)))
}
