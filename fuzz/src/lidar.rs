//! Lidar: point clouds of ROS 1, ROS 2 and the bus, in any layout, and scans of packets.

use viaduct_components::kinds::detector::fuzzing;
use viaduct_components::kinds::velodyne_points::fuzzing as scanning;
use viaduct_lidar::cloud::POINTS_MAX;
use viaduct_lidar::packet::PACKET_OCTETS;
use viaduct_lidar::vlp32c::{BLOCKS, CHANNELS};

/// Checks a point cloud: one that is accepted has no more points than octets.
pub fn clouds(octets: &[u8]) {
    for points in fuzzing::clouds(octets).into_iter().flatten() {
        assert!(points <= POINTS_MAX && points <= octets.len());
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    fuzzing::seeds()
}

/// Checks a scan: one that is accepted is not shorter than its packets, and a packet has at most one point of each beam and firing.
pub fn scans(octets: &[u8]) {
    for scanning::Contents { packets, points } in scanning::scans(octets).into_iter().flatten() {
        assert!(packets * PACKET_OCTETS <= octets.len() && points <= packets * BLOCKS * CHANNELS);
    }
}

pub(crate) fn scan_seeds() -> Vec<Vec<u8>> {
    scanning::seeds()
}
