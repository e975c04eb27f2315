//! Messages from clients to the broker (6.5 to 6.8).

use std::{hash::BuildHasher, sync::Arc};

use bytes::Bytes;
use viaduct_units::Mono;

use super::{
    Acknowledge, ClientStatus, DeliveryOutcome, Gateway, GatewayEvent, GatewaySettings, Mode, Refusal, Token,
    output::Output,
    session::{Inbound, Session, State},
};
use crate::{
    Message, Peer,
    codec::{Packet, Publish, Qos, ReturnCode, TopicId},
    limits::BROKER_DELAY_MAX,
    topic::is_topic_name,
};

impl Gateway {
    /// Processes REGISTER (6.5).
    pub(super) fn handle_register(&mut self, slot: u32, message: u16, name: &str) {
        let Some(session) = self.sessions.get_mut(slot) else { return };
        let max = self.settings.topics_per_client_max;
        let assigned = is_topic_name(name).then(|| session.topics.assign(name, max));
        let (topic, code) = match assigned {
            Some(Some(assigned)) => (assigned.id, ReturnCode::Accepted),
            Some(None) => (0, ReturnCode::Congestion),
            None => (0, ReturnCode::NotSupported),
        };
        session.topics.set_confirmed(topic, true);
        self.out.send(&session.peer, &Packet::RegAck { topic, message, code });
        match code {
            ReturnCode::Accepted => self.record_topic(slot, topic),
            ReturnCode::Congestion => self.refuse(Refusal::Topics),
            _ => self.refuse(Refusal::TopicName),
        }
    }

    /// Processes PUBLISH with QoS 0, 1 or 2 (6.6).
    pub(super) fn handle_publish(&mut self, slot: u32, publish: &Publish<'_>, datagram: &Bytes) {
        let Some(session) = self.sessions.get_mut(slot) else { return };
        let qos = publish.qos.unwrap_or_default();
        let name = match publish.topic {
            TopicId::Normal(id) => session.topics.name(id).cloned(),
            TopicId::Predefined(id) => self.predefined.name(Some(&session.client_id), id).cloned(),
            TopicId::Short(name) => is_topic_name(name.name()).then(|| Arc::from(name.name())),
        };
        let Some(topic) = name else { return self.refuse_publish(slot, publish, Refusal::TopicId) };
        let message = Message { topic, payload: datagram.slice_ref(publish.data), qos, retain: publish.retain };
        if qos != Qos::AtMostOnce {
            return self.accept_publish(slot, publish, message);
        }
        let client = Some(session.handle);
        self.out.counters.published += 1;
        self.out.event(GatewayEvent::Publish { client, message, token: None });
    }

    /// Answers a PUBLISH with an error. That is allowed for each quality of service (5.4.13).
    fn refuse_publish(&mut self, slot: u32, publish: &Publish<'_>, reason: Refusal) {
        self.refuse(reason);
        let code = match reason {
            Refusal::TopicId => ReturnCode::InvalidTopicId,
            Refusal::InFlight => ReturnCode::Congestion,
            _ => ReturnCode::NotSupported,
        };
        let Some(session) = self.sessions.get(slot) else { return };
        let (topic, message) = (publish.topic.field(), publish.message);
        self.out.send(&session.peer, &Packet::PubAck { topic, message, code });
    }

    /// Processes a message with QoS 1 or 2, unless it was received before.
    fn accept_publish(&mut self, slot: u32, publish: &Publish<'_>, message: Message) {
        if publish.message == 0 {
            return self.refuse_publish(slot, publish, Refusal::MessageId);
        }
        let Some(session) = self.sessions.get_mut(slot) else { return };
        let fingerprint = self.hasher.hash_one((publish.topic, publish.data));
        if answer_duplicate(session, publish, fingerprint, &mut self.out) {
            self.out.counters.duplicates += 1;
            return;
        }
        let now = session.last_seen;
        if !has_room(session, &message, &self.settings) {
            let oldest = session.inbound.front().map_or(now, |inbound| inbound.since);
            if now.since(oldest) > BROKER_DELAY_MAX {
                self.refuse_publish(slot, publish, Refusal::InFlight);
            } else {
                self.refuse(Refusal::InFlight);
            }
            return;
        }
        let number = session.take_number();
        let token = session.token(number);
        session.inbound.push_back(Inbound {
            number,
            message_id: publish.message,
            topic: publish.topic,
            since: now,
            qos: message.qos,
            fingerprint,
            acknowledged: false,
            message: Some(message.clone()),
            released: message.qos == Qos::AtLeastOnce,
            recorded: false,
        });
        match (self.settings.acknowledge, message.qos) {
            (Acknowledge::AfterStorage, _) => self.record_inbound(slot, number, true),
            // The broker must not receive it twice if the gateway is restored and the client sends it again.
            (Acknowledge::AfterBroker, Qos::ExactlyOnce) => self.record_inbound(slot, number, false),
            (Acknowledge::AfterBroker, _) => (),
        }
        self.out.counters.published += 1;
        self.out.event(GatewayEvent::Publish { client: Some(token.client), message, token: Some(token) });
    }

    /// Emits the unconfirmed messages of a client again, for a new connection to the broker.
    pub(super) fn publish_again(&mut self, slot: u32) {
        let Some(session) = self.sessions.get(slot) else { return };
        for inbound in &session.inbound {
            if let Some(message) = &inbound.message {
                let (client, token) = (Some(session.handle), Some(session.token(inbound.number)));
                self.out.event(GatewayEvent::Publish { client, message: message.clone(), token });
            }
        }
    }

    /// Processes the result of [`GatewayEvent::Publish`]: the broker has confirmed or refused the message.
    pub fn published(&mut self, token: Token, result: Result<(), ReturnCode>) {
        let Some(session) = self.sessions.by_token(token) else { return };
        let Some(inbound) = session.inbound.iter_mut().find(|inbound| inbound.number == token.number) else { return };
        if inbound.message.take().is_none() {
            return;
        }
        let slot = token.client.slot;
        if let Err(code) = result {
            return self.refused_by_broker(slot, token.number, code);
        }
        match (self.settings.acknowledge, inbound.qos) {
            (Acknowledge::AfterBroker, Qos::ExactlyOnce) => self.record_inbound(slot, token.number, true),
            (Acknowledge::AfterBroker, _) => acknowledge(session, token.number, &mut self.out),
            // From now on, the storage has only the message id.
            (Acknowledge::AfterStorage, Qos::ExactlyOnce) => self.record_inbound(slot, token.number, false),
            (Acknowledge::AfterStorage, _) => (),
        }
        self.finish_inbound(slot, token.number);
    }

    fn refused_by_broker(&mut self, slot: u32, number: u32, code: ReturnCode) {
        let Some(session) = self.sessions.get_mut(slot) else { return };
        let Some(inbound) = session.inbound.iter_mut().find(|inbound| inbound.number == number) else { return };
        if inbound.acknowledged {
            self.out.counters.refused_by_broker += 1;
            return self.finish_inbound(slot, number);
        }
        let (topic, message) = (inbound.topic.field(), inbound.message_id);
        (inbound.acknowledged, inbound.released) = (true, true);
        self.out.send(&session.peer, &Packet::PubAck { topic, message, code });
        self.refuse(Refusal::Broker);
        self.finish_inbound(slot, number);
    }

    /// Returns `true` if the gateway still has the message of a token.
    #[must_use]
    pub fn has_message(&self, token: Token) -> bool {
        let session = self.sessions.get(token.client.slot).filter(|session| session.handle == token.client);
        session.is_some_and(|session| {
            session.inbound.iter().any(|inbound| inbound.number == token.number)
                || session.queue.iter().any(|outgoing| outgoing.number == token.number)
        })
    }

    /// Processes the storage of a record with a token: an acknowledgement follows.
    pub fn persisted(&mut self, token: Token) {
        let Some(session) = self.sessions.by_token(token) else { return };
        let slot = token.client.slot;
        if session.inbound.iter().any(|inbound| inbound.number == token.number) {
            acknowledge(session, token.number, &mut self.out);
            return self.finish_inbound(slot, token.number);
        }
        let outgoing = session.queue.iter_mut().find(|outgoing| outgoing.number == token.number);
        let delivery = outgoing.and_then(|outgoing| outgoing.delivery.take());
        self.settle(delivery, DeliveryOutcome::Stored);
    }

    /// Removes a message that is acknowledged, confirmed and released.
    fn finish_inbound(&mut self, slot: u32, number: u32) {
        let Some(session) = self.sessions.get_mut(slot) else { return };
        let Some(index) = session.inbound.iter().position(|inbound| inbound.number == number) else { return };
        if session.inbound.get(index).is_some_and(Inbound::is_finished)
            && let Some(inbound) = session.inbound.remove(index)
            && inbound.recorded
        {
            self.record_inbound_end(slot, number);
        }
        self.end_drained(slot);
    }

    /// Removes a session that was kept only for messages that the broker had not confirmed.
    fn end_drained(&mut self, slot: u32) {
        let Some(session) = self.sessions.get(slot) else { return };
        if session.state == State::Disconnected && session.clean && !session.owes_broker() {
            if self.settings.mode == Mode::Transparent {
                self.out.event(GatewayEvent::Disconnect { client: session.handle, publish_will: false });
            }
            self.remove_session(slot, ClientStatus::Disconnected);
        }
    }

    /// Forgets the messages of a client whose clean session begins, except those that the broker must still receive.
    pub(super) fn drop_inbound(&mut self, slot: u32) {
        let Some(session) = self.sessions.get_mut(slot) else { return };
        let mut ended = Vec::new();
        session.inbound.retain_mut(|inbound| {
            inbound.released = true;
            let kept = inbound.is_owed();
            if !kept && inbound.recorded {
                ended.push(inbound.number);
            }
            kept
        });
        for number in ended {
            self.record_inbound_end(slot, number);
        }
    }

    /// Processes PUBREL. One for an unknown message is answered too, because PUBCOMP may be lost.
    pub(super) fn handle_release(&mut self, slot: u32, message: u16) {
        let Some(session) = self.sessions.get_mut(slot) else { return };
        let open = session.inbound.iter_mut().find(|inbound| !inbound.released && inbound.message_id == message);
        let number = match open {
            Some(inbound) if !inbound.acknowledged => return self.refuse(Refusal::Unexpected),
            Some(inbound) => {
                inbound.released = true;
                Some(inbound.number)
            }
            None => None,
        };
        self.out.send(&session.peer, &Packet::PubComp { message });
        if let Some(number) = number {
            self.finish_inbound(slot, number);
        }
    }

    /// Processes PUBLISH with QoS -1 (6.8): from any node, with a predefined id or a short topic name.
    pub(super) fn handle_without_connection(
        &mut self,
        now: Mono,
        peer: &Peer,
        publish: &Publish<'_>,
        datagram: &Bytes,
    ) {
        if !self.settings.without_connection {
            return self.refuse(Refusal::WithoutConnection);
        }
        let session = self.sessions.slot_of_peer(peer).and_then(|slot| self.sessions.get(slot));
        let (client, client_id) = session.map(|session| (session.handle, &*session.client_id)).unzip();
        let topic = match publish.topic {
            TopicId::Normal(_) => None,
            TopicId::Predefined(id) => self.predefined.name(client_id, id).cloned(),
            TopicId::Short(name) => is_topic_name(name.name()).then(|| Arc::from(name.name())),
        };
        let Some(topic) = topic else { return self.refuse(Refusal::TopicId) };
        if !self.without_connection.take(now, self.settings.without_connection_per_s_max) {
            return self.refuse(Refusal::Rate);
        }
        let payload = datagram.slice_ref(publish.data);
        let message = Message { topic, payload, qos: Qos::AtMostOnce, retain: publish.retain };
        self.out.counters.published += 1;
        self.out.event(GatewayEvent::Publish { client, message, token: None });
    }
}

/// Returns `true` if a message of a client may wait for the broker, beside those that already do. One message always may.
fn has_room(session: &Session, message: &Message, settings: &GatewaySettings) -> bool {
    let waiting = session.inbound.iter().filter_map(|inbound| inbound.message.as_ref());
    let octets: usize = waiting.map(Message::weight).sum();
    session.inbound.len() < settings.in_flight_per_client_max
        && (octets == 0 || octets + message.weight() <= settings.buffer.octets_per_client_max)
}

/// Answers a message that was received before. Returns `false` if the message is new.
fn answer_duplicate(session: &Session, publish: &Publish<'_>, fingerprint: u64, out: &mut Output) -> bool {
    let (message, topic) = (publish.message, publish.topic.field());
    let open = |inbound: &&Inbound| {
        inbound.message_id == message && publish.qos == Some(inbound.qos) && !(inbound.acknowledged && inbound.released)
    };
    if let Some(inbound) = session.inbound.iter().find(open) {
        // A message with QoS 1 in this state is acknowledged later.
        if inbound.acknowledged {
            out.send(&session.peer, &Packet::PubRec { message });
        }
        return true;
    }
    let acknowledged = publish.dup && session.recent.contains(message, fingerprint);
    if acknowledged {
        out.send(&session.peer, &Packet::PubAck { topic, message, code: ReturnCode::Accepted });
    }
    acknowledged
}

/// Sends PUBACK or PUBREC for a message.
fn acknowledge(session: &mut Session, number: u32, out: &mut Output) {
    let Some(inbound) = session.inbound.iter_mut().find(|inbound| inbound.number == number) else { return };
    if std::mem::replace(&mut inbound.acknowledged, true) {
        return;
    }
    let message = inbound.message_id;
    if inbound.qos == Qos::ExactlyOnce {
        return out.send(&session.peer, &Packet::PubRec { message });
    }
    let (topic, fingerprint) = (inbound.topic.field(), inbound.fingerprint);
    session.recent.push(message, fingerprint);
    out.send(&session.peer, &Packet::PubAck { topic, message, code: ReturnCode::Accepted });
}
