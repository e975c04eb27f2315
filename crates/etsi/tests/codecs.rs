//! UPER and JSON of CAM and CPM: values that round-trip, and the error texts of rejected input.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests may panic and read files")]

use serde_json::{Value, json};
use viaduct_etsi::{JsonProblem, UperError, cam_ts103900_v231 as cam, cpm_ts103324_v211 as cpm, pdu_header};

/// Octets before the message in the frames of `testdata/its`: link 14, GeoNetworking 40, BTP 4.
const HEADERS: usize = 58;

fn payload(name: &str) -> Vec<u8> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/its").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    let digits: String = text.lines().filter(|line| !line.starts_with('#')).collect();
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else { panic!("{name}: odd number of digits") };
    let octets = pairs.iter().map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap());
    octets.skip(HEADERS).collect()
}

fn cam_json() -> Value {
    let mut text = Vec::new();
    cam::write_json(&cam::decode(&payload("cam.hex")).unwrap(), &mut text);
    serde_json::from_slice(&text).unwrap()
}

fn cpm_json(name: &str) -> Value {
    let mut text = Vec::new();
    cpm::write_json(&cpm::decode(&payload(name)).unwrap(), &mut text);
    serde_json::from_slice(&text).unwrap()
}

/// Returns the error of a CAM in which the member at `pointer` has this value.
fn cam_error(pointer: &str, value: Value) -> String {
    let mut text = cam_json();
    *text.pointer_mut(pointer).unwrap() = value;
    cam::from_json(text.to_string().as_bytes()).unwrap_err().to_string()
}

#[test]
fn whole_octets_after_a_message_are_rejected() {
    let mut octets = payload("cam.hex");
    octets.push(0);
    assert!(matches!(cam::decode(&octets), Err(UperError::Trailing { octets: 1, .. })));
    let mut octets = payload("cpm_objects.hex");
    octets.extend_from_slice(&[1, 2, 3]);
    assert!(matches!(cpm::decode(&octets), Err(UperError::Trailing { octets: 3, .. })));
}

#[test]
fn a_truncated_message_is_rejected() {
    for (name, decode) in [
        ("cam.hex", (|octets| cam::decode(octets).is_ok()) as fn(&[u8]) -> bool),
        ("cpm_sensors.hex", |octets| cpm::decode(octets).is_ok()),
    ] {
        let octets = payload(name);
        assert!(decode(&octets));
        for length in 0..octets.len() {
            assert!(!decode(&octets[..length]), "{name} {length}");
        }
    }
}

#[test]
fn pdu_header_equals_the_decoded_header() {
    let octets = payload("cam.hex");
    let header = cam::decode(&octets).unwrap().header;
    let peeked = pdu_header(&octets).unwrap();
    assert_eq!((peeked.protocol_version, peeked.message_id), (header.protocol_version.0, header.message_id.0));
    assert_eq!(peeked.station_id, header.station_id.0);
}

#[test]
fn members_may_come_in_any_order() {
    // serde_json sorts the members of an object by name; the codec writes them in the order of declaration.
    let sorted = cam_json().to_string();
    assert_eq!(cam::from_json(sorted.as_bytes()), Ok(cam::decode(&payload("cam.hex")).unwrap()));
    let sorted = cpm_json("cpm_sensors.hex").to_string();
    assert_eq!(cpm::from_json(sorted.as_bytes()), Ok(cpm::decode(&payload("cpm_sensors.hex")).unwrap()));
}

#[test]
fn an_error_has_the_path_and_the_problem() {
    for (pointer, value, expected) in [
        ("/header/messageId", json!(256), "header.messageId: expected an integer from 0 to 255, got 256"),
        ("/header/messageId", json!("2"), "header.messageId: expected an integer from 0 to 255, got \"2\""),
        ("/header/stationId", json!(-1), "header.stationId: expected an integer from 0 to 4294967295, got -1"),
        (
            "/cam/camParameters/basicContainer/referencePosition/latitude",
            json!(900_000_002),
            "cam.camParameters.basicContainer.referencePosition.latitude: \
             expected an integer from -900000000 to 900000001, got 900000002",
        ),
        (
            "/cam/generationDeltaTime",
            json!(1.5),
            "cam.generationDeltaTime: expected an integer from 0 to 65535, got 1.5",
        ),
        (
            "/cam/camParameters/highFrequencyContainer/basicVehicleContainerHighFrequency/driveDirection",
            json!("sideways"),
            "cam.camParameters.highFrequencyContainer.basicVehicleContainerHighFrequency.driveDirection: \
             expected one of forward, backward, unavailable, got \"sideways\"",
        ),
        (
            "/cam/camParameters/highFrequencyContainer",
            json!({ "boat": {} }),
            "cam.camParameters.highFrequencyContainer.boat: there is no member of this name",
        ),
        (
            "/cam/camParameters/highFrequencyContainer",
            json!({}),
            "cam.camParameters.highFrequencyContainer: expected an object with one member of \
             basicVehicleContainerHighFrequency, rsuContainerHighFrequency, got another number of members",
        ),
        ("/cam", json!([1, 2]), "cam: expected an object, got an array of 2"),
        ("/cam", Value::Null, "cam: expected an object, got null"),
    ] {
        assert_eq!(cam_error(pointer, value), expected);
    }
}

#[test]
fn unknown_and_missing_members_are_named() {
    let mut text = cam_json();
    text["header"]["colour"] = json!("red");
    let error = cam::from_json(text.to_string().as_bytes()).unwrap_err();
    assert_eq!((error.path.as_str(), &error.problem), ("header.colour", &JsonProblem::Unknown));

    let mut text = cam_json();
    text["cam"].as_object_mut().unwrap().remove("generationDeltaTime");
    let error = cam::from_json(text.to_string().as_bytes()).unwrap_err();
    assert_eq!((error.path.as_str(), &error.problem), ("cam.generationDeltaTime", &JsonProblem::Missing));

    let mut text = cpm_json("cpm_objects.hex");
    let object = text.pointer_mut("/payload/cpmContainers/1/containerData/perceivedObjects/2").unwrap();
    object.as_object_mut().unwrap().remove("position");
    let error = cpm::from_json(text.to_string().as_bytes()).unwrap_err();
    assert_eq!(error.path, "payload.cpmContainers[1].containerData.perceivedObjects[2].position");
    assert_eq!(error.problem, JsonProblem::Missing);
}

#[test]
fn invalid_json_is_rejected() {
    for text in ["", "{", "[]", "null", "{\"header\":{}}", "\u{FEFF}{}"] {
        assert!(cam::from_json(text.as_bytes()).is_err(), "{text}");
        assert!(cpm::from_json(text.as_bytes()).is_err(), "{text}");
    }
    assert!(cam::from_json("[".repeat(100_000).as_bytes()).unwrap_err().to_string().contains("deeper than"));
}

#[test]
fn optional_containers_and_bit_strings_round_trip() {
    let mut text = cam_json();
    let parameters = text.pointer_mut("/cam/camParameters").unwrap();
    parameters["lowFrequencyContainer"] = json!({ "basicVehicleContainerLowFrequency": {
        "vehicleRole": "emergency",
        "exteriorLights": "A5",
        "pathHistory": [
            { "pathPosition": { "deltaLatitude": -10, "deltaLongitude": 131_072, "deltaAltitude": 12_800 } },
            { "pathPosition": { "deltaLatitude": 1, "deltaLongitude": 2, "deltaAltitude": 3 }, "pathDeltaTime": 70_000 },
        ],
    } });
    parameters["specialVehicleContainer"] = json!({ "emergencyContainer": {
        "lightBarSirenInUse": "C0",
        "incidentIndication": { "ccAndScc": { "emergencyVehicleApproaching95": 1 } },
        "emergencyPriority": "40",
    } });
    let high = parameters.pointer_mut("/highFrequencyContainer/basicVehicleContainerHighFrequency").unwrap();
    high["accelerationControl"] = json!("A2");
    high["lanePosition"] = json!(-1);
    let cam = cam::from_json(text.to_string().as_bytes()).unwrap();
    let decoded = cam::decode(&cam::encode(&cam).unwrap()).unwrap();
    assert_eq!(decoded, cam);
    let mut written = Vec::new();
    cam::write_json(&decoded, &mut written);
    assert_eq!(serde_json::from_slice::<Value>(&written).unwrap(), text);
}

#[test]
fn bits_beyond_the_size_of_a_bit_string_are_ignored() {
    assert_eq!(cam::types::AccelerationControl::from_octet(0xA3), cam::types::AccelerationControl::from_octet(0xA2));
    let error = cam_error(
        "/cam/camParameters/highFrequencyContainer",
        json!({ "rsuContainerHighFrequency": { "protectedCommunicationZonesRSU": [] } }),
    );
    assert!(error.ends_with("expected 1 to 16 elements, got 0"), "{error}");
}

#[test]
fn every_kind_of_container_round_trips() {
    let mut text = cpm_json("cpm_sensors.hex");
    text["payload"]["managementContainer"]["segmentationInfo"] = json!({ "totalMsgNo": 2, "thisMsgNo": 1 });
    let containers = text.pointer_mut("/payload/cpmContainers").unwrap().as_array_mut().unwrap();
    containers.push(json!({ "containerId": 2, "containerData": {} }));
    containers.push(json!({ "containerId": 4, "containerData": [{
        "measurementDeltaTime": -2048,
        "perceptionRegionConfidence": 101,
        "perceptionRegionShape": { "circular": {
            "shapeReferencePoint": { "xCoordinate": -32_768, "yCoordinate": 32_767 }, "radius": 4095,
        } },
        "shadowingApplies": true,
        "sensorIdList": [1, 255],
        "perceivedObjectIds": [0, 65_535],
    }] }));
    containers.push(json!({ "containerId": 9, "containerData": "00FFA5" }));
    let cpm = cpm::from_json(text.to_string().as_bytes()).unwrap();
    let ids: Vec<u8> = cpm.containers.iter().map(cpm::CpmContainer::id).collect();
    assert_eq!(ids, [1, 3, 5, 2, 4, 9]);
    let decoded = cpm::decode(&cpm::encode(&cpm).unwrap()).unwrap();
    assert_eq!(decoded, cpm);
    let mut written = Vec::new();
    cpm::write_json(&decoded, &mut written);
    assert_eq!(serde_json::from_slice::<Value>(&written).unwrap(), text);
}

#[test]
fn an_invalid_container_is_reported_by_its_identifier() {
    let mut cpm = cpm::decode(&payload("cpm_objects.hex")).unwrap();
    cpm.containers = vec![cpm::CpmContainer::Unknown { id: 5, octets: vec![0x00] }];
    let octets = cpm::encode(&cpm).unwrap();
    assert!(matches!(cpm::decode(&octets), Err(UperError::Container { id: 5, .. })));
    cpm.containers = vec![cpm::CpmContainer::Unknown { id: 17, octets: vec![] }];
    assert!(matches!(cpm::encode(&cpm), Err(UperError::Unencodable { .. })));
}

/// rasn 0.28.15 would encode these lists as other messages (see `viaduct_asn1::uper`).
#[test]
fn a_list_beyond_the_root_of_its_size_round_trips() {
    let mut cpm = cpm::decode(&payload("cpm_objects.hex")).unwrap();
    let container = cpm::CpmContainer::Unknown { id: 9, octets: vec![1] };
    for count in [0, 1, 8, 9, 127, 128, 300] {
        cpm.containers = vec![container.clone(); count];
        let octets = cpm::encode(&cpm).unwrap();
        assert_eq!(cpm::decode(&octets).as_ref(), Ok(&cpm), "{count} containers");
        let mut text = Vec::new();
        cpm::write_json(&cpm, &mut text);
        assert_eq!(cpm::from_json(&text).as_ref(), Ok(&cpm), "{count} containers");
    }
}

/// The container is an open type: its length includes the list.
#[test]
fn a_list_beyond_the_root_of_its_size_round_trips_inside_a_container() {
    let mut text = cpm_json("cpm_objects.hex");
    let object = text.pointer_mut("/payload/cpmContainers/1/containerData/perceivedObjects/0").unwrap();
    object["sensorIdList"] = json!([]);
    let cpm = cpm::from_json(text.to_string().as_bytes()).unwrap();
    let decoded = cpm::decode(&cpm::encode(&cpm).unwrap()).unwrap();
    assert_eq!(decoded, cpm);
    let mut written = Vec::new();
    cpm::write_json(&decoded, &mut written);
    assert_eq!(serde_json::from_slice::<Value>(&written).unwrap(), text);
}

#[test]
fn a_list_outside_a_size_that_is_not_extensible_is_refused() {
    let mut text = cpm_json("cpm_objects.hex");
    let object = text.pointer_mut("/payload/cpmContainers/1/containerData/perceivedObjects/0").unwrap();
    object["classification"] = json!([]);
    let error = cpm::from_json(text.to_string().as_bytes()).unwrap_err();
    assert_eq!(error.path, "payload.cpmContainers[1].containerData.perceivedObjects[0].classification");
    assert!(matches!(&error.problem, JsonProblem::Mismatch { got, .. } if got == "0"), "{error}");
    assert!(error.to_string().contains("1 to 8 elements, got 0"), "{error}");
}
