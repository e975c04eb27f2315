//! A picture in memory, and its JPEG file.

use jpeg_encoder::{Encoder, EncodingError, ImageBuffer, JpegColorType, SamplingFactor};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// Number of the application segment of the frame segment.
const APP_SEGMENT: u8 = 9;
/// Largest width and height of a picture.
pub(super) const SIDE_MAX: usize = 4096;

/// Luma and chroma of a picture, each row by row with one sample for each pixel (full range, as in JFIF).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Picture {
    pub(super) width: usize,
    pub(super) height: usize,
    /// Luma, blue difference, red difference.
    pub(super) planes: [Vec<u8>; 3],
}

/// The file is not a picture that can be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the file is not a JPEG picture of at most {SIDE_MAX} x {SIDE_MAX} pixels")]
pub(super) struct NotAPicture;

/// The file does not fit into the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the picture does not fit into the buffer")]
pub(super) struct TooLarge;

impl Picture {
    /// Changes the size. The samples are those of the last picture or 0.
    pub(super) fn resize(&mut self, width: usize, height: usize) {
        (self.width, self.height) = (width, height);
        self.planes.iter_mut().for_each(|plane| plane.resize(width * height, 0));
    }

    /// Encodes the picture as JPEG with 4:2:0 subsampling and the content of an application segment. Returns the length of the
    /// file.
    pub(super) fn encode(&self, quality: u8, segment: &[u8], out: &mut [u8]) -> Result<usize, TooLarge> {
        let room = out.len();
        let mut rest = out;
        self.encode_into(quality, segment, &mut rest).map_err(|_| TooLarge)?;
        Ok(room - rest.len())
    }

    fn encode_into(&self, quality: u8, segment: &[u8], out: &mut &mut [u8]) -> Result<(), EncodingError> {
        let mut encoder = Encoder::new(out, quality.clamp(1, 100));
        encoder.set_sampling_factor(SamplingFactor::F_2_2);
        encoder.add_app_segment(APP_SEGMENT, segment.to_vec())?;
        encoder.encode_image(self)
    }

    /// Decodes a JPEG file. The caller has checked its segments, which limits the memory by the length of the file.
    pub(super) fn decode(&mut self, file: &[u8]) -> Result<(), NotAPicture> {
        let options = DecoderOptions::default()
            .set_max_width(SIDE_MAX)
            .set_max_height(SIDE_MAX)
            .jpeg_set_out_colorspace(ColorSpace::YCbCr);
        let mut decoder = JpegDecoder::new_with_options(ZCursor::new(file), options);
        let samples = decoder.decode().map_err(|_| NotAPicture)?;
        let (width, height) = decoder.dimensions().ok_or(NotAPicture)?;
        if samples.len() != 3 * width * height {
            return Err(NotAPicture);
        }
        self.resize(width, height);
        for (index, plane) in self.planes.iter_mut().enumerate() {
            let of_plane = samples.iter().skip(index).step_by(3);
            plane.iter_mut().zip(of_plane).for_each(|(to, from)| *to = *from);
        }
        Ok(())
    }

    /// Writes this picture, reduced to a smaller size, into `small`. Each new sample is the mean of an area.
    pub(super) fn reduce(&self, width: usize, height: usize, small: &mut Self) {
        let (width, height) = (width.clamp(1, self.width.max(1)), height.clamp(1, self.height.max(1)));
        small.resize(width, height);
        for (from, to) in self.planes.iter().zip(&mut small.planes) {
            for (y, row) in to.chunks_exact_mut(width).enumerate() {
                let rows = y * self.height / height..(y + 1) * self.height / height;
                for (x, sample) in row.iter_mut().enumerate() {
                    let columns = x * self.width / width..(x + 1) * self.width / width;
                    *sample = mean(from, self.width, rows.clone(), columns);
                }
            }
        }
    }
}

fn mean(plane: &[u8], width: usize, rows: std::ops::Range<usize>, columns: std::ops::Range<usize>) -> u8 {
    let count = (rows.len() * columns.len()).max(1) as u32;
    let row = |y: usize| plane[y * width + columns.start..y * width + columns.end].iter().map(|one| u32::from(*one));
    (rows.flat_map(row).sum::<u32>() / count) as u8
}

impl ImageBuffer for &Picture {
    fn get_jpeg_color_type(&self) -> JpegColorType {
        JpegColorType::Ycbcr
    }

    fn width(&self) -> u16 {
        self.width as u16
    }

    fn height(&self) -> u16 {
        self.height as u16
    }

    fn fill_buffers(&self, y: u16, buffers: &mut [Vec<u8>; 4]) {
        let start = usize::from(y) * self.width;
        for (plane, buffer) in self.planes.iter().zip(buffers) {
            buffer.extend_from_slice(&plane[start..start + self.width]);
        }
    }
}

#[cfg(test)]
mod tests {
    use viaduct_units::Rng;

    use super::*;

    /// Returns a picture with soft gradients.
    fn gradient(width: usize, height: usize) -> Picture {
        let mut picture = Picture::default();
        picture.resize(width, height);
        for (index, plane) in picture.planes.iter_mut().enumerate() {
            for (at, sample) in plane.iter_mut().enumerate() {
                *sample = (40 + at % width * 100 / width + at / width * 50 / height + 10 * index) as u8;
            }
        }
        picture
    }

    fn encoded(picture: &Picture, quality: u8) -> Vec<u8> {
        let mut file = vec![0; 1 << 20];
        let length = picture.encode(quality, b"segment", &mut file).unwrap();
        file.truncate(length);
        file
    }

    #[test]
    fn a_picture_survives_encoding_and_decoding() {
        let picture = gradient(100, 60);
        let mut decoded = Picture::default();
        decoded.decode(&encoded(&picture, 95)).unwrap();
        assert_eq!((decoded.width, decoded.height), (100, 60));
        for (before, after) in picture.planes.iter().zip(&decoded.planes) {
            let worst = before.iter().zip(after).map(|(a, b)| a.abs_diff(*b)).max();
            assert!(worst.is_some_and(|worst| worst < 12), "{worst:?}");
        }
    }

    #[test]
    fn a_lower_quality_leads_to_a_shorter_file() {
        let mut rng = Rng::new(1);
        let mut picture = gradient(320, 240);
        picture.planes[0].iter_mut().for_each(|sample| *sample = sample.wrapping_add(rng.below(20) as u8));
        let lengths: Vec<usize> = [90, 75, 50, 25, 10].map(|quality| encoded(&picture, quality).len()).into();
        assert!(lengths.is_sorted_by(|a, b| a > b), "{lengths:?}");
    }

    #[test]
    fn a_file_that_does_not_fit_is_an_error() {
        assert_eq!(gradient(320, 240).encode(90, b"", &mut [0; 2000]), Err(TooLarge));
    }

    #[test]
    fn a_reduced_picture_has_the_means_of_areas() {
        let picture = gradient(64, 48);
        let mut small = Picture::default();
        picture.reduce(32, 24, &mut small);
        assert_eq!((small.width, small.height, small.planes[0].len()), (32, 24, 32 * 24));
        let expected = [0, 1, 64, 65].map(|at| u32::from(picture.planes[0][at])).iter().sum::<u32>() / 4;
        assert_eq!(u32::from(small.planes[0][0]), expected);
        picture.reduce(48, 36, &mut small);
        assert_eq!(small.planes[2].len(), 48 * 36);
    }

    #[test]
    fn other_files_are_not_decoded() {
        let file = encoded(&gradient(32, 32), 50);
        let mut picture = Picture::default();
        for wrong in [&b""[..], b"\xff\xd8", &file[..20], b"GIF89a"] {
            assert_eq!(picture.decode(wrong), Err(NotAPicture));
        }
    }
}
