//! The bus: a table of topics.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use viaduct_messages::Message;
use viaduct_messages::topic::{self as names, NameError};
use viaduct_units::Mono;

use crate::clock;
use crate::meta::HopName;
use crate::publisher::{Publisher, UntypedPublisher};
use crate::qos::{Qos, QosMismatch};
use crate::stats::{BusSnapshot, Counter, Hop, Stats, Total, tick_all};
use crate::subscriber::{Subscriber, Subscription, UntypedSubscriber};
use crate::topic::{PublisherEnd, Topic};
use crate::type_info::TypeInfo;

/// Topics that one bus holds at most.
const TOPICS_MAX: usize = 4096;

/// Why a topic cannot be published or read.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OpenError {
    /// The text is not the name of a topic, or not a pattern.
    #[error(transparent)]
    Name(NameError),
    /// The topic has another type.
    #[error("topic `{topic}` carries `{has}`, and {component} wants `{wants}`")]
    Type {
        /// The topic.
        topic: String,
        /// The component that asked.
        component: String,
        /// The type that the topic has.
        has: String,
        /// The type that was asked for.
        wants: String,
    },
    /// A publisher offers less than a subscriber asks for.
    #[error("topic `{topic}`: {publisher} does not serve {subscriber} ({mismatch})")]
    Qos {
        /// The topic.
        topic: String,
        /// The publishing component.
        publisher: String,
        /// The reading component.
        subscriber: String,
        /// The policy that does not fit.
        mismatch: QosMismatch,
    },
    /// The bus has as many topics as it can hold.
    #[error("the bus has {TOPICS_MAX} topics already; `{topic}` would be one more")]
    TooManyTopics {
        /// The topic.
        topic: String,
    },
}

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
    next_publisher: AtomicU64,
    closed: AtomicBool,
}

impl Bus {
    /// An empty bus of the node of that name.
    #[must_use]
    pub fn new(node: &str) -> Self {
        let inner = Inner {
            node: node.to_owned(),
            started: clock::mono(),
            topics: RwLock::default(),
            patterns: Mutex::default(),
            stats: Arc::default(),
            next_publisher: AtomicU64::new(0),
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
        clock::mono().since(self.inner.started)
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
        let topic = self.inner.topic(topic)?;
        let type_info = self.inner.agree_on_type(&topic, type_info, owner)?;
        let id = self.inner.next_publisher.fetch_add(1, Ordering::Relaxed);
        let end = PublisherEnd { id, owner: owner.into(), qos: offered };
        let mut ends = topic.ends.write().unwrap_or_else(PoisonError::into_inner);
        ends.subscriptions.iter().try_for_each(|reader| check_qos(&topic, &end, &reader.subscription))?;
        ends.publishers.push(end);
        drop(ends);
        let hop = HopName::new(owner);
        Ok(UntypedPublisher { id, topic, type_info, qos: offered, hop, bus: Arc::clone(&self.inner) })
    }

    /// Opens a topic for reading messages of type `M`, for the component `owner`.
    ///
    /// # Errors
    /// Not a topic's name, another type, or more quality of service than a publisher offers.
    pub fn subscribe<M: Message>(&self, topic: &str, requested: Qos, owner: &str) -> Result<Subscriber<M>, OpenError> {
        if names::is_name(topic) {
            names::check_name(topic).map_err(OpenError::Name)?;
            let topic = self.inner.topic(topic)?;
            self.inner.agree_on_type(&topic, TypeInfo::of::<M>(), owner)?;
        }
        self.subscribe_untyped(topic, requested, owner).map(Subscriber::new)
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
        names::check_pattern(pattern).map_err(OpenError::Name)?;
        let subscription = Arc::new(Subscription::new(owner, pattern, requested));
        let subscriber = UntypedSubscriber::new(Arc::clone(&subscription), Arc::clone(&self.inner));
        let found = if names::is_name(pattern) {
            vec![self.inner.topic(pattern)?]
        } else {
            self.inner.register_pattern(&subscription)
        };
        for topic in found {
            let publishers = topic.ends.read().unwrap_or_else(PoisonError::into_inner).publishers.clone();
            publishers.iter().try_for_each(|end| check_qos(&topic, end, &subscription))?;
            topic.add_subscription(&subscription);
        }
        if self.inner.closed.load(Ordering::SeqCst) {
            subscription.close();
        }
        Ok(subscriber)
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
        for topic in self.inner.all_topics() {
            let ends = topic.ends.read().unwrap_or_else(PoisonError::into_inner);
            let accounts = || ends.subscriptions.iter().map(|end| &end.account);
            let totals: [&Total; 2] = [&topic.published, &topic.dropped];
            let totals = totals.into_iter().chain(accounts().flat_map(|account| account.totals()));
            tick_all(seconds, totals, accounts().filter_map(|account| account.latency()));
        }
    }

    /// Everything that is counted and measured, now.
    #[must_use]
    pub fn snapshot(&self) -> BusSnapshot {
        BusSnapshot {
            node: self.inner.node.clone(),
            topics: self.inner.all_topics().iter().map(|topic| topic.snapshot()).collect(),
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
            let readers = Arc::clone(&topic.ends.read().unwrap_or_else(PoisonError::into_inner).subscriptions);
            readers.iter().for_each(|end| end.subscription.close());
        }
        let patterns = self.inner.patterns.lock().unwrap_or_else(PoisonError::into_inner).clone();
        patterns.iter().for_each(|end| end.close());
    }
}

impl Inner {
    /// The topic of that name; made where it is new, and added to the patterns that it fits.
    fn topic(&self, name: &str) -> Result<Arc<Topic>, OpenError> {
        let patterns = self.patterns.lock().unwrap_or_else(PoisonError::into_inner);
        let mut topics = self.topics.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = topics.get(name) {
            return Ok(Arc::clone(known));
        }
        if topics.len() >= TOPICS_MAX {
            return Err(OpenError::TooManyTopics { topic: name.to_owned() });
        }
        let topic = Arc::new(Topic::new(name));
        for subscription in patterns.iter().filter(|reader| names::matches(&reader.pattern, name)) {
            topic.add_subscription(subscription);
        }
        topics.insert(Arc::clone(&topic.name), Arc::clone(&topic));
        Ok(topic)
    }

    /// Notes a subscription to a pattern and gives the topics that fit it already.
    fn register_pattern(&self, subscription: &Arc<Subscription>) -> Vec<Arc<Topic>> {
        let mut patterns = self.patterns.lock().unwrap_or_else(PoisonError::into_inner);
        patterns.push(Arc::clone(subscription));
        self.all_topics().into_iter().filter(|topic| names::matches(&subscription.pattern, &topic.name)).collect()
    }

    fn agree_on_type(&self, topic: &Topic, wanted: TypeInfo, owner: &str) -> Result<Arc<TypeInfo>, OpenError> {
        let wanted = Arc::new(wanted);
        let agreed = topic.type_info.get_or_init(|| Arc::clone(&wanted));
        if agreed.full_name() == wanted.full_name() {
            return Ok(wanted);
        }
        Err(OpenError::Type {
            topic: topic.name.to_string(),
            component: owner.to_owned(),
            has: agreed.full_name().to_owned(),
            wants: wanted.full_name().to_owned(),
        })
    }

    pub(crate) fn unsubscribe(&self, subscription: &Arc<Subscription>) {
        self.patterns.lock().unwrap_or_else(PoisonError::into_inner).retain(|other| !Arc::ptr_eq(other, subscription));
        self.all_topics().iter().for_each(|topic| topic.remove_subscription(subscription));
    }

    fn all_topics(&self) -> Vec<Arc<Topic>> {
        self.topics.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

fn check_qos(topic: &Topic, publisher: &PublisherEnd, reader: &Subscription) -> Result<(), OpenError> {
    publisher.qos.serves(&reader.qos).map_err(|mismatch| OpenError::Qos {
        topic: topic.name.to_string(),
        publisher: publisher.owner.to_string(),
        subscriber: reader.owner.to_string(),
        mismatch,
    })
}
