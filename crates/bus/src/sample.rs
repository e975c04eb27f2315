//! One message on its way to its readers.

use std::any::TypeId;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use viaduct_messages::Message;
use viaduct_units::Mono;

use crate::encoded::Encoded;
use crate::meta::Meta;
use crate::type_info::{AnyMessage, TypeInfo, Undecodable, decode};

/// What all readers of one message share: its body as a value, as octets, or both.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) topic: Arc<str>,
    pub(crate) type_info: Arc<TypeInfo>,
    pub(crate) meta: Meta,
    /// When it is worth being delivered no more.
    expires: Option<Mono>,
    /// The value; decoded by the first reader that wants it, where the publisher gave octets.
    value: OnceLock<Result<AnyMessage, Undecodable>>,
    /// The octets; encoded by the first reader that wants them, where the publisher gave a value.
    octets: OnceLock<Encoded>,
}

impl Body {
    pub(crate) fn typed(
        topic: Arc<str>,
        type_info: Arc<TypeInfo>,
        meta: Meta,
        expires: Option<Mono>,
        value: AnyMessage,
    ) -> Self {
        Self { topic, type_info, meta, expires, value: OnceLock::from(Ok(value)), octets: OnceLock::new() }
    }

    pub(crate) fn encoded(
        topic: Arc<str>,
        type_info: Arc<TypeInfo>,
        meta: Meta,
        expires: Option<Mono>,
        octets: Encoded,
    ) -> Self {
        Self { topic, type_info, meta, expires, value: OnceLock::new(), octets: OnceLock::from(octets) }
    }

    /// Whether its lifespan is over.
    pub(crate) fn is_expired(&self, now: Mono) -> bool {
        self.expires.is_some_and(|end| now > end)
    }

    /// The value as `M`.
    fn value<M: Message>(&self) -> Result<Arc<M>, Undecodable> {
        self.check_type::<M>()?;
        let value = self.value.get_or_init(|| self.decode::<M>()).clone()?;
        match value.downcast::<M>() {
            Ok(value) => Ok(value),
            // Two Rust types may carry one protobuf name (a plug-in's own build of it): octets are their common ground.
            Err(_) => decode::<M>(self.octets()),
        }
    }

    fn check_type<M: Message>(&self) -> Result<(), Undecodable> {
        let same_rust_type = self.type_info.codec().is_some_and(|codec| codec.type_id == TypeId::of::<M>());
        if same_rust_type || self.type_info.full_name() == M::full_name() {
            return Ok(());
        }
        let (topic, has) = (self.topic.to_string(), self.type_info.full_name().to_owned());
        Err(Undecodable::OtherType { topic, has, wants: M::full_name() })
    }

    fn decode<M: Message>(&self) -> Result<AnyMessage, Undecodable> {
        let octets = self.octets();
        match self.type_info.codec() {
            Some(codec) => (codec.decode)(octets),
            None => decode::<M>(octets).map(|value| value as AnyMessage),
        }
    }

    fn octets(&self) -> &Encoded {
        self.octets.get_or_init(|| match (self.value.get(), self.type_info.codec()) {
            (Some(Ok(value)), Some(codec)) => (codec.encode)(&**value),
            // A body starts with a value of a known type or with octets, so this arm has nothing to encode.
            _ => Encoded::default(),
        })
    }
}

/// A message of type `M` with its [`Meta`]. Dereferences to the message; cloning shares it.
#[derive(Debug)]
pub struct Sample<M> {
    value: Arc<M>,
    body: Arc<Body>,
}

impl<M> Clone for Sample<M> {
    fn clone(&self) -> Self {
        Self { value: Arc::clone(&self.value), body: Arc::clone(&self.body) }
    }
}

impl<M: Message> Sample<M> {
    /// Reads a body as `M`; decodes it on this thread where nobody did before.
    pub(crate) fn read(body: Arc<Body>) -> Result<Self, Undecodable> {
        Ok(Self { value: body.value::<M>()?, body })
    }
}

impl<M> Sample<M> {
    /// Origin, stamps and sequence.
    #[must_use]
    pub fn meta(&self) -> &Meta {
        &self.body.meta
    }

    /// The topic on which it was published.
    #[must_use]
    pub fn topic(&self) -> &str {
        &self.body.topic
    }

    /// The same message for a reader that does not know its type.
    #[must_use]
    pub fn untyped(&self) -> UntypedSample {
        UntypedSample { body: Arc::clone(&self.body) }
    }
}

impl<M> Deref for Sample<M> {
    type Target = M;

    fn deref(&self) -> &M {
        &self.value
    }
}

/// A message whose type the reader knows by name only.
#[derive(Clone, Debug)]
pub struct UntypedSample {
    body: Arc<Body>,
}

impl UntypedSample {
    pub(crate) fn new(body: Arc<Body>) -> Self {
        Self { body }
    }

    /// Origin, stamps and sequence.
    #[must_use]
    pub fn meta(&self) -> &Meta {
        &self.body.meta
    }

    /// The topic on which it was published.
    #[must_use]
    pub fn topic(&self) -> &str {
        &self.body.topic
    }

    /// The type that the publisher named.
    #[must_use]
    pub fn type_info(&self) -> &Arc<TypeInfo> {
        &self.body.type_info
    }

    /// The octets; encoded on this thread where nobody did before.
    #[must_use]
    pub fn encoded(&self) -> &Encoded {
        self.body.octets()
    }

    /// The message as `M`.
    ///
    /// # Errors
    /// Octets that are not a message of that type.
    pub fn typed<M: Message>(&self) -> Result<Sample<M>, Undecodable> {
        Sample::read(Arc::clone(&self.body))
    }
}
