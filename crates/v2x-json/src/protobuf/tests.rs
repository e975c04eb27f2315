use prost_reflect::{DescriptorPool, DynamicMessage};
use viaduct_messages::{
    DESCRIPTOR_SET, Message,
    its::timestamp,
    viaduct::{
        its::{
            EventNotice, EventRequest, LocalDynamicMap, MapObject, MessageType, Position, SecurityState,
            event_notice::Change, event_request::Action,
        },
        perception::{ObjectClass, PerceivedObjects},
        vehicle::VehicleState,
    },
};
use viaduct_units::Tai;

use super::{JsonOf, Reader};

fn dynamic<M: Message>(message: &M) -> DynamicMessage {
    let pool = DescriptorPool::decode(DESCRIPTOR_SET).unwrap();
    let descriptor = pool.get_message_by_name(&M::full_name()).unwrap();
    DynamicMessage::decode(descriptor, message.encode_to_vec().as_slice()).unwrap()
}

fn written<M: Message>(message: &M) -> String {
    serde_json::to_string(&JsonOf::new(&dynamic(message))).unwrap()
}

fn parse<M: Message>(text: &str) -> Result<M, String> {
    Reader::new().unwrap().read(text.as_bytes()).map_err(|error| error.to_string())
}

fn position() -> Position {
    Position { latitude_deg: 45.5, longitude_deg: 7.25, altitude_m: None }
}

fn notice() -> EventNotice {
    EventNotice {
        change: Change::New.into(),
        originating_station_id: 7,
        position: Some(position()),
        detection_time: Some(timestamp(Tai::from_unix_nanos(1_726_061_434_092_870_000))),
        security: SecurityState::Unverified.into(),
        ..Default::default()
    }
}

#[test]
fn an_event_has_the_names_and_labels_of_a_v2x_message() {
    assert_eq!(
        written(&notice()),
        r#"{"change":"new","originating_station_id":7,"sequence_number":0,"position":{"latitude_deg":45.5,"longitude_deg":7.25},"detection_time":"2024-09-11T13:30:34.092870Z","security":"unverified"}"#
    );
}

#[test]
fn a_map_is_written_with_its_objects() {
    let object = MapObject {
        r#type: MessageType::Cam.into(),
        position: Some(position()),
        security: SecurityState::Unsecured.into(),
        ..Default::default()
    };
    let map = LocalDynamicMap { time: None, objects: vec![object] };
    assert_eq!(
        written(&map),
        r#"{"objects":[{"type":"cam","station_id":0,"own":false,"valid_for_s":0.0,"position":{"latitude_deg":45.5,"longitude_deg":7.25},"clock_late_s":0,"security":"unsecured"}]}"#
    );
    let without = serde_json::to_string(&JsonOf::new(&dynamic(&map)).without_arrays()).unwrap();
    assert_eq!(without, "{}");
}

#[test]
fn every_kind_of_value_is_written() {
    let proto = "syntax = 'proto3'; message T { int64 a = 1; int64 b = 2; uint64 c = 3; bytes d = 4; double e = 5;
        map<string, Color> f = 6; repeated Color g = 7; enum Color { COLOR_NONE = 0; RED = 1; } optional T h = 8; }";
    let file = protox::file::File::from_source("t.proto", proto).unwrap();
    let mut pool = DescriptorPool::new();
    pool.add_file_descriptor_proto(file.file_descriptor_proto().clone()).unwrap();
    let text = r#"{"a":9007199254740991,"b":"9007199254740992","c":7,"d":"AAE=","e":"NaN","f":{"k":"red","l":9},"g":["red","none"],"h":{"a":0,"b":0,"c":0,"d":"","e":0.0,"f":{},"g":[]}}"#;
    let canonical = text.replace(r#""red""#, r#""RED""#).replace(r#""none""#, r#""COLOR_NONE""#);
    let mut reader = serde_json::Deserializer::from_str(&canonical);
    let message = DynamicMessage::deserialize(pool.get_message_by_name("T").unwrap(), &mut reader).unwrap();
    assert_eq!(serde_json::to_string(&JsonOf::new(&message)).unwrap(), text);
}

#[test]
fn a_written_text_is_read_back() {
    assert_eq!(parse::<EventNotice>(&written(&notice())), Ok(notice()));
}

#[test]
fn names_of_the_schema_and_names_of_the_json_mapping_are_read() {
    for text in [
        r#"{"position":{"latitude_deg":45.5,"longitude_deg":7.25},"speed_mps":3}"#,
        r#"{"position":{"latitudeDeg":45.5,"longitudeDeg":7.25},"speedMps":3.0}"#,
    ] {
        let state: VehicleState = parse(text).unwrap();
        assert_eq!((state.position, state.speed_mps), (Some(position()), Some(3.0)));
    }
}

#[test]
fn labels_names_and_numbers_of_enumerations_are_read() {
    for class in [r#""pedestrian""#, r#""PEDESTRIAN""#, "1"] {
        let text = format!(r#"{{"time":"2026-11-22T08:00:00Z","objects":[{{"id":7,"class":{class}}}]}}"#);
        let objects: PerceivedObjects = parse(&text).unwrap();
        assert_eq!((objects.time.is_some(), objects.objects[0].class()), (true, ObjectClass::Pedestrian), "{class}");
    }
    let unknown: PerceivedObjects =
        parse(r#"{"objects":[{"class":"OBJECT_CLASS_UNKNOWN"},{"class":"unknown"}]}"#).unwrap();
    assert!(unknown.objects.iter().all(|object| object.class() == ObjectClass::Unknown));
}

#[test]
fn events_are_read() {
    let event: EventRequest = parse(r#"{"name":"jam","report":{"cause":1}}"#).unwrap();
    assert!(matches!(event.action, Some(Action::Report(event)) if event.cause == 1));
    let end: EventRequest = parse(r#"{"name":"jam","end":{}}"#).unwrap();
    assert!(matches!(end.action, Some(Action::End(_))));
}

#[test]
fn an_error_names_the_member_and_the_problem() {
    for (text, words) in [
        ("", "EOF"),
        ("{", "EOF"),
        ("{} {}", "trailing"),
        (r#"{"speed":3}"#, "speed: there is no member of this name"),
        (r#"{"position":{"latitude":3}}"#, "position.latitude: there is no member of this name"),
        (r#"{"speed_mps":"fast"}"#, "speed_mps: invalid float"),
        (r#"{"lights":{"fog":3}}"#, "lights.fog: invalid type"),
        (r#"{"time":"yesterday"}"#, "time: "),
        (r#"{"speed_mps":1,"speed_mps":2}"#, "the member \"speed_mps\" occurs twice"),
    ] {
        let error = parse::<VehicleState>(text).unwrap_err();
        assert!(error.contains(words), "{text}: {error}");
    }
    let error = parse::<PerceivedObjects>(r#"{"objects":[{"class":"cat"}]}"#).unwrap_err();
    assert!(error.starts_with("objects[0].class: expected one of unknown, pedestrian, "), "{error}");
    assert!(error.ends_with(", other, got \"cat\""), "{error}");
}

#[test]
fn no_text_makes_an_error_long() {
    let member = "x".repeat(60_000);
    let error = parse::<VehicleState>(&format!("{{\"{member}\":1}}")).unwrap_err();
    assert!(error.len() < 2 * crate::ERROR_CHARACTERS_MAX, "{}", error.len());
}
