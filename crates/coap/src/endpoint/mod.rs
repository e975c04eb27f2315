//! Client and server of one UDP socket.

mod ids;
mod messages;
mod peer;
mod received;
mod window;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use viaduct_units::Mono;

use crate::shared::Core;
use crate::{
    Counters, DropReason, EndReason, Event, ExchangeId, Failure, ObservationId, Request, RequestError, RequestId,
    Resource, Response, Settings, Totals,
};
use peer::{Peer, Rank};

/// A CoAP endpoint over datagrams: client and server of one socket.
///
/// The owner calls, in this order:
///
/// 1. [`Endpoint::handle_datagram`] for each received datagram, [`Endpoint::handle_timeout`] at the time of
///    [`Endpoint::poll_timeout`], and the commands, of which each takes the current time;
/// 2. after each of them [`Endpoint::poll_event`] until `None`, and answers with [`Endpoint::respond`];
/// 3. then [`Endpoint::poll_transmit`] until `None`, and sends the datagrams.
///
/// A request whose answer is given in step 2 is answered by the acknowledgement itself (piggybacked response).
#[derive(Debug)]
pub struct Endpoint {
    core: Core,
    peers: BTreeMap<SocketAddr, Peer>,
    deadlines: BTreeSet<(Mono, SocketAddr)>,
    /// Peers in the order in which they are removed for new ones.
    ranks: BTreeSet<(Rank, SocketAddr)>,
}

impl Endpoint {
    /// Returns an endpoint without peers. The seed determines message IDs, tokens and the spread of waits.
    #[must_use]
    pub fn new(settings: Settings, seed: u64) -> Self {
        Self {
            core: Core::new(settings, seed),
            peers: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            ranks: BTreeSet::new(),
        }
    }

    /// Returns the totals, for machines that share them.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.core.totals.clone()
    }

    /// Sets the resources that `/.well-known/core` lists. Without resources, requests for it are passed to the owner.
    pub fn set_resources(&mut self, resources: Vec<Resource>) {
        self.core.resources = resources;
    }

    /// Processes a received datagram.
    pub fn handle_datagram(&mut self, now: Mono, from: SocketAddr, datagram: &Bytes) {
        self.core.counters.received += 1;
        self.core.counters.octets_received += datagram.len() as u64;
        if self.peers.contains_key(&from) || self.admit(now, from, datagram) {
            self.with_peer(now, from, |peer, core| peer.handle_datagram(core, now, datagram));
        }
    }

    /// Does the work that is due. Does nothing before the deadline of [`Self::poll_timeout`].
    pub fn handle_timeout(&mut self, now: Mono) {
        while let Some((at, address)) = self.deadlines.first().copied().filter(|(at, _)| *at <= now) {
            if self.with_peer(now, address, |peer, core| peer.handle_timeout(core, now)).is_none() {
                self.deadlines.remove(&(at, address));
            }
            if self.peers.get(&address).is_some_and(|peer| peer.is_idle(now)) {
                self.remove(address);
            }
        }
    }

    /// Returns the receiver and the payload of the next datagram to send, or `None`.
    pub fn poll_transmit(&mut self) -> Option<(SocketAddr, Bytes)> {
        self.core.transmits.pop_front()
    }

    /// Returns the time at which [`Self::handle_timeout`] must be called, or `None`.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Mono> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Returns the next event, or `None`.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.core.events.pop_front()
    }

    /// Sends a request. Its last event is [`Event::Response`] or [`Event::Failed`].
    ///
    /// # Errors
    /// The request violates a limit.
    pub fn request(&mut self, now: Mono, peer: SocketAddr, request: Request) -> Result<RequestId, RequestError> {
        self.send(now, peer, |peer, core| peer.session.request(core, now, request, false))
    }

    /// Observes a resource with a GET or FETCH: each state is an [`Event::Notification`] until the server ends the
    /// observation ([`Event::Response`]), it fails ([`Event::Failed`]) or [`Endpoint::cancel`] is called. The machine
    /// registers anew if no state arrives before the end of Max-Age.
    ///
    /// # Errors
    /// The request violates a limit.
    pub fn observe(&mut self, now: Mono, peer: SocketAddr, request: Request) -> Result<RequestId, RequestError> {
        self.send(now, peer, |peer, core| peer.session.request(core, now, request, true))
    }

    /// Ends a request or an observation of this endpoint without a further event.
    pub fn cancel(&mut self, now: Mono, id: RequestId) {
        self.with_peer(now, id.peer, |peer, core| peer.cancel(core, now, id.number));
    }

    /// Sends a ping (RFC 7252, 4.3). Its event is [`Event::Pong`] or [`Event::Failed`].
    ///
    /// # Errors
    /// The limit of peers is reached.
    pub fn ping(&mut self, now: Mono, peer: SocketAddr) -> Result<RequestId, RequestError> {
        self.send(now, peer, |peer, core| Ok(peer.ping(core)))
    }

    /// Answers a request.
    pub fn respond(&mut self, now: Mono, id: ExchangeId, response: Response) {
        self.answer(now, id, response, false);
    }

    /// Answers a request and begins the observation that it asks for, if the response is a success. The response is its
    /// first state.
    pub fn respond_observed(&mut self, now: Mono, id: ExchangeId, response: Response) {
        self.answer(now, id, response, true);
    }

    /// Returns `true` if an observation has begun and has not ended. None begins beyond [`crate::settings::Limits::observations`], nor
    /// with an error as response.
    #[must_use]
    pub fn is_observed(&self, id: ObservationId) -> bool {
        self.peers.get(&id.peer).is_some_and(|peer| peer.session.has_observation(id))
    }

    /// Sends the state of an observed resource. A state that is not sent yet is replaced. An error ends the observation.
    pub fn notify(&mut self, now: Mono, id: ObservationId, response: Response) {
        if self.with_peer(now, id.peer, |peer, core| peer.session.notify(core, now, id, response)).is_none() {
            self.core.drop_one(DropReason::UnknownExchange);
        }
    }

    /// Ends an observation with a last response, such as `4.04 Not Found`.
    pub fn end_observation(&mut self, now: Mono, id: ObservationId, response: Response) {
        self.with_peer(now, id.peer, |peer, core| peer.session.end_observation(core, now, id, response));
    }

    /// Returns the counters.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.core.counters
    }

    /// Returns the number of peers with state.
    #[must_use]
    pub fn peers(&self) -> usize {
        self.peers.len()
    }

    /// Returns the number of observations of own resources, also those of machines that share the totals.
    #[must_use]
    pub fn observations(&self) -> usize {
        self.core.totals.observations.used()
    }

    /// Returns the octets of bodies that are received or sent in blocks, also by machines that share the totals.
    #[must_use]
    pub fn body_octets(&self) -> usize {
        self.core.totals.bodies.used()
    }

    /// Returns the smoothed round trip to a peer, or `None` if it was not measured.
    #[must_use]
    pub fn round_trip(&self, peer: SocketAddr) -> Option<Duration> {
        self.peers.get(&peer).and_then(Peer::round_trip)
    }

    fn answer(&mut self, now: Mono, id: ExchangeId, response: Response, observed: bool) {
        let answered =
            self.with_peer(now, id.peer, |peer, core| peer.session.respond(core, now, id.number, response, observed));
        if answered.is_none() {
            self.core.drop_one(DropReason::UnknownExchange);
        }
    }

    fn send<R>(
        &mut self,
        now: Mono,
        address: SocketAddr,
        command: impl FnOnce(&mut Peer, &mut Core) -> Result<R, RequestError>,
    ) -> Result<R, RequestError> {
        let full = RequestError::Peers(self.peers.len());
        if !self.peers.contains_key(&address) && !self.add(now, address) {
            return Err(full);
        }
        let command = |peer: &mut Peer, core: &mut Core| {
            peer.use_at(now);
            command(peer, core)
        };
        self.with_peer(now, address, command).unwrap_or(Err(full))
    }

    /// Calls a function with a peer, sends the messages that it caused, and updates the order of the peers.
    fn with_peer<R>(
        &mut self,
        now: Mono,
        address: SocketAddr,
        function: impl FnOnce(&mut Peer, &mut Core) -> R,
    ) -> Option<R> {
        let peer = self.peers.get_mut(&address)?;
        if self.core.settings.q_block {
            self.core.wait = peer.wait(&mut self.core, now);
        }
        let result = function(peer, &mut self.core);
        if let Some(sent) = self.core.measured.take() {
            peer.measure(now, sent);
        }
        peer.flush(&mut self.core, now);
        let next = peer.next_timeout();
        if peer.scheduled != next {
            if let Some(at) = peer.scheduled {
                self.deadlines.remove(&(at, address));
            }
            if let Some(at) = next {
                self.deadlines.insert((at, address));
            }
            peer.scheduled = next;
        }
        let rank = peer.current_rank();
        if peer.rank != rank {
            self.ranks.remove(&(peer.rank, address));
            self.ranks.insert((rank, address));
            peer.rank = rank;
        }
        Some(result)
    }

    /// Adds the sender of a datagram as peer. A datagram that cannot begin anything is processed without state.
    fn admit(&mut self, now: Mono, from: SocketAddr, datagram: &Bytes) -> bool {
        match messages::first_contact(datagram) {
            messages::FirstContact::Request => {
                let added = self.add(now, from);
                if !added {
                    self.core.drop_one(DropReason::Peers);
                }
                added
            }
            messages::FirstContact::Reject(reason, reset) => {
                self.core.drop_one(reason);
                if let Some(reset) = reset {
                    self.core.transmit(from, reset);
                }
                false
            }
        }
    }

    fn add(&mut self, now: Mono, address: SocketAddr) -> bool {
        while self.peers.len() >= self.core.settings.limits.peers.max(1) {
            let Some((_, oldest)) = self.ranks.first().copied().filter(|(rank, _)| rank.is_removable()) else {
                return false;
            };
            self.core.counters.evicted += 1;
            self.remove(oldest);
        }
        let peer = Peer::new(&mut self.core, now, address);
        self.ranks.insert((peer.rank, address));
        self.peers.insert(address, peer);
        true
    }

    fn remove(&mut self, address: SocketAddr) {
        let Some(mut peer) = self.peers.remove(&address) else { return };
        peer.session.close(&mut self.core, Failure::Evicted, EndReason::Evicted);
        self.ranks.remove(&(peer.rank, address));
        if let Some(at) = peer.scheduled {
            self.deadlines.remove(&(at, address));
        }
    }
}
