//! Every bound of the crate, and how they relate.

use std::time::Duration;

use crate::{access, btp, facilities::cpm::OBJECTS_MAX, geonet};

/// Octets of a frame that is looked at: an 802.11 MSDU. Vanetza's UDP link reads 2560.
pub const FRAME_OCTETS_MAX: usize = 2304;
/// Octets of a message that a station sends: `itsGnMaxSduSize` less the BTP header.
pub const PAYLOAD_OCTETS_MAX: usize = geonet::mib::ITS_GN_MAX_SDU_SIZE - btp::HEADER_OCTETS;
/// Frames that wait to be taken from a station. The contract is to drain after each input; one input may add this many
/// (packets that were carried until there was somebody to give them to).
pub const TRANSMITS_MAX: usize = 32;
/// Events that wait to be taken from a station. A frame adds one.
pub const EVENTS_MAX: usize = 64;
/// Stations in the location table: five times the stations of the busiest junction that the station is meant for.
pub const LOCATION_TABLE_ENTRIES_MAX: usize = 4096;
/// Sequence numbers that are remembered of each source at most, whatever `itsGnDPLLength` says.
pub const DPL_LENGTH_MAX: usize = 256;
/// Stations whose location is asked for at the same time.
pub const LOCATION_SEARCHES_MAX: usize = 64;
/// Packets that are repeated at the same time.
pub const REPETITIONS_MAX: usize = 32;
/// Packets in a buffer that one received frame makes the station look at again.
pub const HELD_RETRIES_MAX: usize = 64;
/// Time between two changes of the own address at least: somebody who claims each new one must not make it flap.
pub const ADDRESS_CHANGE_INTERVAL_MIN: Duration = Duration::from_secs(1);

/// Frames that wait for the channel in one DCC profile.
pub const DCC_QUEUE_FRAMES_MAX: usize = 32;
/// Octets of these frames.
pub const DCC_QUEUE_OCTETS_MAX: usize = 64 * 1024;
/// Messages of the facilities that wait to be taken: as many as a station sends at once. What is due beyond is counted.
pub const FACILITIES_TRANSMITS_MAX: usize = TRANSMITS_MAX;
/// Events of the facilities that wait to be taken, beside the changes of the map.
pub const FACILITIES_EVENTS_MAX: usize = 256;
/// Events that a station says at the same time. One that has ended makes room.
pub const DEN_ORIGINATED_MAX: usize = 64;
/// Events of others that a station remembers.
pub const DEN_RECEIVED_MAX: usize = 1024;
/// Events of one station among them.
pub const DEN_RECEIVED_OF_STATION_MAX: usize = DEN_RECEIVED_MAX / 8;
/// DENMs of others that a station sends on in a second (keep-alive forwarding).
pub const DEN_FORWARDS_MAX: usize = 10;
/// Those of one originator among them.
pub const DEN_FORWARDS_OF_STATION_MAX: usize = 3;
/// DENMs that wait to be taken from the service.
pub const DEN_TRANSMITS_MAX: usize = 128;
/// Vulnerable road users around that one of them remembers.
pub const VA_NEIGHBOURS_MAX: usize = 128;
/// Objects that the local dynamic map knows.
pub const LDM_OBJECTS_MAX: usize = 4096;
/// Objects among them that one other station said in one kind of message: twice those that one CPM tells.
pub const LDM_OBJECTS_OF_STATION_MAX: usize = LDM_OBJECTS_MAX / 8;
/// Changes of the map that wait to be taken.
pub const LDM_EVENTS_MAX: usize = 1024;
/// Stations with an apparent clock offset in the local dynamic map: as many as it has objects.
pub const LDM_CLOCKS_MAX: usize = LDM_OBJECTS_MAX;
/// Stations whose last message is kept to tell whether the next one is new.
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
