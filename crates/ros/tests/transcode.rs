//! Messages of one ROS version as messages of the other one, compared with the codec for values.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the failure")]

use bytes::Bytes;
use proptest::prelude::*;
use viaduct_ros::codec::{CodecProblem, Encoding, decode, encode};
use viaduct_ros::definitions::{find, names};
use viaduct_ros::json;
use viaduct_ros::msg::{Dialect, Schema, TypeName};
use viaduct_ros::transcode::{PlanError, Transcoder};
use viaduct_ros::value::Value;

const LINE: &str = "================================================================================";

fn ros1(text: &str) -> Schema {
    Schema::parse(Dialect::Ros1, "test/All", text).unwrap()
}

fn ros2(text: &str) -> Schema {
    let times = format!(
        "{LINE}\nMSG: builtin_interfaces/Time\nint32 sec\nuint32 nanosec\n\
         {LINE}\nMSG: builtin_interfaces/Duration\nint32 sec\nuint32 nanosec\n"
    );
    Schema::parse(Dialect::Ros2, "test/All", &format!("{text}\n{times}")).unwrap()
}

fn all() -> (Schema, Schema) {
    let fields = |seq: &str, time: &str, duration: &str, matrix: &str| {
        format!(
            "H header\nbool flag\nint8 a\nint64 b\nuint16[2] pair\nfloat32[] floats\nstring text\nstring[] texts\nuint8[] octets\n\
             {duration} during\n{time}[] times\nfloat64[4] {matrix}\nI inner\nI[] inners\nbool[] flags\nbyte level\nbyte[] levels\nE empty\n\
             {LINE}\nMSG: test/H\n{seq}{time} at\nstring frame\n{LINE}\nMSG: test/I\nuint8 small\nfloat64 large\nuint8 after\n{LINE}\nMSG: test/E\n"
        )
    };
    (
        ros1(&fields("uint32 seq\n", "time", "duration", "K")),
        ros2(&fields("", "builtin_interfaces/Time", "builtin_interfaces/Duration", "k")),
    )
}

fn inner() -> impl Strategy<Value = Value> {
    (any::<u8>(), any::<i32>(), any::<u8>()).prop_map(|(small, large, after)| {
        Value::Message(vec![Value::Uint(small.into()), Value::Float64(large.into()), Value::Uint(after.into())])
    })
}

/// A message of ROS 1 and the same message of ROS 2.
fn messages() -> impl Strategy<Value = (Value, Value)> {
    let texts = proptest::collection::vec("[a-zä]{0,6}", 0..4);
    let octets = (proptest::collection::vec(any::<u8>(), 0..9), proptest::collection::vec(any::<i8>(), 0..4));
    let numbers = (any::<bool>(), any::<i8>(), any::<i64>(), any::<[u16; 2]>(), any::<[i32; 4]>());
    let floats = proptest::collection::vec(any::<i16>(), 0..5);
    let times = (0..=i32::MAX as u32, any::<i32>(), 0..1_000_000_000_u32, proptest::collection::vec(0..9_u32, 0..3));
    let rest = (inner(), proptest::collection::vec(inner(), 0..3), proptest::collection::vec(any::<bool>(), 0..4));
    (numbers, floats, "[a-zä]{0,9}", texts, octets, times, rest).prop_map(
        |(numbers, floats, text, texts, octets, times, rest)| {
            let (flag, a, b, pair, matrix) = numbers;
            let stamp = |seconds: u32| {
                (Value::Time(seconds, 5), Value::Message(vec![Value::Int(seconds.into()), Value::Uint(5)]))
            };
            let during = (
                Value::Duration(times.1, times.2 as i32),
                Value::Message(vec![Value::Int(times.1.into()), Value::Uint(times.2.into())]),
            );
            let (ones, twos): (Vec<_>, Vec<_>) = times.3.iter().copied().map(stamp).unzip();
            let middle = |during: Value, times: Vec<Value>, level: &dyn Fn(i8) -> Value, levels: Value| {
                vec![
                    Value::Bool(flag),
                    Value::Int(a.into()),
                    Value::Int(b),
                    Value::Array(pair.iter().map(|one| Value::Uint((*one).into())).collect()),
                    Value::Array(floats.iter().map(|one| Value::Float32((*one).into())).collect()),
                    Value::text(&text),
                    Value::Array(texts.iter().map(|text| Value::text(text)).collect()),
                    Value::Octets(octets.0.clone().into()),
                    during,
                    Value::Array(times),
                    Value::Array(matrix.iter().map(|one| Value::Float64((*one).into())).collect()),
                    rest.0.clone(),
                    Value::Array(rest.1.clone()),
                    Value::Array(rest.2.iter().copied().map(Value::Bool).collect()),
                    level(a),
                    levels,
                    Value::Message(vec![]),
                ]
            };
            let (one, two) = stamp(times.0);
            let head = |stamp: Vec<Value>| Value::Message([stamp, vec![Value::text("map")]].concat());
            let signed = |level: i8| Value::Int(level.into());
            let unsigned = |level: i8| Value::Uint((level as u8).into());
            let signs = Value::Array(octets.1.iter().copied().map(signed).collect());
            let bits = Value::Octets(octets.1.iter().map(|level| *level as u8).collect::<Vec<_>>().into());
            let one = [vec![head(vec![Value::Uint(0), one])], middle(during.0.clone(), ones, &signed, signs)].concat();
            let two = [vec![head(vec![two])], middle(during.1.clone(), twos, &unsigned, bits)].concat();
            (Value::Message(one), Value::Message(two))
        },
    )
}

proptest! {
    #[test]
    fn a_message_becomes_that_of_the_other_version((one, two) in messages()) {
        let (schema1, schema2) = all();
        let one = encode(&schema1, Encoding::Ros1, &one).unwrap();
        let two = encode(&schema2, Encoding::Cdr, &two).unwrap();
        let (there, back) = (Transcoder::new(&schema1, &schema2).unwrap(), Transcoder::new(&schema2, &schema1).unwrap());
        prop_assert_eq!(&there.transcode(&one).unwrap(), &two);
        prop_assert_eq!(&back.transcode(&two).unwrap(), &one);
        let mut buffer = vec![0xAA; there.length(&one).unwrap()];
        prop_assert_eq!(there.write(&one, &mut buffer), Ok(two.len()));
        prop_assert_eq!(&buffer, &two);
        prop_assert!(there.write(&one, &mut buffer[1..]).is_err());
        for cut in [1, one.len() / 2, one.len()] {
            prop_assert!(there.transcode(&one[..one.len() - cut]).is_err());
        }
    }

    #[test]
    fn any_octets_are_a_message_or_an_error(octets in proptest::collection::vec(any::<u8>(), 0..300)) {
        let (schema1, schema2) = all();
        for (from, to, encodings) in [
            (&schema1, &schema2, (Encoding::Ros1, Encoding::Cdr)),
            (&schema2, &schema1, (Encoding::Cdr, Encoding::Ros1)),
        ] {
            if let Ok(message) = Transcoder::new(from, to).unwrap().transcode(&octets) {
                prop_assert!(decode(from, encodings.0, &Bytes::from(octets.clone())).is_ok());
                prop_assert!(decode(to, encodings.1, &Bytes::from(message)).is_ok());
            }
        }
    }
}

#[test]
fn all_common_types_have_a_counterpart() {
    let mut count = 0;
    for name in names(Dialect::Ros1) {
        let (one, two) = (find(name, Dialect::Ros1).unwrap(), find(name, Dialect::Ros2));
        let Some(two) = two else { continue };
        let (one, two) = (one.schema(), two.schema());
        let there = Transcoder::new(one, two).unwrap_or_else(|error| panic!("{name}: {error}"));
        let back = Transcoder::new(two, one).unwrap();
        let message = encode(two, Encoding::Cdr, &json::read(two, &serde_json::json!({})).unwrap()).unwrap();
        assert_eq!(there.transcode(&back.transcode(&message).unwrap()).unwrap(), message, "{name}");
        let is_header = |field: &String| field.ends_with("seq");
        let differs = there.zeroed().len() + there.dropped().iter().filter(|field| !is_header(field)).count() > 0;
        let is_other = name.package() == "vision_msgs" || name.name() == "Range";
        assert!(is_other || !differs, "{name}: {:?} {:?}", there.dropped(), there.zeroed());
        count += 1;
    }
    assert!(count > 80, "{count}");
}

#[test]
fn fields_without_counterpart_are_dropped_or_zero() {
    let (one, two) = (
        ros1("int32 a\nstring old\nint32[3] gone\nint32 b"),
        ros2("int32 a\nuint8 first\nfloat64[2] new\nstring text\nuint8[] list\nint32 b"),
    );
    let there = Transcoder::new(&one, &two).unwrap();
    assert_eq!(
        (there.dropped(), there.zeroed()),
        (&["old".to_owned(), "gone".to_owned()][..], &["first", "new", "text", "list"].map(str::to_owned)[..])
    );
    let words = |words: &[i32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let message = [words(&[-1, 2]), b"xy".to_vec(), words(&[1, 2, 3, -2])].concat();
    let header = vec![0, 1, 0, 0];
    let target = [header, words(&[-1]), vec![0; 4], vec![0; 16], words(&[1]), vec![0; 4], words(&[0, -2])].concat();
    assert_eq!(there.transcode(&message).unwrap(), target);
}

#[test]
fn fields_in_another_order_are_found() {
    let (one, two) = (ros1("string a\nuint8 b\nuint32[] c"), ros2("uint32[] c\nstring a\nuint8 b"));
    let message = b"\x02\0\0\0hi\x07\x01\0\0\0\x05\0\0\0";
    let there = Transcoder::new(&one, &two).unwrap().transcode(message).unwrap();
    assert_eq!(there, b"\0\x01\0\0\x01\0\0\0\x05\0\0\0\x03\0\0\0hi\0\x07");
    assert_eq!(Transcoder::new(&two, &one).unwrap().transcode(&there).unwrap(), message);
}

#[test]
fn two_similar_names_have_their_own_field() {
    let (one, two) = (ros1("uint8 K\nuint8 x"), ros2("uint8 k\nuint8 K_\nuint8 x"));
    let there = Transcoder::new(&one, &two).unwrap();
    assert_eq!(there.transcode(&[1, 2]).unwrap(), [0, 1, 0, 0, 1, 0, 2]);
    assert_eq!(there.zeroed(), ["K_"]);
}

#[test]
fn big_endian_numbers_are_turned() {
    let (one, two) = (
        ros1("uint16 a\nfloat64[] b\nstring c\ntime d"),
        ros2("uint16 a\nfloat64[] b\nstring c\nbuiltin_interfaces/Time d"),
    );
    let message = [
        &[0, 0, 0, 0][..],
        &[1, 2],
        &[0, 0],
        &[0, 0, 0, 1],
        &1.5_f64.to_be_bytes(),
        &[0, 0, 0, 2],
        b"x\0",
        &[0, 0],
        &[0, 0, 0, 7],
        &[0, 0, 0, 9],
    ]
    .concat();
    let expected =
        [&[2, 1][..], &[1, 0, 0, 0], &1.5_f64.to_le_bytes(), &[1, 0, 0, 0], b"x", &[7, 0, 0, 0], &[9, 0, 0, 0]]
            .concat();
    assert_eq!(Transcoder::new(&two, &one).unwrap().transcode(&message).unwrap(), expected);
}

#[test]
fn times_have_boundaries() {
    let (one, two) = (ros1("time a\nduration b"), ros2("builtin_interfaces/Time a\nbuiltin_interfaces/Duration b"));
    let (there, back) = (Transcoder::new(&one, &two).unwrap(), Transcoder::new(&two, &one).unwrap());
    let words = |words: [u32; 4]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let message = |words4: [u32; 4]| [vec![0, 1, 0, 0], words(words4)].concat();
    let last = [0x7FFF_FFFF, 999_999_999, 0x7FFF_FFFF, 999_999_999];
    assert_eq!(there.transcode(&words(last)), Ok(message(last)));
    assert_eq!(back.transcode(&message(last)), Ok(words(last)));
    // 2038-01-19T03:14:08 in ROS 1, and a time before 1970 in ROS 2.
    assert_eq!(there.transcode(&words([0x8000_0000, 0, 0, 0])), Err(CodecProblem::Range));
    assert_eq!(back.transcode(&message([u32::MAX, 0, 0, 0])), Err(CodecProblem::Range));
    // -0.5 s, as ROS 1 may write it and as ROS 2 does.
    let half = (-500_000_000_i32) as u32;
    assert_eq!(there.transcode(&words([0, 0, 0, half])), Ok(message([0, 0, u32::MAX, 500_000_000])));
    assert_eq!(there.transcode(&words([0, 0, 0x8000_0000, half])), Err(CodecProblem::Range));
    assert_eq!(back.transcode(&message([0, 0, u32::MAX, 500_000_000])), Ok(words([0, 0, u32::MAX, 500_000_000])));
    assert_eq!(back.transcode(&message([0, 0, 0, u32::MAX])), Err(CodecProblem::Range));
}

#[test]
fn limits_of_the_target_hold() {
    let (one, two) = (ros1("string a\nuint8[] b\nfloat32[] c"), ros2("string<=2 a\nuint8[2] b\nfloat32[<=1] c"));
    let there = Transcoder::new(&one, &two).unwrap();
    let message = |text: &[u8], octets: &[u8], count: u32| {
        let length = |octets: &[u8]| (octets.len() as u32).to_le_bytes();
        [&length(text)[..], text, &length(octets), octets, &count.to_le_bytes(), &vec![0; 4 * count as usize]].concat()
    };
    assert!(there.transcode(&message(b"ab", b"xy", 1)).is_ok());
    assert_eq!(there.transcode(&message(b"abc", b"xy", 1)), Err(CodecProblem::TooMany(2)));
    assert_eq!(there.transcode(&message(b"ab", b"xyz", 1)), Err(CodecProblem::Length(2)));
    assert_eq!(there.transcode(&message(b"ab", b"xy", 2)), Err(CodecProblem::TooMany(1)));
}

#[test]
fn other_types_are_refused_with_their_field() {
    let plan = |one: &str, two: &str| Transcoder::new(&ros1(one), &ros2(two));
    let inner = |field: &str| format!("I i\n{LINE}\nMSG: test/I\n{field}\n");
    assert_eq!(plan(&inner("int32 x"), &inner("int64 x")), Err(PlanError::Type("i.x".to_owned())));
    assert_eq!(plan("int8 x", "uint8 x"), Err(PlanError::Type("x".to_owned())));
    assert_eq!(plan("time x", "builtin_interfaces/Duration x"), Err(PlanError::Type("x".to_owned())));
    assert_eq!(plan("int8 x", "int8[] x"), Err(PlanError::Type("x".to_owned())));
    assert_eq!(plan("int8[2] x", "int8[3] x"), Err(PlanError::Type("x".to_owned())));
    assert_eq!(plan("string x", "wstring x"), Err(PlanError::Type("x".to_owned())));
    let name = TypeName::parse("test/All").unwrap();
    assert_eq!(plan("int8 x", "int8 y"), Err(PlanError::NothingInCommon(name.clone(), name)));
}

#[test]
fn types_that_grow_beyond_all_bounds_are_refused() {
    let mut text = "T1 a\nT1 b".to_owned();
    for level in 1..30 {
        text += &format!("\n{LINE}\nMSG: test/T{level}\nT{} a\nT{0} b\n", level + 1);
    }
    text += &format!("{LINE}\nMSG: test/T30\nstring a\n");
    assert_eq!(Transcoder::new(&ros1(&text), &ros2(&text)), Err(PlanError::TooLarge));
    // Values without octets.
    let text =
        format!("A[4096] a\n{LINE}\nMSG: test/A\nB[4096] b\n{LINE}\nMSG: test/B\nE[4096] e\n{LINE}\nMSG: test/E\n");
    let there = Transcoder::new(&ros1(&text), &ros2(&text)).unwrap();
    assert_eq!(there.length(&[]), Err(CodecProblem::TooManyValues));
    let there = Transcoder::new(
        &ros1("uint8 a"),
        &ros2(&format!("uint8 a\nA[4096] b\n{LINE}\nMSG: test/A\nfloat64[131072] c\nstring s")),
    )
    .unwrap();
    assert_eq!(there.length(&[1]), Err(CodecProblem::TooManyValues));
}

#[test]
fn a_cloud_of_both_versions() {
    let name = TypeName::parse("sensor_msgs/PointCloud2").unwrap();
    let [one, two] = [Dialect::Ros1, Dialect::Ros2].map(|dialect| find(&name, dialect).unwrap().schema());
    let data = "A".repeat(4 * 250_000);
    let json = format!(
        r#"{{"header":{{"frame_id":"lidar"}},"height":1,"fields":[{{"name":"x"}},{{"name":"intensity"}}],"data":"{data}"}}"#
    );
    let message = json::to_message(one, Encoding::Ros1, json.as_bytes()).unwrap();
    let there = Transcoder::new(one, two).unwrap();
    assert_eq!(there.transcode(&message).unwrap(), json::to_message(two, Encoding::Cdr, json.as_bytes()).unwrap());
    assert_eq!(there.dropped(), ["header.seq"]);
}
