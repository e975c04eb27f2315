//! The layer with the station below it: messages of one station in the map of another.

use viaduct_etsi::denm_ts103831_v231::types::Temperature;
use viaduct_units::{Degrees, Metres, MetresPerSecond, Position, StationId, StationType, Tai, TimestampIts};

use super::*;
use crate::{
    Ego, Event, Frame, HashedId8, Station, StationSettings,
    access::MacAddress,
    btp::BtpKind,
    dcc::{DccMode, DccProfile, DccSettings, GateKeeper},
    facilities::{
        Offset,
        cpm::Object,
        denm::Cause,
        ldm::{ClockOffset, LdmObject, LdmRemoval, Query},
        va_service::VruProfile,
    },
    geonet::Shape,
    limits::{DEN_ORIGINATED_MAX, LDM_OBJECTS_MAX},
};

fn start() -> Now {
    Now { mono: Mono(Duration::from_secs(100)), tai: TimestampIts(650_000_000_000).tai() }
}

fn place() -> Position {
    Position::new(45.0, 7.6)
}

fn all_services(station_id: StationId) -> FacilitiesSettings {
    FacilitiesSettings {
        ca: Some(CaSettings::new(station_id)),
        cp: Some(CpSettings::new(station_id)),
        den: Some(DenSettings { station_id, station_type: StationType::PASSENGER_CAR, keep_alive_forwarding: true }),
        ..FacilitiesSettings::default()
    }
}

/// A station with its facilities.
struct Node {
    station: Station,
    facilities: Facilities,
    position: Position,
}

impl Node {
    fn new(number: u8, settings: FacilitiesSettings) -> Self {
        let link_address = MacAddress([2, 0, 0, 0, 0, number]);
        let station =
            StationSettings { link_address, station_type: StationType::PASSENGER_CAR, mobile: true, beacons: false };
        Self {
            station: Station::new(station, number.into()),
            facilities: Facilities::new(settings, number.into()),
            position: place().displaced(Metres(10.0 * f64::from(number)), Metres(0.0)),
        }
    }

    fn step(&mut self, now: Now) -> Vec<Bytes> {
        let state = VehicleState {
            time: now.tai,
            position: Some(self.position),
            speed: Some(MetresPerSecond(10.0)),
            heading: Some(Degrees(90.0)),
            ..VehicleState::default()
        };
        self.station.set_ego(
            now,
            Ego {
                time: now.tai,
                position: self.position,
                position_accurate: true,
                speed: MetresPerSecond(10.0),
                heading: Some(Degrees(90.0)),
            },
        );
        self.facilities.set_vehicle(now, &state);
        self.facilities.handle_timeout(now);
        self.station.handle_timeout(now);
        self.sent(now)
    }

    /// Returns the frames for the link.
    fn sent(&mut self, now: Now) -> Vec<Bytes> {
        while let Some(request) = self.facilities.poll_transmit() {
            self.station.send(now, &request).unwrap();
        }
        std::iter::from_fn(|| self.station.poll_transmit()).map(Bytes::from).collect()
    }

    fn receive(&mut self, now: Now, frame: &Bytes) {
        self.station.handle_frame(now, frame);
        while let Some(event) = self.station.poll_event() {
            if let Event::Received(received) = event {
                self.facilities.handle_received(now, &received);
            }
        }
    }

    fn events(&mut self) -> Vec<FacilitiesEvent> {
        std::iter::from_fn(|| self.facilities.poll_event()).collect()
    }

    fn received_keys(&self, kind: MessageKind) -> Vec<LdmKey> {
        let query = Query { kinds: vec![kind], only_others: true, ..Query::default() };
        self.facilities.ldm().query(&query).map(|object| object.key).collect()
    }
}

/// Steps both nodes from one time to another; each receives the frames of the other.
fn run(nodes: &mut [Node; 2], from: u64, end: u64) {
    for millis in (from..end).step_by(50) {
        let now = start().plus(Duration::from_millis(millis));
        let [first, second] = nodes;
        for frame in first.step(now) {
            second.receive(now, &frame);
        }
        for frame in second.step(now) {
            first.receive(now, &frame);
        }
    }
}

fn pair() -> [Node; 2] {
    [Node::new(1, all_services(StationId(1))), Node::new(2, all_services(StationId(2)))]
}

#[test]
fn a_nearby_station_is_in_the_map_until_it_is_silent() {
    let mut nodes = pair();
    run(&mut nodes, 0, 500);
    assert_eq!(nodes[0].received_keys(MessageKind::Cam).len(), 1);
    let own = Query { station_id: Some(StationId(1)), ..Query::default() };
    assert!(nodes[0].facilities.ldm().query(&own).all(|object| object.own));
    let [first, _] = &mut nodes;
    let late = start().plus(Duration::from_secs(10));
    first.facilities.handle_timeout(late);
    assert_eq!(nodes[0].received_keys(MessageKind::Cam), []);
    let expired = |event: &FacilitiesEvent| matches!(event, FacilitiesEvent::Map(LdmEvent::Removed(key, LdmRemoval::Expired)) if key.station_id == StationId(2));
    assert!(nodes[0].events().iter().any(expired));
}

/// A message with the own station id from another station does not replace own objects in the map.
#[test]
fn the_own_station_stays_in_the_map() {
    let mut nodes = [Node::new(1, all_services(StationId(1))), Node::new(2, all_services(StationId(1)))];
    run(&mut nodes, 0, 2_500);
    let key = LdmKey { kind: MessageKind::Cam, station_id: StationId(1), subject: LdmSubject::Station };
    for node in &nodes {
        let own = node.facilities.ldm().get(&key).unwrap();
        assert!(own.own && own.position.unwrap().distance(node.position) < Metres(0.1), "{own:?}");
        assert!(node.facilities.ldm().counters().own_claimed > 0);
    }
}

/// A message with the own station id from another station does not withdraw own information.
#[test]
fn another_station_cannot_withdraw_own_information() {
    let ivim = |status: u8| {
        let json = format!(
            r#"{{"header":{{"protocolVersion":2,"messageId":6,"stationId":1}},"ivi":{{"mandatory":{{
            "serviceProviderId":{{"countryCode":"B480","providerIdentifier":5}},
            "iviIdentificationNumber":4,"iviStatus":{status}}}}}}}"#
        );
        Message::from_json(MessageKind::Ivim, json.as_bytes()).unwrap()
    };
    let key = LdmKey { kind: MessageKind::Ivim, station_id: StationId(1), subject: LdmSubject::Information(4) };
    let mut facilities = Facilities::new(all_services(StationId(1)), 1);
    facilities.record_own(start(), &ivim(0), &Bytes::new());
    facilities.record_received(start(), &ivim(2), &Bytes::new(), Security::Unsecured);
    assert!(facilities.ldm().get(&key).is_some() && facilities.ldm().counters().own_claimed == 1);
    facilities.record_own(start(), &ivim(2), &Bytes::new());
    assert_eq!(facilities.ldm().get(&key), None);
}

#[test]
fn perceived_objects_are_in_the_map_of_the_receiver() {
    let mut nodes = pair();
    let mut object = Object::new(17, start().tai, Offset::default());
    object.velocity = Some([MetresPerSecond(3.0), MetresPerSecond(4.0)]);
    let seen = place().displaced(Metres(100.0), Metres(30.0));
    nodes[0].facilities.set_objects(vec![PerceivedObject { position: seen, object }]);
    run(&mut nodes, 0, 500);
    let key = LdmKey { kind: MessageKind::Cpm, station_id: StationId(1), subject: LdmSubject::Object(17) };
    let known = nodes[1].facilities.ldm().get(&key).unwrap();
    assert!(known.position.unwrap().distance(seen) < Metres(0.1), "{known:?}");
    assert!((known.speed.unwrap().value() - 5.0).abs() < 0.01);
    assert!((known.heading.unwrap().value() - 36.87).abs() < 0.01);
}

#[test]
fn an_event_is_sent_to_its_area_and_cancelled() {
    let mut nodes = pair();
    run(&mut nodes, 0, 100);
    let now = start().plus(Duration::from_millis(100));
    let report = EventReport {
        awareness_distance: Some(Metres(500.0)),
        ..EventReport::new(Cause { code: 94, sub_code: 0 }, now.tai, place())
    };
    let action_id = nodes[0].facilities.trigger_event(now, report.clone()).unwrap();
    run(&mut nodes, 100, 200);
    assert_eq!(nodes[1].received_keys(MessageKind::Denm), [event_key(action_id)]);
    let new = |event: &FacilitiesEvent| matches!(event, FacilitiesEvent::Denm(DenIndication::New, ..));
    assert_eq!(nodes[1].events().iter().filter(|event| new(event)).count(), 1);

    let later = start().plus(Duration::from_millis(200));
    assert_eq!(nodes[0].facilities.terminate_event(later, action_id, report), Ok(Termination::IsCancellation));
    run(&mut nodes, 200, 300);
    assert_eq!(nodes[1].received_keys(MessageKind::Denm), []);
    let ended = |event: &FacilitiesEvent| matches!(event, FacilitiesEvent::Denm(DenIndication::Cancelled, ..));
    assert!(nodes[1].events().iter().any(ended));
}

/// Objects and events of a signed packet that nothing verified have its mark, so that applications can ignore them.
#[test]
fn objects_and_events_of_an_unverified_packet_are_marked() {
    let [mut sender, mut receiver] = pair();
    sender.step(start());
    receiver.step(start());
    let report = EventReport::new(Cause { code: 94, sub_code: 0 }, start().tai, place());
    sender.facilities.trigger_event(start(), report).unwrap();
    let now = start().plus(Duration::from_secs(1));
    let security = Security::Unverified { signer: HashedId8([1, 2, 3, 4, 5, 6, 7, 8]) };
    for frame in sender.step(now) {
        let Ok(Frame::Message(received)) = crate::decode_frame(now.tai, &frame) else { panic!("{frame:?}") };
        receiver.facilities.handle_received(now, &Received { security, ..*received });
    }
    let marks: Vec<(MessageKind, bool, Security)> = receiver
        .facilities
        .ldm()
        .query(&Query::default())
        .map(|object| (object.key.kind, object.own, object.security))
        .collect();
    let of_others: Vec<_> = marks.iter().filter(|(_, own, _)| !own).map(|(kind, _, mark)| (*kind, *mark)).collect();
    assert_eq!(of_others, [(MessageKind::Cam, security), (MessageKind::Denm, security)]);
    assert!(marks.iter().any(|(_, own, mark)| *own && *mark == Security::Unsecured), "{marks:?}");
    let is_marked = |event: &FacilitiesEvent| matches!(event, FacilitiesEvent::Denm(_, _, mark) if *mark == security);
    assert!(receiver.events().iter().any(is_marked));
}

/// Received events and objects can be deleted, and are then new when they are received again. Own messages continue.
#[test]
fn own_events_and_objects_are_kept() {
    let [mut own, mut other] = pair();
    let report = EventReport::new(Cause { code: 94, sub_code: 0 }, start().tai, place());
    own.step(start());
    let action_id = own.facilities.trigger_event(start(), report.clone()).unwrap();
    own.sent(start());
    other.step(start());
    other.facilities.trigger_event(start(), report.clone()).unwrap();
    let frames = other.sent(start());
    let known = |node: &Node| node.facilities.ldm().len();
    let of_its_own = known(&own);
    for _ in 0..2 {
        frames.iter().for_each(|frame| own.receive(start(), frame));
        let new = |event: &FacilitiesEvent| matches!(event, FacilitiesEvent::Denm(DenIndication::New, ..));
        assert_eq!(own.events().iter().filter(|event| new(event)).count(), 1);
        assert!(known(&own) > of_its_own);
        own.facilities.forget_received();
        own.station = Node::new(1, all_services(StationId(1))).station;
        assert_eq!(known(&own), of_its_own);
    }
    let last = start().plus(Duration::from_millis(50));
    assert!(own.step(last).is_empty(), "a CAM comes as far after the one before");
    assert_eq!(own.facilities.terminate_event(last, action_id, report), Ok(Termination::IsCancellation));
}

/// Inserts objects of that many new stations, each valid for a day.
fn crowd(ldm: &mut LocalDynamicMap, now: Now, first: u32, count: usize) {
    for station_id in (first..).take(count) {
        let key = LdmKey { kind: MessageKind::Cam, station_id: StationId(station_id), subject: LdmSubject::Station };
        ldm.insert(
            now,
            LdmObject {
                key,
                own: false,
                security: Security::Unsecured,
                time: now.tai,
                clock: ClockOffset::default(),
                expires: now.mono.plus(Duration::from_secs(86_400)),
                position: None,
                speed: None,
                heading: None,
                station_type: None,
                payload: Bytes::new(),
            },
        );
    }
}

/// EN 302 895, 5.3.2: an event that is repeated stays in a full map, and is inserted again after eviction. An event
/// that has ended is not inserted again.
#[test]
fn an_event_that_is_repeated_stays_in_the_map() {
    let mut nodes = pair();
    run(&mut nodes, 0, 100);
    let now = start().plus(Duration::from_millis(100));
    let report = EventReport {
        repetition: Some(crate::Repetition { interval: Duration::from_secs(1), duration: Duration::from_secs(60) }),
        ..EventReport::new(Cause { code: 94, sub_code: 0 }, now.tai, place())
    };
    let action_id = nodes[0].facilities.trigger_event(now, report.clone()).unwrap();
    for second in 0..6 {
        run(&mut nodes, 100 + second * 1000, 1_100 + second * 1000);
        let now = start().plus(Duration::from_millis(1_100 + second * 1000));
        let first = 10_000 * u32::try_from(second + 1).unwrap();
        crowd(nodes[1].facilities.ldm_mut(), now, first, LDM_OBJECTS_MAX / 2);
        assert_eq!(nodes[1].received_keys(MessageKind::Denm), [event_key(action_id)], "{second}");
    }
    let now = start().plus(Duration::from_millis(6_100));
    crowd(nodes[1].facilities.ldm_mut(), now, 100_000, LDM_OBJECTS_MAX);
    assert_eq!(nodes[1].received_keys(MessageKind::Denm), []);
    run(&mut nodes, 6_100, 7_200);
    assert_eq!(nodes[1].received_keys(MessageKind::Denm), [event_key(action_id)]);
    let new = |event: &FacilitiesEvent| matches!(event, FacilitiesEvent::Denm(DenIndication::New, ..));
    assert_eq!(nodes[1].events().iter().filter(|event| new(event)).count(), 1, "applications are notified once");

    let now = start().plus(Duration::from_millis(7_200));
    nodes[1].facilities.terminate_event(now, action_id, EventReport { repetition: None, ..report }).unwrap();
    run(&mut nodes, 7_200, 10_000);
    let repeated = nodes[1].facilities.den().map(|den| den.counters().dropped(DenDrop::Repeated));
    assert_eq!((nodes[1].received_keys(MessageKind::Denm), repeated >= Some(9)), (vec![], true));
}

/// TS 103 175: the first DENM of an event has the highest priority, a repetition the next. EN 302 637-3, 5.4: the
/// destination of its packet is the area, and its lifetime the validity of the event.
#[test]
fn a_denm_goes_to_its_area_with_its_priority() {
    let mut facilities = Facilities::new(all_services(StationId(1)), 1);
    let report = EventReport {
        validity: Duration::from_secs(30),
        awareness_distance: Some(Metres(300.0)),
        repetition: Some(crate::Repetition { interval: Duration::from_secs(1), duration: Duration::from_secs(5) }),
        ..EventReport::new(Cause { code: 94, sub_code: 0 }, start().tai, place())
    };
    facilities.trigger_event(start(), report).unwrap();
    facilities.handle_timeout(start().plus(Duration::from_secs(1)));
    let requests: Vec<SendRequest> = std::iter::from_fn(|| facilities.poll_transmit()).collect();
    let area = crate::geonet::Area { centre: place(), shape: Shape::Circle { radius: Metres(300.0) } };
    assert!(requests.iter().all(|request| request.destination == Destination::Area(area)));
    let classes: Vec<TrafficClass> = requests.iter().map(|request| request.traffic_class).collect();
    assert_eq!(classes, [TrafficClass::DP0, TrafficClass::DP1]);
    let lifetimes: Vec<Duration> = requests.iter().map(|request| request.lifetime.duration()).collect();
    assert_eq!(lifetimes, [Duration::from_secs(30), Duration::from_secs(29)]);
    assert_eq!(requests[0].payload, requests[1].payload);
    assert!(requests.iter().all(|request| request.kind.btp_port() == 2002 && matches!(request.btp, BtpKind::B { .. })));
}

/// TS 103 175: a DENM that is forwarded for its silent originator has a lower priority than own messages.
#[test]
fn a_forwarded_denm_has_the_lowest_priority() {
    let mut nodes = pair();
    run(&mut nodes, 0, 100);
    let now = start().plus(Duration::from_millis(100));
    let report = EventReport {
        transmission_interval: Some(Duration::from_secs(1)),
        ..EventReport::new(Cause { code: 94, sub_code: 0 }, now.tai, place())
    };
    nodes[0].facilities.trigger_event(now, report).unwrap();
    run(&mut nodes, 100, 200);
    let [_, silent] = &mut nodes;
    silent.facilities.handle_timeout(start().plus(Duration::from_millis(2_300)));
    let requests: Vec<SendRequest> = std::iter::from_fn(|| silent.facilities.poll_transmit()).collect();
    let forwarded: Vec<TrafficClass> = requests
        .iter()
        .filter(|request| request.kind == MessageKind::Denm)
        .map(|request| request.traffic_class)
        .collect();
    assert_eq!(forwarded, [TrafficClass::DP3]);
}

#[test]
fn a_pedestrian_is_in_the_map_of_a_vehicle() {
    let pedestrian = VaSettings { profile: VruProfile::Pedestrian, ..VaSettings::new(StationId(2)) };
    let settings = FacilitiesSettings { va: Some(pedestrian), ..FacilitiesSettings::default() };
    let mut nodes = [Node::new(1, all_services(StationId(1))), Node::new(2, settings)];
    run(&mut nodes, 0, 200);
    let known = nodes[0].received_keys(MessageKind::Vam);
    assert_eq!(known, [LdmKey { kind: MessageKind::Vam, station_id: StationId(2), subject: LdmSubject::Station }]);
    assert_eq!(
        nodes[0].facilities.ldm().get(&known[0]).and_then(|object| object.station_type),
        Some(StationType::PEDESTRIAN)
    );
}

/// The cluster operations of the VA services are encoded and decoded: a group becomes a cluster.
#[test]
fn a_cluster_forms_over_the_air() {
    let settings = |station_id| FacilitiesSettings {
        va: Some(VaSettings { clustering: true, num_skip_vams: None, ..VaSettings::new(station_id) }),
        ..FacilitiesSettings::default()
    };
    let mut nodes: Vec<Node> = (1..=4).map(|number| Node::new(number, settings(StationId(number.into())))).collect();
    for (number, node) in (0_u32..).zip(&mut nodes) {
        node.position = place().displaced(Metres(f64::from(number)), Metres(0.0));
    }
    for millis in (0..10_000).step_by(100) {
        let now = start().plus(Duration::from_millis(millis));
        let frames: Vec<Vec<Bytes>> = nodes.iter_mut().map(|node| node.step(now)).collect();
        for (sender, frame) in
            frames.iter().enumerate().flat_map(|(sender, sent)| sent.iter().map(move |frame| (sender, frame)))
        {
            let others = nodes.iter_mut().enumerate().filter(|(number, _)| *number != sender);
            others.for_each(|(_, node)| node.receive(now, frame));
        }
    }
    let states: Vec<_> = nodes.iter_mut().filter_map(|node| node.facilities.va_mut().map(|va| va.state())).collect();
    use crate::facilities::va_service::VruState::{ActiveClusterLeader, Passive};
    assert_eq!(states, [ActiveClusterLeader, Passive, Passive, Passive]);
}

#[test]
fn a_service_that_is_off_sends_nothing() {
    let mut facilities = Facilities::new(FacilitiesSettings::default(), 1);
    let state = VehicleState { time: start().tai, position: Some(place()), ..VehicleState::default() };
    facilities.set_vehicle(start(), &state);
    facilities.handle_timeout(start());
    assert_eq!((facilities.poll_transmit(), facilities.poll_timeout()), (None, None));
    let report = EventReport::new(Cause { code: 94, sub_code: 0 }, start().tai, place());
    assert_eq!(facilities.trigger_event(start(), report), Err(EventError::ServiceOff));
}

/// A busy channel slows down every service.
#[test]
fn a_busy_channel_slows_each_service() {
    let mut free = pair();
    let mut busy = pair();
    for node in &mut busy {
        node.facilities.set_t_gen_dcc(Duration::from_millis(1000));
    }
    let sent = |nodes: &mut [Node; 2]| {
        for millis in (0..3_000).step_by(50) {
            nodes[0].position = nodes[0].position.displaced(Metres(5.0), Metres(0.0));
            run(nodes, millis, millis + 50);
        }
        nodes[0].facilities.counters().sent
    };
    assert_eq!((sent(&mut free), sent(&mut busy)), (30, 3));
}

/// EN 302 637-2, 6.1.3 with TS 102 687: the interval that the gate keeper allows becomes `T_GenCam_DCC`. So CAMs are
/// generated at the rate at which they can be sent, and no CAM waits until it is too old.
#[test]
fn the_gate_keeper_slows_the_generation() {
    let gate = DccSettings { mode: DccMode::Adaptive, ..DccSettings::default() };
    let mut gate = GateKeeper::new(gate);
    let settings = FacilitiesSettings { ca: Some(CaSettings::new(StationId(1))), ..FacilitiesSettings::default() };
    let mut node = Node::new(1, settings);
    let mut sent_in = |seconds: std::ops::Range<u64>, busy: f64| {
        let before = gate.counters().sent;
        for millis in (seconds.start * 1000..seconds.end * 1000).step_by(50) {
            let now = start().plus(Duration::from_millis(millis));
            node.position = node.position.displaced(Metres(3.0), Metres(0.0));
            gate.set_channel_busy_ratio(now.mono, busy);
            gate.handle_timeout(now.mono);
            for frame in node.step(now) {
                gate.push(now.mono, frame.to_vec(), DccProfile::Dp2, Duration::from_secs(1));
            }
            while gate.poll_transmit(now.mono).is_some() {}
            node.facilities.set_t_gen_dcc(gate.t_gen_cam_dcc());
        }
        gate.counters().sent - before
    };
    assert_eq!(sent_in(0..10, 0.3), 100);
    sent_in(10..70, 1.0);
    let busy = sent_in(70..80, 1.0);
    assert!((10..=25).contains(&busy), "{busy}");
    let counters = gate.counters();
    assert_eq!((counters.expired, counters.overflowed), (0, 0));
}

/// The queue is bounded. Events wait in their service for room and are not lost.
#[test]
fn the_queue_of_requests_is_bounded() {
    let mut facilities = Facilities::new(all_services(StationId(1)), 1);
    let report = EventReport::new(Cause { code: 94, sub_code: 0 }, start().tai, place());
    for _ in 0..FACILITIES_TRANSMITS_MAX + 5 {
        facilities.trigger_event(start(), report.clone()).unwrap();
    }
    let state = VehicleState { time: start().tai, position: Some(place()), ..VehicleState::default() };
    facilities.set_vehicle(start(), &state);
    facilities.handle_timeout(start());
    let counters = facilities.counters();
    assert_eq!(counters.transmits_lost, 1, "the CAM");
    assert_eq!(counters.sent, u64::try_from(FACILITIES_TRANSMITS_MAX).unwrap());
    assert_eq!(facilities.poll_timeout(), Some(start().mono), "the rest is due at once");
    assert_eq!(drain(&mut facilities, start()), FACILITIES_TRANSMITS_MAX + 5);
}

/// An event that has ended before there was room for its DENM is not sent.
#[test]
fn an_event_that_has_ended_in_the_queue_is_not_sent() {
    let mut facilities = Facilities::new(all_services(StationId(1)), 1);
    let report = EventReport {
        validity: Duration::from_secs(1),
        ..EventReport::new(Cause { code: 94, sub_code: 0 }, start().tai, place())
    };
    for _ in 0..=FACILITIES_TRANSMITS_MAX {
        facilities.trigger_event(start(), report.clone()).unwrap();
    }
    let taken = std::iter::from_fn(|| facilities.poll_transmit()).count();
    assert_eq!(taken, FACILITIES_TRANSMITS_MAX);
    facilities.handle_timeout(start().plus(Duration::from_secs(1)));
    assert_eq!((facilities.poll_transmit(), facilities.counters().transmits_lost), (None, 1));
}

/// All events of a station can be repeated at the same time, and each one has all its repetitions.
#[test]
fn each_of_many_events_is_repeated() {
    let mut facilities = Facilities::new(all_services(StationId(1)), 1);
    let report = EventReport {
        repetition: Some(crate::Repetition { interval: Duration::from_secs(1), duration: Duration::from_secs(60) }),
        ..EventReport::new(Cause { code: 94, sub_code: 0 }, start().tai, place())
    };
    for _ in 0..DEN_ORIGINATED_MAX {
        facilities.trigger_event(start(), report.clone()).unwrap();
    }
    assert_eq!(drain(&mut facilities, start()), DEN_ORIGINATED_MAX);
    for second in 1..=3 {
        let now = start().plus(Duration::from_secs(second));
        facilities.handle_timeout(now);
        assert_eq!(drain(&mut facilities, now), DEN_ORIGINATED_MAX);
    }
    assert_eq!(facilities.counters().transmits_lost, 0);
    assert_eq!(facilities.den().map(|den| den.counters().transmits_lost), Some(0));
}

/// Takes requests until nothing more is due now. Returns their number.
fn drain(facilities: &mut Facilities, now: Now) -> usize {
    let mut taken = 0;
    loop {
        taken += std::iter::from_fn(|| facilities.poll_transmit()).count();
        if facilities.poll_timeout().is_none_or(|due| due > now.mono) {
            return taken;
        }
        facilities.handle_timeout(now);
    }
}

/// An event that fits no message is rejected.
#[test]
fn an_event_that_cannot_be_encoded_is_rejected() {
    let mut facilities = Facilities::new(all_services(StationId(1)), 1);
    let mut alacarte = denm::AlacarteContainer::new();
    alacarte.external_temperature = Some(Temperature(127));
    let report = EventReport {
        alacarte: Some(Box::new(alacarte)),
        ..EventReport::new(Cause { code: 94, sub_code: 0 }, start().tai, place())
    };
    assert_eq!(facilities.trigger_event(start(), report), Err(EventError::Den(DenError::Unencodable)));
    assert_eq!((facilities.counters().unencodable, facilities.poll_transmit()), (0, None));
}

/// EN 302 636-4-1, 9.6.4: a DENM at the end of its event's validity has the shortest lifetime, not 0.
#[test]
fn a_lifetime_is_at_least_50_ms() {
    let left = |millis| {
        let destination = Destination::SingleHop;
        denm_request(destination, Bytes::new(), Duration::from_millis(millis)).lifetime.duration()
    };
    assert_eq!([1, 20, 60, 1_000].map(left), [50, 50, 50, 1_000].map(Duration::from_millis));
}

/// EN 302 637-3, 8.4.1: an own event that another station negates stays in the own map while it is repeated.
#[test]
fn a_negated_own_event_stays_in_the_map() {
    let mut nodes = pair();
    run(&mut nodes, 0, 100);
    let now = start().plus(Duration::from_millis(100));
    let report = EventReport::new(Cause { code: 94, sub_code: 0 }, now.tai, place());
    let action_id = nodes[0].facilities.trigger_event(now, report.clone()).unwrap();
    run(&mut nodes, 100, 200);
    let later = start().plus(Duration::from_millis(200));
    assert_eq!(nodes[1].facilities.terminate_event(later, action_id, report), Ok(Termination::IsNegation));
    run(&mut nodes, 200, 300);
    let negated = |event: &FacilitiesEvent| matches!(event, FacilitiesEvent::Denm(DenIndication::Negated, ..));
    assert_eq!(nodes[0].events().iter().filter(|event| negated(event)).count(), 1);
    assert!(nodes[0].facilities.ldm().get(&event_key(action_id)).is_some_and(|known| known.own));
    assert!(nodes[1].facilities.ldm().get(&event_key(action_id)).is_none());
}

/// EN 302 637-2, 5.3.4.1; TS 103 900, 5.3.4.1; TS 103 324, 5.3.3: CAMs and CPMs use BTP-B with their port, one hop, and
/// a lifetime of at most 1 s.
#[test]
fn awareness_messages_have_one_hop_and_a_lifetime_of_one_second() {
    let mut facilities = Facilities::new(all_services(StationId(1)), 1);
    let state = VehicleState { time: start().tai, position: Some(place()), ..VehicleState::default() };
    facilities.set_vehicle(start(), &state);
    let object = Object::new(17, start().tai, Offset::default());
    facilities.set_objects(vec![PerceivedObject { position: place(), object }]);
    facilities.handle_timeout(start());
    let requests: Vec<SendRequest> = std::iter::from_fn(|| facilities.poll_transmit()).collect();
    let ports: Vec<u16> = requests.iter().map(|request| request.kind.btp_port()).collect();
    assert_eq!(ports, [2001, 2009]);
    for request in requests {
        assert_eq!(request.destination, Destination::SingleHop);
        assert!(matches!(request.btp, BtpKind::B { .. }));
        assert!(request.lifetime.duration() <= Duration::from_secs(1));
    }
}

/// Returns the clocks of a station that ignores leap seconds: 5 s late at [`start`].
fn without_leap_seconds(now: Now) -> Now {
    Now { tai: Tai::from_nanos(now.tai.nanos() - 5_000_000_000), ..now }
}

/// Runs the first node with a right clock, and the second one with the clock of `second_clock`.
fn run_with_clock(nodes: &mut [Node; 2], from: u64, end: u64, second_clock: fn(Now) -> Now) -> Vec<Bytes> {
    let mut sent = Vec::new();
    for millis in (from..end).step_by(50) {
        let now = start().plus(Duration::from_millis(millis));
        let [first, second] = nodes;
        first.step(now);
        for frame in second.step(second_clock(now)) {
            first.receive(now.plus(Duration::from_millis(20)), &frame);
            sent.push(frame);
        }
    }
    sent
}

fn clock_reports(node: &mut Node) -> Vec<ClockReport> {
    let report = |event| match event {
        FacilitiesEvent::ClockOffset(report) => Some(report),
        _ => None,
    };
    node.events().into_iter().filter_map(report).collect()
}

#[test]
fn a_station_that_ignores_leap_seconds_is_in_the_map() {
    let mut nodes = pair();
    run_with_clock(&mut nodes, 0, 10_000, without_leap_seconds);
    let offset = ClockOffset { late_s: 5 };
    assert_eq!(clock_reports(&mut nodes[0]), [ClockReport { station_id: StationId(2), offset, corrected: true }]);
    let query = Query { kinds: vec![MessageKind::Cam], only_others: true, ..Query::default() };
    let known: Vec<_> = nodes[0].facilities.ldm().query(&query).collect();
    let sent = without_leap_seconds(start().plus(Duration::from_millis(9950))).tai;
    let [object] = known[..] else { panic!("one station is known: {known:?}") };
    assert!(sent.since(object.sent_time()) < Duration::from_secs(1), "the time as sent remains visible");
    assert_eq!((object.clock, object.time), (offset, offset.correct(object.sent_time())));
    let too_late = nodes[0].facilities.ldm().counters().too_late;
    assert!((3..=8).contains(&too_late), "only the messages before the detection are too late: {too_late}");
}

#[test]
fn clocks_are_not_corrected_if_the_setting_is_off() {
    let settings = FacilitiesSettings { clock_tolerance: ClockTolerance::Off, ..all_services(StationId(1)) };
    let mut nodes = [Node::new(1, settings), Node::new(2, all_services(StationId(2)))];
    run_with_clock(&mut nodes, 0, 10_000, without_leap_seconds);
    let offset = ClockOffset { late_s: 5 };
    assert_eq!(clock_reports(&mut nodes[0]), [ClockReport { station_id: StationId(2), offset, corrected: false }]);
    assert_eq!(nodes[0].received_keys(MessageKind::Cam), []);
}

#[test]
fn a_station_with_a_correct_clock_is_not_corrected() {
    let mut nodes = pair();
    run_with_clock(&mut nodes, 0, 5_000, |now| now);
    assert_eq!(clock_reports(&mut nodes[0]), []);
    let query = Query { only_others: true, ..Query::default() };
    assert!(nodes[0].facilities.ldm().query(&query).all(|object| object.clock == ClockOffset::default()));
    assert_eq!((nodes[0].received_keys(MessageKind::Cam).len(), nodes[0].facilities.ldm().counters().too_late), (1, 0));
}

/// Old messages are too late for the map, also those of a station whose clock is corrected.
#[test]
fn a_replayed_message_is_too_late() {
    for clock in [without_leap_seconds, |now| now] {
        let mut nodes = pair();
        let sent = run_with_clock(&mut nodes, 0, 10_000, clock);
        let [node, _] = &mut nodes;
        let later = start().plus(Duration::from_secs(13));
        node.facilities.handle_timeout(later);
        assert_eq!(node.received_keys(MessageKind::Cam), [], "the station is silent");
        let before = node.facilities.ldm().counters().too_late;
        // The router would drop the duplicates, so the messages come to a station that has just started.
        node.station = Node::new(1, all_services(StationId(1))).station;
        for frame in &sent[sent.len() - 4..] {
            node.receive(later, frame);
        }
        assert_eq!(node.received_keys(MessageKind::Cam), []);
        assert!(node.facilities.ldm().counters().too_late >= before + 4);
    }
}

/// The map of a capture that begins again keeps the offsets of its stations, without another report.
#[test]
fn a_repeated_capture_reports_each_clock_once() {
    let mut nodes = pair();
    run_with_clock(&mut nodes, 0, 5_000, without_leap_seconds);
    assert_eq!(clock_reports(&mut nodes[0]).len(), 1);
    nodes[0].facilities.forget_received();
    nodes[1] = Node::new(2, all_services(StationId(2)));
    let too_late = nodes[0].facilities.ldm().counters().too_late;
    run_with_clock(&mut nodes, 0, 2_000, without_leap_seconds);
    assert_eq!(clock_reports(&mut nodes[0]), []);
    assert_eq!(
        (nodes[0].received_keys(MessageKind::Cam).len(), nodes[0].facilities.ldm().counters().too_late),
        (1, too_late)
    );
}
