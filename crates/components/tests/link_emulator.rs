//! The kind `link_emulator`: real sockets at both ends.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use viaduct_node::{Graph, Node};

/// Time after which a datagram that has not arrived does not arrive.
const SILENCE: Duration = Duration::from_millis(400);

struct Relay {
    node: Node,
    address: SocketAddr,
    _runtime: Runtime,
}

impl Relay {
    /// Starts a relay to a server. `settings` are further settings in YAML.
    fn start(protocol: &str, to: SocketAddr, settings: &str) -> Self {
        let address = match protocol {
            "udp" => UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap(),
            _ => TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap(),
        };
        let text = format!(
            "node: relay\ncomponents:\n  link:\n    kind: link_emulator\n    settings: {{ listen: \"{address}\", to: \"{to}\", \
             protocol: {protocol}, seed: 1, {settings} }}\n"
        );
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let graph = Graph::resolve("relay.yaml", &text, viaduct_components::KINDS).unwrap();
        let node = Node::start(graph, runtime.handle()).unwrap();
        Self { node, address, _runtime: runtime }
    }

    /// Stops the relay, and returns its counters: the sum of all rows of a name.
    fn stop(mut self) -> impl Fn(&str) -> u64 {
        assert!(self.node.try_failed().is_none());
        let bus = self.node.bus().clone();
        assert!(self.node.stop());
        move |name| {
            let rows = bus.snapshot().counters;
            let named = |row: &&viaduct_bus::CounterSnapshot| {
                let full = row.reason.as_ref().map_or(row.name.clone(), |reason| format!("{}/{reason}", row.name));
                row.name == name || full == name
            };
            rows.iter().filter(named).map(|row| row.value).sum()
        }
    }
}

fn udp_socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(SILENCE)).unwrap();
    socket
}

/// Counts the datagrams that arrive until there is silence.
fn drain(socket: &UdpSocket) -> u64 {
    let mut datagram = [0; 2000];
    let mut count = 0;
    while socket.recv_from(&mut datagram).is_ok() {
        count += 1;
    }
    count
}

#[test]
fn datagrams_pass_in_both_directions_with_the_delay_of_the_link() {
    let server = udp_socket();
    let relay = Relay::start("udp", server.local_addr().unwrap(), "links: { both: { delay: { base_ms: 15 } } }");
    let clients = [udp_socket(), udp_socket()];
    let mut datagram = [0; 64];
    for (client, text) in clients.iter().zip(["one", "two"]) {
        client.connect(relay.address).unwrap();
        let sent = Instant::now();
        client.send(text.as_bytes()).unwrap();
        let (octets, from) = server.recv_from(&mut datagram).unwrap();
        assert!(&datagram[..octets] == text.as_bytes() && sent.elapsed() >= Duration::from_millis(15));
        server.send_to(&datagram[..octets], from).unwrap();
        let octets = client.recv(&mut datagram).unwrap();
        assert!(&datagram[..octets] == text.as_bytes() && sent.elapsed() >= Duration::from_millis(30));
    }
    let stranger = udp_socket();
    let from = {
        clients[0].send(b"?").unwrap();
        server.recv_from(&mut datagram).unwrap().1
    };
    stranger.send_to(b"forged", from).unwrap();
    assert_eq!(drain(&clients[0]), 0);
    let count = relay.stop();
    assert_eq!((count("a_to_b_received"), count("a_to_b_delivered"), count("b_to_a_delivered")), (3, 3, 2));
    assert_eq!(count("clients_dropped/stranger"), 1);
}

#[test]
fn losses_are_counted_and_no_datagram_is_missing_from_the_counters() {
    let server = udp_socket();
    let relay = Relay::start("udp", server.local_addr().unwrap(), "links: { profile: lossy-5 }");
    let client = udp_socket();
    let mut arrived = 0;
    for _ in 0..40 {
        for _ in 0..50 {
            client.send_to(&[7; 200], relay.address).unwrap();
        }
        server.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        arrived += drain(&server);
    }
    server.set_read_timeout(Some(SILENCE)).unwrap();
    arrived += drain(&server);
    let count = relay.stop();
    assert_eq!(count("sockets_dropped"), 0);
    assert_eq!((count("a_to_b_received"), count("a_to_b_delivered")), (2000, arrived));
    assert_eq!(count("a_to_b_delivered") + count("a_to_b_dropped"), 2000);
    // Five deviations of a binomial distribution.
    assert!(count("a_to_b_dropped/lost").abs_diff(100) < 50, "{}", count("a_to_b_dropped/lost"));
}

#[test]
fn a_client_without_a_place_is_counted() {
    let server = udp_socket();
    let relay = Relay::start("udp", server.local_addr().unwrap(), "clients_max: 1");
    for _ in 0..2 {
        udp_socket().send_to(b"hello", relay.address).unwrap();
    }
    assert_eq!(drain(&server), 1);
    assert_eq!(relay.stop()("clients_dropped/clients_full"), 1);
}

#[test]
fn a_stream_passes_at_the_rate_of_the_link_and_unchanged() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let links = "links: { both: { bottleneck: { rate: { mbps: 20, queue_octets: 30000 } }, delay: { base_ms: 20 } } }";
    let relay = Relay::start("tcp", listener.local_addr().unwrap(), links);
    let sent: Vec<u8> = (0..500_000_u32).map(|index| (index % 251) as u8).collect();
    let began = Instant::now();
    let mut client = TcpStream::connect(relay.address).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    let octets = sent.clone();
    let sending = std::thread::spawn(move || {
        client.write_all(&octets).unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        answer
    });
    let mut received = Vec::new();
    server.read_to_end(&mut received).unwrap();
    // 500 kB at 20 Mbit/s, and the delay.
    assert!(received == sent && began.elapsed() >= Duration::from_millis(200 + 20));
    server.write_all(b"thanks").unwrap();
    drop(server);
    assert_eq!(sending.join().unwrap(), "thanks");
    let count = relay.stop();
    assert!(count("a_to_b_received") >= 500_000 / 1448);
    assert_eq!(count("a_to_b_received"), count("a_to_b_delivered"));
}

#[test]
fn a_client_notices_that_there_is_no_server() {
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let relay = Relay::start("tcp", unused, "");
    let mut client = TcpStream::connect(relay.address).unwrap();
    assert!(matches!(client.read(&mut [0; 8]), Ok(0) | Err(_)));
    assert_eq!(relay.stop()("clients_dropped/no_server"), 1);
}
