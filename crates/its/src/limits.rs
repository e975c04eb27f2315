//! All limits of the crate, and the relations between them.

use std::time::Duration;

use crate::{access, btp, facilities::cpm::OBJECTS_MAX, geonet};

/// Largest frame that is processed, in octets: an 802.11 MSDU. Vanetza's UDP link reads up to 2560.
pub const FRAME_OCTETS_MAX: usize = 2304;
/// Largest message that a station sends, in octets: `itsGnMaxSduSize` less the BTP header.
pub const PAYLOAD_OCTETS_MAX: usize = geonet::mib::ITS_GN_MAX_SDU_SIZE - btp::HEADER_OCTETS;
/// Largest number of frames that wait in a station. The contract is to drain them after each input. One input can add
/// this number of frames (stored packets that are sent when a neighbour appears).
pub const TRANSMITS_MAX: usize = 32;
/// Largest number of events that wait in a station. A frame adds one event.
pub const EVENTS_MAX: usize = 64;
/// Largest number of stations in the location table: five times the stations of the busiest junction that the design
/// considers.
pub const LOCATION_TABLE_ENTRIES_MAX: usize = 4096;
/// Largest number of sequence numbers that are stored for each source, independent of `itsGnDPLLength`.
pub const DPL_LENGTH_MAX: usize = 256;
/// Largest number of concurrent location searches.
pub const LOCATION_SEARCHES_MAX: usize = 64;
/// Largest number of packets that are repeated at the same time.
pub const REPETITIONS_MAX: usize = 32;
/// Largest number of buffered packets that are reconsidered after one received frame.
pub const HELD_RETRIES_MAX: usize = 64;
/// Shortest time between two changes of the own address. It limits the effect of a station that claims each new
/// address.
pub const ADDRESS_CHANGE_INTERVAL_MIN: Duration = Duration::from_secs(1);

/// Largest number of frames that wait for the channel in one DCC profile.
pub const DCC_QUEUE_FRAMES_MAX: usize = 32;
/// Largest total size of the frames that wait for the channel in one DCC profile, in octets.
pub const DCC_QUEUE_OCTETS_MAX: usize = 64 * 1024;
/// Largest number of facilities messages that wait to be sent; it equals [`TRANSMITS_MAX`]. Messages beyond the limit
/// are dropped and counted; DENMs wait in their service.
pub const FACILITIES_TRANSMITS_MAX: usize = TRANSMITS_MAX;
/// Largest number of facilities events that wait to be returned, except changes of the map.
pub const FACILITIES_EVENTS_MAX: usize = 256;
/// Largest number of events that a station originates at the same time. A terminated event frees its entry.
pub const DEN_ORIGINATED_MAX: usize = 64;
/// Largest number of stored events of other stations.
pub const DEN_RECEIVED_MAX: usize = 1024;
/// Largest number of stored events per station.
pub const DEN_RECEIVED_OF_STATION_MAX: usize = DEN_RECEIVED_MAX / 8;
/// Largest number of DENMs of other stations that are forwarded per second (keep-alive forwarding).
pub const DEN_FORWARDS_MAX: usize = 10;
/// Largest number of forwarded DENMs per originator and second.
pub const DEN_FORWARDS_OF_STATION_MAX: usize = 3;
/// Largest number of DENMs of the service that wait to be sent.
pub const DEN_TRANSMITS_MAX: usize = 128;
/// Largest number of neighbouring vulnerable road users that a road user stores.
pub const VA_NEIGHBOURS_MAX: usize = 128;
/// Largest number of objects in the local dynamic map.
pub const LDM_OBJECTS_MAX: usize = 4096;
/// Largest number of map objects per other station and message type; it holds at least the objects of two CPMs.
pub const LDM_OBJECTS_OF_STATION_MAX: usize = LDM_OBJECTS_MAX / 8;
/// Largest number of map changes that wait to be returned.
pub const LDM_EVENTS_MAX: usize = 1024;
/// Largest number of stations with an apparent clock offset in the local dynamic map; it equals [`LDM_OBJECTS_MAX`].
pub const LDM_CLOCKS_MAX: usize = LDM_OBJECTS_MAX;
/// Largest number of stations whose last state is stored, to detect messages with new information.
pub const NEW_INFO_STATIONS_MAX: usize = 4096;

const _: () = assert!(
    access::HEADER_OCTETS + geonet::mib::ITS_GN_MAX_GEO_NETWORKING_HEADER_SIZE + geonet::mib::ITS_GN_MAX_SDU_SIZE
        <= FRAME_OCTETS_MAX,
    "the largest sent frame is not larger than the largest received frame"
);
const _: () = assert!(FRAME_OCTETS_MAX <= DCC_QUEUE_OCTETS_MAX, "the largest frame fits into a DCC queue");
const _: () = assert!(geonet::mib::ITS_GN_DPL_LENGTH <= DPL_LENGTH_MAX, "the standard's default is allowed");
const _: () = assert!(DEN_ORIGINATED_MAX <= DEN_TRANSMITS_MAX, "all own events can be repeated at the same time");
const _: () = assert!(
    2 * OBJECTS_MAX <= LDM_OBJECTS_OF_STATION_MAX,
    "the map holds all objects of two consecutive CPMs of a station"
);
const _: () = assert!(DEN_ORIGINATED_MAX <= LDM_OBJECTS_MAX, "the map holds all own events");
