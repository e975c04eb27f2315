//! The codec against the golden packets, and its errors.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the failure")]

mod golden;

use golden::{golden, octets};
use proptest::prelude::*;
use viaduct_mqttsn::codec::{DecodeError, Encapsulated, EncodeError, MessageType, Packet, Publish, Qos, TopicId};

#[test]
fn each_message_has_the_octets_of_the_specification() {
    for (packet, text) in golden() {
        let expected = octets(text);
        let mut buffer = [0; 32];
        assert_eq!(packet.encode(&mut buffer), Ok(expected.len()), "{packet:?}");
        assert_eq!(buffer[..expected.len()], expected, "{packet:?}");
        assert_eq!(Packet::decode(&expected), Ok(packet));
        assert_eq!(packet.encoded_len(), expected.len());
    }
}

#[test]
fn the_golden_packets_cover_all_message_types() {
    for kind in MessageType::ALL {
        assert!(golden().iter().any(|(packet, _)| packet.message_type() == kind), "{kind:?}");
    }
}

#[test]
fn messages_above_255_octets_have_a_length_of_three_octets() {
    for (data, header) in [(248, vec![255, 0x0C]), (249, vec![1, 1, 2, 0x0C]), (70, vec![77, 0x0C])] {
        let data = vec![7; data];
        let packet = Packet::Publish(Publish {
            dup: false,
            qos: Some(Qos::AtMostOnce),
            retain: false,
            topic: TopicId::Normal(1),
            message: 0,
            data: &data,
        });
        let mut buffer = vec![0; 400];
        let length = packet.encode(&mut buffer).unwrap();
        assert_eq!((&buffer[..header.len()], length), (&header[..], header.len() + 5 + data.len()));
        assert_eq!(Packet::decode(&buffer[..length]), Ok(packet));
    }
    // A sender may use the long form for a short message (5.2.1).
    assert_eq!(Packet::decode(&[1, 0, 4, 0x17]), Ok(Packet::PingResp));
}

#[test]
fn wrong_datagrams_are_refused_with_a_reason() {
    let refused = [
        ("", DecodeError::Truncated),
        ("02", DecodeError::Truncated),
        ("01 00", DecodeError::Truncated),
        ("00 17", DecodeError::Length),
        ("03 17", DecodeError::Length),
        ("02 17 00", DecodeError::Length),
        ("01 00 02 17", DecodeError::Length),
        ("03 17 00", DecodeError::TrailingOctets),
        ("05 0E 00 09 00", DecodeError::TrailingOctets),
        ("03 18 00", DecodeError::Truncated),
        ("02 03", DecodeError::MessageType),
        ("02 FF", DecodeError::MessageType),
        ("07 0C 03 00 05 00 00", DecodeError::TopicIdType),
        ("07 0C 02 FF FF 00 00", DecodeError::Text),
        ("06 12 60 00 09 'a", DecodeError::Qos),
        ("04 07 60 'w", DecodeError::Qos),
        ("03 07 00", DecodeError::Empty),
        ("06 04 04 01 00 3C", DecodeError::Empty),
        ("07 04 04 01 00 3C FF", DecodeError::Text),
        ("06 0A 00 00 00 01", DecodeError::Empty),
        ("05 12 00 00 09", DecodeError::Empty),
        ("06 12 02 00 09 'a", DecodeError::Truncated),
        ("09 FE 00 A0", DecodeError::Length),
        ("02 FE", DecodeError::Truncated),
    ];
    for (text, error) in refused {
        assert_eq!(Packet::decode(&octets(text)), Err(error), "{text}");
    }
}

#[test]
fn messages_that_do_not_fit_are_not_encoded() {
    let packet = Packet::WillMsg { message: &[0; 100] };
    assert_eq!(packet.encode(&mut [0; 101]), Err(EncodeError::Buffer { needed: 102 }));
    let long = vec![0; 65_532];
    assert_eq!(Packet::WillMsg { message: &long }.encode(&mut [0; 70_000]), Err(EncodeError::TooLong));
    assert_eq!(Packet::WillMsg { message: &long[1..] }.encode(&mut [0; 70_000]), Ok(65_535));
    let packet = Packet::Encapsulated(Encapsulated { radius: 0, node: &[0; 253], message: &[2, 0x17] });
    assert_eq!(packet.encode(&mut [0; 300]), Err(EncodeError::TooLong));
}

proptest! {
    #[test]
    fn a_decoded_datagram_is_encoded_to_an_equal_message(datagram in prop::collection::vec(any::<u8>(), 0..40)) {
        if let Ok(packet) = Packet::decode(&datagram) {
            let mut buffer = [0; 64];
            let length = packet.encode(&mut buffer).unwrap();
            prop_assert_eq!(Packet::decode(&buffer[..length]), Ok(packet));
        }
    }
}
