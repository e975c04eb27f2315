//! Loss of packets.

use std::time::Duration;

use viaduct_units::{Mono, Rng};

use super::LinkSettingsError;
use crate::Probability;

/// Longest mean of outages, and of the times between them: one day.
const OUTAGE_MAX: Duration = Duration::from_secs(24 * 3600);

/// A model of loss.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Loss {
    /// No packet is lost.
    #[default]
    None,
    /// Each packet is lost with this probability, independently.
    Independent(Probability),
    /// Bursts counted in packets, independent of time. [`Loss::bursts`] derives one from a rate and a length.
    GilbertElliott(GilbertElliott),
    /// Bursts in time: each packet sent during an outage is lost.
    ///
    /// Outages and the times between them are exponentially distributed. A link starts between two outages. Both means
    /// are above 0 and at most one day.
    Outages {
        /// Mean length of an outage.
        outage: Duration,
        /// Mean time from the end of an outage to the next.
        between: Duration,
    },
}

/// The Gilbert-Elliott model: two states, each with its own loss probability. A link starts in the good state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// Probability of a change from good to bad, per packet.
    pub good_to_bad: Probability,
    /// Probability of a change from bad to good, per packet. Its inverse is the mean length of a burst.
    pub bad_to_good: Probability,
    /// Probability that a packet is lost in the good state.
    pub loss_in_good: Probability,
    /// Probability that a packet is lost in the bad state.
    pub loss_in_bad: Probability,
}

impl Loss {
    pub(super) fn check(&self) -> Result<(), LinkSettingsError> {
        match self {
            Self::None | Self::Independent(_) => Ok(()),
            Self::GilbertElliott(model) if model.good_to_bad.value() > 0.0 && model.bad_to_good.value() == 0.0 => {
                Err(LinkSettingsError::BadForEver)
            }
            Self::GilbertElliott(_) => Ok(()),
            Self::Outages { outage, between } if outage.is_zero() || between.is_zero() => {
                Err(LinkSettingsError::OutageWithoutTime)
            }
            Self::Outages { outage, between } if *outage > OUTAGE_MAX || *between > OUTAGE_MAX => {
                Err(LinkSettingsError::OutageTooLong)
            }
            Self::Outages { .. } => Ok(()),
        }
    }
}

/// State of the models with memory.
#[derive(Clone, Debug, Default)]
pub(super) struct LossState {
    /// `true` in the bad state or during an outage.
    bad: bool,
    /// End of the current outage or of the time between two, or `None` before the first packet.
    until: Option<Mono>,
}

impl LossState {
    /// Returns `true` if a packet sent at the given time is lost.
    pub(super) fn loses(&mut self, loss: &Loss, sent: Mono, random: &mut Rng) -> bool {
        match loss {
            Loss::None => false,
            Loss::Independent(probability) => probability.draw(random),
            Loss::GilbertElliott(model) => self.loses_in_state(model, random),
            Loss::Outages { outage, between } => self.is_out(sent, *outage, *between, random),
        }
    }

    fn loses_in_state(&mut self, model: &GilbertElliott, random: &mut Rng) -> bool {
        let leaves = if self.bad { model.bad_to_good } else { model.good_to_bad };
        self.bad ^= leaves.draw(random);
        let loss = if self.bad { model.loss_in_bad } else { model.loss_in_good };
        loss.draw(random)
    }

    fn is_out(&mut self, sent: Mono, outage: Duration, between: Duration, random: &mut Rng) -> bool {
        let mut until = self.until.unwrap_or_else(|| Mono::default().plus(random.exponential(between)));
        while until <= sent {
            // Skips a long pause without packets, so that the work per packet is limited.
            if sent.since(until) > (outage + between) * CYCLES_MAX {
                until = sent;
            }
            self.bad = !self.bad;
            let mean = if self.bad { outage } else { between };
            // At least a nanosecond, so that the loop ends.
            until = until.plus(random.exponential(mean).max(Duration::from_nanos(1)));
        }
        self.until = Some(until);
        self.bad
    }
}

/// Approximate number of outages drawn for one packet; after a longer pause the model starts again.
const CYCLES_MAX: u32 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    fn probability(value: f64) -> Probability {
        Probability::new(value).unwrap()
    }

    /// Returns for each of `n` packets, sent one per millisecond, whether it is lost.
    fn losses(loss: Loss, n: u64, seed: u64) -> Vec<bool> {
        let (mut state, mut random) = (LossState::default(), Rng::new(seed));
        (0..n).map(|number| state.loses(&loss, Mono(Duration::from_millis(number)), &mut random)).collect()
    }

    fn rate(losses: &[bool]) -> f64 {
        losses.iter().filter(|lost| **lost).count() as f64 / losses.len() as f64
    }

    /// Returns the mean number of consecutive lost packets.
    fn burst_mean(losses: &[bool]) -> f64 {
        let bursts = losses.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        losses.iter().filter(|lost| **lost).count() as f64 / bursts as f64
    }

    #[test]
    fn independent_loss_is_within_binomial_bounds() {
        for (seed, p) in [(1, 0.003), (2, 0.05), (3, 0.25), (4, 0.9)] {
            let n = 100_000;
            let five_sigma = 5.0 * (p * (1.0 - p) / n as f64).sqrt();
            let lost = losses(Loss::Independent(probability(p)), n, seed);
            assert!((rate(&lost) - p).abs() < five_sigma, "{p}: {}", rate(&lost));
            // Independent: a run of losses has the length of a geometric distribution.
            assert!((burst_mean(&lost) * (1.0 - p) - 1.0).abs() < 0.1, "{p}: {}", burst_mean(&lost));
        }
    }

    #[test]
    fn bursts_have_the_rate_and_the_mean_length_that_were_asked_for() {
        for (seed, p, length) in [(1, 0.05, 8.0), (2, 0.01, 3.0), (3, 0.3, 2.0)] {
            let lost = losses(Loss::bursts(probability(p), length).unwrap(), 400_000, seed);
            assert!((rate(&lost) / p - 1.0).abs() < 0.1, "{p}: {}", rate(&lost));
            assert!((burst_mean(&lost) / length - 1.0).abs() < 0.1, "{length}: {}", burst_mean(&lost));
        }
    }

    #[test]
    fn both_states_have_a_loss_of_their_own() {
        let model = GilbertElliott {
            good_to_bad: probability(0.01),
            bad_to_good: probability(0.04),
            loss_in_good: probability(0.1),
            loss_in_bad: probability(0.6),
        };
        // A fifth of the time is bad: 0.8 x 0.1 + 0.2 x 0.6.
        let lost = losses(Loss::GilbertElliott(model), 400_000, 5);
        assert!((rate(&lost) - 0.2).abs() < 0.01, "{}", rate(&lost));
    }

    #[test]
    fn outages_last_as_long_as_asked_for() {
        let outages = Loss::Outages { outage: Duration::from_millis(30), between: Duration::from_millis(570) };
        let lost = losses(outages, 1_000_000, 6);
        assert!((rate(&lost) - 0.05).abs() < 0.005, "{}", rate(&lost));
        // In packets one millisecond apart; outages without a packet are not counted, which makes the mean longer.
        assert!((burst_mean(&lost) - 30.5).abs() < 3.0, "{}", burst_mean(&lost));
    }

    #[test]
    fn a_long_pause_takes_no_long_work() {
        let outages = Loss::Outages { outage: Duration::from_nanos(1), between: Duration::from_nanos(1) };
        let (mut state, mut random) = (LossState::default(), Rng::new(1));
        state.loses(&outages, Mono(Duration::from_secs(1 << 40)), &mut random);
        assert!(state.until.unwrap() > Mono(Duration::from_secs(1 << 40)));
    }

    #[test]
    fn the_longest_outages_are_no_panic() {
        let longest = Loss::Outages { outage: OUTAGE_MAX, between: OUTAGE_MAX };
        assert_eq!(longest.check(), Ok(()));
        let (mut state, mut random) = (LossState::default(), Rng::new(1));
        for sent in [Duration::ZERO, Duration::from_secs(1 << 40), Duration::MAX - Duration::from_nanos(1)] {
            state.loses(&longest, Mono(sent), &mut random);
            assert!(state.until.unwrap() > Mono(sent));
        }
    }

    #[test]
    fn invalid_settings_are_rejected() {
        assert_eq!(Loss::bursts(probability(0.1), 0.5), Err(LinkSettingsError::BurstLength(0.5)));
        assert_eq!(
            Loss::bursts(probability(0.9), 2.0),
            Err(LinkSettingsError::BurstsTooDense { burst: 2.0, loss: 0.9 })
        );
        assert!(Loss::bursts(Probability::ONE, 2.0).is_err());
        assert!(Loss::Outages { outage: Duration::ZERO, between: Duration::ZERO }.check().is_err());
        for (outage, between) in [(Duration::MAX, OUTAGE_MAX), (OUTAGE_MAX, OUTAGE_MAX + Duration::from_nanos(1))] {
            assert_eq!(Loss::Outages { outage, between }.check(), Err(LinkSettingsError::OutageTooLong));
        }
        let stuck = GilbertElliott {
            good_to_bad: Probability::ONE,
            bad_to_good: Probability::ZERO,
            loss_in_good: Probability::ZERO,
            loss_in_bad: Probability::ONE,
        };
        assert_eq!(Loss::GilbertElliott(stuck).check(), Err(LinkSettingsError::BadForEver));
    }
}
