//! Where the tests find captures and vectors, and how they read them.

#![allow(dead_code, clippy::print_stdout, reason = "each test takes what it needs; a skipped one says so")]

use std::path::{Path, PathBuf};

use bytes::Bytes;
use pcap_parser::{LegacyPcapReader, PcapBlockOwned, traits::PcapReaderIterator};
use viaduct_units::Tai;

/// A frame of a capture.
pub(crate) struct Captured {
    /// When it was captured.
    pub(crate) reception: Tai,
    /// The Ethernet frame.
    pub(crate) frame: Bytes,
}

/// The 929 frames of the sample capture; `None`, with the reason printed, where the data is not there.
pub(crate) fn sample() -> Option<Vec<Captured>> {
    let path = data("v2x/cam_cpm_r2_unsecured.pcap")?;
    Some(read_pcap(&std::fs::read(path).expect("the capture can be read")))
}

/// A file of the data folder; `None`, with the reason printed, where it is not there. Captures are no part of the project,
/// so that only a folder that is named must have them.
pub(crate) fn data(file: &str) -> Option<PathBuf> {
    let named = std::env::var_os("VIADUCT_DATA").map(PathBuf::from);
    let path = named.clone().unwrap_or_else(|| repository().join("../shared/data")).join(file);
    if path.exists() {
        return Some(path);
    }
    assert!(named.is_none(), "VIADUCT_DATA names a folder without {file}");
    say_skipped(&format!("there is no {file} in the data folder (VIADUCT_DATA)"));
    None
}

/// The root of the repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A vector of `testdata/its`: comment lines, then hexadecimal text.
pub(crate) fn vector(name: &str) -> Bytes {
    let path = repository().join("testdata/its").join(name);
    let text = std::fs::read_to_string(&path).expect("the vector is in the repository");
    let digits: Vec<u8> =
        text.lines().filter(|line| !line.starts_with('#')).flat_map(|line| line.trim().bytes()).collect();
    let (pairs, []) = digits.as_chunks::<2>() else { panic!("{name}: odd number of digits") };
    pairs.iter().map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn read_pcap(octets: &[u8]) -> Vec<Captured> {
    let mut reader = LegacyPcapReader::new(65_536, octets).expect("a pcap header");
    let mut frames = Vec::new();
    loop {
        match reader.next() {
            Ok((consumed, block)) => {
                if let PcapBlockOwned::Legacy(packet) = block {
                    let nanos = i64::from(packet.ts_sec) * 1_000_000_000 + i64::from(packet.ts_usec) * 1000;
                    frames.push(Captured {
                        reception: Tai::from_unix_nanos(nanos),
                        frame: Bytes::copy_from_slice(packet.data),
                    });
                }
                reader.consume(consumed);
            }
            Err(pcap_parser::PcapError::Eof) => return frames,
            Err(pcap_parser::PcapError::Incomplete(_)) => reader.refill().expect("octets from memory"),
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// Says that a test is skipped and why, past the test runner that keeps the output of passing tests to itself. Where peers
/// are required (in CI), it fails instead.
pub(crate) fn skipped(reason: &str) {
    assert!(std::env::var_os("VIADUCT_REQUIRE_PEERS").is_none(), "skipped where nothing may be skipped: {reason}");
    say_skipped(reason);
}

fn say_skipped(reason: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}
