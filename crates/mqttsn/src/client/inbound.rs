//! Messages and registrations of the gateway (6.10).

use std::sync::Arc;

use bytes::Bytes;
use viaduct_units::Mono;

use super::{Client, ClientRefusal};
use crate::{
    Message,
    codec::{Packet, Publish, Qos, ReturnCode, TopicId},
    limits::UNRELEASED_MAX,
    topic::is_topic_name,
};

impl Client {
    pub(super) fn handle_register(&mut self, now: Mono, topic: u16, message: u16, name: &str) {
        self.postpone_wake(now);
        let code = if !is_topic_name(name) {
            self.refuse(ClientRefusal::TopicName);
            ReturnCode::NotSupported
        } else if self.topics.insert(topic, name, self.settings.topics_max) {
            ReturnCode::Accepted
        } else {
            self.refuse(ClientRefusal::Topics);
            ReturnCode::NotSupported
        };
        self.send(now, &Packet::RegAck { topic, message, code });
    }

    pub(super) fn handle_publish(&mut self, now: Mono, publish: &Publish<'_>, datagram: &Bytes) {
        self.postpone_wake(now);
        let topic = match publish.topic {
            TopicId::Normal(id) => self.topics.names.get(&id).cloned(),
            TopicId::Predefined(id) => self.settings.predefined.get(&id).cloned(),
            TopicId::Short(name) => is_topic_name(name.name()).then(|| Arc::from(name.name())),
        };
        let Some(topic) = topic else {
            return self.refuse_publish(now, publish, ClientRefusal::TopicId, ReturnCode::InvalidTopicId);
        };
        let Some(qos) = publish.qos else { return self.refuse(ClientRefusal::Direction) };
        let message = Message { topic, payload: datagram.slice_ref(publish.data), qos, retain: publish.retain };
        match qos {
            Qos::AtMostOnce => self.deliver(message),
            Qos::AtLeastOnce => {
                let (topic, id) = (publish.topic.field(), publish.message);
                self.deliver(message);
                self.send(now, &Packet::PubAck { topic, message: id, code: ReturnCode::Accepted });
            }
            Qos::ExactlyOnce => self.handle_exactly_once(now, publish, message),
        }
    }

    fn handle_exactly_once(&mut self, now: Mono, publish: &Publish<'_>, message: Message) {
        if self.unreleased.contains(&publish.message) {
            self.counters.duplicates += 1;
        } else if self.unreleased.len() >= UNRELEASED_MAX {
            return self.refuse_publish(now, publish, ClientRefusal::Unreleased, ReturnCode::Congestion);
        } else {
            self.unreleased.insert(publish.message);
            self.deliver(message);
        }
        self.send(now, &Packet::PubRec { message: publish.message });
    }

    fn refuse_publish(&mut self, now: Mono, publish: &Publish<'_>, reason: ClientRefusal, code: ReturnCode) {
        self.refuse(reason);
        self.send(now, &Packet::PubAck { topic: publish.topic.field(), message: publish.message, code });
    }

    pub(super) fn handle_pubrel(&mut self, now: Mono, message: u16) {
        self.postpone_wake(now);
        self.unreleased.remove(&message);
        self.send(now, &Packet::PubComp { message });
    }
}
