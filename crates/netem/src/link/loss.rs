//! Loss of packets.

use viaduct_units::Rng;

use super::LinkSettingsError;
use crate::Probability;

/// A model of loss.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum Loss {
    /// No packet is lost.
    #[default]
    None,
    /// Each packet is lost with this probability, independently.
    Independent(Probability),
    /// Bursts counted in packets, independent of time: the Gilbert model, in which each packet of a burst is lost.
    Bursts(Bursts),
    /// Two states with a loss of their own each. Its bursts are counted in packets too.
    GilbertElliott(GilbertElliott),
}

/// Loss in bursts. A link starts between two bursts.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Bursts {
    /// Share of all packets that is lost.
    pub loss: Probability,
    /// Mean number of consecutive lost packets, at least 1 and at least `loss / (1 - loss)`.
    #[cfg_attr(feature = "serde", schemars(range(min = 1.0)))]
    pub packets: f64,
}

/// The Gilbert-Elliott model: two states, each with its own loss probability. A link starts in the good state.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct GilbertElliott {
    /// Probability of a change from good to bad, per packet.
    pub good_to_bad: Probability,
    /// Probability of a change from bad to good, per packet. Its inverse is the mean length of a burst.
    pub bad_to_good: Probability,
    /// Probability that a packet is lost in the good state. Default: 0.
    #[cfg_attr(feature = "serde", serde(default))]
    pub loss_in_good: Probability,
    /// Probability that a packet is lost in the bad state. Default: 1.
    #[cfg_attr(feature = "serde", serde(default = "always"))]
    pub loss_in_bad: Probability,
}

#[cfg(feature = "serde")]
const fn always() -> Probability {
    Probability::ONE
}

impl Loss {
    /// Returns a model with loss in bursts, in which each packet is lost.
    ///
    /// `loss` is the share of all packets that is lost; `burst` is the mean number of consecutive lost packets.
    ///
    /// # Errors
    /// The bursts are shorter than one packet, or too short for that loss.
    pub fn bursts(loss: Probability, burst: f64) -> Result<Self, LinkSettingsError> {
        let bursts = Bursts { loss, packets: burst };
        bursts.model().map(|_| Self::Bursts(bursts))
    }

    pub(super) fn check(&self) -> Result<(), LinkSettingsError> {
        match self {
            Self::None | Self::Independent(_) => Ok(()),
            Self::Bursts(bursts) => bursts.model().map(|_| ()),
            Self::GilbertElliott(model) if model.good_to_bad.value() > 0.0 && model.bad_to_good.value() == 0.0 => {
                Err(LinkSettingsError::BadForEver)
            }
            Self::GilbertElliott(_) => Ok(()),
        }
    }
}

impl Bursts {
    /// Returns the two states that yield these bursts.
    ///
    /// # Errors
    /// The bursts are shorter than one packet, or too short for that loss.
    pub fn model(&self) -> Result<GilbertElliott, LinkSettingsError> {
        let (loss, burst) = (self.loss.value(), self.packets);
        if !(burst.is_finite() && burst >= 1.0) {
            return Err(LinkSettingsError::BurstLength(burst));
        }
        // In balance, loss = good_to_bad / (good_to_bad + bad_to_good).
        let bad_to_good = 1.0 / burst;
        let good_to_bad = Probability::new(bad_to_good * loss / (1.0 - loss))
            .map_err(|_| LinkSettingsError::BurstsTooDense { burst, loss })?;
        Ok(GilbertElliott {
            good_to_bad,
            bad_to_good: Probability::clamped(bad_to_good),
            loss_in_good: Probability::ZERO,
            loss_in_bad: Probability::ONE,
        })
    }
}

/// State of the models with memory.
#[derive(Clone, Debug, Default)]
pub(super) struct LossState {
    /// `true` in the bad state.
    bad: bool,
}

impl LossState {
    /// Returns `true` if the next packet is lost.
    pub(super) fn loses(&mut self, loss: &Loss, random: &mut Rng) -> bool {
        match loss {
            Loss::None => false,
            Loss::Independent(probability) => probability.draw(random),
            // `Loss::check` refuses bursts without a model.
            Loss::Bursts(bursts) => bursts.model().is_ok_and(|model| self.loses_in_state(&model, random)),
            Loss::GilbertElliott(model) => self.loses_in_state(model, random),
        }
    }

    fn loses_in_state(&mut self, model: &GilbertElliott, random: &mut Rng) -> bool {
        let leaves = if self.bad { model.bad_to_good } else { model.good_to_bad };
        self.bad ^= leaves.draw(random);
        let loss = if self.bad { model.loss_in_bad } else { model.loss_in_good };
        loss.draw(random)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probability(value: f64) -> Probability {
        Probability::new(value).unwrap()
    }

    /// Returns for each of `n` packets `true` if it is lost.
    fn losses(loss: Loss, n: u64, seed: u64) -> Vec<bool> {
        let (mut state, mut random) = (LossState::default(), Rng::new(seed));
        assert_eq!(loss.check(), Ok(()));
        (0..n).map(|_| state.loses(&loss, &mut random)).collect()
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
    fn invalid_settings_are_rejected() {
        assert_eq!(Loss::bursts(probability(0.1), 0.5), Err(LinkSettingsError::BurstLength(0.5)));
        assert_eq!(
            Loss::bursts(probability(0.9), 2.0),
            Err(LinkSettingsError::BurstsTooDense { burst: 2.0, loss: 0.9 })
        );
        assert!(Loss::bursts(Probability::ONE, 2.0).is_err());
        assert!(Loss::Bursts(Bursts { loss: Probability::ONE, packets: f64::NAN }).check().is_err());
        let stuck = GilbertElliott {
            good_to_bad: Probability::ONE,
            bad_to_good: Probability::ZERO,
            loss_in_good: Probability::ZERO,
            loss_in_bad: Probability::ONE,
        };
        assert_eq!(Loss::GilbertElliott(stuck).check(), Err(LinkSettingsError::BadForEver));
    }
}
