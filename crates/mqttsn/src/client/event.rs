//! Requests, events, errors and counters of the client.

use std::{net::SocketAddr, sync::Arc};

use bytes::Bytes;

use crate::{
    Message,
    codec::{DecodeError, Qos, ReturnCode, ShortTopic},
    reason::{count, counted},
};

/// Topic of a request, as it is sent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topic {
    /// Name, or filter with wildcards. The client registers names by itself.
    Name(Arc<str>),
    /// Id that client and gateway know in advance.
    Predefined(u16),
    /// Name with two octets, which needs no registration.
    Short(ShortTopic),
}

impl From<&str> for Topic {
    fn from(name: &str) -> Self {
        Self::Name(Arc::from(name))
    }
}

/// A message to publish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publication {
    /// Topic without wildcards.
    pub topic: Topic,
    /// Payload.
    pub payload: Bytes,
    /// Quality of service.
    pub qos: Qos,
    /// `true` if the broker must retain the message.
    pub retain: bool,
}

/// Number of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub(super) u64);

/// Reason for which a request was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The queue is full.
    #[error("the queue of requests is full")]
    QueueFull,
    /// The topic is not valid for this request.
    #[error("the topic is not valid: a name or filter as in MQTT, or a predefined id of the settings")]
    Topic,
    /// The message does not fit into a datagram.
    #[error("the message is longer than a datagram may be")]
    TooLarge,
    /// There are too many subscriptions.
    #[error("the client has too many subscriptions")]
    TooManySubscriptions,
    /// The client's state does not allow the command.
    #[error("the client's state does not allow the command")]
    State,
}

/// Result of a request that succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The message was sent (QoS 0), acknowledged (QoS 1) or completed (QoS 2).
    Published,
    /// The subscription was granted.
    Subscribed(Qos),
    /// The subscription has ended.
    Unsubscribed,
    /// The will was changed.
    WillUpdated,
}

/// Reason for which a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The gateway has rejected the request, or the connection.
    #[error("the gateway rejects the request ({0:?})")]
    Rejected(ReturnCode),
    /// The client has been disconnected.
    #[error("the client is disconnected")]
    Disconnected,
    /// All topic ids of the client are in use.
    #[error("all topic ids of the client are in use")]
    TooManyTopics,
}

/// State of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientState {
    /// There is no connection, and none is wanted.
    Disconnected,
    /// The client looks for a gateway, connects, or waits before the next attempt.
    Connecting,
    /// The client is connected.
    Active,
    /// The gateway buffers messages for the client.
    Asleep,
    /// The client receives the buffered messages.
    Awake,
    /// The client waits for the answer to DISCONNECT.
    Leaving,
}

/// An event of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// The client is connected.
    Connected {
        /// Address of the gateway.
        gateway: SocketAddr,
    },
    /// The gateway has refused the connection. After *congestion* the client tries again, after other codes it does not.
    Refused {
        /// Return code.
        code: ReturnCode,
    },
    /// The gateway is silent, or has forgotten the client, which connects again.
    Lost {
        /// Address of the gateway.
        gateway: SocketAddr,
    },
    /// The connection has ended at the request of the client.
    Disconnected,
    /// The client sleeps: after [`Client::sleep`], and again after each [`Client::wake`].
    ///
    /// [`Client::sleep`]: super::Client::sleep
    /// [`Client::wake`]: super::Client::wake
    Asleep,
    /// A request is finished.
    Finished {
        /// Number of the request.
        request: RequestId,
        /// Result.
        result: Result<Outcome, Failure>,
    },
    /// A message has arrived.
    Message(Message),
    /// A gateway was discovered.
    GatewayFound {
        /// Id of the gateway.
        id: u8,
        /// Address.
        address: SocketAddr,
    },
    /// A gateway has not advertised itself for too long.
    GatewayForgotten {
        /// Id of the gateway.
        id: u8,
    },
}

reasons! {
    /// Reason for which the client refused a datagram.
    ClientRefusal {
        /// The datagram is not a message of MQTT-SN 1.2; [`ClientCounters::malformed`] has the details.
        Malformed => "malformed",
        /// The sender is not the client's gateway.
        Sender => "unknown_sender",
        /// Only a client or a forwarder sends messages of this type.
        Direction => "wrong_direction",
        /// The client does not expect the message in its state.
        Unexpected => "unexpected",
        /// The topic id of a message is unknown.
        TopicId => "unknown_topic_id",
        /// A topic name is not valid.
        TopicName => "invalid_topic_name",
        /// All topic ids are in use.
        Topics => "too_many_topics",
        /// Too many messages with QoS 2 wait for PUBREL.
        Unreleased => "too_many_unreleased",
    }
}

/// Counters of a client, since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientCounters {
    /// Datagrams received.
    pub received: u64,
    /// Datagrams sent.
    pub sent: u64,
    /// Messages that were sent again.
    pub retransmissions: u64,
    /// Messages published: sent (QoS 0 and -1), acknowledged (QoS 1) or completed (QoS 2).
    pub published: u64,
    /// Messages received, without duplicates.
    pub messages: u64,
    /// Messages with QoS 2 that had been received before.
    pub duplicates: u64,
    /// Messages with QoS 0 that the gateway refused because of their topic id.
    pub unknown_topics: u64,
    /// Connections that were established.
    pub connections: u64,
    /// Connections that were lost.
    pub lost: u64,
    malformed: [u64; DecodeError::ALL.len()],
    refused: [u64; ClientRefusal::ALL.len()],
}

impl ClientCounters {
    /// Returns the number of refused datagrams.
    #[must_use]
    pub fn refused(&self, reason: ClientRefusal) -> u64 {
        counted(&self.refused, reason.index())
    }

    /// Returns the number of refused datagrams of all reasons.
    #[must_use]
    pub fn refused_total(&self) -> u64 {
        self.refused.iter().sum()
    }

    /// Returns the number of datagrams that are not messages of MQTT-SN 1.2.
    #[must_use]
    pub fn malformed(&self, error: DecodeError) -> u64 {
        counted(&self.malformed, error as usize)
    }

    pub(super) fn refuse(&mut self, reason: ClientRefusal) {
        count(&mut self.refused, reason.index());
    }

    pub(super) fn refuse_malformed(&mut self, error: DecodeError) {
        self.refuse(ClientRefusal::Malformed);
        count(&mut self.malformed, error as usize);
    }
}
