//! The type of a topic.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use viaduct_messages::Message;

use crate::encoded::Encoded;

/// A value of a type that only its reader names.
pub(crate) type AnyMessage = Arc<dyn Any + Send + Sync>;

/// The language of a type's schema and the serialisation of its messages: the pairs of MCAP and Foxglove.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessageFormat {
    /// Schema: an encoded `google.protobuf.FileDescriptorSet`.
    Protobuf,
    /// Schema: a `.msg` definition of ROS 1 with all types that it uses.
    Ros1,
    /// Schema: a `.msg` definition of ROS 2 with all types that it uses. Messages are CDR with the encapsulation header.
    Ros2,
    /// Schema: a JSON schema. Messages are JSON texts.
    Json,
    /// No schema. The bus knows nothing about the content.
    Opaque,
}

impl MessageFormat {
    /// All formats.
    pub const ALL: [Self; 5] = [Self::Protobuf, Self::Ros1, Self::Ros2, Self::Json, Self::Opaque];

    /// Returns the name of the schema's language, as in MCAP. It is empty for opaque messages.
    #[must_use]
    pub const fn schema_encoding(self) -> &'static str {
        match self {
            Self::Protobuf => "protobuf",
            Self::Ros1 => "ros1msg",
            Self::Ros2 => "ros2msg",
            Self::Json => "jsonschema",
            Self::Opaque => "",
        }
    }

    /// Returns the name of the serialisation, as in MCAP. It is empty for opaque messages.
    #[must_use]
    pub const fn message_encoding(self) -> &'static str {
        match self {
            Self::Protobuf => "protobuf",
            Self::Ros1 => "ros1",
            Self::Ros2 => "cdr",
            Self::Json => "json",
            Self::Opaque => "",
        }
    }

    /// Returns the format with that serialisation, or `None` if there is none.
    #[must_use]
    pub fn from_message_encoding(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.message_encoding() == name)
    }
}

/// The type of a topic: its format, name and schema and, if this binary has the type, its codec.
///
/// Two types are the same if format, name and schema identifier are equal. An empty identifier fits any: protobuf types have none,
/// because a protobuf message stays readable when its schema grows.
#[derive(Clone, Debug)]
pub struct TypeInfo {
    format: MessageFormat,
    full_name: Arc<str>,
    schema: Bytes,
    schema_id: Arc<str>,
    codec: Option<Codec>,
}

/// Encodes and decodes a type of this binary.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Codec {
    pub(crate) type_id: TypeId,
    pub(crate) encode: fn(&(dyn Any + Send + Sync)) -> Encoded,
    pub(crate) decode: fn(&Encoded) -> Result<AnyMessage, Undecodable>,
    /// Replaces a value by its default, which releases its content. Returns `false` if it is not of this type.
    pub(crate) clear: fn(&mut (dyn Any + Send + Sync)) -> bool,
}

/// A sample cannot be read as a message of the requested type.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Undecodable {
    /// The bytes are not a message of the type.
    #[error("the bytes are not a message of type `{full_name}`: {cause}")]
    Malformed {
        /// The type.
        full_name: String,
        /// Error of the decoder.
        cause: prost::DecodeError,
    },
    /// The topic, found by a pattern, carries another type.
    #[error("topic `{topic}` carries `{has}`, not `{wants}`")]
    OtherType {
        /// The topic.
        topic: String,
        /// The type that the topic has.
        has: String,
        /// The requested type.
        wants: String,
    },
}

impl TypeInfo {
    /// Returns the type of messages `M`.
    #[must_use]
    pub fn of<M: Message>() -> Self {
        Self {
            format: MessageFormat::Protobuf,
            full_name: M::full_name().into(),
            schema: Bytes::from_static(M::DESCRIPTOR_SET),
            schema_id: Arc::default(),
            codec: Some(Codec {
                type_id: TypeId::of::<M>(),
                encode: encode::<M>,
                decode: decode_any::<M>,
                clear: clear::<M>,
            }),
        }
    }

    /// Creates a type that is not compiled into this binary, from its name and schema. The schema may be empty if it is unknown.
    #[must_use]
    pub fn foreign(format: MessageFormat, full_name: &str, schema: Bytes) -> Self {
        Self { format, full_name: full_name.into(), schema, schema_id: Arc::default(), codec: None }
    }

    /// Returns the type with an identifier of its schema, for example the MD5 sum of a ROS 1 type. Types with different identifiers
    /// are different types.
    #[must_use]
    pub fn with_schema_id(mut self, schema_id: &str) -> Self {
        self.schema_id = schema_id.into();
        self
    }

    /// Returns the format of schema and messages.
    #[must_use]
    pub const fn format(&self) -> MessageFormat {
        self.format
    }

    /// Returns the full name: `viaduct.its.V2xMessage`, `sensor_msgs/PointCloud2`.
    #[must_use]
    pub fn full_name(&self) -> &str {
        &self.full_name
    }

    /// Returns the schema; empty if it is unknown.
    #[must_use]
    pub const fn schema(&self) -> &Bytes {
        &self.schema
    }

    /// Returns the identifier of the schema; empty if it has none.
    #[must_use]
    pub fn schema_id(&self) -> &str {
        &self.schema_id
    }

    /// Returns the encoded `google.protobuf.FileDescriptorSet` of a protobuf type, or `None` for another format.
    #[must_use]
    pub fn descriptor_set(&self) -> Option<&Bytes> {
        (self.format == MessageFormat::Protobuf).then_some(&self.schema)
    }

    /// Returns `true` if this is the protobuf type with that name.
    #[must_use]
    pub fn is_protobuf(&self, full_name: &str) -> bool {
        self.format == MessageFormat::Protobuf && &*self.full_name == full_name
    }

    /// Returns `true` if a topic with one of the two types accepts messages of the other one.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let same_schema = self.schema_id.is_empty() || other.schema_id.is_empty() || self.schema_id == other.schema_id;
        self.format == other.format && self.full_name == other.full_name && same_schema
    }

    pub(crate) const fn codec(&self) -> Option<&Codec> {
        self.codec.as_ref()
    }
}

/// Writes the name, and for formats other than protobuf the format and the schema identifier.
impl fmt::Display for TypeInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { format, full_name, schema_id, .. } = self;
        match format {
            MessageFormat::Protobuf => f.write_str(full_name),
            MessageFormat::Opaque => write!(f, "{full_name} (opaque)"),
            _ if schema_id.is_empty() => write!(f, "{full_name} ({})", format.message_encoding()),
            _ => write!(f, "{full_name} ({} {schema_id})", format.message_encoding()),
        }
    }
}

pub(crate) fn decode<M: Message>(encoded: &Encoded) -> Result<Arc<M>, Undecodable> {
    let decoded = M::decode(encoded.reader());
    decoded.map(Arc::new).map_err(|cause| Undecodable::Malformed { full_name: M::full_name(), cause })
}

fn decode_any<M: Message>(encoded: &Encoded) -> Result<AnyMessage, Undecodable> {
    decode::<M>(encoded).map(|message| message as AnyMessage)
}

fn encode<M: Message>(message: &(dyn Any + Send + Sync)) -> Encoded {
    // A sample always keeps a value together with the codec of its type, so the downcast succeeds.
    message.downcast_ref::<M>().map(Encoded::from_message).unwrap_or_default()
}

fn clear<M: Message>(message: &mut (dyn Any + Send + Sync)) -> bool {
    let message = message.downcast_mut::<M>();
    message.map(|message| *message = M::default()).is_some()
}
