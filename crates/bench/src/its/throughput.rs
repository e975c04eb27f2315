//! Throughput rows: frames in memory to JSON on one thread, and to an MQTT subscriber through a real node; below them a
//! bare TCP connection.
//!
//! ```text
//! one thread:    frame -> its (network, facilities) -> bus message -> JSON
//! whole process: frame -> its -> bus message -> bus -+- mqtt_broker (its route) ---------- TCP --> subscriber
//!                                                    +- mqtt_bridge -- TCP --> mqtt_broker - TCP --> subscriber
//! ```
//!
//! Rows are measured in rounds, one after the other in each, so that a busy minute of the machine hits all of them; the rate
//! is the median of the rounds. A row's threads (who decodes, the node's, its runtime's, the subscriber's) are kept on as many cores as its parameter
//! `cores` says.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use serde_json::value::RawValue;
use tokio::runtime::Runtime;
use viaduct_bus::{Meta, Publisher, Qos, clock};
use viaduct_components::v2x::received_message;
use viaduct_its::access::MacAddress;
use viaduct_its::facilities::MessageKind;
use viaduct_its::{Event, Received as ReceivedPacket, Station, StationSettings};
use viaduct_messages::topic;
use viaduct_messages::viaduct::its::{AccessLayer, V2xMessage};
use viaduct_mqtt::client::Client;
use viaduct_node::Node;
use viaduct_units::StationType;

use super::Options;
use super::corpus::{Corpus, Packet};
use super::end_to_end::{self, Way};
use crate::error::BenchError;
use crate::floor::{self, Received};
use crate::report::{Beside, Row};
use crate::statistics::Summary;
use crate::{paper, sys};

/// Messages that may be on their way: half of what a route's queue on the bus holds (1024), so that none is dropped there
/// because we are too fast, and enough to keep every thread busy.
const WINDOW: u64 = 512;

/// How long the producer sleeps while the window is full: a fraction of the time that the window takes.
const NAP: Duration = Duration::from_micros(500);

/// A subscriber that got nothing for this long has all that will come; what is missing is lost.
const SILENCE: Duration = Duration::from_secs(3);

/// What the producer offers, as an `its_station` does.
const OFFERED: Qos = Qos::reliable(4096, Duration::ZERO);

/// One row in the making.
struct Case {
    what: What,
    cores: usize,
    /// One a round.
    got: Vec<Received>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Json,
    Mqtt(Way),
    Tcp,
}

pub(super) fn rows(corpus: &Corpus, options: &Options) -> Result<Vec<Row>, BenchError> {
    let mut cases = cases();
    let rounds = options.throughput_rounds.max(1);
    for _ in 0..rounds {
        for case in &mut cases {
            case.measure(corpus, options.throughput / rounds)?;
        }
    }
    Ok(cases.iter().map(|case| case.row(corpus, &cases)).collect())
}

/// Rows with two cores are there where there are two.
fn cases() -> Vec<Case> {
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    let case = |(what, cores)| Case { what, cores, got: Vec::new() };
    let cases = [
        (What::Json, 1),
        (What::Mqtt(Way::Broker), 1),
        (What::Mqtt(Way::Bridge), 1),
        (What::Tcp, 1),
        (What::Mqtt(Way::Broker), 2),
        (What::Mqtt(Way::Bridge), 2),
        (What::Tcp, 2),
    ];
    cases.into_iter().filter(|(_, cores)| *cores <= available).map(case).collect()
}

impl What {
    const fn row(self) -> &'static str {
        match self {
            Self::Json => "viaduct.decode_to_json",
            Self::Mqtt(_) => "viaduct.decode_to_mqtt",
            Self::Tcp => "floor.tcp_send",
        }
    }

    const fn by(self) -> Option<&'static str> {
        match self {
            Self::Mqtt(way) => Some(way.by()),
            Self::Json | Self::Tcp => None,
        }
    }
}

impl Case {
    fn measure(&mut self, corpus: &Corpus, time: Duration) -> Result<(), BenchError> {
        let (what, cores) = (self.what, self.cores);
        self.got.push(on_cores(cores, || match what {
            What::Json => decode_to_json(corpus, time),
            What::Mqtt(way) => decode_to_mqtt(way, corpus, cores, time),
            What::Tcp => floor::tcp(&json_lengths(corpus), time),
        })?);
        Ok(())
    }

    fn row(&self, corpus: &Corpus, all: &[Self]) -> Row {
        let rounds = self.got.len();
        let params = json!({ "of": corpus.name, "by": self.what.by(), "cores": self.cores, "rounds": rounds });
        let sum = |count: fn(&Received) -> u64| self.got.iter().map(count).sum();
        let (messages, lost) = (sum(|got| got.messages), sum(|got| got.lost));
        let row = Row::rates(self.what.row(), &params, self.rates(), messages, lost);
        Row { beside: self.beside(all), ..row }
    }

    /// Only what ends in an MQTT subscriber has something to be compared with: the paper's capacity is one of the way to
    /// MQTT, and what stays in memory has no socket below it.
    fn beside(&self, all: &[Self]) -> Beside {
        let What::Mqtt(_) = self.what else {
            return Beside::default();
        };
        let floor = all.iter().find(|case| case.what == What::Tcp && case.cores == self.cores);
        let floor = floor.and_then(|case| Summary::of(&case.rates())).map(|summary| summary.p50);
        Beside { paper: Some(paper::OBU_CAPACITY_HZ), floor, ..Beside::default() }
    }

    fn rates(&self) -> Vec<f64> {
        let rounds = self.got.iter().filter(|got| got.seconds > 0.0);
        rounds.map(|got| got.messages as f64 / got.seconds).collect()
    }
}

/// Runs it on a thread that, with all threads that it starts, has so many cores.
fn on_cores<R: Send>(cores: usize, work: impl FnOnce() -> Result<R, BenchError> + Send) -> Result<R, BenchError> {
    let pinned = move || {
        sys::pin(cores).map_err(BenchError::system("cannot choose the cores"))?;
        work()
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("bench-throughput".to_owned()).spawn_scoped(scope, pinned);
        let thread = thread.map_err(BenchError::system("cannot start a thread"))?;
        thread.join().map_err(|_| BenchError::broken("throughput", "the thread panicked"))?
    })
}

/// What an `its_station` does with a frame: its machine takes it, and what comes out becomes a message of the bus.
struct Decoder {
    station: Station,
}

impl Decoder {
    fn new() -> Self {
        let settings = StationSettings {
            link_address: MacAddress([2, 0, 0, 0, 0, 1]),
            station_type: StationType::ROADSIDE_UNIT,
            mobile: false,
            beacons: false,
        };
        Self { station: Station::new(settings, 1) }
    }

    fn bus_message(&mut self, packet: &Packet) -> Option<(Box<ReceivedPacket>, V2xMessage)> {
        self.station.handle_frame(clock::now(), black_box(&packet.frame));
        match self.station.poll_event()? {
            Event::Received(packet) => {
                let message = received_message(&packet, "bench/station", AccessLayer::UdpMulticast, 0);
                Some((packet, message))
            }
            Event::Relayed | Event::Beacon(_) | Event::LocationService | Event::Dropped(_) => None,
        }
    }

    /// The JSON of a V2X message, with the decoded message inside.
    fn json(&mut self, packet: &Packet) -> Option<Vec<u8>> {
        let (packet, message) = self.bus_message(packet)?;
        json_text(&packet, &message)
    }
}

/// The JSON of a V2X message, with the decoded message of its packet inside.
pub(super) fn json_text(packet: &ReceivedPacket, message: &V2xMessage) -> Option<Vec<u8>> {
    let mut decoded = Vec::new();
    packet.message.write_json(&mut decoded);
    let decoded = RawValue::from_string(String::from_utf8(decoded).ok()?).ok()?;
    let mut out = Vec::with_capacity(512 + decoded.get().len());
    message.write_json(Some(&decoded), &mut out).ok()?;
    Some(out)
}

/// Lengths of the packets' messages as JSON.
pub(super) fn json_lengths(corpus: &Corpus) -> Vec<usize> {
    let mut decoder = Decoder::new();
    corpus.packets.iter().filter_map(|packet| Some(decoder.json(packet)?.len())).collect()
}

fn decode_to_json(corpus: &Corpus, time: Duration) -> Result<Received, BenchError> {
    let mut decoder = Decoder::new();
    let start = Instant::now();
    let (mut messages, mut lost) = (0, 0);
    for packet in corpus.packets.iter().cycle() {
        if start.elapsed() >= time {
            break;
        }
        match decoder.json(packet) {
            Some(json) => {
                black_box(json);
                messages += 1;
            }
            None => lost += 1,
        }
    }
    Ok(Received { messages, seconds: start.elapsed().as_secs_f64(), lost })
}

/// What counts is what the subscriber got, up to the moment at which it got the last one.
fn decode_to_mqtt(way: Way, corpus: &Corpus, cores: usize, time: Duration) -> Result<Received, BenchError> {
    let mut line = Line::start(way, cores)?;
    // Threads start and buffers grow in the first window, which does not count.
    let mut packets = corpus.packets.iter().cycle();
    for packet in packets.by_ref().take(usize::try_from(WINDOW).unwrap_or(usize::MAX)) {
        line.send(packet)?;
    }
    line.wait_for_the_last();
    let (sent, arrived, start) = (line.sent, line.arrived(), Instant::now());
    for packet in packets {
        if start.elapsed() >= time {
            break;
        }
        line.send(packet)?;
    }
    let end = line.wait_for_the_last();
    let messages = line.arrived() - arrived;
    let lost = (line.sent - sent).saturating_sub(messages);
    let seconds = end.saturating_duration_since(start).as_secs_f64();
    line.stop();
    Ok(Received { messages, seconds, lost })
}

/// The node that also receives live packets, with a subscriber. Nobody sends to its station: the producer gives the bus
/// what the station would.
struct Line {
    decoder: Decoder,
    publishers: BTreeMap<MessageKind, Publisher<V2xMessage>>,
    sent: u64,
    /// Messages that will never arrive, so that the window does not wait for them again.
    given_up: u64,
    got: Arc<AtomicU64>,
    reader: Client,
    node: Node,
    runtime: Runtime,
}

impl Line {
    fn start(way: Way, cores: usize) -> Result<Self, BenchError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(cores)
            .enable_all()
            .build()
            .map_err(BenchError::system("cannot start the runtime"))?;
        let listen = end_to_end::free_tcp_address()?;
        let node = end_to_end::start("edge.yaml", &way.edge(listen, &end_to_end::free_group()?), &runtime)?;
        let open = |kind: MessageKind| {
            let topic = format!("{}/{}", topic::ITS_RX, kind.label());
            let publisher = node.bus().publisher::<V2xMessage>(&topic, OFFERED, "station");
            Ok((kind, publisher.map_err(BenchError::part("cannot open the topic"))?))
        };
        let publishers = MessageKind::ALL.into_iter().map(open).collect::<Result<_, BenchError>>()?;
        let got = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&got);
        let count = move |message: viaduct_mqtt::Message| {
            black_box(message);
            counter.fetch_add(1, Ordering::Relaxed);
        };
        let reader = runtime.block_on(end_to_end::subscribe_mqtt(listen, count))?;
        if way == Way::Bridge {
            wait_until_counted(&node, "uplink", "connected")?;
        }
        Ok(Self { decoder: Decoder::new(), publishers, sent: 0, given_up: 0, got, reader, node, runtime })
    }

    fn arrived(&self) -> u64 {
        self.got.load(Ordering::Relaxed)
    }

    fn under_way(&self) -> u64 {
        self.sent.saturating_sub(self.given_up + self.arrived())
    }

    /// Decodes and publishes, once there is room in the window.
    fn send(&mut self, packet: &Packet) -> Result<(), BenchError> {
        self.wait_below(WINDOW);
        let refused = || BenchError::broken("throughput", "a frame was refused");
        let (packet, message) = self.decoder.bus_message(packet).ok_or_else(refused)?;
        let publisher = self.publishers.get(&packet.kind).ok_or_else(refused)?;
        // A subscriber without room has counted the drop, and the message does not arrive.
        let _ = publisher.try_publish_from(&Meta::from_origin(clock::tai()), message);
        self.sent += 1;
        Ok(())
    }

    /// Waits until nothing is under way; when the last message arrived.
    fn wait_for_the_last(&mut self) -> Instant {
        self.wait_below(1)
    }

    /// Waits until fewer than that are under way, or are lost. When the last of those that arrived meanwhile did, as
    /// exactly as the nap allows.
    fn wait_below(&mut self, limit: u64) -> Instant {
        let (mut seen, mut last) = (self.arrived(), Instant::now());
        while self.under_way() >= limit {
            std::thread::sleep(NAP);
            let arrived = self.arrived();
            if arrived > seen {
                (seen, last) = (arrived, Instant::now());
            } else if last.elapsed() > SILENCE {
                self.given_up += self.under_way();
            }
        }
        last
    }

    fn stop(self) {
        // Who does not get its goodbye is gone with the runtime.
        drop(self.runtime.block_on(self.reader.disconnect()));
        self.node.stop();
    }
}

/// Waits until a bridge has counted that it is connected, or subscribed: before that, messages of QoS 0 are dropped.
pub(super) fn wait_until_counted(node: &Node, bridge: &str, counter: &str) -> Result<(), BenchError> {
    let counted = node.bus().counter(bridge, counter, None);
    let start = Instant::now();
    while counted.value() == 0 {
        if start.elapsed() > Duration::from_secs(5) {
            return Err(BenchError::broken(bridge, &format!("it is not {counter} to its broker")));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::its::corpus;

    #[test]
    fn what_is_counted_went_through_a_node_and_none_is_lost() {
        let _alone = crate::measuring_alone();
        let corpus = corpus::vectors().unwrap();
        for way in [Way::Broker, Way::Bridge] {
            let got = on_cores(1, || decode_to_mqtt(way, &corpus, 1, Duration::from_millis(300))).unwrap();
            assert!(got.messages > 0 && got.lost == 0 && got.seconds >= 0.3, "{way:?}: {got:?}");
        }
    }
}
