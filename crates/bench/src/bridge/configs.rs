//! The configurations of the bridges: Viaduct's nodes as YAML, the parameters of the rivals as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};
use viaduct_components::link::End;

use super::case::{Method, Setup};
use super::daemon::{Broker, Master};
use super::domain::Domain;

/// Topics from the vehicle to the cloud, with the types of mqtt_bridge.
const THERE: [(&str, &str); 2] = [("scan", "velodyne_msgs.msg:VelodyneScan"), ("cloud", "sensor_msgs.msg:PointCloud2")];
/// Topics of the answers.
const BACK: [(&str, &str); 3] = [
    ("list", "std_msgs.msg:String"),
    ("scan_back", "velodyne_msgs.msg:VelodyneScan"),
    ("cloud_back", "sensor_msgs.msg:PointCloud2"),
];
/// Topic of the clouds of the method without ROS.
pub(super) const BUS_TOPIC: &str = "lidar/points";

/// Returns the name of an end, which is the first level of its topics in ROS.
pub(super) const fn name(end: End) -> &'static str {
    match end {
        End::A => "vehicle",
        End::B => "cloud",
    }
}

/// Returns the name of a component, which identifies it in the hops of a message.
fn component(end: End, part: &str) -> String {
    format!("{}_{part}", if end == End::A { "v" } else { "c" })
}

/// Topics with the types of mqtt_bridge.
type Topics = &'static [(&'static str, &'static str)];

/// Returns the topics that an end sends, and those that it receives.
const fn topics(end: End) -> (Topics, Topics) {
    match end {
        End::A => (&THERE, &BACK),
        End::B => (&BACK, &THERE),
    }
}

/// The ROS master or the domain in which the nodes of ROS find each other.
#[derive(Clone, Copy)]
pub(super) enum Ros<'a> {
    Master(&'a Master),
    Domain(&'a Domain),
}

/// Returns the config of a node between ROS and the broker.
pub(super) fn ros_node(end: End, setup: &Setup, ros: Ros<'_>, broker: &Broker) -> String {
    let (sent, received) = topics(end);
    let own = name(end);
    let mut text = format!("node: {own}\ncomponents:\n");
    let subscriptions = sent.iter().map(|(topic, _)| (format!("/{own}/{topic}"), format!("ros/{topic}")));
    let publications = received.iter().map(|(topic, _)| (format!("ros/{topic}"), format!("/{own}/{topic}")));
    write_ros(&mut text, end, ros, subscriptions, publications);
    let routes = sent.iter().map(|(topic, _)| (format!("ros/{topic}"), format!("bench/{topic}")));
    let inbound = received.iter().map(|(topic, _)| (format!("bench/{topic}"), format!("ros/{topic}")));
    write_one_way(&mut text, (end, "up"), setup, broker, ("routes", routes));
    write_one_way(&mut text, (end, "down"), setup, broker, ("inbound", inbound));
    text
}

/// Returns the config of a node between the two ends in ROS, without a broker.
pub(super) fn in_vehicle_node(master: &Master) -> String {
    let mut text = "node: vehicle\ncomponents:\n".to_owned();
    let ways = || {
        THERE
            .iter()
            .map(|topic| (topic, "vehicle", "cloud"))
            .chain(BACK.iter().map(|topic| (topic, "cloud", "vehicle")))
    };
    let subscriptions = ways().map(|((topic, _), from, _)| (format!("/{from}/{topic}"), format!("ros/{topic}")));
    let publications = ways().map(|((topic, _), _, to)| (format!("ros/{topic}"), format!("/{to}/{topic}")));
    write_ros(&mut text, End::A, Ros::Master(master), subscriptions, publications);
    text
}

/// Returns the config of a node without ROS. The vehicle's node generates clouds.
pub(super) fn bus_node(end: End, setup: &Setup, broker: &Broker, octets: usize, rate_hz: u32) -> String {
    let mut text = format!("node: {}\ncomponents:\n", name(end));
    let route = || std::iter::once((BUS_TOPIC.to_owned(), format!("bench/{BUS_TOPIC}")));
    if end == End::A {
        // A point of the generator has 16 octets.
        let octets = octets.next_multiple_of(16);
        let _ = writeln!(
            text,
            "  lidar: {{ kind: generator, settings: {{ topic: {BUS_TOPIC}, octets: {octets}, rate_hz: {rate_hz} }} }}"
        );
        write_one_way(&mut text, (end, "up"), setup, broker, ("routes", route()));
    } else {
        write_one_way(&mut text, (end, "down"), setup, broker, ("inbound", route().map(|(from, to)| (to, from))));
    }
    text
}

fn write_ros(
    text: &mut String,
    end: End,
    ros: Ros<'_>,
    subscriptions: impl Iterator<Item = (String, String)>,
    publications: impl Iterator<Item = (String, String)>,
) {
    let name = component(end, "ros");
    let (kind, settings) = match ros {
        Ros::Master(master) => ("ros1_node", format!("master: {}", master.address())),
        Ros::Domain(domain) => ("ros2_node", domain.settings()),
    };
    let _ = write!(text, "  {name}:\n    kind: {kind}\n    settings:\n      {settings}\n");
    write_pairs(text, "subscriptions", subscriptions, "");
    write_pairs(text, "publications", publications, "");
}

/// Writes a bridge with the routes of one direction.
fn write_one_way(
    text: &mut String,
    (end, part): (End, &str),
    setup: &Setup,
    broker: &Broker,
    (key, routes): (&str, impl Iterator<Item = (String, String)>),
) {
    write_bridge(text, &component(end, part), broker);
    let compression = if key == "routes" { setup.compression.settings() } else { "" };
    let more = format!(", encoding: native, qos: {}{compression}", setup.qos);
    write_pairs(text, key, routes, &more);
}

/// Writes a bridge without routes.
pub(super) fn write_bridge(text: &mut String, name: &str, broker: &Broker) {
    let scheme = if broker.certificates.is_some() { "mqtts" } else { "mqtt" };
    let Broker { host, port, certificates, .. } = broker;
    let address = format!("{scheme}://{host}:{port}");
    let _ = write!(text, "  {name}:\n    kind: mqtt_bridge\n    settings:\n      broker: \"{address}\"\n");
    if let Some(certificates) = certificates {
        let own = certificates
            .client()
            .map(|(certificate, key)| format!(", certificate_file: {certificate:?}, key_file: {key:?}"));
        let (authority, own) = (certificates.authority(), own.unwrap_or_default());
        let _ = writeln!(text, "      tls: {{ ca_file: {authority:?}{own} }}");
    }
}

/// Writes a list of `{ from, to }`, if it has entries.
pub(super) fn write_pairs(text: &mut String, key: &str, pairs: impl Iterator<Item = (String, String)>, more: &str) {
    let entries: Vec<String> =
        pairs.map(|(from, to)| format!("        - {{ from: \"{from}\", to: \"{to}\"{more} }}\n")).collect();
    if !entries.is_empty() {
        let _ = write!(text, "      {key}:\n{}", entries.concat());
    }
}

/// Returns the parameters of a rival, with the keys of its YAML file.
pub(super) fn rival(end: End, setup: &Setup, broker: &Broker) -> Value {
    match setup.method {
        Method::MqttBridge => mqtt_bridge(end, broker),
        _ => mqtt_client(end, setup, broker),
    }
}

fn mqtt_client(end: End, setup: &Setup, broker: &Broker) -> Value {
    let (sent, received) = topics(end);
    let entry = |(topic, _): &(&str, &str)| {
        json!({
            "ros_topic": format!("/{}/{topic}", name(end)), "mqtt_topic": format!("bench/{topic}"),
            "advanced": { "mqtt": { "qos": setup.qos } },
        })
    };
    let mut params = json!({
        "broker": { "host": broker.host, "port": broker.port },
        "bridge": {
            "ros2mqtt": sent.iter().map(entry).collect::<Vec<_>>(),
            "mqtt2ros": received.iter().map(entry).collect::<Vec<_>>(),
        },
    });
    if let Some(certificates) = &broker.certificates {
        params["broker"]["tls"] = json!({ "enabled": true, "ca_certificate": certificates.authority() });
        if let Some((certificate, key)) = certificates.client() {
            params["client"] = json!({ "tls": { "certificate": certificate, "key": key } });
        }
    }
    params
}

fn mqtt_bridge(end: End, broker: &Broker) -> Value {
    let (sent, received) = topics(end);
    let ros = |topic: &str| format!("/{}/{topic}", name(end));
    let mqtt = |topic: &str| format!("bench/{topic}");
    let out = |(topic, kind): &(&str, &str)| json!({ "factory": "mqtt_bridge.bridge:RosToMqttBridge", "msg_type": kind, "topic_from": ros(topic), "topic_to": mqtt(topic) });
    let back = |(topic, kind): &(&str, &str)| json!({ "factory": "mqtt_bridge.bridge:MqttToRosBridge", "msg_type": kind, "topic_from": mqtt(topic), "topic_to": ros(topic) });
    let mut params = json!({
        "mqtt": { "client": { "protocol": 4 }, "connection": { "host": broker.host, "port": broker.port, "keepalive": 60 } },
        "bridge": sent.iter().map(out).chain(received.iter().map(back)).collect::<Vec<_>>(),
    });
    if let Some(certificates) = &broker.certificates {
        params["mqtt"]["tls"] = json!({ "ca_certs": certificates.authority() });
        if let Some((certificate, key)) = certificates.client() {
            params["mqtt"]["tls"]["certfile"] = json!(certificate);
            params["mqtt"]["tls"]["keyfile"] = json!(key);
        }
    }
    params
}
