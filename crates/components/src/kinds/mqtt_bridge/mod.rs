//! `mqtt_bridge`: topics of the bus go out to an MQTT 5 broker, and requests of applications come in from it.
//!
//! One task takes samples, writes them in their route's encoding and puts them into the [`outbox`]; the same task sends
//! what is in there over the [`connection`], as one write for several messages, and takes acknowledgements. Nothing waits
//! for a round trip, and a sample that comes while all is idle goes straight to the socket.
//!
//! - QoS 1: a message that the outbox accepted is kept until the broker's PUBACK. A broker that is away, dies or comes
//!   back costs none; it may get one twice. Messages leave in the order in which they were taken, also the second time.
//!   A full outbox refuses new messages (`outbox_full`); with `when_full: drop_oldest` it gives up accepted ones instead.
//! - QoS 0: a message is for whoever is there now. It is published when the socket has taken it, and dropped
//!   (`disconnected`) while there is no connection, so that nobody gets old data in a burst.
//!
//! Inbound routes: what an application publishes becomes a request to send on the bus, or an answer that says what is wrong
//! with it and where. A message of QoS 1 is acknowledged when it is on the bus; who publishes it twice has it sent twice.
//! Counters: `received = requested + refused` (by reason) `+ unrouted`; `unanswered`, refusals that were told with a later
//! one because there were many; `subscribed`, connections on which the broker took the subscription.
//!
//! Counters: `taken` (from the bus, and answers), `published` (QoS 1: acknowledged; QoS 0: written), `dropped` by reason;
//! `outbox_added` and `outbox_removed`, counted where a message enters the outbox and leaves it for whatever reason, so
//! that `outbox_added - outbox_removed` messages wait; `resent`, `connected` and `lost`, what the connection cost.
//!
//! The account is `taken = published + dropped + outbox_added - outbox_removed`. It holds whenever the bridge's task
//! rests, and after the node has stopped, when nothing waits. Counters are read one after another, so while messages flow
//! one reading may be off by those that moved meanwhile.

mod connection;
mod outbox;
mod subscribed;

use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::{Instant, Interval, MissedTickBehavior};
use viaduct_bus::{Counter, Hop};
use viaduct_mqtt::QoS;
use viaduct_mqtt::packet::subscribe::SubscribePacket;
use viaduct_node::{Component, Context, Edges, SettingError, StartError, Stop};
use viaduct_units::Rng;

use crate::mqtt::address::BrokerAddress;
use crate::mqtt::check_readable;
use crate::mqtt::inbound::{self, InboundRoute};
use crate::mqtt::route::{self, Inputs, Route, Taken};
use connection::{Connection, ConnectionError, Login};
use outbox::{Counts, DropReason, Limits, Outbox};
use subscribed::Subscribed;

pub use outbox::WhenFull;

/// Time for what is in the outbox after the node is asked to stop. The node as a whole has two seconds.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(1);
/// Samples that are taken before the socket is looked at again.
const BATCH: usize = 64;

/// Settings of `mqtt_bridge`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The broker: `mqtt://HOST` or `mqtt://HOST:PORT`; the port is 1883 where it is not named.
    pub broker: String,
    /// Client identifier, 1 to 256 octets without control characters; one that no other client of the broker has.
    /// Default: the node's and the component's name, joined by `-`.
    #[serde(default)]
    pub client_id: Option<String>,
    /// User name, for a broker that asks for one.
    #[serde(default)]
    pub username: Option<String>,
    /// File whose first line is the user's password.
    #[serde(default)]
    pub password_file: Option<PathBuf>,
    /// Keep alive in seconds, 1 to 3600. The bridge pings the broker after each half of it, and gives a connection up
    /// over which nothing came between two pings, so after silence of a half to the whole of it. Where the broker says
    /// another number, that one holds instead; where it says 0, there are no pings and silence is not noticed.
    #[serde(default = "default_keep_alive_s")]
    #[schemars(range(min = 1, max = 3600))]
    pub keep_alive_s: u16,
    /// What goes where; at most 64 routes.
    #[serde(default)]
    pub routes: Vec<Route>,
    /// What comes in: messages that applications want sent; at most 16 routes.
    #[serde(default)]
    pub inbound: Vec<InboundRoute>,
    /// What is held for the broker.
    #[serde(default)]
    pub outbox: OutboxSettings,
    /// When to try again after a connection was lost or did not come about.
    #[serde(default)]
    pub reconnect: ReconnectSettings,
}

const fn default_keep_alive_s() -> u16 {
    30
}

/// What is held for the broker: messages of QoS 1 until it has acknowledged them, messages of QoS 0 until the socket has
/// taken them. Without a connection messages of QoS 0 are dropped (`disconnected`).
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OutboxSettings {
    /// Messages, 1 to 1000000.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub messages_max: usize,
    /// Octets of all payloads together, 1024 to 17179869184 (16 GiB). A larger message is dropped (`too_large`).
    #[schemars(range(min = 1024, max = 17_179_869_184_u64))]
    pub octets_max: u64,
    /// Messages of QoS 1 that may be unacknowledged at a time, 1 to 10000; the broker may allow fewer.
    #[schemars(range(min = 1, max = 10_000))]
    pub in_flight_max: u16,
    /// Which message is lost, and counted as `outbox_full`, when there is no room. `drop_newest`, the default, refuses
    /// the new message, so that every accepted message of QoS 1 is kept until the broker has acknowledged it or has said
    /// that it does not take it, or until the node stops. `drop_oldest` gives up the oldest accepted messages that are not
    /// on their way, of QoS 1 too.
    pub when_full: WhenFull,
}

impl Default for OutboxSettings {
    fn default() -> Self {
        Self { messages_max: 10_000, octets_max: 64 << 20, in_flight_max: 512, when_full: WhenFull::default() }
    }
}

/// When to try again. The wait doubles from `min_ms` to `max_ms`, and begins anew after a connection that was of use: on
/// which the broker answered a message, or which lasted five seconds, and which no other client with the same identifier
/// took over. Of each wait a random part of up to its half is left out, so that many vehicles do not come back at the
/// same moment.
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

/// A bridge. Its work is in its task.
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
            return Err(SettingError::new("routes", "a bridge without a route has nothing to do"));
        }
        check_range("keep_alive_s", settings.keep_alive_s.into(), 1, 3600)?;
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
    Err(SettingError::new("client_id", "it has 1 to 256 octets and no control characters"))
}

/// The bridge's task: takes samples, and sends them where there is a connection.
struct Task {
    login: Login,
    inputs: Inputs,
    inbound: Subscribed,
    outbox: Outbox,
    backoff: Backoff,
    hop: Hop,
    stop: Stop,
    /// Set when the bridge is asked to stop: until then it may still send.
    deadline: Option<Instant>,
    connected: Counter,
    lost: Counter,
    /// For logs.
    name: String,
}

/// How the wait for a connection, or the service of one, ended.
enum Ended<T> {
    /// The bridge stops: nothing is left, or no time.
    Stopped,
    Other(T),
}

impl Task {
    fn new(settings: Settings, context: &Context<MqttBridge>) -> Result<Self, StartError> {
        let broker = BrokerAddress::parse(&settings.broker).map_err(|problem| SettingError::new("broker", problem))?;
        let default_id = || format!("{}-{}", context.node(), context.name());
        let login = Login {
            address: broker.to_string(),
            client_id: settings.client_id.clone().unwrap_or_else(default_id),
            keep_alive: Duration::from_secs(settings.keep_alive_s.into()),
            credentials: credentials(&settings)?,
        };
        let limits = Limits {
            messages_max: settings.outbox.messages_max,
            octets_max: usize::try_from(settings.outbox.octets_max).unwrap_or(usize::MAX),
            in_flight_max: settings.outbox.in_flight_max,
            when_full: settings.outbox.when_full,
        };
        let counts = Counts::new(|name, reason| match reason {
            Some(reason) => context.counter_for(name, reason),
            None => context.counter(name),
        });
        Ok(Self {
            login,
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
        // Only the first failure of an outage is worth a line.
        let mut told = false;
        loop {
            let error = match self.open(wait).await {
                Ended::Stopped => return Ok(()),
                Ended::Other(Ok(mut connection)) => {
                    tracing::info!(component = self.name, broker = self.login.address, "connected to the MQTT broker");
                    told = false;
                    self.connected.increment();
                    self.outbox.connected(connection.peer());
                    match self.serve(&mut connection).await {
                        Ended::Stopped => return Ok(()),
                        Ended::Other(error) => {
                            if connection.was_of_use(&error) {
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
            if !std::mem::replace(&mut told, true) {
                let (component, broker) = (&self.name, &self.login.address);
                tracing::warn!(component, broker, %error, "no connection to the MQTT broker; trying again");
            }
            wait = self.backoff.next();
        }
    }

    /// Waits and then connects, and takes samples meanwhile.
    async fn open(&mut self, wait: Duration) -> Ended<Result<Connection, ConnectionError>> {
        let login = self.login.clone();
        let subscription = self.inbound.packet(connection::SUBSCRIBE_ID);
        let mut attempt = pin!(connect_after(wait, &login, subscription.clone()));
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
                    // There is no time to wait, only for one more attempt.
                    attempt.set(connect_after(Duration::ZERO, &login, subscription.clone()));
                }
                taken = self.inputs.next(), if deadline.is_none() => self.take_or_stop(taken.as_ref()),
            }
        }
    }

    /// Sends and takes acknowledgements until the connection or the bridge ends.
    async fn serve(&mut self, connection: &mut Connection) -> Ended<ConnectionError> {
        let mut ping = connection.keep_alive().map(|time| interval(time / 2));
        loop {
            if self.deadline.is_none() {
                // Also while acknowledgements keep the task busy: the queue of the bus is short.
                self.take_batch();
            }
            if let Err(error) = connection.send(&mut self.outbox, &self.hop) {
                return Ended::Other(error);
            }
            if let Some(deadline) = self.deadline
                && self.outbox.len() == 0
            {
                // All is sent; a broker that does not hear the goodbye has lost nothing.
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

    /// Everything that feeds the bridge has ended: what is in its queues is all that will come.
    fn begin_stop(&mut self) {
        while let Some(taken) = self.inputs.try_next() {
            self.take(&taken);
        }
        self.deadline = Some(Instant::now() + FLUSH_TIME_MAX);
    }

    /// Takes a sample; without one, the bus is closed.
    fn take_or_stop(&mut self, taken: Option<&Taken>) {
        match taken {
            Some(taken) => self.take(taken),
            None => self.begin_stop(),
        }
    }

    /// Takes samples that are there already, up to a bound.
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
            // The outbox would say the same; this spares the encoding.
            return counts.drop_one(DropReason::Disconnected);
        }
        match self.inputs.message(taken) {
            Ok(message) => self.outbox.accept(message),
            Err(error) => {
                tracing::debug!(component = self.name, %error, "a message cannot be encoded");
                counts.drop_one(DropReason::Unencodable);
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
    login: &Login,
    subscription: Option<SubscribePacket>,
) -> Result<Connection, ConnectionError> {
    tokio::time::sleep(wait).await;
    Connection::open(login, subscription).await
}

fn interval(period: Duration) -> Interval {
    let mut interval = tokio::time::interval_at(Instant::now() + period, period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

/// Waits for a moment; without one, for ever.
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

/// Waits between attempts.
struct Backoff {
    settings: ReconnectSettings,
    /// The next wait before its random part is left out.
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
