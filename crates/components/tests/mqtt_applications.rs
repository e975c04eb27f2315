//! MQTT as the interface of applications: what one publishes on Mosquitto comes out of another station, or is answered.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "in a test a panic is the failure")]

#[path = "mqtt/support.rs"]
mod support;

use std::net::{Ipv4Addr, UdpSocket};
use std::process::Command;

use mqtt5::packet::publish::PublishPacket;
use mqtt5::{PropertyId, PropertyValue};
use serde_json::{Value, json};
use support::*;

/// Two nodes on a multicast group of their own and on one broker: `car` sends what applications ask for, `edge` receives.
struct Road {
    _broker: Mosquitto,
    port: u16,
    /// Where frames go.
    group: String,
    car: TestNode,
    edge: TestNode,
}

impl Road {
    /// `None` where Mosquitto is not installed.
    fn open() -> Option<Self> {
        if !has("mosquitto") || !has("mosquitto_pub") {
            return None;
        }
        let port = free_port();
        let broker = Mosquitto::start(port);
        let group = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let group = format!("239.118.122.97:{group}");
        let node = |name: &str, station: &str, bridge: &str| {
            TestNode::start(&format!(
                "node: {name}\ncomponents:\n  feed: {{ kind: feed }}\n  station:\n    kind: its_station\n    settings:\n      \
                 access: {{ udp_multicast: {{ group: \"{group}\" }} }}\n      {station}\n  apps:\n    \
                 kind: mqtt_bridge\n    settings:\n      broker: mqtt://127.0.0.1:{port}\n      \
                 reconnect: {{ min_ms: 1, max_ms: 20 }}\n{bridge}"
            ))
        };
        let edge = node(
            "edge",
            "station_id: 902\n      position: { latitude_deg: 48.6, longitude_deg: 11.6 }",
            "      routes:\n        - { from: its/rx/*, to: \"v/{node}/{leaf}\" }\n        \
             - { from: its/rx/*, to: \"vanetza/out/{leaf}\", dialect: vanetza_nap }\n        \
             - { from: its/errors, to: \"v/{node}/errors\" }\n",
        );
        let car = node(
            "car",
            "station_id: 911\n      topics: { send: its/send }\n      position: { latitude_deg: 48.6001, longitude_deg: 11.6 }",
            "      inbound:\n        - { from: \"v/{node}/send/+\", to: its/send, qos: 1 }\n        \
             - { from: vanetza/in/+, to: its/send, dialect: vanetza_nap }\n      \
             routes: [ { from: its/errors, to: \"v/{node}/errors\", qos: 1 } ]\n",
        );
        let car_bus = car.bus();
        eventually("the broker has taken the subscription", || count(&car_bus, "apps", "subscribed") == 1);
        let edge_bus = edge.bus();
        eventually("the other bridge is connected", || count(&edge_bus, "apps", "connected") == 1);
        Some(Self { _broker: broker, port, group, car, edge })
    }

    fn publish(&self, topic: &str, message: &Value, more: &[&str]) {
        let (port, message) = (self.port.to_string(), message.to_string());
        let arguments = ["-h", "127.0.0.1", "-p", &port, "-V", "mqttv5", "-q", "1", "-t", topic, "-m", &message];
        assert!(Command::new("mosquitto_pub").args(arguments).args(more).status().unwrap().success());
    }

    fn subscriber(&self, filter: &str) -> Subscriber {
        Subscriber::start(self.port, filter)
    }

    fn stop(self) {
        assert!(self.car.stop());
        assert!(self.edge.stop());
    }
}

/// The body of a DENM in our own dialect.
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
fn a_denm_that_an_application_publishes_comes_out_of_the_other_station() {
    let Some(road) = Road::open() else { return };
    let received = road.subscriber("v/edge/denm");
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

#[test]
fn what_cannot_be_read_is_answered_with_the_path() {
    let Some(road) = Road::open() else { return };
    let answers = road.subscriber("v/car/error");
    let mut wrong = denm();
    wrong["management"]["eventPosition"]["latitude"] = json!(48.6);
    road.publish("v/car/send/denm", &wrong, &[]);
    let answer = text_of(&answers.wait_for(1)[0]);
    assert_eq!((&answer["topic"], &answer["reason"]), (&json!("v/car/send/denm"), &json!("wrong_value")));
    assert_eq!(answer["path"], json!("management.eventPosition.latitude"));
    assert_eq!(answer["expected"], json!("an integer from -900000000 to 900000001"));
    assert_eq!((&answer["got"], &answer["count"]), (&json!("48.6"), &json!(1)));

    // MQTT 5: the request says where its answer goes and how it knows it again.
    let own = road.subscriber("app/7/answers");
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

#[test]
fn what_the_station_refuses_is_answered_too() {
    let Some(road) = Road::open() else { return };
    // 12.6 km2, above itsGnMaxGeoAreaSize.
    let area = json!({ "latitude_deg": 48.6, "longitude_deg": 11.6, "circle": { "radius_m": 2000 } });
    let envelope = json!({ "message": denm(), "destination": { "area": area } });
    let errors = road.subscriber("v/car/errors");
    let own = road.subscriber("app/7/answers");
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

#[test]
fn a_dropped_frame_is_told_with_its_source() {
    let Some(road) = Road::open() else { return };
    let errors = road.subscriber("v/edge/errors");
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

#[test]
fn the_dialect_of_vanetza_nap_goes_from_end_to_end() {
    let Some(road) = Road::open() else { return };
    let out = road.subscriber("vanetza/out/+");
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
    assert!(text["packet_size"].as_u64().unwrap() > 50 && text["timestamp"].as_f64().unwrap() > 1.7e9, "{text}");
    let fields = &text["fields"];
    assert_eq!(fields["header"], json!({ "protocolVersion": 2, "messageId": 1, "stationId": 911 }));
    let management = &fields["denm"]["management"];
    assert_eq!(management["detectionTime"], json!(700_000_000.25));
    assert_eq!(management["eventPosition"]["latitude"], json!(48.612_345_7));
    assert_eq!(management["eventPosition"]["longitude"], Value::Null);
    assert_eq!(management["eventPosition"]["altitude"], json!({ "altitudeValue": null, "altitudeConfidence": 15 }));

    let errors = road.subscriber("vanetza/error");
    body["management"]["eventPosition"]["latitude"] = json!(91);
    road.publish("vanetza/in/denm", &body, &[]);
    let answer = text_of(&errors.wait_for(1)[0]);
    assert_eq!(answer["path"], json!("management.eventPosition.latitude"));
    assert_eq!(answer["expected"], json!("a number from -90 to 90, or null"));
    road.stop();
}

/// `configs/its-vehicle.yaml` on a broker and a group of this test: what its comments publish is what a vehicle says and warns of.
#[test]
fn the_config_of_a_vehicle_is_fed_by_mqtt() {
    if !has("mosquitto") || !has("mosquitto_pub") {
        return;
    }
    let port = free_port();
    let _broker = Mosquitto::start(port);
    let group = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs/its-vehicle.yaml");
    let text = std::fs::read_to_string(config).unwrap();
    let text = text.replace("127.0.0.1:1886", &format!("127.0.0.1:{port}"));
    let car = TestNode::start(&text.replace("239.118.122.97:8947", &format!("239.118.122.97:{group}")));
    let bus = car.bus();
    eventually("the broker has taken the subscription", || count(&bus, "applications", "subscribed") == 1);
    let publish = |topic: &str, message: &Value| {
        let (port, message) = (port.to_string(), message.to_string());
        let arguments = ["-h", "127.0.0.1", "-p", &port, "-V", "mqttv5", "-q", "1", "-t", topic, "-m", &message];
        assert!(Command::new("mosquitto_pub").args(arguments).status().unwrap().success());
    };

    let sent = Subscriber::start(port, "obu/its/tx/+");
    let place = json!({ "latitude_deg": 49.0, "longitude_deg": 8.4 });
    publish("vehicle/state", &json!({ "position": place, "speed_mps": 13.5, "heading_deg": 90 }));
    let cam = text_of(&sent.wait_for(1)[0]);
    assert_eq!((&cam["type"], &cam["station_id"], &cam["speed_mps"]), (&json!("cam"), &json!(903), &json!(13.5)));
    publish("vehicle/event", &json!({ "name": "jam", "report": { "cause": 1, "validity_s": 120 } }));
    let is_denm = |packet: &PublishPacket| packet.topic_name == "obu/its/tx/denm";
    sent.eventually("the warning goes out", |seen| seen.iter().any(is_denm));
    publish("vehicle/event", &json!({ "name": "jam", "end": {} }));
    sent.eventually("its end goes out", |seen| seen.iter().filter(|packet| is_denm(packet)).count() >= 2);

    let answers = Subscriber::start(port, "vehicle/error");
    publish("vehicle/state", &json!({ "velocity": 3 }));
    let answer = text_of(&answers.wait_for(1)[0]);
    assert_eq!((&answer["topic"], &answer["reason"]), (&json!("vehicle/state"), &json!("syntax")));
    assert!(answer["error"].as_str().unwrap().contains("velocity"), "{answer}");
    assert!(car.stop());
}
