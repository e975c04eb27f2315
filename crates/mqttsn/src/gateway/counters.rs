//! Counters of the gateway.

use crate::{
    codec::DecodeError,
    reason::{count, counted},
};

reasons! {
    /// Reason for which the gateway refused a datagram or the request in it.
    Refusal {
        /// The datagram is not a message of MQTT-SN 1.2; [`GatewayCounters::malformed`] has the details.
        Malformed => "malformed",
        /// The wireless node id of a forwarder is too long.
        NodeId => "node_id_too_long",
        /// An encapsulated message is encapsulated again.
        Nested => "nested_encapsulation",
        /// Only a gateway sends messages of this type.
        Direction => "wrong_direction",
        /// The sender has no session.
        NoSession => "no_session",
        /// The session does not expect the message in its state.
        State => "wrong_state",
        /// The message id or topic id of an acknowledgement is not the expected one.
        Unexpected => "unexpected_acknowledgement",
        /// The protocol id is not that of MQTT-SN 1.2.
        Protocol => "wrong_protocol_id",
        /// The client id is too long.
        ClientId => "client_id_too_long",
        /// All sessions are in use.
        Clients => "too_many_clients",
        /// All sessions of the address are in use.
        ClientsOfAddress => "too_many_clients_of_address",
        /// Too many sessions wait for a will or for the broker.
        Connecting => "too_many_connecting",
        /// The broker is not available, or has not answered in time.
        Broker => "broker_unavailable",
        /// The topic id of a message or subscription is unknown.
        TopicId => "unknown_topic_id",
        /// A topic name or filter is not valid.
        TopicName => "invalid_topic_name",
        /// The client's topic ids are all in use.
        Topics => "too_many_topics",
        /// The client has too many subscriptions, or too many that wait for the broker.
        Subscriptions => "too_many_subscriptions",
        /// Too many messages of the client wait for the broker.
        InFlight => "too_many_in_flight",
        /// A message id is 0 where it must not be.
        MessageId => "message_id_zero",
        /// QoS -1 is not allowed.
        WithoutConnection => "qos_minus_one_disabled",
        /// Too many messages with QoS -1.
        Rate => "qos_minus_one_rate",
    }
}

reasons! {
    /// Reason for which a message to a client was dropped.
    DropReason {
        /// The client's buffer was full of newer messages.
        Oldest => "buffer_full_oldest",
        /// The client's buffer was full.
        Newest => "buffer_full_newest",
        /// The buffers of all clients together were full.
        Total => "buffers_full",
        /// The client's connection has ended before it acknowledged the message.
        Disconnected => "client_disconnected",
        /// The client's session has ended.
        SessionEnded => "session_ended",
        /// The client has rejected the message or the registration of its topic.
        Rejected => "rejected_by_client",
        /// The client's topic ids are all in use.
        Topics => "too_many_topics",
        /// The message does not fit into a datagram.
        TooLarge => "too_large",
        /// The topic name is not valid.
        TopicName => "invalid_topic_name",
    }
}

/// Counters of a gateway, since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatewayCounters {
    /// Datagrams received.
    pub received: u64,
    /// Datagrams sent.
    pub sent: u64,
    /// Messages of clients, passed on to the broker side.
    pub published: u64,
    /// Messages from the broker side, once for each client that receives it.
    pub deliveries: u64,
    /// Messages to clients that were sent (QoS 0) or acknowledged.
    pub delivered: u64,
    /// Messages to clients that were buffered because the client was not reachable.
    pub buffered: u64,
    /// Messages from clients that had been received before.
    pub duplicates: u64,
    /// Messages that were sent again.
    pub retransmissions: u64,
    /// Sessions that were created.
    pub sessions: u64,
    /// Clients that became silent.
    pub lost: u64,
    /// Sessions evicted in favour of new ones.
    pub evicted: u64,
    /// DISCONNECT and CONNACK to strangers that were not sent because of the rate limit.
    pub answers_suppressed: u64,
    /// Messages of clients that the broker has refused after they had been acknowledged.
    pub refused_by_broker: u64,
    malformed: [u64; DecodeError::ALL.len()],
    refused: [u64; Refusal::ALL.len()],
    dropped: [u64; DropReason::ALL.len()],
}

impl GatewayCounters {
    /// Returns the number of refused datagrams and requests.
    #[must_use]
    pub fn refused(&self, reason: Refusal) -> u64 {
        counted(&self.refused, reason.index())
    }

    /// Returns the number of refused datagrams and requests of all reasons.
    #[must_use]
    pub fn refused_total(&self) -> u64 {
        self.refused.iter().sum()
    }

    /// Returns the number of datagrams that are not messages of MQTT-SN 1.2.
    #[must_use]
    pub fn malformed(&self, error: DecodeError) -> u64 {
        counted(&self.malformed, error as usize)
    }

    /// Returns the number of messages to clients that were dropped.
    #[must_use]
    pub fn dropped(&self, reason: DropReason) -> u64 {
        counted(&self.dropped, reason.index())
    }

    /// Returns the number of messages to clients that were dropped for any reason.
    #[must_use]
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().sum()
    }

    pub(super) fn refuse(&mut self, reason: Refusal) {
        count(&mut self.refused, reason.index());
    }

    pub(super) fn refuse_malformed(&mut self, error: DecodeError) {
        self.refuse(Refusal::Malformed);
        count(&mut self.malformed, error as usize);
    }

    pub(super) fn drop(&mut self, reason: DropReason) {
        count(&mut self.dropped, reason.index());
    }
}
