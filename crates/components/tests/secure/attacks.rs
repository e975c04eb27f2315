//! Datagrams that are forged, copied, damaged or from a stranger.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use viaduct_components::net::secure::limits::{PAYLOAD_OCTETS_MAX, REPLAY_WINDOW};
use viaduct_components::net::secure::{DropReason, Event, SealError, Timing};

use super::common::{
    Ends, MS, PEER, address_of_desk, address_of_vehicle, check_counters, endpoint, events, key, seal, transmits,
};

fn elsewhere() -> SocketAddr {
    "198.51.100.9:4000".parse().unwrap()
}

/// Returns the datagram with one bit of the octet at an index inverted. The bit depends on the index.
fn flipped(datagram: &[u8], index: usize) -> Vec<u8> {
    let mut flipped = datagram.to_vec();
    flipped[index] ^= 1 << (index % 8);
    flipped
}

#[test]
fn payloads_of_all_lengths_arrive_in_both_directions() {
    let mut ends = Ends::connected();
    for length in [1, 13, 100, 1400, 9000, PAYLOAD_OCTETS_MAX] {
        let payload = vec![length as u8; length];
        let up = seal(&mut ends.desk, ends.now, &payload);
        assert_eq!(up.len(), length + 29);
        assert!(up.windows(13).all(|part| part != &payload[..13.min(length)]), "the payload is visible");
        assert_eq!(ends.deliver_to_vehicle(&up).as_deref(), Some(&payload[..]));
        let down = seal(&mut ends.vehicle, ends.now, &payload);
        assert_eq!(ends.deliver_to_desk(&down).as_deref(), Some(&payload[..]));
    }
    let too_long = vec![0; PAYLOAD_OCTETS_MAX + 1];
    let refused = ends.desk.seal(ends.now, PEER, &too_long, &mut BytesMut::new());
    assert_eq!(refused, Err(SealError::TooLong(PAYLOAD_OCTETS_MAX + 1)));
}

#[test]
fn several_datagrams_follow_one_another_in_a_buffer() {
    let mut ends = Ends::connected();
    let mut buffer = BytesMut::new();
    for number in 0..10_u8 {
        ends.desk.seal(ends.now, PEER, &[number; 100], &mut buffer).unwrap();
    }
    for (number, datagram) in buffer.chunks(129).enumerate() {
        assert_eq!(ends.deliver_to_vehicle(datagram).unwrap(), vec![number as u8; 100]);
    }
}

#[test]
fn an_end_that_sends_to_itself_receives_nothing() {
    let mut ends = Ends::connected();
    let datagram = seal(&mut ends.desk, ends.now, b"hello");
    assert_eq!(ends.deliver_to_desk(&datagram), None);
}

#[test]
fn a_copied_datagram_is_refused() {
    let mut ends = Ends::connected();
    let datagrams: Vec<Bytes> = (0..100_u8).map(|number| seal(&mut ends.desk, ends.now, &[number])).collect();
    for datagram in &datagrams {
        assert!(ends.deliver_to_vehicle(datagram).is_some());
    }
    for datagram in &datagrams {
        assert_eq!(ends.deliver_to_vehicle(datagram), None);
    }
    assert_eq!(ends.dropped(DropReason::Replayed), 100);
}

#[test]
fn datagrams_are_accepted_in_any_order_within_the_window() {
    let mut ends = Ends::connected();
    // The first counter is that of the empty datagram that has confirmed the session.
    let mut sealed: Vec<Bytes> =
        (0..REPLAY_WINDOW).map(|number| seal(&mut ends.desk, ends.now, &number.to_be_bytes())).collect();
    sealed.reverse();
    for datagram in &sealed {
        assert!(ends.deliver_to_vehicle(datagram).is_some());
    }
    let late = seal(&mut ends.desk, ends.now, b"late");
    for _ in 0..REPLAY_WINDOW {
        let newer = seal(&mut ends.desk, ends.now, b"newer");
        assert!(ends.deliver_to_vehicle(&newer).is_some());
    }
    assert_eq!(ends.deliver_to_vehicle(&late), None);
    assert_eq!(ends.dropped(DropReason::TooOld), 1);
}

#[test]
fn data_with_any_octet_changed_is_refused() {
    let mut ends = Ends::connected();
    let datagram = seal(&mut ends.desk, ends.now, &[7; 40]);
    for index in 0..datagram.len() {
        assert_eq!(ends.deliver_to_vehicle(&flipped(&datagram, index)), None, "octet {index}");
    }
    check_counters(&ends.vehicle);
    // Type, session, counter, ciphertext with tag.
    assert_eq!(ends.dropped(DropReason::UnknownType) + ends.dropped(DropReason::WrongLength), 1);
    assert_eq!(ends.dropped(DropReason::NoSession), 4);
    assert_eq!(ends.dropped(DropReason::CounterLimit), 5, "counters of 2^25 and more");
    assert_eq!(ends.dropped(DropReason::NotAuthentic), 3 + 40 + 16);
    assert!(ends.deliver_to_vehicle(&datagram).is_some(), "forged datagrams do not use up the counter");
}

#[test]
fn handshake_messages_with_any_octet_changed_are_refused() {
    for message in 0..4 {
        let length = [48, 48, 144, 60][message];
        for index in 0..length {
            let mut ends = Ends::new();
            ends.desk.handle_timeout(ends.now);
            // The messages before are delivered as they are.
            let mut next = transmits(&mut ends.desk).remove(0);
            for before in 0..message {
                if before % 2 == 0 {
                    ends.deliver_to_vehicle(&next);
                    next = transmits(&mut ends.vehicle).remove(0);
                } else {
                    ends.deliver_to_desk(&next);
                    next = transmits(&mut ends.desk).remove(0);
                }
            }
            assert_eq!(next.len(), length);
            let to = if message % 2 == 0 { &mut ends.vehicle } else { &mut ends.desk };
            to.open(ends.now, address_of_desk(), &flipped(&next, index));
            // A cookie is a secret of the vehicle, so the desk learns from the missing answer only that it is wrong.
            let answers: Vec<Bytes> = transmits(to);
            if message == 1 && index >= 16 {
                assert_eq!(ends.deliver_to_vehicle(&answers[0]), None);
                assert_eq!(ends.dropped(DropReason::CookieInvalid), 1);
            } else {
                assert!(answers.is_empty() && to.counters().dropped_total() == 1, "message {message}, octet {index}");
            }
            assert_eq!((ends.desk.address(PEER), ends.vehicle.address(PEER)), (None, None));
            // The handshake succeeds nevertheless: with the true message, or with another attempt.
            let to = if message % 2 == 0 { &mut ends.vehicle } else { &mut ends.desk };
            to.open(ends.now, address_of_desk(), &next);
            for _ in 0..8 {
                ends.exchange();
                ends.pass(300 * MS);
            }
            assert!(ends.desk.address(PEER).is_some() && ends.vehicle.address(PEER).is_some(), "{message} {index}");
        }
    }
}

#[test]
fn truncated_messages_are_refused() {
    let mut ends = Ends::new();
    let initiation = ends.initiation();
    let mut connected = Ends::connected();
    let data = seal(&mut connected.desk, connected.now, b"hello");
    for (ends, message) in [(&mut ends, initiation), (&mut connected, data)] {
        for length in 0..message.len() {
            assert_eq!(ends.deliver_to_vehicle(&message[..length]), None);
            assert!(transmits(&mut ends.vehicle).is_empty());
        }
        assert_eq!(ends.vehicle.counters().dropped_total(), message.len() as u64);
    }
}

#[test]
fn a_desk_with_another_key_gets_no_session() {
    let mut ends = Ends::new();
    ends.desk = endpoint(&key(3), &key(2), Some(address_of_vehicle()), Timing::default(), 10);
    ends.exchange();
    assert_eq!(ends.dropped(DropReason::UnknownKey), 1);
    assert_eq!((ends.desk.address(PEER), ends.vehicle.address(PEER)), (None, None));
    assert!(events(&mut ends.vehicle).is_empty());
}

#[test]
fn a_vehicle_with_another_key_gets_no_session_and_sends_nothing() {
    let mut ends = Ends::new();
    ends.vehicle = endpoint(&key(3), &key(1), None, Timing::default(), 20);
    ends.exchange();
    assert_eq!(ends.dropped(DropReason::NotAuthentic), 1);
    assert_eq!((ends.desk.address(PEER), ends.vehicle.address(PEER)), (None, None));
    assert_eq!(ends.desk.counters().received, 0);
}

#[test]
fn a_stranger_who_does_not_know_the_public_key_gets_no_answer() {
    let mut ends = Ends::new();
    ends.desk.handle_timeout(ends.now);
    let mut request = transmits(&mut ends.desk).remove(0).to_vec();
    request[16..].fill(0);
    ends.deliver_to_vehicle(&request);
    assert!(transmits(&mut ends.vehicle).is_empty());
    assert_eq!(ends.dropped(DropReason::NotAuthentic), 1);
}

#[test]
fn a_copied_initiation_is_refused() {
    let mut ends = Ends::new();
    let initiation = ends.initiation();
    ends.deliver_to_vehicle(&initiation);
    ends.exchange();
    let session = seal(&mut ends.desk, ends.now, b"in use");
    for _ in 0..20 {
        ends.deliver_to_vehicle(&initiation);
        ends.vehicle.open(ends.now, elsewhere(), &initiation);
    }
    assert_eq!(ends.dropped(DropReason::Replayed), 20);
    assert_eq!(ends.dropped(DropReason::CookieInvalid), 20, "the cookie is bound to the address");
    ends.pass(Duration::from_secs(30));
    ends.deliver_to_vehicle(&initiation);
    assert_eq!(ends.dropped(DropReason::CookieInvalid), 21, "the cookie has expired");
    assert_eq!(ends.vehicle.counters().key_agreements, 1);
    assert!(ends.deliver_to_vehicle(&session).is_some());
}

#[test]
fn an_initiation_that_was_held_back_is_refused_by_a_vehicle_that_has_restarted() {
    let mut ends = Ends::new();
    let initiation = ends.initiation();
    ends.vehicle = endpoint(&key(2), &key(1), None, Timing::default(), 99);
    ends.deliver_to_vehicle(&initiation);
    assert_eq!(ends.dropped(DropReason::CookieInvalid), 1);
}

#[test]
fn an_initiation_does_not_change_the_session_in_use_until_the_desk_uses_the_new_one() {
    let mut ends = Ends::connected();
    // The desk restarts, and its answers are lost.
    let old = seal(&mut ends.desk, ends.now, b"old");
    ends.desk = endpoint(&key(1), &key(2), Some(address_of_vehicle()), Timing::default(), 11);
    let initiation = ends.initiation();
    assert_eq!(ends.vehicle.open(ends.now, elsewhere(), &initiation), None);
    ends.deliver_to_vehicle(&initiation);
    assert_eq!(ends.vehicle.address(PEER), Some(address_of_desk()));
    assert!(ends.deliver_to_vehicle(&old).is_some());
    assert_eq!(ends.vehicle.counters().sessions, 1);
    let response = transmits(&mut ends.vehicle).remove(0);
    ends.deliver_to_desk(&response);
    let new = seal(&mut ends.desk, ends.now, b"new");
    assert!(ends.deliver_to_vehicle(&new).is_some());
    assert_eq!(ends.vehicle.counters().sessions, 2);
}

#[test]
fn the_address_follows_new_authentic_datagrams_only() {
    let mut ends = Ends::connected();
    events(&mut ends.vehicle);
    let [first, second, third] = [b"1", b"2", b"3"].map(|payload| seal(&mut ends.desk, ends.now, payload));
    let opened = ends.vehicle.open(ends.now, elsewhere(), &second);
    assert_eq!((opened.unwrap().peer, ends.vehicle.address(PEER)), (PEER, Some(elsewhere())));
    assert_eq!(events(&mut ends.vehicle), [Event::Moved { peer: PEER, address: elsewhere() }]);
    assert!(ends.deliver_to_vehicle(&first).is_some(), "an older datagram is accepted");
    assert_eq!(ends.vehicle.address(PEER), Some(elsewhere()), "but the address does not follow it");
    ends.deliver_to_vehicle(&second);
    ends.deliver_to_vehicle(&flipped(&third, 20));
    assert_eq!(ends.vehicle.address(PEER), Some(elsewhere()));
    ends.deliver_to_vehicle(&third);
    assert_eq!(ends.vehicle.address(PEER), Some(address_of_desk()));
    assert_eq!(ends.vehicle.counters().moves, 2);
}

#[test]
fn a_session_that_has_expired_is_not_used() {
    let mut ends = Ends::connected();
    let datagram = seal(&mut ends.desk, ends.now, b"late");
    ends.pass(Duration::from_secs(180));
    assert_eq!(ends.deliver_to_vehicle(&datagram), None);
    assert_eq!(ends.dropped(DropReason::NoSession), 1);
    let mut buffer = BytesMut::from(&b"before"[..]);
    assert_eq!(ends.desk.seal(ends.now, PEER, b"late", &mut buffer), Err(SealError::NotConnected));
    assert_eq!(&buffer[..], b"before");
    ends.vehicle.handle_timeout(ends.now);
    assert!(matches!(events(&mut ends.vehicle)[..], [Event::Connected { .. }, Event::Disconnected { peer: PEER }]));
}
