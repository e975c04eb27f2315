//! Two datagram machines with addresses, connected by two links, in virtual time.
//!
//! ```text
//!             poll_transmit -> headers -> Link a_to_b -> handle_datagram
//! machine a                                                              machine b
//!             handle_datagram <- Link b_to_a <- headers <- poll_transmit
//! ```
//!
//! A test acts with [`Pair::with_a`] and [`Pair::with_b`] and advances the time with [`Pair::run_until`] or, event by event,
//! with [`Pair::step`]. Time does not pass between events, so ten minutes of a quiet protocol take no longer than its
//! datagrams.
//!
//! Events of the same time are processed in this order: arrivals at `b`, arrivals at `a`, the deadline of `a`, the
//! deadline of `b`. The same seed and the same actions give the same run.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use bytes::Bytes;
use viaduct_units::{Mono, Rng};

use crate::{
    Duplex, Link, LinkSettings,
    limits::TRANSMITS_PER_INPUT_MAX,
    link::{LinkCounters, LinkSettingsError, overhead},
};

/// A machine that exchanges datagrams with peers.
///
/// After each input and each command, [`Pair`] takes all datagrams and reads the deadline. A machine that needs atomic
/// time beside [`Mono`] is wrapped in one that adds a constant.
pub trait DatagramMachine {
    /// Processes a received datagram.
    fn handle_datagram(&mut self, now: Mono, from: SocketAddr, datagram: &Bytes);

    /// Does the work that is due. Does nothing before the deadline of [`Self::poll_timeout`].
    fn handle_timeout(&mut self, now: Mono);

    /// Returns the receiver and the payload of the next datagram to send, or `None`.
    fn poll_transmit(&mut self) -> Option<(SocketAddr, Bytes)>;

    /// Returns the time at which [`Self::handle_timeout`] must be called, or `None`.
    fn poll_timeout(&self) -> Option<Mono>;
}

/// Settings of a pair. The default is two perfect links.
#[derive(Clone, Debug, PartialEq)]
pub struct PairSettings {
    /// Link from `a` to `b`.
    pub a_to_b: LinkSettings,
    /// Link from `b` to `a`.
    pub b_to_a: LinkSettings,
    /// Address of `a`.
    pub address_a: SocketAddr,
    /// Address of `b`.
    pub address_b: SocketAddr,
    /// Octets of the headers of each datagram, which count for rates. The default is [`overhead::IPV4_UDP`].
    ///
    /// What the link adds to a packet is a setting of the link, [`LinkSettings::overhead_octets`].
    pub header_octets: u16,
    /// Time of `a`'s clock at the start. Clocks of two real machines have different origins.
    pub clock_a: Mono,
    /// Time of `b`'s clock at the start.
    pub clock_b: Mono,
    /// Seed of both links.
    pub seed: u64,
}

impl Default for PairSettings {
    fn default() -> Self {
        Self {
            a_to_b: LinkSettings::default(),
            b_to_a: LinkSettings::default(),
            address_a: SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1), 4000)),
            address_b: SocketAddr::from((Ipv4Addr::new(192, 0, 2, 2), 4000)),
            header_octets: overhead::IPV4_UDP,
            clock_a: Mono::default(),
            clock_b: Mono::default(),
            seed: 1,
        }
    }
}

impl PairSettings {
    /// Returns the settings of a pair with the same link in both directions.
    #[must_use]
    pub fn symmetric(link: LinkSettings) -> Self {
        Duplex::symmetric(link).into()
    }
}

impl From<Duplex<LinkSettings>> for PairSettings {
    /// Returns the settings of a pair with these links, for example those of a [`crate::Profile`].
    fn from(links: Duplex<LinkSettings>) -> Self {
        Self { a_to_b: links.a_to_b, b_to_a: links.b_to_a, ..Self::default() }
    }
}

/// Octets and datagrams that one machine has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentCounters {
    /// Datagrams that entered the link.
    pub datagrams: u64,
    /// Octets of the payloads of these datagrams.
    pub payload_octets: u64,
    /// Octets of these datagrams with their headers and the overhead of the link.
    pub wire_octets: u64,
    /// Datagrams to an address other than the peer's. They are dropped before the link.
    pub misaddressed: u64,
}

/// Two machines and the links between them.
#[derive(Debug)]
pub struct Pair<A, B = A> {
    a: End<A>,
    b: End<B>,
    a_to_b: Link,
    b_to_a: Link,
    header_octets: u16,
    now: Mono,
}

/// One machine, its address and its clock.
#[derive(Debug)]
struct End<M> {
    machine: M,
    address: SocketAddr,
    /// Difference of the machine's clock from the time of the pair.
    clock: Mono,
    /// Time of the pair at which the machine's deadline is due.
    due: Option<Mono>,
    sent: SentCounters,
}

/// The kinds of events, in the order in which events of the same time are processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    ArrivalAtB,
    ArrivalAtA,
    DeadlineOfA,
    DeadlineOfB,
}

/// Shortest time between two calls for the same deadline.
const TICK: Duration = Duration::from_micros(1);

impl<A: DatagramMachine, B: DatagramMachine> Pair<A, B> {
    /// Returns a pair at time zero. Takes the datagrams that the machines already have.
    ///
    /// # Errors
    /// The invalid setting of a link.
    pub fn new(settings: PairSettings, a: A, b: B) -> Result<Self, LinkSettingsError> {
        let mut random = Rng::new(settings.seed);
        let mut pair = Self {
            a: End::new(a, settings.address_a, settings.clock_a),
            b: End::new(b, settings.address_b, settings.clock_b),
            a_to_b: Link::new(settings.a_to_b, random.next_u64())?,
            b_to_a: Link::new(settings.b_to_a, random.next_u64())?,
            header_octets: settings.header_octets,
            now: Mono::default(),
        };
        pair.settle_a(pair.now);
        pair.settle_b(pair.now);
        Ok(pair)
    }

    /// Returns the current time of the pair.
    #[must_use]
    pub const fn now(&self) -> Mono {
        self.now
    }

    /// Returns machine `a`.
    #[must_use]
    pub const fn a(&self) -> &A {
        &self.a.machine
    }

    /// Returns machine `b`.
    #[must_use]
    pub const fn b(&self) -> &B {
        &self.b.machine
    }

    /// Returns the address of `a`.
    #[must_use]
    pub const fn address_a(&self) -> SocketAddr {
        self.a.address
    }

    /// Returns the address of `b`.
    #[must_use]
    pub const fn address_b(&self) -> SocketAddr {
        self.b.address
    }

    /// Returns the counters of the datagrams that `a` has sent.
    #[must_use]
    pub const fn sent_by_a(&self) -> &SentCounters {
        &self.a.sent
    }

    /// Returns the counters of the datagrams that `b` has sent.
    #[must_use]
    pub const fn sent_by_b(&self) -> &SentCounters {
        &self.b.sent
    }

    /// Returns the counters of the link from `a` to `b`.
    #[must_use]
    pub const fn a_to_b(&self) -> &LinkCounters {
        self.a_to_b.counters()
    }

    /// Returns the counters of the link from `b` to `a`.
    #[must_use]
    pub const fn b_to_a(&self) -> &LinkCounters {
        self.b_to_a.counters()
    }

    /// Returns the octets in the queue from `a` to `b`.
    #[must_use]
    pub fn queued_a_to_b(&self) -> usize {
        self.a_to_b.queued_octets(self.now)
    }

    /// Returns the octets in the queue from `b` to `a`.
    #[must_use]
    pub fn queued_b_to_a(&self) -> usize {
        self.b_to_a.queued_octets(self.now)
    }

    /// Changes the link from `a` to `b` ([`Link::set_settings`]).
    ///
    /// # Errors
    /// The invalid setting.
    pub fn set_a_to_b(&mut self, settings: LinkSettings) -> Result<(), LinkSettingsError> {
        self.a_to_b.set_settings(self.now, settings)
    }

    /// Changes the link from `b` to `a` ([`Link::set_settings`]).
    ///
    /// # Errors
    /// The invalid setting.
    pub fn set_b_to_a(&mut self, settings: LinkSettings) -> Result<(), LinkSettingsError> {
        self.b_to_a.set_settings(self.now, settings)
    }

    /// Runs a command on `a` with the time of its clock, and takes the datagrams that `a` sends. Returns the command's
    /// result.
    pub fn with_a<R>(&mut self, command: impl FnOnce(&mut A, Mono) -> R) -> R {
        let now = self.a.local(self.now);
        let result = command(&mut self.a.machine, now);
        self.settle_a(self.now);
        result
    }

    /// Runs a command on `b` with the time of its clock, and takes the datagrams that `b` sends. Returns the command's
    /// result.
    pub fn with_b<R>(&mut self, command: impl FnOnce(&mut B, Mono) -> R) -> R {
        let now = self.b.local(self.now);
        let result = command(&mut self.b.machine, now);
        self.settle_b(self.now);
        result
    }

    /// Delivers a datagram to `a` at once and without a link: one that is forged, replayed or from another peer.
    pub fn inject_to_a(&mut self, from: SocketAddr, datagram: &Bytes) {
        self.with_a(|machine, now| machine.handle_datagram(now, from, datagram));
    }

    /// Delivers a datagram to `b` at once and without a link: one that is forged, replayed or from another peer.
    pub fn inject_to_b(&mut self, from: SocketAddr, datagram: &Bytes) {
        self.with_b(|machine, now| machine.handle_datagram(now, from, datagram));
    }

    /// Processes all events up to and including the given time.
    pub fn run_until(&mut self, end: Mono) {
        while self.step(end).is_some() {}
        self.now = self.now.max(end);
    }

    /// Processes all events of the given duration from now on.
    pub fn run_for(&mut self, duration: Duration) {
        self.run_until(self.now.plus(duration));
    }

    /// Processes the next event: the arrival of at most one datagram, or one deadline. Returns its time, or `None` if there is no event up to and
    /// including the given time.
    pub fn step(&mut self, end: Mono) -> Option<Mono> {
        let (time, event) = self.next_event().filter(|(time, _)| *time <= end)?;
        self.now = self.now.max(time);
        match event {
            Event::ArrivalAtB => self.deliver_to_b(),
            Event::ArrivalAtA => self.deliver_to_a(),
            Event::DeadlineOfA => {
                self.a.handle_timeout(self.now);
                self.settle_a(self.now.plus(TICK));
            }
            Event::DeadlineOfB => {
                self.b.handle_timeout(self.now);
                self.settle_b(self.now.plus(TICK));
            }
        }
        Some(self.now)
    }

    /// Returns the time of the next event, or `None` if nothing will happen without a command.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Mono> {
        self.next_event().map(|(time, _)| time)
    }

    fn next_event(&self) -> Option<(Mono, Event)> {
        let of = |time: Option<Mono>, event| time.map(|time| (time, event));
        [
            of(self.a_to_b.poll_timeout(), Event::ArrivalAtB),
            of(self.b_to_a.poll_timeout(), Event::ArrivalAtA),
            of(self.a.due, Event::DeadlineOfA),
            of(self.b.due, Event::DeadlineOfB),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn deliver_to_a(&mut self) {
        let Some(datagram) = self.b_to_a.poll_deliver(self.now) else { return };
        self.a.handle_datagram(self.now, self.b.address, &datagram);
        self.settle_a(self.now);
    }

    fn deliver_to_b(&mut self) {
        let Some(datagram) = self.a_to_b.poll_deliver(self.now) else { return };
        self.b.handle_datagram(self.now, self.a.address, &datagram);
        self.settle_b(self.now);
    }

    fn settle_a(&mut self, earliest: Mono) {
        self.a.settle(self.now, earliest, &mut self.a_to_b, self.b.address, self.header_octets);
    }

    fn settle_b(&mut self, earliest: Mono) {
        self.b.settle(self.now, earliest, &mut self.b_to_a, self.a.address, self.header_octets);
    }
}

impl<M: DatagramMachine> End<M> {
    fn new(machine: M, address: SocketAddr, clock: Mono) -> Self {
        Self { machine, address, clock, due: None, sent: SentCounters::default() }
    }

    /// Returns the time of the machine's clock at a time of the pair.
    fn local(&self, now: Mono) -> Mono {
        now.plus(self.clock.0)
    }

    fn handle_datagram(&mut self, now: Mono, from: SocketAddr, datagram: &Bytes) {
        let now = self.local(now);
        self.machine.handle_datagram(now, from, datagram);
    }

    fn handle_timeout(&mut self, now: Mono) {
        let now = self.local(now);
        self.machine.handle_timeout(now);
    }

    /// Takes the datagrams of the machine, and reads its deadline, which is due at `earliest` or later.
    ///
    /// A machine that does not process its deadline, or always has one more datagram, is called again after a [`TICK`]:
    /// the time advances even then.
    fn settle(&mut self, now: Mono, earliest: Mono, link: &mut Link, peer: SocketAddr, header_octets: u16) {
        for _ in 0..TRANSMITS_PER_INPUT_MAX {
            let Some((to, datagram)) = self.machine.poll_transmit() else {
                self.due = self.machine.poll_timeout().map(|due| Mono(due.since(self.clock)).max(earliest));
                return;
            };
            self.send(now, to, datagram, link, peer, header_octets);
        }
        self.due = Some(now.plus(TICK));
    }

    fn send(&mut self, now: Mono, to: SocketAddr, datagram: Bytes, link: &mut Link, peer: SocketAddr, headers: u16) {
        if to != peer {
            self.sent.misaddressed += 1;
            return;
        }
        self.sent.datagrams += 1;
        self.sent.payload_octets += datagram.len() as u64;
        self.sent.wire_octets += link.wire_octets(datagram.len(), headers) as u64;
        link.handle_payload(now, datagram, headers);
    }
}
