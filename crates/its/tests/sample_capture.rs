//! The sample capture: all its messages are decoded, and encoded again to the same octets.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "tests may panic, print and read files"
)]

mod capture;

use viaduct_its::{
    Event, Frame, Station, StationSettings, access::MacAddress, decode_frame, facilities::Message,
    facilities::MessageKind,
};
use viaduct_units::{Mono, Now, StationId, StationType};

#[test]
fn all_929_frames_are_messages() {
    let Some(frames) = capture::sample() else { return };
    let settings = StationSettings {
        link_address: MacAddress([2, 0, 0, 0, 0, 1]),
        station_type: StationType::ROADSIDE_UNIT,
        mobile: false,
        beacons: false,
    };
    let mut station = Station::new(settings, 1);
    let mut kinds = Vec::new();
    for captured in &frames {
        station.handle_frame(Now { mono: Mono::default(), tai: captured.reception }, &captured.frame);
        let Some(Event::Received(received)) = station.poll_event() else { panic!("a frame without a message") };
        assert_eq!(station.poll_event(), None);
        kinds.push(received.kind);
    }
    let count = |kind| kinds.iter().filter(|found| **found == kind).count();
    assert_eq!((count(MessageKind::Cam), count(MessageKind::Cpm)), (367, 562));
    let counters = station.counters();
    assert_eq!((counters.received, counters.delivered, counters.dropped_total()), (929, 929, 0));
}

#[test]
fn messages_are_encoded_to_the_same_octets() {
    let Some(frames) = capture::sample() else { return };
    let mut json = Vec::new();
    for captured in &frames {
        let Ok(Frame::Message(received)) = decode_frame(captured.reception, &captured.frame) else { panic!() };
        assert_eq!(received.message.encode().unwrap(), received.payload);
        json.clear();
        received.message.write_json(&mut json);
        let from_json = Message::from_json(received.kind, &json).unwrap();
        assert_eq!(from_json, received.message);
        assert_eq!(from_json.encode().unwrap(), received.payload);
    }
}

#[test]
fn summaries_are_plausible() {
    let Some(frames) = capture::sample() else { return };
    let mut packets_without_position = 0;
    for captured in &frames {
        let Ok(Frame::Message(received)) = decode_frame(captured.reception, &captured.frame) else { panic!() };
        let summary = received.summary;
        assert_eq!(summary.station_id, StationId(100));
        let position = summary.position.expect("every message has a position");
        match received.source.position {
            Some(packet) => assert!(position.distance(packet).value() < 20.0, "{position:?} {packet:?}"),
            None => packets_without_position += 1,
        }
        if received.kind == MessageKind::Cam {
            assert_eq!(summary.station_type, Some(StationType::PASSENGER_CAR));
            let generation = summary.generation.expect("a CAM has a time");
            let age = captured.reception.since(generation).max(generation.since(captured.reception));
            assert!(age.as_secs() < 33, "extended to the nearest time: {age:?}");
            assert!(summary.speed.is_some() && summary.heading.is_some());
        }
    }
    // The position vectors of frames 516, 739 and 863 have -2^31 for both coordinates.
    assert_eq!(packets_without_position, 3);
}
