//! A client and a gateway with a broker over an emulated link, in virtual time.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "shared by several tests")]

use std::{
    collections::{BTreeMap, VecDeque},
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use viaduct_mqttsn::{
    Client, ClientEvent, ClientSettings, Destination, Gateway, GatewayEvent, GatewaySettings, Message, Transmit,
    client::{Outcome, Publication, RequestId, Topic},
    codec::{Packet, Qos},
    gateway::{ClientHandle, ClientStatus, DeliveryOutcome, Mode},
    topic,
};
use viaduct_netem::{
    DatagramMachine, LinkSettings, Pair, PairSettings, Probability,
    link::{Delay, Loss},
};
use viaduct_units::Mono;

/// Returns a time in seconds.
pub fn s(seconds: u64) -> Mono {
    Mono(Duration::from_secs(seconds))
}

pub fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub fn message(topic: &str, payload: &str, qos: Qos) -> Message {
    Message { topic: Arc::from(topic), payload: Bytes::copy_from_slice(payload.as_bytes()), qos, retain: false }
}

/// Encodes a message.
pub fn datagram(packet: &Packet<'_>) -> Bytes {
    let mut buffer = vec![0; 2048];
    let length = packet.encode(&mut buffer).unwrap();
    buffer.truncate(length);
    buffer.into()
}

/// A broker that answers at once: it keeps the subscriptions of each connection and the retained messages.
#[derive(Debug, Default)]
pub struct Broker {
    /// Messages published, in order.
    pub published: Vec<Message>,
    /// Subscriptions by connection and filter.
    pub subscriptions: BTreeMap<(Option<ClientHandle>, Arc<str>), Qos>,
    pub wills: BTreeMap<ClientHandle, Message>,
    pub connections: Vec<(ClientHandle, Arc<str>)>,
    pub results: Vec<(u64, DeliveryOutcome)>,
    pub statuses: Vec<(Arc<str>, ClientStatus)>,
    /// Records, as a storage has them after a crash.
    pub records: Vec<Bytes>,
    pub unsubscribed: Vec<Arc<str>>,
    /// `false` while the broker does not answer.
    pub answers: bool,
    unanswered: VecDeque<GatewayEvent>,
    deliveries: u64,
}

/// A gateway with a broker.
#[derive(Debug)]
pub struct GatewayEnd {
    pub gateway: Gateway,
    pub broker: Broker,
}

impl GatewayEnd {
    pub fn new(settings: GatewaySettings) -> Self {
        let broker = Broker { answers: true, ..Broker::default() };
        Self { gateway: Gateway::new(settings, 7).unwrap(), broker }
    }

    /// Restarts the gateway with the records of its storage. The broker has lost all connections.
    pub fn restart(&mut self, now: Mono, settings: GatewaySettings) {
        let records: Vec<Bytes> = std::mem::take(&mut self.broker.records);
        let (gateway, restored) = Gateway::restore(settings, 8, now, records.iter().map(|record| &record[..])).unwrap();
        assert_eq!(restored.refused, 0, "{restored:?}");
        self.gateway = gateway;
        self.broker.records = self.gateway.snapshot();
        self.broker.subscriptions.clear();
        self.broker.unanswered.clear();
        self.settle(now);
    }

    /// Publishes a message at the broker.
    pub fn publish(&mut self, now: Mono, message: &Message) {
        if self.gateway.settings().mode == Mode::Aggregating {
            let qos = self.qos_of(None, &message.topic);
            if let Some(qos) = qos {
                self.broker.deliveries += 1;
                let message = Message { qos: qos.min(message.qos), ..message.clone() };
                self.gateway.route(now, &message, self.broker.deliveries);
            }
        } else {
            let connections: Vec<_> = self.broker.connections.iter().map(|(client, _)| *client).collect();
            for client in connections {
                if let Some(qos) = self.qos_of(Some(client), &message.topic) {
                    self.broker.deliveries += 1;
                    let message = Message { qos: qos.min(message.qos), ..message.clone() };
                    self.gateway.deliver(now, client, message, self.broker.deliveries);
                }
            }
        }
        self.settle(now);
    }

    fn qos_of(&self, connection: Option<ClientHandle>, name: &str) -> Option<Qos> {
        let own = self.broker.subscriptions.iter().filter(|((owner, _), _)| *owner == connection);
        own.filter(|((_, filter), _)| topic::matches(filter, name)).map(|(_, qos)| *qos).max()
    }

    /// Lets the broker answer again.
    pub fn answer(&mut self, now: Mono) {
        self.broker.answers = true;
        while let Some(event) = self.broker.unanswered.pop_front() {
            self.process(now, event);
        }
        self.settle(now);
    }

    /// Answers all events of the gateway.
    pub fn settle(&mut self, now: Mono) {
        while let Some(event) = self.gateway.poll_event() {
            match event {
                GatewayEvent::Record { record, token } => {
                    self.broker.records.push(record);
                    if let Some(token) = token {
                        self.gateway.persisted(token);
                    }
                }
                GatewayEvent::Status { client_id, status, .. } => self.broker.statuses.push((client_id, status)),
                GatewayEvent::Delivered { delivery, outcome } => self.broker.results.push((delivery, outcome)),
                event if self.broker.answers => self.process(now, event),
                event => self.broker.unanswered.push_back(event),
            }
        }
    }

    fn process(&mut self, now: Mono, event: GatewayEvent) {
        let aggregating = self.gateway.settings().mode == Mode::Aggregating;
        let connection = |client| (!aggregating).then_some(client);
        match event {
            GatewayEvent::Connect { client, client_id, clean, will, .. } => {
                self.broker.connections.retain(|(other, _)| *other != client);
                self.broker.connections.push((client, client_id));
                self.broker.wills.remove(&client);
                self.broker.wills.extend(will.map(|will| (client, will)));
                if clean {
                    self.broker.subscriptions.retain(|(owner, _), _| *owner != Some(client));
                }
                let present = self.broker.subscriptions.keys().any(|(owner, _)| *owner == Some(client));
                self.gateway.connected(now, client, Ok(present));
            }
            GatewayEvent::Publish { message, token, .. } => {
                self.broker.published.push(message);
                if let Some(token) = token {
                    self.gateway.published(token, Ok(()));
                }
            }
            GatewayEvent::Subscribe { client, filter, qos, token } => {
                self.broker.subscriptions.insert((connection(client), filter), qos);
                self.gateway.subscribed(now, token, Ok(qos));
            }
            GatewayEvent::Unsubscribe { client, filter, token } => {
                self.broker.subscriptions.remove(&(connection(client), Arc::clone(&filter)));
                self.broker.unsubscribed.push(filter);
                if let Some(token) = token {
                    self.gateway.unsubscribed(token);
                }
            }
            GatewayEvent::Disconnect { client, publish_will } => {
                self.broker.connections.retain(|(other, _)| *other != client);
                let will = self.broker.wills.remove(&client);
                self.broker.published.extend(will.filter(|_| publish_will));
            }
            GatewayEvent::Record { .. } | GatewayEvent::Status { .. } | GatewayEvent::Delivered { .. } => (),
        }
    }

    /// Returns the payloads of the messages that were published with a topic.
    pub fn payloads(&self, topic: &str) -> Vec<String> {
        let messages = self.broker.published.iter().filter(|message| &*message.topic == topic);
        messages.map(|message| String::from_utf8(message.payload.to_vec()).unwrap()).collect()
    }

    /// Processes a datagram and returns the answers, decoded to their debug text.
    pub fn exchange(&mut self, now: Mono, from: SocketAddr, packet: &Packet<'_>) -> Vec<Vec<u8>> {
        self.gateway.handle_datagram(now, from, &datagram(packet));
        self.settle(now);
        self.transmits()
    }

    pub fn transmits(&mut self) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| self.gateway.poll_transmit()).map(|transmit| transmit.datagram.to_vec()).collect()
    }

    /// Advances the time to `end` and returns what was sent.
    pub fn advance(&mut self, end: Mono) -> Vec<Vec<u8>> {
        let mut sent = Vec::new();
        while let Some(due) = self.gateway.poll_timeout().filter(|due| *due <= end) {
            self.gateway.handle_timeout(due);
            self.settle(due);
            sent.extend(self.transmits());
        }
        sent
    }
}

fn unicast(transmit: Transmit, broadcast: SocketAddr) -> (SocketAddr, Bytes) {
    let to = match transmit.to {
        Destination::Unicast(to) => to,
        Destination::Broadcast { reply_to, .. } => reply_to.unwrap_or(broadcast),
    };
    (to, transmit.datagram)
}

impl DatagramMachine for GatewayEnd {
    fn handle_datagram(&mut self, now: Mono, from: SocketAddr, datagram: &Bytes) {
        self.gateway.handle_datagram(now, from, datagram);
        self.settle(now);
    }

    fn handle_timeout(&mut self, now: Mono) {
        self.gateway.handle_timeout(now);
        self.settle(now);
    }

    fn poll_transmit(&mut self) -> Option<(SocketAddr, Bytes)> {
        Some(unicast(self.gateway.poll_transmit()?, PairSettings::default().address_a))
    }

    fn poll_timeout(&self) -> Option<Mono> {
        self.gateway.poll_timeout()
    }
}

/// A client and its events.
#[derive(Debug)]
pub struct ClientEnd {
    pub client: Client,
    pub events: Vec<ClientEvent>,
}

impl ClientEnd {
    pub fn new(settings: ClientSettings) -> Self {
        Self { client: Client::new(settings, 3).unwrap(), events: Vec::new() }
    }

    fn settle(&mut self) {
        self.events.extend(std::iter::from_fn(|| self.client.poll_event()));
    }

    /// Returns the payloads of the messages that have arrived.
    pub fn payloads(&self) -> Vec<String> {
        let messages = self.events.iter().filter_map(|event| match event {
            ClientEvent::Message(message) => Some(String::from_utf8(message.payload.to_vec()).unwrap()),
            _ => None,
        });
        messages.collect()
    }

    /// Returns the number of requests that succeeded.
    pub fn finished(&self, outcome: Outcome) -> usize {
        let is_result =
            |event: &&ClientEvent| matches!(event, ClientEvent::Finished { result: Ok(own), .. } if *own == outcome);
        self.events.iter().filter(is_result).count()
    }
}

impl DatagramMachine for ClientEnd {
    fn handle_datagram(&mut self, now: Mono, from: SocketAddr, datagram: &Bytes) {
        self.client.handle_datagram(now, from, datagram);
        self.settle();
    }

    fn handle_timeout(&mut self, now: Mono) {
        self.client.handle_timeout(now);
        self.settle();
    }

    fn poll_transmit(&mut self) -> Option<(SocketAddr, Bytes)> {
        let transmit = self.client.poll_transmit()?;
        self.settle();
        Some(unicast(transmit, PairSettings::default().address_b))
    }

    fn poll_timeout(&self) -> Option<Mono> {
        self.client.poll_timeout()
    }
}

/// A client at `a` and a gateway at `b`.
pub type System = Pair<ClientEnd, GatewayEnd>;

/// Returns a client and a gateway over a link with the same loss in both directions and a round trip of 30 ms.
pub fn system(loss: f64, client: ClientSettings, gateway: GatewaySettings) -> System {
    seeded_system(1, loss, client, gateway)
}

/// Returns a [`system`] whose link loses other packets for each seed.
pub fn seeded_system(seed: u64, loss: f64, client: ClientSettings, gateway: GatewaySettings) -> System {
    let link = LinkSettings {
        delay: Delay { base: Duration::from_millis(15), ..Delay::default() },
        loss: Loss::Independent(Probability::new(loss).unwrap()),
        ..LinkSettings::default()
    };
    let settings = PairSettings { seed, ..PairSettings::symmetric(link) };
    Pair::new(settings, ClientEnd::new(client), GatewayEnd::new(gateway)).unwrap()
}

/// Connects the client.
pub fn connect(system: &mut System) {
    let gateway = system.address_b();
    system.with_a(|end, now| end.client.connect(now, Some(gateway))).unwrap();
    system.run_for(secs(30));
    let gateway = system.address_b();
    assert!(system.a().events.contains(&ClientEvent::Connected { gateway }), "{:?}", system.a().events);
}

pub fn publish(system: &mut System, topic: &str, payload: &str, qos: Qos) -> RequestId {
    let payload = Bytes::copy_from_slice(payload.as_bytes());
    let publication = Publication { topic: Topic::from(topic), payload, qos, retain: false };
    system.with_a(|end, now| end.client.publish(now, publication)).unwrap()
}

pub fn subscribe(system: &mut System, topic: &str, qos: Qos) {
    system.with_a(|end, now| end.client.subscribe(now, Topic::from(topic), qos)).unwrap();
    system.run_for(secs(30));
    assert!(system.a().finished(Outcome::Subscribed(qos)) > 0, "{:?}", system.a().events);
}

/// Publishes a message at the broker.
pub fn broker_publishes(system: &mut System, topic: &str, payload: &str, qos: Qos) {
    system.with_b(|end, now| end.publish(now, &message(topic, payload, qos)));
}
