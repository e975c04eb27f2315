//! The endpoint: sessions with peers, as a state machine without sockets and clocks.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use ring::hmac;
use viaduct_units::Mono;
use zeroize::Zeroizing;

use super::admission::{Admission, Cookies, RATES, request, request_key};
use super::counters::{Counters, DropReason};
use super::keys::PrivateKey;
use super::limits::{EVENTS_MAX, PAYLOAD_OCTETS_MAX, PEERS_MAX, TRANSMITS_MAX, Timing};
use super::noise::{Initiated, Received};
use super::peer::{Attempt, Cause, PeerState, Slot};
use super::random::{Random, RandomError, octets};
use super::session::Session;
use super::settings::{Credentials, Peer};
use super::wire::{self, Handshake, Message, NOISE_1, NOISE_2, TAG};

/// Bytes that are allocated for received payloads at once.
const PAYLOAD_CHUNK: usize = 64 * 1024;
/// Draws of an identifier until one is free. The second is needed once in 2^24 handshakes.
const IDENTIFIER_DRAWS: usize = 4;

/// Number of a peer: its index in [`Credentials::peers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub usize);

/// A payload that was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The sender.
    pub peer: PeerId,
    /// The payload. Not empty.
    pub payload: Bytes,
}

/// A change of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The first session with a peer, or the first after [`Self::Disconnected`].
    Connected {
        /// The peer.
        peer: PeerId,
        /// Its address.
        address: SocketAddr,
    },
    /// A session has replaced another one: the keys were old, or the peer has restarted.
    Renewed {
        /// The peer.
        peer: PeerId,
        /// Its address.
        address: SocketAddr,
    },
    /// The peer sends from another address.
    Moved {
        /// The peer.
        peer: PeerId,
        /// Its new address.
        address: SocketAddr,
    },
    /// The session has expired and was not replaced.
    Disconnected {
        /// The peer.
        peer: PeerId,
    },
}

/// A payload cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// There is no session with the peer.
    #[error("there is no session with the peer")]
    NotConnected,
    /// The payload does not fit in a datagram.
    #[error("the payload has {0} octets; at most {PAYLOAD_OCTETS_MAX} fit in a datagram")]
    TooLong(usize),
}

/// One end of encrypted flows of datagrams with a list of peers.
///
/// After each input, take all datagrams from [`Self::poll_transmit`] and all events from [`Self::poll_event`], then read
/// [`Self::poll_timeout`].
pub struct Endpoint {
    private_key: PrivateKey,
    peers: Vec<PeerState>,
    timing: Timing,
    random: Box<dyn Random + Send>,
    /// Key of the tags of cookie requests to this endpoint.
    request_key: hmac::Key,
    cookies: Cookies,
    admission: Admission,
    transmits: VecDeque<(SocketAddr, Bytes)>,
    events: VecDeque<Event>,
    counters: Counters,
    /// Memory for received payloads.
    payloads: BytesMut,
}

/// The result of a received datagram.
enum Processed {
    Payload(Opened),
    Empty,
    Handshake,
}

impl Endpoint {
    /// Returns an endpoint that connects to all peers with an address. Peers beyond [`PEERS_MAX`] are ignored;
    /// [`SecuritySettings::check`](super::SecuritySettings::check) refuses them.
    ///
    /// # Errors
    /// The source has no random numbers.
    pub fn new(
        now: Mono,
        credentials: Credentials,
        timing: Timing,
        mut random: Box<dyn Random + Send>,
    ) -> Result<Self, RandomError> {
        let Credentials { private_key, peers } = credentials;
        Ok(Self {
            request_key: request_key(&private_key.public_key()),
            private_key,
            peers: peers.into_iter().take(PEERS_MAX).map(PeerState::new).collect(),
            timing,
            cookies: Cookies::new(now, &mut *random)?,
            admission: Admission::new(&mut *random, RATES)?,
            random,
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            counters: Counters::default(),
            payloads: BytesMut::new(),
        })
    }

    /// Returns a peer.
    #[must_use]
    pub fn peer(&self, peer: PeerId) -> Option<&Peer> {
        self.peers.get(peer.0).map(|state| &state.settings)
    }

    /// Returns the current address of a peer, or `None` if there is no session.
    #[must_use]
    pub fn address(&self, peer: PeerId) -> Option<SocketAddr> {
        let state = self.peers.get(peer.0)?;
        state.sessions.current.as_ref().and(state.address)
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Appends the datagram of a payload to a buffer. Returns the peer's address.
    ///
    /// The ciphertext is written directly behind its header in the buffer, so the payload is not copied before. Several
    /// datagrams can follow one another in one buffer. An empty payload is authenticated, and the peer drops it.
    ///
    /// # Errors
    /// There is no session, or the payload is too long. The buffer is then as before.
    pub fn seal(
        &mut self,
        now: Mono,
        peer: PeerId,
        payload: &[u8],
        out: &mut BytesMut,
    ) -> Result<SocketAddr, SealError> {
        let sealed = self.try_seal(now, peer, payload, out, true);
        match sealed {
            Ok(_) => self.counters.sealed += 1,
            Err(_) => self.counters.unsealed += 1,
        }
        sealed
    }

    fn try_seal(
        &mut self,
        now: Mono,
        peer: PeerId,
        payload: &[u8],
        out: &mut BytesMut,
        is_answer_expected: bool,
    ) -> Result<SocketAddr, SealError> {
        if payload.len() > PAYLOAD_OCTETS_MAX {
            return Err(SealError::TooLong(payload.len()));
        }
        let state = self.peers.get_mut(peer.0).ok_or(SealError::NotConnected)?;
        let session = state.sessions.current.as_mut().filter(|session| !session.is_expired(now, &self.timing));
        let (Some(session), Some(address)) = (session, state.address) else { return Err(SealError::NotConnected) };
        if !session.seal(payload, out, &self.timing) {
            return Err(SealError::NotConnected);
        }
        state.on_sent(now, is_answer_expected);
        Ok(address)
    }

    /// Processes a received datagram. Returns the payload if there is one. All drops are counted.
    pub fn open(&mut self, now: Mono, from: SocketAddr, datagram: &[u8]) -> Option<Opened> {
        self.counters.received += 1;
        match self.process(now, from, datagram) {
            Ok(Processed::Payload(opened)) => {
                self.counters.opened += 1;
                return Some(opened);
            }
            Ok(Processed::Empty) => self.counters.empty += 1,
            Ok(Processed::Handshake) => self.counters.handshake_messages += 1,
            Err(reason) => self.counters.count_drop(reason),
        }
        None
    }

    fn process(&mut self, now: Mono, from: SocketAddr, datagram: &[u8]) -> Result<Processed, DropReason> {
        match Message::parse(datagram)? {
            Message::Data { session, counter, sealed } => return self.open_data(now, from, session, counter, sealed),
            Message::CookieRequest { handshake, tag } => self.answer_request(now, from, handshake, tag)?,
            Message::Cookie { handshake, cookie } => self.send_initiation(now, handshake, cookie)?,
            Message::Initiation { handshake, cookie, noise } => {
                self.answer_initiation(now, from, handshake, cookie, noise)?;
            }
            Message::Response { session, noise } => self.finish_handshake(now, from, session, noise)?,
        }
        Ok(Processed::Handshake)
    }

    fn open_data(
        &mut self,
        now: Mono,
        from: SocketAddr,
        identifier: u32,
        counter: u64,
        sealed: &[u8],
    ) -> Result<Processed, DropReason> {
        let peer = peer_of(identifier);
        let state = self.peers.get_mut(peer.0).ok_or(DropReason::NoSession)?;
        let found = state.sessions.find(identifier).filter(|(_, session)| !session.is_expired(now, &self.timing));
        let (slot, session) = found.ok_or(DropReason::NoSession)?;
        if self.payloads.capacity() < sealed.len() {
            self.payloads.reserve(sealed.len().max(PAYLOAD_CHUNK));
        }
        let is_newest = session.open(counter, sealed, &mut self.payloads, &self.timing)?;
        let payload = self.payloads.split().freeze();
        state.on_received(now, payload.is_empty(), &self.timing);
        match slot {
            Slot::Next => self.promote(now, peer, from),
            Slot::Current if is_newest => self.follow(peer, from),
            Slot::Current | Slot::Previous => {}
        }
        Ok(if payload.is_empty() { Processed::Empty } else { Processed::Payload(Opened { peer, payload }) })
    }

    /// Uses a session that the peer has started and that it uses now: the peer has the key.
    fn promote(&mut self, now: Mono, peer: PeerId, from: SocketAddr) {
        let Some(state) = self.peers.get_mut(peer.0) else { return };
        let Some(session) = state.sessions.next.take() else { return };
        state.attempt = None;
        self.begin(now, peer, from, session, false);
    }

    /// Begins to use a session, and sends an empty datagram: from the initiator it confirms the session, from the responder
    /// it answers that.
    fn begin(&mut self, now: Mono, peer: PeerId, address: SocketAddr, session: Session, is_answer_expected: bool) {
        let Some(state) = self.peers.get_mut(peer.0) else { return };
        state.address = Some(address);
        let is_renewal = state.sessions.install(session);
        self.counters.sessions += 1;
        let event = if is_renewal { Event::Renewed { peer, address } } else { Event::Connected { peer, address } };
        self.push_event(event);
        self.send_empty(now, peer, is_answer_expected);
    }

    /// Sends to the address of the newest authentic datagram from now on.
    fn follow(&mut self, peer: PeerId, from: SocketAddr) {
        let Some(state) = self.peers.get_mut(peer.0) else { return };
        if state.address.replace(from) != Some(from) {
            self.counters.moves += 1;
            self.push_event(Event::Moved { peer, address: from });
        }
    }

    /// Answers a request with a cookie. Nothing is stored.
    fn answer_request(
        &mut self,
        now: Mono,
        from: SocketAddr,
        handshake: Handshake,
        tag: &[u8; TAG],
    ) -> Result<(), DropReason> {
        hmac::verify(&self.request_key, &handshake.request_header(), tag).map_err(|_| DropReason::NotAuthentic)?;
        self.refresh_cookies(now)?;
        let cookie = self.cookies.make(from, handshake);
        self.push_transmit(from, handshake.cookie(cookie.as_ref()))
    }

    /// Sends the initiation that a cookie permits.
    fn send_initiation(&mut self, now: Mono, handshake: Handshake, cookie: &[u8; TAG]) -> Result<(), DropReason> {
        let state = self.peers.get_mut(peer_of(handshake.session).0).ok_or(DropReason::NoHandshake)?;
        let attempt = state.attempt.as_mut();
        let attempt = attempt.filter(|attempt| attempt.handshake == handshake && attempt.initiated.is_none());
        let attempt = attempt.ok_or(DropReason::NoHandshake)?;
        let ephemeral = octets(&mut *self.random).map(Zeroizing::new).map_err(|_| DropReason::NoRandom)?;
        let bound = [handshake.initiation_header().as_slice(), cookie].concat();
        let initiated = Initiated::new(&self.private_key, &state.settings.public_key, &bound, ephemeral);
        let (initiated, noise) = initiated.ok_or(DropReason::NotAuthentic)?;
        attempt.initiated = Some(initiated);
        attempt.retry_at = now.plus(wait_after(attempt.tries, &self.timing));
        let to = attempt.to;
        self.push_transmit(to, [bound.as_slice(), &noise].concat().into())
    }

    /// Answers an initiation, and prepares the session.
    fn answer_initiation(
        &mut self,
        now: Mono,
        from: SocketAddr,
        handshake: Handshake,
        cookie: &[u8; TAG],
        noise: &[u8; NOISE_1],
    ) -> Result<(), DropReason> {
        self.refresh_cookies(now)?;
        if !self.cookies.is_valid(from, handshake, cookie) {
            return Err(DropReason::CookieInvalid);
        }
        if self.peers.iter().any(|state| state.accepted.contains(&handshake.number)) {
            return Err(DropReason::Replayed);
        }
        self.admit(now, from)?;
        let ephemeral = octets(&mut *self.random).map(Zeroizing::new).map_err(|_| DropReason::NoRandom)?;
        self.counters.key_agreements += 1;
        let bound = [handshake.initiation_header().as_slice(), cookie].concat();
        let received = Received::new(&self.private_key, &bound, noise, ephemeral).ok_or(DropReason::NotAuthentic)?;
        let index = self.peers.iter().position(|state| state.settings.public_key == received.peer);
        let peer = index.map(PeerId).ok_or(DropReason::UnknownKey)?;
        let own_identifier = self.draw_identifier(peer).map_err(|_| DropReason::NoRandom)?;
        let state = self.peers.get_mut(peer.0).ok_or(DropReason::UnknownKey)?;
        if !state.initiations.take(now) {
            return Err(DropReason::HandshakeRate);
        }
        state.remember(handshake.number);
        let (noise, transport) = received.respond(own_identifier).ok_or(DropReason::NotAuthentic)?;
        state.sessions.next = Some(Session::new(now, own_identifier, handshake.session, transport, false));
        self.push_transmit(from, wire::response(handshake.session, &noise))
    }

    /// Uses the session that a response completes.
    fn finish_handshake(
        &mut self,
        now: Mono,
        from: SocketAddr,
        own_identifier: u32,
        noise: &[u8; NOISE_2],
    ) -> Result<(), DropReason> {
        let peer = peer_of(own_identifier);
        let state = self.peers.get_mut(peer.0).ok_or(DropReason::NoHandshake)?;
        let attempt = state.attempt.as_mut().filter(|attempt| attempt.handshake.session == own_identifier);
        let initiated = attempt.and_then(|attempt| attempt.initiated.as_mut()).ok_or(DropReason::NoHandshake)?;
        let peer_identifier = initiated.finish(noise).ok_or(DropReason::NotAuthentic)?;
        let initiated = state.attempt.take().and_then(|attempt| attempt.initiated);
        let transport = initiated.and_then(Initiated::into_transport).ok_or(DropReason::NotAuthentic)?;
        let session = Session::new(now, own_identifier, u32::from_be_bytes(peer_identifier), transport, true);
        self.begin(now, peer, from, session, true);
        Ok(())
    }

    /// Processes the deadlines: starts and repeats handshakes, sends empty datagrams, ends sessions.
    pub fn handle_timeout(&mut self, now: Mono) {
        for peer in (0..self.peers.len()).map(PeerId) {
            self.handle_timeout_of(now, peer);
        }
    }

    fn handle_timeout_of(&mut self, now: Mono, peer: PeerId) {
        let Some(state) = self.peers.get_mut(peer.0) else { return };
        let is_disconnected = state.expire(now, &self.timing);
        let is_keepalive_due = state.take_keepalive(now);
        let due = match &state.attempt {
            Some(attempt) => Some((attempt.retry_at, attempt.cause)),
            None => state.next_attempt(&self.timing),
        };
        if is_disconnected {
            self.push_event(Event::Disconnected { peer });
        }
        if is_keepalive_due {
            self.send_empty(now, peer, false);
        }
        if let Some((_, cause)) = due.filter(|(due, _)| *due <= now) {
            self.attempt(now, peer, cause);
        }
    }

    /// Sends a cookie request: for the handshake under way if it has got no cookie, otherwise for a new one.
    fn attempt(&mut self, now: Mono, peer: PeerId, cause: Cause) {
        let Some(state) = self.peers.get_mut(peer.0) else { return };
        state.not_before = now.plus(self.timing.retry_max);
        let last = state.attempt.take();
        let tries = last.as_ref().map_or(0, |last| last.tries.saturating_add(1));
        let repeated = last.filter(|last| last.initiated.is_none()).map(|last| last.handshake);
        let Some(handshake) = repeated.or_else(|| self.new_handshake(peer)) else { return };
        let retry_at = now.plus(self.with_jitter(wait_after(tries, &self.timing)));
        let Some(state) = self.peers.get_mut(peer.0) else { return };
        let Some(to) = state.address_for(cause, tries) else { return };
        state.not_before = now;
        state.attempt = Some(Attempt { cause, handshake, to, initiated: None, retry_at, tries });
        let request = request(handshake, &state.settings.public_key);
        // If the queue is full, the request is sent again later.
        let _ = self.push_transmit(to, request.into());
    }

    fn new_handshake(&mut self, peer: PeerId) -> Option<Handshake> {
        let session = self.draw_identifier(peer).ok()?;
        let number = u64::from_be_bytes(octets(&mut *self.random).ok()?);
        self.counters.handshakes_started += 1;
        Some(Handshake { session, number })
    }

    /// Returns a new session identifier, which contains the peer's number.
    fn draw_identifier(&mut self, peer: PeerId) -> Result<u32, RandomError> {
        for _ in 0..IDENTIFIER_DRAWS {
            let identifier = u32::from_be_bytes(octets(&mut *self.random)?) / PEERS_MAX as u32 * PEERS_MAX as u32;
            let identifier = identifier | peer.0 as u32;
            let state = self.peers.get_mut(peer.0).ok_or(RandomError)?;
            let is_attempted = state.attempt.as_ref().is_some_and(|attempt| attempt.handshake.session == identifier);
            if !is_attempted && state.sessions.find(identifier).is_none() {
                return Ok(identifier);
            }
        }
        Err(RandomError)
    }

    /// Returns a time between three quarters and all of the given one, so that many endpoints do not act at once.
    fn with_jitter(&mut self, wait: Duration) -> Duration {
        let [octet] = octets(&mut *self.random).unwrap_or([0]);
        wait - wait / 4 * u32::from(octet) / 256
    }

    /// Admits a key agreement. The address of a session has a limit of its own, so that its peer can renew the session
    /// during a flood.
    fn admit(&mut self, now: Mono, from: SocketAddr) -> Result<(), DropReason> {
        let state = self.peers.iter_mut().find(|state| state.is_at(from));
        let is_admitted = match state {
            Some(state) => state.agreements.take(now),
            None => self.admission.admit(now, from),
        };
        if is_admitted { Ok(()) } else { Err(DropReason::HandshakeRate) }
    }

    fn refresh_cookies(&mut self, now: Mono) -> Result<(), DropReason> {
        self.cookies.refresh(now, &mut *self.random).map_err(|_| DropReason::NoRandom)
    }

    /// Sends a datagram without a payload.
    fn send_empty(&mut self, now: Mono, peer: PeerId, is_answer_expected: bool) {
        let mut datagram = BytesMut::new();
        if let Ok(to) = self.try_seal(now, peer, &[], &mut datagram, is_answer_expected) {
            // If the queue is full, the owner has not taken the datagrams, and the next payload has the same effect.
            let _ = self.push_transmit(to, datagram.freeze());
        }
    }

    fn push_transmit(&mut self, to: SocketAddr, datagram: Bytes) -> Result<(), DropReason> {
        if self.transmits.len() >= TRANSMITS_MAX {
            return Err(DropReason::TransmitQueueFull);
        }
        self.transmits.push_back((to, datagram));
        Ok(())
    }

    fn push_event(&mut self, event: Event) {
        if self.events.len() >= EVENTS_MAX {
            self.counters.events_lost += 1;
            return;
        }
        self.events.push_back(event);
    }

    /// Returns the next datagram to send that no payload has caused, with its receiver, or `None`.
    pub fn poll_transmit(&mut self) -> Option<(SocketAddr, Bytes)> {
        self.transmits.pop_front()
    }

    /// Returns the next event, or `None`.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns the time at which [`Self::handle_timeout`] must be called, or `None`.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Mono> {
        self.peers.iter().filter_map(|state| state.poll_timeout(&self.timing)).min()
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("counters", &self.counters).finish_non_exhaustive()
    }
}

/// Returns the peer of an own session identifier.
const fn peer_of(identifier: u32) -> PeerId {
    PeerId(identifier as usize % PEERS_MAX)
}

/// Returns the time until a message of a handshake is sent again.
fn wait_after(tries: u32, timing: &Timing) -> Duration {
    timing.retry_first.saturating_mul(1 << tries.min(16)).min(timing.retry_max)
}
