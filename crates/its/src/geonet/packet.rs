//! A whole GeoNetworking packet: which headers it has, and what it carries.

use viaduct_units::Tai;

use super::{
    BasicHeader, BasicNextHeader, CommonHeader, CommonNextHeader, HeaderType, LongPositionVector, ShbHeader,
    mib::ITS_GN_PROTOCOL_VERSION,
};
use crate::DropReason;

/// An unsecured packet of a type that a station processes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packet<'a> {
    /// Version, lifetime, hops left.
    pub basic: BasicHeader,
    /// Type, traffic class, hops allowed.
    pub common: CommonHeader,
    /// The rest, by its type.
    pub body: PacketBody<'a>,
}

/// What follows the common header.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PacketBody<'a> {
    /// A beacon says where its sender is.
    Beacon(LongPositionVector),
    /// A single-hop broadcast carries a BTP packet.
    SingleHopBroadcast {
        /// Source and media-dependent data.
        header: ShbHeader,
        /// The BTP packet, as long as the common header says.
        payload: &'a [u8],
    },
}

impl Packet<'_> {
    /// The sender's position vector.
    #[must_use]
    pub const fn source(&self) -> &LongPositionVector {
        match &self.body {
            PacketBody::Beacon(source) => source,
            PacketBody::SingleHopBroadcast { header, .. } => &header.source,
        }
    }
}

/// Reads a packet as clause 10.3.3 (basic header) and clause 10.3.5 (common header) process it.
///
/// # Errors
/// Why the packet is dropped. Octets behind the payload are none: a link may pad.
pub fn parse(octets: &[u8], reception: Tai) -> Result<Packet<'_>, DropReason> {
    let (basic, rest) = BasicHeader::parse(octets).ok_or(DropReason::Truncated)?;
    if basic.version != ITS_GN_PROTOCOL_VERSION {
        return Err(DropReason::GeonetVersion);
    }
    match basic.next_header {
        BasicNextHeader::CommonHeader => {}
        BasicNextHeader::SecuredPacket => return Err(DropReason::SecuredNotVerified),
        BasicNextHeader::Any | BasicNextHeader::Reserved(_) => return Err(DropReason::GeonetNextHeader),
    }
    let (common, rest) = CommonHeader::parse(rest).ok_or(DropReason::Truncated)?;
    if basic.remaining_hop_limit > common.maximum_hop_limit {
        return Err(DropReason::HopLimit);
    }
    Ok(Packet { basic, common, body: body(&common, rest, reception)? })
}

fn body<'a>(common: &CommonHeader, rest: &'a [u8], reception: Tai) -> Result<PacketBody<'a>, DropReason> {
    match common.header_type {
        HeaderType::Beacon => beacon(common, rest, reception),
        HeaderType::SingleHopBroadcast => single_hop_broadcast(common, rest, reception),
        HeaderType::GeoUnicast
        | HeaderType::GeoAnycast
        | HeaderType::GeoBroadcast
        | HeaderType::MultiHopBroadcast
        | HeaderType::LocationService => Err(DropReason::HeaderTypeUnsupported),
        HeaderType::Any | HeaderType::Reserved(..) => Err(DropReason::HeaderTypeUnknown),
    }
}

fn beacon<'a>(common: &CommonHeader, rest: &'a [u8], reception: Tai) -> Result<PacketBody<'a>, DropReason> {
    let (source, _) = LongPositionVector::parse(rest, reception).ok_or(DropReason::Truncated)?;
    if common.payload_length == 0 { Ok(PacketBody::Beacon(source)) } else { Err(DropReason::PayloadLength) }
}

fn single_hop_broadcast<'a>(
    common: &CommonHeader,
    rest: &'a [u8],
    reception: Tai,
) -> Result<PacketBody<'a>, DropReason> {
    if !matches!(common.next_header, CommonNextHeader::BtpA | CommonNextHeader::BtpB) {
        return Err(DropReason::TransportUnsupported);
    }
    let (header, rest) = ShbHeader::parse(rest, reception).ok_or(DropReason::Truncated)?;
    let payload = rest.get(..usize::from(common.payload_length)).ok_or(DropReason::PayloadLength)?;
    Ok(PacketBody::SingleHopBroadcast { header, payload })
}
