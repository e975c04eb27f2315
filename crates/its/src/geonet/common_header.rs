//! Common header, EN 302 636-4-1, clause 9.7.

use super::{ShapeKind, TrafficClass};

/// Length of the header in octets.
pub(super) const OCTETS: usize = 8;
/// `itsGnIsMobile` in the flags (clause 9.7.2, table 9).
const FLAG_MOBILE: u8 = 0x80;

/// Type of the header after the GeoNetworking headers (clause 9.7.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommonNextHeader {
    /// Unspecified, as in a beacon, which has no payload.
    Any,
    /// BTP-A, for interactive packet transport, with a source port.
    BtpA,
    /// BTP-B, for packets without a reply.
    BtpB,
    /// IPv6 (GN6ASL).
    Ipv6,
    /// A value that this edition does not define.
    Reserved(u8),
}

impl CommonNextHeader {
    const fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Any,
            1 => Self::BtpA,
            2 => Self::BtpB,
            3 => Self::Ipv6,
            other => Self::Reserved(other),
        }
    }

    const fn code(self) -> u8 {
        match self {
            Self::Any => 0,
            Self::BtpA => 1,
            Self::BtpB => 2,
            Self::Ipv6 => 3,
            Self::Reserved(code) => code & 15,
        }
    }
}

/// Header type and subtype (clause 9.7.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderType {
    /// Unspecified.
    Any,
    /// Beacon.
    Beacon,
    /// Geographically scoped unicast (GUC).
    GeoUnicast,
    /// Geographically scoped anycast (GAC).
    GeoAnycast(ShapeKind),
    /// Geographically scoped broadcast (GBC).
    GeoBroadcast(ShapeKind),
    /// Topologically scoped broadcast, single hop (SHB).
    SingleHopBroadcast,
    /// Topologically scoped broadcast, multi-hop (TSB).
    MultiHopBroadcast,
    /// Location service request.
    LocationRequest,
    /// Location service reply.
    LocationReply,
    /// A combination of type and subtype that this edition does not define.
    Reserved(u8, u8),
}

impl HeaderType {
    const fn from_octet(octet: u8) -> Self {
        let (kind, subtype) = (octet >> 4, octet & 15);
        match (kind, ShapeKind::from_subtype(subtype), subtype) {
            (0, ..) => Self::Any,
            (1, ..) => Self::Beacon,
            (2, ..) => Self::GeoUnicast,
            (3, Some(shape), _) => Self::GeoAnycast(shape),
            (4, Some(shape), _) => Self::GeoBroadcast(shape),
            (5, _, 0) => Self::SingleHopBroadcast,
            (5, _, 1) => Self::MultiHopBroadcast,
            (6, _, 0) => Self::LocationRequest,
            (6, _, 1) => Self::LocationReply,
            (kind, ..) => Self::Reserved(kind, subtype),
        }
    }

    const fn octet(self) -> u8 {
        match self {
            Self::Any => 0x00,
            Self::Beacon => 0x10,
            Self::GeoUnicast => 0x20,
            Self::GeoAnycast(shape) => 0x30 | shape.subtype(),
            Self::GeoBroadcast(shape) => 0x40 | shape.subtype(),
            Self::SingleHopBroadcast => 0x50,
            Self::MultiHopBroadcast => 0x51,
            Self::LocationRequest => 0x60,
            Self::LocationReply => 0x61,
            Self::Reserved(kind, subtype) => kind << 4 | subtype & 15,
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
    /// Type of the header after the extended header (NH).
    pub next_header: CommonNextHeader,
    /// Type of the extended header (HT, HST).
    pub header_type: HeaderType,
    /// Traffic class (TC).
    pub traffic_class: TrafficClass,
    /// `true` if the sender can move (`itsGnIsMobile`).
    pub mobile: bool,
    /// Length of the payload after the extended header, in octets (PL).
    pub payload_length: u16,
    /// Maximum hop limit, set by the source (MHL).
    pub maximum_hop_limit: u8,
}

impl CommonHeader {
    /// Parses the header. Returns the header with the remaining octets, or `None` if there are fewer than eight octets.
    #[must_use]
    pub fn parse(octets: &[u8]) -> Option<(Self, &[u8])> {
        let (&[next, kind, class, flags, length_high, length_low, maximum_hop_limit, _], rest) =
            octets.split_first_chunk::<OCTETS>()?;
        let header = Self {
            next_header: CommonNextHeader::from_code(next >> 4),
            header_type: HeaderType::from_octet(kind),
            traffic_class: TrafficClass(class),
            mobile: flags & FLAG_MOBILE != 0,
            payload_length: u16::from_be_bytes([length_high, length_low]),
            maximum_hop_limit,
        };
        Some((header, rest))
    }

    /// Appends the header.
    pub fn write(&self, out: &mut Vec<u8>) {
        let [length_high, length_low] = self.payload_length.to_be_bytes();
        let flags = if self.mobile { FLAG_MOBILE } else { 0 };
        out.extend_from_slice(&[
            self.next_header.code() << 4,
            self.header_type.octet(),
            self.traffic_class.0,
            flags,
            length_high,
            length_low,
            self.maximum_hop_limit,
            0,
        ]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_at_the_offsets_of_the_standard() {
        let header = CommonHeader {
            next_header: CommonNextHeader::BtpB,
            header_type: HeaderType::SingleHopBroadcast,
            traffic_class: TrafficClass::DP2,
            mobile: true,
            payload_length: 0x0123,
            maximum_hop_limit: 1,
        };
        let mut octets = Vec::new();
        header.write(&mut octets);
        assert_eq!(octets, [0x20, 0x50, 2, 0x80, 0x01, 0x23, 1, 0]);
        assert_eq!(CommonHeader::parse(&octets), Some((header, &[][..])));
        assert_eq!(CommonHeader::parse(&octets[..7]), None);
    }

    #[test]
    fn every_header_type_of_the_table_is_parsed() {
        for (octet, expected) in [
            (0x00, HeaderType::Any),
            (0x10, HeaderType::Beacon),
            (0x20, HeaderType::GeoUnicast),
            (0x32, HeaderType::GeoAnycast(ShapeKind::Ellipse)),
            (0x40, HeaderType::GeoBroadcast(ShapeKind::Circle)),
            (0x41, HeaderType::GeoBroadcast(ShapeKind::Rectangle)),
            (0x50, HeaderType::SingleHopBroadcast),
            (0x51, HeaderType::MultiHopBroadcast),
            (0x60, HeaderType::LocationRequest),
            (0x61, HeaderType::LocationReply),
            (0x43, HeaderType::Reserved(4, 3)),
            (0x70, HeaderType::Reserved(7, 0)),
        ] {
            assert_eq!(HeaderType::from_octet(octet), expected, "{octet:#x}");
            assert_eq!(expected.octet(), octet);
        }
    }

    #[test]
    fn every_next_header_round_trips() {
        for code in 0..16 {
            assert_eq!(CommonNextHeader::from_code(code).code(), code);
        }
    }
}
