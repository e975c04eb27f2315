//! Received scans.

use bytes::Bytes;
use prost_types::Timestamp;
use viaduct_bus::{MessageFormat, TypeInfo};
use viaduct_ros::codec;
use viaduct_ros::msg::Schema;

use super::Failure;
use crate::kinds::ros_converter::conversion::{self, encoding, source};
use crate::kinds::ros_converter::fields::Fields;

/// A scan. Its packets remain in the memory of the message.
pub(super) struct Scan {
    pub(super) stamp: Timestamp,
    pub(super) frame_id: String,
    /// Packets, each with its time since the first one in seconds.
    pub(super) packets: Vec<(f32, Bytes)>,
}

/// Returns the definition of a type of scans, or `None` for another type.
pub(super) fn schema(info: &TypeInfo) -> Option<Schema> {
    if !matches!(info.format(), MessageFormat::Ros1 | MessageFormat::Ros2) {
        return None;
    }
    let (name, schema) = source(info).ok()?;
    (name.package() == "velodyne_msgs" && name.name() == "VelodyneScan").then_some(schema)
}

impl Scan {
    /// Reads `velodyne_msgs/VelodyneScan`.
    pub(super) fn read(schema: &Schema, message: &Bytes) -> Result<Self, Failure> {
        let value = codec::decode(schema, encoding(schema.dialect()), message).map_err(|_| Failure::Malformed)?;
        let scan = Fields::of(schema, &value)?;
        let (stamp, frame_id) = scan.header()?;
        let mut packets = Vec::new();
        let mut first = None;
        for packet in scan.list("packets")? {
            let nanos = nanos(packet.stamp()?);
            let first = *first.get_or_insert(nanos);
            packets.push(((nanos - first) as f32 * 1e-9, packet.octets("data")?.clone()));
        }
        Ok(Self { stamp: stamp.unwrap_or_default(), frame_id, packets })
    }
}

/// Returns a time of ROS in nanoseconds: at most 2^32 seconds.
const fn nanos(time: Timestamp) -> i64 {
    time.seconds * 1_000_000_000 + time.nanos as i64
}

impl From<conversion::Failure> for Failure {
    fn from(_: conversion::Failure) -> Self {
        Self::Malformed
    }
}
