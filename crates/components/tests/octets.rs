//! Plays the exchanges of docs/guides/constrained-robots.md, octet by octet, against the node of configs/edge-robots.yaml.
//!
//! In the columns of octets, `'text'` is the octets of a text, a name such as `m1` is an octet that the edge chooses, and `..` is the value
//! of an option, of any length.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "in a test a panic is the failure")]

#[path = "mqttsn/peers.rs"]
#[allow(dead_code, reason = "the client is not used here")]
mod peers;
#[path = "mqtt/support.rs"]
mod support;

use std::collections::HashMap;
use std::net::UdpSocket;
use std::time::Duration;

use peers::free_udp_port;
use support::{PATIENCE, TestNode, count, eventually, free_port};
use viaduct_bus::{Publisher, Qos, Recv};
use viaduct_messages::viaduct::robot::{Action, BatteryState, RobotCommand};

const GUIDE: &str = include_str!("../../../docs/guides/constrained-robots.md");
const CONFIG: &str = include_str!("../../../configs/edge-robots.yaml");

/// Returns the edge, and the ports of the gateway and of the CoAP server.
fn edge() -> (TestNode, u16, u16) {
    let (gateway, server) = (free_udp_port(), free_udp_port());
    let ports = [
        ("127.0.0.1:9500", free_port()),
        ("127.0.0.1:1896", free_port()),
        ("239.118.122.97:8955", free_udp_port()),
        ("127.0.0.1:1897", gateway),
        ("127.0.0.1:5683", server),
    ];
    let replace = |text: String, (address, port): (&str, u16)| {
        assert!(text.contains(address), "{address}");
        text.replace(address, &format!("{}:{port}", address.split(':').next().unwrap()))
    };
    // The kind `api` is in another crate.
    let (config, _) = CONFIG.split_once("  api:\n").unwrap();
    (TestNode::start(&ports.into_iter().fold(config.to_owned(), replace)), gateway, server)
}

/// Returns sender and octets of each row of the table below a heading.
fn rows(heading: &str) -> Vec<(&'static str, &'static str)> {
    let (_, section) = GUIDE.split_once(&format!("\n### {heading}\n")).expect(heading);
    let section = section.split("\n#").next().unwrap();
    let cells = section.lines().filter(|line| line.starts_with("| ")).map(|line| line.split(" | ").collect::<Vec<_>>());
    let cells = cells.filter(|cells| cells[0] != "| from");
    let rows: Vec<_> = cells.map(|cells| (&cells[0][2..], cells[2].trim_end_matches(" |").trim_matches('`'))).collect();
    assert!(rows.len() >= 8, "{rows:?}");
    rows
}

/// Splits octets into pieces: two characters or a text in quotes.
fn pieces(octets: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    for (index, part) in octets.split('\'').enumerate() {
        match index % 2 {
            0 => pieces.extend(part.split_whitespace().map(str::to_owned)),
            _ => pieces.extend(part.bytes().map(|octet| format!("{octet:02x}"))),
        }
    }
    pieces
}

/// Returns the octets, with those that the edge has chosen.
fn resolve(octets: &str, chosen: &HashMap<String, u8>) -> Vec<u8> {
    let octet = |piece: &String| u8::from_str_radix(piece, 16).unwrap_or_else(|_| chosen[piece]);
    pieces(octets).iter().map(octet).collect()
}

/// Takes the octets that the edge chooses from a datagram, and checks the others.
fn compare(expected: &str, datagram: &[u8], chosen: &mut HashMap<String, u8>) {
    let mut pieces = pieces(expected);
    if let Some(index) = pieces.iter().position(|piece| piece == "..") {
        let length = (datagram.len() + 1).saturating_sub(pieces.len());
        pieces.splice(index..=index, (0..length).map(|octet| format!("option {octet}")));
    }
    let shown = datagram.iter().map(|octet| format!("{octet:02x}")).collect::<Vec<_>>().join(" ");
    assert_eq!(pieces.len(), datagram.len(), "{expected} / {shown}");
    for (piece, octet) in pieces.iter().zip(datagram) {
        match u8::from_str_radix(piece, 16) {
            Ok(known) => assert_eq!(known, *octet, "{expected} / {shown}"),
            Err(_) => _ = chosen.insert(piece.clone(), *octet),
        }
    }
}

/// Plays the rows: `device` sends, `gateway` or `server` answers, and `edge` is a command.
fn play(heading: &str, port: u16, commands: &Publisher<RobotCommand>, commanded: impl Fn()) {
    let device = UdpSocket::bind("127.0.0.1:0").unwrap();
    device.connect(("127.0.0.1", port)).unwrap();
    device.set_read_timeout(Some(PATIENCE)).unwrap();
    let (mut chosen, mut datagram) = (HashMap::new(), [0; 512]);
    for (from, octets) in rows(heading) {
        match from {
            "device" => _ = device.send(&resolve(octets, &chosen)).unwrap(),
            "edge" => {
                let action = if octets.contains("stop") { Action::Stop } else { Action::Go };
                commands.publish(RobotCommand { action: action.into() }).unwrap();
                commanded();
            }
            _ => {
                let length = device.recv(&mut datagram).unwrap_or_else(|error| panic!("{octets}: {error}"));
                compare(octets, &datagram[..length], &mut chosen);
            }
        }
    }
}

fn charge(node: &TestNode, topic: &str) -> viaduct_bus::Subscriber<BatteryState> {
    node.bus().subscribe(topic, Qos::keep_last(4), "test").unwrap()
}

#[test]
fn the_exchange_of_mqttsn_in_the_guide_is_that_of_the_gateway() {
    let (node, gateway, _) = edge();
    let batteries = charge(&node, "robots/sn/battery");
    let commands = node.bus().publisher("robots/sn/command", Qos::reliable(4, Duration::ZERO), "test").unwrap();
    play("MQTT-SN", gateway, &commands, || {
        eventually("the command waits", || count(&node.bus(), "gateway", "buffered") == 1);
    });
    let Recv::Sample(battery) = batteries.recv_timeout(PATIENCE) else { panic!("no battery") };
    assert_eq!(battery.charge_percent, 57.0);
    assert!(node.stop());
}

#[test]
fn the_exchange_of_coap_in_the_guide_is_that_of_the_server() {
    let (node, _, server) = edge();
    let batteries = charge(&node, "robots/coap/battery");
    let commands = node.bus().publisher("robots/coap/command", Qos::reliable(4, Duration::ZERO), "test").unwrap();
    // A request after a command finds it.
    play("CoAP", server, &commands, || std::thread::sleep(Duration::from_millis(200)));
    let Recv::Sample(battery) = batteries.recv_timeout(PATIENCE) else { panic!("no battery") };
    assert_eq!(battery.charge_percent, 57.0);
    assert!(node.stop());
}
