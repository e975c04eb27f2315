//! Errors of opening a topic and of publishing on it.

use viaduct_messages::topic::NameError;

use crate::limits::{OBSERVERS_MAX, TOPICS_MAX};
use crate::qos::QosMismatch;

/// Why a topic cannot be published or read.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OpenError {
    /// The text is not the name of a topic, or not a pattern.
    #[error(transparent)]
    Name(NameError),
    /// The topic has another type.
    #[error("topic `{topic}` carries `{has}`, and {component} wants `{wants}`")]
    Type {
        /// The topic.
        topic: String,
        /// The component that asked.
        component: String,
        /// The type that the topic has.
        has: String,
        /// The type that was asked for.
        wants: String,
    },
    /// A publisher offers less than a subscriber asks for.
    #[error("topic `{topic}`: {publisher} does not serve {subscriber} ({mismatch})")]
    Qos {
        /// The topic.
        topic: String,
        /// The publishing component.
        publisher: String,
        /// The reading component.
        subscriber: String,
        /// The policy that does not fit.
        mismatch: Box<QosMismatch>,
    },
    /// The bus has as many topics as it can hold.
    #[error("the bus has {TOPICS_MAX} topics already; `{topic}` would be one more")]
    TooManyTopics {
        /// The topic.
        topic: String,
    },
}

impl OpenError {
    pub(crate) fn other_type(topic: &str, component: &str, has: &str, wants: &str) -> Self {
        Self::Type {
            topic: topic.to_owned(),
            component: component.to_owned(),
            has: has.to_owned(),
            wants: wants.to_owned(),
        }
    }

    pub(crate) fn qos(topic: &str, publisher: &str, subscriber: &str, mismatch: QosMismatch) -> Self {
        Self::Qos {
            topic: topic.to_owned(),
            publisher: publisher.to_owned(),
            subscriber: subscriber.to_owned(),
            mismatch: Box::new(mismatch),
        }
    }
}

/// Why nobody more can look on.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ObserveError {
    /// The pattern cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// As many observers as there may be are there.
    #[error("{OBSERVERS_MAX} observers are attached already; end one of them first")]
    TooMany,
}

/// Why not every subscriber got a sample. Those that had room did.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// Reliable subscribers whose queue stayed full; each counted the drop.
    #[error("topic `{topic}`: the queue of {} stayed full", subscribers.join(", "))]
    QueueFull {
        /// The topic.
        topic: String,
        /// The components that missed the sample.
        subscribers: Vec<String>,
    },
}
