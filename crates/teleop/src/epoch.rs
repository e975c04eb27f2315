//! Detection of a restart of the peer.

use std::{collections::VecDeque, time::Duration};

use viaduct_units::Mono;

/// Time without datagrams of the current epoch after which another epoch is accepted.
const SILENCE: Duration = Duration::from_millis(200);
/// Number of earlier epochs that are remembered and never accepted again.
const RETIRED_MAX: usize = 16;

/// The epoch of the peer.
///
/// A peer that restarts chooses another epoch. Late datagrams of its earlier life must not end the current one, so
/// another epoch is accepted only if the current one is silent, and an epoch that has ended is never accepted again.
#[derive(Debug, Default)]
pub(crate) struct PeerEpoch {
    current: Option<u32>,
    received: Mono,
    retired: VecDeque<u32>,
}

/// The relation of a datagram's epoch to the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Observed {
    /// The current epoch.
    Current,
    /// The first datagram of a new epoch, which is now the current one.
    Started,
    /// An epoch that has ended, or another one while the current one is alive.
    Refused,
}

impl PeerEpoch {
    /// Processes the epoch of a received datagram.
    pub(crate) fn observe(&mut self, now: Mono, epoch: u32) -> Observed {
        match self.current {
            Some(current) if current == epoch => {
                self.received = now;
                Observed::Current
            }
            Some(_) if self.retired.contains(&epoch) || now.since(self.received) < SILENCE => Observed::Refused,
            current => {
                self.retire(current);
                (self.current, self.received) = (Some(epoch), now);
                Observed::Started
            }
        }
    }

    /// Makes an epoch that the caller has checked the current one.
    pub(crate) fn adopt(&mut self, now: Mono, epoch: u32) -> Observed {
        self.received = now;
        if self.current == Some(epoch) {
            return Observed::Current;
        }
        self.current = Some(epoch);
        Observed::Started
    }

    /// Returns the current epoch, or `None` before the first datagram.
    pub(crate) const fn current(&self) -> Option<u32> {
        self.current
    }

    fn retire(&mut self, epoch: Option<u32>) {
        self.retired.extend(epoch);
        if self.retired.len() > RETIRED_MAX {
            self.retired.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Mono {
        Mono(Duration::from_millis(ms))
    }

    #[test]
    fn another_epoch_is_accepted_after_silence_and_the_old_one_never_again() {
        let mut peer = PeerEpoch::default();
        assert_eq!(peer.observe(at(0), 7), Observed::Started);
        assert_eq!(peer.observe(at(100), 7), Observed::Current);
        assert_eq!(peer.observe(at(299), 8), Observed::Refused, "the current epoch was alive 199 ms ago");
        assert_eq!(peer.observe(at(300), 8), Observed::Started);
        assert_eq!(peer.observe(at(900), 7), Observed::Refused);
        assert_eq!(peer.current(), Some(8));
    }
}
