//! The type of a topic.

use std::any::{Any, TypeId};
use std::sync::Arc;

use bytes::Bytes;
use viaduct_messages::Message;

use crate::encoded::Encoded;

/// A value of a type that only its reader names.
pub(crate) type AnyMessage = Arc<dyn Any + Send + Sync>;

/// The type of a topic: its name and schema and, if this binary has the type, its codec.
#[derive(Clone, Debug)]
pub struct TypeInfo {
    full_name: Arc<str>,
    descriptor_set: Bytes,
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
            full_name: M::full_name().into(),
            descriptor_set: Bytes::from_static(M::DESCRIPTOR_SET),
            codec: Some(Codec {
                type_id: TypeId::of::<M>(),
                encode: encode::<M>,
                decode: decode_any::<M>,
                clear: clear::<M>,
            }),
        }
    }

    /// Creates a type that is not compiled into this binary, from its name and schema.
    ///
    /// `descriptor_set` is an encoded `google.protobuf.FileDescriptorSet`; it may be empty if the schema is unknown.
    #[must_use]
    pub fn foreign(full_name: &str, descriptor_set: Bytes) -> Self {
        Self { full_name: full_name.into(), descriptor_set, codec: None }
    }

    /// Returns the full protobuf name: `viaduct.its.V2xMessage`.
    #[must_use]
    pub fn full_name(&self) -> &str {
        &self.full_name
    }

    /// Returns the schema: an encoded `google.protobuf.FileDescriptorSet`.
    #[must_use]
    pub const fn descriptor_set(&self) -> &Bytes {
        &self.descriptor_set
    }

    pub(crate) const fn codec(&self) -> Option<&Codec> {
        self.codec.as_ref()
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
