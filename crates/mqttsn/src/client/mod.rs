//! A client of MQTT-SN.
//!
//! Requests wait in one queue, and one of them is being processed at a time: a client may have one message with QoS 1 or 2
//! outstanding (6.6), one REGISTER (6.5), and one SUBSCRIBE or UNSUBSCRIBE (6.9).
//!
//! A client that has lost its gateway connects again, to another known gateway first (6.13), and then subscribes again.
//! The request that was being processed is repeated. Topic ids are registered again on their first use.

mod connection;
mod discovery;
mod event;
mod inbound;
mod request;
mod settings;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
pub use discovery::KnownGateway;
pub use event::{
    ClientCounters, ClientEvent, ClientRefusal, ClientState, Failure, Outcome, Publication, RequestError, RequestId,
    Topic,
};
pub use settings::ClientSettings;
use viaduct_units::{Mono, Rng, retransmission::RoundTrip};

use self::{
    connection::State,
    discovery::Discovery,
    request::{Current, Queue},
};
use crate::{
    Message, Peer, SettingsError, Transmit,
    codec::{Packet, Qos},
    peer::DatagramWriter,
    retry::Retry,
};

/// A client.
#[derive(Debug)]
pub struct Client {
    settings: ClientSettings,
    random: Rng,
    writer: DatagramWriter,
    transmits: VecDeque<Transmit>,
    events: VecDeque<ClientEvent>,
    counters: ClientCounters,
    state: State,
    gateway: Option<SocketAddr>,
    /// `true` until the first connection with the session of the settings.
    fresh: bool,
    round_trip: RoundTrip,
    connected_at: Mono,
    last_sent: Mono,
    last_received: Mono,
    /// PINGREQ of an active client.
    ping: Option<Retry>,
    /// Sleep duration that the client asks for once its requests are finished.
    sleep_after: Option<Duration>,
    queue: Queue,
    current: Option<Current>,
    /// Time until which no request is sent, because of congestion.
    paused_until: Option<Mono>,
    topics: TopicIds,
    subscriptions: BTreeMap<Topic, Qos>,
    /// Message ids with QoS 2 whose PUBREL has not arrived.
    unreleased: BTreeSet<u16>,
    next_message: u16,
    discovery: Discovery,
}

/// Topic ids of the connection, in both directions.
#[derive(Debug, Default)]
struct TopicIds {
    ids: BTreeMap<Arc<str>, u16>,
    names: BTreeMap<u16, Arc<str>>,
}

impl TopicIds {
    /// Adds an id. Returns `false` if there are too many.
    fn insert(&mut self, id: u16, name: &str, max: usize) -> bool {
        if self.names.len() >= max && !self.names.contains_key(&id) {
            return false;
        }
        self.remove(id);
        let name = Arc::<str>::from(name);
        if let Some(before) = self.ids.insert(Arc::clone(&name), id) {
            self.names.remove(&before);
        }
        self.names.insert(id, name);
        true
    }

    fn remove(&mut self, id: u16) {
        if let Some(name) = self.names.remove(&id) {
            self.ids.remove(&name);
        }
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Client {
    /// Returns a client that is not connected.
    ///
    /// # Errors
    /// The first invalid setting.
    pub fn new(settings: ClientSettings, seed: u64) -> Result<Self, SettingsError> {
        settings.check()?;
        let mut random = Rng::new(seed);
        Ok(Self {
            writer: DatagramWriter::default(),
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            counters: ClientCounters::default(),
            state: State::Disconnected,
            gateway: None,
            fresh: true,
            round_trip: RoundTrip::default(),
            connected_at: Mono::default(),
            last_sent: Mono::default(),
            last_received: Mono::default(),
            ping: None,
            sleep_after: None,
            queue: Queue::default(),
            current: None,
            paused_until: None,
            topics: TopicIds::default(),
            subscriptions: BTreeMap::new(),
            unreleased: BTreeSet::new(),
            next_message: (random.next_u64() & 0xFFFF) as u16,
            discovery: Discovery::default(),
            settings,
            random,
        })
    }

    /// Returns the settings, with the last will that the gateway has accepted.
    #[must_use]
    pub const fn settings(&self) -> &ClientSettings {
        &self.settings
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> &ClientCounters {
        &self.counters
    }

    /// Returns the state.
    #[must_use]
    pub const fn state(&self) -> ClientState {
        self.state.public()
    }

    /// Returns the address of the gateway that the client uses.
    #[must_use]
    pub const fn gateway(&self) -> Option<SocketAddr> {
        self.gateway
    }

    /// Returns the smoothed round trip to the gateway, if it was measured.
    #[must_use]
    pub fn round_trip(&self) -> Option<Duration> {
        self.round_trip.smoothed()
    }

    /// Returns the number of requests that are not finished.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.queue.len() + usize::from(self.current.is_some())
    }

    /// Returns the next datagram to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        self.events.pop_front()
    }

    /// Returns the time at which [`Self::handle_timeout`] must be called, or `None`.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Mono> {
        let current = self.current.as_ref().filter(|_| self.state.sends_requests()).map(|current| current.retry.due);
        [self.connection_due(), current, self.paused_until, self.discovery.due()].into_iter().flatten().min()
    }

    /// Does the work that is due.
    pub fn handle_timeout(&mut self, now: Mono) {
        self.discover(now);
        if self.paused_until.is_some_and(|until| until <= now) {
            self.paused_until = None;
        }
        self.supervise_connection(now);
        if self.state.sends_requests() {
            self.supervise_request(now);
        }
        self.process_queue(now);
    }

    /// Processes a datagram.
    pub fn handle_datagram(&mut self, now: Mono, from: SocketAddr, datagram: &Bytes) {
        self.counters.received += 1;
        let packet = match Packet::decode(datagram) {
            Ok(packet) => packet,
            Err(error) => return self.counters.refuse_malformed(error),
        };
        match packet {
            Packet::Advertise { gateway, duration } => self.handle_advertise(now, from, gateway, duration),
            Packet::GwInfo { gateway, address } => self.handle_gwinfo(now, from, gateway, address),
            Packet::SearchGw { radius } => self.handle_search(now, radius),
            _ if self.gateway != Some(from) => return self.refuse(ClientRefusal::Sender),
            _ => self.handle_gateway_packet(now, &packet, datagram),
        }
        self.process_queue(now);
    }

    fn handle_gateway_packet(&mut self, now: Mono, packet: &Packet<'_>, datagram: &Bytes) {
        if matches!(self.state, State::Disconnected) {
            return self.refuse(ClientRefusal::Unexpected);
        }
        self.last_received = now;
        match packet {
            Packet::ConnAck { code } => self.handle_connack(now, *code),
            Packet::WillTopicReq => self.handle_will_topic_request(now),
            Packet::WillMsgReq => self.handle_will_message_request(now),
            Packet::PingResp => self.handle_pingresp(now),
            Packet::PingReq { .. } => self.send(now, &Packet::PingResp),
            Packet::Disconnect { .. } => self.handle_disconnect(now),
            Packet::Register { topic, message, name } => self.handle_register(now, *topic, *message, name),
            Packet::Publish(publish) => self.handle_publish(now, publish, datagram),
            Packet::PubRel { message } => self.handle_pubrel(now, *message),
            Packet::RegAck { topic, message, code } => self.handle_regack(now, *topic, *message, *code),
            Packet::PubAck { topic, message, code } => self.handle_puback(now, *topic, *message, *code),
            Packet::PubRec { message } => self.handle_pubrec(now, *message),
            Packet::PubComp { message } => self.handle_pubcomp(now, *message),
            Packet::SubAck { qos, topic, message, code } => self.handle_suback(now, *qos, *topic, *message, *code),
            Packet::UnsubAck { message } => self.handle_unsuback(now, *message),
            Packet::WillTopicResp { code } => self.handle_will_response(now, true, *code),
            Packet::WillMsgResp { code } => self.handle_will_response(now, false, *code),
            _ => self.refuse(ClientRefusal::Direction),
        }
    }

    fn refuse(&mut self, reason: ClientRefusal) {
        self.counters.refuse(reason);
    }

    /// Sends a message to the gateway.
    fn send(&mut self, now: Mono, packet: &Packet<'_>) {
        let Some(gateway) = self.gateway else { return };
        self.last_sent = now;
        self.send_to(gateway, packet);
    }

    fn send_to(&mut self, address: SocketAddr, packet: &Packet<'_>) {
        if let Some(transmit) = self.writer.write_to(&Peer::from(address), packet) {
            self.counters.sent += 1;
            self.transmits.push_back(transmit);
        }
    }

    fn start_retry(&mut self, now: Mono) -> Retry {
        Retry::start(now, &self.round_trip, &self.settings.retransmission, &mut self.random)
    }

    /// Returns the next message id, 1 to 65,535.
    fn take_message_id(&mut self) -> u16 {
        self.next_message = self.next_message.checked_add(1).unwrap_or(1);
        self.next_message
    }

    fn deliver(&mut self, message: Message) {
        self.counters.messages += 1;
        self.events.push_back(ClientEvent::Message(message));
    }
}
