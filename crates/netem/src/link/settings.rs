//! Settings of a link.

use std::time::Duration;

use super::{Bottleneck, Delay, Loss, Outages, delay::DELAY_MAX};
use crate::{Probability, limits::OUTAGES_MAX};

/// Settings of a link. The default is perfect: no delay and no loss.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkSettings {
    /// Rate limit and queue.
    pub bottleneck: Bottleneck,
    /// Loss model.
    pub loss: Loss,
    /// Times during which every packet is lost.
    pub outages: Outages,
    /// Probability that a packet that is not lost arrives twice, each copy with its own delay.
    pub duplicate: Probability,
    /// Delay after the bottleneck.
    pub delay: Delay,
    /// Packets that later ones overtake.
    pub reorder: Reorder,
    /// Octets that the real link adds to each packet, at most 65 535. They count for the rate, the trace and the queue,
    /// and are not delivered. See [`super::overhead`] for Ethernet.
    pub overhead_octets: u16,
}

/// Packets that later ones overtake, whatever the order of the others.
///
/// Such a packet arrives late and does not hold back the packets after it. So it is overtaken by those that are sent
/// within the given time after it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Reorder {
    /// Share of the packets.
    pub share: Probability,
    /// Additional delay of these packets, below one hour.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "by_ms", with = "crate::millis"),
        schemars(with = "f64", range(min = 0.0, max = 3_600_000.0))
    )]
    pub by: Duration,
}

/// An invalid setting of a link.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum LinkSettingsError {
    /// The mean burst length is not a number of at least 1.
    #[error("the mean burst length is {0}, but must be finite and at least 1")]
    BurstLength(f64),
    /// The loss is so high that fewer than one good packet would separate bursts.
    #[error("bursts of {burst} packets cannot make {loss} of all packets lost")]
    BurstsTooDense {
        /// Requested mean length of a burst, in packets.
        burst: f64,
        /// Requested loss of all packets.
        loss: f64,
    },
    /// The bad state of the loss model can be entered but never left.
    #[error("the bad state is never left: `bad_to_good` must be above 0 if `good_to_bad` is")]
    BadForEver,
    /// A duration of an outage, or between outages, is zero.
    #[error("the durations of outages and of the time between them must be above zero")]
    OutageWithoutTime,
    /// A duration of an outage, or between outages, is above the limit.
    #[error("the durations of outages and of the time between them must be at most one day")]
    OutageTooLong,
    /// An outage begins before the end of the previous one.
    #[error("outages must be in ascending order and must not overlap")]
    OutagesOverlap,
    /// The list of outages is too long.
    #[error("there are more than {OUTAGES_MAX} outages")]
    TooManyOutages,
    /// The correlation of the jitter has no time constant.
    #[error("the time constant of the correlation must be above zero and below one hour")]
    CorrelationTime,
    /// The delay is above the limit.
    #[error("delay and jitter must be below one hour")]
    DelayTooLong,
    /// The additional delay of reordered packets is above the limit.
    #[error("the delay of reordered packets must be below one hour")]
    ReorderTooLate,
}

impl LinkSettingsError {
    /// Returns the setting at fault, as [`crate::LinkConfig`] names it.
    #[must_use]
    pub const fn key(&self) -> &'static str {
        match self {
            Self::BurstLength(_) | Self::BurstsTooDense { .. } | Self::BadForEver => "loss",
            Self::OutageWithoutTime | Self::OutageTooLong | Self::OutagesOverlap | Self::TooManyOutages => "outages",
            Self::CorrelationTime | Self::DelayTooLong => "delay",
            Self::ReorderTooLate => "reorder",
        }
    }
}

impl LinkSettings {
    /// Checks what the types cannot express.
    ///
    /// # Errors
    /// The first invalid setting.
    pub fn check(&self) -> Result<(), LinkSettingsError> {
        self.loss.check()?;
        self.outages.check()?;
        if self.reorder.by >= DELAY_MAX {
            return Err(LinkSettingsError::ReorderTooLate);
        }
        self.delay.check()
    }
}
