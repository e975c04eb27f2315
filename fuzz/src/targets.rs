//! The targets, and what must hold for each.

use std::{path::Path, time::Duration};

use bytes::Bytes;
use viaduct_components::{KINDS, capture::Capture, mqtt::hops};
use viaduct_etsi::{
    cam_ts103900_v231 as etsi_cam, cpm_ts103324_v211 as etsi_cpm, denm_ts103831_v231 as etsi_denm,
    vam_ts103300_3_v231 as etsi_vam,
};
use viaduct_its::{
    Ego, Event, Station, StationSettings,
    access::MacAddress,
    btp::BtpHeader,
    geonet::{self, CommonNextHeader},
};
use viaduct_node::Graph;
use viaduct_units::{MetresPerSecond, Mono, Now, Position, Tai, TimestampIts};

use crate::{link, seeds, station};

/// A decoder under test.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name on the command line.
    pub name: &'static str,
    /// Takes any octets; panics where an invariant does not hold.
    pub run: fn(&[u8]),
    /// Inputs that the decoder accepts, to be mutated.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// Every target.
pub const TARGETS: &[Target] = &[
    Target { name: "geonet", run: geonet, seeds: seeds::packets },
    Target { name: "btp", run: btp, seeds: seeds::btp_packets },
    Target { name: "cam", run: cam, seeds: seeds::cams },
    Target { name: "denm", run: denm, seeds: seeds::denms },
    Target { name: "cpm", run: cpm, seeds: seeds::cpms },
    Target { name: "vam", run: vam, seeds: seeds::vams },
    Target { name: "json_cam", run: json_cam, seeds: seeds::json_cams },
    Target { name: "json_denm", run: json_denm, seeds: seeds::json_denms },
    Target { name: "json_cpm", run: json_cpm, seeds: seeds::json_cpms },
    Target { name: "json_vam", run: json_vam, seeds: seeds::json_vams },
    Target { name: "frame", run: frame, seeds: seeds::frames },
    Target { name: "station", run: station::station, seeds: station::sequences },
    Target { name: "link", run: link::link, seeds: link::links },
    Target { name: "trace", run: link::trace, seeds: link::traces },
    Target { name: "capture", run: capture, seeds: seeds::captures },
    Target { name: "hops", run: hops, seeds: seeds::hops },
    Target { name: "config", run: config, seeds: seeds::configs },
];

/// A capture file: it ends after finitely many frames, and after the first error.
pub fn capture(octets: &[u8]) {
    let file = std::io::Cursor::new(octets.to_vec());
    let Ok(capture) = Capture::from_reader(Path::new("fuzz.pcap"), file) else { return };
    let frames: Vec<_> = capture.collect();
    assert!(frames.iter().rev().skip(1).all(Result::is_ok), "frames after an error");
    assert!(frames.iter().flatten().map(|frame| frame.octets.len()).sum::<usize>() <= octets.len());
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

/// A CAM in UPER: what is decoded can be encoded and written, and is the same when it is read again.
pub fn cam(octets: &[u8]) {
    let Ok(cam) = etsi_cam::decode(octets) else { return };
    match etsi_cam::encode(&cam) {
        Ok(encoded) => assert_eq!(etsi_cam::decode(&encoded).as_ref(), Ok(&cam)),
        Err(error) => assert!(is_of_a_later_edition(&error), "{error}"),
    }
    let mut text = Vec::new();
    etsi_cam::write_json(&cam, &mut text);
    match etsi_cam::from_json(&text) {
        Ok(read) => assert_eq!(read, cam),
        Err(error) => assert!(is_beyond_64_bits(&error) || is_beyond_a_size(&error), "{error}"),
    }
}

/// A DENM in UPER: as a CAM.
pub fn denm(octets: &[u8]) {
    let Ok(denm) = etsi_denm::decode(octets) else { return };
    match etsi_denm::encode(&denm) {
        Ok(encoded) => assert_eq!(etsi_denm::decode(&encoded).as_ref(), Ok(&denm)),
        Err(error) => assert!(is_of_a_later_edition(&error), "{error}"),
    }
    let mut text = Vec::new();
    etsi_denm::write_json(&denm, &mut text);
    match etsi_denm::from_json(&text) {
        Ok(read) => assert_eq!(read, denm),
        Err(error) => assert!(is_beyond_64_bits(&error) || is_beyond_a_size(&error), "{error}"),
    }
}

/// A CPM in UPER: as a CAM.
pub fn cpm(octets: &[u8]) {
    let Ok(cpm) = etsi_cpm::decode(octets) else { return };
    match etsi_cpm::encode(&cpm) {
        Ok(encoded) => assert_eq!(etsi_cpm::decode(&encoded).as_ref(), Ok(&cpm)),
        Err(error) => assert!(is_of_a_later_edition(&error), "{error}"),
    }
    let mut text = Vec::new();
    etsi_cpm::write_json(&cpm, &mut text);
    match etsi_cpm::from_json(&text) {
        Ok(read) => assert_eq!(read, cpm),
        Err(error) => assert!(is_beyond_64_bits(&error) || is_beyond_a_size(&error), "{error}"),
    }
}

/// A VAM in UPER: as a CAM.
pub fn vam(octets: &[u8]) {
    let Ok(vam) = etsi_vam::decode(octets) else { return };
    match etsi_vam::encode(&vam) {
        Ok(encoded) => assert_eq!(etsi_vam::decode(&encoded).as_ref(), Ok(&vam)),
        Err(error) => assert!(is_of_a_later_edition(&error), "{error}"),
    }
    let mut text = Vec::new();
    etsi_vam::write_json(&vam, &mut text);
    match etsi_vam::from_json(&text) {
        Ok(read) => assert_eq!(read, vam),
        Err(error) => assert!(is_beyond_64_bits(&error) || is_beyond_a_size(&error), "{error}"),
    }
}

/// A CAM as JSON: what is read is written as JSON that reads the same, and what can be encoded decodes the same.
pub fn json_cam(text: &[u8]) {
    let Ok(cam) = etsi_cam::from_json(text) else { return };
    let mut written = Vec::new();
    etsi_cam::write_json(&cam, &mut written);
    assert_eq!(etsi_cam::from_json(&written).as_ref(), Ok(&cam));
    if let Ok(octets) = etsi_cam::encode(&cam) {
        assert_eq!(etsi_cam::decode(&octets).as_ref(), Ok(&cam));
    }
}

/// A DENM as JSON: as a CAM.
pub fn json_denm(text: &[u8]) {
    let Ok(denm) = etsi_denm::from_json(text) else { return };
    let mut written = Vec::new();
    etsi_denm::write_json(&denm, &mut written);
    assert_eq!(etsi_denm::from_json(&written).as_ref(), Ok(&denm));
    if let Ok(octets) = etsi_denm::encode(&denm) {
        assert_eq!(etsi_denm::decode(&octets).as_ref(), Ok(&denm));
    }
}

/// A CPM as JSON: as a CAM.
pub fn json_cpm(text: &[u8]) {
    let Ok(cpm) = etsi_cpm::from_json(text) else { return };
    let mut written = Vec::new();
    etsi_cpm::write_json(&cpm, &mut written);
    assert_eq!(etsi_cpm::from_json(&written).as_ref(), Ok(&cpm));
    if let Ok(octets) = etsi_cpm::encode(&cpm) {
        assert_eq!(etsi_cpm::decode(&octets).as_ref(), Ok(&cpm));
    }
}

/// A VAM as JSON: as a CAM.
pub fn json_vam(text: &[u8]) {
    let Ok(vam) = etsi_vam::from_json(text) else { return };
    let mut written = Vec::new();
    etsi_vam::write_json(&vam, &mut written);
    assert_eq!(etsi_vam::from_json(&written).as_ref(), Ok(&vam));
    if let Ok(octets) = etsi_vam::encode(&vam) {
        assert_eq!(etsi_vam::decode(&octets).as_ref(), Ok(&vam));
    }
}

/// A frame through a station: it becomes one event, and every count adds up.
pub fn frame(octets: &[u8]) {
    let settings = StationSettings {
        link_address: MacAddress([2, 0, 0, 0, 0, 9]),
        station_type: 15,
        mobile: false,
        beacons: false,
    };
    let mut station = Station::new(settings, 1);
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

/// A list may have a size beyond what this edition has; it is decoded, and not encoded.
fn is_of_a_later_edition(error: &viaduct_etsi::UperError) -> bool {
    matches!(error, viaduct_etsi::UperError::Unencodable { detail, .. } if detail.contains("a list of "))
}

/// An extensible INTEGER may be of any size in UPER; the JSON form is read up to 64 bits.
fn is_beyond_64_bits(error: &viaduct_etsi::JsonError) -> bool {
    matches!(&error.problem, viaduct_etsi::JsonProblem::Mismatch { expected, .. } if expected.contains("integer"))
        || matches!(&error.problem, viaduct_etsi::JsonProblem::Syntax(cause) if cause.contains("number out of range"))
}

/// A list that is not encoded is not read from JSON either.
fn is_beyond_a_size(error: &viaduct_etsi::JsonError) -> bool {
    matches!(&error.problem, viaduct_etsi::JsonProblem::Mismatch { expected, .. } if expected.ends_with(" elements"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mutator;

    /// A part of what the binary does, in every test run.
    #[test]
    fn no_invariant_breaks_in_some_thousand_runs() {
        for target in TARGETS {
            let mut mutator = Mutator::new((target.seeds)(), 42);
            for _ in 0..3000 {
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
        assert!(seeds::cams().iter().all(|octets| etsi_cam::decode(octets).is_ok()));
        assert!(seeds::cpms().iter().all(|octets| etsi_cpm::decode(octets).is_ok()));
        assert!(seeds::json_cams().iter().all(|text| etsi_cam::from_json(text).is_ok()));
        assert!(seeds::json_cpms().iter().all(|text| etsi_cpm::from_json(text).is_ok()));
    }
}
