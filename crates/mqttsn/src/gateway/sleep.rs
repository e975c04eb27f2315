//! Sleeping clients (6.14), keep-alive (6.11), and the deadlines of sessions.

use std::time::Duration;

use viaduct_units::Mono;

use super::{ClientStatus, Gateway, Mode, Refusal, session::State};
use crate::{
    Peer,
    codec::{Connect, Packet, ReturnCode},
};

impl Gateway {
    /// Processes DISCONNECT: the end of the connection, or the begin of sleep.
    pub(super) fn handle_disconnect(&mut self, now: Mono, slot: u32, duration: Option<u16>) {
        let Some(session) = self.sessions.get_mut(slot) else { return };
        let peer = session.peer;
        match duration {
            Some(duration @ 1..) if session.state.is_connected() => {
                session.confirm();
                self.fall_asleep(now, slot, Duration::from_secs(duration.into()));
                self.record_session(slot);
                self.out.send(&peer, &Packet::Disconnect { duration: None });
            }
            _ => {
                self.close_broker_side(slot, false);
                self.out.send(&peer, &Packet::Disconnect { duration: None });
                self.finish(now, slot, ClientStatus::Disconnected);
            }
        }
    }

    /// Stops sending to a client. The message in flight will be sent again.
    pub(super) fn fall_asleep(&mut self, now: Mono, slot: u32, duration: Duration) {
        self.sessions.enter(now, slot, State::Asleep(duration));
        let Some(session) = self.sessions.get_mut(slot) else { return };
        session.flight = None;
        self.out.status(session, ClientStatus::Asleep);
        if self.settings.mode == Mode::Aggregating {
            self.store_queue(slot);
        }
        self.reschedule(slot);
    }

    /// Processes PINGREQ with a client id: a sleeping client is awake, perhaps with another address.
    pub(super) fn handle_wake(&mut self, now: Mono, peer: &Peer, client_id: &str) {
        let Some(slot) = self.sessions.slot_of_id(client_id) else { return self.answer_stranger(now, peer) };
        let Some(session) = self.sessions.get_mut(slot) else { return };
        let sleeps = matches!(session.state, State::Asleep(_) | State::Awake(_));
        let same_peer = session.peer == *peer;
        if !(sleeps || same_peer && session.state.is_connected()) {
            return self.answer_stranger(now, peer);
        }
        if !same_peer {
            self.displace(now, peer, Some(slot));
            self.sessions.attach(slot, *peer);
            self.record_session(slot);
        }
        if let Some(session) = self.sessions.get_mut(slot) {
            session.last_seen = now;
            session.confirm();
        }
        self.handle_ping(now, slot);
        self.reschedule(slot);
    }

    /// Processes PINGREQ. A sleeping client receives its messages, then PINGRESP.
    pub(super) fn handle_ping(&mut self, now: Mono, slot: u32) {
        let Some(session) = self.sessions.get_mut(slot) else { return };
        match session.state {
            State::Asleep(duration) => {
                self.sessions.enter(now, slot, State::Awake(duration));
                if let Some(session) = self.sessions.get(slot) {
                    self.out.status(session, ClientStatus::Awake);
                }
                self.pump(now, slot);
            }
            // The messages are being sent.
            State::Awake(_) => (),
            _ => self.out.send(&session.peer, &Packet::PingResp),
        }
    }

    /// Ends the awake state of a client that has received its messages.
    pub(super) fn end_awake(&mut self, now: Mono, slot: u32) {
        let Some(session) = self.sessions.get_mut(slot) else { return };
        if let State::Awake(duration) = session.state {
            let peer = session.peer;
            self.fall_asleep(now, slot, duration);
            self.out.send(&peer, &Packet::PingResp);
        }
    }

    /// Processes CONNECT of a sleeping client, which makes it active.
    ///
    /// The connection to the broker still exists, so the flags of CONNECT have no meaning. A client that wants a clean
    /// session may have lost its topic ids.
    pub(super) fn resume(&mut self, now: Mono, slot: u32, peer: &Peer, connect: &Connect<'_>) {
        self.displace(now, peer, Some(slot));
        self.sessions.attach(slot, *peer);
        self.sessions.enter(now, slot, State::Active);
        let Some(session) = self.sessions.get_mut(slot) else { return };
        session.last_seen = now;
        session.only_connect = true;
        session.connect_clean = connect.clean;
        session.keep_alive = Duration::from_secs(connect.duration.into());
        session.flight = None;
        if connect.clean {
            session.topics.forget_confirmations();
        }
        self.out.send(peer, &Packet::ConnAck { code: ReturnCode::Accepted });
        self.out.status(session, ClientStatus::Active);
        self.record_session(slot);
        self.pump(now, slot);
        self.reschedule(slot);
    }

    /// Does the work of a session that is due, and schedules the next one.
    pub(super) fn examine(&mut self, now: Mono, slot: u32) {
        let Some(session) = self.sessions.get(slot) else { return };
        if session.expiry(&self.settings) <= now {
            self.expire(now, slot);
        } else if session.due(&self.settings) <= now {
            self.retransmit(now, slot);
        }
        self.reschedule(slot);
    }

    /// Ends the state of a session whose time is over.
    fn expire(&mut self, now: Mono, slot: u32) {
        let Some(session) = self.sessions.get(slot) else { return };
        match session.state {
            State::WillTopic | State::WillMessage(_) => {
                self.refuse(Refusal::State);
                self.finish(now, slot, ClientStatus::Lost);
            }
            State::Opening => {
                self.refuse(Refusal::Broker);
                self.close_broker_side(slot, false);
                self.fail(now, slot, ReturnCode::Congestion);
            }
            State::Active | State::Asleep(_) | State::Awake(_) => self.lose(now, slot),
            State::Disconnected => self.remove_session(slot, ClientStatus::Disconnected),
        }
    }
}
