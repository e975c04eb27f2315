//! The points and packets that the vehicle sends: one turn of a lidar with 32 lasers in a street, with noise of 2 cm.

use std::f32::consts::TAU;
use std::fs;
use std::path::{Path, PathBuf};

use viaduct_units::Rng;

use super::case::{Kind, PACKET_OCTETS, PACKETS, POINTS};
use crate::error::BenchError;

/// Lasers of the lidar, and their lowest and highest elevation in degrees.
const LASERS: usize = 32;
const ELEVATIONS_DEG: (f32, f32) = (-25.0, 15.0);
/// Height of the lidar over the ground, in metres.
const HEIGHT_M: f32 = 1.8;
/// Distances to the walls at both sides and at both ends of the street, in metres.
const WALLS_M: (f32, f32) = (9.0, 45.0);
/// Distance at which a beam above all walls is cut, in metres.
const RANGE_M: f32 = 60.0;
/// Resolution of a distance, in metres.
const RESOLUTION_M: f32 = 0.004;
/// Largest error of a distance, in metres.
const NOISE_M: f32 = 0.02;
/// Duration of a turn in seconds.
const TURN_S: f32 = 0.1;
const SEED: u64 = 1;

/// The files from which the ends read the content of their messages.
pub(super) struct Content {
    folder: PathBuf,
}

impl Content {
    /// Writes the files into a folder.
    pub(super) fn write(folder: &Path) -> Result<Self, BenchError> {
        let beams = beams();
        let content = Self { folder: folder.to_owned() };
        let (mut points, mut packets) = (Vec::new(), Vec::new());
        beams.iter().for_each(|beam| beam.write_point(&mut points));
        beams.iter().cycle().take(PACKETS * PACKET_OCTETS / 3 + 1).for_each(|beam| beam.write_firing(&mut packets));
        packets.truncate(PACKETS * PACKET_OCTETS);
        for (kind, octets) in [(Kind::Cloud, points), (Kind::Scan, packets)] {
            fs::write(content.path(kind), octets)
                .map_err(BenchError::system("cannot write the content of messages"))?;
        }
        Ok(content)
    }

    /// Returns the file for messages of a type.
    pub(super) fn path(&self, kind: Kind) -> PathBuf {
        self.folder.join(kind.name())
    }
}

/// A measured distance.
struct Beam {
    laser: usize,
    azimuth: f32,
    elevation: f32,
    distance_m: f32,
    intensity: u8,
}

fn beams() -> Vec<Beam> {
    let mut random = Rng::new(SEED);
    let (low, high) = ELEVATIONS_DEG;
    let beam = |index: usize| {
        let laser = index % LASERS;
        let azimuth = (index / LASERS) as f32 / POINTS.div_ceil(LASERS) as f32 * TAU;
        let elevation = (low + (high - low) * laser as f32 / (LASERS - 1) as f32).to_radians();
        let noise = (random.below(2001) as f32 / 1000.0 - 1.0) * NOISE_M;
        let distance_m = ((distance(azimuth, elevation) + noise) / RESOLUTION_M).round() * RESOLUTION_M;
        Beam { laser, azimuth, elevation, distance_m, intensity: random.below(64) as u8 }
    };
    (0..POINTS).map(beam).collect()
}

/// Returns the distance to the ground or to the nearest wall.
fn distance(azimuth: f32, elevation: f32) -> f32 {
    let (side, end) = WALLS_M;
    let flat = elevation.cos();
    let to_side = side / (azimuth.sin().abs() * flat).max(1e-3);
    let to_end = end / (azimuth.cos().abs() * flat).max(1e-3);
    let to_ground = if elevation < 0.0 { HEIGHT_M / -elevation.sin() } else { RANGE_M };
    to_side.min(to_end).min(to_ground).min(RANGE_M)
}

impl Beam {
    /// Writes x, y, z, intensity, ring and time.
    fn write_point(&self, out: &mut Vec<u8>) {
        let flat = self.distance_m * self.elevation.cos();
        let position = [flat * self.azimuth.cos(), flat * self.azimuth.sin(), self.distance_m * self.elevation.sin()];
        for value in position.into_iter().chain([self.intensity.into()]) {
            out.extend(value.to_le_bytes());
        }
        out.extend((self.laser as u16).to_le_bytes());
        out.extend((self.azimuth / TAU * TURN_S).to_le_bytes());
    }

    /// Writes distance and intensity, as in a packet.
    fn write_firing(&self, out: &mut Vec<u8>) {
        out.extend(((self.distance_m / RESOLUTION_M) as u16).to_le_bytes());
        out.push(self.intensity);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bridge::case::POINT_OCTETS;

    #[test]
    fn the_files_have_a_whole_cloud_and_a_whole_scan() {
        let folder = tempfile::tempdir().unwrap();
        let content = Content::write(folder.path()).unwrap();
        let octets = |kind| fs::metadata(content.path(kind)).unwrap().len() as usize;
        assert_eq!((octets(Kind::Cloud), octets(Kind::Scan)), (POINTS * POINT_OCTETS, PACKETS * PACKET_OCTETS));
    }

    #[test]
    fn distances_are_those_of_a_street() {
        let beams = beams();
        let near = |value: f32, expected: f32| (value - expected).abs() < 0.1;
        assert!(near(distance(0.0, -0.1), HEIGHT_M / 0.1_f32.sin()), "the ground");
        assert!(near(distance(TAU / 4.0, 0.0), 9.0) && near(distance(0.0, 0.0), 45.0), "the walls");
        assert!(beams.iter().all(|beam| (4.0..=RANGE_M + 0.1).contains(&beam.distance_m)));
    }
}
