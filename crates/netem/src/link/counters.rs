//! Counters of a link.

/// The reason why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkDropReason {
    /// The packet is longer than [`crate::limits::PACKET_OCTETS_MAX`].
    TooLong,
    /// The link already held [`crate::limits::LINK_OCTETS_MAX`] octets.
    LinkFull,
    /// The queue of the bottleneck was full (tail drop).
    QueueFull,
    /// The packet was sent during an outage.
    Outage,
    /// The loss model dropped the packet.
    Lost,
}

impl LinkDropReason {
    /// All reasons, in the order of processing.
    pub const ALL: [Self; 5] = [Self::TooLong, Self::LinkFull, Self::QueueFull, Self::Outage, Self::Lost];

    /// Returns the reason as metrics and JSON spell it.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::TooLong => "too_long",
            Self::LinkFull => "link_full",
            Self::QueueFull => "queue_full",
            Self::Outage => "outage",
            Self::Lost => "lost",
        }
    }
}

/// Counters of a link. Always: `received + duplicated == delivered + dropped_total()` + [`super::Link::packets`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Packets passed to the link.
    pub received: u64,
    /// Packets that were duplicated.
    pub duplicated: u64,
    /// Packets returned by the link.
    pub delivered: u64,
    dropped: [u64; LinkDropReason::ALL.len()],
}

impl LinkCounters {
    /// Returns the number of packets dropped for the given reason.
    #[must_use]
    pub fn dropped(&self, reason: LinkDropReason) -> u64 {
        self.dropped.get(reason as usize).copied().unwrap_or(0)
    }

    /// Returns the number of packets dropped for any reason.
    #[must_use]
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().sum()
    }

    pub(super) fn count_drop(&mut self, reason: LinkDropReason) {
        if let Some(count) = self.dropped.get_mut(reason as usize) {
            *count += 1;
        }
    }
}
