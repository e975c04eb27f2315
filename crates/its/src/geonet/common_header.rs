//! Common header, EN 302 636-4-1, clause 9.7.

use super::TrafficClass;

/// Octets of the header.
pub(super) const OCTETS: usize = 8;
/// `itsGnIsMobile` in the flags (clause 9.7.2, table 9).
const FLAG_MOBILE: u8 = 0x80;

/// What follows the GeoNetworking headers (clause 9.7.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommonNextHeader {
    /// Not said; a beacon has nothing behind it.
    Any,
    /// BTP-A, for interactive packet transport: with a source port.
    BtpA,
    /// BTP-B, for packets that expect no answer.
    BtpB,
    /// IPv6 (GN6ASL).
    Ipv6,
    /// A value without a meaning in this edition.
    Reserved(u8),
}

/// Header type and subtype (clause 9.7.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderType {
    /// Not said.
    Any,
    /// Beacon.
    Beacon,
    /// Geographically scoped unicast.
    GeoUnicast,
    /// Geographically scoped anycast.
    GeoAnycast,
    /// Geographically scoped broadcast.
    GeoBroadcast,
    /// Topologically scoped broadcast, single hop (SHB).
    SingleHopBroadcast,
    /// Topologically scoped broadcast, multi-hop (TSB).
    MultiHopBroadcast,
    /// Location service request or reply.
    LocationService,
    /// A combination without a meaning in this edition: type and subtype.
    Reserved(u8, u8),
}

impl HeaderType {
    const fn from_octet(octet: u8) -> Self {
        match (octet >> 4, octet & 15) {
            (0, _) => Self::Any,
            (1, _) => Self::Beacon,
            (2, _) => Self::GeoUnicast,
            (3, 0..=2) => Self::GeoAnycast,
            (4, 0..=2) => Self::GeoBroadcast,
            (5, 0) => Self::SingleHopBroadcast,
            (5, 1) => Self::MultiHopBroadcast,
            (6, 0 | 1) => Self::LocationService,
            (kind, subtype) => Self::Reserved(kind, subtype),
        }
    }
}

/// Common header.
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-------+-------+-------+-------+---------------+---------------+
/// |  NH   |reserv.|  HT   |  HST  |      TC       |     flags     |
/// +-------+-------+-------+-------+---------------+---------------+
/// |              PL               |      MHL      |   reserved    |
/// +-------------------------------+---------------+---------------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommonHeader {
    /// What follows the extended header (NH).
    pub next_header: CommonNextHeader,
    /// Which extended header follows (HT, HST).
    pub header_type: HeaderType,
    /// Traffic class (TC).
    pub traffic_class: TrafficClass,
    /// Whether the sender can move (`itsGnIsMobile`).
    pub mobile: bool,
    /// Octets behind the extended header (PL).
    pub payload_length: u16,
    /// Hops that the source allowed (MHL).
    pub maximum_hop_limit: u8,
}

impl CommonHeader {
    /// Reads the header; `None` where there are fewer than eight octets.
    #[must_use]
    pub fn parse(octets: &[u8]) -> Option<(Self, &[u8])> {
        let (&[next, kind, class, flags, length_high, length_low, maximum_hop_limit, _], rest) =
            octets.split_first_chunk::<OCTETS>()?;
        let next_header = match next >> 4 {
            0 => CommonNextHeader::Any,
            1 => CommonNextHeader::BtpA,
            2 => CommonNextHeader::BtpB,
            3 => CommonNextHeader::Ipv6,
            other => CommonNextHeader::Reserved(other),
        };
        let header = Self {
            next_header,
            header_type: HeaderType::from_octet(kind),
            traffic_class: TrafficClass(class),
            mobile: flags & FLAG_MOBILE != 0,
            payload_length: u16::from_be_bytes([length_high, length_low]),
            maximum_hop_limit,
        };
        Some((header, rest))
    }
}

/// Appends a common header: the types that a station sends have one subtype each.
pub(super) fn write(
    next_header: u8,
    header_type: u8,
    class: TrafficClass,
    mobile: bool,
    payload_length: u16,
    out: &mut Vec<u8>,
) {
    let [length_high, length_low] = payload_length.to_be_bytes();
    let flags = if mobile { FLAG_MOBILE } else { 0 };
    // Single-hop packets have a maximum hop limit of 1.
    out.extend_from_slice(&[next_header << 4, header_type, class.0, flags, length_high, length_low, 1, 0]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_the_standard_has_them() {
        let mut octets = Vec::new();
        write(2, 0x50, TrafficClass::DP2, true, 0x0123, &mut octets);
        let (header, rest) = CommonHeader::parse(&octets).unwrap();
        assert!(rest.is_empty());
        let expected = CommonHeader {
            next_header: CommonNextHeader::BtpB,
            header_type: HeaderType::SingleHopBroadcast,
            traffic_class: TrafficClass::DP2,
            mobile: true,
            payload_length: 0x0123,
            maximum_hop_limit: 1,
        };
        assert_eq!(header, expected);
        assert_eq!(CommonHeader::parse(&octets[..7]), None);
    }

    #[test]
    fn every_header_type_of_the_table_is_known() {
        for (octet, expected) in [
            (0x00, HeaderType::Any),
            (0x10, HeaderType::Beacon),
            (0x20, HeaderType::GeoUnicast),
            (0x32, HeaderType::GeoAnycast),
            (0x40, HeaderType::GeoBroadcast),
            (0x50, HeaderType::SingleHopBroadcast),
            (0x51, HeaderType::MultiHopBroadcast),
            (0x61, HeaderType::LocationService),
            (0x43, HeaderType::Reserved(4, 3)),
            (0x70, HeaderType::Reserved(7, 0)),
        ] {
            assert_eq!(HeaderType::from_octet(octet), expected, "{octet:#x}");
        }
    }
}
