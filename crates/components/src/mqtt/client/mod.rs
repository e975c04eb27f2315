//! A client of a broker: it connects again when the connection is lost, sends the messages of its outbox, and receives messages of its
//! subscriptions. What the messages mean is the matter of an [`Application`].
//!
//! ```text
//! settings.rs, tls.rs   settings
//! outbox.rs             accepted messages: order, window, sessions, resending
//! journal.rs            the outbox on disk
//! connection.rs         one connection: packets, send buffer, acknowledgements
//! reader.rs             the packets of the received octets
//! ```

mod connection;
mod journal;
mod outbox;
mod reader;
mod settings;
pub(crate) mod tls;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior};
use viaduct_bus::{Counter, Hop, clock};
use viaduct_mqtt::QoS;
use viaduct_mqtt::packet::publish::PublishPacket;
use viaduct_mqtt::packet::suback::SubAckReasonCode;
use viaduct_mqtt::packet::subscribe::SubscribePacket;
use viaduct_mqtt::packet::unsubscribe::UnsubscribePacket;
use viaduct_mqtt::types::ReasonCode;
use viaduct_node::{Component, Context, SettingError, Stop};
use viaduct_units::Rng;

use super::message::Message;
pub(crate) use connection::{ConnectParams, ConnectionError, Version};
use connection::{Connection, SUBSCRIBE_ID};
use journal::{Disk, Journal};
use outbox::Counts;
pub(crate) use outbox::{DropReason, Outbox};
pub(crate) use settings::{OutboxSettings, ReconnectSettings, WillSettings, check_client_id, check_range, credentials};

/// Time limit for sending the messages of the outbox when the node stops. The node as a whole has two seconds.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(1);
/// Time limit for the DISCONNECT after that time, without which the broker would publish the last will.
const CLOSE_TIME_MAX: Duration = Duration::from_millis(200);
/// Items taken in a row before the socket is polled.
const BATCH: usize = 64;

/// What a client publishes and receives.
pub(crate) trait Application: Send + Sync {
    /// An item to be published, for example a sample of the bus.
    type Item: Send;

    /// Returns the next item, or `None` if none is waiting.
    fn try_next(&mut self) -> Option<Self::Item>;

    /// Waits for the next item. Returns `None` if there will be no more. Cancelling the wait loses nothing.
    fn next(&mut self) -> impl Future<Output = Option<Self::Item>> + Send;

    /// Lifts limits that depend on messages leaving the outbox, because the client stops.
    fn drain(&mut self);

    /// Puts the messages of an item into the outbox.
    fn send(&mut self, item: Self::Item, outbox: &mut Outbox);

    /// Handles a new connection, on which nothing was sent yet. `resumes` is `true` if the broker has kept the session.
    fn connected(&mut self, resumes: bool);

    /// Handles that an attempt to connect has failed, or that the connection was lost.
    fn failed(&mut self, _error: &ConnectionError) {}

    /// Returns `true` if the application uses the goodput of the connection.
    fn wants_goodput(&self) -> bool;

    /// Takes the goodput of the connection in octets per second; `None` if it is not known.
    fn set_goodput(&mut self, goodput: Option<f64>);

    /// Returns the SUBSCRIBE packet of a new connection, or `None` if nothing is subscribed to.
    fn subscribe(&self, packet_id: u16) -> Option<SubscribePacket>;

    /// Handles the reason codes of a SUBACK, one per filter and in their order.
    fn subscribed(&mut self, codes: &[SubAckReasonCode]);

    /// Returns the next change of the subscriptions on an open connection. It is asked for when the one before is answered.
    fn change(&mut self, _packet_id: u16) -> Option<Change> {
        None
    }

    /// Handles an UNSUBACK.
    fn unsubscribed(&mut self) {}

    /// Handles a received message.
    fn receive(&mut self, packet: &PublishPacket) -> Reception;

    /// Returns the next of the messages that were to be acknowledged later.
    fn acknowledgement(&mut self) -> Option<Acknowledgement> {
        None
    }

    /// Handles a message on a topic that is longer than a packet may be, and whose payload was skipped.
    fn refuse_long(&self, topic: &str);
}

/// What happens with a received message.
pub(crate) enum Reception {
    /// It is acknowledged. The answer to it, if any, is published.
    Done(Option<Box<Message>>),
    /// It is acknowledged when [`Application::acknowledgement`] returns it.
    Later,
}

/// The acknowledgement of a message: its quality of service and its packet identifier.
pub(crate) type Acknowledgement = (QoS, u16);

/// A change of the subscriptions.
pub(crate) enum Change {
    Subscribe(SubscribePacket),
    Unsubscribe(UnsubscribePacket),
}

/// Packet identifiers of the messages of QoS 2 that were received and are not released yet. The value is `true` if the message is
/// acknowledged.
#[derive(Default)]
pub(crate) struct Received(BTreeMap<u16, bool>);

impl Received {
    /// Returns the messages that an earlier process has acknowledged.
    fn acknowledged(ids: BTreeSet<u16>) -> Self {
        Self(ids.into_iter().map(|id| (id, true)).collect())
    }

    /// Adds a packet identifier. Returns `false` if the message was received before.
    fn insert(&mut self, id: u16) -> bool {
        let is_new = !self.0.contains_key(&id);
        self.0.entry(id).or_insert(false);
        is_new
    }

    fn acknowledge(&mut self, id: u16) {
        self.0.insert(id, true);
    }

    fn is_acknowledged(&self, id: u16) -> bool {
        self.0.get(&id).copied().unwrap_or(false)
    }

    fn release(&mut self, id: u16) {
        self.0.remove(&id);
    }
}

/// A client, which runs as a task.
pub(crate) struct Client<A> {
    params: ConnectParams,
    application: A,
    outbox: Outbox,
    received: Received,
    backoff: Backoff,
    hop: Hop,
    stop: Stop,
    /// Set when the stop of the client is requested: the time until which it may still send.
    deadline: Option<Instant>,
    connected: Counter,
    resumed: Counter,
    lost: Counter,
    /// Name of the component, for log lines.
    name: String,
    /// `true` if an earlier process has left the state of its session.
    has_session: bool,
}

/// Result of waiting for a connection or of serving one.
enum Ended<T> {
    /// The client stops, because the outbox is empty or the deadline has passed.
    Stopped,
    Other(T),
}

/// What the clients of a component share.
#[derive(Clone)]
pub(crate) struct Shared {
    counts: Counts,
    hop: Hop,
    stop: Stop,
    connected: Counter,
    resumed: Counter,
    lost: Counter,
    /// Name of the component, for log lines.
    name: String,
    seed: u64,
    disk: Disk,
}

impl Shared {
    pub(crate) fn of<C: Component>(context: &Context<C>) -> Self {
        Self {
            counts: Counts::new(|name, reason| match reason {
                Some(reason) => context.counter_for(name, reason),
                None => context.counter(name),
            }),
            hop: context.hop(),
            stop: context.stop(),
            connected: context.counter("connected"),
            resumed: context.counter("resumed"),
            lost: context.counter("lost"),
            name: context.name().to_owned(),
            seed: context.seed(),
            disk: Disk::default(),
        }
    }

    /// Returns the same for a client with waiting times of its own.
    pub(crate) fn with_seed(&self, seed: u64) -> Self {
        Self { seed, ..self.clone() }
    }
}

impl<A: Application> Client<A> {
    pub(crate) fn new<C: Component>(
        params: ConnectParams,
        outbox: &OutboxSettings,
        reconnect: ReconnectSettings,
        application: A,
        context: &Context<C>,
    ) -> Result<Self, SettingError> {
        Self::sharing(Shared::of(context), params, outbox, reconnect, application)
    }

    /// Returns one of several clients of a component.
    pub(crate) fn sharing(
        shared: Shared,
        params: ConnectParams,
        outbox: &OutboxSettings,
        reconnect: ReconnectSettings,
        application: A,
    ) -> Result<Self, SettingError> {
        let Shared { counts, hop, stop, connected, resumed, lost, name, seed, disk } = shared;
        let has_sessions = !params.session_expiry.is_zero();
        let stored = outbox.open(&params.session_name(), &disk)?;
        let mut outbox = Outbox::new(outbox.limits(), has_sessions, counts);
        let (mut received, mut has_session) = (Received::default(), false);
        if let Some((journal, mut restored)) = stored {
            received = Received::acknowledged(std::mem::take(&mut restored.received));
            has_session = restored.has_session;
            outbox.restore(journal, restored);
        }
        Ok(Self {
            application,
            outbox,
            received,
            has_session: has_session && has_sessions,
            params,
            backoff: Backoff::new(reconnect, seed),
            hop,
            stop,
            deadline: None,
            connected,
            resumed,
            lost,
            name,
        })
    }

    /// Deletes the folder of the outbox if the client has ended and has left nothing in it.
    pub(crate) fn remove_empty(shared: &Shared, params: &ConnectParams, folder: &Path) {
        Journal::remove_empty(folder, &params.session_name(), &shared.disk);
    }

    /// Resumes the session that an earlier connection of this client may have left at the broker.
    pub(crate) fn resuming(mut self) -> Self {
        self.has_session = !self.params.session_expiry.is_zero();
        self
    }

    /// Runs until the stop of the component is requested.
    pub(crate) async fn run(mut self) -> Result<(), std::convert::Infallible> {
        let mut wait = Duration::ZERO;
        // Only the first failure of an outage is logged.
        let mut is_logged = false;
        // A session that an earlier process has left at the broker is resumed only if its state is on disk.
        let mut resumes = self.has_session;
        loop {
            let error = match self.open(wait, resumes).await {
                Ended::Stopped => return Ok(()),
                Ended::Other(Ok(mut connection)) => {
                    is_logged = false;
                    resumes = !self.params.session_expiry.is_zero();
                    self.was_opened(&connection);
                    match self.serve(&mut connection).await {
                        Ended::Stopped => return Ok(()),
                        Ended::Other(error) => {
                            if connection.was_productive(&error) {
                                self.backoff.reset();
                            }
                            self.lost.increment();
                            self.outbox.disconnected();
                            if let ConnectionError::Ended(reason) = &error
                                && is_about_a_message(*reason)
                            {
                                self.find_rejected(*reason);
                            }
                            error
                        }
                    }
                }
                Ended::Other(Err(error)) => error,
            };
            self.application.failed(&error);
            if !std::mem::replace(&mut is_logged, true) {
                let (component, broker) = (&self.name, &self.params.address);
                tracing::warn!(component, %broker, %error, "no connection to the MQTT broker; retrying");
            }
            wait = self.backoff.next();
        }
    }

    fn was_opened(&mut self, connection: &Connection) {
        let (component, broker) = (&self.name, &self.params.address);
        tracing::info!(component, %broker, "connected to the MQTT broker");
        self.connected.increment();
        if connection.session_present() {
            self.resumed.increment();
        } else {
            self.received = Received::default();
        }
        self.outbox.connected(connection.peer(), connection.session_present());
        self.application.connected(connection.session_present());
    }

    /// Handles that the broker has closed the connection because of a message. The window is reduced to one message until one is
    /// acknowledged, so that it is known which one the broker rejects.
    fn find_rejected(&mut self, reason: ReasonCode) {
        if let Some(topic) = self.outbox.find_rejected() {
            let (component, broker) = (&self.name, &self.params.address);
            tracing::warn!(component, %broker, topic, ?reason, "the MQTT broker rejects a message, which is dropped");
        }
    }

    /// Waits and then connects. Items are taken in the meantime.
    async fn open(&mut self, wait: Duration, resumes: bool) -> Ended<Result<Connection, ConnectionError>> {
        let params = self.params.clone();
        let subscription = self.application.subscribe(SUBSCRIBE_ID);
        let mut attempt = pin!(connect_after(wait, &params, resumes, subscription.clone()));
        loop {
            self.outbox.expire(clock::tai());
            self.outbox.commit();
            if self.deadline.is_some() && self.outbox.len() == 0 {
                return Ended::Stopped;
            }
            let deadline = self.deadline;
            tokio::select! {
                biased;
                opened = &mut attempt => return Ended::Other(opened),
                () = at(deadline) => return Ended::Stopped,
                () = self.stop.asked(), if deadline.is_none() => {
                    self.begin_stop();
                    // The remaining time is used for one more attempt without a wait.
                    attempt.set(connect_after(Duration::ZERO, &params, resumes, subscription.clone()));
                }
                item = self.application.next(), if deadline.is_none() => self.send_or_stop(item),
            }
        }
    }

    /// Sends messages and handles acknowledgements until the connection is lost or the client stops.
    async fn serve(&mut self, connection: &mut Connection) -> Ended<ConnectionError> {
        let mut ping = connection.keep_alive().map(|time| interval(time / 2));
        loop {
            if self.application.wants_goodput() {
                self.application.set_goodput(connection.goodput());
            }
            if self.deadline.is_none() {
                // Items are taken even if acknowledgements keep the task busy, because the queues of the bus are short.
                self.send_batch();
            }
            self.outbox.expire(clock::tai());
            let sent = connection.follow(&mut self.application, &mut self.outbox, &mut self.received);
            let sent = sent.and_then(|()| connection.send(&mut self.outbox, &self.hop));
            if let Err(error) = sent {
                return Ended::Other(error);
            }
            if let Some(deadline) = self.deadline
                && self.outbox.len() == 0
            {
                // Everything is sent, so a failure to close the connection cleanly loses nothing.
                let _ = tokio::time::timeout_at(deadline, connection.close()).await;
                return Ended::Stopped;
            }
            let deadline = self.deadline;
            let arrived = tokio::select! {
                biased;
                () = at(deadline) => {
                    let _ = tokio::time::timeout(CLOSE_TIME_MAX, connection.close()).await;
                    return Ended::Stopped;
                }
                () = tick(&mut ping) => connection.ping().map(|()| None),
                () = self.stop.asked(), if deadline.is_none() => { self.begin_stop(); Ok(None) }
                arrived = connection.wait(&mut self.outbox, &self.hop) => arrived,
                item = self.application.next(), if deadline.is_none() => { self.send_or_stop(item); Ok(None) }
            };
            let Self { outbox, application, received, .. } = self;
            let handled = arrived.and_then(|packet| match packet {
                Some(packet) => connection.handle_all(packet, outbox, application, received),
                None => Ok(()),
            });
            if let Err(error) = handled {
                return Ended::Other(error);
            }
        }
    }

    /// Takes the remaining items: the publishers have stopped, so no more will arrive.
    fn begin_stop(&mut self) {
        self.application.drain();
        while let Some(item) = self.application.try_next() {
            self.application.send(item, &mut self.outbox);
        }
        self.deadline = Some(Instant::now() + FLUSH_TIME_MAX);
    }

    /// Sends an item. `None` means that there will be no more, and stops the client.
    fn send_or_stop(&mut self, item: Option<A::Item>) {
        match item {
            Some(item) => self.application.send(item, &mut self.outbox),
            None => self.begin_stop(),
        }
    }

    /// Sends waiting items, at most [`BATCH`].
    fn send_batch(&mut self) {
        for _ in 0..BATCH {
            let Some(item) = self.application.try_next() else {
                return;
            };
            self.application.send(item, &mut self.outbox);
        }
    }
}

/// Returns `true` if a broker closes the connection for that reason because of a message (MQTT 5, 3.14.2.1).
const fn is_about_a_message(reason: ReasonCode) -> bool {
    matches!(
        reason,
        ReasonCode::PacketTooLarge
            | ReasonCode::TopicNameInvalid
            | ReasonCode::PayloadFormatInvalid
            | ReasonCode::RetainNotSupported
            | ReasonCode::QoSNotSupported
    )
}

/// Reports the messages that a stop of the component loses.
impl<A> Drop for Client<A> {
    fn drop(&mut self) {
        let lost = self.outbox.volatile();
        if lost > 0 {
            let (component, broker) = (&self.name, &self.params.address);
            tracing::warn!(component, %broker, lost, "messages were not acknowledged by the MQTT broker before the stop");
        }
    }
}

async fn connect_after(
    wait: Duration,
    params: &ConnectParams,
    resumes: bool,
    subscription: Option<SubscribePacket>,
) -> Result<Connection, ConnectionError> {
    tokio::time::sleep(wait).await;
    Connection::open(params, resumes, subscription).await
}

fn interval(period: Duration) -> Interval {
    let mut interval = tokio::time::interval_at(Instant::now() + period, period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

/// Waits until `deadline`, or forever if there is none.
async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

async fn tick(interval: &mut Option<Interval>) {
    match interval {
        Some(interval) => drop(interval.tick().await),
        None => std::future::pending().await,
    }
}

/// Waiting times between attempts.
struct Backoff {
    settings: ReconnectSettings,
    /// The next wait before it is shortened by its random part.
    next_ms: u32,
    random: Rng,
}

impl Backoff {
    const fn new(settings: ReconnectSettings, seed: u64) -> Self {
        Self { next_ms: settings.min_ms, settings, random: Rng::new(seed) }
    }

    const fn reset(&mut self) {
        self.next_ms = self.settings.min_ms;
    }

    fn next(&mut self) -> Duration {
        let longest = Duration::from_millis(self.next_ms.into());
        self.next_ms = self.next_ms.saturating_mul(2).min(self.settings.max_ms);
        longest - self.random.duration_up_to(longest / 2)
    }
}
