//! What a link is.

use super::{Bottleneck, Delay, GilbertElliott, Loss};
use crate::Probability;

/// What a link is. The default is perfect: it has no delay and loses nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkSettings {
    /// How fast packets leave, and how many may wait for it.
    pub bottleneck: Bottleneck,
    /// Which packets are lost.
    pub loss: Loss,
    /// Probability that a packet that is not lost arrives twice, each with a delay of its own.
    pub duplicate: Probability,
    /// How long a packet is on its way, after it has left.
    pub delay: Delay,
}

/// What in a link's settings cannot be. The caller is at fault.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum LinkSettingsError {
    /// Lost packets in a row: a number that cannot be a mean of counts from one on.
    #[error("{0} is no mean length of a burst: it must be finite and at least 1")]
    BurstLength(f64),
    /// Bursts that follow each other with fewer than one good packet between.
    #[error("bursts of {burst} packets cannot make {loss} of all packets lost")]
    BurstsTooDense {
        /// Mean length of a burst, packets.
        burst: f64,
        /// Loss of all packets that was asked for.
        loss: f64,
    },
    /// A state of the loss model that can be entered and never left.
    #[error("the bad state is never left: `bad_to_good` must be above 0 where `good_to_bad` is")]
    BadForEver,
    /// An outage or a time between outages that takes no time.
    #[error("outages and the time between them must last longer than nothing")]
    OutageWithoutTime,
    /// Outages, or times between them, that are beyond what a link is for.
    #[error("outages and the time between them must last a day at most")]
    OutageTooLong,
    /// A delay that is beyond what a link is for.
    #[error("a delay, and a jitter, must be below one hour")]
    DelayTooLong,
}

impl LinkSettings {
    pub(super) fn check(&self) -> Result<(), LinkSettingsError> {
        self.loss.check()?;
        self.delay.check()
    }
}

impl Loss {
    /// Loss in bursts, of which each packet is lost (the simple Gilbert model).
    ///
    /// `loss` is the part of all packets that is lost; `burst` is the mean number of lost packets in a row.
    ///
    /// # Errors
    /// Bursts that are shorter than a packet, or that cannot make up for that loss.
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
