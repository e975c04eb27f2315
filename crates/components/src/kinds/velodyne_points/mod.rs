//! Kind `velodyne_points`: converts the packets of a VLP-32C to point clouds.
//!
//! Input: `velodyne_msgs/VelodyneScan` of ROS 1 or ROS 2, of `velodyne` or of the driver of the sensor.
//!
//! | `format` | type of the output |
//! |---|---|
//! | `ros1`, `ros2` | `sensor_msgs/PointCloud2` |
//! | `bus` | `foxglove.PointCloud` |
//!
//! Points have 22 octets, as in the ROS driver: x, y, z, intensity, ring, time. Header and coordinate frame are those of the scan; the
//! time of a point counts from the first packet. A cloud inherits origin and stamps of its scan.
//!
//! While a scan is converted, a newer scan replaces a waiting one; the subscription counts those as dropped. Counters: `points` is the number
//! of published points, and `taken` = `published` + `dropped`, by reason:
//!
//! | reason | meaning |
//! |---|---|
//! | `type` | the topic has another type, or one whose definition is not known |
//! | `malformed` | the message is not one of its type |
//! | `too_many_packets` | the scan has more than 604 packets, twice as many as a turn at the lowest speed of the sensor, 5 turns per second |
//! | `frame_id` | the name of the coordinate frame has more than 256 octets |
//! | `no_buffer` | all buffers of the topic are in use |
//! | `queue_full` | a reliable subscriber had no room |
//!
//! A packet that cannot be read is left out of its cloud and counted in `packets_dropped`, by reason:
//!
//! | reason | meaning |
//! |---|---|
//! | `length` | it does not have 1206 octets |
//! | `flag` | a block does not begin with FF EE |
//! | `azimuth` | an azimuth is not below 360 degrees |
//! | `return_mode` | the sensor does not send the strongest return |
//! | `product` | the packet is from another sensor |

pub mod fuzzing;
mod scan;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_bus::{Counter, Qos, TypeInfo, UntypedSample};
use viaduct_lidar::packet::{Malformed, Packet};
use viaduct_lidar::points::{Converter, POINT_OCTETS, octets_max};
use viaduct_messages::foxglove::PointCloud;
use viaduct_messages::topic;
use viaduct_node::{Component, Context, Edges, SettingError, StartError};
use viaduct_ros::msg::Schema;

use super::ros_converter::Format;
use super::velodyne::message::Layout;
use super::velodyne::output::{CloudOutput, FRAME_ID_OCTETS_MAX, Header, Loss};
use scan::Scan;

/// Only the newest scan counts.
const NEWEST: Qos = Qos::keep_last(1);
/// Quality of service of the output.
const OFFERED: Qos = Qos::keep_last(8);
/// Most packets of a scan: twice the 302 packets of a turn at the lowest speed of the sensor, 5 turns per second.
const PACKETS_MAX: usize = 604;

/// Settings of `velodyne_points`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VelodynePointsSettings {
    /// Topic of the scans: `lidar/packets`.
    pub from: String,
    /// Topic for the clouds: `lidar/points`.
    pub to: String,
    /// Format of the clouds.
    pub format: Format,
}

/// The reason why a scan is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    Type,
    Malformed,
    TooManyPackets,
    FrameId,
    NoBuffer,
    QueueFull,
}

impl Failure {
    const ALL: [Self; 6] =
        [Self::Type, Self::Malformed, Self::TooManyPackets, Self::FrameId, Self::NoBuffer, Self::QueueFull];

    const fn reason(self) -> &'static str {
        match self {
            Self::Type => "type",
            Self::Malformed => "malformed",
            Self::TooManyPackets => "too_many_packets",
            Self::FrameId => "frame_id",
            Self::NoBuffer => "no_buffer",
            Self::QueueFull => "queue_full",
        }
    }
}

impl From<Loss> for Failure {
    fn from(loss: Loss) -> Self {
        match loss {
            Loss::NoBuffer => Self::NoBuffer,
            Loss::QueueFull => Self::QueueFull,
        }
    }
}

/// The reasons why a packet is dropped, in the order of `packet_reason`.
const PACKET_REASONS: [&str; 5] = ["length", "flag", "azimuth", "return_mode", "product"];

const fn packet_reason(malformed: Malformed) -> usize {
    match malformed {
        Malformed::Length(_) => 0,
        Malformed::Flag(_) => 1,
        Malformed::Azimuth { .. } => 2,
        Malformed::ReturnMode(_) => 3,
        Malformed::Product(_) => 4,
    }
}

/// The converter.
pub struct VelodynePoints {
    component: String,
    converter: Converter,
    /// Definition of the current type.
    schema: Option<(Arc<TypeInfo>, Option<Schema>)>,
    output: CloudOutput,
    counters: Counters,
}

struct Counters {
    taken: Counter,
    published: Counter,
    points: Counter,
    dropped: [Counter; Failure::ALL.len()],
    packets_dropped: [Counter; PACKET_REASONS.len()],
}

impl Component for VelodynePoints {
    type Settings = VelodynePointsSettings;

    fn check(settings: &VelodynePointsSettings) -> Result<(), SettingError> {
        for (key, name) in [("from", &settings.from), ("to", &settings.to)] {
            topic::check_name(name).map_err(|error| SettingError::new(key, error.to_string()))?;
        }
        if settings.from == settings.to {
            return Err(SettingError::new("to", format!("`{}` is the topic of the scans", settings.to)));
        }
        Ok(())
    }

    fn edges(settings: &VelodynePointsSettings) -> Edges {
        let edges = Edges::default().reads_untyped("from", &settings.from, NEWEST);
        match settings.format {
            Format::Bus => edges.publishes::<PointCloud>("to", &settings.to, OFFERED),
            Format::Ros1 | Format::Ros2 => edges.publishes_untyped("to", &settings.to, OFFERED),
        }
    }

    fn start(settings: VelodynePointsSettings, context: &mut Context<Self>) -> Result<Self, StartError> {
        let scans = context.subscribe_untyped(&settings.from, NEWEST)?;
        context.on_untyped(scans, |points, sample, _| points.take(&sample));
        let output = CloudOutput::open(context.bus(), &settings.to, settings.format, OFFERED, context.name())?;
        let counters = Counters {
            taken: context.counter("taken"),
            published: context.counter("published"),
            points: context.counter("points"),
            dropped: Failure::ALL.map(|failure| context.counter_for("dropped", failure.reason())),
            packets_dropped: PACKET_REASONS.map(|reason| context.counter_for("packets_dropped", reason)),
        };
        let component = context.name().to_owned();
        Ok(Self { component, converter: Converter::default(), schema: None, output, counters })
    }
}

impl VelodynePoints {
    fn take(&mut self, sample: &UntypedSample) {
        self.counters.taken.increment();
        match self.convert(sample) {
            Ok(()) => self.counters.published.increment(),
            Err(failure) => self.counters.dropped[failure as usize].increment(),
        }
    }

    fn convert(&mut self, sample: &UntypedSample) -> Result<(), Failure> {
        let message = sample.encoded().to_bytes();
        let scan = Scan::read(self.schema(sample.type_info()).ok_or(Failure::Type)?, &message)?;
        if scan.packets.len() > PACKETS_MAX {
            return Err(Failure::TooManyPackets);
        }
        if scan.frame_id.len() > FRAME_ID_OCTETS_MAX {
            return Err(Failure::FrameId);
        }
        let header = Header { stamp: scan.stamp, frame_id: &scan.frame_id };
        let length = octets_max(scan.packets.len());
        let fill = |buffer: &mut [u8]| self.fill(&scan, buffer);
        Ok(self.output.publish(&sample.meta(), header, Layout::Driver, length, fill)?)
    }

    /// Writes the points of a scan. Returns the number of octets.
    fn fill(&self, scan: &Scan, buffer: &mut [u8]) -> usize {
        let mut octets = 0;
        for (start_s, packet) in &scan.packets {
            match Packet::parse(packet) {
                Ok(packet) => {
                    let Some(rest) = buffer.get_mut(octets..) else { break };
                    octets += self.converter.write(&packet, *start_s, rest);
                }
                Err(malformed) => self.counters.packets_dropped[packet_reason(malformed)].increment(),
            }
        }
        self.counters.points.add((octets / POINT_OCTETS) as u64);
        octets
    }

    /// Returns the definition of a type of scans, or `None` for another type.
    fn schema(&mut self, info: &Arc<TypeInfo>) -> Option<&Schema> {
        let is_current = |(known, _): &(Arc<TypeInfo>, _)| {
            Arc::ptr_eq(known, info) || (known.is_same(info) && known.schema() == info.schema())
        };
        if !self.schema.as_ref().is_some_and(is_current) {
            self.schema = None;
        }
        let component = &self.component;
        let (_, schema) = self.schema.get_or_insert_with(|| {
            let schema = scan::schema(info);
            if schema.is_none() {
                tracing::warn!(%component, r#type = %info, "messages of this type are not scans of a Velodyne");
            }
            (Arc::clone(info), schema)
        });
        schema.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_settings_are_rejected_with_the_key() {
        let refused = |from: &str, to: &str| {
            let settings = VelodynePointsSettings { from: from.to_owned(), to: to.to_owned(), format: Format::Bus };
            VelodynePoints::check(&settings).err().map(|error| error.key)
        };
        assert_eq!(refused("a", "b"), None);
        assert_eq!(refused("a", "a").as_deref(), Some("to"));
        assert_eq!(refused("a/*", "b").as_deref(), Some("from"));
    }
}
