//! What a station has counted since it was made.

use crate::DropReason;

/// Counts of a station. Always:
///
/// - frames: `received == delivered + relayed + beacons + location_service + dropped_total()`;
/// - packets on their way out, own ones and others': `taken == transmitted + suppressed + lost_total()` and what is held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames handed to the station.
    pub received: u64,
    /// Frames that became a [`crate::Event::Received`]. Their packets may be forwarded too.
    pub delivered: u64,
    /// Frames for others only, which were taken to be forwarded.
    pub relayed: u64,
    /// Frames that were beacons.
    pub beacons: u64,
    /// Frames that asked where this station is, or answered where another one is.
    pub location_service: u64,
    /// Messages that were accepted to be sent.
    pub sent: u64,
    /// Beacons that were put into a frame.
    pub beacons_sent: u64,
    /// Beacons that were due while nobody had taken the frames before them.
    pub beacons_skipped: u64,
    /// Location requests that were sent, repetitions included.
    pub location_requests_sent: u64,
    /// Location replies that were sent.
    pub location_replies_sent: u64,
    /// Times that a message was sent again, as its request asked for.
    pub repetitions: u64,
    /// Packets that were taken to be sent: own ones (beacons apart) and those of others.
    pub taken: u64,
    /// Packets of [`Self::taken`] that were put into a frame.
    pub transmitted: u64,
    /// Packets of [`Self::transmitted`] that were another station's.
    pub forwarded: u64,
    /// Packets of [`Self::taken`] that were not sent since another station was faster (contention).
    pub suppressed: u64,
    /// Times that the own address was changed since another station has it.
    pub address_changes: u64,
    dropped: ByReason,
    lost: ByReason,
    not_forwarded: ByReason,
    not_repeated: ByReason,
}

impl Counters {
    /// Frames that were dropped for that reason.
    #[must_use]
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped.get(reason)
    }

    /// Frames that were dropped, for every reason together.
    #[must_use]
    pub fn dropped_total(&self) -> u64 {
        self.dropped.total()
    }

    /// Packets of [`Self::taken`] that were given up for that reason: they waited too long or took too much room.
    #[must_use]
    pub fn lost(&self, reason: DropReason) -> u64 {
        self.lost.get(reason)
    }

    /// Packets of [`Self::taken`] that were given up, for every reason together.
    #[must_use]
    pub fn lost_total(&self) -> u64 {
        self.lost.total()
    }

    /// Packets that were for this station too and were not taken to be forwarded, for that reason.
    #[must_use]
    pub fn not_forwarded(&self, reason: DropReason) -> u64 {
        self.not_forwarded.get(reason)
    }

    /// Times that a message was due to be sent again and was not, for that reason.
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

/// One count a reason.
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
