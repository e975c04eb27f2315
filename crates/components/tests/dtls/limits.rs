//! Limits of a server, and service for the others when they are reached.

use std::net::SocketAddr;
use std::time::Duration;

use viaduct_components::net::dtls::limits::{CLIENT_QUEUE_MAX, PAYLOAD_OCTETS_MAX};
use viaduct_components::net::dtls::{Client, DropReason, EndReason, PskKeys, SendError, Server, ServerConfig};
use viaduct_units::Mono;

use super::common::{Ends, IDENTITY, KEY, client_config, new_client, new_server, server_address, server_config};

fn host(network: u8, number: u16) -> SocketAddr {
    SocketAddr::from(([203, 0, network, 1], 10_000 + number))
}

/// Connects a client at an address, and forgets it.
fn connect(ends: &mut Ends, address: SocketAddr, identity: &str) {
    let client = Client::new(ends.now, client_config(identity, KEY), server_address()).unwrap();
    let own = (std::mem::replace(&mut ends.client, client), std::mem::replace(&mut ends.address, address));
    ends.client.reconnect(ends.now);
    ends.exchange();
    (ends.client, ends.address) = own;
}

fn small_server(keys: PskKeys) -> Server {
    let config = ServerConfig { keys, connections_max: 10, handshakes_max: 8, ..server_config() };
    Server::new(Mono::default(), config).unwrap()
}

#[test]
fn a_full_table_displaces_the_identity_with_the_most_sessions() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys");
    let text = String::from_utf8(KEY.to_vec()).unwrap();
    std::fs::write(&file, format!("{IDENTITY}:\"{text}\"\ngreedy:\"{text}\"\n")).unwrap();
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&file, permissions).unwrap();
    let mut ends = Ends::of(small_server(PskKeys::read(&file).unwrap()), new_client());
    ends.client.send(ends.now, b"first").unwrap();
    ends.exchange();
    for number in 0..100 {
        ends.pass(Duration::from_secs(1));
        connect(&mut ends, host(1, number), "greedy");
        assert!(ends.server.sessions() <= 10);
    }
    // The session of the other identity was silent for longest, and is still there.
    assert_eq!(ends.server.counters().ended(EndReason::Limit), 91);
    ends.check_traffic();
}

#[test]
fn a_source_that_starts_many_handshakes_displaces_only_its_own() {
    let mut ends = Ends::of(small_server(PskKeys::single(IDENTITY, KEY).unwrap()), new_client());
    let hello = ends.hello_with_cookie();
    ends.server.handle_datagram(ends.now, ends.address, &hello);
    ends.sent_by_server();
    // A host with many ports starts handshakes and never continues.
    for number in 0..150 {
        let mut attacker = Ends::of(std::mem::replace(&mut ends.server, new_server()), new_client());
        attacker.address = host(7, number);
        let hello = attacker.hello_with_cookie();
        attacker.server.handle_datagram(attacker.now, attacker.address, &hello);
        attacker.sent_by_server();
        ends.server = attacker.server;
    }
    assert_eq!(ends.server.counters().ended(EndReason::Limit), 150 + 1 - 8);
    while ends.server.poll_event().is_some() {}
    // The client repeats its ClientHello, and its handshake goes on.
    ends.pass(Duration::from_secs(2));
    ends.exchange();
    ends.check_traffic();
}

#[test]
fn the_rate_of_handshakes_is_limited_for_each_source() {
    let mut ends = Ends::new();
    for number in 0..300 {
        connect(&mut ends, host(9, number), IDENTITY);
    }
    assert_eq!((ends.server.counters().handshakes, ends.dropped(DropReason::HandshakeRate)), (200, 100));
    connect(&mut ends, host(10, 0), IDENTITY);
    assert_eq!(ends.server.counters().handshakes, 201);
}

#[test]
fn a_silent_session_ends() {
    let mut ends = Ends::connected();
    ends.pass(Duration::from_secs(3599));
    assert_eq!(ends.server.sessions(), 1);
    ends.check_traffic();
    // Payloads postpone the end.
    ends.pass(Duration::from_secs(3599));
    assert_eq!(ends.server.sessions(), 1);
    ends.pass(Duration::from_secs(1));
    assert_eq!((ends.server.sessions(), ends.server.counters().ended(EndReason::Idle)), (0, 1));
    assert_eq!(ends.server.poll_timeout(), None);
    // The client is informed, and connects when it has something to send.
    ends.exchange();
    assert!(!ends.client.is_connected());
    ends.check_traffic();
}

#[test]
fn an_unfinished_handshake_ends() {
    let mut ends = Ends::new();
    let hello = ends.hello_with_cookie();
    ends.server.handle_datagram(ends.now, ends.address, &hello);
    let mut datagrams = ends.sent_by_server().len();
    for _ in 0..100 {
        ends.now = ends.now.plus(Duration::from_secs(1));
        ends.server.handle_timeout(ends.now);
        datagrams += ends.sent_by_server().len();
    }
    assert_eq!(ends.server.counters().ended(EndReason::HandshakeTimeout), 1);
    assert!((5..=8).contains(&datagrams), "{datagrams}");
    assert_eq!(ends.server.poll_timeout(), None);
}

#[test]
fn payloads_have_limits() {
    let mut ends = Ends::connected();
    let longest = vec![7; PAYLOAD_OCTETS_MAX];
    ends.client.send(ends.now, &longest).unwrap();
    ends.server.send(ends.now, ends.address, &longest).unwrap();
    ends.exchange();
    assert_eq!(
        (ends.take_received(), ends.take_answers()),
        (vec![longest.clone().into()], vec![longest.clone().into()])
    );
    let too_long = [&longest[..], &[7]].concat();
    assert_eq!(ends.client.send(ends.now, &too_long), Err(SendError::TooLong(PAYLOAD_OCTETS_MAX + 1)));
    assert_eq!(ends.server.send(ends.now, ends.address, &too_long), Err(SendError::TooLong(PAYLOAD_OCTETS_MAX + 1)));
    assert_eq!(ends.server.send(ends.now, host(1, 1), b"nobody"), Err(SendError::NotConnected));
    ends.client.send(ends.now, b"").unwrap();
    ends.exchange();
    assert_eq!(ends.take_received(), [&b""[..]]);
}

#[test]
fn payloads_of_a_client_wait_for_the_session() {
    let mut ends = Ends::new();
    for number in 0..CLIENT_QUEUE_MAX {
        ends.client.send(ends.now, &[number as u8]).unwrap();
    }
    assert_eq!(ends.client.send(ends.now, b"one more"), Err(SendError::QueueFull));
    ends.exchange();
    let received: Vec<u8> = ends.take_received().iter().map(|payload| payload[0]).collect();
    assert_eq!(received, (0..CLIENT_QUEUE_MAX as u8).collect::<Vec<_>>());
}

#[test]
fn a_client_that_closes_is_forgotten() {
    let mut ends = Ends::connected();
    ends.client.disconnect(ends.now);
    ends.exchange();
    assert_eq!((ends.server.sessions(), ends.server.poll_timeout()), (0, None));
    assert_eq!(ends.server.counters().ended(EndReason::ClosedByPeer), 1);
    ends.check_traffic();
    ends.server.disconnect(ends.now, ends.address);
    ends.exchange();
    assert!(!ends.client.is_connected());
    assert_eq!(ends.client.counters().ended(EndReason::ClosedByPeer), 1);
}
