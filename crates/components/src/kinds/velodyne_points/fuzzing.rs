//! Entry point for the fuzz target: scans of ROS 1 and ROS 2.

use bytes::Bytes;
use viaduct_ros::codec;
use viaduct_ros::definitions;
use viaduct_ros::json;
use viaduct_ros::msg::{Dialect, Schema, TypeName};

use super::scan::Scan;
use crate::kinds::ros_converter::conversion::encoding;

/// Reads the octets as a scan of ROS 1 and of ROS 2. Returns the number of packets of each, or `None` if it is refused.
#[must_use]
pub fn scans(octets: &[u8]) -> [Option<usize>; 2] {
    let message = Bytes::copy_from_slice(octets);
    [Dialect::Ros1, Dialect::Ros2]
        .map(|dialect| Scan::read(schema(dialect)?, &message).ok().map(|scan| scan.packets.len()))
}

/// Returns scans of two packets of ROS 1 and ROS 2.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let packet = serde_json::json!({ "data": vec![0; 1206] });
    let text = serde_json::json!({ "header": { "frame_id": "lidar" }, "packets": [packet, packet] });
    let seed = |dialect| {
        let schema = schema(dialect)?;
        let value = json::read(schema, &text).ok()?;
        codec::encode(schema, encoding(dialect), &value).ok().map(|message| message.to_vec())
    };
    [Dialect::Ros1, Dialect::Ros2].into_iter().filter_map(seed).collect()
}

fn schema(dialect: Dialect) -> Option<&'static Schema> {
    let name = TypeName::parse("velodyne_msgs/VelodyneScan")?;
    definitions::find(&name, dialect).map(viaduct_ros::definitions::Definition::schema)
}
