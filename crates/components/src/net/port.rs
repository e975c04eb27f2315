//! A UDP socket of a server or a client, with or without DTLS: payloads go in and come out.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bytes::Bytes;
use viaduct_bus::{Counter, clock};
use viaduct_node::{Component, Context, SettingError, StartError};
use viaduct_units::Mono;

use super::dtls::{
    Client, Counters, DropReason, DtlsClientSettings, DtlsError, DtlsServerSettings, EndReason, Event, Server,
};
use super::socket_counters;
use super::udp_socket::{DATAGRAM_OCTETS_MAX, Received, UdpSettings, UdpSocket};
use crate::machine_counters::MachineCounters;

/// Datagrams that wait until the kernel takes them.
const QUEUE_MAX: usize = 8192;

/// A payload with its sender.
pub(crate) type Arrival = (SocketAddr, Bytes);

/// A UDP socket.
pub(crate) struct Port {
    socket: UdpSocket,
    received: Vec<Received>,
    protection: Protection,
    counters: MachineCounters<UdpSocket>,
    dtls_counters: Option<MachineCounters<Counters>>,
    /// Payloads that could not be sent because there was no session.
    unsent: Counter,
    component: String,
}

/// Protection of the payloads.
enum Protection {
    None,
    Server(Box<Server>),
    Client(Box<Client>),
}

impl Port {
    /// Opens a socket at an address. Must be called inside the runtime.
    pub(crate) fn server<C: Component>(
        listen: SocketAddr,
        receive_buffer_octets: usize,
        dtls: Option<&DtlsServerSettings>,
        context: &Context<C>,
    ) -> Result<Self, StartError> {
        let protection = match dtls {
            None => Protection::None,
            Some(dtls) => {
                let config = dtls.load().map_err(|error| SettingError::new("dtls.psk_file", error.to_string()))?;
                let server = Server::new(clock::mono(), config);
                Protection::Server(Box::new(server.map_err(|error| StartError::Other(error.to_string()))?))
            }
        };
        Self::open(listen, receive_buffer_octets, protection, context)
    }

    /// Opens a socket for one server. Must be called inside the runtime.
    pub(crate) fn client<C: Component>(
        server: SocketAddr,
        receive_buffer_octets: usize,
        dtls: Option<&DtlsClientSettings>,
        context: &Context<C>,
    ) -> Result<Self, StartError> {
        let any: IpAddr = if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let protection = match dtls {
            None => Protection::None,
            Some(dtls) => {
                let config = dtls.load().map_err(|error| SettingError::new("dtls.psk_file", error.to_string()))?;
                let client = Client::new(clock::mono(), config, server);
                Protection::Client(Box::new(client.map_err(|error| StartError::Other(error.to_string()))?))
            }
        };
        Self::open(SocketAddr::new(any, 0), receive_buffer_octets, protection, context)
    }

    fn open<C: Component>(
        address: SocketAddr,
        receive_buffer_octets: usize,
        protection: Protection,
        context: &Context<C>,
    ) -> Result<Self, StartError> {
        let settings =
            UdpSettings { receive_buffer_octets, datagram_octets_max: DATAGRAM_OCTETS_MAX, queue_max: QUEUE_MAX };
        let failed = |cause| StartError::io(format!("cannot open a UDP socket on {address}"), cause);
        Ok(Self {
            socket: UdpSocket::bind(address, &settings).map_err(failed)?,
            received: Vec::new(),
            dtls_counters: (!matches!(protection, Protection::None)).then(|| dtls_counters(context)),
            protection,
            counters: socket_counters(context),
            unsent: context.counter_for("datagrams_unsent", "no_session"),
            component: context.name().to_owned(),
        })
    }

    pub(crate) fn local_address(&self) -> io::Result<SocketAddr> {
        self.socket.local_address()
    }

    /// Waits until datagrams have arrived, and adds their payloads. Sends in the meantime. Cancelling the wait loses nothing.
    pub(crate) async fn receive(&mut self, payloads: &mut Vec<Arrival>) -> io::Result<()> {
        self.socket.receive(&mut self.received).await?;
        let now = clock::mono();
        for Received { from, octets, .. } in self.received.drain(..) {
            match &mut self.protection {
                Protection::None => payloads.push((from, octets)),
                Protection::Server(server) => server.handle_datagram(now, from, &octets),
                Protection::Client(client) => client.handle_datagram(now, from, &octets),
            }
        }
        self.settle(payloads);
        Ok(())
    }

    /// Sends a payload with the next [`Self::flush`].
    pub(crate) fn push(&mut self, to: SocketAddr, payload: Bytes) {
        let now = clock::mono();
        let sent = match &mut self.protection {
            Protection::None => return self.socket.push(to, payload),
            Protection::Server(server) => server.send(now, to, &payload),
            Protection::Client(client) => client.send(now, &payload),
        };
        if sent.is_err() {
            self.unsent.increment();
        }
    }

    /// Sends datagrams to multicast groups through an interface.
    pub(crate) fn set_multicast_interface(&self, interface: Ipv4Addr) -> io::Result<()> {
        self.socket.set_multicast_interface(interface)
    }

    /// Sends what the kernel takes now. The rest waits for [`Self::receive`].
    pub(crate) fn flush(&mut self) {
        self.take_datagrams();
        self.socket.flush();
    }

    /// Returns the time at which [`Self::handle_timeout`] must be called, or `None`.
    pub(crate) fn poll_timeout(&self) -> Option<Mono> {
        match &self.protection {
            Protection::None => None,
            Protection::Server(server) => server.poll_timeout(),
            Protection::Client(client) => client.poll_timeout(),
        }
    }

    /// Does the work that is due.
    pub(crate) fn handle_timeout(&mut self, now: Mono, payloads: &mut Vec<Arrival>) {
        match &mut self.protection {
            Protection::None => return,
            Protection::Server(server) => server.handle_timeout(now),
            Protection::Client(client) => client.handle_timeout(now),
        }
        self.settle(payloads);
    }

    /// Takes payloads, events and datagrams of DTLS.
    fn settle(&mut self, payloads: &mut Vec<Arrival>) {
        while let Some(payload) = match &mut self.protection {
            Protection::None => None,
            Protection::Server(server) => server.poll_received(),
            Protection::Client(client) => client.poll_received(),
        } {
            payloads.push(payload);
        }
        while let Some(event) = match &mut self.protection {
            Protection::None => None,
            Protection::Server(server) => server.poll_event(),
            Protection::Client(client) => client.poll_event(),
        } {
            self.log(&event);
        }
        self.flush();
    }

    fn take_datagrams(&mut self) {
        while let Some((to, datagram)) = match &mut self.protection {
            Protection::None => None,
            Protection::Server(server) => server.poll_transmit(),
            Protection::Client(client) => client.poll_transmit(),
        } {
            self.socket.push(to, datagram);
        }
    }

    fn log(&self, event: &Event) {
        let component = &self.component;
        match event {
            Event::Connected { peer, identity } => tracing::info!(component, %peer, %identity, "DTLS session begins"),
            Event::Renewed { peer, identity } => tracing::debug!(component, %peer, %identity, "DTLS session renewed"),
            Event::Closed { peer, identity, .. } => tracing::info!(component, %peer, %identity, "DTLS session ends"),
            other => tracing::debug!(component, ?other, "DTLS"),
        }
    }

    /// Updates the counters. To be called periodically.
    pub(crate) fn sync_counters(&mut self) {
        self.socket.count_kernel_drops();
        self.counters.sync(&self.socket);
        let counters = match &self.protection {
            Protection::None => return,
            Protection::Server(server) => server.counters(),
            Protection::Client(client) => client.counters(),
        };
        if let Some(mirror) = &mut self.dtls_counters {
            mirror.sync(counters);
        }
    }
}

/// Opens the counters of DTLS.
fn dtls_counters<C: Component>(context: &Context<C>) -> MachineCounters<Counters> {
    MachineCounters::new(context, |totals| {
        totals.one("dtls_records", |counters: &Counters| counters.records);
        totals.one("dtls_payloads", |counters| counters.payloads);
        totals.one("dtls_handshake_records", |counters| counters.handshake_records);
        totals.one("dtls_handshakes", |counters| counters.handshakes);
        totals.one("dtls_sessions", |counters| counters.sessions);
        totals.one("dtls_sent", |counters| counters.sent);
        totals.one("dtls_unsent", |counters| counters.unsent);
        totals.each("dtls_dropped", &DropReason::ALL, DropReason::label, Counters::dropped);
        totals.each("dtls_ended", &EndReason::ALL, EndReason::label, Counters::ended);
    })
}

/// Checks that only this machine reaches an address without a key, unless everyone may come in.
pub(crate) fn check_open(key: &str, address: SocketAddr, anonymous: bool) -> Result<(), SettingError> {
    if address.ip().is_loopback() || anonymous {
        return Ok(());
    }
    let problem = format!(
        "{address} is not a loopback address, and clients need no key: set `dtls`, or `anonymous: true` to serve everyone who can reach it"
    );
    Err(SettingError::new(key, problem))
}

/// Checks that a file with keys can be used.
pub(crate) fn check_keys<T>(loaded: Option<Result<T, DtlsError>>) -> Result<(), SettingError> {
    match loaded {
        Some(Err(error)) => Err(SettingError::new("dtls.psk_file", error.to_string())),
        _ => Ok(()),
    }
}

/// Checks the address of a server. `what` names the server.
pub(crate) fn check_server(key: &str, address: SocketAddr, what: &str) -> Result<(), SettingError> {
    match address.port() {
        0 => Err(SettingError::new(key, format!("`{address}` has port 0; expected the port of the {what}"))),
        _ => Ok(()),
    }
}

/// Returns the earlier of two deadlines.
pub(crate) fn earlier(one: Option<Mono>, other: Option<Mono>) -> Option<Mono> {
    one.into_iter().chain(other).min()
}
