//! Cache of the newest V2X messages, by time, by station and by position.
//!
//! ```
//! use viaduct_backend::cache::{CacheLimits, Filter, MemoryCache, Query};
//! use viaduct_messages::its::timestamp;
//! use viaduct_messages::viaduct::its::{MessageType, V2xMessage};
//! use viaduct_units::Tai;
//!
//! let cache = MemoryCache::new(CacheLimits::default());
//! cache.insert(&V2xMessage {
//!     r#type: MessageType::Cam.into(),
//!     station_id: 1001,
//!     reception_time: Some(timestamp(Tai::from_unix_nanos(1_726_061_434_000_000_000))),
//!     ..V2xMessage::default()
//! })?;
//!
//! let of_station = Filter { station: Some(1001), ..Filter::ALL };
//! let page = cache.query(&Query { filter: of_station, from: None, to: None, after: None, limit: 10 });
//! assert_eq!(page.entries[0].kind(), MessageType::Cam);
//! assert!(!page.more);
//! # Ok::<(), viaduct_backend::cache::Rejected>(())
//! ```
//!
//! Results are sorted by (reception time, sequence number). The sequence number is assigned at insertion, so the pair
//! is unique and never changes. A [`Cursor`] made from the pair continues a listing at the same place, even if messages
//! arrived in between.

mod bucket;
mod entry;
mod grid;
mod memory;
mod stations;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;

use viaduct_messages::viaduct::its::MessageType;
use viaduct_units::{BoundingBox, Tai};

pub use entry::{ENTRY_BYTES_MAX, Entry};
pub use memory::{CacheLimits, CacheStats, MemoryCache, Resumed};
pub use stations::{KindSummary, StationSummary};

/// Reason for which a message is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// The cache is ordered by reception time, and the message has none.
    #[error("the message has no reception time")]
    NoReceptionTime,
    /// The message needs more than [`ENTRY_BYTES_MAX`], or more than the whole cache may hold.
    #[error("the message is too large")]
    TooLarge,
    /// The cache is full, and everything in it is newer than the message.
    #[error("the cache is full of newer messages")]
    TooOld,
}

impl Rejected {
    /// Every reason.
    pub const ALL: [Self; 3] = [Self::NoReceptionTime, Self::TooLarge, Self::TooOld];

    /// Returns the name in counters and JSON.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::NoReceptionTime => "no_reception_time",
            Self::TooLarge => "too_large",
            Self::TooOld => "too_old",
        }
    }

    /// Returns the index in an array with one counter per reason.
    const fn index(self) -> usize {
        self as usize
    }
}

/// A set of message types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeSet(u16);

/// Number of message types, including the unknown one: the length of an array with one element per type.
pub(crate) const TYPES: usize = MessageType::ALL.len() + 1;

const _: () = assert!(TYPES <= u16::BITS as usize, "each type has a bit of a set");

impl TypeSet {
    /// Every type, including the unknown one.
    pub const ALL: Self = Self(u16::MAX);
    /// No type.
    pub const NONE: Self = Self(0);

    /// Returns the types whose position is that of their sender. A DENM has the position of its event, a MAPEM or IVIM that of
    /// an intersection or sign.
    #[must_use]
    pub fn with_own_position() -> Self {
        [MessageType::Cam, MessageType::Vam, MessageType::Cpm, MessageType::Srem]
            .into_iter()
            .fold(Self::NONE, Self::with)
    }

    /// Returns this set with one more type.
    #[must_use]
    pub fn with(self, kind: MessageType) -> Self {
        Self(self.0 | 1 << type_index(kind))
    }

    /// Returns `true` if the type is in the set.
    #[must_use]
    pub fn contains(self, kind: MessageType) -> bool {
        self.0 & 1 << type_index(kind) != 0
    }
}

/// Returns the index of a type in an array of [`TYPES`] elements.
pub(crate) fn type_index(kind: MessageType) -> usize {
    MessageType::ALL.iter().position(|&known| known == kind).map_or(0, |index| index + 1)
}

/// Conditions on messages other than their time. All of them must hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Filter {
    /// The position lies in this box; a message without a position lies in no box.
    pub bbox: Option<BoundingBox>,
    /// The station in the message's header.
    pub station: Option<u32>,
    /// The type is one of these.
    pub types: TypeSet,
}

impl Filter {
    /// No condition.
    pub const ALL: Self = Self { bbox: None, station: None, types: TypeSet::ALL };

    /// Returns `true` if the message meets every condition.
    #[must_use]
    pub fn admits(&self, entry: &Entry) -> bool {
        self.types.contains(entry.kind())
            && self.station.is_none_or(|station| station == entry.station_id())
            && self.bbox.is_none_or(|bbox| entry.position().is_some_and(|position| bbox.contains(position)))
    }
}

/// A request for messages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Query {
    /// Conditions on the messages.
    pub filter: Filter,
    /// Earliest reception time, included.
    pub from: Option<Tai>,
    /// Latest reception time, included.
    pub to: Option<Tai>,
    /// Only messages behind this place in the order.
    pub after: Option<Cursor>,
    /// Largest number of messages in the answer.
    pub limit: usize,
}

/// The place of one message in the order of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    /// Reception time of the message.
    pub reception: Tai,
    /// Sequence number of the message.
    pub seq: u64,
}

/// The answer to a [`Query`].
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The messages, newest last.
    pub entries: Vec<Arc<Entry>>,
    /// `true` if more messages follow the last one.
    pub more: bool,
}
