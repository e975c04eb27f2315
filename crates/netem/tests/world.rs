//! Tests of worlds with simple stations.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the failure")]

use std::{collections::VecDeque, time::Duration};

use bytes::Bytes;
use viaduct_netem::{
    Machine, Probability, World,
    world::{LossReason, NodeId, Place, Radio, Transmit},
};
use viaduct_units::{Metres, Mono};

const MS: Duration = Duration::from_millis(1);

/// Sends a frame at an interval, and records received frames.
#[derive(Debug, Default)]
struct Talker {
    interval: Option<Duration>,
    due: Option<Mono>,
    outgoing: VecDeque<Transmit>,
    received: Vec<(Mono, Bytes)>,
}

impl Talker {
    fn every(interval: Duration, first: Duration) -> Self {
        Self { interval: Some(interval), due: Some(Mono(first)), ..Self::default() }
    }

    fn send(&mut self, octets: usize, to: Option<NodeId>) {
        self.outgoing.push_back(Transmit { frame: Bytes::from(vec![0; octets]), to });
    }
}

impl Machine for Talker {
    fn handle_frame(&mut self, now: Mono, frame: &Bytes) {
        self.received.push((now, frame.clone()));
    }

    fn handle_timeout(&mut self, now: Mono) {
        if let Some(interval) = self.interval.filter(|_| self.due.is_some_and(|due| due <= now)) {
            self.due = Some(now.plus(interval));
            self.send(200, None);
        }
    }

    fn poll_transmit(&mut self) -> Option<Transmit> {
        self.outgoing.pop_front()
    }

    fn poll_timeout(&self) -> Option<Mono> {
        self.due
    }
}

fn world(radio: Radio, places: &[(f64, f64)]) -> World<Talker> {
    let mut world = World::new(radio, 1).unwrap();
    for (east, north) in places {
        world.add(Place::new(*east, *north), Talker::default()).unwrap();
    }
    world
}

/// Sends a frame from one station. Returns the number of frames that each station received within the next second.
fn send(world: &mut World<Talker>, by: usize, to: Option<usize>) -> Vec<usize> {
    world.with_machine(NodeId(by), |talker, _| talker.send(200, to.map(NodeId))).unwrap();
    world.run_until(world.now().plus(1000 * MS));
    world.nodes().map(|(_, _, talker)| talker.received.len()).collect()
}

/// Checks that all signals are accounted for when none is on air.
fn assert_adds_up(world: &World<Talker>) {
    let counters = world.counters();
    assert_eq!(counters.signals, counters.receptions + counters.not_addressed + counters.lost_signals());
    let received: usize = world.nodes().map(|(_, _, talker)| talker.received.len()).sum();
    assert_eq!(counters.receptions, received as u64);
}

#[test]
fn stations_in_range_receive_after_wait_air_time_and_propagation() {
    let mut world =
        world(Radio { clear: Metres(500.0), ..Radio::default() }, &[(0.0, 0.0), (299.792_458, 0.0), (501.0, 0.0)]);
    assert_eq!(send(&mut world, 0, None), [0, 1, 0]);
    let at = world.nodes().nth(1).unwrap().2.received[0].0;
    // SIFS and 6 to 21 slots, 361 us of airtime for 1926 bits and the preamble, 1 us of light.
    let waited = at.since(Mono(Duration::from_nanos(362_000)));
    assert!((Duration::from_micros(110)..=Duration::from_micros(305)).contains(&waited), "{waited:?}");
    assert_adds_up(&world);
}

#[test]
fn a_station_out_of_range_is_not_received() {
    let mut world = world(Radio { clear: Metres(500.0), ..Radio::default() }, &[(0.0, 0.0), (400.0, 0.0)]);
    assert_eq!(send(&mut world, 0, None), [0, 1]);
    world.move_to(NodeId(1), Place::new(40_000.0, 0.0));
    assert_eq!(send(&mut world, 0, None), [0, 1]);
    world.move_to(NodeId(0), Place::new(40_000.0, 300.0));
    assert_eq!(send(&mut world, 0, None), [0, 2]);
}

#[test]
fn a_frame_to_one_station_is_repeated_until_it_arrives() {
    let radio = Radio { loss: Probability::new(0.5).unwrap(), ..Radio::default() };
    let mut world = world(radio, &[(0.0, 0.0), (100.0, 0.0), (0.0, 100.0)]);
    let received = (0..200).fold(Vec::new(), |_, _| send(&mut world, 0, Some(1)));
    let given_up = world.counters().lost(LossReason::NotAcknowledged);
    assert_eq!(received, [0, 200 - usize::try_from(given_up).unwrap(), 0]);
    // One in 128 is lost seven times; two attempts are the mean.
    assert!(given_up <= 6, "{given_up}");
    assert!((320..480).contains(&world.counters().transmissions), "{}", world.counters().transmissions);
    assert_adds_up(&world);
}

#[test]
fn hidden_stations_collide_and_neighbours_wait_for_each_other() {
    let radio = Radio { clear: Metres(500.0), ..Radio::default() };
    // Both outer stations reach the middle one but not each other; each sends 200 frames at about the same times.
    let mut hidden = World::new(radio, 3).unwrap();
    let mut near = World::new(radio, 3).unwrap();
    for (place, world) in [(450.0, &mut hidden), (50.0, &mut near)] {
        world.add(Place::new(0.0, 0.0), Talker::default()).unwrap();
        for side in [-1.0, 1.0] {
            world.add(Place::new(side * place, 0.0), Talker::every(10 * MS, 10 * MS)).unwrap();
        }
        world.run_until(Mono(2005 * MS));
        assert_adds_up(world);
    }
    assert!(hidden.counters().lost(LossReason::Collided) > 350, "{:?}", hidden.counters());
    // Only stations that draw the same slot collide: one in sixteen.
    let collided = near.counters().lost(LossReason::Collided) + near.counters().lost(LossReason::Sending);
    assert!((10..100).contains(&collided), "{:?}", near.counters());
}

#[test]
fn a_channel_without_collisions_loses_only_faded_signals() {
    let radio = Radio { capture: None, ..Radio::default() };
    let mut world = world(radio, &[(-240.0, 0.0), (0.0, 0.0), (240.0, 0.0)]);
    for by in [0, 2] {
        world.with_machine(NodeId(by), |talker, _| talker.send(1400, None)).unwrap();
    }
    world.run_until(Mono(100 * MS));
    assert_eq!(world.nodes().nth(1).unwrap().2.received.len(), 2);
}

#[test]
fn the_radios_queue_is_bounded() {
    let mut world = world(Radio::default(), &[(0.0, 0.0)]);
    world.with_machine(NodeId(0), |talker, _| (0..100).for_each(|_| talker.send(200, None))).unwrap();
    world.run_until(Mono(1000 * MS));
    assert_eq!((world.counters().transmissions, world.counters().lost(LossReason::RadioQueueFull)), (64, 36));
    assert_eq!(world.channel_busy(NodeId(0)), world.counters().airtime);
}

/// Returns a world of 300 stations on two square kilometres that send three frames per second.
fn crowd(seed: u64) -> World<Talker> {
    let mut world = World::new(Radio { loss: Probability::new(0.05).unwrap(), ..Radio::default() }, seed).unwrap();
    for number in 0..300_u32 {
        let place = Place::new(f64::from(number % 20) * 100.0, f64::from(number / 20) * 70.0);
        world.add(place, Talker::every(333 * MS, MS * (number * 7 % 333))).unwrap();
    }
    world.run_until(Mono(3000 * MS));
    world
}

#[test]
fn a_crowd_is_the_same_with_the_same_seed_and_adds_up() {
    let (world, again, other) = (crowd(1), crowd(1), crowd(2));
    assert_eq!(world.counters(), again.counters());
    assert_ne!(world.counters(), other.counters());
    let received =
        |world: &World<Talker>| world.nodes().map(|(_, _, talker)| talker.received.clone()).collect::<Vec<_>>();
    assert_eq!(received(&world), received(&again));
    assert!(world.counters().transmissions > 2500, "{:?}", world.counters());
    assert!(world.counters().receptions > 50_000, "{:?}", world.counters());
}

/// A machine that never processes its deadline.
struct Stuck;

impl Machine for Stuck {
    fn handle_frame(&mut self, _: Mono, _: &Bytes) {}
    fn handle_timeout(&mut self, _: Mono) {}
    fn poll_transmit(&mut self) -> Option<Transmit> {
        None
    }
    fn poll_timeout(&self) -> Option<Mono> {
        Some(Mono::default())
    }
}

#[test]
fn a_deadline_that_never_passes_does_not_stop_the_time() {
    let mut world = World::new(Radio::default(), 1).unwrap();
    world.add(Place::default(), Stuck).unwrap();
    world.run_until(Mono(MS));
    assert_eq!(world.now(), Mono(MS));
}
