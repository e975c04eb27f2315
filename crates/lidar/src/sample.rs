//! Scans with known vehicles, for training and evaluation.

use viaduct_units::Rng;

use crate::bev::BirdsEye;
use crate::boxes::TrueBox;
use crate::packet::{self, Packet};
use crate::points::Converter;
use crate::scene::{Caster, Scene, Sensor, SensorKind, Style};

/// Standard deviation of the height at which a sensor is assumed to be mounted, in metres.
const HEIGHT_ERROR_M: f64 = 0.05;
/// Separates the random numbers of a sample from those of its scene.
const SAMPLE_SALT: u64 = 0x11DA_25CA;

/// A scan of a scene at rest.
pub struct Sample {
    /// Points in metres from the sensor: x forward, y left, z up.
    pub points: Vec<[f32; 3]>,
    /// The vehicles, with the number of their returns.
    pub truth: Vec<TrueBox>,
    /// Height at which the sensor is assumed to be mounted, with an error of 5 cm (one sigma).
    pub sensor_height_m: f32,
    /// `true` for a scene with clutter that resembles vehicles.
    pub is_hard: bool,
}

impl Sample {
    /// Returns the scan of a VLP-32C in the scene of a seed. Its points have passed through data packets. Every second scene, on
    /// average, has clutter that resembles vehicles.
    #[must_use]
    pub fn vlp32c(seed: u64) -> Self {
        Self::new(seed, &mut Rng::new(seed ^ SAMPLE_SALT), SensorKind::Vlp32c)
    }

    /// Returns the scan of a random sensor: 50 % VLP-32C, 20 % HDL-64E, 10 % HDL-32E, 20 % with random beams.
    #[must_use]
    pub fn mixed(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ SAMPLE_SALT);
        let kind = match rng.below(10) {
            0..5 => SensorKind::Vlp32c,
            5..7 => SensorKind::Hdl64,
            7 => SensorKind::Hdl32,
            _ => SensorKind::Random,
        };
        Self::new(seed, &mut rng, kind)
    }

    fn new(seed: u64, rng: &mut Rng, kind: SensorKind) -> Self {
        let is_hard = rng.below(2) == 1;
        let scene = Scene::generate(seed, Style::Snapshot { hard: is_hard });
        let caster = Caster::new(Sensor::new(kind, rng));
        let scan = caster.cast(&scene, 0.0, rng);
        let mut points = Vec::new();
        if kind == SensorKind::Vlp32c {
            let converter = Converter::default();
            for packet in packet::encode(&scan, 0).iter().filter_map(|octets| Packet::parse(octets).ok()) {
                converter.each(&packet, 0.0, |point| points.push([point.x, point.y, point.z]));
            }
        } else {
            points.extend(caster.points(&scan).iter().map(|[x, y, z, _]| [*x, *y, *z]));
        }
        let height = f64::from(scene.sensor_height_m()) + HEIGHT_ERROR_M * rng.normal();
        Self { points, truth: scene.truth(0.0, &scan), sensor_height_m: height as f32, is_hard }
    }

    /// Draws the points from above.
    pub fn draw(&self, view: &mut BirdsEye) {
        view.draw(self.points.iter().copied(), self.sensor_height_m);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_determines_the_sample_and_both_kinds_of_scenes_occur() {
        let (first, second) = (Sample::mixed(3), Sample::mixed(3));
        assert_eq!((first.points, first.truth), (second.points, second.truth));
        let hard = (0..40).filter(|seed| Sample::vlp32c(*seed).is_hard).count();
        assert!((8..32).contains(&hard), "{hard}");
    }
}
