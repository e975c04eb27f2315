//! The shared middle of a subscription: publishers push, one reader pops.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use atomic_waker::AtomicWaker;
use viaduct_units::Mono;

use crate::deadline::Deadline;
use crate::events::EventSlot;
use crate::latency::Latency;
use crate::qos::Qos;
use crate::queue::Queue;
use crate::sample::BodyRef;
use crate::stats::{SubscriptionSnapshot, Total};
use crate::type_info::Undecodable;

/// Why a subscriber did not get a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// Keep last: the queue was full and its oldest sample made room.
    Overwritten,
    /// Keep all: the queue stayed full for as long as the publisher would wait.
    QueueFull,
    /// The sample waited in the queue for longer than its lifespan.
    Expired,
    /// The octets were not a message of the topic's type.
    Undecodable,
    /// The subscription ended before the sample was taken.
    Closed,
}

impl DropReason {
    const ALL: [Self; 5] = [Self::Overwritten, Self::QueueFull, Self::Expired, Self::Undecodable, Self::Closed];

    /// The name in metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Overwritten => "overwritten",
            Self::QueueFull => "queue_full",
            Self::Expired => "expired",
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
    /// Of an observer: what it misses counts here and nowhere else.
    missed: Option<Arc<Total>>,
    pub(crate) deadline: Option<Deadline>,
}

impl Account {
    /// The account of a subscription at a topic whose drops are counted in `dropped`.
    pub(crate) fn new(subscription: &Subscription, dropped: &Arc<Total>) -> Arc<Self> {
        let deadline = subscription.qos.deadline.map(Deadline::new);
        let missed = (subscription.role == Role::Observer).then(|| Arc::clone(&subscription.missed));
        Arc::new(Self { topic_dropped: Arc::clone(dropped), missed, deadline, ..Self::default() })
    }

    /// Counts a sample that the subscriber does not get.
    pub(crate) fn count_drop(&self, reason: DropReason) {
        if let Some(missed) = &self.missed {
            missed.add(1);
            return;
        }
        self.dropped[reason as usize].add(1);
        self.topic_dropped.add(1);
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
    pub(crate) body: BodyRef,
    pub(crate) account: Arc<Account>,
}

impl Queued {
    /// Takes the sample for its reader, or counts it as one that is too old or could not be read.
    pub(crate) fn read<T>(
        self,
        now: Mono,
        read: impl FnOnce(BodyRef) -> Result<T, Undecodable>,
    ) -> Option<(T, Delivery)> {
        let Self { body, account } = self;
        if body.is_expired(now) {
            account.count_drop(DropReason::Expired);
            return None;
        }
        let latency = now.since(body.meta.published);
        match read(body) {
            Ok(sample) => {
                account.delivered.add(1);
                Some((sample, Delivery { account, latency }))
            }
            Err(_) => {
                account.count_drop(DropReason::Undecodable);
                None
            }
        }
    }
}

/// A sample was delivered. Its latency is recorded when this is dropped: by then the reader has the sample in its hands, or
/// its callback has run, and does not wait for the record.
pub(crate) struct Delivery {
    account: Arc<Account>,
    latency: Duration,
}

impl Drop for Delivery {
    fn drop(&mut self) {
        self.account.latency.get_or_init(Latency::default).record(self.latency);
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
    pub(crate) fn queued(&self, body: &BodyRef) -> Queued {
        Queued { body: body.clone(), account: Arc::clone(&self.account) }
    }

    pub(crate) fn snapshot(&self, now: Mono) -> SubscriptionSnapshot {
        let Account { delivered, dropped, queued, latency, deadline, .. } = &*self.account;
        let counts = DropReason::ALL.map(|reason| (reason.label(), dropped[reason as usize].value()));
        SubscriptionSnapshot {
            subscriber: self.subscription.owner.to_string(),
            pattern: self.subscription.pattern.to_string(),
            qos: self.subscription.qos,
            delivered: delivered.value(),
            queued: queued.load(Ordering::Relaxed),
            dropped: counts.into_iter().filter(|(_, count)| *count > 0).collect::<BTreeMap<_, _>>(),
            deadline_missed: deadline.as_ref().map(|deadline| deadline.missed(now)),
            recent: latency.get().map(Latency::recent).unwrap_or_default(),
            total: latency.get().map(Latency::total).unwrap_or_default(),
        }
    }
}

/// What a subscription is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A part of the node's work.
    Reader,
    /// Somebody who looks on: served last, and what it misses is nobody's loss.
    Observer,
}

/// The shared middle of a subscription: publishers push, one reader pops.
pub(crate) struct Subscription {
    pub(crate) owner: Arc<str>,
    pub(crate) pattern: Arc<str>,
    pub(crate) qos: Qos,
    pub(crate) role: Role,
    pub(crate) events: EventSlot,
    /// What an observer did not see, of all its topics.
    missed: Arc<Total>,
    /// Holds accounts and no ends, which would keep this subscription.
    queue: Queue<Queued>,
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
    pub(crate) fn new(owner: &str, pattern: &str, qos: Qos, role: Role) -> Self {
        Self {
            owner: owner.into(),
            pattern: pattern.into(),
            qos,
            role,
            events: EventSlot::default(),
            missed: Arc::default(),
            queue: Queue::new(qos.depth()),
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
        let overwrites = self.qos.overwrites();
        let left_out = if overwrites { self.queue.force_push(sample) } else { self.queue.push(sample).err() };
        let Some(left_out) = left_out else {
            return Ok(());
        };
        left_out.account.queued.fetch_sub(1, Ordering::Relaxed);
        if !overwrites {
            return Err(left_out);
        }
        left_out.account.count_drop(DropReason::Overwritten);
        Ok(())
    }

    /// Samples that an observer did not see.
    pub(crate) fn missed(&self) -> u64 {
        self.missed.value()
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
    pub(crate) fn pop(&self) -> Option<Queued> {
        let sample = self.queue.pop()?;
        sample.account.queued.fetch_sub(1, Ordering::Relaxed);
        if self.room.waiting.load(Ordering::SeqCst) > 0 {
            self.tell_waiting_publishers();
        }
        Some(sample)
    }

    /// The next sample that can be read, as it is read at `now`; those before it are counted.
    pub(crate) fn take<T>(&self, now: Mono, read: impl Fn(BodyRef) -> Result<T, Undecodable>) -> Option<(T, Delivery)> {
        loop {
            if let Some(delivered) = self.pop()?.read(now, &read) {
                return Some(delivered);
            }
        }
    }

    /// Counts what nobody will take any more.
    pub(crate) fn discard(&self) {
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
        if self.group.set(group).is_ok() && self.queue.len() > 0 {
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

    pub(crate) fn poll_pop(&self, context: &Context<'_>) -> Poll<Option<Queued>> {
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
