//! The detector alone, on one thread: from points to boxes.

use std::time::Instant;

use viaduct_components::kinds::detector::network::{Network, THRESHOLD, WEIGHTS};
use viaduct_lidar::cloud::{Cloud, Field, Number, Shape};

use super::case::POINT_OCTETS;
use super::job::WARM_UP;

/// Height of the sensor above the ground in metres, the default of the detector.
const SENSOR_HEIGHT_M: f32 = 1.8;

/// Measures the time for the picture, the network and the boxes of points of 22 octets, in nanoseconds.
pub(super) fn measure(points: &[u8], clouds: u32) -> Result<Vec<u64>, String> {
    let failed = |problem: String| format!("cannot measure the detector: {problem}");
    let cloud = cloud(points).map_err(failed)?;
    let mut network = Network::new(WEIGHTS).map_err(|error| failed(error.to_string()))?;
    let mut detect = || {
        let started = Instant::now();
        let found = network.detect(cloud.points(), SENSOR_HEIGHT_M, THRESHOLD);
        std::hint::black_box(found.map_err(|error| failed(error.to_string()))?);
        Ok(started.elapsed().as_nanos() as u64)
    };
    (0..WARM_UP + clouds).map(|_| detect()).skip(WARM_UP as usize).collect()
}

fn cloud(points: &[u8]) -> Result<Cloud<'_>, String> {
    let fields = [("x", 0), ("y", 4), ("z", 8)].map(|(name, offset)| Field { name, offset, number: Number::Float32 });
    let width = (points.len() / POINT_OCTETS) as u32;
    let shape = Shape { point_step: POINT_OCTETS as u32, row_step: points.len() as u32, width, height: 1 };
    Cloud::new(fields.into_iter(), shape, points).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cloud_has_a_time() {
        let times = measure(&[0; 10 * POINT_OCTETS], 2).unwrap();
        assert!(times.len() == 2 && times.iter().all(|nanos| *nanos > 0), "{times:?}");
    }
}
