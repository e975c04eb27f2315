//! A node file with a node of ROS and bridges to MQTT.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::section::Warning;

/// Maximum numbers of routes of an `mqtt_bridge`.
const ROUTES_MAX: usize = 64;
const INBOUND_MAX: usize = 16;
/// Longest name of a topic of the bus that is made from another name, in octets.
const TOPIC_OCTETS_MAX: usize = 200;

/// The ROS version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ros {
    One,
    Two,
}

/// A setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    Text(String),
    /// A number or a switch.
    Plain(String),
    Map(Map),
    List(Vec<Map>),
}

/// Settings in their order.
pub(super) type Map = Vec<(&'static str, Setting)>;

/// The nodes and routes of a file.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) ros: Ros,
    /// Name of the node.
    pub(super) node: &'static str,
    /// Settings of the connection to the broker.
    pub(super) client: Map,
    pub(super) to_mqtt: Vec<ToMqtt>,
    pub(super) to_ros: Vec<ToRos>,
}

/// A topic of ROS that is published on the broker.
#[derive(Debug)]
pub(super) struct ToMqtt {
    pub(super) ros_topic: String,
    pub(super) mqtt_topic: String,
    /// More settings of the subscription and of the route.
    pub(super) subscription: Map,
    pub(super) route: Map,
}

/// A topic of the broker that is published in ROS.
#[derive(Debug)]
pub(super) struct ToRos {
    pub(super) mqtt_topic: String,
    pub(super) ros_topic: String,
    /// More settings of the publication and of the route.
    pub(super) publication: Map,
    pub(super) route: Map,
}

impl Plan {
    /// Returns the text of the node file, and adds a warning if the routes need several connections.
    pub(super) fn write(&self, warnings: &mut Vec<Warning>) -> String {
        let mut names = Names::default();
        let subscriptions: Vec<Map> = self.subscriptions(&mut names);
        let publications: Vec<Map> = self.publications(&mut names);
        let (routes, inbound) = (self.routes(&mut names), self.inbound(&mut names));
        let mut ros = Map::new();
        for (key, list) in [("subscriptions", subscriptions), ("publications", publications)] {
            if !list.is_empty() {
                ros.push((key, Setting::List(list)));
            }
        }
        let kind = match self.ros {
            Ros::One => "ros1_node",
            Ros::Two => "ros2_node",
        };
        let mut out = format!("node: {}\ncomponents:\n", self.node);
        component(&mut out, "ros", kind, &ros);
        let mut parts = inbound.chunks(INBOUND_MAX);
        let mut connections = 0;
        let mut chunks = routes.chunks(ROUTES_MAX);
        loop {
            let (routes, inbound) = (chunks.next(), parts.next());
            if routes.is_none() && inbound.is_none() {
                break;
            }
            connections += 1;
            let name = if connections == 1 { "mqtt".to_owned() } else { format!("mqtt_{connections}") };
            component(&mut out, &name, "mqtt_bridge", &self.bridge(connections, routes, inbound));
        }
        if connections > 1 {
            let text = format!(
                "the routes need {connections} connections to the broker, with one client identifier each: a bridge has at most \
                 {ROUTES_MAX} routes and {INBOUND_MAX} inbound routes"
            );
            warnings.push(Warning { line: 1, key: String::new(), text });
        }
        out
    }

    fn subscriptions(&self, names: &mut Names) -> Vec<Map> {
        let mut subscriptions = BTreeMap::new();
        for one in &self.to_mqtt {
            let to = Setting::Text(names.of_ros(&one.ros_topic));
            let settings = [vec![("from", Setting::Text(one.ros_topic.clone())), ("to", to)], one.subscription.clone()];
            subscriptions.entry(&one.ros_topic).or_insert(settings.concat());
        }
        subscriptions.into_values().collect()
    }

    fn publications(&self, names: &mut Names) -> Vec<Map> {
        let publication = |one: &ToRos| {
            let from = Setting::Text(names.of_mqtt(&one.mqtt_topic));
            [vec![("from", from), ("to", Setting::Text(one.ros_topic.clone()))], one.publication.clone()].concat()
        };
        self.to_ros.iter().map(publication).collect()
    }

    fn routes(&self, names: &mut Names) -> Vec<Map> {
        let route = |one: &ToMqtt| {
            let from = Setting::Text(names.of_ros(&one.ros_topic));
            [vec![("from", from), ("to", Setting::Text(one.mqtt_topic.clone()))], one.route.clone()].concat()
        };
        self.to_mqtt.iter().map(route).collect()
    }

    fn inbound(&self, names: &mut Names) -> Vec<Map> {
        let mut routes = BTreeMap::new();
        for one in &self.to_ros {
            let to = Setting::Text(names.of_mqtt(&one.mqtt_topic));
            let settings = [vec![("from", Setting::Text(one.mqtt_topic.clone())), ("to", to)], one.route.clone()];
            routes.entry(&one.mqtt_topic).or_insert(settings.concat());
        }
        routes.into_values().collect()
    }

    fn bridge(&self, connection: usize, routes: Option<&[Map]>, inbound: Option<&[Map]>) -> Map {
        let mut settings = self.client.clone();
        for (key, setting) in &mut settings {
            if let ("client_id", Setting::Text(text), 2..) = (*key, setting, connection) {
                let _ = write!(text, "-{connection}");
            }
        }
        for (key, list) in [("routes", routes), ("inbound", inbound)] {
            if let Some(list) = list {
                settings.push((key, Setting::List(list.to_vec())));
            }
        }
        settings
    }
}

/// Names of the topics of the bus.
#[derive(Default)]
struct Names {
    /// Name of the bus by the name of the other side, with its prefix.
    known: BTreeMap<String, String>,
}

impl Names {
    fn of_ros(&mut self, topic: &str) -> String {
        self.name("ros", topic)
    }

    fn of_mqtt(&mut self, topic: &str) -> String {
        self.name("mqtt", topic)
    }

    /// Returns a name that no other topic has.
    fn name(&mut self, prefix: &str, topic: &str) -> String {
        let key = format!("{prefix} {topic}");
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let is_good = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-' | '.');
        let level = |level: &str| -> String {
            level.chars().map(|character| if is_good(character) { character } else { '_' }).collect()
        };
        let levels: Vec<String> = topic.split('/').filter(|level| !level.is_empty()).map(level).collect();
        let mut plain = format!("{prefix}/{}", levels.join("/"));
        plain.truncate(TOPIC_OCTETS_MAX);
        let plain = plain.trim_end_matches('/');
        let mut name = plain.to_owned();
        let mut count = 1;
        while self.known.values().any(|other| *other == name) {
            count += 1;
            name = format!("{plain}_{count}");
        }
        self.known.insert(key, name.clone());
        name
    }
}

// Writing into a String cannot fail.
fn component(out: &mut String, name: &str, kind: &str, settings: &Map) {
    let _ = writeln!(out, "  {name}:\n    kind: {kind}\n    settings:");
    map(out, 6, settings);
}

fn map(out: &mut String, indent: usize, settings: &Map) {
    for (key, setting) in settings {
        let _ = write!(out, "{:indent$}{key}:", "");
        match setting {
            Setting::Map(inner) => {
                out.push('\n');
                map(out, indent + 2, inner);
            }
            Setting::List(list) => {
                out.push('\n');
                for one in list {
                    let _ = writeln!(out, "{:indent$}  - {}", "", flow(one));
                }
            }
            scalar => {
                let _ = writeln!(out, " {}", value(scalar));
            }
        }
    }
}

fn flow(settings: &Map) -> String {
    let settings: Vec<String> = settings.iter().map(|(key, setting)| format!("{key}: {}", value(setting))).collect();
    format!("{{ {} }}", settings.join(", "))
}

fn value(setting: &Setting) -> String {
    match setting {
        Setting::Plain(text) => text.clone(),
        Setting::Text(text) => quoted(text),
        Setting::Map(inner) => flow(inner),
        Setting::List(list) => format!("[ {} ]", list.iter().map(flow).collect::<Vec<_>>().join(", ")),
    }
}

/// Returns a text as YAML, with quotes if it could be something else without them.
fn quoted(text: &str) -> String {
    let text = text.replace("${", "$${");
    let is_plain = |octet: u8| octet.is_ascii_alphanumeric() || matches!(octet, b'_' | b'/' | b'.' | b'-');
    let is_word =
        text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/') && text.bytes().all(is_plain);
    let is_switch =
        ["true", "false", "yes", "no", "on", "off", "null", "y", "n"].contains(&text.to_lowercase().as_str());
    // A JSON text is a YAML text.
    if is_word && !is_switch { text } else { serde_json::Value::from(text).to_string() }
}
