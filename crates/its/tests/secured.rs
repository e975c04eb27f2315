//! Signed packets and packets of GeoNetworking version 0: dropped by default, readable if the acceptance allows them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests may panic")]
#![allow(clippy::disallowed_methods, reason = "vectors are files, and tshark is another process")]

mod capture;
mod world;

use std::process::Command;

use bytes::Bytes;
use viaduct_its::{
    Acceptance, Destination, DropReason, Event, Frame, HashedId8, Received, Security, SecurityPolicy, Station,
    StationSettings, access::MacAddress, decode_frame, decode_frame_with, facilities::MessageKind, geonet::Mib,
    security::SignedData,
};
use viaduct_units::{StationType, Tai};

const UNVERIFIED: Acceptance = Acceptance { security: SecurityPolicy::Unverified, version_0: false };
const LINK_OCTETS: usize = 14;
const BASIC_OCTETS: usize = 4;

fn reception() -> Tai {
    Tai::from_unix_nanos(1_697_000_000_000_000_000)
}

fn read(frame: &Bytes, acceptance: Acceptance) -> Result<Box<Received>, DropReason> {
    match decode_frame_with(reception(), frame, acceptance)? {
        Frame::Message(received) => Ok(received),
        other => panic!("{other:?}"),
    }
}

/// Returns an unsecured packet in a frame as a packet signed by the certificate with the digest 1 to 8.
fn signed(frame: &[u8]) -> Bytes {
    let (outer, content) = frame.split_at(LINK_OCTETS + BASIC_OCTETS);
    let length = u16::try_from(content.len()).unwrap().to_be_bytes();
    let mut out = outer.to_vec();
    out[LINK_OCTETS] = 0x12;
    out.extend([&[3, 0x81, 0, 0x40, 3, 0x80, 0x82][..], &length, content].concat());
    // Header: generation time, PSID 36. Signer: digest. Signature: x-only r, s.
    out.extend([&[0x40, 1, 36][..], &[9; 8], &[0x80, 1, 2, 3, 4, 5, 6, 7, 8], &[0x80, 0x80], &[7; 64]].concat());
    out.into()
}

#[test]
fn a_signed_cam_is_read_unverified() {
    let frame = capture::vector("secured_cam.hex");
    assert_eq!(decode_frame(reception(), &frame), Err(DropReason::SecuredNotVerified));
    let received = read(&frame, UNVERIFIED).unwrap();
    assert_eq!(received.kind, MessageKind::Cam);
    let Security::Unverified { signer } = received.security else { panic!("{:?}", received.security) };
    // A station derives its address and its station ID from the digest of its certificate.
    let address = received.source.address.mid();
    assert_eq!(address.0[2..], signer.0[4..], "{address} {signer}");
    assert_eq!(received.summary.station_id.value().to_be_bytes(), signer.0[4..]);
    assert!(frame.as_ptr_range().contains(&received.payload.as_ptr()), "a part of the frame");
}

/// The second packet has a certificate whose received form is not the canonical one: as received, its hash is another.
#[test]
fn the_digest_is_that_of_the_canonical_certificate() {
    for (file, digest) in
        [("v2x/secured_cam_valid.gn.bin", None), ("v2x/secured_cam_canonical_hash.gn.bin", Some("0d3a1d0ddf3f5b7d"))]
    {
        let Some(path) = capture::data(file) else { return };
        let packet = std::fs::read(path).unwrap();
        let frame: Bytes = [&[0xFF; 12][..], &[0x89, 0x47], &packet].concat().into();
        let received = read(&frame, UNVERIFIED).unwrap();
        let Security::Unverified { signer } = received.security else { panic!("{:?}", received.security) };
        assert_eq!(received.summary.station_id.value().to_be_bytes(), signer.0[4..], "{file}: {signer}");
        assert!(digest.is_none_or(|digest| digest == signer.to_string()), "{file}: {signer}");
    }
}

#[test]
fn each_cut_and_each_wrong_octet_of_a_signed_packet_is_handled() {
    let frame = capture::vector("secured_cam.hex");
    for length in LINK_OCTETS + BASIC_OCTETS..frame.len() {
        let cut = read(&frame.slice(..length), UNVERIFIED).unwrap_err();
        assert!(matches!(cut, DropReason::SecurityInvalid), "{length}: {cut}");
    }
    for at in LINK_OCTETS + BASIC_OCTETS..frame.len() {
        for octet in [0, 0x7F, 0x80, 0x84, 0xFF] {
            let mut wrong = frame.to_vec();
            wrong[at] = octet;
            // The result does not matter: nothing verifies it.
            let _ = read(&wrong.into(), UNVERIFIED);
        }
    }
}

#[test]
fn tshark_reads_the_same_payload_and_digest() {
    let by_certificate = capture::vector("secured_cam.hex");
    let by_digest = signed(&capture::vector("cam.hex"));
    for (frame, digest) in [(&by_certificate, ""), (&by_digest, "0102030405060708")] {
        let payload = SignedData::parse(&frame[LINK_OCTETS + BASIC_OCTETS..]).unwrap().payload;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secured.pcap");
        let length = u32::try_from(frame.len()).unwrap();
        let words = [0xA1B2_C3D4, 0x0004_0002, 0, 0, 65_535, 1, 1_697_000_000, 0, length, length];
        let header: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
        std::fs::write(&path, [&header[..], frame].concat()).unwrap();
        let mut command = Command::new("tshark");
        command.arg("-r").arg(&path).args(["-T", "fields"]);
        for field in ["ieee1609dot2.unsecuredData", "geonw.ch.htype", "its.stationID", "ieee1609dot2.digest"] {
            command.args(["-e", field]);
        }
        let Ok(output) = command.output() else { return capture::skipped("tshark is not installed") };
        let hexadecimal: String = payload.iter().map(|octet| format!("{octet:02x}")).collect();
        let station = read(frame, UNVERIFIED).unwrap().summary.station_id;
        let expected = format!("{hexadecimal}\t0x50\t{station}\t{digest}\n");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    }
}

#[test]
fn a_signed_payload_is_read_like_an_unsecured_packet() {
    let plain = capture::vector("cam.hex");
    let frame = signed(&plain);
    let (inside, outside) = (read(&frame, UNVERIFIED).unwrap(), read(&plain, UNVERIFIED).unwrap());
    assert_eq!(inside.security, Security::Unverified { signer: HashedId8([1, 2, 3, 4, 5, 6, 7, 8]) });
    assert_eq!(*outside, Received { security: Security::Unsecured, ..*inside });
    let mut padded = frame.to_vec();
    padded.extend([0; 20]);
    assert_eq!(read(&padded.into(), UNVERIFIED), Ok(read(&frame, UNVERIFIED).unwrap()));
    let mut empty = frame.to_vec();
    empty.drain(LINK_OCTETS + BASIC_OCTETS + 9..LINK_OCTETS + BASIC_OCTETS + 9 + plain.len() - 18);
    empty[LINK_OCTETS + BASIC_OCTETS + 7..][..2].copy_from_slice(&[0, 0]);
    assert_eq!(read(&empty.into(), UNVERIFIED), Err(DropReason::Truncated), "a signed packet without headers");
}

#[test]
fn version_0_is_read_if_it_is_accepted() {
    let mut frame = capture::vector("cam.hex").to_vec();
    frame[LINK_OCTETS] = 0x01;
    let frame = Bytes::from(frame);
    let any = Acceptance { version_0: true, ..Acceptance::default() };
    assert_eq!(decode_frame(reception(), &frame), Err(DropReason::GeonetVersion));
    let received = read(&frame, any).unwrap();
    assert_eq!(received.version, 0);
    let mut expected = read(&capture::vector("cam.hex"), any).unwrap();
    expected.version = 0;
    expected.payload = received.payload.clone();
    assert_eq!(received, expected);
    let mut newer = frame.to_vec();
    newer[LINK_OCTETS] = 0x21;
    assert_eq!(read(&newer.into(), any), Err(DropReason::GeonetVersion));
}

/// A station at the edge of the area receives a signed packet that it would forward if it were unsecured.
#[test]
fn a_signed_packet_is_delivered_and_not_forwarded() {
    let places = [world::at(0.0, 0.0), world::at(400.0, 0.0)];
    let mut air = world::World::new(1000.0, Mib::default(), &places);
    air.meet();
    air.send(0, &world::request(Destination::Hops(5)));
    let (_, plain) = air.sent.last().cloned().unwrap();
    let settings = StationSettings {
        link_address: MacAddress([2, 0, 0, 0, 0, 9]),
        station_type: StationType::ROADSIDE_UNIT,
        mobile: false,
        beacons: false,
    };
    let counted = |acceptance: Acceptance, frame: &Bytes| {
        let mut station = Station::with_mib(settings, Mib { acceptance, ..Mib::default() }, 1);
        let now = world::start();
        station.handle_frame(now, frame);
        let event = station.poll_event().unwrap();
        let counters = station.counters().clone();
        assert_eq!(counters.received, counters.delivered + counters.relayed + counters.dropped_total());
        (event, counters)
    };
    let (event, counters) = counted(Acceptance::default(), &signed(&plain));
    assert_eq!(event, Event::Dropped(DropReason::SecuredNotVerified));
    assert_eq!(counters.dropped(DropReason::SecuredNotVerified), 1);
    let (event, counters) = counted(UNVERIFIED, &signed(&plain));
    assert!(matches!(event, Event::Received(_)), "{event:?}");
    assert_eq!((counters.delivered, counters.taken), (1, 0));
    assert_eq!(counters.not_forwarded(DropReason::SecuredNotVerified), 1);
    let (_, counters) = counted(UNVERIFIED, &plain);
    assert_eq!((counters.delivered, counters.not_forwarded(DropReason::SecuredNotVerified)), (1, 0));
}
