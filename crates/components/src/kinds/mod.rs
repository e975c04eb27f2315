//! The kinds of components, one file or folder each, and their table.

pub mod camera;
pub mod coap_client;
pub mod coap_server;
pub mod detector;
pub mod fleet;
pub mod generator;
pub mod its_station;
pub mod key_figures;
pub mod link_emulator;
pub mod mqtt_bridge;
pub mod mqtt_broker;
pub mod mqtt_probe;
pub mod mqttsn_client;
pub mod mqttsn_forwarder;
pub mod mqttsn_gateway;
pub mod robot;
pub mod ros1_node;
pub mod ros2_node;
pub mod ros_converter;
pub mod sink;
pub mod teleop_desk;
pub mod teleop_vehicle;
pub mod vehicle_model;
pub mod velodyne;
pub mod velodyne_points;

use viaduct_node::Kind;

/// Every kind of this crate. A static, so that the code of the kinds is compiled in this crate only.
pub static KINDS: &[Kind] = &[
    Kind::of::<camera::Camera>(
        "camera",
        "A camera: publishes JPEG pictures of a road scene, of recorded files or of a device, and follows a budget of bytes.",
        "{ topic: camera/front, source: { synthetic: {} } }",
    ),
    Kind::of::<coap_client::CoapClient>(
        "coap_client",
        "Sends topics of the bus to the resources of a CoAP server, and observes its resources, which become topics.",
        "{ server: \"127.0.0.1:5683\", observe: [ { from: command, to: robot/command, type: { protobuf: viaduct.robot.RobotCommand } } ] }",
    ),
    Kind::of::<coap_server::CoapServer>(
        "coap_server",
        "Topics of the bus as CoAP resources: clients read, observe and write them.",
        "{ listen: \"127.0.0.1:0\", resources: [ { path: command, to: robot/command, type: { protobuf: viaduct.robot.RobotCommand } } ] }",
    ),
    Kind::of::<detector::Detector>(
        "detector",
        "Finds vehicles in the point clouds of a lidar with a neural network: boxes for the bus, ROS 1 or ROS 2.",
        "{ from: ros1/points, to: ros1/vehicles, format: ros1 }",
    ),
    Kind::of::<fleet::Fleet>("fleet", "Simulated vehicles that drive on a road network and send CAMs.", "vehicles: 2"),
    Kind::of::<generator::Generator>(
        "generator",
        "A simulated lidar: publishes point clouds of a given size at a given rate.",
        "topic: lidar/points",
    ),
    Kind::of::<its_station::ItsStation>(
        "its_station",
        "An ETSI ITS station on Ethernet, UDP multicast or a capture: exchanges V2X messages with the bus and generates its own.",
        "{ station_id: 1, access: { udp_multicast: {} } }",
    ),
    Kind::of::<key_figures::KeyFigures>(
        "key_figures",
        "Live key figures of messages that leave the node and come back: latency of each stage, clock offset and losses.",
        "topic: its/rx/cam",
    ),
    Kind::of::<link_emulator::LinkEmulator>(
        "link_emulator",
        "A relay for UDP or TCP between a client and a server that emulates a link: rate, delay, loss and outages.",
        "{ listen: \"127.0.0.1:0\", to: \"127.0.0.1:4650\" }",
    ),
    Kind::of::<mqtt_bridge::MqttBridge>(
        "mqtt_bridge",
        "Publishes topics of the bus on an MQTT 5 broker, with QoS 1 without loss during outages, and receives requests from it.",
        "{ broker: \"mqtt://127.0.0.1:1883\", routes: [ { from: its/rx/* } ] }",
    ),
    Kind::of::<mqtt_broker::MqttBroker>(
        "mqtt_broker",
        "An MQTT broker (3.1.1 and 5) inside the node: publishes topics of the bus, and passes requests of clients to the bus.",
        "{ listen: \"127.0.0.1:0\" }",
    ),
    Kind::of::<mqtt_probe::MqttProbe>(
        "mqtt_probe",
        "Subscribes to an MQTT broker and measures the latency of messages.",
        "{ broker: \"mqtt://127.0.0.1:1883\" }",
    ),
    Kind::of::<mqttsn_client::MqttsnClient>(
        "mqttsn_client",
        "A client of an MQTT-SN 1.2 gateway: publishes topics of the bus, and its subscriptions become topics of the bus.",
        "{ gateway: \"127.0.0.1:1884\", inbound: [ { from: robot/command, to: robot/command, type: { protobuf: viaduct.robot.RobotCommand } } ] }",
    ),
    Kind::of::<mqttsn_forwarder::MqttsnForwarder>(
        "mqttsn_forwarder",
        "Passes the messages of MQTT-SN nodes on to a gateway in another network.",
        "{ listen: \"127.0.0.1:0\", gateway: \"127.0.0.1:1884\" }",
    ),
    Kind::of::<mqttsn_gateway::MqttsnGateway>(
        "mqttsn_gateway",
        "A gateway between clients of MQTT-SN 1.2 and an MQTT broker, external or embedded.",
        "{ listen: \"127.0.0.1:0\", embedded_broker: \"127.0.0.1:1883\" }",
    ),
    Kind::of::<robot::Robot>(
        "robot",
        "A simulated delivery robot: publishes its position and its battery, and obeys commands to go, stop and charge.",
        "topic: robot/pose",
    ),
    Kind::of::<ros1_node::Ros1Node>(
        "ros1_node",
        "A node of ROS 1 without a ROS installation: topics of ROS become topics of the bus, and the reverse, with any type.",
        "subscriptions: [ { from: /points, to: ros/points } ]",
    ),
    Kind::of::<ros_converter::RosConverter>(
        "ros_converter",
        "Converts messages between ROS 1, ROS 2 and the bus: any type between ROS versions; clouds, images, positions and movement.",
        "routes: [ { from: ros1/points, to: lidar/points, format: bus } ]",
    ),
    Kind::of::<ros2_node::Ros2Node>(
        "ros2_node",
        "A node of ROS 2 without a ROS installation: topics of ROS become topics of the bus, and the reverse, with any type.",
        "subscriptions: [ { from: /points, to: ros/points } ]",
    ),
    Kind::of::<sink::Sink>(
        "sink",
        "A simulated consumer: reads topics of any type, counts samples, and optionally computes with each.",
        "topics: [ its/rx/* ]",
    ),
    Kind::of::<teleop_desk::TeleopDesk>(
        "teleop_desk",
        "The desk of a remote drive: receives pictures of a vehicle, and serves the page on which its driver sees and steers.",
        "{ listen: \"127.0.0.1:0\", http: \"127.0.0.1:0\", security: none, login: none }",
    ),
    Kind::of::<teleop_vehicle::TeleopVehicle>(
        "teleop_vehicle",
        "The vehicle's end of a remote drive: sends pictures to a desk and obeys its driver, under supervision.",
        "{ desk: \"127.0.0.1:4650\", security: none }",
    ),
    Kind::of::<vehicle_model::VehicleModel>(
        "vehicle_model",
        "A simulated vehicle that obeys drive commands: a kinematic bicycle with limits on steering, acceleration and jerk.",
        "topic: vehicle/state",
    ),
    Kind::of::<velodyne::Velodyne>(
        "velodyne",
        "A simulated VLP-32C on a street, or recorded frames: scans of packets as the ROS driver publishes them, or point clouds.",
        "{ topic: lidar/packets, format: ros1 }",
    ),
    Kind::of::<velodyne_points::VelodynePoints>(
        "velodyne_points",
        "Converts the packets of a VLP-32C to point clouds for the bus, ROS 1 or ROS 2.",
        "{ from: ros1/packets, to: ros1/points, format: ros1 }",
    ),
];
