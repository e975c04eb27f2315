//! `coap_server` under floods, garbage and limits: bounded memory, counted drops, and service for the other clients.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "in a test a panic is the failure")]

#[path = "mqtt/support.rs"]
mod support;

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpStream, UdpSocket};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use support::{PATIENCE, TestNode, count, eventually, free_port};
use viaduct_bus::{MessageFormat, TypeInfo};
use viaduct_units::Rng;

/// Memory that a flood may use in bytes, also that of the test itself.
const FLOOD_BYTES_MAX: usize = 64 << 20;
/// Type of a confirmable message.
const CON: u8 = 0;
/// Codes.
const EMPTY: u8 = 0;
const GET: u8 = 0x01;
const PUT: u8 = 0x03;
const CONTENT: u8 = 0x45;
const CHANGED: u8 = 0x44;
const CONTINUE: u8 = 0x5f;
const INCOMPLETE: u8 = 0x88;
const TOO_LARGE: u8 = 0x8d;
const UNAVAILABLE: u8 = 0xa3;
const CSM: u8 = 0xe1;
/// Options.
const OBSERVE: u16 = 6;
const URI_PATH: u16 = 11;
const BLOCK1: u16 = 27;

/// Runs the tests one after the other, because they measure memory and load.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the resident memory of the process in bytes.
fn memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

fn check_memory(before: usize) {
    let growth = memory().saturating_sub(before);
    assert!(growth < FLOOD_BYTES_MAX, "{growth} bytes");
}

/// Returns options in ascending order, and a payload.
fn body(options: &[(u16, &[u8])], payload: &[u8]) -> Vec<u8> {
    let (mut octets, mut before) = (Vec::new(), 0);
    for (number, value) in options {
        let (delta, length) = (number - before, value.len());
        assert!(length < 13 && delta < 13 + 256);
        octets.push((delta.min(13) as u8) << 4 | length as u8);
        if delta >= 13 {
            octets.push((delta - 13) as u8);
        }
        octets.extend_from_slice(value);
        before = *number;
    }
    if !payload.is_empty() {
        octets.push(0xff);
        octets.extend_from_slice(payload);
    }
    octets
}

/// Returns a datagram with a token of two octets, which are those of the message ID.
fn datagram(kind: u8, code: u8, id: u16, options: &[(u16, &[u8])], payload: &[u8]) -> Vec<u8> {
    let [high, low] = id.to_be_bytes();
    let mut octets = vec![0x40 | kind << 4 | 2, code, high, low, high, low];
    octets.extend(body(options, payload));
    octets
}

/// Returns a message over TCP without a token.
fn frame(code: u8, options: &[(u16, &[u8])], payload: &[u8]) -> Vec<u8> {
    let body = body(options, payload);
    assert!(body.len() < 13);
    [vec![(body.len() as u8) << 4, code], body].concat()
}

/// Returns the value of a Block option with blocks of 1024 octets.
fn block(number: u32, more: bool) -> Vec<u8> {
    let value = number << 4 | u32::from(more) << 3 | 6;
    value.to_be_bytes()[1..].to_vec()
}

/// A server with a resource to read, a long one, and one to write.
struct Server {
    node: TestNode,
    port: u16,
}

impl Server {
    fn start(settings: &str) -> Self {
        let port = free_port();
        let node = TestNode::start(&format!(
            "node: robot\ncomponents:\n  feed: {{ kind: feed }}\n  server:\n    kind: coap_server\n    settings:\n      \
             listen: 127.0.0.1:{port}\n      tcp: 127.0.0.1:{port}\n{settings}      resources:\n        \
             - {{ path: log, from: log/n }}\n        - {{ path: any, from: any/*, encoding: native }}\n        \
             - {{ path: blob, to: blobs, type: {{ opaque: blob }}, encoding: native }}\n"
        ));
        node.log("log/n", "first");
        let server = Self { node, port };
        eventually("the sample arrives", || server.is_serving());
        server
    }

    fn count(&self, name: &str, reason: &str) -> u64 {
        let counters = self.node.bus().snapshot().counters;
        let own = counters.iter().filter(|one| one.component == "server" && one.name == name);
        own.filter(|one| one.reason.as_deref() == Some(reason)).map(|one| one.value).sum()
    }

    fn socket(&self) -> UdpSocket {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(("127.0.0.1", self.port)).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        socket
    }

    /// Returns `true` if a new client gets a representation.
    fn is_serving(&self) -> bool {
        let socket = self.socket();
        let request = datagram(CON, GET, 77, &[(URI_PATH, b"log")], b"");
        exchange(&socket, &request).is_some_and(|answer| answer[1] == CONTENT)
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Publishes a long sample, and waits until it is a representation.
    fn publish_long(&self, octets: usize) {
        let info = TypeInfo::foreign(MessageFormat::Opaque, "cloud", bytes::Bytes::new());
        self.node.any("any/cloud", &info, vec![7; octets].into());
        let path: [(u16, &[u8]); 3] = [(URI_PATH, b"any"), (URI_PATH, b"any"), (URI_PATH, b"cloud")];
        eventually("the long sample arrives", || {
            let request = datagram(CON, GET, 78, &path, b"");
            exchange(&self.socket(), &request).is_some_and(|answer| answer[1] == CONTENT)
        });
    }
}

/// Sends a request until it is answered. Returns the answer, or `None` if there is none.
///
/// The server pings a client that it does not know. Such an empty message is not the answer.
fn exchange(socket: &UdpSocket, request: &[u8]) -> Option<Vec<u8>> {
    let mut answer = [0; 2048];
    for _ in 0..10 {
        socket.send(request).unwrap();
        while let Ok(octets) = socket.recv(&mut answer) {
            if answer[1] != EMPTY {
                return Some(answer[..octets].to_vec());
            }
        }
    }
    None
}

/// Returns `true` if the server closes the connection.
fn is_closed(stream: &mut TcpStream) -> bool {
    let mut octets = [0; 65_536];
    loop {
        match stream.read(&mut octets) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => return true,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn transfers_beyond_the_limits_are_rejected() {
    let _turn = alone();
    let server = Server::start("      limits: { payload_octets_max: 100000, transfer_octets_max: 1000000 }\n");
    let socket = server.socket();
    let put = |socket: &UdpSocket, id: u16, number: u32, more: bool| {
        let block = block(number, more);
        let request = datagram(CON, PUT, id, &[(URI_PATH, b"blob"), (BLOCK1, &block)], &[1; 1024]);
        exchange(socket, &request).unwrap()[1]
    };
    // The limit of one payload is reached with the 98th block.
    let codes: Vec<u8> = (0..100).map(|number| put(&socket, number as u16, number, true)).collect();
    assert_eq!(codes.iter().position(|code| *code == TOO_LARGE), Some(97), "{codes:x?}");
    assert!(codes[..97].iter().all(|code| *code == CONTINUE), "{codes:x?}");
    // A transfer that begins in the middle.
    assert_eq!(put(&server.socket(), 1, 7, true), INCOMPLETE);
    // 200 clients with transfers that never end: 90 blocks each are 18 MB.
    let before = memory();
    let sockets: Vec<UdpSocket> = (0..200).map(|_| server.socket()).collect();
    let mut rejected = 0;
    for number in 0..90 {
        for socket in &sockets {
            let code = put(socket, number as u16, number, true);
            assert!([CONTINUE, TOO_LARGE, INCOMPLETE, UNAVAILABLE].contains(&code), "{code:x}");
            rejected += usize::from(code != CONTINUE);
        }
    }
    // 976 blocks fit.
    assert!(rejected > 10_000, "{rejected}");
    check_memory(before);
    assert!(server.is_serving());
    // A short payload needs no transfer.
    let short = datagram(CON, PUT, 1, &[(URI_PATH, b"blob")], b"short");
    assert_eq!(exchange(&server.socket(), &short).unwrap()[1], CHANGED);
    assert!(server.node.stop());
}

#[test]
fn observers_beyond_the_limits_are_served_without_an_observation() {
    let _turn = alone();
    let server = Server::start(
        "      limits: { peers_max: 500, observations_max: 300, observations_per_peer_max: 4 }\n      \
         timers: adaptive\n",
    );
    let observe = |socket: &UdpSocket, id: u16| {
        let request = datagram(CON, GET, id, &[(OBSERVE, b""), (URI_PATH, b"log")], b"");
        exchange(socket, &request).unwrap()
    };
    // The option Observe of the answer is the first one.
    let is_observed = |answer: &[u8]| answer[1] == CONTENT && answer[6] >> 4 == OBSERVE as u8;
    let friend = server.socket();
    assert!(is_observed(&observe(&friend, 1)));
    // An answer to a confirmable notification shows that the address is not forged.
    let confirm = |friend: &UdpSocket, text: &str| {
        let start = Instant::now();
        loop {
            let mut octets = [0; 2048];
            let length = friend.recv(&mut octets).unwrap_or(0);
            if length > 6 && octets[0] >> 4 & 3 == CON {
                friend.send(&[0x60, 0, octets[2], octets[3]]).unwrap();
                if String::from_utf8_lossy(&octets[..length]).contains(text) {
                    return;
                }
            }
            assert!(start.elapsed() < PATIENCE, "no notification with `{text}`");
        }
    };
    server.node.log("log/n", "second");
    confirm(&friend, "second");
    let before = memory();
    let one = server.socket();
    let observed = (0..10).filter(|id| is_observed(&observe(&one, *id))).count();
    assert_eq!(observed, 4, "the limit of one peer");
    let mut observed = 0;
    for _ in 0..8 {
        let sockets: Vec<UdpSocket> = (0..250).map(|_| server.socket()).collect();
        observed += sockets.iter().filter(|socket| is_observed(&observe(socket, 1))).count();
        // The state of the friend is kept although the flood has more addresses than there is room for.
        server.node.log("log/n", &format!("after {observed}"));
        confirm(&friend, &format!("after {observed}"));
    }
    assert!(observed >= 200, "{observed}");
    let bus = server.node.bus();
    let (began, ended) = (count(&bus, "server", "observations"), count(&bus, "server", "observations_ended"));
    assert!(began - ended <= 300, "{began} began, {ended} ended");
    check_memory(before);
    // The sockets of the flood are closed: nobody acknowledges, and their observations end.
    server.node.log("log/n", "last");
    confirm(&friend, "last");
    // A notification is given up after MAX_TRANSMIT_WAIT at the latest, which is 93 s (RFC 7252, 4.8.2).
    let deadline = Instant::now() + 2 * Duration::from_secs(93);
    while count(&bus, "server", "observations") - count(&bus, "server", "observations_ended") != 1 {
        assert!(Instant::now() < deadline, "the others have not ended");
        let mut octets = [0; 2048];
        if let Ok(length) = friend.recv(&mut octets)
            && length > 6
        {
            friend.send(&[0x60, 0, octets[2], octets[3]]).unwrap();
        }
    }
    assert!(server.count("observations_ended", "timed_out") > 0);
    assert!(server.is_serving());
    assert!(server.node.stop());
}

#[test]
fn a_flood_of_requests_and_garbage_does_not_keep_the_clients_from_service() {
    let _turn = alone();
    let server = Server::start("      limits: { peers_max: 256 }\n");
    server.publish_long(200_000);
    let (mut random, before) = (Rng::new(3), memory());
    for _ in 0..20 {
        let sockets: Vec<UdpSocket> = (0..400).map(|_| server.socket()).collect();
        for socket in &sockets {
            for id in 0..5 {
                let path: [(u16, &[u8]); 3] = [(URI_PATH, b"any"), (URI_PATH, b"any"), (URI_PATH, b"cloud")];
                // What the kernel drops is not a failure of the server.
                let _ = socket.send(&datagram(CON, GET, id, &path, b""));
                let garbage: Vec<u8> = (0..1 + random.below(60)).map(|_| random.below(256) as u8).collect();
                let _ = socket.send(&garbage);
            }
        }
        assert!(server.is_serving());
    }
    eventually("it is counted", || server.count("refused", "malformed") > 1000);
    check_memory(before);
    assert!(server.node.stop());
}

#[test]
fn connections_with_garbage_endless_messages_or_without_a_greeting_are_closed() {
    let _turn = alone();
    let server = Server::start("      limits: { connections_max: 8 }\n");
    let greeting = frame(CSM, &[], b"");
    let before = memory();
    // No CSM; a message of 4 GB; a token of 9 octets; an option beyond the end.
    let get = frame(GET, &[(URI_PATH, b"log")], b"");
    let endless = [&greeting[..], &[0xf0, 0xff, 0xff, 0xff, 0xff, PUT]].concat();
    let token = [&greeting[..], &[0x09, GET, 0, 0, 0, 0, 0, 0, 0, 0, 0]].concat();
    let option = [&greeting[..], &[0x10, GET, 0xbd]].concat();
    for wrong in [get.clone(), endless.clone(), token, option] {
        for _ in 0..10 {
            let mut stream = server.connect();
            stream.write_all(&wrong).unwrap();
            assert!(is_closed(&mut stream), "{wrong:x?}");
        }
    }
    // Connections beyond the limit of a loopback address are closed at once, and room is made when one ends.
    let mut open: Vec<TcpStream> = Vec::new();
    eventually("six connections are open", || {
        let mut stream = server.connect();
        stream.write_all(&[&greeting[..], &get].concat()).unwrap();
        let mut octets = [0; 2048];
        let is_served = || -> std::io::Result<bool> {
            let mut all = Vec::new();
            while !all.windows(5).any(|part| part == b"first") {
                let length = stream.read(&mut octets)?;
                if length == 0 {
                    return Ok(false);
                }
                all.extend_from_slice(&octets[..length]);
            }
            Ok(true)
        };
        let mut is_served = is_served;
        if is_served().unwrap_or(false) {
            open.push(stream);
        }
        open.len() == 6
    });
    for _ in 0..20 {
        assert!(is_closed(&mut server.connect()));
    }
    assert!(count(&server.node.bus(), "server", "connections_refused") >= 20);
    assert!(server.is_serving(), "over UDP");
    drop(open);
    eventually("there is room again", || {
        let mut stream = server.connect();
        stream.write_all(&[&greeting[..], &get].concat()).unwrap();
        matches!(stream.read(&mut [0; 64]), Ok(1..))
    });
    check_memory(before);
    assert!(server.node.stop());
}

#[test]
fn a_client_that_does_not_read_is_disconnected_and_one_that_pipelines_is_served() {
    let _turn = alone();
    let server = Server::start("");
    server.publish_long(60_000);
    let greeting = frame(CSM, &[], b"");
    // 2,000 requests at once are answered.
    let mut stream = server.connect();
    let get = frame(GET, &[(URI_PATH, b"log")], b"");
    stream.write_all(&[greeting.clone(), get.repeat(2000)].concat()).unwrap();
    let (mut octets, mut buffer, start) = (Vec::new(), [0; 65_536], Instant::now());
    let mut answers = 0;
    while answers < 2000 {
        let length = stream.read(&mut buffer).unwrap();
        assert!(length > 0 && start.elapsed() < PATIENCE, "{answers} answers, then the connection is closed");
        octets.extend_from_slice(&buffer[..length]);
        answers = octets.windows(7).filter(|part| part == b"\"first\"").count();
    }
    // A client that announces long messages, requests 120 MB and reads nothing.
    let before = memory();
    let announced = frame(CSM, &[(2, &[0x0f, 0x42, 0x40])], b"");
    let path: [(u16, &[u8]); 3] = [(URI_PATH, b"any"), (URI_PATH, b"any"), (URI_PATH, b"cloud")];
    let mut request = vec![0xd0, 0, GET];
    let long = body(&path, b"");
    request[1] = (long.len() - 13) as u8;
    request.extend(long);
    let mut slow = server.connect();
    // The server may close the connection in the meantime.
    let _ = slow.write_all(&[announced, request.repeat(2000)].concat());
    eventually("it is disconnected", || {
        slow.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        slow.write_all(&get).is_err()
    });
    check_memory(before);
    assert!(server.is_serving());
    assert!(server.node.stop());
}

/// Returns the code of the next message over TCP, whose token is empty.
fn next_code(stream: &mut TcpStream) -> u8 {
    let mut octets = [0; 2];
    stream.read_exact(&mut octets).unwrap();
    let extended = match octets[0] >> 4 {
        13 => {
            let mut code = [0];
            stream.read_exact(&mut code).unwrap();
            Some((usize::from(octets[1]) + 13, code[0]))
        }
        length => Some((usize::from(length), octets[1])),
    };
    let (length, code) = extended.unwrap();
    stream.read_exact(&mut vec![0; length]).unwrap();
    code
}

/// Returns a PUT of a block of 1024 octets over TCP.
fn put_over_tcp(number: u32, more: bool) -> Vec<u8> {
    let block = block(number, more);
    let body = body(&[(URI_PATH, b"blob"), (BLOCK1, &block)], &[1; 1024]);
    let length = (body.len() - 269) as u16;
    [&[0xe0][..], &length.to_be_bytes(), &[PUT], &body].concat()
}

#[test]
fn transfers_over_tcp_and_udp_have_the_limits_together() {
    let _turn = alone();
    let server = Server::start(
        "      limits: { payload_octets_max: 100000, transfer_octets_max: 1000000, connections_max: 80 }\n",
    );
    let before = memory();
    let mut streams: Vec<TcpStream> = (0..60).map(|_| server.connect()).collect();
    for stream in &mut streams {
        stream.write_all(&frame(CSM, &[], b"")).unwrap();
        assert_eq!(next_code(stream), CSM);
    }
    // Each connection begins a transfer and never ends it: 90 blocks each are 5.5 MB, and 976 blocks fit.
    let mut accepted = 0;
    for number in 0..90 {
        for stream in &mut streams {
            stream.write_all(&put_over_tcp(number, true)).unwrap();
            let code = next_code(stream);
            assert!([CONTINUE, INCOMPLETE, UNAVAILABLE].contains(&code), "{code:x}");
            accepted += usize::from(code == CONTINUE);
        }
    }
    assert!((900..4000).contains(&accepted), "{accepted}");
    // A transfer that is rejected frees what it had, so fill the rest.
    for stream in &mut streams {
        let codes = (0..90).map(|number| {
            stream.write_all(&put_over_tcp(number, true)).unwrap();
            next_code(stream)
        });
        codes.for_each(drop);
    }
    check_memory(before);
    assert!(server.is_serving());
    // The end of the connections makes room.
    drop(streams);
    let socket = server.socket();
    let put = |number: u32, more: bool| {
        let block = block(number, more);
        let request = datagram(CON, PUT, number as u16, &[(URI_PATH, b"blob"), (BLOCK1, &block)], &[1; 1024]);
        exchange(&socket, &request).unwrap()[1]
    };
    eventually("the connections have ended", || server.count("connections_ended", "ended") == 60);
    assert!((0..90).all(|number| put(number, true) == CONTINUE));
    assert_eq!(put(90, false), CHANGED);
    assert!(server.node.stop());
}

#[test]
fn many_clients_that_do_not_read_are_disconnected_and_those_that_read_are_served() {
    let _turn = alone();
    let server = Server::start("      limits: { transfer_octets_max: 2000000 }\n");
    server.publish_long(60_000);
    let path: [(u16, &[u8]); 3] = [(URI_PATH, b"any"), (URI_PATH, b"any"), (URI_PATH, b"cloud")];
    let long = body(&path, b"");
    let request = [&[0xd0, (long.len() - 13) as u8, GET][..], &long].concat();
    let announced = frame(CSM, &[(2, &[0x0f, 0x42, 0x40])], b"");
    let before = memory();
    let slow: Vec<TcpStream> = (0..50)
        .map(|_| {
            let mut stream = server.connect();
            // 12 MB of responses. The server may close the connection in the meantime.
            let _ = stream.write_all(&[&announced[..], &request.repeat(200)].concat());
            stream
        })
        .collect();
    eventually("they are disconnected", || server.count("connections_ended", "slow") >= 40);
    check_memory(before);
    let mut friend = server.connect();
    friend.write_all(&[frame(CSM, &[], b""), frame(GET, &[(URI_PATH, b"log")], b"")].concat()).unwrap();
    assert_eq!((next_code(&mut friend), next_code(&mut friend)), (CSM, CONTENT));
    drop(slow);
    assert!(server.node.stop());
}
