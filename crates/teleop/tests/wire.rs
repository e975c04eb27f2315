//! Formats of datagrams.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the failure")]

use bytes::Bytes;
use proptest::prelude::*;
use viaduct_teleop::{
    commands::{Command, Gear},
    frames::Shape,
    wire::{
        Body, Commands, Datagram, Feedback, MissingSymbol, NumberedCommand, OpenFrame, ParseError, StreamId,
        StreamReport, Symbol,
    },
};

fn octets(hex: &str) -> Bytes {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// The format is fixed: a peer of an earlier version reads it.
#[test]
fn a_symbol_has_the_documented_octets() {
    let shape = Shape::new(5, 2).unwrap();
    let symbol = Symbol {
        transmission: 0x0102_0304,
        sent_us: 0x0506_0708,
        round_trip_100us: 3,
        stream: StreamId(2),
        frame: 9,
        index: 2,
        shape,
        age_100us: 0x0A0B,
        lifespan_ms: 500,
        payload: Bytes::from_static(&[0xEE]),
    };
    let datagram = Datagram { epoch: 0xDEAD_BEEF, body: Body::Symbol(symbol) };
    let expected = octets("11 DEADBEEF 01020304 05060708 0003 02 00000009 0002 0003 000005 0A0B 01F4 EE");
    assert_eq!(datagram.to_bytes(), expected);
    assert_eq!(Datagram::parse(&expected), Ok(datagram));
}

#[test]
fn commands_have_the_documented_octets() {
    let command = Command {
        steering: -0.25,
        accelerator: 1.0,
        brake: 0.5,
        gear: Gear::Drive,
        dead_man: true,
        emergency_stop: false,
    };
    let commands = vec![NumberedCommand { sequence: 7, sampled_us: 8, command }];
    let datagram = Datagram { epoch: 1, body: Body::Commands(Commands { vehicle_epoch: 2, grant: 3, commands }) };
    let expected = octets("16 00000001 00000002 00000003 01 00000007 00000008 F63C 2710 1388 07");
    assert_eq!(datagram.to_bytes(), expected);
    assert_eq!(Datagram::parse(&expected), Ok(datagram));
}

#[test]
fn contradicting_and_foreign_octets_are_refused() {
    let parse = |hex| Datagram::parse(&octets(hex)).unwrap_err();
    assert_eq!(parse(""), ParseError::TooShort);
    assert_eq!(parse("21 00000001"), ParseError::Version(2));
    assert_eq!(parse("1F 00000001"), ParseError::Kind(15));
    assert_eq!(parse("12 00000001 00000002 00000003 00"), ParseError::TooLong);
    // Three symbols of 2 octets are 5 or 6 octets, not 4.
    let symbol = "11 DEADBEEF 01020304 05060708 0003 02 00000009 0002 0003 000004 0A0B 01F4 EE";
    assert_eq!(parse(symbol), ParseError::Field("number of source symbols"));
    let symbol = "11 DEADBEEF 01020304 05060708 0003 02 00000009 0002 0003 000005 0A0B 01F4 EEEE";
    assert_eq!(parse(symbol), ParseError::Field("index of the symbol"));
    assert_eq!(parse("16 00000001 00000002 00000003 04"), ParseError::Field("number of commands"));
}

proptest! {
    #[test]
    fn feedback_of_any_size_is_read_as_it_was_written(
        numbers in proptest::array::uniform13(any::<u32>()),
        missing in proptest::collection::vec((any::<u8>(), 0_u8..32, any::<u16>()), 0..33),
        streams in proptest::collection::vec((any::<u8>(), any::<[u32; 3]>(), proptest::collection::vec((0_u8..32, any::<u16>()), 0..17)), 0..17),
    ) {
        let [peer_epoch, sequence, largest, settled, hold_us, arrived_us, queue_min_us, queue_last_us, jitter_us, received, received_octets, lost_random, lost_outage] = numbers;
        let streams = streams.into_iter().map(|(id, [latest, delivered, abandoned], open)| StreamReport {
            stream: StreamId(id),
            latest,
            delivered,
            abandoned,
            open: open.into_iter().map(|(before_latest, needed)| OpenFrame { before_latest, needed }).collect(),
        });
        let feedback = Feedback {
            peer_epoch, sequence, largest, settled, hold_us, arrived_us, queue_min_us, queue_last_us, jitter_us, received, received_octets,
            lost_random, lost_outage, streams: streams.collect(),
            missing: missing.into_iter().map(|(stream, before_latest, index)| MissingSymbol { stream: StreamId(stream), before_latest, index }).collect(),
        };
        let datagram = Datagram { epoch: 5, body: Body::Feedback(feedback) };
        let written = datagram.to_bytes();
        prop_assert!(written.len() <= 1200);
        prop_assert_eq!(Datagram::parse(&written), Ok(datagram));
    }

    #[test]
    fn any_octets_are_a_datagram_or_an_error(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
        let octets = Bytes::from(octets);
        if let Ok(datagram) = Datagram::parse(&octets) {
            let again = Datagram::parse(&datagram.to_bytes());
            prop_assert_eq!(again, Ok(datagram));
        }
    }
}
