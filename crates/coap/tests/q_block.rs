//! Bodies in sets of non-confirmable messages (RFC 9177).

#![allow(clippy::unwrap_used, reason = "in a test a panic is the failure")]

mod support;

use support::{CLIENT, SERVER, at, blob, ms, pair, pair_of, parse, sent};
use viaduct_coap::codec::{Block, BlockSize, Code, ContentFormat, Message, MessageType, OptionNumber, Token, Writer};
use viaduct_coap::settings::{ADAPTIVE, AddressCheck, Limits, Settings};
use viaduct_coap::{Endpoint, Event, Request, Response};

fn settings(q_block: bool) -> Settings {
    Settings { retransmission: ADAPTIVE, q_block, ..Settings::default() }
}

/// Returns the times in ms of a PUT and a GET of 100 kB.
fn times(q_block: bool, loss: f64, seed: u64) -> [u128; 2] {
    // Without the check of the address, which takes seconds if its ping is lost.
    let server = Settings { address_check: AddressCheck::Off, ..settings(q_block) };
    let mut pair = pair_of(settings(q_block), server, loss, seed);
    // Small requests measure the round trip.
    for _ in 0..20 {
        pair.with_a(|robot, now| robot.endpoint.request(now, SERVER, Request::get("x"))).unwrap();
        pair.run_for(ms(5_000));
    }
    let put = Request::put("map", ContentFormat::OCTET_STREAM, blob(100_000));
    let requests = [put, Request::get("map")];
    let times = requests.map(|request| {
        let (start, before) = (pair.now(), pair.a().events.len());
        pair.with_a(|robot, now| robot.endpoint.request(now, SERVER, request)).unwrap();
        pair.run_for(ms(25_000));
        let (end, event) = pair.a().events[before].clone();
        assert_eq!(pair.a().events.len(), before + 1);
        let Event::Response { response, .. } = event else { panic!("{event:?}") };
        assert!(response.code == Code::CHANGED || response.payload == blob(100_000), "{:?}", response.code);
        end.since(start).as_millis()
    });
    assert!(pair.b().values["map"] == blob(100_000));
    let puts = pair.b().requests.iter().filter(|request| request.method == Code::PUT).count();
    assert_eq!(puts, 1, "the handler receives the whole body once");
    pair.run_for(ms(100_000));
    assert_eq!(pair.a().endpoint.body_octets() + pair.b().endpoint.body_octets(), 0);
    times
}

#[test]
fn sets_are_faster_than_blocks_with_and_without_loss() {
    for (loss, seed) in [(0.0, 1), (0.1, 2), (0.25, 3), (0.25, 4)] {
        let (sets, blocks) = (times(true, loss, seed), times(false, loss, seed));
        assert!(sets[0] < blocks[0] && sets[1] < blocks[1], "loss {loss}: {sets:?} ms, {blocks:?} ms with Block");
        assert!(loss > 0.0 || sets.iter().all(|sets| *sets < 400), "{sets:?}");
    }
}

#[test]
fn a_peer_without_q_block_receives_blocks() {
    for (client, server) in [(true, false), (false, true)] {
        let mut pair = pair_of(settings(client), settings(server), 0.1, 1);
        let put = Request::put("map", ContentFormat::OCTET_STREAM, blob(20_000));
        pair.with_a(|robot, now| robot.endpoint.request(now, SERVER, put)).unwrap();
        pair.run_for(ms(60_000));
        pair.with_a(|robot, now| robot.endpoint.request(now, SERVER, Request::get("map"))).unwrap();
        pair.run_for(ms(60_000));
        assert!(pair.b().values["map"] == blob(20_000));
        assert!(pair.a().responses().last().unwrap().1.payload == blob(20_000));
    }
}

#[test]
fn a_peer_that_ignores_or_rejects_the_option_receives_blocks() {
    // Californium ignores the critical option. libcoap repeats it in its rejection.
    for (code, options) in [(Code::CONTENT, &[][..]), (Code::BAD_OPTION, &[(OptionNumber::Q_BLOCK2, &b"\x06"[..])])] {
        let mut client = Endpoint::new(settings(true), 1);
        let put = Request::put("map", ContentFormat::OCTET_STREAM, blob(20_000));
        client.request(at(0), SERVER, put).unwrap();
        let probe = sent(&mut client).remove(0);
        let probe = parse(&probe);
        assert!(probe.options().get(OptionNumber::Q_BLOCK2).is_some());
        client.handle_datagram(at(10), SERVER, &answer(&probe, code, options));
        let first = sent(&mut client);
        assert_eq!(first.len(), 1);
        let first = parse(&first[0]);
        assert_eq!((first.kind, first.code), (MessageType::Confirmable, Code::PUT));
        assert!(first.options().get(OptionNumber::Q_BLOCK1).is_none());
        let block = first.options().get(OptionNumber::BLOCK1).and_then(Block::decode).unwrap();
        assert!(block.number == 0 && block.more);
    }
}

/// Returns the acknowledgement of a request with a response.
fn answer(request: &Message<'_>, code: Code, options: &[(OptionNumber, &[u8])]) -> bytes::Bytes {
    let mut buffer = [0; 64];
    let kind = MessageType::Acknowledgement;
    let mut writer = Writer::datagram(&mut buffer, kind, code, request.id, &request.token).unwrap();
    for (number, value) in options {
        writer.option(*number, value).unwrap();
    }
    writer.payload(b"</map>").unwrap();
    let length = writer.finish();
    buffer[..length].to_vec().into()
}

#[test]
fn small_bodies_and_other_requests_are_not_affected() {
    let mut pair = pair(settings(true), 0.0, 1);
    pair.with_b(|edge, now| edge.set(now, "pose", "1"));
    pair.with_a(|robot, now| robot.endpoint.observe(now, SERVER, Request::get("pose"))).unwrap();
    for request in [
        Request::put("a", ContentFormat::TEXT, "1"),
        Request::get("a"),
        Request::get("none"),
        Request::new(Code::DELETE, "a"),
    ] {
        pair.with_a(|robot, now| robot.endpoint.request(now, SERVER, request)).unwrap();
        pair.run_for(ms(1000));
    }
    let codes: Vec<Code> = pair.a().responses().iter().map(|(_, response)| response.code).collect();
    assert_eq!(codes, [Code::CHANGED, Code::CONTENT, Code::NOT_FOUND, Code::DELETED]);
    assert_eq!(pair.a().notifications(), ["1"]);
}

#[test]
fn a_server_asks_for_missing_blocks_at_the_end_of_a_set_and_after_a_timeout() {
    let mut server = Endpoint::new(Settings { address_check: AddressCheck::Off, ..settings(true) }, 1);
    for number in [0, 1, 3, 4, 5, 6, 7, 8] {
        put(&mut server, number, true);
    }
    assert!(sent(&mut server).is_empty());
    put(&mut server, 9, true);
    let answers = sent(&mut server);
    assert_eq!(parse(&answers[0]).code, Code::REQUEST_ENTITY_INCOMPLETE);
    assert_eq!(parse(&answers[0]).payload, [2]);
    put(&mut server, 2, true);
    let answer = sent(&mut server).remove(0);
    let block = parse(&answer).options().get(OptionNumber::Q_BLOCK1).and_then(Block::decode).unwrap();
    assert_eq!((parse(&answer).code, block.number), (Code::CONTINUE, 9));

    put(&mut server, 11, false);
    assert_eq!(parse(&sent(&mut server)[0]).payload, [10]);
    server.handle_timeout(at(5000));
    assert_eq!(parse(&sent(&mut server)[0]).payload, [10]);
    put(&mut server, 10, true);
    let Some(Event::Request { id, request, .. }) = server.poll_event() else { panic!("no request") };
    assert_eq!(request.payload.len(), 11 * 16 + 16);
    server.respond(at(5000), id, Response::new(Code::CHANGED));
    assert_eq!(parse(&sent(&mut server)[0]).code, Code::CHANGED);
    assert_eq!(server.body_octets(), 0);
}

#[test]
fn unfinished_sets_are_bounded_and_expire() {
    let limits = Limits { bodies_octets: 4096, body_octets: 2048, bodies_per_peer: 1, ..Limits::default() };
    let mut server = Endpoint::new(Settings { limits, ..settings(true) }, 1);
    for number in 0..1000 {
        put(&mut server, number, true);
        // The limit includes the memory that each block needs beside its payload.
        assert!(server.body_octets() <= 4096);
    }
    sent(&mut server);
    let mut seconds = 0;
    while server.body_octets() > 0 {
        seconds += 1;
        server.handle_timeout(at(seconds * 1000));
        assert!(seconds < 200);
    }
}

#[test]
fn a_client_asks_for_the_blocks_that_are_missing() {
    let mut server = Endpoint::new(Settings { address_check: AddressCheck::Off, ..settings(true) }, 1);
    let ask = |server: &mut Endpoint, id: u16, blocks: &[(u32, bool)]| {
        let values: Vec<[u8; 2]> = blocks
            .iter()
            .map(|(number, more)| {
                (Block { number: *number, more: *more, size: BlockSize::SMALLEST }.value() as u16).to_be_bytes()
            })
            .collect();
        let options = std::iter::once((OptionNumber::URI_PATH, &b"x"[..]));
        let options: Vec<_> = options.chain(values.iter().map(|value| (OptionNumber::Q_BLOCK2, &value[..]))).collect();
        server.handle_datagram(at(0), CLIENT, &message(Code::GET, id, &options, b""));
        if let Some(Event::Request { id, .. }) = server.poll_event() {
            server.respond(at(0), id, Response::content(ContentFormat::TEXT, blob(16 * 25)));
        }
        let number = |datagram: &bytes::Bytes| {
            parse(datagram).options().get(OptionNumber::Q_BLOCK2).and_then(Block::decode).map(|block| block.number)
        };
        sent(server).iter().filter_map(number).collect::<Vec<u32>>()
    };
    // The body is smaller than a block of the server, so it is sent whole, without a block size that it exceeds.
    for more in [true, false] {
        let small = ask(&mut server, 1 + u16::from(more), &[(0, more)]);
        assert!(small.is_empty(), "{small:?}");
    }
    let mut server = Endpoint::new(
        Settings { address_check: AddressCheck::Off, block_size: BlockSize::SMALLEST, ..settings(true) },
        1,
    );
    assert_eq!(ask(&mut server, 1, &[(0, true)]), (0..10).collect::<Vec<_>>());
    assert_eq!(ask(&mut server, 2, &[(3, false), (7, false)]), [3, 7]);
    assert_eq!(ask(&mut server, 3, &[(10, true)]), (10..20).collect::<Vec<_>>());
    assert_eq!(ask(&mut server, 4, &[(20, true)]), (20..25).collect::<Vec<_>>());
}

fn put(server: &mut Endpoint, number: u32, more: bool) {
    let block = Block { number, more, size: BlockSize::SMALLEST }.value().to_be_bytes();
    let options =
        [(OptionNumber::URI_PATH, &b"x"[..]), (OptionNumber::Q_BLOCK1, &block[1..]), (OptionNumber::REQUEST_TAG, b"r")];
    let id = server.counters().received as u16;
    server.handle_datagram(at(0), CLIENT, &message(Code::PUT, id, &options, &[0; 16]));
}

fn message(code: Code, id: u16, options: &[(OptionNumber, &[u8])], payload: &[u8]) -> bytes::Bytes {
    let mut buffer = [0; 1200];
    let token = Token::new(&id.to_be_bytes()).unwrap();
    let mut writer = Writer::datagram(&mut buffer, MessageType::NonConfirmable, code, id, &token).unwrap();
    for (number, value) in options {
        writer.option(*number, value).unwrap();
    }
    writer.payload(payload).unwrap();
    let length = writer.finish();
    buffer[..length].to_vec().into()
}
