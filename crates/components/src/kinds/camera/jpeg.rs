//! JPEG files of cameras: their size, and the parts that many cameras omit.
//!
//! A camera with Motion JPEG may send pictures without Huffman tables, because all decoders of Motion JPEG know the tables of the
//! standard. Browsers do not, so the tables are inserted.

use super::picture::Picture;
use crate::frame_segment::SEGMENT_OCTETS;

/// Longest file of a camera in bytes.
pub(super) const FILE_OCTETS_MAX: usize = 16 << 20;
/// Largest number of pixels for each byte of a file: the coded blocks of a smaller file would have less than one bit each. It
/// limits the memory that a decoder allocates for a wrong size.
const PIXELS_PER_OCTET_MAX: usize = 512;
/// Start of a file.
const SOI: [u8; 2] = [0xFF, 0xD8];
/// Marker codes: Huffman tables, start of scan, end of image.
const DHT: u8 = 0xC4;
const SOS: u8 = 0xDA;
const EOI: u8 = 0xD9;

/// The octets are not a JPEG file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotJpeg {
    /// The file does not begin with the start marker.
    #[error("the file does not begin with FF D8")]
    Start,
    /// A segment is wrong or cut off.
    #[error("a segment is wrong or cut off")]
    Segment,
    /// The file has no frame header before its image data.
    #[error("the file has no frame header")]
    FrameHeader,
    /// The size in the frame header cannot be right.
    #[error("the file is too short for {0} x {1} pixels")]
    Size(u16, u16),
    /// The file is too long.
    #[error("the file is longer than {FILE_OCTETS_MAX} bytes")]
    Length,
}

/// A JPEG file whose segments are correct up to the image data. The image data is not examined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JpegFile<'a> {
    octets: &'a [u8],
    /// Width and height in pixels.
    pub(super) size: (u16, u16),
    has_huffman_tables: bool,
    /// Offset of the start of the scan.
    scan: usize,
}

impl<'a> JpegFile<'a> {
    /// Examines the segments before the image data.
    pub(super) fn parse(octets: &'a [u8]) -> Result<Self, NotJpeg> {
        if !octets.starts_with(&SOI) {
            return Err(NotJpeg::Start);
        }
        if octets.len() > FILE_OCTETS_MAX {
            return Err(NotJpeg::Length);
        }
        let (mut size, mut has_huffman_tables, mut at) = (None, false, SOI.len());
        loop {
            let (marker, length) = segment_at(octets, at).ok_or(NotJpeg::Segment)?;
            match marker {
                SOS => {
                    let size = plausible(size.ok_or(NotJpeg::FrameHeader)?, octets.len())?;
                    return Ok(Self { octets, size, has_huffman_tables, scan: at });
                }
                DHT => has_huffman_tables = true,
                _ if is_frame_header(marker) => size = Some(frame_size(octets, at).ok_or(NotJpeg::Segment)?),
                _ => {}
            }
            at += length;
        }
    }

    /// Returns the length of the file with a frame segment, and with Huffman tables.
    pub(super) fn complete_len(&self, tables: &HuffmanTables) -> usize {
        let missing = if self.has_huffman_tables { 0 } else { tables.0.len() };
        self.octets.len() + SEGMENT_OCTETS + missing
    }

    /// Writes the file with a frame segment, and with Huffman tables. `out` has the length [`Self::complete_len`].
    pub(super) fn write_complete(&self, segment: &[u8; SEGMENT_OCTETS], tables: &HuffmanTables, out: &mut [u8]) {
        let (header, scan) = self.octets.split_at(self.scan);
        let missing = if self.has_huffman_tables { &[][..] } else { &tables.0 };
        let mut rest = out;
        for part in [&SOI[..], segment, &header[SOI.len()..], missing, scan] {
            let (to, after) = rest.split_at_mut(part.len().min(rest.len()));
            to.copy_from_slice(&part[..to.len()]);
            rest = after;
        }
    }
}

/// Returns the size if the file is long enough for it.
fn plausible((width, height): (u16, u16), octets: usize) -> Result<(u16, u16), NotJpeg> {
    let pixels = usize::from(width) * usize::from(height);
    if pixels > octets * PIXELS_PER_OCTET_MAX { Err(NotJpeg::Size(width, height)) } else { Ok((width, height)) }
}

/// Returns the marker at an offset, and the number of octets up to the next marker.
fn segment_at(octets: &[u8], at: usize) -> Option<(u8, usize)> {
    let header = octets.get(at..)?;
    // A marker may be preceded by any number of fill octets.
    let fill = header.iter().take_while(|octet| **octet == 0xFF).count().checked_sub(1)?;
    let marker = *header.get(fill + 1)?;
    if matches!(marker, 0 | EOI | 0xD8) {
        return None;
    }
    let &[high, low] = header.get(fill + 2..)?.first_chunk::<2>()?;
    let length = usize::from(u16::from_be_bytes([high, low]));
    let whole = fill + 2 + length;
    (length >= 2 && header.len() >= whole).then_some((marker, whole))
}

/// Returns `true` for the markers SOF0 to SOF15; three other markers are among them.
const fn is_frame_header(marker: u8) -> bool {
    matches!(marker, 0xC0..=0xCF) && !matches!(marker, DHT | 0xC8 | 0xCC)
}

/// Returns width and height of the frame header at an offset.
fn frame_size(octets: &[u8], at: usize) -> Option<(u16, u16)> {
    let header = octets.get(at..)?;
    let fill = header.iter().take_while(|octet| **octet == 0xFF).count() - 1;
    let &[_precision, y1, y0, x1, x0] = header.get(fill + 4..)?.first_chunk::<5>()?;
    let (width, height) = (u16::from_be_bytes([x1, x0]), u16::from_be_bytes([y1, y0]));
    (width > 0 && height > 0).then_some((width, height))
}

/// The Huffman tables of the standard (ITU-T T.81, K.3) as segments.
#[derive(Debug)]
pub(super) struct HuffmanTables(Vec<u8>);

impl HuffmanTables {
    /// Returns the tables that the encoder writes.
    pub(super) fn new() -> Self {
        let mut pixel = Picture::default();
        pixel.resize(1, 1);
        let mut file = [0; 2048];
        // The file of one pixel has less than 1 kB.
        let octets = pixel.encode(50, b"", &mut file).unwrap_or(0);
        let file = &file[..octets];
        let mut tables = Vec::new();
        let mut at = SOI.len();
        while let Some((marker, length)) = segment_at(file, at).filter(|(marker, _)| *marker != SOS) {
            if marker == DHT {
                tables.extend_from_slice(&file[at..at + length]);
            }
            at += length;
        }
        Self(tables)
    }
}

#[cfg(test)]
mod tests {
    use jpeg_encoder::{ColorType, Encoder};

    use super::*;
    use crate::frame_segment::FrameSegment;

    fn file() -> Vec<u8> {
        let mut file = Vec::new();
        let pixels: Vec<u8> = (0..32 * 24 * 3).map(|at| (at * 7 % 251) as u8).collect();
        Encoder::new(&mut file, 80).encode(&pixels, 32, 24, ColorType::Ycbcr).unwrap();
        file
    }

    /// Returns the file without its Huffman tables, as cameras send it.
    fn without_tables(file: &[u8]) -> Vec<u8> {
        let (mut short, mut at) = (SOI.to_vec(), 2);
        while let Some((marker, length)) = segment_at(file, at) {
            if marker == SOS {
                short.extend_from_slice(&file[at..]);
                break;
            }
            if marker != DHT {
                short.extend_from_slice(&file[at..at + length]);
            }
            at += length;
        }
        short
    }

    #[test]
    fn a_file_gets_a_frame_segment_and_the_missing_tables() {
        let (tables, whole) = (HuffmanTables::new(), file());
        assert_eq!(tables.0.len(), 432, "the tables of luma and chroma");
        let segment = FrameSegment { camera: 0, frame: 9, time_us: 77, mark: false, reduced: false };
        for octets in [whole.clone(), without_tables(&whole)] {
            let parsed = JpegFile::parse(&octets).unwrap();
            assert_eq!(parsed.size, (32, 24));
            let mut complete = vec![0; parsed.complete_len(&tables)];
            parsed.write_complete(&segment.to_octets(), &tables, &mut complete);
            assert_eq!(FrameSegment::read(&complete), Some(segment));
            let (mut before, mut after) = (Picture::default(), Picture::default());
            before.decode(&whole).unwrap();
            after.decode(&complete).unwrap();
            assert!(before == after);
        }
        assert!(without_tables(&whole).len() < whole.len());
    }

    #[test]
    fn wrong_files_are_refused() {
        let whole = file();
        let scan = JpegFile::parse(&whole).unwrap().scan;
        assert_eq!(JpegFile::parse(b""), Err(NotJpeg::Start));
        assert_eq!(JpegFile::parse(&whole[1..]), Err(NotJpeg::Start));
        for length in 2..scan {
            assert_eq!(JpegFile::parse(&whole[..length]), Err(NotJpeg::Segment), "{length}");
        }
        let headless = [&SOI[..], &whole[scan..]].concat();
        assert_eq!(JpegFile::parse(&headless), Err(NotJpeg::FrameHeader));
        assert_eq!(JpegFile::parse(&[0xFF, 0xD8, 0xFF, 0xC0, 0, 2]), Err(NotJpeg::Segment));
        let mut large = whole.clone();
        let frame = whole.windows(2).position(|pair| pair == [0xFF, 0xC0]).unwrap();
        large[frame + 5..frame + 9].copy_from_slice(&[0xFF; 4]);
        assert_eq!(JpegFile::parse(&large), Err(NotJpeg::Size(65_535, 65_535)));
        let long = [whole, vec![0; FILE_OCTETS_MAX]].concat();
        assert_eq!(JpegFile::parse(&long), Err(NotJpeg::Length));
    }

    #[test]
    fn fill_octets_before_a_marker_are_permitted() {
        let whole = file();
        let filled = [&SOI[..], &[0xFF, 0xFF], &whole[2..]].concat();
        assert_eq!(JpegFile::parse(&filled).unwrap().size, (32, 24));
    }
}
