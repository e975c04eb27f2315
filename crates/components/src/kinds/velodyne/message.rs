//! Messages of a lidar as octets: `velodyne_msgs/VelodyneScan` and `sensor_msgs/PointCloud2`.
//!
//! A scan of ROS 2 has two octets of padding after each packet but the last one, because a time begins at a multiple of four octets.

use prost_types::Timestamp;
use viaduct_lidar::packet::{Octets, PACKET_OCTETS};
use viaduct_ros::msg::Dialect;

/// Length of the encapsulation header of CDR in octets.
const ENCAPSULATION: usize = 4;
/// Length of a time in octets.
const TIME_OCTETS: usize = 8;
/// Numbers of the types of `sensor_msgs/PointField`.
const UINT16: u8 = 4;
const FLOAT32: u8 = 7;

/// The layout of the points of a cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::kinds) enum Layout {
    /// x, y, z, intensity, ring, time: 22 octets, as the ROS driver of Velodyne publishes.
    Driver,
    /// x, y, z, intensity: 16 octets, as in files of KITTI.
    Kitti,
    /// x, y, z, intensity, ring: 20 octets, as in files of nuScenes.
    NuScenes,
}

/// A field of a point.
pub(in crate::kinds) struct Field {
    pub(in crate::kinds) name: &'static str,
    pub(in crate::kinds) offset: u32,
    /// `true` for a 16-bit integer, `false` for a 32-bit floating-point number.
    pub(in crate::kinds) is_short: bool,
}

const fn float(name: &'static str, offset: u32) -> Field {
    Field { name, offset, is_short: false }
}

impl Layout {
    /// Returns the length of a point in octets.
    pub(in crate::kinds) const fn stride(self) -> usize {
        match self {
            Self::Driver => 22,
            Self::Kitti => 16,
            Self::NuScenes => 20,
        }
    }

    pub(in crate::kinds) const fn fields(self) -> &'static [Field] {
        const POSITION: [Field; 4] = [float("x", 0), float("y", 4), float("z", 8), float("intensity", 12)];
        const RING: Field = Field { name: "ring", offset: 16, is_short: true };
        const DRIVER: [Field; 6] = {
            let [x, y, z, intensity] = POSITION;
            [x, y, z, intensity, RING, float("time", 18)]
        };
        const NU_SCENES: [Field; 5] = {
            let [x, y, z, intensity] = POSITION;
            [x, y, z, intensity, float("ring", 16)]
        };
        match self {
            Self::Driver => &DRIVER,
            Self::Kitti => &POSITION,
            Self::NuScenes => &NU_SCENES,
        }
    }
}

/// The beginning of a message.
struct Head {
    dialect: Dialect,
    octets: Vec<u8>,
}

impl Head {
    fn new(dialect: Dialect, stamp: Timestamp, frame_id: &str) -> Self {
        let octets = if dialect == Dialect::Ros2 { vec![0, 1, 0, 0] } else { Vec::new() };
        let mut head = Self { dialect, octets };
        if dialect == Dialect::Ros1 {
            // The sequence number.
            head.uint(0);
        }
        head.octets.extend(time(stamp));
        head.text(frame_id);
        head
    }

    fn uint(&mut self, value: u32) {
        while self.dialect == Dialect::Ros2 && !(self.octets.len() - ENCAPSULATION).is_multiple_of(4) {
            self.octets.push(0);
        }
        self.octets.extend(value.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        // A text of CDR ends with a zero, which counts.
        let end = usize::from(self.dialect == Dialect::Ros2);
        self.uint((text.len() + end) as u32);
        self.octets.extend(text.as_bytes());
        self.octets.extend(&[0][..end]);
    }
}

fn time(stamp: Timestamp) -> [u8; TIME_OCTETS] {
    let ([s0, s1, s2, s3], [n0, n1, n2, n3]) = ((stamp.seconds as u32).to_le_bytes(), stamp.nanos.to_le_bytes());
    [s0, s1, s2, s3, n0, n1, n2, n3]
}

/// Returns a scan without its packets.
pub(super) fn scan_head(dialect: Dialect, stamp: Timestamp, frame_id: &str, packets: usize) -> Vec<u8> {
    let mut head = Head::new(dialect, stamp, frame_id);
    head.uint(packets as u32);
    head.octets
}

/// Returns the number of octets of the packets of a scan.
pub(super) const fn packets_octets(dialect: Dialect, packets: usize) -> usize {
    let length = TIME_OCTETS + PACKET_OCTETS;
    match dialect {
        Dialect::Ros1 => length * packets,
        Dialect::Ros2 => (length.next_multiple_of(4) * packets).saturating_sub(length.next_multiple_of(4) - length),
    }
}

/// Writes the packets of a scan, each with its time.
pub(super) fn write_packets<'a>(
    dialect: Dialect,
    packets: impl Iterator<Item = (Timestamp, &'a Octets)>,
    buffer: &mut [u8],
) {
    let length = TIME_OCTETS + PACKET_OCTETS;
    let stride = if dialect == Dialect::Ros2 { length.next_multiple_of(4) } else { length };
    for (slot, (stamp, octets)) in buffer.chunks_mut(stride).zip(packets) {
        let Some((packet, padding)) = slot.split_at_mut_checked(length) else { return };
        let (front, data) = packet.split_at_mut(TIME_OCTETS);
        front.copy_from_slice(&time(stamp));
        data.copy_from_slice(octets);
        padding.fill(0);
    }
}

/// Returns a cloud without its points and the octet after them. Its length does not depend on the number of points.
pub(super) fn cloud_head(dialect: Dialect, stamp: Timestamp, frame_id: &str, layout: Layout, octets: usize) -> Vec<u8> {
    let mut head = Head::new(dialect, stamp, frame_id);
    // One row.
    head.uint(1);
    head.uint((octets / layout.stride()) as u32);
    head.uint(layout.fields().len() as u32);
    for field in layout.fields() {
        head.text(field.name);
        head.uint(field.offset);
        head.octets.push(if field.is_short { UINT16 } else { FLOAT32 });
        head.uint(1);
    }
    // Little endian.
    head.octets.push(0);
    head.uint(layout.stride() as u32);
    head.uint(octets as u32);
    head.uint(octets as u32);
    head.octets
}
