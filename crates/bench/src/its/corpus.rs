//! Packets used as input.

use std::path::Path;

use bytes::Bytes;
use viaduct_bus::clock;
use viaduct_components::capture::Capture;
use viaduct_its::facilities::{Message, MessageKind};
use viaduct_its::{Frame, Received, decode_frame};
use viaduct_units::Tai;

use crate::error::BenchError;

/// Packets and messages of one origin.
pub(super) struct Corpus {
    /// Name in the parameters: `vectors` or `capture`.
    pub(super) name: &'static str,
    /// The decoded frames.
    pub(super) packets: Vec<Packet>,
    /// The messages, in sets that are measured separately.
    pub(super) sets: Vec<Set>,
}

impl Corpus {
    /// Returns the first CAM.
    pub(super) fn cam(&self) -> Result<&Encoded, BenchError> {
        let cams = self.sets.iter().filter(|set| set.kind == MessageKind::Cam);
        cams.flat_map(|set| &set.messages).next().ok_or_else(|| damaged("cam"))
    }
}

/// A received frame.
pub(super) struct Packet {
    pub(super) reception: Tai,
    pub(super) frame: Bytes,
    received: Box<Received>,
}

/// A set of messages that are measured together.
pub(super) struct Set {
    pub(super) label: &'static str,
    pub(super) kind: MessageKind,
    pub(super) messages: Vec<Encoded>,
}

/// A message as a value, as UPER and as JSON.
pub(super) struct Encoded {
    pub(super) message: Message,
    pub(super) uper: Bytes,
    pub(super) json: Vec<u8>,
}

const FRAMES: [(&str, &str); 3] = [
    ("cam", include_str!("../../../../testdata/its/cam.hex")),
    ("cpm_objects", include_str!("../../../../testdata/its/cpm_objects.hex")),
    ("cpm_sensors", include_str!("../../../../testdata/its/cpm_sensors.hex")),
];

/// Messages with every container and every optional field, and the traffic lights of a crossing with eight groups.
const TEXTS: [(&str, MessageKind, &str); 5] = [
    ("cam_full", MessageKind::Cam, include_str!("../../../../testdata/its/cam_full.json")),
    ("denm_full", MessageKind::Denm, include_str!("../../../../testdata/its/denm_full.json")),
    ("vam_full", MessageKind::Vam, include_str!("../../../../testdata/its/vam_full.json")),
    ("cpm_full", MessageKind::Cpm, include_str!("../../../../testdata/its/cpm_full.json")),
    ("spatem", MessageKind::Spatem, include_str!("../../../../testdata/its/spatem.json")),
];

/// Returns the packets and messages of `testdata/its`.
pub(super) fn vectors() -> Result<Corpus, BenchError> {
    let mut corpus = Corpus { name: "vectors", packets: Vec::new(), sets: Vec::new() };
    for (label, text) in FRAMES {
        let packet = packet(clock::tai(), octets_of_hex(text)).ok_or_else(|| damaged(label))?;
        let message = packet.received.message.clone();
        corpus.sets.push(Set { label, kind: message.kind(), messages: vec![encoded(message)?] });
        corpus.packets.push(packet);
    }
    for (label, kind, text) in TEXTS {
        let message = Message::from_json(kind, text.as_bytes()).map_err(BenchError::part(label))?;
        corpus.sets.push(Set { label, kind, messages: vec![encoded(message)?] });
    }
    Ok(corpus)
}

/// Returns the packets and messages of a capture file, or the problem as text if the file cannot be read.
pub(super) fn capture(path: &Path) -> Result<Corpus, String> {
    let mut packets = Vec::new();
    for frame in Capture::open(path).map_err(|error| error.to_string())? {
        let frame = frame.map_err(|error| error.to_string())?;
        if let Ok(octets) = frame.octets {
            packets.extend(packet(frame.time, octets));
        }
    }
    if packets.is_empty() {
        return Err(format!("{} has no CAM or CPM", path.display()));
    }
    let mut sets = Vec::new();
    for kind in MessageKind::ALL {
        let of_kind = packets.iter().filter(|packet| packet.received.kind == kind);
        let messages: Result<Vec<Encoded>, BenchError> =
            of_kind.map(|packet| encoded(packet.received.message.clone())).collect();
        let messages = messages.map_err(|error| error.to_string())?;
        if !messages.is_empty() {
            sets.push(Set { label: kind.label(), kind, messages });
        }
    }
    Ok(Corpus { name: "capture", packets, sets })
}

/// Decodes a frame. Returns `None` if it holds no supported message.
fn packet(reception: Tai, frame: Bytes) -> Option<Packet> {
    match decode_frame(reception, &frame).ok()? {
        Frame::Message(received) => Some(Packet { reception, frame, received }),
        Frame::Beacon(_) | Frame::LocationService(_) => None,
    }
}

fn encoded(message: Message) -> Result<Encoded, BenchError> {
    let uper = Bytes::from(message.encode().map_err(BenchError::part("cannot encode a vector"))?);
    let mut json = Vec::new();
    message.write_json(&mut json);
    Ok(Encoded { message, uper, json })
}

fn octets_of_hex(text: &str) -> Bytes {
    let digits: String = text.lines().filter(|line| !line.starts_with('#')).collect();
    let pairs = (0..digits.len() / 2).filter_map(|index| digits.get(2 * index..2 * index + 2));
    pairs.filter_map(|pair| u8::from_str_radix(pair, 16).ok()).collect()
}

fn damaged(label: &str) -> BenchError {
    BenchError::broken(label, "the vector does not decode")
}
