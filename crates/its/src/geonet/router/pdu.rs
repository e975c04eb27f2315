//! An outgoing packet, as stored until it is put into a frame.

use std::time::Duration;

use viaduct_units::{Mono, Position};

use super::source::GnRequest;
use crate::{
    DropReason,
    access::{ETHERTYPE_GEONETWORKING, EthernetHeader, MacAddress},
    geonet::{
        Area, GnAddress, Lifetime, Packet, SequenceNumber, ShortPositionVector, TrafficClass, basic_header,
        common_header, guc::DESTINATION_OFFSET,
    },
    security::Security,
};

/// Offset of LT in the basic header (clause 9.6).
const LIFETIME_OFFSET: usize = 2;
/// Offset of RHL in the basic header.
const HOPS_OFFSET: usize = 3;

/// The identity of a multi-hop packet: address of its source and sequence number.
pub(super) type PacketId = (GnAddress, SequenceNumber);

/// An outgoing packet.
#[derive(Clone, Debug)]
pub(super) struct Pdu {
    /// The packet from its basic header on, as created or received, with the remaining hop limit decremented.
    octets: Vec<u8>,
    /// Time of creation or reception.
    since: Mono,
    /// Lifetime counted from `since`.
    lifetime: Duration,
    pub(super) class: TrafficClass,
    pub(super) id: Option<PacketId>,
    /// `true` if this station is the source.
    pub(super) own: bool,
}

/// The destination of an outgoing packet, for routing.
#[derive(Clone, Copy, Debug)]
pub(super) enum Route {
    /// All neighbours.
    Broadcast,
    /// The station at about this position.
    Towards(Position),
    /// An area, and all stations in it.
    Area(Area),
}

impl Pdu {
    /// Returns a packet of this station.
    pub(super) fn own(octets: Vec<u8>, now: Mono, request: &GnRequest, id: Option<PacketId>) -> Self {
        let class = request.class;
        let lifetime = request.lifetime.duration();
        Self { octets, since: now, lifetime, class, id, own: true }
    }

    /// Returns the same packet with another time of creation.
    pub(super) const fn created_at(mut self, since: Mono) -> Self {
        self.since = since;
        self
    }

    /// Returns a received packet with the hop limit decremented.
    ///
    /// # Errors
    /// Returns an error if the packet is signed and not verified, its hop limit is reached, or its lifetime is 0.
    pub(super) fn received(packet: &Packet<'_>, now: Mono) -> Result<Self, DropReason> {
        if packet.security != Security::Unsecured {
            return Err(DropReason::SecuredNotVerified);
        }
        let hops = packet.basic.remaining_hop_limit.saturating_sub(1);
        if hops == 0 {
            return Err(DropReason::HopsExhausted);
        }
        let lifetime = packet.basic.lifetime.duration();
        if lifetime.is_zero() {
            return Err(DropReason::LifetimeExpired);
        }
        let mut octets = packet.octets.to_vec();
        if let Some(field) = octets.get_mut(HOPS_OFFSET) {
            *field = hops;
        }
        let id = packet.sequence_number().map(|number| (packet.source().address, number));
        Ok(Self { octets, since: now, lifetime, class: packet.common.traffic_class, id, own: false })
    }

    /// Updates the position of the destination in a GUC packet or a location reply (annex C.3).
    pub(super) fn update_destination(&mut self, destination: &ShortPositionVector) {
        let start = basic_header::OCTETS + common_header::OCTETS + DESTINATION_OFFSET;
        let mut vector = Vec::with_capacity(ShortPositionVector::OCTETS);
        destination.write(&mut vector);
        if let Some(field) = self.octets.get_mut(start..start + vector.len()) {
            field.copy_from_slice(&vector);
        }
    }

    /// Returns the time at which the lifetime ends.
    pub(super) fn expires(&self) -> Mono {
        self.since.plus(self.lifetime)
    }

    /// Returns the length of the packet in octets.
    pub(super) const fn len(&self) -> usize {
        self.octets.len()
    }

    /// Returns the frame with the packet, or `None` if the lifetime has ended. The waiting time is subtracted from the
    /// lifetime field.
    pub(super) fn frame(&self, now: Mono, source: MacAddress, destination: MacAddress) -> Option<Vec<u8>> {
        let left = self.expires().since(now);
        if left.is_zero() {
            return None;
        }
        let mut frame = Vec::with_capacity(crate::access::HEADER_OCTETS + self.octets.len());
        EthernetHeader { destination, source, ethertype: ETHERTYPE_GEONETWORKING }.write(&mut frame);
        let start = frame.len();
        frame.extend_from_slice(&self.octets);
        if left < self.lifetime
            && let Some(field) = frame.get_mut(start + LIFETIME_OFFSET)
        {
            *field = remaining(left).0;
        }
        Some(frame)
    }
}

/// Returns the remaining lifetime as a field value, rounded up if it would be 0.
fn remaining(left: Duration) -> Lifetime {
    let nearest = Lifetime::from_duration(left);
    if nearest.duration().is_zero() { Lifetime::from_parts(1, 0) } else { nearest }
}
