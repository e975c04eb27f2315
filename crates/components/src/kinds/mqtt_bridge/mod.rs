//! Kind `mqtt_bridge`: publishes topics of the bus on an MQTT 5 broker, and receives requests of applications from it.
//!
//! One task encodes samples and puts them into the `outbox`. The same task sends the messages of the outbox over the
//! `connection`, several messages per write, and handles acknowledgements. No message waits for a round trip, and a sample
//! that arrives on an idle bridge is written to the socket at once.
//!
//! - QoS 1: the outbox keeps an accepted message until the broker's PUBACK, also if the connection is lost or the broker
//!   restarts. The broker may receive a message twice. Messages are sent in the order of acceptance, also when they are sent
//!   again. A full outbox rejects new messages (`outbox_full`), or drops accepted ones with `when_full: drop_oldest`.
//! - QoS 0: a message counts as published when the socket has accepted it. Without a connection it is dropped
//!   (`disconnected`), so that subscribers do not receive a burst of old data later.
//!
//! Inbound routes: a message of an application becomes a send request on the bus, or an answer that describes the error. A
//! message of QoS 1 is acknowledged when it is on the bus. A message that is published twice is sent twice.
//!
//! Counters of the routes:
//!
//! | counter | meaning |
//! |---|---|
//! | `taken` | samples from the bus, and answers |
//! | `published` | messages acknowledged by the broker (QoS 1) or written to the socket (QoS 0) |
//! | `dropped` | dropped messages, by reason |
//! | `outbox_added`, `outbox_removed` | messages that entered and left the outbox; the difference is in the outbox |
//! | `resent` | messages that were sent again on a later connection |
//! | `connected`, `lost` | connections opened and lost |
//!
//! `taken = published + dropped + outbox_added - outbox_removed` whenever the bridge's task is idle, and after the node has
//! stopped. Counters are read one after another, so a reading while messages flow may be off by a few.
//!
//! Counters of the inbound routes:
//!
//! | counter | meaning |
//! |---|---|
//! | `received` | received messages: received = requested + refused + unrouted |
//! | `requested` | messages that became a request on the bus |
//! | `refused` | refused messages, by reason |
//! | `unrouted` | messages on a topic that no route has |
//! | `unanswered` | errors that were included in a later answer because of the rate limit |
//! | `subscribed` | connections on which the broker accepted all subscriptions |
//! | `subscriptions_refused` | subscriptions that the broker rejected |

mod connection;
mod outbox;
mod subscribed;

use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::{Instant, Interval, MissedTickBehavior};
use viaduct_bus::{Counter, Hop, clock};
use viaduct_mqtt::QoS;
use viaduct_mqtt::packet::subscribe::SubscribePacket;
use viaduct_node::{Component, Context, Edges, SettingError, StartError, Stop};
use viaduct_units::Rng;

use crate::mqtt::address::BrokerAddress;
use crate::mqtt::check_readable;
use crate::mqtt::inbound::{self, InboundRouteSettings};
use crate::mqtt::route::{self, Inputs, Route, Taken};
use connection::{ConnectParams, Connection, ConnectionError};
use outbox::{Counts, DropReason, Limits, Outbox};
use subscribed::Subscribed;

pub use outbox::WhenFull;

/// Time limit for sending the messages of the outbox when the node stops. The node as a whole has two seconds.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(1);
/// Samples taken in a row before the socket is polled.
const BATCH: usize = 64;

/// Settings of `mqtt_bridge`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The broker: `mqtt://HOST` or `mqtt://HOST:PORT`. The default port is 1883.
    pub broker: String,
    /// Client identifier, 1 to 256 octets without control characters, unique among the clients of the broker. Default: the names
    /// of the node and the component, joined by `-`.
    #[serde(default)]
    pub client_id: Option<String>,
    /// User name, if the broker requires one.
    #[serde(default)]
    pub username: Option<String>,
    /// File whose first line is the password of the user.
    #[serde(default)]
    pub password_file: Option<PathBuf>,
    /// Keep alive in seconds, 1 to 3600. The bridge pings the broker at half this interval and closes a connection on which nothing
    /// was received between two pings. A keep alive set by the broker replaces this value; if the broker sets 0, the bridge sends no
    /// pings and does not detect a silent connection.
    #[serde(default = "default_keep_alive_s")]
    #[schemars(range(min = 1, max = 3600))]
    pub keep_alive_s: u16,
    /// Routes from topics of the bus to MQTT topics; at most 64.
    #[serde(default)]
    pub routes: Vec<Route>,
    /// Routes from MQTT topics to topics of the bus, for messages of applications; at most 16.
    #[serde(default)]
    pub inbound: Vec<InboundRouteSettings>,
    /// Longest packet from the broker in bytes, 1024 to 268435455. The bridge reports it to the broker, which then does not send
    /// longer ones. Default: 65536, with an inbound route for samples 67108864.
    #[serde(default)]
    #[schemars(range(min = 1024, max = 268_435_455))]
    pub packet_bytes_max: Option<u32>,
    /// Limits of the outbox.
    #[serde(default)]
    pub outbox: OutboxSettings,
    /// Waiting times between connection attempts.
    #[serde(default)]
    pub reconnect: ReconnectSettings,
}

const fn default_keep_alive_s() -> u16 {
    30
}

impl Settings {
    fn packet_bytes_max(&self) -> u32 {
        let has_samples = self.inbound.iter().any(|route| route.encoding.sample_format().is_some());
        self.packet_bytes_max.unwrap_or(if has_samples { 64 << 20 } else { 64 << 10 })
    }
}

/// Limits of the outbox. It keeps messages of QoS 1 until the broker has acknowledged them, and messages of QoS 0 until the socket
/// has accepted them. Without a connection, messages of QoS 0 are dropped (`disconnected`).
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OutboxSettings {
    /// Maximum number of messages, 1 to 1000000.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub messages_max: usize,
    /// Maximum size of all payloads together in bytes, 1024 to 17179869184 (16 GiB). A larger message is dropped (`too_large`).
    #[schemars(range(min = 1024, max = 17_179_869_184_u64))]
    pub octets_max: u64,
    /// Maximum number of unacknowledged messages of QoS 1, 1 to 10000. The broker may allow fewer.
    #[schemars(range(min = 1, max = 10_000))]
    pub in_flight_max: u16,
    /// The message that is dropped (`outbox_full`) when the outbox is full. `drop_newest`, the default, rejects the new
    /// message. Every accepted message of QoS 1 is then kept until the broker has acknowledged or rejected it, or until
    /// the node stops. `drop_oldest` drops the oldest accepted messages that have not been sent yet, also with QoS 1.
    pub when_full: WhenFull,
}

impl Default for OutboxSettings {
    fn default() -> Self {
        Self { messages_max: 10_000, octets_max: 64 << 20, in_flight_max: 512, when_full: WhenFull::default() }
    }
}

/// Waiting times between connection attempts. The wait doubles from `min_ms` to `max_ms`. It returns to `min_ms` after
/// a productive connection. A connection is productive if the broker acknowledged or rejected a message or if it lasted
/// five seconds, unless a client with the same identifier took it over. Each wait is shortened by a random part of up
/// to half, so that many vehicles do not reconnect at the same time.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReconnectSettings {
    /// First wait in milliseconds, 1 to 60000.
    #[schemars(range(min = 1, max = 60_000))]
    pub min_ms: u32,
    /// Longest wait in milliseconds, `min_ms` to 3600000.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub max_ms: u32,
}

impl Default for ReconnectSettings {
    fn default() -> Self {
        Self { min_ms: 100, max_ms: 5_000 }
    }
}

/// A bridge. All its work is in its I/O task.
pub struct MqttBridge;

impl Component for MqttBridge {
    type Settings = Settings;

    fn check(settings: &Settings) -> Result<(), SettingError> {
        BrokerAddress::parse(&settings.broker).map_err(|problem| SettingError::new("broker", problem))?;
        check_client_id(settings.client_id.as_deref())?;
        if settings.password_file.is_some() && settings.username.is_none() {
            return Err(SettingError::new("password_file", "a password needs a `username`"));
        }
        if settings.routes.is_empty() && settings.inbound.is_empty() {
            return Err(SettingError::new("routes", "required: at least one route in `routes` or `inbound`"));
        }
        check_range("keep_alive_s", settings.keep_alive_s.into(), 1, 3600)?;
        check_range("packet_bytes_max", settings.packet_bytes_max().into(), 1024, 268_435_455)?;
        let OutboxSettings { messages_max, octets_max, in_flight_max, .. } = settings.outbox;
        check_range("outbox.messages_max", messages_max as u64, 1, 1_000_000)?;
        check_range("outbox.octets_max", octets_max, 1024, 16 << 30)?;
        check_range("outbox.in_flight_max", in_flight_max.into(), 1, 10_000)?;
        let ReconnectSettings { min_ms, max_ms } = settings.reconnect;
        check_range("reconnect.min_ms", min_ms.into(), 1, 60_000)?;
        check_range("reconnect.max_ms", max_ms.into(), 1, 3_600_000)?;
        if max_ms < min_ms {
            let problem = format!("{max_ms} is below `min_ms`, which is {min_ms}");
            return Err(SettingError::new("reconnect.max_ms", problem));
        }
        route::check(&settings.routes)?;
        inbound::check(&settings.inbound)
    }

    fn check_machine(settings: &Settings) -> Result<(), SettingError> {
        match &settings.password_file {
            Some(path) => check_readable("password_file", path),
            None => Ok(()),
        }
    }

    fn edges(settings: &Settings) -> Edges {
        let edges = inbound::edges(&settings.inbound, route::edges(&settings.routes, Edges::default()));
        match BrokerAddress::parse(&settings.broker).ok().and_then(|broker| broker.socket_address()) {
            Some(address) => edges.connects(address),
            None => edges,
        }
    }

    fn start(settings: Settings, context: &mut Context<Self>) -> Result<Self, StartError> {
        let task = Task::new(settings, context)?;
        context.spawn_io(task.run());
        Ok(Self)
    }
}

fn check_range(key: &str, value: u64, min: u64, max: u64) -> Result<(), SettingError> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(SettingError::new(key, format!("{value} is not within {min} to {max}")))
}

fn check_client_id(client_id: Option<&str>) -> Result<(), SettingError> {
    let good = |id: &str| (1..=256).contains(&id.len()) && !id.chars().any(char::is_control);
    if client_id.is_none_or(good) {
        return Ok(());
    }
    Err(SettingError::new("client_id", "expected 1 to 256 octets without control characters"))
}

/// The task of a bridge: takes samples, and sends them while there is a connection.
struct Task {
    connect_params: ConnectParams,
    inputs: Inputs,
    inbound: Subscribed,
    outbox: Outbox,
    backoff: Backoff,
    hop: Hop,
    stop: Stop,
    /// Set when the stop of the bridge is requested: the time until which it may still send.
    deadline: Option<Instant>,
    connected: Counter,
    lost: Counter,
    /// Name of the component, for log lines.
    name: String,
}

/// Result of waiting for a connection or of serving one.
enum Ended<T> {
    /// The bridge stops, because the outbox is empty or the deadline has passed.
    Stopped,
    Other(T),
}

impl Task {
    fn new(settings: Settings, context: &Context<MqttBridge>) -> Result<Self, StartError> {
        let broker = BrokerAddress::parse(&settings.broker).map_err(|problem| SettingError::new("broker", problem))?;
        let default_id = || format!("{}-{}", context.node(), context.name());
        let connect_params = ConnectParams {
            address: broker.to_string(),
            client_id: settings.client_id.clone().unwrap_or_else(default_id),
            keep_alive: Duration::from_secs(settings.keep_alive_s.into()),
            credentials: credentials(&settings)?,
            packet_bytes_max: settings.packet_bytes_max(),
        };
        let limits = Limits {
            messages_max: settings.outbox.messages_max,
            bytes_max: usize::try_from(settings.outbox.octets_max).unwrap_or(usize::MAX),
            in_flight_max: settings.outbox.in_flight_max,
            when_full: settings.outbox.when_full,
        };
        let counts = Counts::new(|name, reason| match reason {
            Some(reason) => context.counter_for(name, reason),
            None => context.counter(name),
        });
        Ok(Self {
            connect_params,
            inbound: Subscribed::open(&settings.inbound, context)?,
            inputs: Inputs::open(settings.routes, context)?,
            outbox: Outbox::new(limits, counts),
            backoff: Backoff::new(settings.reconnect, context.seed()),
            hop: context.hop(),
            stop: context.stop(),
            deadline: None,
            connected: context.counter("connected"),
            lost: context.counter("lost"),
            name: context.name().to_owned(),
        })
    }

    async fn run(mut self) -> Result<(), std::convert::Infallible> {
        let mut wait = Duration::ZERO;
        // Only the first failure of an outage is logged.
        let mut logged = false;
        loop {
            let error = match self.open(wait).await {
                Ended::Stopped => return Ok(()),
                Ended::Other(Ok(mut connection)) => {
                    tracing::info!(
                        component = self.name,
                        broker = self.connect_params.address,
                        "connected to the MQTT broker"
                    );
                    logged = false;
                    self.connected.increment();
                    self.outbox.connected(connection.peer());
                    self.inputs.connected();
                    match self.serve(&mut connection).await {
                        Ended::Stopped => return Ok(()),
                        Ended::Other(error) => {
                            if connection.was_productive(&error) {
                                self.backoff.reset();
                            }
                            self.lost.increment();
                            self.outbox.disconnected();
                            error
                        }
                    }
                }
                Ended::Other(Err(error)) => error,
            };
            if !logged {
                logged = true;
                tracing::warn!(
                    component = self.name,
                    broker = self.connect_params.address,
                    %error,
                    "no connection to the MQTT broker; retrying"
                );
            }
            wait = self.backoff.next();
        }
    }

    /// Waits and then connects. Samples are taken in the meantime.
    async fn open(&mut self, wait: Duration) -> Ended<Result<Connection, ConnectionError>> {
        let params = self.connect_params.clone();
        let subscription = self.inbound.packet(connection::SUBSCRIBE_ID);
        let mut attempt = pin!(connect_after(wait, &params, subscription.clone()));
        loop {
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
                    attempt.set(connect_after(Duration::ZERO, &params, subscription.clone()));
                }
                taken = self.inputs.next(), if deadline.is_none() => self.take_or_stop(taken.as_ref()),
            }
        }
    }

    /// Sends messages and handles acknowledgements until the connection is lost or the bridge stops.
    async fn serve(&mut self, connection: &mut Connection) -> Ended<ConnectionError> {
        let mut ping = connection.keep_alive().map(|time| interval(time / 2));
        loop {
            if self.deadline.is_none() {
                // Samples are taken even if acknowledgements keep the task busy, because the queues of the
                // subscriptions are short.
                self.take_batch();
            }
            if let Err(error) = connection.send(&mut self.outbox, &self.hop) {
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
            let step = tokio::select! {
                biased;
                () = at(deadline) => return Ended::Stopped,
                () = tick(&mut ping) => connection.ping(),
                () = self.stop.asked(), if deadline.is_none() => { self.begin_stop(); Ok(()) }
                moved = connection.wait(&mut self.outbox, &self.inbound) => moved,
                taken = self.inputs.next(), if deadline.is_none() => { self.take_or_stop(taken.as_ref()); Ok(()) }
            };
            if let Err(error) = step {
                return Ended::Other(error);
            }
        }
    }

    /// Takes the remaining samples: the publishers have stopped, so no more will arrive.
    fn begin_stop(&mut self) {
        while let Some(taken) = self.inputs.try_next() {
            self.take(&taken);
        }
        self.deadline = Some(Instant::now() + FLUSH_TIME_MAX);
    }

    /// Takes a sample. `None` means that the bus is closed, and stops the bridge.
    fn take_or_stop(&mut self, taken: Option<&Taken>) {
        match taken {
            Some(taken) => self.take(taken),
            None => self.begin_stop(),
        }
    }

    /// Takes waiting samples, at most [`BATCH`].
    fn take_batch(&mut self) {
        for _ in 0..BATCH {
            let Some(taken) = self.inputs.try_next() else {
                return;
            };
            self.take(&taken);
        }
    }

    fn take(&mut self, taken: &Taken) {
        let counts = self.outbox.counts();
        counts.taken.increment();
        if self.inputs.qos(taken) == QoS::AtMostOnce && !self.outbox.is_connected() {
            // The outbox would drop it as well; this saves the encoding.
            return counts.drop_one(DropReason::Disconnected);
        }
        let now = clock::now();
        if let Some(announcement) = self.inputs.announcement(taken, now) {
            counts.taken.increment();
            if self.outbox.accept(announcement) {
                self.inputs.announced(taken, now);
            }
        }
        match self.inputs.message(taken) {
            Ok(message) => _ = self.outbox.accept(message),
            Err(error) => {
                tracing::debug!(component = self.name, %error, "message cannot be encoded");
                self.outbox.counts().drop_one(DropReason::Unencodable);
            }
        }
    }
}

fn credentials(settings: &Settings) -> Result<Option<(String, Vec<u8>)>, StartError> {
    let Some(username) = settings.username.clone() else {
        return Ok(None);
    };
    let password = match &settings.password_file {
        Some(path) => {
            let unread = |cause| StartError::io(format!("cannot read the password file {}", path.display()), cause);
            let text = std::fs::read_to_string(path).map_err(unread)?;
            text.lines().next().unwrap_or_default().as_bytes().to_vec()
        }
        None => Vec::new(),
    };
    Ok(Some((username, password)))
}

async fn connect_after(
    wait: Duration,
    params: &ConnectParams,
    subscription: Option<SubscribePacket>,
) -> Result<Connection, ConnectionError> {
    tokio::time::sleep(wait).await;
    Connection::open(params, subscription).await
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
