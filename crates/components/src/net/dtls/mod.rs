//! DTLS 1.2 with pre-shared keys (RFC 6347, RFC 4279) for any protocol of datagrams.
//!
//! ```text
//! client                                            server
//!     ClientHello ──────────────────────────────────►   stores nothing
//!     ◄───────────────── HelloVerifyRequest (cookie)
//!     ClientHello (cookie) ─────────────────────────►   checks the cookie and the rates, then has state
//!     ◄───────────────── ServerHello, ServerHelloDone
//!     ClientKeyExchange (identity), ChangeCipherSpec,
//!     Finished ─────────────────────────────────────►   checks the key
//!     ◄─────────────────── ChangeCipherSpec, Finished
//!     data ◄────────────────────────────────────────► data
//! ```
//!
//! [`Server`] and [`Client`] are machines: datagrams, payloads and time go in; datagrams, payloads, events and a deadline come
//! out. The only cipher suite is `TLS_PSK_WITH_AES_128_CCM_8`, which CoAP requires (RFC 7252, 9.1.3.1). Handshake and records
//! are those of `dimpl` (decision 0017). The rest is here:
//!
//! - **Cookies**: a server has no state for an address that has not proved itself, and sends no more to it than it has
//!   received from there.
//! - **Limits**: rates of handshakes, of all and of each source; handshakes at once; sessions. A full table evicts from the
//!   source or the identity that has the most entries, so that one cannot displace all others.
//! - **Restarts**: a client that has lost its session starts another handshake from the same address; its old session remains
//!   in use until the new one is complete (RFC 6347, 4.2.8). A server that has lost its sessions answers payloads with an
//!   alert. The client does not trust it, but starts another handshake. It does the same if nothing is received for a while
//!   after it has sent a payload.
//! - **Replays** are dropped, each record is accepted once, in a window of 64.
//! - **Secrets** come from files that only their owner may read.
//!
//! Not offered: connection identifiers (RFC 9146), so a client whose address changes needs another handshake; certificates and
//! raw public keys; resumption of sessions; forward secrecy, which this cipher suite does not have: a key that becomes known
//! reveals recorded sessions; peers without the Extended Master Secret (RFC 7627); a `ClientHello` in several fragments.

mod client;
mod counters;
mod crypto;
mod keys;
pub mod limits;
mod server;
mod session;
mod settings;
mod wire;

use std::net::SocketAddr;
use std::sync::Arc;

pub use client::Client;
pub use counters::{Counters, DropReason, EndReason};
pub use keys::{PskError, PskKeys};
pub use server::Server;
pub use session::ConfigError;
pub use settings::{ClientConfig, DtlsClientSettings, DtlsError, DtlsServerSettings, HandshakeTiming, ServerConfig};

use self::limits::PAYLOAD_OCTETS_MAX;
use super::secure::RandomError;

/// A change of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A session has become usable.
    Connected {
        /// Address of the peer.
        peer: SocketAddr,
        /// Identity of the client.
        identity: Arc<str>,
    },
    /// A session has replaced another one of the same address and identity: the peer has restarted, or got no answers.
    Renewed {
        /// Address of the peer.
        peer: SocketAddr,
        /// Identity of the client.
        identity: Arc<str>,
    },
    /// A session has ended.
    Closed {
        /// Address of the peer.
        peer: SocketAddr,
        /// Identity of the client.
        identity: Arc<str>,
        /// The reason.
        reason: EndReason,
    },
    /// A handshake has failed.
    Failed {
        /// Address of the peer.
        peer: SocketAddr,
        /// The reason.
        reason: EndReason,
    },
}

/// A payload cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// There is no session with the peer.
    #[error("there is no session with the peer")]
    NotConnected,
    /// The payload does not fit in a record.
    #[error("the payload has {0} octets; at most {PAYLOAD_OCTETS_MAX} fit in a record")]
    TooLong(usize),
    /// Earlier payloads wait for the session, or earlier datagrams were not taken.
    #[error("the queue is full")]
    QueueFull,
}

/// A server or a client cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The system provides no random numbers.
    #[error(transparent)]
    Random(#[from] RandomError),
    /// The configuration cannot be built.
    #[error(transparent)]
    Config(#[from] ConfigError),
}
