//! A topic: its type, its publishers and subscribers, and the samples that publishers keep for late joiners.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use viaduct_units::Mono;

use crate::deadline::stamp;
use crate::events::QosEvent;
use crate::latency::Latency;
use crate::pool::Pool;
use crate::prefetch::PrefetchSet;
use crate::qos::{Durability, QosMismatch, Reliability};
use crate::queue::{PriorityGuard, PriorityMutex};
use crate::sample::{BodyPool, BodyRef};
use crate::stats::TopicSnapshot;
use crate::subscription::{DeliveryStats, DropReason, Queued, Role, SubscriberEntry, Subscription};
use crate::total::Total;
use crate::type_info::TypeInfo;
use crate::writer::Writer;

/// Number of samples after a change of the subscribers during which the topic updates its prefetch set.
const PREFETCH_REFRESH_SAMPLES: u64 = 16;

/// A topic. The fields are in the order in which publishing touches them: those needed until the readers are woken come
/// first.
#[repr(C)]
pub(crate) struct Topic {
    /// Changed under the lock of `writers`; publishers read it without a lock.
    readers: ArcSwap<Readers>,
    pub(crate) published: Total,
    pub(crate) name: Arc<str>,
    pub(crate) bodies: Arc<BodyPool>,
    /// Time of the last sample; 0 before the first.
    last_published: AtomicU64,
    /// Samples since the subscribers changed, counted up to [`PREFETCH_REFRESH_SAMPLES`].
    since_change: AtomicU64,
    /// Times between samples; created by the second sample.
    interval: OnceLock<Latency>,
    /// Samples that some subscription lost, including subscriptions that have ended.
    pub(crate) dropped: Arc<Total>,
    pub(crate) pool: Pool,
    writers: PriorityMutex<Writers>,
    /// Set by the first publisher or typed subscriber that joins. Replaced under the lock of `writers` if the topic has neither.
    type_info: ArcSwapOption<TypeInfo>,
}

/// The subscribers of a topic, and the memory that a sample touches on its path to them.
#[derive(Default)]
pub(crate) struct Readers {
    /// Observers last.
    pub(crate) entries: Vec<SubscriberEntry>,
    lines: PrefetchSet,
}

impl Readers {
    /// Prefetches the memory that the next sample will touch.
    #[inline]
    pub(crate) fn prefetch(&self) {
        self.lines.fetch();
    }
}

/// The publishers of a topic.
#[derive(Default)]
struct Writers {
    publishers: Vec<Arc<Writer>>,
    /// `true` if the bus has removed this topic: no endpoint can join it any more.
    closed: bool,
}

/// Result of delivering a sample.
pub(crate) struct Delivered {
    /// Reliable subscribers whose queue was full.
    pub(crate) full: Vec<SubscriberEntry>,
    /// `true` if the sample started the deadline of a subscriber, so that the QoS monitor must check.
    pub(crate) deadline_started: bool,
}

/// Reasons for which a publisher or subscriber cannot join a topic.
pub(crate) enum JoinError {
    /// The bus has removed the topic meanwhile; the name may belong to a new one.
    Closed,
    /// The other side's component, and the policy that does not fit.
    Mismatch(Arc<str>, QosMismatch),
    /// The type that the topic got meanwhile.
    Type(Arc<TypeInfo>),
}

impl Topic {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            type_info: ArcSwapOption::empty(),
            pool: Pool::default(),
            bodies: BodyPool::new(),
            published: Total::default(),
            dropped: Arc::default(),
            last_published: AtomicU64::new(0),
            interval: OnceLock::new(),
            writers: PriorityMutex::default(),
            readers: ArcSwap::default(),
            since_change: AtomicU64::new(0),
        }
    }

    /// Counts a sample and returns its sequence number.
    #[inline]
    pub(crate) fn next_sequence(&self) -> u64 {
        self.published.next()
    }

    /// Enqueues a sample for every subscriber.
    ///
    /// `readers` must have been loaded before the sample was created. A sample that is kept for late joiners goes to
    /// the subscribers at the time when it is kept instead.
    pub(crate) fn deliver(&self, body: &BodyRef, from: &Writer, readers: &Readers) -> Delivered {
        let listed;
        let readers = match from.qos.durability {
            Durability::Volatile => readers,
            Durability::TransientLocal => {
                listed = self.retain_and_load_readers(body, from);
                &*listed
            }
        };
        let full = enqueue_for_all(&readers.entries, body);
        // From here on no reader waits for this thread.
        let now = body.meta.published;
        self.record_interval(now);
        if self.since_change.load(Ordering::Relaxed) < PREFETCH_REFRESH_SAMPLES {
            self.refresh_prefetch();
        }
        let mut deadline_started = false;
        for deadline in readers.entries.iter().filter_map(|entry| entry.stats.deadline.as_ref()) {
            deadline_started |= deadline.record_sample(now);
        }
        Delivered { full, deadline_started }
    }

    /// Collects the prefetch set again, for the first samples after a change, until every allocation has its final
    /// place.
    #[cold]
    fn refresh_prefetch(&self) {
        let number = self.since_change.fetch_add(1, Ordering::Relaxed) + 1;
        if !number.is_power_of_two() {
            return;
        }
        let readers = self.readers.load();
        let mut lines = PrefetchSet::default();
        lines.add(&readers.entries[..]);
        self.bodies.collect_lines(&mut lines);
        for entry in &readers.entries {
            entry.collect_lines(&mut lines);
        }
        // If the subscribers have changed meanwhile, the next sample does this for them.
        self.readers.compare_and_swap(&*readers, Arc::new(Readers { entries: readers.entries.clone(), lines }));
    }

    fn set_readers(&self, entries: Vec<SubscriberEntry>) {
        self.readers.store(Arc::new(Readers { entries, lines: PrefetchSet::default() }));
        self.since_change.store(0, Ordering::Relaxed);
    }

    fn record_interval(&self, now: Mono) {
        let before = self.last_published.swap(stamp(now), Ordering::Relaxed);
        if before != 0 {
            let interval = Duration::from_nanos(stamp(now).saturating_sub(before));
            self.interval.get_or_init(Latency::default).record(interval);
        }
    }

    /// Keeps a sample and loads the subscribers in one step under the lock. A subscriber that joins before is in the
    /// list; a later one finds the kept sample. The lock is released before samples are enqueued, because an inline
    /// reader runs there and may leave the topic.
    fn retain_and_load_readers(&self, body: &BodyRef, from: &Writer) -> Arc<Readers> {
        let writers = self.lock();
        let displaced = from.retain(body);
        let readers = self.readers.load_full();
        drop(writers);
        // Outside the lock: this may be the last reference.
        drop(displaced);
        readers
    }

    /// Adds a publisher if it has the topic's type and serves every subscriber.
    pub(crate) fn add_publisher(&self, publisher: &Arc<Writer>, wanted: &Arc<TypeInfo>) -> Result<(), JoinError> {
        let mut writers = self.lock();
        if writers.closed {
            return Err(JoinError::Closed);
        }
        for reader in self.readers().entries.iter().map(|entry| &entry.subscription) {
            let mismatch = |mismatch| JoinError::Mismatch(Arc::clone(&reader.owner), mismatch);
            publisher.qos.serves(&reader.qos).map_err(mismatch)?;
        }
        self.set_or_check_type(&writers, Some(wanted))?;
        writers.publishers.push(Arc::clone(publisher));
        drop(writers);
        self.report_liveliness();
        Ok(())
    }

    pub(crate) fn remove_publisher(&self, publisher: &Arc<Writer>) {
        self.lock().publishers.retain(|writer| !Arc::ptr_eq(writer, publisher));
        self.report_liveliness();
    }

    /// Adds a subscriber if every publisher serves it; a transient-local one first gets the samples that are kept.
    ///
    /// The lock makes this one step for publishers: no sample is delivered twice or missed in between. The caller wakes
    /// the reader.
    pub(crate) fn add_subscription(
        &self,
        subscription: &Arc<Subscription>,
        wanted: Option<&Arc<TypeInfo>>,
        now: Mono,
    ) -> Result<(), JoinError> {
        let writers = self.lock();
        if writers.closed {
            return Err(JoinError::Closed);
        }
        writers.check_qos(subscription)?;
        self.set_or_check_type(&writers, wanted)?;
        let stats = DeliveryStats::new(subscription, &self.dropped);
        let entry = SubscriberEntry { subscription: Arc::clone(subscription), stats };
        if subscription.qos.durability == Durability::TransientLocal {
            enqueue_history(&writers.publishers, &entry, now);
        }
        let mut readers = self.readers().entries.clone();
        let observers = readers.iter().position(|other| other.subscription.role == Role::Observer);
        let at = observers.filter(|_| subscription.role == Role::Reader).unwrap_or(readers.len());
        readers.insert(at, entry);
        self.set_readers(readers);
        Ok(())
    }

    /// Checks that every publisher serves a subscription that wants to join.
    pub(crate) fn check_qos(&self, subscription: &Subscription) -> Result<(), JoinError> {
        self.lock().check_qos(subscription)
    }

    /// Sets the type if it is not set yet or if nothing uses it any more, else checks it. Called last, so that a refused publisher or
    /// subscriber sets nothing.
    fn set_or_check_type(&self, writers: &Writers, wanted: Option<&Arc<TypeInfo>>) -> Result<(), JoinError> {
        let Some(wanted) = wanted else {
            return Ok(());
        };
        match &*self.type_info.load() {
            Some(has) if has.is_same(wanted) => return Ok(()),
            Some(has) if self.is_typed(writers) => return Err(JoinError::Type(Arc::clone(has))),
            _ => {}
        }
        self.type_info.store(Some(Arc::clone(wanted)));
        Ok(())
    }

    fn is_typed(&self, writers: &Writers) -> bool {
        let is_typed = |entry: &SubscriberEntry| entry.subscription.is_typed && entry.subscription.pattern == self.name;
        !writers.publishers.is_empty() || self.readers().entries.iter().any(is_typed)
    }

    /// Returns `true` if a publisher or a typed subscriber relies on the topic's type.
    pub(crate) fn has_typed_end(&self) -> bool {
        self.is_typed(&self.lock())
    }

    /// Returns the topic's type if it is another one.
    pub(crate) fn other_type(&self, wanted: &TypeInfo) -> Option<Arc<TypeInfo>> {
        self.type_info.load_full().filter(|has| !has.is_same(wanted))
    }

    pub(crate) fn remove_subscription(&self, subscription: &Arc<Subscription>) {
        let _writers = self.lock();
        let readers = self.readers();
        let others = readers.entries.iter().filter(|other| !Arc::ptr_eq(&other.subscription, subscription));
        self.set_readers(others.cloned().collect());
    }

    /// Closes the topic if it is unused and its pool was not sized in advance. Returns `true` if the topic is closed.
    pub(crate) fn close_if_unused_and_unsized(&self) -> bool {
        !self.pool.is_sized() && self.close_if_unused()
    }

    /// Closes the topic if it has no publisher and no subscription to exactly its name. Returns `true` if the topic is
    /// closed.
    pub(crate) fn close_if_unused(&self) -> bool {
        let mut writers = self.lock();
        let by_name = self.readers().entries.iter().any(|entry| entry.subscription.pattern == self.name);
        writers.closed = writers.publishers.is_empty() && !by_name;
        writers.closed
    }

    /// Loads the present subscribers without counting a reference; cheap while one thread holds only a few at a time.
    #[inline]
    pub(crate) fn readers(&self) -> arc_swap::Guard<Arc<Readers>> {
        self.readers.load()
    }

    /// Reports missed deadlines and expired leases up to `now`. Returns the time of the next check.
    pub(crate) fn check_deadlines(&self, now: Mono) -> Option<Mono> {
        let publishers = self.lock().publishers.clone();
        let mut lease_expired = false;
        for publisher in &publishers {
            lease_expired |= publisher.check_lease(now, &self.name);
        }
        if lease_expired {
            self.report_liveliness();
        }
        let offered = publishers.iter().filter_map(|publisher| publisher.check_deadline(now, &self.name));
        let requested = self.readers();
        let requested = requested.entries.iter().filter_map(|entry| check_requested(entry, now, &self.name));
        let leases = publishers.iter().filter_map(|publisher| publisher.lease_expiry(now));
        offered.chain(requested).chain(leases).min()
    }

    /// Reports the number of publishers that are alive to all subscribers. Counting and storing the event are one step,
    /// so of two concurrent changes the last event includes both. The readers are woken after the lock is released,
    /// because an inline reader runs on this thread.
    pub(crate) fn report_liveliness(&self) {
        let writers = self.lock();
        let (alive, not_alive) = writers.liveliness();
        let readers = self.readers();
        for entry in &readers.entries {
            let event = || QosEvent::LivelinessChanged { topic: Arc::clone(&self.name), alive, not_alive };
            entry.subscription.events.put(event);
        }
        drop(writers);
        for entry in &readers.entries {
            entry.subscription.events.wake();
        }
    }

    pub(crate) fn tick(&self, seconds: f64) {
        self.published.tick(seconds);
        self.dropped.tick(seconds);
        if let Some(interval) = self.interval.get() {
            interval.tick();
        }
        for entry in &self.readers().entries {
            entry.stats.tick(seconds);
        }
    }

    pub(crate) fn snapshot(&self, now: Mono) -> TopicSnapshot {
        let publishers = self.lock().publishers.clone();
        let type_info = self.type_info.load();
        TopicSnapshot {
            topic: self.name.to_string(),
            type_name: type_info.as_ref().map(|info| info.full_name().to_owned()),
            message_encoding: type_info.as_ref().map(|info| info.format().message_encoding()),
            publishers: publishers.iter().map(|entry| entry.snapshot(now)).collect(),
            published: self.published.value(),
            rate_hz: self.published.rate_hz(),
            interval_recent: self.interval.get().map(Latency::recent).unwrap_or_default(),
            interval_total: self.interval.get().map(Latency::total).unwrap_or_default(),
            dropped: self.dropped.value(),
            pool: self.pool.snapshot(),
            subscriptions: self.readers().entries.iter().map(|entry| entry.snapshot(now)).collect(),
        }
    }

    fn lock(&self) -> PriorityGuard<'_, Writers> {
        self.writers.lock()
    }
}

impl Writers {
    fn liveliness(&self) -> (usize, usize) {
        let alive = self.publishers.iter().filter(|publisher| publisher.is_alive()).count();
        (alive, self.publishers.len() - alive)
    }

    fn check_qos(&self, subscription: &Subscription) -> Result<(), JoinError> {
        for publisher in &self.publishers {
            let mismatch = |mismatch| JoinError::Mismatch(Arc::clone(&publisher.owner), mismatch);
            publisher.qos.serves(&subscription.qos).map_err(mismatch)?;
        }
        Ok(())
    }
}

/// Enqueues a sample for these readers. Returns the reliable ones whose queue was full.
///
/// Every queue has the sample before the first reader runs. A woken thread may preempt this one. Inline readers run on
/// this thread and are woken last. Overwritten samples are dropped after all readers have been woken.
#[inline]
fn enqueue_for_all(readers: &[SubscriberEntry], body: &BodyRef) -> Vec<SubscriberEntry> {
    let mut displaced = Vec::new();
    let mut full = Vec::new();
    for entry in readers {
        match entry.subscription.enqueue(entry.queued(body)) {
            Ok(None) => {}
            Ok(Some(oldest)) => displaced.push(oldest),
            Err(refused) if entry.subscription.qos.reliability == Reliability::BestEffort => {
                refused.stats.count_drop(DropReason::QueueFull);
            }
            Err(_) => full.push(entry.clone()),
        }
    }
    for inline in [false, true] {
        for entry in readers.iter().filter(|entry| entry.subscription.runs_inline() == inline) {
            entry.subscription.wake();
        }
    }
    full
}

/// Enqueues for a late joiner the samples that the publishers keep, in the order of publishing, the newest up to its
/// own depth.
fn enqueue_history(publishers: &[Arc<Writer>], entry: &SubscriberEntry, now: Mono) {
    let mut kept: Vec<_> = publishers.iter().flat_map(|publisher| publisher.history()).collect();
    kept.retain(|body| !body.is_expired(now));
    kept.sort_unstable_by_key(|body| body.meta.sequence);
    for body in kept.iter().skip(kept.len().saturating_sub(entry.subscription.qos.depth())) {
        // A new queue has room for its own depth, but the queue of a pattern is filled from several topics. The time
        // for which a sample was kept is not a latency.
        let kept = Queued { measured: false, ..entry.queued(body) };
        if let Err(refused) = entry.subscription.enqueue(kept) {
            refused.stats.count_drop(DropReason::QueueFull);
        }
    }
    if let Some(deadline) = entry.stats.deadline.as_ref().filter(|_| !kept.is_empty()) {
        deadline.record_sample(now);
    }
}

/// Reports missed deadlines to a subscriber. Returns the time of the next miss.
fn check_requested(entry: &SubscriberEntry, now: Mono, topic: &Arc<str>) -> Option<Mono> {
    let deadline = entry.stats.deadline.as_ref()?;
    let missed = deadline.take_missed(now);
    if missed > 0 {
        let event = || QosEvent::RequestedDeadlineMissed { topic: Arc::clone(topic), missed };
        entry.subscription.events.emit(event);
    }
    deadline.next_miss(now)
}
