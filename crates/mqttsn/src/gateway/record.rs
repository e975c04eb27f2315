//! Records of the gateway's state, for a storage that survives a restart.
//!
//! ```text
//!  0         1      2            3
//! +---------+------+------------+-----------+----------------+
//! | version | kind | length (1) | client id | content        |
//! +---------+------+------------+-----------+----------------+
//! ```
//!
//! | kind | content |
//! |---|---|
//! | 1 session | flags, state, sleep duration, keep-alive time, address, node id, will, subscriptions |
//! | 2 session removed | - |
//! | 3 topic | topic id, name |
//! | 4 topics cleared | - |
//! | 5 message from the client | number, message id, topic id, quality of service, and the message if it is not published |
//! | 6 message from the client finished | number |
//! | 7 message to the client | number, message id, 1 if PUBREC was received, message |
//! | 8 message to the client finished | number |
//!
//! Numbers are big endian. Texts and payloads are preceded by their length in two octets. A record replaces an earlier one
//! with the same kind, client and number.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
};

use bytes::Bytes;

use super::{
    Gateway, GatewayEvent,
    session::{Session, State},
};
use crate::{
    Message, NodeId, Peer,
    codec::{Qos, ShortTopic, TopicId},
    limits::RECORD_OCTETS_MAX,
};

/// Version of the format.
const VERSION: u8 = 1;

/// Flags of a session.
const CLEAN: u8 = 0x01;
const HOLDS_WILL: u8 = 0x02;

/// Reason for which a record was not restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The record ends before a field, or octets follow the last one.
    #[error("the record has a wrong length")]
    Length,
    /// The record has another version.
    #[error("the record has version {0}, expected 1")]
    Version(u8),
    /// A field has an undefined value.
    #[error("a field of the record has an undefined value")]
    Value,
    /// The record belongs to a session that is unknown.
    #[error("the record belongs to a session without a record")]
    NoSession,
    /// The record exceeds a limit of the gateway.
    #[error("the record exceeds a limit of the gateway")]
    Limit,
}

/// A decoded record.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Record {
    pub(super) client_id: Arc<str>,
    pub(super) content: Content,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Content {
    Session(Box<SessionRecord>),
    Removed,
    Topic { id: u16, name: Arc<str> },
    TopicsCleared,
    Inbound { number: u32, message_id: u16, topic: TopicId, qos: Qos, message: Option<Message> },
    InboundEnd { number: u32 },
    Outgoing { number: u32, message_id: u16, received: bool, message: Message },
    OutgoingEnd { number: u32 },
}

/// State of a session without its topics and messages.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SessionRecord {
    pub(super) clean: bool,
    pub(super) holds_will: bool,
    pub(super) state: StoredState,
    /// Sleep duration in seconds.
    pub(super) sleep: u16,
    /// Keep-alive time in seconds.
    pub(super) keep_alive: u16,
    pub(super) peer: Peer,
    pub(super) will: Option<Message>,
    pub(super) subscriptions: Vec<(Arc<str>, Qos)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoredState {
    Active = 0,
    Asleep = 1,
    Disconnected = 2,
}

impl SessionRecord {
    fn of(session: &Session) -> Self {
        let (state, sleep) = match session.state {
            State::Active => (StoredState::Active, 0),
            State::Asleep(duration) | State::Awake(duration) => {
                (StoredState::Asleep, u16::try_from(duration.as_secs()).unwrap_or(u16::MAX))
            }
            _ => (StoredState::Disconnected, 0),
        };
        let subscriptions = session.subscriptions.iter();
        Self {
            clean: session.clean,
            holds_will: session.holds_will,
            state,
            sleep,
            keep_alive: u16::try_from(session.keep_alive.as_secs()).unwrap_or(u16::MAX),
            peer: session.peer,
            will: session.will.clone(),
            subscriptions: subscriptions.map(|own| (Arc::clone(&own.filter), own.qos)).collect(),
        }
    }
}

impl Record {
    /// Returns the octets of the record.
    pub(super) fn encode(&self) -> Bytes {
        let mut writer = Writer(Vec::with_capacity(64));
        let kind = match &self.content {
            Content::Session(_) => 1,
            Content::Removed => 2,
            Content::Topic { .. } => 3,
            Content::TopicsCleared => 4,
            Content::Inbound { .. } => 5,
            Content::InboundEnd { .. } => 6,
            Content::Outgoing { .. } => 7,
            Content::OutgoingEnd { .. } => 8,
        };
        writer.0.extend([VERSION, kind, self.client_id.len() as u8]);
        writer.0.extend_from_slice(self.client_id.as_bytes());
        match &self.content {
            Content::Session(session) => writer.session(session),
            Content::Removed | Content::TopicsCleared => (),
            Content::Topic { id, name } => {
                writer.number(*id);
                writer.block(name.as_bytes());
            }
            Content::Inbound { number, message_id, topic, qos, message } => {
                writer.long(*number);
                writer.number(*message_id);
                writer.topic(*topic);
                writer.0.push(qos.level());
                writer.optional(message.as_ref());
            }
            Content::InboundEnd { number } | Content::OutgoingEnd { number } => writer.long(*number),
            Content::Outgoing { number, message_id, received, message } => {
                writer.long(*number);
                writer.number(*message_id);
                writer.0.push((*received).into());
                writer.message(message);
            }
        }
        writer.0.into()
    }

    /// Decodes a record.
    pub(super) fn decode(octets: &[u8]) -> Result<Self, RecordError> {
        if octets.len() > RECORD_OCTETS_MAX {
            return Err(RecordError::Limit);
        }
        let mut reader = Reader(octets);
        let version = reader.octet()?;
        if version != VERSION {
            return Err(RecordError::Version(version));
        }
        let kind = reader.octet()?;
        let length = usize::from(reader.octet()?);
        let client_id = Arc::from(text(reader.take(length)?)?);
        let content = match kind {
            1 => Content::Session(Box::new(reader.session()?)),
            2 => Content::Removed,
            3 => Content::Topic { id: reader.number()?, name: Arc::from(reader.text()?) },
            4 => Content::TopicsCleared,
            5 => Content::Inbound {
                number: reader.long()?,
                message_id: reader.number()?,
                topic: reader.topic()?,
                qos: reader.qos()?,
                message: reader.optional()?,
            },
            6 => Content::InboundEnd { number: reader.long()? },
            7 => Content::Outgoing {
                number: reader.long()?,
                message_id: reader.number()?,
                received: reader.flag()?,
                message: reader.message()?,
            },
            8 => Content::OutgoingEnd { number: reader.long()? },
            _ => return Err(RecordError::Value),
        };
        if reader.0.is_empty() { Ok(Self { client_id, content }) } else { Err(RecordError::Length) }
    }
}

impl Gateway {
    /// Returns the records of the whole state. A storage replaces its older records with them.
    #[must_use]
    pub fn snapshot(&self) -> Vec<Bytes> {
        let mut records = Vec::new();
        for session in self.sessions.iter() {
            let mut add =
                |content| records.push(Record { client_id: Arc::clone(&session.client_id), content }.encode());
            add(Content::Session(Box::new(SessionRecord::of(session))));
            for (id, name) in session.topics.iter() {
                add(Content::Topic { id, name: Arc::clone(name) });
            }
            for inbound in session.inbound.iter().filter(|inbound| inbound.recorded) {
                add(inbound.content());
            }
            for outgoing in session.queue.iter().filter(|outgoing| outgoing.recorded) {
                add(outgoing.content());
            }
        }
        records
    }

    /// Emits a record of a session.
    fn record(&mut self, slot: u32, content: Content, number: Option<u32>) {
        let Some(session) = self.sessions.get(slot) else { return };
        let record = Record { client_id: Arc::clone(&session.client_id), content }.encode();
        let token = number.map(|number| session.token(number));
        self.out.event(GatewayEvent::Record { record, token });
    }

    pub(super) fn record_session(&mut self, slot: u32) {
        if let Some(session) = self.sessions.get(slot).filter(|_| self.settings.storage) {
            let content = Content::Session(Box::new(SessionRecord::of(session)));
            self.record(slot, content, None);
        }
    }

    pub(super) fn record_removal(&mut self, client_id: &Arc<str>) {
        if self.settings.storage {
            let record = Record { client_id: Arc::clone(client_id), content: Content::Removed }.encode();
            self.out.event(GatewayEvent::Record { record, token: None });
        }
    }

    pub(super) fn record_topic(&mut self, slot: u32, id: u16) {
        let name = self.sessions.get(slot).and_then(|session| session.topics.name(id)).cloned();
        if let Some(name) = name.filter(|_| self.settings.storage) {
            self.record(slot, Content::Topic { id, name }, None);
        }
    }

    pub(super) fn record_topics_cleared(&mut self, slot: u32) {
        if self.settings.storage {
            self.record(slot, Content::TopicsCleared, None);
        }
    }

    /// Stores a message of the client. `acknowledge`: [`Gateway::persisted`] follows.
    pub(super) fn record_inbound(&mut self, slot: u32, number: u32, acknowledge: bool) {
        let Some(session) = self.sessions.get_mut(slot) else { return };
        let Some(inbound) = session.inbound.iter_mut().find(|inbound| inbound.number == number) else { return };
        inbound.recorded = true;
        let (content, token) = (inbound.content(), session.token(number));
        if self.settings.storage {
            self.record(slot, content, acknowledge.then_some(number));
        } else if acknowledge {
            self.persisted(token);
        }
    }

    pub(super) fn record_inbound_end(&mut self, slot: u32, number: u32) {
        if self.settings.storage {
            self.record(slot, Content::InboundEnd { number }, None);
        }
    }

    /// Stores a message to the client. `settle`: [`Gateway::persisted`] follows if the message is not settled.
    pub(super) fn record_outgoing(&mut self, slot: u32, number: u32, settle: bool) {
        let Some(session) = self.sessions.get_mut(slot) else { return };
        let Some(outgoing) = session.queue.iter_mut().find(|outgoing| outgoing.number == number) else { return };
        outgoing.recorded = true;
        let (content, unsettled) = (outgoing.content(), settle && outgoing.delivery.is_some());
        let token = session.token(number);
        if self.settings.storage {
            self.record(slot, content, unsettled.then_some(number));
        } else if unsettled {
            self.persisted(token);
        }
    }

    pub(super) fn record_outgoing_end(&mut self, slot: u32, number: u32) {
        if self.settings.storage {
            self.record(slot, Content::OutgoingEnd { number }, None);
        }
    }
}

impl super::session::Inbound {
    fn content(&self) -> Content {
        let Self { number, message_id, topic, qos, .. } = *self;
        Content::Inbound { number, message_id, topic, qos, message: self.message.clone() }
    }
}

impl super::session::Outgoing {
    fn content(&self) -> Content {
        let Self { number, message_id, received, .. } = *self;
        let mut message = self.message.clone();
        if received {
            message.payload.clear();
        }
        Content::Outgoing { number, message_id, received, message }
    }
}

/// Writer of a record.
struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, number: u16) {
        self.0.extend(number.to_be_bytes());
    }

    fn long(&mut self, number: u32) {
        self.0.extend(number.to_be_bytes());
    }

    /// Writes octets with their length. All blocks come from a datagram or are limited more strictly.
    fn block(&mut self, octets: &[u8]) {
        let octets = octets.get(..usize::from(u16::MAX)).unwrap_or(octets);
        self.number(octets.len() as u16);
        self.0.extend_from_slice(octets);
    }

    fn topic(&mut self, topic: TopicId) {
        self.0.push(match topic {
            TopicId::Normal(_) => 0,
            TopicId::Predefined(_) => 1,
            TopicId::Short(_) => 2,
        });
        self.number(topic.field());
    }

    fn message(&mut self, message: &Message) {
        self.0.extend([message.qos.level(), message.retain.into()]);
        self.block(message.topic.as_bytes());
        self.block(&message.payload);
    }

    fn optional(&mut self, message: Option<&Message>) {
        self.0.push(message.is_some().into());
        if let Some(message) = message {
            self.message(message);
        }
    }

    fn peer(&mut self, peer: &Peer) {
        match peer.address.ip() {
            IpAddr::V4(ip) => self.block(&ip.octets()),
            IpAddr::V6(ip) => self.block(&ip.octets()),
        }
        self.number(peer.address.port());
        self.0.push(peer.node.is_some().into());
        if let Some(node) = &peer.node {
            self.block(node.octets());
        }
    }

    fn session(&mut self, session: &SessionRecord) {
        let flags = if session.clean { CLEAN } else { 0 } | if session.holds_will { HOLDS_WILL } else { 0 };
        self.0.extend([flags, session.state as u8]);
        self.number(session.sleep);
        self.number(session.keep_alive);
        self.peer(&session.peer);
        self.optional(session.will.as_ref());
        self.number(session.subscriptions.len() as u16);
        for (filter, qos) in &session.subscriptions {
            self.0.push(qos.level());
            self.block(filter.as_bytes());
        }
    }
}

/// Reader of a record.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], RecordError> {
        let (first, rest) = self.0.split_at_checked(length).ok_or(RecordError::Length)?;
        self.0 = rest;
        Ok(first)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], RecordError> {
        let (first, rest) = self.0.split_first_chunk().ok_or(RecordError::Length)?;
        self.0 = rest;
        Ok(*first)
    }

    fn octet(&mut self) -> Result<u8, RecordError> {
        self.array().map(|[octet]| octet)
    }

    fn number(&mut self) -> Result<u16, RecordError> {
        self.array().map(u16::from_be_bytes)
    }

    fn long(&mut self) -> Result<u32, RecordError> {
        self.array().map(u32::from_be_bytes)
    }

    fn flag(&mut self) -> Result<bool, RecordError> {
        match self.octet()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(RecordError::Value),
        }
    }

    fn qos(&mut self) -> Result<Qos, RecordError> {
        Qos::from_level(self.octet()?).ok_or(RecordError::Value)
    }

    fn block(&mut self) -> Result<&'a [u8], RecordError> {
        let length = self.number()?;
        self.take(length.into())
    }

    fn text(&mut self) -> Result<&'a str, RecordError> {
        text(self.block()?)
    }

    fn topic(&mut self) -> Result<TopicId, RecordError> {
        let (kind, field) = (self.octet()?, self.array()?);
        match kind {
            0 => Ok(TopicId::Normal(u16::from_be_bytes(field))),
            1 => Ok(TopicId::Predefined(u16::from_be_bytes(field))),
            2 => ShortTopic::new(field).map(TopicId::Short).ok_or(RecordError::Value),
            _ => Err(RecordError::Value),
        }
    }

    fn message(&mut self) -> Result<Message, RecordError> {
        let (qos, retain) = (self.qos()?, self.flag()?);
        let topic = Arc::from(self.text()?);
        Ok(Message { topic, payload: Bytes::copy_from_slice(self.block()?), qos, retain })
    }

    fn optional(&mut self) -> Result<Option<Message>, RecordError> {
        if self.flag()? { self.message().map(Some) } else { Ok(None) }
    }

    fn peer(&mut self) -> Result<Peer, RecordError> {
        let ip = self.block()?;
        let ip = match (<[u8; 4]>::try_from(ip), <[u8; 16]>::try_from(ip)) {
            (Ok(ip), _) => IpAddr::V4(Ipv4Addr::from(ip)),
            (_, Ok(ip)) => IpAddr::V6(Ipv6Addr::from(ip)),
            _ => return Err(RecordError::Value),
        };
        let address = SocketAddr::new(ip, self.number()?);
        let node = if self.flag()? { Some(NodeId::new(self.block()?).ok_or(RecordError::Value)?) } else { None };
        Ok(Peer { address, node })
    }

    fn session(&mut self) -> Result<SessionRecord, RecordError> {
        let flags = self.octet()?;
        let state = match self.octet()? {
            0 => StoredState::Active,
            1 => StoredState::Asleep,
            2 => StoredState::Disconnected,
            _ => return Err(RecordError::Value),
        };
        let mut session = SessionRecord {
            clean: flags & CLEAN != 0,
            holds_will: flags & HOLDS_WILL != 0,
            state,
            sleep: self.number()?,
            keep_alive: self.number()?,
            peer: self.peer()?,
            will: self.optional()?,
            subscriptions: Vec::new(),
        };
        for _ in 0..self.number()? {
            let qos = self.qos()?;
            session.subscriptions.push((Arc::from(self.text()?), qos));
        }
        Ok(session)
    }
}

fn text(octets: &[u8]) -> Result<&str, RecordError> {
    std::str::from_utf8(octets).map_err(|_| RecordError::Value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        codec::CLIENT_ID_OCTETS_MAX,
        limits::{DATAGRAM_OCTETS_MAX, TOPIC_OCTETS_MAX},
    };

    #[test]
    fn the_longest_record_of_a_session_can_be_restored() {
        let topic: Arc<str> = "x".repeat(TOPIC_OCTETS_MAX).into();
        let payload = vec![1; DATAGRAM_OCTETS_MAX].into();
        let session = SessionRecord {
            clean: false,
            holds_will: true,
            state: StoredState::Asleep,
            sleep: 60,
            keep_alive: 60,
            peer: SocketAddr::from(([192, 0, 2, 1], 1)).into(),
            will: Some(Message { topic: Arc::clone(&topic), payload, qos: Qos::AtLeastOnce, retain: false }),
            subscriptions: vec![(topic, Qos::AtLeastOnce); 512],
        };
        let client_id = "c".repeat(CLIENT_ID_OCTETS_MAX).into();
        let record = Record { client_id, content: Content::Session(Box::new(session)) };
        assert_eq!(Record::decode(&record.encode()), Ok(record));
    }
}
