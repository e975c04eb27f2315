//! The message layer octet by octet: examples of RFC 7252, appendix A, malformed messages, duplicates, floods.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the failure")]

mod support;

use bytes::Bytes;
use support::{CLIENT, SERVER, at, parse, sent};
use viaduct_coap::codec::{
    Code, ContentFormat, Frame, FrameError, Message, MessageType, OptionNumber, ParseError, Token, WriteError, Writer,
};
use viaduct_coap::settings::{Limits, Settings};
use viaduct_coap::{DropReason, Endpoint, Event, Failure, Request, Resource, Response};

/// Messages of RFC 7252, appendix A: type, code, message ID, token, path, payload, octets.
type Example = (MessageType, Code, u16, &'static [u8], Option<&'static str>, &'static str, &'static [u8]);

const EXAMPLES: [Example; 8] = [
    // Figures 16 and 17.
    (MessageType::Confirmable, Code::GET, 0x7D34, b"", Some("temperature"), "", b"\x40\x01\x7d\x34\xbbtemperature"),
    (MessageType::Acknowledgement, Code::CONTENT, 0x7D34, b"", None, "22.3 C", b"\x60\x45\x7d\x34\xff22.3 C"),
    // Figures 17 and 18: the same with a token.
    (
        MessageType::Confirmable,
        Code::GET,
        0x7D35,
        b"\x20",
        Some("temperature"),
        "",
        b"\x41\x01\x7d\x35\x20\xbbtemperature",
    ),
    (MessageType::Acknowledgement, Code::CONTENT, 0x7D35, b"\x20", None, "22.3 C", b"\x61\x45\x7d\x35\x20\xff22.3 C"),
    // Figures 21 to 24: separate and non-confirmable responses.
    (MessageType::Acknowledgement, Code::EMPTY, 0x7D38, b"", None, "", b"\x60\x00\x7d\x38"),
    (MessageType::Confirmable, Code::CONTENT, 0xAD7B, b"\x53", None, "22.3 C", b"\x41\x45\xad\x7b\x53\xff22.3 C"),
    (MessageType::Reset, Code::EMPTY, 0xAD7B, b"", None, "", b"\x70\x00\xad\x7b"),
    (MessageType::NonConfirmable, Code::CONTENT, 0xAD7C, b"\x74", None, "22.3 C", b"\x51\x45\xad\x7c\x74\xff22.3 C"),
];

#[test]
fn the_examples_of_the_rfc_are_written_and_parsed() {
    for (kind, code, id, token, path, payload, octets) in EXAMPLES {
        let mut buffer = [0; 64];
        let token = Token::new(token).unwrap();
        let mut writer = Writer::datagram(&mut buffer, kind, code, id, &token).unwrap();
        if let Some(path) = path {
            writer.option(OptionNumber::URI_PATH, path.as_bytes()).unwrap();
        }
        writer.payload(payload.as_bytes()).unwrap();
        let length = writer.finish();
        assert_eq!(&buffer[..length], octets);
        let message = Message::parse(octets).unwrap();
        assert_eq!((message.kind, message.code, message.id, message.token), (kind, code, id, token));
        assert_eq!(message.options().get(OptionNumber::URI_PATH), path.map(str::as_bytes));
        assert_eq!(message.payload, payload.as_bytes());
    }
}

#[test]
fn options_of_any_length_and_distance_are_written_and_parsed() {
    let mut buffer = vec![0; 140_000];
    let long = vec![7; 65_804];
    let options: [(u16, &[u8]); 7] = [
        (0, b""),
        (12, &long[..12]),
        (25, &long[..13]),
        (294, &long[..268]),
        (563, &long[..269]),
        (832, &long),
        (65_535, b"x"),
    ];
    let mut writer = Writer::datagram(&mut buffer, MessageType::NonConfirmable, Code::GET, 0, &Token::EMPTY).unwrap();
    for (number, value) in options {
        writer.option(OptionNumber(number), value).unwrap();
    }
    assert_eq!(writer.option(OptionNumber(1), b""), Err(WriteError::Order));
    assert_eq!(writer.option(OptionNumber(65_535), &[0; 65_805]), Err(WriteError::Length));
    let length = writer.finish();
    let parsed: Vec<(u16, Vec<u8>)> = Message::parse(&buffer[..length])
        .unwrap()
        .options()
        .map(|(number, value)| (number.0, value.to_vec()))
        .collect();
    assert!(
        parsed.iter().zip(options).all(|((a, value), (b, wanted))| *a == b && value == wanted) && parsed.len() == 7
    );
    let mut small = [0; 5];
    let mut writer = Writer::datagram(&mut small, MessageType::NonConfirmable, Code::GET, 0, &Token::EMPTY).unwrap();
    assert_eq!(writer.option(OptionNumber::URI_PATH, b"x"), Err(WriteError::Full));
}

#[test]
fn options_have_the_properties_of_their_numbers() {
    // RFC 7252, table 4; RFC 7641, 2; RFC 7959, table 1; RFC 9177, table 1; RFC 9175, table 1; RFC 7967, 2.
    let of = |critical, is_unsafe, no_cache_key, repeatable| (critical, is_unsafe, no_cache_key, repeatable);
    for (number, expected) in [
        (OptionNumber::IF_MATCH, of(true, false, false, true)),
        (OptionNumber::URI_HOST, of(true, true, false, false)),
        (OptionNumber::ETAG, of(false, false, false, true)),
        (OptionNumber::IF_NONE_MATCH, of(true, false, false, false)),
        (OptionNumber::OBSERVE, of(false, true, false, false)),
        (OptionNumber::URI_PORT, of(true, true, false, false)),
        (OptionNumber::LOCATION_PATH, of(false, false, false, true)),
        (OptionNumber::URI_PATH, of(true, true, false, true)),
        (OptionNumber::CONTENT_FORMAT, of(false, false, false, false)),
        (OptionNumber::MAX_AGE, of(false, true, false, false)),
        (OptionNumber::URI_QUERY, of(true, true, false, true)),
        (OptionNumber::ACCEPT, of(true, false, false, false)),
        (OptionNumber::LOCATION_QUERY, of(false, false, false, true)),
        (OptionNumber::BLOCK2, of(true, true, false, false)),
        (OptionNumber::BLOCK1, of(true, true, false, false)),
        (OptionNumber::SIZE2, of(false, false, true, false)),
        (OptionNumber::Q_BLOCK1, of(true, true, false, false)),
        (OptionNumber::Q_BLOCK2, of(true, true, false, true)),
        (OptionNumber::PROXY_URI, of(true, true, false, false)),
        (OptionNumber::PROXY_SCHEME, of(true, true, false, false)),
        (OptionNumber::SIZE1, of(false, false, true, false)),
        (OptionNumber::ECHO, of(false, false, true, false)),
        (OptionNumber::NO_RESPONSE, of(false, true, false, false)),
        (OptionNumber::REQUEST_TAG, of(false, false, false, true)),
    ] {
        let limit = number.limit().unwrap();
        let found = (number.is_critical(), number.is_unsafe(), number.is_no_cache_key(), limit.repeatable);
        assert_eq!(found, expected, "{number:?}");
    }
}

/// Malformed messages after the first octet, which holds version, type and token length.
const MALFORMED: [(u8, &[u8], ParseError); 9] = [
    (0x09, &[1, 0, 1], ParseError::TokenLength),
    (0x04, &[1, 0, 1, 9, 9], ParseError::Truncated),
    (0x01, &[0, 0, 1, 9], ParseError::EmptyWithContent),
    (0x00, &[0, 0, 1, 0xFF, 1], ParseError::EmptyWithContent),
    (0x00, &[0x21, 0, 1], ParseError::Code),
    (0x00, &[1, 0, 1, 0xF1, 1], ParseError::OptionReserved),
    (0x00, &[1, 0, 1, 0x1F, 1], ParseError::OptionReserved),
    (0x00, &[1, 0, 1, 0xB5, 1, 2], ParseError::OptionTruncated),
    (0x00, &[1, 0, 1, 0xFF], ParseError::PayloadMissing),
];

#[test]
fn a_malformed_confirmable_message_is_rejected_and_others_are_dropped() {
    for (first, rest, error) in MALFORMED {
        for (kind, answered) in [(0_u8, true), (1, false), (2, false), (3, false)] {
            let datagram = [&[0x40 | kind << 4 | first][..], rest].concat();
            if kind == 0 {
                assert_eq!(Message::parse(&datagram), Err(error), "{datagram:02x?}");
            }
            assert!(Message::parse(&datagram).is_err());
            // From an unknown sender, and from one with state.
            for known in [false, true] {
                let mut server = Endpoint::new(Settings::default(), 1);
                if known {
                    server.handle_datagram(at(0), CLIENT, &Bytes::from_static(b"\x40\x01\0\x07\xb1x"));
                    server.poll_event().unwrap();
                }
                server.handle_datagram(at(0), CLIENT, &datagram.clone().into());
                let answers = sent(&mut server);
                let expected = if answered { vec![vec![0x70, 0, 0, 1]] } else { vec![] };
                assert_eq!(answers, expected, "{datagram:02x?}");
                assert_eq!(server.counters().dropped(DropReason::Malformed), 1);
            }
        }
    }
    for datagram in [&b""[..], &b"\x40\x01\0"[..], &b"\x80\x01\0\x01"[..], &b"\0\x01\0\x01"[..]] {
        let mut server = Endpoint::new(Settings::default(), 1);
        server.handle_datagram(at(0), CLIENT, &Bytes::copy_from_slice(datagram));
        assert!(sent(&mut server).is_empty(), "too short or another version: dropped without an answer");
    }
}

#[test]
fn each_duplicate_has_the_same_answer_and_the_owner_sees_the_request_once() {
    let mut server = Endpoint::new(Settings::default(), 1);
    let post = Bytes::from_static(b"\x41\x02\0\x07t\xb1x");
    server.handle_datagram(at(0), CLIENT, &post);
    server.handle_datagram(at(1), CLIENT, &post);
    assert!(sent(&mut server).is_empty(), "a duplicate before the answer");
    let Some(Event::Request { id, .. }) = server.poll_event() else { panic!("no request") };
    server.respond(at(2), id, Response::new(Code::CHANGED));
    let first = sent(&mut server);
    for ms in [3, 1000, 246_000] {
        server.handle_datagram(at(ms), CLIENT, &post);
        assert_eq!(sent(&mut server), first);
    }
    assert!(server.poll_event().is_none());
    // Another token: a new message of a client that reuses its IDs.
    server.handle_datagram(at(246_500), CLIENT, &Bytes::from_static(b"\x41\x02\0\x07u\xb1x"));
    assert!(server.poll_event().is_some());
    let mut server = Endpoint::new(Settings::default(), 1);
    server.handle_datagram(at(0), CLIENT, &post);
    server.poll_event().unwrap();
    server.handle_datagram(at(247_001), CLIENT, &post);
    assert!(server.poll_event().is_some(), "after EXCHANGE_LIFETIME");
}

#[test]
fn an_answer_after_the_processing_delay_is_separate_and_sent_until_it_is_acknowledged() {
    let mut server = Endpoint::new(Settings::default(), 1);
    let get = Bytes::from_static(b"\x41\x01\0\x07t\xb1x");
    server.handle_datagram(at(0), CLIENT, &get);
    let Some(Event::Request { id, .. }) = server.poll_event() else { panic!("no request") };
    server.handle_timeout(at(25));
    assert_eq!(sent(&mut server), [&b"\x60\0\0\x07"[..]]);
    server.handle_datagram(at(30), CLIENT, &get);
    assert_eq!(sent(&mut server), [&b"\x60\0\0\x07"[..]], "a duplicate is acknowledged again");
    server.respond(at(100), id, Response::content(ContentFormat::TEXT, "1"));
    let response = sent(&mut server).remove(0);
    assert_eq!((parse(&response).kind, parse(&response).token.as_slice()), (MessageType::Confirmable, &b"t"[..]));
    server.handle_timeout(server.poll_timeout().unwrap());
    assert_eq!(sent(&mut server), std::slice::from_ref(&response));
    let [high, low] = parse(&response).id.to_be_bytes();
    server.handle_datagram(at(5000), CLIENT, &vec![0x60, 0, high, low].into());
    server.handle_timeout(at(200_000));
    assert!(sent(&mut server).is_empty());
    assert_eq!(server.counters().retransmissions, 1);
}

#[test]
fn responses_are_matched_by_token_and_peer() {
    let mut client = Endpoint::new(Settings::default(), 1);
    let id = client.request(at(0), SERVER, Request::get("x")).unwrap();
    let request = sent(&mut client).remove(0);
    let request = parse(&request);
    let response = |kind: MessageType, message_id: u16, token: Token| {
        let mut buffer = [0; 32];
        let writer = Writer::datagram(&mut buffer, kind, Code::CONTENT, message_id, &token).unwrap();
        let length = writer.finish();
        Bytes::copy_from_slice(&buffer[..length])
    };
    let other = Token::new(b"other").unwrap();
    client.handle_datagram(at(1), CLIENT, &response(MessageType::Confirmable, 1, request.token));
    assert_eq!(parse(&sent(&mut client)[0]).kind, MessageType::Reset, "another peer");
    client.handle_datagram(at(1), SERVER, &response(MessageType::Confirmable, 2, other));
    assert_eq!(parse(&sent(&mut client)[0]).kind, MessageType::Reset, "another token");
    client.handle_datagram(
        at(1),
        SERVER,
        &response(MessageType::Acknowledgement, request.id.wrapping_add(1), request.token),
    );
    assert!(client.poll_event().is_none(), "an acknowledgement of another message");
    // A separate response before the acknowledgement: it is acknowledged and implies that of the request.
    client.handle_datagram(at(2), SERVER, &response(MessageType::Confirmable, 3, request.token));
    assert!(matches!(client.poll_event(), Some(Event::Response { id: of, .. }) if of == id));
    assert_eq!(sent(&mut client), [&b"\x60\0\0\x03"[..]]);
    client.handle_datagram(at(3), SERVER, &response(MessageType::Confirmable, 3, request.token));
    assert_eq!(sent(&mut client), [&b"\x60\0\0\x03"[..]], "a duplicate is acknowledged again");
    client.handle_timeout(at(60_000));
    assert!(sent(&mut client).is_empty() && client.poll_event().is_none());
}

#[test]
fn a_reset_fails_the_request() {
    let mut client = Endpoint::new(Settings::default(), 1);
    let id = client.request(at(0), SERVER, Request::get("x")).unwrap();
    let [high, low] = parse(&sent(&mut client)[0]).id.to_be_bytes();
    client.handle_datagram(at(1), SERVER, &vec![0x70, 0, high, low].into());
    assert_eq!(client.poll_event(), Some(Event::Failed { id, failure: Failure::Reset }));
}

#[test]
fn options_that_a_server_must_recognise_are_refused() {
    let with =
        |number: OptionNumber, value: &'static [u8]| Request::get("x").with_option(number, Bytes::from_static(value));
    for (request, code) in [
        (with(OptionNumber(65_001), b""), Some(Code::BAD_OPTION)),
        (with(OptionNumber(65_000), b""), None),
        (with(OptionNumber::ACCEPT, b"\0\0\0"), Some(Code::BAD_OPTION)),
        (with(OptionNumber::ACCEPT, b"\0").with_uint(OptionNumber::ACCEPT, 0), Some(Code::BAD_OPTION)),
        (with(OptionNumber::MAX_AGE, b"\0").with_uint(OptionNumber::MAX_AGE, 0), None),
        (with(OptionNumber::PROXY_URI, b"coap://a"), Some(Code::PROXYING_NOT_SUPPORTED)),
        (with(OptionNumber::Q_BLOCK2, b""), Some(Code::BAD_OPTION)),
        (with(OptionNumber::BLOCK2, b"\x07"), Some(Code::BAD_REQUEST)),
    ] {
        let (mut client, mut server) = (Endpoint::new(Settings::default(), 1), Endpoint::new(Settings::default(), 2));
        client.request(at(0), SERVER, request.clone()).unwrap();
        server.handle_datagram(at(0), CLIENT, &sent(&mut client)[0]);
        assert_eq!(server.poll_event().is_some(), code.is_none(), "{request:?}");
        assert_eq!(sent(&mut server).first().map(|answer| parse(answer).code), code);
    }
}

#[test]
fn a_representation_that_the_client_has_is_validated_and_a_response_can_be_suppressed() {
    let answer = |request: Request| {
        let (mut client, mut server) = (Endpoint::new(Settings::default(), 1), Endpoint::new(Settings::default(), 2));
        client.request(at(0), SERVER, request).unwrap();
        server.handle_datagram(at(0), CLIENT, &sent(&mut client)[0]);
        let Some(Event::Request { id, .. }) = server.poll_event() else { panic!("no request") };
        let response = Response::content(ContentFormat::TEXT, "state").with_option(OptionNumber::ETAG, &b"v2"[..]);
        server.respond(at(0), id, response);
        sent(&mut server).remove(0)
    };
    let with = |etag: &'static [u8]| answer(Request::get("x").with_option(OptionNumber::ETAG, etag));
    assert_eq!((parse(&with(b"v1")).code, parse(&with(b"v1")).payload), (Code::CONTENT, &b"state"[..]));
    assert_eq!((parse(&with(b"v2")).code, parse(&with(b"v2")).payload), (Code::VALID, &b""[..]));
    let suppress = |classes| answer(Request::get("x").with_uint(OptionNumber::NO_RESPONSE, classes));
    assert_eq!(parse(&suppress(2)).code, Code::EMPTY);
    assert_eq!(parse(&suppress(8 | 16)).code, Code::CONTENT);
}

#[test]
fn the_resources_are_listed_and_filtered() {
    let mut pose = Resource::new("robot/pose");
    pose.types = vec!["pose.2d".to_owned(), "light lux".to_owned()];
    pose.interfaces = vec!["sensor".to_owned()];
    pose.formats = vec![ContentFormat::JSON, ContentFormat::CBOR];
    pose.observable = true;
    let mut map = Resource::new("map \"1\"");
    map.formats = vec![ContentFormat::OCTET_STREAM];
    map.size = Some(100_000);
    map.title = Some("a \"map\"".to_owned());
    let pose_link = "</robot/pose>;rt=\"pose.2d light lux\";if=\"sensor\";ct=\"50 60\";obs";
    let map_link = "</map%20%221%22>;ct=42;sz=100000;title=\"a \\\"map\\\"\"";
    for (query, links) in [
        (vec![], format!("{pose_link},{map_link}")),
        (vec!["rt=pose.2d"], pose_link.to_owned()),
        (vec!["rt=pose*"], pose_link.to_owned()),
        (vec!["rt=*"], pose_link.to_owned()),
        (vec!["rt=pose"], String::new()),
        (vec!["if=sens*"], pose_link.to_owned()),
        (vec!["ct=60"], pose_link.to_owned()),
        (vec!["sz=1*"], map_link.to_owned()),
        (vec!["href=/robot/pose"], pose_link.to_owned()),
        (vec!["href=/m*"], map_link.to_owned()),
        (vec!["obs"], pose_link.to_owned()),
        (vec!["rt=pose*", "ct=42"], String::new()),
        (vec!["unknown=1"], String::new()),
    ] {
        let (mut client, mut server) = (Endpoint::new(Settings::default(), 1), Endpoint::new(Settings::default(), 2));
        server.set_resources(vec![pose.clone(), map.clone()]);
        let get = query.iter().fold(Request::get(".well-known/core"), |get, item| get.with_query(item));
        client.request(at(0), SERVER, get).unwrap();
        server.handle_datagram(at(0), CLIENT, &sent(&mut client)[0]);
        let answer = &sent(&mut server)[0];
        assert_eq!(std::str::from_utf8(parse(answer).payload).unwrap(), links, "{query:?}");
        assert_eq!(parse(answer).options().get(OptionNumber::CONTENT_FORMAT), Some(&[40][..]));
    }
}

#[test]
fn floods_of_forged_addresses_are_bounded_and_do_not_remove_verified_peers() {
    let limits = Limits { peers: 50, ..Limits::default() };
    let mut server = Endpoint::new(Settings { limits, ..Settings::default() }, 1);
    let verified = server.ping(at(0), CLIENT).unwrap();
    let [high, low] = parse(&sent(&mut server)[0]).id.to_be_bytes();
    server.handle_datagram(at(1), CLIENT, &vec![0x70, 0, high, low].into());
    assert_eq!(server.poll_event(), Some(Event::Pong { id: verified }));
    server.handle_datagram(at(2), CLIENT, &Bytes::from_static(b"\x41\x02\0\x07t\xb1x"));
    let Some(Event::Request { id, .. }) = server.poll_event() else { panic!("no request") };
    for number in 0..10_000_u32 {
        let [_, a, b, c] = number.to_be_bytes();
        let forged = std::net::SocketAddr::from(([10, a, b, c], 5683));
        server.handle_datagram(at(3 + u64::from(number)), forged, &Bytes::from_static(b"\x41\x02\0\x07t\xb1x"));
        server.poll_event();
        assert!(server.peers() <= 50);
    }
    server.respond(at(20_000), id, Response::new(Code::CHANGED));
    let answers = sent(&mut server);
    assert!(answers.iter().any(|answer| parse(answer).code == Code::CHANGED), "the verified peer is still known");
    assert!(server.counters().evicted > 9000);
}

#[test]
fn a_peer_that_floods_is_limited_alone() {
    let limits = Limits { exchanges_per_peer: 10, remembered_per_peer: 100, ..Limits::default() };
    let mut server = Endpoint::new(Settings { limits, ..Settings::default() }, 1);
    for id in 0..1000_u16 {
        let [high, low] = id.to_be_bytes();
        server.handle_datagram(at(0), CLIENT, &vec![0x41, 2, high, low, b't', 0xB1, b'x'].into());
    }
    let delivered = std::iter::from_fn(|| server.poll_event()).count();
    assert_eq!((delivered, server.counters().dropped(DropReason::Exchanges)), (10, 990));
    assert!(server.counters().forgotten >= 900);
    server.handle_datagram(at(0), SERVER, &Bytes::from_static(b"\x41\x02\0\x07t\xb1x"));
    assert!(server.poll_event().is_some(), "another peer is served");
}

#[test]
fn lengths_of_frames_have_each_form() {
    for (body, header) in [
        (0, &[0x01][..]),
        (12, &[0xC1]),
        (13, &[0xD1, 0]),
        (268, &[0xD1, 255]),
        (269, &[0xE1, 0, 0]),
        (65_804, &[0xE1, 255, 255]),
        (65_805, &[0xF1, 0, 0, 0, 0]),
    ] {
        let mut buffer = vec![0; 70_000];
        let token = Token::new(b"t").unwrap();
        let mut writer = Writer::frame(&mut buffer, Code::CONTENT, &token, body).unwrap();
        writer.payload(&vec![1; (body as usize).saturating_sub(1)]).unwrap();
        let length = writer.finish();
        let frame = &buffer[..length];
        assert!(frame.starts_with(header) || body == 0, "{body}");
        assert_eq!(Frame::length(frame, 70_000), Ok(Some(length)));
        assert_eq!(Frame::length(frame, length - 1), Err(FrameError::TooLong(length as u64)));
        assert_eq!(Frame::length(&frame[..header.len() - 1], 70_000).unwrap(), None);
        let parsed = Frame::parse(frame).unwrap();
        assert_eq!((parsed.token, parsed.payload.len()), (token, (body as usize).saturating_sub(1)));
    }
}
