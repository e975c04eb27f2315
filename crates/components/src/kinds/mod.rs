//! The kinds of components, one file or folder each, and their table.

pub mod fleet;
pub mod generator;
pub mod its_station;
pub mod mqtt_bridge;
pub mod mqtt_broker;
pub mod mqtt_probe;
pub mod sink;

use viaduct_node::Kind;

/// Every kind of this crate.
pub const KINDS: &[Kind] = &[
    Kind::of::<fleet::Fleet>("fleet", "Simulated vehicles that drive on a road network and send CAMs.", "vehicles: 2"),
    Kind::of::<generator::Generator>(
        "generator",
        "A stand-in for a lidar: publishes point clouds of a given size at a given rate.",
        "topic: lidar/points",
    ),
    Kind::of::<its_station::ItsStation>(
        "its_station",
        "An ETSI ITS station on Ethernet, UDP multicast or a capture: messages to the bus and back, services that make them.",
        "{ station_id: 1, access: { udp_multicast: {} } }",
    ),
    Kind::of::<mqtt_bridge::MqttBridge>(
        "mqtt_bridge",
        "Sends topics of the bus to an MQTT 5 broker, with QoS 1 without loss while it is away, and takes in what others publish.",
        "{ broker: \"mqtt://127.0.0.1:1883\", routes: [ { from: its/rx/* } ] }",
    ),
    Kind::of::<mqtt_broker::MqttBroker>(
        "mqtt_broker",
        "An MQTT broker (3.1.1 and 5) inside the node: topics of the bus are published in it, and what clients publish goes back.",
        "{ listen: \"127.0.0.1:0\" }",
    ),
    Kind::of::<mqtt_probe::MqttProbe>(
        "mqtt_probe",
        "Subscribes to an MQTT broker and measures when messages arrive.",
        "{ broker: \"mqtt://127.0.0.1:1883\" }",
    ),
    Kind::of::<sink::Sink>(
        "sink",
        "Reads topics of any type, counts, and may be busy with each sample: a stand-in for a consumer.",
        "topics: [ its/rx/* ]",
    ),
];
