//! Geographically scoped anycast, EN 302 636-4-1, clause 10.3.12.

use viaduct_units::Mono;

use super::{
    Outcome, Router,
    pdu::{Pdu, Route},
    source::GnRequest,
};
use crate::{
    DropReason,
    access::EthernetHeader,
    geonet::{Area, HeaderType, Packet},
    send_error::SendError,
};

impl Router {
    /// Builds the packet (source operations, 10.3.12.2), which may be repeated.
    pub(super) fn make_gac(&mut self, now: Mono, request: &GnRequest, area: Area) -> Result<(Pdu, Route), SendError> {
        self.make_geo(now, HeaderType::GeoAnycast(area.shape.kind()), request, area)
    }

    /// Processes a received packet (forwarder and receiver operations, 10.3.12.3): the first station inside the area
    /// receives it and does not forward it.
    pub(super) fn receive_gac(
        &mut self,
        now: Mono,
        link: &EthernetHeader,
        packet: &Packet<'_>,
        area: &Area,
    ) -> Result<Outcome, DropReason> {
        if self.is_for_me(area) {
            return Ok(Outcome::Deliver);
        }
        self.forward_to_area(now, link, packet, *area).map(|()| Outcome::Relayed)
    }
}
