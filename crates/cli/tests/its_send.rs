//! `viaduct its send`: a message of JSON goes out as it was meant, and a wrong one is named by its wrong field.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use viaduct_bus::clock;
use viaduct_etsi::JsonStyle;
use viaduct_its::access::MacAddress;
use viaduct_its::facilities::{Message, MessageKind};
use viaduct_its::{Destination, Ego, Event, Received, Station, StationSettings};
use viaduct_units::{MetresPerSecond, Position, StationType};

fn viaduct(arguments: &[&str], input: &str) -> Output {
    let mut process = Command::new(env!("CARGO_BIN_EXE_viaduct"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    process.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    process.wait_with_output().unwrap()
}

fn send(arguments: &[&str], input: &str) -> Output {
    viaduct(&[&["its", "send", "-"], arguments].concat(), input)
}

/// A committed vector as hexadecimal digits.
fn vector(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/its").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(str::chars).filter(char::is_ascii_hexdigit).collect::<String>().to_ascii_lowercase()
}

/// What `its decode` says of a committed vector.
fn decoded(name: &str) -> Value {
    let output = viaduct(&["its", "decode", &vector(name)], "");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The first frame that `--dry-run` prints, and what it says of it.
fn dry_run(arguments: &[&str], input: &str) -> (Vec<u8>, String) {
    let output = send(&[&["--dry-run"], arguments].concat(), input);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).unwrap();
    let (frame, read) = printed.split_once('\n').unwrap();
    let octet = |at: usize| u8::from_str_radix(&frame[at..at + 2], 16).unwrap();
    ((0..frame.len()).step_by(2).map(octet).collect(), read.to_owned())
}

/// `HT` and `HST` of the common header, behind link and basic header (EN 302 636-4-1, 9.7.4).
fn header_type(frame: &[u8]) -> u8 {
    frame[14 + 4 + 1]
}

/// A socket that hears what is sent to a group, and the group.
fn listen(group: Ipv4Addr) -> (UdpSocket, String) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None).unwrap();
    // The command listens on the same port.
    socket.set_reuse_address(true).unwrap();
    socket.bind(&SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0).into()).unwrap();
    socket.join_multicast_v4(&group, &Ipv4Addr::LOCALHOST).unwrap();
    socket.set_multicast_if_v4(&Ipv4Addr::LOCALHOST).unwrap();
    let socket = UdpSocket::from(socket);
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let group = format!("{group}:{}", socket.local_addr().unwrap().port());
    (socket, group)
}

fn receive(socket: &UdpSocket) -> Vec<u8> {
    let mut octets = vec![0; 2304];
    let length = socket.recv(&mut octets).unwrap();
    octets.truncate(length);
    octets
}

/// Lines of stdout of a command that succeeds.
fn lines(output: &Output) -> Vec<String> {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

/// A station near to the one of the vector.
fn other_station() -> Station {
    let link_address = MacAddress([2, 0, 0, 0, 0, 9]);
    let settings =
        StationSettings { link_address, station_type: StationType::PASSENGER_CAR, mobile: true, beacons: false };
    let mut station = Station::new(settings, 9);
    let now = clock::now();
    let position = Position::new(45.015, 7.5685);
    let speed = MetresPerSecond(0.0);
    station.set_ego(now, Ego { time: now.tai, position, position_accurate: true, speed, heading: None });
    station
}

/// Lets the station take part until it has received so many messages. Its own frames come back to it, as by radio they do not.
fn take_part(mut station: Station, socket: &UdpSocket, group: &str, messages: usize) -> Vec<Received> {
    let own = MacAddress([2, 0, 0, 0, 0, 9]).0;
    let mut received = Vec::new();
    while received.len() < messages {
        let frame = receive(socket);
        if frame[6..12] == own {
            continue;
        }
        station.handle_frame(clock::now(), &Bytes::from(frame));
        received.extend(std::iter::from_fn(|| station.poll_event()).filter_map(|event| match event {
            Event::Received(received) => Some(*received),
            _ => None,
        }));
        while let Some(frame) = station.poll_transmit() {
            socket.send_to(&frame, group).unwrap();
        }
    }
    received
}

#[test]
fn what_is_sent_by_two_commands_is_heard_twice() {
    let (socket, group) = listen(Ipv4Addr::new(239, 118, 122, 114));
    let cam = decoded("cam.hex").to_string();
    for _ in 0..2 {
        lines(&send(&["--udp", "127.0.0.1", "--group", &group, "--hops", "3"], &cam));
    }
    assert_eq!(take_part(other_station(), &socket, &group, 2).len(), 2);
}

/// Exit code and stderr.
fn refused(arguments: &[&str], input: &str) -> (i32, String) {
    let output = send(arguments, input);
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn what_decode_prints_is_sent_again_with_the_same_octets() {
    for name in ["cam.hex", "cpm_objects.hex", "cpm_sensors.hex"] {
        let line = decoded(name);
        let output = send(&["--dry-run"], &line.to_string());
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let (frame, read) = printed.split_once('\n').unwrap();
        let read: Value = serde_json::from_str(read).unwrap();
        assert_eq!(read["message"], line["message"], "{name}");
        // The message is the end of the frame: headers of link, network (4 + 8 + 28) and BTP come before it in both.
        let headers = 14 + 40 + 4;
        assert_eq!(frame[2 * headers..], vector(name)[2 * headers..], "{name}");
    }
}

#[test]
fn a_line_of_a_capture_is_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drive.pcap");
    let cam = vector("cam.hex");
    let frame: Vec<u8> =
        (0..cam.len()).step_by(2).map(|at| u8::from_str_radix(&cam[at..at + 2], 16).unwrap()).collect();
    let length = u32::try_from(frame.len()).unwrap();
    let words = [0xA1B2_C3D4, 0x0004_0002, 0, 0, 65_535, 1, 1_726_061_434, 92_870, length, length];
    std::fs::write(&path, [words.map(u32::to_le_bytes).concat(), frame.clone()].concat()).unwrap();
    let decoded = viaduct(&["its", "decode", path.to_str().unwrap(), "--json-lines"], "");
    let line = &lines(&decoded)[0];
    let (again, _) = dry_run(&[], line);
    assert_eq!(again[14 + 40 + 4..], frame[14 + 40 + 4..]);
}

#[test]
fn a_header_may_be_left_out() {
    let mut cam = decoded("cam.hex")["message"].take();
    cam.as_object_mut().unwrap().remove("header");
    let (_, read) = dry_run(&["--station-id", "4711"], &cam.to_string());
    let read: Value = serde_json::from_str(&read).unwrap();
    assert_eq!((&read["station_id"], &read["type"]), (&4711.into(), &"cam".into()));
}

#[test]
fn the_dialect_of_vanetza_nap_says_the_same() {
    let raw = decoded("cam.hex")["message"].take().to_string();
    let message = Message::from_json(MessageKind::Cam, raw.as_bytes()).unwrap();
    let mut scaled = Vec::new();
    message.write_json_in(JsonStyle::Scaled, &mut scaled);
    let scaled = format!("{{\"fields\":{}}}", String::from_utf8(scaled).unwrap());
    let (frame, _) = dry_run(&["--dialect", "vanetza-nap"], &scaled);
    assert_eq!(frame[14 + 40 + 4..], dry_run(&[], &raw).0[14 + 40 + 4..]);
    let (code, said) = refused(&["--dry-run"], &scaled);
    assert!(code == 2 && said.contains("--type"), "{said}");
}

#[test]
fn each_destination_has_its_packet() {
    let cam = decoded("cam.hex").to_string();
    for (arguments, expected) in [
        (&[][..], 0x50),
        (&["--hops", "1"], 0x51),
        (&["--hops", "3"], 0x51),
        (&["--to", "gbc:45.015,7.568,r=500"], 0x40),
        (&["--to", "gbc:45.015,7.568,rectangle=200x50,azimuth=45"], 0x41),
        (&["--to", "gac:45.015,7.568,ellipse=200x50"], 0x32),
        // Where the station is has to be asked first.
        (&["--station", "94:00:02:00:00:00:03:f8"], 0x60),
    ] {
        assert_eq!(header_type(&dry_run(arguments, &cam).0), expected, "{arguments:?}");
    }
}

#[test]
fn a_message_is_sent_to_whom_it_says_or_to_whom_the_arguments_say() {
    let cam = decoded("cam.hex")["message"].take();
    let text = json!({ "type": "cam", "message": cam, "destination": { "hops": 2 } }).to_string();
    // The remaining hop limit is the basic header's last octet.
    let (frame, _) = dry_run(&[], &text);
    assert_eq!((header_type(&frame), frame[14 + 3]), (0x51, 2));
    let (frame, _) = dry_run(&["--hops", "5"], &text);
    assert_eq!((header_type(&frame), frame[14 + 3]), (0x51, 5));
    let (frame, _) = dry_run(&["--to", "gbc:45.015,7.568,r=500"], &text);
    assert_eq!(header_type(&frame), 0x40);
}

#[test]
fn messages_go_out_by_udp_as_often_as_asked() {
    let (receiver, group) = listen(Ipv4Addr::new(239, 118, 122, 97));
    let arguments = ["--udp", "127.0.0.1", "--group", &group, "--repeat", "50hz", "--count", "3"];
    let said = lines(&send(&arguments, &decoded("cam.hex").to_string()));
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said[0].starts_with("sent cam to everybody in reach: ") && said[0].contains(&group), "{said:?}");
    for _ in 0..3 {
        let frame = receive(&receiver);
        assert!(said[0].contains(&format!(" {} octets", frame.len())), "{said:?}");
        assert_eq!(frame[12..14], [0x89, 0x47]);
    }
}

#[test]
fn a_message_is_repeated_as_it_says() {
    let (receiver, group) = listen(Ipv4Addr::new(239, 118, 122, 98));
    let text = json!({
        "type": "cam",
        "message": decoded("cam.hex")["message"].take(),
        "destination": { "hops": 2 },
        "repetition": { "interval_s": 0.02, "duration_s": 0.05 },
    });
    let said = lines(&send(&["--udp", "127.0.0.1", "--group", &group], &text.to_string()));
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said.iter().all(|line| line.starts_with("sent cam to everybody within 2 hops: ")), "{said:?}");
    for frame in [receive(&receiver), receive(&receiver), receive(&receiver)] {
        assert_eq!(header_type(&frame), 0x51);
        // Each is a packet of its own, which lives for a second as one CAM does (EN 302 636-4-1, 9.6.4).
        assert_eq!(frame[14 + 2], 1 << 2 | 1);
    }
    let text = text.to_string().replacen('{', "{\"lifetime_s\":4,", 1);
    lines(&send(&["--udp", "127.0.0.1", "--group", &group], &text));
    assert_eq!(receive(&receiver)[14 + 2], 4 << 2 | 1, "as the message says");
}

#[test]
fn another_station_receives_what_is_sent_to_an_area_and_within_hops() {
    let cam = decoded("cam.hex").to_string();
    let (socket, group) = listen(Ipv4Addr::new(239, 118, 122, 99));
    let by_udp = ["--udp", "127.0.0.1", "--group", &group];
    lines(&send(&[&by_udp[..], &["--to", "gbc:45.015,7.568,r=500"]].concat(), &cam));
    let received = take_part(other_station(), &socket, &group, 1);
    assert!(matches!(received[0].destination, Destination::Area(_)), "{:?}", received[0].destination);
    lines(&send(&[&by_udp[..], &["--hops", "3"]].concat(), &cam));
    let received = take_part(other_station(), &socket, &group, 1);
    assert_eq!(received[0].destination, Destination::Hops(3));
    assert_eq!(received[0].kind, MessageKind::Cam);
}

#[test]
fn a_station_is_asked_where_it_is_and_then_gets_the_messages() {
    let (socket, group) = listen(Ipv4Addr::new(239, 118, 122, 100));
    let station = other_station();
    let address = station.address();
    let addressed = address.0.map(|octet| format!("{octet:02x}")).join(":");
    let arguments =
        ["--udp", "127.0.0.1", "--group", &group, "--station", &addressed, "--repeat", "20hz", "--count", "3"];
    let (said, received) = std::thread::scope(|scope| {
        let other = scope.spawn(|| take_part(station, &socket, &group, 3));
        let said = lines(&send(&arguments, &decoded("cam.hex").to_string()));
        (said, other.join().unwrap())
    });
    let sent = format!("sent cam to station {address}: ");
    assert!(said[0].starts_with("sent packet of the station itself to its neighbours: "), "{said:?}");
    assert_eq!(said.iter().filter(|line| line.starts_with(&sent)).count(), 3, "{said:?}");
    assert!(received.iter().all(|received| received.destination == Destination::Station(address)));
}

#[test]
fn a_wrong_message_is_named_by_its_field() {
    let mut cam = decoded("cam.hex")["message"].take();
    cam["cam"]["camParameters"]["basicContainer"]["stationType"] = 4711.into();
    let (code, said) = refused(&["--dry-run"], &cam.to_string());
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("stdin: cam.camParameters.basicContainer.stationType: "), "{said}");
    for (input, expected) in [
        ("{", "stdin: EOF while parsing"),
        ("[]", "stdin: expected an object, got an array"),
        ("{}", "it does not say which message it is"),
        (r#"{"header":{"messageId":250}}"#, "stdin: header.messageId: expected one of "),
        (r#"{"type":"xyz","message":{}}"#, "stdin: type: expected one of cam, "),
        (r#"{"type":"cam","message":{"cam":{}}}"#, "stdin: message.cam.generationDeltaTime: this member is missing"),
        (r#"{"cam":{},"message":{},"destination":{"hops":0}}"#, "stdin: cam: unknown field"),
    ] {
        let (code, said) = refused(&["--dry-run"], input);
        assert!(code == 2 && said.contains(expected) && said.lines().count() == 1, "{input}: {code} {said}");
    }
}

#[test]
fn a_dry_run_says_why_the_message_would_stay() {
    let cam = decoded("cam.hex");
    let waits = |arguments: &[&str], traffic_class: u8| {
        let mut asked = serde_json::json!({ "type": "cam", "message": cam["message"] });
        asked["traffic_class"] = traffic_class.into();
        let output = send(&[&["--dry-run"], arguments].concat(), &asked.to_string());
        assert!(output.status.success());
        (output.stdout.is_empty(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(waits(&[], 2), (false, String::new()));
    // The bit of the traffic class that asks to store and carry (EN 302 636-4-1, 9.7.5).
    let (nothing, said) = waits(&[], 130);
    assert!(nothing && said.contains("wait for a neighbour, and none is known"), "{said}");
    let (nothing, said) = waits(&["--to", "gbc:46.0,8.0,r=100"], 130);
    assert!(nothing && said.contains("nearer to the destination"), "{said}");
    // A station that is not known is asked for first.
    let (nothing, said) = waits(&["--station", "94:00:02:00:00:00:03:f8"], 2);
    assert!(!nothing && said.contains("nobody has said where its destination is"), "{said}");
}

#[test]
fn a_wrong_command_line_says_what_is_wrong() {
    let cam = decoded("cam.hex").to_string();
    for (arguments, expected) in [
        (&["--dry-run", "--to", "gbc:49.0,8.4"][..], "gbc:LAT,LON,r=METRES"),
        (&["--dry-run", "--hops", "0"], "0 is not in 1..=255"),
        (&["--dry-run", "--hops", "3", "--to", "gbc:49,8,r=5"], "cannot be used with"),
        (&["--dry-run", "--type", "spam"], "it is one of cam"),
        (&[], "required arguments were not provided"),
        (&["--interface", "no_such0"], "there is no network interface `no_such0`"),
        (&["--udp", "127.0.0.1", "--group", "10.0.0.1:8947"], "10.0.0.1 is not a multicast address"),
    ] {
        let (code, said) = refused(arguments, &cam);
        assert!(code != 0 && said.contains(expected), "{arguments:?}: {code} {said}");
    }
}
