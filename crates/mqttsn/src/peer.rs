//! Addresses of clients, directly or behind a forwarder, and datagrams to send.

use std::{
    fmt,
    hash::{Hash, Hasher},
    net::SocketAddr,
};

use bytes::{Bytes, BytesMut};

use crate::{
    codec::{Encapsulated, Packet},
    limits::{DATAGRAM_OCTETS_MAX, NODE_OCTETS_MAX, WRITE_BLOCK_OCTETS},
};

/// Wireless node id (5.5.3): the identity of a node at its forwarder, at most [`NODE_OCTETS_MAX`] octets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId {
    length: u8,
    octets: [u8; NODE_OCTETS_MAX],
}

impl NodeId {
    /// Returns the node id with these octets, or `None` if it is too long.
    #[must_use]
    pub fn new(id: &[u8]) -> Option<Self> {
        let mut octets = [0; NODE_OCTETS_MAX];
        octets.get_mut(..id.len())?.copy_from_slice(id);
        Some(Self { length: u8::try_from(id.len()).ok()?, octets })
    }

    /// Returns the octets.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        self.octets.get(..usize::from(self.length)).unwrap_or_default()
    }
}

impl Hash for NodeId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.octets().hash(state);
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.octets().iter().try_for_each(|octet| write!(formatter, "{octet:02x}"))
    }
}

/// Address of a client at the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Peer {
    /// Address from which datagrams arrive: that of the client, or of its forwarder.
    pub address: SocketAddr,
    /// Node id of a client behind a forwarder.
    pub node: Option<NodeId>,
}

impl From<SocketAddr> for Peer {
    fn from(address: SocketAddr) -> Self {
        Self { address, node: None }
    }
}

/// Receivers of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// One address.
    Unicast(SocketAddr),
    /// All nodes of the network, for example a multicast group.
    Broadcast {
        /// Broadcast radius in hops; 0 means all nodes. The time to live of a multicast datagram.
        radius: u8,
        /// Node whose SEARCHGW is answered. On a network without multicast, the datagram goes to this address only.
        reply_to: Option<SocketAddr>,
    },
}

/// A datagram to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Receivers.
    pub to: Destination,
    /// Payload.
    pub datagram: Bytes,
}

/// A buffer from which datagrams are cut, so that most of them need no allocation.
#[derive(Debug, Default)]
pub(crate) struct DatagramWriter(BytesMut);

impl DatagramWriter {
    /// Encodes a message, or returns `None` if it does not fit into a datagram.
    pub(crate) fn write(&mut self, packet: &Packet<'_>) -> Option<Bytes> {
        let length = packet.encoded_len();
        if length > DATAGRAM_OCTETS_MAX {
            return None;
        }
        if self.0.capacity() < length {
            self.0.reserve(length.max(WRITE_BLOCK_OCTETS));
        }
        self.0.resize(length, 0);
        match packet.encode(&mut self.0) {
            Ok(_) => Some(self.0.split().freeze()),
            Err(_) => None,
        }
    }

    /// Encodes a message to a peer, encapsulated if the peer is behind a forwarder.
    pub(crate) fn write_to(&mut self, peer: &Peer, packet: &Packet<'_>) -> Option<Transmit> {
        let message = self.write(packet)?;
        let datagram = match &peer.node {
            None => message,
            Some(node) => {
                let within = Encapsulated { radius: 0, node: node.octets(), message: &message };
                self.write(&Packet::Encapsulated(within))?
            }
        };
        Some(Transmit { to: Destination::Unicast(peer.address), datagram })
    }
}
