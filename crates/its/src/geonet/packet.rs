//! A whole GeoNetworking packet: headers and payload.

use viaduct_units::Tai;

use super::{
    BasicHeader, BasicNextHeader, CommonHeader, GeoHeader, GucHeader, HeaderType, LongPositionVector, LsRequestHeader,
    SequenceNumber, ShapeKind, ShbHeader, TsbHeader, beacon, mib::ITS_GN_PROTOCOL_VERSION,
};
use crate::{
    Acceptance, Destination, DropReason,
    security::{Security, SecurityPolicy, SignedData},
};

/// A packet with parsed headers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packet<'a> {
    /// Basic header: version, lifetime, remaining hop limit.
    pub basic: BasicHeader,
    /// Common header: type, traffic class, maximum hop limit.
    pub common: CommonHeader,
    /// Extended header and payload, by packet type.
    pub body: PacketBody<'a>,
    /// The octets of the packet, from the basic header to the end of the payload, as forwarders send them.
    pub octets: &'a [u8],
    /// Security of the packet. The signature of a signed packet covers the headers after the basic header.
    pub security: Security,
}

/// Extended header and payload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PacketBody<'a> {
    /// A beacon, which contains the position vector of its sender.
    Beacon(LongPositionVector),
    /// A single-hop broadcast.
    SingleHopBroadcast {
        /// Source and media-dependent data.
        header: ShbHeader,
        /// The payload, with the length given by the common header.
        payload: &'a [u8],
    },
    /// A topologically scoped broadcast.
    MultiHopBroadcast {
        /// Source and sequence number.
        header: TsbHeader,
        /// The payload.
        payload: &'a [u8],
    },
    /// A packet for all stations in an area.
    GeoBroadcast {
        /// Source, sequence number and area.
        header: GeoHeader,
        /// The payload.
        payload: &'a [u8],
    },
    /// A packet for any one station in an area.
    GeoAnycast {
        /// Source, sequence number and area.
        header: GeoHeader,
        /// The payload.
        payload: &'a [u8],
    },
    /// A packet for one station.
    GeoUnicast {
        /// Source, sequence number and destination.
        header: GucHeader,
        /// The payload.
        payload: &'a [u8],
    },
    /// A location request.
    LocationRequest(LsRequestHeader),
    /// A location reply.
    LocationReply(GucHeader),
}

impl<'a> Packet<'a> {
    /// Returns the position vector of the packet's source.
    #[must_use]
    pub const fn source(&self) -> &LongPositionVector {
        match &self.body {
            PacketBody::Beacon(source) => source,
            PacketBody::SingleHopBroadcast { header, .. } => &header.source,
            PacketBody::MultiHopBroadcast { header, .. } => &header.source,
            PacketBody::GeoBroadcast { header, .. } | PacketBody::GeoAnycast { header, .. } => &header.source,
            PacketBody::GeoUnicast { header, .. } | PacketBody::LocationReply(header) => &header.source,
            PacketBody::LocationRequest(header) => &header.source,
        }
    }

    /// Returns the sequence number, or `None` for single-hop packets.
    #[must_use]
    pub const fn sequence_number(&self) -> Option<SequenceNumber> {
        match &self.body {
            PacketBody::Beacon(_) | PacketBody::SingleHopBroadcast { .. } => None,
            PacketBody::MultiHopBroadcast { header, .. } => Some(header.sequence_number),
            PacketBody::GeoBroadcast { header, .. } | PacketBody::GeoAnycast { header, .. } => {
                Some(header.sequence_number)
            }
            PacketBody::GeoUnicast { header, .. } | PacketBody::LocationReply(header) => Some(header.sequence_number),
            PacketBody::LocationRequest(header) => Some(header.sequence_number),
        }
    }

    /// Returns the payload and its destination, or `None` for a packet without payload.
    #[must_use]
    pub const fn payload(&self) -> Option<(&'a [u8], Destination)> {
        match self.body {
            PacketBody::SingleHopBroadcast { payload, .. } => Some((payload, Destination::SingleHop)),
            PacketBody::MultiHopBroadcast { payload, .. } => {
                Some((payload, Destination::Hops(self.common.maximum_hop_limit)))
            }
            PacketBody::GeoBroadcast { header, payload } => Some((payload, Destination::Area(header.area))),
            PacketBody::GeoAnycast { header, payload } => Some((payload, Destination::AnyIn(header.area))),
            PacketBody::GeoUnicast { header, payload } => {
                Some((payload, Destination::Station(header.destination.address)))
            }
            PacketBody::Beacon(_) | PacketBody::LocationRequest(_) | PacketBody::LocationReply(_) => None,
        }
    }
}

/// Parses an unsecured packet of version 1, see [`parse_with`].
///
/// # Errors
/// Returns the reason why the packet is dropped.
pub fn parse(octets: &[u8], reception: Tai) -> Result<Packet<'_>, DropReason> {
    parse_with(octets, reception, Acceptance::default())
}

/// Parses a packet as clauses 10.3.3 (basic header) and 10.3.5 (common header) process it. Octets after the payload are
/// ignored, since a link may pad.
///
/// # Errors
/// Returns the reason why the packet is dropped.
pub fn parse_with(octets: &[u8], reception: Tai, acceptance: Acceptance) -> Result<Packet<'_>, DropReason> {
    let (basic, rest) = BasicHeader::parse(octets).ok_or(DropReason::Truncated)?;
    let accepts_version = basic.version == ITS_GN_PROTOCOL_VERSION || (basic.version == 0 && acceptance.version_0);
    if !accepts_version {
        return Err(DropReason::GeonetVersion);
    }
    match basic.next_header {
        BasicNextHeader::CommonHeader => {
            let (packet, behind) = parse_content(basic, rest, reception)?;
            let length = octets.len().saturating_sub(behind.len());
            Ok(Packet { octets: octets.get(..length).unwrap_or(octets), ..packet })
        }
        BasicNextHeader::SecuredPacket if acceptance.security == SecurityPolicy::None => {
            Err(DropReason::SecuredNotVerified)
        }
        BasicNextHeader::SecuredPacket => {
            let signed = SignedData::parse(rest)?;
            let (packet, _) = parse_content(basic, signed.payload, reception)?;
            Ok(Packet { octets, security: Security::Unverified { signer: signed.signer }, ..packet })
        }
        BasicNextHeader::Any | BasicNextHeader::Reserved(_) => Err(DropReason::GeonetNextHeader),
    }
}

/// Parses the headers after the basic header, of an unsecured packet or inside a signed one. Also returns the octets
/// after the payload.
fn parse_content(basic: BasicHeader, octets: &[u8], reception: Tai) -> Result<(Packet<'_>, &[u8]), DropReason> {
    let (common, rest) = CommonHeader::parse(octets).ok_or(DropReason::Truncated)?;
    if basic.remaining_hop_limit > common.maximum_hop_limit {
        return Err(DropReason::HopLimit);
    }
    let (body, behind) = body(&common, rest, reception)?;
    Ok((Packet { basic, common, body, octets, security: Security::Unsecured }, behind))
}

/// Extended header with payload, and the octets after the packet.
type Parsed<'a> = Result<(PacketBody<'a>, &'a [u8]), DropReason>;

fn body<'a>(common: &CommonHeader, rest: &'a [u8], reception: Tai) -> Parsed<'a> {
    match common.header_type {
        HeaderType::Beacon => beacon::parse(common, rest, reception).map(|body| (body, &[][..])),
        HeaderType::SingleHopBroadcast => single_hop_broadcast(common, rest, reception),
        HeaderType::MultiHopBroadcast => multi_hop_broadcast(common, rest, reception),
        HeaderType::GeoBroadcast(kind) => geo_broadcast(common, kind, rest, reception),
        HeaderType::GeoAnycast(kind) => geo_anycast(common, kind, rest, reception),
        HeaderType::GeoUnicast => geo_unicast(common, rest, reception),
        HeaderType::LocationRequest => location_request(common, rest, reception),
        HeaderType::LocationReply => location_reply(common, rest, reception),
        HeaderType::Any | HeaderType::Reserved(..) => Err(DropReason::HeaderTypeUnknown),
    }
}

fn single_hop_broadcast<'a>(common: &CommonHeader, rest: &'a [u8], reception: Tai) -> Parsed<'a> {
    let (header, rest) = ShbHeader::parse(rest, reception).ok_or(DropReason::Truncated)?;
    let (payload, behind) = payload(common, rest)?;
    Ok((PacketBody::SingleHopBroadcast { header, payload }, behind))
}

fn multi_hop_broadcast<'a>(common: &CommonHeader, rest: &'a [u8], reception: Tai) -> Parsed<'a> {
    let (header, rest) = TsbHeader::parse(rest, reception).ok_or(DropReason::Truncated)?;
    let (payload, behind) = payload(common, rest)?;
    Ok((PacketBody::MultiHopBroadcast { header, payload }, behind))
}

fn geo_broadcast<'a>(common: &CommonHeader, kind: ShapeKind, rest: &'a [u8], reception: Tai) -> Parsed<'a> {
    let (header, rest) = GeoHeader::parse(kind, rest, reception)?;
    let (payload, behind) = payload(common, rest)?;
    Ok((PacketBody::GeoBroadcast { header, payload }, behind))
}

fn geo_anycast<'a>(common: &CommonHeader, kind: ShapeKind, rest: &'a [u8], reception: Tai) -> Parsed<'a> {
    let (header, rest) = GeoHeader::parse(kind, rest, reception)?;
    let (payload, behind) = payload(common, rest)?;
    Ok((PacketBody::GeoAnycast { header, payload }, behind))
}

fn geo_unicast<'a>(common: &CommonHeader, rest: &'a [u8], reception: Tai) -> Parsed<'a> {
    let (header, rest) = GucHeader::parse(rest, reception).ok_or(DropReason::Truncated)?;
    let (payload, behind) = payload(common, rest)?;
    Ok((PacketBody::GeoUnicast { header, payload }, behind))
}

fn location_request<'a>(common: &CommonHeader, rest: &'a [u8], reception: Tai) -> Parsed<'a> {
    let (header, behind) = LsRequestHeader::parse(rest, reception).ok_or(DropReason::Truncated)?;
    without_payload(common)?;
    Ok((PacketBody::LocationRequest(header), behind))
}

fn location_reply<'a>(common: &CommonHeader, rest: &'a [u8], reception: Tai) -> Parsed<'a> {
    let (header, behind) = GucHeader::parse(rest, reception).ok_or(DropReason::Truncated)?;
    without_payload(common)?;
    Ok((PacketBody::LocationReply(header), behind))
}

/// Splits off the payload, with the length given by the common header. The protocol of the payload is not checked:
/// forwarders need not know it.
fn payload<'a>(common: &CommonHeader, rest: &'a [u8]) -> Result<(&'a [u8], &'a [u8]), DropReason> {
    rest.split_at_checked(common.payload_length.into()).ok_or(DropReason::PayloadLength)
}

/// Rejects a packet of a type without payload whose common header announces one.
const fn without_payload(common: &CommonHeader) -> Result<(), DropReason> {
    if common.payload_length == 0 { Ok(()) } else { Err(DropReason::PayloadLength) }
}
