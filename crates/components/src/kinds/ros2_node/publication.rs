//! Publications: messages of the bus become messages of ROS.
//!
//! Each publication has a thread, because a write sends the whole message, and may wait for a slow subscriber.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use viaduct_bus::{Hop, MessageFormat, Qos, TypeInfo, UntypedSample, UntypedSubscriber, clock};
use viaduct_node::{Context, SettingError, Stop};
use viaduct_ros::dds::{self, Guid};

use super::counters::Counters;
use super::discovery::{PeerCounters, Peers};
use super::settings::{PublicationSettings, Ros2NodeSettings};
use super::sys::{DdsError, Endpoint, Guard, Participant, Statuses, Waitset, WriteError, Writer};
use super::{Ros2Node, qos};
use crate::ros2_type;

/// Time at the end of the component for messages that are left, and at the end of a writer for their acknowledgement.
const FLUSH_TIME_MAX: Duration = Duration::from_millis(500);

/// The part of a publication that the node's thread uses.
pub(super) struct PublicationState {
    topic: String,
    dds_topic: String,
    subscribers: Mutex<Peers>,
    /// Notified when `subscribers` changes.
    changed: Notify,
    /// The writer, while there is one.
    writer: Mutex<Option<WriterId>>,
    counters: Arc<Counters>,
    component: String,
    /// Token of the writer in the waitset.
    token: usize,
}

/// A writer, for the node's thread.
#[derive(Clone, Copy)]
struct WriterId {
    id: i32,
    guid: Guid,
}

/// A publication.
pub(super) struct Publication {
    state: Arc<PublicationState>,
    participant: Arc<Participant>,
    waitset: Arc<Waitset>,
    /// Wakes the node's thread after the writer has changed.
    node: Arc<Guard>,
    /// Type of the settings, as DDS names it.
    fixed_type: Option<String>,
    fixed_qos: Option<Qos>,
    message_bytes_max: usize,
    open: Option<Open>,
    /// Type of the last message, as DDS names it.
    last_type: Option<MessageType>,
    /// Subscribers of other types, which were counted as refused.
    refused: BTreeSet<u64>,
    /// Subscribers that request too much, which were counted as refused.
    too_strict: BTreeSet<u64>,
    hop: Hop,
    stop: Stop,
    /// `true` if a failure was logged since the last success.
    is_logged: bool,
}

/// The type of a message of the bus.
#[derive(Clone)]
struct MessageType {
    info: Arc<TypeInfo>,
    dds_name: String,
}

/// A writer with its properties.
struct Open {
    writer: Writer,
    type_name: String,
    hash: Option<String>,
    qos: Qos,
}

/// The event for which a publication waits.
enum Next {
    Sample(UntypedSample),
    SubscribersChanged,
    Stop,
}

impl PublicationState {
    pub(super) fn new(
        settings: &PublicationSettings,
        counters: &Arc<Counters>,
        token: usize,
        context: &Context<Ros2Node>,
    ) -> Arc<Self> {
        Arc::new(Self {
            topic: settings.to.clone(),
            dds_topic: dds::dds_topic(&settings.to),
            subscribers: Mutex::default(),
            changed: Notify::new(),
            writer: Mutex::default(),
            counters: Arc::clone(counters),
            component: context.name().to_owned(),
            token,
        })
    }

    /// Returns the topic as DDS names it.
    pub(super) fn dds_topic(&self) -> &str {
        &self.dds_topic
    }

    pub(super) const fn token(&self) -> usize {
        self.token
    }

    /// Returns the writer, if there is one.
    pub(super) fn guid(&self) -> Option<Guid> {
        lock(&self.writer).map(|writer| writer.guid)
    }

    /// Adds a subscriber.
    pub(super) fn found(&self, endpoint: Endpoint) {
        let Counters { subscribers, subscribers_too_many, .. } = &*self.counters;
        let counters = PeerCounters { found: subscribers, too_many: subscribers_too_many };
        lock(&self.subscribers).insert(endpoint, &counters);
        self.changed.notify_one();
    }

    /// Removes a subscriber if it was one of this topic.
    pub(super) fn gone(&self, handle: u64) {
        if lock(&self.subscribers).remove(handle) {
            self.changed.notify_one();
        }
    }

    /// Counts the events of the writer.
    pub(super) fn record_statuses(&self) {
        let Some(writer) = *lock(&self.writer) else { return };
        let statuses = Statuses::of_writer(writer.id);
        self.counters.sent_late.add(statuses.deadlines_missed);
    }
}

impl Publication {
    pub(super) fn new(
        (index, settings, node): (usize, &PublicationSettings, &Ros2NodeSettings),
        state: Arc<PublicationState>,
        (participant, waitset, guard): (&Arc<Participant>, &Arc<Waitset>, &Arc<Guard>),
        (hop, stop): (Hop, Stop),
    ) -> Result<Self, SettingError> {
        let fixed_qos = settings.qos.as_ref().map(|qos| qos.resolve(&format!("publications.{index}.qos")));
        Ok(Self {
            state,
            participant: Arc::clone(participant),
            waitset: Arc::clone(waitset),
            node: Arc::clone(guard),
            fixed_type: settings.r#type.as_deref().and_then(dds::dds_type),
            fixed_qos: fixed_qos.transpose()?,
            message_bytes_max: node.message_bytes_max,
            open: None,
            last_type: None,
            refused: BTreeSet::new(),
            too_strict: BTreeSet::new(),
            hop,
            stop,
            is_logged: false,
        })
    }

    /// Sends messages of the bus until the component stops, and those that are left then.
    pub(super) fn run(mut self, input: &UntypedSubscriber, runtime: &Handle) -> Result<(), Infallible> {
        let mut stop = self.stop.clone();
        self.refresh();
        loop {
            match runtime.block_on(self.next(input, &mut stop)) {
                Next::Sample(sample) => self.take(&sample),
                Next::SubscribersChanged => self.refresh(),
                Next::Stop => break,
            }
        }
        self.flush(input);
        self.close();
        Ok(())
    }

    /// Sends the messages that are left, and waits for their acknowledgement, for a limited time.
    fn flush(&mut self, input: &UntypedSubscriber) {
        let deadline = Instant::now() + FLUSH_TIME_MAX;
        while let Some(sample) = input.try_recv() {
            if Instant::now() < deadline {
                self.take(&sample);
            } else {
                self.state.counters.taken.increment();
                self.state.counters.stopped.increment();
            }
        }
        self.flush_writer(deadline.saturating_duration_since(Instant::now()));
    }

    /// Waits for the acknowledgement of the messages, which are lost with their writer.
    fn flush_writer(&self, timeout: Duration) {
        if let Some(open) = &self.open {
            open.writer.flush(timeout);
        }
    }

    async fn next(&self, input: &UntypedSubscriber, stop: &mut Stop) -> Next {
        tokio::select! {
            biased;
            // A message reaches the subscribers that were found before it.
            () = self.state.changed.notified() => Next::SubscribersChanged,
            sample = input.recv() => sample.map_or(Next::Stop, Next::Sample),
            () = stop.asked() => Next::Stop,
        }
    }

    fn take(&mut self, sample: &UntypedSample) {
        let counters = Arc::clone(&self.state.counters);
        counters.taken.increment();
        let (info, message) = (sample.type_info(), sample.encoded());
        if !self.has_type(info) {
            let dds_name = Some(info).filter(|info| info.format() == MessageFormat::Ros2);
            let Some(dds_name) = dds_name.and_then(|info| dds::dds_type(info.full_name())) else {
                return counters.other_format.increment();
            };
            if self.fixed_type.as_ref().is_some_and(|fixed| *fixed != dds_name) {
                return counters.taken_other_type.increment();
            }
            self.last_type = Some(MessageType { info: Arc::clone(info), dds_name });
            self.refresh();
        }
        if !ros2_type::is_cdr(message) {
            return counters.other_format.increment();
        }
        if message.len() > self.message_bytes_max {
            return counters.taken_too_long.increment();
        }
        if self.open.is_none() {
            self.refresh();
        }
        let Some(open) = &self.open else { return counters.failed.increment() };
        match self.write(open, message.chunks()) {
            Ok(()) => {
                self.is_logged = false;
                counters.sent.increment();
                self.hop.mark(sample.meta(), clock::tai());
            }
            Err(WriteError::Timeout) => counters.timeout.increment(),
            Err(error @ WriteError::Dds(_)) => {
                counters.failed.increment();
                self.log(&error);
            }
        }
    }

    /// Writes a message. Waits for slow subscribers as the quality of service permits, and not longer than until the component stops.
    fn write(&self, open: &Open, chunks: &[Bytes]) -> Result<(), WriteError> {
        let deadline = Instant::now().checked_add(qos::max_blocking_time(&open.qos));
        loop {
            let is_over = || self.stop.is_asked() || deadline.is_some_and(|deadline| deadline <= Instant::now());
            match open.writer.write(chunks) {
                Err(WriteError::Timeout) if !is_over() => {}
                result => return result,
            }
        }
    }

    /// Returns `true` if the last message had the same type.
    fn has_type(&self, info: &Arc<TypeInfo>) -> bool {
        self.last_type.as_ref().is_some_and(|last| Arc::ptr_eq(&last.info, info) || last.info.is_same(info))
    }

    /// Adapts the writer to the type of the messages and to the subscribers.
    fn refresh(&mut self) {
        if let Err(error) = self.try_refresh() {
            self.log(&error);
        }
    }

    fn try_refresh(&mut self) -> Result<(), DdsError> {
        let subscribers = lock(&self.state.subscribers).clone();
        let Some((type_name, hash)) = self.wanted_type(&subscribers) else { return Ok(()) };
        self.refuse_others(&subscribers, &type_name, hash.as_deref());
        let requested = || subscribers.of_type(&type_name, hash.as_deref()).map(|one| &one.qos);
        let is_served = |qos: &Qos| self.fixed_qos.is_some() || requested().all(|request| qos.serves(request).is_ok());
        let is_same = |open: &Open| open.type_name == type_name && open.hash == hash && is_served(&open.qos);
        if self.open.as_ref().is_some_and(is_same) {
            self.refuse_too_strict(&subscribers);
            return Ok(());
        }
        let qos = self.fixed_qos.unwrap_or_else(|| qos::for_subscribers(requested()));
        self.flush_writer(FLUSH_TIME_MAX);
        self.close();
        let user_data = hash.as_deref().map(dds::type_hash).unwrap_or_default();
        let names = (self.state.dds_topic.as_str(), type_name.as_str());
        let place = (&*self.waitset, self.state.token);
        let writer = Writer::create(&self.participant, names, (&qos, &user_data), place)?;
        *lock(&self.state.writer) = Some(WriterId { id: writer.id(), guid: writer.guid() });
        self.open = Some(Open { writer, type_name, hash, qos });
        self.refuse_too_strict(&subscribers);
        self.node.wake();
        Ok(())
    }

    /// Returns the type of the last message, or else that of the settings, or else that of the first subscriber, with its hash.
    fn wanted_type(&self, subscribers: &Peers) -> Option<(String, Option<String>)> {
        let first = || subscribers.iter().map(|one| &*one.type_name).find(|name| dds::ros_type(name).is_some());
        let last = self.last_type.as_ref();
        let name = last.map(|last| &*last.dds_name).or(self.fixed_type.as_deref()).or_else(first)?.to_owned();
        let own_hash = last.map(|last| last.info.schema_id()).filter(|id| dds::is_type_hash(id)).map(str::to_owned);
        let open_hash = || self.open.as_ref().filter(|open| open.type_name == name).and_then(|open| open.hash.clone());
        let their_hash = || subscribers.of_type(&name, None).find_map(|one| one.type_hash.clone());
        let known_hash = || ros2_type::known_hash(&dds::ros_type(&name)?);
        let hash = own_hash.or_else(open_hash).or_else(their_hash).or_else(known_hash);
        Some((name, hash))
    }

    /// Counts the subscribers of other types.
    fn refuse_others(&mut self, subscribers: &Peers, type_name: &str, hash: Option<&str>) {
        let fitting: BTreeSet<u64> = subscribers.of_type(type_name, hash).map(|one| one.handle).collect();
        let others: BTreeSet<u64> =
            subscribers.iter().map(|one| one.handle).filter(|handle| !fitting.contains(handle)).collect();
        self.state.counters.subscribers_other_type.add(others.difference(&self.refused).count() as u64);
        self.refused = others;
    }

    /// Counts the subscribers that request more than the offered quality of service, so that DDS does not connect them.
    fn refuse_too_strict(&mut self, subscribers: &Peers) {
        let Some(open) = &self.open else { return };
        let fitting = subscribers.of_type(&open.type_name, open.hash.as_deref());
        let mismatches = fitting.filter_map(|one| Some((one.handle, open.qos.serves(&one.qos).err()?)));
        let mut too_strict = BTreeSet::new();
        for (handle, mismatch) in mismatches {
            too_strict.insert(handle);
            if !self.too_strict.contains(&handle) {
                self.state.counters.subscribers_qos.increment();
                let (component, topic) = (&self.state.component, &self.state.topic);
                tracing::warn!(component, topic, %mismatch, "the quality of service of a ROS subscriber does not fit");
            }
        }
        self.too_strict = too_strict;
    }

    fn close(&mut self) {
        *lock(&self.state.writer) = None;
        self.open = None;
        self.node.wake();
    }

    fn log(&mut self, error: &dyn std::fmt::Display) {
        if !std::mem::replace(&mut self.is_logged, true) {
            let (component, topic) = (&self.state.component, &self.state.topic);
            tracing::warn!(component, topic, %error, "a ROS topic cannot be published; retrying");
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
