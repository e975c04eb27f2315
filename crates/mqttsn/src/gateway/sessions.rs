//! The sessions by slot, address and client id, and their deadlines.

use std::{
    collections::{BTreeSet, HashMap, VecDeque, hash_map::DefaultHasher},
    hash::{BuildHasher, Hasher},
    net::IpAddr,
    sync::Arc,
};

use viaduct_units::Mono;

use super::{
    ClientHandle, Token,
    session::{Session, State},
};
use crate::Peer;

/// A hash function with a seed, so that a node cannot choose addresses or client ids with the same hash.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seeded(pub(super) u64);

impl BuildHasher for Seeded {
    type Hasher = DefaultHasher;

    fn build_hasher(&self) -> DefaultHasher {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.0);
        hasher
    }
}

#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    session: Option<Box<Session>>,
    /// Time at which the session is examined: its deadline, or earlier.
    scheduled: Option<Mono>,
}

/// All sessions.
#[derive(Debug)]
pub(super) struct Sessions {
    slots: Vec<Slot>,
    free: Vec<u32>,
    by_peer: HashMap<Peer, u32, Seeded>,
    by_id: HashMap<Arc<str>, u32, Seeded>,
    of_address: HashMap<IpAddr, usize, Seeded>,
    deadlines: BTreeSet<(Mono, u32)>,
    /// Sessions that wait for a will or for the broker.
    connecting: usize,
    /// Sessions in the order of their creation, as candidates for an eviction. Some have ended or are confirmed since.
    unconfirmed: VecDeque<ClientHandle>,
}

impl Sessions {
    pub(super) fn new(hasher: Seeded) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            by_peer: HashMap::with_hasher(hasher),
            by_id: HashMap::with_hasher(hasher),
            of_address: HashMap::with_hasher(hasher),
            deadlines: BTreeSet::new(),
            connecting: 0,
            unconfirmed: VecDeque::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Returns the number of sessions that wait for a will or for the broker.
    pub(super) const fn connecting(&self) -> usize {
        self.connecting
    }

    /// Changes the state of a session.
    pub(super) fn enter(&mut self, now: Mono, slot: u32, state: State) {
        let Some(session) = self.get_mut(slot) else { return };
        let (before, after) = (session.state.is_connecting(), state.is_connecting());
        session.enter(now, state);
        self.connecting = self.connecting + usize::from(after) - usize::from(before);
    }

    /// Returns the number of sessions of an IP address.
    pub(super) fn of_address(&self, address: IpAddr) -> usize {
        self.of_address.get(&address).copied().unwrap_or(0)
    }

    pub(super) fn get(&self, slot: u32) -> Option<&Session> {
        self.slots.get(slot as usize)?.session.as_deref()
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut Session> {
        self.slots.get_mut(slot as usize)?.session.as_deref_mut()
    }

    pub(super) fn by_handle(&mut self, handle: ClientHandle) -> Option<&mut Session> {
        self.get_mut(handle.slot).filter(|session| session.handle == handle)
    }

    pub(super) fn by_token(&mut self, token: Token) -> Option<&mut Session> {
        self.by_handle(token.client)
    }

    pub(super) fn slot_of_peer(&self, peer: &Peer) -> Option<u32> {
        self.by_peer.get(peer).copied()
    }

    pub(super) fn slot_of_id(&self, client_id: &str) -> Option<u32> {
        self.by_id.get(client_id).copied()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Session> {
        self.slots.iter().filter_map(|slot| slot.session.as_deref())
    }

    /// Creates a session. The client id must not have one.
    pub(super) fn insert(&mut self, client_id: Arc<str>, peer: Peer, now: Mono, next_message: u16) -> &mut Session {
        let number = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
        });
        self.by_peer.entry(peer).or_insert(number);
        self.by_id.insert(Arc::clone(&client_id), number);
        *self.of_address.entry(peer.address.ip()).or_default() += 1;
        let slot = &mut self.slots[number as usize];
        slot.generation = slot.generation.wrapping_add(1);
        let handle = ClientHandle { slot: number, generation: slot.generation };
        self.unconfirmed.push_back(handle);
        self.connecting += 1;
        slot.session.insert(Box::new(Session::new(handle, client_id, peer, now, next_message)))
    }

    /// Removes a session.
    pub(super) fn remove(&mut self, slot: u32) -> Option<Box<Session>> {
        let place = self.slots.get_mut(slot as usize)?;
        let session = place.session.take()?;
        if let Some(due) = place.scheduled.take() {
            self.deadlines.remove(&(due, slot));
        }
        self.connecting -= usize::from(session.state.is_connecting());
        self.free.push(slot);
        self.by_id.remove(&session.client_id);
        self.detach(slot, &session.peer);
        self.release_address(session.peer.address.ip());
        Some(session)
    }

    /// Removes the address of a session, so that datagrams from it are those of a stranger.
    pub(super) fn detach(&mut self, slot: u32, peer: &Peer) {
        if self.by_peer.get(peer) == Some(&slot) {
            self.by_peer.remove(peer);
        }
    }

    /// Sets the address of a session. The address must not have another session.
    pub(super) fn attach(&mut self, slot: u32, peer: Peer) {
        let Some(session) = self.get_mut(slot) else { return };
        let before = session.set_peer(peer);
        self.detach(slot, &before);
        self.by_peer.insert(peer, slot);
        if before.address.ip() != peer.address.ip() {
            self.release_address(before.address.ip());
            *self.of_address.entry(peer.address.ip()).or_default() += 1;
        }
    }

    fn release_address(&mut self, address: IpAddr) {
        if let Some(sessions) = self.of_address.get_mut(&address) {
            *sessions -= 1;
            if *sessions == 0 {
                self.of_address.remove(&address);
            }
        }
    }

    /// Returns the oldest session that has never sent a second datagram, if it was created before `limit`.
    pub(super) fn oldest_unconfirmed(&mut self, limit: Mono) -> Option<u32> {
        while let Some(handle) = self.unconfirmed.front().copied() {
            match self.by_handle(handle).filter(|session| !session.confirmed) {
                Some(session) if session.entered > limit => return None,
                Some(_) => return Some(handle.slot),
                None => self.unconfirmed.pop_front(),
            };
        }
        None
    }

    /// Drops the candidates for an eviction that have ended or are confirmed, if there are many.
    pub(super) fn trim_unconfirmed(&mut self) {
        if self.unconfirmed.len() > 2 * self.by_id.len() + 16 {
            let mut handles = std::mem::take(&mut self.unconfirmed);
            handles.retain(|handle| self.by_handle(*handle).is_some_and(|session| !session.confirmed));
            self.unconfirmed = handles;
        }
    }

    /// Makes sure that a session is examined at `due` or earlier.
    ///
    /// A deadline that moves to a later time costs nothing: the session is examined at the earlier time, and again later.
    pub(super) fn schedule(&mut self, slot: u32, due: Mono) {
        let Some(place) = self.slots.get_mut(slot as usize) else { return };
        if place.scheduled.is_some_and(|scheduled| scheduled <= due) {
            return;
        }
        if let Some(before) = place.scheduled.replace(due) {
            self.deadlines.remove(&(before, slot));
        }
        self.deadlines.insert((due, slot));
    }

    pub(super) fn next_deadline(&self) -> Option<Mono> {
        self.deadlines.first().map(|(due, _)| *due)
    }

    /// Returns the next session to examine.
    pub(super) fn take_due(&mut self, now: Mono) -> Option<u32> {
        let (_, slot) = self.deadlines.first().copied().filter(|(due, _)| *due <= now)?;
        self.deadlines.pop_first();
        if let Some(place) = self.slots.get_mut(slot as usize) {
            place.scheduled = None;
        }
        Some(slot)
    }
}
