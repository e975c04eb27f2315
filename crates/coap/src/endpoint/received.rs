//! Detection of duplicates (RFC 7252, 4.5).

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use viaduct_units::Mono;

use crate::budget::Share;
use crate::codec::Token;
use crate::settings::{EXCHANGE_LIFETIME, NON_LIFETIME};
use crate::shared::Core;

/// Messages of a peer that are remembered even if all peers together have too many.
const KEPT: usize = 16;

/// Messages received from one peer, with the answers for their duplicates.
#[derive(Debug)]
pub(super) struct Received {
    messages: BTreeMap<u16, Entry>,
    /// Messages in the order of their arrival, with the time at which they expire.
    order: VecDeque<(Mono, u16)>,
    /// Octets of the answers.
    octets: usize,
    share: Share,
}

#[derive(Debug)]
struct Entry {
    /// A retransmission has the token of the message. A new message with a reused ID has another one.
    token: Token,
    expires: Mono,
    /// Acknowledgement, with or without a response, or Reset. `None` before it is sent, and for non-confirmable messages.
    answer: Option<Bytes>,
}

/// Earlier use of a message ID.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Seen {
    New,
    /// A duplicate, and the answer to the first one.
    Duplicate(Option<Bytes>),
}

impl Received {
    pub(super) fn new(share: Share) -> Self {
        Self { messages: BTreeMap::new(), order: VecDeque::new(), octets: 0, share }
    }

    /// Compares a message with those remembered, and remembers it if it is new.
    pub(super) fn see(&mut self, core: &mut Core, now: Mono, id: u16, token: Token, confirmable: bool) -> Seen {
        if let Some(entry) = self.messages.get(&id).filter(|entry| entry.expires > now && entry.token == token) {
            core.counters.duplicates += 1;
            return Seen::Duplicate(entry.answer.clone());
        }
        self.remove(id);
        self.make_room(core, now);
        let lifetime = if confirmable { EXCHANGE_LIFETIME } else { NON_LIFETIME };
        let expires = now.plus(lifetime);
        self.messages.insert(id, Entry { token, expires, answer: None });
        self.order.push_back((expires, id));
        // Without a share, the message is one of the few that each peer keeps.
        self.share.grow(1);
        Seen::New
    }

    /// Returns `true` if the message is remembered and not answered.
    pub(super) fn is_open(&self, id: u16) -> bool {
        self.messages.get(&id).is_some_and(|entry| entry.answer.is_none())
    }

    /// Stores the answer to a message.
    pub(super) fn answer(&mut self, core: &mut Core, id: u16, answer: Bytes) {
        let Some(entry) = self.messages.get_mut(&id) else { return };
        self.octets += answer.len();
        entry.answer = Some(answer);
        while self.octets > core.settings.limits.remembered_octets_per_peer && self.messages.len() > 1 {
            core.counters.forgotten += 1;
            self.forget_oldest();
        }
    }

    /// Forgets the messages that have expired. Returns the time at which the next one does.
    pub(super) fn expire(&mut self, now: Mono) -> Option<Mono> {
        while self.order.front().is_some_and(|(expires, _)| *expires <= now) {
            self.forget_oldest();
        }
        self.order.front().map(|(expires, _)| *expires)
    }

    fn make_room(&mut self, core: &mut Core, now: Mono) {
        self.expire(now);
        let limits = &core.settings.limits;
        let crowded = core.remembered.used() >= limits.remembered;
        let limit = if crowded { KEPT } else { limits.remembered_per_peer.max(1) };
        while self.order.len() >= limit {
            core.counters.forgotten += 1;
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some((expires, id)) = self.order.pop_front() else { return };
        if self.messages.get(&id).is_some_and(|entry| entry.expires == expires) {
            self.remove(id);
        }
    }

    fn remove(&mut self, id: u16) {
        if let Some(entry) = self.messages.remove(&id) {
            self.octets -= entry.answer.map_or(0, |answer| answer.len());
            self.share.shrink(1);
        }
    }
}
