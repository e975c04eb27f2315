//! `mqtt_broker`: an MQTT broker (3.1.1 and 5) inside the node, the crate `mqtt5`.
//!
//! Its routes take topics of the bus straight into the broker's router, without a socket, an acknowledgement or a second
//! client in between; its inbound routes take what a client publishes straight to the bus, before it is acknowledged. Other
//! subscribers get it as well. A client's will is not taken in, nor is what the routes publish. What a client sends a second
//! time, because it did not hear that it had arrived, is taken in a second time, with QoS 2 too.
//!
//! Counters: `taken` (from the bus, and answers), `published` (given to the router) and `dropped` for the routes;
//! `received = requested + refused` (by reason) for the inbound routes, and `unanswered`, refusals that were told with a
//! later one, or not at all, because there were many or the broker ended; `clients_connected`,
//! `clients_disconnected`, `messages_in` and `messages_out` for all clients, renewed once a second from the crate's own
//! statistics. Two drops inside the crate are not counted, because it does not tell: a QoS 0 message to a client whose
//! queue is full, and the oldest of a session's queue when it overflows.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use viaduct_bus::{Counter, Hop, clock};
use viaduct_mqtt::MqttError;
use viaduct_mqtt::broker::BrokerStats;
use viaduct_mqtt::broker::{AuthConfig, BrokerConfig, StorageBackend, StorageConfig};
use viaduct_mqtt::broker::{Broker, ROUTE_BUDGET_MAX, Router};
use viaduct_mqtt::broker::{BrokerEventHandler, ClientPublishEvent, PublishAction};
use viaduct_node::{Component, Context, Edges, Resource, SettingError, StartError, Stop};

use crate::counter_mirror::CounterMirror;
use crate::mqtt::check_readable;
use crate::mqtt::inbound::{self, Inbound, InboundRoute};
use crate::mqtt::route::{self, Inputs, Message, Route, Taken};

/// Time for the clients to be told and to go when the node stops. The node as a whole has two seconds.
const STOP_TIME_MAX: Duration = Duration::from_millis(1000);
/// How often the counters of clients and messages are renewed.
const COUNT_PERIOD: Duration = Duration::from_secs(1);

/// Answers to requests that wait for the broker's task.
const ANSWERS_MAX: usize = 64;
/// How long an answer waits for subscribers that do not read, before it is queued for them: others wait as long.
const ANSWER_WAIT_MAX: Duration = Duration::from_millis(20);
/// How long all that is left waits for them when the node stops.
const LAST_WAIT_MAX: Duration = Duration::from_millis(300);

/// Topic aliases that one client may set.
const TOPIC_ALIASES_MAX: u16 = 64;
/// Unacknowledged messages that one client may send at a time.
const RECEIVE_MAXIMUM: u16 = 1024;

/// Settings of `mqtt_broker`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Address on which clients are served over TCP; port 0 takes any free one. On an address that other machines reach,
    /// `password_file` or `anonymous` must be set.
    #[serde(default = "default_listen")]
    pub listen: SocketAddr,
    /// File of those who may connect: lines `NAME:HASH` with an argon2 hash in PHC form. Default: there is none, and on a
    /// loopback address everybody may connect.
    #[serde(default)]
    pub password_file: Option<PathBuf>,
    /// Whether clients may connect without a name and a password, from wherever they reach the broker. Default: only
    /// where `listen` is a loopback address and there is no password file.
    #[serde(default)]
    pub anonymous: Option<bool>,
    /// Topics of the bus that are published here without a socket; at most 64.
    #[serde(default)]
    pub routes: Vec<Route>,
    /// What clients publish that comes to the bus without a socket: messages that applications want sent; at most 16
    /// routes.
    #[serde(default)]
    pub inbound: Vec<InboundRoute>,
    /// What the broker may use.
    #[serde(default)]
    pub limits: LimitSettings,
}

fn default_listen() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 1883))
}

/// What the broker may use.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitSettings {
    /// Clients at a time, 1 to 100000.
    #[schemars(range(min = 1, max = 100_000))]
    pub clients_max: usize,
    /// Octets of a packet, 1024 to 268435455 (the protocol's limit).
    #[schemars(range(min = 1024, max = 268_435_455))]
    pub packet_octets_max: usize,
    /// Subscriptions of a client, 1 to 100000.
    #[schemars(range(min = 1, max = 100_000))]
    pub subscriptions_max: usize,
    /// Messages that wait for one client, 1 to 1000000: per connection for each of QoS 0 and QoS 1, and per session
    /// while its client is away.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub queued_messages_max: usize,
    /// Octets of messages that wait for a client that is away, 1024 to 17179869184 (16 GiB).
    #[schemars(range(min = 1024, max = 17_179_869_184_u64))]
    pub queued_octets_max: u64,
    /// Retained messages, 1 to 1000000.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub retained_messages_max: usize,
    /// Octets of a retained message, 1 to 268435455.
    #[schemars(range(min = 1, max = 268_435_455))]
    pub retained_octets_max: usize,
    /// Seconds after which a session whose client is away is forgotten, at most, 0 to 604800 (a week).
    #[schemars(range(min = 0, max = 604_800))]
    pub session_expiry_s: u32,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            clients_max: 1_000,
            packet_octets_max: 16 << 20,
            subscriptions_max: 1_000,
            queued_messages_max: 10_000,
            queued_octets_max: 64 << 20,
            retained_messages_max: 10_000,
            retained_octets_max: 1 << 20,
            session_expiry_s: 3_600,
        }
    }
}

/// A broker that runs.
pub struct MqttBroker {
    stats: Arc<BrokerStats>,
    totals: CounterMirror<&'static Total>,
}

impl Component for MqttBroker {
    type Settings = Settings;

    fn check(settings: &Settings) -> Result<(), SettingError> {
        let open = settings.password_file.is_none() && settings.anonymous.is_none();
        if open && !settings.listen.ip().is_loopback() {
            let problem = format!(
                "other machines reach {}: name a `password_file`, or set `anonymous: true` to let everybody in",
                settings.listen
            );
            return Err(SettingError::new("listen", problem));
        }
        if settings.anonymous == Some(false) && settings.password_file.is_none() {
            return Err(SettingError::new("anonymous", "without a `password_file` nobody could connect"));
        }
        let limits = &settings.limits;
        for (key, value, min, max) in [
            ("clients_max", limits.clients_max as u64, 1, 100_000),
            ("packet_octets_max", limits.packet_octets_max as u64, 1024, 268_435_455),
            ("subscriptions_max", limits.subscriptions_max as u64, 1, 100_000),
            ("queued_messages_max", limits.queued_messages_max as u64, 1, 1_000_000),
            ("queued_octets_max", limits.queued_octets_max, 1024, 16 << 30),
            ("retained_messages_max", limits.retained_messages_max as u64, 1, 1_000_000),
            ("retained_octets_max", limits.retained_octets_max as u64, 1, 268_435_455),
            ("session_expiry_s", limits.session_expiry_s.into(), 0, 604_800),
        ] {
            if !(min..=max).contains(&value) {
                let problem = format!("{value} is not within {min} to {max}");
                return Err(SettingError::new(format!("limits.{key}"), problem));
            }
        }
        inbound::check(&settings.inbound)?;
        route::check(&settings.routes)
    }

    fn check_machine(settings: &Settings) -> Result<(), SettingError> {
        match &settings.password_file {
            Some(path) => check_readable("password_file", path),
            None => Ok(()),
        }
    }

    fn edges(settings: &Settings) -> Edges {
        let socket = Resource::TcpListen { address: settings.listen, setting: "listen".to_owned() };
        inbound::edges(&settings.inbound, route::edges(&settings.routes, Edges::default().takes(socket)))
    }

    fn start(settings: Settings, context: &mut Context<Self>) -> Result<Self, StartError> {
        if settings.anonymous == Some(true) && !settings.listen.ip().is_loopback() {
            tracing::warn!(component = context.name(), listen = %settings.listen, "everybody may use the MQTT broker");
        }
        let output =
            Output { hop: context.hop(), taken: context.counter("taken"), published: context.counter("published") };
        let (answers, answered) = mpsc::channel(ANSWERS_MAX);
        let door =
            (!settings.inbound.is_empty()).then(|| Door::open(&settings.inbound, context, answers)).transpose()?;
        let unanswered = door.as_ref().map(|_| context.counter("unanswered"));
        let engine = open(&settings, door)?;
        let (stats, totals) = (engine.stats(), CounterMirror::new(TOTALS, |(name, _)| context.counter(name)));
        context.every(COUNT_PERIOD, |broker, _| broker.sync_counters());
        let task = Task {
            router: engine.router(),
            inputs: Inputs::open(settings.routes, context)?,
            answers: answered,
            unanswered,
            output,
            stop: context.stop(),
            unencodable: context.counter_for("dropped", "unencodable"),
        };
        context.spawn_io(task.run(engine));
        Ok(Self { stats, totals })
    }

    fn stop(&mut self) {
        self.sync_counters();
    }
}

impl MqttBroker {
    fn sync_counters(&mut self) {
        self.totals.sync(|(_, read)| read(&self.stats));
    }
}

/// Binds the socket and builds the broker around it.
fn open(settings: &Settings, door: Option<Door>) -> Result<Broker, StartError> {
    let config = match door {
        Some(door) => config(settings).with_event_handler(Arc::new(door)),
        None => config(settings),
    };
    let opened = Broker::open(config, &tokio::runtime::Handle::current());
    opened.map_err(|error| {
        let what = format!("cannot listen on {}", settings.listen);
        // The crate tells about the socket in a text of several lines; the system's own cause is shorter.
        match std::net::TcpListener::bind(settings.listen) {
            Err(cause) => StartError::io(what, cause),
            Ok(_) => StartError::Other(error.to_string()),
        }
    })
}

fn config(settings: &Settings) -> BrokerConfig {
    let limits = &settings.limits;
    let storage = StorageConfig {
        backend: StorageBackend::Memory,
        max_queued_messages_per_client: limits.queued_messages_max,
        max_queued_bytes_per_client: usize::try_from(limits.queued_octets_max).unwrap_or(usize::MAX),
        ..StorageConfig::default()
    };
    let mut auth = AuthConfig::new();
    if let Some(path) = &settings.password_file {
        auth = auth.with_password_file(path.clone());
    }
    auth.allow_anonymous = settings.anonymous.unwrap_or(settings.password_file.is_none());
    BrokerConfig {
        topic_alias_maximum: TOPIC_ALIASES_MAX,
        client_channel_capacity: limits.queued_messages_max,
        server_receive_maximum: Some(RECEIVE_MAXIMUM),
        ..BrokerConfig::default()
    }
    .with_bind_address(settings.listen)
    .with_max_clients(limits.clients_max)
    .with_max_packet_size(limits.packet_octets_max)
    .with_max_subscriptions_per_client(limits.subscriptions_max)
    .with_max_retained_messages(limits.retained_messages_max)
    .with_max_retained_message_size(limits.retained_octets_max)
    .with_session_expiry(Duration::from_secs(limits.session_expiry_s.into()))
    .with_storage(storage)
    .with_auth(auth)
}

/// Why there is no broker any more, though nobody asked it to end.
#[derive(Debug, thiserror::Error)]
enum BrokerError {
    #[error("the broker ended: {0}")]
    Failed(MqttError),
    /// It panicked.
    #[error("the broker ended: {0}")]
    Panicked(JoinError),
    #[error("the broker ended")]
    Ended,
}

impl BrokerError {
    /// From how its task ended.
    fn of(ended: Option<Result<Result<(), MqttError>, JoinError>>) -> Self {
        match ended {
            Some(Ok(Err(error))) => Self::Failed(error),
            Some(Err(error)) => Self::Panicked(error),
            Some(Ok(Ok(()))) | None => Self::Ended,
        }
    }
}

/// How messages get into the router.
struct Output {
    hop: Hop,
    taken: Counter,
    published: Counter,
}

impl Output {
    /// The deadline bounds the time for subscribers that do not read.
    async fn publish(&self, message: &Message, router: &Router, deadline: Instant) {
        let now = clock::tai();
        let packet = message.packet(self.hop.name(), now);
        router.route(&packet, deadline).await;
        self.hop.mark(&message.meta, now);
        self.published.increment();
    }
}

/// The inbound routes: the broker asks here with each message of a client, on the task that serves it, and after it has
/// found that the client may publish it.
struct Door {
    inbound: Inbound,
    /// To the broker's task: a subscriber without room holds up who routes a message to it, and must not hold up a client.
    answers: mpsc::Sender<Message>,
}

impl Door {
    fn open(
        routes: &[InboundRoute],
        context: &Context<MqttBroker>,
        answers: mpsc::Sender<Message>,
    ) -> Result<Self, StartError> {
        Ok(Self { inbound: Inbound::open(routes, context)?, answers })
    }

    fn take(&self, event: &ClientPublishEvent) {
        if !self.inbound.wants(&event.topic) {
            return;
        }
        if let Some(answer) = self.inbound.take(event, clock::now())
            && self.answers.try_send(answer).is_err()
        {
            self.inbound.leave_unanswered();
        }
    }
}

impl BrokerEventHandler for Door {
    fn on_client_publish<'a>(
        &'a self,
        event: ClientPublishEvent,
    ) -> Pin<Box<dyn Future<Output = PublishAction> + Send + 'a>> {
        self.take(&event);
        Box::pin(std::future::ready(PublishAction::Continue))
    }
}

/// The broker's task: runs it, and gives it what the routes take.
struct Task {
    router: Router,
    inputs: Inputs,
    /// What the inbound routes answer.
    answers: mpsc::Receiver<Message>,
    /// Where there are inbound routes.
    unanswered: Option<Counter>,
    output: Output,
    stop: Stop,
    unencodable: Counter,
}

impl Task {
    async fn run(mut self, engine: Broker) -> Result<(), BrokerError> {
        let (shutdown, mut ready) = (engine.shutdown_handle(), engine.ready());
        // On a task of its own: the broker's accepting must not wait for a route, nor a route for it. The set ends it
        // with this task, also where this one is aborted.
        let mut running = JoinSet::new();
        engine.spawn(&mut running);
        // Before that it would not hear that it is to end. An error means that it has ended, which is seen below.
        let _ = ready.wait_for(|ready| *ready).await;
        loop {
            tokio::select! {
                biased;
                () = self.stop.asked() => break,
                ended = running.join_next() => {
                    self.leave_unanswered();
                    return Err(BrokerError::of(ended));
                }
                Some(answer) = self.answers.recv() => self.answer(&answer, Instant::now() + ANSWER_WAIT_MAX).await,
                taken = self.inputs.next() => match taken {
                    Some(taken) => self.route(&taken, Instant::now() + ROUTE_BUDGET_MAX).await,
                    None => break,
                },
            }
        }
        // What is answered from now on is counted as unanswered.
        self.answers.close();
        let deadline = Instant::now() + LAST_WAIT_MAX;
        while let Ok(answer) = self.answers.try_recv() {
            self.answer(&answer, deadline).await;
        }
        while let Some(taken) = self.inputs.try_next() {
            self.route(&taken, deadline).await;
        }
        shutdown.shutdown();
        match tokio::time::timeout(STOP_TIME_MAX, running.join_next()).await {
            // Now it is to end; and a client that does not take its goodbye is left behind.
            Ok(Some(Ok(Ok(())))) | Err(_) => Ok(()),
            Ok(ended) => Err(BrokerError::of(ended)),
        }
    }

    async fn answer(&self, answer: &Message, deadline: Instant) {
        self.output.taken.increment();
        self.output.publish(answer, &self.router, deadline).await;
    }

    /// There is no broker any more that could take the answers.
    fn leave_unanswered(&mut self) {
        self.answers.close();
        while self.answers.try_recv().is_ok() {
            self.unanswered.iter().for_each(Counter::increment);
        }
    }

    async fn route(&mut self, taken: &Taken, deadline: Instant) {
        self.output.taken.increment();
        match self.inputs.message(taken) {
            Ok(message) => self.output.publish(&message, &self.router, deadline).await,
            Err(error) => {
                tracing::debug!(%error, "a message cannot be encoded");
                self.unencodable.increment();
            }
        }
    }
}

/// Name of a counter and its total in the statistics of `mqtt5`.
type Total = (&'static str, fn(&BrokerStats) -> u64);

const TOTALS: &[Total] = &[
    ("clients_connected", |stats| stats.clients_total.load(Ordering::Relaxed)),
    ("clients_disconnected", |stats| {
        let connected = stats.clients_connected.load(Ordering::Relaxed) as u64;
        stats.clients_total.load(Ordering::Relaxed).saturating_sub(connected)
    }),
    ("messages_in", |stats| stats.publish_received.load(Ordering::Relaxed)),
    ("messages_out", |stats| stats.publish_sent.load(Ordering::Relaxed)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_broker_that_ends_by_itself_is_an_error_however_it_ends() {
        let mut running = JoinSet::new();
        running.spawn(async { Ok(()) });
        assert_eq!(BrokerError::of(running.join_next().await).to_string(), "the broker ended");
        running.spawn(async { Err(MqttError::Timeout) });
        assert!(matches!(BrokerError::of(running.join_next().await), BrokerError::Failed(MqttError::Timeout)));
        running.spawn(async { panic!("on purpose") });
        let panicked = BrokerError::of(running.join_next().await).to_string();
        assert!(panicked.starts_with("the broker ended: ") && panicked.contains("panicked"), "{panicked}");
    }
}
