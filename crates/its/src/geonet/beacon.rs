//! Beacon, EN 302 636-4-1, clause 9.8.6.
//!
//! The extended header is the source's long position vector (24 octets). A beacon has no payload.

use viaduct_units::Tai;

use super::{CommonHeader, LongPositionVector, PacketBody};
use crate::DropReason;

/// Parses the octets after a beacon's common header.
pub(super) fn parse<'a>(common: &CommonHeader, rest: &[u8], reception: Tai) -> Result<PacketBody<'a>, DropReason> {
    let (source, _) = LongPositionVector::parse(rest, reception).ok_or(DropReason::Truncated)?;
    if common.payload_length == 0 { Ok(PacketBody::Beacon(source)) } else { Err(DropReason::PayloadLength) }
}
