//! Files of mqtt_bridge (groove-x/mqtt_bridge 0.2).

use super::client::{self, plain, push_map};
use super::plan::{Map, Plan, Ros, Setting, ToMqtt, ToRos};
use super::section::{Section, Warning};
use super::{NO_DEFINITION, check_mqtt_topic, global_name, is_common, text_type};

const PORT: u16 = 1883;
const KEEP_ALIVE_S: f64 = 60.0;
/// Messages that wait for a subscriber.
const QUEUE: usize = 10;

pub(super) fn plan(mut section: Section, warnings: &mut Vec<Warning>) -> Plan {
    let mut mqtt = section.section("mqtt");
    let private_path = mqtt.text("private_path", warnings).map(|found| found.value).unwrap_or_default();
    let client = connection(&mut mqtt, warnings);
    mqtt.finish(warnings);
    serializers(&mut section, warnings);
    let (mut to_mqtt, mut to_ros) = (Vec::new(), Vec::new());
    for mut one in section.sections("bridge", warnings) {
        let factory = one.text("factory", warnings).map(|found| found.value).unwrap_or_default();
        match factory.rsplit(':').next() {
            Some("RosToMqttBridge") => to_mqtt.extend(ros_to_mqtt(one, &private_path, warnings)),
            Some("MqttToRosBridge") => to_ros.extend(mqtt_to_ros(one, &private_path, warnings)),
            _ => warnings.push(one.warning(format!("the factory `{factory}` is not known; the topic is left out"))),
        }
    }
    section.finish(warnings);
    Plan { ros: Ros::One, node: "mqtt_bridge", client, to_mqtt, to_ros }
}

/// Warns if the payloads are not JSON.
fn serializers(section: &mut Section, warnings: &mut Vec<Warning>) {
    for (key, default) in [("serializer", "msgpack:dumps"), ("deserializer", "msgpack:loads")] {
        let found = section.text(key, warnings);
        let value = found.as_ref().map_or(default, |found| &found.value);
        if value.starts_with("json:") {
            continue;
        }
        let text = format!(
            "`{value}` is not supported: Viaduct writes and reads JSON. Set `{key}: json:{}` at the other end too",
            default.trim_start_matches("msgpack:")
        );
        warnings.push(match &found {
            Some(found) => found.warning(&text),
            None => Warning { key: key.to_owned(), ..section.warning(text) },
        });
    }
}

fn connection(mqtt: &mut Section, warnings: &mut Vec<Warning>) -> Map {
    let (mut client, mut connection) = (mqtt.section("client"), mqtt.section("connection"));
    let (has_tls, tls) = tls(mqtt, warnings);
    let host = connection.text("host", warnings).map_or_else(|| "localhost".to_owned(), |found| found.value);
    let port = connection.number("port", warnings).map_or(PORT, |found| found.value);
    let is_websocket = client.text("transport", warnings).is_some_and(|found| found.value == "websockets");
    let scheme = match (is_websocket, has_tls) {
        (false, false) => "mqtt",
        (false, true) => "mqtts",
        (true, false) => "ws",
        (true, true) => "wss",
    };
    let version = version(&mut client, warnings);
    let mut settings = vec![("broker", client::broker(&host, port, scheme)), ("version", Setting::Text(version))];
    push_map(&mut settings, "tls", tls);
    settings.extend(client::text("client_id", client.text("client_id", warnings)));
    if client.switch("clean_session", warnings).is_some_and(|found| !found.value) {
        settings.push(plain("session_expiry_s", &86_400));
    }
    let mut account = mqtt.section("account");
    client::credentials(&mut account, ["username", "password"], &mut settings, warnings);
    settings.push(client::keep_alive(&mut connection, "keepalive", KEEP_ALIVE_S, warnings));
    client::will(mqtt.section("will"), ["payload", "qos", "retain"], "", &mut settings, warnings);
    let mut message = mqtt.section("message");
    let mut outbox = Map::new();
    outbox.extend(client::messages(&mut message, "max_queued_messages", warnings));
    outbox.extend(client::in_flight(&mut message, "max_inflight_messages", warnings));
    push_map(&mut settings, "outbox", outbox);
    message.without("message_retry", "has no counterpart: a message is sent again on the next connection", warnings);
    mqtt.without("userdata", "has no effect on the bridge", warnings);
    for section in [client, connection, account, message] {
        section.finish(warnings);
    }
    settings
}

fn version(client: &mut Section, warnings: &mut Vec<Warning>) -> String {
    let Some(found) = client.number::<u8>("protocol", warnings) else { return "mqttv311".to_owned() };
    match found.value {
        5 => return "mqttv5".to_owned(),
        4 => {}
        _ => warnings.push(found.warning("`version` is mqttv311: MQTT 3.1 is not supported")),
    }
    "mqttv311".to_owned()
}

/// Takes the certificates. Returns `true` with them if the connection has TLS.
fn tls(mqtt: &mut Section, warnings: &mut Vec<Warning>) -> (bool, Map) {
    let has_tls = mqtt.has("tls");
    let mut section = mqtt.section("tls");
    let mut tls = Map::new();
    for (name, key) in [("ca_file", "ca_certs"), ("certificate_file", "certfile"), ("key_file", "keyfile")] {
        tls.extend(client::text(name, section.text(key, warnings)));
    }
    let checked = "has no counterpart: the certificate of the broker is always checked";
    if let Some(found) = section.switch("tls_insecure", warnings).filter(|found| found.value) {
        warnings.push(found.warning(checked));
    }
    section.without("cert_reqs", checked, warnings);
    section.without("tls_version", "is not needed: TLS 1.3 or 1.2 is negotiated", warnings);
    section.finish(warnings);
    (has_tls, tls)
}

/// Returns a topic with the private path in place of `~/`.
fn with_path(topic: &str, private_path: &str) -> String {
    topic.strip_prefix("~/").map_or_else(|| topic.to_owned(), |rest| format!("{private_path}/{rest}"))
}

fn ros_to_mqtt(mut one: Section, private_path: &str, warnings: &mut Vec<Warning>) -> Option<ToMqtt> {
    let (from, to) = topics(&mut one, warnings)?;
    one.text("msg_type", warnings);
    let mut route = vec![("encoding", Setting::Text("json".to_owned()))];
    let rate = one.number::<f64>("frequency", warnings);
    route.extend(rate.map(|found| plain("rate_hz", &found.value)));
    let (ros_topic, mqtt_topic) = (global_name(&one, &from, warnings), with_path(&to, private_path));
    let is_good = check_mqtt_topic(&one, &mqtt_topic, warnings);
    one.finish(warnings);
    is_good.then_some(ToMqtt { ros_topic, mqtt_topic, subscription: Map::new(), route })
}

fn mqtt_to_ros(mut one: Section, private_path: &str, warnings: &mut Vec<Warning>) -> Option<ToRos> {
    let (from, to) = topics(&mut one, warnings)?;
    let Some(kind) = one.text("msg_type", warnings) else {
        warnings.push(one.warning("needs `msg_type`; the topic is left out"));
        return None;
    };
    // `std_msgs.msg:String`.
    let name = kind.value.replace(".msg:", "/");
    warnings.extend((!is_common(Ros::One, &name)).then(|| kind.warning(NO_DEFINITION)));
    let route = vec![("encoding", Setting::Text("json".to_owned())), text_type(Ros::One, &name)];
    let queue = one.number::<usize>("queue_size", warnings).map_or(QUEUE, |found| found.value.max(1));
    let no_rate = "has no counterpart for messages from the broker: limit the rate where they are published";
    one.without("frequency", no_rate, warnings);
    let (mqtt_topic, ros_topic) = (with_path(&from, private_path), global_name(&one, &to, warnings));
    let is_good = check_mqtt_topic(&one, &mqtt_topic, warnings);
    one.finish(warnings);
    is_good.then_some(ToRos { mqtt_topic, ros_topic, publication: vec![plain("queue", &queue)], route })
}

fn topics(one: &mut Section, warnings: &mut Vec<Warning>) -> Option<(String, String)> {
    let topics = (one.text("topic_from", warnings), one.text("topic_to", warnings));
    if let (Some(from), Some(to)) = topics {
        return Some((from.value, to.value));
    }
    warnings.push(one.warning("needs `topic_from` and `topic_to`; the topic is left out"));
    None
}
