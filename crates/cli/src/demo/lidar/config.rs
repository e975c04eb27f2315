//! The config files of the demo's nodes.

use super::Arguments;

/// Port of the broker minus that of the link.
pub(super) const BROKER_PORT_OFFSET: u16 = 1;
/// Identifier of the vehicle's station, which the page selects: it then draws the objects that the vehicle perceives.
pub(super) const STATION_ID: u32 = 912;

/// Returns name and text of each file, in the order of their start: cloud, link, vehicle.
pub(super) fn files(arguments: &Arguments) -> Vec<(String, String)> {
    vec![
        ("demo/cloud.yaml".to_owned(), cloud(arguments)),
        ("demo/link.yaml".to_owned(), link(arguments)),
        ("demo/vehicle.yaml".to_owned(), vehicle(arguments)),
    ]
}

/// What crosses the link: the packets of the sensor, or its points.
struct Upstream {
    /// Topic on the bus of vehicle and cloud.
    topic: &'static str,
    /// Setting `output` of the sensor.
    output: &'static str,
    /// Component of the cloud that makes points of packets.
    converter: &'static str,
}

impl Upstream {
    const fn new(sends_points: bool) -> Self {
        if sends_points {
            Self { topic: "lidar/points", output: "cloud", converter: "" }
        } else {
            let converter = "\x20 points:\n\
                          \x20   kind: velodyne_points\n\
                          \x20   settings: { from: lidar/packets, to: lidar/points, format: ros1 }\n";
            Self { topic: "lidar/packets", output: "scan", converter }
        }
    }
}

fn cloud(arguments: &Arguments) -> String {
    let Arguments { mqtt_port, node_port, points, .. } = arguments;
    let Upstream { topic, converter, .. } = Upstream::new(*points);
    format!(
        "node: cloud\n\
         http: 127.0.0.1:{node_port}\n\
         components:\n\
         \x20 broker:\n\
         \x20   kind: mqtt_broker\n\
         \x20   settings: {{ listen: \"127.0.0.1:{broker}\" }}\n\
         \x20 bridge:\n\
         \x20   kind: mqtt_bridge\n\
         \x20   settings:\n\
         \x20     broker: mqtt://127.0.0.1:{broker}\n\
         \x20     inbound:\n\
         \x20       - {{ from: vehicle/{topic}, to: {topic}, encoding: native }}\n\
         \x20       - {{ from: vehicle/state, to: vehicle/state, encoding: native }}\n\
         \x20     routes:\n\
         \x20       - {{ from: lidar/objects, to: vehicle/lidar/objects, encoding: native, queue: latest }}\n\
         {converter}\
         \x20 detector:\n\
         \x20   kind: detector\n\
         \x20   settings: {{ from: lidar/points, to: lidar/objects, vehicle: vehicle/state }}\n",
        broker = mqtt_port + BROKER_PORT_OFFSET,
    )
}

fn link(arguments: &Arguments) -> String {
    let Arguments { mqtt_port, node_port, profile, seed, .. } = arguments;
    format!(
        "node: link\n\
         http: 127.0.0.1:{http}\n\
         components:\n\
         \x20 link:\n\
         \x20   kind: link_emulator\n\
         \x20   settings: {{ listen: \"127.0.0.1:{mqtt_port}\", to: \"127.0.0.1:{to}\", protocol: tcp, links: {{ profile: \"{profile}\" }}, seed: {seed} }}\n",
        http = node_port + 1,
        to = mqtt_port + BROKER_PORT_OFFSET,
        profile = profile.name(),
    )
}

fn vehicle(arguments: &Arguments) -> String {
    let Arguments { port, mqtt_port, node_port, group_port, rate, seed, points, compression, .. } = arguments;
    let Upstream { topic, output, .. } = Upstream::new(*points);
    format!(
        "node: vehicle\n\
         http: 127.0.0.1:{http}\n\
         components:\n\
         \x20 velodyne:\n\
         \x20   kind: velodyne\n\
         \x20   settings: {{ topic: {topic}, output: {output}, format: ros1, rate_hz: {rate}, seed: {seed}, drives: false }}\n\
         \x20 model:\n\
         \x20   kind: vehicle_model\n\
         \x20   settings: {{ topic: vehicle/state, rate_hz: 10, qos: {{ preset: default }}, start: {{ road: {{ road: 3, distance_m: 60 }} }} }}\n\
         \x20 uplink:\n\
         \x20   kind: mqtt_bridge\n\
         \x20   settings:\n\
         \x20     broker: mqtt://127.0.0.1:{mqtt_port}\n\
         \x20     routes:\n\
         \x20       - {{ from: {topic}, to: vehicle/{topic}, encoding: native, queue: latest, compression: {compression} }}\n\
         \x20       - {{ from: vehicle/state, to: vehicle/state, encoding: native, queue: latest }}\n\
         \x20     inbound:\n\
         \x20       - {{ from: vehicle/lidar/objects, to: lidar/objects, encoding: native }}\n\
         \x20 figures:\n\
         \x20   kind: key_figures\n\
         \x20   settings: {{ topic: lidar/objects, source: {topic} }}\n\
         \x20 station:\n\
         \x20   kind: its_station\n\
         \x20   settings:\n\
         \x20     station_id: {STATION_ID}\n\
         \x20     station_type: 5\n\
         \x20     access: {{ udp_multicast: {{ group: \"239.118.122.97:{group_port}\", interface: 127.0.0.1 }} }}\n\
         \x20     services: {{ vehicle: vehicle/state, objects: lidar/objects, ca: {{}}, cp: {{}} }}\n\
         \x20 api:\n\
         \x20   kind: api\n\
         \x20   settings: {{ listen: \"127.0.0.1:{port}\", map: town, figures: [ figures/window ] }}\n",
        http = node_port + 2,
        compression = compression.name(),
    )
}
