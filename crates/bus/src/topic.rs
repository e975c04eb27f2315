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
use crate::prefetch::Lines;
use crate::qos::{Durability, QosMismatch, Reliability};
use crate::queue::{PriorityGuard, PriorityMutex};
use crate::sample::{BodyPool, BodyRef};
use crate::stats::TopicSnapshot;
use crate::subscription::{Account, DropReason, End, Queued, Role, Subscription};
use crate::total::Total;
use crate::type_info::TypeInfo;
use crate::writer::Writer;

/// Samples after a change of the readers in which a topic notes what samples need.
const NOTE_LINES_UNTIL: u64 = 16;

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
    ends: PriorityMutex<Ends>,
    /// Set by the first publisher or typed subscriber that joins.
    pub(crate) type_info: OnceLock<Arc<TypeInfo>>,
}

/// Who reads a topic, and what a sample needs on its way to them.
#[derive(Default)]
pub(crate) struct Readers {
    /// Observers last.
    pub(crate) ends: Vec<End>,
    lines: Lines,
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
struct Ends {
    publishers: Vec<Arc<Writer>>,
    /// The bus has forgotten this topic: nobody may join it any more.
    forgotten: bool,
}

/// Why an end does not join a topic.
pub(crate) enum JoinError {
    /// The bus has forgotten the topic meanwhile; its name may have another one.
    Forgotten,
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
            ends: PriorityMutex::default(),
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
    pub(crate) fn push(&self, body: &BodyRef, from: &Writer, readers: &Readers) -> (Vec<End>, bool) {
        let listed;
        let readers = match from.qos.durability {
            Durability::Volatile => readers,
            Durability::TransientLocal => {
                listed = self.keep_and_list_readers(body, from);
                &*listed
            }
        };
        let full = push_to(&readers.ends, body);
        // From here on nobody waits for the sample.
        let now = body.meta.published;
        self.note_interval(now);
        if self.since_change.load(Ordering::Relaxed) < NOTE_LINES_UNTIL {
            self.note_lines();
        }
        let deadlines = readers.ends.iter().filter_map(|end| end.account.deadline.as_ref());
        // Each notes it, also after one that begins.
        let begun = deadlines.filter(|deadline| deadline.note(now)).count();
        (full, begun > 0)
    }

    /// Notes again what samples need: after the first ones, when everything has found its place.
    #[cold]
    fn note_lines(&self) {
        let number = self.since_change.fetch_add(1, Ordering::Relaxed) + 1;
        if !number.is_power_of_two() {
            return;
        }
        let readers = self.readers.load();
        let mut lines = Lines::default();
        lines.add(&readers.ends[..]);
        self.bodies.add_lines(&mut lines);
        readers.ends.iter().for_each(|end| end.add_lines(&mut lines));
        // Where the readers have changed meanwhile, the next sample notes it for them.
        self.readers.compare_and_swap(&*readers, Arc::new(Readers { ends: readers.ends.clone(), lines }));
    }

    fn set_readers(&self, ends: Vec<End>) {
        self.readers.store(Arc::new(Readers { ends, lines: Lines::default() }));
        self.since_change.store(0, Ordering::Relaxed);
    }

    fn note_interval(&self, now: Mono) {
        let before = self.last_published.swap(stamp(now), Ordering::Relaxed);
        if before != 0 {
            let interval = Duration::from_nanos(stamp(now).saturating_sub(before));
            self.interval.get_or_init(Latency::default).record(interval);
        }
    }

    /// One step under the lock: who joins before it is in the list, who joins after it finds the sample kept. The lock is
    /// free again when samples are pushed, because an inline reader runs there and may leave the topic.
    fn keep_and_list_readers(&self, body: &BodyRef, from: &Writer) -> Arc<Readers> {
        let ends = self.lock();
        let displaced = from.keep(body);
        let readers = self.readers.load_full();
        drop(ends);
        // Outside the lock: this may be the last one who holds it.
        drop(displaced);
        readers
    }

    /// Adds a publisher of that type, if it serves every reader.
    pub(crate) fn add_publisher(&self, publisher: &Arc<Writer>, wanted: &Arc<TypeInfo>) -> Result<(), JoinError> {
        let mut ends = self.lock();
        if ends.forgotten {
            return Err(JoinError::Forgotten);
        }
        for reader in self.readers().ends.iter().map(|end| &end.subscription) {
            let mismatch = |mismatch| JoinError::Mismatch(Arc::clone(&reader.owner), mismatch);
            publisher.qos.serves(&reader.qos).map_err(mismatch)?;
        }
        self.agree_on_type(Some(wanted))?;
        ends.publishers.push(Arc::clone(publisher));
        drop(ends);
        self.tell_liveliness();
        Ok(())
    }

    pub(crate) fn remove_publisher(&self, publisher: &Arc<Writer>) {
        self.lock().publishers.retain(|end| !Arc::ptr_eq(end, publisher));
        self.tell_liveliness();
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
        let ends = self.lock();
        if ends.forgotten {
            return Err(JoinError::Forgotten);
        }
        ends.serve(subscription)?;
        self.agree_on_type(wanted)?;
        let account = Account::new(subscription, &self.dropped);
        let end = End { subscription: Arc::clone(subscription), account };
        if subscription.qos.durability == Durability::TransientLocal {
            give_kept(&ends.publishers, &end, now);
        }
        let mut readers = self.readers().ends.clone();
        let observers = readers.iter().position(|other| other.subscription.role == Role::Observer);
        let at = observers.filter(|_| subscription.role == Role::Reader).unwrap_or(readers.len());
        readers.insert(at, end);
        self.set_readers(readers);
        Ok(())
    }

    /// Whether every publisher serves a reader that wants to join.
    pub(crate) fn serves(&self, subscription: &Subscription) -> Result<(), JoinError> {
        self.lock().serve(subscription)
    }

    /// Sets the type where it is not known yet. Called by those who join, and by nobody who is refused.
    fn agree_on_type(&self, wanted: Option<&Arc<TypeInfo>>) -> Result<(), JoinError> {
        let Some(wanted) = wanted else {
            return Ok(());
        };
        let agreed = self.type_info.get_or_init(|| Arc::clone(wanted));
        let same = agreed.full_name() == wanted.full_name();
        if same { Ok(()) } else { Err(JoinError::Type(Arc::clone(agreed))) }
    }

    pub(crate) fn remove_subscription(&self, subscription: &Arc<Subscription>) {
        let _ends = self.lock();
        let readers = self.readers();
        let others = readers.ends.iter().filter(|other| !Arc::ptr_eq(&other.subscription, subscription));
        self.set_readers(others.cloned().collect());
    }

    /// Ends the topic if nobody publishes it and nobody asked for it by its name; whether it ended. One whose pool was made
    /// waits for its publisher.
    pub(crate) fn forget_if_plain(&self) -> bool {
        !self.pool.is_sized() && self.forget()
    }

    /// Ends the topic if nobody publishes it and nobody asked for it by its name; whether it ended.
    pub(crate) fn forget(&self) -> bool {
        let mut ends = self.lock();
        let by_name = self.readers().ends.iter().any(|end| end.subscription.pattern == self.name);
        ends.forgotten = ends.publishers.is_empty() && !by_name;
        ends.forgotten
    }

    /// Who reads now. Costs no count of references; a few of these that one thread holds at a time are cheap.
    #[inline]
    pub(crate) fn readers(&self) -> arc_swap::Guard<Arc<Readers>> {
        self.readers.load()
    }

    /// Tells what was missed until now; when somebody has to look again.
    pub(crate) fn check_deadlines(&self, now: Mono) -> Option<Mono> {
        let publishers = self.lock().publishers.clone();
        let fell_silent = publishers.iter().filter(|publisher| publisher.check_life(now, &self.name)).count();
        if fell_silent > 0 {
            self.tell_liveliness();
        }
        let offered = publishers.iter().filter_map(|publisher| publisher.check_deadline(now, &self.name));
        let requested = self.readers();
        let requested = requested.ends.iter().filter_map(|end| check_requested(end, now, &self.name));
        let lives = publishers.iter().filter_map(|publisher| publisher.life_ends(now));
        offered.chain(requested).chain(lives).min()
    }

    /// Tells readers how many publishers are alive. Counted and put down in one step, so that of two changes at once the
    /// last event counts both; readers wake when the lock is free again, because an inline one runs here.
    pub(crate) fn tell_liveliness(&self) {
        let ends = self.lock();
        let (alive, not_alive) = ends.liveliness();
        let readers = self.readers();
        for end in &readers.ends {
            let event = || QosEvent::LivelinessChanged { topic: Arc::clone(&self.name), alive, not_alive };
            end.subscription.events.put(event);
        }
        drop(ends);
        readers.ends.iter().for_each(|end| end.subscription.events.wake());
    }

    pub(crate) fn tick(&self, seconds: f64) {
        let readers = self.readers();
        let accounts = || readers.ends.iter().map(|end| &end.account);
        let totals = [&self.published, &*self.dropped].into_iter();
        totals.chain(accounts().flat_map(|account| account.totals())).for_each(|total| total.tick(seconds));
        accounts().filter_map(|account| account.latency()).chain(self.interval.get()).for_each(Latency::tick);
    }

    pub(crate) fn snapshot(&self, now: Mono) -> TopicSnapshot {
        let publishers = self.lock().publishers.clone();
        TopicSnapshot {
            topic: self.name.to_string(),
            type_name: self.type_info.get().map(|info| info.full_name().to_owned()),
            publishers: publishers.iter().map(|end| end.snapshot(now)).collect(),
            published: self.published.value(),
            rate_hz: self.published.rate_hz(),
            interval_recent: self.interval.get().map(Latency::recent).unwrap_or_default(),
            interval_total: self.interval.get().map(Latency::total).unwrap_or_default(),
            dropped: self.dropped.value(),
            pool: self.pool.snapshot(),
            subscriptions: self.readers().ends.iter().map(|end| end.snapshot(now)).collect(),
        }
    }

    fn lock(&self) -> PriorityGuard<'_, Ends> {
        self.ends.lock()
    }
}

impl Ends {
    fn liveliness(&self) -> (usize, usize) {
        let alive = self.publishers.iter().filter(|publisher| publisher.is_alive()).count();
        (alive, self.publishers.len() - alive)
    }

    fn serve(&self, subscription: &Subscription) -> Result<(), JoinError> {
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
fn push_to(readers: &[End], body: &BodyRef) -> Vec<End> {
    let (mut displaced, mut full) = (Vec::new(), Vec::new());
    for end in readers {
        match end.subscription.enqueue(end.queued(body)) {
            Ok(None) => {}
            Ok(Some(oldest)) => displaced.push(oldest),
            Err(refused) if end.subscription.qos.reliability == Reliability::BestEffort => {
                refused.account.count_drop(DropReason::QueueFull);
            }
            Err(_) => full.push(end.clone()),
        }
    }
    for inline in [false, true] {
        for end in readers.iter().filter(|end| end.subscription.runs_inline() == inline) {
            end.subscription.wake();
        }
    }
    full
}

/// Gives a late reader what the publishers keep, in the order of publishing, as much as its own depth takes.
fn give_kept(publishers: &[Arc<Writer>], end: &End, now: Mono) {
    let mut kept: Vec<_> = publishers.iter().flat_map(|publisher| publisher.kept()).collect();
    kept.retain(|body| !body.is_expired(now));
    kept.sort_unstable_by_key(|body| body.meta.sequence);
    for body in kept.iter().skip(kept.len().saturating_sub(end.subscription.qos.depth())) {
        // A fresh queue has room for its own depth, but a pattern's fills from several topics.
        // How long it was kept is no latency.
        let kept = Queued { measured: false, ..end.queued(body) };
        if let Err(refused) = end.subscription.enqueue(kept) {
            refused.account.count_drop(DropReason::QueueFull);
        }
    }
    if let Some(deadline) = end.account.deadline.as_ref().filter(|_| !kept.is_empty()) {
        deadline.note(now);
    }
}

/// Tells a reader what it missed; when it misses the next.
fn check_requested(end: &End, now: Mono, topic: &Arc<str>) -> Option<Mono> {
    let deadline = end.account.deadline.as_ref()?;
    let missed = deadline.take_missed(now);
    if missed > 0 {
        let event = || QosEvent::RequestedDeadlineMissed { topic: Arc::clone(topic), missed };
        end.subscription.events.emit(event);
    }
    deadline.next_miss(now)
}
