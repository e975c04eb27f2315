//! Client and gateway over a lossy link, in virtual time.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the failure")]

mod common;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use bytes::Bytes;
use common::{System, broker_publishes, connect, message, publish, s, secs, subscribe, system};
use viaduct_mqttsn::{
    ClientEvent, ClientSettings, GatewaySettings, STANDARD,
    client::{ClientRefusal, ClientState, Failure, Outcome, Publication, RequestError, Topic},
    codec::{Packet, Qos, ReturnCode, ShortTopic},
    gateway::{Acknowledge, BufferSettings, Mode, PredefinedTopics},
};
use viaduct_netem::LinkSettings;

const LOSS: f64 = 0.25;

fn gateway() -> GatewaySettings {
    GatewaySettings { advertise: None, ..GatewaySettings::default() }
}

fn client() -> ClientSettings {
    ClientSettings { client_id: "robot".to_owned(), ..ClientSettings::default() }
}

fn numbers(count: usize) -> Vec<String> {
    (0..count).map(|number| number.to_string()).collect()
}

fn unique(payloads: &[String]) -> BTreeSet<&String> {
    payloads.iter().collect()
}

#[test]
fn each_message_to_the_broker_arrives_in_spite_of_loss() {
    for acknowledge in [Acknowledge::AfterBroker, Acknowledge::AfterStorage] {
        let mut system = system(LOSS, client(), GatewaySettings { acknowledge, ..gateway() });
        connect(&mut system);
        for number in 0..200 {
            publish(&mut system, "once", &number.to_string(), Qos::ExactlyOnce);
            publish(&mut system, "least", &number.to_string(), Qos::AtLeastOnce);
            system.run_for(secs(1));
        }
        system.run_for(secs(60));
        assert_eq!(system.b().payloads("once"), numbers(200));
        let least = system.b().payloads("least");
        assert_eq!(unique(&least).len(), 200);
        assert_eq!(least.len(), 200, "the gateway recognizes repetitions of QoS 1 too");
        assert_eq!(system.a().finished(Outcome::Published), 400);
        assert!(system.a().client.counters().retransmissions > 100);
        assert!(system.b().gateway.counters().duplicates > 50);
    }
}

#[test]
fn each_message_of_the_broker_arrives_in_spite_of_loss() {
    for mode in [Mode::Transparent, Mode::Aggregating] {
        let mut system = system(LOSS, client(), GatewaySettings { mode, ..gateway() });
        connect(&mut system);
        subscribe(&mut system, "down/#", Qos::ExactlyOnce);
        for number in 0..200 {
            broker_publishes(&mut system, "down/once", &number.to_string(), Qos::ExactlyOnce);
            broker_publishes(&mut system, "down/least", &format!("least {number}"), Qos::AtLeastOnce);
            system.run_for(secs(1));
        }
        system.run_for(secs(60));
        let (least, once): (Vec<_>, Vec<_>) =
            system.a().payloads().into_iter().partition(|payload| payload.starts_with("least"));
        assert_eq!(once, numbers(200), "{mode:?}");
        assert_eq!(unique(&least).len(), 200);
        assert_eq!(system.b().broker.results.len(), 400);
    }
}

#[test]
fn the_standard_timers_deliver_too_but_slowly() {
    let settings = ClientSettings { retransmission: STANDARD, ..client() };
    let mut system = system(0.1, settings, GatewaySettings { retransmission: STANDARD, ..gateway() });
    connect(&mut system);
    for number in 0..20 {
        publish(&mut system, "once", &number.to_string(), Qos::ExactlyOnce);
    }
    system.run_for(secs(20));
    assert!(system.a().finished(Outcome::Published) < 20);
    system.run_for(secs(600));
    assert_eq!(system.b().payloads("once"), numbers(20));
}

#[test]
fn measured_round_trips_keep_the_delay_short() {
    for (loss, mean_max_ms) in [(0.1, 60), (0.25, 150)] {
        let mut system = system(loss, client(), gateway());
        connect(&mut system);
        publish(&mut system, "warm-up", "", Qos::AtLeastOnce);
        system.run_for(secs(30));
        let begin = system.now();
        for number in 0..500 {
            publish(&mut system, "delay", &number.to_string(), Qos::AtLeastOnce);
            while system.a().client.pending() > 0 {
                system.step(s(100_000)).unwrap();
            }
        }
        let mean = system.now().since(begin) / 500;
        assert!(mean <= Duration::from_millis(mean_max_ms), "loss {loss}: {mean:?}");
        assert_eq!(system.a().client.counters().lost, 0);
    }
}

#[test]
fn a_will_survives_the_loss_of_its_dialogue() {
    let settings = ClientSettings { will: Some(message("will", "gone", Qos::AtLeastOnce)), ..client() };
    let mut system = system(LOSS, settings, gateway());
    connect(&mut system);
    let updated = Bytes::from_static(b"gone for good");
    system.with_a(|end, now| end.client.update_will_message(now, updated)).unwrap();
    let topic = message("will/2", "", Qos::ExactlyOnce);
    system.with_a(|end, now| end.client.update_will_topic(now, Some(topic))).unwrap();
    system.run_for(secs(60));
    assert_eq!(system.a().finished(Outcome::WillUpdated), 2);
    assert_eq!(system.a().client.settings().will, Some(message("will/2", "gone for good", Qos::ExactlyOnce)));
    system.set_a_to_b(down()).unwrap();
    system.run_for(secs(200));
    assert_eq!(system.b().payloads("will/2"), ["gone for good"]);
}

fn down() -> LinkSettings {
    LinkSettings {
        loss: viaduct_netem::link::Loss::Independent(viaduct_netem::Probability::new(1.0).unwrap()),
        ..LinkSettings::default()
    }
}

#[test]
fn a_client_reconnects_after_an_outage_and_nothing_is_lost() {
    let settings = ClientSettings { keep_alive: secs(20), ..client() };
    let mut system = system(0.0, settings, gateway());
    connect(&mut system);
    subscribe(&mut system, "down", Qos::AtLeastOnce);
    system.set_a_to_b(down()).unwrap();
    for number in 0..5 {
        publish(&mut system, "up", &number.to_string(), Qos::AtLeastOnce);
    }
    system.run_for(secs(200));
    assert!(system.a().events.iter().any(|event| matches!(event, ClientEvent::Lost { .. })));
    assert_eq!(system.b().gateway.sessions(), 0);
    system.set_a_to_b(LinkSettings::default()).unwrap();
    system.run_for(secs(100));
    assert_eq!(system.a().client.state(), ClientState::Active);
    assert_eq!(system.b().payloads("up"), numbers(5));
    broker_publishes(&mut system, "down", "x", Qos::AtLeastOnce);
    system.run_for(secs(10));
    assert_eq!(system.a().payloads(), ["x"], "the client has subscribed again");
}

#[test]
fn a_client_that_the_gateway_has_forgotten_connects_again() {
    let mut system = system(LOSS, client(), gateway());
    connect(&mut system);
    subscribe(&mut system, "down/+", Qos::AtLeastOnce);
    publish(&mut system, "up", "1", Qos::AtLeastOnce);
    system.run_for(secs(10));
    // A restart without storage.
    system.with_b(|end, _| *end = common::GatewayEnd::new(gateway()));
    publish(&mut system, "up", "2", Qos::AtLeastOnce);
    system.run_for(secs(100));
    assert_eq!(system.b().payloads("up"), ["2"]);
    broker_publishes(&mut system, "down/1", "x", Qos::AtLeastOnce);
    system.run_for(secs(30));
    assert_eq!(system.a().payloads(), ["x"]);
}

#[test]
fn a_client_that_is_disconnected_at_once_does_not_flood_its_gateway() {
    let mut system = system(0.0, client(), gateway());
    connect(&mut system);
    let gateway = system.address_b();
    for _ in 0..1000 {
        if system.a().client.state() == ClientState::Active {
            system.inject_to_a(gateway, &common::datagram(&Packet::Disconnect { duration: None }));
        }
        system.run_for(Duration::from_millis(100));
    }
    assert!((30..60).contains(&system.a().client.counters().connections), "{:?}", system.a().client.counters());
}

#[test]
fn a_gateway_that_is_killed_loses_nothing_that_it_acknowledged() {
    for acknowledge in [Acknowledge::AfterBroker, Acknowledge::AfterStorage] {
        // Messages that were acknowledged, and that were not yet, when the gateway was killed.
        let (mut acknowledged, mut open) = (0, 0);
        for run in 1..=100 {
            let before_kill = kill_gateway(acknowledge, run);
            acknowledged += before_kill;
            open += MESSAGES - before_kill;
        }
        assert!(acknowledged > 500 && open > 500, "{acknowledge:?}: {acknowledged} {open}");
    }
}

/// Messages of the client while the gateway is killed.
const MESSAGES: usize = 20;

/// Kills the gateway while the client publishes, and checks that each message arrives. Returns the number of messages that
/// were acknowledged before.
fn kill_gateway(acknowledge: Acknowledge, run: u64) -> usize {
    let settings = GatewaySettings { acknowledge, ..gateway() };
    let mut system = common::seeded_system(run, LOSS, ClientSettings { clean: false, ..client() }, settings.clone());
    connect(&mut system);
    for _ in 0..10 {
        publish(&mut system, "warm-up", "", Qos::AtLeastOnce);
    }
    system.run_for(secs(60));
    let warm_up = system.a().finished(Outcome::Published);
    if acknowledge == Acknowledge::AfterStorage {
        system.with_b(|end, _| end.broker.answers = false);
    }
    for number in 0..MESSAGES {
        let qos = if number % 2 == 0 { Qos::AtLeastOnce } else { Qos::ExactlyOnce };
        publish(&mut system, "up", &number.to_string(), qos);
    }
    system.run_for(Duration::from_millis(37 * run));
    let acknowledged = system.a().finished(Outcome::Published) - warm_up;
    system.with_b(|end, now| end.restart(now, settings));
    system.with_b(common::GatewayEnd::answer);
    let arrived = unique(&system.b().payloads("up")).len();
    assert!(arrived >= acknowledged, "{acknowledge:?} {run}: {arrived} of {acknowledged}");
    system.run_for(secs(200));
    let mut payloads = system.b().payloads("up");
    let odd = |payload: &&String| payload.parse::<u32>().unwrap() % 2 == 1;
    let once: Vec<_> = payloads.iter().filter(odd).cloned().collect();
    assert_eq!(unique(&once).len(), once.len(), "{acknowledge:?} {run}: QoS 2 twice: {payloads:?}");
    payloads.dedup();
    assert_eq!(payloads, numbers(MESSAGES), "{acknowledge:?} {run}");
    acknowledged
}

#[test]
fn stored_messages_to_clients_survive_a_restart() {
    for mode in [Mode::Transparent, Mode::Aggregating] {
        let settings = GatewaySettings { acknowledge: Acknowledge::AfterStorage, mode, ..gateway() };
        let mut system = system(LOSS, ClientSettings { clean: false, ..client() }, settings.clone());
        connect(&mut system);
        subscribe(&mut system, "down/#", Qos::ExactlyOnce);
        system.with_a(|end, now| end.client.sleep(now, secs(500))).unwrap();
        system.run_for(secs(20));
        for number in 0..10 {
            broker_publishes(&mut system, "down/1", &number.to_string(), Qos::ExactlyOnce);
        }
        assert_eq!(system.b().broker.results.len(), 10, "all are stored");
        system.with_b(|end, now| end.restart(now, settings.clone()));
        system.with_a(|end, now| end.client.wake(now)).unwrap();
        system.run_for(Duration::from_millis(150));
        system.with_b(|end, now| end.restart(now, settings.clone()));
        system.run_for(secs(50));
        assert_eq!(system.a().payloads(), numbers(10), "{mode:?}");
        assert_eq!(system.a().client.state(), ClientState::Asleep);
        assert_eq!(system.b().gateway.buffered_octets(), 0);
        broker_publishes(&mut system, "down/2", "later", Qos::ExactlyOnce);
        system.with_a(|end, now| end.client.resume(now)).unwrap();
        system.run_for(secs(50));
        assert_eq!(system.a().payloads().len(), 11);
    }
}

#[test]
fn a_sleeping_client_wakes_up_by_itself() {
    let mut system = system(LOSS, client(), gateway());
    connect(&mut system);
    subscribe(&mut system, "down", Qos::ExactlyOnce);
    publish(&mut system, "up", "before", Qos::AtLeastOnce);
    system.with_a(|end, now| end.client.sleep(now, secs(60))).unwrap();
    system.run_for(secs(30));
    assert_eq!((system.a().client.state(), system.b().payloads("up").len()), (ClientState::Asleep, 1));
    for number in 0..30 {
        broker_publishes(&mut system, "down", &number.to_string(), Qos::ExactlyOnce);
        system.run_for(secs(20));
    }
    system.run_for(secs(100));
    assert_eq!(system.a().payloads(), numbers(30));
    assert_eq!(system.a().client.counters().lost, 0);
    publish(&mut system, "up", "asleep", Qos::AtLeastOnce);
    system.with_a(|end, now| end.client.resume(now)).unwrap();
    system.run_for(secs(30));
    assert_eq!(system.b().payloads("up"), ["before", "asleep"]);
}

#[test]
fn a_request_made_while_the_client_falls_asleep_is_sent_before_the_sleep() {
    for loss in [0.0, LOSS] {
        let mut system = system(loss, client(), gateway());
        connect(&mut system);
        system.with_a(|end, now| end.client.sleep(now, secs(100))).unwrap();
        assert_eq!(system.a().client.state(), ClientState::Leaving);
        publish(&mut system, "up", "late", Qos::AtLeastOnce);
        system.run_for(secs(50));
        assert_eq!(system.b().payloads("up"), ["late"]);
        assert_eq!((system.a().client.state(), system.a().client.pending()), (ClientState::Asleep, 0));
    }
}

#[test]
fn all_kinds_of_topics_work_both_ways() {
    let predefined = PredefinedTopics::from([(7, Arc::from("predefined/7"))]);
    let settings = GatewaySettings { predefined: predefined.clone(), without_connection: true, ..gateway() };
    let mut system = system(LOSS, ClientSettings { predefined, ..client() }, settings);
    connect(&mut system);
    let short = Topic::Short(ShortTopic::from_name("ab").unwrap());
    let topics = [Topic::Predefined(7), short.clone(), Topic::from("some/name")];
    for topic in &topics {
        system.with_a(|end, now| end.client.subscribe(now, topic.clone(), Qos::AtLeastOnce)).unwrap();
        let publication = Publication {
            topic: topic.clone(),
            payload: Bytes::from_static(b"x"),
            qos: Qos::AtLeastOnce,
            retain: true,
        };
        system.with_a(|end, now| end.client.publish(now, publication)).unwrap();
    }
    system.run_for(secs(30));
    for name in ["predefined/7", "ab", "some/name"] {
        assert_eq!(system.b().payloads(name), ["x"]);
        broker_publishes(&mut system, name, name, Qos::AtLeastOnce);
    }
    system.run_for(secs(30));
    let received = system.a().payloads();
    assert_eq!(unique(&received).len(), 3, "{received:?}");
    for topic in topics {
        system.with_a(|end, now| end.client.unsubscribe(now, topic)).unwrap();
    }
    system.run_for(secs(30));
    assert_eq!(system.a().finished(Outcome::Unsubscribed), 3);
    assert!(system.b().broker.subscriptions.is_empty());

    let gateway = system.address_b();
    for _ in 0..40 {
        system.with_a(|end, _| end.client.publish_without_connection(gateway, &short, b"minus one")).unwrap();
    }
    system.run_for(secs(1));
    assert!(system.b().payloads("ab").len() > 20);
}

#[test]
fn the_queue_of_a_client_is_limited() {
    let mut system = system(0.0, ClientSettings { queue_max: 3, ..client() }, gateway());
    let publication = || Publication {
        topic: Topic::from("a"),
        payload: Bytes::from_static(b"x"),
        qos: Qos::AtLeastOnce,
        retain: false,
    };
    let error = system.with_a(|end, now| end.client.publish(now, publication()));
    assert_eq!(error, Err(RequestError::State));
    connect(&mut system);
    let results: Vec<_> = (0..5).map(|_| system.with_a(|end, now| end.client.publish(now, publication()))).collect();
    assert!(results[..4].iter().all(Result::is_ok) && results[4] == Err(RequestError::QueueFull));
    let topic = Publication { topic: Topic::from("a/#"), ..publication() };
    assert_eq!(system.with_a(|end, now| end.client.publish(now, topic)), Err(RequestError::Topic));
    let large = Publication { payload: Bytes::from(vec![0; 1400]), ..publication() };
    assert_eq!(system.with_a(|end, now| end.client.publish(now, large)), Err(RequestError::TooLarge));
    system.with_a(|end, now| end.client.disconnect(now)).unwrap();
    system.run_for(secs(30));
    let failed =
        |event: &&ClientEvent| matches!(event, ClientEvent::Finished { result: Err(Failure::Disconnected), .. });
    assert_eq!(system.a().events.iter().filter(failed).count(), 4);
    assert_eq!(system.a().events.last(), Some(&ClientEvent::Disconnected));
}

#[test]
fn congestion_makes_the_client_wait_for_t_wait() {
    let settings = GatewaySettings { in_flight_per_client_max: 1, connecting_max: 1, ..gateway() };
    let mut system = system(0.0, ClientSettings { congestion_wait: secs(20), ..client() }, settings);
    system.with_b(|end, _| end.broker.answers = false);
    let address = system.address_b();
    system.with_a(|end, now| end.client.connect(now, Some(address))).unwrap();
    system.run_for(secs(45));
    assert!(system.a().events.contains(&ClientEvent::Refused { code: ReturnCode::Congestion }));
    system.with_b(|end, _| end.broker.answers = true);
    system.run_for(secs(30));
    assert_eq!(system.a().client.state(), ClientState::Active);
}

#[test]
fn a_client_that_is_refused_stays_disconnected() {
    let settings = ClientSettings { client_id: "longer than 23 characters".to_owned(), ..client() };
    let mut system = system(0.0, settings, gateway());
    let address = system.address_b();
    system.with_a(|end, now| end.client.connect(now, Some(address))).unwrap();
    system.run_for(secs(100));
    assert_eq!(system.a().events, [ClientEvent::Refused { code: ReturnCode::NotSupported }]);
    assert_eq!(system.a().client.state(), ClientState::Disconnected);
}

#[test]
fn a_client_discovers_its_gateway() {
    let settings = GatewaySettings { gateway_id: 9, ..gateway() };
    let mut system = system(LOSS, client(), settings);
    system.with_a(|end, now| end.client.connect(now, None)).unwrap();
    system.run_for(secs(200));
    let address = system.address_b();
    assert!(system.a().events.contains(&ClientEvent::GatewayFound { id: 9, address }));
    assert!(system.a().events.contains(&ClientEvent::Connected { gateway: address }));
    assert_eq!(system.a().client.gateways()[0].id, 9);
}

#[test]
fn a_lost_client_goes_to_another_gateway_first() {
    let mut system: System = system(0.0, ClientSettings { keep_alive: secs(10), ..client() }, gateway());
    connect(&mut system);
    let other = "192.0.2.9:4000".parse().unwrap();
    for (from, id) in [(system.address_b(), 1), (other, 2)] {
        system.inject_to_a(from, &common::datagram(&Packet::Advertise { gateway: id, duration: 600 }));
    }
    system.set_a_to_b(down()).unwrap();
    system.run_for(secs(60));
    assert!(system.a().events.contains(&ClientEvent::Lost { gateway: system.address_b() }));
    assert!(system.sent_by_a().misaddressed > 0, "the other gateway was tried");
    system.set_a_to_b(LinkSettings::default()).unwrap();
    system.run_for(secs(300));
    assert_eq!(system.a().client.gateway(), Some(system.address_b()), "the other gateway does not exist");
    system.run_for(secs(2000));
    assert!(system.a().events.contains(&ClientEvent::GatewayForgotten { id: 2 }));
}

#[test]
fn a_client_takes_messages_from_its_gateway_only() {
    let mut system = system(0.0, client(), gateway());
    connect(&mut system);
    let stranger = "192.0.2.9:4000".parse().unwrap();
    system.inject_to_a(stranger, &common::datagram(&Packet::Disconnect { duration: None }));
    system.inject_to_a(stranger, &Bytes::from_static(b"\x09\x17"));
    let counters = system.a().client.counters();
    assert_eq!((counters.refused(ClientRefusal::Sender), counters.refused(ClientRefusal::Malformed)), (1, 1));
    assert_eq!(system.a().client.state(), ClientState::Active);
}

#[test]
fn a_small_buffer_loses_messages_of_a_sleeping_client_but_counts_them() {
    let buffer = BufferSettings { messages_per_client_max: 4, ..BufferSettings::default() };
    let mut system = system(0.0, client(), GatewaySettings { buffer, ..gateway() });
    connect(&mut system);
    subscribe(&mut system, "down", Qos::AtLeastOnce);
    system.with_a(|end, now| end.client.sleep(now, secs(100))).unwrap();
    system.run_for(secs(1));
    for number in 0..10 {
        broker_publishes(&mut system, "down", &number.to_string(), Qos::AtLeastOnce);
    }
    system.run_for(secs(150));
    assert_eq!(system.a().payloads(), ["6", "7", "8", "9"]);
    assert_eq!(system.b().gateway.counters().dropped_total(), 6);
}
