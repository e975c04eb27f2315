//! All limits of the crate, and their relations.

use std::time::Duration;

/// Largest packet of a link or a world, in octets: that of IP.
pub const PACKET_OCTETS_MAX: usize = 65_535;
/// Octets in a link, in its queue and in transit: half a second of 1 Gbit/s.
pub const LINK_OCTETS_MAX: usize = 64 << 20;
/// Minimum number of octets that a packet counts for, so that the number of empty packets is limited too.
pub const PACKET_WEIGHT_MIN: usize = 64;
/// Lines of a delivery trace: 15 minutes at 100 Mbit/s.
pub const TRACE_OPPORTUNITIES_MAX: usize = 1 << 23;
/// Longest synthetic trace. Each millisecond takes eight bytes while the trace is made.
pub const SYNTHETIC_TRACE_MAX: Duration = Duration::from_secs(3600);
/// Outages in the list of a link.
pub const OUTAGES_MAX: usize = 4096;
/// Stations of a world.
pub const NODES_MAX: usize = 4096;
/// Frames that wait for the channel in a station's radio.
pub const MAC_FRAMES_MAX: usize = 64;
/// Scheduled receptions, transmissions and deadlines of a world.
pub const EVENTS_MAX: usize = 1 << 20;
/// Simultaneous signals at one station; further ones are lost there.
pub const ON_AIR_MAX: usize = 256;
/// Datagrams that a pair takes from a machine after one input. The machine is called again for the rest.
pub const TRANSMITS_PER_INPUT_MAX: usize = 1 << 16;

const _: () = assert!(PACKET_OCTETS_MAX < LINK_OCTETS_MAX, "a link holds more than one packet");
const _: () = assert!(2 * NODES_MAX < EVENTS_MAX, "each station has room for its deadline and its radio's");
