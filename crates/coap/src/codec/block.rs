//! Values of the options Block1, Block2, Q-Block1 and Q-Block2 (RFC 7959, 2.2; RFC 9177, 4.2).

/// Largest number of a block: 20 bits.
const NUMBER_MAX: u32 = (1 << 20) - 1;

/// Size of a block: a power of two from 16 to 1024 octets, or several blocks of 1024 octets on a reliable transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockSize(u8);

impl BlockSize {
    /// 16 octets.
    pub const SMALLEST: Self = Self(0);
    /// 1024 octets.
    pub const LARGEST: Self = Self(6);
    /// Several blocks of 1024 octets in one message (BERT; RFC 8323, 6).
    pub const BERT: Self = Self(7);

    /// Returns the size with the exponent `SZX`, 0 to 7, or `None`.
    #[must_use]
    pub const fn from_exponent(exponent: u8) -> Option<Self> {
        if exponent <= 7 { Some(Self(exponent)) } else { None }
    }

    /// Returns the largest size of at most this number of octets, 16 to 1024 octets.
    #[must_use]
    pub fn at_most(octets: usize) -> Self {
        let exponent = (octets.max(16) / 16).ilog2().min(6);
        Self(u8::try_from(exponent).unwrap_or(6))
    }

    /// Returns the exponent `SZX`, 0 to 7.
    #[must_use]
    pub const fn exponent(self) -> u8 {
        self.0
    }

    /// Returns the unit of block numbers in octets, 16 to 1024.
    #[must_use]
    pub const fn octets(self) -> usize {
        if self.0 >= 6 { 1024 } else { 16 << self.0 }
    }
}

/// A block of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Number of the block, 0 to 2^20 - 1.
    pub number: u32,
    /// `true` if more blocks follow.
    pub more: bool,
    /// Size of the blocks.
    pub size: BlockSize,
}

impl Block {
    /// Returns the block with the value of an option, or `None` if the value is invalid.
    #[must_use]
    pub fn decode(value: &[u8]) -> Option<Self> {
        let value = super::decode_uint(value).filter(|value| value >> 4 <= NUMBER_MAX)?;
        let size = BlockSize((value & 7) as u8);
        Some(Self { number: value >> 4, more: value & 8 != 0, size })
    }

    /// Returns the value of the option.
    #[must_use]
    pub const fn value(self) -> u32 {
        self.number << 4 | (self.more as u32) << 3 | self.size.0 as u32
    }

    /// Returns the block at the same position with a size of at most `size`.
    #[must_use]
    pub const fn reduced(self, size: BlockSize) -> Self {
        if size.0 >= self.size.0 {
            return self;
        }
        let factor = (self.size.octets() / size.octets()) as u32;
        Self { number: self.number.saturating_mul(factor), more: self.more, size }
    }

    /// Returns the position of the first octet in the body.
    #[must_use]
    pub const fn offset(self) -> usize {
        self.number as usize * self.size.octets()
    }
}
