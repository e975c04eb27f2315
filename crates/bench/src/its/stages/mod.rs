//! The paper's Table 2 by stage: from the JSON of one application to the MQTT subscriber of another, over two stations.
//!
//! ```text
//! JSON - UPER - BTP, GeoNetworking - socket - kernel ==== kernel - socket - GeoNetworking, BTP - UPER - JSON - MQTT
//!      |      |                    |                |   |                 |                             |      |
//!   asked  encoded              framed           left  received         taken                  decoded  written  read
//! ```
//!
//! The sockets are those of an `its_station`, the machines too; the broker is a node of its own. Each border is stamped by
//! one clock, the system's time, with which the kernel stamps packets. One packet is under way at a time.

mod cable;
mod departures;
mod floors;
mod receiver;
mod sender;
mod way;

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
use crate::report::{Beside, Row};

pub(super) use floors::Floors;
use receiver::{Arrival, Receiver};
use sender::{Departure, Sender};
use way::{Stage, Way};

/// The stages between the two stations' network layers: what a bare socket can be compared with.
const LINK: [Stage; 3] = [Stage::AccessOut, Stage::Physical, Stage::AccessIn];

/// What a way's stages are, as a note says it.
pub(super) const NOTE: &str = "viaduct.stage: one CAM at a time from JSON to an MQTT subscriber, over two stations and a \
    broker in this process; the borders are: facility_out JSON to UPER; network_out BTP and GeoNetworking; access_out the \
    socket and the kernel up to its stamp of the sent packet; physical from this stamp to that of the received one (a veth \
    pair or the loopback: no wire); access_in from there until the station has the frame, the wake-up included; network_in \
    all of the station's machine, the decoding of the UPER included, which the paper counts as facility_in; facility_in \
    the bus message and its JSON; mqtt a client, the broker and the subscriber by TCP; link is access_out + physical + \
    access_in. The paper's figures are those of its raw Ethernet; for UDP it prints none by stage";

/// An access layer that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Raw Ethernet over a cable.
    Ethernet,
    /// UDP multicast on the loopback interface.
    UdpMulticast,
}

impl Access {
    /// The name in parameters, as configs have it.
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

/// Something that was seen of a packet.
enum Sign {
    /// The second station has published it.
    Arrived(Arrival),
    /// The subscriber has it.
    Read(u16, Tai),
}

/// What a run of packets gave.
struct Measured {
    ways: Vec<Way>,
    lost: u64,
}

/// The rows of both access layers, and a note where this user cannot have raw Ethernet.
pub(super) fn rows(
    cam: &NumberedCam,
    floors: &Floors,
    options: &Options,
) -> Result<(Vec<Row>, Vec<String>), BenchError> {
    let runtime = end_to_end::runtime()?;
    let (mut rows, mut notes) = (Vec::new(), Vec::new());
    for access in [Access::Ethernet, Access::UdpMulticast] {
        match Ends::open(access, &runtime)? {
            Ok(ends) => rows.extend(measure(access, ends, cam, floors, options, &runtime)?),
            Err(problem) => notes.push(format!("stages over raw Ethernet are left out: {problem}")),
        }
    }
    Ok((rows, notes))
}

/// The sockets of two stations that reach each other, and nobody else.
struct Ends {
    sender: Sender,
    receiver: FrameSocket,
}

impl Ends {
    /// The inner error says why this machine or this user cannot have a cable.
    fn open(access: Access, runtime: &Runtime) -> Result<Result<Self, String>, BenchError> {
        let senders = sender::runtime()?;
        let sockets = match access {
            Access::Ethernet => match cable::on_cable(|| ethernet(&senders, runtime)) {
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
    ends: Ends,
    cam: &NumberedCam,
    floors: &Floors,
    options: &Options,
    runtime: &Runtime,
) -> Result<Vec<Row>, BenchError> {
    let (signs, seen) = mpsc::channel();
    let mut line = Line { sender: ends.sender, seen, cam };
    let far = FarSide::start(access, ends.receiver, signs, runtime)?;
    let measured = line.run(floors.pace().rate_hz, options);
    far.stop(runtime);
    rows_of(access, &measured?, floors)
}

/// What is beyond the first station's socket: the second station, the broker and the subscriber.
struct FarSide {
    broker: Node,
    reader: Client,
    station: JoinHandle<()>,
}

impl FarSide {
    fn start(
        access: Access,
        socket: FrameSocket,
        signs: mpsc::Sender<Sign>,
        runtime: &Runtime,
    ) -> Result<Self, BenchError> {
        let listen = end_to_end::free_tcp_address()?;
        let broker = end_to_end::start("broker.yaml", &broker(listen), runtime)?;
        let reader = runtime.block_on(end_to_end::subscribe_mqtt(listen, reader(signs.clone())))?;
        let client = runtime.block_on(end_to_end::connect_mqtt("bench-station", listen))?;
        let station = Receiver { socket, station: receiver::station(), access: access.on_the_bus(), client, signs };
        Ok(Self { broker, reader, station: runtime.spawn(station.run()) })
    }

    fn stop(self, runtime: &Runtime) {
        self.station.abort();
        // The broker that it would say goodbye to stops next.
        drop(runtime.block_on(self.reader.disconnect()));
        self.broker.stop();
    }
}

fn broker(listen: SocketAddr) -> String {
    format!("node: broker\ncomponents:\n  broker: {{ kind: mqtt_broker, settings: {{ listen: \"{listen}\" }} }}\n")
}

/// What the subscriber does with a message.
fn reader(signs: mpsc::Sender<Sign>) -> impl Fn(viaduct_mqtt::Message) + Send + Sync + 'static {
    move |message| {
        let now = clock::tai();
        if let Some(number) = NumberedCam::number(&message.payload) {
            // Nobody listens any more once the last packet was given up.
            let _ = signs.send(Sign::Read(number, now));
        }
    }
}

/// The first station, and what is seen of its packets.
struct Line<'a> {
    sender: Sender,
    seen: mpsc::Receiver<Sign>,
    cam: &'a NumberedCam,
}

impl Line<'_> {
    /// Sends the packets, one after the other; the first ones warm up and do not count.
    fn run(&mut self, rate_hz: u32, options: &Options) -> Result<Measured, BenchError> {
        let mut measured = Measured { ways: Vec::with_capacity(options.paced_packets), lost: 0 };
        paced::each(WARM_UP + options.paced_packets, rate_hz, |index, number| {
            let way = self.send(number)?;
            match way {
                _ if index < WARM_UP => {}
                Some(way) => measured.ways.push(way),
                None => measured.lost += 1,
            }
            Ok(())
        })?;
        Ok(measured)
    }

    /// The way of one packet; `None` where it does not come.
    fn send(&mut self, number: u16) -> Result<Option<Way>, BenchError> {
        let text = self.cam.text(number);
        let departure = self.sender.send(&text)?;
        let arrived = self.wait(number);
        // The kernel has stamped it before it came, or does not stamp at all.
        let left = self.sender.last_departure();
        let Some((arrival, read)) = arrived else { return Ok(None) };
        let unstamped = || BenchError::broken("stages", "the kernel does not stamp packets that are sent");
        Ok(Some(way(departure, left.ok_or_else(unstamped)?, arrival, read)))
    }

    /// Waits until both signs of that packet are there; those of an earlier one that was given up are thrown away.
    fn wait(&self, number: u16) -> Option<(Arrival, Tai)> {
        let deadline = Instant::now() + paced::PATIENCE;
        let (mut arrival, mut read) = (None, None);
        loop {
            if let Some(both) = arrival.zip(read) {
                return Some(both);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.seen.recv_timeout(left).ok()? {
                Sign::Arrived(of) if of.number == number => arrival = Some(of),
                Sign::Read(of, at) if of == number => read = Some(at),
                Sign::Arrived(_) | Sign::Read(..) => {}
            }
        }
    }
}

fn way(departure: Departure, left: Tai, arrival: Arrival, read: Tai) -> Way {
    let Departure { asked, encoded, framed } = departure;
    let Arrival { received, taken, decoded, written, .. } = arrival;
    Way { moments: [asked, encoded, framed, left, received, taken, decoded, written, read] }
}

fn rows_of(access: Access, measured: &Measured, floors: &Floors) -> Result<Vec<Row>, BenchError> {
    let was_set = || BenchError::broken("stages", "the system's clock was set while they were measured");
    let ways: Option<Vec<_>> = measured.ways.iter().map(Way::stages_ns).collect();
    let ways = ways.ok_or_else(was_set)?;
    let row = |stage: &str, of: &[Stage], lost: u64, floor: Option<f64>| {
        let sum = |way: &[i64; way::STAGES]| {
            let all = Stage::ALL.iter().zip(way);
            all.filter(|(stage, _)| of.contains(stage)).map(|(_, time)| *time).sum::<i64>() as f64 / 1e3
        };
        let labels: Vec<&str> = of.iter().map(|stage| stage.label()).collect();
        let beside = Beside { paper: Some(paper::stages_us(&labels)), floor, ..Beside::default() };
        let params = params(stage, access, floors);
        Row { beside, ..Row::latencies("viaduct.stage", &params, ways.iter().map(sum).collect(), lost) }
    };
    let floor = |stage| if stage == Stage::Mqtt { floors.tcp(2) } else { None };
    let stages = Stage::ALL.into_iter().map(|stage| row(stage.label(), &[stage], 0, floor(stage)));
    let link = row("link", &LINK, 0, floors.link(access));
    let total = row("total", &Stage::ALL, measured.lost, floors.way(access, 2));
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
    fn each_packet_has_every_stage_on_udp() {
        let _alone = crate::measuring_alone();
        let runtime = end_to_end::runtime().unwrap();
        let ends = Ends::open(Access::UdpMulticast, &runtime).unwrap().unwrap();
        let floors = Floors::default();
        let rows = measure(Access::UdpMulticast, ends, &cam(), &floors, &options(), &runtime).unwrap();
        assert_eq!(rows.len(), Stage::ALL.len() + 2);
        assert!(rows.iter().all(|row| row.n == 5 && row.lost == Some(0)), "{rows:?}");
        let (total, stages) = (rows.last().unwrap(), rows.get(..Stage::ALL.len()).unwrap());
        for (index, total) in total.samples.iter().enumerate() {
            let sum: f64 = stages.iter().map(|row| row.samples[index]).sum();
            assert!((sum - total).abs() < 0.01, "{sum} {total}");
        }
    }

    #[test]
    fn what_does_not_come_is_lost() {
        let _alone = crate::measuring_alone();
        let runtime = end_to_end::runtime().unwrap();
        let ends = Ends::open(Access::UdpMulticast, &runtime).unwrap().unwrap();
        let (_signs, seen) = mpsc::channel();
        let cam = cam();
        let mut line = Line { sender: ends.sender, seen, cam: &cam };
        assert!(line.send(1).unwrap().is_none());
    }
}
