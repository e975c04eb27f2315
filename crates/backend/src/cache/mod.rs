//! The edge cache: the newest V2X messages, by time, by station and by place.
//!
//! [`Cache`] is what an implementation promises; `suite` tests every implementation against a plain list. The one of this
//! crate is [`MemoryCache`].
//!
//! Results are sorted by (reception time, sequence number). The sequence number is given at insertion, so the pair is
//! unique and never changes: a [`Cursor`] made of it continues a listing where it ended, whatever arrived meanwhile.

mod bucket;
mod entry;
mod grid;
mod memory;
mod stations;
#[cfg(test)]
pub(crate) mod suite;

use std::sync::Arc;

use viaduct_messages::viaduct::its::{MessageType, V2xMessage};
use viaduct_units::{BoundingBox, Tai};

pub use entry::{ENTRY_OCTETS_MAX, Entry};
pub use memory::{CacheLimits, CacheStats, MemoryCache, Resumed};
pub use stations::{KindSummary, StationSummary};

/// What every cache of V2X messages does.
pub trait Cache: Send + Sync {
    /// Takes in a message; those received out of order find their place.
    ///
    /// # Errors
    /// Why the message is not taken; the reason is counted.
    fn insert(&self, message: &V2xMessage) -> Result<Arc<Entry>, Rejected>;

    /// The first messages, in the order of (reception time, sequence number), that the query asks for.
    fn query(&self, query: &Query) -> Page;

    /// The newest message with a position of each station, where it lies in the box and has one of the types; sorted by
    /// station.
    fn latest(&self, bbox: Option<&BoundingBox>, types: TypeSet) -> Vec<Arc<Entry>>;

    /// Drops messages received before `time`, and returns how many. It may keep some of the last seconds before (a
    /// bucket is dropped as a whole), and never drops one received at `time` or later.
    fn drop_before(&self, time: Tai) -> u64;
}

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// The cache is ordered by reception time.
    #[error("the message has no reception time")]
    NoReceptionTime,
    /// The message needs more than [`ENTRY_OCTETS_MAX`], or more than the whole cache has.
    #[error("the message is too large")]
    TooLarge,
    /// The cache is full, and all else that it holds is newer.
    #[error("the cache is full of newer messages")]
    TooOld,
}

impl Rejected {
    /// Every reason, in the order of [`Self::index`].
    pub const ALL: [Self; 3] = [Self::NoReceptionTime, Self::TooLarge, Self::TooOld];

    /// The name as counters and JSON have it.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::NoReceptionTime => "no_reception_time",
            Self::TooLarge => "too_large",
            Self::TooOld => "too_old",
        }
    }

    /// The place in an array of one counter a reason.
    const fn index(self) -> usize {
        self as usize
    }
}

/// A set of message types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeSet(u16);

/// Message types and the unknown one: the length of an array of one element a type.
pub(crate) const TYPES: usize = MessageType::ALL.len() + 1;

const _: () = assert!(TYPES <= u16::BITS as usize, "each type has a bit of a set");

impl TypeSet {
    /// Every type, the unknown one too.
    pub const ALL: Self = Self(u16::MAX);
    /// No type.
    pub const NONE: Self = Self(0);

    /// This set and one more type.
    #[must_use]
    pub fn with(self, kind: MessageType) -> Self {
        Self(self.0 | 1 << type_index(kind))
    }

    /// Whether the type is in the set.
    #[must_use]
    pub fn contains(self, kind: MessageType) -> bool {
        self.0 & 1 << type_index(kind) != 0
    }
}

/// The place of a type in an array of [`TYPES`] elements.
pub(crate) fn type_index(kind: MessageType) -> usize {
    MessageType::ALL.iter().position(|&known| known == kind).map_or(0, |index| index + 1)
}

/// Which messages are wanted, whatever their time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Filter {
    /// Those with a position in this box; a message without a position lies in no box.
    pub bbox: Option<BoundingBox>,
    /// Those of this station.
    pub station: Option<u32>,
    /// Those of these types.
    pub types: TypeSet,
}

impl Filter {
    /// Every message.
    pub const ALL: Self = Self { bbox: None, station: None, types: TypeSet::ALL };

    /// Whether the message is wanted.
    #[must_use]
    pub fn admits(&self, entry: &Entry) -> bool {
        self.types.contains(entry.kind())
            && self.station.is_none_or(|station| station == entry.station_id())
            && self.bbox.is_none_or(|bbox| entry.position().is_some_and(|position| bbox.contains(position)))
    }
}

/// Which messages are wanted, and how many.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Query {
    /// Which messages.
    pub filter: Filter,
    /// Received at this time or later.
    pub from: Option<Tai>,
    /// Received at this time or earlier.
    pub to: Option<Tai>,
    /// Those that follow this one.
    pub after: Option<Cursor>,
    /// At most so many.
    pub limit: usize,
}

/// A place in the order of messages: that of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    /// When the message was received.
    pub reception: Tai,
    /// Its sequence number.
    pub seq: u64,
}

/// What a query found.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The messages, the newest last.
    pub entries: Vec<Arc<Entry>>,
    /// Whether there are more behind the last one.
    pub more: bool,
}
