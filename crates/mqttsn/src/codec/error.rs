//! Errors of decoding and encoding.

use core::fmt;

/// Reason for which a datagram is not a message of MQTT-SN 1.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DecodeError {
    /// The datagram ends before a field.
    Truncated,
    /// The field `Length` differs from the length of the datagram.
    Length,
    /// Octets follow the last field.
    TrailingOctets,
    /// The message type is reserved.
    MessageType,
    /// The topic id type is reserved.
    TopicIdType,
    /// The quality of service is not 0 to 2 in a message that has no QoS -1.
    Qos,
    /// A text is not UTF-8.
    Text,
    /// A client id or topic name is empty.
    Empty,
}

impl DecodeError {
    /// All errors.
    pub const ALL: [Self; 8] = [
        Self::Truncated,
        Self::Length,
        Self::TrailingOctets,
        Self::MessageType,
        Self::TopicIdType,
        Self::Qos,
        Self::Text,
        Self::Empty,
    ];

    /// Returns the error as a constant text for counters and logs.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::Length => "wrong_length",
            Self::TrailingOctets => "trailing_octets",
            Self::MessageType => "unknown_message_type",
            Self::TopicIdType => "unknown_topic_id_type",
            Self::Qos => "wrong_qos",
            Self::Text => "not_utf8",
            Self::Empty => "empty_text",
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Truncated => "the datagram ends before a field of the message",
            Self::Length => "the field Length differs from the length of the datagram",
            Self::TrailingOctets => "octets follow the last field of the message",
            Self::MessageType => "the message type is reserved",
            Self::TopicIdType => "the topic id type is reserved",
            Self::Qos => "the quality of service must be 0, 1 or 2",
            Self::Text => "a text is not UTF-8",
            Self::Empty => "a client id or topic name is empty",
        })
    }
}

impl core::error::Error for DecodeError {}

/// Reason for which a message was not encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodeError {
    /// The message is longer than the buffer.
    Buffer {
        /// Length of the message in octets.
        needed: usize,
    },
    /// The message is longer than 65,535 octets, or its wireless node id longer than 252 octets.
    TooLong,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Buffer { needed } => write!(formatter, "the buffer is too small: the message has {needed} octets"),
            Self::TooLong => formatter.write_str("the message is longer than MQTT-SN allows"),
        }
    }
}

impl core::error::Error for EncodeError {}
