//! Bodies whose blocks arrive in any order (RFC 9177), and the lists of blocks that are missing.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::blocks::JoinError;
use crate::budget::{Budget, Share};
use crate::codec::{Block, BlockSize};

/// Memory of a block in bytes in addition to its payload, so that many small blocks do not exceed the limit.
const BLOCK_OVERHEAD: usize = 80;
/// Blocks among which missing ones are searched, so that one block that never arrives does not make each other one expensive.
const SEARCHED: usize = 256;
/// Blocks that are sent without an answer in between (MAX_PAYLOADS).
pub(super) const SET: u32 = 10;

/// Returns the last number of the set of a block.
pub(super) const fn set_end(number: u32) -> u32 {
    number / SET * SET + SET - 1
}

/// A body of which some blocks have arrived.
#[derive(Debug)]
pub(super) struct Gathered {
    blocks: BTreeMap<u32, Bytes>,
    size: BlockSize,
    /// Number of the last block, or `None` before its arrival.
    last: Option<u32>,
    /// All blocks before this number have arrived.
    contiguous: u32,
    share: Share,
    limit: usize,
}

impl Gathered {
    pub(super) fn new(budget: &Budget, limit: usize, size: BlockSize) -> Self {
        Self { blocks: BTreeMap::new(), size, last: None, contiguous: 0, share: budget.share(), limit }
    }

    /// Adds a block. Does nothing if it has arrived before.
    pub(super) fn add(&mut self, block: Block, payload: &[u8]) -> Result<(), JoinError> {
        let unit = block.size.octets();
        let fills = payload.len() == unit || (!block.more && payload.len() <= unit);
        let beyond = self.last.is_some_and(|last| block.number > last || (block.more == (block.number == last)));
        if block.size != self.size || !fills || beyond {
            return Err(JoinError::Size);
        }
        if block.offset() + payload.len() > self.limit {
            return Err(JoinError::TooLarge);
        }
        if self.contains(block.number) {
            return Ok(());
        }
        if !block.more && self.highest().is_some_and(|highest| highest > block.number) {
            return Err(JoinError::Size);
        }
        if !self.share.grow(payload.len() + BLOCK_OVERHEAD) {
            return Err(JoinError::Exhausted);
        }
        self.blocks.insert(block.number, Bytes::copy_from_slice(payload));
        if !block.more {
            self.last = Some(block.number);
        }
        while self.blocks.contains_key(&self.contiguous) {
            self.contiguous += 1;
        }
        Ok(())
    }

    pub(super) fn contains(&self, number: u32) -> bool {
        self.blocks.contains_key(&number)
    }

    pub(super) fn is_complete(&self) -> bool {
        self.last.is_some_and(|last| self.contiguous > last)
    }

    /// Returns the number of the first block that has not arrived.
    pub(super) fn next(&self) -> u32 {
        self.contiguous
    }

    /// Returns the largest number of a block that has arrived.
    pub(super) fn highest(&self) -> Option<u32> {
        self.blocks.last_key_value().map(|(number, _)| *number)
    }

    /// Returns the first missing blocks up to and including `end`, at most a set. The list has at least the first one, and the others
    /// of the next [`SEARCHED`] blocks.
    pub(super) fn missing(&self, end: u32) -> Vec<u32> {
        let end = self.last.map_or(end, |last| last.min(end));
        let searched = (self.contiguous..=end).take(SEARCHED);
        searched.filter(|number| !self.blocks.contains_key(number)).take(SET as usize).collect()
    }

    /// Returns the body, which must be complete.
    pub(super) fn finish(self) -> Bytes {
        self.blocks.into_values().flatten().collect()
    }
}

/// Returns numbers as CBOR sequence (`application/missing-blocks+cbor-seq`).
pub(super) fn write_missing(numbers: &[u32]) -> Bytes {
    let mut octets = Vec::new();
    for number in numbers {
        let [a, b, c, d] = number.to_be_bytes();
        match number {
            0..=23 => octets.push(d),
            24..=0xFF => octets.extend_from_slice(&[0x18, d]),
            0x100..=0xFFFF => octets.extend_from_slice(&[0x19, c, d]),
            _ => octets.extend_from_slice(&[0x1A, a, b, c, d]),
        }
    }
    octets.into()
}

/// Reads at most a set of numbers of a CBOR sequence. Anything else ends the list.
pub(super) fn read_missing(mut octets: &[u8]) -> Vec<u32> {
    let mut numbers = Vec::new();
    while numbers.len() < SET as usize {
        let (number, rest) = match octets {
            [number @ 0..=23, rest @ ..] => (u32::from(*number), rest),
            [0x18, a, rest @ ..] => (u32::from(*a), rest),
            [0x19, a, b, rest @ ..] => (u32::from(u16::from_be_bytes([*a, *b])), rest),
            [0x1A, a, b, c, d, rest @ ..] => (u32::from_be_bytes([*a, *b, *c, *d]), rest),
            _ => break,
        };
        numbers.push(number);
        octets = rest;
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_missing_blocks_are_read_as_written() {
        let numbers = [0, 1, 23, 24, 255, 256, 65_535, 65_536, 1_048_575];
        assert_eq!(write_missing(&numbers)[..8], [0, 1, 23, 0x18, 24, 0x18, 255, 0x19]);
        assert_eq!(read_missing(&write_missing(&numbers)), numbers);
        assert_eq!(read_missing(&[5, 0x19, 1]), [5]);
        assert_eq!(read_missing(&[0; 100]).len(), 10);
    }

    #[test]
    fn blocks_are_joined_in_any_order() {
        let size = BlockSize::SMALLEST;
        let block = |number, more| Block { number, more, size };
        let mut body = Gathered::new(&Budget::new(1000), 64, size);
        assert_eq!(body.add(block(1, true), &[1; 16]), Ok(()));
        assert_eq!(body.missing(set_end(0)), [0, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(body.add(block(2, false), &[2; 3]), Ok(()));
        assert_eq!(body.add(block(2, true), &[2; 16]), Err(JoinError::Size), "two last blocks");
        assert_eq!(body.add(block(3, true), &[2; 16]), Err(JoinError::Size), "after the last block");
        assert_eq!(body.add(block(0, true), &[2; 15]), Err(JoinError::Size), "a short block");
        assert_eq!((body.missing(9), body.is_complete()), (vec![0], false));
        assert_eq!(body.add(block(0, true), &[0; 16]), Ok(()));
        assert_eq!(body.add(block(0, true), &[9; 16]), Ok(()), "a duplicate");
        assert!(body.is_complete());
        assert_eq!(body.finish(), [&[0; 16][..], &[1; 16], &[2; 3]].concat());
        let mut body = Gathered::new(&Budget::new(1 << 20), 1 << 20, size);
        for number in (1..5000).filter(|number| ![100, 4000].contains(number)) {
            assert_eq!(body.add(block(number, true), &[0; 16]), Ok(()));
        }
        assert_eq!(body.missing(4999), [0, 100], "the search is limited");
        assert_eq!((body.add(block(0, true), &[0; 16]), body.missing(4999)), (Ok(()), vec![100]));
        assert_eq!((body.add(block(100, true), &[0; 16]), body.missing(4999)), (Ok(()), vec![4000]));
        let mut body = Gathered::new(&Budget::new(20 + BLOCK_OVERHEAD), 64, size);
        assert_eq!(body.add(block(4, true), &[0; 16]), Err(JoinError::TooLarge));
        assert_eq!(body.add(block(0, true), &[0; 16]), Ok(()));
        assert_eq!(body.add(block(1, true), &[0; 16]), Err(JoinError::Exhausted));
    }
}
