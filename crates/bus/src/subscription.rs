//! The shared middle of a subscription: publishers push, one reader pops.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use atomic_waker::AtomicWaker;
use viaduct_units::Mono;

use crate::clock;
use crate::deadline::Deadline;
use crate::events::EventSlot;
use crate::futex::Futex;
use crate::latency::Latency;
use crate::notify::Notify;
use crate::prefetch::PrefetchSet;
use crate::qos::Qos;
use crate::queue::{PriorityMutex, Queue};
use crate::sample::BodyRef;
use crate::stats::SubscriptionSnapshot;
use crate::total::Total;
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
    /// The bytes were not a message of the topic's type.
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

/// What became of the samples of one topic for one subscription: each is delivered, dropped or queued, and counted once.
/// What each sample touches comes first.
#[derive(Default)]
#[repr(C)]
pub(crate) struct DeliveryStats {
    queued: AtomicUsize,
    delivered: Total,
    pub(crate) deadline: Option<Deadline>,
    /// Made by the first sample: a wide pattern has many topics on which none comes.
    latency: OnceLock<Latency>,
    /// Drops of the topic, those of subscriptions that have ended included.
    topic_dropped: Arc<Total>,
    /// Of an observer: what it misses counts here and nowhere else.
    missed: Option<Arc<Total>>,
    dropped: [Total; DropReason::ALL.len()],
}

impl DeliveryStats {
    /// The account of a subscription at a topic whose drops are counted in `dropped`.
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
    pub(crate) stats: Arc<DeliveryStats>,
    /// Whether the time in the queue is the latency of the sample.
    pub(crate) measured: bool,
}

impl Queued {
    /// Takes the sample for its reader, or counts it as one that is too old or could not be read.
    #[inline]
    pub(crate) fn read<T>(
        self,
        now: Mono,
        read: impl FnOnce(BodyRef) -> Result<T, Undecodable>,
    ) -> Option<(T, DeliveryGuard)> {
        let Self { body, stats, measured } = self;
        if body.is_expired(now) {
            stats.count_drop(DropReason::Expired);
            return None;
        }
        let latency = measured.then(|| now.since(body.meta.published));
        match read(body) {
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

/// A sample was delivered. Its latency is recorded when this is dropped: by then the reader has the sample in its hands, or
/// its callback has run, and does not wait for the record.
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

/// One subscription at one topic.
#[derive(Clone)]
pub(crate) struct SubscriberEntry {
    pub(crate) subscription: Arc<Subscription>,
    pub(crate) stats: Arc<DeliveryStats>,
}

impl SubscriberEntry {
    /// A sample of the topic for this subscription.
    #[inline]
    pub(crate) fn queued(&self, body: &BodyRef) -> Queued {
        Queued { body: body.clone(), stats: Arc::clone(&self.stats), measured: true }
    }

    /// Adds what a sample needs from here to its callback.
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

/// What a subscription is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A part of the node's work.
    Reader,
    /// Somebody who looks on: served last, and what it misses is nobody's loss.
    Observer,
}

/// The shared middle of a subscription: publishers push, one reader pops. What each sample touches comes first.
#[repr(C)]
pub(crate) struct Subscription {
    closed: AtomicBool,
    /// Holds stats and no ends, which would keep this subscription.
    queue: Queue<Queued>,
    /// The executor's callback group that reads, where there is one. Weak: the group owns this subscription.
    group: OnceLock<Group>,
    /// The async reader that waits, where there is one.
    reader: AtomicWaker,
    pub(crate) qos: Qos,
    /// Publishers that wait for room.
    room: Room,
    pub(crate) role: Role,
    pub(crate) owner: Arc<str>,
    pub(crate) pattern: Arc<str>,
    pub(crate) events: EventSlot,
    /// What an observer did not see, of all its topics.
    missed: Arc<Total>,
}

struct Group {
    notify: Weak<dyn Notify>,
    /// Whether it runs on the thread of whoever notifies.
    inline: bool,
}

/// Publishers that wait for room: threads for `made` to change, tasks by their wakers. A reader never waits for them.
#[repr(C)]
struct Room {
    /// Threads, and one for all tasks together.
    waiting: AtomicUsize,
    freed: Futex,
    wakers: PriorityMutex<Vec<Waker>>,
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
            room: Room { waiting: AtomicUsize::new(0), freed: Futex::new(0), wakers: PriorityMutex::default() },
            closed: AtomicBool::new(false),
        }
    }

    /// Puts a sample into the queue and wakes the reader; gives it back when the queue is full and keeps all. A subscription
    /// that has ended counts it as lost.
    fn enqueue_and_wake(&self, sample: Queued) -> Result<(), Queued> {
        let displaced = self.enqueue(sample)?;
        self.wake();
        drop(displaced);
        Ok(())
    }

    /// The same without waking the reader, who runs where it is woken if it is inline. What made room is counted, and given
    /// back to be dropped when nobody waits for the caller.
    #[inline]
    pub(crate) fn enqueue(&self, sample: Queued) -> Result<Option<Queued>, Queued> {
        if self.is_closed() {
            sample.stats.count_drop(DropReason::Closed);
            return Ok(None);
        }
        // Before it is in the queue, where the reader counts it out again.
        sample.stats.queued.fetch_add(1, Ordering::Relaxed);
        if !self.qos.overwrites() {
            let refused = self.queue.push(sample);
            return refused
                .map(|()| None)
                .inspect_err(|sample| _ = sample.stats.queued.fetch_sub(1, Ordering::Relaxed));
        }
        let displaced = self.queue.push_overwriting(sample);
        if let Some(displaced) = &displaced {
            displaced.stats.queued.fetch_sub(1, Ordering::Relaxed);
            displaced.stats.count_drop(DropReason::Overwritten);
        }
        Ok(displaced)
    }

    /// Samples that an observer did not see.
    pub(crate) fn missed(&self) -> u64 {
        self.missed.value()
    }

    /// Puts a sample into the queue and waits for room; gives it back when there was none in time.
    pub(crate) fn enqueue_blocking(&self, mut sample: Queued, until: Mono) -> Result<(), Queued> {
        self.room.waiting.fetch_add(1, Ordering::SeqCst);
        let outcome = loop {
            // Read before the queue is looked at: room that is made after the look changes it.
            let freed = self.room.freed.load(Ordering::SeqCst);
            sample = match self.enqueue_and_wake(sample) {
                Ok(()) => break Ok(()),
                Err(sample) => sample,
            };
            if clock::mono() >= until {
                break Err(sample);
            }
            self.room.freed.wait(freed, Some(until));
        };
        self.room.waiting.fetch_sub(1, Ordering::SeqCst);
        outcome
    }

    /// Puts a sample into the queue, or leaves `context` to be woken when there may be room.
    pub(crate) fn poll_enqueue(&self, sample: Queued, context: &Context<'_>) -> Result<(), Queued> {
        let sample = match self.enqueue_and_wake(sample) {
            Ok(()) => return Ok(()),
            Err(sample) => sample,
        };
        let mut wakers = self.room.wakers.lock();
        if wakers.is_empty() {
            self.room.waiting.fetch_add(1, Ordering::SeqCst);
        }
        // A task that is polled for other reasons, too, leaves itself once.
        if !wakers.iter().any(|known| known.will_wake(context.waker())) {
            wakers.push(context.waker().clone());
        }
        drop(wakers);
        // Room may have been made between the first try and the registration.
        self.enqueue_and_wake(sample)
    }

    /// A task waits no more.
    pub(crate) fn remove_waker(&self, waker: &Waker) {
        let mut wakers = self.room.wakers.lock();
        let left = wakers.iter().position(|known| known.will_wake(waker)).map(|index| wakers.swap_remove(index));
        if left.is_some() && wakers.is_empty() {
            self.room.waiting.fetch_sub(1, Ordering::SeqCst);
        }
        drop(wakers);
        drop(left);
    }

    /// The next sample of the queue.
    #[inline]
    pub(crate) fn pop(&self) -> Option<Queued> {
        let sample = self.queue.pop()?;
        sample.stats.queued.fetch_sub(1, Ordering::Relaxed);
        if self.room.waiting.load(Ordering::SeqCst) > 0 {
            self.notify_waiting_publishers();
        }
        Some(sample)
    }

    /// The next sample that can be read, as it is read at `now`; those before it are counted.
    #[inline]
    pub(crate) fn take<T>(
        &self,
        now: Mono,
        read: impl Fn(BodyRef) -> Result<T, Undecodable> + Copy,
    ) -> Option<(T, DeliveryGuard)> {
        loop {
            if let Some(delivered) = self.pop()?.read(now, read) {
                return Some(delivered);
            }
        }
    }

    /// Counts what nobody will take any more.
    pub(crate) fn discard(&self) {
        while let Some(sample) = self.pop() {
            sample.stats.count_drop(DropReason::Closed);
        }
    }

    #[cold]
    fn notify_waiting_publishers(&self) {
        self.room.freed.change();
        let mut wakers = self.room.wakers.lock();
        if !wakers.is_empty() {
            self.room.waiting.fetch_sub(1, Ordering::SeqCst);
        }
        let woken = std::mem::take(&mut *wakers);
        drop(wakers);
        woken.into_iter().for_each(Waker::wake);
    }

    #[inline]
    pub(crate) fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Makes a callback group the reader. Samples that are there already wake it at once.
    pub(crate) fn attach(&self, notify: Weak<dyn Notify>, inline: bool) {
        // A publisher that did not see the group yet has put its sample in before this look.
        if self.group.set(Group { notify, inline }).is_ok() && !self.queue.is_empty() {
            self.wake();
        }
    }

    /// No more samples will come; what is in the queue can still be taken.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.notify_waiting_publishers();
        self.wake();
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Adds what a sample needs from here to its callback.
    pub(crate) fn collect_lines(&self, lines: &mut PrefetchSet) {
        lines.add_shared(self, &self.room);
        self.queue.collect_lines(lines, |_, _| {});
        if let Some(group) = self.group.get().and_then(|group| group.notify.upgrade()) {
            group.collect_lines(lines);
        }
    }

    /// Whether the reader runs on the thread that wakes it.
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
