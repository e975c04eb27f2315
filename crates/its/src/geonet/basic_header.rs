//! Basic header, EN 302 636-4-1, clause 9.6.

use super::Lifetime;

/// Length of the header in octets.
pub(super) const OCTETS: usize = 4;

/// Type of the header after the basic header (clause 9.6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BasicNextHeader {
    /// Unspecified.
    Any,
    /// The common header: the packet is not secured.
    CommonHeader,
    /// A secured packet (IEEE 1609.2 / TS 103 097), with the common header inside.
    SecuredPacket,
    /// A value that this edition does not define.
    Reserved(u8),
}

/// Basic header.
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-------+-------+---------------+---------------+---------------+
/// |version|  NH   |   reserved    |      LT       |      RHL      |
/// +-------+-------+---------------+---------------+---------------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BasicHeader {
    /// Version of GeoNetworking, 0 to 15.
    pub version: u8,
    /// Type of the next header (NH).
    pub next_header: BasicNextHeader,
    /// Lifetime of the packet (LT).
    pub lifetime: Lifetime,
    /// Remaining hop limit (RHL).
    pub remaining_hop_limit: u8,
}

impl BasicHeader {
    /// Parses the header. Returns the header with the remaining octets, or `None` if there are fewer than four octets.
    #[must_use]
    pub fn parse(octets: &[u8]) -> Option<(Self, &[u8])> {
        let (&[version_nh, _, lifetime, remaining_hop_limit], rest) = octets.split_first_chunk::<OCTETS>()?;
        let next_header = match version_nh & 15 {
            0 => BasicNextHeader::Any,
            1 => BasicNextHeader::CommonHeader,
            2 => BasicNextHeader::SecuredPacket,
            other => BasicNextHeader::Reserved(other),
        };
        Some((Self { version: version_nh >> 4, next_header, lifetime: Lifetime(lifetime), remaining_hop_limit }, rest))
    }

    /// Appends the header.
    pub fn write(&self, out: &mut Vec<u8>) {
        let next_header = match self.next_header {
            BasicNextHeader::Any => 0,
            BasicNextHeader::CommonHeader => 1,
            BasicNextHeader::SecuredPacket => 2,
            BasicNextHeader::Reserved(value) => value & 15,
        };
        out.extend_from_slice(&[self.version << 4 | next_header, 0, self.lifetime.0, self.remaining_hop_limit]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_next_header_round_trips() {
        for first in 0x10..=0x1F {
            let octets = [first, 0, 0x1A, 1];
            let (header, rest) = BasicHeader::parse(&octets).unwrap();
            assert!(rest.is_empty());
            assert_eq!(header.version, 1);
            let mut out = Vec::new();
            header.write(&mut out);
            assert_eq!(out, octets);
        }
        assert_eq!(BasicHeader::parse(&[0x11, 0, 0]), None);
    }
}
