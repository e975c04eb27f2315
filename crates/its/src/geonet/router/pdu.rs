//! A packet on its way out: what is kept of it until it is put into a frame.

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

/// What tells multi-hop packets apart: who sent it first, and which of its packets it is.
pub(super) type PacketId = (GnAddress, SequenceNumber);

/// A packet on its way out.
#[derive(Clone, Debug)]
pub(super) struct Pdu {
    /// The packet from its basic header on, as it was made or received, with the hops that are left.
    octets: Vec<u8>,
    /// When it was made or received.
    since: Mono,
    /// How long it may travel from then on.
    lifetime: Duration,
    pub(super) class: TrafficClass,
    pub(super) id: Option<PacketId>,
    /// Whether this station is its source.
    pub(super) own: bool,
}

/// Where a packet goes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Route {
    /// To everybody in reach.
    Everybody,
    /// To the station that is about there.
    Towards(Position),
    /// To an area and within it.
    Area(Area),
}

impl Pdu {
    /// A packet of this station.
    pub(super) fn own(octets: Vec<u8>, now: Mono, request: &GnRequest, id: Option<PacketId>) -> Self {
        let (class, lifetime) = (request.class, request.lifetime.duration());
        Self { octets, since: now, lifetime, class, id, own: true }
    }

    /// The same packet, if it was asked for at that time.
    pub(super) const fn made_at(mut self, since: Mono) -> Self {
        self.since = since;
        self
    }

    /// A received packet with one hop less.
    ///
    /// # Errors
    /// The packet is signed and not verified, may take no further hop, or its lifetime is nothing.
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

    /// Writes a newer position of the destination into a GUC packet or a location reply (annex C.3).
    pub(super) fn renew_destination(&mut self, destination: &ShortPositionVector) {
        let start = basic_header::OCTETS + common_header::OCTETS + DESTINATION_OFFSET;
        let mut vector = Vec::with_capacity(ShortPositionVector::OCTETS);
        destination.write(&mut vector);
        if let Some(field) = self.octets.get_mut(start..start + vector.len()) {
            field.copy_from_slice(&vector);
        }
    }

    /// When its lifetime is over.
    pub(super) fn expires(&self) -> Mono {
        self.since.plus(self.lifetime)
    }

    /// Octets that it takes of a buffer.
    pub(super) const fn len(&self) -> usize {
        self.octets.len()
    }

    /// The frame that carries it; `None` where its lifetime is over. What it has waited is taken off its lifetime.
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

/// What is left of a lifetime. Nearly nothing is rounded up: the packet lives.
fn remaining(left: Duration) -> Lifetime {
    let nearest = Lifetime::from_duration(left);
    if nearest.duration().is_zero() { Lifetime::from_parts(1, 0) } else { nearest }
}
