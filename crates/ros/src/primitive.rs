//! Messages of std_msgs as plain text, as mqtt_client sends them to MQTT clients without ROS (`primitive: true`).
//!
//! | type | written | read |
//! |---|---|---|
//! | Bool | `true`, `false` | these in any case, and 1, 0 |
//! | Char, Int8 to Int64, UInt8 to UInt64 | digits | digits with sign |
//! | Float32, Float64 | six decimals; `nan`, `inf`, `-inf` | a decimal number; `nan`, `inf`, `infinity` in any case |
//! | String | the text | the payload |
//! | UInt8MultiArray | the octets | the payload, with an empty layout |
//!
//! Differences from mqtt_client: a number outside the range of its type is refused, where mqtt_client reduces it modulo the range; a
//! hexadecimal number is a text.

use bytes::Bytes;

use crate::codec::{self, CodecError, CodecProblem, Encoding};
use crate::definitions;
use crate::msg::{Dialect, Schema, TypeName};
use crate::value::Value;

/// A type with a plain text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Primitive {
    /// `std_msgs/Bool`.
    Bool,
    /// `std_msgs/Char`.
    Char,
    /// `std_msgs/Int8`.
    Int8,
    /// `std_msgs/Int16`.
    Int16,
    /// `std_msgs/Int32`.
    Int32,
    /// `std_msgs/Int64`.
    Int64,
    /// `std_msgs/UInt8`.
    Uint8,
    /// `std_msgs/UInt16`.
    Uint16,
    /// `std_msgs/UInt32`.
    Uint32,
    /// `std_msgs/UInt64`.
    Uint64,
    /// `std_msgs/Float32`.
    Float32,
    /// `std_msgs/Float64`.
    Float64,
    /// `std_msgs/String`.
    String,
    /// `std_msgs/UInt8MultiArray`.
    Octets,
}

/// Each type with its name in std_msgs.
const NAMES: [(Primitive, &str); 14] = [
    (Primitive::Bool, "Bool"),
    (Primitive::Char, "Char"),
    (Primitive::Int8, "Int8"),
    (Primitive::Int16, "Int16"),
    (Primitive::Int32, "Int32"),
    (Primitive::Int64, "Int64"),
    (Primitive::Uint8, "UInt8"),
    (Primitive::Uint16, "UInt16"),
    (Primitive::Uint32, "UInt32"),
    (Primitive::Uint64, "UInt64"),
    (Primitive::Float32, "Float32"),
    (Primitive::Float64, "Float64"),
    (Primitive::String, "String"),
    (Primitive::Octets, "UInt8MultiArray"),
];

impl Primitive {
    /// Returns the type with the given name, or `None` if it has no plain text.
    #[must_use]
    pub fn named(name: &TypeName) -> Option<Self> {
        let (primitive, _) = NAMES.iter().find(|(_, known)| name.package() == "std_msgs" && name.name() == *known)?;
        Some(*primitive)
    }

    /// Returns the type that mqtt_client publishes for a payload if no type is configured: Bool for `true` and `false` in any
    /// case, Int32, Float32, or String for any other payload.
    #[must_use]
    pub fn probe(payload: &[u8]) -> Self {
        let Ok(text) = std::str::from_utf8(payload) else { return Self::String };
        if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") {
            Self::Bool
        } else if integer::<i32>(text).is_ok() {
            Self::Int32
        } else if float(text).is_ok_and(|value| fits_float32(text, value)) {
            Self::Float32
        } else {
            Self::String
        }
    }

    /// Returns the name of the type.
    #[must_use]
    pub fn type_name(self) -> String {
        let name = NAMES.iter().find(|(known, _)| *known == self).map_or("", |(_, name)| name);
        format!("std_msgs/{name}")
    }

    /// Returns the definition of the type.
    #[must_use]
    pub fn definition(self, dialect: Dialect) -> Option<&'static definitions::Definition> {
        definitions::find(&TypeName::parse(&self.type_name())?, dialect)
    }

    /// Returns the plain text of a message of this type.
    ///
    /// # Errors
    /// The octets are not a message of this type.
    pub fn text(self, encoding: Encoding, message: &Bytes) -> Result<Bytes, CodecError> {
        let value = codec::decode(self.schema(encoding)?, encoding, message)?;
        let Value::Message(mut fields) = value else { return Err(CodecProblem::Type.into()) };
        Ok(match fields.pop() {
            Some(Value::Bool(value)) => Bytes::from_static(if value { b"true" } else { b"false" }),
            Some(Value::Int(value)) => value.to_string().into(),
            Some(Value::Uint(value)) => value.to_string().into(),
            Some(Value::Float32(value)) => decimals(value.into()).into(),
            Some(Value::Float64(value)) => decimals(value).into(),
            Some(Value::Text(octets) | Value::Octets(octets)) => octets,
            _ => return Err(CodecProblem::Type.into()),
        })
    }

    /// Returns the message of this type with the given plain text.
    ///
    /// # Errors
    /// The payload is not a text of this type, or a number outside its range.
    pub fn message(self, encoding: Encoding, payload: &Bytes) -> Result<Bytes, CodecError> {
        let data = self.data(payload).map_err(|problem| CodecError::from(problem).within("data"))?;
        let layout = Value::Message(vec![Value::Array(Vec::new()), Value::Uint(0)]);
        let fields = if self == Self::Octets { vec![layout, data] } else { vec![data] };
        codec::encode(self.schema(encoding)?, encoding, &Value::Message(fields))
    }

    fn schema(self, encoding: Encoding) -> Result<&'static Schema, CodecError> {
        let dialect = match encoding {
            Encoding::Ros1 => Dialect::Ros1,
            Encoding::Cdr => Dialect::Ros2,
        };
        self.definition(dialect).map(definitions::Definition::schema).ok_or_else(|| CodecProblem::Type.into())
    }

    /// Returns the field `data` of a message with the given text.
    fn data(self, payload: &Bytes) -> Result<Value, CodecProblem> {
        match self {
            Self::String => return Ok(Value::Text(payload.clone())),
            Self::Octets => return Ok(Value::Octets(payload.clone())),
            _ => {}
        }
        let text = std::str::from_utf8(payload).map_err(|_| CodecProblem::Type)?;
        match self {
            Self::Bool => boolean(text).map(Value::Bool),
            Self::Float64 => float(text).map(Value::Float64),
            Self::Float32 => {
                let value = float(text)?;
                let is_finite = !value.is_finite() || (value as f32).is_finite();
                if is_finite { Ok(Value::Float32(value as f32)) } else { Err(CodecProblem::Range) }
            }
            Self::Int8 | Self::Int16 | Self::Int32 | Self::Int64 => integer(text).map(Value::Int),
            _ => integer(text).map(Value::Uint),
        }
    }
}

fn boolean(text: &str) -> Result<bool, CodecProblem> {
    let is = |words: [&str; 2]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is(["true", "1"]) {
        Ok(true)
    } else if is(["false", "0"]) {
        Ok(false)
    } else {
        Err(CodecProblem::Type)
    }
}

/// Parses an integer. Space before it is ignored, as in C.
fn integer<T: std::str::FromStr<Err = std::num::ParseIntError>>(text: &str) -> Result<T, CodecProblem> {
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
    text.trim_ascii_start().parse().map_err(|error: std::num::ParseIntError| match error.kind() {
        NegOverflow | PosOverflow => CodecProblem::Range,
        _ => CodecProblem::Type,
    })
}

fn float(text: &str) -> Result<f64, CodecProblem> {
    text.trim_ascii_start().parse().map_err(|_| CodecProblem::Type)
}

/// Returns `true` if a number with the given text is a `float32`: neither too large nor, except 0, too small for one.
fn fits_float32(text: &str, value: f64) -> bool {
    let mantissa = text.split(['e', 'E']).next().unwrap_or("");
    // Zero, an infinity, or no number.
    let is_exact = !mantissa.contains(|character| matches!(character, '1'..='9'));
    is_exact || (value as f32).is_normal()
}

/// Returns a number as the `%f` of C writes it.
fn decimals(value: f64) -> String {
    match value {
        value if value.is_nan() => if value.is_sign_negative() { "-nan" } else { "nan" }.to_owned(),
        f64::INFINITY => "inf".to_owned(),
        f64::NEG_INFINITY => "-inf".to_owned(),
        value => format!("{value:.6}"),
    }
}
