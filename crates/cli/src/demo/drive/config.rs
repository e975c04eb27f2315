//! The config files of the nodes: vehicle, emulated link, driver's desk.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use viaduct_netem::Profile;

use super::Arguments;

/// Names of the cameras, the most important one first: views of the scene and places on the page.
pub(super) const CAMERAS: [&str; 4] = ["front", "left", "right", "rear"];

/// UDP ports after the first one.
const DESK_PORT_OFFSET: u16 = 1;
/// Bits per second with which a vehicle starts on an LTE link.
const LTE_BITS_PER_SECOND: u64 = 500_000;

/// Files that the config names, and the protection of the datagrams.
pub(super) struct Surroundings {
    /// The people who may log in.
    pub(super) people: PathBuf,
    /// The map.
    pub(super) map: PathBuf,
    /// Setting `security` of the desk.
    pub(super) desk_security: String,
    /// Setting `security` of the vehicle.
    pub(super) vehicle_security: String,
}

impl Surroundings {
    /// Returns files in the given folder, and datagrams without protection.
    pub(super) fn new(folder: &Path) -> Self {
        Self {
            people: folder.join(super::PEOPLE),
            map: folder.join(super::MAP),
            desk_security: "none".to_owned(),
            vehicle_security: "none".to_owned(),
        }
    }

    /// Protects the datagrams by the private keys in two files. `peer` is the public key of the other end.
    pub(super) fn protect(&mut self, desk_key: &Path, vehicle_key: &Path, desk: &str, vehicle: &str) {
        let keys = |file: &Path, name: &str, peer: &str| {
            let file = quoted(file);
            format!("{{ keys: {{ private_key: {file}, peers: [ {{ name: {name}, public_key: \"{peer}\" }} ] }} }}")
        };
        self.desk_security = keys(desk_key, "vehicle", vehicle);
        self.vehicle_security = keys(vehicle_key, "desk", desk);
    }
}

/// Returns name and text of each file, in the order of their start: a datagram finds its receiver ready.
pub(super) fn files(arguments: &Arguments, surroundings: &Surroundings) -> Vec<(String, String)> {
    vec![
        ("demo/desk.yaml".to_owned(), desk(arguments, surroundings)),
        ("demo/link.yaml".to_owned(), link(arguments)),
        ("demo/vehicle.yaml".to_owned(), vehicle(arguments, surroundings)),
    ]
}

/// Returns the text as YAML. JSON strings are YAML strings.
fn quoted(path: &Path) -> String {
    serde_json::Value::from(path.display().to_string()).to_string()
}

fn desk(arguments: &Arguments, surroundings: &Surroundings) -> String {
    let Surroundings { people, map, desk_security, .. } = surroundings;
    let Arguments { port, udp_port, node_port, cameras, .. } = arguments;
    let mut text = format!(
        "node: desk\n\
         http: 127.0.0.1:{node_port}\n\
         components:\n\
         \x20 desk:\n\
         \x20   kind: teleop_desk\n\
         \x20   settings:\n\
         \x20     listen: 127.0.0.1:{listen}\n\
         \x20     security: {desk_security}\n\
         \x20     http: 127.0.0.1:{port}\n\
         \x20     login: {{ tokens: {tokens} }}\n\
         \x20     map: {map}\n\
         \x20     cameras:\n",
        listen = udp_port + DESK_PORT_OFFSET,
        tokens = quoted(people),
        map = quoted(map),
    );
    for name in &CAMERAS[..usize::from(*cameras)] {
        // Writing into a String cannot fail.
        let _ = writeln!(text, "        - {{ name: {name}, place: {name} }}");
    }
    text
}

fn link(arguments: &Arguments) -> String {
    let Arguments { udp_port, node_port, profile, seed, .. } = arguments;
    format!(
        "node: link\n\
         http: 127.0.0.1:{http}\n\
         components:\n\
         \x20 link:\n\
         \x20   kind: link_emulator\n\
         \x20   settings: {{ listen: \"127.0.0.1:{udp_port}\", to: \"127.0.0.1:{to}\", profile: \"{profile}\", seed: {seed} }}\n",
        http = node_port + 1,
        to = udp_port + DESK_PORT_OFFSET,
        profile = profile.name(),
    )
}

fn vehicle(arguments: &Arguments, Surroundings { vehicle_security, .. }: &Surroundings) -> String {
    let Arguments { udp_port, node_port, cameras, rate, profile, .. } = arguments;
    let cameras = &CAMERAS[..usize::from(*cameras)];
    let mut text = format!(
        "node: vehicle\n\
         http: 127.0.0.1:{http}\n\
         components:\n\
         \x20 model:\n\
         \x20   kind: vehicle_model\n\
         \x20   settings: {{ topic: vehicle/state, commands: vehicle/drive, start: {{ road: {{ road: 3, distance_m: 30 }} }} }}\n",
        http = node_port + 2,
    );
    for (index, name) in cameras.iter().enumerate() {
        let _ = write!(
            text,
            "\x20 {name}:\n\
             \x20   kind: camera\n\
             \x20   settings:\n\
             \x20     topic: camera/{name}\n\
             \x20     index: {index}\n\
             \x20     rate_hz: {rate}\n\
             \x20     budget: camera/{name}/budget\n\
             \x20     source: {{ synthetic: {{ view: {name}, state: vehicle/state }} }}\n",
        );
    }
    let _ = write!(
        text,
        "\x20 drive:\n\
         \x20   kind: teleop_vehicle\n\
         \x20   settings:\n\
         \x20     desk: 127.0.0.1:{udp_port}\n\
         \x20     security: {vehicle_security}\n\
         \x20     vehicle: vehicle/state\n",
    );
    if *profile == Profile::LteDriving {
        let _ = writeln!(text, "      pacing: {{ initial_bits_per_second: {LTE_BITS_PER_SECOND} }}");
    }
    let _ = writeln!(text, "      cameras:");
    for name in cameras {
        let period_ms = 1e3 / rate;
        let _ = writeln!(
            text,
            "        - {{ topic: camera/{name}, budget: camera/{name}/budget, period_ms: {period_ms:.3} }}"
        );
    }
    text
}
