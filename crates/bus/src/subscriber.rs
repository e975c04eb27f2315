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
use crate::type_info::Undecodable;

/// Why a subscriber did not get a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// Best effort: the queue was full and its oldest sample made room.
    Overwritten,
    /// Reliable: the queue stayed full for as long as the publisher would wait.
    QueueFull,
    /// The octets were not a message of the topic's type.
    Undecodable,
    /// The subscription ended before the sample was taken.
    Closed,
}

impl DropReason {
    const ALL: [Self; 4] = [Self::Overwritten, Self::QueueFull, Self::Undecodable, Self::Closed];

    /// The name in metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Overwritten => "overwritten",
            Self::QueueFull => "queue_full",
            Self::Undecodable => "undecodable",
            Self::Closed => "closed",
        }
    }
}

/// Somebody who must run when a sample has come.
pub(crate) trait Notify: Send + Sync {
    fn notify(self: Arc<Self>);
}

/// What became of the samples of one topic for one subscription: each is delivered, dropped or queued, and counted once.
#[derive(Default)]
pub(crate) struct Account {
    delivered: Total,
    dropped: [Total; DropReason::ALL.len()],
    queued: AtomicUsize,
    /// Made by the first sample: a wide pattern has many topics on which none comes.
    latency: OnceLock<Latency>,
    /// Drops of the topic, those of subscriptions that have ended included.
    topic_dropped: Arc<Total>,
}

impl Account {
    pub(crate) fn of_topic(dropped: &Arc<Total>) -> Arc<Self> {
        Arc::new(Self { topic_dropped: Arc::clone(dropped), ..Self::default() })
    }

    pub(crate) fn count_drop(&self, reason: DropReason) {
        self.dropped[reason as usize].add(1);
        self.topic_dropped.add(1);
    }

    fn count_delivery(&self, latency: Duration) {
        self.delivered.add(1);
        self.latency.get_or_init(Latency::default).record(latency);
    }

    pub(crate) fn totals(&self) -> impl Iterator<Item = &Total> {
        std::iter::once(&self.delivered).chain(&self.dropped)
    }

    pub(crate) fn latency(&self) -> Option<&Latency> {
        self.latency.get()
    }
}

/// A sample for one subscription, with the account that says what became of it.
pub(crate) struct Queued {
    pub(crate) body: Arc<Body>,
    pub(crate) account: Arc<Account>,
}

impl Queued {
    /// Takes the sample for its reader, or counts it as one that could not be read.
    fn read<T>(self, read: impl FnOnce(Arc<Body>) -> Result<T, Undecodable>) -> Option<T> {
        let latency = clock::mono().since(self.body.meta.published);
        match read(self.body) {
            Ok(sample) => {
                self.account.count_delivery(latency);
                Some(sample)
            }
            Err(_) => {
                self.account.count_drop(DropReason::Undecodable);
                None
            }
        }
    }

    fn read_untyped(self) -> UntypedSample {
        self.account.count_delivery(clock::mono().since(self.body.meta.published));
        UntypedSample::new(self.body)
    }
}

/// One subscription at one topic.
#[derive(Clone)]
pub(crate) struct End {
    pub(crate) subscription: Arc<Subscription>,
    pub(crate) account: Arc<Account>,
}

impl End {
    /// A sample of the topic for this subscription.
    pub(crate) fn queued(&self, body: &Arc<Body>) -> Queued {
        Queued { body: Arc::clone(body), account: Arc::clone(&self.account) }
    }

    pub(crate) fn snapshot(&self) -> SubscriptionSnapshot {
        let Account { delivered, dropped, queued, latency, .. } = &*self.account;
        let counts = DropReason::ALL.map(|reason| (reason.label(), dropped[reason as usize].value()));
        SubscriptionSnapshot {
            subscriber: self.subscription.owner.to_string(),
            pattern: self.subscription.pattern.to_string(),
            delivered: delivered.value(),
            queued: queued.load(Ordering::Relaxed),
            dropped: counts.into_iter().filter(|(_, count)| *count > 0).collect::<BTreeMap<_, _>>(),
            recent: latency.get().map(Latency::recent).unwrap_or_default(),
            total: latency.get().map(Latency::total).unwrap_or_default(),
        }
    }
}

/// The shared middle of a subscription: publishers push, one reader pops.
pub(crate) struct Subscription {
    pub(crate) owner: Arc<str>,
    pub(crate) pattern: Arc<str>,
    pub(crate) qos: Qos,
    /// Holds accounts and no ends, which would keep this subscription.
    queue: ArrayQueue<Queued>,
    /// The executor's callback group that reads, where there is one. Weak: the group owns this subscription.
    group: OnceLock<Weak<dyn Notify>>,
    /// The async reader that waits, where there is one.
    reader: AtomicWaker,
    /// Publishers that wait for room.
    room: Room,
    closed: AtomicBool,
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
        }
    }

    /// Puts a sample into the queue; gives it back when the queue is full and the subscriber must not miss it. A
    /// subscription that has ended counts it as lost.
    pub(crate) fn push(&self, sample: Queued) -> Result<(), Queued> {
        self.enqueue(sample)?;
        self.wake();
        Ok(())
    }

    /// The same without waking the reader, for a caller that holds a lock: an inline reader runs where it is woken.
    pub(crate) fn enqueue(&self, sample: Queued) -> Result<(), Queued> {
        if self.is_closed() {
            sample.account.count_drop(DropReason::Closed);
            return Ok(());
        }
        // Before it is in the queue, where the reader counts it out again.
        sample.account.queued.fetch_add(1, Ordering::Relaxed);
        let left_out = match self.qos.reliability {
            Reliability::BestEffort => self.queue.force_push(sample),
            Reliability::Reliable { .. } => self.queue.push(sample).err(),
        };
        let Some(left_out) = left_out else {
            return Ok(());
        };
        left_out.account.queued.fetch_sub(1, Ordering::Relaxed);
        match self.qos.reliability {
            Reliability::BestEffort => {
                left_out.account.count_drop(DropReason::Overwritten);
                Ok(())
            }
            Reliability::Reliable { .. } => Err(left_out),
        }
    }

    /// Puts a sample into the queue and waits for room; gives it back when there was none in time.
    pub(crate) fn push_blocking(&self, mut sample: Queued, timeout: Duration) -> Result<(), Queued> {
        let deadline = Instant::now() + timeout;
        let mut guard = self.room.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.room.waiting.fetch_add(1, Ordering::SeqCst);
        let outcome = loop {
            sample = match self.enqueue(sample) {
                Ok(()) => break Ok(()),
                Err(sample) => sample,
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break Err(sample);
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
    pub(crate) fn poll_push(&self, sample: Queued, context: &Context<'_>) -> Result<(), Queued> {
        let sample = match self.push(sample) {
            Ok(()) => return Ok(()),
            Err(sample) => sample,
        };
        let mut wakers = self.room.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if wakers.is_empty() {
            self.room.waiting.fetch_add(1, Ordering::SeqCst);
        }
        // A task that is polled for other reasons, too, leaves itself once.
        if !wakers.iter().any(|known| known.will_wake(context.waker())) {
            wakers.push(context.waker().clone());
        }
        drop(wakers);
        // Room may have been made between the first try and the registration.
        self.push(sample)
    }

    /// The next sample of the queue.
    fn pop(&self) -> Option<Queued> {
        let sample = self.queue.pop()?;
        sample.account.queued.fetch_sub(1, Ordering::Relaxed);
        if self.room.waiting.load(Ordering::SeqCst) > 0 {
            self.tell_waiting_publishers();
        }
        Some(sample)
    }

    /// Counts what nobody will take any more.
    fn discard(&self) {
        while let Some(sample) = self.pop() {
            sample.account.count_drop(DropReason::Closed);
        }
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

    pub(crate) fn queued(&self) -> usize {
        self.queue.len()
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

    fn poll_pop(&self, context: &Context<'_>) -> Poll<Option<Queued>> {
        if let Some(sample) = self.pop() {
            return Poll::Ready(Some(sample));
        }
        self.reader.register(context.waker());
        // A sample or the end may have come between the look and the registration.
        let closed = self.is_closed();
        match self.pop() {
            Some(sample) => Poll::Ready(Some(sample)),
            None if closed => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        // A publisher that saw the subscription open may have pushed after its reader had gone.
        self.discard();
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
            if let Some(sample) = self.inner.subscription.pop()?.read(Sample::read) {
                return Some(sample);
            }
        }
    }

    /// Waits for the next sample; `None` when the bus is closed and the queue empty.
    pub async fn recv(&self) -> Option<Sample<M>> {
        loop {
            let queued = poll_fn(|context| self.inner.subscription.poll_pop(context)).await?;
            if let Some(sample) = queued.read(Sample::read) {
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
                Recv::Sample(queued) => {
                    if let Some(sample) = queued.read(Sample::read) {
                        return Recv::Sample(sample);
                    }
                }
                Recv::TimedOut => return Recv::TimedOut,
                Recv::Closed => return Recv::Closed,
            }
        }
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
        self.subscription.pop().map(Queued::read_untyped)
    }

    /// Waits for the next sample; `None` when the bus is closed and the queue empty.
    pub async fn recv(&self) -> Option<UntypedSample> {
        poll_fn(|context| self.subscription.poll_pop(context)).await.map(Queued::read_untyped)
    }

    /// Blocks this thread until a sample comes, at most for `timeout`.
    #[must_use]
    pub fn recv_timeout(&self, timeout: Duration) -> Recv<UntypedSample> {
        match self.recv_until(Instant::now() + timeout) {
            Recv::Sample(queued) => Recv::Sample(queued.read_untyped()),
            Recv::TimedOut => Recv::TimedOut,
            Recv::Closed => Recv::Closed,
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

impl Drop for UntypedSubscriber {
    fn drop(&mut self) {
        self.subscription.close();
        self.subscription.discard();
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
