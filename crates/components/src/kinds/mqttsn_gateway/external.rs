//! An external broker: one connection for each client of the gateway, or one for all.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;
use viaduct_mqtt::QoS;
use viaduct_mqtt::address::BrokerAddress;
use viaduct_mqtt::transport::TlsFiles;
use viaduct_mqtt::types::WillMessage;
use viaduct_mqttsn::Message;
use viaduct_mqttsn::codec::{Qos, ReturnCode};
use viaduct_mqttsn::gateway::{ClientHandle, Gateway, GatewayEvent};
use viaduct_node::SettingError;
use viaduct_units::{Mono, Rng};

use super::embedded::Filters;
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

/// What all connections have in common.
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
    /// `true` if the sessions of the gateway outlive the process.
    pub(super) is_persistent: bool,
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
    tasks: JoinSet<()>,
}

/// A connection.
struct Link {
    /// `None` for the connection for all clients.
    client: Option<ClientHandle>,
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
    client_id: String,
    session_expiry: Duration,
    will: Option<WillMessage>,
    resumes: bool,
}

impl External {
    /// Creates the connections. Must be called inside the runtime.
    pub(super) fn new(options: Options, shared: Shared, seed: u64, (events, queue): (Events, EventQueue)) -> Self {
        let is_aggregating = options.is_aggregating;
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
            tasks: JoinSet::new(),
        };
        if is_aggregating {
            external.common();
        }
        external
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
            let Options { session_expiry, is_persistent, client_id, .. } = &self.options;
            let session_expiry = if *is_persistent { *session_expiry } else { Duration::ZERO };
            let client_id = client_id.clone();
            let opening = Opening { client: None, client_id, session_expiry, will: None, resumes: true };
            self.common = self.open(opening).ok();
        }
        self.common
    }

    fn open(&mut self, opening: Opening) -> Result<u64, SettingError> {
        self.last += 1;
        let number = self.last;
        let Opening { client, client_id, session_expiry, will, resumes } = opening;
        let Options { address, tls, version, credentials, outbox, reconnect, .. } = &self.options;
        let params = ConnectParams {
            address: address.clone(),
            tls: tls.clone(),
            client_id,
            version: *version,
            keep_alive: KEEP_ALIVE,
            session_expiry,
            keeps_session: !session_expiry.is_zero(),
            credentials: credentials.clone(),
            will,
            packet_bytes_max: PACKET_BYTES_MAX,
        };
        let (commands, receiver) = mpsc::channel(COMMANDS_MAX);
        let upstream = Upstream::new(number, receiver, self.events.clone());
        let shared = self.shared.with_seed(self.random.next_u64());
        let connection = Client::sharing(shared, params, outbox, *reconnect, upstream)?;
        let connection = if resumes { connection.resuming() } else { connection };
        let task = self.tasks.spawn(async move {
            // It cannot fail.
            _ = connection.run().await;
        });
        self.links.insert(number, Link { client, commands, task, state: LinkState::Opening });
        if let Some(client) = client {
            self.by_client.insert(client, number);
        }
        Ok(number)
    }

    /// Handles an event of the gateway.
    pub(super) fn handle(&mut self, now: Mono, event: GatewayEvent, gateway: &mut Gateway) {
        match event {
            GatewayEvent::Connect { client, client_id, clean, will, .. } => {
                self.close(client, false);
                let session_expiry = if clean { Duration::ZERO } else { self.options.session_expiry };
                let will = will.as_ref().map(will_message);
                let client_id = client_id.to_string();
                let opening = Opening { client: Some(client), client_id, session_expiry, will, resumes: !clean };
                if self.open(opening).is_err() {
                    gateway.connected(now, client, Err(ReturnCode::Congestion));
                }
            }
            GatewayEvent::Publish { client, message, token } => {
                let command = Command::Publish {
                    token,
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
                    self.send(Some(link), Command::Acknowledge(arrival), 0);
                }
            }
            GatewayEvent::Record { .. } | GatewayEvent::Status { .. } => {}
        }
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
            Event::Published { token, is_published } => gateway.published(token, outcome(is_published)),
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
                self.last_delivery += 1;
                let delivery = self.last_delivery;
                if let Some(arrival) = arrival {
                    self.arrivals.insert(delivery, (number, arrival));
                }
                let message = message(&packet.topic_name, packet.payload.clone(), packet.qos, packet.retain);
                match link.client {
                    Some(client) => gateway.deliver(now, client, message, delivery),
                    None => gateway.route(now, &message, delivery),
                }
            }
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
        // What is left then is aborted.
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
