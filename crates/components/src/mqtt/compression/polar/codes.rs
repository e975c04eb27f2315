//! Numbers that are mostly small: an octet each, with the rest of large ones in a second stream.
//!
//! | octet | number | octets of the second stream |
//! |---|---|---|
//! | 0 to 239 | the octet | none |
//! | 240 to 254 | 240 + 256 * (octet - 240) + the next octet | one |
//! | 255 | the next eight octets, little-endian | eight |

/// Numbers that one octet holds.
const SHORT: u64 = 240;
/// The octet before a number of eight octets.
const LONGEST: u8 = u8::MAX;

/// Writes numbers.
#[derive(Default)]
pub(super) struct Writer {
    pub(super) short: Vec<u8>,
    pub(super) long: Vec<u8>,
}

impl Writer {
    #[inline]
    pub(super) fn put(&mut self, number: u64) {
        if number < SHORT {
            self.short.push(number as u8);
        } else {
            self.put_long(number);
        }
    }

    #[inline]
    pub(super) fn put_signed(&mut self, number: i64) {
        self.put(zigzag(number));
    }

    fn put_long(&mut self, number: u64) {
        let [low, ..] = (number - SHORT).to_le_bytes();
        match u8::try_from(SHORT + ((number - SHORT) >> 8)) {
            Ok(high) if high != LONGEST => {
                self.short.push(high);
                self.long.push(low);
            }
            _ => {
                self.short.push(LONGEST);
                self.long.extend_from_slice(&number.to_le_bytes());
            }
        }
    }
}

/// Reads numbers.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    pub(super) short: &'a [u8],
    pub(super) long: &'a [u8],
}

impl Reader<'_> {
    /// Returns the next number, or `None` at the end.
    #[inline]
    pub(super) fn get(&mut self) -> Option<u64> {
        let (octet, rest) = self.short.split_first()?;
        self.short = rest;
        let octet = u64::from(*octet);
        if octet < SHORT { Some(octet) } else { self.get_long(octet) }
    }

    #[inline]
    pub(super) fn get_signed(&mut self) -> Option<i64> {
        self.get().map(unzigzag)
    }

    /// Returns `true` if all numbers were read.
    pub(super) const fn is_empty(&self) -> bool {
        self.short.is_empty() && self.long.is_empty()
    }

    fn get_long(&mut self, octet: u64) -> Option<u64> {
        if octet == u64::from(LONGEST) {
            let (number, rest) = self.long.split_first_chunk()?;
            self.long = rest;
            return Some(u64::from_le_bytes(*number));
        }
        let (low, rest) = self.long.split_first()?;
        self.long = rest;
        Some(SHORT + ((octet - SHORT) << 8) + u64::from(*low))
    }
}

#[inline]
pub(super) const fn zigzag(number: i64) -> u64 {
    (number << 1 ^ (number >> 63)) as u64
}

#[inline]
pub(super) const fn unzigzag(code: u64) -> i64 {
    (code >> 1) as i64 ^ -((code & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_written() {
        let numbers = [0, 1, 239, 240, 495, 496, 4078, 4079, 4080, 1 << 20, u64::MAX - 1, u64::MAX];
        let mut writer = Writer::default();
        numbers.into_iter().for_each(|number| writer.put(number));
        [0, -1, i64::MIN, i64::MAX].into_iter().for_each(|number| writer.put_signed(number));
        let mut reader = Reader { short: &writer.short, long: &writer.long };
        assert!(numbers.into_iter().all(|number| reader.get() == Some(number)));
        assert!([0, -1, i64::MIN, i64::MAX].into_iter().all(|number| reader.get_signed() == Some(number)));
        assert!(reader.is_empty() && reader.get().is_none());
    }
}
