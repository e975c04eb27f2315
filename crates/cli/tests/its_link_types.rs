//! `viaduct its decode` reads each supported link type, plain and compressed, as tshark does.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "tests may panic and print")]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use flate2::{Compression, write::GzEncoder};
use serde_json::Value;

/// Source address of the committed CAM.
const SOURCE: [u8; 6] = [0x48, 0xA9, 0x8A, 0x90, 0x82, 0x7F];
const BROADCAST: [u8; 6] = [0xFF; 6];
const SNAP: [u8; 6] = [0xAA, 0xAA, 3, 0, 0, 0];
const GEONETWORKING: [u8; 2] = [0x89, 0x47];

/// A capture with one CAM, and the members of a tshark field that has the source address.
struct Sample {
    name: &'static str,
    link_type: u16,
    record: Vec<u8>,
    source_field: &'static str,
}

/// Returns the GeoNetworking packet of the committed CAM.
fn packet() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/its/cam.hex");
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let digits: String = lines.flat_map(str::chars).filter(char::is_ascii_hexdigit).collect();
    let octets = (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap());
    octets.skip(14).collect()
}

/// Returns the CAM in a frame of each link type.
fn samples() -> Vec<Sample> {
    let packet = packet();
    let ethernet = |tags: &[u8]| [&BROADCAST[..], &SOURCE, tags, &GEONETWORKING, &packet].concat();
    // QoS data outside the context of a BSS, as in ITS-G5: receiver, sender, wildcard BSSID, sequence, QoS control.
    let wireless =
        [&[0x88, 0, 0, 0][..], &BROADCAST, &SOURCE, &BROADCAST, &[0x10, 0], &[0x20, 0], &SNAP, &GEONETWORKING, &packet]
            .concat();
    let plain_data = [&[0x08, 0, 0, 0][..], &wireless[4..24], &wireless[26..]].concat();
    // Time (8 octets) and flags. The frame check sequence is wrong here, and the flags do not mark it as wrong.
    let radiotap = [&[0, 0, 17, 0, 3, 0, 0, 0][..], &[0; 8], &[0x10], &wireless, &[0x12, 0x34, 0x56, 0x78]].concat();
    let cooked = [&[0, 1, 0, 1, 0, 6][..], &SOURCE, &[0, 0], &GEONETWORKING, &packet].concat();
    let cooked_2 = [&GEONETWORKING[..], &[0, 0, 0, 0, 0, 2, 0, 1, 1, 6], &SOURCE, &[0, 0], &packet].concat();
    let sample = |name, link_type, record, source_field| Sample { name, link_type, record, source_field };
    vec![
        sample("Ethernet", 1, ethernet(&[]), "eth.src"),
        sample("802.1Q", 1, ethernet(&[0x81, 0, 0x20, 5]), "eth.src"),
        sample("802.1ad", 1, ethernet(&[0x88, 0xA8, 0, 7, 0x81, 0, 0, 9]), "eth.src"),
        sample("IEEE 802.11 QoS data", 105, wireless, "wlan.sa"),
        sample("IEEE 802.11 data", 105, plain_data, "wlan.sa"),
        sample("radiotap", 127, radiotap, "wlan.sa"),
        sample("Linux cooked", 113, cooked, "sll.src.eth"),
        sample("Linux cooked v2", 276, cooked_2, "sll.src.eth"),
    ]
}

/// Returns a classic pcap file.
fn pcap(link_type: u16, records: &[&[u8]]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xA1B2_C3D4_u32, 0x0004_0002, 0, 0, 65_535, link_type.into()] {
        file.extend(word.to_le_bytes());
    }
    for record in records {
        let length = u32::try_from(record.len()).unwrap();
        for word in [1_726_061_434, 92_870, length, length] {
            file.extend(word.to_le_bytes());
        }
        file.extend_from_slice(record);
    }
    file
}

/// Returns a pcapng file: an interface for each sample, and a packet of each interface in the same order.
fn pcapng(samples: &[Sample]) -> Vec<u8> {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let mut file = words(&[0x0A0D_0D0A, 28, 0x1A2B_3C4D, 1, u32::MAX, u32::MAX, 28]);
    for sample in samples {
        file.extend(words(&[1, 20, sample.link_type.into(), 65_535, 20]));
    }
    for (interface, sample) in (0..).zip(samples) {
        let octets = u32::try_from(sample.record.len()).unwrap();
        let padded = sample.record.len().next_multiple_of(4);
        let length = u32::try_from(32 + padded).unwrap();
        file.extend(words(&[6, length, interface, 0x0006_21D4, 0x9D5B_4F6B, octets, octets]));
        file.extend_from_slice(&sample.record);
        file.resize(file.len() + padded - sample.record.len(), 0);
        file.extend(words(&[length]));
    }
    file
}

fn gzip(octets: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(octets).unwrap();
    encoder.finish().unwrap()
}

fn write(folder: &tempfile::TempDir, name: &str, octets: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, octets).unwrap();
    path
}

fn decode(capture: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_viaduct"));
    command.args(["its", "decode", "--json-lines"]).arg(capture).output().unwrap()
}

/// Returns the JSON lines of a capture in which no frame is dropped.
fn lines(capture: &Path) -> Vec<Value> {
    let output = decode(capture);
    let summary = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && summary.contains(", 0 dropped"), "{summary}");
    output.stdout.split(|octet| *octet == b'\n').filter(|line| !line.is_empty()).map(parse).collect()
}

fn parse(line: &[u8]) -> Value {
    serde_json::from_slice(line).unwrap()
}

#[test]
fn each_link_type_gives_the_same_message() {
    let folder = tempfile::tempdir().unwrap();
    let mut expected = None;
    for sample in samples() {
        let file = pcap(sample.link_type, &[&sample.record]);
        for (name, octets) in [("a.pcap", file.clone()), ("a.pcap.gz", gzip(&file))] {
            let lines = lines(&write(&folder, name, &octets));
            let [line] = &lines[..] else { panic!("{}: {lines:?}", sample.name) };
            let expected = expected.get_or_insert_with(|| line.clone());
            assert_eq!((&line["type"], line["link_address"].as_str()), (&"cam".into(), Some("48:a9:8a:90:82:7f")));
            assert_eq!(line, expected, "{} {name}", sample.name);
        }
    }
}

#[test]
fn each_interface_of_a_pcapng_has_its_link_type() {
    let folder = tempfile::tempdir().unwrap();
    let mut samples = samples();
    let all = lines(&write(&folder, "all.pcapng.gz", &gzip(&pcapng(&samples))));
    assert_eq!(all.len(), samples.len());
    assert!(all.iter().all(|line| line["message"] == all[0]["message"]));
    samples.insert(1, Sample { name: "IEEE 802.15.4", link_type: 195, record: vec![0; 40], source_field: "" });
    let output = decode(&write(&folder, "one.pcapng", &pcapng(&samples)));
    let summary = String::from_utf8(output.stderr).unwrap();
    assert!(summary.starts_with("9 frames: 8 messages, "), "{summary}");
    assert!(summary.contains("dropped: link_type_unsupported") && summary.contains("first is frame 2."), "{summary}");
}

#[test]
fn an_unsupported_link_type_is_the_only_output() {
    let folder = tempfile::tempdir().unwrap();
    let capture = write(&folder, "mesh.pcap", &pcap(195, &[&[0; 40]]));
    let output = decode(&capture);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), error.lines().count()), (Some(1), 1), "{error}");
    assert!(error.contains("mesh.pcap: the frames have link type 195 (IEEE 802.15.4); supported are "), "{error}");
    for supported in ["Ethernet (1)", "IEEE 802.11 (105)", "Linux cooked (113)", "radiotap (127)", "v2 (276)"] {
        assert!(error.contains(supported), "{error}");
    }
}

#[test]
fn frames_of_other_protocols_are_counted_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let [_, _, _, qos, ..] = &samples()[..] else { panic!() };
    let mut beacon = qos.record.clone();
    beacon[0] = 0x80;
    let mut encrypted = qos.record.clone();
    encrypted[1] = 0x40;
    let mut ipv4 = qos.record.clone();
    ipv4[32..34].copy_from_slice(&[8, 0]);
    let records = [&beacon[..], &qos.record, &encrypted, &ipv4, &qos.record[..30]];
    let output = decode(&write(&folder, "air.pcap", &pcap(105, &records)));
    let summary = String::from_utf8(output.stderr).unwrap();
    assert!(summary.starts_with("5 frames: 1 messages, 0 beacons, 0 location service, 4 dropped\n"), "{summary}");
    for (reason, first) in [("not_data", 1), ("link_encrypted", 3), ("not_geonetworking", 4), ("record_truncated", 5)] {
        let row = summary.lines().position(|line| line.contains(&format!("dropped: {reason}"))).unwrap();
        let explained = summary.lines().nth(row + 1).unwrap();
        assert!(explained.contains(&format!("the first is frame {first}. ")), "{explained}");
    }
}

#[test]
fn tshark_reads_the_same_in_each_capture() {
    let folder = tempfile::tempdir().unwrap();
    for sample in samples() {
        let capture = write(&folder, "a.pcap.gz", &gzip(&pcap(sample.link_type, &[&sample.record])));
        let mut command = Command::new("tshark");
        command.arg("-r").arg(&capture).args(["-T", "fields"]);
        for field in ["frame.number", sample.source_field, "geonw.src_pos.addr.mid", "its.stationID"] {
            command.args(["-e", field]);
        }
        let Ok(output) = command.output() else { return skipped("tshark is not installed") };
        let read = String::from_utf8(output.stdout).unwrap();
        let line = &lines(&capture)[0];
        let (link_address, station) = (line["link_address"].as_str().unwrap(), &line["station_id"]);
        let expected = format!("1\t{link_address}\t48:a9:8a:90:82:7f\t{station}\n");
        assert_eq!(read, expected, "{}", sample.name);
    }
}

/// Prints that a test is skipped, bypassing the test runner, which hides the output of passing tests. If peers are
/// required (in CI), it fails instead.
fn skipped(reason: &str) {
    assert!(std::env::var_os("VIADUCT_REQUIRE_PEERS").is_none(), "skipped where nothing may be skipped: {reason}");
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}
