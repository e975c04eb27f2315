//! Publishing on a topic.

use std::borrow::Borrow;
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
use crate::meta::{HopKind, HopName, HopStamp, Meta};
use crate::pool::{Loan, LoanError};
use crate::sample::{BodyPool, BodyRef, Cause, SampleHeader};
use crate::subscription::{DropReason, SubscriberEntry};
use crate::topic::{Delivered, Readers, Topic};
use crate::type_info::TypeInfo;
use crate::writer::Writer;

/// Publishes messages of type `M` on one topic.
///
/// A large field is filled in place in a buffer of the topic's pool and published without a copy:
///
/// ```
/// use viaduct_bus::{Bus, PoolSize, Qos};
/// use viaduct_messages::foxglove::PointCloud;
///
/// let bus = Bus::new("vehicle-1");
/// bus.size_pool("points", PoolSize::new(4, 64 * 1024))?;
/// let clouds = bus.subscribe::<PointCloud>("points", Qos::sensor_data(), "reader")?;
/// let publisher = bus.publisher::<PointCloud>("points", Qos::sensor_data(), "lidar")?;
///
/// let mut loan = publisher.loan(1024)?;
/// loan.fill(7);
/// publisher.publish(PointCloud { data: loan.freeze(), ..Default::default() })?;
/// assert_eq!(clouds.try_recv().map(|cloud| cloud.data.len()), Some(1024));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Publisher<M> {
    inner: UntypedPublisher,
    message: PhantomData<fn(M)>,
}

impl<M: Message> Publisher<M> {
    pub(crate) fn new(inner: UntypedPublisher) -> Self {
        Self { inner, message: PhantomData }
    }

    /// Returns a buffer of `length` bytes from the topic's pool, to be filled in place. It may contain data of earlier
    /// loans.
    ///
    /// # Errors
    /// Returns an error if all buffers of the pool are in use, or `length` exceeds the size of a buffer.
    pub fn loan(&self, length: usize) -> Result<Loan, LoanError> {
        self.inner.loan(length)
    }

    /// Publishes a message whose origin is here and now. Waits while a reliable subscriber's queue is full.
    ///
    /// # Errors
    /// Returns an error if a reliable subscriber did not get the sample.
    pub fn publish(&self, message: M) -> Result<(), PublishError> {
        self.inner.deliver_by(Cause::Here, Wait::Block, |header| self.body(header, message))
    }

    /// Publishes a message that was derived from another one: it inherits the origin and stamps of `cause`. Waits while
    /// a reliable subscriber's queue is full.
    ///
    /// # Errors
    /// Returns an error if a reliable subscriber did not get the sample.
    pub fn publish_from(&self, cause: impl Borrow<Meta>, message: M) -> Result<(), PublishError> {
        self.inner.deliver_by(Cause::Message(cause.borrow()), Wait::Block, |header| self.body(header, message))
    }

    /// Publishes as [`Self::publish_from`], but never waits. For `async` code and for publishers that prefer a loss to
    /// a wait.
    ///
    /// # Errors
    /// Returns an error if a reliable subscriber's queue is full now.
    pub fn try_publish_from(&self, cause: impl Borrow<Meta>, message: M) -> Result<(), PublishError> {
        self.inner.deliver_by(Cause::Message(cause.borrow()), Wait::Never, |header| self.body(header, message))
    }

    /// Publishes as [`Self::publish_from`], but yields to other tasks while a reliable subscriber's queue is full.
    pub async fn publish_async(&self, cause: impl Borrow<Meta>, message: M) {
        self.inner.publish_when_ready(Cause::Message(cause.borrow()), |header| self.body(header, message)).await;
    }

    /// Asserts that this publisher is alive without publishing a sample.
    pub fn assert_liveliness(&self) {
        self.inner.assert_liveliness();
    }

    /// Returns the QoS events of this publisher.
    #[must_use]
    pub fn events(&self) -> Events {
        self.inner.events()
    }

    fn body(&self, header: SampleHeader<'_>, message: M) -> BodyRef {
        self.inner.topic.bodies.typed(header, message)
    }
}

/// Behaviour of a publisher if a reliable subscriber's queue is full.
#[derive(Clone, Copy)]
enum Wait {
    Block,
    Never,
}

/// Publishes encoded messages on one topic, of a type that this binary need not know.
pub struct UntypedPublisher {
    pub(crate) topic: Arc<Topic>,
    pub(crate) type_info: Arc<TypeInfo>,
    pub(crate) writer: Arc<Writer>,
    pub(crate) hop: HopName,
    pub(crate) endpoint: Arc<Endpoint>,
}

impl UntypedPublisher {
    /// Returns a buffer of `length` bytes from the topic's pool, to be filled in place. It may contain data of earlier
    /// loans.
    ///
    /// # Errors
    /// Returns an error if all buffers of the pool are in use, or `length` exceeds the size of a buffer.
    pub fn loan(&self, length: usize) -> Result<Loan, LoanError> {
        self.topic.pool.loan(&self.topic.name, length)
    }

    /// Returns the type of the messages.
    #[must_use]
    pub fn type_info(&self) -> &TypeInfo {
        &self.type_info
    }

    /// Publishes an encoded message whose origin is here and now. Waits while a reliable subscriber's queue is full.
    ///
    /// # Errors
    /// Returns an error if a reliable subscriber did not get the sample.
    pub fn publish(&self, message: Encoded) -> Result<(), PublishError> {
        self.deliver_by(Cause::Here, Wait::Block, |header| BodyPool::encoded(header, message))
    }

    /// Publishes an encoded message that was derived from another one. Waits while a reliable subscriber's queue is
    /// full.
    ///
    /// # Errors
    /// Returns an error if a reliable subscriber did not get the sample.
    pub fn publish_from(&self, cause: impl Borrow<Meta>, message: Encoded) -> Result<(), PublishError> {
        self.deliver_by(Cause::Message(cause.borrow()), Wait::Block, |header| BodyPool::encoded(header, message))
    }

    /// Publishes as [`Self::publish_from`], but never waits.
    ///
    /// # Errors
    /// Returns an error if a reliable subscriber's queue is full now.
    pub fn try_publish_from(&self, cause: impl Borrow<Meta>, message: Encoded) -> Result<(), PublishError> {
        self.deliver_by(Cause::Message(cause.borrow()), Wait::Never, |header| BodyPool::encoded(header, message))
    }

    /// Publishes as [`Self::publish_from`], but yields to other tasks while a reliable subscriber's queue is full.
    pub async fn publish_async(&self, cause: impl Borrow<Meta>, message: Encoded) {
        self.publish_when_ready(Cause::Message(cause.borrow()), |header| BodyPool::encoded(header, message)).await;
    }

    /// Asserts that this publisher is alive without publishing a sample.
    pub fn assert_liveliness(&self) {
        self.assert_alive(self.endpoint.clock.mono());
    }

    /// Returns the QoS events of this publisher.
    #[must_use]
    pub fn events(&self) -> Events {
        self.writer.events.reader()
    }

    /// Returns the header of the next sample.
    #[inline]
    fn header<'a>(&'a self, cause: Cause<'a>, sequence: u64) -> SampleHeader<'a> {
        let now = self.endpoint.clock.now();
        SampleHeader {
            topic: &self.topic.name,
            type_info: &self.type_info,
            cause,
            stamp: HopStamp::new(self.hop, HopKind::Published, now.tai),
            published: now.mono,
            sequence,
            expires: self.writer.expires(now),
        }
    }

    /// Makes a sample and delivers it to every subscriber. Returns the sample with the reliable subscribers whose queue
    /// was full.
    #[inline]
    fn deliver_new(
        &self,
        cause: Cause<'_>,
        body: impl FnOnce(SampleHeader<'_>) -> BodyRef,
    ) -> (BodyRef, Vec<SubscriberEntry>) {
        // Counted before the subscribers are loaded: those that had joined when it was counted get it.
        let sequence = self.topic.next_sequence();
        let readers = self.topic.readers();
        readers.prefetch();
        let body = body(self.header(cause, sequence));
        let full = self.deliver(&readers, &body);
        (body, full)
    }

    fn deliver(&self, readers: &Readers, body: &BodyRef) -> Vec<SubscriberEntry> {
        let Delivered { full, deadline_started } = self.topic.deliver(body, &self.writer, readers);
        let now = body.meta.published;
        let own_deadline_started = self.writer.deadline.as_ref().is_some_and(|deadline| deadline.record_sample(now));
        if deadline_started || own_deadline_started {
            self.endpoint.monitor.wake();
        }
        self.assert_alive(now);
        body.meta.last_hops(|from, to| self.endpoint.stats.record_hop(from, to));
        full
    }

    fn assert_alive(&self, now: Mono) {
        if self.writer.assert_alive(now) {
            self.topic.report_liveliness();
            self.endpoint.monitor.wake();
        }
    }

    fn deliver_by(
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
        let mut missed = Vec::new();
        for entry in full {
            if !retry_one(entry, body, wait, began) {
                missed.push(entry.subscription.owner.to_string());
            }
        }
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

/// Enqueues a sample again for a reliable subscriber whose queue was full. Returns `true` if it was enqueued. The
/// waiting time counts from `began`, so the waits for several subscribers overlap.
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

/// Subscribers for which a task waits. If the task is cancelled, those that are left have lost the sample.
struct PendingSubscribers {
    entries: Vec<SubscriberEntry>,
    waker: Option<Waker>,
}

impl Drop for PendingSubscribers {
    fn drop(&mut self) {
        for entry in &self.entries {
            entry.stats.count_drop(DropReason::QueueFull);
            if let Some(waker) = &self.waker {
                entry.subscription.remove_waker(waker);
            }
        }
    }
}

impl Drop for UntypedPublisher {
    fn drop(&mut self) {
        self.topic.remove_publisher(&self.writer);
    }
}
