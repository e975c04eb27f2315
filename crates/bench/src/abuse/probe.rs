//! Clients that are served during an attack.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::target::Target;
use super::wire::{self, CLIENT, Wire, publish};
use crate::error::BenchError;
use crate::floor::{self, micros};
use crate::report::Row;

/// Time after which a message or a request counts as lost.
const TIME_MAX: Duration = Duration::from_secs(2);

/// Period of messages, and of requests.
const MESSAGE_PERIOD: Duration = Duration::from_millis(20);
const REQUEST_PERIOD: Duration = Duration::from_millis(50);

/// The clients.
pub(super) struct Probes {
    stop: Arc<AtomicBool>,
    threads: Vec<(&'static str, JoinHandle<Outcome>)>,
}

/// Result of a client.
pub(super) enum Outcome {
    /// Microseconds, and requests without an answer.
    Latencies(Vec<f64>, u64),
    /// Messages, and the time in seconds.
    Rate(u64, f64),
}

impl Outcome {
    pub(super) fn row(self, name: &str, params: &Value) -> Row {
        match self {
            Self::Latencies(samples, lost) => Row::latencies(name, params, samples, lost),
            Self::Rate(messages, time_s) => Row::rates(name, params, vec![messages as f64 / time_s], messages, 0),
        }
    }
}

impl Probes {
    pub(super) fn start(target: &Target) -> Result<Self, BenchError> {
        let stop = Arc::<AtomicBool>::default();
        let mut threads = Vec::new();
        let (running, mqtt) = (Arc::clone(&stop), target.mqtt);
        let client = connect(mqtt, "probe", "probe")?;
        threads.push(("mqtt", floor::spawn("probe-mqtt", move || messages(client, mqtt, &running))?));
        if let Some((api, _)) = target.http {
            let running = Arc::clone(&stop);
            let client = connect(mqtt, "cams", "cams")?;
            threads.push(("cams", floor::spawn("probe-cams", move || cams(client, &running))?));
            for (name, path) in [("api", "/v1/latest"), ("page", "/")] {
                let running = Arc::clone(&stop);
                threads.push((name, floor::spawn("probe-http", move || requests(api, path, &running))?));
            }
        }
        Ok(Self { stop, threads })
    }

    pub(super) fn stop(self) -> Result<Vec<(&'static str, Outcome)>, BenchError> {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().map(|(name, thread)| Ok((name, floor::join(name, thread)?))).collect()
    }
}

fn connect(mqtt: SocketAddr, name: &str, topic: &str) -> Result<Wire, BenchError> {
    let (mut client, _) = Wire::connect(CLIENT, mqtt, name, 0)?;
    client.subscribe(&[topic.to_owned()])?;
    client.set_time_max(TIME_MAX)?;
    Ok(client)
}

/// Publishes messages of QoS 1 and waits until each comes back.
fn messages(mut client: Wire, mqtt: SocketAddr, stop: &AtomicBool) -> Outcome {
    let (mut samples, mut lost) = (Vec::new(), 0);
    for number in 1_u16.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let start = Instant::now();
        match round_trip(&mut client, number % 60_000 + 1) {
            Ok(()) => samples.push(micros(start.elapsed())),
            Err(_) => {
                lost += 1;
                // The connection may have ended.
                if let Ok(again) = connect(mqtt, "probe", "probe") {
                    client = again;
                }
            }
        }
        std::thread::sleep(MESSAGE_PERIOD.saturating_sub(start.elapsed()));
    }
    Outcome::Latencies(samples, lost)
}

fn round_trip(client: &mut Wire, number: u16) -> Result<(), BenchError> {
    client.send(&publish("probe", 1, false, number, &number.to_be_bytes()))?;
    loop {
        let (head, body) = client.read()?;
        if head & 0xF0 == 0x30 {
            client.acknowledge(&body)?;
            if body.ends_with(&number.to_be_bytes()) {
                return Ok(());
            }
        }
    }
}

/// Counts the V2X messages that arrive.
fn cams(mut client: Wire, stop: &AtomicBool) -> Outcome {
    let (start, mut count) = (Instant::now(), 0);
    while !stop.load(Ordering::Relaxed) {
        // Without a message within the time, none is counted.
        if client.read().is_ok_and(|(head, _)| head & 0xF0 == 0x30) {
            count += 1;
        }
    }
    Outcome::Rate(count, start.elapsed().as_secs_f64())
}

/// Makes requests, each on a connection of its own.
fn requests(address: SocketAddr, path: &str, stop: &AtomicBool) -> Outcome {
    let (mut samples, mut lost) = (Vec::new(), 0);
    while !stop.load(Ordering::Relaxed) {
        let start = Instant::now();
        match request(address, path) {
            Some(()) => samples.push(micros(start.elapsed())),
            None => lost += 1,
        }
        std::thread::sleep(REQUEST_PERIOD.saturating_sub(start.elapsed()));
    }
    Outcome::Latencies(samples, lost)
}

fn request(address: SocketAddr, path: &str) -> Option<()> {
    let mut stream = wire::connect(CLIENT, address).ok()?;
    stream.set_read_timeout(Some(TIME_MAX)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    answer.starts_with(b"HTTP/1.1 200").then_some(())
}
