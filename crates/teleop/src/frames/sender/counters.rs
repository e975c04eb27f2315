//! Counters of the sender of frames.

use crate::{frames::FrameLoss, reason::counted};

reasons! {
    /// The reason why a received datagram is dropped.
    SenderDropReason {
        /// The octets are not a datagram.
        Malformed => "malformed",
        /// The datagram is not one for a sender of frames.
        Unexpected => "unexpected",
        /// The feedback is for another epoch of this sender.
        Epoch => "epoch",
        /// A later feedback has arrived before.
        Outdated => "outdated",
        /// The feedback confirms a datagram that was not sent.
        Implausible => "implausible",
    }
}

/// Counters of a sender of frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounters {
    /// Datagrams received.
    pub received: u64,
    /// Datagrams dropped, by [`SenderDropReason`].
    pub(super) dropped: [u64; SenderDropReason::ALL.len()],
    /// Frames accepted.
    pub frames: u64,
    /// Frames that arrived.
    pub frames_arrived: u64,
    /// Frames lost, by [`FrameLoss`].
    pub(super) lost: [u64; FrameLoss::ALL.len()],
    /// Octets of the accepted frames.
    pub frame_octets: u64,
    /// Symbols sent.
    pub symbols: u64,
    /// Octets of the datagrams with these symbols.
    pub symbol_octets: u64,
    /// Probes sent.
    pub probes: u64,
    /// Number of times that a long queue stopped the sender.
    pub stops: u64,
    /// Events dropped because the caller did not take them.
    pub events_dropped: u64,
}

impl SenderCounters {
    /// Returns the number of datagrams dropped for a reason.
    #[must_use]
    pub fn dropped(&self, reason: SenderDropReason) -> u64 {
        counted(&self.dropped, reason as usize)
    }

    /// Returns the number of all datagrams dropped.
    #[must_use]
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().sum()
    }

    /// Returns the number of frames lost for a reason.
    #[must_use]
    pub fn lost(&self, reason: FrameLoss) -> u64 {
        counted(&self.lost, reason as usize)
    }

    /// Returns the number of all frames lost.
    #[must_use]
    pub fn lost_total(&self) -> u64 {
        self.lost.iter().sum()
    }
}
