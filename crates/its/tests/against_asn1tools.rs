//! asn1tools over ETSI's modules as an oracle: another UPER codec, from another source of types, gives the same values.
//!
//! It needs a Python that has asn1tools: `VIADUCT_PYTHON`, or `.cache/venv/bin/python` in the repository.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "tests may panic, print and read files"
)]

mod capture;

use std::{
    fmt::Write as _,
    io::Write as _,
    path::{Path, PathBuf},
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
    for (received, (json, octets)) in messages.iter().zip(&answers) {
        let ours = json_of(&received.message);
        assert_eq!(&ours, json);
        assert_eq!(&received.payload[..], octets);
        values += count(&ours);
    }
    println!("{} messages, {values} values equal", answers.len());
}

/// The oracle's JSON form and encoding of each message; `None`, with the reason printed, where it cannot be asked.
fn ask(messages: &[(MessageKind, &[u8])]) -> Option<Vec<(Value, Vec<u8>)>> {
    let modules = capture::data("asn1")?;
    let python = python()?;
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

fn python() -> Option<PathBuf> {
    let python = std::env::var_os("VIADUCT_PYTHON")
        .map_or_else(|| capture::repository().join(".cache/venv/bin/python"), PathBuf::from);
    let has_asn1tools = Command::new(&python).args(["-c", "import asn1tools"]).stderr(Stdio::null()).status();
    if has_asn1tools.is_ok_and(|status| status.success()) {
        return Some(python);
    }
    println!("skipped: no Python with asn1tools (VIADUCT_PYTHON, or .cache/venv/bin/python)");
    None
}

fn answer(line: &str) -> (Value, Vec<u8>) {
    let (json, octets) = line.split_once('\t').unwrap();
    let (pairs, []) = octets.as_bytes().as_chunks::<2>() else { panic!("{octets}") };
    let octets = pairs.iter().map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap());
    (serde_json::from_str(json).unwrap(), octets.collect())
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

fn json_of(message: &Message) -> Value {
    let mut json = Vec::new();
    message.write_json(&mut json);
    serde_json::from_slice(&json).unwrap()
}

fn count(value: &Value) -> usize {
    match value {
        Value::Object(members) => members.values().map(count).sum(),
        Value::Array(elements) => elements.iter().map(count).sum(),
        _ => 1,
    }
}
