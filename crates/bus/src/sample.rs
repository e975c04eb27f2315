//! A sample on its path from a publisher to the readers.

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

/// The part of a sample that all its readers share: the message as a value, as encoded bytes, or both. The fields that
/// a sample touches until it is read come first.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Body {
    /// The message as it was published.
    payload: Payload,
    pub(crate) type_info: Arc<TypeInfo>,
    /// Last time at which it may be delivered; `None` without a lifespan.
    expires: Option<Mono>,
    pub(crate) meta: Meta,
    /// The value, decoded by the first reader that needs it if the publisher passed encoded bytes.
    decoded: OnceLock<Result<AnyMessage, Undecodable>>,
    /// The encoded bytes, encoded by the first reader that needs them if the publisher passed a value.
    encoded: OnceLock<Encoded>,
    /// The pool that reuses this allocation after the last reader.
    pool: Weak<BodyPool>,
    pub(crate) topic: Arc<str>,
}

#[derive(Debug)]
enum Payload {
    Value(AnyMessage),
    Encoded(Encoded),
}

/// Everything about a sample except the message itself.
#[derive(Clone, Copy)]
pub(crate) struct SampleHeader<'a> {
    pub(crate) topic: &'a Arc<str>,
    pub(crate) type_info: &'a Arc<TypeInfo>,
    pub(crate) cause: Cause<'a>,
    pub(crate) stamp: HopStamp,
    pub(crate) published: Mono,
    pub(crate) sequence: u64,
    /// Last time at which it may be delivered; `None` without a lifespan.
    pub(crate) expires: Option<Mono>,
}

/// Origin of a message.
#[derive(Clone, Copy)]
pub(crate) enum Cause<'a> {
    /// The message originates here and now.
    Here,
    /// The message was derived from another one.
    Message(&'a Meta),
}

impl Body {
    fn new(header: SampleHeader<'_>, payload: Payload, pool: Weak<BodyPool>) -> Self {
        let mut body = Self {
            payload,
            type_info: Arc::clone(header.type_info),
            expires: None,
            meta: Meta::from_origin(header.stamp.at),
            decoded: OnceLock::new(),
            encoded: OnceLock::new(),
            pool,
            topic: Arc::clone(header.topic),
        };
        body.reset(header);
        body
    }

    /// Returns the value if it is of type `M` and has no other reference.
    #[inline]
    fn value_mut<M: Message>(&mut self) -> Option<&mut M> {
        match &mut self.payload {
            Payload::Value(value) => Arc::get_mut(value)?.downcast_mut(),
            Payload::Encoded(_) => None,
        }
    }

    /// Writes another header, of the same topic.
    #[inline]
    fn reset(&mut self, header: SampleHeader<'_>) {
        if !Arc::ptr_eq(&self.type_info, header.type_info) {
            self.type_info = Arc::clone(header.type_info);
        }
        match header.cause {
            Cause::Here => self.meta.begin(header.stamp.at),
            Cause::Message(cause) => self.meta.inherit(cause),
        }
        self.meta.push(header.stamp);
        self.meta.published = header.published;
        self.meta.sequence = header.sequence;
        self.expires = header.expires;
    }

    /// Releases the content of the message, such as a loaned buffer. Returns `true` if the allocation can be reused.
    fn clear(&mut self) -> bool {
        self.decoded.take();
        self.encoded.take();
        match (&mut self.payload, self.type_info.codec()) {
            (Payload::Value(value), Some(codec)) => Arc::get_mut(value).is_some_and(|value| (codec.clear)(value)),
            _ => false,
        }
    }

    /// Returns `true` if the lifespan is over.
    #[inline]
    pub(crate) fn is_expired(&self, now: Mono) -> bool {
        self.expires.is_some_and(|end| now > end)
    }

    /// Returns the value as `M`.
    #[inline]
    fn value<M: Message>(&self) -> Result<Arc<M>, Undecodable> {
        self.check_type::<M>()?;
        let value = match &self.payload {
            Payload::Value(value) => Arc::clone(value),
            Payload::Encoded(_) => get_or_compute(&self.decoded, || self.decode::<M>()).clone()?,
        };
        match value.downcast::<M>() {
            Ok(value) => Ok(value),
            // Two Rust types may have one protobuf name (a plug-in's own build of it): their encoding is the same.
            Err(_) => decode::<M>(self.encoded()),
        }
    }

    #[inline]
    fn check_type<M: Message>(&self) -> Result<(), Undecodable> {
        let same_rust_type = self.type_info.codec().is_some_and(|codec| codec.type_id == TypeId::of::<M>());
        if same_rust_type || self.type_info.is_protobuf(&M::full_name()) {
            return Ok(());
        }
        Err(Undecodable::OtherType {
            topic: self.topic.to_string(),
            has: self.type_info.to_string(),
            wants: M::full_name(),
        })
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
                // A value always has a type with a codec.
                codec.map(|codec| (codec.encode)(&**value)).unwrap_or_default()
            }),
        }
    }
}

/// Returns the content of the cell, computed here if it is empty. Two threads may both compute it, and the second
/// result is dropped: waiting for the first would make a thread wait for one of lower priority.
fn get_or_compute<T>(cell: &OnceLock<T>, make: impl FnOnce() -> T) -> &T {
    match cell.get() {
        Some(made) => made,
        None => {
            let made = make();
            cell.get_or_init(|| made)
        }
    }
}

/// A reference to a body. Dropping the last one returns the allocation to the topic.
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
            // For a short time there are two references; a publisher that pops this body then allocates a new one.
            let _ = pool.free.push(Arc::clone(&self.0));
        }
    }
}

/// Allocations of samples that were read, for reuse. Without it every sample would be allocated on one thread and freed
/// on another, the slowest case of an allocator.
#[derive(Debug)]
pub(crate) struct BodyPool {
    free: Queue<Arc<Body>>,
}

/// Maximum number of bodies kept for one topic; more are freed.
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

    /// Collects the cache lines of the free bodies, which are used next.
    pub(crate) fn collect_lines(&self, lines: &mut PrefetchSet) {
        lines.add(self);
        self.free.collect_lines(lines, |body, lines| {
            lines.add_shared(&**body, body.meta.first_stamp());
            if let Payload::Value(value) = &body.payload {
                lines.add(&**value);
            }
        });
    }

    /// Creates the body of a message that is already encoded. It is not reused.
    pub(crate) fn encoded(header: SampleHeader<'_>, bytes: Encoded) -> BodyRef {
        BodyRef(Arc::new(Body::new(header, Payload::Encoded(bytes), Weak::new())))
    }
}

/// A message of type `M` with its [`Meta`]. Dereferences to the message; cloning shares it.
#[derive(Debug)]
pub struct Sample<M> {
    /// Dropped before the body, whose allocation may then be reused.
    value: Arc<M>,
    body: BodyRef,
    /// Stamp of the taking; without a name if an observer has taken it.
    taken: HopStamp,
}

impl<M> Clone for Sample<M> {
    fn clone(&self) -> Self {
        Self { value: Arc::clone(&self.value), body: self.body.clone(), taken: self.taken }
    }
}

impl<M: Message> Sample<M> {
    /// Reads a body as `M`; decodes it on this thread if no reader did before.
    #[inline]
    pub(crate) fn read(body: BodyRef, taken: HopStamp) -> Result<Self, Undecodable> {
        Ok(Self { value: body.value::<M>()?, body, taken })
    }
}

impl<M> Sample<M> {
    /// Returns origin, stamps and sequence number. The last stamp is the taking by the reader, so that a message which
    /// is published with this metadata has the times at which its cause was taken and at which it was published.
    #[must_use]
    #[inline]
    pub fn meta(&self) -> Meta {
        self.body.meta.after(self.taken)
    }

    /// Returns the topic on which it was published.
    #[must_use]
    pub fn topic(&self) -> &str {
        &self.body.topic
    }

    /// Returns the same sample for a reader that does not know its type.
    #[must_use]
    pub fn untyped(&self) -> UntypedSample {
        UntypedSample { body: self.body.clone(), taken: self.taken }
    }
}

impl<M> Deref for Sample<M> {
    type Target = M;

    fn deref(&self) -> &M {
        &self.value
    }
}

/// A message of a type that is not compiled into the reader.
#[derive(Clone, Debug)]
pub struct UntypedSample {
    body: BodyRef,
    taken: HopStamp,
}

impl UntypedSample {
    pub(crate) fn new(body: BodyRef, taken: HopStamp) -> Self {
        Self { body, taken }
    }

    /// Returns origin, stamps and sequence number. The last stamp is the taking by the reader, unless that is an
    /// observer.
    #[must_use]
    #[inline]
    pub fn meta(&self) -> Meta {
        self.body.meta.after(self.taken)
    }

    /// Returns the topic on which it was published.
    #[must_use]
    pub fn topic(&self) -> &str {
        &self.body.topic
    }

    /// Returns the type that the publisher declared.
    #[must_use]
    pub fn type_info(&self) -> &Arc<TypeInfo> {
        &self.body.type_info
    }

    /// Returns the encoded message; encodes it on this thread if no reader did before.
    #[must_use]
    pub fn encoded(&self) -> &Encoded {
        self.body.encoded()
    }

    /// Returns the message as `M`.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a message of that type, or the topic has another type.
    pub fn typed<M: Message>(&self) -> Result<Sample<M>, Undecodable> {
        Sample::read(self.body.clone(), self.taken)
    }
}
