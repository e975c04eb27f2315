//! Two ends of a flow of frames over emulated links, in virtual time.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "shared by several tests and an example")]

use std::{net::SocketAddr, num::NonZeroU64, time::Duration};

use bytes::Bytes;
use viaduct_netem::{
    DatagramMachine, LinkSettings, Pair, PairSettings, Probability,
    config::Duplex,
    link::{Bottleneck, Delay, Loss, Outages, RandomOutages, overhead},
};
use viaduct_teleop::{
    frames::{
        ArrivedFrame, LostFrame, Receiver, ReceiverEvent, ReceiverSettings, Sender, SenderEvent, SenderSettings,
        SentFrame, StreamSettings,
    },
    wire::StreamId,
};
use viaduct_units::Mono;

pub const MS: Duration = Duration::from_millis(1);

/// The sender's end, and the results of its frames.
pub struct SenderEnd {
    pub sender: Sender,
    pub finished: Vec<SentFrame>,
    peer: SocketAddr,
}

/// The receiver's end, and the frames that it delivered with the time of delivery.
pub struct ReceiverEnd {
    pub receiver: Receiver,
    pub arrived: Vec<(Mono, ArrivedFrame)>,
    pub lost: Vec<LostFrame>,
    peer: SocketAddr,
}

impl SenderEnd {
    pub fn drain(&mut self) {
        while let Some(event) = self.sender.poll_event() {
            if let SenderEvent::Frame(frame) = event {
                self.finished.push(frame);
            }
        }
    }
}

impl ReceiverEnd {
    fn drain(&mut self, now: Mono) {
        while let Some(event) = self.receiver.poll_event() {
            match event {
                ReceiverEvent::Arrived(mut frame) => {
                    assert!(is_picture(&frame.data), "the frame differs from the one that was sent");
                    // A long run has more frames than fit into memory.
                    frame.data = Bytes::new();
                    self.arrived.push((now, frame));
                }
                ReceiverEvent::Lost(frame) => self.lost.push(frame),
                ReceiverEvent::SenderRestarted => {}
            }
        }
    }
}

impl DatagramMachine for SenderEnd {
    fn handle_datagram(&mut self, now: Mono, _: SocketAddr, datagram: &Bytes) {
        self.sender.handle_datagram(now, datagram);
        self.drain();
    }

    fn handle_timeout(&mut self, now: Mono) {
        self.sender.handle_timeout(now);
        self.drain();
    }

    fn poll_transmit(&mut self) -> Option<(SocketAddr, Bytes)> {
        self.sender.poll_transmit().map(|datagram| (self.peer, datagram))
    }

    fn poll_timeout(&self) -> Option<Mono> {
        self.sender.poll_timeout()
    }
}

impl DatagramMachine for ReceiverEnd {
    fn handle_datagram(&mut self, now: Mono, _: SocketAddr, datagram: &Bytes) {
        self.receiver.handle_datagram(now, datagram);
        self.drain(now);
    }

    fn handle_timeout(&mut self, now: Mono) {
        self.receiver.handle_timeout(now);
        self.drain(now);
    }

    fn poll_transmit(&mut self) -> Option<(SocketAddr, Bytes)> {
        self.receiver.poll_transmit().map(|datagram| (self.peer, datagram))
    }

    fn poll_timeout(&self) -> Option<Mono> {
        self.receiver.poll_timeout()
    }
}

pub type Flow = Pair<SenderEnd, ReceiverEnd>;

/// Returns a link of the given rate and delay.
pub fn link(bits_per_second: u64, delay: Duration, loss: Loss) -> LinkSettings {
    let rate = NonZeroU64::new(bits_per_second).unwrap();
    LinkSettings {
        bottleneck: Bottleneck::Rate { bits_per_second: rate, queue_octets: 4 << 20 },
        loss,
        delay: Delay { base: delay, ..Delay::default() },
        overhead_octets: overhead::ETHERNET,
        ..LinkSettings::default()
    }
}

/// Returns a link of 1 Gbit/s with a round trip of 0.3 ms.
pub fn ethernet(loss: Loss) -> LinkSettings {
    link(1_000_000_000, Duration::from_micros(150), loss)
}

/// Returns random outages with a mean of 30 ms, for 5 % of the time.
pub fn outages_of_30_ms() -> Outages {
    Outages::Random(RandomOutages { duration: 30 * MS, between: 570 * MS })
}

pub fn independent(loss: f64) -> Loss {
    Loss::Independent(Probability::new(loss).unwrap())
}

/// Returns a flow of the given number of cameras over a link, with the same link for feedback.
pub fn flow(cameras: u8, link: LinkSettings, seed: u64) -> Flow {
    flow_with(SenderSettings { streams: streams(cameras), ..SenderSettings::default() }, link, seed)
}

/// Returns the streams of the given number of cameras.
pub fn streams(cameras: u8) -> Vec<StreamSettings> {
    let stream = |id| StreamSettings { id: StreamId(id), priority: id, ..StreamSettings::default() };
    (0..cameras).map(stream).collect()
}

pub fn flow_with(settings: SenderSettings, link: LinkSettings, seed: u64) -> Flow {
    flow_over(settings, Duplex::symmetric(link), seed)
}

pub fn flow_over(settings: SenderSettings, links: Duplex<LinkSettings>, seed: u64) -> Flow {
    // Beside UDP and IP, each datagram has 24 octets of encryption.
    let header_octets = overhead::IPV4_UDP + 24;
    let clock_b = Mono(Duration::from_secs(12_345));
    let Duplex { a_to_b, b_to_a } = links;
    let pair = PairSettings { header_octets, clock_b, seed, a_to_b, b_to_a, ..PairSettings::default() };
    let sender = SenderEnd { sender: Sender::new(settings, 1).unwrap(), finished: Vec::new(), peer: pair.address_b };
    let receiver = ReceiverEnd {
        receiver: Receiver::new(ReceiverSettings::default(), 2),
        arrived: Vec::new(),
        lost: Vec::new(),
        peer: pair.address_a,
    };
    Pair::new(pair, sender, receiver).unwrap()
}

/// Returns a frame of the given length that differs from others.
pub fn picture(number: u32, octets: usize) -> Bytes {
    let mut picture = vec![number as u8; octets];
    picture.iter_mut().zip(number.to_be_bytes()).for_each(|(octet, of_number)| *octet = of_number);
    picture.into()
}

/// Returns `true` if all octets are those of one picture.
fn is_picture(octets: &[u8]) -> bool {
    let Some((number, rest)) = octets.split_first_chunk::<4>() else { return false };
    rest.iter().all(|octet| *octet == number[3])
}

/// Sends one picture of each camera every 100 ms, then waits for the last ones.
pub fn drive(flow: &mut Flow, cameras: u8, octets: usize, rounds: u32) -> Vec<Duration> {
    let mut latencies = Vec::new();
    for round in 0..rounds {
        let start = flow.now();
        for camera in 0..cameras {
            flow.with_a(|end, now| end.sender.push(now, StreamId(camera), picture(round, octets)).unwrap());
        }
        flow.run_until(start.plus(100 * MS));
    }
    flow.run_for(Duration::from_secs(1));
    let clock_b = Duration::from_secs(12_345);
    for (time, frame) in &flow.b().arrived {
        let pushed = Duration::from_millis(100) * frame.number;
        latencies.push(time.0 - clock_b - pushed);
    }
    latencies
}

/// Mean, 99th percentile and maximum in milliseconds.
pub fn summary(latencies: &[Duration]) -> (f64, f64, f64) {
    let mut ms: Vec<f64> = latencies.iter().map(|latency| latency.as_secs_f64() * 1e3).collect();
    ms.sort_by(f64::total_cmp);
    let mean = ms.iter().sum::<f64>() / ms.len().max(1) as f64;
    let p99 = ms.get((ms.len() * 99).div_ceil(100).saturating_sub(1)).copied().unwrap_or(f64::NAN);
    (mean, p99, ms.last().copied().unwrap_or(f64::NAN))
}

/// The result of frames whose size follows the link.
#[derive(Debug)]
pub struct Adaptive {
    pub sent: u64,
    /// Pictures that were not taken because there was no budget.
    pub skipped: u64,
    pub arrived: u64,
    pub late: u64,
    pub octets: u64,
    pub latencies: Vec<Duration>,
    pub queue_max: usize,
}

/// Smallest useful picture.
const PICTURE_OCTETS_MIN: usize = 1500;
const PICTURE_OCTETS_MAX: usize = 60_000;

/// Sends one picture of each camera every 100 ms, as large as the budget allows, the first camera before the others.
pub fn drive_adaptive(flow: &mut Flow, cameras: u8, rounds: u32, lifespan: Duration) -> Adaptive {
    let mut result =
        Adaptive { sent: 0, skipped: 0, arrived: 0, late: 0, octets: 0, latencies: Vec::new(), queue_max: 0 };
    let mut pushed = std::collections::BTreeMap::new();
    for round in 0..rounds {
        let start = flow.now();
        for camera in 0..cameras {
            let budget = flow.with_a(|end, now| {
                end.sender.handle_timeout(now);
                end.sender.budget_octets()
            });
            let octets = (budget / usize::from(cameras - camera)).min(PICTURE_OCTETS_MAX);
            if octets < PICTURE_OCTETS_MIN {
                result.skipped += 1;
                continue;
            }
            result.sent += 1;
            result.octets += octets as u64;
            let stream = StreamId(camera);
            let number = flow.with_a(|end, now| end.sender.push(now, stream, picture(round, octets)).unwrap());
            pushed.insert((stream, number), start);
        }
        for part in 1..=10_u32 {
            flow.run_until(start.plus(10 * MS * part));
            result.queue_max = result.queue_max.max(flow.queued_a_to_b());
        }
    }
    flow.run_for(Duration::from_secs(1));
    for (time, frame) in &flow.b().arrived {
        let latency = time.since(Mono(Duration::from_secs(12_345))) - pushed[&(frame.stream, frame.number)].0;
        result.arrived += 1;
        result.late += u64::from(latency > lifespan);
        result.latencies.push(latency);
    }
    result
}
