//! Publications: messages of the bus become messages of ROS.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use viaduct_bus::{Encoded, Hop, MessageFormat, Meta, TypeInfo, UntypedSample, UntypedSubscriber, clock};
use viaduct_node::Stop;
use viaduct_ros::msg::TypeName;
use viaduct_ros::tcpros::Offer;

use super::PublicationSettings;
use super::counters::Counters;
use crate::ros1_type;

/// Time at the end of the component for messages that still wait.
const FLUSH_TIME_MAX: Duration = Duration::from_millis(500);
/// Period in which the end of the queues is checked.
const FLUSH_PERIOD: Duration = Duration::from_millis(5);

/// A publication.
pub(super) struct Publication {
    topic: String,
    latched: bool,
    queue_max: usize,
    /// The type of the messages; `None` before the first one. Changed under the lock of `outputs`.
    type_info: watch::Sender<Option<Arc<TypeInfo>>>,
    /// Notified when the type changes.
    new_type: Notify,
    outputs: Mutex<Outputs>,
    counters: Arc<Counters>,
    hop: Hop,
}

/// The subscribers of a publication.
#[derive(Default)]
struct Outputs {
    queues: Vec<Arc<SendQueue>>,
    /// The latest message, if the publication is latched.
    latest: Option<(Encoded, Meta)>,
    /// `true` if the component stops, so that no subscriber is added.
    is_closed: bool,
}

/// The messages that wait for one subscriber.
pub(super) struct SendQueue {
    unwritten: Mutex<Unwritten>,
    more: Notify,
    /// `true` when the subscriber must be disconnected, because the type has changed or the component stops.
    ended: watch::Sender<bool>,
}

/// The messages that are not written to the connection of a subscriber yet.
#[derive(Default)]
struct Unwritten {
    waiting: VecDeque<(Encoded, Meta)>,
    /// `true` while a message that was taken from `waiting` is being written.
    is_writing: bool,
}

impl Publication {
    pub(super) fn new(settings: &PublicationSettings, counters: &Arc<Counters>, hop: Hop) -> Self {
        Self {
            topic: settings.to.clone(),
            latched: settings.latched,
            queue_max: settings.queue,
            type_info: watch::Sender::new(None),
            new_type: Notify::new(),
            outputs: Mutex::default(),
            counters: Arc::clone(counters),
            hop,
        }
    }

    /// Returns the topic of ROS.
    pub(super) fn topic(&self) -> &str {
        &self.topic
    }

    /// Returns the name of the messages' type, or `None` before the first message.
    pub(super) fn type_name(&self) -> Option<String> {
        self.type_info.borrow().as_ref().map(|info| info.full_name().to_owned())
    }

    /// Waits until the type becomes known or changes.
    pub(super) async fn new_type(&self) {
        self.new_type.notified().await;
    }

    /// Returns the type of the messages, or `None` before the first message.
    pub(super) fn type_info(&self) -> Option<Arc<TypeInfo>> {
        self.type_info.borrow().clone()
    }

    /// Returns the offer of a type to a subscriber, or `None` if its name is not one of ROS.
    pub(super) fn offer(&self, caller: &str, info: &TypeInfo) -> Option<Offer> {
        Some(Offer {
            caller: caller.to_owned(),
            type_name: TypeName::parse(info.full_name())?,
            md5: ros1_type::md5(info).to_owned(),
            definition: String::from_utf8_lossy(info.schema()).into_owned(),
            latching: self.latched,
        })
    }

    /// Takes messages of the bus until the component stops, then waits for the queues for a short time.
    pub(super) async fn run(self: Arc<Self>, input: UntypedSubscriber, mut stop: Stop) -> Result<(), Infallible> {
        loop {
            tokio::select! {
                biased;
                sample = input.recv() => match sample {
                    Some(sample) => self.take(&sample),
                    None => break,
                },
                () = stop.asked() => break,
            }
        }
        let deadline = Instant::now() + FLUSH_TIME_MAX;
        while Instant::now() < deadline && self.lock().queues.iter().any(|queue| !queue.is_written()) {
            tokio::time::sleep(FLUSH_PERIOD).await;
        }
        let mut outputs = self.lock();
        outputs.is_closed = true;
        outputs.end_connections();
        Ok(())
    }

    fn take(&self, sample: &UntypedSample) {
        let Counters { taken, offered, other_format, too_long, .. } = &*self.counters;
        taken.increment();
        let info = sample.type_info();
        if info.format() != MessageFormat::Ros1 || TypeName::parse(info.full_name()).is_none() {
            return other_format.increment();
        }
        if u32::try_from(sample.encoded().len()).is_err() {
            return too_long.increment();
        }
        offered.increment();
        let mut outputs = self.lock();
        self.set_type(&mut outputs, info);
        for queue in &outputs.queues {
            self.put(queue, sample.encoded(), sample.meta());
        }
        if self.latched {
            outputs.latest = Some((sample.encoded().clone(), sample.meta()));
        }
    }

    /// Sets the type of the messages. If it is another one, all subscribers are disconnected, and the master gets the new type.
    fn set_type(&self, outputs: &mut Outputs, info: &Arc<TypeInfo>) {
        let is_same = |known: &Option<Arc<TypeInfo>>| known.as_ref().is_some_and(|known| known.is_same(info));
        if is_same(&self.type_info.borrow()) {
            return;
        }
        outputs.end_connections();
        self.type_info.send_replace(Some(Arc::clone(info)));
        self.new_type.notify_one();
    }

    /// Adds a subscriber that has accepted a type. If the publication is latched, the queue begins with the latest message. Returns
    /// `None` if the messages have another type by now, or the component stops.
    pub(super) fn attach(&self, accepted: &TypeInfo) -> Option<Arc<SendQueue>> {
        let mut outputs = self.lock();
        let has_type = self.type_info.borrow().as_ref().is_some_and(|info| info.is_same(accepted));
        if outputs.is_closed || !has_type {
            return None;
        }
        let queue =
            Arc::new(SendQueue { unwritten: Mutex::default(), more: Notify::new(), ended: watch::Sender::new(false) });
        if let Some((message, meta)) = &outputs.latest {
            self.put(&queue, message, *meta);
        }
        outputs.queues.push(Arc::clone(&queue));
        Some(queue)
    }

    /// Removes a subscriber. Counts the messages that it did not get.
    pub(super) fn detach(&self, queue: &Arc<SendQueue>) {
        self.lock().queues.retain(|other| !Arc::ptr_eq(other, queue));
        let left = std::mem::take(&mut *lock(&queue.unwritten));
        self.counters.disconnected.add(left.waiting.len() as u64 + u64::from(left.is_writing));
    }

    /// Records that a message was written to the connection of a subscriber.
    pub(super) fn written(&self, queue: &SendQueue, meta: &Meta) {
        lock(&queue.unwritten).is_writing = false;
        self.counters.sent.increment();
        self.hop.mark(meta, clock::tai());
    }

    fn put(&self, queue: &SendQueue, message: &Encoded, meta: Meta) {
        let mut unwritten = lock(&queue.unwritten);
        if unwritten.waiting.len() >= self.queue_max {
            unwritten.waiting.pop_front();
            self.counters.queue_full.increment();
        }
        unwritten.waiting.push_back((message.clone(), meta));
        self.counters.queued.increment();
        queue.more.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Outputs> {
        lock(&self.outputs)
    }
}

impl Outputs {
    /// Disconnects all subscribers.
    fn end_connections(&mut self) {
        self.latest = None;
        for queue in self.queues.drain(..) {
            queue.ended.send_replace(true);
        }
    }
}

impl SendQueue {
    /// Waits for the next message. Cancelling the wait loses nothing.
    pub(super) async fn next(&self) -> (Encoded, Meta) {
        loop {
            if let Some(next) = self.take() {
                return next;
            }
            self.more.notified().await;
        }
    }

    fn take(&self) -> Option<(Encoded, Meta)> {
        let mut unwritten = lock(&self.unwritten);
        let next = unwritten.waiting.pop_front()?;
        unwritten.is_writing = true;
        Some(next)
    }

    /// Waits until the subscriber must be disconnected.
    pub(super) async fn ended(&self) {
        // The sender is a part of the queue, so it exists as long as this borrow.
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
    }

    /// Returns `true` if all messages are written.
    fn is_written(&self) -> bool {
        let unwritten = lock(&self.unwritten);
        unwritten.waiting.is_empty() && !unwritten.is_writing
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
