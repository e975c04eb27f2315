//! The gateway, datagram by datagram.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the failure")]

mod common;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use common::{GatewayEnd, datagram, message, s, secs};
use viaduct_mqttsn::{
    Destination, Gateway, GatewayEvent, GatewaySettings,
    codec::{Connect, Encapsulated, Packet, Publish, Qos, ReturnCode, ShortTopic, TopicFilter, TopicId, WillTopic},
    gateway::{
        Acknowledge, BufferSettings, ClientStatus, DeliveryOutcome, DropPolicy, DropReason, Mode, PredefinedTopics,
        Refusal,
    },
};
use viaduct_units::{Mono, retransmission::Profile};

fn address(number: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, number], 5000))
}

const CONNECT: Connect<'_> = Connect { will: false, clean: true, protocol: 1, duration: 60, client: "robot" };

fn connect(client: &str) -> Packet<'_> {
    Packet::Connect(Connect { client, ..CONNECT })
}

/// Keeps messages for a client that is not connected.
fn connect_unclean(client: &str) -> Packet<'_> {
    Packet::Connect(Connect { client, clean: false, ..CONNECT })
}

fn register(message: u16, name: &str) -> Packet<'_> {
    Packet::Register { topic: 0, message, name }
}

fn subscribe(message: u16, name: &str, qos: Qos) -> Packet<'_> {
    Packet::Subscribe { dup: false, qos, message, filter: TopicFilter::Name(name) }
}

fn publish(qos: Option<Qos>, topic: TopicId, message: u16, data: &[u8]) -> Packet<'_> {
    Packet::Publish(Publish { dup: false, qos, retain: false, topic, message, data })
}

fn publish_again(qos: Qos, topic: TopicId, message: u16, data: &[u8]) -> Packet<'_> {
    Packet::Publish(Publish { dup: true, qos: Some(qos), retain: false, topic, message, data })
}

const DISCONNECT: Packet<'_> = Packet::Disconnect { duration: None };

fn sleep(duration: u16) -> Packet<'static> {
    Packet::Disconnect { duration: Some(duration) }
}

/// Sends a message, and compares the answers.
#[track_caller]
fn expect(end: &mut GatewayEnd, now: Mono, from: SocketAddr, packet: &Packet<'_>, answers: &[Packet<'_>]) {
    let got = end.exchange(now, from, packet);
    let got: Vec<_> = got.iter().map(|octets| Packet::decode(octets).unwrap()).collect();
    assert_eq!(got, answers);
}

#[track_caller]
fn expect_sent(sent: &[Vec<u8>], packets: &[Packet<'_>]) {
    let sent: Vec<_> = sent.iter().map(|octets| Packet::decode(octets).unwrap()).collect();
    assert_eq!(sent, packets);
}

const CONNACK: Packet<'_> = Packet::ConnAck { code: ReturnCode::Accepted };

fn regack(topic: u16, message: u16) -> Packet<'static> {
    Packet::RegAck { topic, message, code: ReturnCode::Accepted }
}

fn puback(topic: u16, message: u16) -> Packet<'static> {
    Packet::PubAck { topic, message, code: ReturnCode::Accepted }
}

fn suback(qos: Qos, topic: u16, message: u16) -> Packet<'static> {
    Packet::SubAck { qos, topic, message, code: ReturnCode::Accepted }
}

fn quiet() -> GatewaySettings {
    GatewaySettings { advertise: None, ..GatewaySettings::default() }
}

fn connected(settings: GatewaySettings) -> GatewayEnd {
    let mut end = GatewayEnd::new(settings);
    expect(&mut end, s(0), address(1), &connect("robot"), &[CONNACK]);
    end
}

/// Returns a PUBLISH that the gateway has sent, with its message id.
#[track_caller]
fn sent_publish(sent: &[Vec<u8>]) -> Publish<'_> {
    let publishes = sent.iter().map(|octets| Packet::decode(octets).unwrap());
    let mut found =
        publishes.filter_map(|packet| if let Packet::Publish(publish) = packet { Some(publish) } else { None });
    found.next_back().expect("a PUBLISH was sent")
}

#[track_caller]
fn sent_register(sent: &[Vec<u8>]) -> (u16, u16, String) {
    match Packet::decode(&sent[sent.len() - 1]).unwrap() {
        Packet::Register { topic, message, name } => (topic, message, name.to_owned()),
        other => panic!("REGISTER expected, got {other:?}"),
    }
}

fn broker_publishes(end: &mut GatewayEnd, now: Mono, topic: &str, payload: &str, qos: Qos) -> Vec<Vec<u8>> {
    end.publish(now, &message(topic, payload, qos));
    end.transmits()
}

#[test]
fn a_client_registers_and_publishes_with_each_quality_of_service() {
    let mut end = connected(quiet());
    expect(&mut end, s(1), address(1), &register(1, "a/b"), &[regack(1, 1)]);
    let topic = TopicId::Normal(1);
    expect(&mut end, s(2), address(1), &publish(Some(Qos::AtMostOnce), topic, 0, b"0"), &[]);
    expect(&mut end, s(2), address(1), &publish(Some(Qos::AtLeastOnce), topic, 2, b"1"), &[puback(1, 2)]);
    let rec = Packet::PubRec { message: 3 };
    expect(&mut end, s(2), address(1), &publish(Some(Qos::ExactlyOnce), topic, 3, b"2"), &[rec]);
    expect(&mut end, s(2), address(1), &Packet::PubRel { message: 3 }, &[Packet::PubComp { message: 3 }]);
    expect(&mut end, s(3), address(1), &Packet::PingReq { client: "" }, &[Packet::PingResp]);
    expect(&mut end, s(4), address(1), &DISCONNECT, &[DISCONNECT]);
    assert_eq!(end.payloads("a/b"), ["0", "1", "2"]);
    assert_eq!((end.gateway.sessions(), end.broker.connections.len()), (0, 0));
    assert_eq!(end.gateway.counters().refused_total(), 0);
}

#[test]
fn a_registration_that_is_repeated_has_the_same_id() {
    let mut end = connected(quiet());
    expect(&mut end, s(1), address(1), &register(1, "a"), &[regack(1, 1)]);
    expect(&mut end, s(1), address(1), &register(1, "a"), &[regack(1, 1)]);
    expect(&mut end, s(1), address(1), &register(2, "b"), &[regack(2, 2)]);
    let refused = Packet::RegAck { topic: 0, message: 3, code: ReturnCode::NotSupported };
    expect(&mut end, s(1), address(1), &register(3, "a/#"), &[refused]);
}

#[test]
fn a_message_that_is_repeated_is_acknowledged_again_but_published_once() {
    let mut end = connected(quiet());
    end.exchange(s(0), address(1), &register(1, "a"));
    let topic = TopicId::Normal(1);
    expect(&mut end, s(1), address(1), &publish(Some(Qos::AtLeastOnce), topic, 5, b"x"), &[puback(1, 5)]);
    expect(&mut end, s(2), address(1), &publish_again(Qos::AtLeastOnce, topic, 5, b"x"), &[puback(1, 5)]);
    let rec = Packet::PubRec { message: 6 };
    expect(&mut end, s(3), address(1), &publish(Some(Qos::ExactlyOnce), topic, 6, b"y"), &[rec]);
    expect(&mut end, s(4), address(1), &publish_again(Qos::ExactlyOnce, topic, 6, b"y"), &[rec]);
    let comp = Packet::PubComp { message: 6 };
    expect(&mut end, s(5), address(1), &Packet::PubRel { message: 6 }, &[comp]);
    expect(&mut end, s(6), address(1), &Packet::PubRel { message: 6 }, &[comp]);
    assert_eq!(end.payloads("a"), ["x", "y"]);
    assert_eq!(end.gateway.counters().duplicates, 2);
}

#[test]
fn a_message_id_that_is_used_again_for_another_message_is_not_a_repetition() {
    let mut end = connected(quiet());
    end.exchange(s(0), address(1), &register(1, "a"));
    for data in [b"1", b"2", b"3"] {
        // Some clients use one message id only. The first transmission of this message was lost.
        let packet = publish_again(Qos::AtLeastOnce, TopicId::Normal(1), 1, data);
        expect(&mut end, s(1), address(1), &packet, &[puback(1, 1)]);
    }
    assert_eq!(end.payloads("a"), ["1", "2", "3"]);
}

#[test]
fn the_acknowledgement_follows_that_of_the_broker() {
    let mut end = connected(quiet());
    end.exchange(s(0), address(1), &register(1, "a"));
    end.broker.answers = false;
    let topic = TopicId::Normal(1);
    expect(&mut end, s(1), address(1), &publish(Some(Qos::AtLeastOnce), topic, 5, b"x"), &[]);
    expect(&mut end, s(2), address(1), &publish_again(Qos::AtLeastOnce, topic, 5, b"x"), &[]);
    end.answer(s(3));
    expect_sent(&end.transmits(), &[puback(1, 5)]);
    assert_eq!(end.payloads("a"), ["x"]);
}

#[test]
fn a_fast_acknowledgement_follows_the_storage() {
    let mut end = connected(GatewaySettings { acknowledge: Acknowledge::AfterStorage, ..quiet() });
    end.exchange(s(0), address(1), &register(1, "a"));
    end.broker.answers = false;
    let topic = TopicId::Normal(1);
    expect(&mut end, s(1), address(1), &publish(Some(Qos::AtLeastOnce), topic, 5, b"x"), &[puback(1, 5)]);
    expect(&mut end, s(2), address(1), &publish_again(Qos::AtLeastOnce, topic, 5, b"x"), &[puback(1, 5)]);
    // A clean session that ends does not take the message with it.
    expect(&mut end, s(2), address(1), &DISCONNECT, &[DISCONNECT]);
    assert_eq!(end.gateway.sessions(), 1);
    end.answer(s(3));
    assert_eq!((end.payloads("a"), end.gateway.sessions()), (vec!["x".to_owned()], 0));
}

#[test]
fn a_restart_before_pubrel_does_not_publish_the_message_again() {
    for acknowledge in [Acknowledge::AfterBroker, Acknowledge::AfterStorage] {
        let settings = GatewaySettings { acknowledge, ..quiet() };
        let mut end = connected(settings.clone());
        end.exchange(s(0), address(1), &register(1, "a"));
        let (topic, rec) = (TopicId::Normal(1), Packet::PubRec { message: 5 });
        expect(&mut end, s(1), address(1), &publish(Some(Qos::ExactlyOnce), topic, 5, b"x"), &[rec]);
        end.restart(s(2), settings);
        expect(&mut end, s(3), address(1), &publish_again(Qos::ExactlyOnce, topic, 5, b"x"), &[rec]);
        let comp = Packet::PubComp { message: 5 };
        expect(&mut end, s(4), address(1), &Packet::PubRel { message: 5 }, &[comp]);
        assert_eq!(end.payloads("a"), ["x"], "{acknowledge:?}");
        expect(&mut end, s(5), address(1), &publish(Some(Qos::ExactlyOnce), topic, 5, b"y"), &[rec]);
        assert_eq!(end.payloads("a"), ["x", "y"], "the message id is free again");
    }
}

#[test]
fn unknown_topic_ids_are_refused() {
    let mut end = connected(quiet());
    let refused = Packet::PubAck { topic: 9, message: 4, code: ReturnCode::InvalidTopicId };
    let packet = publish(Some(Qos::AtLeastOnce), TopicId::Normal(9), 4, b"x");
    expect(&mut end, s(1), address(1), &packet, &[refused]);
    let packet = publish(Some(Qos::AtLeastOnce), TopicId::Predefined(9), 4, b"x");
    expect(&mut end, s(1), address(1), &packet, &[refused]);
    let packet = Packet::Subscribe { dup: false, qos: Qos::AtMostOnce, message: 4, filter: TopicFilter::Predefined(9) };
    let refused = Packet::SubAck { qos: Qos::AtMostOnce, topic: 0, message: 4, code: ReturnCode::InvalidTopicId };
    expect(&mut end, s(1), address(1), &packet, &[refused]);
    assert_eq!(end.gateway.counters().refused(Refusal::TopicId), 3);
}

#[test]
fn predefined_and_short_topics_need_no_registration() {
    let common = PredefinedTopics::from([(1, Arc::from("all/1")), (2, Arc::from("all/2"))]);
    let own = PredefinedTopics::from([(2, Arc::from("own/2"))]);
    let predefined_of_clients = [("robot".to_owned(), own)].into();
    let mut end = connected(GatewaySettings { predefined: common, predefined_of_clients, ..quiet() });
    let short = TopicId::Short(ShortTopic::from_name("ab").unwrap());
    for (number, topic) in [(1, TopicId::Predefined(1)), (2, TopicId::Predefined(2)), (3, short)] {
        let packet = publish(Some(Qos::AtLeastOnce), topic, number, b"x");
        expect(&mut end, s(1), address(1), &packet, &[puback(topic.field(), number)]);
    }
    let topics: Vec<_> = end.broker.published.iter().map(|message| &*message.topic).collect();
    assert_eq!(topics, ["all/1", "own/2", "ab"]);

    // And back: without REGISTER.
    end.exchange(s(2), address(1), &subscribe(4, "#", Qos::AtMostOnce));
    for (name, topic) in [("all/1", TopicId::Predefined(1)), ("own/2", TopicId::Predefined(2)), ("ab", short)] {
        let sent = broker_publishes(&mut end, s(3), name, "y", Qos::AtMostOnce);
        assert_eq!((sent.len(), sent_publish(&sent).topic), (1, topic));
    }
    let (_, _, name) = sent_register(&broker_publishes(&mut end, s(3), "all/2", "y", Qos::AtMostOnce));
    assert_eq!(name, "all/2", "the client's own id 2 hides the common one");
}

#[test]
fn qos_minus_one_needs_no_session() {
    let predefined = PredefinedTopics::from([(1, Arc::from("all/1"))]);
    let mut end = GatewayEnd::new(GatewaySettings { predefined, without_connection: true, ..quiet() });
    expect(&mut end, s(1), address(1), &publish(None, TopicId::Predefined(1), 0, b"x"), &[]);
    expect(&mut end, s(1), address(1), &publish(None, TopicId::Normal(1), 0, b"x"), &[]);
    assert_eq!(end.payloads("all/1"), ["x"]);
    assert_eq!(end.gateway.counters().refused(Refusal::TopicId), 1);
    for _ in 0..3000 {
        end.exchange(s(2), address(1), &publish(None, TopicId::Predefined(1), 0, b"x"));
    }
    assert_eq!(end.payloads("all/1").len(), 1001);
    let mut closed = GatewayEnd::new(quiet());
    closed.exchange(s(1), address(1), &publish(None, TopicId::Predefined(1), 0, b"x"));
    assert_eq!(closed.gateway.counters().refused(Refusal::WithoutConnection), 1);
}

#[test]
fn messages_for_a_wildcard_are_preceded_by_their_registration() {
    let mut end = connected(quiet());
    expect(&mut end, s(1), address(1), &subscribe(1, "a/+", Qos::AtLeastOnce), &[suback(Qos::AtLeastOnce, 0, 1)]);
    let (topic, id, name) = sent_register(&broker_publishes(&mut end, s(2), "a/b", "1", Qos::AtLeastOnce));
    assert_eq!(name, "a/b");
    broker_publishes(&mut end, s(2), "a/b", "2", Qos::AtLeastOnce);
    let sent = end.exchange(s(3), address(1), &regack(topic, id));
    let first = sent_publish(&sent);
    assert_eq!((first.topic, first.data, first.qos), (TopicId::Normal(topic), &b"1"[..], Some(Qos::AtLeastOnce)));
    let sent = end.exchange(s(3), address(1), &puback(topic, first.message));
    let second = sent_publish(&sent);
    assert_eq!(second.data, b"2");
    end.exchange(s(3), address(1), &puback(topic, second.message));
    assert_eq!(end.broker.results, [(1, DeliveryOutcome::Acknowledged), (2, DeliveryOutcome::Acknowledged)]);
}

#[test]
fn a_topic_id_that_the_client_has_forgotten_is_registered_again() {
    let mut end = connected(quiet());
    expect(&mut end, s(1), address(1), &subscribe(1, "a", Qos::AtLeastOnce), &[suback(Qos::AtLeastOnce, 1, 1)]);
    let sent = broker_publishes(&mut end, s(2), "a", "1", Qos::AtLeastOnce);
    let id = sent_publish(&sent).message;
    let forgotten = Packet::PubAck { topic: 1, message: id, code: ReturnCode::InvalidTopicId };
    let (topic, registration, name) = sent_register(&end.exchange(s(2), address(1), &forgotten));
    assert_eq!((topic, &*name), (1, "a"));
    let sent = end.exchange(s(2), address(1), &regack(1, registration));
    assert_eq!((sent_publish(&sent).data, sent_publish(&sent).message), (&b"1"[..], id));
    end.exchange(s(2), address(1), &puback(1, id));
    assert_eq!(end.broker.results, [(1, DeliveryOutcome::Acknowledged)]);
}

#[test]
fn a_client_that_rejects_a_topic_does_not_block_the_others() {
    let mut end = connected(quiet());
    end.exchange(s(1), address(1), &subscribe(1, "#", Qos::AtLeastOnce));
    let (topic, id, _) = sent_register(&broker_publishes(&mut end, s(2), "long", "1", Qos::AtLeastOnce));
    broker_publishes(&mut end, s(2), "ab", "2", Qos::AtLeastOnce);
    let rejected = Packet::RegAck { topic, message: id, code: ReturnCode::NotSupported };
    assert_eq!(sent_publish(&end.exchange(s(2), address(1), &rejected)).data, b"2");
    assert_eq!(end.broker.results, [(1, DeliveryOutcome::Dropped(DropReason::Rejected))]);
}

#[test]
fn a_congested_client_is_left_alone_for_t_wait() {
    let mut end = connected(GatewaySettings { congestion_wait: secs(20), ..quiet() });
    end.exchange(s(1), address(1), &subscribe(1, "ab", Qos::AtLeastOnce));
    let sent = broker_publishes(&mut end, s(2), "ab", "1", Qos::AtLeastOnce);
    let publish = sent_publish(&sent);
    let congested = Packet::PubAck { topic: 1, message: publish.message, code: ReturnCode::Congestion };
    expect(&mut end, s(2), address(1), &congested, &[]);
    assert!(end.advance(s(21)).is_empty());
    assert_eq!(sent_publish(&end.advance(s(22))).data, b"1");
}

#[test]
fn the_will_is_asked_for_and_published_when_the_client_is_lost() {
    for hold_wills in [false, true] {
        let mut end = GatewayEnd::new(GatewaySettings { hold_wills, ..quiet() });
        let connect = Packet::Connect(Connect { will: true, ..CONNECT });
        expect(&mut end, s(0), address(1), &connect, &[Packet::WillTopicReq]);
        let topic = Packet::WillTopic(Some(WillTopic { qos: Qos::AtLeastOnce, retain: true, topic: "will" }));
        expect(&mut end, s(0), address(1), &topic, &[Packet::WillMsgReq]);
        // WILLMSGREQ is lost.
        expect(&mut end, s(1), address(1), &topic, &[Packet::WillMsgReq]);
        expect(&mut end, s(1), address(1), &Packet::WillMsg { message: b"gone" }, &[CONNACK]);
        // CONNACK is lost.
        expect(&mut end, s(2), address(1), &Packet::WillMsg { message: b"gone" }, &[CONNACK]);
        end.advance(s(91));
        assert_eq!(end.payloads("will"), Vec::<String>::new());
        end.advance(s(93));
        assert_eq!(end.payloads("will"), ["gone"], "{hold_wills}");
        assert!(end.broker.published[0].retain && end.broker.published[0].qos == Qos::AtLeastOnce);
    }
}

#[test]
fn a_will_that_was_updated_replaces_that_of_the_broker() {
    let mut end = GatewayEnd::new(quiet());
    end.exchange(s(0), address(1), &Packet::Connect(Connect { will: true, ..CONNECT }));
    let topic = |topic| Some(WillTopic { qos: Qos::AtMostOnce, retain: false, topic });
    end.exchange(s(0), address(1), &Packet::WillTopic(topic("will")));
    end.exchange(s(0), address(1), &Packet::WillMsg { message: b"old" });
    let accepted = Packet::WillMsgResp { code: ReturnCode::Accepted };
    expect(&mut end, s(1), address(1), &Packet::WillMsgUpd { message: b"new" }, &[accepted]);
    let accepted = Packet::WillTopicResp { code: ReturnCode::Accepted };
    expect(&mut end, s(1), address(1), &Packet::WillTopicUpd(topic("will/2")), &[accepted]);
    end.advance(s(200));
    let published: Vec<_> = end.broker.published.iter().map(|will| (&*will.topic, &will.payload[..])).collect();
    assert_eq!(published, [("will/2", &b"new"[..])]);
}

#[test]
fn a_will_that_was_deleted_is_not_published() {
    let mut end = GatewayEnd::new(quiet());
    end.exchange(s(0), address(1), &Packet::Connect(Connect { will: true, ..CONNECT }));
    let topic = WillTopic { qos: Qos::AtMostOnce, retain: false, topic: "will" };
    end.exchange(s(0), address(1), &Packet::WillTopic(Some(topic)));
    end.exchange(s(0), address(1), &Packet::WillMsg { message: b"old" });
    let accepted = Packet::WillTopicResp { code: ReturnCode::Accepted };
    expect(&mut end, s(1), address(1), &Packet::WillTopicUpd(None), &[accepted]);
    end.advance(s(200));
    assert!(end.broker.published.is_empty());
    assert_eq!(end.gateway.counters().lost, 1);
}

#[test]
fn a_will_that_never_comes_does_not_hold_a_session() {
    let mut end = GatewayEnd::new(quiet());
    end.exchange(s(0), address(1), &Packet::Connect(Connect { will: true, ..CONNECT }));
    end.advance(s(60));
    assert_eq!(end.gateway.sessions(), 0);
}

#[test]
fn an_unclean_session_keeps_subscriptions_and_wills_as_section_6_3_says() {
    let mut end = GatewayEnd::new(quiet());
    end.exchange(s(0), address(1), &connect_unclean("robot"));
    end.exchange(s(1), address(1), &subscribe(1, "ab", Qos::AtMostOnce));
    end.exchange(s(2), address(1), &DISCONNECT);
    assert_eq!(end.gateway.sessions(), 1);
    // The broker has kept the subscription too.
    end.exchange(s(3), address(2), &connect_unclean("robot"));
    assert_eq!(sent_publish(&broker_publishes(&mut end, s(4), "ab", "x", Qos::AtMostOnce)).data, b"x");
    end.exchange(s(5), address(2), &connect("robot"));
    assert!(broker_publishes(&mut end, s(6), "ab", "x", Qos::AtMostOnce).is_empty());
}

#[test]
fn a_session_is_taken_over_from_another_address() {
    let mut end = connected(quiet());
    let sent = end.exchange(s(10), address(2), &connect("robot"));
    expect_sent(&sent, &[DISCONNECT, CONNACK]);
    expect(&mut end, s(11), address(1), &Packet::PingReq { client: "" }, &[DISCONNECT]);
    expect(&mut end, s(11), address(2), &Packet::PingReq { client: "" }, &[Packet::PingResp]);
    assert_eq!((end.gateway.sessions(), end.broker.connections.len()), (1, 1));
}

#[test]
fn an_address_with_another_client_id_ends_its_session() {
    let mut end = connected(quiet());
    expect(&mut end, s(10), address(1), &connect("other"), &[CONNACK]);
    assert_eq!((end.gateway.sessions(), end.broker.connections.len()), (1, 1));
}

#[test]
fn a_client_of_another_protocol_version_is_refused() {
    let mut end = GatewayEnd::new(quiet());
    let refused = Packet::ConnAck { code: ReturnCode::NotSupported };
    expect(&mut end, s(0), address(1), &Packet::Connect(Connect { protocol: 2, ..CONNECT }), &[refused]);
    expect(&mut end, s(0), address(1), &connect("a client id with more than 23"), &[refused]);
    assert_eq!(end.gateway.sessions(), 0);
}

#[test]
fn a_broker_that_refuses_or_is_silent_means_congestion() {
    let mut end = GatewayEnd::new(quiet());
    end.broker.answers = false;
    expect(&mut end, s(0), address(1), &connect("robot"), &[]);
    let congestion = Packet::ConnAck { code: ReturnCode::Congestion };
    expect_sent(&end.advance(s(60)), &[congestion]);
    assert_eq!(end.gateway.sessions(), 0);
}

#[test]
fn a_client_whose_broker_connection_is_lost_must_connect_again() {
    let mut end = connected(quiet());
    let client = end.broker.connections[0].0;
    end.gateway.broker_lost(s(1), client);
    end.settle(s(1));
    expect_sent(&end.transmits(), &[DISCONNECT]);
    assert_eq!(end.gateway.sessions(), 0);
}

#[test]
fn retransmissions_have_the_dup_flag_until_the_client_is_lost() {
    let retransmission = viaduct_mqttsn::STANDARD;
    let mut end = connected(GatewaySettings { retransmission: Profile { spread: 1.0, ..retransmission }, ..quiet() });
    end.exchange(s(1), address(1), &subscribe(1, "ab", Qos::AtLeastOnce));
    broker_publishes(&mut end, s(2), "ab", "1", Qos::AtLeastOnce);
    for retry in 1..=4 {
        let sent = end.advance(s(2 + 10 * retry));
        assert!(sent.len() == 1 && sent_publish(&sent).dup);
    }
    assert_eq!(end.gateway.counters().retransmissions, 4);
    end.advance(s(52));
    assert_eq!((end.gateway.sessions(), end.gateway.counters().lost), (0, 1));
    assert_eq!(end.broker.results, [(1, DeliveryOutcome::Dropped(DropReason::SessionEnded))]);
}

#[test]
fn a_sleeping_client_receives_its_messages_when_it_wakes_up() {
    let mut end = connected(quiet());
    end.exchange(s(1), address(1), &subscribe(1, "ab", Qos::AtLeastOnce));
    expect(&mut end, s(2), address(1), &sleep(100), &[DISCONNECT]);
    // The answer was lost.
    expect(&mut end, s(3), address(1), &sleep(100), &[DISCONNECT]);
    assert_eq!(end.broker.connections.len(), 1, "the connection to the broker stays");
    for payload in ["1", "2"] {
        assert!(broker_publishes(&mut end, s(4), "ab", payload, Qos::AtLeastOnce).is_empty());
    }
    let sent = end.exchange(s(90), address(1), &Packet::PingReq { client: "robot" });
    let first = sent_publish(&sent);
    assert_eq!((sent.len(), first.data), (1, &b"1"[..]));
    let sent = end.exchange(s(91), address(1), &puback(first.topic.field(), first.message));
    let second = sent_publish(&sent);
    assert_eq!((sent.len(), second.data), (1, &b"2"[..]));
    expect(&mut end, s(92), address(1), &puback(second.topic.field(), second.message), &[Packet::PingResp]);
    // The client sleeps again.
    assert!(broker_publishes(&mut end, s(93), "ab", "3", Qos::AtLeastOnce).is_empty());
    assert_eq!(end.broker.results.len(), 2);
}

#[test]
fn connect_of_a_sleeping_client_delivers_its_messages_and_keeps_the_session() {
    let mut end = connected(quiet());
    end.exchange(s(1), address(1), &subscribe(1, "a/+", Qos::AtLeastOnce));
    end.exchange(s(2), address(1), &sleep(100));
    broker_publishes(&mut end, s(4), "a/b", "1", Qos::AtLeastOnce);
    let sent = end.exchange(s(50), address(1), &connect("robot"));
    let (topic, id, name) = sent_register(&sent);
    assert_eq!((sent.len(), &*name), (2, "a/b"));
    assert_eq!(Packet::decode(&sent[0]), Ok(CONNACK));
    assert_eq!(sent_publish(&end.exchange(s(50), address(1), &regack(topic, id))).data, b"1");
    assert_eq!(end.broker.connections.len(), 1);
}

#[test]
fn a_repeated_connect_of_a_client_that_ends_its_sleep_keeps_the_connection_to_the_broker() {
    let mut end = connected(quiet());
    end.exchange(s(2), address(1), &sleep(100));
    expect(&mut end, s(50), address(1), &connect_unclean("robot"), &[CONNACK]);
    let before = end.broker.statuses.len();
    // CONNACK was lost.
    expect(&mut end, s(51), address(1), &connect_unclean("robot"), &[CONNACK]);
    assert_eq!(end.broker.statuses.len(), before, "the connection does not begin again");
}

#[test]
fn a_registration_that_sleep_has_interrupted_does_not_swallow_the_message() {
    let mut end = connected(quiet());
    end.exchange(s(1), address(1), &subscribe(1, "a/+", Qos::AtMostOnce));
    sent_register(&broker_publishes(&mut end, s(2), "a/b", "1", Qos::AtMostOnce));
    end.exchange(s(2), address(1), &sleep(100));
    let (topic, id, name) = sent_register(&end.exchange(s(50), address(1), &Packet::PingReq { client: "robot" }));
    assert_eq!(name, "a/b");
    let sent = end.exchange(s(50), address(1), &regack(topic, id));
    assert_eq!(sent_publish(&sent[..1]).data, b"1");
    assert_eq!(Packet::decode(&sent[1]), Ok(Packet::PingResp));
}

#[test]
fn a_client_wakes_up_at_another_address() {
    let mut end = connected(quiet());
    end.exchange(s(1), address(1), &subscribe(1, "ab", Qos::AtMostOnce));
    end.exchange(s(2), address(1), &sleep(100));
    broker_publishes(&mut end, s(3), "ab", "1", Qos::AtMostOnce);
    let sent = end.exchange(s(50), address(2), &Packet::PingReq { client: "robot" });
    assert_eq!((sent.len(), sent_publish(&sent[..1]).data), (2, &b"1"[..]));
    expect(&mut end, s(50), address(3), &Packet::PingReq { client: "nobody" }, &[DISCONNECT]);
}

#[test]
fn a_client_that_falls_silent_while_it_receives_its_messages_sleeps_again() {
    let mut end = connected(quiet());
    end.exchange(s(1), address(1), &subscribe(1, "ab", Qos::AtLeastOnce));
    end.exchange(s(2), address(1), &sleep(1000));
    broker_publishes(&mut end, s(3), "ab", "1", Qos::AtLeastOnce);
    end.exchange(s(50), address(1), &Packet::PingReq { client: "robot" });
    end.advance(s(200));
    assert_eq!(end.broker.statuses.last().unwrap().1, ClientStatus::Asleep);
    let sent = end.exchange(s(900), address(1), &Packet::PingReq { client: "robot" });
    assert!(sent_publish(&sent).dup && sent_publish(&sent).data == b"1");
}

#[test]
fn a_client_that_never_wakes_up_is_lost_after_its_sleep_duration() {
    let mut end = GatewayEnd::new(GatewaySettings { hold_wills: true, ..quiet() });
    end.exchange(s(0), address(1), &Packet::Connect(Connect { will: true, ..CONNECT }));
    let will = WillTopic { qos: Qos::AtMostOnce, retain: false, topic: "will" };
    end.exchange(s(0), address(1), &Packet::WillTopic(Some(will)));
    end.exchange(s(0), address(1), &Packet::WillMsg { message: b"gone" });
    end.exchange(s(1), address(1), &subscribe(1, "ab", Qos::AtMostOnce));
    end.exchange(s(2), address(1), &sleep(1000));
    broker_publishes(&mut end, s(3), "ab", "1", Qos::AtMostOnce);
    end.advance(s(1500));
    assert_eq!(end.gateway.sessions(), 1);
    end.advance(s(1503));
    assert_eq!((end.gateway.sessions(), end.gateway.buffered_octets()), (0, 0));
    assert_eq!(end.payloads("will"), ["gone"]);
    assert_eq!(end.gateway.counters().dropped(DropReason::SessionEnded), 1);
}

#[test]
fn the_buffer_of_a_sleeping_client_drops_the_oldest_or_the_newest_message() {
    for (drop, kept, reason) in
        [(DropPolicy::Oldest, ["2", "3"], DropReason::Oldest), (DropPolicy::Newest, ["0", "1"], DropReason::Newest)]
    {
        let buffer = BufferSettings { messages_per_client_max: 2, drop, ..BufferSettings::default() };
        let mut end = connected(GatewaySettings { buffer, ..quiet() });
        end.exchange(s(1), address(1), &subscribe(1, "ab", Qos::AtMostOnce));
        end.exchange(s(2), address(1), &sleep(100));
        for number in 0..4 {
            broker_publishes(&mut end, s(3), "ab", &number.to_string(), Qos::AtMostOnce);
        }
        let sent = end.exchange(s(50), address(1), &Packet::PingReq { client: "robot" });
        let data: Vec<_> = sent[..2].iter().map(|octets| octets[7..].to_vec()).collect();
        assert_eq!(data, kept.map(|payload| payload.as_bytes().to_vec()));
        assert_eq!(end.gateway.counters().dropped(reason), 2);
    }
}

#[test]
fn the_buffers_of_all_clients_have_a_common_limit() {
    let buffer = BufferSettings { octets_max: 1000, ..BufferSettings::default() };
    let mut end = GatewayEnd::new(GatewaySettings { buffer, ..quiet() });
    for number in 1..=20 {
        let name = format!("robot {number}");
        end.exchange(s(0), address(number), &connect(&name));
        end.exchange(s(1), address(number), &subscribe(1, "ab", Qos::AtLeastOnce));
        end.exchange(s(2), address(number), &sleep(100));
    }
    for _ in 0..20 {
        broker_publishes(&mut end, s(3), "ab", "message", Qos::AtLeastOnce);
        assert!(end.gateway.buffered_octets() <= 1000);
    }
    let counters = end.gateway.counters();
    let kept: usize = end.gateway.clients().map(|client| client.queued).sum();
    assert_eq!(counters.deliveries, counters.dropped_total() + kept as u64);
    assert_eq!(end.broker.results.len() + kept, 400);
}

#[test]
fn messages_that_do_not_fit_into_a_datagram_are_dropped() {
    let mut end = connected(GatewaySettings { datagram_octets_max: 100, ..quiet() });
    end.exchange(s(1), address(1), &subscribe(1, "ab", Qos::AtLeastOnce));
    broker_publishes(&mut end, s(3), "ab", &"x".repeat(92), Qos::AtLeastOnce);
    assert_eq!(end.broker.results, [(1, DeliveryOutcome::Dropped(DropReason::TooLarge))]);
    assert_eq!(broker_publishes(&mut end, s(3), "ab", &"x".repeat(91), Qos::AtLeastOnce).len(), 1);
}

#[test]
fn a_subscription_is_acknowledged_again_with_the_same_topic_id() {
    let mut end = connected(quiet());
    expect(&mut end, s(1), address(1), &subscribe(1, "a", Qos::ExactlyOnce), &[suback(Qos::ExactlyOnce, 1, 1)]);
    let again = Packet::Subscribe { dup: true, qos: Qos::ExactlyOnce, message: 1, filter: TopicFilter::Name("a") };
    expect(&mut end, s(2), address(1), &again, &[suback(Qos::ExactlyOnce, 1, 1)]);
    let unsubscribe = Packet::Unsubscribe { message: 2, filter: TopicFilter::Name("a") };
    expect(&mut end, s(3), address(1), &unsubscribe, &[Packet::UnsubAck { message: 2 }]);
    expect(&mut end, s(3), address(1), &unsubscribe, &[Packet::UnsubAck { message: 2 }]);
    assert!(end.broker.subscriptions.is_empty());
    let refused = Packet::SubAck { qos: Qos::AtMostOnce, topic: 0, message: 4, code: ReturnCode::NotSupported };
    expect(&mut end, s(4), address(1), &subscribe(4, "a#", Qos::AtMostOnce), &[refused]);
}

#[test]
fn clients_behind_a_forwarder_are_told_apart_by_their_node_id() {
    let mut end = GatewayEnd::new(quiet());
    let exchange = |end: &mut GatewayEnd, node: &[u8], packet: &Packet<'_>| {
        let message = datagram(packet);
        let within = Packet::Encapsulated(Encapsulated { radius: 0, node, message: &message });
        let sent = end.exchange(s(1), address(9), &within);
        let inner = |octets: &Vec<u8>| match Packet::decode(octets) {
            Ok(Packet::Encapsulated(within)) if within.node == node => within.message.to_vec(),
            other => panic!("not for this node: {other:?}"),
        };
        sent.iter().map(inner).collect::<Vec<_>>()
    };
    expect_sent(&exchange(&mut end, &[1], &connect("one")), &[CONNACK]);
    expect_sent(&exchange(&mut end, &[2], &connect("two")), &[CONNACK]);
    expect_sent(&exchange(&mut end, &[1], &register(1, "a")), &[regack(1, 1)]);
    expect_sent(&exchange(&mut end, &[2], &register(1, "b")), &[regack(1, 1)]);
    let packet = publish(Some(Qos::AtLeastOnce), TopicId::Normal(1), 2, b"x");
    expect_sent(&exchange(&mut end, &[2], &packet), &[puback(1, 2)]);
    expect_sent(&exchange(&mut end, &[3], &packet), &[DISCONNECT]);
    assert_eq!((end.payloads("a").len(), end.payloads("b").len()), (0, 1));
    let info = Packet::GwInfo { gateway: 1, address: &[] };
    expect_sent(&exchange(&mut end, &[4], &Packet::SearchGw { radius: 1 }), &[info]);

    let nested = datagram(&Packet::Encapsulated(Encapsulated { radius: 0, node: &[1], message: &[2, 0x17] }));
    end.exchange(s(2), address(9), &Packet::Encapsulated(Encapsulated { radius: 0, node: &[1], message: &nested }));
    let long = Packet::Encapsulated(Encapsulated { radius: 0, node: &[1; 33], message: &[2, 0x16] });
    end.exchange(s(2), address(9), &long);
    let counters = end.gateway.counters();
    assert_eq!((counters.refused(Refusal::Nested), counters.refused(Refusal::NodeId)), (1, 1));
}

#[test]
fn the_gateway_advertises_itself_and_answers_searches_once() {
    let mut end = GatewayEnd::new(GatewaySettings { gateway_id: 5, ..GatewaySettings::default() });
    let advertise = Packet::Advertise { gateway: 5, duration: 900 };
    expect_sent(&end.advance(s(1799)), &[advertise, advertise]);
    let search = datagram(&Packet::SearchGw { radius: 2 });
    for number in 1..10 {
        end.gateway.handle_datagram(s(1799), address(number), &search);
    }
    let due = end.gateway.poll_timeout().unwrap();
    assert!(due <= s(1799).plus(Duration::from_millis(100)));
    end.gateway.handle_timeout(due);
    let answer = end.gateway.poll_transmit().unwrap();
    assert_eq!(answer.to, Destination::Broadcast { radius: 2, reply_to: Some(address(1)) });
    assert_eq!(Packet::decode(&answer.datagram), Ok(Packet::GwInfo { gateway: 5, address: &[] }));
    assert_eq!(end.gateway.poll_transmit(), None);
}

#[test]
fn strangers_are_answered_within_a_rate() {
    let mut end = GatewayEnd::new(quiet());
    let mut answers = 0;
    for _ in 0..1000 {
        answers += end.exchange(s(1), address(1), &Packet::PubRel { message: 1 }).len();
        answers += end.exchange(s(1), address(1), &Packet::Connect(Connect { protocol: 9, ..CONNECT })).len();
    }
    assert_eq!(answers, 5);
    assert_eq!(end.gateway.counters().answers_suppressed, 1995);
}

#[test]
fn a_flood_of_forged_connects_does_not_shut_out_real_clients() {
    let settings = GatewaySettings { clients_max: 100, clients_per_address_max: 10, ..quiet() };
    let mut end = GatewayEnd::new(settings);
    end.exchange(s(0), address(1), &connect_unclean("first"));
    end.exchange(s(0), address(1), &register(1, "a"));
    for number in 0..20_000_u32 {
        let now = Mono(Duration::from_millis(u64::from(number)));
        let from = SocketAddr::from(([198, 51, (number >> 8) as u8, number as u8], 9));
        end.exchange(now, from, &connect(&format!("forged {number}")));
        assert!(end.gateway.sessions() <= 100);
    }
    expect(&mut end, s(21), address(1), &publish(Some(Qos::AtLeastOnce), TopicId::Normal(1), 1, b"x"), &[puback(1, 1)]);
    // A new client needs a few attempts at most, because forged sessions make way after two seconds.
    expect(&mut end, s(25), address(2), &connect("second"), &[CONNACK]);
    assert!(end.gateway.counters().evicted > 0);
}

#[test]
fn one_address_cannot_take_all_sessions() {
    let settings = GatewaySettings { clients_per_address_max: 3, ..quiet() };
    let mut end = GatewayEnd::new(settings);
    for number in 0..10 {
        end.exchange(s(number), address(1), &connect(&format!("robot {number}")));
    }
    let from = |port| SocketAddr::from(([192, 0, 2, 1], port));
    for number in 0..10 {
        end.exchange(s(20), from(6000 + number), &connect(&format!("robot {number}")));
    }
    assert_eq!(end.gateway.sessions(), 3);
    assert_eq!(end.gateway.counters().refused(Refusal::ClientsOfAddress), 7);
}

#[test]
fn the_tables_of_a_client_are_limited() {
    let settings = GatewaySettings {
        topics_per_client_max: 3,
        subscriptions_per_client_max: 2,
        in_flight_per_client_max: 2,
        ..quiet()
    };
    let mut end = connected(settings);
    for number in 1..=3 {
        end.exchange(s(1), address(1), &register(number, &format!("topic {number}")));
    }
    let full = Packet::RegAck { topic: 0, message: 4, code: ReturnCode::Congestion };
    expect(&mut end, s(1), address(1), &register(4, "topic 4"), &[full]);
    for number in 1..=2 {
        end.exchange(s(1), address(1), &subscribe(number, &format!("{number}/#"), Qos::AtMostOnce));
    }
    let full = Packet::SubAck { qos: Qos::AtMostOnce, topic: 0, message: 3, code: ReturnCode::Congestion };
    expect(&mut end, s(1), address(1), &subscribe(3, "3/#", Qos::AtMostOnce), &[full]);
    end.broker.answers = false;
    for number in 1..=2 {
        end.exchange(s(1), address(1), &publish(Some(Qos::AtLeastOnce), TopicId::Normal(1), number, b"x"));
    }
    // A short delay of the broker makes the client repeat the message, a long one wait.
    let full = Packet::PubAck { topic: 1, message: 3, code: ReturnCode::Congestion };
    expect(&mut end, s(6), address(1), &publish(Some(Qos::AtLeastOnce), TopicId::Normal(1), 3, b"x"), &[]);
    expect(&mut end, s(7), address(1), &publish(Some(Qos::AtLeastOnce), TopicId::Normal(1), 3, b"x"), &[full]);
    // A message for a topic without an id is dropped, others are not.
    broker_publishes(&mut end, s(8), "1/a/new/topic", "x", Qos::AtMostOnce);
    end.answer(s(8));
    broker_publishes(&mut end, s(8), "1/a/new/topic", "x", Qos::AtMostOnce);
    assert_eq!(end.gateway.counters().dropped(DropReason::Topics), 2);
}

#[test]
fn the_octets_of_a_client_that_wait_for_the_broker_are_limited() {
    let buffer = BufferSettings { octets_per_client_max: 2000, ..BufferSettings::default() };
    let mut end = connected(GatewaySettings { buffer, ..quiet() });
    end.exchange(s(1), address(1), &register(1, "topic"));
    end.broker.answers = false;
    let send = |end: &mut GatewayEnd, at: u64, message: u16, octets: usize| {
        let data = vec![7; octets];
        end.exchange(s(at), address(1), &publish(Some(Qos::AtLeastOnce), TopicId::Normal(1), message, &data))
    };
    // One message may be longer than the limit.
    for (message, octets) in [(2, 1990), (3, 20), (4, 20)] {
        send(&mut end, 1, message, octets);
    }
    assert_eq!(end.gateway.counters().refused(Refusal::InFlight), 2);
    expect_sent(&send(&mut end, 7, 3, 20), &[Packet::PubAck { topic: 1, message: 3, code: ReturnCode::Congestion }]);
    end.answer(s(8));
    expect_sent(&end.transmits(), &[puback(1, 2)]);
    end.broker.answers = false;
    // A short message leaves room for others.
    for message in 5..15 {
        send(&mut end, 9, message, 20);
    }
    end.answer(s(9));
    assert_eq!(end.payloads("topic").len(), 11);
}

#[test]
fn aggregating_gateways_merge_subscriptions_and_distribute_messages() {
    let mut end = GatewayEnd::new(GatewaySettings { mode: Mode::Aggregating, ..quiet() });
    for number in 1..=3 {
        let name = format!("robot {number}");
        expect(&mut end, s(0), address(number), &connect(&name), &[CONNACK]);
        end.exchange(s(1), address(number), &subscribe(1, "ab", Qos::AtLeastOnce));
    }
    end.exchange(s(1), address(1), &subscribe(2, "#", Qos::AtMostOnce));
    assert_eq!(end.broker.subscriptions.len(), 2);
    let sent = broker_publishes(&mut end, s(2), "ab", "x", Qos::AtLeastOnce);
    assert_eq!(sent.len(), 3, "two filters of one client give one message");
    assert!(end.broker.results.is_empty());
    for number in 1..=3 {
        let id = Packet::decode(&sent[usize::from(number) - 1]).map(|packet| match packet {
            Packet::Publish(publish) => (publish.topic.field(), publish.message),
            other => panic!("{other:?}"),
        });
        let (topic, message) = id.unwrap();
        end.exchange(s(3), address(number), &puback(topic, message));
    }
    assert_eq!(end.broker.results, [(1, DeliveryOutcome::Acknowledged)]);
    for number in 1..=3 {
        assert!(end.broker.unsubscribed.is_empty());
        end.exchange(s(4), address(number), &Packet::Unsubscribe { message: 9, filter: TopicFilter::Name("ab") });
    }
    assert_eq!(end.broker.unsubscribed, [Arc::from("ab")]);
    end.exchange(s(5), address(1), &DISCONNECT);
    assert!(end.broker.subscriptions.is_empty());
}

#[test]
fn in_aggregating_mode_a_sleeping_client_holds_nobody_up() {
    let mut end = GatewayEnd::new(GatewaySettings { mode: Mode::Aggregating, ..quiet() });
    for number in 1..=2 {
        let name = format!("robot {number}");
        end.exchange(s(0), address(number), &connect(&name));
        end.exchange(s(1), address(number), &subscribe(1, "ab", Qos::AtLeastOnce));
    }
    end.exchange(s(1), address(2), &sleep(100));
    let sent = broker_publishes(&mut end, s(2), "ab", "x", Qos::AtLeastOnce);
    let publish = sent_publish(&sent);
    end.exchange(s(3), address(1), &puback(publish.topic.field(), publish.message));
    assert_eq!(end.broker.results, [(1, DeliveryOutcome::Stored)]);
    end.gateway.route(s(4), &message("other", "x", Qos::AtLeastOnce), 2);
    end.settle(s(4));
    assert_eq!(end.broker.results[1], (2, DeliveryOutcome::Unmatched));
}

#[test]
fn in_aggregating_mode_retained_messages_go_to_new_subscriptions_only() {
    let mut end = GatewayEnd::new(GatewaySettings { mode: Mode::Aggregating, ..quiet() });
    for (number, at) in [(1, 1), (2, 100)] {
        let name = format!("robot {number}");
        end.exchange(s(at), address(number), &connect(&name));
        end.exchange(s(at), address(number), &subscribe(1, "ab", Qos::AtMostOnce));
    }
    let mut retained = message("ab", "x", Qos::AtMostOnce);
    retained.retain = true;
    end.gateway.route(s(101), &retained, 1);
    assert_eq!(end.gateway.poll_transmit().unwrap().to, Destination::Unicast(address(2)));
    assert_eq!(end.gateway.poll_transmit(), None);
}

#[test]
fn in_aggregating_mode_clients_are_refused_without_a_broker() {
    let mut end = GatewayEnd::new(GatewaySettings { mode: Mode::Aggregating, ..quiet() });
    end.gateway.set_available(false);
    let congestion = Packet::ConnAck { code: ReturnCode::Congestion };
    expect(&mut end, s(0), address(1), &connect("robot"), &[congestion]);
    end.gateway.set_available(true);
    expect(&mut end, s(0), address(1), &connect("robot"), &[CONNACK]);
}

#[test]
fn the_gateway_ignores_messages_of_gateways() {
    let mut end = connected(quiet());
    for packet in [CONNACK, Packet::PingResp, Packet::WillMsgReq, Packet::Advertise { gateway: 1, duration: 1 }] {
        expect(&mut end, s(1), address(1), &packet, &[]);
    }
    end.gateway.handle_datagram(s(1), address(1), &Bytes::from_static(b"\x03\x17"));
    let counters = end.gateway.counters();
    assert_eq!((counters.refused(Refusal::Direction), counters.refused(Refusal::Malformed)), (4, 1));
}

#[test]
fn settings_are_checked() {
    let error = Gateway::new(GatewaySettings { clients_max: 0, ..quiet() }, 1).unwrap_err();
    assert_eq!(error.to_string(), "`clients_max` must be 1 to 16,777,216");
}

#[test]
fn events_come_in_the_order_of_their_requests() {
    let mut gateway = Gateway::new(quiet(), 1).unwrap();
    gateway.handle_datagram(s(0), address(1), &datagram(&connect("robot")));
    let Some(GatewayEvent::Connect { client, client_id, clean, keep_alive, will }) = gateway.poll_event() else {
        panic!("no request for a connection")
    };
    assert_eq!((&*client_id, clean, keep_alive, will), ("robot", true, secs(60), None));
    assert_eq!(gateway.poll_transmit(), None);
    gateway.connected(s(0), client, Ok(false));
    assert_eq!(gateway.poll_transmit().unwrap().to, Destination::Unicast(address(1)));
}

/// Returns the octets of the PUBLISH messages among those sent.
fn published_octets(sent: &[Vec<u8>]) -> usize {
    let is_publish = |packet: &&Vec<u8>| matches!(Packet::decode(packet), Ok(Packet::Publish(_)));
    sent.iter().filter(is_publish).map(Vec::len).sum()
}

#[test]
fn messages_to_a_forged_address_are_limited_until_it_answers_a_registration() {
    for qos in [Qos::AtMostOnce, Qos::AtLeastOnce, Qos::ExactlyOnce] {
        let mut end = connected(GatewaySettings { retransmission: Profile::ADAPTIVE, ..quiet() });
        let subscription = subscribe(1, "big", qos);
        let received = datagram(&subscription).len();
        end.exchange(s(1), address(1), &subscription);
        let payload = "x".repeat(1000);
        let mut sent: Vec<_> = (0..20).flat_map(|_| broker_publishes(&mut end, s(2), "big", &payload, qos)).collect();
        sent.extend(end.advance(s(8)));
        let octets = published_octets(&sent);
        assert!((1000..=4096 + 3 * received).contains(&octets), "{qos:?}: {octets} octets");
        let registration =
            sent.iter().rev().find(|packet| matches!(Packet::decode(packet), Ok(Packet::Register { .. })));
        let Ok(Packet::Register { topic, message, name: "big" }) = Packet::decode(registration.unwrap()) else {
            panic!("no registration of the topic")
        };
        let sent = end.exchange(s(8), address(1), &regack(topic, message));
        assert!(published_octets(&sent) >= 1000, "{qos:?}: the address is proven");
        if qos == Qos::AtMostOnce {
            assert_eq!(sent.len(), 16, "the messages that waited");
        }
        // At another address, the session is as unproven as a new one.
        end.exchange(s(9), address(2), &connect("robot"));
        end.exchange(s(9), address(2), &subscribe(2, "big", qos));
        let sent: Vec<_> = (0..20).flat_map(|_| broker_publishes(&mut end, s(9), "big", &payload, qos)).collect();
        assert!(published_octets(&sent) <= 4096 + 3 * received, "{qos:?}: another address");
    }
}

#[test]
fn a_token_belongs_to_a_message_until_the_message_is_dropped() {
    let settings = GatewaySettings { mode: Mode::Aggregating, acknowledge: Acknowledge::AfterStorage, ..quiet() };
    let mut gateway = Gateway::new(settings, 1).unwrap();
    let mut token = None;
    let topic = TopicId::Normal(1);
    for packet in [connect("robot"), register(1, "a"), publish(Some(Qos::AtLeastOnce), topic, 5, b"x")] {
        gateway.handle_datagram(s(0), address(1), &datagram(&packet));
        while let Some(event) = gateway.poll_event() {
            if let GatewayEvent::Record { token: Some(wanted), .. } = event {
                token = Some(wanted);
            }
        }
    }
    assert!(gateway.has_message(token.unwrap()));
    // A clean session begins before the message is stored: it was not acknowledged.
    gateway.handle_datagram(s(1), address(1), &datagram(&connect("robot")));
    assert!(!gateway.has_message(token.unwrap()));
}
