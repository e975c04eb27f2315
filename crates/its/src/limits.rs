//! Every bound of the crate, and how they relate.

use crate::{access, btp, geonet};

/// Octets of a frame that is looked at: an 802.11 MSDU. Vanetza's UDP link reads 2560.
pub const FRAME_OCTETS_MAX: usize = 2304;
/// Octets of a message that a station sends: `itsGnMaxSduSize` less the BTP header.
pub const PAYLOAD_OCTETS_MAX: usize = geonet::mib::ITS_GN_MAX_SDU_SIZE - btp::HEADER_OCTETS;
/// Frames that wait to be taken from a station. The contract is to drain after each input; a command adds one.
pub const TRANSMITS_MAX: usize = 32;
/// Events that wait to be taken from a station. A frame adds one.
pub const EVENTS_MAX: usize = 64;
/// Stations whose last message is kept to tell whether the next one is new.
pub const NEW_INFO_STATIONS_MAX: usize = 4096;

const _: () = assert!(
    access::HEADER_OCTETS + geonet::mib::ITS_GN_MAX_GEO_NETWORKING_HEADER_SIZE + geonet::mib::ITS_GN_MAX_SDU_SIZE
        <= FRAME_OCTETS_MAX,
    "what a station sends fits what a station receives"
);
