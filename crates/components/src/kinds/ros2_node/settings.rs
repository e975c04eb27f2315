//! Settings of a node and their checks.

use std::net::Ipv4Addr;
use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use viaduct_messages::topic;
use viaduct_node::{QosSettings, SettingError};
use viaduct_ros::dds;

/// Largest domain whose ports are below 65536.
const DOMAIN_MAX: u32 = 232;
/// Largest number of subscriptions, of publications, and of peers.
const TOPICS_MAX: usize = 64;
const PEERS_MAX: usize = 64;
/// Largest permitted value of `message_bytes_max`.
pub(super) const MESSAGE_BYTES_LIMIT: usize = 1 << 30;
/// Largest permitted queue.
const QUEUE_LIMIT: usize = 10_000;
/// Longest name of a network interface (IFNAMSIZ without NUL).
const INTERFACE_BYTES_MAX: usize = 15;

/// A node of ROS 2.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ros2NodeSettings {
    /// Domain of DDS, 0 to 232. It must be that of the other ROS nodes (their `ROS_DOMAIN_ID`, which this node does not read).
    #[serde(default)]
    #[schemars(range(max = 232))]
    pub domain: u32,
    /// Name of the node in ROS without its namespace, for example `bridge`. Default: the names of the Viaduct node and of this
    /// component.
    #[serde(default)]
    pub name: Option<String>,
    /// Namespace of the node: `/`, or for example `/car`. Topics are always given with their full name.
    #[serde(default = "default_namespace")]
    pub namespace: String,
    /// Network interface, by name or IPv4 address: `eth0`, `192.168.1.5`. Default: the one that Cyclone DDS prefers. ROS has no access
    /// control: use a trusted network. All `ros2_node` components of a process with the same domain need the same network settings.
    #[serde(default)]
    pub interface: Option<String>,
    /// Peers are found by multicast, and data for several of them is sent by multicast. `false` on networks that do not forward
    /// multicast; then list the `peers`. The loopback interface usually has no multicast.
    #[serde(default = "default_multicast")]
    pub multicast: bool,
    /// IPv4 addresses of machines with peers that multicast does not reach.
    #[serde(default)]
    pub peers: Vec<Ipv4Addr>,
    /// Distribution of the peers, which decides the format in which they read the names of nodes.
    #[serde(default)]
    pub distribution: Distribution,
    /// Topics of ROS that become topics of the bus.
    #[serde(default)]
    pub subscriptions: Vec<SubscriptionSettings>,
    /// Topics of the bus that become topics of ROS.
    #[serde(default)]
    pub publications: Vec<PublicationSettings>,
    /// Longest message in bytes, 1 to 1073741824. Longer ones are dropped and counted.
    #[serde(default = "default_message_bytes")]
    #[schemars(range(min = 1, max = 1_073_741_824))]
    pub message_bytes_max: usize,
}

/// Distribution of ROS 2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// The distribution of the first node that is found; until then Iron.
    #[default]
    Auto,
    /// Humble or older.
    Humble,
    /// Iron, Jazzy or newer.
    Iron,
}

/// A topic of ROS that becomes a topic of the bus.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SubscriptionSettings {
    /// Topic of ROS with its namespace: `/lidar/points`.
    pub from: String,
    /// Topic of the bus: `lidar/points`.
    pub to: String,
    /// Type of the messages: `sensor_msgs/msg/PointCloud2`. Default: that of the first publisher. A publisher of another type is refused
    /// and counted.
    #[serde(default)]
    pub r#type: Option<String>,
    /// Quality of service in ROS. Default: reliable and transient local if all publishers are, keep the last 10.
    #[serde(default)]
    pub qos: Option<QosSettings>,
}

/// A topic of the bus that becomes a topic of ROS. Messages of other formats than that of ROS 2 are dropped and counted.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PublicationSettings {
    /// Topic of the bus: `lidar/points`.
    pub from: String,
    /// Topic of ROS with its namespace: `/lidar/points`.
    pub to: String,
    /// Type of the messages: `sensor_msgs/msg/PointCloud2`. Messages of other types are dropped and counted. Default: that of the latest
    /// message; before the first one, that of the first subscriber.
    #[serde(default)]
    pub r#type: Option<String>,
    /// Quality of service in ROS. Default: reliable, keep the last 10; transient local, a deadline and a lease if a subscriber requests
    /// them.
    #[serde(default)]
    pub qos: Option<QosSettings>,
    /// Messages of the bus that wait until they are sent, 1 to 10000. A new message replaces the oldest one if the queue is full.
    #[serde(default = "default_queue")]
    #[schemars(range(min = 1, max = 10_000))]
    pub queue: usize,
}

fn default_namespace() -> String {
    "/".to_owned()
}

const fn default_multicast() -> bool {
    true
}

const fn default_message_bytes() -> usize {
    64 << 20
}

const fn default_queue() -> usize {
    8
}

impl Ros2NodeSettings {
    pub(super) fn check(&self) -> Result<(), SettingError> {
        let wrong = |key: &str, problem: String| Err(SettingError::new(key, problem));
        if self.domain > DOMAIN_MAX {
            return wrong("domain", format!("{} is not within 0 to {DOMAIN_MAX}", self.domain));
        }
        if let Some(name) = &self.name {
            dds::check_node_name(name).map_err(|error| SettingError::new("name", error.to_string()))?;
        }
        dds::check_namespace(&self.namespace).map_err(|error| SettingError::new("namespace", error.to_string()))?;
        if let Some(problem) = self.interface.as_deref().and_then(interface_problem) {
            return wrong("interface", problem);
        }
        if self.peers.len() > PEERS_MAX {
            return wrong("peers", format!("at most {PEERS_MAX} peers are allowed"));
        }
        if self.subscriptions.is_empty() && self.publications.is_empty() {
            return wrong("subscriptions", "required: at least one topic in `subscriptions` or `publications`".into());
        }
        if self.subscriptions.len() > TOPICS_MAX || self.publications.len() > TOPICS_MAX {
            return wrong("subscriptions", format!("at most {TOPICS_MAX} subscriptions and publications are allowed"));
        }
        if !(1..=MESSAGE_BYTES_LIMIT).contains(&self.message_bytes_max) {
            let problem = format!("{} is not within 1 to {MESSAGE_BYTES_LIMIT}", self.message_bytes_max);
            return wrong("message_bytes_max", problem);
        }
        self.subscriptions.iter().enumerate().try_for_each(|(index, one)| one.check(index, self))?;
        self.publications.iter().enumerate().try_for_each(|(index, one)| one.check(index, self))
    }

    pub(super) fn check_machine(&self) -> Result<(), SettingError> {
        let Some(name) = self.interface.as_deref().filter(|name| name.parse::<Ipv4Addr>().is_err()) else {
            return Ok(());
        };
        if Path::new("/sys/class/net").join(name).exists() {
            return Ok(());
        }
        Err(SettingError::new("interface", format!("this machine has no network interface `{name}`")))
    }
}

fn interface_problem(interface: &str) -> Option<String> {
    let is_character = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte);
    let is_name = (1..=INTERFACE_BYTES_MAX).contains(&interface.len()) && interface.bytes().all(is_character);
    // `..` would leave the folder in which interfaces are looked up.
    let is_valid = is_name && !interface.starts_with('.');
    (!is_valid).then(|| format!("`{interface}` is neither the name of a network interface nor an IPv4 address"))
}

impl SubscriptionSettings {
    fn check(&self, index: usize, settings: &Ros2NodeSettings) -> Result<(), SettingError> {
        let path = format!("subscriptions.{index}");
        let wrong = |key: &str, problem: String| SettingError::new(format!("{path}.{key}"), problem);
        dds::check_topic(&self.from).map_err(|error| wrong("from", error.to_string()))?;
        topic::check_name(&self.to).map_err(|error| wrong("to", error.to_string()))?;
        check_type(self.r#type.as_deref()).map_err(|problem| wrong("type", problem))?;
        self.qos.as_ref().map(|qos| qos.resolve(&format!("{path}.qos"))).transpose()?;
        if settings.subscriptions.iter().take(index).any(|other| other.from == self.from) {
            return Err(wrong("from", format!("`{}` has a subscription already", self.from)));
        }
        Ok(())
    }
}

impl PublicationSettings {
    fn check(&self, index: usize, settings: &Ros2NodeSettings) -> Result<(), SettingError> {
        let path = format!("publications.{index}");
        let wrong = |key: &str, problem: String| SettingError::new(format!("{path}.{key}"), problem);
        dds::check_topic(&self.to).map_err(|error| wrong("to", error.to_string()))?;
        topic::check_name(&self.from).map_err(|error| wrong("from", error.to_string()))?;
        check_type(self.r#type.as_deref()).map_err(|problem| wrong("type", problem))?;
        self.qos.as_ref().map(|qos| qos.resolve(&format!("{path}.qos"))).transpose()?;
        if settings.publications.iter().take(index).any(|other| other.to == self.to) {
            return Err(wrong("to", format!("`{}` has a publication already", self.to)));
        }
        if settings.subscriptions.iter().any(|other| other.from == self.to) {
            return Err(wrong("to", format!("`{}` is subscribed too, so messages would go in a circle", self.to)));
        }
        if !(1..=QUEUE_LIMIT).contains(&self.queue) {
            return Err(wrong("queue", format!("{} is not within 1 to {QUEUE_LIMIT}", self.queue)));
        }
        Ok(())
    }
}

fn check_type(name: Option<&str>) -> Result<(), String> {
    match name {
        Some(name) if dds::dds_type(name).is_none() => {
            Err(format!("`{name}` is not a type of ROS 2, as `sensor_msgs/msg/PointCloud2` is"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(settings: serde_json::Value) -> Option<String> {
        let settings: Ros2NodeSettings = serde_json::from_value(settings).unwrap();
        settings.check().err().map(|error| error.to_string())
    }

    #[test]
    fn a_wrong_setting_is_refused_by_name() {
        let chatter = || serde_json::json!([{ "from": "/chatter", "to": "ros/chatter" }]);
        assert_eq!(problem(serde_json::json!({ "subscriptions": chatter() })), None);
        for (key, value, start) in [
            ("domain", serde_json::json!(233), "`domain`: 233 is not within 0 to 232"),
            ("name", serde_json::json!("/a"), "`name`: `/a` is not a name"),
            ("namespace", serde_json::json!("a"), "`namespace`: `a` does not begin with `/`"),
            ("interface", serde_json::json!("<lo>"), "`interface`: `<lo>` is neither"),
            ("interface", serde_json::json!(".."), "`interface`: `..` is neither"),
            ("message_bytes_max", serde_json::json!(0), "`message_bytes_max`: 0 is not within"),
        ] {
            let found = problem(serde_json::json!({ "subscriptions": chatter(), key: value })).unwrap();
            assert!(found.starts_with(start), "{found}");
        }
        for (topic, start) in [
            (serde_json::json!({ "from": "chatter", "to": "a" }), "`subscriptions.0.from`: `chatter` does not begin"),
            (
                serde_json::json!({ "from": "/a", "to": "a", "type": "String" }),
                "`subscriptions.0.type`: `String` is not",
            ),
            (serde_json::json!({ "from": "/a", "to": "a", "qos": { "depth": 0 } }), "`subscriptions.0.qos.depth`: 0"),
        ] {
            let found = problem(serde_json::json!({ "subscriptions": [topic] })).unwrap();
            assert!(found.starts_with(start), "{found}");
        }
        let circle =
            serde_json::json!({ "subscriptions": chatter(), "publications": [{ "from": "a", "to": "/chatter" }] });
        assert!(problem(circle).unwrap().contains("in a circle"));
        assert!(problem(serde_json::json!({})).unwrap().contains("at least one topic"));
    }
}
