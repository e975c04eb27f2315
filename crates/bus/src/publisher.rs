//! The writing end of a topic.

use std::future::poll_fn;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{Poll, Waker};

use viaduct_messages::Message;
use viaduct_units::Mono;

use crate::clock;
use crate::encoded::Encoded;
use crate::endpoint::Endpoint;
use crate::error::PublishError;
use crate::events::Events;
use crate::meta::{HopName, HopStamp, Meta};
use crate::pool::{Loan, LoanError};
use crate::sample::{BodyPool, BodyRef, Cause, SampleHeader};
use crate::subscription::{DropReason, SubscriberEntry};
use crate::topic::{Readers, Topic};
use crate::type_info::TypeInfo;
use crate::writer::Writer;

/// Publishes messages of type `M` on one topic.
pub struct Publisher<M> {
    inner: UntypedPublisher,
    message: PhantomData<fn(M)>,
}

impl<M: Message> Publisher<M> {
    pub(crate) fn new(inner: UntypedPublisher) -> Self {
        Self { inner, message: PhantomData }
    }

    /// Lends a buffer from the topic's pool, to be filled in place.
    ///
    /// # Errors
    /// The pool's buffers are all in use, or the length is more than one of them has.
    pub fn loan(&self, length: usize) -> Result<Loan, LoanError> {
        self.inner.topic.pool.lend(&self.inner.topic.name, length)
    }

    /// Publishes a message that has its origin here, now. Waits where a reliable subscriber's queue is full.
    ///
    /// # Errors
    /// A reliable subscriber did not get it.
    pub fn publish(&self, message: M) -> Result<(), PublishError> {
        self.inner.publish(Cause::Here, Wait::Block, |header| self.body(header, message))
    }

    /// Publishes a message that was made from another one: it inherits the cause's origin and stamps.
    ///
    /// # Errors
    /// A reliable subscriber did not get it.
    pub fn publish_from(&self, cause: &Meta, message: M) -> Result<(), PublishError> {
        self.inner.publish(Cause::Message(cause), Wait::Block, |header| self.body(header, message))
    }

    /// Publishes without ever waiting, for `async` code and for those who would rather lose than wait.
    ///
    /// # Errors
    /// A reliable subscriber's queue is full now.
    pub fn try_publish_from(&self, cause: &Meta, message: M) -> Result<(), PublishError> {
        self.inner.publish(Cause::Message(cause), Wait::Never, |header| self.body(header, message))
    }

    /// Publishes and gives way to other tasks while a reliable subscriber's queue is full.
    pub async fn publish_async(&self, cause: &Meta, message: M) {
        self.inner.publish_when_ready(Cause::Message(cause), |header| self.body(header, message)).await;
    }

    /// Says that this publisher is alive although it has nothing to publish.
    pub fn assert_liveliness(&self) {
        self.inner.assert_liveliness();
    }

    /// What happens to the quality of service that this publisher offers.
    #[must_use]
    pub fn events(&self) -> Events {
        self.inner.events()
    }

    fn body(&self, header: SampleHeader<'_>, message: M) -> BodyRef {
        self.inner.topic.bodies.typed(header, message)
    }
}

/// How long a publisher waits for a reliable subscriber.
#[derive(Clone, Copy)]
enum Wait {
    Block,
    Never,
}

/// Publishes bytes on one topic, of a type that this binary need not know.
pub struct UntypedPublisher {
    pub(crate) topic: Arc<Topic>,
    pub(crate) type_info: Arc<TypeInfo>,
    pub(crate) writer: Arc<Writer>,
    pub(crate) hop: HopName,
    pub(crate) endpoint: Arc<Endpoint>,
}

impl UntypedPublisher {
    /// Publishes an encoded message that was made from another one. Waits where a reliable subscriber's queue is full.
    ///
    /// # Errors
    /// A reliable subscriber did not get it.
    pub fn publish_from(&self, cause: &Meta, message: Encoded) -> Result<(), PublishError> {
        self.publish(Cause::Message(cause), Wait::Block, |header| BodyPool::encoded(header, message))
    }

    /// The same, without ever waiting.
    ///
    /// # Errors
    /// A reliable subscriber's queue is full now.
    pub fn try_publish_from(&self, cause: &Meta, message: Encoded) -> Result<(), PublishError> {
        self.publish(Cause::Message(cause), Wait::Never, |header| BodyPool::encoded(header, message))
    }

    /// Publishes and gives way to other tasks while a reliable subscriber's queue is full.
    pub async fn publish_async(&self, cause: &Meta, message: Encoded) {
        self.publish_when_ready(Cause::Message(cause), |header| BodyPool::encoded(header, message)).await;
    }

    /// Says that this publisher is alive although it has nothing to publish.
    pub fn assert_liveliness(&self) {
        self.assert_alive(self.endpoint.clock.mono());
    }

    /// What happens to the quality of service that this publisher offers.
    #[must_use]
    pub fn events(&self) -> Events {
        self.writer.events.reader()
    }

    /// What the next message says of itself.
    #[inline]
    fn header<'a>(&'a self, cause: Cause<'a>, sequence: u64) -> SampleHeader<'a> {
        let now = self.endpoint.clock.now();
        SampleHeader {
            topic: &self.topic.name,
            type_info: &self.type_info,
            cause,
            stamp: HopStamp { hop: self.hop, at: now.tai },
            published: now.mono,
            sequence,
            expires: self.writer.expires(now),
        }
    }

    /// Makes a message and pushes it to every subscriber; those that have no room and must not miss it come with it.
    #[inline]
    fn deliver_new(
        &self,
        cause: Cause<'_>,
        body: impl FnOnce(SampleHeader<'_>) -> BodyRef,
    ) -> (BodyRef, Vec<SubscriberEntry>) {
        // Counted before the readers are listed: who had joined when it was counted gets it.
        let sequence = self.topic.next_sequence();
        let readers = self.topic.readers();
        readers.prefetch();
        let body = body(self.header(cause, sequence));
        let full = self.deliver(&readers, &body);
        (body, full)
    }

    fn deliver(&self, readers: &Readers, body: &BodyRef) -> Vec<SubscriberEntry> {
        let (full, deadline_begins) = self.topic.deliver(body, &self.writer, readers);
        let now = body.meta.published;
        let own_deadline_begins = self.writer.deadline.as_ref().is_some_and(|deadline| deadline.record_sample(now));
        if deadline_begins || own_deadline_begins {
            self.endpoint.monitor.wake();
        }
        self.assert_alive(now);
        if let Some((last, here)) = body.meta.last_hop() {
            self.endpoint.stats.record_hop(last.hop, here.hop, here.at.since(last.at));
        }
        full
    }

    fn assert_alive(&self, now: Mono) {
        if self.writer.assert_alive(now) {
            self.topic.report_liveliness();
            self.endpoint.monitor.wake();
        }
    }

    fn publish(
        &self,
        cause: Cause<'_>,
        wait: Wait,
        body: impl FnOnce(SampleHeader<'_>) -> BodyRef,
    ) -> Result<(), PublishError> {
        let (body, full) = self.deliver_new(cause, body);
        if full.is_empty() { Ok(()) } else { self.retry(&full, &body, wait) }
    }

    #[cold]
    fn retry(&self, full: &[SubscriberEntry], body: &BodyRef, wait: Wait) -> Result<(), PublishError> {
        let began = clock::mono();
        let missed: Vec<String> = full
            .iter()
            .filter(|entry| !retry_one(entry, body, wait, began))
            .map(|entry| entry.subscription.owner.to_string())
            .collect();
        if missed.is_empty() {
            Ok(())
        } else {
            Err(PublishError::QueueFull { topic: self.topic.name.to_string(), subscribers: missed })
        }
    }

    async fn publish_when_ready(&self, cause: Cause<'_>, body: impl FnOnce(SampleHeader<'_>) -> BodyRef) {
        let (body, full) = self.deliver_new(cause, body);
        let mut pending = PendingSubscribers { entries: full, waker: None };
        while let Some(entry) = pending.entries.last() {
            poll_fn(|context| {
                pending.waker = Some(context.waker().clone());
                let outcome = entry.subscription.poll_enqueue(entry.queued(&body), context);
                if outcome.is_ok() { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            pending.entries.pop();
        }
    }
}

/// Second try for a reliable subscriber that had no room; whether it got the sample. What it waits for counts from `began`,
/// so that several of them wait together and not one after the other.
fn retry_one(entry: &SubscriberEntry, body: &BodyRef, wait: Wait, began: Mono) -> bool {
    let outcome = match wait {
        Wait::Block => {
            entry.subscription.enqueue_blocking(entry.queued(body), began.plus(entry.subscription.qos.block()))
        }
        Wait::Never => Err(entry.queued(body)),
    };
    if let Err(refused) = &outcome {
        refused.stats.count_drop(DropReason::QueueFull);
    }
    outcome.is_ok()
}

/// Subscribers that a task waits for. Those that are left when it is cancelled have lost the sample.
struct PendingSubscribers {
    entries: Vec<SubscriberEntry>,
    waker: Option<Waker>,
}

impl Drop for PendingSubscribers {
    fn drop(&mut self) {
        for entry in &self.entries {
            entry.stats.count_drop(DropReason::QueueFull);
            self.waker.iter().for_each(|waker| entry.subscription.remove_waker(waker));
        }
    }
}

impl Drop for UntypedPublisher {
    fn drop(&mut self) {
        self.topic.remove_publisher(&self.writer);
    }
}
