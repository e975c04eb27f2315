//! Reads canonical octet encoding rules (COER, ITU-T X.696) one field at a time.

use super::SecurityError;

type Read<T> = Result<T, SecurityError>;

/// A position in octets that are read from front to back.
#[derive(Clone, Debug)]
pub(super) struct Reader<'a> {
    octets: &'a [u8],
    at: usize,
}

/// Bits that announce which optional components of a sequence are present, the extension bit first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Preamble(u8);

impl Preamble {
    /// Returns `true` if the bit at that place, from 0, is set.
    pub(super) const fn has(self, bit: u32) -> bool {
        self.0 & (0x80 >> bit) != 0
    }
}

impl<'a> Reader<'a> {
    pub(super) const fn new(octets: &'a [u8]) -> Self {
        Self { octets, at: 0 }
    }

    /// Returns the number of octets that were read.
    pub(super) const fn position(&self) -> usize {
        self.at
    }

    /// Returns the octets that were read since an earlier position.
    pub(super) fn since(&self, start: usize) -> &'a [u8] {
        self.octets.get(start..self.at).unwrap_or_default()
    }

    /// Reads `count` octets.
    pub(super) fn take(&mut self, count: usize) -> Read<&'a [u8]> {
        let rest = self.octets.get(self.at..).unwrap_or_default();
        let taken = rest.get(..count).ok_or(SecurityError::Invalid)?;
        self.at += count;
        Ok(taken)
    }

    /// Reads a field of fixed length.
    pub(super) fn array<const N: usize>(&mut self) -> Read<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| SecurityError::Invalid)
    }

    /// Reads an octet: `Uint8`, or an enumeration with fewer than 128 values.
    pub(super) fn octet(&mut self) -> Read<u8> {
        let [octet] = self.array()?;
        Ok(octet)
    }

    /// Reads the preamble of a sequence with at most seven optional components.
    pub(super) fn preamble(&mut self) -> Read<Preamble> {
        self.octet().map(Preamble)
    }

    /// Reads the tag of a choice and returns the number of the alternative. Numbers above 62 are in no choice of the
    /// standard.
    pub(super) fn alternative(&mut self) -> Read<u8> {
        match self.octet()? {
            tag @ 0x80..=0xBE => Ok(tag & 0x3F),
            _ => Err(SecurityError::Invalid),
        }
    }

    /// Reads a length determinant (X.696, 8.6). The length is not yet compared with the octets that are left.
    fn length(&mut self) -> Read<usize> {
        match self.octet()? {
            short @ 0..=0x7F => Ok(short.into()),
            long @ 0x81..=0x84 => self.unsigned((long & 0x7F).into()),
            _ => Err(SecurityError::Invalid),
        }
    }

    fn unsigned(&mut self, octets: usize) -> Read<usize> {
        let value = self.take(octets)?.iter().fold(0_u64, |value, octet| value << 8 | u64::from(*octet));
        usize::try_from(value).map_err(|_| SecurityError::Invalid)
    }

    /// Reads a field that begins with its length: an octet string of variable size, an open type, an unbounded integer.
    pub(super) fn sized(&mut self) -> Read<&'a [u8]> {
        let length = self.length()?;
        self.take(length)
    }

    /// Reads each element of a list by `element`. An element has at least one octet, so the octets that are left bound the
    /// work, whatever the count claims.
    pub(super) fn list(&mut self, mut element: impl FnMut(&mut Self) -> Read<()>) -> Read<()> {
        let octets = usize::from(self.octet()?);
        if !(1..=4).contains(&octets) {
            return Err(SecurityError::Invalid);
        }
        let count = self.unsigned(octets)?;
        for _ in 0..count {
            let start = self.at;
            element(self)?;
            if self.at == start {
                return Err(SecurityError::Invalid);
            }
        }
        Ok(())
    }

    /// Skips the extension additions of a sequence: a bit string of those present, then each as an open type.
    pub(super) fn skip_extensions(&mut self) -> Read<()> {
        let (unused, bits) = self.sized()?.split_first().ok_or(SecurityError::Invalid)?;
        if *unused > 7 {
            return Err(SecurityError::Invalid);
        }
        let present: u32 = bits.iter().map(|octet| octet.count_ones()).sum();
        for _ in 0..present {
            self.sized()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_limited_to_the_remaining_octets() {
        assert_eq!(Reader::new(&[2, 7, 8, 9]).sized(), Ok(&[7, 8][..]));
        assert_eq!(Reader::new(&[0x81, 1, 7]).sized(), Ok(&[7][..]));
        assert_eq!(Reader::new(&[0x82, 0, 1, 7]).sized(), Ok(&[7][..]));
        for octets in [&[][..], &[3, 1, 2], &[0x80], &[0x85, 0, 0, 0, 0, 0], &[0x84, 0xFF, 0xFF, 0xFF, 0xFF, 1]] {
            assert_eq!(Reader::new(octets).sized(), Err(SecurityError::Invalid), "{octets:?}");
        }
    }

    #[test]
    fn a_list_ends_with_the_octets() {
        let mut count = 0;
        let mut read = |octets: &[u8]| {
            count = 0;
            let result = Reader::new(octets).list(|reader| {
                count += 1;
                reader.octet().map(drop)
            });
            (result, count)
        };
        assert_eq!(read(&[1, 2, 7, 8]), (Ok(()), 2));
        assert_eq!(read(&[4, 0xFF, 0xFF, 0xFF, 0xFF, 7, 8]), (Err(SecurityError::Invalid), 3));
        assert_eq!(read(&[5, 0, 0, 0, 0, 1, 7]), (Err(SecurityError::Invalid), 0));
        assert_eq!(Reader::new(&[1, 200]).list(|_| Ok(())), Err(SecurityError::Invalid), "elements without octets");
    }

    #[test]
    fn extensions_are_skipped_by_their_lengths() {
        let mut reader = Reader::new(&[2, 5, 0b1010_0000, 1, 9, 2, 8, 8, 42]);
        assert_eq!(reader.skip_extensions(), Ok(()));
        assert_eq!(reader.octet(), Ok(42));
        assert_eq!(Reader::new(&[2, 5, 0b1110_0000, 1, 9]).skip_extensions(), Err(SecurityError::Invalid));
        assert_eq!(Reader::new(&[0]).skip_extensions(), Err(SecurityError::Invalid));
    }
}
