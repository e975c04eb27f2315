//! Publication of scans and clouds, written straight into a buffer of the topic's pool.

use bytes::Bytes;
use prost_types::Timestamp;
use viaduct_bus::{Bus, Encoded, Meta, PublishError, Publisher, Qos, TypeInfo, UntypedPublisher};
use viaduct_lidar::packet::Octets;
use viaduct_messages::foxglove::packed_element_field::NumericType;
use viaduct_messages::foxglove::{PackedElementField, PointCloud};
use viaduct_node::StartError;
use viaduct_ros::definitions;
use viaduct_ros::msg::{Dialect, TypeName};

use super::message::{self, Layout};
use crate::kinds::ros_converter::Format;
use crate::kinds::ros_converter::conversion::{dialect, ros_info};

/// Octets of a message without packets or points, with a coordinate frame of the greatest length.
pub(in crate::kinds) const HEAD_OCTETS_MAX: usize = 1024;
/// Greatest length of a coordinate frame in octets.
pub(in crate::kinds) const FRAME_ID_OCTETS_MAX: usize = 256;

/// The reason why a message is not published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::kinds) enum Loss {
    /// All buffers of the pool are in use, or too short.
    NoBuffer,
    /// A reliable subscriber had no room.
    QueueFull,
}

/// Header of a message.
#[derive(Clone, Copy)]
pub(in crate::kinds) struct Header<'a> {
    pub(in crate::kinds) stamp: Timestamp,
    pub(in crate::kinds) frame_id: &'a str,
}

/// The publisher of scans.
pub(super) struct ScanOutput {
    publisher: UntypedPublisher,
    dialect: Dialect,
}

impl ScanOutput {
    pub(super) fn open(bus: &Bus, topic: &str, format: Format, qos: Qos, component: &str) -> Result<Self, StartError> {
        let publisher =
            bus.publisher_untyped(topic, ros_type("velodyne_msgs/VelodyneScan", format)?, qos, component)?;
        Ok(Self { publisher, dialect: dialect(format) })
    }

    /// Publishes packets, each with its time.
    pub(super) fn publish<'a>(
        &self,
        cause: &Meta,
        header: Header<'_>,
        packets: impl ExactSizeIterator<Item = (Timestamp, &'a Octets)>,
    ) -> Result<(), Loss> {
        let head = message::scan_head(self.dialect, header.stamp, header.frame_id, packets.len());
        let length = head.len() + message::packets_octets(self.dialect, packets.len());
        let mut loan = self.publisher.loan(length).map_err(|_| Loss::NoBuffer)?;
        let (front, rest) = loan.split_at_mut(head.len());
        front.copy_from_slice(&head);
        message::write_packets(self.dialect, packets, rest);
        published(self.publisher.try_publish_from(cause, Encoded::from(loan.freeze())))
    }
}

/// The publisher of clouds.
pub(in crate::kinds) enum CloudOutput {
    /// `foxglove.PointCloud`.
    Bus(Publisher<PointCloud>),
    /// `sensor_msgs/PointCloud2`.
    Ros(UntypedPublisher, Dialect),
}

impl CloudOutput {
    pub(in crate::kinds) fn open(
        bus: &Bus,
        topic: &str,
        format: Format,
        qos: Qos,
        component: &str,
    ) -> Result<Self, StartError> {
        match format {
            Format::Bus => Ok(Self::Bus(bus.publisher(topic, qos, component)?)),
            Format::Ros1 | Format::Ros2 => {
                let info = ros_type("sensor_msgs/PointCloud2", format)?;
                Ok(Self::Ros(bus.publisher_untyped(topic, info, qos, component)?, dialect(format)))
            }
        }
    }

    /// Publishes a cloud. `fill` writes the points into a buffer of `octets_max` octets and returns the number of octets that it wrote.
    pub(in crate::kinds) fn publish(
        &self,
        cause: &Meta,
        header: Header<'_>,
        layout: Layout,
        octets_max: usize,
        fill: impl FnOnce(&mut [u8]) -> usize,
    ) -> Result<(), Loss> {
        match self {
            Self::Bus(publisher) => {
                let mut data = Bytes::new();
                if octets_max > 0 {
                    let mut loan = publisher.loan(octets_max).map_err(|_| Loss::NoBuffer)?;
                    let octets = fill(&mut loan).min(octets_max);
                    data = loan.freeze().slice(..octets);
                }
                published(publisher.try_publish_from(cause, bus_cloud(header, layout, data)))
            }
            Self::Ros(publisher, dialect) => {
                let head = |octets| message::cloud_head(*dialect, header.stamp, header.frame_id, layout, octets);
                let start = head(0).len();
                // One more octet after the points: `is_dense`.
                let mut loan = publisher.loan(start + octets_max + 1).map_err(|_| Loss::NoBuffer)?;
                let (front, rest) = loan.split_at_mut(start);
                let octets = fill(rest.split_at_mut(octets_max).0).min(octets_max);
                front.copy_from_slice(&head(octets));
                rest[octets] = 1;
                let message = loan.freeze().slice(..=start + octets);
                published(publisher.try_publish_from(cause, Encoded::from(message)))
            }
        }
    }
}

fn bus_cloud(header: Header<'_>, layout: Layout, data: Bytes) -> PointCloud {
    let field = |field: &message::Field| PackedElementField {
        name: field.name.to_owned(),
        offset: field.offset,
        r#type: if field.is_short { NumericType::Uint16 } else { NumericType::Float32 }.into(),
    };
    PointCloud {
        timestamp: Some(header.stamp),
        frame_id: header.frame_id.to_owned(),
        pose: None,
        point_stride: layout.stride() as u32,
        fields: layout.fields().iter().map(field).collect(),
        data,
    }
}

fn published(result: Result<(), PublishError>) -> Result<(), Loss> {
    result.map_err(|_| Loss::QueueFull)
}

fn ros_type(name: &str, format: Format) -> Result<TypeInfo, StartError> {
    let unknown = || StartError::Other(format!("the definition of {name} is not known"));
    let name = TypeName::parse(name).ok_or_else(unknown)?;
    let definition = definitions::find(&name, dialect(format)).ok_or_else(unknown)?;
    Ok(ros_info(&name, definition))
}
