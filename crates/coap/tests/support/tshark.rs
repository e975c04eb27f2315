//! tshark, which dissects datagrams and streams independently of this project.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "shared by several tests")]
#![allow(clippy::disallowed_methods, reason = "a test may read the environment")]

use std::io::Write as _;
use std::process::Command;

use serde_json::Value;

/// Port to which the payloads go.
const PORT: u16 = 40_000;
/// Octets of an IPv4 header.
const IP_OCTETS: usize = 20;
/// Link type of a capture file whose packets begin with the IP header.
const RAW_IP: u32 = 101;

/// Transport of the payloads.
#[derive(Clone, Copy)]
pub enum Transport {
    Udp,
    Tcp,
}

impl Transport {
    /// Returns the name in tshark, and the protocol number in an IP header.
    fn name_and_number(self) -> (&'static str, u8) {
        match self {
            Self::Udp => ("udp", 17),
            Self::Tcp => ("tcp", 6),
        }
    }

    /// Returns a header. `position` is the position of the payload in the stream.
    fn header(self, payload: &[u8], position: u32) -> Vec<u8> {
        let mut header = [PORT + 1, PORT].map(u16::to_be_bytes).concat();
        match self {
            Self::Udp => {
                header.extend(u16::try_from(payload.len() + 8).unwrap().to_be_bytes());
                header.extend([0, 0]);
            }
            Self::Tcp => {
                header.extend([position, 1].into_iter().flat_map(u32::to_be_bytes));
                // 20 octets of header, PSH and ACK, a window, neither checksum nor urgent data.
                header.extend([0x50, 0x18, 0xFF, 0xFF, 0, 0, 0, 0]);
            }
        }
        header
    }
}

/// Returns tshark's layers of each payload, which it dissects as `protocol`. If there is no tshark, prints the reason and
/// returns `None`.
pub fn dissect(transport: Transport, protocol: &str, payloads: &[Vec<u8>]) -> Option<Vec<Value>> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&capture(transport, payloads)).unwrap();
    let mut tshark = Command::new("tshark");
    let (name, _) = transport.name_and_number();
    tshark.args(["-T", "json", "-x", "--no-duplicate-keys", "-d"]).arg(format!("{name}.port=={PORT},{protocol}"));
    let output = match tshark.arg("-r").arg(file.path()).output() {
        Ok(output) => output,
        Err(error) => {
            skipped(&format!("tshark cannot be run ({error})"));
            return None;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut packets: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(packets.len(), payloads.len());
    Some(packets.iter_mut().map(|packet| packet["_source"]["layers"].take()).collect())
}

/// Returns a capture file with one packet for each payload.
fn capture(transport: Transport, payloads: &[Vec<u8>]) -> Vec<u8> {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let mut file = words(&[0xA1B2_C3D4, 0x0004_0002, 0, 0, 65_536, RAW_IP]);
    let mut position = 1;
    for payload in payloads {
        let header = transport.header(payload, position);
        let length = u16::try_from(IP_OCTETS + header.len() + payload.len()).unwrap();
        file.extend(words(&[0, 0, u32::from(length), u32::from(length)]));
        let ([high, low], (_, number)) = (length.to_be_bytes(), transport.name_and_number());
        // IPv4 without a checksum, from 127.0.0.1 to 127.0.0.1.
        file.extend([0x45, 0, high, low, 0, 0, 0, 0, 64, number, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
        file.extend(header);
        file.extend_from_slice(payload);
        position += u32::try_from(payload.len()).unwrap();
    }
    file
}

fn skipped(reason: &str) {
    assert!(std::env::var_os("VIADUCT_REQUIRE_PEERS").is_none(), "a required test is skipped: {reason}");
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}
