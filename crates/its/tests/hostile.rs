//! Invalid, forged and very many frames: all are counted, and all state is bounded.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests may panic and read files")]

mod capture;
mod world;

use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use viaduct_its::{
    Destination, DropReason, Event, Frame, SendRequest, Station,
    access::MacAddress,
    btp::{BtpHeader, BtpKind},
    decode_frame,
    geonet::{
        Mib,
        mib::{AreaForwardingAlgorithm, LocalGnAddrConfMethod},
    },
    limits::{LOCATION_TABLE_ENTRIES_MAX, TRANSMITS_MAX},
};
use world::{World, address, at, carried, circle, ego, link_address, request, settings, start};

/// Offsets in a frame: 14 link, 4 basic header, 8 common header, 4 sequence number.
const LIFETIME: usize = 16;
const HOPS_LEFT: usize = 17;
const SEQUENCE: usize = 26;
const SOURCE: usize = 30;

/// Returns one frame of each type from station 1, for or about station 2.
fn frames() -> Vec<Bytes> {
    let mut world = World::new(500.0, Mib::default(), &[]);
    world.add(Station::new(settings(1), 1), at(0.0, 0.0));
    world.add(Station::new(settings(2), 2), at(400.0, 0.0));
    world.meet();
    let area = circle(400.0, 0.0, 500.0);
    let destinations = [
        Destination::SingleHop,
        Destination::Hops(4),
        Destination::Area(area),
        Destination::AnyIn(area),
        Destination::Station(address(2)),
        Destination::Station(address(9)),
    ];
    for destination in destinations {
        world.send(0, &request(destination));
    }
    world.run(Duration::from_secs(4));
    world.sent.into_iter().map(|(_, frame)| frame).collect()
}

fn receiver() -> Station {
    let mut station = Station::new(settings(2), 2);
    station.set_ego(start(), ego(start(), at(400.0, 0.0)));
    station
}

fn event_of(station: &mut Station, frame: &[u8]) -> Event {
    station.handle_frame(start(), &Bytes::copy_from_slice(frame));
    station.poll_event().unwrap()
}

fn frame_of(header_type: u8) -> Vec<u8> {
    frames().into_iter().find(|frame| frame[19] == header_type).unwrap().to_vec()
}

#[test]
fn each_header_type_is_decoded_without_a_station() {
    let mut types = Vec::new();
    for frame in frames() {
        types.push(frame[19]);
        match decode_frame(start().tai, &frame).unwrap() {
            Frame::Message(received) => assert_eq!(received.btp_port, 2001),
            Frame::Beacon(beacon) => assert_eq!(frame[19], 0x10, "{beacon:?}"),
            Frame::LocationService(packet) => assert_eq!((packet.about, packet.reply), (address(9), false)),
        }
    }
    for header_type in [0x10, 0x20, 0x30, 0x40, 0x50, 0x51, 0x60] {
        assert!(types.contains(&header_type), "{header_type:#x}");
    }
}

#[test]
fn each_cut_of_each_type_is_dropped() {
    for frame in frames() {
        for length in 0..frame.len() {
            let event = event_of(&mut receiver(), &frame[..length]);
            assert!(matches!(event, Event::Dropped(DropReason::Truncated | DropReason::PayloadLength)), "{event:?}");
        }
    }
}

#[test]
fn packet_at_its_last_hop_is_not_forwarded() {
    let mut frame = frame_of(0x40);
    frame[HOPS_LEFT] = 1;
    let mut outside = Station::new(settings(3), 3);
    outside.set_ego(start(), ego(start(), at(5000.0, 0.0)));
    assert_eq!(event_of(&mut outside, &frame), Event::Dropped(DropReason::HopsExhausted));
}

#[test]
fn packet_without_a_lifetime_is_not_forwarded() {
    let mut frame = frame_of(0x51);
    frame[LIFETIME] = 0;
    let mut station = receiver();
    assert!(matches!(event_of(&mut station, &frame), Event::Received(_)));
    assert_eq!(station.counters().not_forwarded(DropReason::LifetimeExpired), 1);
    assert_eq!(station.counters().taken, 0);
}

#[test]
fn invalid_area_is_dropped() {
    let mut frame = frame_of(0x40);
    frame[SOURCE + 24] = 0x7F;
    assert_eq!(event_of(&mut receiver(), &frame), Event::Dropped(DropReason::AreaInvalid));
}

#[test]
fn unicast_without_a_position_is_dropped() {
    let mut frame = frame_of(0x20);
    frame[..6].fill(0xFF);
    frame[SOURCE + 24 + 7] = 77;
    frame[SOURCE + 24 + 12] = 0x7F;
    assert_eq!(event_of(&mut receiver(), &frame), Event::Dropped(DropReason::DestinationUnknown));
}

#[test]
fn buffered_packet_is_sent_with_its_remaining_lifetime() {
    let mut world = World::new(500.0, Mib::default(), &[at(0.0, 0.0), at(9000.0, 0.0)]);
    world.meet();
    world.send(0, &carried(Destination::Hops(3)));
    world.run(Duration::from_secs(30));
    world.place(1, at(100.0, 0.0));
    world.run(Duration::from_secs(5));
    let (_, frame) = world.sent.iter().find(|(_, frame)| frame[19] == 0x51).unwrap();
    let multiplier = frame[LIFETIME] >> 2;
    assert!(frame[LIFETIME] & 3 == 1 && (25..=30).contains(&multiplier), "{multiplier} s of one minute remain");
}

#[test]
fn duplicate_address_is_distinguished_from_an_echo() {
    let mib = Mib { local_gn_addr_conf_method: LocalGnAddrConfMethod::Auto, ..Mib::default() };
    let mut station = Station::with_mib(settings(2), mib, 2);
    station.set_ego(start(), ego(start(), at(0.0, 0.0)));
    let first = station.address();
    assert!(!first.is_manual());
    station.send(start(), &request(Destination::Hops(3))).unwrap();
    station.send(start(), &request(Destination::SingleHop)).unwrap();
    let own: Vec<_> = std::iter::from_fn(|| station.poll_transmit()).collect();
    let mut sent_back = own[0].clone();
    sent_back[6..12].copy_from_slice(&link_address(7).0);
    for echo in [&own[0], &own[1], &sent_back] {
        assert_eq!(event_of(&mut station, echo), Event::Dropped(DropReason::OwnPacket));
    }
    let mut other = own[1].clone();
    other[6..12].copy_from_slice(&link_address(7).0);
    assert_eq!(event_of(&mut station, &other), Event::Dropped(DropReason::DuplicateAddress));
    let second = station.address();
    assert_ne!(first, second);
    assert!(!second.mid().is_group());
    assert_eq!(event_of(&mut station, &own[0]), Event::Dropped(DropReason::OwnPacket), "earlier packets are its own");
    assert!(
        matches!(event_of(&mut station, &other), Event::Received(_)),
        "the other station keeps the address and is received"
    );

    station.send(start(), &request(Destination::SingleHop)).unwrap();
    let mut again = station.poll_transmit().unwrap();
    assert_eq!(again[6..12], second.mid().0, "the station sends with its new address");
    again[6..12].copy_from_slice(&link_address(7).0);
    assert_eq!(event_of(&mut station, &again), Event::Dropped(DropReason::DuplicateAddress));
    assert_eq!(station.address(), second, "the address does not change repeatedly");
    assert_eq!(station.counters().address_changes, 1);
}

/// The other station keeps the GeoNetworking and link address that this station has abandoned.
#[test]
fn station_with_a_former_address_is_received() {
    let mib = Mib { local_gn_addr_conf_method: LocalGnAddrConfMethod::Auto, ..Mib::default() };
    let mut station = Station::with_mib(settings(2), mib, 2);
    let send = |station: &mut Station, destination| {
        station.set_ego(start(), ego(start(), at(0.0, 0.0)));
        station.send(start(), &request(destination)).unwrap();
        station.poll_transmit().unwrap()
    };
    let (own, single_hop) = (send(&mut station, Destination::Hops(3)), send(&mut station, Destination::SingleHop));
    let mut other = own.clone();
    let number = u16::from_be_bytes([own[SEQUENCE], own[SEQUENCE + 1]]).wrapping_add(3);
    other[SEQUENCE..SEQUENCE + 2].copy_from_slice(&number.to_be_bytes());
    assert_eq!(event_of(&mut station, &other), Event::Dropped(DropReason::DuplicateAddress));
    for _ in 0..5 {
        send(&mut station, Destination::Hops(3));
    }
    assert!(
        matches!(event_of(&mut station, &other), Event::Received(_)),
        "this station uses that sequence number later"
    );
    assert_eq!(event_of(&mut station, &own), Event::Dropped(DropReason::OwnPacket));
    assert_eq!(event_of(&mut station, &single_hop), Event::Dropped(DropReason::OwnPacket));
    let later = start().plus(Duration::from_secs(2));
    station.handle_frame(later, &single_hop.into());
    assert!(matches!(station.poll_event(), Some(Event::Received(_))), "too late for an echo");
    station.handle_frame(start().plus(Duration::from_secs(599)), &own.clone().into());
    assert_eq!(station.poll_event(), Some(Event::Dropped(DropReason::OwnPacket)));
    station.handle_frame(start().plus(Duration::from_secs(601)), &own.into());
    assert_ne!(station.poll_event(), Some(Event::Dropped(DropReason::OwnPacket)), "longer than any packet's lifetime");
}

#[test]
fn unused_sequence_number_is_not_an_own_packet() {
    let mut station = receiver();
    let mut frame = frame_of(0x51);
    frame[SOURCE..SOURCE + 8].copy_from_slice(&address(2).0);
    frame[SEQUENCE..SEQUENCE + 2].copy_from_slice(&500_u16.to_be_bytes());
    assert_eq!(event_of(&mut station, &frame), Event::Dropped(DropReason::DuplicateAddress));
    assert_eq!(station.address(), address(2), "a configured address does not change");
}

#[test]
fn btp_a_has_the_source_port() {
    let mut world = World::new(500.0, Mib::default(), &[at(0.0, 0.0), at(100.0, 0.0)]);
    let btp = BtpKind::A { source_port: 60_123 };
    world.send(0, &SendRequest { btp, ..request(Destination::SingleHop) });
    world.run(Duration::from_millis(10));
    let received = &world.nodes[1].received[0];
    assert_eq!(received.btp, BtpHeader::A { destination_port: 2001, source_port: 60_123 });
    world.send(0, &request(Destination::SingleHop));
    world.run(Duration::from_millis(10));
    let expected = BtpHeader::B { destination_port: 2001, destination_port_info: 0 };
    assert_eq!(world.nodes[1].received[1].btp, expected);
}

#[test]
fn unknown_transport_is_forwarded_but_not_delivered() {
    let mut frame = frame_of(0x51);
    frame[18] = 0x30;
    let mut station = receiver();
    assert_eq!(event_of(&mut station, &frame), Event::Dropped(DropReason::TransportUnsupported));
    assert_eq!(station.counters().forwarded, 1);
}

#[test]
fn flood_of_sources_does_not_exceed_the_table() {
    let mut station = receiver();
    let mut frame = frame_of(0x51);
    let mut now = start();
    for number in 0..u32::try_from(LOCATION_TABLE_ENTRIES_MAX).unwrap() + 500 {
        // From 256 on, to avoid the station's own address.
        frame[SOURCE + 4..SOURCE + 8].copy_from_slice(&(number + 256).to_be_bytes());
        now = now.plus(Duration::from_micros(100));
        station.handle_frame(now, &Bytes::copy_from_slice(&frame));
        station.poll_event().unwrap();
        while station.poll_transmit().is_some() {}
    }
    assert_eq!((station.known_stations(), station.evicted_stations()), (LOCATION_TABLE_ENTRIES_MAX, 500));
}

#[test]
fn contention_buffer_is_bounded_in_octets() {
    let frame = frame_of(0x40);
    let octets = frame.len() - 14;
    let mib = Mib { cbf_packet_buffer_size: octets * 4, ..Mib::default() };
    let mut station = Station::with_mib(settings(2), mib, 2);
    station.set_ego(start(), ego(start(), at(400.0, 0.0)));
    for number in 100_u16..110 {
        let mut copy = frame.clone();
        copy[SEQUENCE..SEQUENCE + 2].copy_from_slice(&number.to_be_bytes());
        assert!(matches!(event_of(&mut station, &copy), Event::Received(_)));
    }
    assert_eq!((station.held_packets(), station.counters().lost(DropReason::BufferOverflow)), (4, 6));
}

#[test]
fn contenders_beyond_the_transmit_queue_are_sent_in_turn() {
    let frame = frame_of(0x40);
    let mut station = receiver();
    let count = TRANSMITS_MAX + 10;
    for number in 0..count {
        let mut copy = frame.clone();
        let number = u16::try_from(number + 100).unwrap();
        copy[SEQUENCE..SEQUENCE + 2].copy_from_slice(&number.to_be_bytes());
        event_of(&mut station, &copy);
    }
    let later = start().plus(Duration::from_secs(1));
    station.handle_timeout(later);
    assert_eq!(std::iter::from_fn(|| station.poll_transmit()).count(), TRANSMITS_MAX);
    assert!(station.poll_timeout().unwrap() <= later.mono, "the next timeout is not later");
    station.handle_timeout(later);
    assert_eq!(std::iter::from_fn(|| station.poll_transmit()).count(), 10);
    assert_eq!(station.counters().lost_total(), 0);
}

#[test]
fn unpolled_frames_cause_drops() {
    let mib = Mib { area_forwarding_algorithm: AreaForwardingAlgorithm::Simple, ..Mib::default() };
    let mut station = Station::with_mib(settings(2), mib, 2);
    station.set_ego(start(), ego(start(), at(400.0, 0.0)));
    let frame = frame_of(0x40);
    for number in 0..TRANSMITS_MAX + 3 {
        let mut copy = frame.clone();
        let number = u16::try_from(number + 100).unwrap();
        copy[SEQUENCE..SEQUENCE + 2].copy_from_slice(&number.to_be_bytes());
        event_of(&mut station, &copy);
    }
    assert_eq!(station.counters().not_forwarded(DropReason::TransmitQueueFull), 3);
}

/// A change of a frame: index of the frame, octets to overwrite, length after truncation.
type Change = (usize, Vec<(usize, u8)>, usize);

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let octets = proptest::collection::vec((0..160_usize, any::<u8>()), 0..4);
    let cut = prop_oneof![8 => Just(usize::MAX), 1 => 0..160_usize];
    proptest::collection::vec((0..64_usize, octets, cut), 0..120)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// For any input at any time, each frame is counted once, each packet is disposed of once, and the tables keep
    /// their limits.
    #[test]
    fn any_sequence_of_frames_is_accounted_for(changes in changes(), gap_ms in 0..400_u64, drain in any::<bool>()) {
        let seeds = frames();
        let mib = Mib { cbf_packet_buffer_size: 600, uc_forwarding_packet_buffer_size: 600, ..Mib::default() };
        let mut station = Station::with_mib(settings(3), mib, 3);
        let mut now = start();
        station.set_ego(now, ego(now, at(300.0, 50.0)));
        for (index, octets, cut) in changes {
            let mut frame = seeds[index % seeds.len()].to_vec();
            for (offset, octet) in octets {
                let offset = offset % frame.len();
                frame[offset] = octet;
            }
            frame.truncate(cut.max(1));
            station.handle_frame(now, &Bytes::from(frame));
            while drain && station.poll_transmit().is_some() {}
            while drain && station.poll_event().is_some() {}
            now = now.plus(Duration::from_millis(gap_ms));
            station.handle_timeout(now);
        }
        let counters = station.counters();
        let processed = counters.delivered + counters.relayed + counters.beacons + counters.location_service;
        prop_assert_eq!(counters.received, processed + counters.dropped_total());
        let ended = counters.transmitted + counters.suppressed + counters.lost_total();
        prop_assert_eq!(counters.taken, ended + station.held_packets() as u64);
        prop_assert!(station.known_stations() <= LOCATION_TABLE_ENTRIES_MAX);
        prop_assert!(std::iter::from_fn(|| station.poll_transmit()).count() <= TRANSMITS_MAX);
    }

    /// Without input, a station sends or drops all buffered packets.
    #[test]
    fn buffered_packets_are_sent_or_dropped(count in 1..40_usize, lifetime_s in 1..60_u8) {
        let quiet = viaduct_its::StationSettings { beacons: false, ..settings(1) };
        let mut station = Station::new(quiet, 1);
        let mut now = start();
        station.set_ego(now, ego(now, at(0.0, 0.0)));
        let lifetime = viaduct_its::geonet::Lifetime::from_parts(lifetime_s, 1);
        for number in 0..count {
            let destination = match number % 3 {
                0 => Destination::Area(circle(900.0, 0.0, 100.0)),
                1 => Destination::Hops(4),
                _ => Destination::Station(address(50)),
            };
            station.send(now, &SendRequest { lifetime, ..carried(destination) }).unwrap();
        }
        for _ in 0..500 {
            let Some(due) = station.poll_timeout() else { break };
            now = now.plus(due.since(now.mono));
            station.handle_timeout(now);
            while station.poll_transmit().is_some() {}
        }
        prop_assert_eq!((station.poll_timeout(), station.held_packets()), (None, 0));
        let counters = station.counters();
        prop_assert_eq!(counters.taken, counters.transmitted + counters.lost_total());
    }
}

/// The captured CAMs are single-hop broadcasts, so their senders become neighbours.
#[test]
fn captured_sender_becomes_a_neighbour() {
    let frame = capture::vector("cam.hex");
    let mut station = receiver();
    let Event::Received(received) = event_of(&mut station, &frame) else { panic!() };
    let (vector, neighbour) = station.location_of(start(), received.source.address).unwrap();
    assert!(neighbour);
    assert_eq!(vector, received.source);
    assert_eq!(received.link_source, MacAddress([0x48, 0xa9, 0x8a, 0x90, 0x82, 0x7f]));
}
