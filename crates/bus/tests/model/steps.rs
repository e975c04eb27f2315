//! The steps that the bus and the model take.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use viaduct_bus::{Durability, History, Liveliness, Qos, Reliability};

/// Maximum number of open publishers, of subscribers, and of observers.
pub(crate) const OPEN_MAX: usize = 6;

/// Names of topics.
const NAMES: [&str; 3] = ["a", "x/a", "x/b"];

/// Names and patterns to which subscribers subscribe.
const PATTERNS: [&str; 6] = ["a", "a", "x/a", "x/b", "x/*", "**"];

/// The types of messages that are published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Log,
    Fix,
}

/// One operation on the bus. A number selects one of the open objects, modulo their count.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    OpenPublisher {
        topic: &'static str,
        kind: Kind,
        qos: Qos,
        listens: bool,
    },
    OpenSubscriber {
        pattern: &'static str,
        kind: Option<Kind>,
        qos: Qos,
        listens: bool,
    },
    OpenObserver {
        pattern: &'static str,
    },
    DropPublisher(usize),
    DropSubscriber(usize),
    DropObserver(usize),
    Publish(usize),
    Assert(usize),
    Take(usize),
    Look(usize),
    PublisherEvents(usize),
    SubscriberEvents(usize),
    /// Advances the clock, then checks deadlines.
    Advance(Duration),
    RemoveTopic(&'static str),
    Close,
}

/// Generates up to `steps_max` steps. Operations that are frequent in a vehicle are frequent here, so that queues fill
/// and run empty.
pub(crate) fn steps(steps_max: usize) -> impl Strategy<Value = Vec<Step>> {
    vec(step(), 1..=steps_max)
}

fn step() -> impl Strategy<Value = Step> {
    let end = 0..OPEN_MAX;
    prop_oneof![
        60 => open_publisher(),
        70 => open_subscriber(),
        10 => pattern().prop_map(|pattern| Step::OpenObserver { pattern }),
        35 => end.clone().prop_map(Step::DropPublisher),
        35 => end.clone().prop_map(Step::DropSubscriber),
        6 => end.clone().prop_map(Step::DropObserver),
        300 => end.clone().prop_map(Step::Publish),
        15 => end.clone().prop_map(Step::Assert),
        200 => end.clone().prop_map(Step::Take),
        20 => end.clone().prop_map(Step::Look),
        12 => end.clone().prop_map(Step::PublisherEvents),
        12 => end.prop_map(Step::SubscriberEvents),
        200 => time_that_goes_by().prop_map(Step::Advance),
        20 => name().prop_map(Step::RemoveTopic),
        1 => Just(Step::Close),
    ]
}

fn open_publisher() -> impl Strategy<Value = Step> {
    let open = |(topic, kind, qos, listens)| Step::OpenPublisher { topic, kind, qos, listens };
    (name(), kind(), offered(), any::<bool>()).prop_map(open)
}

fn open_subscriber() -> impl Strategy<Value = Step> {
    let open = |(pattern, kind, qos, listens)| Step::OpenSubscriber { pattern, kind, qos, listens };
    (pattern(), proptest::option::of(kind()), requested(), any::<bool>()).prop_map(open)
}

fn name() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(&NAMES[..])
}

fn pattern() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(&PATTERNS[..])
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![6 => Just(Kind::Log), 1 => Just(Kind::Fix)]
}

/// Generates offers: mostly strong, so that most subscribers are served.
fn offered() -> impl Strategy<Value = Qos> {
    let deadline = maybe(1, 1, &[5, 10, 20]);
    let life = prop_oneof![
        2 => Just((Liveliness::Automatic, None)),
        1 => Just((Liveliness::Automatic, Some(millis(10)))),
        4 => times(&[10, 20]).prop_map(|lease| (Liveliness::ManualByTopic, Some(lease))),
        1 => Just((Liveliness::ManualByTopic, None)),
    ];
    qos(8, 6, deadline, maybe(1, 1, &[5, 10, 20]), life)
}

/// Generates requests: mostly weak.
fn requested() -> impl Strategy<Value = Qos> {
    let life = prop_oneof![
        6 => Just((Liveliness::Automatic, None)),
        1 => Just((Liveliness::ManualByTopic, None)),
        1 => Just((Liveliness::ManualByTopic, Some(millis(20)))),
        1 => Just((Liveliness::Automatic, Some(millis(10)))),
    ];
    qos(5, 3, maybe(2, 1, &[10, 20]), Just(None), life)
}

/// Generates quality of service; `reliable` and `durable` of 10 are reliable and transient local.
fn qos(
    reliable: u32,
    durable: u32,
    deadline: impl Strategy<Value = Option<Duration>>,
    lifespan: impl Strategy<Value = Option<Duration>>,
    life: impl Strategy<Value = (Liveliness, Option<Duration>)>,
) -> impl Strategy<Value = Qos> {
    // No publisher waits here: time spent waiting is not virtual.
    let block = Reliability::Reliable { block: millis(1) };
    let reliability = prop_oneof![reliable => Just(block), 10 - reliable => Just(Reliability::BestEffort)];
    let durability =
        prop_oneof![durable => Just(Durability::TransientLocal), 10 - durable => Just(Durability::Volatile)];
    let history = prop_oneof![
        (0..5_usize).prop_map(History::KeepLast),
        (1..5_usize).prop_map(|limit| History::KeepAll { limit }),
    ];
    let all = (reliability, history, durability, deadline, lifespan, life);
    all.prop_map(|(reliability, history, durability, deadline, lifespan, (liveliness, lease))| Qos {
        reliability,
        history,
        durability,
        deadline,
        lifespan,
        liveliness,
        lease,
    })
}

fn maybe(none: u32, some: u32, of: &'static [u64]) -> impl Strategy<Value = Option<Duration>> {
    prop_oneof![none => Just(None), some => times(of).prop_map(Some)]
}

fn times(of: &'static [u64]) -> impl Strategy<Value = Duration> {
    proptest::sample::select(of).prop_map(millis)
}

/// Generates times: mostly the periods of the policies, so that their ends are hit exactly, and a nanosecond more or
/// less.
fn time_that_goes_by() -> impl Strategy<Value = Duration> {
    let nanosecond = Duration::from_nanos(1);
    prop_oneof![
        6 => times(&[1, 5, 5, 10, 10, 20]),
        1 => times(&[5, 10, 20]).prop_map(move |time| time + nanosecond),
        1 => times(&[5, 10, 20]).prop_map(move |time| time - nanosecond),
        1 => Just(nanosecond),
        1 => Just(millis(75)),
    ]
}

fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}
