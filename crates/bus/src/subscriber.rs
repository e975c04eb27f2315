//! Reading topics.

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
use crate::meta::{HopName, HopStamp};
use crate::sample::{BodyRef, Sample, UntypedSample};
use crate::subscription::{DeliveryGuard, Queued, Role, Subscription};
use crate::type_info::Undecodable;

/// Outcome of a bounded wait for a sample.
#[derive(Clone, Debug)]
pub enum Recv<T> {
    /// A sample was received.
    Sample(T),
    /// The timeout passed without a sample.
    TimedOut,
    /// The bus is closed and the queue is empty: no more samples will be received.
    Closed,
}

/// A sample that was taken from the queue.
pub(crate) struct Received<T> {
    pub(crate) sample: T,
    /// Time at which it was taken.
    pub(crate) now: Now,
    /// Dropped after the sample was used.
    pub(crate) guard: DeliveryGuard,
}

/// Reads a topic, or the topics of a pattern, as messages of type `M`. It has one reader at a time.
///
/// ```
/// use std::time::Duration;
/// use viaduct_bus::{Bus, Qos, Recv};
/// use viaduct_messages::foxglove::Log;
///
/// let bus = Bus::new("vehicle-1");
/// let logs = bus.subscribe::<Log>("log", Qos::keep_last(8), "reader")?;
/// bus.publisher::<Log>("log", Qos::keep_last(8), "writer")?.publish(Log::default())?;
/// assert!(matches!(logs.recv_timeout(Duration::from_secs(1)), Recv::Sample(_)));
/// assert!(matches!(logs.recv_timeout(Duration::ZERO), Recv::TimedOut));
/// bus.close();
/// assert!(matches!(logs.recv_timeout(Duration::ZERO), Recv::Closed));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Subscriber<M> {
    inner: UntypedSubscriber,
    message: PhantomData<fn() -> M>,
}

impl<M: Message> Subscriber<M> {
    pub(crate) fn new(inner: UntypedSubscriber) -> Self {
        Self { inner, message: PhantomData }
    }

    /// Returns the next sample, or `None` if the queue is empty.
    #[must_use]
    pub fn try_recv(&self) -> Option<Sample<M>> {
        self.inner.take(Sample::read).map(|taken| taken.sample)
    }

    /// Waits for the next sample. Returns `None` if the bus is closed and the queue is empty.
    pub async fn recv(&self) -> Option<Sample<M>> {
        self.inner.take_async(Sample::read).await
    }

    /// Blocks this thread until a sample is received, at most for `timeout`.
    #[must_use]
    pub fn recv_timeout(&self, timeout: Duration) -> Recv<Sample<M>> {
        self.inner.take_within(timeout, Sample::read)
    }

    /// Returns the QoS events of this subscriber.
    #[must_use]
    pub fn events(&self) -> Events {
        self.inner.events()
    }

    /// Returns the next sample, or `None` if the queue is empty.
    pub(crate) fn take(&self) -> Option<Received<Sample<M>>> {
        self.inner.take(Sample::read)
    }

    pub(crate) fn subscription(&self) -> &Arc<Subscription> {
        &self.inner.subscription
    }
}

/// Reads a topic, or the topics of a pattern, without knowing the type. It has one reader at a time.
pub struct UntypedSubscriber {
    subscription: Arc<Subscription>,
    endpoint: Arc<Endpoint>,
    /// Name in the stamps of taken samples; empty for an observer, which is not on the path of a message.
    hop: HopName,
}

impl UntypedSubscriber {
    pub(crate) fn new(subscription: Arc<Subscription>, endpoint: Arc<Endpoint>) -> Self {
        let hop = match subscription.role {
            Role::Reader => HopName::new(&subscription.owner),
            Role::Observer => HopName::default(),
        };
        Self { subscription, endpoint, hop }
    }

    /// Returns the next sample, or `None` if the queue is empty.
    #[must_use]
    pub fn try_recv(&self) -> Option<UntypedSample> {
        self.take(untyped).map(|taken| taken.sample)
    }

    /// Waits for the next sample. Returns `None` if the bus is closed and the queue is empty.
    pub async fn recv(&self) -> Option<UntypedSample> {
        self.take_async(untyped).await
    }

    /// Blocks this thread until a sample is received, at most for `timeout`.
    #[must_use]
    pub fn recv_timeout(&self, timeout: Duration) -> Recv<UntypedSample> {
        self.take_within(timeout, untyped)
    }

    /// Returns the QoS events of this subscriber.
    #[must_use]
    pub fn events(&self) -> Events {
        self.subscription.events.reader()
    }

    /// Returns the next sample that can be read, or `None` if there is none.
    #[inline]
    pub(crate) fn take<T>(
        &self,
        read: impl Fn(BodyRef, HopStamp) -> Result<T, Undecodable> + Copy,
    ) -> Option<Received<T>> {
        if self.subscription.queued() == 0 {
            return None;
        }
        let now = self.endpoint.clock.now();
        self.subscription.take(now, self.hop, read).map(|(sample, guard)| Received { sample, now, guard })
    }

    pub(crate) fn take_untyped(&self) -> Option<Received<UntypedSample>> {
        self.take(untyped)
    }

    async fn take_async<T>(&self, read: impl Fn(BodyRef, HopStamp) -> Result<T, Undecodable>) -> Option<T> {
        loop {
            let queued = poll_fn(|context| self.subscription.poll_pop(context)).await?;
            if let Some((sample, _)) = queued.read(self.endpoint.clock.now(), self.hop, &read) {
                return Some(sample);
            }
        }
    }

    fn take_within<T>(&self, timeout: Duration, read: impl Fn(BodyRef, HopStamp) -> Result<T, Undecodable>) -> Recv<T> {
        let deadline = Instant::now() + timeout;
        loop {
            match self.recv_until(deadline) {
                Recv::Sample(queued) => {
                    if let Some((sample, _)) = queued.read(self.endpoint.clock.now(), self.hop, &read) {
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

fn untyped(body: BodyRef, taken: HopStamp) -> Result<UntypedSample, Undecodable> {
    Ok(UntypedSample::new(body, taken))
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

/// A reader that observes topics without taking part in the node's work. It is never woken and gets each sample after
/// all subscribers. Its queue holds at most one sample, besides those that its owner has taken. Samples that it does
/// not receive are [missed](Self::missed), not dropped.
pub struct Observer {
    /// Declared first: its sample is released before another observer can take the permit.
    inner: UntypedSubscriber,
    _place: ObserverPermit,
}

/// The right to be one of the observers of a bus.
pub(crate) struct ObserverPermit(Arc<AtomicUsize>);

impl ObserverPermit {
    /// Takes a permit; `attached` counts those that are taken. Returns `None` if all are taken.
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

    /// Returns the newest sample that was not read yet, or `None` if there is none.
    #[must_use]
    pub fn try_recv(&self) -> Option<UntypedSample> {
        self.inner.try_recv()
    }

    /// Returns the number of samples that were published and that this observer did not see.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.inner.subscription.missed()
    }
}
