//! The reading end of topics.

use std::future::poll_fn;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use viaduct_messages::Message;
use viaduct_units::Now;

use crate::endpoint::Endpoint;
use crate::events::Events;
use crate::limits::OBSERVERS_MAX;
use crate::sample::{BodyRef, Sample, UntypedSample};
use crate::subscription::{DeliveryGuard, Queued, Subscription};
use crate::type_info::Undecodable;

/// What came of a bounded wait for a sample.
#[derive(Clone, Debug)]
pub enum Recv<T> {
    /// A sample came.
    Sample(T),
    /// None came in time.
    TimedOut,
    /// None will come: the bus is closed and the queue is empty.
    Closed,
}

/// A sample that was taken.
pub(crate) struct Received<T> {
    pub(crate) sample: T,
    /// When.
    pub(crate) now: Now,
    /// To be dropped when the sample was used.
    pub(crate) guard: DeliveryGuard,
}

/// Reads a topic, or the topics of a pattern, as messages of type `M`. One reader at a time.
pub struct Subscriber<M> {
    inner: UntypedSubscriber,
    message: PhantomData<fn() -> M>,
}

impl<M: Message> Subscriber<M> {
    pub(crate) fn new(inner: UntypedSubscriber) -> Self {
        Self { inner, message: PhantomData }
    }

    /// The next sample, where one is there.
    #[must_use]
    pub fn try_recv(&self) -> Option<Sample<M>> {
        self.inner.take(Sample::read).map(|taken| taken.sample)
    }

    /// Waits for the next sample; `None` when the bus is closed and the queue empty.
    pub async fn recv(&self) -> Option<Sample<M>> {
        self.inner.take_async(Sample::read).await
    }

    /// Blocks this thread until a sample comes, at most for `timeout`.
    #[must_use]
    pub fn recv_timeout(&self, timeout: Duration) -> Recv<Sample<M>> {
        self.inner.take_within(timeout, Sample::read)
    }

    /// What happens to the quality of service of the topics.
    #[must_use]
    pub fn events(&self) -> Events {
        self.inner.events()
    }

    /// The next sample, where one is there.
    pub(crate) fn take(&self) -> Option<Received<Sample<M>>> {
        self.inner.take(Sample::read)
    }

    pub(crate) fn subscription(&self) -> &Arc<Subscription> {
        &self.inner.subscription
    }
}

/// Reads a topic, or the topics of a pattern, without knowing the type. One reader at a time.
pub struct UntypedSubscriber {
    subscription: Arc<Subscription>,
    endpoint: Arc<Endpoint>,
}

impl UntypedSubscriber {
    pub(crate) fn new(subscription: Arc<Subscription>, endpoint: Arc<Endpoint>) -> Self {
        Self { subscription, endpoint }
    }

    /// The next sample, where one is there.
    #[must_use]
    pub fn try_recv(&self) -> Option<UntypedSample> {
        self.take(untyped).map(|taken| taken.sample)
    }

    /// Waits for the next sample; `None` when the bus is closed and the queue empty.
    pub async fn recv(&self) -> Option<UntypedSample> {
        self.take_async(untyped).await
    }

    /// Blocks this thread until a sample comes, at most for `timeout`.
    #[must_use]
    pub fn recv_timeout(&self, timeout: Duration) -> Recv<UntypedSample> {
        self.take_within(timeout, untyped)
    }

    /// What happens to the quality of service of the topics.
    #[must_use]
    pub fn events(&self) -> Events {
        self.subscription.events.reader()
    }

    /// The next sample that can be read, where one is there.
    #[inline]
    pub(crate) fn take<T>(&self, read: impl Fn(BodyRef) -> Result<T, Undecodable> + Copy) -> Option<Received<T>> {
        if self.subscription.queued() == 0 {
            return None;
        }
        let now = self.endpoint.clock.now();
        self.subscription.take(now.mono, read).map(|(sample, guard)| Received { sample, now, guard })
    }

    pub(crate) fn take_untyped(&self) -> Option<Received<UntypedSample>> {
        self.take(untyped)
    }

    async fn take_async<T>(&self, read: impl Fn(BodyRef) -> Result<T, Undecodable>) -> Option<T> {
        loop {
            let queued = poll_fn(|context| self.subscription.poll_pop(context)).await?;
            if let Some((sample, _)) = queued.read(self.endpoint.clock.mono(), &read) {
                return Some(sample);
            }
        }
    }

    fn take_within<T>(&self, timeout: Duration, read: impl Fn(BodyRef) -> Result<T, Undecodable>) -> Recv<T> {
        let deadline = Instant::now() + timeout;
        loop {
            match self.recv_until(deadline) {
                Recv::Sample(queued) => {
                    if let Some((sample, _)) = queued.read(self.endpoint.clock.mono(), &read) {
                        return Recv::Sample(sample);
                    }
                }
                Recv::TimedOut => return Recv::TimedOut,
                Recv::Closed => return Recv::Closed,
            }
        }
    }

    fn recv_until(&self, deadline: Instant) -> Recv<Queued> {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let context = Context::from_waker(&waker);
        loop {
            match self.subscription.poll_pop(&context) {
                Poll::Ready(Some(sample)) => return Recv::Sample(sample),
                Poll::Ready(None) => return Recv::Closed,
                Poll::Pending => {}
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Recv::TimedOut;
            }
            std::thread::park_timeout(left);
        }
    }

    pub(crate) fn subscription(&self) -> &Arc<Subscription> {
        &self.subscription
    }
}

fn untyped(body: BodyRef) -> Result<UntypedSample, Undecodable> {
    Ok(UntypedSample::new(body))
}

impl Drop for UntypedSubscriber {
    fn drop(&mut self) {
        self.subscription.close();
        self.subscription.discard();
        self.endpoint.topics.unsubscribe(&self.subscription);
    }
}

/// Wakes a thread that waits for a sample.
struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Looks on at topics without being a part of the node's work: it is never woken, gets a sample after all subscribers, and
/// holds at most one in its queue beside those that its owner has taken. What it does not see is [missed](Self::missed),
/// not dropped.
pub struct Observer {
    /// Lets go of its sample before the place is free for another observer.
    inner: UntypedSubscriber,
    _place: ObserverPermit,
}

/// One of the places that a bus has for observers.
pub(crate) struct ObserverPermit(Arc<AtomicUsize>);

impl ObserverPermit {
    /// Takes one of the places, of which `taken` are taken; `None` where all are.
    pub(crate) fn take(taken: &Arc<AtomicUsize>) -> Option<Self> {
        let more = |count| (count < OBSERVERS_MAX).then_some(count + 1);
        taken.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).ok()?;
        Some(Self(Arc::clone(taken)))
    }
}

impl Drop for ObserverPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Observer {
    pub(crate) fn new(inner: UntypedSubscriber, place: ObserverPermit) -> Self {
        Self { inner, _place: place }
    }

    /// The newest sample that was not looked at, where there is one.
    #[must_use]
    pub fn try_recv(&self) -> Option<UntypedSample> {
        self.inner.try_recv()
    }

    /// Samples that were published and that this observer did not see.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.inner.subscription.missed()
    }
}
