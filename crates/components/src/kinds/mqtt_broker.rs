//! Kind `mqtt_broker`: an MQTT broker (3.1.1 and 5) inside the node, based on the crate `mqtt5`.
//!
//! Routes pass topics of the bus directly to the broker's router, without a socket, an acknowledgement or a second client. Inbound
//! routes pass messages of clients to the bus through a subscription without a socket; other subscribers receive them as well. If many
//! messages wait for them, the clients are delayed. Inbound routes ignore messages of routes. A message that a client sends again after a
//! missing acknowledgement is received again, but not with QoS 2.
//!
//! | counter | meaning |
//! |---|---|
//! | `taken` | samples from the bus, and answers |
//! | `published` | messages passed to the router |
//! | `dropped` | messages dropped by a route, by reason |
//! | `received`, `requested`, `refused` | messages of inbound routes: received = requested + refused (by reason) |
//! | `unanswered` | errors included in a later answer because of the rate limit, or not answered because the broker stopped |
//! | `clients_connected`, `clients_disconnected` | clients, updated once per second |
//! | `messages_in`, `messages_out` | messages of all clients, updated once per second |
//! | `connections_refused`, `clients_refused` | refused connections and logins, by reason |
//!
//! `mqtt5` does not report two drops, so they are not counted:
//!
//! - a QoS 0 message to a client whose queue is full
//! - the oldest message of a session whose queue overflows

use std::collections::HashMap;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::{Notify, mpsc};
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use viaduct_bus::{Counter, Hop, clock};
use viaduct_mqtt::broker::BrokerStats;
use viaduct_mqtt::broker::{AccessRules, Admit, BrokerConfig, Listen, OnRefused, Place, RefusedClient, TlsConfigs};
use viaduct_mqtt::broker::{Broker, ROUTE_BUDGET_MAX, Router, Subscription};
use viaduct_mqtt::broker::{BrokerEventHandler, ClientPublishEvent, PublishAction};
use viaduct_mqtt::broker::{StorageBackend, StorageConfig};
use viaduct_mqtt::packet::publish::PublishPacket;
use viaduct_mqtt::{MqttError, QoS};
use viaduct_node::listen::{GateLimits, ServerTls, ServerTlsFiles};
use viaduct_node::{Component, Context, Edges, Resource, SettingError, StartError, Stop, files};

use crate::counter_mirror::CounterMirror;
use crate::mqtt::check_readable;
use crate::mqtt::compression::Compression;
use crate::mqtt::inbound::{self, Inbound, InboundRouteSettings};
use crate::mqtt::local;
use crate::mqtt::message::Message;
use crate::mqtt::route::{self, Inputs, Route, Taken};
use viaduct_units::RateLimiter;

/// Time limit for disconnecting the clients when the node stops. The node as a whole has two seconds.
const STOP_TIME_MAX: Duration = Duration::from_millis(1000);
/// Interval at which the counters of clients and messages are updated.
const COUNT_PERIOD: Duration = Duration::from_secs(1);

/// Maximum number of answers that wait for the broker's task.
const ANSWERS_MAX: usize = 64;
/// Maximum time for which an answer waits for subscribers that do not read. Other messages wait as long; then the answer is queued.
const ANSWER_WAIT_MAX: Duration = Duration::from_millis(20);
/// Maximum time for which the remaining messages wait for such subscribers when the node stops.
const LAST_WAIT_MAX: Duration = Duration::from_millis(300);

/// Messages that wait for the inbound routes before clients are delayed.
const BACKLOG_MAX: u64 = 64;

/// Maximum number of topic aliases of a client.
const TOPIC_ALIASES_MAX: u16 = 64;
/// Largest password file in bytes: about 10,000 users.
const PASSWORD_FILE_OCTETS_MAX: u64 = 1 << 20;
/// Log lines about refused clients.
const LOGGED_PER_SECOND: u32 = 1;
/// Maximum number of unacknowledged messages from a client.
const RECEIVE_MAXIMUM: u16 = 1024;

/// Settings of `mqtt_broker`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// TCP address for clients; port 0 selects a free port. If this address or that of another listener is not a loopback address,
    /// `password_file`, `anonymous` or, for listeners with TLS, `tls.client_ca_file` must be set.
    #[serde(default = "default_listen")]
    pub listen: SocketAddr,
    /// Listener with TLS. Default: none.
    #[serde(default)]
    pub tls: Option<TlsListenerSettings>,
    /// Listener for MQTT over WebSocket. Default: none.
    #[serde(default)]
    pub web_socket: Option<WebSocketSettings>,
    /// Listener for MQTT over WebSocket with TLS, with the files of `tls`. Default: none.
    #[serde(default)]
    pub web_socket_tls: Option<WebSocketSettings>,
    /// File of users: lines `NAME:HASH` with an argon2 hash in PHC form. Absent: no users, and anonymous clients may connect on a
    /// loopback address.
    #[serde(default)]
    pub password_file: Option<PathBuf>,
    /// Accepts clients without a user name and a password from every address. Default: only if there is no password file, and each
    /// listener has a loopback address or asks clients for a certificate.
    #[serde(default)]
    pub anonymous: Option<bool>,
    /// Routes from topics of the bus to MQTT topics, without a socket; at most 64.
    #[serde(default)]
    pub routes: Vec<Route>,
    /// Routes from MQTT topics to topics of the bus, for messages of applications; at most 16.
    #[serde(default)]
    pub inbound: Vec<InboundRouteSettings>,
    /// Limits of the broker.
    #[serde(default)]
    pub limits: LimitSettings,
}

fn default_listen() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 1883))
}

/// A listener with TLS.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlsListenerSettings {
    /// TCP address for clients, usually with port 8883.
    pub listen: SocketAddr,
    /// File in the PEM format with the certificate chain of the broker.
    pub certificate_file: PathBuf,
    /// File in the PEM format with the private key of the broker.
    pub key_file: PathBuf,
    /// File in the PEM format with the certificates of the authorities that sign the certificates of clients. Clients without such a
    /// certificate are rejected. Default: clients need no certificate.
    #[serde(default)]
    pub client_ca_file: Option<PathBuf>,
}

/// A listener for MQTT over WebSocket.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebSocketSettings {
    /// TCP address for clients.
    pub listen: SocketAddr,
    /// Path of the WebSocket.
    #[serde(default = "default_path")]
    pub path: String,
}

fn default_path() -> String {
    "/mqtt".to_owned()
}

/// A TCP address of the broker.
struct Listener {
    /// Setting with the address.
    setting: &'static str,
    address: SocketAddr,
    /// `true` if clients need a certificate.
    needs_certificate: bool,
}

impl Settings {
    fn listeners(&self) -> Vec<Listener> {
        let needs_certificate = self.tls.as_ref().is_some_and(|tls| tls.client_ca_file.is_some());
        let all = [
            ("listen", Some(self.listen), false),
            ("tls.listen", self.tls.as_ref().map(|tls| tls.listen), needs_certificate),
            ("web_socket.listen", self.web_socket.as_ref().map(|web_socket| web_socket.listen), false),
            ("web_socket_tls.listen", self.web_socket_tls.as_ref().map(|it| it.listen), needs_certificate),
        ];
        let all = all.into_iter();
        all.filter_map(|(setting, address, needs_certificate)| {
            Some(Listener { setting, address: address?, needs_certificate })
        })
        .collect()
    }
}

impl Listener {
    /// Returns `true` if any machine of the network can connect without a certificate.
    const fn is_open(&self) -> bool {
        !self.address.ip().is_loopback() && !self.needs_certificate
    }
}

/// Limits of the broker.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitSettings {
    /// Maximum number of connected clients, 1 to 100000. A quarter of them may have the same address, or three quarters
    /// the same loopback address.
    #[schemars(range(min = 1, max = 100_000))]
    pub clients_max: usize,
    /// Maximum number of sessions, with those of disconnected clients, 1 to 100000. At this number, only clients that leave no session
    /// behind are accepted.
    #[schemars(range(min = 1, max = 100_000))]
    pub sessions_max: usize,
    /// Maximum size of a packet in octets, 1024 to 268435455 (the limit of the protocol).
    #[schemars(range(min = 1024, max = 268_435_455))]
    pub packet_octets_max: usize,
    /// Maximum number of subscriptions of a client, 1 to 100000.
    #[schemars(range(min = 1, max = 100_000))]
    pub subscriptions_max: usize,
    /// Maximum number of messages that wait for one client, 1 to 1000000. It applies to QoS 0 and QoS 1 separately on a
    /// connection, and to the session while the client is disconnected.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub queued_messages_max: usize,
    /// Maximum size of the messages that wait for a disconnected client, in bytes, 1024 to 17179869184 (16 GiB).
    #[schemars(range(min = 1024, max = 17_179_869_184_u64))]
    pub queued_octets_max: u64,
    /// Maximum number of retained messages, 1 to 1000000.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub retained_messages_max: usize,
    /// Maximum size of a retained message in bytes, 1 to 268435455.
    #[schemars(range(min = 1, max = 268_435_455))]
    pub retained_octets_max: usize,
    /// Maximum time for which the session of a disconnected client is kept, in seconds, 0 to 604800 (a week).
    #[schemars(range(min = 0, max = 604_800))]
    pub session_expiry_s: u32,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            clients_max: 1_000,
            sessions_max: 1_000,
            packet_octets_max: 16 << 20,
            subscriptions_max: 100,
            queued_messages_max: 10_000,
            queued_octets_max: 4 << 20,
            retained_messages_max: 10_000,
            retained_octets_max: 1 << 20,
            session_expiry_s: 3_600,
        }
    }
}

/// A running broker.
pub struct MqttBroker {
    stats: Arc<BrokerStats>,
    totals: CounterMirror<&'static Total>,
}

impl Component for MqttBroker {
    type Settings = Settings;

    fn check(settings: &Settings) -> Result<(), SettingError> {
        let decides = settings.password_file.is_some() || settings.anonymous.is_some();
        if let Some(open) = settings.listeners().iter().find(|listener| !decides && listener.is_open()) {
            let problem = format!(
                "{} is not a loopback address: set `password_file`, or `anonymous: true` to accept every client",
                open.address
            );
            return Err(SettingError::new(open.setting, problem));
        }
        if settings.web_socket_tls.is_some() && settings.tls.is_none() {
            return Err(SettingError::new("web_socket_tls", "needs `tls`, which names the certificate"));
        }
        for (setting, web_socket) in
            [("web_socket.path", &settings.web_socket), ("web_socket_tls.path", &settings.web_socket_tls)]
        {
            if let Some(path) = web_socket.as_ref().map(|web_socket| &web_socket.path)
                && !(path.starts_with('/') && path.bytes().all(|octet| octet.is_ascii_graphic()))
            {
                return Err(SettingError::new(setting, format!("`{path}` is not a path")));
            }
        }
        if settings.anonymous == Some(false) && settings.password_file.is_none() {
            return Err(SettingError::new(
                "anonymous",
                "`false` needs a `password_file`: otherwise no client could connect",
            ));
        }
        let limits = &settings.limits;
        for (key, value, min, max) in [
            ("clients_max", limits.clients_max as u64, 1, 100_000),
            ("sessions_max", limits.sessions_max as u64, 1, 100_000),
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
        let auto = settings.routes.iter().position(|route| route.compression == Compression::Auto);
        if let Some(index) = auto {
            let problem = "`auto` needs a connection; expected `none`, `zstd` or `planes`";
            return Err(SettingError::new(format!("routes.{index}.compression"), problem));
        }
        route::check(&settings.routes)
    }

    fn check_machine(settings: &Settings) -> Result<(), SettingError> {
        if let Some(path) = &settings.password_file {
            check_readable("password_file", path)?;
            if path.is_file() {
                // A pipe is read only once.
                users(path)?;
            }
        }
        match settings.tls.as_ref().map(TlsListenerSettings::open) {
            Some(Err(error)) => Err(error),
            _ => Ok(()),
        }
    }

    fn edges(settings: &Settings) -> Edges {
        let edges =
            settings.listeners().into_iter().fold(Edges::default(), |edges, Listener { address, setting, .. }| {
                edges.takes(Resource::TcpListen { address, setting: setting.to_owned() })
            });
        inbound::edges(&settings.inbound, route::edges(&settings.routes, edges))
    }

    fn start(settings: Settings, context: &mut Context<Self>) -> Result<Self, StartError> {
        for Listener { address, .. } in settings.listeners().iter().filter(|listener| listener.is_open()) {
            if settings.anonymous == Some(true) {
                let component = context.name();
                tracing::warn!(component, listen = %address, "MQTT broker accepts anonymous clients on a non-loopback address");
            }
        }
        let output =
            Output { hop: context.hop(), taken: context.counter("taken"), published: context.counter("published") };
        let (answers, answered) = mpsc::channel(ANSWERS_MAX);
        let inbound = (!settings.inbound.is_empty())
            .then(|| {
                let inbound = Inbound::open(&settings.inbound, settings.limits.packet_octets_max, context)?;
                let filters = inbound.filters().map(|filter| filter.text.to_owned()).collect();
                let backlog = Arc::new(Backlog { filters, ..Backlog::default() });
                Ok::<_, StartError>(InboundRoutes { inbound, answers, backlog })
            })
            .transpose()?;
        let unanswered = inbound.as_ref().map(|_| context.counter("unanswered"));
        let engine = open(&settings, inbound.as_ref().map(|inbound| Throttle(Arc::clone(&inbound.backlog))), context)?;
        let stats = engine.stats();
        let totals = CounterMirror::new(TOTALS, |(name, _)| context.counter(name));
        context.every(COUNT_PERIOD, |broker, _| broker.sync_counters());
        let task = Task {
            listen: settings.listen,
            router: engine.router(),
            inputs: Inputs::open(settings.routes, context)?,
            inbound,
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

/// Reads the users of a password file with the hashes of their passwords.
fn users(path: &Path) -> Result<HashMap<String, String>, SettingError> {
    let wrong = |problem: String| SettingError::new("password_file", format!("{}: {problem}", path.display()));
    let text = files::read_text(path, PASSWORD_FILE_OCTETS_MAX).map_err(|cause| wrong(cause.to_string()))?;
    let lines = text.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let mut users = HashMap::new();
    for (index, line) in lines {
        let (name, hash) = line.split_once(':').map_or(("", ""), |(name, hash)| (name.trim(), hash.trim()));
        if name.is_empty() || !hash.starts_with("$argon2") {
            return Err(wrong(format!("line {} is not `NAME:HASH` with an argon2 hash in PHC form", index + 1)));
        }
        users.insert(name.to_owned(), hash.to_owned());
    }
    if users.is_empty() { Err(wrong("it has no users".to_owned())) } else { Ok(users) }
}

impl TlsListenerSettings {
    fn open(&self) -> Result<ServerTls, SettingError> {
        let files = ServerTlsFiles {
            certificate: self.certificate_file.clone(),
            key: self.key_file.clone(),
            client_authorities: self.client_ca_file.clone(),
        };
        ServerTls::open(files).map_err(|error| SettingError::new("tls", error.to_string()))
    }
}

/// Binds the sockets and builds the broker around them.
fn open(settings: &Settings, handler: Option<Throttle>, context: &Context<MqttBroker>) -> Result<Broker, StartError> {
    let config = match handler {
        Some(handler) => config(settings).with_event_handler(Arc::new(handler)),
        None => config(settings),
    };
    let users = settings.password_file.as_deref().map(users).transpose()?.unwrap_or_default();
    let rules = AccessRules {
        anonymous: settings.anonymous.unwrap_or(settings.password_file.is_none()),
        users,
        sessions_max: settings.limits.sessions_max,
    };
    let gate = context.gate(GateLimits::new(settings.limits.clients_max));
    let admit: Admit = Arc::new(move |stream, peer| gate.admit(stream, peer).map(|place| Box::new(place) as Place));
    let opened = Broker::open(config, bind(settings)?, rules, admit, on_refused(context));
    opened.map_err(|error| StartError::Other(error.to_string()))
}

fn bind(settings: &Settings) -> Result<Vec<(TcpListener, Listen)>, StartError> {
    let tls = settings.tls.as_ref().map(TlsListenerSettings::open).transpose()?.map(Arc::new);
    let configs = || tls.clone().map(|tls| Arc::new(move || tls.config()) as TlsConfigs);
    let path = |web_socket: &Option<WebSocketSettings>| web_socket.as_ref().map(|settings| settings.path.clone());
    let listen = |setting: &str| match setting {
        "tls.listen" => Listen { tls: configs(), web_socket: None },
        "web_socket.listen" => Listen { tls: None, web_socket: path(&settings.web_socket) },
        "web_socket_tls.listen" => Listen { tls: configs(), web_socket: path(&settings.web_socket_tls) },
        _ => Listen::default(),
    };
    let bind = |Listener { address, setting, .. }: Listener| {
        let failed = |cause| StartError::io(format!("cannot listen on {address}"), cause);
        Ok((TcpListener::bind(address).map_err(failed)?, listen(setting)))
    };
    settings.listeners().into_iter().map(bind).collect()
}

/// Returns what counts and logs the refused clients.
fn on_refused(context: &Context<MqttBroker>) -> OnRefused {
    let component = context.name().to_owned();
    let counters = ["password", "address", "sessions_max"].map(|reason| context.counter_for("clients_refused", reason));
    let logged = Mutex::new(RateLimiter::new(LOGGED_PER_SECOND));
    Arc::new(move |refused, peer| {
        let [password, address, sessions] = &counters;
        let (counter, reason) = match refused {
            RefusedClient::Password => (password, "wrong user or password"),
            RefusedClient::Address => (address, "too many wrong passwords from the address"),
            RefusedClient::Sessions => (sessions, "too many sessions"),
        };
        counter.increment();
        let mut logged = logged.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(clients) = logged.admit(clock::mono()) {
            tracing::warn!(component, clients, %peer, reason, "MQTT clients are refused");
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
    BrokerConfig {
        topic_alias_maximum: TOPIC_ALIASES_MAX,
        client_channel_capacity: limits.queued_messages_max,
        server_receive_maximum: Some(RECEIVE_MAXIMUM),
        ..BrokerConfig::default()
    }
    .with_max_clients(limits.clients_max)
    .with_max_packet_size(limits.packet_octets_max)
    .with_max_subscriptions_per_client(limits.subscriptions_max)
    .with_max_retained_messages(limits.retained_messages_max)
    .with_max_retained_message_size(limits.retained_octets_max)
    .with_session_expiry(Duration::from_secs(limits.session_expiry_s.into()))
    .with_storage(storage)
}

/// Reason why the broker ended before its stop was requested.
#[derive(Debug, thiserror::Error)]
enum BrokerError {
    #[error("the broker ended: {0}")]
    Failed(MqttError),
    /// The task of the broker panicked.
    #[error("the broker ended: {0}")]
    Panicked(JoinError),
    #[error("the broker ended")]
    Ended,
}

impl BrokerError {
    /// Converts the result of the broker's task.
    fn of(ended: Option<Result<Result<(), MqttError>, JoinError>>) -> Self {
        match ended {
            Some(Ok(Err(error))) => Self::Failed(error),
            Some(Err(error)) => Self::Panicked(error),
            Some(Ok(Ok(()))) | None => Self::Ended,
        }
    }
}

/// The path of messages into the router, with its counters.
struct Output {
    hop: Hop,
    taken: Counter,
    published: Counter,
}

impl Output {
    /// Passes a message to the router. `deadline` limits the wait for subscribers that do not read.
    async fn publish(&self, message: &Message, router: &Router, deadline: Instant) {
        let now = clock::tai();
        let packet = message.packet(self.hop.name(), now);
        router.route(&packet, deadline).await;
        self.hop.mark(message.meta, now);
        self.published.increment();
    }
}

/// The inbound routes. Their messages come from a subscription inside the process, because the events of `mqtt5` lack the properties.
struct InboundRoutes {
    inbound: Inbound,
    /// Channel to the broker's task. That task waits for slow subscribers, so that this one does not.
    answers: mpsc::Sender<Message>,
    backlog: Arc<Backlog>,
}

/// Messages that wait for the inbound routes.
#[derive(Default)]
struct Backlog {
    filters: Vec<String>,
    /// Messages that the clients have sent, and those that were taken.
    sent: AtomicU64,
    taken: AtomicU64,
    changed: Notify,
}

impl Backlog {
    fn len(&self) -> u64 {
        self.sent.load(Ordering::SeqCst).saturating_sub(self.taken.load(Ordering::SeqCst))
    }
}

/// Delays a client while too many messages wait for the inbound routes, so that none of them is dropped. The broker calls it for each
/// message of a client, on the task of that client and after the message was authorised.
struct Throttle(Arc<Backlog>);

impl BrokerEventHandler for Throttle {
    fn on_client_publish<'a>(
        &'a self,
        event: ClientPublishEvent,
    ) -> Pin<Box<dyn Future<Output = PublishAction> + Send + 'a>> {
        let backlog = &self.0;
        Box::pin(async move {
            let matches = |filter: &String| viaduct_mqtt::topic_matches_filter(&event.topic, filter);
            // The router gets a message of QoS 2 later, and the client cannot have more than RECEIVE_MAXIMUM of them.
            if event.qos == QoS::ExactlyOnce || !backlog.filters.iter().any(matches) {
                return PublishAction::Continue;
            }
            loop {
                let changed = backlog.changed.notified();
                if backlog.len() < BACKLOG_MAX {
                    break;
                }
                changed.await;
            }
            backlog.sent.fetch_add(1, Ordering::SeqCst);
            PublishAction::Continue
        })
    }
}

impl InboundRoutes {
    /// Handles the messages until the stop of the component is requested. Returns itself for those that arrive until the broker has ended.
    async fn run(self, mut subscription: Subscription, mut stop: Stop) -> (Self, Subscription) {
        loop {
            tokio::select! {
                biased;
                // First, because messages may arrive faster than they are handled.
                () = stop.asked() => break,
                Some(packet) = subscription.next() => self.take(&packet, subscription.len()),
                else => break,
            }
        }
        self.take_waiting(&mut subscription);
        // No client is delayed any more.
        self.backlog.taken.store(u64::MAX, Ordering::SeqCst);
        self.backlog.changed.notify_waiters();
        (self, subscription)
    }

    /// Handles the messages that wait now, and not those that arrive in the meantime.
    fn take_waiting(&self, subscription: &mut Subscription) {
        for _ in 0..subscription.len() {
            let Some(packet) = subscription.try_next() else { return };
            self.take(&packet, subscription.len());
        }
    }

    /// Handles a message. `waiting` is the number of those behind it.
    fn take(&self, packet: &PublishPacket, waiting: usize) {
        if let Some(answer) = self.inbound.take(packet, clock::now())
            && self.answers.try_send(answer).is_err()
        {
            self.inbound.count_unanswered();
        }
        // Messages of QoS 2 and wills arrive without having been counted.
        let sent = self.backlog.sent.load(Ordering::SeqCst);
        self.backlog.taken.store(sent.saturating_sub(waiting as u64), Ordering::SeqCst);
        self.backlog.changed.notify_waiters();
    }
}

/// The task of the component: runs the broker and passes the samples of the routes to it.
struct Task {
    /// Address on which the broker listens.
    listen: SocketAddr,
    router: Router,
    inputs: Inputs,
    inbound: Option<InboundRoutes>,
    /// Answers of the inbound routes.
    answers: mpsc::Receiver<Message>,
    /// `None` if there are no inbound routes.
    unanswered: Option<Counter>,
    output: Output,
    stop: Stop,
    unencodable: Counter,
}

impl Task {
    async fn run(mut self, engine: Broker) -> Result<(), BrokerError> {
        let shutdown = engine.shutdown_handle();
        let mut ready = engine.ready();
        // The broker runs on a separate task, so that accepting clients and routing do not wait for each other. The set ends that
        // task with this one, also if this one is aborted.
        let mut running = JoinSet::new();
        let mut routes = JoinSet::new();
        if let Some(inbound) = self.inbound.take() {
            // Before the broker accepts clients.
            let filters = inbound.backlog.filters.clone();
            let subscription = self.router.subscribe(filters).await.map_err(BrokerError::Failed)?;
            routes.spawn(inbound.run(subscription, self.stop.clone()));
        }
        engine.spawn(&mut running);
        // The broker ignores a shutdown before it is ready. An error means that it has ended, which is handled below.
        let _ = ready.wait_for(|ready| *ready).await;
        let _registration = local::register(self.listen, self.router.clone());
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
        let last = routes.join_next().await;
        // Answers from now on are counted as unanswered.
        self.answers.close();
        let deadline = Instant::now() + LAST_WAIT_MAX;
        while let Ok(answer) = self.answers.try_recv() {
            self.answer(&answer, deadline).await;
        }
        self.inputs.drain();
        while let Some(taken) = self.inputs.try_next() {
            self.route(&taken, deadline).await;
        }
        shutdown.shutdown();
        let ended = tokio::time::timeout(STOP_TIME_MAX, running.join_next()).await;
        if let Some(Ok((inbound, mut subscription))) = last {
            inbound.take_waiting(&mut subscription);
        }
        match ended {
            // The broker has ended as intended, or a client did not accept its DISCONNECT in time.
            Ok(Some(Ok(Ok(())))) | Err(_) => Ok(()),
            Ok(ended) => Err(BrokerError::of(ended)),
        }
    }

    async fn answer(&self, answer: &Message, deadline: Instant) {
        self.output.taken.increment();
        self.output.publish(answer, &self.router, deadline).await;
    }

    /// Counts the waiting answers as unanswered, because the broker has ended.
    fn leave_unanswered(&mut self) {
        self.answers.close();
        while self.answers.try_recv().is_ok() {
            if let Some(unanswered) = &self.unanswered {
                unanswered.increment();
            }
        }
    }

    async fn route(&mut self, taken: &Taken, deadline: Instant) {
        let now = clock::now();
        if let Some(announcement) = self.inputs.announcement(taken, now) {
            self.inputs.announced(taken, now);
            self.output.taken.increment();
            self.output.publish(&announcement, &self.router, deadline).await;
        }
        self.output.taken.increment();
        match self.inputs.message(taken) {
            Ok(message) => self.output.publish(&message, &self.router, deadline).await,
            Err(error) => {
                tracing::debug!(%error, "message cannot be encoded");
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
    async fn a_broker_that_ends_without_a_request_is_an_error() {
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
