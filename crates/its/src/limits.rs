//! All limits of the crate, and their relations.

use std::time::Duration;

use crate::{access, btp, facilities::cpm::OBJECTS_MAX, geonet};

/// Largest frame that is processed, in octets: an 802.11 MSDU. Vanetza's UDP link reads up to 2560.
pub const FRAME_OCTETS_MAX: usize = 2304;
/// Largest message that a station sends, in octets: `itsGnMaxSduSize` less the BTP header.
pub const PAYLOAD_OCTETS_MAX: usize = geonet::mib::ITS_GN_MAX_SDU_SIZE - btp::HEADER_OCTETS;
/// Frames that wait in a station. The contract is to drain after each input; one input may add this many (stored
/// packets that are sent when a neighbour appears).
pub const TRANSMITS_MAX: usize = 32;
/// Events that wait in a station. A frame adds one.
pub const EVENTS_MAX: usize = 64;
/// Stations in the location table: five times the stations of the busiest junction that the design considers.
pub const LOCATION_TABLE_ENTRIES_MAX: usize = 4096;
/// Sequence numbers remembered per source at most, whatever `itsGnDPLLength` is.
pub const DPL_LENGTH_MAX: usize = 256;
/// Stations whose location is sought at the same time.
pub const LOCATION_SEARCHES_MAX: usize = 64;
/// Packets that are repeated at the same time.
pub const REPETITIONS_MAX: usize = 32;
/// Buffered packets that are reconsidered after one received frame.
pub const HELD_RETRIES_MAX: usize = 64;
/// Shortest time between two changes of the own address. It limits the effect of a station that claims each new
/// address.
pub const ADDRESS_CHANGE_INTERVAL_MIN: Duration = Duration::from_secs(1);

/// Frames that wait for the channel in one DCC profile.
pub const DCC_QUEUE_FRAMES_MAX: usize = 32;
/// Octets of the frames that wait for the channel in one DCC profile.
pub const DCC_QUEUE_OCTETS_MAX: usize = 64 * 1024;
/// Messages of the facilities that wait to be sent: as many as a station sends at once. Messages beyond the limit are
/// counted.
pub const FACILITIES_TRANSMITS_MAX: usize = TRANSMITS_MAX;
/// Events of the facilities that wait to be returned, except changes of the map.
pub const FACILITIES_EVENTS_MAX: usize = 256;
/// Events that a station originates at the same time. A terminated event makes room.
pub const DEN_ORIGINATED_MAX: usize = 64;
/// Events received from other stations and stored.
pub const DEN_RECEIVED_MAX: usize = 1024;
/// Stored events per station.
pub const DEN_RECEIVED_OF_STATION_MAX: usize = DEN_RECEIVED_MAX / 8;
/// DENMs of other stations forwarded per second (keep-alive forwarding).
pub const DEN_FORWARDS_MAX: usize = 10;
/// Forwarded DENMs per originator and second.
pub const DEN_FORWARDS_OF_STATION_MAX: usize = 3;
/// DENMs that wait to be sent by the service.
pub const DEN_TRANSMITS_MAX: usize = 128;
/// Vulnerable road users in the neighbourhood that a road user stores.
pub const VA_NEIGHBOURS_MAX: usize = 128;
/// Objects in the local dynamic map.
pub const LDM_OBJECTS_MAX: usize = 4096;
/// Objects in the map per other station and message kind: twice the objects of one CPM.
pub const LDM_OBJECTS_OF_STATION_MAX: usize = LDM_OBJECTS_MAX / 8;
/// Changes of the map that wait to be returned.
pub const LDM_EVENTS_MAX: usize = 1024;
/// Stations with an apparent clock offset in the local dynamic map: as many as it has objects.
pub const LDM_CLOCKS_MAX: usize = LDM_OBJECTS_MAX;
/// Stations whose last message is stored to detect whether the next one is new.
pub const NEW_INFO_STATIONS_MAX: usize = 4096;

const _: () = assert!(
    access::HEADER_OCTETS + geonet::mib::ITS_GN_MAX_GEO_NETWORKING_HEADER_SIZE + geonet::mib::ITS_GN_MAX_SDU_SIZE
        <= FRAME_OCTETS_MAX,
    "what a station sends fits what a station receives"
);
const _: () = assert!(FRAME_OCTETS_MAX <= DCC_QUEUE_OCTETS_MAX, "what a station sends can wait for the channel");
const _: () = assert!(geonet::mib::ITS_GN_DPL_LENGTH <= DPL_LENGTH_MAX, "the standard's default is allowed");
const _: () = assert!(DEN_ORIGINATED_MAX <= DEN_TRANSMITS_MAX, "all own events can be repeated at the same time");
const _: () =
    assert!(2 * OBJECTS_MAX <= LDM_OBJECTS_OF_STATION_MAX, "all objects of a CPM and of the one before are known");
const _: () = assert!(DEN_ORIGINATED_MAX <= LDM_OBJECTS_MAX, "all own events are known");
