//! The frame segment: camera, frame number and capture time as an application segment of a JPEG file.
//!
//! The segment follows the start of the file, so that a program reads it without a decoder. Viewers skip it.

/// Octets of the segment, with its marker.
pub(crate) const SEGMENT_OCTETS: usize = 30;
/// Octets before the content of the segment: marker and length.
const HEADER_OCTETS: usize = 4;
/// Start of a JPEG file.
const SOI: [u8; 2] = [0xFF, 0xD8];
/// Number of the application segment: APP9.
pub(crate) const APP: u8 = 0xE9;
/// Start of the content.
const IDENTIFIER: &[u8; 8] = b"Viaduct\0";
/// Version of the layout.
const VERSION: u8 = 1;
const FLAG_MARK: u8 = 0b1;
const FLAG_REDUCED: u8 = 0b10;
/// Segments before the image data that are searched.
const SEGMENTS_MAX: usize = 8;

/// Camera, frame number and capture time of a picture.
///
/// | octets | field |
/// |---|---|
/// | 2 | marker: 0xFFE9 (APP9) |
/// | 2 | length of the segment without the marker: 28 |
/// | 8 | `Viaduct` and a zero |
/// | 1 | version: 1 |
/// | 1 | bit 0: the picture has the mark; bit 1: quality, size or rate are reduced by the budget; other bits 0, ignored |
/// | 1 | index of the camera, 0 to 15 |
/// | 3 | 0, ignored |
/// | 4 | frame number |
/// | 8 | capture time in microseconds since 1970-01-01T00:00:00 TAI |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameSegment {
    /// Index of the camera, 0 to 15.
    pub camera: u8,
    /// Frame number; 0 follows 2^32 - 1.
    pub frame: u32,
    /// Capture time in microseconds since 1970-01-01T00:00:00 TAI.
    pub time_us: u64,
    /// `true` if the picture has the mark.
    pub mark: bool,
    /// `true` if quality, size or rate are reduced because of the camera's budget.
    pub reduced: bool,
}

impl FrameSegment {
    /// Returns the segment with its marker.
    pub(crate) fn to_octets(self) -> [u8; SEGMENT_OCTETS] {
        let mut octets = [0; SEGMENT_OCTETS];
        octets[..HEADER_OCTETS].copy_from_slice(&[0xFF, APP, 0, (SEGMENT_OCTETS - 2) as u8]);
        octets[4..12].copy_from_slice(IDENTIFIER);
        octets[12] = VERSION;
        octets[13] = if self.mark { FLAG_MARK } else { 0 } | if self.reduced { FLAG_REDUCED } else { 0 };
        octets[14] = self.camera;
        octets[18..22].copy_from_slice(&self.frame.to_be_bytes());
        octets[22..30].copy_from_slice(&self.time_us.to_be_bytes());
        octets
    }

    /// Reads the segment of a JPEG file, or of a payload of the source `raw`. Returns `None` if the file has none.
    #[must_use]
    pub fn read(file: &[u8]) -> Option<Self> {
        let mut rest = file.strip_prefix(&SOI)?;
        for _ in 0..SEGMENTS_MAX {
            let (&[0xFF, marker, high, low], _) = rest.split_first_chunk::<HEADER_OCTETS>()? else {
                return None;
            };
            let end = 2 + usize::from(u16::from_be_bytes([high, low]));
            let content = rest.get(HEADER_OCTETS..end)?;
            if marker == APP && content.starts_with(IDENTIFIER) {
                return Self::parse(content);
            }
            rest = rest.get(end..)?;
        }
        None
    }

    /// Reads the content of an application segment [`APP`]. Returns `None` if it is not a frame segment.
    pub(crate) fn parse(content: &[u8]) -> Option<Self> {
        if !content.starts_with(IDENTIFIER) {
            return None;
        }
        let (&fixed, _) = content.split_first_chunk::<{ SEGMENT_OCTETS - HEADER_OCTETS }>()?;
        let (&[version, flags, camera], _) = fixed[8..].split_first_chunk::<3>()?;
        let (&frame, rest) = fixed[14..].split_first_chunk::<4>()?;
        let (&time, _) = rest.split_first_chunk::<8>()?;
        (version == VERSION && camera < 16).then_some(Self {
            camera,
            frame: u32::from_be_bytes(frame),
            time_us: u64::from_be_bytes(time),
            mark: flags & FLAG_MARK != 0,
            reduced: flags & FLAG_REDUCED != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: FrameSegment =
        FrameSegment { camera: 3, frame: 0x1234_5678, time_us: 1_795_422_645_123_456, mark: true, reduced: false };

    #[test]
    fn a_segment_has_the_documented_octets() {
        let octets = SEGMENT.to_octets();
        let hex: String = octets.iter().map(|octet| format!("{octet:02x}")).collect();
        assert_eq!(hex, "ffe9001c56696164756374000101030000001234567800 0660ed68fbf980".replace(' ', ""));
    }

    #[test]
    fn a_segment_is_found_at_the_start_and_behind_others() {
        let app0 = [0xFF, 0xE0, 0, 4, 1, 2];
        let other = [0xFF, APP, 0, 4, 1, 2];
        for before in [vec![], app0.to_vec(), [app0, other].concat()] {
            let reduced = FrameSegment { reduced: true, ..SEGMENT };
            let file = [&SOI[..], &before, &reduced.to_octets(), &[0xFF, 0xDA]].concat();
            assert_eq!(FrameSegment::read(&file), Some(reduced));
        }
    }

    #[test]
    fn other_files_have_no_segment() {
        let good = [&SOI[..], &SEGMENT.to_octets()].concat();
        assert!(FrameSegment::read(&good).is_some());
        for length in 0..good.len() {
            assert_eq!(FrameSegment::read(&good[..length]), None, "{length}");
        }
        for (octet, value) in [(0, 0), (3, 0xE8), (6, b'v'), (14, 2), (16, 16)] {
            let mut wrong = good.clone();
            wrong[octet] = value;
            assert_eq!(FrameSegment::read(&wrong), None, "{octet}");
        }
        let many = [&SOI[..], &[0xFF, 0xE0, 0, 2].repeat(SEGMENTS_MAX), &SEGMENT.to_octets()].concat();
        assert_eq!(FrameSegment::read(&many), None);
    }
}
