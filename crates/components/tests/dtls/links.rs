//! Sessions over lossy links, in virtual time.

use std::time::Duration;

use viaduct_components::net::dtls::{EndReason, Event};
use viaduct_netem::link::{Delay, Jitter, Loss, Order, Outage, Outages};
use viaduct_netem::{LinkSettings, Pair, PairSettings, Probability};
use viaduct_units::Mono;

use super::common::{End, MS, Program, check, client_address, new_client, new_server, server_address};

/// A link that loses and overtakes.
fn lossy(loss: f64, delay: Duration, jitter: Duration) -> LinkSettings {
    LinkSettings {
        loss: Loss::Independent(Probability::new(loss).unwrap()),
        delay: Delay { base: delay, jitter: Jitter::Uniform(jitter), order: Order::Free, ..Delay::default() },
        ..LinkSettings::default()
    }
}

/// A client that sends 10 payloads per second, and a server that echoes them.
fn drive(link: LinkSettings, seed: u64) -> Pair<Program> {
    let settings = PairSettings { seed, ..PairSettings::symmetric(link) };
    let client = Program::new(End::Client(Box::new(new_client())));
    let server = Program::new(End::Server(Box::new(new_server())));
    let mut pair = Pair::new(settings, client, server).unwrap();
    assert_eq!((pair.address_a(), pair.address_b()), (client_address(), server_address()));
    pair.with_a(|client, now| client.start(now, 100 * MS));
    pair
}

/// Returns the names of the events of a program.
fn events(program: &Program) -> Vec<&'static str> {
    let name = |event: &Event| match event {
        Event::Connected { .. } => "connected",
        Event::Renewed { .. } => "renewed",
        Event::Closed { reason, .. } | Event::Failed { reason, .. } => reason.label(),
    };
    program.events.iter().map(|(_, event)| name(event)).collect()
}

#[test]
fn a_client_connects_in_three_round_trips() {
    let mut pair = drive(lossy(0.0, 20 * MS, Duration::ZERO), 1);
    pair.run_for(119 * MS);
    assert!(events(pair.a()).is_empty());
    pair.run_for(2 * MS);
    assert_eq!((events(pair.a()), events(pair.b())), (vec!["connected"], vec!["connected"]));
    pair.run_for(Duration::from_secs(10));
    assert!(pair.a().received.len() > 95);
    assert_eq!(pair.a().counters().dropped_total() + pair.b().counters().dropped_total(), 0);
    check(pair.a().counters());
    check(pair.b().counters());
}

#[test]
fn a_quarter_of_all_datagrams_may_be_lost() {
    for seed in 0..40 {
        let mut pair = drive(lossy(0.25, 20 * MS, 5 * MS), seed);
        pair.run_for(Duration::from_secs(60));
        assert_eq!(events(pair.b()).first(), Some(&"connected"), "seed {seed}: {:?}", pair.b().events);
        let (connected, _) = pair.b().events[0];
        // More than a third of the payloads make both ways: 0.75 * 0.75 is 56 %.
        let since = Mono(Duration::from_secs(60)).since(connected).as_millis() as usize / 100;
        assert!(pair.a().received.len() >= since / 3, "seed {seed}: {} of {since}", pair.a().received.len());
        check(pair.a().counters());
        check(pair.b().counters());
    }
}

#[test]
fn a_client_finds_a_restarted_server_within_one_payload_and_three_round_trips() {
    let mut pair = drive(lossy(0.0, 20 * MS, Duration::ZERO), 1);
    pair.run_for(Duration::from_secs(5));
    pair.with_b(|server, _| server.end = End::Server(Box::new(new_server())));
    let restart = Mono(Duration::from_secs(5));
    pair.run_for(Duration::from_secs(5));
    assert_eq!(events(pair.a()), ["connected", "renewed"]);
    let next = pair.a().received.iter().find(|(at, _)| at.since(restart) > 50 * MS);
    assert!(next.is_some_and(|(at, _)| at.since(restart) < 400 * MS), "{next:?}");
    check(pair.a().counters());
    check(pair.b().counters());
}

#[test]
fn a_client_finds_a_restarted_server_although_the_alert_is_lost() {
    let mut pair = drive(lossy(0.0, 20 * MS, Duration::ZERO), 1);
    pair.run_for(Duration::from_secs(5));
    pair.with_b(|server, _| server.end = End::Server(Box::new(new_server())));
    // The link to the client is down when the server answers the first payloads.
    let down = Outages::List(vec![Outage { start: Duration::ZERO, duration: Duration::from_secs(17) }]);
    pair.set_b_to_a(LinkSettings { outages: down, ..lossy(0.0, 20 * MS, Duration::ZERO) }).unwrap();
    pair.run_for(Duration::from_secs(40));
    assert_eq!(events(pair.a()), ["connected", "renewed"]);
    assert!(pair.a().received.last().is_some_and(|(at, _)| *at > Mono(Duration::from_secs(44))));
}

#[test]
fn a_restarted_client_replaces_its_session() {
    let mut pair = drive(lossy(0.0, 20 * MS, Duration::ZERO), 1);
    pair.run_for(Duration::from_secs(5));
    pair.with_a(|client, _| client.end = End::Client(Box::new(new_client())));
    pair.run_for(Duration::from_secs(5));
    assert_eq!(events(pair.b()), ["connected", "renewed"]);
    assert!(pair.a().received.last().is_some_and(|(at, _)| *at > Mono(Duration::from_millis(9500))));
}

#[test]
fn a_client_whose_server_does_not_exist_tries_again_at_growing_intervals() {
    let mut pair = drive(lossy(1.0, 20 * MS, Duration::ZERO), 1);
    pair.run_for(Duration::from_secs(600));
    let failures = events(pair.a());
    assert!((6..=10).contains(&failures.len()), "{failures:?}");
    assert!(failures.iter().all(|failure| *failure == EndReason::HandshakeTimeout.label()));
    // 11 messages at most in each handshake.
    assert!(pair.a().counters().handshakes <= 11);
    assert!(pair.a().counters().unsent > 0);
}
