//! Connection set-up, takeover, and the end of a session (6.2, 6.3, 6.12).

use std::{sync::Arc, time::Duration};

use viaduct_units::Mono;

use super::{
    ClientHandle, ClientStatus, DeliveryOutcome, DropReason, Gateway, GatewayEvent, Mode, Refusal,
    session::{Recent, State},
    topics::TopicTable,
};
use crate::{
    Peer,
    codec::{Connect, PROTOCOL_ID, Packet, ReturnCode},
    limits::UNCONFIRMED_MIN,
};

impl Gateway {
    /// Processes CONNECT.
    pub(super) fn handle_connect(&mut self, now: Mono, peer: &Peer, connect: &Connect<'_>) {
        if connect.protocol != PROTOCOL_ID {
            return self.refuse_stranger(now, peer, ReturnCode::NotSupported, Refusal::Protocol);
        }
        if connect.client.len() > self.settings.client_id_octets_max || connect.client.contains('\0') {
            return self.refuse_stranger(now, peer, ReturnCode::NotSupported, Refusal::ClientId);
        }
        if let Some(slot) = self.sessions.slot_of_id(connect.client) {
            return self.handle_reconnect(now, slot, peer, connect);
        }
        if let Err(reason) = self.admit(now, peer) {
            return self.refuse_stranger(now, peer, ReturnCode::Congestion, reason);
        }
        self.displace(now, peer, None);
        let next_message = (self.random.next_u64() & 0xFFFF) as u16;
        let slot = self.sessions.insert(Arc::from(connect.client), *peer, now, next_message).handle.slot;
        self.sessions.trim_unconfirmed();
        self.out.counters.sessions += 1;
        self.begin(now, slot, connect);
    }

    fn refuse_stranger(&mut self, now: Mono, peer: &Peer, code: ReturnCode, reason: Refusal) {
        self.refuse(reason);
        self.send_to_stranger(now, peer, &Packet::ConnAck { code });
    }

    /// Checks the limits for a new session. If all sessions are in use, the oldest one whose client never sent a second datagram
    /// is evicted, because its address may be forged.
    fn admit(&mut self, now: Mono, peer: &Peer) -> Result<(), Refusal> {
        let address = peer.address.ip();
        let reason = if self.sessions.of_address(address) >= self.settings.clients_per_address_max {
            Refusal::ClientsOfAddress
        } else if self.sessions.connecting() >= self.settings.connecting_max {
            Refusal::Connecting
        } else if self.sessions.len() >= self.settings.clients_max {
            Refusal::Clients
        } else {
            return Ok(());
        };
        let limit = Mono(now.since(Mono(UNCONFIRMED_MIN)));
        let slot = self.sessions.oldest_unconfirmed(limit).ok_or(reason)?;
        let of_address = self.sessions.get(slot).is_some_and(|session| session.peer.address.ip() == address);
        if reason == Refusal::ClientsOfAddress && !of_address {
            return Err(reason);
        }
        self.out.counters.evicted += 1;
        self.close_broker_side(slot, false);
        self.remove_session(slot, ClientStatus::Lost);
        Ok(())
    }

    /// Ends the session that an address has, unless it is `slot`: the node has another client id now.
    pub(super) fn displace(&mut self, now: Mono, peer: &Peer, slot: Option<u32>) {
        if let Some(other) = self.sessions.slot_of_peer(peer).filter(|other| Some(*other) != slot) {
            self.lose(now, other);
        }
    }

    /// Processes CONNECT of a client that has a session.
    fn handle_reconnect(&mut self, now: Mono, slot: u32, peer: &Peer, connect: &Connect<'_>) {
        let Some(session) = self.sessions.get_mut(slot) else { return };
        let same_peer = session.peer == *peer;
        match session.state {
            State::Asleep(_) | State::Awake(_) => return self.resume(now, slot, peer, connect),
            // The broker side has been asked.
            State::Opening if same_peer => return,
            // CONNACK was lost.
            State::Active if same_peer && session.only_connect && session.is_begun_by(connect) => {
                session.last_seen = now;
                return self.out.send(peer, &Packet::ConnAck { code: ReturnCode::Accepted });
            }
            State::Active if !same_peer => {
                let before = session.peer;
                self.send_to_stranger(now, &before, &Packet::Disconnect { duration: None });
            }
            _ => (),
        }
        self.displace(now, peer, Some(slot));
        self.close_broker_side(slot, false);
        self.sessions.attach(slot, *peer);
        self.begin(now, slot, connect);
    }

    /// Starts a connection with the settings of CONNECT (6.3).
    fn begin(&mut self, now: Mono, slot: u32, connect: &Connect<'_>) {
        if connect.clean {
            self.clear_session(slot);
        }
        let Some(session) = self.sessions.get_mut(slot) else { return };
        (session.clean, session.connect_clean) = (connect.clean, connect.clean);
        session.keep_alive = Duration::from_secs(connect.duration.into());
        session.only_connect = true;
        session.last_seen = now;
        session.flight = None;
        session.topics.forget_confirmations();
        if !connect.will {
            return self.open(now, slot);
        }
        let peer = session.peer;
        self.sessions.enter(now, slot, State::WillTopic);
        self.out.send(&peer, &Packet::WillTopicReq);
        self.reschedule(slot);
    }

    /// Forgets what a client with a clean session must not find again.
    fn clear_session(&mut self, slot: u32) {
        self.release_subscriptions(slot);
        self.drop_queue(slot, DropReason::SessionEnded);
        self.drop_inbound(slot);
        let Some(session) = self.sessions.get_mut(slot) else { return };
        let had_topics = session.topics.iter().next().is_some();
        session.topics = TopicTable::default();
        session.recent = Recent::default();
        session.last_suback = None;
        session.will = None;
        session.holds_will = false;
        if had_topics {
            self.record_topics_cleared(slot);
        }
    }

    /// Connects to the broker, now that the will is complete.
    pub(super) fn open(&mut self, now: Mono, slot: u32) {
        let Some(session) = self.sessions.get_mut(slot) else { return };
        session.holds_will = self.settings.hold_wills || self.settings.mode == Mode::Aggregating;
        match self.settings.mode {
            Mode::Transparent => {
                self.ask_for_connection(slot, None);
                self.sessions.enter(now, slot, State::Opening);
                self.reschedule(slot);
            }
            Mode::Aggregating if self.available => self.accept(now, slot),
            Mode::Aggregating => {
                self.refuse(Refusal::Broker);
                self.fail(now, slot, ReturnCode::Congestion);
            }
        }
    }

    /// Emits the request for a connection to the broker. `clean` replaces the wish of the client.
    pub(super) fn ask_for_connection(&mut self, slot: u32, clean: Option<bool>) {
        let Some(session) = self.sessions.get(slot) else { return };
        self.out.event(GatewayEvent::Connect {
            client: session.handle,
            client_id: Arc::clone(&session.client_id),
            clean: clean.unwrap_or(session.clean),
            keep_alive: session.keep_alive,
            will: session.will.clone().filter(|_| !session.holds_will),
        });
    }

    /// Processes the broker's answer to [`GatewayEvent::Connect`]: `true` if the broker had a session of the client.
    pub fn connected(&mut self, now: Mono, client: ClientHandle, result: Result<bool, ReturnCode>) {
        let Some(session) = self.sessions.by_handle(client) else { return };
        let (slot, opening) = (client.slot, session.state == State::Opening);
        if session.state == State::Disconnected && session.owes_broker() && result.is_ok() {
            return self.publish_again(slot);
        }
        if !opening && !session.state.is_connected() {
            return;
        }
        match result {
            Ok(session_present) => {
                if !session_present {
                    self.renew_subscriptions(now, slot);
                }
                if opening {
                    self.accept(now, slot);
                }
                self.publish_again(slot);
            }
            Err(code) => {
                self.refuse(Refusal::Broker);
                if opening {
                    self.fail(now, slot, code);
                } else {
                    self.broker_lost(now, client);
                }
            }
        }
    }

    /// Completes the connection of a client.
    fn accept(&mut self, now: Mono, slot: u32) {
        self.sessions.enter(now, slot, State::Active);
        let Some(session) = self.sessions.get_mut(slot) else { return };
        session.last_seen = now;
        self.out.send(&session.peer, &Packet::ConnAck { code: ReturnCode::Accepted });
        self.out.status(session, ClientStatus::Active);
        self.record_session(slot);
        self.pump(now, slot);
        self.reschedule(slot);
    }

    /// Refuses the connection of a client.
    pub(super) fn fail(&mut self, now: Mono, slot: u32, code: ReturnCode) {
        let Some(session) = self.sessions.get(slot) else { return };
        self.out.send(&session.peer, &Packet::ConnAck { code });
        self.finish(now, slot, ClientStatus::Disconnected);
    }

    /// Processes the loss of a client's connection to the broker: the client must connect again.
    ///
    /// A sleeping client receives DISCONNECT when it wakes up.
    pub fn broker_lost(&mut self, now: Mono, client: ClientHandle) {
        let Some(session) = self.sessions.by_handle(client) else { return };
        let peer = session.peer;
        match session.state {
            State::Disconnected => return,
            State::Opening => self.out.send(&peer, &Packet::ConnAck { code: ReturnCode::Congestion }),
            _ => self.out.send(&peer, &Packet::Disconnect { duration: None }),
        }
        self.finish(now, client.slot, ClientStatus::Disconnected);
    }

    /// Aggregating mode: sets whether the shared connection exists. If not, new clients are refused with *congestion*.
    pub fn set_available(&mut self, available: bool) {
        self.available = available;
    }

    /// Ends the connection of a client that is silent: its will is published.
    pub(super) fn lose(&mut self, now: Mono, slot: u32) {
        let Some(session) = self.sessions.get_mut(slot) else { return };
        let connected = session.state.is_connected();
        if connected {
            self.out.counters.lost += 1;
        }
        let held = session.will.take_if(|_| connected && session.holds_will);
        if let Some(will) = held {
            let client = Some(session.handle);
            self.out.counters.published += 1;
            self.out.event(GatewayEvent::Publish { client, message: will, token: None });
        }
        self.close_broker_side(slot, connected);
        self.finish(now, slot, ClientStatus::Lost);
    }

    /// Closes a client's connection to the broker.
    pub(super) fn close_broker_side(&mut self, slot: u32, publish_will: bool) {
        let Some(session) = self.sessions.get(slot) else { return };
        let exists = session.state == State::Opening || session.state.is_connected();
        if exists && self.settings.mode == Mode::Transparent {
            let publish_will = publish_will && session.will.is_some() && !session.holds_will;
            self.out.event(GatewayEvent::Disconnect { client: session.handle, publish_will });
        }
    }

    /// Ends a connection: the session ends too if it is clean and the broker has confirmed the client's messages.
    pub(super) fn finish(&mut self, now: Mono, slot: u32, status: ClientStatus) {
        let Some(session) = self.sessions.get_mut(slot) else { return };
        if session.clean && !session.owes_broker() {
            return self.remove_session(slot, status);
        }
        session.flight = None;
        session.requests.clear();
        session.will = None;
        let peer = session.peer;
        self.out.status(session, status);
        self.sessions.detach(slot, &peer);
        self.sessions.enter(now, slot, State::Disconnected);
        self.keep_stored_messages(slot);
        self.record_session(slot);
        self.reschedule(slot);
    }

    /// Removes a session and what it holds.
    pub(super) fn remove_session(&mut self, slot: u32, status: ClientStatus) {
        self.release_subscriptions(slot);
        self.drop_queue(slot, DropReason::SessionEnded);
        let Some(session) = self.sessions.remove(slot) else { return };
        self.out.status(&session, status);
        self.record_removal(&session.client_id);
    }

    /// Keeps the messages that the gateway is responsible for, at the end of a connection.
    ///
    /// The broker keeps the others, because they were not acknowledged. A message with QoS 2 is stored in any case: the client may have it.
    fn keep_stored_messages(&mut self, slot: u32) {
        if self.settings.mode == Mode::Aggregating {
            return self.store_queue(slot);
        }
        self.retain_queue(slot, |outgoing| outgoing.recorded, DropReason::Disconnected);
    }

    /// Reports the result of a message with QoS 1 or 2 to the broker side.
    pub(super) fn settle(&mut self, delivery: Option<u64>, outcome: DeliveryOutcome) {
        if let Some(delivery) = delivery
            && let Some(outcome) = self.shared.settle(delivery, outcome)
        {
            self.out.event(GatewayEvent::Delivered { delivery, outcome });
        }
    }
}
