//! The wire format of mqtt_client, with octets that follow from its message definition and the serialisation of each ROS version.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the failure")]

use bytes::Bytes;
use proptest::prelude::*;
use viaduct_ros::mqtt_client::{Malformed, Stamp, TypeMessage};
use viaduct_ros::msg::Dialect;

fn ros2(stamped: bool) -> TypeMessage {
    let name = "std_msgs/msg/String".to_owned();
    TypeMessage { dialect: Dialect::Ros2, md5: String::new(), name, definition: String::new(), stamped }
}

fn ros1() -> TypeMessage {
    TypeMessage {
        dialect: Dialect::Ros1,
        md5: "992ce8a1687cec8c8bd883ec73ca41d1".to_owned(),
        name: "std_msgs/String".to_owned(),
        definition: "string data\n".to_owned(),
        stamped: true,
    }
}

/// The type message for `std_msgs/msg/String` without time stamps, in ROS 2: CDR of four fields (`RosMsgType` of mqtt_client 2.5.0).
#[test]
fn a_type_of_ros_2_is_four_fields_in_cdr() {
    let golden = b"\0\x01\0\0\x01\0\0\0\0\0\0\0\x14\0\0\0std_msgs/msg/String\0\x01\0\0\0\0\0";
    assert_eq!(golden.len(), 42);
    assert_eq!(ros2(false).write()[..], golden[..]);
    assert_eq!(TypeMessage::parse(golden), Ok(ros2(false)));
    // Some implementations of DDS add padding.
    assert_eq!(TypeMessage::parse(&[&golden[..], &[0, 0]].concat()), Ok(ros2(false)));
}

/// The type message in ROS 1: the serialisation of the same four fields (`RosMsgType` of mqtt_client 2.3.0).
#[test]
fn a_type_of_ros_1_is_four_fields() {
    let golden = b"\x20\0\0\x00992ce8a1687cec8c8bd883ec73ca41d1\x0F\0\0\0std_msgs/String\x0C\0\0\0string data\n\x01";
    assert_eq!(ros1().write()[..], golden[..]);
    assert_eq!(TypeMessage::parse(golden), Ok(ros1()));
}

#[test]
fn a_time_precedes_the_message() {
    let stamp = Stamp { seconds: 1_700_000_000, nanoseconds: 5 };
    for (kind, octets) in [(ros1(), 8), (ros2(true), 12)] {
        let before = stamp.write(kind.dialect);
        assert_eq!(before.len(), octets);
        let payload = Bytes::from([&before[..], b"message"].concat());
        assert_eq!(kind.split(&payload), Ok((Some(stamp), Bytes::from_static(b"message"))));
        assert_eq!(kind.split(&payload.slice(..octets - 1)), Err(Malformed));
    }
    let payload = Bytes::from_static(b"message");
    assert_eq!(ros2(false).split(&payload), Ok((None, payload.clone())));
    assert_eq!(ros2(true).split(&payload), Err(Malformed));
}

proptest! {
    #[test]
    fn a_type_survives_writing_and_parsing(
        is_ros2 in any::<bool>(), md5 in "[0-9a-f]{0,32}", name in ".{0,40}", definition in "(?s).{0,200}", stamped in any::<bool>(),
    ) {
        let dialect = if is_ros2 { Dialect::Ros2 } else { Dialect::Ros1 };
        let kind = TypeMessage { dialect, md5, name, definition, stamped };
        prop_assert_eq!(TypeMessage::parse(&kind.write()), Ok(kind));
    }

    #[test]
    fn any_octets_are_a_type_or_an_error(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = TypeMessage::parse(&octets);
    }

    #[test]
    fn a_cut_type_is_an_error(cut in 0_usize..41) {
        let whole = ros2(false).write();
        prop_assert_eq!(TypeMessage::parse(&whole[..cut]), Err(Malformed));
    }
}
