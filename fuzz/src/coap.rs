//! CoAP: messages, frames of a reliable connection, and endpoints that process a sequence of datagrams.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use viaduct_coap::codec::{
    Block, BlockSize, Code, ContentFormat, Frame, Message, MessageType, OptionNumber, Token, Writer, decode_uint,
};
use viaduct_coap::settings::{ADAPTIVE, Limits, Notifications, Settings};
use viaduct_coap::tcp::Connection;
use viaduct_coap::{Endpoint, Event, ObservationId, Request, Resource, Response};
use viaduct_units::Mono;

use crate::teleop::Records;

/// Datagrams that an endpoint may send after one input.
const TRANSMITS_MAX: usize = 256;
/// Octets of bodies that the endpoint under test may hold.
const BODIES_OCTETS: usize = 16 << 10;
/// Length of the header of a record.
const SENDERS: u16 = 4;

/// Checks a message: writing a parsed one and parsing it again results in the same.
pub fn message(octets: &[u8]) {
    let Ok(message) = Message::parse(octets) else { return };
    let mut buffer = vec![0; octets.len()];
    let mut writer = Writer::datagram(&mut buffer, message.kind, message.code, message.id, &message.token)
        .expect("the buffer is large enough");
    for (number, value) in message.options() {
        let _ = (decode_uint(value), Block::decode(value), number.limit(), number.is_no_cache_key());
        writer.option(number, value).expect("the shortest encoding is not longer");
    }
    writer.payload(message.payload).expect("the buffer is large enough");
    let written = writer.finish();
    let again = Message::parse(&buffer[..written]).expect("a written message is valid");
    assert_eq!(
        (again.kind, again.code, again.id, again.token),
        (message.kind, message.code, message.id, message.token)
    );
    assert!(again.options().eq(message.options()) && again.payload == message.payload);
}

/// Passes octets to a reliable connection in two cuts. The result must not depend on the cut.
pub fn stream(octets: &[u8]) {
    let run = |chunk: usize| {
        // Requests that are answered late must not be refused.
        let mut settings = settings(false);
        settings.limits.exchanges_per_peer = usize::MAX;
        let mut connection = Connection::new(settings, 1, sender(0));
        let mut requests = 0;
        for octets in octets.chunks(chunk) {
            connection.handle_octets(Mono::default(), octets);
            while let Some(event) = connection.poll_event() {
                if let Event::Request { id, request, .. } = event {
                    requests += request.payload.len() + 1;
                    connection.respond_observed(Mono::default(), id, answer(&request));
                }
            }
            while let Some(message) = connection.poll_transmit() {
                assert!(Frame::parse(&message).is_ok(), "{message:02x?}");
            }
        }
        (requests, connection.closed())
    };
    assert_eq!(run(7), run(octets.len().max(1)));
}

/// A server, an observing client and a client with large bodies at once, which processes datagrams of four senders.
pub fn server(octets: &[u8]) {
    process(octets, false);
}

/// The same with Q-Block.
pub fn q_block(octets: &[u8]) {
    process(octets, true);
}

fn process(octets: &[u8], q_block: bool) {
    let mut endpoint = Endpoint::new(settings(q_block), 1);
    endpoint.set_resources(vec![Resource::new("a")]);
    let mut now = Mono(Duration::from_secs(100));
    let mut observations = Vec::new();
    for (number, (after, record)) in Records(octets).enumerate() {
        // Up to three seconds, so that retransmissions, expiries and the end of Max-Age occur.
        now = now.plus(after * 17);
        act(&mut endpoint, now, number);
        settle(&mut endpoint, now, &mut observations);
        while let Some(due) = endpoint.poll_timeout().filter(|due| *due <= now) {
            endpoint.handle_timeout(due);
            settle(&mut endpoint, due, &mut observations);
            assert!(endpoint.poll_timeout().is_none_or(|next| next > due), "a deadline is repeated");
        }
        let Some((first, datagram)) = record.split_first() else { continue };
        endpoint.handle_datagram(now, sender(u16::from(*first) % SENDERS), &Bytes::copy_from_slice(datagram));
        settle(&mut endpoint, now, &mut observations);
    }
}

fn act(endpoint: &mut Endpoint, now: Mono, number: usize) {
    let peer = sender(number as u16 % SENDERS);
    let _ = match number % 7 {
        0 => endpoint.request(now, peer, Request::get("a")),
        2 => endpoint.observe(now, peer, Request::get("a")),
        4 => endpoint.request(now, peer, Request::put("a", ContentFormat::TEXT, vec![7; 100])),
        5 => endpoint.request(now, peer, Request::get("a").non_confirmable()),
        _ => return,
    };
}

fn settle(endpoint: &mut Endpoint, now: Mono, observations: &mut Vec<ObservationId>) {
    while let Some(event) = endpoint.poll_event() {
        match event {
            Event::Request { id, request, observe } => {
                observations.extend(observe);
                endpoint.respond_observed(now, id, answer(&request));
            }
            Event::ObservationEnded { id, .. } => observations.retain(|known| *known != id),
            Event::Notification { id, response } if response.payload.first() == Some(&0) => endpoint.cancel(now, id),
            _ => {}
        }
    }
    if let Some(id) = observations.first() {
        endpoint.notify(now, *id, Response::content(ContentFormat::TEXT, vec![1; 40]));
    }
    observations.truncate(64);
    for _ in 0..TRANSMITS_MAX {
        let Some((_, datagram)) = endpoint.poll_transmit() else { return check(endpoint) };
        assert!(Message::parse(&datagram).is_ok(), "{datagram:02x?}");
    }
    panic!("an endpoint sends without limit");
}

fn check(endpoint: &Endpoint) {
    assert!(endpoint.body_octets() <= BODIES_OCTETS && endpoint.peers() <= 3 && endpoint.observations() <= 6);
}

fn answer(request: &Request) -> Response {
    match request.method {
        Code::GET => Response::content(ContentFormat::TEXT, vec![2; request.path_string().len() * 30]),
        _ => Response::new(Code::CHANGED),
    }
}

fn settings(q_block: bool) -> Settings {
    let limits = Limits {
        peers: 3,
        requests_per_peer: 4,
        exchanges_per_peer: 4,
        queue_per_peer: 4,
        remembered_per_peer: 8,
        remembered_octets_per_peer: 256,
        observations_per_peer: 3,
        observations: 6,
        body_octets: 4096,
        bodies_octets: BODIES_OCTETS,
        message_octets: 2048,
        ..Limits::default()
    };
    let notifications = Notifications { confirmable: false, confirm_interval: Duration::from_secs(5) };
    Settings {
        retransmission: ADAPTIVE,
        window: 2,
        token_octets: 1,
        block_size: BlockSize::SMALLEST,
        q_block,
        notifications,
        limits,
        ..Settings::default()
    }
}

fn sender(number: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 1000 + number))
}

/// A message to write.
struct Parts<'a> {
    kind: MessageType,
    code: Code,
    options: &'a [(OptionNumber, &'a [u8])],
    payload: &'a [u8],
}

const fn parts<'a>(
    kind: MessageType,
    code: Code,
    options: &'a [(OptionNumber, &'a [u8])],
    payload: &'a [u8],
) -> Parts<'a> {
    Parts { kind, code, options, payload }
}

/// Returns messages of each kind.
#[must_use]
pub fn messages() -> Vec<Vec<u8>> {
    use MessageType::{Acknowledgement, Confirmable, NonConfirmable, Reset};
    let path: (OptionNumber, &[u8]) = (OptionNumber::URI_PATH, b"a");
    [
        parts(Confirmable, Code::GET, &[path, (OptionNumber::URI_QUERY, b"rt=b")], b""),
        parts(Confirmable, Code::GET, &[(OptionNumber::OBSERVE, b""), path], b""),
        parts(Confirmable, Code::GET, &[path, (OptionNumber::BLOCK2, &[0x10])], b""),
        parts(Confirmable, Code::PUT, &[path, (OptionNumber::BLOCK1, &[0x08])], &[3; 16]),
        parts(Confirmable, Code::PUT, &[path, (OptionNumber::BLOCK1, &[0x10])], b"end"),
        parts(NonConfirmable, Code::PUT, &[path, (OptionNumber::Q_BLOCK1, &[0x08])], &[3; 16]),
        parts(NonConfirmable, Code::PUT, &[path, (OptionNumber::Q_BLOCK1, &[0x20])], b"end"),
        parts(NonConfirmable, Code::GET, &[path, (OptionNumber::Q_BLOCK2, &[0x08])], b""),
        parts(
            Confirmable,
            Code::GET,
            &[(OptionNumber::URI_PATH, b".well-known"), (OptionNumber::URI_PATH, b"core")],
            b"",
        ),
        parts(Acknowledgement, Code::CONTENT, &[(OptionNumber::BLOCK2, &[0x08])], &[4; 16]),
        parts(Acknowledgement, Code::CONTENT, &[(OptionNumber::OBSERVE, b"\x01")], b"state"),
        parts(Acknowledgement, Code::CONTINUE, &[(OptionNumber::BLOCK1, &[0x08])], b""),
        parts(NonConfirmable, Code::CONTENT, &[(OptionNumber::Q_BLOCK2, &[0x08])], &[4; 16]),
        parts(NonConfirmable, Code::CONTENT, &[(OptionNumber::OBSERVE, b"\x02")], b"state"),
        parts(Acknowledgement, Code::EMPTY, &[], b""),
        parts(Reset, Code::EMPTY, &[], b""),
        parts(Confirmable, Code::EMPTY, &[], b""),
    ]
    .iter()
    .enumerate()
    .map(|(id, parts)| {
        let mut buffer = [0; 128];
        let token = if parts.code.is_empty() { Token::EMPTY } else { Token::new(b"t").unwrap_or_default() };
        let mut writer = Writer::datagram(&mut buffer, parts.kind, parts.code, id as u16, &token).expect("it fits");
        parts.options.iter().for_each(|(number, value)| writer.option(*number, value).expect("it fits"));
        writer.payload(parts.payload).expect("it fits");
        let length = writer.finish();
        buffer[..length].to_vec()
    })
    .collect()
}

/// Returns sequences of datagrams, each with its sender.
#[must_use]
pub fn sequences() -> Vec<Vec<u8>> {
    let messages = messages();
    let sequence = |order: &mut dyn Iterator<Item = &Vec<u8>>| {
        let mut octets = Vec::new();
        for (index, message) in order.enumerate() {
            octets.extend_from_slice(&u16::try_from(message.len() + 1).expect("it is short").to_be_bytes());
            octets.extend_from_slice(&[20, index as u8 % 2]);
            octets.extend_from_slice(message);
        }
        octets
    };
    vec![
        sequence(&mut messages.iter()),
        sequence(&mut messages.iter().rev()),
        sequence(&mut messages.iter().cycle().take(60)),
    ]
}

/// Returns streams that begin with a CSM.
#[must_use]
pub fn streams() -> Vec<Vec<u8>> {
    let csm = [0x30, Code::CSM.octet(), 0x22, 0x10, 0x00];
    let get = [0x31, Code::GET.octet(), b't', 0xB1, b'a', 0xFF];
    let put = [0x61, Code::PUT.octet(), b't', 0xB1, b'a', 0xFF, 1, 2, 3];
    let observe = [0x31, Code::GET.octet(), b'o', 0x60, 0x51, b'a'];
    let ping = [0x01, Code::PING.octet(), b'p'];
    vec![
        [&csm[..], &put, &observe, &ping].concat(),
        [&csm[..], &get].concat(),
        [&csm[..], &put, &[0x00, Code::RELEASE.octet()]].concat(),
    ]
}
