//! Division of a frame into symbols.

use std::ops::Range;

use crate::limits::{FRAME_OCTETS_MAX, SYMBOLS_MAX};

/// The smallest number of recovery symbols of a frame.
const RECOVERIES_MIN: u16 = 8;

/// Division of a frame into source symbols of equal length. The last one may be shorter.
///
/// The code requires an even length, so the symbols of a frame are as short as possible: the length of the frame
/// divided by the number of symbols, rounded up to an even number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Octets of the frame, 1 to [`FRAME_OCTETS_MAX`].
    frame_octets: u32,
    /// Number of source symbols, 1 to [`SYMBOLS_MAX`].
    sources: u16,
}

impl Shape {
    /// Returns the division into symbols of at most the given length, or `None` if the frame is empty or too long.
    #[must_use]
    pub fn new(frame_octets: usize, symbol_octets_max: usize) -> Option<Self> {
        let longest = symbol_octets_max & !1;
        if frame_octets == 0 || frame_octets > FRAME_OCTETS_MAX || longest == 0 {
            return None;
        }
        let octets = u32::try_from(frame_octets).ok()?;
        let most = u16::try_from(frame_octets.div_ceil(longest)).ok()?;
        // Rounding up to an even length can make the last symbol empty, for short symbols only.
        let symbol_octets = even(frame_octets.div_ceil(usize::from(most)));
        Self::from_wire(octets, u16::try_from(frame_octets.div_ceil(symbol_octets)).ok()?)
    }

    /// Returns the division with the given numbers, or `None` if they contradict each other.
    #[must_use]
    pub fn from_wire(frame_octets: u32, sources: u16) -> Option<Self> {
        let shape = Self { frame_octets, sources };
        let within = 1..=FRAME_OCTETS_MAX;
        let valid = within.contains(&shape.octets()) && (1..=SYMBOLS_MAX).contains(&usize::from(sources));
        (valid && shape.octets().div_ceil(shape.symbol_octets()) == usize::from(sources)).then_some(shape)
    }

    /// Returns the octets of the frame.
    #[must_use]
    pub const fn frame_octets(self) -> u32 {
        self.frame_octets
    }

    /// Returns the octets of the frame.
    pub(crate) const fn octets(self) -> usize {
        self.frame_octets as usize
    }

    /// Returns the number of source symbols.
    #[must_use]
    pub const fn sources(self) -> u16 {
        self.sources
    }

    /// Returns the number of recovery symbols: a power of two of at least half the number of source symbols.
    #[must_use]
    pub const fn recoveries(self) -> u16 {
        let half = self.sources.div_ceil(2).next_power_of_two();
        if half < RECOVERIES_MIN { RECOVERIES_MIN } else { half }
    }

    /// Returns the number of source and recovery symbols.
    #[must_use]
    pub const fn symbols(self) -> u16 {
        self.sources + self.recoveries()
    }

    /// Returns the octets of each symbol except a shorter last source symbol.
    #[must_use]
    pub const fn symbol_octets(self) -> usize {
        even(self.octets().div_ceil(self.sources as usize))
    }

    /// Returns the octets of the frame that a source symbol contains, or `None` for other symbols.
    pub(crate) fn source_range(self, index: u16) -> Option<Range<usize>> {
        let start = usize::from(index) * self.symbol_octets();
        (index < self.sources).then(|| start..(start + self.symbol_octets()).min(self.octets()))
    }

    /// Returns the octets of the symbol with the given index, or `None` if there is no such symbol.
    pub(crate) fn symbol_octets_at(self, index: u16) -> Option<usize> {
        if index >= self.symbols() {
            return None;
        }
        Some(self.source_range(index).map_or(self.symbol_octets(), |range| range.len()))
    }
}

/// Returns the number rounded up to an even number.
const fn even(number: usize) -> usize {
    number + (number & 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raw_picture_has_as_many_symbols_as_it_needs() {
        let shape = Shape::new(374_000, 1369).unwrap();
        assert_eq!((shape.sources(), shape.symbol_octets(), shape.recoveries()), (274, 1366, 256));
        assert_eq!(shape.symbol_octets_at(273), Some(374_000 - 273 * 1366));
        assert_eq!(shape.symbol_octets_at(274), Some(1366));
        assert_eq!(shape.symbol_octets_at(274 + 256), None);
    }

    #[test]
    fn source_symbols_cover_each_frame_without_gap() {
        for octets in (1..3000).chain([FRAME_OCTETS_MAX - 1, FRAME_OCTETS_MAX]) {
            for longest in [2, 5, 1136, 1369] {
                let Some(shape) = Shape::new(octets, longest) else {
                    assert!(octets.div_ceil(longest & !1) > SYMBOLS_MAX);
                    continue;
                };
                assert!(shape.symbol_octets() <= longest, "{octets} {longest}");
                let covered: usize = (0..shape.sources()).map(|index| shape.source_range(index).unwrap().len()).sum();
                assert_eq!(covered, octets);
                assert!(shape.source_range(shape.sources() - 1).is_some_and(|range| !range.is_empty()));
            }
        }
    }

    #[test]
    fn contradicting_numbers_are_no_shape() {
        assert_eq!(Shape::from_wire(0, 1), None);
        assert_eq!(Shape::from_wire(10, 0), None);
        assert_eq!(Shape::from_wire(10, 11), None);
        assert_eq!(Shape::from_wire(FRAME_OCTETS_MAX as u32 + 1, 7000), None);
        assert_eq!(Shape::from_wire(u32::MAX, u16::MAX), None);
        assert_eq!(Shape::new(0, 1369), None);
        assert_eq!(Shape::new(FRAME_OCTETS_MAX + 1, 1369), None);
    }
}
