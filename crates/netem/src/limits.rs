//! Every bound of the crate, and how they relate.

/// Octets of a packet that a link or a world carries: the largest of IP.
pub const PACKET_OCTETS_MAX: usize = 65_535;
/// Octets that a link holds, in its queue and on their way: half a second of 1 Gbit/s.
pub const LINK_OCTETS_MAX: usize = 64 << 20;
/// Octets that a packet counts at least, so that empty packets are bounded too.
pub const PACKET_WEIGHT_MIN: usize = 64;
/// Lines of a delivery trace: a quarter of an hour at 100 Mbit/s.
pub const TRACE_OPPORTUNITIES_MAX: usize = 1 << 23;
/// Stations of a world.
pub const NODES_MAX: usize = 4096;
/// Frames that wait in a station's radio for the channel.
pub const MAC_FRAMES_MAX: usize = 64;
/// Receptions, transmissions and deadlines that a world has in front of it.
pub const EVENTS_MAX: usize = 1 << 20;
/// Frames that are in the air at one station at one time; what is beyond is lost there.
pub const ON_AIR_MAX: usize = 256;

const _: () = assert!(PACKET_OCTETS_MAX < LINK_OCTETS_MAX, "a link holds more than one packet");
const _: () = assert!(2 * NODES_MAX < EVENTS_MAX, "each station has room for its deadline and its radio's");
