//! Points from data packets, in the layout that the ROS driver of Velodyne publishes.
//!
//! ```text
//!   0      4      8      12          16     18     22 octets
//!   ┌──────┬──────┬──────┬───────────┬──────┬──────┐
//!   │ x    │ y    │ z    │ intensity │ ring │ time │   x forward, y left, z up in metres; intensity 0 to 255;
//!   │ f32  │ f32  │ f32  │ f32       │ u16  │ f32  │   ring 0 (lowest beam) to 31; time in seconds since the start of the scan
//!   └──────┴──────┴──────┴───────────┴──────┴──────┘
//! ```

use crate::packet::{Block, FULL_TURN, Packet};
use crate::vlp32c::{BLOCKS, CHANNELS, DISTANCE_UNIT_M, FIRING_CYCLE_NS, LASERS, PAIR_NS, cycle_share, rings};

/// Length of a point in octets.
pub const POINT_OCTETS: usize = 22;

/// Azimuths of the table: 0.01 degrees.
const AZIMUTHS: usize = FULL_TURN as usize;

/// Converts data packets to points. It holds tables of 290 kB.
pub struct Converter {
    /// Cosine and sine of each azimuth.
    directions: Vec<[f32; 2]>,
    channels: [Channel; CHANNELS],
}

/// The constants of a channel.
#[derive(Clone, Copy, Default)]
struct Channel {
    /// Metres along the ground and upwards per unit of distance.
    along: f32,
    up: f32,
    /// Azimuth relative to the block, in units of 0.01 degrees, and its growth per unit of difference between two blocks.
    offset: f32,
    cycle_share: f32,
    ring: u16,
    /// Time of the firing in the block in seconds.
    time_s: f32,
}

/// A point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Position in metres: forward.
    pub x: f32,
    /// Position in metres: left.
    pub y: f32,
    /// Position in metres: up.
    pub z: f32,
    /// Reflectivity, 0 to 255.
    pub intensity: f32,
    /// Number of the beam from the lowest one, 0 to 31.
    pub ring: u16,
    /// Time since the start of the scan in seconds.
    pub time_s: f32,
}

impl Point {
    /// Returns the octets of the point.
    #[must_use]
    #[inline]
    pub fn to_octets(&self) -> [u8; POINT_OCTETS] {
        let mut octets = [0; POINT_OCTETS];
        let (floats, rest) = octets.split_at_mut(16);
        for (target, value) in floats.as_chunks_mut::<4>().0.iter_mut().zip([self.x, self.y, self.z, self.intensity]) {
            *target = value.to_le_bytes();
        }
        let (ring, time) = rest.split_at_mut(2);
        ring.copy_from_slice(&self.ring.to_le_bytes());
        time.copy_from_slice(&self.time_s.to_le_bytes());
        octets
    }
}

impl Default for Converter {
    fn default() -> Self {
        let angle = |index: usize| (index as f32 / 100.0).to_radians();
        let directions = (0..AZIMUTHS).map(|index| [angle(index).cos(), angle(index).sin()]).collect();
        let rings = rings();
        let mut channels = [Channel::default(); CHANNELS];
        for (index, ((channel, laser), ring)) in channels.iter_mut().zip(LASERS).zip(rings).enumerate() {
            let (sine, cosine) = laser.elevation_deg.to_radians().sin_cos();
            *channel = Channel {
                along: cosine * DISTANCE_UNIT_M,
                up: sine * DISTANCE_UNIT_M,
                offset: laser.azimuth_offset_deg * 100.0,
                cycle_share: cycle_share(index),
                ring,
                time_s: (index / 2) as f32 * PAIR_NS as f32 * 1e-9,
            };
        }
        Self { directions, channels }
    }
}

impl Converter {
    /// Writes the points of a packet one after the other. `start_s` is the time of the packet since the start of the scan in seconds.
    /// Returns the number of octets that were written; points without space are left out.
    pub fn write(&self, packet: &Packet<'_>, start_s: f32, buffer: &mut [u8]) -> usize {
        let (slots, _) = buffer.as_chunks_mut::<POINT_OCTETS>();
        let mut slots = slots.iter_mut();
        let mut written = 0;
        self.each(packet, start_s, |point| {
            if let Some(slot) = slots.next() {
                *slot = point.to_octets();
                written += POINT_OCTETS;
            }
        });
        written
    }

    /// Calls a function with each point of a packet.
    #[inline]
    pub fn each(&self, packet: &Packet<'_>, start_s: f32, mut take: impl FnMut(Point)) {
        let mut turned = 0;
        let mut blocks = packet.blocks().enumerate().peekable();
        while let Some((index, block)) = blocks.next() {
            // The last block of a packet turns as far as the one before.
            if let Some((_, next)) = blocks.peek() {
                // The sum of two angles can exceed 16 bits.
                let [from, to, full] = [block.azimuth, next.azimuth, FULL_TURN].map(u32::from);
                turned = ((to + full - from) % full) as u16;
            }
            let block_s = start_s + index as f32 * (FIRING_CYCLE_NS as f32 * 1e-9);
            self.block(&block, turned, block_s, &mut take);
        }
    }

    #[inline]
    fn block(&self, block: &Block<'_>, turned: u16, block_s: f32, take: &mut impl FnMut(Point)) {
        for (hit, channel) in block.returns().zip(&self.channels) {
            if hit.distance == 0 {
                continue;
            }
            let distance = f32::from(hit.distance);
            let azimuth = f32::from(block.azimuth) + channel.offset + f32::from(turned) * channel.cycle_share;
            // The offsets are at most 4.2 degrees, so one turn is sufficient.
            let azimuth = (azimuth + f32::from(FULL_TURN) + 0.5) as usize % AZIMUTHS;
            let [cosine, sine] = self.directions.get(azimuth).copied().unwrap_or_default();
            let along = distance * channel.along;
            // The azimuth is clockwise from the front.
            take(Point {
                x: along * cosine,
                y: -along * sine,
                z: distance * channel.up,
                intensity: f32::from(hit.reflectivity),
                ring: channel.ring,
                time_s: block_s + channel.time_s,
            });
        }
    }
}

/// Returns the largest number of octets of the points of a number of packets.
#[must_use]
pub const fn octets_max(packets: usize) -> usize {
    packets.saturating_mul(BLOCKS * CHANNELS * POINT_OCTETS)
}

#[cfg(test)]
mod tests {
    use viaduct_units::Rng;

    use super::*;
    use crate::packet::{PACKET_PERIOD_NS, encode};
    use crate::scene::{Caster, Scene, Sensor, Style};

    /// The size of the cloud in the case study of mqtt_client: 1.08 MB.
    #[test]
    fn a_thinned_street_has_the_size_of_the_cloud_of_the_paper() {
        let mut rng = Rng::new(1);
        let mut scan = Caster::new(Sensor::vlp32c()).cast(&Scene::generate(1, Style::Street), 0.0, &mut rng);
        scan.thin(49_016, &mut rng);
        let packets = encode(&scan, 0);
        let mut buffer = vec![0; octets_max(packets.len())];
        let converter = Converter::default();
        let mut octets = 0;
        for packet in &packets {
            octets += converter.write(&Packet::parse(packet).unwrap(), 0.0, &mut buffer[octets..]);
        }
        assert_eq!(octets, 1_078_352);
    }

    #[test]
    fn points_lie_where_the_rays_hit() {
        let caster = Caster::new(Sensor::vlp32c());
        let mut scan = caster.cast(&Scene::generate(2, Style::Snapshot { hard: true }), 0.0, &mut Rng::new(1));
        // One return at a time, so that the order of the points does not matter.
        let all = scan.ranges.clone();
        for ray in (0..all.len()).step_by(997).filter(|ray| all[*ray].is_finite()) {
            scan.ranges.fill(f32::INFINITY);
            scan.ranges[ray] = all[ray];
            let expected = caster.points(&scan)[0];
            let mut points = Vec::new();
            for (index, packet) in encode(&scan, 0).iter().enumerate() {
                let start_s = (index as u64 * PACKET_PERIOD_NS) as f32 * 1e-9;
                Converter::default().each(&Packet::parse(packet).unwrap(), start_s, |point| points.push(point));
            }
            assert_eq!(points.len(), 1);
            let point = points[0];
            // 0.01 degrees at the largest range, and half a unit of distance.
            let error =
                (point.x - expected[0]).abs().max((point.y - expected[1]).abs()).max((point.z - expected[2]).abs());
            assert!(error < 0.03, "{point:?} {expected:?}");
            assert!(point.time_s < 0.1002 && (point.intensity - expected[3] * 100.0).abs() <= 0.51, "{point:?}");
        }
    }

    #[test]
    fn a_point_has_the_layout_of_the_driver() {
        let point = Point { x: 1.0, y: -2.0, z: 0.5, intensity: 7.0, ring: 0x0102, time_s: 0.25 };
        let octets = point.to_octets();
        assert_eq!(octets[..4], 1.0_f32.to_le_bytes());
        assert_eq!(octets[12..16], 7.0_f32.to_le_bytes());
        assert_eq!(octets[16..18], [2, 1]);
        assert_eq!(octets[18..], 0.25_f32.to_le_bytes());
    }
}
