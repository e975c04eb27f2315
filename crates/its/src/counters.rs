//! What a station has counted since it was made.

use crate::DropReason;

/// Counts of a station. Always: `received == delivered + beacons + dropped_total()`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames handed to the station.
    pub received: u64,
    /// Frames that became a [`crate::Event::Received`].
    pub delivered: u64,
    /// Frames that were beacons.
    pub beacons: u64,
    /// Messages that were put into a frame.
    pub sent: u64,
    /// Beacons that were put into a frame.
    pub beacons_sent: u64,
    /// Beacons that were due while nobody had taken the frames before them.
    pub beacons_skipped: u64,
    dropped: [u64; DropReason::ALL.len()],
}

impl Counters {
    /// Frames that were dropped for that reason.
    #[must_use]
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped.get(reason as usize).copied().unwrap_or(0)
    }

    /// Frames that were dropped, for every reason together.
    #[must_use]
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().sum()
    }

    pub(crate) fn count_drop(&mut self, reason: DropReason) {
        if let Some(count) = self.dropped.get_mut(reason as usize) {
            *count += 1;
        }
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
    }
}
