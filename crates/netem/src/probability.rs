//! Probabilities.

use viaduct_units::Rng;

/// A probability: 0 is never, 1 is always.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "f64", into = "f64"))]
pub struct Probability(f64);

/// The number is below 0, above 1 or NaN.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{0} is not a probability: it must be within 0 to 1")]
pub struct NotAProbability(pub f64);

impl Probability {
    /// Never.
    pub const ZERO: Self = Self(0.0);
    /// Always.
    pub const ONE: Self = Self(1.0);

    /// Returns the probability of a number within 0 to 1.
    ///
    /// # Errors
    /// Returns an error for any other number, NaN included.
    pub fn new(value: f64) -> Result<Self, NotAProbability> {
        if (0.0..=1.0).contains(&value) { Ok(Self(value)) } else { Err(NotAProbability(value)) }
    }

    /// Returns the probability nearest to `value`, or 0 for NaN.
    #[must_use]
    pub fn clamped(value: f64) -> Self {
        if value.is_nan() { Self::ZERO } else { Self(value.clamp(0.0, 1.0)) }
    }

    /// Draws a random number, and returns `true` with this probability.
    pub(crate) fn draw(self, random: &mut Rng) -> bool {
        random.fraction() < self.0
    }

    /// Returns the number, 0 to 1.
    #[must_use]
    pub const fn value(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Probability {
    type Error = NotAProbability;

    fn try_from(value: f64) -> Result<Self, NotAProbability> {
        Self::new(value)
    }
}

impl From<Probability> for f64 {
    fn from(probability: Probability) -> Self {
        probability.value()
    }
}

#[cfg(feature = "serde")]
impl schemars::JsonSchema for Probability {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Probability".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "number", "minimum": 0.0, "maximum": 1.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_from_0_to_1_are_probabilities() {
        assert!([0.0, 0.05, 1.0].into_iter().all(|value| Probability::new(value).is_ok()));
        assert!([-0.1, 1.1, f64::NAN, f64::INFINITY].into_iter().all(|value| Probability::new(value).is_err()));
        assert_eq!(Probability::new(2.0), Err(NotAProbability(2.0)));
        assert_eq!(Probability::clamped(f64::NAN), Probability::ZERO);
    }
}
