//! Buffers that are filled in place and reused.
//!
//! A topic whose pool was sized before its first loan has one region of memory, mapped and touched at once and cut into
//! buffers of one length. A loan pops a number from a lock-free list, and filling the buffer causes no page fault. The
//! pool of other topics grows on demand.

mod free_list;
mod growing;
mod huge_pages;
mod size;
mod sys;
mod usage;

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde::Serialize;

use crate::error::OpenError;
pub use size::{LOAN_BYTES_MAX, POOL_BUFFERS_MAX, POOL_BYTES_MAX, PoolSize};

use growing::{Growing, Grown, LOANS_MAX};
use sys::{Slot, Slots};
use usage::Usage;

/// A reason for which a buffer is not available.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoanError {
    /// Every buffer of the topic's pool is in use: a reader holds samples for too long.
    #[error("all {buffers} buffers of topic `{topic}` are in use: a subscriber holds its samples")]
    Exhausted {
        /// The topic.
        topic: String,
        /// Buffers of its pool.
        buffers: usize,
    },
    /// The length exceeds the buffers of the topic's pool, or the largest possible message.
    #[error("a loan of {length} bytes exceeds the {max} bytes of a buffer of topic `{topic}`{}", remedy(topic, *max))]
    TooLong {
        /// The topic.
        topic: String,
        /// The requested length, in bytes.
        length: usize,
        /// Maximum length of a loan on this topic, in bytes.
        max: usize,
    },
}

/// Names the config key to increase, unless the buffers have the maximum length.
fn remedy(topic: &str, max: usize) -> String {
    if max < LOAN_BYTES_MAX { format!("; increase `topics.{topic}.pool.bytes`") } else { String::new() }
}

/// A reason for which a pool is not sized.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// The topic cannot exist.
    #[error(transparent)]
    Topic(#[from] OpenError),
    /// The number or the length of the buffers is outside the limits.
    #[error(
        "topic `{topic}`: a pool has 1 to {POOL_BUFFERS_MAX} buffers of 1 to {LOAN_BYTES_MAX} bytes, together at most \
         {POOL_BYTES_MAX}, and not {} of {}", size.buffers, size.bytes
    )]
    Size {
        /// The topic.
        topic: String,
        /// The requested size.
        size: PoolSize,
    },
    /// The topic's pool is sized already, or has loaned buffers before.
    #[error("topic `{topic}`: a pool is sized once, before the first loan")]
    TooLate {
        /// The topic.
        topic: String,
    },
    /// The system has no memory left.
    #[error("topic `{topic}`: no memory for {} buffers of {} bytes: {cause}", size.buffers, size.bytes)]
    Memory {
        /// The topic.
        topic: String,
        /// The requested size.
        size: PoolSize,
        /// Error of the system.
        cause: std::io::Error,
    },
}

/// A pool of buffers at one time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PoolSnapshot {
    /// Maximum number of buffers in use at a time.
    pub buffers: usize,
    /// Maximum length of a loan, in bytes.
    pub bytes: usize,
    /// Memory of a sized pool; absent if the pool grows on demand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<RegionSnapshot>,
    /// Buffers in use.
    pub loaned: usize,
    /// Largest number of buffers that were in use at a time.
    pub most_loaned: usize,
    /// Loans that were refused because all buffers were in use.
    pub exhausted: u64,
}

/// Memory of a sized pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RegionSnapshot {
    /// Size of all pages, in bytes.
    pub bytes: usize,
    /// Bytes in huge pages when the pool was created, as reported by the kernel.
    pub huge_page_bytes: usize,
}

/// The buffers of one topic. A buffer returns when its last reader drops it.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    /// Set by the first loan, or before that by [`Self::size`].
    kind: OnceLock<Kind>,
}

#[derive(Debug)]
enum Kind {
    Sized(Arc<Slots>, RegionSnapshot),
    Growing(Arc<Growing>),
}

impl Pool {
    /// Allocates the buffers.
    pub(crate) fn size(&self, topic: &str, size: PoolSize) -> Result<PoolSnapshot, PoolError> {
        let too_late = || PoolError::TooLate { topic: topic.to_owned() };
        if self.kind.get().is_some() {
            return Err(too_late());
        }
        let kind = Kind::sized(topic, size)?;
        let snapshot = kind.snapshot();
        self.kind.set(kind).map_err(|_| too_late())?;
        Ok(snapshot)
    }

    /// Returns a buffer of `length` bytes. It contains data of earlier loans.
    pub(crate) fn loan(&self, topic: &str, length: usize) -> Result<Loan, LoanError> {
        let kind = self.kind.get_or_init(|| Kind::Growing(Arc::default()));
        let max = kind.bytes();
        if length > max {
            return Err(LoanError::TooLong { topic: topic.to_owned(), length, max });
        }
        let memory = match kind {
            Kind::Sized(slots, _) => slots.loan().map(Memory::Slot),
            Kind::Growing(growing) => growing.loan(length).map(Memory::Grown),
        };
        let exhausted = || LoanError::Exhausted { topic: topic.to_owned(), buffers: kind.buffers() };
        Ok(Loan { buffer: Buffer { memory: memory.ok_or_else(exhausted)?, length } })
    }

    /// Returns `true` if the buffers were allocated before the first loan.
    pub(crate) fn is_sized(&self) -> bool {
        matches!(self.kind.get(), Some(Kind::Sized(..)))
    }

    /// Returns the usage, or `None` before the first loan.
    pub(crate) fn snapshot(&self) -> Option<PoolSnapshot> {
        self.kind.get().map(Kind::snapshot)
    }
}

impl Kind {
    fn sized(topic: &str, size: PoolSize) -> Result<Self, PoolError> {
        if size.region_bytes().is_none() {
            return Err(PoolError::Size { topic: topic.to_owned(), size });
        }
        let refused = |cause| PoolError::Memory { topic: topic.to_owned(), size, cause };
        let slots = Slots::new(size).map_err(refused)?;
        let addresses = slots.addresses();
        let region = RegionSnapshot { bytes: addresses.len(), huge_page_bytes: huge_pages::bytes_in(addresses) };
        Ok(Self::Sized(Arc::new(slots), region))
    }

    fn buffers(&self) -> usize {
        match self {
            Self::Sized(slots, _) => slots.size().buffers,
            Self::Growing(_) => LOANS_MAX,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Sized(slots, _) => slots.size().bytes,
            Self::Growing(_) => LOAN_BYTES_MAX,
        }
    }

    fn usage(&self) -> &Usage {
        match self {
            Self::Sized(slots, _) => &slots.usage,
            Self::Growing(growing) => &growing.usage,
        }
    }

    fn snapshot(&self) -> PoolSnapshot {
        let region = match self {
            Self::Sized(_, region) => Some(*region),
            Self::Growing(_) => None,
        };
        let usage = self.usage();
        PoolSnapshot {
            buffers: self.buffers(),
            bytes: self.bytes(),
            region,
            loaned: usage.loaned(),
            most_loaned: usage.most_loaned(),
            exhausted: usage.exhausted(),
        }
    }
}

/// A buffer to be filled in place and then [frozen](Loan::freeze) into a field of a message.
#[derive(Debug)]
pub struct Loan {
    buffer: Buffer,
}

impl Loan {
    /// Makes the bytes immutable and shareable. The buffer returns to its pool when the last reference is dropped.
    #[must_use]
    pub fn freeze(self) -> Bytes {
        Bytes::from_owner(self.buffer)
    }
}

impl Deref for Loan {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.buffer.as_ref()
    }
}

impl DerefMut for Loan {
    fn deref_mut(&mut self) -> &mut [u8] {
        let whole = match &mut self.buffer.memory {
            Memory::Slot(slot) => slot.bytes_mut(),
            Memory::Grown(grown) => &mut grown.memory,
        };
        &mut whole[..self.buffer.length]
    }
}

#[derive(Debug)]
struct Buffer {
    memory: Memory,
    length: usize,
}

#[derive(Debug)]
enum Memory {
    Slot(Slot),
    Grown(Grown),
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        let whole = match &self.memory {
            Memory::Slot(slot) => slot.bytes(),
            Memory::Grown(grown) => &grown.memory,
        };
        &whole[..self.length]
    }
}

#[cfg(test)]
mod tests;
