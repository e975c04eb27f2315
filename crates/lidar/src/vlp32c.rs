//! The beams and the firing times of a Velodyne VLP-32C (user manual 63-9325, chapters 9.3 to 9.5 and appendix of firing sequences).

/// Number of lasers.
pub const CHANNELS: usize = 32;

/// Number of firings of all lasers in a data packet.
pub const BLOCKS: usize = 12;

/// Number of data packets of a scan: 1507 packets/s at 10 turns/s, rounded up as the ROS driver does.
pub const SCAN_PACKETS: usize = 151;

/// Number of firings of all lasers in a scan.
pub const SCAN_FIRINGS: usize = SCAN_PACKETS * BLOCKS;

/// Time between two firings of the same laser in nanoseconds.
pub const FIRING_CYCLE_NS: u64 = 55_296;

/// Time between two pairs of lasers in nanoseconds.
pub const PAIR_NS: u64 = 2_304;

/// Unit of a distance in metres.
pub const DISTANCE_UNIT_M: f32 = 0.004;

/// A laser: its direction in the sensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Laser {
    /// Angle above the horizontal plane in degrees.
    pub elevation_deg: f32,
    /// Angle from the azimuth of the sensor in degrees, clockwise.
    pub azimuth_offset_deg: f32,
}

/// The lasers in the order of their firing and of the channels of a data packet.
pub const LASERS: [Laser; CHANNELS] = [
    laser(-25.0, 1.4),
    laser(-1.0, -4.2),
    laser(-1.667, 1.4),
    laser(-15.639, -1.4),
    laser(-11.31, 1.4),
    laser(0.0, -1.4),
    laser(-0.667, 4.2),
    laser(-8.843, -1.4),
    laser(-7.254, 1.4),
    laser(0.333, -4.2),
    laser(-0.333, 1.4),
    laser(-6.148, -1.4),
    laser(-5.333, 4.2),
    laser(1.333, -1.4),
    laser(0.667, 4.2),
    laser(-4.0, -1.4),
    laser(-4.667, 1.4),
    laser(1.667, -4.2),
    laser(1.0, 1.4),
    laser(-3.667, -4.2),
    laser(-3.333, 4.2),
    laser(3.333, -1.4),
    laser(2.333, 1.4),
    laser(-2.667, -1.4),
    laser(-3.0, 1.4),
    laser(7.0, -1.4),
    laser(4.667, 1.4),
    laser(-2.333, -4.2),
    laser(-2.0, 4.2),
    laser(15.0, -1.4),
    laser(10.333, 1.4),
    laser(-1.333, -1.4),
];

const fn laser(elevation_deg: f32, azimuth_offset_deg: f32) -> Laser {
    Laser { elevation_deg, azimuth_offset_deg }
}

/// Returns the share of the firing cycle that has passed when a channel fires, 0 up to 1: two lasers fire at a time.
#[must_use]
pub fn cycle_share(channel: usize) -> f32 {
    (channel / 2) as f32 * PAIR_NS as f32 / FIRING_CYCLE_NS as f32
}

/// Returns the number of each channel from the lowest beam upwards (0 to 31), which ROS calls the ring.
#[must_use]
pub fn rings() -> [u16; CHANNELS] {
    LASERS.map(|laser| LASERS.iter().filter(|other| other.elevation_deg < laser.elevation_deg).count() as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ring_is_used_once_and_the_outer_beams_are_those_of_the_manual() {
        let mut rings = rings();
        assert_eq!((rings[0], rings[29]), (0, 31));
        rings.sort_unstable();
        assert!(rings.iter().enumerate().all(|(index, ring)| index == usize::from(*ring)));
        let (low, high) = (LASERS[0].elevation_deg, LASERS[29].elevation_deg);
        assert_eq!(high - low, 40.0, "the vertical field of view");
    }
}
