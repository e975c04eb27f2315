//! `viaduct its send` encodes and sends a message from JSON. An error names the invalid field.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use viaduct_bus::clock;
use viaduct_etsi::SCALED;
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
    // A command that rejects its arguments ends without reading stdin.
    if let Err(error) = process.stdin.take().unwrap().write_all(input.as_bytes()) {
        assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
    }
    process.wait_with_output().unwrap()
}

fn send(arguments: &[&str], input: &str) -> Output {
    viaduct(&[&["its", "send", "-"], arguments].concat(), input)
}

/// Returns a committed vector as hexadecimal digits.
fn vector(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/its").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(str::chars).filter(char::is_ascii_hexdigit).collect::<String>().to_ascii_lowercase()
}

/// Returns the JSON line that `its decode` prints for a committed vector.
fn decoded(name: &str) -> Value {
    let output = viaduct(&["its", "decode", &vector(name)], "");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Runs with `--dry-run`. Returns the first printed frame and the text after it.
fn dry_run(arguments: &[&str], input: &str) -> (Vec<u8>, String) {
    let output = send(&[&["--dry-run"], arguments].concat(), input);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).unwrap();
    let (frame, decoded) = printed.split_once('\n').unwrap();
    let octet = |at: usize| u8::from_str_radix(&frame[at..at + 2], 16).unwrap();
    ((0..frame.len()).step_by(2).map(octet).collect(), decoded.to_owned())
}

/// Returns `HT` and `HST` of the common header, which follows the link header and the basic header (EN 302 636-4-1, 9.7.4).
fn header_type(frame: &[u8]) -> u8 {
    frame[14 + 4 + 1]
}

/// Joins a multicast group. Returns the socket and the group with its port.
fn listen(group: Ipv4Addr) -> (UdpSocket, String) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None).unwrap();
    // The command binds the same port.
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

/// Asserts that a command has succeeded. Returns the lines of its stdout.
fn lines(output: &Output) -> Vec<String> {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

/// Returns a station near the station of the vector.
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

/// Runs the station until it has received this number of messages. Skips the station's own frames, which UDP multicast
/// returns to it.
fn run_station(mut station: Station, socket: &UdpSocket, group: &str, messages: usize) -> Vec<Received> {
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
fn messages_of_two_runs_are_both_delivered() {
    let (socket, group) = listen(Ipv4Addr::new(239, 118, 122, 114));
    let cam = decoded("cam.hex").to_string();
    for _ in 0..2 {
        lines(&send(&["--udp", "127.0.0.1", "--group", &group, "--hops", "3"], &cam));
    }
    assert_eq!(run_station(other_station(), &socket, &group, 2).len(), 2);
}

/// Runs with `its send -`. Returns the exit code and stderr.
fn run_and_fail(arguments: &[&str], input: &str) -> (i32, String) {
    let output = send(arguments, input);
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn decoded_messages_are_encoded_with_the_same_octets() {
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
fn a_decoded_line_of_a_capture_is_encoded_with_the_same_octets() {
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
fn an_old_time_is_reported_and_can_be_set_to_now() {
    for name in ["cam.hex", "cpm_objects.hex"] {
        let mut line = decoded(name);
        // A generationDeltaTime half a period away, whenever the test runs.
        if line["type"] == "cam" {
            let wrapped = (clock::tai().timestamp_its().0 + 32_768) & 0xFFFF;
            line["message"]["cam"]["generationDeltaTime"] = wrapped.into();
        }
        let output = send(&["--dry-run"], &line.to_string());
        let note = String::from_utf8(output.stderr).unwrap();
        assert!(note.contains("differs from now by more than 2 s") && note.contains("--refresh-time"), "{note}");
        let output = send(&["--dry-run", "--refresh-time"], &line.to_string());
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
        let printed = String::from_utf8(output.stdout).unwrap();
        let read = MessageKind::from_label(line["type"].as_str().unwrap()).unwrap();
        let sent: Value = serde_json::from_str(printed.lines().nth(1).unwrap()).unwrap();
        let message = Message::from_json(read, sent["message"].to_string().as_bytes()).unwrap();
        let (now, generation) = (clock::tai(), message.summary(clock::tai()).generation.unwrap());
        assert!(now.since(generation) < Duration::from_secs(20) && generation <= now, "{name}");
    }
}

#[test]
fn the_header_is_optional() {
    let mut cam = decoded("cam.hex")["message"].take();
    cam.as_object_mut().unwrap().remove("header");
    let (_, read) = dry_run(&["--station-id", "4711"], &cam.to_string());
    let read: Value = serde_json::from_str(&read).unwrap();
    assert_eq!((&read["station_id"], &read["type"]), (&4711.into(), &"cam".into()));
}

#[test]
fn both_dialects_give_the_same_octets() {
    let raw = decoded("cam.hex")["message"].take().to_string();
    let message = Message::from_json(MessageKind::Cam, raw.as_bytes()).unwrap();
    let mut scaled = Vec::new();
    message.write_json_in(SCALED, &mut scaled);
    let scaled = format!("{{\"fields\":{}}}", String::from_utf8(scaled).unwrap());
    let (frame, _) = dry_run(&["--dialect", "vanetza-nap"], &scaled);
    assert_eq!(frame[14 + 40 + 4..], dry_run(&[], &raw).0[14 + 40 + 4..]);
    let (code, error) = run_and_fail(&["--dry-run"], &scaled);
    assert!(code == 2 && error.contains("--type"), "{error}");
}

#[test]
fn the_destination_determines_the_packet_type() {
    let cam = decoded("cam.hex").to_string();
    for (arguments, expected) in [
        (&[][..], 0x50),
        (&["--hops", "1"], 0x51),
        (&["--hops", "3"], 0x51),
        (&["--to", "gbc:45.015,7.568,r=500"], 0x40),
        (&["--to", "gbc:45.015,7.568,rectangle=200x50,azimuth=45"], 0x41),
        (&["--to", "gac:45.015,7.568,ellipse=200x50"], 0x32),
        // The location service first requests the position of the destination.
        (&["--station", "94:00:02:00:00:00:03:f8"], 0x60),
    ] {
        assert_eq!(header_type(&dry_run(arguments, &cam).0), expected, "{arguments:?}");
    }
}

#[test]
fn arguments_override_the_destination_of_the_message() {
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
fn repeat_and_count_set_the_number_of_messages() {
    let (receiver, group) = listen(Ipv4Addr::new(239, 118, 122, 97));
    let arguments = ["--udp", "127.0.0.1", "--group", &group, "--repeat", "50hz", "--count", "3"];
    let printed = lines(&send(&arguments, &decoded("cam.hex").to_string()));
    assert_eq!(printed.len(), 3, "{printed:?}");
    assert!(
        printed[0].starts_with("sent cam to all stations within one hop: ") && printed[0].contains(&group),
        "{printed:?}"
    );
    for _ in 0..3 {
        let frame = receive(&receiver);
        assert!(printed[0].contains(&format!(" {} octets", frame.len())), "{printed:?}");
        assert_eq!(frame[12..14], [0x89, 0x47]);
    }
}

#[test]
fn the_repetition_of_the_message_is_used() {
    let (receiver, group) = listen(Ipv4Addr::new(239, 118, 122, 98));
    let text = json!({
        "type": "cam",
        "message": decoded("cam.hex")["message"].take(),
        "destination": { "hops": 2 },
        "repetition": { "interval_s": 0.02, "duration_s": 0.05 },
    });
    let printed = lines(&send(&["--udp", "127.0.0.1", "--group", &group], &text.to_string()));
    assert_eq!(printed.len(), 3, "{printed:?}");
    assert!(printed.iter().all(|line| line.starts_with("sent cam to all stations within 2 hops: ")), "{printed:?}");
    for frame in [receive(&receiver), receive(&receiver), receive(&receiver)] {
        assert_eq!(header_type(&frame), 0x51);
        // Each repetition is a new packet with the lifetime of a CAM, 1 s (EN 302 636-4-1, 9.6.4).
        assert_eq!(frame[14 + 2], 1 << 2 | 1);
    }
    let text = text.to_string().replacen('{', "{\"lifetime_s\":4,", 1);
    lines(&send(&["--udp", "127.0.0.1", "--group", &group], &text));
    assert_eq!(receive(&receiver)[14 + 2], 4 << 2 | 1, "the lifetime of the message");
}

#[test]
fn another_station_receives_area_and_multi_hop_broadcasts() {
    let cam = decoded("cam.hex").to_string();
    let (socket, group) = listen(Ipv4Addr::new(239, 118, 122, 99));
    let by_udp = ["--udp", "127.0.0.1", "--group", &group];
    lines(&send(&[&by_udp[..], &["--to", "gbc:45.015,7.568,r=500"]].concat(), &cam));
    let received = run_station(other_station(), &socket, &group, 1);
    assert!(matches!(received[0].destination, Destination::Area(_)), "{:?}", received[0].destination);
    lines(&send(&[&by_udp[..], &["--hops", "3"]].concat(), &cam));
    let received = run_station(other_station(), &socket, &group, 1);
    assert_eq!(received[0].destination, Destination::Hops(3));
    assert_eq!(received[0].kind, MessageKind::Cam);
}

#[test]
fn unicast_starts_the_location_service_and_then_sends_the_messages() {
    let (socket, group) = listen(Ipv4Addr::new(239, 118, 122, 100));
    let station = other_station();
    let address = station.address();
    let addressed = address.0.map(|octet| format!("{octet:02x}")).join(":");
    let arguments =
        ["--udp", "127.0.0.1", "--group", &group, "--station", &addressed, "--repeat", "20hz", "--count", "3"];
    let (printed, received) = std::thread::scope(|scope| {
        let other = scope.spawn(|| run_station(station, &socket, &group, 3));
        let printed = lines(&send(&arguments, &decoded("cam.hex").to_string()));
        (printed, other.join().unwrap())
    });
    let sent = format!("sent cam to station {address}: ");
    assert!(printed[0].starts_with("sent another packet (location service or forwarding): "), "{printed:?}");
    assert_eq!(printed.iter().filter(|line| line.starts_with(&sent)).count(), 3, "{printed:?}");
    assert!(received.iter().all(|received| received.destination == Destination::Station(address)));
}

#[test]
fn the_error_names_the_invalid_field() {
    let mut cam = decoded("cam.hex")["message"].take();
    cam["cam"]["camParameters"]["basicContainer"]["stationType"] = 4711.into();
    let (code, error) = run_and_fail(&["--dry-run"], &cam.to_string());
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("stdin: cam.camParameters.basicContainer.stationType: "), "{error}");
    for (input, expected) in [
        ("{", "stdin: EOF while parsing"),
        ("[]", "stdin: expected an object, got an array"),
        ("{}", "the type of the message is missing; set header.messageId or --type (cam, "),
        (r#"{"header":{"messageId":250}}"#, "stdin: header.messageId: expected one of "),
        (r#"{"type":"xyz","message":{}}"#, "stdin: type: expected one of cam, "),
        (r#"{"type":"cam","message":{"cam":{}}}"#, "stdin: message.cam.generationDeltaTime: this member is missing"),
        (r#"{"cam":{},"message":{},"destination":{"hops":0}}"#, "stdin: cam: unknown field"),
    ] {
        let (code, error) = run_and_fail(&["--dry-run"], input);
        assert!(code == 2 && error.contains(expected) && error.lines().count() == 1, "{input}: {code} {error}");
    }
}

#[test]
fn a_dry_run_prints_the_reason_for_which_the_message_waits() {
    let cam = decoded("cam.hex");
    let run = |arguments: &[&str], traffic_class: u8| {
        let mut request = serde_json::json!({ "type": "cam", "message": cam["message"] });
        request["traffic_class"] = traffic_class.into();
        let output = send(&[&["--dry-run", "--refresh-time"], arguments].concat(), &request.to_string());
        assert!(output.status.success());
        (output.stdout.is_empty(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(run(&[], 2), (false, String::new()));
    // 130 is 2 with the bit for store-carry-forward (EN 302 636-4-1, 9.7.5).
    let (no_frame, note) = run(&[], 130);
    assert!(no_frame && note.contains("store-carry-forward, and no neighbour is known"), "{note}");
    let (no_frame, note) = run(&["--to", "gbc:46.0,8.0,r=100"], 130);
    assert!(no_frame && note.contains("no neighbour nearer to the destination is known"), "{note}");
    // The only frame is the location request.
    let (no_frame, note) = run(&["--station", "94:00:02:00:00:00:03:f8"], 2);
    assert!(!no_frame && note.contains("the position of the destination is unknown"), "{note}");
}

#[test]
fn the_error_names_the_invalid_argument() {
    let cam = decoded("cam.hex").to_string();
    for (arguments, expected) in [
        (&["--dry-run", "--to", "gbc:49.0,8.4"][..], "gbc:LAT,LON,r=METRES"),
        (&["--dry-run", "--hops", "0"], "0 is not in 1..=255"),
        (&["--dry-run", "--hops", "3", "--to", "gbc:49,8,r=5"], "cannot be used with"),
        (&["--dry-run", "--type", "spam"], "expected one of cam"),
        (&[], "required arguments were not provided"),
        (&["--interface", "no_such0"], "there is no network interface `no_such0`"),
        (&["--udp", "127.0.0.1", "--group", "10.0.0.1:8947"], "10.0.0.1 is not a multicast address"),
    ] {
        let (code, error) = run_and_fail(arguments, &cam);
        assert!(code != 0 && error.contains(expected), "{arguments:?}: {code} {error}");
    }
}
