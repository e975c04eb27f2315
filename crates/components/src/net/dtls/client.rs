//! The client: a session with one server, as a state machine without sockets.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use viaduct_units::Mono;

use super::counters::{Counters, DropReason, EndReason};
use super::limits::{
    CLIENT_QUEUE_MAX, EVENTS_MAX, HINT_INTERVAL, PAYLOAD_OCTETS_MAX, RECEIVED_MAX, RETRY_MAX, TRANSMITS_MAX,
};
use super::session::{Engine, Output, Role, Session};
use super::settings::ClientConfig;
use super::wire::{ContentType, Record, is_further_hello_verify_request, is_stray_alert};
use super::{Event, SendError, StartError};
use crate::net::secure::admission::TokenBucket;

/// The DTLS of a client. It connects when there is a payload to send.
///
/// After each call, take all datagrams from [`Self::poll_transmit`], all payloads from [`Self::poll_received`] and all events
/// from [`Self::poll_event`], then read [`Self::poll_timeout`].
pub struct Client {
    engine: Engine,
    server: SocketAddr,
    identity: Arc<str>,
    silence: Duration,
    retry_first: Duration,
    current: Option<Session>,
    /// The handshake under way. It replaces the session when it has completed.
    handshake: Option<Session>,
    /// Payloads that wait for the session.
    queue: VecDeque<Bytes>,
    /// Handshakes that have failed since the last session.
    failures: u32,
    /// Time before which no handshake starts.
    not_before: Mono,
    /// Time of the first payload sent since the last record of the server.
    unanswered_since: Option<Mono>,
    /// Handshakes because of silence since the last payload of the server.
    renewals: u32,
    /// Limit on handshakes that alerts without protection cause.
    hints: TokenBucket,
    transmits: VecDeque<(SocketAddr, Bytes)>,
    received: VecDeque<(SocketAddr, Bytes)>,
    events: VecDeque<Event>,
    counters: Counters,
    output: Output,
}

impl Client {
    /// Returns a client without a session.
    ///
    /// # Errors
    /// The configuration is not possible.
    pub fn new(now: Mono, config: ClientConfig, server: SocketAddr) -> Result<Self, StartError> {
        let identity = config.keys.first().cloned().unwrap_or_default();
        Ok(Self {
            engine: Engine::new(now, &Role::Client, config.keys, config.timing)?,
            server,
            identity,
            silence: config.silence,
            retry_first: config.timing.retransmission,
            current: None,
            handshake: None,
            queue: VecDeque::new(),
            failures: 0,
            not_before: now,
            unanswered_since: None,
            renewals: 0,
            hints: TokenBucket::new(HINT_INTERVAL, 1),
            transmits: VecDeque::new(),
            received: VecDeque::new(),
            events: VecDeque::new(),
            counters: Counters::default(),
            output: Output::default(),
        })
    }

    /// Returns the address of the server.
    #[must_use]
    pub const fn server(&self) -> SocketAddr {
        self.server
    }

    /// Returns the identity of this client.
    #[must_use]
    pub const fn identity(&self) -> &Arc<str> {
        &self.identity
    }

    /// Returns `true` if there is a session.
    #[must_use]
    pub const fn is_connected(&self) -> bool {
        self.current.is_some()
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Sends a payload. Without a session it waits for one: 16 payloads at most, until the handshake has failed.
    ///
    /// # Errors
    /// The payload is too long, or a queue is full.
    pub fn send(&mut self, now: Mono, payload: &[u8]) -> Result<(), SendError> {
        if payload.len() > PAYLOAD_OCTETS_MAX {
            return Err(SendError::TooLong(payload.len()));
        }
        if self.current.is_some() && self.transmits.len() < TRANSMITS_MAX && self.send_now(now, payload) {
            return Ok(());
        }
        if self.current.is_some() || self.queue.len() >= CLIENT_QUEUE_MAX {
            return Err(SendError::QueueFull);
        }
        self.queue.push_back(Bytes::copy_from_slice(payload));
        self.start_if_wanted(now);
        Ok(())
    }

    /// Sends a payload in the session. Returns `false` if the session has ended.
    fn send_now(&mut self, now: Mono, payload: &[u8]) -> bool {
        let Some(session) = self.current.as_mut() else { return false };
        self.output.clear();
        if let Err(reason) = session.send(&mut self.engine, now, payload, &mut self.output) {
            self.end_session(reason);
            return false;
        }
        self.counters.sent += 1;
        self.unanswered_since.get_or_insert(now);
        self.settle(now);
        if self.current.as_ref().is_some_and(Session::is_worn) && self.handshake.is_none() && now >= self.not_before {
            self.start(now);
        }
        true
    }

    /// Starts a handshake now, for instance because the server has not answered requests. A session in use continues.
    pub fn reconnect(&mut self, now: Mono) {
        if self.handshake.is_none() && now >= self.not_before {
            self.start(now);
        }
    }

    /// Ends the session. The server is informed once.
    pub fn disconnect(&mut self, now: Mono) {
        self.handshake = None;
        self.counters.unsent += self.queue.len() as u64;
        self.queue.clear();
        let Some(session) = self.current.as_mut() else { return };
        self.output.clear();
        session.close(&mut self.engine, now, &mut self.output);
        for datagram in std::mem::take(&mut self.output.datagrams) {
            self.push_transmit(datagram);
        }
        self.end_session(EndReason::Closed);
    }

    /// Processes a received datagram. All drops are counted.
    pub fn handle_datagram(&mut self, now: Mono, from: SocketAddr, datagram: &[u8]) {
        self.counters.datagrams += 1;
        let mut rest = datagram;
        while !rest.is_empty() {
            self.counters.records += 1;
            if from != self.server {
                return self.counters.count_drop(DropReason::WrongSource);
            }
            let Some(record) = Record::split_off(&mut rest) else {
                return self.counters.count_drop(DropReason::Malformed);
            };
            match self.handle_record(now, &record) {
                Ok(()) if record.content_type == ContentType::ApplicationData => self.counters.payloads += 1,
                Ok(()) => self.counters.handshake_records += 1,
                Err(reason) => self.counters.count_drop(reason),
            }
        }
    }

    fn handle_record(&mut self, now: Mono, record: &Record<'_>) -> Result<(), DropReason> {
        match (record.epoch, record.content_type) {
            (1, ContentType::ApplicationData) => self.feed_session(now, record),
            (0, ContentType::ApplicationData) => Err(DropReason::Malformed),
            (1, ContentType::Alert) if self.current.is_some() => self.feed_session(now, record),
            // The answer to a payload of the session before.
            _ if self.handshake.is_some() && is_stray_alert(record) => Err(DropReason::NotAuthentic),
            _ if self.handshake.is_some() && is_further_hello_verify_request(record) => self.restart(now),
            (0 | 1, _) if self.handshake.is_some() => {
                self.feed_handshake(now, record);
                Ok(())
            }
            (0, ContentType::Alert) if self.current.is_some() => self.handle_hint(now),
            (0 | 1, _) if self.current.is_some() => self.feed_session(now, record),
            _ => Err(DropReason::NoSession),
        }
    }

    /// Processes an alert without protection. Anybody can send it, so that it does not end the session. But the server has
    /// perhaps lost it.
    fn handle_hint(&mut self, now: Mono) -> Result<(), DropReason> {
        let is_plausible = self.unanswered_since.is_some() && now >= self.not_before;
        if !is_plausible || !self.hints.take(now) {
            return Err(DropReason::NotAuthentic);
        }
        self.start(now);
        Ok(())
    }

    /// Starts the handshake again: the cookie has expired before the server has received it, and `dimpl` takes only one.
    fn restart(&mut self, now: Mono) -> Result<(), DropReason> {
        if !self.hints.take(now) {
            return Err(DropReason::NotAuthentic);
        }
        self.counters.count_end(EndReason::Replaced);
        self.start(now);
        Ok(())
    }

    fn feed_session(&mut self, now: Mono, record: &Record<'_>) -> Result<(), DropReason> {
        if self.received.len() >= RECEIVED_MAX {
            return Err(DropReason::ReceiveQueueFull);
        }
        let session = self.current.as_mut().ok_or(DropReason::NoSession)?;
        self.output.clear();
        match session.handle_record(&mut self.engine, now, record, &mut self.output) {
            Ok(verdict) => {
                if verdict.is_ok() {
                    self.unanswered_since = None;
                    self.renewals = 0;
                }
                self.settle(now);
                verdict
            }
            Err(reason) => {
                self.end_session(reason);
                Ok(())
            }
        }
    }

    fn feed_handshake(&mut self, now: Mono, record: &Record<'_>) {
        let Some(session) = self.handshake.as_mut() else { return };
        self.output.clear();
        match session.handle_record(&mut self.engine, now, record, &mut self.output) {
            Ok(_) => self.settle(now),
            Err(reason) => self.fail(now, reason),
        }
    }

    /// Takes the results of a step of a connection.
    fn settle(&mut self, now: Mono) {
        let mut output = std::mem::take(&mut self.output);
        for datagram in output.datagrams.drain(..) {
            self.push_transmit(datagram);
        }
        self.received.extend(output.payloads.drain(..).map(|payload| (self.server, payload)));
        let (is_connected, is_closed) = (output.is_connected, output.is_closed);
        self.output = output;
        if is_connected {
            self.promote(now);
        }
        if is_closed {
            self.end_session(EndReason::ClosedByPeer);
        }
    }

    /// Uses the session whose handshake has completed, and sends what has waited for it.
    fn promote(&mut self, now: Mono) {
        let Some(session) = self.handshake.take() else { return };
        let is_renewal = self.current.replace(session).is_some();
        self.counters.sessions += 1;
        self.failures = 0;
        self.unanswered_since = None;
        let (peer, identity) = (self.server, Arc::clone(&self.identity));
        if is_renewal {
            self.counters.count_end(EndReason::Replaced);
            self.push_event(Event::Renewed { peer, identity });
        } else {
            self.push_event(Event::Connected { peer, identity });
        }
        for payload in std::mem::take(&mut self.queue) {
            if !self.send_now(now, &payload) {
                self.counters.unsent += 1;
            }
        }
    }

    fn start_if_wanted(&mut self, now: Mono) {
        if !self.queue.is_empty() && self.handshake.is_none() && now >= self.not_before {
            self.start(now);
        }
    }

    /// Starts a handshake.
    fn start(&mut self, now: Mono) {
        self.counters.handshakes += 1;
        self.output.clear();
        match Session::connect(&mut self.engine, now, &mut self.output) {
            Ok(session) => {
                self.handshake = Some(session);
                self.settle(now);
            }
            Err(reason) => self.fail(now, reason),
        }
    }

    /// Ends a handshake. The payloads that waited for it are lost; a session in use continues.
    fn fail(&mut self, now: Mono, reason: EndReason) {
        self.handshake = None;
        self.not_before = now.plus(self.retry_first.saturating_mul(1 << self.failures.min(16)).min(RETRY_MAX));
        self.failures = self.failures.saturating_add(1);
        self.counters.unsent += self.queue.len() as u64;
        self.queue.clear();
        self.counters.count_end(reason);
        self.push_event(Event::Failed { peer: self.server, reason });
    }

    fn end_session(&mut self, reason: EndReason) {
        if self.current.take().is_none() {
            return;
        }
        self.unanswered_since = None;
        self.counters.count_end(reason);
        let identity = Arc::clone(&self.identity);
        self.push_event(Event::Closed { peer: self.server, identity, reason });
    }

    /// Processes the deadlines: repeats messages of a handshake, ends it, or starts another one.
    pub fn handle_timeout(&mut self, now: Mono) {
        let is_due = |session: &&mut Session| session.poll_timeout().is_some_and(|due| due <= now);
        if let Some(session) = self.handshake.as_mut().filter(is_due) {
            self.output.clear();
            match session.handle_timeout(&mut self.engine, now, &mut self.output) {
                Ok(()) => self.settle(now),
                Err(reason) => self.fail(now, reason),
            }
        }
        if let Some(session) = self.current.as_mut().filter(is_due) {
            self.output.clear();
            match session.handle_timeout(&mut self.engine, now, &mut self.output) {
                Ok(()) => self.settle(now),
                Err(reason) => self.end_session(reason),
            }
        }
        if self.silence_ends().is_some_and(|due| due <= now) {
            self.renewals = self.renewals.saturating_add(1);
            self.start(now);
        }
        self.start_if_wanted(now);
    }

    /// Returns the time at which the silence of the server causes a handshake, or `None`.
    fn silence_ends(&self) -> Option<Mono> {
        let since = self.unanswered_since.filter(|_| self.handshake.is_none() && self.current.is_some())?;
        Some(since.plus(self.silence.saturating_mul(1 << self.renewals.min(8))).max(self.not_before))
    }

    /// Returns the time at which [`Self::handle_timeout`] must be called, or `None`.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Mono> {
        let sessions = [self.current.as_ref(), self.handshake.as_ref()];
        let own = sessions.into_iter().flatten().filter_map(Session::poll_timeout);
        let is_waiting = !self.queue.is_empty() && self.handshake.is_none();
        own.chain(self.silence_ends()).chain(is_waiting.then_some(self.not_before)).min()
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

    fn push_transmit(&mut self, datagram: Bytes) {
        if self.transmits.len() >= TRANSMITS_MAX {
            self.counters.transmits_lost += 1;
            return;
        }
        self.transmits.push_back((self.server, datagram));
    }

    fn push_event(&mut self, event: Event) {
        if self.events.len() >= EVENTS_MAX {
            self.counters.events_lost += 1;
            return;
        }
        self.events.push_back(event);
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("server", &self.server).field("counters", &self.counters).finish_non_exhaustive()
    }
}
