//! Kind `velodyne`: a simulated VLP-32C that drives along a street, or recorded frames of a lidar.
//!
//! | `output` | `format` | type |
//! |---|---|---|
//! | `scan` | `ros1`, `ros2` | `velodyne_msgs/VelodyneScan`: the packets of a turn |
//! | `cloud` | `ros1`, `ros2` | `sensor_msgs/PointCloud2` |
//! | `cloud` | `bus` | `foxglove.PointCloud` |
//!
//! Packets have the octets of the sensor (user manual 63-9325). Points of packets have 22 octets, as in the ROS driver: x, y, z, intensity,
//! ring, time. A turn ends at the tick of the timer, which is the origin of the message and the time of its header. Frames are made
//! ahead of the ticks on a separate thread.
//!
//! Counters: ticks = `published` + `dropped`, by reason:
//!
//! | reason | meaning |
//! |---|---|
//! | `late` | the frame was not ready at its tick: the machine is too slow for `rate_hz` |
//! | `no_buffer` | all buffers of the topic are in use |
//! | `queue_full` | a reliable subscriber had no room |

pub(in crate::kinds) mod message;
pub(in crate::kinds) mod output;
mod source;

use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_bus::{Counter, Meta, Qos};
use viaduct_lidar::packet::{Octets, PACKET_PERIOD_NS, Packet, set_time};
use viaduct_lidar::points::{Converter, octets_max};
use viaduct_lidar::vlp32c::SCAN_PACKETS;
use viaduct_messages::foxglove::PointCloud;
use viaduct_messages::its::timestamp;
use viaduct_messages::topic;
use viaduct_node::{
    CallbackContext, Component, Context, Edges, Loans, QosPreset, QosSettings, SettingError, StartError,
};
use viaduct_units::Tai;

use super::ros_converter::Format;
use message::Layout;
use output::{CloudOutput, FRAME_ID_OCTETS_MAX, HEAD_OCTETS_MAX, Header, Loss, ScanOutput};
use source::{FILE_OCTETS_MAX, Frame, Source};

/// Frames that are ready or in work.
const FRAMES_AHEAD: usize = 3;
/// Number of points of the case study of mqtt_client: a cloud of 1.08 MB.
const POINTS: usize = 49_016;
/// Nanoseconds of an hour.
const HOUR_NS: i64 = 3_600_000_000_000;

/// A simulated VLP-32C, or recorded frames.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VelodyneSettings {
    /// Topic of the scans or clouds: `lidar/packets`.
    pub topic: String,
    /// Content of the messages. Default: `scan`.
    #[serde(default)]
    pub output: OutputKind,
    /// Format of the messages. A scan is a message of ROS.
    pub format: Format,
    /// Messages per second, 0.1 to 20. At any rate, a message has a turn of 0.1 s with 151 packets. Default: 10.
    #[serde(default = "default_rate_hz")]
    #[schemars(range(min = 0.1, max = 20.0))]
    pub rate_hz: f64,
    /// Number that determines the street and the noise of the sensor. Default: 1.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// `false` if the vehicle with the sensor stands still, as in the case study of mqtt_client, and the others in its lane, too; otherwise it
    /// drives along the street at 8 m/s. Default: `true`.
    #[serde(default = "default_drives")]
    pub drives: bool,
    /// Most returns of a turn, 1 to 57984. Randomly chosen returns beyond are removed. Default: 49016, a cloud of 1.08 MB.
    #[serde(default = "default_points")]
    #[schemars(range(min = 1, max = 57_984))]
    pub points: usize,
    /// Share of the packets that are published, in percent, 0 to 100. The packets are chosen at random; at 0, a message is only a header.
    /// Default: 100.
    #[serde(default = "default_share")]
    #[schemars(range(min = 0.0, max = 100.0))]
    pub share: f64,
    /// Coordinate frame of the messages, at most 256 octets. Default: `velodyne`.
    #[serde(default = "default_frame_id")]
    pub frame_id: String,
    /// Folder with recorded frames, for `output: cloud`: files `*.bin` of KITTI (x, y, z, intensity as float32) and `*.pcd.bin` of nuScenes
    /// (with the ring as a fifth number), in the order of their names and again from the first one. A file has at most 32 MiB. Points
    /// of nuScenes, whose y axis points forward, are turned, so that the x axis does.
    pub replay: Option<PathBuf>,
    /// Offered quality of service. Default: the preset `sensor_data`.
    #[serde(default = "default_qos")]
    pub qos: QosSettings,
}

/// Content of the messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputKind {
    /// The packets of a turn.
    #[default]
    Scan,
    /// The points of a turn.
    Cloud,
}

const fn default_rate_hz() -> f64 {
    10.0
}

const fn default_seed() -> u64 {
    1
}

const fn default_drives() -> bool {
    true
}

const fn default_points() -> usize {
    POINTS
}

const fn default_share() -> f64 {
    100.0
}

fn default_frame_id() -> String {
    "velodyne".to_owned()
}

fn default_qos() -> QosSettings {
    QosSettings::preset(QosPreset::SensorData)
}

/// The simulated sensor.
pub struct Velodyne {
    frame_id: String,
    output: Output,
    converter: Converter,
    requests: Sender<()>,
    frames: Receiver<Frame>,
    counters: Counters,
}

enum Output {
    Scan(ScanOutput),
    Cloud(CloudOutput),
}

struct Counters {
    published: Counter,
    late: Counter,
    no_buffer: Counter,
    queue_full: Counter,
}

impl Component for Velodyne {
    type Settings = VelodyneSettings;

    fn check(settings: &VelodyneSettings) -> Result<(), SettingError> {
        topic::check_name(&settings.topic).map_err(|error| SettingError::new("topic", error.to_string()))?;
        let VelodyneSettings { output, format, rate_hz, points, share, frame_id, replay, .. } = settings;
        if *output == OutputKind::Scan && *format == Format::Bus {
            let problem = "`output: scan` needs `ros1` or `ros2`: the bus has no type for packets";
            return Err(SettingError::new("format", problem));
        }
        if !(0.1..=20.0).contains(rate_hz) {
            return Err(SettingError::new("rate_hz", format!("{rate_hz} is not within 0.1 to 20")));
        }
        if !(1..=57_984).contains(points) {
            return Err(SettingError::new("points", format!("{points} is not within 1 to 57984")));
        }
        if !(0.0..=100.0).contains(share) {
            return Err(SettingError::new("share", format!("{share} is not within 0 to 100")));
        }
        if frame_id.len() > FRAME_ID_OCTETS_MAX {
            let problem = format!("{} octets; at most {FRAME_ID_OCTETS_MAX} are allowed", frame_id.len());
            return Err(SettingError::new("frame_id", problem));
        }
        if replay.is_some() && *output == OutputKind::Scan {
            return Err(SettingError::new("replay", "recorded frames are points: they need `output: cloud`"));
        }
        if replay.is_some() && *share < 100.0 {
            return Err(SettingError::new("share", "recorded frames have no packets"));
        }
        settings.qos.resolve("qos").map(|_| ())
    }

    fn edges(settings: &VelodyneSettings) -> Edges {
        // `check` has rejected settings that cannot be resolved.
        let offered = settings.qos.resolve("qos").unwrap_or(Qos::sensor_data());
        let edges = match settings.format {
            Format::Bus => Edges::default().publishes::<PointCloud>("topic", &settings.topic, offered),
            Format::Ros1 | Format::Ros2 => Edges::default().publishes_untyped("topic", &settings.topic, offered),
        };
        // The pool of recorded frames grows with their size.
        if settings.replay.is_some() { edges } else { edges.loans(Loans::one(octets_of(settings.output))) }
    }

    fn start(settings: VelodyneSettings, context: &mut Context<Self>) -> Result<Self, StartError> {
        let offered = settings.qos.resolve("qos")?;
        let source = Source::open(&settings)?;
        let (requests, requested) = mpsc::channel();
        let (made, frames) = mpsc::channel();
        for _ in 0..FRAMES_AHEAD {
            // The receiver exists.
            let _ = requests.send(());
        }
        let stop = context.stop();
        context.spawn_thread(move || source.run(&requested, &made, &stop))?;
        context.every(Duration::from_secs_f64(1.0 / settings.rate_hz), Self::tick);
        let (bus, topic, format, name) = (context.bus(), &settings.topic, settings.format, context.name());
        let output = match settings.output {
            OutputKind::Scan => Output::Scan(ScanOutput::open(bus, topic, format, offered, name)?),
            OutputKind::Cloud => Output::Cloud(CloudOutput::open(bus, topic, format, offered, name)?),
        };
        let counters = Counters {
            published: context.counter("published"),
            late: context.counter_for("dropped", "late"),
            no_buffer: context.counter_for("dropped", "no_buffer"),
            queue_full: context.counter_for("dropped", "queue_full"),
        };
        Ok(Self { frame_id: settings.frame_id, output, converter: Converter::default(), requests, frames, counters })
    }
}

/// Returns the length of the longest message of a simulated sensor in octets.
const fn octets_of(output: OutputKind) -> usize {
    let content = match output {
        OutputKind::Scan => message::packets_octets(viaduct_ros::msg::Dialect::Ros2, SCAN_PACKETS),
        OutputKind::Cloud => octets_max(SCAN_PACKETS),
    };
    HEAD_OCTETS_MAX + content
}

// A recorded frame fits into a buffer of the bus.
const _: () = assert!(FILE_OCTETS_MAX as usize + HEAD_OCTETS_MAX <= viaduct_bus::LOAN_BYTES_MAX);

impl Velodyne {
    fn tick(&mut self, out: &mut CallbackContext) {
        let Ok(frame) = self.frames.try_recv() else {
            return self.counters.late.increment();
        };
        // If the thread has failed, the node ends.
        let _ = self.requests.send(());
        let counter = match self.publish(frame, out.now.tai) {
            Ok(()) => &self.counters.published,
            Err(Loss::NoBuffer) => &self.counters.no_buffer,
            Err(Loss::QueueFull) => &self.counters.queue_full,
        };
        counter.increment();
    }

    fn publish(&self, frame: Frame, end: Tai) -> Result<(), Loss> {
        let (cause, header) =
            (Meta::from_origin(end), Header { stamp: timestamp(end), frame_id: self.frame_id.as_str() });
        match (&self.output, frame) {
            (Output::Scan(output), Frame::Packets(mut packets)) => {
                set_times(&mut packets, end);
                let count = packets.len();
                let timed =
                    packets.iter().enumerate().map(|(index, packet)| (timestamp(start(end, count, index)), packet));
                output.publish(&cause, header, timed)
            }
            (Output::Cloud(output), Frame::Packets(packets)) => {
                let fill = |buffer: &mut [u8]| self.fill(&packets, buffer);
                output.publish(&cause, header, Layout::Driver, octets_max(packets.len()), fill)
            }
            (Output::Cloud(output), Frame::Points(points, layout)) => {
                let fill = |buffer: &mut [u8]| {
                    buffer.copy_from_slice(&points);
                    points.len()
                };
                output.publish(&cause, header, layout, points.len(), fill)
            }
            // `check` refuses recorded frames without `output: cloud`.
            (Output::Scan(_), Frame::Points(..)) => Ok(()),
        }
    }

    /// Writes the points of packets. Returns the number of octets.
    fn fill(&self, packets: &[Octets], buffer: &mut [u8]) -> usize {
        let mut octets = 0;
        for (index, packet) in packets.iter().enumerate() {
            let (Ok(packet), Some(rest)) = (Packet::parse(packet), buffer.get_mut(octets..)) else { continue };
            octets += self.converter.write(&packet, (index as u64 * PACKET_PERIOD_NS) as f32 * 1e-9, rest);
        }
        octets
    }
}

/// Sets the times of the packets of a turn that ends at a time.
fn set_times(packets: &mut [Octets], end: Tai) {
    let count = packets.len();
    for (index, packet) in packets.iter_mut().enumerate() {
        set_time(packet, start(end, count, index).unix_nanos().rem_euclid(HOUR_NS).unsigned_abs());
    }
}

/// Returns the time of the first firing of a packet of a turn that ends at a time.
fn start(end: Tai, packets: usize, index: usize) -> Tai {
    Tai::from_nanos(end.nanos().saturating_sub((packets.saturating_sub(index) as u64 * PACKET_PERIOD_NS) as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_settings_are_rejected_with_the_key() {
        let refused = |rest: &str| {
            let settings: VelodyneSettings = serde_json::from_str(&format!(r#"{{ "topic": "a"{rest} }}"#)).unwrap();
            Velodyne::check(&settings).err().map(|error| error.key)
        };
        assert_eq!(refused(r#", "format": "ros1", "share": 0"#), None);
        assert_eq!(refused(r#", "format": "bus", "output": "cloud", "replay": "frames""#), None);
        assert_eq!(refused(r#", "format": "bus""#).as_deref(), Some("format"));
        assert_eq!(refused(r#", "format": "ros1", "replay": "frames""#).as_deref(), Some("replay"));
        assert_eq!(refused(r#", "format": "ros2", "share": 101"#).as_deref(), Some("share"));
        assert_eq!(refused(r#", "format": "ros2", "rate_hz": 0"#).as_deref(), Some("rate_hz"));
        assert_eq!(refused(r#", "format": "ros2", "points": 0"#).as_deref(), Some("points"));
    }
}
