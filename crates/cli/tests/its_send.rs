//! `viaduct its send`: a message of JSON goes out as it was meant, and a wrong one is named by its wrong field.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

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
fn a_header_may_be_left_out() {
    let mut cam = decoded("cam.hex")["message"].take();
    cam.as_object_mut().unwrap().remove("header");
    let output = send(&["--dry-run", "--station-id", "4711"], &cam.to_string());
    let printed = String::from_utf8(output.stdout).unwrap();
    let read: Value = serde_json::from_str(printed.split_once('\n').unwrap().1).unwrap();
    assert_eq!((&read["station_id"], &read["type"]), (&4711.into(), &"cam".into()));
}

#[test]
fn messages_go_out_by_udp_as_often_as_asked() {
    let receiver = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None).unwrap();
    // The command listens on the same port.
    receiver.set_reuse_address(true).unwrap();
    receiver.bind(&SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0).into()).unwrap();
    let receiver = UdpSocket::from(receiver);
    receiver.join_multicast_v4(&Ipv4Addr::new(239, 118, 122, 97), &Ipv4Addr::LOCALHOST).unwrap();
    receiver.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let group = format!("239.118.122.97:{}", receiver.local_addr().unwrap().port());
    let arguments = ["--udp", "127.0.0.1", "--group", &group, "--repeat", "50hz", "--count", "3"];
    let output = send(&arguments, &decoded("cam.hex").to_string());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 3, "{said}");
    assert!(lines[0].starts_with("sent cam to everybody in reach: ") && lines[0].contains(&group), "{said}");
    for _ in 0..3 {
        let mut octets = [0; 2304];
        let length = receiver.recv(&mut octets).unwrap();
        assert!(lines[0].contains(&format!(" {length} octets")), "{said}");
        assert_eq!(octets[12..14], [0x89, 0x47]);
    }
}

#[test]
fn a_wrong_message_is_named_by_its_field() {
    let mut cam = decoded("cam.hex")["message"].take();
    cam["cam"]["camParameters"]["basicContainer"]["stationType"] = 4711.into();
    let (code, said) = refused(&["--dry-run"], &cam.to_string());
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("stdin: cam (") && said.contains("cam.camParameters.basicContainer.stationType: "), "{said}");
    for (input, expected) in [
        ("{", "stdin: EOF while parsing"),
        ("[]", "stdin: invalid type: sequence, expected a message as an object"),
        ("{}", "it does not say which message it is"),
        (r#"{"header":{"messageId":250}}"#, "header.messageId: 250 is none of the messages"),
        (r#"{"type":"xyz","message":{}}"#, "type: there is no message `xyz`"),
    ] {
        let (code, said) = refused(&["--dry-run"], input);
        assert!(code == 2 && said.contains(expected) && said.lines().count() == 1, "{input}: {code} {said}");
    }
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
