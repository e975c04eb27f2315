//! What travels with every message: where it comes from, and where it has been.

use viaduct_units::{Mono, Tai};

/// Stamps that a message can carry. A later one is not recorded, and the last one it has stays the reference.
pub const HOPS_MAX: usize = 8;

/// Name of a place where messages are stamped: the first 15 bytes of a component's name.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HopName {
    bytes: [u8; 15],
    length: u8,
}

impl HopName {
    /// The name, cut at a character boundary to 15 bytes.
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

    /// The name as text.
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

/// When a message left a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HopStamp {
    /// The place.
    pub hop: HopName,
    /// The moment.
    pub at: Tai,
}

/// Origin, stamps and sequence of a message. What is made from a message inherits its origin and stamps
/// ([`crate::Publisher::publish_from`]).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Meta {
    /// When the first cause of this message came into the system: over the air, the reception.
    pub origin: Tai,
    /// Number of the sample on its topic, from 1; 0 before it was published.
    pub sequence: u64,
    /// When it was published here; the start of the hop to each subscriber.
    pub(crate) published: Mono,
    stamped: u8,
    /// Last: most messages that begin here have one or two.
    stamps: [HopStamp; HOPS_MAX],
}

impl Meta {
    /// A message whose first cause came in at `origin` and that has been nowhere yet.
    #[must_use]
    pub fn from_origin(origin: Tai) -> Self {
        Self { origin, sequence: 0, published: Mono::default(), stamps: [HopStamp::default(); HOPS_MAX], stamped: 0 }
    }

    /// Becomes that of another message, whose first cause came in at `origin` and that has been nowhere yet.
    #[inline]
    pub(crate) fn begin(&mut self, origin: Tai) {
        self.origin = origin;
        // What stands in the places of stamps is not looked at.
        self.stamped = 0;
    }

    /// The place of the first stamp.
    pub(crate) const fn first_stamp(&self) -> &HopStamp {
        &self.stamps[0]
    }

    /// Where the message has been, oldest first.
    #[must_use]
    pub fn stamps(&self) -> &[HopStamp] {
        &self.stamps[..usize::from(self.stamped)]
    }

    /// Adds a stamp; whether there was room for it.
    #[inline]
    pub fn stamp(&mut self, hop: HopName, at: Tai) -> bool {
        let Some(free) = self.stamps.get_mut(usize::from(self.stamped)) else {
            return false;
        };
        *free = HopStamp { hop, at };
        self.stamped += 1;
        true
    }

    /// The last hop: from the stamp before, or the origin, to the last stamp.
    pub(crate) fn last_hop(&self) -> Option<(HopStamp, HopStamp)> {
        let (here, before) = self.stamps().split_last()?;
        Some((before.last().copied().unwrap_or_else(|| self.origin_stamp()), *here))
    }

    fn origin_stamp(&self) -> HopStamp {
        HopStamp { hop: HopName::new("origin"), at: self.origin }
    }

    /// The place and moment from which the next hop counts: the last stamp, or the origin.
    #[must_use]
    pub fn last(&self) -> HopStamp {
        self.stamps().last().copied().unwrap_or_else(|| self.origin_stamp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_cut_at_a_character() {
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
