//! MQTT as the interface of applications: a message that an application publishes is received at another station, or is answered with
//! an error. Most tests run with bridges to one Mosquitto, and again with a broker inside each node.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "in a test a panic is the failure")]

#[path = "mqtt/support.rs"]
mod support;

use std::net::{Ipv4Addr, UdpSocket};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use support::*;
use viaduct_bus::{Qos, Recv, clock};
use viaduct_messages::viaduct::its::V2xSendRequest;
use viaduct_messages::viaduct::vehicle::VehicleState;
use viaduct_mqtt::packet::publish::PublishPacket;
use viaduct_mqtt::{PropertyId, PropertyValue};
use viaduct_units::Tai;

/// Two nodes on a separate multicast group: `car` sends requests of applications, `edge` receives.
struct Road {
    _broker: Option<Mosquitto>,
    /// Port of the broker for applications at `car`.
    car_port: u16,
    /// Port of the broker for applications at `edge`.
    edge_port: u16,
    /// Multicast group of the frames.
    group: String,
    car: TestNode,
    edge: TestNode,
}

const EDGE_STATION: &str = "station_id: 902\n      position: { latitude_deg: 48.6, longitude_deg: 11.6 }";
const CAR_STATION: &str =
    "station_id: 911\n      topics: { send: its/send }\n      position: { latitude_deg: 48.6001, longitude_deg: 11.6 }";
const EDGE_ROUTES: &str = "      routes:\n        - { from: its/rx/*, to: \"v/{node}/{leaf}\" }\n        \
     - { from: its/rx/*, to: \"vanetza/out/{leaf}\", dialect: vanetza_nap }\n        \
     - { from: its/errors, to: \"v/{node}/errors\" }\n";
const CAR_ROUTES: &str = "      inbound:\n        - { from: \"v/{node}/send/+\", to: its/send, qos: 1 }\n        \
     - { from: vanetza/in/+, to: its/send, dialect: vanetza_nap }\n      \
     routes: [ { from: its/errors, to: \"v/{node}/errors\", qos: 1 } ]\n";

impl Road {
    /// Returns the set-ups, or none if Mosquitto is not installed.
    fn all() -> impl Iterator<Item = Self> {
        let installed = has("mosquitto") && has("mosquitto_pub");
        [Self::with_bridges, Self::with_own_brokers].into_iter().take(if installed { 2 } else { 0 }).map(|open| open())
    }

    fn with_bridges() -> Self {
        let port = free_port();
        let broker = Mosquitto::start(port);
        let apps = format!(
            "kind: mqtt_bridge\n    settings:\n      broker: mqtt://127.0.0.1:{port}\n      \
             reconnect: {{ min_ms: 1, max_ms: 20 }}"
        );
        let group = free_group();
        let edge = node("edge", &group, EDGE_STATION, &apps, EDGE_ROUTES);
        let car = node("car", &group, CAR_STATION, &apps, CAR_ROUTES);
        let car_bus = car.bus();
        eventually("the broker has taken the subscription", || count(&car_bus, "apps", "subscribed") == 1);
        let edge_bus = edge.bus();
        eventually("the other bridge is connected", || count(&edge_bus, "apps", "connected") == 1);
        Self { _broker: Some(broker), car_port: port, edge_port: port, group, car, edge }
    }

    fn with_own_brokers() -> Self {
        let (car_port, edge_port) = (free_port(), free_port());
        let apps = |port| format!("kind: mqtt_broker\n    settings:\n      listen: \"127.0.0.1:{port}\"");
        let group = free_group();
        let edge = node("edge", &group, EDGE_STATION, &apps(edge_port), EDGE_ROUTES);
        let car = node("car", &group, CAR_STATION, &apps(car_port), CAR_ROUTES);
        Self { _broker: None, car_port, edge_port, group, car, edge }
    }

    fn publish(&self, topic: &str, message: &Value, more: &[&str]) {
        let (port, message) = (self.car_port.to_string(), message.to_string());
        let arguments = ["-h", "127.0.0.1", "-p", &port, "-V", "mqttv5", "-q", "1", "-t", topic, "-m", &message];
        assert!(Command::new("mosquitto_pub").args(arguments).args(more).status().unwrap().success());
    }

    /// Starts an application at `car`.
    fn application(&self, filter: &str) -> Subscriber {
        Subscriber::start(self.car_port, filter)
    }

    /// Starts an application at `edge`.
    fn reader(&self, filter: &str) -> Subscriber {
        Subscriber::start(self.edge_port, filter)
    }

    fn stop(self) {
        assert!(self.car.stop_without_hurry());
        assert!(self.edge.stop_without_hurry());
    }
}

fn free_group() -> String {
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    format!("239.118.122.97:{port}")
}

fn node(name: &str, group: &str, station: &str, apps: &str, routes: &str) -> TestNode {
    TestNode::start(&format!(
        "node: {name}\ncomponents:\n  feed: {{ kind: feed }}\n  station:\n    kind: its_station\n    settings:\n      \
         access: {{ udp_multicast: {{ group: \"{group}\" }} }}\n      {station}\n  apps:\n    {apps}\n{routes}"
    ))
}

/// Returns a DENM in the dialect `viaduct`.
fn denm() -> Value {
    json!({
        "management": {
            "actionId": { "originatingStationId": 911, "sequenceNumber": 3 },
            "detectionTime": 700_000_000_000_u64,
            "referenceTime": 700_000_000_000_u64,
            "eventPosition": {
                "latitude": 486_000_000,
                "longitude": 116_000_000,
                "positionConfidenceEllipse":
                    { "semiMajorConfidence": 4095, "semiMinorConfidence": 4095, "semiMajorOrientation": 3601 },
                "altitude": { "altitudeValue": 800_001, "altitudeConfidence": "unavailable" }
            },
            "validityDuration": 600,
            "stationType": 15
        },
        "situation": { "informationQuality": 3, "eventType": { "ccAndScc": { "accident2": 1 } } }
    })
}

fn text_of(packet: &PublishPacket) -> Value {
    serde_json::from_slice(&packet.payload).unwrap()
}

#[test]
fn a_denm_of_an_application_is_received_by_the_other_station() {
    for road in Road::all() {
        let received = road.reader("v/edge/denm");
        road.publish("v/car/send/denm", &denm(), &[]);
        let first = text_of(&received.wait_for(1)[0]);
        assert_eq!(
            (&first["direction"], &first["type"], &first["station_id"]),
            (&json!("received"), &json!("denm"), &json!(911))
        );
        assert_eq!(first["message"]["header"], json!({ "protocolVersion": 2, "messageId": 1, "stationId": 911 }));
        assert_eq!(first["message"]["denm"]["management"], denm()["management"]);

        let area = json!({ "latitude_deg": 48.6, "longitude_deg": 11.6, "circle": { "radius_m": 500 } });
        let mut message = denm();
        message["management"]["actionId"]["sequenceNumber"] = json!(4);
        let envelope = json!({ "type": "denm", "message": message, "destination": { "area": area }, "lifetime_s": 10 });
        road.publish("v/car/send/whatever", &envelope, &[]);
        let second = text_of(&received.wait_for(2)[1]);
        assert_eq!(second["message"]["denm"]["management"]["actionId"]["sequenceNumber"], json!(4));
        let bus = road.car.bus();
        assert_eq!((count(&bus, "apps", "received"), count(&bus, "apps", "requested")), (2, 2));
        road.stop();
    }
}

#[test]
fn invalid_requests_are_answered_with_the_path() {
    for road in Road::all() {
        let answers = road.application("v/car/error");
        let mut wrong = denm();
        wrong["management"]["eventPosition"]["latitude"] = json!(48.6);
        road.publish("v/car/send/denm", &wrong, &[]);
        let answer = text_of(&answers.wait_for(1)[0]);
        assert_eq!((&answer["topic"], &answer["reason"]), (&json!("v/car/send/denm"), &json!("wrong_value")));
        assert_eq!(answer["path"], json!("management.eventPosition.latitude"));
        assert_eq!(answer["expected"], json!("an integer from -900000000 to 900000001"));
        assert_eq!((&answer["got"], &answer["count"]), (&json!("48.6"), &json!(1)));

        // MQTT 5: the request has a response topic and correlation data.
        let own = road.application("app/7/answers");
        let property = ["-D", "publish", "response-topic", "app/7/answers", "-D", "publish", "correlation-data", "n17"];
        road.publish("v/car/send/denm", &json!({ "situation": {} }), &property);
        let packet = &own.wait_for(1)[0];
        assert_eq!(text_of(packet)["error"], json!("management: this member is missing"));
        let correlation = packet.properties.get(PropertyId::CorrelationData);
        assert_eq!(correlation, Some(&PropertyValue::BinaryData(bytes::Bytes::from_static(b"n17"))));
        let bus = road.car.bus();
        assert_eq!((count(&bus, "apps", "received"), count(&bus, "apps", "refused")), (2, 2));
        assert_eq!(count(&bus, "station", "requests"), 0);
        road.stop();
    }
}

#[test]
fn requests_rejected_by_the_station_are_answered() {
    for road in Road::all() {
        // 12.6 km2, above itsGnMaxGeoAreaSize.
        let area = json!({ "latitude_deg": 48.6, "longitude_deg": 11.6, "circle": { "radius_m": 2000 } });
        let envelope = json!({ "message": denm(), "destination": { "area": area } });
        let errors = road.application("v/car/errors");
        let own = road.application("app/7/answers");
        road.publish("v/car/send/denm", &envelope, &[]);
        let error = text_of(&errors.wait_for(1)[0]);
        assert_eq!((&error["subject"], &error["reason"]), (&json!("request"), &json!("area_too_large")));
        assert_eq!((&error["station"], &error["topic"]), (&json!("car/station"), &json!("v/car/send/denm")));
        let property = ["-D", "publish", "response-topic", "app/7/answers", "-D", "publish", "correlation-data", "n18"];
        road.publish("v/car/send/denm", &envelope, &property);
        let packet = &own.wait_for(1)[0];
        assert_eq!(text_of(packet)["reason"], json!("area_too_large"));
        let correlation = packet.properties.get(PropertyId::CorrelationData);
        assert_eq!(correlation, Some(&PropertyValue::BinaryData(bytes::Bytes::from_static(b"n18"))));
        road.stop();
    }
}

#[test]
fn a_dropped_frame_is_reported_with_its_source() {
    for road in Road::all() {
        let errors = road.reader("v/edge/errors");
        // IPv4 instead of GeoNetworking.
        let mut frame = vec![0xFF; 6];
        frame.extend_from_slice(&[2, 0, 0, 0, 9, 9, 0x08, 0x00, 1, 2, 3]);
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None).unwrap();
        socket.set_multicast_if_v4(&Ipv4Addr::LOCALHOST).unwrap();
        UdpSocket::from(socket).send_to(&frame, &road.group).unwrap();
        let error = text_of(&errors.wait_for(1)[0]);
        assert_eq!((&error["subject"], &error["reason"]), (&json!("frame"), &json!("not_geonetworking")));
        assert_eq!((&error["link_address"], &error["octets"]), (&json!("02:00:00:00:09:09"), &json!(17)));
        road.stop();
    }
}

#[test]
fn the_dialect_of_vanetza_nap_works_end_to_end() {
    for road in Road::all() {
        let out = road.reader("vanetza/out/+");
        let mut body = denm();
        let position = &mut body["management"]["eventPosition"];
        position["latitude"] = json!(48.612_345_678);
        position["longitude"] = Value::Null;
        position["altitude"] = json!({ "altitudeValue": 800_001, "altitudeConfidence": 15 });
        body["management"]["detectionTime"] = json!(700_000_000.25);
        body["management"]["referenceTime"] = json!(700_000_000.25);
        road.publish("vanetza/in/denm", &body, &[]);
        let packet = &out.wait_for(1)[0];
        assert_eq!(packet.topic_name, "vanetza/out/denm");
        let text = text_of(packet);
        assert_eq!(
            (&text["stationID"], &text["receiverID"], &text["receiverType"]),
            (&json!(911), &json!(902), &json!(15))
        );
        assert_eq!(text["stationAddr"], json!("02:00:00:00:03:8f"));
        assert_eq!(text["security"], json!("unsecured"));
        assert!(text["packet_size"].as_u64().unwrap() > 50 && text["timestamp"].as_f64().unwrap() > 1.7e9, "{text}");
        let fields = &text["fields"];
        assert_eq!(fields["header"], json!({ "protocolVersion": 2, "messageId": 1, "stationId": 911 }));
        let management = &fields["denm"]["management"];
        assert_eq!(management["detectionTime"], json!(700_000_000.25));
        assert_eq!(management["eventPosition"]["latitude"], json!(48.612_345_7));
        assert_eq!(management["eventPosition"]["longitude"], Value::Null);
        assert_eq!(management["eventPosition"]["altitude"], json!({ "altitudeValue": null, "altitudeConfidence": 15 }));

        let errors = road.application("vanetza/error");
        body["management"]["eventPosition"]["latitude"] = json!(91);
        road.publish("vanetza/in/denm", &body, &[]);
        let answer = text_of(&errors.wait_for(1)[0]);
        assert_eq!(answer["path"], json!("management.eventPosition.latitude"));
        assert_eq!(answer["expected"], json!("a number from -90 to 90, or null"));
        road.stop();
    }
}

/// A message of each kind with every possible member, as an application would write it.
const FULL: [(&str, &str); 4] = [
    ("cam", include_str!("../../../testdata/its/cam_full.json")),
    ("cpm", include_str!("../../../testdata/its/cpm_full.json")),
    ("denm", include_str!("../../../testdata/its/denm_full.json")),
    ("vam", include_str!("../../../testdata/its/vam_full.json")),
];

#[test]
fn a_message_of_each_kind_is_received_unchanged() {
    for road in Road::all() {
        for (label, text) in FULL {
            let received = road.reader(&format!("v/edge/{label}"));
            let mut message: Value = serde_json::from_str(text).unwrap();
            // The station inserts its own station ID.
            message["header"]["stationId"] = json!(0);
            road.publish(&format!("v/car/send/{label}"), &message, &[]);
            let decoded = text_of(&received.wait_for(1)[0]);
            message["header"]["stationId"] = json!(911);
            assert_eq!((&decoded["type"], &decoded["station_id"]), (&json!(label), &json!(911)));
            assert_eq!(decoded["message"], message, "{label}");
        }
        road.stop();
    }
}

/// No station reads the requests, so the queue fills.
#[test]
fn an_application_receives_that_the_station_is_busy() {
    for road in Road::all() {
        let bus = road.car.bus();
        let reliable = Qos::reliable(1, Duration::ZERO);
        let _stalled = bus.subscribe::<V2xSendRequest>("its/send", reliable, "stalled").unwrap();
        let answers = road.application("v/car/error");
        road.publish("v/car/send/denm", &denm(), &[]);
        road.publish("v/car/send/denm", &denm(), &[]);
        let answer = text_of(&answers.wait_for(1)[0]);
        assert_eq!((&answer["reason"], &answer["path"]), (&json!("station_busy"), &json!("")));
        assert!(answer["error"].as_str().unwrap().contains("stalled"), "{answer}");
        assert_eq!(["received", "requested", "refused"].map(|name| count(&bus, "apps", name)), [2, 1, 1]);
        road.stop();
    }
}

#[test]
fn requests_reach_other_subscribers_as_well() {
    for road in Road::all() {
        let beside = road.application("v/car/send/#");
        road.publish("v/car/send/denm", &denm(), &[]);
        assert_eq!(text_of(&beside.wait_for(1)[0]), denm());
        let bus = road.car.bus();
        eventually("the request is taken", || count(&bus, "apps", "requested") == 1);
        road.stop();
    }
}

#[test]
fn a_too_long_text_is_rejected() {
    // A broker does not send a packet of this length to a bridge (MQTT 5, 3.1.2.11.4).
    for road in Road::all().skip(1) {
        let answers = road.application("v/car/error");
        road.publish("v/car/send/denm", &json!({ "text": "x".repeat(66_000) }), &[]);
        let answer = text_of(&answers.wait_for(1)[0]);
        assert_eq!(answer["reason"], json!("too_long"));
        assert_eq!(answer["error"], json!("the text has 66011 octets; at most 65536 are allowed"));
        road.stop();
    }
}

/// `configs/its-vehicle.yaml` with a separate broker and multicast group, and a roadside station that receives its messages.
struct Vehicle {
    _broker: Mosquitto,
    port: u16,
    car: TestNode,
    other: TestNode,
}

impl Vehicle {
    /// Returns `None` if Mosquitto is not installed.
    fn open() -> Option<Self> {
        if !has("mosquitto") || !has("mosquitto_pub") {
            return None;
        }
        let port = free_port();
        let broker = Mosquitto::start(port);
        let group = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let config = concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs/its-vehicle.yaml");
        let text = std::fs::read_to_string(config).unwrap();
        // The variant that the config's comment describes: an external broker, which supports MQTT 5 response topics.
        let text = text.replace("kind: mqtt_broker", "kind: mqtt_bridge");
        let text = text.replace("listen: 127.0.0.1:1886", &format!("broker: mqtt://127.0.0.1:{port}"));
        // Port 0 selects a free port, because tests run in parallel.
        let text = text.replace("http: 127.0.0.1:9475", "http: 127.0.0.1:0");
        let car = TestNode::start(&text.replace("239.118.122.97:8947", &format!("239.118.122.97:{group}")));
        let other = TestNode::start(&format!(
            "node: other\ncomponents:\n  station:\n    kind: its_station\n    settings:\n      station_id: 904\n      \
             position: {{ latitude_deg: 49.0, longitude_deg: 8.4 }}\n      access: {{ udp_multicast: {{ \
             group: \"239.118.122.97:{group}\", interface: 127.0.0.1 }} }}\n  applications:\n    kind: mqtt_bridge\n    \
             settings:\n      broker: mqtt://127.0.0.1:{port}\n      reconnect: {{ min_ms: 1, max_ms: 20 }}\n      \
             routes: [ {{ from: its/rx/*, to: \"other/{{leaf}}\" }} ]\n"
        ));
        let (car_bus, other_bus) = (car.bus(), other.bus());
        eventually("the broker has taken the subscription", || count(&car_bus, "applications", "subscribed") == 1);
        eventually("the other bridge is connected", || count(&other_bus, "applications", "connected") == 1);
        Some(Self { _broker: broker, port, car, other })
    }

    fn publish(&self, topic: &str, message: &Value, more: &[&str]) {
        let (port, message) = (self.port.to_string(), message.to_string());
        let arguments = ["-h", "127.0.0.1", "-p", &port, "-V", "mqttv5", "-q", "1", "-t", topic, "-m", &message];
        assert!(Command::new("mosquitto_pub").args(arguments).args(more).status().unwrap().success());
    }

    fn drives(&self) {
        let place = json!({ "latitude_deg": 49.0, "longitude_deg": 8.4 });
        self.publish("vehicle/state", &json!({ "position": place, "speed_mps": 13.5, "heading_deg": 90 }), &[]);
    }

    fn sees(&self) {
        let place = json!({ "latitude_deg": 49.0001, "longitude_deg": 8.4 });
        let object = json!({ "id": 7, "position": place, "speed_mps": 1.5, "heading_deg": 90, "class": "PEDESTRIAN" });
        self.publish("vehicle/objects", &json!({ "objects": [object] }), &[]);
    }

    /// Returns the first message on the topic, while states and objects are published.
    fn until(&self, topic: &str) -> Value {
        let subscriber = Subscriber::start(self.port, topic);
        eventually(topic, || {
            self.drives();
            self.sees();
            !subscriber.seen().is_empty()
        });
        text_of(&subscriber.seen()[0])
    }

    fn stop(self) {
        assert!(self.car.stop_without_hurry());
        assert!(self.other.stop_without_hurry());
    }
}

#[test]
fn inputs_of_programs_in_a_vehicle_are_received_by_another_station() {
    let Some(vehicle) = Vehicle::open() else { return };
    let cam = vehicle.until("other/cam");
    assert_eq!((&cam["type"], &cam["station_id"], &cam["speed_mps"]), (&json!("cam"), &json!(903), &json!(13.5)));

    let cpm = vehicle.until("other/cpm");
    let containers = cpm["message"]["payload"]["cpmContainers"].as_array().unwrap();
    let perceived = containers.iter().find(|container| container["containerId"] == 5).unwrap();
    assert_eq!(perceived["containerData"]["perceivedObjects"][0]["objectId"], json!(7), "{perceived}");

    let warnings = Subscriber::start(vehicle.port, "other/denm");
    vehicle.publish("vehicle/event", &json!({ "name": "jam", "report": { "cause": 1, "validity_s": 120 } }), &[]);
    let warning = text_of(&warnings.wait_for(1)[0]);
    assert_eq!(warning["message"]["denm"]["situation"]["eventType"], json!({ "ccAndScc": { "trafficCondition1": 0 } }));
    vehicle.publish("vehicle/event", &json!({ "name": "jam", "end": {} }), &[]);
    let end = text_of(&warnings.wait_for(2)[1]);
    assert_eq!(end["message"]["denm"]["management"]["termination"], json!("isCancellation"));
    vehicle.stop();
}

#[test]
fn hops_with_an_origin_in_the_future_are_ignored() {
    let Some(vehicle) = Vehicle::open() else { return };
    let states =
        vehicle.car.bus().subscribe::<VehicleState>("vehicle/state", Qos::reliable(8, Duration::ZERO), "test").unwrap();
    let origin = |way: &str| {
        vehicle.publish("vehicle/state", &json!({}), &["-D", "publish", "user-property", "viaduct-hops", way]);
        let Recv::Sample(sample) = states.recv_timeout(Duration::from_secs(30)) else { panic!("no state") };
        sample.meta().origin
    };
    let before = clock::tai();
    assert_eq!(origin("1;lidar:2"), Tai::from_nanos(1));
    let found = origin("9223372036854775807");
    assert!(found >= before && found <= clock::tai(), "{found:?}");
    vehicle.stop();
}

#[test]
fn invalid_inputs_of_programs_in_a_vehicle_are_answered() {
    let Some(vehicle) = Vehicle::open() else { return };
    let answers = Subscriber::start(vehicle.port, "vehicle/error");
    vehicle.publish("vehicle/state", &json!({ "velocity": 3 }), &[]);
    let answer = text_of(&answers.wait_for(1)[0]);
    assert_eq!((&answer["topic"], &answer["reason"]), (&json!("vehicle/state"), &json!("unknown_member")));
    assert_eq!(answer["path"], json!("velocity"));

    // Errors that only the service detects are published on its error topic, or on the response topic of the request.
    let errors = Subscriber::start(vehicle.port, "obu/errors");
    let end = json!({ "name": "gone", "end": {} });
    vehicle.publish("vehicle/event", &end, &[]);
    let error = text_of(&errors.wait_for(1)[0]);
    assert_eq!((&error["subject"], &error["reason"]), (&json!("request"), &json!("unknown_event")));
    assert_eq!((&error["event"], &error["topic"]), (&json!("gone"), &json!("vehicle/event")));
    let place = json!({ "latitude_deg": 49.0, "longitude_deg": 8.4 });
    let objects =
        json!({ "objects": [{ "id": 1, "position": place }, { "id": 2, "position": place, "heading_deg": 400 }] });
    vehicle.publish("vehicle/objects", &objects, &[]);
    let error = text_of(&errors.wait_for(2)[1]);
    assert_eq!((&error["topic"], &error["type"]), (&json!("vehicle/objects"), &json!("cpm")));
    assert_eq!(error["error"], json!("objects[1].heading_deg: expected a number from 0 to 360, got 400"));
    vehicle.publish("vehicle/state", &json!({ "speed_mps": 3 }), &[]);
    let error = text_of(&errors.wait_for(3)[2]);
    assert_eq!((&error["topic"], &error["reason"]), (&json!("vehicle/state"), &json!("no_position")));
    let own = Subscriber::start(vehicle.port, "app/7/answers");
    let property = ["-D", "publish", "response-topic", "app/7/answers", "-D", "publish", "correlation-data", "n19"];
    vehicle.publish("vehicle/event", &end, &property);
    let packet = &own.wait_for(1)[0];
    assert_eq!(text_of(packet)["event"], json!("gone"));
    let correlation = packet.properties.get(PropertyId::CorrelationData);
    assert_eq!(correlation, Some(&PropertyValue::BinaryData(bytes::Bytes::from_static(b"n19"))));
    vehicle.stop();
}
