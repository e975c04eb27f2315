//! Tests of two machines connected by two links.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the failure")]

use std::{collections::VecDeque, net::SocketAddr, num::NonZeroU64, time::Duration};

use bytes::Bytes;
use viaduct_netem::{
    DatagramMachine, LinkSettings, Pair, PairSettings, Probability,
    link::{Bottleneck, Delay, LinkDropReason, Loss, overhead},
};
use viaduct_units::Mono;

const MS: Duration = Duration::from_millis(1);

/// A machine that repeats a request until it is answered, and answers requests.
#[derive(Debug, Default)]
struct Echo {
    outbox: VecDeque<(SocketAddr, Bytes)>,
    /// Request without an answer, and the time of its next repetition.
    pending: Option<(SocketAddr, Bytes, Mono)>,
    /// Time, sender and payload of each datagram.
    received: Vec<(Mono, SocketAddr, Bytes)>,
    answers: bool,
}

impl Echo {
    fn request(&mut self, now: Mono, to: SocketAddr, payload: &'static [u8]) {
        let payload = Bytes::from_static(payload);
        self.outbox.push_back((to, payload.clone()));
        self.pending = Some((to, payload, now.plus(100 * MS)));
    }
}

impl DatagramMachine for Echo {
    fn handle_datagram(&mut self, now: Mono, from: SocketAddr, datagram: &Bytes) {
        self.received.push((now, from, datagram.clone()));
        self.pending = None;
        if self.answers {
            self.outbox.push_back((from, datagram.clone()));
        }
    }

    fn handle_timeout(&mut self, now: Mono) {
        if let Some((to, payload, due)) = &mut self.pending
            && *due <= now
        {
            self.outbox.push_back((*to, payload.clone()));
            *due = now.plus(100 * MS);
        }
    }

    fn poll_transmit(&mut self) -> Option<(SocketAddr, Bytes)> {
        self.outbox.pop_front()
    }

    fn poll_timeout(&self) -> Option<Mono> {
        self.pending.as_ref().map(|(.., due)| *due)
    }
}

fn echo(settings: PairSettings) -> Pair<Echo> {
    Pair::new(settings, Echo::default(), Echo { answers: true, ..Echo::default() }).unwrap()
}

fn delayed(delay: Duration) -> LinkSettings {
    LinkSettings { delay: Delay { base: delay, ..Delay::default() }, ..LinkSettings::default() }
}

#[test]
fn a_request_is_answered_after_the_delay_of_both_links() {
    let settings = PairSettings { a_to_b: delayed(5 * MS), b_to_a: delayed(7 * MS), ..PairSettings::default() };
    let mut pair = echo(settings);
    let (a, b) = (pair.address_a(), pair.address_b());
    pair.run_until(Mono(20 * MS));
    pair.with_a(|machine, now| machine.request(now, b, b"ping"));
    pair.run_until(Mono(1000 * MS));
    let ping = Bytes::from_static(b"ping");
    assert_eq!(pair.b().received, [(Mono(25 * MS), a, ping.clone())]);
    assert_eq!(pair.a().received, [(Mono(32 * MS), b, ping)]);
    assert_eq!((pair.now(), pair.poll_timeout()), (Mono(1000 * MS), None));
}

#[test]
fn deadlines_repeat_a_request_until_it_arrives() {
    let lossy = LinkSettings { loss: Loss::Independent(Probability::new(0.8).unwrap()), ..LinkSettings::default() };
    let mut pair = echo(PairSettings { a_to_b: lossy, ..PairSettings::default() });
    let b = pair.address_b();
    pair.with_a(|machine, now| machine.request(now, b, b"ping"));
    pair.run_for(Duration::from_secs(10));
    let attempts = pair.sent_by_a().datagrams;
    assert!(attempts > 1, "{attempts}");
    assert_eq!(pair.a_to_b().dropped(LinkDropReason::Lost), attempts - 1);
    assert_eq!(pair.a().received[0].0, Mono(100 * MS * u32::try_from(attempts - 1).unwrap()));
}

#[test]
fn headers_and_the_overhead_of_the_link_take_their_share_of_the_rate() {
    // 1 Mbit/s: an octet takes 8 us.
    let bottleneck = Bottleneck::Rate { bits_per_second: NonZeroU64::new(1_000_000).unwrap(), queue_octets: 10_000 };
    let link = LinkSettings { bottleneck, overhead_octets: overhead::ETHERNET, ..LinkSettings::default() };
    let mut pair = echo(PairSettings::symmetric(link));
    let b = pair.address_b();
    pair.with_a(|machine, now| machine.request(now, b, &[0; 934]));
    assert_eq!(pair.queued_a_to_b(), 1000);
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.b().received[0].0, Mono(8 * MS));
    assert_eq!(pair.a().received[0].0, Mono(16 * MS));
    let sent = pair.sent_by_a();
    assert_eq!((sent.datagrams, sent.payload_octets, sent.wire_octets), (1, 934, 1000));
    assert_eq!(pair.sent_by_b(), sent);
}

#[test]
fn each_machine_has_its_own_clock() {
    let clocks =
        PairSettings { clock_a: Mono(3 * MS), clock_b: Mono(Duration::from_secs(5000)), ..PairSettings::default() };
    let dead = LinkSettings { loss: Loss::Independent(Probability::ONE), ..LinkSettings::default() };
    let mut pair = echo(PairSettings { b_to_a: dead, ..clocks });
    let (a, b) = (pair.address_a(), pair.address_b());
    pair.with_b(|machine, now| machine.request(now, a, b"ping"));
    pair.run_for(150 * MS);
    pair.with_a(|machine, now| machine.request(now, b, b"ping"));
    pair.run_for(Duration::ZERO);
    assert_eq!(pair.b().received[0].0, Mono(Duration::from_millis(5_000_150)));
    // One repetition, after 100 ms of either clock, and an answer.
    assert_eq!((pair.sent_by_b().datagrams, pair.poll_timeout()), (3, Some(Mono(250 * MS))));
}

#[test]
fn datagrams_to_other_addresses_are_counted_and_not_delivered() {
    let mut pair = echo(PairSettings::default());
    pair.with_a(|machine, now| machine.request(now, "192.0.2.9:1".parse().unwrap(), b"ping"));
    pair.run_for(50 * MS);
    assert_eq!((pair.sent_by_a().misaddressed, pair.sent_by_a().datagrams), (1, 0));
    assert!(pair.b().received.is_empty());
}

#[test]
fn an_injected_datagram_arrives_at_once_from_any_address() {
    let mut pair = echo(PairSettings::symmetric(delayed(5 * MS)));
    let other = "192.0.2.9:1".parse().unwrap();
    pair.inject_to_b(other, &Bytes::from_static(b"forged"));
    assert_eq!(pair.b().received, [(Mono::default(), other, Bytes::from_static(b"forged"))]);
    assert_eq!(pair.sent_by_b().misaddressed, 1, "the answer goes to the address of the sender");
}

/// A machine whose deadline stays due, and that has an endless number of datagrams.
struct Endless;

impl DatagramMachine for Endless {
    fn handle_datagram(&mut self, _: Mono, _: SocketAddr, _: &Bytes) {}

    fn handle_timeout(&mut self, _: Mono) {}

    fn poll_transmit(&mut self) -> Option<(SocketAddr, Bytes)> {
        Some(("192.0.2.9:1".parse().unwrap(), Bytes::new()))
    }

    fn poll_timeout(&self) -> Option<Mono> {
        Some(Mono::default())
    }
}

#[test]
fn a_machine_that_is_always_due_does_not_stop_the_time() {
    let mut pair = Pair::new(PairSettings::default(), Endless, Endless).unwrap();
    pair.run_until(Mono(Duration::from_micros(5)));
    assert_eq!(pair.now(), Mono(Duration::from_micros(5)));
}

/// Payload of a fragment: what an Ethernet packet of 1500 octets holds beside the headers of IPv4 and UDP.
const FRAGMENT: usize = 1472;
const FRAME: usize = 374_000;
const FRAGMENTS: usize = FRAME.div_ceil(FRAGMENT);

/// A camera that sends frames as fragments at a fixed interval, and the receiver that counts them.
#[derive(Debug, Default)]
struct BestEffort {
    peer: Option<SocketAddr>,
    due: Option<Mono>,
    frames: u32,
    frames_left: u32,
    fragment: Bytes,
    fragments_left: usize,
    /// Fragments that arrived, by frame.
    arrived: Vec<usize>,
}

impl BestEffort {
    fn camera(frames: u32, peer: SocketAddr) -> Self {
        Self { peer: Some(peer), due: Some(Mono::default()), frames_left: frames, ..Self::default() }
    }
}

impl DatagramMachine for BestEffort {
    fn handle_datagram(&mut self, _: Mono, _: SocketAddr, datagram: &Bytes) {
        let frame = u32::from_be_bytes(*datagram.first_chunk().unwrap()) as usize;
        self.arrived.resize(self.arrived.len().max(frame + 1), 0);
        self.arrived[frame] += 1;
    }

    fn handle_timeout(&mut self, now: Mono) {
        if self.due.is_some_and(|due| due <= now) {
            let mut fragment = vec![0; FRAGMENT];
            fragment[..4].copy_from_slice(&self.frames.to_be_bytes());
            (self.fragment, self.fragments_left) = (fragment.into(), FRAGMENTS);
            self.frames += 1;
            self.frames_left -= 1;
            self.due = Some(now.plus(100 * MS)).filter(|_| self.frames_left > 0);
        }
    }

    fn poll_transmit(&mut self) -> Option<(SocketAddr, Bytes)> {
        self.fragments_left = self.fragments_left.checked_sub(1)?;
        Some((self.peer?, self.fragment.clone()))
    }

    fn poll_timeout(&self) -> Option<Mono> {
        self.due
    }
}

/// Returns the share of frames that arrive completely.
fn best_effort(frames: u32, loss: f64) -> f64 {
    let link = LinkSettings {
        bottleneck: Bottleneck::Rate {
            bits_per_second: NonZeroU64::new(1_000_000_000).unwrap(),
            queue_octets: 1 << 20,
        },
        loss: Loss::Independent(Probability::new(loss).unwrap()),
        delay: Delay { base: Duration::from_micros(150), ..Delay::default() },
        overhead_octets: overhead::ETHERNET,
        ..LinkSettings::default()
    };
    let settings = PairSettings::symmetric(link);
    let camera = BestEffort::camera(frames, settings.address_b);
    let mut pair = Pair::new(settings, camera, BestEffort::default()).unwrap();
    pair.run_until(Mono(100 * MS * frames));
    assert_eq!(pair.sent_by_a().datagrams, FRAGMENTS as u64 * u64::from(frames));
    pair.b().arrived.iter().filter(|arrived| **arrived == FRAGMENTS).count() as f64 / f64::from(frames)
}

/// Four cameras with 10 000 frames each in a release build, fewer in a debug build.
const FRAMES: u32 = if cfg!(debug_assertions) { 1000 } else { 40_000 };

#[test]
fn best_effort_loses_half_of_the_frames_at_three_lost_packets_in_a_thousand() {
    // 255 packets a frame: 0.997 to the power of 255 is 46.5 %.
    let complete = best_effort(FRAMES, 0.003);
    assert!((complete - 0.465).abs() < 5.0 * (0.25 / f64::from(FRAMES)).sqrt(), "{complete}");
}
