//! Tests of a whole link in virtual time.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the failure")]

use std::{num::NonZeroU64, sync::Arc, time::Duration};

use bytes::Bytes;
use viaduct_netem::{
    Link, LinkSettings, Probability,
    link::{Bottleneck, Delay, DeliveryTrace, Jitter, LinkDropReason, Loss, Order},
};
use viaduct_units::Mono;

const MS: Duration = Duration::from_millis(1);

fn link(settings: LinkSettings, seed: u64) -> Link {
    Link::new(settings, seed).unwrap()
}

fn rate(bits_per_second: u64, queue_octets: usize) -> Bottleneck {
    Bottleneck::Rate { bits_per_second: NonZeroU64::new(bits_per_second).unwrap(), queue_octets }
}

/// Returns a packet of `octets` octets that begins with its number.
fn packet(number: u32, octets: usize) -> Bytes {
    let mut packet = number.to_be_bytes().to_vec();
    packet.resize(octets.max(4), 0);
    packet.into()
}

/// Sends packets at an interval. Returns number and arrival time of each received packet.
fn drive(link: &mut Link, packets: u32, octets: usize, interval: Duration) -> Vec<(u32, Mono)> {
    let mut arrivals = Vec::new();
    for number in 0..packets {
        let now = Mono(interval * number);
        take_until(link, Some(now), &mut arrivals);
        link.handle_packet(now, packet(number, octets));
    }
    take_until(link, None, &mut arrivals);
    arrivals
}

/// Takes the packets that arrive before a time, or all packets.
fn take_until(link: &mut Link, end: Option<Mono>, arrivals: &mut Vec<(u32, Mono)>) {
    while let Some(due) = link.poll_timeout().filter(|due| end.is_none_or(|end| *due < end)) {
        if let Some(before) = due.0.checked_sub(Duration::from_nanos(1)) {
            assert_eq!(link.poll_deliver(Mono(before)), None, "nothing arrives before the deadline");
        }
        let packet = link.poll_deliver(due).unwrap();
        arrivals.push((u32::from_be_bytes(packet[..4].try_into().unwrap()), due));
    }
}

#[test]
fn a_perfect_link_delivers_at_once() {
    let mut link = link(LinkSettings::default(), 1);
    link.handle_packet(Mono(MS), packet(7, 100));
    assert_eq!(link.poll_timeout(), Some(Mono(MS)));
    assert_eq!(link.poll_deliver(Mono(MS)), Some(packet(7, 100)));
    assert_eq!((link.poll_deliver(Mono(MS)), link.poll_timeout()), (None, None));
}

#[test]
fn the_same_seed_gives_the_same_and_another_seed_does_not() {
    let settings = LinkSettings {
        bottleneck: rate(10_000_000, 30_000),
        loss: Loss::bursts(Probability::new(0.05).unwrap(), 4.0).unwrap(),
        duplicate: Probability::new(0.01).unwrap(),
        delay: Delay { base: 20 * MS, jitter: Jitter::Normal(5 * MS), order: Order::Free },
    };
    let arrivals = |seed| drive(&mut link(settings.clone(), seed), 2000, 1200, MS);
    assert_eq!(arrivals(5), arrivals(5));
    assert_ne!(arrivals(5), arrivals(6));
}

#[test]
fn a_change_of_the_delay_does_not_change_the_losses() {
    let lost = |jitter| {
        let delay = Delay { base: 20 * MS, jitter, order: Order::Kept };
        let loss = Loss::Independent(Probability::new(0.2).unwrap());
        let arrivals = drive(&mut link(LinkSettings { loss, delay, ..LinkSettings::default() }, 3), 500, 100, MS);
        arrivals.into_iter().map(|(number, _)| number).collect::<Vec<_>>()
    };
    assert_eq!(lost(Jitter::None), lost(Jitter::Uniform(15 * MS)));
}

#[test]
fn packets_overtake_each_other_only_where_they_may() {
    let in_order = |order| {
        let delay = Delay { base: 20 * MS, jitter: Jitter::Uniform(15 * MS), order };
        let arrivals = drive(&mut link(LinkSettings { delay, ..LinkSettings::default() }, 3), 500, 100, MS);
        assert_eq!(arrivals.len(), 500);
        arrivals.is_sorted()
    };
    assert!(in_order(Order::Kept));
    assert!(!in_order(Order::Free));
}

#[test]
fn an_overloaded_line_delivers_its_rate_and_drops_the_rest() {
    // 12 Mbit/s of packets into 10 Mbit/s with 15 000 octets of queue, for ten seconds.
    let mut link = link(LinkSettings { bottleneck: rate(10_000_000, 15_000), ..LinkSettings::default() }, 1);
    let arrivals = drive(&mut link, 10_000, 1500, MS);
    // 1.2 ms a packet, all the time until the queue is empty again.
    let (first, last) = (arrivals[0].1, arrivals.last().unwrap().1);
    assert_eq!(last.since(first), Duration::from_micros(1200) * (u32::try_from(arrivals.len()).unwrap() - 1));
    assert!(last < Mono(10_012 * MS), "what waits is at most the queue: {last:?}");
    let dropped = link.counters().dropped(LinkDropReason::QueueFull);
    assert_eq!((dropped + arrivals.len() as u64, dropped), (10_000, link.counters().dropped_total()));
}

#[test]
fn packets_in_transit_take_no_room_in_the_queue() {
    let delay = Delay { base: 500 * MS, ..Delay::default() };
    let mut link = link(LinkSettings { bottleneck: rate(10_000_000, 3000), delay, ..LinkSettings::default() }, 1);
    assert_eq!(drive(&mut link, 100, 1000, MS).len(), 100);
}

#[test]
fn a_recorded_trace_decides_when_packets_leave() {
    let trace = Arc::new(DeliveryTrace::parse("2\n4\n4\n10\n").unwrap());
    let bottleneck = Bottleneck::Trace { trace, queue_octets: 4500 };
    let mut link = link(LinkSettings { bottleneck, ..LinkSettings::default() }, 1);
    let arrivals = drive(&mut link, 20, 1500, MS);
    let times: Vec<u128> = arrivals.iter().take(6).map(|(_, at)| at.0.as_millis()).collect();
    assert_eq!(times, [2, 4, 4, 10, 12, 14]);
    assert_eq!(link.counters().dropped(LinkDropReason::QueueFull) + arrivals.len() as u64, 20);
}

#[test]
fn doubled_packets_arrive_twice() {
    let settings = LinkSettings { duplicate: Probability::new(0.1).unwrap(), ..LinkSettings::default() };
    let mut link = link(settings, 9);
    let arrivals = drive(&mut link, 10_000, 100, MS);
    // Binomial: 1000 with a standard deviation of 30.
    assert!((850..1150).contains(&link.counters().duplicated));
    assert_eq!(arrivals.len() as u64, 10_000 + link.counters().duplicated);
}

#[test]
fn a_link_holds_no_more_than_its_limit() {
    let delay = Delay { base: 3000 * MS, ..Delay::default() };
    let mut link = link(LinkSettings { delay, ..LinkSettings::default() }, 1);
    let large = Bytes::from(vec![0; 65_535]);
    for _ in 0..2000 {
        link.handle_packet(Mono::default(), large.clone());
    }
    link.handle_packet(Mono::default(), Bytes::from(vec![0; 65_536]));
    let counters = link.counters();
    assert_eq!(counters.dropped(LinkDropReason::LinkFull), 2000 - (64 << 20) / 65_535);
    assert_eq!(counters.dropped(LinkDropReason::TooLong), 1);
}
