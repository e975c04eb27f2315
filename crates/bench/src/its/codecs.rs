//! Rows of the codecs: microseconds a message, on one thread.

use std::hint::black_box;

use serde_json::{Value, json};
use viaduct_its::decode_frame;
use viaduct_its::facilities::Message;

use super::Options;
use super::corpus::{Corpus, Encoded, Packet, Set};
use crate::error::BenchError;
use crate::floor::timed;
use crate::paper;
use crate::report::{Beside, Row};

/// Messages that one sample is the mean of: reading the clock costs as much as a field.
const BATCH: usize = 16;

/// One row in the making.
struct Case<'a> {
    name: &'static str,
    params: Value,
    beside: Beside,
    /// Handles the next message of the set; whether it could.
    next: Box<dyn FnMut() -> bool + 'a>,
    samples: Vec<f64>,
}

pub(super) fn rows(corpora: &[&Corpus], options: &Options) -> Result<Vec<Row>, BenchError> {
    let mut cases = Vec::new();
    for corpus in corpora {
        cases.extend(corpus.sets.iter().flat_map(|set| codec_cases(corpus, set)));
        cases.push(frame_case(corpus));
    }
    let rounds = options.rounds.clamp(1, options.samples.max(1));
    for round in 0..rounds {
        let samples = options.samples * (round + 1) / rounds - options.samples * round / rounds;
        for case in &mut cases {
            case.measure(samples)?;
        }
    }
    let row = |case: Case<'_>| Row { beside: case.beside, ..Row::latencies(case.name, &case.params, case.samples, 0) };
    Ok(cases.into_iter().map(row).collect())
}

impl Case<'_> {
    fn measure(&mut self, samples: usize) -> Result<(), BenchError> {
        let mut whole = true;
        // One batch before, for the caches.
        for sample in 0..samples + usize::from(samples > 0) {
            let time = timed(|| (0..BATCH).for_each(|_| whole &= (self.next)()));
            if sample > 0 {
                self.samples.push(time / BATCH as f64);
            }
        }
        let broken = || BenchError::broken(self.name, "a message was refused");
        if whole { Ok(()) } else { Err(broken()) }
    }
}

fn codec_cases<'a>(corpus: &Corpus, set: &'a Set) -> [Case<'a>; 4] {
    let mut out = Vec::new();
    let kind = set.kind;
    [
        case(
            "viaduct.uper_decode",
            corpus,
            set,
            |one| one.uper.len(),
            move |one| Message::decode(kind, black_box(&one.uper)).map(black_box).is_ok(),
        ),
        case(
            "viaduct.uper_encode",
            corpus,
            set,
            |one| one.uper.len(),
            |one| black_box(&one.message).encode().map(black_box).is_ok(),
        ),
        case(
            "viaduct.json_write",
            corpus,
            set,
            |one| one.json.len(),
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
            |one| one.json.len(),
            move |one| Message::from_json(kind, black_box(&one.json)).map(black_box).is_ok(),
        ),
    ]
}

fn case<'a>(
    name: &'static str,
    corpus: &Corpus,
    set: &'a Set,
    octets: fn(&Encoded) -> usize,
    mut work: impl FnMut(&Encoded) -> bool + 'a,
) -> Case<'a> {
    let params = params(corpus, set.label, &set.messages, octets);
    let mut messages = set.messages.iter().cycle();
    let next = Box::new(move || messages.next().is_some_and(&mut work));
    Case { name, params, beside: Beside::default(), next, samples: Vec::new() }
}

/// The whole way of a frame: Ethernet, GeoNetworking, BTP, UPER, and the summary.
fn frame_case(corpus: &Corpus) -> Case<'_> {
    let params = params(corpus, "frame", &corpus.packets, |packet: &Packet| packet.frame.len());
    let mut packets = corpus.packets.iter().cycle();
    let decode = |packet: &Packet| decode_frame(packet.reception, black_box(&packet.frame)).map(black_box).is_ok();
    let next = Box::new(move || packets.next().is_some_and(decode));
    let beside = Beside { paper: Some(paper::decode_us()), ..Beside::default() };
    Case { name: "viaduct.frame_decode", params, beside, next, samples: Vec::new() }
}

fn params<T>(corpus: &Corpus, what: &str, all: &[T], octets: impl Fn(&T) -> usize) -> Value {
    let mean = all.iter().map(octets).sum::<usize>() / all.len().max(1);
    json!({ "of": corpus.name, "what": what, "messages": all.len(), "octets_mean": mean, "batch": BATCH })
}
