//! Requests and responses over a lossy link (RFC 7252, 4 and 5).

#![allow(clippy::unwrap_used, reason = "in a test a panic is the failure")]

mod support;

use std::collections::BTreeSet;

use support::{CLIENT, Robot, SERVER, at, ms, pair, pair_of, sent};
use viaduct_coap::codec::{Code, ContentFormat, OptionNumber};
use viaduct_coap::settings::{ADAPTIVE, Settings};
use viaduct_coap::{DropReason, Endpoint, Event, Failure, Request, Response};

fn adaptive() -> Settings {
    Settings { retransmission: ADAPTIVE, ..Settings::default() }
}

#[test]
fn each_method_is_answered_in_the_acknowledgement() {
    let mut pair = pair(Settings::default(), 0.0, 1);
    for request in [
        Request::put("pose", ContentFormat::TEXT, "1"),
        Request::get("pose"),
        Request::post("log", ContentFormat::TEXT, "x"),
        Request::new(Code::DELETE, "pose"),
        Request::get("pose"),
    ] {
        pair.with_a(|robot, now| robot.endpoint.request(now, SERVER, request)).unwrap();
        pair.run_for(ms(100));
    }
    let codes: Vec<Code> = pair.a().responses().iter().map(|(_, response)| response.code).collect();
    assert_eq!(codes, [Code::CHANGED, Code::CONTENT, Code::CREATED, Code::DELETED, Code::NOT_FOUND]);
    assert_eq!((pair.sent_by_a().datagrams, pair.sent_by_b().datagrams), (5, 5));
    assert_eq!(pair.a().events[0].0, at(20));
}

#[test]
fn a_non_confirmable_request_has_a_non_confirmable_response() {
    let mut pair = pair(Settings::default(), 0.0, 1);
    let request = Request::post("log", ContentFormat::TEXT, "x").non_confirmable();
    pair.with_a(|robot, now| robot.endpoint.request(now, SERVER, request)).unwrap();
    pair.run_for(ms(1000));
    assert_eq!(pair.a().only_response().code, Code::CREATED);
    assert_eq!((pair.sent_by_a().datagrams, pair.sent_by_b().datagrams), (1, 1));
}

#[test]
fn a_slow_answer_is_a_separate_response_after_an_empty_acknowledgement() {
    for confirmable in [true, false] {
        let mut pair = pair(Settings::default(), 0.0, 1);
        let request = Request { confirmable, ..Request::get("slow") };
        pair.with_a(|robot, now| robot.endpoint.request(now, SERVER, request)).unwrap();
        pair.run_for(ms(5000));
        assert_eq!(pair.a().only_response().payload, "slow");
        // Request and acknowledgement of the response; acknowledgement of the request and response.
        let datagrams = if confirmable { 2 } else { 1 };
        assert_eq!((pair.sent_by_a().datagrams, pair.sent_by_b().datagrams), (datagrams, datagrams));
    }
}

#[test]
fn a_handler_runs_exactly_once_per_request_at_25_percent_loss() {
    for (seed, settings) in [(1, adaptive()), (2, adaptive()), (3, Settings::default())] {
        let mut pair = pair(settings, 0.25, seed);
        let (mut ids, mut failed) = (BTreeSet::new(), 0);
        for number in 0..200 {
            let path = if number % 10 == 0 { "slow" } else { "log" };
            let request = Request::post(path, ContentFormat::TEXT, number.to_string());
            ids.insert(pair.with_a(|robot, now| robot.endpoint.request(now, SERVER, request)).unwrap());
            pair.run_for(ms(3000));
        }
        pair.run_for(ms(300_000));
        for (_, event) in &pair.a().events {
            match event {
                Event::Response { id, .. } => assert!(ids.remove(id), "two responses"),
                Event::Failed { id, failure } => {
                    assert!(ids.remove(id) && *failure == Failure::TimedOut);
                    failed += 1;
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(ids.is_empty(), "{ids:?}");
        let handled: Vec<_> = pair.b().requests.iter().map(|request| request.payload.clone()).collect();
        let distinct: BTreeSet<_> = handled.iter().collect();
        assert_eq!(handled.len(), distinct.len(), "a handler ran twice");
        assert!(distinct.len() + failed >= 200 && failed <= 6, "{} {failed}", distinct.len());
        assert!(pair.b().endpoint.counters().duplicates > 20);
    }
}

#[test]
fn measured_waits_deliver_faster_than_fixed_ones() {
    let mean = |settings: Settings| {
        let mut pair = pair(settings, 0.25, 5);
        for _ in 0..2000 {
            let request = Request::post("log", ContentFormat::TEXT, "x");
            pair.with_a(|robot, now| robot.endpoint.request(now, SERVER, request)).unwrap();
            let before = pair.a().events.len();
            while pair.a().events.len() == before {
                pair.step(at(u64::MAX / 2)).unwrap();
            }
        }
        pair.now().0.as_secs_f64() / 2000.0
    };
    let (fixed, measured) = (mean(Settings::default()), mean(adaptive()));
    assert!(measured < 0.2 && fixed > 5.0 * measured, "{measured} {fixed}");
}

#[test]
fn a_request_to_a_silent_peer_fails_after_its_retransmissions() {
    let mut pair = pair(Settings::default(), 1.0, 1);
    let id = pair.with_a(|robot, now| robot.endpoint.request(now, SERVER, Request::get("pose"))).unwrap();
    pair.run_for(ms(120_000));
    let (time, event) = &pair.a().events[0];
    assert_eq!(event, &Event::Failed { id, failure: Failure::TimedOut });
    assert_eq!(pair.sent_by_a().datagrams, 5);
    assert!((62..94).contains(&time.0.as_secs()), "{time:?}");
}

#[test]
fn requests_beyond_the_window_wait() {
    for (window, in_flight) in [(1, 1), (4, 1)] {
        let mut pair = pair(Settings { window, ..Settings::default() }, 0.0, 1);
        pair.with_a(|robot, now| {
            for number in 0..20 {
                let request = Request::post("log", ContentFormat::TEXT, number.to_string());
                robot.endpoint.request(now, SERVER, request).unwrap();
            }
        });
        assert_eq!(pair.sent_by_a().datagrams, in_flight);
        pair.run_for(ms(10_000));
        assert_eq!(pair.a().responses().len(), 20);
        let order: Vec<_> = pair.b().requests.iter().map(|request| request.payload.clone()).collect();
        assert!(window > 1 || order == (0..20).map(|number| number.to_string()).collect::<Vec<_>>());
        let last = pair.a().events[19].0;
        assert!(if window == 1 { last == at(400) } else { last < at(250) }, "{last:?}");
    }
}

#[test]
fn a_ping_is_answered_by_a_reset() {
    let mut pair = pair(Settings::default(), 0.0, 1);
    let id = pair.with_a(|robot, now| robot.endpoint.ping(now, SERVER)).unwrap();
    pair.run_for(ms(100));
    assert_eq!(pair.a().events, [(at(20), Event::Pong { id })]);
    assert_eq!(pair.b().endpoint.peers(), 0, "a ping of an unknown sender needs no state");
}

#[test]
fn a_server_without_the_token_length_of_the_client_answers_it() {
    let client = Settings { token_octets: 0, ..Settings::default() };
    let mut pair = pair_of(client, Settings::default(), 0.0, 1);
    pair.with_a(|robot, now| robot.endpoint.request(now, SERVER, Request::get("none"))).unwrap();
    pair.run_for(ms(100));
    assert_eq!(pair.a().only_response().code, Code::NOT_FOUND);
}

#[test]
fn options_reach_the_owner_and_the_client_in_their_order() {
    let (mut client, mut server) = (Endpoint::new(Settings::default(), 1), Endpoint::new(Settings::default(), 2));
    let request = Request::post("a/b/c", ContentFormat::JSON, "{}")
        .with_query("first=1")
        .with_query("second=2")
        .with_uint(OptionNumber::ACCEPT, ContentFormat::JSON.0.into())
        .with_option(OptionNumber::IF_MATCH, &b"v1"[..])
        .with_option(OptionNumber::IF_NONE_MATCH, &b""[..]);
    client.request(at(0), SERVER, request).unwrap();
    server.handle_datagram(at(0), CLIENT, &sent(&mut client)[0]);
    let Some(Event::Request { id, request, observe: None }) = server.poll_event() else { panic!("no request") };
    assert_eq!((request.path_string().as_str(), request.path().count()), ("a/b/c", 3));
    assert_eq!(request.query().collect::<Vec<_>>(), ["first=1", "second=2"]);
    assert_eq!((request.accept(), request.content_format()), (Some(ContentFormat::JSON), Some(ContentFormat::JSON)));
    assert_eq!(request.options.get(OptionNumber::IF_MATCH).map(|value| &value[..]), Some(&b"v1"[..]));
    assert!(request.options.contains(OptionNumber::IF_NONE_MATCH));
    let mut created = Response::new(Code::CREATED);
    for (number, value) in [
        (OptionNumber::LOCATION_PATH, "x"),
        (OptionNumber::LOCATION_PATH, "y"),
        (OptionNumber::LOCATION_QUERY, "p=1"),
        (OptionNumber::LOCATION_QUERY, "q=2"),
    ] {
        created.options.add(number, value);
    }
    server.respond(at(0), id, created.clone());
    client.handle_datagram(at(0), SERVER, &sent(&mut server)[0]);
    assert!(matches!(client.poll_event(), Some(Event::Response { response, .. }) if response == created));
}

#[test]
fn a_cancelled_request_has_no_event() {
    let mut pair = pair(Settings::default(), 0.0, 1);
    let id = pair.with_a(|robot, now| robot.endpoint.request(now, SERVER, Request::get("slow"))).unwrap();
    pair.with_a(|robot: &mut Robot, now| robot.endpoint.cancel(now, id));
    pair.run_for(ms(60_000));
    assert_eq!(pair.a().events, []);
    assert!(pair.a().endpoint.counters().dropped(DropReason::UnknownToken) > 0);
}
