//! A vehicle and a desk over emulated links, in virtual time.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "shared by several tests")]

use std::{net::SocketAddr, time::Duration};

use bytes::Bytes;
use viaduct_netem::{DatagramMachine, LinkSettings, Pair, PairSettings, link::overhead};
use viaduct_teleop::{
    Desk, DeskEvent, DeskSettings, Vehicle, VehicleEvent, VehicleSettings,
    commands::{Command, Gear},
    driving::{Actuation, ClaimKind, DrivingState, OperatorId},
    frames::{ReceiverEvent, SenderSettings, StreamSettings},
    pacing::PacingSettings,
    wire::StreamId,
};
use viaduct_units::{MetresPerSecond, Mono};

const MS: Duration = Duration::from_millis(1);
/// Time of the desk's clock at the start.
pub const DESK_CLOCK: Mono = Mono(Duration::from_secs(54_321));

pub struct VehicleEnd {
    pub vehicle: Vehicle,
    pub events: Vec<VehicleEvent>,
    /// Time of arrival of each accepted command, and its largest possible age.
    pub command_ages: Vec<(Mono, Duration)>,
    peer: SocketAddr,
}

pub struct DeskEnd {
    pub desk: Desk,
    pub events: Vec<(Mono, DeskEvent)>,
    pub arrived: usize,
    pub lost: usize,
    /// Datagrams that were sent, if they are recorded.
    pub recording: Option<Vec<Bytes>>,
    peer: SocketAddr,
}

impl DatagramMachine for VehicleEnd {
    fn handle_datagram(&mut self, now: Mono, _: SocketAddr, datagram: &Bytes) {
        let before = self.vehicle.driving().command().map(|command| command.sequence);
        self.vehicle.handle_datagram(now, datagram);
        let command = self.vehicle.driving().command();
        if let Some(command) = command.filter(|command| Some(command.sequence) != before) {
            self.command_ages.push((now, command.age.at_most()));
        }
        self.drain();
    }

    fn handle_timeout(&mut self, now: Mono) {
        self.vehicle.handle_timeout(now);
        self.drain();
    }

    fn poll_transmit(&mut self) -> Option<(SocketAddr, Bytes)> {
        self.vehicle.poll_transmit().map(|datagram| (self.peer, datagram))
    }

    fn poll_timeout(&self) -> Option<Mono> {
        self.vehicle.poll_timeout()
    }
}

impl VehicleEnd {
    pub fn drain(&mut self) {
        self.events.extend(std::iter::from_fn(|| self.vehicle.poll_event()));
    }
}

impl DatagramMachine for DeskEnd {
    fn handle_datagram(&mut self, now: Mono, _: SocketAddr, datagram: &Bytes) {
        self.desk.handle_datagram(now, datagram);
        self.drain(now);
    }

    fn handle_timeout(&mut self, now: Mono) {
        self.desk.handle_timeout(now);
        self.drain(now);
    }

    fn poll_transmit(&mut self) -> Option<(SocketAddr, Bytes)> {
        let datagram = self.desk.poll_transmit()?;
        if let Some(recording) = &mut self.recording {
            recording.push(datagram.clone());
        }
        Some((self.peer, datagram))
    }

    fn poll_timeout(&self) -> Option<Mono> {
        self.desk.poll_timeout()
    }
}

impl DeskEnd {
    pub fn drain(&mut self, now: Mono) {
        while let Some(event) = self.desk.poll_event() {
            match event {
                DeskEvent::Frames(ReceiverEvent::Arrived(_)) => self.arrived += 1,
                DeskEvent::Frames(ReceiverEvent::Lost(_)) => self.lost += 1,
                other => self.events.push((now, other)),
            }
        }
    }
}

pub fn operator(number: u64) -> OperatorId {
    OperatorId::new(number).unwrap()
}

/// A drive: a vehicle with cameras, a desk, and the motion of the vehicle.
pub struct Drive {
    pub pair: Pair<VehicleEnd, DeskEnd>,
    pub cameras: u8,
    pub frame_octets: usize,
    pub speed: f64,
    pub actuation: Option<Actuation>,
    /// Input of the driver, or `None` if no input is made.
    pub input: Option<Command>,
    pub driver: OperatorId,
    tick: u32,
}

/// The driver accelerates gently with the dead-man control held.
pub const CRUISE: Command =
    Command { steering: 0.1, accelerator: 0.5, brake: 0.0, gear: Gear::Drive, dead_man: true, emergency_stop: false };

impl Drive {
    pub fn new(link: LinkSettings, cameras: u8, frame_octets: usize, seed: u64) -> Self {
        let streams =
            (0..cameras).map(|id| StreamSettings { id: StreamId(id), priority: id, ..StreamSettings::default() });
        let frames = SenderSettings {
            streams: streams.collect(),
            pacing: PacingSettings { initial_bits_per_second: 5_000_000, ..PacingSettings::default() },
            ..SenderSettings::default()
        };
        let settings = PairSettings {
            header_octets: overhead::IPV4_UDP + 24,
            clock_a: Mono(Duration::from_secs(7)),
            clock_b: DESK_CLOCK,
            seed,
            ..PairSettings::symmetric(link)
        };
        let vehicle = VehicleEnd {
            vehicle: Vehicle::new(VehicleSettings { frames, ..VehicleSettings::default() }, 11).unwrap(),
            events: Vec::new(),
            command_ages: Vec::new(),
            peer: settings.address_b,
        };
        let desk = DeskEnd {
            desk: Desk::new(DeskSettings::default(), 22).unwrap(),
            events: Vec::new(),
            arrived: 0,
            lost: 0,
            recording: None,
            peer: settings.address_a,
        };
        let pair = Pair::new(settings, vehicle, desk).unwrap();
        Self { pair, cameras, frame_octets, speed: 0.0, actuation: None, input: None, driver: operator(1), tick: 0 }
    }

    /// Runs the drive. Every 10 ms the driver makes an input and the vehicle moves; every 100 ms the cameras take pictures.
    pub fn run(&mut self, duration: Duration) {
        let end = self.pair.now().plus(duration);
        while self.pair.now() < end {
            if self.tick.is_multiple_of(10) {
                self.take_pictures();
            }
            self.tick += 1;
            if let Some(input) = self.input {
                let driver = self.driver;
                self.pair.with_b(|end, now| end.desk.set_input(now, driver, now, input));
            }
            self.move_vehicle();
            self.pair.run_for(10 * MS);
        }
    }

    fn take_pictures(&mut self) {
        for camera in 0..self.cameras {
            let frame = Bytes::from(vec![camera; self.frame_octets]);
            self.pair.with_a(|end, now| end.vehicle.push_frame(now, StreamId(camera), frame).unwrap());
        }
    }

    /// Moves the vehicle for 10 ms.
    fn move_vehicle(&mut self) {
        let speed = self.speed;
        let actuation = self.pair.with_a(|end, now| {
            end.vehicle.set_speed(now, MetresPerSecond(speed));
            end.drain();
            end.vehicle.actuation(now)
        });
        self.speed = (self.speed + 0.01 * actuation.acceleration.value()).max(0.0);
        self.actuation = Some(actuation);
    }

    pub fn claim(&mut self, kind: ClaimKind, operator: OperatorId) {
        self.pair.with_b(|end, now| end.desk.claim(now, kind, operator).unwrap());
    }

    pub fn state(&self) -> DrivingState {
        self.pair.a().vehicle.state()
    }

    /// Lets the clocks synchronise, gives control to the driver, and drives for two seconds.
    pub fn start(&mut self) {
        self.run(500 * MS);
        self.claim(ClaimKind::Request, self.driver);
        self.run(300 * MS);
        self.input = Some(CRUISE);
        self.run(2000 * MS);
        assert_eq!(self.state(), DrivingState::Driving);
        assert!(self.speed > 1.0, "{}", self.speed);
    }

    /// Replaces both links.
    pub fn set_link(&mut self, link: &LinkSettings) {
        self.pair.set_a_to_b(link.clone()).unwrap();
        self.pair.set_b_to_a(link.clone()).unwrap();
    }
}
