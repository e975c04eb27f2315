//! The bus itself, in virtual time.

use viaduct_bus::{
    Bus, Clock, Events, ManualClock, Meta, Observer, PublishError, Publisher, Qos, Subscriber, TopicSnapshot,
    UntypedSample, UntypedSubscriber,
};
use viaduct_messages::foxglove::{LocationFix, Log};
use viaduct_units::Tai;

use super::steps::{Kind, OPEN_MAX, Step};
use super::{Outcome, PublisherView, Seen, SubscriptionView, TopicView, View};

/// The bus and its open publishers, subscribers and observers.
pub(crate) struct System {
    bus: Bus,
    clock: ManualClock,
    publishers: Vec<OpenPublisher>,
    subscribers: Vec<OpenSubscriber>,
    observers: Vec<Observer>,
    /// Number of publishers and subscribers opened so far, which gives them their names.
    opened: usize,
    /// Number of samples published so far, which gives them their texts.
    published: usize,
}

struct OpenPublisher {
    publisher: AnyPublisher,
    events: Option<Events>,
}

enum AnyPublisher {
    Log(Publisher<Log>),
    Fix(Publisher<LocationFix>),
}

struct OpenSubscriber {
    subscriber: AnySubscriber,
    events: Option<Events>,
}

enum AnySubscriber {
    Untyped(UntypedSubscriber),
    Log(Subscriber<Log>),
    Fix(Subscriber<LocationFix>),
}

impl AnyPublisher {
    fn publish(&self, text: String) -> Result<(), PublishError> {
        let cause = Meta::from_origin(Tai::from_nanos(0));
        match self {
            Self::Log(publisher) => publisher.try_publish_from(cause, Log { message: text, ..Log::default() }),
            Self::Fix(publisher) => {
                publisher.try_publish_from(cause, LocationFix { frame_id: text, ..LocationFix::default() })
            }
        }
    }

    fn assert_liveliness(&self) {
        match self {
            Self::Log(publisher) => publisher.assert_liveliness(),
            Self::Fix(publisher) => publisher.assert_liveliness(),
        }
    }

    fn events(&self) -> Events {
        match self {
            Self::Log(publisher) => publisher.events(),
            Self::Fix(publisher) => publisher.events(),
        }
    }
}

impl AnySubscriber {
    fn take(&self) -> Option<UntypedSample> {
        match self {
            Self::Untyped(subscriber) => subscriber.try_recv(),
            Self::Log(subscriber) => subscriber.try_recv().map(|sample| sample.untyped()),
            Self::Fix(subscriber) => subscriber.try_recv().map(|sample| sample.untyped()),
        }
    }

    fn events(&self) -> Events {
        match self {
            Self::Untyped(subscriber) => subscriber.events(),
            Self::Log(subscriber) => subscriber.events(),
            Self::Fix(subscriber) => subscriber.events(),
        }
    }
}

impl System {
    pub(crate) fn new() -> Self {
        let clock = ManualClock::default();
        Self {
            bus: Bus::with_clock("test", Clock::Manual(clock.clone())),
            clock,
            publishers: Vec::new(),
            subscribers: Vec::new(),
            observers: Vec::new(),
            opened: 0,
            published: 0,
        }
    }

    pub(crate) fn apply(&mut self, step: Step) -> Outcome {
        match step {
            Step::OpenPublisher { topic, kind, qos, listens } => self.open_publisher(topic, kind, qos, listens),
            Step::OpenSubscriber { pattern, kind, qos, listens } => self.open_subscriber(pattern, kind, qos, listens),
            Step::OpenObserver { pattern } => self.observe(pattern),
            Step::DropPublisher(index) => drop_one(&mut self.publishers, index),
            Step::DropSubscriber(index) => drop_one(&mut self.subscribers, index),
            Step::DropObserver(index) => drop_one(&mut self.observers, index),
            Step::Publish(index) => self.publish(index),
            Step::Assert(index) => pick(&self.publishers, index, |end| {
                end.publisher.assert_liveliness();
                Outcome::Done
            }),
            Step::Take(index) => {
                pick(&self.subscribers, index, |end| Outcome::Taken(end.subscriber.take().as_ref().map(seen)))
            }
            Step::Look(index) => {
                pick(&self.observers, index, |observer| Outcome::Taken(observer.try_recv().as_ref().map(seen)))
            }
            Step::PublisherEvents(index) => pick(&self.publishers, index, |end| read(end.events.as_ref())),
            Step::SubscriberEvents(index) => pick(&self.subscribers, index, |end| read(end.events.as_ref())),
            Step::Advance(time) => {
                self.clock.advance(time);
                self.bus.check_deadlines();
                Outcome::Done
            }
            Step::RemoveTopic(name) => Outcome::Removed(self.bus.remove_topic(name)),
            Step::Close => {
                self.bus.close();
                Outcome::Done
            }
        }
    }

    fn open_publisher(&mut self, topic: &str, kind: Kind, qos: Qos, listens: bool) -> Outcome {
        if self.publishers.len() == OPEN_MAX {
            return Outcome::Idle;
        }
        let owner = self.next_owner();
        let publisher = match kind {
            Kind::Log => self.bus.publisher(topic, qos, &owner).map(AnyPublisher::Log),
            Kind::Fix => self.bus.publisher(topic, qos, &owner).map(AnyPublisher::Fix),
        };
        match publisher {
            Ok(publisher) => {
                let events = listens.then(|| publisher.events());
                self.publishers.push(OpenPublisher { publisher, events });
                Outcome::Done
            }
            Err(error) => Outcome::Refused(error.to_string()),
        }
    }

    fn open_subscriber(&mut self, pattern: &str, kind: Option<Kind>, qos: Qos, listens: bool) -> Outcome {
        if self.subscribers.len() == OPEN_MAX {
            return Outcome::Idle;
        }
        let owner = self.next_owner();
        let subscriber = match kind {
            None => self.bus.subscribe_untyped(pattern, qos, &owner).map(AnySubscriber::Untyped),
            Some(Kind::Log) => self.bus.subscribe(pattern, qos, &owner).map(AnySubscriber::Log),
            Some(Kind::Fix) => self.bus.subscribe(pattern, qos, &owner).map(AnySubscriber::Fix),
        };
        match subscriber {
            Ok(subscriber) => {
                let events = listens.then(|| subscriber.events());
                self.subscribers.push(OpenSubscriber { subscriber, events });
                Outcome::Done
            }
            Err(error) => Outcome::Refused(error.to_string()),
        }
    }

    fn observe(&mut self, pattern: &str) -> Outcome {
        match self.bus.observe(pattern) {
            Ok(observer) => {
                self.observers.push(observer);
                Outcome::Done
            }
            Err(error) => Outcome::Refused(error.to_string()),
        }
    }

    fn next_owner(&mut self) -> String {
        self.opened += 1;
        format!("end{}", self.opened)
    }

    fn publish(&mut self, index: usize) -> Outcome {
        self.published += 1;
        let text = format!("sample {}", self.published);
        pick(&self.publishers, index, |end| {
            Outcome::Published(end.publisher.publish(text).err().map(|error| error.to_string()))
        })
    }

    /// Takes the events of every publisher and subscriber.
    pub(crate) fn drain_events(&self) -> Vec<Outcome> {
        let publishers = self.publishers.iter().map(|end| &end.events);
        publishers.chain(self.subscribers.iter().map(|end| &end.events)).map(|events| read(events.as_ref())).collect()
    }

    pub(crate) fn view(&self) -> View {
        let publishers = self.publishers.iter().map(|end| &end.events);
        let listeners = publishers.chain(self.subscribers.iter().map(|end| &end.events));
        View {
            topics: self.bus.snapshot().topics.into_iter().map(topic_view).collect(),
            missed: self.observers.iter().map(Observer::missed).collect(),
            events_lost: listeners.map(|events| events.as_ref().map(Events::lost)).collect(),
        }
    }
}

fn pick<T>(ends: &[T], index: usize, act: impl FnOnce(&T) -> Outcome) -> Outcome {
    if ends.is_empty() { Outcome::Idle } else { act(&ends[index % ends.len()]) }
}

fn drop_one<T>(ends: &mut Vec<T>, index: usize) -> Outcome {
    if ends.is_empty() {
        return Outcome::Idle;
    }
    drop(ends.remove(index % ends.len()));
    Outcome::Done
}

fn read(events: Option<&Events>) -> Outcome {
    events.map_or(Outcome::Idle, |events| Outcome::Events(std::iter::from_fn(|| events.try_next()).collect()))
}

fn seen(sample: &UntypedSample) -> Seen {
    let text = if sample.type_info().full_name() == "foxglove.Log" {
        sample.typed::<Log>().unwrap().message.clone()
    } else {
        sample.typed::<LocationFix>().unwrap().frame_id.clone()
    };
    Seen { topic: sample.topic().to_owned(), sequence: sample.meta().sequence, text }
}

fn topic_view(topic: TopicSnapshot) -> TopicView {
    let publishers = topic.publishers.into_iter().map(|end| PublisherView {
        owner: end.publisher,
        alive: end.alive,
        deadline_missed: end.deadline_missed,
        liveliness_lost: end.liveliness_lost,
    });
    let subscriptions = topic.subscriptions.into_iter().map(|end| SubscriptionView {
        owner: end.subscriber,
        pattern: end.pattern,
        delivered: end.delivered,
        queued: end.queued,
        dropped: end.dropped,
        deadline_missed: end.deadline_missed,
    });
    TopicView {
        name: topic.topic,
        type_name: topic.type_name,
        published: topic.published,
        intervals: topic.interval_total.count,
        dropped: topic.dropped,
        publishers: publishers.collect(),
        subscriptions: subscriptions.collect(),
    }
}
