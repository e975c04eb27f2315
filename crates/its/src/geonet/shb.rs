//! Single-hop broadcast, EN 302 636-4-1, clause 9.8.4.

use viaduct_units::Tai;

use super::{
    BasicHeader, BasicNextHeader, LongPositionVector, TrafficClass, common_header, lifetime::Lifetime,
    mib::ITS_GN_PROTOCOL_VERSION,
};

/// Octets of the media-dependent data behind the position vector (TS 102 636-4-2 for ITS-G5).
const MEDIA_DEPENDENT_OCTETS: usize = 4;
/// HT 5, HST 0.
const HEADER_TYPE: u8 = 0x50;
/// NH of BTP-B.
const NEXT_HEADER_BTP_B: u8 = 2;

/// Extended header of a single-hop broadcast: source position vector (24) and media-dependent data (4).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShbHeader {
    /// Who sent the packet, and where from (SO PV).
    pub source: LongPositionVector,
    /// What the access layer adds, for example channel load (zero where it adds nothing).
    pub media_dependent: [u8; MEDIA_DEPENDENT_OCTETS],
}

impl ShbHeader {
    /// Reads the header; `None` where there are fewer than 28 octets.
    #[must_use]
    pub fn parse(octets: &[u8], reception: Tai) -> Option<(Self, &[u8])> {
        let (source, rest) = LongPositionVector::parse(octets, reception)?;
        let (&media_dependent, rest) = rest.split_first_chunk::<MEDIA_DEPENDENT_OCTETS>()?;
        Some((Self { source, media_dependent }, rest))
    }
}

/// Appends the headers of an unsecured single-hop broadcast that carries `payload_length` octets of BTP-B
/// (clause 10.3.10.2). Traffic class and lifetime are those that the facility asks for.
pub fn write_shb(
    source: &LongPositionVector,
    (class, lifetime): (TrafficClass, Lifetime),
    mobile: bool,
    payload_length: u16,
    out: &mut Vec<u8>,
) {
    let basic = BasicHeader {
        version: ITS_GN_PROTOCOL_VERSION,
        next_header: BasicNextHeader::CommonHeader,
        lifetime,
        remaining_hop_limit: 1,
    };
    basic.write(out);
    common_header::write(NEXT_HEADER_BTP_B, HEADER_TYPE, class, mobile, payload_length, out);
    source.write(out);
    out.extend_from_slice(&[0; MEDIA_DEPENDENT_OCTETS]);
}
