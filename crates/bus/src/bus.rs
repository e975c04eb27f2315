//! The bus: a table of topics.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use viaduct_messages::Message;
use viaduct_messages::topic as names;
use viaduct_units::Mono;

use crate::clock::Clock;
use crate::error::{ObserveError, OpenError};
use crate::limits::{OBSERVERS_MAX, TOPICS_MAX};
use crate::meta::HopName;
use crate::pool::{PoolError, PoolSize, PoolSnapshot};
use crate::publisher::{Publisher, PublisherEnd, UntypedPublisher};
use crate::qos::{Qos, QosMismatch};
use crate::stats::{BusSnapshot, Counter, Hop, Stats};
use crate::subscriber::{Observer, ObserverPlace, Subscriber, UntypedSubscriber};
use crate::subscription::{Role, Subscription};
use crate::topic::{JoinError, Topic};
use crate::type_info::TypeInfo;
use crate::watch::Watch;

/// A bus; clones are the same bus.
#[derive(Clone)]
pub struct Bus {
    inner: Arc<Inner>,
}

/// Lock order: `patterns`, then `topics`, then the ends of one topic.
pub(crate) struct Inner {
    node: String,
    started: Mono,
    topics: RwLock<BTreeMap<Arc<str>, Arc<Topic>>>,
    /// Subscriptions to a pattern: a topic that comes later is added to them.
    patterns: Mutex<Vec<Arc<Subscription>>>,
    pub(crate) stats: Arc<Stats>,
    pub(crate) clock: Clock,
    pub(crate) watch: Arc<Watch>,
    observers: AtomicUsize,
    closed: AtomicBool,
}

impl Bus {
    /// An empty bus of the node of that name.
    #[must_use]
    pub fn new(node: &str) -> Self {
        Self::with_clock(node, Clock::System)
    }

    /// An empty bus that reads the time from `clock`. In virtual time the caller moves the clock and then asks for
    /// [`Self::check_deadlines`]; executors and waits with a limit stay in real time.
    #[must_use]
    pub fn with_clock(node: &str, clock: Clock) -> Self {
        let inner = Inner {
            node: node.to_owned(),
            started: clock.mono(),
            topics: RwLock::default(),
            patterns: Mutex::default(),
            stats: Arc::default(),
            clock,
            watch: Arc::default(),
            observers: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Name of the node.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.inner.node
    }

    /// Time since the bus was made, which is when its node started.
    #[must_use]
    pub fn uptime(&self) -> Duration {
        self.inner.clock.mono().since(self.inner.started)
    }

    /// Opens a topic for publishing messages of type `M`, for the component `owner`.
    ///
    /// # Errors
    /// Not a topic's name, another type, or less quality of service than a subscriber asks for.
    pub fn publisher<M: Message>(&self, topic: &str, offered: Qos, owner: &str) -> Result<Publisher<M>, OpenError> {
        self.publisher_untyped(topic, TypeInfo::of::<M>(), offered, owner).map(Publisher::new)
    }

    /// Opens a topic for publishing octets of a type that this binary need not know.
    ///
    /// # Errors
    /// As for [`Self::publisher`].
    pub fn publisher_untyped(
        &self,
        topic: &str,
        type_info: TypeInfo,
        offered: Qos,
        owner: &str,
    ) -> Result<UntypedPublisher, OpenError> {
        names::check_name(topic).map_err(OpenError::Name)?;
        let (inner, wanted) = (&self.inner, Arc::new(type_info));
        let end = Arc::new(PublisherEnd::new(owner, offered, inner.clock.mono()));
        let topic = loop {
            let topic = inner.topic(topic, Some(&wanted), owner)?;
            match topic.add_publisher(&end, &wanted) {
                Ok(()) => break topic,
                Err(JoinError::Forgotten) => {}
                Err(JoinError::Mismatch(reader, mismatch)) => {
                    return Err(refused(&topic, &end.owner, &reader, mismatch));
                }
                Err(JoinError::Type(has)) => return Err(other_type(&topic, &has, &wanted, owner)),
            }
        };
        if offered.lease.is_some() || offered.deadline.is_some() {
            inner.watch.poke(inner);
        }
        Ok(UntypedPublisher { topic, type_info: wanted, end, hop: HopName::new(owner), bus: Arc::clone(inner) })
    }

    /// Opens a topic for reading messages of type `M`, for the component `owner`.
    ///
    /// # Errors
    /// Not a topic's name, another type, or more quality of service than a publisher offers.
    pub fn subscribe<M: Message>(&self, topic: &str, requested: Qos, owner: &str) -> Result<Subscriber<M>, OpenError> {
        let type_info = Arc::new(TypeInfo::of::<M>());
        self.open_reader(topic, Some(&type_info), requested, owner, Role::Reader).map(Subscriber::new)
    }

    /// Opens a topic, or all topics of a pattern that are there or will come, for reading without knowing their types.
    ///
    /// # Errors
    /// Not a name or pattern, or more quality of service than a publisher offers.
    pub fn subscribe_untyped(
        &self,
        pattern: &str,
        requested: Qos,
        owner: &str,
    ) -> Result<UntypedSubscriber, OpenError> {
        self.open_reader(pattern, None, requested, owner, Role::Reader)
    }

    /// Looks on at the topics of a pattern, without costing those that use them more than a place in a queue of one.
    ///
    /// # Errors
    /// Not a name or pattern, or [`OBSERVERS_MAX`] look on already.
    pub fn observe(&self, pattern: &str) -> Result<Observer, ObserveError> {
        let more = |count| (count < OBSERVERS_MAX).then_some(count + 1);
        let observers = &self.inner.observers;
        observers.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).map_err(|_| ObserveError::TooMany)?;
        let place = ObserverPlace(Arc::clone(&self.inner));
        Ok(Observer::new(self.open_reader(pattern, None, Qos::keep_last(1), "observer", Role::Observer)?, place))
    }

    fn open_reader(
        &self,
        pattern: &str,
        wanted: Option<&Arc<TypeInfo>>,
        requested: Qos,
        owner: &str,
        role: Role,
    ) -> Result<UntypedSubscriber, OpenError> {
        names::check_pattern(pattern).map_err(OpenError::Name)?;
        let subscription = Arc::new(Subscription::new(owner, pattern, requested, role));
        // Leaves the topics that it has joined where it cannot join all.
        let subscriber = UntypedSubscriber::new(Arc::clone(&subscription), Arc::clone(&self.inner));
        if names::is_name(pattern) {
            while !self.inner.join(&*self.inner.topic(pattern, wanted, owner)?, &subscription, wanted)? {}
        } else {
            let topics = self.inner.register_pattern(&subscription);
            // Before it joins any: one that is refused gets no sample that it would then lose.
            topics.iter().try_for_each(|topic| self.inner.check(topic, &subscription))?;
            for topic in topics {
                // A topic that was forgotten meanwhile joins the pattern again when it comes back.
                self.inner.join(&topic, &subscription, None)?;
            }
        }
        if requested.deadline.is_some() {
            self.inner.watch.poke(&self.inner);
        }
        if self.inner.closed.load(Ordering::SeqCst) {
            subscription.close();
        }
        Ok(subscriber)
    }

    /// Forgets a topic that nobody publishes and nobody reads by its name, with all that was counted of it; whether there
    /// was one.
    pub fn remove_topic(&self, name: &str) -> bool {
        let mut topics = self.inner.topics.write().unwrap_or_else(PoisonError::into_inner);
        topics.get(name).is_some_and(|topic| topic.forget()) && topics.remove(name).is_some()
    }

    /// Tells what was missed of deadlines and leases until now: what the bus's own thread does, for those whose clock is
    /// moved by hand.
    pub fn check_deadlines(&self) {
        self.inner.check_deadlines(self.inner.clock.mono());
    }

    /// Makes the buffers of a topic, before the first loan. Without this the topic's pool grows as it is used.
    ///
    /// # Errors
    /// Not a topic's name, a size that a pool cannot have, a pool that is sized or in use already, or no memory.
    pub fn size_pool(&self, topic: &str, size: PoolSize) -> Result<PoolSnapshot, PoolError> {
        names::check_name(topic).map_err(OpenError::Name)?;
        self.inner.topic(topic, None, "")?.pool.size(topic, size)
    }

    /// A counter of a component; the same names give the same counter.
    #[must_use]
    pub fn counter(&self, component: &str, name: &str, reason: Option<&str>) -> Counter {
        self.inner.stats.counter(component, name, reason)
    }

    /// A place where messages are measured without being published.
    #[must_use]
    pub fn hop(&self, name: &str) -> Hop {
        Hop::new(name, Arc::clone(&self.inner.stats))
    }

    pub(crate) fn stats(&self) -> &Arc<Stats> {
        &self.inner.stats
    }

    /// Ends a window of one second (or of `seconds`): rates and recent latencies are those of the window that ended.
    pub fn tick(&self, seconds: f64) {
        self.inner.stats.tick(seconds);
        self.inner.all_topics().iter().for_each(|topic| topic.tick(seconds));
    }

    /// Everything that is counted and measured, now.
    #[must_use]
    pub fn snapshot(&self) -> BusSnapshot {
        let now = self.inner.clock.mono();
        BusSnapshot {
            node: self.inner.node.clone(),
            topics: self.inner.all_topics().iter().map(|topic| topic.snapshot(now)).collect(),
            hops: self.inner.stats.hop_snapshots(),
            counters: self.inner.stats.counter_snapshots(),
            callbacks: self.inner.stats.callbacks.snapshots(),
        }
    }

    /// Ends all subscriptions: readers get what is in their queues and then the end.
    pub fn close(&self) {
        self.inner.closed.store(true, Ordering::SeqCst);
        // Closing wakes readers, and an inline one runs here: no lock may be held.
        for topic in self.inner.all_topics() {
            topic.readers().ends.iter().for_each(|end| end.subscription.close());
        }
        let patterns = self.inner.patterns.lock().unwrap_or_else(PoisonError::into_inner).clone();
        patterns.iter().for_each(|end| end.close());
    }
}

impl Inner {
    /// The topic of that name, of the type that is wanted or of none yet; made where it is new, and added to the patterns
    /// that it fits.
    fn topic(&self, name: &str, wanted: Option<&Arc<TypeInfo>>, owner: &str) -> Result<Arc<Topic>, OpenError> {
        let patterns = self.patterns.lock().unwrap_or_else(PoisonError::into_inner);
        let mut topics = self.topics.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = topics.get(name) {
            match check_type(known, wanted, owner) {
                Ok(()) => return Ok(Arc::clone(known)),
                // A topic that nobody uses may come back with another type.
                Err(_) if known.forget_if_plain() => _ = topics.remove(name),
                Err(error) => return Err(error),
            }
        }
        if topics.len() >= TOPICS_MAX {
            topics.retain(|_, topic| !topic.forget_if_plain());
        }
        if topics.len() >= TOPICS_MAX {
            return Err(OpenError::TooManyTopics { topic: name.to_owned() });
        }
        let topic = Arc::new(Topic::new(name));
        for subscription in patterns.iter().filter(|reader| names::matches(&reader.pattern, name)) {
            // A new topic has no publisher that could offer too little or keep something.
            let _ = topic.add_subscription(subscription, None, self.clock.mono());
        }
        topics.insert(Arc::clone(&topic.name), Arc::clone(&topic));
        Ok(topic)
    }

    /// Adds a reader to a topic; false where the topic was forgotten meanwhile.
    fn join(
        self: &Arc<Self>,
        topic: &Topic,
        reader: &Arc<Subscription>,
        wanted: Option<&Arc<TypeInfo>>,
    ) -> Result<bool, OpenError> {
        match topic.add_subscription(reader, wanted, self.clock.mono()) {
            Ok(()) => {
                // Here, where no lock is held: an inline reader runs where it is woken.
                reader.wake();
                // What publishers kept for it has begun its deadline.
                if reader.qos.deadline.is_some() {
                    self.watch.poke(self);
                }
                Ok(true)
            }
            Err(JoinError::Forgotten) => Ok(false),
            Err(JoinError::Mismatch(publisher, mismatch)) => Err(refused(topic, &publisher, &reader.owner, mismatch)),
            Err(JoinError::Type(has)) => {
                wanted.map_or(Ok(false), |wanted| Err(other_type(topic, &has, wanted, &reader.owner)))
            }
        }
    }

    /// Whether a reader may join a topic, as far as it can be said before it does.
    fn check(&self, topic: &Topic, reader: &Subscription) -> Result<(), OpenError> {
        match topic.serves(reader) {
            Err(JoinError::Mismatch(publisher, mismatch)) => Err(refused(topic, &publisher, &reader.owner, mismatch)),
            _ => Ok(()),
        }
    }

    /// Tells what was missed of deadlines and leases until `now`; when to look again.
    pub(crate) fn check_deadlines(&self, now: Mono) -> Option<Mono> {
        self.all_topics().iter().filter_map(|topic| topic.check_deadlines(now)).min()
    }

    pub(crate) fn observer_left(&self) {
        self.observers.fetch_sub(1, Ordering::SeqCst);
    }

    /// Notes a subscription to a pattern and gives the topics that fit it already.
    fn register_pattern(&self, subscription: &Arc<Subscription>) -> Vec<Arc<Topic>> {
        let mut patterns = self.patterns.lock().unwrap_or_else(PoisonError::into_inner);
        patterns.push(Arc::clone(subscription));
        self.all_topics().into_iter().filter(|topic| names::matches(&subscription.pattern, &topic.name)).collect()
    }

    pub(crate) fn unsubscribe(&self, subscription: &Arc<Subscription>) {
        self.patterns.lock().unwrap_or_else(PoisonError::into_inner).retain(|other| !Arc::ptr_eq(other, subscription));
        self.all_topics().iter().for_each(|topic| topic.remove_subscription(subscription));
    }

    fn all_topics(&self) -> Vec<Arc<Topic>> {
        self.topics.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.watch.end();
    }
}

fn check_type(topic: &Topic, wanted: Option<&Arc<TypeInfo>>, owner: &str) -> Result<(), OpenError> {
    match (topic.type_info.get(), wanted) {
        (Some(has), Some(wanted)) if has.full_name() != wanted.full_name() => {
            Err(other_type(topic, has, wanted, owner))
        }
        _ => Ok(()),
    }
}

fn other_type(topic: &Topic, has: &TypeInfo, wants: &TypeInfo, owner: &str) -> OpenError {
    OpenError::Type {
        topic: topic.name.to_string(),
        component: owner.to_owned(),
        has: has.full_name().to_owned(),
        wants: wants.full_name().to_owned(),
    }
}

fn refused(topic: &Topic, publisher: &str, subscriber: &str, mismatch: QosMismatch) -> OpenError {
    OpenError::Qos {
        topic: topic.name.to_string(),
        publisher: publisher.to_owned(),
        subscriber: subscriber.to_owned(),
        mismatch: Box::new(mismatch),
    }
}
