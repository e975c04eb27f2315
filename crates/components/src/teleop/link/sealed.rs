//! The other end of encrypted datagrams: it is known by its key.

use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use viaduct_bus::{Gauge, clock};
use viaduct_node::{Context, StartError};
use viaduct_units::Mono;

use crate::machine_counters::MachineCounters;
use crate::net::secure::{
    Credentials, DropReason, Endpoint, Event, PeerId, Role, SealError, SystemRandom, Timing, limits::OVERHEAD_OCTETS,
};
use crate::net::udp_socket::UdpSocket;
use viaduct_units::RateLimiter;

/// Memory that is allocated for sealed datagrams at once.
const CHUNK_OCTETS: usize = 64 << 10;
/// Events of the sessions that are logged in a second.
const LOGGED_PER_SECOND: u32 = 5;
/// The only peer.
const PEER: PeerId = PeerId(0);

/// The sessions with the other end.
pub(super) struct Sealed {
    endpoint: Endpoint,
    /// Memory for sealed datagrams.
    chunk: BytesMut,
    counters: MachineCounters<Endpoint>,
    connected: Gauge,
    logged: RateLimiter,
}

impl Sealed {
    pub(super) fn new<C: Send + 'static>(credentials: Credentials, context: &Context<C>) -> Result<Self, StartError> {
        let own = credentials.private_key.public_key();
        for peer in &credentials.peers {
            tracing::info!(peer = peer.name, public_key = %peer.public_key, own_public_key = %own, "datagrams are encrypted");
        }
        let endpoint = Endpoint::new(clock::mono(), credentials, Timing::default(), Box::new(SystemRandom::default()));
        Ok(Self {
            endpoint: endpoint.map_err(|error| StartError::Other(error.to_string()))?,
            chunk: BytesMut::new(),
            counters: counters(context),
            connected: context.gauge("session"),
            logged: RateLimiter::new(LOGGED_PER_SECOND),
        })
    }

    /// Returns the permission of the other end.
    pub(super) fn role(&self) -> Role {
        self.endpoint.peer(PEER).map_or(Role::Observer, |peer| peer.role)
    }

    /// Returns the payload of a received datagram, or `None` if it has none or is dropped.
    pub(super) fn open(&mut self, now: Mono, from: SocketAddr, datagram: &[u8]) -> Option<Bytes> {
        self.endpoint.open(now, from, datagram).map(|opened| opened.payload)
    }

    /// Returns the datagram of a payload, and its receiver.
    ///
    /// # Errors
    /// There is no session, or the payload is too long.
    pub(super) fn seal(&mut self, now: Mono, payload: &[u8]) -> Result<(SocketAddr, Bytes), SealError> {
        if self.chunk.capacity() < payload.len() + OVERHEAD_OCTETS {
            self.chunk = BytesMut::with_capacity(CHUNK_OCTETS.max(payload.len() + OVERHEAD_OCTETS));
        }
        let to = self.endpoint.seal(now, PEER, payload, &mut self.chunk)?;
        Ok((to, self.chunk.split().freeze()))
    }

    /// Gives the socket the messages of the sessions, and logs their events.
    pub(super) fn settle(&mut self, now: Mono, socket: &mut UdpSocket) {
        while let Some((to, datagram)) = self.endpoint.poll_transmit() {
            socket.push(to, datagram);
        }
        while let Some(event) = self.endpoint.poll_event() {
            self.log(now, event);
        }
    }

    fn log(&mut self, now: Mono, event: Event) {
        let Some(events) = self.logged.admit(now) else { return };
        let peer = self.endpoint.peer(PEER).map_or("", |peer| peer.name.as_str());
        match event {
            Event::Connected { address, .. } => tracing::info!(peer, %address, events, "session established"),
            Event::Renewed { address, .. } => tracing::info!(peer, %address, events, "session renewed"),
            Event::Moved { address, .. } => tracing::info!(peer, %address, events, "address of the peer has changed"),
            Event::Disconnected { .. } => tracing::warn!(peer, events, "session has expired"),
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Mono> {
        self.endpoint.poll_timeout()
    }

    pub(super) fn handle_timeout(&mut self, now: Mono, socket: &mut UdpSocket) {
        if self.endpoint.poll_timeout().is_some_and(|due| due <= now) {
            self.endpoint.handle_timeout(now);
            self.settle(now, socket);
        }
    }

    /// Updates the counters.
    pub(super) fn sync_counters(&mut self) {
        self.counters.sync(&self.endpoint);
        self.connected.set(f64::from(u8::from(self.endpoint.address(PEER).is_some())));
    }
}

fn counters<C: Send + 'static>(context: &Context<C>) -> MachineCounters<Endpoint> {
    MachineCounters::new(context, |totals| {
        totals.one("datagrams_opened", |endpoint: &Endpoint| endpoint.counters().opened);
        totals.one("datagrams_sealed", |endpoint| endpoint.counters().sealed);
        totals.each("datagrams_dropped", &DropReason::ALL, DropReason::label, |endpoint, reason| {
            endpoint.counters().dropped(reason)
        });
        totals.one("session_messages", |endpoint| endpoint.counters().handshake_messages + endpoint.counters().empty);
        totals.one("sessions", |endpoint| endpoint.counters().sessions);
        totals.one("session_attempts", |endpoint| endpoint.counters().handshakes_started);
        totals.one("key_agreements", |endpoint| endpoint.counters().key_agreements);
        totals.one("address_changes", |endpoint| endpoint.counters().moves);
        totals.one("session_events_dropped", |endpoint| endpoint.counters().events_lost);
    })
}
