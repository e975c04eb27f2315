//! Counters of a world.

use std::time::Duration;

/// Defines the reasons with their labels, so that `ALL` is complete.
macro_rules! loss_reasons {
    ($($(#[$doc:meta])* $name:ident => $label:literal,)*) => {
        /// The reason why a frame was not sent or a signal not received.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum LossReason {
            $($(#[$doc])* $name,)*
        }

        impl LossReason {
            /// All reasons: those of frames, then those of signals.
            pub const ALL: [Self; [$($label),*].len()] = [$(Self::$name),*];

            /// Returns the reason as tables spell it.
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
    /// The queue of the station's radio was full ([`crate::limits::MAC_FRAMES_MAX`]).
    RadioQueueFull => "radio_queue_full",
    /// The frame was for one station, and all attempts failed.
    NotAcknowledged => "not_acknowledged",
    /// The signal was too weak, or lost by chance.
    Faded => "faded",
    /// The signal collided with another one.
    Collided => "collided",
    /// The station was sending.
    Sending => "sending",
    /// The station already received [`crate::limits::ON_AIR_MAX`] signals.
    AirFull => "air_full",
    /// The schedule already held [`crate::limits::EVENTS_MAX`] events.
    ScheduleFull => "schedule_full",
}

/// Counters of a world. When nothing is on air, `signals == receptions + not_addressed + lost_signals()`, see
/// [`Self::lost_signals`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorldCounters {
    /// Transmitted frames, each attempt counted.
    pub transmissions: u64,
    /// Octets of these frames, without the overhead of the radio.
    pub transmitted_octets: u64,
    /// Total air time of these frames.
    pub airtime: Duration,
    /// Signals at stations in range.
    pub signals: u64,
    /// Signals that were delivered to a machine as a frame.
    pub receptions: u64,
    /// Signals of a frame for another station, whatever their fate.
    pub not_addressed: u64,
    lost: [u64; LossReason::ALL.len()],
}

impl WorldCounters {
    /// Returns the number of frames or signals lost for the given reason.
    #[must_use]
    pub fn lost(&self, reason: LossReason) -> u64 {
        self.lost.get(reason as usize).copied().unwrap_or(0)
    }

    /// Returns the number of signals lost for any reason.
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
