//! Frames of the baselines: a header and octets that cannot be compressed.
//!
//! | octets | field |
//! |---|---|
//! | 4 | camera, little-endian as all numbers |
//! | 4 | number of the frame |
//! | 8 | time at which the frame was taken, in nanoseconds of the monotonic clock |

use std::time::Duration;

use viaduct_units::Rng;

use crate::floor::nanos;
use crate::sys;

/// Octets of the header.
pub(super) const HEADER_OCTETS: usize = 16;

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) camera: u8,
    pub(super) number: u32,
    /// Time at which the frame was taken.
    pub(super) taken: Duration,
}

impl Header {
    /// Writes the header to the start of a frame.
    pub(super) fn write(&self, frame: &mut [u8]) {
        let fields = [
            u32::from(self.camera).to_le_bytes().as_slice(),
            &self.number.to_le_bytes(),
            &nanos(self.taken).to_le_bytes(),
        ]
        .concat();
        if let Some(header) = frame.get_mut(..HEADER_OCTETS) {
            header.copy_from_slice(&fields);
        }
    }

    /// Reads the header of a frame, or returns `None` if the frame is too short or its camera is out of range.
    pub(super) fn read(frame: &[u8]) -> Option<Self> {
        let (camera, rest) = frame.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        let taken = rest.first_chunk()?;
        Some(Self {
            camera: u8::try_from(u32::from_le_bytes(*camera)).ok()?,
            number: u32::from_le_bytes(*number),
            taken: Duration::from_nanos(u64::from_le_bytes(*taken)),
        })
    }

    /// Returns the time since the frame was taken, in nanoseconds.
    pub(super) fn age_ns(&self) -> u64 {
        nanos(sys::monotonic().saturating_sub(self.taken))
    }
}

/// Returns octets that cannot be compressed.
pub(super) fn payload(octets: usize) -> Vec<u8> {
    let mut random = Rng::new(374);
    std::iter::repeat_with(|| random.next_u64().to_le_bytes()).flatten().take(octets.max(HEADER_OCTETS)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written() {
        let mut frame = payload(64);
        let header = Header { camera: 3, number: 70_000, taken: Duration::from_nanos(1 << 40) };
        header.write(&mut frame);
        assert_eq!(Header::read(&frame), Some(header));
        assert_eq!(Header::read(&frame[..HEADER_OCTETS - 1]), None);
        frame[2] = 1;
        assert_eq!(Header::read(&frame), None, "there are at most 256 cameras");
    }
}
