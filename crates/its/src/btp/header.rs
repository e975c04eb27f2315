//! BTP-A and BTP-B headers, EN 302 636-5-1, clause 7.

use crate::geonet::CommonNextHeader;

/// Length of either header in octets.
pub const HEADER_OCTETS: usize = 4;

/// Header of a BTP packet.
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-------------------------------+-------------------------------+
/// |       destination port        |  A: source port               |
/// |                               |  B: destination port info     |
/// +-------------------------------+-------------------------------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BtpHeader {
    /// BTP-A, for interactive transport.
    A {
        /// Port of the receiving facility.
        destination_port: u16,
        /// Port for the reply.
        source_port: u16,
    },
    /// BTP-B, for transport without a reply: used by all messages of the facilities layer.
    B {
        /// Port of the receiving facility.
        destination_port: u16,
        /// Additional information about a well-known port, 0 if none.
        destination_port_info: u16,
    },
}

impl BtpHeader {
    /// Parses the header that GeoNetworking announces with `next_header`. Returns the header with the payload, or `None`
    /// if there are fewer than four octets or another protocol is announced.
    #[must_use]
    pub fn parse(next_header: CommonNextHeader, octets: &[u8]) -> Option<(Self, &[u8])> {
        let (&[port_high, port_low, second_high, second_low], rest) = octets.split_first_chunk::<HEADER_OCTETS>()?;
        let destination_port = u16::from_be_bytes([port_high, port_low]);
        let second = u16::from_be_bytes([second_high, second_low]);
        let header = match next_header {
            CommonNextHeader::BtpA => Self::A { destination_port, source_port: second },
            CommonNextHeader::BtpB => Self::B { destination_port, destination_port_info: second },
            _ => return None,
        };
        Some((header, rest))
    }

    /// Appends the header.
    pub fn write(self, out: &mut Vec<u8>) {
        let (first, second) = match self {
            Self::A { destination_port, source_port } => (destination_port, source_port),
            Self::B { destination_port, destination_port_info } => (destination_port, destination_port_info),
        };
        out.extend_from_slice(&first.to_be_bytes());
        out.extend_from_slice(&second.to_be_bytes());
    }

    /// Returns the value of GeoNetworking's next header field.
    #[must_use]
    pub const fn next_header(self) -> CommonNextHeader {
        match self {
            Self::A { .. } => CommonNextHeader::BtpA,
            Self::B { .. } => CommonNextHeader::BtpB,
        }
    }

    /// Returns the port of the receiving facility.
    #[must_use]
    pub const fn destination_port(self) -> u16 {
        match self {
            Self::A { destination_port, .. } | Self::B { destination_port, .. } => destination_port,
        }
    }
}

/// The type of a BTP header, with its second field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BtpKind {
    /// BTP-A.
    A {
        /// Port for the reply.
        source_port: u16,
    },
    /// BTP-B.
    B {
        /// Additional information about a well-known port, 0 if none.
        destination_port_info: u16,
    },
}

impl BtpKind {
    /// Returns the header of a packet to the given port.
    #[must_use]
    pub const fn header(self, destination_port: u16) -> BtpHeader {
        match self {
            Self::A { source_port } => BtpHeader::A { destination_port, source_port },
            Self::B { destination_port_info } => BtpHeader::B { destination_port, destination_port_info },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_both_kinds() {
        let octets = [0x07, 0xD1, 0x00, 0x05, 9];
        let a = BtpHeader::A { destination_port: 2001, source_port: 5 };
        let b = BtpHeader::B { destination_port: 2001, destination_port_info: 5 };
        assert_eq!(BtpHeader::parse(CommonNextHeader::BtpA, &octets), Some((a, &[9][..])));
        assert_eq!(BtpHeader::parse(CommonNextHeader::BtpB, &octets), Some((b, &[9][..])));
        assert_eq!(BtpHeader::parse(CommonNextHeader::Ipv6, &octets), None);
        assert_eq!(BtpHeader::parse(CommonNextHeader::BtpB, &octets[..3]), None);
    }

    #[test]
    fn written_header_round_trips() {
        for kind in [BtpKind::A { source_port: 60_000 }, BtpKind::B { destination_port_info: 7 }] {
            let (header, mut octets) = (kind.header(2009), Vec::new());
            header.write(&mut octets);
            assert_eq!(octets.len(), HEADER_OCTETS);
            assert_eq!(BtpHeader::parse(header.next_header(), &octets), Some((header, &[][..])));
            assert_eq!(header.destination_port(), 2009);
        }
    }
}
