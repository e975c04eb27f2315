//! OpenSSL as the client and as the server.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use viaduct_components::net::dtls::{Client, EndReason, Event, Server};
use viaduct_units::Mono;

use super::common::{IDENTITY, KEY, client_config, server_config};

/// Time limit for another process, generous for a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns `true` if OpenSSL is installed, and reports it otherwise.
fn has_openssl() -> bool {
    let found = Command::new("openssl").arg("version").output().is_ok_and(|output| output.status.success());
    if !found {
        assert!(std::env::var_os("VIADUCT_REQUIRE_PEERS").is_none(), "skipped where nothing may be skipped: `openssl`");
        let _ = writeln!(std::io::stderr(), "skipped: `openssl` is not installed");
    }
    found
}

/// OpenSSL, which ends with the test.
struct Openssl {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Openssl {
    /// Starts OpenSSL with a pre-shared key.
    fn start(command: &str, key: &[u8], arguments: &[&str]) -> Self {
        let hex: String = key.iter().map(|octet| format!("{octet:02x}")).collect();
        let mut child = Command::new("openssl")
            .args([command, "-dtls1_2", "-psk", &hex, "-cipher", "PSK-AES128-CCM8:@SECLEVEL=0"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let errors = BufReader::new(child.stderr.take().unwrap());
        let output = BufReader::new(child.stdout.take().unwrap());
        let to_errors = sender.clone();
        std::thread::spawn(move || errors.lines().map_while(Result::ok).try_for_each(|line| to_errors.send(line)));
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { input: child.stdin.take().unwrap(), child, lines }
    }

    fn client(identity: &str, key: &[u8], server: SocketAddr) -> Self {
        Self::start("s_client", key, &["-psk_identity", identity, "-connect", &server.to_string()])
    }

    fn write(&mut self, line: &str) {
        // One write, because OpenSSL makes a record of each.
        self.input.write_all(format!("{line}\n").as_bytes()).unwrap();
        self.input.flush().unwrap();
    }

    /// Returns `true` if a line with this text was printed.
    fn has_printed(&self, text: &str, seen: &mut Vec<String>) -> bool {
        seen.extend(self.lines.try_iter());
        seen.iter().any(|line| line.contains(text))
    }
}

impl Drop for Openssl {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A machine with its socket, in real time.
struct Runner<M> {
    machine: M,
    socket: UdpSocket,
    start: Instant,
    events: Vec<Event>,
    received: Vec<(SocketAddr, Vec<u8>)>,
}

/// The calls that a server and a client have in common.
trait Machine {
    fn step(&mut self, now: Mono, input: Option<(SocketAddr, &[u8])>);
    fn transmit(&mut self) -> Option<(SocketAddr, bytes::Bytes)>;
    fn received(&mut self) -> Option<(SocketAddr, bytes::Bytes)>;
    fn event(&mut self) -> Option<Event>;
}

macro_rules! machine {
    ($type:ty) => {
        impl Machine for $type {
            fn step(&mut self, now: Mono, input: Option<(SocketAddr, &[u8])>) {
                match input {
                    Some((from, datagram)) => self.handle_datagram(now, from, datagram),
                    None if self.poll_timeout().is_some_and(|due| due <= now) => self.handle_timeout(now),
                    None => {}
                }
            }

            fn transmit(&mut self) -> Option<(SocketAddr, bytes::Bytes)> {
                self.poll_transmit()
            }

            fn received(&mut self) -> Option<(SocketAddr, bytes::Bytes)> {
                self.poll_received()
            }

            fn event(&mut self) -> Option<Event> {
                self.poll_event()
            }
        }
    };
}

machine!(Server);
machine!(Client);

impl<M: Machine> Runner<M> {
    fn new(machine: M) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        Self { machine, socket, start: Instant::now(), events: Vec::new(), received: Vec::new() }
    }

    fn now(&self) -> Mono {
        Mono(self.start.elapsed())
    }

    /// Processes what arrives in the next milliseconds.
    fn step(&mut self) {
        let mut buffer = [0; 4096];
        if let Ok((length, from)) = self.socket.recv_from(&mut buffer) {
            self.machine.step(self.now(), Some((from, &buffer[..length])));
        }
        self.machine.step(self.now(), None);
        while let Some((to, datagram)) = self.machine.transmit() {
            let _ = self.socket.send_to(&datagram, to);
        }
        self.received.extend(std::iter::from_fn(|| self.machine.received()).map(|(from, data)| (from, data.to_vec())));
        self.events.extend(std::iter::from_fn(|| self.machine.event()));
    }

    fn until(&mut self, what: &str, mut condition: impl FnMut(&mut Self) -> bool) {
        let start = Instant::now();
        while !condition(self) {
            assert!(start.elapsed() < PATIENCE, "it does not happen that {what}: {:?}", self.events);
            self.step();
        }
    }

    fn has_received(&self, text: &str) -> bool {
        self.received.iter().any(|(_, payload)| payload == text.as_bytes())
    }
}

fn server() -> Runner<Server> {
    Runner::new(Server::new(Mono::default(), server_config()).unwrap())
}

fn client(identity: &str, key: &[u8], server: SocketAddr) -> Runner<Client> {
    Runner::new(Client::new(Mono::default(), client_config(identity, key), server).unwrap())
}

#[test]
fn a_client_of_openssl_exchanges_payloads() {
    if !has_openssl() {
        return;
    }
    let mut server = server();
    let address = server.socket.local_addr().unwrap();
    let mut client = Openssl::client(IDENTITY, KEY, address);
    let mut seen = Vec::new();
    server.until("the client connects", |server| {
        client.has_printed("Cipher is PSK-AES128-CCM8", &mut seen)
            && matches!(server.events[..], [Event::Connected { .. }])
    });
    let Event::Connected { peer, identity } = server.events[0].clone() else { unreachable!("matched above") };
    assert_eq!(&*identity, IDENTITY);
    assert_eq!(server.machine.identity(peer), Some(&identity));
    client.write("ping of the client");
    server.until("the payload arrives", |server| server.has_received("ping of the client\n"));
    let now = server.now();
    server.machine.send(now, peer, b"pong of the server\n").unwrap();
    server.until("the answer arrives", |_| client.has_printed("pong of the server", &mut seen));
    assert_eq!(server.machine.counters().dropped_total(), 0, "{:?}", server.machine.counters());
    // The end of its input ends the client, which closes the session.
    drop(std::mem::replace(&mut client.input, dummy_input()));
    server.until("the session ends", |server| {
        server.events.contains(&Event::Closed { peer, identity: identity.clone(), reason: EndReason::ClosedByPeer })
    });
}

/// Returns the input of a process that has ended.
fn dummy_input() -> ChildStdin {
    let mut child = Command::new("true").stdin(Stdio::piped()).spawn().unwrap();
    let input = child.stdin.take().unwrap();
    child.wait().unwrap();
    input
}

#[test]
fn a_client_of_openssl_with_a_wrong_key_or_identity_is_refused() {
    if !has_openssl() {
        return;
    }
    for (identity, key, reason) in
        [(IDENTITY, &b"another key"[..], EndReason::WrongKey), ("nobody", KEY, EndReason::UnknownIdentity)]
    {
        let mut server = server();
        let client = Openssl::client(identity, key, server.socket.local_addr().unwrap());
        let mut seen = Vec::new();
        server.until("the client is refused", |_| client.has_printed("decrypt error", &mut seen));
        assert!(matches!(server.events[..], [Event::Failed { reason: found, .. }] if found == reason));
        assert_eq!((server.machine.counters().ended(reason), server.machine.sessions()), (1, 0));
    }
}

/// Returns a server of OpenSSL and its address.
fn openssl_server() -> (Openssl, SocketAddr) {
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    // `-listen` makes it send cookies.
    let server = Openssl::start("s_server", KEY, &["-nocert", "-listen", "-accept", &format!("127.0.0.1:{port}")]);
    let mut seen = Vec::new();
    let start = Instant::now();
    while !server.has_printed("ACCEPT", &mut seen) {
        assert!(start.elapsed() < PATIENCE, "OpenSSL does not start: {seen:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
    (server, SocketAddr::from(([127, 0, 0, 1], port)))
}

#[test]
fn a_server_of_openssl_exchanges_payloads() {
    if !has_openssl() {
        return;
    }
    let (mut server, address) = openssl_server();
    let mut client = client(IDENTITY, KEY, address);
    client.machine.send(Mono::default(), b"first payload\n").unwrap();
    let mut seen = Vec::new();
    client.until("the payload arrives", |_| server.has_printed("first payload", &mut seen));
    assert!(matches!(client.events[..], [Event::Connected { .. }]));
    server.write("pong of the server");
    client.until("the answer arrives", |client| client.has_received("pong of the server\n"));
    let now = client.now();
    client.machine.disconnect(now);
    client.until("the server ends the session", |_| server.has_printed("DONE", &mut seen));
}

#[test]
fn a_server_of_openssl_ignores_a_wrong_key() {
    if !has_openssl() {
        return;
    }
    let (_server, address) = openssl_server();
    let mut config = client_config(IDENTITY, b"another key");
    config.timing.timeout = Duration::from_secs(2);
    let mut client = Runner::new(Client::new(Mono::default(), config, address).unwrap());
    client.machine.send(Mono::default(), b"lost\n").unwrap();
    client.until("the handshake fails", |client| !client.events.is_empty());
    let reason = EndReason::HandshakeTimeout;
    assert!(
        matches!(client.events[..], [Event::Failed { reason: found, .. }] if found == reason),
        "{:?}",
        client.events
    );
    assert_eq!(client.machine.counters().unsent, 1);
}
