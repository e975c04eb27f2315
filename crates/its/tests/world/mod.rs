//! A few stations on a map, in virtual time. All stations in range receive a frame 1 ms after it is sent.

#![allow(dead_code, reason = "no test uses all items")]

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use viaduct_its::{
    Destination, DropReason, Ego, Event, Received, SendRequest, Station, StationSettings,
    access::MacAddress,
    facilities::{Message, MessageKind, cam},
    geonet::{Area, GnAddress, Lifetime, Mib, Shape, TrafficClass},
};
use viaduct_units::{Metres, MetresPerSecond, Mono, Now, Position, StationId, StationType, TimestampIts};

/// Origin of the map.
const ORIGIN: Position = Position::new(48.262_5, 11.667_5);
/// Propagation delay of a frame.
const FLIGHT: Duration = Duration::from_millis(1);

/// Returns the position at a distance east and north of the map's origin.
pub(crate) fn at(east_m: f64, north_m: f64) -> Position {
    const METRES_PER_DEGREE: f64 = 111_195.0;
    let latitude = ORIGIN.latitude.value() + north_m / METRES_PER_DEGREE;
    let longitude = ORIGIN.longitude.value() + east_m / (METRES_PER_DEGREE * ORIGIN.latitude.radians().cos());
    Position::new(latitude, longitude)
}

pub(crate) fn circle(east_m: f64, north_m: f64, radius_m: f64) -> Area {
    Area { centre: at(east_m, north_m), shape: Shape::Circle { radius: Metres(radius_m) } }
}

pub(crate) fn start() -> Now {
    Now { mono: Mono(Duration::from_secs(100)), tai: TimestampIts(650_000_000_000).tai() }
}

pub(crate) fn link_address(number: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, number])
}

pub(crate) fn settings(number: u8) -> StationSettings {
    StationSettings {
        link_address: link_address(number),
        station_type: StationType::PASSENGER_CAR,
        mobile: true,
        beacons: true,
    }
}

/// Returns the address of a station, as created by [`Station::new`].
pub(crate) fn address(number: u8) -> GnAddress {
    GnAddress::new(StationType::PASSENGER_CAR, link_address(number))
}

pub(crate) fn ego(now: Now, position: Position) -> Ego {
    Ego { time: now.tai, position, position_accurate: true, speed: MetresPerSecond(0.0), heading: None }
}

/// Returns a request for a message with a lifetime of one minute.
pub(crate) fn request(destination: Destination) -> SendRequest {
    let input = cam::CamInput { position: Some(ORIGIN), ..cam::CamInput::new(StationId(7), start().tai) };
    let payload = Message::Cam(Box::new(cam::build(&input))).encode().unwrap();
    let lifetime = Lifetime::from_parts(6, 2);
    SendRequest { lifetime, ..SendRequest::to(destination, MessageKind::Cam, Bytes::from(payload)) }
}

/// Returns the same request with store-carry-forward: the packet is buffered while there is no neighbour.
pub(crate) fn carried(destination: Destination) -> SendRequest {
    SendRequest { traffic_class: TrafficClass(0x80), ..request(destination) }
}

pub(crate) struct Node {
    pub(crate) station: Station,
    pub(crate) position: Position,
    pub(crate) received: Vec<Received>,
    pub(crate) dropped: Vec<DropReason>,
}

pub(crate) struct World {
    pub(crate) now: Now,
    pub(crate) nodes: Vec<Node>,
    /// Range of a frame.
    reach: Metres,
    /// Frames by arrival time, number and receiver.
    in_flight: BTreeMap<(Mono, u64, usize), Bytes>,
    /// Sent frames with the index of the sender.
    pub(crate) sent: Vec<(usize, Bytes)>,
}

impl World {
    /// Creates stations 0, 1, 2, ... at those positions.
    pub(crate) fn new(reach_m: f64, mib: Mib, positions: &[Position]) -> Self {
        let now = start();
        let mut world =
            Self { now, nodes: Vec::new(), reach: Metres(reach_m), in_flight: BTreeMap::new(), sent: Vec::new() };
        for position in positions {
            let number = u8::try_from(world.nodes.len()).unwrap();
            world.add(Station::with_mib(settings(number), mib, number.into()), *position);
        }
        world
    }

    pub(crate) fn add(&mut self, mut station: Station, position: Position) {
        station.set_ego(self.now, ego(self.now, position));
        self.nodes.push(Node { station, position, received: Vec::new(), dropped: Vec::new() });
    }

    /// Moves a station.
    pub(crate) fn place(&mut self, index: usize, position: Position) {
        self.nodes[index].position = position;
        self.nodes[index].station.set_ego(self.now, ego(self.now, position));
    }

    /// Advances the time until all stations in range have received each other's beacon.
    pub(crate) fn meet(&mut self) {
        self.run(Duration::from_secs(5));
        self.sent.clear();
    }

    pub(crate) fn send(&mut self, from: usize, request: &SendRequest) {
        self.nodes[from].station.send(self.now, request).unwrap();
        self.drain(from);
    }

    /// Advances the time.
    pub(crate) fn run(&mut self, time: Duration) {
        let end = self.now.plus(time);
        while let Some(next) = self.next_moment().filter(|next| *next <= end.mono) {
            self.now = self.now.plus(next.since(self.now.mono));
            self.step();
        }
        self.now = end;
        for index in 0..self.nodes.len() {
            self.place(index, self.nodes[index].position);
        }
    }

    /// Returns the number of messages that each station has delivered.
    pub(crate) fn deliveries(&self) -> Vec<usize> {
        self.nodes.iter().map(|node| node.received.len()).collect()
    }

    pub(crate) fn count(&self, index: usize, reason: DropReason) -> usize {
        self.nodes[index].dropped.iter().filter(|found| **found == reason).count()
    }

    /// Returns the senders of all frames with that header type and subtype.
    pub(crate) fn senders_of(&self, header_type: u8) -> Vec<usize> {
        self.sent.iter().filter(|(_, frame)| frame[19] == header_type).map(|(from, _)| *from).collect()
    }

    /// Checks the invariants of every station's counters.
    pub(crate) fn check(&self) {
        for node in &self.nodes {
            let counters = node.station.counters();
            let processed = counters.delivered + counters.relayed + counters.beacons + counters.location_service;
            assert_eq!(counters.received, processed + counters.dropped_total());
            let ended = counters.transmitted + counters.suppressed + counters.lost_total();
            assert_eq!(counters.taken, ended + node.station.held_packets() as u64);
        }
    }

    fn next_moment(&self) -> Option<Mono> {
        let timers = self.nodes.iter().filter_map(|node| node.station.poll_timeout());
        timers.chain(self.in_flight.keys().next().map(|key| key.0)).min()
    }

    fn step(&mut self) {
        while let Some(entry) = self.in_flight.first_entry().filter(|entry| entry.key().0 <= self.now.mono) {
            let ((_, _, to), frame) = entry.remove_entry();
            self.nodes[to].station.handle_frame(self.now, &frame);
            self.drain(to);
        }
        for index in 0..self.nodes.len() {
            let position = self.nodes[index].position;
            self.nodes[index].station.set_ego(self.now, ego(self.now, position));
            self.nodes[index].station.handle_timeout(self.now);
            self.drain(index);
        }
        self.check();
    }

    fn drain(&mut self, from: usize) {
        while let Some(event) = self.nodes[from].station.poll_event() {
            match event {
                Event::Received(received) => self.nodes[from].received.push(*received),
                Event::Dropped(reason) => self.nodes[from].dropped.push(reason),
                Event::Relayed | Event::Beacon(_) | Event::LocationService => {}
            }
        }
        while let Some(frame) = self.nodes[from].station.poll_transmit() {
            self.launch(from, Bytes::from(frame));
        }
    }

    fn launch(&mut self, from: usize, frame: Bytes) {
        let number = self.sent.len() as u64;
        let arrival = self.now.mono.plus(FLIGHT);
        for (to, node) in self.nodes.iter().enumerate() {
            let distance = node.position.distance(self.nodes[from].position);
            if to != from && distance.value() <= self.reach.value() {
                self.in_flight.insert((arrival, number, to), frame.clone());
            }
        }
        self.sent.push((from, frame));
    }
}
