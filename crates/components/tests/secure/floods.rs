//! Floods: work and memory are bounded, and sessions are not affected.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use viaduct_components::net::secure::limits::{
    HANDSHAKE_BURST, HANDSHAKE_INTERVAL, PEER_HANDSHAKE_BURST, SOURCE_HANDSHAKE_BURST, SOURCE_HANDSHAKE_INTERVAL,
    TRANSMITS_MAX,
};
use viaduct_components::net::secure::{DropReason, Endpoint, Timing};

use super::common::{
    Ends, MS, PEER, address_of_desk, address_of_vehicle, check_counters, endpoint, key, seal, transmits,
};

/// An attacker who knows the vehicle's public key and receives datagrams at an address.
struct Attacker {
    address: SocketAddr,
    endpoint: Endpoint,
}

impl Attacker {
    fn new(number: u16) -> Self {
        let address = SocketAddr::from(([198, 51, (number >> 8) as u8, number as u8], 4000));
        let own = key(1000 + u64::from(number));
        let endpoint = endpoint(&own, &key(2), Some(address_of_vehicle()), Timing::default(), u64::from(number));
        Self { address, endpoint }
    }

    /// Returns an initiation with a valid cookie.
    fn initiation(&mut self, ends: &mut Ends) -> Bytes {
        // Each attempt begins with a request after the longest wait.
        while transmits(&mut self.endpoint).is_empty() {
            let due = self.endpoint.poll_timeout().unwrap().max(ends.now);
            self.endpoint.handle_timeout(due);
            let Some(request) = transmits(&mut self.endpoint).pop() else { continue };
            ends.vehicle.open(ends.now, self.address, &request);
            for cookie in transmits(&mut ends.vehicle) {
                self.endpoint.open(ends.now, address_of_vehicle(), &cookie);
            }
            if let Some(initiation) = transmits(&mut self.endpoint).pop() {
                return initiation;
            }
        }
        unreachable!("an attempt begins with a request")
    }
}

#[test]
fn a_flood_of_cookie_requests_is_answered_in_equal_measure_and_stores_nothing() {
    let mut ends = Ends::connected();
    let mut attacker = Attacker::new(1);
    attacker.endpoint.handle_timeout(ends.now);
    let request = transmits(&mut attacker.endpoint).remove(0);
    for port in 0..10_000 {
        ends.vehicle.open(ends.now, SocketAddr::from(([198, 51, 100, 1], port)), &request);
        let answers = transmits(&mut ends.vehicle);
        assert_eq!((answers.len(), answers[0].len()), (1, request.len()));
    }
    assert_eq!(ends.vehicle.counters().key_agreements, 1, "that of the desk");
    let datagram = seal(&mut ends.desk, ends.now, b"hello");
    assert!(ends.deliver_to_vehicle(&datagram).is_some());
}

#[test]
fn answers_that_the_owner_does_not_take_are_bounded() {
    let mut ends = Ends::new();
    let mut attacker = Attacker::new(1);
    attacker.endpoint.handle_timeout(ends.now);
    let request = transmits(&mut attacker.endpoint).remove(0);
    for _ in 0..1000 {
        ends.vehicle.open(ends.now, attacker.address, &request);
    }
    assert_eq!(ends.dropped(DropReason::TransmitQueueFull), 1000 - TRANSMITS_MAX as u64);
    assert_eq!(transmits(&mut ends.vehicle).len(), TRANSMITS_MAX);
    check_counters(&ends.vehicle);
}

#[test]
fn initiations_from_one_source_are_limited() {
    let mut ends = Ends::new();
    let mut attacker = Attacker::new(1);
    let seconds = 10;
    for _ in 0..seconds * 100 {
        let initiation = attacker.initiation(&mut ends);
        ends.vehicle.open(ends.now, attacker.address, &initiation);
        ends.pass(10 * MS);
    }
    let limit = u64::from(SOURCE_HANDSHAKE_BURST) + seconds * 1000 / SOURCE_HANDSHAKE_INTERVAL.as_millis() as u64;
    let computed = ends.vehicle.counters().key_agreements;
    assert!((limit - 2..=limit).contains(&computed), "{computed}");
    assert_eq!(ends.dropped(DropReason::UnknownKey), computed);
    assert_eq!(ends.dropped(DropReason::HandshakeRate), seconds * 100 - computed);
}

#[test]
fn initiations_from_many_sources_are_limited_and_a_session_is_renewed_meanwhile() {
    let mut ends = Ends::connected();
    ends.pass(Duration::from_secs(119));
    let seconds = 4;
    let mut attackers: Vec<Attacker> = (0..500).map(Attacker::new).collect();
    for round in 0..seconds * 2 {
        for attacker in &mut attackers {
            let initiation = attacker.initiation(&mut ends);
            ends.vehicle.open(ends.now, attacker.address, &initiation);
        }
        // The flood has used up the limits just now.
        if round % 2 == 1 {
            ends.exchange();
        }
        ends.pass(500 * MS);
    }
    let limit = u64::from(HANDSHAKE_BURST) + seconds * 1000 / HANDSHAKE_INTERVAL.as_millis() as u64;
    let of_desk = 2;
    assert!(ends.vehicle.counters().key_agreements <= limit + of_desk, "{:?}", ends.vehicle.counters());
    assert!(ends.dropped(DropReason::HandshakeRate) > 3000);
    assert_eq!(ends.vehicle.counters().sessions, 2, "the session was renewed during the flood");
    assert!(ends.vehicle.address(PEER).is_some());
}

#[test]
fn spoofed_sources_cause_no_key_agreement() {
    let mut ends = Ends::connected();
    let mut attacker = Attacker::new(1);
    let initiation = attacker.initiation(&mut ends);
    let before = ends.vehicle.counters().key_agreements;
    for number in 0..10_000_u32 {
        let [_, a, b, c] = number.to_be_bytes();
        ends.vehicle.open(ends.now, SocketAddr::from(([10, a, b, c], 4000)), &initiation);
        ends.vehicle.open(ends.now, address_of_desk(), &initiation);
    }
    assert_eq!(ends.vehicle.counters().key_agreements, before);
    assert_eq!(ends.dropped(DropReason::CookieInvalid), 20_000);
}

#[test]
fn handshakes_of_one_peer_are_limited() {
    let mut ends = Ends::new();
    for seed in 0..100 {
        ends.desk = endpoint(&key(1), &key(2), Some(address_of_vehicle()), Timing::default(), 100 + seed);
        let initiation = ends.initiation();
        ends.deliver_to_vehicle(&initiation);
        transmits(&mut ends.vehicle);
        // Below the limit of a source.
        ends.pass(SOURCE_HANDSHAKE_INTERVAL);
    }
    let responses = 100 - ends.dropped(DropReason::HandshakeRate);
    assert!(
        (u64::from(PEER_HANDSHAKE_BURST) + 22..=u64::from(PEER_HANDSHAKE_BURST) + 26).contains(&responses),
        "{responses}"
    );
}

#[test]
fn forged_data_does_not_affect_the_stream() {
    let mut ends = Ends::connected();
    let model = seal(&mut ends.desk, ends.now, &[7; 100]);
    let mut received = 0;
    for number in 0..10_000_u32 {
        let mut forged = model.to_vec();
        forged[5..13].copy_from_slice(&u64::from(number).to_be_bytes());
        forged[40] ^= 1;
        assert_eq!(ends.vehicle.open(ends.now, address_of_desk(), &forged), None);
        forged[1..5].copy_from_slice(&number.to_be_bytes());
        assert_eq!(ends.vehicle.open(ends.now, address_of_desk(), &forged), None);
        if number % 100 == 0 {
            let genuine = seal(&mut ends.desk, ends.now, b"genuine");
            received += u32::from(ends.deliver_to_vehicle(&genuine).is_some());
        }
    }
    assert_eq!(received, 100);
    assert!(ends.dropped(DropReason::NotAuthentic) > 9000 && ends.dropped(DropReason::NoSession) > 9000);
    check_counters(&ends.vehicle);
    assert!(transmits(&mut ends.vehicle).is_empty());
}
