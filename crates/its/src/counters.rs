//! Counters of a station.

use crate::DropReason;

/// Counters of a station since its creation. These sums always hold:
///
/// - frames: `received == delivered + relayed + beacons + location_service + dropped_total()`;
/// - outgoing packets, own and forwarded: `taken == transmitted + suppressed + lost_total()` plus the packets held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames passed to the station.
    pub received: u64,
    /// Frames that became a [`crate::Event::Received`]. Their packets may also be forwarded.
    pub delivered: u64,
    /// Frames for other stations only, accepted for forwarding.
    pub relayed: u64,
    /// Frames that were beacons.
    pub beacons: u64,
    /// Frames with a location request for this station or a location reply.
    pub location_service: u64,
    /// Messages accepted for sending.
    pub sent: u64,
    /// Beacons sent.
    pub beacons_sent: u64,
    /// Beacons not sent because the transmit queue was full.
    pub beacons_skipped: u64,
    /// Location requests sent, repetitions included.
    pub location_requests_sent: u64,
    /// Location replies sent.
    pub location_replies_sent: u64,
    /// Repetitions of messages, as requested.
    pub repetitions: u64,
    /// Packets accepted for sending: own ones except beacons, and those to forward.
    pub taken: u64,
    /// Packets of [`Self::taken`] that were sent.
    pub transmitted: u64,
    /// Packets of [`Self::transmitted`] whose source is another station.
    pub forwarded: u64,
    /// Packets of [`Self::taken`] that were not sent because another station forwarded them first (contention).
    pub suppressed: u64,
    /// Changes of the own address because another station used the same one.
    pub address_changes: u64,
    dropped: ByReason,
    lost: ByReason,
    not_forwarded: ByReason,
    not_repeated: ByReason,
}

impl Counters {
    /// Returns the number of frames dropped for the given reason.
    #[must_use]
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped.get(reason)
    }

    /// Returns the number of frames dropped for any reason.
    #[must_use]
    pub fn dropped_total(&self) -> u64 {
        self.dropped.total()
    }

    /// Returns the number of packets of [`Self::taken`] discarded for the given reason, such as expiry or lack of
    /// buffer space.
    #[must_use]
    pub fn lost(&self, reason: DropReason) -> u64 {
        self.lost.get(reason)
    }

    /// Returns the number of packets of [`Self::taken`] discarded for any reason.
    #[must_use]
    pub fn lost_total(&self) -> u64 {
        self.lost.total()
    }

    /// Returns the number of packets that were delivered to this station, but not forwarded for the given reason.
    #[must_use]
    pub fn not_forwarded(&self, reason: DropReason) -> u64 {
        self.not_forwarded.get(reason)
    }

    /// Returns the number of repetitions that were due but not sent for the given reason.
    #[must_use]
    pub fn not_repeated(&self, reason: DropReason) -> u64 {
        self.not_repeated.get(reason)
    }

    pub(crate) fn count_drop(&mut self, reason: DropReason) {
        self.dropped.count(reason);
    }

    pub(crate) fn count_lost(&mut self, reason: DropReason) {
        self.lost.count(reason);
    }

    pub(crate) fn count_not_forwarded(&mut self, reason: DropReason) {
        self.not_forwarded.count(reason);
    }

    pub(crate) fn count_not_repeated(&mut self, reason: DropReason) {
        self.not_repeated.count(reason);
    }
}

/// One counter per reason.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ByReason([u64; DropReason::ALL.len()]);

impl ByReason {
    fn get(&self, reason: DropReason) -> u64 {
        self.0.get(reason as usize).copied().unwrap_or(0)
    }

    fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    fn count(&mut self, reason: DropReason) {
        if let Some(count) = self.0.get_mut(reason as usize) {
            *count += 1;
        }
    }
}

impl Default for ByReason {
    fn default() -> Self {
        Self([0; DropReason::ALL.len()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_own_count() {
        let mut counters = Counters::default();
        for reason in DropReason::ALL {
            counters.count_drop(reason);
        }
        assert!(DropReason::ALL.iter().all(|reason| counters.dropped(*reason) == 1));
        assert_eq!(counters.dropped_total(), DropReason::ALL.len() as u64);
        assert_eq!((counters.lost_total(), counters.not_forwarded(DropReason::Duplicate)), (0, 0));
    }
}
