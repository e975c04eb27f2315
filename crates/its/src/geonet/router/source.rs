//! The common part of all packets of this station: basic header, common header, own position vector (EN 302 636-4-1,
//! clauses 10.3.2 and 10.3.4).

use viaduct_units::Mono;

use super::Router;
use crate::{
    geonet::{
        BasicHeader, BasicNextHeader, CommonHeader, CommonNextHeader, HeaderType, Lifetime, LongPositionVector,
        TrafficClass, mib::ITS_GN_PROTOCOL_VERSION,
    },
    send_error::SendError,
};

/// A request of the upper layer (GN-DATA.request, annex J.2), without its destination.
#[derive(Clone, Debug)]
pub(crate) struct GnRequest {
    /// Protocol of the payload.
    pub(crate) next_header: CommonNextHeader,
    pub(crate) class: TrafficClass,
    pub(crate) lifetime: Lifetime,
    pub(crate) payload: Vec<u8>,
    /// Length of the payload in octets.
    pub(crate) payload_length: u16,
}

impl Router {
    /// Returns a packet up to its extended header.
    pub(super) fn begin_packet(&self, header_type: HeaderType, hops: u8, request: &GnRequest) -> Vec<u8> {
        let mut octets = Vec::with_capacity(64 + request.payload.len());
        let basic = BasicHeader {
            version: ITS_GN_PROTOCOL_VERSION,
            next_header: BasicNextHeader::CommonHeader,
            lifetime: request.lifetime,
            remaining_hop_limit: hops,
        };
        let common = CommonHeader {
            next_header: request.next_header,
            header_type,
            traffic_class: request.class,
            mobile: self.settings.mobile,
            payload_length: request.payload_length,
            maximum_hop_limit: hops,
        };
        basic.write(&mut octets);
        common.write(&mut octets);
        octets
    }

    /// Returns the request for a packet without payload: beacon or location service.
    pub(super) const fn own_request(&self) -> GnRequest {
        GnRequest {
            next_header: CommonNextHeader::Any,
            class: self.mib.default_traffic_class,
            lifetime: self.mib.default_packet_lifetime,
            payload: Vec::new(),
            payload_length: 0,
        }
    }

    /// Returns the own position vector, or `None` without a position.
    pub(super) fn position_vector(&self) -> Option<LongPositionVector> {
        self.ego.map(|ego| LongPositionVector {
            address: self.address,
            timestamp: ego.time,
            position: Some(ego.position),
            position_accurate: ego.position_accurate,
            speed: ego.speed,
            heading: ego.heading,
        })
    }

    /// Returns the own position vector. Without a position, sending is an error.
    pub(super) fn position_to_send(&self) -> Result<LongPositionVector, SendError> {
        self.position_vector().ok_or(SendError::NoPosition)
    }

    /// Dispatches a packet of this station.
    pub(super) fn emit(&mut self, now: Mono, pdu: super::pdu::Pdu, route: super::pdu::Route) -> Result<(), SendError> {
        self.dispatch(now, pdu, route, None).map_err(SendError::NotSent)
    }
}
