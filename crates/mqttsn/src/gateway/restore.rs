//! Restoring the gateway's state from its records.

use std::{collections::BTreeMap, hash::BuildHasher, sync::Arc, time::Duration};

use viaduct_units::Mono;

use super::{
    Acknowledge, DropReason, Gateway, GatewaySettings, Mode, RecordError,
    record::{Content, Record, SessionRecord, StoredState},
    session::{Inbound, Outgoing, Session, State, Subscription},
    topics::TopicTable,
};
use crate::{
    Message, SettingsError,
    codec::{Qos, TopicId},
    topic::{is_topic_filter, is_topic_name},
};

/// Result of [`Gateway::restore`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Sessions.
    pub sessions: usize,
    /// Messages from clients that are published again.
    pub from_clients: usize,
    /// Messages to clients.
    pub to_clients: usize,
    /// Records that were not restored.
    pub refused: usize,
    /// Reason of the first one.
    pub error: Option<RecordError>,
}

/// The records of one client.
#[derive(Debug)]
struct Image {
    session: SessionRecord,
    topics: BTreeMap<u16, Arc<str>>,
    inbound: BTreeMap<u32, StoredInbound>,
    outgoing: BTreeMap<u32, StoredOutgoing>,
}

#[derive(Debug)]
struct StoredInbound {
    message_id: u16,
    topic: TopicId,
    qos: Qos,
    message: Option<Message>,
}

#[derive(Debug)]
struct StoredOutgoing {
    message_id: u16,
    received: bool,
    message: Message,
}

type Images = BTreeMap<Arc<str>, Image>;

impl Gateway {
    /// Returns a gateway with the state of an earlier one: all its records, or a snapshot and the records after it.
    ///
    /// Events follow that restore the broker side: connections, subscriptions, and messages that were not confirmed. Wrong
    /// records are counted and skipped. A last record that was not written completely is one of them.
    ///
    /// # Errors
    /// The first invalid setting.
    pub fn restore<'a>(
        settings: GatewaySettings,
        seed: u64,
        now: Mono,
        records: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<(Self, Restored), SettingsError> {
        let mut gateway = Self::new(settings, seed)?;
        let (mut images, mut restored) = (Images::new(), Restored::default());
        for octets in records {
            let applied = Record::decode(octets).and_then(|record| gateway.apply(&mut images, record));
            if let Err(error) = applied {
                restored.refused += 1;
                restored.error.get_or_insert(error);
            }
        }
        for (client_id, image) in images {
            gateway.restore_session(now, client_id, image, &mut restored);
        }
        Ok((gateway, restored))
    }

    /// Applies a record to the images, within the limits of the settings.
    fn apply(&self, images: &mut Images, record: Record) -> Result<(), RecordError> {
        let Record { client_id, content } = record;
        if client_id.is_empty() || client_id.len() > self.settings.client_id_octets_max {
            return Err(RecordError::Limit);
        }
        match content {
            Content::Session(session) => return self.apply_session(images, client_id, *session),
            Content::Removed => {
                images.remove(&client_id);
                return Ok(());
            }
            _ => (),
        }
        let image = images.get_mut(&client_id).ok_or(RecordError::NoSession)?;
        match content {
            Content::Topic { id, name } => {
                let limit = usize::from(id) <= self.settings.topics_per_client_max && id != 0 && is_topic_name(&name);
                image.topics.insert(id, limit.then_some(name).ok_or(RecordError::Limit)?);
            }
            Content::TopicsCleared => image.topics.clear(),
            Content::Inbound { number, message_id, topic, qos, message } => {
                let stored = StoredInbound { message_id, topic, qos, message };
                let max = self.settings.in_flight_per_client_max;
                insert_limited(&mut image.inbound, number, stored, max)?;
            }
            Content::Outgoing { number, message_id, received, mut message } => {
                if message_id == 0 || message.qos == Qos::AtMostOnce || !is_topic_name(&message.topic) {
                    return Err(RecordError::Value);
                }
                if received {
                    message.payload.clear();
                }
                let stored = StoredOutgoing { message_id, received, message };
                insert_limited(&mut image.outgoing, number, stored, self.settings.buffer.messages_per_client_max)?;
            }
            Content::InboundEnd { number } => drop(image.inbound.remove(&number)),
            Content::OutgoingEnd { number } => drop(image.outgoing.remove(&number)),
            Content::Session(_) | Content::Removed => (),
        }
        Ok(())
    }

    fn apply_session(
        &self,
        images: &mut Images,
        client_id: Arc<str>,
        session: SessionRecord,
    ) -> Result<(), RecordError> {
        if session.subscriptions.len() > self.settings.subscriptions_per_client_max {
            return Err(RecordError::Limit);
        }
        if session.will.as_ref().is_some_and(|will| !is_topic_name(&will.topic))
            || !session.subscriptions.iter().all(|(filter, _)| is_topic_filter(filter))
        {
            return Err(RecordError::Value);
        }
        let clients = images.len();
        match images.get_mut(&client_id) {
            Some(image) => image.session = session,
            None if clients >= self.settings.clients_max => return Err(RecordError::Limit),
            None => {
                let (topics, inbound, outgoing) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
                images.insert(client_id, Image { session, topics, inbound, outgoing });
            }
        }
        Ok(())
    }

    fn restore_session(&mut self, now: Mono, client_id: Arc<str>, image: Image, restored: &mut Restored) {
        let Image { session: stored, topics, inbound, outgoing } = image;
        let address_taken = self.sessions.slot_of_peer(&stored.peer).is_some();
        let state = match stored.state {
            _ if address_taken => State::Disconnected,
            StoredState::Active => State::Active,
            StoredState::Asleep => State::Asleep(Duration::from_secs(stored.sleep.into())),
            StoredState::Disconnected => State::Disconnected,
        };
        if state == State::Disconnected && stored.clean && inbound.is_empty() {
            return;
        }
        let last_number = inbound.keys().chain(outgoing.keys()).copied().max().unwrap_or(0);
        let next_message = (self.random.next_u64() & 0xFFFF) as u16;
        let session = self.sessions.insert(client_id, stored.peer, now, next_message);
        let (slot, connected) = (session.handle.slot, state.is_connected());
        restored.sessions += 1;
        session.next_number = last_number;
        session.confirmed = true;
        session.only_connect = false;
        session.topics = TopicTable::restored(topics);
        restore_settings(session, stored);
        if !connected {
            let peer = session.peer;
            self.sessions.detach(slot, &peer);
        }
        self.sessions.enter(now, slot, state);
        restored.from_clients += self.restore_inbound(now, slot, inbound);
        restored.to_clients += self.restore_outgoing(slot, outgoing);
        self.restore_broker_side(now, slot, connected);
        self.pump(now, slot);
        self.reschedule(slot);
    }

    /// Restores messages of a client. Except those that wait for the broker, they count as acknowledged: if the acknowledgement was
    /// lost, the client sends the message again and receives another one.
    fn restore_inbound(&mut self, now: Mono, slot: u32, inbound: BTreeMap<u32, StoredInbound>) -> usize {
        let Some(session) = self.sessions.get_mut(slot) else { return 0 };
        let after_broker = self.settings.acknowledge == Acknowledge::AfterBroker;
        for (number, StoredInbound { message_id, topic, qos, message }) in inbound {
            let payload = message.as_ref().map_or(&[][..], |message| &message.payload);
            let fingerprint = self.hasher.hash_one((topic, payload));
            let released = qos != Qos::ExactlyOnce;
            if released {
                session.recent.push(message_id, fingerprint);
            }
            session.inbound.push_back(Inbound {
                number,
                message_id,
                topic,
                since: now,
                qos,
                fingerprint,
                acknowledged: !(after_broker && message.is_some()),
                message,
                released,
                recorded: true,
            });
        }
        session.inbound.iter().filter(|inbound| inbound.message.is_some()).count()
    }

    /// Restores messages to a client, as far as the buffers go. The first one may have been sent.
    fn restore_outgoing(&mut self, slot: u32, outgoing: BTreeMap<u32, StoredOutgoing>) -> usize {
        let Some(session) = self.sessions.get_mut(slot) else { return 0 };
        let buffer = self.settings.buffer;
        for (number, StoredOutgoing { message_id, received, message }) in outgoing {
            let weight = message.weight();
            if session.queue_octets + weight > buffer.octets_per_client_max {
                self.out.counters.drop(DropReason::Newest);
                continue;
            }
            if self.buffered_octets + weight > buffer.octets_max {
                self.out.counters.drop(DropReason::Total);
                continue;
            }
            session.queue_octets += weight;
            self.buffered_octets += weight;
            session.next_message = session.next_message.max(message_id);
            let sent = session.queue.is_empty();
            session.queue.push_back(Outgoing {
                number,
                message_id,
                message,
                delivery: None,
                recorded: true,
                sent,
                received,
                invalid_topic: 0,
            });
        }
        session.queue.len()
    }

    /// Asks the broker side for what the session needs.
    fn restore_broker_side(&mut self, now: Mono, slot: u32, connected: bool) {
        let Some(session) = self.sessions.get(slot) else { return };
        match self.settings.mode {
            Mode::Transparent if connected || session.owes_broker() => self.ask_for_connection(slot, Some(false)),
            Mode::Transparent => (),
            Mode::Aggregating => {
                self.renew_subscriptions(now, slot);
                self.publish_again(slot);
            }
        }
    }
}

fn restore_settings(session: &mut Session, stored: SessionRecord) {
    session.clean = stored.clean;
    session.holds_will = stored.holds_will;
    session.keep_alive = Duration::from_secs(stored.keep_alive.into());
    session.will = stored.will;
    let subscriptions = stored.subscriptions.into_iter();
    session.subscriptions = subscriptions.map(|(filter, qos)| Subscription { filter, qos, since: None }).collect();
}

/// Inserts or replaces an entry, if there are not too many.
fn insert_limited<T>(map: &mut BTreeMap<u32, T>, number: u32, value: T, max: usize) -> Result<(), RecordError> {
    if map.len() >= max && !map.contains_key(&number) {
        return Err(RecordError::Limit);
    }
    map.insert(number, value);
    Ok(())
}
