//! The service in virtual time, one rule per test.

use viaduct_etsi::denm_ts103831_v231::types::Temperature;
use viaduct_units::{Metres, TimestampIts};

use super::*;
use crate::{
    HashedId8, Repetition,
    facilities::{
        denm::{self, Cause},
        services::schedule::LATENESS,
    },
    geonet::Shape,
    limits::{DEN_FORWARDS_MAX, DEN_FORWARDS_OF_STATION_MAX, DEN_RECEIVED_MAX, DEN_RECEIVED_OF_STATION_MAX},
    security::Security,
};

const OWN: u32 = 7;
const OTHER: u32 = 8;

fn start() -> Now {
    Now { mono: Mono(Duration::from_secs(100)), tai: TimestampIts(650_000_000_000).tai() }
}

fn after(millis: u64) -> Now {
    start().plus(Duration::from_millis(millis))
}

fn place() -> Position {
    Position::new(45.0, 7.6)
}

fn service(keep_alive_forwarding: bool) -> DenService {
    let mut service = DenService::new(
        DenSettings { station_id: StationId(OWN), station_type: StationType::PASSENGER_CAR, keep_alive_forwarding },
        1,
    );
    service.set_position(place());
    service
}

/// Returns the report of a stationary vehicle, detected at that time.
fn report(millis: u64) -> EventReport {
    EventReport::new(Cause { code: 94, sub_code: 0 }, after(millis).tai, place())
}

fn repeated(interval: u64, duration: u64) -> Option<Repetition> {
    Some(Repetition { interval: Duration::from_millis(interval), duration: Duration::from_millis(duration) })
}

/// Returns the DENM as another station reads it.
fn read(input: &DenmInput) -> DenmHead {
    DenmHead::from(&denm::build(input))
}

fn taken(service: &mut DenService) -> Vec<DenmHead> {
    std::iter::from_fn(|| service.poll_transmit())
        .map(|transmit| match transmit {
            DenTransmit::Own(own) => read(&own.input),
            DenTransmit::Forwarded(denm) => denm.head,
        })
        .collect()
}

/// Runs the machine from deadline to deadline. Returns the times of DENMs in milliseconds since the start.
fn run(service: &mut DenService, end: u64) -> Vec<u64> {
    let mut sent = vec![0; taken(service).len()];
    while let Some(due) = service.poll_timeout().filter(|due| *due <= after(end).mono) {
        let now = start().plus(due.since(start().mono));
        service.handle_timeout(now);
        let millis = u64::try_from(due.since(start().mono).as_millis()).unwrap();
        sent.extend(taken(service).iter().map(|_| millis));
    }
    sent
}

/// Returns a DENM of another station about its event.
fn head(reference: u64) -> DenmHead {
    DenmHead {
        action_id: ActionId { originating_station: StationId(OTHER), sequence_number: 3 },
        detection: after(0).tai,
        reference: after(reference).tai,
        termination: None,
        cause: None,
        position: Some(place()),
        awareness_distance: Some(Metres(500.0)),
        validity: Duration::from_secs(60),
        transmission_interval: Some(Duration::from_millis(1000)),
    }
}

fn ended(reference: u64, termination: Termination) -> DenmHead {
    DenmHead { termination: Some(termination), ..head(reference) }
}

fn receive(service: &mut DenService, millis: u64, head: &DenmHead) -> Result<DenIndication, DenDrop> {
    let payload = Bytes::from_static(b"denm");
    service.handle_received(after(millis), &received(head, &payload, None))
}

/// Returns a DENM of an unsecured packet.
fn received<'a>(head: &'a DenmHead, payload: &'a Bytes, destination: Option<Area>) -> ReceivedDenm<'a> {
    ReceivedDenm { head, payload, destination, security: Security::Unsecured }
}

/// EN 302 637-3, 6.1.2.1: a new event has an action id that no other event of the station has, and is sent at once.
#[test]
fn a_trigger_sends_a_new_event_at_once() {
    let mut service = service(false);
    let first = service.trigger(after(0), report(0)).unwrap();
    let second = service.trigger(after(5), report(5)).unwrap();
    assert_ne!(first, second);
    let heads = taken(&mut service);
    assert_eq!(heads.iter().map(|head| head.action_id).collect::<Vec<_>>(), [first, second]);
    assert_eq!((heads[1].reference, heads[1].termination), (after(5).tai, None));
}

/// EN 302 637-3, 6.1.2.1: a sequence number in use is skipped when the numbers wrap.
#[test]
fn an_action_id_in_use_is_skipped() {
    let mut service = service(false);
    let first = service.trigger(after(0), report(0)).unwrap();
    service.sequence_number = first.sequence_number;
    let second = service.trigger(after(0), report(0)).unwrap();
    assert_eq!(second.sequence_number, first.sequence_number.wrapping_add(1));
}

/// EN 302 637-3, 6.1.2.2: an update keeps the action id and has a later reference time, even if the clock stepped back.
#[test]
fn an_update_has_a_later_reference_time() {
    let mut service = service(false);
    let action_id = service.trigger(after(0), report(0)).unwrap();
    service.update(after(500), action_id, report(400)).unwrap();
    let stepped_back = Now { tai: after(200).tai, ..after(600) };
    service.update(stepped_back, action_id, report(100)).unwrap();
    let heads = taken(&mut service);
    assert!(heads.iter().all(|head| head.action_id == action_id));
    let times: Vec<Tai> = heads.iter().map(|head| head.reference).collect();
    assert_eq!(times, [after(0).tai, after(500).tai, after(501).tai]);
}

/// EN 302 637-3, 8.2.1.5: without interval and duration an event is sent once.
#[test]
fn without_repetition_an_event_is_sent_once() {
    let mut service = service(false);
    service.trigger(after(0), report(0)).unwrap();
    assert_eq!(run(&mut service, 700_000), [0]);
}

/// EN 302 637-3, 6.1.2.3: `T_Repetition` and `T_RepetitionDuration`.
#[test]
fn an_event_is_repeated_for_the_requested_duration() {
    let mut service = service(false);
    service.trigger(after(0), EventReport { repetition: repeated(400, 1300), ..report(0) }).unwrap();
    assert_eq!(run(&mut service, 10_000), [0, 400, 800, 1200]);
}

/// EN 302 637-3, 6.1.2.3: a duration of a whole number of intervals has that number of repetitions, although each
/// timeout is handled a little late.
#[test]
fn the_last_repetition_may_be_a_little_late() {
    for (interval, duration, repetitions) in [(400, 1200, 3), (1000, 1000, 1), (1000, 60_000, 60)] {
        let mut service = service(false);
        service.trigger(after(0), EventReport { repetition: repeated(interval, duration), ..report(0) }).unwrap();
        taken(&mut service);
        let mut count = 0;
        for late in LATENESS.into_iter().cycle() {
            let Some(due) = service.poll_timeout().filter(|due| *due <= after(duration).mono) else { break };
            service.handle_timeout(start().plus(due.since(start().mono) + late));
            count += taken(&mut service).len();
        }
        assert_eq!(count, repetitions, "{interval} {duration}");
    }
}

/// EN 302 637-3, 8.2.1.5: a repetition that would be due at the end of the validity is omitted, and so is its interval.
#[test]
fn an_interval_up_to_the_end_of_the_validity_is_not_sent() {
    let mut service = service(false);
    let validity = Duration::from_secs(1);
    service.trigger(after(0), EventReport { validity, repetition: repeated(1000, 60_000), ..report(0) }).unwrap();
    assert_eq!(taken(&mut service)[0].transmission_interval, None);
    assert!(run(&mut service, 60_000).is_empty());
}

/// EN 302 637-3, 6.1.2.3: nothing is sent after `T_RepetitionDuration`, even if a timeout is handled very late.
#[test]
fn an_interval_beyond_the_duration_repeats_nothing() {
    let mut service = service(false);
    service.trigger(after(0), EventReport { repetition: repeated(2_000, 1_000), ..report(0) }).unwrap();
    assert_eq!(run(&mut service, 10_000), [0]);
    for (interval, woken) in [(400, 5_000), (1_000, 1_011)] {
        service.trigger(after(0), EventReport { repetition: repeated(interval, 1_000), ..report(0) }).unwrap();
        taken(&mut service);
        service.handle_timeout(after(woken));
        assert_eq!(taken(&mut service), []);
    }
}

/// TS 103 831, annex A (`transmissionInterval`): a DENM contains the effective interval, and none if it is not repeated
/// or the interval exceeds its range.
#[test]
fn a_denm_contains_the_effective_interval() {
    for (repetition, expected) in [
        (repeated(400, 1300), Some(400)),
        (repeated(1, 1300), Some(50)),
        (repeated(10_000, 60_000), Some(10_000)),
        (repeated(10_001, 60_000), None),
        (repeated(60_000, 600_000), None),
        (repeated(2_000, 1_000), None),
    ] {
        let mut service = service(false);
        service.trigger(after(0), EventReport { repetition, ..report(0) }).unwrap();
        let interval = taken(&mut service)[0].transmission_interval;
        assert_eq!(interval, expected.map(Duration::from_millis), "{repetition:?}");
    }
}

/// EN 302 637-3, 6.1.2.3: a repetition is the same message.
#[test]
fn a_repetition_is_unchanged() {
    let mut service = service(false);
    service.trigger(after(0), EventReport { repetition: repeated(400, 1000), ..report(0) }).unwrap();
    let Some(DenTransmit::Own(first)) = service.poll_transmit() else { panic!() };
    service.handle_timeout(after(400));
    let again = OwnDenm { repeated: true, ..*first };
    assert_eq!(service.poll_transmit(), Some(DenTransmit::Own(Box::new(again))));
}

/// EN 302 637-3, 8.2.1.5: no repetition is sent after the validity (`T_O_Validity`).
#[test]
fn repetition_ends_with_the_validity() {
    let mut service = service(false);
    let validity = Duration::from_millis(1000);
    service.trigger(after(0), EventReport { validity, repetition: repeated(300, 60_000), ..report(0) }).unwrap();
    assert_eq!(run(&mut service, 60_000), [0, 300, 600, 900]);
    assert_eq!(service.poll_timeout(), None, "the event is removed");
}

/// EN 302 637-3, 6.1.2.2: an update replaces the repeated DENM.
#[test]
fn an_update_replaces_the_repeated_denm() {
    let mut service = service(false);
    let action_id = service.trigger(after(0), EventReport { repetition: repeated(400, 5000), ..report(0) }).unwrap();
    service
        .update(after(100), action_id, EventReport { awareness_distance: Some(Metres(50.0)), ..report(100) })
        .unwrap();
    assert_eq!(run(&mut service, 10_000), [0, 0], "the update has no repetition");
}

/// EN 302 637-3, 8.2.1.5 (`defaultValidity`): an event without validity is valid for 600 s.
#[test]
fn an_event_ends_after_600_seconds() {
    let mut service = service(false);
    let action_id = service.trigger(after(0), report(0)).unwrap();
    assert_eq!(service.poll_timeout(), Some(after(600_000).mono));
    service.handle_timeout(after(600_000));
    assert_eq!(service.update(after(600_000), action_id, report(600_000)), Err(DenError::UnknownAction));
}

/// TS 103 831, annex A (`validityDuration`): whole seconds; the table keeps an event as long as its message is valid,
/// not longer.
#[test]
fn the_validity_is_rounded_like_that_in_the_message() {
    for (requested, sent) in [(900, 1), (1000, 1), (1001, 2), (1_000_000_000, 86_400)] {
        let mut service = service(false);
        service.trigger(after(0), EventReport { validity: Duration::from_millis(requested), ..report(0) }).unwrap();
        assert_eq!(taken(&mut service)[0].validity, Duration::from_secs(sent));
        assert_eq!(service.poll_timeout(), Some(after(sent * 1000).mono));
    }
}

/// An event that cannot be encoded is rejected and not stored.
#[test]
fn an_event_that_cannot_be_encoded_is_rejected() {
    let mut service = service(false);
    let mut alacarte = denm::AlacarteContainer::new();
    alacarte.external_temperature = Some(Temperature(127));
    let unencodable = EventReport { alacarte: Some(Box::new(alacarte)), ..report(0) };
    assert_eq!(service.trigger(after(0), unencodable.clone()), Err(DenError::Unencodable));
    assert_eq!((service.poll_transmit(), service.poll_timeout()), (None, None));
    let action_id = service.trigger(after(0), report(0)).unwrap();
    assert_eq!(service.update(after(10), action_id, unencodable), Err(DenError::Unencodable));
    assert_eq!(taken(&mut service).len(), 1, "the earlier event is unchanged");
}

/// EN 302 637-3, 8.2.1.1: an event that has ended is not sent.
#[test]
fn an_event_that_has_ended_is_rejected() {
    let mut service = service(false);
    assert_eq!(service.trigger(after(600_000), report(0)), Err(DenError::Expired));
    assert_eq!(service.poll_transmit(), None);
}

/// EN 302 637-3, 6.1.2.4: the originator of an event cancels it, with a later reference time, and stops its repetition.
#[test]
fn the_originator_cancels_its_event() {
    let mut service = service(false);
    let action_id = service.trigger(after(0), EventReport { repetition: repeated(400, 60_000), ..report(0) }).unwrap();
    assert_eq!(service.terminate(after(700), action_id, report(700)), Ok(Termination::IsCancellation));
    let heads = taken(&mut service);
    assert_eq!(heads[1].termination, Some(Termination::IsCancellation));
    assert!(heads[1].reference > heads[0].reference);
    assert_eq!(run(&mut service, 10_000), [0_u64; 0]);
    assert_eq!(service.update(after(800), action_id, report(800)), Err(DenError::Terminated));
    assert_eq!(service.terminate(after(800), action_id, report(800)), Err(DenError::Terminated));
}

/// EN 302 637-3, 6.1.2.4: the end of an event may be repeated too.
#[test]
fn a_termination_can_be_repeated() {
    let mut service = service(false);
    let action_id = service.trigger(after(0), report(0)).unwrap();
    service.terminate(after(0), action_id, EventReport { repetition: repeated(500, 1000), ..report(0) }).unwrap();
    assert_eq!(run(&mut service, 10_000), [0, 0, 500, 1000]);
}

/// EN 302 637-3, 6.1.2.4: a station negates an event that it received; the reference time is that of the negated DENM.
#[test]
fn a_receiver_negates_an_event() {
    let mut service = service(false);
    receive(&mut service, 10, &head(5)).unwrap();
    let action_id = head(5).action_id;
    assert_eq!(service.terminate(after(100), action_id, report(100)), Ok(Termination::IsNegation));
    let negation = taken(&mut service)[0];
    assert_eq!((negation.action_id, negation.reference), (action_id, after(5).tai));
    assert_eq!(negation.termination, Some(Termination::IsNegation));
}

/// EN 302 637-3, 6.1.2.4: a station that has negated an event does not forward it and does not negate it twice. An
/// update of its originator is a change again.
#[test]
fn a_negated_event_is_not_forwarded() {
    let mut service = service(true);
    receive(&mut service, 0, &head(0)).unwrap();
    let action_id = head(0).action_id;
    service.terminate(after(100), action_id, report(100)).unwrap();
    assert_eq!(receive(&mut service, 1000, &head(0)), Err(DenDrop::Repeated));
    assert_eq!(run(&mut service, 50_000), [0], "the negation itself");
    assert_eq!(service.terminate(after(50_000), action_id, report(50_000)), Err(DenError::Terminated));
    assert_eq!(receive(&mut service, 50_100, &head(50_050)), Ok(DenIndication::Updated));
    assert_eq!(service.terminate(after(50_200), action_id, report(50_200)), Ok(Termination::IsNegation));
}

/// EN 302 637-3, 6.1.3: the end is sent to the receivers of the event: with its position, area and remaining validity,
/// wherever the station is then.
#[test]
fn a_termination_is_sent_to_the_area_of_the_event() {
    let mut service = service(false);
    let first = EventReport {
        awareness_distance: Some(Metres(200.0)),
        validity: Duration::from_secs(90),
        altitude: Some(Metres(12.0)),
        ..report(0)
    };
    let action_id = service.trigger(after(0), first.clone()).unwrap();
    let elsewhere = EventReport { position: Position::new(46.0, 8.0), ..report(30_500) };
    service.terminate(after(30_500), action_id, elsewhere).unwrap();
    let own: Vec<OwnDenm> = std::iter::from_fn(|| service.poll_transmit())
        .filter_map(|transmit| match transmit {
            DenTransmit::Own(own) => Some(*own),
            DenTransmit::Forwarded(_) => None,
        })
        .collect();
    assert_eq!(own[1].destination, own[0].destination);
    assert_eq!((own[1].input.position, own[1].input.altitude), (Some(place()), first.altitude));
    assert_eq!(own[1].input.awareness_distance, first.awareness_distance);
    assert_eq!(own[1].input.validity, Some(Duration::from_secs(60)), "59.5 s, in whole seconds");
}

/// EN 302 637-3, 6.1.3: a change is also sent to the area before, and the end to all areas of the event.
#[test]
fn changes_and_the_end_include_the_areas_of_earlier_reports() {
    let mut service = service(false);
    let east = |metres| place().displaced(Metres(metres), Metres(0.0));
    let report_at = |second: u64, metres, radius| EventReport {
        position: east(metres),
        destination: Some(Area { centre: east(metres), shape: Shape::Circle { radius: Metres(radius) } }),
        ..report(second * 1000)
    };
    let next = |service: &mut DenService| {
        let Some(DenTransmit::Own(own)) = service.poll_transmit() else { panic!() };
        let Shape::Circle { radius } = own.destination.shape else { panic!() };
        (own.destination.centre, radius.value().round())
    };
    let action_id = service.trigger(after(0), report_at(0, 0.0, 1000.0)).unwrap();
    assert_eq!(next(&mut service), (east(0.0), 1000.0));
    let between = |(place, radius): (Position, f64), metres| (place.distance(east(metres)).value().round(), radius);
    for (second, metres, radius, around, reached) in [
        (1, 0.0, 100.0, 0.0, 1000.0),      // in the larger area
        (2, 200.0, 100.0, 100.0, 200.0),   // in the area before
        (3, 200.0, 100.0, 200.0, 100.0),   // nothing has changed
        (4, 9000.0, 50.0, 9000.0, 1784.0), // no area is larger
        (5, 300.0, 50.0, 300.0, 1784.0),
        (6, 300.0, 50.0, 300.0, 50.0),
    ] {
        service.update(after(second * 1000), action_id, report_at(second, metres, radius)).unwrap();
        assert_eq!(between(next(&mut service), around), (0.0, reached), "{second}");
    }
    service.terminate(after(7000), action_id, report(7000)).unwrap();
    assert_eq!(between(next(&mut service), 300.0), (0.0, 1784.0));
}

/// The destination of the end includes every area of the event, wherever the area of a change is.
#[test]
fn the_end_is_sent_to_every_area_of_the_event() {
    let mut service = service(false);
    let report_at = |second: u64, east, north, radius| {
        let centre = place().displaced(Metres(east), Metres(north));
        let destination = Some(Area { centre, shape: Shape::Circle { radius: Metres(radius) } });
        EventReport { position: centre, destination, ..report(second * 1000) }
    };
    let next = |service: &mut DenService| {
        let Some(DenTransmit::Own(own)) = service.poll_transmit() else { panic!() };
        let Shape::Circle { radius } = own.destination.shape else { panic!() };
        (own.destination.centre, radius.value())
    };
    let action_id = service.trigger(after(0), report_at(0, 0.0, -900.0, 1000.0)).unwrap();
    let mut areas = vec![next(&mut service)];
    for (second, east) in [(1, 0.0), (2, 400.0), (3, 250.0)] {
        service.update(after(second * 1000), action_id, report_at(second, east, 0.0, 50.0)).unwrap();
        areas.push(next(&mut service));
    }
    service.terminate(after(7000), action_id, report(7000)).unwrap();
    let (centre, radius) = next(&mut service);
    assert!(radius < 1784.0);
    for (place, reached) in areas {
        assert!(centre.distance(place).value() + reached <= radius + 0.1, "{reached} m around {place:?}");
    }
}

/// EN 302 637-3, 6.1.3: a negation is sent to the area of the event's packet.
#[test]
fn a_negation_is_sent_to_the_area_of_the_event() {
    let mut service = service(false);
    let area = Area { centre: place(), shape: Shape::Circle { radius: Metres(77.0) } };
    let payload = Bytes::from_static(b"denm");
    service.handle_received(after(0), &received(&head(0), &payload, Some(area))).unwrap();
    let elsewhere = EventReport { position: Position::new(46.0, 8.0), ..report(10_000) };
    service.terminate(after(10_000), head(0).action_id, elsewhere).unwrap();
    let Some(DenTransmit::Own(own)) = service.poll_transmit() else { panic!() };
    assert_eq!((own.destination, own.input.position), (area, Some(place())));
    assert_eq!(own.input.validity, Some(Duration::from_secs(50)));
    assert_eq!(own.input.awareness_distance, Some(Metres(500.0)));
}

/// EN 302 637-3, 8.2.1.3: an unknown event can be neither ended nor updated.
#[test]
fn an_unknown_event_cannot_be_ended() {
    let mut service = service(false);
    let unknown = |originating_station| ActionId { originating_station, sequence_number: 9 };
    for station_id in [OWN, OTHER] {
        assert_eq!(
            service.terminate(after(0), unknown(StationId(station_id)), report(0)),
            Err(DenError::UnknownAction)
        );
    }
    assert_eq!(service.update(after(0), unknown(StationId(OWN)), report(0)), Err(DenError::UnknownAction));
}

/// EN 302 637-3, 6.1.3: the destination contains the awareness area, unless the application sets another.
#[test]
fn the_destination_is_around_the_event() {
    let mut service = service(false);
    let near = EventReport { awareness_distance: Some(Metres(200.0)), ..report(0) };
    let elsewhere = Area { centre: Position::new(46.0, 8.0), shape: Shape::Circle { radius: Metres(50.0) } };
    for report in [near.clone(), report(0), EventReport { destination: Some(elsewhere), ..near }] {
        service.trigger(after(0), report).unwrap();
    }
    let destinations: Vec<Area> = std::iter::from_fn(|| service.poll_transmit())
        .map(|transmit| match transmit {
            DenTransmit::Own(own) => own.destination,
            DenTransmit::Forwarded(denm) => denm.destination,
        })
        .collect();
    let around = |radius| Area { centre: place(), shape: Shape::Circle { radius } };
    assert_eq!(destinations, [around(Metres(200.0)), around(DEFAULT_DESTINATION_RADIUS), elsewhere]);
}

/// EN 302 637-3, 8.4.1: a new event, then an update of it.
#[test]
fn a_received_event_is_new_then_updated() {
    let mut service = service(false);
    assert_eq!(receive(&mut service, 10, &head(0)), Ok(DenIndication::New));
    assert_eq!(receive(&mut service, 500, &head(400)), Ok(DenIndication::Updated));
    assert_eq!(service.counters().indicated, 2);
}

/// EN 302 637-3, 8.4.1: a repeated or older DENM is dropped.
#[test]
fn a_repeated_or_outdated_denm_is_dropped() {
    let mut service = service(false);
    receive(&mut service, 500, &head(400)).unwrap();
    assert_eq!(receive(&mut service, 600, &head(400)), Err(DenDrop::Repeated));
    assert_eq!(receive(&mut service, 700, &head(399)), Err(DenDrop::Outdated));
    let counters = service.counters();
    assert_eq!((counters.dropped(DenDrop::Repeated), counters.dropped(DenDrop::Outdated)), (1, 1));
}

/// EN 302 637-3, 8.4.1: a DENM whose validity has ended is dropped, and its event deleted (`T_R_Validity`).
#[test]
fn a_received_event_ends_with_its_validity() {
    let mut service = service(false);
    receive(&mut service, 0, &head(0)).unwrap();
    assert_eq!(service.poll_timeout(), Some(after(60_000).mono));
    service.handle_timeout(after(60_000));
    assert_eq!(service.poll_timeout(), None);
    assert_eq!(receive(&mut service, 60_000, &head(0)), Err(DenDrop::Expired));
}

/// An event with times far ahead of the own clock would never end.
#[test]
fn a_denm_from_the_future_is_dropped() {
    let mut service = service(false);
    let ahead = head(61_000);
    assert_eq!(receive(&mut service, 0, &ahead), Err(DenDrop::InFuture));
    assert_eq!(receive(&mut service, 0, &DenmHead { detection: after(61_000).tai, ..head(0) }), Err(DenDrop::InFuture));
    assert_eq!(receive(&mut service, 2_000, &ahead), Ok(DenIndication::New));
}

/// EN 302 637-3, 8.4.1: a cancellation ends the event, and only once.
#[test]
fn a_received_cancellation_ends_the_event() {
    let mut service = service(false);
    receive(&mut service, 0, &head(0)).unwrap();
    assert_eq!(receive(&mut service, 100, &ended(90, Termination::IsCancellation)), Ok(DenIndication::Cancelled));
    assert_eq!(receive(&mut service, 200, &ended(90, Termination::IsCancellation)), Err(DenDrop::Repeated));
    assert_eq!(receive(&mut service, 300, &head(0)), Err(DenDrop::Outdated), "a late repetition does not revive it");
    let negate = service.terminate(after(400), head(0).action_id, report(400));
    assert_eq!(negate, Err(DenError::Terminated));
}

/// EN 302 637-3, 8.4.1: the end of an event is kept as long as a late DENM could be taken for a new event.
#[test]
fn a_cancelled_event_stays_cancelled() {
    let mut service = service(true);
    receive(&mut service, 0, &head(0)).unwrap();
    let short = DenmHead {
        detection: after(1000).tai,
        validity: Duration::from_secs(5),
        ..ended(1000, Termination::IsCancellation)
    };
    assert_eq!(receive(&mut service, 1000, &short), Ok(DenIndication::Cancelled));
    assert_eq!(run(&mut service, 30_000), [0_u64; 0]);
    assert_eq!(receive(&mut service, 30_000, &head(0)), Err(DenDrop::Outdated));
    assert_eq!(service.poll_timeout(), Some(after(60_000).mono));
}

/// EN 302 637-3, 8.4.1: a negation has the reference time of the negated DENM.
#[test]
fn a_received_negation_ends_the_event() {
    let mut service = service(false);
    receive(&mut service, 0, &head(0)).unwrap();
    assert_eq!(receive(&mut service, 100, &ended(0, Termination::IsNegation)), Ok(DenIndication::Negated));
    assert_eq!(receive(&mut service, 200, &ended(0, Termination::IsNegation)), Err(DenDrop::Repeated));
}

/// EN 302 637-3, 8.4.1: the end of an unknown event is dropped.
#[test]
fn the_end_of_an_unknown_event_is_dropped() {
    let mut service = service(false);
    for termination in [Termination::IsCancellation, Termination::IsNegation] {
        assert_eq!(receive(&mut service, 0, &ended(0, termination)), Err(DenDrop::UnknownTerminated));
    }
}

/// An own DENM that a forwarder returns is dropped. A negation of an own event is reported.
#[test]
fn an_own_event_that_comes_back_is_dropped_unless_it_is_a_negation() {
    let mut service = service(true);
    let action_id = service.trigger(after(0), report(0)).unwrap();
    let own = DenmHead { action_id, ..head(0) };
    assert_eq!(receive(&mut service, 10, &own), Err(DenDrop::OwnEvent));
    let negated = DenmHead { termination: Some(Termination::IsNegation), ..own };
    assert_eq!(receive(&mut service, 20, &negated), Ok(DenIndication::Negated));
}

/// EN 302 637-3, 8.4.1: a negation of an own event is checked like any DENM, and reported once for each state of the
/// event.
#[test]
fn a_negation_of_an_own_event_is_checked() {
    let mut service = service(false);
    let action_id = service.trigger(after(100), report(0)).unwrap();
    let negation = DenmHead { action_id, ..ended(100, Termination::IsNegation) };
    let refused = [
        (DenmHead { validity: Duration::ZERO, ..negation }, DenDrop::Expired),
        (DenmHead { detection: after(90_000).tai, ..negation }, DenDrop::InFuture),
        (DenmHead { reference: after(99).tai, ..negation }, DenDrop::Outdated),
        (DenmHead { termination: Some(Termination::IsCancellation), ..negation }, DenDrop::OwnEvent),
    ];
    for (head, reason) in refused {
        assert_eq!(receive(&mut service, 200, &head), Err(reason));
    }
    assert_eq!(receive(&mut service, 200, &negation), Ok(DenIndication::Negated));
    assert_eq!(receive(&mut service, 300, &negation), Err(DenDrop::Repeated));
    service.update(after(400), action_id, report(400)).unwrap();
    assert_eq!(receive(&mut service, 500, &negation), Err(DenDrop::Outdated));
    let anew = DenmHead { reference: after(400).tai, ..negation };
    assert_eq!(receive(&mut service, 500, &anew), Ok(DenIndication::Negated));
}

/// EN 302 637-3, 8.3.2.5: an event that fell silent is forwarded after twice its interval plus up to 150 ms,
/// repeatedly.
#[test]
fn a_silent_event_is_forwarded() {
    let mut service = service(true);
    receive(&mut service, 0, &head(0)).unwrap();
    let times = run(&mut service, 5_000);
    assert_eq!(times.len(), 2);
    assert!((2000..=2150).contains(&times[0]), "{times:?}");
    assert!((2000..=2150).contains(&(times[1] - times[0])), "{times:?}");
    assert_eq!(service.counters().forwarded, 2);
}

/// EN 302 637-3, 8.3.2.5: a very short interval of an originator does not make other stations forward at that rate.
#[test]
fn a_short_interval_is_not_forwarded_as_often() {
    let mut service = service(true);
    let hasty = DenmHead { transmission_interval: Some(Duration::from_millis(1)), ..head(0) };
    receive(&mut service, 0, &hasty).unwrap();
    let times = run(&mut service, 20_000);
    assert!(times.len() == 9 && times.windows(2).all(|pair| pair[1] - pair[0] >= 2000), "{times:?}");
}

/// Returns the largest number of forwarded DENMs in any second.
fn most_in_a_second(times: &[u64]) -> usize {
    let within = |from: &u64| times.iter().filter(|at| (*from..from + 999).contains(at)).count();
    times.iter().map(within).max().unwrap_or_default()
}

/// Many silent events of one station do not keep the events of others from being forwarded.
#[test]
fn one_originator_does_not_use_up_the_forwarding_limit() {
    let mut service = service(true);
    for number in 0..100 {
        let action_id = ActionId { originating_station: StationId(OTHER), sequence_number: number };
        receive(&mut service, number.into(), &DenmHead { action_id, ..head(0) }).unwrap();
    }
    let honest = ActionId { originating_station: StationId(OTHER + 1), sequence_number: 0 };
    receive(&mut service, 100, &DenmHead { action_id: honest, ..head(0) }).unwrap();
    let times = run(&mut service, 20_000);
    assert_eq!(most_in_a_second(&times), DEN_FORWARDS_OF_STATION_MAX + 1);
    // Each of nine times, three events of the first station and the event of the second one are forwarded.
    assert_eq!(times.len(), 9 * (DEN_FORWARDS_OF_STATION_MAX + 1));
}

/// At most [`DEN_FORWARDS_MAX`] DENMs are forwarded in any second, whatever the number of silent events; the others are
/// counted.
#[test]
fn forwarding_is_bounded() {
    let mut service = service(true);
    for number in 0..100 {
        let action_id = ActionId { originating_station: StationId(OTHER + u32::from(number)), sequence_number: number };
        receive(&mut service, number.into(), &DenmHead { action_id, ..head(0) }).unwrap();
    }
    let times = run(&mut service, 20_000);
    assert_eq!(most_in_a_second(&times), DEN_FORWARDS_MAX);
    // About nine of each event were due.
    let DenCounters { forwarded, forwards_limited, .. } = service.counters();
    assert_eq!(forwarded, u64::try_from(times.len()).unwrap());
    assert!((80..=200).contains(&forwarded) && (800..=900).contains(&(forwarded + forwards_limited)), "{forwarded}");
}

/// EN 302 637-3, 8.3.2: another DENM of the event restarts `T_Forwarding`.
#[test]
fn an_event_that_is_still_repeated_is_not_forwarded() {
    let mut service = service(true);
    receive(&mut service, 0, &head(0)).unwrap();
    for second in 1..10 {
        assert_eq!(run(&mut service, second * 1000), [0_u64; 0]);
        assert_eq!(receive(&mut service, second * 1000, &head(0)), Err(DenDrop::Repeated));
    }
}

/// EN 302 637-3, 6.1.4.2: the message is forwarded unchanged, to the destination area of its packet.
#[test]
fn the_received_octets_are_forwarded() {
    let mut service = service(true);
    let destination = Area { centre: place(), shape: Shape::Circle { radius: Metres(77.0) } };
    let payload = Bytes::from_static(b"denm");
    service.handle_received(after(0), &received(&head(0), &payload, Some(destination))).unwrap();
    service.handle_timeout(after(2150));
    let expected = ForwardedDenm { head: head(0), payload, destination };
    assert_eq!(service.poll_transmit(), Some(DenTransmit::Forwarded(Box::new(expected))));
}

/// EN 302 637-3, 6.1.4.2: nothing is forwarded outside the area, after the end of the event, without an interval, or if
/// forwarding is off.
#[test]
fn forwarding_has_its_conditions() {
    let mut away = service(true);
    away.set_position(place().displaced(Metres(501.0), Metres(0.0)));
    let mut ended_service = service(true);
    let mut once = service(true);
    let mut off = service(false);
    for service in [&mut away, &mut ended_service, &mut off] {
        receive(service, 0, &head(0)).unwrap();
    }
    receive(&mut once, 0, &DenmHead { transmission_interval: None, ..head(0) }).unwrap();
    receive(&mut ended_service, 100, &ended(50, Termination::IsCancellation)).unwrap();
    for service in [&mut away, &mut ended_service, &mut once, &mut off] {
        assert_eq!(run(service, 59_000), [0_u64; 0]);
    }
}

/// The own packets are unsecured, so receivers could not see that the DENM came from a signed packet.
#[test]
fn a_denm_of_an_unverified_packet_is_not_forwarded() {
    let mut service = service(true);
    let (head, payload) = (head(0), Bytes::from_static(b"denm"));
    let security = Security::Unverified { signer: HashedId8([1; 8]) };
    let unverified = ReceivedDenm { security, ..received(&head, &payload, None) };
    assert_eq!(service.handle_received(after(0), &unverified), Ok(DenIndication::New));
    assert_eq!(run(&mut service, 59_000), [0_u64; 0]);
}

/// EN 302 637-3, 8.3.2.5: `T_F_Validity` ends the forwarding.
#[test]
fn forwarding_ends_with_the_validity() {
    let mut service = service(true);
    receive(&mut service, 0, &head(0)).unwrap();
    let times = run(&mut service, 200_000);
    assert!(times.iter().all(|millis| *millis < 60_000) && times.len() > 26, "{times:?}");
    assert_eq!(service.poll_timeout(), None);
}

/// EN 302 637-3, 8.2: ended events, own ones or negations of others, make room for new ones.
#[test]
fn ended_events_make_room() {
    let mut service = service(false);
    for _ in 0..3 * DEN_ORIGINATED_MAX {
        let action_id = service.trigger(after(0), report(0)).unwrap();
        service.terminate(after(0), action_id, report(0)).unwrap();
    }
    for number in 0..2 * u16::try_from(DEN_ORIGINATED_MAX).unwrap() {
        let action_id = ActionId { originating_station: StationId(OTHER), sequence_number: number };
        receive(&mut service, 10, &DenmHead { action_id, ..head(5) }).unwrap();
        service.terminate(after(20), action_id, report(20)).unwrap();
    }
    for _ in 0..DEN_ORIGINATED_MAX {
        service.trigger(after(30), report(30)).unwrap();
    }
    assert_eq!(service.trigger(after(30), report(30)), Err(DenError::TableFull), "all of them last");
    assert_eq!(service.counters().ends_evicted, 0);
}

/// An end that is no longer repeated is evicted first, the oldest before the others; then the one whose repetition ends
/// first.
#[test]
fn an_end_that_is_repeated_makes_room_last() {
    let mut service = service(false);
    let mut end = |millis: u64, repetition| {
        let action_id = service.trigger(after(millis), report(millis)).unwrap();
        service.terminate(after(millis), action_id, EventReport { repetition, ..report(millis) }).unwrap();
        action_id
    };
    let [late, early] = [end(0, repeated(100, 9_000)), end(1, repeated(100, 8_000))];
    let [old, new] = [end(2, None), end(3, None)];
    for _ in 4..DEN_ORIGINATED_MAX {
        service.trigger(after(4), report(4)).unwrap();
    }
    for (gone, cut) in [(old, 0), (new, 0), (early, 1), (late, 2)] {
        assert_eq!(service.update(after(5), gone, report(5)), Err(DenError::Terminated));
        service.trigger(after(5), report(5)).unwrap();
        assert_eq!(service.update(after(5), gone, report(5)), Err(DenError::UnknownAction));
        assert_eq!(service.counters().ends_evicted, cut);
    }
    assert_eq!(service.trigger(after(5), report(5)), Err(DenError::TableFull));
}

/// The table of own events is bounded; an event beyond it is rejected.
#[test]
fn the_tables_are_bounded() {
    let mut service = service(false);
    for _ in 0..DEN_ORIGINATED_MAX {
        service.trigger(after(0), report(0)).unwrap();
    }
    assert_eq!(service.trigger(after(0), report(0)), Err(DenError::TableFull));
    receive_forged(&mut service, 0, DEN_RECEIVED_MAX + 10);
    assert_eq!(service.counters().evicted, 10);
}

/// EN 302 637-3, 8.2 and 8.4: expired events make room, even before their deadline has been handled.
#[test]
fn expired_events_make_room() {
    let mut service = service(false);
    let short = |millis| EventReport { validity: Duration::from_secs(1), ..report(millis) };
    for _ in 0..DEN_ORIGINATED_MAX {
        service.trigger(after(0), short(0)).unwrap();
    }
    service.trigger(after(1000), report(1000)).unwrap();

    let denm = |sequence_number, validity| DenmHead {
        action_id: ActionId { originating_station: StationId(OTHER), sequence_number },
        validity: Duration::from_secs(validity),
        ..head(0)
    };
    receive(&mut service, 0, &denm(0, 86_400)).unwrap();
    for number in 1..u16::try_from(DEN_RECEIVED_OF_STATION_MAX).unwrap() {
        receive(&mut service, 1, &denm(number, 1)).unwrap();
    }
    let new = u16::try_from(DEN_RECEIVED_OF_STATION_MAX).unwrap();
    assert_eq!(receive(&mut service, 1001, &denm(new, 86_400)), Ok(DenIndication::New));
    assert_eq!(receive(&mut service, 1002, &denm(0, 86_400)), Err(DenDrop::Repeated), "it is valid, so it stays");
    assert_eq!(service.counters().evicted, 0);
}

/// A station has a quota in the table; beyond it, its own oldest event is evicted.
#[test]
fn one_station_cannot_fill_the_table() {
    let mut service = service(false);
    receive(&mut service, 0, &head(0)).unwrap();
    for number in 0..1000 {
        let action_id = ActionId { originating_station: StationId(OTHER + 1), sequence_number: number };
        assert_eq!(receive(&mut service, number.into(), &DenmHead { action_id, ..head(0) }), Ok(DenIndication::New));
    }
    assert_eq!(service.counters().evicted, 1000 - u64::try_from(DEN_RECEIVED_OF_STATION_MAX).unwrap());
    assert_eq!(receive(&mut service, 1000, &head(0)), Err(DenDrop::Repeated), "it is still known");
}

/// Many stations that do not exist, each with an event of a day, neither exclude a new event nor evict one that is
/// repeated.
#[test]
fn forged_stations_do_not_keep_events_out() {
    let mut service = service(false);
    receive(&mut service, 0, &head(0)).unwrap();
    for second in 1..20 {
        receive_forged(&mut service, second * 1000, DEN_RECEIVED_MAX / 2);
        assert_eq!(receive(&mut service, second * 1000 + 999, &head(0)), Err(DenDrop::Repeated));
    }
    let action_id = ActionId { originating_station: StationId(OTHER + 1), sequence_number: 0 };
    assert_eq!(receive(&mut service, 20_000, &DenmHead { action_id, ..head(0) }), Ok(DenIndication::New));
}

/// Receives one event from each of `count` new stations.
fn receive_forged(service: &mut DenService, millis: u64, count: usize) {
    let first = 1_000_000 + u32::try_from(millis).unwrap() * 1000;
    for station in (first..).take(count) {
        let action_id = ActionId { originating_station: StationId(station), sequence_number: 0 };
        let forged = DenmHead { action_id, validity: denm::VALIDITY_MAX, ..head(0) };
        assert_eq!(receive(service, millis, &forged), Ok(DenIndication::New));
    }
}

/// The queue is bounded, and dropped DENMs are counted.
#[test]
fn denms_beyond_the_queue_are_counted() {
    let mut service = service(false);
    for _ in 0..DEN_ORIGINATED_MAX {
        service.trigger(after(0), EventReport { repetition: repeated(100, 60_000), ..report(0) }).unwrap();
    }
    (1..5).for_each(|i| service.handle_timeout(after(i * 100)));
    let counters = service.counters();
    let due = u64::try_from(DEN_ORIGINATED_MAX * 5).unwrap();
    assert_eq!(counters.sent + counters.transmits_lost, due);
    assert_eq!(taken(&mut service).len(), DEN_TRANSMITS_MAX);
}

/// TS 103 831, annex A: a termination has the management container only; other DENMs have situation and location.
#[test]
fn a_termination_has_no_situation() {
    let mut service = service(false);
    let action_id = service.trigger(after(0), report(0)).unwrap();
    service.terminate(after(5), action_id, report(5)).unwrap();
    let containers: Vec<(bool, bool)> = std::iter::from_fn(|| service.poll_transmit())
        .map(|transmit| match transmit {
            DenTransmit::Own(own) => (own.input.situation.is_some(), own.input.location.is_some()),
            DenTransmit::Forwarded(_) => unreachable!(),
        })
        .collect();
    assert_eq!(containers, [(true, true), (false, false)]);
}

/// A decoded DENM has the content of the report: times in milliseconds, validity in seconds, the distance as a class.
#[test]
fn a_received_denm_has_the_content_of_the_report() {
    let mut service = service(false);
    let first = EventReport {
        awareness_distance: Some(Metres(180.0)),
        validity: Duration::from_secs(30),
        transmission_interval: Some(Duration::from_millis(500)),
        ..report(0)
    };
    let action_id = service.trigger(after(3), first).unwrap();
    let expected = DenmHead {
        action_id,
        reference: after(3).tai,
        awareness_distance: Some(Metres(200.0)),
        validity: Duration::from_secs(30),
        transmission_interval: Some(Duration::from_millis(500)),
        cause: Some(report(0).situation.cause),
        ..head(0)
    };
    assert_eq!(taken(&mut service), [expected]);
}

#[test]
fn labels_are_distinct() {
    let mut labels: Vec<&str> = DenDrop::ALL.iter().map(|reason| reason.label()).collect();
    labels.sort_unstable();
    labels.dedup();
    assert_eq!(labels.len(), DenDrop::ALL.len());
}
