//! The services of a station, from the topics of one node through the network to the topics of another node.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::runtime::Runtime;
use viaduct_bus::{Publisher, Qos, Recv, Subscriber, clock};
use viaduct_its::access::MacAddress;
use viaduct_its::facilities::cam::{CamInput, build};
use viaduct_its::facilities::den_service::{DenSettings, EventReport};
use viaduct_its::facilities::denm::Cause;
use viaduct_its::facilities::{Facilities, FacilitiesSettings, Message, MessageKind};
use viaduct_its::{Ego, SendRequest, Station, StationSettings};
use viaduct_messages::its::{tai_of, timestamp};
use viaduct_messages::viaduct::its::event_notice::Change;
use viaduct_messages::viaduct::its::event_request::Action;
use viaduct_messages::viaduct::its::map_object::Subject as Thing;
use viaduct_messages::viaduct::its::v2x_error::Subject;
use viaduct_messages::viaduct::its::v2x_send_request::Destination;
use viaduct_messages::viaduct::its::{
    EndOfEvent, Event, EventNotice, EventRequest, LocalDynamicMap, MapObject, MessageType, Position, Repetition,
    SecurityState, V2xError, V2xMessage, V2xSendRequest,
};
use viaduct_messages::viaduct::perception::{ObjectClass, PerceivedObject, PerceivedObjects};
use viaduct_messages::viaduct::vehicle::VehicleState;
use viaduct_node::{Component, Context, Edges, Graph, Kind, Node, StartError};
use viaduct_units::{Mono, Now, StationId, StationType, Tai};

const PATIENCE: Duration = Duration::from_secs(30);
/// Interval of the vehicle states.
const STEP: Duration = Duration::from_millis(50);
const RELIABLE: Qos = Qos::reliable(4096, Duration::ZERO);
const NORTH: f64 = 45.5;
const EAST: f64 = 7.25;
/// Degrees of latitude per metre.
const METRE_NORTH: f64 = 1.0 / 111_319.49;

const CAR: &str = "services: { ca: { length_m: 4.5, width_m: 1.8 }, vehicle: vehicle/state }";
const LISTENER: &str =
    "position: { latitude_deg: 45.5, longitude_deg: 7.25 }\n      services: { den: {}, ldm: { period_ms: 100 } }";

/// A component that declares the input topics of the services, on which the test publishes.
struct Feeder;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct FeederSettings {}

impl Component for Feeder {
    type Settings = FeederSettings;

    fn edges(_: &FeederSettings) -> Edges {
        Edges::default()
            .publishes::<VehicleState>("", "vehicle/state", RELIABLE)
            .publishes::<PerceivedObjects>("", "objects", RELIABLE)
            .publishes::<EventRequest>("", "events", RELIABLE)
            .publishes::<V2xSendRequest>("", "its/send", RELIABLE)
    }

    fn start(_: FeederSettings, _: &mut Context<Self>) -> Result<Self, StartError> {
        Ok(Self)
    }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Returns a multicast group that no other test uses.
fn group() -> SocketAddr {
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    SocketAddr::from((Ipv4Addr::new(239, 118, 122, 98), port))
}

/// Starts a node with one station of the given ID and type.
fn start(runtime: &Runtime, group: SocketAddr, station: (u32, u8), more: &str) -> Node {
    let kinds = [viaduct_components::KINDS, &[Kind::of::<Feeder>("feeder", "Feeds the services.", "{}")]].concat();
    let (id, kind) = station;
    let text = format!(
        "node: node{id}\ncomponents:\n  feeder: {{ kind: feeder, settings: {{}} }}\n  station:\n    kind: its_station\n    \
         settings:\n      station_id: {id}\n      station_type: {kind}\n      \
         access: {{ udp_multicast: {{ group: \"{group}\" }} }}\n      {more}\n"
    );
    Node::start(Graph::resolve("node.yaml", &text, &kinds).unwrap(), runtime.handle()).unwrap()
}

fn subscribe<M: viaduct_messages::Message>(node: &Node, topic: &str) -> Subscriber<M> {
    node.bus().subscribe(topic, RELIABLE, "reader").unwrap()
}

fn publisher<M: viaduct_messages::Message>(node: &Node, topic: &str) -> Publisher<M> {
    node.bus().publisher(topic, RELIABLE, "feeder").unwrap()
}

/// Returns the first matching message. `feed` is called repeatedly until then.
fn until<M: viaduct_messages::Message + Clone + std::fmt::Debug>(
    messages: &Subscriber<M>,
    mut feed: impl FnMut(),
    fits: impl Fn(&M) -> bool,
) -> M {
    let deadline = Instant::now() + PATIENCE;
    let mut last = None;
    while Instant::now() < deadline {
        feed();
        match messages.recv_timeout(STEP) {
            Recv::Sample(sample) if fits(&sample) => return (*sample).clone(),
            Recv::Sample(sample) => last = Some((*sample).clone()),
            Recv::TimedOut => {}
            Recv::Closed => panic!("the node has ended"),
        }
    }
    panic!("no message that fits; the last one was {last:?}")
}

fn any<M>(_: &M) -> bool {
    true
}

fn nothing() {}

fn count(node: &Node, name: &str, reason: Option<&str>) -> u64 {
    let snapshot = node.bus().snapshot();
    let rows = snapshot.counters.iter().filter(|row| row.name == name);
    rows.filter(|row| reason.is_none() || row.reason.as_deref() == reason).map(|row| row.value).sum()
}

fn wait_for(node: &Node, name: &str, reason: Option<&str>, value: u64) {
    let deadline = Instant::now() + PATIENCE;
    while count(node, name, reason) < value {
        let found = count(node, name, reason);
        assert!(Instant::now() < deadline, "{name} {reason:?} is {found} and not {value}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn place(north_m: f64) -> Option<Position> {
    let latitude_deg = NORTH + north_m * METRE_NORTH;
    Some(Position { latitude_deg, longitude_deg: EAST, altitude_m: Some(300.0) })
}

fn standing() -> VehicleState {
    VehicleState { position: place(0.0), speed_mps: Some(0.0), heading_deg: Some(90.0), ..VehicleState::default() }
}

/// Returns the decoded payload as JSON.
fn decoded(message: &V2xMessage) -> Value {
    let kind = MessageKind::from_message_id(message.r#type().message_id()).unwrap();
    let mut text = Vec::new();
    Message::decode(kind, &message.payload).unwrap().write_json(&mut text);
    serde_json::from_slice(&text).unwrap()
}

/// Returns the first member with the name at any depth.
fn member<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    match value {
        Value::Object(members) => members.get(name).or_else(|| members.values().find_map(|value| member(value, name))),
        Value::Array(values) => values.iter().find_map(|value| member(value, name)),
        _ => None,
    }
}

#[test]
fn a_car_sends_its_movement_in_cams() {
    let (runtime, group) = (runtime(), group());
    let listener = start(&runtime, group, (15, 15), "");
    let car = start(&runtime, group, (5, 5), CAR);
    let (cams, sent) = (subscribe::<V2xMessage>(&listener, "its/rx/cam"), subscribe::<V2xMessage>(&car, "its/tx/cam"));
    let states = publisher::<VehicleState>(&car, "vehicle/state");
    let state = VehicleState { speed_mps: Some(13.5), heading_deg: Some(271.0), ..standing() };
    let cam = until(&cams, || states.publish(state.clone()).unwrap(), any);
    assert_eq!((cam.station_id, cam.station_type), (5, 5));
    let found = cam.place().unwrap();
    assert!((found.latitude.value() - NORTH).abs() < 1e-6 && (found.longitude.value() - EAST).abs() < 1e-6);
    assert_eq!((cam.speed_mps, cam.heading_deg), (Some(13.5), Some(271.0)));
    let content = decoded(&cam);
    assert_eq!(member(&content, "vehicleLengthValue"), Some(&45.into()), "{content}");
    assert_eq!(member(&content, "vehicleWidth"), Some(&18.into()), "{content}");
    assert_eq!(until(&sent, nothing, any).payload, cam.payload);
    // A state that is too old causes no CAM and is counted.
    wait_for(&car, "services_lost", Some("cam_state_too_old"), 1);
    assert_eq!(count(&car, "services_refused", None), 0);
    car.stop();
    listener.stop();
}

#[test]
fn a_car_without_a_position_sends_nothing() {
    let (runtime, group) = (runtime(), group());
    let services = "services: { ca: {}, ldm: { period_ms: 100 }, vehicle: vehicle/state }";
    let car = start(&runtime, group, (5, 5), services);
    let maps = subscribe::<LocalDynamicMap>(&car, "its/ldm");
    // A CAM would be sent within a second. Twelve maps show that more than a second has passed.
    for _ in 0..12 {
        assert_eq!(until(&maps, nothing, any).objects, []);
    }
    assert_eq!((count(&car, "sent", None), count(&car, "services_refused", None)), (0, 0));
    car.stop();
}

/// Each query has a separate topic with the objects that match all its conditions.
#[test]
fn queries_publish_parts_of_the_map() {
    let (runtime, group) = (runtime(), group());
    let queries = "position: { latitude_deg: 45.5, longitude_deg: 7.25 }\n      services:\n        ca: {}\n        den: {}\n        \
                   ldm:\n          period_ms: 100\n          queries:\n          \
                   - { topic: near, types: [ denm ], within_m: 500 }\n          \
                   - { topic: own, station_id: 15, newer_than_ms: 60000 }\n          \
                   - { topic: others, only_others: true }\n          \
                   - { topic: now, newer_than_ms: 1 }";
    let listener = start(&runtime, group, (15, 15), queries);
    let warner = start(&runtime, group, (5, 5), WARNER);
    let events = publisher::<EventRequest>(&warner, "events");
    for (name, latitude_deg) in [("here", 45.5), ("there", 45.51)] {
        let mut request = report_each(1_000, name, 1);
        let Some(Action::Report(event)) = &mut request.action else { panic!() };
        event.position = Some(viaduct_messages::viaduct::its::Position { latitude_deg, ..Default::default() });
        event.position.as_mut().unwrap().longitude_deg = 7.25;
        event.relevance_distance_m = Some(1700);
        events.publish(request).unwrap();
    }
    let whole = subscribe::<LocalDynamicMap>(&listener, "its/ldm");
    until(&whole, nothing, |map| map.objects.len() == 3);
    let part = |topic: &str, objects: usize| {
        let maps = subscribe::<LocalDynamicMap>(&listener, topic);
        until(&maps, nothing, |map| map.objects.len() == objects).objects
    };
    let near = part("near", 1);
    assert!((near[0].position.as_ref().unwrap().latitude_deg - 45.5).abs() < 1e-6, "{near:?}");
    assert!(part("own", 1)[0].own);
    assert!(part("others", 2).iter().all(|object| object.station_id == 5));
    part("now", 0);
    warner.stop();
    listener.stop();
}

#[test]
fn objects_perceived_by_one_car_are_on_the_map_of_another() {
    let (runtime, group) = (runtime(), group());
    let listener = start(&runtime, group, (15, 15), LISTENER);
    let car = start(&runtime, group, (5, 5), "services: { cp: {}, vehicle: vehicle/state, objects: objects }");
    let cpms = subscribe::<V2xMessage>(&listener, "its/rx/cpm");
    let maps = subscribe::<LocalDynamicMap>(&listener, "its/ldm");
    let states = publisher::<VehicleState>(&car, "vehicle/state");
    let lists = publisher::<PerceivedObjects>(&car, "objects");
    let object = |id: u32, north_m: f64, class: ObjectClass| PerceivedObject {
        id,
        position: place(north_m),
        speed_mps: Some(5.0),
        heading_deg: Some(180.0),
        class: class.into(),
        existence_confidence: Some(1.0),
        ..PerceivedObject::default()
    };
    let feed = || {
        states.publish(standing()).unwrap();
        let objects = vec![object(1, 20.0, ObjectClass::PassengerCar), object(2, -35.0, ObjectClass::Pedestrian)];
        lists.publish(PerceivedObjects { objects, ..PerceivedObjects::default() }).unwrap();
    };
    let cpm = until(&cpms, feed, |cpm| member(&decoded(cpm), "objectId").is_some());
    assert_eq!((cpm.station_id, cpm.r#type()), (5, MessageType::Cpm));
    let perceived = |map: &LocalDynamicMap| -> Vec<MapObject> {
        map.objects.iter().filter(|object| matches!(object.subject, Some(Thing::Object(_)))).copied().collect()
    };
    let map = until(&maps, feed, |map| perceived(map).len() == 2);
    for (object, north_m) in perceived(&map).iter().zip([20.0, -35.0]) {
        let found = object.position.unwrap();
        assert!((found.latitude_deg - (NORTH + north_m * METRE_NORTH)).abs() < 0.1 * METRE_NORTH, "{object:?}");
        assert!((object.speed_mps.unwrap() - 5.0).abs() < 0.02 && !object.own, "{object:?}");
        assert!((object.heading_deg.unwrap() - 180.0).abs() < 0.2, "{object:?}");
    }
    car.stop();
    listener.stop();
}

#[test]
fn a_station_describes_its_sensors_every_second() {
    let (runtime, group) = (runtime(), group());
    let listener = start(&runtime, group, (15, 15), "");
    let sensors = "{ id: 1, type: lidar, range_m: 120, start_deg: 315, end_deg: 45, x_m: -1.5, confidence: 0.9, \
                   shadowing: true }, { id: 2, type: radar, range_m: 60.5 }, { id: 7, type: acoustic }";
    let services =
        format!("services: {{ cp: {{ sensors: [ {sensors} ] }}, vehicle: vehicle/state, objects: objects }}");
    let car = start(&runtime, group, (5, 5), &services);
    let cpms = subscribe::<V2xMessage>(&listener, "its/rx/cpm");
    let states = publisher::<VehicleState>(&car, "vehicle/state");
    let reports: Vec<V2xMessage> = (0..2).map(|_| until(&cpms, || states.publish(standing()).unwrap(), any)).collect();
    let content = decoded(&reports[1]);
    let sensors = member(&content, "cpmContainers").unwrap()[1]["containerData"].as_array().unwrap();
    assert_eq!(sensors.len(), 3, "{content}");
    assert_eq!((&sensors[0]["sensorId"], &sensors[0]["sensorType"]), (&1.into(), &2.into()));
    assert_eq!(
        (&sensors[0]["perceptionRegionConfidence"], &sensors[0]["shadowingApplies"]),
        (&90.into(), &true.into())
    );
    let radial = member(&sensors[0], "radial").unwrap();
    assert_eq!((&radial["range"], &radial["shapeReferencePoint"]["xCoordinate"]), (&1200.into(), &(-150).into()));
    assert_eq!(member(radial, "horizontalOpeningAngleStart"), Some(&3150.into()), "{radial}");
    assert_eq!(member(radial, "horizontalOpeningAngleEnd"), Some(&450.into()), "{radial}");
    assert_eq!(member(&sensors[1], "radius"), Some(&605.into()), "{content}");
    assert_eq!((&sensors[2]["sensorType"], sensors[2].get("perceptionRegionShape")), (&11.into(), None));
    car.stop();
    listener.stop();
}

#[test]
fn an_emergency_vehicle_sends_the_state_of_its_siren() {
    let (runtime, group) = (runtime(), group());
    let listener = start(&runtime, group, (15, 15), "");
    let car = start(&runtime, group, (5, 10), "services: { ca: { role: emergency }, vehicle: vehicle/state }");
    let cams = subscribe::<V2xMessage>(&listener, "its/rx/cam");
    let states = publisher::<VehicleState>(&car, "vehicle/state");
    let lights = |cam: &V2xMessage| {
        let content = decoded(cam);
        member(&content, "emergencyContainer").and_then(|it| it.get("lightBarSirenInUse")).cloned()
    };
    let quiet = until(&cams, || states.publish(standing()).unwrap(), |cam| lights(cam).is_some());
    let loud = VehicleState { light_bar: true, siren: true, ..standing() };
    let cam = until(
        &cams,
        || states.publish(loud.clone()).unwrap(),
        |cam| lights(cam).is_some_and(|it| Some(it) != lights(&quiet)),
    );
    assert_eq!(member(&decoded(&cam), "vehicleRole"), Some(&"emergency".into()));
    assert_eq!((lights(&quiet), lights(&cam)), (Some("00".into()), Some("C0".into())));
    car.stop();
    listener.stop();
}

fn report(name: &str, cause: u32) -> EventRequest {
    report_each(100, name, cause)
}

fn report_each(interval_ms: u32, name: &str, cause: u32) -> EventRequest {
    let event = Event {
        cause,
        validity_s: Some(60),
        relevance_distance_m: Some(500),
        repetition_interval_ms: Some(interval_ms),
        repetition_duration_ms: Some(30_000),
        ..Event::default()
    };
    EventRequest { name: name.to_owned(), action: Some(Action::Report(event)), ..EventRequest::default() }
}

fn end(name: &str) -> EventRequest {
    EventRequest { name: name.to_owned(), action: Some(Action::End(EndOfEvent {})), ..EventRequest::default() }
}

const WARNER: &str =
    "position: { latitude_deg: 45.5, longitude_deg: 7.25 }\n      services: { den: {}, events: events }";

#[test]
fn an_event_causes_one_notice_for_each_begin_change_and_end() {
    let (runtime, group) = (runtime(), group());
    let listener = start(&runtime, group, (15, 15), LISTENER);
    let warner = start(&runtime, group, (5, 5), WARNER);
    let notices = subscribe::<EventNotice>(&listener, "its/events");
    let maps = subscribe::<LocalDynamicMap>(&listener, "its/ldm");
    let events = publisher::<EventRequest>(&warner, "events");

    events.publish(report("jam", 1)).unwrap();
    let new = until(&notices, nothing, any);
    assert_eq!((new.change(), new.originating_station_id, new.cause), (Change::New, 5, Some(1)));
    assert!((new.position.unwrap().latitude_deg - NORTH).abs() < 1e-6);
    let known =
        |map: &LocalDynamicMap| map.objects.iter().any(|it| it.subject == Some(Thing::Event(new.sequence_number)));
    until(&maps, nothing, known);
    // Repetitions of the DENM cause no notices.
    wait_for(&listener, "denms_ignored", Some("denm_repeated"), 3);

    events.publish(report("jam", 27)).unwrap();
    let updated = until(&notices, nothing, any);
    assert_eq!((updated.change(), updated.sequence_number), (Change::Updated, new.sequence_number));
    assert_eq!(updated.cause, Some(27));

    events.publish(end("jam")).unwrap();
    let ended = until(&notices, nothing, any);
    assert_eq!((ended.change(), ended.sequence_number), (Change::Cancelled, new.sequence_number));
    until(&maps, nothing, |map| !known(map));
    assert_eq!(count(&warner, "inputs_refused", None), 0);
    warner.stop();
    listener.stop();
}

/// Inputs before the stop are sent even if messages wait at the DCC gate, which is closed for 25 ms after each frame.
#[test]
fn inputs_before_the_stop_are_still_sent() {
    for dcc in ["", "\n      dcc: { adaptive: {} }"] {
        let (runtime, group) = (runtime(), group());
        let listener = start(&runtime, group, (15, 15), LISTENER);
        let warner = start(&runtime, group, (5, 5), &format!("{WARNER}{dcc}"));
        let notices = subscribe::<EventNotice>(&listener, "its/events");
        let events = publisher::<EventRequest>(&warner, "events");
        events.publish(report("jam", 1)).unwrap();
        until(&notices, nothing, any);
        // Only one frame now waits at the gate, so it is sent even if the station wakes late.
        events.publish(end("jam")).unwrap();
        warner.stop();
        assert_eq!(until(&notices, nothing, any).change(), Change::Cancelled);
        listener.stop();
    }
}

/// A flag that is set on drop.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// More requests are published than the station can handle, before and after the stop.
#[test]
fn a_station_stops_although_applications_keep_publishing() {
    let (runtime, group) = (runtime(), group());
    let warner = start(&runtime, group, (5, 5), &format!("topics: {{ send: its/send }}\n      {WARNER}"));
    let requests = publisher::<V2xSendRequest>(&warner, "its/send");
    let events = publisher::<EventRequest>(&warner, "events");
    let stopped = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // The flag is also set if this test fails, because the publishers would otherwise never end.
        let ends = Ends(&stopped);
        let go_on = |ask: &dyn Fn()| {
            while !stopped.load(Ordering::Relaxed) {
                ask();
                std::thread::yield_now();
            }
        };
        // A full queue stays full.
        scope.spawn(move || go_on(&|| drop(requests.publish(V2xSendRequest::default()))));
        scope.spawn(move || go_on(&|| drop(events.publish(end("jam")))));
        wait_for(&warner, "inputs_refused", None, 1);
        wait_for(&warner, "requests_refused", None, 1);
        let stopped = warner.stop_by(Instant::now() + PATIENCE).is_clean;
        drop(ends);
        assert!(stopped);
    });
}

#[test]
fn a_warning_is_delivered_in_the_area_around_the_event() {
    let (runtime, group) = (runtime(), group());
    let near = start(&runtime, group, (15, 15), LISTENER);
    let far = start(
        &runtime,
        group,
        (16, 15),
        "position: { latitude_deg: 45.51, longitude_deg: 7.25 }\n      services: { den: {} }",
    );
    let warner = start(&runtime, group, (5, 5), WARNER);
    let (here, there) = (subscribe::<V2xMessage>(&near, "its/rx/denm"), subscribe::<V2xMessage>(&far, "its/rx/denm"));
    let events = publisher::<EventRequest>(&warner, "events");
    events.publish(report("jam", 1)).unwrap();
    // The far station is 1.1 km away, and the area has a radius of 500 m: it receives the packets and may only forward them.
    assert_eq!(until(&here, nothing, any).station_id, 5);
    wait_for(&far, "received", None, 3);
    assert!(matches!(there.recv_timeout(Duration::ZERO), Recv::TimedOut));
    assert_eq!(count(&far, "delivered", None), 0);
    near.stop();
    far.stop();
    warner.stop();
}

#[test]
fn invalid_inputs_are_counted_by_reason_and_reported() {
    let (runtime, group) = (runtime(), group());
    let services = "services: { ca: {}, cp: {}, den: {}, vehicle: vehicle/state, objects: objects, events: events }";
    let car = start(&runtime, group, (5, 5), services);
    let states = publisher::<VehicleState>(&car, "vehicle/state");
    let lists = publisher::<PerceivedObjects>(&car, "objects");
    let events = publisher::<EventRequest>(&car, "events");
    let errors = car.bus().subscribe::<V2xError>("its/errors", Qos::keep_last(64), "reader").unwrap();
    states.publish(VehicleState { position: None, ..standing() }).unwrap();
    let ahead = timestamp(clock::tai().plus(Duration::from_secs(60)));
    states.publish(VehicleState { time: Some(ahead), ..standing() }).unwrap();
    let lists_of = |objects| PerceivedObjects { objects, ..PerceivedObjects::default() };
    lists.publish(lists_of(vec![PerceivedObject::default()])).unwrap();
    // The event has no position, and the position of the car is unknown.
    events.publish(report("here", 1)).unwrap();
    wait_for(&car, "inputs_refused", Some("no_position"), 3);
    wait_for(&car, "inputs_refused", Some("in_future"), 1);

    states.publish(standing()).unwrap();
    wait_for(&car, "sent", None, 1);
    events.publish(report("", 1)).unwrap();
    events.publish(EventRequest { name: "jam".to_owned(), action: None, ..EventRequest::default() }).unwrap();
    events.publish(end("jam")).unwrap();
    events.publish(report("jam", 128)).unwrap();
    let over = Event { cause: 1, validity_s: Some(0), ..Event::default() };
    events
        .publish(EventRequest { name: "jam".to_owned(), action: Some(Action::Report(over)), ..EventRequest::default() })
        .unwrap();
    for reason in ["event_name", "no_action", "unknown_event", "out_of_range", "refused"] {
        wait_for(&car, "inputs_refused", Some(reason), 1);
    }
    assert_eq!(count(&car, "inputs_refused", None), 9);
    let object =
        |id, heading_deg| PerceivedObject { id, position: place(5.0), heading_deg, ..PerceivedObject::default() };
    lists.publish(lists_of(vec![object(1, None), object(2, Some(400.0))])).unwrap();
    wait_for(&car, "inputs_refused", Some("out_of_range"), 2);
    lists.publish(lists_of(vec![object(1, None), object(1, None)])).unwrap();
    wait_for(&car, "inputs_refused", Some("duplicate_id"), 1);
    let reports: Vec<V2xError> =
        (0..11).map(|_| until(&errors, nothing, |it| it.subject() == Subject::Request)).collect();
    for (kind, event, reason, text) in [
        (MessageType::Unknown, "", "no_position", "position: missing"),
        (MessageType::Unknown, "", "in_future", "time: more than two seconds ahead of the clock"),
        (MessageType::Cpm, "", "no_position", "objects[0].position: missing"),
        (MessageType::Cpm, "", "out_of_range", "objects[1].heading_deg: expected a number from 0 to 360, got 400"),
        (MessageType::Cpm, "", "duplicate_id", "objects[1].id: an earlier object of the list has the same id"),
        (
            MessageType::Denm,
            "here",
            "no_position",
            "report.position: missing, and the position of the station is unknown",
        ),
        (MessageType::Denm, "", "event_name", "name: expected 1 to 64 octets"),
        (MessageType::Denm, "jam", "no_action", "expected `report` or `end`"),
        (MessageType::Denm, "jam", "unknown_event", "name: no active event has this name"),
        (MessageType::Denm, "jam", "out_of_range", "report.cause: expected an integer from 1 to 127, got 128"),
        (MessageType::Denm, "jam", "refused", "the event's validity has ended"),
    ] {
        // Dropped echoes of its own frames are reported on that topic as well.
        let error =
            reports.iter().find(|error| (error.r#type(), &*error.event, &*error.reason) == (kind, event, reason));
        assert_eq!(error.map(|error| (&*error.error, &*error.station)), Some((text, "node5/station")), "{reports:?}");
    }
    car.stop();
}

#[test]
fn a_cyclist_sends_vams_with_its_profile() {
    let (runtime, group) = (runtime(), group());
    let listener = start(&runtime, group, (15, 15), LISTENER);
    let cyclist = start(&runtime, group, (2, 2), "services: { va: { profile: bicyclist }, vehicle: vehicle/state }");
    let vams = subscribe::<V2xMessage>(&listener, "its/rx/vam");
    let states = publisher::<VehicleState>(&cyclist, "vehicle/state");
    let state = VehicleState { speed_mps: Some(5.0), ..standing() };
    let vam = until(&vams, || states.publish(state.clone()).unwrap(), any);
    assert_eq!((vam.station_id, vam.station_type, vam.speed_mps), (2, 2, Some(5.0)));
    assert!((vam.place().unwrap().latitude.value() - NORTH).abs() < 1e-6);
    assert!(member(&decoded(&vam), "bicyclistAndLightVruVehicle").is_some());
    cyclist.stop();
    listener.stop();
}

#[test]
fn a_map_keeps_near_objects_until_they_expire() {
    let (runtime, group) = (runtime(), group());
    let near = "position: { latitude_deg: 45.5, longitude_deg: 7.25 }\n      services: { ldm: { period_ms: 100, radius_m: 1000 } }";
    let listener = start(&runtime, group, (15, 15), near);
    let car = start(&runtime, group, (5, 5), CAR);
    let states = publisher::<VehicleState>(&car, "vehicle/state");
    let maps = subscribe::<LocalDynamicMap>(&listener, "its/ldm");
    let at = |north_m: f64| VehicleState { position: place(north_m), ..standing() };
    let is_known =
        |map: &LocalDynamicMap| map.objects.iter().any(|it| it.station_id == 5 && it.r#type() == MessageType::Cam);

    let map = until(&maps, || states.publish(at(0.0)).unwrap(), is_known);
    let known = map.objects.iter().find(|object| object.station_id == 5).unwrap();
    assert!(known.valid_for_s > 0.0 && known.valid_for_s <= 2.0 && known.subject.is_none(), "{known:?}");
    // The far station is received and not kept.
    let before = count(&listener, "delivered", None);
    until(
        &maps,
        || states.publish(at(5000.0)).unwrap(),
        |map| !is_known(map) && count(&listener, "delivered", None) > before + 2,
    );
    wait_for(&listener, "ldm_dropped", Some("outside_area"), 1);
    // The near station is kept, and removed when it sends nothing more.
    until(&maps, || states.publish(at(10.0)).unwrap(), is_known);
    until(&maps, nothing, |map| !is_known(map));
    car.stop();
    listener.stop();
}

#[test]
fn a_roadside_unit_sends_a_cam_every_second() {
    let (runtime, group) = (runtime(), group());
    let listener = start(&runtime, group, (16, 15), "");
    let roadside = "position: { latitude_deg: 45.5, longitude_deg: 7.25 }\n      services: { ca: {} }";
    let unit = start(&runtime, group, (15, 15), roadside);
    let cams = subscribe::<V2xMessage>(&listener, "its/rx/cam");
    let received: Vec<V2xMessage> = (0..3).map(|_| until(&cams, nothing, any)).collect();
    for pair in received.windows(2) {
        let apart = pair[1].reception().unwrap().since(pair[0].reception().unwrap());
        // Depends on the timer: not earlier than the standard allows, and not much later.
        assert!(apart >= Duration::from_millis(900) && apart < Duration::from_millis(1900), "{apart:?}");
    }
    let content = decoded(&received[0]);
    assert!(member(&content, "rsuContainerHighFrequency").is_some(), "{content}");
    assert!(member(&content, "basicVehicleContainerHighFrequency").is_none(), "{content}");
    assert!((received[0].place().unwrap().latitude.value() - NORTH).abs() < 1e-6);
    unit.stop();
    listener.stop();
}

/// The services follow their rules, and the gate passes their messages one after the other.
#[test]
fn a_station_with_congestion_control_keeps_to_the_limits_of_the_channel() {
    let (runtime, group) = (runtime(), group());
    let listener = start(&runtime, group, (15, 15), "");
    let services = "services: { ca: {}, den: {}, vehicle: vehicle/state, events: events }\n      dcc: { adaptive: {} }";
    let car = start(&runtime, group, (5, 5), services);
    let (cams, denms) =
        (subscribe::<V2xMessage>(&listener, "its/rx/cam"), subscribe::<V2xMessage>(&listener, "its/rx/denm"));
    let states = publisher::<VehicleState>(&car, "vehicle/state");
    let events = publisher::<EventRequest>(&car, "events");
    until(&cams, || states.publish(standing()).unwrap(), any);
    events.publish(report("jam", 1)).unwrap();
    events.publish(report("accident", 2)).unwrap();
    let received: Vec<V2xMessage> = (0..4).map(|_| until(&denms, nothing, any)).collect();
    // T_off is at least 25 ms (TS 102 687, annex B): the two simultaneous messages were sent one after the other.
    let apart = received[1].reception().unwrap().since(received[0].reception().unwrap());
    assert!(apart >= Duration::from_millis(20), "{apart:?}");
    assert_eq!(count(&car, "dcc_dropped", None), 0);
    car.stop();
    listener.stop();
}

/// Writes a capture from a day ago. It has a frame of 02:00:00:00:00:09, a warning of another station, a CAM 50 ms
/// later, and an invalid frame after another 80 ms. So the maps, one every 100 ms, are published at different times of
/// a pass.
fn old_capture() -> tempfile::NamedTempFile {
    written(old_frames())
}

fn old_frames() -> Vec<(Tai, Vec<u8>)> {
    let start = Tai::from_nanos(clock::tai().nanos() - 86_400_000_000_000);
    let at = |ms| Now { mono: Mono(Duration::from_secs(1)), tai: start.plus(Duration::from_millis(ms)) };
    let position = viaduct_units::Position::new(NORTH, EAST);
    let settings = StationSettings {
        link_address: MacAddress([2, 0, 0, 0, 0, 5]),
        station_type: StationType::PASSENGER_CAR,
        mobile: true,
        beacons: false,
    };
    let mut station = Station::new(settings, 1);
    let speed = viaduct_units::MetresPerSecond(0.0);
    station.set_ego(at(0), Ego { time: start, position, position_accurate: true, speed, heading: None });
    let den = DenSettings {
        station_id: StationId(5),
        station_type: StationType::PASSENGER_CAR,
        keep_alive_forwarding: false,
    };
    let mut layer = Facilities::new(FacilitiesSettings { den: Some(den), ..FacilitiesSettings::default() }, 1);
    layer.trigger_event(at(0), EventReport::new(Cause { code: 1, sub_code: 0 }, start, position)).unwrap();
    let cam = build(&CamInput { position: Some(position), ..CamInput::new(StationId(5), at(50).tai) });
    let cam = SendRequest::single_hop(MessageKind::Cam, Message::Cam(Box::new(cam)).encode().unwrap().into());
    let mut frames = Vec::new();
    for (ms, request) in [(0, layer.poll_transmit().unwrap()), (50, cam)] {
        station.send(at(ms), &request).unwrap();
        frames.push((at(ms).tai, station.poll_transmit().unwrap()));
    }
    let mut of_another = frames[0].clone();
    of_another.1[11] = 9;
    let mut none = frames[0].1.clone();
    none.truncate(30);
    frames.push((at(130).tai, none));
    frames.insert(0, of_another);
    frames
}

/// Writes a capture with these frames.
fn written(frames: Vec<(Tai, Vec<u8>)>) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    // pcap with nanoseconds, link type Ethernet.
    let mut octets: Vec<u8> =
        [0xA1B2_3C4D_u32, 0x0004_0002, 0, 0, 65_535, 1].into_iter().flat_map(u32::to_le_bytes).collect();
    for (time, frame) in frames {
        let utc = timestamp(time);
        let head = [utc.seconds as u32, utc.nanos as u32, frame.len() as u32, frame.len() as u32];
        octets.extend(head.into_iter().flat_map(u32::to_le_bytes).chain(frame));
    }
    std::fs::write(file.path(), octets).unwrap();
    file
}

/// Outputs from a capture have current times, and each pass produces the same outputs.
#[test]
fn outputs_of_a_replayed_capture_have_current_times() {
    let runtime = runtime();
    let capture = old_capture();
    let text = format!(
        "node: node15\ncomponents:\n  station:\n    kind: its_station\n    settings:\n      station_id: 15\n      \
         access: {{ replay: {{ file: {}, repeat: true }} }}\n      \
         filter: {{ ignore_from: [ \"02:00:00:00:00:09\" ] }}\n      {LISTENER}\n",
        capture.path().display()
    );
    let graph = Graph::resolve("node.yaml", &text, viaduct_components::KINDS).unwrap();
    let before = clock::tai();
    let node = Node::start(graph, runtime.handle()).unwrap();
    let notices = subscribe::<EventNotice>(&node, "its/events");
    let maps = subscribe::<LocalDynamicMap>(&node, "its/ldm");
    let errors = node.bus().subscribe::<V2xError>("its/errors", Qos::keep_last(64), "reader").unwrap();
    let is_now = |time: Tai| {
        let slack = Duration::from_secs(1);
        assert!(time.plus(slack) >= before && time <= clock::tai().plus(slack), "{time:?} {before:?}");
    };
    let mut last = None;
    for _ in 0..3 {
        let notice = until(&notices, nothing, any);
        assert_eq!(notice.change(), Change::New);
        let detection = tai_of(&notice.detection_time.unwrap());
        is_now(detection);
        assert!(Some(detection) > last.replace(detection));
        assert_eq!(tai_of(&notice.valid_until.unwrap()).since(detection), Duration::from_secs(600));
    }
    let map = until(&maps, nothing, |map| map.objects.len() == 2);
    map.objects.iter().for_each(|object| is_now(tai_of(&object.time.unwrap())));
    is_now(tai_of(&until(&errors, nothing, any).time.unwrap()));
    // The start of each pass removes the objects of the previous pass; no other object is lost.
    assert_eq!(count(&node, "ldm_dropped", None), count(&node, "ldm_dropped", Some("capture_repeated")));
    node.stop();
}

/// Returns an unsecured packet in a frame as a packet signed by the certificate with the digest 1 to 8.
fn signed(frame: &[u8]) -> Vec<u8> {
    /// An Ethernet header and a basic header.
    const OUTER_OCTETS: usize = 18;
    let (outer, content) = frame.split_at(OUTER_OCTETS);
    let length = u16::try_from(content.len()).unwrap().to_be_bytes();
    let mut out = outer.to_vec();
    // The basic header announces a secured packet.
    out[14] = 0x12;
    out.extend([&[3, 0x81, 0, 0x40, 3, 0x80, 0x82][..], &length, content].concat());
    // Header: generation time, PSID 36. Signer: digest. Signature: x-only r, s.
    out.extend([&[0x40, 1, 36][..], &[9; 8], &[0x80, 1, 2, 3, 4, 5, 6, 7, 8], &[0x80, 0x80], &[7; 64]].concat());
    out
}

/// Applications can tell the outputs of packets that nothing verified from those of others.
#[test]
fn outputs_of_unverified_packets_are_marked() {
    let runtime = runtime();
    for (sign, expected) in [(true, SecurityState::Unverified), (false, SecurityState::Unsecured)] {
        let frames = old_frames().into_iter().map(|(time, frame)| (time, if sign { signed(&frame) } else { frame }));
        let capture = written(frames.collect());
        let text = format!(
            "node: node15\ncomponents:\n  station:\n    kind: its_station\n    settings:\n      station_id: 15\n      \
             security: {{ policy: unverified }}\n      access: {{ replay: {{ file: {}, repeat: true }} }}\n      \
             {LISTENER}\n",
            capture.path().display()
        );
        let graph = Graph::resolve("node.yaml", &text, viaduct_components::KINDS).unwrap();
        let node = Node::start(graph, runtime.handle()).unwrap();
        let notices = subscribe::<EventNotice>(&node, "its/events");
        let maps = subscribe::<LocalDynamicMap>(&node, "its/ldm");
        assert_eq!(until(&notices, nothing, any).security(), expected);
        let map = until(&maps, nothing, |map| map.objects.len() == 2);
        let marks: Vec<SecurityState> = map.objects.iter().map(MapObject::security).collect();
        assert_eq!(marks, [expected; 2]);
        node.stop();
    }
}

/// Returns a request that the router repeats.
fn repeated(interval: f64) -> V2xSendRequest {
    let cam = build(&CamInput {
        position: Some(viaduct_units::Position::new(NORTH, EAST)),
        ..CamInput::new(StationId(5), clock::tai())
    });
    V2xSendRequest {
        r#type: MessageType::Cam.into(),
        payload: Message::Cam(Box::new(cam)).encode().unwrap().into(),
        repetition: Some(Repetition { interval_s: interval, duration_s: 20.0 }),
        ..V2xSendRequest::default()
    }
}

/// Vanetza and many stations in the field ignore leap seconds. The map shows such a station with the corrected time and the time as
/// sent, the message keeps its time, and the clock is reported once.
#[test]
fn a_station_that_ignores_leap_seconds_is_shown_and_reported_once() {
    let (runtime, group) = (runtime(), group());
    let listener = start(&runtime, group, (15, 15), LISTENER);
    let settings = "topics: { send: its/send }\n      position: { latitude_deg: 45.5, longitude_deg: 7.25 }";
    let sender = start(&runtime, group, (5, 5), settings);
    let requests = publisher::<V2xSendRequest>(&sender, "its/send");
    let maps = subscribe::<LocalDynamicMap>(&listener, "its/ldm");
    let cams = subscribe::<V2xMessage>(&listener, "its/rx/cam");
    let errors = listener.bus().subscribe::<V2xError>("its/errors", Qos::keep_last(64), "reader").unwrap();
    let send = || {
        let generation = Tai::from_nanos(clock::tai().nanos() - 5_000_000_000);
        let position = Some(viaduct_units::Position::new(NORTH, EAST));
        let cam = build(&CamInput { position, ..CamInput::new(StationId(5), generation) });
        let payload = Message::Cam(Box::new(cam)).encode().unwrap().into();
        requests
            .publish(V2xSendRequest { r#type: MessageType::Cam.into(), payload, ..V2xSendRequest::default() })
            .unwrap();
    };
    let send = || {
        send();
        std::thread::sleep(Duration::from_millis(20));
    };
    let map = until(&maps, send, |map| map.objects.iter().any(|object| object.station_id == 5));
    let object = map.objects.iter().find(|object| object.station_id == 5).unwrap();
    let (time, sent_time) = (tai_of(&object.time.unwrap()), tai_of(&object.sent_time.unwrap()));
    assert_eq!((object.clock_late_s, time.since(sent_time)), (5, Duration::from_secs(5)));
    let cam = until(&cams, nothing, any);
    assert!(cam.reception().unwrap().since(cam.generation().unwrap()) >= Duration::from_secs(4));
    let of_clock = |error: &V2xError| error.subject() == Subject::Clock;
    let error = until(&errors, nothing, of_clock);
    assert_eq!((&*error.reason, error.station_id, error.count), ("clock_offset", 5, 1));
    assert_eq!(error.error, "the clock of station 5 is 5 s late; the local dynamic map corrects its times");
    while let Recv::Sample(error) = errors.recv_timeout(STEP) {
        assert!(!of_clock(&error), "it is reported once");
    }
    sender.stop();
    listener.stop();
}

/// A packet may be lost long after it was accepted, which is reported.
#[test]
fn losses_are_reported() {
    let (runtime, group) = (runtime(), group());
    let settings = "topics: { send: its/send }\n      \
                    geonet: { location_service_max_retrans: 0, location_service_retransmit_timer_ms: 50 }\n      \
                    position: { latitude_deg: 45.0, longitude_deg: 7.6 }";
    let node = start(&runtime, group, (5, 5), settings);
    let requests = publisher::<V2xSendRequest>(&node, "its/send");
    let errors = node.bus().subscribe::<V2xError>("its/errors", Qos::keep_last(64), "reader").unwrap();
    // A packet received at its last hop is not a loss.
    let other = start(
        &runtime,
        group,
        (6, 5),
        "topics: { send: its/send }\n      position: { latitude_deg: 45.0, longitude_deg: 7.6 }",
    );
    let last_hop = V2xSendRequest { destination: Some(Destination::Hops(1)), repetition: None, ..repeated(1.0) };
    publisher::<V2xSendRequest>(&other, "its/send").publish(last_hop).unwrap();
    wait_for(&node, "packets_not_forwarded", Some("hops_exhausted"), 1);
    let unknown_station = Destination::Station(vec![0x94, 0, 2, 0, 0, 0, 3, 0xF8].into());
    requests.publish(V2xSendRequest { destination: Some(unknown_station), repetition: None, ..repeated(1.0) }).unwrap();
    // Its own frames come back on the loopback interface, which is reported as well.
    let error = until(&errors, nothing, |error: &V2xError| error.subject() == Subject::Loss);
    assert_eq!((error.reason.as_str(), error.count), ("not_located", 1));
    assert!(error.error.contains("The location service got no reply"), "{}", error.error);
    assert_eq!(count(&node, "packets_lost", Some("not_located")), 1);
    other.stop();
    node.stop();
}

/// The router and the services repeat their maximum number of messages and events every second. If several are due in one wake-up,
/// the machine still has room for the frames of each.
#[test]
fn messages_of_the_router_do_not_displace_those_of_the_services() {
    let (runtime, group) = (runtime(), group());
    let warner = start(&runtime, group, (5, 5), &format!("topics: {{ send: its/send }}\n      {WARNER}"));
    let requests = publisher::<V2xSendRequest>(&warner, "its/send");
    let events = publisher::<EventRequest>(&warner, "events");
    for number in 0..32 {
        requests.publish(repeated(1.0)).unwrap();
        events.publish(report_each(1_000, &number.to_string(), 1)).unwrap();
        events.publish(report_each(1_000, &(number + 32).to_string(), 1)).unwrap();
    }
    wait_for(&warner, "repetitions", None, 32 * 3);
    assert_eq!((count(&warner, "services_refused", None), count(&warner, "services_lost", None)), (0, 0));
    assert_eq!((count(&warner, "requests_refused", None), count(&warner, "inputs_refused", None)), (0, 0));
    warner.stop();
}

/// Returns the error for the settings of a station, with its key.
fn problem(station_type: u8, more: &str) -> String {
    let text = format!(
        "node: node\ncomponents:\n  station:\n    kind: its_station\n    settings:\n      station_id: 1\n      \
         station_type: {station_type}\n      access: {{ udp_multicast: {{}} }}\n      {more}\n"
    );
    match Graph::resolve("node.yaml", &text, viaduct_components::KINDS) {
        Ok(_) => panic!("{more} is accepted"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn invalid_settings_are_rejected_with_the_key() {
    let place = "position: { latitude_deg: 1, longitude_deg: 1 }";
    for (station_type, more, words) in [
        (5, "services: { ca: {} }", "position: a station with services needs either `position` or `services.vehicle`"),
        (
            15,
            "services: { ca: {}, vehicle: state }",
            "station_type: 15 is a roadside unit, which stands at its `position`",
        ),
        (
            5,
            "position: { latitude_deg: 1, longitude_deg: 1 }\n      services: { vehicle: state }",
            "position: not allowed with `services.vehicle`",
        ),
        (5, "services: { ca: { length_m: 0 } }", "services.ca.length_m: 0 is not above 0 and at most 102.2"),
        (5, "services: { ca: { n_gen_cam: 4 } }", "services.ca.n_gen_cam: 4 is not within 1 to 3"),
        (
            5,
            "services: { ca: { roadside_interval_ms: 999 } }",
            "services.ca.roadside_interval_ms: 999 is not within 1000",
        ),
        (5, "services: { cp: { period_ms: 99 } }", "services.cp.period_ms: 99 is not within 100 to 1000"),
        (15, "services: { ca: { role: rescue } }", "services.ca.role: not allowed for `station_type` 15"),
        (5, "services: { ca: { role: taxi } }", "services.ca.role: "),
        (
            5,
            "services: { cp: { sensors: [ { id: 1, type: lidar }, { id: 1, type: radar } ] } }",
            "services.cp.sensors.1.id: 1 is already used by another sensor",
        ),
        (
            5,
            "services: { cp: { sensors: [ { id: 1, type: lidar, range_m: 409.6 } ] } }",
            "services.cp.sensors.0.range_m: 409.6 is not within 0.1 to 409.5",
        ),
        (
            5,
            "services: { cp: { sensors: [ { id: 1, type: lidar, range_m: 9, start_deg: 90, end_deg: 90 } ] } }",
            "services.cp.sensors.0.end_deg: the field of view is empty",
        ),
        (
            5,
            "position: { latitude_deg: 45, longitude_deg: 7 }\n      services: { ca: { role: rescue } }",
            "services.ca.role: needs `services.vehicle`",
        ),
        (
            5,
            "services: { cp: { sensors: [ { id: 1, type: lidar, range_m: 9, start_deg: 90, end_deg: 90.04 } ] } }",
            "services.cp.sensors.0.end_deg: the field of view is empty; use 0 to 360 for all around",
        ),
        (
            5,
            "services: { cp: { sensors: [ { id: 1, type: lidar, range_m: 9, start_deg: 360, end_deg: 0 } ] } }",
            "services.cp.sensors.0.end_deg: the field of view is empty; use 0 to 360 for all around",
        ),
        (
            5,
            "services: { cp: { sensors: [ { id: 1, type: lidar, x_m: -1.5 } ] } }",
            "services.cp.sensors.0.range_m: required with `x_m` and `y_m`",
        ),
        (
            5,
            "services: { cp: { sensors: [ { id: 1, type: lidar, range_m: 9, start_deg: 3 } ] } }",
            "services.cp.sensors.0: `start_deg` and `end_deg` must be given together",
        ),
        (
            5,
            "services: { cp: { sensors: [ { id: 1, type: lidar, start_deg: 3, end_deg: 4 } ] } }",
            "services.cp.sensors.0.range_m: required with `start_deg` and `end_deg`",
        ),
        (
            5,
            "services: { cp: { sensors: [ { id: 1, type: lidar, confidence: 1.1 } ] } }",
            "services.cp.sensors.0.confidence: 1.1 is not within 0.01 to 1",
        ),
        (5, "services: { cp: {}, vehicle: state }", "services.objects: required by `services.cp`"),
        (5, "services: { objects: objects }", "services.objects: needs `services.cp`, which is off"),
        (5, "services: { events: events }", "services.events: needs `services.den`, which is off"),
        (5, "services: { vehicle: \"a//b\" }", "services.vehicle: "),
        (5, "services: { ldm: { period_ms: 99 } }", "services.ldm.period_ms: 99 is not within 100 to 60000"),
        (5, "services: { ldm: { radius_m: 0 } }", "services.ldm.radius_m: 0 is not within 1 to 65535"),
        (5, "services: { ldm: { topic: \"*\" } }", "services.ldm.topic: "),
        (5, "services: { va: { profile: driver } }", "services.va.profile: "),
        (5, "services: { cam: {} }", "services.cam: unknown field `cam`, expected one of ca, cp, den, va, ldm"),
        (
            5,
            "dcc: { adaptive: { data_rate_kbps: 5000 } }",
            "dcc.adaptive.data_rate_kbps: 5000 is not a data rate of ITS-G5; expected one of [3000, 4500",
        ),
        (5, "geonet: { hop_limit: 0 }", "geonet.hop_limit: 0 is not within 1 to 255"),
        (5, "geonet: { area_forwarding: greedy }", "geonet.area_forwarding: "),
    ] {
        let found = problem(station_type, more);
        assert!(found.contains(&format!("settings.{words}")), "{more}: {found}");
    }
    // An input topic without a publisher is also a mistake.
    let unfed = problem(5, &format!("{place}\n      services: {{ den: {{}}, events: events }}"));
    assert!(unfed.contains("events"), "{unfed}");
}
