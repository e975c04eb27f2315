//! asn1tools over ETSI's modules as an oracle: another UPER codec, from another source of types, gives the same values.
//!
//! It needs a Python that has asn1tools (see `oracle::python`).

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "tests may panic, print and read files"
)]

mod capture;
mod oracle;

use std::{
    fmt::Write as _,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::Value;
use viaduct_its::{
    Frame, decode_frame,
    facilities::{Message, MessageKind},
};

#[test]
fn every_captured_message_has_the_same_values() {
    let Some(frames) = capture::sample() else { return };
    let messages: Vec<_> = frames
        .iter()
        .map(|captured| match decode_frame(captured.reception, &captured.frame) {
            Ok(Frame::Message(received)) => received,
            other => panic!("{other:?}"),
        })
        .collect();
    let inputs: Vec<(MessageKind, &[u8])> =
        messages.iter().map(|received| (received.kind, &received.payload[..])).collect();
    let Some(answers) = ask(&inputs) else { return };
    let mut values = 0;
    for (received, theirs) in messages.iter().zip(&answers) {
        let ours = json_of(&received.message);
        assert_eq!(Ok((&ours, &received.payload[..])), theirs.as_ref().map(|(json, octets)| (json, &octets[..])));
        values += count(&ours);
    }
    println!("{} messages, {values} values equal", answers.len());
}

/// Messages that have every container and nearly every kind of type, as we encode them.
#[test]
fn messages_with_every_container_have_the_same_values() {
    let read = |kind, name: &str| {
        let text = std::fs::read(capture::repository().join("testdata/its").join(name)).unwrap();
        let message = Message::from_json(kind, &text).unwrap();
        (json_of(&message), message.encode().unwrap())
    };
    let cam = read(MessageKind::Cam, "cam_full.json");
    let cpm = read(MessageKind::Cpm, "cpm_full.json");
    let Some(answers) = ask(&[(MessageKind::Cam, &cam.1), (MessageKind::Cpm, &cpm.1)]) else { return };
    for (ours, theirs) in [cam, cpm].into_iter().zip(answers) {
        let theirs = theirs.unwrap();
        assert_eq!(ours.0.to_string(), theirs.0.to_string());
        assert_eq!(ours.1, theirs.1);
    }
}

/// Every message that differs from a captured one by one bit: what both decoders take has the same values.
#[test]
fn changed_messages_have_the_same_values() {
    let mut inputs = Vec::new();
    for (kind, name) in
        [(MessageKind::Cam, "cam.hex"), (MessageKind::Cpm, "cpm_objects.hex"), (MessageKind::Cpm, "cpm_sensors.hex")]
    {
        let payload = capture::vector(name).slice(58..);
        for bit in 0..payload.len() * 8 {
            let mut changed = payload.to_vec();
            changed[bit / 8] ^= 0x80 >> (bit % 8);
            inputs.push((kind, changed));
        }
    }
    let questions: Vec<(MessageKind, &[u8])> = inputs.iter().map(|(kind, octets)| (*kind, &octets[..])).collect();
    let Some(answers) = ask(&questions) else { return };
    let (mut both, mut only_ours) = (0, 0);
    for ((kind, octets), theirs) in inputs.iter().zip(&answers) {
        match (Message::decode(*kind, octets), theirs) {
            (Ok(ours), Ok((json, _))) => {
                assert_eq!(&json_of(&ours), json, "{octets:02x?}");
                both += 1;
            }
            (Ok(_), Err(_)) => only_ours += 1,
            (Err(_), Err(_)) => {}
            // asn1tools ignores octets behind a message and behind what a container holds.
            (Err(refusal), Ok(_)) => assert!(refusal.to_string().contains("octets follow"), "{refusal}"),
        }
    }
    println!("of {} changed messages {both} are taken by both, {only_ours} only by us", inputs.len());
    // rasn 0.28.15 skips extension additions that the message ends inside of.
    assert!(both > 1600 && only_ours <= 15, "{both} {only_ours}");
}

/// The oracle's JSON form and encoding of a message, or why it refuses it.
type Answer = Result<(Value, Vec<u8>), String>;

/// What the oracle makes of each message; `None`, with the reason printed, where it cannot be asked.
fn ask(messages: &[(MessageKind, &[u8])]) -> Option<Vec<Answer>> {
    let modules = capture::data("asn1")?;
    let python = oracle::python("asn1tools")?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/decode_with_asn1tools.py");
    let mut oracle = Command::new(python)
        .arg(script)
        .arg(modules)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python runs");
    let mut lines = String::new();
    for (kind, octets) in messages {
        writeln!(lines, "{} {}", kind.label(), hex(octets)).unwrap();
    }
    // A thread writes, since both ends would wait for each other on full pipes.
    let mut input = oracle.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = oracle.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    let answers: Vec<_> = String::from_utf8(output.stdout).unwrap().lines().map(answer).collect();
    assert_eq!(answers.len(), messages.len());
    Some(answers)
}

fn answer(line: &str) -> Answer {
    let (json, octets) = line.split_once('\t').unwrap();
    if json == "null" {
        return Err(octets.to_owned());
    }
    let (pairs, []) = octets.as_bytes().as_chunks::<2>() else { panic!("{octets}") };
    let octets = pairs.iter().map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap());
    Ok((serde_json::from_str(json).unwrap(), octets.collect()))
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

fn json_of(message: &Message) -> Value {
    let mut json = Vec::new();
    message.write_json(&mut json);
    bit_strings_as_text(serde_json::from_slice(&json).unwrap())
}

/// The oracle does not know which BIT STRING has a variable size.
fn bit_strings_as_text(value: Value) -> Value {
    match value {
        Value::Object(members)
            if members.len() == 2 && members.contains_key("length") && members.contains_key("value") =>
        {
            members["value"].clone()
        }
        Value::Object(members) => {
            members.into_iter().map(|(name, member)| (name, bit_strings_as_text(member))).collect()
        }
        Value::Array(elements) => elements.into_iter().map(bit_strings_as_text).collect(),
        leaf => leaf,
    }
}

fn count(value: &Value) -> usize {
    match value {
        Value::Object(members) => members.values().map(count).sum(),
        Value::Array(elements) => elements.iter().map(count).sum(),
        _ => 1,
    }
}
