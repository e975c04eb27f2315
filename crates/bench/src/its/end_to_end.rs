//! Latency of live packets through real nodes, which run in this process from the same config as `viaduct run`.
//!
//! ```text
//! node vehicles                node edge
//! fleet -- UDP multicast --> its_station -+- mqtt_broker (its route, no socket) ---------- TCP --> subscriber
//!                                         +- mqtt_bridge -- TCP --> mqtt_broker ----------- TCP --> subscriber
//!                                         +- api (cache) -- server-sent events ------------ TCP --> HTTP client
//! ```
//!
//! The time starts at the kernel's timestamp of the packet and ends when the reader has received the message. MQTT
//! messages carry hop timestamps, so the latency is also split by hop, as in the paper.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use viaduct_bus::{HopKind, HopName, HopStamp, Meta, clock};
use viaduct_components::mqtt::hops;
use viaduct_its::access::UDP_MULTICAST_GROUP;
use viaduct_mqtt::SubscribeOptions;
use viaduct_mqtt::client::Client;

use super::Options;
use crate::error::BenchError;
use crate::floor::{self, micros};
pub(super) use crate::nodes::{connect_mqtt, runtime, start};
use crate::paper;
use crate::progress::print_progress;
use crate::report::{References, Row};
use crate::statistics::Summary;

/// Warm-up: messages of this time are not measured, because threads start and buffers grow.
const WARM_UP: Duration = Duration::from_secs(1);

/// Time for messages in flight to arrive after the fleet has stopped.
const DRAIN_TIME: Duration = Duration::from_millis(300);

/// Hop name of the kernel's timestamp of the packet.
const ORIGIN: &str = "origin";
/// Hop name of the measuring client.
const READER: &str = "reader";

const NANOS_PER_DAY: i64 = 86_400_000_000_000;

/// Measures all outputs and their floors. `lengths` are the octets of a frame and of its message as JSON.
pub(super) fn rows(lengths: (usize, usize), options: &Options) -> Result<Vec<Row>, BenchError> {
    let runtime = runtime()?;
    let mut floors = Floors { lengths, udp: Vec::new(), tcp: Vec::new() };
    let mut rows = Vec::new();
    for output in Output::ALL {
        floors.measure(options)?;
        print_progress(&format!("its: packets to {}", output.label()));
        rows.push((output, measure(output, options, &runtime)?));
    }
    let with_floor = |(output, rows): (Output, Vec<Row>)| {
        let floor = floors.of(output);
        rows.into_iter().map(move |mut row| {
            if row.name == output.row() {
                row.references.floor = floor;
            }
            row
        })
    };
    let mut rows: Vec<Row> = rows.into_iter().flat_map(with_floor).collect();
    rows.extend(floors.rows(options));
    Ok(rows)
}

/// Latencies of bare sockets at the rate of the packets. They are measured before each output, so that other load on
/// the machine affects them equally.
struct Floors {
    /// Octets of a frame and of its message as JSON.
    lengths: (usize, usize),
    udp: Vec<f64>,
    tcp: Vec<f64>,
}

impl Floors {
    fn measure(&mut self, options: &Options) -> Result<(), BenchError> {
        let period = Duration::from_secs(1) / options.packets_hz().max(1);
        // Half a second of packets.
        let samples = options.packets_hz().div_ceil(2).max(1) as usize;
        self.udp.extend(floor::udp_one_way(self.lengths.0, samples, period)?);
        self.tcp.extend(floor::tcp_one_way(self.lengths.1, samples, period)?);
        Ok(())
    }

    /// Returns the floor: the median of a frame by UDP plus the median of its text by TCP for each TCP connection.
    fn of(&self, output: Output) -> Option<f64> {
        let median = |samples: &[f64]| Summary::of(samples).map(|summary| summary.p50);
        Some(median(&self.udp)? + output.tcp_hops() * median(&self.tcp)?)
    }

    fn rows(self, options: &Options) -> [Row; 2] {
        let params = |octets| json!({ "octets": octets, "rate_hz": options.packets_hz() });
        [
            Row::latencies("floor.udp_one_way", &params(self.lengths.0), self.udp, 0),
            Row::latencies("floor.tcp_one_way", &params(self.lengths.1), self.tcp, 0),
        ]
    }
}

/// Output of the node that delivers a message to the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Output {
    /// A route of the MQTT broker in the same node.
    Broker,
    /// A bridge, which sends to the broker by TCP.
    Bridge,
    /// The live stream of the HTTP API, from the cache.
    Api,
}

impl Output {
    const ALL: [Self; 3] = [Self::Broker, Self::Bridge, Self::Api];

    const fn label(self) -> &'static str {
        match self {
            Self::Broker => "MQTT by the broker's route",
            Self::Bridge => "MQTT by a bridge",
            Self::Api => "the API's live stream",
        }
    }

    const fn row(self) -> &'static str {
        match self {
            Self::Broker | Self::Bridge => "viaduct.packet_to_mqtt",
            Self::Api => "viaduct.packet_to_api",
        }
    }

    /// Returns the number of TCP connections on the path.
    const fn tcp_hops(self) -> f64 {
        match self {
            Self::Broker | Self::Api => 1.0,
            Self::Bridge => 2.0,
        }
    }

    /// Returns the name in the parameter `by`.
    pub(super) const fn by(self) -> &'static str {
        match self {
            Self::Broker => "broker_route",
            Self::Bridge => "bridge",
            Self::Api => "live_stream",
        }
    }

    fn params(self, from: &str, to: &str, options: &Options) -> Value {
        json!({ "vehicles": options.vehicles, "rate_hz": options.rate_hz, "by": self.by(), "from": from, "to": to })
    }

    /// Returns the node's config: a station that receives from the multicast group, and this output.
    pub(super) fn edge(self, listen: SocketAddr, group: &str) -> String {
        format!(
            "node: edge\ncomponents:\n  station: {{ kind: its_station, settings: {{ station_id: 901, access: {{ \
             udp_multicast: {group} }} }} }}\n{}\n",
            self.components(listen)
        )
    }

    /// Returns the config of the components other than the station.
    fn components(self, listen: SocketAddr) -> String {
        let route = "[ { from: its/rx/*, to: \"{topic}\", qos: 0, encoding: json } ]";
        match self {
            Self::Broker => {
                format!("  broker: {{ kind: mqtt_broker, settings: {{ listen: \"{listen}\", routes: {route} }} }}")
            }
            Self::Bridge => format!(
                "  broker: {{ kind: mqtt_broker, settings: {{ listen: \"{listen}\" }} }}\n  \
                   uplink: {{ kind: mqtt_bridge, settings: {{ broker: \"mqtt://{listen}\", routes: {route} }} }}"
            ),
            Self::Api => format!("  api: {{ kind: api, settings: {{ listen: \"{listen}\", topics: [ its/rx/* ] }} }}"),
        }
    }
}

/// Messages that a reader has received.
#[derive(Default)]
struct Received {
    /// Number of messages, including the warm-up.
    arrived: u64,
    /// Latencies after the warm-up, in microseconds.
    latencies: Vec<f64>,
    /// Latencies of each hop after the warm-up, in microseconds, in path order.
    hops: Vec<(Hop, Vec<f64>)>,
    warm: bool,
}

/// Start and end of a hop.
type Hop = (HopName, HopName);

type Shared = Arc<Mutex<Received>>;

fn measure(output: Output, options: &Options, runtime: &Runtime) -> Result<Vec<Row>, BenchError> {
    let listen = free_tcp_address()?;
    let group = free_group()?;
    let edge = output.edge(listen, &group);
    let vehicles = format!(
        "node: vehicles\ncomponents:\n  fleet: {{ kind: fleet, settings: {{ vehicles: {}, rate_hz: {}, udp_multicast: \
         {group} }} }}\n",
        options.vehicles, options.rate_hz
    );
    let edge = start("edge.yaml", &edge, runtime)?;
    let received = Shared::default();
    let reader = runtime.block_on(Reader::start(output, listen, &received))?;
    let fleet = start("vehicles.yaml", &vehicles, runtime)?;
    std::thread::sleep(WARM_UP);
    lock(&received).warm = true;
    std::thread::sleep(options.end_to_end);
    let sent = fleet.bus().counter("fleet", "sent", None);
    fleet.stop();
    std::thread::sleep(DRAIN_TIME);
    runtime.block_on(reader.stop());
    edge.stop();
    let received = std::mem::take(&mut *lock(&received));
    Ok(rows_of(output, options, received, sent.value()))
}

/// Returns the row of the whole path, then one row per known hop.
fn rows_of(output: Output, options: &Options, received: Received, sent: u64) -> Vec<Row> {
    // Losses during the warm-up count too.
    let lost = sent.saturating_sub(received.arrived);
    let row = |name, from: &str, to: &str, latencies, lost, paper| {
        let row = Row::latencies(name, &output.params(from, to, options), latencies, lost);
        Row { references: References { paper, ..References::default() }, ..row }
    };
    let paper = (output != Output::Api).then(paper::packet_to_mqtt_us);
    let whole = row(output.row(), ORIGIN, READER, received.latencies, lost, paper);
    let hop = |((from, to), latencies): (Hop, Vec<f64>)| {
        let paper = (from.as_str() == ORIGIN).then(paper::packet_to_bus_us);
        row("viaduct.hop", from.as_str(), to.as_str(), latencies, 0, paper)
    };
    std::iter::once(whole).chain(received.hops.into_iter().map(hop)).collect()
}

/// A client of the edge node.
enum Reader {
    Mqtt(Client),
    Live(tokio::task::JoinHandle<()>),
}

impl Reader {
    async fn start(output: Output, address: SocketAddr, received: &Shared) -> Result<Self, BenchError> {
        match output {
            Output::Broker | Output::Bridge => subscribe(address, Arc::clone(received)).await.map(Self::Mqtt),
            Output::Api => {
                let stream = open_live_stream(address).await.map_err(BenchError::system("cannot read /v1/live"))?;
                Ok(Self::Live(tokio::spawn(read_live_stream(stream, Arc::clone(received)))))
            }
        }
    }

    async fn stop(self) {
        match self {
            // An error is ignored: the node stops next.
            Self::Mqtt(client) => drop(client.disconnect().await),
            Self::Live(task) => task.abort(),
        }
    }
}

async fn subscribe(address: SocketAddr, received: Shared) -> Result<Client, BenchError> {
    let take = move |message: viaduct_mqtt::Message| {
        let now = clock::tai();
        let properties = &message.properties.user_properties;
        let property = |name: &str| properties.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let meta = hops::of(property).and_then(Result::ok).map(|arrived| arrived.meta);
        let mut received = lock(&received);
        received.record(meta.map(|meta| micros(now.since(meta.origin))));
        if let Some(meta) = meta {
            received.record_hops(&meta, HopStamp::new(HopName::new(READER), HopKind::Received, now));
        }
    };
    subscribe_mqtt(address, take).await
}

/// Connects a client that subscribes to every V2X message.
pub(super) async fn subscribe_mqtt(
    address: SocketAddr,
    take: impl Fn(viaduct_mqtt::Message) + Send + Sync + 'static,
) -> Result<Client, BenchError> {
    let client = connect_mqtt("bench-reader", address).await?;
    let failed = BenchError::part("cannot subscribe by MQTT");
    client.subscribe("its/rx/+", SubscribeOptions::default(), take).await.map_err(failed)?;
    Ok(client)
}

async fn open_live_stream(address: SocketAddr) -> std::io::Result<BufReader<TcpStream>> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let request = format!("GET /v1/live HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut stream = BufReader::new(stream);
    let mut status = String::new();
    stream.read_line(&mut status).await?;
    if status.contains(" 200 ") { Ok(stream) } else { Err(std::io::Error::other(status.trim().to_owned())) }
}

/// Reads events until the stream ends. The header of an HTTP chunk is a separate line, so lines of events stay whole.
async fn read_live_stream(stream: BufReader<TcpStream>, received: Shared) {
    let mut lines = stream.lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let now = clock::tai().unix_nanos();
        if let Some(feature) = line.strip_prefix("data:").filter(|data| data.contains("\"reception_time\":")) {
            let reception = reception_nanos_of_day(feature);
            lock(&received).record(reception.map(|reception| (now - reception).rem_euclid(NANOS_PER_DAY) as f64 / 1e3));
        }
    }
}

/// Parses a feature's `"reception_time":"2024-09-11T13:30:34.092870Z"`. Returns nanoseconds since midnight UTC.
fn reception_nanos_of_day(feature: &str) -> Option<i64> {
    let (_, after) = feature.split_once("\"reception_time\":\"")?;
    let (_, time) = after.split_once('T')?;
    let (time, _) = time.split_once('Z')?;
    let mut parts = time.split(':');
    let hours: i64 = parts.next()?.parse().ok()?;
    let minutes: i64 = parts.next()?.parse().ok()?;
    let (seconds, micros) = parts.next()?.split_once('.')?;
    let seconds = (hours * 60 + minutes) * 60 + seconds.parse::<i64>().ok()?;
    let micros = if micros.len() == 6 { micros.parse::<i64>().ok()? } else { return None };
    Some((seconds * 1_000_000 + micros) * 1_000)
}

impl Received {
    /// Counts a message. Records its latency, if known, after the warm-up.
    fn record(&mut self, latency: Option<f64>) {
        self.arrived += 1;
        if self.warm {
            self.latencies.extend(latency);
        }
    }

    fn record_hops(&mut self, meta: &Meta, end: HopStamp) {
        if !self.warm {
            return;
        }
        let mut before = HopStamp::new(HopName::new(ORIGIN), HopKind::Published, meta.origin);
        for stamp in meta.stamps().iter().copied().chain([end]) {
            let hop = (before.hop, stamp.hop);
            let latency = micros(stamp.at.since(before.at));
            match self.hops.iter_mut().find(|(known, _)| *known == hop) {
                Some((_, latencies)) => latencies.push(latency),
                None => self.hops.push((hop, vec![latency])),
            }
            before = stamp;
        }
    }
}

fn lock(received: &Shared) -> std::sync::MutexGuard<'_, Received> {
    received.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn free_tcp_address() -> Result<SocketAddr, BenchError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    listener.map_err(BenchError::system("cannot find a free TCP port"))
}

/// Returns the settings of a multicast group with an unused port, limited to this machine.
pub(super) fn free_group() -> Result<String, BenchError> {
    Ok(format!("{{ group: \"{}\", interface: 127.0.0.1 }}", free_group_address()?))
}

/// Returns the multicast group of the stations with an unused port.
pub(super) fn free_group_address() -> Result<SocketAddrV4, BenchError> {
    let address = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| socket.local_addr());
    let port = address.map_err(BenchError::system("cannot find a free UDP port"))?.port();
    Ok(SocketAddrV4::new(Ipv4Addr::from(UDP_MULTICAST_GROUP), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_the_reception_time_of_a_feature() {
        let feature = r#"{"properties":{"reception_time":"2024-09-11T13:30:34.092870Z","generation_time":"x"}}"#;
        assert_eq!(reception_nanos_of_day(feature), Some(48_634_092_870_000));
        assert_eq!(reception_nanos_of_day("{}"), None);
    }
}
