//! Subscriptions (6.9).

use std::sync::Arc;

use viaduct_units::Mono;

use super::{
    Gateway, GatewayEvent, Mode, Refusal, Token,
    session::{Request, SubAckMemo, Subscription},
};
use crate::{
    codec::{Packet, Qos, ReturnCode, TopicFilter},
    limits::REQUESTS_PER_CLIENT_MAX,
    topic::{has_wildcard, is_topic_filter},
};

impl Gateway {
    /// Processes SUBSCRIBE.
    pub(super) fn handle_subscribe(
        &mut self,
        now: Mono,
        slot: u32,
        dup: bool,
        qos: Qos,
        message: u16,
        filter: &TopicFilter<'_>,
    ) {
        let name = match self.filter_name(slot, filter) {
            Ok(name) => name,
            Err(reason) => return self.refuse_subscription(slot, message, reason),
        };
        let Some(session) = self.sessions.get(slot) else { return };
        if session.requests.iter().any(|request| request.message == Some(message) && request.topic.is_some()) {
            self.out.counters.duplicates += 1;
            return;
        }
        if dup
            && let Some(memo) =
                session.last_suback.as_ref().filter(|memo| memo.message == message && *memo.filter == *name)
        {
            self.out.counters.duplicates += 1;
            return self.out.send(&session.peer, &suback(memo));
        }
        match self.topic_of_subscription(slot, filter, &name) {
            Ok(topic) => self.subscribe(now, slot, Arc::from(name), qos, Some(message), topic),
            Err(reason) => self.refuse_subscription(slot, message, reason),
        }
    }

    /// Returns the topic filter of SUBSCRIBE or UNSUBSCRIBE as a text.
    fn filter_name(&self, slot: u32, filter: &TopicFilter<'_>) -> Result<String, Refusal> {
        let client = self.sessions.get(slot).map(|session| &*session.client_id);
        let name = match filter {
            TopicFilter::Name(name) => (*name).to_owned(),
            TopicFilter::Predefined(id) => self.predefined.name(client, *id).ok_or(Refusal::TopicId)?.to_string(),
            TopicFilter::Short(name) => name.name().to_owned(),
        };
        if is_topic_filter(&name) { Ok(name) } else { Err(Refusal::TopicName) }
    }

    /// Returns the topic id of a subscription for SUBACK, if there is room for it.
    fn topic_of_subscription(&mut self, slot: u32, filter: &TopicFilter<'_>, name: &str) -> Result<u16, Refusal> {
        let Some(session) = self.sessions.get_mut(slot) else { return Err(Refusal::State) };
        let known = session.subscriptions.iter().any(|subscription| *subscription.filter == *name);
        if session.requests.len() >= REQUESTS_PER_CLIENT_MAX
            || !known
                && session.subscriptions.len() + session.requests.len() >= self.settings.subscriptions_per_client_max
        {
            return Err(Refusal::Subscriptions);
        }
        match filter {
            TopicFilter::Predefined(id) => Ok(*id),
            TopicFilter::Short(_) => Ok(0),
            TopicFilter::Name(name) if has_wildcard(name) => Ok(0),
            TopicFilter::Name(name) => {
                let assigned = session.topics.assign(name, self.settings.topics_per_client_max);
                let id = assigned.ok_or(Refusal::Topics)?.id;
                session.topics.set_confirmed(id, true);
                self.record_topic(slot, id);
                Ok(id)
            }
        }
    }

    fn refuse_subscription(&mut self, slot: u32, message: u16, reason: Refusal) {
        self.refuse(reason);
        let code = match reason {
            Refusal::TopicId => ReturnCode::InvalidTopicId,
            Refusal::TopicName => ReturnCode::NotSupported,
            _ => ReturnCode::Congestion,
        };
        let Some(session) = self.sessions.get(slot) else { return };
        self.out.send(&session.peer, &Packet::SubAck { qos: Qos::AtMostOnce, topic: 0, message, code });
    }

    /// Asks the broker side for a subscription.
    fn subscribe(&mut self, now: Mono, slot: u32, filter: Arc<str>, qos: Qos, message: Option<u16>, topic: u16) {
        let Some(session) = self.sessions.get_mut(slot) else { return };
        let (client, number) = (session.handle, session.take_number());
        session.requests.push(Request { number, message, filter: Arc::clone(&filter), topic: Some(topic) });
        let qos = match self.settings.mode {
            Mode::Transparent => qos,
            // Messages that are retained arrive before the answer.
            Mode::Aggregating => {
                let since = message.map(|_| now);
                session.add_subscription(Subscription { filter: Arc::clone(&filter), qos, since });
                self.shared.add(&filter, slot, qos)
            }
        };
        self.out.event(GatewayEvent::Subscribe { client, filter, qos, token: Token { client, number } });
    }

    /// Processes the result of [`GatewayEvent::Subscribe`]: the granted quality of service.
    pub fn subscribed(&mut self, now: Mono, token: Token, result: Result<Qos, ReturnCode>) {
        let Some((slot, request)) = self.take_request(token) else { return };
        let Some(topic) = request.topic else { return };
        let Some(session) = self.sessions.get_mut(slot) else { return };
        let wanted = session.subscriptions.iter().find(|subscription| subscription.filter == request.filter);
        let (qos, code) = match (result, self.settings.mode) {
            (Ok(granted), Mode::Transparent) => (granted, ReturnCode::Accepted),
            (Ok(granted), Mode::Aggregating) => {
                (wanted.map_or(granted, |own| own.qos.min(granted)), ReturnCode::Accepted)
            }
            (Err(code), _) => (Qos::AtMostOnce, code),
        };
        if code == ReturnCode::Accepted {
            session.add_subscription(Subscription {
                filter: Arc::clone(&request.filter),
                qos,
                since: request.message.map(|_| now),
            });
        } else {
            self.remove_subscription(slot, &request.filter);
            self.refuse(Refusal::Broker);
        }
        let topic = if code == ReturnCode::Accepted { topic } else { 0 };
        if let (Some(message), Some(session)) = (request.message, self.sessions.get_mut(slot)) {
            let memo = SubAckMemo { filter: request.filter, message, topic, qos, code };
            self.out.send(&session.peer, &suback(&memo));
            session.last_suback = Some(memo);
        }
        self.record_session(slot);
    }

    fn take_request(&mut self, token: Token) -> Option<(u32, Request)> {
        let session = self.sessions.by_token(token)?;
        let index = session.requests.iter().position(|request| request.number == token.number)?;
        Some((token.client.slot, session.requests.remove(index)))
    }

    /// Removes a subscription of a client. Returns `true` if the broker side must unsubscribe.
    fn remove_subscription(&mut self, slot: u32, filter: &str) -> bool {
        let Some(session) = self.sessions.get_mut(slot) else { return false };
        session.subscriptions.retain(|subscription| *subscription.filter != *filter);
        match self.settings.mode {
            Mode::Transparent => true,
            Mode::Aggregating => self.shared.remove(filter, slot),
        }
    }

    /// Processes UNSUBSCRIBE.
    pub(super) fn handle_unsubscribe(&mut self, slot: u32, message: u16, filter: &TopicFilter<'_>) {
        let Ok(name) = self.filter_name(slot, filter) else {
            self.refuse(Refusal::TopicId);
            // There is no code in UNSUBACK: an unknown topic has no subscription.
            return self.send_unsuback(slot, message);
        };
        let Some(session) = self.sessions.get_mut(slot) else { return };
        if session.requests.iter().any(|request| request.message == Some(message) && request.topic.is_none()) {
            self.out.counters.duplicates += 1;
            return;
        }
        if session.requests.len() >= REQUESTS_PER_CLIENT_MAX {
            return self.refuse(Refusal::Subscriptions);
        }
        session.last_suback = None;
        if !self.remove_subscription(slot, &name) {
            self.record_session(slot);
            return self.send_unsuback(slot, message);
        }
        let Some(session) = self.sessions.get_mut(slot) else { return };
        let (client, number, filter) = (session.handle, session.take_number(), Arc::<str>::from(name));
        session.requests.push(Request { number, message: Some(message), filter: Arc::clone(&filter), topic: None });
        self.record_session(slot);
        self.out.event(GatewayEvent::Unsubscribe { client, filter, token: Some(Token { client, number }) });
    }

    /// Processes the answer to [`GatewayEvent::Unsubscribe`].
    pub fn unsubscribed(&mut self, token: Token) {
        let Some((slot, request)) = self.take_request(token) else { return };
        if let Some(message) = request.message {
            self.send_unsuback(slot, message);
        }
    }

    fn send_unsuback(&mut self, slot: u32, message: u16) {
        if let Some(session) = self.sessions.get(slot) {
            self.out.send(&session.peer, &Packet::UnsubAck { message });
        }
    }

    /// Subscribes again for a client whose session the broker does not have.
    pub(super) fn renew_subscriptions(&mut self, now: Mono, slot: u32) {
        let Some(session) = self.sessions.get(slot) else { return };
        for Subscription { filter, qos, .. } in session.subscriptions.clone() {
            self.subscribe(now, slot, filter, qos, None, 0);
        }
    }

    /// Forgets all subscriptions of a client. In transparent mode, they end with the broker's session.
    pub(super) fn release_subscriptions(&mut self, slot: u32) {
        let Some(session) = self.sessions.get_mut(slot) else { return };
        let (client, subscriptions) = (session.handle, std::mem::take(&mut session.subscriptions));
        session.requests.clear();
        if self.settings.mode == Mode::Aggregating {
            for Subscription { filter, .. } in subscriptions {
                if self.shared.remove(&filter, slot) {
                    self.out.event(GatewayEvent::Unsubscribe { client, filter, token: None });
                }
            }
        }
    }
}

impl super::session::Session {
    /// Adds a subscription, or replaces the one with the same filter.
    pub(super) fn add_subscription(&mut self, subscription: Subscription) {
        match self.subscriptions.iter_mut().find(|own| own.filter == subscription.filter) {
            Some(own) => *own = subscription,
            None => self.subscriptions.push(subscription),
        }
    }
}

fn suback(memo: &SubAckMemo) -> Packet<'_> {
    Packet::SubAck { qos: memo.qos, topic: memo.topic, message: memo.message, code: memo.code }
}
