//! Two endpoints: a desk, which opens the connection, and a vehicle.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use viaduct_components::net::secure::{
    Credentials, DropReason, Endpoint, Event, Peer, PeerId, PrivateKey, Random, RandomError, Role, Timing,
};
use viaduct_netem::DatagramMachine;
use viaduct_units::{Mono, Rng};

pub(crate) const MS: Duration = Duration::from_millis(1);
/// The only peer of each end.
pub(crate) const PEER: PeerId = PeerId(0);

/// Random numbers of a seed.
pub(crate) struct Seeded(pub(crate) Rng);

impl Random for Seeded {
    fn fill(&mut self, octets: &mut [u8]) -> Result<(), RandomError> {
        octets.fill_with(|| self.0.next_u64() as u8);
        Ok(())
    }
}

pub(crate) fn key(seed: u64) -> PrivateKey {
    PrivateKey::generate(&mut Seeded(Rng::new(seed))).unwrap()
}

pub(crate) fn address_of_desk() -> SocketAddr {
    "192.0.2.1:4000".parse().unwrap()
}

pub(crate) fn address_of_vehicle() -> SocketAddr {
    "192.0.2.2:4000".parse().unwrap()
}

/// Returns an endpoint with one peer. `seed` is that of the random numbers.
pub(crate) fn endpoint(
    own: &PrivateKey,
    peer: &PrivateKey,
    address: Option<SocketAddr>,
    timing: Timing,
    seed: u64,
) -> Endpoint {
    let peer = Peer { name: "peer".into(), public_key: peer.public_key(), address, role: Role::Driver };
    let credentials = Credentials { private_key: own.clone(), peers: vec![peer] };
    Endpoint::new(Mono::default(), credentials, timing, Box::new(Seeded(Rng::new(seed)))).unwrap()
}

/// Returns a desk, which knows the vehicle's address.
pub(crate) fn desk(timing: Timing, seed: u64) -> Endpoint {
    endpoint(&key(1), &key(2), Some(address_of_vehicle()), timing, seed)
}

/// Returns a vehicle, which waits for the desk.
pub(crate) fn vehicle(timing: Timing, seed: u64) -> Endpoint {
    endpoint(&key(2), &key(1), None, timing, seed)
}

/// Returns all datagrams that an endpoint has to send.
pub(crate) fn transmits(endpoint: &mut Endpoint) -> Vec<Bytes> {
    std::iter::from_fn(|| endpoint.poll_transmit()).map(|(_, datagram)| datagram).collect()
}

/// Returns all events of an endpoint.
pub(crate) fn events(endpoint: &mut Endpoint) -> Vec<Event> {
    std::iter::from_fn(|| endpoint.poll_event()).collect()
}

/// Returns the datagram of a payload.
pub(crate) fn seal(endpoint: &mut Endpoint, now: Mono, payload: &[u8]) -> Bytes {
    let mut datagram = BytesMut::new();
    endpoint.seal(now, PEER, payload, &mut datagram).unwrap();
    datagram.freeze()
}

/// A desk and a vehicle without a link.
pub(crate) struct Ends {
    pub(crate) now: Mono,
    pub(crate) desk: Endpoint,
    pub(crate) vehicle: Endpoint,
}

impl Ends {
    pub(crate) fn new() -> Self {
        let timing = Timing::default();
        Self { now: Mono::default(), desk: desk(timing.clone(), 10), vehicle: vehicle(timing, 20) }
    }

    /// Returns two ends with a session.
    pub(crate) fn connected() -> Self {
        let mut ends = Self::new();
        ends.exchange();
        assert!(ends.desk.address(PEER).is_some() && ends.vehicle.address(PEER).is_some());
        let dropped = ends.desk.counters().dropped_total() + ends.vehicle.counters().dropped_total();
        assert_eq!(dropped, 0);
        ends
    }

    /// Exchanges datagrams until no end has any more.
    pub(crate) fn exchange(&mut self) {
        self.desk.handle_timeout(self.now);
        self.vehicle.handle_timeout(self.now);
        loop {
            let (up, down) = (transmits(&mut self.desk), transmits(&mut self.vehicle));
            if up.is_empty() && down.is_empty() {
                return;
            }
            for datagram in up {
                self.deliver_to_vehicle(&datagram);
            }
            for datagram in down {
                self.deliver_to_desk(&datagram);
            }
        }
    }

    /// Exchanges the first messages of a handshake. Returns the initiation, which is not delivered.
    pub(crate) fn initiation(&mut self) -> Bytes {
        self.desk.handle_timeout(self.now);
        let request = transmits(&mut self.desk).remove(0);
        self.deliver_to_vehicle(&request);
        let cookie = transmits(&mut self.vehicle).remove(0);
        self.deliver_to_desk(&cookie);
        transmits(&mut self.desk).remove(0)
    }

    /// Delivers a datagram to the vehicle. Returns the payload.
    pub(crate) fn deliver_to_vehicle(&mut self, datagram: &[u8]) -> Option<Bytes> {
        self.vehicle.open(self.now, address_of_desk(), datagram).map(|opened| opened.payload)
    }

    /// Delivers a datagram to the desk. Returns the payload.
    pub(crate) fn deliver_to_desk(&mut self, datagram: &[u8]) -> Option<Bytes> {
        self.desk.open(self.now, address_of_vehicle(), datagram).map(|opened| opened.payload)
    }

    /// Returns how many datagrams the vehicle has dropped for a reason.
    pub(crate) fn dropped(&self, reason: DropReason) -> u64 {
        self.vehicle.counters().dropped(reason)
    }

    pub(crate) fn pass(&mut self, duration: Duration) {
        self.now = self.now.plus(duration);
    }
}

/// Checks that each received datagram is counted once.
pub(crate) fn check_counters(endpoint: &Endpoint) {
    let counters = endpoint.counters();
    let processed = counters.opened + counters.empty + counters.handshake_messages;
    assert_eq!(counters.received, processed + counters.dropped_total(), "{counters:?}");
}

/// An endpoint in a program that sends numbered payloads to its peer.
pub(crate) struct Program {
    pub(crate) endpoint: Endpoint,
    interval: Duration,
    next_payload: Option<Mono>,
    /// Numbers of payloads sent.
    pub(crate) sent: u64,
    /// Payloads for which there was no session.
    pub(crate) unsent: u64,
    /// Numbers of payloads received, with their times.
    pub(crate) received: Vec<(Mono, u64)>,
    pub(crate) events: Vec<(Mono, Event)>,
    outbox: VecDeque<(SocketAddr, Bytes)>,
}

impl Program {
    pub(crate) fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            interval: Duration::MAX,
            next_payload: None,
            sent: 0,
            unsent: 0,
            received: Vec::new(),
            events: Vec::new(),
            outbox: VecDeque::new(),
        }
    }

    /// Sends payloads from now on.
    pub(crate) fn start(&mut self, now: Mono, interval: Duration) {
        (self.interval, self.next_payload) = (interval, Some(now));
    }

    /// Sends no more payloads.
    pub(crate) fn stop(&mut self) {
        self.next_payload = None;
    }

    /// Replaces the endpoint by one that has just started.
    pub(crate) fn restart(&mut self, endpoint: Endpoint) {
        self.endpoint = endpoint;
    }

    fn send(&mut self, now: Mono) {
        let mut datagram = BytesMut::new();
        let payload = [self.sent.to_be_bytes().as_slice(), &[7; 92]].concat();
        match self.endpoint.seal(now, PEER, &payload, &mut datagram) {
            Ok(to) => {
                self.outbox.push_back((to, datagram.freeze()));
                self.sent += 1;
            }
            Err(_) => self.unsent += 1,
        }
    }

    fn settle(&mut self, now: Mono) {
        self.outbox.extend(std::iter::from_fn(|| self.endpoint.poll_transmit()));
        self.events.extend(std::iter::from_fn(|| self.endpoint.poll_event()).map(|event| (now, event)));
        check_counters(&self.endpoint);
    }

    /// Returns the payload's number once for each that has arrived, in the order of the numbers.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        let mut numbers: Vec<u64> = self.received.iter().map(|(_, number)| *number).collect();
        numbers.sort_unstable();
        numbers
    }
}

impl DatagramMachine for Program {
    fn handle_datagram(&mut self, now: Mono, from: SocketAddr, datagram: &Bytes) {
        if let Some(opened) = self.endpoint.open(now, from, datagram) {
            let number = opened.payload.first_chunk().map(|number| u64::from_be_bytes(*number));
            self.received.push((now, number.unwrap()));
        }
        self.settle(now);
    }

    fn handle_timeout(&mut self, now: Mono) {
        self.endpoint.handle_timeout(now);
        while let Some(due) = self.next_payload.filter(|due| *due <= now) {
            self.send(now);
            self.next_payload = Some(due.plus(self.interval));
        }
        self.settle(now);
    }

    fn poll_transmit(&mut self) -> Option<(SocketAddr, Bytes)> {
        self.outbox.pop_front()
    }

    fn poll_timeout(&self) -> Option<Mono> {
        [self.endpoint.poll_timeout(), self.next_payload].into_iter().flatten().min()
    }
}
