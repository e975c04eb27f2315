//! Answers to MQTT requests that are rejected.

use bytes::Bytes;
use serde::Serialize;
use viaduct_bus::PublishError;
use viaduct_etsi::{JsonError, JsonProblem};
use viaduct_its::facilities::MessageKind;
use viaduct_mqtt::packet::publish::PublishPacket;
use viaduct_mqtt::{PropertyId, PropertyValue};
use viaduct_units::Tai;
use viaduct_v2x_json::timestamp_text;

/// Maximum length of a request's topic and of its response topic, in octets.
const TOPIC_OCTETS_MAX: usize = 512;
/// Maximum length of the correlation data, in octets.
const CORRELATION_OCTETS_MAX: usize = 1024;

/// Reason why a request did not reach the bus.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// The text is invalid. The application is at fault.
    #[error("{0}")]
    Text(#[from] JsonError),
    /// The text is not a message of the type. The application is at fault.
    #[error("{0}")]
    WrongValue(String),
    /// Neither the topic nor the text names the message type. The application is at fault.
    #[error("`{level}` is not a message type; the topic must end in one of {}", known_types())]
    UnknownTopic { level: String },
    /// The text is too long and was not read. The application is at fault.
    #[error("the text has {octets} octets; at most {max} are allowed")]
    TooLong { octets: usize, max: usize },
    /// The queue of the station is full. The request may succeed later.
    #[error("{0}")]
    Busy(#[from] PublishError),
    /// The queue of a subscriber of the bus is full.
    #[error("{0}")]
    QueueFull(PublishError),
    /// No type was received for the topic of a message.
    #[error("the type of `{topic}` is not known yet")]
    UnknownType { topic: String },
    /// The message of a type topic is not one.
    #[error("the type of `{topic}` cannot be read")]
    MalformedType { topic: String },
    /// The octets are not a message of the announced type.
    #[error("the octets are not a message of `{type_info}`")]
    MalformedMessage { type_info: String },
    /// A user property is malformed.
    #[error("the user property `{name}` is malformed")]
    MalformedProperty { name: &'static str },
    /// The codec of a compressed message is unknown.
    #[error("the codec `{name}` is unknown")]
    UnknownCodec { name: String },
    /// The octets are not a compressed message of the claimed length.
    #[error("the compressed message is malformed")]
    MalformedCompression,
    /// The MQTT topic gives no topic of the bus.
    #[error("{0}")]
    InvalidTopic(String),
    /// The route has as many topics of the bus as it may have.
    #[error("the route has {max} topics of the bus, which is the maximum")]
    TooManyTopics { max: usize },
    /// The lists of the route exclude the topic.
    #[error("the route does not take this topic")]
    Denied,
    /// The topic of the bus has another type.
    #[error("{0}")]
    OtherType(String),
}

fn known_types() -> String {
    MessageKind::ALL.map(MessageKind::label).join(", ")
}

impl Refusal {
    /// Returns the reason as it appears in counters and answers.
    pub(crate) const fn label(&self) -> &'static str {
        match self {
            Self::Text(error) => error.problem.label(),
            Self::WrongValue(_) => "wrong_value",
            Self::UnknownTopic { .. } => "unknown_topic",
            Self::TooLong { .. } => "too_long",
            Self::Busy(_) => "station_busy",
            Self::UnknownType { .. } => "unknown_type",
            Self::MalformedType { .. } => "malformed_type",
            Self::MalformedMessage { .. } => "malformed_message",
            Self::MalformedProperty { .. } => "malformed_property",
            Self::UnknownCodec { .. } => "unknown_codec",
            Self::MalformedCompression => "malformed_compression",
            Self::InvalidTopic(_) => "invalid_topic",
            Self::TooManyTopics { .. } => "too_many_topics",
            Self::Denied => "denied",
            Self::OtherType { .. } => "other_type",
            Self::QueueFull(_) => "queue_full",
        }
    }

    /// Returns the path of the invalid member; empty if the error is not about a member.
    fn path(&self) -> &str {
        match self {
            Self::Text(error) => &error.path,
            _ => "",
        }
    }
}

/// Response topic and correlation data of a request (MQTT 5, 4.10).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReplyAddress {
    /// Response topic; empty if the request has none.
    pub(crate) topic: String,
    pub(crate) correlation: Bytes,
}

impl ReplyAddress {
    /// Creates the reply address. An invalid or too long topic is ignored. Correlation data that is too long is
    /// ignored.
    pub(crate) fn new(topic: Option<&str>, correlation: Option<&Bytes>) -> Self {
        let fits = |octets: &&Bytes| octets.len() <= CORRELATION_OCTETS_MAX;
        Self {
            topic: topic.filter(|topic| is_topic(topic)).unwrap_or_default().to_owned(),
            correlation: correlation.filter(fits).cloned().unwrap_or_default(),
        }
    }

    /// Returns the reply address of a request.
    pub(crate) fn of(request: &PublishPacket) -> Self {
        let topic = match request.properties.get(PropertyId::ResponseTopic) {
            Some(PropertyValue::Utf8String(topic)) => Some(&**topic),
            _ => None,
        };
        let correlation = match request.properties.get(PropertyId::CorrelationData) {
            Some(PropertyValue::BinaryData(octets)) => Some(octets),
            _ => None,
        };
        Self::new(topic, correlation)
    }
}

/// Returns `true` if an answer may be published on `topic`.
pub(crate) fn is_topic(topic: &str) -> bool {
    topic.len() <= TOPIC_OCTETS_MAX && !topic.starts_with('$') && viaduct_mqtt::validate_topic_name(topic).is_ok()
}

/// The members of an answer in their order.
#[derive(Serialize)]
struct Answer<'a> {
    topic: &'a str,
    time: String,
    reason: &'static str,
    error: String,
    path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    got: Option<&'a str>,
    count: u64,
}

/// Returns the answer to a rejected request, as JSON. `count` is the number of rejected requests that it represents.
pub(crate) fn write(refusal: &Refusal, topic: &str, now: Tai, count: u64) -> Bytes {
    let (expected, got) = match refusal {
        Refusal::Text(JsonError { problem: JsonProblem::Mismatch { expected, got }, .. }) => {
            (Some(&**expected), Some(&**got))
        }
        _ => (None, None),
    };
    let cut = topic.char_indices().map(|(at, _)| at).find(|at| *at >= TOPIC_OCTETS_MAX).unwrap_or(topic.len());
    let answer = Answer {
        topic: &topic[..cut],
        time: timestamp_text(now),
        reason: refusal.label(),
        error: refusal.to_string(),
        path: refusal.path(),
        expected,
        got,
        count,
    };
    // Strings and numbers always serialise.
    serde_json::to_vec(&answer).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use viaduct_mqtt::QoS;

    #[test]
    fn an_answer_contains_path_and_reason() {
        let problem = JsonProblem::Mismatch { expected: "an integer from 0 to 255".into(), got: "256".into() };
        let error = Refusal::Text(JsonError { path: "cam.generationDeltaTime".into(), problem });
        let text = write(&error, "v/in/cam", Tai::from_unix_nanos(0), 3);
        assert_eq!(
            std::str::from_utf8(&text).unwrap(),
            "{\"topic\":\"v/in/cam\",\"time\":\"1970-01-01T00:00:00.000000Z\",\"reason\":\"wrong_value\",\
             \"error\":\"cam.generationDeltaTime: expected an integer from 0 to 255, got 256\",\
             \"path\":\"cam.generationDeltaTime\",\"expected\":\"an integer from 0 to 255\",\"got\":\"256\",\"count\":3}"
        );
        let long = write(&error, &"ä".repeat(2000), Tai::from_unix_nanos(0), 1);
        assert!(long.len() < 1024);
    }

    #[test]
    fn only_a_valid_response_topic_is_used() {
        let reply_to = |topic: &str| {
            let request = PublishPacket::new("t", Bytes::new(), QoS::AtMostOnce)
                .with_response_topic(topic.to_owned())
                .with_correlation_data(vec![7]);
            ReplyAddress::of(&request)
        };
        assert_eq!(
            reply_to("app/1/answer"),
            ReplyAddress { topic: "app/1/answer".into(), correlation: Bytes::from_static(&[7]) }
        );
        for bad in ["", "a/+", "#", "$SYS/x", &"x".repeat(513)] {
            assert_eq!(reply_to(bad).topic, "", "{bad}");
        }
    }
}
