//! Geographically scoped unicast, EN 302 636-4-1, clause 10.3.8.

use viaduct_units::Mono;

use super::{
    Outcome, Router,
    pdu::{Pdu, Route},
    source::GnRequest,
};
use crate::{
    DropReason,
    access::EthernetHeader,
    geonet::{GnAddress, GucHeader, HeaderType, Packet, ShortPositionVector},
    send_error::SendError,
};

impl Router {
    /// Sends a packet (source operations, 10.3.8.2). If the position of the destination is unknown, starts the location
    /// service first.
    pub(super) fn send_guc(&mut self, now: Mono, request: &GnRequest, address: GnAddress) -> Result<(), SendError> {
        self.position_to_send()?;
        match self.located(now, address) {
            Some(destination) => {
                let (pdu, route) = self.make_guc(now, HeaderType::GeoUnicast, request, destination)?;
                self.emit(now, pdu, route)
            }
            None => self.search(now, request, address),
        }
    }

    /// Builds a GUC packet or a location reply, which has the same header.
    pub(super) fn make_guc(
        &mut self,
        now: Mono,
        header_type: HeaderType,
        request: &GnRequest,
        destination: ShortPositionVector,
    ) -> Result<(Pdu, Route), SendError> {
        let source = self.position_to_send()?;
        let position = destination.position.ok_or(SendError::NotSent(DropReason::DestinationUnknown))?;
        let sequence_number = self.sequence.take();
        let mut octets = self.begin_packet(header_type, self.mib.default_hop_limit, request);
        GucHeader { sequence_number, source, destination }.write(&mut octets);
        octets.extend_from_slice(&request.payload);
        let id = Some((source.address, sequence_number));
        Ok((Pdu::own(octets, now, request, id), Route::Towards(position)))
    }

    /// Processes a received packet: destination operations (10.3.8.4) or forwarder operations (10.3.8.3).
    pub(super) fn receive_guc(
        &mut self,
        now: Mono,
        link: &EthernetHeader,
        packet: &Packet<'_>,
        header: &GucHeader,
    ) -> Result<Outcome, DropReason> {
        if header.destination.address == self.address {
            return Ok(Outcome::Deliver);
        }
        self.forward_unicast(now, link, packet, header).map(|()| Outcome::Relayed)
    }

    /// Forwards the packet. If the location table has a newer position of the destination, the packet is updated (annex
    /// C.3).
    pub(super) fn forward_unicast(
        &mut self,
        now: Mono,
        link: &EthernetHeader,
        packet: &Packet<'_>,
        header: &GucHeader,
    ) -> Result<(), DropReason> {
        let newer = self.newer_position(now, &header.destination);
        let destination = newer.unwrap_or(header.destination);
        let position = destination.position.ok_or(DropReason::DestinationUnknown)?;
        let sender = self.accurate_sender(now, link);
        let mut pdu = self.pdu_to_forward(now, packet)?;
        if newer.is_some() {
            pdu.update_destination(&destination);
        }
        self.dispatch(now, pdu, Route::Towards(position), sender)
    }

    /// Returns the position of a station from the location table.
    pub(super) fn located(&self, now: Mono, address: GnAddress) -> Option<ShortPositionVector> {
        let known = self.table.get(now, address)?.position_vector.short();
        known.position.is_some().then_some(known)
    }

    /// Returns the position of a neighbour if it is newer than that in the packet.
    fn newer_position(&self, now: Mono, destination: &ShortPositionVector) -> Option<ShortPositionVector> {
        let entry = self.table.get(now, destination.address).filter(|entry| entry.neighbour)?;
        let known = entry.position_vector.short();
        (known.timestamp > destination.timestamp && known.position.is_some()).then_some(known)
    }
}
