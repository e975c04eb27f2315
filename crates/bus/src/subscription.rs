//! A subscription: publishers enqueue, one reader takes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use atomic_waker::AtomicWaker;
use viaduct_units::{Mono, Now};

use crate::clock;
use crate::deadline::Deadline;
use crate::events::EventSlot;
use crate::futex::Futex;
use crate::latency::Latency;
use crate::meta::{HopKind, HopName, HopStamp};
use crate::notify::Notify;
use crate::prefetch::PrefetchSet;
use crate::qos::Qos;
use crate::queue::{PriorityMutex, Queue};
use crate::sample::BodyRef;
use crate::stats::SubscriptionSnapshot;
use crate::total::Total;
use crate::type_info::Undecodable;

/// A reason for which a subscriber did not get a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// Keep last: the queue was full and the oldest sample was overwritten.
    Overwritten,
    /// Keep all: the queue stayed full for as long as the publisher waits.
    QueueFull,
    /// The sample waited in the queue for longer than its lifespan.
    Expired,
    /// The bytes were not a message of the topic's type.
    Undecodable,
    /// The subscription ended before the sample was taken.
    Closed,
}

impl DropReason {
    const ALL: [Self; 5] = [Self::Overwritten, Self::QueueFull, Self::Expired, Self::Undecodable, Self::Closed];

    /// Returns the name in metrics.
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

/// Statistics of one topic's samples for one subscription: each sample is delivered, dropped or queued, and counted
/// once. The fields that every sample touches come first.
#[derive(Default)]
#[repr(C)]
pub(crate) struct DeliveryStats {
    queued: AtomicUsize,
    delivered: Total,
    pub(crate) deadline: Option<Deadline>,
    /// Created by the first sample: a wide pattern has many topics without samples.
    latency: OnceLock<Latency>,
    /// Drops of the topic, including those of subscriptions that have ended.
    topic_dropped: Arc<Total>,
    /// For an observer: the samples that it misses are counted here and nowhere else.
    missed: Option<Arc<Total>>,
    dropped: [Total; DropReason::ALL.len()],
}

impl DeliveryStats {
    /// Creates the statistics of a subscription to a topic whose drops are counted in `dropped`.
    pub(crate) fn new(subscription: &Subscription, dropped: &Arc<Total>) -> Arc<Self> {
        let deadline = subscription.qos.deadline.map(Deadline::new);
        let missed = (subscription.role == Role::Observer).then(|| Arc::clone(&subscription.missed));
        Arc::new(Self { topic_dropped: Arc::clone(dropped), missed, deadline, ..Self::default() })
    }

    /// Counts a sample that the subscriber does not get.
    #[cold]
    pub(crate) fn count_drop(&self, reason: DropReason) {
        if let Some(missed) = &self.missed {
            missed.add(1);
            return;
        }
        self.dropped[reason as usize].add(1);
        self.topic_dropped.add(1);
    }

    /// Closes the window of the counters and of the latency.
    pub(crate) fn tick(&self, seconds: f64) {
        self.delivered.tick(seconds);
        for total in &self.dropped {
            total.tick(seconds);
        }
        if let Some(latency) = self.latency.get() {
            latency.tick();
        }
    }
}

/// A sample in the queue of one subscription, with the statistics that count it.
pub(crate) struct Queued {
    pub(crate) body: BodyRef,
    pub(crate) stats: Arc<DeliveryStats>,
    /// `true` if the time in the queue is the latency of the sample.
    pub(crate) measured: bool,
}

impl Queued {
    /// Reads the sample for a component. Counts a drop and returns `None` if it has expired or cannot be decoded.
    #[inline]
    pub(crate) fn read<T>(
        self,
        now: Now,
        reader: HopName,
        read: impl FnOnce(BodyRef, HopStamp) -> Result<T, Undecodable>,
    ) -> Option<(T, DeliveryGuard)> {
        let Self { body, stats, measured } = self;
        if body.is_expired(now.mono) {
            stats.count_drop(DropReason::Expired);
            return None;
        }
        let latency = measured.then(|| now.mono.since(body.meta.published));
        match read(body, HopStamp::new(reader, HopKind::Taken, now.tai)) {
            Ok(sample) => {
                stats.delivered.add(1);
                Some((sample, DeliveryGuard { stats, latency }))
            }
            Err(_) => {
                stats.count_drop(DropReason::Undecodable);
                None
            }
        }
    }
}

/// Records the latency of a delivered sample when it is dropped. By then the reader has the sample, or its callback has
/// run, and does not wait for the record.
pub(crate) struct DeliveryGuard {
    stats: Arc<DeliveryStats>,
    latency: Option<Duration>,
}

impl Drop for DeliveryGuard {
    fn drop(&mut self) {
        if let Some(latency) = self.latency {
            self.stats.latency.get_or_init(Latency::default).record(latency);
        }
    }
}

/// One subscription to one topic.
#[derive(Clone)]
pub(crate) struct SubscriberEntry {
    pub(crate) subscription: Arc<Subscription>,
    pub(crate) stats: Arc<DeliveryStats>,
}

impl SubscriberEntry {
    /// Wraps a sample of the topic for this subscription's queue.
    #[inline]
    pub(crate) fn queued(&self, body: &BodyRef) -> Queued {
        Queued { body: body.clone(), stats: Arc::clone(&self.stats), measured: true }
    }

    /// Collects the cache lines that a sample touches from here to its callback.
    pub(crate) fn collect_lines(&self, lines: &mut PrefetchSet) {
        self.subscription.collect_lines(lines);
        lines.add_shared(&*self.stats, &self.stats.delivered);
    }

    pub(crate) fn snapshot(&self, now: Mono) -> SubscriptionSnapshot {
        let DeliveryStats { delivered, dropped, queued, latency, deadline, .. } = &*self.stats;
        let counts = DropReason::ALL.map(|reason| (reason.label(), dropped[reason as usize].value()));
        SubscriptionSnapshot {
            subscriber: self.subscription.owner.to_string(),
            pattern: self.subscription.pattern.to_string(),
            qos: self.subscription.qos,
            observer: self.subscription.role == Role::Observer,
            delivered: delivered.value(),
            queued: queued.load(Ordering::Relaxed),
            dropped: counts.into_iter().filter(|(_, count)| *count > 0).collect::<BTreeMap<_, _>>(),
            deadline_missed: deadline.as_ref().map(|deadline| deadline.missed(now)),
            recent: latency.get().map(Latency::recent).unwrap_or_default(),
            total: latency.get().map(Latency::total).unwrap_or_default(),
        }
    }
}

/// Role of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Takes part in the node's work.
    Reader,
    /// Observes: it is served last, and the samples that it misses are not drops.
    Observer,
}

/// The shared part of a subscription. The fields that every sample touches come first.
#[repr(C)]
pub(crate) struct Subscription {
    closed: AtomicBool,
    /// Holds statistics and no [`SubscriberEntry`], which would keep this subscription alive.
    queue: Queue<Queued>,
    /// The callback group that reads, if an executor runs it. Weak, because the group owns this subscription.
    group: OnceLock<AttachedGroup>,
    /// The async reader that waits, if there is one.
    reader: AtomicWaker,
    pub(crate) qos: Qos,
    blocked: BlockedPublishers,
    pub(crate) role: Role,
    pub(crate) owner: Arc<str>,
    pub(crate) pattern: Arc<str>,
    /// `true` if the reader relies on the type of the samples.
    pub(crate) is_typed: bool,
    pub(crate) events: EventSlot,
    /// Samples of all its topics that an observer did not see.
    missed: Arc<Total>,
}

struct AttachedGroup {
    notify: Weak<dyn Notify>,
    /// `true` if the group runs on the thread that notifies it.
    inline: bool,
}

/// Publishers that wait for a free slot: threads wait until `freed` changes, tasks leave their wakers. A reader never
/// waits for them.
#[repr(C)]
struct BlockedPublishers {
    /// Number of waiting threads, plus one if any task waits.
    waiting: AtomicUsize,
    freed: Futex,
    wakers: PriorityMutex<Vec<Waker>>,
}

impl Subscription {
    pub(crate) fn new(owner: &str, pattern: &str, qos: Qos, role: Role, is_typed: bool) -> Self {
        Self {
            is_typed,
            owner: owner.into(),
            pattern: pattern.into(),
            qos,
            role,
            events: EventSlot::default(),
            missed: Arc::default(),
            queue: Queue::new(qos.depth()),
            group: OnceLock::new(),
            reader: AtomicWaker::new(),
            blocked: BlockedPublishers {
                waiting: AtomicUsize::new(0),
                freed: Futex::new(0),
                wakers: PriorityMutex::default(),
            },
            closed: AtomicBool::new(false),
        }
    }

    /// Enqueues a sample and wakes the reader. Returns the sample as an error if the queue is full and keeps all. If
    /// the subscription has ended, the sample is counted as dropped.
    fn enqueue_and_wake(&self, sample: Queued) -> Result<(), Queued> {
        let displaced = self.enqueue(sample)?;
        self.wake();
        drop(displaced);
        Ok(())
    }

    /// Enqueues a sample without waking the reader: an inline reader runs on the thread that wakes it. Returns the
    /// overwritten sample, already counted, so that the caller can drop it after the readers were woken.
    #[inline]
    pub(crate) fn enqueue(&self, sample: Queued) -> Result<Option<Queued>, Queued> {
        if self.is_closed() {
            sample.stats.count_drop(DropReason::Closed);
            return Ok(None);
        }
        // Before the sample is in the queue, because the reader decrements this count.
        sample.stats.queued.fetch_add(1, Ordering::Relaxed);
        if !self.qos.overwrites() {
            if let Err(refused) = self.queue.push(sample) {
                refused.stats.queued.fetch_sub(1, Ordering::Relaxed);
                return Err(refused);
            }
            return Ok(None);
        }
        let displaced = self.queue.push_overwriting(sample);
        if let Some(displaced) = &displaced {
            displaced.stats.queued.fetch_sub(1, Ordering::Relaxed);
            displaced.stats.count_drop(DropReason::Overwritten);
        }
        Ok(displaced)
    }

    /// Returns the number of samples that an observer did not see.
    pub(crate) fn missed(&self) -> u64 {
        self.missed.value()
    }

    /// Enqueues a sample and waits for a free slot until `until`. Returns the sample as an error if no slot became
    /// free.
    pub(crate) fn enqueue_blocking(&self, mut sample: Queued, until: Mono) -> Result<(), Queued> {
        self.blocked.waiting.fetch_add(1, Ordering::SeqCst);
        let outcome = loop {
            // Loaded before the queue is tried: a slot that is freed after the attempt changes the value.
            let freed = self.blocked.freed.load(Ordering::SeqCst);
            sample = match self.enqueue_and_wake(sample) {
                Ok(()) => break Ok(()),
                Err(sample) => sample,
            };
            if clock::mono() >= until {
                break Err(sample);
            }
            self.blocked.freed.wait(freed, Some(until));
        };
        self.blocked.waiting.fetch_sub(1, Ordering::SeqCst);
        outcome
    }

    /// Enqueues a sample, or registers `context` to be woken when a slot may be free.
    pub(crate) fn poll_enqueue(&self, sample: Queued, context: &Context<'_>) -> Result<(), Queued> {
        let sample = match self.enqueue_and_wake(sample) {
            Ok(()) => return Ok(()),
            Err(sample) => sample,
        };
        let mut wakers = self.blocked.wakers.lock();
        if wakers.is_empty() {
            self.blocked.waiting.fetch_add(1, Ordering::SeqCst);
        }
        // A task that is polled again before it is woken must be registered only once.
        if !wakers.iter().any(|known| known.will_wake(context.waker())) {
            wakers.push(context.waker().clone());
        }
        drop(wakers);
        // A slot may have been freed between the first attempt and the registration.
        self.enqueue_and_wake(sample)
    }

    /// Removes a task that no longer waits.
    pub(crate) fn remove_waker(&self, waker: &Waker) {
        let mut wakers = self.blocked.wakers.lock();
        let Some(index) = wakers.iter().position(|known| known.will_wake(waker)) else {
            return;
        };
        let removed = wakers.swap_remove(index);
        if wakers.is_empty() {
            self.blocked.waiting.fetch_sub(1, Ordering::SeqCst);
        }
        // Outside the lock: dropping a waker runs code of the task's runtime.
        drop(wakers);
        drop(removed);
    }

    /// Takes the next sample out of the queue.
    #[inline]
    pub(crate) fn pop(&self) -> Option<Queued> {
        let sample = self.queue.pop()?;
        sample.stats.queued.fetch_sub(1, Ordering::Relaxed);
        if self.blocked.waiting.load(Ordering::SeqCst) > 0 {
            self.notify_waiting_publishers();
        }
        Some(sample)
    }

    /// Returns the next sample that can be read at `now`; samples before it that cannot are counted as drops.
    #[inline]
    pub(crate) fn take<T>(
        &self,
        now: Now,
        reader: HopName,
        read: impl Fn(BodyRef, HopStamp) -> Result<T, Undecodable> + Copy,
    ) -> Option<(T, DeliveryGuard)> {
        loop {
            if let Some(delivered) = self.pop()?.read(now, reader, read) {
                return Some(delivered);
            }
        }
    }

    /// Counts the samples left in the queue as dropped.
    pub(crate) fn discard(&self) {
        while let Some(sample) = self.pop() {
            sample.stats.count_drop(DropReason::Closed);
        }
    }

    #[cold]
    fn notify_waiting_publishers(&self) {
        self.blocked.freed.change();
        let mut wakers = self.blocked.wakers.lock();
        if !wakers.is_empty() {
            self.blocked.waiting.fetch_sub(1, Ordering::SeqCst);
        }
        let woken = std::mem::take(&mut *wakers);
        drop(wakers);
        for waker in woken {
            waker.wake();
        }
    }

    #[inline]
    pub(crate) fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Makes a callback group the reader. Samples already in the queue wake it at once.
    pub(crate) fn attach(&self, notify: Weak<dyn Notify>, inline: bool) {
        // A publisher that did not see the group yet has enqueued its sample before this check.
        if self.group.set(AttachedGroup { notify, inline }).is_ok() && !self.queue.is_empty() {
            self.wake();
        }
    }

    /// Closes the queue; the samples in it can still be taken.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.notify_waiting_publishers();
        self.wake();
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Collects the cache lines that a sample touches from here to its callback.
    pub(crate) fn collect_lines(&self, lines: &mut PrefetchSet) {
        lines.add_shared(self, &self.blocked);
        self.queue.collect_lines(lines, |_, _| {});
        if let Some(group) = self.group.get().and_then(|group| group.notify.upgrade()) {
            group.collect_lines(lines);
        }
    }

    /// Returns `true` if the reader runs on the thread that wakes it.
    #[inline]
    pub(crate) fn runs_inline(&self) -> bool {
        self.group.get().is_some_and(|group| group.inline)
    }

    #[inline]
    pub(crate) fn wake(&self) {
        match self.group.get() {
            Some(group) => {
                if let Some(group) = group.notify.upgrade() {
                    group.notify();
                }
            }
            None => self.reader.wake(),
        }
    }

    pub(crate) fn poll_pop(&self, context: &Context<'_>) -> Poll<Option<Queued>> {
        if let Some(sample) = self.pop() {
            return Poll::Ready(Some(sample));
        }
        self.reader.register(context.waker());
        // A sample or the end may have arrived between the first attempt and the registration.
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
        // A publisher that saw the subscription open may have enqueued after its reader was dropped.
        self.discard();
    }
}
