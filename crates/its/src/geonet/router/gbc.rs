//! Geographically scoped broadcast, EN 302 636-4-1, clause 10.3.11.

use viaduct_units::Mono;

use super::{
    Outcome, Router,
    pdu::{Pdu, Route},
    source::GnRequest,
};
use crate::{
    DropReason,
    access::EthernetHeader,
    geonet::{Area, GeoHeader, HeaderType, Packet},
    send_error::SendError,
};

impl Router {
    /// Builds the packet (source operations, 10.3.11.2), which may be repeated.
    pub(super) fn make_gbc(&mut self, now: Mono, request: &GnRequest, area: Area) -> Result<(Pdu, Route), SendError> {
        self.make_geo(now, HeaderType::GeoBroadcast(area.shape.kind()), request, area)
    }

    /// Builds a packet for an area, GBC or GAC.
    pub(super) fn make_geo(
        &mut self,
        now: Mono,
        header_type: HeaderType,
        request: &GnRequest,
        area: Area,
    ) -> Result<(Pdu, Route), SendError> {
        let source = self.position_to_send()?;
        self.check_area(&area)?;
        let sequence_number = self.sequence.take();
        let mut octets = self.begin_packet(header_type, self.mib.default_hop_limit, request);
        GeoHeader { sequence_number, source, area }.write(&mut octets);
        octets.extend_from_slice(&request.payload);
        let id = Some((source.address, sequence_number));
        Ok((Pdu::own(octets, now, request, id), Route::Area(area)))
    }

    /// Processes a received packet (forwarder and receiver operations, 10.3.11.3): stations inside receive it, all
    /// forward it.
    pub(super) fn receive_gbc(
        &mut self,
        now: Mono,
        link: &EthernetHeader,
        packet: &Packet<'_>,
        area: &Area,
    ) -> Result<Outcome, DropReason> {
        let forwarded = self.forward_to_area(now, link, packet, *area);
        if self.is_for_me(area) { self.delivered_and(forwarded) } else { forwarded.map(|()| Outcome::Relayed) }
    }

    /// Returns `true` if the station is in the area or has no position.
    pub(super) fn is_for_me(&self, area: &Area) -> bool {
        self.ego.is_none_or(|ego| area.contains(ego.position))
    }

    pub(super) fn forward_to_area(
        &mut self,
        now: Mono,
        link: &EthernetHeader,
        packet: &Packet<'_>,
        area: Area,
    ) -> Result<(), DropReason> {
        if area.size_m2() > self.mib.max_geo_area_size_m2 {
            return Err(DropReason::AreaTooLarge);
        }
        self.forward(now, link, packet, Route::Area(area))
    }

    fn check_area(&self, area: &Area) -> Result<(), SendError> {
        if !area.is_expressible() {
            return Err(SendError::Area);
        }
        let (size_m2, maximum_m2) = (area.size_m2(), self.mib.max_geo_area_size_m2);
        if size_m2 > maximum_m2 { Err(SendError::AreaTooLarge { size_m2, maximum_m2 }) } else { Ok(()) }
    }
}
