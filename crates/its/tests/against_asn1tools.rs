//! asn1tools with ETSI's modules as an oracle: another UPER codec, with types from another source, decodes the same
//! values.
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
mod rich;

use std::{
    fmt::Write as _,
    io::Write as _,
    process::{Command, Stdio},
};

use serde_json::Value;
use viaduct_its::{
    Frame, decode_frame,
    facilities::{
        Message, MessageKind,
        cam::{self, CamInput},
        cpm, denm, vam,
    },
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
    let inputs: Vec<(&str, &[u8])> =
        messages.iter().map(|received| (received.kind.label(), &received.payload[..])).collect();
    let Some(answers) = ask(&inputs) else { return };
    let mut values = 0;
    for (received, theirs) in messages.iter().zip(&answers) {
        let ours = json_of(&received.message);
        assert_eq!(Ok((&ours, &received.payload[..])), theirs.as_ref().map(|(json, octets)| (json, &octets[..])));
        values += count(&ours);
    }
    println!("{} messages, {values} values equal", answers.len());
}

/// Messages with every container and nearly every type, encoded by this project.
#[test]
fn messages_with_every_container_have_the_same_values() {
    let read = |kind, name: &str| {
        let text = std::fs::read(capture::repository().join("testdata/its").join(name)).unwrap();
        let message = Message::from_json(kind, &text).unwrap();
        (json_of(&message), message.encode().unwrap())
    };
    // The modules of the other messages are not available; random_messages.rs compares them with pycrate.
    let kinds = [MessageKind::Cam, MessageKind::Denm, MessageKind::Cpm, MessageKind::Vam];
    let full = kinds.map(|kind| (kind, read(kind, &format!("{}_full.json", kind.label()))));
    let questions: Vec<(&str, &[u8])> = full.iter().map(|(kind, ours)| (kind.label(), &ours.1[..])).collect();
    let Some(answers) = ask(&questions) else { return };
    for ((kind, ours), theirs) in full.into_iter().zip(answers) {
        let theirs = theirs.unwrap_or_else(|refusal| panic!("{}: {refusal}", kind.label()));
        assert_eq!(ours.0.to_string(), theirs.0.to_string());
        assert_eq!(ours.1, theirs.1);
    }
}

/// Messages that are built from quantities, with nearly all fields.
#[test]
fn built_messages_have_the_same_values() {
    let built = [
        Message::Cam(Box::new(cam::build(&rich::cam()))),
        Message::Denm(Box::new(denm::build(&rich::denm()))),
        Message::Cpm(Box::new(cpm::build(&rich::cpm()))),
        Message::Vam(Box::new(vam::build(&rich::vam()))),
    ];
    let octets: Vec<Vec<u8>> = built.iter().map(|message| message.encode().unwrap()).collect();
    let questions: Vec<(&str, &[u8])> =
        built.iter().zip(&octets).map(|(message, octets)| (message.kind().label(), &octets[..])).collect();
    let Some(answers) = ask(&questions) else { return };
    for ((message, octets), theirs) in built.iter().zip(&octets).zip(answers) {
        let theirs = theirs.unwrap_or_else(|refusal| panic!("{}: {refusal}", message.kind().label()));
        assert_eq!(json_of(message).to_string(), theirs.0.to_string());
        assert_eq!(octets, &theirs.1);
    }
}

/// Release 1's modules decode a message without additions of release 2, and encode it to the same octets.
#[test]
fn release_1_has_the_same_octets() {
    let cam = cam::build(&CamInput { extensions: Vec::new(), ..rich::cam() });
    let mut event = rich::denm();
    let situation = event.situation.as_mut().unwrap();
    situation.linked_events.clear();
    situation.perceived = None;
    let messages = [Message::Cam(Box::new(cam)), Message::Denm(Box::new(denm::build(&event)))];
    let octets = messages.map(|message| message.encode().unwrap());
    let captured = capture::vector("cam.hex").slice(58..);
    let questions: [(&str, &[u8]); 3] = [("cam1", &octets[0]), ("denm1", &octets[1]), ("cam1", &captured)];
    let Some(answers) = ask(&questions) else { return };
    for ((kind, octets), theirs) in questions.into_iter().zip(answers) {
        let (json, again) = theirs.unwrap_or_else(|refusal| panic!("{kind}: {refusal}"));
        assert_eq!(again, octets, "{kind}");
        assert!(json["header"]["stationID"].is_u64(), "names of release 1: {json}");
    }
    // Conversely, each of them is a message of release 2.
    assert!(Message::decode(MessageKind::Cam, &octets[0]).is_ok());
    assert!(Message::decode(MessageKind::Denm, &octets[1]).is_ok());
}

/// Each captured message with each single bit changed: if both decoders accept it, the values are the same.
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
    let questions: Vec<(&str, &[u8])> = inputs.iter().map(|(kind, octets)| (kind.label(), &octets[..])).collect();
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
            // asn1tools ignores octets after a message and after the content of a container.
            (Err(refusal), Ok(_)) => assert!(refusal.to_string().contains("octets follow"), "{refusal}"),
        }
    }
    println!("of {} changed messages {both} are taken by both, {only_ours} only by us", inputs.len());
    // rasn 0.28.15 skips extension additions if the message ends within them.
    assert!(both > 1600 && only_ours <= 15, "{both} {only_ours}");
}

/// The oracle's JSON form and encoding of a message, or the reason why it rejects the message.
type Answer = Result<(Value, Vec<u8>), String>;

/// Returns the oracle's answer to each message, or `None`, with the reason printed, if the oracle is not available.
fn ask(messages: &[(&str, &[u8])]) -> Option<Vec<Answer>> {
    let modules = capture::data("asn1")?;
    let python = oracle::python("asn1tools")?;
    let script = oracle::script("decode_with_asn1tools.py");
    let mut oracle = Command::new(python)
        .arg(script)
        .arg(modules)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python runs");
    let mut lines = String::new();
    for (kind, octets) in messages {
        writeln!(lines, "{kind} {}", hex(octets)).unwrap();
    }
    // A thread writes, because both ends would otherwise wait on full pipes.
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

/// Replaces each BIT STRING of variable size, an object of `length` and `value`, by its value. The oracle does not
/// distinguish these BIT STRINGs.
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
