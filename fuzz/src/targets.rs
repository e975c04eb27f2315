//! The targets and their invariants.

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
use viaduct_teleop::frames::build_code_tables;
use viaduct_units::{MetresPerSecond, Mono, Now, Position, StationType, Tai, TimestampIts};

use crate::{
    cameras, coap, dcc, dialect, dtls, facilities, ldm, lidar, link, messages, mqtt, mqttsn, ros, secure, seeds,
    station, teleop, texts,
};

/// A decoder under test.
#[derive(Clone, Copy)]
pub struct Target {
    /// Name on the command line.
    pub name: &'static str,
    /// Function that takes arbitrary octets and panics if an invariant is violated.
    pub run: fn(&[u8]),
    /// Function that builds what the process builds once, before the first input is measured.
    pub prepare: fn(),
    /// Valid inputs to mutate.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Divisor of the number of runs, above 1 for a slow target.
    pub divisor: u64,
    /// Maximum size of one allocation in bytes.
    pub allocation_max: usize,
}

impl Target {
    const fn new(name: &'static str, run: fn(&[u8]), seeds: fn() -> Vec<Vec<u8>>) -> Self {
        Self { name, run, prepare: || (), seeds, divisor: 1, allocation_max: 1 << 20 }
    }

    /// Returns a target with slow inputs (sequences or files).
    const fn slow(self, divisor: u64) -> Self {
        Self { divisor, ..self }
    }

    /// Returns a target that uses the erasure code.
    const fn uses_code(self) -> Self {
        Self { prepare: build_code_tables, ..self }
    }

    const fn allocates(self, allocation_max: usize) -> Self {
        Self { allocation_max, ..self }
    }
}

/// An element of an IVIM's lists takes up to 512 bytes, and rasn reserves at most one for each remaining bit.
const IVIM_ALLOCATION_MAX: usize = 512 * 8 * PAYLOAD_OCTETS_MAX;

/// All targets.
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
    Target::new("link_settings", link::link_settings, link::settings_texts).slow(10),
    Target::new("trace", link::trace, link::traces),
    Target::new("teleop_wire", teleop::wire, teleop::datagrams),
    Target::new("teleop_receiver", teleop::receiver, teleop::to_desk).slow(4).uses_code(),
    Target::new("teleop_sender", teleop::sender, teleop::to_vehicle).slow(10).uses_code(),
    Target::new("teleop_vehicle", teleop::vehicle, teleop::to_vehicle).slow(40).uses_code(),
    Target::new("teleop_desk", teleop::desk, teleop::to_desk).slow(20).uses_code(),
    Target::new("mqttsn_codec", mqttsn::codec, mqttsn::datagrams),
    Target::new("mqttsn_gateway", mqttsn::gateway, mqttsn::to_gateway).slow(10),
    Target::new("mqttsn_client", mqttsn::client, mqttsn::to_client).slow(10),
    Target::new("mqttsn_forwarder", mqttsn::forwarder, mqttsn::to_forwarder),
    Target::new("mqttsn_records", mqttsn::records, mqttsn::storages).slow(10),
    Target::new("mqttsn_history", mqttsn::history, mqttsn::histories),
    Target::new("coap_message", coap::message, coap::messages),
    Target::new("coap_stream", coap::stream, coap::streams).slow(4),
    Target::new("coap_endpoint", coap::server, coap::sequences).slow(20),
    Target::new("coap_q_block", coap::q_block, coap::sequences).slow(20),
    Target::new("ros_definition", ros::definition, ros::definitions),
    Target::new("ros1_message", ros::message, ros::messages),
    Target::new("ros_value", ros::value, ros::values),
    Target::new("ros_transcode", ros::transcoded, ros::values),
    Target::new("ros_primitive", ros::primitive, ros::primitives),
    Target::new("lidar_cloud", lidar::clouds, lidar::seeds),
    Target::new("lidar_scan", lidar::scans, lidar::scan_seeds),
    Target::new("mqtt_client_type", ros::mqtt_client_type, ros::mqtt_client_types),
    Target::new("tcpros", ros::connection, ros::connections),
    Target::new("xmlrpc", ros::document, ros::documents),
    Target::new("ros2_discovery", ros::discovery, ros::discoveries),
    Target::new("secure_initiator", secure::initiator, secure::to_initiator).slow(40),
    Target::new("secure_responder", secure::responder, secure::to_responder).slow(40),
    Target::new("dtls", dtls::ends, dtls::scripts).slow(40),
    Target::new("jpeg_file", cameras::jpeg_file, cameras::files).slow(10).allocates(16 << 20),
    Target::new("camera_mark", cameras::mark, cameras::marks),
    Target::new("drive_command", cameras::drive_command, cameras::commands).slow(10),
    Target::new("capture", capture, seeds::captures).slow(10),
    Target::new("hops", hops, seeds::hops),
    Target::new("mqtt_compression", mqtt::compression, mqtt::compressed).slow(10),
    Target::new("mqtt_planes", mqtt::planes, mqtt::arranged),
    Target::new("mqtt_polar", mqtt::polar, mqtt::steps),
    Target::new("config", config, seeds::configs).slow(10),
];

/// Checks a capture file: it ends after finitely many frames, and after the first error.
pub fn capture(octets: &[u8]) {
    let file = std::io::Cursor::new(octets.to_vec());
    let Ok(capture) = Capture::from_reader(Path::new("fuzz.pcap"), file) else { return };
    let frames: Vec<_> = capture.collect();
    assert!(frames.iter().rev().skip(1).all(Result::is_ok), "a frame follows an error");
    let is_gzip = octets.starts_with(&[0x1F, 0x8B]);
    let read = frames.iter().flatten().filter_map(|frame| frame.octets.as_ref().ok()).map(Bytes::len).sum::<usize>();
    assert!(is_gzip || read <= octets.len());
}

/// Checks the MQTT user properties with a message's hops, one a line: writing parsed values results in the same texts.
pub fn hops(octets: &[u8]) {
    let Ok(text) = std::str::from_utf8(octets) else { return };
    let (value, marks) = text.split_once('\n').map_or((text, None), |(value, marks)| (value, Some(marks)));
    let machine = marks.and_then(|marks| u32::from_str_radix(marks.split(';').next()?.split_once('@')?.1, 16).ok());
    if let Ok(arrived) = hops::read(value, marks, machine) {
        assert_eq!(hops::write(&arrived.meta), value);
        assert!(marks.is_none_or(|marks| hops::write_marks(&arrived.meta, machine) == marks));
    }
}

/// Checks a config file: it results in a graph, or in mistakes that name the file and have a limited length.
pub fn config(octets: &[u8]) {
    let Ok(text) = std::str::from_utf8(octets) else { return };
    if let Err(errors) = Graph::resolve("node.yaml", text, KINDS) {
        for error in &errors {
            let message = error.to_string();
            assert!(message.starts_with("node.yaml") && message.len() < 8192, "{message}");
        }
    }
}

/// Checks a GeoNetworking packet: the payload is inside the packet, and writing the parsed position vector results in
/// the same octets.
pub fn geonet(octets: &[u8]) {
    let Ok(packet) = geonet::parse(octets, reception()) else { return };
    let mut written = Vec::new();
    packet.source().write(&mut written);
    // Basic header 4, common header 8, sequence number of a multi-hop packet 4. An unavailable position or heading
    // has many codes and is written as one of them.
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

/// Checks signed data: the payload is part of the packet, and the result does not depend on octets after the packet.
pub fn signed_data(octets: &[u8]) {
    let Ok(read) = SignedData::parse(octets) else { return };
    assert!(read.payload.is_empty() || octets.as_ptr_range().contains(&read.payload.as_ptr()));
    assert_eq!(SignedData::parse(&[octets, &[0; 8]].concat()).map(|again| again.signer), Ok(read.signer));
}

/// Checks a BTP packet: the header has four octets in both kinds, and writing it results in the same octets.
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

/// Checks a frame received by a station: it results in one event, and the counters are consistent.
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
    let event = station.poll_event().expect("a frame results in an event");
    assert_eq!(station.poll_event(), None);
    let counters = station.counters();
    let processed = counters.delivered + counters.relayed + counters.beacons + counters.location_service;
    assert_eq!((counters.received, processed + counters.dropped_total()), (1, 1));
    if let Event::Received(received) = event {
        assert!(octets.windows(received.payload.len()).any(|part| part == received.payload));
        assert_eq!(received.message.kind(), received.kind);
    }
    expire_buffered_packets(&mut station, now);
}

/// Checks that a packet accepted for forwarding is finally sent or dropped.
fn expire_buffered_packets(station: &mut Station, now: Now) {
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

/// Returns a reception time, from which wrapped timestamps are extended.
fn reception() -> Tai {
    TimestampIts(650_000_012_345).tai()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mutator;

    /// A small part of the binary's runs, in every test run.
    #[test]
    fn holds_all_invariants_in_some_hundred_runs() {
        for target in TARGETS {
            let mut mutator = Mutator::new((target.seeds)(), 42);
            for _ in 0..600 / target.divisor {
                (target.run)(mutator.next_input());
            }
        }
    }

    #[test]
    fn accepts_every_seed() {
        for target in TARGETS {
            let seeds = (target.seeds)();
            assert!(!seeds.is_empty(), "{}", target.name);
            for seed in seeds {
                (target.run)(&seed);
            }
        }
    }
}
