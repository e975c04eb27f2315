//! The station in virtual time.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests may panic and read files")]

mod capture;

use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use viaduct_its::{
    Destination, DropReason, Ego, Event, SendError, SendRequest, Station, StationSettings,
    access::MacAddress,
    facilities::{Message, MessageKind, cam},
    geonet::mib::{ITS_GN_BEACON_SERVICE_MAX_JITTER, ITS_GN_BEACON_SERVICE_RETRANSMIT_TIMER},
    limits::{EVENTS_MAX, PAYLOAD_OCTETS_MAX, TRANSMITS_MAX},
};
use viaduct_units::{Degrees, MetresPerSecond, Mono, Now, Position, StationId, StationType, TimestampIts};

fn start() -> Now {
    Now { mono: Mono(Duration::from_secs(100)), tai: TimestampIts(650_000_000_000).tai() }
}

fn station(number: u8) -> Station {
    let link_address = MacAddress([2, 0, 0, 0, 0, number]);
    Station::new(
        StationSettings { link_address, station_type: StationType::PASSENGER_CAR, mobile: true, beacons: true },
        number.into(),
    )
}

fn ego(now: Now) -> Ego {
    Ego {
        time: now.tai,
        position: Position::new(48.262_5, 11.667_5),
        position_accurate: true,
        speed: MetresPerSecond(13.89),
        heading: Some(Degrees(90.0)),
    }
}

fn cam_request(now: Now) -> SendRequest {
    let input = cam::CamInput { position: Some(ego(now).position), ..cam::CamInput::new(StationId(7), now.tai) };
    let payload = Message::Cam(Box::new(cam::build(&input))).encode().unwrap();
    SendRequest::single_hop(MessageKind::Cam, Bytes::from(payload))
}

#[test]
fn message_is_delivered_to_the_other_station() {
    let (mut sender, mut receiver) = (station(1), station(2));
    let sent = start();
    sender.set_ego(sent, ego(sent));
    let request = cam_request(sent);
    sender.send(sent, &request).unwrap();
    let frame = Bytes::from(sender.poll_transmit().unwrap());
    let arrived = sent.plus(Duration::from_millis(3));
    receiver.handle_frame(arrived, &frame);

    let Some(Event::Received(received)) = receiver.poll_event() else { panic!() };
    assert_eq!(received.payload, request.payload);
    assert_eq!(received.source.address, sender.address());
    assert_eq!(received.source.timestamp, sent.tai);
    assert_eq!(received.summary.generation, Some(sent.tai));
    assert_eq!(received.traffic_class, MessageKind::Cam.traffic_class());
    assert_eq!(receiver.counters().delivered, 1);

    sender.handle_frame(arrived, &frame);
    assert_eq!(sender.poll_event(), Some(Event::Dropped(DropReason::OwnPacket)));
}

/// EN 302 636-4-1, 8.3 and annex A: with sequence numbers from 0 again, the first packets would be taken for
/// duplicates.
#[test]
fn packets_of_a_restarted_station_are_not_duplicates() {
    let mut receiver = station(2);
    for (second, delivered) in [(0, 1), (5, 2)] {
        let now = start().plus(Duration::from_secs(second));
        let mut sender = station(1).with_sequence_of(now.tai);
        sender.set_ego(now, ego(now));
        sender.send(now, &SendRequest { destination: Destination::Hops(3), ..cam_request(now) }).unwrap();
        receiver.handle_frame(now, &Bytes::from(sender.poll_transmit().unwrap()));
        assert_eq!(receiver.counters().delivered, delivered);
    }
}

#[test]
fn idle_station_sends_beacons() {
    let (mut sender, mut receiver) = (station(1), station(2));
    let mut now = start();
    assert_eq!(sender.poll_timeout(), None, "it has no position");
    sender.set_ego(now, ego(now));
    for number in 0..10 {
        let due = sender.poll_timeout().unwrap();
        let wait = due.since(now.mono);
        let jitter = if number == 0 { wait } else { wait.checked_sub(ITS_GN_BEACON_SERVICE_RETRANSMIT_TIMER).unwrap() };
        assert!(jitter <= ITS_GN_BEACON_SERVICE_MAX_JITTER, "{jitter:?}");
        sender.handle_timeout(now);
        assert_eq!(sender.poll_transmit(), None, "the beacon is not due yet");
        now = now.plus(wait);
        sender.handle_timeout(now);
        receiver.handle_frame(now, &Bytes::from(sender.poll_transmit().unwrap()));
        assert!(matches!(receiver.poll_event(), Some(Event::Beacon(_))));
    }
    assert_eq!((sender.counters().beacons_sent, receiver.counters().beacons), (10, 10));
}

#[test]
fn message_delays_the_beacon() {
    let mut sender = station(1);
    let mut now = start();
    sender.set_ego(now, ego(now));
    for _ in 0..100 {
        sender.send(now, &cam_request(now)).unwrap();
        assert!(sender.poll_transmit().is_some());
        now = now.plus(Duration::from_secs(1));
        sender.handle_timeout(now);
    }
    assert_eq!((sender.counters().sent, sender.counters().beacons_sent), (100, 0));
}

#[test]
fn jitter_depends_on_the_seed() {
    let first_beacon = |number: u8| {
        let mut station = station(number);
        station.set_ego(start(), ego(start()));
        station.poll_timeout().unwrap()
    };
    assert_eq!(first_beacon(1), first_beacon(1));
    assert_ne!(first_beacon(1), first_beacon(2));
}

#[test]
fn invalid_requests_are_rejected() {
    let mut sender = station(1);
    let now = start();
    let request = cam_request(now);
    assert_eq!(sender.send(now, &request), Err(SendError::NoPosition));
    sender.set_ego(now, ego(now));
    let wrong = SendRequest { kind: MessageKind::Cpm, ..request.clone() };
    assert_eq!(sender.send(now, &wrong), Err(SendError::WrongMessage { expected: "cpm", found: Some(2) }));
    let empty = SendRequest::single_hop(MessageKind::Cpm, Bytes::new());
    assert_eq!(sender.send(now, &empty), Err(SendError::WrongMessage { expected: "cpm", found: None }));
    let mut long = request.payload.to_vec();
    long.resize(PAYLOAD_OCTETS_MAX + 1, 0);
    let too_long = SendRequest::single_hop(MessageKind::Cam, Bytes::from(long));
    assert_eq!(sender.send(now, &too_long), Err(SendError::TooLong { octets: PAYLOAD_OCTETS_MAX + 1 }));
    for _ in 0..TRANSMITS_MAX {
        sender.send(now, &request).unwrap();
    }
    assert_eq!(sender.send(now, &request), Err(SendError::QueueFull));
    sender.handle_timeout(now.plus(Duration::from_secs(10)));
    assert_eq!(sender.counters().beacons_skipped, 1);
}

#[test]
fn unpolled_events_are_dropped_and_counted() {
    let mut receiver = station(2);
    let frame = capture::vector("cam.hex");
    for _ in 0..EVENTS_MAX + 5 {
        receiver.handle_frame(start(), &frame);
    }
    assert_eq!(std::iter::from_fn(|| receiver.poll_event()).count(), EVENTS_MAX);
    assert_eq!(receiver.counters().dropped(DropReason::EventQueueFull), 5);
    assert_eq!(receiver.counters().received, (EVENTS_MAX + 5) as u64);
}

proptest! {
    /// For any input, each frame is counted once: as a message, a packet for others, a beacon or a drop.
    #[test]
    fn every_frame_is_counted_once(
        changes in proptest::collection::vec((0..4_usize, 0..500_usize, any::<u8>(), 0..500_usize), 0..200),
        take in any::<bool>(),
    ) {
        let seeds = ["cam.hex", "cpm_objects.hex", "cpm_sensors.hex", "secured_cam.hex"].map(capture::vector);
        let mut receiver = station(3);
        let count = changes.len() as u64;
        for (seed, at, octet, length) in changes {
            let mut frame = seeds[seed].to_vec();
            let at = at % frame.len();
            frame[at] = octet;
            frame.truncate(length.max(1));
            receiver.handle_frame(start(), &Bytes::from(frame));
            if take {
                prop_assert!(receiver.poll_event().is_some());
                prop_assert!(receiver.poll_event().is_none());
            }
        }
        let counters = receiver.counters();
        prop_assert_eq!(counters.received, count);
        let processed = counters.delivered + counters.relayed + counters.beacons + counters.location_service;
        prop_assert_eq!(counters.received, processed + counters.dropped_total());
        let ended = counters.transmitted + counters.suppressed + counters.lost_total();
        prop_assert_eq!(counters.taken, ended + receiver.held_packets() as u64);
    }
}
