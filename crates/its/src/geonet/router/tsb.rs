//! Topologically scoped broadcast, EN 302 636-4-1, clause 10.3.9.

use viaduct_units::Mono;

use super::{
    Outcome, Router,
    pdu::{Pdu, Route},
    source::GnRequest,
};
use crate::{
    DropReason,
    access::EthernetHeader,
    geonet::{HeaderType, Packet, TsbHeader},
    send_error::SendError,
};

impl Router {
    /// Builds the packet (source operations, 10.3.9.2), which may be repeated.
    pub(super) fn make_tsb(&mut self, now: Mono, request: &GnRequest, hops: u8) -> Result<(Pdu, Route), SendError> {
        let source = self.position_to_send()?;
        if hops == 0 {
            return Err(SendError::NoHops);
        }
        let sequence_number = self.sequence.take();
        let mut octets = self.begin_packet(HeaderType::MultiHopBroadcast, hops, request);
        TsbHeader { sequence_number, source }.write(&mut octets);
        octets.extend_from_slice(&request.payload);
        let id = Some((source.address, sequence_number));
        Ok((Pdu::own(octets, now, request, id), Route::Broadcast))
    }

    /// Processes a received packet (forwarder and receiver operations, 10.3.9.3): each station delivers and forwards
    /// it.
    pub(super) fn receive_tsb(
        &mut self,
        now: Mono,
        link: &EthernetHeader,
        packet: &Packet<'_>,
    ) -> Result<Outcome, DropReason> {
        let forwarded = self.forward(now, link, packet, Route::Broadcast);
        self.delivered_and(forwarded)
    }
}
