//! A simulated town: vehicles with a [`Station`] each, which drive up and down its streets.

use std::time::Duration;

use bytes::Bytes;
use viaduct_its::{
    Destination, Ego, Event, SendError, SendRequest, Station, StationSettings,
    access::{HEADER_OCTETS, MacAddress},
    facilities::{Message, MessageKind, cam},
    geonet::{Area, GnAddress, Lifetime, Mib, Shape},
};
use viaduct_netem::{
    Machine, Probability, World,
    world::{NodeId, Place, Radio, Transmit},
};
use viaduct_units::{Degrees, Metres, MetresPerSecond, Mono, Now, Position, StationId, StationType, TimestampIts};

/// Number of stations.
pub(crate) const STATIONS: usize = 200;
/// Extent from west to east and from south to north.
pub(crate) const EXTENT_M: (f64, f64) = (2000.0, 1500.0);
/// Distance between two streets.
const BLOCK_M: f64 = 250.0;
/// Position of the south-western corner.
const ORIGIN: Position = Position::new(48.26, 11.66);
/// Interval of the vehicles' position updates.
const STEP: Duration = Duration::from_millis(100);
/// Lifetime of a packet.
const LIFETIME: Lifetime = Lifetime::from_parts(1, 2);
/// One vehicle in this number sends one CAM per second; the others send beacons.
const CAMS_OF_ONE_IN: usize = 4;
/// Station identifiers from here on are numbers of counted packets.
const PACKETS_FROM: u32 = 1_000_000;

/// Maximum range of a signal.
pub(crate) const RANGE: Metres = Metres(500.0);

/// Conditions of a town.
#[derive(Clone, Copy)]
pub(crate) struct Conditions {
    /// Distance at which signals begin to fade; all signals have faded at [`RANGE`].
    pub(crate) clear: Metres,
    /// `true` if the vehicles drive.
    pub(crate) driving: bool,
}

impl Conditions {
    /// Realistic conditions: signals fade over half of their range, and vehicles drive.
    pub(crate) const USUAL: Self = Self { clear: Metres(250.0), driving: true };

    /// Returns the radio: one signal in ten is lost at any distance.
    fn radio(self) -> Radio {
        Radio { clear: self.clear, range: RANGE, loss: Probability::new(0.1).unwrap(), ..Radio::default() }
    }
}

/// A message that was delivered to the facilities.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    pub(crate) packet: u32,
    pub(crate) at: Mono,
    pub(crate) hops: u8,
}

/// A vehicle with its station, as a machine of the world.
pub(crate) struct Vehicle {
    station: Station,
    street: Street,
    /// Time of the next CAM, or `None` if it sends none.
    cam_due: Option<Mono>,
    /// Received packets that are counted.
    pub(crate) deliveries: Vec<Delivery>,
    /// Number of sent frames by header type (EN 302 636-4-1, table 8).
    pub(crate) sent: [u64; 8],
}

/// The street of a vehicle.
#[derive(Clone, Copy)]
struct Street {
    /// `true` for a street from west to east, `false` from south to north.
    eastward: bool,
    /// Coordinate on the other axis.
    across_m: f64,
    length_m: f64,
    /// Distance driven at time 0.
    start_m: f64,
    speed_mps: f64,
}

impl Street {
    fn of(number: usize, driving: bool) -> Self {
        let draw = |salt: u64| fraction(number as u64 * 16 + salt);
        let eastward = number.is_multiple_of(2);
        let (length_m, width_m) = if eastward { EXTENT_M } else { (EXTENT_M.1, EXTENT_M.0) };
        let across_m = (draw(1) * (width_m / BLOCK_M + 1.0)).floor() * BLOCK_M;
        let speed_mps = if driving { 5.0 + draw(3) * 9.0 } else { 0.0 };
        Self { eastward, across_m, length_m, start_m: draw(2) * 2.0 * length_m, speed_mps }
    }

    /// Returns the place at a time, and `true` if the vehicle drives back.
    fn place(&self, now: Mono) -> (Place, bool) {
        let way_m = (self.start_m + self.speed_mps * now.0.as_secs_f64()) % (2.0 * self.length_m);
        let back = way_m > self.length_m;
        let along_m = if back { 2.0 * self.length_m - way_m } else { way_m };
        let place = if self.eastward { Place::new(along_m, self.across_m) } else { Place::new(self.across_m, along_m) };
        (place, back)
    }

    fn ego(&self, now: Mono) -> Ego {
        let (place, back) = self.place(now);
        let heading = if self.eastward { 90.0 } else { 0.0 } + if back { 180.0 } else { 0.0 };
        Ego {
            time: at(now).tai,
            position: place.position(ORIGIN),
            position_accurate: true,
            speed: MetresPerSecond(self.speed_mps),
            heading: Some(Degrees(heading)),
        }
    }
}

/// Returns a pseudo-random number from 0 to 1.
fn fraction(seed: u64) -> f64 {
    let mixed = (seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    f64::from(u32::try_from((mixed ^ mixed >> 32) >> 32).unwrap()) / f64::from(u32::MAX)
}

fn at(now: Mono) -> Now {
    Now { mono: Mono::default(), tai: TimestampIts(650_000_000_000).tai() }.plus(now.0)
}

fn link_address(number: usize) -> MacAddress {
    let [high, low] = u16::try_from(number).unwrap().to_be_bytes();
    MacAddress([2, 0, 0, 0, high, low])
}

/// Returns a CAM whose station identifier is the number of a packet.
fn numbered_cam(number: u32, now: Mono) -> Bytes {
    let built = cam::build(&cam::CamInput::new(StationId(number), at(now).tai));
    Bytes::from(Message::Cam(Box::new(built)).encode().unwrap())
}

impl Vehicle {
    fn new(number: usize, mib: Mib, street: Street) -> Self {
        let settings = StationSettings {
            link_address: link_address(number),
            station_type: StationType::PASSENGER_CAR,
            mobile: true,
            beacons: true,
        };
        let first = Mono(Duration::from_secs(1).mul_f64(fraction(number as u64)));
        let mut vehicle = Self {
            station: Station::with_mib(settings, mib, number as u64),
            street,
            cam_due: number.is_multiple_of(CAMS_OF_ONE_IN).then_some(first),
            deliveries: Vec::new(),
            sent: [0; 8],
        };
        vehicle.drive(Mono::default());
        vehicle
    }

    pub(crate) fn station(&self) -> &Station {
        &self.station
    }

    fn drive(&mut self, now: Mono) {
        self.station.set_ego(at(now), self.street.ego(now));
    }

    /// Records the deliveries of the station from `frame`.
    fn take_events(&mut self, now: Mono, frame: &[u8]) {
        while let Some(event) = self.station.poll_event() {
            let Event::Received(received) = event else { continue };
            if received.summary.station_id >= StationId(PACKETS_FROM) {
                let packet = received.summary.station_id.0 - PACKETS_FROM;
                self.deliveries.push(Delivery { packet, at: now, hops: hops(frame) });
            }
        }
    }
}

/// Returns the hops of a packet so far: maximum minus remaining hop limit (fields MHL and RHL), plus one.
fn hops(frame: &[u8]) -> u8 {
    const REMAINING: usize = HEADER_OCTETS + 3;
    const MAXIMUM: usize = HEADER_OCTETS + 4 + 6;
    frame[MAXIMUM] - frame[REMAINING] + 1
}

impl Machine for Vehicle {
    fn handle_frame(&mut self, now: Mono, frame: &Bytes) {
        self.station.handle_frame(at(now), frame);
        self.take_events(now, frame);
    }

    fn handle_timeout(&mut self, now: Mono) {
        if self.cam_due.is_some_and(|due| due <= now) {
            self.cam_due = Some(now.plus(Duration::from_secs(1)));
            self.station.send(at(now), &SendRequest::single_hop(MessageKind::Cam, numbered_cam(1, now))).unwrap();
        }
        self.station.handle_timeout(at(now));
    }

    fn poll_transmit(&mut self) -> Option<Transmit> {
        let frame = Bytes::from(self.station.poll_transmit()?);
        // The header type is the upper half of the common header's second octet, after four octets of the basic
        // header.
        self.sent[usize::from(frame[HEADER_OCTETS + 5] >> 4)] += 1;
        let is_broadcast = frame[..6] == MacAddress::BROADCAST.0;
        let to = usize::from(u16::from_be_bytes([frame[4], frame[5]]));
        Some(Transmit { to: (!is_broadcast).then_some(NodeId(to)), frame })
    }

    fn poll_timeout(&self) -> Option<Mono> {
        [self.cam_due, self.station.poll_timeout()].into_iter().flatten().min()
    }
}

/// The town.
pub(crate) struct Town {
    pub(crate) world: World<Vehicle>,
    packets: u32,
}

impl Town {
    /// Creates a town whose stations have the same protocol constants. The seed determines the radio's losses.
    pub(crate) fn new(conditions: Conditions, mib: Mib, seed: u64) -> Self {
        let mut world = World::new(conditions.radio(), seed).unwrap();
        for number in 0..STATIONS {
            let street = Street::of(number, conditions.driving);
            world.add(street.place(Mono::default()).0, Vehicle::new(number, mib, street)).unwrap();
        }
        Self { world, packets: 0 }
    }

    /// Advances the simulation by a time, in whole steps.
    pub(crate) fn advance(&mut self, time: Duration) {
        let end = self.world.now().plus(time);
        while self.world.now() < end {
            self.world.run_until(self.world.now().plus(STEP));
            let now = self.world.now();
            for number in 0..STATIONS {
                let place = self.place(number, now);
                self.world.move_to(NodeId(number), place);
                self.world.with_machine(NodeId(number), Vehicle::drive).unwrap();
            }
        }
    }

    /// Returns the place of a vehicle at a time.
    pub(crate) fn place(&self, number: usize, when: Mono) -> Place {
        self.vehicle(number).street.place(when).0
    }

    /// Sends a message from a vehicle. Returns the packet's number.
    pub(crate) fn send(&mut self, by: usize, destination: Destination) -> Result<u32, SendError> {
        let number = self.packets;
        self.packets += 1;
        let sent = self.world.with_machine(NodeId(by), |vehicle, now| {
            let payload = numbered_cam(PACKETS_FROM + number, now);
            let request = SendRequest { lifetime: LIFETIME, ..SendRequest::to(destination, MessageKind::Cam, payload) };
            vehicle.station.send(at(now), &request)
        });
        sent.unwrap().map(|()| number)
    }

    pub(crate) fn vehicle(&self, number: usize) -> &Vehicle {
        self.vehicles().nth(number).unwrap()
    }

    pub(crate) fn address(&self, number: usize) -> GnAddress {
        self.vehicle(number).station.address()
    }

    pub(crate) fn vehicles(&self) -> impl Iterator<Item = &Vehicle> {
        self.world.nodes().map(|(_, _, vehicle)| vehicle)
    }

    /// Returns the number of frames of one header type that all stations have sent.
    pub(crate) fn sent(&self, header_type: usize) -> u64 {
        self.vehicles().map(|vehicle| vehicle.sent[header_type]).sum()
    }

    /// Returns the number of link-layer retransmissions of unicast frames.
    pub(crate) fn repeated(&self) -> u64 {
        let frames: u64 = self.vehicles().flat_map(|vehicle| vehicle.sent).sum();
        self.world.counters().transmissions.saturating_sub(frames)
    }
}

/// Returns a circle around a place.
pub(crate) fn circle(centre: Place, radius_m: f64) -> Area {
    Area { centre: centre.position(ORIGIN), shape: Shape::Circle { radius: Metres(radius_m) } }
}
