//! A topic: its type, its ends, and what its publishers keep for those who come late.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
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

/// Samples after a change of the readers in which a topic notes what samples need.
const PREFETCH_REFRESH_SAMPLES: u64 = 16;

/// In the order in which a sample meets the fields: what it touches until its readers are woken comes first.
#[repr(C)]
pub(crate) struct Topic {
    /// Changed under the lock of `ends`; publishers read it without a lock.
    readers: ArcSwap<Readers>,
    pub(crate) published: Total,
    pub(crate) name: Arc<str>,
    pub(crate) bodies: Arc<BodyPool>,
    /// When the last sample was published; 0 before the first.
    last_published: AtomicU64,
    /// Samples since the readers changed, as far as that matters.
    since_change: AtomicU64,
    /// Times between samples; made by the second one.
    interval: OnceLock<Latency>,
    /// Samples that some subscription lost, also those of subscriptions that have ended.
    pub(crate) dropped: Arc<Total>,
    pub(crate) pool: Pool,
    writers: PriorityMutex<Writers>,
    /// Set by the first publisher or typed subscriber that joins.
    pub(crate) type_info: OnceLock<Arc<TypeInfo>>,
}

/// Who reads a topic, and what a sample needs on its way to them.
#[derive(Default)]
pub(crate) struct Readers {
    /// Observers last.
    pub(crate) entries: Vec<SubscriberEntry>,
    lines: PrefetchSet,
}

impl Readers {
    /// Asks for the memory that the next sample will need.
    #[inline]
    pub(crate) fn prefetch(&self) {
        self.lines.fetch();
    }
}

/// Who publishes, and whether the topic is still the one of its name.
#[derive(Default)]
struct Writers {
    publishers: Vec<Arc<Writer>>,
    /// The bus has closed this topic: nobody may join it any more.
    closed: bool,
}

/// Why an end does not join a topic.
pub(crate) enum JoinError {
    /// The bus has closed the topic meanwhile; its name may have another one.
    Closed,
    /// The other end, and the policy that does not fit.
    Mismatch(Arc<str>, QosMismatch),
    /// The type that the topic got meanwhile.
    Type(Arc<TypeInfo>),
}

impl Topic {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            type_info: OnceLock::new(),
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

    /// Counts one more sample; its number.
    #[inline]
    pub(crate) fn next_sequence(&self) -> u64 {
        self.published.next()
    }

    /// Pushes a sample to every subscriber; those that must not miss it and have no room are given back. Whether somebody
    /// has to watch a deadline that began with this sample comes with them.
    ///
    /// `readers` were loaded before the sample was made. Where it is also kept for late ones, it goes to those who are there
    /// when it is kept.
    pub(crate) fn deliver(&self, body: &BodyRef, from: &Writer, readers: &Readers) -> (Vec<SubscriberEntry>, bool) {
        let listed;
        let readers = match from.qos.durability {
            Durability::Volatile => readers,
            Durability::TransientLocal => {
                listed = self.retain_and_load_readers(body, from);
                &*listed
            }
        };
        let full = enqueue_for_all(&readers.entries, body);
        // From here on nobody waits for the sample.
        let now = body.meta.published;
        self.record_interval(now);
        if self.since_change.load(Ordering::Relaxed) < PREFETCH_REFRESH_SAMPLES {
            self.refresh_prefetch();
        }
        let deadlines = readers.entries.iter().filter_map(|entry| entry.stats.deadline.as_ref());
        // Each notes it, also after one that begins.
        let begun = deadlines.filter(|deadline| deadline.record_sample(now)).count();
        (full, begun > 0)
    }

    /// Notes again what samples need: after the first ones, when everything has found its place.
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
        readers.entries.iter().for_each(|entry| entry.collect_lines(&mut lines));
        // Where the readers have changed meanwhile, the next sample notes it for them.
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

    /// One step under the lock: who joins before it is in the list, who joins after it finds the sample kept. The lock is
    /// free again when samples are pushed, because an inline reader runs there and may leave the topic.
    fn retain_and_load_readers(&self, body: &BodyRef, from: &Writer) -> Arc<Readers> {
        let writers = self.lock();
        let displaced = from.retain(body);
        let readers = self.readers.load_full();
        drop(writers);
        // Outside the lock: this may be the last one who holds it.
        drop(displaced);
        readers
    }

    /// Adds a publisher of that type, if it serves every reader.
    pub(crate) fn add_publisher(&self, publisher: &Arc<Writer>, wanted: &Arc<TypeInfo>) -> Result<(), JoinError> {
        let mut writers = self.lock();
        if writers.closed {
            return Err(JoinError::Closed);
        }
        for reader in self.readers().entries.iter().map(|entry| &entry.subscription) {
            let mismatch = |mismatch| JoinError::Mismatch(Arc::clone(&reader.owner), mismatch);
            publisher.qos.serves(&reader.qos).map_err(mismatch)?;
        }
        self.set_or_check_type(Some(wanted))?;
        writers.publishers.push(Arc::clone(publisher));
        drop(writers);
        self.report_liveliness();
        Ok(())
    }

    pub(crate) fn remove_publisher(&self, publisher: &Arc<Writer>) {
        self.lock().publishers.retain(|writer| !Arc::ptr_eq(writer, publisher));
        self.report_liveliness();
    }

    /// Adds a reader, if every publisher serves it; one that asked for transient local first gets what is kept.
    ///
    /// The lock makes this one step for publishers: nothing is kept twice or missed in between. The caller wakes the reader.
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
        self.set_or_check_type(wanted)?;
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

    /// Whether every publisher serves a reader that wants to join.
    pub(crate) fn check_qos(&self, subscription: &Subscription) -> Result<(), JoinError> {
        self.lock().check_qos(subscription)
    }

    /// Sets the type where it is not known yet. Called by those who join, and by nobody who is refused.
    fn set_or_check_type(&self, wanted: Option<&Arc<TypeInfo>>) -> Result<(), JoinError> {
        let Some(wanted) = wanted else {
            return Ok(());
        };
        let agreed = self.type_info.get_or_init(|| Arc::clone(wanted));
        let same = agreed.full_name() == wanted.full_name();
        if same { Ok(()) } else { Err(JoinError::Type(Arc::clone(agreed))) }
    }

    pub(crate) fn remove_subscription(&self, subscription: &Arc<Subscription>) {
        let _writers = self.lock();
        let readers = self.readers();
        let others = readers.entries.iter().filter(|other| !Arc::ptr_eq(&other.subscription, subscription));
        self.set_readers(others.cloned().collect());
    }

    /// Writers the topic if nobody publishes it and nobody asked for it by its name; whether it ended. One whose pool was made
    /// waits for its publisher.
    pub(crate) fn close_if_unused_and_unsized(&self) -> bool {
        !self.pool.is_sized() && self.close_if_unused()
    }

    /// Writers the topic if nobody publishes it and nobody asked for it by its name; whether it ended.
    pub(crate) fn close_if_unused(&self) -> bool {
        let mut writers = self.lock();
        let by_name = self.readers().entries.iter().any(|entry| entry.subscription.pattern == self.name);
        writers.closed = writers.publishers.is_empty() && !by_name;
        writers.closed
    }

    /// Who reads now. Costs no count of references; a few of these that one thread holds at a time are cheap.
    #[inline]
    pub(crate) fn readers(&self) -> arc_swap::Guard<Arc<Readers>> {
        self.readers.load()
    }

    /// Tells what was missed until now; when somebody has to look again.
    pub(crate) fn check_deadlines(&self, now: Mono) -> Option<Mono> {
        let publishers = self.lock().publishers.clone();
        let lost = publishers.iter().filter(|publisher| publisher.check_lease(now, &self.name)).count();
        if lost > 0 {
            self.report_liveliness();
        }
        let offered = publishers.iter().filter_map(|publisher| publisher.check_deadline(now, &self.name));
        let requested = self.readers();
        let requested = requested.entries.iter().filter_map(|entry| check_requested(entry, now, &self.name));
        let lives = publishers.iter().filter_map(|publisher| publisher.lease_expiry(now));
        offered.chain(requested).chain(lives).min()
    }

    /// Tells readers how many publishers are alive. Counted and put down in one step, so that of two changes at once the
    /// last event counts both; readers wake when the lock is free again, because an inline one runs here.
    pub(crate) fn report_liveliness(&self) {
        let writers = self.lock();
        let (alive, not_alive) = writers.liveliness();
        let readers = self.readers();
        for entry in &readers.entries {
            let event = || QosEvent::LivelinessChanged { topic: Arc::clone(&self.name), alive, not_alive };
            entry.subscription.events.put(event);
        }
        drop(writers);
        readers.entries.iter().for_each(|entry| entry.subscription.events.wake());
    }

    pub(crate) fn tick(&self, seconds: f64) {
        let readers = self.readers();
        let stats = || readers.entries.iter().map(|entry| &entry.stats);
        let totals = [&self.published, &*self.dropped].into_iter();
        totals.chain(stats().flat_map(|stats| stats.totals())).for_each(|total| total.tick(seconds));
        stats().filter_map(|stats| stats.latency()).chain(self.interval.get()).for_each(Latency::tick);
    }

    pub(crate) fn snapshot(&self, now: Mono) -> TopicSnapshot {
        let publishers = self.lock().publishers.clone();
        TopicSnapshot {
            topic: self.name.to_string(),
            type_name: self.type_info.get().map(|info| info.full_name().to_owned()),
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

/// Pushes a sample to these readers; gives back those that have no room and must not miss it.
///
/// Every queue has the sample before the first reader runs. A thread that is woken may run at once in place of this one;
/// a reader that runs inline runs here, so those come last; and what made room is dropped when all have run.
#[inline]
fn enqueue_for_all(readers: &[SubscriberEntry], body: &BodyRef) -> Vec<SubscriberEntry> {
    let (mut displaced, mut full) = (Vec::new(), Vec::new());
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

/// Gives a late reader what the publishers keep, in the order of publishing, as much as its own depth takes.
fn enqueue_history(publishers: &[Arc<Writer>], entry: &SubscriberEntry, now: Mono) {
    let mut kept: Vec<_> = publishers.iter().flat_map(|publisher| publisher.history()).collect();
    kept.retain(|body| !body.is_expired(now));
    kept.sort_unstable_by_key(|body| body.meta.sequence);
    for body in kept.iter().skip(kept.len().saturating_sub(entry.subscription.qos.depth())) {
        // A fresh queue has room for its own depth, but a pattern's fills from several topics.
        // How long it was kept is no latency.
        let kept = Queued { measured: false, ..entry.queued(body) };
        if let Err(refused) = entry.subscription.enqueue(kept) {
            refused.stats.count_drop(DropReason::QueueFull);
        }
    }
    if let Some(deadline) = entry.stats.deadline.as_ref().filter(|_| !kept.is_empty()) {
        deadline.record_sample(now);
    }
}

/// Tells a reader what it missed; when it misses the next.
fn check_requested(entry: &SubscriberEntry, now: Mono, topic: &Arc<str>) -> Option<Mono> {
    let deadline = entry.stats.deadline.as_ref()?;
    let missed = deadline.take_missed(now);
    if missed > 0 {
        let event = || QosEvent::RequestedDeadlineMissed { topic: Arc::clone(topic), missed };
        entry.subscription.events.emit(event);
    }
    deadline.next_miss(now)
}
