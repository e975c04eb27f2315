//! Multi-hop packets between a few stations: delivery, forwarding and drops.

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

/// Returns positions every 400 m along a road to the east; the range of a frame is 500 m.
fn road(count: u8) -> Vec<Position> {
    (0..count).map(|number| at(f64::from(number) * 400.0, 0.0)).collect()
}

/// ```text
///                 ( area: 2, 3, 4 )
///   0     1     ( 2     3     4 )     5
/// ```
#[test]
fn gbc_reaches_its_area_and_is_delivered_once_per_station() {
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
    assert!(left <= 60 * SECOND && left > 58 * SECOND, "{left:?} of one minute remain");
    assert_eq!(world.nodes[1].station.counters().forwarded, 1, "1 is outside the area and forwards the packet");
}

/// Returns a circle on the road with the resolution of a packet.
fn circle_as_sent(east_m: f64, radius_m: f64) -> Area {
    let Area { centre, shape } = circle(east_m, 0.0, radius_m);
    Area { centre: as_sent(centre), shape }
}

/// Returns a position rounded to tenths of a microdegree, as in a packet.
fn as_sent(position: Position) -> Position {
    let tenths = |degrees: Degrees| Degrees((degrees.value() * 1e7).round() / 1e7);
    Position { latitude: tenths(position.latitude), longitude: tenths(position.longitude) }
}

fn address_of(world: &World, index: usize) -> viaduct_its::geonet::GnAddress {
    world.nodes[index].station.address()
}

#[test]
fn own_packet_is_not_forwarded() {
    for algorithm in [AreaForwardingAlgorithm::Simple, AreaForwardingAlgorithm::ContentionBased] {
        let mib = Mib { area_forwarding_algorithm: algorithm, ..Mib::default() };
        let mut world = World::new(500.0, mib, &road(3));
        world.meet();
        world.send(0, &request(Destination::Area(circle(400.0, 0.0, 1000.0))));
        world.run(SECOND);
        assert_eq!(world.deliveries(), [0, 1, 1], "{algorithm:?}");
        assert!(world.count(0, DropReason::OwnPacket) >= 1, "1 forwarded the packet, and 0 received the copy");
        assert_eq!(world.nodes[0].station.counters().transmitted, 1);
    }
}

/// ```text
///   0      1 2 3 4      (all are in range of each other and in the area)
/// ```
#[test]
fn station_that_receives_a_forwarded_copy_does_not_forward() {
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
    assert_eq!(senders, [0, 4], "the farthest station forwards first");
    assert_eq!(suppressed, 3);
}

#[test]
fn packet_is_forwarded_up_to_its_hop_limit() {
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
fn duplicate_packets_are_delivered_once() {
    let mut world = World::new(2000.0, Mib::default(), &road(4));
    world.meet();
    world.send(0, &request(Destination::Hops(5)));
    world.run(SECOND);
    assert_eq!(world.deliveries(), [0, 1, 1, 1]);
    assert_eq!(world.count(1, DropReason::Duplicate), 2, "2 and 3 sent copies");
}

/// ```text
///   0        (no neighbour)        then 1 comes into range
/// ```
#[test]
fn packet_is_buffered_until_there_is_a_neighbour() {
    let mut world = World::new(500.0, Mib::default(), &[at(0.0, 0.0), at(5000.0, 0.0)]);
    world.meet();
    world.send(0, &carried(Destination::Area(circle(0.0, 0.0, 1500.0))));
    assert_eq!((world.nodes[0].station.held_packets(), world.senders_of(GBC).len()), (1, 0));
    world.run(20 * SECOND);
    world.place(1, at(300.0, 0.0));
    world.run(5 * SECOND);
    assert_eq!(world.deliveries(), [0, 1]);
    let left = world.nodes[1].received[0].remaining_lifetime;
    assert!(left <= 41 * SECOND && left >= 34 * SECOND, "{left:?} of one minute remain");
}

#[test]
fn packet_without_scf_is_broadcast_at_once() {
    let mut world = World::new(500.0, Mib::default(), &road(1));
    world.send(0, &request(Destination::Area(circle(0.0, 0.0, 500.0))));
    assert_eq!((world.nodes[0].station.held_packets(), world.senders_of(GBC).len()), (0, 1));
}

#[test]
fn buffered_packet_is_dropped_after_its_lifetime() {
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
///   1     0                        ( area )       1 is farther from the area than 0; then 2 appears
///              2
/// ```
#[test]
fn packet_is_buffered_at_a_local_maximum() {
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
    assert_eq!(frame[..6], link_address(2).0, "unicast to the neighbour");
    assert_eq!(world.nodes[0].station.held_packets(), 0);
}

/// ```text
///   0     1     2     ( 3 )        1 and 2 are neighbours of 0; 2 is nearer to the area
/// ```
#[test]
fn greedy_forwarding_selects_the_nearest_neighbour() {
    let mut world = World::new(900.0, Mib::default(), &road(4));
    world.meet();
    world.send(0, &request(Destination::Area(circle(1200.0, 0.0, 100.0))));
    world.run(SECOND);
    assert_eq!((world.senders_of(GBC)[..2].to_vec(), world.deliveries()), (vec![0, 2], vec![0, 0, 0, 1]));
    assert_eq!(world.sent.iter().find(|(_, frame)| frame[19] == GBC).unwrap().1[..6], link_address(2).0);
}

/// ```text
///   1     0                        ( area )       1 is farther from the area than 0
/// ```
#[test]
fn packet_without_scf_is_broadcast_at_a_local_maximum() {
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
fn gac_ends_at_the_first_station_of_its_area() {
    let mut world = World::new(500.0, Mib::default(), &road(4));
    world.meet();
    world.send(0, &request(Destination::AnyIn(circle(1000.0, 0.0, 300.0))));
    world.run(SECOND);
    assert_eq!(world.deliveries(), [0, 0, 1, 0]);
    assert!(matches!(world.nodes[2].received[0].destination, Destination::AnyIn(_)));
    assert_eq!(world.nodes[2].station.counters().transmitted, 0);
}

#[test]
fn guc_is_forwarded_from_neighbour_to_neighbour() {
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
///   0, 1 and 2 are in range of each other; 2 drops a frame for 1
/// ```
#[test]
fn frame_for_another_link_address_is_dropped() {
    let mut world = World::new(2000.0, Mib::default(), &road(3));
    world.meet();
    let to = address_of(&world, 1);
    world.send(0, &request(Destination::Station(to)));
    world.run(SECOND);
    assert_eq!((world.deliveries(), world.count(2, DropReason::OtherLinkDestination)), (vec![0, 1, 0], 1));
}

/// ```text
///   0     1     2     3        0 does not have the position of 3
/// ```
#[test]
fn guc_to_an_unknown_station_starts_a_location_request() {
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
    assert_eq!(world.senders_of(GUC), [0, 1, 2], "reverse path of the LS reply");
}

/// ```text
///   0     1     2           0 has the position of 2; then 2 moves south, out of range of 0
/// ```
#[test]
fn forwarder_updates_the_position_of_its_neighbour() {
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
    assert_ne!(first, renewed, "first the old position, then the one known to 1");
}

#[test]
fn location_request_for_an_unknown_station_ends() {
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
fn location_service_buffer_is_bounded_in_octets() {
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
        "the first was evicted, and the others keep their order"
    );
    assert_eq!(world.nodes[0].station.held_packets(), 0);
}

/// Returns a request whose message contains a number.
fn numbered(request: &SendRequest, number: usize) -> SendRequest {
    let destination_port_info = u16::try_from(number).unwrap();
    SendRequest { btp: BtpKind::B { destination_port_info }, ..request.clone() }
}

/// Returns the numbers of the messages that a station has delivered.
fn numbers_of(world: &World, index: usize) -> Vec<usize> {
    let number = |btp| match btp {
        BtpHeader::B { destination_port_info, .. } => usize::from(destination_port_info),
        BtpHeader::A { .. } => panic!("sent in BTP-B"),
    };
    world.nodes[index].received.iter().map(|received| number(received.btp)).collect()
}

#[test]
fn location_service_buffer_drops_expired_packets() {
    let mut world = World::new(500.0, Mib::default(), &[]);
    let quiet = StationSettings { beacons: false, ..settings(0) };
    world.add(Station::new(quiet, 0), at(0.0, 0.0));
    let lifetime = Lifetime::from_parts(10, 0);
    world.send(0, &SendRequest { lifetime, ..request(Destination::Station(address(99))) });
    let station = &world.nodes[0].station;
    assert_eq!(station.poll_timeout(), Some(world.now.mono.plus(SECOND / 2)), "before the request is repeated");
    world.run(SECOND / 2);
    let station = &world.nodes[0].station;
    assert_eq!((station.held_packets(), station.counters().lost(DropReason::LifetimeExpired)), (0, 1));
}

#[test]
fn broadcast_buffer_is_bounded_in_octets() {
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
    assert_eq!(numbers_of(&world, 1), [2, 3, 4], "the first was evicted, and the others keep their order");
    let none = Mib { bc_forwarding_packet_buffer_size: octets - 1, ..Mib::default() };
    let mut world = World::new(500.0, none, &road(1));
    let refused = world.nodes[0].station.send(start(), &one);
    assert_eq!(refused, Err(SendError::NotSent(DropReason::BufferOverflow)));
}

/// The position of station 9 is known from a packet forwarded by station 8; station 9 is not a neighbour.
#[test]
fn unicast_buffer_is_bounded_in_octets() {
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
    assert_eq!(numbers_of(&world, 1), [2, 3, 4], "the first was evicted, and the others keep their order");
}

/// ```text
///   ( 0     1 )     2        2 receives the packet from within the area, where it is already distributed
/// ```
#[test]
fn packet_is_not_forwarded_back_into_its_area() {
    let mut world = World::new(500.0, Mib::default(), &road(3));
    world.meet();
    world.send(0, &request(Destination::Area(circle(200.0, 0.0, 250.0))));
    world.run(SECOND);
    assert_eq!(world.deliveries(), [0, 1, 0]);
    assert_eq!(world.count(2, DropReason::LeftArea), 1);
    assert_eq!(world.nodes[2].station.counters().taken, 0);
}

/// ```text
///   0     1     2     ( 3 )        1 is nearer than 0, 2 nearer than 1; no station forwards backwards
/// ```
#[test]
fn contention_outside_the_area_forwards_towards_it() {
    let mib = Mib { non_area_forwarding_algorithm: NonAreaForwardingAlgorithm::ContentionBased, ..Mib::default() };
    let mut world = World::new(900.0, mib, &road(4));
    world.meet();
    world.send(1, &request(Destination::Area(circle(1200.0, 0.0, 100.0))));
    world.run(SECOND);
    assert_eq!(world.deliveries(), [0, 0, 0, 1]);
    assert_eq!(world.count(0, DropReason::NoProgress), 1, "0 is farther than 1");
    let to_three = address_of(&world, 3);
    world.send(0, &request(Destination::Station(to_three)));
    world.run(SECOND);
    assert_eq!(world.deliveries(), [0, 0, 0, 2]);
    assert!(world.nodes[1].station.counters().suppressed >= 1, "2 was faster");
}

#[test]
fn packets_of_a_source_above_the_rate_limit_are_not_forwarded() {
    let mut world = World::new(500.0, Mib { max_packet_data_rate: 2000.0, ..Mib::default() }, &road(3));
    world.meet();
    for _ in 0..200 {
        world.send(0, &request(Destination::Hops(5)));
        world.run(Duration::from_millis(20));
    }
    let counters = world.nodes[1].station.counters();
    assert_eq!(counters.delivered, 200, "the direct neighbour delivers it");
    assert!(counters.not_forwarded(DropReason::SourceTooFast) > 100);
    assert!(world.nodes[2].received.len() < 100);
}

#[test]
fn too_large_area_is_neither_sent_nor_forwarded() {
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
fn station_without_a_position_delivers_but_does_not_forward() {
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
fn repeated_broadcast_is_delivered_once_and_ends() {
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
fn repetition_of_a_buffered_packet_is_not_buffered_again() {
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
fn repeated_single_hop_broadcast_has_a_new_position_each_time() {
    let mut world = World::new(500.0, Mib::default(), &road(2));
    world.meet();
    let repetition = Some(Repetition { interval: SECOND, duration: 2 * SECOND });
    world.send(0, &SendRequest { repetition, ..request(Destination::SingleHop) });
    world.run(5 * SECOND);
    assert_eq!(world.deliveries(), [0, 3]);
    let times: Vec<_> = world.nodes[1].received.iter().map(|received| received.source.timestamp).collect();
    assert!(times.is_sorted() && times[0] < times[2], "it has the current position of the station");
}

/// The destination's entry expires after 20 s, and a packet to an unknown station does not fit into the location
/// service's buffer.
#[test]
fn failed_repetition_is_counted() {
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
fn invalid_repetition_is_rejected() {
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
fn zero_or_too_long_lifetime_is_rejected() {
    let mut station = Station::new(settings(0), 0);
    station.set_ego(start(), ego(start(), at(0.0, 0.0)));
    for lifetime in [Lifetime(0), Lifetime::from_parts(7, 3)] {
        let refused = station.send(start(), &SendRequest { lifetime, ..request(Destination::SingleHop) });
        assert!(matches!(refused, Err(SendError::Lifetime { .. })));
    }
}
