//! The link below GeoNetworking: Ethernet II frames of ethertype 0x8947.
//!
//! On an IP network, stations exchange the same frames over UDP. Vanetza's socktap (`--link-layer udp`) sends the whole
//! frame, Ethernet header included, as one datagram to [`UDP_MULTICAST_GROUP`] port [`UDP_PORT`]. It expects at least
//! the 14 octets of the header in a received datagram (riebl/vanetza, tools/socktap/udp_link.cpp and link_layer.cpp).
//! Therefore raw sockets, UDP multicast and capture files share one frame format.

mod address_text;
mod ethernet;

pub use address_text::AddressError;
pub(crate) use address_text::{parse_octets, write_octets};
pub use ethernet::{EthernetHeader, HEADER_OCTETS, MacAddress};

/// Ethertype of GeoNetworking (EN 302 636-4-1, clause 8.2; IEEE registration).
pub const ETHERTYPE_GEONETWORKING: u16 = 0x8947;
/// Multicast group of Vanetza's socktap.
pub const UDP_MULTICAST_GROUP: [u8; 4] = [239, 118, 122, 97];
/// UDP port of Vanetza's socktap: the digits of the ethertype.
pub const UDP_PORT: u16 = 8947;
