//! Settings of a link.

use super::{Bottleneck, Delay, GilbertElliott, Loss};
use crate::Probability;

/// Settings of a link. The default is perfect: no delay and no loss.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkSettings {
    /// Rate limit and queue.
    pub bottleneck: Bottleneck,
    /// Loss model.
    pub loss: Loss,
    /// Probability that a packet that is not lost arrives twice, each copy with its own delay.
    pub duplicate: Probability,
    /// Delay after the bottleneck.
    pub delay: Delay,
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
    /// The mean duration of outages, or of the time between them, is zero.
    #[error("the mean durations of outages and of the time between them must be above zero")]
    OutageWithoutTime,
    /// The mean duration of outages, or of the time between them, is above the limit.
    #[error("the mean durations of outages and of the time between them must be at most one day")]
    OutageTooLong,
    /// The delay is above the limit.
    #[error("delay and jitter must be below one hour")]
    DelayTooLong,
}

impl LinkSettings {
    pub(super) fn check(&self) -> Result<(), LinkSettingsError> {
        self.loss.check()?;
        self.delay.check()
    }
}

impl Loss {
    /// Returns a model with loss in bursts, in which each packet is lost (the simple Gilbert model).
    ///
    /// `loss` is the share of all packets that is lost; `burst` is the mean number of consecutive lost packets.
    ///
    /// # Errors
    /// The bursts are shorter than one packet, or too short for that loss.
    pub fn bursts(loss: Probability, burst: f64) -> Result<Self, LinkSettingsError> {
        if !(burst.is_finite() && burst >= 1.0) {
            return Err(LinkSettingsError::BurstLength(burst));
        }
        // In balance, loss = good_to_bad / (good_to_bad + bad_to_good).
        let bad_to_good = 1.0 / burst;
        let good_to_bad = bad_to_good * loss.value() / (1.0 - loss.value());
        let good_to_bad = Probability::new(good_to_bad)
            .map_err(|_| LinkSettingsError::BurstsTooDense { burst, loss: loss.value() })?;
        Ok(Self::GilbertElliott(GilbertElliott {
            good_to_bad,
            bad_to_good: Probability::clamped(bad_to_good),
            loss_in_good: Probability::ZERO,
            loss_in_bad: Probability::ONE,
        }))
    }
}
