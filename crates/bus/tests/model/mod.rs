//! The bus, and a reference model that is obviously correct: both take the same steps and must show the same results.

pub(crate) mod reference;
pub(crate) mod steps;
pub(crate) mod system;

use std::collections::BTreeMap;

use viaduct_bus::QosEvent;

/// Result of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The step does not apply: there is no such object, or the test has reached its maximum.
    Idle,
    Done,
    /// `true` if a topic was removed.
    Removed(bool),
    /// Text of the error with which opening was refused.
    Refused(String),
    /// Published; the text of the error if a subscriber missed the sample.
    Published(Option<String>),
    /// The sample that was taken, if there was one.
    Taken(Option<Seen>),
    /// The queued events.
    Events(Vec<QosEvent>),
}

/// A sample as its reader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) topic: String,
    pub(crate) sequence: u64,
    pub(crate) text: String,
}

/// Everything that is visible of a bus between two steps.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) topics: Vec<TopicView>,
    /// Samples that each observer missed, in the order of attaching.
    pub(crate) missed: Vec<u64>,
    /// Events lost by each publisher, then by each subscriber; `None` without a reader of events.
    pub(crate) events_lost: Vec<Option<u64>>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TopicView {
    pub(crate) name: String,
    pub(crate) type_name: Option<String>,
    pub(crate) published: u64,
    /// Number of measured times between samples.
    pub(crate) intervals: u64,
    pub(crate) dropped: u64,
    pub(crate) publishers: Vec<PublisherView>,
    pub(crate) subscriptions: Vec<SubscriptionView>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PublisherView {
    pub(crate) owner: String,
    pub(crate) alive: bool,
    pub(crate) deadline_missed: Option<u64>,
    pub(crate) liveliness_lost: Option<u64>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SubscriptionView {
    pub(crate) owner: String,
    pub(crate) pattern: String,
    pub(crate) delivered: u64,
    pub(crate) queued: usize,
    pub(crate) dropped: BTreeMap<&'static str, u64>,
    pub(crate) deadline_missed: Option<u64>,
}
