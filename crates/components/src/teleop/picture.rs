//! JPEG pictures and the number, time and flags that a camera gives them.
//!
//! Number, time and flags are in a [`FrameSegment`] at the start of the JPEG file, so they stay with the picture on the bus, over a
//! link and in a recording. Programs that do not know the segment ignore it (ITU-T T.81, B.2.4.6).

use bytes::{BufMut as _, Bytes, BytesMut};
use viaduct_units::Tai;

use crate::frame_segment::{APP, FrameSegment, SEGMENT_OCTETS};

/// Start of a JPEG file.
const START: [u8; 2] = [0xFF, 0xD8];
/// Largest number of segments before the size of the picture.
const SEGMENTS_MAX: usize = 64;

/// Number, time and flags of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PictureInfo {
    /// Number of the frame, one more than that of the frame before; 0 follows 2^32 - 1.
    pub number: u32,
    /// Time at which the camera took the picture.
    pub capture: Tai,
    /// `true` if the picture has a machine-readable mark with the same number and time.
    pub mark: bool,
    /// `true` if the quality is reduced because of the link.
    pub reduced: bool,
}

/// The properties of a JPEG file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Width and height in pixels, 1 to 65 535, or `None` if the file does not have them before its data.
    pub size: Option<(u16, u16)>,
    /// Number, time and flags, or `None` if the camera does not give them.
    pub info: Option<PictureInfo>,
}

/// The octets do not begin like a JPEG file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a JPEG file")]
pub struct NotAJpeg;

impl Picture {
    /// Parses the first segments of a JPEG file.
    ///
    /// # Errors
    /// The octets do not begin like a JPEG file.
    pub fn parse(jpeg: &[u8]) -> Result<Self, NotAJpeg> {
        let mut rest = jpeg.strip_prefix(&START).ok_or(NotAJpeg)?;
        let mut picture = Self { size: None, info: None };
        for _ in 0..SEGMENTS_MAX {
            let Some((marker, body, next)) = segment(rest) else { break };
            rest = next;
            match marker {
                APP => picture.info = picture.info.or_else(|| parse_info(body)),
                // Start of frame, except the tables in the same range (T.81, table B.1).
                0xC0..=0xCF if !matches!(marker, 0xC4 | 0xC8 | 0xCC) => {
                    picture.size = parse_size(body);
                    break;
                }
                0xDA => break,
                _ => {}
            }
        }
        Ok(picture)
    }
}

/// Returns the marker and content of the first segment, and the octets behind it.
fn segment(octets: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let [0xFF, marker, high, low, rest @ ..] = octets else { return None };
    let length = usize::from(u16::from_be_bytes([*high, *low])).checked_sub(2)?;
    let (body, next) = rest.split_at_checked(length)?;
    Some((*marker, body, next))
}

/// Reads the size of the picture from the content of a start of frame (T.81, B.2.2).
fn parse_size(body: &[u8]) -> Option<(u16, u16)> {
    let [_, h1, h0, w1, w0, ..] = body else { return None };
    let (width, height) = (u16::from_be_bytes([*w1, *w0]), u16::from_be_bytes([*h1, *h0]));
    (width > 0 && height > 0).then_some((width, height))
}

fn parse_info(body: &[u8]) -> Option<PictureInfo> {
    let FrameSegment { frame, time_us, mark, reduced, .. } = FrameSegment::parse(body)?;
    let capture_us = i64::try_from(time_us).ok()?;
    Some(PictureInfo { number: frame, capture: Tai::from_nanos(capture_us.checked_mul(1000)?), mark, reduced })
}

/// Returns the JPEG file with the number, time and flags of the picture. A file that has them already gets a second segment, and
/// the first one counts.
///
/// # Errors
/// The octets do not begin like a JPEG file.
pub fn with_info(jpeg: &[u8], camera: u8, info: &PictureInfo) -> Result<Bytes, NotAJpeg> {
    let rest = jpeg.strip_prefix(&START).ok_or(NotAJpeg)?;
    let time_us = u64::try_from(info.capture.nanos().div_euclid(1000)).unwrap_or(0);
    let segment = FrameSegment { camera, frame: info.number, time_us, mark: info.mark, reduced: info.reduced };
    let mut octets = BytesMut::with_capacity(jpeg.len() + SEGMENT_OCTETS);
    octets.put_slice(&START);
    octets.put_slice(&segment.to_octets());
    octets.put_slice(rest);
    Ok(octets.freeze())
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A JPEG file of 640 x 480 pixels up to the start of its scan.
    pub(crate) const JPEG: &[u8] = &[
        0xFF, 0xD8, 0xFF, 0xE0, 0, 4, 1, 2, 0xFF, 0xC4, 0, 3, 9, 0xFF, 0xC0, 0, 11, 8, 1, 0xE0, 2, 0x80, 1, 1, 0x11, 0,
        0xFF, 0xDA, 0, 2, 0xFF, 0xD9,
    ];

    const INFO: PictureInfo = PictureInfo {
        number: u32::MAX - 1,
        capture: Tai::from_nanos(1_795_422_645_123_456_000),
        mark: true,
        reduced: false,
    };

    #[test]
    fn a_picture_carries_its_number_time_and_flags() {
        let size = Some((640, 480));
        assert_eq!(Picture::parse(JPEG), Ok(Picture { size, info: None }));
        for info in [INFO, PictureInfo { mark: false, reduced: true, ..INFO }] {
            let octets = with_info(JPEG, 2, &info).unwrap();
            assert_eq!(octets.len(), JPEG.len() + 30);
            assert_eq!(Picture::parse(&octets), Ok(Picture { size, info: Some(info) }));
            // The first segment counts.
            let other = PictureInfo { number: 1, ..info };
            assert_eq!(Picture::parse(&with_info(&octets, 2, &other).unwrap()).unwrap().info, Some(other));
        }
    }

    #[test]
    fn a_size_that_is_missing_or_zero_is_unknown() {
        let size = |jpeg: &[u8]| Picture::parse(jpeg).unwrap().size;
        for length in 2..26 {
            assert_eq!(size(&JPEG[..length]), None, "{length}");
        }
        let mut flat = JPEG.to_vec();
        (flat[18], flat[19]) = (0, 0);
        assert_eq!(size(&flat), None);
        assert_eq!(size(&[&START[..], &[0xFF, 0xE1, 0, 2].repeat(100_000)].concat()), None);
        assert_eq!(Picture::parse(b"GIF89a"), Err(NotAJpeg));
        assert_eq!(with_info(b"GIF89a", 0, &INFO), Err(NotAJpeg));
    }

    proptest! {
        #[test]
        fn any_octets_are_parsed_without_a_panic(octets in proptest::collection::vec(any::<u8>(), 0..200), at in 0..60_usize) {
            let _ = Picture::parse(&octets);
            let mut jpeg = with_info(JPEG, 0, &INFO).unwrap().to_vec();
            let at = at.min(jpeg.len());
            jpeg.splice(at..at, octets);
            let _ = Picture::parse(&jpeg);
        }
    }
}
