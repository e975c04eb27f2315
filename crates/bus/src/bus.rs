//! The bus: opens topics for publishing and reading.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use viaduct_messages::Message;
use viaduct_messages::topic as names;
use viaduct_units::Mono;

use crate::clock::Clock;
use crate::endpoint::Endpoint;
use crate::error::{ObserveError, OpenError};
use crate::meta::HopName;
use crate::pool::{PoolError, PoolSize, PoolSnapshot};
use crate::publisher::{Publisher, UntypedPublisher};
use crate::qos::Qos;
use crate::registry::Registry;
use crate::stats::{BusSnapshot, Counter, Gauge, Hop, Stats};
use crate::subscriber::{Observer, ObserverPermit, Subscriber, UntypedSubscriber};
use crate::subscription::{Role, Subscription};
use crate::topic::{JoinError, Topic};
use crate::type_info::TypeInfo;
use crate::writer::Writer;

/// A bus; clones are the same bus.
///
/// ```
/// use viaduct_bus::{Bus, Qos};
/// use viaduct_messages::foxglove::Log;
///
/// let bus = Bus::new("vehicle-1");
/// let all = bus.subscribe_untyped("camera/*", Qos::keep_last(4), "recorder")?;
/// let front = bus.publisher::<Log>("camera/front", Qos::keep_last(4), "camera")?;
/// front.publish(Log::default())?;
/// assert_eq!(all.try_recv().map(|sample| sample.topic().to_owned()).as_deref(), Some("camera/front"));
/// assert_eq!(bus.snapshot().topics[0].published, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Bus {
    inner: Arc<Inner>,
}

struct Inner {
    node: String,
    started: Mono,
    endpoint: Arc<Endpoint>,
    /// Observers that are attached now.
    observers: Arc<AtomicUsize>,
    closed: AtomicBool,
}

impl Bus {
    /// Creates an empty bus for the node named `node`.
    #[must_use]
    pub fn new(node: &str) -> Self {
        Self::with_clock(node, Clock::System)
    }

    /// Creates an empty bus that reads the time from `clock`. In virtual time the caller advances the clock and then
    /// calls [`Self::check_deadlines`]; executors and waits with a limit stay in real time.
    #[must_use]
    pub fn with_clock(node: &str, clock: Clock) -> Self {
        let inner = Inner {
            node: node.to_owned(),
            started: clock.mono(),
            endpoint: Endpoint::new(clock),
            observers: Arc::default(),
            closed: AtomicBool::new(false),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Returns the name of the node.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.inner.node
    }

    /// Returns the time since the bus was created, which is when its node started.
    #[must_use]
    pub fn uptime(&self) -> Duration {
        self.inner.endpoint.clock.mono().since(self.inner.started)
    }

    /// Opens a topic for publishing messages of type `M`, for the component `owner`.
    ///
    /// # Errors
    /// Returns an error if the text is not a topic name, the topic has another type, or a subscriber requests more
    /// quality of service than `offered`.
    pub fn publisher<M: Message>(&self, topic: &str, offered: Qos, owner: &str) -> Result<Publisher<M>, OpenError> {
        self.publisher_untyped(topic, TypeInfo::of::<M>(), offered, owner).map(Publisher::new)
    }

    /// Opens a topic for publishing encoded messages of a type that this binary need not know.
    ///
    /// # Errors
    /// Returns the errors of [`Self::publisher`].
    pub fn publisher_untyped(
        &self,
        topic: &str,
        type_info: TypeInfo,
        offered: Qos,
        owner: &str,
    ) -> Result<UntypedPublisher, OpenError> {
        names::check_name(topic).map_err(OpenError::Name)?;
        let endpoint = &self.inner.endpoint;
        let wanted = Arc::new(type_info);
        let writer = Arc::new(Writer::new(owner, offered, endpoint.clock.mono()));
        let topic = loop {
            let topic = endpoint.topics.topic(topic, Some(&wanted), owner)?;
            match topic.add_publisher(&writer, &wanted) {
                Ok(()) => break topic,
                Err(JoinError::Closed) => {}
                Err(JoinError::Mismatch(reader, mismatch)) => {
                    return Err(OpenError::qos(&topic.name, &writer.owner, &reader, mismatch));
                }
                Err(JoinError::Type(has)) => {
                    return Err(OpenError::other_type(&topic.name, owner, &has, &wanted));
                }
            }
        };
        if offered.lease.is_some() || offered.deadline.is_some() {
            endpoint.monitor.wake();
        }
        Ok(UntypedPublisher {
            topic,
            type_info: wanted,
            writer,
            hop: HopName::new(owner),
            endpoint: Arc::clone(endpoint),
        })
    }

    /// Opens a topic for reading messages of type `M`, for the component `owner`. A pattern is accepted, too: samples
    /// of another type are then counted as [`DropReason::Undecodable`](crate::DropReason).
    ///
    /// # Errors
    /// Returns an error if the text is not a topic name or pattern, the topic has another type, or a publisher offers
    /// less quality of service than `requested`.
    pub fn subscribe<M: Message>(&self, topic: &str, requested: Qos, owner: &str) -> Result<Subscriber<M>, OpenError> {
        let type_info = Arc::new(TypeInfo::of::<M>());
        self.open_reader(topic, Some(&type_info), requested, owner, Role::Reader).map(Subscriber::new)
    }

    /// Opens a topic, or all present and future topics of a pattern, for reading without knowing their types.
    ///
    /// # Errors
    /// Returns an error if the text is not a topic name or pattern, or a publisher offers less quality of service than
    /// `requested`.
    pub fn subscribe_untyped(
        &self,
        pattern: &str,
        requested: Qos,
        owner: &str,
    ) -> Result<UntypedSubscriber, OpenError> {
        self.open_reader(pattern, None, requested, owner, Role::Reader)
    }

    /// Attaches an observer to the topics of a pattern. It costs publishers one slot in a queue of one sample.
    ///
    /// # Errors
    /// Returns an error if the text is not a topic name or pattern, or [`OBSERVERS_MAX`](crate::OBSERVERS_MAX)
    /// observers are attached already.
    pub fn observe(&self, pattern: &str) -> Result<Observer, ObserveError> {
        let place = ObserverPermit::take(&self.inner.observers).ok_or(ObserveError::TooMany)?;
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
        let subscription = Arc::new(Subscription::new(owner, pattern, requested, role, wanted.is_some()));
        // If it cannot join every topic, dropping it leaves those that it has joined.
        let subscriber = UntypedSubscriber::new(Arc::clone(&subscription), Arc::clone(&self.inner.endpoint));
        if names::is_name(pattern) {
            loop {
                // If the topic is removed before it is joined, the next round opens it again.
                let topic = self.topics().topic(pattern, wanted, owner)?;
                if self.inner.join(&topic, &subscription, wanted)? {
                    break;
                }
            }
        } else {
            let topics = self.topics().register_pattern(&subscription);
            // Checked before joining any topic: a refused subscription receives no sample that it would then lose.
            for topic in &topics {
                self.inner.check(topic, &subscription)?;
            }
            for topic in topics {
                // A topic that was removed meanwhile joins the pattern again when it is opened again.
                self.inner.join(&topic, &subscription, None)?;
            }
        }
        if requested.deadline.is_some() {
            self.inner.endpoint.monitor.wake();
        }
        if self.inner.closed.load(Ordering::SeqCst) {
            subscription.close();
        }
        Ok(subscriber)
    }

    /// Removes a topic and its statistics if it has no publisher and no subscription to exactly its name. Returns
    /// `true` if it was removed.
    pub fn remove_topic(&self, name: &str) -> bool {
        self.topics().remove(name)
    }

    /// Reports missed deadlines and expired leases up to now. With the system's clock a thread of the bus does this;
    /// with a [`ManualClock`](crate::ManualClock) the caller does.
    pub fn check_deadlines(&self) {
        self.topics().check_deadlines(self.inner.endpoint.clock.mono());
    }

    /// Allocates the buffers of a topic before the first loan. Without this call the topic's pool grows on demand.
    ///
    /// # Errors
    /// Returns an error if the text is not a topic name, the size is outside the limits, the pool is sized or in use
    /// already, or memory is exhausted.
    pub fn size_pool(&self, topic: &str, size: PoolSize) -> Result<PoolSnapshot, PoolError> {
        names::check_name(topic).map_err(OpenError::Name)?;
        self.topics().topic(topic, None, "")?.pool.size(topic, size)
    }

    /// Returns a counter of a component; the same names return the same counter.
    #[must_use]
    pub fn counter(&self, component: &str, name: &str, reason: Option<&str>) -> Counter {
        self.stats().counter(component, name, reason)
    }

    /// Returns a gauge of a component; the same names return the same gauge. Its value is unknown until it is set.
    #[must_use]
    pub fn gauge(&self, component: &str, name: &str, part: Option<&str>) -> Gauge {
        self.stats().gauge(component, name, part)
    }

    /// Returns a hop, which measures messages without publishing them.
    #[must_use]
    pub fn hop(&self, name: &str) -> Hop {
        Hop::new(name, Arc::clone(self.stats()))
    }

    fn topics(&self) -> &Registry {
        &self.inner.endpoint.topics
    }

    pub(crate) fn stats(&self) -> &Arc<Stats> {
        &self.inner.endpoint.stats
    }

    /// Closes a window of `seconds` (usually 1 s) and starts the next one. Rates and recent latencies are those of the
    /// last closed window.
    pub fn tick(&self, seconds: f64) {
        self.stats().tick(seconds);
        for topic in self.topics().all_topics() {
            topic.tick(seconds);
        }
    }

    /// Returns all counters and measurements at this moment.
    #[must_use]
    pub fn snapshot(&self) -> BusSnapshot {
        let now = self.inner.endpoint.clock.mono();
        BusSnapshot {
            node: self.inner.node.clone(),
            topics: self.topics().all_topics().iter().map(|topic| topic.snapshot(now)).collect(),
            hops: self.stats().hop_snapshots(),
            counters: self.stats().counter_snapshots(),
            gauges: self.stats().gauge_snapshots(),
            callbacks: self.stats().callbacks.snapshots(),
        }
    }

    /// Closes all subscriptions. Readers receive the samples in their queues and then the end.
    pub fn close(&self) {
        self.inner.closed.store(true, Ordering::SeqCst);
        // Closing wakes readers, and an inline reader runs on this thread: no lock may be held.
        for topic in self.topics().all_topics() {
            for entry in &topic.readers().entries {
                entry.subscription.close();
            }
        }
        for subscription in self.topics().all_patterns() {
            subscription.close();
        }
    }
}

impl Inner {
    /// Adds a reader to a topic. Returns `false` if the topic was removed meanwhile.
    fn join(
        &self,
        topic: &Topic,
        reader: &Arc<Subscription>,
        wanted: Option<&Arc<TypeInfo>>,
    ) -> Result<bool, OpenError> {
        match topic.add_subscription(reader, wanted, self.endpoint.clock.mono()) {
            Ok(()) => {
                // No lock is held here: an inline reader runs on the thread that wakes it.
                reader.wake();
                // The samples that publishers kept for the reader have started its deadline.
                if reader.qos.deadline.is_some() {
                    self.endpoint.monitor.wake();
                }
                Ok(true)
            }
            Err(JoinError::Closed) => Ok(false),
            Err(JoinError::Mismatch(publisher, mismatch)) => {
                Err(OpenError::qos(&topic.name, &publisher, &reader.owner, mismatch))
            }
            Err(JoinError::Type(has)) => match wanted {
                Some(wanted) => Err(OpenError::other_type(&topic.name, &reader.owner, &has, wanted)),
                None => Ok(false),
            },
        }
    }

    /// Checks that the topic's publishers offer the quality of service that a reader requests, before the reader joins.
    fn check(&self, topic: &Topic, reader: &Subscription) -> Result<(), OpenError> {
        match topic.check_qos(reader) {
            Err(JoinError::Mismatch(publisher, mismatch)) => {
                Err(OpenError::qos(&topic.name, &publisher, &reader.owner, mismatch))
            }
            _ => Ok(()),
        }
    }
}
