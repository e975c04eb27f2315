//! Reliable connections (RFC 8323).

#![allow(clippy::unwrap_used, reason = "in a test a panic is the failure")]

use std::net::SocketAddr;

use bytes::Bytes;
use viaduct_coap::codec::{Code, ContentFormat, Frame, OptionNumber, Token, Writer};
use viaduct_coap::settings::{Limits, Settings};
use viaduct_coap::tcp::{Closed, Connection};
use viaduct_coap::{DropReason, EndReason, Endpoint, Event, Failure, ObservationId, Request, RequestError, Response};
use viaduct_units::Mono;

const PEER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 5683);
const NOW: Mono = Mono(std::time::Duration::ZERO);

/// Two ends of a stream that is cut into chunks of a number of octets.
struct Stream {
    client: Connection,
    server: Connection,
    chunk: usize,
    client_events: Vec<Event>,
    requests: Vec<Request>,
    observation: Option<ObservationId>,
    ended: Vec<EndReason>,
    messages: usize,
}

impl Stream {
    fn new(client: Settings, server: Settings, chunk: usize) -> Self {
        Self {
            client: Connection::new(client, 1, PEER),
            server: Connection::new(server, 2, PEER),
            chunk,
            client_events: vec![],
            requests: vec![],
            observation: None,
            ended: vec![],
            messages: 0,
        }
    }

    fn run(&mut self) {
        loop {
            let to_server = take(&mut self.client);
            let to_client = take(&mut self.server);
            self.messages += usize::from(!to_server.is_empty());
            if to_server.is_empty() && to_client.is_empty() {
                return;
            }
            to_server.chunks(self.chunk).for_each(|octets| self.server.handle_octets(NOW, octets));
            to_client.chunks(self.chunk).for_each(|octets| self.client.handle_octets(NOW, octets));
            self.client_events.extend(std::iter::from_fn(|| self.client.poll_event()));
            while let Some(event) = self.server.poll_event() {
                self.serve(event);
            }
        }
    }

    fn serve(&mut self, event: Event) {
        match event {
            Event::Request { id, request, observe } => {
                let response = match request.method {
                    Code::GET => Response::content(ContentFormat::OCTET_STREAM, vec![b'x'; size(&request)]),
                    _ => Response::new(Code::CHANGED),
                };
                self.requests.push(request);
                match observe {
                    Some(observation) => {
                        self.observation = Some(observation);
                        self.server.respond_observed(NOW, id, response);
                    }
                    None => self.server.respond(NOW, id, response),
                }
            }
            Event::ObservationEnded { reason, .. } => self.ended.push(reason),
            other => panic!("{other:?}"),
        }
    }
}

fn size(request: &Request) -> usize {
    request.path_string().parse().unwrap_or(1)
}

fn take(connection: &mut Connection) -> Vec<u8> {
    std::iter::from_fn(|| connection.poll_transmit()).flatten().collect()
}

fn frame(code: Code, token: &[u8], options: &[(u16, &[u8])], payload: &[u8]) -> Vec<u8> {
    let mut body = [0; 2000];
    let mut writer = Writer::frame(&mut body, Code::EMPTY, &Token::EMPTY, 0).unwrap();
    for (number, value) in options {
        writer.option(OptionNumber(*number), value).unwrap();
    }
    writer.payload(payload).unwrap();
    let octets = writer.finish() - 2;
    let mut buffer = [0; 2000];
    let token = Token::new(token).unwrap();
    let mut writer = Writer::frame(&mut buffer, code, &token, octets as u32).unwrap();
    for (number, value) in options {
        writer.option(OptionNumber(*number), value).unwrap();
    }
    writer.payload(payload).unwrap();
    let length = writer.finish();
    buffer[..length].to_vec()
}

const CSM: u16 = 2;

#[test]
fn requests_of_any_size_are_answered_whatever_the_chunks_of_the_stream() {
    let small = Settings { limits: Limits { message_octets: 1152, ..Limits::default() }, ..Settings::default() };
    for (settings, chunk) in [(Settings::default(), 1), (Settings::default(), 1 << 20), (small, 100)] {
        let mut stream = Stream::new(settings.clone(), settings.clone(), chunk);
        stream.run();
        for octets in [0, 1, 1000, 1024, 1025, 70_000, 300_000] {
            let before = (stream.requests.len(), stream.client_events.len());
            let put = Request::put("1", ContentFormat::OCTET_STREAM, vec![7; octets]);
            stream.client.request(NOW, put).unwrap();
            stream.client.request(NOW, Request::get(&octets.to_string())).unwrap();
            stream.run();
            assert_eq!(
                stream.requests[before.0].payload.len().max(stream.requests[before.0 + 1].payload.len()),
                octets
            );
            let bodies = stream.client_events[before.1..].iter().map(|event| match event {
                Event::Response { response, .. } => response.payload.len(),
                other => panic!("{other:?}"),
            });
            assert_eq!(bodies.max(), Some(octets));
        }
    }
}

#[test]
fn blocks_are_as_large_as_the_peer_permits() {
    let messages = |octets: usize| {
        let limits = Limits { message_octets: octets, ..Limits::default() };
        let mut stream = Stream::new(Settings::default(), Settings { limits, ..Settings::default() }, 1 << 20);
        stream.run();
        stream.messages = 0;
        stream.client.request(NOW, Request::put("1", ContentFormat::OCTET_STREAM, vec![7; 60_000])).unwrap();
        stream.run();
        stream.messages
    };
    assert_eq!([messages(1152), messages(8192 + 128), messages(64 << 10)], [59, 8, 1]);
}

#[test]
fn an_observer_receives_each_state_until_it_cancels() {
    let mut stream = Stream::new(Settings::default(), Settings::default(), 7);
    let id = stream.client.observe(NOW, Request::get("5")).unwrap();
    stream.run();
    let observation = stream.observation.unwrap();
    for octets in [6, 3000, 7] {
        stream.server.notify(NOW, observation, Response::content(ContentFormat::TEXT, vec![b'y'; octets]));
        stream.run();
    }
    let sizes: Vec<usize> = stream
        .client_events
        .iter()
        .map(|event| match event {
            Event::Notification { id: of, response } if *of == id => response.payload.len(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(sizes, [5, 6, 3000, 7]);
    stream.client.cancel(NOW, id);
    stream.run();
    assert_eq!(stream.ended, [EndReason::Cancelled]);
}

#[test]
fn the_end_of_the_stream_fails_requests_and_ends_observations() {
    let mut stream = Stream::new(Settings::default(), Settings::default(), 100);
    stream.client.observe(NOW, Request::get("5")).unwrap();
    stream.run();
    let id = stream.client.request(NOW, Request::get("5")).unwrap();
    let ping = stream.client.ping().unwrap();
    stream.client.handle_end();
    stream.server.handle_end();
    let failed: Vec<Event> = std::iter::from_fn(|| stream.client.poll_event()).collect();
    for id in [id, ping] {
        assert!(failed.contains(&Event::Failed { id, failure: Failure::Closed }));
    }
    assert!(matches!(stream.server.poll_event(), Some(Event::ObservationEnded { reason: EndReason::Closed, .. })));
    assert_eq!(stream.client.request(NOW, Request::get("5")), Err(RequestError::Closed));
}

#[test]
fn signals_are_answered() {
    let mut stream = Stream::new(Settings::default(), Settings::default(), 100);
    let id = stream.client.ping().unwrap();
    stream.run();
    assert_eq!(stream.client_events, [Event::Pong { id }]);
    stream.client.release();
    let release = take(&mut stream.client);
    stream.server.handle_octets(NOW, &release);
    assert_eq!(stream.server.closed(), Some(Closed::Released));
}

#[test]
fn what_is_no_coap_is_answered_by_an_abort() {
    let csm = frame(Code::CSM, b"", &[(CSM, &[4, 0])], b"");
    let after = |octets: &[u8]| [&csm[..], octets].concat();
    for (octets, reason) in [
        (frame(Code::GET, b"t", &[], b""), Some(Closed::Csm)),
        (frame(Code::PING, b"t", &[], b""), Some(Closed::Csm)),
        (frame(Code::CSM, b"", &[(9, b"x")], b""), Some(Closed::Csm)),
        (frame(Code::CSM, b"", &[(8, b"x")], b""), None),
        (after(&[0x09, 1]), Some(Closed::Malformed)),
        (after(&[0x10, 1, 0xFF]), Some(Closed::Malformed)),
        (after(&[0x10, 1, 0xF0]), Some(Closed::Malformed)),
        (after(&[0x00, 0b001_00000]), Some(Closed::Malformed)),
        (after(&[0xF0, 255, 255, 255, 255, 1]), Some(Closed::TooLong)),
        (after(&[0x00, 0]), None),
        (after(&[0x00, Code::of(7, 31).octet()]), None),
        (after(&frame(Code::CONTENT, b"unknown", &[], b"x")), None),
        (after(&frame(Code::ABORT, b"", &[], b"bye")), Some(Closed::Aborted)),
    ] {
        let mut server = Connection::new(Settings::default(), 1, PEER);
        let greeting = take(&mut server);
        assert_eq!(Frame::parse(&greeting).unwrap().code, Code::CSM);
        server.handle_octets(NOW, &octets);
        assert_eq!(server.closed(), reason, "{octets:02x?}");
        let answer = take(&mut server);
        let aborts = reason.is_some_and(|reason| reason != Closed::Aborted);
        assert_eq!(!answer.is_empty(), aborts, "{octets:02x?}");
        if aborts {
            assert_eq!(Frame::parse(&answer).unwrap().code, Code::ABORT);
        }
        server.handle_octets(NOW, &octets);
        assert_eq!(take(&mut server), b"", "nothing follows the end");
    }
}

#[test]
fn a_peer_without_block_wise_transfer_receives_no_blocks() {
    let mut server = Connection::new(Settings::default(), 1, PEER);
    take(&mut server);
    server.handle_octets(NOW, &frame(Code::CSM, b"", &[(CSM, &[0x10, 0])], b""));
    for (octets, code) in [(3000, Code::CONTENT), (5000, Code::INTERNAL_SERVER_ERROR)] {
        server.handle_octets(NOW, &frame(Code::GET, b"t", &[(11, b"x")], b""));
        let Some(Event::Request { id, .. }) = server.poll_event() else { panic!("no request") };
        server.respond(NOW, id, Response::content(ContentFormat::TEXT, vec![b'x'; octets]));
        let answer = take(&mut server);
        let frame = Frame::parse(&answer).unwrap();
        assert_eq!(frame.code, code);
        assert!(frame.options().get(OptionNumber::BLOCK2).is_none());
    }
    assert_eq!(server.counters().dropped(DropReason::Unsendable), 1);
}

#[test]
fn connections_that_share_totals_have_the_limits_together() {
    let limits = Limits { bodies_octets: 3000, observations: 2, ..Limits::default() };
    let endpoint = Endpoint::new(Settings { limits, ..Settings::default() }, 1);
    let mut servers: Vec<Connection> = (0..3)
        .map(|seed| Connection::new(Settings { limits, ..Settings::default() }, seed, PEER).sharing(endpoint.totals()))
        .collect();
    // Bodies of which the first block of 1024 octets has arrived, and observations.
    let first_block = frame(Code::PUT, b"u", &[(11, b"x"), (27, &[0x0E])], &[7; 1024]);
    let observe = frame(Code::GET, b"o", &[(6, b""), (11, b"x")], b"");
    for (server, fits) in servers.iter_mut().zip([true, true, false]) {
        take(server);
        server.handle_octets(NOW, &frame(Code::CSM, b"", &[], b""));
        server.handle_octets(NOW, &first_block);
        let code = Frame::parse(&take(server)).unwrap().code;
        assert_eq!(code, if fits { Code::CONTINUE } else { Code::SERVICE_UNAVAILABLE });
        server.handle_octets(NOW, &observe);
        let Some(Event::Request { id, observe: Some(observation), .. }) = server.poll_event() else {
            panic!("no observation")
        };
        server.respond_observed(NOW, id, Response::content(ContentFormat::TEXT, "1"));
        assert_eq!(server.is_observed(observation), fits);
    }
    assert_eq!((endpoint.body_octets(), endpoint.observations()), (2048, 2));
    drop(servers);
    assert_eq!((endpoint.body_octets(), endpoint.observations()), (0, 0), "the end of a connection frees its share");
}

#[test]
fn the_buffer_of_an_incomplete_message_is_bounded() {
    let mut server = Connection::new(Settings::default(), 1, PEER);
    server.handle_octets(NOW, &frame(Code::CSM, b"", &[], b""));
    // A message of 64 KiB that never ends: its length is within the limit.
    let mut octets = vec![0xE0, 0xFE, 0x00];
    octets.resize(60_000, 0xF0);
    server.handle_octets(NOW, &octets);
    assert_eq!(server.closed(), None);
    server.handle_octets(NOW, &[0xF0; 6000]);
    assert_eq!(server.closed(), Some(Closed::Malformed));
    let _: Option<Bytes> = server.poll_transmit();
}
