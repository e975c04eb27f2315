//! Rows of the codecs: microseconds per message on one thread. The floor of each row is a copy of the same octets
//! into an existing buffer, measured in the same run.

use std::hint::black_box;

use serde_json::{Value, json};
use viaduct_its::decode_frame;
use viaduct_its::facilities::Message;

use super::Options;
use super::corpus::{Corpus, Encoded, Packet, Set};
use crate::error::BenchError;
use crate::floor::timed;
use crate::paper;
use crate::report::{References, Row};

/// Number of messages per sample; the sample is their mean, because reading the clock costs as much as decoding a
/// field.
const BATCH: usize = 16;

/// Name of the floor's row.
const COPY: &str = "floor.memcpy";

/// A row that is being measured.
struct Case<'a> {
    name: &'static str,
    params: Value,
    references: References,
    /// Processes the next message of the set. Returns `true` on success.
    next: Box<dyn FnMut() -> bool + 'a>,
    samples: Vec<f64>,
}

pub(super) fn rows(corpora: &[&Corpus], options: &Options) -> Result<Vec<Row>, BenchError> {
    let mut cases = Vec::new();
    for corpus in corpora {
        cases.extend(corpus.sets.iter().flat_map(|set| codec_cases(corpus, set)));
        cases.extend(frame_cases(corpus));
    }
    let rounds = options.rounds.clamp(1, options.samples.max(1));
    for round in 0..rounds {
        let samples = options.samples * (round + 1) / rounds - options.samples * round / rounds;
        for case in &mut cases {
            case.measure(samples)?;
        }
    }
    let row = |case: Case<'_>| Row {
        references: case.references,
        ..Row::latencies(case.name, &case.params, case.samples, 0)
    };
    let mut rows: Vec<Row> = cases.into_iter().map(row).collect();
    let copies: Vec<Row> = rows.iter().filter(|row| row.name == COPY).cloned().collect();
    for row in rows.iter_mut().filter(|row| !row.is_floor()) {
        row.references.floor = copies.iter().find(|copy| copy.params == row.params).and_then(|copy| copy.p50);
    }
    Ok(rows)
}

impl Case<'_> {
    fn measure(&mut self, samples: usize) -> Result<(), BenchError> {
        let mut whole = true;
        // The first batch only warms the caches.
        for sample in 0..samples + usize::from(samples > 0) {
            let time = timed(|| (0..BATCH).for_each(|_| whole &= (self.next)()));
            if sample > 0 {
                self.samples.push(time / BATCH as f64);
            }
        }
        let broken = || BenchError::broken(self.name, "a message cannot be processed");
        if whole { Ok(()) } else { Err(broken()) }
    }
}

fn codec_cases<'a>(corpus: &Corpus, set: &'a Set) -> [Case<'a>; 7] {
    let (mut out, mut whole) = (Vec::new(), Vec::new());
    let kind = set.kind;
    [
        copy_case(corpus, set, |one| &one.uper),
        case(
            "viaduct.uper_decode",
            corpus,
            set,
            |one| &one.uper,
            move |one| Message::decode(kind, black_box(&one.uper)).map(black_box).is_ok(),
        ),
        case(
            "viaduct.uper_encode",
            corpus,
            set,
            |one| &one.uper,
            |one| black_box(&one.message).encode().map(black_box).is_ok(),
        ),
        copy_case(corpus, set, |one| &one.json),
        case(
            "viaduct.json_write",
            corpus,
            set,
            |one| &one.json,
            move |one| {
                out.clear();
                black_box(&one.message).write_json(&mut out);
                !black_box(&out).is_empty()
            },
        ),
        case(
            "viaduct.json_read",
            corpus,
            set,
            |one| &one.json,
            move |one| Message::from_json(kind, black_box(&one.json)).map(black_box).is_ok(),
        ),
        case(
            "viaduct.uper_to_json",
            corpus,
            set,
            |one| &one.json,
            move |one| {
                whole.clear();
                let decoded = Message::decode(kind, black_box(&one.uper));
                decoded.is_ok_and(|message| {
                    message.write_json(&mut whole);
                    !black_box(&whole).is_empty()
                })
            },
        ),
    ]
}

fn case<'a>(
    name: &'static str,
    corpus: &Corpus,
    set: &'a Set,
    octets: fn(&Encoded) -> &[u8],
    mut work: impl FnMut(&Encoded) -> bool + 'a,
) -> Case<'a> {
    let params = params(corpus, set.label, &set.messages, octets);
    let mut messages = set.messages.iter().cycle();
    let next = Box::new(move || messages.next().is_some_and(&mut work));
    Case { name, params, references: References::default(), next, samples: Vec::new() }
}

fn copy_case<'a>(corpus: &Corpus, set: &'a Set, octets: fn(&Encoded) -> &[u8]) -> Case<'a> {
    let mut out = Vec::new();
    case(COPY, corpus, set, octets, move |one| copy(octets(one), &mut out))
}

/// Returns the case that decodes whole frames (Ethernet, GeoNetworking, BTP, UPER and summary), and its floor, a copy
/// of the frame.
fn frame_cases(corpus: &Corpus) -> [Case<'_>; 2] {
    let params = params(corpus, "frame", &corpus.packets, |packet: &Packet| &packet.frame);
    let case = |name, paper, mut work: Box<dyn FnMut(&Packet) -> bool>| {
        let mut packets = corpus.packets.iter().cycle();
        let next = Box::new(move || packets.next().is_some_and(&mut work));
        Case {
            name,
            params: params.clone(),
            references: References { paper, ..References::default() },
            next,
            samples: Vec::new(),
        }
    };
    let decode = |packet: &Packet| decode_frame(packet.reception, black_box(&packet.frame)).map(black_box).is_ok();
    let mut out = Vec::new();
    [
        case(COPY, None, Box::new(move |packet| copy(&packet.frame, &mut out))),
        case("viaduct.frame_decode", Some(paper::decode_us()), Box::new(decode)),
    ]
}

fn copy(octets: &[u8], out: &mut Vec<u8>) -> bool {
    out.clear();
    out.extend_from_slice(black_box(octets));
    !black_box(out).is_empty()
}

fn params<T>(corpus: &Corpus, what: &str, all: &[T], octets: impl Fn(&T) -> &[u8]) -> Value {
    let mean = all.iter().map(|one| octets(one).len()).sum::<usize>() / all.len().max(1);
    json!({ "of": corpus.name, "what": what, "messages": all.len(), "octets_mean": mean, "batch": BATCH })
}
