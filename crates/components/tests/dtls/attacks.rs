//! Attacks on a server and a client: spoofed addresses, replays, forged and damaged records.

use std::net::SocketAddr;
use std::time::Duration;

use viaduct_components::net::dtls::{Client, DropReason, EndReason, Event};
use viaduct_units::Mono;

use super::common::{Ends, IDENTITY, KEY, MS, check, client_config, new_server, server_address};

/// Returns an alert without protection: fatal, `handshake_failure`.
fn forged_alert() -> Vec<u8> {
    [&[21, 0xfe, 0xfd][..], &[0, 0], &[0, 0, 0, 0, 0, 9], &[0, 2], &[2, 40]].concat()
}

fn source(number: u32) -> SocketAddr {
    let [_, _, high, low] = number.to_be_bytes();
    SocketAddr::from(([198, 51, high, low], 5684))
}

#[test]
fn a_flood_of_spoofed_addresses_leaves_no_state_and_is_not_amplified() {
    let mut ends = Ends::new();
    ends.client.reconnect(ends.now);
    let hello = ends.sent_by_client().remove(0);
    for number in 0..50_000 {
        ends.server.handle_datagram(ends.now, source(number), &hello);
        let answers: Vec<_> = std::iter::from_fn(|| ends.server.poll_transmit()).collect();
        let octets: usize = answers.iter().map(|(_, datagram)| datagram.len()).sum();
        assert!(answers.len() == 1 && octets <= hello.len(), "{octets} octets for {}", hello.len());
    }
    assert_eq!(ends.server.poll_timeout(), None, "no address has state");
    let counters = ends.server.counters();
    assert_eq!((counters.cookies, counters.handshakes), (50_000, 0));
    // The client connects in the flood.
    ends.client.send(ends.now, b"first").unwrap();
    ends.server.handle_datagram(ends.now, ends.address, &hello);
    ends.exchange();
    ends.check_traffic();
}

#[test]
fn a_cookie_is_valid_for_its_address_and_its_client_hello_only() {
    let mut ends = Ends::new();
    let hello = ends.hello_with_cookie();
    let mut changed = hello.to_vec();
    // An octet of the client's random number: after the headers of record and message and the version.
    changed[13 + 12 + 2] ^= 1;
    ends.server.handle_datagram(ends.now, ends.address, &changed);
    ends.server.handle_datagram(ends.now, source(1), &hello);
    assert_eq!((ends.server.counters().cookies, ends.server.counters().handshakes), (3, 0));
    ends.pass(Duration::from_secs(30));
    ends.sent_by_server();
    ends.server.handle_datagram(ends.now, ends.address, &hello);
    assert_eq!((ends.server.counters().cookies, ends.server.counters().handshakes), (4, 0));
    // The client answers the second request for a cookie too.
    let cookie = ends.sent_by_server().remove(0);
    ends.client.handle_datagram(ends.now, server_address(), &cookie);
    ends.exchange();
    ends.check_traffic();
}

#[test]
fn a_repeated_record_is_dropped() {
    let mut ends = Ends::connected();
    ends.client.send(ends.now, b"once").unwrap();
    let datagram = ends.sent_by_client().remove(0);
    for _ in 0..3 {
        ends.server.handle_datagram(ends.now, ends.address, &datagram);
    }
    assert_eq!(ends.take_received(), [&b"once"[..]]);
    assert_eq!(ends.dropped(DropReason::Replayed), 2);
    // The same record from another address belongs to no session.
    ends.server.handle_datagram(ends.now, source(1), &datagram);
    assert_eq!(ends.dropped(DropReason::NoSession), 1);
    ends.check_traffic();
}

#[test]
fn records_are_accepted_in_any_order_within_the_window() {
    let mut ends = Ends::connected();
    let mut datagrams = Vec::new();
    for number in 0..100_u8 {
        ends.client.send(ends.now, &[number]).unwrap();
        datagrams.extend(ends.sent_by_client());
    }
    for datagram in datagrams.iter().rev() {
        ends.server.handle_datagram(ends.now, ends.address, datagram);
    }
    let received = ends.take_received();
    let expected: Vec<Vec<u8>> = (36..100).rev().map(|number| vec![number]).collect();
    assert_eq!(received, expected);
    assert_eq!(ends.dropped(DropReason::TooOld), 36);
    ends.check_traffic();
}

#[test]
fn damaged_and_forged_records_do_not_end_a_session() {
    let mut ends = Ends::connected();
    ends.client.send(ends.now, b"payload").unwrap();
    let datagram = ends.sent_by_client().remove(0);
    for index in 0..datagram.len() {
        for bit in 0..8 {
            let mut damaged = datagram.to_vec();
            damaged[index] ^= 1 << bit;
            ends.server.handle_datagram(ends.now, ends.address, &damaged);
            ends.client.handle_datagram(ends.now, server_address(), &damaged);
        }
    }
    for length in 0..datagram.len() {
        ends.server.handle_datagram(ends.now, ends.address, &datagram[..length]);
    }
    ends.server.handle_datagram(ends.now, ends.address, &forged_alert());
    assert!(ends.take_received().is_empty() && ends.take_answers().is_empty());
    assert!(ends.dropped(DropReason::NotAuthentic) > 100 && ends.dropped(DropReason::Malformed) > 50);
    ends.server.handle_datagram(ends.now, ends.address, &datagram);
    assert_eq!(ends.take_received(), [&b"payload"[..]]);
    ends.exchange();
    ends.check_traffic();
    assert_eq!(ends.server.sessions(), 1);
}

#[test]
fn forged_alerts_start_few_handshakes_and_end_no_session() {
    let mut ends = Ends::connected();
    for _ in 0..100 {
        ends.client.send(ends.now, b"no answer").unwrap();
        ends.client.handle_datagram(ends.now, server_address(), &forged_alert());
        ends.exchange();
        ends.pass(10 * MS);
    }
    assert!(ends.client.is_connected());
    assert!(ends.client.counters().handshakes <= 2, "{:?}", ends.client.counters());
    ends.check_traffic();
}

#[test]
fn a_recorded_handshake_cannot_be_repeated() {
    let mut ends = Ends::new();
    ends.client.send(ends.now, b"first").unwrap();
    let mut recorded = Vec::new();
    loop {
        let up = ends.sent_by_client();
        for datagram in &up {
            ends.server.handle_datagram(ends.now, ends.address, datagram);
        }
        let down = ends.sent_by_server();
        for datagram in &down {
            ends.client.handle_datagram(ends.now, server_address(), datagram);
        }
        if up.is_empty() && down.is_empty() {
            break;
        }
        recorded.extend(up);
    }
    assert_eq!(ends.take_received(), [&b"first"[..]]);
    for datagram in &recorded {
        ends.server.handle_datagram(ends.now, ends.address, datagram);
    }
    assert_eq!(ends.server.counters().handshakes, 1);
    assert!(ends.take_received().is_empty() && ends.dropped(DropReason::Replayed) >= 2);
    ends.exchange();
    ends.check_traffic();

    // A server that has restarted has another secret for cookies.
    ends.server = new_server();
    for datagram in &recorded {
        ends.server.handle_datagram(ends.now, ends.address, datagram);
    }
    assert_eq!((ends.server.counters().handshakes, ends.server.sessions()), (0, 0));
    assert!(ends.take_received().is_empty());
}

#[test]
fn a_handshake_that_does_not_complete_leaves_the_session_in_use() {
    let mut ends = Ends::connected();
    // Somebody on the path starts a handshake from the client's address, and gets the cookie.
    let attacker = Client::new(Mono::default(), client_config(IDENTITY, b"a guessed key"), server_address()).unwrap();
    let client = std::mem::replace(&mut ends.client, attacker);
    ends.client.reconnect(ends.now);
    ends.exchange();
    assert_eq!(ends.server.counters().ended(EndReason::WrongKey), 1);
    ends.client = client;
    ends.check_traffic();
    assert_eq!(ends.server.counters().sessions, 1);
}

#[test]
fn a_wrong_key_and_an_unknown_identity_are_counted_apart_and_answered_alike() {
    let mut answers = Vec::new();
    for (identity, key, reason) in
        [(IDENTITY, &b"another key"[..], EndReason::WrongKey), ("nobody", KEY, EndReason::UnknownIdentity)]
    {
        let client = Client::new(Mono::default(), client_config(identity, key), server_address()).unwrap();
        let mut ends = Ends::of(new_server(), client);
        ends.client.send(ends.now, b"lost").unwrap();
        ends.exchange();
        assert_eq!(ends.server.counters().ended(reason), 1);
        assert_eq!(ends.server.sessions(), 0);
        assert_eq!(ends.server.poll_timeout(), None, "nothing is left of the handshake");
        let event = ends.client.poll_event();
        assert!(matches!(event, Some(Event::Failed { reason: EndReason::Alert, .. })), "{event:?}");
        assert_eq!(ends.client.counters().unsent, 1);
        answers.push(ends.client.counters().datagrams);
        check(ends.server.counters());
    }
    assert_eq!(answers[0], answers[1]);
}

#[test]
fn a_lost_last_flight_of_the_server_is_repeated() {
    let mut ends = Ends::new();
    let hello = ends.hello_with_cookie();
    ends.server.handle_datagram(ends.now, ends.address, &hello);
    for datagram in ends.sent_by_server() {
        ends.client.handle_datagram(ends.now, server_address(), &datagram);
    }
    for datagram in ends.sent_by_client() {
        ends.server.handle_datagram(ends.now, ends.address, &datagram);
    }
    assert!(!ends.sent_by_server().is_empty() && ends.server.sessions() == 1, "this flight is lost");
    assert!(!ends.client.is_connected());
    ends.pass(Duration::from_secs(2));
    ends.exchange();
    assert!(ends.client.is_connected());
    ends.check_traffic();
}
