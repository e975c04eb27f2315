//! Messages of ROS 1, checked against their definitions.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use viaduct_ros::{
    msg::{Dialect, Schema},
    ros1::{Mismatch, check},
};

const CLOUD: &str = "Header header\nuint32 height\nuint32 width\nPointField[] fields\nbool is_bigendian\nuint32 point_step\n\
                     uint32 row_step\nuint8[] data\nbool is_dense";

fn cloud() -> Schema {
    let separator = "=".repeat(80);
    let text = format!(
        "{CLOUD}\n{separator}\nMSG: std_msgs/Header\nuint32 seq\ntime stamp\nstring frame_id\n{separator}\n\
         MSG: sensor_msgs/PointField\nstring name\nuint32 offset\nuint8 datatype\nuint32 count\n"
    );
    Schema::parse(Dialect::Ros1, "sensor_msgs/PointCloud2", &text).unwrap()
}

fn string(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_le_bytes(), text.as_bytes()].concat()
}

/// Returns a cloud with one field and the given number of octets.
fn message(octets: usize) -> Vec<u8> {
    let field = [string("x"), vec![0; 9]].concat();
    let header = [vec![0; 12], string("lidar")].concat();
    let data = [(octets as u32).to_le_bytes().to_vec(), vec![7; octets]].concat();
    [header, vec![0; 8], 1_u32.to_le_bytes().to_vec(), field, vec![0; 9], data, vec![1]].concat()
}

#[test]
fn a_message_has_exactly_the_length_of_its_fields() {
    let schema = cloud();
    for octets in [0, 1, 1_078_352] {
        let message = message(octets);
        assert_eq!(check(&schema, &message), Ok(()));
        assert_eq!(check(&schema, &[&message[..], b"x"].concat()), Err(Mismatch::TooLong(1)));
    }
}

#[test]
fn a_message_that_is_cut_off_names_the_field() {
    let (schema, message) = (cloud(), message(100));
    let error = |octets: usize| check(&schema, &message[..octets]).unwrap_err().to_string();
    assert_eq!(error(0), "the message ends in `header.seq`: 4 octets are missing");
    assert_eq!(error(18), "the message ends in `header.frame_id`: 3 octets are missing");
    assert_eq!(error(message.len() - 41), "the message ends in `data`: 40 octets are missing");
    for octets in 0..message.len() {
        assert!(check(&schema, &message[..octets]).is_err(), "{octets}");
    }
}

#[test]
fn an_announced_length_beyond_the_message_costs_no_time() {
    let schema = Schema::parse(Dialect::Ros1, "a/B", &format!("C[] c\n{}\nMSG: a/C\nstring[0] none", "=".repeat(80)));
    assert_eq!(check(&schema.unwrap(), &u32::MAX.to_le_bytes()), Ok(()));
    let strings = Schema::parse(Dialect::Ros1, "a/B", "string[] s").unwrap();
    assert!(check(&strings, &u32::MAX.to_le_bytes()).is_err());
}

#[test]
fn types_of_ros_2_only_are_refused() {
    let schema = Schema::parse(Dialect::Ros2, "a/B", "wstring w").unwrap();
    assert_eq!(check(&schema, &[0; 4]).unwrap_err().to_string(), "`w` has a type that ROS 1 does not have");
}

proptest! {
    #[test]
    fn any_octets_are_checked_without_panic(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = check(&cloud(), &octets);
    }
}
