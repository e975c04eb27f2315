//! Kind `fleet`: simulated vehicles that drive on a road network and send CAMs, each through a separate station.
//!
//! The fleet gives a node input without a radio. Its frames are those of real vehicles: UPER in BTP and GeoNetworking headers in
//! Ethernet frames, sent by UDP multicast.

mod awareness;
mod vehicle;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Deserialize;
use socket2::Socket;
use viaduct_bus::{Counter, clock};
use viaduct_etsi::cam_ts103900_v231 as cam;
use viaduct_its::facilities::MessageKind;
use viaduct_its::facilities::cam::{CamInput, build};
use viaduct_its::{Ego, SendRequest, Station, StationSettings};
use viaduct_node::{CallbackContext, Component, Context, Edges, SettingError, StartError};
use viaduct_units::{Metres, Mono, Now, Rng, StationId, StationType};

use crate::motion::road::RoadNetwork;
use crate::net::UdpMulticastSettings;
use crate::net::udp::{interface_address, sending_socket};
use awareness::Awareness;
pub use awareness::CamGeneration;
use vehicle::Vehicle;

/// Simulated vehicles that send CAMs.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FleetSettings {
    /// Number of vehicles, 1 to 2000.
    #[serde(default = "default_vehicles")]
    #[schemars(range(min = 1, max = 2000))]
    pub vehicles: u32,
    /// Rule that triggers CAMs.
    #[serde(default)]
    pub cam: CamGeneration,
    /// CAMs per second and vehicle with `cam: fixed`, 0.1 to 50. The standard allows 1 to 10. Absent: 10. With `cam: rules`, the rate
    /// follows from the movement.
    #[serde(default)]
    #[schemars(range(min = 0.1, max = 50.0))]
    pub rate_hz: Option<f64>,
    /// Station ID of the first vehicle. The other vehicles have the following IDs.
    #[serde(default = "default_first_station")]
    pub first_station_id: u32,
    /// Seed of the start positions and the turns of the vehicles.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// Road network: a GeoJSON file of LineStrings that meet at their ends, with `name` and `speed_limit_mps`. Absent: a small
    /// built-in town.
    #[serde(default)]
    pub roads: Option<PathBuf>,
    /// Destination of the frames.
    #[serde(default)]
    pub udp_multicast: UdpMulticastSettings,
}

const fn default_vehicles() -> u32 {
    50
}

/// Default number of CAMs per second and vehicle.
const RATE_HZ: f64 = 10.0;

const fn default_first_station() -> u32 {
    1001
}

const fn default_seed() -> u64 {
    1
}

impl FleetSettings {
    fn check_rate(&self) -> Result<(), SettingError> {
        let wrong = |problem: String| Err(SettingError::new("rate_hz", problem));
        match self.rate_hz {
            Some(rate) if !(0.1..=50.0).contains(&rate) => wrong(format!("{rate} is not within 0.1 to 50")),
            Some(_) if self.cam == CamGeneration::Rules => {
                wrong("not allowed with `cam: rules`, where the rate follows from the movement".to_owned())
            }
            _ => Ok(()),
        }
    }
}

/// The vehicles with their socket.
pub struct Fleet {
    vehicles: Vec<OnBoardUnit>,
    period: Duration,
    socket: Socket,
    group: SocketAddr,
    counts: Counts,
}

/// A vehicle and its station.
struct OnBoardUnit {
    station_id: StationId,
    vehicle: Vehicle,
    station: Station,
    /// Time of the next CAM.
    due: Mono,
    moved: Mono,
    awareness: Awareness,
}

/// Sent = generated - refused - not sent.
struct Counts {
    generated: Counter,
    sent: Counter,
    skipped: Counter,
    refused: Counter,
    socket_full: Counter,
    socket_error: Counter,
}

impl Component for Fleet {
    type Settings = FleetSettings;

    fn check(settings: &FleetSettings) -> Result<(), SettingError> {
        if !(1..=2000).contains(&settings.vehicles) {
            return Err(SettingError::new("vehicles", format!("{} is not within 1 to 2000", settings.vehicles)));
        }
        settings.check_rate()?;
        if settings.first_station_id.checked_add(settings.vehicles).is_none() {
            let problem = format!("{} and {} vehicles exceed 4294967295", settings.first_station_id, settings.vehicles);
            return Err(SettingError::new("first_station_id", problem));
        }
        settings.udp_multicast.check("udp_multicast")
    }

    fn check_machine(settings: &FleetSettings) -> Result<(), SettingError> {
        RoadNetwork::load(settings.roads.as_deref()).map(drop)
    }

    fn edges(_: &FleetSettings) -> Edges {
        Edges::default()
    }

    fn start(settings: FleetSettings, context: &mut Context<Self>) -> Result<Self, StartError> {
        let roads = Arc::new(RoadNetwork::load(settings.roads.as_deref())?);
        let interface = interface_address(&settings.udp_multicast.interface)?;
        let socket = sending_socket(interface).map_err(|cause| StartError::io("cannot open a UDP socket", cause))?;
        let period = settings.cam.period(settings.rate_hz.unwrap_or(RATE_HZ));
        let start = clock::now();
        let mut rng = Rng::new(settings.seed);
        let vehicles: Vec<OnBoardUnit> = (0..settings.vehicles)
            .map(|index| {
                // The vehicles send at different times of the period, so that the load of the channel is even.
                let phase = period.mul_f64(f64::from(index) / f64::from(settings.vehicles));
                OnBoardUnit::new(
                    StationId(settings.first_station_id + index),
                    settings.cam,
                    &roads,
                    &mut rng,
                    (start, phase),
                )
            })
            .collect();
        let turn = (period / settings.vehicles.clamp(1, 100)).min(settings.cam.turn_max());
        context.every(turn.max(Duration::from_millis(1)), Self::tick);
        let group = settings.udp_multicast.group.into();
        Ok(Self { vehicles, period, socket, group, counts: Counts::new(context) })
    }
}

impl Fleet {
    fn tick(&mut self, out: &mut CallbackContext) {
        for index in 0..self.vehicles.len() {
            if self.vehicles[index].due <= out.now.mono {
                self.move_and_send(index, out.now);
            }
        }
    }

    fn move_and_send(&mut self, index: usize, now: Now) {
        let gap = self.gap_ahead(index);
        let unit = &mut self.vehicles[index];
        unit.drive(now, gap);
        let late = now.mono.since(unit.due).as_nanos() / self.period.as_nanos().max(1);
        let skipped = u32::try_from(late).unwrap_or(u32::MAX - 1);
        self.counts.skipped.add(u64::from(skipped));
        let next = unit.due.plus(self.period.saturating_mul(skipped + 1));
        let cam = unit.awareness.cam(now, unit.station_id, &unit.vehicle);
        unit.due = unit.awareness.next_turn().unwrap_or(next);
        if let Some(cam) = cam {
            self.counts.generated.increment();
            if !unit.send_cam(now, &cam) {
                self.counts.refused.increment();
            }
        }
        while let Some(frame) = unit.station.poll_transmit() {
            self.counts.count_send(self.socket.send_to(&frame, &self.group.into()).map(drop));
        }
    }

    /// Returns the distance to the vehicle ahead on the same lane, or `None` if there is none.
    fn gap_ahead(&self, index: usize) -> Option<Metres> {
        let own = &self.vehicles[index].vehicle;
        let gaps = self.vehicles.iter().filter_map(|other| own.gap_to(&other.vehicle));
        gaps.min_by(|a, b| a.value().total_cmp(&b.value()))
    }
}

impl OnBoardUnit {
    fn new(
        station_id: StationId,
        cam: CamGeneration,
        roads: &Arc<RoadNetwork>,
        rng: &mut Rng,
        (start, phase): (Now, Duration),
    ) -> Self {
        let vehicle = Vehicle::new(Arc::clone(roads), rng);
        let settings = StationSettings {
            link_address: crate::kinds::its_station::mac_of_station(station_id),
            station_type: StationType::PASSENGER_CAR,
            mobile: true,
            beacons: false,
        };
        Self {
            station_id,
            awareness: Awareness::new(cam, station_id, &vehicle, start),
            vehicle,
            station: Station::new(settings, u64::from(station_id.0)),
            due: start.mono.plus(phase),
            moved: start.mono,
        }
    }

    fn drive(&mut self, now: Now, gap: Option<Metres>) {
        self.vehicle.step(now.mono.since(self.moved), gap);
        self.moved = now.mono;
        let state = self.vehicle.state();
        self.station.set_ego(
            now,
            Ego {
                time: now.tai,
                position: state.position,
                position_accurate: true,
                speed: state.speed,
                heading: Some(state.heading),
            },
        );
    }

    /// Encodes a CAM and passes it to the station. Returns `true` if the station accepted it.
    fn send_cam(&mut self, now: Now, input: &CamInput) -> bool {
        let Ok(payload) = cam::encode(&build(input)) else {
            return false;
        };
        let request = SendRequest::single_hop(MessageKind::Cam, Bytes::from(payload));
        self.station.send(now, &request).is_ok()
    }
}

impl Counts {
    fn new(context: &Context<Fleet>) -> Self {
        Self {
            generated: context.counter("generated"),
            sent: context.counter("sent"),
            skipped: context.counter("skipped"),
            refused: context.counter_for("dropped", "refused_by_station"),
            socket_full: context.counter_for("dropped", "socket_full"),
            socket_error: context.counter_for("dropped", "socket_error"),
        }
    }

    fn count_send(&self, outcome: std::io::Result<()>) {
        match outcome {
            Ok(()) => self.sent.increment(),
            Err(error) if error.kind() == ErrorKind::WouldBlock => self.socket_full.increment(),
            Err(_) => self.socket_error.increment(),
        }
    }
}
