//! Bodies in blocks (RFC 7959).

#![allow(clippy::unwrap_used, reason = "in a test a panic is the failure")]

mod support;

use support::{CLIENT, SERVER, at, blob, ms, pair, pair_of, parse, sent};
use viaduct_coap::codec::{Block, BlockSize, Code, ContentFormat, MessageType, OptionNumber, Token, Writer};
use viaduct_coap::settings::{ADAPTIVE, AddressCheck, Limits, Notifications, Settings};
use viaduct_coap::{DropReason, Endpoint, Event, Failure, Request, Response};

fn adaptive() -> Settings {
    Settings { retransmission: ADAPTIVE, ..Settings::default() }
}

fn of_size(octets: usize) -> Settings {
    Settings { block_size: BlockSize::at_most(octets), ..adaptive() }
}

#[test]
fn a_body_of_100_kb_arrives_intact_at_25_percent_loss() {
    for seed in 1..4 {
        let mut pair = pair(adaptive(), 0.25, seed);
        let put = Request::put("map", ContentFormat::OCTET_STREAM, blob(100_000));
        pair.with_a(|robot, now| robot.endpoint.request(now, SERVER, put)).unwrap();
        pair.run_for(ms(200_000));
        assert_eq!(pair.a().only_response().code, Code::CHANGED);
        assert!(pair.b().values["map"] == blob(100_000));
        assert_eq!(pair.b().requests.len(), 1, "the handler receives the whole body once");

        pair.with_a(|robot, now| robot.endpoint.request(now, SERVER, Request::get("map"))).unwrap();
        pair.run_for(ms(200_000));
        let (_, response) = pair.a().responses().pop().unwrap();
        assert!(response.payload == blob(100_000) && response.content_format() == Some(ContentFormat::TEXT));
        assert_eq!(pair.a().endpoint.body_octets() + pair.b().endpoint.body_octets(), 0, "nothing remains");
    }
}

#[test]
fn bodies_at_the_limits_of_blocks_arrive() {
    for octets in [0, 1, 15, 16, 17, 32, 33, 160] {
        // Without the ping of the address check, which is a datagram more.
        let server = Settings { address_check: AddressCheck::Off, ..of_size(16) };
        let mut pair = pair_of(of_size(16), server, 0.0, 1);
        let put = Request::put("map", ContentFormat::OCTET_STREAM, blob(octets));
        pair.with_a(|robot, now| robot.endpoint.request(now, SERVER, put)).unwrap();
        pair.run_for(ms(2000));
        pair.with_a(|robot, now| robot.endpoint.request(now, SERVER, Request::get("map"))).unwrap();
        pair.run_for(ms(2000));
        assert_eq!(pair.b().values["map"], blob(octets));
        assert_eq!(pair.a().responses()[1].1.payload, blob(octets), "{octets}");
        let blocks = octets.div_ceil(16).max(1) as u64;
        assert_eq!(pair.sent_by_a().datagrams, 2 * blocks);
    }
}

#[test]
fn a_request_and_its_response_can_both_have_blocks() {
    let mut pair = pair_of(of_size(64), of_size(64), 0.1, 3);
    let post = Request::post("echo", ContentFormat::OCTET_STREAM, blob(1000));
    pair.with_a(|robot, now| robot.endpoint.request(now, SERVER, post)).unwrap();
    pair.run_for(ms(60_000));
    let response = pair.a().only_response();
    assert_eq!((response.code, response.payload), (Code::CHANGED, blob(1000)));
    assert_eq!(pair.b().requests.len(), 1);
}

#[test]
fn the_smaller_block_size_of_both_is_used() {
    for (client, server) in [(1024, 64), (64, 1024)] {
        let mut pair = pair_of(of_size(client), of_size(server), 0.0, 1);
        let put = Request::put("map", ContentFormat::OCTET_STREAM, blob(5000));
        pair.with_a(|robot, now| robot.endpoint.request(now, SERVER, put)).unwrap();
        pair.run_for(ms(10_000));
        assert_eq!(pair.b().values["map"], blob(5000));
        pair.with_a(|robot, now| robot.endpoint.request(now, SERVER, Request::get("map"))).unwrap();
        pair.run_for(ms(10_000));
        assert_eq!(pair.a().responses()[1].1.payload, blob(5000));
    }
}

#[test]
fn a_body_that_is_too_large_is_refused_with_the_limit() {
    let limits = Limits { body_octets: 10_000, ..Limits::default() };
    let mut pair = pair_of(adaptive(), Settings { limits, ..adaptive() }, 0.0, 1);
    let put = Request::put("map", ContentFormat::OCTET_STREAM, blob(20_000));
    pair.with_a(|robot, now| robot.endpoint.request(now, SERVER, put)).unwrap();
    pair.run_for(ms(2000));
    let response = pair.a().only_response();
    assert_eq!(
        (response.code, response.options.uint(OptionNumber::SIZE1)),
        (Code::REQUEST_ENTITY_TOO_LARGE, Some(10_000))
    );
    assert_eq!(pair.sent_by_a().datagrams, 1, "the first block tells the size");

    let mut pair = pair_of(Settings { limits, ..adaptive() }, adaptive(), 0.0, 1);
    let get = Request::get("blob").with_query("size=20000");
    let id = pair.with_a(|robot, now| robot.endpoint.request(now, SERVER, get)).unwrap();
    pair.run_for(ms(2000));
    assert!(pair.a().events.contains(&(pair.a().events[0].0, Event::Failed { id, failure: Failure::TooLarge })));
    assert_eq!(pair.a().endpoint.body_octets(), 0);
}

#[test]
fn a_body_in_one_message_that_is_too_large_is_refused_with_the_limit() {
    let limits = Limits { body_octets: 100, ..Limits::default() };
    let mut pair = pair_of(adaptive(), Settings { limits, ..adaptive() }, 0.0, 1);
    for (octets, code) in [(100, Code::CHANGED), (101, Code::REQUEST_ENTITY_TOO_LARGE)] {
        let put = Request::put("map", ContentFormat::OCTET_STREAM, blob(octets));
        pair.with_a(|robot, now| robot.endpoint.request(now, SERVER, put)).unwrap();
        pair.run_for(ms(100));
        assert_eq!(pair.a().responses().last().unwrap().1.code, code, "{octets} octets");
    }
}

#[test]
fn a_representation_that_changes_within_its_transfer_is_read_again() {
    let mut pair = pair_of(of_size(64), of_size(64), 0.0, 1);
    pair.with_b(|edge, now| edge.set(now, "map", vec![1; 1000]));
    pair.with_a(|robot, now| robot.endpoint.request(now, SERVER, Request::get("map"))).unwrap();
    pair.run_for(ms(100));
    // Another request for the same resource begins a new representation at the server.
    pair.with_b(|edge, now| edge.set(now, "map", vec![2; 1000]));
    pair.with_a(|robot, now| robot.endpoint.request(now, SERVER, Request::get("map"))).unwrap();
    pair.run_for(ms(10_000));
    let bodies: Vec<_> = pair.a().responses().into_iter().map(|(_, response)| response.payload).collect();
    assert_eq!(bodies.len(), 2);
    assert!(bodies.iter().all(|body| body.len() == 1000 && body.iter().all(|octet| *octet == body[0])), "{bodies:?}");
}

#[test]
fn a_client_without_an_address_check_receives_at_most_three_times_its_request() {
    for check in [AddressCheck::SmallBlocks, AddressCheck::Ping, AddressCheck::Echo, AddressCheck::Off] {
        let limits = Limits { unverified_octets: 0, ..Limits::default() };
        let server = Settings { address_check: check, limits, ..adaptive() };
        let mut endpoint = Endpoint::new(server, 1);
        let request = message(MessageType::Confirmable, Code::GET, 1, &[(OptionNumber::URI_PATH, b"x")], b"");
        endpoint.handle_datagram(at(0), CLIENT, &request);
        let Some(Event::Request { id, .. }) = endpoint.poll_event() else { panic!("no request") };
        endpoint.respond(at(0), id, Response::content(ContentFormat::TEXT, vec![b'x'; 900]));
        let answers = sent(&mut endpoint);
        let octets: usize = answers.iter().map(bytes::Bytes::len).sum();
        match check {
            AddressCheck::Off => assert!(octets > 900),
            AddressCheck::SmallBlocks => {
                let response = answers.iter().map(parse).find(|message| message.code == Code::CONTENT).unwrap();
                let block = response.options().get(OptionNumber::BLOCK2).and_then(Block::decode).unwrap();
                assert!(octets <= 136 + 4 && block.more && block.size == BlockSize::at_most(64), "{octets} {block:?}");
                // A request for a large block does not help.
                let value = Block { number: 0, more: false, size: BlockSize::LARGEST }.value() as u8;
                let options = [(OptionNumber::URI_PATH, &b"x"[..]), (OptionNumber::BLOCK2, &[0x10 | value][..])];
                endpoint.handle_datagram(
                    at(1),
                    CLIENT,
                    &message(MessageType::Confirmable, Code::GET, 2, &options, b""),
                );
                let octets: usize = sent(&mut endpoint).iter().map(bytes::Bytes::len).sum();
                assert!(octets <= 136, "{octets}");
                let ping = answers.iter().map(parse).find(|message| message.code == Code::EMPTY).unwrap();
                let [high, low] = ping.id.to_be_bytes();
                endpoint.handle_datagram(at(2), CLIENT, &vec![0x70, 0, high, low].into());
                let options = [(OptionNumber::URI_PATH, &b"x"[..])];
                endpoint.handle_datagram(
                    at(3),
                    CLIENT,
                    &message(MessageType::Confirmable, Code::GET, 3, &options, b""),
                );
                let Some(Event::Request { id, .. }) = endpoint.poll_event() else { panic!("no request") };
                endpoint.respond(at(3), id, Response::content(ContentFormat::TEXT, vec![b'x'; 900]));
                assert!(sent(&mut endpoint)[0].len() > 900, "verified");
            }
            AddressCheck::Echo => {
                let answer = parse(&answers[0]);
                assert_eq!(answer.code, Code::UNAUTHORIZED);
                assert!(octets <= 3 * request.len(), "{octets}");
                let echo = answer.options().get(OptionNumber::ECHO).unwrap();
                let options = [(OptionNumber::URI_PATH, &b"x"[..]), (OptionNumber::ECHO, echo)];
                endpoint.handle_datagram(
                    at(1),
                    CLIENT,
                    &message(MessageType::Confirmable, Code::GET, 2, &options, b""),
                );
                let Some(Event::Request { id, .. }) = endpoint.poll_event() else { panic!("no request") };
                endpoint.respond(at(1), id, Response::content(ContentFormat::TEXT, vec![b'x'; 900]));
                assert_eq!(parse(&sent(&mut endpoint)[0]).code, Code::CONTENT);
            }
            AddressCheck::Ping => {
                assert_eq!(answers.iter().map(bytes::Bytes::len).collect::<Vec<_>>(), [4, 4]);
                let ping = parse(&answers[1]);
                assert_eq!((ping.kind, ping.code), (MessageType::Confirmable, Code::EMPTY));
                let [high, low] = ping.id.to_be_bytes();
                endpoint.handle_datagram(at(1), CLIENT, &vec![0x70, 0, high, low].into());
                let response = &sent(&mut endpoint)[0];
                assert_eq!((parse(response).kind, parse(response).code), (MessageType::Confirmable, Code::CONTENT));
            }
        }
    }
}

#[test]
fn a_gap_between_blocks_is_refused() {
    let mut server = Endpoint::new(Settings::default(), 1);
    let mut put = |number: u32, more: bool, id: u16| {
        let block = Block { number, more, size: BlockSize::at_most(16) }.value();
        let block = [(OptionNumber::URI_PATH, &b"x"[..]), (OptionNumber::BLOCK1, &[block as u8][..])];
        let datagram = message(MessageType::Confirmable, Code::PUT, id, &block, &[0; 16]);
        server.handle_datagram(at(0), CLIENT, &datagram);
        if let Some(Event::Request { id, .. }) = server.poll_event() {
            server.respond(at(0), id, Response::new(Code::CHANGED));
        }
        parse(&sent(&mut server)[0]).code
    };
    assert_eq!(put(1, true, 1), Code::REQUEST_ENTITY_INCOMPLETE, "without the first block");
    assert_eq!(put(0, true, 2), Code::CONTINUE);
    assert_eq!(put(2, true, 3), Code::REQUEST_ENTITY_INCOMPLETE);
    assert_eq!(put(1, true, 4), Code::CONTINUE, "the transfer goes on after a gap");
    assert_eq!(put(2, false, 5), Code::CHANGED);
    assert_eq!(put(3, false, 6), Code::REQUEST_ENTITY_INCOMPLETE, "the transfer is over");
}

#[test]
fn a_server_that_asks_for_more_than_the_body_ends_the_request() {
    let mut client = Endpoint::new(of_size(16), 1);
    let id = client.request(at(0), SERVER, Request::put("x", ContentFormat::OCTET_STREAM, blob(24))).unwrap();
    for number in 0..2_u32 {
        let datagrams = sent(&mut client);
        let request = parse(&datagrams[0]);
        let block = Block { number, more: true, size: BlockSize::SMALLEST }.value();
        let mut buffer = [0; 32];
        let acknowledgement = MessageType::Acknowledgement;
        let mut writer =
            Writer::datagram(&mut buffer, acknowledgement, Code::CONTINUE, request.id, &request.token).unwrap();
        writer.option(OptionNumber::BLOCK1, &[block as u8]).unwrap();
        let octets = writer.finish();
        client.handle_datagram(at(0), SERVER, &bytes::Bytes::copy_from_slice(&buffer[..octets]));
    }
    assert!(sent(&mut client).is_empty(), "a request without a block would be another one");
    assert_eq!(client.poll_event(), Some(Event::Failed { id, failure: Failure::Blocks }));
}

#[test]
fn unfinished_transfers_are_bounded_and_expire() {
    let limits = Limits { bodies_octets: 64 << 10, body_octets: 32 << 10, bodies_per_peer: 2, ..Limits::default() };
    let mut server = Endpoint::new(Settings { limits, ..Settings::default() }, 1);
    let mut id = 0;
    for peer in 0..100_u16 {
        let mut from = CLIENT;
        from.set_port(peer);
        for path in [b"a", b"b", b"c"] {
            for number in 0..20_u32 {
                id += 1;
                let block = Block { number, more: true, size: BlockSize::LARGEST }.value().to_be_bytes();
                let options = [(OptionNumber::URI_PATH, &path[..]), (OptionNumber::BLOCK1, &block[1..])];
                let put = message(MessageType::Confirmable, Code::PUT, id, &options, &[0; 1024]);
                server.handle_datagram(at(0), from, &put);
                assert!(server.body_octets() <= 64 << 10);
            }
        }
    }
    assert!(server.body_octets() > 0);
    server.handle_timeout(at(61_000));
    assert_eq!(server.body_octets(), 0);
    assert!(sent(&mut server).iter().any(|answer| parse(answer).code == Code::SERVICE_UNAVAILABLE));
}

fn message(kind: MessageType, code: Code, id: u16, options: &[(OptionNumber, &[u8])], payload: &[u8]) -> bytes::Bytes {
    let mut buffer = [0; 1200];
    let mut writer = Writer::datagram(&mut buffer, kind, code, id, &Token::new(b"t").unwrap()).unwrap();
    for (number, value) in options {
        writer.option(*number, value).unwrap();
    }
    writer.payload(payload).unwrap();
    let length = writer.finish();
    buffer[..length].to_vec().into()
}

#[test]
fn duplicates_of_a_request_do_not_amplify_an_attack() {
    let mut endpoint = Endpoint::new(adaptive(), 1);
    let request = message(MessageType::Confirmable, Code::GET, 1, &[(OptionNumber::URI_PATH, b"x")], b"");
    for _ in 0..1000 {
        endpoint.handle_datagram(at(0), CLIENT, &request);
        if let Some(Event::Request { id, .. }) = endpoint.poll_event() {
            endpoint.respond(at(0), id, Response::content(ContentFormat::TEXT, vec![b'x'; 900]));
        }
    }
    let octets: usize = sent(&mut endpoint).iter().map(bytes::Bytes::len).sum();
    let allowed = Limits::default().unverified_octets + 3 * 1000 * request.len();
    assert!((900..=allowed + 4).contains(&octets), "{octets} octets, {allowed} are allowed");
    assert!(endpoint.counters().dropped(DropReason::Unverified) > 900);
}

#[test]
fn notifications_do_not_amplify_an_attack() {
    for (check, confirmable) in [AddressCheck::SmallBlocks, AddressCheck::Ping, AddressCheck::Echo]
        .into_iter()
        .flat_map(|check| [(check, true), (check, false)])
    {
        let notifications = Notifications { confirmable, ..Notifications::default() };
        let mut endpoint = Endpoint::new(Settings { address_check: check, notifications, ..adaptive() }, 1);
        let options = [(OptionNumber::OBSERVE, &b""[..]), (OptionNumber::URI_PATH, b"x")];
        let request = message(MessageType::Confirmable, Code::GET, 1, &options, b"");
        endpoint.handle_datagram(at(0), CLIENT, &request);
        let Some(Event::Request { id, observe, .. }) = endpoint.poll_event() else { panic!("no request") };
        endpoint.respond_observed(at(0), id, Response::content(ContentFormat::TEXT, "x"));
        let mut datagrams = sent(&mut endpoint);
        for second in 1..300 {
            endpoint.notify(at(second * 1000), observe.unwrap(), Response::content(ContentFormat::TEXT, vec![1; 900]));
            endpoint.handle_timeout(at(second * 1000));
            datagrams.extend(sent(&mut endpoint));
        }
        let (pings, others): (Vec<_>, Vec<_>) = datagrams.iter().partition(|datagram| datagram.len() == 4);
        let octets: usize = others.iter().map(|datagram| datagram.len()).sum();
        let allowed = Limits::default().unverified_octets + 3 * request.len();
        assert!((900..=allowed).contains(&octets), "{check:?} {confirmable}: {octets} octets, {allowed} are allowed");
        assert!((1..200).contains(&pings.len()), "{check:?} {confirmable}: {} pings", pings.len());
    }
}

#[test]
fn an_observer_that_answers_the_ping_receives_further_notifications() {
    let notifications = Notifications { confirmable: false, ..Notifications::default() };
    let mut endpoint = Endpoint::new(Settings { notifications, ..adaptive() }, 1);
    let options = [(OptionNumber::OBSERVE, &b""[..]), (OptionNumber::URI_PATH, b"x")];
    endpoint.handle_datagram(at(0), CLIENT, &message(MessageType::Confirmable, Code::GET, 1, &options, b""));
    let Some(Event::Request { id, observe, .. }) = endpoint.poll_event() else { panic!("no request") };
    let (observation, state) = (observe.unwrap(), Response::content(ContentFormat::TEXT, vec![1; 900]));
    endpoint.respond_observed(at(0), id, Response::content(ContentFormat::TEXT, "x"));
    (0..10).for_each(|_| endpoint.notify(at(0), observation, state.clone()));
    let datagrams = sent(&mut endpoint);
    assert!(datagrams.iter().filter(|datagram| datagram.len() > 900).count() < 5);
    let ping = datagrams.iter().map(parse).find(|message| message.code == Code::EMPTY).unwrap();
    let [high, low] = ping.id.to_be_bytes();
    endpoint.handle_datagram(at(10), CLIENT, &vec![0x70, 0, high, low].into());
    (0..10).for_each(|_| endpoint.notify(at(20), observation, state.clone()));
    assert_eq!(sent(&mut endpoint).len(), 10);
}

#[test]
fn an_address_is_not_verified_by_guessing_message_ids() {
    let mut endpoint = Endpoint::new(adaptive(), 1);
    let get = |id| message(MessageType::Confirmable, Code::GET, id, &[(OptionNumber::URI_PATH, b"x")], b"");
    let answer = |endpoint: &mut Endpoint, id| {
        endpoint.handle_datagram(at(0), CLIENT, &get(id));
        while let Some(event) = endpoint.poll_event() {
            if let Event::Request { id, .. } = event {
                endpoint.respond(at(0), id, Response::content(ContentFormat::TEXT, vec![b'x'; 900]));
            }
        }
        sent(endpoint)
    };
    assert!(answer(&mut endpoint, 1).iter().any(|datagram| datagram.len() == 4), "a ping");
    for id in 0..=u16::MAX {
        let [high, low] = id.to_be_bytes();
        endpoint.handle_datagram(at(0), CLIENT, &vec![0x70, 0, high, low].into());
    }
    // The guesses have earned the address some octets. Without more of them, its responses become small.
    let longest = (2..2000).map(|id| answer(&mut endpoint, id).iter().map(bytes::Bytes::len).max().unwrap_or(0)).last();
    assert!(longest.unwrap() <= 136, "{longest:?}");
}
