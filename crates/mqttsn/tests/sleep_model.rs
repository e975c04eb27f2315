//! A sleeping client against a model: it sleeps, wakes, reboots and is out of range at random, and loses nothing.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the failure")]

mod common;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    time::Duration,
};

use common::{GatewayEnd, message};
use proptest::prelude::*;
use viaduct_mqttsn::{
    GatewaySettings,
    codec::{Connect, Packet, Qos, ReturnCode, TopicFilter, TopicId},
    gateway::Mode,
};
use viaduct_units::Mono;

#[derive(Clone, Copy, Debug)]
enum Action {
    /// The broker publishes a message.
    Publish { qos: u8, topic: usize },
    /// The client goes to sleep.
    Sleep,
    /// The client wakes up and sends PINGREQ.
    Wake,
    /// The client sends CONNECT.
    Connect,
    /// The client loses its topic ids.
    Reboot,
    /// What the gateway sends is lost from now on, or is not.
    OutOfRange(bool),
    /// Time passes, in ms.
    Wait(u64),
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let action = prop_oneof![
        6 => (0_u8..3, 0_usize..3).prop_map(|(qos, topic)| Action::Publish { qos, topic }),
        2 => Just(Action::Sleep),
        3 => Just(Action::Wake),
        1 => Just(Action::Connect),
        1 => Just(Action::Reboot),
        2 => any::<bool>().prop_map(Action::OutOfRange),
        2 => (0_u64..60_000).prop_map(Action::Wait),
    ];
    prop::collection::vec(action, 1..40)
}

/// A client as simple as the specification allows.
struct Model {
    end: GatewayEnd,
    now: Mono,
    asleep: bool,
    out_of_range: bool,
    topics: BTreeMap<u16, String>,
    unreleased: BTreeSet<u16>,
    received: Vec<String>,
    published: Vec<(String, u8)>,
    /// `true` if a message with QoS 0 may have been lost.
    lossy: bool,
}

const TOPICS: [&str; 3] = ["ab", "a/1", "a/2"];

fn address() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 5000))
}

impl Model {
    fn new() -> Self {
        let settings = GatewaySettings { mode: Mode::Aggregating, advertise: None, ..GatewaySettings::default() };
        let mut model = Self {
            end: GatewayEnd::new(settings),
            now: Mono(Duration::from_secs(1)),
            asleep: false,
            out_of_range: false,
            topics: BTreeMap::new(),
            unreleased: BTreeSet::new(),
            received: Vec::new(),
            published: Vec::new(),
            lossy: false,
        };
        model.connect();
        for (number, filter) in (1..).zip(["ab", "a/+"]) {
            let filter = TopicFilter::Name(filter);
            model.send(&Packet::Subscribe { dup: false, qos: Qos::ExactlyOnce, message: number, filter });
        }
        model
    }

    fn connect(&mut self) {
        self.asleep = false;
        let connect = Connect { will: false, clean: false, protocol: 1, duration: 0, client: "model" };
        self.send(&Packet::Connect(connect));
    }

    fn send(&mut self, packet: &Packet<'_>) {
        let sent = self.end.exchange(self.now, address(), packet);
        self.receive(sent);
    }

    fn receive(&mut self, datagrams: Vec<Vec<u8>>) {
        for octets in datagrams {
            let packet = Packet::decode(&octets).unwrap();
            if self.out_of_range {
                self.lossy |= matches!(packet, Packet::Publish(publish) if publish.qos == Some(Qos::AtMostOnce));
            } else {
                self.process(&packet);
            }
        }
    }

    fn process(&mut self, packet: &Packet<'_>) {
        match packet {
            Packet::Publish(publish) => {
                assert!(!self.asleep, "the client sleeps");
                let name = match publish.topic {
                    TopicId::Normal(id) => self.topics.get(&id).cloned(),
                    TopicId::Short(name) => Some(name.name().to_owned()),
                    TopicId::Predefined(_) => None,
                };
                let (topic, id) = (publish.topic.field(), publish.message);
                let Some(name) = name else {
                    self.lossy |= id == 0;
                    return self.send(&Packet::PubAck { topic, message: id, code: ReturnCode::InvalidTopicId });
                };
                let payload = std::str::from_utf8(publish.data).unwrap();
                assert!(payload.ends_with(&name), "{payload} arrives as {name}");
                if publish.qos != Some(Qos::ExactlyOnce) || self.unreleased.insert(id) {
                    self.received.push(payload.to_owned());
                }
                match publish.qos {
                    Some(Qos::AtLeastOnce) => {
                        self.send(&Packet::PubAck { topic, message: id, code: ReturnCode::Accepted });
                    }
                    Some(Qos::ExactlyOnce) => self.send(&Packet::PubRec { message: id }),
                    _ => (),
                }
            }
            Packet::PubRel { message } => {
                self.unreleased.remove(message);
                self.send(&Packet::PubComp { message: *message });
            }
            Packet::Register { topic, message, name } => {
                assert!(!self.asleep, "the client sleeps");
                self.topics.insert(*topic, (*name).to_owned());
                self.send(&Packet::RegAck { topic: *topic, message: *message, code: ReturnCode::Accepted });
            }
            Packet::PingResp => self.asleep = true,
            // The gateway has given up; it has kept the session.
            Packet::Disconnect { .. } if !self.asleep => self.connect(),
            _ => (),
        }
    }

    fn wait(&mut self, duration: Duration) {
        let end = self.now.plus(duration);
        while let Some(due) = self.end.gateway.poll_timeout().filter(|due| *due <= end) {
            self.now = due;
            self.end.gateway.handle_timeout(due);
            self.end.settle(due);
            let sent = self.end.transmits();
            self.receive(sent);
        }
        self.now = end;
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Publish { qos, topic } => {
                let payload = format!("{} {}", self.published.len(), TOPICS[topic]);
                self.published.push((payload.clone(), qos));
                let message = message(TOPICS[topic], &payload, Qos::from_level(qos).unwrap());
                self.end.publish(self.now, &message);
                let sent = self.end.transmits();
                self.receive(sent);
            }
            Action::Sleep => {
                self.asleep = true;
                self.send(&Packet::Disconnect { duration: Some(3600) });
            }
            Action::Wake if self.asleep => {
                self.asleep = false;
                self.send(&Packet::PingReq { client: "model" });
            }
            Action::Wake => (),
            Action::Connect => self.connect(),
            Action::Reboot => {
                self.topics.clear();
                self.connect();
            }
            Action::OutOfRange(out_of_range) => self.out_of_range = out_of_range,
            Action::Wait(ms) => self.wait(Duration::from_millis(ms)),
        }
    }

    /// Lets the client receive everything, and compares.
    fn finish(mut self) {
        self.out_of_range = false;
        self.wait(Duration::from_secs(100));
        self.connect();
        self.wait(Duration::from_secs(100));
        let counters = self.end.gateway.counters();
        let disconnected = counters.dropped_total();
        for (payload, qos) in &self.published {
            let copies = self.received.iter().filter(|received| *received == payload).count();
            match qos {
                0 => assert!(copies == 1 || copies == 0 && (self.lossy || disconnected > 0), "{payload}: {copies}"),
                1 => assert!(copies >= 1, "{payload} is lost"),
                _ => assert_eq!(copies, 1, "{payload}"),
            }
        }
        let mut first: Vec<&String> = Vec::new();
        for payload in &self.received {
            if !first.contains(&payload) {
                first.push(payload);
            }
        }
        let number = |payload: &&String| payload.split(' ').next().unwrap().parse::<usize>().unwrap();
        assert!(first.iter().map(number).is_sorted(), "messages have overtaken others: {first:?}");
        assert_eq!(self.end.gateway.buffered_octets(), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_sleeping_client_loses_nothing(actions in actions()) {
        let mut model = Model::new();
        for action in actions {
            model.act(action);
        }
        model.finish();
    }
}
