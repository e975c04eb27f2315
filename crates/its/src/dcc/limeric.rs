//! The adaptive approach: each station limits its share of the channel (TS 102 687 V1.2.1, 5.4; "LIMERIC").

use std::time::Duration;

/// `CBR_target`: desired channel busy ratio, 0 to 1.
pub const CBR_TARGET: f64 = 0.68;
/// `alpha`: rate at which the own share decays.
pub const ALPHA: f64 = 0.016;
/// `beta`: weight of the distance from the target.
pub const BETA: f64 = 0.0012;
/// `delta_max`: largest share of the time in which a station sends.
pub const DELTA_MAX: f64 = 0.03;
/// `delta_min`: smallest share.
pub const DELTA_MIN: f64 = 0.0006;
/// `G+max`: largest increase in one step.
pub const G_PLUS_MAX: f64 = 0.0005;
/// `G-max`: largest decrease in one step.
pub const G_MINUS_MAX: f64 = -0.00025;
/// `T_CBR`: interval between two measurements of the channel.
pub const T_CBR: Duration = Duration::from_millis(100);
/// Interval between two steps: two measurements.
pub const T_STEP: Duration = Duration::from_millis(200);

/// The share of the time in which this station may send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Limeric {
    /// The last two measurements (`CBR_L_0_Hop` or `CBR_G`), the newer one first.
    measured: [f64; 2],
    /// `CBR_ITS-S`: the smoothed channel busy ratio.
    smoothed: f64,
    /// `delta`: the share, [`DELTA_MIN`] to [`DELTA_MAX`].
    delta: f64,
}

impl Limeric {
    pub(super) const fn new() -> Self {
        Self { measured: [0.0; 2], smoothed: 0.0, delta: DELTA_MAX }
    }

    /// Stores a measured busy ratio, 0 to 1. Ignores NaN and infinity.
    pub(super) fn measure(&mut self, ratio: f64) {
        if ratio.is_finite() {
            self.measured = [ratio.clamp(0.0, 1.0), self.measured[0]];
        }
    }

    /// Performs steps 1 to 5 of 5.4. To be called each 200 ms.
    pub(super) fn step(&mut self) {
        let [newer, older] = self.measured;
        self.smoothed = 0.5 * self.smoothed + 0.5 * f64::midpoint(newer, older);
        let wanted = BETA * (CBR_TARGET - self.smoothed);
        let offset = if wanted > 0.0 { wanted.min(G_PLUS_MAX) } else { wanted.max(G_MINUS_MAX) };
        self.delta = ((1.0 - ALPHA) * self.delta + offset).clamp(DELTA_MIN, DELTA_MAX);
    }

    pub(super) const fn delta(&self) -> f64 {
        self.delta
    }

    /// Returns the smoothed channel busy ratio (`CBR_ITS-S`).
    pub(super) const fn smoothed(&self) -> f64 {
        self.smoothed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(mut limeric: Limeric, ratio: f64, steps: u32) -> Limeric {
        for _ in 0..steps {
            limeric.measure(ratio);
            limeric.measure(ratio);
            limeric.step();
        }
        limeric
    }

    /// TS 102 687, 5.4, step 1: half of the old value and half of the mean of two measurements.
    #[test]
    fn busy_ratio_is_smoothed() {
        let mut limeric = Limeric::new();
        limeric.measure(0.4);
        limeric.measure(0.8);
        limeric.step();
        assert!((limeric.smoothed() - 0.3).abs() < 1e-12);
        limeric.step();
        assert!((limeric.smoothed() - 0.45).abs() < 1e-12);
    }

    /// TS 102 687, 5.4, steps 2 and 3: the rise and the fall of one step have limits.
    #[test]
    fn steps_up_and_down_are_bounded() {
        let free = Limeric { measured: [0.0; 2], smoothed: 0.0, delta: 0.01 };
        let mut up = free;
        up.step();
        assert!((up.delta() - (0.984 * 0.01 + G_PLUS_MAX)).abs() < 1e-12);
        let mut down = Limeric { measured: [1.0; 2], smoothed: 1.0, ..free };
        down.step();
        assert!((down.delta() - (0.984 * 0.01 + G_MINUS_MAX)).abs() < 1e-12);
    }

    /// TS 102 687, 5.4, steps 4 and 5: `delta` stays within its limits.
    #[test]
    fn delta_stays_within_its_limits() {
        assert_eq!(after(Limeric::new(), 0.0, 1000).delta(), DELTA_MAX);
        assert_eq!(after(Limeric::new(), 1.0, 1000).delta(), DELTA_MIN);
    }

    /// Stations on one channel that follow the rule converge to equal shares near the target, from any start.
    #[test]
    fn stations_on_one_channel_converge() {
        let mut stations: Vec<Limeric> = (0..80)
            .map(|i| Limeric { delta: if i % 2 == 0 { DELTA_MAX } else { DELTA_MIN }, ..Limeric::new() })
            .collect();
        for _ in 0..600 {
            let busy: f64 = stations.iter().map(Limeric::delta).sum();
            stations.iter_mut().for_each(|station| *station = after(*station, busy, 1));
        }
        let deltas: Vec<f64> = stations.iter().map(Limeric::delta).collect();
        let (low, high) =
            deltas.iter().fold((1.0_f64, 0.0_f64), |(low, high), delta| (low.min(*delta), high.max(*delta)));
        assert!(high - low < 1e-5, "{low} {high}");
        // The fixed point of the rule: n beta T / (alpha + n beta).
        let expected = 80.0 * BETA * CBR_TARGET / (ALPHA + 80.0 * BETA);
        assert!((deltas.iter().sum::<f64>() - expected).abs() < 0.01, "{} {expected}", deltas.iter().sum::<f64>());
    }

    #[test]
    fn invalid_ratio_is_clamped() {
        let mut limeric = Limeric::new();
        for ratio in [f64::NAN, f64::INFINITY, -3.0, 7.0] {
            limeric.measure(ratio);
        }
        assert_eq!(limeric.measured, [1.0, 0.0]);
    }
}
