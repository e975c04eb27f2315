//! The JSON reader.

use std::{cell::RefCell, fmt, marker::PhantomData};

use prost_reflect::prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use viaduct_asn1::{JsonError, JsonProblem};
use viaduct_messages::Message;

use super::{
    labels::{labels_of, number_of},
    writer::{entry_kind, is_well_known},
};
use crate::shortened;

/// A reader of JSON texts of one type.
pub struct Reader<M> {
    schema: MessageDescriptor,
    reads: PhantomData<fn() -> M>,
}

/// Reads messages of a type by its schema.
#[derive(Clone, Debug)]
pub struct SchemaReader {
    schema: MessageDescriptor,
}

impl SchemaReader {
    /// Creates a reader for a type of an encoded `google.protobuf.FileDescriptorSet`. Returns `None` if it does not have the type.
    #[must_use]
    pub fn new(descriptor_set: &'static [u8], full_name: &str) -> Option<Self> {
        DescriptorPool::decode(descriptor_set).ok()?.get_message_by_name(full_name).map(|schema| Self { schema })
    }

    /// Reads a message. Returns it encoded.
    ///
    /// # Errors
    /// Returns an error for invalid syntax, unknown or repeated members, and values of the wrong type.
    pub fn read(&self, text: &[u8]) -> Result<Vec<u8>, JsonError> {
        dynamic(&self.schema, text).map(|message| message.encode_to_vec())
    }
}

/// Reads a message by its schema.
fn dynamic(schema: &MessageDescriptor, text: &[u8]) -> Result<DynamicMessage, JsonError> {
    let tree = tree(schema, text)?;
    let mut track = serde_path_to_error::Track::new();
    let message =
        DynamicMessage::deserialize(schema.clone(), serde_path_to_error::Deserializer::new(&tree, &mut track));
    message.map_err(|error| error_at(&track.path().to_string(), &error.to_string()))
}

impl<M: Message> Reader<M> {
    /// Creates a reader. Returns `None` if the type has no schema.
    #[must_use]
    pub fn new() -> Option<Self> {
        let schema = DescriptorPool::decode(M::DESCRIPTOR_SET).ok()?.get_message_by_name(&M::full_name())?;
        Some(Self { schema, reads: PhantomData })
    }

    /// Reads a message.
    ///
    /// # Errors
    /// Returns an error for invalid syntax, unknown or repeated members, and values of the wrong type.
    pub fn read(&self, text: &[u8]) -> Result<M, JsonError> {
        dynamic(&self.schema, text)?.transcode_to().map_err(|error| error_at("", &error.to_string()))
    }
}

/// Parses the text and replaces the labels of enumerations by their numbers.
fn tree(schema: &MessageDescriptor, text: &[u8]) -> Result<Value, JsonError> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let mut track = serde_path_to_error::Track::new();
    let failure = RefCell::new(None);
    let seed = TreeSeed { shape: Shape::of_message(schema), failure: &failure };
    let tree = seed.deserialize(serde_path_to_error::Deserializer::new(&mut reader, &mut track));
    let tree = tree.map_err(|error| {
        let path = track.path().to_string();
        match failure.take() {
            Some(problem) => JsonError { path: location(&path).to_owned(), problem },
            None => error_at(&path, &error.to_string()),
        }
    })?;
    reader.end().map_err(|error| error_at("", &error.to_string()))?;
    Ok(tree)
}

/// The type of a value, as far as the labels of enumerations inside it matter.
#[derive(Clone)]
enum Shape {
    Message(MessageDescriptor),
    /// A map, with the type of its values.
    Map(Box<Shape>),
    Enum(EnumDescriptor),
    Other,
}

impl Shape {
    fn of_message(descriptor: &MessageDescriptor) -> Self {
        if is_well_known(descriptor) { Self::Other } else { Self::Message(descriptor.clone()) }
    }

    fn of_kind(kind: &Kind) -> Self {
        match kind {
            Kind::Message(descriptor) => Self::of_message(descriptor),
            Kind::Enum(values) if values.full_name() != "google.protobuf.NullValue" => Self::Enum(values.clone()),
            _ => Self::Other,
        }
    }

    /// Returns the shape of a field's value; a list has the shape of its elements.
    fn of_field(field: &FieldDescriptor) -> Self {
        if field.is_map() {
            return Self::Map(Box::new(Self::of_kind(&entry_kind(&field.kind()))));
        }
        Self::of_kind(&field.kind())
    }

    /// Returns the shape of an object's member.
    fn member(&self, name: &str) -> Self {
        match self {
            Self::Message(descriptor) => {
                let field = descriptor.get_field_by_name(name).or_else(|| descriptor.get_field_by_json_name(name));
                field.map_or(Self::Other, |field| Self::of_field(&field))
            }
            Self::Map(values) => (**values).clone(),
            Self::Enum(_) | Self::Other => Self::Other,
        }
    }
}

/// Parses one value of this shape.
struct TreeSeed<'f> {
    shape: Shape,
    /// Problem that stopped the parser, if it has a structured form.
    failure: &'f RefCell<Option<JsonProblem>>,
}

impl<'de> DeserializeSeed<'de> for TreeSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for TreeSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        let Shape::Enum(values) = &self.shape else {
            return Ok(text.into());
        };
        if let Some(number) = number_of(values, text) {
            return Ok(number.into());
        }
        let expected = format!("one of {}", labels_of(values));
        let problem = JsonProblem::Mismatch { expected, got: format!("{:?}", shortened(text)) };
        let error = E::custom(&problem);
        self.failure.replace(Some(problem));
        Err(error)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) =
            access.next_element_seed(TreeSeed { shape: self.shape.clone(), failure: self.failure })?
        {
            elements.push(element);
        }
        Ok(elements.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = access.next_key::<String>()? {
            let value = access.next_value_seed(TreeSeed { shape: self.shape.member(&name), failure: self.failure })?;
            if members.contains_key(&name) {
                return Err(A::Error::custom(format_args!("the member {:?} occurs twice", shortened(&name))));
            }
            members.insert(name, value);
        }
        Ok(members.into())
    }
}

/// Returns the path as errors show it: empty for the root.
fn location(path: &str) -> &str {
    if matches!(path, "." | "?") { "" } else { path }
}

/// Returns the error of a parser that stopped at `path`.
fn error_at(path: &str, text: &str) -> JsonError {
    let path = location(path);
    match unknown_member(text) {
        Some(name) => {
            let error = JsonError { path: shortened(name), problem: JsonProblem::Unknown };
            if path.is_empty() { error } else { error.inside(path) }
        }
        None => JsonError { path: shortened(path), problem: JsonProblem::Syntax(shortened(text)) },
    }
}

/// Returns the member that the type does not have; the parser's path ends above it.
fn unknown_member(text: &str) -> Option<&str> {
    text.strip_prefix("unrecognized field name '")?.rsplit_once('\'').map(|(name, _)| name)
}
