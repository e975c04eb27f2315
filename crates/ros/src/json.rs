//! Messages as JSON.
//!
//! | type | written | read too |
//! |---|---|---|
//! | `bool` | `true`, `false` | 1, 0 |
//! | integer | number | a number without fraction (`2.0`), a text (`"9007199254740993"`) |
//! | `float32`, `float64` | number, `"NaN"`, `"Infinity"`, `"-Infinity"` | `null` as NaN; a number as text |
//! | `string`, `wstring` | text; octets that are not UTF-8 become U+FFFD | |
//! | `uint8[]`, `char[]`, and `byte[]` of ROS 2 | base64 text | list of numbers |
//! | `time`, `duration` of ROS 1 | `{"secs": .., "nsecs": ..}` | `{"sec": .., "nanosec": ..}` |
//! | `builtin_interfaces/Time`, `Duration` of ROS 2 | `{"sec": .., "nanosec": ..}` | `{"secs": .., "nsecs": ..}` |
//! | array | list | |
//! | message | object with the names of the fields | a field that is absent has its default: 0, `false`, an empty text or array |
//!
//! Readers written in JavaScript round an integer beyond 2⁵³; they can send such a number as a text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::ser::{Serialize, SerializeMap as _, SerializeSeq as _, Serializer};
use serde_json::Value as Json;

use crate::codec::{self, CodecError, CodecProblem, Encoding};
use crate::limits::DEFAULT_VALUES_MAX;
use crate::msg::{Basic, Count, Field, FieldType, MessageType, Schema};
use crate::value::Value;

/// The whole numbers that a `f64` represents exactly: up to 2⁵³.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// The reason why a JSON text is not a message of a type.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// The octets are not JSON.
    #[error("not JSON: {0}")]
    Syntax(#[from] serde_json::Error),
    /// A member does not fit the type.
    #[error(transparent)]
    Member(#[from] CodecError),
}

/// Returns the JSON text of a message.
///
/// # Errors
/// The first field of the message that does not fit.
pub fn from_message(schema: &Schema, encoding: Encoding, message: &Bytes) -> Result<Vec<u8>, JsonError> {
    let value = codec::decode(schema, encoding, message)?;
    Ok(serde_json::to_vec(&JsonOf::new(schema, &value))?)
}

/// Returns the message of a JSON text.
///
/// # Errors
/// The octets are not JSON, or the first member that does not fit.
pub fn to_message(schema: &Schema, encoding: Encoding, text: &[u8]) -> Result<Bytes, JsonError> {
    let value = read(schema, &serde_json::from_slice(text)?)?;
    Ok(codec::encode(schema, encoding, &value)?)
}

/// A message as JSON. Serialise it with `serde_json`.
#[derive(Clone, Copy, Debug)]
pub struct JsonOf<'a> {
    schema: &'a Schema,
    value: &'a Value,
    has_arrays: bool,
}

impl<'a> JsonOf<'a> {
    /// Returns the JSON of a message of the schema's type.
    #[must_use]
    pub const fn new(schema: &'a Schema, value: &'a Value) -> Self {
        Self { schema, value, has_arrays: true }
    }

    /// Returns the JSON with the number of elements in place of each array.
    #[must_use]
    pub const fn without_arrays(self) -> Self {
        Self { has_arrays: false, ..self }
    }
}

impl Serialize for JsonOf<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { schema, value, has_arrays } = *self;
        Node { schema, value, has_arrays, message_type: schema.root() }.serialize(serializer)
    }
}

/// A value with its type.
struct Node<'a> {
    schema: &'a Schema,
    value: &'a Value,
    has_arrays: bool,
    /// Type of a message, or of the messages of an array.
    message_type: Option<&'a MessageType>,
}

impl Serialize for Node<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.value {
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Int(value) => serializer.serialize_i64(*value),
            Value::Uint(value) => serializer.serialize_u64(*value),
            Value::Float32(value) => match special(f64::from(*value)) {
                Some(text) => serializer.serialize_str(text),
                None => serializer.serialize_f32(*value),
            },
            Value::Float64(value) => match special(*value) {
                Some(text) => serializer.serialize_str(text),
                None => serializer.serialize_f64(*value),
            },
            Value::Text(text) => serializer.serialize_str(&String::from_utf8_lossy(text)),
            Value::WideText(text) => serializer.serialize_str(&String::from_utf16_lossy(text)),
            Value::Time(secs, nsecs) => time(serializer, secs, nsecs),
            Value::Duration(secs, nsecs) => time(serializer, secs, nsecs),
            Value::Octets(octets) if !self.has_arrays => serializer.serialize_u64(octets.len() as u64),
            Value::Array(values) if !self.has_arrays => serializer.serialize_u64(values.len() as u64),
            Value::Octets(octets) => serializer.serialize_str(&STANDARD.encode(octets)),
            Value::Array(values) => {
                let mut list = serializer.serialize_seq(Some(values.len()))?;
                for value in values {
                    list.serialize_element(&Node { value, ..*self })?;
                }
                list.end()
            }
            Value::Message(values) => {
                let fields = self.message_type.map_or(&[][..], MessageType::fields);
                let mut object = serializer.serialize_map(Some(values.len()))?;
                for (field, value) in fields.iter().zip(values) {
                    let message_type = match field.base {
                        FieldType::Message(index) => self.schema.message_type(index),
                        FieldType::Basic(_) => None,
                    };
                    object.serialize_entry(&field.name, &Node { value, message_type, ..*self })?;
                }
                object.end()
            }
        }
    }
}

fn time<S: Serializer>(serializer: S, secs: impl Serialize, nsecs: impl Serialize) -> Result<S::Ok, S::Error> {
    let mut object = serializer.serialize_map(Some(2))?;
    object.serialize_entry("secs", &secs)?;
    object.serialize_entry("nsecs", &nsecs)?;
    object.end()
}

fn special(value: f64) -> Option<&'static str> {
    match value {
        value if value.is_nan() => Some("NaN"),
        f64::INFINITY => Some("Infinity"),
        f64::NEG_INFINITY => Some("-Infinity"),
        _ => None,
    }
}

/// Reads the JSON of a message of the schema's type. Fields that are absent have their default: 0, `false`, an empty text or array.
///
/// # Errors
/// The first member that does not fit.
pub fn read(schema: &Schema, json: &Json) -> Result<Value, CodecError> {
    let mut reader = Reader { schema, defaults_left: DEFAULT_VALUES_MAX };
    match schema.root() {
        Some(root) => reader.message(root, json),
        None => Ok(Value::Message(Vec::new())),
    }
}

/// Reads the members of a text.
struct Reader<'a> {
    schema: &'a Schema,
    /// Number of further values that are absent in the text.
    defaults_left: u32,
}

impl Reader<'_> {
    fn message(&mut self, message_type: &MessageType, json: &Json) -> Result<Value, CodecError> {
        let members = json.as_object().ok_or(CodecProblem::Type)?;
        if let Some(time) = time_of_ros_2(message_type, json) {
            return Ok(time);
        }
        let is_field = |name: &&String| message_type.fields().iter().any(|field| field.name == **name);
        if let Some(unknown) = members.keys().find(|name| !is_field(name)) {
            return Err(CodecError::from(CodecProblem::Unknown).within(unknown));
        }
        let mut values = Vec::with_capacity(message_type.fields().len());
        for field in message_type.fields() {
            let value = match members.get(&field.name) {
                Some(member) => self.read_field(field, member),
                None => self.default_field(field),
            };
            values.push(value.map_err(|error| error.within(&field.name))?);
        }
        Ok(Value::Message(values))
    }

    fn read_field(&mut self, field: &Field, json: &Json) -> Result<Value, CodecError> {
        if field.count == Count::One {
            return self.read_value(field, json);
        }
        match json {
            Json::String(text) if field.base == FieldType::Basic(Basic::Uint8) => {
                let octets = STANDARD.decode(text).map_err(|_| CodecProblem::Type)?;
                Ok(Value::Octets(octets.into()))
            }
            Json::Array(list) if field.base == FieldType::Basic(Basic::Uint8) => {
                let octet = |one: &Json| one.as_u64().and_then(|one| u8::try_from(one).ok());
                let octets: Option<Vec<u8>> = list.iter().map(octet).collect();
                Ok(Value::Octets(octets.ok_or(CodecProblem::Range)?.into()))
            }
            Json::Array(list) => {
                let values = list.iter().map(|one| self.read_value(field, one));
                Ok(Value::Array(values.collect::<Result<_, _>>()?))
            }
            _ => Err(CodecProblem::Type.into()),
        }
    }

    fn read_value(&mut self, field: &Field, json: &Json) -> Result<Value, CodecError> {
        let basic = match field.base {
            FieldType::Basic(basic) => basic,
            FieldType::Message(index) => {
                return self.message(self.schema.message_type(index).ok_or(CodecProblem::Type)?, json);
            }
        };
        let value = match basic {
            Basic::Bool => boolean(json).map(Value::Bool),
            Basic::Int8 | Basic::Int16 | Basic::Int32 | Basic::Int64 => integer(json, json.as_i64()).map(Value::Int),
            Basic::Uint8 | Basic::Uint16 | Basic::Uint32 | Basic::Uint64 => {
                integer(json, json.as_u64()).map(Value::Uint)
            }
            Basic::Float32 => float(json).map(|value| value as f32).map(Value::Float32),
            Basic::Float64 => float(json).map(Value::Float64),
            Basic::String => json.as_str().map(Value::text),
            Basic::Wstring => json.as_str().map(|text| Value::WideText(text.encode_utf16().collect())),
            Basic::Time => pair(json).map(|(secs, nsecs)| Value::Time(secs, nsecs)),
            Basic::Duration => pair(json).map(|(secs, nsecs)| Value::Duration(secs, nsecs)),
        };
        if matches!(value, Some(Value::Float32(value)) if value.is_infinite()) && special_text(json).is_none() {
            return Err(CodecProblem::Range.into());
        }
        value.ok_or_else(|| CodecProblem::Type.into())
    }

    fn default_field(&mut self, field: &Field) -> Result<Value, CodecError> {
        let count = match field.count {
            Count::One => return self.default_value(field),
            Count::Fixed(count) => count,
            Count::Any | Count::AtMost(_) => 0,
        };
        self.defaults_left = self.defaults_left.checked_sub(count).ok_or(CodecProblem::TooManyValues)?;
        if field.base == FieldType::Basic(Basic::Uint8) {
            return Ok(Value::Octets(vec![0; count as usize].into()));
        }
        let values = (0..count).map(|_| self.default_value(field));
        Ok(Value::Array(values.collect::<Result<_, _>>()?))
    }

    fn default_value(&mut self, field: &Field) -> Result<Value, CodecError> {
        Ok(match field.base {
            FieldType::Message(index) => {
                let message_type = self.schema.message_type(index).ok_or(CodecProblem::Type)?;
                return self.message(message_type, &Json::Object(serde_json::Map::new()));
            }
            FieldType::Basic(basic) => match basic {
                Basic::Bool => Value::Bool(false),
                Basic::Int8 | Basic::Int16 | Basic::Int32 | Basic::Int64 => Value::Int(0),
                Basic::Uint8 | Basic::Uint16 | Basic::Uint32 | Basic::Uint64 => Value::Uint(0),
                Basic::Float32 => Value::Float32(0.0),
                Basic::Float64 => Value::Float64(0.0),
                Basic::String => Value::text(""),
                Basic::Wstring => Value::WideText(Vec::new()),
                Basic::Time => Value::Time(0, 0),
                Basic::Duration => Value::Duration(0, 0),
            },
        })
    }
}

fn boolean(json: &Json) -> Option<bool> {
    match json.as_u64() {
        Some(0) => Some(false),
        Some(1) => Some(true),
        Some(_) => None,
        None => json.as_bool(),
    }
}

/// Returns an integer that is `number`, a number without fraction, or a text.
fn integer<T: std::str::FromStr + TryFrom<i64>>(json: &Json, number: Option<T>) -> Option<T> {
    if number.is_some() {
        return number;
    }
    match json {
        Json::String(text) => text.trim().parse().ok(),
        json => {
            let whole = json.as_f64().filter(|value| value.fract() == 0.0 && value.abs() <= WHOLE_MAX)?;
            T::try_from(whole as i64).ok()
        }
    }
}

fn float(json: &Json) -> Option<f64> {
    match json {
        Json::Null => Some(f64::NAN),
        Json::String(text) => {
            special_text(json).or_else(|| text.trim().parse().ok().filter(|value: &f64| value.is_finite()))
        }
        json => json.as_f64(),
    }
}

fn special_text(json: &Json) -> Option<f64> {
    match json.as_str()? {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// Returns a time or duration with the names of either ROS version.
fn pair<T: TryFrom<i64>, U: TryFrom<i64>>(json: &Json) -> Option<(T, U)> {
    let number = |names: [&str; 2]| names.iter().find_map(|name| integer(json.get(name)?, json.get(name)?.as_i64()));
    let (secs, nsecs) = (number(["secs", "sec"])?, number(["nsecs", "nanosec"])?);
    (json.as_object()?.len() == 2).then_some((T::try_from(secs).ok()?, U::try_from(nsecs).ok()?))
}

/// Returns a time or duration of ROS 2 that has the names of ROS 1.
fn time_of_ros_2(message_type: &MessageType, json: &Json) -> Option<Value> {
    let is_time = message_type.name().package() == "builtin_interfaces";
    json.get("secs").filter(|_| is_time && message_type.fields().len() == 2)?;
    let (sec, nanosec): (i32, u32) = pair(json)?;
    Some(Value::Message(vec![Value::Int(sec.into()), Value::Uint(nanosec.into())]))
}
