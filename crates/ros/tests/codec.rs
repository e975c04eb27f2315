//! Messages of any type as values, in ROS 1, CDR and JSON.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the failure")]

use bytes::Bytes;
use proptest::prelude::*;
use viaduct_ros::codec::{CodecProblem, Encoding, decode, encode};
use viaduct_ros::json::{self, JsonOf};
use viaduct_ros::msg::{Dialect, Schema};
use viaduct_ros::value::Value;

const ALL: &str = "\
bool flag
int8 a
int64 b
uint16[2] pair
float32[] floats
string text
string[] texts
uint8[] octets
time at
duration during
Inner inner
Inner[] inners
================================================================================
MSG: test/Inner
uint8 small
float64 large
";

fn all() -> Schema {
    Schema::parse(Dialect::Ros1, "test/All", ALL).unwrap()
}

fn ros2(text: &str) -> Schema {
    Schema::parse(Dialect::Ros2, "test/Any", text).unwrap()
}

fn inner() -> impl Strategy<Value = Value> {
    (any::<u8>(), any::<i32>()).prop_map(|(small, eighths)| {
        // JSON keeps this number exactly.
        Value::Message(vec![Value::Uint(small.into()), Value::Float64(f64::from(eighths) / 8.0)])
    })
}

fn message() -> impl Strategy<Value = Value> {
    let texts = proptest::collection::vec("[a-zä]{0,6}", 0..4);
    let numbers = (
        any::<bool>(),
        any::<i8>(),
        any::<i64>(),
        any::<[u16; 2]>(),
        proptest::collection::vec(proptest::num::i16::ANY.prop_map(|eighths| f32::from(eighths) / 8.0), 0..5),
    );
    let octets = proptest::collection::vec(any::<u8>(), 0..9);
    let times = (any::<u32>(), any::<u32>(), any::<i32>(), any::<i32>());
    let inners = (inner(), proptest::collection::vec(inner(), 0..3));
    (numbers, "[a-zä]{0,9}", texts, octets, times, inners).prop_map(|(numbers, text, texts, octets, times, inners)| {
        let (flag, a, b, pair, floats) = numbers;
        Value::Message(vec![
            Value::Bool(flag),
            Value::Int(a.into()),
            Value::Int(b),
            Value::Array(pair.into_iter().map(|one| Value::Uint(one.into())).collect()),
            Value::Array(floats.into_iter().map(Value::Float32).collect()),
            Value::text(&text),
            Value::Array(texts.iter().map(|text| Value::text(text)).collect()),
            Value::Octets(octets.into()),
            Value::Time(times.0, times.1),
            Value::Duration(times.2, times.3),
            inners.0,
            Value::Array(inners.1),
        ])
    })
}

proptest! {
    #[test]
    fn a_message_survives_each_encoding(value in message()) {
        let schema = all();
        for encoding in [Encoding::Ros1, Encoding::Cdr] {
            let octets = encode(&schema, encoding, &value).unwrap();
            prop_assert_eq!(decode(&schema, encoding, &octets).unwrap(), value.clone());
            // Padding of DDS, which ROS 1 does not have.
            let padded = Bytes::from([&octets[..], &[0, 0, 0]].concat());
            prop_assert_eq!(decode(&schema, encoding, &padded).is_ok(), encoding == Encoding::Cdr);
        }
        let text = serde_json::to_string(&JsonOf::new(&schema, &value)).unwrap();
        prop_assert_eq!(json::read(&schema, &serde_json::from_str(&text).unwrap()).unwrap(), value);
    }

    #[test]
    fn any_octets_are_a_message_or_an_error(octets in proptest::collection::vec(any::<u8>(), 0..300)) {
        let octets = Bytes::from(octets);
        for encoding in [Encoding::Ros1, Encoding::Cdr] {
            if let Ok(value) = decode(&all(), encoding, &octets) {
                prop_assert!(encode(&all(), encoding, &value).is_ok());
            }
        }
    }

    #[test]
    fn the_decoder_accepts_what_the_check_accepts(value in message(), cut in 0_usize..3, at in 0_usize..60, by in 0_u8..2) {
        let schema = all();
        let mut octets = encode(&schema, Encoding::Ros1, &value).unwrap().to_vec();
        octets.truncate(octets.len() - cut);
        // Not the first octet, a `bool`, whose value the check does not look at.
        if let Some(octet) = octets.get_mut(1 + at) {
            *octet = octet.wrapping_add(by);
        }
        let octets = Bytes::from(octets);
        let checked = viaduct_ros::ros1::check(&schema, &octets);
        prop_assert_eq!(decode(&schema, Encoding::Ros1, &octets).is_ok(), checked.is_ok());
    }
}

/// `std_msgs/msg/Header` followed by a `float64` as rmw_cyclonedds writes it: each number is aligned to its length.
#[test]
fn numbers_of_cdr_are_aligned() {
    let schema = ros2(
        "Stamp stamp\nstring frame\nfloat64 value\nwstring wide\n================================================================================\nMSG: test/Stamp\nint32 sec\nuint32 nanosec\n",
    );
    let stamp = Value::Message(vec![Value::Int(1), Value::Uint(2)]);
    let value = Value::Message(vec![stamp, Value::text("ab"), Value::Float64(1.0), Value::WideText(vec![0x41])]);
    let golden = b"\0\x01\0\0\
        \x01\0\0\0\x02\0\0\0\
        \x03\0\0\0ab\0\0\
        \0\0\0\0\0\0\xF0\x3F\
        \x01\0\0\0\x41\0";
    assert_eq!(encode(&schema, Encoding::Cdr, &value).unwrap()[..], golden[..]);
    assert_eq!(decode(&schema, Encoding::Cdr, &Bytes::from_static(golden)), Ok(value.clone()));
    let big = b"\0\0\0\0\
        \0\0\0\x01\0\0\0\x02\
        \0\0\0\x03ab\0\0\
        \x3F\xF0\0\0\0\0\0\0\
        \0\0\0\x01\0\x41";
    assert_eq!(decode(&schema, Encoding::Cdr, &Bytes::from_static(big)), Ok(value));
}

#[test]
fn an_empty_message_has_one_octet_in_cdr() {
    let schema = ros2("");
    let empty = Value::Message(Vec::new());
    assert_eq!(encode(&schema, Encoding::Cdr, &empty).unwrap()[..], [0, 1, 0, 0, 0]);
    assert_eq!(decode(&schema, Encoding::Cdr, &Bytes::from_static(&[0, 1, 0, 0, 0])), Ok(empty));
}

#[test]
fn limits_of_ros_2_hold_in_both_directions() {
    let schema = ros2("string<=2 text\nuint16[<=1] list");
    let value = |text, list: Vec<u64>| {
        Value::Message(vec![Value::text(text), Value::Array(list.into_iter().map(Value::Uint).collect())])
    };
    assert!(encode(&schema, Encoding::Cdr, &value("ab", vec![7])).is_ok());
    let error = encode(&schema, Encoding::Cdr, &value("abc", vec![])).unwrap_err();
    assert_eq!((error.path.as_str(), error.problem), ("text", CodecProblem::TooMany(2)));
    let error = encode(&schema, Encoding::Cdr, &value("", vec![1, 2])).unwrap_err();
    assert_eq!((error.path.as_str(), error.problem), ("list", CodecProblem::TooMany(1)));
    let long = b"\0\x01\0\0\x04\0\0\0abc\0\0\0\0\0";
    assert_eq!(
        decode(&schema, Encoding::Cdr, &Bytes::from_static(long)).unwrap_err().problem,
        CodecProblem::TooMany(2)
    );
}

#[test]
fn a_length_that_the_message_does_not_have_allocates_nothing() {
    let schema = Schema::parse(
        Dialect::Ros1,
        "test/Big",
        "E[] list\n================================================================================\nMSG: test/E\n",
    )
    .unwrap();
    let error = decode(&schema, Encoding::Ros1, &Bytes::from_static(&[0xFF; 4])).unwrap_err();
    assert_eq!((error.path.as_str(), error.problem), ("list", CodecProblem::TooShort));
}

#[test]
fn values_without_octets_are_limited() {
    let line = "=".repeat(80);
    let text =
        format!("A[4096] a\n{line}\nMSG: test/A\nB[4096] b\n{line}\nMSG: test/B\nE[4096] e\n{line}\nMSG: test/E\n");
    let schema = Schema::parse(Dialect::Ros1, "test/Big", &text).unwrap();
    let problem = decode(&schema, Encoding::Ros1, &Bytes::new()).unwrap_err().problem;
    assert_eq!(problem, CodecProblem::TooManyValues);
    let problem = json::read(&schema, &serde_json::json!({})).unwrap_err().problem;
    assert_eq!(problem, CodecProblem::TooManyValues);
}

#[test]
fn json_has_defaults_and_names_the_wrong_member() {
    let schema = all();
    let read = |text: &str| json::read(&schema, &serde_json::from_str(text).unwrap());
    let Value::Message(values) = read("{}").unwrap() else { panic!() };
    assert_eq!(values[3], Value::Array(vec![Value::Uint(0); 2]));
    assert_eq!(read(r#"{"octets":[1,2]}"#), read(r#"{"octets":"AQI="}"#));
    for (text, path, problem) in [
        (r#"{"inner":{"small":"x"}}"#, "inner.small", CodecProblem::Type),
        (r#"{"inner":{"other":1}}"#, "inner.other", CodecProblem::Unknown),
        (r#"{"octets":[256]}"#, "octets", CodecProblem::Range),
        ("[]", "", CodecProblem::Type),
    ] {
        let error = read(text).unwrap_err();
        assert_eq!((error.path.as_str(), error.problem), (path, problem), "{text}");
    }
    // The range of a number is checked when it is encoded.
    let error = encode(&schema, Encoding::Ros1, &read(r#"{"a":200}"#).unwrap()).unwrap_err();
    assert_eq!((error.path.as_str(), error.problem), ("a", CodecProblem::Range));
}

#[test]
fn json_is_read_as_other_programs_write_it() {
    let schema = ros2("int64 a\nuint64 b\nfloat64 c\nfloat32 d\nbool e\nuint8[3] f\nint16 g");
    let read = |text: &str| json::read(&schema, &serde_json::from_str(text).unwrap());
    let Value::Message(values) = read(
        r#"{"a":"-9007199254740993","b":18446744073709551615,"c":"-Infinity","d":null,"e":1,"f":[1,2,3],"g":2.0}"#,
    )
    .unwrap() else {
        panic!()
    };
    assert_eq!(
        values[..3],
        [Value::Int(-9_007_199_254_740_993), Value::Uint(u64::MAX), Value::Float64(f64::NEG_INFINITY)]
    );
    assert!(matches!(values[3], Value::Float32(value) if value.is_nan()));
    assert_eq!(values[4..], [Value::Bool(true), Value::Octets(vec![1, 2, 3].into()), Value::Int(2)]);
    for (text, path, problem) in [
        (r#"{"a":1.5}"#, "a", CodecProblem::Type),
        (r#"{"b":-1}"#, "b", CodecProblem::Type),
        (r#"{"b":"x"}"#, "b", CodecProblem::Type),
        (r#"{"c":"inf"}"#, "c", CodecProblem::Type),
        (r#"{"d":1e39}"#, "d", CodecProblem::Range),
        (r#"{"e":2}"#, "e", CodecProblem::Type),
        (r#"{"a":1e30}"#, "a", CodecProblem::Type),
    ] {
        let error = read(text).unwrap_err();
        assert_eq!((error.path.as_str(), error.problem), (path, problem), "{text}");
    }
    // The length of an array is checked when it is encoded.
    let error = json::to_message(&schema, Encoding::Cdr, br#"{"f":"AQI="}"#).unwrap_err().to_string();
    assert_eq!(error, "`f`: the array does not have 3 elements");
    assert!(json::to_message(&schema, Encoding::Cdr, b"{").unwrap_err().to_string().starts_with("not JSON: "));
}

#[test]
fn json_has_times_of_both_versions() {
    let time = "================================================================================\nMSG: builtin_interfaces/Time\n\
                int32 sec\nuint32 nanosec\n";
    let two = ros2(&format!("builtin_interfaces/Time at\n{time}"));
    let one = Schema::parse(Dialect::Ros1, "test/Any", "time at").unwrap();
    for text in [r#"{"at":{"sec":7,"nanosec":5}}"#, r#"{"at":{"secs":7,"nsecs":5}}"#] {
        let of = |schema, encoding| {
            let message = json::to_message(schema, encoding, text.as_bytes()).unwrap();
            String::from_utf8(json::from_message(schema, encoding, &message).unwrap()).unwrap()
        };
        assert_eq!(of(&two, Encoding::Cdr), r#"{"at":{"sec":7,"nanosec":5}}"#);
        assert_eq!(of(&one, Encoding::Ros1), r#"{"at":{"secs":7,"nsecs":5}}"#);
    }
    for text in [r#"{"at":{"secs":-1,"nsecs":5}}"#, r#"{"at":{"secs":1}}"#, r#"{"at":{"secs":1,"nsecs":0,"x":1}}"#] {
        assert!(json::to_message(&one, Encoding::Ros1, text.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn a_large_array_of_octets_is_not_copied() {
    let schema = ros2("uint8 a\nuint8[] octets\nuint64 after");
    let octets = Bytes::from(vec![7; 5001]);
    let value = Value::Message(vec![Value::Uint(1), Value::Octets(octets.clone()), Value::Uint(9)]);
    let chunks = viaduct_ros::codec::encode_chunks(&schema, Encoding::Cdr, &value).unwrap();
    assert_eq!(chunks[1].as_ptr(), octets.as_ptr());
    let whole = encode(&schema, Encoding::Cdr, &value).unwrap();
    assert_eq!(whole, chunks.concat());
    assert_eq!(decode(&schema, Encoding::Cdr, &whole).unwrap(), value);
}
