//! Entry point for the fuzz target: scans of ROS 1 and ROS 2.

use std::sync::LazyLock;

use bytes::Bytes;
use viaduct_lidar::packet::{PACKET_OCTETS, Packet};
use viaduct_lidar::points::{Converter, POINT_OCTETS, octets_max};
use viaduct_ros::codec;
use viaduct_ros::definitions;
use viaduct_ros::json;
use viaduct_ros::msg::{Dialect, Schema, TypeName};

use super::scan::Scan;
use crate::kinds::ros_converter::conversion::encoding;

static CONVERTER: LazyLock<Converter> = LazyLock::new(Converter::default);

/// The contents of a scan.
#[derive(Clone, Copy, Debug)]
pub struct Contents {
    /// Number of its packets.
    pub packets: usize,
    /// Number of the points of those packets that can be read.
    pub points: usize,
}

/// Reads the octets as a scan of ROS 1 and of ROS 2, and converts its packets. Returns what each contains, or `None` if it is refused.
#[must_use]
pub fn scans(octets: &[u8]) -> [Option<Contents>; 2] {
    let message = Bytes::copy_from_slice(octets);
    [Dialect::Ros1, Dialect::Ros2].map(|dialect| Scan::read(schema(dialect)?, &message).ok().map(|scan| convert(&scan)))
}

fn convert(scan: &Scan) -> Contents {
    let mut buffer = vec![0; octets_max(1)];
    let packets = scan.packets.iter();
    let points = packets.filter_map(|(start_s, octets)| Some((start_s, Packet::parse(octets).ok()?)));
    let octets: usize = points.map(|(start_s, packet)| CONVERTER.write(&packet, *start_s, &mut buffer)).sum();
    Contents { packets: scan.packets.len(), points: octets / POINT_OCTETS }
}

/// Returns scans of two packets of ROS 1 and ROS 2.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    // Its tables are not an allocation of the decoder.
    LazyLock::force(&CONVERTER);
    let packet = serde_json::json!({ "data": packet() });
    let text = serde_json::json!({ "header": { "frame_id": "lidar" }, "packets": [packet, packet] });
    let seed = |dialect| {
        let schema = schema(dialect)?;
        let value = json::read(schema, &text).ok()?;
        codec::encode(schema, encoding(dialect), &value).ok().map(|message| message.to_vec())
    };
    [Dialect::Ros1, Dialect::Ros2].into_iter().filter_map(seed).collect()
}

/// Returns a packet with a return of each beam.
fn packet() -> Vec<u8> {
    let mut octets = vec![1; PACKET_OCTETS];
    for block in octets.chunks_exact_mut(100) {
        block[..2].copy_from_slice(&[0xFF, 0xEE]);
    }
    octets[1204..].copy_from_slice(&[0x37, 0x28]);
    octets
}

fn schema(dialect: Dialect) -> Option<&'static Schema> {
    let name = TypeName::parse("velodyne_msgs/VelodyneScan")?;
    definitions::find(&name, dialect).map(viaduct_ros::definitions::Definition::schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packets_of_the_first_inputs_have_points() {
        for seed in seeds() {
            let contents = scans(&seed).into_iter().flatten().map(|found| (found.packets, found.points));
            assert_eq!(contents.max(), Some((2, 2 * 12 * 32)));
        }
    }
}
