//! Ethernet II header.

use super::{AddressError, parse_octets, write_octets};

/// Length of the header in octets.
pub const HEADER_OCTETS: usize = 14;

/// A 48-bit link address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// The broadcast address.
    pub const BROADCAST: Self = Self([0xFF; 6]);

    /// Returns `true` for a group address: broadcast or multicast.
    #[must_use]
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }
}

impl std::fmt::Display for MacAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write_octets(&self.0, f)
    }
}

impl std::str::FromStr for MacAddress {
    type Err = AddressError;

    /// Parses six octets, separated by colons or by hyphens.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let error = AddressError { expected: "six octets such as `02:00:00:00:03:e9`" };
        parse_octets(text).map(Self).ok_or(error)
    }
}

/// Ethernet II header.
///
/// ```text
/// +-----------------------------+-----------------------------+-----------+
/// |     destination (6)         |          source (6)         | type (2)  |
/// +-----------------------------+-----------------------------+-----------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EthernetHeader {
    /// Destination of the frame.
    pub destination: MacAddress,
    /// Sender of the frame.
    pub source: MacAddress,
    /// Protocol of the payload.
    pub ethertype: u16,
}

impl EthernetHeader {
    /// Parses the header. Returns the header with the payload of the frame, or `None` if the frame is too short.
    #[must_use]
    pub fn parse(frame: &[u8]) -> Option<(Self, &[u8])> {
        let (&destination, rest) = frame.split_first_chunk::<6>()?;
        let (&source, rest) = rest.split_first_chunk::<6>()?;
        let (&ethertype, rest) = rest.split_first_chunk::<2>()?;
        let header = Self {
            destination: MacAddress(destination),
            source: MacAddress(source),
            ethertype: u16::from_be_bytes(ethertype),
        };
        Some((header, rest))
    }

    /// Appends the header.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.destination.0);
        out.extend_from_slice(&self.source.0);
        out.extend_from_slice(&self.ethertype.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::ETHERTYPE_GEONETWORKING;

    #[test]
    fn a_header_round_trips() {
        let header = EthernetHeader {
            destination: MacAddress::BROADCAST,
            source: MacAddress([0x48, 0xa9, 0x8a, 0x90, 0x82, 0x7f]),
            ethertype: ETHERTYPE_GEONETWORKING,
        };
        let mut octets = Vec::new();
        header.write(&mut octets);
        assert_eq!(octets.len(), HEADER_OCTETS);
        octets.push(7);
        assert_eq!(EthernetHeader::parse(&octets), Some((header, &[7][..])));
        assert_eq!(EthernetHeader::parse(&octets[..13]), None);
        assert_eq!(header.source.to_string(), "48:a9:8a:90:82:7f");
    }
}
