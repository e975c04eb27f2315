//! The gateway between clients of MQTT-SN and a broker.
//!
//! The broker side is abstract: an external broker, an embedded one, or any other exchange of messages by topic
//! name. The gateway's requests are [`GatewayEvent`]s, which the owner answers:
//!
//! | event | answer |
//! |---|---|
//! | [`GatewayEvent::Connect`] | [`Gateway::connected`] |
//! | [`GatewayEvent::Publish`] | [`Gateway::published`] |
//! | [`GatewayEvent::Subscribe`] | [`Gateway::subscribed`] |
//! | [`GatewayEvent::Unsubscribe`] | [`Gateway::unsubscribed`] |
//! | [`GatewayEvent::Record`] | [`Gateway::persisted`] |
//! | message from the broker: [`Gateway::deliver`], [`Gateway::route`] | [`GatewayEvent::Delivered`] |
//!
//! In *transparent* mode, each client has its own connection to the broker; messages for it arrive by
//! [`Gateway::deliver`]. In *aggregating* mode, all clients share one connection. The gateway then merges their
//! subscriptions, accepts clients itself, and distributes the messages of [`Gateway::route`].
//!
//! # Time of an acknowledgement
//!
//! | | [`Acknowledge::AfterBroker`] | [`Acknowledge::AfterStorage`] |
//! |---|---|---|
//! | PUBACK to the client | after `published` | after `persisted` |
//! | PUBREC to the client | after `published`, then `persisted` | after `persisted` |
//! | `Delivered` to the broker side | after the client's PUBACK or PUBREC | after `persisted` |
//!
//! In aggregating mode, messages for clients that are not reachable are always stored: otherwise one sleeping client would
//! hold up the messages of all.

mod admission;
mod aggregate;
mod connect;
mod counters;
mod discovery;
mod downward;
mod event;
mod filters;
mod output;
mod record;
mod restore;
mod session;
mod sessions;
mod settings;
mod sleep;
mod subscribe;
mod topics;
mod upward;
mod will;

use std::{net::SocketAddr, sync::Arc};

use bytes::Bytes;
pub use counters::{DropReason, GatewayCounters, Refusal};
pub use event::{ClientHandle, ClientStatus, DeliveryOutcome, GatewayEvent, Token};
pub use record::RecordError;
pub use restore::Restored;
pub use settings::{Acknowledge, BufferSettings, DropPolicy, GatewaySettings, Mode, PredefinedTopics};
use viaduct_units::{Mono, Rng};

use self::{
    admission::{Bucket, Strangers},
    aggregate::Shared,
    discovery::Discovery,
    output::Output,
    session::Session,
    sessions::{Seeded, Sessions},
    topics::Predefined,
};
use crate::{
    NodeId, Peer, SettingsError, Transmit,
    codec::{Packet, Publish},
};

/// A gateway.
#[derive(Debug)]
pub struct Gateway {
    settings: GatewaySettings,
    predefined: Predefined,
    hasher: Seeded,
    random: Rng,
    sessions: Sessions,
    out: Output,
    strangers: Strangers,
    /// Rate of messages with QoS -1.
    without_connection: Bucket,
    /// Aggregating mode: `true` if the shared connection exists.
    available: bool,
    /// Octets in the queues of all sessions.
    buffered_octets: usize,
    shared: Shared,
    discovery: Discovery,
}

impl Gateway {
    /// Returns a gateway without sessions.
    ///
    /// # Errors
    /// The first invalid setting.
    pub fn new(settings: GatewaySettings, seed: u64) -> Result<Self, SettingsError> {
        settings.check()?;
        let mut random = Rng::new(seed);
        let hasher = Seeded(random.next_u64());
        Ok(Self {
            predefined: Predefined::new(&settings),
            hasher,
            sessions: Sessions::new(hasher),
            out: Output::default(),
            strangers: Strangers::new(hasher),
            without_connection: Bucket::default(),
            available: true,
            buffered_octets: 0,
            shared: Shared::new(hasher),
            discovery: Discovery::default(),
            random,
            settings,
        })
    }

    /// Returns the settings.
    #[must_use]
    pub const fn settings(&self) -> &GatewaySettings {
        &self.settings
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> &GatewayCounters {
        &self.out.counters
    }

    /// Returns the number of sessions.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Returns the octets of topic names and payloads in the buffers of all clients.
    #[must_use]
    pub const fn buffered_octets(&self) -> usize {
        self.buffered_octets
    }

    /// Returns the clients in no particular order, for inspection.
    pub fn clients(&self) -> impl Iterator<Item = ClientInfo<'_>> {
        self.sessions.iter().map(ClientInfo::new)
    }

    /// Returns the client id of a client, or `None` if its session has ended.
    #[must_use]
    pub fn client_id(&self, client: ClientHandle) -> Option<&Arc<str>> {
        let session = self.sessions.get(client.slot).filter(|session| session.handle == client);
        session.map(|session| &session.client_id)
    }

    /// Returns `true` if [`Self::poll_event`] has nothing.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.out.events.is_empty()
    }

    /// Returns the next datagram to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.out.transmits.pop_front()
    }

    /// Returns the next request for the broker side.
    pub fn poll_event(&mut self) -> Option<GatewayEvent> {
        self.out.events.pop_front()
    }

    /// Returns the time at which [`Self::handle_timeout`] must be called, or `None`.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Mono> {
        [self.sessions.next_deadline(), self.discovery.due(&self.settings)].into_iter().flatten().min()
    }

    /// Does the work that is due.
    pub fn handle_timeout(&mut self, now: Mono) {
        self.discover(now);
        while let Some(slot) = self.sessions.take_due(now) {
            self.examine(now, slot);
        }
    }

    /// Processes a datagram from a client or forwarder.
    pub fn handle_datagram(&mut self, now: Mono, from: SocketAddr, datagram: &Bytes) {
        self.out.counters.received += 1;
        let (peer, packet) = match Packet::decode(datagram) {
            Err(error) => return self.out.counters.refuse_malformed(error),
            Ok(Packet::Encapsulated(within)) => {
                let Some(node) = NodeId::new(within.node) else { return self.refuse(Refusal::NodeId) };
                match Packet::decode(within.message) {
                    Err(error) => return self.out.counters.refuse_malformed(error),
                    Ok(Packet::Encapsulated(_)) => return self.refuse(Refusal::Nested),
                    Ok(packet) => (Peer { address: from, node: Some(node) }, packet),
                }
            }
            Ok(packet) => (Peer::from(from), packet),
        };
        self.handle_packet(now, &peer, &packet, datagram);
    }

    /// Processes a message that needs no session.
    fn handle_packet(&mut self, now: Mono, peer: &Peer, packet: &Packet<'_>, datagram: &Bytes) {
        match packet {
            Packet::Connect(connect) => self.handle_connect(now, peer, connect),
            Packet::SearchGw { radius } => self.handle_search(now, peer, *radius),
            Packet::Publish(publish @ Publish { qos: None, .. }) => {
                self.handle_without_connection(now, peer, publish, datagram);
            }
            Packet::PingReq { client } if !client.is_empty() => self.handle_wake(now, peer, client),
            Packet::Advertise { .. }
            | Packet::GwInfo { .. }
            | Packet::ConnAck { .. }
            | Packet::WillTopicReq
            | Packet::WillMsgReq
            | Packet::SubAck { .. }
            | Packet::UnsubAck { .. }
            | Packet::PingResp
            | Packet::WillTopicResp { .. }
            | Packet::WillMsgResp { .. }
            | Packet::Encapsulated(_) => self.refuse(Refusal::Direction),
            _ => match self.sessions.slot_of_peer(peer) {
                Some(slot) => self.handle_session_packet(now, slot, packet, datagram),
                None => self.answer_stranger(now, peer),
            },
        }
    }

    /// Processes a message of a client that has a session.
    fn handle_session_packet(&mut self, now: Mono, slot: u32, packet: &Packet<'_>, datagram: &Bytes) {
        let Some(session) = self.sessions.get_mut(slot) else { return };
        session.last_seen = now;
        session.octets.received = session.octets.received.saturating_add(datagram.len());
        match packet {
            Packet::WillTopic(topic) => return self.handle_will_topic(now, slot, topic.as_ref()),
            Packet::WillMsg { message } => return self.handle_will_message(now, slot, datagram.slice_ref(message)),
            Packet::Disconnect { duration } => return self.handle_disconnect(now, slot, *duration),
            _ if !session.state.is_connected() => return self.refuse(Refusal::State),
            _ => session.confirm(),
        }
        match packet {
            Packet::Publish(publish) => self.handle_publish(slot, publish, datagram),
            Packet::PubRel { message } => self.handle_release(slot, *message),
            Packet::Register { message, name, .. } => self.handle_register(slot, *message, name),
            Packet::Subscribe { dup, qos, message, filter } => {
                self.handle_subscribe(now, slot, *dup, *qos, *message, filter);
            }
            Packet::Unsubscribe { message, filter } => self.handle_unsubscribe(slot, *message, filter),
            Packet::RegAck { topic, message, code } => self.handle_regack(now, slot, *topic, *message, *code),
            Packet::PubAck { topic, message, code } => self.handle_puback(now, slot, *topic, *message, *code),
            Packet::PubRec { message } => self.handle_pubrec(now, slot, *message),
            Packet::PubComp { message } => self.handle_pubcomp(now, slot, *message),
            Packet::PingReq { .. } => self.handle_ping(now, slot),
            Packet::WillTopicUpd(topic) => self.handle_will_topic_update(slot, topic.as_ref()),
            Packet::WillMsgUpd { message } => self.handle_will_message_update(slot, datagram.slice_ref(message)),
            _ => self.refuse(Refusal::Direction),
        }
        self.reschedule(slot);
    }

    /// Answers a node without a session, whose gateway may have lost it (6.12).
    fn answer_stranger(&mut self, now: Mono, peer: &Peer) {
        self.refuse(Refusal::NoSession);
        self.send_to_stranger(now, peer, &Packet::Disconnect { duration: None });
    }

    /// Sends a message to a node whose address may be forged, within a rate limit.
    fn send_to_stranger(&mut self, now: Mono, peer: &Peer, packet: &Packet<'_>) {
        if self.strangers.admit(now, peer.address.ip()) {
            self.out.send(peer, packet);
        } else {
            self.out.counters.answers_suppressed += 1;
        }
    }

    fn refuse(&mut self, reason: Refusal) {
        self.out.counters.refuse(reason);
    }

    /// Makes sure that a session is examined at its deadline.
    fn reschedule(&mut self, slot: u32) {
        if let Some(session) = self.sessions.get(slot) {
            let due = session.due(&self.settings);
            self.sessions.schedule(slot, due);
        }
    }
}

/// A client, for inspection.
#[derive(Clone, Copy, Debug)]
pub struct ClientInfo<'a> {
    /// Handle.
    pub client: ClientHandle,
    /// Client id.
    pub client_id: &'a str,
    /// Last address.
    pub peer: Peer,
    /// State.
    pub status: ClientStatus,
    /// Messages that are buffered or being sent.
    pub queued: usize,
    /// Subscriptions.
    pub subscriptions: usize,
}

impl<'a> ClientInfo<'a> {
    fn new(session: &'a Session) -> Self {
        Self {
            client: session.handle,
            client_id: &session.client_id,
            peer: session.peer,
            status: session.state.status(),
            queued: session.queue.len(),
            subscriptions: session.subscriptions.len(),
        }
    }
}
