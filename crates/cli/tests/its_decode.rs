//! `viaduct its decode`: what is printed of a capture.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "tests may panic and print")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn decode(capture: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_viaduct")).args(["its", "decode"]).arg(capture).args(arguments).output().unwrap()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The sample capture, where the data folder is there. It is no part of the project, so that only a folder that is named
/// must have it.
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

/// A classic pcap of the committed vectors and one frame that is no packet.
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
    assert!(summary.contains("    the first is frame 5. The frame is of another protocol"), "{summary}");
    let first: Value = serde_json::from_slice(output.stdout.split(|octet| *octet == b'\n').next().unwrap()).unwrap();
    assert_eq!((&first["security"], &first["access"]), (&"unsecured".into(), &"replay".into()));
    let with_drops = String::from_utf8(decode(capture.path(), &["--drops"]).stderr).unwrap();
    let expected = "frame 4: dropped: secured_not_verified\nframe 5: dropped: not_geonetworking\n";
    assert!(with_drops.starts_with(expected), "{with_drops}");
    let without = decode(capture.path(), &[]);
    assert!(without.stdout.is_empty(), "only --json-lines prints messages");
}

#[test]
fn a_frame_is_given_in_hexadecimal_too() {
    let zeros = "00 ".repeat(60);
    let output = decode(Path::new(zeros.trim()), &[]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "a dropped frame is no success");
    assert!(said.starts_with("dropped: not_geonetworking. The frame is of"), "{said}");
}

/// Even digits alone do not make a frame of a mistyped name.
#[test]
fn a_name_of_hexadecimal_digits_is_a_file_that_is_not_there() {
    let output = decode(Path::new("dead"), &[]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty() && said.contains("dead: No such file"), "{said}");
    assert!(said.contains("nor is it a frame, which has 14 octets or more"), "{said}");
}

#[test]
fn what_is_no_capture_is_said_in_one_line() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "no capture").unwrap();
    let output = decode(file.path(), &[]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.ends_with("is not a pcap or pcapng file\n") && said.lines().count() == 1, "{said}");
    let output = decode(&std::env::temp_dir(), &[]);
    assert!(String::from_utf8_lossy(&output.stderr).ends_with(": is a directory\n"), "{output:?}");
}

/// Says that a test is skipped and why, past the test runner that keeps the output of passing tests to itself.
fn skipped(reason: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}
