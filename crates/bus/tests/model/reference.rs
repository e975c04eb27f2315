//! The reference model: the documentation of `Qos`, implemented with vectors and loops.
//!
//! Time is in nanoseconds since the bus was created. The model shares no code with the bus and is not fast.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use viaduct_bus::{Durability, History, Liveliness, OBSERVERS_MAX, Qos, QosEvent, Reliability};

use super::steps::{Kind, OPEN_MAX, Step};
use super::{Outcome, PublisherView, Seen, SubscriptionView, TopicView, View};

/// Maximum number of queued events.
const EVENTS_MAX: usize = 64;

#[derive(Default)]
pub(crate) struct Reference {
    now: u64,
    closed: bool,
    topics: BTreeMap<&'static str, Topic>,
    /// Open publishers, in the order of opening; subscribers and observers are in the same order.
    publishers: Vec<Publisher>,
    subscribers: Vec<Subscriber>,
    observers: Vec<Subscriber>,
    opened: usize,
    publish_steps: usize,
    topics_made: usize,
}

struct Topic {
    /// Distinguishes a topic from an earlier one of the same name.
    id: usize,
    kind: Option<Kind>,
    published: u64,
    dropped: u64,
}

struct Publisher {
    owner: String,
    topic: &'static str,
    qos: Qos,
    kind: Kind,
    history: Vec<Sample>,
    alive: bool,
    asserted: u64,
    liveliness_lost: u64,
    deadline: Option<Deadline>,
    inbox: Inbox,
}

struct Subscriber {
    owner: String,
    pattern: &'static str,
    qos: Qos,
    kind: Option<Kind>,
    is_observer: bool,
    queue: VecDeque<Sample>,
    /// Counters of each topic, by its `id`.
    counts: BTreeMap<usize, Counts>,
    missed: u64,
    inbox: Inbox,
}

#[derive(Default)]
struct Counts {
    delivered: u64,
    dropped: BTreeMap<&'static str, u64>,
    deadline: Option<Deadline>,
}

#[derive(Clone)]
struct Sample {
    topic_id: usize,
    kind: Kind,
    /// Last time at which it may be delivered.
    valid_until: Option<u64>,
    seen: Seen,
}

struct Deadline {
    period: u64,
    last: Option<u64>,
    missed_before_last: u64,
    reported: u64,
}

/// Queue of events; discards them if there is no reader.
struct Inbox {
    listens: bool,
    events: VecDeque<QosEvent>,
    lost: u64,
}

impl Reference {
    pub(crate) fn apply(&mut self, step: Step) -> Outcome {
        match step {
            Step::OpenPublisher { topic, kind, qos, listens } => self.open_publisher(topic, kind, qos, listens),
            Step::OpenSubscriber { pattern, kind, qos, listens } => self.open_subscriber(pattern, kind, qos, listens),
            Step::OpenObserver { pattern } => self.observe(pattern),
            Step::DropPublisher(index) => self.drop_publisher(index),
            Step::DropSubscriber(index) => self.drop_subscriber(index),
            Step::DropObserver(index) => pick(self.observers.len(), index).map_or(Outcome::Idle, |index| {
                self.observers.remove(index);
                Outcome::Done
            }),
            Step::Publish(index) => self.publish(index),
            Step::Assert(index) => pick(self.publishers.len(), index).map_or(Outcome::Idle, |index| {
                self.assert_liveliness(index);
                Outcome::Done
            }),
            Step::Take(index) => self.take(index),
            Step::Look(index) => self.look(index),
            Step::PublisherEvents(index) => {
                pick(self.publishers.len(), index).map_or(Outcome::Idle, |index| self.publishers[index].inbox.drain())
            }
            Step::SubscriberEvents(index) => {
                pick(self.subscribers.len(), index).map_or(Outcome::Idle, |index| self.subscribers[index].inbox.drain())
            }
            Step::Advance(time) => {
                self.now += nanos(time);
                self.check();
                Outcome::Done
            }
            Step::RemoveTopic(name) => Outcome::Removed(self.is_unused(name) && self.topics.remove(name).is_some()),
            Step::Close => {
                self.closed = true;
                Outcome::Done
            }
        }
    }

    // Opening and closing.

    fn open_publisher(&mut self, name: &'static str, kind: Kind, qos: Qos, listens: bool) -> Outcome {
        if self.publishers.len() == OPEN_MAX {
            return Outcome::Idle;
        }
        let owner = self.next_owner();
        if let Err(refusal) = self.topic_of_kind(name, Some(kind), &owner) {
            return refusal;
        }
        for subscriber in self.subscribers.iter().filter(|subscriber| subscriber.reads(name)) {
            if let Some(why) = mismatch(&qos, &subscriber.qos) {
                return refused(name, &owner, &subscriber.owner, &why);
            }
        }
        self.topic(name).kind = Some(kind);
        self.publishers.push(Publisher {
            owner,
            topic: name,
            qos,
            kind,
            history: Vec::new(),
            alive: true,
            asserted: self.now,
            liveliness_lost: 0,
            deadline: Deadline::of(&qos),
            inbox: Inbox::new(listens),
        });
        self.report_liveliness(name);
        Outcome::Done
    }

    fn open_subscriber(&mut self, pattern: &'static str, kind: Option<Kind>, qos: Qos, listens: bool) -> Outcome {
        if self.subscribers.len() == OPEN_MAX {
            return Outcome::Idle;
        }
        let subscriber = Subscriber::new(self.next_owner(), pattern, qos, kind, listens);
        match self.join(subscriber) {
            Ok(subscriber) => {
                self.subscribers.push(subscriber);
                Outcome::Done
            }
            Err(refusal) => refusal,
        }
    }

    fn observe(&mut self, pattern: &'static str) -> Outcome {
        if self.observers.len() == OBSERVERS_MAX {
            return Outcome::Refused("4 observers are attached already; end one of them first".into());
        }
        let mut observer = Subscriber::new("observer".into(), pattern, Qos::keep_last(1), None, false);
        observer.is_observer = true;
        match self.join(observer) {
            Ok(observer) => {
                self.observers.push(observer);
                Outcome::Done
            }
            Err(refusal) => refusal,
        }
    }

    /// Joins all topics or none: a refused subscriber changes nothing, except that the topic of its name exists.
    fn join(&mut self, mut subscriber: Subscriber) -> Result<Subscriber, Outcome> {
        if is_name(subscriber.pattern) {
            self.topic_of_kind(subscriber.pattern, subscriber.kind, &subscriber.owner)?;
        }
        let names: Vec<_> = self.topics.keys().copied().filter(|name| subscriber.reads(name)).collect();
        for &name in &names {
            for publisher in self.publishers.iter().filter(|publisher| publisher.topic == name) {
                if let Some(why) = mismatch(&publisher.qos, &subscriber.qos) {
                    return Err(refused(name, &publisher.owner, &subscriber.owner, &why));
                }
            }
        }
        if is_name(subscriber.pattern) && subscriber.kind.is_some() {
            self.topic(subscriber.pattern).kind = subscriber.kind;
        }
        for name in names {
            let id = self.topic(name).id;
            subscriber.counts.insert(id, Counts { deadline: Deadline::of(&subscriber.qos), ..Counts::default() });
            if subscriber.qos.durability == Durability::TransientLocal {
                self.enqueue_history(name, &mut subscriber);
            }
        }
        Ok(subscriber)
    }

    /// Enqueues the kept samples of the present publishers that have not expired, in the order of publishing. If the
    /// subscriber does not have room for all, it receives the newest.
    fn enqueue_history(&mut self, name: &'static str, subscriber: &mut Subscriber) {
        let publishers = self.publishers.iter().filter(|publisher| publisher.topic == name);
        let mut kept: Vec<Sample> = publishers.flat_map(|publisher| publisher.history.clone()).collect();
        kept.retain(|sample| sample.is_valid(self.now));
        kept.sort_by_key(|sample| sample.seen.sequence);
        while kept.len() > depth(&subscriber.qos) {
            kept.remove(0);
        }
        for sample in kept {
            let losses = subscriber.deliver(&sample, false, self.now).losses;
            count_drops(&mut self.topics, &losses);
        }
    }

    fn drop_publisher(&mut self, index: usize) -> Outcome {
        let Some(index) = pick(self.publishers.len(), index) else {
            return Outcome::Idle;
        };
        let gone = self.publishers.remove(index);
        self.report_liveliness(gone.topic);
        Outcome::Done
    }

    fn drop_subscriber(&mut self, index: usize) -> Outcome {
        let Some(index) = pick(self.subscribers.len(), index) else {
            return Outcome::Idle;
        };
        let gone = self.subscribers.remove(index);
        let losses: Vec<usize> = gone.queue.iter().map(|sample| sample.topic_id).collect();
        count_drops(&mut self.topics, &losses);
        Outcome::Done
    }

    // Topics.

    /// Ensures that a topic of that name exists that may carry `kind`. An unused topic is replaced.
    fn topic_of_kind(&mut self, name: &'static str, kind: Option<Kind>, owner: &str) -> Result<(), Outcome> {
        let has = self.topics.get(name).and_then(|topic| topic.kind);
        if let (Some(has), Some(wants)) = (has, kind)
            && has != wants
        {
            if self.has_typed_end(name) {
                let (has, wants) = (type_name(has), type_name(wants));
                return Err(Outcome::Refused(format!("topic `{name}` carries `{has}`, and {owner} wants `{wants}`")));
            }
            // A topic with readers that take any type remains, and gets the new type from the publisher or subscriber that joins.
            if self.is_unused(name) {
                self.topics.remove(name);
            }
        }
        if !self.topics.contains_key(name) {
            self.make_topic(name);
        }
        Ok(())
    }

    fn make_topic(&mut self, name: &'static str) {
        self.topics_made += 1;
        let id = self.topics_made;
        self.topics.insert(name, Topic { id, kind: None, published: 0, dropped: 0 });
        for reader in self.subscribers.iter_mut().chain(&mut self.observers).filter(|reader| reader.reads(name)) {
            reader.counts.insert(id, Counts { deadline: Deadline::of(&reader.qos), ..Counts::default() });
        }
    }

    fn topic(&mut self, name: &str) -> &mut Topic {
        self.topics.get_mut(name).unwrap()
    }

    /// Returns `true` if a publisher or a typed subscriber relies on the topic's type.
    fn has_typed_end(&self, name: &str) -> bool {
        let is_read = self.subscribers.iter().any(|reader| reader.pattern == name && reader.kind.is_some());
        is_read || self.publishers.iter().any(|publisher| publisher.topic == name)
    }

    /// Returns `true` if the topic has no publisher and no subscription to exactly its name.
    fn is_unused(&self, name: &str) -> bool {
        let is_read = self.subscribers.iter().chain(&self.observers).any(|reader| reader.pattern == name);
        let is_published = self.publishers.iter().any(|publisher| publisher.topic == name);
        !is_read && !is_published
    }

    fn next_owner(&mut self) -> String {
        self.opened += 1;
        format!("end{}", self.opened)
    }

    // Samples.

    fn publish(&mut self, index: usize) -> Outcome {
        self.publish_steps += 1;
        let Some(index) = pick(self.publishers.len(), index) else {
            return Outcome::Idle;
        };
        let sample = self.next_sample(index);
        if self.publishers[index].qos.durability == Durability::TransientLocal {
            self.publishers[index].keep(sample.clone());
        }
        let missed_by = self.deliver(&sample);
        let now = self.now;
        self.publishers[index].deadline.iter_mut().for_each(|deadline| deadline.sample(now));
        self.assert_liveliness(index);
        let topic = sample.seen.topic;
        let error = || format!("topic `{topic}`: the queue of {} stayed full", missed_by.join(", "));
        Outcome::Published((!missed_by.is_empty()).then(error))
    }

    fn next_sample(&mut self, index: usize) -> Sample {
        let now = self.now;
        let text = format!("sample {}", self.publish_steps);
        let Publisher { topic: name, kind, qos, .. } = self.publishers[index];
        let topic = self.topic(name);
        topic.published += 1;
        Sample {
            topic_id: topic.id,
            kind,
            valid_until: qos.lifespan.map(|age| now + nanos(age)),
            seen: Seen { topic: name.to_owned(), sequence: topic.published, text },
        }
    }

    /// Delivers a sample to all readers of its topic. Returns the reliable ones that missed it.
    fn deliver(&mut self, sample: &Sample) -> Vec<String> {
        let mut missed_by = Vec::new();
        let readers = self.subscribers.iter_mut().chain(&mut self.observers);
        for reader in readers.filter(|reader| reader.reads(&sample.seen.topic)) {
            let Delivery { losses, missed } = reader.deliver(sample, self.closed, self.now);
            count_drops(&mut self.topics, &losses);
            if missed && matches!(reader.qos.reliability, Reliability::Reliable { .. }) {
                missed_by.push(reader.owner.clone());
            }
        }
        missed_by
    }

    fn take(&mut self, index: usize) -> Outcome {
        let Some(index) = pick(self.subscribers.len(), index) else {
            return Outcome::Idle;
        };
        let (taken, losses) = self.subscribers[index].take(self.now);
        count_drops(&mut self.topics, &losses);
        Outcome::Taken(taken)
    }

    fn look(&mut self, index: usize) -> Outcome {
        let Some(index) = pick(self.observers.len(), index) else {
            return Outcome::Idle;
        };
        Outcome::Taken(self.observers[index].take(self.now).0)
    }

    // Deadlines and liveliness.

    fn assert_liveliness(&mut self, index: usize) {
        let publisher = &mut self.publishers[index];
        publisher.asserted = self.now;
        if !publisher.alive {
            publisher.alive = true;
            let topic = publisher.topic;
            self.report_liveliness(topic);
        }
    }

    fn report_liveliness(&mut self, name: &str) {
        let of_topic = || self.publishers.iter().filter(|publisher| publisher.topic == name);
        let alive = of_topic().filter(|publisher| publisher.alive).count();
        let not_alive = of_topic().count() - alive;
        for subscriber in self.subscribers.iter_mut().filter(|subscriber| subscriber.reads(name)) {
            subscriber.inbox.put(QosEvent::LivelinessChanged { topic: Arc::from(name), alive, not_alive });
        }
    }

    /// Reports misses up to now, topic by topic: first expired leases, then deadlines of publishers and subscribers.
    fn check(&mut self) {
        for name in self.topics.keys().copied().collect::<Vec<_>>() {
            self.check_leases(name);
            self.check_deadlines(name);
        }
    }

    fn check_leases(&mut self, name: &'static str) {
        let mut lease_expired = false;
        for publisher in self.publishers.iter_mut().filter(|publisher| publisher.topic == name) {
            if publisher.alive && publisher.lease_is_over(self.now) {
                publisher.alive = false;
                publisher.liveliness_lost += 1;
                publisher.inbox.put(QosEvent::LivelinessLost { topic: Arc::from(name) });
                lease_expired = true;
            }
        }
        if lease_expired {
            self.report_liveliness(name);
        }
    }

    fn check_deadlines(&mut self, name: &'static str) {
        let (now, id) = (self.now, self.topics[name].id);
        for publisher in self.publishers.iter_mut().filter(|publisher| publisher.topic == name) {
            let missed = publisher.deadline.as_mut().map_or(0, |deadline| deadline.newly_missed(now));
            if missed > 0 {
                publisher.inbox.put(QosEvent::OfferedDeadlineMissed { topic: Arc::from(name), missed });
            }
        }
        for subscriber in self.subscribers.iter_mut().filter(|subscriber| subscriber.reads(name)) {
            let deadline = subscriber.counts.get_mut(&id).and_then(|counts| counts.deadline.as_mut());
            let missed = deadline.map_or(0, |deadline| deadline.newly_missed(now));
            if missed > 0 {
                subscriber.inbox.put(QosEvent::RequestedDeadlineMissed { topic: Arc::from(name), missed });
            }
        }
    }

    // Observation.

    /// Takes the events of every publisher and subscriber.
    pub(crate) fn drain_events(&mut self) -> Vec<Outcome> {
        let publishers = self.publishers.iter_mut().map(|publisher| &mut publisher.inbox);
        publishers
            .chain(self.subscribers.iter_mut().map(|subscriber| &mut subscriber.inbox))
            .map(Inbox::drain)
            .collect()
    }

    pub(crate) fn view(&self) -> View {
        let publishers = self.publishers.iter().map(|publisher| &publisher.inbox);
        let inboxes = publishers.chain(self.subscribers.iter().map(|subscriber| &subscriber.inbox));
        View {
            topics: self.topics.iter().map(|(name, topic)| self.topic_view(name, topic)).collect(),
            missed: self.observers.iter().map(|observer| observer.missed).collect(),
            events_lost: inboxes.map(|inbox| inbox.listens.then_some(inbox.lost)).collect(),
        }
    }

    fn topic_view(&self, name: &str, topic: &Topic) -> TopicView {
        let publishers = self.publishers.iter().filter(|publisher| publisher.topic == name);
        // Observers are last.
        let readers = self.subscribers.iter().chain(&self.observers).filter(|reader| reader.reads(name));
        TopicView {
            name: name.to_owned(),
            type_name: topic.kind.map(|kind| type_name(kind).to_owned()),
            published: topic.published,
            intervals: topic.published.saturating_sub(1),
            dropped: topic.dropped,
            publishers: publishers.map(|publisher| publisher.view(self.now)).collect(),
            subscriptions: readers.map(|reader| reader.view(topic.id, self.now)).collect(),
        }
    }
}

impl Publisher {
    fn keep(&mut self, sample: Sample) {
        self.history.push(sample);
        if self.history.len() > depth(&self.qos) {
            self.history.remove(0);
        }
    }

    fn lease_is_over(&self, now: u64) -> bool {
        let elapsed = now - self.asserted;
        self.qos.liveliness == Liveliness::ManualByTopic && self.qos.lease.is_some_and(|lease| elapsed > nanos(lease))
    }

    fn view(&self, now: u64) -> PublisherView {
        let has_lease = self.qos.liveliness == Liveliness::ManualByTopic && self.qos.lease.is_some();
        PublisherView {
            owner: self.owner.clone(),
            alive: self.alive,
            deadline_missed: self.deadline.as_ref().map(|deadline| deadline.missed(now)),
            liveliness_lost: has_lease.then_some(self.liveliness_lost),
        }
    }
}

/// Result of giving a sample to a reader.
#[derive(Default)]
struct Delivery {
    /// Topics of the samples that were dropped.
    losses: Vec<usize>,
    /// `true` if the queue had no room for the sample.
    missed: bool,
}

impl Subscriber {
    fn new(owner: String, pattern: &'static str, qos: Qos, kind: Option<Kind>, listens: bool) -> Self {
        Self {
            owner,
            pattern,
            qos,
            kind,
            is_observer: false,
            queue: VecDeque::new(),
            counts: BTreeMap::new(),
            missed: 0,
            inbox: Inbox::new(listens),
        }
    }

    fn reads(&self, name: &str) -> bool {
        match self.pattern {
            "**" => true,
            "x/*" => name.starts_with("x/"),
            exact => exact == name,
        }
    }

    fn deliver(&mut self, sample: &Sample, closed: bool, now: u64) -> Delivery {
        let mut given = Delivery::default();
        if closed {
            self.lose(sample, "closed", &mut given.losses);
        } else if self.queue.len() < depth(&self.qos) {
            self.queue.push_back(sample.clone());
        } else if matches!(self.qos.history, History::KeepLast(_)) {
            let oldest = self.queue.pop_front().unwrap();
            self.queue.push_back(sample.clone());
            self.lose(&oldest, "overwritten", &mut given.losses);
        } else {
            given.missed = true;
            self.lose(sample, "queue_full", &mut given.losses);
        }
        // A sample that had no room still counts as in time.
        self.counts_of(sample).deadline.iter_mut().for_each(|deadline| deadline.sample(now));
        given
    }

    /// Takes the first sample that can be delivered. Also returns the topics of the samples dropped before it.
    fn take(&mut self, now: u64) -> (Option<Seen>, Vec<usize>) {
        let mut losses = Vec::new();
        while let Some(sample) = self.queue.pop_front() {
            if !sample.is_valid(now) {
                self.lose(&sample, "expired", &mut losses);
            } else if self.kind.is_some_and(|kind| kind != sample.kind) {
                self.lose(&sample, "undecodable", &mut losses);
            } else {
                self.counts_of(&sample).delivered += 1;
                return (Some(sample.seen), losses);
            }
        }
        (None, losses)
    }

    /// Counts a sample as missed for an observer, as dropped for a subscriber.
    fn lose(&mut self, sample: &Sample, reason: &'static str, losses: &mut Vec<usize>) {
        if self.is_observer {
            self.missed += 1;
        } else {
            *self.counts_of(sample).dropped.entry(reason).or_default() += 1;
            losses.push(sample.topic_id);
        }
    }

    fn counts_of(&mut self, sample: &Sample) -> &mut Counts {
        self.counts.get_mut(&sample.topic_id).unwrap()
    }

    fn view(&self, topic_id: usize, now: u64) -> SubscriptionView {
        let counts = &self.counts[&topic_id];
        SubscriptionView {
            owner: self.owner.clone(),
            pattern: self.pattern.to_owned(),
            delivered: counts.delivered,
            queued: self.queue.iter().filter(|sample| sample.topic_id == topic_id).count(),
            dropped: counts.dropped.clone(),
            deadline_missed: counts.deadline.as_ref().map(|deadline| deadline.missed(now)),
        }
    }
}

impl Sample {
    fn is_valid(&self, now: u64) -> bool {
        self.valid_until.is_none_or(|end| now <= end)
    }
}

impl Deadline {
    fn of(qos: &Qos) -> Option<Self> {
        qos.deadline.map(|period| Self { period: nanos(period), last: None, missed_before_last: 0, reported: 0 })
    }

    fn sample(&mut self, now: u64) {
        self.missed_before_last = self.missed(now);
        self.last = Some(now);
    }

    /// Returns the number of periods that ended before `now` without a sample.
    fn missed(&self, now: u64) -> u64 {
        let mut missed = self.missed_before_last;
        let Some(last) = self.last else {
            return 0;
        };
        let mut end = last + self.period;
        while end < now {
            missed += 1;
            end += self.period;
        }
        missed
    }

    fn newly_missed(&mut self, now: u64) -> u64 {
        let before = self.reported;
        self.reported = self.missed(now);
        self.reported - before
    }
}

impl Inbox {
    fn new(listens: bool) -> Self {
        Self { listens, events: VecDeque::new(), lost: 0 }
    }

    fn put(&mut self, event: QosEvent) {
        if !self.listens {
            return;
        }
        self.events.push_back(event);
        if self.events.len() > EVENTS_MAX {
            self.events.pop_front();
            self.lost += 1;
        }
    }

    fn drain(&mut self) -> Outcome {
        if self.listens { Outcome::Events(self.events.drain(..).collect()) } else { Outcome::Idle }
    }
}

/// Counts dropped samples at their topics, if those still exist.
fn count_drops(topics: &mut BTreeMap<&'static str, Topic>, losses: &[usize]) {
    for topic in topics.values_mut() {
        topic.dropped += losses.iter().filter(|id| **id == topic.id).count() as u64;
    }
}

/// Returns the first policy that does not fit, by the table "Quality of Service compatibilities" of the ROS 2
/// documentation.
fn mismatch(offered: &Qos, requested: &Qos) -> Option<String> {
    let text = |policy: &str, offered: &str, requested: &str| {
        Some(format!("{policy}: offered is {offered}, requested is {requested}"))
    };
    let time = |time: Option<Duration>| time.map_or("none".to_owned(), |time| format!("{time:?}"));
    let longer = |offered: Option<Duration>, requested: Option<Duration>| match (offered, requested) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(offered), Some(requested)) => offered > requested,
    };
    let is_reliable = |qos: &Qos| matches!(qos.reliability, Reliability::Reliable { .. });
    if is_reliable(requested) && !is_reliable(offered) {
        return text("reliability", "best effort", "reliable");
    }
    if requested.durability == Durability::TransientLocal && offered.durability == Durability::Volatile {
        return text("durability", "volatile", "transient local");
    }
    if longer(offered.deadline, requested.deadline) {
        return text("deadline", &time(offered.deadline), &time(requested.deadline));
    }
    if requested.liveliness == Liveliness::ManualByTopic && offered.liveliness == Liveliness::Automatic {
        return text("liveliness", "automatic", "manual by topic");
    }
    if longer(offered.lease, requested.lease) {
        return text("liveliness lease", &time(offered.lease), &time(requested.lease));
    }
    None
}

fn refused(topic: &str, publisher: &str, subscriber: &str, why: &str) -> Outcome {
    Outcome::Refused(format!("topic `{topic}`: {publisher} does not serve {subscriber} ({why})"))
}

/// Returns the number of samples that a queue holds, at least one.
fn depth(qos: &Qos) -> usize {
    match qos.history {
        History::KeepLast(0) => 1,
        History::KeepLast(depth) => depth,
        History::KeepAll { limit } => limit,
    }
}

fn is_name(pattern: &str) -> bool {
    !pattern.ends_with('*')
}

fn type_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Log => "foxglove.Log",
        Kind::Fix => "foxglove.LocationFix",
    }
}

fn pick(count: usize, index: usize) -> Option<usize> {
    (count > 0).then(|| index % count)
}

fn nanos(time: Duration) -> u64 {
    time.as_nanos() as u64
}
