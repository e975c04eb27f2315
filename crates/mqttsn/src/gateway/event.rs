//! Requests of the gateway to the broker side, and the identities in them.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;

use crate::{Message, Peer, codec::Qos, gateway::DropReason};

/// A client of the gateway. A handle of a session that has ended is never used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientHandle {
    pub(super) slot: u32,
    pub(super) generation: u32,
}

impl fmt::Debug for ClientHandle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.slot, self.generation)
    }
}

/// A request of a client that the broker side answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token {
    pub(super) client: ClientHandle,
    pub(super) number: u32,
}

impl Token {
    /// Returns the client.
    #[must_use]
    pub const fn client(self) -> ClientHandle {
        self.client
    }

    /// Returns the number of the request. A message keeps it if the gateway is restored, so that with the client id it identifies the
    /// message until it is settled.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.number
    }
}

/// An output of the gateway to the broker side, in the order in which it must be processed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GatewayEvent {
    /// Transparent mode: connect to the broker for this client. Answered with [`Gateway::connected`].
    ///
    /// After a restart and after a reconnection of the client, an earlier connection with the same handle must be closed.
    ///
    /// [`Gateway::connected`]: super::Gateway::connected
    Connect {
        /// Client.
        client: ClientHandle,
        /// Client id.
        client_id: Arc<str>,
        /// `true` if the broker must forget an earlier session.
        clean: bool,
        /// Keep-alive time of the client; zero means none.
        keep_alive: Duration,
        /// Will that the broker must publish, unless the gateway holds it ([`GatewaySettings::hold_wills`]).
        ///
        /// [`GatewaySettings::hold_wills`]: super::GatewaySettings::hold_wills
        will: Option<Message>,
    },
    /// Publish a message. Answered with [`Gateway::published`] if there is a token.
    ///
    /// [`Gateway::published`]: super::Gateway::published
    Publish {
        /// Client, or `None` for QoS -1 from a node without a session.
        client: Option<ClientHandle>,
        /// Message.
        message: Message,
        /// Token of a message that must be confirmed; `None` for QoS 0, QoS -1 and wills.
        token: Option<Token>,
    },
    /// Subscribe. Answered with [`Gateway::subscribed`].
    ///
    /// [`Gateway::subscribed`]: super::Gateway::subscribed
    Subscribe {
        /// Client. In aggregating mode, the subscription is that of the shared connection.
        client: ClientHandle,
        /// Topic filter.
        filter: Arc<str>,
        /// Quality of service.
        qos: Qos,
        /// Token.
        token: Token,
    },
    /// Unsubscribe. Answered with [`Gateway::unsubscribed`] if there is a token.
    ///
    /// [`Gateway::unsubscribed`]: super::Gateway::unsubscribed
    Unsubscribe {
        /// Client. In aggregating mode, the subscription is that of the shared connection.
        client: ClientHandle,
        /// Topic filter.
        filter: Arc<str>,
        /// Token, or `None` if no client waits for the answer.
        token: Option<Token>,
    },
    /// Transparent mode: close the connection of this client.
    Disconnect {
        /// Client.
        client: ClientHandle,
        /// `true` if the broker must publish the will: close without DISCONNECT.
        publish_will: bool,
    },
    /// A message of [`Gateway::deliver`] or [`Gateway::route`] with QoS 1 or 2 is settled: acknowledge it to the broker.
    ///
    /// [`Gateway::deliver`]: super::Gateway::deliver
    /// [`Gateway::route`]: super::Gateway::route
    Delivered {
        /// Number that the caller has passed.
        delivery: u64,
        /// Result.
        outcome: DeliveryOutcome,
    },
    /// The stored state changes: append the record to the storage.
    Record {
        /// Record for [`Gateway::restore`].
        ///
        /// [`Gateway::restore`]: super::Gateway::restore
        record: Bytes,
        /// Token for [`Gateway::persisted`] if an acknowledgement waits for the storage.
        ///
        /// [`Gateway::persisted`]: super::Gateway::persisted
        token: Option<Token>,
    },
    /// The state of a client changed. If its session has ended, [`Gateway::client_id`] returns `None` for the handle.
    ///
    /// [`Gateway::client_id`]: super::Gateway::client_id
    Status {
        /// Client.
        client: ClientHandle,
        /// Client id.
        client_id: Arc<str>,
        /// Address.
        peer: Peer,
        /// New state.
        status: ClientStatus,
    },
}

/// State of a client (6.14, figure 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClientStatus {
    /// The client is being connected.
    Connecting,
    /// The client is connected.
    Active,
    /// Messages for the client are buffered.
    Asleep,
    /// Buffered messages are sent.
    Awake,
    /// The client has ended its connection, or was disconnected by the gateway.
    Disconnected,
    /// The client is silent.
    Lost,
}

/// Result of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeliveryOutcome {
    /// Each client has acknowledged the message.
    Acknowledged,
    /// The message is stored for each client that has not acknowledged it.
    Stored,
    /// In aggregating mode: no subscription matches.
    Unmatched,
    /// The message was dropped for a client.
    Dropped(DropReason),
}
