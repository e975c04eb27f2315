//! Protocol constants, EN 302 636-4-1 V1.4.1, annex H. Names are the standard's, in Rust's case for constants.

use std::time::Duration;

use super::{Lifetime, TrafficClass};

/// `itsGnProtocolVersion`: version of the protocol that the basic header carries.
pub const ITS_GN_PROTOCOL_VERSION: u8 = 1;
/// `itsGnMaxSduSize`: octets of a payload, `1 500 - itsGnMaxGeoNetworkingHeaderSize - 14`.
pub const ITS_GN_MAX_SDU_SIZE: usize = 1398;
/// `itsGnMaxGeoNetworkingHeaderSize`: octets of the largest header without security.
pub const ITS_GN_MAX_GEO_NETWORKING_HEADER_SIZE: usize = 88;
/// `itsGnBeaconServiceRetransmitTimer`: a station that sends nothing else sends a beacon after this time.
pub const ITS_GN_BEACON_SERVICE_RETRANSMIT_TIMER: Duration = Duration::from_millis(3000);
/// `itsGnBeaconServiceMaxJitter`: a quarter of the timer, added at random so that stations do not fall into step.
pub const ITS_GN_BEACON_SERVICE_MAX_JITTER: Duration = Duration::from_millis(750);
/// `itsGnDefaultPacketLifetime`: 60 s.
pub const ITS_GN_DEFAULT_PACKET_LIFETIME: Lifetime = Lifetime::from_parts(6, 2);
/// `itsGnDefaultTrafficClass`.
pub const ITS_GN_DEFAULT_TRAFFIC_CLASS: TrafficClass = TrafficClass(0);
