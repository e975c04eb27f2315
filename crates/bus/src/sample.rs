//! One message on its way to its readers.

use std::any::TypeId;
use std::ops::Deref;
use std::sync::{Arc, OnceLock, Weak};

use viaduct_messages::Message;
use viaduct_units::Mono;

use crate::encoded::Encoded;
use crate::meta::{HopStamp, Meta};
use crate::prefetch::PrefetchSet;
use crate::queue::Queue;
use crate::type_info::{AnyMessage, TypeInfo, Undecodable, decode};

/// What all readers of one message share: its body as a value, as bytes, or both. What a message touches until it is read
/// comes first.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Body {
    /// What the publisher gave.
    payload: Payload,
    pub(crate) type_info: Arc<TypeInfo>,
    /// When it is worth being delivered no more.
    expires: Option<Mono>,
    pub(crate) meta: Meta,
    /// The value; decoded by the first reader that wants it, where the publisher gave bytes.
    decoded: OnceLock<Result<AnyMessage, Undecodable>>,
    /// The bytes; encoded by the first reader that wants them, where the publisher gave a value.
    encoded: OnceLock<Encoded>,
    /// Where its memory goes when nobody reads it any more.
    pool: Weak<BodyPool>,
    pub(crate) topic: Arc<str>,
}

#[derive(Debug)]
enum Payload {
    Value(AnyMessage),
    Encoded(Encoded),
}

/// What a publisher says of a message beside the message itself.
#[derive(Clone, Copy)]
pub(crate) struct SampleHeader<'a> {
    pub(crate) topic: &'a Arc<str>,
    pub(crate) type_info: &'a Arc<TypeInfo>,
    pub(crate) cause: Cause<'a>,
    pub(crate) stamp: HopStamp,
    pub(crate) published: Mono,
    pub(crate) sequence: u64,
    /// When it is worth being delivered no more.
    pub(crate) expires: Option<Mono>,
}

/// Where a message comes from.
#[derive(Clone, Copy)]
pub(crate) enum Cause<'a> {
    /// It began here and now.
    Here,
    /// It was made from another one.
    Message(&'a Meta),
}

impl Body {
    fn new(header: SampleHeader<'_>, payload: Payload, pool: Weak<BodyPool>) -> Self {
        let (topic, type_info) = (Arc::clone(header.topic), Arc::clone(header.type_info));
        let (decoded, encoded) = Default::default();
        let meta = Meta::from_origin(header.stamp.at);
        let mut body = Self { topic, type_info, meta, expires: None, payload, decoded, encoded, pool };
        body.reset(header);
        body
    }

    /// The place of a value of type `M`, where there is one and nobody else holds it.
    #[inline]
    fn value_mut<M: Message>(&mut self) -> Option<&mut M> {
        match &mut self.payload {
            Payload::Value(value) => Arc::get_mut(value)?.downcast_mut(),
            Payload::Encoded(_) => None,
        }
    }

    /// Takes another header, of the same topic.
    #[inline]
    fn reset(&mut self, header: SampleHeader<'_>) {
        if !Arc::ptr_eq(&self.type_info, header.type_info) {
            self.type_info = Arc::clone(header.type_info);
        }
        match header.cause {
            Cause::Here => self.meta.begin(header.stamp.at),
            Cause::Message(cause) => self.meta = *cause,
        }
        self.meta.stamp(header.stamp.hop, header.stamp.at);
        self.meta.published = header.published;
        self.meta.sequence = header.sequence;
        self.expires = header.expires;
    }

    /// Lets go of what the message holds, such as a loaned buffer. Whether the memory can become another message.
    fn clear(&mut self) -> bool {
        self.decoded.take();
        self.encoded.take();
        match (&mut self.payload, self.type_info.codec()) {
            (Payload::Value(value), Some(codec)) => Arc::get_mut(value).is_some_and(|value| (codec.clear)(value)),
            _ => false,
        }
    }

    /// Whether its lifespan is over.
    #[inline]
    pub(crate) fn is_expired(&self, now: Mono) -> bool {
        self.expires.is_some_and(|end| now > end)
    }

    /// The value as `M`.
    #[inline]
    fn value<M: Message>(&self) -> Result<Arc<M>, Undecodable> {
        self.check_type::<M>()?;
        let value = match &self.payload {
            Payload::Value(value) => Arc::clone(value),
            Payload::Encoded(_) => get_or_compute(&self.decoded, || self.decode::<M>()).clone()?,
        };
        match value.downcast::<M>() {
            Ok(value) => Ok(value),
            // Two Rust types may carry one protobuf name (a plug-in's own build of it): bytes are their common ground.
            Err(_) => decode::<M>(self.encoded()),
        }
    }

    #[inline]
    fn check_type<M: Message>(&self) -> Result<(), Undecodable> {
        let same_rust_type = self.type_info.codec().is_some_and(|codec| codec.type_id == TypeId::of::<M>());
        if same_rust_type || self.type_info.full_name() == M::full_name() {
            return Ok(());
        }
        let (topic, has) = (self.topic.to_string(), self.type_info.full_name().to_owned());
        Err(Undecodable::OtherType { topic, has, wants: M::full_name() })
    }

    fn decode<M: Message>(&self) -> Result<AnyMessage, Undecodable> {
        let bytes = self.encoded();
        match self.type_info.codec() {
            Some(codec) => (codec.decode)(bytes),
            None => decode::<M>(bytes).map(|value| value as AnyMessage),
        }
    }

    fn encoded(&self) -> &Encoded {
        match (&self.payload, self.type_info.codec()) {
            (Payload::Encoded(bytes), _) => bytes,
            (Payload::Value(value), codec) => get_or_compute(&self.encoded, || {
                // A value is always of a type that has a codec.
                codec.map(|codec| (codec.encode)(&**value)).unwrap_or_default()
            }),
        }
    }
}

/// What the cell holds; made here where it is empty. Two threads may both make it, and the second one's is dropped: waiting
/// for the first would tie a thread to one of lower priority.
fn get_or_compute<T>(cell: &OnceLock<T>, make: impl FnOnce() -> T) -> &T {
    match cell.get() {
        Some(made) => made,
        None => {
            let made = make();
            cell.get_or_init(|| made)
        }
    }
}

/// A body in somebody's hands. The last one who lets go gives its memory back to the topic.
#[derive(Clone, Debug)]
pub(crate) struct BodyRef(Arc<Body>);

impl Deref for BodyRef {
    type Target = Body;

    fn deref(&self) -> &Body {
        &self.0
    }
}

impl Drop for BodyRef {
    fn drop(&mut self) {
        let Some(body) = Arc::get_mut(&mut self.0) else {
            return;
        };
        if body.clear()
            && let Some(pool) = body.pool.upgrade()
        {
            // For a moment there are two; a publisher that looks just then makes a new one.
            let _ = pool.free.push(Arc::clone(&self.0));
        }
    }
}

/// Memory of messages that were read, for messages to come. An allocation that one thread makes and another frees is the
/// slowest that an allocator has, and it would be made for every message.
#[derive(Debug)]
pub(crate) struct BodyPool {
    free: Queue<Arc<Body>>,
}

/// Bodies that a topic keeps at most; more are freed.
const BODIES_MAX: usize = 32;

impl BodyPool {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { free: Queue::new(BODIES_MAX) })
    }

    #[inline]
    pub(crate) fn typed<M: Message>(self: &Arc<Self>, header: SampleHeader<'_>, message: M) -> BodyRef {
        if let Some(mut free) = self.free.pop()
            && let Some(body) = Arc::get_mut(&mut free)
            && let Some(value) = body.value_mut::<M>()
        {
            *value = message;
            body.reset(header);
            return BodyRef(free);
        }
        BodyRef(Arc::new(Body::new(header, Payload::Value(Arc::new(message)), Arc::downgrade(self))))
    }

    /// The bodies that are free now are the next ones to be used.
    pub(crate) fn collect_lines(&self, lines: &mut PrefetchSet) {
        lines.add(self);
        self.free.collect_lines(lines, |body, lines| {
            lines.add_shared(&**body, body.meta.first_stamp());
            if let Payload::Value(value) = &body.payload {
                lines.add(&**value);
            }
        });
    }

    /// Bytes come from elsewhere, and their body is freed.
    pub(crate) fn encoded(header: SampleHeader<'_>, bytes: Encoded) -> BodyRef {
        BodyRef(Arc::new(Body::new(header, Payload::Encoded(bytes), Weak::new())))
    }
}

/// A message of type `M` with its [`Meta`]. Dereferences to the message; cloning shares it.
#[derive(Debug)]
pub struct Sample<M> {
    /// Let go before the body, whose memory may then be used again.
    value: Arc<M>,
    body: BodyRef,
}

impl<M> Clone for Sample<M> {
    fn clone(&self) -> Self {
        Self { value: Arc::clone(&self.value), body: self.body.clone() }
    }
}

impl<M: Message> Sample<M> {
    /// Reads a body as `M`; decodes it on this thread where nobody did before.
    #[inline]
    pub(crate) fn read(body: BodyRef) -> Result<Self, Undecodable> {
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
        UntypedSample { body: self.body.clone() }
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
    body: BodyRef,
}

impl UntypedSample {
    pub(crate) fn new(body: BodyRef) -> Self {
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

    /// The bytes; encoded on this thread where nobody did before.
    #[must_use]
    pub fn encoded(&self) -> &Encoded {
        self.body.encoded()
    }

    /// The message as `M`.
    ///
    /// # Errors
    /// Bytes that are not a message of that type.
    pub fn typed<M: Message>(&self) -> Result<Sample<M>, Undecodable> {
        Sample::read(self.body.clone())
    }
}
