//! Formats a message as text by its schema.
//!
//! The text resembles YAML: one field per line, with nested fields indented. Long fields are cut and show their full
//! length.

use std::fmt::Write as _;

use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MapKey, ReflectMessage as _, Value};
use viaduct_its::HashedId8;
use viaduct_its::access::MacAddress;
use viaduct_its::geonet::GnAddress;
use viaduct_messages::viaduct::its::Edition;
use viaduct_v2x_json::protobuf::enum_label;

/// Limits of the fields that are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// Longest list, text and byte field that is shown whole, in elements, characters and octets; `None` for no limit.
    pub(super) length: Option<usize>,
    /// `true` if lists and byte fields are replaced by their length.
    pub(super) no_arr: bool,
}

impl Cut {
    /// Returns the number of elements that are shown of a field of this length.
    pub(super) fn shown(self, length: usize) -> usize {
        if self.no_arr { 0 } else { self.length.unwrap_or(length).min(length) }
    }
}

/// Appends the message. Fields without presence are shown with their default, because a zero is a value. Absent fields
/// with presence are not shown.
pub(super) fn write_message(message: &DynamicMessage, cut: Cut, indent: usize, out: &mut String) {
    for field in message.descriptor().fields() {
        if field.supports_presence() && !message.has_field(&field) {
            continue;
        }
        let _ = write!(out, "{:indent$}{}:", "", field.name());
        write_field(&message.get_field(&field), &field, cut, indent, out);
    }
}

/// Appends the value of a field after `name:`, with the end of its last line.
fn write_field(value: &Value, field: &FieldDescriptor, cut: Cut, indent: usize, out: &mut String) {
    match value {
        Value::List(items) => write_list(items, &field.kind(), cut, indent, out),
        Value::Map(entries) => {
            let value_kind = match field.kind() {
                Kind::Message(entry) => entry.map_entry_value_field().kind(),
                other => other,
            };
            let mut entries: Vec<(&MapKey, &Value)> = entries.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            out.push_str(if entries.is_empty() { " {}\n" } else { "\n" });
            for (key, value) in entries {
                let _ = write!(out, "{:indent$}{}:", "", key_text(key), indent = indent + 2);
                write_value(value, &value_kind, cut, indent + 2, out);
            }
        }
        single => match v2x_text(single, field) {
            Some(text) => {
                let _ = writeln!(out, " {text}");
            }
            None => write_value(single, &field.kind(), cut, indent, out),
        },
    }
}

/// Returns an edition, address or digest of a V2X message in the same form as in JSON, or `None` for other fields.
fn v2x_text(value: &Value, field: &FieldDescriptor) -> Option<String> {
    if field.parent_message().package_name() != "viaduct.its" {
        return None;
    }
    match (field.name(), value) {
        ("edition", Value::EnumNumber(number)) => Some(Edition::try_from(*number).ok()?.label().to_owned()),
        ("link_address", Value::Bytes(octets)) => Some(MacAddress(octets[..].try_into().ok()?).to_string()),
        ("geonet_address" | "station", Value::Bytes(octets)) => {
            Some(GnAddress(octets[..].try_into().ok()?).to_string())
        }
        ("signer_digest", Value::Bytes(octets)) => Some(HashedId8(octets[..].try_into().ok()?).to_string()),
        _ => None,
    }
}

/// Appends a value that is neither list nor map after `name:`.
fn write_value(value: &Value, kind: &Kind, cut: Cut, indent: usize, out: &mut String) {
    match value {
        Value::Message(message) => match well_known(message) {
            Some(text) => {
                let _ = writeln!(out, " {text}");
            }
            None => {
                let mut below = String::new();
                write_message(message, cut, indent + 2, &mut below);
                out.push_str(if below.is_empty() { " {}\n" } else { "\n" });
                out.push_str(&below);
            }
        },
        scalar => {
            let _ = writeln!(out, " {}", scalar_text(scalar, kind, cut));
        }
    }
}

/// Appends a list: messages one below the other, scalars on one line.
fn write_list(items: &[Value], kind: &Kind, cut: Cut, indent: usize, out: &mut String) {
    let shown = cut.shown(items.len());
    let hidden = items.len() - shown;
    if shown == 0 && hidden > 0 {
        let _ = writeln!(out, " <{hidden} elements>");
        return;
    }
    if !items.iter().any(|item| matches!(item, Value::Message(_))) {
        let mut texts: Vec<String> = items[..shown].iter().map(|item| scalar_text(item, kind, cut)).collect();
        if hidden > 0 {
            texts.push(format!("<{hidden} more of {}>", items.len()));
        }
        let _ = writeln!(out, " [{}]", texts.join(", "));
        return;
    }
    out.push('\n');
    for item in &items[..shown] {
        // `- ` replaces the last two spaces before the first field.
        let mut below = String::new();
        match item {
            Value::Message(message) => match well_known(message) {
                Some(text) => below = format!("{:indent$}  {text}\n", ""),
                None => write_message(message, cut, indent + 2, &mut below),
            },
            scalar => below = format!("{:indent$}  {}\n", "", scalar_text(scalar, kind, cut)),
        }
        let _ = write!(out, "{:indent$}- ", "");
        out.push_str(below.get(indent + 2..).unwrap_or("{}\n"));
    }
    if hidden > 0 {
        let _ = writeln!(out, "{:indent$}- <{hidden} more of {}>", "", items.len());
    }
}

/// Returns a well-known type, such as a timestamp, in the form of protobuf's JSON mapping, or `None` for other types.
fn well_known(message: &DynamicMessage) -> Option<String> {
    let descriptor = message.descriptor();
    descriptor.full_name().starts_with("google.protobuf.").then(|| serde_json::to_string(message).ok())?
}

fn scalar_text(value: &Value, kind: &Kind, cut: Cut) -> String {
    match value {
        Value::Bool(value) => value.to_string(),
        Value::I32(value) => value.to_string(),
        Value::I64(value) => value.to_string(),
        Value::U32(value) => value.to_string(),
        Value::U64(value) => value.to_string(),
        Value::F32(value) => value.to_string(),
        Value::F64(value) => value.to_string(),
        Value::String(text) => string_text(text, cut),
        Value::Bytes(octets) => octets_text(octets, cut),
        Value::EnumNumber(number) => enum_text(*number, kind),
        // Not scalars: the callers handle these cases.
        Value::Message(_) | Value::List(_) | Value::Map(_) => String::new(),
    }
}

fn key_text(key: &MapKey) -> String {
    match key {
        MapKey::Bool(key) => key.to_string(),
        MapKey::I32(key) => key.to_string(),
        MapKey::I64(key) => key.to_string(),
        MapKey::U32(key) => key.to_string(),
        MapKey::U64(key) => key.to_string(),
        MapKey::String(key) => quoted(key),
    }
}

fn enum_text(number: i32, kind: &Kind) -> String {
    let named = kind.as_enum().and_then(|names| names.get_value(number)).map(|value| enum_label(&value));
    named.unwrap_or_else(|| number.to_string())
}

/// Returns a text, cut to the length limit. `no_arr` does not apply to texts.
pub(super) fn string_text(text: &str, cut: Cut) -> String {
    let length = text.chars().count();
    let shown = Cut { no_arr: false, ..cut }.shown(length);
    let hidden = length - shown;
    if hidden == 0 {
        return quoted(text);
    }
    let start: String = text.chars().take(shown).collect();
    format!("{} <{hidden} more of {length} characters>", quoted(&start))
}

/// Returns the text, with quotes and escapes if a terminal or a YAML parser would otherwise interpret it.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    if !text.is_empty() && text.chars().all(plain) { text.to_owned() } else { format!("{text:?}") }
}

/// Returns `<6 octets: 00 01 02 03 04 05>`, cut to the length limit.
pub(super) fn octets_text(octets: &[u8], cut: Cut) -> String {
    let shown = cut.shown(octets.len());
    let hidden = octets.len() - shown;
    let digits: Vec<String> = octets[..shown].iter().map(|octet| format!("{octet:02x}")).collect();
    let colon = if shown > 0 { ": " } else { "" };
    let dots = if shown > 0 && hidden > 0 { " ..." } else { "" };
    format!("<{} octets{colon}{}{dots}>", octets.len(), digits.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost_reflect::DescriptorPool;
    use viaduct_messages::foxglove::{PackedElementField, PointCloud, Pose, Vector3};
    use viaduct_messages::its::timestamp;
    use viaduct_messages::viaduct::its::V2xMessage;
    use viaduct_messages::{DESCRIPTOR_SET, Message};
    use viaduct_units::Tai;
    use viaduct_v2x_json::protobuf::JsonOf;

    const ALL: Cut = Cut { length: None, no_arr: false };

    fn dynamic<M: Message>(message: &M) -> DynamicMessage {
        let pool = DescriptorPool::decode(DESCRIPTOR_SET).unwrap();
        let descriptor = pool.get_message_by_name(&M::full_name()).unwrap();
        DynamicMessage::decode(descriptor, message.encode_to_vec().as_slice()).unwrap()
    }

    fn cloud() -> PointCloud {
        let field = |name: &str| PackedElementField { name: name.into(), offset: 4, r#type: 7 };
        PointCloud {
            timestamp: Some(timestamp(Tai::from_unix_nanos(1_726_061_434_092_870_000))),
            frame_id: "top lidar".into(),
            pose: Some(Pose { position: Some(Vector3 { x: 1.5, ..Default::default() }), orientation: None }),
            point_stride: 0,
            fields: vec![field("x"), field("y"), field("z")],
            data: vec![0, 1, 254, 255].into(),
        }
    }

    fn text(message: &DynamicMessage, cut: Cut) -> String {
        let mut out = String::new();
        write_message(message, cut, 0, &mut out);
        out
    }

    #[test]
    fn each_field_has_a_line_and_defaults_are_shown() {
        let expected = "\
timestamp: \"2024-09-11T13:30:34.092870Z\"
frame_id: \"top lidar\"
pose:
  position:
    x: 1.5
    y: 0
    z: 0
point_stride: 0
fields:
- name: x
  offset: 4
  type: float32
- name: y
  offset: 4
  type: float32
- name: z
  offset: 4
  type: float32
data: <4 octets: 00 01 fe ff>
";
        assert_eq!(text(&dynamic(&cloud()), ALL), expected);
    }

    #[test]
    fn a_v2x_message_has_the_forms_of_its_json() {
        let message = V2xMessage {
            edition: Edition::CamTs103900V231.into(),
            link_address: vec![0x48, 0xA9, 0x8A, 0x90, 0x82, 0x7F].into(),
            geonet_address: vec![0x94, 0, 2, 0, 0, 0, 3, 0xF8].into(),
            signer_digest: vec![0x0D, 0x3A, 0x1D, 0x0D, 0xDF, 0x3F, 0x5B, 0x7D].into(),
            ..Default::default()
        };
        let shown = text(&dynamic(&message), ALL);
        for line in [
            "edition: TS 103 900 V2.3.1\n",
            "link_address: 48:a9:8a:90:82:7f\n",
            "geonet_address: 94:00:02:00:00:00:03:f8\n",
            "signer_digest: 0d3a1d0ddf3f5b7d\n",
        ] {
            assert!(shown.contains(line), "{shown}");
        }
        assert!(text(&dynamic(&V2xMessage::default()), ALL).contains("link_address: <0 octets>\n"));
    }

    #[test]
    fn a_long_field_is_cut_and_shows_its_length() {
        let cut = text(&dynamic(&cloud()), Cut { length: Some(2), no_arr: false });
        assert!(cut.contains("frame_id: to <7 more of 9 characters>\n"), "{cut}");
        assert!(cut.contains("- <1 more of 3>\n"), "{cut}");
        assert!(cut.contains("data: <4 octets: 00 01 ...>\n"), "{cut}");
        let without = text(&dynamic(&cloud()), Cut { length: None, no_arr: true });
        assert!(without.contains("fields: <3 elements>\ndata: <4 octets>\n"), "{without}");
        assert!(without.contains("frame_id: \"top lidar\"\n"), "{without}");
    }

    #[test]
    fn lists_of_scalars_and_maps_are_shown() {
        let proto = "syntax = 'proto3'; message T { repeated int32 n = 1; map<string, T> m = 2; optional bool b = 3; }";
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("t.proto"), proto).unwrap();
        let files = protox::compile(["t.proto"], [directory.path()]).unwrap();
        let pool = DescriptorPool::from_file_descriptor_set(files).unwrap();
        // n = [1, 2, 3], m = { "k": { b: true } }
        let octets = [0x0a, 3, 1, 2, 3, 0x12, 7, 0x0a, 1, b'k', 0x12, 2, 0x18, 1];
        let message = DynamicMessage::decode(pool.get_message_by_name("T").unwrap(), octets.as_slice()).unwrap();
        let shown = text(&message, Cut { length: Some(2), no_arr: false });
        assert_eq!(shown, "n: [1, 2, <1 more of 3>]\nm:\n  k:\n    n: []\n    m: {}\n    b: true\n");
        let json = serde_json::to_string(&JsonOf::new(&message).without_arrays()).unwrap();
        assert_eq!(json, r#"{"m":{"k":{"m":{},"b":true}}}"#);
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(quoted("\u{1b}[2J"), "\"\\u{1b}[2J\"");
        assert_eq!(quoted(""), "\"\"");
    }
}
