//! Octets that links and protocols add to each packet.

/// Octets of Ethernet around an IP packet: 8 of preamble and start delimiter, 14 of header, 4 of checksum, and a gap of 12
/// (IEEE 802.3, 3.1.1 and 4.4.2).
pub const ETHERNET: u16 = 8 + 14 + 4 + 12;
/// Octets of the headers of IPv4, without options (RFC 791), and UDP (RFC 768).
pub const IPV4_UDP: u16 = 20 + 8;
/// Octets of the headers of IPv6 (RFC 8200) and UDP (RFC 768).
pub const IPV6_UDP: u16 = 40 + 8;
