//! Subscriptions: messages of ROS become messages of the bus.

use std::collections::BTreeSet;
use std::sync::Arc;

use viaduct_bus::{Bus, Encoded, Meta, Qos, Reliability, UntypedPublisher, clock};
use viaduct_node::{Context, SettingError};
use viaduct_ros::dds;
use viaduct_ros::dds::Guid;

use super::counters::Counters;
use super::discovery::{PeerCounters, Peers};
use super::settings::{Ros2NodeSettings, SubscriptionSettings};
use super::sys::{DdsError, Endpoint, Participant, Reader, Taken, Waitset};
use super::{OFFERED, Ros2Node, qos};
use crate::ros2_type;

/// A subscription. It has a reader while a publisher is there, or always if the settings contain its type.
pub(super) struct Subscription {
    /// Topic of ROS and its name in DDS.
    topic: String,
    dds_topic: String,
    /// Type of the settings, as DDS names it.
    fixed_type: Option<String>,
    fixed_qos: Option<Qos>,
    publishers: Peers,
    /// Publishers of other types, which were counted as refused.
    refused: BTreeSet<u64>,
    /// Publishers that offer too little, which were counted as refused.
    too_weak: BTreeSet<u64>,
    input: Option<Input>,
    output: Output,
    message_bytes_max: usize,
    counters: Arc<Counters>,
    /// Token of the reader in the waitset.
    token: usize,
    samples: Vec<Taken>,
    component: String,
}

/// The reader with its properties.
struct Input {
    reader: Reader,
    type_name: String,
    qos: Qos,
}

/// The topic of the bus.
struct Output {
    bus: Bus,
    topic: String,
    component: String,
    open: Option<UntypedPublisher>,
    /// The problem that was logged last.
    problem: Option<String>,
}

/// The type of the messages.
#[derive(Clone, Debug, PartialEq, Eq)]
struct WantedType {
    dds_name: String,
    hash: Option<String>,
}

impl Subscription {
    pub(super) fn new(
        (index, settings, node): (usize, &SubscriptionSettings, &Ros2NodeSettings),
        counters: &Arc<Counters>,
        token: usize,
        context: &Context<Ros2Node>,
    ) -> Result<Self, SettingError> {
        let output = Output {
            bus: context.bus().clone(),
            topic: settings.to.clone(),
            component: context.name().to_owned(),
            open: None,
            problem: None,
        };
        let fixed_qos = settings.qos.as_ref().map(|qos| qos.resolve(&format!("subscriptions.{index}.qos")));
        Ok(Self {
            topic: settings.from.clone(),
            dds_topic: dds::dds_topic(&settings.from),
            fixed_type: settings.r#type.as_deref().and_then(dds::dds_type),
            fixed_qos: fixed_qos.transpose()?,
            publishers: Peers::default(),
            refused: BTreeSet::new(),
            too_weak: BTreeSet::new(),
            input: None,
            output,
            message_bytes_max: node.message_bytes_max,
            counters: Arc::clone(counters),
            token,
            samples: Vec::new(),
            component: context.name().to_owned(),
        })
    }

    /// Returns the topic as DDS names it.
    pub(super) fn dds_topic(&self) -> &str {
        &self.dds_topic
    }

    /// Returns the reader, if there is one.
    pub(super) fn guid(&self) -> Option<Guid> {
        self.input.as_ref().map(|input| input.reader.guid())
    }

    pub(super) const fn token(&self) -> usize {
        self.token
    }

    /// Adds a publisher.
    pub(super) fn found(&mut self, endpoint: Endpoint) {
        let Counters { publishers, publishers_too_many, .. } = &*self.counters;
        self.publishers.insert(endpoint, &PeerCounters { found: publishers, too_many: publishers_too_many });
    }

    /// Removes a publisher. Returns `true` if it was one of this topic.
    pub(super) fn gone(&mut self, handle: u64) -> bool {
        self.refused.remove(&handle);
        self.too_weak.remove(&handle);
        self.publishers.remove(handle)
    }

    /// Adapts reader and topic of the bus to the publishers. Returns `true` if it must be called again later, because the topic of the bus
    /// could not be opened.
    pub(super) fn refresh(&mut self, participant: &Arc<Participant>, waitset: &Waitset) -> Result<bool, DdsError> {
        let Some(wanted) = self.wanted_type() else {
            self.close()?;
            return Ok(false);
        };
        self.refuse_others(&wanted);
        let hash = wanted.hash.as_deref();
        let offered = self.publishers.of_type(&wanted.dds_name, hash).map(|one| &one.qos);
        let qos = self.fixed_qos.unwrap_or_else(|| qos::for_publishers(offered));
        self.refuse_too_weak(&wanted, &qos);
        let is_same = |input: &Input| input.type_name == wanted.dds_name && input.qos == qos;
        if !self.input.as_ref().is_some_and(is_same) {
            self.close()?;
            let user_data = hash.map(dds::type_hash).unwrap_or_default();
            let names = (self.dds_topic.as_str(), wanted.dds_name.as_str());
            // The topic of the bus is open before the first message.
            self.output.open(&wanted);
            let reader = Reader::create(participant, names, (&qos, &user_data), (waitset, self.token))?;
            self.input = Some(Input { reader, type_name: wanted.dds_name.clone(), qos });
        }
        self.output.open(&wanted);
        Ok(self.output.open.is_none())
    }

    /// Returns the type of the settings, or else that of the reader if it still has a publisher, or else that of the first publisher.
    fn wanted_type(&self) -> Option<WantedType> {
        let has_publisher = |name: &&str| self.publishers.of_type(name, None).next().is_some();
        let current = self.input.as_ref().map(|input| input.type_name.as_str()).filter(has_publisher);
        let first = || self.publishers.iter().map(|one| &*one.type_name).find(|name| dds::ros_type(name).is_some());
        let dds_name = self.fixed_type.as_deref().or(current).or_else(first)?.to_owned();
        let current_hash =
            self.output.open.as_ref().filter(|_| current == Some(&*dds_name)).and_then(ros2_type::hash_of);
        let still_used = |hash: &&str| {
            self.publishers.iter().any(|one| one.type_name == dds_name && one.type_hash.as_deref() == Some(*hash))
        };
        let first_hash = || self.publishers.of_type(&dds_name, None).find_map(|one| one.type_hash.as_deref());
        let hash = current_hash.filter(still_used).or_else(first_hash).map(str::to_owned);
        Some(WantedType { dds_name, hash })
    }

    /// Counts the publishers of other types.
    fn refuse_others(&mut self, wanted: &WantedType) {
        let Self { publishers, refused, counters, .. } = self;
        let fitting: BTreeSet<u64> =
            publishers.of_type(&wanted.dds_name, wanted.hash.as_deref()).map(|one| one.handle).collect();
        for other in publishers.iter().filter(|one| !fitting.contains(&one.handle)) {
            if refused.insert(other.handle) {
                counters.publishers_other_type.increment();
                let (topic, publisher_type) = (&self.topic, &other.type_name);
                let component = &self.component;
                tracing::warn!(component, topic, publisher_type, "a ROS publisher of another type is refused");
            }
        }
        refused.retain(|handle| !fitting.contains(handle));
    }

    /// Counts the publishers that do not offer the requested quality of service, so that DDS does not connect them.
    fn refuse_too_weak(&mut self, wanted: &WantedType, qos: &Qos) {
        let Self { publishers, too_weak, counters, topic, component, .. } = self;
        for publisher in publishers.of_type(&wanted.dds_name, wanted.hash.as_deref()) {
            match publisher.qos.serves(qos) {
                Ok(()) => _ = too_weak.remove(&publisher.handle),
                Err(mismatch) if too_weak.insert(publisher.handle) => {
                    counters.publishers_qos.increment();
                    tracing::warn!(component, topic, %mismatch, "the quality of service of a ROS publisher does not fit");
                }
                Err(_) => {}
            }
        }
    }

    /// Closes the reader, after its last messages, and the topic of the bus.
    pub(super) fn close(&mut self) -> Result<(), DdsError> {
        while self.receive()? {}
        self.input = None;
        self.output.open = None;
        Ok(())
    }

    /// Publishes some of the received messages on the bus. Returns `true` if there may be more.
    pub(super) fn receive(&mut self) -> Result<bool, DdsError> {
        let Some(input) = &self.input else { return Ok(false) };
        let mut samples = std::mem::take(&mut self.samples);
        let more = input.reader.take(&mut samples);
        for sample in samples.drain(..) {
            self.publish(sample);
        }
        self.samples = samples;
        more
    }

    fn publish(&self, sample: Taken) {
        let Counters { received, published, malformed, received_too_long, received_other_type, bus_full, .. } =
            &*self.counters;
        received.increment();
        if sample.payload.len() > self.message_bytes_max {
            return received_too_long.increment();
        }
        if !ros2_type::is_cdr(&Encoded::from(sample.payload.clone())) {
            return malformed.increment();
        }
        let output = self.output.open.as_ref().filter(|_| !self.refused.contains(&sample.publisher));
        let Some(output) = output else { return received_other_type.increment() };
        match output.try_publish_from(Meta::from_origin(clock::tai()), Encoded::from(sample.payload)) {
            Ok(()) => published.increment(),
            Err(_) => bus_full.increment(),
        }
    }

    /// Counts the events of the reader.
    pub(super) fn record_statuses(&self) {
        let Some(input) = &self.input else { return };
        let statuses = input.reader.statuses();
        if input.qos.reliability == Reliability::BestEffort {
            self.counters.lost.add(statuses.rejected);
        }
        self.counters.received_late.add(statuses.deadlines_missed);
    }
}

impl Output {
    /// Opens the topic of the bus for a type, if it is not open with it.
    fn open(&mut self, wanted: &WantedType) {
        // The names were checked before.
        let info = ros2_type::type_info(&dds::ros_type(&wanted.dds_name).unwrap_or_default(), wanted.hash.as_deref());
        let has_type = |open: &UntypedPublisher| {
            open.type_info().full_name() == info.full_name() && open.type_info().schema_id() == info.schema_id()
        };
        if self.open.as_ref().is_some_and(has_type) {
            return;
        }
        // The topic has one type at a time.
        self.open = None;
        match self.bus.publisher_untyped(&self.topic, info, OFFERED, &self.component) {
            Ok(open) => (self.open, self.problem) = (Some(open), None),
            Err(error) => self.log(error.to_string()),
        }
    }

    fn log(&mut self, problem: String) {
        if self.problem.as_ref() != Some(&problem) {
            let component = &self.component;
            tracing::warn!(component, problem, "a topic of the bus cannot be opened; retrying");
        }
        self.problem = Some(problem);
    }
}
