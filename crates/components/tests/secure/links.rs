//! Sessions over lossy links, in virtual time.

use std::time::Duration;

use viaduct_components::net::secure::{DropReason, Event, Timing};
use viaduct_netem::link::{Delay, Jitter, Loss, Order, Outage, Outages};
use viaduct_netem::{LinkSettings, Pair, PairSettings, Probability};
use viaduct_units::Mono;

use super::common::{MS, PEER, Program, address_of_desk, address_of_vehicle, desk, endpoint, key, vehicle};

/// A link that loses and overtakes.
fn lossy(loss: f64, delay: Duration, jitter: Duration) -> LinkSettings {
    LinkSettings {
        loss: Loss::Independent(Probability::new(loss).unwrap()),
        delay: Delay { base: delay, jitter: Jitter::Uniform(jitter), order: Order::Free, ..Delay::default() },
        ..LinkSettings::default()
    }
}

/// A desk that sends 100 payloads per second, and a vehicle that sends 1000. Their clocks have different origins.
fn drive(link: LinkSettings, timing: &Timing) -> Pair<Program> {
    let settings = PairSettings {
        clock_a: Mono(Duration::from_secs(1000)),
        clock_b: Mono(Duration::from_secs(7)),
        ..PairSettings::symmetric(link)
    };
    let desk = Program::new(desk(timing.clone(), 10));
    let vehicle = Program::new(vehicle(timing.clone(), 20));
    let mut pair = Pair::new(settings, desk, vehicle).unwrap();
    assert_eq!((pair.address_a(), pair.address_b()), (address_of_desk(), address_of_vehicle()));
    pair.with_a(|desk, now| desk.start(now, 10 * MS));
    pair.with_b(|vehicle, now| vehicle.start(now, MS));
    pair
}

fn restarted(pair: &mut Pair<Program>, is_vehicle: bool) {
    let timing = Timing::default();
    if is_vehicle {
        pair.with_b(|program, _| program.restart(vehicle(timing, 21)));
    } else {
        pair.with_a(|program, _| program.restart(desk(timing, 11)));
    }
}

/// Returns the events of a program without their times.
fn events(program: &Program) -> Vec<Event> {
    program.events.iter().map(|(_, event)| *event).collect()
}

#[test]
fn a_desk_connects_in_two_round_trips() {
    let mut pair = drive(lossy(0.0, 20 * MS, Duration::ZERO), &Timing::default());
    pair.run_for(79 * MS);
    assert!(events(pair.a()).is_empty() && events(pair.b()).is_empty());
    pair.run_for(2 * MS);
    assert_eq!(events(pair.a()), [Event::Connected { peer: PEER, address: address_of_vehicle() }]);
    pair.run_for(20 * MS);
    assert_eq!(events(pair.b()), [Event::Connected { peer: PEER, address: address_of_desk() }]);
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.a().endpoint.counters().dropped_total() + pair.b().endpoint.counters().dropped_total(), 0);
    assert!(pair.a().received.len() > 900 && pair.b().received.len() > 90);
}

#[test]
fn a_desk_connects_although_most_datagrams_are_lost() {
    let mut pair = drive(lossy(0.5, 20 * MS, 5 * MS), &Timing::default());
    pair.run_for(Duration::from_secs(30));
    assert!(matches!(events(pair.a())[..], [Event::Connected { .. }, ..]));
    assert!(matches!(events(pair.b())[..], [Event::Connected { .. }, ..]));
}

#[test]
fn a_desk_connects_over_a_round_trip_that_is_longer_than_the_first_retry() {
    let mut pair = drive(lossy(0.0, 700 * MS, Duration::ZERO), &Timing::default());
    pair.run_for(Duration::from_secs(10));
    assert!(matches!(events(pair.a())[..], [Event::Connected { .. }, ..]), "{:?}", events(pair.a()));
    assert!(!pair.b().received.is_empty());
}

#[test]
fn keys_change_under_traffic_without_the_loss_of_a_datagram() {
    let timing =
        Timing { rekey_after: Duration::from_secs(2), expire_after: Duration::from_secs(6), ..Timing::default() };
    let mut pair = drive(lossy(0.05, 20 * MS, 15 * MS), &timing);
    pair.run_for(Duration::from_secs(60));
    for program in [pair.a(), pair.b()] {
        let counters = program.endpoint.counters();
        assert_eq!(counters.dropped_total(), 0, "{counters:?}");
        assert!((25..=32).contains(&counters.sessions), "{counters:?}");
        let renewals = events(program).iter().filter(|event| matches!(event, Event::Renewed { .. })).count();
        assert_eq!(renewals as u64, counters.sessions - 1);
    }
    // What the link has delivered was opened: payloads, empty datagrams and handshakes.
    let delivered = pair.a().endpoint.counters().received;
    assert_eq!(delivered, pair.b_to_a().delivered);
    assert!(pair.a().received.len() as u64 > delivered * 99 / 100);
    let overtaken = pair.a().received.windows(2).filter(|pair| pair[0].1 > pair[1].1).count();
    assert!(overtaken > 1000, "the link has not reordered: {overtaken}");
}

#[test]
fn keys_change_after_a_number_of_datagrams_in_either_direction() {
    let timing = Timing { rekey_after_datagrams: 2000, expire_after_datagrams: 4000, ..Timing::default() };
    let mut pair = drive(lossy(0.01, 10 * MS, MS), &timing);
    pair.run_for(Duration::from_secs(20));
    // The vehicle sends 1000 datagrams per second, the desk starts the handshakes.
    let counters = pair.a().endpoint.counters();
    assert!((9..=11).contains(&counters.sessions), "{counters:?}");
    assert_eq!(counters.dropped_total() + pair.b().endpoint.counters().dropped_total(), 0);
    assert!(pair.b().unsent < 100, "{}", pair.b().unsent);
}

#[test]
fn each_payload_is_received_once_over_a_link_that_duplicates() {
    let link = LinkSettings { duplicate: Probability::new(0.3).unwrap(), ..lossy(0.02, 20 * MS, 15 * MS) };
    let mut pair = drive(link, &Timing::default());
    pair.run_for(Duration::from_secs(10));
    for (program, sender) in [(pair.a(), pair.b()), (pair.b(), pair.a())] {
        let numbers = program.numbers();
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "a payload was received twice");
        assert!(numbers.len() as u64 > sender.sent * 9 / 10);
        let counters = program.endpoint.counters();
        assert!(counters.dropped(DropReason::Replayed) > numbers.len() as u64 / 5);
        let late_copies = counters.dropped(DropReason::NoHandshake);
        assert_eq!(counters.dropped_total(), counters.dropped(DropReason::Replayed) + late_copies, "{counters:?}");
    }
}

#[test]
fn a_vehicle_that_restarts_is_connected_again_within_a_second() {
    let mut pair = drive(lossy(0.05, 20 * MS, 5 * MS), &Timing::default());
    pair.run_for(Duration::from_secs(5));
    restarted(&mut pair, true);
    let (desk_before, vehicle_before) = (pair.a().received.len(), pair.b().received.len());
    pair.run_for(Duration::from_secs(1));
    assert!(pair.a().received.len() > desk_before + 100 && pair.b().received.len() > vehicle_before + 10);
    assert!(matches!(events(pair.a()).last(), Some(Event::Renewed { .. })));
    assert!(matches!(events(pair.b()).last(), Some(Event::Connected { .. })));
    assert!(pair.b().endpoint.counters().dropped(DropReason::NoSession) > 10, "the old session is not accepted");
}

#[test]
fn a_desk_that_restarts_is_connected_again_at_once() {
    let mut pair = drive(lossy(0.0, 20 * MS, 5 * MS), &Timing::default());
    pair.run_for(Duration::from_secs(5));
    restarted(&mut pair, false);
    let (desk_before, vehicle_before) = (pair.a().received.len(), pair.b().received.len());
    pair.run_for(Duration::from_millis(250));
    assert!(pair.a().received.len() > desk_before + 100 && pair.b().received.len() > vehicle_before + 10);
    assert!(matches!(events(pair.b()).last(), Some(Event::Renewed { .. })));
}

#[test]
fn both_ends_may_restart_at_once() {
    let mut pair = drive(lossy(0.05, 20 * MS, 5 * MS), &Timing::default());
    pair.run_for(Duration::from_secs(5));
    restarted(&mut pair, true);
    restarted(&mut pair, false);
    let before = pair.b().received.len();
    pair.run_for(Duration::from_secs(2));
    assert!(pair.b().received.len() > before + 50);
}

#[test]
fn a_session_survives_an_outage() {
    let outage = Outage { start: Duration::from_secs(5), duration: Duration::from_secs(20) };
    let link = LinkSettings { outages: Outages::List(vec![outage]), ..lossy(0.0, 20 * MS, MS) };
    let mut pair = drive(link, &Timing::default());
    pair.run_for(Duration::from_millis(25_200));
    let of_desk = events(pair.a());
    assert!(matches!(of_desk[..], [Event::Connected { .. }]), "{of_desk:?}");
    let end = Duration::from_secs(1025);
    let first = pair.a().received.iter().find(|(time, _)| time.0 >= end).unwrap().0;
    assert!(first.0 - end < 30 * MS, "the first payload after the outage arrives after {:?}", first.0 - end);
    // Attempts become rare during the outage, and cost a datagram of 48 octets each.
    assert!(pair.a().endpoint.counters().handshakes_started < 4);
}

#[test]
fn a_session_expires_after_a_long_outage_and_the_desk_connects_again() {
    let outage = Outage { start: Duration::from_secs(5), duration: Duration::from_secs(300) };
    let link = LinkSettings { outages: Outages::List(vec![outage]), ..lossy(0.0, 20 * MS, MS) };
    let mut pair = drive(link, &Timing::default());
    pair.run_for(Duration::from_secs(310));
    for program in [pair.a(), pair.b()] {
        let kinds = events(program);
        let expected =
            matches!(kinds[..], [Event::Connected { .. }, Event::Disconnected { .. }, Event::Connected { .. }]);
        assert!(expected, "{kinds:?}");
        assert!(program.unsent > 1000);
    }
}

#[test]
fn a_flow_in_one_direction_causes_no_handshakes() {
    for is_from_desk in [true, false] {
        let mut pair = drive(lossy(0.0, 20 * MS, MS), &Timing::default());
        if is_from_desk {
            pair.with_b(|vehicle, _| vehicle.stop());
        } else {
            pair.with_a(|desk, _| desk.stop());
        }
        pair.run_for(Duration::from_secs(60));
        assert_eq!(pair.a().endpoint.counters().handshakes_started, 1, "from desk: {is_from_desk}");
        let receiver = if is_from_desk { pair.sent_by_b() } else { pair.sent_by_a() };
        // An empty datagram every 200 ms.
        assert!((280..=310).contains(&receiver.datagrams), "{}", receiver.datagrams);
    }
}

#[test]
fn an_idle_session_sends_nothing_but_renewals() {
    let mut pair = drive(lossy(0.0, 20 * MS, MS), &Timing::default());
    pair.with_a(|desk, _| desk.stop());
    pair.with_b(|vehicle, _| vehicle.stop());
    pair.run_for(Duration::from_secs(600));
    let sent = pair.sent_by_a().datagrams + pair.sent_by_b().datagrams;
    assert!(sent <= 6 * 6, "{sent}");
    assert_eq!(pair.a().endpoint.counters().sessions, 5);
}

#[test]
fn two_ends_that_both_open_the_connection_agree() {
    let timing = Timing { rekey_after: Duration::from_secs(3), ..Timing::default() };
    let link = lossy(0.02, 20 * MS, 15 * MS);
    let a = endpoint(&key(1), &key(2), Some(address_of_vehicle()), timing.clone(), 10);
    let b = endpoint(&key(2), &key(1), Some(address_of_desk()), timing, 20);
    let (a, b) = (Program::new(a), Program::new(b));
    let mut pair = Pair::new(PairSettings::symmetric(link), a, b).unwrap();
    pair.with_a(|program, now| program.start(now, 10 * MS));
    pair.with_b(|program, now| program.start(now, 10 * MS));
    pair.run_for(Duration::from_secs(60));
    for (program, sender) in [(pair.a(), pair.b()), (pair.b(), pair.a())] {
        assert!(program.received.len() as u64 > sender.sent * 95 / 100);
        let counters = program.endpoint.counters();
        assert_eq!(counters.dropped_total(), counters.dropped(DropReason::NoHandshake), "{counters:?}");
        assert!(counters.sessions < 50, "{counters:?}");
    }
}
