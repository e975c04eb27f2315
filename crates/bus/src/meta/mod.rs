//! Metadata of a message: its origin, and the components through which it has passed.

mod name;
mod stamp;

use viaduct_units::{Mono, Tai};

pub use name::HopName;
pub use stamp::{ClockState, HopKind, HopStamp};

/// Maximum number of stamps of a message. Later ones are not recorded, and the last recorded one stays the reference.
pub const HOPS_MAX: usize = 16;

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
    /// `true` if a stamp was not recorded.
    is_full: bool,
    /// Last, because most messages that originate here have one or two.
    stamps: [HopStamp; HOPS_MAX],
}

impl Meta {
    /// Creates the metadata of a message with that origin and without stamps.
    #[must_use]
    pub fn from_origin(origin: Tai) -> Self {
        let stamps = [HopStamp::default(); HOPS_MAX];
        Self { origin, sequence: 0, published: Mono::default(), stamped: 0, is_full: false, stamps }
    }

    /// Resets the metadata to that origin, without stamps.
    #[inline]
    pub(crate) fn begin(&mut self, origin: Tai) {
        self.origin = origin;
        // Slots beyond `stamped` are never read.
        self.stamped = 0;
        self.is_full = false;
    }

    /// Takes over origin and stamps of the cause of a message.
    #[inline]
    pub(crate) fn inherit(&mut self, cause: &Self) {
        self.origin = cause.origin;
        self.stamped = cause.stamped;
        self.is_full = cause.is_full;
        // Only the stamps in use: the other slots may not be in the cache.
        for (slot, stamp) in self.stamps.iter_mut().zip(cause.stamps()) {
            *slot = *stamp;
        }
    }

    /// Returns the metadata of a message that was taken: a copy with one more stamp, if `taken` names a component.
    #[inline]
    pub(crate) fn after(&self, taken: HopStamp) -> Self {
        let mut meta = Self::from_origin(self.origin);
        meta.inherit(self);
        meta.sequence = self.sequence;
        meta.published = self.published;
        if !taken.hop.is_empty() {
            meta.push(taken);
        }
        meta
    }

    /// Returns the slot of the first stamp.
    pub(crate) const fn first_stamp(&self) -> &HopStamp {
        &self.stamps[0]
    }

    /// Returns the stamps, oldest first.
    #[must_use]
    #[inline]
    pub fn stamps(&self) -> &[HopStamp] {
        &self.stamps[..usize::from(self.stamped)]
    }

    /// Adds a stamp. Returns `false` if all [`HOPS_MAX`] slots are used.
    #[inline]
    pub fn push(&mut self, stamp: HopStamp) -> bool {
        let Some(free) = self.stamps.get_mut(usize::from(self.stamped)) else {
            self.is_full = true;
            return false;
        };
        *free = stamp;
        self.stamped += 1;
        true
    }

    /// Adds a stamp of publishing. Returns `false` if all [`HOPS_MAX`] slots are used.
    #[inline]
    pub fn stamp(&mut self, hop: HopName, at: Tai) -> bool {
        self.push(HopStamp::new(hop, HopKind::Published, at))
    }

    /// Calls `record` with each hop that ends with the last stamp: first the one to the arrival at the component, if the
    /// stamp before the last one is that arrival, and then the last one. Does nothing if the last stamp was not recorded.
    #[inline]
    pub(crate) fn last_hops(&self, record: impl FnMut(&HopStamp, &HopStamp)) {
        if let Some((here, before)) = self.stamps().split_last()
            && !self.is_full
        {
            self.hops_after(before, here, record);
        }
    }

    /// Calls `record` with each hop to a place where the message is not published again: the one to its arrival, if that is
    /// the last stamp, and the one from the last stamp to `here`.
    pub(crate) fn hops_to(&self, here: &HopStamp, record: impl FnMut(&HopStamp, &HopStamp)) {
        self.hops_after(self.stamps(), here, record);
    }

    #[inline]
    fn hops_after(&self, before: &[HopStamp], here: &HopStamp, mut record: impl FnMut(&HopStamp, &HopStamp)) {
        let origin = self.origin_stamp();
        match before {
            [] => record(&origin, here),
            [earlier @ .., last] => {
                if last.kind().is_arrival() {
                    record(earlier.last().unwrap_or(&origin), last);
                }
                record(last, here);
            }
        }
    }

    /// Returns the state of the clocks of the path from the origin to `here`, which follows the stamps: the clock of the
    /// first node and that of the last one. `None` if the whole path is within one node.
    pub(crate) fn clocks_until(&self, here: &HopStamp) -> Option<ClockState> {
        let path = || self.stamps().iter().chain([here]);
        let mut crossings = path().zip(path().skip(1)).filter_map(|(from, to)| from.clocks_until(to)).peekable();
        crossings.peek()?;
        if crossings.all(|clocks| clocks == ClockState::Shared) {
            return Some(ClockState::Shared);
        }
        let sent = path().find(|stamp| stamp.kind() == HopKind::Sent)?;
        let received = path().rfind(|stamp| stamp.kind() == HopKind::Received)?;
        Some(sent.clock().plus(received.clock()))
    }

    pub(crate) fn origin_stamp(&self) -> HopStamp {
        HopStamp::new(HopName::ORIGIN, HopKind::Published, self.origin)
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

    fn stamp(hop: &str, kind: HopKind, at: i64) -> HopStamp {
        HopStamp::new(HopName::new(hop), kind, Tai::from_nanos(at))
    }

    fn last(meta: &Meta) -> Vec<(String, String)> {
        let mut hops = Vec::new();
        meta.last_hops(|from, to| hops.push((from.hop.to_string(), to.hop.to_string())));
        hops
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect()
    }

    #[test]
    fn the_seventeenth_stamp_is_refused_and_the_sixteenth_stays_the_reference() {
        let mut meta = Meta::from_origin(Tai::from_nanos(5));
        assert_eq!(meta.last().at, Tai::from_nanos(5));
        for index in 0..18 {
            assert_eq!(meta.stamp(HopName::new("x"), Tai::from_nanos(index)), index < 16);
        }
        assert_eq!(meta.stamps().len(), HOPS_MAX);
        assert_eq!(meta.last().at, Tai::from_nanos(15));
        assert_eq!(last(&meta), [], "the last stamp is not that of the last component");
    }

    #[test]
    fn a_derived_message_has_the_hop_to_its_cause_and_the_time_within_the_component() {
        let mut meta = Meta::from_origin(Tai::from_nanos(0));
        meta.push(stamp("camera", HopKind::Published, 1));
        assert_eq!(last(&meta), pairs(&[("origin", "camera")]));
        let mut meta = meta.after(stamp("tracker", HopKind::Taken, 2));
        meta.push(stamp("tracker", HopKind::Published, 3));
        assert_eq!(last(&meta), pairs(&[("camera", "tracker"), ("tracker", "tracker")]));
    }

    #[test]
    fn an_observer_leaves_no_stamp() {
        let meta = Meta::from_origin(Tai::from_nanos(0)).after(HopStamp::default());
        assert_eq!(meta.stamps(), []);
    }

    #[test]
    fn the_clocks_of_a_path_are_those_of_its_first_and_last_node() {
        let within = |nanos| ClockState::Within(std::time::Duration::from_nanos(nanos));
        let mut meta = Meta::from_origin(Tai::from_nanos(0));
        meta.push(stamp("camera", HopKind::Published, 1));
        assert_eq!(meta.clocks_until(&stamp("cache", HopKind::Published, 2)), None);
        meta.push(stamp("uplink", HopKind::Sent, 2).with_clock(within(1024)));
        let shared = stamp("edge", HopKind::Received, 3).with_clock(ClockState::Shared);
        assert_eq!(meta.clocks_until(&shared), Some(ClockState::Shared));
        meta.push(shared);
        assert_eq!(meta.clocks_until(&stamp("cache", HopKind::Published, 4)), Some(ClockState::Shared));
        meta.push(stamp("edge", HopKind::Sent, 4).with_clock(within(1024)));
        let received = stamp("cloud", HopKind::Received, 5).with_clock(within(2048));
        assert_eq!(meta.clocks_until(&received), Some(within(3072)));
        meta.push(received);
        meta.push(stamp("cloud", HopKind::Sent, 6).with_clock(within(2048)));
        let received = stamp("desk", HopKind::Received, 7).with_clock(ClockState::Unsynchronised);
        assert_eq!(meta.clocks_until(&received), Some(ClockState::Unsynchronised));
    }
}
