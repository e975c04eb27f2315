//! The resources of a server: their representations are the latest samples of topics.

use std::collections::HashMap;
use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::task::{Context as TaskContext, Poll};

use bytes::Bytes;
use viaduct_bus::{Meta, UntypedSample, UntypedSubscriber, clock};
use viaduct_coap::codec::ContentFormat;
use viaduct_messages::topic;
use viaduct_messages::viaduct::its::ReplyTo;
use viaduct_node::{Component, Context, StartError};
use viaduct_v2x_json::dialect::Dialect;

use super::settings::{LATEST, OFFERED, ResourceSettings};
use crate::coap;
use crate::encoding::{EncodeError, Encoder};
use crate::mqtt::answer::Refusal;
use crate::mqtt::typed::Sink;

/// The resources.
pub(super) struct Resources {
    all: Vec<Resource>,
    /// Resource that is asked first for its next sample.
    first: usize,
    /// `true` if a topic of a pattern was new.
    has_new: bool,
}

/// A resource, or with a pattern those of all its topics.
pub(super) struct Resource {
    pub(super) settings: ResourceSettings,
    input: Option<Input>,
    sink: Option<Sink>,
}

struct Input {
    subscriber: UntypedSubscriber,
    encoder: Encoder,
    is_pattern: bool,
    /// The latest sample of each topic, whose number the bus limits.
    latest: HashMap<String, Latest>,
}

struct Latest {
    sample: UntypedSample,
    /// The encoded sample, if it was asked for.
    payload: Option<Result<Bytes, EncodeError>>,
}

/// A representation of a resource.
#[derive(Clone, Debug)]
pub(super) struct Representation {
    pub(super) payload: Bytes,
    pub(super) content_format: ContentFormat,
    pub(super) max_age_s: u32,
}

/// Reason why a resource has no representation.
#[derive(Debug)]
pub(super) enum Absent {
    /// There is no such resource, or no sample yet.
    NotFound,
    /// Clients can only write it.
    NotReadable,
    Unencodable(EncodeError),
}

impl Resources {
    pub(super) fn open<C: Component>(settings: &[ResourceSettings], context: &Context<C>) -> Result<Self, StartError> {
        let all = settings.iter().map(|settings| Resource::open(settings, context)).collect::<Result<_, _>>()?;
        Ok(Self { all, first: 0, has_new: false })
    }

    /// Returns the resource of a path, and the topic if it has a pattern.
    pub(super) fn find(&mut self, path: &[&str]) -> Option<(&mut Resource, Option<String>)> {
        let exact = self.all.iter().position(|resource| resource.settings.segments().eq(path.iter().copied()));
        if let Some(index) = exact {
            return Some((self.all.get_mut(index)?, None));
        }
        let (index, topic) = self.all.iter().enumerate().find_map(|(index, resource)| {
            let pattern = resource.settings.from.as_deref().filter(|_| resource.is_pattern())?;
            let topic = path.get(resource.settings.segments().count()..)?.join("/");
            let is_below = resource.settings.segments().zip(path).all(|(own, other)| own == *other);
            (is_below && topic::matches(pattern, &topic)).then_some((index, topic))
        })?;
        Some((self.all.get_mut(index)?, Some(topic)))
    }

    /// Waits for the next sample of any resource, which becomes its representation. Returns the path, or `None` if the bus is
    /// closed. Cancelling the wait loses nothing.
    pub(super) async fn next(&mut self) -> Option<String> {
        poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut TaskContext<'_>) -> Poll<Option<String>> {
        let mut is_open = self.all.iter().all(|resource| resource.input.is_none());
        let count = self.all.len();
        for index in (0..count).map(|offset| (self.first + offset) % count) {
            let Some(resource) = self.all.get_mut(index) else { continue };
            match resource.poll_next(context) {
                Poll::Ready(Some((path, is_new))) => {
                    self.first = index + 1;
                    self.has_new |= is_new;
                    return Poll::Ready(Some(path));
                }
                Poll::Ready(None) => {}
                Poll::Pending => is_open = true,
            }
        }
        if is_open { Poll::Pending } else { Poll::Ready(None) }
    }

    /// Returns `true` if there are more paths than at the last call.
    pub(super) const fn take_is_new(&mut self) -> bool {
        std::mem::replace(&mut self.has_new, false)
    }

    /// Returns the paths that can be read or written at present, with their resources.
    pub(super) fn paths(&self) -> impl Iterator<Item = (String, &Resource)> {
        self.all.iter().flat_map(|resource| {
            let topics = resource.input.iter().filter(|input| input.is_pattern).flat_map(|input| input.latest.keys());
            let below = topics.map(|topic| format!("{}/{topic}", resource.settings.path));
            let own = (!resource.is_pattern()).then(|| resource.settings.path.clone());
            own.into_iter().chain(below).map(move |path| (path, resource))
        })
    }
}

impl Resource {
    fn open<C: Component>(settings: &ResourceSettings, context: &Context<C>) -> Result<Self, StartError> {
        let input = settings.from.as_ref().map(|from| {
            Ok::<_, StartError>(Input {
                subscriber: context.subscribe_untyped(from, LATEST)?,
                encoder: Encoder::default(),
                is_pattern: !topic::is_name(from),
                latest: HashMap::new(),
            })
        });
        let sink = match (&settings.to, &settings.r#type) {
            (Some(to), Some(kind)) => kind.open((to, OFFERED), settings.encoding, None, context)?,
            _ => None,
        };
        Ok(Self { settings: settings.clone(), input: input.transpose()?, sink })
    }

    fn is_pattern(&self) -> bool {
        self.input.as_ref().is_some_and(|input| input.is_pattern)
    }

    pub(super) const fn is_readable(&self) -> bool {
        self.input.is_some()
    }

    pub(super) const fn is_writable(&self) -> bool {
        self.sink.is_some()
    }

    /// Returns the content format of the payloads.
    pub(super) const fn content_format(&self) -> ContentFormat {
        coap::content_format(self.settings.encoding)
    }

    /// Returns the path of the next sample, and whether its topic is new.
    fn poll_next(&mut self, context: &mut TaskContext<'_>) -> Poll<Option<(String, bool)>> {
        let Some(input) = &mut self.input else { return Poll::Ready(None) };
        // The future may be dropped after a poll: the subscription keeps the waker.
        let polled = pin!(input.subscriber.recv()).poll(context);
        polled.map(|sample| {
            let sample = sample?;
            let topic = sample.topic().to_owned();
            let path =
                if input.is_pattern { format!("{}/{topic}", self.settings.path) } else { self.settings.path.clone() };
            let is_new = input.latest.insert(topic, Latest { sample, payload: None }).is_none();
            Some((path, is_new && input.is_pattern))
        })
    }

    /// Returns the representation. `topic` is the topic of a pattern.
    pub(super) fn representation(&mut self, topic: Option<&str>) -> Result<Representation, Absent> {
        let (content_format, max_age_s) = (self.content_format(), self.settings.max_age_s);
        let form = (self.settings.encoding, Dialect::Viaduct);
        let input = self.input.as_mut().ok_or(Absent::NotReadable)?;
        let latest = match topic {
            Some(topic) => input.latest.get_mut(topic),
            None => input.latest.values_mut().next(),
        };
        let Latest { sample, payload } = latest.ok_or(Absent::NotFound)?;
        let payload = payload.get_or_insert_with(|| input.encoder.encode(form, sample)).clone();
        let payload = payload.map_err(Absent::Unencodable)?;
        Ok(Representation { payload, content_format, max_age_s })
    }

    /// Publishes a payload.
    pub(super) fn write(&self, payload: &[u8]) -> Option<Result<(), Refusal>> {
        let sink = self.sink.as_ref()?;
        Some(sink(payload, &Meta::from_origin(clock::tai()), ReplyTo::default()))
    }
}
