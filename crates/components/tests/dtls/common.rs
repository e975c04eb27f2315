//! Servers and clients with the keys of the tests.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use viaduct_components::net::dtls::{
    Client, ClientConfig, Counters, DropReason, Event, HandshakeTiming, PskKeys, Server, ServerConfig,
};
use viaduct_netem::DatagramMachine;
use viaduct_units::Mono;

pub(crate) const MS: Duration = Duration::from_millis(1);
pub(crate) const IDENTITY: &str = "robot-7";
/// The key of [`IDENTITY`].
pub(crate) const KEY: &[u8] = b"0123456789abcdef";

pub(crate) fn server_address() -> SocketAddr {
    "192.0.2.2:4000".parse().unwrap()
}

pub(crate) fn client_address() -> SocketAddr {
    "192.0.2.1:4000".parse().unwrap()
}

pub(crate) fn timing() -> HandshakeTiming {
    HandshakeTiming { timeout: Duration::from_secs(60), retransmission: Duration::from_secs(1) }
}

pub(crate) fn server_config() -> ServerConfig {
    ServerConfig {
        keys: PskKeys::single(IDENTITY, KEY).unwrap(),
        connections_max: 1000,
        handshakes_max: 100,
        idle_timeout: Duration::from_secs(3600),
        timing: timing(),
    }
}

pub(crate) fn client_config(identity: &str, key: &[u8]) -> ClientConfig {
    ClientConfig { keys: PskKeys::single(identity, key).unwrap(), silence: Duration::from_secs(10), timing: timing() }
}

pub(crate) fn new_server() -> Server {
    Server::new(Mono::default(), server_config()).unwrap()
}

pub(crate) fn new_client() -> Client {
    Client::new(Mono::default(), client_config(IDENTITY, KEY), server_address()).unwrap()
}

/// Checks that each record is counted once.
pub(crate) fn check(counters: &Counters) {
    let processed = counters.payloads + counters.handshake_records;
    assert_eq!(counters.records, processed + counters.dropped_total(), "{counters:?}");
}

/// A client at an address, and a server, without a link.
pub(crate) struct Ends {
    pub(crate) now: Mono,
    pub(crate) server: Server,
    pub(crate) client: Client,
    pub(crate) address: SocketAddr,
}

impl Ends {
    pub(crate) fn new() -> Self {
        Self::of(new_server(), new_client())
    }

    pub(crate) fn of(server: Server, client: Client) -> Self {
        Self { now: Mono::default(), server, client, address: client_address() }
    }

    /// Returns two ends with a session.
    pub(crate) fn connected() -> Self {
        let mut ends = Self::new();
        ends.client.send(ends.now, b"first").unwrap();
        ends.exchange();
        assert_eq!(ends.take_received(), [&b"first"[..]]);
        assert_eq!(ends.server.identity(ends.address).map(|identity| &**identity), Some(IDENTITY));
        assert_eq!(ends.server.counters().dropped_total() + ends.client.counters().dropped_total(), 0);
        ends
    }

    /// Exchanges datagrams until no end has any more.
    pub(crate) fn exchange(&mut self) {
        loop {
            let (up, down) = (self.sent_by_client(), self.sent_by_server());
            if up.is_empty() && down.is_empty() {
                return;
            }
            for datagram in up {
                self.server.handle_datagram(self.now, self.address, &datagram);
            }
            for datagram in down {
                self.client.handle_datagram(self.now, server_address(), &datagram);
            }
        }
    }

    /// Exchanges the messages until the client sends a `ClientHello` with a cookie. Returns it; it is not delivered.
    pub(crate) fn hello_with_cookie(&mut self) -> Bytes {
        self.client.reconnect(self.now);
        let hello = self.sent_by_client().remove(0);
        self.server.handle_datagram(self.now, self.address, &hello);
        let cookie = self.sent_by_server().remove(0);
        self.client.handle_datagram(self.now, server_address(), &cookie);
        self.sent_by_client().remove(0)
    }

    pub(crate) fn pass(&mut self, duration: Duration) {
        self.now = self.now.plus(duration);
        self.server.handle_timeout(self.now);
        self.client.handle_timeout(self.now);
    }

    /// Returns the datagrams that the client sends.
    pub(crate) fn sent_by_client(&mut self) -> Vec<Bytes> {
        std::iter::from_fn(|| self.client.poll_transmit()).map(|(_, datagram)| datagram).collect()
    }

    /// Returns the datagrams that the server sends to the client's address. Others are lost.
    pub(crate) fn sent_by_server(&mut self) -> Vec<Bytes> {
        let sent = std::iter::from_fn(|| self.server.poll_transmit());
        sent.filter(|(to, _)| *to == self.address).map(|(_, datagram)| datagram).collect()
    }

    /// Returns the payloads that the server has received.
    pub(crate) fn take_received(&mut self) -> Vec<Bytes> {
        std::iter::from_fn(|| self.server.poll_received()).map(|(_, payload)| payload).collect()
    }

    /// Returns the payloads that the client has received.
    pub(crate) fn take_answers(&mut self) -> Vec<Bytes> {
        std::iter::from_fn(|| self.client.poll_received()).map(|(_, payload)| payload).collect()
    }

    /// Returns how many records the server has dropped for a reason.
    pub(crate) fn dropped(&self, reason: DropReason) -> u64 {
        self.server.counters().dropped(reason)
    }

    /// Checks that payloads pass in both directions.
    pub(crate) fn check_traffic(&mut self) {
        self.take_received();
        self.take_answers();
        self.client.send(self.now, b"request").unwrap();
        self.exchange();
        assert_eq!(self.take_received(), [&b"request"[..]]);
        self.server.send(self.now, self.address, b"answer").unwrap();
        self.exchange();
        assert_eq!(self.take_answers(), [&b"answer"[..]]);
        check(self.server.counters());
        check(self.client.counters());
    }
}

/// An end in a program.
pub(crate) enum End {
    /// A server that answers each payload with the same payload.
    Server(Box<Server>),
    /// A client that sends a numbered payload in each interval.
    Client(Box<Client>),
}

/// A program with one end.
pub(crate) struct Program {
    pub(crate) end: End,
    interval: Duration,
    next_payload: Option<Mono>,
    pub(crate) sent: u32,
    /// Numbers of payloads received, with their times.
    pub(crate) received: Vec<(Mono, u32)>,
    pub(crate) events: Vec<(Mono, Event)>,
    outbox: VecDeque<(SocketAddr, Bytes)>,
}

impl Program {
    pub(crate) fn new(end: End) -> Self {
        Self {
            end,
            interval: Duration::MAX,
            next_payload: None,
            sent: 0,
            received: Vec::new(),
            events: Vec::new(),
            outbox: VecDeque::new(),
        }
    }

    /// Sends payloads from now on.
    pub(crate) fn start(&mut self, now: Mono, interval: Duration) {
        (self.interval, self.next_payload) = (interval, Some(now));
    }

    pub(crate) fn counters(&self) -> &Counters {
        match &self.end {
            End::Server(server) => server.counters(),
            End::Client(client) => client.counters(),
        }
    }

    fn send_due(&mut self, now: Mono) {
        while let (End::Client(client), Some(due)) = (&mut self.end, self.next_payload.filter(|due| *due <= now)) {
            self.next_payload = Some(due.plus(self.interval));
            // A client without a session keeps a few payloads and refuses the others.
            if client.send(now, &self.sent.to_be_bytes()).is_ok() {
                self.sent += 1;
            }
        }
    }

    fn take(&mut self, now: Mono) {
        while let Some((from, payload)) = self.poll_received() {
            self.received.push((now, u32::from_be_bytes((*payload).try_into().unwrap())));
            if let End::Server(server) = &mut self.end {
                let _ = server.send(now, from, &payload);
            }
        }
        loop {
            let (transmit, event) = match &mut self.end {
                End::Server(server) => (server.poll_transmit(), server.poll_event()),
                End::Client(client) => (client.poll_transmit(), client.poll_event()),
            };
            if transmit.is_none() && event.is_none() {
                return;
            }
            self.outbox.extend(transmit);
            self.events.extend(event.map(|event| (now, event)));
        }
    }

    fn poll_received(&mut self) -> Option<(SocketAddr, Bytes)> {
        match &mut self.end {
            End::Server(server) => server.poll_received(),
            End::Client(client) => client.poll_received(),
        }
    }
}

impl DatagramMachine for Program {
    fn handle_datagram(&mut self, now: Mono, from: SocketAddr, datagram: &Bytes) {
        match &mut self.end {
            End::Server(server) => server.handle_datagram(now, from, datagram),
            End::Client(client) => client.handle_datagram(now, from, datagram),
        }
        self.take(now);
    }

    fn handle_timeout(&mut self, now: Mono) {
        match &mut self.end {
            End::Server(server) => server.handle_timeout(now),
            End::Client(client) => client.handle_timeout(now),
        }
        self.send_due(now);
        self.take(now);
    }

    fn poll_transmit(&mut self) -> Option<(SocketAddr, Bytes)> {
        self.outbox.pop_front()
    }

    fn poll_timeout(&self) -> Option<Mono> {
        let own = match &self.end {
            End::Server(server) => server.poll_timeout(),
            End::Client(client) => client.poll_timeout(),
        };
        own.into_iter().chain(self.next_payload).min()
    }
}
