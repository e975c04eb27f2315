//! Bodies in blocks (RFC 7959): cutting and joining.

use bytes::Bytes;

use crate::budget::{Budget, Share};
use crate::codec::{Block, BlockSize};

/// Returns a block of a body and its payload, or `None` if the body ends before the block. `octets` is the size of the
/// payload, a multiple of the block size.
pub(crate) fn cut(body: &Bytes, number: u32, size: BlockSize, octets: usize) -> Option<(Block, Bytes)> {
    let start = (Block { number, more: false, size }).offset();
    if start >= body.len() && number > 0 {
        return None;
    }
    let end = body.len().min(start + octets);
    Some((Block { number, more: end < body.len(), size }, body.slice(start..end)))
}

/// Reasons for which a block does not continue a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JoinError {
    /// The block does not follow the one before.
    Gap,
    /// The payload of a block that is not the last one does not fill the block.
    Size,
    /// The body is larger than permitted.
    TooLarge,
    /// All bodies of the machine together are larger than permitted.
    Exhausted,
}

/// A body of which the first blocks have arrived in order.
#[derive(Debug)]
pub(crate) struct Joined {
    body: Vec<u8>,
    share: Share,
    limit: usize,
}

impl Joined {
    /// Returns the empty body.
    pub(crate) fn new(budget: &Budget, limit: usize) -> Self {
        Self { body: Vec::new(), share: budget.share(), limit }
    }

    /// Appends a block. Returns `true` if it is the last one.
    pub(crate) fn join(&mut self, block: Block, payload: &[u8]) -> Result<bool, JoinError> {
        if block.offset() != self.body.len() {
            return Err(JoinError::Gap);
        }
        let unit = block.size.octets();
        let fills = payload.len() == unit || (block.size == BlockSize::BERT && payload.len().is_multiple_of(unit));
        if (block.more && (!fills || payload.is_empty())) || (block.size != BlockSize::BERT && payload.len() > unit) {
            return Err(JoinError::Size);
        }
        if self.body.len() + payload.len() > self.limit {
            return Err(JoinError::TooLarge);
        }
        if !self.share.grow(payload.len()) {
            return Err(JoinError::Exhausted);
        }
        self.body.extend_from_slice(payload);
        Ok(!block.more)
    }

    /// Returns the number of octets.
    pub(crate) fn octets(&self) -> usize {
        self.body.len()
    }

    /// Returns the body and ends its share of the memory.
    pub(crate) fn finish(self) -> Bytes {
        self.body.into()
    }
}
