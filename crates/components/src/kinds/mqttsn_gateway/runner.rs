//! The task of the gateway: datagrams, the broker side, and the sessions on disk.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, Interval, MissedTickBehavior};
use viaduct_bus::{Gauge, clock};
use viaduct_mqtt::address::BrokerAddress;
use viaduct_mqtt::packet::publish::PublishPacket;
use viaduct_mqttsn::codec::ReturnCode;
use viaduct_mqttsn::gateway::{DropReason, Gateway, GatewayEvent, GatewaySettings, Refusal};
use viaduct_node::{Component, Context, SettingError, StartError, Stop};

use super::embedded::Embedded;
use super::external::{External, Options};
use super::history::History;
use super::settings::Settings;
use super::storage::Storage;
use super::upstream::{Event, Events};
use super::{Acknowledge, Mode};
use crate::machine_counters::MachineCounters;
use crate::mqtt::client::{Shared, credentials};
use crate::mqttsn::{self, Group, message, qos};
use crate::net::port::{Port, earlier};
use crate::net::timer::PreciseTimer;

/// Longest time after the start for which clients wait for the broker. Afterwards they are refused with *congestion*, and a client tries again
/// after T_WAIT (five minutes).
const OPEN_DELAY_MAX: Duration = Duration::from_secs(5);
/// Events of the broker that are handled one after the other before datagrams are received.
const BATCH: usize = 64;
/// Interval at which counters are updated.
const COUNT_PERIOD: Duration = Duration::from_secs(1);

/// The task.
pub(super) struct Runner {
    gateway: Gateway,
    port: Port,
    discovery: Option<Group>,
    broker: Broker,
    storage: Storage,
    timer: PreciseTimer,
    count: Interval,
    stop: Stop,
    counters: Counters,
    name: String,
}

/// The broker side.
pub(super) enum Broker {
    External(Box<External>),
    Embedded(Box<Embedded>),
}

/// Event of the broker side.
enum Arrived {
    Connection(u64, Event),
    Message(PublishPacket),
    /// The embedded broker has started or ended.
    Changed,
}

struct Counters {
    gateway: MachineCounters<Gateway>,
    sessions: Gauge,
    buffered_octets: Gauge,
}

impl Runner {
    /// Opens sockets, broker side and storage. Must be called inside the runtime.
    pub(super) fn open<C: Component>(settings: &Settings, context: &Context<C>) -> Result<Self, StartError> {
        let (storage, mut records) = match &settings.folder {
            Some(folder) => Storage::open(folder).map_err(|error| SettingError::new("folder", error.to_string()))?,
            None => (Storage::default(), Vec::new()),
        };
        let history = History::restore(settings.folder.is_some().then_some(&mut records));
        let records = records.iter().map(|record| &record[..]);
        let restored = Gateway::restore(machine(settings), context.seed(), clock::mono(), records);
        let (gateway, restored) = restored.map_err(|error| StartError::Other(error.to_string()))?;
        if restored.sessions > 0 || restored.refused > 0 {
            let (sessions, refused) = (restored.sessions, restored.refused);
            let (from_clients, to_clients) = (restored.from_clients, restored.to_clients);
            tracing::info!(sessions, from_clients, to_clients, refused, "sessions of an earlier process are restored");
        }
        let port = Port::server(settings.listen, settings.receive_buffer_octets, settings.dtls.as_ref(), context)?;
        if let Ok(address) = port.local_address() {
            tracing::info!(component = context.name(), %address, "MQTT-SN gateway listens");
        }
        let discovery = settings.discovery.as_ref().map(|one| Group::open(one.group, &one.interface, &port));
        let discovery = discovery.transpose()?;
        let mut count = tokio::time::interval(COUNT_PERIOD);
        count.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Self {
            broker: Broker::open(settings, context, history, &gateway)?,
            gateway,
            port,
            discovery,
            storage,
            timer: PreciseTimer::new().map_err(|cause| StartError::io("cannot create a timer", cause))?,
            count,
            stop: context.stop(),
            counters: Counters::open(context),
            name: context.name().to_owned(),
        })
    }

    /// Runs until the stop of the component is requested.
    pub(super) async fn run(mut self) -> io::Result<()> {
        let mut payloads = Vec::new();
        // Events of the restored sessions, and the state of the broker.
        self.gateway.set_available(self.broker.is_available());
        self.settle().await;
        let opens = Instant::now() + OPEN_DELAY_MAX;
        loop {
            let is_open = self.broker.is_available() || Instant::now() >= opens;
            self.timer.set(earlier(self.gateway.poll_timeout(), self.port.poll_timeout()))?;
            tokio::select! {
                biased;
                () = self.stop.asked() => break,
                arrived = self.port.receive(&mut payloads), if is_open => arrived?,
                () = tokio::time::sleep_until(opens), if !is_open => self.broker.report_absence(&self.name),
                arrived = mqttsn::receive(self.discovery.as_mut()) => payloads.extend(arrived?),
                arrived = self.broker.next() => self.take(arrived).await,
                expired = self.timer.expired() => {
                    expired?;
                    let now = clock::mono();
                    self.port.handle_timeout(now, &mut payloads);
                    self.gateway.handle_timeout(now);
                }
                _ = self.count.tick() => self.sync_counters(),
            }
            for (from, payload) in payloads.drain(..) {
                self.gateway.handle_datagram(clock::mono(), from, &payload);
            }
            self.settle().await;
        }
        self.sync_counters();
        if let Broker::External(external) = self.broker {
            external.stop().await;
        }
        Ok(())
    }

    /// Handles an event of the broker side, and those that wait.
    async fn take(&mut self, first: Arrived) {
        let mut next = Some(first);
        for _ in 0..BATCH {
            let Some(arrived) = next else { return };
            self.broker.take(arrived, &mut self.gateway).await;
            next = self.broker.try_next();
        }
        if let Some(last) = next {
            self.broker.take(last, &mut self.gateway).await;
        }
    }

    /// Handles the events of the gateway, stores its records and sends its datagrams.
    async fn settle(&mut self) {
        loop {
            let mut events = Vec::new();
            while let Some(event) = self.gateway.poll_event() {
                match event {
                    GatewayEvent::Record { record, token } => self.storage.append(&record, token),
                    event => {
                        if let GatewayEvent::Status { client_id, peer, status, .. } = &event {
                            tracing::debug!(client = %client_id, address = %peer.address, ?status, "MQTT-SN client");
                        }
                        events.push(event);
                    }
                }
            }
            // A message is stored before the broker has it.
            let is_stored = self.storage.commit(&mut self.gateway, &mut self.broker);
            if events.is_empty() && self.gateway.is_idle() {
                if is_stored {
                    self.broker.settle();
                }
                break;
            }
            for event in events {
                self.broker.handle(event, &mut self.gateway).await;
            }
        }
        while let Some(transmit) = self.gateway.poll_transmit() {
            mqttsn::send(transmit, &mut self.port, self.discovery.as_ref());
        }
        self.port.flush();
    }

    fn sync_counters(&mut self) {
        self.port.sync_counters();
        self.counters.gateway.sync(&self.gateway);
        self.counters.sessions.set(self.gateway.sessions() as f64);
        self.counters.buffered_octets.set(self.gateway.buffered_octets() as f64);
    }
}

/// Returns the settings of the machine.
fn machine(settings: &Settings) -> GatewaySettings {
    let limits = settings.limits;
    let is_aggregating = settings.embedded_broker.is_some() || settings.mode == Mode::Aggregating;
    let mut machine = GatewaySettings {
        gateway_id: settings.gateway_id,
        mode: if is_aggregating {
            viaduct_mqttsn::gateway::Mode::Aggregating
        } else {
            viaduct_mqttsn::gateway::Mode::Transparent
        },
        acknowledge: match settings.acknowledge {
            Acknowledge::Broker => viaduct_mqttsn::gateway::Acknowledge::AfterBroker,
            Acknowledge::Storage => viaduct_mqttsn::gateway::Acknowledge::AfterStorage,
        },
        advertise: settings.discovery.as_ref().map(|discovery| Duration::from_secs(discovery.advertise_s.into())),
        retransmission: settings.timers.mqttsn(),
        without_connection: settings.qos_minus_one,
        storage: settings.folder.is_some(),
        clients_max: limits.clients_max,
        clients_per_address_max: limits.clients_max,
        // All clients may come back at the same time.
        connecting_max: limits.clients_max,
        topics_per_client_max: limits.topics_max,
        subscriptions_per_client_max: limits.subscriptions_max,
        datagram_octets_max: limits.datagram_octets_max,
        ..GatewaySettings::default()
    };
    machine.buffer.messages_per_client_max = limits.queued_messages_max;
    machine.buffer.octets_per_client_max = limits.queued_messages_max.saturating_mul(limits.datagram_octets_max);
    machine.buffer.octets_max = usize::try_from(limits.queued_octets_max).unwrap_or(usize::MAX);
    for topic in &settings.predefined {
        let topics = match &topic.client {
            Some(client) => machine.predefined_of_clients.entry(client.clone()).or_default(),
            None => &mut machine.predefined,
        };
        topics.insert(topic.id, topic.topic.as_str().into());
    }
    machine
}

impl Broker {
    fn open<C: Component>(
        settings: &Settings,
        context: &Context<C>,
        history: History,
        gateway: &Gateway,
    ) -> Result<Self, StartError> {
        if let Some(listen) = settings.embedded_broker {
            let name = format!("{}/{}", context.node(), context.name());
            return Ok(Self::Embedded(Box::new(Embedded::new(listen, name))));
        }
        let address = settings.broker.as_deref().unwrap_or_default();
        let address = BrokerAddress::parse(address).map_err(|problem| SettingError::new("broker", problem))?;
        let options = Options {
            address,
            tls: settings.tls.as_ref().map(crate::mqtt::client::tls::TlsSettings::files).unwrap_or_default(),
            version: settings.version,
            credentials: credentials(settings.username.as_deref(), settings.password_file.as_deref())?,
            outbox: settings.outbox.clone(),
            reconnect: settings.reconnect,
            client_id: settings.client_id.clone().unwrap_or_else(|| format!("{}-{}", context.node(), context.name())),
            session_expiry: GatewaySettings::default().session_expiry,
            is_aggregating: settings.mode == Mode::Aggregating,
            has_strangers: settings.qos_minus_one,
            folder: settings.folder.clone(),
        };
        let events = Events::new(context.counter_for("messages_dropped", "gateway_busy"));
        let external = External::new(options, Shared::of(context), context.seed(), events, history, gateway)?;
        Ok(Self::External(Box::new(external)))
    }

    /// Returns the records that follow from what has arrived.
    pub(super) fn records(&mut self) -> Vec<Bytes> {
        match self {
            Self::External(external) => external.records(),
            Self::Embedded(_) => Vec::new(),
        }
    }

    /// Returns the records of the whole state.
    pub(super) fn snapshot(&self) -> Vec<Bytes> {
        match self {
            Self::External(external) => external.snapshot(),
            Self::Embedded(_) => Vec::new(),
        }
    }

    /// Lets the connections forget the messages of QoS 2 that the broker has, after the gateway has stored that.
    fn settle(&mut self) {
        if let Self::External(external) = self {
            external.settle();
        }
    }

    /// Waits for the next event. Cancelling the wait loses nothing.
    async fn next(&mut self) -> Arrived {
        match self {
            Self::External(external) => match external.next().await {
                Some((number, event)) => Arrived::Connection(number, event),
                None => std::future::pending().await,
            },
            Self::Embedded(embedded) => embedded.next().await.map_or(Arrived::Changed, Arrived::Message),
        }
    }

    /// Returns the next event, or `None` if none is waiting.
    fn try_next(&mut self) -> Option<Arrived> {
        match self {
            Self::External(external) => external.try_next().map(|(number, event)| Arrived::Connection(number, event)),
            Self::Embedded(embedded) => embedded.try_next().map(Arrived::Message),
        }
    }

    async fn take(&mut self, arrived: Arrived, gateway: &mut Gateway) {
        let now = clock::mono();
        match (self, arrived) {
            (Self::External(external), Arrived::Connection(number, event)) => {
                external.take(now, (number, event), gateway);
            }
            (Self::Embedded(embedded), Arrived::Message(packet)) if embedded.admits(&packet) => {
                let message = message(&packet.topic_name, packet.payload, packet.qos, packet.retain);
                gateway.route(now, &message, embedded.next_delivery());
            }
            (Self::Embedded(embedded), Arrived::Changed) => {
                embedded.subscribe_again().await;
                gateway.set_available(embedded.is_connected());
            }
            _ => {}
        }
    }

    /// Logs that the broker is still not there. A connection to an external broker logs that itself.
    fn report_absence(&self, component: &str) {
        if let Self::Embedded(embedded) = self {
            embedded.report_absence(component);
        }
    }

    /// Returns `true` if messages can be passed on.
    fn is_available(&self) -> bool {
        match self {
            Self::External(external) => external.is_available(),
            Self::Embedded(embedded) => embedded.is_connected(),
        }
    }

    /// Handles an event of the gateway.
    async fn handle(&mut self, event: GatewayEvent, gateway: &mut Gateway) {
        let now = clock::mono();
        let embedded = match self {
            Self::External(external) => return external.handle(now, event, gateway),
            Self::Embedded(embedded) => embedded,
        };
        match event {
            GatewayEvent::Publish { message, token, .. } => {
                let packet = PublishPacket::new(&*message.topic, message.payload, qos(message.qos));
                let is_published = embedded.publish(&packet.with_retain(message.retain)).await;
                if let Some(token) = token {
                    gateway.published(token, if is_published { Ok(()) } else { Err(ReturnCode::Congestion) });
                }
            }
            GatewayEvent::Subscribe { filter, qos: wanted, token, .. } => {
                let retained = embedded.subscribe(&filter, qos(wanted)).await;
                let result = if retained.is_some() { Ok(wanted) } else { Err(ReturnCode::Congestion) };
                gateway.subscribed(now, token, result);
                for packet in retained.into_iter().flatten() {
                    let quality = if (packet.qos as u8) < wanted.level() { packet.qos } else { qos(wanted) };
                    let message = message(&packet.topic_name, packet.payload, quality, true);
                    gateway.route(now, &message, embedded.next_delivery());
                }
            }
            GatewayEvent::Unsubscribe { filter, token, .. } => {
                embedded.unsubscribe(&filter).await;
                if let Some(token) = token {
                    gateway.unsubscribed(token);
                }
            }
            // The embedded broker needs no connections, and waits for no acknowledgement.
            GatewayEvent::Connect { .. }
            | GatewayEvent::Disconnect { .. }
            | GatewayEvent::Delivered { .. }
            | GatewayEvent::Record { .. }
            | GatewayEvent::Status { .. } => {}
        }
    }
}

impl Counters {
    fn open<C: Component>(context: &Context<C>) -> Self {
        let gateway = MachineCounters::new(context, |totals| {
            totals.one("received", |gateway: &Gateway| gateway.counters().received);
            totals.one("sent", |gateway| gateway.counters().sent);
            totals.one("published", |gateway| gateway.counters().published);
            totals.one("deliveries", |gateway| gateway.counters().deliveries);
            totals.one("delivered", |gateway| gateway.counters().delivered);
            totals.one("buffered", |gateway| gateway.counters().buffered);
            totals.one("duplicates", |gateway| gateway.counters().duplicates);
            totals.one("retransmissions", |gateway| gateway.counters().retransmissions);
            totals.one("sessions_created", |gateway| gateway.counters().sessions);
            totals.one("clients_lost", |gateway| gateway.counters().lost);
            totals.one("sessions_evicted", |gateway| gateway.counters().evicted);
            totals.one("answers_suppressed", |gateway| gateway.counters().answers_suppressed);
            totals.one("refused_by_broker", |gateway| gateway.counters().refused_by_broker);
            totals.each("refused", &Refusal::ALL, Refusal::label, |gateway, reason| gateway.counters().refused(reason));
            totals.each("messages_dropped", &DropReason::ALL, DropReason::label, |gateway, reason| {
                gateway.counters().dropped(reason)
            });
        });
        Self { gateway, sessions: context.gauge("sessions"), buffered_octets: context.gauge("buffered_octets") }
    }
}
