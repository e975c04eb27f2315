//! Life cycles of events, and geometries of infrastructure, from messages in UPER.

use serde_json::{Value, json};
use viaduct_its::facilities::denm::{
    ActionId, Cause, DenmInput, EventPoint, Location, Situation, Termination, TrafficDirection, build,
};
use viaduct_its::facilities::{Message, MessageKind, PathPoint};
use viaduct_messages::its::timestamp;
use viaduct_messages::viaduct::its::{Edition, MessageType, SecurityState, V2xMessage};
use viaduct_units::{Metres, Position, StationId, Tai};

use super::*;

/// 2026-11-22T07:00:00Z
const START_UNIX_S: i64 = 1_795_330_800;

fn at(seconds: i64) -> Tai {
    Tai::from_unix_nanos((START_UNIX_S + seconds) * 1_000_000_000)
}

/// Returns the message as a station receives it at `reception`, `shift_s` seconds after the times in the message.
fn received(message: &Message, reception: Tai, shift_s: i64) -> V2xMessage {
    let payload = message.encode().unwrap();
    let summary = message.summary(Tai::from_nanos(reception.nanos() - shift_s * 1_000_000_000));
    let (kind, edition) = match message.kind() {
        MessageKind::Denm => (MessageType::Denm, Edition::DenmTs103831V231),
        MessageKind::Ivim => (MessageType::Ivim, Edition::IvimTs103301V221),
        MessageKind::Mapem => (MessageType::Mapem, Edition::MapemTs103301V221),
        _ => (MessageType::Spatem, Edition::SpatemTs103301V221),
    };
    V2xMessage {
        r#type: kind.into(),
        edition: edition.into(),
        station_id: summary.station_id.into(),
        reception_time: Some(timestamp(reception)),
        generation_time: summary.generation.map(|time| timestamp(shifted(time, shift_s * 1_000_000_000))),
        payload: payload.into(),
        security: SecurityState::Unsecured.into(),
        ..V2xMessage::default()
    }
}

/// Returns a stationary vehicle that station 1001 detects at second 0, valid for 60 s.
fn event(reference_s: i64) -> DenmInput {
    DenmInput {
        reference: at(reference_s),
        position: Some(Position::new(45.0, 7.5)),
        awareness_distance: Some(Metres(200.0)),
        traffic_direction: Some(TrafficDirection::AllTrafficDirections),
        validity: Some(Duration::from_secs(60)),
        situation: Some(Situation::new(3, Cause { code: 94, sub_code: 2 })),
        location: Some(Location::default()),
        ..DenmInput::new(StationId(1001), ActionId { originating_station: StationId(1001), sequence_number: 7 }, at(0))
    }
}

fn denm(input: &DenmInput) -> Message {
    Message::Denm(Box::new(build(input)))
}

fn only_event(objects: &MapObjects, now: Tai) -> Value {
    let events = objects.events();
    assert_eq!(events.len(), 1);
    serde_json::to_value(events[0].1.properties(now)).unwrap()
}

fn features(objects: &MapObjects, now: Tai) -> Vec<(String, Value, Value)> {
    let objects = objects.infrastructure(now).into_iter();
    let values = objects.map(|object| {
        let properties = serde_json::to_value(object.properties).unwrap();
        (object.id, serde_json::to_value(object.geometry).unwrap(), properties)
    });
    values.collect()
}

#[test]
fn an_event_is_triggered_repeated_updated_and_cancelled() {
    let mut objects = MapObjects::default();
    objects.update(&received(&denm(&event(0)), at(1), 0));
    objects.update(&received(&denm(&event(0)), at(2), 0));
    let triggered = only_event(&objects, at(2));
    assert_eq!(
        triggered,
        json!({
            "state": "active", "originating_station_id": 1001, "sequence_number": 7, "station_id": 1001,
            "security": "unsecured",
            "cause": 94, "sub_cause": 2, "cause_text": "stationary vehicle", "information_quality": 3,
            "awareness_distance_m": 200.0, "traffic_direction": "all",
            "detection_time": "2026-11-22T07:00:00.000000Z", "reference_time": "2026-11-22T07:00:00.000000Z",
            "valid_until": "2026-11-22T07:01:00.000000Z", "first_received": "2026-11-22T07:00:01.000000Z",
            "last_received": "2026-11-22T07:00:02.000000Z", "messages": 2, "updates": 0,
        })
    );

    let moved = DenmInput { position: Some(Position::new(45.001, 7.5)), ..event(10) };
    objects.update(&received(&denm(&moved), at(10), 0));
    // A forwarder repeats the first version.
    objects.update(&received(&denm(&event(0)), at(11), 0));
    let updated = only_event(&objects, at(11));
    assert_eq!((&updated["messages"], &updated["updates"]), (&json!(4), &json!(1)));
    assert_eq!(objects.events()[0].1.point(), Some(vec![7.5, 45.001]));

    let end = DenmInput { termination: Some(Termination::IsCancellation), situation: None, location: None, ..moved };
    objects.update(&received(&denm(&DenmInput { reference: at(20), ..end.clone() }), at(20), 0));
    objects.update(&received(&denm(&DenmInput { reference: at(20), ..end }), at(21), 0));
    let cancelled = only_event(&objects, at(21));
    assert_eq!((&cancelled["state"], &cancelled["cause"]), (&json!("cancelled"), &json!(94)));
    assert_eq!((&cancelled["messages"], &cancelled["updates"]), (&json!(6), &json!(1)));
    assert_eq!(cancelled["ended_time"], "2026-11-22T07:00:20.000000Z");

    objects.expire(at(80));
    assert_eq!(objects.counts().events, 1);
    objects.expire(at(81));
    assert_eq!(objects.counts().events, 0, "60 s after the last message");
}

#[test]
fn unavailable_codes_are_absent() {
    let situation = |quality, sub_code| Situation::new(quality, Cause { code: 94, sub_code });
    for (situation, quality, sub_cause) in [
        (situation(0, 0), None, None),
        (situation(1, 0), Some(json!(1)), None),
        (situation(0, 255), None, Some(json!(255))),
    ] {
        let mut objects = MapObjects::default();
        objects.update(&received(&denm(&DenmInput { situation: Some(situation), ..event(0) }), at(0), 0));
        let found = only_event(&objects, at(0));
        assert_eq!((found.get("information_quality"), found.get("sub_cause")), (quality.as_ref(), sub_cause.as_ref()));
        assert_eq!(found["cause"], 94);
    }
}

#[test]
fn an_event_expires_and_disappears() {
    let mut objects = MapObjects::default();
    objects.update(&received(&denm(&event(0)), at(1), 0));
    assert_eq!(only_event(&objects, at(60))["state"], "active");
    assert_eq!(only_event(&objects, at(61))["state"], "expired");
    objects.expire(at(119));
    assert_eq!(objects.counts().events, 1);
    objects.expire(at(120));
    assert_eq!(objects.counts().events, 0);
}

#[test]
fn another_station_negates_an_event() {
    let mut objects = MapObjects::default();
    objects.update(&received(&denm(&event(0)), at(1), 0));
    let negation = DenmInput {
        station_id: StationId(2002),
        termination: Some(Termination::IsNegation),
        situation: None,
        location: None,
        ..event(0)
    };
    objects.update(&received(&denm(&negation), at(5), 0));
    let negated = only_event(&objects, at(5));
    assert_eq!((&negated["state"], &negated["station_id"]), (&json!("negated"), &json!(2002)));
}

#[test]
fn an_unverified_event_is_marked_until_a_newer_version_replaces_it() {
    let mut objects = MapObjects::default();
    let security = |message: &DenmInput, state: SecurityState, time| V2xMessage {
        security: state.into(),
        ..received(&denm(message), time, 0)
    };
    objects.update(&security(&event(0), SecurityState::Unverified, at(0)));
    assert_eq!(only_event(&objects, at(0))["security"], "unverified");
    let end = DenmInput { termination: Some(Termination::IsCancellation), situation: None, location: None, ..event(2) };
    objects.update(&security(&end, SecurityState::Unsecured, at(2)));
    let cancelled = only_event(&objects, at(2));
    assert_eq!((&cancelled["cause"], &cancelled["security"]), (&json!(94), &json!("unverified")));

    let mut objects = MapObjects::default();
    objects.update(&security(&event(0), SecurityState::Unverified, at(0)));
    objects.update(&security(&event(1), SecurityState::Unsecured, at(1)));
    assert_eq!(only_event(&objects, at(1))["security"], "unsecured", "the newest version has all content");
}

#[test]
fn unverified_infrastructure_is_marked() {
    let unverified = |message: V2xMessage| V2xMessage { security: SecurityState::Unverified.into(), ..message };
    let marked = |objects: &MapObjects, now: Tai| -> Vec<String> {
        let features = features(objects, now).into_iter();
        features.filter(|(.., properties)| properties["security"] == "unverified").map(|(id, ..)| id).collect()
    };
    let mut objects = MapObjects::default();
    let mapem = received(&Message::from_json(MessageKind::Mapem, MAPEM.as_bytes()).unwrap(), at(0), 0);
    objects.update(&mapem);
    assert_eq!(marked(&objects, at(0)), [""; 0]);
    objects.update(&unverified(received(&spatem("stop-And-Remain"), at(1), 0)));
    let signals = ["intersection-5-3-stop-1-0", "intersection-5-3-connection-1-2"];
    assert_eq!(marked(&objects, at(1)), signals, "the features with a state of the unverified SPATEM");
    objects.update(&unverified(mapem));
    assert_eq!(marked(&objects, at(1)).len(), 8);

    let mut objects = MapObjects::default();
    objects.update(&unverified(received(&ivim(0), at(0), 0)));
    assert_eq!(marked(&objects, at(0)).len(), 3);
}

#[test]
fn the_times_of_a_replayed_event_are_shifted() {
    let mut objects = MapObjects::default();
    objects.update(&received(&denm(&event(0)), at(100_001), 100_000));
    let replayed = only_event(&objects, at(100_002));
    assert_eq!(
        (&replayed["state"], &replayed["valid_until"]),
        (&json!("active"), &json!("2026-11-23T10:47:40.000000Z"))
    );
}

#[test]
fn an_event_has_its_zone_and_approaches() {
    let point = |latitude: f64| PathPoint { position: Position::new(latitude, 7.5), altitude: None, travel_time: None };
    let zone = [45.001, 45.002].map(|latitude| EventPoint { point: point(latitude), quality: 3 });
    let situation = Situation { event_zone: zone.to_vec(), ..Situation::new(3, Cause { code: 3, sub_code: 0 }) };
    let location = Location { traces: vec![vec![point(44.999), point(44.998)]], ..Location::default() };
    let input = DenmInput { situation: Some(situation), location: Some(location), ..event(0) };
    let mut objects = MapObjects::default();
    objects.update(&received(&denm(&input), at(1), 0));
    let found = only_event(&objects, at(1));
    assert_eq!(
        found["zone"],
        json!({ "type": "LineString", "coordinates": [[7.5, 45.0], [7.5, 45.001], [7.5, 45.002]] })
    );
    assert_eq!(
        found["approaches"],
        json!({ "type": "MultiLineString", "coordinates": [[[7.5, 45.0], [7.5, 44.999], [7.5, 44.998]]] })
    );
}

#[test]
fn a_full_table_evicts_the_object_with_the_oldest_message() {
    let mut objects = MapObjects::default();
    for number in 0..=u16::try_from(OBJECTS_MAX).unwrap() {
        let action_id = ActionId { originating_station: StationId(1), sequence_number: number };
        let input = DenmInput { action_id, ..event(0) };
        objects.update(&received(&denm(&input), at(i64::from(number)), 0));
    }
    let counts = objects.counts();
    assert_eq!((counts.events, counts.evicted), (OBJECTS_MAX, 1));
    assert_eq!(objects.events()[0].0.sequence_number, 1);
}

#[test]
fn an_undecodable_or_oversized_message_is_counted() {
    let mut objects = MapObjects::default();
    let good = received(&denm(&event(0)), at(1), 0);
    objects.update(&V2xMessage { payload: vec![0xFF; 3].into(), ..good.clone() });
    objects.update(&V2xMessage { payload: vec![0; PAYLOAD_BYTES_MAX + 1].into(), ..good });
    assert_eq!((objects.counts().skipped, objects.counts().events), (2, 0));
}

/// An intersection with an ingress lane from the south (signal groups 1 and 2), an egress lane to the north, and a lane
/// computed from the first.
const MAPEM: &str = r#"{"header":{"protocolVersion":2,"messageId":5,"stationId":78},"map":{"msgIssueRevision":0,
    "intersections":[{"id":{"region":5,"id":3},"revision":1,"refPoint":{"lat":450000000,"long":75000000},"laneWidth":400,
    "laneSet":[
        {"laneID":1,"laneAttributes":{"directionalUse":"80","sharedWith":"0000","laneType":{"vehicle":{"value":"00","length":8}}},
         "nodeList":{"nodes":[{"delta":{"node-XY3":{"x":0,"y":-1000}}},{"delta":{"node-XY4":{"x":0,"y":-4000}}}]},
         "connectsTo":[{"connectingLane":{"lane":2},"signalGroup":1},{"connectingLane":{"lane":2},"signalGroup":2},
                       {"connectingLane":{"lane":9},"remoteIntersection":{"id":4},"signalGroup":2}]},
        {"laneID":2,"laneAttributes":{"directionalUse":"40","sharedWith":"0000","laneType":{"vehicle":{"value":"00","length":8}}},
         "nodeList":{"nodes":[{"delta":{"node-XY3":{"x":0,"y":1000}}},
                              {"delta":{"node-LatLon":{"lon":75000000,"lat":450010000}}}]}},
        {"laneID":3,"laneAttributes":{"directionalUse":"80","sharedWith":"0000","laneType":{"bikeLane":"0000"}},
         "nodeList":{"computed":{"referenceLaneId":1,"offsetXaxis":{"small":300},"offsetYaxis":{"small":0}}}}]}]}}"#;

fn spatem(first: &str) -> Message {
    let text = format!(
        r#"{{"header":{{"protocolVersion":2,"messageId":4,"stationId":78}},"spat":{{"intersections":[
        {{"id":{{"region":5,"id":3}},"revision":1,"status":"0000","states":[
            {{"signalGroup":1,"state-time-speed":[{{"eventState":"{first}"}},{{"eventState":"dark"}}]}}]}}]}}}}"#
    );
    Message::from_json(MessageKind::Spatem, text.as_bytes()).unwrap()
}

/// Returns metres east and north of the reference point of [`MAPEM`], rounded to decimetres.
fn metres(position: &Value) -> (f64, f64) {
    let position = Position::new(position[1].as_f64().unwrap(), position[0].as_f64().unwrap());
    let (east, north) = Position::new(45.0, 7.5).offset_to(position);
    let rounded = |metres: Metres| (metres.value() * 10.0).round() / 10.0 + 0.0;
    (rounded(east), rounded(north))
}

#[test]
fn lanes_stop_lines_and_connections_have_the_states_of_their_signals() {
    let mut objects = MapObjects::default();
    objects.update(&received(&Message::from_json(MessageKind::Mapem, MAPEM.as_bytes()).unwrap(), at(0), 0));
    objects.update(&received(&spatem("stop-And-Remain"), at(1), 0));
    let found = features(&objects, at(1));
    let ids: Vec<&str> = found.iter().map(|(id, ..)| id.as_str()).collect();
    let name = "intersection-5-3";
    let expected =
        ["", "-lane-1", "-stop-1-0", "-stop-1-1", "-connection-1-2", "-connection-1-2", "-lane-2", "-lane-3"];
    assert_eq!(ids, expected.map(|part| format!("{name}{part}")));

    let (_, geometry, properties) = &found[1];
    assert_eq!((geometry["type"].as_str(), metres(&geometry["coordinates"][1])), (Some("LineString"), (0.0, -50.0)));
    assert_eq!((&properties["direction"], &properties["width_m"]), (&json!("ingress"), &json!(4.0)));

    let stop_lines: Vec<_> = [&found[2], &found[3]]
        .map(|(_, geometry, properties)| {
            let ends = [0, 1].map(|index| metres(&geometry["coordinates"][index]));
            (ends, properties["signal_group"].clone(), properties.get("signal_state").cloned())
        })
        .to_vec();
    assert_eq!(stop_lines[0], ([(-2.0, -10.0), (0.0, -10.0)], json!(1), Some(json!("stop_and_remain"))));
    assert_eq!(stop_lines[1], ([(0.0, -10.0), (2.0, -10.0)], json!(2), None));

    let (_, geometry, properties) = &found[4];
    assert_eq!(metres(&geometry["coordinates"][1]), (0.0, 10.0));
    assert_eq!(properties["signal_state"], "stop_and_remain");
    let (_, geometry, properties) = &found[6];
    assert_eq!(metres(&geometry["coordinates"][1]), (0.0, 111.2));
    assert_eq!(properties["direction"], "egress");
    let (_, geometry, properties) = &found[7];
    assert_eq!(metres(&geometry["coordinates"][0]), (3.0, -10.0));
    assert_eq!(properties["lane_type"], "bike_lane");

    objects.update(&received(&spatem("protected-Movement-Allowed"), at(2), 0));
    assert_eq!(features(&objects, at(2))[2].2["signal_state"], "protected_movement_allowed");
    assert_eq!(features(&objects, at(5))[2].2.get("signal_state"), None, "no SPATEM for 2 s");
    objects.expire(at(61));
    assert_eq!(objects.counts().infrastructure, 0);
}

fn ivim(status: u8) -> Message {
    let text = format!(
        r#"{{"header":{{"protocolVersion":2,"messageId":6,"stationId":77}},"ivi":{{
        "mandatory":{{"serviceProviderId":{{"countryCode":"B480","providerIdentifier":5}},"iviIdentificationNumber":12,
            "timeStamp":722415600000,"iviStatus":{status}}},
        "optional":[
            {{"glc":{{"referencePosition":{{"latitude":450000000,"longitude":75000000,
                "positionConfidenceEllipse":{{"semiMajorConfidence":4095,"semiMinorConfidence":4095,"semiMajorOrientation":3601}},
                "altitude":{{"altitudeValue":800001,"altitudeConfidence":"unavailable"}}}},
              "parts":[
                {{"zoneId":1,"zone":{{"segment-carriagewayOrLane":{{"line":{{"deltaPositions":[
                    {{"deltaLatitude":1000,"deltaLongitude":0}},{{"deltaLatitude":2000,"deltaLongitude":0}}]}}}}}}}},
                {{"zoneId":2,"zone":{{"area":{{"absolutePositions":[
                    {{"latitude":450000000,"longitude":75000000}},{{"latitude":450010000,"longitude":75000000}},
                    {{"latitude":450010000,"longitude":75010000}}]}}}}}}]}}}},
            {{"giv":[{{"detectionZoneIds":[2],"relevanceZoneIds":[1],"iviType":1,"roadSignCodes":[
                {{"code":{{"iso14823":{{"pictogramCode":{{"serviceCategoryCode":{{"trafficSignPictogram":"regulatory"}},
                    "pictogramCategoryCode":{{"nature":5,"serialNumber":57}}}},
                    "attributes":[{{"spe":{{"speedLimitMax":60,"unit":0}}}}]}}}}}}],
                "extraText":[{{"language":"1640","textContent":"Slow down"}}]}}]}}]}}}}"#
    );
    Message::from_json(MessageKind::Ivim, text.as_bytes()).unwrap()
}

#[test]
fn road_signs_have_a_position_zones_and_texts() {
    let mut objects = MapObjects::default();
    objects.update(&received(&ivim(0), at(0), 0));
    let found = features(&objects, at(0));
    let signs = json!([{ "catalogue": "iso_14823", "code": "regulatory 557", "value": "60 km/h" }]);
    assert_eq!(found.len(), 3);
    let (id, geometry, properties) = &found[0];
    assert_eq!((id.as_str(), &geometry["coordinates"]), ("information-77-12", &json!([7.5, 45.0])));
    assert_eq!((&properties["signs"], &properties["texts"]), (&signs, &json!(["Slow down"])));
    let (_, geometry, properties) = &found[1];
    assert_eq!(geometry, &json!({ "type": "LineString", "coordinates": [[7.5, 45.0001], [7.5, 45.0003]] }));
    assert_eq!((&properties["zone"], &properties["roles"]), (&json!(1), &json!(["relevance"])));
    assert_eq!(properties["signs"], signs);
    let (_, geometry, properties) = &found[2];
    assert_eq!(geometry["coordinates"], json!([[[7.5, 45.0], [7.5, 45.001], [7.501, 45.001], [7.5, 45.0]]]));
    assert_eq!(properties["roles"], json!(["detection"]));

    objects.update(&received(&ivim(2), at(1), 0));
    assert_eq!(objects.counts().infrastructure, 0, "cancelled");
}
