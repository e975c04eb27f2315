//! The binary message of a camera frame.

use bytes::{BufMut as _, Bytes, BytesMut};

const TYPE: u8 = 1;
const VERSION: u8 = 1;
const CODEC_JPEG: u8 = 1;
const HEADER_OCTETS: u16 = 48;
const FLAG_MARK: u16 = 1;
const FLAG_REDUCED: u16 = 2;
const FLAG_REPAIRED: u16 = 4;
/// Longest picture that a page accepts.
const PICTURE_OCTETS_MAX: usize = 4 << 20;

/// The header of a camera frame: `docs/reference/teleop-desk-websocket.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHeader {
    /// Index of the camera, 0 to 3.
    pub(super) camera: u8,
    pub(super) mark: bool,
    pub(super) reduced: bool,
    pub(super) repaired: bool,
    pub(super) number: u32,
    pub(super) missed: u32,
    /// Times in microseconds since 1970 of the desk's clock, TAI.
    pub(super) capture_us: u64,
    pub(super) arrival_us: u64,
    pub(super) deadline_us: u64,
    pub(super) width: u16,
    pub(super) height: u16,
    /// Largest error of the capture time in microseconds, or `None` if unknown.
    pub(super) uncertainty_us: Option<u32>,
}

impl FrameHeader {
    /// Returns the message with a picture, or `None` if the picture is empty or too long.
    pub(super) fn message(&self, picture: &[u8]) -> Option<Bytes> {
        if picture.is_empty() || picture.len() > PICTURE_OCTETS_MAX {
            return None;
        }
        let mut octets = BytesMut::with_capacity(usize::from(HEADER_OCTETS) + picture.len());
        octets.put_slice(&[TYPE, VERSION, self.camera, CODEC_JPEG]);
        octets.put_u16(self.flags());
        octets.put_u16(HEADER_OCTETS);
        octets.put_u32(self.number);
        octets.put_u32(self.missed);
        octets.put_u64(self.capture_us);
        octets.put_u64(self.arrival_us);
        octets.put_u64(self.deadline_us);
        octets.put_u16(self.width);
        octets.put_u16(self.height);
        octets.put_u32(self.uncertainty_us.unwrap_or(u32::MAX));
        octets.put_slice(picture);
        Some(octets.freeze())
    }

    fn flags(&self) -> u16 {
        [(self.mark, FLAG_MARK), (self.reduced, FLAG_REDUCED), (self.repaired, FLAG_REPAIRED)]
            .into_iter()
            .fold(0, |flags, (set, flag)| if set { flags | flag } else { flags })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VECTORS: &str = include_str!("../../../../../testdata/desk/vectors.json");

    fn hex(text: &str) -> Vec<u8> {
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
    }

    #[test]
    fn frames_have_the_octets_of_the_vectors() {
        let vectors: serde_json::Value = serde_json::from_str(VECTORS).unwrap();
        let frames = vectors["frames"].as_array().unwrap();
        for frame in frames {
            let number = |name: &str| frame[name].as_u64().unwrap();
            let flag = |name: &str| frame["flags"][name].as_bool().unwrap();
            let header = FrameHeader {
                camera: number("camera") as u8,
                mark: flag("mark"),
                reduced: flag("reduced"),
                repaired: flag("repaired"),
                number: number("number") as u32,
                missed: number("missed") as u32,
                capture_us: number("capture_us"),
                arrival_us: number("arrival_us"),
                deadline_us: number("deadline_us"),
                width: number("width_px") as u16,
                height: number("height_px") as u16,
                uncertainty_us: frame["uncertainty_us"].as_u64().map(|us| us as u32),
            };
            let picture = hex(frame["picture_hex"].as_str().unwrap());
            assert_eq!(header.message(&picture).unwrap(), hex(frame["hex"].as_str().unwrap()));
            assert_eq!(header.message(&[]), None);
            assert_eq!(header.message(&vec![0; PICTURE_OCTETS_MAX + 1]), None);
        }
        assert!(!frames.is_empty());
    }
}
