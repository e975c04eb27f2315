//! Entry points for the fuzz targets: files of cameras, and marks in pictures.

use super::jpeg::{FILE_OCTETS_MAX, HuffmanTables, JpegFile};
use super::mark::{Luma, Mark};
use super::picture::Picture;
use crate::frame_segment::FrameSegment;

/// Width of a picture of samples, in pixels.
const WIDTH: usize = 448;
/// Frame segment of the seeds.
const SEGMENT: FrameSegment = FrameSegment { camera: 1, frame: 2, time_us: 3, mark: false, reduced: false };

/// Checks a file: if its segments are correct, a completed file has the same size and the frame segment.
///
/// # Panics
/// Panics if an invariant is violated.
pub fn jpeg_file(octets: &[u8]) {
    let _ = FrameSegment::read(octets);
    let Ok(file) = JpegFile::parse(octets) else { return };
    let tables = HuffmanTables::new();
    let mut complete = vec![0; file.complete_len(&tables)];
    file.write_complete(&SEGMENT.to_octets(), &tables, &mut complete);
    assert_eq!(FrameSegment::read(&complete), Some(SEGMENT));
    match JpegFile::parse(&complete) {
        Ok(again) => assert_eq!(again.size, file.size),
        Err(_) => assert!(complete.len() > FILE_OCTETS_MAX),
    }
    let _ = Picture::default().decode(octets);
}

/// Reads the mark of a picture of arbitrary samples. A mark that is read remains the same after it is drawn.
///
/// # Panics
/// Panics if an invariant is violated.
pub fn mark(samples: &[u8]) {
    let height = samples.len() / WIDTH;
    let picture = Luma::new(&samples[..WIDTH * height], WIDTH, height);
    if let Some(Ok(mark)) = picture.map(Mark::read) {
        let again = Luma::new(&marked(mark, height), WIDTH, height).map(Mark::read);
        assert_eq!(again, Some(Ok(mark)));
    }
}

/// Returns the samples of a grey picture with a mark, 448 pixels wide.
#[must_use]
pub fn marked(mark: Mark, height: usize) -> Vec<u8> {
    let [mut luma, mut blue, mut red] = [128, 128, 128].map(|grey| vec![grey; WIDTH * height]);
    mark.draw(&mut luma, [&mut blue, &mut red], WIDTH);
    luma
}

/// Returns a file of 16 x 8 pixels with a frame segment.
#[must_use]
pub fn file() -> Vec<u8> {
    let (mut picture, mut file) = (Picture::default(), vec![0; 4096]);
    picture.resize(16, 8);
    let length = picture.encode(50, &SEGMENT.to_octets()[4..], &mut file).unwrap_or(0);
    file.truncate(length);
    file
}
