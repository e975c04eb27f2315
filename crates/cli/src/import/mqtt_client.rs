//! Files of mqtt_client: parameters of version 2.3.0 for ROS 1, and of version 2.5.0 for ROS 2.

use super::client::{self, plain, push_map};
use super::plan::{Map, Plan, Ros, Setting, ToMqtt, ToRos};
use super::section::{Found, Section, Warning};
use super::{NO_DEFINITION, check_mqtt_topic, global_name, is_common, text_type};

const PORT: u16 = 1883;
const KEEP_ALIVE_S: f64 = 60.0;
/// Time for which the broker keeps a session that is not clean: a day.
const SESSION_EXPIRY_S: u32 = 86_400;
/// The authorities of the system, which are the default.
const SYSTEM_AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";
const RELATIVE: &str = "is relative to ROS_HOME in mqtt_client, and to the working directory here";

pub(super) fn plan(ros: Ros, mut section: Section, warnings: &mut Vec<Warning>) -> Plan {
    let client = connection(&mut section, warnings);
    let mut bridge = section.section("bridge");
    let (to_mqtt, to_ros) = match ros {
        Ros::One => (bridge.sections("ros2mqtt", warnings), bridge.sections("mqtt2ros", warnings)),
        Ros::Two => (
            named(bridge.section("ros2mqtt"), "ros_topic", warnings),
            named(bridge.section("mqtt2ros"), "mqtt_topic", warnings),
        ),
    };
    bridge.finish(warnings);
    section.finish(warnings);
    let to_mqtt = to_mqtt.into_iter().filter_map(|one| ros_to_mqtt(ros, one, warnings)).collect();
    let to_ros = to_ros.into_iter().filter_map(|one| mqtt_to_ros(ros, one, warnings)).collect();
    Plan { ros, node: "mqtt_client", client, to_mqtt, to_ros }
}

/// Takes the sections of the topics that a list (`ros_topics`, `mqtt_topics`) names.
fn named(mut section: Section, key: &str, warnings: &mut Vec<Warning>) -> Vec<Section> {
    let names = section.texts(&format!("{key}s"), warnings);
    let sections = names.iter().map(|name| section.section(&name.value).with(key, name)).collect();
    section.finish(warnings);
    sections
}

fn connection(section: &mut Section, warnings: &mut Vec<Warning>) -> Map {
    let (mut broker, mut client) = (section.section("broker"), section.section("client"));
    let (mut broker_tls, client_tls) = (broker.section("tls"), client.section("tls"));
    let has_tls = broker_tls.switch("enabled", warnings).is_some_and(|found| found.value);
    let host = broker.text("host", warnings).map_or_else(|| "localhost".to_owned(), |found| found.value);
    let port = broker.number("port", warnings).map_or(PORT, |found| found.value);
    let scheme = if has_tls { "mqtts" } else { "mqtt" };
    // mqtt_client connects with MQTT 3.1.1.
    let mut settings =
        vec![("broker", client::broker(&host, port, scheme)), ("version", Setting::Text("mqttv311".to_owned()))];
    if has_tls {
        push_map(&mut settings, "tls", tls(broker_tls, client_tls, warnings));
    } else {
        unused(broker_tls, warnings);
        unused(client_tls, warnings);
    }
    let id = client.text("id", warnings);
    let has_id = id.is_some();
    settings.extend(client::text("client_id", id));
    client::credentials(&mut broker, ["user", "pass"], &mut settings, warnings);
    settings.push(client::keep_alive(&mut client, "keep_alive_interval", KEEP_ALIVE_S, warnings));
    if client.switch("clean_session", warnings).is_some_and(|found| !found.value) {
        settings.push(plain("session_expiry_s", &SESSION_EXPIRY_S));
    }
    client::will(client.section("last_will"), ["message", "qos", "retained"], "offline", &mut settings, warnings);
    let outbox = outbox(&mut client, has_id, warnings);
    push_map(&mut settings, "outbox", outbox);
    broker.finish(warnings);
    client.finish(warnings);
    settings
}

fn unused(section: Section, warnings: &mut Vec<Warning>) {
    let mut left = Vec::new();
    section.finish(&mut left);
    warnings.extend(
        left.into_iter().map(|warning| Warning { text: "is not used without `broker.tls.enabled`".into(), ..warning }),
    );
}

fn tls(mut broker: Section, mut client: Section, warnings: &mut Vec<Warning>) -> Map {
    let mut tls = Map::new();
    let authorities = broker.text("ca_certificate", warnings).filter(|found| found.value != SYSTEM_AUTHORITIES);
    let certificate = client.text("certificate", warnings);
    let key = client.text("key", warnings);
    for (name, file) in [("ca_file", authorities), ("certificate_file", certificate), ("key_file", key)] {
        let Some(file) = file else { continue };
        if !file.value.starts_with('/') {
            warnings.push(file.warning(RELATIVE));
        }
        tls.push((name, Setting::Text(file.value)));
    }
    client.without("password", "a key with a password is not supported: store the key without one", warnings);
    client.without("version", "is not needed: TLS 1.3 or 1.2 is negotiated", warnings);
    client.without(
        "alpn_protos",
        "has no counterpart: brokers that need a protocol name cannot be reached on that port",
        warnings,
    );
    for name in ["verify", "server_cert_auth"] {
        if let Some(found) = client.switch(name, warnings).filter(|found| !found.value) {
            warnings.push(found.warning("has no counterpart: the certificate of the broker is always checked"));
        }
    }
    broker.finish(warnings);
    client.finish(warnings);
    tls
}

fn outbox(client: &mut Section, has_id: bool, warnings: &mut Vec<Warning>) -> Map {
    let mut buffer = client.section("buffer");
    let mut outbox = Map::new();
    if has_id {
        let size = client::messages(&mut buffer, "size", warnings);
        let folder = buffer.text("directory", warnings);
        match (size.is_some(), folder) {
            (true, Some(folder)) => {
                if !folder.value.starts_with('/') {
                    warnings.push(folder.warning(RELATIVE));
                }
                outbox.push(("folder", Setting::Text(folder.value)));
            }
            (false, Some(folder)) => warnings.push(folder.warning("is not used with a `size` of 0")),
            (_, None) => {}
        }
        outbox.extend(size);
    }
    let mut left = Vec::new();
    buffer.finish(&mut left);
    let why = "is not read by mqtt_client, or not used without `client.id`";
    warnings.extend(left.into_iter().map(|warning| Warning { text: why.into(), ..warning }));
    outbox.extend(client::in_flight(client, "max_inflight", warnings));
    outbox
}

/// The settings of a topic for its payload.
struct Payload {
    is_primitive: bool,
    is_json: bool,
    ros_type: Option<Found<String>>,
}

impl Payload {
    fn take(section: &mut Section, warnings: &mut Vec<Warning>) -> Self {
        let mut switch = |key: &str| section.switch(key, warnings).is_some_and(|found| found.value);
        let (is_primitive, is_json) = (switch("primitive"), switch("json"));
        // As in mqtt_client, `primitive` has precedence.
        Self { is_primitive, is_json: is_json && !is_primitive, ros_type: section.text("ros_type", warnings) }
    }

    fn encoding(&self) -> Setting {
        let encoding = match (self.is_primitive, self.is_json) {
            (true, _) => "primitive",
            (_, true) => "json",
            _ => "mqtt_client",
        };
        Setting::Text(encoding.to_owned())
    }

    /// Returns the setting for the type of texts, which do not name it, or `None` if the texts cannot be read.
    fn text_type(&self, ros: Ros, section: &Section, warnings: &mut Vec<Warning>) -> Option<Map> {
        match (&self.ros_type, self.is_primitive, self.is_json) {
            (Some(name), true, _) => Some(vec![text_type(ros, &name.value)]),
            // As mqtt_client, which selects the type by the text.
            (None, true, _) => Some(vec![text_type(ros, "*")]),
            (Some(name), _, true) => {
                warnings.extend((!is_common(ros, &name.value)).then(|| name.warning(NO_DEFINITION)));
                Some(vec![text_type(ros, &name.value)])
            }
            (None, _, true) => {
                warnings.push(section.warning("needs `ros_type` with `json`; the topic is left out"));
                None
            }
            (_, false, false) => Some(Map::new()),
        }
    }
}

fn ros_to_mqtt(ros: Ros, mut one: Section, warnings: &mut Vec<Warning>) -> Option<ToMqtt> {
    let ros_topic = one.text("ros_topic", warnings);
    let mqtt_topic = one.text("mqtt_topic", warnings);
    let payload = Payload::take(&mut one, warnings);
    let stamp = one.switch("inject_timestamp", warnings).filter(|found| found.value);
    let mut advanced = one.section("advanced");
    let (mut in_ros, mut mqtt) = (advanced.section("ros"), advanced.section("mqtt"));
    let depth = in_ros.number::<usize>("queue_size", warnings);
    let mut subscription = Map::new();
    if ros == Ros::Two {
        subscription.extend(client::text("type", payload.ros_type.clone()));
        push_map(&mut subscription, "qos", ros_qos(&mut in_ros, depth.as_ref(), "auto", warnings));
    }
    let mut route = vec![("encoding", payload.encoding())];
    if let Some(depth) = depth.filter(|found| found.value > 0 && ros == Ros::One) {
        route.push(("queue", Setting::Map(vec![plain("keep", &depth.value)])));
    }
    match stamp {
        Some(found) if payload.is_primitive || payload.is_json => {
            warnings.push(found.warning("applies only to messages of ROS; a text has no time"));
        }
        Some(_) => route.push(plain("inject_timestamp", &true)),
        None => {}
    }
    route.extend(mqtt.number::<u8>("qos", warnings).map(|found| plain("qos", &found.value)));
    route.extend(mqtt.switch("retained", warnings).map(|found| plain("retain", &found.value)));
    let (Some(ros_topic), Some(mqtt_topic)) = (ros_topic, mqtt_topic) else {
        warnings.push(one.warning("needs `ros_topic` and `mqtt_topic`; the topic is left out"));
        return None;
    };
    let ros_topic = global_name(&one, &ros_topic.value, warnings);
    let is_good = check_mqtt_topic(&one, &mqtt_topic.value, warnings);
    for section in [in_ros, mqtt, advanced, one] {
        section.finish(warnings);
    }
    is_good.then_some(ToMqtt { ros_topic, mqtt_topic: mqtt_topic.value, subscription, route })
}

fn mqtt_to_ros(ros: Ros, mut one: Section, warnings: &mut Vec<Warning>) -> Option<ToRos> {
    let mqtt_topic = one.text("mqtt_topic", warnings);
    let ros_topic = one.text("ros_topic", warnings);
    let payload = Payload::take(&mut one, warnings);
    let mut advanced = one.section("advanced");
    let (mut in_ros, mut mqtt) = (advanced.section("ros"), advanced.section("mqtt"));
    let depth = in_ros.number::<usize>("queue_size", warnings);
    let mut publication = Map::new();
    if ros == Ros::Two {
        publication.extend(client::text("type", payload.ros_type.clone()));
        push_map(&mut publication, "qos", ros_qos(&mut in_ros, depth.as_ref(), "system_default", warnings));
        in_ros.without("latched", "has no effect in ROS 2: use `qos.durability: transient_local`", warnings);
    } else {
        publication.extend(depth.filter(|found| found.value > 0).map(|found| plain("queue", &found.value)));
        publication.extend(in_ros.switch("latched", warnings).map(|found| plain("latched", &found.value)));
    }
    let mut route = vec![("encoding", payload.encoding())];
    route.extend(payload.text_type(ros, &one, warnings)?);
    route.extend(mqtt.number::<u8>("qos", warnings).map(|found| plain("qos", &found.value)));
    let (Some(ros_topic), Some(mqtt_topic)) = (ros_topic, mqtt_topic) else {
        warnings.push(one.warning("needs `ros_topic` and `mqtt_topic`; the topic is left out"));
        return None;
    };
    let ros_topic = global_name(&one, &ros_topic.value, warnings);
    let is_good = check_mqtt_topic(&one, &mqtt_topic.value, warnings);
    for section in [in_ros, mqtt, advanced, one] {
        section.finish(warnings);
    }
    is_good.then_some(ToRos { mqtt_topic: mqtt_topic.value, ros_topic, publication, route })
}

/// Takes the quality of service of a topic of ROS 2. The value `default` is that of the settings without the key.
fn ros_qos(section: &mut Section, depth: Option<&Found<usize>>, default: &str, warnings: &mut Vec<Warning>) -> Map {
    let mut qos = Map::new();
    let mut inner = section.section("qos");
    for (key, values) in [("reliability", ["reliable", "best_effort"]), ("durability", ["volatile", "transient_local"])]
    {
        let Some(found) = inner.text(key, warnings) else { continue };
        if values.contains(&found.value.as_str()) {
            qos.push((key, Setting::Text(found.value)));
        } else if found.value != default && found.value != "system_default" {
            let text = format!("`{}` is not known; the default is used", found.value);
            warnings.push(found.warning(&text));
        }
    }
    qos.extend(depth.filter(|found| found.value > 0).map(|found| plain("depth", &found.value)));
    inner.finish(warnings);
    qos
}
