//! Stages of the paper's Table 2: from the JSON of one application to the MQTT subscriber of another, over two
//! stations.
//!
//! ```text
//! JSON - UPER - BTP, GeoNetworking - socket - kernel ==== kernel - socket - GeoNetworking, BTP - UPER - JSON - MQTT
//!      |      |                    |                |   |                 |                             |      |
//!   asked  encoded              framed           left  received         taken                  decoded  written  read
//! ```
//!
//! Sockets and protocol machines are those of an `its_station`; the broker is a separate node. All timestamps are of
//! the system clock, which the kernel uses for packets. At most one packet is in flight.

mod cable;
mod departures;
mod floors;
mod receiver;
mod sender;
mod times;

use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::Instant;

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use viaduct_bus::clock;
use viaduct_components::net::{EthernetSettings, FrameSocket, UdpMulticastSettings, open_ethernet, open_udp_multicast};
use viaduct_messages::viaduct::its::AccessLayer;
use viaduct_mqtt::client::Client;
use viaduct_node::Node;
use viaduct_units::Tai;

use super::end_to_end;
use super::numbered::NumberedCam;
use super::{Options, paced};
use crate::error::BenchError;
use crate::floor::WARM_UP;
use crate::paper;
use crate::report::{References, Row};

pub(super) use floors::Floors;
use receiver::{Arrival, Receiver};
use sender::{Departure, Sender};
use times::{PacketTimes, Stage};

/// Stages between the two stations' network layers, which are compared with a bare socket.
const LINK: [Stage; 3] = [Stage::AccessOut, Stage::Physical, Stage::AccessIn];

/// Note for the report.
pub(super) const NOTE: &str = "viaduct.stage: one CAM at a time from JSON to an MQTT subscriber, over two stations and a \
    broker in this process; facility_out: JSON to UPER; network_out: BTP and GeoNetworking; access_out: socket and kernel up to \
    its timestamp of the sent packet; physical: from this timestamp to that of the received packet (veth pair or loopback, no \
    wire); access_in: until the station has read the frame, with the wake-up; network_in: the station's protocol machine, with \
    the decoding of the UPER, which the paper counts as facility_in; facility_in: bus message and its JSON; mqtt: client, \
    broker and subscriber by TCP; link: access_out + physical + access_in. The paper's figures are those of its raw \
    Ethernet; it publishes none by stage for UDP";

/// A measured access layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Raw Ethernet over a veth pair.
    Ethernet,
    /// UDP multicast on the loopback interface.
    UdpMulticast,
}

impl Access {
    /// Returns the name in parameters, the same as in configs.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Ethernet => "ethernet",
            Self::UdpMulticast => "udp_multicast",
        }
    }

    const fn on_the_bus(self) -> AccessLayer {
        match self {
            Self::Ethernet => AccessLayer::Ethernet,
            Self::UdpMulticast => AccessLayer::UdpMulticast,
        }
    }
}

/// An observed event of a packet.
enum Observation {
    /// The second station has published the packet.
    Arrived(Arrival),
    /// The subscriber has received the packet with that number at that time.
    Read(u16, Tai),
}

/// Result of a run of packets.
struct Measured {
    packets: Vec<PacketTimes>,
    lost: u64,
}

/// Returns the rows of both access layers, and a note if raw Ethernet is not permitted.
pub(super) fn rows(
    cam: &NumberedCam,
    floors: &Floors,
    options: &Options,
) -> Result<(Vec<Row>, Vec<String>), BenchError> {
    let runtime = end_to_end::runtime()?;
    let (mut rows, mut notes) = (Vec::new(), Vec::new());
    for access in [Access::Ethernet, Access::UdpMulticast] {
        match Sockets::open(access, &runtime)? {
            Ok(sockets) => rows.extend(measure(access, sockets, cam, floors, options, &runtime)?),
            Err(problem) => notes.push(format!("stages over raw Ethernet are left out: {problem}")),
        }
    }
    Ok((rows, notes))
}

/// The sockets of two stations that reach only each other.
struct Sockets {
    sender: Sender,
    receiver: FrameSocket,
}

impl Sockets {
    /// Opens the sockets. The inner error is the reason if the machine or the user's privileges do not permit the
    /// veth pair.
    fn open(access: Access, runtime: &Runtime) -> Result<Result<Self, String>, BenchError> {
        let senders = sender::runtime()?;
        let sockets = match access {
            Access::Ethernet => match cable::in_namespace(|| ethernet(&senders, runtime)) {
                Ok(sockets) => sockets,
                Err(problem) => return Ok(Err(problem)),
            },
            Access::UdpMulticast => udp_multicast(&senders, runtime)?,
        };
        let (sender, receiver) = sockets;
        Ok(Ok(Self { sender: Sender::new(senders, sender)?, receiver }))
    }
}

fn ethernet(senders: &Runtime, receivers: &Runtime) -> Result<(FrameSocket, FrameSocket), BenchError> {
    let [left, right] = cable::ENDS.map(EthernetSettings::on);
    let open = |settings: &EthernetSettings, runtime: &Runtime| {
        let _inside = runtime.enter();
        open_ethernet(settings).map_err(BenchError::part("cannot open raw Ethernet"))
    };
    Ok((open(&left, senders)?, open(&right, receivers)?))
}

fn udp_multicast(senders: &Runtime, receivers: &Runtime) -> Result<(FrameSocket, FrameSocket), BenchError> {
    let settings = UdpMulticastSettings { group: end_to_end::free_group_address()?, ..UdpMulticastSettings::default() };
    let open = |runtime: &Runtime| {
        let _inside = runtime.enter();
        open_udp_multicast(&settings).map_err(BenchError::part("cannot open UDP multicast"))
    };
    Ok((open(senders)?, open(receivers)?))
}

fn measure(
    access: Access,
    sockets: Sockets,
    cam: &NumberedCam,
    floors: &Floors,
    options: &Options,
    runtime: &Runtime,
) -> Result<Vec<Row>, BenchError> {
    let (observations, seen) = mpsc::channel();
    let mut near = NearSide { sender: sockets.sender, seen, cam };
    let far = FarSide::start(access, sockets.receiver, observations, runtime)?;
    let measured = near.run(floors.pace().rate_hz, options);
    far.stop(runtime);
    rows_of(access, &measured?, floors)
}

/// The part of the path after the first station's socket: second station, broker and subscriber.
struct FarSide {
    broker: Node,
    reader: Client,
    station: JoinHandle<()>,
}

impl FarSide {
    fn start(
        access: Access,
        socket: FrameSocket,
        observations: mpsc::Sender<Observation>,
        runtime: &Runtime,
    ) -> Result<Self, BenchError> {
        let listen = end_to_end::free_tcp_address()?;
        let broker = end_to_end::start("broker.yaml", &broker(listen), runtime)?;
        let reader = runtime.block_on(end_to_end::subscribe_mqtt(listen, reader(observations.clone())))?;
        let client = runtime.block_on(end_to_end::connect_mqtt("bench-station", listen))?;
        let station =
            Receiver { socket, station: receiver::station(), access: access.on_the_bus(), client, observations };
        Ok(Self { broker, reader, station: runtime.spawn(station.run()) })
    }

    fn stop(self, runtime: &Runtime) {
        self.station.abort();
        // An error is ignored: the broker stops next.
        drop(runtime.block_on(self.reader.disconnect()));
        self.broker.stop();
    }
}

fn broker(listen: SocketAddr) -> String {
    format!("node: broker\ncomponents:\n  broker: {{ kind: mqtt_broker, settings: {{ listen: \"{listen}\" }} }}\n")
}

/// Returns the subscriber's callback.
fn reader(observations: mpsc::Sender<Observation>) -> impl Fn(viaduct_mqtt::Message) + Send + Sync + 'static {
    move |message| {
        let now = clock::tai();
        if let Some(number) = NumberedCam::number(&message.payload) {
            // Fails after the last packet has timed out, when the receiver is gone.
            let _ = observations.send(Observation::Read(number, now));
        }
    }
}

/// The first station, and the observations of its packets.
struct NearSide<'a> {
    sender: Sender,
    seen: mpsc::Receiver<Observation>,
    cam: &'a NumberedCam,
}

impl NearSide<'_> {
    /// Sends the packets one at a time. The warm-up is not part of the result.
    fn run(&mut self, rate_hz: u32, options: &Options) -> Result<Measured, BenchError> {
        let mut measured = Measured { packets: Vec::with_capacity(options.paced_packets), lost: 0 };
        paced::each(WARM_UP + options.paced_packets, rate_hz, |index, number| {
            let packet = self.send(number)?;
            match packet {
                _ if index < WARM_UP => {}
                Some(packet) => measured.packets.push(packet),
                None => measured.lost += 1,
            }
            Ok(())
        })?;
        Ok(measured)
    }

    /// Sends one packet. Returns its times, or `None` if it is lost.
    fn send(&mut self, number: u16) -> Result<Option<PacketTimes>, BenchError> {
        let text = self.cam.text(number);
        let departure = self.sender.send(&text)?;
        let arrived = self.wait(number);
        // The kernel's timestamp exists before the packet arrives, or never.
        let left = self.sender.last_departure();
        let Some((arrival, read)) = arrived else { return Ok(None) };
        let unstamped = || BenchError::broken("stages", "the kernel does not timestamp sent packets");
        Ok(Some(times(departure, left.ok_or_else(unstamped)?, arrival, read)))
    }

    /// Waits for both observations of that packet. Late ones of earlier packets are discarded.
    fn wait(&self, number: u16) -> Option<(Arrival, Tai)> {
        let deadline = Instant::now() + paced::TIMEOUT;
        let (mut arrival, mut read) = (None, None);
        loop {
            if let Some(both) = arrival.zip(read) {
                return Some(both);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.seen.recv_timeout(left).ok()? {
                Observation::Arrived(of) if of.number == number => arrival = Some(of),
                Observation::Read(of, at) if of == number => read = Some(at),
                Observation::Arrived(_) | Observation::Read(..) => {}
            }
        }
    }
}

fn times(departure: Departure, left: Tai, arrival: Arrival, read: Tai) -> PacketTimes {
    let Departure { asked, encoded, framed } = departure;
    let Arrival { received, taken, decoded, written, .. } = arrival;
    PacketTimes { times: [asked, encoded, framed, left, received, taken, decoded, written, read] }
}

fn rows_of(access: Access, measured: &Measured, floors: &Floors) -> Result<Vec<Row>, BenchError> {
    let was_set = || BenchError::broken("stages", "the system clock was set during the measurement");
    let packets: Option<Vec<_>> = measured.packets.iter().map(PacketTimes::stages_ns).collect();
    let packets = packets.ok_or_else(was_set)?;
    let row = |stage: &str, of: &[Stage], lost: u64, floor: Option<f64>| {
        let sum = |packet: &[i64; times::STAGES]| {
            let all = Stage::ALL.iter().zip(packet);
            all.filter(|(stage, _)| of.contains(stage)).map(|(_, time)| *time).sum::<i64>() as f64 / 1e3
        };
        let labels: Vec<&str> = of.iter().map(|stage| stage.label()).collect();
        let references = References { paper: Some(paper::stages_us(&labels)), floor, ..References::default() };
        let params = params(stage, access, floors);
        Row { references, ..Row::latencies("viaduct.stage", &params, packets.iter().map(sum).collect(), lost) }
    };
    let floor = |stage| if stage == Stage::Mqtt { floors.tcp(2) } else { None };
    let stages = Stage::ALL.into_iter().map(|stage| row(stage.label(), &[stage], 0, floor(stage)));
    let link = row("link", &LINK, 0, floors.link(access));
    let total = row("total", &Stage::ALL, measured.lost, floors.path(access, 2));
    Ok(stages.chain([link, total]).collect())
}

fn params(stage: &str, access: Access, floors: &Floors) -> Value {
    json!({
        "access": access.label(),
        "stage": stage,
        "rate_hz": floors.pace().rate_hz,
        "cores": floors.pace().cores.label(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::its::corpus;

    fn options() -> Options {
        Options { paced_packets: 5, ..Options::default() }
    }

    fn cam() -> NumberedCam {
        NumberedCam::of(&corpus::vectors().unwrap().cam().unwrap().json).unwrap()
    }

    #[test]
    fn measures_every_stage_of_each_packet_on_udp() {
        let _lock = crate::measurement_lock();
        let runtime = end_to_end::runtime().unwrap();
        let sockets = Sockets::open(Access::UdpMulticast, &runtime).unwrap().unwrap();
        let floors = Floors::default();
        let rows = measure(Access::UdpMulticast, sockets, &cam(), &floors, &options(), &runtime).unwrap();
        assert_eq!(rows.len(), Stage::ALL.len() + 2);
        assert!(rows.iter().all(|row| row.n == 5 && row.lost == Some(0)), "{rows:?}");
        let (total, stages) = (rows.last().unwrap(), rows.get(..Stage::ALL.len()).unwrap());
        for (index, total) in total.samples.iter().enumerate() {
            let sum: f64 = stages.iter().map(|row| row.samples[index]).sum();
            assert!((sum - total).abs() < 0.01, "{sum} {total}");
        }
    }

    #[test]
    fn counts_a_missing_packet_as_lost() {
        let _lock = crate::measurement_lock();
        let runtime = end_to_end::runtime().unwrap();
        let sockets = Sockets::open(Access::UdpMulticast, &runtime).unwrap().unwrap();
        let (_signs, seen) = mpsc::channel();
        let cam = cam();
        let mut near = NearSide { sender: sockets.sender, seen, cam: &cam };
        assert!(near.send(1).unwrap().is_none());
    }
}
