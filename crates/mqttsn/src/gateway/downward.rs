//! Messages from the broker to clients (6.10).

use viaduct_units::Mono;

use super::{
    Acknowledge, ClientHandle, DeliveryOutcome, DropPolicy, DropReason, Gateway, Mode, Refusal,
    output::Output,
    session::{Flight, Outgoing, Session, State},
    topics::{Assigned, Outward},
};
use crate::{
    Message, Peer,
    codec::{Packet, Publish, Qos, ReturnCode, TopicId},
    limits::REGISTRATIONS_PER_MESSAGE_MAX,
    retry::Retry,
    topic::is_topic_name,
};

/// Octets of a PUBLISH before its payload.
const PUBLISH_OVERHEAD: usize = 9;

impl Gateway {
    /// Delivers a message of the broker to one client, with the quality of service of its subscription.
    ///
    /// For QoS 1 and 2, one [`Delivered`] with the number `delivery` follows.
    ///
    /// [`Delivered`]: super::GatewayEvent::Delivered
    pub fn deliver(&mut self, now: Mono, client: ClientHandle, message: Message, delivery: u64) {
        let delivery = (message.qos != Qos::AtMostOnce).then_some(delivery);
        match self.sessions.by_handle(client) {
            Some(_) => {
                let once = message.qos == Qos::ExactlyOnce;
                self.enqueue(now, client.slot, message, delivery, once);
            }
            None => self.drop_message(delivery, DropReason::SessionEnded),
        }
    }

    /// Adds a message to the queue of a client, and sends it if the client is reachable. With `once`, the broker sends the message
    /// with QoS 2: it is stored, so that a restored gateway knows that the client may have it.
    pub(super) fn enqueue(&mut self, now: Mono, slot: u32, message: Message, delivery: Option<u64>, once: bool) {
        self.out.counters.deliveries += 1;
        if let Err(reason) = self.make_room(slot, &message) {
            return self.drop_message(delivery, reason);
        }
        let Some(session) = self.sessions.get_mut(slot) else { return };
        let has_qos = message.qos != Qos::AtMostOnce;
        let reachable = session.state.is_reachable();
        let stored = has_qos
            && (self.settings.acknowledge == Acknowledge::AfterStorage
                || self.settings.mode == Mode::Aggregating && !reachable);
        let weight = message.weight();
        let outgoing = Outgoing {
            number: session.take_number(),
            message_id: if has_qos { session.take_message_id() } else { 0 },
            message,
            delivery,
            recorded: false,
            sent: false,
            received: false,
            invalid_topic: 0,
        };
        let number = outgoing.number;
        session.queue.push_back(outgoing);
        session.queue_octets += weight;
        self.buffered_octets += weight;
        self.out.counters.buffered += u64::from(!reachable);
        if stored || has_qos && once {
            self.record_outgoing(slot, number, stored);
        }
        self.pump(now, slot);
        self.reschedule(slot);
    }

    /// Makes room for a message, by dropping older ones if that is the policy.
    fn make_room(&mut self, slot: u32, message: &Message) -> Result<(), DropReason> {
        let (buffer, weight) = (self.settings.buffer, message.weight());
        if !is_topic_name(&message.topic) {
            return Err(DropReason::TopicName);
        }
        let Some(session) = self.sessions.get(slot) else { return Err(DropReason::SessionEnded) };
        if message.payload.len() + overhead(&session.peer) > self.settings.datagram_octets_max
            || message.topic.len() + overhead(&session.peer) > self.settings.datagram_octets_max
            || weight > buffer.octets_per_client_max
        {
            return Err(DropReason::TooLarge);
        }
        if session.state == State::Disconnected
            && (message.qos == Qos::AtMostOnce || self.settings.mode == Mode::Transparent)
        {
            return Err(DropReason::Disconnected);
        }
        loop {
            let Some(session) = self.sessions.get(slot) else { return Err(DropReason::SessionEnded) };
            let own_is_full = session.queue.len() >= buffer.messages_per_client_max
                || session.queue_octets + weight > buffer.octets_per_client_max;
            let all_are_full = self.buffered_octets + weight > buffer.octets_max;
            if !own_is_full && !all_are_full {
                return Ok(());
            }
            let reason = if own_is_full { DropReason::Newest } else { DropReason::Total };
            // The first message stays if the client may have it.
            let oldest = usize::from(session.flight.is_some() || session.queue.front().is_some_and(|first| first.sent));
            if buffer.drop == DropPolicy::Newest || !self.drop_queued(slot, oldest, DropReason::Oldest) {
                return Err(reason);
            }
        }
    }

    /// Sends what a client can receive now: messages with QoS 0 up to the first one that waits for an answer.
    pub(super) fn pump(&mut self, now: Mono, slot: u32) {
        loop {
            self.require_proof(slot);
            let Some(session) = self.sessions.get_mut(slot) else { return };
            if session.flight.is_some() || !session.state.is_reachable() {
                return;
            }
            let Some(first) = session.queue.front() else { return self.end_awake(now, slot) };
            let outward = if first.received {
                None
            } else {
                let max = self.settings.topics_per_client_max;
                let name = &first.message.topic;
                Some(session.topics.outward(&session.client_id, name, &self.predefined, max))
            };
            match outward {
                None => self.send_release(now, slot),
                Some(Outward::Known(topic)) => self.send_first(now, slot, topic),
                Some(Outward::Register(assigned)) => self.send_registration(now, slot, assigned),
                Some(Outward::Full) => {
                    self.drop_queued(slot, 0, DropReason::Topics);
                }
            }
        }
    }

    /// Makes a REGISTER precede the first message if the message would amplify an attack on a forged address: its answer proves the
    /// address. Returns `true` if that is new. Short and predefined topics cannot be registered.
    fn require_proof(&mut self, slot: u32) -> bool {
        let Some(session) = self.sessions.get_mut(slot) else { return false };
        let Some(first) = session.queue.front().filter(|first| !first.received) else { return false };
        if session.may_receive(first.message.payload.len() + overhead(&session.peer)) {
            return false;
        }
        let id = session.topics.id(&first.message.topic).filter(|id| session.topics.is_confirmed(*id));
        id.is_some_and(|id| {
            session.topics.set_confirmed(id, false);
            true
        })
    }

    /// Sends the first message of a queue.
    fn send_first(&mut self, now: Mono, slot: u32, topic: TopicId) {
        let Some(session) = self.sessions.get_mut(slot) else { return };
        publish_first(session, topic, &mut self.out);
        let Some(first) = session.queue.front_mut() else { return };
        first.sent = true;
        if first.message.qos == Qos::AtMostOnce {
            self.out.counters.delivered += 1;
            self.take_first(slot);
        } else {
            let retry = Retry::start(now, &session.round_trip, &self.settings.retransmission, &mut self.random);
            session.flight = Some(Flight::Publish(retry));
        }
    }

    fn send_release(&mut self, now: Mono, slot: u32) {
        let Some(session) = self.sessions.get_mut(slot) else { return };
        let Some(first) = session.queue.front() else { return };
        self.out.send(&session.peer, &Packet::PubRel { message: first.message_id });
        let retry = Retry::start(now, &session.round_trip, &self.settings.retransmission, &mut self.random);
        session.flight = Some(Flight::Release(retry));
    }

    /// Sends REGISTER for the topic of the first message (6.10).
    fn send_registration(&mut self, now: Mono, slot: u32, assigned: Assigned) {
        if assigned.new {
            self.record_topic(slot, assigned.id);
        }
        let Some(session) = self.sessions.get_mut(slot) else { return };
        let message = session.take_message_id();
        let Some(first) = session.queue.front() else { return };
        let packet = Packet::Register { topic: assigned.id, message, name: &first.message.topic };
        self.out.send(&session.peer, &packet);
        let retry = Retry::start(now, &session.round_trip, &self.settings.retransmission, &mut self.random);
        session.flight = Some(Flight::Register { message, topic: assigned.id, retry });
    }

    /// Processes REGACK.
    pub(super) fn handle_regack(&mut self, now: Mono, slot: u32, topic: u16, message: u16, code: ReturnCode) {
        let Some(session) = self.sessions.get_mut(slot) else { return };
        match session.flight {
            Some(Flight::Register { message: expected, topic: id, retry }) if (expected, id) == (message, topic) => {
                retry.answered(now, &mut session.round_trip);
                session.proven = true;
                session.flight = None;
                session.topics.set_confirmed(topic, code == ReturnCode::Accepted);
            }
            _ => return self.refuse(Refusal::Unexpected),
        }
        match code {
            ReturnCode::Accepted => (),
            ReturnCode::Congestion => return self.pause(now, slot),
            _ => {
                self.drop_queued(slot, 0, DropReason::Rejected);
            }
        }
        self.pump(now, slot);
    }

    /// Processes PUBACK.
    pub(super) fn handle_puback(&mut self, now: Mono, slot: u32, topic: u16, message: u16, code: ReturnCode) {
        let Some(session) = self.sessions.get_mut(slot) else { return };
        let first = session.queue.front().filter(|first| message != 0 && first.message_id == message && first.sent);
        let Some(first) = first else {
            // A message with QoS 0 is lost; the next one with the same topic is preceded by REGISTER.
            if code == ReturnCode::InvalidTopicId {
                session.topics.set_confirmed(topic, false);
            }
            return self.refuse(Refusal::Unexpected);
        };
        if code == ReturnCode::Accepted && first.message.qos == Qos::ExactlyOnce {
            return self.refuse(Refusal::Unexpected);
        }
        session.proven = true;
        if let Some(Flight::Publish(retry)) = session.flight.take() {
            retry.answered(now, &mut session.round_trip);
        }
        match code {
            ReturnCode::Accepted => self.finish_first(slot),
            ReturnCode::InvalidTopicId => self.register_again(slot, topic),
            ReturnCode::Congestion => return self.pause(now, slot),
            ReturnCode::NotSupported | ReturnCode::Reserved(_) => {
                self.drop_queued(slot, 0, DropReason::Rejected);
            }
        }
        self.pump(now, slot);
    }

    /// Prepares the registration of a topic id that the client does not have. A topic without registration is given up.
    fn register_again(&mut self, slot: u32, topic: u16) {
        let Some(session) = self.sessions.get_mut(slot) else { return };
        let Some(first) = session.queue.front_mut() else { return };
        first.invalid_topic += 1;
        let registered = session.topics.id(&first.message.topic) == Some(topic);
        if registered && first.invalid_topic < REGISTRATIONS_PER_MESSAGE_MAX {
            session.topics.set_confirmed(topic, false);
        } else {
            self.drop_queued(slot, 0, DropReason::Rejected);
        }
    }

    /// Processes PUBREC: the client has the message.
    pub(super) fn handle_pubrec(&mut self, now: Mono, slot: u32, message: u16) {
        let Some(session) = self.sessions.get_mut(slot) else { return };
        let peer = session.peer;
        let first = session.queue.front_mut().filter(|first| first.message_id == message && message != 0);
        let Some(first) = first.filter(|first| first.message.qos == Qos::ExactlyOnce && first.sent) else {
            // PUBCOMP was received, or the message is forgotten. The client waits for PUBREL.
            self.refuse(Refusal::Unexpected);
            return self.out.send(&peer, &Packet::PubRel { message });
        };
        if first.received {
            return self.out.send(&peer, &Packet::PubRel { message });
        }
        first.received = true;
        session.proven = true;
        let (number, delivery, recorded) = (first.number, first.delivery.take(), first.recorded);
        if let Some(Flight::Publish(retry)) = session.flight.take() {
            retry.answered(now, &mut session.round_trip);
        }
        if recorded {
            self.record_outgoing(slot, number, false);
        }
        self.settle(delivery, DeliveryOutcome::Acknowledged);
        self.pump(now, slot);
    }

    /// Processes PUBCOMP.
    pub(super) fn handle_pubcomp(&mut self, now: Mono, slot: u32, message: u16) {
        let Some(session) = self.sessions.get_mut(slot) else { return };
        let first = session.queue.front().filter(|first| first.message_id == message && first.received);
        if first.is_none() {
            return self.refuse(Refusal::Unexpected);
        }
        if let Some(Flight::Release(retry)) = session.flight.take() {
            retry.answered(now, &mut session.round_trip);
        }
        self.finish_first(slot);
        self.pump(now, slot);
    }

    /// Sends the message in flight again. If it was sent often enough, the client is lost, or asleep again.
    pub(super) fn retransmit(&mut self, now: Mono, slot: u32) {
        let is_unproven = self.require_proof(slot);
        let Some(session) = self.sessions.get_mut(slot) else { return };
        if is_unproven && matches!(session.flight, Some(Flight::Publish(_))) {
            session.flight = None;
            return self.pump(now, slot);
        }
        let Some(flight) = &mut session.flight else { return };
        let profile = &self.settings.retransmission;
        let again = match flight {
            Flight::Congested(_) => {
                session.flight = None;
                return self.pump(now, slot);
            }
            Flight::Register { retry, .. } | Flight::Publish(retry) | Flight::Release(retry) => {
                retry.again(now, profile)
            }
        };
        let flight = *flight;
        match (again, &session.state) {
            (true, _) => {
                self.out.counters.retransmissions += 1;
                self.send_again(slot, flight);
            }
            // The client sleeps again without having received all messages.
            (false, State::Awake(duration)) => {
                let duration = *duration;
                self.fall_asleep(now, slot, duration);
            }
            (false, _) => self.lose(now, slot),
        }
    }

    fn send_again(&mut self, slot: u32, flight: Flight) {
        let Some(session) = self.sessions.get_mut(slot) else { return };
        let Some(first) = session.queue.front() else { return };
        match flight {
            Flight::Register { message, topic, .. } => {
                self.out.send(&session.peer, &Packet::Register { topic, message, name: &first.message.topic });
            }
            Flight::Publish(_) => {
                let name = &first.message.topic;
                let max = self.settings.topics_per_client_max;
                if let Outward::Known(topic) = session.topics.outward(&session.client_id, name, &self.predefined, max) {
                    publish_first(session, topic, &mut self.out);
                }
            }
            Flight::Release(_) => self.out.send(&session.peer, &Packet::PubRel { message: first.message_id }),
            Flight::Congested(_) => (),
        }
    }

    /// Waits for T_WAIT before the next message.
    fn pause(&mut self, now: Mono, slot: u32) {
        let wait = self.settings.congestion_wait;
        if let Some(session) = self.sessions.get_mut(slot) {
            session.flight = Some(Flight::Congested(now.plus(wait)));
        }
    }

    /// Removes the first message, which the client has acknowledged.
    fn finish_first(&mut self, slot: u32) {
        self.out.counters.delivered += 1;
        if let Some(outgoing) = self.take_first(slot) {
            self.settle(outgoing.delivery, DeliveryOutcome::Acknowledged);
        }
    }

    fn take_first(&mut self, slot: u32) -> Option<Outgoing> {
        self.take_queued(slot, 0)
    }

    /// Takes a message out of a queue.
    fn take_queued(&mut self, slot: u32, index: usize) -> Option<Outgoing> {
        let session = self.sessions.get_mut(slot)?;
        let outgoing = session.queue.remove(index)?;
        let weight = outgoing.message.weight();
        session.queue_octets -= weight;
        self.buffered_octets -= weight;
        if outgoing.recorded {
            self.record_outgoing_end(slot, outgoing.number);
        }
        Some(outgoing)
    }

    /// Drops a message of a queue. Returns `false` if there is none.
    fn drop_queued(&mut self, slot: u32, index: usize, reason: DropReason) -> bool {
        let Some(outgoing) = self.take_queued(slot, index) else { return false };
        self.drop_message(outgoing.delivery, reason);
        true
    }

    /// Counts a dropped message, and settles it if it was not yet.
    fn drop_message(&mut self, delivery: Option<u64>, reason: DropReason) {
        self.out.counters.drop(reason);
        self.settle(delivery, DeliveryOutcome::Dropped(reason));
    }

    /// Drops all messages to a client.
    pub(super) fn drop_queue(&mut self, slot: u32, reason: DropReason) {
        self.retain_queue(slot, |_| false, reason);
    }

    /// Drops the messages to a client that do not satisfy a condition.
    pub(super) fn retain_queue(&mut self, slot: u32, keep: impl Fn(&Outgoing) -> bool, reason: DropReason) {
        let mut index = 0;
        while let Some(outgoing) = self.sessions.get(slot).and_then(|session| session.queue.get(index)) {
            if keep(outgoing) {
                index += 1;
            } else {
                self.drop_queued(slot, index, reason);
            }
        }
    }

    /// Aggregating mode: stores the messages of a client that is not reachable now, and drops those with QoS 0 of a client
    /// that is disconnected.
    pub(super) fn store_queue(&mut self, slot: u32) {
        let Some(session) = self.sessions.get(slot) else { return };
        let unsettled =
            |outgoing: &&Outgoing| outgoing.message_id != 0 && (!outgoing.recorded || outgoing.delivery.is_some());
        let numbers: Vec<u32> = session.queue.iter().filter(unsettled).map(|outgoing| outgoing.number).collect();
        if session.state == State::Disconnected {
            self.retain_queue(slot, |outgoing| outgoing.message_id != 0, DropReason::Disconnected);
        }
        for number in numbers {
            self.record_outgoing(slot, number, true);
        }
    }
}

/// Sends the first message of a queue; with DUP if it was sent before.
fn publish_first(session: &mut Session, topic: TopicId, out: &mut Output) {
    let Some(first) = session.queue.front() else { return };
    let octets = first.message.payload.len() + overhead(&session.peer);
    session.octets.published = session.octets.published.saturating_add(octets);
    let (qos, retain) = (first.message.qos, first.message.retain);
    let dup = first.sent && qos != Qos::AtMostOnce;
    let data = &first.message.payload;
    out.send(
        &session.peer,
        &Packet::Publish(Publish { dup, qos: Some(qos), retain, topic, message: first.message_id, data }),
    );
}

/// Returns the octets of a message to a peer that do not belong to its payload.
fn overhead(peer: &Peer) -> usize {
    PUBLISH_OVERHEAD + peer.node.map_or(0, |node| node.octets().len() + 3)
}
