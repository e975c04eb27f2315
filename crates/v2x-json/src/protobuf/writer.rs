//! The JSON writer.

use base64::{display::Base64Display, prelude::BASE64_STANDARD};
use prost_reflect::{
    DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, ReflectMessage as _, SerializeOptions, Value,
};
use serde::ser::{Serialize, SerializeMap as _, Serializer};

use super::labels::enum_label;

/// Largest integer up to which a double holds every integer.
const EXACT_MAX: u64 = (1 << 53) - 1;

/// Options for the types of `google.protobuf`, which protobuf's JSON mapping writes as text or as plain JSON.
const WELL_KNOWN: SerializeOptions = SerializeOptions::new().use_proto_field_name(true);

/// A message that serializes as JSON.
///
/// ```
/// use prost_reflect::{DescriptorPool, DynamicMessage};
/// use viaduct_v2x_json::protobuf::JsonOf;
///
/// let pool = DescriptorPool::decode(viaduct_messages::DESCRIPTOR_SET).unwrap();
/// let notice = DynamicMessage::new(pool.get_message_by_name("viaduct.its.Position").unwrap());
/// let text = serde_json::to_string(&JsonOf::new(&notice)).unwrap();
/// assert_eq!(text, r#"{"latitude_deg":0.0,"longitude_deg":0.0}"#);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct JsonOf<'a> {
    message: &'a DynamicMessage,
    options: Options,
}

#[derive(Clone, Copy, Debug)]
struct Options {
    arrays: bool,
}

impl<'a> JsonOf<'a> {
    /// Returns the JSON form of a message.
    #[must_use]
    pub const fn new(message: &'a DynamicMessage) -> Self {
        Self { message, options: Options { arrays: true } }
    }

    /// Leaves out lists and bytes.
    #[must_use]
    pub const fn without_arrays(self) -> Self {
        Self { options: Options { arrays: false }, ..self }
    }
}

impl Serialize for JsonOf<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if is_well_known(&self.message.descriptor()) {
            return self.message.serialize_with_options(serializer, &WELL_KNOWN);
        }
        let mut map = serializer.serialize_map(None)?;
        for field in self.message.descriptor().fields() {
            if !self.is_written(&field) {
                continue;
            }
            let value = self.message.get_field(&field);
            map.serialize_entry(
                field.name(),
                &JsonValue { value: &value, kind: &field.kind(), options: self.options },
            )?;
        }
        map.end()
    }
}

impl JsonOf<'_> {
    fn is_written(&self, field: &FieldDescriptor) -> bool {
        let is_set = !field.supports_presence() || self.message.has_field(field);
        let is_array = field.is_list() || field.kind() == Kind::Bytes;
        is_set && (self.options.arrays || !is_array)
    }
}

/// Returns `true` if the type is one of `google.protobuf`.
pub(super) fn is_well_known(descriptor: &MessageDescriptor) -> bool {
    descriptor.parent_file().package_name() == "google.protobuf"
}

/// The value of a field, or an element of a list or map.
struct JsonValue<'a> {
    value: &'a Value,
    kind: &'a Kind,
    options: Options,
}

impl Serialize for JsonValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let &Self { value, kind, options } = self;
        match value {
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::I32(value) => serializer.serialize_i32(*value),
            Value::U32(value) => serializer.serialize_u32(*value),
            Value::I64(value) if value.unsigned_abs() <= EXACT_MAX => serializer.serialize_i64(*value),
            Value::I64(value) => serializer.collect_str(value),
            Value::U64(value) if *value <= EXACT_MAX => serializer.serialize_u64(*value),
            Value::U64(value) => serializer.collect_str(value),
            Value::F32(value) if value.is_finite() => serializer.serialize_f32(*value),
            Value::F32(value) => serializer.serialize_str(not_finite(f64::from(*value))),
            Value::F64(value) if value.is_finite() => serializer.serialize_f64(*value),
            Value::F64(value) => serializer.serialize_str(not_finite(*value)),
            Value::String(text) => serializer.serialize_str(text),
            Value::Bytes(bytes) => serializer.collect_str(&Base64Display::new(bytes, &BASE64_STANDARD)),
            Value::EnumNumber(number) => enumeration(*number, kind, serializer),
            Value::Message(message) => JsonOf { message, options }.serialize(serializer),
            Value::List(elements) => {
                serializer.collect_seq(elements.iter().map(|value| JsonValue { value, kind, options }))
            }
            Value::Map(entries) => {
                let kind = entry_kind(kind);
                let mut entries: Vec<(&MapKey, &Value)> = entries.iter().collect();
                entries.sort_by_key(|(key, _)| *key);
                let text = |(key, value)| (key_text(key), JsonValue { value, kind: &kind, options });
                serializer.collect_map(entries.into_iter().map(text))
            }
        }
    }
}

/// Writes the label of an enumeration value, or its number if the schema does not have it.
fn enumeration<S: Serializer>(number: i32, kind: &Kind, serializer: S) -> Result<S::Ok, S::Error> {
    match kind.as_enum().and_then(|values| values.get_value(number)) {
        Some(value) if value.full_name() == "google.protobuf.NULL_VALUE" => serializer.serialize_none(),
        Some(value) => serializer.serialize_str(&enum_label(&value)),
        None => serializer.serialize_i32(number),
    }
}

/// Returns the kind of a map's values.
pub(super) fn entry_kind(kind: &Kind) -> Kind {
    match kind {
        Kind::Message(entry) if entry.is_map_entry() => entry.map_entry_value_field().kind(),
        other => other.clone(),
    }
}

fn key_text(key: &MapKey) -> String {
    match key {
        MapKey::Bool(key) => key.to_string(),
        MapKey::I32(key) => key.to_string(),
        MapKey::I64(key) => key.to_string(),
        MapKey::U32(key) => key.to_string(),
        MapKey::U64(key) => key.to_string(),
        MapKey::String(key) => key.clone(),
    }
}

/// Returns the name of a float that JSON has no number for, as in protobuf's JSON mapping.
fn not_finite(value: f64) -> &'static str {
    if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}
