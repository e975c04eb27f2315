//! Radio range, and air time of frames.

use std::time::Duration;

use viaduct_units::{Metres, Rng};

use super::{LossReason, air::Fate};
use crate::Probability;

/// Speed of light in metres per second.
const LIGHT_MPS: f64 = 299_792_458.0;
/// Slot of a channel of 10 MHz (IEEE 802.11, OFDM).
const SLOT: Duration = Duration::from_micros(13);
/// Short inter-frame space of a channel of 10 MHz.
const SIFS: Duration = Duration::from_micros(32);
/// Slots of free channel after SIFS, for the access category of CAMs (`AIFSN` of AC_BE; EN 302 663, annex C).
const AIFS_SLOTS: u32 = 6;
/// Maximum number of random slots after these (`CWmin` of AC_BE).
const CONTENTION_WINDOW: usize = 15;
/// Preamble and signal field of a frame in a channel of 10 MHz.
const PREAMBLE: Duration = Duration::from_micros(40);
/// MAC header, LLC and frame check sequence around a frame; SERVICE field and tail bits.
const OVERHEAD_BITS: u64 = (26 + 8 + 4) * 8 + 16 + 6;
/// Time for an acknowledgement: SIFS, 14 octets at 6 Mbit/s with their preamble, and propagation in both directions.
pub(super) const ACKNOWLEDGEMENT: Duration = Duration::from_micros(100);

/// The radio of all stations of a world.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Radio {
    /// Distance up to which no signal fades.
    pub clear: Metres,
    /// Distance from which on all signals fade. Between both, the probability of reception is `1 - ((d - clear) /
    /// (range - clear))^2`.
    pub range: Metres,
    /// Additional probability that a signal fades, independent of its distance.
    pub loss: Probability,
    /// Rate in bits per second.
    pub bits_per_second: u32,
    /// Capture ratio: a signal survives a collision if the other sender is at least this many times as far. `None`
    /// disables collisions.
    ///
    /// 2 is about 6 dB in free space.
    pub capture: Option<f64>,
}

/// An invalid setting of the radio.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum RadioError {
    /// The range is not above zero, or the clear distance is not within the range.
    #[error("a radio with {clear} m clear and {range} m range: it must be 0 <= clear <= range, and 0 < range")]
    Distances {
        /// Clear distance in metres.
        clear: f64,
        /// Range in metres.
        range: f64,
    },
    /// The rate is zero.
    #[error("a radio needs a rate above 0 bit/s")]
    Rate,
    /// The capture ratio is below 1, so that both signals could survive a collision.
    #[error("the capture ratio is {0}, but must be finite and at least 1")]
    Capture(f64),
}

impl Default for Radio {
    /// Returns 6 Mbit/s in 10 MHz, as in ITS-G5; a range of 500 m, half of it clear; collisions with capture at twice
    /// the distance.
    fn default() -> Self {
        Self {
            clear: Metres(250.0),
            range: Metres(500.0),
            loss: Probability::ZERO,
            bits_per_second: 6_000_000,
            capture: Some(2.0),
        }
    }
}

impl Radio {
    pub(super) fn check(&self) -> Result<(), RadioError> {
        let (clear, range) = (self.clear.value(), self.range.value());
        if !(range.is_finite() && range > 0.0 && (0.0..=range).contains(&clear)) {
            return Err(RadioError::Distances { clear, range });
        }
        if self.bits_per_second == 0 {
            return Err(RadioError::Rate);
        }
        match self.capture {
            Some(ratio) if !(ratio.is_finite() && ratio >= 1.0) => Err(RadioError::Capture(ratio)),
            _ => Ok(()),
        }
    }

    /// Returns the probability that a signal from the given distance does not fade.
    #[must_use]
    pub fn reception(&self, distance: Metres) -> Probability {
        let beyond = (distance - self.clear).value().max(0.0);
        let faded = if beyond > 0.0 { (beyond / (self.range - self.clear).value()).powi(2) } else { 0.0 };
        Probability::clamped((1.0 - faded) * (1.0 - self.loss.value()))
    }

    /// Returns the air time of a frame of `octets` octets.
    #[must_use]
    pub fn airtime(&self, octets: usize) -> Duration {
        let bits = octets as u64 * 8 + OVERHEAD_BITS;
        PREAMBLE + Duration::from_nanos(bits * 1_000_000_000 / u64::from(self.bits_per_second.max(1)))
    }

    pub(super) fn draw_fate(&self, distance: Metres, random: &mut Rng) -> Fate {
        if self.reception(distance).draw(random) { Fate::Received } else { Fate::Lost(LossReason::Faded) }
    }
}

/// Returns the propagation time of light.
pub(super) fn propagation(distance: Metres) -> Duration {
    Duration::try_from_secs_f64(distance.value() / LIGHT_MPS).unwrap_or(Duration::ZERO)
}

/// Returns the time for which a station waits while the channel is free: AIFS and a random number of slots.
pub(super) fn draw_backoff(random: &mut Rng) -> Duration {
    SIFS + SLOT * (AIFS_SLOTS + u32::try_from(random.below(CONTENTION_WINDOW + 1)).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reception_falls_from_the_clear_distance_to_the_range() {
        let radio = Radio { loss: Probability::new(0.1).unwrap(), ..Radio::default() };
        let at = |metres: f64| radio.reception(Metres(metres)).value();
        assert_eq!((at(0.0), at(250.0)), (0.9, 0.9));
        assert!((at(375.0) - 0.675).abs() < 1e-9);
        assert_eq!((at(500.0), at(501.0)), (0.0, 0.0));
        let disc = Radio { clear: Metres(500.0), ..Radio::default() };
        assert_eq!(
            (disc.reception(Metres(500.0)), disc.reception(Metres(500.1))),
            (Probability::ONE, Probability::ZERO)
        );
    }

    #[test]
    fn a_frame_takes_its_airtime() {
        // 300 octets with 38 of the MAC and 22 bits are 2726 bits at 6 Mbit/s, behind 40 us.
        assert_eq!(Radio::default().airtime(300), Duration::from_nanos(494_333));
        assert_eq!(propagation(Metres(299.792_458)), Duration::from_micros(1));
    }

    #[test]
    fn invalid_settings_are_rejected() {
        let radio = Radio::default();
        assert_eq!(radio.check(), Ok(()));
        assert!(Radio { range: Metres(0.0), ..radio }.check().is_err());
        assert!(Radio { range: Metres(f64::NAN), ..radio }.check().is_err());
        assert!(Radio { clear: Metres(501.0), ..radio }.check().is_err());
        assert_eq!(Radio { bits_per_second: 0, ..radio }.check(), Err(RadioError::Rate));
        assert_eq!(Radio { capture: Some(0.5), ..radio }.check(), Err(RadioError::Capture(0.5)));
    }
}
