//! The state of one peer: its sessions, its address, and the handshake that this end has started.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use viaduct_units::Mono;

use super::admission::TokenBucket;
use super::limits::{
    ACCEPTED_HANDSHAKES, PEER_HANDSHAKE_BURST, PEER_HANDSHAKE_INTERVAL, SOURCE_HANDSHAKE_BURST,
    SOURCE_HANDSHAKE_INTERVAL, Timing,
};
use super::noise::Initiated;
use super::session::Session;
use super::settings::Peer;
use super::wire::Handshake;

/// The state of one peer.
pub(super) struct PeerState {
    pub(super) settings: Peer,
    /// Address of the last authentic datagram that was the newest of its session.
    pub(super) address: Option<SocketAddr>,
    pub(super) sessions: Sessions,
    /// The handshake that this end has started.
    pub(super) attempt: Option<Attempt>,
    /// Earliest time of the next attempt.
    pub(super) not_before: Mono,
    /// Initiations that were accepted from the peer, the oldest first.
    pub(super) accepted: VecDeque<u64>,
    /// Limit of these initiations.
    pub(super) initiations: TokenBucket,
    /// Limit of key agreements for the address of the current session, which a flood of others cannot use up.
    pub(super) agreements: TokenBucket,
    /// Time of the first payload that was sent after the last authentic datagram.
    unanswered_since: Option<Mono>,
    /// Time at which an empty datagram is due, because a payload was received and nothing was sent.
    keepalive_at: Option<Mono>,
}

/// The sessions with a peer.
#[derive(Default)]
pub(super) struct Sessions {
    /// A session that the peer has started and not used yet. It is not used for sending: the initiation may be a copy.
    pub(super) next: Option<Session>,
    /// The session for sending.
    pub(super) current: Option<Session>,
    /// The session before, for datagrams under way.
    pub(super) previous: Option<Session>,
}

/// One of the sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    Next,
    Current,
    Previous,
}

/// The reason to start a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// There is no session.
    Connect,
    /// The session is old or has carried many datagrams.
    Rekey,
    /// The peer does not answer; it may have restarted.
    Silence,
}

/// A handshake that this end has started.
pub(super) struct Attempt {
    pub(super) cause: Cause,
    pub(super) handshake: Handshake,
    pub(super) to: SocketAddr,
    /// The handshake after the initiation was sent, or `None` while the cookie is awaited.
    pub(super) initiated: Option<Initiated>,
    /// Time at which the message is sent again.
    pub(super) retry_at: Mono,
    /// Number of times that a message was sent without an answer.
    pub(super) tries: u32,
}

impl Sessions {
    /// Returns the session with an own identifier.
    pub(super) fn find(&mut self, identifier: u32) -> Option<(Slot, &mut Session)> {
        let slots =
            [(Slot::Current, &mut self.current), (Slot::Next, &mut self.next), (Slot::Previous, &mut self.previous)];
        slots
            .into_iter()
            .filter_map(|(slot, session)| session.as_mut().map(|session| (slot, session)))
            .find(|(_, session)| session.own_identifier == identifier)
    }

    /// Makes a session the current one. Returns `true` if it replaces another one.
    pub(super) fn install(&mut self, session: Session) -> bool {
        let replaced = self.current.replace(session);
        let is_renewal = replaced.is_some();
        if is_renewal {
            self.previous = replaced;
        }
        is_renewal
    }

    /// Drops sessions that have expired. Returns `true` if the current one was among them.
    fn expire(&mut self, now: Mono, timing: &Timing) -> bool {
        let expired = |session: &mut Session| session.is_expired(now, timing);
        self.next.take_if(expired);
        self.previous.take_if(expired);
        self.current.take_if(expired).is_some()
    }

    fn expiry(&self, timing: &Timing) -> Option<Mono> {
        let sessions = [&self.next, &self.current, &self.previous];
        sessions.into_iter().flatten().map(|session| session.since.plus(timing.expire_after)).min()
    }
}

impl PeerState {
    pub(super) fn new(settings: Peer) -> Self {
        Self {
            address: settings.address,
            settings,
            sessions: Sessions::default(),
            attempt: None,
            not_before: Mono::default(),
            accepted: VecDeque::with_capacity(ACCEPTED_HANDSHAKES),
            initiations: TokenBucket::new(PEER_HANDSHAKE_INTERVAL, PEER_HANDSHAKE_BURST),
            agreements: TokenBucket::new(SOURCE_HANDSHAKE_INTERVAL, SOURCE_HANDSHAKE_BURST),
            unanswered_since: None,
            keepalive_at: None,
        }
    }

    /// Returns `true` if the peer has a session at this address.
    pub(super) fn is_at(&self, address: SocketAddr) -> bool {
        self.sessions.current.is_some() && self.address == Some(address)
    }

    /// Remembers an accepted initiation.
    pub(super) fn remember(&mut self, number: u64) {
        if self.accepted.len() >= ACCEPTED_HANDSHAKES {
            self.accepted.pop_front();
        }
        self.accepted.push_back(number);
    }

    /// Processes that a datagram was sent. `is_answer_expected` if the peer answers it, if only by an empty one.
    pub(super) fn on_sent(&mut self, now: Mono, is_answer_expected: bool) {
        self.keepalive_at = None;
        if is_answer_expected {
            self.unanswered_since.get_or_insert(now);
        }
    }

    /// Processes that an authentic datagram was received.
    pub(super) fn on_received(&mut self, now: Mono, is_empty: bool, timing: &Timing) {
        self.unanswered_since = None;
        self.attempt.take_if(|attempt| attempt.cause == Cause::Silence);
        if !is_empty {
            self.keepalive_at.get_or_insert(now.plus(timing.keepalive_after));
        }
    }

    /// Drops expired sessions. Returns `true` if the peer has none for sending any more.
    pub(super) fn expire(&mut self, now: Mono, timing: &Timing) -> bool {
        let is_disconnected = self.sessions.expire(now, timing);
        if is_disconnected {
            (self.unanswered_since, self.keepalive_at) = (None, None);
        }
        is_disconnected
    }

    /// Returns `true` once if an empty datagram is due.
    pub(super) fn take_keepalive(&mut self, now: Mono) -> bool {
        self.keepalive_at.take_if(|due| *due <= now).is_some()
    }

    /// Returns the time of the next handshake and its cause, or `None` if this end starts none.
    pub(super) fn next_attempt(&self, timing: &Timing) -> Option<(Mono, Cause)> {
        self.settings.address?;
        let Some(session) = &self.sessions.current else { return Some((self.not_before, Cause::Connect)) };
        let rekey = (rekey_at(session, timing), Cause::Rekey);
        let silence = self.unanswered_since.map(|since| (since.plus(timing.silence_after), Cause::Silence));
        let (due, cause) = silence.filter(|silence| silence.0 < rekey.0).unwrap_or(rekey);
        Some((due.max(self.not_before), cause))
    }

    /// Returns the address for the next message of a handshake.
    ///
    /// A peer that has restarted is again at the address of the settings, if not at the last one: they take turns.
    pub(super) fn address_for(&self, cause: Cause, tries: u32) -> Option<SocketAddr> {
        let configured = self.settings.address?;
        let is_turn_of_last = cause == Cause::Rekey || tries % 2 == 1;
        Some(if is_turn_of_last { self.address.unwrap_or(configured) } else { configured })
    }

    /// Returns the time of the next deadline.
    pub(super) fn poll_timeout(&self, timing: &Timing) -> Option<Mono> {
        let handshake = match &self.attempt {
            Some(attempt) => Some(attempt.retry_at),
            None => self.next_attempt(timing).map(|(due, _)| due),
        };
        [self.sessions.expiry(timing), self.keepalive_at, handshake].into_iter().flatten().min()
    }
}

/// Returns the time at which this end replaces a session. If both ends can, the end that has started the session is first.
fn rekey_at(session: &Session, timing: &Timing) -> Mono {
    if session.datagrams() >= timing.rekey_after_datagrams {
        return session.since;
    }
    let delay = if session.is_initiator { Duration::ZERO } else { timing.rekey_delay_of_responder };
    session.since.plus(timing.rekey_after).plus(delay)
}
