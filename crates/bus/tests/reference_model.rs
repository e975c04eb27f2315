//! All QoS policies against a reference model, in virtual time and with random steps.
//!
//! After each step the bus and the model must return and show the same samples, errors, events and counters. A
//! difference is shrunk to the shortest sequence of steps that shows it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure")]

mod model;

use std::cell::RefCell;
use std::collections::BTreeMap;

use model::reference::Reference;
use model::steps::{Step, steps};
use model::system::System;
use model::{Outcome, View};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRunner};
use viaduct_bus::QosEvent;

/// Minimum number of random steps of the whole test.
const STEPS_MIN: u64 = 100_000;

/// Number of threads that share the steps.
const WALKERS: usize = 2;

/// Maximum length of a sequence of steps.
const SEQUENCE_STEPS_MAX: usize = 400;

/// The situations that were covered, with their number.
type Met = BTreeMap<&'static str, u64>;

#[test]
fn the_bus_matches_the_model_for_a_hundred_thousand_steps() {
    let mut met = Met::new();
    std::thread::scope(|scope| {
        let walkers = [(); WALKERS].map(|()| scope.spawn(walk));
        for walker in walkers {
            let more = walker.join().unwrap_or_else(|difference| std::panic::resume_unwind(difference));
            more.into_iter().for_each(|(name, count)| *met.entry(name).or_default() += count);
        }
    });
    assert!(met["steps"] >= STEPS_MIN);
    for name in MUST_BE_MET {
        assert!(met.contains_key(name), "{name}: no step covered this situation");
    }
}

/// Takes this thread's share of the steps.
fn walk() -> Met {
    let met = RefCell::new(Met::new());
    while met.borrow().get("steps").is_none_or(|steps| *steps < STEPS_MIN / WALKERS as u64) {
        let outcome = runner().run(&steps(SEQUENCE_STEPS_MAX), |steps| take(&steps, &mut met.borrow_mut()));
        if let Err(difference) = outcome {
            panic!("{difference}");
        }
    }
    met.into_inner()
}

/// Runs some sequences, each with its own seed. A failing one is shrunk and recorded next to this file.
fn runner() -> TestRunner {
    let persistence = Config::with_source_file(file!());
    // The default generator takes half of the time.
    TestRunner::new(Config { cases: 50, max_shrink_iters: 3_000, rng_algorithm: RngAlgorithm::XorShift, ..persistence })
}

/// Situations that must be covered: without one of them a policy would be untested.
const MUST_BE_MET: [&str; 18] = [
    "taken",
    "missed by a reliable subscriber",
    "overwritten",
    "queue_full",
    "expired",
    "undecodable",
    "closed",
    "offered deadline missed",
    "requested deadline missed",
    "liveliness lost",
    "liveliness changed",
    "missed by an observer",
    "topic removed",
    "refused: carries",
    "refused: reliability",
    "refused: durability",
    "refused: deadline",
    "refused: liveliness",
];

/// Applies the steps to the bus and to the model, and compares them after each step.
fn take(steps: &[Step], met: &mut Met) -> Result<(), TestCaseError> {
    let (mut system, mut reference) = (System::new(), Reference::default());
    for (index, step) in steps.iter().enumerate() {
        let (found, expected) = (system.apply(*step), reference.apply(*step));
        same("the outcome", index, *step, &found, &expected)?;
        let (seen, expected) = (system.view(), reference.view());
        same("the bus", index, *step, &seen, &expected)?;
        note_outcome(&found, met);
        note_view(&seen, met);
        *met.entry("steps").or_default() += 1;
    }
    let (found, expected) = (system.drain_events(), reference.drain_events());
    found.iter().for_each(|events| note_outcome(events, met));
    same("the events that were left", steps.len(), Step::Close, &found, &expected)
}

fn same<T: PartialEq + std::fmt::Debug>(
    what: &str,
    index: usize,
    step: Step,
    found: &T,
    expected: &T,
) -> Result<(), TestCaseError> {
    if found == expected {
        return Ok(());
    }
    let text = format!("{what} after step {index}, {step:?}\n   bus: {found:#?}\n model: {expected:#?}");
    Err(TestCaseError::fail(text))
}

fn note_outcome(outcome: &Outcome, met: &mut Met) {
    let mut note = |name| *met.entry(name).or_default() += 1;
    match outcome {
        Outcome::Taken(Some(_)) => note("taken"),
        Outcome::Published(Some(_)) => note("missed by a reliable subscriber"),
        Outcome::Removed(true) => note("topic removed"),
        Outcome::Refused(text) => MUST_BE_MET
            .into_iter()
            .filter(|name| name.strip_prefix("refused: ").is_some_and(|policy| text.contains(policy)))
            .for_each(note),
        Outcome::Events(events) => events.iter().map(event_name).for_each(note),
        _ => {}
    }
}

fn event_name(event: &QosEvent) -> &'static str {
    match event {
        QosEvent::OfferedDeadlineMissed { .. } => "offered deadline missed",
        QosEvent::RequestedDeadlineMissed { .. } => "requested deadline missed",
        QosEvent::LivelinessLost { .. } => "liveliness lost",
        QosEvent::LivelinessChanged { .. } => "liveliness changed",
    }
}

fn note_view(view: &View, met: &mut Met) {
    let mut note = |name| *met.entry(name).or_default() += 1;
    let ends = view.topics.iter().flat_map(|topic| &topic.subscriptions);
    ends.flat_map(|end| end.dropped.keys().copied()).for_each(&mut note);
    if view.missed.iter().any(|missed| *missed > 0) {
        note("missed by an observer");
    }
}
