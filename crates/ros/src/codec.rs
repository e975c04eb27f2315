//! Codecs for messages of a type that is known only when the program runs: ROS 1, and CDR as in ROS 2.
//!
//! | | ROS 1 | CDR (OMG DDSI-RTPS 2.3, 10.2; OMG XTypes 1.3, 7.4, version 1) |
//! |---|---|---|
//! | before the message | | encapsulation header of 4 octets |
//! | alignment of a number | none | its length, counted from the end of the header |
//! | `string` | length, octets | length with NUL, octets, NUL |
//! | `wstring` | | number of characters, each with 16 bits |
//! | type without fields | nothing | one octet |
//! | order of octets | little-endian | as the header says; written in little-endian order |

use bytes::{BufMut as _, Bytes, BytesMut};

use crate::limits::EMPTY_ELEMENTS_MAX;
use crate::msg::{Basic, Count, Field, FieldType, MessageType, Schema};
use crate::value::Value;

/// A serialisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// As in ROS 1.
    Ros1,
    /// CDR with encapsulation header, as in ROS 2.
    Cdr,
}

/// The encapsulation headers: big-endian and little-endian order. The last two octets are options.
const BIG_ENDIAN: [u8; 2] = [0, 0];
const LITTLE_ENDIAN: [u8; 2] = [0, 1];
const HEADER_OCTETS: usize = 4;
/// Values of a message for each of its octets: a number of one octet within three messages.
const VALUES_PER_OCTET: usize = 4;
/// Smallest array of octets that is a part of its own.
const CHUNK_OCTETS_MIN: usize = 4096;
/// Octets of padding that may follow a message of DDS.
const PADDING_MAX: usize = 3;

/// The reason why octets are not a message of a type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", if path.is_empty() { String::new() } else { format!("`{path}`: ") })]
pub struct CodecError {
    /// The field, with those that contain it: `header.frame_id`.
    pub path: String,
    /// The problem.
    pub problem: CodecProblem,
}

/// The problem of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodecProblem {
    /// The message ends within the field.
    #[error("the message is too short")]
    TooShort,
    /// Octets follow the last field.
    #[error("{0} octets follow the last field")]
    TooLong(usize),
    /// The message has no known encapsulation header.
    #[error("the encapsulation header is not that of CDR")]
    Header,
    /// A `string` does not end with NUL.
    #[error("the text does not end with NUL")]
    Text,
    /// A `bool` is neither 0 nor 1.
    #[error("the octet is neither 0 nor 1")]
    Bool,
    /// The message has more values than a message of its length can have.
    #[error("the message has too many values")]
    TooManyValues,
    /// An array of fixed length has another length.
    #[error("the array does not have {0} elements")]
    Length(u32),
    /// An array or a text is longer than its type permits.
    #[error("there are more than {0} elements")]
    TooMany(u32),
    /// The value does not have the type of the field.
    #[error("the value has another type")]
    Type,
    /// The type has no field of that name.
    #[error("the type has no such field")]
    Unknown,
    /// The number is outside the range of the type.
    #[error("the number is outside the range of the type")]
    Range,
}

/// Decodes a message. Large arrays of octets refer to the memory of the message.
///
/// # Errors
/// The first field that does not fit.
pub fn decode(schema: &Schema, encoding: Encoding, message: &Bytes) -> Result<Value, CodecError> {
    let Some(root) = schema.root() else { return Ok(Value::Message(Vec::new())) };
    let values_left = message.len().saturating_mul(VALUES_PER_OCTET).saturating_add(EMPTY_ELEMENTS_MAX as usize);
    let mut reader = Reader { schema, message, encoding, at: 0, is_big: false, start: 0, values_left };
    if encoding == Encoding::Cdr {
        reader.header()?;
    }
    let value = reader.message_of(root)?;
    let left = message.len().saturating_sub(reader.at);
    let padding = if encoding == Encoding::Cdr { PADDING_MAX } else { 0 };
    if left > padding { Err(CodecProblem::TooLong(left).at_root()) } else { Ok(value) }
}

/// Encodes a message.
///
/// # Errors
/// The first value that does not have the type of its field.
pub fn encode(schema: &Schema, encoding: Encoding, value: &Value) -> Result<Bytes, CodecError> {
    let mut chunks = encode_chunks(schema, encoding, value)?;
    match &mut chunks[..] {
        [whole] => Ok(std::mem::take(whole)),
        parts => Ok(parts.concat().into()),
    }
}

/// Encodes a message in parts. Large arrays of octets are parts that refer to the memory of the value.
///
/// # Errors
/// As [`encode`].
pub fn encode_chunks(schema: &Schema, encoding: Encoding, value: &Value) -> Result<Vec<Bytes>, CodecError> {
    let mut writer = Writer { schema, encoding, out: BytesMut::new(), start: 0, chunks: Vec::new(), before: 0 };
    if encoding == Encoding::Cdr {
        writer.out.put_slice(&LITTLE_ENDIAN);
        writer.out.put_slice(&[0, 0]);
        writer.start = HEADER_OCTETS;
    }
    if let Some(root) = schema.root() {
        writer.message_of(root, value)?;
    }
    writer.chunks.push(writer.out.freeze());
    Ok(writer.chunks)
}

impl CodecProblem {
    const fn at_root(self) -> CodecError {
        CodecError { path: String::new(), problem: self }
    }
}

impl From<CodecProblem> for CodecError {
    fn from(problem: CodecProblem) -> Self {
        problem.at_root()
    }
}

impl CodecError {
    /// Returns the error with the name of the field that contains it.
    #[must_use]
    pub(crate) fn within(mut self, name: &str) -> Self {
        self.path = if self.path.is_empty() { name.to_owned() } else { format!("{name}.{}", self.path) };
        self
    }
}

/// Reads the fields of a message.
struct Reader<'a> {
    schema: &'a Schema,
    message: &'a Bytes,
    encoding: Encoding,
    /// Octets read.
    at: usize,
    is_big: bool,
    /// Position from which the alignment counts.
    start: usize,
    /// Number of further values, so that values without octets cannot exhaust the memory.
    values_left: usize,
}

impl<'a> Reader<'a> {
    fn header(&mut self) -> Result<(), CodecError> {
        let header = self.take(HEADER_OCTETS)?;
        self.is_big = match header.first_chunk() {
            Some(&BIG_ENDIAN) => true,
            Some(&LITTLE_ENDIAN) => false,
            _ => return Err(CodecProblem::Header.into()),
        };
        self.start = self.at;
        Ok(())
    }

    fn message_of(&mut self, message_type: &MessageType) -> Result<Value, CodecError> {
        if message_type.fields().is_empty() && self.encoding == Encoding::Cdr {
            self.take(1)?;
        }
        let mut values = Vec::with_capacity(message_type.fields().len());
        for field in message_type.fields() {
            values.push(self.field(field).map_err(|error| error.within(&field.name))?);
        }
        Ok(Value::Message(values))
    }

    fn field(&mut self, field: &Field) -> Result<Value, CodecError> {
        let count = match field.count {
            Count::One => return self.value(field),
            Count::Fixed(count) => count,
            Count::Any => self.length()?,
            Count::AtMost(most) => {
                let count = self.length()?;
                if count > most {
                    return Err(CodecProblem::TooMany(most).into());
                }
                count
            }
        };
        if field.base == FieldType::Basic(Basic::Uint8) {
            return Ok(Value::Octets(self.octets(count)?));
        }
        // Each element has at least one octet, except of a type without fields.
        let left = self.message.len().saturating_sub(self.at);
        if count as usize > left.max(EMPTY_ELEMENTS_MAX as usize) {
            return Err(CodecProblem::TooShort.into());
        }
        let mut values = Vec::new();
        for _ in 0..count {
            values.push(self.value(field)?);
        }
        Ok(Value::Array(values))
    }

    fn value(&mut self, field: &Field) -> Result<Value, CodecError> {
        self.values_left = self.values_left.checked_sub(1).ok_or(CodecProblem::TooManyValues.at_root())?;
        match field.base {
            FieldType::Basic(Basic::String) => self.text(field.string_limit),
            FieldType::Basic(Basic::Wstring) => self.wide_text(field.string_limit),
            FieldType::Basic(basic) => self.basic(basic),
            FieldType::Message(index) => match self.schema.message_type(index) {
                Some(message_type) => self.message_of(message_type),
                None => Err(CodecProblem::Type.into()),
            },
        }
    }

    fn text(&mut self, limit: Option<u32>) -> Result<Value, CodecError> {
        let length = self.length()?;
        let mut text = self.octets(length)?;
        if self.encoding == Encoding::Cdr {
            // Some writers send a length of 0 for an empty text.
            if text.last().is_some_and(|last| *last != 0) {
                return Err(CodecProblem::Text.into());
            }
            text.truncate(text.len().saturating_sub(1));
        }
        check_limit(text.len(), limit)?;
        Ok(Value::Text(text))
    }

    fn wide_text(&mut self, limit: Option<u32>) -> Result<Value, CodecError> {
        let count = self.length()?;
        check_limit(count as usize, limit)?;
        let octets = self.take(count as usize * 2)?;
        let is_big = self.is_big;
        let character = |pair: &[u8]| match (pair.first_chunk(), is_big) {
            (Some(pair), true) => u16::from_be_bytes(*pair),
            (Some(pair), false) => u16::from_le_bytes(*pair),
            (None, _) => 0,
        };
        Ok(Value::WideText(octets.chunks_exact(2).map(character).collect()))
    }

    fn basic(&mut self, basic: Basic) -> Result<Value, CodecError> {
        Ok(match basic {
            Basic::Bool => match self.number::<1>()? {
                [0] => Value::Bool(false),
                [1] => Value::Bool(true),
                _ => return Err(CodecProblem::Bool.into()),
            },
            Basic::Int8 => Value::Int(i8::from_le_bytes(self.number()?).into()),
            Basic::Int16 => Value::Int(i16::from_le_bytes(self.number()?).into()),
            Basic::Int32 => Value::Int(i32::from_le_bytes(self.number()?).into()),
            Basic::Int64 => Value::Int(i64::from_le_bytes(self.number()?)),
            Basic::Uint8 => Value::Uint(u8::from_le_bytes(self.number()?).into()),
            Basic::Uint16 => Value::Uint(u16::from_le_bytes(self.number()?).into()),
            Basic::Uint32 => Value::Uint(u32::from_le_bytes(self.number()?).into()),
            Basic::Uint64 => Value::Uint(u64::from_le_bytes(self.number()?)),
            Basic::Float32 => Value::Float32(f32::from_le_bytes(self.number()?)),
            Basic::Float64 => Value::Float64(f64::from_le_bytes(self.number()?)),
            Basic::Time => Value::Time(u32::from_le_bytes(self.number()?), u32::from_le_bytes(self.number()?)),
            Basic::Duration => Value::Duration(i32::from_le_bytes(self.number()?), i32::from_le_bytes(self.number()?)),
            Basic::String | Basic::Wstring => return Err(CodecProblem::Type.into()),
        })
    }

    fn length(&mut self) -> Result<u32, CodecError> {
        Ok(u32::from_le_bytes(self.number()?))
    }

    /// Returns the octets of a number in little-endian order.
    fn number<const N: usize>(&mut self) -> Result<[u8; N], CodecError> {
        if self.encoding == Encoding::Cdr {
            let past = self.at.saturating_sub(self.start) % N;
            self.take((N - past) % N)?;
        }
        let mut number = *self.take(N)?.first_chunk().ok_or(CodecProblem::TooShort.at_root())?;
        if self.is_big {
            number.reverse();
        }
        Ok(number)
    }

    fn octets(&mut self, count: u32) -> Result<Bytes, CodecError> {
        let from = self.at;
        self.take(count as usize)?;
        Ok(self.message.slice(from..self.at))
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], CodecError> {
        let end = self.at.checked_add(count).ok_or(CodecProblem::TooShort.at_root())?;
        let taken = self.message.get(self.at..end).ok_or(CodecProblem::TooShort.at_root())?;
        self.at = end;
        Ok(taken)
    }
}

fn check_limit(length: usize, limit: Option<u32>) -> Result<(), CodecError> {
    match limit {
        Some(limit) if length > limit as usize => Err(CodecProblem::TooMany(limit).into()),
        _ => Ok(()),
    }
}

/// Writes the fields of a message.
struct Writer<'a> {
    schema: &'a Schema,
    encoding: Encoding,
    /// The last part.
    out: BytesMut,
    /// Position from which the alignment counts.
    start: usize,
    /// Parts before the last one, and their octets.
    chunks: Vec<Bytes>,
    before: usize,
}

impl Writer<'_> {
    fn message_of(&mut self, message_type: &MessageType, value: &Value) -> Result<(), CodecError> {
        let Value::Message(values) = value else { return Err(CodecProblem::Type.into()) };
        if values.len() != message_type.fields().len() {
            return Err(CodecProblem::Type.into());
        }
        if values.is_empty() && self.encoding == Encoding::Cdr {
            self.out.put_u8(0);
        }
        for (field, value) in message_type.fields().iter().zip(values) {
            self.field(field, value).map_err(|error| error.within(&field.name))?;
        }
        Ok(())
    }

    fn field(&mut self, field: &Field, value: &Value) -> Result<(), CodecError> {
        let is_array = field.count != Count::One;
        match value {
            Value::Octets(octets) if is_array && field.base == FieldType::Basic(Basic::Uint8) => {
                self.count(field.count, octets.len())?;
                self.octets(octets);
                Ok(())
            }
            Value::Array(values) if is_array => {
                self.count(field.count, values.len())?;
                values.iter().try_for_each(|value| self.value(field, value))
            }
            value if !is_array => self.value(field, value),
            _ => Err(CodecProblem::Type.into()),
        }
    }

    /// Writes octets, as a part of their own if there are many.
    fn octets(&mut self, octets: &Bytes) {
        if octets.len() < CHUNK_OCTETS_MIN {
            return self.out.put_slice(octets);
        }
        let part = self.out.split().freeze();
        self.before += part.len() + octets.len();
        self.chunks.extend([part, octets.clone()]);
    }

    /// Writes the length of an array, if its type does not have one.
    fn count(&mut self, count: Count, length: usize) -> Result<(), CodecError> {
        match count {
            Count::Fixed(fixed) if fixed as usize == length => Ok(()),
            Count::Fixed(fixed) => Err(CodecProblem::Length(fixed).into()),
            Count::AtMost(most) if length > most as usize => Err(CodecProblem::TooMany(most).into()),
            Count::One | Count::Any | Count::AtMost(_) => self.length(length),
        }
    }

    fn length(&mut self, length: usize) -> Result<(), CodecError> {
        let length = u32::try_from(length).map_err(|_| CodecProblem::TooMany(u32::MAX).at_root())?;
        self.number(length.to_le_bytes());
        Ok(())
    }

    fn value(&mut self, field: &Field, value: &Value) -> Result<(), CodecError> {
        match (field.base, value) {
            (FieldType::Message(index), value) => match self.schema.message_type(index) {
                Some(message_type) => self.message_of(message_type, value),
                None => Err(CodecProblem::Type.into()),
            },
            (FieldType::Basic(Basic::String), Value::Text(text)) => {
                check_limit(text.len(), field.string_limit)?;
                let is_cdr = self.encoding == Encoding::Cdr;
                self.length(text.len() + usize::from(is_cdr))?;
                self.out.put_slice(text);
                if is_cdr {
                    self.out.put_u8(0);
                }
                Ok(())
            }
            (FieldType::Basic(Basic::Wstring), Value::WideText(text)) => {
                check_limit(text.len(), field.string_limit)?;
                self.length(text.len())?;
                text.iter().for_each(|character| self.out.put_u16_le(*character));
                Ok(())
            }
            (FieldType::Basic(basic), value) => self.basic(basic, value),
        }
    }

    fn basic(&mut self, basic: Basic, value: &Value) -> Result<(), CodecError> {
        let range = |_| CodecProblem::Range.at_root();
        match (basic, value) {
            (Basic::Bool, Value::Bool(value)) => self.number([u8::from(*value)]),
            (Basic::Int8, Value::Int(value)) => self.number(i8::try_from(*value).map_err(range)?.to_le_bytes()),
            (Basic::Int16, Value::Int(value)) => self.number(i16::try_from(*value).map_err(range)?.to_le_bytes()),
            (Basic::Int32, Value::Int(value)) => self.number(i32::try_from(*value).map_err(range)?.to_le_bytes()),
            (Basic::Int64, Value::Int(value)) => self.number(value.to_le_bytes()),
            (Basic::Uint8, Value::Uint(value)) => self.number(u8::try_from(*value).map_err(range)?.to_le_bytes()),
            (Basic::Uint16, Value::Uint(value)) => self.number(u16::try_from(*value).map_err(range)?.to_le_bytes()),
            (Basic::Uint32, Value::Uint(value)) => self.number(u32::try_from(*value).map_err(range)?.to_le_bytes()),
            (Basic::Uint64, Value::Uint(value)) => self.number(value.to_le_bytes()),
            (Basic::Float32, Value::Float32(value)) => self.number(value.to_le_bytes()),
            (Basic::Float64, Value::Float64(value)) => self.number(value.to_le_bytes()),
            (Basic::Time, Value::Time(seconds, nanoseconds)) => {
                self.number(seconds.to_le_bytes());
                self.number(nanoseconds.to_le_bytes());
            }
            (Basic::Duration, Value::Duration(seconds, nanoseconds)) => {
                self.number(seconds.to_le_bytes());
                self.number(nanoseconds.to_le_bytes());
            }
            _ => return Err(CodecProblem::Type.into()),
        }
        Ok(())
    }

    fn number<const N: usize>(&mut self, octets: [u8; N]) {
        if self.encoding == Encoding::Cdr {
            let past = (self.before + self.out.len() - self.start) % N;
            self.out.put_bytes(0, (N - past) % N);
        }
        self.out.put_slice(&octets);
    }
}
