//! Plain texts of std_msgs, with the texts that mqtt_client (2.5.0) writes and reads.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the failure")]

use bytes::Bytes;
use proptest::prelude::*;
use viaduct_ros::codec::{CodecProblem, Encoding};
use viaduct_ros::msg::{Dialect, TypeName};
use viaduct_ros::primitive::Primitive;

const ENCODINGS: [Encoding; 2] = [Encoding::Ros1, Encoding::Cdr];

fn named(name: &str) -> Primitive {
    Primitive::named(&TypeName::parse(name).unwrap()).unwrap()
}

/// Returns the text of the message of a text.
fn again(kind: Primitive, text: &str) -> String {
    let payload = Bytes::copy_from_slice(text.as_bytes());
    let texts = ENCODINGS.map(|encoding| kind.text(encoding, &kind.message(encoding, &payload).unwrap()).unwrap());
    assert_eq!(texts[0], texts[1]);
    String::from_utf8(texts[0].to_vec()).unwrap()
}

fn problem(kind: Primitive, text: &str) -> CodecProblem {
    let error = kind.message(Encoding::Cdr, &Bytes::copy_from_slice(text.as_bytes())).unwrap_err();
    assert_eq!(error.path, "data");
    error.problem
}

#[test]
fn the_messages_are_those_of_std_msgs() {
    let message = |name, encoding, text: &'static str| {
        named(name).message(encoding, &Bytes::from_static(text.as_bytes())).unwrap().to_vec()
    };
    assert_eq!(message("std_msgs/msg/Bool", Encoding::Cdr, "True"), b"\0\x01\0\0\x01");
    assert_eq!(message("std_msgs/Bool", Encoding::Ros1, "0"), b"\0");
    assert_eq!(message("std_msgs/Int32", Encoding::Cdr, "-2"), b"\0\x01\0\0\xfe\xff\xff\xff");
    assert_eq!(message("std_msgs/UInt64", Encoding::Ros1, "18446744073709551615"), [0xFF; 8]);
    assert_eq!(message("std_msgs/Float32", Encoding::Ros1, "1.5"), 1.5_f32.to_le_bytes());
    assert_eq!(message("std_msgs/String", Encoding::Cdr, "hi"), b"\0\x01\0\0\x03\0\0\0hi\0");
    assert_eq!(message("std_msgs/UInt8MultiArray", Encoding::Ros1, "ab"), b"\0\0\0\0\0\0\0\0\x02\0\0\0ab");
}

#[test]
fn each_type_writes_the_text_of_c() {
    for (name, text, expected) in [
        ("Bool", "TRUE", "true"),
        ("Bool", "0", "false"),
        ("Char", "65", "65"),
        ("Int8", "-128", "-128"),
        ("Int16", " +7", "7"),
        ("Int64", "-9223372036854775808", "-9223372036854775808"),
        ("UInt8", "255", "255"),
        ("UInt64", "18446744073709551615", "18446744073709551615"),
        ("Float32", "1.5", "1.500000"),
        ("Float32", "0.1", "0.100000"),
        ("Float64", "-1e-7", "-0.000000"),
        ("Float64", "1e15", "1000000000000000.000000"),
        ("Float64", "Infinity", "inf"),
        ("Float32", "-inf", "-inf"),
        ("Float64", "NAN", "nan"),
        ("String", " true\n", " true\n"),
        ("UInt8MultiArray", "octets", "octets"),
    ] {
        assert_eq!(again(named(&format!("std_msgs/{name}")), text), expected, "{name} {text}");
    }
}

#[test]
fn a_text_of_another_type_is_refused() {
    for (name, text, expected) in [
        ("Bool", "yes", CodecProblem::Type),
        ("Bool", " true", CodecProblem::Type),
        ("Int8", "128", CodecProblem::Range),
        ("UInt8", "-1", CodecProblem::Type),
        ("UInt64", "18446744073709551616", CodecProblem::Range),
        ("Int32", "1 ", CodecProblem::Type),
        ("Int32", "1.0", CodecProblem::Type),
        ("Int32", "", CodecProblem::Type),
        ("Float32", "1e39", CodecProblem::Range),
        ("Float64", "1,5", CodecProblem::Type),
    ] {
        let found = problem(named(&format!("std_msgs/{name}")), text);
        assert_eq!(found, expected, "{name} {text}");
    }
    let octets = Bytes::from_static(&[0xFF]);
    assert!(Primitive::Int32.message(Encoding::Ros1, &octets).is_err());
    assert_eq!(Primitive::String.message(Encoding::Ros1, &octets).unwrap()[..], [1, 0, 0, 0, 0xFF]);
}

#[test]
fn the_type_of_a_text_is_probed_in_order() {
    for (text, expected) in [
        ("true", Primitive::Bool),
        ("FALSE", Primitive::Bool),
        ("1", Primitive::Int32),
        ("-2147483648", Primitive::Int32),
        (" 5", Primitive::Int32),
        ("2147483648", Primitive::Float32),
        ("1.5", Primitive::Float32),
        ("-1e3", Primitive::Float32),
        ("0.0", Primitive::Float32),
        ("nan", Primitive::Float32),
        ("-Infinity", Primitive::Float32),
        ("1e39", Primitive::String),
        ("1e999", Primitive::String),
        ("1e-46", Primitive::String),
        ("0x10", Primitive::String),
        ("5 ", Primitive::String),
        ("", Primitive::String),
        ("hello", Primitive::String),
    ] {
        assert_eq!(Primitive::probe(text.as_bytes()), expected, "{text}");
    }
    assert_eq!(Primitive::probe(&[0xFF]), Primitive::String);
}

#[test]
fn other_types_have_no_text() {
    for name in ["std_msgs/Header", "std_msgs/Byte", "my_msgs/String"] {
        assert_eq!(Primitive::named(&TypeName::parse(name).unwrap()), None, "{name}");
    }
    assert!(Primitive::Int32.text(Encoding::Ros1, &Bytes::from_static(b"123")).is_err());
    for dialect in [Dialect::Ros1, Dialect::Ros2] {
        assert!(Primitive::Octets.definition(dialect).is_some());
    }
}

proptest! {
    #[test]
    fn any_payload_becomes_a_message_of_its_probed_type(octets in proptest::collection::vec(any::<u8>(), 0..40)) {
        let payload = Bytes::from(octets);
        for encoding in ENCODINGS {
            let kind = Primitive::probe(&payload);
            prop_assert!(kind.text(encoding, &kind.message(encoding, &payload).unwrap()).is_ok());
        }
    }

    #[test]
    fn any_number_has_a_type(text in "[-+ ]?[0-9.e]{0,12}") {
        let kind = Primitive::probe(text.as_bytes());
        prop_assert!(kind.message(Encoding::Cdr, &Bytes::from(text)).is_ok());
    }

    #[test]
    fn numbers_survive(int in any::<i64>(), uint in any::<u64>()) {
        prop_assert_eq!(again(Primitive::Int64, &int.to_string()), int.to_string());
        prop_assert_eq!(again(Primitive::Uint64, &uint.to_string()), uint.to_string());
    }
}
