//! What a machine reports to its owner, and the identities in it.

use std::net::SocketAddr;

use crate::{Request, Response, codec::Code};

macro_rules! identities {
    ($($(#[$doc:meta])* $name:ident;)+) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
            pub struct $name {
                pub(crate) peer: SocketAddr,
                pub(crate) number: u32,
            }

            impl $name {
                /// Returns the address of the peer.
                #[must_use]
                pub const fn peer(&self) -> SocketAddr {
                    self.peer
                }
            }
        )+
    };
}

identities! {
    /// Identity of a request that this endpoint has sent.
    RequestId;
    /// Identity of a request that this endpoint has received and must answer.
    ExchangeId;
    /// Identity of an observation of a resource of this endpoint by a peer.
    ObservationId;
}

/// A report of a machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Client: the response to a request, with its whole body. It is the last event of the request.
    Response {
        /// Identity that [`crate::Endpoint::request`] returned.
        id: RequestId,
        /// The response. It can be an error of the server.
        response: Response,
    },
    /// Client: the state of an observed resource, with its whole body. More of them follow until another event of the
    /// request.
    Notification {
        /// Identity that [`crate::Endpoint::observe`] returned.
        id: RequestId,
        /// The state.
        response: Response,
    },
    /// Client: a request without a response. It is the last event of the request.
    Failed {
        /// Identity of the request.
        id: RequestId,
        /// Reason.
        failure: Failure,
    },
    /// Client: the peer answered a ping.
    Pong {
        /// Identity that [`crate::Endpoint::ping`] returned.
        id: RequestId,
    },
    /// Server: a request with its whole body, which must be answered by [`crate::Endpoint::respond`].
    Request {
        /// Identity for the answer.
        id: ExchangeId,
        /// The request.
        request: Request,
        /// Identity of the observation that the client asks for, or `None` if it asks for none. It begins with
        /// [`crate::Endpoint::respond_observed`].
        observe: Option<ObservationId>,
    },
    /// Server: an observation has ended.
    ObservationEnded {
        /// Identity of the observation.
        id: ObservationId,
        /// Reason.
        reason: EndReason,
    },
}

macro_rules! labelled {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident => $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $name {
            /// All reasons.
            pub const ALL: [Self; [$($text),+].len()] = [$(Self::$variant),+];

            /// Returns the reason as a constant text for counters and logs.
            #[must_use]
            pub const fn label(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(self.label())
            }
        }
    };
}

labelled! {
    /// Reasons for which a request has no response.
    Failure {
        /// No acknowledgement after all retransmissions, or no response in time.
        TimedOut => "timed_out",
        /// The peer rejected the message with a Reset.
        Reset => "reset",
        /// The body of the response is larger than permitted.
        TooLarge => "too_large",
        /// The blocks of the response do not form a body.
        Blocks => "blocks",
        /// The response has a critical option that is unknown.
        BadOption => "bad_option",
        /// The queue of messages to the peer is full.
        QueueFull => "queue_full",
        /// A reliable connection has ended.
        Closed => "closed",
        /// The state of the peer was removed because there are too many peers.
        Evicted => "evicted",
    }
}

labelled! {
    /// Reasons for which an observation has ended.
    EndReason {
        /// The client cancelled the observation.
        Cancelled => "cancelled",
        /// The client rejected a notification with a Reset.
        Reset => "reset",
        /// The client did not acknowledge a notification.
        TimedOut => "timed_out",
        /// The owner ended the observation or sent an error as notification.
        Finished => "finished",
        /// A reliable connection has ended.
        Closed => "closed",
        /// The state of the peer was removed because there are too many peers.
        Evicted => "evicted",
    }
}

labelled! {
    /// Reasons for which a received message or an own message is dropped.
    DropReason {
        /// Malformed message.
        Malformed => "malformed",
        /// Acknowledgement or Reset of no message that is in flight.
        Unmatched => "unmatched",
        /// Response to no request.
        UnknownToken => "unknown_token",
        /// The limit of peers is reached, and all of them are in use.
        Peers => "peers",
        /// Too many unanswered requests of the peer.
        Exchanges => "exchanges",
        /// Message that is larger than permitted to an address that did not answer the check.
        Unverified => "unverified",
        /// Separate response that was not acknowledged.
        Unacknowledged => "unacknowledged",
        /// Answer to an exchange that is unknown or already answered.
        UnknownExchange => "unknown_exchange",
        /// Message that does not fit into a datagram.
        Unsendable => "unsendable",
        /// Non-confirmable message beyond PROBING_RATE.
        Probing => "probing",
        /// The queue of messages to the peer is full.
        QueueFull => "queue_full",
    }
}

/// Reasons for which a request is refused before it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The limit of requests to one peer is reached.
    #[error("{0} requests to the peer wait for responses; wait for one of them")]
    Busy(usize),
    /// The limit of peers is reached.
    #[error("the endpoint has {0} peers, which is its limit, and all of them are in use")]
    Peers(usize),
    /// The code is not a method.
    #[error("{0} is not a method")]
    Method(Code),
    /// The body is larger than permitted.
    #[error("the body has {0} octets, which is more than the limit of {1}")]
    TooLarge(usize, usize),
    /// The options do not fit into a datagram.
    #[error("the options need {0} octets, which is more than the limit of {1}")]
    Options(usize, usize),
    /// The connection is closed.
    #[error("the connection is closed")]
    Closed,
}

/// Counters of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Received datagrams, or messages of a reliable connection.
    pub received: u64,
    /// Sent datagrams, or messages of a reliable connection, with retransmissions.
    pub sent: u64,
    /// Octets received.
    pub octets_received: u64,
    /// Octets sent.
    pub octets_sent: u64,
    /// Retransmissions of confirmable messages.
    pub retransmissions: u64,
    /// Received duplicates of confirmable and non-confirmable messages.
    pub duplicates: u64,
    /// Entries of duplicate detection that were removed before their end of life, because the peer had too many.
    pub forgotten: u64,
    /// Peers that were removed for new ones.
    pub evicted: u64,
    /// Notifications that were replaced by a newer state before they were sent.
    pub superseded: u64,
    drops: [u64; DropReason::ALL.len()],
}

impl Counters {
    /// Returns the number of messages dropped for a reason.
    #[must_use]
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.drops.get(reason as usize).copied().unwrap_or(0)
    }

    pub(crate) fn drop_one(&mut self, reason: DropReason) {
        if let Some(counter) = self.drops.get_mut(reason as usize) {
            *counter += 1;
        }
    }
}
