//! The reading end of topics.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use atomic_waker::AtomicWaker;
use crossbeam_queue::ArrayQueue;
use viaduct_messages::Message;

use crate::bus::Inner;
use crate::clock;
use crate::qos::{Qos, Reliability};
use crate::sample::{Body, Sample, UntypedSample};
use crate::stats::{Latency, SubscriptionSnapshot, Total};

/// Why a subscriber did not get a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// Best effort: the queue was full and its oldest sample made room.
    Overwritten,
    /// Reliable: the queue stayed full for as long as the publisher would wait.
    QueueFull,
    /// The octets were not a message of the topic's type.
    Undecodable,
}

impl DropReason {
    const ALL: [Self; 3] = [Self::Overwritten, Self::QueueFull, Self::Undecodable];

    /// The name in metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Overwritten => "overwritten",
            Self::QueueFull => "queue_full",
            Self::Undecodable => "undecodable",
        }
    }
}

/// Somebody who must run when a sample has come.
pub(crate) trait Notify: Send + Sync {
    fn notify(self: Arc<Self>);
}

/// The shared middle of a subscription: publishers push, one reader pops.
pub(crate) struct Subscription {
    pub(crate) owner: Arc<str>,
    pub(crate) pattern: Arc<str>,
    pub(crate) qos: Qos,
    queue: ArrayQueue<Arc<Body>>,
    /// The executor's callback group that reads, where there is one. Weak: the group owns this subscription.
    group: OnceLock<Weak<dyn Notify>>,
    /// The async reader that waits, where there is one.
    reader: AtomicWaker,
    /// Publishers that wait for room.
    room: Room,
    closed: AtomicBool,
    pub(crate) delivered: Total,
    dropped: [Total; DropReason::ALL.len()],
    pub(crate) latency: Latency,
}

#[derive(Default)]
struct Room {
    waiting: AtomicUsize,
    lock: Mutex<Vec<Waker>>,
    made: Condvar,
}

impl Subscription {
    pub(crate) fn new(owner: &str, pattern: &str, qos: Qos) -> Self {
        Self {
            owner: owner.into(),
            pattern: pattern.into(),
            qos,
            queue: ArrayQueue::new(qos.depth()),
            group: OnceLock::new(),
            reader: AtomicWaker::new(),
            room: Room::default(),
            closed: AtomicBool::new(false),
            delivered: Total::default(),
            dropped: Default::default(),
            latency: Latency::default(),
        }
    }

    /// Puts a sample into the queue; gives it back when the queue is full and the subscriber must not miss it.
    pub(crate) fn push(&self, body: Arc<Body>) -> Result<(), Arc<Body>> {
        self.enqueue(body)?;
        self.wake();
        Ok(())
    }

    /// The same without waking the reader, for a caller that holds a lock: an inline reader runs where it is woken.
    pub(crate) fn enqueue(&self, body: Arc<Body>) -> Result<(), Arc<Body>> {
        match self.qos.reliability {
            Reliability::BestEffort => {
                if self.queue.force_push(body).is_some() {
                    self.count_drop(DropReason::Overwritten);
                }
            }
            Reliability::Reliable { .. } => self.queue.push(body)?,
        }
        Ok(())
    }

    /// Puts a sample into the queue and waits for room; gives it back when there was none in time.
    pub(crate) fn push_blocking(&self, mut body: Arc<Body>, timeout: Duration) -> Result<(), Arc<Body>> {
        let deadline = Instant::now() + timeout;
        let mut guard = self.room.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.room.waiting.fetch_add(1, Ordering::SeqCst);
        let outcome = loop {
            body = match self.enqueue(body) {
                Ok(()) => break Ok(()),
                Err(body) => body,
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || self.is_closed() {
                break Err(body);
            }
            (guard, _) = self.room.made.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner);
        };
        self.room.waiting.fetch_sub(1, Ordering::SeqCst);
        drop(guard);
        if outcome.is_ok() {
            self.wake();
        }
        outcome
    }

    /// Puts a sample into the queue, or leaves `context` to be woken when there may be room.
    pub(crate) fn poll_push(&self, body: Arc<Body>, context: &Context<'_>) -> Result<(), Arc<Body>> {
        let body = match self.push(body) {
            Ok(()) => return Ok(()),
            Err(body) => body,
        };
        let mut wakers = self.room.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if wakers.is_empty() {
            self.room.waiting.fetch_add(1, Ordering::SeqCst);
        }
        wakers.push(context.waker().clone());
        drop(wakers);
        // Room may have been made between the first try and the registration.
        self.push(body)
    }

    /// The next sample of the queue.
    pub(crate) fn pop(&self) -> Option<Arc<Body>> {
        let body = self.queue.pop()?;
        if self.room.waiting.load(Ordering::SeqCst) > 0 {
            self.tell_waiting_publishers();
        }
        self.delivered.add(1);
        self.latency.record(clock::mono().since(body.meta.published));
        Some(body)
    }

    fn tell_waiting_publishers(&self) {
        let mut wakers = self.room.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if !wakers.is_empty() {
            self.room.waiting.fetch_sub(1, Ordering::SeqCst);
        }
        let woken = std::mem::take(&mut *wakers);
        drop(wakers);
        self.room.made.notify_all();
        woken.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn count_drop(&self, reason: DropReason) {
        self.dropped[reason as usize].add(1);
    }

    pub(crate) fn dropped_total(&self) -> u64 {
        self.dropped.iter().map(Total::value).sum()
    }

    pub(crate) fn totals(&self) -> impl Iterator<Item = &Total> {
        std::iter::once(&self.delivered).chain(&self.dropped)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Makes a callback group the reader. Samples that are there already wake it at once.
    pub(crate) fn attach(&self, group: Weak<dyn Notify>) {
        if self.group.set(group).is_ok() && !self.queue.is_empty() {
            self.wake();
        }
    }

    /// No more samples will come; what is in the queue can still be taken.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.tell_waiting_publishers();
        self.wake();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    pub(crate) fn wake(&self) {
        match self.group.get() {
            Some(group) => group.upgrade().into_iter().for_each(Notify::notify),
            None => self.reader.wake(),
        }
    }

    fn poll_pop(&self, context: &Context<'_>) -> Poll<Option<Arc<Body>>> {
        if let Some(body) = self.pop() {
            return Poll::Ready(Some(body));
        }
        self.reader.register(context.waker());
        // A sample or the end may have come between the look and the registration.
        let closed = self.is_closed();
        match self.pop() {
            Some(body) => Poll::Ready(Some(body)),
            None if closed => Poll::Ready(None),
            None => Poll::Pending,
        }
    }

    pub(crate) fn snapshot(&self) -> SubscriptionSnapshot {
        let counts = DropReason::ALL.map(|reason| (reason.label(), self.dropped[reason as usize].value()));
        SubscriptionSnapshot {
            subscriber: self.owner.to_string(),
            pattern: self.pattern.to_string(),
            delivered: self.delivered.value(),
            queued: self.queue.len(),
            dropped: counts.into_iter().filter(|(_, count)| *count > 0).collect::<BTreeMap<_, _>>(),
            recent: self.latency.recent(),
            total: self.latency.total(),
        }
    }
}

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
        loop {
            let body = self.inner.subscription.pop()?;
            if let Some(sample) = self.read(body) {
                return Some(sample);
            }
        }
    }

    /// Waits for the next sample; `None` when the bus is closed and the queue empty.
    pub async fn recv(&self) -> Option<Sample<M>> {
        loop {
            let body = poll_fn(|context| self.inner.subscription.poll_pop(context)).await?;
            if let Some(sample) = self.read(body) {
                return Some(sample);
            }
        }
    }

    /// Blocks this thread until a sample comes, at most for `timeout`.
    #[must_use]
    pub fn recv_timeout(&self, timeout: Duration) -> Recv<Sample<M>> {
        let deadline = Instant::now() + timeout;
        loop {
            match self.inner.recv_until(deadline) {
                Recv::Sample(untyped) => match untyped.typed::<M>() {
                    Ok(sample) => return Recv::Sample(sample),
                    Err(_) => self.inner.subscription.count_drop(DropReason::Undecodable),
                },
                Recv::TimedOut => return Recv::TimedOut,
                Recv::Closed => return Recv::Closed,
            }
        }
    }

    fn read(&self, body: Arc<Body>) -> Option<Sample<M>> {
        let read = Sample::read(body);
        if read.is_err() {
            self.inner.subscription.count_drop(DropReason::Undecodable);
        }
        read.ok()
    }

    pub(crate) fn subscription(&self) -> &Arc<Subscription> {
        &self.inner.subscription
    }
}

/// Reads a topic, or the topics of a pattern, without knowing the type. One reader at a time.
pub struct UntypedSubscriber {
    subscription: Arc<Subscription>,
    bus: Arc<Inner>,
}

impl UntypedSubscriber {
    pub(crate) fn new(subscription: Arc<Subscription>, bus: Arc<Inner>) -> Self {
        Self { subscription, bus }
    }

    /// The next sample, where one is there.
    #[must_use]
    pub fn try_recv(&self) -> Option<UntypedSample> {
        self.subscription.pop().map(UntypedSample::new)
    }

    /// Waits for the next sample; `None` when the bus is closed and the queue empty.
    pub async fn recv(&self) -> Option<UntypedSample> {
        poll_fn(|context| self.subscription.poll_pop(context)).await.map(UntypedSample::new)
    }

    /// Blocks this thread until a sample comes, at most for `timeout`.
    #[must_use]
    pub fn recv_timeout(&self, timeout: Duration) -> Recv<UntypedSample> {
        self.recv_until(Instant::now() + timeout)
    }

    fn recv_until(&self, deadline: Instant) -> Recv<UntypedSample> {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let context = Context::from_waker(&waker);
        loop {
            match self.subscription.poll_pop(&context) {
                Poll::Ready(Some(body)) => return Recv::Sample(UntypedSample::new(body)),
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

impl Drop for UntypedSubscriber {
    fn drop(&mut self) {
        self.subscription.close();
        self.bus.unsubscribe(&self.subscription);
    }
}

/// Wakes a thread that waits for a sample.
struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
