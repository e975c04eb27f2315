//! The config files of the demo's nodes.

use super::Arguments;

/// Identifiers of the stations on the map, in the order of [`super::ROBOTS`].
pub(super) const STATION_IDS: [u32; 2] = [913, 914];
/// UDP ports minus the first one: the link of the CoAP robot, the gateway, and the CoAP server.
const COAP_LINK_OFFSET: u16 = 1;
const GATEWAY_OFFSET: u16 = 2;
const SERVER_OFFSET: u16 = 3;

/// Returns name and text of each file, in the order of their start: edge, link, and the robots.
pub(super) fn files(arguments: &Arguments) -> Vec<(String, String)> {
    vec![
        ("demo/edge.yaml".to_owned(), edge(arguments)),
        ("demo/link.yaml".to_owned(), link(arguments)),
        ("demo/robot-sn.yaml".to_owned(), robot_sn(arguments)),
        ("demo/robot-coap.yaml".to_owned(), robot_coap(arguments)),
    ]
}

fn edge(arguments: &Arguments) -> String {
    let Arguments { port, mqtt_port, udp_port, node_port, timers, .. } = arguments;
    let [sn, coap] = ["sn", "coap"].map(|name| station(name, arguments));
    format!(
        "node: edge\n\
         http: 127.0.0.1:{node_port}\n\
         components:\n\
         \x20 broker:\n\
         \x20   kind: mqtt_broker\n\
         \x20   settings:\n\
         \x20     listen: 127.0.0.1:{mqtt_port}\n\
         \x20     inbound:\n\
         \x20       - {{ from: robots/sn/pose, to: robots/sn/pose, type: vehicle_state }}\n\
         \x20       - {{ from: robots/sn/battery, to: robots/sn/battery, type: {{ protobuf: viaduct.robot.BatteryState }} }}\n\
         \x20       - {{ from: robots/sn/order, to: robots/sn/command, type: {{ protobuf: viaduct.robot.RobotCommand }} }}\n\
         \x20     routes: [ {{ from: robots/sn/command, to: robots/sn/command, qos: 1, retain: true }} ]\n\
         \x20 gateway:\n\
         \x20   kind: mqttsn_gateway\n\
         \x20   settings: {{ listen: \"127.0.0.1:{gateway}\", embedded_broker: \"127.0.0.1:{mqtt_port}\", timers: {timers} }}\n\
         \x20 server:\n\
         \x20   kind: coap_server\n\
         \x20   settings:\n\
         \x20     listen: 127.0.0.1:{server}\n\
         \x20     timers: {timers}\n\
         \x20     resources:\n\
         \x20       - {{ path: pose, from: robots/coap/pose, to: robots/coap/pose, encoding: protobuf, type: {{ protobuf: viaduct.vehicle.VehicleState }} }}\n\
         \x20       - {{ path: battery, from: robots/coap/battery, to: robots/coap/battery, encoding: protobuf, type: {{ protobuf: viaduct.robot.BatteryState }} }}\n\
         \x20       - {{ path: command, from: robots/coap/command, to: robots/coap/command, type: {{ protobuf: viaduct.robot.RobotCommand }} }}\n\
         {sn}{coap}\
         \x20 api:\n\
         \x20   kind: api\n\
         \x20   settings: {{ listen: \"127.0.0.1:{port}\", topics: [ its/tx/* ], map: town }}\n",
        gateway = udp_port + GATEWAY_OFFSET,
        server = udp_port + SERVER_OFFSET,
        timers = timers.name(),
    )
}

/// Returns the station that puts a robot on the map.
fn station(robot: &str, arguments: &Arguments) -> String {
    let id = if robot == "sn" { STATION_IDS[0] } else { STATION_IDS[1] };
    let group_port = arguments.group_port;
    format!(
        "\x20 station-{robot}:\n\
         \x20   kind: its_station\n\
         \x20   settings:\n\
         \x20     station_id: {id}\n\
         \x20     station_type: 10\n\
         \x20     access: {{ udp_multicast: {{ group: \"239.118.122.97:{group_port}\", interface: 127.0.0.1 }} }}\n\
         \x20     services: {{ vehicle: robots/{robot}/pose, ca: {{}} }}\n"
    )
}

fn link(arguments: &Arguments) -> String {
    let Arguments { udp_port, node_port, loss, rtt_ms, seed, .. } = arguments;
    let relay = |name: &str, listen: u16, to: u16, seed: u64| {
        format!(
            "\x20 {name}:\n\
             \x20   kind: link_emulator\n\
             \x20   settings:\n\
             \x20     listen: 127.0.0.1:{listen}\n\
             \x20     to: 127.0.0.1:{to}\n\
             \x20     links: {{ both: {{ loss: {{ independent: {share} }}, delay: {{ base_ms: {delay} }} }} }}\n\
             \x20     seed: {seed}\n",
            share = loss / 100.0,
            delay = rtt_ms / 2.0,
        )
    };
    format!(
        "node: link\nhttp: 127.0.0.1:{http}\ncomponents:\n{sn}{coap}",
        http = node_port + 1,
        sn = relay("sn", *udp_port, udp_port + GATEWAY_OFFSET, *seed),
        coap = relay("coap", udp_port + COAP_LINK_OFFSET, udp_port + SERVER_OFFSET, seed.wrapping_add(1)),
    )
}

fn robot_sn(arguments: &Arguments) -> String {
    let Arguments { udp_port, node_port, timers, .. } = arguments;
    format!(
        "node: robot-sn\n\
         http: 127.0.0.1:{http}\n\
         components:\n\
         {robot}\
         \x20 uplink:\n\
         \x20   kind: mqttsn_client\n\
         \x20   settings:\n\
         \x20     gateway: 127.0.0.1:{udp_port}\n\
         \x20     timers: {timers}\n\
         \x20     routes:\n\
         \x20       - {{ from: robot/pose, to: robots/sn/pose, qos: 1, queue: latest }}\n\
         \x20       - {{ from: robot/battery, to: robots/sn/battery, qos: 1, queue: latest }}\n\
         \x20     inbound:\n\
         \x20       - {{ from: robots/sn/command, to: robot/command, type: {{ protobuf: viaduct.robot.RobotCommand }}, qos: 1 }}\n",
        http = node_port + 2,
        robot = robot(60),
        timers = timers.name(),
    )
}

fn robot_coap(arguments: &Arguments) -> String {
    let Arguments { udp_port, node_port, timers, .. } = arguments;
    format!(
        "node: robot-coap\n\
         http: 127.0.0.1:{http}\n\
         components:\n\
         {robot}\
         \x20 uplink:\n\
         \x20   kind: coap_client\n\
         \x20   settings:\n\
         \x20     server: 127.0.0.1:{server}\n\
         \x20     timers: {timers}\n\
         \x20     routes:\n\
         \x20       - {{ from: robot/pose, to: pose, encoding: protobuf }}\n\
         \x20       - {{ from: robot/battery, to: battery, encoding: protobuf }}\n\
         \x20     observe:\n\
         \x20       - {{ from: command, to: robot/command, type: {{ protobuf: viaduct.robot.RobotCommand }} }}\n",
        http = node_port + 3,
        robot = robot(140),
        server = udp_port + COAP_LINK_OFFSET,
        timers = timers.name(),
    )
}

/// Returns the robot itself, whose course is around a place of a road.
fn robot(distance_m: u32) -> String {
    format!(
        "\x20 robot:\n\
         \x20   kind: robot\n\
         \x20   settings:\n\
         \x20     topic: robot/pose\n\
         \x20     battery: robot/battery\n\
         \x20     commands: robot/command\n\
         \x20     centre: {{ road: {{ road: 3, distance_m: {distance_m} }} }}\n"
    )
}
