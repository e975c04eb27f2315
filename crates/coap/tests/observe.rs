//! Observation of resources (RFC 7641).

#![allow(clippy::unwrap_used, reason = "in a test a panic is the failure")]

mod support;

use support::{CLIENT, SERVER, at, ms, pair, pair_of, parse, sent};
use viaduct_coap::codec::{Code, ContentFormat, MessageType, OptionNumber, Token, Writer};
use viaduct_coap::settings::{ADAPTIVE, Limits, Notifications, Settings};
use viaduct_coap::{EndReason, Endpoint, Event, Failure, Request, Response};

fn adaptive() -> Settings {
    Settings { retransmission: ADAPTIVE, ..Settings::default() }
}

fn numbers(payloads: &[bytes::Bytes]) -> Vec<u32> {
    payloads.iter().map(|payload| std::str::from_utf8(payload).unwrap().parse().unwrap()).collect()
}

#[test]
fn an_observer_receives_each_state() {
    for confirmable in [true, false] {
        let notifications = Notifications { confirmable, ..Notifications::default() };
        let mut pair = pair(Settings { notifications, ..Settings::default() }, 0.0, 1);
        pair.with_b(|edge, now| edge.set(now, "pose", "0"));
        pair.with_a(|robot, now| robot.endpoint.observe(now, SERVER, Request::get("pose"))).unwrap();
        for state in 1..=5 {
            pair.run_for(ms(100));
            pair.with_b(|edge, now| edge.set(now, "pose", state.to_string()));
        }
        pair.run_for(ms(100));
        assert_eq!(numbers(&pair.a().notifications()), [0, 1, 2, 3, 4, 5]);
        assert_eq!(pair.sent_by_a().datagrams, if confirmable { 6 } else { 1 });
    }
}

#[test]
fn an_observer_reaches_the_newest_state_at_25_percent_loss() {
    for (seed, settings) in [(1, adaptive()), (2, adaptive()), (3, Settings::default())] {
        let mut pair = pair(settings, 0.25, seed);
        pair.with_b(|edge, now| edge.set(now, "pose", "0"));
        pair.with_a(|robot, now| robot.endpoint.observe(now, SERVER, Request::get("pose"))).unwrap();
        for round in 0..20 {
            for state in 0..10 {
                pair.run_for(ms(50));
                pair.with_b(|edge, now| edge.set(now, "pose", (1 + round * 10 + state).to_string()));
            }
            pair.run_for(ms(60_000));
            let seen = numbers(&pair.a().notifications());
            assert!(seen.is_sorted(), "{seen:?}");
            assert_eq!(seen.last(), Some(&(10 + round * 10)), "{:?}", pair.b().ended);
        }
        assert!(pair.b().endpoint.counters().superseded > 0);
    }
}

#[test]
fn a_cancelled_observation_ends_at_the_server() {
    let mut pair = pair(Settings::default(), 0.0, 1);
    pair.with_b(|edge, now| edge.set(now, "pose", "0"));
    let id = pair.with_a(|robot, now| robot.endpoint.observe(now, SERVER, Request::get("pose"))).unwrap();
    pair.run_for(ms(100));
    pair.with_a(|robot, now| robot.endpoint.cancel(now, id));
    pair.run_for(ms(100));
    assert!(matches!(pair.b().ended[..], [Event::ObservationEnded { reason: EndReason::Cancelled, .. }]));
    pair.with_b(|edge, now| edge.set(now, "pose", "1"));
    pair.run_for(ms(100));
    assert_eq!(numbers(&pair.a().notifications()), [0]);
    assert_eq!((pair.a().responses().len(), pair.b().endpoint.observations()), (0, 0));
}

#[test]
fn another_get_does_not_end_an_observation() {
    let mut pair = pair(Settings::default(), 0.0, 1);
    pair.with_b(|edge, now| edge.set(now, "pose", "0"));
    pair.with_a(|robot, now| robot.endpoint.observe(now, SERVER, Request::get("pose"))).unwrap();
    pair.run_for(ms(100));
    pair.with_a(|robot, now| robot.endpoint.request(now, SERVER, Request::get("pose"))).unwrap();
    pair.run_for(ms(100));
    pair.with_b(|edge, now| edge.set(now, "pose", "1"));
    pair.run_for(ms(100));
    assert_eq!((numbers(&pair.a().notifications()), pair.a().responses().len()), (vec![0, 1], 1));
}

#[test]
fn an_error_ends_an_observation() {
    let mut pair = pair(Settings::default(), 0.0, 1);
    pair.with_b(|edge, now| edge.set(now, "pose", "0"));
    pair.with_a(|robot, now| robot.endpoint.observe(now, SERVER, Request::get("pose"))).unwrap();
    pair.run_for(ms(100));
    pair.with_b(|edge, now| {
        let id = *edge.observers.keys().next().unwrap();
        edge.endpoint.notify(now, id, Response::new(Code::NOT_FOUND));
    });
    pair.run_for(ms(100));
    assert_eq!(pair.a().only_response().code, Code::NOT_FOUND);
    assert_eq!(pair.b().endpoint.observations(), 0);
}

#[test]
fn a_resource_that_is_not_observable_has_one_response() {
    let mut pair = pair(Settings::default(), 0.0, 1);
    pair.with_a(|robot, now| robot.endpoint.observe(now, SERVER, Request::get("none"))).unwrap();
    pair.run_for(ms(100));
    assert_eq!(pair.a().only_response().code, Code::NOT_FOUND);
}

#[test]
fn an_observer_that_rejects_or_does_not_answer_is_removed() {
    for answer in [true, false] {
        let mut server = Endpoint::new(Settings::default(), 1);
        register(&mut server, 7, b"a", 0);
        let observation = observe_event(&mut server, true);
        sent(&mut server);
        server.notify(at(0), observation, Response::content(ContentFormat::TEXT, "1"));
        let notification = sent(&mut server).remove(0);
        let message = parse(&notification);
        assert_eq!((message.kind, message.token.as_slice()), (MessageType::Confirmable, &b"a"[..]));
        let reason = if answer {
            let id = message.id.to_be_bytes();
            server.handle_datagram(at(1), CLIENT, &vec![0x70, 0, id[0], id[1]].into());
            EndReason::Reset
        } else {
            while let Some(deadline) = server.poll_timeout().filter(|deadline| *deadline < at(200_000)) {
                server.handle_timeout(deadline);
            }
            EndReason::TimedOut
        };
        assert_eq!(server.poll_event(), Some(Event::ObservationEnded { id: observation, reason }));
        assert_eq!(server.observations(), 0);
    }
}

#[test]
fn a_non_confirmable_notification_can_be_rejected_and_a_confirmable_one_checks_the_observer() {
    let notifications = Notifications { confirmable: false, ..Notifications::default() };
    let mut server = Endpoint::new(Settings { notifications, ..Settings::default() }, 1);
    register(&mut server, 7, b"a", 0);
    let observation = observe_event(&mut server, true);
    sent(&mut server);
    let mut kinds = vec![];
    for second in [1, 30, 61] {
        server.notify(at(second * 1000), observation, Response::content(ContentFormat::TEXT, "1"));
        let datagram = sent(&mut server).remove(0);
        kinds.push(parse(&datagram).kind);
        if kinds.len() == 3 {
            let id = parse(&datagram).id.to_be_bytes();
            server.handle_datagram(at(61_000), CLIENT, &vec![0x60, 0, id[0], id[1]].into());
        }
    }
    assert_eq!(kinds, [MessageType::NonConfirmable, MessageType::NonConfirmable, MessageType::Confirmable]);
    server.notify(at(62_000), observation, Response::content(ContentFormat::TEXT, "1"));
    let id = parse(&sent(&mut server)[0]).id.to_be_bytes();
    server.handle_datagram(at(62_001), CLIENT, &vec![0x70, 0, id[0], id[1]].into());
    assert_eq!(server.poll_event(), Some(Event::ObservationEnded { id: observation, reason: EndReason::Reset }));
}

#[test]
fn a_client_ignores_a_notification_that_newer_ones_have_overtaken() {
    let mut client = Endpoint::new(Settings::default(), 1);
    client.observe(at(0), SERVER, Request::get("pose")).unwrap();
    let request = sent(&mut client).remove(0);
    let token = parse(&request).token;
    let mut id = 0;
    let mut notify = |client: &mut Endpoint, ms: u64, sequence: u32, payload: &str| {
        id += 1;
        client.handle_datagram(at(ms), SERVER, &notification(id, &token, sequence, payload));
        match client.poll_event() {
            Some(Event::Notification { response, .. }) => Some(response.payload),
            None => None,
            other => panic!("{other:?}"),
        }
    };
    assert!(notify(&mut client, 1, 10, "a").is_some());
    assert!(notify(&mut client, 2, 9, "b").is_none(), "smaller");
    assert!(notify(&mut client, 3, 10, "c").is_none(), "equal");
    assert!(notify(&mut client, 4, (1 << 24) - 1, "d").is_none(), "2^23 and more ahead is behind");
    assert!(notify(&mut client, 5, 1 << 22, "e").is_some());
    assert!(notify(&mut client, 6, 1 << 23, "f").is_some());
    assert!(notify(&mut client, 7, (1 << 24) - 1, "g").is_some());
    assert!(notify(&mut client, 7, 1, "g").is_some(), "wrapped");
    assert!(notify(&mut client, 200_000, 0, "h").is_some(), "after 128 s, any is newer");
}

#[test]
fn a_client_registers_anew_after_max_age() {
    let mut pair = pair(Settings::default(), 0.0, 1);
    pair.with_b(|edge, now| edge.set(now, "pose", "0"));
    pair.with_a(|robot, now| robot.endpoint.observe(now, SERVER, Request::get("pose"))).unwrap();
    pair.run_for(ms(64_000));
    assert_eq!(pair.b().requests.len(), 1);
    pair.run_for(ms(12_000));
    assert_eq!((pair.b().requests.len(), pair.b().endpoint.observations()), (2, 1));
    pair.with_b(|edge, now| edge.set(now, "pose", "1"));
    pair.run_for(ms(100));
    assert_eq!(numbers(&pair.a().notifications()), [0, 0, 1]);
}

#[test]
fn a_client_that_lost_its_state_stops_the_notifications() {
    let mut pair = pair(Settings::default(), 0.0, 1);
    pair.with_b(|edge, now| edge.set(now, "pose", "0"));
    pair.with_a(|robot, now| robot.endpoint.observe(now, SERVER, Request::get("pose"))).unwrap();
    pair.run_for(ms(100));
    pair.with_a(|robot, _| robot.endpoint = Endpoint::new(Settings::default(), 99));
    pair.with_b(|edge, now| edge.set(now, "pose", "1"));
    pair.run_for(ms(100));
    assert!(matches!(pair.b().ended[..], [Event::ObservationEnded { reason: EndReason::Reset, .. }]));
}

#[test]
fn large_states_arrive_whole() {
    let mut pair = pair_of(adaptive(), adaptive(), 0.1, 4);
    let state = |n: u8| bytes::Bytes::from(vec![n; 5000]);
    pair.with_b(|edge, now| edge.set(now, "map", state(0)));
    pair.with_a(|robot, now| robot.endpoint.observe(now, SERVER, Request::get("map"))).unwrap();
    pair.run_for(ms(30_000));
    for n in 1..20 {
        // Two states in quick succession: the second one replaces the first within its transfer.
        pair.with_b(|edge, now| edge.set(now, "map", state(100 + n)));
        pair.run_for(ms(25));
        pair.with_b(|edge, now| edge.set(now, "map", state(n)));
        pair.run_for(ms(30_000));
        assert!(pair.a().notifications().last() == Some(&state(n)), "{n}");
    }
    let whole = |payload: &bytes::Bytes| payload.len() == 5000 && payload.iter().all(|octet| *octet == payload[0]);
    assert!(pair.a().notifications().iter().all(whole));
    assert!(!pair.a().events.iter().any(|(_, event)| matches!(event, Event::Failed { .. })), "{:?}", Failure::Blocks);
}

#[test]
fn observations_are_limited_per_peer_and_in_total() {
    let limits = Limits { observations_per_peer: 3, observations: 5, ..Limits::default() };
    let mut server = Endpoint::new(Settings { limits, ..Settings::default() }, 1);
    for peer in 0..4_u16 {
        for number in 0..5_u16 {
            register_from(&mut server, peer, 100 + number, &number.to_be_bytes(), 0);
            while let Some(event) = server.poll_event() {
                if let Event::Request { id, .. } = event {
                    server.respond_observed(at(0), id, Response::content(ContentFormat::TEXT, "0"));
                }
            }
        }
    }
    assert_eq!(server.observations(), 5);
    let responses = sent(&mut server);
    let observed = |datagram: &bytes::Bytes| parse(datagram).options().get(OptionNumber::OBSERVE).is_some();
    assert_eq!((responses.len(), responses.iter().filter(|datagram| observed(datagram)).count()), (20, 5));
}

fn register(server: &mut Endpoint, id: u16, token: &[u8], observe: u32) {
    register_from(server, 0, id, token, observe);
}

fn register_from(server: &mut Endpoint, peer: u16, id: u16, token: &[u8], observe: u32) {
    let mut buffer = [0; 64];
    let token = Token::new(token).unwrap();
    let mut writer = Writer::datagram(&mut buffer, MessageType::Confirmable, Code::GET, id, &token).unwrap();
    writer.uint(OptionNumber::OBSERVE, observe).unwrap();
    writer.option(OptionNumber::URI_PATH, b"pose").unwrap();
    let length = writer.finish();
    let mut from = CLIENT;
    from.set_port(4000 + peer);
    server.handle_datagram(at(0), from, &buffer[..length].to_vec().into());
}

fn observe_event(server: &mut Endpoint, accept: bool) -> viaduct_coap::ObservationId {
    let Some(Event::Request { id, observe: Some(observation), .. }) = server.poll_event() else { panic!("no request") };
    if accept {
        server.respond_observed(at(0), id, Response::content(ContentFormat::TEXT, "0"));
    }
    observation
}

fn notification(id: u16, token: &Token, sequence: u32, payload: &str) -> bytes::Bytes {
    let mut buffer = [0; 64];
    let mut writer = Writer::datagram(&mut buffer, MessageType::NonConfirmable, Code::CONTENT, id, token).unwrap();
    writer.uint(OptionNumber::OBSERVE, sequence).unwrap();
    writer.payload(payload.as_bytes()).unwrap();
    let length = writer.finish();
    buffer[..length].to_vec().into()
}
