//! The bus and a model of it that is too plain to be wrong: both take the same steps and must show the same.

pub(crate) mod reference;
pub(crate) mod steps;
pub(crate) mod system;

use std::collections::BTreeMap;

use viaduct_bus::QosEvent;

/// What a step came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// There was nothing to do it with, or no more of it than the test wants.
    Idle,
    Done,
    /// A topic was removed, or there was none to remove.
    Removed(bool),
    /// Nobody was opened; the text of the error.
    Refused(String),
    /// Published; the text of the error, where a subscriber missed it.
    Published(Option<String>),
    /// The sample that was taken, where there was one.
    Taken(Option<Seen>),
    /// The events that had gathered.
    Events(Vec<QosEvent>),
}

/// A sample as its reader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) topic: String,
    pub(crate) sequence: u64,
    pub(crate) text: String,
}

/// All that can be seen of a bus between two steps.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) topics: Vec<TopicView>,
    /// Samples that each observer missed, in the order in which they came.
    pub(crate) missed: Vec<u64>,
    /// Events that each publisher lost, then those of each subscriber; `None` where nobody listens.
    pub(crate) events_lost: Vec<Option<u64>>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TopicView {
    pub(crate) name: String,
    pub(crate) type_name: Option<String>,
    pub(crate) published: u64,
    /// Times between samples that were measured.
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
