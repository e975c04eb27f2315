//! Requests to the gateway: publish, subscribe, unsubscribe, and updates of the will (6.4 to 6.9).

use std::{collections::VecDeque, net::SocketAddr};

use bytes::Bytes;
use viaduct_units::Mono;

use super::{
    Client, ClientEvent, ClientRefusal, Failure, Outcome, Publication, RequestError, RequestId, Topic,
    connection::State,
};
use crate::{
    Message,
    codec::{Packet, Publish, Qos, ReturnCode, TopicFilter, TopicId, WillTopic},
    limits::REGISTRATIONS_PER_MESSAGE_MAX,
    retry::Retry,
    topic::{has_wildcard, is_topic_filter, is_topic_name},
};

/// Octets of the longest header before a payload or topic name.
const OVERHEAD: usize = 9;

/// Requests that wait.
#[derive(Debug, Default)]
pub(super) struct Queue {
    requests: VecDeque<Request>,
    octets: usize,
    last_id: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Request {
    /// Number, or `None` for a subscription that the client renews.
    id: Option<RequestId>,
    kind: Kind,
    /// Message id, once the request was sent.
    message: Option<u16>,
    /// `true` if PUBREC has arrived.
    received: bool,
    /// Number of answers with an invalid topic id.
    invalid_topic: u8,
}

#[derive(Clone, Debug)]
enum Kind {
    Publish(Publication),
    Subscribe(Topic, Qos),
    Unsubscribe(Topic),
    /// Topic and flags of the will.
    WillTopic(Option<Message>),
    WillMessage(Bytes),
}

/// The request that is being processed.
#[derive(Clone, Debug)]
pub(super) struct Current {
    request: Request,
    step: Step,
    message: u16,
    pub(super) retry: Retry,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// REGISTER was sent.
    Register,
    /// The request was sent.
    Request,
    /// PUBREL was sent.
    Release,
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    fn push_back(&mut self, request: Request) {
        self.octets += request.weight();
        self.requests.push_back(request);
    }

    fn push_front(&mut self, request: Request) {
        self.octets += request.weight();
        self.requests.push_front(request);
    }

    fn pop_front(&mut self) -> Option<Request> {
        let request = self.requests.pop_front()?;
        self.octets -= request.weight();
        Some(request)
    }

    /// Removes the renewals of subscriptions.
    fn remove_renewals(&mut self) {
        self.requests.retain(|request| request.id.is_some());
        self.octets = self.requests.iter().map(Request::weight).sum();
    }
}

impl Request {
    fn new(id: Option<RequestId>, kind: Kind) -> Self {
        Self { id, kind, message: None, received: false, invalid_topic: 0 }
    }

    fn weight(&self) -> usize {
        let topic = |topic: &Topic| if let Topic::Name(name) = topic { name.len() } else { 2 };
        64 + match &self.kind {
            Kind::Publish(publication) => topic(&publication.topic) + publication.payload.len(),
            Kind::Subscribe(name, _) | Kind::Unsubscribe(name) => topic(name),
            Kind::WillTopic(will) => will.as_ref().map_or(0, |will| will.topic.len()),
            Kind::WillMessage(payload) => payload.len(),
        }
    }
}

impl Client {
    /// Publishes a message with QoS 0, 1 or 2. [`ClientEvent::Finished`] follows.
    ///
    /// # Errors
    /// The message or its topic is not valid, or the queue is full.
    pub fn publish(&mut self, now: Mono, publication: Publication) -> Result<RequestId, RequestError> {
        if publication.payload.len() + OVERHEAD > self.settings.datagram_octets_max {
            return Err(RequestError::TooLarge);
        }
        self.check_topic(&publication.topic, is_topic_name)?;
        self.request(now, Kind::Publish(publication))
    }

    /// Publishes a message with QoS -1: without a connection, and without an answer (6.8).
    ///
    /// # Errors
    /// The topic is a name that needs a registration, or the message is too long.
    pub fn publish_without_connection(
        &mut self,
        gateway: SocketAddr,
        topic: &Topic,
        payload: &[u8],
    ) -> Result<(), RequestError> {
        let topic = match topic {
            Topic::Name(_) => return Err(RequestError::Topic),
            Topic::Predefined(id) => TopicId::Predefined(*id),
            Topic::Short(name) => TopicId::Short(*name),
        };
        if payload.len() + OVERHEAD > self.settings.datagram_octets_max {
            return Err(RequestError::TooLarge);
        }
        let publish = Publish { dup: false, qos: None, retain: false, topic, message: 0, data: payload };
        self.counters.published += 1;
        self.send_to(gateway, &Packet::Publish(publish));
        Ok(())
    }

    /// Subscribes to a topic, or to topics with wildcards. [`ClientEvent::Finished`] follows.
    ///
    /// # Errors
    /// The topic is not valid, the queue is full, or there are too many subscriptions.
    pub fn subscribe(&mut self, now: Mono, topic: Topic, qos: Qos) -> Result<RequestId, RequestError> {
        self.check_topic(&topic, is_topic_filter)?;
        let asked = self.queue.requests.iter().filter(|request| matches!(request.kind, Kind::Subscribe(..))).count();
        if !self.subscriptions.contains_key(&topic)
            && self.subscriptions.len() + asked >= self.settings.subscriptions_max
        {
            return Err(RequestError::TooManySubscriptions);
        }
        self.request(now, Kind::Subscribe(topic, qos))
    }

    /// Ends a subscription. [`ClientEvent::Finished`] follows.
    ///
    /// # Errors
    /// The topic is not valid, or the queue is full.
    pub fn unsubscribe(&mut self, now: Mono, topic: Topic) -> Result<RequestId, RequestError> {
        self.check_topic(&topic, is_topic_filter)?;
        self.request(now, Kind::Unsubscribe(topic))
    }

    /// Changes topic, quality of service and retain flag of the will, or deletes the will. The payload of `will` is not
    /// used. [`ClientEvent::Finished`] follows.
    ///
    /// # Errors
    /// The topic is not valid, or the queue is full.
    pub fn update_will_topic(&mut self, now: Mono, will: Option<Message>) -> Result<RequestId, RequestError> {
        if will.as_ref().is_some_and(|will| !is_topic_name(&will.topic)) {
            return Err(RequestError::Topic);
        }
        self.request(now, Kind::WillTopic(will))
    }

    /// Changes the payload of the will. [`ClientEvent::Finished`] follows.
    ///
    /// # Errors
    /// The payload is too long, or the queue is full.
    pub fn update_will_message(&mut self, now: Mono, payload: Bytes) -> Result<RequestId, RequestError> {
        if payload.len() + OVERHEAD > self.settings.datagram_octets_max {
            return Err(RequestError::TooLarge);
        }
        self.request(now, Kind::WillMessage(payload))
    }

    fn check_topic(&self, topic: &Topic, is_valid: fn(&str) -> bool) -> Result<(), RequestError> {
        let valid = match topic {
            Topic::Name(name) => is_valid(name) && name.len() + OVERHEAD <= self.settings.datagram_octets_max,
            Topic::Predefined(id) => self.settings.predefined.contains_key(id),
            Topic::Short(name) => is_valid(name.name()),
        };
        if valid { Ok(()) } else { Err(RequestError::Topic) }
    }

    fn request(&mut self, now: Mono, kind: Kind) -> Result<RequestId, RequestError> {
        if matches!(self.state, State::Disconnected) {
            return Err(RequestError::State);
        }
        let id = RequestId(self.queue.last_id + 1);
        let request = Request::new(Some(id), kind);
        let octets = self.queue.octets + request.weight();
        if self.queue.len() >= self.settings.queue_max || octets > self.settings.queue_octets_max {
            return Err(RequestError::QueueFull);
        }
        self.queue.last_id = id.0;
        self.queue.push_back(request);
        self.process_queue(now);
        Ok(id)
    }

    /// Starts requests until one waits for an answer, then goes to sleep if that is wanted.
    pub(super) fn process_queue(&mut self, now: Mono) {
        while self.state.sends_requests() && self.current.is_none() && self.paused_until.is_none() {
            match self.queue.pop_front() {
                Some(request) => self.start_request(now, request),
                None => {
                    if let Some(duration) = self.sleep_after.take() {
                        self.fall_asleep(now, duration);
                    }
                    return;
                }
            }
        }
    }

    /// Sends a request, or the registration that it needs.
    fn start_request(&mut self, now: Mono, mut request: Request) {
        let step = match &request.kind {
            Kind::Publish(_) if request.received => Step::Release,
            Kind::Publish(publication) if self.topic_id(&publication.topic).is_none() => Step::Register,
            Kind::Publish(publication) if publication.qos == Qos::AtMostOnce => {
                self.send_publish(now, &request, 0, false);
                return self.finish(&request, Ok(Outcome::Published));
            }
            _ => Step::Request,
        };
        let repeated = request.message.is_some();
        let message = match (step, request.message) {
            (Step::Request | Step::Release, Some(message)) => message,
            _ => self.take_message_id(),
        };
        if step == Step::Request {
            request.message = Some(message);
        }
        let retry = self.start_retry(now);
        let current = Current { request, step, message, retry };
        self.send_current(now, &current, repeated);
        self.current = Some(current);
    }

    fn topic_id(&self, topic: &Topic) -> Option<TopicId> {
        match topic {
            Topic::Name(name) => self.topics.ids.get(name).map(|id| TopicId::Normal(*id)),
            Topic::Predefined(id) => Some(TopicId::Predefined(*id)),
            Topic::Short(name) => Some(TopicId::Short(*name)),
        }
    }

    /// Sends the message of the current step.
    fn send_current(&mut self, now: Mono, current: &Current, dup: bool) {
        let message = current.message;
        match (&current.request.kind, current.step) {
            (Kind::Publish(_), Step::Release) => self.send(now, &Packet::PubRel { message }),
            (Kind::Publish(Publication { topic: Topic::Name(name), .. }), Step::Register) => {
                self.send(now, &Packet::Register { topic: 0, message, name });
            }
            (Kind::Publish(_), _) => self.send_publish(now, &current.request, message, dup),
            (Kind::Subscribe(topic, qos), _) => {
                self.send(now, &Packet::Subscribe { dup, qos: *qos, message, filter: filter(topic) });
            }
            (Kind::Unsubscribe(topic), _) => {
                self.send(now, &Packet::Unsubscribe { message, filter: filter(topic) });
            }
            (Kind::WillTopic(will), _) => {
                let topic = will.as_ref();
                let topic = topic.map(|will| WillTopic { qos: will.qos, retain: will.retain, topic: &will.topic });
                self.send(now, &Packet::WillTopicUpd(topic));
            }
            (Kind::WillMessage(message), _) => self.send(now, &Packet::WillMsgUpd { message }),
        }
    }

    fn send_publish(&mut self, now: Mono, request: &Request, message: u16, dup: bool) {
        let Kind::Publish(publication) = &request.kind else { return };
        let Some(topic) = self.topic_id(&publication.topic) else { return };
        let Publication { qos, retain, ref payload, .. } = *publication;
        self.send(now, &Packet::Publish(Publish { dup, qos: Some(qos), retain, topic, message, data: payload }));
    }

    /// Sends the current request again if its wait is over.
    pub(super) fn supervise_request(&mut self, now: Mono) {
        let Some(mut current) = self.current.take_if(|current| current.retry.due <= now) else { return };
        let repeats = self.repeats(now, &mut current.retry);
        if repeats {
            self.send_current(now, &current, true);
        }
        self.current = Some(current);
        if !repeats {
            self.lose_gateway(now, true);
        }
    }

    /// Returns the current request to the queue, for a new connection.
    pub(super) fn suspend_request(&mut self) {
        if let Some(current) = self.current.take() {
            self.queue.push_front(current.request);
        }
    }

    /// Renews the subscriptions before all other requests.
    pub(super) fn subscribe_again(&mut self) {
        self.queue.remove_renewals();
        for (topic, qos) in self.subscriptions.clone().into_iter().rev() {
            self.queue.push_front(Request::new(None, Kind::Subscribe(topic, qos)));
        }
    }

    /// Ends all requests with an error.
    pub(super) fn fail_all(&mut self, failure: Failure) {
        self.suspend_request();
        while let Some(request) = self.queue.pop_front() {
            self.finish(&request, Err(failure));
        }
    }

    /// Reports the result of a request.
    fn finish(&mut self, request: &Request, result: Result<Outcome, Failure>) {
        self.counters.published += u64::from(result == Ok(Outcome::Published));
        if let Some(request) = request.id {
            self.events.push_back(ClientEvent::Finished { request, result });
        }
    }

    /// Takes the current request if an answer belongs to it.
    fn take_answered(&mut self, now: Mono, step: Step, message: u16, is_kind: fn(&Kind) -> bool) -> Option<Request> {
        let matches = |current: &mut Current| {
            current.step == step && current.message == message && is_kind(&current.request.kind)
        };
        let Some(current) = self.current.take_if(matches) else {
            self.refuse(ClientRefusal::Unexpected);
            return None;
        };
        current.retry.answered(now, &mut self.round_trip);
        Some(current.request)
    }

    /// Processes a return code other than *accepted*.
    fn reject(&mut self, now: Mono, mut request: Request, code: ReturnCode) {
        if code != ReturnCode::Congestion {
            return self.finish(&request, Err(Failure::Rejected(code)));
        }
        request.message = None;
        self.queue.push_front(request);
        self.paused_until = Some(now.plus(self.settings.congestion_wait));
    }

    pub(super) fn handle_regack(&mut self, now: Mono, topic: u16, message: u16, code: ReturnCode) {
        let answered = self.take_answered(now, Step::Register, message, |kind| matches!(kind, Kind::Publish(_)));
        let Some(request) = answered else { return };
        if code != ReturnCode::Accepted {
            return self.reject(now, request, code);
        }
        let Kind::Publish(Publication { topic: Topic::Name(name), .. }) = &request.kind else { return };
        if self.topics.insert(topic, name, self.settings.topics_max) {
            self.queue.push_front(request);
        } else {
            self.finish(&request, Err(Failure::TooManyTopics));
        }
    }

    pub(super) fn handle_puback(&mut self, now: Mono, topic: u16, message: u16, code: ReturnCode) {
        if message == 0 {
            // The message is lost, but the next one with this topic is preceded by a registration.
            self.counters.unknown_topics += 1;
            return self.topics.remove(topic);
        }
        let is_expected = |kind: &Kind| matches!(kind, Kind::Publish(_));
        if code == ReturnCode::Accepted
            && let Some(Current { request: Request { kind: Kind::Publish(publication), .. }, .. }) = &self.current
            && publication.qos == Qos::ExactlyOnce
        {
            return self.refuse(ClientRefusal::Unexpected);
        }
        let Some(mut request) = self.take_answered(now, Step::Request, message, is_expected) else { return };
        match code {
            ReturnCode::Accepted => self.finish(&request, Ok(Outcome::Published)),
            ReturnCode::InvalidTopicId if request.invalid_topic + 1 < REGISTRATIONS_PER_MESSAGE_MAX => {
                self.topics.remove(topic);
                request.invalid_topic += 1;
                request.message = None;
                self.queue.push_front(request);
            }
            _ => self.reject(now, request, code),
        }
    }

    pub(super) fn handle_pubrec(&mut self, now: Mono, message: u16) {
        match &mut self.current {
            Some(current) if current.message == message && current.is_exactly_once() => {
                current.request.received = true;
                if current.step == Step::Request {
                    current.retry.answered(now, &mut self.round_trip);
                    let retry = self.start_retry(now);
                    if let Some(current) = &mut self.current {
                        (current.step, current.retry) = (Step::Release, retry);
                    }
                }
            }
            // PUBCOMP has arrived. The gateway waits for PUBREL.
            _ => self.refuse(ClientRefusal::Unexpected),
        }
        self.send(now, &Packet::PubRel { message });
    }

    pub(super) fn handle_pubcomp(&mut self, now: Mono, message: u16) {
        if let Some(request) = self.take_answered(now, Step::Release, message, |kind| matches!(kind, Kind::Publish(_)))
        {
            self.finish(&request, Ok(Outcome::Published));
        }
    }

    pub(super) fn handle_suback(&mut self, now: Mono, qos: Qos, topic: u16, message: u16, code: ReturnCode) {
        let is_subscribe = |kind: &Kind| matches!(kind, Kind::Subscribe(..));
        let Some(request) = self.take_answered(now, Step::Request, message, is_subscribe) else { return };
        if code != ReturnCode::Accepted {
            return self.reject(now, request, code);
        }
        let Kind::Subscribe(name, wanted) = &request.kind else { return };
        self.subscriptions.insert(name.clone(), *wanted);
        if let Topic::Name(name) = name
            && topic != 0
            && !has_wildcard(name)
            && !self.topics.insert(topic, name, self.settings.topics_max)
        {
            return self.finish(&request, Err(Failure::TooManyTopics));
        }
        self.finish(&request, Ok(Outcome::Subscribed(qos)));
    }

    pub(super) fn handle_unsuback(&mut self, now: Mono, message: u16) {
        let is_unsubscribe = |kind: &Kind| matches!(kind, Kind::Unsubscribe(_));
        let Some(request) = self.take_answered(now, Step::Request, message, is_unsubscribe) else { return };
        if let Kind::Unsubscribe(topic) = &request.kind {
            self.subscriptions.remove(topic);
        }
        self.finish(&request, Ok(Outcome::Unsubscribed));
    }

    /// Processes WILLTOPICRESP and WILLMSGRESP, which have no message id.
    pub(super) fn handle_will_response(&mut self, now: Mono, of_topic: bool, code: ReturnCode) {
        let Some(message) = self.current.as_ref().map(|current| current.message) else {
            return self.refuse(ClientRefusal::Unexpected);
        };
        let is_kind: fn(&Kind) -> bool = if of_topic {
            |kind| matches!(kind, Kind::WillTopic(_))
        } else {
            |kind| matches!(kind, Kind::WillMessage(_))
        };
        let Some(request) = self.take_answered(now, Step::Request, message, is_kind) else { return };
        if code != ReturnCode::Accepted {
            return self.reject(now, request, code);
        }
        let will = &mut self.settings.will;
        match &request.kind {
            Kind::WillTopic(topic) => {
                let payload = will.take().map(|will| will.payload).unwrap_or_default();
                *will = topic.clone().map(|topic| Message { payload, ..topic });
            }
            Kind::WillMessage(payload) => {
                if let Some(will) = will {
                    will.payload = payload.clone();
                }
            }
            _ => (),
        }
        self.finish(&request, Ok(Outcome::WillUpdated));
    }
}

impl Current {
    fn is_exactly_once(&self) -> bool {
        matches!(&self.request.kind, Kind::Publish(publication) if publication.qos == Qos::ExactlyOnce)
            && self.step != Step::Register
    }
}

/// Returns the field of SUBSCRIBE and UNSUBSCRIBE for a topic.
fn filter(topic: &Topic) -> TopicFilter<'_> {
    match topic {
        Topic::Name(name) => TopicFilter::Name(name),
        Topic::Predefined(id) => TopicFilter::Predefined(*id),
        Topic::Short(name) => TopicFilter::Short(*name),
    }
}
