//! A connection to an external broker: for one client of the gateway, or for all.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tokio::sync::mpsc;
use viaduct_bus::{Counter, Meta, clock};
use viaduct_mqtt::QoS;
use viaduct_mqtt::packet::publish::PublishPacket;
use viaduct_mqtt::packet::suback::SubAckReasonCode;
use viaduct_mqtt::packet::subscribe::{SubscribePacket, SubscriptionOptions, TopicFilter};
use viaduct_mqtt::packet::unsubscribe::UnsubscribePacket;
use viaduct_mqttsn::gateway::Token;

use crate::encoding::Encoding;
use crate::mqtt::client::{Acknowledgement, Application, Change, ConnectionError, Outbox, Reception};
use crate::mqtt::message::{Message, Target};
use crate::mqtt::queue::Permit;
use crate::mqtt::receipt::Receipt;
use crate::mqtt::subscription;

/// Commands that wait for a connection.
pub(super) const COMMANDS_MAX: usize = 8192;
/// Part of them for acknowledgements, which must not be lost.
pub(super) const COMMANDS_RESERVED: usize = 4096;
/// Received messages and their octets that wait for the gateway.
const WAITING_MAX: usize = 4096;
const WAITING_OCTETS_MAX: usize = 16 << 20;

/// A command to a connection.
#[derive(Debug)]
pub(super) enum Command {
    /// Publish a message. The event [`Event::Published`] has the token.
    Publish { token: Option<Token>, topic: String, payload: Bytes, qos: QoS, retain: bool, key: Option<Arc<str>> },
    /// Forget a message that the event [`Event::Published`] was about: it will not be published again.
    Settle(Arc<str>),
    /// All messages of an earlier process that are published again were published.
    Continued,
    /// Subscribe to a filter, also if there is a subscription: the broker then sends retained messages again. Messages for the filter
    /// have the subscription identifier `number`. The event [`Event::Subscribed`] has the token.
    Subscribe { token: Token, filter: String, qos: QoS, number: Option<u32> },
    /// Acknowledge a received message.
    Acknowledge(Arrival),
    /// End a subscription. The event [`Event::Unsubscribed`] has the token.
    Unsubscribe { token: Option<Token>, filter: String },
}

/// Event of a connection.
#[derive(Debug)]
pub(super) enum Event {
    /// The connection is open. `resumes` is `true` if the broker has kept the session.
    Connected {
        resumes: bool,
    },
    /// The connection was lost or could not be opened. `is_refused` is `true` if the broker rejects the client.
    Failed {
        is_refused: bool,
    },
    /// The broker has accepted a message, or it was dropped.
    Published {
        token: Token,
        is_published: bool,
        key: Option<Arc<str>>,
    },
    /// The broker has granted a subscription, or rejected it.
    Subscribed {
        token: Token,
        granted: Option<QoS>,
    },
    Unsubscribed {
        token: Token,
    },
    /// A message. One of QoS 1 or 2 waits for [`Command::Acknowledge`].
    Received(PublishPacket, Option<Arrival>),
}

/// Identity of a received message of QoS 1 or 2 at the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    pub(super) qos: QoS,
    pub(super) packet_id: u16,
    /// Number of the connection, and of the session, on which it arrived.
    connection: u32,
    session: u32,
}

/// The path of events from all connections to the gateway.
#[derive(Clone)]
pub(super) struct Events {
    sender: mpsc::UnboundedSender<(u64, Event)>,
    /// Received messages that wait, and their octets. The other events are bounded by the commands.
    waiting: Arc<(AtomicUsize, AtomicUsize)>,
    dropped: Counter,
}

/// The gateway's end of [`Events`].
pub(super) struct EventQueue {
    receiver: mpsc::UnboundedReceiver<(u64, Event)>,
    waiting: Arc<(AtomicUsize, AtomicUsize)>,
}

impl Events {
    /// Returns both ends. `dropped` counts the received messages that the gateway is too slow for.
    pub(super) fn new(dropped: Counter) -> (Self, EventQueue) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let waiting = Arc::<(AtomicUsize, AtomicUsize)>::default();
        (Self { sender, waiting: Arc::clone(&waiting), dropped }, EventQueue { receiver, waiting })
    }

    fn send(&self, connection: u64, event: Event) {
        // An error means that the gateway has ended.
        _ = self.sender.send((connection, event));
    }

    /// Passes a received message on. Returns `false` if it was dropped because too many are waiting.
    fn offer(&self, connection: u64, packet: PublishPacket, arrival: Option<Arrival>) -> bool {
        let messages = self.waiting.0.fetch_add(1, Ordering::Relaxed);
        let octets = self.waiting.1.fetch_add(packet.payload.len(), Ordering::Relaxed);
        let has_room = messages < WAITING_MAX && octets < WAITING_OCTETS_MAX;
        if has_room {
            self.send(connection, Event::Received(packet, arrival));
        } else {
            release(&self.waiting, &packet);
            self.dropped.increment();
        }
        has_room
    }
}

/// Counts a message as not waiting.
fn release(waiting: &(AtomicUsize, AtomicUsize), packet: &PublishPacket) {
    waiting.0.fetch_sub(1, Ordering::Relaxed);
    waiting.1.fetch_sub(packet.payload.len(), Ordering::Relaxed);
}

impl EventQueue {
    /// Waits for the next event and the number of its connection. Cancelling the wait loses nothing.
    pub(super) async fn next(&mut self) -> Option<(u64, Event)> {
        self.receiver.recv().await.inspect(|(_, event)| self.taken(event))
    }

    /// Returns the next event, or `None` if none is waiting.
    pub(super) fn try_next(&mut self) -> Option<(u64, Event)> {
        self.receiver.try_recv().ok().inspect(|(_, event)| self.taken(event))
    }

    fn taken(&self, event: &Event) {
        if let Event::Received(packet, _) = event {
            release(&self.waiting, packet);
        }
    }
}

/// A subscription: its quality of service, and its identifier.
type Subscription = (QoS, Option<u32>);

/// A subscription that is being changed at the broker.
#[derive(Debug)]
enum Pending {
    Subscribe { token: Option<Token>, filter: String, subscription: Subscription },
    Unsubscribe { token: Option<Token>, filter: String },
}

/// The application of a connection.
pub(super) struct Upstream {
    /// Number of the connection.
    number: u64,
    commands: mpsc::Receiver<Command>,
    events: Events,
    /// Subscriptions of the session, with the highest quality of service that was asked for.
    filters: BTreeMap<String, Subscription>,
    /// Changes that were not sent yet, and the one that is not answered yet.
    changes: VecDeque<Pending>,
    sent: Option<Pending>,
    acknowledgements: VecDeque<Acknowledgement>,
    /// Numbers of the present connection and session.
    connection: u32,
    session: u32,
}

impl Upstream {
    pub(super) const fn new(number: u64, commands: mpsc::Receiver<Command>, events: Events) -> Self {
        Self {
            number,
            commands,
            events,
            filters: BTreeMap::new(),
            changes: VecDeque::new(),
            sent: None,
            acknowledgements: VecDeque::new(),
            connection: 0,
            session: 0,
        }
    }

    /// Returns the reporter for a connection that cannot be created.
    pub(super) fn failure(&self) -> Failure {
        Failure(self.number, self.events.clone())
    }

    fn report(&self, event: Event) {
        self.events.send(self.number, event);
    }

    fn message(
        &self,
        (topic, payload): (String, Bytes),
        (qos, retain): (QoS, bool),
        token: Option<Token>,
        key: Option<Arc<str>>,
    ) -> Message {
        let (events, number) = (self.events.clone(), self.number);
        let reported = key.clone();
        let receipt = token.map(|token| {
            Receipt::new(move |is_published| {
                events.send(number, Event::Published { token, is_published, key: reported });
            })
        });
        Message {
            target: Arc::new(Target { topic, qos, retain, encoding: Encoding::Native, content_type: String::new() }),
            payload,
            meta: Meta::from_origin(clock::tai()),
            correlation: Bytes::new(),
            properties: Vec::new(),
            key,
            permit: Permit::default(),
            receipt: receipt.unwrap_or_default(),
        }
    }
}

/// Reports that a connection could not be created.
pub(super) struct Failure(u64, Events);

impl Failure {
    pub(super) fn report(&self) {
        self.1.send(self.0, Event::Failed { is_refused: false });
    }
}

impl Application for Upstream {
    type Item = Command;

    fn try_next(&mut self) -> Option<Command> {
        self.commands.try_recv().ok()
    }

    async fn next(&mut self) -> Option<Command> {
        self.commands.recv().await
    }

    fn drain(&mut self) {}

    fn send(&mut self, command: Command, outbox: &mut Outbox) {
        match command {
            Command::Publish { token, topic, payload, qos, retain, key } => {
                _ = outbox.accept_once(self.message((topic, payload), (qos, retain), token, key));
            }
            Command::Settle(key) => outbox.settle(&key),
            Command::Continued => outbox.settle_restored(),
            Command::Subscribe { token, filter, qos, number } => {
                self.filters.insert(filter.clone(), (qos, number));
                self.changes.push_back(Pending::Subscribe { token: Some(token), filter, subscription: (qos, number) });
            }
            // The broker sends a message of an earlier connection again, under an identifier that it may use otherwise since.
            Command::Acknowledge(arrival) => {
                let is_current = match arrival.qos {
                    QoS::ExactlyOnce => arrival.session == self.session,
                    _ => arrival.connection == self.connection,
                };
                if is_current {
                    self.acknowledgements.push_back((arrival.qos, arrival.packet_id));
                }
            }
            Command::Unsubscribe { token, filter } => {
                self.filters.remove(&filter);
                self.changes.push_back(Pending::Unsubscribe { token, filter });
            }
        }
    }

    fn connected(&mut self, resumes: bool) {
        self.connection += 1;
        self.session += u32::from(!resumes);
        self.acknowledgements.retain(|(qos, _)| resumes && *qos == QoS::ExactlyOnce);
        // The broker may not have received the one that was not answered.
        self.changes.extend(self.sent.take());
        if !resumes {
            let missing = |filter: &String| {
                !self
                    .changes
                    .iter()
                    .any(|change| matches!(change, Pending::Subscribe { filter: own, .. } if own == filter))
            };
            let again = self.filters.iter().filter(|(filter, _)| missing(filter)).map(|(filter, subscription)| {
                Pending::Subscribe { token: None, filter: filter.clone(), subscription: *subscription }
            });
            let again: Vec<_> = again.collect();
            self.changes.extend(again);
        }
        self.report(Event::Connected { resumes });
    }

    fn failed(&mut self, error: &ConnectionError) {
        self.report(Event::Failed { is_refused: matches!(error, ConnectionError::Refused(_)) });
    }

    fn wants_goodput(&self) -> bool {
        false
    }

    fn set_goodput(&mut self, _: Option<f64>) {}

    fn subscribe(&self, _: u16) -> Option<SubscribePacket> {
        None
    }

    fn change(&mut self, packet_id: u16) -> Option<Change> {
        let next = self.changes.pop_front()?;
        let change = match &next {
            Pending::Subscribe { filter, subscription: (qos, number), .. } => {
                let options = SubscriptionOptions { qos: *qos, ..SubscriptionOptions::default() };
                let filter = TopicFilter::with_options(filter.clone(), options);
                let packet = SubscribePacket::new(packet_id).add_filter_with_options(filter);
                Change::Subscribe(match number {
                    Some(number) => packet.with_subscription_identifier(*number),
                    None => packet,
                })
            }
            Pending::Unsubscribe { filter, .. } => {
                Change::Unsubscribe(UnsubscribePacket::new(packet_id).add_filter(filter.clone()))
            }
        };
        self.sent = Some(next);
        Some(change)
    }

    fn subscribed(&mut self, codes: &[SubAckReasonCode]) {
        let Some(Pending::Subscribe { token, filter, .. }) = self.sent.take() else { return };
        let granted = codes.first().and_then(|code| subscription::granted(*code));
        if granted.is_none() {
            self.filters.remove(&filter);
        }
        if let Some(token) = token {
            self.report(Event::Subscribed { token, granted });
        }
    }

    fn unsubscribed(&mut self) {
        if let Some(Pending::Unsubscribe { token: Some(token), .. }) = self.sent.take() {
            self.report(Event::Unsubscribed { token });
        }
    }

    fn receive(&mut self, packet: &PublishPacket) -> Reception {
        let Self { number, connection, session, .. } = *self;
        let arrival = packet.packet_id.filter(|_| packet.qos != QoS::AtMostOnce);
        let arrival = arrival.map(|packet_id| Arrival { qos: packet.qos, packet_id, connection, session });
        let is_later = self.events.offer(number, packet.clone(), arrival) && arrival.is_some();
        if is_later { Reception::Later } else { Reception::Done(None) }
    }

    fn acknowledgement(&mut self) -> Option<Acknowledgement> {
        self.acknowledgements.pop_front()
    }

    fn refuse_long(&self, topic: &str) {
        tracing::debug!(topic, "an MQTT message is too long for MQTT-SN");
        self.events.dropped.increment();
    }
}
