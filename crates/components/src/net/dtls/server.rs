//! The server: sessions with many clients, as a state machine without sockets.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use viaduct_units::Mono;

use super::counters::{Counters, DropReason, EndReason};
use super::limits::{
    ALERT_BURST, ALERT_INTERVAL, EVENTS_MAX, HANDSHAKE_BURST, HANDSHAKE_INTERVAL, HELLOS_MAX, PAYLOAD_OCTETS_MAX,
    RECEIVED_MAX, SOURCE_HANDSHAKE_BURST, SOURCE_HANDSHAKE_INTERVAL, TRANSMITS_MAX,
};
use super::session::{Engine, Output, Role, Session};
use super::settings::ServerConfig;
use super::wire::{self, Alert, COOKIE, ClientHello, ContentType, Record};
use super::{Event, SendError, StartError};
use crate::net::secure::admission::{Admission, Cookies, Rates, TokenBucket, ipv6};
use crate::net::secure::{Random, SystemRandom};

const RATES: Rates = Rates {
    interval: HANDSHAKE_INTERVAL,
    burst: HANDSHAKE_BURST,
    source_interval: SOURCE_HANDSHAKE_INTERVAL,
    source_burst: SOURCE_HANDSHAKE_BURST,
};

/// The DTLS of a server.
///
/// After each call, take all datagrams from [`Self::poll_transmit`], all payloads from [`Self::poll_received`] and all events
/// from [`Self::poll_event`], then read [`Self::poll_timeout`].
pub struct Server {
    engine: Engine,
    random: Box<dyn Random + Send>,
    cookies: Cookies,
    admission: Admission,
    /// Limit on alerts to addresses without a session.
    alerts: TokenBucket,
    peers: HashMap<SocketAddr, Peer>,
    /// The deadline of each peer that has one.
    deadlines: BTreeSet<(Mono, SocketAddr)>,
    sessions: usize,
    sessions_max: usize,
    /// The peers with a handshake under way.
    handshakes: HashSet<SocketAddr>,
    handshakes_max: usize,
    idle_timeout: Duration,
    transmits: VecDeque<(SocketAddr, Bytes)>,
    received: VecDeque<(SocketAddr, Bytes)>,
    events: VecDeque<Event>,
    counters: Counters,
    output: Output,
}

/// The connections with an address. One of them exists.
#[derive(Default)]
struct Peer {
    /// The session in use.
    current: Option<Session>,
    /// The handshake under way. It replaces the session when it has completed: the client has restarted.
    handshake: Option<Session>,
    /// Its entry in [`Server::deadlines`], at the deadline of a connection or before.
    deadline: Option<Mono>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    Current,
    Handshake,
}

impl Peer {
    fn slot(&mut self, slot: Slot) -> &mut Option<Session> {
        match slot {
            Slot::Current => &mut self.current,
            Slot::Handshake => &mut self.handshake,
        }
    }

    /// Returns the connection that a record is for, or `None` if there is none.
    fn slot_for(&self, record: &Record<'_>) -> Option<Slot> {
        let current = self.current.as_ref().map(|_| Slot::Current);
        let handshake = self.handshake.as_ref().map(|_| Slot::Handshake);
        match (record.epoch, record.content_type) {
            (0, ContentType::ApplicationData) => None,
            (1, ContentType::ApplicationData) => current,
            (1, ContentType::Alert) => current.or(handshake),
            (0 | 1, _) => handshake.or(current),
            _ => None,
        }
    }

    fn deadline(&self, idle_timeout: Duration) -> Option<Mono> {
        let idle = self.current.as_ref().map(|session| session.last_received.plus(idle_timeout));
        let sessions = [self.current.as_ref(), self.handshake.as_ref()];
        let own = sessions.into_iter().flatten().filter_map(Session::poll_timeout).min();
        own.into_iter().chain(idle).min()
    }
}

impl Server {
    /// Returns a server without sessions.
    ///
    /// # Errors
    /// The system provides no random numbers, or the configuration is not possible.
    pub fn new(now: Mono, config: ServerConfig) -> Result<Self, StartError> {
        let mut random: Box<dyn Random + Send> = Box::new(SystemRandom::default());
        Ok(Self {
            engine: Engine::new(now, &Role::Server, config.keys, config.timing)?,
            cookies: Cookies::new(now, &mut *random)?,
            admission: Admission::new(&mut *random, RATES)?,
            random,
            alerts: TokenBucket::new(ALERT_INTERVAL, ALERT_BURST),
            peers: HashMap::new(),
            deadlines: BTreeSet::new(),
            sessions: 0,
            sessions_max: config.connections_max.max(1),
            handshakes: HashSet::new(),
            handshakes_max: config.handshakes_max.max(1),
            idle_timeout: config.idle_timeout,
            transmits: VecDeque::new(),
            received: VecDeque::new(),
            events: VecDeque::new(),
            counters: Counters::default(),
            output: Output::default(),
        })
    }

    /// Returns the identity of a client, or `None` if there is no session with this address.
    #[must_use]
    pub fn identity(&self, peer: SocketAddr) -> Option<&Arc<str>> {
        self.peers.get(&peer)?.current.as_ref()?.identity()
    }

    /// Returns the number of sessions.
    #[must_use]
    pub const fn sessions(&self) -> usize {
        self.sessions
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Processes a received datagram. All drops are counted.
    pub fn handle_datagram(&mut self, now: Mono, from: SocketAddr, datagram: &[u8]) {
        self.counters.datagrams += 1;
        let mut rest = datagram;
        while !rest.is_empty() {
            self.counters.records += 1;
            let Some(record) = Record::split_off(&mut rest) else {
                return self.counters.count_drop(DropReason::Malformed);
            };
            match self.handle_record(now, from, &record) {
                Ok(()) if record.content_type == ContentType::ApplicationData => self.counters.payloads += 1,
                Ok(()) => self.counters.handshake_records += 1,
                Err(reason) => self.counters.count_drop(reason),
            }
        }
    }

    fn handle_record(&mut self, now: Mono, from: SocketAddr, record: &Record<'_>) -> Result<(), DropReason> {
        if record.is_client_hello() {
            return self.handle_client_hello(now, from, record);
        }
        let Some(slot) = self.peers.get(&from).and_then(|peer| peer.slot_for(record)) else {
            return self.handle_stray(now, from, record);
        };
        self.feed(now, from, slot, record)
    }

    /// Processes a `ClientHello`. Without a valid cookie it is answered with one, and nothing is stored.
    fn handle_client_hello(&mut self, now: Mono, from: SocketAddr, record: &Record<'_>) -> Result<(), DropReason> {
        let hello = ClientHello::parse(record).ok_or(DropReason::Malformed)?;
        if !hello.offers_cipher_suite() {
            return Err(DropReason::Unsupported);
        }
        self.cookies.refresh(now, &mut *self.random).map_err(|_| DropReason::NoRandom)?;
        let subject = cookie_subject(from, &hello);
        if !self.cookies.verify(&subject, hello.cookie) {
            return self.send_cookie(from, &hello, &subject);
        }
        let peer = self.peers.get(&from);
        if peer.and_then(|peer| peer.handshake.as_ref()).is_some_and(|session| session.has_random(hello.random)) {
            // The client has not received the answer.
            return self.feed(now, from, Slot::Handshake, record);
        }
        if peer.and_then(|peer| peer.current.as_ref()).is_some_and(|session| session.has_random(hello.random)) {
            return Err(DropReason::Replayed);
        }
        self.accept(now, from, &hello, record)
    }

    fn send_cookie(&mut self, from: SocketAddr, hello: &ClientHello<'_>, subject: &[u8]) -> Result<(), DropReason> {
        let tag = self.cookies.sign(subject);
        let cookie = tag.as_ref().first_chunk::<COOKIE>().ok_or(DropReason::NoRandom)?;
        self.counters.cookies += 1;
        self.push_transmit(from, wire::hello_verify_request(hello, cookie).into());
        Ok(())
    }

    /// Starts a handshake with an address that has proved itself.
    fn accept(
        &mut self,
        now: Mono,
        from: SocketAddr,
        hello: &ClientHello<'_>,
        record: &Record<'_>,
    ) -> Result<(), DropReason> {
        // A client counts its ClientHello messages. More than a few cookies do not expire during one handshake.
        if !(1..=HELLOS_MAX).contains(&hello.message) {
            return Err(DropReason::Unsupported);
        }
        if !self.admission.admit(now, from) {
            return Err(DropReason::HandshakeRate);
        }
        let cookie = *hello.cookie.first_chunk::<COOKIE>().ok_or(DropReason::Malformed)?;
        if self.peers.get(&from).is_some_and(|peer| peer.handshake.is_some()) {
            self.end(from, Slot::Handshake, EndReason::Replaced);
        }
        self.make_room_for_handshake();
        self.counters.handshakes += 1;
        self.output.clear();
        match Session::accept(&mut self.engine, now, hello, record, cookie, &mut self.output) {
            Ok(session) => {
                self.peers.entry(from).or_default().handshake = Some(session);
                self.handshakes.insert(from);
                self.settle(now, from, Slot::Handshake);
            }
            Err(reason) => self.report_end(from, None, reason),
        }
        Ok(())
    }

    /// Answers a record of a session that does not exist with an alert: the client may start another handshake at once.
    fn handle_stray(&mut self, now: Mono, from: SocketAddr, record: &Record<'_>) -> Result<(), DropReason> {
        let is_payload = record.epoch > 0 && record.content_type == ContentType::ApplicationData;
        if is_payload && !self.peers.contains_key(&from) && self.alerts.take(now) {
            self.push_transmit(from, wire::alert(0, Alert::UnexpectedMessage).into());
        }
        Err(DropReason::NoSession)
    }

    /// Passes a record to a connection.
    fn feed(&mut self, now: Mono, from: SocketAddr, slot: Slot, record: &Record<'_>) -> Result<(), DropReason> {
        if self.received.len() >= RECEIVED_MAX {
            return Err(DropReason::ReceiveQueueFull);
        }
        let session = self.peers.get_mut(&from).and_then(|peer| peer.slot(slot).as_mut());
        let session = session.ok_or(DropReason::NoSession)?;
        self.output.clear();
        match session.handle_record(&mut self.engine, now, record, &mut self.output) {
            Ok(verdict) => {
                self.settle(now, from, slot);
                verdict
            }
            Err(reason) => {
                self.end(from, slot, reason);
                Ok(())
            }
        }
    }

    /// Takes the results of a step of a connection.
    fn settle(&mut self, now: Mono, from: SocketAddr, slot: Slot) {
        let mut output = std::mem::take(&mut self.output);
        for datagram in output.datagrams.drain(..) {
            self.push_transmit(from, datagram);
        }
        if output.is_connected {
            self.promote(now, from);
        }
        self.received.extend(output.payloads.drain(..).map(|payload| (from, payload)));
        if output.is_closed {
            self.end(from, slot, EndReason::ClosedByPeer);
        }
        self.output = output;
        self.schedule(from);
    }

    /// Uses the session whose handshake has completed.
    fn promote(&mut self, now: Mono, from: SocketAddr) {
        let Some(peer) = self.peers.get_mut(&from) else { return };
        let Some(session) = peer.handshake.take() else { return };
        let identity = session.identity().cloned().unwrap_or_default();
        let earlier = peer.current.replace(session);
        self.handshakes.remove(&from);
        self.counters.sessions += 1;
        match earlier {
            Some(earlier) if earlier.identity() == Some(&identity) => {
                self.counters.count_end(EndReason::Replaced);
                self.push_event(Event::Renewed { peer: from, identity });
            }
            Some(earlier) => {
                self.report_end(from, Some(&earlier), EndReason::Replaced);
                self.push_event(Event::Connected { peer: from, identity });
            }
            None => {
                self.sessions += 1;
                self.push_event(Event::Connected { peer: from, identity });
                self.make_room_for_session(now, from);
            }
        }
    }

    /// Ends the session that was silent for longest, of the identity with the most sessions, if there are too many.
    fn make_room_for_session(&mut self, now: Mono, newest: SocketAddr) {
        if self.sessions <= self.sessions_max {
            return;
        }
        let sessions = self.peers.iter().filter_map(|(address, peer)| Some((*address, peer.current.as_ref()?)));
        let others = sessions.filter(|(address, _)| *address != newest);
        let rows = others.map(|(address, session)| (session.identity().cloned(), session.last_received, address));
        if let Some(victim) = oldest_of_largest_group(rows) {
            self.close(now, victim, EndReason::Limit);
        }
    }

    /// Ends the oldest handshake of the source with the most handshakes, if another one would be too many.
    fn make_room_for_handshake(&mut self) {
        if self.handshakes.len() < self.handshakes_max {
            return;
        }
        let rows = self.handshakes.iter().filter_map(|address| {
            let session = self.peers.get(address)?.handshake.as_ref()?;
            Some((source(address.ip()), session.since, *address))
        });
        if let Some(victim) = oldest_of_largest_group(rows) {
            self.end(victim, Slot::Handshake, EndReason::Limit);
        }
    }

    /// Sends a payload to a client.
    ///
    /// # Errors
    /// There is no session with this address, the payload is too long, or the owner has not taken earlier datagrams.
    pub fn send(&mut self, now: Mono, to: SocketAddr, payload: &[u8]) -> Result<(), SendError> {
        if payload.len() > PAYLOAD_OCTETS_MAX {
            return Err(SendError::TooLong(payload.len()));
        }
        if self.transmits.len() >= TRANSMITS_MAX {
            return Err(SendError::QueueFull);
        }
        let session = self.peers.get_mut(&to).and_then(|peer| peer.current.as_mut()).ok_or(SendError::NotConnected)?;
        self.output.clear();
        if let Err(reason) = session.send(&mut self.engine, now, payload, &mut self.output) {
            self.close(now, to, reason);
            return Err(SendError::NotConnected);
        }
        self.counters.sent += 1;
        self.settle(now, to, Slot::Current);
        Ok(())
    }

    /// Ends the session with a client. The client is informed once.
    pub fn disconnect(&mut self, now: Mono, peer: SocketAddr) {
        self.close(now, peer, EndReason::Closed);
    }

    fn close(&mut self, now: Mono, address: SocketAddr, reason: EndReason) {
        let Some(session) = self.peers.get_mut(&address).and_then(|peer| peer.current.as_mut()) else { return };
        self.output.clear();
        session.close(&mut self.engine, now, &mut self.output);
        for datagram in std::mem::take(&mut self.output.datagrams) {
            self.push_transmit(address, datagram);
        }
        self.end(address, Slot::Current, reason);
    }

    /// Removes a connection that has ended.
    fn end(&mut self, address: SocketAddr, slot: Slot, reason: EndReason) {
        let Some(session) = self.peers.get_mut(&address).and_then(|peer| peer.slot(slot).take()) else { return };
        match slot {
            Slot::Current => self.sessions -= 1,
            Slot::Handshake => {
                self.handshakes.remove(&address);
            }
        }
        // RFC 4279, 2: the same alert for both, so that a client cannot find identities by trying.
        if matches!(reason, EndReason::WrongKey | EndReason::UnknownIdentity) && slot == Slot::Handshake {
            self.push_transmit(address, wire::alert(session.free_sequence(), Alert::DecryptError).into());
        }
        match slot {
            Slot::Current => self.report_end(address, Some(&session), reason),
            Slot::Handshake => self.report_end(address, None, reason),
        }
        self.schedule(address);
    }

    fn report_end(&mut self, peer: SocketAddr, session: Option<&Session>, reason: EndReason) {
        self.counters.count_end(reason);
        match session {
            Some(session) => {
                let identity = session.identity().cloned().unwrap_or_default();
                self.push_event(Event::Closed { peer, identity, reason });
            }
            None => self.push_event(Event::Failed { peer, reason }),
        }
    }

    /// Updates the deadline of a peer, and removes a peer without connections.
    fn schedule(&mut self, address: SocketAddr) {
        let Some(peer) = self.peers.get_mut(&address) else { return };
        if peer.current.is_none() && peer.handshake.is_none() {
            let deadline = peer.deadline;
            self.peers.remove(&address);
            if let Some(deadline) = deadline {
                self.deadlines.remove(&(deadline, address));
            }
            return;
        }
        let Some(due) = peer.deadline(self.idle_timeout) else { return };
        // An earlier entry stays: moving the idle timeout with each record would cost more than to wake up once too early.
        if peer.deadline.is_some_and(|deadline| deadline <= due) {
            return;
        }
        if let Some(deadline) = peer.deadline.replace(due) {
            self.deadlines.remove(&(deadline, address));
        }
        self.deadlines.insert((due, address));
    }

    /// Processes the deadlines: repeats messages of handshakes, ends handshakes and silent sessions.
    pub fn handle_timeout(&mut self, now: Mono) {
        while let Some((due, address)) = self.deadlines.first().copied().filter(|(due, _)| *due <= now) {
            self.deadlines.remove(&(due, address));
            if let Some(peer) = self.peers.get_mut(&address) {
                peer.deadline = None;
            }
            self.handle_timeout_of(now, address);
        }
    }

    fn handle_timeout_of(&mut self, now: Mono, address: SocketAddr) {
        for slot in [Slot::Handshake, Slot::Current] {
            let session = self.peers.get_mut(&address).and_then(|peer| peer.slot(slot).as_mut());
            let Some(session) = session.filter(|session| session.poll_timeout().is_some_and(|due| due <= now)) else {
                continue;
            };
            self.output.clear();
            match session.handle_timeout(&mut self.engine, now, &mut self.output) {
                Ok(()) => self.settle(now, address, slot),
                Err(reason) => self.end(address, slot, reason),
            }
        }
        let current = self.peers.get(&address).and_then(|peer| peer.current.as_ref());
        if current.is_some_and(|session| session.last_received.plus(self.idle_timeout) <= now) {
            self.close(now, address, EndReason::Idle);
        }
        self.schedule(address);
    }

    /// Returns the time at which [`Self::handle_timeout`] must be called, or `None`.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Mono> {
        self.deadlines.first().map(|(due, _)| *due)
    }

    /// Returns the next datagram to send with its receiver, or `None`.
    pub fn poll_transmit(&mut self) -> Option<(SocketAddr, Bytes)> {
        self.transmits.pop_front()
    }

    /// Returns the next payload with its sender, or `None`.
    pub fn poll_received(&mut self) -> Option<(SocketAddr, Bytes)> {
        self.received.pop_front()
    }

    /// Returns the next event, or `None`.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn push_transmit(&mut self, to: SocketAddr, datagram: Bytes) {
        if self.transmits.len() >= TRANSMITS_MAX {
            self.counters.transmits_lost += 1;
            return;
        }
        self.transmits.push_back((to, datagram));
    }

    fn push_event(&mut self, event: Event) {
        if self.events.len() >= EVENTS_MAX {
            self.counters.events_lost += 1;
            return;
        }
        self.events.push_back(event);
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("sessions", &self.sessions)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

/// Returns the input of the cookie: the address and the parameters of the client (RFC 6347, 4.2.1).
fn cookie_subject(from: SocketAddr, hello: &ClientHello<'_>) -> Vec<u8> {
    [&ipv6(from.ip())[..], &from.port().to_be_bytes(), hello.before_cookie, hello.after_cookie].concat()
}

/// Returns the network of a host: its IPv4 address, or the upper half of its IPv6 address, whose lower half it can choose.
fn source(address: IpAddr) -> [u8; 16] {
    let mut octets = ipv6(address);
    if address.is_ipv6() {
        octets[8..].fill(0);
    }
    octets
}

/// Returns the address of the oldest row of the group with the most rows.
fn oldest_of_largest_group<G: std::hash::Hash + Eq + Clone>(
    rows: impl Iterator<Item = (G, Mono, SocketAddr)>,
) -> Option<SocketAddr> {
    let mut groups: HashMap<G, (usize, Mono, SocketAddr)> = HashMap::new();
    for (group, at, address) in rows {
        let entry = groups.entry(group).or_insert((0, at, address));
        entry.0 += 1;
        if (at, address) < (entry.1, entry.2) {
            (entry.1, entry.2) = (at, address);
        }
    }
    // The oldest of all if several groups have the most rows.
    let largest = groups.into_values().max_by_key(|(count, at, address)| (*count, std::cmp::Reverse((*at, *address))));
    largest.map(|(_, _, address)| address)
}
