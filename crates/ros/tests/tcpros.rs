//! Connections of ROS 1: headers as octets, the handshake, and frames in pieces.

#![allow(clippy::unwrap_used)]

use bytes::BufMut as _;
use proptest::prelude::*;
use viaduct_ros::{
    msg::TypeName,
    tcpros::{FrameTooLong, Frames, HandshakeError, Header, HeaderError, Offer, Request, write_length},
};

fn offer() -> Offer {
    Offer {
        caller: "/talker".to_owned(),
        type_name: TypeName::parse("std_msgs/String").unwrap(),
        md5: "992ce8a1687cec8c8bd883ec73ca41d1".to_owned(),
        definition: "string data\n".to_owned(),
        latching: true,
    }
}

fn request(type_name: Option<&str>, md5: Option<&str>) -> Request {
    Request {
        caller: "/listener".to_owned(),
        topic: "/chatter".to_owned(),
        type_name: type_name.and_then(TypeName::parse),
        md5: md5.map(str::to_owned),
        no_delay: true,
    }
}

#[test]
fn a_header_has_the_octets_of_the_specification() {
    // Two fields, `topic=/a` and `latching=1`, as in the example of the specification (wiki.ros.org/ROS/Connection Header).
    let octets = b"\x08\0\0\0topic=/a\x0A\0\0\0latching=1";
    let header = Header::default().with("topic", "/a").with("latching", "1");
    assert_eq!(header.write(), [&(octets.len() as u32).to_le_bytes()[..], octets].concat());
    assert_eq!(Header::parse(octets), Ok(header));
}

#[test]
fn a_wrong_header_is_refused() {
    assert_eq!(Header::parse(b"\x08\0\0\0topic=/"), Err(HeaderError::TooShort(1)));
    assert_eq!(Header::parse(b"\x05\0\0\0topic"), Err(HeaderError::Field(1)));
    assert_eq!(Header::parse(b"\x03\0\0\0a=b\x02\0"), Err(HeaderError::TooShort(2)));
    assert_eq!(Header::parse(b"\x03\0\0\0a=\xFF"), Err(HeaderError::Field(1)));
    assert_eq!(Header::parse(&b"\x02\0\0\0a=".repeat(65)), Err(HeaderError::TooManyFields));
    assert_eq!(Header::parse(&vec![0; 3 << 20]), Err(HeaderError::TooLong(3 << 20)));
}

#[test]
fn both_ends_read_what_the_other_one_writes() {
    let content = |header: Header| Header::parse(&header.write()[4..]).unwrap();
    for request in [request(Some("std_msgs/String"), Some("00")), request(None, None)] {
        assert_eq!(Request::read(&content(request.header())), Ok(request));
    }
    assert_eq!(Offer::read(&content(offer().header())), Ok(offer()));
    assert_eq!(offer().schema().unwrap().md5(), offer().md5);
}

#[test]
fn a_publisher_accepts_its_type_and_any_type() {
    let md5 = offer().md5;
    for request in [request(None, None), request(Some("std_msgs/String"), Some(&md5)), request(None, Some(&md5))] {
        assert_eq!(request.check("/chatter", &offer()), Ok(()));
    }
    let other = request(Some("std_msgs/Int32"), Some("da5909fbe378aeaf85e547e830cc1bb7"));
    let refusal = other.check("/chatter", &offer()).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "the subscriber expects the type std_msgs/Int32 with the sum da5909fbe378aeaf85e547e830cc1bb7, and the publisher has \
         std_msgs/String with 992ce8a1687cec8c8bd883ec73ca41d1"
    );
    assert_eq!(Offer::read(&Header::refusal(&refusal)), Err(HandshakeError::Refused(refusal.to_string())));
    assert!(matches!(request(None, None).check("/other", &offer()), Err(HandshakeError::Topic { .. })));
    assert_eq!(Request::read(&Header::default()), Err(HandshakeError::Field("callerid")));
}

#[test]
fn a_frame_that_is_too_long_ends_the_connection() {
    let mut frames = Frames::new(1000);
    frames.room().put_slice(&write_length(1001).unwrap());
    assert_eq!(frames.next_frame(), Err(FrameTooLong { octets: 1001, most: 1000 }));
    assert!(frames.room().capacity() < 100_000);
}

#[test]
fn an_announced_length_reserves_little_memory() {
    let mut frames = Frames::new(256 << 20);
    frames.room().put_slice(&write_length(256 << 20).unwrap());
    assert_eq!(frames.next_frame(), Ok(None));
    assert!(frames.room().capacity() < 5 << 20);
}

proptest! {
    #[test]
    fn frames_arrive_in_pieces_of_any_length(
        messages in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 0..20),
        piece in 1_usize..700,
    ) {
        let stream: Vec<u8> = messages.iter().flat_map(|message| [&write_length(message.len()).unwrap()[..], message].concat()).collect();
        let mut frames = Frames::new(300);
        let mut received = Vec::new();
        for piece in stream.chunks(piece) {
            frames.room().put_slice(piece);
            while let Some(frame) = frames.next_frame().unwrap() {
                received.push(frame.to_vec());
            }
        }
        prop_assert_eq!(received, messages);
    }

    #[test]
    fn any_octets_are_a_header_or_an_error(octets in proptest::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(header) = Header::parse(&octets) {
            prop_assert_eq!(Header::parse(&header.write()[4..]), Ok(header));
        }
    }
}
