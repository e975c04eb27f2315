//! Stations on a plane that communicate by radio, in virtual time.
//!
//! The model includes:
//! - One channel. A frame takes its air time and the propagation time of light. It becomes a signal at each station in
//!   range.
//! - Fading. A signal is received with a probability that decreases with the distance ([`Radio`]), drawn independently
//!   per signal.
//! - Listen before talk (EN 302 663, IEEE 802.11 outside a context). A station waits until the channel is free, then
//!   for AIFS and a random number of slots. The number is drawn again each time the channel was busy, not frozen.
//! - Collisions. Two overlapping signals are both lost at a station, unless one comes from much nearer (capture).
//!   Hidden stations collide as in reality. A station receives nothing while it sends.
//! - Retransmission. A frame to one station is repeated until it arrives or its attempts are used up. Acknowledgements
//!   take time, always arrive, and are not received by other stations.
//!
//! The model excludes obstacles, lasting shadowing, signals from beyond the range (they neither arrive nor interfere),
//! several priorities in one radio, and other channels.

mod air;
mod counters;
mod grid;
mod mac;
mod machine;
mod place;
mod radio;
mod schedule;

use std::time::Duration;

use viaduct_units::{Mono, Rng};

use crate::limits::NODES_MAX;
use air::{Air, Fate, Signal};
use grid::Grid;
use mac::Mac;
use schedule::{Event, Key, Reception, Schedule};

pub use counters::{LossReason, WorldCounters};
pub use machine::{Machine, NodeId, Transmit};
pub use place::Place;
pub use radio::{Radio, RadioError};

/// A simulated world of stations.
///
/// [`World::run_until`] advances the time; [`World::with_machine`] passes a command to a station between two runs.
#[derive(Debug)]
pub struct World<M> {
    radio: Radio,
    nodes: Vec<Node<M>>,
    grid: Grid,
    schedule: Schedule,
    now: Mono,
    random: Rng,
    counters: WorldCounters,
}

/// A station in the world.
#[derive(Debug)]
struct Node<M> {
    machine: M,
    place: Place,
    mac: Mac,
    air: Air,
    /// The machine's deadline in the schedule.
    deadline: Option<Key>,
}

/// The world already holds [`NODES_MAX`] stations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a world holds {NODES_MAX} stations")]
pub struct WorldFull;

impl<M: Machine> World<M> {
    /// Returns an empty world at time zero. The seed determines losses and backoff times.
    ///
    /// # Errors
    /// Returns the invalid setting of the radio.
    pub fn new(radio: Radio, seed: u64) -> Result<Self, RadioError> {
        radio.check()?;
        Ok(Self {
            grid: Grid::new(radio.range),
            radio,
            nodes: Vec::new(),
            schedule: Schedule::default(),
            now: Mono::default(),
            random: Rng::new(seed),
            counters: WorldCounters::default(),
        })
    }

    /// Adds a station. Returns its number, counted from 0.
    ///
    /// # Errors
    /// Returns an error if the world is full.
    pub fn add(&mut self, place: Place, machine: M) -> Result<NodeId, WorldFull> {
        if self.nodes.len() >= NODES_MAX {
            return Err(WorldFull);
        }
        let id = NodeId(self.nodes.len());
        self.nodes.push(Node { machine, place, mac: Mac::default(), air: Air::default(), deadline: None });
        self.grid.insert(id, place);
        self.settle(id, self.now);
        Ok(id)
    }

    /// Returns the current time of the world.
    #[must_use]
    pub const fn now(&self) -> Mono {
        self.now
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> &WorldCounters {
        &self.counters
    }

    /// Returns the stations in the order of their numbers.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, Place, &M)> {
        self.nodes.iter().enumerate().map(|(index, node)| (NodeId(index), node.place, &node.machine))
    }

    /// Runs a command on a station, and takes the frames that it sends. Returns the command's result, or `None` if
    /// there is no such station.
    pub fn with_machine<R>(&mut self, id: NodeId, command: impl FnOnce(&mut M, Mono) -> R) -> Option<R> {
        let now = self.now;
        let result = self.nodes.get_mut(id.0).map(|node| command(&mut node.machine, now));
        self.settle(id, now);
        result
    }

    /// Moves a station at once. Signals on air to it or from it do not change.
    pub fn move_to(&mut self, id: NodeId, place: Place) {
        if let Some(node) = self.nodes.get_mut(id.0) {
            self.grid.remove(id, node.place);
            self.grid.insert(id, place);
            node.place = place;
        }
    }

    /// Returns the total time for which the channel has been busy at a station, by its own and others' signals, since
    /// it was added.
    #[must_use]
    pub fn channel_busy(&self, id: NodeId) -> Duration {
        self.nodes.get(id.0).map(|node| node.air.busy()).unwrap_or_default()
    }

    /// Processes all events up to and including the given time.
    pub fn run_until(&mut self, end: Mono) {
        while let Some((time, event)) = self.schedule.pop_until(end) {
            self.now = self.now.max(time);
            match event {
                Event::Deadline(id) => self.deadline(id),
                Event::Access(id) => self.access(id),
                Event::Sent(id) => self.sent(id),
                Event::Received(reception) => self.received(&reception),
            }
        }
        self.now = self.now.max(end);
    }

    fn deadline(&mut self, id: NodeId) {
        let now = self.now;
        let Some(node) = self.nodes.get_mut(id.0) else { return };
        node.deadline = None;
        node.machine.handle_timeout(now);
        // A deadline that the machine did not process is repeated, but not forever at the same time.
        self.settle(id, now.plus(schedule::TICK));
    }

    /// Takes the frames of a machine, and schedules its deadline, not before `earliest`.
    fn settle(&mut self, id: NodeId, earliest: Mono) {
        let Some(node) = self.nodes.get_mut(id.0) else { return };
        while let Some(transmit) = node.machine.poll_transmit() {
            if let Err(reason) = node.mac.enqueue(transmit) {
                self.counters.count_loss(reason);
            }
        }
        let due = node.machine.poll_timeout().map(|due| due.max(earliest));
        if node.deadline.map(|key| key.time) != due {
            if let Some(key) = node.deadline {
                self.schedule.remove(key);
            }
            node.deadline = due.map(|due| self.schedule.push(due, Event::Deadline(id)));
        }
        if node.mac.wants_to_contend() {
            self.contend(id, self.now);
        }
    }

    /// Schedules the station's access to the channel, which is free from the given time on.
    fn contend(&mut self, id: NodeId, free_from: Mono) {
        let wait = radio::draw_backoff(&mut self.random);
        self.schedule.push(free_from.plus(wait), Event::Access(id));
    }

    /// Ends the wait of a station: it sends, unless the channel has become busy.
    fn access(&mut self, id: NodeId) {
        let Some(node) = self.nodes.get_mut(id.0) else { return };
        match node.air.busy_until(self.now) {
            Some(free_from) => self.contend(id, free_from),
            None => self.transmit(id),
        }
    }

    fn transmit(&mut self, id: NodeId) {
        let Some(node) = self.nodes.get_mut(id.0) else { return };
        let Some(transmit) = node.mac.begin() else { return };
        let place = node.place;
        let airtime = self.radio.airtime(transmit.frame.len());
        node.air.transmit(self.now, self.now.plus(airtime));
        self.counters.transmissions += 1;
        self.counters.transmitted_octets += transmit.frame.len() as u64;
        self.counters.airtime += airtime;
        for receiver in self.grid.near(place) {
            if receiver != id {
                self.radiate(id, place, receiver, &transmit, airtime);
            }
        }
        let acknowledged = if transmit.to.is_some() { radio::ACKNOWLEDGEMENT } else { Duration::ZERO };
        self.schedule.push(self.now.plus(airtime + acknowledged), Event::Sent(id));
    }

    /// Starts the signal of a frame at one station.
    fn radiate(&mut self, from: NodeId, place: Place, to: NodeId, transmit: &Transmit, airtime: Duration) {
        let Some(node) = self.nodes.get_mut(to.0) else { return };
        let distance = place.distance(node.place);
        if distance.value() > self.radio.range.value() {
            return;
        }
        self.counters.signals += 1;
        let begins = self.now.plus(radio::propagation(distance));
        let fate = self.radio.draw_fate(distance, &mut self.random);
        let signal = Signal { begins, ends: begins.plus(airtime), distance, fate };
        let Some(number) = node.air.arrive(self.now, signal, self.radio.capture) else {
            return self.counters.count_loss(LossReason::AirFull);
        };
        if transmit.to.is_some_and(|addressee| addressee != to) {
            self.counters.not_addressed += 1;
            return;
        }
        let acknowledges = transmit.to.is_some();
        let reception = Reception { from, to, signal: number, acknowledges, frame: transmit.frame.clone() };
        if !self.schedule.push_if_room(signal.ends, Event::Received(reception)) {
            self.counters.count_loss(LossReason::ScheduleFull);
        }
    }

    /// Ends a signal at a station.
    fn received(&mut self, reception: &Reception) {
        let Some(node) = self.nodes.get_mut(reception.to.0) else { return };
        if let Fate::Lost(reason) = node.air.depart(reception.signal) {
            return self.counters.count_loss(reason);
        }
        self.counters.receptions += 1;
        node.machine.handle_frame(self.now, &reception.frame);
        if reception.acknowledges
            && let Some(sender) = self.nodes.get_mut(reception.from.0)
        {
            sender.mac.acknowledge();
        }
        self.settle(reception.to, self.now);
    }

    /// Ends a transmission, including the time for an acknowledgement.
    fn sent(&mut self, id: NodeId) {
        let Some(node) = self.nodes.get_mut(id.0) else { return };
        if !node.mac.end() {
            self.counters.count_loss(LossReason::NotAcknowledged);
        }
        if node.mac.wants_to_contend() {
            self.contend(id, self.now);
        }
    }
}
