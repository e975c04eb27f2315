//! An external broker: one connection for each client of the gateway, or one for all.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;
use viaduct_mqtt::QoS;
use viaduct_mqtt::address::BrokerAddress;
use viaduct_mqtt::transport::TlsFiles;
use viaduct_mqtt::types::WillMessage;
use viaduct_mqttsn::Message;
use viaduct_mqttsn::codec::{Qos, ReturnCode};
use viaduct_mqttsn::gateway::{ClientHandle, Gateway, GatewayEvent, Token};
use viaduct_node::SettingError;
use viaduct_units::{Mono, Rng};

use super::embedded::Filters;
use super::folders::{Folder, Folders};
use super::history::{History, digest};
use super::upstream::{Arrival, COMMANDS_MAX, COMMANDS_RESERVED, Command, Event, EventQueue, Events, Upstream};
use crate::mqtt::client::{Client, ConnectParams, OutboxSettings, ReconnectSettings, Shared, Version};
use crate::mqttsn::{message, qos};

/// Keep alive of the connections.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// Longest packet from the broker in bytes: the longest topic and payload that fit into a datagram.
const PACKET_BYTES_MAX: u32 = 160 << 10;
/// Time without a connection after which a client of the gateway must connect again.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time limit for the end of the connections when the node stops. The node as a whole has two seconds.
const CLOSE_TIME_MAX: Duration = Duration::from_millis(1500);

/// Settings that all connections have in common.
pub(super) struct Options {
    pub(super) address: BrokerAddress,
    pub(super) tls: TlsFiles,
    pub(super) version: Version,
    pub(super) credentials: Option<(String, Vec<u8>)>,
    pub(super) outbox: OutboxSettings,
    pub(super) reconnect: ReconnectSettings,
    /// Client identifier of the connection for all clients.
    pub(super) client_id: String,
    /// Time for which the broker keeps a session that is not clean.
    pub(super) session_expiry: Duration,
    pub(super) is_aggregating: bool,
    /// Clients without a session publish, on a connection that is open in advance: it drops messages of QoS 0 before.
    pub(super) has_strangers: bool,
    /// Folder in which the sessions outlive the process.
    pub(super) folder: Option<PathBuf>,
}

/// The connections.
pub(super) struct External {
    options: Options,
    shared: Shared,
    random: Rng,
    events: Events,
    queue: EventQueue,
    links: HashMap<u64, Link>,
    by_client: HashMap<ClientHandle, u64>,
    /// Number of the connection for all clients, if there is one.
    common: Option<u64>,
    last: u64,
    /// Subscriptions of the connection for all clients.
    filters: Filters,
    /// Messages that the broker waits for, by the number of their delivery.
    arrivals: HashMap<u64, (u64, Arrival)>,
    last_delivery: u64,
    /// Messages of QoS 1 and 2 that have arrived last.
    history: History,
    /// Messages that the broker has, and of which the gateway has noted that.
    settled: Vec<(Option<ClientHandle>, Arc<str>)>,
    /// Connections on which the messages of an earlier process were not published again yet.
    opened: Vec<u64>,
    /// Folders of the outboxes, if sessions outlive the process.
    folders: Option<Folders>,
    tasks: JoinSet<()>,
}

/// A connection.
struct Link {
    /// `None` for the connection for all clients.
    client: Option<ClientHandle>,
    client_id: Arc<str>,
    commands: mpsc::Sender<Command>,
    task: AbortHandle,
    state: LinkState,
}

#[derive(Clone, Copy)]
enum LinkState {
    Opening,
    Open,
    Lost(Instant),
}

/// A new connection.
struct Opening {
    client: Option<ClientHandle>,
    client_id: Arc<str>,
    session_expiry: Duration,
    will: Option<WillMessage>,
    resumes: bool,
}

/// Values that the task of a connection needs.
struct Plan {
    number: u64,
    shared: Shared,
    params: ConnectParams,
    outbox: OutboxSettings,
    reconnect: ReconnectSettings,
    folder: Option<Arc<Folder>>,
    resumes: bool,
    upstream: Upstream,
}

impl Plan {
    /// Waits until no earlier connection uses the outbox, and runs the connection.
    async fn run(self) {
        let folder = self.folder.clone();
        let _guard = match &folder {
            Some(folder) => Some(folder.lock().await),
            None => None,
        };
        let (failure, client) = (self.upstream.failure(), self.params.client_id.clone());
        match self.open() {
            Ok(connection) => connection.run().await,
            Err(SettingError { problem, .. }) => {
                tracing::error!(client, problem, "the messages of an MQTT-SN client cannot be stored");
                failure.report();
            }
        }
    }

    /// Opens the outbox.
    fn open(self) -> Result<Connection, SettingError> {
        let Self { shared, params, outbox, reconnect, folder, resumes, upstream, .. } = self;
        let folder = folder.filter(|folder| {
            // A session that ends with its connection has nothing to continue. An earlier session may have left a folder.
            if !params.keeps_session {
                folder.delete();
            }
            params.keeps_session
        });
        let outbox = OutboxSettings { folder: folder.as_ref().map(|folder| folder.path().to_owned()), ..outbox };
        let client = Client::sharing(shared.clone(), params.clone(), &outbox, reconnect, upstream)?;
        let client = if resumes { client.resuming() } else { client };
        Ok(Connection { client, shared, params, folder })
    }
}

/// A connection whose outbox is open.
struct Connection {
    client: Client<Upstream>,
    shared: Shared,
    params: ConnectParams,
    folder: Option<Arc<Folder>>,
}

impl Connection {
    /// Runs the connection until it is closed, and deletes its folder if nothing is left in it.
    async fn run(self) {
        let Self { client, shared, params, folder } = self;
        // It cannot fail.
        _ = client.run().await;
        if let Some(folder) = folder {
            Client::<Upstream>::remove_empty(&shared, &params, folder.path());
        }
    }
}

impl External {
    /// Creates the connections. `gateway` has the sessions that an earlier process has left. Must be called inside the runtime.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub(super) fn new(
        options: Options,
        shared: Shared,
        seed: u64,
        (events, queue): (Events, EventQueue),
        mut history: History,
        gateway: &Gateway,
    ) -> Result<Self, SettingError> {
        let needs_common = options.is_aggregating || options.has_strangers;
        let sessions: HashSet<&str> = gateway.clients().map(|client| client.client_id).collect();
        let own = Some(&*options.client_id);
        let clients = sessions.iter().copied().filter(|_| !options.is_aggregating);
        history.retain(|client_id| sessions.contains(client_id) || own == Some(client_id));
        let folders = options.folder.as_ref().map(|folder| {
            let unusable = |error| SettingError::new("folder", format!("{}/connections: {error}", folder.display()));
            Folders::open(folder, clients.chain(own)).map_err(unusable)
        });
        let folders = folders.transpose()?;
        let mut external = Self {
            options,
            shared,
            random: Rng::new(seed),
            events,
            queue,
            links: HashMap::new(),
            by_client: HashMap::new(),
            common: None,
            last: 0,
            filters: Filters::default(),
            arrivals: HashMap::new(),
            last_delivery: 0,
            history,
            settled: Vec::new(),
            opened: Vec::new(),
            folders,
            tasks: JoinSet::new(),
        };
        if needs_common {
            external.open_common()?;
        }
        Ok(external)
    }

    /// Waits for the next event of a connection. Cancelling the wait loses nothing.
    pub(super) async fn next(&mut self) -> Option<(u64, Event)> {
        self.queue.next().await
    }

    /// Returns the next event, or `None` if none is waiting.
    pub(super) fn try_next(&mut self) -> Option<(u64, Event)> {
        self.queue.try_next()
    }

    /// Returns the number of the connection for all clients, which is opened if necessary.
    fn common(&mut self) -> Option<u64> {
        if self.common.is_none() {
            let opening = self.opening_of_common();
            self.common = Some(self.open(opening));
        }
        self.common
    }

    fn opening_of_common(&self) -> Opening {
        let Options { session_expiry, folder, client_id, .. } = &self.options;
        let session_expiry = if folder.is_some() { *session_expiry } else { Duration::ZERO };
        Opening { client: None, client_id: client_id.as_str().into(), session_expiry, will: None, resumes: true }
    }

    /// Opens the connection for all clients and its outbox.
    fn open_common(&mut self) -> Result<(), SettingError> {
        let opening = self.opening_of_common();
        let (commands, plan) = self.plan(&opening);
        let number = plan.number;
        let connection = plan.open().map_err(|error| SettingError::new("folder", error.problem))?;
        let task = self.tasks.spawn(connection.run());
        self.add(number, opening, commands, task);
        self.common = Some(number);
        Ok(())
    }

    /// Opens a connection. Returns its number.
    fn open(&mut self, opening: Opening) -> u64 {
        while self.tasks.try_join_next().is_some() {}
        let (commands, plan) = self.plan(&opening);
        let number = plan.number;
        let task = self.tasks.spawn(plan.run());
        self.add(number, opening, commands, task);
        number
    }

    /// Returns the parts that the task of a connection takes, and the sender of its commands.
    fn plan(&mut self, opening: &Opening) -> (mpsc::Sender<Command>, Plan) {
        self.last += 1;
        let number = self.last;
        let Opening { client_id, session_expiry, will, resumes, .. } = opening;
        let Options { address, tls, version, credentials, outbox, reconnect, .. } = &self.options;
        let params = ConnectParams {
            address: address.clone(),
            tls: tls.clone(),
            client_id: client_id.to_string(),
            version: *version,
            keep_alive: KEEP_ALIVE,
            session_expiry: *session_expiry,
            keeps_session: !session_expiry.is_zero(),
            credentials: credentials.clone(),
            will: will.clone(),
            packet_bytes_max: PACKET_BYTES_MAX,
        };
        let (commands, receiver) = mpsc::channel(COMMANDS_MAX);
        let plan = Plan {
            number,
            shared: self.shared.with_seed(self.random.next_u64()),
            params,
            outbox: outbox.clone(),
            reconnect: *reconnect,
            folder: self.folders.as_mut().map(|folders| folders.get(client_id)),
            resumes: *resumes,
            upstream: Upstream::new(number, receiver, self.events.clone()),
        };
        (commands, plan)
    }

    /// Adds a connection whose task runs.
    fn add(&mut self, number: u64, opening: Opening, commands: mpsc::Sender<Command>, task: AbortHandle) {
        let Opening { client, client_id, .. } = opening;
        self.links.insert(number, Link { client, client_id, commands, task, state: LinkState::Opening });
        self.opened.push(number);
        if let Some(client) = client {
            self.by_client.insert(client, number);
        }
    }

    /// Handles an event of the gateway.
    pub(super) fn handle(&mut self, now: Mono, event: GatewayEvent, gateway: &mut Gateway) {
        match event {
            // The broker would close the connection for all clients.
            GatewayEvent::Connect { client, client_id, .. } if *client_id == *self.options.client_id => {
                gateway.connected(now, client, Err(ReturnCode::NotSupported));
            }
            GatewayEvent::Connect { client, client_id, clean, will, .. } => {
                self.close(client, false);
                let session_expiry = if clean { Duration::ZERO } else { self.options.session_expiry };
                let will = will.as_ref().map(will_message);
                self.open(Opening { client: Some(client), client_id, session_expiry, will, resumes: !clean });
            }
            GatewayEvent::Publish { client, message, token } => {
                let key = self.key(token, &message, gateway);
                let command = Command::Publish {
                    token,
                    key,
                    topic: message.topic.to_string(),
                    payload: message.payload,
                    qos: qos(message.qos),
                    retain: message.retain,
                };
                let number = client.and_then(|client| self.by_client.get(&client).copied()).or_else(|| self.common());
                let is_sent = self.send(number, command, COMMANDS_RESERVED);
                if let Some(token) = token.filter(|_| !is_sent) {
                    gateway.published(token, Err(ReturnCode::Congestion));
                }
            }
            GatewayEvent::Subscribe { client, filter, qos: wanted, token } => {
                let (link, number) = self.subscription_link(client, &filter, qos(wanted));
                let command = Command::Subscribe { token, filter: filter.to_string(), qos: qos(wanted), number };
                if !self.send(link, command, COMMANDS_RESERVED) {
                    gateway.subscribed(now, token, Err(ReturnCode::Congestion));
                }
            }
            GatewayEvent::Unsubscribe { client, filter, token } => {
                let link = if self.options.is_aggregating { self.common } else { self.by_client.get(&client).copied() };
                self.filters.remove(&filter);
                let is_sent = self.send(link, Command::Unsubscribe { token, filter: filter.to_string() }, 0);
                if let Some(token) = token.filter(|_| !is_sent) {
                    gateway.unsubscribed(token);
                }
            }
            GatewayEvent::Disconnect { client, publish_will } => self.close(client, publish_will),
            GatewayEvent::Delivered { delivery, .. } => {
                if let Some((link, arrival)) = self.arrivals.remove(&delivery) {
                    self.acknowledge(link, Some(arrival));
                }
            }
            GatewayEvent::Status { client, client_id, .. } if gateway.client_id(client).is_none() => {
                self.session_ended(&client_id);
            }
            GatewayEvent::Record { .. } | GatewayEvent::Status { .. } => {}
        }
    }

    /// Forgets what is stored for a client, after its last connection has sent what it can.
    fn session_ended(&mut self, client_id: &Arc<str>) {
        if self.options.is_aggregating || **client_id == *self.options.client_id {
            return;
        }
        self.history.forget(client_id);
        if let Some(folders) = &mut self.folders {
            let folder = folders.get(client_id);
            folder.end_session();
            self.tasks.spawn(async move { drop(folder.lock().await) });
        }
    }

    /// Returns the identity of a message of QoS 2 that the gateway has stored.
    fn key(&self, token: Option<Token>, message: &Message, gateway: &Gateway) -> Option<Arc<str>> {
        let token = token.filter(|_| self.options.folder.is_some() && message.qos == Qos::ExactlyOnce)?;
        let client_id = gateway.client_id(token.client())?;
        let digest = digest(&message.topic, &message.payload);
        Some(format!("{client_id}/{}/{digest:08x}", token.number()).into())
    }

    /// Returns the records that follow from what has arrived.
    pub(super) fn records(&mut self) -> Vec<Bytes> {
        self.history.take_records()
    }

    /// Returns the records of the whole state.
    pub(super) fn snapshot(&self) -> Vec<Bytes> {
        self.history.snapshot()
    }

    /// Forgets the messages of QoS 2 that the broker has, after the gateway has stored that.
    pub(super) fn settle(&mut self) {
        let mut settled = std::mem::take(&mut self.settled);
        settled.retain(|(client, key)| {
            let number = client.and_then(|client| self.by_client.get(&client).copied()).or(self.common);
            let link = number.and_then(|number| self.links.get(&number));
            // Without a connection, the outbox keeps the message until the next one continues.
            link.is_some_and(|link| {
                matches!(link.commands.try_send(Command::Settle(Arc::clone(key))), Err(TrySendError::Full(_)))
            })
        });
        self.settled = settled;
        let opened = std::mem::take(&mut self.opened);
        self.opened = opened
            .into_iter()
            .filter(|number| {
                let link = self.links.get(number);
                let waits = |link: &Link| link.client.is_some() && !matches!(link.state, LinkState::Open);
                link.is_some_and(|link| waits(link) || link.commands.try_send(Command::Continued).is_err())
            })
            .collect();
    }

    /// Returns the connection of a subscription, and the subscription identifier if all clients share the connection.
    fn subscription_link(
        &mut self,
        client: ClientHandle,
        filter: &Arc<str>,
        wanted: QoS,
    ) -> (Option<u64>, Option<u32>) {
        if !self.options.is_aggregating {
            return (self.by_client.get(&client).copied(), None);
        }
        // MQTT 3.1.1 has no identifiers.
        let number = (self.options.version == Version::Mqtt5).then(|| self.filters.add(filter, wanted));
        (self.common(), number)
    }

    /// Sends a command if at least `reserved` more have room. Returns `false` if it was not sent.
    fn send(&self, link: Option<u64>, command: Command, reserved: usize) -> bool {
        let link = link.and_then(|number| self.links.get(&number));
        link.is_some_and(|link| link.commands.capacity() > reserved && link.commands.try_send(command).is_ok())
    }

    /// Closes the connection of a client. Its broker publishes the will if the connection ends without a DISCONNECT.
    fn close(&mut self, client: ClientHandle, publish_will: bool) {
        // Without the sender, a connection sends what is left and ends.
        if let Some(link) = self.by_client.remove(&client).and_then(|number| self.links.remove(&number))
            && publish_will
        {
            link.task.abort();
        }
    }

    /// Handles an event of a connection.
    pub(super) fn take(&mut self, now: Mono, (number, event): (u64, Event), gateway: &mut Gateway) {
        match event {
            // Messages that a closed connection has not published are published on the next one.
            Event::Published { is_published: false, .. } if !self.links.contains_key(&number) => {}
            Event::Published { token, is_published, key } => {
                gateway.published(token, outcome(is_published));
                let client = (!self.options.is_aggregating).then(|| token.client());
                self.settled.extend(key.map(|key| (client, key)));
            }
            Event::Subscribed { token, granted } => gateway.subscribed(now, token, granted_qos(granted)),
            Event::Unsubscribed { token } => gateway.unsubscribed(token),
            Event::Connected { resumes } => self.connected(now, number, resumes, gateway),
            Event::Failed { is_refused } => self.failed(now, number, is_refused, gateway),
            Event::Received(packet, arrival) => {
                let Some(link) = self.links.get(&number) else { return };
                if link.client.is_none() && !self.filters.admits(&packet) {
                    self.acknowledge(number, arrival);
                    return;
                }
                let (client, client_id) = (link.client, Arc::clone(&link.client_id));
                self.last_delivery += 1;
                let delivery = self.last_delivery;
                if let Some(arrival) = arrival {
                    if let Some(before) = self.history.add(&client_id, &packet, delivery) {
                        return self.repeated(number, arrival, before);
                    }
                    self.arrivals.insert(delivery, (number, arrival));
                }
                let message = message(&packet.topic_name, packet.payload.clone(), packet.qos, packet.retain);
                match client {
                    Some(client) => gateway.deliver(now, client, message, delivery),
                    None => gateway.route(now, &message, delivery),
                }
            }
        }
    }

    /// Handles a message that has arrived before, with the number `before`: it is acknowledged when it is delivered.
    fn repeated(&mut self, number: u64, arrival: Arrival, before: u64) {
        match self.arrivals.get_mut(&before) {
            Some(waiting) => *waiting = (number, arrival),
            None => self.acknowledge(number, Some(arrival)),
        }
    }

    fn acknowledge(&self, number: u64, arrival: Option<Arrival>) {
        if let Some(arrival) = arrival {
            self.send(Some(number), Command::Acknowledge(arrival), 0);
        }
    }

    fn connected(&mut self, now: Mono, number: u64, resumes: bool, gateway: &mut Gateway) {
        let Some(link) = self.links.get_mut(&number) else { return };
        let before = std::mem::replace(&mut link.state, LinkState::Open);
        if !resumes {
            self.history.forget(&link.client_id);
        }
        match link.client {
            Some(client) if matches!(before, LinkState::Opening) => gateway.connected(now, client, Ok(resumes)),
            Some(_) => {}
            None => gateway.set_available(true),
        }
    }

    fn failed(&mut self, now: Mono, number: u64, is_refused: bool, gateway: &mut Gateway) {
        let Some(link) = self.links.get_mut(&number) else { return };
        let Some(client) = link.client else {
            link.state = LinkState::Lost(Instant::now());
            return gateway.set_available(!self.options.is_aggregating);
        };
        match link.state {
            LinkState::Opening => {
                let code = if is_refused { ReturnCode::NotSupported } else { ReturnCode::Congestion };
                self.close(client, false);
                gateway.connected(now, client, Err(code));
            }
            LinkState::Lost(since) if is_refused || since.elapsed() > PATIENCE => {
                self.close(client, false);
                gateway.broker_lost(now, client);
            }
            LinkState::Lost(_) => {}
            LinkState::Open => link.state = LinkState::Lost(Instant::now()),
        }
    }

    /// Returns `true` unless there is only one connection and it is not open.
    pub(super) fn is_available(&self) -> bool {
        let common = self.common.and_then(|number| self.links.get(&number));
        !self.options.is_aggregating || common.is_some_and(|link| matches!(link.state, LinkState::Open))
    }

    /// Ends all connections after they have sent what is left.
    pub(super) async fn stop(mut self) {
        self.links.clear();
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        // Connections that have not ended by then are aborted.
        _ = tokio::time::timeout(CLOSE_TIME_MAX, ended).await;
    }
}

const fn outcome(is_published: bool) -> Result<(), ReturnCode> {
    if is_published { Ok(()) } else { Err(ReturnCode::Congestion) }
}

fn granted_qos(granted: Option<QoS>) -> Result<Qos, ReturnCode> {
    granted.and_then(|qos| Qos::from_level(qos as u8)).ok_or(ReturnCode::NotSupported)
}

fn will_message(will: &Message) -> WillMessage {
    let mut message = WillMessage::new(will.topic.to_string(), will.payload.to_vec());
    message.qos = qos(will.qos);
    message.retain = will.retain;
    message
}
