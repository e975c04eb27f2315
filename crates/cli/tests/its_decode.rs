//! `viaduct its decode`: the output for captures and for frames in hexadecimal.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "tests may panic and print")]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn decode(capture: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_viaduct")).args(["its", "decode"]).arg(capture).args(arguments).output().unwrap()
}

/// Runs `its decode -` with this text or capture on stdin.
fn decode_stdin(input: &[u8], arguments: &[&str]) -> Output {
    let mut process = Command::new(env!("CARGO_BIN_EXE_viaduct"))
        .args(["its", "decode", "-"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    process.stdin.take().unwrap().write_all(input).unwrap();
    process.wait_with_output().unwrap()
}

#[test]
fn stdin_is_a_capture_or_a_frame_in_hexadecimal() {
    let capture = std::fs::read(root().join("testdata/captures/village.pcap")).unwrap();
    let from_file = decode(&root().join("testdata/captures/village.pcap"), &["--json-lines"]);
    let from_stdin = decode_stdin(&capture, &["--json-lines"]);
    assert_eq!((from_stdin.stdout, from_stdin.stderr), (from_file.stdout, from_file.stderr));

    let text = std::fs::read_to_string(root().join("testdata/its/cam.hex")).unwrap();
    let digits: String = text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n");
    let output = decode_stdin(format!("\n{digits}\n").as_bytes(), &[]);
    let message: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &message["type"]), (Some(0), &"cam".into()));

    for (input, problem) in
        [("dead\n", "stdin: a frame in hexadecimal has at least 14 octets"), ("", "stdin is not a pcap or pcapng file")]
    {
        let output = decode_stdin(input.as_bytes(), &[]);
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && printed.contains(problem), "{printed}");
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the path of the sample capture, or `None` if it is missing. The project does not contain it. It must exist if
/// `VIADUCT_DATA` is set.
fn sample() -> Option<PathBuf> {
    let named = std::env::var_os("VIADUCT_DATA").map(PathBuf::from);
    let path = named.clone().unwrap_or_else(|| root().join("../shared/data")).join("v2x/cam_cpm_r2_unsecured.pcap");
    if !path.exists() {
        assert!(named.is_none(), "VIADUCT_DATA names a folder without {}", path.display());
        skipped(&format!("{} is not there; VIADUCT_DATA names the data folder", path.display()));
        return None;
    }
    Some(path)
}

/// Writes a classic pcap file with the committed vectors and one frame without a packet.
fn capture_of_vectors() -> tempfile::NamedTempFile {
    let mut octets = Vec::new();
    for word in [0xA1B2_C3D4_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        octets.extend(word.to_le_bytes());
    }
    let mut frames: Vec<Vec<u8>> = Vec::new();
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(root().join("testdata/its")).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "hex")) {
        let text = std::fs::read_to_string(path).unwrap();
        let digits: String = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .flat_map(str::chars)
            .filter(char::is_ascii_hexdigit)
            .collect();
        frames.push(
            (0..digits.len() / 2).map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap()).collect(),
        );
    }
    frames.push(vec![0; 60]);
    for frame in frames {
        let length = u32::try_from(frame.len()).unwrap();
        for word in [1_726_061_434, 0, length, length] {
            octets.extend(word.to_le_bytes());
        }
        octets.extend(frame);
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), octets).unwrap();
    file
}

#[test]
fn the_sample_capture_gives_929_messages_and_no_drop() {
    let Some(path) = sample() else { return };
    let output = decode(&path, &["--json-lines"]);
    assert!(output.status.success());
    let summary = String::from_utf8(output.stderr).unwrap();
    assert!(summary.starts_with("929 frames: 929 messages, 0 beacons, 0 location service, 0 dropped\n"), "{summary}");
    let lines: Vec<Value> = output
        .stdout
        .split(|octet| *octet == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    let of_type = |kind: &str| lines.iter().filter(|line| line["type"] == kind).count();
    assert_eq!((lines.len(), of_type("cam"), of_type("cpm")), (929, 367, 562));
    let objects = lines
        .iter()
        .flat_map(|line| line["message"]["payload"]["cpmContainers"].as_array().cloned().unwrap_or_default());
    let objects = objects
        .filter(|container| container["containerId"] == 5)
        .map(|container| container["containerData"]["perceivedObjects"].as_array().unwrap().len());
    assert_eq!(objects.sum::<usize>(), 686, "perceived objects, containers expanded");
}

#[test]
fn messages_go_to_stdout_and_drops_with_their_reason_to_stderr() {
    let capture = capture_of_vectors();
    let output = decode(capture.path(), &["--json-lines"]);
    assert!(output.status.success());
    let summary = String::from_utf8(output.stderr).unwrap();
    assert!(summary.contains("dropped: secured") && summary.contains("dropped: not_geonetw"), "{summary}");
    assert!(summary.contains("    the first is frame 5. The frame is not GeoNetworking"), "{summary}");
    let first: Value = serde_json::from_slice(output.stdout.split(|octet| *octet == b'\n').next().unwrap()).unwrap();
    assert_eq!((&first["security"], &first["access"]), (&"unsecured".into(), &"replay".into()));
    assert_eq!(first.get("receiver"), None, "no station received it");
    let with_drops = String::from_utf8(decode(capture.path(), &["--drops"]).stderr).unwrap();
    let expected = "frame 4: dropped: secured_not_verified\nframe 5: dropped: not_geonetworking\n";
    assert!(with_drops.starts_with(expected), "{with_drops}");
    let without = decode(capture.path(), &[]);
    assert!(without.stdout.is_empty(), "only --json-lines prints messages");
}

#[test]
fn a_frame_in_hexadecimal_is_decoded() {
    let zeros = "00 ".repeat(60);
    let output = decode(Path::new(zeros.trim()), &[]);
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "a dropped frame is a failure");
    assert!(printed.starts_with("dropped: not_geonetworking. The frame is not"), "{printed}");
}

/// A mistyped name of hexadecimal digits is shorter than a frame.
#[test]
fn a_short_name_of_hexadecimal_digits_is_a_missing_file() {
    let output = decode(Path::new("dead"), &[]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty() && error.contains("dead: No such file"), "{error}");
    assert!(error.contains("a frame in hexadecimal has at least 14 octets"), "{error}");
}

#[test]
fn a_file_that_is_not_a_capture_is_reported_in_one_line() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "not a capture").unwrap();
    let output = decode(file.path(), &[]);
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.ends_with("is not a pcap or pcapng file\n") && error.lines().count() == 1, "{error}");
    let output = decode(&std::env::temp_dir(), &[]);
    assert!(String::from_utf8_lossy(&output.stderr).ends_with(": is a directory\n"), "{output:?}");
}

#[test]
fn each_line_has_frame_time_and_geonetworking_headers() {
    let output = decode(capture_of_vectors().path(), &["--json-lines"]);
    let lines: Vec<Value> = String::from_utf8(output.stdout).unwrap().lines().map(parse).collect();
    let numbers: Vec<&Value> = lines.iter().map(|line| &line["frame"]).collect();
    assert_eq!(numbers, [1, 2, 3]);
    assert_eq!(lines[0]["time"], "2024-09-11T13:30:34.000000Z");
    let geonet = &lines[0]["geonet"];
    for (name, expected) in [
        ("version", 1.into()),
        ("type", Value::from("shb")),
        ("remaining_hops", 1.into()),
        ("maximum_hops", 1.into()),
        ("traffic_class", 2.into()),
        ("lifetime_s", 1.0.into()),
        ("sequence_number", Value::Null),
        ("area", Value::Null),
    ] {
        assert_eq!(geonet.get(name).unwrap_or(&Value::Null), &expected, "{name}: {geonet}");
    }
    assert_eq!(geonet["source"]["time"], "2024-09-11T13:30:29.317000Z");
    assert_eq!(geonet["source"]["latitude_deg"].as_f64().unwrap().round(), 45.0);
}

/// `its decode` reads the frame that `its send --dry-run` prints in hexadecimal.
#[test]
fn the_area_of_a_packet_is_that_of_its_destination() {
    let message = root().join("testdata/its/denm_full.json");
    for (to, expected) in [
        ("gbc:49.0,8.4,r=500", r#"{"latitude_deg":49.0,"longitude_deg":8.4,"circle":{"radius_m":500.0}}"#),
        (
            "gac:49.0,8.4,rectangle=200x50,azimuth=45",
            r#"{"latitude_deg":49.0,"longitude_deg":8.4,"rectangle":{"a_m":200.0,"b_m":50.0,"azimuth_deg":45.0}}"#,
        ),
    ] {
        let mut send = Command::new(env!("CARGO_BIN_EXE_viaduct"));
        send.args(["its", "send"]).arg(&message).args(["--dry-run", "--to", to, "--position", "49.0,8.4"]);
        let sent = send.output().unwrap();
        let text = String::from_utf8(sent.stdout).unwrap();
        let Some(frame) = text.lines().next() else { panic!("{}", String::from_utf8_lossy(&sent.stderr)) };
        let output = decode(Path::new(frame), &[]);
        let line = parse(String::from_utf8(output.stdout).unwrap().trim());
        assert_eq!(line["geonet"]["type"].as_str(), to.get(..3));
        assert_eq!(line["geonet"]["area"], parse(expected));
        assert!(line["geonet"]["sequence_number"].is_u64() && line.get("frame").is_none(), "{line}");
    }
}

#[test]
fn a_signed_packet_is_decoded_and_marked_with_unverified() {
    let capture = capture_of_vectors();
    let output = decode(capture.path(), &["--json-lines", "--unverified"]);
    let summary = String::from_utf8(output.stderr).unwrap();
    assert!(summary.starts_with("5 frames: 4 messages, 0 beacons, 0 location service, 1 dropped\n"), "{summary}");
    let lines: Vec<Value> = String::from_utf8(output.stdout).unwrap().lines().map(parse).collect();
    let marked: Vec<(&Value, bool)> =
        lines.iter().map(|line| (&line["security"], line.get("signer_digest").is_some())).collect();
    let (plain, signed) = (Value::from("unsecured"), Value::from("unverified"));
    assert_eq!(marked, [(&plain, false), (&plain, false), (&plain, false), (&signed, true)]);
    // The address of the station contains the digest of its certificate.
    let digest = lines[3]["signer_digest"].as_str().unwrap();
    let address = lines[3]["geonet_address"].as_str().unwrap().replace([':', '-'], "");
    assert_eq!((digest.len(), digest.get(8..)), (16, address.get(8..)));
}

#[test]
fn version_0_is_decoded_with_any_version() {
    let text = std::fs::read_to_string(root().join("testdata/its/cam.hex")).unwrap();
    let digits: String = text.lines().filter(|line| !line.starts_with('#')).collect();
    // The first octet of the basic header: version and next header.
    let older = format!("{}01{}", &digits[..28], &digits[30..]);
    let refused = decode(Path::new(&older), &[]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8(refused.stdout).unwrap().starts_with("dropped: geonet_version. "));
    let output = decode(Path::new(&older), &["--any-version"]);
    let line = parse(String::from_utf8(output.stdout).unwrap().trim());
    assert_eq!((&line["geonet"]["version"], &line["type"]), (&0.into(), &"cam".into()));
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Reports a skipped test on the standard error, which the test runner does not capture.
fn skipped(reason: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}
