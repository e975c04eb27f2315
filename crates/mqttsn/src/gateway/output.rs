//! Datagrams and events that wait for the owner, and the counters.

use std::{collections::VecDeque, sync::Arc};

use super::{ClientStatus, GatewayCounters, GatewayEvent, session::Session};
use crate::{Destination, Peer, Transmit, codec::Packet, peer::DatagramWriter};

/// Outputs of the gateway.
#[derive(Debug, Default)]
pub(super) struct Output {
    pub(super) transmits: VecDeque<Transmit>,
    pub(super) events: VecDeque<GatewayEvent>,
    pub(super) counters: GatewayCounters,
    writer: DatagramWriter,
}

impl Output {
    /// Sends a message to a peer.
    pub(super) fn send(&mut self, peer: &Peer, packet: &Packet<'_>) {
        if let Some(transmit) = self.writer.write_to(peer, packet) {
            self.counters.sent += 1;
            self.transmits.push_back(transmit);
        }
    }

    /// Sends a message to all nodes.
    pub(super) fn broadcast(&mut self, to: Destination, packet: &Packet<'_>) {
        if let Some(datagram) = self.writer.write(packet) {
            self.counters.sent += 1;
            self.transmits.push_back(Transmit { to, datagram });
        }
    }

    pub(super) fn event(&mut self, event: GatewayEvent) {
        self.events.push_back(event);
    }

    /// Reports the state of a session.
    pub(super) fn status(&mut self, session: &Session, status: ClientStatus) {
        let client_id = Arc::clone(&session.client_id);
        self.event(GatewayEvent::Status { client: session.handle, client_id, peer: session.peer, status });
    }
}
