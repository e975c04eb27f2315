//! Lidar: point clouds of ROS 1, ROS 2 and the bus, in any layout, and scans of packets.

use viaduct_components::kinds::detector::fuzzing;
use viaduct_components::kinds::velodyne_points::fuzzing as scanning;
use viaduct_lidar::cloud::POINTS_MAX;

/// Checks a point cloud: one that is accepted has no more points than octets.
pub fn clouds(octets: &[u8]) {
    for points in fuzzing::clouds(octets).into_iter().flatten() {
        assert!(points <= POINTS_MAX && points <= octets.len());
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    fuzzing::seeds()
}

/// Checks a scan: one that is accepted is not shorter than its packets.
pub fn scans(octets: &[u8]) {
    for packets in scanning::scans(octets).into_iter().flatten() {
        assert!(packets * 1206 <= octets.len());
    }
}

pub(crate) fn scan_seeds() -> Vec<Vec<u8>> {
    scanning::seeds()
}
