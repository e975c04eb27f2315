//! MQTT-SN: messages, records of a gateway's state, and the machines, which process a sequence of datagrams.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use viaduct_components::kinds::mqttsn_gateway::fuzzing::{self, Restored};
use viaduct_mqttsn::{
    Client, ClientEvent, ClientSettings, Destination, Forwarder, Gateway, GatewayEvent, GatewaySettings, Message,
    client::{Publication, Topic},
    codec::{Connect, Encapsulated, Packet, Publish, Qos, ReturnCode, ShortTopic, TopicFilter, TopicId, WillTopic},
    gateway::{Acknowledge, BufferSettings, ClientHandle, Mode, PredefinedTopics},
};
use viaduct_units::Mono;

use crate::teleop::Records;

/// Datagrams that a machine may send after one input.
const TRANSMITS_MAX: usize = 4096;
/// Time that a unit of a record's time stands for: keep-alive times and sleep durations end.
const TIME_FACTOR: u32 = 200;

/// Checks a message: encoding a decoded one and decoding it again results in the same.
pub fn codec(octets: &[u8]) {
    let Ok(packet) = Packet::decode(octets) else { return };
    let mut buffer = vec![0; octets.len()];
    let length = packet.encode(&mut buffer).expect("a message is not longer than its datagram");
    assert_eq!(length, packet.encoded_len());
    assert_eq!(Packet::decode(&buffer[..length]), Ok(packet));
}

/// Checks the records of a gateway's state: a restored gateway has limited state, and its snapshot restores the same.
pub fn records(octets: &[u8]) {
    let records: Vec<&[u8]> = Records(octets).map(|(_, record)| record).collect();
    for mode in [Mode::Transparent, Mode::Aggregating] {
        let (mut gateway, restored) = Gateway::restore(settings(mode), 1, Mono::default(), records.iter().copied())
            .expect("the settings are valid");
        check(&gateway);
        assert!(restored.refused <= records.len());
        let snapshot = gateway.snapshot();
        let again = Gateway::restore(settings(mode), 1, Mono::default(), snapshot.iter().map(|record| &record[..]));
        let (again, repeated) = again.expect("the settings are valid");
        assert_eq!((repeated.sessions, repeated.refused), (restored.sessions, 0));
        assert_eq!(again.buffered_octets(), gateway.buffered_octets());
        let mut owner = Owner::default();
        owner.settle(Mono::default(), &mut gateway);
        pass_deadlines(&mut gateway, &mut owner, Mono(Duration::from_secs(100_000)));
    }
}

/// Checks the history of a gateway on disk: it has at most one arrival for each record, and a snapshot restores the same history.
pub fn history(octets: &[u8]) {
    let records: Vec<Vec<u8>> = Records(octets).map(|(_, record)| record.to_vec()).collect();
    let Restored { snapshot, other } = fuzzing::history(&records);
    assert!(snapshot.len() + other.len() <= records.len());
    assert!(other.iter().all(|record| records.contains(record)));
    let again = fuzzing::history(&snapshot);
    assert_eq!((sorted(again.snapshot), again.other), (sorted(snapshot), Vec::new()));
}

fn sorted(mut records: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    records.sort_unstable();
    records
}

fn settings(mode: Mode) -> GatewaySettings {
    GatewaySettings {
        mode,
        acknowledge: if mode == Mode::Transparent { Acknowledge::AfterBroker } else { Acknowledge::AfterStorage },
        predefined: PredefinedTopics::from([(1, Arc::from("predefined/1"))]),
        without_connection: true,
        advertise: Some(Duration::from_secs(60_000)),
        clients_max: 5,
        clients_per_address_max: 3,
        connecting_max: 2,
        topics_per_client_max: 4,
        subscriptions_per_client_max: 3,
        in_flight_per_client_max: 2,
        buffer: BufferSettings {
            messages_per_client_max: 4,
            octets_per_client_max: 700,
            octets_max: 2000,
            ..BufferSettings::default()
        },
        ..GatewaySettings::default()
    }
}

/// Checks the limits of a gateway's state.
fn check(gateway: &Gateway) {
    let settings = gateway.settings();
    assert!(gateway.sessions() <= settings.clients_max && gateway.buffered_octets() <= settings.buffer.octets_max);
    for client in gateway.clients() {
        assert!(client.queued <= settings.buffer.messages_per_client_max);
        assert!(client.subscriptions <= settings.subscriptions_per_client_max);
    }
}

/// The broker side, which answers most requests at once, and delivers what is published to the publisher.
#[derive(Default)]
struct Owner {
    requests: u32,
    deliveries: u64,
    last: Option<ClientHandle>,
}

impl Owner {
    fn settle(&mut self, now: Mono, gateway: &mut Gateway) {
        for _ in 0..TRANSMITS_MAX {
            let Some(event) = gateway.poll_event() else {
                self.send(gateway);
                return check(gateway);
            };
            self.requests += 1;
            self.answer(now, gateway, &event);
        }
        panic!("a gateway asks without limit");
    }

    fn answer(&mut self, now: Mono, gateway: &mut Gateway, event: &GatewayEvent) {
        // Each seventh answer is missing.
        if self.requests.is_multiple_of(7) {
            return;
        }
        match *event {
            GatewayEvent::Connect { client, .. } => {
                self.last = Some(client);
                let refused = self.requests.is_multiple_of(5);
                gateway.connected(now, client, if refused { Err(ReturnCode::Congestion) } else { Ok(false) });
            }
            GatewayEvent::Publish { token: Some(token), .. } => gateway.published(token, Ok(())),
            GatewayEvent::Subscribe { token, qos, .. } => gateway.subscribed(now, token, Ok(qos)),
            GatewayEvent::Unsubscribe { token: Some(token), .. } => gateway.unsubscribed(token),
            GatewayEvent::Record { token: Some(token), .. } => gateway.persisted(token),
            _ => (),
        }
    }

    fn deliver(&mut self, now: Mono, gateway: &mut Gateway, number: usize) {
        let topic = ["ab", "down/1", "down/2", "predefined/1"][number % 4];
        let qos = Qos::from_level((number % 3) as u8).unwrap_or_default();
        let message = Message { topic: Arc::from(topic), payload: Bytes::from_static(&[1; 90]), qos, retain: false };
        self.deliveries += 1;
        match (gateway.settings().mode, self.last) {
            (Mode::Aggregating, _) => gateway.route(now, &message, self.deliveries),
            (Mode::Transparent, Some(client)) => gateway.deliver(now, client, message, self.deliveries),
            (Mode::Transparent, None) => (),
        }
    }

    fn send(&mut self, gateway: &mut Gateway) {
        for _ in 0..TRANSMITS_MAX {
            let Some(transmit) = gateway.poll_transmit() else { return };
            assert!(Packet::decode(&transmit.datagram).is_ok(), "{transmit:?}");
        }
        panic!("a gateway sends without limit");
    }
}

/// Processes the deadlines before `now`. The same deadline must not occur twice.
fn pass_deadlines(gateway: &mut Gateway, owner: &mut Owner, now: Mono) {
    while let Some(due) = gateway.poll_timeout().filter(|due| *due <= now) {
        gateway.handle_timeout(due);
        owner.settle(due, gateway);
        assert!(gateway.poll_timeout().is_none_or(|next| next > due), "a deadline is repeated");
    }
}

fn gateway_in(mode: Mode, octets: &[u8]) {
    let mut gateway = Gateway::new(settings(mode), 1).expect("the settings are valid");
    let (mut owner, mut now) = (Owner::default(), Mono(Duration::from_secs(100)));
    for (number, (after, datagram)) in Records(octets).enumerate() {
        // The first octet selects the sender.
        let Some((peer, datagram)) = datagram.split_first() else { continue };
        now = now.plus(after * TIME_FACTOR);
        pass_deadlines(&mut gateway, &mut owner, now);
        gateway.handle_datagram(now, address(peer % 4), &Bytes::copy_from_slice(datagram));
        owner.settle(now, &mut gateway);
        if number % 2 == 1 {
            owner.deliver(now, &mut gateway, number);
            owner.settle(now, &mut gateway);
        }
    }
    pass_deadlines(&mut gateway, &mut owner, now.plus(Duration::from_secs(400_000)));
    assert_eq!(gateway.buffered_octets(), 0, "each session ends");
    assert_eq!(gateway.sessions(), 0);
}

/// Checks a gateway.
pub fn gateway(octets: &[u8]) {
    gateway_in(Mode::Transparent, octets);
    gateway_in(Mode::Aggregating, octets);
}

/// Checks a client. The first datagram only sets the time.
pub fn client(octets: &[u8]) {
    let settings = ClientSettings {
        queue_max: 4,
        topics_max: 3,
        subscriptions_max: 2,
        keep_alive: Duration::from_secs(5),
        will: Some(message("will")),
        ..ClientSettings::default()
    };
    let mut client = Client::new(settings, 1).expect("the settings are valid");
    let mut now = Mono(Duration::from_secs(100));
    client.connect(now, Some(address(0))).expect("the client is not connected");
    for (number, (after, datagram)) in Records(octets).enumerate() {
        now = now.plus(after * TIME_FACTOR);
        pass_deadlines_of_client(&mut client, now);
        command(&mut client, now, number);
        let from = if number % 16 == 15 { address(1) } else { address(0) };
        client.handle_datagram(now, from, &Bytes::copy_from_slice(datagram));
        settle_client(&mut client);
    }
    pass_deadlines_of_client(&mut client, now.plus(Duration::from_secs(300)));
    let _ = client.disconnect(now.plus(Duration::from_secs(300)));
    settle_client(&mut client);
}

/// Makes a request; an error means that the state does not allow it.
fn command(client: &mut Client, now: Mono, number: usize) {
    let qos = Qos::from_level((number % 3) as u8).unwrap_or_default();
    let publication = Publication { topic: Topic::from("up"), payload: Bytes::from_static(b"x"), qos, retain: false };
    let _ = match number % 8 {
        0 => client.subscribe(now, Topic::from("down/#"), qos).map(drop),
        4 => client.sleep(now, Duration::from_secs(30)),
        5 => client.wake(now),
        6 => client.resume(now),
        7 => client.update_will_message(now, Bytes::from_static(b"y")).map(drop),
        _ => client.publish(now, publication).map(drop),
    };
    settle_client(client);
}

fn pass_deadlines_of_client(client: &mut Client, now: Mono) {
    while let Some(due) = client.poll_timeout().filter(|due| *due <= now) {
        client.handle_timeout(due);
        settle_client(client);
        assert!(client.poll_timeout().is_none_or(|next| next > due), "a deadline is repeated");
    }
}

fn settle_client(client: &mut Client) {
    for _ in 0..TRANSMITS_MAX {
        let Some(transmit) = client.poll_transmit() else {
            while let Some(event) = client.poll_event() {
                assert!(!matches!(&event, ClientEvent::Message(message) if message.topic.is_empty()), "{event:?}");
            }
            assert!(client.pending() <= 8 && client.gateways().len() <= 16);
            return;
        };
        assert!(Packet::decode(&transmit.datagram).is_ok(), "{transmit:?}");
    }
    panic!("a client sends without limit");
}

/// Checks a forwarder: at most one datagram leaves for each that arrives.
pub fn forwarder(octets: &[u8]) {
    let mut forwarder = Forwarder::new(address(0));
    for (number, (_, datagram)) in Records(octets).enumerate() {
        forwarder.handle_datagram(address((number % 2) as u8), &Bytes::copy_from_slice(datagram));
        if let Some(transmit) = forwarder.poll_transmit() {
            assert!(Packet::decode(&transmit.datagram).is_ok());
            let up = transmit.to == Destination::Unicast(address(0));
            assert!(!up || number % 2 == 1, "a message returns to the gateway");
        }
        assert_eq!(forwarder.poll_transmit(), None);
    }
}

fn address(number: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1 + number / 2], 1000 + u16::from(number)))
}

fn message(topic: &str) -> Message {
    Message { topic: Arc::from(topic), payload: Bytes::from_static(b"x"), qos: Qos::AtLeastOnce, retain: false }
}

fn datagram(packet: &Packet<'_>) -> Vec<u8> {
    let mut buffer = vec![0; packet.encoded_len()];
    packet.encode(&mut buffer).expect("the buffer is long enough");
    buffer
}

/// Returns datagrams with the header of [`Records`], preceded by their sender if there is one.
fn sequence<'a>(packets: impl IntoIterator<Item = (Option<u8>, Packet<'a>)>) -> Vec<u8> {
    record(packets.into_iter().map(|(peer, packet)| [Vec::from_iter(peer), datagram(&packet)].concat()))
}

fn record(datagrams: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut records = Vec::new();
    for octets in datagrams {
        records.extend_from_slice(&u16::try_from(octets.len()).expect("a datagram is short").to_be_bytes());
        records.push(9);
        records.extend_from_slice(&octets);
    }
    records
}

fn connect(client: &str, will: bool, clean: bool) -> Packet<'_> {
    Packet::Connect(Connect { will, clean, protocol: 1, duration: 10, client })
}

fn publish(qos: Option<Qos>, topic: TopicId, message: u16) -> Packet<'static> {
    Packet::Publish(Publish { dup: false, qos, retain: false, topic, message, data: b"21" })
}

fn subscribe(qos: Qos, name: &str) -> Packet<'_> {
    Packet::Subscribe { dup: false, qos, message: 7, filter: TopicFilter::Name(name) }
}

const WILL: WillTopic<'_> = WillTopic { qos: Qos::AtLeastOnce, retain: true, topic: "will" };
const ACCEPTED: ReturnCode = ReturnCode::Accepted;

/// Returns a session of a client: what it sends.
fn session(client: &'static str) -> Vec<Packet<'static>> {
    let short = TopicId::Short(ShortTopic::from_name("ab").expect("the name has two octets"));
    vec![
        connect(client, true, false),
        Packet::WillTopic(Some(WILL)),
        Packet::WillMsg { message: b"gone" },
        Packet::Register { topic: 0, message: 1, name: "up" },
        publish(Some(Qos::AtMostOnce), TopicId::Normal(1), 0),
        publish(Some(Qos::AtLeastOnce), TopicId::Normal(1), 2),
        publish(Some(Qos::ExactlyOnce), short, 3),
        Packet::PubRel { message: 3 },
        subscribe(Qos::ExactlyOnce, "down/#"),
        Packet::RegAck { topic: 2, message: 5, code: ACCEPTED },
        Packet::PubAck { topic: 2, message: 6, code: ReturnCode::InvalidTopicId },
        Packet::WillTopicUpd(None),
        Packet::WillMsgUpd { message: b"new" },
        Packet::Disconnect { duration: Some(20) },
        Packet::PingReq { client },
        Packet::PubRec { message: 6 },
        Packet::PubComp { message: 6 },
        connect(client, false, true),
        Packet::Unsubscribe { message: 8, filter: TopicFilter::Name("down/#") },
        Packet::PingReq { client: "" },
        Packet::Disconnect { duration: None },
    ]
}

/// Returns one message of each kind.
pub(crate) fn datagrams() -> Vec<Vec<u8>> {
    let mut datagrams: Vec<_> = session("robot").iter().chain(&answers()).map(datagram).collect();
    datagrams.push(datagram(&Packet::SearchGw { radius: 1 }));
    datagrams.push(datagram(&Packet::WillMsg { message: &[7; 300] }));
    datagrams.push(datagram(&publish(None, TopicId::Predefined(1), 0)));
    datagrams.push(datagram(&Packet::Encapsulated(Encapsulated { radius: 1, node: &[1, 2], message: &[2, 0x16] })));
    datagrams
}

/// Returns what a gateway sends to a client.
fn answers() -> Vec<Packet<'static>> {
    vec![
        Packet::WillTopicReq,
        Packet::WillMsgReq,
        Packet::ConnAck { code: ACCEPTED },
        Packet::SubAck { qos: Qos::AtMostOnce, topic: 0, message: 60_000, code: ACCEPTED },
        Packet::RegAck { topic: 1, message: 60_001, code: ACCEPTED },
        Packet::Register { topic: 2, message: 1, name: "down/1" },
        publish(Some(Qos::AtLeastOnce), TopicId::Normal(2), 9),
        publish(Some(Qos::ExactlyOnce), TopicId::Normal(2), 10),
        Packet::PubRel { message: 10 },
        Packet::PubAck { topic: 1, message: 60_002, code: ACCEPTED },
        Packet::PubRec { message: 60_003 },
        Packet::PubComp { message: 60_003 },
        Packet::UnsubAck { message: 60_004 },
        Packet::WillTopicResp { code: ACCEPTED },
        Packet::WillMsgResp { code: ACCEPTED },
        Packet::Disconnect { duration: None },
        Packet::PingResp,
        Packet::Advertise { gateway: 1, duration: 10 },
        Packet::GwInfo { gateway: 2, address: &[192, 0, 2, 1, 3, 232] },
    ]
}

/// Returns sequences of datagrams that a gateway receives.
pub(crate) fn to_gateway() -> Vec<Vec<u8>> {
    let one = session("robot").into_iter().map(|packet| (Some(0), packet));
    let two = session("robot").into_iter().zip(session("other"));
    let two = two.flat_map(|(robot, other)| [(Some(0), robot), (Some(1), other)]);
    let flood = ["1", "2", "3", "4", "5", "6", "7"].into_iter().zip(0..);
    let flood = flood.map(|(client, peer)| (Some(peer), connect(client, peer % 2 == 0, true)));
    let encapsulated = session("robot").into_iter().map(|packet| {
        let message = datagram(&packet);
        let within = Packet::Encapsulated(Encapsulated { radius: 0, node: &[1, 2], message: &message });
        [vec![0], datagram(&within)].concat()
    });
    vec![sequence(one), sequence(two), sequence(flood), record(encapsulated)]
}

/// Returns sequences of datagrams that a client receives.
pub(crate) fn to_client() -> Vec<Vec<u8>> {
    let all = answers().into_iter().map(|packet| (None, packet));
    let connected = answers().into_iter().filter(|packet| !matches!(packet, Packet::Disconnect { .. }));
    vec![sequence(all), sequence(connected.chain([Packet::PingResp]).map(|packet| (None, packet)))]
}

/// Returns sequences of datagrams that a forwarder receives: from the gateway and from a node in turn.
pub(crate) fn to_forwarder() -> Vec<Vec<u8>> {
    let node = [192, 0, 2, 1, 3, 233];
    let down = |message: &[u8]| datagram(&Packet::Encapsulated(Encapsulated { radius: 0, node: &node, message }));
    let datagrams = session("robot")
        .iter()
        .zip(&answers())
        .flat_map(|(up, answer)| [down(&datagram(answer)), datagram(up)])
        .collect::<Vec<_>>();
    vec![record(datagrams)]
}

/// Returns the records of a gateway.
pub(crate) fn histories() -> Vec<Vec<u8>> {
    vec![record(fuzzing::seeds())]
}

pub(crate) fn storages() -> Vec<Vec<u8>> {
    [Mode::Transparent, Mode::Aggregating]
        .map(|mode| {
            let mut gateway = Gateway::new(settings(mode), 1).expect("the settings are valid");
            let (mut records, mut owner, now) = (Vec::new(), Owner::default(), Mono(Duration::from_secs(1)));
            for (number, packet) in session("robot").iter().take(14).enumerate() {
                gateway.handle_datagram(now, address(0), &datagram(packet).into());
                while let Some(event) = gateway.poll_event() {
                    if let GatewayEvent::Record { record, .. } = &event {
                        records.push(record.to_vec());
                    }
                    owner.requests = 1;
                    owner.answer(now, &mut gateway, &event);
                }
                owner.deliver(now, &mut gateway, number);
            }
            record(records)
        })
        .to_vec()
}
