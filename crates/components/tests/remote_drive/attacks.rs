//! Datagrams of attackers, and datagrams that the link repeats, delays or reorders.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use viaduct_components::net::secure::{PrivateKey, SystemRandom};
use viaduct_netem::LinkSettings;
use viaduct_netem::link::{Delay, Jitter, Order};
use viaduct_units::Rng;

use super::drive::{ADA, Drive, Security, eventually};
use super::page::Input;
use super::relay::Direction::{ToDesk, ToVehicle};

/// First octet of commands on the wire.
const COMMANDS: u8 = 0x16;
/// Growth of the memory of the process that a flood may cause: much less than its datagrams.
const GROWTH_MAX: u64 = 64 << 20;

/// Keys of both ends in files.
struct Keys {
    folder: tempfile::TempDir,
    vehicle: PrivateKey,
    desk: PrivateKey,
}

impl Keys {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str| {
            let key = PrivateKey::generate(&mut SystemRandom::default()).unwrap();
            key.write_new(&folder.path().join(name)).unwrap();
            key
        };
        let (vehicle, desk) = (write("vehicle.key"), write("desk.key"));
        Self { folder, vehicle, desk }
    }

    /// Returns the settings of an end, which has the key of the given name.
    fn of(&self, own: &str, peer: &PrivateKey, more: &str) -> String {
        let path = self.folder.path().join(own);
        format!(
            "{{ keys: {{ private_key: {path:?}, peers: [ {{ name: other, public_key: \"{}\" }} ]{more} }} }}",
            peer.public_key()
        )
    }

    fn security(&self) -> Security {
        Security { vehicle: self.of("vehicle.key", &self.desk, ""), desk: self.of("desk.key", &self.vehicle, "") }
    }
}

fn link(base_ms: u64, jitter_ms: u64) -> LinkSettings {
    let jitter = Jitter::Uniform(Duration::from_millis(jitter_ms));
    let delay = Delay { base: Duration::from_millis(base_ms), jitter, order: Order::Free, ..Delay::default() };
    LinkSettings { delay, ..LinkSettings::default() }
}

/// Returns a socket of an attacker.
fn attacker() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").unwrap()
}

#[test]
fn commands_that_are_repeated_late_or_from_elsewhere_are_refused_by_reason() {
    let drive = Drive::start(&Security::none());
    let page = drive.page(ADA);
    page.take_control();
    page.drive(Input::AHEAD);
    drive.wait_for_speed("driving", |speed| speed > 1.0);
    let commands = || -> Vec<Bytes> {
        drive.relay.recorded(ToVehicle).into_iter().filter(|datagram| datagram[0] == COMMANDS).collect()
    };
    let refused = |reason: &'static str| drive.at_vehicle("commands_refused", Some(reason));

    // Each command arrives twice.
    for datagram in commands().iter().take(20) {
        drive.relay.inject(ToVehicle, datagram.clone());
    }
    eventually("commands of earlier", || refused("reordered") + refused("replayed"), |count| count >= 20);
    assert_eq!(page.state()["driving"]["state"], "driving");

    // The same from another address.
    let spoofed = attacker();
    for datagram in commands().iter().take(20) {
        spoofed.send_to(datagram, drive.relay.vehicle()).unwrap();
        spoofed.send_to(datagram, drive.datagrams).unwrap();
    }
    eventually("datagrams of others", || drive.at_vehicle("datagrams_dropped", Some("address")), |count| count >= 20);
    eventually("datagrams of others", || drive.at_desk("datagrams_dropped", Some("address")), |count| count >= 20);

    // Commands overtake each other.
    let before = refused("reordered");
    drive.relay.set(ToVehicle, link(40, 40));
    eventually("overtaken commands", || refused("reordered"), |count| count > before + 5);
    assert!(drive.speed() > 0.0);

    // All commands are older than they may be.
    drive.relay.set(ToVehicle, link(600, 0));
    eventually("old commands", || refused("stale"), |count| count > 5);
    drive.wait_for_speed("a stop", |speed| speed == 0.0);

    // Commands of an ended grant.
    drive.relay.set(ToVehicle, link(0, 0));
    page.wait("the end of the grant", |state| state["driving"]["holder"].is_null());
    page.let_go();
    for datagram in commands().iter().take(20) {
        drive.relay.inject(ToVehicle, datagram.clone());
    }
    eventually("commands without a grant", || refused("grant"), |count| count >= 20);
    assert_eq!(drive.speed(), 0.0);
    drive.stop();
}

#[test]
fn with_keys_forged_and_repeated_datagrams_are_refused_by_reason() {
    let keys = Keys::new();
    let drive = Drive::start(&keys.security());
    let page = drive.page(ADA);
    page.take_control();
    page.drive(Input::AHEAD);
    drive.wait_for_speed("driving", |speed| speed > 1.0);
    assert!(page.frames(1, 2).iter().all(|frame| frame.picture.starts_with(&[0xff, 0xd8])));
    assert_eq!((drive.at_vehicle("sessions", None), drive.at_desk("sessions", None)), (1, 1));
    assert_eq!(drive.at_vehicle("datagrams_dropped", None), 0);
    let dropped = |reason: &'static str| drive.at_vehicle("datagrams_dropped", Some(reason));

    // Everything that the desk has sent, again, on its path and from elsewhere.
    let recorded = drive.relay.recorded(ToVehicle);
    let data: Vec<Bytes> = recorded.iter().filter(|datagram| datagram[0] == 5).cloned().collect();
    assert!(data.len() > 100, "{}", data.len());
    let spoofed = attacker();
    for datagram in &data[..100] {
        drive.relay.inject(ToVehicle, datagram.clone());
        spoofed.send_to(datagram, drive.relay.vehicle()).unwrap();
    }
    eventually("replayed datagrams", || dropped("replayed") + dropped("too_old"), |count| count >= 200);

    // One bit of each is changed. No plain command is accepted.
    let mut rng = Rng::new(7);
    for datagram in &data[..100] {
        let mut forged = datagram.to_vec();
        // The counter is ahead of all, so that the datagram is not taken for a repetition.
        forged[9] ^= 0x01;
        let octet = 13 + (rng.next_u64() as usize) % (forged.len() - 13);
        forged[octet] ^= 1 << (rng.next_u64() % 8);
        drive.relay.inject(ToVehicle, forged.into());
    }
    eventually("forged datagrams", || dropped("not_authentic"), |count| count >= 100);
    drive.relay.inject(ToVehicle, Bytes::from(vec![COMMANDS; 60]));
    eventually("plain commands", || dropped("unknown_type"), |count| count >= 1);

    // Authentic datagrams that overtake each other are opened; the commands in them are refused.
    let refused = |reason: &'static str| drive.at_vehicle("commands_refused", Some(reason));
    drive.relay.set(ToVehicle, link(40, 40));
    eventually("overtaken commands", || refused("reordered"), |count| count > 5);
    assert_eq!(page.state()["driving"]["holder"]["you"], true);
    drive.relay.set(ToVehicle, link(600, 0));
    eventually("old commands", || refused("stale"), |count| count > 5);
    drive.wait_for_speed("a stop", |speed| speed == 0.0);
    drive.relay.set(ToVehicle, link(0, 0));
    page.take_control();
    drive.wait_for_speed("driving again", |speed| speed > 1.0);
    assert_eq!(drive.at_vehicle("address_changes", None), 0, "no copy has moved the session");
    drive.stop();
}

#[test]
fn a_flood_does_not_stop_the_driver_and_uses_no_memory() {
    let keys = Keys::new();
    let drive = Drive::start(&keys.security());
    let page = drive.page(ADA);
    page.take_control();
    page.drive(Input::AHEAD);
    drive.wait_for_speed("driving", |speed| speed > 1.0);
    let (to_vehicle, to_desk) = (drive.relay.recorded(ToVehicle), drive.relay.recorded(ToDesk));
    drive.events();
    let frames = page.frames(0, 1).len();
    let before = resident_octets();

    let is_over = AtomicBool::new(false);
    let (vehicle, desk) = (drive.relay.vehicle(), drive.datagrams);
    std::thread::scope(|scope| {
        scope.spawn(|| flood(vehicle, &to_vehicle, &is_over));
        scope.spawn(|| flood(desk, &to_desk, &is_over));
        // The driver has pictures, and the vehicle commands, throughout the flood.
        page.frames(0, frames + 15);
        eventually("a flood at the vehicle", || drive.at_vehicle("datagrams_dropped", None), |count| count > 20_000);
        eventually("a flood at the desk", || drive.at_desk("datagrams_dropped", None), |count| count > 20_000);
        let accepted = drive.at_vehicle("commands_accepted", None);
        eventually("commands", || drive.at_vehicle("commands_accepted", None), |count| count > accepted + 50);
        is_over.store(true, Ordering::Relaxed);
    });
    let state = page.state();
    assert_eq!(state["driving"]["holder"]["you"], true, "{:?}", drive.events());
    assert!(drive.speed() > 0.0);
    assert_eq!((drive.at_vehicle("sessions", None), drive.at_vehicle("address_changes", None)), (1, 0));
    for reason in ["replayed", "not_authentic", "no_session", "unknown_type", "wrong_length"] {
        let count =
            drive.at_vehicle("datagrams_dropped", Some(reason)) + drive.at_desk("datagrams_dropped", Some(reason));
        assert!(count > 0, "{reason}");
    }
    let grown = resident_octets().saturating_sub(before);
    assert!(grown < GROWTH_MAX, "the memory has grown by {grown} bytes");
    drive.stop();
}

/// Sends random datagrams, and copies and forgeries of recorded ones, from changing addresses, at 20 000 per second.
fn flood(to: SocketAddr, recorded: &[Bytes], is_over: &AtomicBool) {
    let mut rng = Rng::new(11);
    while !is_over.load(Ordering::Relaxed) {
        let socket = attacker();
        for number in 0..200 {
            let mut datagram = recorded[(rng.next_u64() as usize) % recorded.len()].to_vec();
            match number % 4 {
                0 => {}
                1 => {
                    let last = datagram.len() - 1;
                    datagram[last] ^= 0xff;
                    datagram[9.min(last)] ^= 0x01;
                }
                2 => datagram.truncate((rng.next_u64() as usize) % datagram.len()),
                _ => datagram.iter_mut().for_each(|octet| *octet = rng.next_u64() as u8),
            }
            if number % 8 == 3 {
                // Data of a session that does not exist.
                datagram[0] = 5;
            }
            // The receive buffer may be full.
            let _ = socket.send_to(&datagram, to);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns the memory of the process (proc(5), `/proc/self/statm`).
fn resident_octets() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[test]
fn an_end_with_another_key_gets_no_session() {
    let keys = Keys::new();
    let other = PrivateKey::generate(&mut SystemRandom::default()).unwrap();
    // The desk expects another vehicle.
    let security = Security { desk: keys.of("desk.key", &other, ""), ..keys.security() };
    let drive = Drive::start(&security);
    let page = drive.lonely_page(ADA);
    eventually("an unknown key", || drive.at_desk("datagrams_dropped", Some("unknown_key")), |count| count >= 2);
    assert_eq!((drive.at_desk("sessions", None), drive.at_vehicle("sessions", None)), (0, 0));
    assert!(drive.at_vehicle("datagrams_unsent", Some("no_session")) > 0);
    assert_eq!(page.state()["link"]["connected"], false);
    drive.stop();
}

#[test]
fn a_desk_with_the_role_of_an_observer_cannot_drive() {
    let keys = Keys::new();
    let roles = keys.folder.path().join("roles");
    std::fs::write(&roles, "other observer\n").unwrap();
    let vehicle = keys.of("vehicle.key", &keys.desk, &format!(", roles: {roles:?}"));
    let drive = Drive::start(&Security { vehicle, ..keys.security() });
    let page = drive.page(ADA);
    page.frames(0, 3);
    page.drive(Input::AHEAD);
    for _ in 0..20 {
        page.send(serde_json::json!({ "type": "request_control" }));
        page.pass(5);
    }
    assert!(page.errors().iter().any(|code| code == "moving"), "{:?}", page.errors());
    assert!(page.state()["driving"]["holder"].is_null());
    assert_eq!((drive.speed(), drive.at_vehicle("commands_accepted", None)), (0.0, 0));
    drive.stop();
}
