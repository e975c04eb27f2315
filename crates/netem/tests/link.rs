//! Tests of a whole link in virtual time.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the failure")]

use std::{num::NonZeroU64, sync::Arc, time::Duration};

use bytes::Bytes;
use viaduct_netem::{
    Link, LinkSettings, Probability,
    link::{
        Bottleneck, Delay, DeliveryTrace, Jitter, LinkDropReason, Loss, Order, Outages, PeriodicOutages, Reorder,
        overhead,
    },
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
        while let Some(packet) = link.poll_deliver(due) {
            arrivals.push((u32::from_be_bytes(packet[..4].try_into().unwrap()), due));
        }
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
fn the_same_seed_gives_the_same_result_and_another_seed_does_not() {
    let settings = LinkSettings {
        bottleneck: rate(10_000_000, 30_000),
        loss: Loss::bursts(Probability::new(0.05).unwrap(), 4.0).unwrap(),
        duplicate: Probability::new(0.01).unwrap(),
        delay: Delay { base: 20 * MS, jitter: Jitter::Normal(5 * MS), order: Order::Free, ..Delay::default() },
        ..LinkSettings::default()
    };
    let arrivals = |seed| drive(&mut link(settings.clone(), seed), 2000, 1200, MS);
    assert_eq!(arrivals(5), arrivals(5));
    assert_ne!(arrivals(5), arrivals(6));
}

#[test]
fn a_change_of_the_delay_does_not_change_the_losses() {
    let lost = |jitter| {
        let delay = Delay { base: 20 * MS, jitter, ..Delay::default() };
        let loss = Loss::Independent(Probability::new(0.2).unwrap());
        let arrivals = drive(&mut link(LinkSettings { loss, delay, ..LinkSettings::default() }, 3), 500, 100, MS);
        arrivals.into_iter().map(|(number, _)| number).collect::<Vec<_>>()
    };
    assert_eq!(lost(Jitter::None), lost(Jitter::Uniform(15 * MS)));
}

#[test]
fn packets_overtake_each_other_only_if_permitted() {
    let in_order = |order| {
        let delay = Delay { base: 20 * MS, jitter: Jitter::Uniform(15 * MS), order, ..Delay::default() };
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

#[test]
fn reordered_packets_are_overtaken_and_hold_no_other_back() {
    let reorder = Reorder { share: Probability::new(0.1).unwrap(), by: Duration::from_micros(2500) };
    let delay = Delay { base: 20 * MS, ..Delay::default() };
    let mut link = link(LinkSettings { delay, reorder, ..LinkSettings::default() }, 3);
    let arrivals = drive(&mut link, 1000, 100, MS);
    let late = |(number, at): &&(u32, Mono)| at.since(Mono(MS * *number)) != 20 * MS;
    assert!(arrivals.iter().filter(late).all(|(number, at)| *at == Mono(MS * *number + Duration::from_micros(22_500))));
    // Binomial: 100 with a standard deviation of 9.5.
    assert!((60..140).contains(&arrivals.iter().filter(late).count()));
    let overtaken = arrivals.windows(2).filter(|pair| pair[0].0 > pair[1].0).count();
    assert!((50..140).contains(&overtaken), "{overtaken}");
}

#[test]
fn an_outage_loses_what_is_sent_during_it_and_not_what_is_in_transit() {
    let outages = Outages::Periodic(PeriodicOutages { first: 10 * MS, every: 50 * MS, duration: 5 * MS });
    let delay = Delay { base: 7 * MS, ..Delay::default() };
    let mut link = link(LinkSettings { outages, delay, ..LinkSettings::default() }, 3);
    let numbers: Vec<u32> = drive(&mut link, 100, 100, MS).into_iter().map(|(number, _)| number).collect();
    assert_eq!(numbers, (0..10).chain(15..60).chain(65..100).collect::<Vec<_>>());
    assert_eq!(link.counters().dropped(LinkDropReason::Outage), 10);
}

/// Returns the settings of a line with a fixed delay.
fn line(bits_per_second: u64, base: Duration) -> LinkSettings {
    let delay = Delay { base, ..Delay::default() };
    LinkSettings { bottleneck: rate(bits_per_second, 1 << 20), delay, ..LinkSettings::default() }
}

#[test]
fn new_settings_apply_to_packets_in_the_queue_and_not_in_transit() {
    // A packet of 1000 octets takes 10 ms.
    let mut link = link(line(800_000, 30 * MS), 1);
    (0..4).for_each(|number| link.handle_packet(Mono::default(), packet(number, 1000)));
    assert_eq!((link.packets(), link.queued_octets(Mono::default())), (4, 4000));
    // The first has left, half of the second too: the rate becomes ten times as high, and the delay shorter.
    link.set_settings(Mono(15 * MS), line(8_000_000, 29 * MS)).unwrap();
    assert_eq!(link.queued_octets(Mono(15 * MS)), 3000);
    let mut arrivals = Vec::new();
    take_until(&mut link, None, &mut arrivals);
    let micros = |micros| Mono(Duration::from_micros(micros));
    assert_eq!(arrivals, [(0, micros(40_000)), (1, micros(44_500)), (2, micros(45_500)), (3, micros(46_500))]);
    assert_eq!(link.packets(), 0);
}

#[test]
fn a_cut_link_loses_what_is_in_the_queue() {
    let mut link = link(line(800_000, 30 * MS), 1);
    (0..4).for_each(|number| link.handle_packet(Mono::default(), packet(number, 1000)));
    let cut = LinkSettings { loss: Loss::Independent(Probability::ONE), ..line(800_000, 30 * MS) };
    link.set_settings(Mono(20 * MS), cut).unwrap();
    let mut arrivals = Vec::new();
    take_until(&mut link, None, &mut arrivals);
    assert_eq!(arrivals, [(0, Mono(40 * MS)), (1, Mono(50 * MS))]);
    assert_eq!(link.counters().dropped(LinkDropReason::Lost), 2);
}

#[test]
fn a_shorter_delay_does_not_change_the_order() {
    let mut link = link(line(1 << 40, 100 * MS), 1);
    link.handle_packet(Mono::default(), packet(1, 1000));
    let before = link.poll_timeout().unwrap();
    link.set_settings(Mono(MS), line(1 << 40, MS)).unwrap();
    link.handle_packet(Mono(MS), packet(2, 1000));
    let mut arrivals = Vec::new();
    take_until(&mut link, None, &mut arrivals);
    assert_eq!(arrivals, [(1, before), (2, before)]);
}

#[test]
fn a_smaller_queue_keeps_its_packets_and_accepts_no_other() {
    let mut link = link(line(800_000, MS), 1);
    (0..4).for_each(|number| link.handle_packet(Mono::default(), packet(number, 1000)));
    let small = LinkSettings { bottleneck: rate(800_000, 1000), ..line(800_000, MS) };
    link.set_settings(Mono::default(), small).unwrap();
    link.handle_packet(Mono::default(), packet(4, 1000));
    assert_eq!((link.packets(), link.counters().dropped(LinkDropReason::QueueFull)), (4, 1));
}

#[test]
fn invalid_settings_change_nothing() {
    let mut link = link(line(800_000, MS), 1);
    link.handle_packet(Mono::default(), packet(1, 1000));
    let before = (link.settings().clone(), link.poll_timeout());
    assert!(link.set_settings(Mono::default(), line(8, Duration::MAX)).is_err());
    assert_eq!((link.settings().clone(), link.poll_timeout()), before);
}

#[test]
fn outages_count_from_the_start_of_the_link_and_from_their_change() {
    let outages = |first| Outages::Periodic(PeriodicOutages { first, every: 1000 * MS, duration: MS });
    let with = |first| LinkSettings { outages: outages(first), ..LinkSettings::default() };
    let mut link = Link::starting_at(Mono(500 * MS), with(2 * MS), 1).unwrap();
    let arrives = |link: &mut Link, at: u32| {
        link.handle_packet(Mono(MS * at), packet(at, 100));
        link.poll_deliver(Mono(MS * at)).is_some()
    };
    assert_eq!([500, 501, 502, 503].map(|at| arrives(&mut link, at)), [true, true, false, true]);
    link.set_settings(Mono(510 * MS), with(3 * MS)).unwrap();
    // The same outages again: they do not begin anew.
    link.set_settings(Mono(511 * MS), with(3 * MS)).unwrap();
    assert_eq!([512, 513, 514].map(|at| arrives(&mut link, at)), [true, false, true]);
}

#[test]
fn headers_and_overhead_count_for_the_rate_and_the_queue() {
    let settings = LinkSettings { overhead_octets: overhead::ETHERNET, ..line(8_000_000, Duration::ZERO) };
    let mut link = link(settings, 1);
    link.handle_payload(Mono::default(), packet(1, 934), overhead::IPV4_UDP);
    assert_eq!((link.queued_octets(Mono::default()), link.wire_octets(934, overhead::IPV4_UDP)), (1000, 1000));
    assert_eq!(link.poll_timeout(), Some(Mono(MS)));
    assert_eq!(link.poll_deliver(Mono(MS)).map(|packet| packet.len()), Some(934));
}
