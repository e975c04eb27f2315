//! Metadata of a message: its origin, and the components through which it has passed.

use viaduct_units::{Mono, Tai};

/// Maximum number of stamps of a message. Later ones are not recorded, and the last recorded one stays the reference.
pub const HOPS_MAX: usize = 8;

/// Name of a component that stamps messages: the first 15 bytes of the component's name.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HopName {
    bytes: [u8; 15],
    length: u8,
}

impl HopName {
    /// Shortens a name to at most 15 bytes, at a character boundary.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let mut length = name.len().min(15);
        while !name.is_char_boundary(length) {
            length -= 1;
        }
        let mut bytes = [0; 15];
        bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
        Self { bytes, length: length as u8 }
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or_default()
    }
}

impl std::fmt::Debug for HopName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl std::fmt::Display for HopName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Time at which a message left a component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HopStamp {
    /// The component.
    pub hop: HopName,
    /// The time.
    pub at: Tai,
}

/// Origin, stamps and sequence number of a message. A derived message inherits origin and stamps
/// (`Publisher::publish_from`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Meta {
    /// Time at which the first cause of this message entered the system; for a radio message, its reception.
    pub origin: Tai,
    /// Sequence number of the sample on its topic, from 1; 0 before it is published.
    pub sequence: u64,
    /// Time of publishing; the start of the hop to each subscriber.
    pub(crate) published: Mono,
    stamped: u8,
    /// Last, because most messages that originate here have one or two.
    stamps: [HopStamp; HOPS_MAX],
}

impl Meta {
    /// Creates the metadata of a message with that origin and without stamps.
    #[must_use]
    pub fn from_origin(origin: Tai) -> Self {
        Self { origin, sequence: 0, published: Mono::default(), stamps: [HopStamp::default(); HOPS_MAX], stamped: 0 }
    }

    /// Resets the metadata to that origin, without stamps.
    #[inline]
    pub(crate) fn begin(&mut self, origin: Tai) {
        self.origin = origin;
        // Slots beyond `stamped` are never read.
        self.stamped = 0;
    }

    /// Returns the slot of the first stamp.
    pub(crate) const fn first_stamp(&self) -> &HopStamp {
        &self.stamps[0]
    }

    /// Returns the stamps, oldest first.
    #[must_use]
    pub fn stamps(&self) -> &[HopStamp] {
        &self.stamps[..usize::from(self.stamped)]
    }

    /// Adds a stamp. Returns `false` if all [`HOPS_MAX`] slots are used.
    #[inline]
    pub fn stamp(&mut self, hop: HopName, at: Tai) -> bool {
        let Some(free) = self.stamps.get_mut(usize::from(self.stamped)) else {
            return false;
        };
        *free = HopStamp { hop, at };
        self.stamped += 1;
        true
    }

    /// Returns the last hop: the stamp before the last one (or the origin), and the last one. Returns `None` without
    /// stamps.
    pub(crate) fn last_hop(&self) -> Option<(HopStamp, HopStamp)> {
        let (here, before) = self.stamps().split_last()?;
        Some((before.last().copied().unwrap_or_else(|| self.origin_stamp()), *here))
    }

    fn origin_stamp(&self) -> HopStamp {
        HopStamp { hop: HopName::new("origin"), at: self.origin }
    }

    /// Returns the start of the next hop: the last stamp, or the origin.
    #[must_use]
    pub fn last(&self) -> HopStamp {
        self.stamps().last().copied().unwrap_or_else(|| self.origin_stamp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_cut_at_a_character_boundary() {
        assert_eq!(HopName::new("station").as_str(), "station");
        assert_eq!(HopName::new("12345678901234ä").as_str(), "12345678901234");
    }

    #[test]
    fn the_ninth_stamp_is_refused_and_the_eighth_stays_the_reference() {
        let mut meta = Meta::from_origin(Tai::from_nanos(5));
        assert_eq!(meta.last().at, Tai::from_nanos(5));
        for index in 0..10 {
            assert_eq!(meta.stamp(HopName::new("x"), Tai::from_nanos(index)), index < 8);
        }
        assert_eq!(meta.stamps().len(), HOPS_MAX);
        assert_eq!(meta.last().at, Tai::from_nanos(7));
    }
}
