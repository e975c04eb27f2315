//! Sensors of the simulation: the directions of their beams and their errors.

use viaduct_units::Rng;

use crate::vlp32c;

/// A rotating lidar.
#[derive(Clone, Debug)]
pub struct Sensor {
    /// The beams, in the order of firing.
    pub(crate) beams: Vec<Beam>,
    /// Number of firings of each beam per turn.
    pub(crate) columns: usize,
    /// Angle of the first firing in radians, counter-clockwise from the x axis.
    pub(crate) first_azimuth: f32,
    /// Standard deviation of a range in metres.
    pub(crate) range_noise_m: f32,
}

/// A beam: its direction in the sensor, in radians.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beam {
    pub(crate) elevation: f32,
    /// Angle from the azimuth of the sensor, counter-clockwise.
    pub(crate) azimuth_offset: f32,
}

/// The model of a sensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SensorKind {
    /// A Velodyne VLP-32C, which fires 1812 times per turn.
    Vlp32c,
    /// 64 beams as those of a Velodyne HDL-64E.
    Hdl64,
    /// 32 beams as those of a Velodyne HDL-32E.
    Hdl32,
    /// 32 to 64 beams at random elevations.
    Random,
}

impl Sensor {
    /// Returns a sensor of a kind. The random source sets the angle of its first firing, its noise and its beams if they are random;
    /// a VLP-32C has none of these.
    #[must_use]
    pub fn new(kind: SensorKind, rng: &mut Rng) -> Self {
        let (elevations_deg, columns) = match kind {
            SensorKind::Vlp32c => return Self::vlp32c(),
            SensorKind::Hdl64 => ([evenly(2.0, -8.33, 32), evenly(-8.83, -24.33, 32)].concat(), 2000),
            SensorKind::Hdl32 => (evenly(-30.67, 10.67, 32), 1084),
            SensorKind::Random => (random_elevations(rng), 900 + rng.below(1300)),
        };
        let beam = |degrees: &f32| Beam { elevation: degrees.to_radians(), azimuth_offset: 0.0 };
        Self {
            beams: elevations_deg.iter().map(beam).collect(),
            columns,
            first_azimuth: rng.between(0.0, std::f64::consts::TAU / columns as f64) as f32,
            range_noise_m: rng.between(0.015, 0.03) as f32,
        }
    }

    /// Returns a Velodyne VLP-32C. Its range accuracy is 3 cm (one sigma).
    #[must_use]
    pub fn vlp32c() -> Self {
        let column_deg = 360.0 / vlp32c::SCAN_FIRINGS as f32;
        let beam = |(channel, laser): (usize, &vlp32c::Laser)| {
            // The sensor turns clockwise, also between the firings of two channels.
            let clockwise_deg = laser.azimuth_offset_deg + vlp32c::cycle_share(channel) * column_deg;
            Beam { elevation: laser.elevation_deg.to_radians(), azimuth_offset: -clockwise_deg.to_radians() }
        };
        Self {
            beams: vlp32c::LASERS.iter().enumerate().map(beam).collect(),
            columns: vlp32c::SCAN_FIRINGS,
            first_azimuth: 0.0,
            range_noise_m: 0.03,
        }
    }

    /// Returns the angle between two firings in radians.
    pub(crate) fn step(&self) -> f32 {
        std::f32::consts::TAU / self.columns as f32
    }
}

/// Returns `count` angles from the first to the last one, both included.
fn evenly(first: f32, last: f32, count: usize) -> Vec<f32> {
    (0..count).map(|index| first + (last - first) * index as f32 / (count - 1) as f32).collect()
}

fn random_elevations(rng: &mut Rng) -> Vec<f32> {
    let count = [32, 40, 48, 64].get(rng.below(4)).copied().unwrap_or(32);
    let (low, high) = (rng.between(-30.0, -18.0), rng.between(2.0, 12.0));
    evenly(low as f32, high as f32, count).iter().map(|angle| angle + 0.05 * rng.normal() as f32).collect()
}
