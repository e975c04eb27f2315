//! The place of the points in a message with a point cloud: `sensor_msgs/PointCloud2` of both ROS versions and `foxglove.PointCloud`.

use std::ops::Range;

use prost::Message as _;
use viaduct_bus::MessageFormat;
use viaduct_messages::foxglove::PackedElementField;
use viaduct_messages::foxglove::packed_element_field::NumericType;

/// Largest number of fields of a point.
const FIELDS_MAX: usize = 64;
/// Datatypes in `sensor_msgs/PointField`.
const UINT8: u8 = 2;
const UINT16: u8 = 4;
const FLOAT32: u8 = 7;
/// Numbers of the fields of `foxglove.PointCloud`.
const STRIDE_FIELD: u32 = 4;
const FIELDS_FIELD: u32 = 5;
const DATA_FIELD: u32 = 6;

/// The points of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cloud {
    /// Octets of the message that are points.
    pub(super) data: Range<usize>,
    /// Octets of a point.
    pub(super) point_step: usize,
    /// Offsets of the float32 fields x, y and z in a point.
    pub(super) coordinates: Vec<usize>,
    pub(super) is_big_endian: bool,
    pub(super) fields: Fields,
}

/// Offsets of the fields of a point that a lidar fills.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fields {
    /// x, y and z: float32.
    pub(super) coordinates: [Option<usize>; 3],
    /// Number of the beam, with its octets: 1 or 2.
    pub(super) ring: Option<(usize, usize)>,
    /// Intensity: float32.
    pub(super) intensity: Option<usize>,
    /// Time: float32.
    pub(super) time: Option<usize>,
}

/// The type of a number in a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    Uint8,
    Uint16,
    Float32,
}

impl Fields {
    fn add(&mut self, name: &[u8], offset: usize, number: Number) {
        match (name, number) {
            (b"x", Number::Float32) => self.coordinates[0] = Some(offset),
            (b"y", Number::Float32) => self.coordinates[1] = Some(offset),
            (b"z", Number::Float32) => self.coordinates[2] = Some(offset),
            (b"ring" | b"channel", Number::Uint8) => self.ring = Some((offset, 1)),
            (b"ring" | b"channel", Number::Uint16) => self.ring = Some((offset, 2)),
            (b"intensity", Number::Float32) => self.intensity = Some(offset),
            (b"time", Number::Float32) => self.time = Some(offset),
            _ => {}
        }
    }
}

/// Finds the points in a message. Returns `None` if it is not a point cloud.
pub(super) fn locate(format: MessageFormat, full_name: &str, message: &[u8]) -> Option<Cloud> {
    match (format, full_name) {
        (MessageFormat::Ros1, "sensor_msgs/PointCloud2") => ros(Cursor::ros1(message), true),
        (MessageFormat::Ros2, "sensor_msgs/PointCloud2" | "sensor_msgs/msg/PointCloud2") => {
            ros(Cursor::cdr(message)?, false)
        }
        (MessageFormat::Protobuf, "foxglove.PointCloud") => protobuf(message),
        _ => None,
    }
}

/// Reads the octets of a message of ROS.
struct Cursor<'a> {
    octets: &'a [u8],
    at: usize,
    /// First octet from which alignment counts, with CDR.
    origin: Option<usize>,
    is_little_endian: bool,
}

impl<'a> Cursor<'a> {
    const fn ros1(octets: &'a [u8]) -> Self {
        Self { octets, at: 0, origin: None, is_little_endian: true }
    }

    /// Begins after the encapsulation header.
    fn cdr(octets: &'a [u8]) -> Option<Self> {
        let is_little_endian = match octets.first_chunk::<2>()? {
            [0, 0] => false,
            [0, 1] => true,
            _ => return None,
        };
        Some(Self { octets, at: 4, origin: Some(4), is_little_endian })
    }

    fn skip(&mut self, octets: usize) -> Option<Range<usize>> {
        let start = self.at;
        self.at = start.checked_add(octets).filter(|end| *end <= self.octets.len())?;
        Some(start..self.at)
    }

    fn octet(&mut self) -> Option<u8> {
        let place = self.skip(1)?;
        self.octets.get(place.start).copied()
    }

    fn number(&mut self) -> Option<usize> {
        if let Some(origin) = self.origin {
            self.at = (self.at - origin).next_multiple_of(4) + origin;
        }
        let place = self.skip(4)?;
        let octets = *self.octets.get(place)?.first_chunk()?;
        let number = if self.is_little_endian { u32::from_le_bytes(octets) } else { u32::from_be_bytes(octets) };
        usize::try_from(number).ok()
    }

    fn sequence(&mut self) -> Option<Range<usize>> {
        let length = self.number()?;
        self.skip(length)
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let place = self.sequence()?;
        let text = self.octets.get(place)?;
        Some(if self.origin.is_some() { text.strip_suffix(&[0]).unwrap_or(text) } else { text })
    }
}

fn ros(mut cursor: Cursor<'_>, has_sequence_number: bool) -> Option<Cloud> {
    let numbers = if has_sequence_number { 3 } else { 2 };
    for _ in 0..numbers {
        cursor.number()?;
    }
    cursor.text()?;
    let (_height, _width) = (cursor.number()?, cursor.number()?);
    let count = cursor.number().filter(|count| *count <= FIELDS_MAX)?;
    let mut fields = Fields::default();
    for _ in 0..count {
        let name = cursor.text()?;
        let offset = cursor.number()?;
        let datatype = cursor.octet()?;
        cursor.number()?;
        match datatype {
            UINT8 => fields.add(name, offset, Number::Uint8),
            UINT16 => fields.add(name, offset, Number::Uint16),
            FLOAT32 => fields.add(name, offset, Number::Float32),
            _ => {}
        }
    }
    let is_big_endian = cursor.octet()? != 0;
    let point_step = cursor.number()?;
    cursor.number()?;
    cloud(cursor.sequence()?, point_step, fields, is_big_endian)
}

fn protobuf(message: &[u8]) -> Option<Cloud> {
    let (mut point_step, mut fields, mut data) = (0, Fields::default(), None);
    let mut at = 0;
    let mut count = 0;
    while at < message.len() {
        let (key, length) = varint(message.get(at..)?)?;
        at += length;
        let (number, wire) = (u32::try_from(key >> 3).ok()?, key & 7);
        let length = match wire {
            0 => varint(message.get(at..)?)?.1,
            1 => 8,
            2 => {
                let (octets, length) = varint(message.get(at..)?)?;
                at += length;
                usize::try_from(octets).ok()?
            }
            5 => 4,
            _ => return None,
        };
        let place = at..at.checked_add(length)?;
        let value = message.get(place.clone())?;
        at = place.end;
        match (number, wire) {
            (STRIDE_FIELD, 5) => point_step = usize::try_from(u32::from_le_bytes(*value.first_chunk()?)).ok()?,
            (FIELDS_FIELD, 2) => {
                count += 1;
                let field = PackedElementField::decode(value).ok().filter(|_| count <= FIELDS_MAX)?;
                let (name, offset) = (field.name.as_bytes(), usize::try_from(field.offset).ok()?);
                match field.r#type() {
                    NumericType::Uint8 => fields.add(name, offset, Number::Uint8),
                    NumericType::Uint16 => fields.add(name, offset, Number::Uint16),
                    NumericType::Float32 => fields.add(name, offset, Number::Float32),
                    _ => {}
                }
            }
            (DATA_FIELD, 2) => data = Some(place),
            _ => {}
        }
    }
    cloud(data?, point_step, fields, false)
}

fn varint(octets: &[u8]) -> Option<(u64, usize)> {
    let length = octets.iter().take(10).position(|octet| octet & 0x80 == 0)? + 1;
    let groups = octets.iter().take(length).enumerate();
    Some((groups.fold(0, |value, (index, octet)| value | u64::from(octet & 0x7F) << (7 * index)), length))
}

/// Returns a cloud, or `None` if it has no points.
fn cloud(data: Range<usize>, point_step: usize, fields: Fields, is_big_endian: bool) -> Option<Cloud> {
    if point_step == 0 || data.len() < point_step {
        return None;
    }
    let mut coordinates: Vec<usize> = fields.coordinates.into_iter().flatten().collect();
    coordinates.sort_unstable();
    let is_inside = coordinates.last().is_none_or(|last| last.saturating_add(4) <= point_step);
    let is_apart = coordinates.windows(2).all(|pair| matches!(pair, [one, next] if one + 4 <= *next));
    if !is_inside || !is_apart {
        coordinates.clear();
    }
    Some(Cloud { data, point_step, coordinates, is_big_endian, fields })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use viaduct_messages::foxglove::PointCloud;

    /// Returns a message of ROS with points of 14 octets.
    fn message(is_cdr: bool, data: &[u8]) -> Vec<u8> {
        let mut out = if is_cdr { vec![0, 1, 0, 0] } else { vec![9, 0, 0, 0] };
        let number = |out: &mut Vec<u8>, value: u32| {
            if is_cdr {
                out.resize(out.len().next_multiple_of(4), 0);
            }
            out.extend_from_slice(&value.to_le_bytes());
        };
        let text = |out: &mut Vec<u8>, value: &str| {
            number(out, value.len() as u32 + u32::from(is_cdr));
            out.extend_from_slice(value.as_bytes());
            out.extend(is_cdr.then_some(0));
        };
        number(&mut out, 1);
        number(&mut out, 2);
        text(&mut out, "lidar");
        number(&mut out, 1);
        number(&mut out, (data.len() / 14) as u32);
        number(&mut out, 4);
        for (name, offset, datatype) in [("x", 0, 7), ("y", 4, 7), ("z", 8, 7), ("ring", 12, 4)] {
            text(&mut out, name);
            number(&mut out, offset);
            out.push(datatype);
            number(&mut out, 1);
        }
        out.push(0);
        number(&mut out, 14);
        number(&mut out, data.len() as u32);
        number(&mut out, data.len() as u32);
        out.extend_from_slice(data);
        out.push(1);
        out
    }

    #[test]
    fn the_points_of_each_format_are_found() {
        let data: Vec<u8> = (0..14 * 20).map(|at| at as u8).collect();
        for (format, is_cdr) in [(MessageFormat::Ros1, false), (MessageFormat::Ros2, true)] {
            let message = message(is_cdr, &data);
            let cloud = locate(format, "sensor_msgs/PointCloud2", &message).unwrap();
            assert_eq!((&message[cloud.data.clone()], cloud.point_step), (&data[..], 14), "{format:?}");
            assert_eq!(cloud.coordinates, [0, 4, 8]);
            assert_eq!(cloud.fields.ring, Some((12, 2)));
            for length in 0..message.len() - 1 {
                assert_eq!(locate(format, "sensor_msgs/PointCloud2", &message[..length]), None, "{format:?} {length}");
            }
        }
        let field = |name: &str, offset, kind: NumericType| PackedElementField {
            name: name.into(),
            offset,
            r#type: kind.into(),
        };
        let cloud = PointCloud {
            frame_id: "lidar".into(),
            point_stride: 14,
            fields: vec![
                field("z", 8, NumericType::Float32),
                field("x", 0, NumericType::Float32),
                field("y", 4, NumericType::Float64),
            ],
            data: Bytes::from(data.clone()),
            ..PointCloud::default()
        };
        let message = cloud.encode_to_vec();
        let found = locate(MessageFormat::Protobuf, "foxglove.PointCloud", &message).unwrap();
        assert_eq!((&message[found.data], found.point_step, found.coordinates), (&data[..], 14, vec![0, 8]));
    }

    #[test]
    fn an_empty_cloud_has_no_points() {
        assert_eq!(locate(MessageFormat::Ros1, "sensor_msgs/PointCloud2", &message(false, &[])), None);
        assert_eq!(locate(MessageFormat::Protobuf, "foxglove.PointCloud", &[]), None);
        assert_eq!(locate(MessageFormat::Ros1, "sensor_msgs/Image", &message(false, &[0; 14])), None);
    }
}
