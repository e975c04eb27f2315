//! Attacks on the embedded broker: each client is refused and counted, and other clients are served.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "in a test a panic is the failure")]

#[path = "mqtt/certificates.rs"]
mod certificates;
#[path = "mqtt/support.rs"]
mod support;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use support::{Subscriber, TestNode, eventually, free_port, has};
use viaduct_bus::Bus;

/// CONNECT of MQTT 5 and what follows it, without a library that forbids mistakes.
struct Raw(TcpStream);

impl Raw {
    fn open(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Self(stream)
    }

    /// Connects, and returns the client with the reason code of CONNACK. The session lasts for an hour.
    fn connect(port: u16, client_id: &str, user: Option<(&str, &str)>) -> (Self, u8) {
        let text = |text: &str| [&u16::try_from(text.len()).unwrap().to_be_bytes(), text.as_bytes()].concat();
        let flags = if user.is_some() { 0xC0 } else { 0 };
        let expiry = [0x11, 0, 0, 0x0E, 0x10];
        let mut body = [&text("MQTT")[..], &[5, flags, 0, 0], &[5], &expiry, &text(client_id)].concat();
        if let Some((name, password)) = user {
            body.extend([text(name), text(password)].concat());
        }
        let mut raw = Self::open(port);
        raw.0.write_all(&[&[0x10, u8::try_from(body.len()).unwrap()], &body[..]].concat()).unwrap();
        let mut answer = [0; 4];
        raw.0.read_exact(&mut answer).unwrap();
        assert_eq!(answer[0], 0x20, "CONNACK");
        (raw, answer[3])
    }

    /// Waits until the broker closes the connection.
    fn wait_for_close(&mut self) {
        let mut octets = [0; 4096];
        // A reset, too, is an end.
        while self.0.read(&mut octets).is_ok_and(|count| count > 0) {}
    }
}

/// Starts a broker.
fn broker(settings: &str) -> (TestNode, u16) {
    let port = free_port();
    let node = TestNode::start(&format!(
        "node: edge\ncomponents:\n  feed: {{ kind: feed }}\n  broker:\n    kind: mqtt_broker\n    settings:\n      \
         listen: 127.0.0.1:{port}\n      {settings}\n      routes: [ {{ from: log/n, to: v, qos: 1 }} ]\n"
    ));
    (node, port)
}

fn of(bus: &Bus, name: &str, reason: &str) -> u64 {
    let snapshot = bus.snapshot();
    let is_it =
        |counter: &&viaduct_bus::CounterSnapshot| counter.name == name && counter.reason.as_deref() == Some(reason);
    snapshot.counters.iter().find(is_it).map_or(0, |counter| counter.value)
}

/// Asserts that another client is served.
fn check_service(node: &TestNode, port: u16) {
    let subscriber = Subscriber::start(port, "v");
    node.log("log/n", "hello");
    assert_eq!(subscriber.wait_for(1).len(), 1);
}

#[test]
fn a_client_that_announces_a_long_first_packet_is_disconnected_before_it_is_received() {
    let web = free_port();
    let (node, port) = broker(&format!("web_socket: {{ listen: 127.0.0.1:{web} }}"));
    for first in [&[0x10, 0x80, 0x80, 0x80, 0x08][..], &[0x30, 0x05], b"GET / HTTP/1.1\r\n"] {
        let mut raw = Raw::open(port);
        raw.0.write_all(first).unwrap();
        raw.wait_for_close();
    }
    let mut raw = Raw::open(web);
    let upgrade = "GET /mqtt HTTP/1.1\r\nHost: it\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Protocol: mqtt\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    raw.0.write_all(upgrade.as_bytes()).unwrap();
    // A binary frame of 16 MB, masked with zeros.
    raw.0.write_all(&[0x82, 0xFF, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0x10]).unwrap();
    let mut sent = 0;
    while sent < 16 << 20 && raw.0.write_all(&[0; 16 << 10]).is_ok() {
        sent += 16 << 10;
    }
    assert!(sent < 8 << 20, "{sent} octets are read before the login");
    check_service(&node, port);
    assert!(node.stop());
}

#[test]
fn sessions_of_absent_clients_are_limited_and_the_known_ones_come_back() {
    let (node, port) = broker("limits: { sessions_max: 8 }");
    let codes: Vec<u8> = (0..20).map(|number| Raw::connect(port, &format!("absent-{number}"), None).1).collect();
    assert!(codes[..8].iter().all(|code| *code == 0) && codes[8..].iter().all(|code| *code == 0x97), "{codes:x?}");
    assert_eq!(Raw::connect(port, "absent-0", None).1, 0);
    assert_eq!(of(&node.bus(), "clients_refused", "sessions_max"), 12);
    // A client that leaves no session behind is served.
    check_service(&node, port);
    assert!(node.stop());
}

#[test]
fn a_slow_handshake_delays_nobody() {
    if !has("openssl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    certificates::write(folder.path());
    let at = |name: &str| folder.path().join(name).display().to_string();
    let [tls, web] = [free_port(), free_port()];
    let (node, port) = broker(&format!(
        "tls: {{ listen: 127.0.0.1:{tls}, certificate_file: {}, key_file: {} }}\n      \
         web_socket: {{ listen: 127.0.0.1:{web} }}",
        at("broker.pem"),
        at("broker.key")
    ));
    let _silent: Vec<Raw> = [tls, web, port].iter().flat_map(|port| (0..20).map(|_| Raw::open(*port))).collect();
    check_service(&node, port);
    let ended = |arguments: &[&str]| {
        let command = Command::new("openssl").args(arguments).stdin(Stdio::null()).output().unwrap();
        String::from_utf8_lossy(&command.stdout).into_owned()
    };
    let address = format!("127.0.0.1:{tls}");
    let text = ended(&["s_client", "-connect", &address, "-CAfile", &at("ca.pem"), "-verify_return_error"]);
    assert!(text.contains("Verify return code: 0"), "{text}");
    for old in ["-tls1", "-tls1_1"] {
        let text = ended(&["s_client", "-connect", &address, old, "-cipher", "ALL:@SECLEVEL=0"]);
        assert!(text.contains("Cipher is (NONE)"), "{old}: {text}");
    }
    assert!(node.stop());
}

#[test]
fn a_renewed_certificate_is_used_without_a_restart() {
    if !has("openssl") {
        return;
    }
    let [first, second] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    certificates::write(first.path());
    certificates::write(second.path());
    let tls = free_port();
    let at = |name: &str| first.path().join(name).display().to_string();
    let (node, port) = broker(&format!(
        "tls: {{ listen: 127.0.0.1:{tls}, certificate_file: {}, key_file: {} }}",
        at("broker.pem"),
        at("broker.key")
    ));
    let is_signed_by = |folder: &tempfile::TempDir| {
        let authority = folder.path().join("ca.pem").display().to_string();
        let address = format!("127.0.0.1:{tls}");
        let arguments = ["s_client", "-connect", &address, "-CAfile", &authority, "-verify_return_error"];
        let output = Command::new("openssl").args(arguments).stdin(Stdio::null()).output().unwrap();
        String::from_utf8_lossy(&output.stdout).contains("Verify return code: 0")
    };
    assert!(is_signed_by(&first) && !is_signed_by(&second));
    for name in ["broker.pem", "broker.key"] {
        std::fs::copy(second.path().join(name), first.path().join(name)).unwrap();
    }
    eventually("the broker has the new certificate", || is_signed_by(&second));
    std::fs::write(first.path().join("broker.pem"), "nothing").unwrap();
    std::thread::sleep(Duration::from_millis(1200));
    assert!(is_signed_by(&second), "a file that cannot be used changes nothing");
    check_service(&node, port);
    assert!(node.stop());
}

#[test]
fn wrong_passwords_are_counted_and_lock_only_their_address_out() {
    let folder = tempfile::tempdir().unwrap();
    let users = folder.path().join("users");
    let hash = viaduct_mqtt::broker::PasswordAuthProvider::hash_password("secret").unwrap();
    std::fs::write(&users, format!("bob:{hash}\n")).unwrap();
    let (node, port) = broker(&format!("password_file: {}", users.display()));
    assert_eq!(Raw::connect(port, "bob", Some(("bob", "secret"))).1, 0);
    for _ in 0..10 {
        assert_eq!(Raw::connect(port, "bob", Some(("bob", "wrong"))).1, 0x86);
    }
    assert_eq!(Raw::connect(port, "bob", Some(("bob", "secret"))).1, 0x86, "the address is locked out");
    let bus = node.bus();
    assert_eq!((of(&bus, "clients_refused", "password"), of(&bus, "clients_refused", "address")), (10, 1));
    assert!(node.stop());
}

#[test]
fn clients_do_not_publish_on_topics_of_the_broker() {
    let (node, port) = broker("");
    let (mut raw, code) = Raw::connect(port, "liar", None);
    assert_eq!(code, 0);
    let topic = b"$SYS/broker/version";
    let body = [&u16::try_from(topic.len()).unwrap().to_be_bytes()[..], topic, &[0, 7, 0], b"mine"].concat();
    // The rest of CONNACK comes first.
    raw.0.write_all(&[&[0x32, u8::try_from(body.len()).unwrap()], &body[..]].concat()).unwrap();
    let mut octets = Vec::new();
    let mut buffer = [0; 512];
    // PUBACK for the packet 7 with the reason "not authorized".
    while !octets.windows(5).any(|window| matches!(window, [0x40, _, 0, 7, 0x87])) {
        let count = raw.0.read(&mut buffer).unwrap();
        assert!(count > 0, "{octets:x?}");
        octets.extend_from_slice(&buffer[..count]);
    }
    assert!(node.stop());
}
