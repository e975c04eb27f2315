//! The vectors of `testdata/its`: content of each frame, and handling of truncated and changed frames.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests may panic and read files")]

mod capture;

use bytes::Bytes;
use viaduct_etsi::cpm_ts103324_v211::CpmContainer;
use viaduct_its::{
    DropReason, Frame, Received, decode_frame, explain_drop,
    facilities::{Message, MessageKind, cpm::object_count},
};
use viaduct_units::{Degrees, Metres, MetresPerSecond, Position, StationId, StationType, Tai};

/// Returns the time of the capture, to the second.
fn reception() -> Tai {
    Tai::from_unix_nanos(1_726_061_434_000_000_000)
}

fn received(name: &str) -> Box<Received> {
    match decode_frame(reception(), &capture::vector(name)) {
        Ok(Frame::Message(received)) => received,
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn cam_has_the_position_of_the_car() {
    let received = received("cam.hex");
    assert_eq!(received.kind, MessageKind::Cam);
    assert_eq!(received.btp_port, 2001);
    assert_eq!(received.link_source.to_string(), "48:a9:8a:90:82:7f");
    assert_eq!(received.source.address.mid(), received.link_source);
    let summary = received.summary;
    assert_eq!((summary.station_id, summary.station_type), (StationId(100), Some(StationType::PASSENGER_CAR)));
    assert_eq!(summary.position, Some(Position::new(45.014_765_3, 7.568_490_8)));
    assert_eq!(summary.altitude, Some(Metres(269.8)));
    assert_eq!(summary.speed, Some(MetresPerSecond(0.0)));
    assert_eq!(summary.heading, Some(Degrees(270.5)));
    assert_eq!(summary.generation.unwrap().timestamp_its().generation_delta_time(), 40_397);
}

#[test]
fn json_of_the_cam_is_as_documented() {
    let mut json = Vec::new();
    received("cam.hex").message.write_json(&mut json);
    let expected = r#"{"header":{"protocolVersion":2,"messageId":2,"stationId":100},"cam":{"generationDeltaTime":40397,"camParameters":{"basicContainer":{"stationType":5,"referencePosition":{"latitude":450147653,"longitude":75684908,"positionConfidenceEllipse":{"semiMajorAxisLength":4095,"semiMinorAxisLength":4095,"semiMajorAxisOrientation":3601},"altitude":{"altitudeValue":26980,"altitudeConfidence":"unavailable"}}},"highFrequencyContainer":{"basicVehicleContainerHighFrequency":{"heading":{"headingValue":2705,"headingConfidence":127},"speed":{"speedValue":0,"speedConfidence":127},"driveDirection":"unavailable","vehicleLength":{"vehicleLengthValue":1023,"vehicleLengthConfidenceIndication":"unavailable"},"vehicleWidth":62,"longitudinalAcceleration":{"value":-3,"confidence":102},"curvature":{"curvatureValue":1023,"curvatureConfidence":"unavailable"},"curvatureCalculationMode":"unavailable","yawRate":{"yawRateValue":0,"yawRateConfidence":"unavailable"}}}}}}"#;
    assert_eq!(String::from_utf8(json).unwrap(), expected);
}

#[test]
fn cpms_have_their_containers() {
    for (name, ids, objects) in [("cpm_objects.hex", &[1, 5][..], 3), ("cpm_sensors.hex", &[1, 3, 5], 1)] {
        let Message::Cpm(cpm) = received(name).message else { panic!("{name}") };
        assert_eq!(cpm.containers.iter().map(CpmContainer::id).collect::<Vec<_>>(), ids, "{name}");
        assert_eq!(object_count(&cpm), objects, "{name}");
    }
}

#[test]
fn secured_packet_is_recognised() {
    assert_eq!(decode_frame(reception(), &capture::vector("secured_cam.hex")), Err(DropReason::SecuredNotVerified));
}

#[test]
fn payload_is_a_part_of_the_frame() {
    let frame = capture::vector("cam.hex");
    let Ok(Frame::Message(received)) = decode_frame(reception(), &frame) else { panic!() };
    assert!(frame.as_ptr_range().contains(&received.payload.as_ptr()));
}

#[test]
fn each_cut_of_a_frame_is_dropped() {
    for name in ["cam.hex", "cpm_objects.hex", "cpm_sensors.hex"] {
        let frame = capture::vector(name);
        for length in 0..frame.len() {
            let reason = decode_frame(reception(), &frame.slice(..length)).unwrap_err();
            assert!(matches!(reason, DropReason::Truncated | DropReason::PayloadLength), "{name} {length}: {reason}");
        }
    }
}

#[test]
fn link_padding_is_not_part_of_the_message() {
    let mut padded = capture::vector("cam.hex").to_vec();
    padded.extend_from_slice(&[0; 20]);
    let Ok(Frame::Message(received)) = decode_frame(reception(), &Bytes::from(padded)) else { panic!() };
    assert_eq!(received.payload.len(), 41);
}

#[test]
fn each_drop_reason_is_caused_by_a_change_of_the_cam() {
    // Offsets: 12 ethertype, 14 basic header, 18 common header, 54 BTP, 58 message.
    for (offset, octets, expected) in [
        (12, &[0x08, 0x00][..], DropReason::NotGeonetworking),
        (14, &[0x01], DropReason::GeonetVersion),
        (14, &[0x12], DropReason::SecuredNotVerified),
        (14, &[0x10], DropReason::GeonetNextHeader),
        (17, &[2], DropReason::HopLimit),
        (18, &[0x30], DropReason::TransportUnsupported),
        (19, &[0x43], DropReason::HeaderTypeUnknown),
        (19, &[0x40], DropReason::PayloadLength),
        (19, &[0x70], DropReason::HeaderTypeUnknown),
        (19, &[0x10], DropReason::PayloadLength),
        (22, &[0x01], DropReason::PayloadLength),
        (22, &[0, 3], DropReason::BtpTruncated),
        (22, &[0, 9], DropReason::MessageTruncated),
        (22, &[0, 44], DropReason::UperInvalid),
        (54, &[0x07, 0xD5], DropReason::MessageUnsupported),
        (54, &[0xFF, 0xFF], DropReason::UnknownPort),
        (54, &[0x07, 0xD9], DropReason::MessageIdMismatch),
        (58, &[1], DropReason::MessageVersion),
        (59, &[14], DropReason::MessageIdMismatch),
    ] {
        let mut frame = capture::vector("cam.hex").to_vec();
        frame[offset..offset + octets.len()].copy_from_slice(octets);
        assert_eq!(decode_frame(reception(), &Bytes::from(frame)), Err(expected), "{offset} {octets:?}");
    }
    let long = Bytes::from(vec![0; viaduct_its::limits::FRAME_OCTETS_MAX + 1]);
    assert_eq!(decode_frame(reception(), &long), Err(DropReason::FrameTooLong));
}

#[test]
fn decode_error_names_element_and_bit() {
    let mut frame = capture::vector("cam.hex").to_vec();
    // The longitude of this CAM is bits 107 to 138 of the message, which begins at octet 58.
    frame[58 + 13] |= 0x1F;
    let frame = Bytes::from(frame);
    assert_eq!(decode_frame(reception(), &frame), Err(DropReason::UperInvalid));
    let text = explain_drop(DropReason::UperInvalid, &frame);
    let element = "cam.camParameters.basicContainer.referencePosition.longitude: ";
    assert!(text.contains(element) && text.ends_with(" (at bit 138)."), "{text}");
    assert_eq!(explain_drop(DropReason::HopLimit, &frame), DropReason::HopLimit.explain());
}
