//! Point clouds of ROS 1, ROS 2 and the bus.

use bytes::Bytes;
use prost_types::Timestamp;
use viaduct_bus::{MessageFormat, TypeInfo, UntypedSample};
use viaduct_lidar::cloud::{Cloud, CloudError, Field, Number, Shape};
use viaduct_messages::foxglove::packed_element_field::NumericType;
use viaduct_messages::foxglove::{PointCloud, Pose};
use viaduct_ros::codec;
use viaduct_ros::msg::Schema;

use super::Failure;
use crate::kinds::ros_converter::conversion::{self, encoding, source};
use crate::kinds::ros_converter::fields::Fields;

/// Numbers of the types of `sensor_msgs/PointField`.
const FLOAT32: i64 = 7;
const FLOAT64: i64 = 8;
/// Most fields of a point.
const FIELDS_MAX: usize = 256;

/// Reads the clouds of a type.
pub(super) enum Reader {
    /// `sensor_msgs/PointCloud2`, with its definition.
    Ros(Schema),
    /// `foxglove.PointCloud`.
    Bus,
}

/// A received cloud. Its points remain in the memory of the message.
#[derive(Debug)]
pub(super) struct Received {
    /// Time of the scan, if it has one.
    pub(super) time: Option<Timestamp>,
    /// Coordinate frame of the points.
    pub(super) frame_id: String,
    fields: Vec<(String, u32, Number)>,
    shape: Shape,
    data: Bytes,
}

impl Reader {
    /// Returns the reader of a type, or an error if the type is not one of clouds.
    pub(super) fn new(info: &TypeInfo) -> Result<Self, Failure> {
        match info.format() {
            MessageFormat::Ros1 | MessageFormat::Ros2 => {
                let (name, schema) = source(info).map_err(|_| Failure::Type)?;
                let is_cloud = name.package() == "sensor_msgs" && name.name() == "PointCloud2";
                if is_cloud { Ok(Self::Ros(schema)) } else { Err(Failure::Type) }
            }
            MessageFormat::Protobuf if info.full_name() == "foxglove.PointCloud" => Ok(Self::Bus),
            _ => Err(Failure::Type),
        }
    }

    pub(super) fn read(&self, sample: &UntypedSample) -> Result<Received, Failure> {
        match self {
            Self::Ros(schema) => from_ros(schema, &sample.encoded().to_bytes()),
            Self::Bus => from_bus(&*sample.typed::<PointCloud>().map_err(|_| Failure::Malformed)?),
        }
    }
}

impl Received {
    pub(super) fn points(&self) -> Result<impl Iterator<Item = [f32; 3]>, Failure> {
        let fields = self.fields.iter().map(|(name, offset, number)| Field { name, offset: *offset, number: *number });
        Ok(Cloud::new(fields, self.shape, &self.data)?.points())
    }
}

/// Reads `sensor_msgs/PointCloud2`.
pub(super) fn from_ros(schema: &Schema, message: &Bytes) -> Result<Received, Failure> {
    let value = codec::decode(schema, encoding(schema.dialect()), message).map_err(|_| Failure::Malformed)?;
    let cloud = Fields::of(schema, &value)?;
    if cloud.flag("is_bigendian")? {
        return Err(Failure::ByteOrder);
    }
    let (time, frame_id) = cloud.header()?;
    let mut fields = Vec::new();
    for field in cloud.list("fields")?.iter().take(FIELDS_MAX) {
        let number = match field.int("datatype")? {
            FLOAT32 => Number::Float32,
            FLOAT64 => Number::Float64,
            _ => Number::Other,
        };
        fields.push((field.text("name")?, field.uint("offset")?, number));
    }
    let shape = Shape {
        point_step: cloud.uint("point_step")?,
        row_step: cloud.uint("row_step")?,
        width: cloud.uint("width")?,
        height: cloud.uint("height")?,
    };
    Ok(Received { time, frame_id, fields, shape, data: cloud.octets("data")?.clone() })
}

/// Reads `foxglove.PointCloud`.
pub(super) fn from_bus(cloud: &PointCloud) -> Result<Received, Failure> {
    if cloud.pose.as_ref().is_some_and(|pose| !is_identity(pose)) {
        return Err(Failure::Pose);
    }
    let number = |kind| match kind {
        NumericType::Float32 => Number::Float32,
        NumericType::Float64 => Number::Float64,
        _ => Number::Other,
    };
    let fields = cloud.fields.iter().take(FIELDS_MAX);
    let length = u32::try_from(cloud.data.len()).map_err(|_| Failure::TooManyPoints)?;
    let width = match length.checked_rem(cloud.point_stride) {
        Some(0) => length / cloud.point_stride,
        None if length == 0 => 0,
        _ => return Err(Failure::Shape),
    };
    Ok(Received {
        time: cloud.timestamp,
        frame_id: cloud.frame_id.clone(),
        fields: fields.map(|field| (field.name.clone(), field.offset, number(field.r#type()))).collect(),
        shape: Shape { point_step: cloud.point_stride, row_step: length, width, height: 1 },
        data: cloud.data.clone(),
    })
}

/// Returns `true` if the origin of the cloud is that of its frame.
fn is_identity(pose: &Pose) -> bool {
    let is_origin = pose.position.as_ref().is_none_or(|at| [at.x, at.y, at.z] == [0.0; 3]);
    is_origin && pose.orientation.as_ref().is_none_or(|turn| [turn.x, turn.y, turn.z] == [0.0; 3])
}

impl From<CloudError> for Failure {
    fn from(error: CloudError) -> Self {
        match error {
            CloudError::Fields => Self::Fields,
            CloudError::Shape => Self::Shape,
            CloudError::TooManyPoints => Self::TooManyPoints,
        }
    }
}

impl From<conversion::Failure> for Failure {
    fn from(_: conversion::Failure) -> Self {
        Self::Malformed
    }
}
