//! Location and reading of captures and vectors.

#![allow(dead_code, clippy::print_stdout, reason = "no test uses all items; a skipped one prints the reason")]

use std::path::{Path, PathBuf};

use bytes::Bytes;
use pcap_parser::{LegacyPcapReader, PcapBlockOwned, traits::PcapReaderIterator};
use viaduct_units::Tai;

/// A frame of a capture.
pub(crate) struct Captured {
    /// Time of the capture.
    pub(crate) reception: Tai,
    /// The Ethernet frame.
    pub(crate) frame: Bytes,
}

/// Returns the 929 frames of the sample capture. If the data is missing, prints the reason and returns `None`.
pub(crate) fn sample() -> Option<Vec<Captured>> {
    let path = data("v2x/cam_cpm_r2_unsecured.pcap")?;
    Some(read_pcap(&std::fs::read(path).expect("the capture can be read")))
}

/// Returns the path of a file in the data folder. If the file is missing, prints the reason and returns `None`.
/// Captures are not part of the project, so the file is required only if `VIADUCT_DATA` is set.
pub(crate) fn data(file: &str) -> Option<PathBuf> {
    let named = std::env::var_os("VIADUCT_DATA").map(PathBuf::from);
    let path = named.clone().unwrap_or_else(|| repository().join("../shared/data")).join(file);
    if path.exists() {
        return Some(path);
    }
    assert!(named.is_none(), "the folder in VIADUCT_DATA has no {file}");
    print_skipped(&format!("{file} is not in the data folder (VIADUCT_DATA)"));
    None
}

/// Returns the root of the repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns a vector of `testdata/its`: comment lines, then hexadecimal text.
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

/// Prints that a test is skipped and the reason, bypassing the test runner's capture of output. If
/// `VIADUCT_REQUIRE_PEERS` is set (in CI), fails instead.
pub(crate) fn skipped(reason: &str) {
    assert!(std::env::var_os("VIADUCT_REQUIRE_PEERS").is_none(), "a required test is skipped: {reason}");
    print_skipped(reason);
}

fn print_skipped(reason: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}
