//! Entry point for the fuzz target: point clouds of all formats.

use bytes::Bytes;
use prost::Message as _;
use viaduct_messages::foxglove::PointCloud;
use viaduct_ros::codec;
use viaduct_ros::definitions;
use viaduct_ros::json;
use viaduct_ros::msg::{Dialect, Schema, TypeName};

use super::cloud::{self, Received};
use crate::kinds::ros_converter::conversion::encoding;

/// Reads the octets as a cloud of ROS 1, of ROS 2 and of the bus. Returns the number of points of each, or `None` if it is refused.
#[must_use]
pub fn clouds(octets: &[u8]) -> [Option<usize>; 3] {
    let message = Bytes::copy_from_slice(octets);
    let ros = |dialect| cloud::from_ros(&schema(dialect)?, &message).ok();
    let bus = PointCloud::decode(octets).ok().and_then(|cloud| cloud::from_bus(&cloud).ok());
    let count = |received: Option<Received>| received.and_then(|received| received.points().ok().map(Iterator::count));
    [ros(Dialect::Ros1), ros(Dialect::Ros2), bus].map(count)
}

/// Returns clouds of two points in the three formats.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let field =
        |name: &str, offset: u32| serde_json::json!({ "name": name, "offset": offset, "datatype": 7, "count": 1 });
    let fields = [field("x", 0), field("y", 4), field("z", 8), field("intensity", 12)];
    let text = serde_json::json!({
        "header": { "frame_id": "lidar" }, "height": 2, "width": 1, "fields": fields,
        "point_step": 16, "row_step": 16, "data": vec![0; 32], "is_dense": true,
    });
    let ros = |dialect| {
        let schema = schema(dialect)?;
        let value = json::read(&schema, &text).ok()?;
        codec::encode(&schema, encoding(dialect), &value).ok().map(|message| message.to_vec())
    };
    let bus = PointCloud { point_stride: 16, data: vec![0; 32].into(), ..PointCloud::default() };
    [ros(Dialect::Ros1), ros(Dialect::Ros2), Some(bus.encode_to_vec())].into_iter().flatten().collect()
}

fn schema(dialect: Dialect) -> Option<Schema> {
    let name = TypeName::parse("sensor_msgs/PointCloud2")?;
    definitions::find(&name, dialect).map(|definition| definition.schema().clone())
}
