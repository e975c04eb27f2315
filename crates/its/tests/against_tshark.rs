//! tshark as an oracle: it decodes the same packets and CAMs to the same values, and reports no error in ours.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "tests may panic, print and read files"
)]

mod capture;
mod rich;
mod world;

use std::{path::Path, process::Command, time::Duration};

use bytes::Bytes;
use serde_json::{Map, Value};
use viaduct_its::{
    Destination, Ego, Frame, SendRequest, Station, StationSettings,
    access::MacAddress,
    btp::{BtpHeader, BtpKind},
    decode_frame,
    facilities::{
        ConfidenceEllipse, Message, MessageKind,
        cam::{CamInput, LowFrequency, PathPoint, build},
        denm,
    },
    geonet::{self, Area, GucHeader, Mib, Packet, PacketBody, Shape, TrafficClass},
};
use viaduct_units::{
    Degrees, DegreesPerSecond, Metres, MetresPerSecond, MetresPerSecondSquared, Mono, Now, Position, StationId,
    StationType, TimestampIts,
};

#[test]
fn captured_cams_have_the_same_values() {
    let Some(path) = capture::data("v2x/cam_cpm_r2_unsecured.pcap") else { return };
    let Some(packets) = dissect(&path) else { return };
    let Some(frames) = capture::sample() else { return };
    let mut compared = 0;
    for (captured, packet) in frames.iter().zip(&packets) {
        let Ok(Frame::Message(received)) = decode_frame(captured.reception, &captured.frame) else { panic!() };
        if received.kind == MessageKind::Cam {
            let mut json = Vec::new();
            received.message.write_json(&mut json);
            compared += compare_message(&json, "cam", layer(packet, "its"));
        }
    }
    // 367 messages of 25 values and more.
    assert!(compared >= 367 * 25, "{compared} values");
    println!("{compared} values equal");
}

#[test]
fn our_cam_is_dissected_with_its_values() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cam.pcap");
    let cam = build(&input());
    let payload = viaduct_etsi::cam_ts103900_v231::encode(&cam).unwrap();
    let payload_octets = payload.len();
    std::fs::write(&path, pcap(&[framed(MessageKind::Cam, payload)])).unwrap();
    let Some(packets) = dissect(&path) else { return };
    let [packet] = packets.as_slice() else { panic!("{} packets", packets.len()) };
    assert_clean(packet);

    let mut json = Vec::new();
    viaduct_etsi::cam_ts103900_v231::write_json(&cam, &mut json);
    assert!(compare_message(&json, "cam", layer(packet, "its")) >= 35);
    let gnw = layer(packet, "gnw");
    for (name, expected) in [
        ("geonw.src_pos.lat", "450147653"),
        ("geonw.src_pos.long", "-75684908"),
        ("geonw.src_pos.speed", "1389"),
        ("geonw.src_pos.hdg", "2705"),
        ("geonw.src_pos.pai", "1"),
        ("geonw.src_pos.addr.mid", "02:00:00:00:10:01"),
        ("geonw.src_pos.addr.type", "5"),
        ("geonw.ch.mhl", "1"),
        ("geonw.bh.rhl", "1"),
        ("geonw.ch.flags.mob", "1"),
        ("geonw.bh.version", "1"),
        ("geonw.bh.nh", "1"),
        // A CAM lives for one second: multiplier 1, base 1.
        ("geonw.bh.lt", "5"),
        ("geonw.ch.nh", "2"),
        ("geonw.ch.htype", "0x50"),
        ("geonw.ch.tc.buffer", "0"),
        ("geonw.ch.tc.id", "2"),
        ("geonw.ch.plength", &(payload_octets + 4).to_string()),
    ] {
        assert_eq!(find(gnw, name), Some(expected), "{name}");
    }
    assert_eq!(find(layer(packet, "btpb"), "btpb.dstport"), Some("2001"));
}

/// tshark 4.0 supports release 1: without additions of release 2 it reports no error, and it uses the names of
/// release 1.
#[test]
fn our_denm_is_dissected_with_its_values() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("denm.pcap");
    let mut event = rich::denm();
    let situation = event.situation.as_mut().unwrap();
    situation.linked_events.clear();
    situation.perceived = None;
    let payload = viaduct_etsi::denm_ts103831_v231::encode(&denm::build(&event)).unwrap();
    std::fs::write(&path, pcap(&[framed(MessageKind::Denm, payload.clone())])).unwrap();
    let Some(packets) = dissect(&path) else { return };
    let [packet] = packets.as_slice() else { panic!("{} packets", packets.len()) };
    assert_clean(packet);
    assert_eq!(find(layer(packet, "btpb"), "btpb.dstport"), Some("2002"));
    assert!(compare_message(&json_of(MessageKind::Denm, &payload), "denm", layer(packet, "its")) >= 45);
}

/// The random messages of the test data without additions of release 2, with all containers that tshark 4.0 supports.
#[test]
fn each_container_is_dissected_with_its_values() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("containers.pcap");
    let messages: Vec<(MessageKind, Vec<u8>)> = containers().into_iter().collect();
    let frames: Vec<_> = messages.iter().map(|(kind, payload)| framed(*kind, payload.clone())).collect();
    std::fs::write(&path, pcap(&frames)).unwrap();
    let Some(packets) = dissect(&path) else { return };
    assert_eq!(packets.len(), messages.len());
    let mut compared = 0;
    for ((kind, payload), packet) in messages.iter().zip(&packets) {
        assert_clean(packet);
        compared += compare_message(&json_of(*kind, payload), kind.label(), layer(packet, "its"));
    }
    println!("{compared} values of {} messages equal", messages.len());
    assert!(compared >= 200, "{compared}");
}

fn containers() -> Vec<(MessageKind, Vec<u8>)> {
    let from = |kind: MessageKind, json: &Value| {
        let message = Message::from_json(kind, json.to_string().as_bytes()).unwrap();
        (kind, message.encode().unwrap())
    };
    let read = |name: &str| -> Value {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/its").join(name);
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    };
    let without = |value: &mut Value, names: &[&str]| {
        let members = value.as_object_mut().unwrap();
        names.iter().for_each(|name| assert!(members.remove(*name).is_some(), "{name}"));
    };
    let mut messages = Vec::new();
    let mut cam = read("cam_full.json");
    without(&mut cam["cam"]["camParameters"], &["extensionContainers"]);
    messages.push(from(MessageKind::Cam, &cam));
    messages.push((MessageKind::Cam, Message::Cam(Box::new(build(&rich::cam()))).encode().unwrap()));
    let mut denm = read("denm_full.json");
    let body = &mut denm["denm"];
    without(&mut body["situation"], &["linkedDenms", "eventEnd", "eventEndFactor", "perceivedEvent"]);
    let additions = ["lanePositions", "occupiedLanes", "linkedIvims", "linkedMapems"];
    without(&mut body["location"], &additions);
    without(&mut body["location"], &["detectionZonesToSpecifiedEventPoint", "predictedPaths"]);
    without(&mut body["alacarte"], &["roadConfiguration", "preCrash"]);
    // tshark 4.0 treats the size of a UTF8String as PER-visible, which it is not (X.691, 30.6).
    without(&mut body["alacarte"]["stationaryVehicle"]["carryingDangerousGoods"], &["companyName"]);
    messages.push(from(MessageKind::Denm, &denm));
    messages
}

fn json_of(kind: MessageKind, payload: &[u8]) -> Vec<u8> {
    let mut json = Vec::new();
    Message::decode(kind, payload).unwrap().write_json(&mut json);
    json
}

#[test]
fn our_beacon_is_dissected_without_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("beacon.pcap");
    let mut station = station();
    let now = now();
    let due = station.poll_timeout().unwrap();
    station.handle_timeout(now.plus(due.since(now.mono)));
    std::fs::write(&path, pcap(&[station.poll_transmit().unwrap()])).unwrap();
    let Some(packets) = dissect(&path) else { return };
    assert_clean(&packets[0]);
    assert_eq!(find(layer(&packets[0], "gnw"), "geonw.ch.htype"), Some("0x10"));
}

/// Returns one frame of each header type, as sent by stations along a road.
fn multi_hop_frames() -> Vec<Bytes> {
    let places: Vec<_> = (0..3).map(|number| world::at(f64::from(number) * 400.0, 0.0)).collect();
    let mut world = world::World::new(500.0, Mib::default(), &places);
    world.meet();
    let (a, b, azimuth) = (Metres(600.0), Metres(250.0), Degrees(77.0));
    let around = |shape| Area { centre: world::at(400.0, 20.0), shape };
    let unknown = world.nodes[2].station.address();
    let requests = [
        SendRequest { traffic_class: TrafficClass(0xC5), ..world::request(Destination::Hops(7)) },
        SendRequest { btp: BtpKind::A { source_port: 60_123 }, ..world::request(Destination::SingleHop) },
        SendRequest {
            btp: BtpKind::B { destination_port_info: 513 },
            ..world::request(Destination::Area(around(Shape::Circle { radius: Metres(900.0) })))
        },
        world::request(Destination::Area(around(Shape::Rectangle { a, b, azimuth }))),
        world::request(Destination::AnyIn(around(Shape::Ellipse { a, b, azimuth }))),
        world::request(Destination::Station(unknown)),
    ];
    for request in requests {
        world.send(0, &request);
        world.run(Duration::from_millis(500));
    }
    world.sent.into_iter().map(|(_, frame)| frame).collect()
}

#[test]
fn each_header_type_is_dissected_with_the_parsed_fields() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("types.pcap");
    let frames = multi_hop_frames();
    std::fs::write(&path, pcap(&frames)).unwrap();
    let Some(packets) = dissect(&path) else { return };
    assert_eq!(packets.len(), frames.len());
    let mut types = std::collections::BTreeSet::new();
    let (mut compared, mut different) = (0, Vec::new());
    for (frame, packet) in frames.iter().zip(&packets) {
        let parsed = geonet::parse(&frame[14..], world::start().tai).unwrap();
        for (layer_name, name, expected) in fields(&parsed) {
            let found = find(layer(packet, layer_name), name);
            if found != Some(expected.as_str()) {
                different.push(format!("{name} of {:?}: {expected} and {found:?}", parsed.common.header_type));
            }
            compared += 1;
        }
        assert_eq!(find(layer(packet, "gnw"), "geonw.ch.htype"), Some(format!("0x{:02x}", frame[19]).as_str()));
        types.insert(format!("{:?}", parsed.common.header_type));
    }
    assert!(different.is_empty(), "{different:#?}");
    println!("{compared} fields of {} frames equal: {types:?}", frames.len());
    assert!(types.len() >= 9, "{types:?}");
    for packet in &packets {
        assert_source_position(layer(packet, "gnw"));
    }
    for (header_type, values) in EXPECTED {
        let packet = packets.iter().find(|packet| find(layer(packet, "gnw"), "geonw.ch.htype") == Some(header_type));
        for (layer_name, name, expected) in *values {
            let found = find(layer(packet.unwrap(), layer_name), name);
            assert_eq!(found, Some(*expected), "{name} of {header_type}");
        }
    }
}

/// Checks that the source of a packet has the position of its station: station n stands n times 400 m along the road.
fn assert_source_position(gnw: &Map<String, Value>) {
    let number: u8 = find(gnw, "geonw.src_pos.addr.mid").unwrap().rsplit(':').next().unwrap().parse().unwrap();
    let place = world::at(f64::from(number) * 400.0, 0.0);
    for (name, degrees) in [("geonw.src_pos.lat", place.latitude), ("geonw.src_pos.long", place.longitude)] {
        assert_eq!(find(gnw, name), Some(format!("{:.0}", degrees.value() * 1e7).as_str()), "{name} of {number}");
    }
}

type ExpectedFields = (&'static str, &'static [(&'static str, &'static str, &'static str)]);

/// Expected fields of the first packet of each header type of [`multi_hop_frames`], as sent by its source. Each has a
/// lifetime of one minute (multiplier 6, base 2) and the hop limit of its request, or 10.
const EXPECTED: &[ExpectedFields] = &[
    (
        "0x51",
        &[
            ("gnw", "geonw.bh.version", "1"),
            ("gnw", "geonw.bh.nh", "1"),
            ("gnw", "geonw.bh.lt", "26"),
            ("gnw", "geonw.bh.rhl", "7"),
            ("gnw", "geonw.ch.nh", "2"),
            ("gnw", "geonw.ch.mhl", "7"),
            ("gnw", "geonw.ch.tc.buffer", "1"),
            ("gnw", "geonw.ch.tc.offload", "1"),
            ("gnw", "geonw.ch.tc.id", "5"),
        ],
    ),
    (
        "0x50",
        &[
            ("gnw", "geonw.ch.nh", "1"),
            ("gnw", "geonw.bh.rhl", "1"),
            ("gnw", "geonw.ch.mhl", "1"),
            ("btpa", "btpa.srcport", "60123"),
        ],
    ),
    (
        "0x40",
        &[
            ("gnw", "geonw.gxc.radius", "900"),
            ("gnw", "geonw.bh.rhl", "10"),
            ("gnw", "geonw.ch.mhl", "10"),
            ("btpb", "btpb.dstportinf", "0x0201"),
        ],
    ),
    (
        "0x41",
        &[
            ("gnw", "geonw.gxc.distancea", "600"),
            ("gnw", "geonw.gxc.distanceb", "250"),
            ("gnw", "geonw.gxc.angle", "77"),
        ],
    ),
    (
        "0x32",
        &[
            ("gnw", "geonw.gxc.distancea", "600"),
            ("gnw", "geonw.gxc.distanceb", "250"),
            ("gnw", "geonw.gxc.angle", "77"),
        ],
    ),
    ("0x20", &[("gnw", "geonw.dst_pos.addr.mid", "02:00:00:00:00:02")]),
    ("0x60", &[("gnw", "geonw.ls_req.addr.mid", "02:00:00:00:00:02")]),
];

type Field = (&'static str, &'static str, String);

/// Returns the fields of a parsed packet by tshark's names.
fn fields(packet: &Packet<'_>) -> Vec<Field> {
    let (basic, common) = (&packet.basic, &packet.common);
    let gnw = |name, value: String| ("gnw", name, value);
    let mut fields = vec![
        gnw("geonw.bh.version", basic.version.to_string()),
        gnw("geonw.bh.lt", basic.lifetime.0.to_string()),
        gnw("geonw.bh.rhl", basic.remaining_hop_limit.to_string()),
        gnw("geonw.ch.plength", common.payload_length.to_string()),
        gnw("geonw.ch.mhl", common.maximum_hop_limit.to_string()),
        gnw("geonw.ch.flags.mob", u8::from(common.mobile).to_string()),
        gnw("geonw.ch.tc.buffer", u8::from(common.traffic_class.store_carry_forward()).to_string()),
        gnw("geonw.ch.tc.id", common.traffic_class.id().to_string()),
    ];
    fields.extend(packet.sequence_number().map(|number| gnw("geonw.seq_num", format!("0x{:04x}", number.0))));
    fields.extend(source_fields(packet));
    fields.extend(body_fields(packet));
    fields.extend(btp_fields(packet));
    fields
}

fn source_fields(packet: &Packet<'_>) -> Vec<Field> {
    let source = packet.source();
    let at = source.position.unwrap();
    let tenths = |degrees: Degrees| format!("{:.0}", degrees.value() * 1e7);
    [
        ("geonw.src_pos.addr.mid", source.address.mid().to_string()),
        ("geonw.src_pos.addr.type", source.address.station_type().to_string()),
        ("geonw.src_pos.addr.manual", u8::from(source.address.is_manual()).to_string()),
        ("geonw.src_pos.tst", source.timestamp.timestamp_its().geonet().to_string()),
        ("geonw.src_pos.lat", tenths(at.latitude)),
        ("geonw.src_pos.long", tenths(at.longitude)),
        ("geonw.src_pos.pai", u8::from(source.position_accurate).to_string()),
        ("geonw.src_pos.speed", format!("{:.0}", source.speed.value() * 100.0)),
    ]
    .map(|(name, value)| ("gnw", name, value))
    .into()
}

fn body_fields(packet: &Packet<'_>) -> Vec<Field> {
    match &packet.body {
        PacketBody::GeoBroadcast { header, .. } | PacketBody::GeoAnycast { header, .. } => area_fields(&header.area),
        PacketBody::GeoUnicast { header, .. } | PacketBody::LocationReply(header) => destination_fields(header),
        PacketBody::LocationRequest(header) => vec![
            ("gnw", "geonw.ls_req.addr.mid", header.sought.mid().to_string()),
            ("gnw", "geonw.ls_req.addr.type", header.sought.station_type().to_string()),
        ],
        PacketBody::Beacon(_) | PacketBody::SingleHopBroadcast { .. } | PacketBody::MultiHopBroadcast { .. } => vec![],
    }
}

fn area_fields(area: &Area) -> Vec<Field> {
    let metres = |distance: Metres| format!("{:.0}", distance.value());
    let mut fields = vec![
        ("gnw", "geonw.gxc.latitude", format!("{:.0}", area.centre.latitude.value() * 1e7)),
        ("gnw", "geonw.gxc.longitude", format!("{:.0}", area.centre.longitude.value() * 1e7)),
    ];
    match area.shape {
        Shape::Circle { radius } => fields.push(("gnw", "geonw.gxc.radius", metres(radius))),
        Shape::Rectangle { a, b, azimuth } | Shape::Ellipse { a, b, azimuth } => fields.extend([
            ("gnw", "geonw.gxc.distancea", metres(a)),
            ("gnw", "geonw.gxc.distanceb", metres(b)),
            ("gnw", "geonw.gxc.angle", format!("{:.0}", azimuth.value())),
        ]),
    }
    fields
}

fn destination_fields(header: &GucHeader) -> Vec<Field> {
    let at = header.destination.position.unwrap();
    [
        ("geonw.dst_pos.addr.mid", header.destination.address.mid().to_string()),
        ("geonw.dst_pos.tst", header.destination.timestamp.timestamp_its().geonet().to_string()),
        ("geonw.dst_pos.lat", format!("{:.0}", at.latitude.value() * 1e7)),
        ("geonw.dst_pos.long", format!("{:.0}", at.longitude.value() * 1e7)),
    ]
    .map(|(name, value)| ("gnw", name, value))
    .into()
}

fn btp_fields(packet: &Packet<'_>) -> Vec<Field> {
    let Some((payload, _)) = packet.payload() else { return vec![] };
    match BtpHeader::parse(packet.common.next_header, payload).unwrap().0 {
        BtpHeader::A { destination_port, source_port } => vec![
            ("btpa", "btpa.dstport", destination_port.to_string()),
            ("btpa", "btpa.srcport", source_port.to_string()),
        ],
        BtpHeader::B { destination_port, destination_port_info } => vec![
            ("btpb", "btpb.dstport", destination_port.to_string()),
            ("btpb", "btpb.dstportinf", format!("0x{destination_port_info:04x}")),
        ],
    }
}

fn now() -> Now {
    Now { mono: Mono(Duration::from_secs(5)), tai: TimestampIts(650_000_012_345).tai() }
}

fn input() -> CamInput {
    let at = |latitude: f64, travel_time| PathPoint {
        position: Position::new(latitude, -7.568_490_8),
        altitude: Some(Metres(269.0)),
        travel_time,
    };
    let path_history = vec![at(45.014_665_3, Some(Duration::from_millis(500))), at(45.014_465_3, None)];
    CamInput {
        position: Some(Position::new(45.014_765_3, -7.568_490_8)),
        position_confidence: Some(ConfidenceEllipse::circle(Metres(1.5))),
        altitude: Some(Metres(269.8)),
        speed: Some(MetresPerSecond(13.89)),
        heading: Some(Degrees(270.5)),
        longitudinal_acceleration: Some(MetresPerSecondSquared(-0.3)),
        yaw_rate: Some(DegreesPerSecond(-1.25)),
        length: Some(Metres(4.5)),
        width: Some(Metres(1.8)),
        low_frequency: Some(LowFrequency { exterior_lights: 0xA0, path_history }),
        ..CamInput::new(StationId(0xFFFF_FFFE), now().tai)
    }
}

fn station() -> Station {
    let settings = StationSettings {
        link_address: MacAddress([2, 0, 0, 0, 0x10, 1]),
        station_type: StationType::PASSENGER_CAR,
        mobile: true,
        beacons: true,
    };
    let mut station = Station::new(settings, 7);
    let input = input();
    let ego = Ego {
        time: input.generation,
        position: input.position.unwrap(),
        position_accurate: true,
        speed: input.speed.unwrap(),
        heading: input.heading,
    };
    station.set_ego(now(), ego);
    station
}

fn framed(kind: MessageKind, payload: Vec<u8>) -> Vec<u8> {
    let mut station = station();
    station.send(now(), &SendRequest::single_hop(kind, Bytes::from(payload))).unwrap();
    station.poll_transmit().unwrap()
}

/// Returns a capture file (link type Ethernet).
fn pcap(frames: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let mut file = words(&[0xA1B2_C3D4, 0x0004_0002, 0, 0, 65_536, 1]);
    for frame in frames {
        let length = u32::try_from(frame.as_ref().len()).unwrap();
        file.extend(words(&[0, 0, length, length]));
        file.extend_from_slice(frame.as_ref());
    }
    file
}

/// Returns tshark's dissection of a capture file. If there is no tshark, prints the reason and returns `None`.
fn dissect(path: &Path) -> Option<Vec<Value>> {
    let output = match Command::new("tshark").args(["-T", "json", "-r"]).arg(path).output() {
        Ok(output) => output,
        Err(error) => {
            capture::skipped(&format!("tshark cannot be run ({error})"));
            return None;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).expect("tshark writes JSON"))
}

fn layer<'a>(packet: &'a Value, name: &str) -> &'a Map<String, Value> {
    packet["_source"]["layers"][name].as_object().unwrap_or_else(|| panic!("no layer {name} in {packet}"))
}

fn assert_clean(packet: &Value) {
    let text = packet.to_string();
    assert!(!text.contains("_ws.malformed") && !text.contains("_ws.expert"), "{text}");
}

/// Returns the first value of that name at any depth.
fn find<'a>(tree: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    tree.get(name)
        .and_then(Value::as_str)
        .or_else(|| tree.values().filter_map(Value::as_object).find_map(|below| find(below, name)))
}

/// Compares our JSON with tshark's tree. Returns the number of compared values.
fn compare_message(ours: &[u8], body: &str, theirs: &Map<String, Value>) -> usize {
    let ours: Value = serde_json::from_slice(ours).unwrap();
    let header = theirs["its.ItsPduHeader_element"].as_object().unwrap();
    let (_, message) = theirs.iter().find(|(name, _)| name.starts_with(&format!("{body}."))).unwrap();
    compare(ours["header"].as_object().unwrap(), header)
        + compare(ours[body].as_object().unwrap(), message.as_object().unwrap())
}

fn compare(ours: &Map<String, Value>, theirs: &Map<String, Value>) -> usize {
    ours.iter().map(|(name, value)| compare_member(&release_1(name, theirs), value, theirs)).sum()
}

fn compare_member(name: &str, ours: &Value, theirs: &Map<String, Value>) -> usize {
    match ours {
        Value::Object(members) if name == "ccAndScc" => compare_cause(members, theirs),
        Value::Object(members) => match bits(members) {
            Some(hex) => compare_leaf(name, &hex, leaf_of(name, theirs)),
            None => compare(members, subtree(name, theirs)),
        },
        Value::Array(elements) => compare_items(name, elements, subtree(name, theirs)),
        leaf => compare_leaf(name, leaf, leaf_of(name, theirs)),
    }
}

fn compare_items(name: &str, elements: &[Value], theirs: &Map<String, Value>) -> usize {
    let items: Vec<_> = theirs.iter().filter(|(key, _)| key.starts_with("Item ")).collect();
    assert_eq!(items.len(), elements.len(), "{name}");
    let pairs = elements.iter().zip(items);
    pairs
        .map(|(element, (_, item))| match element {
            Value::Object(members) => compare(members, single(item)),
            Value::Array(below) => compare_items(name, below, single(item)),
            leaf => compare_leaf(name, leaf, item.as_object().unwrap().values().find_map(Value::as_str).unwrap()),
        })
        .sum()
}

fn compare_leaf(name: &str, ours: &Value, theirs: &str) -> usize {
    assert!(same(name, ours, theirs), "{name}: {ours} and {theirs}");
    1
}

/// Compares a cause code. Release 1 has two numbers; in release 2 the name of the cause ends with its number.
fn compare_cause(ours: &Map<String, Value>, theirs: &Map<String, Value>) -> usize {
    let (name, sub_cause) = ours.iter().next().unwrap();
    let number = name.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    assert_eq!(leaf_of("causeCode", theirs), number, "{name}");
    compare_leaf(name, sub_cause, leaf_of("subCauseCode", theirs)) + 1
}

/// Returns the octets of a bit string of any length.
fn bits(members: &Map<String, Value>) -> Option<Value> {
    members.get("value").filter(|_| members.len() == 2 && members.contains_key("length")).cloned()
}

/// Returns the name in release 1, which tshark 4.0 uses, of a member of release 2.
fn release_1(name: &str, around: &Map<String, Value>) -> String {
    let has = |start: &str| around.keys().any(|key| base_name(key).starts_with(start));
    let kind = ["longitudinal", "lateral", "vertical"].into_iter().find(|kind| has(&format!("{kind}Acceleration")));
    match (name, kind) {
        ("awarenessDistance", _) => "relevanceDistance".to_owned(),
        ("trafficDirection", _) => "relevanceTrafficDirection".to_owned(),
        ("eventZone", _) => "eventHistory".to_owned(),
        ("detectionZonesToEventPosition", _) => "traces".to_owned(),
        ("semiMajorAxisLength", _) => "semiMajorConfidence".to_owned(),
        ("semiMinorAxisLength", _) => "semiMinorConfidence".to_owned(),
        ("semiMajorAxisOrientation", _) => "semiMajorOrientation".to_owned(),
        ("value", Some(kind)) => format!("{kind}AccelerationValue"),
        ("confidence", Some(kind)) => format!("{kind}AccelerationConfidence"),
        ("value", None) if has("headingValue") => "headingValue".to_owned(),
        ("confidence", None) if has("headingValue") => "headingConfidence".to_owned(),
        _ => name.to_owned(),
    }
}

/// Returns tshark's name of a field without protocol and suffix.
fn base_name(key: &str) -> &str {
    let name = key.rsplit_once('.').map_or(key, |(_, name)| name);
    name.strip_suffix("_element").or_else(|| name.strip_suffix("_tree")).unwrap_or(name)
}

fn subtree<'a>(name: &str, theirs: &'a Map<String, Value>) -> &'a Map<String, Value> {
    let mut found = theirs
        .iter()
        .filter(|(key, _)| base_name(key).eq_ignore_ascii_case(name))
        .filter_map(|(_, value)| value.as_object());
    found.next().unwrap_or_else(|| panic!("{name} is not in {theirs:?}"))
}

fn single(item: &Value) -> &Map<String, Value> {
    let mut elements = item.as_object().unwrap().values().filter_map(Value::as_object);
    elements.next().expect("an item has an element")
}

fn leaf_of<'a>(name: &str, theirs: &'a Map<String, Value>) -> &'a str {
    let mut found = theirs
        .iter()
        .filter(|(key, _)| base_name(key).eq_ignore_ascii_case(name))
        .filter_map(|(_, value)| value.as_str());
    found.next().unwrap_or_else(|| panic!("{name} is not in {theirs:?}"))
}

/// Returns `true` if the values are equal. tshark shows the number of an enumeration and the octets of a bit string.
fn same(name: &str, ours: &Value, theirs: &str) -> bool {
    match (name, ours) {
        (_, Value::Number(number)) => number.to_string() == theirs,
        (_, Value::Bool(is_set)) => theirs == if *is_set { "1" } else { "0" },
        (
            "exteriorLights"
            | "accelerationControl"
            | "lightBarSirenInUse"
            | "positionOfOccupants"
            | "drivingLaneStatus"
            | "energyStorageType",
            Value::String(hex),
        ) => hex.eq_ignore_ascii_case(&theirs.replace(':', "")),
        (_, Value::String(name_of_value)) => {
            let number = match (name, name_of_value.as_str()) {
                ("altitudeConfidence", "alt-000-01") => "0",
                ("altitudeConfidence", "alt-002-00") => "7",
                ("altitudeConfidence", "alt-005-00") => "8",
                ("altitudeConfidence", "unavailable") => "15",
                ("yawRateConfidence", "unavailable") => "8",
                ("curvatureConfidence", "unavailable") => "7",
                ("vehicleLengthConfidenceIndication", "unavailable") => "4",
                ("driveDirection" | "curvatureCalculationMode", "unavailable") => "2",
                ("driveDirection", "backward") => "1",
                ("driveDirection", "forward") | ("vehicleRole", "default") => "0",
                ("relevanceDistance", "lessThan1000m") => "4",
                ("relevanceDistance", "over10km") => "7",
                ("relevanceTrafficDirection", "allTrafficDirections") => "0",
                ("relevanceTrafficDirection", "oppositeToReferenceDirection") => "3",
                ("roadType", "urban-NoStructuralSeparationToOppositeLanes") => "0",
                ("roadType", "nonUrban-WithStructuralSeparationToOppositeLanes") => "3",
                ("termination", "isCancellation") => "0",
                ("curvatureConfidence", "onePerMeter-0-00002") | ("yawRateConfidence", "degSec-000-01") => "0",
                ("yawRateConfidence", "degSec-000-05")
                | ("vehicleLengthConfidenceIndication", "trailerPresentWithKnownLength") => "1",
                ("curvatureConfidence", "onePerMeter-0-0005") => "2",
                ("curvatureCalculationMode", "yawRateUsed") => "0",
                ("vehicleRole", "emergency") => "6",
                ("innerhardShoulderStatus" | "outerhardShoulderStatus", "availableForStopping") => "0",
                ("innerhardShoulderStatus" | "outerhardShoulderStatus", "closed") => "1",
                ("innerhardShoulderStatus" | "outerhardShoulderStatus", "availableForDriving") => "2",
                ("requestResponseIndication", "response") => "1",
                ("positioningSolution", "dGNSS") => "2",
                ("trafficFlowRule", "passToLeftOrRight") => "4",
                ("dangerousGoodsType", "explosives3") => "2",
                ("stationarySince", "lessThan15Minutes") => "2",
                ("emergencyActionCode" | "phoneNumber" | "vDS" | "wMInumber", text) => text,
                other => panic!("{other:?} is not in this test's table"),
            };
            number == theirs
        }
        _ => false,
    }
}
