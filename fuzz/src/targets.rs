//! The targets, and what must hold for each.

use std::{path::Path, time::Duration};

use bytes::Bytes;
use viaduct_components::{KINDS, capture::Capture, mqtt::hops};
use viaduct_its::{
    Acceptance, Ego, Event, SecurityPolicy, Station, StationSettings,
    access::MacAddress,
    btp::BtpHeader,
    geonet::{self, CommonNextHeader, Mib},
    limits::PAYLOAD_OCTETS_MAX,
    security::SignedData,
};
use viaduct_node::Graph;
use viaduct_units::{MetresPerSecond, Mono, Now, Position, StationType, Tai, TimestampIts};

use crate::{dcc, dialect, facilities, ldm, link, messages, seeds, station, texts};

/// A decoder under test.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name on the command line.
    pub name: &'static str,
    /// Takes any octets; panics where an invariant does not hold.
    pub run: fn(&[u8]),
    /// Inputs that the decoder accepts, to be mutated.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// It gets so many times fewer runs than the others, where one takes long.
    pub divisor: u64,
    /// Octets that it may ask the allocator for at once.
    pub allocation_max: usize,
}

impl Target {
    const fn new(name: &'static str, run: fn(&[u8]), seeds: fn() -> Vec<Vec<u8>>) -> Self {
        Self { name, run, seeds, divisor: 1, allocation_max: 1 << 20 }
    }

    /// One whose inputs are sequences or files.
    const fn slow(self, divisor: u64) -> Self {
        Self { divisor, ..self }
    }

    const fn allocates(self, allocation_max: usize) -> Self {
        Self { allocation_max, ..self }
    }
}

/// An element of an IVIM's lists is up to half a kilobyte, and rasn reserves at most one for each bit that is left.
const IVIM_ALLOCATION_MAX: usize = 512 * 8 * PAYLOAD_OCTETS_MAX;

/// Every target.
pub const TARGETS: &[Target] = &[
    Target::new("geonet", geonet, seeds::packets),
    Target::new("signed_data", signed_data, seeds::signed_data),
    Target::new("btp", btp, seeds::btp_packets),
    Target::new("cam", messages::cam, seeds::cams),
    Target::new("denm", messages::denm, seeds::denms),
    Target::new("cpm", messages::cpm, seeds::cpms),
    Target::new("vam", messages::vam, seeds::vams),
    Target::new("ivim", messages::ivim, seeds::ivims).allocates(IVIM_ALLOCATION_MAX),
    Target::new("mapem", messages::mapem, seeds::mapems),
    Target::new("spatem", messages::spatem, seeds::spatems),
    Target::new("srem", messages::srem, seeds::srems),
    Target::new("ssem", messages::ssem, seeds::ssems),
    Target::new("json_cam", messages::json_cam, seeds::json_cams),
    Target::new("json_denm", messages::json_denm, seeds::json_denms),
    Target::new("json_cpm", messages::json_cpm, seeds::json_cpms),
    Target::new("json_vam", messages::json_vam, seeds::json_vams),
    Target::new("json_ivim", messages::json_ivim, seeds::json_ivims),
    Target::new("json_mapem", messages::json_mapem, seeds::json_mapems),
    Target::new("json_spatem", messages::json_spatem, seeds::json_spatems),
    Target::new("json_srem", messages::json_srem, seeds::json_srems),
    Target::new("json_ssem", messages::json_ssem, seeds::json_ssems),
    Target::new("dialect", dialect::viaduct, dialect::viaduct_texts),
    Target::new("dialect_nap", dialect::vanetza_nap, dialect::vanetza_nap_texts),
    Target::new("vehicle_state", texts::vehicle_state, texts::vehicle_states),
    Target::new("perceived_objects", texts::perceived_objects, texts::lists_of_objects),
    Target::new("event_request", texts::event_request, texts::event_requests),
    Target::new("frame", frame, seeds::frames),
    Target::new("station", station::station, station::sequences).slow(4),
    Target::new("facilities", facilities::facilities, facilities::sequences).slow(4),
    Target::new("ldm", ldm::ldm, ldm::sequences).slow(4),
    Target::new("dcc", dcc::dcc, dcc::sequences),
    Target::new("link", link::link, link::links).slow(4),
    Target::new("trace", link::trace, link::traces),
    Target::new("capture", capture, seeds::captures).slow(10),
    Target::new("hops", hops, seeds::hops),
    Target::new("config", config, seeds::configs).slow(10),
];

/// A capture file: it ends after finitely many frames, and after the first error.
pub fn capture(octets: &[u8]) {
    let file = std::io::Cursor::new(octets.to_vec());
    let Ok(capture) = Capture::from_reader(Path::new("fuzz.pcap"), file) else { return };
    let frames: Vec<_> = capture.collect();
    assert!(frames.iter().rev().skip(1).all(Result::is_ok), "frames after an error");
    let is_gzip = octets.starts_with(&[0x1F, 0x8B]);
    let read = frames.iter().flatten().filter_map(|frame| frame.octets.as_ref().ok()).map(Bytes::len).sum::<usize>();
    assert!(is_gzip || read <= octets.len());
}

/// The user property that carries a message's way: what is read is written as it was.
pub fn hops(octets: &[u8]) {
    let Ok(text) = std::str::from_utf8(octets) else { return };
    if let Ok(meta) = hops::parse(text) {
        assert_eq!(hops::write(&meta), text);
    }
}

/// A config file: a graph, or one line that says what is wrong.
pub fn config(octets: &[u8]) {
    let Ok(text) = std::str::from_utf8(octets) else { return };
    if let Err(error) = Graph::resolve("node.yaml", text, KINDS) {
        let said = error.to_string();
        assert!(said.starts_with("node.yaml") && said.len() < 8192, "{said}");
    }
}

/// A GeoNetworking packet: the payload is inside the packet, and the position vector is written as it was read.
pub fn geonet(octets: &[u8]) {
    let Ok(packet) = geonet::parse(octets, reception()) else { return };
    let mut written = Vec::new();
    packet.source().write(&mut written);
    // Basic header 4, common header 8, a multi-hop packet's number 4. What is no position or heading has many codes, and is written as one of them.
    let known = packet.source().position.is_some() && packet.source().heading.is_some();
    let start = if packet.sequence_number().is_some() { 16 } else { 12 };
    let north_again = octets.get(start + 22..start + 24) == Some(&3600_u16.to_be_bytes());
    if known && !north_again {
        assert_eq!(octets.get(start..start + 24), Some(&written[..]));
    }
    if let Some((payload, _)) = packet.payload() {
        assert_eq!(payload.len(), usize::from(packet.common.payload_length));
    }
}

/// Signed data: the payload is a part of the packet, and the rest of the packet does not depend on octets behind it.
pub fn signed_data(octets: &[u8]) {
    let Ok(read) = SignedData::parse(octets) else { return };
    assert!(read.payload.is_empty() || octets.as_ptr_range().contains(&read.payload.as_ptr()));
    assert_eq!(SignedData::parse(&[octets, &[0; 8]].concat()).map(|again| again.signer), Ok(read.signer));
}

/// A BTP packet: four octets of it are the header, in both kinds, and are written as they were read.
pub fn btp(octets: &[u8]) {
    for kind in [CommonNextHeader::BtpA, CommonNextHeader::BtpB] {
        let Some((header, payload)) = BtpHeader::parse(kind, octets) else {
            assert!(octets.len() < 4);
            continue;
        };
        assert_eq!(header.next_header(), kind);
        let mut written = Vec::new();
        header.write(&mut written);
        assert_eq!([&written, payload].concat(), octets);
    }
}

/// A frame through a station: it becomes one event, and every count adds up.
pub fn frame(octets: &[u8]) {
    let settings = StationSettings {
        link_address: MacAddress([2, 0, 0, 0, 0, 9]),
        station_type: StationType::ROADSIDE_UNIT,
        mobile: false,
        beacons: false,
    };
    // Signed packets are decoded too.
    let acceptance = Acceptance { security: SecurityPolicy::Unverified, version_0: true };
    let mut station = Station::with_mib(settings, Mib { acceptance, ..Mib::default() }, 1);
    let now = Now { mono: Mono::default(), tai: reception() };
    station.set_ego(now, ego(now));
    station.handle_frame(now, &Bytes::copy_from_slice(octets));
    let event = station.poll_event().expect("a frame becomes an event");
    assert_eq!(station.poll_event(), None);
    let counters = station.counters();
    let processed = counters.delivered + counters.relayed + counters.beacons + counters.location_service;
    assert_eq!((counters.received, processed + counters.dropped_total()), (1, 1));
    if let Event::Received(received) = event {
        assert!(octets.windows(received.payload.len()).any(|part| part == received.payload));
        assert_eq!(received.message.kind(), received.kind);
    }
    forward_what_waits(&mut station, now);
}

/// A packet that was taken to be forwarded is sent or given up in the end.
fn forward_what_waits(station: &mut Station, now: Now) {
    station.handle_timeout(now.plus(Duration::from_secs(7000)));
    while station.poll_transmit().is_some() {}
    let counters = station.counters();
    assert_eq!(counters.taken, counters.transmitted + counters.suppressed + counters.lost_total());
    assert_eq!(station.held_packets(), 0);
}

fn ego(now: Now) -> Ego {
    Ego {
        time: now.tai,
        position: Position::new(45.014_765_3, 7.568_490_8),
        position_accurate: true,
        speed: MetresPerSecond(0.0),
        heading: None,
    }
}

/// A moment to widen wrapped times by.
fn reception() -> Tai {
    TimestampIts(650_000_012_345).tai()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mutator;

    /// A part of what the binary does, in every test run.
    #[test]
    fn no_invariant_breaks_in_some_hundred_runs() {
        for target in TARGETS {
            let mut mutator = Mutator::new((target.seeds)(), 42);
            for _ in 0..600 / target.divisor {
                (target.run)(mutator.next_input());
            }
        }
    }

    #[test]
    fn every_seed_is_accepted() {
        for target in TARGETS {
            let seeds = (target.seeds)();
            assert!(!seeds.is_empty(), "{}", target.name);
            for seed in seeds {
                (target.run)(&seed);
            }
        }
    }
}
