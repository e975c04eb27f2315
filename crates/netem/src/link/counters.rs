//! What a link has counted since it was made.

/// Why a packet did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkDropReason {
    /// It is longer than [`crate::limits::PACKET_OCTETS_MAX`].
    TooLong,
    /// The bottleneck's queue had no room for it (tail drop).
    QueueFull,
    /// The loss model took it.
    Lost,
    /// The link held [`crate::limits::LINK_OCTETS_MAX`] already.
    LinkFull,
}

impl LinkDropReason {
    /// Every reason, in the order in which a packet meets them.
    pub const ALL: [Self; 4] = [Self::TooLong, Self::QueueFull, Self::Lost, Self::LinkFull];

    /// The reason as metrics and JSON have it.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::TooLong => "too_long",
            Self::QueueFull => "queue_full",
            Self::Lost => "lost",
            Self::LinkFull => "link_full",
        }
    }
}

/// Counts of a link. Always: `received + duplicated == delivered + travelling + dropped_total()`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Packets handed to the link.
    pub received: u64,
    /// Packets that the link made a second one of.
    pub duplicated: u64,
    /// Packets taken from the link.
    pub delivered: u64,
    dropped: [u64; LinkDropReason::ALL.len()],
}

impl LinkCounters {
    /// Packets that were dropped for that reason.
    #[must_use]
    pub fn dropped(&self, reason: LinkDropReason) -> u64 {
        self.dropped.get(reason as usize).copied().unwrap_or(0)
    }

    /// Packets that were dropped, for every reason together.
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
