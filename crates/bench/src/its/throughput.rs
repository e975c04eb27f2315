//! Throughput rows: frames in memory to JSON on one thread, and on to an MQTT subscriber; below them the bare sockets.

use std::hint::black_box;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mqtt5::MqttClient;
use mqtt5::broker::config::{StorageBackend, StorageConfig};
use mqtt5::broker::{BrokerConfig, BrokerShutdownHandle, MqttBroker};
use serde_json::json;
use serde_json::value::RawValue;
use viaduct_bus::clock;
use viaduct_components::its_station::received_message;
use viaduct_its::access::MacAddress;
use viaduct_its::facilities::{Message, MessageKind};
use viaduct_its::{Event, Station, StationSettings};
use viaduct_messages::viaduct::its::{AccessLayer, V2xMessage};

use super::Options;
use super::corpus::{Corpus, Packet};
use crate::error::BenchError;
use crate::floor::{self, Received};
use crate::paper;
use crate::report::{Beside, Row};

/// Messages that wait for one MQTT client of the broker.
const QUEUE: usize = 100_000;

/// A subscriber that got nothing for this long has all that will come.
const SILENCE: Duration = Duration::from_millis(300);

pub(super) fn rows(corpus: &Corpus, options: &Options) -> Result<Vec<Row>, BenchError> {
    let params = |cores: u32| json!({ "of": corpus.name, "cores": cores });
    let row = |name, cores, got: Received, paper, floor| Row {
        beside: Beside { paper, floor, late: None },
        ..Row::rate(name, &params(cores), got.messages, got.seconds, got.lost)
    };
    let per_second = |got: Received| (got.seconds > 0.0).then(|| got.messages as f64 / got.seconds);

    let mut pipeline = Pipeline::new();
    let json_lengths: Vec<usize> = corpus.packets.iter().filter_map(|one| Some(pipeline.json(one)?.len())).collect();
    let udp = floor::udp_receive(&corpus.frame_lengths(), options.throughput)?;
    let tcp = floor::tcp(&json_lengths, options.throughput)?;
    let to_json = decode_to_json(&mut pipeline, corpus, options.throughput);
    let to_mqtt = decode_to_mqtt(&mut pipeline, corpus, options.throughput)?;
    let paper = Some(paper::OBU_CAPACITY_HZ);
    Ok(vec![
        row("viaduct.decode_to_json", 1, to_json, paper, per_second(udp)),
        row("viaduct.decode_to_mqtt", 2, to_mqtt, paper, per_second(tcp)),
        row("floor.udp_receive", 2, udp, None, None),
        row("floor.tcp_send", 2, tcp, None, None),
    ])
}

/// What a node does with a frame: the station's machine makes a bus message of it, and the route's encoder, which gets
/// only the bus message, decodes the payload once more to write it as JSON.
struct Pipeline {
    station: Station,
}

impl Pipeline {
    fn new() -> Self {
        let settings = StationSettings {
            link_address: MacAddress([2, 0, 0, 0, 0, 1]),
            station_type: 15,
            mobile: false,
            beacons: false,
        };
        Self { station: Station::new(settings, 1) }
    }

    fn json(&mut self, packet: &Packet) -> Option<Vec<u8>> {
        self.station.handle_frame(clock::now(), black_box(&packet.frame));
        let message = self.bus_message()?;
        let kind = MessageKind::from_label(message.r#type().topic_level())?;
        let mut decoded = Vec::new();
        Message::decode(kind, &message.payload).ok()?.write_json(&mut decoded);
        let decoded = RawValue::from_string(String::from_utf8(decoded).ok()?).ok()?;
        let mut out = Vec::with_capacity(512 + decoded.get().len());
        message.write_json(Some(&decoded), &mut out).ok()?;
        Some(out)
    }

    fn bus_message(&mut self) -> Option<V2xMessage> {
        match self.station.poll_event()? {
            Event::Received(packet) => Some(received_message(&packet, "bench/station", AccessLayer::UdpMulticast, 0)),
            Event::Beacon(_) | Event::Dropped(_) => None,
        }
    }
}

fn decode_to_json(pipeline: &mut Pipeline, corpus: &Corpus, time: Duration) -> Received {
    let start = Instant::now();
    let (mut messages, mut lost) = (0, 0);
    for packet in corpus.packets.iter().cycle() {
        if start.elapsed() >= time {
            break;
        }
        match pipeline.json(packet) {
            Some(json) => {
                black_box(json);
                messages += 1;
            }
            None => lost += 1,
        }
    }
    Received { messages, seconds: start.elapsed().as_secs_f64(), lost }
}

/// The same, and each text goes by QoS 0 through a broker in this process to a subscriber, over TCP both times. What
/// counts is what the subscriber got.
fn decode_to_mqtt(pipeline: &mut Pipeline, corpus: &Corpus, time: Duration) -> Result<Received, BenchError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(BenchError::system("cannot start the runtime"))?;
    runtime.block_on(async {
        let broker = Broker::start().await?;
        let got = Arc::new(AtomicU64::new(0));
        let reader = broker.count_arrivals(Arc::clone(&got)).await.map_err(BenchError::part("MQTT"))?;
        let writer = MqttClient::new("bench-writer");
        writer.connect(&broker.address).await.map_err(BenchError::part("MQTT"))?;
        let start = Instant::now();
        let sent = publish_all(&writer, pipeline, corpus, time).await?;
        let last = wait_for(&got, sent).await;
        let messages = got.load(Ordering::Relaxed);
        let seconds = last.saturating_duration_since(start).as_secs_f64();
        // Who does not get its goodbye is gone with the runtime.
        let _ = writer.disconnect().await;
        let _ = reader.disconnect().await;
        broker.stop().await;
        Ok(Received { messages, seconds, lost: sent.saturating_sub(messages) })
    })
}

/// Publishes for that time as fast as it can; how many.
async fn publish_all(
    writer: &MqttClient,
    pipeline: &mut Pipeline,
    corpus: &Corpus,
    time: Duration,
) -> Result<u64, BenchError> {
    let (start, mut sent) = (Instant::now(), 0);
    for packet in corpus.packets.iter().cycle() {
        if start.elapsed() >= time {
            break;
        }
        let json = pipeline.json(packet).ok_or_else(|| BenchError::broken("MQTT", "a frame was refused"))?;
        writer.publish_qos0("its/rx/cam", json).await.map_err(BenchError::part("MQTT"))?;
        sent += 1;
    }
    Ok(sent)
}

/// A broker on loopback.
struct Broker {
    address: String,
    shutdown: BrokerShutdownHandle,
    serving: tokio::task::JoinHandle<mqtt5::Result<()>>,
}

impl Broker {
    async fn start() -> Result<Self, BenchError> {
        let config = BrokerConfig { client_channel_capacity: QUEUE, ..BrokerConfig::default() }
            .with_bind_address(SocketAddr::from(([127, 0, 0, 1], 0)))
            .with_storage(StorageConfig { backend: StorageBackend::Memory, ..StorageConfig::default() });
        let mut engine = MqttBroker::with_config(config).await.map_err(BenchError::part("the MQTT broker"))?;
        let address = engine.local_addr().ok_or_else(|| BenchError::broken("the MQTT broker", "it has no address"))?;
        let shutdown = engine.shutdown_handle();
        let serving = tokio::spawn(async move { engine.run().await });
        Ok(Self { address: format!("mqtt://{address}"), shutdown, serving })
    }

    /// A client that counts what it gets.
    async fn count_arrivals(&self, got: Arc<AtomicU64>) -> mqtt5::Result<MqttClient> {
        let client = MqttClient::new("bench-reader");
        client.connect(&self.address).await?;
        let count = move |message: mqtt5::types::Message| {
            black_box(message);
            got.fetch_add(1, Ordering::Relaxed);
        };
        client.subscribe("its/rx/+", count).await?;
        Ok(client)
    }

    async fn stop(self) {
        self.shutdown.shutdown();
        let _ = tokio::time::timeout(Duration::from_secs(1), self.serving).await;
    }
}

/// Waits until so many came, or no more come; when the last one came.
async fn wait_for(got: &AtomicU64, sent: u64) -> Instant {
    let (mut seen, mut last) = (got.load(Ordering::Relaxed), Instant::now());
    while seen < sent && last.elapsed() < SILENCE {
        tokio::time::sleep(Duration::from_millis(2)).await;
        let now = got.load(Ordering::Relaxed);
        if now > seen {
            (seen, last) = (now, Instant::now());
        }
    }
    last
}
