//! The machine-readable mark in a picture: camera, frame number and capture time as black and white cells in the top left corner.
//!
//! `docs/reference/teleop-desk-websocket.md`, "Mark", defines it. Each cell is a whole number of 8x8 JPEG blocks, so that the mark
//! remains readable after strong compression.

use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::jpeg::JpegFile;

/// Octets of the mark.
const OCTETS: usize = 14;
/// Cells of a row: eight for each octet, in two rows.
const COLUMNS: usize = 56;
/// Rows of cells.
const ROWS: usize = 2;
/// Luma of a cell that is 0 and of one that is 1.
const LUMAS: [u8; 2] = [16, 235];
/// First octet: four black and four white cells.
const START: u8 = 0xB2;
/// Layout of the mark, in the upper half of the second octet.
const FORMAT: u8 = 1;
/// Number of different times: 48 bits.
const TIMES: u64 = 1 << 48;
/// Smallest difference between the mean lumas of the white and the black cells of the start.
const CONTRAST_MIN: u32 = 64;
/// Largest width and height of a picture that is decoded.
const PICTURE_SIDE_MAX: usize = 8192;

/// Content of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Index of the camera, 0 to 15.
    pub camera: u8,
    /// Frame number.
    pub frame: u32,
    /// Capture time in microseconds since 1970-01-01T00:00:00 TAI, modulo 2^48.
    pub time_us: u64,
}

/// The reason why no mark is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MarkError {
    /// The picture is not a JPEG file with a width and a height of at most 8192.
    #[error("the picture cannot be decoded")]
    Picture,
    /// The picture has no mark: it is too narrow, or has no start pattern.
    #[error("the picture has no mark")]
    Absent,
    /// The picture has a mark with a wrong checksum.
    #[error("the checksum of the mark is wrong")]
    Checksum,
}

/// The luma of a picture, row by row.
#[derive(Clone, Copy, Debug)]
pub struct Luma<'a> {
    samples: &'a [u8],
    width: usize,
    height: usize,
}

impl<'a> Luma<'a> {
    /// Returns the picture, or `None` if the number of samples is not `width` times `height`.
    #[must_use]
    pub fn new(samples: &'a [u8], width: usize, height: usize) -> Option<Self> {
        (width.checked_mul(height) == Some(samples.len())).then_some(Self { samples, width, height })
    }
}

/// Returns the edge of a cell in pixels, or `None` if the picture is too small for the mark.
fn cell_size(width: usize, height: usize) -> Option<usize> {
    let cell = 8 * (width / 640).max(1);
    (cell * COLUMNS <= width && cell * ROWS <= height).then_some(cell)
}

impl Mark {
    /// Draws the mark into the planes of a picture, which all have the same size. Returns `false` if the picture is too small.
    pub(super) fn draw(&self, luma: &mut [u8], chroma: [&mut [u8]; 2], width: usize) -> bool {
        let Some(cell) = cell_size(width, luma.len() / width.max(1)) else {
            return false;
        };
        let octets = self.octets();
        for (y, row) in luma.chunks_exact_mut(width).take(cell * ROWS).enumerate() {
            for (column, pixels) in row.chunks_exact_mut(cell).take(COLUMNS).enumerate() {
                pixels.fill(LUMAS[usize::from(bit(&octets, y / cell * COLUMNS + column))]);
            }
        }
        for plane in chroma {
            for row in plane.chunks_exact_mut(width).take(cell * ROWS) {
                row[..cell * COLUMNS].fill(128);
            }
        }
        true
    }

    /// Reads the mark of a picture.
    ///
    /// # Errors
    /// The picture has no mark, or a damaged one.
    pub fn read(picture: Luma<'_>) -> Result<Self, MarkError> {
        let cell = cell_size(picture.width, picture.height).ok_or(MarkError::Absent)?;
        let mut lumas = [0; ROWS * COLUMNS];
        for (index, luma) in lumas.iter_mut().enumerate() {
            *luma = mean_luma(picture, index % COLUMNS * cell, index / COLUMNS * cell, cell);
        }
        let threshold = threshold(&lumas).ok_or(MarkError::Absent)?;
        let mut octets = [0; OCTETS];
        for (index, luma) in lumas.iter().enumerate() {
            octets[index / 8] |= u8::from(*luma > threshold) << (7 - index % 8);
        }
        Self::parse(&octets)
    }

    /// Reads the mark of a JPEG file.
    ///
    /// # Errors
    /// The file cannot be decoded, or the picture has no mark, or a damaged one.
    pub fn read_jpeg(file: &[u8]) -> Result<Self, MarkError> {
        // It limits the memory for the picture by the length of the file.
        JpegFile::parse(file).map_err(|_| MarkError::Picture)?;
        let options = DecoderOptions::default()
            .set_max_width(PICTURE_SIDE_MAX)
            .set_max_height(PICTURE_SIDE_MAX)
            .jpeg_set_out_colorspace(ColorSpace::Luma);
        let mut decoder = JpegDecoder::new_with_options(ZCursor::new(file), options);
        let samples = decoder.decode().map_err(|_| MarkError::Picture)?;
        let (width, height) = decoder.dimensions().ok_or(MarkError::Picture)?;
        Self::read(Luma::new(&samples, width, height).ok_or(MarkError::Picture)?)
    }

    /// Returns the complete capture time in microseconds: the one nearest to `near_us` that the mark can stand for.
    #[must_use]
    pub const fn unwrapped_time_us(&self, near_us: u64) -> u64 {
        let ahead = self.time_us.wrapping_sub(near_us) % TIMES;
        if ahead < TIMES / 2 { near_us.wrapping_add(ahead) } else { near_us.wrapping_sub(TIMES - ahead) }
    }

    fn octets(&self) -> [u8; OCTETS] {
        let mut octets = [0; OCTETS];
        octets[0] = START;
        octets[1] = FORMAT << 4 | self.camera & 0xF;
        octets[2..6].copy_from_slice(&self.frame.to_be_bytes());
        octets[6..12].copy_from_slice(&self.time_us.to_be_bytes()[2..]);
        let checksum = crc16(&octets[1..12]);
        octets[12..].copy_from_slice(&checksum.to_be_bytes());
        octets
    }

    fn parse(octets: &[u8; OCTETS]) -> Result<Self, MarkError> {
        if octets[0] != START || octets[1] >> 4 != FORMAT {
            return Err(MarkError::Absent);
        }
        if u16::from_be_bytes([octets[12], octets[13]]) != crc16(&octets[1..12]) {
            return Err(MarkError::Checksum);
        }
        let frame = u32::from_be_bytes([octets[2], octets[3], octets[4], octets[5]]);
        let time_us = octets[6..12].iter().fold(0, |time, octet| time << 8 | u64::from(*octet));
        Ok(Self { camera: octets[1] & 0xF, frame, time_us })
    }
}

fn bit(octets: &[u8], index: usize) -> bool {
    octets[index / 8] >> (7 - index % 8) & 1 == 1
}

/// Returns the mean luma of the inner half of a cell; its edge can be blurred by the neighbours.
fn mean_luma(picture: Luma<'_>, left: usize, top: usize, cell: usize) -> u32 {
    let (inset, side) = (cell / 4, cell / 2);
    let row = |y: usize| {
        let start = y * picture.width + left + inset;
        picture.samples[start..start + side].iter().map(|sample| u32::from(*sample)).sum::<u32>()
    };
    (top + inset..top + inset + side).map(row).sum::<u32>() / (side * side) as u32
}

/// Returns the luma between black and white, from the start pattern, or `None` if the pattern has too little contrast.
fn threshold(lumas: &[u32]) -> Option<u32> {
    let mean = |white: bool| {
        let cells = lumas.iter().take(8).enumerate().filter(|(index, _)| bit(&[START], *index) == white);
        cells.map(|(_, luma)| luma).sum::<u32>() / 4
    };
    let (black, white) = (mean(false), mean(true));
    (white >= black + CONTRAST_MIN).then_some((white + black) / 2)
}

/// CRC-16/IBM-3740: polynomial 0x1021, start value 0xFFFF, not reflected.
fn crc16(octets: &[u8]) -> u16 {
    octets.iter().fold(0xFFFF, |crc, octet| {
        (0..8).fold(crc ^ u16::from(*octet) << 8, |crc, _| if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 })
    })
}

#[cfg(test)]
mod tests {
    use jpeg_encoder::{ColorType, Encoder};
    use serde::Deserialize;
    use viaduct_units::Rng;

    use super::*;

    const MARK: Mark = Mark { camera: 2, frame: 305_419_896, time_us: 106_572_784_859_520 };

    #[derive(Deserialize)]
    struct Vectors {
        marks: Vec<Vector>,
    }

    #[derive(Deserialize)]
    struct Vector {
        camera: u8,
        frame: u32,
        time_us: u64,
        hex: String,
    }

    /// Returns the luma of a grey picture with the mark.
    fn marked(mark: Mark, width: usize, height: usize) -> Vec<u8> {
        let mut planes = [100, 90, 160].map(|value| vec![value; width * height]);
        let [luma, blue, red] = &mut planes;
        assert!(mark.draw(luma, [blue, red], width));
        let [luma, ..] = planes;
        luma
    }

    fn jpeg(luma: &[u8], width: usize, quality: u8) -> Vec<u8> {
        let mut file = Vec::new();
        let encoder = Encoder::new(&mut file, quality);
        encoder.encode(luma, width as u16, (luma.len() / width) as u16, ColorType::Luma).unwrap();
        file
    }

    #[test]
    fn the_octets_are_those_of_the_documented_vectors() {
        let text = include_str!("../../../../../testdata/desk/vectors.json");
        let Vectors { marks } = serde_json::from_str(text).unwrap();
        assert!(marks.len() >= 3);
        for Vector { camera, frame, time_us, hex } in marks {
            let mark = Mark { camera, frame, time_us };
            let octets: Vec<String> = mark.octets().iter().map(|octet| format!("{octet:02x}")).collect();
            assert_eq!(octets.concat(), hex);
            assert_eq!(Mark::parse(&mark.octets()), Ok(mark));
        }
        assert_eq!(crc16(b"123456789"), 0x29B1);
    }

    #[test]
    fn a_mark_is_read_from_pictures_of_each_size_after_strong_compression() {
        for (width, height) in [(448, 16), (480, 360), (640, 480), (1280, 720), (1920, 1080)] {
            let luma = marked(MARK, width, height);
            assert_eq!(Mark::read(Luma::new(&luma, width, height).unwrap()), Ok(MARK), "{width}");
            for quality in [90, 50, 10] {
                assert_eq!(Mark::read_jpeg(&jpeg(&luma, width, quality)), Ok(MARK), "{width} at quality {quality}");
            }
        }
    }

    #[test]
    fn random_marks_are_read_from_noisy_pictures_at_quality_50() {
        let mut rng = Rng::new(3);
        for _ in 0..100 {
            let time_us = rng.next_u64() % TIMES;
            let mark = Mark { camera: rng.below(16) as u8, frame: rng.next_u64() as u32, time_us };
            let mut luma = marked(mark, 640, 48);
            luma.iter_mut().for_each(|sample| *sample = (f64::from(*sample) + rng.between(-40.0, 40.0)) as u8);
            assert_eq!(Mark::read_jpeg(&jpeg(&luma, 640, 50)), Ok(mark));
        }
    }

    #[test]
    fn a_picture_without_a_mark_has_none_and_a_damaged_mark_is_refused() {
        let mut rng = Rng::new(5);
        let size = 640 * 16;
        for _ in 0..200 {
            let luma: Vec<u8> = (0..size).map(|_| rng.next_u64() as u8).collect();
            assert_eq!(Mark::read(Luma::new(&luma, 640, 16).unwrap()), Err(MarkError::Absent));
        }
        let mut luma = marked(MARK, 640, 16);
        // One cell in the frame number.
        luma.chunks_exact_mut(640)
            .take(8)
            .for_each(|row| row[160..168].iter_mut().for_each(|sample| *sample = 251 - *sample));
        assert_eq!(Mark::read(Luma::new(&luma, 640, 16).unwrap()), Err(MarkError::Checksum));
        for (width, height) in [(447, 480), (640, 15), (0, 0)] {
            let luma = vec![0; width * height];
            assert_eq!(Mark::read(Luma::new(&luma, width, height).unwrap()), Err(MarkError::Absent));
        }
        assert_eq!(Mark::read_jpeg(b"not a picture"), Err(MarkError::Picture));
        assert!(Luma::new(&[0; 5], 3, 2).is_none());
    }

    #[test]
    fn a_time_is_completed_by_a_nearby_one() {
        for (near, offset) in
            [(TIMES * 6 + 5, -9), (TIMES * 6 + 5, 9), (TIMES * 7 - 3, 100), (1_795_422_645_123_456, 0)]
        {
            let full = u64::wrapping_add_signed(near, offset);
            let mark = Mark { time_us: full % TIMES, ..MARK };
            assert_eq!(mark.unwrapped_time_us(near), full);
        }
    }
}
