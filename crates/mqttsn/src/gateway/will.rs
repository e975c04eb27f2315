//! Wills: the dialogue of CONNECT (6.2) and updates (6.4).

use std::sync::Arc;

use bytes::Bytes;
use viaduct_units::Mono;

use super::{Gateway, Refusal, session::State};
use crate::{
    Message,
    codec::{Packet, ReturnCode, WillTopic},
    topic::is_topic_name,
};

impl Gateway {
    /// Processes WILLTOPIC.
    pub(super) fn handle_will_topic(&mut self, now: Mono, slot: u32, topic: Option<&WillTopic<'_>>) {
        let Some(session) = self.sessions.get_mut(slot) else { return };
        if !matches!(session.state, State::WillTopic | State::WillMessage(_)) {
            return self.refuse(Refusal::State);
        }
        let Some(topic) = topic else {
            session.will = None;
            return self.open(now, slot);
        };
        if !is_topic_name(topic.topic) {
            self.refuse(Refusal::TopicName);
            return self.fail(now, slot, ReturnCode::NotSupported);
        }
        let peer = session.peer;
        self.sessions.enter(now, slot, State::WillMessage(message(topic, Bytes::new())));
        self.out.send(&peer, &Packet::WillMsgReq);
    }

    /// Processes WILLMSG.
    pub(super) fn handle_will_message(&mut self, now: Mono, slot: u32, payload: Bytes) {
        let Some(session) = self.sessions.get_mut(slot) else { return };
        match &session.state {
            State::WillMessage(will) => {
                session.will = Some(Message { payload, ..will.clone() });
                self.open(now, slot);
            }
            // CONNACK was lost.
            State::Active if session.only_connect => {
                self.out.send(&session.peer, &Packet::ConnAck { code: ReturnCode::Accepted });
            }
            _ => self.refuse(Refusal::State),
        }
    }

    /// Processes WILLTOPICUPD. From then on, the gateway holds the will, because MQTT has no update.
    pub(super) fn handle_will_topic_update(&mut self, slot: u32, topic: Option<&WillTopic<'_>>) {
        let Some(session) = self.sessions.get_mut(slot) else { return };
        let code = match topic {
            None => {
                session.will = None;
                ReturnCode::Accepted
            }
            Some(topic) if is_topic_name(topic.topic) => {
                let payload = session.will.take().map(|will| will.payload).unwrap_or_default();
                session.will = Some(message(topic, payload));
                ReturnCode::Accepted
            }
            Some(_) => ReturnCode::NotSupported,
        };
        self.finish_update(slot, code, &Packet::WillTopicResp { code });
    }

    /// Processes WILLMSGUPD.
    pub(super) fn handle_will_message_update(&mut self, slot: u32, payload: Bytes) {
        let Some(session) = self.sessions.get_mut(slot) else { return };
        let code = match &mut session.will {
            Some(will) => {
                will.payload = payload;
                ReturnCode::Accepted
            }
            None => ReturnCode::NotSupported,
        };
        self.finish_update(slot, code, &Packet::WillMsgResp { code });
    }

    fn finish_update(&mut self, slot: u32, code: ReturnCode, answer: &Packet<'_>) {
        let Some(session) = self.sessions.get_mut(slot) else { return };
        session.holds_will |= code == ReturnCode::Accepted;
        self.out.send(&session.peer, answer);
        self.record_session(slot);
    }
}

fn message(topic: &WillTopic<'_>, payload: Bytes) -> Message {
    Message { topic: Arc::from(topic.topic), payload, qos: topic.qos, retain: topic.retain }
}
