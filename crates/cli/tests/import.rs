//! `viaduct import`: files of mqtt_client and mqtt_bridge become node files that `viaduct check` accepts.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the failure")]

use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

/// Runs the binary in a folder with the file `params.yaml`.
struct Folder(TempDir);

impl Folder {
    fn new(params: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("params.yaml"), params).unwrap();
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn viaduct(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_viaduct")).args(arguments).current_dir(self.path()).output().unwrap()
    }

    /// Imports the file and checks the result. Returns the node file without its comment, and the warnings.
    fn import(&self) -> (String, Vec<String>) {
        let imported = self.viaduct(&["import", "params.yaml", "--output", "node.yaml"]);
        let warnings = text(&imported.stderr);
        assert_eq!(imported.status.code(), Some(0), "{warnings}");
        let checked = self.viaduct(&["check", "--offline", "node.yaml"]);
        assert_eq!(checked.status.code(), Some(0), "{}", text(&checked.stderr));
        let node = std::fs::read_to_string(self.path().join("node.yaml")).unwrap();
        let (comment, node) = node.split_once('\n').unwrap();
        assert!(comment.starts_with("# Made from params.yaml ("), "{comment}");
        (node.to_owned(), warnings.lines().map(str::to_owned).collect())
    }
}

fn text(octets: &[u8]) -> String {
    String::from_utf8(octets.to_vec()).unwrap()
}

const ROS1: &str = "\
broker:
  host: broker.example
  port: 8883
  user: car
  pass: secret
  tls: { enabled: true, ca_certificate: /etc/car/ca.pem }
client:
  id: car-7
  buffer: { size: 500, directory: buffer }
  last_will: { topic: car/7/state, qos: 1, retained: true }
  clean_session: false
  keep_alive_interval: 12.4
  max_inflight: 65535
  tls: { certificate: /etc/car/car.pem, key: /etc/car/car.key, password: secret2, version: 3, verify: false, alpn_protos: [mqtt] }
bridge:
  ros2mqtt:
    - ros_topic: /lidar/points
      mqtt_topic: car/7/points
      inject_timestamp: true
      advanced: { ros: { queue_size: 2 }, mqtt: { qos: 1, retained: true } }
    - { ros_topic: pose, mqtt_topic: car/7/pose, colour: red }
    - ros_topic: /lost
    - { ros_topic: /braces, mqtt_topic: 'car/{id}' }
  mqtt2ros:
    - mqtt_topic: car/7/goal
      ros_topic: /goal
      advanced: { mqtt: { qos: 2 }, ros: { queue_size: 3, latched: true } }
";

#[test]
fn a_file_of_mqtt_client_for_ros_1() {
    let (node, warnings) = Folder::new(ROS1).import();
    assert_eq!(
        node,
        r#"node: mqtt_client
components:
  ros:
    kind: ros1_node
    settings:
      subscriptions:
        - { from: /lidar/points, to: ros/lidar/points }
        - { from: /pose, to: ros/pose }
      publications:
        - { from: mqtt/car/7/goal, to: /goal, queue: 3, latched: true }
  mqtt:
    kind: mqtt_bridge
    settings:
      broker: "mqtts://broker.example:8883"
      version: mqttv311
      tls:
        ca_file: /etc/car/ca.pem
        certificate_file: /etc/car/car.pem
        key_file: /etc/car/car.key
      client_id: car-7
      username: car
      password_file: mqtt.password
      keep_alive_s: 12
      session_expiry_s: 86400
      will:
        topic: car/7/state
        payload: offline
        qos: 1
        retain: true
      outbox:
        folder: buffer
        messages_max: 500
        in_flight_max: 10000
      routes:
        - { from: ros/lidar/points, to: car/7/points, encoding: mqtt_client, queue: { keep: 2 }, inject_timestamp: true, qos: 1, retain: true }
        - { from: ros/pose, to: car/7/pose, encoding: mqtt_client }
      inbound:
        - { from: car/7/goal, to: mqtt/car/7/goal, encoding: mqtt_client, qos: 2 }
"#
    );
    let expected = [
        "params.yaml:5: broker.pass: is not copied: write it into the first line of the file `mqtt.password`",
        "params.yaml:9: client.buffer.directory: is relative to ROS_HOME in mqtt_client, and to the working directory here",
        "params.yaml:12: client.keep_alive_interval: `keep_alive_s` is 12: a whole number of seconds from 1 to 3600",
        "params.yaml:13: client.max_inflight: `in_flight_max` is 10000: 1 to 10000",
        "params.yaml:14: client.tls.password: a key with a password is not supported: store the key without one",
        "params.yaml:14: client.tls.version: is not needed: TLS 1.3 or 1.2 is negotiated",
        "params.yaml:14: client.tls.alpn_protos: has no counterpart: brokers that need a protocol name cannot be reached on that port",
        "params.yaml:14: client.tls.verify: has no counterpart: the certificate of the broker is always checked",
        "params.yaml:21: bridge.ros2mqtt.1: `pose` depends on the node's name or namespace; `/pose` is used, correct it if the topic is another one",
        "params.yaml:21: bridge.ros2mqtt.1.colour: has no counterpart",
        "params.yaml:22: bridge.ros2mqtt.2: needs `ros_topic` and `mqtt_topic`; the topic is left out",
        "params.yaml:23: bridge.ros2mqtt.3: `car/{id}` has braces, which are placeholders in a route; the topic is left out",
    ];
    assert_eq!(warnings, expected);
    assert!(!node.contains("secret") && !warnings.concat().contains("secret"));
}

#[test]
fn a_file_of_mqtt_client_for_ros_2() {
    let params = "\
/car:
  mqtt_client:
    ros__parameters:
      use_sim_time: true
      broker.host: ::1
      broker: { port: 1884, tls: { ca_certificate: /a.pem } }
      client: { id: '', buffer: { enabled: true }, tls: { verify: true } }
      bridge:
        ros2mqtt:
          ros_topics: [/points, /forgotten]
          /points:
            mqtt_topic: car/points
            ros_type: sensor_msgs/msg/PointCloud2
            advanced: { ros: { queue_size: 5, qos: { reliability: best_effort, durability: auto } } }
          /unlisted: { mqtt_topic: car/unlisted }
        mqtt2ros:
          mqtt_topics: [car/goal]
          car/goal:
            ros_topic: /goal
            advanced: { ros: { latched: true, qos: { reliability: reliable, durability: transient_local } } }
";
    let (node, warnings) = Folder::new(params).import();
    let warnings = format!("{}\n", warnings.join("\n"));
    for line in [
        "    kind: ros2_node\n",
        "- { from: /points, to: ros/points, type: sensor_msgs/msg/PointCloud2, qos: { reliability: best_effort, depth: 5 } }\n",
        "- { from: mqtt/car/goal, to: /goal, qos: { reliability: reliable, durability: transient_local } }\n",
        "      broker: \"mqtt://[::1]:1884\"\n",
        "- { from: ros/points, to: car/points, encoding: mqtt_client }\n",
        "- { from: car/goal, to: mqtt/car/goal, encoding: mqtt_client }\n",
    ] {
        assert!(node.contains(line), "{line}{node}");
    }
    let path = "/car.mqtt_client.ros__parameters";
    for line in [
        format!("params.yaml:4: {path}.use_sim_time: has no counterpart\n"),
        format!("params.yaml:6: {path}.broker.tls.ca_certificate: is not used without `broker.tls.enabled`\n"),
        format!(
            "params.yaml:7: {path}.client.buffer.enabled: is not read by mqtt_client, or not used without `client.id`\n"
        ),
        format!(
            "params.yaml:10: {path}.bridge.ros2mqtt./forgotten: needs `ros_topic` and `mqtt_topic`; the topic is left out\n"
        ),
        format!("params.yaml:15: {path}.bridge.ros2mqtt./unlisted.mqtt_topic: has no counterpart\n"),
        format!(
            "params.yaml:20: {path}.bridge.mqtt2ros.car/goal.advanced.ros.latched: has no effect in ROS 2: use `qos.durability: transient_local`\n"
        ),
    ] {
        assert!(warnings.contains(&line), "{line}{warnings}");
    }
}

#[test]
fn a_file_of_mqtt_bridge() {
    let params = "\
mqtt:
  client: { protocol: 5, client_id: car, transport: websockets }
  connection: { host: broker.example, port: 443, keepalive: 30, bind_address: 10.0.0.1 }
  tls: { ca_certs: /ca.pem, tls_insecure: true }
  account: { username: car, password: secret }
  message: { max_queued_messages: 7, max_inflight_messages: 3, message_retry: 5 }
  will: { topic: bye, payload: gone }
  userdata: { a: 1 }
  private_path: device/1
serializer: json:dumps
bridge:
  - { factory: 'mqtt_bridge.bridge:RosToMqttBridge', msg_type: 'std_msgs.msg:String', topic_from: /echo, topic_to: ~/echo, frequency: 2.5 }
  - { factory: 'my.bridge:Own', msg_type: 'std_msgs.msg:String', topic_from: /a, topic_to: b }
";
    let (node, warnings) = Folder::new(params).import();
    for line in [
        "      broker: \"wss://broker.example:443\"\n      version: mqttv5\n      tls:\n        ca_file: /ca.pem\n      client_id: car\n",
        "      keep_alive_s: 30\n      will:\n        topic: bye\n        payload: gone\n      outbox:\n        messages_max: 7\n        in_flight_max: 3\n",
        "- { from: ros/echo, to: device/1/echo, encoding: json, rate_hz: 2.5 }\n",
    ] {
        assert!(node.contains(line), "{line}{node}");
    }
    let starts = [
        "params.yaml:1: deserializer: `msgpack:loads` is not supported: Viaduct writes and reads JSON. Set `deserializer: json:loads`",
        "params.yaml:3: mqtt.connection.bind_address: has no counterpart",
        "params.yaml:4: mqtt.tls.tls_insecure: has no counterpart: the certificate of the broker is always checked",
        "params.yaml:5: mqtt.account.password: is not copied",
        "params.yaml:6: mqtt.message.message_retry: has no counterpart",
        "params.yaml:8: mqtt.userdata: has no effect",
        "params.yaml:13: bridge.1: the factory `my.bridge:Own` is not known; the topic is left out",
    ];
    assert_eq!(warnings.len(), starts.len(), "{warnings:#?}");
    for (warning, start) in warnings.iter().zip(starts) {
        assert!(warning.starts_with(start), "{warning}");
    }
}

#[test]
fn texts_have_the_type_of_the_file() {
    let (node, warnings) = Folder::new(
        "\
bridge:
  ros2mqtt:
    - { ros_topic: /speed, mqtt_topic: speed, primitive: true, inject_timestamp: true }
  mqtt2ros:
    - { mqtt_topic: limit, ros_topic: /limit, primitive: true }
",
    )
    .import();
    assert!(node.contains("- { from: ros/speed, to: speed, encoding: primitive }\n"), "{node}");
    assert!(node.contains("- { from: limit, to: mqtt/limit, encoding: primitive, type: { ros1: \"*\" } }\n"), "{node}");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].starts_with("params.yaml:3: bridge.ros2mqtt.0.inject_timestamp: applies only to messages"),
        "{warnings:?}"
    );

    let (node, warnings) = Folder::new(
        "\
/**/*:
  ros__parameters:
    bridge:
      ros2mqtt:
        ros_topics: [/a]
        /a: { mqtt_topic: a, json: true, ros_type: std_msgs/msg/Header }
      mqtt2ros:
        mqtt_topics: [a, c, d]
        a: { ros_topic: /b, json: true, ros_type: std_msgs/msg/Header }
        c: { ros_topic: /c, json: true }
        d: { ros_topic: /d, primitive: true, json: true, ros_type: std_msgs/msg/Bool }
",
    )
    .import();
    for line in [
        "- { from: ros/a, to: a, encoding: json }\n",
        "- { from: a, to: mqtt/a, encoding: json, type: { ros2: std_msgs/Header } }\n",
        "- { from: mqtt/a, to: /b, type: std_msgs/msg/Header }\n",
        "- { from: d, to: mqtt/d, encoding: primitive, type: { ros2: std_msgs/Bool } }\n",
    ] {
        assert!(node.contains(line), "{line}{node}");
    }
    assert!(!node.contains("mqtt/c"), "{node}");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("mqtt2ros.c: needs `ros_type` with `json`; the topic is left out"), "{warnings:?}");

    let (node, warnings) = Folder::new(
        "\
mqtt: { connection: { host: localhost } }
serializer: json:dumps
deserializer: json:loads
bridge:
  - { factory: 'mqtt_bridge.bridge:MqttToRosBridge', msg_type: 'std_msgs.msg:Bool', topic_from: ping, topic_to: /pong, frequency: 2 }
",
    )
    .import();
    assert!(
        node.contains("- { from: ping, to: mqtt/ping, encoding: json, type: { ros1: std_msgs/Bool } }\n"),
        "{node}"
    );
    assert!(node.contains("- { from: mqtt/ping, to: /pong, queue: 10 }\n"), "{node}");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].starts_with("params.yaml:5: bridge.0.frequency: has no counterpart for messages from the broker"),
        "{warnings:?}"
    );
}

#[test]
fn a_node_file_that_needs_changes_is_written_with_the_problem() {
    let folder = Folder::new(
        "bridge:\n  mqtt2ros:\n    - { mqtt_topic: b, ros_topic: /b, json: true, ros_type: my_msgs/Own }\n",
    );
    let imported = folder.viaduct(&["import", "params.yaml", "--output", "node.yaml"]);
    let problems = text(&imported.stderr);
    assert_eq!(imported.status.code(), Some(1), "{problems}");
    assert!(problems.contains("mqtt2ros.0.ros_type: is not a common type: set `definition_file`"), "{problems}");
    assert!(problems.contains("`my_msgs/Own` is not a common type: set `definition_file`"), "{problems}");
    assert!(problems.ends_with("the node file needs these changes before it can run\n"), "{problems}");
    std::fs::write(folder.path().join("Own.msg"), "float64 speed\n").unwrap();
    let node = std::fs::read_to_string(folder.path().join("node.yaml")).unwrap();
    let mended = node.replace("type: { ros1: my_msgs/Own }", "type: { ros1: my_msgs/Own }, definition_file: Own.msg");
    assert_ne!(node, mended);
    std::fs::write(folder.path().join("node.yaml"), mended).unwrap();
    let checked = folder.viaduct(&["check", "node.yaml"]);
    assert_eq!(checked.status.code(), Some(0), "{}", text(&checked.stderr));
}

#[test]
fn many_topics_need_several_connections() {
    let topics = |from: &str, to: &str, count: usize| -> String {
        (0..count).map(|index| format!("    - {{ {from}: /t{index}, {to}: /o{index} }}\n")).collect()
    };
    let (out, back) = (topics("ros_topic", "mqtt_topic", 3), topics("mqtt_topic", "ros_topic", 17));
    let (node, warnings) =
        Folder::new(&format!("client: {{ id: car }}\nbridge:\n  ros2mqtt:\n{out}  mqtt2ros:\n{back}")).import();
    assert!(node.contains("  mqtt_2:\n") && node.contains("client_id: car-2\n"), "{node}");
    assert!(warnings.iter().any(|warning| warning.contains("need 2 connections")), "{warnings:?}");
}

#[test]
fn other_files_are_refused() {
    for (params, expected) in [
        ("node: a\n", "params.yaml is neither a file of mqtt_client nor one of mqtt_bridge"),
        ("[1]\n", "params.yaml:1:1: expected a map of keys"),
        ("bridge: {}\n", "params.yaml has no topic that can be bridged"),
        ("bridge: 1\nbridge: 2\n", "params.yaml:2:1: bridge: "),
    ] {
        let imported = Folder::new(params).viaduct(&["import", "params.yaml"]);
        let problem = text(&imported.stderr);
        assert_eq!(imported.status.code(), Some(2), "{problem}");
        assert!(problem.contains(expected), "{problem}");
    }
    let folder = Folder::new(ROS1);
    std::fs::write(folder.path().join("node.yaml"), "mine").unwrap();
    let imported = folder.viaduct(&["import", "params.yaml", "--output", "node.yaml"]);
    assert_eq!(imported.status.code(), Some(1));
    assert_eq!(std::fs::read_to_string(folder.path().join("node.yaml")).unwrap(), "mine");
}
