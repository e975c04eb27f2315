//! Random valid messages: another codec, the oracle, generates values from ETSI's modules and encodes them. The codec
//! of this project must decode the same values from UPER and from JSON, and encode the same UPER.
//!
//! A message with a list beyond the root of its size is encoded by a slower encoder (see `viaduct_asn1::uper`). The
//! slower encoder must encode all other messages to the same octets, too.
//!
//! The generator walks over the modules of the oracle, so the messages do not depend on the types of this project. They
//! have every alternative and extension addition, ends of ranges, and values outside the roots of extensible types. The
//! oracle is asn1tools with ETSI's own modules (`oracle/random_messages.py`) if they are in the data folder, and
//! pycrate with its own modules (`oracle/random_infrastructure.py`) for the messages of infrastructure. Both need a
//! Python (see `oracle::python`).

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "tests may panic, print and read files"
)]

mod capture;
mod oracle;

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use serde_json::Value;
use viaduct_asn1::limits::JSON_OCTETS_MAX;
use viaduct_asn1::{UperError, uper};
use viaduct_its::facilities::{Message, MessageKind};
use viaduct_its::limits::PAYLOAD_OCTETS_MAX;

/// Number of messages of each kind; a tenth of it for each kind of infrastructure. `VIADUCT_RANDOM_MESSAGES` overrides it.
const MESSAGES: usize = 10_000;
/// Seed of the oracle's random numbers: the same messages in each run.
const SEED: &str = "20231";

#[test]
fn random_cams_agree() {
    compare_with_asn1tools(MessageKind::Cam);
}

#[test]
fn random_cpms_agree() {
    compare_with_asn1tools(MessageKind::Cpm);
}

#[test]
fn random_denms_agree() {
    compare_with_asn1tools(MessageKind::Denm);
}

#[test]
fn random_vams_agree() {
    compare_with_asn1tools(MessageKind::Vam);
}

#[test]
fn random_messages_of_infrastructure_agree() {
    for kind in [MessageKind::Ivim, MessageKind::Mapem, MessageKind::Spatem, MessageKind::Srem, MessageKind::Ssem] {
        compare_with_pycrate(kind);
    }
}

/// A message that the oracle generated.
struct Drawn {
    /// `true` if a list has more or fewer elements than the root of its extensible size.
    beyond: bool,
    octets: Vec<u8>,
    json: String,
}

/// Results for one kind of message.
#[derive(Debug, Default)]
struct Tally {
    messages: usize,
    /// Messages with a list that is beyond the root of its size.
    beyond: usize,
    octets: usize,
}

fn compare(kind: MessageKind, count: usize, oracle: Option<Child>) {
    let Some(mut oracle) = oracle else { return };
    let mut tally = Tally::default();
    for line in BufReader::new(oracle.stdout.take().unwrap()).lines() {
        let drawn = parse(&line.unwrap());
        if let Err(difference) = check(kind, &drawn) {
            // The oracle would wait until its output is read.
            let _ = oracle.kill();
            let _ = oracle.wait();
            panic!("{} {} of seed {SEED}: {difference}\n{:02x?}", kind.label(), tally.messages, drawn.octets);
        }
        tally.messages += 1;
        tally.beyond += usize::from(drawn.beyond);
        tally.octets += drawn.octets.len();
    }
    assert!(oracle.wait().unwrap().success(), "the oracle failed");
    println!("{}: {tally:?} agree", kind.label());
    assert_eq!(tally.messages, count);
    // MAPEM, SPATEM, SREM and SSEM have no list that the oracle extends.
    let has_extensible_lists =
        matches!(kind, MessageKind::Cam | MessageKind::Cpm | MessageKind::Denm | MessageKind::Vam | MessageKind::Ivim);
    assert!(tally.beyond > 0 || !has_extensible_lists || count < 500, "{tally:?}");
}

fn count() -> usize {
    std::env::var("VIADUCT_RANDOM_MESSAGES").map_or(MESSAGES, |count| count.parse().unwrap())
}

/// Compares messages that asn1tools generates from ETSI's modules. Prints the reason if the test is skipped.
fn compare_with_asn1tools(kind: MessageKind) {
    let draw = || {
        let modules = capture::data("asn1")?;
        let mut command = Command::new(oracle::python("asn1tools")?);
        command.arg(oracle::script("random_messages.py")).arg(modules).args([kind.label(), &count().to_string()]);
        Some(start(command))
    };
    compare(kind, count(), draw());
}

/// Compares messages that pycrate generates from its own modules. Prints the reason if the test is skipped.
fn compare_with_pycrate(kind: MessageKind) {
    let count = count() / 10;
    let draw = || {
        let mut command = Command::new(oracle::python("pycrate_asn1dir")?);
        command.arg(oracle::script("random_infrastructure.py")).args([kind.label(), &count.to_string()]);
        Some(start(command))
    };
    compare(kind, count, draw());
}

fn start(mut command: Command) -> Child {
    command.arg(SEED).stdout(Stdio::piped()).spawn().unwrap()
}

fn parse(line: &str) -> Drawn {
    let [size, octets, json] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
    let (pairs, []) = octets.as_bytes().as_chunks::<2>() else { panic!("{octets}") };
    let octets = pairs.iter().map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap());
    Drawn { beyond: size == "beyond", octets: octets.collect(), json: json.to_owned() }
}

/// Returns the difference from the oracle as an error.
fn check(kind: MessageKind, drawn: &Drawn) -> Result<(), String> {
    let read = Message::decode(kind, &drawn.octets).map_err(|refusal| format!("not decoded: {refusal}"))?;
    let mut json = Vec::new();
    read.write_json(&mut json);
    let ours: Value = serde_json::from_slice(&json).map_err(|error| format!("our JSON: {error}"))?;
    let theirs: Value = serde_json::from_str(&drawn.json).map_err(|error| format!("the oracle's JSON: {error}"))?;
    if let Some(difference) = first_difference(&ours, &theirs, "") {
        return Err(difference);
    }
    match Message::from_json(kind, drawn.json.as_bytes()) {
        Ok(made) if made == read => {}
        Ok(made) => return Err(format!("from JSON comes another value: {made:?} instead of {read:?}")),
        // A text longer than the reader's limit is rejected; no message that fits a packet has such a text.
        Err(_) if drawn.json.len() > JSON_OCTETS_MAX && drawn.octets.len() > PAYLOAD_OCTETS_MAX => {}
        Err(refusal) => return Err(format!("JSON not read: {refusal}")),
    }
    let octets = read.encode().map_err(|refusal| format!("not encoded again: {refusal}"))?;
    if octets != drawn.octets {
        return Err(format!("encoded again: {octets:02x?}"));
    }
    match encode_with_extended_sizes(&read).transpose() {
        Ok(octets) if octets.as_ref().is_none_or(|octets| *octets == drawn.octets) => Ok(()),
        Ok(octets) => Err(format!("encoded by the encoder of extended sizes: {octets:02x?}")),
        Err(refusal) => Err(format!("not encoded by the encoder of extended sizes: {refusal}")),
    }
}

/// Encodes a message with the encoder of lists beyond the root of their size. Returns `None` for a CPM: its containers
/// are encoded one by one.
fn encode_with_extended_sizes(message: &Message) -> Option<Result<Vec<u8>, UperError>> {
    let name = message.kind().label();
    Some(match message {
        Message::Cam(cam) => uper::encode_with_extended_sizes(name, &**cam),
        Message::Denm(denm) => uper::encode_with_extended_sizes(name, &**denm),
        Message::Vam(vam) => uper::encode_with_extended_sizes(name, &**vam),
        Message::Ivim(ivim) => uper::encode_with_extended_sizes(name, &**ivim),
        Message::Mapem(mapem) => uper::encode_with_extended_sizes(name, &**mapem),
        Message::Spatem(spatem) => uper::encode_with_extended_sizes(name, &**spatem),
        Message::Srem(srem) => uper::encode_with_extended_sizes(name, &**srem),
        Message::Ssem(ssem) => uper::encode_with_extended_sizes(name, &**ssem),
        _ => return None,
    })
}

/// Returns the first member in which two JSON values differ, with its two values.
fn first_difference(ours: &Value, theirs: &Value, path: &str) -> Option<String> {
    match (ours, theirs) {
        (Value::Object(left), Value::Object(right)) if left.keys().eq(right.keys()) => left
            .iter()
            .zip(right.values())
            .find_map(|((name, left), right)| first_difference(left, right, &format!("{path}.{name}"))),
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => left
            .iter()
            .zip(right)
            .enumerate()
            .find_map(|(at, (left, right))| first_difference(left, right, &format!("{path}[{at}]"))),
        (left, right) => (left != right).then(|| format!("{path}: ours is {left}, the oracle's {right}")),
    }
}
