//! The cells of the tables: a method over a link with encryption and quality of service, and the messages that it carries.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Octets of a lidar packet.
pub(super) const PACKET_OCTETS: usize = 1206;
/// Packets of a whole scan: 0.18 MB.
pub(super) const PACKETS: usize = 151;
/// Octets of a point, and points of a whole cloud: 1.08 MB.
pub(super) const POINT_OCTETS: usize = 22;
pub(super) const POINTS: usize = 49_016;

/// A system that carries messages from the vehicle to the cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Method {
    /// Two nodes of Viaduct between two ROS masters and a broker.
    Ros1,
    /// The same in a domain of ROS 2.
    Ros2,
    /// The same without ROS: a `generator` and a `sink`.
    Bus,
    /// One node of Viaduct between two ROS nodes, without a broker.
    InVehicle,
    /// Two nodes of Viaduct with a lidar, the detection of vehicles in the cloud, and the list of objects back.
    UseCase,
    /// The same components in one node.
    UseCaseInVehicle,
    /// The detector of vehicles alone.
    Detector,
    /// mqtt_client, in place of Viaduct's nodes.
    MqttClient,
    /// mqtt_bridge, in place of Viaduct's nodes.
    MqttBridge,
    /// No bridge: both ends have the vehicle's ROS master, and connect over the link.
    Overlay,
    /// No bridge, on one host.
    Direct,
    /// The same in ROS 2.
    DirectRos2,
    /// A TCP connection.
    Tcp,
    /// A plain publisher and subscriber of MQTT.
    Mqtt,
}

impl Method {
    /// Returns the name of the system in rows and on the command line.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Ros1
            | Self::Ros2
            | Self::Bus
            | Self::InVehicle
            | Self::UseCase
            | Self::UseCaseInVehicle
            | Self::Detector => "viaduct",
            Self::MqttClient => "mqtt_client",
            Self::MqttBridge => "mqtt_bridge",
            Self::Overlay => "ros1.overlay",
            Self::Direct => "floor.ros",
            Self::DirectRos2 => "floor.ros2",
            Self::Tcp => "floor.tcp",
            Self::Mqtt => "floor.mqtt",
        }
    }

    /// Returns the name with the variant.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Ros1 => "viaduct ros1",
            Self::Ros2 => "viaduct ros2",
            Self::Bus => "viaduct bus",
            Self::InVehicle => "viaduct in-vehicle",
            Self::UseCase => "viaduct use case",
            Self::UseCaseInVehicle => "viaduct use case in-vehicle",
            Self::Detector => "viaduct detector",
            other => other.name(),
        }
    }

    /// Returns the origin of the messages, or `None` if it is the bench itself.
    const fn from(self) -> Option<&'static str> {
        match self {
            Self::Bus | Self::UseCase | Self::UseCaseInVehicle => Some("bus"),
            Self::Detector | Self::Tcp | Self::Mqtt => None,
            Self::Ros2 | Self::DirectRos2 => Some("ros2"),
            _ => Some("ros1"),
        }
    }

    /// Returns `true` if both ends are in ROS.
    pub(super) const fn has_ros(self) -> bool {
        !matches!(self, Self::Bus | Self::UseCase | Self::UseCaseInVehicle | Self::Detector | Self::Tcp | Self::Mqtt)
    }

    /// Returns `true` if both ends are in ROS 2.
    pub(super) const fn has_ros2(self) -> bool {
        matches!(self, Self::Ros2 | Self::DirectRos2)
    }

    /// Returns `true` if two nodes of Viaduct between two ends in ROS report their hops.
    pub(super) const fn has_hops(self) -> bool {
        matches!(self, Self::Ros1 | Self::Ros2)
    }

    /// Returns `true` if the messages are those of a lidar whose points are processed.
    pub(super) const fn is_use_case(self) -> bool {
        matches!(self, Self::UseCase | Self::UseCaseInVehicle)
    }

    pub(super) const fn is_floor(self) -> bool {
        matches!(self, Self::Direct | Self::DirectRos2 | Self::Tcp | Self::Mqtt)
    }

    pub(super) const fn is_rival(self) -> bool {
        matches!(self, Self::MqttClient | Self::MqttBridge | Self::Overlay)
    }

    /// Returns `true` if the messages cross a broker.
    pub(super) const fn has_broker(self) -> bool {
        matches!(
            self,
            Self::Ros1 | Self::Ros2 | Self::Bus | Self::UseCase | Self::MqttClient | Self::MqttBridge | Self::Mqtt
        )
    }

    /// Returns `true` if the cloud's end subscribes to the vehicle's topic.
    pub(super) const fn is_direct(self) -> bool {
        matches!(self, Self::Overlay | Self::Direct | Self::DirectRos2)
    }

    const fn encoding(self) -> &'static str {
        match self {
            Self::Ros1 | Self::Ros2 | Self::Bus | Self::UseCase => "native",
            Self::MqttClient => "mqtt_client",
            Self::MqttBridge => "msgpack",
            Self::InVehicle
            | Self::UseCaseInVehicle
            | Self::Detector
            | Self::Overlay
            | Self::Direct
            | Self::DirectRos2
            | Self::Tcp
            | Self::Mqtt => "none",
        }
    }
}

/// The network between vehicle and cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Link {
    /// Both ends on one host, joined by its loopback interface.
    Host,
    /// Two network namespaces, joined by a pair of virtual Ethernet devices.
    Ethernet,
    /// Two network namespaces, joined by an emulated 5G link.
    FiveG,
    /// The same with the rate at which the paper's link breaks.
    NarrowFiveG,
}

impl Link {
    /// All links.
    pub const ALL: [Self; 4] = [Self::Host, Self::Ethernet, Self::FiveG, Self::NarrowFiveG];

    /// Returns `true` for an emulated link, whose jitter hides the time of a bridge.
    pub(super) const fn is_emulated(self) -> bool {
        matches!(self, Self::FiveG | Self::NarrowFiveG)
    }

    /// Returns the name in rows and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Ethernet => "ethernet",
            Self::FiveG => "5g",
            Self::NarrowFiveG => "5g-84",
        }
    }
}

/// Encryption of the connections to the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Encryption {
    None,
    /// TLS with a certificate of the broker.
    Tls,
    /// TLS with certificates of the broker and of each client.
    MutualTls,
}

impl Encryption {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Tls => "tls",
            Self::MutualTls => "mtls",
        }
    }
}

/// Compression of the messages between Viaduct's nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Compression {
    None,
    Zstd,
    /// The octets of points in planes.
    Planes,
    /// Chosen by the measured goodput.
    Auto,
    /// The same, with coordinates in millimetres.
    AutoMillimetre,
}

impl Compression {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Zstd => "zstd",
            Self::Planes => "planes",
            Self::Auto => "auto",
            Self::AutoMillimetre => "auto-1mm",
        }
    }
}

impl Compression {
    /// Returns the settings of a route.
    pub(super) const fn settings(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Zstd => ", compression: zstd",
            Self::Planes => ", compression: planes",
            Self::Auto => ", compression: auto",
            Self::AutoMillimetre => ", compression: auto, resolution_m: 0.001",
        }
    }
}

/// The type of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// Packets of the lidar: `velodyne_msgs/VelodyneScan`.
    Scan,
    /// Points: `sensor_msgs/PointCloud2`.
    Cloud,
}

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Scan => "scan",
            Self::Cloud => "cloud",
        }
    }
}

/// The answer of the cloud to each message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    /// A list of objects.
    List,
    /// The message itself.
    Same,
}

impl Answer {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Same => "same",
        }
    }
}

/// The configuration of a method. The programs of a setup carry the messages of several cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Setup {
    pub(super) method: Method,
    pub(super) link: Link,
    pub(super) encryption: Encryption,
    pub(super) qos: u8,
    pub(super) compression: Compression,
}

/// Messages of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) kind: Kind,
    /// Share of the whole scan or cloud, 0 to 100.
    pub(super) percent: u8,
    pub(super) answer: Answer,
    pub(super) rate_hz: u32,
}

impl Load {
    pub(super) fn period(&self) -> Duration {
        Duration::from_secs(1) / self.rate_hz.max(1)
    }

    /// Returns the octets of the packets or points.
    pub(super) const fn octets(&self) -> usize {
        match self.kind {
            Kind::Scan => (PACKETS * self.percent as usize).div_ceil(100) * PACKET_OCTETS,
            Kind::Cloud => (POINTS * self.percent as usize).div_ceil(100) * POINT_OCTETS,
        }
    }
}

/// A cell of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) setup: Setup,
    pub(super) load: Load,
    /// Number of this measurement of the cell, from 0. The rounds of compared methods alternate.
    pub(super) round: u8,
}

impl Cell {
    /// Returns the key in a state file.
    pub(super) fn key(&self) -> String {
        let Self { setup: Setup { method, link, encryption, qos, compression }, load, .. } = self;
        let Load { kind, percent, answer, rate_hz } = load;
        format!(
            "{}, {}, encryption {}, qos {qos}, compression {}, {} {percent} %, answer {}, {rate_hz} Hz",
            method.label(),
            link.name(),
            encryption.name(),
            compression.name(),
            kind.name(),
            answer.name()
        )
    }

    /// Returns the name of the method, with what differs from the plain setup.
    pub(super) fn method_label(&self) -> String {
        let Setup { method, encryption, compression, .. } = self.setup;
        let names = [encryption.name(), compression.name()].into_iter().filter(|name| *name != "none");
        [method.label()].into_iter().chain(names).collect::<Vec<_>>().join(", ")
    }

    /// Returns `true` if the report has the hops of its nodes.
    pub(super) fn has_hops(&self) -> bool {
        self.setup.method.has_hops() && self.load.percent == 100 && self.load.answer == Answer::List
    }

    /// Returns `true` if the programs that measured another cell measure this one as well. The hops of a node count since its start, so
    /// the cells whose hops the report has are measured alone.
    pub(super) fn shares_session(&self, other: &Self) -> bool {
        self.setup == other.setup && self.round == other.round && !self.has_hops()
    }

    /// Returns the parameters of a row.
    pub(super) fn params(&self, measure: &str) -> Value {
        let Self { setup: Setup { method, link, encryption, qos, compression }, load, .. } = self;
        json!({
            "from": method.from(), "measure": measure, "kind": load.kind.name(), "percent": load.percent, "size": load.octets(),
            "qos": method.has_broker().then_some(qos), "encryption": encryption.name(), "encoding": method.encoding(), "compression": compression.name(),
            "link": link.name(), "answer": load.answer.name(), "rate_hz": load.rate_hz,
        })
    }
}
