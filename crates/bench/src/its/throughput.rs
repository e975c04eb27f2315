//! Throughput of frames in memory to JSON on one thread, and to an MQTT subscriber through a real node. The floor is
//! a bare TCP connection.
//!
//! ```text
//! one thread:    frame -> its (network, facilities) -> bus message -> JSON
//! whole process: frame -> its -> bus message -> bus -+- mqtt_broker (its route) ---------- TCP --> subscriber
//!                                                    +- mqtt_bridge -- TCP --> mqtt_broker - TCP --> subscriber
//! ```
//!
//! Each round measures all rows, so that other load on the machine affects all of them; the rate is the median of the
//! rounds. All threads of a row (decoder, node, async runtime, subscriber) run on as many cores as its parameter
//! `cores`.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
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
use viaduct_v2x_json::write_message;

use super::Options;
use super::corpus::{Corpus, Packet};
use super::end_to_end::{self, Output};
use crate::error::BenchError;
use crate::floor::{self, Received};
use crate::report::{References, Row};
use crate::statistics::Summary;
use crate::{paper, sys};

/// Maximum number of messages in flight: half the capacity of a route's queue (1024), so that none is dropped there,
/// and enough to keep every thread busy.
const WINDOW: u64 = 512;

/// Interval at which the producer checks a full window, a fraction of the time that the window takes.
const POLL_INTERVAL: Duration = Duration::from_micros(500);

/// Time without a message after which the missing messages count as lost.
const SILENCE: Duration = Duration::from_secs(3);

/// Quality of service that the producer offers, the same as that of an `its_station`.
const OFFERED: Qos = Qos::reliable(4096, Duration::ZERO);

/// A row that is being measured.
struct Case {
    subject: Subject,
    cores: usize,
    /// One result per round.
    got: Vec<Received>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Subject {
    Json,
    Mqtt(Output),
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

/// Returns all cases. Cases with two cores are left out on a machine with one core.
fn cases() -> Vec<Case> {
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    let case = |(subject, cores)| Case { subject, cores, got: Vec::new() };
    let cases = [
        (Subject::Json, 1),
        (Subject::Mqtt(Output::Broker), 1),
        (Subject::Mqtt(Output::Bridge), 1),
        (Subject::Tcp, 1),
        (Subject::Mqtt(Output::Broker), 2),
        (Subject::Mqtt(Output::Bridge), 2),
        (Subject::Tcp, 2),
    ];
    cases.into_iter().filter(|(_, cores)| *cores <= available).map(case).collect()
}

impl Subject {
    const fn row(self) -> &'static str {
        match self {
            Self::Json => "viaduct.decode_to_json",
            Self::Mqtt(_) => "viaduct.decode_to_mqtt",
            Self::Tcp => "floor.tcp_send",
        }
    }

    const fn by(self) -> Option<&'static str> {
        match self {
            Self::Mqtt(output) => Some(output.by()),
            Self::Json | Self::Tcp => None,
        }
    }
}

impl Case {
    fn measure(&mut self, corpus: &Corpus, time: Duration) -> Result<(), BenchError> {
        let (subject, cores) = (self.subject, self.cores);
        self.got.push(on_cores(cores, || match subject {
            Subject::Json => decode_to_json(corpus, time),
            Subject::Mqtt(output) => decode_to_mqtt(output, corpus, cores, time),
            Subject::Tcp => floor::tcp(&json_lengths(corpus), time),
        })?);
        Ok(())
    }

    fn row(&self, corpus: &Corpus, all: &[Self]) -> Row {
        let rounds = self.got.len();
        let params = json!({ "of": corpus.name, "by": self.subject.by(), "cores": self.cores, "rounds": rounds });
        let sum = |count: fn(&Received) -> u64| self.got.iter().map(count).sum();
        let (messages, lost) = (sum(|got| got.messages), sum(|got| got.lost));
        let row = Row::rates(self.subject.row(), &params, self.rates(), messages, lost);
        Row { references: self.references(all), ..row }
    }

    /// Returns the references of a row to MQTT. Other rows have none: the paper's capacity includes MQTT, and a path
    /// in memory has no socket as its floor.
    fn references(&self, all: &[Self]) -> References {
        let Subject::Mqtt(_) = self.subject else {
            return References::default();
        };
        let floor = all.iter().find(|case| case.subject == Subject::Tcp && case.cores == self.cores);
        let floor = floor.and_then(|case| Summary::of(&case.rates())).map(|summary| summary.p50);
        References { paper: Some(paper::OBU_CAPACITY_HZ), floor, ..References::default() }
    }

    fn rates(&self) -> Vec<f64> {
        let rounds = self.got.iter().filter(|got| got.seconds > 0.0);
        rounds.map(|got| got.messages as f64 / got.seconds).collect()
    }
}

/// Runs a function on a thread that is restricted, with all threads it starts, to `cores` cores.
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

/// The receive path of an `its_station`: from a frame to a message of the bus.
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

    /// Returns a packet's V2X message as JSON, including the decoded message.
    fn json(&mut self, packet: &Packet) -> Option<Vec<u8>> {
        let (packet, message) = self.bus_message(packet)?;
        Some(json_text(&packet, &message))
    }
}

/// Returns a V2X message as JSON, including the decoded message of its packet.
pub(super) fn json_text(packet: &ReceivedPacket, message: &V2xMessage) -> Vec<u8> {
    let mut out = Vec::with_capacity(4096);
    write_message(message, Some(&packet.message), &mut out);
    out
}

/// Returns the length of each packet's message as JSON, in octets.
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

/// Counts the messages that the subscriber receives, up to the arrival of the last one.
fn decode_to_mqtt(output: Output, corpus: &Corpus, cores: usize, time: Duration) -> Result<Received, BenchError> {
    let mut pipeline = Pipeline::start(output, cores)?;
    // The first window is the warm-up: threads start and buffers grow.
    let mut packets = corpus.packets.iter().cycle();
    for packet in packets.by_ref().take(usize::try_from(WINDOW).unwrap_or(usize::MAX)) {
        pipeline.send(packet)?;
    }
    pipeline.wait_for_the_last();
    let sent = pipeline.sent;
    let arrived = pipeline.arrived();
    let start = Instant::now();
    for packet in packets {
        if start.elapsed() >= time {
            break;
        }
        pipeline.send(packet)?;
    }
    let end = pipeline.wait_for_the_last();
    let messages = pipeline.arrived() - arrived;
    let lost = (pipeline.sent - sent).saturating_sub(messages);
    let seconds = end.saturating_duration_since(start).as_secs_f64();
    pipeline.stop();
    Ok(Received { messages, seconds, lost })
}

/// A node with a station and a subscriber. The station receives no frames; the producer publishes in its place.
struct Pipeline {
    decoder: Decoder,
    publishers: BTreeMap<MessageKind, Publisher<V2xMessage>>,
    sent: u64,
    /// Number of messages that have timed out and no longer occupy the window.
    timed_out: u64,
    got: Arc<AtomicU64>,
    reader: Client,
    node: Node,
    runtime: Runtime,
}

impl Pipeline {
    fn start(output: Output, cores: usize) -> Result<Self, BenchError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(cores)
            .enable_all()
            .build()
            .map_err(BenchError::system("cannot start the runtime"))?;
        let listen = end_to_end::free_tcp_address()?;
        let node = end_to_end::start("edge.yaml", &output.edge(listen, &end_to_end::free_group()?), &runtime)?;
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
        if output == Output::Bridge {
            wait_until_counted(&node, "uplink", "connected")?;
        }
        Ok(Self { decoder: Decoder::new(), publishers, sent: 0, timed_out: 0, got, reader, node, runtime })
    }

    fn arrived(&self) -> u64 {
        self.got.load(Ordering::Relaxed)
    }

    fn in_flight(&self) -> u64 {
        self.sent.saturating_sub(self.timed_out + self.arrived())
    }

    /// Waits for space in the window, then decodes and publishes.
    fn send(&mut self, packet: &Packet) -> Result<(), BenchError> {
        self.wait_below(WINDOW);
        let refused = || BenchError::broken("throughput", "a frame cannot be decoded");
        let (packet, message) = self.decoder.bus_message(packet).ok_or_else(refused)?;
        let publisher = self.publishers.get(&packet.kind).ok_or_else(refused)?;
        // If a subscriber's queue is full, it counts the drop, and the message is missing in the result.
        let _ = publisher.try_publish_from(Meta::from_origin(clock::tai()), message);
        self.sent += 1;
        Ok(())
    }

    /// Waits until no message is in flight. Returns the arrival time of the last one.
    fn wait_for_the_last(&mut self) -> Instant {
        self.wait_below(1)
    }

    /// Waits until fewer than `limit` messages are in flight or the missing ones are lost. Returns the time of the
    /// last arrival, with the resolution of the poll interval.
    fn wait_below(&mut self, limit: u64) -> Instant {
        let mut seen = self.arrived();
        let mut last = Instant::now();
        while self.in_flight() >= limit {
            std::thread::sleep(POLL_INTERVAL);
            let arrived = self.arrived();
            if arrived > seen {
                (seen, last) = (arrived, Instant::now());
            } else if last.elapsed() > SILENCE {
                self.timed_out += self.in_flight();
            }
        }
        last
    }

    fn stop(self) {
        // An error is ignored: the runtime ends next.
        drop(self.runtime.block_on(self.reader.disconnect()));
        self.node.stop();
    }
}

/// Waits until a bridge's counter (`connected` or `subscribed`) is above 0. Before that, messages of QoS 0 are
/// dropped.
pub(super) fn wait_until_counted(node: &Node, bridge: &str, counter: &str) -> Result<(), BenchError> {
    let counted = node.bus().counter(bridge, counter, None);
    let start = Instant::now();
    while counted.value() == 0 {
        if start.elapsed() > Duration::from_secs(5) {
            return Err(BenchError::broken(bridge, &format!("not {counter} within 5 s")));
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
    fn all_counted_messages_pass_through_a_node() {
        let _lock = crate::measurement_lock();
        let corpus = corpus::vectors().unwrap();
        for output in [Output::Broker, Output::Bridge] {
            let got = on_cores(1, || decode_to_mqtt(output, &corpus, 1, Duration::from_millis(300))).unwrap();
            assert!(got.messages > 0 && got.lost == 0 && got.seconds >= 0.3, "{output:?}: {got:?}");
        }
    }
}
