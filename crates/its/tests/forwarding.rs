//! Multi-hop packets between a few stations: who delivers, who sends on, and what ends where.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod world;

use std::time::Duration;

use viaduct_its::{
    Destination, DropReason, Repetition, SendError, SendRequest, Station, StationSettings,
    access::MacAddress,
    btp::{BtpHeader, BtpKind},
    geonet::{
        Area, Lifetime, Mib, TrafficClass,
        mib::{AreaForwardingAlgorithm, NonAreaForwardingAlgorithm},
    },
    limits::REPETITIONS_MAX,
};
use viaduct_units::{Degrees, Position};
use world::{World, address, at, carried, circle, ego, link_address, request, settings, start};

const TSB: u8 = 0x51;
const GBC: u8 = 0x40;
const GUC: u8 = 0x20;
const SECOND: Duration = Duration::from_secs(1);

/// Stations each 400 m on a road to the east; a frame is heard 500 m far.
fn road(count: u8) -> Vec<Position> {
    (0..count).map(|number| at(f64::from(number) * 400.0, 0.0)).collect()
}

/// ```text
///                 ( area: 2, 3, 4 )
///   0     1     ( 2     3     4 )     5
/// ```
#[test]
fn a_gbc_is_brought_to_its_area_and_delivered_once_by_each() {
    let mut world = World::new(500.0, Mib::default(), &road(6));
    world.meet();
    let area = circle_as_sent(1200.0, 450.0);
    world.send(0, &SendRequest { traffic_class: TrafficClass(0x05), ..request(Destination::Area(area)) });
    world.run(SECOND);
    assert_eq!(world.deliveries(), [0, 0, 1, 1, 1, 0]);
    let received = &world.nodes[4].received[0];
    assert_eq!(received.hops_before, 3);
    assert_eq!((received.source.address, received.source.position_accurate), (address_of(&world, 0), true));
    assert_eq!(received.source.position, Some(as_sent(at(0.0, 0.0))));
    assert_eq!(received.destination, Destination::Area(area));
    assert_eq!(received.traffic_class, TrafficClass(0x05));
    let left = received.remaining_lifetime;
    assert!(left <= 60 * SECOND && left > 58 * SECOND, "{left:?} of a minute is left");
    assert_eq!(world.nodes[1].station.counters().forwarded, 1, "1 lies outside and brings it there");
}

/// A circle on the road, as a packet has it.
fn circle_as_sent(east_m: f64, radius_m: f64) -> Area {
    let Area { centre, shape } = circle(east_m, 0.0, radius_m);
    Area { centre: as_sent(centre), shape }
}

/// A position in whole tenths of a microdegree, as a packet has it.
fn as_sent(position: Position) -> Position {
    let tenths = |degrees: Degrees| Degrees((degrees.value() * 1e7).round() / 1e7);
    Position { latitude: tenths(position.latitude), longitude: tenths(position.longitude) }
}

fn address_of(world: &World, index: usize) -> viaduct_its::geonet::GnAddress {
    world.nodes[index].station.address()
}

#[test]
fn the_own_packet_that_comes_back_goes_no_further() {
    for algorithm in [AreaForwardingAlgorithm::Simple, AreaForwardingAlgorithm::ContentionBased] {
        let mib = Mib { area_forwarding_algorithm: algorithm, ..Mib::default() };
        let mut world = World::new(500.0, mib, &road(3));
        world.meet();
        world.send(0, &request(Destination::Area(circle(400.0, 0.0, 1000.0))));
        world.run(SECOND);
        assert_eq!(world.deliveries(), [0, 1, 1], "{algorithm:?}");
        assert!(world.count(0, DropReason::OwnPacket) >= 1, "1 sent it on, and 0 heard that");
        assert_eq!(world.nodes[0].station.counters().transmitted, 1);
    }
}

/// ```text
///   0      1 2 3 4      (all hear each other, all are in the area)
/// ```
#[test]
fn who_hears_another_forward_does_not_forward() {
    let places = [at(0.0, 0.0), at(300.0, 0.0), at(320.0, 0.0), at(340.0, 0.0), at(360.0, 0.0)];
    let transmissions = |algorithm| {
        let mib = Mib { area_forwarding_algorithm: algorithm, ..Mib::default() };
        let mut world = World::new(1000.0, mib, &places);
        world.meet();
        world.send(0, &request(Destination::Area(circle(200.0, 0.0, 900.0))));
        world.run(SECOND);
        assert_eq!(world.deliveries(), [0, 1, 1, 1, 1]);
        let suppressed: u64 = world.nodes.iter().map(|node| node.station.counters().suppressed).sum();
        (world.senders_of(GBC), suppressed)
    };
    assert_eq!(transmissions(AreaForwardingAlgorithm::Simple).0.len(), 5);
    let (senders, suppressed) = transmissions(AreaForwardingAlgorithm::ContentionBased);
    assert_eq!(senders, [0, 4], "the farthest is the fastest");
    assert_eq!(suppressed, 3);
}

#[test]
fn a_packet_takes_as_many_hops_as_it_may() {
    let mut world = World::new(500.0, Mib::default(), &road(5));
    world.meet();
    world.send(0, &request(Destination::Hops(3)));
    world.run(SECOND);
    assert_eq!(world.deliveries(), [0, 1, 1, 1, 0]);
    assert_eq!(world.nodes[3].station.counters().not_forwarded(DropReason::HopsExhausted), 1);
    assert_eq!(world.senders_of(TSB), [0, 1, 2]);
    let hops: Vec<u8> = (1..4).map(|index| world.nodes[index].received[0].hops_before).collect();
    assert_eq!(hops, [0, 1, 2]);
    assert_eq!(world.nodes[0].station.send(world.now, &request(Destination::Hops(0))), Err(SendError::NoHops));
}

#[test]
fn a_packet_is_delivered_once_however_often_it_comes() {
    let mut world = World::new(2000.0, Mib::default(), &road(4));
    world.meet();
    world.send(0, &request(Destination::Hops(5)));
    world.run(SECOND);
    assert_eq!(world.deliveries(), [0, 1, 1, 1]);
    assert_eq!(world.count(1, DropReason::Duplicate), 2, "2 and 3 sent it too");
}

/// ```text
///   0        (nobody)        then 1 comes into reach
/// ```
#[test]
fn a_packet_is_carried_until_there_is_somebody() {
    let mut world = World::new(500.0, Mib::default(), &[at(0.0, 0.0), at(5000.0, 0.0)]);
    world.meet();
    world.send(0, &carried(Destination::Area(circle(0.0, 0.0, 1500.0))));
    assert_eq!((world.nodes[0].station.held_packets(), world.senders_of(GBC).len()), (1, 0));
    world.run(20 * SECOND);
    world.place(1, at(300.0, 0.0));
    world.run(5 * SECOND);
    assert_eq!(world.deliveries(), [0, 1]);
    let left = world.nodes[1].received[0].remaining_lifetime;
    assert!(left <= 41 * SECOND && left >= 34 * SECOND, "{left:?} of a minute is left");
}

#[test]
fn a_packet_without_the_bit_is_sent_to_nobody_rather_than_carried() {
    let mut world = World::new(500.0, Mib::default(), &road(1));
    world.send(0, &request(Destination::Area(circle(0.0, 0.0, 500.0))));
    assert_eq!((world.nodes[0].station.held_packets(), world.senders_of(GBC).len()), (0, 1));
}

#[test]
fn what_is_carried_too_long_is_given_up() {
    let mut world = World::new(500.0, Mib::default(), &road(1));
    for destination in [Destination::Area(circle(0.0, 0.0, 500.0)), Destination::Hops(3), Destination::SingleHop] {
        let lifetime = Lifetime::from_parts(3, 1);
        world.send(0, &SendRequest { lifetime, ..carried(destination) });
    }
    world.run(2 * SECOND);
    assert_eq!(world.nodes[0].station.held_packets(), 3);
    world.run(2 * SECOND);
    assert_eq!(world.nodes[0].station.held_packets(), 0);
    assert_eq!(world.nodes[0].station.counters().lost(DropReason::LifetimeExpired), 3);
}

/// ```text
///   1     0                        ( area )       1 is farther from it than 0; then 2 appears
///              2
/// ```
#[test]
fn at_a_local_maximum_a_packet_is_carried_until_a_neighbour_is_nearer() {
    let places = [at(0.0, 0.0), at(-300.0, 0.0), at(9000.0, 9000.0)];
    let mut world = World::new(500.0, Mib::default(), &places);
    world.meet();
    world.send(0, &carried(Destination::Area(circle(3000.0, 0.0, 200.0))));
    world.run(5 * SECOND);
    assert_eq!((world.nodes[0].station.held_packets(), world.senders_of(GBC).len()), (1, 0));
    world.place(2, at(300.0, -100.0));
    world.run(5 * SECOND);
    assert_eq!(world.senders_of(GBC).first(), Some(&0));
    let (_, frame) = world.sent.iter().find(|(_, frame)| frame[19] == GBC).unwrap();
    assert_eq!(frame[..6], link_address(2).0, "to the neighbour, not to everybody");
    assert_eq!(world.nodes[0].station.held_packets(), 0);
}

/// ```text
///   0     1     2     ( 3 )        0 hears 1 and 2, of which 2 is nearer
/// ```
#[test]
fn greedy_forwarding_takes_the_neighbour_that_is_nearest() {
    let mut world = World::new(900.0, Mib::default(), &road(4));
    world.meet();
    world.send(0, &request(Destination::Area(circle(1200.0, 0.0, 100.0))));
    world.run(SECOND);
    assert_eq!((world.senders_of(GBC)[..2].to_vec(), world.deliveries()), (vec![0, 2], vec![0, 0, 0, 1]));
    assert_eq!(world.sent.iter().find(|(_, frame)| frame[19] == GBC).unwrap().1[..6], link_address(2).0);
}

/// ```text
///   1     0                        ( area )       1 is farther from it than 0
/// ```
#[test]
fn at_a_local_maximum_a_packet_without_the_bit_is_for_everybody() {
    let mut world = World::new(500.0, Mib::default(), &[at(0.0, 0.0), at(-300.0, 0.0)]);
    world.meet();
    world.send(0, &request(Destination::Area(circle(3000.0, 0.0, 200.0))));
    assert_eq!((world.nodes[0].station.held_packets(), world.senders_of(GBC)), (0, vec![0]));
    assert_eq!(world.sent.last().unwrap().1[..6], MacAddress::BROADCAST.0);
}

/// ```text
///   0     1     ( 2     3 )
/// ```
#[test]
fn a_gac_ends_at_the_first_station_of_its_area() {
    let mut world = World::new(500.0, Mib::default(), &road(4));
    world.meet();
    world.send(0, &request(Destination::AnyIn(circle(1000.0, 0.0, 300.0))));
    world.run(SECOND);
    assert_eq!(world.deliveries(), [0, 0, 1, 0]);
    assert!(matches!(world.nodes[2].received[0].destination, Destination::AnyIn(_)));
    assert_eq!(world.nodes[2].station.counters().transmitted, 0);
}

#[test]
fn a_guc_goes_from_neighbour_to_neighbour() {
    let mut world = World::new(500.0, Mib::default(), &road(3));
    world.meet();
    let to = address_of(&world, 1);
    world.send(0, &request(Destination::Station(to)));
    world.run(SECOND);
    assert_eq!(world.deliveries(), [0, 1, 0]);
    assert_eq!(world.nodes[1].received[0].destination, Destination::Station(to));
    let (_, frame) = world.sent.iter().find(|(_, frame)| frame[19] == GUC).unwrap();
    assert_eq!(frame[..6], link_address(1).0);
}

/// ```text
///   0 hears 1 and 2, who hear each other; a frame for 1 is none for 2
/// ```
#[test]
fn a_frame_for_another_link_address_is_dropped() {
    let mut world = World::new(2000.0, Mib::default(), &road(3));
    world.meet();
    let to = address_of(&world, 1);
    world.send(0, &request(Destination::Station(to)));
    world.run(SECOND);
    assert_eq!((world.deliveries(), world.count(2, DropReason::OtherLinkDestination)), (vec![0, 1, 0], 1));
}

/// ```text
///   0     1     2     3        nobody has told 0 where 3 is
/// ```
#[test]
fn a_guc_to_an_unknown_station_asks_first() {
    let mut world = World::new(500.0, Mib::default(), &road(4));
    world.meet();
    let to = address_of(&world, 3);
    assert!(world.nodes[0].station.location_of(world.now, to).is_none());
    world.send(0, &request(Destination::Station(to)));
    assert_eq!(world.nodes[0].station.held_packets(), 1);
    world.run(SECOND / 2);
    assert_eq!(world.deliveries(), [0, 0, 0, 1]);
    let counters = |index: usize| world.nodes[index].station.counters();
    assert_eq!((counters(0).location_requests_sent, counters(3).location_replies_sent), (1, 1));
    assert_eq!((counters(0).location_service, counters(3).location_service), (1, 1));
    assert!(world.nodes[0].station.location_of(world.now, to).is_some());
    assert_eq!(world.senders_of(GUC), [0, 1, 2], "the way of the answer, back");
}

/// ```text
///   0     1     2           0 was told where 2 is; then 2 goes south, which only 1 hears
/// ```
#[test]
fn a_forwarder_that_hears_the_destination_renews_its_position() {
    let mut world = World::new(500.0, Mib::default(), &road(3));
    world.meet();
    let to = address_of(&world, 2);
    world.send(0, &request(Destination::Station(to)));
    world.run(SECOND);
    world.place(2, at(700.0, -200.0));
    world.run(5 * SECOND);
    world.sent.clear();
    world.send(0, &request(Destination::Station(to)));
    world.run(SECOND);
    assert_eq!(world.deliveries(), [0, 0, 2]);
    let positions: Vec<&[u8]> =
        world.sent.iter().filter(|(_, frame)| frame[19] == GUC).map(|(_, frame)| &frame[66..74]).collect();
    let [first, renewed] = positions[..] else { panic!("{positions:?}") };
    assert_ne!(first, renewed, "the old position, then the one that 1 has heard");
}

#[test]
fn a_station_that_nobody_knows_is_sought_for_a_while() {
    let mut world = World::new(500.0, Mib::default(), &road(2));
    world.meet();
    world.send(0, &request(Destination::Station(address(99))));
    world.run(10 * SECOND + SECOND / 2);
    assert_eq!(world.nodes[0].station.counters().location_requests_sent, 11, "the first and ten repetitions");
    assert_eq!(world.nodes[0].station.held_packets(), 1);
    world.run(SECOND);
    let counters = world.nodes[0].station.counters();
    assert_eq!((counters.lost(DropReason::NotLocated), counters.location_requests_sent), (1, 11));
    assert_eq!(world.nodes[0].station.held_packets(), 0);
}

#[test]
fn what_waits_for_a_location_has_a_limit_in_octets() {
    let mut world = World::new(500.0, Mib::default(), &road(1));
    let one = request(Destination::Station(address(99)));
    let fit = 1024 / (one.payload.len() + 4);
    for number in 0..fit + 3 {
        world.send(0, &numbered(&one, number));
    }
    assert_eq!(world.nodes[0].station.held_packets(), fit);
    assert_eq!(world.nodes[0].station.counters().lost(DropReason::BufferOverflow), 3);
    world.check();
    world.add(Station::new(settings(99), 99), at(300.0, 0.0));
    world.run(5 * SECOND);
    assert_eq!(
        numbers_of(&world, 1),
        (3..fit + 3).collect::<Vec<_>>(),
        "the first made room, and the others kept their order"
    );
    assert_eq!(world.nodes[0].station.held_packets(), 0);
}

/// A message that can be told from others.
fn numbered(request: &SendRequest, number: usize) -> SendRequest {
    let destination_port_info = u16::try_from(number).unwrap();
    SendRequest { btp: BtpKind::B { destination_port_info }, ..request.clone() }
}

/// Numbers of the messages that a station has delivered.
fn numbers_of(world: &World, index: usize) -> Vec<usize> {
    let number = |btp| match btp {
        BtpHeader::B { destination_port_info, .. } => usize::from(destination_port_info),
        BtpHeader::A { .. } => panic!("sent in BTP-B"),
    };
    world.nodes[index].received.iter().map(|received| number(received.btp)).collect()
}

#[test]
fn what_waits_for_a_location_is_given_up_when_its_lifetime_ends() {
    let mut world = World::new(500.0, Mib::default(), &[]);
    let quiet = StationSettings { beacons: false, ..settings(0) };
    world.add(Station::new(quiet, 0), at(0.0, 0.0));
    let lifetime = Lifetime::from_parts(10, 0);
    world.send(0, &SendRequest { lifetime, ..request(Destination::Station(address(99))) });
    let station = &world.nodes[0].station;
    assert_eq!(station.poll_timeout(), Some(world.now.mono.plus(SECOND / 2)), "before it is asked again");
    world.run(SECOND / 2);
    let station = &world.nodes[0].station;
    assert_eq!((station.held_packets(), station.counters().lost(DropReason::LifetimeExpired)), (0, 1));
}

#[test]
fn what_is_carried_has_a_limit_in_octets() {
    let one = carried(Destination::Area(circle(0.0, 0.0, 500.0)));
    let octets = 4 + 8 + 44 + 4 + one.payload.len();
    let mib = Mib { bc_forwarding_packet_buffer_size: octets * 3 + 1, ..Mib::default() };
    let mut world = World::new(500.0, mib, &road(1));
    for number in 0..5 {
        world.send(0, &numbered(&one, number));
    }
    assert_eq!(world.nodes[0].station.held_packets(), 3);
    assert_eq!(world.nodes[0].station.counters().lost(DropReason::BufferOverflow), 2);
    world.add(Station::new(settings(9), 9), at(300.0, 0.0));
    world.run(5 * SECOND);
    assert_eq!(numbers_of(&world, 1), [2, 3, 4], "the first made room, and the others kept their order");
    let none = Mib { bc_forwarding_packet_buffer_size: octets - 1, ..Mib::default() };
    let mut world = World::new(500.0, none, &road(1));
    let refused = world.nodes[0].station.send(start(), &one);
    assert_eq!(refused, Err(SendError::NotSent(DropReason::BufferOverflow)));
}

/// Where 9 is, is known from a packet that 8 brought, who is no neighbour.
#[test]
fn what_is_carried_for_one_station_has_a_limit_in_octets() {
    let one = carried(Destination::Station(address(9)));
    let octets = 4 + 8 + 48 + 4 + one.payload.len();
    let mib = Mib { uc_forwarding_packet_buffer_size: octets * 3 + 1, ..Mib::default() };
    let mut world = World::new(500.0, mib, &road(1));
    let mut far = Station::new(settings(9), 9);
    far.set_ego(start(), ego(start(), at(3000.0, 0.0)));
    far.send(start(), &request(Destination::Hops(3))).unwrap();
    let mut brought = far.poll_transmit().unwrap();
    brought[6..12].copy_from_slice(&link_address(8).0);
    world.nodes[0].station.handle_frame(start(), &brought.into());
    let held = world.nodes[0].station.held_packets();
    for number in 0..5 {
        world.send(0, &numbered(&one, number));
    }
    assert_eq!(world.nodes[0].station.held_packets() - held, 3);
    assert_eq!(world.nodes[0].station.counters().lost(DropReason::BufferOverflow), 2);
    world.add(far, at(300.0, 0.0));
    world.run(5 * SECOND);
    assert_eq!(numbers_of(&world, 1), [2, 3, 4], "the first made room, and the others kept their order");
}

/// ```text
///   ( 0     1 )     2        2 hears it from within the area, where it has spread already
/// ```
#[test]
fn outside_the_area_nobody_sends_back_in() {
    let mut world = World::new(500.0, Mib::default(), &road(3));
    world.meet();
    world.send(0, &request(Destination::Area(circle(200.0, 0.0, 250.0))));
    world.run(SECOND);
    assert_eq!(world.deliveries(), [0, 1, 0]);
    assert_eq!(world.count(2, DropReason::LeftArea), 1);
    assert_eq!(world.nodes[2].station.counters().taken, 0);
}

/// ```text
///   0     1     2     ( 3 )        1 is nearer than 0, 2 nearer than 1; nobody sends backwards
/// ```
#[test]
fn outside_the_area_contention_moves_a_packet_forward() {
    let mib = Mib { non_area_forwarding_algorithm: NonAreaForwardingAlgorithm::ContentionBased, ..Mib::default() };
    let mut world = World::new(900.0, mib, &road(4));
    world.meet();
    world.send(1, &request(Destination::Area(circle(1200.0, 0.0, 100.0))));
    world.run(SECOND);
    assert_eq!(world.deliveries(), [0, 0, 0, 1]);
    assert_eq!(world.count(0, DropReason::NoProgress), 1, "0 lies behind 1");
    let to_three = address_of(&world, 3);
    world.send(0, &request(Destination::Station(to_three)));
    world.run(SECOND);
    assert_eq!(world.deliveries(), [0, 0, 0, 2]);
    assert!(world.nodes[1].station.counters().suppressed >= 1, "2 was faster");
}

#[test]
fn a_source_that_sends_too_much_is_not_forwarded() {
    let mut world = World::new(500.0, Mib { max_packet_data_rate: 2000.0, ..Mib::default() }, &road(3));
    world.meet();
    for _ in 0..200 {
        world.send(0, &request(Destination::Hops(5)));
        world.run(Duration::from_millis(20));
    }
    let counters = world.nodes[1].station.counters();
    assert_eq!(counters.delivered, 200, "who hears it itself has it");
    assert!(counters.not_forwarded(DropReason::SourceTooFast) > 100);
    assert!(world.nodes[2].received.len() < 100);
}

#[test]
fn a_large_area_is_neither_sent_nor_forwarded_to() {
    let area = circle(0.0, 0.0, 2000.0);
    let mut world = World::new(500.0, Mib::default(), &[]);
    world.add(Station::with_mib(settings(0), Mib { max_geo_area_size_m2: 1e9, ..Mib::default() }, 0), at(0.0, 0.0));
    world.add(Station::new(settings(1), 1), at(400.0, 0.0));
    world.meet();
    world.send(0, &request(Destination::Area(area)));
    world.run(SECOND);
    assert_eq!(world.nodes[1].station.counters().not_forwarded(DropReason::AreaTooLarge), 1);
    let refused = world.nodes[1].station.send(world.now, &request(Destination::Area(area)));
    assert!(matches!(refused, Err(SendError::AreaTooLarge { .. })), "{refused:?}");
    let nowhere = circle(0.0, 0.0, -1.0);
    assert_eq!(world.nodes[1].station.send(world.now, &request(Destination::Area(nowhere))), Err(SendError::Area));
}

#[test]
fn a_station_that_does_not_know_where_it_is_delivers_and_does_not_forward() {
    let mut world = World::new(500.0, Mib::default(), &road(1));
    world.meet();
    world.send(0, &request(Destination::Area(circle(0.0, 0.0, 300.0))));
    let (_, frame) = world.sent.last().unwrap();
    let mut lost = Station::new(settings(9), 9);
    lost.handle_frame(world.now, frame);
    let counters = lost.counters();
    assert_eq!((counters.delivered, counters.not_forwarded(DropReason::OwnPositionUnknown)), (1, 1));
}

#[test]
fn a_repeated_broadcast_is_delivered_once_and_ends() {
    let mut world = World::new(500.0, Mib::default(), &road(2));
    world.meet();
    let repetition = Some(Repetition { interval: SECOND, duration: 5 * SECOND });
    world.send(0, &SendRequest { repetition, ..request(Destination::Area(circle(0.0, 0.0, 300.0))) });
    world.run(20 * SECOND);
    assert_eq!(world.senders_of(GBC).iter().filter(|from| **from == 0).count(), 6);
    assert_eq!((world.deliveries(), world.nodes[0].station.counters().repetitions), (vec![0, 0], 5));
    assert_eq!(world.count(1, DropReason::LeftArea), 1);
    assert_eq!(world.count(1, DropReason::Duplicate), 5);
}

#[test]
fn what_is_carried_is_not_carried_once_more_by_its_repetition() {
    let mut world = World::new(500.0, Mib::default(), &road(1));
    let repetition = Some(Repetition { interval: SECOND, duration: 10 * SECOND });
    for destination in [Destination::Area(circle(0.0, 0.0, 300.0)), Destination::SingleHop] {
        world.send(0, &SendRequest { repetition, ..carried(destination) });
    }
    world.run(20 * SECOND);
    let station = &world.nodes[0].station;
    assert_eq!((station.held_packets(), station.counters().repetitions), (2, 0));
}

#[test]
fn a_repeated_single_hop_broadcast_is_new_each_time() {
    let mut world = World::new(500.0, Mib::default(), &road(2));
    world.meet();
    let repetition = Some(Repetition { interval: SECOND, duration: 2 * SECOND });
    world.send(0, &SendRequest { repetition, ..request(Destination::SingleHop) });
    world.run(5 * SECOND);
    assert_eq!(world.deliveries(), [0, 3]);
    let times: Vec<_> = world.nodes[1].received.iter().map(|received| received.source.timestamp).collect();
    assert!(times.is_sorted() && times[0] < times[2], "it says where the station is now");
}

/// The destination is forgotten after 20 s, and what is for an unknown station does not fit the location service's buffer.
#[test]
fn a_repetition_that_fails_is_counted() {
    let mib = Mib { location_service_packet_buffer_size: 10, ..Mib::default() };
    let mut world = World::new(500.0, mib, &road(2));
    world.meet();
    let repetition = Some(Repetition { interval: 10 * SECOND, duration: 35 * SECOND });
    let to = address_of(&world, 1);
    world.send(0, &SendRequest { repetition, ..request(Destination::Station(to)) });
    world.place(1, at(9000.0, 0.0));
    world.run(40 * SECOND);
    let counters = world.nodes[0].station.counters();
    assert_eq!((counters.repetitions, counters.not_repeated(DropReason::BufferOverflow)), (1, 2));
    assert_eq!(counters.not_forwarded(DropReason::BufferOverflow), 0);
}

#[test]
fn a_repetition_that_is_not_allowed_is_refused() {
    let mut world = World::new(500.0, Mib::default(), &road(1));
    let with = |interval| SendRequest {
        repetition: Some(Repetition { interval, duration: 60 * SECOND }),
        ..request(Destination::Hops(2))
    };
    let too_fast = world.nodes[0].station.send(start(), &with(Duration::from_millis(99)));
    assert!(matches!(too_fast, Err(SendError::RepetitionInterval { .. })));
    let lifetime = Lifetime::from_duration(59 * SECOND);
    let too_long = world.nodes[0].station.send(start(), &SendRequest { lifetime, ..with(SECOND) });
    assert!(matches!(too_long, Err(SendError::RepetitionDuration { .. })));
    for _ in 0..REPETITIONS_MAX {
        world.send(0, &with(SECOND));
    }
    assert_eq!(world.nodes[0].station.send(start(), &with(SECOND)), Err(SendError::RepetitionsFull));
}

#[test]
fn a_lifetime_that_is_none_or_too_long_is_refused() {
    let mut station = Station::new(settings(0), 0);
    station.set_ego(start(), ego(start(), at(0.0, 0.0)));
    for lifetime in [Lifetime(0), Lifetime::from_parts(7, 3)] {
        let refused = station.send(start(), &SendRequest { lifetime, ..request(Destination::SingleHop) });
        assert!(matches!(refused, Err(SendError::Lifetime { .. })));
    }
}
