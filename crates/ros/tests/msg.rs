//! Definitions of messages, with the MD5 sums that ROS 1 publishes for them.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use viaduct_ros::msg::{Basic, Count, Dialect, FieldType, Schema, SchemaError};

const TIME_HEADER: &str = "uint32 seq\ntime stamp\nstring frame_id";

/// Returns a full definition of the given types, the message first.
fn full(types: &[(&str, &str)]) -> String {
    let mut text = types[0].1.to_owned();
    for (name, definition) in &types[1..] {
        text += &format!("\n{}\nMSG: {name}\n{definition}\n", "=".repeat(80));
    }
    text
}

fn md5(types: &[(&str, &str)]) -> String {
    Schema::parse(Dialect::Ros1, types[0].0, &full(types)).unwrap().md5()
}

#[test]
fn the_sums_are_those_of_ros() {
    let vector = ("geometry_msgs/Vector3", "float64 x\nfloat64 y\nfloat64 z");
    let header = ("std_msgs/Header", TIME_HEADER);
    let fields = "# Constants.\nuint8 INT8    = 1\nuint8 UINT8   = 2\nuint8 INT16   = 3\nuint8 UINT16  = 4\nuint8 INT32   = 5\n\
                  uint8 UINT32  = 6\nuint8 FLOAT32 = 7\nuint8 FLOAT64 = 8\n\nstring name # of the field\nuint32 offset\n\
                  uint8  datatype\nuint32 count";
    let cloud = "Header header\nuint32 height\nuint32 width\nPointField[] fields\nbool    is_bigendian\nuint32  point_step\n\
                 uint32  row_step\nuint8[] data\n\nbool is_dense";
    let image =
        "Header header\nuint32 height\nuint32 width\nstring encoding\nuint8 is_bigendian\nuint32 step\nuint8[] data";
    for (types, sum) in [
        (vec![("std_msgs/String", "string data")], "992ce8a1687cec8c8bd883ec73ca41d1"),
        (vec![("std_msgs/Header", TIME_HEADER)], "2176decaecbce78abc3b96ef049fabed"),
        (
            vec![("geometry_msgs/Twist", "Vector3  linear\nVector3  angular"), vector],
            "9f195f881246fdfa2798d1d3eebca84a",
        ),
        (vec![("sensor_msgs/Image", image), header], "060021388200f6f0f447d0fcd9c64743"),
        (
            vec![("sensor_msgs/PointCloud2", cloud), header, ("sensor_msgs/PointField", fields)],
            "1158d486dd51d683ce2f1be655c3c181",
        ),
    ] {
        assert_eq!(md5(&types), sum, "{}", types[0].0);
    }
}

#[test]
fn a_string_constant_of_ros_1_contains_number_signs_and_spaces() {
    let plain = md5(&[("a/B", "string TEXT=one # two")]);
    assert_ne!(plain, md5(&[("a/B", "string TEXT=one")]));
    assert_eq!(plain, md5(&[("a/B", "# A comment\nstring TEXT= one # two  ")]));
}

#[test]
fn ros_2_has_bounds_defaults_and_quoted_constants() {
    let text =
        "string<=10[<=5] names\nint32[3] axes [1, 2, 3]\nfloat64 rate 10.0\nstring MODE=\"fast # not\"\nwstring title";
    let schema = Schema::parse(Dialect::Ros2, "a_msgs/msg/Axes", text).unwrap();
    let fields = schema.root().unwrap().fields();
    let shapes: Vec<_> = fields.iter().map(|field| (field.name.as_str(), field.base, field.count)).collect();
    assert_eq!(
        shapes,
        [
            ("names", FieldType::Basic(Basic::String), Count::AtMost(5)),
            ("axes", FieldType::Basic(Basic::Int32), Count::Fixed(3)),
            ("rate", FieldType::Basic(Basic::Float64), Count::One),
            ("title", FieldType::Basic(Basic::Wstring), Count::One),
        ]
    );
    assert_eq!(fields[0].string_limit, Some(10));
}

#[test]
fn a_mistake_is_named_with_its_line() {
    let error = |text: &str| Schema::parse(Dialect::Ros1, "a/B", text).unwrap_err().to_string();
    for (text, expected) in [
        ("int32 x\nint33 y", "line 2: the type `a/int33` is not defined"),
        ("int32", "line 1: `int32` is neither a field nor a constant"),
        ("int32 1x", "line 1: `1x` is not a name"),
        ("int32[ x", "line 1: `int32[` is not a type"),
        ("int32[-1] x", "line 1: `int32[-1]` is not a type"),
        ("int32 x\nstring x", "line 2: the field `x` exists twice"),
        ("geometry_msgs/Pose pose", "line 1: the type `geometry_msgs/Pose` is not defined"),
        ("B b", "the type `a/B` contains itself, or has more than 32 levels"),
    ] {
        assert_eq!(error(text), expected);
    }
    let separator = "=".repeat(80);
    assert_eq!(error(&format!("int8 x\n{separator}\nint8 y")), "line 3: expected `MSG: package/Name`, got `int8 y`");
    assert_eq!(error(&format!("int8 x\n{separator}\nMSG: a/B\nint8 y")), "the type `a/B` is defined twice");
    assert!(matches!(Schema::parse(Dialect::Ros1, "String", ""), Err(SchemaError::Name { line: 0, .. })));
}

#[test]
fn types_that_grow_beyond_all_bounds_are_refused_at_once() {
    let mut types = vec![("a/T0".to_owned(), "T1[1000] a\nT1[1000] b".to_owned())];
    types.extend((1..20).map(|level| (format!("a/T{level}"), format!("T{}[1000] a\nT{0}[1000] b", level + 1))));
    types.push(("a/T20".to_owned(), "int8 x".to_owned()));
    let types: Vec<_> = types.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let parsed = Schema::parse(Dialect::Ros1, "a/T0", &full(&types));
    assert!(matches!(parsed, Err(SchemaError::TooLarge(_))), "{parsed:?}");
    // Without arrays the definition is valid, and its sum takes no time.
    let doubled = full(&types).replace("[1000]", "");
    assert_eq!(Schema::parse(Dialect::Ros1, "a/T0", &doubled).unwrap().md5().len(), 32);
}

proptest! {
    #[test]
    fn any_text_is_a_definition_or_an_error(text in "([a-zA-Z0-9_/\\[\\]<=#. \t]{0,20}\n){0,20}") {
        for dialect in [Dialect::Ros1, Dialect::Ros2] {
            if let Ok(schema) = Schema::parse(dialect, "a/B", &text) {
                prop_assert_eq!(schema.md5().len(), 32);
            }
        }
    }
}
