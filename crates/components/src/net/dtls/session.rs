//! One connection, from its handshake to its end: `dimpl` with what it lacks.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use dimpl::crypto::Dtls12CipherSuite;
use dimpl::{Config, Dtls, Error, PskResolver, SecurityError};
use viaduct_units::Mono;

use super::counters::{DropReason, EndReason};
use super::crypto::{provider, with_checked_cookie};
use super::keys::PskKeys;
use super::limits::{
    FLIGHT_RETRIES, HANDSHAKE_DATAGRAM_OCTETS, HANDSHAKE_QUEUE, HANDSHAKE_RECORD_OCTETS_MAX, PAYLOAD_OCTETS_MAX,
    REPLAY_WINDOW, SESSION_RECORDS_MAX,
};
use super::settings::HandshakeTiming;
use super::wire::{COOKIE, ClientHello, ContentType, RANDOM, Record, client_hello_without_cookie, shift_sequence};

/// A deadline of `dimpl` this far ahead is none.
const NEVER: Duration = Duration::from_secs(86_400);

/// The configuration cannot be built.
#[derive(Debug, thiserror::Error)]
#[error("cannot configure DTLS: {0:?}")]
pub struct ConfigError(Error);

/// Values that all connections of a server or a client share.
pub(super) struct Engine {
    config: Arc<Config>,
    resolver: Arc<Resolver>,
    clock: Clock,
    /// Room for one output of `dimpl`.
    buffer: Vec<u8>,
}

/// The role of this end.
pub(super) enum Role {
    Server,
    Client,
}

impl Engine {
    pub(super) fn new(now: Mono, role: &Role, keys: PskKeys, timing: HandshakeTiming) -> Result<Self, ConfigError> {
        let identity = keys.first().map(|identity| identity.as_bytes().to_vec()).unwrap_or_default();
        let resolver = Arc::new(Resolver { keys, last: Mutex::new(None) });
        let builder = Config::builder()
            .with_crypto_provider(provider())
            .dtls12_cipher_suites(&[Dtls12CipherSuite::PSK_AES128_CCM_8])
            .dtls13_cipher_suites(&[])
            .mtu(HANDSHAKE_DATAGRAM_OCTETS)
            .max_queue_rx(HANDSHAKE_QUEUE)
            .max_queue_tx(HANDSHAKE_QUEUE)
            .flight_retries(FLIGHT_RETRIES)
            .flight_start_rto(timing.retransmission)
            .handshake_timeout(timing.timeout);
        let builder = match role {
            Role::Server => builder.with_psk_server(None, Arc::clone(&resolver) as _),
            Role::Client => builder.with_psk_client(identity, Arc::clone(&resolver) as _),
        };
        let config = Arc::new(builder.build().map_err(ConfigError)?);
        Ok(Self { config, resolver, clock: Clock::new(now), buffer: vec![0; HANDSHAKE_DATAGRAM_OCTETS] })
    }
}

/// The conversion of times: `dimpl` has the clock of the standard library.
struct Clock {
    mono: Mono,
    instant: Instant,
}

impl Clock {
    fn new(now: Mono) -> Self {
        Self { mono: now, instant: Instant::now() }
    }

    fn instant(&self, now: Mono) -> Instant {
        self.instant + now.since(self.mono)
    }

    fn mono(&self, instant: Instant) -> Mono {
        self.mono.plus(instant.saturating_duration_since(self.instant))
    }
}

/// The keys, and the result of the last search for one.
struct Resolver {
    keys: PskKeys,
    last: Mutex<Option<Peer>>,
}

/// The identity that the other end has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Peer {
    Known(Arc<str>),
    Unknown,
}

impl Resolver {
    fn take_last(&self) -> Option<Peer> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl PskResolver for Resolver {
    fn resolve(&self, identity: &[u8]) -> Option<Vec<u8>> {
        let found = self.keys.get(identity);
        let peer = found.map_or(Peer::Unknown, |(identity, _)| Peer::Known(Arc::clone(identity)));
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(peer);
        found.map(|(_, key)| key.to_vec())
    }
}

/// The results of one step of a connection.
#[derive(Debug, Default)]
pub(super) struct Output {
    /// Datagrams to send.
    pub(super) datagrams: Vec<Bytes>,
    /// Payloads received.
    pub(super) payloads: Vec<Bytes>,
    /// The handshake has completed in this step.
    pub(super) is_connected: bool,
    /// The peer has closed the session in this step.
    pub(super) is_closed: bool,
}

impl Output {
    /// Removes the results of the step before.
    pub(super) fn clear(&mut self) {
        self.datagrams.clear();
        self.payloads.clear();
        self.is_connected = false;
        self.is_closed = false;
    }
}

/// One connection.
pub(super) struct Session {
    dtls: Dtls,
    peer: Option<Peer>,
    /// Random number of the `ClientHello` that has started the handshake.
    random: [u8; RANDOM],
    /// Number that is added to the sequence numbers of sent records of epoch 0.
    shift: u64,
    is_connected: bool,
    /// The peer has sent a payload, so that it has completed the handshake too.
    is_confirmed: bool,
    replay: ReplayWindow,
    /// Records sent after the handshake.
    sent: u64,
    deadline: Option<Mono>,
    /// Start of the handshake.
    pub(super) since: Mono,
    /// Time of the last record, or of the end of the handshake.
    pub(super) last_received: Mono,
}

impl Session {
    fn new(now: Mono, dtls: Dtls, random: [u8; RANDOM]) -> Self {
        Self {
            dtls,
            peer: None,
            random,
            shift: 0,
            is_connected: false,
            is_confirmed: false,
            replay: ReplayWindow::default(),
            sent: 0,
            deadline: None,
            since: now,
            last_received: now,
        }
    }

    /// Starts the handshake of a client.
    pub(super) fn connect(engine: &mut Engine, now: Mono, out: &mut Output) -> Result<Self, EndReason> {
        let instant = engine.clock.instant(now);
        let mut dtls = Dtls::new_12_psk(Arc::clone(&engine.config), instant);
        dtls.set_active(true);
        let mut session = Self::new(now, dtls, [0; RANDOM]);
        session.handle_timeout(engine, now, out)?;
        Ok(session)
    }

    /// Starts the handshake of a server with a `ClientHello` whose cookie the caller has checked.
    ///
    /// The messages before are given to `dimpl` again, without their content, so that it expects the right message numbers:
    /// they are not part of what the `Finished` messages authenticate (RFC 6347, 4.2.1).
    pub(super) fn accept(
        engine: &mut Engine,
        now: Mono,
        hello: &ClientHello<'_>,
        record: &Record<'_>,
        cookie: [u8; COOKIE],
        out: &mut Output,
    ) -> Result<Self, EndReason> {
        let instant = engine.clock.instant(now);
        let mut dtls = Dtls::new_12_psk(Arc::clone(&engine.config), instant);
        dtls.handle_timeout(instant).map_err(|error| end_reason(&error))?;
        let mut session = Self::new(now, dtls, *hello.random);
        for message in 0..hello.message {
            let earlier = client_hello_without_cookie(message);
            session.dtls.handle_packet(&earlier).map_err(|error| end_reason(&error))?;
            session.poll(engine, now, &mut Output::default());
        }
        // RFC 6347, 4.2.1: the ServerHello has the sequence number of the ClientHello. `dimpl` counts its own records.
        session.shift = record.sequence.wrapping_sub(u64::from(hello.message));
        let accepted = with_checked_cookie(cookie, || session.dtls.handle_packet(record.octets));
        accepted.map_err(|error| end_reason(&error))?;
        session.poll(engine, now, out);
        Ok(session)
    }

    /// Returns the identity of the peer of a server.
    pub(super) fn identity(&self) -> Option<&Arc<str>> {
        match &self.peer {
            Some(Peer::Known(identity)) => Some(identity),
            _ => None,
        }
    }

    /// Returns `true` if this `ClientHello` has started the handshake.
    pub(super) fn has_random(&self, random: &[u8; RANDOM]) -> bool {
        self.random == *random
    }

    /// Returns the time at which [`Self::handle_timeout`] must be called, or `None`.
    pub(super) const fn poll_timeout(&self) -> Option<Mono> {
        self.deadline
    }

    /// Returns the number that the next record of epoch 0 that does not come from `dimpl` can have.
    pub(super) const fn free_sequence(&self) -> u64 {
        self.shift.wrapping_add(1 << 16)
    }

    /// Returns `true` if the session should be replaced before it reaches its limit of records.
    pub(super) const fn is_worn(&self) -> bool {
        self.sent >= SESSION_RECORDS_MAX / 2
    }

    /// Processes a record of the peer.
    ///
    /// # Errors
    /// The reason why the connection has ended.
    pub(super) fn handle_record(
        &mut self,
        engine: &mut Engine,
        now: Mono,
        record: &Record<'_>,
        out: &mut Output,
    ) -> Result<Result<(), DropReason>, EndReason> {
        if let Err(reason) = self.check(record) {
            return Ok(Err(reason));
        }
        let payloads = out.payloads.len();
        let handled = self.dtls.handle_timeout(engine.clock.instant(now));
        let handled = handled.and_then(|()| self.dtls.handle_packet(record.octets));
        if let Some(peer) = engine.resolver.take_last() {
            self.peer = Some(peer);
        }
        handled.map_err(|error| self.end_reason(&error))?;
        self.poll(engine, now, out);
        if record.content_type == ContentType::ApplicationData {
            if out.payloads.len() == payloads {
                return Ok(Err(DropReason::NotAuthentic));
            }
            self.replay.accept(record.sequence);
            self.is_confirmed = true;
        }
        self.last_received = now;
        Ok(Ok(()))
    }

    /// Checks that `dimpl` may process a record.
    ///
    /// A session ignores records without protection, because anyone can forge them. The exception is the last flight of a client, which a
    /// server answers until it has received a payload.
    fn check(&self, record: &Record<'_>) -> Result<(), DropReason> {
        if record.content_type == ContentType::ApplicationData {
            return self.replay.check(record.sequence);
        }
        if record.octets.len() > HANDSHAKE_RECORD_OCTETS_MAX {
            return Err(DropReason::Malformed);
        }
        let is_unprotected = record.epoch == 0 && self.is_connected;
        if is_unprotected && (self.is_confirmed || record.content_type == ContentType::Alert) {
            return Err(DropReason::NotAuthentic);
        }
        Ok(())
    }

    /// Processes the deadline.
    ///
    /// # Errors
    /// The reason why the connection has ended.
    pub(super) fn handle_timeout(&mut self, engine: &mut Engine, now: Mono, out: &mut Output) -> Result<(), EndReason> {
        let handled = self.dtls.handle_timeout(engine.clock.instant(now));
        handled.map_err(|error| self.end_reason(&error))?;
        self.poll(engine, now, out);
        Ok(())
    }

    /// Sends a payload. Only for an established session.
    ///
    /// # Errors
    /// The reason why the connection has ended.
    pub(super) fn send(
        &mut self,
        engine: &mut Engine,
        now: Mono,
        payload: &[u8],
        out: &mut Output,
    ) -> Result<(), EndReason> {
        debug_assert!(self.is_connected && payload.len() <= PAYLOAD_OCTETS_MAX, "the owner has checked both");
        if self.sent >= SESSION_RECORDS_MAX {
            return Err(EndReason::RecordLimit);
        }
        self.sent += 1;
        let sent = self.dtls.handle_timeout(engine.clock.instant(now));
        let sent = sent.and_then(|()| self.dtls.send_application_data(payload));
        sent.map_err(|error| self.end_reason(&error))?;
        self.poll(engine, now, out);
        Ok(())
    }

    /// Closes the session: the peer is informed once.
    pub(super) fn close(&mut self, engine: &mut Engine, now: Mono, out: &mut Output) {
        if self.dtls.close().is_ok() {
            self.poll(engine, now, out);
        }
    }

    /// Takes all results from `dimpl`.
    fn poll(&mut self, engine: &mut Engine, now: Mono, out: &mut Output) {
        loop {
            match self.dtls.poll_output(&mut engine.buffer) {
                dimpl::Output::Packet(datagram) => {
                    let mut datagram = datagram.to_vec();
                    if self.shift != 0 {
                        shift_sequence(&mut datagram, self.shift);
                    }
                    out.datagrams.push(datagram.into());
                }
                dimpl::Output::BufferTooSmall { needed } => engine.buffer.resize(needed, 0),
                dimpl::Output::Connected => {
                    self.is_connected = true;
                    self.last_received = now;
                    out.is_connected = true;
                }
                dimpl::Output::ApplicationData(payload) => out.payloads.push(Bytes::copy_from_slice(payload)),
                dimpl::Output::CloseNotify => out.is_closed = true,
                dimpl::Output::Timeout(instant) => {
                    let deadline = engine.clock.mono(instant);
                    self.deadline = (deadline.since(now) < NEVER).then_some(deadline);
                    return;
                }
                _ => {}
            }
        }
    }

    fn end_reason(&self, error: &Error) -> EndReason {
        match end_reason(error) {
            EndReason::WrongKey if self.peer == Some(Peer::Unknown) => EndReason::UnknownIdentity,
            reason => reason,
        }
    }
}

fn end_reason(error: &Error) -> EndReason {
    match error {
        Error::Timeout(_) => EndReason::HandshakeTimeout,
        Error::SecurityError(SecurityError::FatalAlert { .. }) => EndReason::Alert,
        Error::ConnectionClosed => EndReason::ClosedByPeer,
        // The first record with protection is the first that shows whether both ends have the same key.
        Error::CryptoError(_)
        | Error::SecurityError(
            SecurityError::ClientFinishedVerificationFailed | SecurityError::ServerFinishedVerificationFailed,
        ) => EndReason::WrongKey,
        _ => EndReason::Protocol,
    }
}

/// The records of payloads that a session has received. `dimpl` has the same window, but does not report what it drops.
#[derive(Clone, Copy, Debug, Default)]
struct ReplayWindow {
    /// One more than the highest sequence number accepted.
    next: u64,
    /// A bit for each of the sequence numbers below `next`, the highest first.
    received: u64,
}

impl ReplayWindow {
    fn check(&self, sequence: u64) -> Result<(), DropReason> {
        match self.next.checked_sub(sequence + 1) {
            None => Ok(()),
            Some(behind) if behind >= REPLAY_WINDOW => Err(DropReason::TooOld),
            Some(behind) if self.received >> behind & 1 == 1 => Err(DropReason::Replayed),
            Some(_) => Ok(()),
        }
    }

    fn accept(&mut self, sequence: u64) {
        let ahead = (sequence + 1).saturating_sub(self.next);
        self.received = u32::try_from(ahead).ok().and_then(|ahead| self.received.checked_shl(ahead)).unwrap_or(0);
        self.next = self.next.max(sequence + 1);
        self.received |= 1 << (self.next - sequence - 1);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_window_agrees_with_a_set_of_all_sequence_numbers(
            steps in proptest::collection::vec((0_u64..90, any::<bool>()), 1..300)
        ) {
            let (mut window, mut accepted, mut highest) = (ReplayWindow::default(), BTreeSet::new(), 0_u64);
            for (distance, ahead) in steps {
                let sequence = if ahead { highest + distance } else { highest.saturating_sub(distance) };
                let expected = if !accepted.is_empty() && sequence + REPLAY_WINDOW <= highest {
                    Err(DropReason::TooOld)
                } else if accepted.contains(&sequence) {
                    Err(DropReason::Replayed)
                } else {
                    Ok(())
                };
                prop_assert_eq!(window.check(sequence), expected);
                if expected.is_ok() {
                    window.accept(sequence);
                    accepted.insert(sequence);
                    highest = highest.max(sequence);
                }
            }
        }
    }
}
