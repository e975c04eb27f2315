//! The streams of a message. A stream of numbers is two streams of octets, see [`super::codes`].
//!
//! | stream | content |
//! |---|---|
//! | shapes | an octet for each point: the beams that are left out since the previous point, and the azimuth |
//! | distances | differences to the previous point of the same beam in steps |
//! | beams | places of the beams after a longer gap |
//! | columns | differences of azimuths of columns from the usual ones in steps |
//! | azimuths | larger differences from the expected azimuth of a beam |
//! | long residuals | larger differences from predicted coordinates |
//! | column times | differences of times of columns from the usual ones, in neighbouring float32 |
//! | times | differences from the expected times of points, in neighbouring float32 |
//! | raw | coordinates without steps, as differences (exclusive or) to the previous ones |
//! | residuals | an octet for each other point: differences from the predicted coordinates |
//! | intensities | differences to the previous point of the same beam |
//! | plain | other octets: differences (exclusive or) to the previous point of the same beam |

use super::codes::{Reader, Writer};
use super::layout::Octets;

/// Number of streams of octets.
pub(super) const COUNT: usize = 19;
/// Part of a shape that has the number of beams that are left out.
pub(super) const SKIP: u8 = 0x0F;
/// The beam follows in a stream.
pub(super) const SKIP_LONG: u8 = 15;
/// Position in a shape of the difference to the expected azimuth.
pub(super) const AZIMUTH_SHIFT: u32 = 4;
/// The difference to the expected azimuth follows in a stream.
pub(super) const AZIMUTH_LONG: u8 = 14;
/// The coordinates follow as they are.
pub(super) const RAW: u8 = 15;
/// Values of the digits of a residual, one for each coordinate. With the last one, the difference follows in a stream.
pub(super) const DIGITS: u8 = 6;
pub(super) const DIGIT_LONG: u8 = DIGITS - 1;

/// Streams that are written.
#[derive(Default)]
pub(super) struct Written {
    pub(super) shapes: Vec<u8>,
    pub(super) distances: Writer,
    pub(super) beams: Writer,
    pub(super) columns: Writer,
    pub(super) azimuths: Writer,
    pub(super) long_residuals: Writer,
    pub(super) column_times: Writer,
    pub(super) times: Writer,
    pub(super) raw: Vec<u8>,
    pub(super) residuals: Vec<u8>,
    pub(super) intensities: Vec<u8>,
    pub(super) plain: Vec<u8>,
}

impl Written {
    /// Returns the streams in their order.
    pub(super) fn into_streams(self) -> Vec<Vec<u8>> {
        let Self { distances, beams, columns, azimuths, long_residuals, column_times, times, .. } = self;
        let numbers = [distances, beams, columns, azimuths, long_residuals, column_times, times];
        let numbers = numbers.into_iter().flat_map(|numbers| [numbers.short, numbers.long]);
        let last = [self.raw, self.residuals, self.intensities, self.plain];
        std::iter::once(self.shapes).chain(numbers).chain(last).collect()
    }
}

/// Streams that are read.
pub(super) struct Streams<'a> {
    pub(super) shapes: &'a [u8],
    pub(super) distances: Reader<'a>,
    pub(super) beams: Reader<'a>,
    pub(super) columns: Reader<'a>,
    pub(super) azimuths: Reader<'a>,
    pub(super) long_residuals: Reader<'a>,
    pub(super) column_times: Reader<'a>,
    pub(super) times: Reader<'a>,
    pub(super) raw: Octets<'a>,
    pub(super) residuals: &'a [u8],
    pub(super) intensities: &'a [u8],
    pub(super) plain: &'a [u8],
}

impl<'a> Streams<'a> {
    /// Splits streams with these lengths. Returns `None` if they are not all of the octets.
    pub(super) fn split(lengths: [usize; COUNT], mut octets: Octets<'a>) -> Option<Self> {
        let mut streams = [&[][..]; COUNT];
        for (stream, length) in streams.iter_mut().zip(lengths) {
            *stream = octets.split(length)?;
        }
        let [shapes, numbers @ .., raw, residuals, intensities, plain] = streams;
        let mut numbers = numbers.as_chunks().0.iter().map(|[short, long]| Reader { short, long });
        octets.0.is_empty().then_some(())?;
        Some(Self {
            shapes,
            distances: numbers.next()?,
            beams: numbers.next()?,
            columns: numbers.next()?,
            azimuths: numbers.next()?,
            long_residuals: numbers.next()?,
            column_times: numbers.next()?,
            times: numbers.next()?,
            raw: Octets(raw),
            residuals,
            intensities,
            plain,
        })
    }
}
