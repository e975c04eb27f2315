//! Point clouds: `sensor_msgs/PointCloud2` and `foxglove.PointCloud`.

use bytes::Bytes;
use viaduct_messages::foxglove::packed_element_field::NumericType;
use viaduct_messages::foxglove::{PackedElementField, PointCloud, Pose};
use viaduct_ros::value::Value;

use super::conversion::{Failure, Lend};
use super::fields::{Builder, Fields};

/// Fields of a point after arrays are divided.
const FIELDS_MAX: usize = 256;

/// The types of `sensor_msgs/PointField`, with their numbers and lengths in octets.
const TYPES: [(i64, NumericType, u32); 8] = [
    (1, NumericType::Int8, 1),
    (2, NumericType::Uint8, 1),
    (3, NumericType::Int16, 2),
    (4, NumericType::Uint16, 2),
    (5, NumericType::Int32, 4),
    (6, NumericType::Uint32, 4),
    (7, NumericType::Float32, 4),
    (8, NumericType::Float64, 8),
];

pub(super) fn to_bus(cloud: &Fields<'_>, lend: Lend<'_>) -> Result<PointCloud, Failure> {
    let (timestamp, frame_id) = cloud.header()?;
    if cloud.flag("is_bigendian")? {
        return Err(Failure::Value);
    }
    let point_stride = cloud.uint("point_step")?;
    let mut fields = Vec::new();
    for field in cloud.list("fields")? {
        fields.extend(divided(&field)?);
        if fields.len() > FIELDS_MAX {
            return Err(Failure::Value);
        }
    }
    let data = rows(cloud, lend)?;
    Ok(PointCloud { timestamp, frame_id, pose: None, point_stride, fields, data })
}

/// Returns a field for each number of a field.
fn divided(field: &Fields<'_>) -> Result<Vec<PackedElementField>, Failure> {
    let (name, offset, kind) = (field.text("name")?, field.uint("offset")?, field.int("datatype")?);
    let (_, numeric, octets) = TYPES.iter().find(|(number, ..)| *number == kind).ok_or(Failure::Malformed)?;
    let one = |name: String, offset| PackedElementField { name, offset, r#type: (*numeric).into() };
    match field.uint("count")? {
        // Some drivers write 0 for a single number.
        0 | 1 => Ok(vec![one(name, offset)]),
        count if count as usize > FIELDS_MAX => Err(Failure::Value),
        count => {
            Ok((0..count).map(|index| one(format!("{name}_{index}"), offset.saturating_add(index * octets))).collect())
        }
    }
}

/// Returns the points without the padding of rows.
fn rows(cloud: &Fields<'_>, lend: Lend<'_>) -> Result<Bytes, Failure> {
    let size = |name| cloud.uint(name).map(|value| value as usize);
    let (height, width, point, row) = (size("height")?, size("width")?, size("point_step")?, size("row_step")?);
    let data = cloud.octets("data")?;
    let used = width.checked_mul(point).ok_or(Failure::Malformed)?;
    let length = used.checked_mul(height).ok_or(Failure::Malformed)?;
    let is_whole = row.checked_mul(height).is_some_and(|octets| octets <= data.len()) && (used <= row || height <= 1);
    if !is_whole || length > data.len() {
        return Err(Failure::Malformed);
    }
    if length == 0 {
        return Ok(Bytes::new());
    }
    let mut loan = lend(length)?;
    if used == row || height == 1 {
        loan.copy_from_slice(&data[..length]);
    } else {
        for (to, from) in loan.chunks_exact_mut(used).zip(data.chunks(row)) {
            to.copy_from_slice(&from[..used]);
        }
    }
    Ok(loan.freeze())
}

pub(super) fn to_ros(cloud: &PointCloud, out: &mut Builder<'_>) -> Result<(), Failure> {
    if cloud.pose.as_ref().is_some_and(|pose| !is_identity(pose)) {
        return Err(Failure::Value);
    }
    out.set_header(cloud.timestamp, &cloud.frame_id)?;
    let length = u32::try_from(cloud.data.len()).map_err(|_| Failure::Value)?;
    let width = match length.checked_rem(cloud.point_stride) {
        Some(0) => length / cloud.point_stride,
        Some(_) => return Err(Failure::Malformed),
        None if length == 0 => 0,
        None => return Err(Failure::Malformed),
    };
    out.set_uint("height", 1_u32)?;
    out.set_uint("width", width)?;
    out.set_uint("point_step", cloud.point_stride)?;
    out.set_uint("row_step", length)?;
    let fields: Result<Vec<Value>, Failure> = cloud.fields.iter().map(field).collect();
    out.set("fields", Value::Array(fields?))?;
    out.set("data", Value::Octets(cloud.data.clone()))
}

/// Returns a message `sensor_msgs/PointField`.
fn field(field: &PackedElementField) -> Result<Value, Failure> {
    let (number, ..) = TYPES.iter().find(|(_, numeric, _)| *numeric == field.r#type()).ok_or(Failure::Value)?;
    Ok(Value::Message(vec![
        Value::text(&field.name),
        Value::Uint(field.offset.into()),
        Value::Uint(number.unsigned_abs()),
        Value::Uint(1),
    ]))
}

fn is_identity(pose: &Pose) -> bool {
    let is_origin = pose.position.as_ref().is_none_or(|at| [at.x, at.y, at.z] == [0.0; 3]);
    let turn = pose.orientation.as_ref();
    is_origin && turn.is_none_or(|turn| [turn.x, turn.y, turn.z] == [0.0; 3])
}
