//! tshark as an oracle: it decodes the same CAMs to the same values, and finds nothing wrong with ours.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "tests may panic, print and read files"
)]

mod capture;

use std::{path::Path, process::Command, time::Duration};

use bytes::Bytes;
use serde_json::{Map, Value};
use viaduct_its::{
    Ego, Frame, SendRequest, Station, StationSettings,
    access::MacAddress,
    decode_frame,
    facilities::{
        ConfidenceEllipse, MessageKind,
        cam::{CamInput, LowFrequency, PathPoint, build},
    },
};
use viaduct_units::{
    Degrees, DegreesPerSecond, Metres, MetresPerSecond, MetresPerSecondSquared, Mono, Now, Position, TimestampIts,
};

#[test]
fn every_captured_cam_has_the_same_values() {
    let Some(path) = capture::data("v2x/cam_cpm_r2_unsecured.pcap") else { return };
    let Some(packets) = dissect(&path) else { return };
    let Some(frames) = capture::sample() else { return };
    let mut compared = 0;
    for (captured, packet) in frames.iter().zip(&packets) {
        let Ok(Frame::Message(received)) = decode_frame(captured.reception, &captured.frame) else { panic!() };
        if received.kind == MessageKind::Cam {
            let mut json = Vec::new();
            received.message.write_json(&mut json);
            compared += compare_cam(&json, layer(packet, "its"));
        }
    }
    // 367 messages of 25 values and more.
    assert!(compared >= 367 * 25, "{compared} values");
    println!("{compared} values equal");
}

#[test]
fn our_cam_is_dissected_with_the_values_that_we_set() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cam.pcap");
    let cam = build(&input());
    let payload = viaduct_etsi::cam_ts103900_v231::encode(&cam).unwrap();
    std::fs::write(&path, pcap(&framed(payload))).unwrap();
    let Some(packets) = dissect(&path) else { return };
    let [packet] = packets.as_slice() else { panic!("{} packets", packets.len()) };
    assert_clean(packet);

    let mut json = Vec::new();
    viaduct_etsi::cam_ts103900_v231::write_json(&cam, &mut json);
    assert!(compare_cam(&json, layer(packet, "its")) >= 35);
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
    ] {
        assert_eq!(find(gnw, name), Some(expected), "{name}");
    }
    assert_eq!(find(layer(packet, "btpb"), "btpb.dstport"), Some("2001"));
}

#[test]
fn our_beacon_is_dissected_without_a_complaint() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("beacon.pcap");
    let mut station = station();
    let now = now();
    let due = station.poll_timeout().unwrap();
    station.handle_timeout(now.plus(due.since(now.mono)));
    std::fs::write(&path, pcap(&station.poll_transmit().unwrap())).unwrap();
    let Some(packets) = dissect(&path) else { return };
    assert_clean(&packets[0]);
    assert_eq!(find(layer(&packets[0], "gnw"), "geonw.ch.htype"), Some("0x10"));
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
        ..CamInput::new(0xFFFF_FFFE, now().tai)
    }
}

fn station() -> Station {
    let settings = StationSettings {
        link_address: MacAddress([2, 0, 0, 0, 0x10, 1]),
        station_type: 5,
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

fn framed(payload: Vec<u8>) -> Vec<u8> {
    let mut station = station();
    station.send(now(), &SendRequest::single_hop(MessageKind::Cam, Bytes::from(payload))).unwrap();
    station.poll_transmit().unwrap()
}

/// A capture file (link type Ethernet) of one frame.
fn pcap(frame: &[u8]) -> Vec<u8> {
    let length = u32::try_from(frame.len()).unwrap();
    let mut file = Vec::new();
    for word in [0xA1B2_C3D4_u32, 0x0004_0002, 0, 0, 65_536, 1, 0, 0, length, length] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    file.extend_from_slice(frame);
    file
}

/// What tshark makes of a capture file; `None`, with the reason printed, where there is no tshark.
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

/// The first value of that name, at any depth.
fn find<'a>(tree: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    tree.get(name)
        .and_then(Value::as_str)
        .or_else(|| tree.values().filter_map(Value::as_object).find_map(|below| find(below, name)))
}

/// Compares our JSON with tshark's tree; returns how many values were compared.
fn compare_cam(ours: &[u8], theirs: &Map<String, Value>) -> usize {
    let ours: Value = serde_json::from_slice(ours).unwrap();
    let header = theirs["its.ItsPduHeader_element"].as_object().unwrap();
    let cam = theirs["cam.CoopAwareness_element"].as_object().unwrap();
    compare(ours["header"].as_object().unwrap(), header) + compare(ours["cam"].as_object().unwrap(), cam)
}

fn compare(ours: &Map<String, Value>, theirs: &Map<String, Value>) -> usize {
    ours.iter().map(|(name, value)| compare_member(&release_1(name, theirs), value, theirs)).sum()
}

fn compare_member(name: &str, ours: &Value, theirs: &Map<String, Value>) -> usize {
    match ours {
        Value::Object(members) => compare(members, subtree(name, theirs)),
        Value::Array(elements) => {
            let items = subtree(name, theirs);
            let items: Vec<_> = items.iter().filter(|(key, _)| key.starts_with("Item ")).collect();
            assert_eq!(items.len(), elements.len(), "{name}");
            let pairs = elements.iter().zip(items);
            pairs.map(|(element, (_, item))| compare(element.as_object().unwrap(), single(item))).sum()
        }
        leaf => {
            let found = leaf_of(name, theirs);
            assert!(same(name, leaf, found), "{name}: {leaf} and {found}");
            1
        }
    }
}

/// Release 1's name, which tshark 4.0 knows, of a member of release 2.
fn release_1(name: &str, around: &Map<String, Value>) -> String {
    let kind = ["longitudinal", "lateral", "vertical"]
        .into_iter()
        .find(|kind| around.keys().any(|key| base_name(key).starts_with(&format!("{kind}Acceleration"))));
    match (name, kind) {
        ("messageId", _) => "messageID".to_owned(),
        ("stationId", _) => "stationID".to_owned(),
        ("semiMajorAxisLength", _) => "semiMajorConfidence".to_owned(),
        ("semiMinorAxisLength", _) => "semiMinorConfidence".to_owned(),
        ("semiMajorAxisOrientation", _) => "semiMajorOrientation".to_owned(),
        ("value", Some(kind)) => format!("{kind}AccelerationValue"),
        ("confidence", Some(kind)) => format!("{kind}AccelerationConfidence"),
        _ => name.to_owned(),
    }
}

/// tshark's name of a field, without protocol and suffix.
fn base_name(key: &str) -> &str {
    let name = key.rsplit_once('.').map_or(key, |(_, name)| name);
    name.strip_suffix("_element").or_else(|| name.strip_suffix("_tree")).unwrap_or(name)
}

fn subtree<'a>(name: &str, theirs: &'a Map<String, Value>) -> &'a Map<String, Value> {
    let mut found = theirs.iter().filter(|(key, _)| base_name(key) == name).filter_map(|(_, value)| value.as_object());
    found.next().unwrap_or_else(|| panic!("{name} is not in {theirs:?}"))
}

fn single(item: &Value) -> &Map<String, Value> {
    let mut elements = item.as_object().unwrap().values().filter_map(Value::as_object);
    elements.next().expect("an item holds an element")
}

fn leaf_of<'a>(name: &str, theirs: &'a Map<String, Value>) -> &'a str {
    let mut found = theirs.iter().filter(|(key, _)| base_name(key) == name).filter_map(|(_, value)| value.as_str());
    found.next().unwrap_or_else(|| panic!("{name} is not in {theirs:?}"))
}

/// tshark shows the number of an enumeration and the octets of a bit string.
fn same(name: &str, ours: &Value, theirs: &str) -> bool {
    match (name, ours) {
        (_, Value::Number(number)) => number.to_string() == theirs,
        ("exteriorLights", Value::String(hex)) => hex.eq_ignore_ascii_case(&theirs.replace(':', "")),
        (_, Value::String(name_of_value)) => {
            let number = match (name, name_of_value.as_str()) {
                ("altitudeConfidence", "unavailable") => "15",
                ("yawRateConfidence", "unavailable") => "8",
                ("curvatureConfidence", "unavailable") => "7",
                ("vehicleLengthConfidenceIndication", "unavailable") => "4",
                ("driveDirection" | "curvatureCalculationMode", "unavailable") => "2",
                ("driveDirection", "backward") => "1",
                ("driveDirection", "forward") | ("vehicleRole", "default") => "0",
                other => panic!("{other:?} is not in the table of this test"),
            };
            number == theirs
        }
        _ => false,
    }
}
