//! What a world has counted since it was made.

use std::time::Duration;

/// Defines the reasons with their labels, so that none is left out of `ALL`.
macro_rules! loss_reasons {
    ($($(#[$doc:meta])* $name:ident => $label:literal,)*) => {
        /// Why a frame was not sent, or a signal not received.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum LossReason {
            $($(#[$doc])* $name,)*
        }

        impl LossReason {
            /// Every reason: those of frames, then those of signals.
            pub const ALL: [Self; [$($label),*].len()] = [$(Self::$name),*];

            /// The reason as tables have it.
            #[must_use]
            pub const fn label(self) -> &'static str {
                match self {
                    $(Self::$name => $label,)*
                }
            }
        }
    };
}

loss_reasons! {
    /// The frame is longer than [`crate::limits::PACKET_OCTETS_MAX`].
    TooLong => "too_long",
    /// [`crate::limits::MAC_FRAMES_MAX`] frames waited in the station's radio.
    RadioQueueFull => "radio_queue_full",
    /// The frame was for one station, and none of the attempts arrived there.
    NotAcknowledged => "not_acknowledged",
    /// The signal was too weak, or lost by chance.
    Faded => "faded",
    /// Another signal spoiled it.
    Collided => "collided",
    /// The station was sending itself.
    Sending => "sending",
    /// [`crate::limits::ON_AIR_MAX`] signals were at the station.
    AirFull => "air_full",
    /// [`crate::limits::EVENTS_MAX`] events were ahead.
    ScheduleFull => "schedule_full",
}

/// Counts of a world. When nothing is in the air,
/// `signals == receptions + not_addressed + ` the losses of signals ([`Self::lost_signals`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorldCounters {
    /// Frames put into the air, each attempt counted.
    pub transmissions: u64,
    /// Octets of them, without what the radio adds.
    pub transmitted_octets: u64,
    /// Time in the air of all of them together.
    pub airtime: Duration,
    /// Signals at stations in range.
    pub signals: u64,
    /// Signals that became a machine's frame.
    pub receptions: u64,
    /// Signals of a frame for another station, whatever became of them.
    pub not_addressed: u64,
    lost: [u64; LossReason::ALL.len()],
}

impl WorldCounters {
    /// Frames or signals that were lost for that reason.
    #[must_use]
    pub fn lost(&self, reason: LossReason) -> u64 {
        self.lost.get(reason as usize).copied().unwrap_or(0)
    }

    /// Signals that were lost, for every reason together.
    #[must_use]
    pub fn lost_signals(&self) -> u64 {
        use LossReason::{AirFull, Collided, Faded, ScheduleFull, Sending};
        [Faded, Collided, Sending, AirFull, ScheduleFull].into_iter().map(|reason| self.lost(reason)).sum()
    }

    pub(super) fn count_loss(&mut self, reason: LossReason) {
        if let Some(count) = self.lost.get_mut(reason as usize) {
            *count += 1;
        }
    }
}
