//! Errors of opening a topic and of publishing on it.

use viaduct_messages::topic::NameError;

use crate::limits::{OBSERVERS_MAX, TOPICS_MAX};
use crate::qos::QosMismatch;
use crate::type_info::TypeInfo;

/// A reason for which a topic cannot be opened.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OpenError {
    /// The text is not a topic name, or not a pattern.
    #[error(transparent)]
    Name(NameError),
    /// The topic has another type.
    #[error("topic `{topic}` carries `{has}`, and {component} wants `{wants}`")]
    Type {
        /// The topic.
        topic: String,
        /// The component that opens the topic.
        component: String,
        /// The type that the topic has.
        has: String,
        /// The type that the component wants.
        wants: String,
    },
    /// A publisher offers less than a subscriber requests.
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
    /// The bus has reached its maximum number of topics.
    #[error("the bus has {TOPICS_MAX} topics already; `{topic}` would be one more")]
    TooManyTopics {
        /// The topic.
        topic: String,
    },
}

impl OpenError {
    pub(crate) fn other_type(topic: &str, component: &str, has: &TypeInfo, wants: &TypeInfo) -> Self {
        Self::Type {
            topic: topic.to_owned(),
            component: component.to_owned(),
            has: has.to_string(),
            wants: wants.to_string(),
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

/// A reason for which an observer cannot be attached.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ObserveError {
    /// The pattern cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The maximum number of observers is attached.
    #[error("{OBSERVERS_MAX} observers are attached already; end one of them first")]
    TooMany,
}

/// A sample did not reach every subscriber. Those whose queue had room got it.
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
